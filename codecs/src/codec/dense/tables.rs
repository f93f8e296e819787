// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frequencies of tokens: a table for each interval of contexts. FORMAT.md §3.2, §8.2.
//!
//! ```text
//! counts       of each class of tokens in each context
//! intervals    neighbours become one as long as that makes the frame shorter
//! levels       a class's count as quarters of an octave below the largest; 0 for a class that does not occur
//! frequencies  4096 of them are dealt out to tokens by what their levels say
//! ```

use super::bits::{BitReader, BitWriter};
use super::contexts::CONTEXTS;
use super::tokens::{CLASSES, TOKENS, bits_beside, class};
use crate::error::{Damage, Error, Result};
use crate::memory;
use crate::stage::estimate::log2;
use crate::stage::huffman::{unzigzag, zigzag};

/// Frequencies of a table add up to 2^this.
pub(super) const FREQUENCY_BITS: u32 = 12;
const TOTAL: u32 = 1 << FREQUENCY_BITS;
/// Bits of the context that a table begins at.
const START_BITS: u32 = 11;
/// The most tables.
pub(super) const TABLES: usize = 64;
/// Levels of classes that occur are from 1 to this.
const TOP: u8 = 49;

/// A table as it is stored: the levels of the classes up to the last that occurs.
pub(super) type Levels = Vec<u8>;

/// Frequencies and where each token's begin.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) tokens: [(u16, u16); TOKENS],
}

/// Which table a context has: tables in the order of the contexts that they begin at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) starts: Vec<usize>,
    pub(super) levels: Vec<Levels>,
}

impl Table {
    /// From levels of which at least one is not 0.
    pub(super) fn new(levels: &[u8]) -> Self {
        /// 16 · 2^(k/4), rounded.
        const QUARTERS: [u64; 4] = [16, 19, 23, 27];
        let weight = |token: usize| match levels.get(class(token)) {
            Some(&level) if level > 0 => QUARTERS[usize::from(level - 1) % 4] << ((level - 1) / 4),
            _ => 0,
        };
        let weights: [u64; TOKENS] = std::array::from_fn(weight);
        let occur = weights.iter().filter(|&&w| w > 0).count() as u64;
        let (total, left) = (weights.iter().sum::<u64>().max(1), u64::from(TOTAL) - occur);
        let mut frequencies = weights.map(|w| if w > 0 { 1 + (w * left / total) as u16 } else { 0 });
        // What rounding left goes to the first of the most frequent.
        let most = (0..TOKENS).rev().max_by_key(|&token| frequencies[token]).unwrap_or(0);
        frequencies[most] += TOTAL as u16 - frequencies.iter().sum::<u16>();
        let mut start = 0;
        Table {
            tokens: frequencies.map(|frequency| {
                start += frequency;
                (frequency, start - frequency)
            }),
        }
    }
}

/// Counts of classes, a row a context.
pub(super) struct Counts(Vec<[u32; CLASSES]>);

impl Counts {
    pub(super) fn new() -> Result<Self> {
        let mut rows = memory::with_capacity(CONTEXTS)?;
        rows.resize(CONTEXTS, [0; CLASSES]);
        Ok(Counts(rows))
    }

    #[inline(always)]
    pub(super) fn add(&mut self, context: usize, class: usize) {
        self.0[context][class] += 1;
    }

    pub(super) fn merge(&mut self, other: &Counts) {
        for (row, other) in self.0.iter_mut().zip(&other.0) {
            row.iter_mut().zip(other).for_each(|(n, &m)| *n += m);
        }
    }

    /// About how many bits the tokens and their tables take, in 256ths: with a table for each 16 contexts.
    pub(super) fn bits(&self) -> u64 {
        let rows = self.0.chunks(16).map(|rows| {
            let counts: [u32; CLASSES] = std::array::from_fn(|class| rows.iter().map(|row| row[class]).sum());
            let left = |class: usize| u64::from(counts[class]) * u64::from(bits_beside(class));
            let cost = if counts.iter().all(|&n| n == 0) { 0 } else { Interval::new(0, counts).cost };
            cost + 256 * (1..CLASSES).map(left).sum::<u64>()
        });
        rows.sum()
    }

    /// The tables, by joining neighbours for as long as that saves bits, the pair that saves most first.
    pub(super) fn tables(&self) -> Tables {
        let occur = self.0.iter().enumerate().filter(|(_, row)| row.iter().any(|&n| n > 0));
        let mut all: Vec<Interval> = occur.map(|(start, counts)| Interval::new(start, *counts)).collect();
        let joined = |pair: &[Interval]| {
            let both = pair[0].with(&pair[1]);
            let saved = (pair[0].cost + pair[1].cost) as i64 - both.cost as i64;
            (saved, both)
        };
        let mut pairs: Vec<(i64, Interval)> = all.windows(2).map(joined).collect();
        while let Some(best) = (0..pairs.len()).rev().max_by_key(|&k| pairs[k].0) {
            if pairs[best].0 < 0 && all.len() <= TABLES {
                break;
            }
            all[best] = pairs.remove(best).1;
            all.remove(best + 1);
            for k in [best.checked_sub(1), Some(best)].into_iter().flatten().filter(|&k| k + 1 < all.len()) {
                pairs[k] = joined(&all[k..k + 2]);
            }
        }
        let levels = all.iter().map(|interval| levels(&interval.counts)).collect();
        // The first has all contexts before it, too.
        let starts = all.iter().enumerate().map(|(k, interval)| if k == 0 { 0 } else { interval.start }).collect();
        Tables { starts, levels }
    }
}

/// Contexts that have one table, from the first of them on.
struct Interval {
    start: usize,
    counts: [u32; CLASSES],
    /// Bits of its tokens and of its table, in 256ths.
    cost: u64,
}

impl Interval {
    fn new(start: usize, counts: [u32; CLASSES]) -> Self {
        /// A start, a number of classes.
        const HEAD: u64 = 7 + START_BITS as u64;
        let n = counts.iter().sum::<u32>();
        let tokens = n_log2(n) - counts.iter().map(|&n| n_log2(n)).sum::<u64>();
        let levels = levels(&counts);
        let table: u64 = differences(&levels, &[]).map(bits_of).sum();
        // Levels are nearer to those of the table before than to each other.
        Interval { start, counts, cost: tokens + 256 * HEAD + 192 * table }
    }

    fn with(&self, other: &Interval) -> Self {
        Interval::new(self.start, std::array::from_fn(|class| self.counts[class] + other.counts[class]))
    }
}

/// n · log2(n) in 1/256 bits.
fn n_log2(n: u32) -> u64 {
    u64::from(n) * log2(n)
}

/// The levels of classes with these counts; the classes of two tokens count half.
fn levels(counts: &[u32; CLASSES]) -> Levels {
    let single = |class: usize| if class == 0 || class > 8 { 2 * counts[class] } else { counts[class] };
    let most = (0..CLASSES).map(single).max().unwrap_or(0);
    let classes = counts.iter().rposition(|&n| n > 0).map_or(0, |last| last + 1);
    let level = |class: usize| match single(class) {
        0 => 0,
        n => {
            let below = (log2(most) - log2(n) + 32) / 64;
            TOP - (below as u8).min(TOP - 1)
        }
    };
    (0..classes).map(level).collect()
}

/// What is stored of levels: how far they are from those of the table `before`, or beyond its end from the one before
/// in the table itself.
fn differences<'a>(levels: &'a [u8], before: &'a [u8]) -> impl Iterator<Item = i32> + 'a {
    let expected = |class: usize| match (before.get(class), class) {
        (Some(&level), _) => level,
        (None, 0) => TOP,
        (None, class) => levels[class - 1],
    };
    (0..levels.len()).map(move |class| i32::from(levels[class]) - i32::from(expected(class)))
}

/// Zigzag values below this have a prefix of their fourths in ones; others six ones and eight bits.
const PREFIXED: u32 = 24;

/// Bits of a difference.
fn bits_of(difference: i32) -> u64 {
    let z = zigzag(difference);
    if z < PREFIXED { u64::from(z / 4) + 3 } else { 14 }
}

impl Tables {
    /// Appends their bits.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut bits = BitWriter::new(out);
        self.starts.iter().skip(1).for_each(|&start| bits.put(start as u32, START_BITS));
        let mut before: &[u8] = &[];
        for levels in &self.levels {
            bits.put(levels.len() as u32, 7);
            for difference in differences(levels, before) {
                let z = zigzag(difference);
                if z < PREFIXED {
                    bits.put((1 << (z / 4)) - 1, z / 4 + 1);
                    bits.put(z % 4, 2);
                } else {
                    bits.put(0x3f | z << 6, 14);
                }
            }
            before = levels;
        }
        bits.end();
    }

    /// Reads this many, all checked.
    pub(super) fn read(count: usize, bits: &[u8]) -> Result<Self, Error> {
        Self::parse(count, bits).map_err(|why| Error::corrupt("dense head", why))
    }

    fn parse(count: usize, bytes: &[u8]) -> Result<Self, Damage> {
        if count > TABLES {
            return Err(format!("{count} tables, limit {TABLES}").into());
        }
        let mut bits = BitReader::new(bytes);
        let mut tables = Tables::default();
        for k in 0..count {
            let start = if k == 0 { 0 } else { bits.take(START_BITS)? as usize };
            if start >= CONTEXTS || tables.starts.last().is_some_and(|&before| start <= before) {
                return Err(format!("table {k} begins at context {start}").into());
            }
            tables.starts.push(start);
        }
        for k in 0..count {
            let classes = bits.take(7)? as usize;
            if classes == 0 || classes > CLASSES {
                return Err(format!("table {k} has {classes} classes of tokens").into());
            }
            let mut levels = Levels::with_capacity(classes);
            for class in 0..classes {
                let mut prefix = 0;
                while prefix < 6 && bits.take(1)? == 1 {
                    prefix += 1;
                }
                let z = if prefix < 6 { 4 * prefix + bits.take(2)? } else { bits.take(8)? };
                let before = tables.levels.last().and_then(|before: &Levels| before.get(class)).or(levels.last());
                let level = i32::from(before.copied().unwrap_or(TOP)) + unzigzag(z);
                let level = u8::try_from(level).ok().filter(|&level| level <= TOP);
                if prefix == 6 && z < PREFIXED {
                    return Err(format!("table {k}: a long difference of {z}").into());
                }
                levels.push(level.ok_or_else(|| format!("table {k}: the level of class {class}"))?);
            }
            if levels.last() == Some(&0) {
                return Err(format!("table {k}: the last class does not occur").into());
            }
            tables.levels.push(levels);
        }
        if !bits.is_over() {
            return Err("bits behind the last table".into());
        }
        Ok(tables)
    }

    /// The table of each context; 0 where there are none.
    pub(super) fn of_contexts(&self) -> Vec<u8> {
        let of = |context: usize| self.starts.iter().take_while(|&&start| start <= context).count();
        (0..CONTEXTS).map(|context| of(context).saturating_sub(1) as u8).collect()
    }
}
