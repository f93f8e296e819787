// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals → symbols → a stream: from one residual that is not zero to the next, the run before it and the residual
//! written at once.

use super::{FIRST_POWER, OUTLIER, SUBSEQUENCE, lower_bits, zigzag};
use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, LORENZO_SYMBOLS, SUBSEQUENCE_LOG2};
use crate::stage::codebook::{self, Lengths};

/// Runs shorter than this are written in one piece: at most four codewords.
const SHORT: usize = 16;
/// Residuals as bytes: 0 for 0, else symbol − 13; outliers' zigzag values are appended to `outliers`.
#[inline(always)]
pub(crate) fn symbols(residuals: &[i32], bytes: &mut [u8], outliers: &mut Vec<u32>) {
    let mut most = 0;
    for (b, &r) in bytes.iter_mut().zip(residuals) {
        *b = zigzag(r).min(LORENZO_DIRECT as u32) as u8;
        most = most.max(*b);
    }
    if usize::from(most) < LORENZO_DIRECT {
        return;
    }
    for (b, &r) in bytes.iter_mut().zip(residuals) {
        if usize::from(*b) == LORENZO_DIRECT {
            let z = zigzag(r);
            let power = z.ilog2();
            let half = z >> (power - 1) & 1;
            *b = (LORENZO_DIRECT as u32 + 2 * (power - FIRST_POWER) + half) as u8;
            outliers.push(z);
        }
    }
}

/// Calls `f(zeros before it, byte)` for every byte that is not 0, and returns how many zeros follow the last.
#[inline(always)]
fn runs(bytes: &[u8], mut f: impl FnMut(usize, u8)) -> usize {
    let mut next = 0;
    for (i, part) in bytes.chunks(64).enumerate() {
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
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let place = 64 * i + at;
            f(place - next, part[at]);
            next = place + 1;
        }
    }
    bytes.len() - next
}

/// Counts of a chunk's symbols.
pub(crate) struct Histogram {
    /// Residuals that are not zero, by their byte.
    bytes: [u32; 128],
    /// Short runs, by their length.
    short: [u32; SHORT],
    /// Symbols of longer runs.
    long: [u64; LORENZO_RUNS],
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram { bytes: [0; 128], short: [0; SHORT], long: [0; LORENZO_RUNS] }
    }

    /// Counts a tile's bytes.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let Histogram { bytes: count, short, long } = self;
        let last = runs(
            bytes,
            #[inline(always)]
            |zeros, b| {
                count_run(zeros, short, long);
                count[usize::from(b) & 127] += 1;
            },
        );
        count_run(last, short, long);
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        let add = |a: &mut [u32], b: &[u32]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.bytes, &other.bytes);
        add(&mut self.short, &other.short);
        self.long.iter_mut().zip(other.long).for_each(|(a, b)| *a += b);
    }

    /// How often each symbol occurs.
    pub(crate) fn counts(&self) -> [u64; LORENZO_SYMBOLS] {
        let mut counts = [0; LORENZO_SYMBOLS];
        counts[..LORENZO_RUNS].copy_from_slice(&self.long);
        for (zeros, &c) in self.short.iter().enumerate() {
            powers(zeros, |k| counts[k] += u64::from(c));
        }
        for (symbol, c) in counts[LORENZO_RUNS..].iter_mut().enumerate() {
            *c = self.bytes[symbol + 1].into();
        }
        counts
    }
}

/// Counts one run of zeros.
#[inline(always)]
fn count_run(zeros: usize, short: &mut [u32; SHORT], long: &mut [u64; LORENZO_RUNS]) {
    match short.get_mut(zeros) {
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
    fn then(self, next: Code) -> Code {
        Code { bits: self.bits | next.bits << self.len, len: self.len + next.len }
    }
}

/// A codebook ready to write with.
pub(crate) struct Encoder {
    symbols: [Code; 128],
    short: [Code; SHORT],
}

/// Bytes of a stream's working memory for `n` residuals: the longest is 11 + 30 bits each, and stores reach beyond.
pub(crate) fn stream_room(n: usize) -> usize {
    n * 6 + 64
}

impl Encoder {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        let words = codebook::codewords(lengths);
        let mut symbols = [Code::default(); 128];
        for (s, code) in symbols.iter_mut().enumerate().take(LORENZO_SYMBOLS) {
            *code = Code { bits: words[s].into(), len: lengths[s].into() };
        }
        let mut short = [Code::default(); SHORT];
        for (zeros, code) in short.iter_mut().enumerate() {
            powers(zeros, |k| *code = code.then(symbols[k]));
        }
        Encoder { symbols, short }
    }

    /// Writes the stream of a tile's bytes into `out` (of [`stream_room`]) and its gaps into `gaps`; returns its bits.
    #[inline(always)]
    pub(crate) fn encode(&self, bytes: &[u8], outliers: &[u32], out: &mut [u8], gaps: &mut Vec<u8>) -> usize {
        let mut w = BitWriter { out, at: 0, held: 0, count: 0 };
        let mut outliers = outliers.iter();
        gaps.clear();
        let last = runs(
            bytes,
            #[inline(always)]
            |zeros, b| {
                let before = w.bits();
                let symbol = usize::from(b) + LORENZO_RUNS - 1;
                match self.short.get(zeros) {
                    Some(run) => w.put(run.then(self.symbols[symbol & 127])),
                    None => {
                        powers(
                            zeros,
                            #[inline(always)]
                            |k| w.put(self.symbols[k]),
                        );
                        w.put(self.symbols[symbol & 127]);
                    }
                }
                let mut lower = 0;
                if symbol >= OUTLIER {
                    lower = lower_bits(symbol - OUTLIER);
                    let z = outliers.next().copied().unwrap_or(0);
                    w.put(Code { bits: u64::from(z) & ((1 << lower) - 1), len: lower });
                }
                if before >> SUBSEQUENCE_LOG2 != w.bits() >> SUBSEQUENCE_LOG2 {
                    self.note(before, zeros, Some((symbol, lower)), gaps);
                }
            },
        );
        let before = w.bits();
        powers(
            last,
            #[inline(always)]
            |k| w.put(self.symbols[k]),
        );
        if before >> SUBSEQUENCE_LOG2 != w.bits() >> SUBSEQUENCE_LOG2 {
            self.note(before, last, None, gaps);
        }
        let bits = w.bits();
        // A boundary at the very end has nothing behind it.
        gaps.truncate((bits.max(1) - 1) >> SUBSEQUENCE_LOG2);
        w.finish();
        bits
    }

    /// Notes the gap of every boundary that one run and its residual reach, from bit `at` on.
    #[cold]
    fn note(&self, mut at: usize, zeros: usize, residual: Option<(usize, u32)>, gaps: &mut Vec<u8>) {
        let mut token = |len: u32| {
            let end = at + len as usize;
            if at >> SUBSEQUENCE_LOG2 != end >> SUBSEQUENCE_LOG2 {
                gaps.push((end & (SUBSEQUENCE - 1)) as u8);
            }
            at = end;
        };
        powers(zeros, |k| token(self.symbols[k].len));
        if let Some((symbol, lower)) = residual {
            token(self.symbols[symbol].len + lower);
        }
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
    /// Appends at most 56 bits.
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
