// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows. A module is known by where it begins, which is its handle too.

use super::object::{Handle, Object};
use libc::c_void;
use std::ffi::{CStr, CString};
use std::ptr;
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN,
    GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW, GetModuleHandleExW, GetModuleHandleW,
    GetProcAddress,
};
use windows_sys::Win32::System::ProcessStatus::EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// The module that holds an address; null for none.
fn module_of(address: *const c_void, flags: u32) -> HMODULE {
    let mut module = ptr::null_mut();
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | flags;
    // SAFETY: the address is only compared, and the variable takes the answer.
    match unsafe { GetModuleHandleExW(flags, address.cast(), &mut module) } {
        0 => ptr::null_mut(),
        _ => module,
    }
}

pub(super) fn base_of(address: *const c_void) -> Option<usize> {
    let module = module_of(address, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT);
    (!module.is_null()).then_some(module as usize)
}

pub(super) fn holding(address: *const c_void) -> Option<Object> {
    object(base_of(address)? as HMODULE)
}

fn object(module: HMODULE) -> Option<Object> {
    // Longer paths are cut short, and only shown.
    let mut name = [0u16; 1024];
    // SAFETY: a module that is loaded, and an array of this length.
    let len = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), name.len() as u32) } as usize;
    // SAFETY: no name is that of the program.
    let is_program = module == unsafe { GetModuleHandleW(ptr::null()) };
    let file = CString::new(String::from_utf16_lossy(&name[..len.min(name.len())])).ok()?;
    Some(Object { base: module as usize, file, is_program })
}

pub(super) fn all() -> Vec<Object> {
    let mut modules: Vec<HMODULE> = vec![ptr::null_mut(); 4096];
    let (bytes, mut needed) = (size_of_val(&modules[..]) as u32, 0);
    // SAFETY: an array of `bytes` bytes, and a variable for the answer.
    let done = unsafe { EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), bytes, &mut needed) };
    let count = if done == 0 { 0 } else { needed.min(bytes) as usize / size_of::<HMODULE>() };
    modules[..count].iter().filter_map(|&module| object(module)).collect()
}

/// Modules stay: nobody unloads a libhdf5 whose plugins are loaded.
pub(super) fn open(object: &Object) -> Option<Handle> {
    Some(Handle(object.base as *mut c_void))
}

/// Windows asks a module for its own functions alone. What it is linked with is one of the others: the only one that
/// has the function, since of several nobody says which.
pub(super) fn symbol(handle: &Handle, name: &CStr) -> *mut c_void {
    let own = function(handle.0, name);
    if !own.is_null() {
        return own;
    }
    let mut others: Vec<_> = all().iter().map(|object| function(object.base as *mut c_void, name)).collect();
    others.retain(|found| !found.is_null());
    if let [only] = others[..] { only } else { ptr::null_mut() }
}

fn function(module: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a module that is loaded, and a name that ends in NUL.
    unsafe { GetProcAddress(module, name.as_ptr().cast()) }.map_or(ptr::null_mut(), |found| found as *mut c_void)
}

pub(super) fn close(_: Handle) {}

/// Keeps this library loaded when HDF5 closes its plugins.
pub(crate) fn stay() {
    module_of(stay as *const c_void, GET_MODULE_HANDLE_EX_FLAG_PIN);
}
