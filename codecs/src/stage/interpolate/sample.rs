// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sample of what prediction along each axis leaves: points of the finest class that is new along all axes, from the
//! tile's own values, as nothing is reconstructed yet. FORMAT.md of lorenzo, §8.
//!
//! Every p-th point is taken, with p such that at most 128 are. They are few enough to be visited one by one.

use super::formulas::{cubic, mean, mean3, weighted};
use super::levels::place;
use super::work::{Way, Work};
use crate::constants::LORENZO_FINE_BITS;
use crate::error::Result;
use crate::memory;

/// Most points of a sample.
const SAMPLE_POINTS: usize = 128;

/// Working memory, and the sample.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// How far predictions along x, y and z are above each point; 0 along an axis of one value.
    errors: [Vec<i32>; 3],
    /// Whether the point and all that it is predicted from are values' own.
    whole: Vec<bool>,
}

/// The axes of a tile: those of more than one value, x as bit 0.
pub(crate) fn axes(extents: [usize; 3]) -> u8 {
    (0..3).map(|k| u8::from(extents[2 - k] > 1) << k).sum()
}

/// All ways to interpolate a tile along some sets of axes, a bit each, with a first point that is as it may be: in
/// rising order, all of them with the same steps first.
pub(crate) fn ways(sets: u8, first: impl Fn(bool) -> bool) -> impl Iterator<Item = Way> {
    let all = [false, true].into_iter().filter(move |&finer| first(finer));
    all.flat_map(|finer| (1..8).map(move |axes| Way { axes, finer })).filter(move |way| sets >> way.axes & 1 == 1)
}

impl Sample {
    /// Takes the sample of a tile whose value number `i` is the point `at(i)`, with `true` where that is the value's
    /// own.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        extents: [usize; 3],
        work: &mut Work,
        at: impl Fn(usize) -> (i32, bool),
    ) -> Result<()> {
        work.lay_out(extents);
        let lines = &work.levels[0].1;
        for errors in &mut self.errors {
            errors.clear();
            memory::reserve(errors, SAMPLE_POINTS)?;
        }
        self.whole.clear();
        memory::reserve(&mut self.whole, SAMPLE_POINTS)?;
        // The class has one plane, row or column where the tile has.
        let [nz, ny, nx] = [0, 1, 2].map(|k| lines[k].new.max(1));
        let count = nz * ny * nx;
        for i in (0..count).step_by(count.div_ceil(SAMPLE_POINTS)) {
            let k = [i / nx / ny, i / nx % ny, i % nx];
            let places: [usize; 3] = std::array::from_fn(|axis| place(extents[axis], 0, k[axis], extents[axis] > 1));
            let value = |[z, y, x]: [usize; 3]| at((z * extents[1] + y) * extents[2] + x);
            let (own, mut whole) = value(places);
            for (axis, errors) in [2, 1, 0].into_iter().zip(&mut self.errors) {
                errors.push(match extents[axis] {
                    1 => 0,
                    e => {
                        let (around, weights) = lines[axis].rows(e, k[axis]);
                        let [a, b, c, d] = around.map(|near| {
                            let mut places = places;
                            places[axis] = near;
                            let (near, its_own) = value(places);
                            whole &= its_own;
                            near
                        });
                        weights.map_or_else(|| cubic(a, b, c, d), |&w| weighted(w, a, b, c, d)).wrapping_sub(own)
                    }
                });
            }
            self.whole.push(whole);
        }
        Ok(())
    }

    /// Sets of axes, a bit each, under which a tile may have been interpolated that gave these points: residuals of its
    /// finest level are whole.
    #[inline(always)]
    pub(crate) fn possible(&self, extents: [usize; 3], errors: &mut Vec<i32>) -> u8 {
        let mut sets = 0;
        for set in (1..8).filter(|set| set & !axes(extents) == 0) {
            self.errors(set, errors);
            let mut all = errors.iter().zip(&self.whole);
            sets |= u8::from(all.all(|(e, whole)| e % (1 << LORENZO_FINE_BITS) == 0 || !whole)) << set;
        }
        sets
    }

    /// How far each point's prediction along these axes of the tile is above it.
    #[inline(always)]
    pub(crate) fn errors(&self, axes: u8, out: &mut Vec<i32>) {
        let [x, y, z] = &self.errors;
        out.clear();
        match axes {
            1 | 2 | 4 => out.extend_from_slice(&self.errors[axes.ilog2() as usize]),
            3 => out.extend(x.iter().zip(y).map(|(&p, &q)| mean(p, q))),
            5 => out.extend(x.iter().zip(z).map(|(&p, &q)| mean(p, q))),
            6 => out.extend(y.iter().zip(z).map(|(&p, &q)| mean(p, q))),
            _ => out.extend(x.iter().zip(y).zip(z).map(|((&p, &q), &r)| mean3(p, q, r))),
        }
    }
}
