// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a codec describes its work on a GPU: which kernels, how many CTAs, what they are told of a chunk and of a frame.

use codecs::bound::Limit;
use codecs::codec::chunk;
use codecs::codec_id::CodecId;
use codecs::constants::{HEADER_FIXED, MAX_RANK};
use codecs::frame::{self, Frame};
use codecs::keep::Keep;
use codecs::params::{Bound, Dtype, Params};
use kernels::abi::{
    BOUND_ABSOLUTE, BOUND_POINTWISE, BOUND_RANGE, DecodeChunk, EncodeChunk, FLAG_FILL, FLAG_RANGE, FLAG_SIGN,
    FLAG_SWAP, FLAG_ZERO, HEAD_WORDS, INTEGER_SIGNED, INTEGER_SWAP,
};

/// A codec's side on the GPU.
pub(crate) struct Gpu {
    /// Raw bytes of a batch from which encoding on the GPU is worth its start.
    pub(crate) encode_from: usize,
    /// The same for decoding.
    pub(crate) decode_from: usize,
    /// What the kernels are told of a chunk, by its length in bytes. `None`: the CPU encodes it.
    pub(crate) encoding: fn(&Params, usize) -> Option<ChunkPlan>,
    /// What the kernels are told of a frame. What they do not check is checked here. `None`: the CPU decodes it, and
    /// names any fault.
    pub(crate) decoding: fn(&Frame<'_>) -> Option<DecodeChunk>,
    /// Launches of encoding, in their order.
    pub(crate) encode: &'static [Launch],
    /// Launches of decoding, in their order.
    pub(crate) decode: &'static [Launch],
    /// Bytes that the launches of encoding share for each chunk; zero before the first.
    pub(crate) shared: usize,
    /// Bytes of the tables that the launches of decoding share for each frame.
    pub(crate) tables: usize,
}

impl Gpu {
    /// As what kernels take numbers of `size` bytes, `integer` as they are told it. `None`: no kernel takes them.
    pub(crate) fn numbers(&self, integer: u32, size: u8) -> Option<Numbers> {
        let widens = self.encode.iter().any(|launch| launch.integers);
        match (integer, size) {
            (0, 4) => Some(Numbers::F32),
            (0, 8) => Some(Numbers::F64),
            (0, _) => None,
            _ if widens => Some(Numbers::Widened),
            _ => Some(Numbers::Short),
        }
    }
}

/// What kernels take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Numbers of 4 bytes.
    F32,
    /// Numbers of 8 bytes.
    F64,
    /// Integers of any size, of which a kernel makes f64.
    Widened,
    /// Integers of 1 and 2 bytes, as they are.
    Short,
}

/// One kernel of a codec, for a whole batch.
pub(crate) struct Launch {
    /// Its name in `kernels/`, which ends in `_f32`, `_f64` or `_short`, without this ending.
    pub(crate) kernel: &'static str,
    /// CTAs for a batch.
    pub(crate) ctas: fn(Counts) -> u32,
    /// Left out where no chunk of the batch needs its range of values.
    pub(crate) finds_range: bool,
    /// For chunks with a bound, or for those without one, where it is not for both.
    pub(crate) lossless: Option<bool>,
    /// Left out where no chunk of the batch holds integers that are coded as f64.
    pub(crate) integers: bool,
    /// The kernel that takes its place for chunks of which more than the bound is kept.
    pub(crate) limited: Option<&'static str>,
}

impl Launch {
    pub(crate) const fn new(kernel: &'static str, ctas: fn(Counts) -> u32) -> Launch {
        Launch { kernel, ctas, finds_range: false, lossless: None, integers: false, limited: None }
    }

    /// The kernel that finds the range of every chunk's values.
    pub(crate) const fn range(kernel: &'static str) -> Launch {
        Launch { finds_range: true, ..Launch::new(kernel, per_tile) }
    }

    /// The kernel that turns integers into f64, or back.
    pub(crate) const fn integers(kernel: &'static str) -> Launch {
        Launch { integers: true, ..Launch::new(kernel, per_tile) }
    }

    /// The launch for chunks without a bound only, or for the others only.
    pub(crate) const fn only(self, lossless: bool) -> Launch {
        Launch { lossless: Some(lossless), ..self }
    }

    /// The same with another kernel for chunks of which more than the bound is kept.
    pub(crate) const fn or_limited(self, kernel: &'static str) -> Launch {
        Launch { limited: Some(kernel), ..self }
    }

    /// The kernel's whole name.
    pub(crate) fn name(&self, numbers: Numbers, limited: bool) -> String {
        let ending = match numbers {
            Numbers::F32 => "f32",
            Numbers::F64 | Numbers::Widened => "f64",
            Numbers::Short => "short",
        };
        format!("{}_{ending}", self.limited.filter(|_| limited).unwrap_or(self.kernel))
    }
}

/// What a batch has.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) tiles: u32,
    pub(crate) chunks: u32,
    pub(crate) numbers: Numbers,
}

/// A CTA for every tile.
pub(crate) fn per_tile(batch: Counts) -> u32 {
    batch.tiles
}

/// A CTA for every chunk.
pub(crate) fn per_chunk(batch: Counts) -> u32 {
    batch.chunks
}

/// CTAs that take one tile after the other: more than a device runs at once, few that find none left.
pub(crate) fn persistent(batch: Counts) -> u32 {
    batch.tiles.min(2048)
}

/// A chunk as a codec wants it encoded; device addresses are still missing.
#[derive(Clone, Copy)]
pub(crate) struct ChunkPlan {
    pub(crate) chunk: EncodeChunk,
    /// Bytes of the largest possible frame.
    pub(crate) capacity: usize,
}

impl ChunkPlan {
    /// Whether the chunk's value range is needed first.
    pub(crate) fn range(&self) -> bool {
        self.chunk.bound_kind == BOUND_RANGE || self.chunk.flags & FLAG_RANGE != 0
    }

    /// Whether more than the bound is kept.
    pub(crate) fn limited(&self) -> bool {
        self.chunk.flags & (FLAG_SIGN | FLAG_ZERO | FLAG_RANGE) != 0
    }
}

/// What kernels are told of any chunk under the params' bound, which for a lossless codec is [`Bound::Lossless`].
pub(crate) fn any_chunk(params: &Params, bound: Bound, raw_len: usize) -> EncodeChunk {
    let (bound_kind, value) = match bound.limit() {
        Limit::Absolute(b) => (BOUND_ABSOLUTE, b),
        Limit::OfRange(part) => (BOUND_RANGE, part),
        Limit::OfValue(r) => (BOUND_POINTWISE, r),
    };
    EncodeChunk {
        values: (raw_len / usize::from(params.dtype.size)) as u64,
        fill: params.fill.unwrap_or(0),
        bound: value,
        bound_kind,
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        least: params.dtype.least_positive(),
        flags: swap_flag(params.dtype)
            | if params.fill.is_some() { FLAG_FILL } else { 0 }
            | if bound.mode().takes_keep() { keep_flags(params.request.keep) } else { 0 },
        extents: [1; 3],
        rank: 1,
        tile: [1; 3],
        ..EncodeChunk::ZERO
    }
}

fn keep_flags(keep: Keep) -> u32 {
    let each = [(Keep::SIGN, FLAG_SIGN), (Keep::ZERO, FLAG_ZERO), (Keep::RANGE, FLAG_RANGE)];
    each.into_iter().filter(|(kept, _)| keep.has(*kept)).map(|(_, flag)| flag).sum()
}

/// What kernels are told of any frame.
pub(crate) fn any_frame(frame: &Frame<'_>) -> DecodeChunk {
    let h = &frame.header;
    DecodeChunk {
        values: h.raw_len / u64::from(h.dtype.size),
        frame_len: frame.stored_len(),
        bound: h.used,
        checksum: frame.checksum(),
        flags: swap_flag(h.dtype),
        extents: [1; 3],
        rank: 1,
        mode: h.mode.number().into(),
        tile: [1; 3],
        ..DecodeChunk::ZERO
    }
}

/// What kernels are told of integers that they take as such.
pub(crate) fn integer(dtype: Dtype) -> u32 {
    let (signed, swap) = (u32::from(dtype.signed) * INTEGER_SIGNED, u32::from(dtype.big_endian) * INTEGER_SWAP);
    u32::from(dtype.size) | signed | swap
}

/// The flag for numbers of the other byte order. Devices are little-endian.
fn swap_flag(dtype: Dtype) -> u32 {
    if dtype.big_endian { FLAG_SWAP } else { 0 }
}

const _: () = assert!(HEAD_WORDS == HEADER_FIXED / 4 + MAX_RANK + 2 * frame::MAX_SECTIONS);

/// A frame's first words for a kernel to fill in, and how many they are.
pub(crate) struct Head {
    pub(crate) words: [u32; HEAD_WORDS],
    pub(crate) len: u32,
}

impl Head {
    /// Header and section table, then the bytes `more`. The bound used, the stored length and the last section's length
    /// are given without what the kernels add.
    pub(crate) fn new(
        params: &Params,
        codec: CodecId,
        used: Option<f64>,
        sections: &[u64],
        stored: usize,
        more: &[u8],
    ) -> Head {
        let raw_len = params.extents.count().expect("checked by fits") * u64::from(params.dtype.size);
        let header = chunk::header(params, codec, used, raw_len as usize);
        let mut bytes = frame::head(&header, sections, stored as u64);
        bytes.extend(more);
        let mut words = [0; HEAD_WORDS];
        for (w, b) in words.iter_mut().zip(bytes.as_chunks().0) {
            *w = u32::from_le_bytes(*b);
        }
        Head { words, len: (bytes.len() / 4) as u32 }
    }

    /// Bytes of the words.
    pub(crate) fn bytes(&self) -> usize {
        4 * self.len as usize
    }

    /// Where the length of a section stands among the words: behind the fixed header, the extents and the sections
    /// before.
    pub(crate) fn section_len_at(params: &Params, section: usize) -> u32 {
        (HEADER_FIXED / 4 + params.extents.as_slice().len() + 2 * section) as u32
    }
}
