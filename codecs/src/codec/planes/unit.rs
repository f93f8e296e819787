// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vector unit that tiles are coded for.
//!
//! A step over a tile or a block is compiled for each unit by itself: [`Unit::run`] stands around it, and what it calls
//! is inlined into it. Around all of a tile at once it would be a function too large to be compiled well.

use super::bitplanes::{self, BitPlane, Slice};
use crate::stage::pack::{Bytes, Portable};
#[cfg(target_arch = "x86_64")]
use crate::stage::pack::{PLANE, Plane, SLACK};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256i;

/// A vector unit.
pub(super) trait Unit: Bytes {
    /// It multiplies and adds with one rounding: in software that would be slow.
    const FUSED: bool;
    /// Does `step`, compiled for this unit. Only what is inlined into it profits.
    fn run<R>(self, step: impl FnOnce() -> R) -> R;

    /// Rows to bit planes, and back.
    #[inline(always)]
    fn transpose(self, slice: &mut Slice) {
        bitplanes::transpose(slice);
    }

    /// Looks every byte, which is below 8, up in a table.
    #[inline(always)]
    fn lookup(self, rows: &mut Slice, table: &[u8; 8]) {
        let table = u64::from_le_bytes(*table);
        let of = |byte: u32| (table >> (8 * (byte & 7))) as u32 & 0xFF;
        for word in rows.as_flattened_mut() {
            *word = of(*word) | of(*word >> 8) << 8 | of(*word >> 16) << 16 | of(*word >> 24) << 24;
        }
    }

    /// Combines a bit plane with the signs by xor.
    #[inline(always)]
    fn flip(self, plane: &mut BitPlane, signs: &BitPlane) {
        plane.iter_mut().zip(signs).for_each(|(word, sign)| *word ^= sign);
    }

    /// Adds a row to another.
    #[inline(always)]
    fn add(self, row: &mut [i16; 32], other: &[i16; 32]) {
        row.iter_mut().zip(other).for_each(|(v, other)| *v = v.wrapping_add(*other));
    }

    /// Replaces each of 32 by the sum of all up to it.
    #[inline(always)]
    fn sums(self, row: &mut [i16; 32]) {
        let mut sum = 0i16;
        for v in row {
            sum = sum.wrapping_add(*v);
            *v = sum;
        }
    }
}

impl Unit for Portable {
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        step()
    }
}

#[cfg(target_arch = "x86_64")]
impl Unit for pulp::x86::V3 {
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        self.vectorize(step)
    }

    // Written out: left to itself, the compiler gathers words from several rows.

    #[inline(always)]
    fn transpose(self, slice: &mut Slice) {
        for group in 0..slice[0].len() / 8 {
            let mut v: [__m256i; 8] =
                std::array::from_fn(|i| pulp::cast(*slice[i].as_chunks::<8>().0.get(group).expect("words of a group")));
            exchange::<4>(self, &mut v, 0x0F0F_0F0F);
            exchange::<2>(self, &mut v, 0x3333_3333);
            exchange::<1>(self, &mut v, 0x5555_5555);
            for (row, v) in slice.iter_mut().zip(v) {
                row.as_chunks_mut::<8>().0[group] = pulp::cast(v);
            }
        }
    }

    #[inline(always)]
    fn lookup(self, rows: &mut Slice, table: &[u8; 8]) {
        let table = pulp::cast([*table; 4]);
        for words in rows.as_flattened_mut().as_chunks_mut::<8>().0 {
            *words = pulp::cast(self.avx2._mm256_shuffle_epi8(table, pulp::cast(*words)));
        }
    }

    #[inline(always)]
    fn flip(self, plane: &mut BitPlane, signs: &BitPlane) {
        for (words, signs) in plane.as_chunks_mut::<8>().0.iter_mut().zip(signs.as_chunks::<8>().0) {
            *words = pulp::cast(self.avx2._mm256_xor_si256(pulp::cast(*words), pulp::cast(*signs)));
        }
    }

    #[inline(always)]
    fn add(self, row: &mut [i16; 32], other: &[i16; 32]) {
        let ([a, b], [c, d]): ([__m256i; 2], [__m256i; 2]) = (pulp::cast(*row), pulp::cast(*other));
        *row = pulp::cast([self.avx2._mm256_add_epi16(a, c), self.avx2._mm256_add_epi16(b, d)]);
    }

    #[inline(always)]
    fn sums(self, row: &mut [i16; 32]) {
        let [a, b]: [__m256i; 2] = pulp::cast(*row);
        let (a, b) = (sums_of_16(self, a), sums_of_16(self, b));
        let high = self.avx2._mm256_shuffle_epi8(a, pulp::cast(LAST_OF_8));
        let b = self.avx2._mm256_add_epi16(b, self.avx2._mm256_permute2x128_si256::<0x11>(high, high));
        *row = pulp::cast([a, b]);
    }
}

/// For the byte shuffle: the last of each eight 16-bit numbers, to all of their places.
#[cfg(target_arch = "x86_64")]
const LAST_OF_8: [u16; 16] = [0x0F0E; 16];

/// Replaces each of 16 by the sum of all up to it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sums_of_16(v3: pulp::x86::V3, v: __m256i) -> __m256i {
    // Shifts stay within eight.
    let v = v3.avx2._mm256_add_epi16(v, v3.avx2._mm256_slli_si256::<2>(v));
    let v = v3.avx2._mm256_add_epi16(v, v3.avx2._mm256_slli_si256::<4>(v));
    let v = v3.avx2._mm256_add_epi16(v, v3.avx2._mm256_slli_si256::<8>(v));
    let last = v3.avx2._mm256_shuffle_epi8(v, pulp::cast(LAST_OF_8));
    // The lower eight's to the upper eight, 0 to the lower.
    v3.avx2._mm256_add_epi16(v, v3.avx2._mm256_permute2x128_si256::<0x08>(last, last))
}

/// As the plain one of `bitplanes.rs`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exchange<const N: i32>(v3: pulp::x86::V3, v: &mut [__m256i; 8], mask: u32) {
    let (n, mask) = (N as usize, pulp::cast([mask; 8]));
    for pair in 0..4 {
        let i = pair / n * 2 * n + pair % n;
        let t = v3.avx2._mm256_xor_si256(v3.avx2._mm256_srli_epi32::<N>(v[i]), v[i + n]);
        let t = v3.avx2._mm256_and_si256(t, mask);
        v[i + n] = v3.avx2._mm256_xor_si256(v[i + n], t);
        v[i] = v3.avx2._mm256_xor_si256(v[i], v3.avx2._mm256_slli_epi32::<N>(t));
    }
}

/// AVX-512: plain loops over wider registers, byte shuffles as with AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Wide(pulp::x86::V4);

#[cfg(target_arch = "x86_64")]
impl Unit for Wide {
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        self.0.vectorize(step)
    }

    #[inline(always)]
    fn transpose(self, slice: &mut Slice) {
        Unit::transpose(*self.0, slice);
    }

    #[inline(always)]
    fn lookup(self, rows: &mut Slice, table: &[u8; 8]) {
        Unit::lookup(*self.0, rows, table);
    }

    #[inline(always)]
    fn flip(self, plane: &mut BitPlane, signs: &BitPlane) {
        Unit::flip(*self.0, plane, signs);
    }

    #[inline(always)]
    fn add(self, row: &mut [i16; 32], other: &[i16; 32]) {
        Unit::add(*self.0, row, other);
    }

    #[inline(always)]
    fn sums(self, row: &mut [i16; 32]) {
        Unit::sums(*self.0, row);
    }
}

#[cfg(target_arch = "x86_64")]
impl Bytes for Wide {
    #[inline(always)]
    fn nonzero(self, plane: &Plane) -> u128 {
        (*self.0).nonzero(plane)
    }

    #[inline(always)]
    fn compress(self, plane: &Plane, mask: u128, out: &mut [u8; PLANE + SLACK]) {
        (*self.0).compress(plane, mask, out);
    }

    #[inline(always)]
    fn expand_integrate(self, packed: &[u8], mask: u128, out: &mut Plane) {
        (*self.0).expand_integrate(packed, mask, out);
    }

    #[inline(always)]
    fn expand(self, packed: &[u8], mask: u128, out: &mut Plane) {
        (*self.0).expand(packed, mask, out);
    }
}

/// Work on any unit.
pub(super) trait Run {
    type Output;
    fn run(self, unit: impl Unit) -> Self::Output;
}

/// Does the work on the best unit that this machine has.
pub(super) fn dispatch<R: Run>(run: R) -> R::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return run.run(Wide(v4));
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return run.run(v3);
        }
    }
    run.run(Portable)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_unit_does_the_same() {
        use super::{Portable, Slice, Unit};
        let Some(v3) = pulp::x86::V3::try_new() else { return };
        let mut x = 7u32;
        let mut next = || {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            x ^ x >> 15
        };
        for _ in 0..100 {
            let slice: Slice = std::array::from_fn(|_| std::array::from_fn(|_| next()));
            let (mut a, mut b) = (slice, slice);
            Unit::transpose(v3, &mut a);
            Portable.transpose(&mut b);
            assert_eq!(a, b);
            Unit::flip(v3, &mut a[0], &slice[1]);
            Portable.flip(&mut b[0], &slice[1]);
            assert_eq!(a, b);
            let numbers = slice.map(|row| row.map(|w| w & 0x0707_0707));
            let (mut a, mut b) = (numbers, numbers);
            let table = next().to_le_bytes().map(|b| [b, !b]).as_flattened().try_into().unwrap();
            Unit::lookup(v3, &mut a, &table);
            Portable.lookup(&mut b, &table);
            assert_eq!(a, b);
            let row: [i16; 32] = std::array::from_fn(|_| next() as i16);
            let (mut a, mut b) = (row, row);
            Unit::sums(v3, &mut a);
            Portable.sums(&mut b);
            assert_eq!(a, b);
            Unit::add(v3, &mut a, &row);
            Portable.add(&mut b, &row);
            assert_eq!(a, b);
        }
    }
}
