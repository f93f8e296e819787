// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was to come back beside the bound, value by value, from the text of the promise alone.
//!
//! Nothing here is shared with [`Limits`](crate::keep::Limits), which encoders obey: a slip there must not be excused
//! by the same slip here.

use crate::keep::Keep;
use crate::scalar::Scalar;

/// Which of the promises, sign, zero and range, `y` breaks as what came back for `x`, a value that may change.
///
/// `range`: smallest and largest value of those that the range counts. Without one, all values are zeros.
#[inline]
pub(super) fn broken<S: Scalar>(keep: Keep, range: Option<(f64, f64)>, x: S, y: S) -> [bool; 3] {
    // Every number of the type is an f64 too.
    let (is_changed, x, y) = (x.bits() != y.bits(), x.to_f64(), y.to_f64());
    // Padding may lie outside of the range, and stays where it is. What is no number lies nowhere.
    let stays = |(low, high): (f64, f64)| x != low && x != high && low <= y && y <= high;
    [
        keep.has(Keep::SIGN) && !(x > 0.0 && y > 0.0 || x < 0.0 && y < 0.0 || x == 0.0 && y == 0.0),
        keep.has(Keep::ZERO) && is_changed && x == 0.0,
        keep.has(Keep::RANGE) && is_changed && (x == 0.0 || !range.is_some_and(stays)),
    ]
}
