// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals → symbols → a stream: from one residual that is not zero to the next, the run before it and the residual
//! written at once.
//!
//! 1. `symbols`: a byte per residual, 0 for a zero, and the values of escapes in a list of their own.
//! 2. `Histogram`: bytes and lengths of runs are counted apart; runs become symbols when all tiles have been counted.
//! 3. The codebook is made of the counts of the whole chunk.
//! 4. `Encoder`: tables of the codewords of every byte and of every short run. A mask with a bit for each of 64 bytes leads
//!    from one that is not zero to the next; run and residual are joined in a register and written together. Where the
//!    stream passes a multiple of 512 bits, the way back to the codeword that crosses it gives the gap.

use super::symbols::{ESCAPE, FIRST_POWER, SUBSEQUENCE, lower_bits, zigzag};
use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, LORENZO_SYMBOLS, SUBSEQUENCE_LOG2};
use crate::stage::codebook::{self, Lengths};

/// Bytes that are looked at together: a bit each in a mask.
const PART: usize = 64;
/// Bytes of a part that are not zero from which counting them all is faster than looking for those.
const DENSE: u32 = 24;
/// Runs shorter than this are written in one piece: at most four codewords.
const SHORT: usize = 16;
/// Runs shorter than this are counted by their lengths.
const RUNS: usize = SHORT * SHORT;
/// Residuals as bytes: 0 for 0, else symbol − 13; escapes' zigzag values are appended to `escapes`.
#[inline(always)]
pub(crate) fn symbols(residuals: &[i32], bytes: &mut [u8], escapes: &mut Vec<u32>) {
    /// Byte of an escape from the exponent of its value as a float and the bit behind the highest one.
    const LESS: u32 = 2 * (127 + FIRST_POWER) - LORENZO_DIRECT as u32;
    for (bytes, residuals) in bytes.chunks_mut(PART).zip(residuals.chunks(PART)) {
        let mut most = 0;
        for (b, &r) in bytes.iter_mut().zip(residuals) {
            let z = zigzag(r);
            // Without the third bit no rounding reaches the second.
            let top = (z & !(z >> 2)) as f32;
            let coded = (top.to_bits() >> 22).wrapping_sub(LESS);
            *b = (if z < LORENZO_DIRECT as u32 { z } else { coded }) as u8;
            most = most.max(*b);
        }
        if usize::from(most) >= LORENZO_DIRECT {
            // Whether a residual is an escape is hard to foresee: all are written, those that are none over each other.
            let (mut here, mut count) = ([0; PART], 0);
            for (&b, &r) in bytes.iter().zip(residuals) {
                here[count % PART] = zigzag(r);
                count += usize::from(usize::from(b) >= LORENZO_DIRECT);
            }
            escapes.extend_from_slice(&here[..count]);
        }
    }
}

/// Which of up to 64 bytes are not 0.
#[inline(always)]
fn mask(part: &[u8]) -> u64 {
    let mut mask = 0u64;
    let (words, tail) = part.as_chunks::<8>();
    for (k, w) in words.iter().enumerate() {
        let w = u64::from_le_bytes(*w);
        // The high bit of every byte that is not zero, then the eight of them side by side.
        let high = (((w & 0x7f7f_7f7f_7f7f_7f7f) + 0x7f7f_7f7f_7f7f_7f7f) | w) & 0x8080_8080_8080_8080;
        mask |= ((high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * k);
    }
    for (k, &b) in tail.iter().enumerate() {
        mask |= u64::from(b != 0) << (8 * words.len() + k);
    }
    mask
}

/// Calls `f(zeros before it, byte)` for every byte that is not 0, and returns how many zeros follow the last.
#[inline(always)]
fn runs(bytes: &[u8], mut f: impl FnMut(usize, u8)) -> usize {
    let mut next = 0;
    for (i, part) in bytes.chunks(PART).enumerate() {
        let mut mask = mask(part);
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let place = PART * i + at;
            f(place - next, part[at]);
            next = place + 1;
        }
    }
    bytes.len() - next
}

/// Counts of a chunk's symbols.
pub(crate) struct Histogram {
    /// Residuals that are not zero, by their byte; neighbours apart, as adding to what was just written waits for it.
    bytes: [[u32; 128]; 2],
    /// Short runs, by their length.
    runs: [u32; RUNS],
    /// Symbols of longer runs.
    long: [u64; LORENZO_RUNS],
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram { bytes: [[0; 128]; 2], runs: [0; RUNS], long: [0; LORENZO_RUNS] }
    }

    /// Counts a tile's bytes.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let Histogram { bytes: [even, odd], runs, long } = self;
        // Which of the 64 bytes before a part are not 0, and the place behind the last such byte of all.
        let (mut before, mut next) = (u64::MAX, 0);
        for (i, part) in bytes.chunks(PART).enumerate() {
            let mask = mask(part);
            let mut left = mask;
            if mask.count_ones() > DENSE {
                let (pairs, last) = part.as_chunks::<2>();
                for [a, b] in pairs {
                    even[usize::from(*a) & 127] += 1;
                    odd[usize::from(*b) & 127] += 1;
                }
                last.iter().for_each(|b| even[usize::from(*b) & 127] += 1);
                // Most runs are of 0 to 3 zeros: those are counted together, and only longer ones looked at.
                for (zeros, count) in runs[..4].iter_mut().enumerate() {
                    let follow = left & (mask << (zeros + 1) | before >> (63 - zeros));
                    *count += follow.count_ones();
                    left &= !follow;
                }
                while left != 0 {
                    let at = left.trailing_zeros();
                    left &= left - 1;
                    let passed = mask & ((1 << at) - 1);
                    let from = if passed == 0 { next } else { PART * i + 64 - passed.leading_zeros() as usize };
                    count_run(PART * i + at as usize - from, runs, long);
                }
            } else {
                while left != 0 {
                    let at = left.trailing_zeros() as usize;
                    left &= left - 1;
                    even[usize::from(part[at]) & 127] += 1;
                    count_run(PART * i + at - next, runs, long);
                    next = PART * i + at + 1;
                }
            }
            if mask != 0 {
                next = PART * i + 64 - mask.leading_zeros() as usize;
            }
            before = mask;
        }
        count_run(bytes.len() - next, runs, long);
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        let add = |a: &mut [u32], b: &[u32]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(a, b)| add(a, b));
        add(&mut self.runs, &other.runs);
        self.long.iter_mut().zip(other.long).for_each(|(a, b)| *a += b);
    }

    /// How often each symbol occurs.
    pub(crate) fn counts(&self) -> [u64; LORENZO_SYMBOLS] {
        let mut counts = [0; LORENZO_SYMBOLS];
        counts[..LORENZO_RUNS].copy_from_slice(&self.long);
        for (zeros, &c) in self.runs.iter().enumerate() {
            powers(zeros, |k| counts[k] += u64::from(c));
        }
        for (symbol, c) in counts[LORENZO_RUNS..].iter_mut().enumerate() {
            *c = self.bytes.iter().map(|half| u64::from(half[symbol + 1])).sum();
        }
        counts
    }
}

/// Counts one run of zeros.
#[inline(always)]
fn count_run(zeros: usize, runs: &mut [u32; RUNS], long: &mut [u64; LORENZO_RUNS]) {
    match runs.get_mut(zeros) {
        Some(s) => *s += 1,
        None => powers(
            zeros,
            #[inline(always)]
            |k| long[k] += 1,
        ),
    }
}

/// The powers of two that a run consists of, the largest first.
#[inline(always)]
fn powers(zeros: usize, mut f: impl FnMut(usize)) {
    let mut rest = zeros;
    while rest > 0 {
        let k = rest.ilog2() as usize;
        f(k);
        rest -= 1 << k;
    }
}

/// One or several codewords: bits from the low end, and how many.
#[derive(Clone, Copy, Default)]
struct Code {
    bits: u64,
    len: u32,
}

impl Code {
    #[inline(always)]
    fn then(self, next: Code) -> Code {
        Code { bits: self.bits | next.bits << self.len, len: self.len + next.len }
    }
}

/// The codewords of a codebook, also joined for whole runs.
pub(crate) struct Encoder {
    symbols: [Code; LORENZO_SYMBOLS],
    /// By the byte of a residual that is not zero.
    bytes: [Residual; 128],
    short: [Code; SHORT],
    /// Multiples of [`SHORT`] zeros.
    longer: [Code; SHORT],
}

/// A residual's codeword, and how many bits of it follow.
#[derive(Clone, Copy, Default)]
struct Residual {
    word: u32,
    len: u16,
    lower: u16,
}

/// Bytes of a stream's working memory for `n` residuals: the longest is 11 + 30 bits each, and stores reach beyond.
pub(crate) fn stream_capacity(n: usize) -> usize {
    n * 6 + 64
}

/// Gaps that such a stream may have, and one behind its end.
pub(crate) fn gaps_capacity(n: usize) -> usize {
    stream_capacity(n) * 8 / SUBSEQUENCE + 1
}

impl Encoder {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        let words = codebook::codewords(lengths);
        let symbols: [Code; LORENZO_SYMBOLS] =
            std::array::from_fn(|s| Code { bits: words[s].into(), len: lengths[s].into() });
        let residual = |byte: usize| match byte.checked_sub(1).map(|k| k + LORENZO_RUNS) {
            Some(s) if s < LORENZO_SYMBOLS => {
                let lower = if s >= ESCAPE { lower_bits(s - ESCAPE) } else { 0 };
                Residual { word: words[s].into(), len: lengths[s].into(), lower: lower as u16 }
            }
            _ => Residual::default(),
        };
        let run = |zeros: usize| {
            let mut code = Code::default();
            powers(zeros, |k| code = code.then(symbols[k]));
            code
        };
        Encoder {
            symbols,
            bytes: std::array::from_fn(residual),
            short: std::array::from_fn(run),
            longer: std::array::from_fn(|k| run(SHORT * k)),
        }
    }

    /// Writes the stream of a tile's bytes into `out` (of [`stream_capacity`]) and its gaps into `gaps`; returns its bits.
    #[inline(always)]
    pub(crate) fn encode(&self, bytes: &[u8], escapes: &[u32], out: &mut [u8], gaps: &mut Vec<u8>) -> usize {
        match escapes {
            [] => self.encode_with::<false>(bytes, escapes, out, gaps),
            _ => self.encode_with::<true>(bytes, escapes, out, gaps),
        }
    }

    /// As [`Encoder::encode`], with or without looking for escapes.
    #[inline(always)]
    fn encode_with<const ESCAPES: bool>(
        &self,
        bytes: &[u8],
        escapes: &[u32],
        out: &mut [u8],
        gaps: &mut Vec<u8>,
    ) -> usize {
        let mut w = BitWriter { out, at: 0, held: 0, count: 0 };
        let mut next = 0;
        // Bytes at which the next subsequence begins.
        let mut boundary = SUBSEQUENCE / 8;
        gaps.clear();
        let last = runs(
            bytes,
            #[inline(always)]
            |zeros, b| {
                let byte = usize::from(b) & 127;
                let Residual { word, len, lower } = self.bytes[byte];
                let (code, lower) = (Code { bits: word.into(), len: len.into() }, u32::from(lower));
                if zeros >= SHORT {
                    match self.longer.get(zeros / SHORT) {
                        Some(&run) => w.put(run),
                        None => powers(
                            zeros & !(SHORT - 1),
                            #[inline(always)]
                            |k| w.put(self.symbols[k]),
                        ),
                    }
                }
                let code = self.short[zeros % SHORT].then(code);
                if ESCAPES {
                    // Whether it is an escape is hard to foresee: what is none has 0 lower bits.
                    let z = escapes.get(next).copied().unwrap_or(0);
                    next += usize::from(byte >= LORENZO_DIRECT);
                    let rest = Code { bits: u64::from(z) & ((1 << lower) - 1), len: lower };
                    if code.len + lower <= BitWriter::MOST {
                        w.put(code.then(rest));
                    } else {
                        w.put(code);
                        w.put(rest);
                    }
                } else {
                    w.put(code);
                }
                if w.at >= boundary {
                    boundary = self.note(zeros, u32::from(len) + lower, w.bits(), gaps);
                }
            },
        );
        powers(
            last,
            #[inline(always)]
            |k| w.put(self.symbols[k]),
        );
        if w.at >= boundary {
            self.note(last, 0, w.bits(), gaps);
        }
        let bits = w.bits();
        // A boundary at the very end has nothing behind it.
        gaps.truncate((bits.max(1) - 1) >> SUBSEQUENCE_LOG2);
        w.finish();
        bits
    }

    /// Notes the gap of every boundary that a run and the `residual` bits behind it reach, the last of them being before bit
    /// `end`; returns the byte of the next boundary.
    #[cold]
    fn note(&self, zeros: usize, residual: u32, end: usize, gaps: &mut Vec<u8>) -> usize {
        let mut at = end - residual as usize;
        powers(zeros, |k| at -= self.symbols[k].len as usize);
        let mut token = |len: u32| {
            let end = at + len as usize;
            if at >> SUBSEQUENCE_LOG2 != end >> SUBSEQUENCE_LOG2 {
                gaps.push((end & (SUBSEQUENCE - 1)) as u8);
            }
            at = end;
        };
        powers(zeros, |k| token(self.symbols[k].len));
        token(residual);
        ((end >> SUBSEQUENCE_LOG2) + 1) * (SUBSEQUENCE / 8)
    }
}

/// Appends bits to a slice; holds fewer than eight of them between calls.
struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Bits that can be appended at once.
    const MOST: u32 = 56;

    /// Appends at most [`BitWriter::MOST`] bits.
    #[inline(always)]
    fn put(&mut self, code: Code) {
        self.held |= code.bits << self.count;
        self.count += code.len;
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
        let whole = self.count / 8;
        self.at += whole as usize;
        self.held >>= 8 * whole;
        self.count %= 8;
    }

    #[inline(always)]
    fn bits(&self) -> usize {
        8 * self.at + self.count as usize
    }

    /// Zeros up to the next word.
    fn finish(self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
    }
}
