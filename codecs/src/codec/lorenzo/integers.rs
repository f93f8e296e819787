// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integers without loss, as f64. §5 of the frame's FORMAT.md.
//!
//! ```text
//! writing   x, integer ──► the same number as f64, tile by tile ──► bound ½ ──► frame that states the integers' type
//! reading   frame ──► tile by tile y, f64 ──► the integer nearest to y
//! ```
//!
//! Quanta under the bound ½ are the integers themselves. Lorenzo prediction gives them back as they are; interpolation
//! goes by 257ths and is off by 128 of them at most, which is less than ½ as long as f64 has digits enough behind the
//! point: below [`LARGEST`].

use super::cpu;
use super::encode::{Numbers, Source};
use crate::bound::{Tolerance, Used};
use crate::codec::chunk::{self, Chunk};
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::frame::{Frame, Header};
use crate::params::{Bound, Class, Codec, Dtype, Mode, Params, Request};

/// The type that the codec is given: f64 in this machine's byte order.
const WIDE: Dtype = Dtype { big_endian: cfg!(target_endian = "big"), ..Dtype::F64 };
/// Its bound.
const HALF: f64 = 0.5;
/// No integer but the special one is larger.
const LARGEST: f64 = (1u64 << 40) as f64;

/// An integer type.
trait Integer: bytemuck::Pod + Sync + Send {
    fn wide(self) -> f64;
    /// The lowest bytes of this number.
    fn from_low_bytes(nearest: i64) -> Self;
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl Integer for $t {
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn from_low_bytes(nearest: i64) -> Self {
                nearest as $t
            }
        }
    )*};
}
integer!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Calls a function for the integers of a type.
macro_rules! for_type {
    ($dtype:expr, $f:ident($($argument:expr),*)) => {
        match ($dtype.size, $dtype.signed) {
            (1, true) => $f::<i8>($($argument),*),
            (1, false) => $f::<u8>($($argument),*),
            (2, true) => $f::<i16>($($argument),*),
            (2, false) => $f::<u16>($($argument),*),
            (4, true) => $f::<i32>($($argument),*),
            (4, false) => $f::<u32>($($argument),*),
            (_, true) => $f::<i64>($($argument),*),
            (_, false) => $f::<u64>($($argument),*),
        }
    };
}

/// Encodes a chunk of integers of 1, 2, 4 or 8 bytes. `special`, as f64: the integer that is an outlier wherever it is.
/// False: the chunk is better kept otherwise.
pub(crate) fn encode(chunk: &Chunk<'_>, special: Option<f64>, out: &mut Vec<u8>) -> Result<bool> {
    for_type!(chunk.params.dtype, encode_type(chunk, special, out))
}

fn encode_type<N: Integer>(chunk: &Chunk<'_>, special: Option<f64>, out: &mut Vec<u8>) -> Result<bool> {
    let encode =
        |values: &dyn Source<f64>, wide: &Chunk<'_>, used, header| cpu::encode_source(values, wide, used, header, out);
    Ok(as_source::<N, _>(chunk, special, encode)?.unwrap_or(false))
}

/// Length of the frame that [`encode`] makes, which is not made. `None`: of none.
pub(crate) fn frame_len(chunk: &Chunk<'_>, special: Option<f64>) -> Result<Option<usize>> {
    for_type!(chunk.params.dtype, frame_len_of_type(chunk, special))
}

fn frame_len_of_type<N: Integer>(chunk: &Chunk<'_>, special: Option<f64>) -> Result<Option<usize>> {
    Ok(as_source::<N, _>(chunk, special, cpu::source_len)?.flatten())
}

/// Gives `work` a chunk's integers as f64, the chunk, its bound and its header. `None`: an integer is too large.
fn as_source<N: Integer, R>(
    chunk: &Chunk<'_>,
    special: Option<f64>,
    work: impl FnOnce(&dyn Source<f64>, &Chunk<'_>, Used, Header) -> Result<R>,
) -> Result<Option<R>> {
    let numbers = chunk.values::<N>()?;
    let fits = |x: f64| x.abs() <= LARGEST || Some(x) == special;
    if size_of::<N>() == 8 && !numbers.iter().all(|x| fits(x.wide())) {
        return Ok(None);
    }
    let params = Params { fill: special.map(f64::to_bits), ..*chunk.params };
    let (wide, header) = (Chunk { params: &params, ..*chunk }, chunk.header(CodecId::LORENZO, None));
    work(&Numbers(&numbers, N::wide), &wide, Tolerance::Absolute(HALF).into(), header).map(Some)
}

/// The params of a chunk of integers as those of f64 under the bound; `None`: it is no such chunk.
pub fn as_f64(params: &Params) -> Option<Params> {
    let request = Request::new(Codec::Lorenzo, Bound::Absolute(HALF));
    (params.dtype.class == Class::Integer).then_some(Params { request, dtype: WIDE, fill: None, ..*params })
}

/// Whether a frame's codec holds f64 in place of the integers that its type states.
pub fn is_wide(h: &Header) -> bool {
    h.codec == CodecId::LORENZO
        && h.mode == Mode::Lossless
        && h.dtype.class == Class::Integer
        && matches!(h.dtype.size, 1 | 2 | 4 | 8)
}

/// Decodes such a frame into `out`, which has its raw length.
pub(super) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    for_type!(frame.header.dtype, decode_type(frame, threads, out))
}

/// The header of a frame of f64 with the same sections.
pub fn wide_header(frame: &Frame<'_>) -> Result<Header> {
    let raw_len = (frame.elements(frame.header.dtype.size.into())? * size_of::<f64>()) as u64;
    Ok(Header { dtype: WIDE, raw_len, mode: Mode::Absolute, used: HALF, ..frame.header })
}

fn decode_type<N: Integer>(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let header = wide_header(frame)?;
    chunk::into_values(out, frame.header.dtype, |numbers: &mut [N]| {
        cpu::decode_into(
            &frame.with_header(header),
            threads,
            numbers,
            #[inline(always)]
            |row, values| narrow(row, values),
        )
    })
}

/// The integers nearest to values.
#[inline(always)]
fn narrow<N: Integer>(row: &mut [N], values: &[f64]) {
    /// The sum with a number below 2^51 is rounded to a whole one, which is its lower bits.
    const ROUNDING: f64 = (3u64 << 51) as f64;
    let mut small = true;
    for (n, y) in row.iter_mut().zip(values) {
        small &= y.abs() < (1u64 << 51) as f64;
        *n = N::from_low_bytes((y + ROUNDING).to_bits().wrapping_sub(ROUNDING.to_bits()) as i64);
    }
    if !small {
        // `as` takes what is beyond i64 to its ends, and NaN to 0.
        row.iter_mut().zip(values).for_each(|(n, y)| *n = N::from_low_bytes(y.round_ties_even() as i64));
    }
}
