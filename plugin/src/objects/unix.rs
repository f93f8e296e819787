// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux, macOS and their like.

use super::object::{Handle, Object};
use libc::c_void;
use std::ffi::CStr;
use std::ptr;

/// What the loader says of the object that holds an address.
fn info_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all-zero is a valid Dl_info; dladdr only compares the address with the loaded objects' ranges.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address, &mut info) != 0).then_some(info)
    }
}

pub(super) fn base_of(address: *const c_void) -> Option<usize> {
    info_of(address).map(|info| info.dli_fbase as usize).filter(|&base| base != 0)
}

pub(super) fn holding(address: *const c_void) -> Option<Object> {
    let info = info_of(address)?;
    if info.dli_fname.is_null() || info.dli_fbase.is_null() {
        return None;
    }
    let base = info.dli_fbase as usize;
    // The program's name is whatever its caller typed.
    let program = program().filter(|program| program.base == base);
    // SAFETY: the loader keeps the name as long as the object is loaded: while code of it calls us.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(program.unwrap_or_else(|| Object { base, file: name.into(), is_program: false }))
}

pub(super) fn open(object: &Object) -> Option<Handle> {
    // SAFETY: a name from the loader, or none, which is the program's; NOLOAD never loads or runs anything.
    let handle = unsafe {
        match object.is_program {
            true => libc::dlopen(ptr::null(), libc::RTLD_LAZY),
            false => libc::dlopen(object.file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD),
        }
    };
    (!handle.is_null()).then_some(Handle(handle))
}

pub(super) fn symbol(handle: &Handle, name: &CStr) -> *mut c_void {
    // SAFETY: a handle that is open, and a name that ends in NUL.
    unsafe { libc::dlsym(handle.0, name.as_ptr()) }
}

pub(super) fn close(handle: Handle) {
    // SAFETY: a handle that is open, and is not used again.
    unsafe { libc::dlclose(handle.0) };
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn all() -> Vec<Object> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> libc::c_int {
        // SAFETY: the loader passes a valid record, and the pointer given to dl_iterate_phdr.
        let (info, all) = unsafe { (&*info, &mut *all.cast::<Vec<Object>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: a NUL-terminated name of the loader.
            let file = unsafe { CStr::from_ptr(info.dlpi_name) }.into();
            all.push(Object { base: info.dlpi_addr as usize, file, is_program: false });
        }
        0
    }
    let mut all: Vec<Object> = Vec::new();
    // SAFETY: `note` matches the call and `all` outlives it.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut all).cast()) };
    all
}

#[cfg(not(target_vendor = "apple"))]
fn program() -> Option<Object> {
    // SAFETY: getauxval has no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
    Some(Object { base: base_of(headers)?, file: c"/proc/self/exe".into(), is_program: true })
}

#[cfg(target_vendor = "apple")]
mod dyld {
    unsafe extern "C" {
        pub(super) fn _dyld_image_count() -> u32;
        pub(super) fn _dyld_get_image_header(number: u32) -> *const libc::c_void;
        pub(super) fn _dyld_get_image_name(number: u32) -> *const libc::c_char;
    }
}

/// The object of a number; the program is that of 0.
#[cfg(target_vendor = "apple")]
fn image(number: u32) -> Option<Object> {
    // SAFETY: null for a number that there is not; else a text that ends in NUL, of an object that is loaded.
    unsafe {
        let (base, name) = (dyld::_dyld_get_image_header(number) as usize, dyld::_dyld_get_image_name(number));
        (!name.is_null()).then(|| Object { base, file: CStr::from_ptr(name).into(), is_program: number == 0 })
    }
}

#[cfg(target_vendor = "apple")]
pub(super) fn all() -> Vec<Object> {
    // SAFETY: no preconditions.
    (0..unsafe { dyld::_dyld_image_count() }).filter_map(image).collect()
}

#[cfg(target_vendor = "apple")]
fn program() -> Option<Object> {
    image(0)
}

/// Keeps this library loaded when HDF5 closes its plugins. Elsewhere its file says so (build.rs).
#[cfg(target_vendor = "apple")]
pub(crate) fn stay() {
    if let Some(own) = info_of(stay as *const c_void) {
        // SAFETY: the loader's own name for this library, which is loaded.
        unsafe { libc::dlopen(own.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}
