// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec keeps a chunk of numbers of 4 or 8 bytes without loss where the user leaves it to the writer.
//!
//! ```text
//! candidates   planes   predicts each number from its neighbours
//!              lorenzo  does so too, with an entropy coder behind: integers
//!              bytes    finds what repeats: where every fourth number of a sample occurred before, or the last byte
//!                       of floats is not random: they were rounded. Of floats the frequent one is not counted, and
//!                       those that have a unit are not tried
//!              scaled   whole numbers times a unit (scaled/find.rs), by planes, by lorenzo, or by bytes where few of
//!                       them differ; or those of their differences that have the fewest bits, by bytes, along a line
//!                       by the others too; the same with corrections, where more numbers are multiples then; bits
//!                       of floats, by planes, where one number is frequent, and by planes or lorenzo, where second
//!                       differences of them are shorter than first ones; a dictionary of floats, by lorenzo, where
//!                       one in 16 of a sample occurred before, and an estimate by those that it has once says that it
//!                       is shorter than by a unit, or no more than half longer than by another one
//! sample       of planes tiles, as in sample.rs; of bytes as many numbers in runs, or fewer. All of a chunk of three
//!              tiles or less. Differences are taken of each run by itself
//! rule         planes, unless another one makes the sample shorter: by 1/50 if it codes by planes. lorenzo is half as
//!              fast: it has to be shorter by 1/32, but by a sample, whose seams lengthen it, may be longer by 1/80;
//!              there it has to be shorter than planes by 1/50, and no longer than that of the same whole numbers,
//!              unless the sample is 64 times smaller by lorenzo, for its few bytes say little; bytes, several times as
//!              slow, by 1/16, of floats by 1/8; a dictionary, slower still, by 1/5, and by another 1/4 where bytes is
//!              best, which finds more farther away than in a sample; corrections, a second frame, by 1/20. Beside
//!              these a dictionary may be 1/13 longer. A part of the sample is coded by bytes first: if it is half
//!              larger than the best so far, that is all. Whole numbers and differences are coded by bytes where
//!              differences have no more bits than the best so far has bytes for, or where most repeat in rows; a
//!              dictionary where its share is not twice as much as the best so far
//! ```
//!
//! For floats that cannot be kept as their sample said there is another choice, without a unit. A chunk that cannot be
//! kept then goes to planes.

use super::chunk::Chunk;
use super::kept::{Inner, Kept, Map, Scale, Way};
use super::look::{Chosen, Look};
use super::lorenzo::integers;
use super::sample::{LOSSLESS, Looked, Sample, Stack};
use super::scaled::Found;
use super::{bytes, planes, scaled};
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::frame::STORED_HEADER;
use crate::params::{Bound, Class, Codec, Extents, Params, Request};

/// Fewer numbers go to planes unseen.
const SMALL_CHUNK_VALUES: usize = 256;
/// Runs of numbers that `bytes` and differences are tried on, at most, and at least where they are of whole rows; rows
/// of such a run, at least.
const SAMPLE_RUNS: usize = 16;
const RUNS_OF_ROWS: usize = 3;
const ROWS: usize = 8;
/// Of a small chunk runs are an eighth, or a tile's numbers: what repeats takes most of the time of choosing.
const PART_OF_RUNS: usize = 8;
/// Numbers in a row among which repeated ones are counted, in each of `COUNTS` parts of a sample.
const COUNTED_VALUES: usize = 4096;
const COUNTS: usize = 4;
/// 256ths of them that say that `bytes` may find what repeats, and that a dictionary of floats may have few.
const REPEATED: usize = 64;
const REPEATED_FLOATS: usize = 16;
/// Last bytes with the entropy of this many equally frequent bytes, or less, are not random.
const EQUAL_BYTES: usize = 128;
/// One run in four is looked at for whether numbers are smooth.
const SMOOTH: usize = 4;
/// What a byte counts by a dictionary, where one by planes counts 800; where `bytes` is best, which finds more farther
/// away than in a sample; and where corrections are best, which are slow too.
const DICTIONARY: u64 = 1000;
const FAR: u64 = DICTIONARY * 4 / 3;
const BESIDE_CORRECTED: u64 = 780;
/// What a byte counts by lorenzo of a sample, whose seams make it longer.
const SEAMED: u64 = 790;
/// The same beside planes of the same numbers, and how many times smaller a sample says little of the two.
const BESIDE_PLANES: u64 = 816;
const LITTLE: u64 = 64;
/// What a byte counts with corrections, which are another frame to write and to read.
const CORRECTED: u64 = 840;
/// Bytes of a frame that do not grow with the chunk, about.
const FRAME_BYTES: usize = 80;

/// Whether the writer must choose a lossless codec for this chunk of `raw_len` bytes.
pub(crate) fn is_open(params: &Params, raw_len: usize) -> bool {
    let dtype = params.dtype;
    let is_number = dtype.is_ieee() || dtype.class == Class::Integer && matches!(dtype.size, 4 | 8);
    let asked = params.request.codec;
    is_number
        && !matches!(asked, Codec::Ndzip | Codec::Planes)
        && !params.lossy(raw_len)
        && params.fits(raw_len)
        && (raw_len / usize::from(dtype.size) >= SMALL_CHUNK_VALUES || Kept::settled(params).is_some())
}

/// What is looked at of a chunk: a stack of tiles, and runs of numbers, of whole rows where rows are short.
pub(crate) struct Tiles {
    sample: Sample,
    /// Number of the stack in the sample; `None`: all of the chunk is looked at.
    stack: Option<usize>,
    /// Numbers of a run, and where each begins: none where tiles are runs.
    run: usize,
    starts: Vec<usize>,
    /// Whether a unit may be looked for.
    with_scale: bool,
}

impl Tiles {
    /// `None` where no memory holds the chunk.
    pub(crate) fn new(params: &Params, raw_len: usize) -> Option<Tiles> {
        let sample = Sample::new(params, Looked::WithoutLoss)?;
        let stack = sample.of[LOSSLESS].filter(|_| !sample.stacks.is_empty());
        let (mut run, mut starts) = (0, Vec::new());
        if let Some(stack) = stack.filter(|_| !is_line(params)) {
            let n = raw_len / usize::from(params.dtype.size);
            let most = sample.stacks[stack].len();
            let seen = most.min((n / PART_OF_RUNS).max(LORENZO_TILE));
            let row = params.extents.as_slice().last().map_or(1, |&x| x as usize);
            let rows = (seen / SAMPLE_RUNS).div_ceil(row).max(ROWS);
            let unit = if rows * row > most { 1 } else { row };
            run = if unit == 1 { seen / SAMPLE_RUNS } else { rows * row };
            let runs = (seen / run).max(RUNS_OF_ROWS);
            starts = (0..runs).map(|k| (n - run) * (2 * k + 1) / (2 * runs) / unit * unit).collect();
        }
        Some(Tiles { sample, stack, run, starts, with_scale: true })
    }
}

impl Look for Tiles {
    fn stacks(&self) -> Vec<&Stack> {
        self.stack.iter().map(|&k| &self.sample.stacks[k]).collect()
    }

    fn runs(&self) -> (usize, &[usize]) {
        (self.run, &self.starts)
    }

    fn choose_with_frame(&self, params: &Params, seen: &[u8], threads: usize) -> Result<Chosen> {
        let size = usize::from(params.dtype.size);
        let tiles = self.stack.map_or(seen.len(), |k| self.sample.stacks[k].len() * size);
        let stacked = self.sample.params(params, LOSSLESS, params.request).unwrap_or(*params);
        let (tiles, runs) = seen.split_at(tiles);
        let runs = if runs.is_empty() { tiles } else { runs };
        let run = match self.stack {
            None => runs.len(),
            Some(_) if is_line(params) => LORENZO_TILE * size,
            Some(_) => self.run * size,
        };
        let tried = Try { params, stacked: &stacked, tiles, runs, run, threads, with_scale: self.with_scale };
        tried.choose()
    }
}

/// Whether a chunk has one axis.
fn is_line(params: &Params) -> bool {
    params.extents.as_slice().len() <= 1
}

/// The candidates are tried on these bytes.
struct Try<'a> {
    params: &'a Params,
    /// Params of the tiles as a chunk.
    stacked: &'a Params,
    tiles: &'a [u8],
    /// Runs of `run` bytes.
    runs: &'a [u8],
    run: usize,
    threads: usize,
    /// Whether a unit may be looked for.
    with_scale: bool,
}

impl Try<'_> {
    fn choose(&self) -> Result<Chosen> {
        let is_float = self.params.dtype.class == Class::Float;
        let found = scaled::find(self.params, &scaled::looked_at(self.runs, self.params.dtype.size.into()));
        let ordered = found.ordered;
        // What is frequent in floats has a code of its own: only others are for bytes.
        let ends_at = ordered.unit.trailing_zeros();
        let alike = Alike::count(self.params, self.runs, ordered.special.filter(|_| is_float), ends_at)?;
        let repeats = alike.again >= REPEATED;
        let scale = found.multiples.filter(|_| self.with_scale);
        let way = |scale, order, inner| Kept::Scaled(Way { scale, order, inner });
        let with_unit = scale.filter(|scale| !scale.is_plain());
        let corrected = found.corrected.filter(|_| self.with_scale);
        let mut candidates = vec![Kept::Planes];
        candidates.extend((!is_float).then_some(Kept::Lorenzo));
        // As whole numbers floats are fewer bytes to repeat.
        let has_unit = with_unit.is_some() && !found.has_many_exceptions;
        let for_bytes = if is_float { !has_unit && (repeats || alike.few_ends) } else { repeats };
        candidates.extend(for_bytes.then_some(Kept::Bytes));
        for scale in [with_unit, corrected].into_iter().flatten() {
            candidates.extend([Inner::Planes, Inner::Lorenzo].map(|inner| way(scale, 0, inner)));
            candidates.extend(repeats.then_some(way(scale, 0, Inner::Bytes)));
        }
        let mut candidates: Vec<(Kept, u64)> = candidates.into_iter().map(|kept| (kept, u64::MAX)).collect();
        let differenced = [scale.or((!is_float).then_some(Scale::WHOLE)), corrected];
        for scale in differenced.into_iter().flatten() {
            let all = [Inner::Bytes, Inner::Planes, Inner::Lorenzo];
            let inner = if is_line(self.params) { &all[..] } else { &all[..1] };
            if let Some((bits, order)) = self.shortest_order(scale)? {
                candidates.extend(inner.iter().map(|inner| (way(scale, order, *inner), bits)));
            }
        }
        if is_float && ordered.special.is_some() {
            candidates.push((way(ordered, 0, Inner::Planes), u64::MAX));
        }
        let is_smooth = is_float && scaled::is_smooth(self.params, self.runs.chunks(self.run).step_by(SMOOTH));
        let for_dictionary =
            is_float && self.with_scale && alike.again >= REPEATED_FLOATS && (with_unit.is_none() || !found.is_full);
        if candidates.len() == 1 && !is_smooth && !for_dictionary {
            return Ok(Kept::Planes.into());
        }
        let mut best = Best { cost: u64::MAX, by_planes: u64::MAX, chosen: Kept::Planes.into() };
        for (kept, bits) in candidates {
            self.weigh(kept, bits, &mut best)?;
        }
        let n = self.params.extents.count().unwrap_or(u64::MAX);
        let size = u64::from(self.params.dtype.size);
        let is_by_unit = matches!(best.chosen.kept, Kept::Scaled(way) if Some(way.scale) == with_unit);
        // An estimate is mostly less than a dictionary takes: half as much again as the best is too much, and as much
        // where a unit is the best.
        let most = if is_by_unit { best.cost / 800 } else { best.cost / 800 * 3 / 2 };
        if for_dictionary && found.is_few(self.tiles.len() as u64 / size, size, most) {
            let dictionary = Scale { special: ordered.special, ..Scale::DICTIONARY };
            let weight = match best.chosen.kept {
                Kept::Bytes => FAR,
                Kept::Scaled(way) if way.scale.corrected => BESIDE_CORRECTED,
                _ => DICTIONARY,
            };
            let sample = self.chunk(self.stacked, self.tiles);
            let len = scaled::dictionary_len(&sample, dictionary, n, best.cost / weight)?.unwrap_or(u64::MAX);
            best.take(len.saturating_mul(weight), way(dictionary, 0, Inner::Lorenzo).into());
        }
        if is_smooth {
            // planes and lorenzo take differences of these again. Where planes loses a sixteenth, lorenzo does too.
            let orders = if is_line(self.params) { [1, 2] } else { [2, 3] };
            let most = best.cost.saturating_add(best.cost / 16);
            let lower = self.weigh(way(ordered, orders[0], Inner::Planes), u64::MAX, &mut best)?;
            if lower <= most {
                let higher = self.weigh(way(ordered, orders[1], Inner::Planes), u64::MAX, &mut best)?;
                let order = orders[usize::from(higher < lower)];
                best.by_planes = lower.min(higher);
                self.weigh(way(ordered, order, Inner::Lorenzo), u64::MAX, &mut best)?;
            }
        }
        Ok(best.chosen)
    }

    /// What a candidate costs, which becomes the best one if that is least. Differences have these bits; `u64::MAX`:
    /// there are none, or their bits do not matter.
    fn weigh(&self, kept: Kept, bits: u64, best: &mut Best) -> Result<u64> {
        let weight = match kept {
            Kept::Planes | Kept::Shortest => 800,
            Kept::Scaled(Way { scale: Scale { corrected: true, .. }, .. }) => CORRECTED,
            Kept::Scaled(Way { inner: Inner::Planes, .. }) => 816,
            Kept::Lorenzo | Kept::Scaled(Way { inner: Inner::Lorenzo, .. }) if self.is_whole() => 825,
            Kept::Lorenzo | Kept::Scaled(Way { inner: Inner::Lorenzo, .. }) => SEAMED,
            _ if self.params.dtype.class == Class::Float => 914,
            _ => 853,
        };
        let most = best.cost / weight;
        if let Kept::Scaled(way @ Way { inner: Inner::Bytes, .. }) = &kept
            && best.cost < u64::MAX
            && !self.is_for_bytes(way, bits, most)?
        {
            return Ok(u64::MAX);
        }
        let more = if weight == CORRECTED { FRAME_BYTES as u64 } else { 0 };
        let (len, frame) = self.len(&kept, most)?;
        let cost = len.map_or(u64::MAX, |len| (len + more) * weight);
        match kept {
            Kept::Planes | Kept::Scaled(Way { inner: Inner::Planes, .. }) => best.by_planes = cost,
            _ if weight == SEAMED => {
                let says_much = |len: &u64| len * LITTLE > self.tiles.len() as u64;
                if len.filter(says_much).is_some_and(|len| len * BESIDE_PLANES > best.by_planes) {
                    return Ok(cost);
                }
            }
            _ => {}
        }
        best.take(cost, Chosen { kept, frame });
        Ok(cost)
    }

    /// The fewest bits that differences take, and their order; `None`: not one can be taken.
    fn shortest_order(&self, scale: Scale) -> Result<Option<(u64, u8)>> {
        let mut best = None;
        for &order in &scale.map.orders()[1..] {
            let way = Way { scale, order, inner: Inner::Bytes };
            let bits = self.with_runs(|runs| scaled::bits(runs, &way))?;
            best = best.into_iter().chain(bits.map(|bits| (bits, order))).min();
        }
        Ok(best)
    }

    /// Whether `bytes` may take no more than `most` bytes: of differences that have no more bits, or that repeat.
    fn is_for_bytes(&self, way: &Way, bits: u64, most: u64) -> Result<bool> {
        let is_short = bits < u64::MAX && self.of_tiles(bits / 8) <= most;
        Ok(is_short || self.with_runs(|runs| scaled::repeats(runs, way))?)
    }

    /// What the tiles take where runs take `len`.
    fn of_tiles(&self, len: u64) -> u64 {
        len * self.tiles.len() as u64 / self.runs.len() as u64
    }

    /// Bytes that as many numbers as the tiles have take so, but for what does not grow with them; `None`: they cannot
    /// be kept so. By `bytes` what a part says, where that is much more than `most`. And the frame, of a chunk that is
    /// all sample.
    fn len(&self, kept: &Kept, most: u64) -> Result<(Option<u64>, Option<Vec<u8>>)> {
        let most = u128::from(most) * self.runs.len() as u128 / self.tiles.len() as u128;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let stack = self.chunk(self.stacked, self.tiles);
        let rest = |len: usize| len.saturating_sub(FRAME_BYTES) as u64;
        let len = match kept {
            Kept::Bytes => Some(bytes::len(self.runs, self.params.dtype.size, most)?),
            Kept::Scaled(way) if way.inner == Inner::Bytes || way.order > 0 && is_line(self.params) => {
                self.with_runs(|runs| scaled::len(runs, way, most))?
            }
            Kept::Lorenzo if !self.is_whole() => return Ok((integers::frame_len(&stack, None)?.map(rest), None)),
            Kept::Scaled(way) if !self.is_whole() => {
                let len = scaled::frame_len(&stack, way)?.filter(|len| *len < stack.raw.len() + STORED_HEADER);
                return Ok((len.map(rest), None));
            }
            _ => {
                let mut out = Vec::new();
                let coded = encode_as(&stack, kept, &mut out)?;
                let len = coded.then(|| rest(out.len()));
                let is_frame = coded && self.is_whole() && out.len() < self.tiles.len() + STORED_HEADER;
                return Ok((len, is_frame.then_some(out)));
            }
        };
        Ok((len.map(|len| self.of_tiles(len)), None))
    }

    fn chunk<'a>(&self, params: &'a Params, raw: &'a [u8]) -> Chunk<'a> {
        Chunk { params, raw, threads: self.threads, used: None, kept: None }
    }

    /// Gives `of` the runs, each as a chunk of its own.
    fn with_runs<R>(&self, of: impl FnOnce(&[Chunk<'_>]) -> Result<R>) -> Result<R> {
        let row = self.params.extents.as_slice().last().map_or(1, |&x| u64::from(x));
        let extents = |raw: &[u8]| match (raw.len() / usize::from(self.params.dtype.size)) as u64 {
            _ if self.is_whole() => self.params.extents,
            n if !is_line(self.params) && n % row == 0 && n > row => {
                Extents::new(&[n / row, row]).unwrap_or_else(|| line(raw, self.params))
            }
            _ => line(raw, self.params),
        };
        let runs = self.runs.chunks(self.run);
        let params: Vec<Params> = runs.clone().map(|raw| Params { extents: extents(raw), ..*self.params }).collect();
        let runs: Vec<Chunk<'_>> = params.iter().zip(runs).map(|(params, raw)| self.chunk(params, raw)).collect();
        of(&runs)
    }

    /// Whether the sample is all of the chunk.
    fn is_whole(&self) -> bool {
        self.params.fits(self.tiles.len())
    }
}

/// The candidate whose cost is least.
struct Best {
    cost: u64,
    /// What the last one by planes costs.
    by_planes: u64,
    chosen: Chosen,
}

impl Best {
    fn take(&mut self, cost: u64, chosen: Chosen) {
        if cost < self.cost {
            *self = Best { cost, chosen, ..*self };
        }
    }
}

/// Extents of these bytes as one row.
fn line(raw: &[u8], params: &Params) -> Extents {
    Extents::new(&[(raw.len() / usize::from(params.dtype.size)) as u64]).unwrap_or_default()
}

/// What numbers of a sample have in common, but for one that is left out.
struct Alike {
    /// 256ths of them that occurred before, as far as a small table remembers.
    again: usize,
    /// Whether the last byte of them that varies is less than random: they were rounded, or made of rounded ones.
    few_ends: bool,
}

impl Alike {
    /// The last byte begins at bit `ends_at`.
    fn count(params: &Params, raw: &[u8], left_out: Option<u64>, ends_at: u32) -> Result<Alike> {
        let size = usize::from(params.dtype.size);
        let mut ends = [0usize; 256];
        let apart = (raw.len() / size).div_ceil(COUNTS).max(1) * size;
        let numbers = raw.chunks(apart).flat_map(|part| part.chunks_exact(size).take(COUNTED_VALUES));
        let words = numbers.map(|number| scaled::bits_of(params, number)).filter(|word| left_out != Some(*word));
        let words = words.inspect(|word| ends[(word >> ends_at) as usize % 256] += 1);
        let again = scaled::count_again(words, scaled::SLOTS)?;
        let count = ends.iter().sum::<usize>();
        // Pairs that are equal: 1 of 256 where all are as frequent.
        let pairs = ends.iter().map(|n| n * n).sum::<usize>();
        Ok(Alike { again: 256 * again / count.max(1), few_ends: pairs * EQUAL_BYTES > count * count })
    }
}

/// Bytes that a sample of a chunk of `n` floats takes by a dictionary, whose numbers that was found of; `None`: one is
/// not looked for.
pub(super) fn len_by_dictionary(sample: &Chunk<'_>, found: &Found, n: u64) -> Result<Option<u64>> {
    let special = found.ordered.special;
    let is_full = found.is_full && found.multiples.is_some_and(|scale| !scale.is_plain());
    if is_full || Alike::count(sample.params, sample.raw, special, 0)?.again < REPEATED_FLOATS {
        return Ok(None);
    }
    scaled::dictionary_len(sample, Scale { special, ..Scale::DICTIONARY }, n, u64::MAX)
}

/// Chooses how a chunk is coded without loss.
pub(crate) fn choose(chunk: &Chunk<'_>) -> Result<Chosen> {
    choose_with(chunk, true)
}

fn choose_with(chunk: &Chunk<'_>, with_scale: bool) -> Result<Chosen> {
    let Some(tiles) = Tiles::new(chunk.params, chunk.raw.len()) else { return Ok(Kept::Planes.into()) };
    let tiles = Tiles { with_scale, ..tiles };
    match tiles.stack {
        Some(_) => tiles.choose_with_frame(
            chunk.params,
            &tiles.gather(chunk.raw, chunk.params.dtype.size.into())?,
            chunk.threads,
        ),
        None => tiles.choose_with_frame(chunk.params, chunk.raw, chunk.threads),
    }
}

/// Encodes a chunk that is open. False: it is better stored.
pub(super) fn encode(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let known = chunk.kept.or(Kept::settled(chunk.params));
    if known.is_none() && chunk.params.request.codec == Codec::Small {
        return encode_shortest(chunk, out);
    }
    let mut kept = if let Some(kept) = known { kept } else { choose(chunk)?.kept };
    let mut coded = encode_as(chunk, &kept, out)?;
    if !coded && matches!(kept, Kept::Scaled(_)) && chunk.params.dtype.class == Class::Float {
        // The unit was one of the sample alone.
        out.clear();
        kept = choose_with(chunk, false)?.kept;
        coded = encode_as(chunk, &kept, out)?;
    }
    if coded || kept == Kept::Planes { Ok(coded) } else { encode_as(chunk, &Kept::Planes, out) }
}

/// Encodes a chunk in every way, and keeps the shortest frame. False: it is better stored.
fn encode_shortest(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let (params, is_float) = (chunk.params, chunk.params.dtype.class == Class::Float);
    let found = scaled::find(params, &scaled::looked_at(chunk.raw, params.dtype.size.into()));
    let mut scales = vec![if is_float { found.ordered } else { Scale::WHOLE }];
    scales.extend([found.multiples, found.corrected].into_iter().flatten().filter(|scale| !scale.is_plain()));
    let way = |scale, order, inner| Kept::Scaled(Way { scale, order, inner });
    let mut all = vec![Kept::Planes, Kept::Bytes];
    all.extend((!is_float).then_some(Kept::Lorenzo));
    for scale in scales {
        // As they are these are the codecs' own.
        let is_own = scale.is_plain() || scale.map == Map::Ordered && scale.special.is_none();
        all.extend([Inner::Lorenzo, Inner::Bytes].into_iter().filter(|_| !is_own).map(|inner| way(scale, 0, inner)));
        let differences =
            [1, 3].map(|order| [Inner::Lorenzo, Inner::Bytes, Inner::Planes].map(|i| way(scale, order, i)));
        all.extend(differences.into_iter().flatten());
        all.push(way(scale, 2, Inner::Lorenzo));
    }
    let dictionary = Scale { special: found.ordered.special, ..Scale::DICTIONARY };
    all.extend(is_float.then(|| way(dictionary, 0, Inner::Lorenzo)));
    let mut is_coded = false;
    let mut other = Vec::new();
    for kept in all {
        other.clear();
        if encode_as(chunk, &kept, &mut other)? && !(is_coded && out.len() <= other.len()) {
            std::mem::swap(out, &mut other);
            is_coded = true;
        }
    }
    Ok(is_coded)
}

/// Encodes a chunk so, whatever its request. False: it is better stored.
pub(super) fn encode_as(chunk: &Chunk<'_>, kept: &Kept, out: &mut Vec<u8>) -> Result<bool> {
    let params = Params { request: Request::new(Codec::Planes, Bound::Lossless), ..*chunk.params };
    let chunk = Chunk { params: &params, ..*chunk };
    match kept {
        Kept::Planes | Kept::Shortest => planes::ENCODE(&chunk, out),
        Kept::Lorenzo => integers::encode(&chunk, None, out),
        Kept::Bytes => bytes::ENCODE(&chunk, out),
        Kept::Scaled(way) => Ok(scaled::encode(&chunk, way, out)? && out.len() < chunk.raw.len() + STORED_HEADER),
    }
}
