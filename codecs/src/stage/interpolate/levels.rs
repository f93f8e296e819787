// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies where: the classes of a lattice, the levels of a tile, and both ways between a tile's order and the
//! stream's.
//!
//! Along an axis every second point but the last is new; the others are coarse, and the points of the next lattice.
//! Rows are split, and woven again, pair by pair: as many pairs as there are new points, then the coarse points that
//! are left.

use super::blocks::{BLOCK, in_blocks};

/// The classes in the order of the stream; bit 0 stands for a new index along x (the last axis), 1 y, 2 z.
pub(super) const ORDER: [usize; 7] = [1, 2, 4, 3, 5, 6, 7];

/// Coarse points of an axis of `n`.
pub(super) fn coarse(n: usize) -> usize {
    if n > 2 { n / 2 + 1 } else { 1 }
}

/// Extents of the class of a lattice of extents `d`.
pub(super) fn class(d: [usize; 3], c: usize) -> [usize; 3] {
    std::array::from_fn(|k| if c >> (2 - k) & 1 == 1 { d[k] - coarse(d[k]) } else { coarse(d[k]) })
}

/// Extents of the lattices, the tile's first, the last one having a single point.
pub(super) fn levels(extents: [usize; 3]) -> Vec<[usize; 3]> {
    let mut all = vec![extents];
    while let Some(&d) = all.last().filter(|d| d.iter().any(|&e| e > 1)) {
        all.push(class(d, 0));
    }
    all
}

/// The place, on a tile's axis of `e` values, of point i of the new or coarse ones at level `l`.
#[inline(always)]
pub(super) fn place(e: usize, l: usize, i: usize, new: bool) -> usize {
    ((2 * i + usize::from(new)) << l).min(e - 1)
}

/// Whether index `i` of `n` is new, and its number among the new or coarse ones.
#[inline(always)]
fn number(i: usize, n: usize) -> (bool, usize) {
    let new = i % 2 == 1 && (i + 1 < n || n == 2);
    (new, if new { i / 2 } else { i.div_ceil(2) })
}

/// Calls `f` with a lattice's rows: their classes but for x, and their numbers there.
#[inline(always)]
fn rows(d: [usize; 3], mut f: impl FnMut(usize, usize)) {
    for (z, i) in (0..d[0]).map(|z| number(z, d[0])) {
        let of = |y: bool| usize::from(z) << 2 | usize::from(y) << 1;
        let starts = [i * class(d, of(false))[1], i * class(d, of(true))[1]];
        for (y, j) in (0..d[1]).map(|y| number(y, d[1])) {
            f(of(y), starts[usize::from(y)] + j);
        }
    }
}

/// Puts a tile's values into the order of the stream: splits rows into new and coarse places, level by level.
///
/// `lattices` is working memory.
#[inline(always)]
pub(crate) fn permute<T: Copy>(tile: &[T], extents: [usize; 3], lattices: &mut [Vec<T>; 2], out: &mut [T]) {
    let [lattice, coarse_of] = lattices;
    for (l, &d) in levels(extents).iter().enumerate() {
        let from = if l == 0 { tile } else { &lattice[..] };
        if d == [1; 3] {
            out[0] = from[0];
            return;
        }
        let nc = coarse(d[2]);
        let nn = d[2] - nc;
        // Where each class begins: the finest level's classes end the stream, in their order.
        let mut starts = [0; 8];
        let mut at = class(d, 0).iter().product();
        coarse_of.resize(at, from[0]);
        let smaller = &mut coarse_of[..];
        for parity in ORDER {
            starts[parity] = at;
            at += class(d, parity).iter().product::<usize>();
        }
        let mut rest = from;
        rows(
            d,
            #[inline(always)]
            |parity, row| {
                let (from, behind) = rest.split_at(d[2]);
                rest = behind;
                let (head, new) = out.split_at_mut(starts[parity | 1]);
                let new = &mut new[row * nn..][..nn];
                let coarse = if parity == 0 { &mut *smaller } else { &mut head[starts[parity]..] };
                let (coarse, last) = coarse[row * nc..][..nc].split_at_mut(nn);
                let (pairs, rest) = from.split_at(2 * nn);
                let pairs = pairs.as_chunks::<2>().0;
                in_blocks(
                    nn,
                    #[inline(always)]
                    |at, len| {
                        let (c, n) = (&mut [pairs[0][0]; BLOCK][..len], &mut [pairs[0][1]; BLOCK][..len]);
                        let pairs = &pairs[at..][..len];
                        for k in 0..len {
                            [c[k], n[k]] = pairs[k];
                        }
                        coarse[at..][..len].copy_from_slice(c);
                        new[at..][..len].copy_from_slice(n);
                    },
                );
                match (rest, last) {
                    ([last], [to]) => *to = *last,
                    ([one, last], [to, behind]) => (*to, *behind) = (*one, *last),
                    _ => {}
                }
            },
        );
        std::mem::swap(lattice, coarse_of);
    }
}

/// The other way: from the order of the stream to that of the tile.
pub(crate) fn unpermute<T: Copy>(stream: &[T], extents: [usize; 3], out: &mut [T]) {
    out[0] = stream[0];
    let mut rest = &stream[1..];
    let [a, b, c] = extents;
    for (l, &d) in levels(extents).iter().enumerate().rev().skip(1) {
        for parity in ORDER {
            let new = |bit: usize| parity >> bit & 1 == 1;
            let [nz, ny, nx] = class(d, parity);
            for z in 0..nz {
                for y in 0..ny {
                    let at = (place(a, l, z, new(2)) * b + place(b, l, y, new(1))) * c;
                    let (row, tail) = rest.split_at(nx);
                    for (x, v) in row.iter().enumerate() {
                        out[at + place(c, l, x, new(0))] = *v;
                    }
                    rest = tail;
                }
            }
        }
    }
}

/// The finer lattice of extents `d` from its eight classes.
#[inline(always)]
pub(super) fn weave(d: [usize; 3], classes: &[Vec<i32>; 8], out: &mut [i32]) {
    let nc = coarse(d[2]);
    let nn = d[2] - nc;
    let mut rest = out;
    rows(
        d,
        #[inline(always)]
        |parity, row| {
            let (out, behind) = std::mem::take(&mut rest).split_at_mut(d[2]);
            rest = behind;
            let (coarse, last) = classes[parity][row * nc..][..nc].split_at(nn);
            let new = if nn == 0 { &[][..] } else { &classes[parity | 1][row * nn..][..nn] };
            let (pairs, rest) = out.split_at_mut(2 * nn);
            let pairs = pairs.as_chunks_mut::<2>().0;
            in_blocks(
                nn,
                #[inline(always)]
                |at, len| {
                    let made = &mut [[0; 2]; BLOCK][..len];
                    let (c, n) = (&coarse[at..][..len], &new[at..][..len]);
                    for k in 0..len {
                        made[k] = [c[k], n[k]];
                    }
                    pairs[at..][..len].copy_from_slice(made);
                },
            );
            match (rest, last) {
                ([to], [last]) => *to = *last,
                ([to, behind], [one, last]) => (*to, *behind) = (*one, *last),
                _ => {}
            }
        },
    );
}
