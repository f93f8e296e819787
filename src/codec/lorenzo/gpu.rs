// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/lorenzo_*.cu` are told about a chunk and about a frame.

use super::encode::{fine, quantizer};
use crate::bound;
use crate::codec::LORENZO;
use crate::codec::device::{Decoding, Encoding, Kernels, foreign_flag, head_words};
use crate::constants::{LORENZO_TILE, SECTION_ALIGN};
use crate::frame::Frame;
use crate::gpu::abi::{
    BOUND_ABSOLUTE, BOUND_POINTWISE, BOUND_RANGE, DecodeChunk, EncodeChunk, FLAG_FILL, LORENZO_HEAD,
};
use crate::params::{Bound, Params};
use crate::stage::quantize::Quantizer;
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
    // A byte a value, two bits a value for outliers, and for either predictor a word a value for large residuals.
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
        work_stride: LORENZO_HEAD + room + room / 4 + 8 * room,
        tile,
        head,
    };
    let kernels = Kernels { codec: LORENZO, wide: size == 8, range: bound_kind == BOUND_RANGE };
    // The first section has 52 bytes at most and every section is filled up; no tile's payload is longer than its values,
    // or, for a few values, than four units.
    let capacity = 4 * head_words as usize + 52 + 5 * tiles + 32 + raw_len + 16 * tiles;
    (capacity / 4 <= u32::MAX as usize).then_some(Encoding { kernels, chunk, capacity })
}

/// A frame as the kernels take it. What they do not check is checked here.
pub(crate) fn decoding(frame: &Frame<'_>) -> Option<Decoding> {
    let h = &frame.header;
    let size = usize::from(h.dtype.size);
    if !h.dtype.is_ieee() || h.mode == 9 {
        return None;
    }
    let values = frame.elements(size).ok()?;
    let grid = Grid::new(h.extents.as_slice(), LORENZO_TILE)?;
    let (extents, tile) = grid.sides()?;
    let tiles = grid.tiles();
    let sections: [&[u8]; 4] = frame.sections().ok()?;
    let [head, kinds, ends, payload] = sections;
    if head.len() < 2 || kinds.len() != tiles || ends.len() != 4 * tiles || payload.len() % 4 != 0 {
        return None;
    }
    let before = |at: u64, section: &[u8]| at - section.len().next_multiple_of(SECTION_ALIGN) as u64;
    let payload_at = h.stored_len - payload.len() as u64;
    let ends_at = before(payload_at, ends);
    let kinds_at = before(ends_at, kinds);
    let log = h.mode == 3;
    let distance = match if size == 4 { quantizer::<f32>(log, h.used) } else { quantizer::<f64>(log, h.used) } {
        Quantizer::Log(l) => l.step(),
        Quantizer::Linear(_) => 0,
    };
    let (step, fine) = (2.0 * h.used, fine(h.used).step());
    if !step.is_finite() {
        // The bits of 0 times infinity are not the same on every machine.
        return None;
    }
    let chunk = DecodeChunk {
        frame: 0,
        output: 0,
        values: values as u64,
        frame_len: h.stored_len,
        payload_at,
        payload_len: payload.len() as u64,
        bound: h.used,
        checksum: h.checksum,
        step,
        fine,
        distance,
        first_tile: 0,
        tiles: u32::try_from(tiles).ok()?,
        table_at: u32::try_from(before(kinds_at, head)).ok()?,
        flags: foreign_flag(h.dtype),
        extents,
        rank: 3,
        mode: h.mode.into(),
        table_words: tiles as u32,
        table_len: u32::try_from(head.len()).ok()?,
        kinds_at: u32::try_from(kinds_at).ok()?,
        ends_at: u32::try_from(ends_at).ok()?,
        tile,
    };
    Some(Decoding { kernels: Kernels { codec: LORENZO, wide: size == 8, range: false }, chunk })
}
