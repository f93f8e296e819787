// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loaded library or program, and the functions and variables that lie in it.
//!
//! Symbols come from the module's dynamic table or, for a program that carries libhdf5 inside and exports nothing, from
//! the symbol table of its file. A symbol found in any other module is refused: `dlsym` also looks into dependencies,
//! and ids of one HDF5 mean nothing to another.

use crate::objects::{self, Handle, base_of};
use h5z_gpu::plugin::elf;
use libc::c_void;
use std::ffi::{CStr, CString};
use std::path::Path;

/// Names that repackaged copies of HDF5 put before each symbol.
const PREFIXES: [&str; 3] = ["", "vtkhdf5_", "itk_"];

/// A loaded object that stays loaded.
pub(crate) struct Module {
    pub(crate) base: usize,
    handle: Handle,
    file: CString,
    symtab: std::cell::OnceCell<elf::Symbols>,
}

impl Module {
    /// The module that holds the call before `ret`. It is never unloaded from then on.
    pub(crate) fn at_address(ret: *const c_void) -> Option<Module> {
        // One byte back: a call may be the last instruction of its function, even of its module.
        let object = objects::holding(ret.cast::<u8>().wrapping_sub(1).cast())?;
        let handle = object.open()?;
        Some(Module { base: object.base, handle, file: object.file, symtab: Default::default() })
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
        self.handle.symbol(function).map(|found| found.cast_const())
    }

    /// The address of a symbol that lies in this module, whatever it is prefixed with here.
    fn find(&self, symbol: &str) -> Option<*mut c_void> {
        let here = |p: &*mut c_void| base_of(*p) == Some(self.base);
        PREFIXES.iter().find_map(|prefix| {
            let name = CString::new(format!("{prefix}{symbol}")).ok()?;
            self.handle.symbol(&name).filter(here).or_else(|| {
                let symbols = self.symtab.get_or_init(|| {
                    elf::Symbols::read(Path::new(self.file.to_str().unwrap_or_default())).unwrap_or_default()
                });
                let address = symbols.address(name.to_bytes(), self.base)?;
                Some(address as *mut c_void).filter(here)
            })
        })
    }
}
