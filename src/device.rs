// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a build has for GPUs, and what a GPU takes of it, for tools that name it.

/// The kernels of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuCode {
    /// The compiler that made them, such as `NVRTC 12.9`.
    pub compiler: &'static str,
    /// The CUDA release that a driver must be for, at least: major and minor.
    pub cuda: (u32, u32),
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
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    /// The image that it takes.
    pub image: String,
    /// The CUDA release that its driver is for.
    pub driver_cuda: (u32, u32),
}
