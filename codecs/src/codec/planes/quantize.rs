// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values to quanta, and what a value becomes. FORMAT.md §8.1.
//!
//! The quantum q is the integer nearest to x over the step. A value holds where the decoder's q · step is within the
//! bound of it, by a test in the type's own arithmetic that is stricter than the bound by more than it can err. All
//! depends on the value, the bound and what is kept alone, so that a value that was stored once never moves again.
//! Where signs are kept, half a step stands for small values: a tile that has any counts its quanta in half steps.

use super::format;
use super::shape::{LAYER, ROW};
use super::types::{Int, Value};
use super::unit::Unit;
use crate::bound::Used;
use crate::constants::{PLANES_NEAR, PLANES_TILE};
use crate::keep::Limits;
use crate::params::Params;
use crate::scalar::{Bits, WrappingInt, mul_down};
use std::ops::RangeInclusive;

/// The numbers that decide what a value becomes.
#[derive(Clone, Copy)]
pub(super) struct Quantizer<S: Value> {
    step: S,
    inverse: S,
    /// What a quantum of a tile in half steps is worth.
    half: S,
    /// Largest size of a small value; negative where there is none.
    small: S,
    /// e: the largest difference that holds.
    most: S,
    /// Largest quantum.
    limit: S,
    /// The lowest bits that count as fill, and how far the highest ones lie above them. Without a fill value those of
    /// an infinity, which never holds and which nothing becomes.
    fill: S::Bits,
    fills: S::Bits,
    /// What else must hold.
    limits: Option<Limits<S>>,
}

/// Which quanta a tile has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quanta {
    /// Of class 0: near the base.
    Near,
    /// Of class 1.
    Wide,
    /// Of class 1, in half steps.
    Halves,
}

/// What a value is by itself.
struct Judged<S: Value> {
    /// The quantum as a number of the type and as an integer, right where `within`.
    number: S,
    quantum: S::Wide,
    /// What the quantum is worth.
    becomes: S,
    /// Normal, and within the limit.
    within: bool,
    /// Comes back within the bound too, and not as the fill value.
    holds: bool,
}

impl<S: Value> Quantizer<S> {
    /// `None` where the bound gives no usable step. `fill`: bits that no value but these may become.
    pub(super) fn new(used: Used, fill: Option<RangeInclusive<u64>>) -> Option<Self> {
        let bound = used.value();
        let step: S = format::step(bound)?;
        let stricter = mul_down(bound, 1.0 - f64::exp2(-f64::from(S::STRICTER_LOG2)));
        let near = S::from_f64(stricter);
        let most = if near.to_f64() > stricter { S::of_bits(near.bits().minus(S::Bits::ONE)) } else { near };
        let (low, high) = fill.map_or((S::INFINITY.bits(), S::INFINITY.bits()), |fill| {
            let [low, high] = [*fill.start(), *fill.end()].map(S::Bits::from_u64);
            (low, high)
        });
        let limits: Option<Limits<S>> = used.guard.map(|guard| guard.limits());
        let has_small = limits.is_some_and(|limits| limits.is_sign);
        Some(Quantizer {
            step,
            inverse: S::from_f64(1.0 / step.to_f64()),
            half: S::from_f64(0.5 * step.to_f64()),
            small: S::from_f64(if has_small { 0.75 * step.to_f64() } else { -1.0 }),
            most,
            limit: S::from_f64(S::LIMIT as f64),
            fill: low,
            fills: high.minus(low),
            limits,
        })
    }

    /// `halves`: in half steps.
    #[inline(always)]
    fn judge(&self, x: S, halves: bool, fused: bool) -> Judged<S> {
        let (mut number, mut quantum) = x.quantum(self.inverse, fused);
        let within = (number.abs() <= self.limit) & !self.is_fill(x);
        let mut becomes = number * self.step;
        if halves {
            let (one, is_small) = (S::Wide::ONE, self.is_small(x));
            let side = if x < S::ZERO { S::Wide::ZERO.minus(one) } else { one };
            quantum = if is_small { side } else { quantum.plus(quantum) };
            number = if is_small { S::of_quantum(side) } else { number + number };
            becomes = number * self.half;
        }
        let holds = within & ((x - becomes).abs() <= self.most) & !self.is_fill(becomes);
        Judged { number, quantum, becomes, within, holds }
    }

    /// Whether half a step stands for a value.
    #[inline(always)]
    fn is_small(&self, x: S) -> bool {
        (x.abs() <= self.small) & (x != S::ZERO)
    }

    /// Whether the quanta of a tile are in half steps.
    pub(super) fn halves<U: Unit>(&self, x: &[S; PLANES_TILE], unit: U) -> bool {
        self.small > S::ZERO
            && unit.run(
                #[inline(always)]
                || {
                    let of = |any, &x| any | if self.is_small(x) { S::Bits::ONE } else { S::Bits::ZERO };
                    x.iter().fold(S::Bits::ZERO, of) != S::Bits::ZERO
                },
            )
    }

    /// Whether what a value becomes keeps more than the bound, where that is asked.
    #[inline(always)]
    fn is_allowed(&self, x: S, judged: &Judged<S>) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.allow(x, judged.becomes))
    }

    #[inline(always)]
    fn is_fill(&self, x: S) -> bool {
        x.bits().minus(self.fill) <= self.fills
    }

    /// r(x): what the value becomes.
    #[inline(always)]
    pub(super) fn settled(&self, x: S) -> S {
        let judged = self.judge(x, self.is_small(x), false);
        if judged.holds && self.is_allowed(x, &judged) { judged.becomes } else { x }
    }

    /// The smallest and the largest quantum of the first layer that has one.
    pub(super) fn range<U: Unit>(&self, x: &[S; PLANES_TILE], halves: bool, unit: U) -> Option<(i64, i64)> {
        x.as_chunks::<LAYER>().0.iter().find_map(|layer| {
            unit.run(
                #[inline(always)]
                || if halves { self.range_of(layer, true, U::FUSED) } else { self.range_of(layer, false, U::FUSED) },
            )
        })
    }

    #[inline(always)]
    fn range_of(&self, layer: &[S; LAYER], halves: bool, fused: bool) -> Option<(i64, i64)> {
        let (mut lo, mut hi) = ([S::INFINITY; ROW], [-S::INFINITY; ROW]);
        for row in layer.as_chunks::<ROW>().0 {
            for k in 0..ROW {
                let judged = self.judge(row[k], halves, fused);
                let (a, z) = if judged.within { (judged.number, judged.number) } else { (S::INFINITY, -S::INFINITY) };
                lo[k] = if a < lo[k] { a } else { lo[k] };
                hi[k] = if z > hi[k] { z } else { hi[k] };
            }
        }
        let lo = lo.iter().fold(S::INFINITY, |a, &b| if b < a { b } else { a });
        let hi = hi.iter().fold(-S::INFINITY, |a, &b| if b > a { b } else { a });
        (lo <= hi).then(|| (lo.to_f64() as i64, hi.to_f64() as i64))
    }

    /// Quanta of a tile less `base`. False where there are exceptions: values that do not hold, and of class 0 those
    /// that are too far from the base.
    pub(super) fn quantize<U: Unit, I: Int>(
        &self,
        x: &[S; PLANES_TILE],
        base: S::Wide,
        quanta: Quanta,
        unit: U,
        out: &mut [I; PLANES_TILE],
    ) -> bool {
        unit.run(
            #[inline(always)]
            || {
                // Half steps by themselves: nearly all tiles have whole ones.
                let mut open = match quanta {
                    Quanta::Halves => self.quantize_all(x, base, Quanta::Halves, U::FUSED, out),
                    _ => self.quantize_all(x, base, quanta, U::FUSED, out),
                };
                // Not in the loop above: nearly all chunks have nothing but a bound.
                if let Some(limits) = self.limits.filter(|_| open == S::Bits::ZERO) {
                    for &x in x {
                        let back = self.judge(x, quanta == Quanta::Halves, U::FUSED).becomes;
                        open = open | if limits.allow(x, back) { S::Bits::ZERO } else { S::Bits::ONE };
                    }
                }
                open == S::Bits::ZERO
            },
        )
    }

    /// Quanta less `base`; 0 where all values are regular.
    #[inline(always)]
    fn quantize_all<I: Int>(
        &self,
        x: &[S; PLANES_TILE],
        base: S::Wide,
        quanta: Quanta,
        fused: bool,
        out: &mut [I; PLANES_TILE],
    ) -> S::Bits {
        let mut open = S::Bits::ZERO;
        for (&x, out) in x.iter().zip(out) {
            let (v, regular) = self.regular(x, base, quanta, fused);
            *out = I::truncate(v.wide());
            open = open | if regular { S::Bits::ZERO } else { S::Bits::ONE };
        }
        open
    }

    /// A byte for each value, 1 where [`Quantizer::quantize`] counts it an exception.
    pub(super) fn flags<U: Unit>(
        &self,
        x: &[S; PLANES_TILE],
        base: S::Wide,
        quanta: Quanta,
        unit: U,
        flags: &mut [u8; PLANES_TILE],
    ) {
        unit.run(
            #[inline(always)]
            || {
                for (x, flag) in x.iter().zip(&mut *flags) {
                    *flag = u8::from(!self.regular(*x, base, quanta, U::FUSED).1);
                }
                if let Some(limits) = self.limits {
                    for (&x, flag) in x.iter().zip(flags) {
                        let back = self.judge(x, quanta == Quanta::Halves, U::FUSED).becomes;
                        *flag |= u8::from(!limits.allow(x, back));
                    }
                }
            },
        );
    }

    #[inline(always)]
    fn regular(&self, x: S, base: S::Wide, quanta: Quanta, fused: bool) -> (S::Wide, bool) {
        let judged = self.judge(x, quanta == Quanta::Halves, fused);
        let v = judged.quantum.minus(base);
        // From −4096 to 4095.
        let inside = v.plus(S::Wide::truncate(PLANES_NEAR)) >> (2 * PLANES_NEAR).ilog2() == S::Wide::ZERO;
        (v, judged.holds & (inside | (quanta != Quanta::Near)))
    }
}

/// Bits of the chunk's fill value; one of +0 counts as none: values near 0 would all be exceptions.
pub(super) fn fill_of(params: &Params) -> Option<u64> {
    params.fill.filter(|&bits| bits != 0)
}

/// r, which says what a value becomes. `fill` as in [`Quantizer::new`]. `None` without a usable step: it stays itself.
pub(crate) fn settler<S: Value>(used: Used, fill: Option<RangeInclusive<u64>>) -> Option<impl Fn(S) -> S + use<S>> {
    Quantizer::<S>::new(used, fill).map(|quantizer| move |x| quantizer.settled(x))
}

/// The base of class 0 for quanta with this middle; `None` where it is beyond what a head can say.
pub(super) fn base<S: Value>(mid: i64) -> Option<i64> {
    let base = (mid + S::HALF_UNIT).div_euclid(S::UNIT) * S::UNIT;
    let near = base.clamp(-S::BASE, S::BASE);
    (S::CLAMPED || near == base).then_some(near)
}
