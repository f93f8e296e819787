// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernels of `kernels/lorenzo_*.cu` are told about a chunk and about a frame.

use crate::engine::gpu::plan::{self, ChunkPlan, Gpu, Head, Launch};
use codecs::codec::chunk;
use codecs::codec::lorenzo::encode::{fine, quantizer};
use codecs::codec::lorenzo::{format, integers};
use codecs::codec_id::CodecId;
use codecs::constants::{LORENZO_SYMBOLS, LORENZO_TILE, SECTION_ALIGN};
use codecs::frame::Frame;
use codecs::params::{Bound, Class, Mode, Params};
use codecs::stage::quantize::Quantizer;
use codecs::stage::tiles::Grid;
use kernels::abi::{DecodeChunk, EncodeChunk, LORENZO_HEAD, LORENZO_SHARED};

/// Measured as for szx (szx.rs): encoding 512 KiB 3.3 and 0.8; decoding 512 KiB and 1 MiB 5.4 and 1.9, 8.0
/// and 4.0.
pub(super) static GPU: Gpu = Gpu {
    encode_from: 256 << 10,
    decode_from: 512 << 10,
    encoding,
    decoding,
    encode: &[
        Launch::integers("lorenzo_encode_widen"),
        Launch::range("lorenzo_encode_range"),
        Launch::new("lorenzo_encode_plan", plan::per_tile).or_limited("lorenzo_limited_plan"),
        Launch::new("lorenzo_encode_interpolate", plan::per_tile).or_limited("lorenzo_limited_interpolate"),
        Launch::new("lorenzo_encode_codebook", plan::per_chunk),
        Launch::new("lorenzo_encode_write", plan::persistent),
    ],
    decode: &[
        Launch::new("lorenzo_decode_tables", plan::per_chunk),
        Launch::new("lorenzo_decode", plan::per_tile),
        Launch::integers("lorenzo_decode_narrow"),
    ],
    shared: LORENZO_SHARED as usize,
    tables: 20496,
};

fn encoding(params: &Params, raw_len: usize) -> Option<ChunkPlan> {
    let own = *params;
    let (params, raw_len) = match integers::as_f64(&own) {
        Some(wide) => (wide, raw_len / usize::from(own.dtype.size) * size_of::<f64>()),
        None => (own, raw_len),
    };
    if params.request.bound == Bound::Lossless {
        return None;
    }
    let grid = Grid::new(params.extents.as_slice(), LORENZO_TILE)?;
    let (extents, tile) = grid.sides()?;
    let tiles = grid.tiles();
    let chunk = plan::any_chunk(&params, params.request.bound, raw_len);
    // The kernel adds the lengths of the first section and of the payload.
    let lengths = format::lengths_len(tiles).iter().sum::<usize>();
    let sections = [0, tiles as u64, lengths as u64, 0];
    let is_integer = own.dtype.class == Class::Integer;
    let used = (!is_integer).then_some(chunk.bound);
    let head = Head::new(&own, CodecId::LORENZO, used, &sections, 0, &[]);
    // A byte a value, another one for outliers (half as many runs of a mask as values, two bytes each), and for either
    // predictor a word a value for escapes.
    let values = tile.iter().product::<u32>().next_multiple_of(64);
    let chunk = EncodeChunk {
        tiles: u32::try_from(tiles).ok()?,
        table_at: head.bytes() as u32,
        head_words: head.len,
        payload_len_at: Head::section_len_at(&params, 3),
        extents,
        rank: 3,
        work_stride: LORENZO_HEAD + 2 * values + 8 * values,
        tile,
        integer: if is_integer { plan::integer(own.dtype) } else { 0 },
        head: head.words,
        ..chunk
    };
    // Eight bytes for a base. Every section is filled up; no tile's payload is longer than its values, or, for a few
    // values, than four units.
    let capacity = head.bytes() + 1 + LORENZO_SYMBOLS / 2 + 8 + tiles + lengths + 32 + raw_len + 16 * tiles;
    (capacity / 4 <= u32::MAX as usize).then_some(ChunkPlan { chunk, capacity })
}

fn decoding(frame: &Frame<'_>) -> Option<DecodeChunk> {
    if integers::is_wide(&frame.header) {
        let wide = frame.with_header(integers::wide_header(frame).ok()?);
        return Some(DecodeChunk { integer: plan::integer(frame.header.dtype), ..decoding(&wide)? });
    }
    let h = &frame.header;
    if !chunk::is_lossy(h) {
        return None;
    }
    let size = usize::from(h.dtype.size);
    frame.elements(size).ok()?;
    let grid = Grid::new(h.extents.as_slice(), LORENZO_TILE)?;
    let (extents, tile) = grid.sides()?;
    let tiles = grid.tiles();
    let [head, kinds, lengths, payload] = frame.sections().ok()?;
    if head.is_empty()
        || kinds.len() != tiles
        || lengths.len() != format::lengths_len(tiles).iter().sum::<usize>()
        || payload.len() % 4 != 0
    {
        return None;
    }
    let before = |at: u64, section: &[u8]| at - section.len().next_multiple_of(SECTION_ALIGN) as u64;
    let payload_at = frame.stored_len() - payload.len() as u64;
    let lengths_at = before(payload_at, lengths);
    let kinds_at = before(lengths_at, kinds);
    let log = h.mode == Mode::PointwiseRelative;
    let (codebook, base) = format::split_head(head, size, log).ok()?;
    let distance =
        match if size == 4 { quantizer::<f32>(log, h.used, base) } else { quantizer::<f64>(log, h.used, base) } {
            Quantizer::Log(l) => l.step(),
            Quantizer::Linear(_) => 0,
        };
    let (step, fine) = (2.0 * h.used, fine(h.used, base).step());
    if !step.is_finite() {
        // The bits of 0 times infinity are not the same on every machine.
        return None;
    }
    Some(DecodeChunk {
        payload_at,
        payload_len: payload.len() as u64,
        step,
        fine,
        distance,
        base,
        tiles: u32::try_from(tiles).ok()?,
        table_at: u32::try_from(before(kinds_at, head)).ok()?,
        extents,
        rank: 3,
        table_len: u32::try_from(codebook.len()).ok()?,
        kinds_at: u32::try_from(kinds_at).ok()?,
        lengths_at: u32::try_from(lengths_at).ok()?,
        tile,
        ..plan::any_frame(frame)
    })
}
