// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/planes.cu` are told about a chunk and about a frame.

use super::shape::Shape;
use crate::codec::chunk;
use crate::codec::plan::{self, Counts, Encoding, Gpu, Head, Launch};
use crate::codec_id::CodecId;
use crate::constants::SECTION_ALIGN;
use crate::cuda::abi::{DecodeChunk, EncodeChunk, FLAG_DENSE};
use crate::frame::Frame;
use crate::params::{Codec, Params};

/// Thresholds as for szx (codec/szx/launch.rs), whose place between host and device it takes.
pub(super) static GPU: Gpu = Gpu {
    encode_from: 1 << 20,
    decode_from: 8 << 20,
    encoding,
    decoding,
    encode: &[Launch::range("planes_range"), Launch::new("planes_encode", encode_ctas)],
    decode: &[Launch::new("planes_decode", decode_ctas), Launch::new("planes_verdict", plan::per_chunk)],
    shared: 0,
    tables: 0,
};

/// Tiles that a CTA has at a time, one a warp.
const AT_A_TIME: u32 = 4;

/// CTAs that take one tile after the other: about as many as a large device runs at once.
fn encode_ctas(batch: Counts) -> u32 {
    batch.tiles.div_ceil(AT_A_TIME).min(1024)
}

fn decode_ctas(batch: Counts) -> u32 {
    batch.tiles.div_ceil(AT_A_TIME)
}

/// Extents of the array, slowest first, grid rank, tiles. `None` where the chunk is the CPU's: kernels know no components.
fn tiles(extents: &[u32]) -> Option<([u32; 3], u32, u32)> {
    let shape = Shape::choose(extents).filter(|shape| shape.components == 1)?;
    let (extents, _) = shape.grid.sides()?;
    Some((extents, shape.rank as u32, u32::try_from(shape.grid.tiles()).ok()?))
}

fn encoding(params: &Params, raw_len: usize) -> Option<Encoding> {
    if !params.lossy(raw_len) {
        return None;
    }
    let chunk = plan::any_chunk(params, params.request.bound, raw_len);
    // Kernels count places in 32 bits.
    u32::try_from(chunk.values).ok()?;
    let (extents, rank, tiles) = tiles(params.extents.as_slice())?;
    // The payload's length is added by the kernel.
    let table_len = 4 * tiles as usize;
    let head = |stored| Head::new(params, CodecId::PLANES, Some(chunk.bound), &[table_len as u64, 0], stored, &[]);
    let table_at = head(0).bytes();
    let payload_at = (table_at + table_len).next_multiple_of(SECTION_ALIGN);
    let head = head(payload_at);
    let dense = if params.request.codec == Codec::PlanesDense { FLAG_DENSE } else { 0 };
    let chunk = EncodeChunk {
        payload_at: payload_at as u64,
        flags: chunk.flags | dense,
        tiles,
        table_at: table_at as u32,
        table_words: tiles,
        head_words: head.len,
        payload_len_at: Head::section_len_at(params, 1),
        extents,
        rank,
        head: head.words,
        ..chunk
    };
    // A head is all that a tile adds to its values.
    Some(Encoding { chunk, capacity: payload_at + raw_len + table_len })
}

fn decoding(frame: &Frame<'_>) -> Option<DecodeChunk> {
    let h = &frame.header;
    if !chunk::is_lossy(h) || h.mode == crate::params::Mode::PointwiseRelative {
        return None;
    }
    let values = frame.elements(h.dtype.size.into()).ok()?;
    u32::try_from(values).ok()?;
    let (extents, rank, tiles) = tiles(h.extents.as_slice())?;
    let [table, payload] = frame.sections().ok()?;
    if table.len() != 4 * tiles as usize || payload.len() % 4 != 0 {
        return None;
    }
    let payload_at = frame.stored_len() - payload.len() as u64;
    Some(DecodeChunk {
        payload_at,
        payload_len: payload.len() as u64,
        tiles,
        table_at: u32::try_from(payload_at - table.len().next_multiple_of(SECTION_ALIGN) as u64).ok()?,
        table_words: tiles,
        extents,
        rank,
        ..plan::any_frame(frame)
    })
}
