// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections and threads: over runs of tiles when encoding, over parts of the chunk when decoding.

use super::components;
use super::decode::{self, Context};
use super::encode::{self, TileRule};
use super::format;
use super::quantize::{Quantizer, fill_of};
use super::shape::Shape;
use super::types::{Held, Value};
use super::unit::{self, Run, Unit};
use crate::bound::Used;
use crate::codec::chunk::Chunk;
use crate::codec::runs;
use crate::error::{Error, Result};
use crate::frame::{Frame, Header};
use crate::params::{Class, Mode};
use crate::part::Part;
use crate::stage::ends::Ends;
use crate::stage::tiles::Share;
use crate::{memory, parallel};
use std::ops::Range;

/// The table of ends, in messages.
const TABLE: &str = "planes table";

/// Encodes a chunk under a bound. False: its payload may be too long for the table.
pub(super) fn encode_lossy<S: Value>(
    values: &[S],
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let fill = fill_of(chunk.params).map(|bits| bits..=bits);
    encode(values, Quantizer::new(used, fill), chunk, header, out)
}

/// Encodes a chunk as the quantizer says, bit for bit without one. False as in [`encode_lossy`].
pub(super) fn encode<S: Value, E: Held<S>>(
    values: &[E],
    quantizer: Option<Quantizer<S>>,
    chunk: &Chunk<'_>,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let threads = chunk.threads;
    let Some(shape) = Shape::for_extents(header.extents.as_slice()) else { return Ok(false) };
    let tiles = shape.grid.tiles();
    // No tile's payload has more than a head before its values.
    if values.len() / 4 * S::SIZE + tiles > u32::MAX as usize {
        return Ok(false);
    }
    let apart;
    let values = match shape.components {
        1 => values,
        c => {
            apart = components::apart(values, c, threads)?;
            &apart
        }
    };
    let fill = fill_of(chunk.params).map(|bits| E::of_bits(bits).widen().to_wide());
    let plan = TileRule { shape, quantizer, float: header.dtype.class == Class::Float, fill };
    let scratch = || encode::Scratch::new();
    let code = |tiles, scratch: &mut _, out: &mut Vec<u8>| {
        unit::dispatch(EncodeRun { values, plan: &plan, tiles, scratch, out })
    };
    runs::write_frame(header, tiles, threads, out, scratch, code)?;
    Ok(true)
}

/// Consecutive tiles, whose payloads are appended, and whose lengths in words are returned.
struct EncodeRun<'a, S: Value, E> {
    values: &'a [E],
    plan: &'a TileRule<S>,
    tiles: Range<usize>,
    scratch: &'a mut encode::Scratch<S>,
    out: &'a mut Vec<u8>,
}

impl<S: Value, E: Held<S>> Run for EncodeRun<'_, S, E> {
    type Output = Result<Vec<u32>>;

    fn run(self, unit: impl Unit) -> Self::Output {
        let EncodeRun { values, plan, tiles, scratch, out } = self;
        let mut lens = memory::with_capacity(tiles.len())?;
        for k in tiles {
            let (start, tile) = (out.len(), plan.shape.grid.tile(k));
            plan.shape.gather(values, &tile, &mut scratch.x);
            encode::tile(plan, &tile, unit, scratch, out)?;
            lens.push(((out.len() - start) / 4) as u32);
        }
        Ok(lens)
    }
}

/// Decodes a frame into `out`.
pub(super) fn decode<S: Value, E: Held<S>>(frame: &Frame<'_>, threads: usize, out: &mut [E]) -> Result<()> {
    let h = &frame.header;
    if frame.elements(size_of::<E>())? != out.len() {
        let (needed, got) = (h.raw_len, size_of_val(out) as u64);
        return Err(Error::Length { section: "the caller's buffer", needed, got });
    }
    let shape = Shape::for_extents(h.extents.as_slice())
        .ok_or_else(|| Error::corrupt("header", format!("extents {:?}", h.extents.as_slice())))?;
    let [table, payload] = frame.sections()?;
    let ends = Ends::new(TABLE, table, payload, shape.grid.tiles())?;
    let step = if h.mode == Mode::Lossless { None } else { format::step(h.used) };
    let context = Context { shape, step, float: h.dtype.class == Class::Float };
    if shape.components == 1 {
        let part = frame.wanted_in(shape.grid.extents());
        return decode_array(&ends, &context, part.as_ref(), threads, out);
    }
    let mut seen = memory::zeros(out.len())?;
    decode_array(&ends, &context, None, threads, &mut seen)?;
    components::together(&seen, shape.components, threads, out)
}

/// Decodes the tiles that are wanted into the array that was cut into them.
fn decode_array<S: Value, E: Held<S>>(
    ends: &Ends<'_>,
    context: &Context<S>,
    part: Option<&Part>,
    threads: usize,
    out: &mut [E],
) -> Result<()> {
    let shares = context.shape.grid.share(out, threads)?;
    parallel::try_each(shares.len(), shares.into_iter(), threads, |_, share| {
        unit::dispatch(DecodeShare { ends, context, part, share })
    })
}

struct DecodeShare<'a, 'b, S, E> {
    ends: &'a Ends<'a>,
    context: &'a Context<S>,
    part: Option<&'a Part>,
    share: Share<'b, E>,
}

impl<S: Value, E: Held<S>> Run for DecodeShare<'_, '_, S, E> {
    type Output = Result<()>;

    fn run(self, unit: impl Unit) -> Self::Output {
        let DecodeShare { ends, context, part, mut share } = self;
        let mut scratch = decode::Scratch::new()?;
        let grid = &context.shape.grid;
        for k in grid.tiles_of(&share).filter(|&k| grid.touches(k, part)) {
            let (bytes, len) = ends.tile(k);
            let words = bytes[..len].as_chunks().0;
            decode::tile(words, context, &grid.tile(k), unit, &mut scratch, &mut share)
                .map_err(|why| Error::corrupt("planes payload", format!("tile {k}: {why}")))?;
        }
        Ok(())
    }
}
