// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of 16 bits under a bound: IEEE 754 binary16 and bfloat16, by the codecs of f32. FORMAT.md §5.
//!
//! ```text
//! writing   x, 16 bits ──► the same number as f32 ──► codec, half the bound ──► frame that states the type of 16 bits
//! reading   frame ──► codec ──► y, f32 ──► the number of 16 bits nearest to y
//! ```
//!
//! That keeps the bound b. The codec promises abs(x − y) ≤ b/2. Of all numbers of 16 bits, x̂ is nearest to y, and x is
//! one of them: abs(x̂ − y) ≤ abs(x − y). Together abs(x − x̂) ≤ b. The same holds of r · abs(x).
//!
//! `planes` lets no value come back as the fill value. Here that has to be true of x̂: each y whose nearest number is
//! the fill value counts as one.
//!
//! The conversions are written here: those of libraries and of processors set a bit in signalling NaNs, which have to
//! come back as they were, and make infinities of what is larger than the largest number.

use super::chunk::{self, Chunk, Settled};
use super::descriptor::Codec;
use super::{bytes, planes};
use crate::bound::{self, Tolerance, Used};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{self, Frame, Header};
use crate::keep::Keep;
use crate::params::{self, Bound, Dtype, Mode, Params, Request};
use crate::scalar::mul_down;
use crate::{memory, parallel};
use std::ops::RangeInclusive;

/// The type that codecs are given: f32 in this machine's byte order.
const WIDE: Dtype = Dtype { big_endian: cfg!(target_endian = "big"), ..Dtype::F32 };
/// Values that a thread converts at a time.
const PART: usize = 1 << 18;

/// What encodes a chunk of f32: the choice of its codec, and that codec.
pub(super) struct Wide {
    pub(super) settle: fn(&Chunk<'_>) -> Result<Settled>,
    pub(super) encode: fn(&Chunk<'_>, &mut Vec<u8>) -> Result<bool>,
}

/// Encodes a chunk of 16-bit numbers under a bound. False: the chunk is better stored.
pub(super) fn encode(chunk: &Chunk<'_>, by: &Wide, out: &mut Vec<u8>) -> Result<bool> {
    if !encode_wide(chunk, by, out)? {
        return encode_exact(chunk, out);
    }
    // At fine bounds the bytes as they are may take less.
    let mut exact = Vec::new();
    if out.len() > least_exact_len(chunk.raw.len()) && encode_exact(chunk, &mut exact)? && exact.len() <= out.len() {
        *out = exact;
    }
    Ok(true)
}

/// Encodes the numbers without loss: as they are, or as `planes` would give them back where they are never to move.
fn encode_exact(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let params = Params { request: Request::default(), ..*chunk.params };
    if !planes::is_steady(chunk.params, chunk.raw.len()) {
        return bytes::ENCODE(&Chunk { params: &params, ..*chunk }, out);
    }
    let mut settled = memory::zeros(chunk.raw.len())?;
    settled.copy_from_slice(chunk.raw);
    settle_values(chunk.params, &mut settled);
    bytes::ENCODE(&Chunk { params: &params, raw: &settled, ..*chunk }, out)
}

/// Turns each number into what `planes` gives back of it within an absolute bound, in place.
pub(super) fn settle_values(params: &Params, values: &mut [u8]) {
    let range = if bound::follows_range(params.request) { range(params, values) } else { None };
    let used = halved(bound::used(params.request, params.dtype, range));
    let Some(settled) = used.and_then(|used| planes::settler::<f32>(used, near_fill(params))) else { return };
    match params.dtype.is_bfloat16() {
        true => chunk::replace(values, params.dtype, |x| narrow_bfloat16(settled(widen_bfloat16(x)))),
        false => chunk::replace(values, params.dtype, |x| narrow_binary16(settled(widen_binary16(x)))),
    }
}

/// [`bound::range`] of 16-bit numbers.
fn range(params: &Params, values: &[u8]) -> Option<(f64, f64)> {
    let widen = if params.dtype.is_bfloat16() { widen_bfloat16 } else { widen_binary16 };
    let (is_foreign, fill) = (chunk::foreign(params.dtype), wide_params(params).fill);
    let mut wide = [0.0f32; 256];
    let ranges = values.chunks(2 * wide.len()).filter_map(|part| {
        let bits = part.as_chunks().0.iter().map(|bytes| u16::from_ne_bytes(*bytes));
        let bits = bits.map(|bits| if is_foreign { bits.swap_bytes() } else { bits });
        wide.iter_mut().zip(bits).for_each(|(wide, bits)| *wide = widen(bits));
        bound::range(&wide[..part.len() / 2], fill)
    });
    ranges.reduce(|(low, high), (a, z)| (low.min(a), high.max(z)))
}

/// What a GPU is asked, which gets such a chunk as f32: half the bound, where that does not follow from the range.
/// `None`: the CPU's, as bytes of the other order are, and bounds without a half.
pub fn for_kernels(params: &Params, raw_len: usize) -> Option<Params> {
    if !params.lossy_half(raw_len) || chunk::foreign(params.dtype) || params.request.keep != Keep::NONE {
        return None;
    }
    let (mut wide, bound) = (wide_params(params), params.request.bound);
    if !bound.follows_range() {
        wide.request.bound = halved(bound::resolve(bound, || None).into())?.tolerance.into();
    }
    Some(wide)
}

/// The bound that the codec of f32 keeps. `None` where there is no half of it.
pub fn halved(used: Used) -> Option<Used> {
    let tolerance = match used.tolerance {
        Tolerance::Absolute(b) => Tolerance::Absolute(mul_down(0.5, b)),
        Tolerance::PointwiseRelative(r) => Tolerance::PointwiseRelative(mul_down(0.5, r)),
    };
    (tolerance.value() > 0.0).then_some(Used { tolerance, ..used })
}

/// Whether frames of a chunk of f32 stand for the 16-bit numbers as the kernels write them: `planes` has to let none
/// come back as the fill value, for which kernels know one value of f32 alone.
pub fn suits_kernels(asked: &Params, settled: &Params) -> bool {
    let is_planes = settled.request.bound != Bound::Lossless && settled.request.codec == params::Codec::Planes;
    !is_planes || near_fill(asked).is_none()
}

/// Bytes of a chunk's frame beyond which its bytes as they are may take less.
pub fn least_exact_len(raw_len: usize) -> usize {
    raw_len / 2
}

/// Params of the same chunk in f32.
fn wide_params(params: &Params) -> Params {
    let fill = params.fill.map(|bits| match params.dtype.is_bfloat16() {
        true => widen_bfloat16(bits as u16).to_bits().into(),
        false => widen_binary16(bits as u16).to_bits().into(),
    });
    Params { dtype: WIDE, fill, ..*params }
}

/// Bits of all f32 that a reader makes the fill value of. `None` without one, and where it is +0, which `planes` does
/// not set apart.
fn near_fill(params: &Params) -> Option<RangeInclusive<u64>> {
    let fill = params.fill.filter(|&bits| bits != 0)? as u16;
    let (infinity, narrow) = match params.dtype.is_bfloat16() {
        true => (0x7F80, narrow_bfloat16 as fn(f32) -> u16),
        false => (0x7C00, narrow_binary16 as fn(f32) -> u16),
    };
    let (sign, magnitude) = (fill & 0x8000, fill & 0x7FFF);
    if magnitude >= infinity {
        return wide_params(params).fill.map(|bits| bits..=bits);
    }
    // The first positive f32 whose nearest number is not below `least`.
    let first = |least: u16| {
        let (mut below, mut above) = (0, INFINITE);
        while below < above {
            let middle = below.midpoint(above);
            match narrow(f32::from_bits(middle)) < least {
                true => below = middle + 1,
                false => above = middle,
            }
        }
        u64::from(above | u32::from(sign) << 16)
    };
    Some(first(magnitude)..=first(magnitude + 1) - 1)
}

/// Encodes the numbers as f32, within half the bound.
fn encode_wide(chunk: &Chunk<'_>, by: &Wide, out: &mut Vec<u8>) -> Result<bool> {
    let Chunk { params: asked, raw, threads, .. } = *chunk;
    let values = if asked.dtype.is_bfloat16() {
        widened(raw, asked.dtype, threads, widen_bfloat16)?
    } else {
        widened(raw, asked.dtype, threads, widen_binary16)?
    };
    let mut params = wide_params(asked);
    let raw_wide = bytemuck::cast_slice(&values);
    let mut used = Chunk { params: &params, raw: raw_wide, threads, used: None, kept: None }.used::<f32>()?;
    // What stands for a positive number of 16 bits becomes such a number too.
    if let Some(guard) = &mut used.guard {
        guard.least = asked.dtype.least_positive();
    }
    let Some(used) = halved(used) else { return Ok(false) };
    params.request.bound = used.tolerance.into();
    let wide = Chunk { params: &params, raw: raw_wide, threads, used: Some(used), kept: None };
    let Settled { params, .. } = (by.settle)(&wide)?;
    let chunk = Chunk { params: &params, ..wide };
    let is_planes = params.lossy(wide.raw.len()) && params.request.codec == params::Codec::Planes;
    let coded = match near_fill(asked).filter(|_| is_planes) {
        Some(fill) => planes::encode_beside_fill(&chunk, fill, out)?,
        None => (by.encode)(&chunk, out)?,
    };
    if !coded {
        return Ok(false);
    }
    let mode = if params.request.bound == Bound::Lossless { Mode::Lossless } else { asked.request.bound.mode() };
    frame::restate(out, mode, asked.dtype, raw.len(), threads);
    Ok(true)
}

/// Whether a frame's codec holds f32 in place of the 16-bit numbers that its type states.
pub(super) fn is_wide(h: &Header) -> bool {
    h.dtype.is_half() && matches!(h.codec, CodecId::SZX | CodecId::LORENZO | CodecId::PLANES | CodecId::DENSE)
}

/// Such a frame as its codec of f32 reads it.
fn wide_frame<'a>(frame: &Frame<'a>) -> Option<Frame<'a>> {
    let raw_len = frame.header.raw_len.checked_mul(2)?;
    Some(frame.with_header(Header { dtype: WIDE, raw_len, ..frame.header }))
}

/// The same for a GPU. `None`: not such a frame, or of numbers in the other byte order, which the CPU makes.
pub fn frame_for_kernels<'a>(frame: &Frame<'a>) -> Option<Frame<'a>> {
    let is_kernels = is_wide(&frame.header) && !chunk::foreign(frame.header.dtype);
    wide_frame(frame).filter(|_| is_kernels)
}

/// Decodes such a frame into `out`, which has its raw length.
pub(super) fn decode(frame: &Frame<'_>, codec: &Codec, threads: usize, out: &mut [u8]) -> Result<()> {
    let Header { dtype, raw_len, .. } = frame.header;
    let wide = wide_frame(frame).ok_or_else(|| Error::corrupt("header", format!("raw length {raw_len}")))?;
    let mut values: Vec<f32> = memory::zeros(out.len() / 2)?;
    (codec.decode)(&wide, threads, bytemuck::cast_slice_mut(&mut values))?;
    if dtype.is_bfloat16() {
        narrow(&values, dtype, threads, out, narrow_bfloat16)
    } else {
        narrow(&values, dtype, threads, out, narrow_binary16)
    }
}

fn widened(raw: &[u8], dtype: Dtype, threads: usize, widen: impl Fn(u16) -> f32 + Sync) -> Result<Vec<f32>> {
    let (mut values, foreign) = (memory::zeros(raw.len() / 2)?, chunk::foreign(dtype));
    let parts = values.chunks_mut(PART).zip(raw.chunks(2 * PART));
    parallel::try_each(raw.len().div_ceil(2 * PART), parts, threads, |_, (values, raw): (&mut [f32], &[u8])| {
        for (value, bytes) in values.iter_mut().zip(raw.as_chunks().0) {
            let bits = u16::from_ne_bytes(*bytes);
            *value = widen(if foreign { bits.swap_bytes() } else { bits });
        }
        Ok(())
    })?;
    Ok(values)
}

fn narrow(values: &[f32], dtype: Dtype, threads: usize, out: &mut [u8], to: impl Fn(f32) -> u16 + Sync) -> Result<()> {
    let foreign = chunk::foreign(dtype);
    let parts = values.chunks(PART).zip(out.chunks_mut(2 * PART));
    parallel::try_each(values.len().div_ceil(PART), parts, threads, |_, (values, out): (&[f32], &mut [u8])| {
        for (value, bytes) in values.iter().zip(out.as_chunks_mut().0) {
            let bits = to(*value);
            *bytes = u16::to_ne_bytes(if foreign { bits.swap_bytes() } else { bits });
        }
        Ok(())
    })
}

/// Bits of an f32's magnitude from which on it is infinite or NaN.
const INFINITE: u32 = 0x7F80_0000;

fn widen_bfloat16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// To nearest, ties to even; to the largest number instead of infinity.
fn narrow_bfloat16(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7FFF_FFFF);
    if magnitude >= INFINITE {
        return (bits >> 16) as u16;
    }
    let rounded = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
    sign | (rounded as u16).min(0x7F7F)
}

fn widen_binary16(bits: u16) -> f32 {
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7FFF));
    let wide = match magnitude {
        // 2^-24 is the smallest number.
        ..0x0400 => (magnitude as f32 * 2f32.powi(-24)).to_bits(),
        0x0400..0x7C00 => (magnitude << 13) + (112 << 23),
        _ => magnitude << 13 | INFINITE,
    };
    f32::from_bits(sign | wide)
}

/// To nearest, ties to even; to the largest number instead of infinity.
fn narrow_binary16(value: f32) -> u16 {
    /// 2^-14, the smallest normal number.
    const NORMAL: u32 = 0x3880_0000;
    /// 2^23: the sum with a smaller number is rounded to a whole one, which is its lower bits.
    const WHOLE: f32 = 8_388_608.0;
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7FFF_FFFF);
    let narrow = match magnitude {
        ..NORMAL => (f32::from_bits(magnitude) * 2f32.powi(24) + WHOLE).to_bits() - WHOLE.to_bits(),
        NORMAL..INFINITE => ((magnitude + 0x0FFF + (magnitude >> 13 & 1) - (112 << 23)) >> 13).min(0x7BFF),
        _ => 0x7C00 | magnitude >> 13 & 0x03FF,
    };
    sign | narrow as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact, as f64 holds every number of 16 bits.
    fn value(bits: u16, bfloat16: bool) -> f64 {
        if bfloat16 { widen_bfloat16(bits).into() } else { widen_binary16(bits).into() }
    }

    #[test]
    fn every_number_of_16_bits_comes_back() {
        for bits in 0..=u16::MAX {
            assert_eq!(narrow_bfloat16(widen_bfloat16(bits)), bits);
            assert_eq!(narrow_binary16(widen_binary16(bits)), bits);
        }
        let known = [(0x0001, 5.960_464_5e-8), (0x03FF, 6.097_555e-5), (0x0400, 6.103_515_6e-5), (0x3C01, 1.000_976_6)];
        for (bits, x) in known.into_iter().chain([(0x7BFF, 65504.0), (0xC000, -2.0), (0x7C00, f32::INFINITY)]) {
            assert_eq!(widen_binary16(bits), x, "{bits:#x}");
        }
    }

    /// Every f32 between two neighbours goes to the nearer; what lies beyond the largest number goes to it.
    #[test]
    fn the_nearest_number_is_taken() {
        for (bfloat16, infinity) in [(false, 0x7C00u16), (true, 0x7F80)] {
            let narrow = |x: f64| if bfloat16 { narrow_bfloat16(x as f32) } else { narrow_binary16(x as f32) };
            for bits in 0..infinity - 1 {
                let (low, high) = (value(bits, bfloat16), value(bits + 1, bfloat16));
                let middle = low + (high - low) / 2.0;
                let even = bits + (bits & 1);
                assert_eq!((narrow(middle), narrow(-middle)), (even, even | 0x8000), "{bits:#x}");
                // A hair beside the middle, as f32 has it.
                let (below, above) = ((middle as f32).next_down().into(), (middle as f32).next_up().into());
                let want = (bits, bits + 1);
                assert_eq!((narrow(f64::max(below, low)), narrow(f64::min(above, high))), want, "{bits:#x}");
            }
            assert_eq!((narrow(f32::MAX.into()), narrow(f32::MIN.into())), (infinity - 1, (infinity - 1) | 0x8000));
        }
    }

    /// Each of all numbers, with fill values of every kind.
    #[test]
    fn what_becomes_the_fill_value_is_known() {
        for (dtype, infinity) in [(Dtype::F16, 0x7C00), (Dtype::BFLOAT16, 0x7F80)] {
            let narrow = if dtype.is_bfloat16() { narrow_bfloat16 } else { narrow_binary16 };
            for fill in (1..=u16::MAX).filter(|bits| bits % 37 == 0 || bits % 0x400 < 2 || *bits == infinity - 1) {
                let params =
                    Params { fill: Some(fill.into()), ..Params::new(Request::default(), dtype, &[1]).unwrap() };
                let near = near_fill(&params).unwrap();
                let [low, high] = [*near.start(), *near.end()].map(|bits| bits as u32);
                assert!([low, high].iter().all(|&bits| narrow(f32::from_bits(bits)) == fill), "{dtype:?} {fill:#x}");
                if fill & 0x7FFF >= infinity {
                    assert_eq!(low, high);
                    continue;
                }
                // Below a number of the magnitude 0 there is none.
                assert!(low << 1 == 0 || narrow(f32::from_bits(low - 1)) != fill, "{dtype:?} {fill:#x}");
                assert!(high & !(1 << 31) == INFINITE - 1 || narrow(f32::from_bits(high + 1)) != fill, "{fill:#x}");
            }
        }
    }

    /// Under `planes`, in each of its modes, as frames and in chunks that are stored: numbers about a fill value, with
    /// steps of which some multiple lies beside it.
    #[test]
    fn no_number_becomes_the_fill_value() {
        let (mut beside, mut coded) = (0, 0);
        for dtype in [Dtype::F16, Dtype::BFLOAT16] {
            let infinity = if dtype.is_bfloat16() { 0x7F80 } else { 0x7C00 };
            // -0, 1, -1, 100 (or 3.1e-41…), the largest, and some in between.
            for fill in [0x8000u16, 0x3C00, 0xBC00, 0x5640, infinity - 1, 0x0001, 0x8003, 0x3F80, 0xC4CE, 0xE3CE] {
                let around = (0..1 << 12).map(|k: u16| fill.wrapping_add(k % 512).wrapping_sub(256 + k / 512));
                let numbers: Vec<u16> = around.filter(|bits| bits & 0x7FFF < infinity).collect();
                let x = value(fill, dtype.is_bfloat16()).abs().max(1e-7);
                for (bound, k) in
                    [0.3, 0.02, 0.011, 0.004, 0.001].into_iter().flat_map(|b| [(b * x, 0), (b, 1), (b, 2)])
                {
                    let bound =
                        [Bound::Absolute(bound), Bound::Relative(bound), Bound::Psnr(-20.0 * f64::log10(bound))][k];
                    let request = Request::new(params::Codec::Planes, bound);
                    let fill_bits = Some(fill.into());
                    let dims = [numbers.len() as u64];
                    let params = Params { fill: fill_bits, ..Params::new(request, dtype, &dims).unwrap() };
                    let raw: Vec<u8> = numbers.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
                    let cpu = crate::cpu::Cpu::with_threads(1);
                    let frame = cpu.encode(&params, &raw);
                    let back = cpu.decode(&frame, raw.len() as u64).unwrap();
                    let back: Vec<u16> = back.as_chunks().0.iter().map(|b| u16::from_ne_bytes(*b)).collect();
                    coded += u32::from(frame[9] == CodecId::PLANES.0);
                    for (x, y) in numbers.iter().zip(&back) {
                        assert_eq!(*x == fill, *y == fill, "{dtype:?} {bound:?}: {x:#x} became {y:#x}, fill {fill:#x}");
                        beside += u32::from(x != y);
                    }
                    if let Bound::Absolute(b) = bound {
                        let mut settled = raw.clone();
                        settle_values(&params, &mut settled);
                        assert!(settled == bytemuck::cast_slice::<u16, u8>(&back), "{dtype:?} {b} {fill:#x}");
                    }
                }
            }
        }
        assert!(beside > 10_000 && coded > 50, "{beside} {coded}");
    }

    /// What a number becomes under an absolute bound stays as it is from then on, within the bound, each of them.
    #[test]
    fn what_planes_gives_back_stays_and_keeps_the_bound() {
        for dtype in [Dtype::F16, Dtype::BFLOAT16] {
            let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
            let steps = (-16..14).map(|e| f64::exp2(f64::from(e)) * 256.0 / 255.0);
            // Steps that are powers of two, which end midway between numbers, and others.
            for bound in steps.flat_map(|b| [b.next_down(), b, b.next_up(), b * 1.3, b * 1.9]) {
                for (fill, keep) in
                    [(None, Keep::NONE), (Some(0x4410), Keep::SIGN), (None, Keep::SIGN), (Some(0xBC00), Keep::NONE)]
                {
                    let request = Request::new(crate::params::Codec::Planes, Bound::Absolute(bound));
                    let params = Params::new(Request { keep, ..request }, dtype, &[1 << 16]).unwrap();
                    let params = Params { fill, ..params };
                    let mut once = numbers.clone();
                    settle_values(&params, &mut once);
                    let mut twice = once.clone();
                    settle_values(&params, &mut twice);
                    assert_eq!(once, twice, "{dtype:?} {bound}");
                    for (x, y) in (0..=u16::MAX).zip(once.as_chunks().0) {
                        let [x, y] = [x, u16::from_ne_bytes(*y)].map(|bits| value(bits, dtype.is_bfloat16()));
                        assert!(x == y || (x - y).abs() <= bound || x.is_nan() && y.is_nan(), "{dtype:?} {bound} {x}");
                        let is_sign = (x > 0.0, x < 0.0) == (y > 0.0, y < 0.0);
                        assert!(is_sign || keep == Keep::NONE, "{dtype:?} {bound}: {x} became {y}");
                    }
                }
            }
        }
    }
}
