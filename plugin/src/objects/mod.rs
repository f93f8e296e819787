// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects of this process, program and libraries, as each system's loader tells of them.

mod object;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use libc::c_void;
pub(crate) use object::{Handle, Object};
use std::ffi::CStr;

#[cfg(any(target_vendor = "apple", windows))]
pub(crate) use system::stay;

/// Where the object that holds an address begins.
pub(crate) fn base_of(address: *const c_void) -> Option<usize> {
    system::base_of(address)
}

/// The object that holds an address.
pub(crate) fn holding(address: *const c_void) -> Option<Object> {
    system::holding(address)
}

/// Those whose paths have `part` in them.
pub(crate) fn named(part: &str) -> Vec<Object> {
    let mut all = system::all();
    all.retain(|object| object.file.to_string_lossy().contains(part));
    all
}

impl Object {
    pub(crate) fn open(&self) -> Option<Handle> {
        system::open(self)
    }
}

impl Handle {
    /// The address of a symbol in the object, or in what it is linked with.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        Some(system::symbol(self, name)).filter(|found| !found.is_null())
    }

    pub(crate) fn close(self) {
        system::close(self);
    }
}
