// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole arrays for C and for Python's ctypes. What each function does stands in `include/h5z_gpu.h`.

use crate::c_api::{self, dtype, element, end, fence, length, slice, slice_mut, string};
use crate::dataset;
use crate::dataset_io::writing::params;
use crate::error::Result;
use crate::report::Failures;
use h5z_gpu::Dtype;
use h5z_gpu::array::{self, Array, Encoding, Frames, OnDevice, decode};
use libc::{c_char, c_int, c_void};

/// `h5z_gpu_array` of the header.
#[repr(C)]
pub struct CArray {
    data: *mut c_void,
    device: i32,
    flags: u32,
    datatype: *const c_char,
    pub(crate) rank: usize,
    shape: *const u64,
    strides: *const i64,
    stream: *mut c_void,
}

/// The array is not to be written.
const READ_ONLY: u32 = 1;
/// Every GPU takes part in work on the array, which is in host memory.
const EVERY_GPU: u32 = 2;
/// CUDA's handle of the legacy default stream.
const LEGACY: usize = 1;

impl CArray {
    /// The array, and the type of its elements. `writes`: it is to be written.
    ///
    /// # Safety
    /// As the header says of an array.
    pub(crate) unsafe fn open(&self, writes: bool) -> Result<(Array, Dtype)> {
        if writes && self.flags & READ_ONLY != 0 {
            return Err("the array is read-only".into());
        }
        // SAFETY: this function's promise.
        let (name, shape) = unsafe { (string(self.datatype, "type")?, slice(self.shape, self.rank)?) };
        let strides = match self.strides.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(unsafe { slice(self.strides, self.rank)? }),
        };
        let dtype = dtype(&name)?;
        if dtype.size == 0 {
            return Err(format!("type {name:?}: elements of 1 to 255 bytes are taken").into());
        }
        // SAFETY: as above.
        let array = unsafe { Array::new(self.data.cast(), dtype.size.into(), shape, strides)? };
        let array = match self.device {
            -1 if self.flags & EVERY_GPU != 0 => array.for_every_gpu(),
            -1 => array,
            ordinal @ 0.. => {
                // Those of DLPack: 0 would be ambiguous there, and is the legacy default stream here.
                let stream = match self.stream as isize {
                    -1 => None,
                    0 => Some(LEGACY),
                    handle => Some(handle as usize),
                };
                // SAFETY: as above, of a device's memory.
                unsafe { array.on(OnDevice { ordinal, stream }) }
            }
            other => return Err(format!("device {other}: -1 is host memory, 0 and more are CUDA's numbers").into()),
        };
        Ok((array, dtype))
    }
}

/// An array and the type of its elements; of `n` chunks of it the extents and the first elements.
///
/// # Safety
/// As the header says of them.
unsafe fn chunked<'a>(
    of: *const CArray,
    writes: bool,
    chunk: *const u64,
    n: usize,
    origins: *const i64,
) -> Result<(Array, Dtype, &'a [u64], &'a [i64])> {
    // SAFETY: this function's promise.
    let of = unsafe { of.as_ref() }.ok_or("no array")?;
    // SAFETY: as above.
    let (array, dtype) = unsafe { of.open(writes)? };
    let numbers = n.checked_mul(of.rank).ok_or("too many chunks")?;
    // SAFETY: as above.
    unsafe { Ok((array, dtype, slice(chunk, of.rank)?, slice(origins, numbers)?)) }
}

/// Frames of an array on their way.
pub struct Work {
    encoding: Encoding,
    /// What the last call of `h5z_gpu_next` lent.
    frames: Vec<*const c_void>,
    lens: Vec<usize>,
}

impl Work {
    /// The next frames; how many.
    fn next(&mut self) -> Result<usize> {
        let frames = self.encoding.next()?;
        self.frames.clear();
        self.frames.extend(frames.iter().map(|f| f.as_ptr().cast::<c_void>()));
        self.lens.clear();
        self.lens.extend(frames.iter().map(|f| f.len()));
        Ok(self.frames.len())
    }
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_encode_array(
    user: *const u32,
    count: usize,
    from: *const CArray,
    chunk: *const u64,
    fill: *const c_void,
    n: usize,
    origins: *const i64,
    threads: c_int,
    work: *mut *mut Work,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (array, dtype, chunk, origins) = unsafe { chunked(from, false, chunk, n, origins)? };
        // SAFETY: as above; the fill value is one element of the type.
        let (user, fill) = unsafe { (slice(user, count)?, element(fill, dtype.size)?) };
        let params = params(user, dtype, chunk, fill)?;
        let encoding = Encoding::new(array, params, chunk, origins, fill, c_api::threads(threads))?;
        let made = Work { encoding, frames: Vec::new(), lens: Vec::new() };
        // SAFETY: as above.
        *unsafe { work.as_mut() }.ok_or("no place for the work")? = Box::into_raw(Box::new(made));
        length(n)
    })
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_next(
    work: *mut Work,
    frames: *mut *const *const c_void,
    lens: *mut *const usize,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let work = unsafe { work.as_mut() }.ok_or("no work")?;
        let n = work.next()?;
        // SAFETY: as above.
        let (frames, lens) = unsafe { (frames.as_mut().ok_or("no frames")?, lens.as_mut().ok_or("no lengths")?) };
        (*frames, *lens) = (work.frames.as_ptr(), work.lens.as_ptr());
        length(n)
    })
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_range(
    from: *const CArray,
    chunk: *const u64,
    fill: *const c_void,
    n: usize,
    origins: *const i64,
    threads: c_int,
    found: *mut f64,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (array, dtype, chunk, origins) = unsafe { chunked(from, false, chunk, n, origins)? };
        // SAFETY: as above; the fill value is one element of the type.
        let (found, fill) = unsafe { (slice_mut(found, 2)?, element(fill, dtype.size)?) };
        let fill = fill.and_then(|f| dataset::bits_of_number(f, dtype.big_endian));
        let range = array::range(&array, dtype, chunk, origins, fill, c_api::threads(threads))?;
        if let Some((low, high)) = range {
            found.copy_from_slice(&[low, high]);
        }
        Ok(range.is_some().into())
    })
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_copy(from: *const CArray, to: *const CArray) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (from, to) = unsafe { (from.as_ref().ok_or("no array")?, to.as_ref().ok_or("no array")?) };
        // SAFETY: as above.
        let ((mut to, _), (from, _)) = unsafe { (to.open(true)?, from.open(false)?) };
        array::copy(&from, &mut to)?;
        Ok(0)
    })
}

/// # Safety
/// `work` is null, or holds null or what `h5z_gpu_encode_array` put there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_end(work: *mut *mut Work) {
    // SAFETY: this function's promise.
    unsafe { end(work) }
}

/// # Safety
/// As `h5z_gpu_decode_memory`; `frames` says where they are.
unsafe fn decode_all(
    frames: Frames<'_>,
    n: usize,
    to: *const CArray,
    chunk: *const u64,
    origins: *const i64,
    threads: c_int,
    status: *mut c_int,
) -> Result<i64> {
    // SAFETY: this function's promise.
    let (mut array, _, chunk, origins) = unsafe { chunked(to, true, chunk, n, origins)? };
    // SAFETY: as above.
    let status = unsafe { slice_mut(status, n)? };
    let results = decode(frames, &mut array, chunk, origins, c_api::threads(threads))?;
    let (mut done, mut failures) = (0, Failures::default());
    for (k, (status, result)) in status.iter_mut().zip(results).enumerate() {
        done += i64::from(result.is_ok());
        *status = failures.status(k, result);
    }
    Ok(done)
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_decode_file(
    file: c_int,
    n: usize,
    at: *const u64,
    lens: *const u64,
    to: *const CArray,
    chunk: *const u64,
    origins: *const i64,
    threads: c_int,
    status: *mut c_int,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (at, lens) = unsafe { (slice(at, n)?, slice(lens, n)?) };
        let places: Vec<(u64, u64)> = at.iter().copied().zip(lens.iter().copied()).collect();
        // SAFETY: as above.
        unsafe { decode_all(Frames::File(file, &places), n, to, chunk, origins, threads, status) }
    })
}

/// # Safety
/// The pointers are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_decode_memory(
    n: usize,
    frames: *const *const c_void,
    lens: *const usize,
    to: *const CArray,
    chunk: *const u64,
    origins: *const i64,
    threads: c_int,
    status: *mut c_int,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (frames, lens) = unsafe { (slice(frames, n)?, slice(lens, n)?) };
        let frame = |(&frame, &len): (&*const c_void, &usize)| {
            // SAFETY: as above.
            unsafe { slice(frame.cast::<u8>(), len) }
        };
        let frames = frames.iter().zip(lens).map(frame).collect::<Result<Vec<_>>>()?;
        // SAFETY: as above.
        unsafe { decode_all(Frames::Memory(&frames), n, to, chunk, origins, threads, status) }
    })
}
