// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests and benchmarks ask for. Not part of the interface: it may change with any release.

mod memory;
pub mod stages;
mod timing;
pub mod values;

pub use codecs::constants;
pub use kernels::{HEADER, IMAGES, SOURCES, SUM, abi};
pub use memory::DeviceMemory;
pub use timing::{decode_times, encode_steps, encode_times, residual_times};

use crate::cuda;
use codecs::codec::lorenzo;
use codecs::codec_id::CodecId;
use codecs::frame::Frame;

/// Architectures that the kernels are compiled for, and whether as PTX.
pub fn architectures() -> Vec<(u32, bool)> {
    cuda::architectures()
}

/// Major release of CUDA that the kernels were compiled by; 0 in a build without.
pub fn cuda_major() -> u32 {
    cuda::cuda_major()
}

/// Kernel images in this build; 0 where no CUDA compiler was found when it was built.
pub fn images() -> usize {
    cuda::images()
}

/// Residuals of a frame of `lorenzo` by the CPU, tile by tile, 0 for tiles without. `None`: no such frame, or not
/// right.
pub fn residuals(frame: &[u8]) -> Option<Vec<i32>> {
    let frame = Frame::open(frame, 1).ok()?;
    match (frame.header.codec, frame.header.dtype.size) {
        (CodecId::LORENZO, 4) => lorenzo::cpu::residuals::<f32>(&frame).ok(),
        (CodecId::LORENZO, 8) => lorenzo::cpu::residuals::<f64>(&frame).ok(),
        _ => None,
    }
}
