// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream → residuals: looks up 11 bits at a time and gets all whole codewords in them. Zeros stand in the buffer before;
//! a run only moves the place at which the next residual is written.
//!
//! A lookup tells the residuals of up to eight places and one more, at its last place. Only its last codeword may have bits
//! that follow: those of an escape are the lower ones of the last residual, those of a run move its place. Either are added
//! to the entry, shifted to the one number or to the other, so that all lookups do the same steps, and the processor has
//! nothing to foresee.
//!
//! What is looked up tells where to look next, and the processor waits for it. So a long stream is read in two places at
//! once: by one reader from the start, and by one that begins near the middle, not knowing where a codeword begins there.
//! That one falls into step after some codewords; which, it cannot know. So it passes over a few, and keeps a log of where
//! its next lookups began. It writes to a buffer of its own. The first reader reads on until it stands at a bit that is
//! logged. From there on the second one's residuals are what the first would read, and are copied behind its own. Where it
//! meets no such bit, or the second reader met anything that it is not sure of, the first reads to the end alone: what is
//! read, and what refused, depends on it alone.
//!
//! In turns: memory is read once for four lookups, 57 bits or more, while both readers are so far from their ends that
//! neither needs a check. The rest goes codeword by codeword.

use crate::constants::{CODEWORD_LIMIT, LORENZO_TILE};
use crate::error::{Damage, Result};
use crate::memory;
use crate::stage::codebook::{self, Lengths};
use crate::stage::symbols::{END, Meaning, unzigzag};

/// Patterns of the longest codeword.
const PATTERNS: usize = 1 << CODEWORD_LIMIT;
/// Places that one lookup tells the residuals of, besides the last.
const NEAR: usize = 8;
/// Places that the second reader may pass before it is in step.
const ASTRAY: usize = 1024;
/// Places that are written: a tile's, and those that a reader passed before.
const PLACES: usize = LORENZO_TILE + ASTRAY;
/// A buffer that the residuals of a tile are decoded into, so long that no lookup needs to ask how much is left.
pub(crate) type Buffer = [i32; PLACES + NEAR];
/// Look-ups by one reading of memory, which brings 57 bits or more.
const TIMES: usize = 4;
/// Most bits that a lookup may take.
const MOST: u8 = 57 / TIMES as u8;
/// Most bits that a turn may take: its last lookup may have to be replaced by a long escape.
const TURN: usize = (TIMES - 1) * MOST as usize + LONGEST;
/// Most bits of a codeword with those that follow.
const LONGEST: usize = CODEWORD_LIMIT as usize + 30;
/// Streams of fewer words are read by one reader.
const WORTH_TWO: usize = 96;
/// Look-ups that the second reader passes over, and those that it logs.
const PASSED: usize = 8;
const LOGGED: usize = 32;
/// Bits from where the second reader begins to where both are in the middle of what they have left.
const AHEAD: usize = 4 * (PASSED + LOGGED);
/// A codeword that begins before a logged bit ends so far before the stream does that it is not the last.
const _: () = assert!(16 * WORTH_TWO >= (PASSED + LOGGED - 1) * LONGEST - AHEAD + CODEWORD_LIMIT as usize + 32);

/// What 11 bits of a stream mean.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Entry {
    /// Residuals of the first places.
    residuals: [i8; NEAR],
    /// From the low end: 9 bits, how many bits are taken, [`Entry::NONE`] where [`Tables::one`] must take them; 7 bits, by
    /// how many what is taken is shifted before it is added to the whole; then, when it is added, 32 bits of the last
    /// residual in zigzag and 16 of how many places there are before it.
    rest: u64,
}

impl Entry {
    /// Nothing to shift by, but more than the lookups of a turn take otherwise.
    const NONE: u64 = 64;
    const SHIFT: u32 = 9;
    const LAST: u32 = 16;
    const BEFORE: u32 = 48;

    /// Of the first bits of `pattern`, so many are codewords, the last one of which means `m`; they have `places` in all.
    fn new(residuals: [i8; NEAR], pattern: usize, codewords: u8, m: Meaning, places: u16) -> Entry {
        let bits = codewords + m.run + m.escape;
        let to = match (m.run, m.escape) {
            (0, 0) => u32::from(codewords),
            (0, _) => Entry::LAST,
            _ => Entry::BEFORE,
        };
        let shift = to - u32::from(codewords);
        let low = u64::from(bits) | u64::from(shift) << Entry::SHIFT;
        let high = u64::from(m.z) << m.escape | u64::from(places - 1) << (Entry::BEFORE - Entry::LAST);
        // The codewords themselves are shifted and added too.
        let added = (pattern as u64 & ((1 << codewords) - 1)) << shift;
        let rest = (high << Entry::LAST).wrapping_sub((low + added) & (!0 << Entry::LAST)) | low;
        Entry { residuals, rest }
    }

    /// Places before the last residual, and that in zigzag, where `w` is next.
    #[inline(always)]
    fn last(&self, w: u64) -> (usize, u32) {
        let taken = w & ((1 << (self.rest % 64)) - 1);
        let sum = self.rest.wrapping_add(taken << (self.rest >> Entry::SHIFT & 63));
        ((sum >> Entry::BEFORE) as usize, (sum >> Entry::LAST) as u32)
    }
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
    /// Bits in all, with those that follow.
    bits: u8,
    meaning: Meaning,
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
            let meaning = Meaning::of(s);
            let bits = len + meaning.run + meaning.escape;
            for pattern in (usize::from(words[s])..PATTERNS).step_by(1 << len) {
                single[pattern] = Single { symbol: s as u8, len, bits, meaning };
            }
        }
        let several = memory::collect(PATTERNS, (0..PATTERNS).map(|pattern| several(&single, pattern)))?;
        Ok(Decoder { several, single })
    }

    /// Reads exactly `n` residuals, at most a tile's, of a stream of `words` · 4 bytes at the head of `bytes` to the head of
    /// the first buffer, where zeros stand; the second is working memory, zeros before and after.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        words: usize,
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
        let total = 32 * words;
        // All but the filling at the stream's end is codewords.
        let tables = Tables { several, single, total, sure: total - 31 };
        let mut r = Reader { bytes, bit: 0, out, place: 0, ended: false };
        let mut read = Ok(false);
        if words >= WORTH_TWO {
            let mut other = Reader { bytes, bit: total / 2 - AHEAD, out: aside, place: 0, ended: false };
            read = tables.two(&mut r, &mut other, n);
            other.out[..other.place.min(PLACES) + NEAR].fill(0);
        }
        if !read? {
            tables.finish(&mut r, n)?;
        }
        let left = total.wrapping_sub(r.bit);
        if left > 31 || r.peek() & ((1 << left) - 1) != 0 {
            return Err(tables.short(&r));
        }
        Ok(())
    }
}

#[cold]
fn too_many(place: usize, n: usize) -> Damage {
    format!("a stream of {place} or more residuals, {n} expected").into()
}

/// All whole codewords in a pattern, up to one with bits that follow or a residual that is far.
fn several(single: &[Single], pattern: usize) -> Entry {
    let mut residuals = [0; NEAR];
    let mut e = Entry { residuals, rest: Entry::NONE };
    let (mut places, mut taken) = (0, 0);
    loop {
        let Single { symbol, len, bits, meaning } = single[pattern >> taken];
        let codewords = taken + len;
        if usize::from(symbol) == END || u32::from(codewords) > CODEWORD_LIMIT || taken + bits > MOST {
            return e;
        }
        let Meaning { zeros, z, run, escape } = meaning;
        let place = places + zeros;
        places = place + u16::from(z != 0);
        taken += bits;
        e = Entry::new(residuals, pattern, codewords, meaning, places);
        if run + escape > 0 {
            return e;
        }
        if z != 0 {
            match residuals.get_mut(usize::from(place)) {
                Some(r) => *r = unzigzag(z.into()) as i8,
                None => return e,
            }
        }
    }
}

/// Where reading stands.
struct Reader<'a> {
    bytes: &'a [u8],
    bit: usize,
    out: &'a mut Buffer,
    place: usize,
    /// Whether zeros follow up to the end of the tile.
    ended: bool,
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

    /// Takes what the lowest bits of `w` mean, but leaves it to the caller to go on. One place for an entry without bits.
    #[inline(always)]
    fn take(&mut self, e: &Entry, w: u64) {
        let (before, z) = e.last(w);
        let last = self.place + before;
        // All are read before any is written, which is one instruction each.
        let residuals: [i32; NEAR] = std::array::from_fn(|k| e.residuals[k].into());
        // Only streams with too many residuals pass the buffer's end, or readers out of step.
        if self.place <= PLACES {
            self.out[self.place..self.place + NEAR].copy_from_slice(&residuals);
        }
        if let Some(o) = self.out.get_mut(last) {
            *o = unzigzag(z);
        }
        self.place = last + 1;
    }
}

/// The tables of a [`Decoder`], with lengths that the compiler knows.
struct Tables<'a> {
    several: &'a [Entry; PATTERNS],
    single: &'a [Single; PATTERNS],
    /// Bits of the stream, and those before which whatever begins is a codeword.
    total: usize,
    sure: usize,
}

impl Tables<'_> {
    /// Reads in two places, `other` being set to where it begins, until all is read, which is true, or only `r` can go on.
    #[inline(always)]
    fn two<'a>(&self, r: &mut Reader<'a>, other: &mut Reader<'a>, n: usize) -> Result<bool, Damage> {
        let mut log = [(0, 0); LOGGED];
        let Ok(count) = self.scout(other, &mut log) else {
            return Ok(false);
        };
        let log = &log[..count];
        let Some(&(start, _)) = log.first() else {
            return Ok(false);
        };
        match self.advance([r, other], [start, self.sure]) {
            Ok(()) => {}
            Err((0, why)) => return Err(why),
            Err(_) => return Ok(false),
        }
        self.advance([r], [start]).map_err(|(_, why)| why)?;
        let Some(place) = self.meet(r, log)? else {
            return Ok(false);
        };
        let Some(left) = n.checked_sub(r.place) else {
            return Err(too_many(r.place, n));
        };
        if self.finish(other, place + left).is_err() {
            return Ok(false);
        }
        r.out[n - left..n].copy_from_slice(&other.out[place..place + left]);
        (r.bit, r.place) = (other.bit, n);
        Ok(true)
    }

    /// Falls into step; logs bits at which lookups begin, and places. Returns how many. Not inlined, as it is little of the
    /// work, and of code that is there for each kind of processor.
    #[inline(never)]
    fn scout(&self, r: &mut Reader<'_>, log: &mut [(usize, usize); LOGGED]) -> Result<usize, Damage> {
        for _ in 0..PASSED {
            let pattern = r.peek() as usize % PATTERNS;
            let bits = self.several[pattern].rest % (1 << Entry::SHIFT);
            r.bit += if bits < Entry::NONE { bits as usize } else { self.single[pattern].bits.into() };
        }
        let mut count = 0;
        for _ in 0..LOGGED {
            if r.place > ASTRAY {
                break;
            }
            log[count] = (r.bit, r.place);
            count += 1;
            self.next(r, usize::MAX, usize::MAX)?;
            if std::mem::take(&mut r.ended) {
                // In step there is no such codeword before the end.
                count = 0;
            }
        }
        Ok(count)
    }

    /// Reads on until `r` is at a bit of the log; returns the place there. As [`Tables::scout`].
    #[inline(never)]
    fn meet(&self, r: &mut Reader<'_>, log: &[(usize, usize)]) -> Result<Option<usize>, Damage> {
        for &(bit, place) in log {
            while r.bit < bit {
                self.next(r, bit, usize::MAX)?;
                if r.ended {
                    return Err(self.short(r));
                }
            }
            if r.bit == bit {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Reads on in turns until one of the readers is near its end. An error says which of them.
    #[inline(always)]
    fn advance<const N: usize>(&self, readers: [&mut Reader<'_>; N], ends: [usize; N]) -> Result<(), (usize, Damage)> {
        while (0..N).all(|k| readers[k].bit + TURN <= ends[k]) {
            let mut w: [u64; N] = std::array::from_fn(|k| readers[k].peek());
            let mut sum = [0u64; N];
            for _ in 0..TIMES {
                for k in 0..N {
                    let e = &self.several[w[k] as usize % PATTERNS];
                    readers[k].take(e, w[k]);
                    sum[k] = sum[k].wrapping_add(e.rest);
                    w[k] >>= e.rest % 64;
                }
            }
            for k in 0..N {
                let r = &mut *readers[k];
                let bits = (sum[k] % (1 << Entry::SHIFT)) as usize;
                r.bit += bits % 64;
                if bits >= 64 {
                    r.place -= bits / 64;
                    self.one(r).map_err(|why| (k, why))?;
                    if r.ended {
                        return Err((k, self.short(r)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads `n` residuals in all.
    #[inline(always)]
    fn finish(&self, r: &mut Reader<'_>, n: usize) -> Result<(), Damage> {
        self.advance([&mut *r], [self.sure]).map_err(|(_, why)| why)?;
        while r.place < n && !r.ended {
            self.next(r, usize::MAX, n)?;
        }
        // Zeros to the end are one or more.
        if r.place + usize::from(r.ended) > n {
            return Err(too_many(r.place, n));
        }
        Ok(())
    }

    /// The codewords end where the stream does not.
    #[cold]
    fn short(&self, r: &Reader<'_>) -> Damage {
        format!("a stream of {} bits whose codewords end at bit {}", self.total, r.bit).into()
    }

    /// Takes one lookup where it stays before bit `end` and place `n`, else one codeword.
    #[inline(always)]
    fn next(&self, r: &mut Reader<'_>, end: usize, n: usize) -> Result<(), Damage> {
        let w = r.peek();
        let e = &self.several[w as usize % PATTERNS];
        let bits = (e.rest % (1 << Entry::SHIFT)) as usize;
        if bits >= 64 || r.bit + bits > end || r.place + e.last(w).0 >= n {
            return self.one(r);
        }
        r.take(e, w);
        r.bit += bits;
        Ok(())
    }

    /// Takes one codeword.
    #[inline(always)]
    fn one(&self, r: &mut Reader<'_>) -> Result<(), Damage> {
        let w = r.peek();
        let Single { symbol, len, bits, meaning: Meaning { zeros, run, z, escape } } =
            self.single[w as usize % PATTERNS];
        let lower = |bits: u8| w >> len & ((1 << bits) - 1);
        r.bit += usize::from(bits);
        r.place += usize::from(zeros) + lower(run) as usize;
        r.ended = usize::from(symbol) == END;
        if z != 0 {
            match r.out.get_mut(r.place) {
                Some(o) => *o = unzigzag((u64::from(z) << escape | lower(escape)) as u32),
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
    use crate::constants::{LORENZO_RUNS, LORENZO_SYMBOLS};
    use crate::stage::symbols::{DIRECT, ESCAPE, JOINT, RUN, class, run_bits, zigzag};

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Runs of zeros on either side of every class's ends.
    const LENGTHS: [usize; 36] = [
        0, 1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 18, 23, 24, 25, 31, 32, 33, 47, 48, 63, 64, 95, 96, 127, 128, 255, 256,
        257, 383, 384, 1023, 1024, 3072, 6143, 6144,
    ];

    fn residuals(kind: usize, n: usize) -> Vec<i32> {
        let mut state = 99u32 + kind as u32;
        let mut random = Random(kind as u64);
        let mut run = 0;
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
                    5 if i % 300 == 0 => i32::MIN,
                    5 => 0,
                    // Runs of every class, with -1 or 1 or something else behind.
                    6..20 if run > 0 => {
                        run -= 1;
                        0
                    }
                    6..20 => {
                        run = LENGTHS[random.below(LENGTHS.len() - kind)];
                        [-1, 1, -1, 1, 2, -16, 15, 99999][random.below(kind % 8 + 1)]
                    }
                    _ => state as i32,
                }
            })
            .collect()
    }
    const KINDS: usize = 21;

    struct Coded {
        lengths: Lengths,
        stream: Vec<u8>,
        bits: usize,
    }

    /// Counts of the symbols that a writer takes for residuals.
    fn counts(r: &[i32]) -> [u64; LORENZO_SYMBOLS] {
        let mut counts = [0; LORENZO_SYMBOLS];
        let mut zeros = 0;
        for z in r.iter().map(|&r| zigzag(r)) {
            match (z, zeros) {
                (0, _) => zeros += 1,
                (1 | 2, 1..) => counts[JOINT + 2 * class(zeros).0 + z as usize - 1] += 1,
                (_, _) => {
                    if zeros > 0 {
                        counts[RUN + class(zeros).0] += 1;
                    }
                    let e = z.ilog2() as usize;
                    counts[if z < 32 {
                        DIRECT - 1 + z as usize
                    } else {
                        ESCAPE + 2 * (e - 5) + (z >> (e - 1) & 1) as usize
                    }] += 1;
                }
            }
            if z != 0 {
                zeros = 0;
            }
        }
        counts[END] += u64::from(zeros > 0);
        counts
    }

    /// With the codebook that is best, or with another one.
    fn encode(r: &[i32], lengths: Option<Lengths>) -> Coded {
        let (mut bytes, mut escapes) = (vec![0; r.len()], Vec::new());
        symbols(r, &mut bytes, &mut escapes);
        let mut h = Histogram::new();
        h.add(&bytes);
        assert_eq!(h.counts(), counts(r));
        let lengths = lengths.unwrap_or_else(|| codebook::choose(&h.counts()));
        let mut stream = vec![0xaa; stream_capacity(r.len())];
        let bits = Encoder::new(&lengths).encode(&bytes, &escapes, &mut stream);
        stream.truncate(bits.div_ceil(32) * 4);
        Coded { lengths, stream, bits }
    }

    /// A codebook of all symbols with those that `of` picks shorter.
    fn flat(of: impl Fn(usize) -> bool) -> Lengths {
        let mut lengths = [8; LORENZO_SYMBOLS];
        // 68 symbols of 7 bits and 120 of 8 fill the tree.
        let picked = (0..LORENZO_SYMBOLS).filter(|&s| of(s)).chain((0..LORENZO_SYMBOLS).filter(|&s| !of(s)));
        picked.take(68).for_each(|s| lengths[s] = 7);
        codebook::check(&lengths).unwrap();
        lengths
    }

    /// FORMAT.md §4.2, bit by bit: the residuals, and where codewords begin and end.
    fn by_the_book(lengths: &Lengths, stream: &[u8], n: usize) -> Option<(Vec<i32>, Vec<usize>)> {
        let words = codebook::codewords(lengths);
        let mut symbols = vec![None; 2 << CODEWORD_LIMIT];
        for s in (0..LORENZO_SYMBOLS).filter(|&s| lengths[s] > 0) {
            symbols[1 << lengths[s] | usize::from(words[s])] = Some(s);
        }
        let mut at = 0;
        let mut bits = |count: usize| -> Option<usize> {
            let mut value = 0;
            for k in 0..count {
                value |= usize::from(stream.get((at + k) / 8)? >> ((at + k) % 8) & 1) << k;
            }
            at += count;
            Some(value)
        };
        let (mut out, mut starts) = (Vec::new(), vec![0]);
        while out.len() < n {
            let (mut code, mut len) = (0, 0);
            let symbol = loop {
                code |= bits(1)? << len;
                len += 1;
                if let Some(s) = symbols[1 << len | code] {
                    break s;
                }
            };
            let mut zeros = |class: usize, bits: &mut dyn FnMut(usize) -> Option<usize>| {
                let k = 4 + class.saturating_sub(16) / 2;
                let m = if class < 16 { class + 1 } else { (1 << k) + class % 2 * (1 << (k - 1)) + bits(k - 1)? };
                out.resize(out.len() + m, 0);
                (out.len() <= n).then_some(())
            };
            match symbol {
                0 => out.resize(n, 0),
                1..35 => zeros(symbol - 1, &mut bits)?,
                35..66 => out.push(unzigzag(symbol as u32 - 34)),
                66..120 => {
                    let (k, e) = (symbol - 66, 5 + (symbol - 66) / 2);
                    out.push(unzigzag((((2 + k % 2) << (e - 1)) + bits(e - 1)?) as u32));
                }
                _ => {
                    zeros((symbol - 120) / 2, &mut bits)?;
                    out.push(if symbol % 2 == 0 { -1 } else { 1 });
                }
            }
            starts.push(starts.last()? + len + run_and_escape(symbol));
        }
        let left = 8 * stream.len() - starts.last()?;
        (out.len() == n && left < 32 && bits(left)? == 0).then_some((out, starts))
    }

    fn run_and_escape(symbol: usize) -> usize {
        let m = Meaning::of(symbol);
        usize::from(m.run + m.escape)
    }

    fn decode(c: &Coded, n: usize) -> Option<Vec<i32>> {
        let mut out = buffers().unwrap();
        Decoder::new(&c.lengths).unwrap().decode(&c.stream, c.stream.len() / 4, n, &mut out).ok()?;
        assert!(out[1].iter().all(|&r| r == 0));
        Some(out[0][..n].to_vec())
    }

    #[test]
    fn streams_come_back() {
        let joint = |s| s >= JOINT;
        for kind in 0..KINDS {
            for n in [1, 2, 7, 8, 9, 63, 64, 65, 511, 1000, 6200, 8191, 8192] {
                let r = residuals(kind, n);
                for lengths in [None, Some(flat(joint)), Some(flat(|s| !joint(s)))] {
                    let mut c = encode(&r, lengths);
                    let (expected, starts) = by_the_book(&c.lengths, &c.stream, n).unwrap();
                    assert!(expected == r && starts.last() == Some(&c.bits), "kind {kind}, {n}");
                    assert!(decode(&c, n).as_ref() == Some(&r), "kind {kind}, {n}");
                    // What stands behind a stream does not matter.
                    let words = c.stream.len() / 4;
                    c.stream.extend([0xff; 9]);
                    let mut out = buffers().unwrap();
                    Decoder::new(&c.lengths).unwrap().decode(&c.stream, words, n, &mut out).unwrap();
                    assert!(out[0][..n] == r, "kind {kind}, {n}");
                }
            }
        }
    }

    /// Whether the second reader's part was taken.
    fn met(c: &Coded, n: usize) -> bool {
        let d = Decoder::new(&c.lengths).unwrap();
        let (several, single) = (d.several.as_slice().try_into().unwrap(), d.single.as_slice().try_into().unwrap());
        let total = 8 * c.stream.len();
        let tables = Tables { several, single, total, sure: total - 31 };
        let mut buffers = buffers().unwrap();
        let mut at = [0, total / 2 - AHEAD].into_iter();
        let [mut r, mut other] = buffers.each_mut().map(|out| {
            let bit = at.next().unwrap();
            Reader { bytes: &c.stream, bit, out, place: 0, ended: false }
        });
        tables.two(&mut r, &mut other, n).unwrap()
    }

    #[test]
    fn two_readers_meet_where_they_can() {
        for kind in [2, 3, 4, 8, 15] {
            let r = residuals(kind, LORENZO_TILE);
            let c = encode(&r, None);
            assert!(met(&c, r.len()) && decode(&c, r.len()).as_ref() == Some(&r), "kind {kind}");
        }
        // Where all codewords have three bits, a reader that is out of step stays so; among what it sees then are zeros to
        // the end and long runs.
        for other in [DIRECT + 7, END, RUN + 33, JOINT + 66, JOINT - 1] {
            let mut lengths = [0; LORENZO_SYMBOLS];
            lengths[other] = 3;
            lengths[DIRECT..DIRECT + 7].fill(3);
            codebook::check(&lengths).unwrap();
            let mut random = Random(other as u64);
            let mut times = [0; 2];
            for n in 7900..8000 {
                let r: Vec<i32> = (0..n).map(|_| unzigzag(1 + random.below(7) as u32)).collect();
                let c = encode(&r, Some(lengths));
                assert!(decode(&c, n).as_ref() == Some(&r), "{other}, {n}");
                let in_step = (4 * c.stream.len() - AHEAD).is_multiple_of(3);
                assert!(met(&c, n) == in_step || matches!(other, 34.. if other != DIRECT + 7), "{other}, {n}");
                times[usize::from(in_step)] += 1;
                if other == END && in_step && times[1] < 3 {
                    // Zeros to the end, which are nobody's end: whoever meets them, the stream is refused.
                    for k in n / 2 - 100..n / 2 + 100 {
                        let mut stream = c.stream.clone();
                        (3 * k..3 * k + 3).for_each(|bit| stream[bit / 8] &= !(1 << (bit % 8)));
                        let c = Coded { stream, ..c };
                        assert!(decode(&c, n).is_none() && decode(&c, n - 1).is_none(), "{k}");
                    }
                }
            }
            assert!(times[0] > 20 && times[1] > 20);
        }
    }

    #[test]
    fn every_run_comes_back_before_every_residual() {
        for zeros in (0..300).chain(LENGTHS).chain([767, 768, 1500, 2047, 2048, 4095, 4096, 5000, 8190]) {
            for behind in [-1, 1, 2, -40_000] {
                for before in [0, 1, 9] {
                    let mut r = vec![-1; before];
                    r.resize(before + zeros, 0);
                    r.push(behind);
                    r.truncate(LORENZO_TILE);
                    for lengths in [None, Some(flat(|s| s >= JOINT))] {
                        let c = encode(&r, lengths);
                        assert!(decode(&c, r.len()).as_ref() == Some(&r), "{before}, {zeros}, {behind}");
                    }
                }
            }
        }
    }

    /// A codebook of random symbols and lengths.
    fn any_codebook(random: &mut Random) -> Lengths {
        let mut lengths = [0; LORENZO_SYMBOLS];
        let mut pick = |random: &mut Random, len: u8| loop {
            let s = random.below(LORENZO_SYMBOLS);
            if lengths[s] == 0 {
                lengths[s] = len;
                return s;
            }
        };
        let mut leaves = vec![pick(random, 1), pick(random, 1)];
        let mut splits = Vec::new();
        for _ in 0..random.below(180) {
            splits.push(random.below(leaves.len()));
            let new = pick(random, 1);
            leaves.push(new);
        }
        // Leaf k was added by splitting another one.
        let mut depth = vec![1u8; 2];
        for &k in &splits {
            let k = if depth[k] < CODEWORD_LIMIT as u8 { k } else { depth.iter().position(|&d| d < 9).unwrap() };
            depth[k] += 1;
            depth.push(depth[k]);
        }
        leaves.iter().zip(depth).for_each(|(&s, d)| lengths[s] = d);
        codebook::check(&lengths).unwrap();
        lengths
    }

    #[test]
    fn any_symbols_under_any_codebook_are_read_as_the_book_says() {
        let mut random = Random(7);
        let (mut right, mut long) = (0, 0);
        for round in 0..6000 {
            let lengths = any_codebook(&mut random);
            let words = codebook::codewords(&lengths);
            let used: Vec<usize> = (0..LORENZO_SYMBOLS).filter(|&s| lengths[s] > 0).collect();
            let n = 1 + random.below(LORENZO_TILE);
            // Symbols that fit; among them runs that are cut, and zeros to the end at last.
            let (mut stream, mut at, mut place, mut starts) = (Vec::new(), 0, 0, vec![0]);
            let mut put = |value: usize, len: usize| {
                stream.resize((at + len).div_ceil(32) * 4, 0u8);
                (0..len).for_each(|k| stream[(at + k) / 8] |= ((value >> k & 1) as u8) << ((at + k) % 8));
                at += len;
                at
            };
            for _ in 0..n {
                let s = used[random.below(used.len())];
                let m = Meaning::of(s);
                let following = random.below(1 << (m.run + m.escape));
                let extra = if m.run > 0 { following } else { 0 };
                let places = usize::from(m.zeros) + extra + usize::from(m.z != 0);
                // In every other stream few runs are long.
                let rare =
                    s == END && random.below(used.len()) > 0 || places > 9 && round % 2 > 0 && random.below(400) > 0;
                if rare || place + places > n || place == n {
                    continue;
                }
                put(words[s].into(), lengths[s].into());
                starts.push(put(following, run_and_escape(s)));
                place = if s == END { n } else { place + places };
            }
            let mut c = Coded { lengths, stream, bits: at };
            if place == 0 {
                continue;
            }
            long += usize::from(c.stream.len() >= 4 * WORTH_TWO);
            let expected = by_the_book(&lengths, &c.stream, place).unwrap();
            assert_eq!(expected.1, starts);
            assert!(decode(&c, place).as_ref() == Some(&expected.0), "round {round}");
            // A tile of more or fewer values is another one.
            for other in [place - 1, place + 1].into_iter().filter(|n| (1..=LORENZO_TILE).contains(n)) {
                let expected = by_the_book(&lengths, &c.stream, other).map(|e| e.0);
                assert!(decode(&c, other) == expected, "round {round}");
            }
            // Any bits, too: refused or read alike.
            let from = random.below(c.stream.len());
            let short = random.below(2) == 0;
            c.stream[from..]
                .iter_mut()
                .for_each(|b| *b = if short { *b ^ (random.below(40) == 0) as u8 } else { random.below(256) as u8 });
            for n in [place, 1 + random.below(LORENZO_TILE)] {
                let expected = by_the_book(&lengths, &c.stream, n).map(|e| e.0);
                right += usize::from(expected.is_some());
                assert!(decode(&c, n) == expected, "round {round}");
            }
        }
        assert!(right > 100, "{right} damaged streams that are right");
        assert!(long > 1000, "{long} streams for two readers");
    }

    #[test]
    fn zeros_to_the_end_end_a_stream() {
        let mut lengths = [0; LORENZO_SYMBOLS];
        (lengths[END], lengths[RUN + 33], lengths[JOINT + 66]) = (1, 2, 2);
        let decoder = Decoder::new(&lengths).unwrap();
        let run = |bits: u64, words: usize, n: usize| {
            let stream = [&bits.to_le_bytes()[..], &[0; 256]].concat();
            decoder.decode(&stream, words, n, &mut buffers().unwrap()).map_err(|e| e.to_string())
        };
        run(0, 1, 1).unwrap();
        run(0, 1, LORENZO_TILE).unwrap();
        for (bits, words, n) in [(0, 2, 9), (2, 1, 9), (0, 60, 9), (1 << 31, 1, 9)] {
            assert!(run(bits, words, n).unwrap_err().contains("codewords end at bit 1"), "{bits}, {words}");
        }
        // 6144 zeros and more: to the end of the tile, beyond it, and with a residual beyond it.
        run(0b01, 1, 6144).unwrap();
        run(0b01, 1, 6145).unwrap();
        run(0b11, 1, 6145).unwrap();
        for (bits, n) in [(0b01, 6143), (0b0101, 6144), (0b11, 6144), (0b11, 6143), (0x1FFF, 8191)] {
            assert!(run(bits, 1, n).unwrap_err().contains("or more residuals"), "{bits}, {n}");
        }
    }

    #[test]
    fn damaged_streams_are_refused_or_harmless() {
        for kind in [1, 2, 4, 8, 15] {
            let n = 2900;
            let r = residuals(kind, n);
            let c = encode(&r, None);
            let decoder = Decoder::new(&c.lengths).unwrap();
            let words = c.stream.len() / 4;
            let run = |stream: &[u8], words: usize| decoder.decode(stream, words, n, &mut buffers().unwrap());
            for cut in 1..words {
                run(&c.stream[..4 * cut], cut).expect_err("a truncated stream");
            }
            let mut longer = c.stream.clone();
            longer.extend([0; 4]);
            run(&longer, words + 1).expect_err("a longer stream");
            for at in 0..c.stream.len() {
                let mut damaged = c.stream.clone();
                damaged[at] ^= 0x41;
                let _ = run(&damaged, words);
            }
            if !c.bits.is_multiple_of(32) {
                let mut damaged = c.stream.clone();
                *damaged.last_mut().unwrap() |= 0x80;
                run(&damaged, words).expect_err("a bit behind the end");
            }
        }
        let nothing = Decoder::new(&[0; LORENZO_SYMBOLS]).unwrap();
        nothing.decode(&[0; 8], 2, 5, &mut buffers().unwrap()).expect_err("no codebook");
        assert_eq!(run_bits(LORENZO_RUNS - 1), 11);
    }
}
