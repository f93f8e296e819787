// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lorenzo differences of a tile along x, y and z, which of them to take, and their sums. FORMAT.md §4, §8.2.
//!
//! A predictor is how many axes differ: 0 none, 1 x, 2 x and y, 3 all. What lies before a tile's first values along an
//! axis counts as 0. Everything wraps around, so sums always undo differences, in any order of axes.

use super::lengths;
use super::shape::{LAYER, ROW, row_of};
use super::types::Int;
use super::unit::Unit;
use crate::constants::{PLANES_COUNT, PLANES_LANES, PLANES_NEAR, PLANES_TILE};

/// A tile's integers.
pub(super) type Ints<I> = [I; PLANES_TILE];

/// Values that differ along x: all of the tile in grid rank 1.
fn run(rank: usize, len: usize) -> usize {
    if rank == 1 { len } else { ROW }
}

/// Values of the rows that differ along y from their predecessors: in grid rank 3 those of one layer.
fn sheet(rank: usize, len: usize) -> usize {
    if rank == 3 { LAYER } else { len }
}

#[inline(always)]
fn along_x<I: Int>(from: &[I], to: &mut [I], rank: usize) {
    let run = run(rank, from.len());
    for (from, to) in from.chunks_exact(run).zip(to.chunks_exact_mut(run)) {
        to[0] = from[0];
        for ((to, &this), &before) in to[1..].iter_mut().zip(&from[1..]).zip(from) {
            *to = this.minus(before);
        }
    }
}

#[inline(always)]
fn along_y<I: Int>(v: &mut [I], rank: usize) {
    for sheet in v.chunks_exact_mut(sheet(rank, v.len())) {
        backwards::<I, ROW>(sheet);
    }
}

#[inline(always)]
fn along_z<I: Int>(v: &mut [I]) {
    backwards::<I, LAYER>(v);
}

/// Takes from every part of `N` the one before it.
#[inline(always)]
fn backwards<I: Int, const N: usize>(v: &mut [I]) {
    let parts = v.as_chunks_mut::<N>().0;
    for k in (1..parts.len()).rev() {
        let (before, this) = parts.split_at_mut(k);
        for (this, before) in this[0].iter_mut().zip(&before[k - 1]) {
            *this = this.minus(*before);
        }
    }
}

/// Adds to every part of `N` the one before it, which has been added to already.
#[inline(always)]
fn forwards<I: Int, const N: usize>(v: &mut [I]) {
    let parts = v.as_chunks_mut::<N>().0;
    for k in 1..parts.len() {
        let (before, this) = parts.split_at_mut(k);
        for (this, before) in this[0].iter_mut().zip(&before[k - 1]) {
            *this = this.plus(*before);
        }
    }
}

/// Differences of a tile by a predictor.
pub(super) fn difference<I: Int>(v: &Ints<I>, rank: usize, predictor: usize, unit: impl Unit, out: &mut Ints<I>) {
    unit.run(
        #[inline(always)]
        || {
            if predictor == 0 {
                *out = *v;
                return;
            }
            along_x(v, out, rank);
            if predictor > 1 {
                along_y(out, rank);
            }
            if predictor > 2 {
                along_z(out);
            }
        },
    );
}

/// Undoes [`difference`] in place.
pub(super) fn integrate<I: Int>(v: &mut Ints<I>, rank: usize, predictor: usize, unit: impl Unit) {
    unit.run(
        #[inline(always)]
        || {
            if predictor > 2 {
                forwards::<I, LAYER>(v);
            }
            if predictor > 1 {
                v.chunks_exact_mut(sheet(rank, PLANES_TILE)).for_each(forwards::<I, ROW>);
            }
            if predictor > 0 {
                sums(v, rank);
            }
        },
    );
}

/// Sums along x.
#[inline(always)]
fn sums<I: Int>(v: &mut Ints<I>, rank: usize) {
    for run in v.chunks_exact_mut(run(rank, PLANES_TILE)) {
        let mut sum = I::ZERO;
        for v in run {
            sum = sum.plus(*v);
            *v = sum;
        }
    }
}

/// As [`integrate`] for class 0, where sums are whole numbers and quanta from −4096 to 4095. False where one is not.
///
/// Sums wrap around at 16 bits, yet none that is wrong passes: along z, a right sum within ±16383 and a residual of 16
/// bits give one whose lower 16 bits, if it does not fit them, are not within ±16383 again. The same holds along y
/// within ±8192 and along x from −4096 to 4095. Of quanta that are in their range, all differences are within those
/// limits.
pub(super) fn integrate_near(v: &mut Ints<i16>, rank: usize, predictor: usize, unit: impl Unit) -> bool {
    unit.run(
        #[inline(always)]
        || {
            let mut inside = true;
            if predictor > 2 {
                forwards::<i16, LAYER>(v);
                inside &= all_below(v, 14);
            }
            if predictor > 1 {
                for sheet in v.chunks_exact_mut(sheet(rank, PLANES_TILE)) {
                    let rows = sheet.as_chunks_mut::<ROW>().0;
                    for k in 1..rows.len() {
                        let before = rows[k - 1];
                        unit.add(&mut rows[k], &before);
                    }
                }
                inside &= all_below(v, 13);
            }
            if predictor > 0 {
                let mut before = 0i16;
                for row in v.as_chunks_mut::<ROW>().0 {
                    unit.sums(row);
                    if rank == 1 {
                        row.iter_mut().for_each(|v| *v = v.wrapping_add(before));
                        before = row[ROW - 1];
                    }
                }
            }
            inside & all_below(v, PLANES_NEAR.ilog2())
        },
    )
}

/// Whether all are from −2^bits to 2^bits − 1.
#[inline(always)]
fn all_below(v: &Ints<i16>, bits: u32) -> bool {
    // One sum, from which the compiler makes lanes; of lanes it would make columns.
    v.iter().fold(0, |all, v| all | v.fold()) >> bits == 0
}

/// A tile's grid rank, and how many of its layers hold values of the chunk.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) rank: usize,
    pub(super) layers: usize,
}

impl Held {
    /// Of a tile of these extents.
    pub(super) fn of_tile(rank: usize, [z, y, x]: [usize; 3]) -> Held {
        let layers = match rank {
            3 => z,
            2 => y.div_ceil(LAYER / ROW),
            _ => x.div_ceil(LAYER),
        };
        Held { rank, layers }
    }
}

/// The predictor that §8.2 chooses, by the residuals of layer 1.
pub(super) fn choose_predictor<I: Int>(v: &Ints<I>, held: Held, unit: impl Unit) -> usize {
    unit.run(
        #[inline(always)]
        || least(v, held, cost).0,
    )
}

/// What follows the chunk is like its last layer: nothing is left of it along the slowest axis.
#[inline(always)]
fn least<I: Int>(v: &Ints<I>, held: Held, cost: impl Fn(&[I; 2 * LAYER], usize) -> u32) -> (usize, u32) {
    let rank = held.rank;
    let first: &[I; 2 * LAYER] = v.first_chunk().expect("two layers");
    let mut d = *first;
    let (mut best, mut least) = (0, cost(&d, rank) * PLANES_COUNT as u32);
    for predictor in 1..=rank {
        match predictor {
            1 => along_x(first, &mut d, rank),
            2 => along_y(&mut d, rank),
            _ => along_z(&mut d),
        }
        let layers = if predictor == rank { held.layers } else { PLANES_COUNT };
        let cost = cost(&d, rank) * layers as u32;
        if cost < least {
            (best, least) = (predictor, cost);
        }
    }
    (best, least)
}

/// The predictor that §8.2 chooses in classes 1 and 2, and what it costs.
pub(super) fn shortest<I: Int>(v: &Ints<I>, held: Held, unit: impl Unit) -> (usize, u32) {
    unit.run(
        #[inline(always)]
        || {
            let zeros = lengths::zeros(v);
            least(v, held, |d, _| lengths::cost(&d[LAYER..], zeros))
        },
    )
}

/// Over the lanes, the sum of the bit length of the *or* of the lane's residuals in layer 1.
#[inline(always)]
fn cost<I: Int>(d: &[I; 2 * LAYER], rank: usize) -> u32 {
    let layer = &d[LAYER..];
    let mut sum = 0;
    for group in 0..PLANES_LANES / 8 {
        let mut all = [I::ZERO; ROW];
        for r in 0..4 {
            for (all, d) in all.iter_mut().zip(&layer[row_of(rank, r, group)..][..ROW]) {
                *all = *all | d.fold();
            }
        }
        for [a, b, c, d] in all.as_chunks::<4>().0 {
            sum += (*a | *b | *c | *d).length();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::pack::Portable;

    #[test]
    fn a_slope_is_differenced_along_its_axes() {
        let slope = |i: usize| (i % 32 * 5 + i / 32 % 16 * 3 + i / 512 * 7) as i32;
        let v: Ints<i32> = std::array::from_fn(slope);
        let full = |rank| Held { rank, layers: 8 };
        assert_eq!(choose_predictor(&v, full(3), Portable), 3);
        let noise: Ints<i32> = std::array::from_fn(|i| (i as u32).wrapping_mul(0x9E37_79B1) as i32 >> 20);
        assert_eq!(choose_predictor(&noise, full(3), Portable), 0);
        assert_eq!(choose_predictor(&std::array::from_fn(|i| i as i64 * 100), full(1), Portable), 1);
    }

    #[test]
    fn layers_beyond_the_chunk_cost_the_last_predictor_nothing() {
        // A slope along x and y, and noise whose sign changes from layer to layer: differencing along z doubles it.
        let noise = |i: usize| ((i as u32).wrapping_mul(0x9E37_79B1) ^ (i as u32 * 77) << 19) as i32 >> 27;
        let value = |i: usize| (i % 32 + i / 32 % 16) as i32 * 100 + noise(i % 512) * [1, -1][i / 512 % 2];
        let v: Ints<i32> = std::array::from_fn(value);
        assert_eq!([8, 4].map(|layers| choose_predictor(&v, Held { rank: 3, layers }, Portable)), [2, 3]);
    }
}
