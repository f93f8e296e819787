// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many bits residuals will take, from a few counts: chooses between predictors.
//!
//! Zeros and others follow each other as in a two-state chain: with n(z), n(s) zeros and others and t places where they
//! meet (before the first value stands a zero), each state keeps or changes. A residual that is not zero costs its
//! class (bits of its zigzag value, all above 15 together) under the entropy of classes, and the bits below its highest
//! one:
//!
//! ```text
//! cost = h(n(z), t/2) + max(h(n(s), t/2) + E(n(1), …, n(16)), n(s) − t/2) + Σ n(k) · (k − 1)
//! h(n, t) = L(n) − L(n − t) − L(t)    E(n…) = L(Σ n) − Σ L(n)    L(n) = n · log2(n)
//! ```
//!
//! The maximum: a residual that is not zero and follows another is a codeword of its own, so at least a bit, however
//! alike such residuals are; only runs of zeros share one.
//!
//! In whole numbers of 1/256 bit: t/2 rounded down and at most n, log2 from its integer part and a table of 256.

/// Classes told apart.
const CLASSES: usize = 16;

/// log2(1 + i/256) in 1/256 bits, rounded to nearest.
static FRACTION: [u8; 256] = fractions();

const fn fractions() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        // Squaring doubles the logarithm: each carry above 2 is its next bit. One bit more for rounding.
        let mut m = (256 + i as u64) << 23;
        let mut bits = 0u32;
        let mut k = 0;
        while k < 9 {
            m = (m * m) >> 31;
            bits <<= 1;
            if m >= 1 << 32 {
                m >>= 1;
                bits |= 1;
            }
            k += 1;
        }
        let rounded = (bits + 1) >> 1;
        table[i] = if rounded > 255 { 255 } else { rounded as u8 };
        i += 1;
    }
    table
}

/// log2(n) in 1/256 bits; 0 for 0.
pub(crate) fn log2(n: u32) -> u64 {
    let Some(e) = n.checked_ilog2() else { return 0 };
    let fraction = (u64::from(n) << 32 >> e >> 24) as usize & 255;
    u64::from(e) << 8 | u64::from(FRACTION[fraction])
}

/// The sum of log2(f(v)) in 1/256 bits, rounded as elsewhere; no f(v) is 0. f may be up to 2^31.
#[inline(always)]
pub(crate) fn logarithms(values: &mut [i32], f: impl Fn(i32) -> u32) -> u64 {
    // A double's exponent and the upper eight bits behind it: all that a logarithm is made from.
    let upper = |v: i32| (f64::from(f(v) as i32).to_bits() >> 44) as i32;
    values.iter_mut().for_each(
        #[inline(always)]
        |v| *v = upper(*v),
    );
    let of = |&v: &i32| (v as u64 & !255) + u64::from(FRACTION[(v & 255) as usize]);
    values.iter().map(of).sum::<u64>() - values.len() as u64 * (1023 << 8)
}

/// n · log2(n) in 1/256 bits.
fn weight(n: u32) -> u64 {
    u64::from(n) * log2(n)
}

/// Counts of residuals, from which the cost follows.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    /// Residuals.
    n: u32,
    /// Residuals of at least k + 1 bits in zigzag.
    above: [u32; CLASSES],
    /// Places where zero and not zero meet.
    changes: u32,
}

/// The cost of `residuals`, in 1/256 bits. `bits` is working memory of at least their number.
#[inline(always)]
pub fn cost(residuals: &[i32], bits: &mut [u8]) -> u64 {
    let bits = &mut bits[..residuals.len()];
    for (b, &r) in bits.iter_mut().zip(residuals) {
        *b = class(r);
    }
    count(bits).cost()
}

/// Bits of a residual's zigzag value, at most 16.
#[inline(always)]
fn class(r: i32) -> u8 {
    // Its number of bits is the exponent of its value as a float; 2^16 and above are one class.
    let z = ((r << 1) ^ (r >> 31)) as u32;
    let z = z.min(0xffff) as i32;
    (((z as f32).to_bits() >> 23) as u8).saturating_sub(126)
}

/// Counts over classes.
#[inline(always)]
fn count(bits: &[u8]) -> Counts {
    let mut c = Counts { n: bits.len() as u32, ..Counts::default() };
    for k in 0..CLASSES {
        c.above[k] = matching(
            bits,
            bits,
            #[inline(always)]
            |b, _| b > k as u8,
        );
        if c.above[k] == 0 {
            break;
        }
    }
    let (Some(&first), Some(tail)) = (bits.first(), bits.get(1..)) else { return c };
    c.changes = u32::from(first != 0)
        + matching(
            &bits[..tail.len()],
            tail,
            #[inline(always)]
            |a, b| (a == 0) != (b == 0),
        );
    c
}

/// How many places satisfy `f`; in lanes of bytes that are added up before they overflow.
#[inline(always)]
fn matching(a: &[u8], b: &[u8], f: impl Fn(u8, u8) -> bool) -> u32 {
    /// Blocks of 64 that are counted at once, as lanes travel through memory.
    const LANE_BLOCKS: usize = 4;
    const COUNTED_BYTES: usize = 255 / LANE_BLOCKS * LANE_BLOCKS * 64;
    let mut total = 0;
    for (a, b) in a.chunks(COUNTED_BYTES).zip(b.chunks(COUNTED_BYTES)) {
        let mut lanes = [0u8; 64];
        let ((many_a, a), (many_b, b)) = (a.as_chunks::<{ 64 * LANE_BLOCKS }>(), b.as_chunks::<{ 64 * LANE_BLOCKS }>());
        for (a, b) in many_a.iter().zip(many_b) {
            for k in 0..64 {
                lanes[k] += (0..LANE_BLOCKS).map(|m| u8::from(f(a[64 * m + k], b[64 * m + k]))).sum::<u8>();
            }
        }
        let ((blocks_a, a), (blocks_b, b)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
        for (a, b) in blocks_a.iter().zip(blocks_b) {
            for k in 0..64 {
                lanes[k] += u8::from(f(a[k], b[k]));
            }
        }
        total += lanes.iter().map(|&l| u32::from(l)).sum::<u32>();
        total += a.iter().zip(b).map(|(&a, &b)| u32::from(f(a, b))).sum::<u32>();
    }
    total
}

impl Counts {
    fn cost(&self) -> u64 {
        let others = self.above[0];
        let stay = |n: u32| {
            let t = (self.changes / 2).min(n);
            // Rounded logarithms may make an entropy of almost nothing negative.
            weight(n).saturating_sub(weight(n - t) + weight(t))
        };
        let mut classes = 0;
        let mut below = 0;
        for k in 0..CLASSES {
            let next = self.above.get(k + 1).copied().unwrap_or(0);
            classes += weight(self.above[k] - next);
            below += u64::from(next);
        }
        let alone = u64::from(others - (self.changes / 2).min(others)) << 8;
        stay(self.n - others) + (stay(others) + weight(others).saturating_sub(classes)).max(alone) + (below << 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_a_256th() {
        for n in (1..9000).chain([1 << 20, u32::MAX]) {
            let exact = f64::from(n).log2() * 256.0;
            assert!((log2(n) as f64 - exact).abs() < 2.0, "{n}: {} {exact}", log2(n));
        }
        assert_eq!((log2(0), log2(1), log2(8192)), (0, 0, 13 * 256));
        let all: Vec<i32> = (0..40_000).map(|i| i * 53_687).collect();
        let sum: u64 = all.iter().map(|&v| log2(v as u32 + 1)).sum();
        assert_eq!(logarithms(&mut all.clone(), |v| v as u32 + 1), sum);
    }

    #[test]
    fn counts_are_those_of_a_plain_loop() {
        let mut state = 1u32;
        for n in [0, 1, 2, 63, 64, 65, 1000, 8192, 40000] {
            let r: Vec<i32> = (0..n)
                .map(|_| {
                    state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                    (state as i32) >> (state >> 3 & 31)
                })
                .collect();
            let bits: Vec<u8> = r.iter().map(|&r| class(r)).collect();
            for (&r, &b) in r.iter().zip(&bits) {
                let z = ((r << 1) ^ (r >> 31)) as u32;
                assert_eq!(u32::from(b), (32 - z.leading_zeros()).min(16), "{r}");
            }
            let c = count(&bits);
            for k in 0..CLASSES {
                assert_eq!(c.above[k] as usize, bits.iter().filter(|&&b| b > k as u8).count(), "{n} {k}");
            }
            let mut before = true;
            let mut changes = 0;
            for &b in &bits {
                changes += u32::from((b == 0) != before);
                before = b == 0;
            }
            assert_eq!(c.changes, changes, "{n}");
        }
    }

    #[test]
    fn residuals_alike_cost_a_bit_each() {
        let mut bits = vec![0; 8192];
        // All -1, and -1 but for a few zeros: a codeword each, without zeros in between.
        assert_eq!(cost(&[-1; 8192], &mut bits), 8192 << 8);
        let mostly: Vec<i32> = (0..8192).map(|i| -i32::from(i % 512 != 0)).collect();
        assert!(cost(&mostly, &mut bits) >= 8160 << 8);
        // One by one among zeros they join the runs before them.
        let apart: Vec<i32> = (0..8192).map(|i| -(i & 1)).collect();
        assert!(cost(&apart, &mut bits) < 64 << 8);
    }

    #[test]
    fn noise_costs_more_than_runs() {
        let mut bits = vec![0; 4096];
        let run: Vec<i32> = (0..4096).map(|i| i32::from(i > 4000)).collect();
        let mixed: Vec<i32> = (0..4096).map(|i| i32::from(i % 43 == 0)).collect();
        let noise: Vec<i32> = (0..4096).map(|i| i * 7919 % 31 - 15).collect();
        let costs = [&[0; 4096][..], &run, &mixed, &noise].map(|r| cost(r, &mut bits) >> 8);
        assert_eq!(costs[0], 0);
        assert!(costs.is_sorted(), "{costs:?}");
        assert!((4 * 4096..6 * 4096).contains(&costs[3]), "{costs:?}");
    }
}
