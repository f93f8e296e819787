// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile into bytes, FORMAT.md §8.1, after SZx (Yu et al., HPDC 2022, doi:10.1145/3502181.3531473).
//!
//! ```text
//! for each block of 128 values
//!     range       of the values that are finite and not the fill value
//!     one value   stands for all within the bound: the block is zero or constant, and this value is stored alone
//!     words       steps above the smallest value; under a point-wise relative bound the upper part of a value's bits.
//!                 All have as many bits as the largest needs, in whole bytes
//!     outliers    values that the decoder's arithmetic would give back outside the bound: stored bit for bit, and
//!                 their words are those before them
//!     xor         each word with the word before; zero bytes at its head are left out, a code of two bits counts them
//!     store       whole words without codes where these are shorter; raw values where nothing is gained
//! ```
//!
//! A block is worked on in a few passes over 128 values that compile to vector code: what its values are, their words
//! with the decoder's own arithmetic beside them, byte planes. Only blocks with outliers or with values that the quick
//! check leaves open are gone through one by one.

use super::format::{CODES, Head, Kind, LEADING, Outliers, Words, magic, pattern_bits, word_bytes};
use super::parts::{OutlierSet, Parts};
use crate::bound::{Tolerance, Used};
use crate::constants::SZX_BLOCK;
use crate::error::Result;
use crate::keep::Limits;
use crate::scalar::{Bits, Scalar, WrappingInt, within};
use crate::stage::pack::{Bytes, Plane, Portable};

/// What is the same for every block of a chunk.
#[derive(Clone, Copy)]
pub(super) struct ChunkRule<S: Scalar> {
    words: Words<S>,
    /// The header's bound.
    bound: f64,
    /// Largest number of the type that is not above the bound: rounded differences below it are within the bound.
    below: S,
    /// Required bits of mode 3.
    q: u32,
    /// Bits that count as fill; those of an infinity, an outlier anyway, when there is none.
    fill: S::Bits,
    /// What else must hold.
    limits: Option<Limits<S>>,
}

impl<S: Scalar> ChunkRule<S> {
    pub(super) fn new(used: Used, fill: Option<u64>) -> Self {
        let bound = used.value();
        let near = S::from_f64(bound);
        let below = if near.to_f64() > bound { S::of_bits(near.bits().minus(S::Bits::ONE)) } else { near };
        ChunkRule {
            words: Words::new(matches!(used.tolerance, Tolerance::PointwiseRelative(_)), bound),
            bound,
            below,
            q: pattern_bits::<S>(bound),
            fill: fill.map_or(S::INFINITY.bits(), S::Bits::from_u64),
            limits: used.guard.map(|guard| guard.limits()),
        }
    }

    /// Whether `back` may stand for a normal value, where more than the bound is kept.
    #[inline(always)]
    fn is_allowed(&self, x: S, back: S) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.allow(x, back))
    }

    fn pointwise(&self) -> bool {
        matches!(self.words, Words::Patterns)
    }

    #[inline(always)]
    fn normal(&self, x: S) -> bool {
        (x.abs() < S::INFINITY) & (x.bits() != self.fill)
    }
}

/// Point-wise: the same bits, or a difference below the f64 before r · abs(x).
#[inline(always)]
fn pointwise_holds<S: Scalar>(x: S, back: S, r: f64) -> bool {
    let d = (x.to_f64() - back.to_f64()).abs();
    let p = x.to_f64().abs() * r;
    // Of numbers that are not negative the bits have the same order; "the f64 before p" is one less.
    (x.bits() == back.bits()) | (d.to_bits() + 1 < p.to_bits())
}

/// What a block's values are.
struct Survey<S> {
    /// Smallest and largest normal value; the other way round when there is none.
    lo: S,
    hi: S,
    /// All 128 bit patterns are equal.
    same: bool,
    /// There are values that are not normal.
    odd: bool,
}

#[inline(always)]
fn survey<S: Scalar>(x: &[S; SZX_BLOCK], fill: S::Bits) -> Survey<S> {
    const LANES: usize = 16;
    let (zero, one) = (S::Bits::ZERO, S::Bits::ONE);
    let first = x[0].bits();
    let (mut lo, mut hi) = ([S::INFINITY; LANES], [-S::INFINITY; LANES]);
    let (mut differ, mut odd) = ([zero; LANES], [zero; LANES]);
    for part in x.as_chunks::<LANES>().0 {
        for k in 0..LANES {
            let (v, bits) = (part[k], part[k].bits());
            let normal = (v.abs() < S::INFINITY) & (bits != fill);
            let (a, z) = if normal { (v, v) } else { (S::INFINITY, -S::INFINITY) };
            lo[k] = if a < lo[k] { a } else { lo[k] };
            hi[k] = if z > hi[k] { z } else { hi[k] };
            differ[k] = differ[k] | (bits ^ first);
            odd[k] = odd[k] | if normal { zero } else { one };
        }
    }
    let mut s = Survey { lo: lo[0], hi: hi[0], same: true, odd: false };
    for k in 0..LANES {
        s.lo = if lo[k] < s.lo { lo[k] } else { s.lo };
        s.hi = if hi[k] > s.hi { hi[k] } else { s.hi };
        s.same &= differ[k] == zero;
        s.odd |= odd[k] != zero;
    }
    s
}

/// Appends the payload of a tile of 1 to 4096 values.
#[inline(always)]
pub(super) fn tile<S: Scalar>(
    x: &[S],
    plan: &ChunkRule<S>,
    level: impl Bytes,
    parts: &mut Parts,
    out: &mut Vec<u8>,
) -> Result<()> {
    match plan.limits {
        None => blocks::<S, false>(x, plan, level, parts),
        Some(_) => blocks_within_limits(x, plan, parts),
    }
    parts.append(out)
}

/// [`blocks`] of a chunk of which more than the bound is kept. By itself, and the same code for every vector unit, for
/// few are.
#[inline(never)]
fn blocks_within_limits<S: Scalar>(x: &[S], plan: &ChunkRule<S>, parts: &mut Parts) {
    blocks::<S, true>(x, plan, Portable, parts);
}

#[inline(always)]
fn blocks<S: Scalar, const LIMITED: bool>(x: &[S], plan: &ChunkRule<S>, level: impl Bytes, parts: &mut Parts) {
    let (blocks, rest) = x.as_chunks::<SZX_BLOCK>();
    for x in blocks {
        block::<S, LIMITED>(x, SZX_BLOCK, plan, level, parts);
    }
    if let Some(&last) = rest.last() {
        let mut x = [last; SZX_BLOCK];
        x[..rest.len()].copy_from_slice(rest);
        block::<S, LIMITED>(&x, rest.len(), plan, level, parts);
    }
}

/// The rules of §8.1 in their order.
#[inline(always)]
fn block<S: Scalar, const LIMITED: bool>(
    x: &[S; SZX_BLOCK],
    n: usize,
    plan: &ChunkRule<S>,
    level: impl Bytes,
    parts: &mut Parts,
) {
    let allowed = |base: S| !LIMITED || x.iter().all(|&v| !plan.normal(v) || plan.is_allowed(v, base));
    let s = survey(x, plan.fill);
    let any = s.lo <= s.hi;
    let (lo, hi) = (s.lo + S::ZERO, s.hi + S::ZERO);
    if any && zero_holds(x, lo, hi, plan) && allowed(S::ZERO) {
        filled(x, n, None, s.odd, plan, level, parts);
    } else if s.same {
        filled(x, n, Some(x[0]), false, plan, level, parts);
    } else if !any {
        parts.raw(&x[..n]);
    } else if let Some(base) = constant(x, lo, hi, plan).filter(|&base| allowed(base)) {
        filled(x, n, Some(base), s.odd, plan, level, parts);
    } else {
        match plan.words {
            Words::Steps(w) => {
                let top = (hi - lo) * w.inverse;
                // The largest number of M bits.
                let most = magic::<S>().to_f64() - 1.0;
                if top <= S::from_f64(most) {
                    let magic = magic::<S>();
                    let word = (top + magic).bits().minus(magic.bits()).to_u64();
                    let q = (64 - word.leading_zeros()).max(1);
                    let mut words = [S::Bits::ZERO; SZX_BLOCK + 1];
                    let open = step_words(x, lo, w.step, w.inverse, plan.below, &mut words);
                    let holds = |x: S, word: S::Bits| {
                        let back = lo + (S::of_bits(word.plus(magic.bits())) - magic) * w.step;
                        within(x.to_f64(), back.to_f64(), plan.bound) && (!LIMITED || plan.is_allowed(x, back))
                    };
                    let set = if open | s.odd | LIMITED {
                        find_outliers(x, n, plan, level, &mut words, holds)
                    } else {
                        OutlierSet::NONE
                    };
                    coded(x, n, q, Some(lo), &words, &set, level, parts);
                } else {
                    parts.raw(&x[..n]);
                }
            }
            Words::Patterns => {
                let cut = 8 * S::SIZE as u32 - plan.q;
                let mut words = [S::Bits::ZERO; SZX_BLOCK + 1];
                let open = pattern_words(x, cut, plan.bound, &mut words);
                let holds = |x: S, word: S::Bits| pointwise_holds(x, S::of_bits(word << cut), plan.bound);
                let set =
                    if open | s.odd { find_outliers(x, n, plan, level, &mut words, holds) } else { OutlierSet::NONE };
                coded(x, n, plan.q, None, &words, &set, level, parts);
            }
            Words::Unusable => parts.raw(&x[..n]),
        }
    }
}

/// Rule 1: everything normal may become +0.
#[inline(always)]
fn zero_holds<S: Scalar>(x: &[S; SZX_BLOCK], lo: S, hi: S, plan: &ChunkRule<S>) -> bool {
    if plan.pointwise() || plan.bound == 0.0 {
        lo == S::ZERO && hi == S::ZERO && x.iter().all(|&v| !plan.normal(v) || v.bits() == S::Bits::ZERO)
    } else {
        lo.to_f64() >= -plan.bound && hi.to_f64() <= plan.bound
    }
}

/// Rule 4: the base that everything normal may become.
#[inline(always)]
fn constant<S: Scalar>(x: &[S; SZX_BLOCK], lo: S, hi: S, plan: &ChunkRule<S>) -> Option<S> {
    let (low, high) = (lo.to_f64(), hi.to_f64());
    let middle = if S::SIZE == 4 { (low + high) * 0.5 } else { 0.5 * low + 0.5 * high };
    let middle = S::from_f64(middle) + S::ZERO;
    let near = |c: f64| within(low, middle.to_f64(), c) && within(high, middle.to_f64(), c);
    if plan.pointwise() {
        let c = (plan.bound * low.abs().min(high.abs())).next_down();
        ((low > 0.0 || high < 0.0) && near(c)).then_some(middle)
    } else if plan.bound > 0.0 {
        near(plan.bound).then_some(middle)
    } else {
        let first = x.iter().find(|&&v| plan.normal(v))?;
        x.iter().all(|&v| !plan.normal(v) || v.bits() == first.bits()).then_some(*first)
    }
}

/// A zero block, or a constant one.
#[inline(always)]
fn filled<S: Scalar>(
    x: &[S; SZX_BLOCK],
    n: usize,
    base: Option<S>,
    odd: bool,
    plan: &ChunkRule<S>,
    level: impl Bytes,
    parts: &mut Parts,
) {
    let set = if odd {
        let mut flags = [0u8; SZX_BLOCK];
        for (flag, &x) in flags.iter_mut().zip(x) {
            *flag = u8::from(!plan.normal(x));
        }
        OutlierSet::new(x, n, &flags, level)
    } else {
        OutlierSet::NONE
    };
    if base.map_or(0, |_| S::SIZE) + set.bytes::<S>() >= n * S::SIZE {
        return parts.raw(&x[..n]);
    }
    let kind = if base.is_some() { Kind::Constant } else { Kind::Zero };
    parts.heads.push(Head { kind, outliers: set.kind, codes: false }.pack());
    base.into_iter().for_each(|b| parts.base(b));
    parts.outliers(x, &set);
}

/// Words of the absolute modes behind `words[0]`. True when the quick check leaves a value open.
#[inline(always)]
fn step_words<S: Scalar>(
    x: &[S; SZX_BLOCK],
    lo: S,
    step: S,
    inverse: S,
    below: S,
    words: &mut [S::Bits; SZX_BLOCK + 1],
) -> bool {
    let magic = magic::<S>();
    let mut open = S::Bits::ZERO;
    for (&x, word) in x.iter().zip(&mut words[1..]) {
        // Adding 2^M leaves no fraction bits: the sum is rounded to an integer, ties to even.
        let rounded = (x - lo) * inverse + magic;
        *word = rounded.bits().minus(magic.bits());
        let back = lo + (rounded - magic) * step;
        // Rounding keeps order: a rounded difference below a number of the type comes from an exact one below it.
        let sure = (x - back).abs() < below;
        open = open | if sure { S::Bits::ZERO } else { S::Bits::ONE };
    }
    open != S::Bits::ZERO
}

/// Words of mode 3, as above.
#[inline(always)]
fn pattern_words<S: Scalar>(x: &[S; SZX_BLOCK], cut: u32, bound: f64, words: &mut [S::Bits; SZX_BLOCK + 1]) -> bool {
    let half = if cut == 0 { S::Bits::ZERO } else { S::Bits::ONE << (cut - 1) };
    let mut open = S::Bits::ZERO;
    for (&x, word) in x.iter().zip(&mut words[1..]) {
        *word = x.bits().plus(half) >> cut;
        let sure = pointwise_holds(x, S::of_bits(*word << cut), bound);
        open = open | if sure { S::Bits::ZERO } else { S::Bits::ONE };
    }
    open != S::Bits::ZERO
}

/// Finds the outliers, in exact arithmetic, and gives them their predecessors' words.
#[inline(always)]
fn find_outliers<S: Scalar>(
    x: &[S; SZX_BLOCK],
    n: usize,
    plan: &ChunkRule<S>,
    level: impl Bytes,
    words: &mut [S::Bits; SZX_BLOCK + 1],
    holds: impl Fn(S, S::Bits) -> bool,
) -> OutlierSet {
    let mut flags = [0u8; SZX_BLOCK];
    for i in 0..SZX_BLOCK {
        flags[i] = u8::from(!(plan.normal(x[i]) & holds(x[i], words[i + 1])));
    }
    let mut left = level.nonzero(&flags);
    while left != 0 {
        let i = left.trailing_zeros() as usize;
        words[i + 1] = words[i];
        left &= left - 1;
    }
    OutlierSet::new(x, n, &flags, level)
}

/// A coded block, unless its raw values are shorter.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn coded<S: Scalar>(
    x: &[S; SZX_BLOCK],
    n: usize,
    q: u32,
    base: Option<S>,
    words: &[S::Bits; SZX_BLOCK + 1],
    set: &OutlierSet,
    level: impl Bytes,
    parts: &mut Parts,
) {
    let bytes = word_bytes(q);
    let leading = bytes.min(LEADING);
    let mut planes = [[0u8; SZX_BLOCK]; LEADING];
    // Bit i of masks[p]: value i has its byte p stored, its code is p or less.
    let mut masks = [u128::MAX; LEADING];
    let mut mid = (bytes - leading) * SZX_BLOCK;
    for p in 0..leading {
        let shift = 8 * (bytes - 1 - p) as u32;
        let mut seen = [0u8; SZX_BLOCK];
        for i in 0..SZX_BLOCK {
            planes[p][i] = ((words[i + 1] ^ words[i]) >> shift).to_u64() as u8;
        }
        for plane in &planes[..=p] {
            for i in 0..SZX_BLOCK {
                seen[i] |= plane[i];
            }
        }
        masks[p] = level.nonzero(&seen);
        mid += masks[p].count_ones() as usize;
    }
    let with_codes = set.kind != Outliers::None || CODES + mid < bytes * SZX_BLOCK;
    let body = if with_codes { CODES + mid } else { bytes * SZX_BLOCK };
    if base.map_or(0, |_| S::SIZE) + set.bytes::<S>() + body >= n * S::SIZE {
        return parts.raw(&x[..n]);
    }
    parts.heads.push(Head { kind: Kind::Coded(q), outliers: set.kind, codes: with_codes }.pack());
    base.into_iter().for_each(|b| parts.base(b));
    parts.outliers(x, set);
    let direct = if with_codes {
        let [m0, m1, m2] = masks;
        parts.codes.extend_from_slice(&((m1 & !m0) | !m2).to_le_bytes());
        parts.codes.extend_from_slice(&(!m1).to_le_bytes());
        for p in 0..leading {
            level.compress(&planes[p], masks[p], window(&mut parts.mid, parts.mid_len));
            parts.mid_len += masks[p].count_ones() as usize;
        }
        leading
    } else {
        0
    };
    for p in direct..bytes {
        let shift = 8 * (bytes - 1 - p) as u32;
        let keep = if with_codes { S::Bits::from_u64(255) } else { S::Bits::ZERO };
        let out: &mut Plane = window(&mut parts.mid, parts.mid_len);
        for i in 0..SZX_BLOCK {
            // The predecessor's byte counts only where codes are stored.
            let before = words[i] >> shift & keep;
            out[i] = ((words[i + 1] >> shift) ^ before).to_u64() as u8;
        }
        parts.mid_len += SZX_BLOCK;
    }
}

/// `N` bytes of a buffer that is known to have them.
#[inline(always)]
fn window<const N: usize>(bytes: &mut [u8], at: usize) -> &mut [u8; N] {
    bytes[at..].first_chunk_mut().expect("a buffer for a whole tile and the slack")
}
