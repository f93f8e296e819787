// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the bound requested to the bound used on one chunk.

use crate::keep::{Guard, Keep};
use crate::mode::Bound;
use crate::params::{Dtype, Request};
use crate::scalar::{Bits, Scalar, mul_down, sub_down};
use crate::simd::vectorize;

/// What a lossy codec must keep, value by value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// How far each value may be from the original.
    pub tolerance: Tolerance,
    /// What else must hold.
    pub guard: Option<Guard>,
}

/// How far a value may be from the original.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// abs(x − x̂) ≤ b; 0 means the same bits.
    Absolute(f64),
    /// abs(x − x̂) ≤ r · abs(x).
    PointwiseRelative(f64),
}

/// What a bound limits, before a chunk's range is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Every value, by this; 0 means the same bits.
    Absolute(f64),
    /// Every value, by this part of the chunk's range.
    OfRange(f64),
    /// Every value, by this part of itself.
    OfValue(f64),
}

impl Bound {
    /// What limits each value so that the bound holds.
    pub fn limit(self) -> Limit {
        match self {
            Bound::Lossless => Limit::Absolute(0.0),
            Bound::Absolute(b) => Limit::Absolute(b),
            Bound::Relative(r) => Limit::OfRange(r),
            Bound::PointwiseRelative(r) => Limit::OfValue(r),
            Bound::Psnr(p) => Limit::OfRange(psnr_factor(p)),
        }
    }

    /// Whether the bound used on a chunk follows from the range of its values.
    pub fn follows_range(self) -> bool {
        matches!(self.limit(), Limit::OfRange(_))
    }

    /// Whether the limit of each value follows from the value itself.
    pub fn follows_values(self) -> bool {
        matches!(self.limit(), Limit::OfValue(_))
    }
}

impl Tolerance {
    /// The number that the frame states.
    pub fn value(self) -> f64 {
        match self {
            Tolerance::Absolute(v) | Tolerance::PointwiseRelative(v) => v,
        }
    }
}

impl Used {
    /// The number that the frame states.
    pub fn value(self) -> f64 {
        self.tolerance.value()
    }
}

impl From<Tolerance> for Used {
    fn from(tolerance: Tolerance) -> Used {
        Used { tolerance, guard: None }
    }
}

impl From<Tolerance> for Bound {
    fn from(tolerance: Tolerance) -> Bound {
        match tolerance {
            Tolerance::Absolute(b) => Bound::Absolute(b),
            Tolerance::PointwiseRelative(r) => Bound::PointwiseRelative(r),
        }
    }
}

/// Smallest and largest of the finite values whose bits are not the fill value's; `None` when there are none.
///
/// Where the user defined none (`fill` is `None`), the fill value is +0: HDF5 pads chunks with it that reach beyond the
/// edge of their dataset or are not all written, and padding must not make a relative bound a wide one.
pub fn range<S: Scalar>(values: &[S], fill: Option<u64>) -> Option<(f64, f64)> {
    let fill = S::Bits::from_u64(fill.unwrap_or(0));
    let (min, max) = vectorize(
        #[inline(always)]
        || extremes(values, fill),
    );
    // Zeros of either sign are equal, which of them comes first must not matter.
    let (min, max) = ((min + S::ZERO).to_f64(), (max + S::ZERO).to_f64());
    (min <= max).then_some((min, max))
}

/// Lanes of equal work that compile to vector code.
#[inline(always)]
fn extremes<S: Scalar>(values: &[S], fill: S::Bits) -> (S, S) {
    const LANES: usize = 64;
    let (mut lo, mut hi) = ([S::INFINITY; LANES], [-S::INFINITY; LANES]);
    let mut part = |values: &[S; LANES]| {
        for k in 0..LANES {
            let v = values[k];
            let normal = (v.abs() < S::INFINITY) & (v.bits() != fill);
            let (a, z) = if normal { (v, v) } else { (S::INFINITY, -S::INFINITY) };
            lo[k] = if a < lo[k] { a } else { lo[k] };
            hi[k] = if z > hi[k] { z } else { hi[k] };
        }
    };
    let (parts, rest) = values.as_chunks::<LANES>();
    parts.iter().for_each(&mut part);
    let mut last = [S::INFINITY; LANES];
    last[..rest.len()].copy_from_slice(rest);
    part(&last);
    let smaller = |a: S, b: &S| if *b < a { *b } else { a };
    let larger = |a: S, b: &S| if *b > a { *b } else { a };
    (lo.iter().fold(S::INFINITY, smaller), hi.iter().fold(-S::INFINITY, larger))
}

/// How far values of this [`range`] may be from the originals: relative and PSNR bounds become absolute, always rounded
/// down. Asks for the range only where it counts.
pub fn resolve(bound: Bound, range: impl FnOnce() -> Option<(f64, f64)>) -> Tolerance {
    let spread = |range: Option<(f64, f64)>| range.map_or(0.0, |(min, max)| sub_down(max, min));
    match bound.limit() {
        Limit::Absolute(b) => Tolerance::Absolute(b),
        Limit::OfRange(part) => Tolerance::Absolute(mul_down(part, spread(range()))),
        Limit::OfValue(r) => Tolerance::PointwiseRelative(r),
    }
}

/// Whether what a request asks of a chunk follows from the range of its values.
pub fn follows_range(request: Request) -> bool {
    request.bound.follows_range() || request.keep.has(Keep::RANGE)
}

/// What a codec must keep of a chunk with numbers of this type and this [`range`], which [`follows_range`] says whether
/// it needs.
pub fn used(request: Request, dtype: Dtype, range: Option<(f64, f64)>) -> Used {
    Used { tolerance: resolve(request.bound, || range), guard: Guard::new(request.keep, range, dtype.least_positive()) }
}

impl Bound {
    /// The absolute bound used on a chunk whose finite, non-fill values lie in `range` (smallest, largest), rounded
    /// down; the relative one for `pw_rel`; 0 for lossless and for a chunk without such values.
    pub fn used(self, range: Option<(f64, f64)>) -> f64 {
        resolve(self, || range).value()
    }
}

/// 10^(−p/20), never above the exact value, the same on every machine.
///
/// Exponentials of the C library differ between machines; this one is a product of two decimal texts and a short
/// series, all in correctly rounded operations.
fn psnr_factor(p: f64) -> f64 {
    let e = p / 20.0;
    let whole = e.floor();
    if whole > 300.0 {
        return 0.0;
    }
    let ten_down: f64 = format!("1e-{whole}").parse().expect("a decimal number");
    // 10^-f for f in [0, 1): exp(-f·ln 10) by its series at a quarter of the argument, then squared twice.
    let x = -(e - whole) * std::f64::consts::LN_10 / 4.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..20 {
        term = term * x / f64::from(k);
        sum += term;
    }
    let quarter = sum * sum;
    // The operations above err by less than 100 units in the last place; take 2^-40 of the value off instead.
    ten_down * (quarter * quarter) * (1.0 - 2f64.powi(-40))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_sets_nan_infinity_and_fill_aside() {
        let v = [1.0f32, f32::NAN, -3.0, f32::INFINITY, 1e20, 0.5];
        assert_eq!(range(&v, Some(1e20f32.to_bits().into())), Some((-3.0, 1.0)));
        assert_eq!(range(&v, None), Some((-3.0, f64::from(1e20f32))));
        assert_eq!(range(&[0.0f32, 279.0, 281.0, 0.0], None), Some((279.0, 281.0)), "padding");
        assert_eq!(range(&[0.0f32, 279.0, 281.0], Some(1)), Some((0.0, 281.0)), "a zero that is no padding");
        assert_eq!(range(&[-0.0f64, 5.0], None), Some((0.0, 5.0)), "the sign tells it from padding");
        assert_eq!(range(&[-0.0f64, 5.0], None).map(|(min, _)| min.to_bits()), Some(0), "zeros are alike");
        assert_eq!(range(&[0.0f64; 3], None), None);
        assert_eq!(range(&[f64::NAN], None), None);
        assert_eq!(range::<f32>(&[], None), None);
    }

    #[test]
    fn psnr_factor_stays_just_below_the_power() {
        for p in [0.1, 20.0, 37.3, 60.0, 84.9, 120.0, 999.9] {
            let exact = 10f64.powf(-p / 20.0);
            let got = psnr_factor(p);
            assert!(got < exact && got > exact * (1.0 - 1e-11), "{p}: {got:e} {exact:e}");
        }
        assert_eq!(psnr_factor(1e9), 0.0);
    }

    #[test]
    fn bounds_become_absolute() {
        let of = |bound, range| resolve(bound, || range);
        assert_eq!(resolve(Bound::Absolute(0.1), || unreachable!()), Tolerance::Absolute(0.1));
        assert_eq!(of(Bound::Relative(0.5), Some((0.0, 10.0))), Tolerance::Absolute(5.0));
        assert_eq!(resolve(Bound::PointwiseRelative(0.5), || unreachable!()), Tolerance::PointwiseRelative(0.5));
        assert_eq!(of(Bound::Relative(0.1), Some((7.0, 7.0))), Tolerance::Absolute(0.0));
        assert_eq!(of(Bound::Psnr(60.0), None), Tolerance::Absolute(0.0));
    }
}
