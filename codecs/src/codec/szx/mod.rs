// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
mod parts;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod steps;
#[cfg(test)]
mod tests;

use crate::codec::chunk;
use crate::codec::descriptor::{Codec, Encode};
use crate::codec_id::CodecId;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec {
    id: CodecId::SZX,
    sections: &["table", "payload"],
    decode: |frame, threads, out| {
        chunk::decode_lossy(&frame.header, out, |v| cpu::decode(frame, threads, v), |v| cpu::decode(frame, threads, v))
    },
};

pub(crate) const ENCODE: Encode = |c, out| chunk::encode_lossy(c, CodecId::SZX, out, cpu::encode, cpu::encode);
