// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which axes of a chunk of four and more a codec of three sees as one.
//!
//! ```text
//! chunk      a × b × y × x: its first axis, the others but two, the last two
//! kept       ab × y × x      its values as they are: along the slowest axis b goes on, and every b steps a
//! swapped    ba × y × x      a goes on instead: a and b exchanged in memory, and in the frame (FORMAT.md §5)
//! flat       a × b × yx      both go on, and the rows of a plane are one row   } `lorenzo` alone: tiles of `planes`
//! stacked    a × by × x      a goes on, and the planes of a step are one       } have fixed sides
//! sample     16 to 64 boxes of 2 × 2 × 2 × 33 values, as the integers that predictors see
//! cost       bits of the differences along each set of the four axes. What an order costs: the best set of axes that
//!            it has, where a tile's first values, and those where a step of the merged axis is none of its last axis,
//!            go without the axis
//! rule       the order of the least cost, if that is a 128th less than as it is
//! ```
//!
//! Codecs merge leading axes (of `planes` and `lorenzo` §3.1), so the second axis is predicted and the first is not.
//! Levels of an atmosphere are less alike than one level at two times.

use super::chunk::values;
use crate::bound::{self, Tolerance};
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::params::{Bound, Class, Codec, Extents, Params};
use crate::scalar::{Bits, Scalar};
use crate::stage::estimate;
use crate::stage::tiles::Grid;
use crate::{memory, parallel};

/// Boxes of a sample, values of a chunk for each, and values of a box's row at most.
const BOXES: std::ops::RangeInclusive<usize> = 16..=64;
const VALUES_PER_BOX: usize = 2048;
const WIDTH: usize = 33;
/// Values of a chunk that is worth a look.
const SMALL_CHUNK_VALUES: usize = 1 << 14;
/// Box k is at k times these fractions (over 2^64, modulo 1) of the axes: powers of 1 / g, g^5 = g + 1.
const PLACES: [u64; 4] = [0xDB4F_0B9A_5D4D_9E5F, 0xBBE0_5633_03A4_615F, 0xA0F2_EC75_A1FE_1575, 0x89E1_8285_7D9E_D689];

/// Axes, as bits of a set.
const X: u8 = 1;
const Y: u8 = 2;
const B: u8 = 4;
const A: u8 = 8;

/// What differences along each set of axes cost: codecs of one request have it in common.
#[derive(Default, Clone, Copy)]
pub struct Costs {
    /// Under which bound, and whether in bits of an entropy coder; `None`: that is not known yet.
    of: Option<(Bound, bool)>,
    /// `None`: the bound leaves no difference.
    bits: Option<[f64; 16]>,
}

/// The values by which a chunk's order is chosen.
pub struct Boxes {
    /// Extents a, b, y, x.
    extents: [usize; 4],
    /// Values from one to the next along each axis.
    pub steps: [usize; 4],
    /// Extents of a box.
    pub part: [usize; 4],
    /// Places of the boxes' first values in the chunk.
    pub starts: Vec<usize>,
}

/// Whether an order is to be chosen for a chunk of `raw_len` bytes: it has four axes or more, and a codec with tiles.
pub fn is_open(params: &Params, raw_len: usize) -> bool {
    let (dtype, codec) = (params.dtype, params.request.codec);
    let has_tiles = match params.lossy(raw_len) {
        true => codec != Codec::Szx,
        false => {
            dtype.class != Class::Bytes && matches!(dtype.size, 4 | 8) && codec != Codec::Ndzip || dtype.is_short()
        }
    };
    let dims = params.extents.as_slice();
    let many = dims.len() >= 4 && raw_len / usize::from(dtype.size).max(1) >= SMALL_CHUNK_VALUES;
    many && has_tiles && !params.extents.is_swapped() && params.fits(raw_len) && !params.lossy_half(raw_len)
}

impl Boxes {
    /// The sample of a chunk of `raw_len` bytes. `None` if there is nothing to choose.
    pub fn new(params: &Params, raw_len: usize) -> Option<Boxes> {
        let [a, ref others @ .., y, x] = *params.extents.as_slice() else { return None };
        if !is_open(params, raw_len) {
            return None;
        }
        let [a, y, x] = [a, y, x].map(|n| n as usize);
        let extents = [a, others.iter().map(|&n| n as usize).product(), y, x];
        let steps = [extents[1] * y * x, y * x, x, 1];
        let part = [2, 2, 2, x.min(WIDTH)];
        let boxes = (extents.iter().product::<usize>() / VALUES_PER_BOX).clamp(*BOXES.start(), *BOXES.end());
        let start = |k: usize| {
            let at = |d: usize| {
                let place = PLACES[d].wrapping_mul(k as u64 + 1);
                ((u128::from(place) * (extents[d] - part[d] + 1) as u128) >> 64) as usize * steps[d]
            };
            (0..4).map(at).sum()
        };
        Some(Boxes { extents, steps, part, starts: (0..boxes).map(start).collect() })
    }

    /// Values of all boxes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.starts.len() * self.part.iter().product::<usize>()
    }

    /// The boxes' values out of a chunk of values of `size` bytes, one box behind the other.
    fn gather(&self, raw: &[u8], size: usize) -> Vec<u8> {
        let [sa, sb, sy, _] = self.steps;
        let rows = (0..8).map(|k: usize| (k >> 2) * sa + (k >> 1 & 1) * sb + (k & 1) * sy);
        let all = self.starts.iter().flat_map(|start| rows.clone().map(move |row| (start + row) * size));
        all.flat_map(|at| &raw[at..at + self.part[3] * size]).copied().collect()
    }

    /// The extents that the chunk's codec is given, by the values of the boxes.
    pub fn choose(&self, params: &Params, sample: &[u8], known: &mut Costs) -> Result<Extents> {
        let kept = params.extents;
        let raw_len = self.extents.iter().product::<usize>() * usize::from(params.dtype.size);
        if !is_open(params, raw_len) {
            // The boxes are of a request that left the codec open; that which was chosen since has no tiles.
            return Ok(kept);
        }
        let is_lossy = params.lossy(raw_len);
        let may_be_flat = is_lossy && matches!(params.request.codec, Codec::Lorenzo | Codec::Dense);
        let of = (params.request.bound, is_lossy && params.request.codec != Codec::Planes);
        if known.of != Some(of) {
            let bits = numbers(params, sample, is_lossy)?.map(|numbers| self.costs(&numbers, of.1));
            *known = Costs { of: Some(of), bits };
        }
        let Some(costs) = known.bits else { return Ok(kept) };
        let [a, b, y, x] = self.extents;
        let new = |dims: &[usize]| Extents::new(&dims.iter().map(|&n| n as u64).collect::<Vec<_>>());
        let orders = [
            (Some(kept), [(B, 1.0 / b as f64), (Y, 0.0), (X, 0.0)]),
            (new(&[b, a, y, x]).and_then(Extents::swapped), [(A, 1.0 / a as f64), (Y, 0.0), (X, 0.0)]),
            (new(&[a, b, y * x]).filter(|_| may_be_flat), [(A, 0.0), (B, 0.0), (X, 1.0 / x as f64)]),
            (new(&[a, b * y, x]).filter(|_| may_be_flat), [(A, 0.0), (Y, 1.0 / y as f64), (X, 0.0)]),
        ];
        let mut best: Option<(f64, Extents)> = None;
        for (extents, axes) in orders {
            let Some((extents, grid)) = extents.and_then(|e| Some((e, Grid::new(e.as_slice(), LORENZO_TILE)?))) else {
                continue;
            };
            let sides = grid.tile_sides();
            let without = std::array::from_fn(|k| (axes[k].0, (axes[k].1 + 1.0 / sides[k] as f64).min(1.0)));
            let cost = least(&costs, without);
            if best.is_none_or(|(least, first)| cost < if first == kept { least * 127.0 / 128.0 } else { least }) {
                best = Some((cost, extents));
            }
        }
        Ok(best.map_or(kept, |best| best.1))
    }

    /// Bits that the differences along each set of axes cost, in 1/256.
    fn costs(&self, numbers: &[i32], is_lossy: bool) -> [f64; 16] {
        let mut bits = vec![0; numbers.len()];
        let length = |&d: &i32| u64::from(32 - ((d << 1) ^ (d >> 31)).leading_zeros()) << 8;
        self.differences(numbers).map(|differences| match is_lossy {
            true => estimate::cost(&differences, &mut bits) as f64,
            false => differences.iter().map(length).sum::<u64>() as f64,
        })
    }

    /// Along each set of axes the differences that end in the last rows of the boxes, but for the first value of each.
    fn differences(&self, numbers: &[i32]) -> [Vec<i32>; 16] {
        let width = self.part[3];
        let mut all: [Vec<i32>; 16] = std::array::from_fn(|_| Vec::with_capacity(self.starts.len() * width));
        for values in numbers.chunks_exact(8 * width) {
            let mut rows = values.to_vec();
            // Row k of 8 becomes the last row, less the one before it along the axes that the bits of k name.
            for (bit, row) in [1, 2, 4].into_iter().flat_map(|bit| (0..8).map(move |row| (bit, row))) {
                if row & bit == 0 {
                    let (before, last) = rows.split_at_mut((row | bit) * width);
                    for (before, last) in before[row * width..][..width].iter_mut().zip(&mut last[..width]) {
                        (*before, *last) = (*last, last.wrapping_sub(*before));
                    }
                }
            }
            for (k, row) in rows.chunks_exact(width).enumerate() {
                all[2 * k].extend(&row[1..]);
                all[2 * k + 1].extend(row.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
            }
        }
        all
    }
}

/// The extents that the codec of a chunk is given; such as suit all where the request leaves the codec open.
pub(crate) fn choose(params: &Params, raw: &[u8], known: &mut Costs) -> Result<Extents> {
    match Boxes::new(params, raw.len()) {
        Some(boxes) => boxes.choose(params, &boxes.gather(raw, params.dtype.size.into()), known),
        None => Ok(params.extents),
    }
}

/// The cost of the best set of these axes; for each the part of the values that go without it.
fn least(costs: &[f64; 16], axes: [(u8, f64); 3]) -> f64 {
    let cost = |set: usize| {
        let parts = (0..8usize).filter(|part| part & !set == 0);
        parts.fold(0.0, |sum, part| {
            let (mut share, mut of) = (1.0, 0);
            for (k, &(axis, without)) in axes.iter().enumerate().filter(|(k, _)| set >> k & 1 == 1) {
                share *= if part >> k & 1 == 1 { 1.0 - without } else { without };
                of |= if part >> k & 1 == 1 { axis } else { 0 };
            }
            sum + share * costs[usize::from(of)]
        })
    };
    (0..8).map(cost).fold(f64::INFINITY, f64::min)
}

/// Values as the integers that predictors see: quanta under a bound, else what has the values' order. `None` where the
/// bound leaves no difference.
fn numbers(params: &Params, sample: &[u8], is_lossy: bool) -> Result<Option<Vec<i32>>> {
    let dtype = params.dtype;
    Ok(Some(match (is_lossy, dtype.size) {
        (true, 4) => return quanta(params, &values::<f32>(sample, dtype)?),
        (true, _) => return quanta(params, &values::<f64>(sample, dtype)?),
        (false, 1) => sample.iter().map(|&b| i32::from(b)).collect(),
        (false, 2) => values::<u16>(sample, dtype)?.iter().map(|&v| i32::from(v)).collect(),
        (false, 4) if dtype.class == Class::Float => {
            values::<f32>(sample, dtype)?.iter().map(|&v| ordered(v)).collect()
        }
        (false, 4) => values::<i32>(sample, dtype)?.to_vec(),
        (false, _) if dtype.class == Class::Float => {
            values::<f64>(sample, dtype)?.iter().map(|&v| ordered(v)).collect()
        }
        // The lower half: integers of 8 bytes are mostly small.
        (false, _) => values::<u64>(sample, dtype)?.iter().map(|&v| v as i32).collect(),
    }))
}

/// An integer that has the order of the number; of 8 bytes the upper half, for the lower one costs every order as much.
fn ordered<S: Scalar>(value: S) -> i32 {
    let bits = (value.bits().to_u64() >> (8 * S::SIZE - 32)) as i32;
    bits ^ (bits >> 31 & i32::MAX)
}

/// Values in steps of twice the bound, which is taken from the sample's range where it is relative; under a pointwise
/// relative bound in about as many steps of their order.
fn quanta<S: Scalar>(params: &Params, values: &[S]) -> Result<Option<Vec<i32>>> {
    Ok(match bound::resolve(params.request.bound, || bound::range(values, params.fill)) {
        Tolerance::Absolute(b) => {
            let inverse = 0.5 / b;
            let quantum = |&v: &S| (v.to_f64() * inverse).round_ties_even() as i32;
            inverse.is_finite().then(|| values.iter().map(quantum).collect())
        }
        Tolerance::PointwiseRelative(r) => {
            let step = (r * (1u64 << (S::MANTISSA + 1 - (8 * S::SIZE as u32 - 32))) as f64) as u32;
            Some(values.iter().map(|&v| ordered(v) >> step.max(1).ilog2()).collect())
        }
    })
}

/// The chunk's values as its codec wants them, whose extents have the first two axes exchanged.
pub(crate) fn swapped(extents: &Extents, raw: &[u8], threads: usize) -> Result<Vec<u8>> {
    let mut coded = memory::zeros(raw.len())?;
    let [first, second, ..] = *extents.as_slice() else { unreachable!("two axes are exchanged") };
    transpose(raw, &mut coded, [second, first], threads)?;
    Ok(coded)
}

/// The chunk's values, of what its codec has decoded.
pub(crate) fn restore(extents: &Extents, coded: &[u8], out: &mut [u8], threads: usize) -> Result<()> {
    let [first, second, ..] = *extents.as_slice() else { unreachable!("two axes are exchanged") };
    transpose(coded, out, [first, second], threads)
}

/// Whether the two exchanged axes are whole axes of the chunk, which a frame of another writer need not say.
pub fn is_of_axes(extents: &Extents, chunk: &[u64]) -> bool {
    let [first, second, ..] = extents.as_slice() else { return false };
    let ends = |n: u64| (0..=chunk.len()).any(|k| chunk[..k].iter().product::<u64>() == n);
    ends(u64::from(*second)) && ends(u64::from(*second) * u64::from(*first))
}

/// Bytes from one value to the next along each axis of a chunk, in the order that its codec wants: `steps` in its own.
/// Only where [`is_of_axes`] is true.
pub fn swap_steps(extents: &Extents, chunk: &[u64], steps: &mut [isize]) {
    let [first, second, ..] = *extents.as_slice() else { unreachable!("two axes are exchanged") };
    let mut before = 1;
    for (&n, step) in chunk.iter().zip(steps) {
        match before {
            _ if before < u64::from(second) => *step /= first as isize,
            _ if before < u64::from(second) * u64::from(first) => *step *= second as isize,
            _ => {}
        }
        before *= n;
    }
}

/// Exchanges the axes of an array of these extents, whose elements are all bytes that there are for one.
fn transpose(from: &[u8], to: &mut [u8], extents: [u32; 2], threads: usize) -> Result<()> {
    /// Bytes for which a thread is worth its start.
    const THREAD_BYTES: usize = 1 << 20;
    let [rows, columns] = extents.map(|n| n as usize);
    let element = from.len() / (rows * columns);
    if element == 0 {
        return Ok(());
    }
    let many = (THREAD_BYTES / (rows * element)).max(1);
    let parts = to.chunks_mut(many * rows * element);
    parallel::try_each(columns.div_ceil(many), parts, threads, |part, to: &mut [u8]| {
        for (line, to) in to.chunks_mut(rows * element).enumerate() {
            for (row, to) in to.chunks_exact_mut(element).enumerate() {
                to.copy_from_slice(&from[(row * columns + part * many + line) * element..][..element]);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec_id::CodecId;
    use crate::params::{Bound, Dtype, Request};
    use crate::{Cpu, DecodeJob, frame};

    /// a × b × y × x values that change little along a and x, more along y and much along b.
    fn field(dims: [usize; 4]) -> Vec<f32> {
        let [a, b, y, x] = dims;
        let at = |i: usize| [i / (b * y * x), i / (y * x) % b, i / x % y, i % x].map(|k| k as f32);
        let value = |[t, z, y, x]: [f32; 4]| (z * 7.1 + (t + x) * 0.05).sin() * 40.0 + (y * 0.3 + z * z).cos();
        (0..a * b * y * x).map(|i| value(at(i))).collect()
    }

    fn params(codec: Codec, bound: Bound, dtype: Dtype, dims: &[u64]) -> Params {
        Params::new(Request::new(codec, bound), dtype, dims).unwrap()
    }

    #[test]
    fn what_was_exchanged_comes_back() {
        for (rows, columns, element) in [(1, 5, 3), (4, 1, 8), (7, 3, 1), (300, 700, 12), (2, 3, 1 << 20)] {
            let raw: Vec<u8> = (0..rows * columns * element).map(|i| (i * 31 % 251) as u8).collect();
            for threads in [1, 3] {
                let (mut there, mut back) = (vec![0; raw.len()], vec![0; raw.len()]);
                transpose(&raw, &mut there, [rows as u32, columns as u32], threads).unwrap();
                transpose(&there, &mut back, [columns as u32, rows as u32], threads).unwrap();
                assert!(back == raw && (rows.min(columns) == 1 || there != raw));
                assert_eq!(there[..element], raw[..element]);
                assert_eq!(there[(rows - 1) * element..][..element], raw[(rows - 1) * columns * element..][..element]);
            }
        }
    }

    #[test]
    fn steps_lead_to_the_exchanged_place() {
        for (chunk, coded) in [(&[1, 2, 1, 3, 4, 1, 5][..], [12, 2, 5]), (&[6, 2, 2, 1, 5], [4, 6, 5])] {
            let extents = Extents::new(&coded).unwrap().swapped().unwrap();
            assert!(is_of_axes(&extents, chunk) && !is_of_axes(&extents, &[5, 24]));
            let n: u64 = chunk.iter().product();
            let raw: Vec<u8> = (0..n as u8).collect();
            let there = swapped(&extents, &raw, 1).unwrap();
            let steps_of = |k: usize| chunk[k + 1..].iter().product::<u64>() as isize;
            let own: Vec<isize> = (0..chunk.len()).map(steps_of).collect();
            let mut steps = own.clone();
            swap_steps(&extents, chunk, &mut steps);
            for (at, &value) in raw.iter().enumerate() {
                let index = own.iter().zip(chunk).map(|(&s, &n)| at / s as usize % n as usize);
                let place: usize = index.zip(&steps).map(|(i, &s)| i * s as usize).sum();
                assert_eq!(there[place], value);
            }
        }
    }

    #[test]
    fn levels_that_differ_are_not_merged_behind_times() {
        let engine = Cpu::with_threads(2);
        for (dims, dtype) in
            [([6, 10, 40, 60], Dtype::F32), ([6, 10, 40, 60], Dtype { big_endian: true, ..Dtype::F32 })]
        {
            let values = field(dims);
            let raw: Vec<u8> =
                values.iter().flat_map(|v| if dtype.big_endian { v.to_be_bytes() } else { v.to_le_bytes() }).collect();
            let dims = dims.map(|n| n as u64);
            for codec in [Codec::Auto, Codec::Lorenzo, Codec::Planes] {
                for bound in [Bound::Absolute(1e-3), Bound::Relative(1e-5), Bound::Psnr(80.0), Bound::Lossless] {
                    if codec == Codec::Lorenzo && bound == Bound::Lossless {
                        continue;
                    }
                    let params = params(codec, bound, dtype, &dims);
                    let frame = engine.encode(&params, &raw);
                    let kept = Params { extents: Extents::new(&[60, 40, 60]).unwrap(), ..params };
                    let merged = engine.encode(&kept, &raw);
                    assert!(frame.len() <= merged.len(), "{codec:?} {bound:?}: {} {}", frame.len(), merged.len());
                    let back = engine.decode(&frame, raw.len() as u64).unwrap();
                    if bound == Bound::Lossless || bound == Bound::Absolute(1e-3) {
                        let of = |b: &[u8]| {
                            let b = b.try_into().unwrap();
                            if dtype.big_endian { f32::from_be_bytes(b) } else { f32::from_le_bytes(b) }
                        };
                        let worst = raw.chunks(4).zip(back.chunks(4)).map(|(a, b)| (of(a) - of(b)).abs());
                        let worst = worst.fold(0.0, f32::max);
                        assert!(worst <= if bound == Bound::Lossless { 0.0 } else { 1e-3 }, "{codec:?}: {worst}");
                    }
                }
            }
        }
    }

    #[test]
    fn boxes_of_an_open_codec_exchange_nothing_for_szx() {
        // Each step is the one before it, beside which all differs.
        let dims = [6, 10, 20, 30];
        let noise = |i: usize| ((i % 6000) as u32).wrapping_mul(0x9E37_79B9) as f32 / u32::MAX as f32;
        let raw: Vec<u8> = (0..36_000).flat_map(|i| noise(i).to_le_bytes()).collect();
        let of = |codec| params(codec, Bound::Absolute(1e-3), Dtype::F32, &dims.map(|n| n as u64));
        let boxes = Boxes::new(&of(Codec::Auto), raw.len()).unwrap();
        let chosen = |codec| boxes.choose(&of(codec), &boxes.gather(&raw, 4), &mut Costs::default()).unwrap();
        assert!(chosen(Codec::Auto).is_swapped());
        assert_eq!(chosen(Codec::Szx), choose(&of(Codec::Szx), &raw, &mut Costs::default()).unwrap());
        assert!(!chosen(Codec::Szx).is_swapped());
    }

    #[test]
    fn a_codec_without_axes_gets_the_chunk_as_it_is() {
        // Few values, far apart: bytes takes less than planes, whose sample it is that asks for another order.
        let [a, b, y, x] = [4, 6, 32, 32];
        let value = |i: usize| if i.is_multiple_of(97) { (i / (y * x) % b * 40) as u8 } else { 0 };
        let raw: Vec<u8> = (0..a * b * y * x).map(value).collect();
        let dtype = Dtype { class: Class::Integer, signed: false, ..Dtype::bytes(1) };
        let params = params(Codec::Auto, Bound::Lossless, dtype, &[a, b, y, x].map(|n| n as u64));
        let engine = Cpu::with_threads(1);
        let frame = engine.encode(&params, &raw);
        assert_eq!(frame::header(&frame).unwrap().codec, CodecId::BYTES);
        assert!(engine.decode(&frame, raw.len() as u64).unwrap() == raw);
        // What is stored in another order than its own would come back in it.
        let noise: Vec<u8> = field([4, 6, 32, 32])
            .iter()
            .enumerate()
            .flat_map(|(i, v)| {
                let bits = v.to_bits() ^ (i as u32).wrapping_mul(0x9E37_79B9) >> 8;
                bits.to_le_bytes()
            })
            .collect();
        let params = self::params(Codec::Lorenzo, Bound::Absolute(1e-9), Dtype::F32, &[4, 6, 32, 32]);
        let frame = engine.encode(&params, &noise);
        assert!(engine.decode(&frame, noise.len() as u64).unwrap() == noise);
    }

    #[test]
    fn parts_and_batches_come_back_too() {
        let dims = [6, 10, 40, 60];
        let raw: Vec<u8> = field(dims).iter().flat_map(|v| v.to_le_bytes()).collect();
        let params = params(Codec::Planes, Bound::Absolute(1e-3), Dtype::F32, &dims.map(|n| n as u64));
        let engine = Cpu::with_threads(2);
        let frame = engine.encode(&params, &raw);
        assert!(frame::is_swapped(&frame), "another order is chosen");
        let whole = engine.decode(&frame, raw.len() as u64).unwrap();
        let mut outs = [vec![1; raw.len()], vec![2; raw.len()]];
        let mut jobs: Vec<_> = outs.iter_mut().map(|out| DecodeJob { frame: &frame, out }).collect();
        assert!(engine.decode_batch(&mut jobs).iter().all(Result::is_ok));
        assert!(outs[0] == whole && outs[1] == whole);
        let mut part = vec![3; raw.len()];
        let open = frame::Frame::open(&frame, 1).unwrap();
        engine.decode_part(open, &dims.map(|n| n as u64), &[1..2, 3..5, 4..9, 0..60], &mut part).unwrap();
        for (z, row) in (3..5).flat_map(|z| (4..9).map(move |y| (z, y))) {
            let at = (((10 + z) * 40 + row) * 60) * 4;
            assert_eq!(part[at..at + 240], whole[at..at + 240]);
        }
    }
}
