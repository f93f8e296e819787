// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which way a call goes.
//!
//! ```text
//! HDF5's way     few values, no dataset in chunks, a filter that is not known (to be written: any but ours), a
//!                transfer list that says something, selections that are no boxes, values of another type than the
//!                dataset's, parts of chunks that all fit the dataset's chunk cache (so that loops over rows decode
//!                each chunk once), a write of fewer than two whole chunks, a library older than 1.10.3, one that
//!                another thread has locked, another connector; what the plugin says no to: another driver than sec2, a
//!                page buffer, single writer and multiple readers, edges without filters
//! short way      all else
//! ```
//!
//! The order of the questions is that of their price: a read of one value from a contiguous dataset takes HDF5 0.6 µs.

use crate::explain;
use crate::hdf5::{
    Auto, H5D_CHUNKED, H5E_DEFAULT, H5I_DATASET, H5I_DATATYPE, H5P_DEFAULT, H5S_ALL, H5S_MAX_RANK, H5S_PLIST,
    H5T_FLOAT, H5T_INTEGER, H5T_ORDER_BE, H5T_SGN_NONE, HADDR_UNDEF, Hid, Lock, Questions,
};
use crate::host::Host;
use crate::plugin::{self, Array, HOST, READ_ONLY};
use crate::space::{self, Placed};
use libc::{c_int, c_uint, c_void};
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::ptr;

/// Calls of fewer values go straight on, and so do those of fewer in one row.
const FEW: i64 = 256;
const LONG: i64 = 1 << 14;
/// Calls of at least this many bytes in whole chunks take the short way even if HDF5's chunk cache could hold the
/// chunks (netCDF's holds 64 MiB).
const MUCH: u64 = 4 << 20;
/// Our filter's number.
const FILTER: c_int = 443;
const NO_CHUNKS: &str = "it is not stored in chunks";

/// The arguments of a call but for its values.
pub(crate) struct Call {
    pub dataset: Hid,
    pub memory: Hid,
    pub here: Hid,
    pub there: Hid,
    pub list: Hid,
}

/// Why a call goes HDF5's way.
pub(crate) type Why = Cow<'static, str>;

/// How a call ended.
pub(crate) enum Outcome {
    /// The short way; the number of bytes moved.
    Done(u64),
    /// It is HDF5's to do.
    Native(Why),
    /// The system has failed in the middle of a write: what HDF5 is to say.
    Failed(String),
}

impl Outcome {
    /// The bytes that took the short way, or why they did not.
    fn told(&self) -> Result<u64, &str> {
        match self {
            Outcome::Done(bytes) => Ok(*bytes),
            Outcome::Native(why) => Err(why),
            Outcome::Failed(why) => Err(why),
        }
    }
}

/// Reads by the short way, if the call may take it. Else nothing has happened that counts, and HDF5 is to do it.
///
/// # Safety
/// As HDF5 says of `H5Dread`, of a dataset of this host.
pub(crate) unsafe fn read(host: &'static Host, call: &Call, values: *mut c_void) -> Outcome {
    // SAFETY: the caller's promise.
    let outcome = unsafe { short_way(host, call, values, 0) };
    explain::note(host, call.dataset, "read", outcome.told());
    outcome
}

/// Writes by the short way, if the call may take it.
///
/// # Safety
/// As HDF5 says of `H5Dwrite`, of a dataset of this host.
pub(crate) unsafe fn write(host: &'static Host, call: &Call, values: *const c_void) -> Outcome {
    // SAFETY: the caller's promise; of an array that is read only nothing is written.
    let outcome = unsafe { short_way(host, call, values.cast_mut(), READ_ONLY) };
    explain::note(host, call.dataset, "write", outcome.told());
    outcome
}

/// Says why a write failed on HDF5's error stack. Answers what such a call answers.
pub(crate) fn fail(host: &Host, why: &str) -> c_int {
    if let (Some(errors), Ok(why)) = (&host.errors, CString::new(why)) {
        // SAFETY: texts that end in NUL, and ids of the library's own.
        unsafe {
            let (class, major, minor) = (*errors.class, *errors.major, *errors.minor);
            let (file, function, text) = (c"preload/src/door.rs", c"H5Dwrite", c"%s");
            (errors.push)(
                H5E_DEFAULT,
                file.as_ptr(),
                function.as_ptr(),
                line!(),
                class,
                major,
                minor,
                text.as_ptr(),
                why.as_ptr(),
            );
        }
    }
    -1
}

/// The short way, if the call may take it.
///
/// # Safety
/// As of [`read`] and, with the flag `READ_ONLY`, of [`write`].
unsafe fn short_way(host: &'static Host, call: &Call, values: *mut c_void, flags: u32) -> Outcome {
    let Some(q) = &host.questions else { return Outcome::Native("HDF5 is older than 1.10".into()) };
    // SAFETY: the caller's promise.
    let judged = unsafe { judge(q, call, flags) };
    match judged {
        // SAFETY: as above.
        Ok(_) if unsafe { !is_native(host, call.dataset) } => Outcome::Native("another connector's dataset".into()),
        // SAFETY: as above.
        Ok(judged) => unsafe { transfer(host, q, call, &judged, values, flags) },
        Err(why) => Outcome::Native(why),
    }
}

/// A call that may take the short way.
struct Judged {
    placed: Placed,
    datatype: CString,
    size: usize,
}

/// Whether a dataset is HDF5's own, no other connector's, which may not have done yet what it was asked for.
///
/// # Safety
/// `dataset` is an open dataset.
unsafe fn is_native(host: &Host, dataset: Hid) -> bool {
    const NATIVE: &CStr = c"native";
    let Some(connectors) = &host.connectors else { return true };
    let mut name = [0; 8];
    // SAFETY: as above; the text is as long as it is said to be, and ends in NUL.
    let len = unsafe { (connectors.name)(dataset, name.as_mut_ptr(), name.len()) };
    len == NATIVE.count_bytes() as isize && name.iter().zip(NATIVE.to_bytes()).all(|(&a, &b)| a as u8 == b)
}

/// What the selections alone say of a call: the cheapest question, which needs no dataset.
///
/// # Safety
/// Two identifiers, which HDF5 checks.
unsafe fn glance(q: &Questions, here: Hid, there: Hid) -> Result<(), Why> {
    let is_space = |space: Hid| space == H5S_ALL || space > H5S_PLIST;
    if !is_space(here) || !is_space(there) {
        return Err("a space of another kind".into());
    }
    let space = if there == H5S_ALL { here } else { there };
    if space != H5S_ALL {
        // SAFETY: the caller's promise.
        let count = unsafe { (q.count)(space) };
        // SAFETY: as above.
        if count < FEW || count < LONG && unsafe { space::is_row(q, space, count as u64) } {
            return Err("few values".into());
        }
    }
    Ok(())
}

/// # Safety
/// As of [`short_way`].
unsafe fn judge(q: &Questions, call: &Call, flags: u32) -> Result<Judged, Why> {
    let &Call { dataset, memory, here, there, list } = call;
    // SAFETY: ids that HDF5 checks.
    unsafe { glance(q, here, there)? };
    // SAFETY: as above.
    if unsafe { (q.kind)(dataset) != H5I_DATASET || (q.kind)(memory) != H5I_DATATYPE } {
        return Err("no dataset, or no type".into());
    }
    // Only a dataset in one piece has an offset, and to ask for its creation list takes 2 µs.
    // SAFETY: as above, ids of the right kind from here on.
    if unsafe { (q.offset)(dataset) } != HADDR_UNDEF {
        return Err(NO_CHUNKS.into());
    }
    // SAFETY: as above.
    let chunk = unsafe { chunk_of(q, dataset, flags)? };
    // SAFETY: as above.
    let (datatype, size) = unsafe { type_of(q, memory)? };
    // SAFETY: as above.
    let placed = unsafe { space::placed(q, dataset, here, there) };
    let placed = placed.ok_or("its selections are no boxes of one kind, or of no values")?;
    if placed.there.dims.len() != chunk.len() {
        return Err("a space of another rank".into());
    }
    let (touched, whole) = placed.there.chunks(&chunk);
    if flags & READ_ONLY != 0 && whole < 2 {
        return Err("fewer than two whole chunks".into());
    }
    let raw_len = chunk.iter().fold(size as u64, |a, &n| a.saturating_mul(n));
    let bytes = raw_len.saturating_mul(touched);
    // SAFETY: as above.
    if (whole < touched || bytes < MUCH) && bytes <= unsafe { cache_of(q, dataset) } {
        return Err("its chunks fit the dataset's chunk cache".into());
    }
    // SAFETY: as above.
    if list != H5P_DEFAULT && unsafe { !says_nothing(q, list) } {
        return Err("its transfer list is not the default one".into());
    }
    Ok(Judged { placed, datatype, size })
}

/// What HDF5 itself writes into a transfer list, to tell what it did.
const TOLD: [&CStr; 6] = [
    c"actual_selection_io_mode",
    c"no_selection_io_cause",
    c"actual_io_mode",
    c"actual_chunk_opt_mode",
    c"local_no_collective_cause",
    c"global_no_collective_cause",
];

/// Whether a transfer list asks for nothing.
///
/// # Safety
/// `list` is an identifier.
unsafe fn says_nothing(q: &Questions, list: Hid) -> bool {
    // SAFETY: as above; the copies are made here and closed.
    unsafe {
        if *q.default_list <= 0 || (q.equal_lists)(list, *q.default_list) > 0 {
            return *q.default_list > 0;
        }
        // Two lists are equal where the same properties were ever set in them: these are taken out of both.
        let copies = [list, *q.default_list].map(|list| (q.copy_list)(list));
        let known = copies.iter().all(|&copy| copy >= 0);
        for (&copy, name) in copies.iter().filter(|_| known).flat_map(|copy| TOLD.iter().map(move |name| (copy, name)))
        {
            if (q.has_property)(copy, name.as_ptr()) > 0 {
                (q.remove_property)(copy, name.as_ptr());
            }
        }
        let equal = known && (q.equal_lists)(copies[0], copies[1]) > 0;
        for copy in copies.into_iter().filter(|&copy| copy >= 0) {
            (q.close)(copy);
        }
        equal
    }
}

/// Whether chunks of this filter are read past the pipeline: ours, shuffle, deflate, Fletcher's checksum, Zstandard.
/// Ours has to be alone, which the plugin sees to.
fn is_read(filter: c_int) -> bool {
    [FILTER, 1, 2, 3, 32015].contains(&filter)
}

/// Extents of the chunks of a dataset whose filters are known; to be written, of ours alone or none.
///
/// # Safety
/// `dataset` is an open dataset.
unsafe fn chunk_of(q: &Questions, dataset: Hid, flags: u32) -> Result<Vec<u64>, Why> {
    // SAFETY: as above; the list is made here and closed; arrays are as long as they are said to be.
    unsafe {
        let list = (q.create_list)(dataset);
        if list < 0 {
            return Err("a dataset that says nothing of itself".into());
        }
        let mut chunk = [0; H5S_MAX_RANK];
        let filter = |k| {
            let (mut flags, mut n, mut config) = (0, 0, 0);
            (q.filter)(list, k, &mut flags, &mut n, ptr::null_mut(), 0, ptr::null_mut(), &mut config)
        };
        let found = if (q.layout)(list) != H5D_CHUNKED {
            Err(NO_CHUNKS)
        } else if flags & READ_ONLY != 0 && !((q.filters)(list) == 0 || (q.filters)(list) == 1 && filter(0) == FILTER) {
            Err("its filters are others than 443 alone, or none")
        } else if !(0..(q.filters)(list).max(0) as c_uint).all(|k| is_read(filter(k))) {
            Err("its filters are others than 443 alone, or gzip and its like")
        } else {
            match (q.chunk)(list, H5S_MAX_RANK as c_int, chunk.as_mut_ptr()) {
                rank @ 1.. => Ok(chunk[..rank as usize].to_vec()),
                _ => Err("chunks of no rank"),
            }
        };
        (q.close)(list);
        Ok(found?)
    }
}

/// Bytes of a dataset's chunk cache; all there are, where it cannot be asked.
///
/// # Safety
/// As of [`chunk_of`].
unsafe fn cache_of(q: &Questions, dataset: Hid) -> u64 {
    // SAFETY: as above; the list is made here and closed.
    unsafe {
        let list = (q.access_list)(dataset);
        let (mut slots, mut bytes, mut weight) = (0, 0, 0.0);
        let known = list >= 0 && (q.chunk_cache)(list, &mut slots, &mut bytes, &mut weight) >= 0;
        if list >= 0 {
            (q.close)(list);
        }
        match known {
            true if slots == 0 => 0,
            true => bytes as u64,
            false => u64::MAX,
        }
    }
}

/// A type as the plugin names it, `<f4`, and its bytes.
///
/// # Safety
/// `memory` is a type.
unsafe fn type_of(q: &Questions, memory: Hid) -> Result<(CString, usize), Why> {
    // SAFETY: as above.
    let (class, size) = unsafe { ((q.type_class)(memory), (q.type_size)(memory)) };
    let kind = match class {
        H5T_FLOAT => 'f',
        // SAFETY: as above.
        H5T_INTEGER if unsafe { (q.type_sign)(memory) } == H5T_SGN_NONE => 'u',
        H5T_INTEGER => 'i',
        _ => return Err("its values are no numbers".into()),
    };
    // SAFETY: as above.
    let order = if unsafe { (q.type_order)(memory) } == H5T_ORDER_BE { '>' } else { '<' };
    let name = CString::new(format!("{order}{kind}{size}")).map_err(|_| "a type without a name")?;
    Ok((name, size))
}

/// What is printed of HDF5's failures; given back when this goes. A question that fails is nobody's failure.
pub(crate) struct Silence<'a> {
    q: &'a Questions,
    before: Option<(Auto, *mut c_void)>,
}

impl<'a> Silence<'a> {
    pub(crate) fn new(q: &'a Questions) -> Self {
        let (mut is_v2, mut auto, mut data): (c_uint, Auto, _) = (0, None, ptr::null_mut());
        // SAFETY: variables for the answers. A function of version 1 cannot be asked for: it stays.
        let known = unsafe {
            (q.is_v2)(H5E_DEFAULT, &mut is_v2) >= 0
                && is_v2 > 0
                && (q.get_auto)(H5E_DEFAULT, &mut auto, &mut data) >= 0
                && (q.set_auto)(H5E_DEFAULT, None, ptr::null_mut()) >= 0
        };
        Silence { q, before: known.then_some((auto, data)) }
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        if let Some((auto, data)) = self.before {
            // SAFETY: what was asked for.
            unsafe { (self.q.set_auto)(H5E_DEFAULT, auto, data) };
        }
    }
}

/// The lock of a library that threads share; given back when this goes.
struct Locked<'a>(Option<&'a Lock>);

impl<'a> Locked<'a> {
    /// `None`: another thread has it.
    fn new(host: &'a Host, q: &Questions) -> Option<Self> {
        let mut is_shared = false;
        // SAFETY: a variable for the answer.
        if unsafe { (q.is_threadsafe)(&mut is_shared) } < 0 || !is_shared {
            return Some(Locked(None));
        }
        // Before 1.14 there is no such function. There the plugin asks for chunks one by one, each under the lock.
        let Some(lock) = &host.lock else { return Some(Locked(None)) };
        let mut is_ours = false;
        // SAFETY: as above.
        unsafe { (lock.acquire)(1, &mut is_ours) };
        is_ours.then_some(Locked(Some(lock)))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            let (mut count, mut is_ours) = (0, false);
            // SAFETY: the lock that was taken. It is given back as often as it is had; the rest is taken again.
            unsafe {
                (lock.release)(&mut count);
                while count > 1 && !is_ours {
                    (lock.acquire)(count - 1, &mut is_ours);
                }
            }
        }
    }
}

/// # Safety
/// As of [`short_way`], of a call that was judged.
unsafe fn transfer(
    host: &'static Host,
    q: &Questions,
    call: &Call,
    judged: &Judged,
    values: *mut c_void,
    flags: u32,
) -> Outcome {
    let plugin = match plugin::get() {
        Ok(plugin) => plugin,
        Err(why) => return Outcome::Native(why.into()),
    };
    let Some(_locked) = Locked::new(host, q) else { return Outcome::Native("another thread is in HDF5".into()) };
    let _silence = Silence::new(q);
    let Placed { there, first, steps } = &judged.placed;
    let size = judged.size as i64;
    let strides: Option<Vec<i64>> = steps.iter().map(|step| step.checked_mul(size)).collect();
    let (Some(strides), Some(first)) = (strides, first.checked_mul(size)) else {
        return Outcome::Native("its places in memory are too far apart".into());
    };
    let array = Array {
        data: values.wrapping_byte_offset(first as isize),
        device: HOST,
        flags,
        datatype: judged.datatype.as_ptr(),
        rank: there.shape.len(),
        shape: there.shape.as_ptr(),
        strides: strides.as_ptr(),
        stream: ptr::null_mut(),
    };
    // SAFETY: any function will do; its own type is nobody's business there.
    let hdf5 = unsafe {
        type Read = unsafe extern "C" fn(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
        std::mem::transmute::<Read, unsafe extern "C" fn()>(host.real.read)
    };
    // SAFETY: the caller's promise: values of this type at these places, a dataset and a type that stay open.
    match unsafe { plugin.transfer(hdf5, call.dataset, call.memory, &there.start, &array) } {
        Ok(()) => Outcome::Done(there.shape.iter().product::<u64>() * judged.size as u64),
        Err(failed) if flags & READ_ONLY != 0 && failed.errno != 0 && !failed.other_way => {
            // As HDF5 ends such a text: h5py looks for the number in it.
            Outcome::Failed(format!("{}, errno = {}", failed.why, failed.errno))
        }
        Err(failed) => Outcome::Native(failed.why.into()),
    }
}
