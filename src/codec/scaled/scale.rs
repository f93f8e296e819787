// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as whole numbers times a unit, FORMAT.md §5, and back.

use crate::codec::kept::{Map, Scale};
use crate::params::Dtype;

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
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// 2^51.
pub(super) const LARGE: u64 = 1 << 51;

/// The whole number nearest to x, if it is not [`LARGE`]; another one if it is, which does no harm: what does not come
/// back is an exception.
#[inline(always)]
fn nearest(x: f64) -> i64 {
    (x + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i64
}

/// The quotient of two whole numbers without its fraction: by floats, which are fast, where both are not [`LARGE`]. A
/// fraction is not rounded away there, it is a unit of the last of 53 bits or more.
#[inline(always)]
pub(super) fn quotient(k: i64, unit: f64) -> i64 {
    nearest(((f64::from_bits(WHOLE.to_bits().wrapping_add(k as u64)) - WHOLE) / unit).trunc())
}

/// A float's bits as a whole number, which are in the same order; and back.
#[inline(always)]
pub(super) fn ordered<W: Word>(x: W) -> W {
    let sign = x.wide() >> 63;
    W::cut(x.wide() ^ (sign as u64 >> (65 - 8 * W::SIZE)) as i64)
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
