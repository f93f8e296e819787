// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an encoder finds out of vectors: the period of a tile's roles, and a chunk's weights. FORMAT.md §8.2.

use super::vector::{LAGS, PARTS, PERIODS, Vector, Weights, length, size, sub};
use crate::error::Result;
use crate::memory;

/// The period of roles that a tile's first frame shows: lengths of steps from atom to atom come again after it.
pub(crate) fn period([_, atoms, parts]: [usize; 3], quanta: &[i32]) -> Result<usize> {
    if atoms <= 2 * PERIODS {
        return Ok(1);
    }
    let at = |i: usize| -> Vector { std::array::from_fn(|c| if c < parts { quanta[i * parts + c] } else { 0 }) };
    let steps: Vec<i32> = memory::collect(atoms - 1, (1..atoms).map(|i| size(sub(at(i), at(i - 1)))))?;
    let (mut best, mut period) = (i64::MAX, 1);
    for p in 1..=PERIODS {
        let (old, new) = (&steps[PERIODS - p..], &steps[PERIODS..]);
        let sum = new.iter().zip(old).map(|(a, b)| i64::from((a - b).abs())).sum::<i64>() + p as i64;
        if 100 * sum < best.saturating_mul(97) {
            (best, period) = (sum, p);
        }
    }
    Ok(period)
}

/// Sums for the weights of a chunk: least squares over steps of places and of bonds, large ones counting less.
#[derive(Default)]
pub(crate) struct Fit([[f64; 5]; 2]);

impl Fit {
    /// Adds a tile's quanta.
    pub(crate) fn add(&mut self, [frames, atoms, parts]: [usize; 3], quanta: &[i32]) {
        let at = |t: usize, i: usize| -> Vector {
            std::array::from_fn(|c| if c < parts { quanta[(t * atoms + i) * parts + c] } else { 0 })
        };
        for i in LAGS..atoms {
            let nearest = (1..=LAGS).min_by_key(|&k| length(sub(at(0, i), at(0, i - k)))).unwrap_or(1);
            for (sums, lag) in self.0.iter_mut().zip([0, nearest]) {
                let place = |t: usize| if lag == 0 { at(t, i) } else { sub(at(t, i), at(t, i - lag)) };
                for t in 2..frames {
                    let step = |t: usize| sub(place(t), place(t - 1)).map(f64::from);
                    let (y, a, b) = (step(t), step(t - 1), if t > 2 { step(t - 2) } else { [0.0; PARTS] });
                    for c in 0..parts {
                        let (y, a, b) = (y[c], a[c], b[c]);
                        let size = 4.0 + y.abs() + a.abs() + b.abs();
                        let (y, a, b) = (y / size, a / size, b / size);
                        for (sum, product) in sums.iter_mut().zip([a * a, a * b, b * b, a * y, b * y]) {
                            *sum += product;
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn weights(&self) -> Weights {
        self.0.map(|[aa, ab, bb, ay, by]| {
            let ridge = 1e-3 * (aa + bb);
            let (aa, bb) = (aa + ridge, bb + ridge);
            let determinant = aa * bb - ab * ab;
            let solved = [(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant];
            // Not a number where nothing moves: 0.
            solved.map(|w| (64.0 * w).round_ties_even() as i8)
        })
    }
}
