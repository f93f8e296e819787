// SPDX-License-Identifier: MIT OR Apache-2.0
//! Class 2: values as numbers of their width and back. FORMAT.md §5, §8.2.
//!
//! ```text
//! map 0    the bits, so ordered that near values are near numbers
//! map 1    integers times a power of two: what was rounded to so many binary digits, measured in steps, counted. As bits such values
//!          have zeros at the end, but another number of them after every power of two
//! ```
//!
//! Map 1 is tried where the integers are shorter than a mantissa. Longer ones, up to the value's width, are possible: they are
//! 0.05 % of ratio on real fields, and a tile that is noise would not be known by its first values.

use super::difference::Ints;
use super::level::Unit;
use super::number::{Int, Value};
use super::shape::PLANE;
use crate::constants::PLANES_TILE;

/// Between a float's bits and a number of the same order; undoes itself.
#[inline(always)]
pub(super) fn ordered<I: Int>(bits: I) -> I {
    let below = (I::ONE << (8 * I::BYTES as u32 - 1)).minus(I::ONE);
    bits ^ bits >> (8 * I::BYTES as u32 - 1) & below
}

/// Map 0 of a tile less a base, which is returned.
pub(super) fn bits<S: Value>(x: &[S; PLANES_TILE], float: bool, unit: impl Unit, m: &mut Ints<S::Wide>) -> S::Wide {
    unit.run(
        #[inline(always)]
        || {
            for (m, &x) in m.iter_mut().zip(x) {
                let bits = x.to_wide();
                *m = if float { ordered(bits) } else { bits };
            }
            less_base(m)
        },
    )
}

/// Map 1 of a tile for an exponent that [`exponent`] found, less a base, which is returned.
pub(super) fn integers<S: Value>(x: &[S; PLANES_TILE], e: i32, unit: impl Unit, m: &mut Ints<S::Wide>) -> S::Wide {
    unit.run(
        #[inline(always)]
        || {
            // A value has this exponent less the places by which its integer is shorter than a mantissa.
            let most = S::Wide::of(i64::from(e + S::BIAS) + i64::from(S::FRACTION));
            for (m, &x) in m.iter_mut().zip(x) {
                let bits = x.to_wide();
                let number = mantissa::<S>(bits).shifted_right(most.minus(power::<S>(bits)));
                let minus = bits >> (8 * S::SIZE as u32 - 1);
                let signed = (number ^ minus).minus(minus);
                *m = if bits == S::Wide::ZERO { S::Wide::ZERO } else { signed };
            }
            less_base(m)
        },
    )
}

/// The value of an integer of map 1.
#[inline(always)]
pub(super) fn scaled<S: Value>(m: S::Wide, power_of_two: S) -> S {
    S::of_quantum(m) * power_of_two
}

/// 2^e, which is normal.
pub(super) fn power_of_two<S: Value>(e: i32) -> S {
    S::of_wide(S::Wide::of(i64::from(e + S::BIAS) << S::FRACTION))
}

/// Takes the middle of plane 0 from all numbers, and returns it.
#[inline(always)]
fn less_base<I: Int>(m: &mut Ints<I>) -> I {
    let first = &m[..PLANE];
    let (lo, hi) = first.iter().fold((first[0], first[0]), |(lo, hi), &m| (lo.min(m), hi.max(m)));
    // Half of the difference as an unsigned number.
    let half = hi.minus(lo) >> 1 & (I::ONE << (8 * I::BYTES as u32 - 1)).minus(I::ONE);
    let base = lo.plus(half);
    m.iter_mut().for_each(|m| *m = m.minus(base));
    base
}

/// The exponent of a float's bits as they have it.
#[inline(always)]
fn power<S: Value>(bits: S::Wide) -> S::Wide {
    bits >> S::FRACTION & (S::Wide::ONE << (8 * S::SIZE as u32 - 1 - S::FRACTION)).minus(S::Wide::ONE)
}

/// The mantissa of a normal float's bits.
#[inline(always)]
fn mantissa<S: Value>(bits: S::Wide) -> S::Wide {
    let hidden = S::Wide::ONE << S::FRACTION;
    bits & hidden.minus(S::Wide::ONE) | hidden
}

/// e of map 1, where the tile may have it.
pub(super) fn exponent<S: Value>(x: &[S; PLANES_TILE], unit: impl Unit) -> Option<i32> {
    let special = S::Wide::of(2 * i64::from(S::BIAS) + 1);
    let (mut lo, mut hi) = (special.wide() + 64, 0);
    // Row after row: noise is known by its first values.
    for row in x.as_chunks::<64>().0 {
        let (low, high, regular) = unit.run(
            #[inline(always)]
            || {
                let (mut low, mut high, mut regular) = (special.plus(S::Wide::of(64)), S::Wide::ZERO, true);
                for &x in row {
                    let bits = x.to_wide();
                    let (zero, power) = (bits == S::Wide::ZERO, power::<S>(bits));
                    regular &= zero | ((power != S::Wide::ZERO) & (power != special));
                    let least = power.plus(S::Wide::of(mantissa::<S>(bits).zeros().into()));
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
    let e = lo as i32 - S::BIAS - S::FRACTION as i32;
    (hi > 0 && e > -S::BIAS).then_some(e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::pack::Portable;

    fn check<S: Value>(of: impl Fn(usize) -> f64, expected: Option<i32>) {
        let x: [S; PLANES_TILE] = std::array::from_fn(|i| S::from_f64(of(i)));
        assert_eq!(exponent(&x, Portable), expected);
        if let Some(e) = expected {
            let mut m = [S::Wide::ZERO; PLANES_TILE];
            let base = integers(&x, e, Portable, &mut m);
            for (m, x) in m.iter().zip(x) {
                assert!(scaled(m.plus(base), power_of_two::<S>(e)).to_wide() == x.to_wide());
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
