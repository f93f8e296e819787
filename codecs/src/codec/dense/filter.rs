// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights that predict residuals of Lorenzo prediction from those around them: least squares over a sample of a
//! chunk's tiles. FORMAT.md §8.1.
//!
//! Lorenzo prediction is right where a field is smooth between neighbours. Where it is not, or where noise is large
//! beside the bound, its residuals depend on each other, and a weighted sum of those around says a part of the next.
//! Large residuals count less, by the square of all that stand in an equation. Sums are of f64 in a fixed order, and no
//! operations are fused: one answer on every machine.

use super::contexts::{AHEAD, AROUND, Weights, first};

const N: usize = AROUND.len();
/// A filter is worth its bytes if squares of errors become less than this part of those without.
const WORTH: f64 = 0.97;
/// Added to the sizes that an equation is divided by: errors below it count alike.
const SIZE: f64 = 20.0;
/// Every such row of a tile is sampled.
const ROWS: usize = 3;

/// Sums of products for one set of axes.
#[derive(Clone, Copy, Default)]
pub(super) struct Fit {
    products: [[f64; N]; N],
    right: [f64; N],
    squares: f64,
}

impl Fit {
    /// Adds a tile of residuals by Lorenzo prediction along `axes`.
    pub(super) fn add(&mut self, residuals: &[i32], [nz, ny, nx]: [usize; 3], axes: u8) {
        let [z0, y0, x0] = first(axes);
        let rows = (z0..nz).flat_map(|z| (y0..ny).map(move |y| (z, y)));
        for (z, y) in rows.step_by(ROWS) {
            for x in x0..nx {
                let start = (z * ny + y) * nx + x;
                let around = AROUND.map(|[dz, dy, dx]| {
                    let has = match dx {
                        AHEAD => x + 1 < nx,
                        dx => x >= dx + x0,
                    };
                    let has = has && z >= dz + z0 && y >= dy + y0;
                    let at = start.wrapping_sub((dz * ny + dy) * nx).wrapping_sub(dx);
                    if has { f64::from(residuals[at]) } else { 0.0 }
                });
                let own = f64::from(residuals[start]);
                let size = around.iter().fold(SIZE + own.abs(), |sum, r| sum + r.abs());
                let (own, around) = (own / size, around.map(|r| r / size));
                for k in 0..N {
                    for j in 0..=k {
                        self.products[k][j] += around[k] * around[j];
                    }
                    self.right[k] += around[k] * own;
                }
                self.squares += own * own;
            }
        }
    }

    /// The weights; `None` where they are not worth it.
    pub(super) fn weights(&self) -> Option<Weights> {
        /// In parts of the mean square: no weight is without a bound where residuals are alike.
        const RIDGE: f64 = 1e-6;
        let mut lower = self.products;
        let mean = (0..N).map(|k| lower[k][k]).sum::<f64>() / N as f64;
        for k in 0..N {
            for j in 0..=k {
                let mut sum = self.products[k][j] + if j == k { RIDGE * mean } else { 0.0 };
                sum -= (0..j).map(|i| lower[k][i] * lower[j][i]).sum::<f64>();
                lower[k][j] = if j < k { sum / lower[j][j] } else { sum.sqrt() };
            }
        }
        let mut solved = self.right;
        for k in 0..N {
            for j in 0..k {
                solved[k] -= lower[k][j] * solved[j];
            }
            solved[k] /= lower[k][k];
        }
        for k in (0..N).rev() {
            for j in k + 1..N {
                solved[k] -= lower[j][k] * solved[j];
            }
            solved[k] /= lower[k][k];
        }
        let explained: f64 = solved.iter().zip(&self.right).map(|(w, r)| w * r).sum();
        // Not a number where all residuals are 0.
        let is_worth = self.squares - explained < WORTH * self.squares;
        is_worth.then(|| solved.map(|w| (64.0 * w).round_ties_even() as i8))
    }
}
