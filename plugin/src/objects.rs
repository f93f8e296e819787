// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects of this process, program and libraries, as each system's loader tells of them.

use std::ffi::CString;
#[cfg(target_vendor = "apple")]
pub(crate) use system::stay;
pub(crate) use system::{paths, program};

/// The program's own file and where it begins in memory.
pub(crate) struct Program {
    pub(crate) base: usize,
    pub(crate) file: CString,
}

#[cfg(not(target_vendor = "apple"))]
mod system {
    use super::Program;
    use crate::module::base_of;
    use libc::{c_int, c_void};
    use std::ffi::{CStr, CString};

    /// Paths of the libraries that are loaded.
    pub(crate) fn paths() -> Vec<CString> {
        unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
            // SAFETY: the loader passes a valid record, and the pointer given to dl_iterate_phdr.
            let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<CString>>()) };
            if !info.dlpi_name.is_null() {
                // SAFETY: a NUL-terminated name of the loader.
                names.push(unsafe { CStr::from_ptr(info.dlpi_name) }.into());
            }
            0
        }
        let mut names: Vec<CString> = Vec::new();
        // SAFETY: `note` matches the call and `names` outlives it.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut names).cast()) };
        names
    }

    /// The program itself.
    pub(crate) fn program() -> Option<Program> {
        // SAFETY: getauxval has no preconditions.
        let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
        Some(Program { base: base_of(headers)?, file: c"/proc/self/exe".into() })
    }
}

#[cfg(target_vendor = "apple")]
mod system {
    use super::Program;
    use std::ffi::{CStr, CString};

    unsafe extern "C" {
        fn _dyld_image_count() -> u32;
        fn _dyld_get_image_header(number: u32) -> *const libc::c_void;
        fn _dyld_get_image_name(number: u32) -> *const libc::c_char;
    }

    fn path(number: u32) -> Option<CString> {
        // SAFETY: null for a number that there is not; else a text that ends in NUL, of an object that is loaded.
        unsafe {
            let name = _dyld_get_image_name(number);
            (!name.is_null()).then(|| CStr::from_ptr(name).into())
        }
    }

    /// Paths of the objects that are loaded.
    pub(crate) fn paths() -> Vec<CString> {
        // SAFETY: no preconditions.
        (0..unsafe { _dyld_image_count() }).filter_map(path).collect()
    }

    /// Keeps this library loaded when HDF5 closes its plugins. Elsewhere its file says so (build.rs).
    pub(crate) fn stay() {
        // SAFETY: all-zero is a valid Dl_info; the loader's own name for this library, which is loaded.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(stay as *const libc::c_void, &mut info) != 0 {
                libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
            }
        }
    }

    /// The program itself, which is the first of them.
    pub(crate) fn program() -> Option<Program> {
        // SAFETY: null for a number that there is not.
        let base = unsafe { _dyld_get_image_header(0) } as usize;
        Some(Program { base, file: path(0)? })
    }
}
