// SPDX-License-Identifier: MIT OR Apache-2.0
//! Components of vectors, which a chunk has one beside the other, put apart and back. FORMAT.md §3.1.
//!
//! A chunk of m rows of c components becomes c runs of m values, whole, before its first tile is encoded and after its
//! last is decoded, so that tiles have to do with rows of neighbours only. It goes part by part: a part's rows stay in
//! the first cache while one component after the other is taken from them or put into them.

use crate::error::Result;
use crate::stage::tiles::Grid;
use crate::{memory, parallel};

/// Rows of a part: at most 30 kB.
const PART_ROWS: usize = 256;
/// Parts for which a thread is worth its start.
const PARTS: usize = 64;

/// The values of a chunk with `c` components, one component after the other.
pub(super) fn apart<T: bytemuck::Pod + Send + Sync>(chunk: &[T], c: usize, threads: usize) -> Result<Vec<T>> {
    let mut seen = memory::zeros(chunk.len())?;
    let m = chunk.len() / c;
    let grid = Grid::with_sides([1, c, m], [1, c, PART_ROWS]);
    let shares = grid.share(&mut seen, threads.min(m / PART_ROWS / PARTS))?;
    parallel::try_each(shares.len(), shares.into_iter(), threads, |_, mut share| {
        for i in grid.tiles_of(&share) {
            let tile = grid.tile(i);
            let rows = tile.extents[2];
            let part = &chunk[c * grid.row(&tile, 0, 0)..][..c * rows];
            for k in 0..c {
                let run = share.row(grid.row(&tile, 0, k), rows);
                run.iter_mut().zip(part[k..].iter().step_by(c)).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Undoes [`apart`].
pub(super) fn together<T: Copy + Send + Sync>(seen: &[T], c: usize, threads: usize, chunk: &mut [T]) -> Result<()> {
    let m = chunk.len() / c;
    let many = c * PART_ROWS * parallel::run_length(m.div_ceil(PART_ROWS), threads.min(m / PART_ROWS / PARTS));
    let shares = chunk.chunks_mut(many.max(1));
    parallel::try_each(shares.len(), shares.enumerate(), threads, |_, (i, share)| {
        for (j, part) in share.chunks_mut(c * PART_ROWS).enumerate() {
            let first = i * many / c + j * PART_ROWS;
            for k in 0..c {
                let run = &seen[k * m + first..(k + 1) * m];
                part[k..].iter_mut().step_by(c).zip(run).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(())
    })
}
