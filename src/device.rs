// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a build has for GPUs, and what a GPU takes of it, for tools that name it.

use std::fmt;

/// A version, or a compute capability: 12.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuVersion {
    /// Before the point.
    pub major: u32,
    /// Behind it.
    pub minor: u32,
}

impl fmt::Display for GpuVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// From how many raw bytes of one codec in a batch a GPU takes it, where `H5Z_GPU_MIN_BYTES` does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFrom {
    /// The codec's name.
    pub codec: String,
    /// For encoding.
    pub encode: usize,
    /// For decoding.
    pub decode: usize,
}

/// The kernels of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuCode {
    /// The compiler that made them, such as `NVRTC 12.9`.
    pub compiler: &'static str,
    /// The CUDA release that a driver must be for, at least.
    pub cuda: GpuVersion,
    /// The first such driver, such as `525.60`.
    pub driver: String,
    /// Images by architecture: `sm_90` is machine code, `compute_90` PTX.
    pub images: Vec<String>,
}

/// A GPU in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuDevice {
    /// Its name.
    pub name: &'static str,
    /// Its compute capability.
    pub capability: GpuVersion,
    /// The image that it takes.
    pub image: String,
    /// The CUDA release that its driver is for.
    pub driver_cuda: GpuVersion,
}
