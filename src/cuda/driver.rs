// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver library: looked for before the binding can panic over its absence; failures; the current context.

use cudarc::driver::{DriverError, result, sys};
use std::borrow::Cow;
use std::fmt;

/// Every driver function that is called here, error texts included: drivers from 525 on have them. One that is missing
/// means: no GPU.
const SYMBOLS: &[&str] = &[
    "cuDriverGetVersion",
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxSetCurrent",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuLaunchKernelEx",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpy3DAsync_v2",
    "cuMemsetD8Async",
    "cuPointerGetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Whether the driver library is there with all that is needed; `check` judges its version.
pub(super) fn probe(check: fn(i32) -> Result<(), Failure>) -> Result<(), Failure> {
    // The one name that a driver installation guarantees. The handle is kept: the binding opens the same library.
    // SAFETY: loading the driver runs its initialisers, as every CUDA program does.
    let library = unsafe { libloading::Library::new("libcuda.so.1") }
        .map_err(|e| Failure::other(format!("there is no CUDA driver ({e})")))?;
    std::mem::forget(library);
    // SAFETY: as above; present under at least one of the binding's names.
    if !unsafe { sys::is_culib_present() } {
        return Err(Failure::other("the CUDA driver library cannot be opened again"));
    }
    // SAFETY: just seen to be present, so this does not panic.
    let library = unsafe { sys::culib() };
    for name in SYMBOLS {
        // SAFETY: only whether the symbol exists is asked.
        if unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err() {
            return Err(Failure::other(format!("the CUDA driver has no {name}")));
        }
        // The first of the list, which every driver has: one that is too old says so before it lacks something.
        if *name == "cuDriverGetVersion" {
            check(version()?)?;
        }
    }
    Ok(())
}

/// The CUDA release that the driver is for, times 1000.
pub(super) fn version() -> Result<i32, Failure> {
    let mut version = 0;
    // SAFETY: the caller has seen that the function is there; the number can be written.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(|e| Failure::new("cuDriverGetVersion", e))?;
    Ok(version)
}

/// Result codes of the driver that decide something here, under their names in cuda.h.
macro_rules! codes {
    ($($name:ident)*) => {
        mod code {
            use cudarc::driver::sys::CUresult;
            $(pub(super) const $name: u32 = CUresult::$name as u32;)*
        }
        const NAMES: &[(u32, &str)] = &[$((code::$name, stringify!($name))),*];
    };
}

codes! {
    CUDA_ERROR_INVALID_VALUE CUDA_ERROR_OUT_OF_MEMORY CUDA_ERROR_DEVICE_UNAVAILABLE CUDA_ERROR_NO_DEVICE
    CUDA_ERROR_INVALID_IMAGE CUDA_ERROR_NO_BINARY_FOR_GPU CUDA_ERROR_INVALID_PTX CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    CUDA_ERROR_NOT_FOUND CUDA_ERROR_ILLEGAL_ADDRESS CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES CUDA_ERROR_SYSTEM_NOT_READY
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH CUDA_ERROR_MPS_CONNECTION_FAILED CUDA_ERROR_MPS_RPC_FAILURE
    CUDA_ERROR_MPS_SERVER_NOT_READY CUDA_ERROR_MPS_MAX_CLIENTS_REACHED CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
}

/// A driver call that failed, or an answer of the device that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    what: Cow<'static, str>,
    /// The driver's code. A number: a driver newer than the binding may give one that its enum lacks.
    code: Option<u32>,
}

impl Failure {
    pub(super) fn new(what: &'static str, error: DriverError) -> Self {
        Failure { what: what.into(), code: Some(error.0 as u32) }
    }

    /// Something else than a driver call went wrong.
    pub(crate) fn other(what: impl Into<Cow<'static, str>>) -> Self {
        Failure { what: what.into(), code: None }
    }

    /// Whether the context is of no use after this: all but bad arguments, lack of memory and lack of resources.
    pub(super) fn ends_context(&self) -> bool {
        use code::*;
        !matches!(
            self.code,
            None | Some(
                CUDA_ERROR_INVALID_VALUE
                    | CUDA_ERROR_OUT_OF_MEMORY
                    | CUDA_ERROR_INVALID_IMAGE
                    | CUDA_ERROR_NO_BINARY_FOR_GPU
                    | CUDA_ERROR_INVALID_PTX
                    | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                    | CUDA_ERROR_NOT_FOUND
                    | CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            )
        )
    }

    /// Whether the device, or page-locked memory, was too small.
    pub(crate) fn is_memory(&self) -> bool {
        self.code == Some(code::CUDA_ERROR_OUT_OF_MEMORY)
    }

    /// Whether a start that failed so may succeed later: others have the device, or its memory, or it is not ready.
    pub(super) fn may_pass(&self) -> bool {
        use code::*;
        matches!(
            self.code,
            Some(
                CUDA_ERROR_OUT_OF_MEMORY
                    | CUDA_ERROR_DEVICE_UNAVAILABLE
                    | CUDA_ERROR_SYSTEM_NOT_READY
                    | CUDA_ERROR_MPS_CONNECTION_FAILED
                    | CUDA_ERROR_MPS_RPC_FAILURE
                    | CUDA_ERROR_MPS_SERVER_NOT_READY
                    | CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
                    | CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
            )
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.code else { return f.write_str(&self.what) };
        write!(f, "{} fails with CUDA error {code}", self.what)?;
        NAMES.iter().find(|n| n.0 == code).map_or(Ok(()), |n| write!(f, " ({})", n.1))
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
