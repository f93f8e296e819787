// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests and benchmarks ask about the GPU. Not part of the public interface.

use crate::codec::device::timing;
use crate::codec::{self, LORENZO, lorenzo};
use crate::engine::{DecodeJob, EncodeJob};
use crate::frame::Frame;
use crate::gpu;
pub use crate::gpu::abi;
use crate::params::Params;

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

/// Residuals of frames of `lorenzo`, four bytes each, tile by tile, in the jobs' first bytes, by the decoder `coarse`, `sync`
/// or `gap`; and milliseconds of each of `runs` launches of it over frames already on the device.
pub fn residual_times(
    jobs: &mut [DecodeJob<'_>],
    runs: usize,
    threads: usize,
    decoder: &str,
) -> Option<(Vec<bool>, Vec<f32>)> {
    timing::residuals(jobs, runs, threads, decoder)
}

/// The same residuals by the CPU, 0 for tiles without. `None`: no frame of `lorenzo`, or not right.
pub fn residuals(frame: &[u8]) -> Option<Vec<i32>> {
    let frame = Frame::open(frame, 1).ok()?;
    match (frame.header.codec, frame.header.dtype.size) {
        (LORENZO, 4) => lorenzo::cpu::residuals::<f32>(&frame).ok(),
        (LORENZO, 8) => lorenzo::cpu::residuals::<f64>(&frame).ok(),
        _ => None,
    }
}

/// A frame of `lorenzo` without gap arrays. `None` where the request is another codec's, or the chunk is better stored.
pub fn without_gaps(params: &Params, raw: &[u8]) -> Option<Vec<u8>> {
    codec::without_gaps(params, raw)
}
