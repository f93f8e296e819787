// SPDX-License-Identifier: MIT OR Apache-2.0
//! The judge on the CPU, in whole numbers: what the one on the GPU is held against, and what a frame's bound is.

use h5z_gpu::testing::values::{Found, Rule};
use h5z_gpu::{Bound, Dtype, Keep};
use num_bigint::{BigInt, BigUint, Sign};

/// A finite number as a multiple of 2^-1074.
fn whole(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (field, fraction) = (bits >> 52 & 0x7FF, bits & ((1 << 52) - 1));
    let magnitude = match field {
        0 => BigUint::from(fraction),
        _ => BigUint::from(fraction | 1 << 52) << (field - 1),
    };
    BigInt::from_biguint(if x.is_sign_negative() { Sign::Minus } else { Sign::Plus }, magnitude)
}

/// Bits and value of number `i`.
pub fn number(raw: &[u8], d: Dtype, i: usize) -> (u64, f64) {
    let size = usize::from(d.size);
    let mut b = [0; 8];
    b[..size].copy_from_slice(&raw[i * size..][..size]);
    let bits = u64::from_le_bytes(b);
    (bits, value(bits, d))
}

/// The number that has these bits.
pub fn value(bits: u64, d: Dtype) -> f64 {
    if d.size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

/// Whether y is what a rule lets stand for x. Both are numbers of one type, which f64 holds.
pub fn holds(x: f64, y: f64, rule: Rule) -> bool {
    if !y.is_finite() {
        return false;
    }
    let difference = BigInt::from((whole(x) - whole(y)).magnitude().clone());
    match rule {
        Rule::SameBits => x.to_bits() == y.to_bits(),
        Rule::Within(limit) => difference <= whole(limit),
        Rule::WithinPart(part) => difference * whole(1.0) <= whole(part) * whole(x.abs()),
        Rule::Kept(keep, (low, high)) => {
            let sign = |x: f64| x.partial_cmp(&0.0);
            let is_same = x.to_bits() == y.to_bits();
            let is_inside = x != 0.0 && x != low && x != high && (low..=high).contains(&y);
            (!keep.has(Keep::SIGN) || sign(x) == sign(y))
                && (!keep.has(Keep::ZERO) || x != 0.0 || is_same)
                && (!keep.has(Keep::RANGE) || is_same || is_inside)
        }
    }
}

/// What is to be found in values and what came back.
pub fn judge(raw: &[u8], back: &[u8], d: Dtype, fill: Option<u64>, rule: Rule) -> Found {
    let mut found = Found::default();
    for i in 0..raw.len() / usize::from(d.size) {
        let ((a, x), (b, y)) = (number(raw, d, i), number(back, d, i));
        if x.is_finite() && a != fill.unwrap_or(0) {
            let (low, high) = found.range.unwrap_or((x, x));
            found.range = Some((low.min(x), high.max(x)));
        }
        let right = if rule == Rule::SameBits || !x.is_finite() || fill == Some(a) {
            found.special += 1;
            found.moved += u64::from(a != b);
            a == b
        } else {
            let right = holds(x, y, rule);
            found.finite += 1;
            found.broken += u64::from(!right);
            found.filled += u64::from(fill == Some(b));
            right
        };
        if !right && found.first.is_none() {
            found.first = Some(i as u64);
        }
    }
    found
}

/// Whether a frame may state this bound, for a chunk with this range of values.
pub fn may_state(bound: Bound, used: f64, range: Option<(f64, f64)>) -> bool {
    let spread = range.map_or(BigInt::ZERO, |(low, high)| whole(high) - whole(low));
    match bound {
        _ if !used.is_finite() => false,
        Bound::Lossless => used == 0.0,
        Bound::Absolute(most) | Bound::PointwiseRelative(most) => used <= most,
        Bound::Relative(part) => whole(used) * whole(1.0) <= whole(part) * spread,
        // So much below that the rounding of the power of ten does not matter. Where no value is farther off than the
        // range times it, the mean square is no larger than its square.
        Bound::Psnr(p) => {
            let most = 10f64.powf(-p / 20.0) * (1.0 - 2f64.powi(-44));
            used == 0.0 || whole(used) * whole(1.0) <= whole(most) * spread
        }
    }
}

/// Of the numbers of the type, the one above x that is just too far from it.
pub fn beyond(x: f64, rule: Rule, d: Dtype) -> Option<f64> {
    let next = |y: f64, up: bool| match (d.size, up) {
        (4, true) => f64::from((y as f32).next_up()),
        (4, false) => f64::from((y as f32).next_down()),
        (_, true) => y.next_up(),
        (_, false) => y.next_down(),
    };
    let limit = match rule {
        Rule::SameBits | Rule::Kept(..) => return None,
        Rule::Within(limit) => limit,
        Rule::WithinPart(part) => part * x.abs(),
    };
    let mut y = if d.size == 4 { f64::from((x + limit) as f32) } else { x + limit };
    while y.is_finite() && holds(x, y, rule) {
        y = next(y, true);
    }
    while y.is_finite() && y > x && !holds(x, next(y, false), rule) {
        y = next(y, false);
    }
    y.is_finite().then_some(y)
}
