// SPDX-License-Identifier: MIT OR Apache-2.0
//! Value ⇄ quantum under a bound, each value checked with the decoder's own arithmetic. FORMAT.md of lorenzo, §5 and
//! §8.
//!
//! A quantum is the integer nearest to the value in steps of twice the bound; under a point-wise relative bound it
//! counts steps of the value's bits, which are a logarithm, linear between powers of two. In real arithmetic each value
//! would come back within the bound. In f64 and f32 some do not: so every value is decoded at once and compared, first
//! by a rounded difference, which settles nearly all, then exactly. What misses the bound, is not finite, has the fill
//! value's bits or a quantum beyond the limit is an outlier. Its quantum is that of a neighbour, so that prediction
//! does not notice.
//!
//! Where values are many steps from zero, and near each other, quanta count from a base. Differences from it are exact;
//! and so that sums are, the bound is rounded down to a multiple of what one bit of the values is worth. Else the bound
//! would be missed by some in as many values as it has such multiples. So it is without a base, where a bit of the
//! largest values is no small part of the bound: the error of a value is a multiple of what a bit of it is worth, and
//! with the bound one too, what rounding adds cannot exceed it.

use crate::constants::{LORENZO_BASE_FROM, LORENZO_BASE_REACH, LORENZO_FINE_BITS, LORENZO_POINT_LIMIT};
use crate::keep::{Guard, Keep, Limits};
use crate::scalar::{Bits, Scalar, WrappingInt, mul_down, within};

/// Added to and taken from a number below 2^51 in size, it rounds to the nearest integer, ties to even; the lowest bits
/// of the sum are that integer's. Compiles to two additions on every vector unit.
pub(crate) const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52

/// Whole multiples of a step, from a base on.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    step: f64,
    inverse: f64,
    bound: f64,
    /// Largest quantum allowed, as a number.
    limit: f64,
    base: f64,
}

/// No base: nothing changes by what is added to it or what it is taken from, but for the sign of 0.
pub(crate) const NO_BASE: f64 = -0.0;

/// Both ways between values and quanta.
pub(crate) trait Steps {
    /// x in steps: nearest integer, and whether it is one that counts.
    fn nearest<S: Scalar>(&self, x: S) -> (i32, bool);
    /// The value that stands for quantum `q`.
    fn value<S: Scalar>(&self, q: i32) -> S;
    /// Whether `back` is close enough to `x`, in exact arithmetic.
    fn holds<S: Scalar>(&self, x: S, back: S) -> bool;
    /// True only where [`Steps::holds`] is, and cheaper where it can be.
    fn surely_holds<S: Scalar>(&self, x: S, back: S) -> bool;
}

impl Linear {
    /// Multiples of `step`, up to `limit` of them, that reconstruct to within `bound`; `base` is a number of the type.
    pub(crate) fn new(step: f64, bound: f64, limit: i32, base: f64) -> Self {
        Linear { step, inverse: 1.0 / step, bound, limit: f64::from(limit), base }
    }

    /// What a quantum is worth.
    pub fn step(&self) -> f64 {
        self.step
    }
}

impl Steps for Linear {
    #[inline(always)]
    fn nearest<S: Scalar>(&self, x: S) -> (i32, bool) {
        let t = (x - S::from_f64(self.base)).to_f64() * self.inverse;
        ((t + ROUND).to_bits() as i32, t.abs() <= self.limit)
    }

    #[inline(always)]
    fn value<S: Scalar>(&self, q: i32) -> S {
        S::from_f64(self.base) + S::from_f64(f64::from(q) * self.step)
    }

    #[inline(always)]
    fn holds<S: Scalar>(&self, x: S, back: S) -> bool {
        within(x.to_f64(), back.to_f64(), self.bound)
    }

    #[inline(always)]
    fn surely_holds<S: Scalar>(&self, x: S, back: S) -> bool {
        // A difference that rounds to less than the bound is less.
        (x.to_f64() - back.to_f64()).abs() < self.bound
    }
}

/// Values of a chunk of which the median says its base, at equal distances; and as many at others, for a chunk of 16
/// planes has the former in one column, which may be all land. The latter are at multiples of the golden ratio.
const PLACES: usize = 16;
/// How many bits of the largest values a bound is worth that is rounded: with more, less than one value of a tile in
/// ten would miss it as it is; with fewer, values of f32 are more steps from zero than are allowed.
const ROUNDED: std::ops::Range<f64> = 2.0..32_768.0;
/// Steps of a range from which on so few values lie about its ends that it does not matter whether these are multiples.
const MOST_STEPS: f64 = 16_384.0;
/// The places of values that are looked at where more than the bound is kept.
const GUARDED_PLACES: usize = 1024;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The base of a chunk of `n` values under an absolute bound, or [`NO_BASE`], and the bound used with it: FORMAT.md of
/// lorenzo, §8.
pub(crate) fn base<S: Scalar>(n: usize, value: impl Fn(usize) -> S, fill: Option<S::Bits>, bound: f64) -> (f64, f64) {
    // A unit in the last place of a slightly larger number: values around this one may be larger.
    let size = |x: S| (x.to_f64() * 1.0625).abs();
    let ulp = |x: S| spacing::<S>(size(x));
    let counts = |x: &S| x.abs() < S::INFINITY && Some(x.bits()) != fill && ulp(*x) <= bound;
    let (mut found, mut many) = ([S::ZERO; PLACES], 0);
    let even = |k: usize| value(even(k, n));
    let other = |k: usize| value(other(k, n));
    for x in (0..PLACES).map(even).filter(counts) {
        found[many] = x;
        many += 1;
    }
    let all = || (0..PLACES).flat_map(|k| [even(k), other(k)]).filter(counts);
    let largest = all().map(size).fold(0.0, f64::max);
    let bits = bound / spacing::<S>(largest);
    let rounded = bits.floor() * spacing::<S>(largest);
    // Under it, interpolation's steps would be too fine for values so large.
    let fine = largest * f64::from((1 << LORENZO_FINE_BITS) + 1) > 2.0 * rounded * f64::from(LORENZO_POINT_LIMIT);
    // Decimals of half whose step the bound is come back bit for bit as it is.
    let step = 2.0 * bound;
    let told = |x: S| S::from_f64(((x.to_f64() * (1.0 / step) + ROUND) - ROUND) * step) == x;
    let is_rounded = ROUNDED.contains(&bits) && !fine && !all().all(told);
    let none = (NO_BASE, if is_rounded { rounded } else { bound });
    let found = &mut found[..many];
    found.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
    let Some(&x) = found.get(many.saturating_sub(1) / 2) else { return none };
    let (x, ulp) = (x.to_f64(), ulp(x));
    // Neither where the product is no number, as of 0 and an infinite inverse.
    let beyond = |limit: i32, x: f64| (x * (1.0 / (2.0 * bound))).abs() > f64::from(limit);
    let far = |x: f64| beyond(LORENZO_BASE_REACH, x);
    let near = |y: &S| !far(y.to_f64() - x);
    let many_near = found.iter().filter(|y| near(y)).count();
    if !beyond(LORENZO_BASE_FROM, x)
        || 4 * many_near < 3 * many
        || ulp < S::of_bits(S::Bits::ONE).to_f64().max(f64::MIN_POSITIVE)
    {
        return none;
    }
    // A number that stands for missing ones is no base for those that are there.
    let others = || found.iter().copied().chain((0..PLACES).map(other).filter(counts)).filter(|y| y.to_f64() != x);
    let beside = others().filter(near).count();
    let without = others().filter(|y| !near(y) && y.to_f64() != 0.0 && !far(y.to_f64())).count();
    if without > beside {
        return none;
    }
    let used = (bound / ulp).floor() * ulp;
    let step = 2.0 * used;
    let whole = ((x * (1.0 / step)) * (1.0 / 256.0) + ROUND) - ROUND;
    let base = S::from_f64(whole * 256.0 * step);
    if base.abs() < S::INFINITY { (base.to_f64(), used) } else { none }
}

/// The same of a chunk of which more than the bound is kept. For signs a base of half a step, so that no multiple is 0;
/// for the range a step that divides it, and the lower end as base, so that both ends are multiples. Few values are
/// outliers then: but only where some of a sample would be outliers without, for with another base or step than those
/// that suit the values more of their differences are not 0.
pub(crate) fn guarded_base<S: Scalar>(
    n: usize,
    value: impl Fn(usize) -> S,
    fill: Option<S::Bits>,
    bound: f64,
    guard: &Guard,
) -> (f64, f64) {
    let (low, high) = guard.range;
    let counts = |x: &S| x.abs() < S::INFINITY && Some(x.bits()) != fill;
    let (mut positive, mut negative, mut small, mut lost) = (false, false, false, false);
    let (step, inverse) = (2.0 * bound, 1.0 / (2.0 * bound));
    for x in (0..GUARDED_PLACES).map(|k| value(other(k, n))).filter(counts).map(S::to_f64).filter(|x| *x != 0.0) {
        positive |= x > 0.0;
        negative |= x < 0.0;
        // Wider than the bound: values that have become multiples are so still.
        small |= x.abs() <= 1.5 * bound;
        let multiple = ((x * inverse + ROUND) - ROUND) * step;
        lost |= x == low || x == high || multiple < low || multiple > high;
    }
    if guard.keep.has(Keep::SIGN) && (positive && negative || small) {
        let sizes = (0..PLACES).flat_map(|k| [even(k, n), other(k, n)]).map(&value).filter(counts).map(S::to_f64);
        // Sums with it are exact where the bound is a multiple of what a bit of the largest values is worth.
        let spacing = spacing::<S>(sizes.fold(0.0, |most, x| x.abs().max(most)) * 1.0625);
        let bits = bound / spacing;
        let used = if ROUNDED.contains(&bits) { bits.floor() * spacing } else { bound };
        let base = S::from_f64(used);
        if base != S::ZERO && base.abs() < S::INFINITY {
            return (base.to_f64(), used);
        }
    }
    let span = high - low;
    let steps = (span / step).floor() + 1.0;
    if guard.keep.has(Keep::RANGE) && lost && steps < MOST_STEPS && span > 0.0 {
        let used = (span / steps / 2.0).min(bound);
        return (if low == 0.0 || high == 0.0 { NO_BASE } else { low }, used);
    }
    base(n, value, fill, bound)
}

/// What a bit of numbers of this size is worth.
fn spacing<S: Scalar>(size: f64) -> f64 {
    f64::from_bits((size.to_bits() >> 52).saturating_sub(S::MANTISSA.into()) << 52)
}

/// The places of a chunk's values that are looked at for a base: at equal distances, and at others.
fn even(k: usize, n: usize) -> usize {
    ((2 * k + 1) as u128 * n as u128 / (2 * PLACES) as u128) as usize
}

fn other(k: usize, n: usize) -> usize {
    ((u128::from(GOLDEN.wrapping_mul(k as u64 + 1)) * n as u128) >> 64) as usize
}

/// Multiples of a distance between the bits of magnitudes: a logarithm, linear within each power of two.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    step: u64,
    inverse: f64,
    bound: f64,
    limit: f64,
}

impl Log {
    /// For a point-wise relative bound: half a step of bits changes a value by `bound` of itself at most.
    pub(crate) fn new<S: Scalar>(bound: f64, limit: i32) -> Self {
        let step = ((bound * (1u64 << (S::MANTISSA + 1)) as f64).floor() as u64).max(1);
        Log { step, inverse: 1.0 / step as f64, bound, limit: f64::from(limit) }
    }

    /// The distance.
    pub fn step(&self) -> u64 {
        self.step
    }
}

impl Steps for Log {
    #[inline(always)]
    fn nearest<S: Scalar>(&self, x: S) -> (i32, bool) {
        let t = x.abs().bits().to_u64() as f64 * self.inverse;
        let q = (t + ROUND).to_bits() as i32;
        (if x.to_f64() < 0.0 { q.wrapping_neg() } else { q }, t <= self.limit && x.to_f64().is_finite())
    }

    #[inline(always)]
    fn value<S: Scalar>(&self, q: i32) -> S {
        let mask = u64::MAX >> (65 - 8 * S::SIZE); // all but the sign
        let bits = u64::from(q.unsigned_abs()).wrapping_mul(self.step) & mask;
        let magnitude = S::of_bits(S::Bits::from_u64(bits));
        if q < 0 { -magnitude } else { magnitude }
    }

    #[inline(always)]
    fn holds<S: Scalar>(&self, x: S, back: S) -> bool {
        let x = x.to_f64();
        within(x, back.to_f64(), mul_down(self.bound, x.abs()))
    }

    #[inline(always)]
    fn surely_holds<S: Scalar>(&self, x: S, back: S) -> bool {
        self.holds(x, back)
    }
}

/// How values become quanta.
#[derive(Debug, Clone, Copy)]
pub enum Quantizer {
    /// An absolute bound.
    Linear(Linear),
    /// A point-wise relative bound.
    Log(Log),
}

/// What quantising a tile found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Some value must be stored exactly.
    pub(crate) outliers: bool,
    /// Every other value comes back bit for bit.
    pub exact: bool,
}

impl Quantizer {
    /// Quanta of `x`; where `regular` becomes 0 the value must be stored exactly, and its quantum means nothing.
    #[inline(always)]
    pub fn quantize<S: Scalar>(
        &self,
        x: &[S],
        fill: Option<S::Bits>,
        limits: Option<&Limits<S>>,
        q: &mut [i32],
        regular: &mut [u8],
    ) -> Found {
        match self {
            Quantizer::Linear(l) => quantize_all(l, x, fill, limits, q, regular),
            Quantizer::Log(l) => quantize_all(l, x, fill, limits, q, regular),
        }
    }

    /// Values of the quanta `q`.
    #[inline(always)]
    pub(crate) fn dequantize<S: Scalar>(&self, q: &[i32], out: &mut [S]) {
        match self {
            Quantizer::Linear(l) => out.iter_mut().zip(q).for_each(
                #[inline(always)]
                |(o, &q)| *o = l.value(q),
            ),
            Quantizer::Log(l) => out.iter_mut().zip(q).for_each(
                #[inline(always)]
                |(o, &q)| *o = l.value(q),
            ),
        }
    }
}

/// Quantises and checks; what [`Steps::surely_holds`] leaves open, [`Steps::holds`] decides one by one.
#[inline(always)]
fn quantize_all<S: Scalar>(
    steps: &impl Steps,
    x: &[S],
    fill: Option<S::Bits>,
    limits: Option<&Limits<S>>,
    q: &mut [i32],
    regular: &mut [u8],
) -> Found {
    let (has_fill, fill) = (fill.is_some(), fill.unwrap_or(S::Bits::ZERO));
    let (mut least, mut differ) = (1u8, S::Bits::ZERO);
    for ((&v, q), mark) in x.iter().zip(&mut *q).zip(&mut *regular) {
        let (n, counts) = steps.nearest(v);
        let back = steps.value(n);
        let good = counts & steps.surely_holds(v, back) & !(has_fill & (v.bits() == fill));
        *q = n;
        *mark = u8::from(good);
        least &= *mark;
        differ = differ | if good { back.bits() ^ v.bits() } else { S::Bits::ZERO };
    }
    if least == 0 {
        least = 1;
        for (&v, mark) in x.iter().zip(&mut *regular).filter(|(_, mark)| **mark == 0) {
            let (n, counts) = steps.nearest(v);
            let back = steps.value(n);
            if counts && steps.holds(v, back) && !(has_fill && v.bits() == fill) {
                *mark = 1;
                differ = differ | (back.bits() ^ v.bits());
            }
            least &= *mark;
        }
    }
    if let Some(limits) = limits {
        differ = S::Bits::ZERO;
        for ((&v, &n), mark) in x.iter().zip(&*q).zip(regular) {
            let back: S = steps.value(n);
            *mark &= u8::from(limits.allow(v, back));
            least &= *mark;
            differ = differ | if *mark != 0 { back.bits() ^ v.bits() } else { S::Bits::ZERO };
        }
    }
    Found { outliers: least == 0, exact: differ == S::Bits::ZERO }
}

/// Gives every outlier the quantum of its neighbour: the last regular one before it in its row of `row` values, else
/// the first behind it, else 0.
pub(crate) fn bridge(q: &mut [i32], regular: &[u8], row: usize) {
    for (q, regular) in q.chunks_mut(row).zip(regular.chunks(row)) {
        let mut last = regular.iter().position(|&o| o != 0).map_or(0, |at| q[at]);
        for (q, &o) in q.iter_mut().zip(regular) {
            if o == 0 {
                *q = last;
            }
            last = *q;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quanta_round_half_to_even_and_hold_the_bound() {
        let l = Quantizer::Linear(Linear::new(2.0, 1.0, 1 << 22, NO_BASE));
        let x = [0.0f32, 1.0, 3.0, -1.0, -5.0, 2.5, f32::NAN, 1e30, f32::INFINITY, 7.0];
        let (mut q, mut o) = ([0; 10], [0; 10]);
        let found = l.quantize(&x, Some(7f32.to_bits()), None, &mut q, &mut o);
        assert_eq!(q[..6], [0, 0, 2, 0, -2, 1]);
        assert_eq!(o, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(found, Found { outliers: true, exact: false });
        let mut back = [0f32; 6];
        l.dequantize(&q[..6], &mut back);
        assert_eq!(back, [0.0, 0.0, 4.0, 0.0, -4.0, 2.0]);
        bridge(&mut q, &o, 10);
        assert_eq!(q[6..], [1; 4]);
        let mut q = [5, 6, 7, 8];
        bridge(&mut q, &[0, 1, 0, 0], 4);
        assert_eq!(q, [6, 6, 6, 6]);
        bridge(&mut q, &[0; 4], 4);
        assert_eq!(q, [0; 4]);
    }

    fn base_of<S: Scalar>(values: &[S], fill: Option<S::Bits>, bound: f64) -> (f64, f64) {
        base(values.len(), |i| values[i], fill, bound)
    }

    #[test]
    fn bases_and_their_bounds_are_multiples_of_what_a_bit_is_worth() {
        let near = |x: f64, step: f64| -> Vec<f64> { (0..100).map(|i| x + step * f64::from(i)).collect() };
        // 15 * 2^17 quanta from zero there is none yet.
        assert_eq!(base_of(&near(3932160.0, 0.0), None, 1.0), (NO_BASE, 1.0));
        assert_eq!(base_of(&near(3932161.0, 0.0), None, 1.0), (3932160.0, 1.0));
        for (x, bound) in [(1.0, 1e-9), (-1.0, 3.3e-13), (2_461_000.5, 1e-7), (1e300, 1e288), (1.6e308, 1e300)] {
            let (v, used) = base_of(&near(x, 10.0 * bound), None, bound);
            let bit = 2f64.powi((x.abs() * 1.0625).log2().floor() as i32 - 52);
            assert!(used <= bound && used > bound - bit && used % bit == 0.0, "{x}: {used}");
            assert!(v % bit == 0.0 && (v - x).abs() <= 2000.0 * bound && v % (512.0 * used) == 0.0, "{x}: {v}");
        }
        let narrow: Vec<f32> = near(1.5, 1e-6).iter().map(|&x| x as f32).collect();
        let (v, used) = base_of(&narrow, None, 1.5e-7);
        assert_eq!((used, v % (512.0 * used), f64::from(v as f32)), (2f64.powi(-23), 0.0, v));
        // Where a bit is worth more than the bound, arithmetic has no room for one; nor has it without a bound.
        assert_eq!(base_of(&narrow, None, 1e-7), (NO_BASE, 1e-7));
        for bound in [0.0, 5e-324, f64::MAX] {
            assert_eq!(base_of(&near(1.0, 0.0), None, bound), (NO_BASE, bound));
        }
        // Nor is there one for values that are as far from each other as from zero.
        assert_eq!(base_of(&near(1.0, 1e-2), None, 1e-9), (NO_BASE, 1e-9));
        // The median counts, of values that have a quantum; not of fill values.
        let mut some = near(1.0, 1e-9);
        some[..45].fill(f64::NAN);
        some[45..70].fill(1e20);
        assert!(base_of(&some, None, 1e-9).0 > 0.9);
        some[..45].fill(0.0);
        assert_eq!(base_of(&some, None, 1e-9), (NO_BASE, 1e-9));
        assert!(base_of(&some, Some(0f64.to_bits()), 1e-9).0 > 0.9);
    }

    #[test]
    fn bounds_are_rounded_where_a_bit_of_the_values_is_no_small_part_of_them() {
        let bit = 2f64.powi(-15); // of 241 to 481, times 17/16
        let around = |x: f32| -> Vec<f32> { (0..100).map(|i| x + 0.0987 * i as f32).collect() };
        let used = |x: f32, bits: f64| base_of(&around(x), None, bits * bit);
        for bits in [5.7, 327.68, 32_767.9] {
            assert_eq!(used(280.0, bits), (NO_BASE, bits.floor() * bit), "{bits}");
        }
        for (x, bits) in [(280.0, 32_768.5), (280.0, 1.9), (440.0, 2.5), (440.0, 3.6)] {
            let (base, used) = used(x, bits);
            assert!(base != NO_BASE || used == bits * bit, "{x} {bits}: {base} {used}");
        }
        assert_eq!(used(280.0, 32_768.5).1, 32_768.5 * bit);
        // Multiples of twice the bound come back bit for bit as it is.
        let hundredths: Vec<f32> = (0..100).map(|i| (28_000 + 7 * i) as f32 / 100.0).collect();
        assert_eq!(base_of(&hundredths, None, 0.005), (NO_BASE, 0.005));
        assert!(base_of(&hundredths, None, 0.004).1 < 0.004);
        // A value or a place without one does not count.
        let mut some = around(280.0);
        some[..80].fill(f32::NAN);
        assert_eq!(base_of(&some, None, 5.7 * bit), (NO_BASE, 5.0 * bit));
        assert_eq!(base_of(&[0f32; 100], None, 0.3), (NO_BASE, 0.3));
    }

    #[test]
    fn magnitudes_keep_a_relative_bound_on_both_sides_of_zero() {
        let l = Quantizer::Log(Log::new::<f64>(1e-3, 1 << 30));
        let x: Vec<f64> = (-200..200).map(|i| f64::from(i) * 1.37f64.powi(i)).collect();
        let (mut q, mut o) = (vec![0; x.len()], vec![0; x.len()]);
        l.quantize(&x, None, None, &mut q, &mut o);
        let mut back = vec![0.0; x.len()];
        l.dequantize(&q, &mut back);
        let kept = x.iter().zip(&back).zip(&o).filter(|((x, b), o)| **o == 1 && (*x - *b).abs() <= 1e-3 * x.abs());
        assert!(kept.count() > 395, "{o:?}");
        assert_eq!((q[200], back[200].to_bits()), (0, 0));
    }
}
