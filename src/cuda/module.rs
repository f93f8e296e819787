// SPDX-License-Identifier: MIT OR Apache-2.0
//! The embedded kernel images: loaded when first needed, kernels found by name.

use super::driver::Failure;
use cudarc::driver::sys::CUfunction_attribute_enum as Attribute;
use cudarc::driver::{result, sys};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// One `kernels/STEM.cu`, compiled.
pub(crate) struct Image {
    /// Name of the file; every kernel's name starts with it.
    pub(crate) stem: &'static str,
    /// Machine code for each architecture, and PTX.
    pub(crate) bytes: &'static [u8],
    /// Name, architecture, registers a thread and spilled bytes of each kernel, as the assembler reported.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) kernels: &'static [(&'static str, u32, u32, u32)],
}

/// Images are read in place by the driver, as 8-byte words.
/// A build without kernels has none.
#[allow(dead_code)]
#[repr(C, align(16))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// A kernel with the CTA size that its source fixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub(super) function: sys::CUfunction,
    /// Threads of a CTA: the launch bound of the source.
    pub(super) threads: u32,
    /// Its code waits for the kernel before it where it may begin early: kernels/prim/dependent.cuh.
    pub(super) waits: bool,
}

/// PTX, in the driver's count, from which on kernels wait: Hopper's. What is compiled on the spot from older PTX does not,
/// whatever the device.
const WAITS_FROM: i32 = 90;

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

/// Modules and kernels found so far.
#[derive(Default)]
pub(super) struct Modules {
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    modules: HashMap<&'static str, usize>,
    kernels: HashMap<String, Kernel>,
}

impl Modules {
    /// A kernel by name. The device's context must be current.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        let image = IMAGES
            .iter()
            .find(|i| name.strip_prefix(i.stem).is_some_and(|rest| rest.starts_with('_')))
            .ok_or_else(|| Failure::other("this build has no such kernel"))?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = found.kernels.get(name) {
            return Ok(*kernel);
        }
        let module = match found.modules.get(image.stem) {
            Some(&module) => module as sys::CUmodule,
            None => {
                // SAFETY: a complete image written by nvcc, in memory that is never freed.
                let module = unsafe { result::module::load_data(image.bytes.as_ptr().cast()) }
                    .map_err(|e| Failure::new("cuModuleLoadData", e))?;
                found.modules.insert(image.stem, module as usize);
                module
            }
        };
        let symbol = CString::new(name).map_err(|_| Failure::other("a kernel's name holds a zero"))?;
        // SAFETY: the module is loaded and stays so.
        let function = unsafe { result::module::get_function(module, symbol) }
            .map_err(|e| Failure::new("cuModuleGetFunction", e))?;
        // SAFETY: the function was just found.
        let attribute = |which| unsafe { result::function::get_function_attribute(function, which) };
        let attribute = |which| attribute(which).map_err(|e| Failure::new("cuFuncGetAttribute", e));
        let threads = attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let waits = attribute(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)? >= WAITS_FROM;
        let kernel = Kernel { function, threads: u32::try_from(threads).unwrap_or(0).clamp(1, 1024), waits };
        found.kernels.insert(name.into(), kernel);
        Ok(kernel)
    }
}
