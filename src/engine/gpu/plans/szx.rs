// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/szx.cu` are told about a chunk and about a frame.

use crate::engine::gpu::plan::{self, ChunkPlan, Counts, Gpu, Head, Launch, Numbers};
use codecs::codec::chunk;
use codecs::codec_id::CodecId;
use codecs::constants::{SECTION_ALIGN, SZX_BLOCK, SZX_TILE_BLOCKS};
use codecs::frame::Frame;
use codecs::params::{Bound, Params};
use kernels::abi::{DecodeChunk, EncodeChunk};

/// From host memory to host memory, one chunk a call, on an H200 and on eight threads of its host; GB/s of raw data,
/// GPU and CPU: encoding 1 and 2 MiB 6.9 and 5.2, 10.4 and 4.6; decoding 8 and 16 MiB 18.7 and 28.1, 21.0 and 37.6
/// (`lane` in tests/gpu/record.toml). The way there and back is all that takes time in decoding, and from 4 MiB on
/// eight threads are ahead; through h5py little of that is left in large chunks (3.0 and 3.2 GB/s at 16 MiB), and cores
/// stay free. Some smaller chunks would be faster on the GPU too, but gain less than its start costs.
pub(super) static GPU: Gpu = Gpu {
    encode_from: 1 << 20,
    decode_from: 8 << 20,
    encoding,
    decoding,
    encode: &[Launch::range("szx_range"), Launch::new("szx_encode", encode_ctas).or_limited("szx_encode_limited")],
    decode: &[Launch::new("szx_decode", plan::per_tile)],
    shared: 0,
    tables: 0,
};

fn encode_ctas(batch: Counts) -> u32 {
    if batch.numbers == Numbers::F64 { plan::per_tile(batch) } else { plan::persistent(batch) }
}

/// Values of one tile: one CTA's work.
const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;

fn encoding(params: &Params, raw_len: usize) -> Option<ChunkPlan> {
    if params.request.bound == Bound::Lossless {
        return None;
    }
    let chunk = plan::any_chunk(params, params.request.bound, raw_len);
    let tiles = (chunk.values as usize).div_ceil(TILE);
    // The payload's length is added by the kernel.
    let table_len = 4 * tiles;
    let head = |stored| Head::new(params, CodecId::SZX, Some(chunk.bound), &[table_len as u64, 0], stored, &[]);
    let table_at = head(0).bytes();
    let payload_at = (table_at + table_len).next_multiple_of(SECTION_ALIGN);
    let head = head(payload_at);
    let chunk = EncodeChunk {
        payload_at: payload_at as u64,
        tiles: u32::try_from(tiles).ok()?,
        table_at: table_at as u32,
        table_words: tiles as u32,
        head_words: head.len,
        payload_len_at: Head::section_len_at(params, 1),
        head: head.words,
        ..chunk
    };
    // Kinds and filling are all that a tile adds to its raw bytes.
    Some(ChunkPlan { chunk, capacity: payload_at + raw_len + tiles * (SZX_TILE_BLOCKS + 8) })
}

fn decoding(frame: &Frame<'_>) -> Option<DecodeChunk> {
    if !chunk::is_lossy(&frame.header) {
        return None;
    }
    let tiles = frame.elements(frame.header.dtype.size.into()).ok()?.div_ceil(TILE);
    let [table, payload] = frame.sections().ok()?;
    if table.len() != 4 * tiles || payload.len() % 4 != 0 {
        return None;
    }
    let payload_at = frame.stored_len() - payload.len() as u64;
    Some(DecodeChunk {
        payload_at,
        payload_len: payload.len() as u64,
        tiles: u32::try_from(tiles).ok()?,
        table_at: u32::try_from(payload_at - table.len().next_multiple_of(SECTION_ALIGN) as u64).ok()?,
        table_words: tiles as u32,
        ..plan::any_frame(frame)
    })
}
