// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every system's loader has.

use libc::c_void;
use std::ffi::CString;

/// An object that is loaded.
pub(crate) struct Object {
    /// Where it begins in memory.
    pub(crate) base: usize,
    /// Its file, by a path that opens it.
    pub(crate) file: CString,
    #[cfg_attr(windows, allow(dead_code))]
    pub(super) is_program: bool,
}

/// What symbols of an object are asked for by. It stays loaded as long as this is not closed.
pub(crate) struct Handle(pub(super) *mut c_void);
