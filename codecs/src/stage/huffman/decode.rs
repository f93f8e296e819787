// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream → residuals: looks up 11 bits at a time and gets all whole codewords in them. Zeros stand in the buffer
//! before; a run only moves the place at which the next residual is written.
//!
//! A lookup tells the residuals of up to eight places and one more, at its last place. Only its last codeword may have
//! bits that follow: those of an escape are the lower ones of the last residual, those of a run move its place. Either
//! are added to the entry, shifted to the one number or to the other, so that all lookups do the same steps, and the
//! processor has nothing to foresee.
//!
//! What is looked up tells where to look next, and the processor waits for it. So a long stream is read in two places
//! at once: by one reader from the start, and by one that begins near the middle, not knowing where a codeword begins
//! there. That one falls into step after some codewords; which, it cannot know. So it passes over a few, and keeps a
//! log of where its next lookups began. It writes to a buffer of its own. The first reader reads on until it stands at
//! a bit that is logged. From there on the second one's residuals are what the first would read, and are copied behind
//! its own. Where it meets no such bit, or the second reader met anything that it is not sure of, the first reads to
//! the end alone: what is read, and what refused, depends on it alone.
//!
//! In turns: memory is read once for four lookups, 57 bits or more, while both readers are so far from their ends that
//! neither needs a check; where many codewords are long with the bits that follow, for two lookups of twice the length.
//! The rest goes codeword by codeword.

use crate::constants::{CODEWORD_LIMIT, LORENZO_SYMBOLS, LORENZO_TILE};
use crate::error::{Damage, Result};
use crate::memory;
use crate::stage::codebook::{self, Lengths};
use crate::stage::symbols::{END, Meaning, unzigzag};

/// Patterns of the longest codeword.
const PATTERNS: usize = 1 << CODEWORD_LIMIT;
/// Places that one lookup tells the residuals of, besides the last.
const LOOKUP_PLACES: usize = 8;
/// Places that the second reader may pass before it is in step.
const ASTRAY: usize = 1024;
/// Places that are written: a tile's, and those that a reader passed before.
const PLACES: usize = LORENZO_TILE + ASTRAY;
/// A buffer that the residuals of a tile are decoded into, so long that no lookup needs to ask how much is left.
pub(crate) type Buffer = [i32; PLACES + LOOKUP_PLACES];
/// Lookups by one reading of memory, which brings 57 bits or more: few where one codeword in [`CODEWORDS_PER_LONG`]
/// takes more bits than one of many may.
const MANY_LOOKUPS: usize = 4;
const FEW_LOOKUPS: usize = 2;
const CODEWORDS_PER_LONG: usize = 16;
/// Most bits of a codeword with those that follow.
const LONGEST: usize = CODEWORD_LIMIT as usize + 30;
/// Streams of fewer words are read by one reader.
const WORTH_TWO: usize = 96;
/// Look-ups that the second reader passes over, and those that it logs.
const PASSED: usize = 8;
const LOGGED: usize = 32;
/// Bits from where the second reader begins to where both are in the middle of what they have left.
const MIDDLE_BITS: usize = 4 * (PASSED + LOGGED);
/// A codeword that begins before a logged bit ends so far before the stream does that it is not the last.
const _: () = assert!(16 * WORTH_TWO >= (PASSED + LOGGED - 1) * LONGEST - MIDDLE_BITS + CODEWORD_LIMIT as usize + 32);

/// What 11 bits of a stream mean.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Entry {
    /// Residuals of the first places.
    residuals: [i8; LOOKUP_PLACES],
    /// From the low end: 9 bits, how many bits are taken, [`Entry::NONE`] where [`Tables::one`] must take them; 7 bits,
    /// by how many what is taken is shifted before it is added to the whole; then, when it is added, 32 bits of the
    /// last residual in zigzag and 16 of how many places there are before it.
    rest: u64,
}

impl Entry {
    /// Nothing to shift by, but more than the lookups of a turn take otherwise.
    const NONE: u64 = 64;
    const SHIFT: u32 = 9;
    const LAST: u32 = 16;
    const BEFORE: u32 = 48;

    /// The first `codewords` bits of `pattern` are codewords, the last of which means `m`; together they stand for
    /// `places` residuals.
    fn new(residuals: [i8; LOOKUP_PLACES], pattern: usize, codewords: u8, m: Meaning, places: u16) -> Entry {
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
    /// Lookups by one reading of memory: [`MANY_LOOKUPS`] or [`FEW_LOOKUPS`].
    times: usize,
}

impl Decoder {
    /// From the lengths of a whole codebook; from no codeword at all, no tables.
    pub(crate) fn new(lengths: &Lengths) -> Result<Self> {
        if lengths.iter().all(|&l| l == 0) {
            return Ok(Decoder { several: Vec::new(), single: Vec::new(), times: MANY_LOOKUPS });
        }
        let words = codebook::codewords(lengths);
        let codeword = |s: usize| {
            let (len, meaning) = (lengths[s], Meaning::of_symbol(s));
            (usize::from(words[s]), Single { symbol: s as u8, len, bits: len + meaning.run + meaning.escape, meaning })
        };
        let mut codewords =
            memory::collect(LORENZO_SYMBOLS, (0..LORENZO_SYMBOLS).filter(|&s| lengths[s] > 0).map(codeword))?;
        codewords.sort_unstable_by_key(|(_, single)| single.len);
        let mut single = memory::collect(PATTERNS, std::iter::repeat(Single::default()))?;
        let mut long = 0;
        for &(word, s) in &codewords {
            (word..PATTERNS).step_by(1 << s.len).for_each(|pattern| single[pattern] = s);
            long += if s.bits > most(MANY_LOOKUPS) { PATTERNS >> s.len } else { 0 };
        }
        let times = if long >= PATTERNS / CODEWORDS_PER_LONG { FEW_LOOKUPS } else { MANY_LOOKUPS };
        let none = Entry { residuals: [0; LOOKUP_PLACES], rest: Entry::NONE };
        let mut several = memory::collect(PATTERNS, std::iter::repeat(none))?;
        extend(&mut several, &codewords, most(times), none.residuals, [0; 3]);
        Ok(Decoder { several, single, times })
    }

    /// Reads exactly `n` residuals, at most a tile's, of a stream of `words` · 4 bytes at the head of `bytes` to the
    /// head of the first buffer, where zeros stand; the second is working memory, zeros before and after.
    #[inline(always)]
    pub(crate) fn decode(&self, bytes: &[u8], words: usize, n: usize, out: &mut [Buffer; 2]) -> Result<(), Damage> {
        match self.times {
            FEW_LOOKUPS => self.decode_by::<FEW_LOOKUPS>(bytes, words, n, out),
            _ => self.decode_by::<MANY_LOOKUPS>(bytes, words, n, out),
        }
    }

    #[inline(always)]
    fn decode_by<const TIMES: usize>(
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
        let tables = Tables::<TIMES> { several, single, total, sure: total - 31 };
        let mut r = Reader { bytes, bit: 0, out, place: 0, ended: false };
        let mut read = Ok(false);
        if words >= WORTH_TWO {
            let mut other = Reader { bytes, bit: total / 2 - MIDDLE_BITS, out: aside, place: 0, ended: false };
            read = tables.two(&mut r, &mut other, n);
            other.out[..other.place.min(PLACES) + LOOKUP_PLACES].fill(0);
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

/// Most bits that each of `times` lookups may take.
const fn most(times: usize) -> u8 {
    57 / times as u8
}

/// Sets the entries of the patterns that begin with the `taken` bits of `pattern`, which stand for these residuals of
/// `places` places, and go on with one of the codewords, the shortest first: of all whole codewords, of `most` bits
/// together, up to one with bits that follow or a residual that is far. What patterns have in common is found once.
fn extend(
    entries: &mut [Entry],
    codewords: &[(usize, Single)],
    most: u8,
    residuals: [i8; LOOKUP_PLACES],
    [pattern, taken, places]: [usize; 3],
) {
    for &(word, Single { symbol, len, bits, meaning }) in codewords {
        let end = taken + usize::from(len);
        if end > CODEWORD_LIMIT as usize {
            return;
        }
        if usize::from(symbol) == END || taken + usize::from(bits) > most.into() {
            continue;
        }
        let pattern = pattern | word << taken;
        let place = places + usize::from(meaning.zeros);
        let places = place + usize::from(meaning.z != 0);
        let e = Entry::new(residuals, pattern, end as u8, meaning, places as u16);
        (pattern..PATTERNS).step_by(1 << end).for_each(|pattern| entries[pattern] = e);
        let mut residuals = residuals;
        if meaning.z != 0 {
            match residuals.get_mut(place) {
                Some(r) => *r = unzigzag(meaning.z.into()) as i8,
                None => continue,
            }
        }
        if meaning.run + meaning.escape == 0 {
            extend(entries, codewords, most, residuals, [pattern, end, places]);
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

    /// Takes what the lowest bits of `w` mean, but leaves it to the caller to go on. One place for an entry without
    /// bits.
    #[inline(always)]
    fn put_entry(&mut self, e: &Entry, w: u64) {
        let (before, z) = e.last(w);
        let last = self.place + before;
        // All are read before any is written, which is one instruction each.
        let residuals: [i32; LOOKUP_PLACES] = std::array::from_fn(|k| e.residuals[k].into());
        // Only streams with too many residuals pass the buffer's end, or readers out of step.
        if self.place <= PLACES {
            self.out[self.place..self.place + LOOKUP_PLACES].copy_from_slice(&residuals);
        }
        if let Some(o) = self.out.get_mut(last) {
            *o = unzigzag(z);
        }
        self.place = last + 1;
    }
}

/// The tables of a [`Decoder`], with lengths that the compiler knows.
struct Tables<'a, const TIMES: usize> {
    several: &'a [Entry; PATTERNS],
    single: &'a [Single; PATTERNS],
    /// Bits of the stream, and those before which whatever begins is a codeword.
    total: usize,
    sure: usize,
}

impl<const TIMES: usize> Tables<'_, TIMES> {
    /// Most bits that a turn may take: its last lookup may have to be replaced by a long escape.
    const TURN: usize = (TIMES - 1) * most(TIMES) as usize + LONGEST;

    /// Reads in two places, `other` being set to where it begins, until all is read, which is true, or only `r` can go
    /// on.
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

    /// Falls into step; logs bits at which lookups begin, and places. Returns how many. Not inlined, as it is little of
    /// the work, and of code that is there for each kind of processor.
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
        while (0..N).all(|k| readers[k].bit + Self::TURN <= ends[k]) {
            let mut w: [u64; N] = std::array::from_fn(|k| readers[k].peek());
            let mut sum = [0u64; N];
            for _ in 0..TIMES {
                for k in 0..N {
                    let e = &self.several[w[k] as usize % PATTERNS];
                    readers[k].put_entry(e, w[k]);
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
        r.put_entry(e, w);
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
mod tests;
