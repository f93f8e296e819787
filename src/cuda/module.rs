// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel files of an image: loaded when first needed, kernels found by name.

use super::driver::Failure;
use super::image::{self, Image};
use cudarc::driver::sys::CUfunction_attribute_enum as Attribute;
use cudarc::driver::{result, sys};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// A kernel with the CTA size that its source fixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub(super) function: sys::CUfunction,
    /// Threads of a CTA: the launch bound of the source.
    pub(super) threads: u32,
    /// Its code waits for the kernel before it where it may begin early: kernels/prim/dependent.cuh.
    pub(super) waits: bool,
}

/// Images from this architecture on have kernels that wait: Hopper's. Older ones know no early launch.
const WAITS_FROM: u32 = 90;

#[cfg(feature = "testing")]
impl Kernel {
    /// Threads of a CTA.
    pub(crate) fn threads(self) -> u32 {
        self.threads
    }
}

// SAFETY: function handles may be used from any thread; modules are never unloaded.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A device's modules and kernels found so far.
pub(super) struct Modules {
    image: &'static Image,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    modules: HashMap<&'static str, usize>,
    kernels: HashMap<String, Kernel>,
}

impl Modules {
    pub(super) fn new(image: &'static Image) -> Modules {
        Modules { image, found: Mutex::default() }
    }

    /// What the device runs.
    pub(super) fn image(&self) -> &'static Image {
        self.image
    }

    /// A kernel by name. The device's context must be current.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        let mut files = self.image.files.iter();
        let &(file, at) = files
            .find(|(file, _)| name.strip_prefix(file).is_some_and(|rest| rest.starts_with('_')))
            .ok_or_else(|| Failure::other("this build has no such kernel"))?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = found.kernels.get(name) {
            return Ok(*kernel);
        }
        let module = match found.modules.get(file) {
            Some(&module) => module as sys::CUmodule,
            None => {
                let part = &image::unpacked(self.image)?[at..];
                // SAFETY: a complete image as its compiler wrote it, PTX with a NUL behind it, in memory that is never
                // freed.
                let module = unsafe { result::module::load_data(part.as_ptr().cast()) }
                    .map_err(|e| Failure::new("cuModuleLoadData", e))?;
                found.modules.insert(file, module as usize);
                module
            }
        };
        let symbol = CString::new(name).map_err(|_| Failure::other("a kernel's name holds a zero"))?;
        // SAFETY: the module is loaded and stays so.
        let function = unsafe { result::module::get_function(module, symbol) }
            .map_err(|e| Failure::new("cuModuleGetFunction", e))?;
        let most = Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the function was just found.
        let threads = unsafe { result::function::get_function_attribute(function, most) }
            .map_err(|e| Failure::new("cuFuncGetAttribute", e))?;
        let waits = self.image.arch >= WAITS_FROM;
        let kernel = Kernel { function, threads: u32::try_from(threads).unwrap_or(0).clamp(1, 1024), waits };
        found.kernels.insert(name.into(), kernel);
        Ok(kernel)
    }
}
