// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals as a bin of lengths and the bits below it: classes 1 and 2. FORMAT.md §3.4, §8.2.
//!
//! ```text
//! u          the residual without the low zero bits that all have, the sign in the lowest bit: small numbers of either
//!            sign are small
//! length     bits of u without leading zeros; lengths next to each other make a bin, of which there are eight, by one
//!            parameter
//! number     of a value's bin, 0 the most frequent: its bits are three planes, which the codec of planes stores, the
//!            higher ones sparse
//! field      the bits of u, as many as the highest length of the bin has; where that is the bin's only length, its
//!            first bit is always 1 and left out. Fields stand one after another, lane after lane
//! ```
//!
//! What pcodec, Gorilla and SPratio take from one value's length in the next, or from an entropy coder, costs a serial
//! read. Here all that is serial is a sum of widths in a lane. A warp has a tile, a lane 32 values of a block:
//!
//! ```text
//! decode   numbers    three words a lane; bits k, k + 4, … of each make eight nibbles: 4 · 6 instructions for 32
//!          values
//!          widths     a byte permutation looks four nibbles up in a table of eight bytes, the reason for eight bins; a
//!                     dot product adds four: 8 · 4 instructions for 32 values
//!          starts     a scan over the lanes: 15 for 32 values
//!          fields     for each value: word of the place, two loads, a funnel shift, mask, the first bit, sign, zeros,
//!                     next place: 13
//!          a value    1 + 1 + 0.5 + 13, planes at most 3 · 3, sums along three axes 8, bits 3, store 1: about 36
//! encode   lengths    sign 3, leading zeros 2; counts of a quarter of the values in a byte for each lane and length:
//!          1.5
//!          bins       lane = L, a sort of eight counts in registers
//!          numbers    seven comparisons or a table: 4; three ballots or shifts into the planes' words: 6; planes at
//!                     most 9
//!          fields     mask, shift, or, place; a word when one is full: 8
//!          a value    5 + 1.5 + 2.6 + 10 + 9 + 8, differences 6, the choice of the predictor 3: about 45
//! ```
//!
//! Tried: sign and magnitude, 0.05 % shorter on noise and 0.5 % on rounded data, but with two codes for 0 and a width
//! of 8W + 1; counts of all values, 0.02 % shorter; planes at their full length in the choice, 0.4 % longer; each
//! lane's bits on a word of their own, 2 % longer.

use super::shape::{LAYER, row_of};
use super::types::Int;
use super::unit::Unit;
use crate::constants::PLANES_TILE;
use crate::error::Result;
use crate::memory::boxed;

/// The bins of a tile's lengths, as its head says. FORMAT.md §3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lengths {
    /// L.
    pub(super) least: u32,
    /// T.
    pub(super) top: u32,
    /// z.
    pub(super) zeros: u32,
    /// The bin of each number, three bits each.
    pub(super) numbers: u32,
    /// Map 1: e.
    pub(super) exponent: Option<i32>,
}

/// Bins of lengths.
pub(super) const BINS: usize = 8;
/// Bit planes of their numbers.
pub(super) const NUMBER_PLANES: usize = 3;
/// The highest lengths of the bins between the first, which has the length 0 alone, and the last, which goes up to T:
/// these above L.
const ABOVE: [u32; BINS - 2] = [0, 1, 2, 3, 4, 6];

/// A bin of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bin {
    /// h(i).
    pub(super) highest: u32,
    /// Bits of a field.
    pub(super) width: u8,
    /// The highest bit of u is left out.
    pub(super) hidden: bool,
    /// It holds no length.
    pub(super) empty: bool,
}

/// The bins of a tile with these L and T.
pub(super) fn bins(least: u32, top: u32) -> [Bin; BINS] {
    let mut next = 0;
    std::array::from_fn(|i| {
        let s = match i {
            0 => 0,
            _ => ABOVE.get(i - 1).map_or(top, |k| least + k),
        };
        let highest = s.min(top);
        let (one, empty) = (highest == next, highest < next);
        next = highest + 1;
        let hidden = one && highest > 0;
        Bin { highest, width: (highest - u32::from(hidden)) as u8, hidden, empty }
    })
}

/// Low zero bits of all of a tile's numbers, which are those of all of its residuals by any predictor: each are sums of
/// the others.
#[inline(always)]
pub(super) fn zeros<I: Int>(v: &[I; PLANES_TILE]) -> u32 {
    v.iter().fold(I::ZERO, |any, &v| any | v).zeros()
}

/// Sum of the lengths of 512 residuals. FORMAT.md §8.2, "predictor and map".
#[inline(always)]
pub(super) fn cost<I: Int>(d: &[I], zeros: u32) -> u32 {
    d.iter().map(|&d| (d >> zeros).zigzag().length()).sum()
}

/// Residuals ready to be stored: u in place of each, and their lengths.
pub(super) struct Counted {
    pub(super) lens: Box<[u8; PLANES_TILE]>,
}

impl Counted {
    pub(super) fn new() -> Result<Self> {
        Ok(Counted { lens: boxed()? })
    }

    /// Makes u of all residuals and chooses the bins of their lengths.
    pub(super) fn take_lengths<I: Int>(&mut self, d: &mut [I; PLANES_TILE], rank: usize, unit: impl Unit) -> Lengths {
        let lens = &mut self.lens;
        let (zeros, top) = unit.run(
            #[inline(always)]
            || {
                let zeros = zeros(d);
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
        let least = cheapest(&upto, top, unit);
        Lengths { least, top, zeros, numbers: numbers(&bins(least, top), &upto), exponent: None }
    }

    /// How many values are of a length or a shorter one, by the rows 1 of all lanes.
    fn counts(&self, rank: usize) -> Counts {
        let mut of = [[0u32; 65]; 4];
        for plane in self.lens.as_chunks::<LAYER>().0 {
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

/// Exchanges that sort eight, falling.
const SORT: [(usize, usize); 19] = [
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

/// The cheapest L, the lowest among equals.
fn cheapest(upto: &Counts, top: u32, unit: impl Unit) -> u32 {
    let (mut best, end) = ((u32::MAX, 0), top.clamp(1, 64));
    for first in (0..end).step_by(TOGETHER) {
        let costs = unit.run(
            #[inline(always)]
            || costs(first, upto, top),
        );
        best = (first..end).zip(costs).map(|(l, cost)| (cost, l)).fold(best, Ord::min);
    }
    best.1
}

/// Costs of each L from `first` on.
#[inline(always)]
fn costs(first: u32, upto: &Counts, top: u32) -> Lanes {
    let mut n = [[0; TOGETHER]; BINS];
    let mut cost = [0; TOGETHER];
    // One more than h(i - 1), and the values up to there.
    let (mut next, mut before) = ([0; TOGETHER], [0; TOGETHER]);
    for (i, n) in n.iter_mut().enumerate() {
        let (from, step) = match i {
            0 => (0, 0),
            _ => ABOVE.get(i - 1).map_or((top, 0), |k| (first + k, 1)),
        };
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
    for (a, b) in SORT {
        let (x, y) = (n[a], n[b]);
        for k in 0..TOGETHER {
            (n[a][k], n[b][k]) = (x[k].max(y[k]), x[k].min(y[k]));
        }
    }
    for p in 0..NUMBER_PLANES {
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

/// The bins of numbers, as the head has them: by falling frequency.
fn numbers(bins: &[Bin; BINS], upto: &Counts) -> u32 {
    let mut before = 0;
    let mut of: [(u32, u32); BINS] = std::array::from_fn(|bin| {
        let count = upto[bins[bin].highest as usize];
        (count - std::mem::replace(&mut before, count), bin as u32)
    });
    of.sort_by_key(|&(n, _)| std::cmp::Reverse(n));
    of.iter().enumerate().map(|(c, of)| of.1 << (3 * c)).sum()
}
