// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predictor selection: some of a tile's rows decide on Lorenzo's axes, and whether interpolation may pay. FORMAT.md
//! §8.
//!
//! About a quarter of the rows is a sample. With the rows above them, behind them and above those, they give the
//! residuals of every set of axes that is tried, and the set whose residuals are estimated to cost the least bits is
//! taken.
//!
//! For interpolation the sample is half of the finest points that are new along all axes, predicted from their
//! neighbours' values. It chooses the axes that lines are taken along, by the sizes of the errors, for steps hide most
//! of the difference where few errors reach half a step. What these errors would cost as residuals says whether
//! interpolation, which is far dearer than Lorenzo, is worth an attempt.

use crate::constants::LORENZO_FINE_BITS;
use crate::error::Result;
use crate::memory;
use crate::stage::interpolate::{self, Sample, Way, Work};
use crate::stage::{estimate, lorenzo};

/// The rows that Lorenzo's axes are chosen by, out of 64: 16 of every remainder by 4 and by 3, for molecules have as
/// many atoms, and the first, as of sixteen rows in a cube one has none above it.
const SAMPLED: u64 = 1 | 0x1842_1842_1842_1842;

/// Whether row `row` of `rows` is sampled.
#[inline(always)]
fn sampled(row: usize, rows: usize) -> bool {
    rows < 8 || SAMPLED >> (row % 64) & 1 == 1
}

/// Working memory of [`choose`].
#[derive(Default)]
pub(super) struct Rows {
    /// Sampled rows of tiles of these rows, and whether each has one above it.
    of: [usize; 2],
    rows: Vec<(usize, bool)>,
    /// Those rows, the rows above them, behind them, and above the latter: in the end their differences along the
    /// slower axes.
    parts: [Vec<i32>; 4],
    steps: Vec<i32>,
}

/// Lorenzo's axes, the first set with the least cost over the sampled rows, and that cost where these are all.
#[inline(always)]
pub(super) fn choose_axes(
    q: &[i32],
    extents: [usize; 3],
    work: &mut Rows,
    bits: &mut [u8],
) -> Result<(u8, Option<u64>)> {
    let [a, b, c] = extents;
    let used = [c > 1, b > 1, a > 1].iter().enumerate().map(|(k, &long)| u8::from(long) << k).sum::<u8>();
    let Rows { of, rows, parts, steps } = work;
    if *of != [a, b] {
        *of = [a, b];
        rows.clear();
        // All of fewer than eight rows.
        memory::reserve(rows, 8 + (a * b).div_ceil(64) * SAMPLED.count_ones() as usize)?;
        let all = (0..a).flat_map(|z| (0..b).map(move |y| (z * b + y, y > 0)));
        rows.extend(all.filter(|&(row, _)| sampled(row, a * b)));
    }
    let sets = [0, lorenzo::Y, lorenzo::Z, lorenzo::Y | lorenzo::Z];
    for (part, across) in parts.iter_mut().zip(sets) {
        part.clear();
        if across & !used == 0 {
            memory::reserve(part, rows.len() * c)?;
            let before = [(across & lorenzo::Y, 1), (across & lorenzo::Z, b)];
            let before = before.iter().filter(|axis| axis.0 != 0).map(|axis| axis.1).sum();
            let up = across & lorenzo::Y != 0;
            // Molecules have three atoms: rows too short for a call.
            match c {
                3 => pick(q, 3, rows, before, up, part),
                _ => pick(q, c, rows, before, up, part),
            }
        }
    }
    let [own, up, back, both] = parts;
    up.iter_mut().zip(&*own).for_each(|(up, own)| *up = own.wrapping_sub(*up));
    for ((both, up), back) in both.iter_mut().zip(&*up).zip(&*back) {
        *both = up.wrapping_sub(*back).wrapping_add(*both);
    }
    back.iter_mut().zip(&*own).for_each(|(back, own)| *back = own.wrapping_sub(*back));
    let mut best = (u64::MAX, 0);
    for (sample, across) in parts.iter().zip(sets) {
        if across & !used != 0 {
            continue;
        }
        let mut try_axes = |axes: u8, residuals: &[i32], bits: &mut [u8]| {
            let cost = estimate::cost(residuals, bits);
            if cost < best.0 {
                best = (cost, axes);
            }
        };
        if across != lorenzo::Y | lorenzo::Z {
            try_axes(across, sample, bits);
        }
        if c > 1 && across != lorenzo::Z {
            memory::reserve_total(steps, sample.len())?;
            steps.resize(sample.len(), 0);
            lorenzo::rows(sample, c, steps);
            try_axes(across | lorenzo::X, steps, bits);
        }
    }
    Ok((best.1, (rows.len() == a * b).then_some(best.0)))
}

/// Appends the rows of `c` values that are `before` rows before the given ones, zeros where there is none; `up` says
/// that one must be above it. `out` has the capacity for them.
#[inline(always)]
fn pick(q: &[i32], c: usize, rows: &[(usize, bool)], before: usize, up: bool, out: &mut Vec<i32>) {
    for &(row, has_up) in rows {
        match row.checked_sub(before).filter(|_| has_up || !up) {
            Some(row) => out.extend_from_slice(&q[row * c..][..c]),
            None => out.resize(out.len() + c, 0),
        }
    }
}

/// Interpolation is tried if the sample costs at most this part, in 256ths, of what Lorenzo costs, for tiles with one,
/// two and three axes. Coarse levels, which the sample does not see, are dearest in three: twice as many attempts make
/// frames 1 % smaller there. A line that takes fewer bits a value than `LOW`, in 256ths, is tried where the sample
/// costs no more.
const WORTH: [u64; 3] = [128, 205, 128];
const LOW: u64 = 4 << 8;

/// Added to an error's square before its logarithm is taken, in squares of points: 0.3 and, over the number of axes,
/// 0.2 of half a step's. An error far below half a step costs nothing, and means of more lines average more of the
/// steps' noise out.
const FLOOR: u32 = 4954;
const NOISE: u32 = 3302;

/// Coarse levels have finer steps where the sample costs at most a fifth of a bit a value, but not in one dimension,
/// where they hold half of the values: series lose up to 5 %.
const SMOOTH: u64 = 5;

/// Working memory of a look at a tile that may be interpolated.
#[derive(Default)]
pub(super) struct Look {
    sample: Sample,
    errors: Vec<i32>,
}

impl Look {
    /// How interpolating a tile may cost less than `cost`, from some of its points: along the set of axes with the
    /// least sum of logarithms of the sample's errors, the most axes among equals; `None` where the sample says that
    /// none will do. And the sets under which the tile may have been interpolated before.
    #[inline(always)]
    pub(super) fn way(
        &mut self,
        extents: [usize; 3],
        point: impl Fn(usize) -> (i32, bool),
        cost: u64,
        work: &mut Work,
        bits: &mut [u8],
    ) -> Result<(Option<Way>, u8)> {
        let Look { sample, errors } = self;
        sample.take(extents, work, point)?;
        let n = extents.iter().product::<usize>();
        memory::reserve_total(errors, n)?;
        let used = interpolate::axes(extents);
        let possible = sample.possible(extents, errors);
        let mut best = (u64::MAX, used);
        if !used.is_power_of_two() {
            for set in [7u8, 6, 5, 3, 4, 2, 1].into_iter().filter(|set| set & !used == 0) {
                sample.errors(set, errors);
                let add = FLOOR + NOISE / set.count_ones();
                let cost = estimate::logarithms(
                    errors,
                    #[inline(always)]
                    |e| e.unsigned_abs().min(32767).pow(2) + add,
                );
                if cost < best.0 {
                    best = (cost, set);
                }
            }
        }
        sample.errors(best.1, errors);
        errors.iter_mut().for_each(|e| *e = interpolate::residual(0, *e, 1 << LORENZO_FINE_BITS));
        let (sampled, m, n) = (estimate::cost(errors, bits), errors.len() as u64, n as u64);
        let way = Way { axes: best.1, finer: !used.is_power_of_two() && SMOOTH * sampled <= 256 * m };
        let worth = match used.count_ones() {
            1 if cost < LOW * n => 256,
            axes => WORTH[axes as usize - 1],
        };
        Ok(((cost > 0 && 256 * sampled * n <= worth * cost * m).then_some(way), possible))
    }
}
