// SPDX-License-Identifier: MIT OR Apache-2.0
//! The context of each residual: how large the ones around it are. FORMAT.md §4.2, §4.3.
//!
//! ```text
//! grid       a tile of Lorenzo prediction is one; of an interpolated tile each class of each level is one
//! around     residuals before this one in the grid's order, and in the other classes of its level
//! expected   the weighted mean of their magnitudes, in 128ths of an octave
//! context    the grid's group, and a bin of what is expected
//! filter     in a tile of Lorenzo prediction, what is coded is the residual less a weighted sum of those around it
//! ```
//!
//! Differences along an axis leave values on the first places of that axis as they are: they form a *border*, whose
//! residuals say nothing of the inner ones, nor these of them.

use super::tokens::{EXPECTED, magnitude};
use super::vectors;
use crate::stage::interpolate::{self, Grid};

/// Bins of a group.
pub(super) const BINS: usize = 64;
/// Groups: of Lorenzo prediction along up to one axis, two and three, each inside and on the border; of interpolation
/// the classes of the finest level that are new along one axis, two and three, and three groups of levels; and of
/// vectors.
pub(super) const GROUPS: usize = VECTORS + vectors::GROUPS;
/// The first group of vectors.
const VECTORS: usize = 12;
/// Contexts.
pub(super) const CONTEXTS: usize = BINS * GROUPS;

/// The bin of an expected magnitude: sixteenths of an octave up to one, quarters from there on.
pub(super) fn bin(expected: usize) -> usize {
    if expected < 128 { expected / 8 } else { (16 + (expected - 128) / 32).min(BINS - 1) }
}

/// Weights of a filter, in 64ths: of the residuals around, in the order of [`AROUND`].
pub(super) type Weights = [i8; AROUND.len()];

/// Where the residuals are that a filter sums up: steps along z, y and x.
pub(super) const AROUND: [[usize; 3]; 9] = [
    [0, 0, 1],
    [0, 0, 2],
    [0, 1, 0],
    // One row before, one place ahead.
    [0, 1, AHEAD],
    [0, 1, 1],
    [0, 2, 0],
    [1, 0, 0],
    [1, 0, 1],
    [1, 1, 0],
];
/// Stands for a step to a later place of the row.
pub(super) const AHEAD: usize = usize::MAX;

/// 16 over a sum of weights, in 2^-22, rounded up.
static RECIPROCALS: [u64; 32] = reciprocals();

const fn reciprocals() -> [u64; 32] {
    let mut table = [0; 32];
    let mut w = 1;
    while w < 32 {
        table[w] = (1u64 << 26).div_ceil(w as u64);
        w += 1;
    }
    table
}

/// Working memory of [`walk`].
#[derive(Default)]
pub(super) struct Rows {
    around: Vec<u16>,
    filtered: Vec<i32>,
    vectors: vectors::Frames,
}

/// What predicts a tile, as far as its residuals' order and contexts depend on it.
#[derive(Clone, Copy)]
pub(super) enum Shape<'w> {
    Lorenzo {
        axes: u8,
        weights: Option<&'w Weights>,
    },
    Interpolation,
    /// Not residuals, but quanta themselves are coded.
    Vectors {
        period: usize,
        weights: &'w vectors::Weights,
    },
}

/// Calls `code(group, expected, left)` for each residual of a tile, in their order; it returns what is coded.
/// `residuals` are the tile's: an encoder has them, and is given what the filter leaves of each; a decoder gets them
/// here.
#[inline(always)]
pub(super) fn walk<const DECODES: bool>(
    extents: [usize; 3],
    shape: Shape<'_>,
    residuals: &mut [i32],
    magnitudes: &mut [u8],
    rows: &mut Rows,
    mut code: impl FnMut(usize, usize, i32) -> i32,
) {
    match shape {
        Shape::Lorenzo { axes, weights } => {
            let group = 2 * (axes.count_ones().saturating_sub(1)) as usize;
            let grid = &Grid::whole(extents);
            Walk { grid, first: first(axes), group, weights }.run(residuals, magnitudes, rows, &mut code);
        }
        Shape::Vectors { period, weights } => {
            vectors::walk::<DECODES>(
                extents,
                period,
                weights,
                residuals,
                &mut rows.vectors,
                #[inline(always)]
                |group, expected, left| code(VECTORS + group, expected, left),
            );
        }
        Shape::Interpolation => {
            interpolate::grids(extents, |grid| {
                let group = match grid.level {
                    0 => 5 + grid.class.count_ones() as usize,
                    level => 8 + level.min(3),
                };
                Walk { grid, first: [0; 3], group, weights: None }.run(residuals, magnitudes, rows, &mut code);
            });
        }
    }
}

/// The first index along z, y and x that is not on the border of Lorenzo prediction along `axes`.
pub(super) fn first(axes: u8) -> [usize; 3] {
    [2, 1, 0].map(|k| usize::from(axes >> k & 1))
}

/// Whether the place `step` before index `at` is there, and on the border where this one is. One on the border has
/// none: no index is before its own.
#[inline(always)]
fn has(at: usize, step: usize, first: usize) -> bool {
    at >= step + first
}

/// The way through one grid.
struct Walk<'a> {
    grid: &'a Grid,
    first: [usize; 3],
    /// The group of its residuals; those on a border have the next one.
    group: usize,
    weights: Option<&'a Weights>,
}

impl Walk<'_> {
    #[inline(always)]
    fn run(
        &self,
        residuals: &mut [i32],
        magnitudes: &mut [u8],
        Rows { around, filtered, .. }: &mut Rows,
        code: &mut impl FnMut(usize, usize, i32) -> i32,
    ) {
        let ([nz, ny, nx], [z0, y0, x0]) = (self.grid.extents, self.first);
        around.resize(nx, 0);
        filtered.resize(nx, 0);
        for (z, y) in (0..nz).flat_map(|z| (0..ny).map(move |y| (z, y))) {
            let start = self.grid.at + (z * ny + y) * nx;
            let on_border = y < y0 || z < z0;
            let above = has(y, 1, y0);
            let sum = self.other_rows([z, y], start, magnitudes, around);
            let weights = self.weights.filter(|_| !on_border);
            if let Some(weights) = weights {
                self.filter_rows(weights, [z, y], start, residuals, filtered);
            }
            let (mut m1, mut m2, mut r1, mut r2) = (0u16, 0u16, 0i32, 0i32);
            for x in 0..nx {
                let ahead = if above && x >= x0 && x + 1 < nx { 2 } else { 0 };
                let behind = if has(x, 2, x0) { 6 } else { 4 * usize::from(has(x, 1, x0)) };
                let weight = sum + ahead + behind;
                let total = u64::from(around[x] + 4 * m1 + 2 * m2);
                let expected = match weight {
                    0 => EXPECTED - 1,
                    weight => ((total * RECIPROCALS[weight & 31]) >> 22) as usize,
                };
                let is_inner = !on_border && x >= x0;
                let predicted = match weights {
                    Some(weights) if is_inner => {
                        let row = filtered[x]
                            .wrapping_add(i32::from(weights[0]).wrapping_mul(r1))
                            .wrapping_add(i32::from(weights[1]).wrapping_mul(r2));
                        row.wrapping_add(32) >> 6
                    }
                    _ => 0,
                };
                let at = start + x;
                let coded = code(self.group + usize::from(!is_inner), expected, residuals[at].wrapping_sub(predicted));
                let residual = coded.wrapping_add(predicted);
                residuals[at] = residual;
                magnitudes[at] = magnitude(coded);
                (m2, r2) = (m1, r1);
                (m1, r1) = if x >= x0 { (u16::from(magnitudes[at]), residual) } else { (0, 0) };
            }
        }
    }

    /// Sums of weighted magnitudes in other rows, and of the weights of those that each place has.
    #[inline(always)]
    fn other_rows(&self, [z, y]: [usize; 2], start: usize, magnitudes: &[u8], around: &mut [u16]) -> usize {
        let ([_, ny, nx], [z0, y0, x0]) = (self.grid.extents, self.first);
        let before = [
            (has(y, 1, y0), nx, 3),
            (has(y, 2, y0), 2 * nx, 1),
            (has(z, 1, z0), ny * nx, 3),
            (has(z, 2, z0), 2 * ny * nx, 2),
        ];
        around.fill(0);
        let mut weights = 0;
        for (_, distance, weight) in before.into_iter().filter(|row| row.0) {
            let row = &magnitudes[start - distance..][..nx];
            around.iter_mut().zip(row).for_each(|(sum, &m)| *sum += weight * u16::from(m));
            weights += usize::from(weight);
        }
        // One row before, one place ahead.
        if has(y, 1, y0) && nx > x0 + 1 {
            let row = &magnitudes[start - nx + x0 + 1..][..nx - x0 - 1];
            around[x0..].iter_mut().zip(row).for_each(|(sum, &m)| *sum += 2 * u16::from(m));
        }
        for sides in self.grid.around(z, y) {
            around.iter_mut().enumerate().for_each(|(x, sum)| {
                let [p, q] = sides.places(x);
                *sum += u16::from(magnitudes[p]) + u16::from(magnitudes[q]);
            });
            weights += 2;
        }
        weights
    }

    /// The filter's sums of residuals in other rows.
    #[inline(always)]
    fn filter_rows(&self, weights: &Weights, [z, y]: [usize; 2], start: usize, residuals: &[i32], out: &mut [i32]) {
        let ([_, ny, nx], [z0, y0, x0]) = (self.grid.extents, self.first);
        out.fill(0);
        for ([dz, dy, dx], &weight) in AROUND.into_iter().zip(weights).skip(2) {
            if weight == 0 || !has(y, dy, y0) || !has(z, dz, z0) {
                continue;
            }
            let row = &residuals[start - (dz * ny + dy) * nx..][..nx];
            let add = |to: &mut [i32], from: &[i32]| {
                to.iter_mut()
                    .zip(from)
                    .for_each(|(sum, r)| *sum = sum.wrapping_add(i32::from(weight).wrapping_mul(*r)));
            };
            match dx {
                AHEAD if nx > x0 + 1 => add(&mut out[x0..nx - 1], &row[x0 + 1..]),
                AHEAD => (),
                dx if nx > x0 + dx => add(&mut out[x0 + dx..], &row[x0..]),
                _ => (),
            }
        }
    }
}
