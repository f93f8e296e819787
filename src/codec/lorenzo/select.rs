// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predictor selection: some of a tile's rows decide on Lorenzo's axes, and whether interpolation may pay. FORMAT.md §8.
//!
//! About a quarter of the rows is a sample. With the rows above them, behind them and above those, they give the residuals
//! of every set of axes that is tried, and the set whose residuals are estimated to cost the least bits is taken. Then the
//! cost of all the tile's residuals says whether interpolation is worth an attempt: not where they are zero or noise, surely
//! where they are small; in between where the sampled rows, each odd value predicted from its four even neighbours, cost at
//! most 7/8 as much.

use crate::error::Result;
use crate::memory;
use crate::stage::{estimate, interpolate, lorenzo};

/// The rows that Lorenzo's axes are chosen by, out of 64: 16 of every remainder by 4 and by 3, for molecules have as many
/// atoms, and the first, as of sixteen rows in a cube one has none above it.
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
    /// Those rows, the rows above them, behind them, and above the latter: in the end their differences along the slower axes.
    parts: [Vec<i32>; 4],
    steps: Vec<i32>,
}

/// Lorenzo's axes: the first set with the least cost over the sampled rows.
#[inline(always)]
pub(super) fn choose(q: &[i32], extents: [usize; 3], work: &mut Rows, bits: &mut [u8]) -> Result<u8> {
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
    Ok(best.1)
}

/// Appends the rows of `c` values that are `before` rows before the given ones, zeros where there is none; `up` says that
/// one must be above it. `out` has the capacity for them.
#[inline(always)]
fn pick(q: &[i32], c: usize, rows: &[(usize, bool)], before: usize, up: bool, out: &mut Vec<i32>) {
    for &(row, has_up) in rows {
        match row.checked_sub(before).filter(|_| has_up || !up) {
            Some(row) => out.extend_from_slice(&q[row * c..][..c]),
            None => out.resize(out.len() + c, 0),
        }
    }
}

/// Interpolation is tried where Lorenzo's residuals cost less than so many 1/256 bits a value: what costs more is noise,
/// which no prediction takes away.
const WORTH: u64 = 4 << 8;
/// Below this it is tried whatever a sample says.
const SURELY_WORTH: u64 = 5 << 7;

/// Whether interpolating a tile may cost less than `cost`: a sample says so, the sampled rows' odd values predicted from quanta.
/// On turbulence and noise it saves the whole attempt; measured on 19 fields it costs 0.1 to 0.6 % of the ratio, 4.7 % at most.
#[inline(always)]
pub(super) fn may_pay(q: &[i32], [a, b, c]: [usize; 3], cost: u64, sample: &mut Vec<i32>, bits: &mut [u8]) -> bool {
    let n = q.len() as u64;
    if cost == 0 || cost >= WORTH * n {
        return false;
    }
    if cost < SURELY_WORTH * n {
        return true;
    }
    sample.clear();
    for (row, q) in q.chunks_exact(c).enumerate() {
        if sampled(row, a * b) {
            sample.extend(q.windows(7).step_by(2).map(
                #[inline(always)]
                |w| w[3].wrapping_sub(interpolate::cubic(w[0], w[2], w[4], w[6])),
            ));
        }
    }
    8 * estimate::cost(sample, bits) * n <= 7 * cost * sample.len() as u64
}
