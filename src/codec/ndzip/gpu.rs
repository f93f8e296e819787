// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/ndzip.cu` are told about a chunk and about a frame.

use super::format::{Grid, max_len, table_len};
use crate::codec::NDZIP;
use crate::codec::device::{Decoding, Encoding, Kernels, NO_FRAME, foreign_flag, head_words};
use crate::constants::{NDZIP_CUBE, SECTION_ALIGN};
use crate::frame::Frame;
use crate::gpu::abi::{BOUND_ABSOLUTE, DecodeChunk, EncodeChunk, FLAG_FLOAT};
use crate::params::{Class, Dtype, Params};

fn kernels(size: usize) -> Kernels {
    Kernels { codec: NDZIP, wide: size == 8, range: false }
}

fn flags(dtype: Dtype) -> u32 {
    foreign_flag(dtype) | if dtype.class == Class::Float { FLAG_FLOAT } else { 0 }
}

/// Cubes, and pieces of the border of as many values.
fn tiles(grid: &Grid) -> Option<u32> {
    u32::try_from(grid.cubes() + grid.border_len().div_ceil(NDZIP_CUBE)).ok()
}

fn extents(grid: &Grid) -> [u32; 3] {
    // Every extent came from a u32.
    grid.dims().map(|d| d as u32)
}

/// A chunk of `raw_len` bytes as the kernels take it.
pub(crate) fn encoding(params: &Params, raw_len: usize) -> Option<Encoding> {
    let size = usize::from(params.dtype.size);
    let grid = Grid::choose(params.extents.as_slice())?;
    let longest = max_len(&grid, size)?;
    let mut section = Vec::new();
    grid.write(&mut section);
    let grid_len = section.len() as u64;
    section.resize(section.len().next_multiple_of(SECTION_ALIGN), 0);
    let table_len = table_len(grid.cubes(), size);
    let head = |stored: usize| head_words(params, NDZIP, 0.0, &[grid_len, table_len as u64], stored, &section);
    let table_at = 4 * head(0).1 as usize;
    let payload_at = table_at + table_len;
    let (head, head_words) = head(payload_at);
    let rank = params.extents.as_slice().len();
    let chunk = EncodeChunk {
        input: 0,
        frame: 0,
        values: (raw_len / size) as u64,
        fill: 0,
        bound: 0.0,
        payload_at: payload_at as u64,
        bound_kind: BOUND_ABSOLUTE,
        flags: flags(params.dtype),
        first_tile: 0,
        tiles: tiles(&grid)?,
        table_at: table_at as u32,
        table_words: grid.cubes() as u32,
        head_words,
        // Behind 14 words of fixed header, the extents and the grid's length.
        payload_len_at: (14 + rank + 2) as u32,
        extents: extents(&grid),
        rank: grid.rank() as u32,
        work: 0,
        work_stride: 0,
        tile: [1; 3],
        head,
    };
    Some(Encoding { kernels: kernels(size), chunk, capacity: table_at + longest })
}

/// A frame as the kernel takes it. What it does not check is checked here.
pub(crate) fn decoding(frame: &Frame<'_>) -> Option<Decoding> {
    let h = &frame.header;
    let size = usize::from(h.dtype.size);
    if h.dtype.class == Class::Bytes || h.mode != 9 || !matches!(size, 4 | 8) {
        return None;
    }
    let [grid, stream] = frame.sections().ok()?;
    let grid_len = grid.len();
    let grid = Grid::read(grid, frame.elements(size).ok()?).ok()?;
    let table_len = table_len(grid.cubes(), size);
    let filling = stream.get(4 * grid.cubes()..table_len)?;
    if filling.iter().any(|&b| b != 0) || stream.len() % size != 0 {
        return None;
    }
    let table_at = h.stored_len - stream.len() as u64;
    debug_assert!(grid_len.is_multiple_of(4));
    let chunk = DecodeChunk {
        frame: 0,
        output: 0,
        values: grid.values() as u64,
        frame_len: h.stored_len,
        payload_at: table_at + table_len as u64,
        payload_len: (stream.len() - table_len) as u64,
        bound: 0.0,
        checksum: h.checksum,
        first_tile: 0,
        tiles: tiles(&grid)?,
        table_at: u32::try_from(table_at).ok()?,
        flags: flags(h.dtype),
        extents: extents(&grid),
        rank: grid.rank() as u32,
        mode: h.mode.into(),
        table_words: grid.cubes() as u32,
        ..NO_FRAME
    };
    Some(Decoding { kernels: kernels(size), chunk })
}
