// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loaded library or program, and the functions and variables that lie in it.
//!
//! Symbols come from the module's dynamic table or, for a program that carries libhdf5 inside and exports nothing, from
//! the symbol table of its file. A symbol found in any other module is refused: `dlsym` also looks into dependencies,
//! and ids of one HDF5 mean nothing to another.

use crate::objects;
use h5z_gpu::plugin::elf;
use libc::c_void;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;

/// Names that repackaged copies of HDF5 put before each symbol.
const PREFIXES: [&str; 3] = ["", "vtkhdf5_", "itk_"];

/// A loaded object that stays loaded.
pub(crate) struct Module {
    pub(crate) base: usize,
    handle: *mut c_void,
    file: CString,
    symtab: std::cell::OnceCell<elf::Symbols>,
}

/// What the loader says of the object that holds an address.
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: all-zero is a valid Dl_info; dladdr only compares the address with the loaded objects' ranges.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address, &mut info) != 0).then_some(info)
    }
}

/// Where the object that holds an address begins.
pub(crate) fn base_of(address: *const c_void) -> Option<usize> {
    object_of(address).map(|o| o.dli_fbase as usize).filter(|&base| base != 0)
}

impl Module {
    /// The module that holds the call before `ret`. It is never unloaded from then on.
    pub(crate) fn of(ret: *const c_void) -> Option<Module> {
        // One byte back: a call may be the last instruction of its function, even of its module.
        let object = object_of(ret.cast::<u8>().wrapping_sub(1).cast())?;
        if object.dli_fname.is_null() || object.dli_fbase.is_null() {
            return None;
        }
        let base = object.dli_fbase as usize;
        // SAFETY: the loader keeps the name as long as the object is loaded: until our caller returns into it, and
        // longer.
        let name = unsafe { CStr::from_ptr(object.dli_fname) };
        let program = objects::program().filter(|program| program.base == base);
        // The main program's name is whatever its caller typed; the loader finds it by no name at all.
        // SAFETY: a name from the loader, or none; NOLOAD never loads or runs anything.
        let handle = unsafe {
            match program {
                Some(_) => libc::dlopen(ptr::null(), libc::RTLD_LAZY),
                None => libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD),
            }
        };
        let file = program.map_or_else(|| name.into(), |program| program.file);
        (!handle.is_null()).then(|| Module { base, handle, file, symtab: Default::default() })
    }

    pub(crate) fn name(&self) -> String {
        let path = Path::new(self.file.to_str().unwrap_or("the calling program"));
        let real = std::fs::read_link(path).unwrap_or(path.into());
        real.file_name().map_or_else(|| "the calling program".into(), |n| n.to_string_lossy().into_owned())
    }

    /// A symbol as a pointer to what it is. `Err`: its name, where this module has none.
    ///
    /// # Safety
    /// `T` is a pointer to a function or variable of this symbol's type.
    pub(crate) unsafe fn typed<T: Copy>(&self, symbol: &'static str) -> Result<T, &'static str> {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let found = self.find(symbol).ok_or(symbol)?;
        // SAFETY: the caller's promise; the size was compared above.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
    }

    /// The address of a function in this module or in what it is linked with.
    pub(crate) fn linked(&self, function: &CStr) -> Option<*const c_void> {
        // SAFETY: the handle is never closed, the name ends in NUL.
        let found = unsafe { libc::dlsym(self.handle, function.as_ptr()) };
        (!found.is_null()).then_some(found.cast_const())
    }

    /// The address of a symbol that lies in this module, whatever it is prefixed with here.
    fn find(&self, symbol: &str) -> Option<*mut c_void> {
        let here = |p: &*mut c_void| base_of(*p) == Some(self.base);
        PREFIXES.iter().find_map(|prefix| {
            let name = CString::new(format!("{prefix}{symbol}")).ok()?;
            // SAFETY: the handle is never closed, the name ends in NUL.
            let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
            Some(found).filter(here).or_else(|| {
                let symbols = self.symtab.get_or_init(|| {
                    elf::Symbols::of(Path::new(self.file.to_str().unwrap_or_default())).unwrap_or_default()
                });
                let address = symbols.address(name.to_bytes(), self.base)?;
                Some(address as *mut c_void).filter(here)
            })
        })
    }
}
