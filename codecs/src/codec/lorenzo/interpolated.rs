// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tile by interpolation: whether its values come back so within the bound, and its residuals. FORMAT.md §8.

use crate::constants::{LORENZO_FINE_BITS, LORENZO_POINT_LIMIT};
use crate::keep::PointLimits;
use crate::scalar::{Scalar, WrappingInt};
use crate::simd::vectorize;
use crate::stage::interpolate::{self, Way, Work};
use crate::stage::quantize::{Linear, Steps};

/// A tile that may be interpolated.
pub(super) struct Interpolate<'a, S: Scalar> {
    pub(super) fine: &'a Linear,
    pub(super) fill: Option<S::Bits>,
    pub(super) limits: Option<PointLimits<S>>,
    pub(super) x: &'a [S],
    pub(super) extents: [usize; 3],
}

/// What interpolating a tile found, as [`crate::stage::quantize::Found`].
pub(super) struct Made {
    pub(super) outliers: bool,
    pub(super) exact: bool,
}

impl<S: Scalar> Interpolate<'_, S> {
    /// Whether `v` stays as it is whatever is predicted.
    #[inline(always)]
    fn is_outlier(&self, v: S) -> bool {
        let (point, counts) = self.fine.nearest(v);
        !counts | self.fill.is_some_and(|f| f == v.bits()) | self.limits.is_some_and(|limits| limits.fixes(v, point))
    }

    /// What storing outliers costs, in 1/256 bits, where they depend on the predictor; of others both have as many.
    #[inline(always)]
    pub(super) fn outliers_cost(&self, regular: &[u8]) -> u64 {
        let each = 256 * 8 * S::SIZE as u64;
        self.limits.as_ref().map_or(0, |_| each * regular.iter().filter(|regular| **regular == 0).count() as u64)
    }

    /// The point of value `i` for a sample, and whether it is its own; an outlier's comes from its quantum.
    #[inline(always)]
    pub(super) fn point(&self, i: usize, quantum: i32) -> (i32, bool) {
        let v = self.x[i];
        match self.is_outlier(v) {
            true => (quantum.wrapping_mul((1 << LORENZO_FINE_BITS) + 1), false),
            false => (self.fine.nearest(v).0, true),
        }
    }

    /// Whether every value that is no outlier lies on a point and tells which, as in a tile that was interpolated
    /// before.
    #[inline(always)]
    pub(super) fn on_grid(&self) -> bool {
        self.x.chunks(64).all(|part| {
            part.iter().all(|&v| {
                let units = self.fine.nearest(v).0;
                let [on, next] = [units, units.wrapping_add(1)].map(|r| self.fine.value::<S>(r).bits() == v.bits());
                on & !next || self.is_outlier(v)
            })
        })
    }

    /// Writes residuals in the order of the stream, and which of them are no outliers. `None` where the tile must not
    /// be interpolated so, or where it is to come back exactly and does not.
    #[inline(always)]
    pub(super) fn try_way(
        &self,
        way: Way,
        exact: bool,
        stream: &[S],
        residuals: &mut [i32],
        good: &mut [u8],
        work: &mut Work,
    ) -> Option<Made> {
        match self.limits {
            None => self.run::<false>(way, exact, stream, residuals, good, work),
            Some(_) => self.run_within_limits(way, exact, stream, residuals, good, work),
        }
    }

    /// [`Interpolate::run`] of a chunk of which more than the bound is kept. By itself, for few are.
    #[inline(never)]
    fn run_within_limits(
        &self,
        way: Way,
        exact: bool,
        stream: &[S],
        residuals: &mut [i32],
        good: &mut [u8],
        work: &mut Work,
    ) -> Option<Made> {
        vectorize(
            #[inline(always)]
            || self.run::<true>(way, exact, stream, residuals, good, work),
        )
    }

    /// See [`Interpolate::try_way`].
    #[inline(always)]
    fn run<const LIMITED: bool>(
        &self,
        way: Way,
        exact: bool,
        stream: &[S],
        residuals: &mut [i32],
        good: &mut [u8],
        work: &mut Work,
    ) -> Option<Made> {
        let (fine, has_fill, fill) = (self.fine, self.fill.is_some(), self.fill.unwrap_or(S::Bits::ZERO));
        let limits = &self.limits;
        let (mut least, mut veto, mut differ) = (1u8, 0u8, S::Bits::ZERO);
        let done = interpolate::walk(
            self.extents,
            way,
            work,
            &mut [],
            #[inline(always)]
            |at, step, predicted, row| {
                let n = row.len();
                let (x, d, good) = (&stream[at..][..n], &mut residuals[at..][..n], &mut good[at..][..n]);
                let predicted = &predicted[..n];
                let mut unsure = 0;
                interpolate::by_step(
                    step,
                    #[inline(always)]
                    |step| {
                        for k in 0..n {
                            let (v, p) = (x[k], predicted[k]);
                            let (units, counts) = fine.nearest(v);
                            let residual = interpolate::residual(units, p, step);
                            let r = interpolate::point(p, residual, step);
                            let back = fine.value::<S>(r);
                            let mut fits = counts & !(has_fill & (v.bits() == fill));
                            if LIMITED && let Some(limits) = limits {
                                fits &= !limits.fixes(v, units) & limits.allow(v == S::ZERO, units, r);
                            }
                            d[k] = if fits { residual } else { 0 };
                            row[k] = if fits { r } else { p };
                            good[k] = u8::from(fits);
                            least &= good[k];
                            let far = r.unsigned_abs() > LORENZO_POINT_LIMIT as u32;
                            veto |= u8::from(fits & (far | (has_fill & (back.bits() == fill))));
                            unsure |= u8::from(fits & !fine.surely_holds(v, back));
                            differ = differ | if fits { back.bits() ^ v.bits() } else { S::Bits::ZERO };
                        }
                    },
                );
                if unsure != 0 {
                    veto |= u8::from(!self.holds(x, row, good));
                }
                veto == 0 && (!exact || differ == S::Bits::ZERO)
            },
        );
        done.then_some(Made { outliers: least == 0, exact: differ == S::Bits::ZERO })
    }

    /// Whether every value that is no outlier keeps the bound, in exact arithmetic.
    #[cold]
    fn holds(&self, x: &[S], points: &[i32], good: &[u8]) -> bool {
        x.iter().zip(points).zip(good).all(|((&v, &r), &good)| {
            let back = self.fine.value(r);
            good == 0 || self.fine.surely_holds(v, back) || self.fine.holds(v, back)
        })
    }
}
