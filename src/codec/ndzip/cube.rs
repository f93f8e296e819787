// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on one cube, each beside its inverse. FORMAT.md §4.
//!
//! A cube of words lives in one array in memory order. Bit planes of all columns are made at once: the cube is first
//! turned so that row `j` holds value `j` of every column, then `B` rows are exchanged pairwise, half the rows'
//! distance bits against half the rows' distance rows, at distance B/2, B/4 … 1. Every loop runs over whole rows with no
//! dependence between its steps, so the compiler uses whatever vectors the processor has; nothing here names one.
//!
//! ```text
//! before step d            after
//! row r:      A | B        row r:      A | C          columns of bits, high to low
//! row r + d:  C | D        row r + d:  B | D
//! ```

use crate::constants::NDZIP_CUBE;
use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Shl, Shr};

/// The values of one cube, or its planes: row `p` holds plane `p` of every column.
pub(super) type Cube<W> = [W; NDZIP_CUBE];

/// An unsigned word that holds one value.
pub(crate) trait Word:
    bytemuck::Pod
    + Eq
    + Send
    + Sync
    + std::fmt::Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
    + BitOrAssign
    + BitXorAssign
{
    const BYTES: usize = size_of::<Self>();
    /// Bits of a word: values of a column, planes of a column.
    const BITS: usize = 8 * size_of::<Self>();
    /// Columns of a cube.
    const COLUMNS: usize = NDZIP_CUBE / Self::BITS;
    const ZERO: Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn rotate_left(self) -> Self;
    fn rotate_right(self) -> Self;
    /// Flips the lower bits of a word whose highest bit is set; its own inverse.
    fn flip(self) -> Self;
    fn ones(self) -> usize;
    /// All bits set where `bit` is 1, none where it is 0.
    fn spread(bit: Self) -> Self;
    fn low(self) -> usize;
    fn little(self) -> Self;
}

macro_rules! word {
    ($t:ident, $signed:ident) => {
        impl Word for $t {
            const ZERO: Self = 0;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn rotate_left(self) -> Self {
                $t::rotate_left(self, 1)
            }
            #[inline(always)]
            fn rotate_right(self) -> Self {
                $t::rotate_right(self, 1)
            }
            #[inline(always)]
            fn flip(self) -> Self {
                self ^ ((self as $signed >> ($t::BITS - 1)) as $t >> 1)
            }
            #[inline(always)]
            fn ones(self) -> usize {
                self.count_ones() as usize
            }
            #[inline(always)]
            fn spread(bit: Self) -> Self {
                bit.wrapping_neg()
            }
            #[inline(always)]
            fn low(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn little(self) -> Self {
                self.to_le()
            }
        }
    };
}

word!(u32, i32);
word!(u64, i64);

/// Takes one row of a cube from the array: rotates floats (§4.4) and differences along the last axis (§4.3).
#[inline(always)]
pub(super) fn load_row<W: Word, const FLOAT: bool>(from: &[W], to: &mut [W]) {
    let turn = |w: W| if FLOAT { w.rotate_left() } else { w };
    to[0] = turn(from[0]);
    for ((to, a), b) in to[1..].iter_mut().zip(from).zip(&from[1..]) {
        *to = turn(*b).sub(turn(*a));
    }
}

/// Integrates along the last axis, rotates floats back and puts the row into the array: inverse of [`load_row`].
#[inline(always)]
pub(super) fn store_row<W: Word, const FLOAT: bool>(from: &[W], to: &mut [W]) {
    let mut sum = W::ZERO;
    for (to, w) in to.iter_mut().zip(from) {
        sum = sum.add(*w);
        *to = if FLOAT { sum.rotate_right() } else { sum };
    }
}

/// Differences between rows of `row` words inside every `block` words. Walks backwards: the row before is still a value.
#[inline(always)]
pub(super) fn difference<W: Word>(cube: &mut Cube<W>, block: usize, row: usize) {
    for block in cube.chunks_exact_mut(block) {
        let mut rest = block;
        while rest.len() > row {
            let at = rest.len() - row;
            let (before, this) = rest.split_at_mut(at);
            this.iter_mut().zip(&before[at - row..]).for_each(|(a, b)| *a = a.sub(*b));
            rest = before;
        }
    }
}

/// Inverse of [`difference`]: walks forwards.
#[inline(always)]
pub(super) fn integrate<W: Word>(cube: &mut Cube<W>, block: usize, row: usize) {
    for block in cube.chunks_exact_mut(block) {
        let mut rest = block;
        while rest.len() > row {
            let (before, this) = rest.split_at_mut(row);
            this[..row].iter_mut().zip(&*before).for_each(|(a, b)| *a = a.add(*b));
            rest = this;
        }
    }
}

/// Flips the lower bits of negative words (§4.2); its own inverse.
#[inline(always)]
pub(super) fn flip<W: Word>(cube: &mut Cube<W>) {
    cube.iter_mut().for_each(|w| *w = w.flip());
}

/// Turns columns of values into rows of values: word `j` of column `c` goes to row `j`, place `c`.
#[inline(always)]
pub(super) fn turn<W: Word>(cube: &Cube<W>, rows: &mut Cube<W>) {
    for (c, column) in cube.chunks_exact(W::BITS).enumerate() {
        for (row, w) in rows.chunks_exact_mut(W::COLUMNS).zip(column) {
            row[c] = *w;
        }
    }
}

/// Inverse of [`turn`].
#[inline(always)]
pub(super) fn turn_back<W: Word>(rows: &Cube<W>, cube: &mut Cube<W>) {
    for (c, column) in cube.chunks_exact_mut(W::BITS).enumerate() {
        for (row, w) in rows.chunks_exact(W::COLUMNS).zip(column) {
            *w = row[c];
        }
    }
}

/// Transposes the bits of every column: rows of values become rows of planes. Its own inverse.
#[inline(always)]
pub(super) fn transpose<W: Word>(rows: &mut Cube<W>) {
    let mut distance = W::BITS / 2;
    // The lower half of every 2 · distance bits.
    let mut mask = !W::ZERO >> distance;
    while distance > 0 {
        for pair in rows.chunks_exact_mut(2 * distance * W::COLUMNS) {
            let (upper, lower) = pair.split_at_mut(distance * W::COLUMNS);
            for (a, b) in upper.iter_mut().zip(lower) {
                let t = (*a ^ (*b >> distance)) & mask;
                *a ^= t;
                *b ^= t << distance;
            }
        }
        distance /= 2;
        mask = mask ^ (mask << distance);
    }
}

/// Writes heads and the planes that are not zero to the front of `out`; returns the words written. FORMAT.md §3.2.
///
/// `out` holds the longest cube and one column more. Every plane is written and the place moves on only past those
/// that are not zero: no branch to mispredict.
#[inline(always)]
pub(super) fn compact<W: Word>(values: &Cube<W>, planes: &Cube<W>, out: &mut [W]) -> usize {
    let mut at = W::COLUMNS;
    for (c, column) in values.chunks_exact(W::BITS).enumerate() {
        let head = column.iter().fold(W::ZERO, |all, w| all | *w);
        out[c] = head;
        if head == W::ZERO {
            continue;
        }
        let window = &mut out[at..at + W::BITS];
        let mut n = 0;
        for row in planes.chunks_exact(W::COLUMNS) {
            // n never exceeds the row's number; the mask only tells the compiler.
            window[n & (W::BITS - 1)] = row[c];
            n += usize::from(row[c] != W::ZERO);
        }
        at += n;
    }
    at
}

/// Words that a cube with these heads has.
#[inline(always)]
pub(super) fn length<W: Word>(heads: &[W]) -> usize {
    heads.len() + heads.iter().map(|h| h.ones()).sum::<usize>()
}

/// Puts the stored planes back to their rows, zeros elsewhere: inverse of [`compact`].
///
/// `words` holds the cube, whose length agrees with its heads, and one column more.
#[inline(always)]
pub(super) fn expand<W: Word>(words: &[W], planes: &mut Cube<W>) {
    let one = !(!W::ZERO << 1);
    let mut at = W::COLUMNS;
    for c in 0..W::COLUMNS {
        let head = words[c];
        let window = &words[at..at + W::BITS];
        let mut n = 0;
        for (p, row) in planes.chunks_exact_mut(W::COLUMNS).enumerate() {
            let bit = (head >> (W::BITS - 1 - p)) & one;
            row[c] = window[n & (W::BITS - 1)] & W::spread(bit);
            n += bit.low();
        }
        at += n;
    }
}
