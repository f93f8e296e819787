// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/szx.cu` are told about a chunk and about a frame.

use crate::bound;
use crate::codec::SZX;
use crate::codec::device::{Decoding, Encoding, Kernels, NO_FRAME, foreign_flag, head_words};
use crate::constants::{SECTION_ALIGN, SZX_BLOCK, SZX_TILE_BLOCKS};
use crate::frame::Frame;
use crate::gpu::abi::{BOUND_ABSOLUTE, BOUND_POINTWISE, BOUND_RANGE, DecodeChunk, EncodeChunk, FLAG_FILL};
use crate::params::{Bound, Params};

/// Values of one tile: one CTA's work.
const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;

/// A chunk of `raw_len` bytes as the kernels take it.
pub(crate) fn encoding(params: &Params, raw_len: usize) -> Option<Encoding> {
    let size = usize::from(params.dtype.size);
    let values = raw_len / size;
    let tiles = values.div_ceil(TILE);
    let (bound_kind, bound) = match params.ask.bound {
        Bound::Lossless => return None,
        Bound::Absolute(b) => (BOUND_ABSOLUTE, b),
        Bound::Relative(r) => (BOUND_RANGE, r),
        Bound::Psnr(p) => (BOUND_RANGE, bound::psnr_factor(p)),
        Bound::PointwiseRelative(r) => (BOUND_POINTWISE, r),
    };
    // The payload's length is added by the kernel.
    let table_len = 4 * tiles;
    let empty = head_words(params, SZX, bound, &[table_len as u64, 0], 0, &[]);
    let table_at = 4 * empty.1 as usize;
    let payload_at = (table_at + table_len).next_multiple_of(SECTION_ALIGN);
    let (head, words) = head_words(params, SZX, bound, &[table_len as u64, 0], payload_at, &[]);
    let rank = params.extents.as_slice().len();
    let chunk = EncodeChunk {
        input: 0,
        frame: 0,
        values: values as u64,
        fill: params.fill.unwrap_or(0),
        bound,
        payload_at: payload_at as u64,
        bound_kind,
        flags: foreign_flag(params.dtype) | if params.fill.is_some() { FLAG_FILL } else { 0 },
        first_tile: 0,
        tiles: u32::try_from(tiles).ok()?,
        table_at: table_at as u32,
        table_words: tiles as u32,
        head_words: words,
        // Behind 14 words of fixed header, the extents and the table's length.
        payload_len_at: (14 + rank + 2) as u32,
        extents: [1; 3],
        rank: 1,
        work: 0,
        work_stride: 0,
        tile: [1; 3],
        head,
    };
    let kernels = Kernels { codec: SZX, wide: size == 8, range: bound_kind == BOUND_RANGE };
    // Kinds and filling are all that a tile adds to its raw bytes.
    let capacity = payload_at + raw_len + tiles * (SZX_TILE_BLOCKS + 8);
    Some(Encoding { kernels, chunk, capacity })
}

/// A frame as the kernel takes it. What it does not check is checked here.
pub(crate) fn decoding(frame: &Frame<'_>) -> Option<Decoding> {
    let h = &frame.header;
    let size = usize::from(h.dtype.size);
    if !h.dtype.is_ieee() || h.mode == 9 {
        return None;
    }
    let values = frame.elements(size).ok()?;
    let tiles = values.div_ceil(TILE);
    let [table, payload] = frame.sections().ok()?;
    if table.len() != 4 * tiles || payload.len() % 4 != 0 {
        return None;
    }
    let payload_at = h.stored_len - payload.len() as u64;
    let table_at = payload_at - table.len().next_multiple_of(SECTION_ALIGN) as u64;
    let chunk = DecodeChunk {
        frame: 0,
        output: 0,
        values: values as u64,
        frame_len: h.stored_len,
        payload_at,
        payload_len: payload.len() as u64,
        bound: h.used,
        checksum: h.checksum,
        first_tile: 0,
        tiles: u32::try_from(tiles).ok()?,
        table_at: u32::try_from(table_at).ok()?,
        flags: foreign_flag(h.dtype),
        extents: [1; 3],
        rank: 1,
        mode: h.mode.into(),
        table_words: tiles as u32,
        ..NO_FRAME
    };
    Some(Decoding { kernels: Kernels { codec: SZX, wide: size == 8, range: false }, chunk })
}
