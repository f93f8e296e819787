// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single stages: a kernel launched over arrays, and what the CPU's code says to the same. For `gpu_check --stages`.
//!
//! Numbers are little-endian bytes; `wide` says that they have 8 bytes and not 4. Every function is the one that the
//! codecs use, not a copy of it.

use crate::cuda::{self, Buffer, Failure};
use codecs::bound::{self, Tolerance};
use codecs::codec::lorenzo;
use codecs::codec::ndzip::cube::{self, Cube, Word};
use codecs::codec::ndzip::format::Grid;
use codecs::codec::szx::steps;
use codecs::constants::{LORENZO_SYMBOLS, LORENZO_TILE, NDZIP_CUBE};
use codecs::scalar::{Bits, Scalar};
use codecs::stage::{codebook, estimate, interpolate, lorenzo as difference, tiles};

pub use codecs::checksum::sum as checksum;
pub use codecs::codec::lorenzo::axes;
pub use codecs::scalar::{mul_down, sub_down, within};

/// A word of what a kernel takes.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    /// Address of a byte of the input.
    Input(usize),
    /// Address of a byte of the output.
    Output(usize),
    /// Itself.
    Number(u64),
}

/// Runs one kernel and returns its output, which was zero before. To the words of the input at the bytes `relative` its
/// device address is added.
///
/// # Errors
/// What the driver says, or that there is no device or stream.
pub fn run(
    kernel: &str,
    ctas: u32,
    args: &[Arg],
    input: &[u8],
    relative: &[usize],
    output: usize,
) -> Result<Vec<u8>, String> {
    let work = || -> Result<Vec<u8>, Failure> {
        let device = cuda::device().ok_or_else(|| Failure::other("there is no device"))?;
        let _current = device.enter()?;
        let mut stream = device.stream()?.ok_or_else(|| Failure::other("all streams are taken"))?;
        let function = device.kernel(kernel)?;
        // Kernels may read whole words past the end.
        let from = stream.reserve(Buffer::Input, input.len() + 64)?;
        let to = stream.reserve(Buffer::Output, output.max(1))?;
        let mut input = input.to_vec();
        for &at in relative {
            let word = input[at..].first_chunk_mut::<8>().expect("a word of the input");
            *word = u64::from_le_bytes(*word).wrapping_add(from).to_le_bytes();
        }
        let mut words = [0; 16];
        for (word, arg) in words.iter_mut().zip(args) {
            *word = match *arg {
                Arg::Input(at) => from + at as u64,
                Arg::Output(at) => to + at as u64,
                Arg::Number(n) => n,
            };
        }
        stream.upload(Buffer::Input, &[(0, &input)], 1)?;
        stream.zero(Buffer::Output, 0, output)?;
        // SAFETY: the test's addresses lie in the buffers above, with the lengths that its kernel is told of.
        #[allow(unsafe_code)]
        unsafe {
            stream.launch(function, ctas, &words)?;
        }
        let mut out = vec![0; output];
        stream.download(Buffer::Output, vec![(0, &mut out)], 1)?;
        Ok(out)
    };
    work().map_err(|why| format!("{kernel}: {why}"))
}

/// Smallest and largest of the values that are finite and not `fill`.
pub fn range(raw: &[u8], wide: bool, fill: Option<u64>) -> Option<(f64, f64)> {
    if wide { bound::range(&numbers::<f64>(raw), fill) } else { bound::range(&numbers::<f32>(raw), fill) }
}

/// szx: what a bound means: the step and its inverse in bits, 0 where it is not usable, and the required bits of mode
/// 3.
pub fn szx_rule(wide: bool, bound: f64) -> [u64; 3] {
    if wide { steps::rule::<f64>(bound) } else { steps::rule::<f32>(bound) }
}

/// szx: tiles' lengths in units of four bytes, and their payloads.
pub fn szx_encode(raw: &[u8], wide: bool, bound: f64, pointwise: bool, fill: Option<u64>) -> (Vec<u32>, Vec<u8>) {
    let used = used(bound, pointwise);
    match wide {
        true => steps::payloads(&numbers::<f64>(raw), used, fill),
        false => steps::payloads(&numbers::<f32>(raw), used, fill),
    }
}

/// szx: the values of one tile's payload. `None`: it is malformed.
pub fn szx_decode(payload: &[u8], wide: bool, bound: f64, pointwise: bool, values: usize) -> Option<Vec<u8>> {
    fn back<S: Scalar>(payload: &[u8], used: Tolerance, values: usize) -> Option<Vec<u8>> {
        let mut out = vec![S::ZERO; values];
        steps::values(payload, used, &mut out).ok()?;
        Some(bytemuck::cast_slice(&out).to_vec())
    }
    let used = used(bound, pointwise);
    if wide { back::<f64>(payload, used, values) } else { back::<f32>(payload, used, values) }
}

/// ndzip: one cube of 4096 words after each step.
pub struct Steps {
    /// Residuals in sign and magnitude, in the cube's order.
    pub residuals: Vec<u8>,
    /// All bit planes: the highest of every column, then the next.
    pub planes: Vec<u8>,
    /// The stored words.
    pub words: Vec<u8>,
}

/// ndzip: takes a cube through the steps of encoding.
pub fn ndzip_cube(raw: &[u8], wide: bool, rank: usize, float: bool) -> Steps {
    fn steps<W: Word>(raw: &[u8], rank: usize, float: bool) -> Steps {
        let mut cube: Box<Cube<W>> = numbers(raw).into_boxed_slice().try_into().expect("a cube's values");
        let mut rows = cube.clone();
        cube::forward(&mut cube, &mut rows, rank, float);
        cube::turn_back(&rows, &mut cube);
        let residuals = bytemuck::cast_slice(&cube[..]).to_vec();
        // As in the codec, one column longer.
        let mut words = vec![W::ZERO; W::COLUMNS + cube.len() + W::BITS];
        let mut len = W::COLUMNS;
        let any = cube::heads(&rows, &mut words[..W::COLUMNS]);
        cube::transpose(&mut rows);
        if any {
            len = cube::compact(&rows, &mut words);
        }
        let planes = bytemuck::cast_slice(&rows[..]).to_vec();
        Steps { residuals, planes, words: bytemuck::cast_slice(&words[..len]).to_vec() }
    }
    if wide { steps::<u64>(raw, rank, float) } else { steps::<u32>(raw, rank, float) }
}

/// ndzip: and back, from at least as many words as heads. `None`: there are not as many as the heads say.
pub fn ndzip_back(words: &[u8], wide: bool, rank: usize, float: bool) -> Option<Vec<u8>> {
    fn back<W: Word>(words: &[u8], rank: usize, float: bool) -> Option<Vec<u8>> {
        let mut words = numbers::<W>(words);
        if cube::length(&words[..W::COLUMNS]) != words.len() {
            return None;
        }
        words.resize(W::COLUMNS + NDZIP_CUBE + W::BITS, W::ZERO);
        let mut cube: Box<Cube<W>> = vec![W::ZERO; NDZIP_CUBE].into_boxed_slice().try_into().expect("a cube");
        let mut rows = cube.clone();
        cube::expand(&words, &mut rows);
        cube::transpose(&mut rows);
        cube::backward(&mut rows, &mut cube, rank, float);
        Some(bytemuck::cast_slice(&cube[..]).to_vec())
    }
    if wide { back::<u64>(words, rank, float) } else { back::<u32>(words, rank, float) }
}

/// ndzip: where an array's values belong.
pub struct Places {
    /// Extents of the grid, slowest first.
    pub dims: [usize; 3],
    /// Its rank.
    pub rank: usize,
    /// Index of each cube's first value.
    pub origins: Vec<u64>,
    /// Indices of the values outside cubes.
    pub border: Vec<u64>,
}

/// ndzip: the grid that an array gets. `None`: it is too large.
pub fn ndzip_places(extents: &[u32]) -> Option<Places> {
    let grid = Grid::for_extents(extents)?;
    let origins = (0..grid.cubes()).map(|i| grid.origin(i) as u64).collect();
    let border = grid.border().flatten().map(|i| i as u64).collect();
    Some(Places { dims: grid.dims(), rank: grid.rank(), origins, border })
}

/// lorenzo: quanta of values, 0 for those that must be stored exactly; which these are not; and whether the quanta give
/// the others back bit for bit.
pub fn quantize(raw: &[u8], wide: bool, bound: f64, log: bool, fill: Option<u64>) -> (Vec<i32>, Vec<u8>, bool) {
    fn quanta<S: Scalar>(raw: &[u8], used: Tolerance, fill: Option<u64>) -> (Vec<i32>, Vec<u8>, bool) {
        let x = numbers::<S>(raw);
        let (mut q, mut regular) = (vec![0; x.len()], vec![0; x.len()]);
        let quantizer = lorenzo::quantizer::<S>(used);
        let found = quantizer.quantize(&x, fill.map(S::Bits::from_u64), None, &mut q, &mut regular);
        q.iter_mut().zip(&regular).filter(|(_, o)| **o == 0).for_each(|(q, _)| *q = 0);
        (q, regular, found.exact)
    }
    if wide { quanta::<f64>(raw, used(bound, log), fill) } else { quanta::<f32>(raw, used(bound, log), fill) }
}

/// lorenzo: residuals of a tile of quanta along `axes`, a bit each, x first; and their cost in 1/256 bits.
pub fn differences(q: &[i32], extents: [usize; 3], axes: u8) -> (Vec<i32>, u64) {
    let mut out = vec![0; q.len()];
    difference::difference(q, extents, axes, &mut out);
    let cost = estimate::cost(&out, &mut vec![0; q.len()]);
    (out, cost)
}

/// lorenzo: running sums, back from residuals.
pub fn running_sums(residuals: &[i32], extents: [usize; 3], axes: u8) -> Vec<i32> {
    let mut out = residuals.to_vec();
    difference::integrate(&mut out, extents, axes);
    out
}

/// lorenzo: points of a tile, in its order, from residuals in that of the stream. `way` has those bits of a kind that
/// tell how.
pub fn interpolated(residuals: &[i32], extents: [usize; 3], way: u8) -> Vec<i32> {
    let mut points = vec![0; residuals.len()];
    let way = interpolate::Way { axes: way & 7, finer: way & 0x80 != 0 };
    interpolate::reconstruct(residuals, extents, way, &mut interpolate::Work::default(), &mut points);
    points
}

/// lorenzo: bits of every symbol's codeword, and the codewords, from the counts of symbols with joint ones.
pub fn codebook(counts: &[u64; LORENZO_SYMBOLS]) -> ([u8; LORENZO_SYMBOLS], [u16; LORENZO_SYMBOLS]) {
    let lengths = codebook::choose_codebook(counts);
    (lengths, codebook::codewords(&lengths))
}

/// lorenzo: extents of a chunk, of its largest tile, and of every tile its first place and its extents.
pub struct Tiles {
    /// Of the chunk, slowest first.
    pub extents: [u32; 3],
    /// Of a tile that is not at a border.
    pub tile: [u32; 3],
    /// Of each tile its first place, then its extents.
    pub all: Vec<[u64; 4]>,
}

/// lorenzo: how a chunk is cut. `None`: it is too large.
pub fn cut(extents: &[u32]) -> Option<Tiles> {
    let grid = tiles::Grid::new(extents, LORENZO_TILE)?;
    let (extents, tile) = grid.sides()?;
    let one = |i| {
        let tile = grid.tile(i);
        let [z, y, x] = tile.extents.map(|e| e as u64);
        [grid.row(&tile, 0, 0) as u64, z, y, x]
    };
    Some(Tiles { extents, tile, all: (0..grid.tiles()).map(one).collect() })
}

fn used(bound: f64, pointwise: bool) -> Tolerance {
    if pointwise { Tolerance::PointwiseRelative(bound) } else { Tolerance::Absolute(bound) }
}

fn numbers<T: bytemuck::Pod>(raw: &[u8]) -> Vec<T> {
    raw.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}
