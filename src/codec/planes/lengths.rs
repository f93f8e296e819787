// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals as a class of lengths and the bits below it: classes 1 and 2. FORMAT.md §3.3, §8.2.
//!
//! ```text
//! u          the residual without the low zero bits that all have, the sign in the lowest bit: small numbers of either sign are small
//! length     bits of u without leading zeros; lengths next to each other make a class, at most eight, by a shape and one parameter
//! number     of a value's class, 0 the most frequent: its bits are three planes, which the codec of planes stores, the higher ones sparse
//! field      the bits of u, as many as the highest length of the class has; where that is the class's only length, its first bit is
//!            always 1 and left out. Fields stand one after another, lane after lane
//! ```
//!
//! What pcodec, Gorilla and SPratio take from one value's length in the next, or from an entropy coder, costs a serial read.
//! Here all that is serial is a sum of widths in a lane. A warp has a tile, a lane 32 values of a block:
//!
//! ```text
//! decode   numbers    three words a lane; bits k, k + 4, … of each make eight nibbles: 4 · 6 instructions for 32 values
//!          widths     a byte permutation looks four nibbles up in a table of eight bytes, the reason for eight classes; a
//!                     dot product adds four: 8 · 4 instructions for 32 values
//!          starts     a scan over the lanes: 15 for 32 values
//!          fields     for each value: word of the place, two loads, a funnel shift, mask, the first bit, sign, zeros, next place: 13
//!          a value    1 + 1 + 0.5 + 13, planes at most 3 · 3, sums along three axes 8, bits 3, store 1: about 36
//! encode   lengths    sign 3, leading zeros 2; counts of a quarter of the values in a byte for each lane and length: 1.5
//!          classes    lane = L, shapes in turn, each a sort of eight counts in registers: 330 for a tile's 128 values a lane, 2.6
//!          numbers    seven comparisons or a table: 4; three ballots or shifts into the planes' words: 6; planes at most 9
//!          fields     mask, shift, or, place; a word when one is full: 8
//!          a value    5 + 1.5 + 2.6 + 10 + 9 + 8, differences 6, the choice of the predictor 3: about 45
//! ```
//!
//! Tried: sign and magnitude, 0.05 % shorter on noise and 0.5 % on rounded data, but with two codes for 0 and a width of 8W + 1; counts of all
//! values, 0.02 % shorter; planes at their full length in the choice, 0.4 % longer; each lane's bits on a word of their own, 2 % longer.

use super::bitplanes::Slice;
use super::encode::boxed;
use super::format::Lengths;
use super::level::Unit;
use super::number::Int;
use super::shape::{BLOCK, PLANE, row_of};
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::{Damage, Result};

/// Most classes of lengths.
pub(super) const CLASSES: usize = 8;
/// Bit planes of their numbers.
pub(super) const CLASS_PLANES: usize = 3;
/// Words of a tile's fields, at most: 8 bytes a value.
pub(super) const FIELD_WORDS: usize = 2 * PLANES_TILE;
/// Bytes behind the fields that reading and writing touch.
pub(super) const SLACK: usize = 16;
/// A value of each of a block's lanes, in four columns and eight rows, as in bit planes; columns in their own order.
pub(super) type Rows = Slice;

/// A highest length of a shape: itself, or less L.
#[derive(Debug, Clone, Copy)]
enum High {
    Zero,
    Above(u32),
}

/// The highest lengths of each shape's classes but the last, whose is T.
const SHAPES: [&[High]; 7] = {
    use High::{Above, Zero};
    [
        &[],
        &[Zero],
        &[Above(0)],
        &[Above(0), Above(1), Above(2)],
        &[Zero, Above(0), Above(2)],
        &[Above(0), Above(1), Above(2), Above(3), Above(4), Above(5), Above(7)],
        &[Zero, Above(0), Above(1), Above(2), Above(3), Above(4), Above(6)],
    ]
};

/// Shapes that there are.
pub(super) const SHAPE_COUNT: u32 = SHAPES.len() as u32;

/// A class of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Range {
    /// h(i).
    highest: u32,
    /// Bits of a field.
    width: u8,
    /// The highest bit of u is left out.
    hidden: bool,
}

/// The classes of a shape; those behind its last are as if there were no length left.
fn ranges(shape: u32, least: u32, top: u32) -> [Range; CLASSES] {
    let mut before = None;
    let shape = SHAPES[shape as usize];
    std::array::from_fn(|i| {
        let s = match shape.get(i) {
            Some(High::Zero) => 0,
            Some(High::Above(k)) => least + k,
            None => top,
        };
        let highest = s.min(top);
        let one = highest == before.map_or(0, |b: u32| b + 1);
        before = Some(highest);
        let width = if one { highest.saturating_sub(1) } else { highest };
        Range { highest, width: width as u8, hidden: one && highest > 0 }
    })
}

/// What decoding needs, by numbers of classes.
pub(super) struct Fields {
    pub(super) widths: [u8; CLASSES],
    /// 1 where the field's first bit is left out.
    hidden: [u8; CLASSES],
}

impl Fields {
    pub(super) fn of(lengths: &Lengths) -> Self {
        let ranges = ranges(lengths.shape, lengths.least, lengths.top);
        let of: [Range; CLASSES] = std::array::from_fn(|c| ranges[(lengths.numbers >> (3 * c) & 7) as usize]);
        Fields { widths: of.map(|r| r.width), hidden: of.map(|r| u8::from(r.hidden)) }
    }
}

/// Sum of the lengths of 512 residuals. FORMAT.md §8.2, "predictor and map".
#[inline(always)]
pub(super) fn cost<I: Int>(d: &[I]) -> u32 {
    let zeros = d.iter().fold(I::ZERO, |any, &d| any | d).zeros();
    d.iter().map(|&d| (d >> zeros).zigzag().length()).sum()
}

/// Residuals ready to be stored: u in place of each, and their lengths.
pub(super) struct Counted {
    lens: Box<[u8; PLANES_TILE]>,
}

impl Counted {
    pub(super) fn new() -> Result<Self> {
        Ok(Counted { lens: boxed()? })
    }

    /// Makes u of all residuals and chooses the classes of their lengths.
    pub(super) fn choose<I: Int>(&mut self, d: &mut [I; PLANES_TILE], rank: usize, unit: impl Unit) -> Lengths {
        let lens = &mut self.lens;
        let (zeros, top) = unit.run(
            #[inline(always)]
            || {
                let zeros = d.iter().fold(I::ZERO, |any, &d| any | d).zeros();
                let mut any = I::ZERO;
                for (d, len) in d.iter_mut().zip(lens.iter_mut()) {
                    *d = (*d >> zeros).zigzag();
                    any = any | *d;
                    *len = d.length() as u8;
                }
                (zeros, any.length())
            },
        );
        let upto = self.counts(rank);
        let (shape, least) = cheapest(&upto, top, unit);
        Lengths { shape, least, top, zeros, numbers: numbers(shape, &ranges(shape, least, top), &upto), exponent: None }
    }

    /// How many values are of a length or a shorter one, by the rows 1 of all lanes.
    fn counts(&self, rank: usize) -> Counts {
        let mut of = [[0u32; 65]; 4];
        for plane in self.lens.as_chunks::<PLANE>().0 {
            for group in 0..4 {
                for four in plane[row_of(rank, 1, group)..][..32].as_chunks::<4>().0 {
                    for (of, &len) in of.iter_mut().zip(four) {
                        of[usize::from(len)] += 4;
                    }
                }
            }
        }
        let mut sum = 0;
        std::array::from_fn(|len| {
            sum += of.iter().map(|of| of.get(len).copied().unwrap_or(0)).sum::<u32>();
            sum
        })
    }
}

/// By length: values of this length or a shorter one. Longer ones than there are stand for a look beyond the highest.
type Counts = [u32; 88];

/// Candidates that are looked at together, of neighbouring L.
const TOGETHER: usize = 8;
type Lanes = [u32; TOGETHER];

/// Exchanges that sort eight, or the first four, falling.
const SORT_4: [(usize, usize); 5] = [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)];
const SORT_8: [(usize, usize); 19] = [
    (0, 2),
    (1, 3),
    (4, 6),
    (5, 7),
    (0, 4),
    (1, 5),
    (2, 6),
    (3, 7),
    (0, 1),
    (2, 3),
    (4, 5),
    (6, 7),
    (2, 4),
    (3, 5),
    (1, 4),
    (3, 6),
    (1, 2),
    (3, 4),
    (5, 6),
];

/// The cheapest shape and L.
fn cheapest(upto: &Counts, top: u32, unit: impl Unit) -> (u32, u32) {
    let mut best = (u32::MAX, 0, 0);
    for (shape, highs) in SHAPES.iter().enumerate() {
        let parameters = if shape < 2 { 1 } else { top.min(64) };
        for first in (0..parameters).step_by(TOGETHER) {
            let costs = unit.run(
                #[inline(always)]
                || match highs.len() {
                    0 => costs::<1>(highs, first, upto, top, &[]),
                    1 => costs::<2>(highs, first, upto, top, &SORT_4[..1]),
                    3 => costs::<4>(highs, first, upto, top, &SORT_4),
                    _ => costs::<8>(highs, first, upto, top, &SORT_8),
                },
            );
            for (l, &cost) in (first..parameters).zip(&costs) {
                if cost < best.0 {
                    best = (cost, shape as u32, l);
                }
            }
        }
    }
    (best.1, best.2)
}

/// Costs of a shape of `N` classes with each L from `first` on.
#[inline(always)]
fn costs<const N: usize>(highs: &[High], first: u32, upto: &Counts, top: u32, sort: &[(usize, usize)]) -> Lanes {
    let mut n = [[0; TOGETHER]; N];
    let mut cost = [0; TOGETHER];
    // One more than h(i - 1), and the values up to there.
    let (mut next, mut before) = ([0; TOGETHER], [0; TOGETHER]);
    for (i, n) in n.iter_mut().enumerate() {
        let from = match highs.get(i) {
            Some(High::Zero) => 0,
            Some(High::Above(k)) => first + k,
            None => top,
        };
        let step = u32::from(matches!(highs.get(i), Some(High::Above(_))));
        let counts: Lanes = match step {
            0 => [upto[from as usize]; TOGETHER],
            _ => *upto[from as usize..].first_chunk().expect("beyond the highest length"),
        };
        for k in 0..TOGETHER {
            let h = (from + step * k as u32).min(top);
            n[k] = counts[k] - before[k];
            let width = h - u32::from((h == next[k]) & (h > 0));
            cost[k] += n[k] * width;
            (next[k], before[k]) = (h + 1, counts[k]);
        }
    }
    for &(a, b) in sort {
        let (x, y) = (n[a], n[b]);
        for k in 0..TOGETHER {
            (n[a][k], n[b][k]) = (x[k].max(y[k]), x[k].min(y[k]));
        }
    }
    for p in 0..3 {
        let mut ones = [0; TOGETHER];
        for n in n.iter().enumerate().filter(|(c, _)| c >> p & 1 == 1).map(|(_, n)| n) {
            (0..TOGETHER).for_each(|k| ones[k] += n[k]);
        }
        for k in 0..TOGETHER {
            let stored = (64 + 10 * ones[k]).min(1500 + 3 * ones[k]).min(4096);
            cost[k] += if ones[k] == 0 { 0 } else { stored };
        }
    }
    cost
}

/// The classes of numbers, as the head has them: by falling frequency.
fn numbers(shape: u32, ranges: &[Range; CLASSES], upto: &Counts) -> u32 {
    let mut of: [(u32, u32); CLASSES] = [(0, 0); CLASSES];
    let of = &mut of[..=SHAPES[shape as usize].len()];
    let mut before = 0;
    for ((class, of), range) in (0..).zip(of.iter_mut()).zip(ranges) {
        let count = upto[range.highest as usize];
        *of = (count - before, class);
        before = count;
    }
    of.sort_by_key(|&(n, _)| std::cmp::Reverse(n));
    of.iter().enumerate().map(|(c, of)| of.1 << (3 * c)).sum()
}

/// What encoding needs, by classes.
struct Table {
    /// Highest lengths of all but the last.
    highs: [u8; CLASSES - 1],
    widths: [u8; CLASSES],
    numbers: [u8; CLASSES],
}

impl Table {
    fn of(lengths: &Lengths) -> Self {
        let ranges = ranges(lengths.shape, lengths.least, lengths.top);
        let classes = SHAPES[lengths.shape as usize].len() + 1;
        let mut numbers = [0; CLASSES];
        for c in 0..classes {
            numbers[(lengths.numbers >> (3 * c) & 7) as usize] = c as u8;
        }
        Table {
            highs: std::array::from_fn(|i| if i + 1 < classes { ranges[i].highest as u8 } else { u8::MAX }),
            widths: ranges.map(|r| r.width),
            numbers,
        }
    }
}

/// Fields of a tile, one after another.
pub(super) struct Bits {
    bytes: Box<[u8; 4 * FIELD_WORDS + SLACK]>,
    /// Bytes of whole blocks.
    len: usize,
}

impl Bits {
    pub(super) fn new() -> Result<Self> {
        Ok(Bits { bytes: boxed()?, len: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Of whole words.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends a block's fields.
    #[inline(always)]
    fn append<I: Int, const WAY: u8>(&mut self, u: &[I; BLOCK], widths: &Rows, rank: usize) {
        let (mut pending, mut bits, mut at) = (0u64, 0u32, self.len);
        // At most 56 bits.
        let mut push = |field: u64, width: u32| {
            pending |= field << bits;
            bits += width;
            self.bytes[at..at + 8].copy_from_slice(&pending.to_le_bytes());
            at += bits as usize / 8;
            pending >>= bits & !7;
            bits &= 7;
        };
        for group in 0..PLANES_LANES / 8 {
            let rows: [usize; 8] = std::array::from_fn(|i| i / 4 * PLANE + row_of(rank, i % 4, group));
            for lane in 0..8 {
                for (row, widths) in rows.iter().zip(widths) {
                    let u: &[I; 4] = u[row + 4 * lane..].first_chunk().expect("a lane's");
                    let [a, b, c, d] = widths[8 * group + lane].to_le_bytes().map(u32::from);
                    match WAY {
                        PAIRS => {
                            push(u[0].lowest(a) | u[1].lowest(b) << a, a + b);
                            push(u[2].lowest(c) | u[3].lowest(d) << c, c + d);
                        }
                        ONES => (0..4).zip([a, b, c, d]).for_each(|(k, width)| push(u[k].lowest(width), width)),
                        _ => {
                            for (u, width) in u.iter().zip([a, b, c, d]) {
                                let low = width.min(32);
                                push(u.lowest(low), low);
                                push(u.lowest(width) >> low, width - low);
                            }
                        }
                    }
                }
            }
        }
        push(0, 32);
        self.len += (8 * (at - self.len) + bits as usize - 32).div_ceil(32) * 4;
    }
}

/// Ways through fields, by the widest: two at a time, one, halves of one.
const PAIRS: u8 = 2;
const ONES: u8 = 1;
const HALVES: u8 = 0;

/// The way for a tile with these widths.
fn way(widths: &[u8; CLASSES]) -> u8 {
    match widths.iter().max() {
        Some(0..=28) => PAIRS,
        Some(29..=56) => ONES,
        _ => HALVES,
    }
}

impl Counted {
    /// Appends the fields of a block, in whose place u stands, and makes its numbers, the columns as in bit planes.
    pub(super) fn block<I: Int>(
        &self,
        block: usize,
        u: &[I; BLOCK],
        rank: usize,
        lengths: &Lengths,
        unit: impl Unit,
        (numbers, bits): (&mut Rows, &mut Bits),
    ) {
        let table = Table::of(lengths);
        let mut widths = [[0; PLANES_LANES]; 8];
        unit.run(
            #[inline(always)]
            || {
                let lens: &[u8; BLOCK] = self.lens[BLOCK * block..].first_chunk().expect("a block");
                let classes = lens.map(|len| table.highs.iter().map(|&high| u8::from(len > high)).sum::<u8>());
                for (i, row) in widths.iter_mut().enumerate() {
                    for (group, words) in row.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                        let at = i / 4 * PLANE + row_of(rank, i % 4, group);
                        let bytes: &[[u8; 4]; 8] = classes[at..].as_chunks().0.first_chunk().expect("a row");
                        *words = bytes.map(u32::from_le_bytes);
                    }
                }
                *numbers = widths;
                unit.lookup(&mut widths, &table.widths);
                unit.lookup(numbers, &table.numbers);
                exchange_columns(numbers);
            },
        );
        match way(&table.widths) {
            PAIRS => unit.run(
                #[inline(always)]
                || bits.append::<I, PAIRS>(u, &widths, rank),
            ),
            ONES => unit.run(
                #[inline(always)]
                || bits.append::<I, ONES>(u, &widths, rank),
            ),
            _ => unit.run(
                #[inline(always)]
                || bits.append::<I, HALVES>(u, &widths, rank),
            ),
        }
    }
}

/// Between the order of columns and that of bytes in bit planes; undoes itself.
#[inline(always)]
pub(super) fn exchange_columns(rows: &mut Rows) {
    for word in rows.as_flattened_mut() {
        *word = *word & 0xFF00_00FF | *word >> 8 & 0xFF00 | *word << 8 & 0xFF_0000;
    }
}

/// Sum of all bytes, which are at most 64.
#[inline(always)]
fn sum(rows: &Rows) -> usize {
    // Two halves of 16 bits: 512 bytes each.
    let halves: u32 = rows.as_flattened().iter().map(|w| (w & 0xFF_00FF) + (w >> 8 & 0xFF_00FF)).sum();
    (halves & 0xFFFF) as usize + (halves >> 16) as usize
}

/// A block's numbers, its columns in order, and the widths of its fields.
#[derive(Clone, Copy)]
pub(super) struct Widths {
    numbers: Rows,
    widths: Rows,
    /// Bits of all fields.
    bits: usize,
}

impl Widths {
    pub(super) const NONE: Widths = Widths { numbers: [[0; PLANES_LANES]; 8], widths: [[0; PLANES_LANES]; 8], bits: 0 };

    /// From numbers whose columns are as in bit planes.
    #[inline(always)]
    pub(super) fn find(&mut self, numbers: &Rows, fields: &Fields, unit: impl Unit) {
        self.numbers = *numbers;
        exchange_columns(&mut self.numbers);
        self.widths = self.numbers;
        unit.lookup(&mut self.widths, &fields.widths);
        self.bits = sum(&self.widths);
    }

    /// Words of the block's fields.
    pub(super) fn words(&self) -> usize {
        self.bits.div_ceil(32)
    }

    /// Reads the block's residuals from its fields, behind which there are [`SLACK`] bytes more.
    pub(super) fn read<I: Int>(
        &self,
        bytes: &[u8],
        fields: &Fields,
        zeros: u32,
        rank: usize,
        unit: impl Unit,
        d: &mut [I; BLOCK],
    ) -> Result<(), Damage> {
        match way(&fields.widths) {
            PAIRS => unit.run(
                #[inline(always)]
                || self.fields::<I, PAIRS>(bytes, rank, d),
            ),
            ONES => unit.run(
                #[inline(always)]
                || self.fields::<I, ONES>(bytes, rank, d),
            ),
            _ => unit.run(
                #[inline(always)]
                || self.fields::<I, HALVES>(bytes, rank, d),
            ),
        }
        unit.run(
            #[inline(always)]
            || {
                let mut hidden = self.numbers;
                unit.lookup(&mut hidden, &fields.hidden);
                for (i, (widths, hidden)) in self.widths.iter().zip(&hidden).enumerate() {
                    for group in 0..PLANES_LANES / 8 {
                        let row = &mut d[i / 4 * PLANE + row_of(rank, i % 4, group)..][..32];
                        let words = 8 * group..8 * group + 8;
                        let bytes = |words: &[u32]| -> [u8; 32] {
                            let words: &[u32; 8] = words.first_chunk().expect("words of a group");
                            bytemuck::cast(words.map(u32::to_le))
                        };
                        let (widths, hidden) = (bytes(&widths[words.clone()]), bytes(&hidden[words]));
                        for k in 0..32 {
                            let first = I::of(hidden[k].into()) << u32::from(widths[k]).min(8 * I::BYTES as u32 - 1);
                            let all = I::BYTES as u32 * 8;
                            // Of a field as wide as the type, all bits.
                            let mask = if u32::from(widths[k]) == all {
                                I::ZERO.minus(I::ONE)
                            } else {
                                (I::ONE << (u32::from(widths[k]) & (all - 1))).minus(I::ONE)
                            };
                            row[k] = (row[k] & mask | first).unzigzag() << zeros;
                        }
                    }
                }
            },
        );
        match bytes[..4 * self.words()].last_chunk() {
            Some(&last) if self.bits % 32 != 0 && u32::from_le_bytes(last) >> (self.bits % 32) != 0 => {
                Err(format!("fields {:#010x} behind the last of {} bits", u32::from_le_bytes(last), self.bits).into())
            }
            _ => Ok(()),
        }
    }

    /// Bits from where each value's field begins, as many as the type has.
    #[inline(always)]
    fn fields<I: Int, const WAY: u8>(&self, bytes: &[u8], rank: usize, d: &mut [I; BLOCK]) {
        let mut at = 0;
        let window = |at: usize| {
            let bytes: [u8; 8] = *bytes[at / 8..].first_chunk().expect("slack behind the last field");
            u64::from_le_bytes(bytes) >> (at % 8)
        };
        for group in 0..PLANES_LANES / 8 {
            let rows: [usize; 8] = std::array::from_fn(|i| i / 4 * PLANE + row_of(rank, i % 4, group));
            for lane in 0..8 {
                for (i, row) in rows.iter().enumerate() {
                    let to: &mut [I; 4] = d[row + 4 * lane..].first_chunk_mut().expect("a lane's");
                    let [a, b, c, d] = self.widths[i][8 * group + lane].to_le_bytes().map(usize::from);
                    let starts = [at, at + a, at + a + b, at + a + b + c];
                    at += a + b + c + d;
                    if WAY == PAIRS {
                        let (x, y) = (window(starts[0]), window(starts[2]));
                        to[0] = I::of(x as i64);
                        to[1] = I::of((x >> a) as i64);
                        to[2] = I::of(y as i64);
                        to[3] = I::of((y >> c) as i64);
                        continue;
                    }
                    for k in 0..4 {
                        let low = window(starts[k]);
                        let field = if WAY == ONES { low } else { low & 0xFFFF_FFFF | window(starts[k] + 32) << 32 };
                        to[k] = I::of(field as i64);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::pack::Portable;

    #[test]
    fn classes_hold_every_length_once() {
        for (shape, least, top) in (0..7).flat_map(|s| (0..64).flat_map(move |l| (0..=64).map(move |t| (s, l, t)))) {
            let ranges = ranges(shape, least, top);
            let mut next = 0;
            for (i, range) in ranges.iter().enumerate() {
                let held = (range.highest + 1).saturating_sub(next);
                assert!(range.highest <= top && range.highest + 1 >= next, "{shape} {least} {top} {i}");
                assert_eq!(range.hidden, held == 1 && range.highest > 0);
                assert_eq!(
                    u32::from(range.width),
                    range.highest - u32::from(range.hidden),
                    "{shape} {least} {top} {i}"
                );
                next = range.highest + 1;
            }
            assert_eq!(next, top + 1);
        }
    }

    #[test]
    fn residuals_of_every_length_come_back() {
        fn check<I: Int>(cut: u32, zeros: u32, rank: usize) {
            let mut x = u64::from(cut * 7 + zeros) + 1;
            let mut d: [I; PLANES_TILE] = std::array::from_fn(|i| {
                x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let cut = if i % 3 == 0 { cut } else { (cut + (x >> 7) as u32 % 9).min(63) };
                I::of((x ^ x >> 29) as i64 >> (cut % (8 * I::BYTES as u32)) << zeros)
            });
            d[77] = I::ONE << (8 * I::BYTES as u32 - 1);
            let before = d;
            let mut counted = Counted::new().unwrap();
            let mut bits = Bits::new().unwrap();
            let lengths = counted.choose(&mut d, rank, Portable);
            assert!(lengths.zeros >= zeros && lengths.top + lengths.zeros <= 8 * I::BYTES as u32);
            let fields = Fields::of(&lengths);
            for (k, u) in d.as_chunks::<BLOCK>().0.iter().enumerate() {
                bits.clear();
                let mut numbers = Widths::NONE.numbers;
                counted.block(k, u, rank, &lengths, Portable, (&mut numbers, &mut bits));
                let mut widths = Widths::NONE;
                widths.find(&numbers, &fields, Portable);
                assert_eq!(4 * widths.words(), bits.bytes().len());
                let mut bytes = bits.bytes().to_vec();
                bytes.extend([0xA5; SLACK]);
                let mut back = [I::ZERO; BLOCK];
                widths.read(&bytes, &fields, lengths.zeros, rank, Portable, &mut back).unwrap();
                assert_eq!(back, before[BLOCK * k..][..BLOCK], "{cut} {zeros} {rank} {lengths:?}");
            }
        }
        for (cut, zeros, rank) in (0..64).flat_map(|c| [0, 3, 20].into_iter().map(move |z| (c, z, c as usize % 3 + 1)))
        {
            check::<i32>(cut, zeros, rank);
            check::<i64>(cut, zeros, rank);
        }
    }
}
