// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formulas of interpolation, on integers that wrap around. FORMAT.md of lorenzo, §4.4.

use crate::constants::LORENZO_FINE_BITS as FINE;

/// (−a + 9b + 9c − d) / 16.
#[inline(always)]
pub(crate) fn cubic(a: i32, b: i32, c: i32, d: i32) -> i32 {
    let near = b.wrapping_add(c);
    (near >> 1).wrapping_add(near.wrapping_sub(a.wrapping_add(d)) >> 4)
}

/// (−a + 6b + 3c) / 8: between b and c, with a before them.
#[inline(always)]
pub(super) fn left(a: i32, b: i32, c: i32) -> i32 {
    let rise = c.wrapping_sub(b);
    b.wrapping_add(rise.wrapping_add(rise).wrapping_add(c.wrapping_sub(a)) >> 3)
}

/// Between b and c; also the mean of two predictions.
#[inline(always)]
pub(super) fn linear(b: i32, c: i32) -> i32 {
    b.wrapping_add(c.wrapping_sub(b) >> 1)
}

/// Behind a and b.
#[inline(always)]
pub(super) fn beyond(a: i32, b: i32) -> i32 {
    b.wrapping_add(b.wrapping_sub(a) >> 1)
}

/// A point from its prediction and its residual.
#[inline(always)]
pub(crate) fn point(predicted: i32, residual: i32) -> i32 {
    predicted.wrapping_add(residual << FINE)
}

/// The residual that brings a prediction nearest to `x`.
#[inline(always)]
pub(crate) fn residual(x: i32, predicted: i32) -> i32 {
    x.wrapping_sub(predicted).wrapping_add(1 << (FINE - 1)) >> FINE
}

/// The mean of three predictions.
#[inline(always)]
pub(super) fn middle(p: i32, q: i32, r: i32) -> i32 {
    let rise = p.wrapping_add(q).wrapping_sub(r.wrapping_add(r));
    r.wrapping_add(rise.wrapping_mul(85).wrapping_add(128) >> 8)
}
