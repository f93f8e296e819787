// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vector of quanta, and what is measured of it. FORMAT.md §4.5.

use crate::codec::dense::tokens::magnitude;

/// Components are padded with zeros to this.
pub(super) const PARTS: usize = 4;
pub(super) type Vector = [i32; PARTS];
/// Atoms before an atom that it may stand beside.
pub(super) const LAGS: usize = 3;
/// Of these, those that it may move with.
pub(super) const BESIDE: usize = 2;
/// The longest period of roles.
pub(crate) const PERIODS: usize = 16;
/// In 64ths: what of the last two steps is added, to an atom's place and to a bond.
pub(crate) type Weights = [[i8; 2]; 2];

/// What codes one number: its group, what is expected of it, and the number itself, which a decoder does not know.
pub(crate) trait Code: FnMut(usize, usize, i32) -> i32 {}
impl<F: FnMut(usize, usize, i32) -> i32> Code for F {}

#[inline(always)]
pub(super) fn add(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|c| a[c].wrapping_add(b[c]))
}

#[inline(always)]
pub(super) fn sub(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|c| a[c].wrapping_sub(b[c]))
}

/// The square of a vector's length.
#[inline(always)]
pub(super) fn square(v: Vector) -> f64 {
    let v = v.map(f64::from);
    v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]
}

/// A vector's length in 16ths, rounded down.
#[inline(always)]
pub(super) fn length(v: Vector) -> i64 {
    (16.0 * square(v).sqrt()) as i64
}

/// The magnitude of what is not negative.
#[inline(always)]
pub(super) fn magnitude_of(n: i64) -> i32 {
    magnitude(n.min(i64::from(i32::MAX)) as i32).into()
}

/// The magnitude of a vector: of the sum of its components' sizes.
#[inline(always)]
pub(super) fn size(v: Vector) -> i32 {
    magnitude_of(v.map(|c| i64::from(c.unsigned_abs())).iter().sum())
}
