// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod format;
mod shuffle;

use crate::codec::descriptor::{Codec, Encode};
use crate::codec_id::CodecId;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec =
    Codec { id: CodecId::BYTES, sections: &["head", "tile ends", "payload"], decode: cpu::decode };

pub(crate) use cpu::{encode, len};

pub(crate) const ENCODE: Encode =
    |chunk, out| cpu::encode(chunk.raw, chunk.params.dtype, chunk.threads, out).map(|()| true);
