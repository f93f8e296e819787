// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec's kinds of numbers: residuals of 16, 32 and 64 bits behind one name, values of 4 and 8 bytes with what the
//! format fixes for each, and integers of 1 and 2 bytes, which are coded as values of 4.

use crate::constants::{
    PLANES_BASE_F32, PLANES_BASE_F64, PLANES_LIMIT_F32, PLANES_LIMIT_F64, PLANES_STEP_LOG2_F32, PLANES_STEP_LOG2_F64,
    PLANES_UNIT_F32, PLANES_UNIT_F64,
};
use crate::scalar::{Bits, Scalar, WrappingInt};

/// A quantum less its base, or a difference of such: wraps around at its width.
pub(crate) trait Int: WrappingInt {
    /// Bytes, which are also the most slices of a block.
    const BYTES: usize;
    /// Keeps the lowest bits.
    fn truncate(wide: i64) -> Self;
    fn wide(self) -> i64;
    /// Bits without leading zeros.
    fn length(self) -> u32;
    /// Low bits that are 0, before the first that is not; 0 where there is none.
    fn zeros(self) -> u32;
    /// Undoes [`Int::zigzag`].
    fn unzigzag(self) -> Self;
    /// Moves a number that is not negative to lower places, not as many as the type has.
    fn shifted_right(self, places: Self) -> Self;
    /// The lowest bits, at most 64.
    fn lowest(self, bits: u32) -> u64;
    /// Byte k, 0 the lowest.
    fn byte(self, k: usize) -> u8;

    /// Byte k of each of 32, four in a word in the order that the format has them: the first, third, second, fourth.
    #[inline(always)]
    fn bytes(from: &[Self; 32], k: usize, words: &mut [u32; 8]) {
        for (word, [a, b, c, d]) in words.iter_mut().zip(from.as_chunks::<4>().0) {
            *word = u32::from_le_bytes([a.byte(k), c.byte(k), b.byte(k), d.byte(k)]);
        }
    }

    /// Sets byte k, which is 0, of each of 32.
    #[inline(always)]
    fn add_bytes(words: &[u32; 8], k: usize, to: &mut [Self; 32]) {
        for (word, to) in words.iter().zip(to.as_chunks_mut::<4>().0) {
            let [a, c, b, d] = word.to_le_bytes();
            for (to, byte) in to.iter_mut().zip([a, b, c, d]) {
                *to = *to | Self::truncate(i64::from(byte)) << (8 * k as u32);
            }
        }
    }

    /// 2d, or −2d − 1 where d is negative, as a number that is not.
    #[inline(always)]
    fn zigzag(self) -> Self {
        self << 1 ^ self >> (8 * Self::BYTES as u32 - 1)
    }

    /// d, or −d − 1 where d is negative.
    #[inline(always)]
    fn fold(self) -> Self {
        self ^ self >> (8 * Self::BYTES as u32 - 1)
    }
}

macro_rules! int {
    ($t:ident $($more:tt)*) => {
        impl Int for $t {
            $($more)*
            const BYTES: usize = size_of::<$t>();
            #[inline(always)]
            fn truncate(wide: i64) -> Self {
                wide as $t
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                self.into()
            }
            #[inline(always)]
            fn length(self) -> u32 {
                $t::BITS - self.leading_zeros()
            }
            #[inline(always)]
            fn zeros(self) -> u32 {
                self.trailing_zeros() * u32::from(self != 0)
            }
            #[inline(always)]
            fn unzigzag(self) -> Self {
                self.cast_unsigned().wrapping_shr(1).cast_signed() ^ (self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn shifted_right(self, places: Self) -> Self {
                self.wrapping_shr(places as u32)
            }
            #[inline(always)]
            fn lowest(self, bits: u32) -> u64 {
                let all = u64::from(self.cast_unsigned());
                if bits >= 64 { all } else { all & !(u64::MAX << bits) }
            }
            #[inline(always)]
            fn byte(self, k: usize) -> u8 {
                (self >> (8 * k)) as u8
            }
        }
    };
}

int!(i16
    #[inline(always)]
    fn bytes(from: &[i16; 32], k: usize, words: &mut [u32; 8]) {
        for (word, four) in words.iter_mut().zip(from.as_chunks::<4>().0) {
            let bytes = in_one(four) >> (8 * k) & LOW_BYTES;
            *word = (bytes | bytes >> 24) as u32;
        }
    }

    #[inline(always)]
    fn add_bytes(words: &[u32; 8], k: usize, to: &mut [i16; 32]) {
        for (&word, four) in words.iter().zip(to.as_chunks_mut::<4>().0) {
            let bytes = (u64::from(word) | u64::from(word) << 24) & LOW_BYTES;
            *four = apart(in_one(four) | bytes << (8 * k));
        }
    }
);
int!(i32);
int!(i64);

/// The lower byte of each of four 16-bit numbers.
const LOW_BYTES: u64 = 0x00FF_00FF_00FF_00FF;

/// Four 16-bit numbers in one, the first lowest.
#[inline(always)]
fn in_one(four: &[i16; 4]) -> u64 {
    if cfg!(target_endian = "little") {
        return bytemuck::cast(*four);
    }
    four.iter().rev().fold(0, |all, &v| all << 16 | u64::from(v as u16))
}

/// Undoes [`in_one`].
#[inline(always)]
fn apart(all: u64) -> [i16; 4] {
    if cfg!(target_endian = "little") {
        return bytemuck::cast(all);
    }
    std::array::from_fn(|k| (all >> (16 * k)) as i16)
}

/// A value of 4 or 8 bytes.
pub(crate) trait Value: Scalar {
    /// The integer of its size.
    type Wide: Int;
    /// Largest quantum.
    const LIMIT: i64;
    /// What a base of class 0 is a multiple of.
    const UNIT: i64;
    /// Added to a middle before it is rounded down to such a multiple.
    const HALF_UNIT: i64;
    /// Largest base of class 0, either sign.
    const BASE: i64;
    /// Whether a larger base is brought down to that.
    const CLAMPED: bool;
    /// Binary logarithm of the largest usable step.
    const STEP_LOG2: u32;
    /// Binary logarithm of the part of the bound by which the test for it is stricter.
    const STRICTER_LOG2: i32;
    /// The integer nearest to x · i, ties to even, as a number of the type and as an integer. Right where it is at most
    /// the limit; beyond it, and for NaN, the number is not within the limit. `fused` changes the way, not the result.
    fn quantum(self, inverse: Self, fused: bool) -> (Self, Self::Wide);
    /// f(q).
    fn of_quantum(q: Self::Wide) -> Self;
    /// f(q) of a quantum of class 0.
    fn of_near(q: i32) -> Self;

    /// The value's bits.
    #[inline(always)]
    fn to_wide(self) -> Self::Wide {
        bytemuck::cast(self)
    }

    /// Undoes [`Value::to_wide`].
    #[inline(always)]
    fn of_wide(bits: Self::Wide) -> Self {
        bytemuck::cast(bits)
    }
}

/// Added to an f64 below 2^51, this leaves no fraction bits, and the integer in the lowest bits.
const MAGIC: f64 = 1.5 * (1u64 << 52) as f64;

impl Value for f32 {
    type Wide = i32;
    const LIMIT: i64 = PLANES_LIMIT_F32;
    const UNIT: i64 = PLANES_UNIT_F32;
    // None: where all quanta are alike, they are to be 0 or 1 above the base, not 1 below. All of -1 looks short to
    // the choice of a predictor, and is a full plane of signs.
    const HALF_UNIT: i64 = 0;
    const BASE: i64 = PLANES_BASE_F32;
    const CLAMPED: bool = true;
    const STEP_LOG2: u32 = PLANES_STEP_LOG2_F32;
    const STRICTER_LOG2: i32 = 20;

    #[inline(always)]
    fn quantum(self, inverse: Self, fused: bool) -> (Self, i32) {
        if fused {
            // The sum of the exact product and 1.5 · 2^23 is rounded once, to an integer where it is below 2^24.
            const MAGIC: f32 = 1.5 * (1u32 << 23) as f32;
            let sum = self.mul_add(inverse, MAGIC);
            return (sum - MAGIC, (sum.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32));
        }
        // The product of two f32 is an f64.
        let sum = f64::from(self) * f64::from(inverse) + MAGIC;
        ((sum - MAGIC) as f32, sum.to_bits() as i32)
    }

    #[inline(always)]
    fn of_quantum(q: i32) -> Self {
        q as f32
    }

    #[inline(always)]
    fn of_near(q: i32) -> Self {
        q as f32
    }
}

impl Value for f64 {
    type Wide = i64;
    const LIMIT: i64 = PLANES_LIMIT_F64;
    const UNIT: i64 = PLANES_UNIT_F64;
    const HALF_UNIT: i64 = PLANES_UNIT_F64 / 2;
    const BASE: i64 = PLANES_BASE_F64;
    const CLAMPED: bool = false;
    const STEP_LOG2: u32 = PLANES_STEP_LOG2_F64;
    const STRICTER_LOG2: i32 = 40;

    #[inline(always)]
    fn quantum(self, inverse: Self, _: bool) -> (Self, i64) {
        let sum = self * inverse + MAGIC;
        (sum - MAGIC, (sum.to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64))
    }

    #[inline(always)]
    fn of_quantum(q: i64) -> Self {
        q as f64
    }

    #[inline(always)]
    fn of_near(q: i32) -> Self {
        q.into()
    }
}

/// What a chunk holds: values, or integers of 1 or 2 bytes, which become the bits of values.
pub(crate) trait Held<S: Value>: bytemuck::Pod + Send + Sync {
    fn widen(self) -> S;
    /// Undoes [`Held::widen`]; of a value that it never makes, the lowest bytes.
    fn narrow(x: S) -> Self;
    /// The element of these bits.
    fn of_bits(bits: u64) -> Self;
}

impl<S: Value> Held<S> for S {
    #[inline(always)]
    fn widen(self) -> S {
        self
    }

    #[inline(always)]
    fn narrow(x: S) -> S {
        x
    }

    fn of_bits(bits: u64) -> S {
        S::of_bits(S::Bits::from_u64(bits))
    }
}

macro_rules! held {
    ($($t:ty)*) => {$(
        impl Held<f32> for $t {
            #[inline(always)]
            fn widen(self) -> f32 {
                f32::from_bits(i32::from(self).cast_unsigned())
            }

            #[inline(always)]
            fn narrow(x: f32) -> $t {
                x.to_bits() as $t
            }

            fn of_bits(bits: u64) -> $t {
                bits as $t
            }
        }
    )*};
}
held!(i8 u8 i16 u16);
