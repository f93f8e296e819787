// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
#[doc(hidden)]
pub mod cube;
#[doc(hidden)]
pub mod format;
#[cfg(test)]
mod tests;

use crate::codec::chunk::{self, Chunk};
use crate::codec::descriptor::{Codec, Encode};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::Frame;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec { id: CodecId::NDZIP, sections: &["grid", "stream"], decode: decode_frame };

pub(crate) const ENCODE: Encode = encode_chunk;

fn encode_chunk(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let header = chunk.header(CodecId::NDZIP, None);
    match chunk.params.dtype.size {
        4 => cpu::encode(&chunk.values::<u32>()?, header, chunk.threads, out),
        _ => cpu::encode(&chunk.values::<u64>()?, header, chunk.threads, out),
    }
}

fn decode_frame(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let dtype = frame.header.dtype;
    match dtype.size {
        4 => chunk::into_values::<u32>(out, dtype, |v| cpu::decode(frame, threads, v)),
        8 => chunk::into_values::<u64>(out, dtype, |v| cpu::decode(frame, threads, v)),
        size => Err(Error::corrupt("header", format!("ndzip with elements of {size} bytes"))),
    }
}
