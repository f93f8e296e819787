// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which library called a callback, and what of it is used.
//!
//! HDF5 calls a filter through a pointer, so the callback's return address lies in the libhdf5 that owns the ids it
//! passed. `dladdr` names that module, and its symbols are looked up there ([`crate::module`]).
//!
//! A host without these functions is a supported state: decoding needs none of them.
//!
//! HDF5 2.3 may call a filter on a thread of its own while another one holds the library's lock and waits for it. There
//! a public function of HDF5 would wait for ever, `H5allocate_memory` and those of the error stack included. Which
//! thread it is a filter cannot find out. So `filter` enters none: what it must know is read from symbols alone
//! ([`resolve`] calls nothing), memory comes from malloc ([`crate::buffer`]), and errors of such versions go to the
//! log. `set_local` runs on the thread that entered HDF5, and may ask.

use crate::buffer::Memory;
use crate::hdf5::{
    ChunkInfo, ChunkIter, Datasets, Errors, Filling, Heap, Hid, Layout, Pausing, Properties, ReadChunk, ReadChunk2,
    Resume, Sec2, Standard, Walking,
};
use crate::module::Module;
use crate::objects::{self, base_of};
use crate::reserve::system;
use libc::c_void;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Why a host cannot be asked about a dataset.
pub(crate) enum Silent {
    Unknown,
    Lacks { module: String, symbol: &'static str },
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silent::Unknown => f.write_str("it is not known which library called"),
            Silent::Lacks { module, symbol } => write!(f, "{module} does not export {symbol}"),
        }
    }
}

/// The library that called.
pub(crate) struct Host {
    /// Where it begins in memory.
    pub(crate) base: usize,
    /// As its own text says; `None` where it has none.
    version: Option<[u32; 3]>,
    pub(crate) properties: Result<Properties, Silent>,
    pub(crate) filling: Option<Filling>,
    pub(crate) layout: Option<Layout>,
    pub(crate) standard: Option<Standard>,
    pub(crate) errors: Option<Errors>,
    pub(crate) walking: Option<Walking>,
    pub(crate) pausing: Option<Pausing>,
    pub(crate) resume: Option<Resume>,
    pub(crate) memory: Memory,
    pub(crate) datasets: Option<Datasets>,
    pub(crate) reader: Option<Reader>,
    pub(crate) chunk_info: Option<ChunkInfo>,
    pub(crate) chunk_iter: Option<ChunkIter>,
    sec2: Option<Sec2Driver>,
}

/// Reads a stored chunk.
pub(crate) enum Reader {
    Plain(ReadChunk),
    Sized(ReadChunk2),
}

/// Where the number of the driver for plain files is.
enum Sec2Driver {
    Function(Sec2),
    Variable(*const Hid),
}

// SAFETY: addresses of code and of data that the library itself reads from any thread.
unsafe impl Sync for Host {}

/// A caller of which nothing is known.
static UNKNOWN: Host = Host {
    base: 0,
    version: None,
    properties: Err(Silent::Unknown),
    filling: None,
    layout: None,
    standard: None,
    errors: None,
    walking: None,
    pausing: None,
    resume: None,
    memory: Memory::Libc,
    datasets: None,
    reader: None,
    chunk_info: None,
    chunk_iter: None,
    sec2: None,
};

impl Host {
    /// Whether a filter may be called on a thread that has not entered this HDF5.
    pub(crate) fn calls_on_own_threads(&self) -> bool {
        self.version.is_none_or(|v| v >= [2, 3, 0])
    }

    /// The number of the driver for plain files, in a library that has been entered.
    pub(crate) fn sec2(&self) -> Option<Hid> {
        // SAFETY: a function without arguments, or a variable that is set since the library was entered.
        self.sec2.as_ref().map(|driver| unsafe {
            match driver {
                Sec2Driver::Function(f) => (f.init)(),
                Sec2Driver::Variable(id) => **id,
            }
        })
    }

    /// What `set_local` asks; for it alone. `Err`: why this library cannot be asked. Ids before HDF5 1.10 have another
    /// size.
    pub(crate) fn asked(&self) -> Result<&Properties, String> {
        let properties = self.properties.as_ref().map_err(Silent::to_string)?;
        let version = self.version.unwrap_or_else(|| {
            let mut v = [0; 3];
            let [major, minor, release] = &mut v;
            // SAFETY: three variables for three numbers.
            unsafe { (properties.get_libversion)(major, minor, release) };
            v
        });
        if version < [1, 10, 0] { Err(format!("HDF5 {version:?} is older than 1.10")) } else { Ok(properties) }
    }
}

/// A return address seen before. Never freed: the list only grows, by one for each call site in each library.
struct Seen {
    ret: usize,
    host: &'static Host,
    next: *const Seen,
}

/// No lock: a fork in the middle of another thread's call leaves nothing held.
static SEEN: AtomicPtr<Seen> = AtomicPtr::new(ptr::null_mut());

fn seen() -> impl Iterator<Item = &'static Seen> {
    let mut at: *const Seen = SEEN.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: the list holds leaked boxes and ends in null.
        let seen = unsafe { at.as_ref() }?;
        at = seen.next;
        Some(seen)
    })
}

/// The host that the code at `ret`, a callback's return address, belongs to.
pub(crate) fn of_caller(ret: *const c_void) -> &'static Host {
    if let Some(s) = seen().find(|s| s.ret == ret as usize) {
        return s.host;
    }
    let Some(module) = Module::at_address(ret) else { return &UNKNOWN };
    let host = match seen().find(|s| s.host.base == module.base) {
        Some(s) => s.host,
        None => Box::leak(Box::new(resolve(&module))),
    };
    let node = Box::leak(Box::new(Seen { ret: ret as usize, host, next: ptr::null() }));
    let mut head = SEEN.load(Ordering::Acquire);
    loop {
        node.next = head;
        match SEEN.compare_exchange_weak(head, node, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return host,
            Err(now) => head = now,
        }
    }
}

/// The host that a function belongs to.
pub(crate) fn of_function(start: *const c_void) -> &'static Host {
    // A return address lies behind a call.
    of_caller(start.wrapping_byte_add(1))
}

/// The host whose functions an object calls, of which `address` is some place: itself, or the library that it is linked
/// with.
pub(crate) fn serving(address: *const c_void) -> &'static Host {
    let own = of_function(address);
    if own.datasets.is_some() {
        return own;
    }
    // Where a program takes the address of another object's function, it may be that of its own way there.
    let module = Module::at_address(address.wrapping_byte_add(1));
    module.and_then(|m| m.linked(c"H5Dopen2")).map_or(own, |function| of_function(function))
}

/// Looks symbols up. Calls no function of the host: it may be locked by a thread that waits for this one.
fn resolve(module: &Module) -> Host {
    let lacks = |symbol| Silent::Lacks { module: module.name(), symbol };
    Host {
        base: module.base,
        version: version(module),
        properties: Properties::find(module).map_err(lacks),
        filling: Filling::find(module).ok(),
        layout: Layout::find(module).ok(),
        standard: Standard::find(module).ok(),
        errors: Errors::find(module).ok(),
        walking: Walking::find(module).ok(),
        pausing: Pausing::find(module).ok(),
        resume: Resume::find(module).ok(),
        memory: Heap::find(module).ok().filter(|_| has_own_heap(module)).map_or(Memory::Libc, Memory::Host),
        datasets: Datasets::find(module).ok(),
        reader: ReadChunk2::find(module).map(Reader::Sized).or(ReadChunk::find(module).map(Reader::Plain)).ok(),
        chunk_info: ChunkInfo::find(module).ok(),
        chunk_iter: ChunkIter::find(module).ok(),
        sec2: Sec2::find(module).map(Sec2Driver::Function).ok().or_else(|| {
            // SAFETY: from 2.0 on the variable of this name is the driver's number.
            unsafe { module.typed("H5FD_SEC2_id_g") }.map(Sec2Driver::Variable).ok()
        }),
    }
}

/// The version that the library's text for people names, `HDF5 library version: 1.14.6`.
fn version(module: &Module) -> Option<[u32; 3]> {
    // SAFETY: since 1.4 the variable of this name is a text that ends in NUL.
    let text = unsafe { CStr::from_ptr(module.typed::<*const c_char>("H5_lib_vers_info_g").ok()?) };
    numbers(text.to_str().ok()?)
}

fn numbers(text: &str) -> Option<[u32; 3]> {
    let number = |part: &str| part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse().ok();
    let mut parts = text.rsplit(' ').next()?.splitn(3, '.').map(number);
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// Whether blocks of `H5allocate_memory` are something else than malloc's, which every released build of HDF5 takes
/// them from: a build for debugging puts marks around them, and a program may hold an allocator that nobody else sees.
/// On Windows each module may have a C runtime of its own.
fn has_own_heap(module: &Module) -> bool {
    let its = |symbol| {
        // SAFETY: an address that is only compared.
        unsafe { module.typed::<*const c_void>(symbol) }.ok()
    };
    cfg!(windows)
        || its("H5MM_sanity_check_all").is_some()
        || its("malloc").is_some_and(|found| found != system::malloc as *const c_void)
}

/// Whether an object whose path has `part` in it, such as a Python module or libnetcdf, works on this libhdf5.
pub(crate) fn serves(host: &Host, part: &str) -> bool {
    objects::named(part).iter().any(|object| {
        let Some(handle) = object.open() else { return false };
        // A handle's symbols are also those of what the object depends on.
        let found = handle.symbol(c"H5Epush2").and_then(|found| base_of(found));
        handle.close();
        found == Some(host.base)
    })
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn versions_as_libraries_name_them() {
        for (text, want) in [
            ("HDF5 library version: 1.10.8", Some([1, 10, 8])),
            ("HDF5 library version: 1.14.4-3", Some([1, 14, 4])),
            ("HDF5 library version: 2.3.0-snap1", Some([2, 3, 0])),
            ("HDF5 library version: 2", None),
            ("", None),
        ] {
            assert_eq!(numbers(text), want, "{text}");
        }
    }
}
