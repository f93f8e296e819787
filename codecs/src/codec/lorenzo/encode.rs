// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tiles → plans → payloads, FORMAT.md §8, after cuSZ+ (CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047).
//!
//! ```text
//! for each tile, first pass
//!     quantise      values to quanta; a value that would not come back within the bound is an outlier
//!     select        the axes of Lorenzo prediction, by some of the rows
//!     predict       differences of the quanta along these axes are the residuals
//!     interpolate   where a sample says that it may pay: the residuals of interpolation from finer quanta instead,
//!                   kept if they cost less
//!     symbols       of the residuals, with runs of zeros; they are counted
//! between           the counts of all tiles make one codebook
//! for each tile, second pass
//!     outliers      their places and values
//!     store         residuals as codewords or with a fixed width, whichever is shorter; else the values as they are
//! ```
//!
//! After the first pass everything that a tile becomes is known but the codewords.

use super::format::{Class, Kind, Predictor};
use super::interpolated::Interpolate;
use super::{outliers, select};
use crate::bound::{Tolerance, Used};
use crate::constants::{LORENZO_FINE_BITS, LORENZO_LIMIT, LORENZO_LIMIT_F32, LORENZO_TILE};
use crate::error::Result;
use crate::memory;
use crate::scalar::{Bits, Scalar};
use crate::simd::vectorize;
use crate::stage::codebook::Lengths;
use crate::stage::estimate;
use crate::stage::huffman::{self, Encoder, Histogram};
use crate::stage::interpolate::{self, Work};
use crate::stage::lorenzo;
use crate::stage::quantize::{Linear, Log, Quantizer, Steps, bridge};
use crate::stage::tiles::{Grid, Tile};
use std::ops::Range;

/// The quantiser of Lorenzo's tiles.
pub fn quantizer<S: Scalar>(log: bool, used: f64, base: f64) -> Quantizer {
    if log {
        return Quantizer::Log(Log::new::<S>(used, LORENZO_LIMIT));
    }
    let limit = if S::SIZE == 4 { LORENZO_LIMIT_F32 } else { LORENZO_LIMIT };
    Quantizer::Linear(Linear::new(2.0 * used, used, limit, base))
}

/// The quantiser of interpolated tiles' points.
pub fn fine(used: f64, base: f64) -> Linear {
    Linear::new(2.0 * used / f64::from((1 << LORENZO_FINE_BITS) + 1), used, LORENZO_LIMIT, base)
}

/// Where tiles get a chunk's values from: numbers of its own type, or of another one.
pub(crate) trait Source<S>: Sync {
    fn len(&self) -> usize;
    fn at(&self, i: usize) -> S;
    fn gather(&self, grid: &Grid, tile: &Tile, x: &mut [S]);
}

/// A chunk's numbers, and what makes values of them.
pub(crate) struct Numbers<'a, N, F>(pub(crate) &'a [N], pub(crate) F);

impl<S: Scalar, N: Copy + Sync, F: Fn(N) -> S + Sync> Source<S> for Numbers<'_, N, F> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn at(&self, i: usize) -> S {
        (self.1)(self.0[i])
    }

    fn gather(&self, grid: &Grid, tile: &Tile, x: &mut [S]) {
        vectorize(
            #[inline(always)]
            || grid.gather(self.0, tile, &self.1, x),
        );
    }
}

/// What does not change from tile to tile.
pub(crate) struct ChunkValues<'a, S: Scalar> {
    pub(crate) values: &'a dyn Source<S>,
    pub(crate) grid: Grid,
    pub(crate) used: Used,
    pub(crate) base: f64,
    pub(crate) fill: Option<S::Bits>,
}

/// Consecutive tiles after the first pass.
pub(super) struct Run {
    first: usize,
    tiles: Vec<Planned>,
    /// Symbols of all tiles that are neither empty nor raw, a byte per residual.
    symbols: Vec<u8>,
    escapes: Vec<u32>,
    /// The payloads' first parts: outliers.
    outliers: Vec<u8>,
    pub(super) histogram: Histogram,
}

/// One tile after the first pass; the three counts are its parts of the run's arrays.
struct Planned {
    /// Its class is Huffman where that or fixed width will be taken.
    kind: Kind,
    symbols: usize,
    escapes: usize,
    outliers: usize,
    /// Bits of its largest zigzag residual.
    width: u32,
}

/// Working memory of one thread.
struct Scratch<S> {
    x: Vec<S>,
    stream: Vec<S>,
    lattices: [Vec<S>; 2],
    quanta: Vec<i32>,
    residuals: Vec<i32>,
    points: Vec<i32>,
    sampled: select::Rows,
    look: select::Look,
    regular: Vec<u8>,
    good: Vec<u8>,
    bits: Vec<u8>,
    work: Work,
}

impl<S: Scalar> Scratch<S> {
    fn new() -> Result<Self> {
        Ok(Scratch {
            x: memory::zeros(LORENZO_TILE)?,
            stream: memory::zeros(LORENZO_TILE)?,
            lattices: Default::default(),
            quanta: memory::zeros(LORENZO_TILE)?,
            residuals: memory::zeros(LORENZO_TILE)?,
            points: memory::zeros(LORENZO_TILE)?,
            sampled: select::Rows::default(),
            look: select::Look::default(),
            regular: memory::zeros(LORENZO_TILE)?,
            good: memory::zeros(LORENZO_TILE)?,
            bits: memory::zeros(LORENZO_TILE)?,
            work: Work::default(),
        })
    }
}

/// A tile after the first pass.
pub(crate) struct Predicted<'a> {
    pub(crate) extents: [usize; 3],
    pub(crate) residuals: &'a [i32],
    pub(crate) predictor: Predictor,
    /// Where there are outliers, their bytes: the last of the run's.
    pub(crate) outliers: Option<usize>,
}

/// What takes tiles after the first pass, one after the other.
pub(crate) trait Push<S> {
    /// Outliers of the tiles so far.
    fn outliers(&mut self) -> &mut Vec<u8>;
    fn push(&mut self, tile: Predicted<'_>) -> Result<()>;
}

/// First pass over some tiles, which go to `run`.
#[inline(always)]
pub(crate) fn plan<S: Scalar, R: Push<S>>(plan: &ChunkValues<'_, S>, tiles: Range<usize>, mut run: R) -> Result<R> {
    let (log, used) = (matches!(plan.used.tolerance, Tolerance::PointwiseRelative(_)), plan.used.value());
    let (coarse, fine) = (quantizer::<S>(log, used, plan.base), fine(used, plan.base));
    let limits = plan.used.guard.map(|guard| guard.limits::<S>());
    let point_limits = limits.map(|limits| limits.of_points(plan.base != 0.0, |point| fine.value(point)));
    // Beside a base the type must tell multiples of the unit: else a decoded tile would not come back as it is.
    let base = S::from_f64(plan.base);
    let told = base == S::ZERO || base + S::from_f64(used / f64::from((1 << LORENZO_FINE_BITS) + 1)) != base;
    let mut s = Scratch::<S>::new()?;
    for i in tiles {
        let tile = plan.grid.tile(i);
        let n = tile.len();
        let Scratch { x, stream, lattices, quanta, residuals, points, sampled, look, regular, good, bits, work } =
            &mut s;
        let (x, regular) = (&mut x[..n], &mut regular[..n]);
        let (quanta, residuals) = (&mut quanta[..n], &mut residuals[..n]);
        plan.values.gather(&plan.grid, &tile, x);
        let found = coarse.quantize(x, plan.fill, limits.as_ref(), quanta, regular);
        if found.outliers {
            bridge(quanta, regular, tile.extents[2]);
        }
        let (axes, cost) = select::choose_axes(quanta, tile.extents, sampled, bits)?;
        lorenzo::difference(quanta, tile.extents, axes, residuals);
        let (mut predictor, mut outliers) = (Predictor::Lorenzo(axes), found.outliers);
        if !log && !found.exact && told {
            let cost = if let Some(cost) = cost { cost } else { estimate::cost(residuals, bits) };
            let view = Interpolate { fine: &fine, fill: plan.fill, limits: point_limits, x, extents: tile.extents };
            let (points, good) = (&mut points[..n], &mut good[..n]);
            // A tile that costs nothing may still be one that was interpolated before.
            let (sampled, possible) = match n > 1 && (cost > 0 || view.on_grid()) {
                true => look.way(
                    tile.extents,
                    #[inline(always)]
                    |i| view.point(i, quanta[i]),
                    cost,
                    work,
                    bits,
                )?,
                false => (None, 0),
            };
            // Such a tile comes back exactly in its own way, which the sample may miss.
            let every = std::iter::once_with(|| possible != 0 && view.on_grid()).filter(|&on| on);
            let (first, own) = view.point(0, quanta[0]);
            let step = [false, true].map(|finer| interpolate::first_step(tile.extents, finer));
            let whole = move |finer: bool| !own || first % step[usize::from(finer)] == 0;
            let every = every.flat_map(|_| interpolate::ways(possible, whole)).map(|way| (way, true));
            let mut ways = sampled.map(|way| (way, false)).into_iter().chain(every).peekable();
            let (cost, stream) = (cost + view.outliers_cost(regular), &mut stream[..n]);
            if ways.peek().is_some() {
                work.reserve(n)?;
                interpolate::reserve(lattices, n)?;
                interpolate::permute(x, tile.extents, lattices, stream);
            }
            for (way, on_grid) in ways {
                let Some(made) = view.try_way(way, on_grid, stream, points, good, work) else { continue };
                // Where values do not tell one unit from the next, any way gives them back.
                let exact = made.exact && (on_grid || view.on_grid());
                if exact || estimate::cost(points, bits) + view.outliers_cost(good) < cost {
                    predictor = Predictor::Interpolation(way);
                    outliers = made.outliers;
                    residuals.copy_from_slice(points);
                    if outliers {
                        interpolate::unpermute(good, tile.extents, regular);
                    }
                }
                if exact {
                    break;
                }
            }
        }
        let before = run.outliers().len();
        if outliers {
            outliers::write(x, tile.extents, regular, run.outliers())?;
        }
        let outliers = outliers.then(|| run.outliers().len() - before);
        run.push(Predicted { extents: tile.extents, residuals, predictor, outliers })?;
    }
    Ok(run)
}

impl Run {
    /// Room for tiles `first` to `last`.
    pub(super) fn new(first: usize, last: usize) -> Result<Self> {
        Ok(Run {
            first,
            tiles: memory::with_capacity(last - first)?,
            symbols: memory::with_capacity((last - first) * LORENZO_TILE)?,
            escapes: Vec::new(),
            outliers: Vec::new(),
            histogram: Histogram::new(),
        })
    }
}

impl<S: Scalar> Push<S> for Run {
    fn outliers(&mut self) -> &mut Vec<u8> {
        &mut self.outliers
    }

    #[inline(always)]
    fn push(&mut self, tile: Predicted<'_>) -> Result<()> {
        let Predicted { residuals, predictor, outliers, .. } = tile;
        let n = residuals.len();
        let all = residuals.iter().fold(
            0,
            #[inline(always)]
            |a, &r| a | huffman::zigzag(r),
        );
        let width = 32 - all.leading_zeros();
        let mut planned = Planned {
            kind: Kind { predictor, class: Class::Coded, outliers: outliers.is_some() },
            symbols: 0,
            escapes: 0,
            outliers: outliers.unwrap_or(0),
            width,
        };
        if planned.outliers + fixed_len(n, width) >= n * S::SIZE {
            self.outliers.truncate(self.outliers.len() - planned.outliers);
            planned = Planned { kind: Kind::RAW, outliers: 0, ..planned };
        } else if width == 0 {
            planned.kind.class = Class::Empty;
        } else {
            let at = self.symbols.len();
            let escapes = self.escapes.len();
            self.symbols.resize(at + n, 0);
            memory::reserve(&mut self.escapes, n)?;
            huffman::symbols(residuals, &mut self.symbols[at..], &mut self.escapes);
            self.histogram.add(&self.symbols[at..]);
            planned.symbols = n;
            planned.escapes = self.escapes.len() - escapes;
        }
        self.tiles.push(planned);
        Ok(())
    }
}

/// Bytes of a fixed-width part: its width and its words. None for a tile of zeros.
fn fixed_len(n: usize, width: u32) -> usize {
    if width == 0 { 0 } else { 4 + 4 * (n * width as usize).div_ceil(32) }
}

/// Second pass: appends the payloads of a run's tiles to `out`, their kinds to `kinds`; returns their lengths in units
/// of four bytes.
#[inline(always)]
pub(super) fn write<S: Scalar>(
    plan: &ChunkValues<'_, S>,
    run: &Run,
    encoder: &Encoder,
    kinds: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Vec<u32>> {
    memory::reserve(kinds, run.tiles.len())?;
    let mut lens = memory::with_capacity(run.tiles.len())?;
    let (mut symbols, mut escapes, mut outliers) = (&run.symbols[..], &run.escapes[..], &run.outliers[..]);
    let mut stream = memory::zeros(huffman::stream_capacity(LORENZO_TILE))?;
    let mut x = Vec::new();
    for (i, p) in (run.first..).zip(&run.tiles) {
        let start = out.len();
        let (mine, rest) = outliers.split_at(p.outliers);
        outliers = rest;
        memory::append(out, mine)?;
        let (bytes, rest) = symbols.split_at(p.symbols);
        symbols = rest;
        let (mine, rest) = escapes.split_at(p.escapes);
        escapes = rest;
        let mut kind = p.kind;
        if kind.class == Class::Raw {
            write_raw(plan, &plan.grid.tile(i), &mut x, out)?;
        } else if kind.class == Class::Coded {
            let bits = encoder.encode(bytes, mine, &mut stream);
            let len = 4 * bits.div_ceil(32);
            let fixed = fixed_len(bytes.len(), p.width);
            memory::reserve(out, fixed.min(len))?;
            if len <= fixed {
                out.extend_from_slice(&stream[..len]);
            } else {
                kind.class = Class::Other;
                write_fixed(bytes, mine, p.width, out);
            }
        }
        kinds.push(kind.pack());
        lens.push(((out.len() - start) / 4) as u32);
    }
    Ok(lens)
}

impl Run {
    /// Bytes of the payloads that [`write`] makes of a run's tiles, which are of numbers of `size` bytes, by a codebook
    /// of these lengths.
    #[inline(always)]
    pub(super) fn payload_len(&self, grid: &Grid, lengths: &Lengths, size: usize) -> usize {
        let (mut symbols, mut len) = (&self.symbols[..], self.outliers.len());
        for (i, p) in (self.first..).zip(&self.tiles) {
            let (bytes, rest) = symbols.split_at(p.symbols);
            symbols = rest;
            len += match p.kind.class {
                Class::Raw => grid.tile(i).len() * size,
                Class::Coded => {
                    let mut histogram = Histogram::new();
                    histogram.add(bytes);
                    fixed_len(bytes.len(), p.width).min(4 * histogram.bits(lengths).div_ceil(32) as usize)
                }
                _ => 0,
            };
        }
        len
    }
}

pub(crate) fn write_raw<S: Scalar>(
    plan: &ChunkValues<'_, S>,
    tile: &Tile,
    x: &mut Vec<S>,
    out: &mut Vec<u8>,
) -> Result<()> {
    memory::reserve(x, tile.len().saturating_sub(x.len()))?;
    x.resize(tile.len(), S::ZERO);
    plan.values.gather(&plan.grid, tile, x);
    memory::reserve(out, tile.len() * S::SIZE)?;
    x.iter().for_each(|v| out.extend_from_slice(&v.bits().to_u64().to_le_bytes()[..S::SIZE]));
    Ok(())
}

/// Zigzag residuals of `width` bits each, from their symbols.
fn write_fixed(bytes: &[u8], escapes: &[u32], width: u32, out: &mut Vec<u8>) {
    out.extend(width.to_le_bytes());
    let (mut held, mut count) = (0u64, 0);
    let mut escapes = escapes.iter();
    for &b in bytes {
        let z = if usize::from(b) < crate::constants::LORENZO_DIRECT {
            b.into()
        } else {
            escapes.next().copied().unwrap_or(0)
        };
        held |= u64::from(z) << count;
        count += width;
        if count >= 32 {
            out.extend((held as u32).to_le_bytes());
            held >>= 32;
            count -= 32;
        }
    }
    if count > 0 {
        out.extend((held as u32).to_le_bytes());
    }
}
