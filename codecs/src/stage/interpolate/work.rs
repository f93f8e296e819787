// SPDX-License-Identifier: MIT OR Apache-2.0
//! What interpolation of a tile works in, and which way it goes.

use super::levels::levels;
use super::lines::Lines;
use crate::error::Result;
use crate::memory;

/// Working memory.
#[derive(Debug, Default)]
pub struct Work {
    /// Extents of the last tile, its lattices, and their lines along z, y and x.
    of: [usize; 3],
    pub(super) levels: Vec<([usize; 3], [Lines; 3])>,
    pub(super) classes: [Vec<i32>; 8],
    pub(super) along: [Vec<i32>; 3],
    pub(super) predicted: Vec<i32>,
    pub(super) woven: Vec<i32>,
}

/// Most points of a class of a tile of `n`, and of a lattice that is not the tile itself.
fn half(n: usize) -> usize {
    n / 2 + 1
}

impl Work {
    /// Memory for a tile of `n` points: nothing is allocated on the way through tiles of the same extents.
    pub(crate) fn reserve(&mut self, n: usize) -> Result<()> {
        let Work { classes, along, predicted, woven, .. } = self;
        classes.iter_mut().chain(along).chain([predicted, woven]).try_for_each(|v| memory::reserve_total(v, half(n)))
    }

    /// Finds a tile's lattices, unless they are the last one's.
    pub(super) fn lay_out(&mut self, extents: [usize; 3]) {
        if self.of != extents {
            self.of = extents;
            let lines = |l: usize, d: [usize; 3]| std::array::from_fn(|k| Lines::new(extents[k], l, d[k]));
            self.levels = levels(extents).into_iter().enumerate().map(|(l, d)| (d, lines(l, d))).collect();
        }
    }
}

/// The same for the lattices of [`super::permute`].
pub fn reserve<T>(lattices: &mut [Vec<T>; 2], n: usize) -> Result<()> {
    lattices.iter_mut().try_for_each(|v| memory::reserve_total(v, half(n)))
}

/// How a tile is interpolated: along which axes (x is 1, y 2, z 4), and whether coarse levels have finer steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub axes: u8,
    pub finer: bool,
}
