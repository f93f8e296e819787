// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's C interface, `h5z_gpu.h`, in the library that lies in ../plugin of this one's folder. It is loaded when
//! a call needs it first.

use crate::module::{Module, file_of};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// `h5z_gpu_array`.
#[repr(C)]
pub(crate) struct Array {
    pub(crate) data: *mut c_void,
    pub(crate) device: i32,
    pub(crate) flags: u32,
    pub(crate) datatype: *const c_char,
    pub(crate) rank: usize,
    pub(crate) shape: *const u64,
    pub(crate) strides: *const i64,
    pub(crate) stream: *mut c_void,
}

/// In host memory.
pub(crate) const HOST: i32 = -1;
/// `H5Z_GPU_READ_ONLY`, `H5Z_GPU_OTHER_WAY`.
pub(crate) const READ_ONLY: u32 = 1;
const OTHER_WAY: i64 = -5;

type Function = unsafe extern "C" fn();

tables! {
    /// What is called.
    Plugin {
        fn read_dataset = h5z_gpu_read_dataset(
            Function, i64, i64, *const u64, *const Array, c_int, c_int, *mut *mut c_void) -> i64;
        fn write_dataset = h5z_gpu_write_dataset(
            Function, i64, i64, *const u64, *const Array, c_int, *mut *mut c_void) -> i64;
        fn step = h5z_gpu_step(*mut c_void) -> i64;
        fn end_transfer = h5z_gpu_end_transfer(*mut *mut c_void);
        fn last_error = h5z_gpu_last_error() -> *const c_char;
        fn last_errno = h5z_gpu_last_errno() -> c_int;
    }
}

/// Why a transfer was not made, or not to its end.
pub(crate) struct Failed {
    pub(crate) why: String,
    /// HDF5's pipeline is to do it: nothing was tried.
    pub(crate) other_way: bool,
    /// The system's number; 0 where it is none of its failures.
    pub(crate) errno: c_int,
}

/// A dataset's box on its way. It ends with this value.
struct Transfer<'a> {
    plugin: &'a Plugin,
    work: *mut c_void,
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        // SAFETY: work of the plugin's, or null.
        unsafe { (self.plugin.end_transfer)(&mut self.work) };
    }
}

/// The plugin, or why it is not there.
pub(crate) fn get() -> Result<&'static Plugin, &'static str> {
    static PLUGIN: OnceLock<Result<Plugin, String>> = OnceLock::new();
    PLUGIN.get_or_init(load).as_ref().map_err(|why| why.as_str())
}

fn load() -> Result<Plugin, String> {
    let own = file_of(get as *const c_void).map(|own| Path::new(OsStr::from_bytes(own.to_bytes())));
    let own = own.and_then(|own| own.canonicalize().ok()).ok_or("this library does not know where it lies")?;
    let folder = own.parent().and_then(Path::parent).unwrap_or(&own).join("plugin");
    let file =
        CString::new(folder.join("libh5zgpu.so").into_os_string().as_bytes()).map_err(|_| "a path with a NUL")?;
    Plugin::find(&Module::load(&file)?).map_err(|name| format!("{file:?} is of another version: it has no {name}"))
}

impl Plugin {
    /// Reads a box into an array, or writes it out of one.
    ///
    /// # Safety
    /// As `h5z_gpu.h` says of both functions.
    pub(crate) unsafe fn transfer(
        &self,
        hdf5: Function,
        dataset: i64,
        memory: i64,
        start: &[u64],
        array: &Array,
    ) -> Result<(), Failed> {
        let mut transfer = Transfer { plugin: self, work: ptr::null_mut() };
        let (start, work) = (start.as_ptr(), &mut transfer.work);
        // SAFETY: the caller's promise.
        let mut answer = unsafe {
            match array.flags & READ_ONLY {
                0 => (self.read_dataset)(hdf5, dataset, memory, start, array, 0, 0, work),
                _ => (self.write_dataset)(hdf5, dataset, memory, start, array, 0, work),
            }
        };
        while answer > 0 {
            // SAFETY: work that was begun.
            answer = unsafe { (self.step)(transfer.work) };
        }
        if answer == 0 { Ok(()) } else { Err(self.failed(answer)) }
    }

    fn failed(&self, answer: i64) -> Failed {
        // SAFETY: a text of the plugin's, until its next call.
        let why = unsafe { CStr::from_ptr((self.last_error)()).to_string_lossy().into_owned() };
        // SAFETY: no preconditions.
        Failed { why, other_way: answer == OTHER_WAY, errno: unsafe { (self.last_errno)() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../../plugin/include/h5z_gpu.h");
        for line in [format!("H5Z_GPU_OTHER_WAY = {OTHER_WAY} "), format!("#define H5Z_GPU_READ_ONLY {READ_ONLY}u\n")] {
            assert!(header.contains(&line), "{line}");
        }
    }
}
