// SPDX-License-Identifier: MIT OR Apache-2.0
//! f32 and f64 behind one name, with the exact operations that the format allows.

use std::fmt::Debug;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Shl, Shr, Sub};

/// An integer that wraps around at its width.
pub trait WrappingInt:
    bytemuck::Pod
    + Ord
    + Debug
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
}

macro_rules! wrapping_int {
    ($($t:ty)*) => {$(
        impl WrappingInt for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
        }
    )*};
}
wrapping_int!(u32 u64 i16 i32 i64);

/// The bits of a number in their own width, so that loops over them stay narrow and compile to vector code.
pub trait Bits: WrappingInt {
    /// Keeps the lowest bits.
    fn from_u64(b: u64) -> Self;
    fn to_u64(self) -> u64;
    /// Between this machine's byte order and little-endian; its own inverse.
    fn le(self) -> Self;
}

macro_rules! bits {
    ($t:ident) => {
        impl Bits for $t {
            #[inline(always)]
            fn from_u64(b: u64) -> Self {
                b as $t
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn le(self) -> Self {
                self.to_le()
            }
        }
    };
}

bits!(u32);
bits!(u64);

/// A floating-point type that lossy codecs take.
///
/// Arithmetic is IEEE 754 round-to-nearest-even and is never fused; a kernel that computes the same value must use
/// the same operations in the same order.
pub trait Scalar:
    bytemuck::Pod
    + PartialOrd
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// Bits of the same width.
    type Bits: Bits;
    /// Bytes of one value.
    const SIZE: usize = size_of::<Self>();
    /// Bits of the stored mantissa.
    const MANTISSA: u32;
    /// Bits of the exponent.
    const EXPONENT: u32 = 8 * Self::SIZE as u32 - 1 - Self::MANTISSA;
    /// What is added to an exponent where it is stored: 127 or 1023.
    const BIAS: i32 = (1 << (Self::EXPONENT - 1)) - 1;
    const ZERO: Self;
    const INFINITY: Self;

    fn bits(self) -> Self::Bits;
    fn of_bits(bits: Self::Bits) -> Self;
    fn to_f64(self) -> f64;
    /// Rounded to nearest, ties to even.
    fn from_f64(x: f64) -> Self;
    fn abs(self) -> Self;

    /// 2^e, which is normal.
    #[inline(always)]
    fn power_of_two(e: i32) -> Self {
        Self::of_bits(Self::Bits::from_u64((e + Self::BIAS) as u64) << Self::MANTISSA)
    }
}

macro_rules! scalar {
    ($t:ident, $bits:ident, $mantissa:literal) => {
        impl Scalar for $t {
            type Bits = $bits;
            const MANTISSA: u32 = $mantissa;
            const ZERO: Self = 0.0;
            const INFINITY: Self = $t::INFINITY;
            #[inline(always)]
            fn bits(self) -> $bits {
                self.to_bits()
            }
            #[inline(always)]
            fn of_bits(bits: $bits) -> Self {
                $t::from_bits(bits)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
        }
    };
}

scalar!(f32, u32, 23);
scalar!(f64, u64, 52);

/// Whether abs(x − y) ≤ b holds in exact real arithmetic. False for anything not finite.
///
/// The rounded difference decides unless it equals b; then the rounding error of the subtraction (Knuth's two-sum)
/// says on which side the exact difference lies.
#[inline(always)]
pub fn within(x: f64, y: f64, b: f64) -> bool {
    let d = x - y;
    // Exact in f64: d + error is the true difference.
    let t = d - x;
    let error = (x - (d - t)) + (-y - t);
    let (d, error) = if d < 0.0 { (-d, -error) } else { (d, error) };
    // No short cuts: loops over this compile to vector code.
    (d < b) | ((d == b) & (error <= 0.0))
}

/// The largest f64 not above the exact product of two non-negative numbers.
pub fn mul_down(a: f64, b: f64) -> f64 {
    let p = a * b;
    if p.is_infinite() {
        return f64::MAX;
    }
    // Below 2^-960 the residual itself may round: one step down is never wrong there.
    if p < 1e-289 || a.mul_add(b, -p) < 0.0 { p.next_down().max(0.0) } else { p }
}

/// The largest f64 not above the exact difference a − b, for a ≥ b.
pub fn sub_down(a: f64, b: f64) -> f64 {
    let d = a - b;
    if d.is_infinite() {
        return f64::MAX;
    }
    let t = d - a;
    let error = (a - (d - t)) + (-b - t);
    if error < 0.0 { d.next_down().max(0.0) } else { d }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_decides_in_exact_arithmetic() {
        assert!(within(1.0, 0.5, 0.5));
        // 1 + 2^-60 is not an f64, yet the difference exceeds the bound.
        let tiny = 2f64.powi(-60);
        assert!(!within(1.0, -tiny, 1.0));
        assert!(within(1.0, tiny, 1.0));
        assert!(!within(-1.0, tiny, 1.0));
        assert!(within(3.0, 3.0, 0.0));
        assert!(!within(f64::NAN, 1.0, 1.0) && !within(f64::INFINITY, f64::INFINITY, 1.0));
        assert!(!within(f64::MAX, -f64::MAX, f64::MAX));
    }

    #[test]
    fn rounding_down_never_exceeds_the_exact_value() {
        assert_eq!(mul_down(0.5, 3.0), 1.5);
        assert!(mul_down(0.1, 0.1) <= 0.1 * 0.1);
        assert_eq!(mul_down(1e200, 1e200), f64::MAX);
        // One and a half of the smallest numbers: the product is rounded to two, and the residual to zero.
        assert_eq!(mul_down(3.0 * 2f64.powi(-538), 2f64.powi(-537)), 5e-324);
        assert_eq!(sub_down(1.0, 0.5), 0.5);
        assert_eq!(sub_down(1.0, 2f64.powi(-60)), 1f64.next_down());
        assert_eq!(sub_down(f64::MAX, -f64::MAX), f64::MAX);
    }
}
