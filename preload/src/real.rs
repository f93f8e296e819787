// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HDF5 library that a caller would have called without us.
//!
//! There may be several in a process: each Python wheel brings its own. What a caller is linked with counts: the
//! address that its call returns to lies in the caller, the loader names that object, and a symbol of it that we do not
//! have ourselves leads to its libhdf5.

use crate::hdf5::{Errors, Lock, Questions, Real};
use crate::module::Module;
use libc::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An HDF5 library.
pub(crate) struct Host {
    pub(crate) real: Real,
    /// `None`: older than 1.10. All its calls go straight on.
    pub(crate) questions: Option<Questions>,
    pub(crate) lock: Option<Lock>,
    pub(crate) errors: Option<Errors>,
}

// SAFETY: addresses of code, and of variables that the library itself reads from any thread.
unsafe impl Sync for Host {}

/// What an address of a call returned to.
struct Seen {
    ret: usize,
    host: &'static Host,
}

/// Addresses seen, in the places that they have by their lower bits, or soon behind.
const PLACES: usize = 4096;
const NEAR: usize = 8;
static SEEN: [AtomicPtr<Seen>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// The library that is called by the code around `ret`. `None`: there is none.
pub(crate) fn of(ret: *const c_void) -> Option<&'static Host> {
    let ret = ret as usize;
    let places = (0..NEAR).map(|k| &SEEN[((ret >> 2) + k) % PLACES]);
    for place in places {
        let seen = place.load(Ordering::Acquire);
        if seen.is_null() {
            let host = resolve(ret)?;
            let new = Box::into_raw(Box::new(Seen { ret, host }));
            if place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: it was made here, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
            return Some(host);
        }
        // SAFETY: what stands in a place stays there for ever.
        let seen = unsafe { &*seen };
        if seen.ret == ret {
            return Some(seen.host);
        }
    }
    resolve(ret)
}

/// Libraries found so far, by the address of their H5Dread.
static HOSTS: std::sync::Mutex<Vec<(usize, &'static Host)>> = std::sync::Mutex::new(Vec::new());

fn resolve(ret: usize) -> Option<&'static Host> {
    let library = library_of_caller(ret).or_else(library_behind)?;
    let read = library.symbol("H5Dread")?.as_ptr() as usize;
    let mut hosts = HOSTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, host)) = hosts.iter().find(|(at, _)| *at == read) {
        return Some(*host);
    }
    let host: &'static Host = Box::leak(Box::new(Host {
        real: Real::find(&library).ok()?,
        questions: Questions::find(&library).ok(),
        lock: Lock::find(&library).ok(),
        errors: Errors::find(&library).ok(),
    }));
    hosts.push((read, host));
    Some(host)
}

/// The libhdf5 that the object with this address is linked with.
fn library_of_caller(ret: usize) -> Option<Module> {
    // One byte back: a call may be the last instruction of its function.
    Module::holding(Module::holding((ret - 1) as *const c_void)?.symbol("H5Dopen2")?.as_ptr())
}

/// The first one behind us in the order of the program, whose own functions the main program calls.
fn library_behind() -> Option<Module> {
    // SAFETY: a name that ends in NUL.
    Module::holding(unsafe { libc::dlsym(libc::RTLD_NEXT, c"H5Dread".as_ptr()) })
}
