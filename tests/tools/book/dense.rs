// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written from codecs/src/codec/dense/FORMAT.md, section by section: plain, slow, and without a look at the crate.

#[path = "vectors.rs"]
pub mod vectors;

use super::lorenzo::{Bits, indices, is_new, residual as of_zigzag};
use super::{Refusal, need, number};

/// The frequencies of a table's tokens.
type Table = Vec<u32>;

/// §3.2.
pub struct Head {
    filters: Vec<Option<Vec<i32>>>,
    /// a, b, c, d of §4.5, where they are there.
    pub weights: Option<[i64; 4]>,
    /// For each table the first context that has it.
    tables: Vec<(usize, Table)>,
}

/// What a head says, and where it ends.
pub fn head(bytes: &[u8]) -> Result<(Head, usize), Refusal> {
    let end = number(bytes, 0, 2)? as usize;
    need(end >= 4 && end <= bytes.len(), "dense: the head's length")?;
    let mut at = 3;
    let mut filters = vec![None; 8];
    for (_, filter) in filters.iter_mut().enumerate().filter(|(axes, _)| bytes[2] >> axes & 1 == 1) {
        need(at + 9 < end, "dense: weights beyond the head")?;
        *filter = Some(bytes[at..at + 9].iter().map(|&w| i32::from(w as i8)).collect());
        at += 9;
    }
    need(at < end, "dense: no number of tables")?;
    let count = bytes[at] as usize % 128;
    need(count <= 64, "dense: tables")?;
    let mut weights = None;
    if bytes[at] >= 128 {
        need(at + 4 < end, "dense: weights of vectors beyond the head")?;
        weights = Some([1, 2, 3, 4].map(|k| i64::from(bytes[at + k] as i8)));
        at += 4;
    }
    let mut bits = Bits { bytes: &bytes[at + 1..end], at: 0 };
    let mut starts = vec![0; count.min(1)];
    for _ in 1..count {
        starts.push(bits.take(11)? as usize);
    }
    need(starts.iter().all(|&s| s < 1536) && starts.is_sorted_by(|a, b| a < b), "dense: where tables begin")?;
    let mut all: Vec<Vec<i32>> = Vec::new();
    for _ in 0..count {
        let classes = bits.take(7)? as usize;
        need((1..=121).contains(&classes), "dense: classes")?;
        let mut levels: Vec<i32> = Vec::new();
        for class in 0..classes {
            let mut ones = 0;
            while ones < 6 && bits.take(1)? == 1 {
                ones += 1;
            }
            let z = if ones < 6 { 4 * ones + bits.take(2)? } else { bits.take(8)? };
            need(ones < 6 || z >= 24, "dense: a difference in the longer form")?;
            let before = all.last().and_then(|table: &Vec<i32>| table.get(class)).or(levels.last());
            let level = before.unwrap_or(&49) + of_zigzag(z);
            need((0..=49).contains(&level), "dense: a level")?;
            levels.push(level);
        }
        need(levels[classes - 1] > 0, "dense: the last class")?;
        all.push(levels);
    }
    let rest = 8 * bits.bytes.len() - bits.at;
    need(rest < 8 && bits.take(rest as u32)? == 0, "dense: bits behind the tables")?;
    let tables = starts.into_iter().zip(all.iter().map(|levels| frequencies(levels))).collect();
    Ok((Head { filters, weights, tables }, end))
}

/// §3.2.1.
fn frequencies(levels: &[i32]) -> Table {
    let weight = |token: usize| {
        let class = if token <= 16 { token.div_ceil(2) } else { token - 8 };
        match levels.get(class) {
            Some(&v) if v > 0 => [16u64, 19, 23, 27][(v as usize - 1) % 4] << ((v - 1) / 4),
            _ => 0,
        }
    };
    let weights: Vec<u64> = (0..129).map(weight).collect();
    let (sum, used) = (weights.iter().sum::<u64>(), weights.iter().filter(|&&w| w > 0).count() as u64);
    let mut table: Table =
        weights.iter().map(|&w| if w > 0 { 1 + (w * (4096 - used) / sum) as u32 } else { 0 }).collect();
    let most = *table.iter().max().unwrap_or(&0);
    if let Some(first) = table.iter().position(|&f| f == most) {
        table[first] += 4096 - table.iter().sum::<u32>();
    }
    table
}

/// §4.1.
pub fn magnitude(n: u32) -> u32 {
    let (mut n, mut h) = (n, 0);
    while n >= 256 {
        (n, h) = (n / 2, h + 1);
    }
    let rounded = (8.0 * f64::from(1 + n).log2()).round() as u32;
    rounded + 8 * h
}

/// A grid of §4.2: the numbers of its residuals in their order begin at `at`.
struct Grid {
    extents: [usize; 3],
    at: usize,
    group: usize,
    /// The axes along which the border lies.
    border: Vec<usize>,
    /// For each axis along which its class and others are new, where the class without it begins, and its extents.
    beside: Vec<(usize, usize, [usize; 3])>,
}

/// §4.2.
fn grids(extents: [usize; 3], kind: u8) -> Vec<Grid> {
    if kind & 8 == 0 {
        let border: Vec<usize> = (0..3).filter(|k| kind >> (2 - k) & 1 == 1).collect();
        let group = 2 * border.len().saturating_sub(1);
        return vec![Grid { extents, at: 0, group, border, beside: Vec::new() }];
    }
    let mut lattices = vec![extents];
    while lattices[lattices.len() - 1] != [1; 3] {
        lattices.push(lattices[lattices.len() - 1].map(|n| (0..n).filter(|&i| !is_new(i, n)).count()));
    }
    let mut all = vec![Grid { extents: [1; 3], at: 0, group: 11, border: Vec::new(), beside: Vec::new() }];
    let mut at = 1;
    for level in (0..lattices.len() - 1).rev() {
        let mut classes: Vec<(&[usize], usize, [usize; 3])> = Vec::new();
        for class in [&[2][..], &[1], &[0], &[2, 1], &[2, 0], &[1, 0], &[2, 1, 0]] {
            let count = |k: usize| {
                let n = lattices[level][k];
                (0..n).filter(|&i| is_new(i, n) == class.contains(&k)).count()
            };
            let own = [0, 1, 2].map(count);
            let without = |axis: usize| class.iter().copied().filter(move |&k| k != axis);
            let beside = class.iter().filter_map(|&axis| {
                let other = classes.iter().find(|(c, ..)| !c.is_empty() && without(axis).eq(c.iter().copied()))?;
                Some((axis, other.1, other.2))
            });
            let beside = beside.collect();
            let group = if level == 0 { 5 + class.len() } else { 8 + level.min(3) };
            all.push(Grid { extents: own, at, group, border: Vec::new(), beside });
            classes.push((class, at, own));
            at += own.iter().product::<usize>();
        }
    }
    all
}

/// §4.3: steps, weight in the context, weight in the filter.
const AROUND: [([isize; 3], u32, Option<usize>); 10] = [
    ([0, 0, -1], 4, Some(0)),
    ([0, 0, -2], 2, Some(1)),
    ([0, -1, 0], 3, Some(2)),
    ([0, -1, 1], 2, Some(3)),
    ([0, -1, -1], 0, Some(4)),
    ([0, -2, 0], 1, Some(5)),
    ([-1, 0, 0], 3, Some(6)),
    ([-1, 0, -1], 0, Some(7)),
    ([-1, -1, 0], 0, Some(8)),
    ([-2, 0, 0], 2, None),
];

/// §4.3: the bin of what is expected, in sixteenths of a magnitude.
pub fn bin(expected: u32) -> usize {
    (if expected < 128 { expected / 8 } else { (16 + (expected - 128) / 32).min(63) }) as usize
}

/// §4.4.
pub struct Coder<'a> {
    tables: &'a [(usize, Table)],
    words: std::slice::Chunks<'a, u8>,
    state: u32,
}

impl<'a> Coder<'a> {
    pub fn new(head: &'a Head, bytes: &'a [u8]) -> Result<Self, Refusal> {
        need(!head.tables.is_empty() && bytes.len() >= 4 && bytes.len().is_multiple_of(2), "dense: words")?;
        let state = number(bytes, 0, 4)? as u32;
        need(state >= 1 << 16, "dense: the first state")?;
        Ok(Coder { tables: &head.tables, words: bytes[4..].chunks(2), state })
    }

    /// The next number, in this context.
    pub fn number(&mut self, context: usize) -> Result<i32, Refusal> {
        let (_, table) = self.tables.iter().rfind(|(start, _)| *start <= context).expect("the first begins at 0");
        let slot = self.state % 4096;
        let (mut token, mut start) = (0, 0);
        while slot >= start + table[token] {
            start += table[token];
            token += 1;
        }
        self.fill(table[token] * (self.state / 4096) + slot - start)?;
        if token <= 16 {
            let size = token.div_ceil(2) as i32;
            return Ok(if token % 2 == 1 { size } else { -size });
        }
        let (k, j) = ((token - 17) / 4, (token - 17) % 4);
        let (mut x, mut have) = (0, 0);
        while have < k + 2 {
            let some = (k + 2 - have).min(15);
            x |= (self.state % (1 << some)) << have;
            self.fill(self.state >> some)?;
            have += some;
        }
        let m = ((4 + j as u32) << (k + 1)).wrapping_add(x / 2 + 1) as i32;
        Ok(if x % 2 == 0 { m } else { m.wrapping_neg() })
    }

    fn fill(&mut self, state: u32) -> Result<(), Refusal> {
        self.state = state;
        if state < 1 << 16 {
            let word = self.words.next().ok_or("dense: the words end early")?;
            self.state = state << 16 | u32::from(word[0]) | u32::from(word[1]) << 8;
        }
        Ok(())
    }

    pub fn end(mut self) -> Result<(), Refusal> {
        need(self.words.next().is_none() && self.state == 1 << 16, "dense: the end of the words")
    }
}

/// §4.2 and §4.3: the residuals of a coded tile.
pub fn residuals(head: &Head, kind: u8, extents: [usize; 3], bytes: &[u8]) -> Result<Vec<i32>, Refusal> {
    let filter = match kind & 0x88 {
        0x80 => Some(head.filters[usize::from(kind & 7)].as_ref().ok_or("dense: no filter")?),
        _ => None,
    };
    let mut coder = Coder::new(head, bytes)?;
    let n = extents.iter().product();
    let (mut d, mut g) = (vec![0i32; n], vec![0u32; n]);
    for grid in grids(extents, kind) {
        let [_, ny, nx] = grid.extents;
        for i in 0..grid.extents.iter().product() {
            let p = indices(grid.extents, i);
            let border = |p: [usize; 3]| grid.border.iter().map(|&k| p[k] == 0).collect::<Vec<_>>();
            let on_border = border(p).contains(&true);
            let (mut t, mut w, mut sum) = (0, 0, 0i32);
            for (step, weight, in_filter) in AROUND {
                let q = [0, 1, 2].map(|k| p[k].wrapping_add_signed(step[k]));
                if (0..3).any(|k| q[k] >= grid.extents[k]) || border(q) != border(p) {
                    continue;
                }
                let j = grid.at + (q[0] * ny + q[1]) * nx + q[2];
                (t, w) = (t + weight * g[j], w + weight);
                if let (Some(filter), Some(k), false) = (filter, in_filter, on_border) {
                    sum = sum.wrapping_add(filter[k].wrapping_mul(d[j]));
                }
            }
            for &(axis, at, other) in &grid.beside {
                for further in 0..2 {
                    let mut q = p;
                    q[axis] = (p[axis] + further).min(other[axis] - 1);
                    (t, w) = (t + g[at + (q[0] * other[1] + q[1]) * other[2] + q[2]], w + 1);
                }
            }
            let bin = (16 * t).checked_div(w).map_or(63, bin);
            let c = coder.number(64 * (grid.group + usize::from(on_border)) + bin)?;
            g[grid.at + i] = magnitude(c.unsigned_abs());
            let predicted = if on_border { 0 } else { sum.wrapping_add(32) >> 6 };
            d[grid.at + i] = c.wrapping_add(if filter.is_some() { predicted } else { 0 });
        }
    }
    coder.end()?;
    Ok(d)
}
