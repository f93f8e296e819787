// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rooms, and the only two matches over them.

mod auto;
pub(crate) mod bytes;
#[cfg(feature = "cuda")]
pub(crate) mod device;
pub(crate) mod lorenzo;
pub(crate) mod ndzip;
pub(crate) mod stored;
pub(crate) mod szx;

use crate::bound::{self, Used};
use crate::error::{Error, Result};
use crate::frame::{Frame, Header};
use crate::params::{Bound, Class, Codec, Dtype, Params, mode_name};
use crate::scalar::Scalar;
use crate::{memory, parallel};
use std::borrow::Cow;

/// Codec numbers of FORMAT.md §3.2.
pub(crate) const STORED: u8 = 0;
pub(crate) const SZX: u8 = 1;
pub(crate) const LORENZO: u8 = 2;
pub(crate) const NDZIP: u8 = 3;
pub(crate) const BYTES: u8 = 4;

/// What a lossy room is told about one chunk.
pub(crate) struct Spec<'a> {
    pub(crate) params: &'a Params,
    pub(crate) threads: usize,
}

/// Which room encodes a chunk, on every backend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub(crate) codec: u8,
    /// The bound used, where choosing took it.
    used: Option<Used>,
}

/// Chooses the room for a chunk.
pub(crate) fn choose(params: &Params, raw: &[u8], threads: usize) -> Result<Choice> {
    let dtype = params.dtype;
    let codec = if params.lossy(raw.len()) {
        match (params.ask.codec, dtype.size) {
            (Codec::Szx, _) => SZX,
            (Codec::Lorenzo, _) => LORENZO,
            (_, 4) => return auto::choose::<f32>(params, raw, threads),
            _ => return auto::choose::<f64>(params, raw, threads),
        }
    } else if dtype.class != Class::Bytes && matches!(dtype.size, 4 | 8) && params.fits(raw.len()) {
        NDZIP
    } else {
        BYTES
    };
    Ok(Choice { codec, used: None })
}

/// Encodes one chunk on the CPU into `out`, in the room chosen. False: this chunk is better stored.
pub(crate) fn encode(choice: Choice, params: &Params, raw: &[u8], threads: usize, out: &mut Vec<u8>) -> Result<bool> {
    let dtype = params.dtype;
    let lossless = || header(NDZIP, params, Used::Absolute(0.0), raw.len());
    let fits = match (choice.codec, dtype.size) {
        (SZX | LORENZO, 4) => lossy::<f32>(choice, params, raw, threads, out)?,
        (SZX | LORENZO, _) => lossy::<f64>(choice, params, raw, threads, out)?,
        (NDZIP, 4) => ndzip::cpu::encode(&words::<u32>(raw, dtype)?, lossless(), threads, out)?,
        (NDZIP, _) => ndzip::cpu::encode(&words::<u64>(raw, dtype)?, lossless(), threads, out)?,
        _ => bytes::cpu::encode(raw, dtype, threads, out).map(|()| true)?,
    };
    Ok(fits && out.len() < raw.len() + stored::HEADER_LEN)
}

fn lossy<S: Scalar>(choice: Choice, params: &Params, raw: &[u8], threads: usize, out: &mut Vec<u8>) -> Result<bool> {
    let used = choice.used.map_or_else(|| resolve::<S>(params, raw, threads), Ok)?;
    let values = words::<S>(raw, params.dtype)?;
    let spec = Spec { params, threads };
    let header = header(choice.codec, params, used, raw.len());
    match choice.codec {
        LORENZO => lorenzo::cpu::encode(&values, &spec, used, header, out),
        _ => szx::cpu::encode(&values, &spec, used, header, out),
    }
}

/// The bound used on a chunk.
fn resolve<S: Scalar>(params: &Params, raw: &[u8], threads: usize) -> Result<Used> {
    /// Bytes for which a thread is worth its start; a multiple of every scalar's size.
    const PART: usize = 1 << 20;
    let all = || {
        let range = |part: &[u8]| Ok(bound::range(&words::<S>(part, params.dtype)?, params.fill));
        let part = |i: usize| &raw[i * PART..raw.len().min((i + 1) * PART)];
        let ranges = parallel::try_map(raw.len().div_ceil(PART), threads, |i| range(part(i)))?;
        Ok(ranges.into_iter().flatten().reduce(|(low, high), (a, z)| (low.min(a), high.max(z))))
    };
    let mut failed = Ok(());
    let used = bound::resolve(params.ask.bound, || all().map_err(|e| failed = Err(e)).ok().flatten());
    failed.map(|()| used)
}

/// A frame of `lorenzo` without gap arrays, which no request asks for yet, for those who compare readers.
#[cfg(feature = "cuda")]
pub(crate) fn without_gaps(params: &Params, raw: &[u8]) -> Option<Vec<u8>> {
    fn write<S: Scalar>(params: &Params, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let values = words::<S>(raw, params.dtype)?;
        let used = resolve::<S>(params, raw, 1)?;
        let header = header(LORENZO, params, used, raw.len());
        lorenzo::cpu::encode_with(&values, &Spec { params, threads: 1 }, used, header, false, out)
    }
    let mut out = Vec::new();
    let fits = match (choose(params, raw, 1).ok()?.codec, params.dtype.size) {
        (LORENZO, 4) => write::<f32>(params, raw, &mut out).ok()?,
        (LORENZO, _) => write::<f64>(params, raw, &mut out).ok()?,
        _ => return None,
    };
    (fits && out.len() < raw.len() + stored::HEADER_LEN).then_some(out)
}

fn header(codec: u8, params: &Params, used: Used, raw_len: usize) -> Header {
    let lossy = matches!(codec, SZX | LORENZO);
    Header {
        codec,
        bound: if lossy { params.ask.bound } else { Bound::Lossless },
        used: if lossy { used.value() } else { 0.0 },
        dtype: params.dtype,
        extents: params.extents,
        raw_len: raw_len as u64,
    }
}

/// Decodes one frame on the CPU into `out`, which has the frame's raw length.
pub(crate) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let h = &frame.header;
    match (h.codec, h.dtype.size) {
        (STORED, _) => stored::decode(frame, out),
        (BYTES, _) => bytes::cpu::decode(frame, threads, out),
        (SZX | LORENZO, _) if !h.dtype.is_ieee() || h.mode == 9 => {
            let name = if h.codec == SZX { "szx" } else { "lorenzo" };
            Err(Error::corrupt("header", format!("{name} with mode {} and type {:?}", mode_name(h.mode), h.dtype)))
        }
        (SZX, 4) => into_words::<f32>(out, h.dtype, |v| szx::cpu::decode(frame, threads, v)),
        (SZX, _) => into_words::<f64>(out, h.dtype, |v| szx::cpu::decode(frame, threads, v)),
        (LORENZO, 4) => into_words::<f32>(out, h.dtype, |v| lorenzo::cpu::decode(frame, threads, v)),
        (LORENZO, _) => into_words::<f64>(out, h.dtype, |v| lorenzo::cpu::decode(frame, threads, v)),
        (NDZIP, 4) => into_words::<u32>(out, h.dtype, |v| ndzip::cpu::decode(frame, threads, v)),
        (NDZIP, 8) => into_words::<u64>(out, h.dtype, |v| ndzip::cpu::decode(frame, threads, v)),
        (NDZIP, size) => Err(Error::corrupt("header", format!("ndzip with elements of {size} bytes"))),
        (codec, _) => Err(Error::Unsupported { format: h.version, codec }),
    }
}

/// The bytes as numbers of this machine's order; borrowed where alignment and order allow.
fn words<T: bytemuck::Pod>(raw: &[u8], dtype: Dtype) -> Result<Cow<'_, [T]>> {
    Ok(match bytemuck::try_cast_slice(raw) {
        Ok(words) if !foreign(dtype) => words.into(),
        _ => {
            let mut words = memory::zeros(raw.len() / size_of::<T>())?;
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            bytes.copy_from_slice(raw);
            if foreign(dtype) {
                swap(bytes, size_of::<T>());
            }
            words.into()
        }
    })
}

/// Lets `fill` write numbers into bytes; in between where alignment does not allow it, swapped where the order differs.
fn into_words<T: bytemuck::Pod>(out: &mut [u8], dtype: Dtype, fill: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
    match bytemuck::try_cast_slice_mut(out) {
        Ok(words) => fill(words)?,
        Err(_) => {
            let mut words = memory::zeros(out.len() / size_of::<T>())?;
            fill(&mut words)?;
            out.copy_from_slice(bytemuck::cast_slice(&words));
        }
    }
    if foreign(dtype) {
        swap(out, size_of::<T>());
    }
    Ok(())
}

/// Whether the chunk's numbers are in the other byte order than this machine's.
fn foreign(dtype: Dtype) -> bool {
    dtype.big_endian != cfg!(target_endian = "big")
}

fn swap(bytes: &mut [u8], size: usize) {
    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}
