// SPDX-License-Identifier: MIT OR Apache-2.0
//! `can_apply`, `set_local` and `filter`: pointers come in, slices go on, panics stop here.
//!
//! Each has a return convention of its own, hence a type of its own. `set_local` and `filter` are entered through
//! entries that hand on the return address as one more argument: it tells who called ([`crate::host`]).

use crate::buffer::Pipeline;
use crate::entry::{entry3, entry6};
use crate::error::{Error, Result, fenced};
use crate::hdf5::{CanApply, FilterLen, H5Z_FLAG_OPTIONAL, H5Z_FLAG_REVERSE, Hid, SetLocal};
use crate::host::{self, Host};
use crate::{dataset, report};
use h5z_gpu::Error::NoMemory;
use h5z_gpu::frame::{self, Frame, Header};
use h5z_gpu::plugin::log;
use h5z_gpu::words::{self, Stored};
use h5z_gpu::{Bound, DecodeJob, Dtype, EncodeJob, Engine, Params};
use libc::{c_uint, c_void};
use std::sync::{Mutex, MutexGuard};

const OK: SetLocal = SetLocal(1);
const ERROR: SetLocal = SetLocal(-1);
const FAILED: FilterLen = FilterLen(0);

/// What a call of `filter` is told besides its buffer.
#[derive(Clone, Copy)]
struct Call<'a> {
    flags: c_uint,
    words: &'a [u32],
    host: &'static Host,
}

impl Call<'_> {
    fn optional(self) -> bool {
        self.flags & H5Z_FLAG_OPTIONAL != 0
    }
}

/// Yes to everything: what cannot be coded as numbers is stored as bytes, and most hosts ignore a no.
pub(crate) unsafe extern "C" fn can_apply(_dcpl: Hid, _datatype: Hid, _space: Hid) -> CanApply {
    CanApply(1)
}

entry3! {
    /// `set_local` as HDF5 knows it.
    set_local_entry => set_local(dcpl: Hid, datatype: Hid, space: Hid) -> SetLocal
}

entry6! {
    /// `filter` as HDF5 knows it.
    filter_entry => filter(
        flags: c_uint,
        count: usize,
        words: *const c_uint,
        used: usize,
        size: *mut usize,
        buf: *mut *mut c_void
    ) -> FilterLen
}

/// # Safety
/// `ret` is the return address of the call, or null.
unsafe extern "C" fn set_local(dcpl: Hid, datatype: Hid, _space: Hid, ret: *const c_void) -> SetLocal {
    // Creating a group asks too, without a type.
    if dcpl < 0 || datatype < 0 {
        return OK;
    }
    match fenced(|| dataset::set_local(host::of_caller(ret), dcpl, datatype)) {
        Ok(()) => OK,
        Err(e) => {
            report::failed(host::of_caller(ret), c"set_local", &e, true);
            ERROR
        }
    }
}

/// # Safety
/// As HDF5 calls a filter: `words` has `count` words, `*buf` holds `used` bytes of the caller's heap.
unsafe extern "C" fn filter(
    flags: c_uint,
    count: usize,
    words: *const c_uint,
    used: usize,
    size: *mut usize,
    buf: *mut *mut c_void,
    ret: *const c_void,
) -> FilterLen {
    let done = fenced(|| {
        let host = host::of_caller(ret);
        // SAFETY: by this function's promise.
        let (words, pipeline) = unsafe { (taken(words, count), Pipeline::new(buf, size, used, host.memory)) };
        let pipeline = pipeline.ok_or("called without a buffer")?;
        let call = Call { flags, words, host };
        if flags & H5Z_FLAG_REVERSE == 0 { encode(call, pipeline) } else { decode(call, pipeline) }
    });
    done.map_or_else(
        |e| {
            let host = host::of_caller(ret);
            report::failed(host, c"filter", &e, !host.calls_on_own_threads());
            FAILED
        },
        FilterLen,
    )
}

/// The filter's words, which HDF5 counts in 16 bits.
///
/// # Safety
/// `words` has `count` words, or is null.
pub(crate) unsafe fn taken<'a>(words: *const c_uint, count: usize) -> &'a [u32] {
    match words.is_null() || count > 1 << 16 {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(words, count) },
    }
}

/// Buffers for frames, lent to one call each and kept: most chunks of a file are alike.
static SCRATCH: [Mutex<Vec<u8>>; 4] = [const { Mutex::new(Vec::new()) }; 4];
/// Buffers larger than this are given back.
const SCRATCH_LIMIT: usize = 64 << 20;

/// A free buffer. Nobody waits for one: a lock that a fork left behind only costs its buffer.
fn scratch() -> Option<MutexGuard<'static, Vec<u8>>> {
    SCRATCH.iter().find_map(|s| s.try_lock().ok())
}

fn encode(call: Call<'_>, mut pipeline: Pipeline<'_>) -> Result<usize> {
    let known = known(call.words);
    if known.is_none() {
        warn_of_short(call);
    }
    let mut params = known.map_or(Params::default(), |s| s.params);
    let raw_len = pipeline.input().len();
    if let Some(chunk) = described(&params).filter(|&n| n != raw_len as u64) {
        let what = format!(
            "a chunk has {raw_len} bytes, but its words describe one of {chunk}. Were they copied from another \
             dataset? It is"
        );
        if call.optional() && known.is_some() {
            log::warn(&format!("{what} stored as it is, unfiltered"));
            return Ok(0);
        }
        // Where the filter is mandatory, an answer of 0 loses the chunk when the file is closed, and HDF5 2.0 crashes
        // there. So the chunk is written as bytes of unknown shape: `capacity_of` lets them pass where the filter is
        // mandatory.
        log::warn(&format!("{what} stored losslessly"));
        params = Params::default();
    }
    let mut lent = scratch();
    let mut own = Vec::new();
    let out = lent.as_deref_mut().unwrap_or(&mut own);
    let job = EncodeJob { params: &params, raw: pipeline.input() };
    Engine::global().encode_batch(&[job], std::slice::from_mut(out));
    // The engine leaves the buffer empty where it had no memory even for the chunk as it is.
    let done = if out.is_empty() { None } else { pipeline.put(out) };
    if out.capacity() > SCRATCH_LIMIT || done.is_none() {
        *out = Vec::new();
    }
    done.map_or_else(|| store(&params, pipeline), Ok)
}

/// What the words say of the chunk; `None` where they say nothing that may be relied on. Damaged ones are named.
fn known(words: &[u32]) -> Option<Stored> {
    // Up to three are what the user typed: `set_local` was not called, or HDF5 could not be asked.
    const TYPED: usize = 3;
    if words.len() <= TYPED {
        return None;
    }
    let told = |e: &h5z_gpu::Error| {
        let text = e.to_string();
        let why = report::without_name(&text);
        log::warn(&format!(
            "the words of a dataset are not used: chunks say themselves how they are read, and are written \
             losslessly. {why}"
        ));
    };
    words::stored(words).inspect_err(told).ok()
}

/// Says why a bound that was asked for in short words is not used.
fn warn_of_short(call: Call<'_>) {
    if call.words.is_empty() || !words::request(call.words).is_ok_and(|request| request.bound != Bound::Lossless) {
        return;
    }
    match &call.host.properties {
        Err(why) => log::warn(&format!(
            "chunks are stored losslessly, for HDF5 cannot be asked what they hold: {why}. Link a program that \
             carries HDF5 with -rdynamic, or give it the whole stored list of words"
        )),
        Ok(_) => log::warn(
            "chunks are stored losslessly: HDF5 did not tell what they hold. Strings of variable length are like that; \
             their text lies outside of chunks, where no filter reaches it: leave the filter off for strings",
        ),
    }
}

/// Stores the chunk: all that is left to do without memory.
fn store(params: &Params, mut pipeline: Pipeline<'_>) -> Result<usize> {
    let len = pipeline.input().len() + frame::STORED_HEADER;
    pipeline.replace(len, false, |raw, out| {
        Engine::store(params, raw, out);
        Ok(len)
    })
}

fn decode(call: Call<'_>, mut pipeline: Pipeline<'_>) -> Result<usize> {
    let header = frame::header(pipeline.input())?;
    let raw_len = header.raw_len;
    let capacity = known(call.words).map_or(Ok(raw_len), |s| capacity_of(&header, &s, call.optional()))?;
    let fits = usize::try_from(capacity).ok().filter(|&n| n <= isize::MAX as usize);
    // Words may describe any length: what the frame does not fill is requested as zeros, and never touched.
    let done = fits.ok_or(Error::from(NoMemory { bytes: capacity })).and_then(|len| {
        pipeline.replace(len, capacity > raw_len, |frame, out| {
            let mut jobs = [DecodeJob { frame, out: &mut out[..raw_len as usize] }];
            Engine::global().decode_batch(&mut jobs).remove(0)?;
            if raw_len == 0 { Err("damaged chunk: it holds nothing".into()) } else { Ok(raw_len as usize) }
        })
    });
    done.map_err(|e| match e {
        // A damaged length may claim any amount of memory; the checksum tells.
        Error::Library(NoMemory { .. }) => Frame::open(pipeline.input(), 1).err().map_or(e, Error::from),
        e => e,
    })
}

/// Bytes of a chunk as its words describe it, where nothing stands between the numbers and us.
pub(crate) fn described(params: &Params) -> Option<u64> {
    let n = params.extents.count()?.checked_mul(params.dtype.size.into())?;
    (params.lossy_allowed && n > 0).then_some(n)
}

/// How many bytes the buffer of a decoded chunk needs, by what the words say of the chunk: HDF5 copies as many as the
/// chunk has, whatever we return, and the memory is requested first.
///
/// A frame of another length is refused, but for chunks that really reached `encode` with the words of another one. It
/// writes them where the filter is mandatory, as bytes of unknown shape.
/// They come back with their own length, which HDF5 2.2 looks at, in a buffer that is never shorter than the words say:
/// in a crafted file, zeros are all that HDF5 finds beyond their end.
fn capacity_of(frame: &Header, words: &Stored, optional: bool) -> Result<u64> {
    let got = frame.raw_len;
    let Some(chunk) = described(&words.params).filter(|&n| n != got) else { return Ok(got) };
    if optional || frame.dtype != Dtype::bytes(0) {
        return Err(h5z_gpu::Error::Length { section: "the chunk after decoding", needed: chunk, got }.into());
    }
    if got < chunk {
        log::warn(&format!(
            "a chunk holds {got} bytes, but its words describe one of {chunk}. If they were copied from another \
             dataset, \
             all is well; else the rest of the chunk reads as zeros"
        ));
    }
    Ok(got.max(chunk))
}
