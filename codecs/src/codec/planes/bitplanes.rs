// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block's residuals as bit planes and back. FORMAT.md §3.1, §3.2, §4.
//!
//! A slice is one byte of each of a block's 1024 residuals. Its bytes stand in eight rows of 32 words: row 4 · (plane
//! mod 2) + r has in byte p(c) of word l the byte of the value (plane, l, r, c). The bit planes are those rows
//! transposed: bit i of byte p(c) of word l of bit plane k is bit k of the same byte of row i. So 8 × 8 bits change
//! places for each of 128 bytes, all alike: three exchanges of half words, of quarters and of eighths between rows, on
//! whole rows at a time. The exchange undoes itself.
//!
//! In class 0 they are bytes of d; planes below the sign's are stored xor the sign's. In classes 1 and 2 they are
//! numbers of classes of lengths (`lengths.rs`), of three planes.

use super::shape::{BLOCK, LAYER, row_of};
use super::types::Int;
use crate::constants::PLANES_LANES;

/// One bit of each of a block's residuals: a word a lane.
pub(super) type BitPlane = [u32; PLANES_LANES];
/// A slice: eight rows of bytes, or eight bit planes.
pub(super) type Slice = [BitPlane; 8];

/// Lanes that are worked on at a time: eight rows of them stay in registers.
const LANES: usize = 8;

/// The rows of byte `k` of a block's residuals.
#[inline(always)]
pub(super) fn rows<I: Int>(d: &[I; BLOCK], rank: usize, k: usize, out: &mut Slice) {
    for (i, row) in out.iter_mut().enumerate() {
        for (group, words) in row.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let at = i / 4 * LAYER + row_of(rank, i % 4, group);
            I::bytes(d[at..].first_chunk().expect("a row"), k, words);
        }
    }
}

/// Sets byte `k` of a block's residuals, of which it is 0, from its rows.
#[inline(always)]
pub(super) fn add_rows<I: Int>(rows: &Slice, rank: usize, k: usize, d: &mut [I; BLOCK]) {
    for (i, row) in rows.iter().enumerate() {
        for (group, words) in row.as_chunks::<LANES>().0.iter().enumerate() {
            let at = i / 4 * LAYER + row_of(rank, i % 4, group);
            I::add_bytes(words, k, d[at..].first_chunk_mut().expect("a row"));
        }
    }
}

/// Rows to bit planes, and back.
#[inline(always)]
pub(super) fn transpose(slice: &mut Slice) {
    for group in 0..PLANES_LANES / LANES {
        let mut v: [[u32; LANES]; 8] =
            std::array::from_fn(|i| *slice[i][group * LANES..].first_chunk().expect("lanes of a group"));
        exchange::<4>(&mut v, 0x0F0F_0F0F);
        exchange::<2>(&mut v, 0x3333_3333);
        exchange::<1>(&mut v, 0x5555_5555);
        for (row, v) in slice.iter_mut().zip(&v) {
            row[group * LANES..][..LANES].copy_from_slice(v);
        }
    }
}

/// Exchanges the upper bits of a row, those that `mask` leaves, with the lower bits of the row `N` further on.
#[inline(always)]
fn exchange<const N: usize>(v: &mut [[u32; LANES]; 8], mask: u32) {
    for pair in 0..4 {
        let i = pair / N * 2 * N + pair % N;
        let (low, high) = v.split_at_mut(i + N);
        for (a, b) in low[i].iter_mut().zip(&mut high[0]) {
            let t = (*a >> N ^ *b) & mask;
            *b ^= t;
            *a ^= t << N;
        }
    }
}

/// The sign's bit in a number of `slices` slices, and all bits below it.
#[inline(always)]
fn sign_bit<I: Int>(slices: usize) -> (I, I) {
    let sign = I::ONE << (8 * slices as u32 - 1);
    (sign, sign.minus(I::ONE))
}

/// Sign bits of 16-bit residuals that have one slice.
#[inline(always)]
pub(super) fn widen<I: Int>(d: &mut [I; BLOCK]) {
    let up = 8 * I::BYTES as u32 - 8;
    for d in d {
        *d = *d << up >> up;
    }
}

/// How large a block's residuals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent<I> {
    /// Slices that hold all of them as signed numbers; 0 where all are 0.
    pub(super) slices: usize,
    /// The *or* of all, those below 0 taken as -d - 1.
    folded: I,
    /// One is below 0.
    minus: bool,
}

impl<I: Int> Extent<I> {
    #[inline(always)]
    pub(super) fn of_block(d: &[I; BLOCK]) -> Self {
        let (mut any, mut folded) = (I::ZERO, I::ZERO);
        for d in d {
            any = any | *d;
            folded = folded | d.fold();
        }
        let slices = if any == I::ZERO { 0 } else { folded.length() as usize / 8 + 1 };
        Extent { slices, folded, minus: any < I::ZERO }
    }

    /// Class 0: the *or* of the bit planes' bits, if the block has `slices` slices.
    #[inline(always)]
    pub(super) fn union(&self, slices: usize) -> I {
        let (sign, below) = sign_bit::<I>(slices);
        self.folded & below | if self.minus { sign } else { I::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_the_residuals() {
        let of = |a: i64, b: i64| {
            let mut d = [0; BLOCK];
            (d[7], d[900]) = (a, b);
            Extent::of_block(&d).slices
        };
        assert_eq!((of(0, 0), of(-1, 0), of(127, -128), of(128, 0), of(-129, 0)), (0, 1, 1, 2, 2));
        assert_eq!((of(32767, -32768), of(32768, 0), of(i64::MIN, 0), of(i64::MAX, 5)), (2, 3, 8, 8));
    }
}
