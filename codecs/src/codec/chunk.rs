// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a codec is told of a chunk, and its bytes as numbers.

use super::kept::Kept;
use crate::bound::{self, Used};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::Header;
use crate::params::{Dtype, Mode, Params};
use crate::scalar::Scalar;
use crate::{memory, parallel};
use std::borrow::Cow;

/// One chunk to encode.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    pub params: &'a Params,
    pub raw: &'a [u8],
    /// CPU threads that its encoder may use.
    pub threads: usize,
    /// The bound used, where it is known already.
    pub used: Option<Used>,
    /// How the chunk is coded without loss, if that is chosen already.
    pub kept: Option<Kept>,
}

/// A chunk's params with a codec, and what choosing the codec said and made: the bound used, how the chunk is coded
/// without loss, and its frame.
pub(crate) struct Settled {
    pub(crate) params: Params,
    pub(crate) used: Option<Used>,
    pub(crate) kept: Option<Kept>,
    pub(crate) frame: Option<Vec<u8>>,
}

impl<'a> Chunk<'a> {
    /// The chunk's numbers.
    pub(crate) fn values<T: bytemuck::Pod>(&self) -> Result<Cow<'a, [T]>> {
        values(self.raw, self.params.dtype)
    }

    /// The bound used on the chunk.
    pub(crate) fn used<S: Scalar>(&self) -> Result<Used> {
        /// Bytes for which a thread is worth its start; a multiple of every scalar's size.
        const THREAD_BYTES: usize = 1 << 20;
        if let Some(used) = self.used {
            return Ok(used);
        }
        let Chunk { params, raw, threads, .. } = *self;
        let range = || -> Result<_> {
            let part = |i: usize| &raw[i * THREAD_BYTES..raw.len().min((i + 1) * THREAD_BYTES)];
            let ranges = parallel::try_map(raw.len().div_ceil(THREAD_BYTES), threads, |i| -> Result<_> {
                Ok(bound::range(&values::<S>(part(i), params.dtype)?, params.fill))
            })?;
            Ok(ranges.into_iter().flatten().reduce(|(low, high), (a, z)| (low.min(a), high.max(z))))
        };
        let range = if bound::follows_range(params.request) { range()? } else { None };
        Ok(bound::used(params.request, params.dtype, range))
    }

    /// The header of a frame of a lossy codec (`used`: the bound used), or of a lossless one (`None`).
    pub(crate) fn header(&self, codec: CodecId, used: Option<Used>) -> Header {
        header(self.params, codec, used.map(Used::value), self.raw.len())
    }
}

/// The header of a chunk's frame; `used` is the bound used, `None` where every bit comes back.
pub fn header(params: &Params, codec: CodecId, used: Option<f64>, raw_len: usize) -> Header {
    Header {
        codec,
        mode: used.map_or(Mode::Lossless, |_| params.request.bound.mode()),
        used: used.unwrap_or(0.0),
        dtype: params.dtype,
        extents: params.extents,
        raw_len: raw_len as u64,
    }
}

/// A lossy codec's encoder for one type: values, chunk, bound used, header, frame. False: the chunk is better stored.
type LossyEncoder<S> = fn(&[S], &Chunk<'_>, Used, Header, &mut Vec<u8>) -> Result<bool>;

/// Encodes a chunk by a lossy codec's encoder of its type.
pub(crate) fn encode_lossy(
    chunk: &Chunk<'_>,
    codec: CodecId,
    out: &mut Vec<u8>,
    f32s: LossyEncoder<f32>,
    f64s: LossyEncoder<f64>,
) -> Result<bool> {
    fn encode_as<S: Scalar>(
        chunk: &Chunk<'_>,
        codec: CodecId,
        out: &mut Vec<u8>,
        encode: LossyEncoder<S>,
    ) -> Result<bool> {
        let used = chunk.used::<S>()?;
        encode(&chunk.values::<S>()?, chunk, used, chunk.header(codec, Some(used)), out)
    }
    if chunk.params.dtype.size == 4 { encode_as(chunk, codec, out, f32s) } else { encode_as(chunk, codec, out, f64s) }
}

/// Decodes the numbers of a lossy frame by the function of their type; refuses other types and modes.
pub(crate) fn decode_lossy(
    h: &Header,
    out: &mut [u8],
    f32s: impl FnOnce(&mut [f32]) -> Result<()>,
    f64s: impl FnOnce(&mut [f64]) -> Result<()>,
) -> Result<()> {
    if !is_lossy(h) {
        let why = format!("{} with mode {} and type {:?}", h.codec, h.mode, h.dtype);
        return Err(Error::corrupt("header", why));
    }
    if h.dtype.size == 4 { into_values(out, h.dtype, f32s) } else { into_values(out, h.dtype, f64s) }
}

/// Whether a frame has the type and the mode of a lossy codec.
pub fn is_lossy(h: &Header) -> bool {
    h.dtype.is_ieee() && h.mode != Mode::Lossless
}

/// Bytes as numbers of this machine's order; borrowed where alignment and order allow.
pub fn values<T: bytemuck::Pod>(raw: &[u8], dtype: Dtype) -> Result<Cow<'_, [T]>> {
    Ok(match bytemuck::try_cast_slice(raw) {
        Ok(values) if !foreign(dtype) => values.into(),
        _ => {
            let mut values = memory::zeros(raw.len() / size_of::<T>())?;
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
            bytes.copy_from_slice(raw);
            if foreign(dtype) {
                swap(bytes, size_of::<T>());
            }
            values.into()
        }
    })
}

/// Lets `fill` write numbers into bytes; in between where alignment does not allow it, swapped where the order differs.
pub(crate) fn into_values<T: bytemuck::Pod>(
    out: &mut [u8],
    dtype: Dtype,
    fill: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<()> {
    match bytemuck::try_cast_slice_mut(out) {
        Ok(values) => fill(values)?,
        Err(_) => {
            let mut values = memory::zeros(out.len() / size_of::<T>())?;
            fill(&mut values)?;
            out.copy_from_slice(bytemuck::cast_slice(&values));
        }
    }
    if foreign(dtype) {
        swap(out, size_of::<T>());
    }
    Ok(())
}

/// Replaces each number in bytes, where it is.
pub(crate) fn replace<T: bytemuck::Pod>(bytes: &mut [u8], dtype: Dtype, by: impl Fn(T) -> T) {
    let foreign = foreign(dtype);
    for number in bytes.chunks_exact_mut(size_of::<T>()) {
        if foreign {
            number.reverse();
        }
        let new = by(bytemuck::pod_read_unaligned(number));
        number.copy_from_slice(bytemuck::bytes_of(&new));
        if foreign {
            number.reverse();
        }
    }
}

/// Whether the chunk's numbers are in the other byte order than this machine's.
pub fn foreign(dtype: Dtype) -> bool {
    dtype.big_endian != cfg!(target_endian = "big")
}

/// Turns the bytes of each number around.
pub fn swap(bytes: &mut [u8], size: usize) {
    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}
