// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tiles to a frame, FORMAT.md §8.
//!
//! ```text
//! plan       predictors, residuals and outliers of all tiles, as `lorenzo` finds them
//! fit        a filter for each set of axes, from some of the tiles
//! contexts   of each residual; in a tile that a filter makes cheaper, of what that leaves; in a tile of vectors that
//!            prediction by vectors makes cheaper, of that
//! tables     for intervals of contexts, by the counts of all tiles
//! code       tile by tile
//! ```

use super::contexts::Shape;
use super::decode::{Contexts, Filters, write_head};
use super::filter::Fit;
use super::rans::{self, Coder};
use super::tables::Counts;
use super::vectors;
use crate::bound::Used;
use crate::codec::chunk::Chunk;
use crate::codec::lorenzo::cpu::{first_pass, start};
use crate::codec::lorenzo::encode::{self, ChunkValues, Numbers, Predicted, Push};
use crate::codec::lorenzo::format::{self, Class, Coding, FILTERED, Kind, Predictor};
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::frame::{Header, Writer};
use crate::scalar::Scalar;
use crate::stage::{estimate, lorenzo};
use crate::{memory, parallel};

/// The most tiles that a filter is fitted to.
const FITTED: usize = 16;
/// The most tiles that are tried as vectors, to which their weights are fitted.
const TRIED: usize = 6;

/// Encodes a chunk. False: its payload may be too long for the starts.
pub(super) fn encode<S: Scalar>(
    values: &[S],
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let source = Numbers(values, |x| x);
    let Some((plan, header)) = start(&source, chunk.params.fill, used, header, Contexts::UNIT) else {
        return Ok(false);
    };
    let (per_run, planned) = first_pass(&plan, chunk.threads, |_| Ok(Run::default()))?;
    let runs = planned.len();
    let filters = fit(&planned)?;
    let coded = parallel::try_map(runs, chunk.threads, |i| planned[i].contexts(&filters))?;
    let mut counts = Counts::new()?;
    coded.iter().for_each(|run| counts.merge(&run.counts));
    let tables = counts.tables();
    let coder = Coder::new(&tables, false)?;
    let written = parallel::try_map(runs, chunk.threads, |i| coded[i].write(&planned[i], &coder, &plan, i * per_run))?;
    let mut writer = Writer::new(out, header, 4)?;
    writer.section(|o| {
        memory::reserve(o, 1 << 15)?;
        write_head(&filters, &tables, o);
        format::write_base(S::from_f64(plan.base), o);
        Ok(())
    })?;
    writer.section(|o| written.iter().try_for_each(|run| memory::append(o, &run.kinds)))?;
    writer
        .section(|o| format::write_lengths(written.iter().flat_map(|run| &run.lens).copied(), plan.grid.tiles(), o))?;
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
    /// Where there are outliers, their bytes.
    outliers: Option<usize>,
}

impl<S: Scalar> Push<S> for Run {
    fn outliers(&mut self) -> &mut Vec<u8> {
        &mut self.outliers
    }

    #[inline(always)]
    fn push(&mut self, Predicted { extents, residuals, predictor, outliers }: Predicted<'_>) -> Result<()> {
        memory::append(&mut self.residuals, residuals)?;
        memory::reserve(&mut self.tiles, 1)?;
        self.tiles.push(Planned { extents, predictor, outliers });
        Ok(())
    }
}

impl Planned {
    fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// The axes of Lorenzo prediction where the values may be vectors.
    fn vectors(&self) -> Option<u8> {
        match self.predictor {
            Predictor::Lorenzo(axes) if vectors::are(self.extents) => Some(axes),
            _ => None,
        }
    }
}

/// The filters of a chunk, and the weights of its vectors where these make it shorter, by the bits of some of its
/// tiles.
fn fit(runs: &[Run]) -> Result<Filters> {
    let sample = |most: usize, of: &dyn Fn(&Planned) -> bool| -> Vec<(&Planned, &[i32])> {
        let all = runs.iter().flat_map(|run| run.tiles.iter().zip(run.residuals())).filter(|tile| of(tile.0));
        let all: Vec<_> = all.collect();
        let every = all.len().div_ceil(most).max(1);
        all.into_iter().step_by(every).collect()
    };
    let axes = std::array::from_fn(|axes| {
        let mut fit = Fit::default();
        for (tile, residuals) in sample(FITTED, &|tile| tile.predictor == Predictor::Lorenzo(axes as u8)) {
            fit.add(residuals, tile.extents, axes as u8);
        }
        fit.weights()
    });
    let plain = Filters { axes, vectors: None };
    let of_vectors = sample(TRIED, &|tile| tile.vectors().is_some());
    if of_vectors.is_empty() {
        return Ok(plain);
    }
    let (mut fit, mut work) = (vectors::Fit::default(), Work::new()?);
    for (tile, residuals) in &of_vectors {
        if let Some(axes) = tile.vectors() {
            work.put(residuals);
            lorenzo::integrate(&mut work.numbers, tile.extents, axes);
            fit.add(tile.extents, &work.numbers);
        }
    }
    let vectors = Filters { vectors: Some(fit.weights()), ..plain };
    let mut bits = |filters: &Filters| -> Result<u64> {
        let mut counts = Counts::new()?;
        for (tile, residuals) in &of_vectors {
            tile.contexts(residuals, filters, &mut work)?;
            rans::count(&work.coded, &mut counts);
        }
        Ok(counts.bits())
    };
    Ok(if bits(&vectors)? < bits(&plain)? { vectors } else { plain })
}

/// Consecutive tiles whose numbers have their contexts.
struct RunCoded {
    /// Each number that is coded, with its context.
    coded: Vec<(u16, i32)>,
    /// For each tile how many they are, and what predicts them.
    tiles: Vec<(usize, Prediction)>,
    counts: Counts,
}

/// What predicts a tile beside its predictor.
#[derive(Clone, Copy)]
enum Prediction {
    Alone,
    Filter,
    /// In the place of the predictor: vectors whose roles have this period.
    Vectors {
        period: usize,
    },
}

/// Working memory of one thread.
struct Work {
    scratch: rans::Scratch,
    /// Numbers of a tile.
    numbers: Vec<i32>,
    /// Those that are coded, with their contexts.
    coded: Vec<(u16, i32)>,
    bits: Vec<u8>,
}

impl Work {
    fn new() -> Result<Self> {
        Ok(Work {
            scratch: rans::Scratch::new()?,
            numbers: memory::with_capacity(LORENZO_TILE)?,
            coded: Vec::new(),
            bits: memory::zeros(LORENZO_TILE)?,
        })
    }

    fn put(&mut self, numbers: &[i32]) {
        self.numbers.clear();
        self.numbers.extend_from_slice(numbers);
    }

    /// Finds the contexts of the numbers, which are used up.
    fn walk(&mut self, extents: [usize; 3], shape: Shape<'_>) -> Result<()> {
        self.coded.clear();
        memory::reserve(&mut self.coded, 2 * self.numbers.len())?;
        rans::contexts(extents, shape, &mut self.numbers, &mut self.scratch, &mut self.coded);
        Ok(())
    }
}

impl Planned {
    /// Finds its numbers and their contexts.
    fn contexts(&self, own: &[i32], filters: &Filters, work: &mut Work) -> Result<Prediction> {
        work.put(own);
        if let (Some(axes), Some(weights)) = (self.vectors(), &filters.vectors)
            && own.iter().any(|&r| r != 0)
        {
            lorenzo::integrate(&mut work.numbers, self.extents, axes);
            let period = vectors::period(self.extents, &work.numbers)?;
            work.walk(self.extents, Shape::Vectors { period, weights })?;
            return Ok(Prediction::Vectors { period });
        }
        let axes = match self.predictor {
            Predictor::Lorenzo(axes) => axes,
            Predictor::Interpolation(_) => {
                work.walk(self.extents, Shape::Interpolation)?;
                return Ok(Prediction::Alone);
            }
        };
        if let weights @ Some(_) = filters.axes[usize::from(axes)].as_ref() {
            work.walk(self.extents, Shape::Lorenzo { axes, weights })?;
            work.numbers.iter_mut().zip(&work.coded).for_each(|(left, coded)| *left = coded.1);
            if estimate::cost(&work.numbers, &mut work.bits) < estimate::cost(own, &mut work.bits) {
                return Ok(Prediction::Filter);
            }
            work.put(own);
        }
        work.walk(self.extents, Shape::Lorenzo { axes, weights: None })?;
        Ok(Prediction::Alone)
    }
}

impl Run {
    /// The residuals of each tile.
    fn residuals(&self) -> impl Iterator<Item = &[i32]> {
        let mut rest = &self.residuals[..];
        self.tiles.iter().map(move |tile| rest.split_off(..tile.len()).unwrap_or_default())
    }

    fn contexts(&self, filters: &Filters) -> Result<RunCoded> {
        let mut done = RunCoded {
            coded: memory::with_capacity(self.residuals.len())?,
            tiles: memory::with_capacity(self.tiles.len())?,
            counts: Counts::new()?,
        };
        let mut work = Work::new()?;
        for (tile, own) in self.tiles.iter().zip(self.residuals()) {
            let prediction = tile.contexts(own, filters, &mut work)?;
            rans::count(&work.coded, &mut done.counts);
            memory::append(&mut done.coded, &work.coded)?;
            done.tiles.push((work.coded.len(), prediction));
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
        for (k, (tile, &(numbers, prediction))) in run.tiles.iter().zip(&self.tiles).enumerate() {
            let own = coded.split_off(..numbers).unwrap_or_default();
            let (own_outliers, rest) = outliers.split_at(tile.outliers.unwrap_or(0));
            outliers = rest;
            let out = &mut done.payload;
            let start = out.len();
            memory::append(out, own_outliers)?;
            let mut kind = Kind { predictor: tile.predictor, class: Class::Coded, outliers: tile.outliers.is_some() };
            let mut bits = 0;
            match prediction {
                Prediction::Alone if own.iter().all(|coded| coded.1 == 0) => kind.class = Class::Empty,
                Prediction::Alone => (),
                Prediction::Filter => bits = FILTERED,
                Prediction::Vectors { period } => {
                    kind = Kind { predictor: Predictor::Lorenzo(0), class: Class::Other, ..kind };
                    out.extend((period as u16).to_le_bytes());
                }
            }
            if kind.class != Class::Empty {
                coder.encode(own, &mut words, out)?;
            }
            let mut kind = kind.pack() | bits;
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
