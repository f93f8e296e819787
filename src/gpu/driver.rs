// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver library: looked for before the binding can panic over its absence; failures; the current context.

use cudarc::driver::{DriverError, result, sys};
use std::fmt;

/// Every driver function that is called here, error texts included. One that is missing means: no GPU.
const SYMBOLS: &[&str] = &[
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuLaunchKernel",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemsetD8Async",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Whether the driver library is there with all that is needed.
pub(super) fn probe() -> Result<(), String> {
    // The one name that a driver installation guarantees. The handle is kept: the binding opens the same library.
    // SAFETY: loading the driver runs its initialisers, as every CUDA program does.
    let library = unsafe { libloading::Library::new("libcuda.so.1") }.map_err(|e| format!("no CUDA driver ({e})"))?;
    std::mem::forget(library);
    // SAFETY: as above; present under at least one of the binding's names.
    if !unsafe { sys::is_culib_present() } {
        return Err("the CUDA driver library cannot be opened again".into());
    }
    // SAFETY: just seen to be present, so this does not panic.
    let library = unsafe { sys::culib() };
    for name in SYMBOLS {
        // SAFETY: only whether the symbol exists is asked.
        if unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err() {
            return Err(format!("the CUDA driver has no {name}"));
        }
    }
    Ok(())
}

/// A driver call that failed, or an answer of the device that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    what: &'static str,
    code: Option<u32>,
}

impl Failure {
    pub(super) fn new(what: &'static str, error: DriverError) -> Self {
        Failure { what, code: Some(error.0 as u32) }
    }

    /// Something else than a driver call went wrong.
    pub(crate) fn other(what: &'static str) -> Self {
        Failure { what, code: None }
    }

    /// Whether the context is of no use after this: all but bad arguments, lack of memory and lack of resources.
    pub(super) fn ends_context(&self) -> bool {
        !matches!(self.code, None | Some(1 | 2 | 200 | 209 | 218 | 222 | 500 | 701))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} fails with CUDA error {code}", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// Our context is current on this thread; what was current before comes back when this is dropped.
pub(crate) struct Current {
    before: sys::CUcontext,
}

impl Current {
    pub(super) fn bind(context: sys::CUcontext) -> Result<Self, Failure> {
        let before = result::ctx::get_current().map_err(|e| Failure::new("cuCtxGetCurrent", e))?;
        let guard = Current { before: before.unwrap_or(std::ptr::null_mut()) };
        // SAFETY: the device's primary context, never released. On failure the guard restores what was there.
        unsafe { result::ctx::set_current(context) }.map_err(|e| Failure::new("cuCtxSetCurrent", e))?;
        Ok(guard)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // A second try: the call only sets a variable of the thread, and what it reports may be an older failure.
        for _ in 0..2 {
            // SAFETY: the context that was current when the guard was made, or none.
            if unsafe { result::ctx::set_current(self.before) }.is_ok() {
                return;
            }
        }
    }
}
