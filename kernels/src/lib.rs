// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA kernels of `h5z-gpu`, compiled, as bytes; and the structs that they share with their host.
//!
//! build.rs compiles them while other crates are compiled. Nothing here calls a driver: `src/cuda` of the crate
//! `h5z-gpu` does. No part of that crate's interface.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;

/// The folder of the kernels' sources, for tests that compile them for the CPU.
pub const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// The folder of `h5z_abi.cuh`, which build.rs writes: the format's constants, and [`abi`].
pub const HEADER: &str = env!("OUT_DIR");

/// A sum over the sources, in hexadecimal digits, to be compared with that of a release.
pub const SUM: &str = env!("H5Z_GPU_SOURCES");
/// Whether the sources are those of a release.
pub const RELEASED: bool = cfg!(released);

/// Every kernel, compiled for an architecture.
pub struct Image {
    /// Compute capability times ten.
    pub arch: u32,
    /// PTX, from which the driver makes code for this architecture and for all later ones. Else machine code, for this
    /// one and for later minor versions of the same major one.
    pub ptx: bool,
    /// Bytes when unpacked.
    pub len: usize,
    /// The zstd frame.
    pub frame: &'static [u8],
    /// Where each kernel file's part begins: the file's name, and bytes before it.
    pub files: &'static [(&'static str, usize)],
    /// Name, registers a thread and spilled bytes of each kernel, as the assembler reported; of PTX nothing.
    pub kernels: &'static [(&'static str, u32, u32)],
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// A compute capability, major and minor.
pub type Capability = (u32, u32);

impl Image {
    /// Whether a device takes it.
    pub fn runs_on(&self, (major, minor): Capability) -> bool {
        let newer = self.arch <= 10 * major + minor;
        newer && (self.ptx || self.arch / 10 == major)
    }

    /// `sm_90`, or `compute_90` of PTX: as the compiler names them.
    pub fn name(&self) -> String {
        format!("{}_{}", if self.ptx { "compute" } else { "sm" }, self.arch)
    }

    /// The lowest compute capability that it runs on.
    pub fn capability(&self) -> Capability {
        (self.arch / 10, self.arch % 10)
    }
}
