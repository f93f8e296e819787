// SPDX-License-Identifier: MIT OR Apache-2.0
//! A residual as a token and the bits that it leaves, and its magnitude on a scale of eighths of an octave. FORMAT.md
//! §4.1.
//!
//! ```text
//! residual   0   1  -1   2  -2 …  8  -8    9, -9 …
//! token      0   1   2   3   4 … 15  16    17 …   one for each quarter of an octave of |residual| - 1
//! bits                                     those below the quarter's, and the sign
//! ```

/// Tokens: of zero, of 1 to 8 with either sign, of four quarters of the octaves 3 to 30.
pub(super) const TOKENS: usize = 129;
/// Classes of tokens that differ by the sign alone.
pub(super) const CLASSES: usize = TOKENS - 8;
/// What is expected of a magnitude, in 16ths of its unit, is below this.
pub(super) const EXPECTED: usize = 16 * 249;
/// The last token that leaves no bits.
const DIRECT: u32 = 16;
/// The token's class is this much less, above the direct ones.
const SIGNS: usize = 8;

/// A residual's token, and its other bits with their number.
#[inline(always)]
pub(super) fn token(residual: i32) -> (u8, u32, u32) {
    let (size, sign) = (residual.unsigned_abs(), u32::from(residual < 0));
    if size <= DIRECT / 2 {
        return ((2 * size).saturating_sub(1 - sign) as u8, 0, 0);
    }
    let below = size - 1;
    let octave = below.ilog2();
    let quarter = below >> (octave - 2) & 3;
    let rest = below & ((1 << (octave - 2)) - 1);
    ((DIRECT + 1 + 4 * (octave - 3) + quarter) as u8, rest << 1 | sign, octave - 1)
}

/// How many bits a token leaves.
#[inline(always)]
pub(super) fn bits(token: u8) -> u32 {
    match u32::from(token).checked_sub(DIRECT + 1) {
        Some(quarter) => quarter / 4 + 2,
        None => 0,
    }
}

/// The residual of a token with these bits.
#[inline(always)]
pub(super) fn residual(token: u8, bits: u32) -> i32 {
    let token = u32::from(token);
    let (size, negative) = match token.checked_sub(DIRECT + 1) {
        Some(quarter) => ((4 + quarter % 4) << (quarter / 4 + 1) | bits >> 1, bits & 1 == 1),
        None => (token.div_ceil(2), token % 2 == 0),
    };
    let size = size.wrapping_add(u32::from(token > DIRECT)) as i32;
    if negative { size.wrapping_neg() } else { size }
}

/// The class of a token.
#[inline(always)]
pub(super) fn class(token: usize) -> usize {
    if token <= DIRECT as usize { token.div_ceil(2) } else { token - SIGNS }
}

/// The bits that a class other than 0 leaves, the sign among them.
pub(super) fn bits_beside(class: usize) -> u32 {
    if class <= SIGNS { 1 } else { bits((class + SIGNS) as u8) }
}

/// 8 · log2(1 + n), rounded to nearest, for n below 256.
static MAGNITUDES: [u8; 256] = magnitudes();

const fn magnitudes() -> [u8; 256] {
    let mut table = [64; 256];
    let mut n = 0;
    // Half an eighth more than a magnitude g is 2^(2g + 1) as the number's 16th power.
    while n < 255 {
        let (mut power, mut k) = (1 + n as u128, 0);
        while k < 4 {
            power *= power;
            k += 1;
        }
        table[n] = power.ilog2().div_ceil(2) as u8;
        n += 1;
    }
    table
}

/// A residual's magnitude, at most 248.
#[inline(always)]
pub(super) fn magnitude(residual: i32) -> u8 {
    let size = residual.unsigned_abs();
    let shift = 24u32.saturating_sub(size.leading_zeros());
    MAGNITUDES[(size >> shift) as usize & 255] + 8 * shift as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_come_back() {
        let edges = (0..31).flat_map(|k| [-2, -1, 0, 1, 2].map(|d| (1i32 << k).wrapping_add(d)));
        for r in edges.chain([i32::MAX, i32::MIN, i32::MIN + 1]).flat_map(|r| [r, r.wrapping_neg()]) {
            let (t, rest, n) = token(r);
            assert!(usize::from(t) < TOKENS && bits(t) == n && u64::from(rest) < 1 << n, "{r}: {t}, {rest:#x}, {n}");
            assert_eq!(residual(t, rest), r);
            let exact = 8.0 * (1.0 + f64::from(r.unsigned_abs())).log2();
            assert!((f64::from(magnitude(r)) - exact).abs() <= if r.unsigned_abs() < 256 { 0.5 } else { 0.6 }, "{r}");
        }
    }
}
