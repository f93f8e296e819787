// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer Lorenzo prediction: differences along any of three axes, and the running sums that undo them.
//!
//! The Lorenzo predictor (Ibarria et al., Computer Graphics Forum 22(3), 2003, doi:10.1111/1467-8659.00681) is the
//! alternating sum of the corners of a cube of which the value is the last; its residual is the difference taken along
//! every axis in turn. On quanta, which are integers, no error adds up: what is predicted from is what a decoder has
//! (dual quantisation: cuSZ, Tian et al., PACT 2020, doi:10.1145/3410463.3414624). Sums along the same axes, in any
//! order, give the values back, as many at a time as there are (cuSZ+, CLUSTER 2021,
//! doi:10.1109/Cluster48925.2021.00047). Any set of axes may be left out, which helps where neighbours along one are
//! strangers. Integers wrap around, so nothing can overflow. FORMAT.md of lorenzo, §4.3.

/// Bit k of a set of axes stands for axis 2 − k: x (fastest) is 1, y 2, z 4.
pub(crate) const X: u8 = 1;
/// See [`X`].
pub(crate) const Y: u8 = 2;
/// See [`X`].
pub(crate) const Z: u8 = 4;

/// Differences along `axes` of a tile of the given extents.
#[inline(always)]
pub fn difference(tile: &[i32], [_, b, c]: [usize; 3], axes: u8, out: &mut [i32]) {
    if axes & X != 0 {
        rows(tile, c, out);
    } else {
        out.copy_from_slice(tile);
    }
    if axes & Y != 0 {
        for plane in out.chunks_exact_mut(b * c) {
            step(plane, c);
        }
    }
    if axes & Z != 0 {
        step(out, b * c);
    }
}

/// Differences along rows of `c` values.
#[inline(always)]
pub(crate) fn rows(from: &[i32], c: usize, out: &mut [i32]) {
    // Also over the ends of rows, whose first values are mended.
    for ((o, &v), &p) in out.iter_mut().skip(1).zip(from.iter().skip(1)).zip(from) {
        *o = v.wrapping_sub(p);
    }
    for (o, &v) in out.iter_mut().step_by(c).zip(from.iter().step_by(c)) {
        *o = v;
    }
}

/// Subtracts from every line of `len` values the line before it.
#[inline(always)]
fn step(values: &mut [i32], len: usize) {
    let mut rest = values;
    while rest.len() > len {
        let at = rest.len() - len;
        let (head, last) = rest.split_at_mut(at);
        let before = &head[at - len..];
        for (v, &p) in last.iter_mut().zip(before) {
            *v = v.wrapping_sub(p);
        }
        rest = head;
    }
}

/// Running sums along `axes`, in place: the inverse of [`difference`].
#[inline(always)]
pub fn integrate(tile: &mut [i32], [_, b, c]: [usize; 3], axes: u8) {
    if axes & Z != 0 {
        sum(tile, b * c);
    }
    if axes & Y != 0 {
        for plane in tile.chunks_exact_mut(b * c) {
            sum(plane, c);
        }
    }
    if axes & X != 0 {
        for row in tile.chunks_exact_mut(c) {
            scan(row);
        }
    }
}

/// Adds to every line of `len` values the line before it.
#[inline(always)]
fn sum(values: &mut [i32], len: usize) {
    let mut rest = values;
    while rest.len() > len {
        let (first, tail) = rest.split_at_mut(len);
        for (v, &p) in tail.iter_mut().zip(first.iter()) {
            *v = v.wrapping_add(p);
        }
        rest = tail;
    }
}

/// Running sum of one row: inside groups of eight first, then from group to group, so that few additions wait.
#[inline(always)]
fn scan(row: &mut [i32]) {
    let mut before = 0i32;
    let (groups, tail) = row.as_chunks_mut::<8>();
    for g in groups {
        for distance in [1, 2, 4] {
            let old = *g;
            for k in distance..8 {
                g[k] = old[k].wrapping_add(old[k - distance]);
            }
        }
        for v in g.iter_mut() {
            *v = v.wrapping_add(before);
        }
        before = g[7];
    }
    for v in tail {
        before = before.wrapping_add(*v);
        *v = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_field_leaves_its_edges_alone() {
        let [a, b, c] = [3, 4, 5];
        let at = |i: usize| (7 + i / (b * c) * 3 + i / c % b * 11 + i % c * 2) as i32;
        let values: Vec<i32> = (0..a * b * c).map(at).collect();
        let mut v = vec![0; a * b * c];
        difference(&values, [a, b, c], X | Y | Z, &mut v);
        assert_eq!(v.iter().filter(|&&r| r != 0).count(), 1 + 2 + 3 + 4, "the corner and its three edges: {v:?}");
    }
}
