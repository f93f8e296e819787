// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges reconstructed values against what a bound promises, in exact arithmetic.
//!
//! Every f64 is a whole number times a power of two, so differences, products and sums of squares have exact values too
//! (`Dyadic`). Only what lies within a hair of its limit takes that way; elsewhere f64 decides, and its rounding cannot matter.

use h5z_gpu::Bound;
use num_bigint::{BigInt, BigUint};

/// What the comparison found.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Verdict {
    /// Values compared with the bound: finite and not the fill value.
    pub(crate) finite: u64,
    /// NaN, infinities and fill values, which must be the same bits.
    pub(crate) special: u64,
    /// Values whose promise is broken.
    pub(crate) broken: u64,
    /// Index of the first of them.
    pub(crate) first: Option<u64>,
    /// The PSNR is below what was asked, which no single value tells.
    pub(crate) noisy: bool,
    /// Largest difference allowed (in mode `pw_rel`: relative to the value), rounded; for PSNR, what lets every value differ.
    pub(crate) limit: f64,
    /// Largest difference (in mode `pw_rel`: relative to the value), rounded to nearest.
    pub(crate) worst: f64,
    /// Sum of squared differences.
    pub(crate) squares: f64,
    /// Smallest and largest original value, as `range` has them.
    pub(crate) range: Option<(f64, f64)>,
}

impl Verdict {
    /// Peak signal-to-noise ratio in decibels over the range of the values judged.
    pub(crate) fn psnr(&self) -> f64 {
        let spread = self.range.map_or(0.0, |(a, b)| b - a);
        20.0 * (spread / (self.squares / self.finite as f64).sqrt()).log10()
    }
}

/// One number with its bits.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) bits: u64,
    pub(crate) x: f64,
}

/// The numbers of raw bytes, f32 or f64 in either order.
pub(crate) fn values(raw: &[u8], size: usize, big_endian: bool) -> impl Iterator<Item = Value> + Clone + '_ {
    raw.chunks_exact(size).map(move |c| {
        let bits = c.iter().enumerate().fold(0u64, |a, (k, &b)| {
            let byte = if big_endian { size - 1 - k } else { k };
            a | u64::from(b) << (8 * byte)
        });
        let x = if size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) };
        Value { bits, x }
    })
}

/// Smallest and largest of the finite values that have not the bits of the fill value. Without a fill value, HDF5's default,
/// the zero of all bits clear, stretches no range either.
pub(crate) fn range(values: impl Iterator<Item = Value>, fill: Option<u64>) -> Option<(f64, f64)> {
    values.filter(|v| v.x.is_finite() && fill.unwrap_or(0) != v.bits).fold(None, |range, v| {
        let (lo, hi) = range.unwrap_or((v.x, v.x));
        Some((v.x.min(lo), v.x.max(hi)))
    })
}

/// Compares value by value with what `bound` promises. All values are one chunk.
pub(crate) fn judge(
    original: impl Iterator<Item = Value> + Clone,
    reconstructed: impl Iterator<Item = Value> + Clone,
    bound: Bound,
    fill: Option<u64>,
) -> Verdict {
    let range = range(original.clone(), fill);
    let spread = range.map_or(Dyadic::from(0.0), |(lo, hi)| Dyadic::from(hi).minus(&lo.into()));
    let limit = match bound {
        Bound::Absolute(b) => Limit::new(b.into()),
        Bound::Relative(r) => Limit::new(spread.times(&r.into())),
        Bound::PointwiseRelative(r) => Limit::new(r.into()),
        Bound::Psnr(p) => Limit { about: spread.about() * 10f64.powf(-p / 20.0), exact: Dyadic::from(0.0) },
        Bound::Lossless => Limit::new(Dyadic::from(0.0)),
    };
    let mut v = Verdict { limit: limit.about, range, ..Verdict::default() };
    let special = |a: Value| !a.x.is_finite() || fill == Some(a.bits);
    let pairs = original.zip(reconstructed);
    for (k, (a, b)) in pairs.clone().enumerate() {
        let held = if special(a) {
            v.special += 1;
            a.bits == b.bits
        } else {
            v.finite += 1;
            let d = (a.x - b.x).abs();
            let shown = if matches!(bound, Bound::PointwiseRelative(_)) && d > 0.0 { d / a.x.abs() } else { d };
            // A NaN where a number was is the worst of all.
            v.worst = if shown <= v.worst { v.worst } else { shown };
            v.squares += d * d;
            match bound {
                Bound::Lossless => a.bits == b.bits,
                Bound::Absolute(_) | Bound::Relative(_) => limit.holds(a.x, b.x),
                Bound::PointwiseRelative(r) => within_relative(a.x, b.x, r),
                Bound::Psnr(_) => b.x.is_finite(),
            }
        };
        if !held {
            v.broken += 1;
            v.first.get_or_insert(k as u64);
        }
    }
    if let Bound::Psnr(p) = bound
        && v.broken == 0
        && v.worst > 0.0
    {
        let squares = || {
            pairs.filter(|(a, _)| !special(*a)).fold(Dyadic::from(0.0), |sum, (a, b)| {
                let d = Dyadic::from(a.x).minus(&b.x.into());
                sum.plus(&d.times(&d))
            })
        };
        v.noisy = !quiet(v.psnr(), p, v.finite, squares, &spread);
    }
    v
}

/// What a difference may be at most.
struct Limit {
    exact: Dyadic,
    about: f64,
}

impl Limit {
    fn new(exact: Dyadic) -> Self {
        Limit { about: exact.about(), exact }
    }

    /// abs(x − y) ≤ limit in real arithmetic.
    fn holds(&self, x: f64, y: f64) -> bool {
        decided((x - y).abs(), self.about)
            .unwrap_or_else(|| y.is_finite() && Dyadic::from(x).minus(&y.into()).abs().at_most(&self.exact))
    }
}

/// abs(x − y) ≤ r · abs(x) in real arithmetic.
fn within_relative(x: f64, y: f64, r: f64) -> bool {
    decided((x - y).abs(), r * x.abs()).unwrap_or_else(|| {
        let (x, limit) = (Dyadic::from(x), Dyadic::from(r).times(&x.into()).abs());
        y.is_finite() && x.minus(&y.into()).abs().at_most(&limit)
    })
}

/// Whether a rounded difference is at most a rounded limit, where their last digits do not matter.
fn decided(d: f64, limit: f64) -> Option<bool> {
    const HAIR: f64 = 1e-14;
    match limit {
        // Where numbers are coarser than the hair, or near the largest, only the exact ones tell.
        _ if !d.is_finite() || !(1e-290..1e290).contains(&limit) => None,
        _ if d < limit * (1.0 - HAIR) => Some(true),
        _ if d > limit * (1.0 + HAIR) => Some(false),
        _ => None,
    }
}

/// PSNR ≥ p in real arithmetic: S · 10^(p/10) ≤ n · spread², with S the sum of n squared differences. `about` is the PSNR in f64.
fn quiet(about: f64, p: f64, n: u64, squares: impl FnOnce() -> Dyadic, spread: &Dyadic) -> bool {
    // 2^40 roundings of a sum move it by 2^-13 at most, and the PSNR by less than this.
    if n < 1 << 40 && about.is_finite() && (about - p).abs() > 1e-2 {
        return about > p;
    }
    let most = spread.times(spread).times(&Dyadic { m: n.into(), e: 0 });
    let squares = squares();
    // The power is exact or irrational: a sum between it and what stands for it would agree with it in 250 bits.
    power_of_ten(p).is_some_and(|above| squares.times(&above).at_most(&most))
}

/// 10^(p/10), or a number that is larger by less than 2^-250 of it. `None` for p < 0, and for more than f64 can tell apart.
fn power_of_ten(p: f64) -> Option<Dyadic> {
    const BITS: u32 = 320;
    // p/10 = m · 2^e / 10 = m / (5 · 2^t)
    let (m, e) = whole(p);
    let (m, t) =
        if e < 1 { (BigUint::try_from(m).ok()?, (1 - e) as u32) } else { (BigUint::try_from(m << (e - 1)).ok()?, 0) };
    let tens = (&m / 5u32) >> t;
    let rest = m - ((&tens * 5u32) << t);
    // Squares are 2^-2148 or more, ranges below 2^1025, counts below 2^64: no quotient of theirs reaches 10^1300.
    let exponent = u32::try_from(tens).ok().filter(|&k| k < 1300)?;
    // The root of 10 of degree 5 · 2^j, rounded down, for each bit of the rest; the rest is below 5 · 2^t.
    let mut product = BigUint::from(1u32) << BITS;
    let mut root = (BigUint::from(10u32) << (5 * BITS)).nth_root(5);
    for _ in 0..u32::try_from(&rest >> t).ok()? {
        product = (product * &root) >> BITS;
    }
    for j in 1..=t {
        root = (root << BITS).sqrt();
        if rest.bit(u64::from(t - j)) {
            product = (product * &root) >> BITS;
        }
    }
    if rest != BigUint::ZERO {
        // At most t + 4 factors, each below 10 and short by one unit, and as many products cut off.
        product += 100 * (u64::from(t) + 8);
    }
    Some(Dyadic { m: BigInt::from(product * BigUint::from(10u32).pow(exponent)), e: -(BITS as i32) })
}

/// A whole number times a power of two.
#[derive(Clone, Debug)]
struct Dyadic {
    m: BigInt,
    e: i32,
}

/// A finite number as mantissa · 2^exponent.
fn whole(x: f64) -> (BigInt, i32) {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7FF) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (m, e) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    (BigInt::from(if x.is_sign_negative() { -m } else { m }), e)
}

impl From<f64> for Dyadic {
    fn from(x: f64) -> Self {
        let (m, e) = whole(x);
        Dyadic { m, e }
    }
}

impl Dyadic {
    /// Both mantissas under the smaller exponent.
    fn aligned(&self, other: &Dyadic) -> (BigInt, BigInt, i32) {
        let e = self.e.min(other.e);
        (&self.m << (self.e - e), &other.m << (other.e - e), e)
    }

    fn plus(&self, other: &Dyadic) -> Dyadic {
        let (a, b, e) = self.aligned(other);
        Dyadic { m: a + b, e }
    }

    fn minus(&self, other: &Dyadic) -> Dyadic {
        let (a, b, e) = self.aligned(other);
        Dyadic { m: a - b, e }
    }

    fn times(&self, other: &Dyadic) -> Dyadic {
        Dyadic { m: &self.m * &other.m, e: self.e + other.e }
    }

    fn abs(self) -> Dyadic {
        Dyadic { m: self.m.magnitude().clone().into(), e: self.e }
    }

    fn at_most(&self, other: &Dyadic) -> bool {
        let (a, b, _) = self.aligned(other);
        a <= b
    }

    /// The nearest f64 of a number that is not negative, or the one beside it.
    fn about(&self) -> f64 {
        let cut = i32::try_from(self.m.bits()).map_or(0, |bits| (bits - 64).max(0));
        let (top, e) = (u64::try_from(&self.m >> cut).unwrap_or(0) as f64, (self.e + cut).clamp(-2200, 2200));
        // In two steps: the power alone may be out of range.
        top * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(pairs: &[(f64, f64)], bound: Bound, fill: Option<f64>) -> Verdict {
        let value = |x: f64| Value { bits: x.to_bits(), x };
        let (a, b) = (pairs.iter().map(|p| value(p.0)), pairs.iter().map(|p| value(p.1)));
        judge(a, b, bound, fill.map(f64::to_bits))
    }

    fn held(pairs: &[(f64, f64)], bound: Bound) -> bool {
        let v = verdict(pairs, bound, None);
        v.broken == 0 && !v.noisy
    }

    #[test]
    fn absolute_differences_are_exact_at_the_limit() {
        let within = |x, y, b| held(&[(x, y)], Bound::Absolute(b));
        assert!(within(1.0, 0.5, 0.5) && !within(1.0, 0.5f64.next_down(), 0.5));
        assert!(within(-3.0, -3.0, 5e-324) && within(0.0, 5e-324, 5e-324) && !within(0.0, 1e-323, 5e-324));
        assert!(!within(1.0, 2f64.powi(-60), 1.0 - 2f64.powi(-53)));
        assert!(within(1.0, 2f64.powi(-60), 1.0));
        assert!(!within(1.0, -2f64.powi(-60), 1.0));
        assert!(!within(f64::MAX, -f64::MAX, f64::MAX));
        assert!(!within(1.0, f64::NAN, f64::MAX) && !within(1.0, f64::INFINITY, f64::MAX));
    }

    #[test]
    fn relative_differences_are_exact_at_the_limit() {
        // 0.1 · (2 − −1) has 54 bits: no f64, nor is the difference of these two. Rounded down it would be too small.
        let (tenth, unit) = (Bound::Relative(0.1), 2f64.powi(-55));
        let down = -10_808_639_105_689_190.0 * unit;
        let with = |x, y| held(&[(-1.0, -1.0), (2.0, 2.0), (x, y)], tenth);
        assert!(with(unit, down));
        assert!(!with(2.0 * unit, down) && !with(unit, down.next_down()));
        // A range that no f64 holds, and one below all of them.
        let ends = [(f64::MAX, f64::MAX), (-f64::MAX, -f64::MAX)];
        assert!(held(&[ends[0], ends[1], (f64::MAX, 0.0)], Bound::Relative(0.5)));
        assert!(!held(&[ends[0], ends[1], (f64::MAX, -5e-324)], Bound::Relative(0.5)));
        assert!(!held(&[(5e-324, 5e-324), (1e-323, 5e-324)], Bound::Relative(0.9)));
        // One value alone is exact.
        assert!(held(&[(7.0, 7.0)], Bound::Relative(0.9)) && !held(&[(7.0, 7f64.next_up())], Bound::Relative(0.9)));
    }

    #[test]
    fn pointwise_differences_are_exact_at_the_limit() {
        let within = |x, y, r| held(&[(x, y)], Bound::PointwiseRelative(r));
        let tenth = 0.1; // a little above 1/10
        assert!(within(10.0, 9.0, tenth) && !within(10.0, 9f64.next_down(), tenth));
        assert!(!within(10.0, 9.0, tenth.next_down()));
        assert!(within(-8.0, -6.0, 0.25) && !within(-8.0, 6.0, 0.25));
        assert!(within(0.0, -0.0, 0.5) && !within(0.0, 5e-324, 0.5));
        assert!(!within(5e-324, 0.0, 0.999) && within(5e-324, 5e-324, 1e-300));
        assert!(within(1e-323, 5e-324, 0.5) && !within(1e-323, 5e-324, 0.4999));
        assert!(!within(1e300, 1e-300, 1f64.next_down()));
        assert!(!within(1.0, f64::INFINITY, 0.5) && !within(1.0, f64::NAN, 0.5));
    }

    #[test]
    fn noise_is_exact_at_the_limit() {
        // Range 10 and 20 dB: the mean square may be 1.
        let at = |d: [f64; 4], p| {
            held(&[(3.0, 3.0 + d[0]), (13.0, 13.0 + d[1]), (4.0, 4.0 + d[2]), (5.0, 5.0 + d[3])], Bound::Psnr(p))
        };
        assert!(at([1.0; 4], 20.0) && at([2.0, 0.0, 0.0, 0.0], 20.0));
        assert!(!at([1.0, 1.0, 1.0, 1f64 + 2f64.powi(-50)], 20.0) && !at([1.0; 4], 20f64.next_up()));
        assert!(at([1.0; 4], 20f64.next_down()));
        // 10^-3.25 = 5.62341325190349080394...e-4 lies between two f64; here the mean square is that of d.
        let with = |d| held(&[(0.0, 2.0 * d), (-0.5, -0.5), (0.5, 0.5), (0.25, 0.25)], Bound::Psnr(65.0));
        let above: f64 = 0.000_562_341_325_190_349_1;
        assert!(with(above.next_down()) && !with(above));
        assert!(
            held(&[(0.5, 0.5), (1.5, 1.5)], Bound::Psnr(1e9)) && !held(&[(0.5, 0.5), (1.5, 1.25)], Bound::Psnr(1e9))
        );
    }

    #[test]
    fn lossless_is_the_same_bits() {
        assert!(held(&[(1.5, 1.5), (f64::NAN, f64::NAN)], Bound::Lossless));
        assert!(!held(&[(0.0, -0.0)], Bound::Lossless) && !held(&[(1.5, 1.5f64.next_up())], Bound::Lossless));
        assert!(!held(&[(f64::NAN, -f64::NAN)], Bound::Absolute(1.0)));
    }

    #[test]
    fn what_stretches_no_range() {
        let x = [(280.0, 280.0), (0.0, 0.0), (281.0, 281.1)];
        assert!(!held(&x, Bound::Relative(0.01)), "a default zero is data, but not of the range");
        let v = verdict(&x, Bound::Relative(0.01), Some(1e20));
        assert_eq!((v.broken, v.range), (0, Some((0.0, 281.0))), "another fill value makes it ordinary");
        let v = verdict(&[(280.0, 280.0), (-0.0, 0.0), (281.0, 281.1)], Bound::Relative(0.01), None);
        assert_eq!((v.broken, v.range), (0, Some((-0.0, 281.0))), "a zero of other bits");
        assert!(!held(&[(0.0, 5e-324), (0.0, 0.0)], Bound::Relative(0.9)) && !held(&[(0.0, 5e-324)], Bound::Psnr(1.0)));
    }
}
