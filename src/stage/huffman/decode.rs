// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream → residuals: looks up 11 bits at a time and gets all whole codewords in them, up to eight places with their
//! residuals, and any number of zeros after them.

use super::{OUTLIER, SUBSEQUENCE, lower_bits, unzigzag};
use crate::constants::{CODEWORD_LIMIT, LORENZO_RUNS, SUBSEQUENCE_LOG2};
use crate::stage::codebook::{self, Lengths};

/// Patterns of the longest codeword.
const PATTERNS: usize = 1 << CODEWORD_LIMIT;
/// Places that one look-up fills; a buffer for residuals is longer by as many.
pub(crate) const PLACES: usize = 8;

/// What 11 bits of a stream mean.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Residuals of the first places.
    residuals: [i8; PLACES],
    /// Places in all; those after the first eight are zeros.
    places: u32,
    /// Bits of the codewords; 0: the first one is an outlier's.
    bits: u16,
}

/// A codebook ready to read with.
pub(crate) struct Decoder {
    several: Vec<Entry>,
    /// Symbol and length of the first codeword, by the pattern it begins.
    single: Vec<(u8, u8)>,
}

impl Decoder {
    /// From the lengths of a whole codebook; from no codeword at all, a table that nothing may look into.
    pub(crate) fn new(lengths: &Lengths) -> Self {
        let words = codebook::codewords(lengths);
        let mut single = vec![(0, 0); PATTERNS];
        for (s, &len) in lengths.iter().enumerate().filter(|&(_, &l)| l > 0) {
            for pattern in (usize::from(words[s])..PATTERNS).step_by(1 << len) {
                single[pattern] = (s as u8, len);
            }
        }
        let several = (0..PATTERNS).map(|pattern| several(&single, pattern)).collect();
        Decoder { several, single }
    }

    /// Reads exactly `n` residuals of a stream of `words` · 4 bytes at the head of `bytes` into `out`, which holds [`PLACES`]
    /// more and zeros. `gaps`, when there are any, is checked.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        words: usize,
        gaps: Option<&[u8]>,
        n: usize,
        out: &mut [i32],
    ) -> Result<(), String> {
        if words == 0 {
            return Err("a stream of no words".into());
        }
        let total = 32 * words;
        let (several, single) = (self.several.as_slice(), self.single.as_slice());
        let (Ok(several), Ok(single)) =
            (<&[Entry; PATTERNS]>::try_from(several), <&[(u8, u8); PATTERNS]>::try_from(single))
        else {
            return Err("no codebook".into());
        };
        let mut r = Reader { bytes, bit: 0, place: 0 };
        let parts = if gaps.is_some() { words.div_ceil(SUBSEQUENCE / 32) } else { 1 };
        for part in 1..=parts {
            let last = part == parts;
            // All but the filling at the stream's end is codewords: what is looked up below this is whole.
            let sure = if last { total - 31 } else { part << SUBSEQUENCE_LOG2 };
            while r.bit + CODEWORD_LIMIT as usize <= sure {
                let many = r.bit + 5 * CODEWORD_LIMIT as usize <= sure;
                if !r.several(several, if many { 5 } else { 1 }, out) {
                    r.one(single, out)?;
                }
            }
            while if last { r.place < n } else { r.bit < sure } {
                r.one(single, out)?;
            }
            if let (false, Some(gaps)) = (last, gaps) {
                let want = sure + usize::from(gaps[part - 1]);
                if r.bit != want {
                    return Err(format!("a gap array that leads to bit {want}, the codeword begins at {}", r.bit));
                }
            }
        }
        if r.place != n {
            return Err(format!("a stream of {} or more residuals, {n} expected", r.place));
        }
        let left = total.wrapping_sub(r.bit);
        if left > 31 || r.peek() & ((1 << left) - 1) != 0 {
            return Err(format!("a stream of {total} bits whose codewords end at bit {}", r.bit));
        }
        Ok(())
    }
}

/// All whole codewords in a pattern.
fn several(single: &[(u8, u8)], pattern: usize) -> Entry {
    let mut e = Entry::default();
    loop {
        let (symbol, len) = single[pattern >> e.bits];
        let symbol = usize::from(symbol);
        let after = e.bits + u16::from(len);
        if len == 0 || u32::from(after) > CODEWORD_LIMIT || symbol >= OUTLIER {
            return e;
        }
        if symbol < LORENZO_RUNS {
            e.places += 1 << symbol;
        } else {
            let Some(place) = e.residuals.get_mut(e.places as usize) else { return e };
            *place = unzigzag((symbol + 1 - LORENZO_RUNS) as u32) as i8;
            e.places += 1;
        }
        e.bits = after;
    }
}

/// Where reading stands.
struct Reader<'a> {
    bytes: &'a [u8],
    bit: usize,
    place: usize,
}

impl Reader<'_> {
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

    /// Takes up to `times` patterns; false where an outlier comes next, or more residuals than there is room for.
    #[inline(always)]
    fn several(&mut self, table: &[Entry; PATTERNS], times: usize, out: &mut [i32]) -> bool {
        let mut w = self.peek();
        for _ in 0..times {
            let e = &table[w as usize & (PATTERNS - 1)];
            let Some(room) = out.get_mut(self.place..self.place + PLACES) else { return false };
            if e.bits == 0 {
                return false;
            }
            for (o, &r) in room.iter_mut().zip(&e.residuals) {
                *o = r.into();
            }
            self.place += e.places as usize;
            self.bit += usize::from(e.bits);
            w >>= e.bits;
        }
        true
    }

    /// Takes one codeword.
    #[inline(always)]
    fn one(&mut self, table: &[(u8, u8); PATTERNS], out: &mut [i32]) -> Result<(), String> {
        let w = self.peek();
        let (symbol, len) = table[w as usize & (PATTERNS - 1)];
        let symbol = usize::from(symbol);
        self.bit += usize::from(len);
        if symbol < LORENZO_RUNS {
            self.place += 1 << symbol;
        } else {
            let mut z = (symbol + 1 - LORENZO_RUNS) as u32;
            if symbol >= OUTLIER {
                let k = symbol - OUTLIER;
                let lower = lower_bits(k);
                z = (2 + k as u32 % 2) << lower | (w >> len) as u32 & ((1 << lower) - 1);
                self.bit += lower as usize;
            }
            match out.get_mut(self.place) {
                Some(o) => *o = unzigzag(z),
                None => return Err(format!("a stream with a residual at place {}", self.place)),
            }
            self.place += 1;
        }
        // Zeros do not look at the room they take: a stream that is nothing else must end too.
        if len == 0 || self.place > out.len() {
            return Err(format!("a stream of {} or more residuals", self.place));
        }
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
    use super::super::{Encoder, Histogram, stream_room, symbols};
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
        let (mut bytes, mut outliers, mut gaps) = (vec![0; r.len()], Vec::new(), Vec::new());
        symbols(r, &mut bytes, &mut outliers);
        let mut h = Histogram::new();
        h.add(&bytes);
        let lengths = codebook::lengths(&h.counts());
        let mut stream = vec![0xaa; stream_room(r.len())];
        let bits = Encoder::new(&lengths).encode(&bytes, &outliers, &mut stream, &mut gaps);
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
                let decoder = Decoder::new(&c.lengths);
                for gaps in [None, Some(&c.gaps[..])] {
                    let mut out = vec![0; n + PLACES];
                    decoder.decode(&c.stream, c.stream.len() / 4, gaps, n, &mut out).unwrap();
                    assert!(out[..n] == r, "kind {kind}, {n}");
                    // What stands behind a stream does not matter.
                    let mut longer = c.stream.clone();
                    longer.extend([0xff; 9]);
                    let mut out = vec![0; n + PLACES];
                    decoder.decode(&longer, c.stream.len() / 4, gaps, n, &mut out).unwrap();
                    assert!(out[..n] == r, "kind {kind}, {n}");
                }
            }
        }
    }

    #[test]
    fn gaps_lead_to_codewords() {
        let r = residuals(4, 8192);
        let c = encode(&r);
        let decoder = Decoder::new(&c.lengths);
        let single: &[(u8, u8); PATTERNS] = decoder.single.as_slice().try_into().unwrap();
        let mut starts = std::collections::HashSet::new();
        let mut reader = Reader { bytes: &c.stream, bit: 0, place: 0 };
        let mut out = vec![0; 8200];
        while reader.place < 8192 {
            starts.insert(reader.bit);
            reader.one(single, &mut out).unwrap();
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
            let decoder = Decoder::new(&c.lengths);
            let words = c.stream.len() / 4;
            let run = |stream: &[u8], words: usize, gaps: Option<&[u8]>| {
                decoder.decode(stream, words, gaps, n, &mut vec![0; n + PLACES])
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
        let nothing = Decoder::new(&[0; LORENZO_SYMBOLS]);
        nothing.decode(&[0; 8], 2, None, 5, &mut [0; 13]).expect_err("no codebook");
    }
}
