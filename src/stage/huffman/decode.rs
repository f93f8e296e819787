// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream → residuals: looks up 11 bits at a time and gets all whole codewords in them, up to eight places with their
//! residuals, an escape behind them, and any number of zeros.
//!
//! What is looked up tells where to look next, and the processor waits for it. So a stream with a gap array is read in two
//! places at once: one reader from the start, one from the first codeword of the middle subsequence, which the gap there
//! tells. The second writes to a buffer of its own, as only the first finds out how many residuals are before it; then
//! its residuals are copied behind those of the first. Every gap that a reader passes is compared with where the
//! codeword begins, the middle one by the first reader, so the array is checked as a whole.
//!
//! In turns: memory is read once for three lookups, 57 bits or more, while both readers are so far from their ends that
//! neither needs a check. The rest goes codeword by codeword.

use super::symbols::{ESCAPE, SUBSEQUENCE, lower_bits, unzigzag};
use crate::constants::{CODEWORD_LIMIT, LORENZO_RUNS, LORENZO_TILE};
use crate::error::{Damage, Result};
use crate::memory;
use crate::stage::codebook::{self, Lengths};

/// Patterns of the longest codeword.
const PATTERNS: usize = 1 << CODEWORD_LIMIT;
/// Places that one lookup tells the residuals of, besides an escape's.
const NEAR: usize = 8;
/// Places that one lookup writes.
const PLACES: usize = 2 * NEAR;
/// A buffer that the residuals of a tile are decoded into, so long that no lookup needs to ask how much is left.
pub(crate) type Buffer = [i32; LORENZO_TILE + PLACES];
/// Look-ups by one reading of memory, which brings 57 bits or more.
const TIMES: usize = 3;
/// Most bits that a lookup may take.
const MOST: u8 = 57 / TIMES as u8 - 1;
/// Most bits that a turn may take: its last lookup may have to be replaced by a long escape.
const TURN: usize = (TIMES - 1) * MOST as usize + CODEWORD_LIMIT as usize + 30;
/// Streams of fewer subsequences are read by one reader.
const WORTH_TWO: usize = 4;

/// What 11 bits of a stream mean.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Entry {
    /// Residuals of the first places.
    residuals: [i8; NEAR],
    /// Places in all; those not told are zeros.
    places: u16,
    /// Bits in all; 0: the first codeword is an escape's with too many bits.
    bits: u8,
    /// Bits before those of the escape's value that its codeword leaves open, and how many they are.
    codewords: u8,
    lower: u8,
    /// Place of the escape; without one, some place at which a 0 does no harm.
    place: u8,
    /// Highest two bits of the escape's value in zigzag.
    highest: u8,
}

/// Zeros to decode into.
pub(crate) fn buffers() -> Result<Box<[Buffer; 2]>> {
    Ok(memory::zeros(2)?.into_boxed_slice().try_into().expect("two buffers"))
}

/// The first codeword in 11 bits.
#[derive(Clone, Copy, Default)]
struct Single {
    symbol: u8,
    /// Bits of the codeword.
    len: u8,
    /// Bits in all, with those of an escape's value.
    bits: u8,
}

/// The decode tables of a codebook: what the next 11 bits of a stream mean.
pub(crate) struct Decoder {
    several: Vec<Entry>,
    single: Vec<Single>,
}

impl Decoder {
    /// From the lengths of a whole codebook; from no codeword at all, no tables.
    pub(crate) fn new(lengths: &Lengths) -> Result<Self> {
        if lengths.iter().all(|&l| l == 0) {
            return Ok(Decoder { several: Vec::new(), single: Vec::new() });
        }
        let words = codebook::codewords(lengths);
        let mut single = memory::collect(PATTERNS, std::iter::repeat(Single::default()))?;
        for (s, &len) in lengths.iter().enumerate().filter(|&(_, &l)| l > 0) {
            let bits = len + s.checked_sub(ESCAPE).map_or(0, lower_bits) as u8;
            for pattern in (usize::from(words[s])..PATTERNS).step_by(1 << len) {
                single[pattern] = Single { symbol: s as u8, len, bits };
            }
        }
        let several = memory::collect(PATTERNS, (0..PATTERNS).map(|pattern| several(&single, pattern)))?;
        Ok(Decoder { several, single })
    }

    /// Reads exactly `n` residuals, at most a tile's, of a stream of `words` · 4 bytes at the head of `bytes` to the head of
    /// the first buffer, where zeros stand; the second is working memory. `gaps`, when there are any, is checked.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        words: usize,
        gaps: Option<&[u8]>,
        n: usize,
        [out, aside]: &mut [Buffer; 2],
    ) -> Result<(), Damage> {
        if words == 0 {
            return Err("a stream of no words".into());
        }
        let (several, single) = (self.several.as_slice(), self.single.as_slice());
        let (Ok(several), Ok(single)) = (several.try_into(), single.try_into()) else {
            return Err("no codebook".into());
        };
        let tables = Tables { several, single };
        let total = 32 * words;
        let parts = words.div_ceil(SUBSEQUENCE / 32);
        let gaps = gaps.map_or(&[][..], |g| &g[..parts - 1]);
        // All but the filling at the stream's end is codewords.
        let sure = total - 31;
        let r = if parts < WORTH_TWO || gaps.is_empty() {
            let mut r = Reader::new(bytes, 0, gaps, out);
            tables.finish(&mut r, sure, n)?;
            r
        } else {
            // Whether the second half begins there, the first reader finds out.
            aside[..n].fill(0);
            let (first, second) = gaps.split_at(parts / 2);
            let half = SUBSEQUENCE * (parts / 2);
            let start = half + usize::from(first[parts / 2 - 1]);
            let mut both = [Reader::new(bytes, 0, first, out), Reader::new(bytes, start, second, aside)];
            tables.advance(&mut both, [start, sure])?;
            let [mut r, mut other] = both;
            tables.advance_to(&mut r, start)?;
            let Some(left) = n.checked_sub(r.place) else {
                return Err(format!("a stream of {} or more residuals, {n} expected", r.place).into());
            };
            tables.finish(&mut other, sure, left)?;
            r.out[n - left..n].copy_from_slice(&other.out[..left]);
            other
        };
        let left = total.wrapping_sub(r.bit);
        if left > 31 || r.peek() & ((1 << left) - 1) != 0 {
            return Err(format!("a stream of {total} bits whose codewords end at bit {}", r.bit).into());
        }
        Ok(())
    }
}

/// All whole codewords in a pattern, up to the first escape.
fn several(single: &[Single], pattern: usize) -> Entry {
    let mut e = Entry::default();
    let mut places = 0usize;
    loop {
        let Single { symbol, len, bits } = single[pattern >> e.bits];
        let symbol = usize::from(symbol);
        let after = e.bits + len;
        if len == 0 || u32::from(after) > CODEWORD_LIMIT || e.bits + bits > MOST {
            break;
        }
        if symbol < LORENZO_RUNS {
            places += 1 << symbol;
        } else if places >= NEAR {
            break;
        } else if symbol < ESCAPE {
            e.residuals[places] = unzigzag((symbol + 1 - LORENZO_RUNS) as u32) as i8;
            places += 1;
        } else {
            (e.codewords, e.lower) = (after, bits - len);
            (e.place, e.highest) = (places as u8, highest(symbol) as u8);
            (e.places, e.bits) = (places as u16 + 1, e.bits + bits);
            return e;
        }
        e.bits = after;
    }
    // No tile has as many as 2^16.
    e.places = places.min(0xffff) as u16;
    (e.codewords, e.place) = (e.bits, places.min(NEAR) as u8);
    e
}

/// The highest two bits of an escape in zigzag.
#[inline(always)]
fn highest(symbol: usize) -> u32 {
    2 + (symbol - ESCAPE) as u32 % 2
}

/// Where reading stands.
struct Reader<'a> {
    bytes: &'a [u8],
    bit: usize,
    /// Bit at which the next subsequence begins.
    boundary: usize,
    /// From the next subsequence's on.
    gaps: &'a [u8],
    out: &'a mut Buffer,
    place: usize,
}

impl<'a> Reader<'a> {
    /// One that begins at bit `start`, where a codeword begins; `gaps` are those of the boundaries behind.
    #[inline(always)]
    fn new(bytes: &'a [u8], start: usize, gaps: &'a [u8], out: &'a mut Buffer) -> Self {
        let boundary = if gaps.is_empty() { usize::MAX } else { (start / SUBSEQUENCE + 1) * SUBSEQUENCE };
        Reader { bytes, bit: start, boundary, gaps, out, place: 0 }
    }

    /// The next 57 bits or more, zeros behind the end.
    #[inline(always)]
    fn peek(&self) -> u64 {
        let at = self.bit / 8;
        let word = match self.bytes.get(at..at + 8) {
            Some(b) => u64::from_le_bytes(b.try_into().expect("eight bytes")),
            None => tail(self.bytes, at),
        };
        word >> (self.bit % 8)
    }

    /// Takes what the lowest bits of `w` mean, and them from `w`. Takes no bits where that must be done by [`Tables::one`].
    #[inline(always)]
    fn take(&mut self, e: &Entry, w: &mut u64) -> bool {
        // Only streams with too many residuals pass the tile's end; they are refused later.
        let at = self.place.min(LORENZO_TILE);
        let out = &mut self.out[at..at + PLACES];
        // All are read before any is written, which is one instruction each.
        let residuals: [i32; NEAR] = std::array::from_fn(|k| e.residuals[k].into());
        out[..NEAR].copy_from_slice(&residuals);
        let z = u64::from(e.highest) << e.lower | *w >> e.codewords & ((1 << e.lower) - 1);
        out[usize::from(e.place) % PLACES] = unzigzag(z as u32);
        self.place += usize::from(e.places);
        self.bit += usize::from(e.bits);
        *w >>= e.bits;
        e.bits != 0
    }
}

/// The tables of a [`Decoder`], with lengths that the compiler knows.
struct Tables<'a> {
    several: &'a [Entry; PATTERNS],
    single: &'a [Single; PATTERNS],
}

impl Tables<'_> {
    /// Reads on in turns until one of the readers is near its end.
    #[inline(always)]
    fn advance<const N: usize>(&self, readers: &mut [Reader<'_>; N], ends: [usize; N]) -> Result<(), Damage> {
        while (0..N).all(|k| readers[k].bit + TURN <= ends[k]) {
            let before: [usize; N] = std::array::from_fn(|k| readers[k].bit);
            let next: [u64; N] = std::array::from_fn(|k| readers[k].peek());
            let mut w = next;
            let mut taken = [true; N];
            for _ in 0..TIMES {
                for k in 0..N {
                    taken[k] = readers[k].take(&self.several[w[k] as usize % PATTERNS], &mut w[k]);
                }
            }
            for k in 0..N {
                if !taken[k] {
                    self.one(&mut readers[k])?;
                }
                self.check(&mut readers[k], before[k], next[k])?;
            }
        }
        Ok(())
    }

    /// Reads all codewords that begin before bit `end`.
    #[inline(always)]
    fn advance_to(&self, r: &mut Reader<'_>, end: usize) -> Result<(), Damage> {
        while r.bit < end {
            let whole = r.bit + CODEWORD_LIMIT as usize <= end;
            self.next(r, |_| whole)?;
        }
        Ok(())
    }

    /// Reads up to `n` residuals in all; what begins before bit `sure` is codewords.
    #[inline(always)]
    fn finish(&self, r: &mut Reader<'_>, sure: usize, n: usize) -> Result<(), Damage> {
        self.advance(std::array::from_mut(r), [sure])?;
        while r.place < n {
            let left = n - r.place;
            self.next(r, |e| usize::from(e.places) <= left)?;
        }
        if r.place != n {
            return Err(format!("a stream of {} or more residuals, {n} expected", r.place).into());
        }
        Ok(())
    }

    /// Takes one lookup where `all` of it is wanted, else one codeword.
    #[inline(always)]
    fn next(&self, r: &mut Reader<'_>, all: impl Fn(&Entry) -> bool) -> Result<(), Damage> {
        let (before, w) = (r.bit, r.peek());
        let e = &self.several[w as usize % PATTERNS];
        if !all(e) || !r.take(e, &mut w.clone()) {
            self.one(r)?;
        }
        self.check(r, before, w)
    }

    /// Checks the gap of the boundary that reading on from bit `before`, where `w` was next, may have reached.
    #[inline(always)]
    fn check(&self, r: &mut Reader<'_>, before: usize, w: u64) -> Result<(), Damage> {
        if r.bit < r.boundary { Ok(()) } else { self.pass(r, before, w) }
    }

    /// Takes one codeword.
    #[inline(always)]
    fn one(&self, r: &mut Reader<'_>) -> Result<(), Damage> {
        let w = r.peek();
        let Single { symbol, len, bits } = self.single[w as usize % PATTERNS];
        let symbol = usize::from(symbol);
        r.bit += usize::from(bits);
        if symbol < LORENZO_RUNS {
            r.place += 1 << symbol;
        } else {
            let mut z = (symbol + 1 - LORENZO_RUNS) as u32;
            if symbol >= ESCAPE {
                let lower = bits - len;
                z = highest(symbol) << lower | (w >> len) as u32 & ((1 << lower) - 1);
            }
            match r.out.get_mut(r.place) {
                Some(o) => *o = unzigzag(z),
                None => return Err(format!("a stream with a residual at place {}", r.place).into()),
            }
            r.place += 1;
        }
        // Zeros are not checked against the buffer: a stream that is nothing else must end too.
        if len == 0 || r.place > r.out.len() {
            return Err(format!("a stream of {} or more residuals", r.place).into());
        }
        Ok(())
    }

    /// As [`Tables::check`], where there is one: of the codewords in `w`, the first ones from bit `before` on.
    #[cold]
    fn pass(&self, r: &mut Reader<'_>, before: usize, mut w: u64) -> Result<(), Damage> {
        let mut bit = before;
        while bit < r.boundary {
            let Single { bits, .. } = self.single[w as usize % PATTERNS];
            bit += usize::from(bits);
            w >>= bits;
        }
        let (gap, rest) = r.gaps.split_first().expect("a gap for each boundary");
        let want = r.boundary + usize::from(*gap);
        if bit != want {
            return Err(format!("a gap array that leads to bit {want}, the codeword begins at {bit}").into());
        }
        r.gaps = rest;
        r.boundary = if rest.is_empty() { usize::MAX } else { r.boundary + SUBSEQUENCE };
        Ok(())
    }
}

/// The last bytes, then zeros.
#[cold]
fn tail(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Histogram, stream_capacity, symbols};
    use super::*;
    use crate::constants::LORENZO_SYMBOLS;

    fn residuals(kind: usize, n: usize) -> Vec<i32> {
        let mut state = 99u32 + kind as u32;
        (0..n)
            .map(|i| {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                let r = (state >> 8) as i32;
                match kind {
                    0 => 0,
                    1 => i32::from(i % 97 == 0),
                    2 => r % 5 - 2,
                    3 => r % 40 - 20,
                    4 => (state as i32) >> (r & 31),
                    5 => {
                        if i % 300 == 0 {
                            i32::MIN
                        } else {
                            0
                        }
                    }
                    _ => state as i32,
                }
            })
            .collect()
    }

    struct Coded {
        lengths: Lengths,
        stream: Vec<u8>,
        bits: usize,
        gaps: Vec<u8>,
    }

    fn encode(r: &[i32]) -> Coded {
        let (mut bytes, mut escapes, mut gaps) = (vec![0; r.len()], Vec::new(), Vec::new());
        symbols(r, &mut bytes, &mut escapes);
        let mut h = Histogram::new();
        h.add(&bytes);
        let lengths = codebook::lengths(&h.counts());
        let mut stream = vec![0xaa; stream_capacity(r.len())];
        let bits = Encoder::new(&lengths).encode(&bytes, &escapes, &mut stream, &mut gaps);
        let expected: u64 = h.counts().iter().zip(lengths).map(|(c, l)| c * u64::from(l)).sum();
        let lower: u64 = bytes.iter().filter(|&&b| b >= 32).map(|&b| u64::from(lower_bits(usize::from(b) - 32))).sum();
        assert_eq!(bits as u64, expected + lower);
        stream.truncate(bits.div_ceil(32) * 4);
        Coded { lengths, stream, bits, gaps }
    }

    #[test]
    fn streams_come_back_with_and_without_gaps() {
        for kind in 0..7 {
            for n in [1, 2, 7, 8, 9, 63, 64, 65, 511, 1000, 8191, 8192] {
                let r = residuals(kind, n);
                let c = encode(&r);
                assert_eq!(c.gaps.len(), c.stream.len().div_ceil(64) - 1, "kind {kind}, {n}");
                let decoder = Decoder::new(&c.lengths).unwrap();
                for gaps in [None, Some(&c.gaps[..])] {
                    let mut out = buffers().unwrap();
                    decoder.decode(&c.stream, c.stream.len() / 4, gaps, n, &mut out).unwrap();
                    assert!(out[0][..n] == r, "kind {kind}, {n}");
                    // What stands behind a stream does not matter.
                    let mut longer = c.stream.clone();
                    longer.extend([0xff; 9]);
                    let mut out = buffers().unwrap();
                    decoder.decode(&longer, c.stream.len() / 4, gaps, n, &mut out).unwrap();
                    assert!(out[0][..n] == r, "kind {kind}, {n}");
                }
            }
        }
    }

    #[test]
    fn gaps_lead_to_codewords() {
        let r = residuals(4, 8192);
        let c = encode(&r);
        let decoder = Decoder::new(&c.lengths).unwrap();
        let single = decoder.single.as_slice().try_into().unwrap();
        let tables = Tables { several: decoder.several.as_slice().try_into().unwrap(), single };
        let mut starts = std::collections::HashSet::new();
        let mut out = buffers().unwrap();
        let mut reader = Reader::new(&c.stream, 0, &[], &mut out[0]);
        while reader.place < 8192 {
            starts.insert(reader.bit);
            tables.one(&mut reader).unwrap();
        }
        assert_eq!(reader.bit, c.bits);
        for (k, &g) in c.gaps.iter().enumerate() {
            let at = (k + 1) * 512 + usize::from(g);
            assert!(starts.contains(&at) || at == c.bits, "gap {k} leads to bit {at}");
            assert!(!((k + 1) * 512..at).any(|b| starts.contains(&b)), "gap {k} passes a codeword");
        }
    }

    #[test]
    fn damaged_streams_are_refused_or_harmless() {
        for kind in [1, 2, 4] {
            let n = 900;
            let r = residuals(kind, n);
            let c = encode(&r);
            let decoder = Decoder::new(&c.lengths).unwrap();
            let words = c.stream.len() / 4;
            let run = |stream: &[u8], words: usize, gaps: Option<&[u8]>| {
                decoder.decode(stream, words, gaps, n, &mut buffers().unwrap())
            };
            for cut in 1..words {
                run(&c.stream[..4 * cut], cut, None).expect_err("a truncated stream");
            }
            let mut longer = c.stream.clone();
            longer.extend([0; 4]);
            run(&longer, words + 1, None).expect_err("a longer stream");
            for at in 0..c.stream.len() {
                let mut damaged = c.stream.clone();
                damaged[at] ^= 0x41;
                let _ = run(&damaged, words, None);
                let _ = run(&damaged, words, Some(&c.gaps));
            }
            for k in 0..c.gaps.len() {
                let mut gaps = c.gaps.clone();
                gaps[k] ^= 1;
                run(&c.stream, words, Some(&gaps)).expect_err("a wrong gap");
            }
            if !c.bits.is_multiple_of(32) {
                let mut damaged = c.stream.clone();
                *damaged.last_mut().unwrap() |= 0x80;
                run(&damaged, words, None).expect_err("a bit behind the end");
            }
        }
        let nothing = Decoder::new(&[0; LORENZO_SYMBOLS]).unwrap();
        nothing.decode(&[0; 8], 2, None, 5, &mut buffers().unwrap()).expect_err("no codebook");
    }
}
