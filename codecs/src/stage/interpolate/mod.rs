// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prediction of a tile's lattice from every second point of it, level by level, on integers: interpolation after SZ3
//! (Zhao et al., ICDE 2021, doi:10.1109/ICDE51399.2021.00145). FORMAT.md of lorenzo, §4.4.
//!
//! Along each axis a lattice's points are *coarse* or *new*: every second one is new, but the last point is coarse, so
//! that nothing is predicted from one side only. The points that are coarse along all axes are the next smaller
//! lattice; the others fall into seven classes by the axes along which they are new. Once the smaller lattice is
//! reconstructed, each class is predicted along these axes, or those of them in a set that the tile has, from classes
//! with one of them less; then the eight are woven into the finer lattice, and so on until it is the tile. Points are
//! kept class by class, the coarsest level first, which is also the order of the stream: within a class all work is on
//! whole rows of neighbours.
//!
//! Reconstructed points are used for prediction, so errors do not add up; a step of the residual is 256 units of a
//! point, so that averages of points keep their fractions. A tile may have finer steps on its coarse levels, as many
//! points are predicted from them. Integers wrap around: a wild prediction costs bits, never the bound.

mod blocks;
mod formulas;
mod grids;
mod levels;
mod lines;
mod sample;
mod work;

pub(crate) use formulas::{by_step, point, residual};
use formulas::{mean, mean3, step};
pub(crate) use grids::{Grid, grids};
use levels::{ORDER, class, levels, weave};
pub(crate) use levels::{permute, unpermute};
use lines::Lines;
pub(crate) use sample::{Sample, axes, ways};
pub use work::{Way, Work, reserve};

/// The step of a tile's first point, which is predicted to be 0.
pub(crate) fn first_step(extents: [usize; 3], finer: bool) -> i32 {
    step(finer, levels(extents).len() - 1)
}

/// Walks the tile from its coarsest lattice to its finest.
///
/// `visit(at, step, predicted, points)` is given the place in the stream of a class's first residual, the step of its
/// residuals and the class's predictions, fills in its points and says whether to go on. Returns whether it did to the
/// end; the points of the finest lattice are in `dense` then, but are not woven where that is empty.
#[inline(always)]
pub(crate) fn walk(
    extents: [usize; 3],
    way: Way,
    work: &mut Work,
    dense: &mut [i32],
    mut visit: impl FnMut(usize, i32, &[i32], &mut [i32]) -> bool,
) -> bool {
    work.lay_out(extents);
    let Work { levels, classes, along, predicted, woven, .. } = work;
    classes[0].clear();
    classes[0].push(0);
    let mut on = visit(0, step(way.finer, levels.len() - 1), &[0], &mut classes[0]);
    if levels.len() == 1 {
        dense.copy_from_slice(&classes[0][..dense.len()]);
    }
    let mut at = 1;
    for l in (0..levels.len() - 1).rev() {
        let (d, ref lines) = levels[l];
        for parity in ORDER {
            let n = class(d, parity).iter().product();
            if on && n > 0 {
                let mut points = std::mem::take(&mut classes[parity]);
                points.resize(n, 0);
                let used = match parity & usize::from(way.axes) {
                    0 => parity,
                    some => some,
                };
                predict(class(d, parity), parity, used, lines, classes, along, predicted);
                on = visit(at, step(way.finer, l), predicted, &mut points);
                at += n;
                classes[parity] = points;
            }
        }
        if !on {
            return false;
        }
        if l > 0 {
            woven.resize(d.iter().product(), 0);
            weave(d, classes, woven);
            std::mem::swap(&mut classes[0], woven);
        } else if !dense.is_empty() {
            weave(d, classes, dense);
        }
    }
    on
}

/// Predicts all points of a class of these extents into `out`, from lines along the axes `used`.
#[inline(always)]
fn predict(
    [nz, ny, nx]: [usize; 3],
    parity: usize,
    used: usize,
    [lz, ly, lx]: &[Lines; 3],
    classes: &[Vec<i32>; 8],
    along: &mut [Vec<i32>; 3],
    out: &mut Vec<i32>,
) {
    let n = nz * ny * nx;
    let [x, y, z] = along;
    if used & 1 != 0 {
        x.resize(n, 0);
        lx.along(&classes[parity ^ 1], x);
    }
    if used & 2 != 0 {
        y.resize(n, 0);
        let from = &classes[parity ^ 2];
        for (from, to) in from.chunks_exact(from.len() / nz).zip(y.chunks_exact_mut(ny * nx)) {
            ly.across(from, nx, to);
        }
    }
    if used & 4 != 0 {
        z.resize(n, 0);
        lz.across(&classes[parity ^ 4], ny * nx, z);
    }
    out.resize(n, 0);
    let two = |p: &[i32], q: &[i32], out: &mut [i32]| {
        out.iter_mut().zip(p).zip(q).for_each(|((o, &p), &q)| *o = mean(p, q));
    };
    match used {
        1 => std::mem::swap(out, x),
        2 => std::mem::swap(out, y),
        4 => std::mem::swap(out, z),
        3 => two(x, y, out),
        5 => two(x, z, out),
        6 => two(y, z, out),
        _ => out.iter_mut().zip(x).zip(y).zip(z).for_each(|(((o, p), q), r)| *o = mean3(*p, *q, *r)),
    }
}

/// Points of a tile from its residuals.
#[inline(always)]
pub fn reconstruct(residuals: &[i32], extents: [usize; 3], way: Way, work: &mut Work, points: &mut [i32]) {
    walk(
        extents,
        way,
        work,
        points,
        #[inline(always)]
        |at, step, predicted, row| {
            for ((p, &q), &d) in row.iter_mut().zip(predicted).zip(&residuals[at..]) {
                *p = point(q, d, step);
            }
            true
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[usize; 3]; 22] = [
        [1, 1, 1],
        [1, 1, 2],
        [1, 1, 3],
        [1, 1, 4],
        [1, 1, 5],
        [1, 1, 37],
        [1, 1, 8192],
        [1, 2, 3],
        [1, 5, 4],
        [1, 17, 31],
        [1, 33, 16],
        [1, 64, 128],
        [16, 16, 32],
        [17, 15, 31],
        [10, 7, 3],
        [5, 1, 4],
        [7, 3, 1],
        [6, 1, 1],
        [2, 2, 2],
        [3, 4, 5],
        [4, 33, 2],
        [18, 18, 18],
    ];

    /// All sets of axes of more than one value, a bit each.
    fn sets(extents: [usize; 3]) -> u8 {
        (1..8).filter(|set| set & !axes(extents) == 0).map(|set| 1 << set).sum()
    }

    fn walks(extents: [usize; 3], wild: bool) -> Vec<i32> {
        let mut state = 3u32;
        (0..extents.iter().product())
            .map(|i: usize| {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                if wild { state as i32 } else { (i * 1000) as i32 + (state >> 22) as i32 }
            })
            .collect()
    }

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
        for extents in SHAPES {
            for (wild, way) in
                [false, true].into_iter().flat_map(|w| ways(sets(extents), |_| true).map(move |s| (w, s)))
            {
                let tile = walks(extents, wild);
                let n = tile.len();
                let mut x = vec![0; n];
                permute(&tile, extents, &mut Default::default(), &mut x);
                let (mut work, mut d, mut made) = (Work::default(), vec![0; n], vec![0; n]);
                walk(extents, way, &mut work, &mut made, |at, step, predicted, row| {
                    for (k, p) in row.iter_mut().enumerate() {
                        d[at + k] = residual(x[at + k], predicted[k], step);
                        let t = x[at + k].wrapping_sub(predicted[k]).wrapping_add(step / 2);
                        assert_eq!(d[at + k], t.div_euclid(step));
                        *p = point(predicted[k], d[at + k], step);
                    }
                    true
                });
                let mut back = vec![0; n];
                reconstruct(&d, extents, way, &mut work, &mut back);
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
        let way = Way { axes: 7, finer: false };
        walk(extents, way, &mut Work::default(), &mut [], |at, step, predicted, row| {
            for (k, p) in row.iter_mut().enumerate() {
                let d = residual(x[at + k], predicted[k], step);
                others += usize::from(d != 0);
                *p = point(predicted[k], d, step);
            }
            true
        });
        assert!(others < 250, "{others} of 8192 residuals are not zero");
    }
}
