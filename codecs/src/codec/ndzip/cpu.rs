// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec on the CPU: cube after cube, threads over runs of cubes. FORMAT.md §4; ndzip (Knorr, Thoman & Fahringer,
//! DCC 2021, doi:10.1109/DCC50243.2021.00018).
//!
//! ```text
//! array      cut into cubes of 4096 values; what is outside of whole cubes is the border
//! for each cube (cube.rs)
//!     rotate       the sign of floats becomes the lowest bit
//!     difference   along every axis, as integers
//!     planes       of each column of 32 or 64 differences, turned; those that are zero are dropped
//! stream     a table of where each cube ends, the cubes one behind the other, the border as it is
//! ```
//!
//! When encoding, a thread takes a run of cubes and appends its stream when its turn comes; when decoding, the table
//! lets every thread begin anywhere.

use super::cube::{self, Cube, Word};
use super::format::{self, Grid, Stream};
use crate::constants::{NDZIP_CUBE, NDZIP_SIDE_1, NDZIP_SIDE_2, NDZIP_SIDE_3};
use crate::error::{Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::params::{Class, Dtype, Mode};
use crate::simd::vectorize;
use crate::{memory, parallel};
use std::ops::Range;

/// Neighbours along the last axis that are read and written together: a cube's own rows are as short as one cache line.
const GROUP: usize = 8;

/// Cubes that a thread takes at a time: their stream stays in its cache until its turn to append it comes.
const CUBES_PER_RUN: usize = 32;

/// Encodes one chunk. False: it is too large for the stream's 32-bit offsets.
///
/// `values` has as many words as the header's extents say.
pub(crate) fn encode<W: Word>(values: &[W], header: Header, threads: usize, out: &mut Vec<u8>) -> Result<bool> {
    let Some(grid) = Grid::for_extents(header.extents.as_slice()) else { return Ok(false) };
    let Some(longest) = format::max_len(&grid, W::BYTES) else { return Ok(false) };
    let float = header.dtype.class == Class::Float;
    let mut w = Writer::new(out, header, 2)?;
    w.section(|o| {
        memory::reserve(o, format::GRID_MOST)?;
        grid.write(o);
        Ok(())
    })?;
    w.section(|o| {
        // A stream that grows beyond this will not be kept.
        memory::reserve(o, longest.min(size_of_val(values) + size_of_val(values) / 16))?;
        write_stream(values, &grid, float, threads, o)
    })?;
    w.seal(threads);
    Ok(true)
}

/// Decodes one chunk into `out`.
pub(crate) fn decode<W: Word>(frame: &Frame<'_>, threads: usize, out: &mut [W]) -> Result<()> {
    let dtype: Dtype = frame.header.dtype;
    if dtype.class == Class::Bytes || frame.header.mode != Mode::Lossless {
        let why = format!("ndzip with mode {} and type {dtype:?}", frame.header.mode.number());
        return Err(Error::corrupt("header", why));
    }
    let [grid, stream] = frame.sections()?;
    let grid = Grid::read(grid, frame.elements(W::BYTES)?)?;
    let stream = Stream::open(stream, &grid, W::BYTES)?;
    read_stream(&stream, &grid, dtype.class == Class::Float, threads, out)
}

/// Working memory of one thread.
struct Scratch<W> {
    values: Vec<Cube<W>>,
    rows: Box<Cube<W>>,
    /// A cube's words, and one column more so that a column is always a window of whole length.
    words: Vec<W>,
}

impl<W: Word> Scratch<W> {
    fn new() -> Result<Self> {
        let rows = memory::zeros(NDZIP_CUBE)?.into_boxed_slice().try_into().expect("a cube's values");
        let words = memory::zeros(W::COLUMNS + NDZIP_CUBE + W::BITS)?;
        Ok(Scratch { values: memory::zeros(GROUP)?, rows, words })
    }
}

/// Appends the stream of `values` in this grid: table, cubes, border.
pub(super) fn write_stream<W: Word>(
    values: &[W],
    grid: &Grid,
    float: bool,
    threads: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let cubes = grid.cubes();
    let table = out.len();
    memory::reserve(out, format::table_len(cubes, W::BYTES))?;
    out.resize(table + format::table_len(cubes, W::BYTES), 0);
    let mut end = 0;
    let mut entry = table;
    let mut place = |lens: &[u32], out: &mut Vec<u8>| {
        for len in lens {
            // Below 2^32: format::max_len was asked.
            end += len;
            out[entry..entry + 4].copy_from_slice(&u32::to_le_bytes(end));
            entry += 4;
        }
    };
    let threads = threads.min(cubes / CUBES_PER_RUN).max(1);
    if threads == 1 {
        let lens = encode_run(values, grid, float, 0..cubes, &mut Scratch::new()?, out)?;
        place(&lens, out);
    } else {
        parallel::map_in_order(
            cubes.div_ceil(CUBES_PER_RUN),
            threads,
            || Ok((Scratch::new()?, Vec::new(), Vec::new())),
            |r, (scratch, bytes, lens)| {
                let run = r * CUBES_PER_RUN..cubes.min((r + 1) * CUBES_PER_RUN);
                bytes.clear();
                *lens = encode_run(values, grid, float, run, scratch, bytes)?;
                Ok(())
            },
            |_, (_, bytes, lens)| {
                memory::append(out, bytes)?;
                place(lens, out);
                Ok(())
            },
        )?;
    }
    for run in grid.border() {
        append(&values[run], out)?;
    }
    Ok(())
}

/// Appends words to the stream.
#[inline(always)]
fn append<W: Word>(words: &[W], out: &mut Vec<u8>) -> Result<()> {
    memory::reserve(out, size_of_val(words))?;
    if cfg!(target_endian = "little") {
        out.extend_from_slice(bytemuck::cast_slice(words));
    } else {
        words.iter().for_each(|w| out.extend_from_slice(bytemuck::bytes_of(&(*w).le())));
    }
    Ok(())
}

/// Appends a run of cubes to `out` and returns each one's words.
fn encode_run<W: Word>(
    values: &[W],
    grid: &Grid,
    float: bool,
    run: Range<usize>,
    scratch: &mut Scratch<W>,
    out: &mut Vec<u8>,
) -> Result<Vec<u32>> {
    let mut lens = memory::with_capacity(run.len())?;
    let line = grid.counts()[2];
    let mut at = run.start;
    while at < run.end {
        let group = at..run.end.min(at + GROUP).min((at / line + 1) * line);
        at = group.end;
        vectorize(
            #[inline(always)]
            || encode_group(values, grid, float, group, scratch, out, &mut lens),
        )?;
    }
    Ok(lens)
}

/// Appends the cubes of a group to `out` and their words to `lens`.
#[inline(always)]
fn encode_group<W: Word>(
    values: &[W],
    grid: &Grid,
    float: bool,
    group: Range<usize>,
    s: &mut Scratch<W>,
    out: &mut Vec<u8>,
    lens: &mut Vec<u32>,
) -> Result<()> {
    match grid.rank() {
        1 => gather::<W, NDZIP_SIDE_1>(values, grid, &group, &mut s.values),
        2 => gather::<W, NDZIP_SIDE_2>(values, grid, &group, &mut s.values),
        _ => gather::<W, NDZIP_SIDE_3>(values, grid, &group, &mut s.values),
    }
    for cube in &mut s.values[..group.len()] {
        cube::forward(cube, &mut s.rows, grid.rank(), float);
        let mut words = W::COLUMNS;
        if cube::heads(&s.rows, &mut s.words[..W::COLUMNS]) {
            cube::transpose(&mut s.rows);
            words = cube::compact(&s.rows, &mut s.words);
        }
        append(&s.words[..words], out)?;
        lens.push(words as u32);
    }
    Ok(())
}

/// Copies the rows, `SIDE` words each, of a group of cubes out of the array.
#[inline(always)]
fn gather<W: Word, const SIDE: usize>(values: &[W], grid: &Grid, group: &Range<usize>, cubes: &mut [Cube<W>]) {
    let (origin, [_, rows, row], [_, side_y, _]) = (grid.origin(group.start), grid.dims(), grid.sides());
    for k in 0..NDZIP_CUBE / SIDE {
        let at = origin + (k / side_y * rows + k % side_y) * row;
        let line = values[at..at + group.len() * SIDE].as_chunks::<SIDE>().0;
        for (cube, from) in cubes.iter_mut().zip(line) {
            cube.as_chunks_mut::<SIDE>().0[k] = *from;
        }
    }
}

fn read_stream<W: Word>(stream: &Stream<'_>, grid: &Grid, float: bool, threads: usize, out: &mut [W]) -> Result<()> {
    let mut border = stream.border;
    for run in grid.border() {
        let (bytes, rest) = border.split_at(run.len() * W::BYTES);
        read_words(bytes, &mut out[run]);
        border = rest;
    }
    let threads = threads.min(grid.cubes() / CUBES_PER_RUN).max(1);
    let mut bars = bars(grid, threads, out)?;
    let per_run = parallel::run_length(bars.len(), threads);
    let runs = bars.chunks_mut(per_run);
    parallel::try_each(runs.len(), runs, threads, |_, run| decode_run(stream, grid, float, run))
}

/// Cubes that follow each other along the last axis, and their part of the array: one piece for each plane.
struct Bar<'a, W> {
    first: usize,
    cubes: usize,
    pieces: Vec<&'a mut [W]>,
}

/// Lends out every whole cube's place in the array. In rank 1, where all cubes are on one line, it is cut for
/// `threads`.
fn bars<'a, W>(grid: &Grid, threads: usize, out: &'a mut [W]) -> Result<Vec<Bar<'a, W>>> {
    let ([_, rows, row], [side_z, side_y, side_x], [z, y, x]) = (grid.dims(), grid.sides(), grid.counts());
    if grid.rank() == 1 {
        let cubes = parallel::run_length(x, threads);
        let pieces = out[..x * side_x].chunks_mut(cubes * side_x);
        let mut bars = memory::with_capacity(pieces.len())?;
        for (k, piece) in pieces.enumerate() {
            let (first, cubes) = (k * cubes, piece.len() / side_x);
            bars.push(Bar { first, cubes, pieces: memory::collect(1, std::iter::once(piece))? });
        }
        return Ok(bars);
    }
    let mut bars = memory::with_capacity(z * y)?;
    for b in 0..z * y {
        bars.push(Bar { first: b * x, cubes: x, pieces: memory::with_capacity(side_z)? });
    }
    for (k, plane) in out.chunks_exact_mut(rows * row).take(z * side_z).enumerate() {
        let pieces = plane.chunks_exact_mut(side_y * row).take(y);
        bars[k / side_z * y..]
            .iter_mut()
            .zip(pieces)
            .for_each(|(bar, piece): (&mut Bar<'a, W>, _)| bar.pieces.push(piece));
    }
    Ok(bars)
}

/// Reads words from the stream's bytes, which may lie at any address.
#[inline(always)]
fn read_words<W: Word>(bytes: &[u8], to: &mut [W]) {
    bytemuck::cast_slice_mut(to).copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        to.iter_mut().for_each(|w| *w = (*w).le());
    }
}

fn decode_run<W: Word>(stream: &Stream<'_>, grid: &Grid, float: bool, run: &mut [Bar<'_, W>]) -> Result<()> {
    let mut scratch = Scratch::new()?;
    for bar in run {
        for at in (0..bar.cubes).step_by(GROUP) {
            let group = at..bar.cubes.min(at + GROUP);
            vectorize(
                #[inline(always)]
                || decode_group(stream, grid, float, group, bar, &mut scratch),
            )?;
        }
    }
    Ok(())
}

/// Decodes some cubes of a bar, `group` of them counted from its first.
#[inline(always)]
fn decode_group<W: Word>(
    stream: &Stream<'_>,
    grid: &Grid,
    float: bool,
    group: Range<usize>,
    bar: &mut Bar<'_, W>,
    s: &mut Scratch<W>,
) -> Result<()> {
    for (cube, i) in s.values.iter_mut().zip(group.clone()) {
        let i = bar.first + i;
        let bytes = stream.cube(i);
        let words = bytes.len() / W::BYTES;
        read_words(bytes, &mut s.words[..words]);
        let length = cube::length(&s.words[..W::COLUMNS]);
        if length != words {
            let why = format!("cube {i}: {words} words, its heads say {length}");
            return Err(Error::corrupt("ndzip stream", why));
        }
        if words == W::COLUMNS {
            cube.fill(W::ZERO);
            continue;
        }
        cube::expand(&s.words, &mut s.rows);
        cube::transpose(&mut s.rows);
        cube::backward(&mut s.rows, cube, grid.rank(), float);
    }
    match grid.rank() {
        1 => scatter::<W, NDZIP_SIDE_1>(&s.values, grid, &group, &mut bar.pieces),
        2 => scatter::<W, NDZIP_SIDE_2>(&s.values, grid, &group, &mut bar.pieces),
        _ => scatter::<W, NDZIP_SIDE_3>(&s.values, grid, &group, &mut bar.pieces),
    }
    Ok(())
}

/// Copies the rows of a group of cubes to their places in the bar: inverse of [`gather`].
#[inline(always)]
fn scatter<W: Word, const SIDE: usize>(cubes: &[Cube<W>], grid: &Grid, group: &Range<usize>, pieces: &mut [&mut [W]]) {
    let ([_, _, row], [_, side_y, _]) = (grid.dims(), grid.sides());
    for k in 0..NDZIP_CUBE / SIDE {
        let at = k % side_y * row + group.start * SIDE;
        let line = pieces[k / side_y][at..at + group.len() * SIDE].as_chunks_mut::<SIDE>().0;
        for (to, cube) in line.iter_mut().zip(cubes) {
            *to = cube.as_chunks::<SIDE>().0[k];
        }
    }
}
