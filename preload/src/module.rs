// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loaded library, and what lies in it or in what it is linked with.

use libc::c_void;
use std::ffi::{CStr, CString};
use std::ptr;

/// A library that stays loaded: its handle is never closed.
pub(crate) struct Module(ptr::NonNull<c_void>);

impl Module {
    /// Loads a library, with everything that it needs.
    pub(crate) fn load(path: &CStr) -> Result<Module, String> {
        // SAFETY: a text that ends in NUL. What the library runs when it is loaded is its own business.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        ptr::NonNull::new(handle).map(Module).ok_or_else(|| {
            // SAFETY: the loader's text of what failed just now, or null.
            let why = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
            why.map_or_else(|| format!("{path:?} cannot be loaded"), |why| why.to_string_lossy().into_owned())
        })
    }

    /// The one that holds an address. `None` for the program itself, which the loader does not know by its name.
    pub(crate) fn holding(address: *const c_void) -> Option<Module> {
        let file = file_of(address)?;
        // SAFETY: a name from the loader; NOLOAD loads and runs nothing.
        ptr::NonNull::new(unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }).map(Module)
    }

    /// The address of a symbol here, or in what this is linked with.
    pub(crate) fn symbol(&self, name: &str) -> Option<ptr::NonNull<c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: a handle that is never closed, and a text that ends in NUL.
        ptr::NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    /// A symbol as a pointer to what it is. `Err`: its name, where there is none.
    ///
    /// # Safety
    /// `T` is a pointer to a function or variable of this symbol's type.
    pub(crate) unsafe fn typed<T: Copy>(&self, name: &'static str) -> Result<T, &'static str> {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let found = self.symbol(name).ok_or(name)?.as_ptr();
        // SAFETY: the caller's promise; the size was compared above.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
    }
}

/// The name of the object that holds an address, which is compared and never read.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub(crate) fn file_of(address: *const c_void) -> Option<&'static CStr> {
    // SAFETY: all-zero is a valid Dl_info; dladdr only compares the address with the loaded objects' ranges. The name
    // lives as long as the object, which is asked for at once, or is our own.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname))
    }
}
