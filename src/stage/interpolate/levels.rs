// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies where: the classes of a lattice, the levels of a tile, and both ways between a tile's order and the stream's.

/// The classes in the order of the stream; bit 0 stands for an odd index along x (the last axis), 1 y, 2 z.
pub(super) const ORDER: [usize; 7] = [1, 2, 4, 3, 5, 6, 7];

/// Extents of the class of a lattice of extents `d`.
pub(super) fn class(d: [usize; 3], c: usize) -> [usize; 3] {
    std::array::from_fn(|k| if c >> (2 - k) & 1 == 1 { d[k] / 2 } else { d[k].div_ceil(2) })
}

/// Extents of the lattices, the tile's first, the last one having a single point.
pub(super) fn levels(extents: [usize; 3]) -> Vec<[usize; 3]> {
    let mut all = vec![extents];
    while let Some(&d) = all.last().filter(|d| d.iter().any(|&e| e > 1)) {
        all.push(class(d, 0));
    }
    all
}

/// Calls `f` with the place in the tile of each row's first point and its length and stride, in the order of the stream.
#[inline(always)]
fn rows(extents: [usize; 3], mut f: impl FnMut(usize, usize, usize)) {
    f(0, 1, 1);
    let [_, b, c] = extents;
    for (l, &d) in levels(extents).iter().enumerate().rev().skip(1) {
        for parity in ORDER {
            let [nz, ny, nx] = class(d, parity);
            if nx == 0 {
                continue;
            }
            let place = |i: usize, bit: usize| (2 * i + (parity >> bit & 1)) << l;
            for z in 0..nz {
                for y in 0..ny {
                    f((place(z, 2) * b + place(y, 1)) * c + place(0, 0), nx, 2 << l);
                }
            }
        }
    }
}

/// Puts a tile's values into the order of the stream: splits rows into even and odd places, level by level.
///
/// `lattices` is working memory.
#[inline(always)]
pub(crate) fn permute<T: Copy>(tile: &[T], extents: [usize; 3], lattices: &mut [Vec<T>; 2], out: &mut [T]) {
    let [lattice, evens_of] = lattices;
    for (l, &d) in levels(extents).iter().enumerate() {
        let from = if l == 0 { tile } else { &lattice[..] };
        if d == [1; 3] {
            out[0] = from[0];
            return;
        }
        let [_, b, c] = d;
        let (ne, no) = (c.div_ceil(2), c / 2);
        // Where each class begins: the finest level's classes end the stream, in their order.
        let mut starts = [0; 8];
        let mut at = class(d, 0).iter().product();
        evens_of.resize(at, from[0]);
        let evens = &mut evens_of[..];
        for parity in ORDER {
            starts[parity] = at;
            at += class(d, parity).iter().product::<usize>();
        }
        let places = (0..d[0]).flat_map(|z| (0..b).map(move |y| (z, y)));
        for ((z, y), from) in places.zip(from.chunks_exact(c)) {
            let parity = (z & 1) << 2 | (y & 1) << 1;
            let row = z / 2 * class(d, parity)[1] + y / 2;
            let (head, odds) = out.split_at_mut(starts[parity | 1]);
            let odds = &mut odds[row * no..][..no];
            let evens = if parity == 0 { &mut *evens } else { &mut head[starts[parity]..] };
            let evens = &mut evens[row * ne..][..ne];
            let (pairs, last) = from.as_chunks::<2>();
            for ((pair, e), o) in pairs.iter().zip(evens.iter_mut()).zip(odds) {
                [*e, *o] = *pair;
            }
            if let [last] = last {
                evens[no] = *last;
            }
        }
        std::mem::swap(lattice, evens_of);
    }
}

/// The other way: from the order of the stream to that of the tile.
pub(crate) fn unpermute<T: Copy>(stream: &[T], extents: [usize; 3], out: &mut [T]) {
    let mut rest = stream;
    rows(
        extents,
        #[inline(always)]
        |start, len, stride| {
            let (row, tail) = rest.split_at(len);
            for (o, v) in out[start..].iter_mut().step_by(stride).zip(row) {
                *o = *v;
            }
            rest = tail;
        },
    );
}

/// The finer lattice of extents `d` from its eight classes.
#[inline(always)]
pub(super) fn weave(d: [usize; 3], classes: &[Vec<i32>; 8], out: &mut [i32]) {
    let [_, b, c] = d;
    for (i, row) in out.chunks_exact_mut(c).enumerate() {
        let (z, y) = (i / b, i % b);
        let parity = (z & 1) << 2 | (y & 1) << 1;
        let at = z / 2 * class(d, parity)[1] + y / 2;
        let (ne, no) = (c.div_ceil(2), c / 2);
        let even = &classes[parity][at * ne..][..ne];
        let odd = if no == 0 { &[][..] } else { &classes[parity | 1][at * no..][..no] };
        let (pairs, tail) = row.as_chunks_mut::<2>();
        for ((pair, &e), &o) in pairs.iter_mut().zip(even).zip(odd) {
            *pair = [e, o];
        }
        if let [last] = tail {
            *last = even[no];
        }
    }
}
