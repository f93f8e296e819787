// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference implementation: cube after cube, threads over runs of cubes. FORMAT.md §4.

use super::cube::{self, Cube, Word};
use super::format::{self, Grid, Stream};
use crate::constants::NDZIP_CUBE;
use crate::error::{Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::parallel;
use crate::params::{Class, Dtype};
use std::ops::Range;

/// A thread takes at least this many cubes: making it costs as much as coding a few.
const CUBES_PER_THREAD: usize = 16;

/// Encodes one chunk. `None`: too large for the stream's 32-bit offsets.
///
/// `values` has as many words as the header's extents say.
pub(crate) fn encode<W: Word>(values: &[W], header: Header, threads: usize, out: &mut Vec<u8>) -> Option<()> {
    let grid = Grid::choose(header.extents.as_slice())?;
    let longest = format::max_len(&grid, W::BYTES)?;
    let float = header.dtype.class == Class::Float;
    let mut w = Writer::new(out, header, 2);
    w.section(|o| grid.write(o));
    w.section(|o| {
        // A stream that grows beyond this will not be kept.
        o.reserve(longest.min(size_of_val(values) + size_of_val(values) / 16));
        write_stream(values, &grid, float, threads, o);
    });
    w.seal(threads);
    Some(())
}

/// Decodes one chunk into `out`.
pub(crate) fn decode<W: Word>(frame: &Frame<'_>, threads: usize, out: &mut [W]) -> Result<()> {
    let dtype: Dtype = frame.header.dtype;
    if dtype.class == Class::Bytes || frame.header.mode != 9 {
        let why = format!("ndzip with mode {} and type {dtype:?}", frame.header.mode);
        return Err(Error::corrupt("header", why));
    }
    let [grid, stream] = frame.sections()?;
    let grid = Grid::read(grid, frame.elements(W::BYTES)?)?;
    let stream = Stream::open(stream, &grid, W::BYTES)?;
    read_stream(&stream, &grid, dtype.class == Class::Float, threads, out)
}

/// Working memory of one thread.
struct Scratch<W> {
    values: Box<Cube<W>>,
    planes: Box<Cube<W>>,
    /// A cube's words, and one column more so that a column is always a window of whole length.
    words: Vec<W>,
}

impl<W: Word> Scratch<W> {
    fn new() -> Self {
        let cube = || vec![W::ZERO; NDZIP_CUBE].into_boxed_slice().try_into().expect("a cube's values");
        Scratch { values: cube(), planes: cube(), words: vec![W::ZERO; W::COLUMNS + NDZIP_CUBE + W::BITS] }
    }
}

fn write_stream<W: Word>(values: &[W], grid: &Grid, float: bool, threads: usize, out: &mut Vec<u8>) {
    let cubes = grid.cubes();
    let table = out.len();
    out.resize(table + format::table_len(cubes, W::BYTES), 0);
    let per_run = parallel::run_length(cubes, threads.min(cubes / CUBES_PER_THREAD));
    let runs: Vec<Range<usize>> = (0..cubes).step_by(per_run).map(|a| a..cubes.min(a + per_run)).collect();
    let mut end = 0;
    let mut place = |lens: Vec<u32>, first: usize, out: &mut Vec<u8>| {
        for (i, len) in lens.into_iter().enumerate() {
            // Below 2^32: format::max_len was asked.
            end += len;
            out[table + 4 * (first + i)..][..4].copy_from_slice(&u32::to_le_bytes(end));
        }
    };
    if let [run] = &runs[..] {
        let lens = encode_run(values, grid, float, run.clone(), out);
        place(lens, 0, out);
    } else {
        let parts = parallel::map(runs.len(), threads, |r| {
            let mut bytes = Vec::with_capacity(runs[r].len() * NDZIP_CUBE * W::BYTES);
            let lens = encode_run(values, grid, float, runs[r].clone(), &mut bytes);
            (bytes, lens)
        });
        for ((bytes, lens), run) in parts.into_iter().zip(&runs) {
            out.extend_from_slice(&bytes);
            place(lens, run.start, out);
        }
    }
    for run in grid.border() {
        append(&values[run], out);
    }
}

/// Appends words to the stream.
#[inline(always)]
fn append<W: Word>(words: &[W], out: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        out.extend_from_slice(bytemuck::cast_slice(words));
    } else {
        words.iter().for_each(|w| out.extend_from_slice(bytemuck::bytes_of(&w.little())));
    }
}

/// Appends a run of cubes to `out` and returns each one's words.
fn encode_run<W: Word>(values: &[W], grid: &Grid, float: bool, run: Range<usize>, out: &mut Vec<u8>) -> Vec<u32> {
    let mut s = Scratch::new();
    run.map(|i| {
        let words = if float {
            encode_cube::<W, true>(values, grid, i, &mut s)
        } else {
            encode_cube::<W, false>(values, grid, i, &mut s)
        };
        append(&s.words[..words], out);
        words as u32
    })
    .collect()
}

/// Encodes cube `i` into `s.words`; returns how many words it takes.
#[inline(always)]
fn encode_cube<W: Word, const FLOAT: bool>(values: &[W], grid: &Grid, i: usize, s: &mut Scratch<W>) -> usize {
    let (origin, [_, rows, row], [_, side_y, side_x]) = (grid.origin(i), grid.dims(), grid.sides());
    for (k, to) in s.values.chunks_exact_mut(side_x).enumerate() {
        let at = origin + (k / side_y * rows + k % side_y) * row;
        cube::load_row::<W, FLOAT>(&values[at..at + side_x], to);
    }
    match grid.rank() {
        1 => {}
        2 => cube::difference(&mut s.values, NDZIP_CUBE, 64),
        _ => {
            cube::difference(&mut s.values, 256, 16);
            cube::difference(&mut s.values, NDZIP_CUBE, 256);
        }
    }
    cube::flip(&mut s.values);
    cube::turn(&s.values, &mut s.planes);
    cube::transpose(&mut s.planes);
    cube::compact(&s.values, &s.planes, &mut s.words)
}

fn read_stream<W: Word>(stream: &Stream<'_>, grid: &Grid, float: bool, threads: usize, out: &mut [W]) -> Result<()> {
    let mut border = stream.border;
    for run in grid.border() {
        let (bytes, rest) = border.split_at(run.len() * W::BYTES);
        take(bytes, &mut out[run]);
        border = rest;
    }
    let threads = threads.min(grid.cubes() / CUBES_PER_THREAD).max(1);
    let mut bars = bars(grid, threads, out);
    let per_run = parallel::run_length(bars.len(), threads);
    let runs: Vec<&mut [Bar<'_, W>]> = bars.chunks_mut(per_run).collect();
    parallel::map_mut(runs, threads, |_, run| decode_run(stream, grid, float, run)).into_iter().collect()
}

/// Cubes that follow each other along the last axis, and the rows of the array that they share.
struct Bar<'a, W> {
    first: usize,
    rows: Vec<&'a mut [W]>,
}

/// Lends out every whole cube's place in the array, in bars of as many cubes as leave enough bars for `threads`.
fn bars<'a, W>(grid: &Grid, threads: usize, out: &'a mut [W]) -> Vec<Bar<'a, W>> {
    let ([_, rows, row], [side_z, side_y, side_x], [z, y, x]) = (grid.dims(), grid.sides(), grid.counts());
    if grid.cubes() == 0 {
        return Vec::new();
    }
    let cuts = if threads == 1 { 1 } else { (4 * threads).div_ceil(z * y).min(x) };
    let cubes = x.div_ceil(cuts);
    let cuts = x.div_ceil(cubes);
    let mut bars: Vec<Bar<'a, W>> = (0..z * y * cuts)
        .map(|b| Bar { first: b / cuts * x + b % cuts * cubes, rows: Vec::with_capacity(side_z * side_y) })
        .collect();
    for (k, line) in out.chunks_exact_mut(row).enumerate() {
        let (bar_z, bar_y) = (k / rows / side_z, k % rows / side_y);
        if bar_z < z && bar_y < y {
            let parts = line[..x * side_x].chunks_mut(cubes * side_x);
            bars[(bar_z * y + bar_y) * cuts..].iter_mut().zip(parts).for_each(|(bar, part)| bar.rows.push(part));
        }
    }
    bars
}

/// Reads words from the stream's bytes, which may lie at any address.
#[inline(always)]
fn take<W: Word>(bytes: &[u8], to: &mut [W]) {
    bytemuck::cast_slice_mut(to).copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        to.iter_mut().for_each(|w| *w = w.little());
    }
}

fn decode_run<W: Word>(stream: &Stream<'_>, grid: &Grid, float: bool, run: &mut [Bar<'_, W>]) -> Result<()> {
    let mut s = Scratch::new();
    for bar in run {
        let side = grid.sides()[2];
        for at in (0..bar.rows[0].len()).step_by(side) {
            let i = bar.first + at / side;
            let rows = bar.rows.iter_mut().map(|row| &mut row[at..at + side]);
            if float {
                decode_cube::<W, true>(stream, grid, i, &mut s, rows)?;
            } else {
                decode_cube::<W, false>(stream, grid, i, &mut s, rows)?;
            }
        }
    }
    Ok(())
}

/// Decodes cube `i` into its rows of the array.
#[inline(always)]
fn decode_cube<'a, W: Word + 'a, const FLOAT: bool>(
    stream: &Stream<'_>,
    grid: &Grid,
    i: usize,
    s: &mut Scratch<W>,
    rows: impl Iterator<Item = &'a mut [W]>,
) -> Result<()> {
    let bytes = stream.cube(i);
    let words = bytes.len() / W::BYTES;
    take(bytes, &mut s.words[..words]);
    let length = cube::length(&s.words[..W::COLUMNS]);
    if length != words {
        let why = format!("cube {i}: {words} words, its heads say {length}");
        return Err(Error::corrupt("ndzip stream", why));
    }
    cube::expand(&s.words, &mut s.planes);
    cube::transpose(&mut s.planes);
    cube::turn_back(&s.planes, &mut s.values);
    cube::flip(&mut s.values);
    match grid.rank() {
        1 => {}
        2 => cube::integrate(&mut s.values, NDZIP_CUBE, 64),
        _ => {
            cube::integrate(&mut s.values, NDZIP_CUBE, 256);
            cube::integrate(&mut s.values, 256, 16);
        }
    }
    for (from, to) in s.values.chunks_exact(grid.sides()[2]).zip(rows) {
        cube::store_row::<W, FLOAT>(from, to);
    }
    Ok(())
}
