// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on one cube, each beside its inverse. FORMAT.md §4.
//!
//! A cube of words lives in one array in memory order. Bit planes of all columns are made at once: the cube is first
//! turned so that row `j` holds value `j` of every column, then `B` rows are exchanged pairwise, half the rows'
//! distance bits against half the rows' distance rows, at distance B/2, B/4 … 1. Every loop runs over whole rows with
//! no dependence between its steps, so the compiler uses whatever vectors the processor has; nothing here names one.
//!
//! ```text
//! before step d            after
//! row r:      A | B        row r:      A | C          columns of bits, high to low
//! row r + d:  C | D        row r + d:  B | D
//! ```

use crate::constants::{NDZIP_CUBE, NDZIP_SIDE_1, NDZIP_SIDE_2, NDZIP_SIDE_3};
use crate::scalar::Bits;

/// Columns of a cube of 4-byte words, the most there are.
const MOST_COLUMNS: usize = NDZIP_CUBE / 32;

/// Words of one plane of a cube in rank 3.
const PLANE: usize = NDZIP_SIDE_3 * NDZIP_SIDE_3;

/// The values of one cube, or its planes: row `p` holds plane `p` of every column.
pub type Cube<W> = [W; NDZIP_CUBE];

/// An unsigned word that holds one value.
pub trait Word: Bits {
    const BYTES: usize = size_of::<Self>();
    /// Bits of a word: values of a column, planes of a column.
    const BITS: usize = 8 * size_of::<Self>();
    /// Columns of a cube.
    const COLUMNS: usize = NDZIP_CUBE / Self::BITS;
    fn rotate_left(self) -> Self;
    fn rotate_right(self) -> Self;
    fn ones(self) -> usize;
    /// All bits as the highest one is.
    fn spread_top(self) -> Self;
}

macro_rules! word {
    ($t:ident, $signed:ident) => {
        impl Word for $t {
            #[inline(always)]
            fn rotate_left(self) -> Self {
                $t::rotate_left(self, 1)
            }
            #[inline(always)]
            fn rotate_right(self) -> Self {
                $t::rotate_right(self, 1)
            }
            #[inline(always)]
            fn ones(self) -> usize {
                self.count_ones() as usize
            }
            #[inline(always)]
            fn spread_top(self) -> Self {
                (self as $signed >> ($t::BITS - 1)) as $t
            }
        }
    };
}

word!(u32, i32);
word!(u64, i64);

/// Differences between rows of `row` words inside every `block` words. Walks backwards: the row before is still a
/// value.
#[inline(always)]
fn difference<W: Word>(cube: &mut Cube<W>, block: usize, row: usize) {
    for block in cube.chunks_exact_mut(block) {
        let mut rest = block;
        while rest.len() > row {
            let at = rest.len() - row;
            let (before, this) = rest.split_at_mut(at);
            this.iter_mut().zip(&before[at - row..]).for_each(|(a, b)| *a = a.minus(*b));
            rest = before;
        }
    }
}

/// Inverse of [`difference`]: walks forwards.
#[inline(always)]
fn integrate<W: Word>(cube: &mut Cube<W>, block: usize, row: usize) {
    for block in cube.chunks_exact_mut(block) {
        let mut rest = block;
        while rest.len() > row {
            let (before, this) = rest.split_at_mut(row);
            this[..row].iter_mut().zip(&*before).for_each(|(a, b)| *a = a.plus(*b));
            rest = this;
        }
    }
}

/// Differences along the last axis, whose side is `side`, on turned columns (see [`turn`]). A side longer than a column
/// runs on from a column's last row to the next column's first.
#[inline(always)]
fn difference_columns<W: Word>(rows: &mut Cube<W>, side: usize) {
    let mut last = [W::ZERO; MOST_COLUMNS];
    last[..W::COLUMNS].copy_from_slice(&rows[(W::BITS - 1) * W::COLUMNS..]);
    difference(rows, side.min(W::BITS) * W::COLUMNS, W::COLUMNS);
    let per_side = side / W::BITS;
    if per_side > 1 {
        for c in (0..W::COLUMNS).filter(|c| c % per_side != 0) {
            rows[c] = rows[c].minus(last[c - 1]);
        }
    }
}

/// Inverse of [`difference_columns`].
#[inline(always)]
fn integrate_columns<W: Word>(rows: &mut Cube<W>, side: usize) {
    integrate(rows, side.min(W::BITS) * W::COLUMNS, W::COLUMNS);
    let per_side = side / W::BITS;
    if per_side > 1 {
        let (upper, last) = rows.split_at_mut((W::BITS - 1) * W::COLUMNS);
        // Sum of the columns before this one on its line of the cube.
        let mut before = [W::ZERO; MOST_COLUMNS];
        for c in (0..W::COLUMNS).filter(|c| c % per_side != 0) {
            before[c] = before[c - 1].plus(last[c - 1]);
        }
        for row in upper.chunks_exact_mut(W::COLUMNS).chain([last]) {
            row.iter_mut().zip(&before).for_each(|(w, b)| *w = w.plus(*b));
        }
    }
}

/// Flips the lower bits of negative words (§4.2); its own inverse.
#[inline(always)]
fn flip<W: Word>(cube: &mut Cube<W>) {
    cube.iter_mut().for_each(|w| *w = *w ^ w.spread_top() >> 1);
}

/// From a cube's values to `rows` of residuals in sign and magnitude: §4 up to the bit planes. Spoils the cube.
#[inline(always)]
pub fn forward<W: Word>(cube: &mut Cube<W>, rows: &mut Cube<W>, rank: usize, float: bool) {
    if float {
        // The sign becomes the lowest bit: §4.4.
        cube.iter_mut().for_each(|w| *w = w.rotate_left());
    }
    let side = match rank {
        1 => NDZIP_SIDE_1,
        2 => {
            difference(cube, NDZIP_CUBE, NDZIP_SIDE_2);
            NDZIP_SIDE_2
        }
        _ => {
            difference(cube, PLANE, NDZIP_SIDE_3);
            difference(cube, NDZIP_CUBE, PLANE);
            NDZIP_SIDE_3
        }
    };
    turn(cube, rows);
    difference_columns(rows, side);
    flip(rows);
}

/// Inverse of [`forward`]; spoils the rows.
#[inline(always)]
pub fn backward<W: Word>(rows: &mut Cube<W>, cube: &mut Cube<W>, rank: usize, float: bool) {
    flip(rows);
    integrate_columns(rows, [NDZIP_SIDE_1, NDZIP_SIDE_2, NDZIP_SIDE_3][rank - 1]);
    turn_back(rows, cube);
    match rank {
        1 => {}
        2 => integrate(cube, NDZIP_CUBE, NDZIP_SIDE_2),
        _ => {
            integrate(cube, NDZIP_CUBE, PLANE);
            integrate(cube, PLANE, NDZIP_SIDE_3);
        }
    }
    if float {
        cube.iter_mut().for_each(|w| *w = w.rotate_right());
    }
}

/// Writes the heads: for each column the bits that any of its values has, which are the planes that are not zero.
/// False where every head is zero.
#[inline(always)]
pub fn heads<W: Word>(rows: &Cube<W>, heads: &mut [W]) -> bool {
    let mut all = [W::ZERO; MOST_COLUMNS];
    for row in rows.chunks_exact(W::COLUMNS) {
        all.iter_mut().zip(row).for_each(|(all, w)| *all = *all | *w);
    }
    heads.copy_from_slice(&all[..W::COLUMNS]);
    all.iter().any(|h| *h != W::ZERO)
}

/// Turns columns of values into rows of values: word `j` of column `c` goes to row `j`, place `c`.
///
/// Both directions walk the destination in order and the source in strides, which reads well and writes whole lines.
#[inline(always)]
fn turn<W: Word>(cube: &Cube<W>, rows: &mut Cube<W>) {
    for (j, row) in rows.chunks_exact_mut(W::COLUMNS).enumerate() {
        for (w, column) in row.iter_mut().zip(cube.chunks_exact(W::BITS)) {
            *w = column[j];
        }
    }
}

/// Inverse of [`turn`].
#[inline(always)]
pub fn turn_back<W: Word>(rows: &Cube<W>, cube: &mut Cube<W>) {
    for (c, column) in cube.chunks_exact_mut(W::BITS).enumerate() {
        for (row, w) in rows.chunks_exact(W::COLUMNS).zip(column) {
            *w = row[c];
        }
    }
}

/// Transposes the bits of every column: rows of values become rows of planes. Its own inverse.
#[inline(always)]
pub fn transpose<W: Word>(rows: &mut Cube<W>) {
    let mut distance = W::BITS / 2;
    // The lower half of every 2 · distance bits.
    let mut mask = W::ZERO.minus(W::ONE) >> distance as u32;
    while distance > 0 {
        let shift = distance as u32;
        for pair in rows.chunks_exact_mut(2 * distance * W::COLUMNS) {
            let (upper, lower) = pair.split_at_mut(distance * W::COLUMNS);
            for (a, b) in upper.iter_mut().zip(lower) {
                let t = (*a ^ *b >> shift) & mask;
                *a = *a ^ t;
                *b = *b ^ t << shift;
            }
        }
        distance /= 2;
        mask = mask ^ mask << distance as u32;
    }
}

/// Writes the planes that are not zero behind the heads at the front of `words`; returns the cube's words. FORMAT.md
/// §3.2.
///
/// `words` holds the longest cube and one column more. Every plane is written and the place moves on only past those
/// that are not zero: no branch to mispredict.
#[inline(always)]
pub fn compact<W: Word>(planes: &Cube<W>, words: &mut [W]) -> usize {
    let mut at = W::COLUMNS;
    for c in 0..W::COLUMNS {
        if words[c] == W::ZERO {
            continue;
        }
        let window = &mut words[at..at + W::BITS];
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
pub fn length<W: Word>(heads: &[W]) -> usize {
    heads.len() + heads.iter().map(|h| h.ones()).sum::<usize>()
}

/// Puts the stored planes back to their rows, zeros elsewhere: inverse of [`compact`].
///
/// `words` holds the cube, whose length agrees with its heads, and one column more.
#[inline(always)]
pub fn expand<W: Word>(words: &[W], planes: &mut Cube<W>) {
    let mut at = W::COLUMNS;
    for c in 0..W::COLUMNS {
        let window = &words[at..at + W::BITS];
        let mut head = words[c];
        let mut n = 0;
        for row in planes.chunks_exact_mut(W::COLUMNS) {
            let stored = head.spread_top();
            row[c] = window[n & (W::BITS - 1)] & stored;
            n += usize::from(stored != W::ZERO);
            head = head << 1;
        }
        at += n;
    }
}
