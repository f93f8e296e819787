// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value range of a device array, by the kernel that finds the range of a chunk.

use super::base::{batch, device_and_stream, in_place};
use super::by_host::ByHost;
use super::copies::{Copies, Side};
use crate::array::boxes::{Array, dense};
use crate::array::range::{self as on_host, ArrayBoxes, wider};
use crate::cuda::{ALIGN, Buffer, Described, Device, Failure, OwnStream, UserStream};
use crate::engine::gpu::group::offsets;
use crate::engine::gpu::plan::any_chunk;
use crate::host::log;
use codecs::constants::{SZX_BLOCK, SZX_TILE_BLOCKS};
use codecs::error::{Error, Result};
use codecs::memory;
use codecs::params::{Bound, Codec, Params, Request};
use kernels::abi::{ChunkState, EncodeArgs, EncodeChunk};

/// Values of a tile: one CTA's work.
const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;

/// See `array::range`, whose arguments were checked.
pub(crate) fn range(boxes: &ArrayBoxes<'_>) -> Result<Option<(f64, f64)>> {
    let (device, user) = device_and_stream(boxes.array)?;
    let _current = device.enter()?;
    match on_device(device, user, boxes) {
        Err(Error::NoDeviceMemory { what }) => {
            log::info(&format!("a range is found by the host: {what}"));
            by_host(device, user, boxes)
        }
        found => found,
    }
}

/// The same without memory of the device, a box at a time.
fn by_host(device: &'static Device, user: UserStream, boxes: &ArrayBoxes<'_>) -> Result<Option<(f64, f64)>> {
    let &ArrayBoxes { array, chunk, origins, .. } = boxes;
    let mut host = ByHost::new(device, user, array)?;
    let mut found = None;
    for origin in origins.chunks(chunk.len()) {
        let Some(inside) = array.overlap(origin, chunk) else { continue };
        let (start, extents) = inside.in_array();
        let Some(whole) = array.overlap(&start, &extents) else { continue };
        let mut raw = memory::zeros::<u8>(extents.iter().product::<u64>() as usize * array.element())?;
        host.fetch(&whole, &extents, &mut raw)?;
        // SAFETY: dense memory of these extents, which outlives the call.
        #[allow(unsafe_code)]
        let there = unsafe { Array::new(raw.as_mut_ptr(), array.element(), &extents, None)? };
        let origins = vec![0; extents.len()];
        let here = ArrayBoxes { array: &there, chunk: &extents, origins: &origins, ..*boxes };
        found = wider(found, on_host::range(&here, 1)?);
    }
    Ok(found)
}

fn on_device(device: &'static Device, user: UserStream, boxes: &ArrayBoxes<'_>) -> Result<Option<(f64, f64)>> {
    let mut stream = device.own_stream()?;
    stream.follow(user)?;
    // Zeros count: without a fill value the one that is left out is a NaN, which never counts.
    let bound = Request::new(Codec::Szx, Bound::Absolute(1.0));
    let params = Params { fill: Some(boxes.fill.unwrap_or(u64::MAX)), ..Params::new(bound, boxes.dtype, &[1])? };
    let raw_len = boxes.chunk.iter().product::<u64>() as usize * boxes.array.element();
    let all: Vec<&[i64]> = boxes.origins.chunks(boxes.chunk.len()).collect();
    let mut found: Option<(f64, f64)> = None;
    for some in all.chunks(batch(all.len(), raw_len, 1)) {
        found = wider(found, of_boxes(device, &mut stream, boxes, &params, some, raw_len)?);
    }
    Ok(found)
}

fn of_boxes(
    device: &'static Device,
    stream: &mut OwnStream,
    &ArrayBoxes { array, chunk, .. }: &ArrayBoxes<'_>,
    params: &Params,
    origins: &[&[i64]],
    raw_len: usize,
) -> Result<Option<(f64, f64)>> {
    let step = raw_len.next_multiple_of(ALIGN);
    let input = stream.reserve(Buffer::Input, origins.len() * step)?;
    let (mut boxes, mut chunks) = (Copies::default(), Vec::new());
    for (i, origin) in origins.iter().enumerate() {
        let Some(inside) = array.overlap(origin, chunk) else { continue };
        // A box of what lies in the array alone: padding would be values.
        let (start, extents) = inside.in_array();
        let Some(whole) = array.overlap(&start, &extents) else { continue };
        let slot = input + (i * step) as u64;
        let here = in_place(array, &whole, &extents);
        if here.is_none() {
            let (at, steps) = array.place_of(&whole);
            let to = dense(&extents, array.element());
            boxes.add(Side { at, steps }, Side { at: slot, steps: &to }, &extents, array.element())?;
        }
        chunks.push((here.unwrap_or(slot), extents.iter().product::<u64>() as usize));
    }
    let found = ranges(device, stream, &boxes, params, &chunks)?;
    Ok(found.into_iter().fold(None, wider))
}

/// The range of each dense chunk: its address, and its values. `boxes` are copied before.
pub(super) fn ranges(
    device: &'static Device,
    stream: &mut OwnStream,
    boxes: &Copies,
    params: &Params,
    chunks: &[(u64, usize)],
) -> Result<Vec<Option<(f64, f64)>>> {
    if chunks.is_empty() {
        return Ok(Vec::new());
    }
    let size = usize::from(params.dtype.size);
    let (mut list, mut tiles) = (Vec::new(), 0u32);
    for &(input, values) in chunks {
        let any = any_chunk(params, params.request.bound, values * size);
        let here = EncodeChunk { input, first_tile: tiles, tiles: values.div_ceil(TILE) as u32, ..any };
        tiles = tiles.checked_add(here.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        list.push(here);
    }
    let (described, states) = (EncodeChunk::bytes(&list), list.len() * size_of::<ChunkState>());
    let parts = offsets([states, described.len()]);
    let work = stream.reserve(Buffer::Work, parts[2])?;
    stream.put(Buffer::Work, parts[1], described)?;
    stream.zero(Buffer::Work, 0, states)?;
    let args = EncodeArgs {
        chunks: work + parts[1] as u64,
        states: work,
        chunk_count: list.len() as u32,
        tiles,
        ..EncodeArgs::ZERO
    };
    let kernel = device.kernel(if size == 8 { "szx_range_f64" } else { "szx_range_f32" })?;
    // SAFETY: boxes of a user's array, whose owner promised that it can be read, and slots of the stream's own; the
    // kernel reads the chunks' values and writes their states.
    #[allow(unsafe_code)]
    unsafe {
        boxes.start(device, stream)?;
        stream.launch(kernel, tiles, &args)?;
    }
    let states = stream.get(Buffer::Work, 0, states)?;
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let ends = states.chunks_exact(size_of::<ChunkState>()).map(|s| (number(&s[..8]), !number(&s[8..16])));
    // 0: the chunk has no such value. Zeros of either sign are equal: which of them comes first must not matter.
    let range = |(high, low): (u64, u64)| (high != 0).then(|| (unordered(low) + 0.0, unordered(high) + 0.0));
    Ok(ends.map(range).collect())
}

/// The number of an integer of the same order, as the kernels make them.
fn unordered(k: u64) -> f64 {
    f64::from_bits(if k >> 63 == 1 { k & !(1 << 63) } else { !k })
}
