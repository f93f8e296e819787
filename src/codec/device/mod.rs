// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches on the GPU: what the rooms have in common there.
//!
//! Chunks of one room and element size become one launch, however many and of whatever sizes. The kernels leave
//! complete frames on the device; lengths come back first, then the frames. A frame that a kernel does not find right
//! goes to the CPU, which names what is wrong with it.

mod decode;
mod encode;
pub(crate) mod timing;

pub(crate) use decode::decode;
pub(crate) use encode::encode;

use super::{LORENZO, NDZIP, SZX};
use crate::engine::Limits;
use crate::frame;
use crate::gpu::abi::{DecodeChunk, EncodeChunk, FLAG_SWAP};
pub(crate) use crate::gpu::copy;
use crate::gpu::{ALIGN, Buffer, Device, Failure, Kernel, Lane};
use crate::params::{Bound, Dtype, Params};

/// Every kernel; each exists for 4- and 8-byte numbers.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) const KERNELS: &[&str] = &[
    "szx_range",
    "szx_encode",
    "szx_decode",
    "ndzip_encode",
    "ndzip_decode",
    "lorenzo_encode_range",
    "lorenzo_encode_plan",
    "lorenzo_encode_interpolate",
    "lorenzo_encode_codebook",
    "lorenzo_encode_write",
    "lorenzo_decode_book",
    "lorenzo_decode",
    "lorenzo_decode_coarse",
    "lorenzo_decode_sync",
    "lorenzo_decode_gap",
];

/// Raw bytes of one launch: enough to fill a device, so little that groups overlap.
const GROUP: usize = 64 << 20;
/// Groups on their way at the same time: one uploads, one computes, one downloads.
const GROUPS_AT_ONCE: usize = 3;
/// Chunks above this many raw bytes are the CPU's: tiles are counted in 32 bits and memory is the host's too.
const MOST: usize = 2 << 30;
/// What rooms leave out of a frame's description.
pub(crate) const NO_FRAME: DecodeChunk = DecodeChunk {
    frame: 0,
    output: 0,
    values: 0,
    frame_len: 0,
    payload_at: 0,
    payload_len: 0,
    bound: 0.0,
    checksum: 0,
    step: 0.0,
    fine: 0.0,
    distance: 0,
    first_tile: 0,
    tiles: 0,
    table_at: 0,
    flags: 0,
    extents: [1; 3],
    rank: 1,
    mode: 0,
    table_words: 0,
    table_len: 0,
    kinds_at: 0,
    ends_at: 0,
    tile: [1; 3],
};

/// A chunk as a room wants it encoded; device addresses are still missing.
pub(crate) struct Encoding {
    pub(crate) kernels: Kernels,
    pub(crate) chunk: EncodeChunk,
    /// Bytes of the largest possible frame.
    pub(crate) capacity: usize,
}

/// A frame as a room wants it decoded; device addresses are still missing.
pub(crate) struct Decoding {
    pub(crate) kernels: Kernels,
    pub(crate) chunk: DecodeChunk,
}

/// Which kernels a chunk needs. Chunks of a launch have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernels {
    pub(crate) codec: u8,
    pub(crate) wide: bool,
    /// The chunk's value range is needed first.
    pub(crate) range: bool,
}

impl Kernels {
    fn find(self, device: &Device, step: &str) -> Result<Kernel, Failure> {
        let stem = match self.codec {
            SZX => "szx",
            LORENZO => "lorenzo",
            _ => "ndzip",
        };
        let scalar = if self.wide { "f64" } else { "f32" };
        device.kernel(&format!("{stem}_{step}_{scalar}"))
    }
}

/// Cuts a batch into groups for one launch each: same kernels, and about [`GROUP`] raw bytes. The batch is indices,
/// kernels and raw bytes; a codec below its limit is left out.
fn groups(batch: &[(usize, Kernels, usize)], limits: Limits) -> Vec<Vec<usize>> {
    let bytes_of = |codec| batch.iter().filter(|b| b.1.codec == codec).map(|b| b.2).sum::<usize>();
    let enough = [SZX, LORENZO, NDZIP].map(|codec| (codec, bytes_of(codec) >= limits.of(codec)));
    let mut open: Vec<(Kernels, usize, Vec<usize>)> = Vec::new();
    let mut full = Vec::new();
    for &(index, kernels, bytes) in batch.iter().filter(|b| enough.contains(&(b.1.codec, true))) {
        let at = open.iter().position(|g| g.0 == kernels).unwrap_or_else(|| {
            open.push((kernels, 0, Vec::new()));
            open.len() - 1
        });
        let (_, size, members) = &mut open[at];
        if *size > 0 && *size + bytes > GROUP {
            full.push(std::mem::take(members));
            *size = 0;
        }
        *size += bytes;
        members.push(index);
    }
    full.extend(open.into_iter().map(|g| g.2));
    full
}

fn numbers(lane: &mut Lane, at: usize, count: u32) -> Result<Vec<u64>, Failure> {
    let bytes = lane.get(Buffer::Work, at, 8 * count as usize)?;
    Ok(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}

/// Where parts of these lengths start, each aligned, and where the last one ends.
fn offsets(lens: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut at = 0;
    let mut all: Vec<usize> = lens
        .into_iter()
        .map(|len| {
            let start = at;
            at = (at + len.max(1)).next_multiple_of(ALIGN);
            start
        })
        .collect();
    all.push(at);
    all
}

/// The flag for numbers of the other byte order. Devices are little-endian.
pub(super) fn foreign_flag(dtype: Dtype) -> u32 {
    if dtype.big_endian { FLAG_SWAP } else { 0 }
}

/// The header as words for a kernel to fill in: `used`, the stored length and the last section's length are given
/// without what the payload adds.
pub(super) fn head_words(
    params: &Params,
    codec: u8,
    used: f64,
    sections: &[u64],
    stored: usize,
    more: &[u8],
) -> ([u32; 38], u32) {
    let lossy = matches!(codec, SZX | LORENZO);
    let header = frame::Header {
        codec,
        bound: if lossy { params.ask.bound } else { Bound::Lossless },
        used,
        dtype: params.dtype,
        extents: params.extents,
        raw_len: params.extents.count().expect("checked by fits") * u64::from(params.dtype.size),
    };
    let mut bytes = frame::head(&header, sections, stored as u64);
    bytes.extend(more);
    let mut words = [0; 38];
    for (w, b) in words.iter_mut().zip(bytes.as_chunks().0) {
        *w = u32::from_le_bytes(*b);
    }
    (words, (bytes.len() / 4) as u32)
}
