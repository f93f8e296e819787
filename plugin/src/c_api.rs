// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codecs for C and for Python's ctypes, without HDF5. What each function does stands in `include/h5z_gpu.h`.

use crate::callbacks;
use crate::error::{Result, fenced};
use crate::report::Failures;
use crate::{FILTER_ID, dataset, report};
use h5z_gpu::words::{self, STORED_MAX};
use h5z_gpu::{Bound, Class, DecodeJob, Dtype, EncodeJob, Engine, Params, Request, frame};
use libc::{c_char, c_int, c_void};
use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;

/// What a length is where a frame has none.
const FAILED: i64 = -1;

/// Chunks that the engine is given at a time: enough to fill a device, so few that lists of them are short.
const BATCH_CHUNKS: usize = 128;

/// Runs `run` behind the fence; an error's text is kept for `h5z_gpu_last_error`.
pub(crate) fn fence(run: impl FnOnce() -> Result<i64>) -> i64 {
    fenced(run).unwrap_or_else(|e| {
        report::remember(&e);
        e.kind() as i64
    })
}

/// # Safety
/// `start` has `len` readable items for as long as the answer is used; it may be null when `len` is 0.
pub(crate) unsafe fn slice<'a, T>(start: *const T, len: usize) -> Result<&'a [T]> {
    match (start.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(format!("a null pointer where {len} items are announced").into()),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts(start, len) }),
    }
}

/// # Safety
/// As `slice`, writable and used by nobody else.
pub(crate) unsafe fn slice_mut<'a, T>(start: *mut T, len: usize) -> Result<&'a mut [T]> {
    match (start.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(format!("a null pointer where {len} items are announced").into()),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(start, len) }),
    }
}

/// # Safety
/// `text` is null or NUL-terminated.
pub(crate) unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<Cow<'a, str>> {
    if text.is_null() {
        return Err(format!("no {what}").into());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// One element; `None` for a null pointer.
///
/// # Safety
/// `start` is null, or as for `slice`.
pub(crate) unsafe fn element<'a>(start: *const c_void, size: u8) -> Result<Option<&'a [u8]>> {
    // SAFETY: the caller's promise.
    if start.is_null() { Ok(None) } else { unsafe { slice(start.cast(), size.into()) }.map(Some) }
}

/// Threads as a caller of C gives them: 0 for as many as the process may use.
pub(crate) fn threads(n: c_int) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// NumPy's name of a type, such as `<f4`, `>f8`, `|u1`, `<i8`, `|V16`.
pub(crate) fn dtype(name: &str) -> Result<Dtype> {
    let wrong = || format!("type {name:?}: give NumPy's array.dtype.str, such as <f4 or >f8");
    let mut letters = name.chars();
    let (order, kind) = letters.next().zip(letters.next()).ok_or_else(wrong)?;
    let size: u64 = letters.as_str().parse().map_err(|_| wrong())?;
    let bytes = Dtype::bytes(u8::try_from(size).unwrap_or(0));
    let big_endian = match order {
        '>' => true,
        '<' | '|' => false,
        _ => return Err(wrong().into()),
    };
    Ok(match (kind, size) {
        ('f', 2) => Dtype { big_endian, ..Dtype::F16 },
        ('f', 4) => Dtype { big_endian, ..Dtype::F32 },
        ('f', 8) => Dtype { big_endian, ..Dtype::F64 },
        ('i' | 'u', 1 | 2 | 4 | 8) => Dtype { class: Class::Integer, big_endian, signed: kind == 'i', ..bytes },
        _ => bytes,
    })
}

/// # Safety
/// The pointers are as `include/h5z_gpu.h` says.
unsafe fn params(
    user: *const u32,
    count: usize,
    datatype: *const c_char,
    rank: usize,
    dims: *const u64,
    fill: *const c_void,
) -> Result<(Params, Vec<u32>)> {
    // SAFETY: the caller's promise, for all four.
    let (user, dims, name) = unsafe { (slice(user, count)?, slice(dims, rank)?, string(datatype, "type")?) };
    let mut params = Params::new(words::request(user)?, dtype(&name)?, dims)?;
    // As `set_local` does: without loss it plays no part, and would be another frame's bytes.
    let lossy = params.request.bound != Bound::Lossless && params.dtype.takes_bound();
    // SAFETY: one element of the type.
    let fill = unsafe { element(fill, params.dtype.size)? };
    params.fill = fill.filter(|_| lossy).and_then(|value| dataset::bits_of_number(value, params.dtype.big_endian));
    Ok((params, user.to_vec()))
}

/// Refuses raw bytes that are not the chunk described: they would be kept exactly, whatever bound was asked for.
fn fits(params: &Params, raw_len: usize) -> Result<()> {
    match callbacks::described(params) {
        Some(n) if n != raw_len as u64 => Err(format!("raw_len is {raw_len}; type and dims are {n} bytes").into()),
        _ => Ok(()),
    }
}

/// Refuses the empty buffer that the engine leaves where there is no memory for a frame.
fn kept(frame: &[u8], raw_len: usize) -> Result<()> {
    let needed = raw_len.saturating_add(frame::STORED_HEADER) as u64;
    if frame.is_empty() { Err(h5z_gpu::Error::NoMemory { bytes: needed }.into()) } else { Ok(()) }
}

pub(crate) fn length(n: usize) -> Result<i64> {
    Ok(i64::try_from(n).map_err(|_| "a length above 2^63")?)
}

/// Copies text as C takes it; the length of the whole.
pub(crate) fn give(text: &str, out: &mut [u8]) -> Result<i64> {
    if let Some((end, head)) = out.split_last_mut() {
        let n = text.len().min(head.len());
        head[..n].copy_from_slice(&text.as_bytes()[..n]);
        head[n..].fill(0);
        *end = 0;
    }
    length(text.len())
}

/// # Safety
/// `place` is null, or holds null or what `Box::into_raw` gave.
pub(crate) unsafe fn end<T>(place: *mut *mut T) {
    fence(|| {
        // SAFETY: this function's promise.
        let ended = unsafe { place.as_mut() }.map_or(ptr::null_mut(), |p| std::mem::replace(p, ptr::null_mut()));
        if !ended.is_null() {
            // SAFETY: as above; nobody finds it there again.
            drop(unsafe { Box::from_raw(ended) });
        }
        Ok(0)
    });
}

/// The shortest words of a request: none, one number, or three; four where something is kept beside the bound.
pub(crate) fn short(request: Request) -> Vec<u32> {
    match words::pack(request) {
        _ if request == Request::default() => Vec::new(),
        Some(number) => vec![number],
        None => words::several(request),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_version() -> *const c_char {
    h5z_gpu::plugin::VERSION_FOR_C.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_filter_id() -> c_int {
    FILTER_ID
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_last_error() -> *const c_char {
    report::last()
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_last_errno() -> c_int {
    report::last_errno()
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_device_chunks(decoded: c_int) -> i64 {
    let (on_encoding, on_decoding) = Engine::chunks_on_gpu();
    (if decoded == 0 { on_encoding } else { on_decoding }) as i64
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_release_memory() -> i64 {
    fence(|| {
        h5z_gpu::array::release_memory();
        Ok(Engine::release_memory() as i64)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_device_of(address: *const c_void) -> i64 {
    fence(|| Ok(h5z_gpu::array::device_of(address as u64)?.into()))
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_enter_device(device: c_int) -> i64 {
    fence(|| {
        h5z_gpu::array::enter_device(device)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_leave_device() {
    fence(|| {
        h5z_gpu::array::leave_device();
        Ok(0)
    });
}

/// # Safety
/// `text` is NUL-terminated; `out` takes 20 words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_words(text: *const c_char, out: *mut u32) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (text, out) = unsafe { (string(text, "text")?, slice_mut(out, STORED_MAX)?) };
        let text = text.trim();
        let found = short(match text.parse::<u32>() {
            Ok(number) => words::request(&[number])?,
            Err(_) => text.parse()?,
        });
        out[..found.len()].copy_from_slice(&found);
        length(found.len())
    })
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_stored_words(
    user: *const u32,
    count: usize,
    datatype: *const c_char,
    rank: usize,
    dims: *const u64,
    fill: *const c_void,
    out: *mut u32,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let ((params, user), out) =
            unsafe { (params(user, count, datatype, rank, dims, fill)?, slice_mut(out, STORED_MAX)?) };
        let stored = words::store(&params, &user, u8::try_from(rank).unwrap_or(u8::MAX));
        out[..stored.len()].copy_from_slice(&stored);
        length(stored.len())
    })
}

/// # Safety
/// `user` has `count` words, `out` takes `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_text(user: *const u32, count: usize, out: *mut c_char, size: usize) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (user, out) = unsafe { (slice(user, count)?, slice_mut(out.cast::<u8>(), size)?) };
        give(&words::request(user)?.to_string(), out)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_max_encoded(raw_len: usize) -> usize {
    raw_len.saturating_add(frame::STORED_HEADER)
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_encode(
    user: *const u32,
    count: usize,
    datatype: *const c_char,
    rank: usize,
    dims: *const u64,
    fill: *const c_void,
    raw: *const c_void,
    raw_len: usize,
    out: *mut c_void,
    size: usize,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let ((params, _), raw, out) = unsafe {
            (
                params(user, count, datatype, rank, dims, fill)?,
                slice(raw.cast::<u8>(), raw_len)?,
                slice_mut(out.cast::<u8>(), size)?,
            )
        };
        fits(&params, raw_len)?;
        let frame = Engine::global().encode(&params, raw);
        kept(&frame, raw_len)?;
        let out = out.get_mut(..frame.len()).ok_or_else(|| {
            format!("the frame has {} bytes, the buffer {size}: see h5z_gpu_max_encoded", frame.len())
        })?;
        out.copy_from_slice(&frame);
        length(frame.len())
    })
}

/// # Safety
/// Each array has `n` items, and each of them is as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_encode_batch(
    user: *const u32,
    count: usize,
    datatype: *const c_char,
    rank: usize,
    dims: *const u64,
    fill: *const c_void,
    n: usize,
    raw: *const *const c_void,
    raw_len: usize,
    out: *const *mut c_void,
    size: usize,
    lens: *mut i64,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let ((params, _), raw, out, lens) = unsafe {
            (params(user, count, datatype, rank, dims, fill)?, slice(raw, n)?, slice(out, n)?, slice_mut(lens, n)?)
        };
        fits(&params, raw_len)?;
        let (mut done, mut larger) = (0, 0);
        for ((raw, out), lens) in
            raw.chunks(BATCH_CHUNKS).zip(out.chunks(BATCH_CHUNKS)).zip(lens.chunks_mut(BATCH_CHUNKS))
        {
            let jobs = raw
                .iter()
                // SAFETY: as above.
                .map(|&r| Ok(EncodeJob { params: &params, raw: unsafe { slice(r.cast::<u8>(), raw_len)? } }))
                .collect::<Result<Vec<_>>>()?;
            let mut frames = vec![Vec::new(); jobs.len()];
            Engine::global().encode_batch(&jobs, &mut frames);
            for ((frame, &out), len) in frames.iter().zip(out).zip(lens) {
                // SAFETY: as above.
                let out = unsafe { slice_mut(out.cast::<u8>(), size)? };
                *len = match (kept(frame, raw_len), out.get_mut(..frame.len())) {
                    (Ok(()), Some(out)) => {
                        out.copy_from_slice(frame);
                        done += 1;
                        length(frame.len())?
                    }
                    (Ok(()), None) => {
                        larger += 1;
                        FAILED
                    }
                    (Err(e), _) => {
                        report::remember(&e);
                        FAILED
                    }
                };
            }
        }
        if larger > 0 {
            report::remember(&format!("{larger} frames are larger than the buffers of {size} bytes").into());
        }
        length(done)
    })
}

/// # Safety
/// `frame` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_raw_len(frame: *const c_void, len: usize) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let frame = unsafe { slice(frame.cast::<u8>(), len)? };
        let raw = frame::raw_len(frame)?;
        Ok(i64::try_from(raw).map_err(|_| format!("damaged chunk: raw length {raw}"))?)
    })
}

/// # Safety
/// `frame` has `len` bytes, `out` takes `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_decode(frame: *const c_void, len: usize, out: *mut c_void, size: usize) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (frame, out) = unsafe { (slice(frame.cast::<u8>(), len)?, slice_mut(out.cast::<u8>(), size)?) };
        let raw_len = frame::raw_len(frame)?;
        let out = usize::try_from(raw_len)
            .ok()
            .and_then(|n| out.get_mut(..n))
            .ok_or_else(|| format!("the chunk has {raw_len} bytes, the buffer {size}: see h5z_gpu_raw_len"))?;
        Engine::global().decode_into(frame, out)?;
        length(out.len())
    })
}

/// # Safety
/// Each array has `n` items, and each of them is as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_decode_batch(
    n: usize,
    frames: *const *const c_void,
    lens: *const usize,
    out: *const *mut c_void,
    sizes: *const usize,
    status: *mut c_int,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (frames, lens, out, sizes, status) =
            unsafe { (slice(frames, n)?, slice(lens, n)?, slice(out, n)?, slice(sizes, n)?, slice_mut(status, n)?) };
        let (mut done, mut failures) = (0, Failures::default());
        for first in (0..n).step_by(BATCH_CHUNKS) {
            let mut jobs = Vec::with_capacity(BATCH_CHUNKS);
            for k in first..n.min(first + BATCH_CHUNKS) {
                // SAFETY: as above.
                let (frame, out) =
                    unsafe { (slice(frames[k].cast::<u8>(), lens[k])?, slice_mut(out[k].cast::<u8>(), sizes[k])?) };
                jobs.push(DecodeJob { frame, out });
            }
            for (k, result) in (first..).zip(Engine::global().decode_batch(&mut jobs)) {
                done += usize::from(result.is_ok());
                status[k] = failures.status(k, result);
            }
        }
        length(done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numpy_names_of_types() {
        assert_eq!(dtype("<f4"), Ok(Dtype::F32));
        assert_eq!(dtype(">f8"), Ok(Dtype { big_endian: true, ..Dtype::F64 }));
        assert_eq!(dtype("|V16"), Ok(Dtype::bytes(16)));
        assert_eq!(dtype("<c8"), Ok(Dtype::bytes(8)));
        assert!(dtype("|i1").is_ok_and(|d| d.class == Class::Integer && d.signed));
        for wrong in ["", "f4", "<f", "?4", "<fx", "<f-4"] {
            assert!(dtype(wrong).is_err(), "{wrong}");
        }
    }
}
