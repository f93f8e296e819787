// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals → symbols → a stream: from one residual that is not zero to the next, the run before it and the residual
//! written at once.
//!
//! 1. `symbols`: a byte per residual, 0 for a zero, and the values of escapes in a list of their own.
//! 2. `Histogram`: bytes are counted, and runs by their length and by what is behind them: -1, 1 or something else.
//!    What both codebooks need is added up from these when all tiles have been counted.
//! 3. The codebook is made of the counts of the whole chunk; it tells whether -1 and 1 are joined with the run
//!    before them.
//! 4. `Encoder`: tables of the bits of every byte and of every run of usual length, with its -1 or 1, joined or not.
//!    A mask with a bit for each of 64 bytes leads from one that is not zero to the next; run and residual are joined
//!    in a register and written together.

use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, LORENZO_SYMBOLS};
use crate::stage::codebook::{self, Lengths};
use crate::stage::symbols::{DIRECT, END, ESCAPE, FIRST_POWER, JOINT, RUN, class, escape_bits, run_bits, zigzag};

/// Bytes that are looked at together: a bit each in a mask.
const MASK_BYTES: usize = 64;
/// Bytes of a part that are not zero from which counting them all is faster than looking for those.
const DENSE: u32 = 24;
/// Runs shorter than this have tables, by their lengths.
const SHORT_RUNS: usize = 256;
/// Runs shorter than this have tables together with the residual behind them, whatever it is.
const JOINT_RUNS: usize = 32;
/// What is behind a run, as the smaller of its byte and this: 1 for -1, 2 for 1.
const OTHER: usize = 3;

/// Residuals as bytes: 0 for 0, else symbol − 34; escapes' zigzag values are appended to `escapes`.
#[inline(always)]
pub(crate) fn symbols(residuals: &[i32], bytes: &mut [u8], escapes: &mut Vec<u32>) {
    /// Byte of an escape from the exponent of its value as a float and the bit behind the highest one.
    const LESS: u32 = 2 * (127 + FIRST_POWER) - LORENZO_DIRECT as u32;
    for (bytes, residuals) in bytes.chunks_mut(MASK_BYTES).zip(residuals.chunks(MASK_BYTES)) {
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
            let (mut here, mut count) = ([0; MASK_BYTES], 0);
            for (&b, &r) in bytes.iter().zip(residuals) {
                here[count % MASK_BYTES] = zigzag(r);
                count += usize::from(usize::from(b) >= LORENZO_DIRECT);
            }
            escapes.extend_from_slice(&here[..count]);
        }
    }
}

/// The bytes of up to 64 whose highest bit `f` sets, given eight of them, which are below 128, in a word.
#[inline(always)]
fn mask(part: &[u8], f: impl Fn(u64) -> u64) -> u64 {
    let (words, tail) = part.as_chunks::<8>();
    // The high bits of eight bytes side by side.
    let gather = |w: u64| (((f(w) & 0x8080_8080_8080_8080) >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56;
    let mut mask = 0;
    for (k, w) in words.iter().enumerate() {
        mask |= gather(u64::from_le_bytes(*w)) << (8 * k);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        mask |= gather(u64::from_le_bytes(last)) << (8 * words.len());
    }
    mask
}

/// Which of up to 64 bytes are not 0.
#[inline(always)]
fn some(part: &[u8]) -> u64 {
    mask(
        part,
        #[inline(always)]
        |w| w + 0x7f7f_7f7f_7f7f_7f7f,
    )
}

/// Which of them are 1, and which are 2, of those that are not 0.
#[inline(always)]
fn ones(part: &[u8], some: u64) -> [u64; 2] {
    let more = mask(
        part,
        #[inline(always)]
        |w| w + 0x7d7d_7d7d_7d7d_7d7d,
    );
    let two = mask(
        part,
        #[inline(always)]
        |w| w << 6,
    );
    [some & !more & !two, some & !more & two]
}

/// Calls `f(zeros before it, byte)` for every byte that is not 0, and returns how many zeros follow the last.
#[inline(always)]
fn runs(bytes: &[u8], mut f: impl FnMut(usize, u8)) -> usize {
    let mut next = 0;
    for (i, part) in bytes.chunks(MASK_BYTES).enumerate() {
        let mut mask = some(part);
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let place = MASK_BYTES * i + at;
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
    /// Runs by what is behind them and by their length; those of 0 zeros mean nothing.
    short: [[u32; SHORT_RUNS]; OTHER + 1],
    /// Longer runs, by class.
    long: [[u32; LORENZO_RUNS]; OTHER + 1],
    /// Tiles that end with zeros.
    ends: u32,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram {
            bytes: [[0; 128]; 2],
            short: [[0; SHORT_RUNS]; OTHER + 1],
            long: [[0; LORENZO_RUNS]; OTHER + 1],
            ends: 0,
        }
    }

    /// Counts a tile's bytes.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        // Which of the 64 bytes before a part are not 0, and the place behind the last such byte of all.
        let (mut before, mut next) = (u64::MAX, 0);
        for (i, part) in bytes.chunks(MASK_BYTES).enumerate() {
            let mask = some(part);
            let mut left = mask;
            if mask.count_ones() > DENSE {
                let [even, odd] = &mut self.bytes;
                let (pairs, last) = part.as_chunks::<2>();
                for [a, b] in pairs {
                    even[usize::from(*a) & 127] += 1;
                    odd[usize::from(*b) & 127] += 1;
                }
                last.iter().for_each(|b| even[usize::from(*b) & 127] += 1);
                // Most runs are of 0 to 3 zeros: those are counted together, and only longer ones looked at.
                let [minus, plus] = ones(part, mask);
                left &= !(mask << 1 | before >> 63);
                for zeros in 1..4 {
                    let follow = left & (mask << (zeros + 1) | before >> (63 - zeros));
                    for (kind, of) in [minus, plus, !(minus | plus)].into_iter().enumerate() {
                        self.short[kind + 1][zeros] += (follow & of).count_ones();
                    }
                    left &= !follow;
                }
                while left != 0 {
                    let at = left.trailing_zeros();
                    left &= left - 1;
                    let passed = mask & ((1 << at) - 1);
                    let from = if passed == 0 { next } else { MASK_BYTES * i + 64 - passed.leading_zeros() as usize };
                    self.run(MASK_BYTES * i + at as usize - from, part[at as usize]);
                }
            } else {
                while left != 0 {
                    let at = left.trailing_zeros() as usize;
                    left &= left - 1;
                    self.bytes[0][usize::from(part[at]) & 127] += 1;
                    self.run(MASK_BYTES * i + at - next, part[at]);
                    next = MASK_BYTES * i + at + 1;
                }
            }
            if mask != 0 {
                next = MASK_BYTES * i + 64 - mask.leading_zeros() as usize;
            }
            before = mask;
        }
        self.ends += u32::from(next < bytes.len());
    }

    /// Counts a run of zeros and what is behind it.
    #[inline(always)]
    fn run(&mut self, zeros: usize, byte: u8) {
        let kind = usize::from(byte).min(OTHER);
        match self.short[kind].get_mut(zeros) {
            Some(count) => *count += 1,
            None => self.long[kind][class(zeros).0] += 1,
        }
    }

    /// Bits of the streams of what was counted, by a codebook of these lengths.
    pub(crate) fn bits(&self, lengths: &Lengths) -> u64 {
        codebook::stream_bits(&self.counts(), lengths)
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        let add = |a: &mut [u32], b: &[u32]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(self.bytes.as_flattened_mut(), other.bytes.as_flattened());
        add(self.short.as_flattened_mut(), other.short.as_flattened());
        add(self.long.as_flattened_mut(), other.long.as_flattened());
        self.ends += other.ends;
    }

    /// How often each symbol occurs, -1 and 1 joined with the runs before them.
    pub(crate) fn counts(&self) -> [u64; LORENZO_SYMBOLS] {
        let mut counts = [0; LORENZO_SYMBOLS];
        counts[END] = self.ends.into();
        for (symbol, count) in counts[DIRECT..JOINT].iter_mut().enumerate() {
            *count = self.bytes.iter().map(|half| u64::from(half[symbol + 1])).sum();
        }
        for kind in 1..=OTHER {
            let short = self.short[kind].iter().enumerate().skip(1).map(|(zeros, &c)| (class(zeros).0, c));
            for (class, count) in short.chain(self.long[kind].into_iter().enumerate()) {
                let count = u64::from(count);
                if kind == OTHER {
                    counts[RUN + class] += count;
                } else {
                    counts[JOINT + 2 * class + kind - 1] += count;
                    counts[DIRECT + kind - 1] -= count;
                }
            }
        }
        counts
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

/// The codewords of a codebook, also with what is before or behind them.
pub(crate) struct Encoder {
    symbols: [Code; LORENZO_SYMBOLS],
    /// Whether there are joint symbols.
    joint: bool,
    /// By what is behind a run, and by its length: its bits and those of a -1 or 1.
    runs: [[Short; SHORT_RUNS]; OTHER + 1],
    /// By the byte of a residual: its codeword, none for -1 and 1.
    bytes: [Short; 128],
    /// By the byte of a residual and the length of the run before it, both together.
    both: [[Short; JOINT_RUNS]; 128],
}

/// As [`Code`], in half the memory; and how many bits of an escape follow.
#[derive(Clone, Copy, Default)]
struct Short {
    bits: u32,
    len: u16,
    lower: u16,
}

impl Short {
    #[inline(always)]
    fn code(self) -> Code {
        Code { bits: self.bits.into(), len: self.len.into() }
    }
}

/// Bytes of a stream's working memory for `n` residuals: the longest is 11 + 30 bits each, and stores reach beyond.
pub(crate) fn stream_capacity(n: usize) -> usize {
    n * 6 + 64
}

impl Encoder {
    pub(crate) fn new(lengths: &Lengths) -> Self {
        let words = codebook::codewords(lengths);
        let residual = |byte: usize| match byte.checked_sub(1).map(|k| DIRECT + k) {
            Some(s) if byte >= OTHER && s < JOINT => {
                let lower = if s >= ESCAPE { escape_bits(s - ESCAPE) } else { 0 };
                Short { bits: words[s].into(), len: lengths[s].into(), lower: lower as u16 }
            }
            _ => Short::default(),
        };
        let mut encoder = Encoder {
            symbols: std::array::from_fn(|s| Code { bits: words[s].into(), len: lengths[s].into() }),
            joint: codebook::symbols(lengths) > JOINT,
            runs: [[Short::default(); SHORT_RUNS]; OTHER + 1],
            bytes: std::array::from_fn(residual),
            both: [[Short::default(); JOINT_RUNS]; 128],
        };
        for kind in 1..=OTHER {
            for zeros in 0..SHORT_RUNS {
                let Code { bits, len } = encoder.run(zeros, kind);
                encoder.runs[kind][zeros] = Short { bits: bits as u32, len: len as u16, lower: 0 };
            }
        }
        for byte in 1..=JOINT - DIRECT {
            let residual = encoder.bytes[byte];
            if byte >= OTHER && residual.len == 0 {
                continue;
            }
            for (both, run) in encoder.both[byte].iter_mut().zip(&encoder.runs[byte.min(OTHER)]) {
                let Code { bits, len } = run.code().then(residual.code());
                *both = Short { bits: bits as u32, len: len as u16, lower: residual.lower };
            }
        }
        encoder
    }

    /// A run, and the -1 or 1 behind it.
    fn run(&self, zeros: usize, kind: usize) -> Code {
        let joint = self.joint && kind < OTHER;
        let mut code = Code::default();
        if zeros > 0 {
            let (class, lower) = class(zeros);
            let symbol = if joint { JOINT + 2 * class + kind - 1 } else { RUN + class };
            code = self.symbols[symbol].then(Code { bits: lower as u64, len: run_bits(class) });
        }
        if kind == OTHER || joint && zeros > 0 { code } else { code.then(self.symbols[DIRECT + kind - 1]) }
    }

    /// Writes the stream of a tile's bytes into `out` (of [`stream_capacity`]); returns its bits.
    #[inline(always)]
    pub(crate) fn encode(&self, bytes: &[u8], escapes: &[u32], out: &mut [u8]) -> usize {
        match escapes {
            [] => self.encode_with::<false>(bytes, escapes, out),
            _ => self.encode_with::<true>(bytes, escapes, out),
        }
    }

    /// As [`Encoder::encode`], with or without looking for escapes.
    #[inline(always)]
    fn encode_with<const ESCAPES: bool>(&self, bytes: &[u8], escapes: &[u32], out: &mut [u8]) -> usize {
        let mut w = BitWriter { out, at: 0, held: 0, count: 0 };
        let mut next = 0;
        let last = runs(
            bytes,
            #[inline(always)]
            |zeros, b| {
                let byte = usize::from(b) & 127;
                let (code, lower) = match self.both[byte].get(zeros) {
                    Some(both) => (both.code(), both.lower),
                    None => {
                        let kind = byte.min(OTHER);
                        let run = match self.runs[kind].get(zeros) {
                            Some(run) => run.code(),
                            None => self.run(zeros, kind),
                        };
                        let residual = self.bytes[byte];
                        (run.then(residual.code()), residual.lower)
                    }
                };
                if ESCAPES {
                    let lower = u32::from(lower);
                    // Whether it is an escape is hard to foresee: what is none has 0 lower bits.
                    let z = escapes.get(next).copied().unwrap_or(0);
                    next += usize::from(byte >= LORENZO_DIRECT);
                    let rest = Code { bits: u64::from(z) & ((1 << lower) - 1), len: lower };
                    if code.len + lower <= BitWriter::APPEND_BITS {
                        w.put(code.then(rest));
                    } else {
                        w.put(code);
                        w.put(rest);
                    }
                } else {
                    w.put(code);
                }
            },
        );
        if last > 0 {
            w.put(self.symbols[END]);
        }
        w.finish()
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
    const APPEND_BITS: u32 = 56;

    /// Appends at most [`BitWriter::APPEND_BITS`] bits.
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

    /// Appends zeros up to the next word; returns the bits before them.
    fn finish(self) -> usize {
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
        8 * self.at + self.count as usize
    }
}
