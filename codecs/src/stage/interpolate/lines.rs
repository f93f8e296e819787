// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prediction along lines: a new point from the coarse points a, b before it and c, d behind it.
//!
//! Most points have all four, evenly spaced, and one formula. At a line's ends a or d is missing, or the tile's last
//! point, which stays in every lattice, is nearer than its turn: weights then, which depend on the places alone. Such
//! are at most the first point of a line and its last two.

use super::blocks::{BLOCK, in_blocks};
use super::formulas::{Weights, cubic, lagrange, weighted};
use super::levels::{coarse, place};
use std::ops::Range;

/// The lines along an axis at one level.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lines {
    /// Coarse and new points.
    coarse: usize,
    pub(super) new: usize,
    /// New points of the one formula.
    regular: Range<usize>,
    /// The others.
    edges: Vec<Edge>,
}

/// A new point, the numbers of a, b, c and d among the coarse ones (b's for what is missing), and their weights.
#[derive(Debug, Clone)]
struct Edge {
    k: usize,
    around: [usize; 4],
    weights: Weights,
}

impl Lines {
    /// Lines along an axis of `e` values whose lattice of level `l` has `n` points.
    pub(super) fn new(e: usize, l: usize, n: usize) -> Self {
        let coarse = coarse(n);
        let new = n - coarse;
        let at = |j: usize| place(e, l, j, false);
        // The last point, just behind the one before it, would have a weight of tens, and so would that.
        let apart = |j: &usize| at(*j) - at(*j - 1) >= 1 << l;
        let around = |k: usize| {
            let behind = Some(k + 2).filter(|&j| j < coarse).filter(apart);
            [k.checked_sub(1), Some(k), Some(k + 1).filter(|&j| j < coarse), behind]
        };
        let far = |k: usize| around(k).map(|j| j.map(|j| at(j) as i64 - place(e, l, k, true) as i64));
        let even = |k: &usize| far(*k) == [-3, -1, 1, 3].map(|i: i64| Some(i << l));
        let regular = 1..(1..new).rev().find(even).map_or(1, |k| k + 1);
        let edge = |k| Edge { k, around: around(k).map(|j| j.unwrap_or(k)), weights: lagrange(far(k)) };
        let edges = (0..new.min(1)).chain(regular.end..new).map(edge).collect();
        Lines { coarse, new, regular, edges }
    }

    /// New points of rows.
    #[inline(always)]
    pub(super) fn along(&self, from: &[i32], out: &mut [i32]) {
        let rows = || from.chunks_exact(self.coarse);
        let n = self.regular.len();
        if n > 0 {
            for (from, out) in rows().zip(out.chunks_exact_mut(self.new)) {
                zip4([0, 1, 2, 3].map(|k| &from[k..][..n]), None, &mut out[1..][..n]);
            }
        }
        for &Edge { k, around: [a, b, c, d], weights } in &self.edges {
            for (from, out) in rows().zip(out.chunks_exact_mut(self.new)) {
                out[k] = weighted(weights, from[a], from[b], from[c], from[d]);
            }
        }
    }

    /// New rows of `len` between rows.
    #[inline(always)]
    pub(super) fn across(&self, from: &[i32], len: usize, out: &mut [i32]) {
        let all = self.regular.start * len..self.regular.end * len;
        let behind = |rows: usize| &from[rows * len..][..all.len()];
        if !all.is_empty() {
            zip4([behind(0), behind(1), behind(2), behind(3)], None, &mut out[all.clone()]);
        }
        for Edge { k, around, weights } in &self.edges {
            zip4(around.map(|j| &from[j * len..][..len]), Some(weights), &mut out[k * len..][..len]);
        }
    }

    /// The coarse rows around new row `k` of a level 0 of `e` rows, and their weights but in the regular case.
    #[inline(always)]
    pub(super) fn rows(&self, e: usize, k: usize) -> ([usize; 4], Option<&Weights>) {
        let edge = self.edges.iter().find(|edge| edge.k == k);
        let around = edge.map_or([k.wrapping_sub(1), k, k + 1, k + 2], |edge| edge.around);
        (around.map(|j| place(e, 0, j, false)), edge.map(|edge| &edge.weights))
    }
}

/// Points between those of four rows.
#[inline(always)]
fn zip4(rows: [&[i32]; 4], weights: Option<&Weights>, out: &mut [i32]) {
    let n = out.len();
    let [a, b, c, d] = rows.map(|row| &row[..n]);
    in_blocks(
        n,
        #[inline(always)]
        |at, n| {
            let (a, b, c, d) = (&a[at..][..n], &b[at..][..n], &c[at..][..n], &d[at..][..n]);
            let made = &mut [0; BLOCK][..n];
            match weights {
                None => {
                    for k in 0..n {
                        made[k] = cubic(a[k], b[k], c[k], d[k]);
                    }
                }
                Some(&w) => {
                    for k in 0..n {
                        made[k] = weighted(w, a[k], b[k], c[k], d[k]);
                    }
                }
            }
            out[at..][..n].copy_from_slice(made);
        },
    );
}
