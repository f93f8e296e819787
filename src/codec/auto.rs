// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec encodes a chunk under a bound where the user leaves it to the writer (C = 0).
//!
//! ```text
//! candidates   fast      planes; under a pointwise relative bound szx
//!              lossless  planes without a bound
//!              lorenzo
//! sample       a small chunk: all of it. Else parts all over the chunk, each a tile of lorenzo's and the tiles of planes in
//!              which that begins and has its middle: four, more in a large chunk, and more where in one of the parts
//!              the choice is too far from the best, or hardly anything is left of the chunk
//! sizes        what the candidates' own encoders make of the sample, under the bound used on the whole chunk
//! rule         lossless where it is at most as long as fast, and at most 1.2 times as long as lorenzo;
//!              fast where it is at most 1.2 times as long as lorenzo, for it is several times as fast;
//!              else lorenzo
//! ```
//!
//! The sample's own range would miss bursts, which make a relative bound a wide one everywhere else: so the bound is the
//! chunk's. The rule depends on the values and the words alone, and so is the same on every backend. What no candidate makes
//! smaller than the raw bytes is stored.

use super::chunk::Chunk;
use super::planes::{self, Value, shape::Shape};
use super::{lorenzo, szx};
use crate::bound::Used;
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::params::{Bound, Codec, Mode, Params, Request};
use crate::stage::tiles::{Grid, Tile};
use crate::{memory, parallel};

/// Tiles of lorenzo's in a chunk that is all sample, as far as its values go.
const WHOLE: usize = 4;
/// Parts of the sample, one of so many tiles at first; where they do not do, as many as this.
const FIRST: std::ops::RangeInclusive<usize> = 4..=8;
const TILES_PER_PART: usize = 256;
const MORE: usize = 12;
/// In tenths: how much longer than lorenzo's the others may be, and how much longer than the best the choice in a part.
const GAIN: u128 = 12;
const REGRET: u128 = 14;
/// Chunks of which less than this part is left need as many parts too.
const THIN: u128 = 48;
/// Bytes of a frame before a codec's first section, about.
const FRAME: u64 = 100;
/// Part k is at k times these fractions (over 2^64, modulo 1) of the axes: powers of 1 / g, g^4 = g + 1, whose multiples fill a
/// box evenly, however many are taken.
const PLACES: [u64; 3] = [0x8CB9_2BA7_2F3D_8DD7, 0xABC9_8388_FB8F_AC02, 0xD1B5_4A32_D192_ED03];
/// Values of a part that szx encodes.
const RUN: usize = 8192;

/// The request that a chunk's encoder gets, and the bound used.
pub(super) fn choose<S: Value>(chunk: &Chunk<'_>) -> Result<(Request, Used)> {
    let (chosen, used) = choose_by::<S>(chunk, Looked::AtAll)?;
    Ok((chosen.expect("all was looked at"), used))
}

/// How much of a chunk's values is there to be looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Looked {
    /// The parts that are looked at first.
    AtFirst,
    /// All that may be looked at.
    AtAll,
}

/// As [`choose`], of a chunk of which only [`boxes`] are there. `None`: the parts that are looked at first do not do.
pub(super) fn choose_by<S: Value>(chunk: &Chunk<'_>, looked: Looked) -> Result<(Option<Request>, Used)> {
    let extents = chunk.params.extents.as_slice();
    let used = chunk.used::<S>()?;
    let taken = match (Grid::new(extents, LORENZO_TILE), Shape::choose(extents)) {
        (Some(grid), Some(shape)) => {
            let sample = Sample { chunk, used, grid, shape };
            match sample.first::<S>()? {
                Some(taken) => taken,
                None if looked == Looked::AtFirst => return Ok((None, used)),
                None => sample.more::<S>()?,
            }
        }
        _ => Taken::Lorenzo,
    };
    let bound = chunk.params.request.bound;
    let request = match taken {
        Taken::Lossless => Request { codec: Codec::Planes, bound: Bound::Lossless },
        Taken::Fast if bound.mode() == Mode::PointwiseRelative => Request { codec: Codec::Szx, bound },
        Taken::Fast => Request { codec: Codec::Planes, bound },
        Taken::Lorenzo => Request { codec: Codec::Lorenzo, bound },
    };
    Ok((Some(request), used))
}

/// A box of a chunk's values that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Place of its first value in the chunk.
    pub(crate) at: usize,
    /// Its extents, and those of the whole chunk in which they are: slowest first.
    pub(crate) extents: [usize; 3],
    pub(crate) within: [usize; 3],
}

/// All values that the choice reads of any chunk with these params, if the bound used is known. `None`: the whole chunk.
pub(crate) fn boxes(params: &Params, looked: Looked) -> Option<Vec<Look>> {
    let extents = params.extents.as_slice();
    let (grid, shape) = (Grid::new(extents, LORENZO_TILE)?, Shape::choose(extents)?);
    let n = grid.extents().iter().product::<usize>();
    // Components of a vector lie between each other: no boxes.
    if n <= WHOLE * LORENZO_TILE || shape.is_of_components() {
        return None;
    }
    let parts = if looked == Looked::AtFirst { first_parts(&grid) } else { MORE.max(first_parts(&grid)) };
    let mut all = Vec::new();
    for k in 0..parts {
        let part = place(&grid, &shape, k);
        let look = |grid: &Grid, tile: Tile| Look { at: tile.start(), extents: tile.extents, within: grid.extents() };
        all.push(look(&grid, part.tile));
        all.extend(part.tiles().map(|t| look(&shape.grid, shape.grid.tile(t))));
        if params.request.bound.mode() == Mode::PointwiseRelative {
            let len = n.min(RUN);
            all.push(Look { at: part.begin.min(n - len), extents: [1, 1, len], within: [1, 1, n] });
        }
    }
    Some(all)
}

/// Parts that are looked at first.
fn first_parts(grid: &Grid) -> usize {
    (grid.tiles() / TILES_PER_PART).clamp(*FIRST.start(), *FIRST.end())
}

/// Where a part of the sample is.
struct Place {
    /// The tile of lorenzo's, and where it begins in the chunk.
    tile: Tile,
    begin: usize,
    /// The tiles of planes in which that begins and has its middle; they may be one.
    ends: [usize; 2],
}

impl Place {
    fn tiles(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let [first, second] = self.ends;
        self.ends.into_iter().take(if first == second { 1 } else { 2 })
    }
}

/// Part number `k`: the tile of lorenzo's around a value. Of all tiles those cut off at a border would be as many as others, and
/// are not like them.
fn place(grid: &Grid, shape: &Shape, k: usize) -> Place {
    let extents = grid.extents();
    let at = std::array::from_fn(|d| {
        let place = (k as u64 + 1).wrapping_mul(PLACES[d]);
        ((u128::from(place) * extents[d] as u128) >> 64) as usize
    });
    let tile = grid.tile(grid.tile_with(at));
    let [a, b, c] = tile.extents;
    let begin = grid.row(&tile, 0, 0);
    let ends = [begin, grid.row(&tile, a / 2, b / 2) + c / 2];
    Place { tile, begin, ends: std::array::from_fn(|i| shape.tile_near(ends[i], 2 * k + i)) }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Taken {
    Fast,
    Lossless,
    Lorenzo,
}

struct Sample<'a> {
    chunk: &'a Chunk<'a>,
    used: Used,
    grid: Grid,
    shape: Shape,
}

/// Bytes that values take, in parts of [`EACH`] each.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    values: u64,
}

/// Parts count alike, for a tile is taken the more often the more values it has.
const EACH: u64 = 1 << 20;

impl Size {
    /// What `bytes` for so many `values` are for a part.
    fn of(bytes: usize, values: usize) -> Size {
        Size { bytes: bytes as u64 * EACH / values as u64, values: EACH }
    }

    fn plus(self, other: Size) -> Size {
        Size { bytes: self.bytes + other.bytes, values: self.values + other.values }
    }

    /// Bytes of `n` values that are like these.
    fn scaled(self, n: usize) -> u128 {
        u128::from(self.bytes) * n as u128 / u128::from(self.values.max(1))
    }
}

/// What the candidates make of some of a chunk's values.
#[derive(Clone, Copy, Default)]
struct Sizes {
    fast: Size,
    lossless: Size,
    lorenzo: Size,
    codebook: u64,
}

impl Sizes {
    fn plus(self, other: &Sizes) -> Sizes {
        Sizes {
            fast: self.fast.plus(other.fast),
            lossless: self.lossless.plus(other.lossless),
            lorenzo: self.lorenzo.plus(other.lorenzo),
            codebook: self.codebook.max(other.codebook),
        }
    }

    /// The rule, for a chunk of `n` values that takes `most` bytes at most; and what it takes so.
    fn take(&self, n: usize, most: usize) -> (Taken, u128) {
        let [fast, lossless, lorenzo] = [(self.fast, 0), (self.lossless, 0), (self.lorenzo, self.codebook)]
            .map(|(size, more)| (size.scaled(n) + u128::from(FRAME + more)).min(most as u128 + u128::from(FRAME)));
        match () {
            () if lossless <= fast && 10 * lossless <= GAIN * lorenzo => (Taken::Lossless, lossless),
            () if 10 * fast <= GAIN * lorenzo => (Taken::Fast, fast),
            () => (Taken::Lorenzo, lorenzo),
        }
    }

    /// Whether a candidate is too far from the best of them, in a part of a chunk.
    fn regrets(&self, taken: Taken) -> bool {
        let [fast, lossless, lorenzo] = [self.fast, self.lossless, self.lorenzo].map(|size| size.scaled(LORENZO_TILE));
        let size = match taken {
            Taken::Fast => fast,
            Taken::Lossless => lossless,
            Taken::Lorenzo => lorenzo,
        };
        // A few words do not count.
        10 * size > REGRET * fast.min(lossless).min(lorenzo) + 400
    }
}

/// Part of a chunk: its sizes but for lorenzo's, and what lorenzo encodes.
type Part<S> = (Sizes, (Vec<S>, Grid));

impl Sample<'_> {
    /// What is chosen by all of a small chunk, or by the parts that are looked at first. `None`: these do not do.
    fn first<S: Value>(&self) -> Result<Option<Taken>> {
        let Chunk { raw, threads, .. } = *self.chunk;
        let n = raw.len() / S::SIZE;
        if n <= WHOLE * LORENZO_TILE {
            return Ok(Some(self.taken(&self.with_lorenzo(vec![self.whole::<S>(n)?], 1)?, n).0));
        }
        let first = first_parts(&self.grid);
        let sizes = self.with_lorenzo(parallel::try_map(first, threads, |k| self.part::<S>(k))?, threads)?;
        let (taken, size) = self.taken(&sizes, n);
        // Where hardly anything is stored, a few places make the size.
        let enough = size >= raw.len() as u128 / THIN && !sizes.iter().any(|part| part.regrets(taken));
        Ok(if first >= MORE || enough { Some(taken) } else { None })
    }

    /// What is chosen by more parts.
    fn more<S: Value>(&self) -> Result<Taken> {
        let Chunk { raw, threads, .. } = *self.chunk;
        let sizes = self.with_lorenzo(parallel::try_map(MORE, threads, |k| self.part::<S>(k))?, threads)?;
        Ok(self.taken(&sizes, raw.len() / S::SIZE).0)
    }

    /// The rule, for parts of a chunk of `n` values.
    fn taken(&self, parts: &[Sizes], n: usize) -> (Taken, u128) {
        parts.iter().fold(Sizes::default(), Sizes::plus).take(n, self.chunk.raw.len())
    }

    /// The sizes of parts with those of lorenzo, which has one codebook for all of them.
    fn with_lorenzo<S: Value>(&self, parts: Vec<Part<S>>, threads: usize) -> Result<Vec<Sizes>> {
        let (mut sizes, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (lens, codebook) = lorenzo::cpu::lens(&values, self.used, self.chunk.params.fill, threads)?;
        for ((sizes, len), (values, _)) in sizes.iter_mut().zip(lens).zip(&values) {
            (sizes.lorenzo, sizes.codebook) = (Size::of(len, values.len()), codebook as u64);
        }
        Ok(sizes)
    }

    /// All of the chunk.
    fn whole<S: Value>(&self, n: usize) -> Result<Part<S>> {
        let mut values = memory::zeros::<S>(n)?;
        self.chunk.read(0, &mut values);
        let sizes = self.sizes::<S>(0..self.shape.grid.tiles(), &values)?;
        Ok((sizes, (values, self.grid)))
    }

    /// Part number `k`.
    fn part<S: Value>(&self, k: usize) -> Result<Part<S>> {
        let n = self.chunk.raw.len() / S::SIZE;
        let place = place(&self.grid, &self.shape, k);
        let [_, b, c] = place.tile.extents;
        let mut values = memory::zeros::<S>(place.tile.len())?;
        for (i, row) in values.chunks_exact_mut(c).enumerate() {
            self.chunk.read(self.grid.row(&place.tile, i / b, i % b), row);
        }
        let mut run = Vec::new();
        if let Used::PointwiseRelative(_) = self.used {
            run = memory::zeros::<S>(n.min(RUN))?;
            self.chunk.read(place.begin.min(n - run.len()), &mut run);
        }
        let extents = place.tile.extents;
        Ok((self.sizes(place.tiles(), &run)?, (values, Grid::with_sides(extents, extents))))
    }

    /// Sizes of these tiles by planes, and of a run of values by szx.
    fn sizes<S: Value>(&self, tiles: impl Iterator<Item = usize> + Clone, run: &[S]) -> Result<Sizes> {
        let seen = tiles.clone().map(|k| self.shape.grid.tile(k).len()).sum();
        let (exact, lossy) = planes::cpu::lens::<S>(self.chunk, &self.shape, tiles, self.used)?;
        let fast = match self.used {
            Used::Absolute(_) => Size::of(lossy.unwrap_or(exact), seen),
            Used::PointwiseRelative(_) => Size::of(szx::cpu::len(run, self.used, self.chunk.params.fill)?, run.len()),
        };
        Ok(Sizes { fast, lossless: Size::of(exact, seen), ..Sizes::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::params::Dtype;

    /// The value at a place.
    type Field = fn(usize) -> f32;

    const BOUNDS: [Bound; 4] =
        [Bound::Absolute(1e-3), Bound::Relative(1e-3), Bound::Psnr(60.0), Bound::PointwiseRelative(1e-3)];

    fn params(dims: &[u64], dtype: Dtype, bound: Bound) -> Params {
        Params::new(Request { codec: Codec::Auto, bound }, dtype, dims).unwrap()
    }

    fn chunk<'a>(params: &'a Params, raw: &'a [u8], threads: usize) -> Chunk<'a> {
        Chunk { params, raw, threads, used: None }
    }

    fn bytes(n: usize, f: impl Fn(usize) -> f32) -> Vec<u8> {
        (0..n).flat_map(|i| f(i).to_le_bytes()).collect()
    }

    /// What values get, whatever number of threads there are.
    fn chosen(dims: &[u64], bound: Bound, f: impl Fn(usize) -> f32) -> Taken {
        let params = params(dims, Dtype::F32, bound);
        let raw = bytes(dims.iter().product::<u64>() as usize, f);
        let settled = [1, 3].map(|threads| codec::settle(&chunk(&params, &raw, threads)).unwrap());
        assert_eq!(settled[0], settled[1]);
        let request = settled[0].0.request;
        assert!(request.check().is_ok() && [bound, Bound::Lossless].contains(&request.bound));
        match (request.codec, request.bound) {
            (Codec::Planes, Bound::Lossless) => Taken::Lossless,
            (Codec::Lorenzo, _) => Taken::Lorenzo,
            (fast, _) => {
                let pointwise = bound.mode() == Mode::PointwiseRelative;
                assert_eq!(fast, if pointwise { Codec::Szx } else { Codec::Planes });
                Taken::Fast
            }
        }
    }

    fn frame(params: &Params, raw: &[u8]) -> Vec<u8> {
        let (params, used) = codec::settle(&chunk(params, raw, 1)).unwrap();
        let chunk = Chunk { used, ..chunk(&params, raw, 3) };
        let mut out = Vec::new();
        if codec::encode(&chunk, &mut out) != Ok(true) {
            codec::store(&params, raw, 1, &mut out).unwrap();
        }
        out
    }

    fn noise(i: usize) -> f32 {
        let h = (i as u32).wrapping_mul(0x9e37_79b9);
        (h ^ h >> 15).wrapping_mul(0x85eb_ca6b) as f32 / u32::MAX as f32
    }

    fn wave(i: usize) -> f32 {
        ((i % 128) as f32 * 0.05).sin() + ((i / 128) as f32 * 0.03).cos()
    }

    #[test]
    fn smooth_fields_are_lorenzo_s_and_noise_is_planes() {
        for rows in [512, 2048] {
            let dims = [rows, 128];
            for bound in BOUNDS {
                assert_eq!(chosen(&dims, bound, |i| 3.0 + wave(i)), Taken::Lorenzo, "{dims:?} {bound:?}");
                let of_noise = chosen(&dims, bound, |i| 1.0 + noise(i));
                match bound.mode() {
                    Mode::PointwiseRelative => assert_ne!(of_noise, Taken::Lossless),
                    _ => assert_eq!(of_noise, Taken::Fast, "{dims:?} {bound:?}"),
                }
            }
        }
    }

    #[test]
    fn what_is_as_small_without_loss_loses_nothing() {
        for rows in [64, 512, 2048] {
            for bound in [Bound::Absolute(1e-4), Bound::Relative(1e-6), Bound::PointwiseRelative(1e-6)] {
                let counts = |i: usize| (noise(i) * 256.0).floor() + 1.0;
                assert_eq!(chosen(&[rows, 128], bound, counts), Taken::Lossless, "{rows} {bound:?}");
            }
            // No step of planes is usable.
            assert_eq!(chosen(&[rows, 128], Bound::Absolute(5e-324), noise), Taken::Lossless, "{rows}");
        }
    }

    /// Chunks of all sizes, half of which is missing, constant or quite another thing.
    #[test]
    fn no_other_codec_would_have_been_smaller_by_a_third() {
        let all: [(&str, Field); 8] = [
            ("wave", wave),
            ("noise", noise),
            ("masked", |i| if i / 700 % 3 == 0 { f32::NAN } else { wave(i) }),
            ("spikes", |i| if i % 997 == 0 { 1e6 * noise(i) } else { wave(i) }),
            ("steps", |i| (wave(i) * 3.0).round()),
            ("halves", |i| if i / 128 % 64 < 32 { 0.0 } else { wave(i) + noise(i) * 0.01 }),
            ("huge", |i| f32::from_bits((noise(i) * 4e9) as u32)),
            ("packed", |i| (wave(i) * 100.0).round() * 0.01),
        ];
        let of_lossy = [Codec::Szx, Codec::Lorenzo, Codec::Planes];
        for dims in [&[300][..], &[33, 70], &[6, 40, 50], &[1100, 3], &[200, 400], &[40, 70, 90], &[2, 3, 50, 40, 4]] {
            for (name, f) in all {
                let raw = bytes(dims.iter().product::<u64>() as usize, f);
                for bound in [1e-2, 1e-5].map(Bound::Absolute).into_iter().chain(BOUNDS) {
                    let auto = params(dims, Dtype::F32, bound);
                    let asked = |codec, bound| Params { request: Request { codec, bound }, ..auto };
                    let lossy = of_lossy.map(|codec| asked(codec, bound));
                    let lossy = lossy.into_iter().filter(|p| p.request.check().is_ok());
                    let lossless = [Codec::Planes, Codec::Ndzip].map(|codec| asked(codec, Bound::Lossless));
                    let best = lossy.chain(lossless).map(|p| frame(&p, &raw).len()).min().unwrap();
                    let got = frame(&auto, &raw).len();
                    // Where hardly anything is left, a sample says less.
                    let most = if best < raw.len() / 128 { 2 * best } else { 3 * best / 2 };
                    assert!(got <= most, "{name} {dims:?} {bound:?}: {got}, best {best}");
                }
            }
        }
    }

    #[test]
    fn every_chunk_has_a_codec() {
        let odd = |i: usize| [f32::NAN, f32::INFINITY, -0.0, 1e20, f32::MIN_POSITIVE / 2.0][i % 5];
        for dims in [&[][..], &[1], &[2], &[4097], &[1, 1, 70000], &[40_000, 2], &[9, 9, 9, 9, 15], &[2; 17], &[3; 10]]
        {
            for f in [odd, wave, |_| 0.0, |_| f32::NAN, |_| -7.5] {
                for bound in BOUNDS.into_iter().chain([1e38, 1e308, 1e-30, 5e-324].map(Bound::Absolute)) {
                    chosen(dims, bound, f);
                }
            }
        }
    }

    #[test]
    fn a_burst_outside_the_sample_makes_the_bound() {
        let dims = [600u64, 1000];
        let n = 600_000;
        let calm = |i: usize| (noise(i) * 256.0).floor();
        for bound in [Bound::Relative(1e-4), Bound::Psnr(80.0)] {
            assert_eq!(chosen(&dims, bound, calm), Taken::Lossless, "{bound:?}");
            for at in [0, n / 2, n - 1] {
                let burst = |i: usize| if i == at { 1e6 } else { calm(i) };
                let wide = Bound::Absolute(100.0);
                assert_eq!(chosen(&dims, bound, burst), chosen(&dims, wide, burst), "{bound:?}, value {at}");
                assert_ne!(chosen(&dims, bound, burst), Taken::Lossless, "{bound:?}, value {at}");
            }
        }
    }

    #[test]
    fn frames_are_what_the_chosen_codec_writes_alone() {
        let fields: [(f64, Field); 3] = [(1e-3, wave), (1e-3, noise), (1e-6, |i| (noise(i) * 256.0).floor())];
        let codecs = fields.map(|(r, f)| {
            let raw = bytes(2048 * 128, f);
            let auto = params(&[2048, 128], Dtype::F32, Bound::Relative(r));
            let request = codec::settle(&chunk(&auto, &raw, 2)).unwrap().0.request;
            assert_eq!(frame(&auto, &raw), frame(&Params { request, ..auto }, &raw));
            (request.codec, request.bound == Bound::Lossless)
        });
        assert_eq!(codecs, [(Codec::Lorenzo, false), (Codec::Planes, false), (Codec::Planes, true)]);
    }

    #[test]
    fn the_choice_is_the_same_in_either_byte_order_and_anywhere_in_memory() {
        let values: Vec<f64> =
            (0..1usize << 16).map(|i| f64::from(i as u32 % 256) * 0.01 + f64::from(noise(i))).collect();
        for dims in [&[64, 64][..], &[256, 256], &[16384, 4]] {
            let values = &values[..dims.iter().product::<u64>() as usize];
            for b in [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0] {
                let mut params = params(dims, Dtype::F64, Bound::Absolute(b));
                let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let little = choose::<f64>(&chunk(&params, &raw, 1));
                let mut shifted = vec![0];
                shifted.extend(&raw);
                assert_eq!(choose::<f64>(&chunk(&params, &shifted[1..], 2)), little);
                params.dtype.big_endian = true;
                let raw: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                assert_eq!(choose::<f64>(&chunk(&params, &raw, 1)), little);
            }
        }
    }
}
