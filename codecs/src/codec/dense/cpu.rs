// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tiles to a frame, FORMAT.md §8.
//!
//! ```text
//! plan       predictors, residuals and outliers of all tiles, as `lorenzo` finds them
//! fit        a filter for each set of axes, from some of the tiles
//! contexts   of each residual; in a tile that a filter makes cheaper, of what that leaves
//! tables     for intervals of contexts, by the counts of all tiles
//! code       tile by tile
//! ```

use super::contexts::Shape;
use super::decode::{Contexts, Filters, write_head};
use super::filter::Fit;
use super::rans::{self, Coder};
use super::tables::Counts;
use crate::bound::Used;
use crate::codec::chunk::Chunk;
use crate::codec::lorenzo::cpu::{Start, start};
use crate::codec::lorenzo::encode::{self, ChunkValues, Numbers, Push};
use crate::codec::lorenzo::format::{self, Class, Coding, FILTERED, Kind, Predictor};
use crate::codec::lorenzo::outliers;
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::frame::{Header, Writer};
use crate::scalar::{Bits, Scalar};
use crate::simd::vectorize;
use crate::stage::estimate;
use crate::{memory, parallel};

/// The most tiles that a filter is fitted to.
const FITTED: usize = 16;

/// Encodes a chunk. False: its payload may be too long for the starts.
pub(super) fn encode<S: Scalar>(
    values: &[S],
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let (source, fill) = (Numbers(values, |x| x), chunk.params.fill.map(S::Bits::from_u64));
    let Some(Start { grid, used, base, header }) = start(&source, fill, used, header, Contexts::UNIT) else {
        return Ok(false);
    };
    let tiles = grid.tiles();
    let per_run = parallel::run_length(tiles, chunk.threads);
    let (runs, plan) = (tiles.div_ceil(per_run), ChunkValues { values: &source, grid: &grid, used, base, fill });
    let planned = parallel::try_map(runs, chunk.threads, |i| {
        vectorize(
            #[inline(always)]
            || encode::plan(&plan, i * per_run..tiles.min((i + 1) * per_run), Run::default()),
        )
    })?;
    let filters = fit(&planned);
    let coded = parallel::try_map(runs, chunk.threads, |i| {
        vectorize(
            #[inline(always)]
            || planned[i].contexts(&filters),
        )
    })?;
    let mut counts = Counts::new()?;
    coded.iter().for_each(|run| counts.merge(&run.counts));
    let tables = counts.tables();
    let coder = Coder::new(&tables, false)?;
    let written = parallel::try_map(runs, chunk.threads, |i| coded[i].write(&planned[i], &coder, &plan, i * per_run))?;
    let mut writer = Writer::new(out, header, 4)?;
    writer.section(|o| {
        memory::reserve(o, 1 << 15)?;
        write_head(&filters, &tables, o);
        format::write_base(S::from_f64(base), o);
        Ok(())
    })?;
    writer.section(|o| written.iter().try_for_each(|run| memory::append(o, &run.kinds)))?;
    writer.section(|o| format::write_lengths(written.iter().flat_map(|run| &run.lens).copied(), tiles, o))?;
    writer.section(|o| written.iter().try_for_each(|run| memory::append(o, &run.payload)))?;
    writer.seal(chunk.threads);
    Ok(true)
}

/// Consecutive tiles after the first pass.
#[derive(Default)]
struct Run {
    tiles: Vec<Planned>,
    residuals: Vec<i32>,
    outliers: Vec<u8>,
}

/// One tile after the first pass.
struct Planned {
    extents: [usize; 3],
    predictor: Predictor,
    /// Whether there are outliers, and their bytes.
    has_outliers: bool,
    outliers: usize,
}

impl<S: Scalar> Push<S> for Run {
    #[inline(always)]
    fn push(
        &mut self,
        x: &[S],
        extents: [usize; 3],
        residuals: &[i32],
        predictor: Predictor,
        regular: Option<&[u8]>,
    ) -> Result<()> {
        let before = self.outliers.len();
        if let Some(regular) = regular {
            outliers::write(x, extents, regular, &mut self.outliers)?;
        }
        memory::append(&mut self.residuals, residuals)?;
        let outliers = self.outliers.len() - before;
        memory::reserve(&mut self.tiles, 1)?;
        self.tiles.push(Planned { extents, predictor, has_outliers: regular.is_some(), outliers });
        Ok(())
    }
}

impl Planned {
    fn len(&self) -> usize {
        self.extents.iter().product()
    }
}

/// The filters of a chunk.
fn fit(runs: &[Run]) -> Filters {
    std::array::from_fn(|axes| {
        let all = || {
            runs.iter().flat_map(|run| {
                let mut at = 0;
                run.tiles.iter().filter_map(move |tile| {
                    let own = &run.residuals[at..at + tile.len()];
                    at += tile.len();
                    (tile.predictor == Predictor::Lorenzo(axes as u8)).then_some((tile, own))
                })
            })
        };
        let mut fit = Fit::default();
        for (tile, residuals) in all().step_by(all().count().div_ceil(FITTED).max(1)) {
            fit.add(residuals, tile.extents, axes as u8);
        }
        fit.weights()
    })
}

/// Consecutive tiles whose residuals have their contexts.
struct RunCoded {
    /// Each residual less what a filter says, with its context.
    coded: Vec<(u16, i32)>,
    /// For each tile, whether a filter is taken.
    filtered: Vec<bool>,
    counts: Counts,
}

impl Run {
    #[inline(always)]
    fn contexts(&self, filters: &Filters) -> Result<RunCoded> {
        let mut done = RunCoded {
            coded: memory::with_capacity(self.residuals.len())?,
            filtered: memory::with_capacity(self.tiles.len())?,
            counts: Counts::new()?,
        };
        let mut scratch = rans::Scratch::new()?;
        let (mut residuals, mut bits) = (memory::zeros(LORENZO_TILE)?, memory::zeros(LORENZO_TILE)?);
        let mut rest = &self.residuals[..];
        for tile in &self.tiles {
            let (own, behind) = rest.split_at(tile.len());
            rest = behind;
            let (residuals, start) = (&mut residuals[..own.len()], done.coded.len());
            residuals.copy_from_slice(own);
            let mut shape = match tile.predictor {
                Predictor::Lorenzo(axes) => Shape::Lorenzo { axes, weights: filters[usize::from(axes)].as_ref() },
                Predictor::Interpolation(_) => Shape::Interpolation,
            };
            rans::contexts(tile.extents, shape, residuals, &mut scratch, &mut done.coded);
            let mut filtered = false;
            if let Shape::Lorenzo { weights: weights @ Some(_), .. } = &mut shape {
                let mut left: Vec<i32> = memory::with_capacity(own.len())?;
                left.extend(done.coded[start..].iter().map(|coded| coded.1));
                filtered = estimate::cost(&left, &mut bits) < estimate::cost(own, &mut bits);
                if !filtered {
                    *weights = None;
                    done.coded.truncate(start);
                    rans::contexts(tile.extents, shape, residuals, &mut scratch, &mut done.coded);
                }
            }
            done.filtered.push(filtered);
            rans::count(&done.coded[start..], &mut done.counts);
        }
        Ok(done)
    }
}

/// Tiles as they are stored.
struct Written {
    kinds: Vec<u8>,
    /// In the codec's units.
    lens: Vec<u32>,
    payload: Vec<u8>,
}

impl RunCoded {
    fn write<S: Scalar>(&self, run: &Run, coder: &Coder, plan: &ChunkValues<'_, S>, first: usize) -> Result<Written> {
        let n = run.tiles.len();
        let mut done =
            Written { kinds: memory::with_capacity(n)?, lens: memory::with_capacity(n)?, payload: Vec::new() };
        let (mut coded, mut outliers, mut words, mut x) = (&self.coded[..], &run.outliers[..], Vec::new(), Vec::new());
        for (k, (tile, filtered)) in run.tiles.iter().zip(&self.filtered).enumerate() {
            let (own, rest) = coded.split_at(tile.len());
            coded = rest;
            let (own_outliers, rest) = outliers.split_at(tile.outliers);
            outliers = rest;
            let out = &mut done.payload;
            let start = out.len();
            memory::append(out, own_outliers)?;
            let is_empty = own.iter().all(|coded| coded.1 == 0);
            if !is_empty {
                coder.encode(own, &mut words, out)?;
            }
            let class = if is_empty { Class::Empty } else { Class::Coded };
            let mut kind = Kind { predictor: tile.predictor, class, outliers: tile.has_outliers }.pack();
            if *filtered && !is_empty {
                kind |= FILTERED;
            }
            if out.len() - start >= tile.len() * S::SIZE {
                out.truncate(start);
                encode::write_raw(plan, &plan.grid.tile(first + k), &mut x, out)?;
                kind = Kind::RAW.pack();
            }
            done.kinds.push(kind);
            done.lens.push((out.len() - start) as u32 / Contexts::UNIT);
        }
        Ok(done)
    }
}
