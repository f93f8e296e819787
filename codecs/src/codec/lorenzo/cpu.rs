// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections and threads: over runs of tiles when encoding, over parts of the chunk when decoding.

use super::decode::{self, Context, Place, Scratch};
use super::encode::{self, ChunkValues, Numbers, Push, Run, Source};
use super::format::{self, Coded, Coding, Tiles};
use crate::bound::{Tolerance, Used};
use crate::codec::chunk::Chunk;
use crate::constants::{LORENZO_SYMBOLS, LORENZO_TILE};
use crate::error::{Damage, Error, Result};
use crate::frame::{self, Frame, Header, Writer};
use crate::params::Mode;
use crate::scalar::{Bits, Scalar};
use crate::simd::vectorize;
use crate::stage::codebook::{self, Lengths};
use crate::stage::huffman::{self, Buffer, Decoder, Encoder, Histogram};
use crate::stage::quantize::{self, NO_BASE};
use crate::stage::tiles::{Grid, Share};
use crate::{memory, parallel};
use std::ops::Range;

/// Encodes a chunk. False: its payload may be too long for the starts.
pub(crate) fn encode<S: Scalar>(
    values: &[S],
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    encode_source(&Numbers(values, |x| x), chunk, used, header, out)
}

/// What the first pass goes by, and the header that says so. `None` where the payload may be too long for starts that
/// count `unit` bytes.
pub(crate) fn start<'a, S: Scalar>(
    values: &'a dyn Source<S>,
    fill: Option<u64>,
    used: Used,
    header: Header,
    unit: u32,
) -> Option<(ChunkValues<'a, S>, Header)> {
    let fill = fill.map(S::Bits::from_u64);
    let grid = Grid::new(header.extents.as_slice(), LORENZO_TILE)?;
    // No tile's payload is longer than its values, or, for a few values, than four units.
    if values.len() * S::SIZE / unit as usize + 4 * grid.tiles() > u32::MAX as usize {
        return None;
    }
    let (base, tolerance) = match used.tolerance {
        Tolerance::Absolute(bound) => {
            let (base, bound) = match &used.guard {
                Some(guard) => quantize::guarded_base(values.len(), |i| values.at(i), fill, bound, guard),
                None => quantize::base(values.len(), |i| values.at(i), fill, bound),
            };
            (base, Tolerance::Absolute(bound))
        }
        pointwise => (NO_BASE, pointwise),
    };
    let used = Used { tolerance, ..used };
    let header = if header.mode == Mode::Lossless { header } else { Header { used: used.value(), ..header } };
    Some((ChunkValues { values, grid, used, base, fill }, header))
}

/// The first pass over all tiles: how many there are in a run, and the runs. `new` is a run before its tiles.
pub(crate) fn first_pass<S: Scalar, R: Push<S> + Send>(
    plan: &ChunkValues<'_, S>,
    threads: usize,
    new: impl Fn(Range<usize>) -> Result<R> + Sync,
) -> Result<(usize, Vec<R>)> {
    let tiles = plan.grid.tiles();
    let per_run = parallel::run_length(tiles, threads);
    let runs = parallel::try_map(tiles.div_ceil(per_run), threads, |i| {
        vectorize(
            #[inline(always)]
            || {
                let tiles = i * per_run..tiles.min((i + 1) * per_run);
                encode::plan(plan, tiles.clone(), new(tiles)?)
            },
        )
    })?;
    Ok((per_run, runs))
}

/// Runs of tiles after the first pass, and the lengths of one codebook for all tiles.
fn first_passes<S: Scalar>(plan: &ChunkValues<'_, S>, threads: usize) -> Result<(Vec<Run>, Lengths)> {
    let (_, planned) = first_pass(plan, threads, |tiles| Run::new(tiles.start, tiles.end))?;
    let mut histogram = Histogram::new();
    planned.iter().for_each(|run| histogram.merge(&run.histogram));
    Ok((planned, codebook::choose_codebook(&histogram.counts())))
}

/// As [`encode`], of what need not be values of its own type. Of the chunk fill value and threads count.
pub(crate) fn encode_source<S: Scalar>(
    values: &dyn Source<S>,
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let Some((plan, header)) = start(values, chunk.params.fill, used, header, Huffman::UNIT) else {
        return Ok(false);
    };
    let (planned, lengths) = first_passes(&plan, chunk.threads)?;
    let encoder = Encoder::new(&lengths);
    // For each run the payloads' lengths, the kinds, and the payloads.
    let coded = parallel::try_map(planned.len(), chunk.threads, |i| {
        let (mut kinds, mut payload) = (Vec::new(), Vec::new());
        let lens = vectorize(
            #[inline(always)]
            || encode::write(&plan, &planned[i], &encoder, &mut kinds, &mut payload),
        )?;
        Ok((lens, kinds, payload))
    })?;
    let mut writer = Writer::new(out, header, 4)?;
    writer.section(|o| {
        memory::reserve(o, 1 + LORENZO_SYMBOLS)?;
        format::write_codebook(&lengths, o);
        format::write_base(S::from_f64(plan.base), o);
        Ok(())
    })?;
    writer.section(|o| coded.iter().try_for_each(|(_, kinds, _)| memory::append(o, kinds)))?;
    writer
        .section(|o| format::write_lengths(coded.iter().flat_map(|(lens, ..)| lens).copied(), plan.grid.tiles(), o))?;
    writer.section(|o| {
        memory::reserve(o, coded.iter().map(|(.., payload)| payload.len()).sum())?;
        coded.iter().try_for_each(|(.., payload)| memory::append(o, payload))
    })?;
    writer.seal(chunk.threads);
    Ok(true)
}

/// Length of the frame that [`encode`] makes of a chunk, which takes a third less time. `None`: of none.
pub(super) fn frame_len<S: Scalar>(chunk: &Chunk<'_>, used: Used, header: Header) -> Result<Option<usize>> {
    source_len(&Numbers(&chunk.values::<S>()?, |x| x), chunk, used, header)
}

/// The same of [`encode_source`].
pub(crate) fn source_len<S: Scalar>(
    values: &dyn Source<S>,
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
) -> Result<Option<usize>> {
    let rank = header.extents.as_slice().len();
    let Some((plan, _)) = start(values, chunk.params.fill, used, header, Huffman::UNIT) else { return Ok(None) };
    let (planned, lengths) = first_passes(&plan, chunk.threads)?;
    let mut head = Vec::new();
    format::write_codebook(&lengths, &mut head);
    format::write_base(S::from_f64(plan.base), &mut head);
    let payload = vectorize(
        #[inline(always)]
        || planned.iter().map(|run| run.payload_len(&plan.grid, &lengths, S::SIZE)).sum(),
    );
    let tiles = plan.grid.tiles();
    Ok(Some(frame::frame_len(rank, &[head.len(), tiles, format::lengths_len(tiles).iter().sum(), payload])))
}

/// Huffman codewords for residuals, runs of zeros among them.
pub(super) struct Huffman(Decoder);

/// Memory for residuals, and for what stands beside a table's entries.
pub(super) struct Buffers(Box<[Buffer; 2]>);

impl AsMut<[i32]> for Buffers {
    fn as_mut(&mut self) -> &mut [i32] {
        &mut self.0[0]
    }
}

impl Coding for Huffman {
    const SECTIONS: [&'static str; 4] = ["lorenzo head", "lorenzo kinds", "lorenzo lengths", "lorenzo payload"];
    const UNIT: u32 = 4;
    const FILTERED: bool = false;
    type Scratch = Buffers;

    fn head_len(head: &[u8]) -> usize {
        format::codebook_len(head)
    }

    fn read(head: &[u8]) -> Result<Self> {
        Ok(Huffman(Decoder::new(&format::read_codebook(head)?)?))
    }

    fn scratch() -> Result<Buffers> {
        huffman::buffers().map(Buffers)
    }

    #[inline(always)]
    fn residuals(
        &self,
        _: &Coded<'_>,
        bytes: &[u8],
        len: usize,
        extents: [usize; 3],
        scratch: &mut Buffers,
    ) -> Result<(), Damage> {
        self.0.decode(bytes, len / 4, extents.iter().product(), &mut scratch.0)
    }
}

/// What a frame says before its first tile, all checked.
fn open<'a, S: Scalar, C: Coding>(frame: &Frame<'a>) -> Result<(Grid, Tiles<'a>, Context<C>)> {
    let h = &frame.header;
    let log = h.mode == Mode::PointwiseRelative;
    let grid = Grid::new(h.extents.as_slice(), LORENZO_TILE)
        .ok_or_else(|| Error::corrupt("header", format!("extents {:?}", h.extents.as_slice())))?;
    let [head, kinds, lengths, payload] = frame.sections()?;
    let (coding, base) = format::read_head::<S, C>(head, log)?;
    let tiles = Tiles::new::<C>([kinds, lengths, payload], grid.tiles(), log)?;
    Ok((grid, tiles, Context::new::<S>(coding, log, h.used, base)))
}

/// Whether a tile could be decoded.
type Decoded = std::result::Result<(), Damage>;

/// Decodes a frame into `out`.
pub(super) fn decode<S: Scalar>(frame: &Frame<'_>, threads: usize, out: &mut [S]) -> Result<()> {
    decode_by::<S, Huffman>(frame, threads, out)
}

/// The same of a frame with another coding.
pub(crate) fn decode_by<S: Scalar, C: Coding>(frame: &Frame<'_>, threads: usize, out: &mut [S]) -> Result<()> {
    each_tile::<S, S, C>(frame, threads, out, 0, |coded, context, scratch, _, place| {
        decode::tile(coded, context, scratch, place)
    })
}

/// The same into numbers of another type: `to` makes a row of them of a row of values.
pub(super) fn decode_into<S: Scalar, N: Copy + Send>(
    frame: &Frame<'_>,
    threads: usize,
    out: &mut [N],
    to: impl Fn(&mut [N], &[S]) + Sync,
) -> Result<()> {
    each_tile::<S, N, Huffman>(frame, threads, out, LORENZO_TILE, |coded, context, scratch, own, mut place| {
        let alone = Grid::with_sides(place.tile.extents, place.tile.extents);
        let values = &mut own[..place.tile.len()];
        let share = &mut Share::of_all(values);
        decode::tile(coded, context, scratch, Place { grid: &alone, tile: alone.tile(0), share })?;
        vectorize(
            #[inline(always)]
            || {
                place.rows(
                    #[inline(always)]
                    |at, row| to(row, &values[at..at + row.len()]),
                );
            },
        );
        Ok(())
    })
}

/// Gives `decode` each tile that is wanted, with memory for `own` values, and its place in the thread's part of `out`.
fn each_tile<S: Scalar, N: Send, C: Coding>(
    frame: &Frame<'_>,
    threads: usize,
    out: &mut [N],
    own: usize,
    decode: impl Fn(&Coded<'_>, &Context<C>, &mut Scratch<C>, &mut [S], Place<'_, '_, N>) -> Decoded + Sync,
) -> Result<()> {
    if frame.elements(S::SIZE)? != out.len() {
        let (needed, got) = (frame.header.raw_len, (out.len() * S::SIZE) as u64);
        return Err(Error::Length { section: "the caller's buffer", needed, got });
    }
    let (grid, tiles, context) = open::<S, C>(frame)?;
    let (shares, part) = (grid.share(out, threads)?, frame.wanted_in(grid.extents()));
    parallel::try_each(shares.len(), shares.into_iter(), threads, |_, mut share| {
        let (mut scratch, mut own) = (Scratch::<C>::new()?, memory::zeros(own)?);
        for tile in grid.tiles_of(&share).filter(|&tile| grid.touches(tile, part.as_ref())) {
            let place = Place { grid: &grid, tile: grid.tile(tile), share: &mut share };
            let corrupt = |why| Error::corrupt(C::SECTIONS[3], format!("tile {tile}: {why}"));
            let coded = tiles.tile(tile).map_err(corrupt)?;
            scratch.reserve(coded.kind, place.tile.len())?;
            decode(&coded, &context, &mut scratch, &mut own, place).map_err(corrupt)?;
        }
        Ok(())
    })
}

/// A frame's residuals, tile by tile, 0 for tiles without: what decoders on other devices are compared with.
#[cfg(feature = "testing")]
pub fn residuals<S: Scalar>(frame: &Frame<'_>) -> Result<Vec<i32>> {
    let n = frame.elements(S::SIZE)?;
    let (grid, tiles, context) = open::<S, Huffman>(frame)?;
    let mut scratch = Scratch::new()?;
    let mut all = Vec::with_capacity(n);
    for tile in 0..grid.tiles() {
        let extents = grid.tile(tile).extents;
        let coded = tiles.tile(tile).map_err(|why| Error::corrupt("lorenzo payload", why))?;
        let residuals = decode::tile_residuals::<S, Huffman>(&coded, &context, &mut scratch, extents);
        all.extend_from_slice(residuals.map_err(|why| Error::corrupt("lorenzo payload", why))?);
    }
    Ok(all)
}
