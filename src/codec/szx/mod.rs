// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
#[cfg(feature = "cuda")]
mod launch;
mod pack;
#[cfg(all(feature = "cuda", feature = "testing"))]
pub(crate) mod steps;
#[cfg(test)]
mod tests;

use crate::codec::chunk::{self, Chunk};
use crate::codec::descriptor::Codec;
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::frame::Frame;
use crate::scalar::Scalar;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec {
    id: CodecId::SZX,
    sections: &["table", "payload"],
    encode: encode_chunk,
    decode: decode_frame,
    #[cfg(feature = "cuda")]
    gpu: Some(&launch::GPU),
};

fn encode_chunk(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    fn of<S: Scalar>(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let used = chunk.used::<S>()?;
        cpu::encode(&chunk.values::<S>()?, chunk, used, chunk.header(CodecId::SZX, Some(used)), out)
    }
    if chunk.params.dtype.size == 4 { of::<f32>(chunk, out) } else { of::<f64>(chunk, out) }
}

fn decode_frame(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let (f32s, f64s) = (|v: &mut [f32]| cpu::decode(frame, threads, v), |v: &mut [f64]| cpu::decode(frame, threads, v));
    chunk::decode_lossy(&frame.header, out, f32s, f64s)
}
