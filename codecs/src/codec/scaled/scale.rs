// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as whole numbers times a unit, FORMAT.md §5, and back, one by one and many.

use crate::codec::kept::{Map, Scale};
use crate::error::Result;
use crate::memory;
use crate::params::Dtype;

/// Numbers that are mapped without a look at which of them is an exception.
const BLOCK: usize = 64;

/// Units in the last place that a number which is looked at may be off, with corrections.
const NEAR_ULPS: u64 = 4;

/// A whole number of as many bytes as the chunk's numbers, or such a number's bits.
pub(super) trait Word: bytemuck::Pod + Send + Sync + Ord {
    const SIZE: usize = size_of::<Self>();
    const MIN: Self;

    /// The whole number.
    fn wide(self) -> i64;
    /// The lowest bits of a whole number.
    fn cut(n: i64) -> Self;
    /// The float that has these bits.
    fn float(self) -> f64;
    /// The bits of a number, rounded to the type.
    fn of_float(x: f64) -> Self;

    /// The bits, in 64.
    #[inline(always)]
    fn bits(self) -> u64 {
        self.wide() as u64 & (u64::MAX >> (64 - 8 * Self::SIZE))
    }
}

impl Word for i32 {
    const MIN: i32 = i32::MIN;

    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }

    #[inline(always)]
    fn cut(n: i64) -> i32 {
        n as i32
    }

    #[inline(always)]
    fn float(self) -> f64 {
        f32::from_bits(self as u32).into()
    }

    #[inline(always)]
    fn of_float(x: f64) -> i32 {
        (x as f32).to_bits() as i32
    }
}

impl Word for i64 {
    const MIN: i64 = i64::MIN;

    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }

    #[inline(always)]
    fn cut(n: i64) -> i64 {
        n
    }

    #[inline(always)]
    fn float(self) -> f64 {
        f64::from_bits(self as u64)
    }

    #[inline(always)]
    fn of_float(x: f64) -> i64 {
        x.to_bits() as i64
    }
}

/// The type of codes.
pub(super) fn code_type(size: u8) -> Dtype {
    Dtype { class: crate::params::Class::Integer, signed: true, ..Dtype::bytes(size) }
}

/// 1.5 · 2^52. A whole number below [`LARGE`] is added to its lowest bits as to its value.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// 2^51.
const LARGE: u64 = 1 << 51;

/// The whole number nearest to x, if it is not [`LARGE`]; another one if it is, which does no harm: what does not come
/// back is an exception.
#[inline(always)]
fn nearest(x: f64) -> i64 {
    (x + ROUNDING).to_bits().wrapping_sub(ROUNDING.to_bits()) as i64
}

/// The quotient of two whole numbers without its fraction: by floats, which are fast, where both are not [`LARGE`]. A
/// fraction is not rounded away there, it is a unit of the last of 53 bits or more.
#[inline(always)]
fn quotient(k: i64, unit: f64) -> i64 {
    nearest(((f64::from_bits(ROUNDING.to_bits().wrapping_add(k as u64)) - ROUNDING) / unit).trunc())
}

/// A float's bits as a whole number, which are in the same order; and back.
#[inline(always)]
pub(super) fn ordered<W: Word>(x: W) -> W {
    let sign = x.wide() >> 63;
    W::cut(x.wide() ^ (sign as u64 >> (65 - 8 * W::SIZE)) as i64)
}

/// How many units in the last place a number lies above another one.
#[inline(always)]
pub(super) fn ulps<W: Word>(x: W, other: W) -> i64 {
    ordered(x).wide().wrapping_sub(ordered(other).wide())
}

/// The map from whole numbers to numbers, for one that works through many of them.
pub(super) trait Work<W: Word> {
    type Out;
    /// `to` maps a whole number; `from` guesses the one that a number is made of.
    fn run(self, to: impl Fn(W) -> W + Sync, from: impl Fn(W) -> i64 + Sync) -> Self::Out;
}

impl Scale {
    /// Lets `work` go through numbers by this map: it is compiled once for each.
    #[inline(always)]
    pub(super) fn with_map<W: Word, K: Work<W>>(&self, work: K) -> K::Out {
        let Scale { factor, addend, .. } = *self;
        match self.map {
            // A dictionary is looked up elsewhere.
            Map::Whole | Map::Dictionary => work.run(
                #[inline(always)]
                |q| q,
                #[inline(always)]
                |x| x.wide(),
            ),
            Map::Ordered => work.run(
                ordered,
                #[inline(always)]
                |x| ordered(x).wide(),
            ),
            Map::Quotient => work.run(
                #[inline(always)]
                move |q| W::of_float(q.wide() as f64 / factor),
                #[inline(always)]
                move |x| nearest(x.float() * factor),
            ),
            Map::Product => work.run(
                #[inline(always)]
                move |q| W::of_float(q.wide() as f64 * factor + addend),
                #[inline(always)]
                move |x| nearest((x.float() - addend) / factor),
            ),
            Map::ShortProduct => {
                let (short, more) = (factor as f32, addend as f32);
                work.run(
                    #[inline(always)]
                    move |q| W::of_float(f64::from(q.wide() as f32 * short + more)),
                    #[inline(always)]
                    move |x| nearest((x.float() - addend) / factor),
                )
            }
        }
    }
}

/// From numbers to multiples of the unit; the places of the exceptions.
pub(super) struct Divide<'a, W> {
    pub(super) scale: Scale,
    pub(super) values: &'a [W],
    pub(super) codes: &'a mut [W],
}

impl<W: Word> Work<W> for Divide<'_, W> {
    type Out = Result<Vec<usize>>;

    #[inline(always)]
    fn run(self, to: impl Fn(W) -> W, from: impl Fn(W) -> i64) -> Self::Out {
        let Scale { map, origin, unit, .. } = self.scale;
        // An exception is told by the code: whatever the guess was, it comes back or it does not.
        if unit < LARGE && (W::SIZE == 4 || !map.is_exact()) {
            let by = unit as f64;
            self.divide(
                to,
                #[inline(always)]
                |x| quotient(from(x).wrapping_sub(origin), by),
            )
        } else {
            let by = unit as i64;
            self.divide(
                to,
                #[inline(always)]
                |x| if by == 1 { from(x).wrapping_sub(origin) } else { from(x).wrapping_sub(origin) / by },
            )
        }
    }
}

impl<W: Word> Divide<'_, W> {
    #[inline(always)]
    fn divide(self, to: impl Fn(W) -> W, code: impl Fn(W) -> i64) -> Result<Vec<usize>> {
        let Scale { origin, unit, special, .. } = self.scale;
        let special = special.map(|bits| W::cut(bits as i64));
        let (has_special, special) = (special.is_some(), special.unwrap_or(W::cut(0)));
        // The special number may be a multiple too: its code is its own all the same.
        let is_code = |x: W, k: W| {
            let back = to(W::cut(origin.wrapping_add((unit as i64).wrapping_mul(k.wide()))));
            (back == x) & !(has_special & (k == W::MIN))
        };
        let mut exceptions = Vec::new();
        let blocks = self.values.chunks(BLOCK).zip(self.codes.chunks_mut(BLOCK));
        for (b, (values, codes)) in blocks.enumerate() {
            let mut good = true;
            for (x, k) in values.iter().zip(&mut *codes) {
                let (is_special, code) = (has_special & (*x == special), W::cut(code(*x)));
                *k = if is_special { W::MIN } else { code };
                good &= is_special | is_code(*x, code);
            }
            if !good {
                memory::reserve(&mut exceptions, BLOCK)?;
                let odd = |(x, k): (&W, &W)| !(has_special && *x == special || is_code(*x, *k));
                let all = values.iter().zip(&*codes).enumerate();
                exceptions.extend(all.filter(|(_, pair)| odd(*pair)).map(|(i, _)| b * BLOCK + i));
            }
        }
        Ok(exceptions)
    }
}

/// The whole number of which the map makes a number, or one at most this many units in the last place beside it.
struct Whole<W>(W, u64);

impl<W: Word> Work<W> for Whole<W> {
    type Out = Option<i64>;

    fn run(self, to: impl Fn(W) -> W, from: impl Fn(W) -> i64) -> Self::Out {
        let q = from(self.0);
        let back = to(W::cut(q));
        let is_near = back == self.0 || self.1 > 0 && ulps(self.0, back).unsigned_abs() <= self.1;
        (is_near && W::cut(q).wide() == q).then_some(q)
    }
}

impl Scale {
    /// The whole number that a number is made of; `None` where it is made of none.
    pub(super) fn whole<W: Word>(&self, x: W) -> Option<i64> {
        self.with_map(Whole(x, if self.corrected { NEAR_ULPS } else { 0 }))
    }
}

/// From multiples of the unit to numbers.
pub(super) struct Multiply<'a, W> {
    pub(super) scale: Scale,
    pub(super) codes: &'a mut [W],
}

impl<W: Word> Work<W> for Multiply<'_, W> {
    type Out = ();

    #[inline(always)]
    fn run(self, to: impl Fn(W) -> W, _: impl Fn(W) -> i64) {
        let Scale { origin, unit, special, .. } = self.scale;
        let unit = unit as i64;
        let number = |k: W| to(W::cut(origin.wrapping_add(unit.wrapping_mul(k.wide()))));
        match special {
            None => self.codes.iter_mut().for_each(|c| *c = number(*c)),
            Some(bits) => {
                let bits = W::cut(bits as i64);
                self.codes.iter_mut().for_each(|c| *c = if *c == W::MIN { bits } else { number(*c) });
            }
        }
    }
}
