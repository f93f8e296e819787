// SPDX-License-Identifier: MIT OR Apache-2.0
//! What everybody else knows of a codec. Each codec's `mod.rs` has it, as `CODEC` and `ENCODE`.

use super::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::frame::Frame;

/// Writes a chunk's frame on the CPU. False: the chunk is better stored. It stands beside the descriptor, so that a
/// library of decoders has no encoder in it.
pub(crate) type Encode = fn(&Chunk<'_>, &mut Vec<u8>) -> Result<bool>;

/// A codec.
pub(crate) struct Codec {
    pub(crate) id: CodecId,
    /// Names of a frame's sections, in their order.
    pub(crate) sections: &'static [&'static str],
    /// Decodes a frame on a number of CPU threads into a buffer of the frame's raw length.
    pub(crate) decode: fn(&Frame<'_>, usize, &mut [u8]) -> Result<()>,
}
