// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chunk cut into tiles: which extents they have, and their values in and out. FORMAT.md of lorenzo, §3.1.
//!
//! A tile starts as one value; its shortest side is doubled, the fastest axis among equals, while the tile has at most
//! 8192 values: 16 × 16 × 32, 64 × 128 or 8192 in large chunks. Threads that encode gather a tile's rows into memory of
//! their own. Threads that decode get a share of the chunk each, cut across one axis between tiles, so that all can
//! write at once.

use crate::error::Result;
use crate::part::{Part, fold};
use crate::{memory, parallel};
use std::ops::Range;

/// A chunk of three extents, slowest first, and its tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    extents: [usize; 3],
    tile: [usize; 3],
    counts: [usize; 3],
}

/// One tile's place and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// First value's place in the chunk.
    start: usize,
    /// Extents, slowest first.
    pub extents: [usize; 3],
}

impl Tile {
    /// Values of the tile.
    pub(crate) fn len(&self) -> usize {
        self.extents.iter().product()
    }
}

/// What one thread writes of a chunk: some tiles along one axis, all along the others.
pub(crate) struct Share<'a, T> {
    axis: usize,
    /// Its tiles along that axis.
    tiles: Range<usize>,
    /// Values between a piece's first and the next one's, of which the first `skipped` are those of other shares.
    whole: usize,
    skipped: usize,
    /// A piece for every place along the slower axes.
    pieces: Vec<&'a mut [T]>,
}

impl<'a, T> Share<'a, T> {
    /// All of a chunk of one tile.
    pub(crate) fn of_all(chunk: &'a mut [T]) -> Self {
        Share { axis: 0, tiles: 0..1, whole: chunk.len(), skipped: 0, pieces: vec![chunk] }
    }

    /// The `len` values from place `at` of the chunk on, in one row of one of the share's tiles.
    #[inline(always)]
    pub(crate) fn row(&mut self, at: usize, len: usize) -> &mut [T] {
        // Most have one piece only: a division for every row would show.
        let (piece, at) = if self.pieces.len() == 1 { (0, at) } else { (at / self.whole, at % self.whole) };
        &mut self.pieces[piece][at - self.skipped..][..len]
    }
}

impl Grid {
    /// Cuts a chunk into tiles of at most `most` values. `None` where the chunk's values are more than memory can hold.
    ///
    /// Starts with one value and doubles the shortest side that may still grow, the fastest among equals.
    pub fn new(dims: &[u32], most: usize) -> Option<Self> {
        let extents = fold(dims)?;
        let mut tile = [1usize; 3];
        loop {
            let volume: usize = tile.iter().product();
            let grown = |k: usize| (2 * tile[k]).min(extents[k]);
            let next = [2, 1, 0]
                .into_iter()
                .filter(|&k| tile[k] < extents[k] && volume / tile[k] * grown(k) <= most)
                .min_by_key(|&k| tile[k]);
            let Some(k) = next else { break };
            tile[k] = grown(k);
        }
        let counts = std::array::from_fn(|k| extents[k].div_ceil(tile[k]));
        Some(Grid { extents, tile, counts })
    }

    /// A chunk of these extents in tiles of given sides, cut off at the chunk's ends.
    pub(crate) fn with_sides(extents: [usize; 3], tile: [usize; 3]) -> Self {
        Grid { extents, tile, counts: std::array::from_fn(|k| extents[k].div_ceil(tile[k])) }
    }

    /// The chunk's extents, slowest first.
    pub(crate) fn extents(&self) -> [usize; 3] {
        self.extents
    }

    /// Extents of a tile that is not at a border.
    pub(crate) fn tile_sides(&self) -> [usize; 3] {
        self.tile
    }

    /// Extents of the chunk and of a tile that is not at a border, for a kernel. `None` for sides beyond 32 bits.
    pub fn sides(&self) -> Option<([u32; 3], [u32; 3])> {
        let narrow = |n: [usize; 3]| n.iter().all(|&k| k <= u32::MAX as usize).then(|| n.map(|k| k as u32));
        Some((narrow(self.extents)?, narrow(self.tile)?))
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.counts.iter().product()
    }

    /// The first value's place along each axis of the tile of number `i`.
    fn origin(&self, i: usize) -> [usize; 3] {
        let [_, b, c] = self.counts;
        let at = [i / (b * c), i / c % b, i % c];
        std::array::from_fn(|k| at[k] * self.tile[k])
    }

    /// Whether any value of the tile of number `i` is wanted: all are where there is no part.
    pub(crate) fn touches(&self, i: usize, part: Option<&Part>) -> bool {
        part.is_none_or(|part| part.touches(self.origin(i), self.tile))
    }

    /// The tile of number `i`.
    pub fn tile(&self, i: usize) -> Tile {
        let origin = self.origin(i);
        Tile {
            start: (origin[0] * self.extents[1] + origin[1]) * self.extents[2] + origin[2],
            extents: std::array::from_fn(|k| self.tile[k].min(self.extents[k] - origin[k])),
        }
    }

    /// The number of the tile in which a value lies.
    pub(crate) fn tile_with(&self, at: [usize; 3]) -> usize {
        let [z, y, x]: [usize; 3] = std::array::from_fn(|k| at[k] / self.tile[k]);
        (z * self.counts[1] + y) * self.counts[2] + x
    }

    /// Cuts a chunk across one axis, between tiles, into parts that `threads` can write at the same time.
    pub(crate) fn share<'a, T>(&self, chunk: &'a mut [T], threads: usize) -> Result<Vec<Share<'a, T>>> {
        let enough = if threads > 1 { 4 * threads } else { 1 };
        let slowest = (0..3).find(|&k| self.counts[k] >= enough);
        let axis = slowest.unwrap_or_else(|| (0..3).rev().max_by_key(|&k| self.counts[k]).expect("an axis"));
        let tiles = parallel::run_length(self.counts[axis], threads);
        let inner: usize = self.extents[axis + 1..].iter().product();
        let (whole, len) = (self.extents[axis] * inner, tiles * self.tile[axis] * inner);
        let first = (0..self.counts[axis]).step_by(tiles);
        let share = |first: usize| Share {
            axis,
            tiles: first..(first + tiles).min(self.counts[axis]),
            whole,
            skipped: first / tiles * len,
            pieces: Vec::new(),
        };
        let mut shares = memory::collect(first.len(), first.map(share))?;
        let blocks = chunk.chunks_mut(whole.max(1));
        for share in &mut shares {
            share.pieces = memory::with_capacity(blocks.len())?;
        }
        for block in blocks {
            for (share, piece) in shares.iter_mut().zip(block.chunks_mut(len)) {
                share.pieces.push(piece);
            }
        }
        Ok(shares)
    }

    /// Numbers of the tiles of a share.
    pub(crate) fn tiles_of<T>(&self, share: &Share<'_, T>) -> impl Iterator<Item = usize> + use<T> {
        let (outer, inner) = self.counts.split_at(share.axis);
        let (count, inner) = (inner[0], inner[1..].iter().product::<usize>());
        let tiles = share.tiles.clone();
        let blocks = (0..outer.iter().product()).flat_map(move |o: usize| tiles.clone().map(move |k| o * count + k));
        blocks.flat_map(move |block| block * inner..(block + 1) * inner)
    }

    /// Copies a tile's values out of the chunk, in order, each as `to` makes it.
    #[inline(always)]
    pub(crate) fn gather<N: Copy, T>(&self, chunk: &[N], tile: &Tile, to: impl Fn(N) -> T, out: &mut [T]) {
        let [_, b, c] = tile.extents;
        // Whole rows lie one behind the other.
        let (b, c) = if c == self.extents[2] { (1, b * c) } else { (b, c) };
        for (row, out) in out.chunks_exact_mut(c).enumerate() {
            let at = self.row(tile, row / b, row % b);
            out.iter_mut().zip(&chunk[at..at + c]).for_each(|(out, n)| *out = to(*n));
        }
    }

    /// Place in the chunk of the tile's row (z, y).
    #[inline(always)]
    pub fn row(&self, tile: &Tile, z: usize, y: usize) -> usize {
        tile.start + (z * self.extents[1] + y) * self.extents[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_chunks_have_the_documented_tiles() {
        let tile = |dims: &[u32]| Grid::new(dims, 8192).unwrap().tile;
        assert_eq!(tile(&[512, 512, 512]), [16, 16, 32]);
        assert_eq!(tile(&[1000, 1000]), [1, 64, 128]);
        assert_eq!(tile(&[1 << 20]), [1, 1, 8192]);
        assert_eq!(tile(&[10, 47681, 3]), [10, 256, 3]);
        assert_eq!(tile(&[]), [1, 1, 1]);
        assert_eq!(Grid::new(&[2, 3, 4, 5, 6], 8192).unwrap().extents, [24, 5, 6]);
        assert_eq!(Grid::new(&[u32::MAX; 3], 8192), None);
    }

    #[test]
    fn every_value_is_in_one_tile() {
        for dims in [&[1][..], &[9000], &[70, 130], &[17, 18, 70], &[3, 1, 5, 40, 40], &[2, 20000]] {
            let grid = Grid::new(dims, 8192).unwrap();
            let n: usize = grid.extents.iter().product();
            let chunk: Vec<usize> = (0..n).collect();
            let mut seen = vec![0; n];
            for i in 0..grid.tiles() {
                let tile = grid.tile(i);
                let mut values = vec![0; tile.len()];
                grid.gather(&chunk, &tile, |v| v, &mut values);
                values.iter().for_each(|&v| seen[v] += 1);
            }
            assert!(seen.iter().all(|&s| s == 1), "{dims:?}");
        }
    }
    #[test]
    fn shares_hold_their_tiles_and_nothing_else() {
        for dims in
            [&[1][..], &[0, 5], &[9000], &[70, 130], &[17, 256, 256], &[10, 4768, 3], &[40, 31680], &[200, 17, 9]]
        {
            let grid = Grid::new(dims, 8192).unwrap();
            let n: usize = grid.extents.iter().product();
            for threads in [1, 2, 5] {
                let mut chunk = vec![(0, 0); n];
                let shares = grid.share(&mut chunk, threads).unwrap();
                let many = threads.min(2).min(grid.tiles());
                assert!(shares.len() >= many, "{dims:?}: {} shares, {threads} threads", shares.len());
                for mut share in shares {
                    for i in grid.tiles_of(&share) {
                        let tile = grid.tile(i);
                        let [a, b, c] = tile.extents;
                        for row in 0..a * b {
                            let at = grid.row(&tile, row / b, row % b);
                            for (k, v) in share.row(at, c).iter_mut().enumerate() {
                                *v = (v.0 + 1, at + k);
                            }
                        }
                    }
                }
                assert!(chunk.iter().enumerate().all(|(at, &v)| v == (1, at)), "{dims:?}, {threads} threads");
            }
        }
    }
}
