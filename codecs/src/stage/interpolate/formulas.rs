// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formulas of interpolation, on integers that wrap around. FORMAT.md of lorenzo, §4.4.

use crate::constants::{LORENZO_FINE_BITS as FINE, LORENZO_WEIGHT_BITS as UNIT};
use crate::constants::{LORENZO_STEP_0, LORENZO_STEP_1, LORENZO_STEP_2, LORENZO_STEP_3, LORENZO_STEP_4};
use crate::stage::quantize::ROUND;

/// (−a + 9b + 9c − d) / 16.
#[inline(always)]
pub(crate) fn cubic(a: i32, b: i32, c: i32, d: i32) -> i32 {
    let near = b.wrapping_add(c);
    (near >> 1).wrapping_add(near.wrapping_sub(a.wrapping_add(d)) >> 4)
}

/// The weights of a, c and d of one point; b's is what they leave.
pub(crate) type Weights = [i32; 3];

/// A point between b and c by weights.
#[inline(always)]
pub(crate) fn weighted([wa, wc, wd]: Weights, a: i32, b: i32, c: i32, d: i32) -> i32 {
    let part = |w: i32, v: i32| i64::from(w) * i64::from(v.wrapping_sub(b));
    b.wrapping_add(((part(wa, a) + part(wc, c) + part(wd, d) + (1 << (UNIT - 1))) >> UNIT) as i32)
}

/// Lagrange's weights of the value at 0 through points at other places, in units: `at` has the places of a, b, c and d.
pub(super) fn lagrange(at: [Option<i64>; 4]) -> Weights {
    let weight = |j: usize| {
        let Some(mine) = at[j] else { return 0 };
        let others = || at.iter().enumerate().filter(|&(k, _)| k != j).filter_map(|(_, &x)| x);
        let (n, d) = (others().map(|x| -x).product::<i64>(), others().map(|x| mine - x).product::<i64>());
        let (n, d) = (n * d.signum(), d.abs());
        ((n << (UNIT + 1)) + d).div_euclid(2 * d) as i32
    };
    [weight(0), weight(2), weight(3)]
}

/// The mean of two predictions.
#[inline(always)]
pub(crate) fn mean(p: i32, q: i32) -> i32 {
    q.wrapping_add(p.wrapping_sub(q) >> 1)
}

/// The mean of three predictions.
#[inline(always)]
pub(crate) fn mean3(p: i32, q: i32, r: i32) -> i32 {
    let rise = p.wrapping_add(q).wrapping_sub(r.wrapping_add(r));
    r.wrapping_add(rise.wrapping_mul(85).wrapping_add(128) >> 8)
}

/// The step of a residual of level `l`, in units of a point.
#[inline(always)]
pub(super) fn step(finer: bool, l: usize) -> i32 {
    const STEPS: [i32; 5] = [LORENZO_STEP_0, LORENZO_STEP_1, LORENZO_STEP_2, LORENZO_STEP_3, LORENZO_STEP_4];
    if finer { STEPS[l.min(4)] } else { 1 << FINE }
}

/// Calls `f` with `step`, the usual one as a constant: its loops need no division.
#[inline(always)]
pub(crate) fn by_step(step: i32, mut f: impl FnMut(i32)) {
    if step == 1 << FINE { f(1 << FINE) } else { f(step) }
}

/// A point from its prediction and its residual.
#[inline(always)]
pub(crate) fn point(predicted: i32, residual: i32, step: i32) -> i32 {
    predicted.wrapping_add(residual.wrapping_mul(step))
}

/// The residual that brings a prediction nearest to `x`, by a step of up to 2^12: a quotient rounded down, or that less
/// a half rounded to nearest. Multiples of a step, and what is below them, keep a quarter of a unit's distance from
/// where rounding of the quotient would matter.
#[inline(always)]
pub(crate) fn residual(x: i32, predicted: i32, step: i32) -> i32 {
    let t = x.wrapping_sub(predicted).wrapping_add(step / 2);
    match step == 1 << FINE {
        true => t >> FINE,
        false => ((f64::from(t) + (0.25 - 0.5 * f64::from(step))) * (1.0 / f64::from(step)) + ROUND).to_bits() as i32,
    }
}
