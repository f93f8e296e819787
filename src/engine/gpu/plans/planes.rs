// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/planes_lossy.cu` and `kernels/planes_lossless.cu` are told about a chunk and about a
//! frame.

use crate::engine::gpu::plan::{self, ChunkPlan, Counts, Gpu, Head, Launch};
use codecs::codec::chunk;
use codecs::codec::planes::shape::Shape;
use codecs::codec_id::CodecId;
use codecs::constants::SECTION_ALIGN;
use codecs::frame::Frame;
use codecs::params::{Bound, Class, Dtype, Mode, Params};
use kernels::abi::{DecodeChunk, EncodeChunk, FLAG_FLOAT, FLAG_SWAP};

/// From host memory to host memory, one chunk a call, on an H200 and on eight threads of its host; GB/s of raw data,
/// GPU and CPU: 1 MiB under a bound 7.8 and 2.3, back 8.7 and 4.5; without one 5.5 and 1.1, back 5.5 and 3.7 (`lane` in
/// tests/gpu/record.toml). The GPU is ahead from 256 KiB on, but what small chunks gain does not pay for its start
/// soon.
pub(super) static GPU: Gpu = Gpu {
    encode_from: 1 << 20,
    decode_from: 1 << 20,
    encoding,
    decoding,
    encode: &[
        Launch::range("planes_lossy_range"),
        Launch::new("planes_lossy_quanta", encode_ctas).only(false),
        Launch::new("planes_lossy_wide", wide_ctas).only(false).or_limited("planes_lossy_wide_limited"),
        Launch::new("planes_lossy_place", place_ctas).only(false),
        Launch::new("planes_lossy_seal", plan::per_chunk).only(false),
        Launch::new("planes_lossless_encode", plan::persistent).only(true),
        Launch::new("planes_lossless_seal", plan::per_chunk).only(true),
    ],
    decode: &[
        Launch::new("planes_lossy_take_quanta", decode_ctas).only(false),
        Launch::new("planes_lossy_take_wide", wide_ctas).only(false),
        Launch::new("planes_lossy_verdict", plan::per_chunk).only(false),
        Launch::new("planes_lossless_decode", plan::per_tile).only(true),
        Launch::new("planes_lossless_verdict", plan::per_chunk).only(true),
    ],
    shared: 0,
    tables: 0,
};

/// Tiles that a CTA has at a time, one a warp.
const AT_A_TIME: u32 = 4;

/// CTAs that take one tile after the other: about as many as a large device runs at once.
fn encode_ctas(batch: Counts) -> u32 {
    batch.tiles.div_ceil(AT_A_TIME).min(1024)
}

/// Four CTAs for each group of 32 tiles, whose lengths are summed up together.
fn place_ctas(batch: Counts) -> u32 {
    4 * batch.tiles.div_ceil(32)
}

/// CTAs that take listed tiles, of which there may be none: six on each multiprocessor of a large device.
fn wide_ctas(batch: Counts) -> u32 {
    batch.tiles.min(792)
}

fn decode_ctas(batch: Counts) -> u32 {
    batch.tiles.div_ceil(AT_A_TIME)
}

/// What kernels are told of a chunk's tiles.
struct Tiles {
    /// The array, slowest axis first.
    extents: [u32; 3],
    rank: u32,
    components: u32,
    tiles: u32,
}

/// The tiles of a chunk; `None`: the CPU codes it.
fn tiles(extents: &[u32]) -> Option<Tiles> {
    let shape = Shape::for_extents(extents)?;
    let (extents, _) = shape.grid.sides()?;
    let (rank, components) = (shape.rank as u32, shape.components as u32);
    Some(Tiles { extents, rank, components, tiles: u32::try_from(shape.grid.tiles()).ok()? })
}

fn float_flag(dtype: Dtype) -> u32 {
    if dtype.class == Class::Float { FLAG_FLOAT } else { 0 }
}

/// What kernels are told of integers of 1 and 2 bytes, which become values of 4, and a fill value as such; 0 of others.
/// They find the byte order there.
fn shorts(dtype: Dtype, fill: u64) -> (u32, u64) {
    match (dtype.is_short(), dtype.size, dtype.signed) {
        (false, ..) => (0, fill),
        (_, 1, true) => (plan::integer(dtype), u64::from(i32::from(fill as i8).cast_unsigned())),
        (_, 2, true) => (plan::integer(dtype), u64::from(i32::from(fill as i16).cast_unsigned())),
        _ => (plan::integer(dtype), fill),
    }
}

fn encoding(params: &Params, raw_len: usize) -> Option<ChunkPlan> {
    let lossy = params.lossy(raw_len);
    let chunk = plan::any_chunk(params, if lossy { params.request.bound } else { Bound::Lossless }, raw_len);
    // Kernels count places in 32 bits.
    u32::try_from(chunk.values).ok()?;
    let Tiles { extents, rank, components, tiles } = tiles(params.extents.as_slice())?;
    let (integer, fill) = shorts(params.dtype, chunk.fill);
    // The payload's length is added by the kernel.
    let table_len = 4 * tiles as usize;
    let used = lossy.then_some(chunk.bound);
    let head = |stored| Head::new(params, CodecId::PLANES, used, &[table_len as u64, 0], stored, &[]);
    let table_at = head(0).bytes();
    let payload_at = (table_at + table_len).next_multiple_of(SECTION_ALIGN);
    let head = head(payload_at);
    let chunk = EncodeChunk {
        payload_at: payload_at as u64,
        // A tile's slot: as long as its values, a head, up to 16 bytes.
        work_stride: if lossy { 4096 * u32::from(params.dtype.size) + 16 } else { 0 },
        flags: if integer == 0 { chunk.flags } else { chunk.flags & !FLAG_SWAP } | float_flag(params.dtype),
        fill,
        integer,
        tiles,
        table_at: table_at as u32,
        table_words: tiles,
        head_words: head.len,
        payload_len_at: Head::section_len_at(params, 1),
        extents,
        rank,
        components,
        head: head.words,
        ..chunk
    };
    // A head is all that a tile adds to its values.
    let coded = if integer == 0 { raw_len } else { chunk.values as usize * size_of::<u32>() };
    Some(ChunkPlan { chunk, capacity: payload_at + coded + table_len })
}

fn decoding(frame: &Frame<'_>) -> Option<DecodeChunk> {
    let h = &frame.header;
    let is_number = h.dtype.is_short() || h.dtype.class != Class::Bytes && matches!(h.dtype.size, 4 | 8);
    let lossless = h.mode == Mode::Lossless && is_number;
    if !lossless && (!chunk::is_lossy(h) || h.mode == Mode::PointwiseRelative) {
        return None;
    }
    let values = frame.elements(h.dtype.size.into()).ok()?;
    u32::try_from(values).ok()?;
    let Tiles { extents, rank, components, tiles } = tiles(h.extents.as_slice())?;
    let [table, payload] = frame.sections().ok()?;
    if table.len() != 4 * tiles as usize || payload.len() % 4 != 0 {
        return None;
    }
    let payload_at = frame.stored_len() - payload.len() as u64;
    let any = plan::any_frame(frame);
    let (integer, _) = shorts(h.dtype, 0);
    Some(DecodeChunk {
        payload_at,
        payload_len: payload.len() as u64,
        tiles,
        table_at: u32::try_from(payload_at - table.len().next_multiple_of(SECTION_ALIGN) as u64).ok()?,
        table_words: tiles,
        extents,
        rank,
        components,
        flags: if integer == 0 { any.flags } else { any.flags & !FLAG_SWAP } | float_flag(h.dtype),
        integer,
        ..any
    })
}
