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
    fn bits(self) -> u64 {
        self.wide() as u64 & (u64::MAX >> (64 - 8 * Self::SIZE))
    }
}

impl Word for i32 {
    const MIN: i32 = i32::MIN;

    fn wide(self) -> i64 {
        self.into()
    }

    fn cut(n: i64) -> i32 {
        n as i32
    }

    fn float(self) -> f64 {
        f32::from_bits(self as u32).into()
    }

    fn of_float(x: f64) -> i32 {
        (x as f32).to_bits() as i32
    }
}

impl Word for i64 {
    const MIN: i64 = i64::MIN;

    fn wide(self) -> i64 {
        self
    }

    fn cut(n: i64) -> i64 {
        n
    }

    fn float(self) -> f64 {
        f64::from_bits(self as u64)
    }

    fn of_float(x: f64) -> i64 {
        x.to_bits() as i64
    }
}

/// The type of codes.
pub(super) fn code_type(size: u8) -> Dtype {
    Dtype { class: crate::params::Class::Integer, signed: true, ..Dtype::bytes(size) }
}

/// The whole number nearest to x. Those of 2^51 and more are not told apart from their neighbours, which does no harm:
/// what does not come back is an exception.
fn nearest(x: f64) -> i64 {
    /// 1.5 · 2^52, of which sums have no fraction.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    ((x + WHOLE) - WHOLE) as i64
}

/// A float's bits as a whole number, which are in the same order; and back.
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
    pub(super) fn with_map<W: Word, K: Work<W>>(&self, work: K) -> K::Out {
        let Scale { factor, addend, .. } = *self;
        match self.map {
            Map::Whole => work.run(|q| q, |x| x.wide()),
            Map::Ordered => work.run(ordered, |x| ordered(x).wide()),
            Map::Quotient => {
                work.run(move |q| W::of_float(q.wide() as f64 / factor), move |x| nearest(x.float() * factor))
            }
            Map::Product => work.run(
                move |q| W::of_float(q.wide() as f64 * factor + addend),
                move |x| nearest((x.float() - addend) / factor),
            ),
            Map::ShortProduct => {
                let (short, more) = (factor as f32, addend as f32);
                work.run(
                    move |q| W::of_float(f64::from(q.wide() as f32 * short + more)),
                    move |x| nearest((x.float() - addend) / factor),
                )
            }
        }
    }
}
