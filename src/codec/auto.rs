// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which lossy codec encodes a chunk where the user leaves it to the writer (C = 0): `lorenzo` where a sample says that it
//! at least halves what `szx` would write, else `szx`, which is several times as fast. What neither makes smaller than
//! the raw bytes is stored.
//!
//! The sample is rows of 128 values with their neighbours along every axis, spread over the chunk. `szx` encodes the rows;
//! `lorenzo` quantises them and estimates the best of its differences, without interpolation, both under the bound used
//! on the chunk: the sample's own range would miss bursts, which make a relative bound a wide one everywhere else. The
//! rule depends on the values and the words alone, and so is the same on every backend.

use super::chunk::Chunk;
use super::{lorenzo, szx};
use crate::bound::Used;
use crate::codec_id::CodecId;
use crate::constants::{CHECKSUM_STEP, SZX_BLOCK};
use crate::error::Result;
use crate::memory;
use crate::scalar::{Bits, Scalar};
use crate::simd::vectorize;
use crate::stage::quantize::bridge;
use crate::stage::tiles::Grid;
use crate::stage::{estimate, lorenzo as differences};

/// Chunks of fewer values are szx's: a codebook and tiles of thousands of values do not pay there.
const LEAST_VALUES: usize = 1 << 14;
/// Values of the chunk for each row of the sample; rows there are at least, and at most.
const VALUES_PER_ROW: usize = 1 << 14;
const ROWS: std::ops::RangeInclusive<usize> = 8..=64;
/// How many times smaller than szx lorenzo must be.
const GAIN: u64 = 2;
/// Values of a row and the one before it.
const ROW: usize = SZX_BLOCK + 1;

/// The codec for a chunk, and the bound used where choosing took it.
pub(super) fn choose<S: Scalar>(chunk: &Chunk<'_>) -> Result<(CodecId, Option<Used>)> {
    let Chunk { params, raw, .. } = *chunk;
    let unseen = (CodecId::SZX, None);
    let n = raw.len() / S::SIZE;
    let Some(extents) = Grid::new(params.extents.as_slice(), 1).map(|g| g.extents()) else {
        return Ok(unseen);
    };
    let [a, b, c] = extents;
    // The neighbours of a row: itself, above, behind, and both.
    let back = if a > 1 { b * c } else { 0 };
    let up = if b > 1 { c } else { 0 };
    let offsets = [0, up, back, up + back];
    let first = 1 + up + back;
    if n < LEAST_VALUES || n < first + 2 * ROW {
        return Ok(unseen);
    }
    let value = |i: usize| -> S {
        let mut bytes = [0; 8];
        let from = &raw[i * S::SIZE..][..S::SIZE];
        bytes[..S::SIZE].copy_from_slice(from);
        if params.dtype.big_endian {
            bytes[..S::SIZE].reverse();
        }
        S::of_bits(S::Bits::from_u64(u64::from_le_bytes(bytes)))
    };
    let rows = (n / VALUES_PER_ROW).clamp(*ROWS.start(), *ROWS.end());
    let stretch = (n - first - SZX_BLOCK) / rows;
    let part = || memory::with_capacity(rows * ROW);
    let mut parts: [Vec<S>; 4] = [part()?, part()?, part()?, part()?];
    let mut blocks = memory::with_capacity(rows * SZX_BLOCK)?;
    for k in 0..rows {
        // An offset that no period of the data follows.
        let jitter = ((k as u64).wrapping_mul(CHECKSUM_STEP) >> 40) as usize % stretch.max(1);
        let at = first + k * stretch + jitter;
        for (part, offset) in parts.iter_mut().zip(offsets) {
            part.extend((at - offset - 1..at - offset + SZX_BLOCK).map(value));
        }
        blocks.extend_from_slice(&parts[0][k * ROW + 1..]);
    }
    let used = chunk.used::<S>()?;
    let plain = szx::cpu::payload_len(&blocks, used, params.fill)?;
    let better = vectorize(
        #[inline(always)]
        || estimate_lorenzo(&parts, [up > 0, back > 0], used, params.fill),
    )?;
    Ok((if GAIN * better <= 8 * plain as u64 { CodecId::LORENZO } else { CodecId::SZX }, Some(used)))
}

/// Bits of the rows under the cheapest set of differences.
#[inline(always)]
fn estimate_lorenzo<S: Scalar>(
    parts: &[Vec<S>; 4],
    [up, back]: [bool; 2],
    used: Used,
    fill: Option<u64>,
) -> Result<u64> {
    let quantizer = lorenzo::quantizer::<S>(used);
    let fill = fill.map(S::Bits::from_u64);
    let n = parts[0].len();
    let mut regular = memory::zeros(n)?;
    let mut exact = 0;
    let zeros = || memory::zeros(n);
    let mut quanta: [Vec<i32>; 4] = [zeros()?, zeros()?, zeros()?, zeros()?];
    for (k, (q, x)) in quanta.iter_mut().zip(parts).enumerate() {
        if quantizer.quantize(x, fill, q, &mut regular).outliers {
            bridge(q, &regular, ROW);
            if k == 0 {
                // Runs of equal outliers are stored once.
                let first = |i: usize| i == 0 || regular[i - 1] != 0 || x[i - 1].bits() != x[i].bits();
                exact = (0..n).filter(|&i| regular[i] == 0 && first(i)).count();
            }
        }
    }
    let mut bits = memory::zeros(n)?;
    let (mut residuals, mut steps) = (zeros()?, zeros()?);
    let mut best = u64::MAX;
    for (up_too, back_too) in [(false, false), (true, false), (false, true), (true, true)] {
        if (up_too && !up) || (back_too && !back) {
            continue;
        }
        let (y, z) = (i32::from(up_too), i32::from(back_too));
        for (i, r) in residuals.iter_mut().enumerate() {
            let (above, behind, both) = (quanta[1][i], quanta[2][i], quanta[3][i]);
            let across =
                both.wrapping_mul(y * z).wrapping_sub(above.wrapping_mul(y)).wrapping_sub(behind.wrapping_mul(z));
            *r = quanta[0][i].wrapping_add(across);
        }
        differences::rows(&residuals, ROW, &mut steps);
        for r in [&mut residuals, &mut steps] {
            // Only there for its difference.
            r.iter_mut().step_by(ROW).for_each(|r| *r = 0);
            best = best.min(estimate::cost(r, &mut bits));
        }
    }
    Ok((best >> 8) + exact as u64 * (32 + 8 * S::SIZE as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Bound, Codec, Dtype, Params, Request};

    const LORENZO: CodecId = CodecId::LORENZO;
    const SZX: CodecId = CodecId::SZX;

    fn chosen(dims: &[u64], bound: Bound, f: impl Fn(usize) -> f32) -> CodecId {
        let params = Params::new(Request { bound, ..Request::default() }, Dtype::F32, dims).unwrap();
        let raw: Vec<u8> = (0..dims.iter().product::<u64>() as usize).flat_map(|i| f(i).to_le_bytes()).collect();
        choose::<f32>(&chunk(&params, &raw, 1)).unwrap().0
    }

    fn chunk<'a>(params: &'a Params, raw: &'a [u8], threads: usize) -> Chunk<'a> {
        Chunk { params, raw, threads, used: None }
    }

    fn noise(i: usize) -> f32 {
        let h = (i as u32).wrapping_mul(0x9e37_79b9);
        (h ^ h >> 15).wrapping_mul(0x85eb_ca6b) as f32 / u32::MAX as f32
    }

    #[test]
    fn smooth_fields_are_lorenzo_s_and_noise_is_szx_s() {
        let wave = |i: usize| ((i % 128) as f32 * 0.05).sin() + ((i / 128) as f32 * 0.03).cos();
        for bound in [Bound::Absolute(1e-3), Bound::Relative(1e-3), Bound::Psnr(60.0)] {
            assert_eq!(chosen(&[256, 128], bound, wave), LORENZO, "{bound:?}");
            assert_eq!(chosen(&[256, 128], bound, noise), SZX, "{bound:?}");
        }
        assert_eq!(chosen(&[64, 128], Bound::Absolute(1e-3), wave), SZX, "too few values");
        assert_eq!(chosen(&[256, 128], Bound::PointwiseRelative(1e-4), |i| 300.0 + wave(i)), LORENZO);
    }

    #[test]
    fn a_burst_outside_the_sample_makes_the_bound() {
        let dims = [600u64, 1000];
        let n = 600_000;
        let calm = |i: usize| ((i % 1000) as f32 * 0.01).sin() * 10.0 + noise(i) * 0.1;
        for bound in [Bound::Relative(1e-4), Bound::Psnr(80.0)] {
            assert_eq!(chosen(&dims, bound, calm), SZX, "{bound:?}");
            for at in [0, n / 2, n - 1] {
                let burst = |i: usize| if i == at { 1e4 } else { calm(i) };
                assert_eq!(chosen(&dims, bound, burst), LORENZO, "{bound:?}, value {at}");
            }
        }
    }

    #[test]
    fn frames_are_what_the_chosen_codec_writes_alone() {
        let value = |i: usize| (i as f32 * 0.01).sin() + noise(i) * 0.01;
        let raw: Vec<u8> = (0..300_000).flat_map(|i| value(i).to_le_bytes()).collect();
        let codecs = [1e-2, 1e-5].map(|r| {
            let auto = Request { bound: Bound::Relative(r), ..Request::default() };
            let params = Params::new(auto, Dtype::F32, &[300, 1000]).unwrap();
            let choice = crate::codec::choose(&chunk(&params, &raw, 2)).unwrap();
            let codec = if choice.codec == LORENZO { Codec::Lorenzo } else { Codec::Szx };
            let alone = Params::new(Request { codec, ..auto }, Dtype::F32, &[300, 1000]).unwrap();
            let frame = |params: &Params| {
                let mut out = Vec::new();
                let chunk = chunk(params, &raw, 3);
                let choice = crate::codec::choose(&chunk).unwrap();
                assert_eq!(crate::codec::encode(choice, &chunk, &mut out), Ok(true));
                out
            };
            assert_eq!(frame(&params), frame(&alone));
            choice.codec
        });
        assert_eq!(codecs, [LORENZO, SZX]);
    }

    #[test]
    fn the_choice_is_the_same_in_either_byte_order_and_anywhere_in_memory() {
        let values: Vec<f64> =
            (0..1usize << 15).map(|i| f64::from(i as u32 % 256) * 0.01 + f64::from(noise(i))).collect();
        for b in [1e-6, 1e-3, 0.1, 1.0, 10.0] {
            let mut params =
                Params::new(Request { bound: Bound::Absolute(b), ..Request::default() }, Dtype::F64, &[128, 256])
                    .unwrap();
            let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let little = choose::<f64>(&chunk(&params, &raw, 1));
            let mut shifted = vec![0];
            shifted.extend(&raw);
            assert_eq!(choose::<f64>(&chunk(&params, &shifted[1..], 2)), little);
            params.dtype.big_endian = true;
            let raw: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
            assert_eq!(choose::<f64>(&chunk(&params, &raw, 1)), little);
        }
    }
}
