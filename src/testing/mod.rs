// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests and benchmarks ask for. Not part of the interface: it may change with any release.

pub mod stages;
mod timing;

pub use crate::constants;
pub use crate::cuda::abi;
pub use timing::{decode_times, encode_steps, encode_times, residual_times};

use crate::codec::chunk::Chunk;
use crate::codec::{self, lorenzo};
use crate::codec_id::CodecId;
use crate::cuda;
use crate::error::Result;
use crate::frame::{Frame, STORED_HEADER};
use crate::params::Params;
use crate::scalar::Scalar;

/// Kernel images in this build; 0 where no nvcc was found when it was built.
pub fn images() -> usize {
    cuda::images()
}

/// Residuals of a frame of `lorenzo` by the CPU, tile by tile, 0 for tiles without. `None`: no such frame, or not right.
pub fn residuals(frame: &[u8]) -> Option<Vec<i32>> {
    let frame = Frame::open(frame, 1).ok()?;
    match (frame.header.codec, frame.header.dtype.size) {
        (CodecId::LORENZO, 4) => lorenzo::cpu::residuals::<f32>(&frame).ok(),
        (CodecId::LORENZO, 8) => lorenzo::cpu::residuals::<f64>(&frame).ok(),
        _ => None,
    }
}

/// A frame of `lorenzo` without gap arrays, which no request asks for yet. `None` where the request is another codec's, or
/// the chunk is better stored.
pub fn without_gaps(params: &Params, raw: &[u8]) -> Option<Vec<u8>> {
    fn write<S: Scalar>(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let used = chunk.used::<S>()?;
        let header = chunk.header(CodecId::LORENZO, Some(used));
        lorenzo::cpu::encode_with(&chunk.values::<S>()?, chunk, used, header, false, out)
    }
    let chunk = Chunk { params, raw, threads: 1, used: None };
    let mut out = Vec::new();
    let fits = match (codec::choose(params, raw.len()), params.dtype.size) {
        (CodecId::LORENZO, 4) => write::<f32>(&chunk, &mut out).ok()?,
        (CodecId::LORENZO, _) => write::<f64>(&chunk, &mut out).ok()?,
        _ => return None,
    };
    (fits && out.len() < raw.len() + STORED_HEADER).then_some(out)
}
