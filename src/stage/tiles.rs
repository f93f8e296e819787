// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chunk cut into tiles: which extents they have, and their values in and out.

/// A chunk of three extents, slowest first, and its tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    extents: [usize; 3],
    tile: [usize; 3],
    counts: [usize; 3],
}

/// One tile's place and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    /// First value's place in the chunk.
    start: usize,
    /// Extents, slowest first.
    pub(crate) extents: [usize; 3],
}

impl Tile {
    /// Values of the tile.
    pub(crate) fn len(&self) -> usize {
        self.extents.iter().product()
    }
}

impl Grid {
    /// Cuts a chunk into tiles of at most `most` values. `None` where the chunk's values are more than memory can hold.
    ///
    /// Starts with one value and doubles the shortest side that may still grow, the fastest among equals.
    pub(crate) fn new(dims: &[u32], most: usize) -> Option<Self> {
        let mut extents = [1usize; 3];
        let (lead, tail) = dims.split_at(dims.len().saturating_sub(3));
        for (e, &d) in extents.iter_mut().rev().zip(tail.iter().rev()) {
            *e = d as usize;
        }
        for &d in lead {
            extents[0] = extents[0].checked_mul(d as usize)?;
        }
        extents.iter().try_fold(1usize, |a, &e| a.checked_mul(e))?;
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

    /// The chunk's extents, slowest first.
    pub(crate) fn extents(&self) -> [usize; 3] {
        self.extents
    }

    /// Extents of the chunk and of a tile that is not at a border, for a kernel. `None` for sides beyond 32 bits.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn sides(&self) -> Option<([u32; 3], [u32; 3])> {
        let narrow = |n: [usize; 3]| n.iter().all(|&k| k <= u32::MAX as usize).then(|| n.map(|k| k as u32));
        Some((narrow(self.extents)?, narrow(self.tile)?))
    }

    /// Number of tiles.
    pub(crate) fn tiles(&self) -> usize {
        self.counts.iter().product()
    }

    /// The tile of number `i`.
    pub(crate) fn tile(&self, i: usize) -> Tile {
        let [_, b, c] = self.counts;
        let at = [i / (b * c), i / c % b, i % c];
        let origin: [usize; 3] = std::array::from_fn(|k| at[k] * self.tile[k]);
        Tile {
            start: (origin[0] * self.extents[1] + origin[1]) * self.extents[2] + origin[2],
            extents: std::array::from_fn(|k| self.tile[k].min(self.extents[k] - origin[k])),
        }
    }

    /// Values of one layer: tiles that differ from each other on faster axes only, so that layers are contiguous.
    pub(crate) fn layer_len(&self) -> usize {
        let k = self.layer_axis();
        self.tile[k] * self.extents[k + 1..].iter().product::<usize>()
    }

    /// Tiles of one whole layer.
    pub(crate) fn layer_tiles(&self) -> usize {
        self.counts[self.layer_axis() + 1..].iter().product()
    }

    fn layer_axis(&self) -> usize {
        self.extents.iter().position(|&e| e > 1).unwrap_or(2)
    }

    /// Copies a tile's values out of the chunk, in order.
    #[inline(always)]
    pub(crate) fn gather<T: Copy>(&self, chunk: &[T], tile: &Tile, out: &mut [T]) {
        let [_, b, c] = tile.extents;
        // Whole rows lie one behind the other.
        let (b, c) = if c == self.extents[2] { (1, b * c) } else { (b, c) };
        for (row, out) in out.chunks_exact_mut(c).enumerate() {
            let at = self.row(tile, row / b, row % b);
            out.copy_from_slice(&chunk[at..at + c]);
        }
    }

    /// Place in the chunk of the tile's row (z, y).
    #[inline(always)]
    pub(crate) fn row(&self, tile: &Tile, z: usize, y: usize) -> usize {
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
            let layer = grid.layer_len();
            for i in 0..grid.tiles() {
                let tile = grid.tile(i);
                let mut values = vec![0; tile.len()];
                grid.gather(&chunk, &tile, &mut values);
                for v in values {
                    seen[v] += 1;
                    assert_eq!(v / layer, i / grid.layer_tiles(), "{dims:?}: value {v} of tile {i}");
                }
            }
            assert!(seen.iter().all(|&s| s == 1), "{dims:?}");
        }
    }
}
