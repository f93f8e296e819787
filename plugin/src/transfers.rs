// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes of datasets, and lists of chunks, for C and for Python's ctypes. What each function does stands in
//! `include/h5z_gpu.h`.

use crate::arrays::CArray;
use crate::c_api::{self, end, fence, length, slice};
use crate::dataset_io::index::{self, Fetch, List};
use crate::dataset_io::native::Native;
use crate::dataset_io::{Reading, Transfer, Writing};
use crate::error::{Error, Result};
use crate::hdf5::Hid;
use crate::host;
use h5z_gpu::Dtype;
use h5z_gpu::array::Array;
use h5z_gpu::plugin::file::read_at;
use libc::{c_char, c_int, c_void};
use std::ffi::CString;

/// `h5z_gpu_transfer` of the header.
pub struct CTransfer {
    dataset: Native,
    transfer: Transfer,
}

/// # Safety
/// As the header says: `hdf5` is a function of the library that the others belong to, whose lock the caller holds.
unsafe fn native(hdf5: *const c_void, dataset: Hid, datatype: Hid) -> Result<Native> {
    if hdf5.is_null() {
        return Err("no function of HDF5".into());
    }
    // SAFETY: this function's promise.
    unsafe { Native::new(host::serving(hdf5), dataset, datatype) }
}

/// Begins to read into an array, or by `writes` from it.
///
/// # Safety
/// As the header says of `h5z_gpu_read_dataset`.
unsafe fn begin(
    dataset: Native,
    array: *const CArray,
    writes: bool,
    start: *const u64,
    place: *mut *mut CTransfer,
    begin: impl FnOnce(&Native, Array, Dtype, &[u64]) -> Result<Transfer>,
) -> Result<i64> {
    // SAFETY: this function's promise.
    let array = unsafe { array.as_ref() }.ok_or("no array")?;
    // SAFETY: as above.
    let (start, (values, dtype)) = unsafe { (slice(start, array.rank)?, array.open(writes)?) };
    let transfer = begin(&dataset, values, dtype, start)?;
    let bytes = transfer.bytes();
    // SAFETY: as above.
    let place = unsafe { place.as_mut() }.ok_or("no place for the transfer")?;
    *place = Box::into_raw(Box::new(CTransfer { dataset, transfer }));
    length(bytes as usize)
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_read_dataset(
    hdf5: *const c_void,
    dataset: Hid,
    datatype: Hid,
    start: *const u64,
    to: *const CArray,
    fill_damaged: c_int,
    threads: c_int,
    transfer: *mut *mut CTransfer,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let dataset = unsafe { native(hdf5, dataset, datatype)? };
        let read = |dataset: &Native, array, _, start: &[u64]| {
            let reading = Reading::begin(dataset, array, start, c_api::threads(threads), fill_damaged != 0)?;
            Ok(Transfer::Read(Box::new(reading)))
        };
        // SAFETY: as above.
        unsafe { begin(dataset, to, true, start, transfer, read) }
    })
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_write_dataset(
    hdf5: *const c_void,
    dataset: Hid,
    datatype: Hid,
    start: *const u64,
    from: *const CArray,
    threads: c_int,
    transfer: *mut *mut CTransfer,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let dataset = unsafe { native(hdf5, dataset, datatype)? };
        let write = |dataset: &Native, array, dtype, start: &[u64]| {
            let writing = Writing::begin(dataset, array, dtype, start, c_api::threads(threads))?;
            Ok(Transfer::Write(Box::new(writing)))
        };
        // SAFETY: as above.
        unsafe { begin(dataset, from, false, start, transfer, write) }
    })
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_step(transfer: *mut CTransfer) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let CTransfer { dataset, transfer } = unsafe { transfer.as_mut() }.ok_or("no transfer")?;
        length(transfer.step(dataset)? as usize)
    })
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_special_chunks(
    transfer: *const CTransfer,
    rank: usize,
    origins: *mut *const u64,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (transfer, origins) = unsafe { (transfer.as_ref().ok_or("no transfer")?, origins.as_mut()) };
        let special = transfer.transfer.special();
        *origins.ok_or("no place for the origins")? = special.as_ptr();
        length(special.len() / rank.max(1))
    })
}

/// # Safety
/// `transfer` is null, or holds null or what a function put there that begins one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_end_transfer(transfer: *mut *mut CTransfer) {
    // SAFETY: this function's promise.
    unsafe { end(transfer) }
}

// --- lists of chunks -------------------------------------------------------------------------------------------------

/// `h5z_gpu_chunks` of the header.
#[repr(C)]
pub struct CChunks {
    count: usize,
    origins: *const u64,
    at: *const u64,
    lens: *const u64,
    masks: *const u32,
    wrong: *const c_char,
    twice_count: usize,
    twice: *const u64,
    /// What the pointers lead to.
    own: Owned,
}

struct Owned {
    list: List,
    at: Vec<u64>,
    lens: Vec<u64>,
    masks: Vec<u32>,
    wrong: CString,
}

impl CChunks {
    fn new(list: List) -> CChunks {
        let (at, lens) = list.chunks.iter().map(|c| (c.at, c.len)).unzip();
        let masks = list.chunks.iter().map(|c| c.mask).collect();
        let wrong = CString::new(list.wrong.as_deref().unwrap_or_default()).unwrap_or_default();
        let own = Owned { list, at, lens, masks, wrong };
        // What a vector or a text holds stays where it is when it moves.
        CChunks {
            count: own.at.len(),
            origins: own.list.origins.as_ptr(),
            at: own.at.as_ptr(),
            lens: own.lens.as_ptr(),
            masks: own.masks.as_ptr(),
            wrong: own.wrong.as_ptr(),
            twice_count: own.list.twice.len() / own.list.rank.max(1),
            twice: own.list.twice.as_ptr(),
            own,
        }
    }
}

/// `h5z_gpu_fetch` of the header.
type FetchFunction = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize) -> c_int;

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_list_chunks(
    hdf5: *const c_void,
    dataset: Hid,
    file: c_int,
    fetch: Option<FetchFunction>,
    data: *mut c_void,
    chunks: *mut *mut CChunks,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let dataset = unsafe { native(hdf5, dataset, 0)? };
        let from_file = |at, out: &mut [u8]| read_at(file, out, at).is_ok();
        let by_caller = |at, out: &mut [u8]| {
            // SAFETY: as above; `out` is to be filled.
            fetch.is_some_and(|f| unsafe { f(data, at, out.as_mut_ptr().cast(), out.len()) } != 0)
        };
        let fetch: &Fetch<'_> = if fetch.is_some() { &by_caller } else { &from_file };
        let list = index::list(&dataset, fetch)?;
        let count = list.chunks.len();
        // SAFETY: as above.
        *unsafe { chunks.as_mut() }.ok_or("no place for the list")? = Box::into_raw(Box::new(CChunks::new(list)));
        length(count)
    })
}

/// # Safety
/// `chunks` is null, or holds null or what `h5z_gpu_list_chunks` put there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_end_chunks(chunks: *mut *mut CChunks) {
    // SAFETY: this function's promise.
    unsafe { end(chunks) }
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_find_chunks(
    hdf5: *const c_void,
    dataset: Hid,
    rank: usize,
    n: usize,
    origins: *const u64,
    lens: *const u64,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let dataset = unsafe { native(hdf5, dataset, 0)? };
        // SAFETY: as above.
        let (origins, lens) =
            unsafe { (slice(origins, n.checked_mul(rank).ok_or("too many chunks")?)?, slice(lens, n)?) };
        let said = origins.chunks_exact(rank.max(1)).zip(lens.iter().copied());
        index::distrust(&dataset, said, usize::MAX).map_or(Ok(0), |text| Err(Error::damaged(text)))
    })
}

/// # Safety
/// The arguments are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_raw_chunk(file: c_int, at: u64, stored: u64, raw_len: u64) -> i64 {
    fence(|| {
        let mut begins = [0; index::MAGIC.len()];
        // Where the file ends there is no frame.
        let _ = read_at(file, &mut begins, at);
        index::why_not_raw(stored, raw_len, &begins).map_or(Ok(0), |text| Err(Error::damaged(text)))
    })
}
