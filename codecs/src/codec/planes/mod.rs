// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

mod bitplanes;
mod components;
pub(crate) mod cpu;
mod decode;
mod difference;
mod encode;
mod exceptions;
mod fields;
mod format;
mod layout;
mod lengths;
mod numbers;
mod parts;
mod quantize;
#[doc(hidden)]
pub mod shape;
#[cfg(test)]
mod tests;
mod types;
mod unit;

use crate::codec::chunk::{self, Chunk};
use crate::codec::descriptor::{Codec, Encode};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::params::{self, Bound, Class, Mode, Params, Request};
use quantize::Quantizer;
pub(super) use quantize::settler;
use std::ops::RangeInclusive;
pub(crate) use types::Value;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec { id: CodecId::PLANES, sections: &["table", "payload"], decode: decode_frame };

pub(crate) const ENCODE: Encode = encode_chunk;

fn encode_chunk(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let params = chunk.params;
    if params.lossy(chunk.raw.len()) {
        return chunk::encode_lossy(chunk, CodecId::PLANES, out, cpu::encode_lossy, cpu::encode_lossy);
    }
    let header = chunk.header(CodecId::PLANES, None);
    // The bits alone count: integers go through as floats of their size, of which nothing is computed.
    match (params.dtype.size, params.dtype.signed) {
        (1, true) => cpu::encode::<f32, i8>(&chunk.values()?, None, chunk, header, out),
        (1, false) => cpu::encode::<f32, u8>(&chunk.values()?, None, chunk, header, out),
        (2, true) => cpu::encode::<f32, i16>(&chunk.values()?, None, chunk, header, out),
        (2, false) => cpu::encode::<f32, u16>(&chunk.values()?, None, chunk, header, out),
        (4, _) => cpu::encode::<f32, f32>(&chunk.values()?, None, chunk, header, out),
        _ => cpu::encode::<f64, f64>(&chunk.values()?, None, chunk, header, out),
    }
}

/// Encodes a chunk of f32 under a bound so that none but a fill value gets bits that are in `fill`.
pub(super) fn encode_beside_fill(chunk: &Chunk<'_>, fill: RangeInclusive<u64>, out: &mut Vec<u8>) -> Result<bool> {
    let used = chunk.used::<f32>()?;
    let quantizer = Quantizer::<f32>::new(used, Some(fill));
    let header = chunk.header(CodecId::PLANES, Some(used));
    cpu::encode(&chunk.values::<f32>()?, quantizer, chunk, header, out)
}

/// Whether no stored value of a chunk moves again, whatever becomes of the chunk: FORMAT.md §8.1. So it is by this
/// codec under an absolute bound.
pub(super) fn is_steady(params: &Params, raw_len: usize) -> bool {
    let Request { codec, bound, .. } = params.request.without_fast();
    codec == params::Codec::Planes
        && matches!(bound, Bound::Absolute(_))
        && (params.lossy(raw_len) || params.lossy_half(raw_len))
}

/// Turns the values of a chunk of f32 or f64 into what a frame of this codec would give back, in place.
pub(super) fn settle_values(params: &Params, values: &mut [u8]) {
    fn settle<S: Value>(params: &Params, values: &mut [u8]) {
        let chunk = Chunk { params, raw: values, threads: 1, used: None, kept: None };
        let fill = quantize::fill_of(params).map(|bits| bits..=bits);
        let Ok(Some(settled)) = chunk.used::<S>().map(|used| settler::<S>(used, fill)) else { return };
        chunk::replace(values, params.dtype, settled);
    }
    match params.dtype.size {
        4 => settle::<f32>(params, values),
        _ => settle::<f64>(params, values),
    }
}

fn decode_frame(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let h = &frame.header;
    let allowed = match h.mode {
        Mode::Lossless => h.dtype.is_short() || h.dtype.class != Class::Bytes && matches!(h.dtype.size, 4 | 8),
        Mode::PointwiseRelative => false,
        _ => h.dtype.is_ieee(),
    };
    if !allowed {
        return Err(Error::corrupt("header", format!("planes with mode {} and type {:?}", h.mode, h.dtype)));
    }
    match h.dtype.size {
        1 => cpu::decode::<f32, u8>(frame, threads, out),
        2 => chunk::into_values::<u16>(out, h.dtype, |v| cpu::decode::<f32, _>(frame, threads, v)),
        4 => chunk::into_values::<f32>(out, h.dtype, |v| cpu::decode::<f32, _>(frame, threads, v)),
        _ => chunk::into_values::<f64>(out, h.dtype, |v| cpu::decode::<f64, _>(frame, threads, v)),
    }
}
