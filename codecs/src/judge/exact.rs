// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole numbers times powers of two: every f64 is one, so differences, products and sums of squares have exact values
//! too.

use num_bigint::{BigInt, BigUint};

/// PSNR ≥ p in real arithmetic: S · 10^(p/10) ≤ n · spread², with S the sum of n squared differences. `about` is the
/// PSNR in f64.
pub(super) fn quiet(about: f64, p: f64, n: u64, squares: impl FnOnce() -> Dyadic, spread: &Dyadic) -> bool {
    // 2^40 roundings of a sum move it by 2^-13 at most, and the PSNR by less than this.
    if n < 1 << 40 && about.is_finite() && (about - p).abs() > 1e-2 {
        return about > p;
    }
    let most = spread.times(spread).times(&Dyadic { m: n.into(), e: 0 });
    let squares = squares();
    // The power is exact or irrational: a sum between it and what stands for it would agree with it in 250 bits.
    power_of_ten(p).is_some_and(|above| squares.times(&above).at_most(&most))
}

/// 10^(p/10), or a number that is larger by less than 2^-250 of it. `None` for p < 0, and for more than f64 can tell
/// apart.
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
pub(super) struct Dyadic {
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

    pub(super) fn plus(&self, other: &Dyadic) -> Dyadic {
        let (a, b, e) = self.aligned(other);
        Dyadic { m: a + b, e }
    }

    pub(super) fn minus(&self, other: &Dyadic) -> Dyadic {
        let (a, b, e) = self.aligned(other);
        Dyadic { m: a - b, e }
    }

    pub(super) fn times(&self, other: &Dyadic) -> Dyadic {
        Dyadic { m: &self.m * &other.m, e: self.e + other.e }
    }

    pub(super) fn abs(self) -> Dyadic {
        Dyadic { m: self.m.magnitude().clone().into(), e: self.e }
    }

    pub(super) fn at_most(&self, other: &Dyadic) -> bool {
        let (a, b, _) = self.aligned(other);
        a <= b
    }

    /// The nearest f64 of a number that is not negative, or the one beside it.
    pub(super) fn about(&self) -> f64 {
        let cut = i32::try_from(self.m.bits()).map_or(0, |bits| (bits - 64).max(0));
        let (top, e) = (u64::try_from(&self.m >> cut).unwrap_or(0) as f64, (self.e + cut).clamp(-2200, 2200));
        // In two steps: the power alone may be out of range.
        top * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)
    }

    /// The largest f64 that is not above a number that is not negative.
    pub(super) fn rounded_down(&self) -> f64 {
        let mut f = self.about().min(f64::MAX);
        while !Dyadic::from(f).at_most(self) {
            f = f.next_down();
        }
        while f < f64::MAX && Dyadic::from(f.next_up()).at_most(self) {
            f = f.next_up();
        }
        f
    }
}
