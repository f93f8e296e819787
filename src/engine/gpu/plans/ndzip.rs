// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/ndzip.cu` are told about a chunk and about a frame.

use crate::engine::gpu::plan::{self, ChunkPlan, Gpu, Head, Launch};
use codecs::codec::ndzip::format::{Grid, max_len, table_len};
use codecs::codec_id::CodecId;
use codecs::constants::{NDZIP_CUBE, SECTION_ALIGN};
use codecs::frame::Frame;
use codecs::params::{Bound, Class, Dtype, Mode, Params};
use kernels::abi::{DecodeChunk, EncodeChunk, FLAG_FILL, FLAG_FLOAT};

/// Measured as for szx (szx.rs): at 1 and 2 MiB, encoding 6.4 and 3.7, 6.5 and 2.9; decoding 6.2 and 2.5,
/// 7.0 and 3.8.
pub(super) static GPU: Gpu = Gpu {
    encode_from: 1 << 20,
    decode_from: 1 << 20,
    encoding,
    decoding,
    encode: &[Launch::new("ndzip_encode", plan::per_tile)],
    decode: &[Launch::new("ndzip_decode", plan::per_tile)],
    shared: 0,
    tables: 0,
};

fn float_flag(dtype: Dtype) -> u32 {
    if dtype.class == Class::Float { FLAG_FLOAT } else { 0 }
}

/// Cubes, and pieces of the border of as many values.
fn tiles(grid: &Grid) -> Option<u32> {
    u32::try_from(grid.cubes() + grid.border_len().div_ceil(NDZIP_CUBE)).ok()
}

fn extents(grid: &Grid) -> [u32; 3] {
    // Every extent came from a u32.
    grid.dims().map(|d| d as u32)
}

fn encoding(params: &Params, raw_len: usize) -> Option<ChunkPlan> {
    let size = usize::from(params.dtype.size);
    let grid = Grid::for_extents(params.extents.as_slice())?;
    let longest = max_len(&grid, size)?;
    let mut section = Vec::new();
    grid.write(&mut section);
    let grid_len = section.len() as u64;
    section.resize(section.len().next_multiple_of(SECTION_ALIGN), 0);
    let table_len = table_len(grid.cubes(), size);
    let head = |stored| Head::new(params, CodecId::NDZIP, None, &[grid_len, table_len as u64], stored, &section);
    let table_at = head(0).bytes();
    let payload_at = table_at + table_len;
    let head = head(payload_at);
    let any = plan::any_chunk(params, Bound::Lossless, raw_len);
    let chunk = EncodeChunk {
        fill: 0,
        payload_at: payload_at as u64,
        flags: any.flags & !FLAG_FILL | float_flag(params.dtype),
        tiles: tiles(&grid)?,
        table_at: table_at as u32,
        table_words: grid.cubes() as u32,
        head_words: head.len,
        payload_len_at: Head::section_len_at(params, 1),
        extents: extents(&grid),
        rank: grid.rank() as u32,
        head: head.words,
        ..any
    };
    Some(ChunkPlan { chunk, capacity: table_at + longest })
}

fn decoding(frame: &Frame<'_>) -> Option<DecodeChunk> {
    let h = &frame.header;
    let size = usize::from(h.dtype.size);
    if h.dtype.class == Class::Bytes || h.mode != Mode::Lossless || !matches!(size, 4 | 8) {
        return None;
    }
    let [grid, stream] = frame.sections().ok()?;
    let grid = Grid::read(grid, frame.elements(size).ok()?).ok()?;
    let table_len = table_len(grid.cubes(), size);
    let filling = stream.get(4 * grid.cubes()..table_len)?;
    if filling.iter().any(|&b| b != 0) || stream.len() % size != 0 {
        return None;
    }
    let table_at = frame.stored_len() - stream.len() as u64;
    let any = plan::any_frame(frame);
    Some(DecodeChunk {
        values: grid.values() as u64,
        payload_at: table_at + table_len as u64,
        payload_len: (stream.len() - table_len) as u64,
        tiles: tiles(&grid)?,
        table_at: u32::try_from(table_at).ok()?,
        flags: any.flags | float_flag(h.dtype),
        extents: extents(&grid),
        rank: grid.rank() as u32,
        table_words: grid.cubes() as u32,
        ..any
    })
}
