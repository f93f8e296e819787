// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::codec::chunk;
use crate::codec::descriptor::{Codec, Encode};
use crate::codec::lorenzo::cpu::decode_by;
use crate::codec_id::CodecId;

mod bits;
mod contexts;
mod cpu;
mod decode;
mod filter;
mod rans;
mod tables;
mod tokens;
mod vectors;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec {
    id: CodecId::DENSE,
    sections: &["head", "kinds", "lengths", "payload"],
    decode: |frame, threads, out| {
        let h = &frame.header;
        chunk::decode_lossy(
            h,
            out,
            |v| decode_by::<_, decode::Contexts>(frame, threads, v),
            |v| decode_by::<_, decode::Contexts>(frame, threads, v),
        )
    },
};

pub(crate) const ENCODE: Encode = |c, out| chunk::encode_lossy(c, CodecId::DENSE, out, cpu::encode, cpu::encode);
