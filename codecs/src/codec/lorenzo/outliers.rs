// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tile's outliers: where they are and what they are, FORMAT.md §3.4 and §8.
//!
//! ```text
//! records     (first place, how many) … (bits) …        neighbours with the same bits are one record
//! mask        bits, (zeros, ones) (zeros, ones) …       all have the same bits: those of missing data
//! ```
//!
//! Land under an ocean's values is the same from level to level and from time to time. So a mask may hold the
//! differences of its bits along the tile's slowest axis: only where land begins and where it ends is something left.

use crate::constants::LORENZO_TILE;
use crate::error::{Damage, Result};
use crate::memory;
use crate::scalar::{Bits, Scalar};

/// Bits of a tile's first word: a mask, and one of differences. The others count records, or a mask's runs.
const MASK: u32 = 1 << 31;
const DIFFERENCES: u32 = 1 << 30;

/// The most that a run says of either kind.
const RUN_LIMIT: usize = 255;

/// How far apart neighbours along the slowest axis are, z, or y in a tile of one plane; `None` in a tile of one row.
fn step([a, b, c]: [usize; 3]) -> Option<usize> {
    match (a, b) {
        (1, 1) => None,
        (1, _) => Some(c),
        _ => Some(b * c),
    }
}

/// A bit for each value of a tile.
struct Places {
    words: [u64; LORENZO_TILE / 64],
    n: usize,
}

impl Places {
    /// Those where `regular` is 0.
    fn of_marks(regular: &[u8]) -> Self {
        let mut words = [0; LORENZO_TILE / 64];
        for (word, part) in words.iter_mut().zip(regular.chunks(64)) {
            for (k, eight) in part.chunks(8).enumerate() {
                let mut bytes = [1; 8];
                bytes[..eight.len()].copy_from_slice(eight);
                // Byte k of ones and zeros comes to bit 56 + k.
                let bits =
                    (!u64::from_le_bytes(bytes) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                *word |= bits << (8 * k);
            }
        }
        Places { words, n: regular.len() }
    }

    /// Those that are unlike the one `step` before.
    fn differences(&self, step: usize) -> Self {
        let (whole, rest) = (step / 64, step % 64);
        let before = |k: usize| k.checked_sub(whole).map_or(0, |k| self.words[k]);
        let mut words = self.words;
        for (k, word) in words.iter_mut().enumerate() {
            let carried = if rest > 0 && k > 0 { before(k - 1) >> (64 - rest) } else { 0 };
            *word ^= before(k) << rest | carried;
        }
        if !self.n.is_multiple_of(64) {
            words[self.n / 64] &= (1 << (self.n % 64)) - 1;
        }
        // What was moved behind the last value.
        words[self.n.div_ceil(64)..].fill(0);
        Places { words, n: self.n }
    }

    /// The first place from `from` on whose bit is 1, or 0 with `flip` all ones; the number of places if there is none.
    fn next(&self, from: usize, flip: u64) -> usize {
        let mut k = from / 64;
        if k >= self.words.len() {
            return self.n;
        }
        let mut word = (self.words[k] ^ flip) >> (from % 64) << (from % 64);
        while word == 0 {
            k += 1;
            match self.words.get(k) {
                Some(next) => word = next ^ flip,
                None => return self.n,
            }
        }
        self.n.min(64 * k + word.trailing_zeros() as usize)
    }

    /// Calls `f` with the first place of each run of ones, the one behind its last, and that of the run before.
    fn for_each_run(&self, mut f: impl FnMut(usize, usize, usize)) {
        let mut before = 0;
        loop {
            let start = self.next(before, 0);
            if start == self.n {
                return;
            }
            let end = self.next(start, !0);
            f(start, end, before);
            before = end;
        }
    }

    /// How many runs a mask of these has.
    fn runs(&self) -> usize {
        let mut runs = 0;
        self.for_each_run(|start, end, before| {
            runs += (start - before) / RUN_LIMIT + (end - start).div_ceil(RUN_LIMIT)
        });
        runs
    }

    /// A mask's runs.
    fn write(&self, out: &mut Vec<u8>) {
        self.for_each_run(|start, end, before| {
            let (mut zeros, mut ones) = (start - before, end - start);
            while zeros >= RUN_LIMIT {
                out.extend([RUN_LIMIT as u8, 0]);
                zeros -= RUN_LIMIT;
            }
            while ones > 0 {
                let some = ones.min(RUN_LIMIT);
                out.extend([zeros as u8, some as u8]);
                zeros = 0;
                ones -= some;
            }
        });
    }
}

/// Appends the outliers of a tile, those values that are not `regular`: as a mask where they all have the same bits and
/// that is shorter.
pub(crate) fn write<S: Scalar>(x: &[S], extents: [usize; 3], regular: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let places = Places::of_marks(regular);
    let (mut records, mut alike, mut first) = (0, true, None);
    places.for_each_run(|start, end, _| {
        let bits = x[start].bits();
        alike &= *first.get_or_insert(bits) == bits;
        records += 1;
        let changes = x[start..end].windows(2).filter(|pair| pair[0].bits() != pair[1].bits()).count();
        alike &= changes == 0;
        records += changes;
    });
    memory::reserve(out, 4 + records * (4 + S::SIZE))?;
    if let (true, Some(bits)) = (alike, first) {
        let mut mask = (places.runs(), 0);
        let other = step(extents).map(|step| places.differences(step));
        if let Some(runs) = other.as_ref().map(Places::runs).filter(|&runs| runs < mask.0) {
            mask = (runs, DIFFERENCES);
        }
        let (runs, differences) = mask;
        if S::SIZE + 4 * runs.div_ceil(2) < records * (4 + S::SIZE) && runs <= x.len().div_ceil(2) {
            out.extend((MASK | differences | runs as u32).to_le_bytes());
            out.extend(&bits.to_u64().to_le_bytes()[..S::SIZE]);
            other.filter(|_| differences != 0).unwrap_or(places).write(out);
            out.extend(&[0; 2][..2 * (runs % 2)]);
            return Ok(());
        }
    }
    out.extend((records as u32).to_le_bytes());
    let at = out.len();
    let mut record =
        |start: usize, end: usize| out.extend((start as u32 | ((end - start) as u32 - 1) << 16).to_le_bytes());
    places.for_each_run(|start, end, _| {
        let mut from = start;
        for k in start + 1..end {
            if x[k].bits() != x[from].bits() {
                record(from, k);
                from = k;
            }
        }
        record(from, end);
    });
    for k in 0..records {
        let start = u16::from_le_bytes([out[at + 4 * k], out[at + 4 * k + 1]]);
        out.extend(&x[usize::from(start)].bits().to_u64().to_le_bytes()[..S::SIZE]);
    }
    Ok(())
}

/// A tile's outliers, checked.
pub(super) enum Outliers<'a> {
    /// Places, and the bits of their values.
    Records { records: &'a [[u8; 4]], values: &'a [u8] },
    /// Runs of places that are outliers, or, with a step, unlike the one a step before; and the bits of all.
    Mask { runs: &'a [[u8; 2]], step: Option<usize>, bits: &'a [u8] },
}

impl<'a> Outliers<'a> {
    /// The outliers at the head of a payload, and how many bytes they take.
    pub(super) fn open<S: Scalar>(
        payload: &'a [u8],
        extents: [usize; 3],
    ) -> std::result::Result<(Self, usize), Damage> {
        let n = extents.iter().product::<usize>();
        let Some((head, rest)) = payload.split_first_chunk::<4>() else {
            return Err("no count of outliers".into());
        };
        let head = u32::from_le_bytes(*head);
        let is_mask = head & MASK != 0;
        let count = (if is_mask { head & !(MASK | DIFFERENCES) } else { head }) as usize;
        let what = if is_mask { "runs of outliers" } else { "outliers" };
        if count == 0 || count > n {
            return Err(format!("{count} {what} among {n} values").into());
        }
        let needed = if is_mask { S::SIZE + 4 * count.div_ceil(2) } else { count * (4 + S::SIZE) };
        let Some(mine) = rest.get(..needed) else {
            return Err(format!("{count} {what} need {needed} bytes of {}", rest.len()).into());
        };
        if is_mask {
            let (bits, runs) = mine.split_at(S::SIZE);
            let (runs, filling) = runs.as_chunks::<2>().0.split_at(count);
            if filling.iter().any(|f| *f != [0; 2]) {
                return Err("bytes behind the last run of outliers that are not 0".into());
            }
            let last = runs.iter().map(|r| usize::from(r[0]) + usize::from(r[1])).sum::<usize>();
            if last > n {
                return Err(format!("runs of outliers over {last} places of {n}").into());
            }
            let step = if head & DIFFERENCES == 0 { None } else { step(extents) };
            if head & DIFFERENCES != 0 && step.is_none() {
                return Err(format!("differences of outliers' places among {extents:?} values").into());
            }
            return Ok((Outliers::Mask { runs, step, bits }, 4 + needed));
        }
        let (records, values) = mine.split_at(4 * count);
        let records = records.as_chunks::<4>().0;
        let mut next = 0;
        for (start, len) in records.iter().map(record) {
            if start < next || start + len > n {
                return Err(
                    format!("outliers at {start} to {}, after {next}, among {n} values", start + len - 1).into()
                );
            }
            next = start + len;
        }
        Ok((Outliers::Records { records, values }, 4 + needed))
    }

    /// Calls `put` with the outliers, neighbours together: their first place, how many they are, and the bits of all.
    pub(super) fn for_each_run<S: Scalar>(&self, n: usize, mut put: impl FnMut(usize, usize, S)) {
        match *self {
            Outliers::Records { records, values } => {
                for ((start, len), bits) in records.iter().map(record).zip(values.chunks_exact(S::SIZE)) {
                    put(start, len, value(bits));
                }
            }
            Outliers::Mask { runs, step, bits } => {
                let mut marks = [1; LORENZO_TILE];
                let (mut at, marks) = (0, &mut marks[..n]);
                for &[zeros, ones] in runs {
                    at += usize::from(zeros);
                    marks[at..at + usize::from(ones)].fill(0);
                    at += usize::from(ones);
                }
                if let Some(step) = step {
                    // A mark is 0 where the one before it is not what it is: 1 ^ 0 and 0 ^ 0.
                    for k in 1..n / step {
                        let (before, here) = marks[(k - 1) * step..(k + 1) * step].split_at_mut(step);
                        here.iter_mut().zip(before).for_each(|(here, before)| *here ^= *before ^ 1);
                    }
                }
                let bits = value(bits);
                Places::of_marks(marks).for_each_run(|start, end, _| put(start, end - start, bits));
            }
        }
    }
}

/// First place and length of a record.
fn record(bytes: &[u8; 4]) -> (usize, usize) {
    let r = u32::from_le_bytes(*bytes) as usize;
    (r & 0xffff, (r >> 16) + 1)
}

/// The value that has these bits.
pub(super) fn value<S: Scalar>(bytes: &[u8]) -> S {
    let mut bits = [0; 8];
    bits[..S::SIZE].copy_from_slice(bytes);
    S::of_bits(S::Bits::from_u64(u64::from_le_bytes(bits)))
}
