// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges reconstructed values against a bound in exact arithmetic.

use h5z_gpu::Bound;

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
    /// Largest difference (in mode `pw_rel`: relative to the value), rounded to nearest.
    pub(crate) worst: f64,
    /// Sum of squared differences.
    pub(crate) squares: f64,
    /// Smallest and largest original value judged.
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
pub(crate) fn values(raw: &[u8], size: usize, big_endian: bool) -> impl Iterator<Item = Value> + '_ {
    raw.chunks_exact(size).map(move |c| {
        let bits = c.iter().enumerate().fold(0u64, |a, (k, &b)| {
            let place = if big_endian { size - 1 - k } else { k };
            a | u64::from(b) << (8 * place)
        });
        let x = if size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) };
        Value { bits, x }
    })
}

/// Smallest and largest of the finite values that are not the fill value.
pub(crate) fn range(values: impl Iterator<Item = Value>, fill: Option<u64>) -> Option<(f64, f64)> {
    values.filter(|v| v.x.is_finite() && fill != Some(v.bits)).fold(None, |range, v| {
        let (lo, hi) = range.unwrap_or((v.x, v.x));
        Some((v.x.min(lo), v.x.max(hi)))
    })
}

/// Compares value by value. `used` is the absolute bound, in mode `pw_rel` the relative one.
pub(crate) fn judge(
    original: impl Iterator<Item = Value>,
    reconstructed: impl Iterator<Item = Value>,
    mode: Bound,
    used: f64,
    fill: Option<u64>,
) -> Verdict {
    let mut v = Verdict::default();
    let relative = matches!(mode, Bound::PointwiseRelative(_));
    for (k, (a, b)) in original.zip(reconstructed).enumerate() {
        let held = if !a.x.is_finite() || fill == Some(a.bits) {
            v.special += 1;
            a.bits == b.bits
        } else {
            v.finite += 1;
            let d = (a.x - b.x).abs();
            let shown = if relative && d > 0.0 { d / a.x.abs() } else { d };
            // A NaN where a number was is the worst of all.
            v.worst = if shown <= v.worst { v.worst } else { shown };
            v.squares += d * d;
            let (lo, hi) = v.range.unwrap_or((a.x, a.x));
            v.range = Some((a.x.min(lo), a.x.max(hi)));
            match mode {
                Bound::Lossless => a.bits == b.bits,
                Bound::PointwiseRelative(_) => within_relative(a.x, b.x, used),
                _ => within(a.x, b.x, used),
            }
        };
        if !held {
            v.broken += 1;
            v.first.get_or_insert(k as u64);
        }
    }
    v
}

/// abs(x − y) ≤ b in real arithmetic: the rounded difference decides, and its rounding error where it equals b.
fn within(x: f64, y: f64, b: f64) -> bool {
    let d = x - y;
    if !d.is_finite() {
        return false;
    }
    let yy = d - x;
    let error = (x - (d - yy)) - (y + yy);
    let (d, error) = if d < 0.0 { (-d, -error) } else { (d, error) };
    d < b || (d == b && error <= 0.0)
}

/// abs(x − y) ≤ r · abs(x) in real arithmetic.
fn within_relative(x: f64, y: f64, r: f64) -> bool {
    let (d, limit) = ((x - y).abs(), r * x.abs());
    // Far from the limit, and the limit well above the smallest numbers, rounding decides nothing.
    if limit > 1e-290 && d < limit * (1.0 - 1e-14) {
        return true;
    }
    if !y.is_finite() || d > limit * (1.0 + 1e-14) && limit > 1e-290 {
        return false;
    }
    let ((mx, ex), (my, ey), (mr, er)) = (integer(x), integer(y), integer(r));
    if mx == 0 || my == 0 {
        // |x − y| is |y| or |x|: with r < 1 only zero for zero, or y = 0 for nothing, holds.
        return my == 0 && (mx == 0 || r >= 1.0);
    }
    // Exponents further apart than this: the difference is about the larger of the two, above r · |x| for every r < 1
    // that an f64 can state.
    const APART: i32 = 64;
    if (ex - ey).abs() > APART {
        return false;
    }
    let e = ex.min(ey);
    let d = ((mx << (ex - e)) - (my << (ey - e))).unsigned_abs();
    at_most((d, e), (mx.unsigned_abs() * mr.unsigned_abs(), ex + er))
}

/// A finite number as mantissa · 2^exponent.
fn integer(x: f64) -> (i128, i32) {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7FF) as i32, (bits & ((1 << 52) - 1)) as i128);
    let (m, e) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    (if x.is_sign_negative() { -m } else { m }, e)
}

/// a · 2^i ≤ b · 2^j.
fn at_most((a, i): (u128, i32), (b, j): (u128, i32)) -> bool {
    if a == 0 || b == 0 {
        return a == 0;
    }
    let (top_a, top_b) = (i - a.leading_zeros() as i32, j - b.leading_zeros() as i32);
    if top_a != top_b {
        return top_a < top_b;
    }
    // Equal top bits: normalised to 128 bits, whole numbers compare.
    a << a.leading_zeros() <= b << b.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bit_decides() {
        assert!(within(1.0, 0.5, 0.5) && within(-3.0, -3.0, 0.0));
        assert!(!within(1.0, 2f64.powi(-60), 1.0 - 2f64.powi(-53)));
        assert!(within(1.0, 2f64.powi(-60), 1.0));
        assert!(!within(1.0, -2f64.powi(-60), 1.0));
        assert!(!within(f64::MAX, -f64::MAX, f64::MAX));
        assert!(!within(1.0, f64::NAN, f64::MAX));
    }

    #[test]
    fn relative_differences_are_exact_at_the_limit() {
        let tenth = 0.1; // a little above 1/10
        assert!(within_relative(10.0, 9.0, tenth));
        assert!(!within_relative(10.0, 9.0, tenth.next_down()));
        assert!(within_relative(-8.0, -6.0, 0.25) && !within_relative(-8.0, 6.0, 0.25));
        assert!(within_relative(0.0, -0.0, 0.5) && !within_relative(0.0, 5e-324, 0.5));
        assert!(!within_relative(5e-324, 0.0, 0.999) && within_relative(5e-324, 5e-324, 1e-300));
        assert!(within_relative(1e-323, 5e-324, 0.5) && !within_relative(1e-323, 5e-324, 0.4999));
        assert!(!within_relative(1e300, 1e-300, 1f64.next_down()));
        assert!(!within_relative(1.0, f64::INFINITY, 0.5) && !within_relative(1.0, f64::NAN, 0.5));
    }
}
