// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::bound::Used;
use crate::codec::chunk::{self, Chunk};
use crate::codec::descriptor::Codec;
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::frame::Frame;
use crate::scalar::Scalar;
use crate::stage::quantize::Quantizer;

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
#[cfg(feature = "cuda")]
mod launch;
mod select;
#[cfg(test)]
mod tests;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec {
    id: CodecId::LORENZO,
    sections: &["head", "kinds", "ends", "payload"],
    encode: encode_chunk,
    decode: decode_frame,
    #[cfg(feature = "cuda")]
    gpu: Some(&launch::GPU),
};

fn encode_chunk(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    fn of<S: Scalar>(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let used = chunk.used::<S>()?;
        cpu::encode(&chunk.values::<S>()?, chunk, used, chunk.header(CodecId::LORENZO, Some(used)), out)
    }
    if chunk.params.dtype.size == 4 { of::<f32>(chunk, out) } else { of::<f64>(chunk, out) }
}

fn decode_frame(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let (f32s, f64s) = (|v: &mut [f32]| cpu::decode(frame, threads, v), |v: &mut [f64]| cpu::decode(frame, threads, v));
    chunk::decode_lossy(&frame.header, out, f32s, f64s)
}

/// What turns values into the integers that are predicted.
pub(crate) fn quantizer<S: Scalar>(used: Used) -> Quantizer {
    encode::quantizer::<S>(matches!(used, Used::PointwiseRelative(_)), used.value())
}

/// The axes that Lorenzo prediction of a tile's quanta takes, to be compared with a kernel's.
#[cfg(all(feature = "cuda", feature = "testing"))]
pub(crate) fn axes(q: &[i32], extents: [usize; 3]) -> u8 {
    select::choose(q, extents, &mut select::Rows::default(), &mut vec![0; q.len()]).expect("memory")
}
