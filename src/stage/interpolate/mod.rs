// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prediction of a tile's lattice from every second point of it, level by level, on integers: interpolation after SZ3 (Zhao
//! et al., ICDE 2021, doi:10.1109/ICDE51399.2021.00145). FORMAT.md of lorenzo, §4.4.
//!
//! A lattice of a × b × c points falls into its even points (all indices even), which are a lattice of half the extents,
//! and seven classes by the parities of the indices. Once the even points are reconstructed, each class is predicted
//! along its odd axes from classes with one odd index less; then the eight are woven into the finer lattice, and so on
//! until it is the tile. Points are kept class by class, the coarsest level first, which is also the order of the stream:
//! within a class all work is on whole rows of neighbours.
//!
//! Reconstructed points are used for prediction, so errors do not add up; a step of the residual is 256 units of a point,
//! so that averages of points keep their fractions. Integers wrap around: a wild prediction costs bits, never the bound.

mod formulas;
mod levels;

use crate::error::Result;
use crate::memory;
use formulas::{beyond, left, linear, middle};
pub(crate) use formulas::{cubic, point, residual};
use levels::{ORDER, class, levels, weave};
pub(crate) use levels::{permute, unpermute};
use std::ops::Range;

/// Working memory.
#[derive(Debug, Default)]
pub(crate) struct Work {
    classes: [Vec<i32>; 8],
    lines: [Vec<i32>; 3],
    predicted: Vec<i32>,
    woven: Vec<i32>,
}

/// Most points of a class of a tile of `n`, and of a lattice that is not the tile itself.
fn half(n: usize) -> usize {
    n.div_ceil(2)
}

impl Work {
    /// Memory for a tile of `n` points: nothing is allocated on the way through it.
    pub(crate) fn reserve(&mut self, n: usize) -> Result<()> {
        let Work { classes, lines, predicted, woven } = self;
        classes.iter_mut().chain(lines).chain([predicted, woven]).try_for_each(|v| memory::reserve_total(v, half(n)))
    }
}

/// The same for [`permute`]'s lattices.
pub(crate) fn reserve<T>(lattices: &mut [Vec<T>; 2], n: usize) -> Result<()> {
    lattices.iter_mut().try_for_each(|v| memory::reserve_total(v, half(n)))
}

/// Walks the tile from its coarsest lattice to its finest.
///
/// `visit(at, predicted, points)` is given the place in the stream of a class's first residual and the class's predictions,
/// and fills in its points. Returns the points of the finest lattice in `dense`, or stops before weaving them where `dense` is
/// empty.
#[inline(always)]
pub(crate) fn walk(
    extents: [usize; 3],
    work: &mut Work,
    dense: &mut [i32],
    mut visit: impl FnMut(usize, &[i32], &mut [i32]),
) {
    let levels = levels(extents);
    let Work { classes, lines, predicted, woven } = work;
    classes[0].clear();
    classes[0].push(0);
    visit(0, &[0], &mut classes[0]);
    if levels.len() == 1 {
        dense.copy_from_slice(&classes[0][..dense.len()]);
        return;
    }
    let mut at = 1;
    for l in (0..levels.len() - 1).rev() {
        let d = levels[l];
        for parity in ORDER {
            let n = class(d, parity).iter().product();
            if n > 0 {
                let mut points = std::mem::take(&mut classes[parity]);
                points.resize(n, 0);
                predict(d, parity, classes, lines, predicted);
                visit(at, predicted, &mut points);
                at += n;
                classes[parity] = points;
            }
        }
        if l > 0 {
            woven.resize(d.iter().product(), 0);
            weave(d, classes, woven);
            std::mem::swap(&mut classes[0], woven);
        } else if !dense.is_empty() {
            weave(d, classes, dense);
        }
    }
}

/// Predicts all points of a class into `out`.
#[inline(always)]
fn predict(d: [usize; 3], parity: usize, classes: &[Vec<i32>; 8], lines: &mut [Vec<i32>; 3], out: &mut Vec<i32>) {
    let [nz, ny, nx] = class(d, parity);
    let half = d.map(|e| e.div_ceil(2));
    for axis in [2, 1, 0] {
        let bit = 1 << (2 - axis);
        if parity & bit == 0 {
            continue;
        }
        let from = &classes[parity ^ bit][..];
        let line = &mut lines[2 - axis];
        line.resize(nz * ny * nx, 0);
        match axis {
            2 => along_x(from, half[2], line, nx),
            1 => {
                for (from, line) in from.chunks_exact(half[1] * nx).zip(line.chunks_exact_mut(ny * nx)) {
                    across(from, half[1], nx, line);
                }
            }
            _ => across(from, half[0], ny * nx, line),
        }
    }
    out.resize(nz * ny * nx, 0);
    if parity.is_power_of_two() {
        std::mem::swap(out, &mut lines[parity.ilog2() as usize]);
        return;
    }
    // The last index along an odd axis has no neighbour behind it where the extent is even.
    let inner = |axis: usize, i: usize| i + 1 < half[axis];
    // Rows of a plane that have a neighbour behind, then the last.
    let whole = if parity & 2 != 0 { ny.min(half[1] - 1) } else { ny };
    for z in 0..nz {
        for (y, end) in [(0, whole), (whole, ny)].into_iter().filter(|(y, end)| y < end) {
            let places = (z * ny + y) * nx..(z * ny + end) * nx;
            let [inner_y, inner_z] = [inner(1, y), inner(0, z)];
            mean(lines, parity, [true, inner_y, inner_z], places.clone(), out);
            if parity & 1 != 0 && !inner(2, nx - 1) {
                for last in places.skip(nx - 1).step_by(nx) {
                    mean(lines, parity, [false, inner_y, inner_z], last..last + 1, out);
                }
            }
        }
    }
}

/// Points between the points of rows of `m`, into rows of `nx`.
#[inline(always)]
fn along_x(from: &[i32], m: usize, out: &mut [i32], nx: usize) {
    if m == nx {
        // Rows begin at the same places on both sides: one loop over all of them, whose edges are mended below.
        let n = out.len();
        if let (Some(out), true) = (out.get_mut(1..n.saturating_sub(2)), n > 3) {
            let (a, b, c, d) = (&from[..n - 3], &from[1..n - 2], &from[2..n - 1], &from[3..n]);
            for ((((o, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *o = cubic(a, b, c, d);
            }
        }
    } else {
        for (from, out) in from.chunks_exact(m).zip(out.chunks_exact_mut(nx)) {
            for (o, w) in out.iter_mut().skip(1).zip(from.windows(4)) {
                *o = cubic(w[0], w[1], w[2], w[3]);
            }
        }
    }
    for (from, out) in from.chunks_exact(m).zip(out.chunks_exact_mut(nx)) {
        out[0] = edge(from, 0);
        let last = m.saturating_sub(2).max(1);
        for (i, o) in out.iter_mut().enumerate().skip(last) {
            *o = edge(from, i);
        }
    }
}

/// A point after f[i], where some of its four neighbours may be missing.
#[inline(always)]
fn edge(f: &[i32], i: usize) -> i32 {
    let before = i.checked_sub(1).map(|k| f[k]);
    match (before, f.get(i + 1), f.get(i + 2)) {
        (Some(a), Some(&c), Some(&d)) => cubic(a, f[i], c, d),
        (Some(a), Some(&c), None) => left(a, f[i], c),
        (None, Some(&c), Some(&d)) => left(d, c, f[i]),
        (None, Some(&c), None) => linear(f[i], c),
        (Some(a), None, _) => beyond(a, f[i]),
        (None, None, _) => f[i],
    }
}

/// Rows of `len` between `m` rows, into as many or one less.
#[inline(always)]
fn across(from: &[i32], m: usize, len: usize, out: &mut [i32]) {
    // Rows with two on either side, in one loop.
    let all = out.len() / len;
    let inner = len..len * all.min(m.saturating_sub(2)).max(1);
    let behind = |rows: usize| &from[inner.start + rows * len..][..inner.len()];
    if !inner.is_empty() {
        let (a, b, c, d) = (&from[..inner.len()], behind(0), behind(1), behind(2));
        for ((((o, &a), &b), &c), &d) in out[inner.clone()].iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *o = cubic(a, b, c, d);
        }
    }
    for i in (0..1).chain(inner.end / len..all) {
        let out = &mut out[i * len..][..len];
        let row = |k: usize| from.get(k * len..(k + 1) * len).filter(|_| k < m);
        let (Some(b), before) = (row(i), i.checked_sub(1).and_then(row)) else { return };
        match (before, row(i + 1), row(i + 2)) {
            (Some(a), Some(c), Some(d)) => {
                for ((((o, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *o = cubic(a, b, c, d);
                }
            }
            (Some(a), Some(c), None) => zip3(a, b, c, out, left),
            (None, Some(c), Some(d)) => zip3(d, c, b, out, left),
            (None, Some(c), None) => zip3(
                b,
                b,
                c,
                out,
                #[inline(always)]
                |_, b, c| linear(b, c),
            ),
            (Some(a), None, _) => zip3(
                a,
                a,
                b,
                out,
                #[inline(always)]
                |_, a, b| beyond(a, b),
            ),
            (None, None, _) => out.copy_from_slice(b),
        }
    }
}

#[inline(always)]
fn zip3(a: &[i32], b: &[i32], c: &[i32], out: &mut [i32], f: impl Fn(i32, i32, i32) -> i32) {
    for (((o, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *o = f(a, b, c);
    }
}

/// The mean of a class's inner guesses, or of all where none is inner, at some places.
#[inline(always)]
fn mean(lines: &[Vec<i32>; 3], parity: usize, inner: [bool; 3], places: Range<usize>, out: &mut [i32]) {
    let odd = |k: usize| parity >> k & 1 == 1;
    let any = (0..3).any(|k| odd(k) && inner[k]);
    let mut used = [&[][..]; 3];
    let mut count = 0;
    for k in (0..3).filter(|&k| odd(k) && (inner[k] || !any)) {
        used[count] = &lines[k][places.clone()];
        count += 1;
    }
    let out = &mut out[places];
    match (count, used) {
        (1, [p, ..]) => out.copy_from_slice(p),
        (2, [p, q, _]) => zip3(
            p,
            q,
            q,
            out,
            #[inline(always)]
            |p, q, _| linear(q, p),
        ),
        (_, [p, q, r]) => zip3(p, q, r, out, middle),
    }
}

/// Points of a tile from its residuals.
#[inline(always)]
pub(crate) fn reconstruct(residuals: &[i32], extents: [usize; 3], work: &mut Work, points: &mut [i32]) {
    walk(
        extents,
        work,
        points,
        #[inline(always)]
        |at, predicted, row| {
            for ((p, &q), &d) in row.iter_mut().zip(predicted).zip(&residuals[at..]) {
                *p = point(q, d);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[usize; 3]; 9] =
        [[1, 1, 1], [1, 1, 2], [1, 1, 37], [1, 2, 3], [1, 64, 128], [16, 16, 32], [10, 7, 3], [5, 1, 4], [2, 2, 2]];

    #[test]
    fn the_order_of_the_stream_is_a_permutation() {
        for extents in SHAPES {
            let n: usize = extents.iter().product();
            let tile: Vec<usize> = (0..n).collect();
            let (mut stream, mut back) = (vec![0; n], vec![0; n]);
            permute(&tile, extents, &mut Default::default(), &mut stream);
            unpermute(&stream, extents, &mut back);
            assert_eq!(back, tile, "{extents:?}");
            if n > 1 {
                assert_ne!(stream.iter().max(), Some(&0));
            }
        }
    }

    #[test]
    fn points_come_back_to_within_half_a_step() {
        let mut state = 3u32;
        for extents in SHAPES {
            for wild in [false, true] {
                let n: usize = extents.iter().product();
                let tile: Vec<i32> = (0..n)
                    .map(|i| {
                        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                        if wild { state as i32 } else { (i * 1000) as i32 + (state >> 22) as i32 }
                    })
                    .collect();
                let mut x = vec![0; n];
                permute(&tile, extents, &mut Default::default(), &mut x);
                let (mut work, mut d, mut made) = (Work::default(), vec![0; n], vec![0; n]);
                walk(extents, &mut work, &mut made, |at, predicted, row| {
                    for (k, p) in row.iter_mut().enumerate() {
                        d[at + k] = residual(x[at + k], predicted[k]);
                        *p = point(predicted[k], d[at + k]);
                    }
                });
                let mut back = vec![0; n];
                reconstruct(&d, extents, &mut work, &mut back);
                assert_eq!(back, made);
                for (i, (&x, &y)) in tile.iter().zip(&back).enumerate() {
                    let off = x.wrapping_sub(y);
                    assert!((-128..=128).contains(&off), "{extents:?}: point {i}: {x} came back as {y}");
                }
            }
        }
    }

    #[test]
    fn a_smooth_lattice_needs_few_residuals() {
        let extents = [16, 16, 32];
        let wave = |i: usize| {
            let (z, y, x) = (i / 512, i / 32 % 16, i % 32);
            ((z as f64 * 0.1).sin() + (y as f64 * 0.07).cos() + (x as f64 * 0.05).sin()) * 25600.0
        };
        let tile: Vec<i32> = (0..8192).map(|i| wave(i) as i32).collect();
        let mut x = vec![0; 8192];
        permute(&tile, extents, &mut Default::default(), &mut x);
        let mut others = 0;
        walk(extents, &mut Work::default(), &mut [], |at, predicted, row| {
            for (k, p) in row.iter_mut().enumerate() {
                let d = residual(x[at + k], predicted[k]);
                others += usize::from(d != 0);
                *p = point(predicted[k], d);
            }
        });
        assert!(others < 600, "{others} of 8192 residuals are not zero");
    }
}
