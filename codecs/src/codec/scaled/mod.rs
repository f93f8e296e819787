// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

mod corrections;
mod cpu;
mod dictionary;
mod estimate;
mod find;
mod format;
mod scale;
#[cfg(test)]
mod tests;

use crate::codec::descriptor::{Codec, Encode};
use crate::codec::kept::Kept;
use crate::codec_id::CodecId;
pub use cpu::codes_params;
pub(super) use cpu::{bits, encode, frame_len, len, repeats};
pub(super) use estimate::dictionary_len;
pub(super) use find::{Found, SLOTS, bits_of, count_again, find, is_smooth, looked_at, repeat_in_rows, runs};
pub use format::{Exception, frame_around};

/// What everybody else knows of this codec. Whether and how it keeps a chunk, `codec/exact.rs` finds out.
pub(crate) static CODEC: Codec =
    Codec { id: CodecId::SCALED, sections: &["head", "exceptions", "codes", "corrections"], decode: cpu::decode };

pub(crate) const ENCODE: Encode = |chunk, out| match chunk.kept {
    Some(Kept::Scaled(way)) => encode(chunk, &way, out),
    _ => Ok(false),
};
