// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HDF5 library that a caller would have called without us.
//!
//! What a caller is linked with counts: the address that its call returns to lies in the caller, the loader names that
//! object, and a symbol of it that we do not have ourselves leads to its libhdf5.

use crate::host::Host;
use crate::module::Module;
use libc::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

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

fn resolve(ret: usize) -> Option<&'static Host> {
    Host::of_module(&library_of_caller(ret).or_else(library_behind)?)
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
