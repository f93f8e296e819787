// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of a chunk by which its codec is chosen, as small chunks of their own.
//!
//! ```text
//! place k    a value of the chunk, the tile of lorenzo's that it is in
//! parts      that tile, and the same box for planes, where tiles of planes fill it: 16 × 16 × 32, 128 × 64 or 8192
//!            values. Where they do not, the two tiles of planes in which it begins and has its middle. 8192 values in
//!            a row from where it begins for szx
//! small      of a chunk of at most 32 Ki values lorenzo and szx have all, and planes quarters of tiles around such
//!            places, as many as are a tile
//! stack      the parts of a codec, one behind the other along the slowest axis along which the chunk goes on: an array
//!            whose tiles lie in one part each, and so is coded as the tiles are in the chunk. In a first look a part
//!            is a quarter of such a box, cut across that axis: what four places say of a chunk is worth three seams
//! ```
//!
//! No part is cut off at the chunk's border, where there is as much as a part: it is moved back. Where components lie
//! between each other, a part for planes is of one of them.

use super::planes::shape::Shape;
use crate::constants::{LORENZO_TILE, PLANES_TILE};
use crate::error::Result;
use crate::frame::STORED_HEADER;
use crate::params::{Bound, Codec, Extents, Mode, Params, Request};
use crate::stage::tiles::Grid;
use crate::{memory, parallel};

/// Tiles of lorenzo's in a sample: of a first look one in 16 of the chunk's, each put together of quarters from four
/// places, which differ more than a seam costs; of a second, whole ones, one in 6. Without loss quarters, one in 8 of 8
/// tiles or more; whole ones of lines, which repeat farther apart.
const FIRST_TILES: std::ops::RangeInclusive<usize> = 1..=4;
const FIRST_PART_OF_CHUNK: usize = 16;
const QUARTERS: usize = 4;
const SPARSE: usize = 8;
const SECOND_TILES: std::ops::RangeInclusive<usize> = 3..=4;
const SECOND_PART_OF_CHUNK: usize = 6;
/// Values of a chunk at most whose first sample for `planes` is one tile, put together of quarters; and of one that is
/// all sample, for a tile would be most of it.
const SMALL_CHUNK_VALUES: usize = 4 * LORENZO_TILE;
const ALL_VALUES: usize = PLANES_TILE * 3 / 2;
/// What tiles of planes are filled up with at the chunk's border takes this part of what as many values do.
const FILLING: u128 = 4;
/// Bytes of a frame before a codec's first section, about.
const FRAME_BYTES: u64 = 100;
/// Part k is at k times these fractions (over 2^64, modulo 1) of the axes: powers of 1 / g, g^4 = g + 1, whose
/// multiples fill a box evenly, however many are taken.
const PLACES: [u64; 3] = [0x8CB9_2BA7_2F3D_8DD7, 0xABC9_8388_FB8F_AC02, 0xD1B5_4A32_D192_ED03];

/// How much of a chunk is looked at: the first two one after the other, until it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Looked {
    /// As much as says enough of most chunks.
    AtFirst,
    /// All that may be.
    AtAll,
    /// As much as says enough of what is coded without loss.
    WithoutLoss,
}

impl Looked {
    pub const EACH: [Looked; 2] = [Looked::AtFirst, Looked::AtAll];
}

/// Parts of a chunk, alike, one behind the other: an array of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Extents of a part, slowest first, and the axis along which the parts are stacked.
    pub part: [usize; 3],
    pub(crate) axis: usize,
    /// Values from one to the next along each axis of the chunk.
    pub steps: [usize; 3],
    /// Places in the chunk of the parts' first values.
    pub starts: Vec<usize>,
}

impl Stack {
    /// Extents of the stack.
    pub(crate) fn extents(&self) -> [usize; 3] {
        std::array::from_fn(|k| if k == self.axis { self.starts.len() * self.part[k] } else { self.part[k] })
    }

    /// Values of the stack.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.starts.len() * self.part.iter().product::<usize>()
    }

    /// Values from one to the next along each axis of the stack, and from a part to the next.
    pub fn own_steps(&self) -> ([usize; 3], usize) {
        let [_, b, c] = self.extents();
        let steps = [b * c, c, 1];
        (steps, self.part[self.axis] * steps[self.axis])
    }

    /// Copies the stack's values, `size` bytes each, out of a chunk.
    pub(crate) fn gather(&self, chunk: &[u8], size: usize, out: &mut [u8]) {
        let ([a, b, c], (to_steps, to_part)) = (self.part, self.own_steps());
        for (k, &start) in self.starts.iter().enumerate() {
            for (z, y) in (0..a).flat_map(|z| (0..b).map(move |y| (z, y))) {
                let from = start + z * self.steps[0] + y * self.steps[1];
                let row = &mut out[(k * to_part + z * to_steps[0] + y * to_steps[1]) * size..][..c * size];
                match self.steps[2] {
                    1 => row.copy_from_slice(&chunk[from * size..][..c * size]),
                    step => row.chunks_exact_mut(size).enumerate().for_each(|(x, to)| {
                        to.copy_from_slice(&chunk[(from + x * step) * size..][..size]);
                    }),
                }
            }
        }
    }

    /// Params of the stack as a chunk, under this request.
    fn params(&self, chunk: &Params, request: Request) -> Option<Params> {
        let extents = Extents::new(&self.extents().map(|n| n as u64))?;
        Some(Params { request, extents, ..*chunk })
    }
}

/// What the candidates encode of any chunk with the same params.
pub struct Sample {
    pub stacks: Vec<Stack>,
    /// The number of each candidate's stack; `None`: the whole chunk.
    pub of: [Option<usize>; 3],
    /// Values that tiles of planes are filled up with at the chunk's border, where the chunk is not all sample.
    filling: usize,
    /// Whether there is no more to look at.
    pub(crate) is_all: bool,
}

/// In which order candidates come.
pub const LOSSLESS: usize = 0;
pub(crate) const FAST: usize = 1;
pub(crate) const LORENZO: usize = 2;

/// What each candidate is asked where this is asked of the writer.
pub fn requests(asked: Request) -> [Request; 3] {
    let fast = if asked.bound.mode() == Mode::PointwiseRelative { Codec::Szx } else { Codec::Planes };
    let [fast, lorenzo] = [fast, Codec::Lorenzo].map(|codec| Request { codec, ..asked });
    [Request::new(Codec::Planes, Bound::Lossless), fast, lorenzo]
}

impl Sample {
    /// The sample of a chunk. `None` where no memory holds the chunk.
    pub fn new(params: &Params, looked: Looked) -> Option<Sample> {
        let extents = params.extents.as_slice();
        let (grid, shape) = (Grid::new(extents, LORENZO_TILE)?, Shape::for_extents(extents)?);
        let n: usize = grid.extents().iter().product();
        let (part_of_chunk, tiles, cuts) = match looked {
            Looked::AtFirst => (FIRST_PART_OF_CHUNK, FIRST_TILES, QUARTERS),
            Looked::WithoutLoss if extents.len() > 1 && grid.tiles() >= SPARSE => (SPARSE, FIRST_TILES, QUARTERS),
            _ => (SECOND_PART_OF_CHUNK, SECOND_TILES, 1),
        };
        let tiles = (grid.tiles() / part_of_chunk).clamp(*tiles.start(), *tiles.end());
        if n <= tiles * LORENZO_TILE {
            return Some(Sample::of_all());
        }
        let places: Vec<Place> = (0..tiles * cuts).map(|k| Place::new(&grid, k)).collect();
        let szx = params.request.bound.mode() == Mode::PointwiseRelative;
        let (mut stacks, mut of) = (Vec::new(), [Some(0); 3]);
        match shared(&grid, &shape) {
            Some(part) => stacks.push(of_grid(&grid, part, &places, cuts)),
            None => {
                let planes = of_planes(&shape, &places, cuts);
                stacks.extend([planes, of_grid(&grid, grid.tile_sides(), &places, cuts)]);
                of[LORENZO] = Some(1);
            }
        }
        if szx {
            of[FAST] = Some(stacks.len());
            let starts = places.iter().map(|place| place.begin.min(n - LORENZO_TILE)).collect();
            stacks.push(Stack { part: [1, 1, LORENZO_TILE], axis: 2, steps: [n, n, 1], starts });
        }
        let filling = shape.grid.tiles() * PLANES_TILE - n;
        Some(Sample { stacks, of, filling, is_all: looked != Looked::AtFirst })
    }

    /// The sample by which a codec under a bound is chosen. Of a small chunk `lorenzo`, which is mostly taken, encodes
    /// all at once, and so does szx; `planes` encodes parts that are a tile together. All of it is looked at before
    /// anything but `lorenzo` is taken.
    pub fn under_a_bound(params: &Params, looked: Looked) -> Option<Sample> {
        let extents = params.extents.as_slice();
        let (grid, shape) = (Grid::new(extents, LORENZO_TILE)?, Shape::for_extents(extents)?);
        match grid.extents().iter().product::<usize>() {
            n if n > SMALL_CHUNK_VALUES => Sample::new(params, looked),
            n if n < ALL_VALUES || looked == Looked::AtAll => Some(Sample::of_all()),
            n => {
                let is_szx = params.request.bound.mode() == Mode::PointwiseRelative;
                let of = [Some(0), Some(0).filter(|_| !is_szx), None];
                let filling = shape.grid.tiles() * PLANES_TILE - n;
                Some(Sample { stacks: vec![of_a_tile(&grid, &shape)], of, filling, is_all: false })
            }
        }
    }

    /// All of a chunk.
    pub fn of_all() -> Sample {
        Sample { stacks: Vec::new(), of: [None; 3], filling: 0, is_all: true }
    }

    /// Whether `lorenzo` encodes all of the chunk.
    pub(super) fn is_of_small(&self) -> bool {
        self.of[LORENZO].is_none()
    }

    /// What is tried without loss then.
    pub fn for_trial(self) -> Sample {
        if self.is_of_small() { Sample::of_all() } else { self }
    }

    /// What a candidate's encoder is told under this request: the params of its stack, or of the chunk.
    pub fn params(&self, chunk: &Params, candidate: usize, request: Request) -> Option<Params> {
        self.of[candidate].map_or(Some(Params { request, ..*chunk }), |k| self.stacks[k].params(chunk, request))
    }

    /// The values of each stack of a chunk, `size` bytes each.
    pub(crate) fn gather(&self, raw: &[u8], size: usize, threads: usize) -> Result<Vec<Vec<u8>>> {
        parallel::try_map(self.stacks.len(), threads, |k| {
            let mut values = memory::zeros(self.stacks[k].len() * size)?;
            self.stacks[k].gather(raw, size, &mut values);
            Ok(values)
        })
    }

    /// Length of the frame by candidate `k` of a chunk of `values` values in `raw_len` bytes, extrapolated from `len`,
    /// the length of its sample's frame.
    pub(super) fn whole(&self, k: usize, len: u64, values: usize, raw_len: usize) -> u128 {
        self.extrapolated(k, len, self.filling(k), values, raw_len)
    }

    /// The same of any codec of numbers that `k` has the sample of, whose tiles the chunk fills.
    pub(super) fn whole_without(&self, k: usize, len: u64, values: usize, raw_len: usize) -> u128 {
        self.extrapolated(k, len, 0, values, raw_len)
    }

    fn extrapolated(&self, k: usize, len: u64, filling: usize, values: usize, raw_len: usize) -> u128 {
        let (raw, seen) = (u128::from(FRAME_BYTES) + raw_len as u128, self.len(k, values));
        // What is stored instead.
        if len >= (seen * (raw_len / values) + STORED_HEADER) as u64 {
            return raw;
        }
        let len = u128::from(len.saturating_sub(FRAME_BYTES)) * values as u128 / seen as u128;
        (u128::from(FRAME_BYTES) + len + len * filling as u128 / (FILLING * values as u128)).min(raw)
    }

    /// Values that a candidate encodes at the chunk's border besides.
    fn filling(&self, candidate: usize) -> usize {
        if self.of[candidate] == self.of[LOSSLESS] && candidate != LORENZO { self.filling } else { 0 }
    }

    /// Values of a candidate's sample of a chunk of `n`.
    pub fn len(&self, candidate: usize, n: usize) -> usize {
        self.of[candidate].map_or(n, |stack| self.stacks[stack].len())
    }
}

/// A place of the chunk, and those of the first value and of the middle of the tile of lorenzo's around it.
struct Place {
    at: [usize; 3],
    begin: usize,
    middle: usize,
}

impl Place {
    fn new(grid: &Grid, k: usize) -> Place {
        let extents = grid.extents();
        let at = std::array::from_fn(|d| {
            let place = (k as u64 + 1).wrapping_mul(PLACES[d]);
            ((u128::from(place) * extents[d] as u128) >> 64) as usize
        });
        let tile = grid.tile(grid.tile_with(at));
        let [a, b, c] = tile.extents;
        Place { at, begin: grid.row(&tile, 0, 0), middle: grid.row(&tile, a / 2, b / 2) + c / 2 }
    }
}

/// Extents of parts that are for lorenzo and for planes. `None`: tiles of planes do not fill what is like a tile of
/// lorenzo's.
fn shared(grid: &Grid, shape: &Shape) -> Option<[usize; 3]> {
    let (extents, sides) = (grid.extents(), shape.grid.tile_sides());
    if shape.is_of_components() || shape.grid.extents() != extents {
        return None;
    }
    let fills = |part: &[usize; 3]| {
        (0..3).all(|k| part[k] == extents[k] || part[k] < extents[k] && part[k].is_multiple_of(sides[k]))
    };
    let alike = [sides[0], sides[1], (LORENZO_TILE / sides[0] / sides[1]).min(extents[2])];
    [grid.tile_sides(), alike].into_iter().find(fills)
}

/// Parts of a grid of the chunk's own order around these places, each the `cuts`th part of such a box.
fn of_grid(grid: &Grid, part: [usize; 3], places: &[Place], cuts: usize) -> Stack {
    let extents = grid.extents();
    let [_, b, c] = extents;
    let steps = [b * c, c, 1];
    let (part, axis) = cut(extents, part, cuts);
    let mut starts: Vec<usize> = Vec::new();
    for place in places {
        // None twice: what repeats in a sample is thought to repeat in the chunk.
        let mut at = place.at;
        for _ in 0..extents[axis].div_ceil(part[axis]) {
            if !starts.contains(&start(extents, part, steps, at)) {
                break;
            }
            at[axis] = (at[axis] + part[axis]) % extents[axis];
        }
        starts.push(start(extents, part, steps, at));
    }
    Stack { part, axis, steps, starts }
}

/// Tiles of planes around these places, or the `cuts`th part of each, as many of each component.
fn of_planes(shape: &Shape, places: &[Place], cuts: usize) -> Stack {
    let (extents, components) = shape.of_one_component();
    let sides = shape.grid.tile_sides();
    let part: [usize; 3] = std::array::from_fn(|k| sides[k].min(extents[k]));
    let (part, axis) = cut(extents, part, cuts);
    let [_, b, c] = extents;
    let steps = [b * c * components, c * components, components];
    let tiles = places.iter().flat_map(|place| [place.begin, place.middle]).enumerate();
    let tiles = tiles.map(|(k, at)| {
        let at = at / components;
        let at = [at / c / b, at / c % b, at % c];
        // Components may differ as much as places do.
        start(extents, part, steps, at) + k * components / (2 * places.len())
    });
    let mut starts: Vec<usize> = tiles.collect();
    starts.dedup();
    Stack { part, axis, steps, starts }
}

/// Parts of a small chunk that are a tile of planes together, none of them twice, as many of each component.
fn of_a_tile(grid: &Grid, shape: &Shape) -> Stack {
    let (extents, components) = shape.of_one_component();
    let sides = shape.grid.tile_sides();
    let (part, axis) = cut(extents, std::array::from_fn(|k| sides[k].min(extents[k])), QUARTERS);
    let [_, b, c] = extents;
    let steps = [b * c * components, c * components, components];
    let many = (PLANES_TILE / part.iter().product::<usize>()).max(1);
    let [_, rows, row] = grid.extents();
    let mut starts: Vec<usize> = Vec::new();
    for k in 0..many {
        let [z, y, x] = Place::new(grid, k).at;
        let value = ((z * rows + y) * row + x) / components;
        let mut at = [value / c / b, value / c % b, value % c];
        let own = |at| start(extents, part, steps, at) + k * components / many;
        for _ in 0..extents[axis].div_ceil(part[axis]) {
            if !starts.contains(&own(at)) {
                starts.push(own(at));
                break;
            }
            at[axis] = (at[axis] + part[axis]) % extents[axis];
        }
    }
    Stack { part, axis, steps, starts }
}

/// A box of these extents, or the `cuts`th part of it, and the axis along which such are stacked, which is where it is
/// cut.
fn cut(extents: [usize; 3], mut part: [usize; 3], cuts: usize) -> ([usize; 3], usize) {
    let axis = along(extents, part);
    if part[axis].is_multiple_of(cuts) {
        part[axis] /= cuts;
    }
    (part, axis)
}

/// The place of the first value of the part around `at`: one of those that fill the chunk from its first value on, or
/// the last one that lies in it whole.
fn start(extents: [usize; 3], part: [usize; 3], steps: [usize; 3], at: [usize; 3]) -> usize {
    (0..3).map(|k| (at[k] / part[k] * part[k]).min(extents[k] - part[k]) * steps[k]).sum()
}

/// The slowest axis along which there is more than a part.
fn along(extents: [usize; 3], part: [usize; 3]) -> usize {
    (0..3).find(|&k| part[k] < extents[k]).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Dtype;

    const RANKS: [&[u64]; 21] = [
        &[8192],
        &[128, 128],
        &[18, 19, 20],
        &[16, 32, 17],
        &[40_000],
        &[1 << 20],
        &[500, 400],
        &[40, 31_680],
        &[33, 2000],
        &[100_000, 16],
        &[40, 50, 60],
        &[3, 200, 300],
        &[100, 4, 300],
        &[6, 14, 5000],
        &[2, 3, 50, 40, 40],
        &[60_000, 3],
        &[4000, 15],
        &[300, 200, 2],
        &[20, 60, 70, 3],
        &[3000, 3, 13],
        &[2; 17],
    ];

    /// Samples, and into how many parts their boxes are cut.
    fn samples(bound: Bound) -> impl Iterator<Item = (Params, Sample, usize)> {
        let all = RANKS.into_iter().flat_map(|dims| Looked::EACH.map(|looked| (dims, looked)));
        all.map(move |(dims, looked)| {
            let params = Params::new(Request::new(Codec::Auto, bound), Dtype::F32, dims).unwrap();
            let sample = Sample::under_a_bound(&params, looked).unwrap();
            (params, sample, if looked == Looked::AtFirst { QUARTERS } else { 1 })
        })
    }

    #[test]
    fn every_part_lies_in_the_chunk_and_fills_tiles() {
        for (params, sample, cuts) in
            [Bound::Absolute(1.0), Bound::PointwiseRelative(0.1)].into_iter().flat_map(samples)
        {
            let n = params.extents.count().unwrap() as usize;
            for stack in &sample.stacks {
                let last: usize = (0..3).map(|k| (stack.part[k] - 1) * stack.steps[k]).sum();
                assert!(stack.starts.iter().all(|start| start + last < n), "{params:?} {stack:?}");
                assert!(stack.len() <= n && stack.starts.len() >= 3, "{params:?} {stack:?}");
                let is_new = |k: &usize| !stack.starts[..*k].contains(&stack.starts[*k]);
                assert!(!sample.is_of_small() || (0..stack.starts.len()).all(|k| is_new(&k)), "{params:?} {stack:?}");
            }
            let own = |k: usize| sample.params(&params, k, params.request).unwrap();
            let (lorenzo, planes) = (own(LORENZO), own(LOSSLESS));
            let tile = |p: &Params| Grid::new(p.extents.as_slice(), LORENZO_TILE).unwrap().tile_sides();
            if let Some(k) = sample.of[LORENZO] {
                let stack = &sample.stacks[k];
                let like = tile(&lorenzo).iter().product::<usize>();
                assert!(like * 2 > LORENZO_TILE, "{params:?}");
                let side = tile(&lorenzo)[stack.axis];
                assert!((cuts * stack.part[stack.axis]).is_multiple_of(side), "{params:?} {stack:?}");
            }
            if let Some(k) = sample.of[LOSSLESS] {
                let stack = &sample.stacks[k];
                let [of_chunk, of_stack] =
                    [&params, &planes].map(|p| Shape::for_extents(p.extents.as_slice()).unwrap());
                assert_eq!(of_stack.grid.tile_sides(), of_chunk.grid.tile_sides(), "{params:?}");
                let side = of_stack.grid.tile_sides()[stack.axis];
                assert!(!of_stack.is_of_components(), "{params:?}");
                // Where a component has fewer values than a tile, all of them are a part.
                let (one, _) = of_chunk.of_one_component();
                let mut uncut = stack.part;
                uncut[stack.axis] *= cuts;
                let fills = uncut[stack.axis].is_multiple_of(side) || uncut == one || stack.part == one;
                assert!(fills, "{params:?} {stack:?}");
            }
        }
    }

    #[test]
    fn stacks_have_the_values_of_their_parts() {
        for (params, sample, _) in samples(Bound::PointwiseRelative(0.1)) {
            let n = params.extents.count().unwrap() as u32;
            let chunk: Vec<u8> = (0..n).flat_map(u32::to_le_bytes).collect();
            for stack in &sample.stacks {
                let mut out = vec![0; stack.len() * 4];
                stack.gather(&chunk, 4, &mut out);
                let ([_, b, c], (own, part)) = (stack.part, stack.own_steps());
                for (k, start) in stack.starts.iter().enumerate() {
                    for i in 0..stack.part.iter().product() {
                        let at = [i / c / b, i / c % b, i % c];
                        let place = |steps: [usize; 3]| (0..3).map(|d| at[d] * steps[d]).sum::<usize>();
                        let got = u32::from_le_bytes(*out[4 * (k * part + place(own))..].first_chunk().unwrap());
                        assert_eq!(got as usize, start + place(stack.steps), "{params:?} {stack:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn chunks_of_a_few_tiles_are_all_sample() {
        let params = |dims: &[u64]| Params::new(Request::default(), Dtype::F32, dims).unwrap();
        for (dims, at_first) in [(&[6143][..], true), (&[6144], false), (&[2, 2], true), (&[78, 78], true), (&[], true)]
        {
            let [first, all] = Looked::EACH.map(|looked| Sample::under_a_bound(&params(dims), looked).unwrap());
            assert_eq!((first.is_all, all.is_all), (at_first, true), "{dims:?}");
            assert!(first.is_of_small() && all.stacks.is_empty(), "{dims:?}");
        }
        for dims in [&[32_768][..], &[32_769], &[181, 181], &[182, 182]] {
            let is_small = dims.iter().product::<u64>() <= 32_768;
            for looked in Looked::EACH {
                let sample = Sample::under_a_bound(&params(dims), looked).unwrap();
                assert_eq!(sample.is_of_small(), is_small, "{dims:?}");
                let len = sample.len(LOSSLESS, 0);
                assert!(!is_small || sample.is_all || (PLANES_TILE * 7 / 8..=PLANES_TILE).contains(&len), "{dims:?}");
            }
        }
        for dims in [&[24_576][..], &[24_577], &[156, 157]] {
            let sample = Sample::new(&params(dims), Looked::AtAll).unwrap();
            assert_eq!(sample.stacks.is_empty(), dims.iter().product::<u64>() <= 24_576, "{dims:?}");
        }
    }
}
