// SPDX-License-Identifier: MIT OR Apache-2.0
//! Class 2: values as numbers of their width and back. FORMAT.md §5, §8.2.
//!
//! ```text
//! map 0    the bits, so ordered that near values are near numbers
//! map 1    integers times a power of two: values rounded to a number of binary digits, measured in steps, counted. As
//!          bits such values have zeros at the end, but another number of them after every power of two
//! ```
//!
//! Map 1 has integers that are shorter than a mantissa. Longer ones, up to the value's width, would be 0.05 % of ratio
//! on real fields, and a tile that is noise would not be known by its first values.

use super::difference::Ints;
use super::exceptions::{Flags, below_sign};
use super::shape::LAYER;
use super::types::{Int, Value};
use super::unit::Unit;
use crate::constants::PLANES_TILE;
use crate::scalar::WrappingInt;

/// Between a float's bits and a number of the same order; undoes itself.
#[inline(always)]
pub(super) fn ordered<I: Int>(bits: I) -> I {
    bits ^ bits >> (8 * I::BYTES as u32 - 1) & below_sign()
}

/// Map 0 of a tile.
pub(super) fn bits<S: Value>(x: &[S; PLANES_TILE], float: bool, unit: impl Unit, m: &mut Ints<S::Wide>) {
    unit.run(
        #[inline(always)]
        || {
            for (m, &x) in m.iter_mut().zip(x) {
                let bits = x.to_wide();
                *m = if float { ordered(bits) } else { bits };
            }
        },
    );
}

/// Map 1 of a tile for an exponent that [`exponent`] found; of exceptions, anything.
pub(super) fn integers<S: Value>(x: &[S; PLANES_TILE], e: i32, unit: impl Unit, m: &mut Ints<S::Wide>) {
    unit.run(
        #[inline(always)]
        || {
            // A value has this exponent less the places by which its integer is shorter than a mantissa.
            let most = S::Wide::truncate(i64::from(e + S::BIAS) + i64::from(S::MANTISSA));
            for (m, &x) in m.iter_mut().zip(x) {
                let bits = x.to_wide();
                let number = mantissa::<S>(bits).shifted_right(most.minus(power::<S>(bits)));
                let minus = bits >> (8 * S::SIZE as u32 - 1);
                let signed = (number ^ minus).minus(minus);
                *m = if bits == S::Wide::ZERO { S::Wide::ZERO } else { signed };
            }
        },
    );
}

/// The value of an integer of map 1.
#[inline(always)]
pub(super) fn scaled<S: Value>(m: S::Wide, power_of_two: S) -> S {
    S::of_quantum(m) * power_of_two
}

/// Whether a mantissa holds each of a tile's integers, of which `v` is what the base leaves.
pub(super) fn are_held<S: Value>(base: S::Wide, v: &Ints<S::Wide>, unit: impl Unit) -> bool {
    let most = base.plus(S::Wide::ONE << S::MANTISSA);
    let any = unit.run(
        #[inline(always)]
        || v.iter().fold(S::Wide::ZERO, |any, &v| any | v.plus(most)),
    );
    any >> (S::MANTISSA + 1) == S::Wide::ZERO
}

/// Takes the middle of the first layer that has more than exceptions from all numbers, and returns it.
pub(super) fn less_base<I: Int>(m: &mut Ints<I>, flags: &Flags, unit: impl Unit) -> I {
    let layers = m.as_chunks::<LAYER>().0.iter().zip(flags.as_chunks::<LAYER>().0);
    let range = |(layer, flags): (&[I; LAYER], &[u8; LAYER])| {
        unit.run(
            #[inline(always)]
            || {
                let (mut lo, mut hi) = (below_sign::<I>(), below_sign::<I>().plus(I::ONE));
                for (&m, &flag) in layer.iter().zip(flags) {
                    lo = if flag == 0 { lo.min(m) } else { lo };
                    hi = if flag == 0 { hi.max(m) } else { hi };
                }
                (lo <= hi).then_some((lo, hi))
            },
        )
    };
    let (lo, hi) = layers.map(range).find_map(|range| range).unwrap_or((I::ZERO, I::ZERO));
    // Half of the difference as an unsigned number.
    let base = lo.plus(hi.minus(lo) >> 1 & below_sign());
    unit.run(
        #[inline(always)]
        || m.iter_mut().for_each(|m| *m = m.minus(base)),
    );
    base
}

/// The exponent of a float's bits as they have it.
#[inline(always)]
fn power<S: Value>(bits: S::Wide) -> S::Wide {
    bits >> S::MANTISSA & (S::Wide::ONE << (8 * S::SIZE as u32 - 1 - S::MANTISSA)).minus(S::Wide::ONE)
}

/// The mantissa of a normal float's bits.
#[inline(always)]
fn mantissa<S: Value>(bits: S::Wide) -> S::Wide {
    let hidden = S::Wide::ONE << S::MANTISSA;
    bits & hidden.minus(S::Wide::ONE) | hidden
}

/// e of map 1, where the tile may have it.
pub(super) fn exponent<S: Value>(x: &[S; PLANES_TILE], flags: &Flags, unit: impl Unit) -> Option<i32> {
    let special = S::Wide::truncate(2 * i64::from(S::BIAS) + 1);
    let (mut lo, mut hi) = (special.wide() + 64, 0);
    // Row after row: noise is known by its first values.
    for (row, flags) in x.as_chunks::<64>().0.iter().zip(flags.as_chunks::<64>().0) {
        let (low, high, regular) = unit.run(
            #[inline(always)]
            || {
                let (mut low, mut high, mut regular) = (special.plus(S::Wide::truncate(64)), S::Wide::ZERO, true);
                for (&x, &flag) in row.iter().zip(flags) {
                    // What an exception is does not matter.
                    let bits = if flag == 0 { x.to_wide() } else { S::Wide::ZERO };
                    let (zero, power) = (bits == S::Wide::ZERO, power::<S>(bits));
                    regular &= zero | ((power != S::Wide::ZERO) & (power != special));
                    let least = power.plus(S::Wide::truncate(mantissa::<S>(bits).zeros().into()));
                    low = if zero { low } else { low.min(least) };
                    high = if zero { high } else { high.max(power) };
                }
                (low.wide(), high.wide(), regular)
            },
        );
        (lo, hi) = (lo.min(low), hi.max(high));
        if !regular || (hi > 0 && hi >= lo) {
            return None;
        }
    }
    // 2^(lo - bias - fraction) is the highest power of two that all are multiples of.
    let e = lo as i32 - S::BIAS - S::MANTISSA as i32;
    (hi > 0 && e > -S::BIAS).then_some(e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::pack::Portable;

    fn check<S: Value>(of: impl Fn(usize) -> f64, expected: Option<i32>) {
        let x: [S; PLANES_TILE] = std::array::from_fn(|i| S::from_f64(of(i)));
        let none = [0; PLANES_TILE];
        assert_eq!(exponent(&x, &none, Portable), expected);
        if let Some(e) = expected {
            let mut m = [S::Wide::ZERO; PLANES_TILE];
            integers(&x, e, Portable, &mut m);
            let base = less_base(&mut m, &none, Portable);
            for (m, x) in m.iter().zip(x) {
                assert!(scaled(m.plus(base), S::power_of_two(e)).to_wide() == x.to_wide());
            }
        }
    }

    #[test]
    fn multiples_of_a_power_of_two_are_integers() {
        for e in [-100, -5, 0, 7, 90] {
            let unit = 2f64.powi(e);
            check::<f32>(|i| (i as f64 - 2000.0) * unit, Some(e));
            check::<f64>(|i| (i as f64 - 2000.0) * unit, Some(e));
            check::<f32>(|i| if i == 4000 { 8_388_607.0 * unit } else { 0.0 }, Some(e));
            check::<f32>(|i| if i == 4000 { 16_777_215.0 * unit } else { 0.0 }, None);
            check::<f32>(|i| [unit, 0.0, -8_388_607.0 * unit][i % 3], Some(e));
            check::<f32>(|i| [unit, 0.0, 8_388_608.0 * unit][i % 3], None);
            check::<f64>(|i| [unit, 0.0, ((1u64 << 52) - 1) as f64 * unit][i % 3], Some(e));
            check::<f64>(|i| [unit, 0.0, (1u64 << 52) as f64 * unit][i % 3], None);
        }
        check::<f32>(|i| [1.0, -0.0][i % 2], None);
        check::<f32>(|i| [1.0, f64::NAN][usize::from(i == 4095)], None);
        check::<f32>(|i| [1.0, f64::INFINITY][usize::from(i == 4095)], None);
        check::<f32>(|i| i as f64 * 2f64.powi(-149), None);
        check::<f32>(|i| i as f64 * 2f64.powi(-126), Some(-126));
        check::<f32>(|i| i as f64 * 2f64.powi(-127), None);
        check::<f32>(|i| [0.0, 2f64.powi(127)][i % 2], Some(127));
        check::<f64>(|_| 0.0, None);
    }
}
