// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codecs, each in a folder of its own; which of them encodes a chunk.
//!
//! A codec's page is the specification of its bytes.

#[doc(hidden)]
pub mod auto;
pub mod bytes;
#[doc(hidden)]
pub mod chunk;
pub mod dense;
pub(crate) mod descriptor;
#[doc(hidden)]
pub mod exact;
#[doc(hidden)]
pub mod half;
#[doc(hidden)]
pub mod kept;
#[doc(hidden)]
pub mod look;
pub mod lorenzo;
pub mod ndzip;
#[doc(hidden)]
pub mod order;
pub mod planes;
mod runs;
#[doc(hidden)]
pub mod sample;
pub mod scaled;
pub(crate) mod short;
pub(crate) mod stored;
pub mod szx;
#[doc(hidden)]
pub mod trial;

use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{Frame, STORED_HEADER};
use crate::memory;
use crate::params::{self, Bound, Class, Params};
use chunk::{Chunk, Settled};
use descriptor::{Codec, Encode};
use kept::Kept;
use look::{Chosen, Look};

/// Every codec.
pub(crate) static CODECS: [&Codec; CodecId::NAMES.len()] = [
    &stored::CODEC,
    &szx::CODEC,
    &lorenzo::CODEC,
    &ndzip::CODEC,
    &bytes::CODEC,
    &planes::CODEC,
    &scaled::CODEC,
    &dense::CODEC,
];

/// The codec of this number; `None` where this build lacks it.
pub(crate) fn by_id(id: CodecId) -> Option<&'static Codec> {
    CODECS.into_iter().find(|codec| codec.id == id)
}

/// Names of the sections of a codec's frames, in their order; none for a codec that this build lacks.
pub fn sections(id: CodecId) -> &'static [&'static str] {
    by_id(id).map_or(&[], |codec| codec.sections)
}

/// The chunk's params with the codec that the request leaves open.
pub(crate) fn settle_request(chunk: &Chunk<'_>) -> Result<Settled> {
    settle(chunk, true)
}

/// The same; where `is_open` is false, of f32 in place of 16 bits, which only the candidates hold.
fn settle(chunk: &Chunk<'_>, is_open: bool) -> Result<Settled> {
    let params = *chunk.params;
    if is_settled(&params, chunk.raw.len()) {
        return Ok(Settled { params, used: None, kept: None, frame: None });
    }
    let auto::Choice { request, used, kept, frame } = match params.dtype.size {
        4 => auto::choose_request::<f32>(chunk, encode, is_open)?,
        _ => auto::choose_request::<f64>(chunk, encode, is_open)?,
    };
    let used = Some(used).filter(|_| request.bound != Bound::Lossless);
    Ok(Settled { params: Params { request, ..params }, used, kept, frame })
}

/// Whether the request says which codec encodes a chunk of `raw_len` bytes.
#[doc(hidden)]
pub fn is_settled(params: &Params, raw_len: usize) -> bool {
    params.request.codec != params::Codec::Auto || !params.lossy(raw_len)
}

/// The codec, on every backend, for a chunk of `raw_len` bytes whose request is settled. A chunk whose codec could not
/// be chosen for lack of memory goes to `lorenzo`. A lossless chunk without a choice counts as `scaled`: no GPU takes
/// it, and `exact::encode` chooses.
#[doc(hidden)]
pub fn codec_for(params: &Params, raw_len: usize) -> CodecId {
    let dtype = params.dtype;
    if params.lossy(raw_len) {
        match params.request.codec {
            params::Codec::Szx => CodecId::SZX,
            params::Codec::Planes => CodecId::PLANES,
            params::Codec::Dense => CodecId::DENSE,
            _ => CodecId::LORENZO,
        }
    } else if dtype.class == Class::Integer && Kept::settled(params) == Some(Kept::Lorenzo) && params.fits(raw_len) {
        CodecId::LORENZO
    } else if dtype.is_short() && params.request.codec == params::Codec::Planes && params.fits(raw_len) {
        CodecId::PLANES
    } else if dtype.class != Class::Bytes && matches!(dtype.size, 4 | 8) && params.fits(raw_len) {
        match params.request.codec {
            params::Codec::Ndzip => CodecId::NDZIP,
            _ if exact::is_open(params, raw_len) => CodecId::SCALED,
            _ => CodecId::PLANES,
        }
    } else {
        CodecId::BYTES
    }
}

/// Whether a lossless codec must be chosen for a chunk of `raw_len` bytes.
#[doc(hidden)]
pub fn is_kept_open(params: &Params, raw_len: usize) -> bool {
    exact::is_open(params, raw_len) || short::is_open(params, raw_len)
}

/// Chooses how a chunk is coded without loss, if that is open: integers and floating-point numbers without a bound.
pub(crate) fn choose_kept(chunk: &Chunk<'_>) -> Result<Option<Chosen>> {
    if exact::is_open(chunk.params, chunk.raw.len()) {
        exact::choose(chunk).map(Some)
    } else if short::is_open(chunk.params, chunk.raw.len()) {
        short::choose(chunk).map(|kept| Some(kept.into()))
    } else {
        Ok(None)
    }
}

/// The sample of a chunk of `raw_len` bytes by which its lossless codec is chosen; or the codec, if no sample is
/// needed.
#[doc(hidden)]
pub fn look(params: &Params, raw_len: usize) -> Result<Box<dyn Look>, Kept> {
    match params.dtype.is_short() {
        true => short::Sampled::new(params, raw_len).map(|l| Box::new(l) as Box<dyn Look>).ok_or(Kept::Shortest),
        false => exact::Tiles::new(params, raw_len).map(|l| Box::new(l) as Box<dyn Look>).ok_or(Kept::Planes),
    }
}

/// What encodes by a codec that [`codec_for`] answers.
fn encoder(id: CodecId) -> Encode {
    match id {
        CodecId::SZX => szx::ENCODE,
        CodecId::LORENZO => lorenzo::ENCODE,
        CodecId::NDZIP => ndzip::ENCODE,
        CodecId::PLANES => planes::ENCODE,
        CodecId::SCALED => scaled::ENCODE,
        CodecId::DENSE => dense::ENCODE,
        _ => bytes::ENCODE,
    }
}

/// Encodes one chunk on the CPU into `out`, by the codec for it. False: this chunk is better stored.
pub(crate) fn encode(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let Chunk { params, raw, .. } = *chunk;
    let coded = if params.lossy_half(raw.len()) {
        half::encode(chunk, &half::Wide { settle: |chunk| settle(chunk, false), encode }, out)?
    } else if params.dtype.is_short() && params.fits(raw.len()) {
        short::encode(chunk, out)?
    } else if exact::is_open(params, raw.len()) {
        exact::encode(chunk, out)?
    } else {
        encoder(codec_for(params, raw.len()))(chunk, out)?
    };
    Ok(coded && out.len() < chunk.raw.len() + STORED_HEADER)
}

/// Stores a chunk whose request is settled: one that its codec does not make smaller, or cannot for want of memory.
#[doc(hidden)]
pub fn store(params: &Params, raw: &[u8], threads: usize, out: &mut Vec<u8>) -> Result<()> {
    stored::encode(raw, |values| settle_values(params, values), threads, out)
}

/// The same into a place of the frame's length, allocating next to nothing.
#[doc(hidden)]
pub fn store_into(params: &Params, raw: &[u8], out: &mut [u8]) {
    stored::encode_into(raw, |values| settle_values(params, values), out);
}

/// Turns the values of a chunk that is stored into what its codec would give back, in place, so that none of them moves
/// once the chunk shrinks: planes/FORMAT.md §8.1. Chunks of which nothing of the kind is promised stay as they are.
fn settle_values(params: &Params, values: &mut [u8]) {
    match params.dtype.is_half() {
        _ if !planes::is_steady(params, values.len()) => (),
        true => half::settle_values(params, values),
        false => planes::settle_values(params, values),
    }
}

/// Decodes one frame on the CPU into `out`, which has the frame's raw length.
pub(crate) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let id = frame.header.codec;
    let codec = by_id(id).ok_or(Error::Unsupported { format: frame.version(), codec: id })?;
    let extents = frame.header.extents;
    if extents.is_swapped() {
        let mut coded = memory::zeros(out.len())?;
        decode_as_is(frame, codec, threads, &mut coded)?;
        return order::restore(&extents, &coded, out, threads);
    }
    decode_as_is(frame, codec, threads, out)
}

/// As [`decode`], in the order that the codec has.
fn decode_as_is(frame: &Frame<'_>, codec: &Codec, threads: usize, out: &mut [u8]) -> Result<()> {
    match half::is_wide(&frame.header) {
        true => half::decode(frame, codec, threads, out),
        false => (codec.decode)(frame, threads, out),
    }
}
