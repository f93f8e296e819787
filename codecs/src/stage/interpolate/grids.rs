// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of the stream as grids: each class of each level is one, and lies between those of its level that are new
//! along one axis less.

use super::levels::{ORDER, class, levels};

/// A class of one level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) extents: [usize; 3],
    /// Where its first residual is in the stream.
    pub(crate) at: usize,
    /// 0 for the finest; above all others for the first point.
    pub(crate) level: usize,
    /// The axes along which its points are new: bit 0 stands for x, 1 y, 2 z. None for the first point.
    pub(crate) class: usize,
    /// For each of these axes where the class that is new along the others begins, and its extents; no class where
    /// there are no others.
    others: [Option<(usize, [usize; 3])>; 3],
}

/// Rows on both sides of a row of a grid.
pub(crate) struct Sides {
    rows: [usize; 2],
    /// Places from the first of these on are the row's last.
    last: usize,
    /// How far the second place is from the first.
    step: usize,
}

impl Sides {
    /// Where the residuals on both sides of place `x` are in the stream.
    #[inline(always)]
    pub(crate) fn places(&self, x: usize) -> [usize; 2] {
        [self.rows[0] + x, self.rows[1] + (x + self.step).min(self.last)]
    }
}

impl Grid {
    /// All of a tile, in its own order.
    pub(crate) fn whole(extents: [usize; 3]) -> Self {
        Grid { extents, ..Grid::default() }
    }

    /// The rows around row `y` of plane `z`, along each axis along which others of the level are new, too.
    #[inline(always)]
    pub(crate) fn around(&self, z: usize, y: usize) -> impl Iterator<Item = Sides> {
        self.others.into_iter().enumerate().filter_map(move |(axis, other)| {
            let (at, [nz, ny, nx]) = other?;
            let row = |z: usize, y: usize| at + (z * ny + y) * nx;
            let next = match axis {
                0 => row(z, y),
                1 => row(z, (y + 1).min(ny - 1)),
                _ => row((z + 1).min(nz - 1), y),
            };
            Some(Sides { rows: [row(z, y), next], last: nx - 1, step: usize::from(axis == 0) })
        })
    }
}

/// Calls `f` with the grids of a tile, in the order of the stream.
#[inline(always)]
pub(crate) fn grids(extents: [usize; 3], mut f: impl FnMut(&Grid)) {
    let levels = levels(extents);
    f(&Grid { extents: [1; 3], level: usize::MAX, ..Grid::default() });
    let mut at = 1;
    for (level, &d) in levels.iter().enumerate().rev().skip(1) {
        let mut starts = [0; 8];
        for parity in ORDER {
            starts[parity] = at;
            let own = class(d, parity);
            let others = std::array::from_fn(|axis| {
                let other = parity & !(1 << axis);
                (other != parity && other != 0).then(|| (starts[other], class(d, other)))
            });
            at += own.iter().product::<usize>();
            if !own.contains(&0) {
                f(&Grid { extents: own, at: starts[parity], level, class: parity, others });
            }
        }
    }
}
