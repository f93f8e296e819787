// SPDX-License-Identifier: MIT OR Apache-2.0
//! What comes back beside the bound: signs, zeros, the range of a chunk's values.
//!
//! ```text
//! sign     positive values stay positive, negative ones negative; of zeros the bits may change: 0 becomes 0 or -0
//! zero     0 and -0 come back bit for bit
//! range    no value comes back below the smallest or above the largest of the chunk's finite values that are not the
//!          fill value; those two come back bit for bit, and so do zeros
//! ```
//!
//! Frames say nothing of it: a value that would break a promise is stored exactly, as one that would miss its bound.
//! `planes` keeps signs by half steps instead, `lorenzo` by a base.
//! +0 where the user defined no fill value stretches no range, as under a relative bound: HDF5 pads chunks with it.
//! Hence zeros of the range's promise, which may lie outside of it.

use crate::constants::LORENZO_POINT_LIMIT as POINT_LIMIT;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use std::fmt;
use std::str::FromStr;

/// A set of promises beside a bound. As a text, `sign`, `zero` and `range` with + between them; nothing for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Keep(u8);

/// What there is to say of one promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepFacts {
    /// The set of it alone.
    pub keep: Keep,
    /// As it is typed.
    pub name: &'static str,
    /// What is kept, as in "signs are kept".
    pub what: &'static str,
    /// What it promises.
    pub meaning: &'static str,
}

impl Keep {
    /// Nothing but the bound.
    pub const NONE: Keep = Keep(0);
    /// Each value's sign: bit 1 in words.
    pub const SIGN: Keep = Keep(1);
    /// Zeros, bit for bit: bit 2.
    pub const ZERO: Keep = Keep(2);
    /// The chunk's range: bit 4.
    pub const RANGE: Keep = Keep(4);
    /// Each promise that there is, in the order of their bits.
    pub const ALL: [KeepFacts; 3] = [
        KeepFacts {
            keep: Keep::SIGN,
            name: "sign",
            what: "signs",
            meaning: "positive values stay positive, negative ones negative, zeros zero",
        },
        KeepFacts { keep: Keep::ZERO, name: "zero", what: "zeros", meaning: "0 and -0 come back bit for bit" },
        KeepFacts {
            keep: Keep::RANGE,
            name: "range",
            what: "the range of each chunk",
            meaning: "no value leaves the chunk's range, whose ends and zeros come back bit for bit",
        },
    ];

    /// The set of these bits, as words have them.
    ///
    /// # Errors
    /// `Params` for bits that stand for nothing.
    pub fn new(bits: u32) -> Result<Self> {
        match bits {
            0..=7 => Ok(Keep(bits as u8)),
            _ => Err(Error::params("keep", format!("{bits}; allowed is a sum of 1 sign, 2 zero, 4 range"))),
        }
    }

    /// Its bits in words.
    pub fn bits(self) -> u32 {
        self.0.into()
    }

    /// Whether all of `other` is in it.
    pub fn has(self, other: Keep) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is in it, one after the other.
    pub fn facts(self) -> impl Iterator<Item = &'static KeepFacts> {
        Keep::ALL.iter().filter(move |facts| self.has(facts.keep))
    }

    /// What is in either.
    pub fn and(self, other: Keep) -> Self {
        Keep(self.0 | other.0)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.facts().map(|facts| facts.name).collect();
        f.write_str(&names.join("+"))
    }
}

impl FromStr for Keep {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.split('+').filter(|_| !text.trim().is_empty()).try_fold(Keep::NONE, |all, name| {
            let found = Keep::ALL.iter().find(|facts| facts.name == name.trim());
            let facts = found.ok_or_else(|| {
                Error::params("keep", format!("{text:?}; allowed are sign, zero, range, several with + between them"))
            })?;
            Ok(all.and(facts.keep))
        })
    }
}

/// What a [`Keep`] asks of the values of one chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guard {
    /// What is kept.
    pub keep: Keep,
    /// Smallest and largest value, infinite where the range is not kept.
    pub range: (f64, f64),
    /// The smallest positive number that may stand for a positive one.
    pub least: f64,
}

impl Guard {
    /// For a chunk whose finite values that are not the fill value lie in `range`. `least`: the smallest positive
    /// number of the chunk's type.
    pub(crate) fn new(keep: Keep, range: Option<(f64, f64)>, least: f64) -> Option<Self> {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        (keep != Keep::NONE).then(|| Guard {
            keep,
            range: range.filter(|_| keep.has(Keep::RANGE)).unwrap_or(all),
            least,
        })
    }

    /// The same in the arithmetic of a codec's type, which holds every number of the chunk's.
    pub fn limits<S: Scalar>(&self) -> Limits<S> {
        let (low, high) = (S::from_f64(self.range.0), S::from_f64(self.range.1));
        let is_sign = self.keep.has(Keep::SIGN);
        let least = S::from_f64(self.least);
        Limits {
            low,
            high,
            positive: if is_sign && least > low { least } else { low },
            negative: if is_sign && -least < high { -least } else { high },
            zero: if is_sign { (S::ZERO, S::ZERO) } else { (low, high) },
            is_zero_exact: self.keep.has(Keep::ZERO) || self.keep.has(Keep::RANGE),
            is_sign,
        }
    }
}

/// What may stand for a value, by the value's sign.
#[derive(Debug, Clone, Copy)]
pub struct Limits<S> {
    low: S,
    high: S,
    /// From where to `high` positive values may go, and from `low` to where negative ones, and zeros.
    positive: S,
    negative: S,
    zero: (S, S),
    is_zero_exact: bool,
    pub(crate) is_sign: bool,
}

impl<S: Scalar> Limits<S> {
    /// Whether `back` may stand for `x`, which is finite.
    #[inline(always)]
    pub fn allow(&self, x: S, back: S) -> bool {
        let (is_positive, is_negative) = (x > S::ZERO, x < S::ZERO);
        let is_zero = !(is_positive | is_negative);
        let low = if is_positive {
            self.positive
        } else if is_zero {
            self.zero.0
        } else {
            self.low
        };
        let high = if is_negative {
            self.negative
        } else if is_zero {
            self.zero.1
        } else {
            self.high
        };
        let is_exact = (x == self.low) | (x == self.high) | (is_zero & self.is_zero_exact);
        (x.bits() == back.bits()) | (!is_exact & (back >= low) & (back <= high))
    }
}

/// Which points of `lorenzo`'s interpolation may stand for values. For a zero it is 0 alone.
#[derive(Debug, Clone, Copy)]
pub struct PointLimits<S> {
    limits: Limits<S>,
    /// Points below it count as those of negative values, the others as those of positive ones.
    threshold: i32,
    /// The first and the last for positive values, and for negative ones.
    positive: (i32, i32),
    negative: (i32, i32),
    has_base: bool,
}

impl<S: Scalar> Limits<S> {
    /// The points that may stand for values, of which `value` says what they are worth. Neither end of the range is
    /// among them, but for 0: written again it would be stored exactly.
    pub(crate) fn of_points(&self, has_base: bool, value: impl Fn(i32) -> S) -> PointLimits<S> {
        // The first point from which on this is true.
        let first = |is: &dyn Fn(S) -> bool| {
            let (mut below, mut from) = (-POINT_LIMIT - 1, POINT_LIMIT + 1);
            while from - below > 1 {
                let middle = below.midpoint(from);
                match is(value(middle)) {
                    true => from = middle,
                    false => below = middle,
                }
            }
            from
        };
        let (low, high) = (self.low, self.high);
        let above = |y: S| y > low || (y == low && low == S::ZERO);
        let beyond = |y: S| y > high || (y == high && high != S::ZERO);
        PointLimits {
            limits: *self,
            threshold: first(&|y| y > S::ZERO),
            positive: (first(&|y| above(y) && y >= self.positive), first(&beyond) - 1),
            negative: (first(&above), first(&|y| beyond(y) || y > self.negative) - 1),
            has_base,
        }
    }
}

impl<S: Scalar> PointLimits<S> {
    /// Whether no point may stand for a finite value with this point of its own: an end of the range, a zero that no
    /// point is worth, or a value whose sign its point does not tell.
    #[inline(always)]
    pub(crate) fn fixes(&self, x: S, own: i32) -> bool {
        let Limits { low, high, is_sign, is_zero_exact, .. } = self.limits;
        let is_zero = x == S::ZERO;
        let is_fixed_zero = self.has_base | (is_zero_exact & (x.bits() != S::ZERO.bits()));
        let is_fixed = (x == low) | (x == high) | (is_sign & ((x > S::ZERO) != (own >= self.threshold)));
        if is_zero { is_fixed_zero } else { is_fixed }
    }

    /// Whether a point may stand for a value that is not fixed, with this point of its own.
    #[inline(always)]
    pub(crate) fn allow(&self, is_zero: bool, own: i32, point: i32) -> bool {
        let signed = if own < self.threshold { self.negative } else { self.positive };
        let (first, last) = if is_zero { (0, 0) } else { signed };
        (point >= first) & (point <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(keep: Keep, range: (f64, f64), x: f32, back: f32) -> bool {
        let least = f32::from_bits(1).into();
        Guard::new(keep, Some(range), least).unwrap().limits::<f32>().allow(x, back)
    }

    #[test]
    fn what_may_stand_for_a_value_is_what_the_promise_says() {
        let tiny = f32::from_bits(1);
        for (keep, x, back, is_allowed) in [
            (Keep::SIGN, 1.0, tiny, true),
            (Keep::SIGN, 1.0, 0.0, false),
            (Keep::SIGN, 1.0, -tiny, false),
            (Keep::SIGN, -1.0, -tiny, true),
            (Keep::SIGN, -1.0, -0.0, false),
            (Keep::SIGN, 0.0, -0.0, true),
            (Keep::SIGN, -0.0, tiny, false),
            (Keep::SIGN, 1.0, 9.0, true),
            (Keep::ZERO, 0.0, -0.0, false),
            (Keep::ZERO, -0.0, -0.0, true),
            (Keep::ZERO, 0.0, tiny, false),
            (Keep::ZERO, 1.0, 0.0, true),
            (Keep::RANGE, 1.0, 2.0, true),
            (Keep::RANGE, 1.0, 2.5, false),
            (Keep::RANGE, 1.0, -3.0, true),
            (Keep::RANGE, -1.0, -3.5, false),
            (Keep::RANGE, 2.0, 1.9, false),
            (Keep::RANGE, 2.0, 2.0, true),
            (Keep::RANGE, -3.0, -2.9, false),
            (Keep::RANGE, 0.0, -0.0, false),
            (Keep::SIGN.and(Keep::RANGE), 1.0, -1.0, false),
            (Keep::SIGN.and(Keep::RANGE), 1.0, 2.0, true),
            (Keep::SIGN.and(Keep::RANGE), 1.0, 2.1, false),
        ] {
            assert_eq!(allowed(keep, (-3.0, 2.0), x, back), is_allowed, "{keep}: {x:e} as {back:e}");
        }
        // Padding lies outside of the range.
        assert!(allowed(Keep::RANGE, (5.0, 7.0), 0.0, 0.0) && !allowed(Keep::RANGE, (5.0, 7.0), 0.0, 5.0));
    }

    #[test]
    fn texts_and_bits_mean_the_same() {
        for bits in 0..8 {
            let keep = Keep::new(bits).unwrap();
            assert_eq!((keep.bits(), keep.to_string().parse::<Keep>().unwrap()), (bits, keep));
        }
        assert_eq!("range + sign".parse::<Keep>().unwrap().to_string(), "sign+range");
        for wrong in ["signs", "sign,zero", "sign+", "+"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
        assert!(Keep::new(8).is_err());
    }
}
