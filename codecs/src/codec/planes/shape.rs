// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tiles a chunk has, where a tile's values stand, and a tile's values in and out. FORMAT.md §3.1.
//!
//! A tile is an array of 4096 values in the order of z, y, x: eight layers of 512. In grid rank 2 and 3 a layer has 16
//! rows of 32, in grid rank 1 four rows of 128; every lane owns four values in four rows of it. A tile that reaches
//! beyond the chunk is filled up with the last values along each axis, so that all that follows has to do with whole
//! tiles only.
//!
//! Where the last axis is short and holds components, the array that is cut has them one after the other;
//! `components.rs` puts the chunk's values in that order. That axis does not count for the grid rank: nothing is alike
//! along it.

use super::types::{Held, Value};
use crate::constants::{PLANES_COUNT, PLANES_TILE};
use crate::part::fold;
use crate::stage::tiles::{Grid, Share, Tile};

/// Values of a layer.
pub(super) const LAYER: usize = PLANES_TILE / PLANES_COUNT;
/// Values of a block.
pub(super) const BLOCK: usize = 2 * LAYER;
/// Blocks of a tile.
pub(super) const BLOCKS: usize = PLANES_TILE / BLOCK;
/// Values of a row in grid ranks 2 and 3.
pub(super) const ROW: usize = 32;
/// Rows of a tile there.
const ROWS: usize = PLANES_TILE / ROW;
/// Byte of a lane's word in which column c stands.
const BYTE_OF_COLUMN: [usize; 4] = [0, 2, 1, 3];

/// Extents of a last axis that holds components.
const COMPONENTS: std::ops::RangeInclusive<usize> = 2..=15;

/// A chunk in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Grid rank, 1 to 3.
    pub rank: usize,
    pub grid: Grid,
    /// Components, which the array has one after the other and the chunk has not; 1 where both are the same.
    pub components: usize,
}

impl Shape {
    /// The tiles of a chunk of these extents. `None` where memory cannot hold its values.
    pub fn for_extents(extents: &[u32]) -> Option<Self> {
        let (folded, components) = match extents.split_last() {
            Some((&c, others)) if !others.is_empty() && COMPONENTS.contains(&(c as usize)) => {
                let mut folded = fold(others)?;
                // It becomes the slowest axis of as many.
                let slowest = &mut folded[2usize.saturating_sub(others.len())];
                *slowest = slowest.checked_mul(c as usize)?;
                (folded, c as usize)
            }
            _ => (fold(extents)?, 1),
        };
        let axes = extents.len() - usize::from(components > 1);
        let [z, y, x] = folded;
        let n = z.checked_mul(y)?.checked_mul(x)?;
        let candidates = [(3, folded, [8, 16, ROW]), (2, [1, z * y, x], [1, 128, ROW])];
        for (rank, extents_of, sides) in candidates {
            let grid = Grid::with_sides(extents_of, sides);
            let held = grid.tiles().checked_mul(PLANES_TILE);
            if axes >= rank && held.is_some_and(|held| held <= n.saturating_mul(3)) {
                return Some(Shape { rank, grid, components });
            }
        }
        Some(Shape { rank: 1, grid: Grid::with_sides([1, 1, n], [1, 1, PLANES_TILE]), components })
    }

    /// The extents of one component's values, slowest first, and how many components there are.
    pub(crate) fn of_one_component(&self) -> ([usize; 3], usize) {
        let mut extents = self.grid.extents();
        extents[3 - self.rank] /= self.components;
        (extents, self.components)
    }

    /// Whether a tile's values lie between those of other components in the chunk.
    pub(crate) fn is_of_components(&self) -> bool {
        self.components > 1
    }

    /// Copies a tile out of the chunk, filled up where it reaches beyond.
    #[inline(always)]
    pub(super) fn gather<S: Value, E: Held<S>>(&self, chunk: &[E], tile: &Tile, out: &mut [S; PLANES_TILE]) {
        let [ez, ey, ex] = tile.extents;
        let copy = |at: usize, to: &mut [S]| {
            let (inside, beyond) = to.split_at_mut(ex);
            inside.iter_mut().zip(&chunk[at..at + ex]).for_each(|(to, x)| *to = x.widen());
            beyond.fill(chunk[at + ex - 1].widen());
        };
        if self.rank == 1 {
            return copy(self.grid.row(tile, 0, 0), out);
        }
        let side = if self.rank == 3 { 16 } else { ROWS };
        for (k, row) in out.as_chunks_mut::<ROW>().0.iter_mut().enumerate() {
            let at = self.grid.row(tile, (k / side).min(ez - 1), (k % side).min(ey - 1));
            match chunk[at..].first_chunk::<ROW>() {
                Some(whole) if ex == ROW => *row = whole.map(E::widen),
                _ => copy(at, row),
            }
        }
    }

    /// Copies what lies in the chunk to its place: inverse of [`Shape::gather`].
    #[inline(always)]
    pub(super) fn scatter<S: Value, E: Held<S>>(
        &self,
        values: &[S; PLANES_TILE],
        tile: &Tile,
        share: &mut Share<'_, E>,
    ) {
        let [ez, ey, ex] = tile.extents;
        let copy = |row: &[S], to: &mut [E]| to.iter_mut().zip(row).for_each(|(to, &x)| *to = E::narrow(x));
        if self.rank == 1 {
            return copy(values, share.row(self.grid.row(tile, 0, 0), ex));
        }
        let side = if self.rank == 3 { 16 } else { ROWS };
        for z in 0..ez {
            for y in 0..ey {
                let row = &values.as_chunks::<ROW>().0[z * side + y];
                let to = share.row(self.grid.row(tile, z, y), ex);
                match to.first_chunk_mut::<ROW>() {
                    Some(whole) => *whole = row.map(E::narrow),
                    None => copy(row, to),
                }
            }
        }
    }

    /// Whether a place of the tile lies in the chunk.
    #[inline(always)]
    pub(super) fn inside(&self, tile: &Tile, place: usize) -> bool {
        let [ez, ey, ex] = tile.extents;
        match self.rank {
            1 => place < ex,
            2 => place % ROW < ex && place / ROW < ey,
            _ => place % ROW < ex && place / ROW % 16 < ey && place / LAYER < ez,
        }
    }

    /// The place of a lane's value in a tile.
    #[inline(always)]
    pub(super) fn place(&self, layer: usize, lane: usize, r: usize, c: usize) -> usize {
        LAYER * layer + row_of(self.rank, r, lane / 8) + 4 * (lane % 8) + c
    }

    /// The place in a tile of a bit of a lane's word in a bit plane of a block.
    #[inline(always)]
    pub(super) fn place_of_bit(&self, block: usize, lane: usize, bit: usize) -> usize {
        self.place(2 * block + bit / 4 % 2, lane, bit % 4, BYTE_OF_COLUMN[bit / 8])
    }
}

/// Where in a layer the 32 values begin that eight lanes, numbers 8 `group` to 8 `group` + 7, own in their row r.
#[inline(always)]
pub(super) fn row_of(rank: usize, r: usize, group: usize) -> usize {
    if rank == 1 { 128 * r + ROW * group } else { ROW * (4 * group + r) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_rank_is_the_highest_that_triples_at_most() {
        let rank = |dims: &[u32]| Shape::for_extents(dims).unwrap().rank;
        assert_eq!(rank(&[512, 512, 512]), 3);
        assert_eq!(rank(&[2, 3, 8, 16, 32]), 3);
        assert_eq!(rank(&[3, 16, 32]), 3);
        assert_eq!(rank(&[2, 16, 32]), 1);
        assert_eq!(rank(&[2, 160, 32]), 2);
        assert_eq!(rank(&[1000, 1000]), 2);
        assert_eq!(rank(&[43, 32]), 2);
        assert_eq!(rank(&[42, 32]), 1);
        assert_eq!(rank(&[1000, 16]), 2);
        assert_eq!(rank(&[1000, 1]), 1);
        assert_eq!(rank(&[1 << 20]), 1);
        assert_eq!(rank(&[]), 1);
        assert_eq!(Shape::for_extents(&[u32::MAX; 3]), None);
        assert_eq!(Shape::for_extents(&[u32::MAX, u32::MAX, 15]), None);
    }

    #[test]
    fn components_are_the_slowest_axis() {
        let array = |dims: &[u32]| Shape::for_extents(dims).map(|s| (s.components, s.rank, s.grid.extents())).unwrap();
        assert_eq!(array(&[1000, 3]), (3, 1, [1, 1, 3000]));
        assert_eq!(array(&[1000, 15]), (15, 1, [1, 1, 15000]));
        assert_eq!(array(&[4, 1000, 15]), (15, 2, [1, 60, 1000]));
        assert_eq!(array(&[60, 70, 2]), (2, 2, [1, 120, 70]));
        assert_eq!(array(&[64, 64, 3]), (3, 2, [1, 192, 64]));
        assert_eq!(array(&[64, 64, 15]), (15, 2, [1, 960, 64]));
        assert_eq!(array(&[2, 16, 32, 4]), (4, 3, [8, 16, 32]));
        assert_eq!(array(&[4, 60, 70, 3]), (3, 3, [12, 60, 70]));
        assert_eq!(array(&[5, 4, 60, 70, 3]), (3, 3, [60, 60, 70]));
        assert_eq!(array(&[3]), (1, 1, [1, 1, 3]));
        assert_eq!(array(&[1000, 16]).0, 1);
        assert_eq!(array(&[3, 1]).0, 1);
    }
}
