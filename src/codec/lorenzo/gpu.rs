// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/lorenzo_*.cu` are told about a chunk and about a frame.

use crate::bound;
use crate::codec::LORENZO;
use crate::codec::device::{Encoding, Kernels, foreign_flag, head_words};
use crate::constants::LORENZO_TILE;
use crate::gpu::abi::{BOUND_ABSOLUTE, BOUND_POINTWISE, BOUND_RANGE, EncodeChunk, FLAG_FILL};
use crate::params::{Bound, Params};
use crate::stage::tiles::Grid;

/// A chunk of `raw_len` bytes as the kernels take it.
pub(crate) fn encoding(params: &Params, raw_len: usize) -> Option<Encoding> {
    let size = usize::from(params.dtype.size);
    let grid = Grid::new(params.extents.as_slice(), LORENZO_TILE)?;
    let (extents, tile) = grid.sides()?;
    let tiles = grid.tiles();
    let (bound_kind, bound) = match params.ask.bound {
        Bound::Lossless => return None,
        Bound::Absolute(b) => (BOUND_ABSOLUTE, b),
        Bound::Relative(r) => (BOUND_RANGE, r),
        Bound::Psnr(p) => (BOUND_RANGE, bound::psnr_factor(p)),
        Bound::PointwiseRelative(r) => (BOUND_POINTWISE, r),
    };
    // The kernel adds the lengths of the first section and of the payload.
    let (head, head_words) = head_words(params, LORENZO, bound, &[0, tiles as u64, 4 * tiles as u64, 0], 0, &[]);
    let rank = params.extents.as_slice().len();
    // A byte a value, two bits a value for exceptions, and for either predictor a word a value for large residuals.
    let room = tile.iter().product::<u32>().next_multiple_of(64);
    let chunk = EncodeChunk {
        input: 0,
        frame: 0,
        values: (raw_len / size) as u64,
        fill: params.fill.unwrap_or(0),
        bound,
        payload_at: 0,
        bound_kind,
        flags: foreign_flag(params.dtype) | if params.fill.is_some() { FLAG_FILL } else { 0 },
        first_tile: 0,
        tiles: u32::try_from(tiles).ok()?,
        table_at: 4 * head_words,
        table_words: 0,
        head_words,
        // Behind 14 words of fixed header, the extents and the lengths of three sections.
        payload_len_at: (14 + rank + 6) as u32,
        extents,
        rank: 3,
        work: 0,
        work_stride: 64 + room + room / 4 + 8 * room,
        tile,
        head,
    };
    let kernels = Kernels { codec: LORENZO, wide: size == 8, range: bound_kind == BOUND_RANGE };
    // The first section has 52 bytes at most and every section is filled up; no tile's payload is longer than its values,
    // or, for a few values, than four units.
    let capacity = 4 * head_words as usize + 52 + 5 * tiles + 32 + raw_len + 16 * tiles;
    (capacity / 4 <= u32::MAX as usize).then_some(Encoding { kernels, chunk, capacity })
}
