// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests and benchmarks ask about the GPU. Not part of the public interface.

use crate::codec::device::timing;
use crate::engine::{DecodeJob, EncodeJob};
use crate::gpu;
pub use crate::gpu::abi;

pub mod stages;

/// The device's name, when there is one and it is in use. Starts it.
pub fn name() -> Option<String> {
    gpu::device().map(|d| d.name().to_owned())
}

/// Kernel images in this build; 0 where no nvcc was found when it was built.
pub fn images() -> usize {
    gpu::images()
}

/// Frames, and milliseconds of each of `runs` launches over data already on the device. `None`: not on this device.
pub fn encode_times(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<Vec<u8>>, Vec<f32>)> {
    timing::encode(jobs, runs, threads)
}

/// The kernels that encode these chunks, and milliseconds of each of them in each of `runs` rounds.
pub fn encode_steps(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<Vec<(&'static str, Vec<f32>)>> {
    timing::encode_steps(jobs, runs, threads)
}

/// Whether each frame was right, and milliseconds of each of `runs` launches over frames already on the device.
pub fn decode_times(jobs: &mut [DecodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<bool>, Vec<f32>)> {
    timing::decode(jobs, runs, threads)
}
