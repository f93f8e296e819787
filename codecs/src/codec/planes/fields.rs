// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of classes 1 and 2 into bits and back, by the bins that `lengths.rs` chose. FORMAT.md §3.4.
//!
//! Widths are looked up for all of a block at once, so that the loop over values only adds them up: it stores or takes
//! bits at a place that is known early. What a field lacks, its first bit, its sign, its zeros, is put right for whole
//! rows again.

use super::bitplanes::Slice;
use super::lengths::{BINS, Bin, Counted, Lengths, bins};
use super::shape::{BLOCK, LAYER, row_of};
use super::types::Int;
use super::unit::Unit;
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::{Damage, Result};
use crate::memory::boxed;

/// Words of a tile's fields, at most: 8 bytes a value.
pub(super) const FIELD_WORDS: usize = 2 * PLANES_TILE;
/// Bytes behind the fields that reading and writing touch.
pub(super) const SLACK: usize = 16;
/// A value of each of a block's lanes, in four columns and eight rows, as in bit planes; columns in their own order.
pub(super) type Rows = Slice;

/// What decoding needs, by numbers of bins.
pub(super) struct Fields {
    pub(super) widths: [u8; BINS],
    /// 1 where the field's first bit is left out, [`EMPTY`] where no value may have the number.
    hidden: [u8; BINS],
}

/// The number is that of a bin which holds no length.
const EMPTY: u8 = 2;

impl Fields {
    pub(super) fn of_lengths(lengths: &Lengths) -> Self {
        let bins = bins(lengths.least, lengths.top);
        let of: [Bin; BINS] = std::array::from_fn(|c| bins[(lengths.numbers >> (3 * c) & 7) as usize]);
        let hidden = of.map(|r| if r.empty { EMPTY } else { r.hidden.into() });
        Fields { widths: of.map(|r| r.width), hidden }
    }
}

/// What encoding needs, by bins.
struct Table {
    /// Highest lengths of all but the last.
    highs: [u8; BINS - 1],
    widths: [u8; BINS],
    numbers: [u8; BINS],
}

impl Table {
    fn of_lengths(lengths: &Lengths) -> Self {
        let bins = bins(lengths.least, lengths.top);
        let mut numbers = [0; BINS];
        for c in 0..BINS {
            numbers[(lengths.numbers >> (3 * c) & 7) as usize] = c as u8;
        }
        Table { highs: std::array::from_fn(|i| bins[i].highest as u8), widths: bins.map(|r| r.width), numbers }
    }
}

/// Fields of a tile, one after another.
pub(super) struct Bits {
    bytes: Box<[u8; 4 * FIELD_WORDS + SLACK]>,
    /// Bytes of whole blocks.
    len: usize,
}

impl Bits {
    pub(super) fn new() -> Result<Self> {
        Ok(Bits { bytes: boxed()?, len: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Of whole words.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends a block's fields.
    #[inline(always)]
    fn append<I: Int, const WAY: u8>(&mut self, u: &[I; BLOCK], widths: &Rows, rank: usize) {
        let (mut pending, mut bits, mut at) = (0u64, 0u32, self.len);
        // At most 56 bits.
        let mut push = |field: u64, width: u32| {
            pending |= field << bits;
            bits += width;
            self.bytes[at..at + 8].copy_from_slice(&pending.to_le_bytes());
            at += bits as usize / 8;
            pending >>= bits & !7;
            bits &= 7;
        };
        for group in 0..PLANES_LANES / 8 {
            let rows: [usize; 8] = std::array::from_fn(|i| i / 4 * LAYER + row_of(rank, i % 4, group));
            for lane in 0..8 {
                for (row, widths) in rows.iter().zip(widths) {
                    let u: &[I; 4] = u[row + 4 * lane..].first_chunk().expect("a lane's");
                    let [a, b, c, d] = widths[8 * group + lane].to_le_bytes().map(u32::from);
                    match WAY {
                        PAIRS => {
                            push(u[0].lowest(a) | u[1].lowest(b) << a, a + b);
                            push(u[2].lowest(c) | u[3].lowest(d) << c, c + d);
                        }
                        ONES => (0..4).zip([a, b, c, d]).for_each(|(k, width)| push(u[k].lowest(width), width)),
                        _ => {
                            for (u, width) in u.iter().zip([a, b, c, d]) {
                                let low = width.min(32);
                                push(u.lowest(low), low);
                                push(u.lowest(width) >> low, width - low);
                            }
                        }
                    }
                }
            }
        }
        push(0, 32);
        self.len += (8 * (at - self.len) + bits as usize - 32).div_ceil(32) * 4;
    }
}

/// Ways through fields, by the widest: two at a time, one, halves of one.
const PAIRS: u8 = 2;
const ONES: u8 = 1;
const HALVES: u8 = 0;

/// The way for a tile with these widths.
fn way(widths: &[u8; BINS]) -> u8 {
    match widths.iter().max() {
        Some(0..=28) => PAIRS,
        Some(29..=56) => ONES,
        _ => HALVES,
    }
}

impl Counted {
    /// Appends the fields of a block, in whose place u stands, and makes its numbers, the columns as in bit planes.
    pub(super) fn block<I: Int>(
        &self,
        block: usize,
        u: &[I; BLOCK],
        rank: usize,
        lengths: &Lengths,
        unit: impl Unit,
        (numbers, bits): (&mut Rows, &mut Bits),
    ) {
        let table = Table::of_lengths(lengths);
        let mut widths = [[0; PLANES_LANES]; 8];
        unit.run(
            #[inline(always)]
            || {
                let lens: &[u8; BLOCK] = self.lens[BLOCK * block..].first_chunk().expect("a block");
                let bins = lens.map(|len| table.highs.iter().map(|&high| u8::from(len > high)).sum::<u8>());
                for (i, row) in widths.iter_mut().enumerate() {
                    for (group, words) in row.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                        let at = i / 4 * LAYER + row_of(rank, i % 4, group);
                        let bytes: &[[u8; 4]; 8] = bins[at..].as_chunks().0.first_chunk().expect("a row");
                        *words = bytes.map(u32::from_le_bytes);
                    }
                }
                *numbers = widths;
                unit.lookup(&mut widths, &table.widths);
                unit.lookup(numbers, &table.numbers);
                exchange_columns(numbers);
            },
        );
        match way(&table.widths) {
            PAIRS => unit.run(
                #[inline(always)]
                || bits.append::<I, PAIRS>(u, &widths, rank),
            ),
            ONES => unit.run(
                #[inline(always)]
                || bits.append::<I, ONES>(u, &widths, rank),
            ),
            _ => unit.run(
                #[inline(always)]
                || bits.append::<I, HALVES>(u, &widths, rank),
            ),
        }
    }
}

/// Between the order of columns and that of bytes in bit planes; undoes itself.
#[inline(always)]
pub(super) fn exchange_columns(rows: &mut Rows) {
    for word in rows.as_flattened_mut() {
        *word = *word & 0xFF00_00FF | *word >> 8 & 0xFF00 | *word << 8 & 0xFF_0000;
    }
}

/// Sum of all bytes, which are at most 64.
#[inline(always)]
fn sum(rows: &Rows) -> usize {
    // Two halves of 16 bits: 512 bytes each.
    let halves: u32 = rows.as_flattened().iter().map(|w| (w & 0xFF_00FF) + (w >> 8 & 0xFF_00FF)).sum();
    (halves & 0xFFFF) as usize + (halves >> 16) as usize
}

/// A block's numbers, its columns in order, and the widths of its fields.
#[derive(Clone, Copy)]
pub(super) struct Widths {
    numbers: Rows,
    widths: Rows,
    /// Bits of all fields.
    bits: usize,
}

impl Widths {
    pub(super) const NONE: Widths = Widths { numbers: [[0; PLANES_LANES]; 8], widths: [[0; PLANES_LANES]; 8], bits: 0 };

    /// From numbers whose columns are as in bit planes.
    #[inline(always)]
    pub(super) fn find(&mut self, numbers: &Rows, fields: &Fields, unit: impl Unit) {
        self.numbers = *numbers;
        exchange_columns(&mut self.numbers);
        self.widths = self.numbers;
        unit.lookup(&mut self.widths, &fields.widths);
        self.bits = sum(&self.widths);
    }

    /// Words of the block's fields.
    pub(super) fn words(&self) -> usize {
        self.bits.div_ceil(32)
    }

    /// Reads the block's residuals from its fields, behind which there are [`SLACK`] bytes more.
    pub(super) fn read<I: Int>(
        &self,
        bytes: &[u8],
        fields: &Fields,
        zeros: u32,
        rank: usize,
        unit: impl Unit,
        d: &mut [I; BLOCK],
    ) -> Result<(), Damage> {
        match way(&fields.widths) {
            PAIRS => unit.run(
                #[inline(always)]
                || self.fields::<I, PAIRS>(bytes, rank, d),
            ),
            ONES => unit.run(
                #[inline(always)]
                || self.fields::<I, ONES>(bytes, rank, d),
            ),
            _ => unit.run(
                #[inline(always)]
                || self.fields::<I, HALVES>(bytes, rank, d),
            ),
        }
        let any_empty = unit.run(
            #[inline(always)]
            || {
                let mut hidden = self.numbers;
                unit.lookup(&mut hidden, &fields.hidden);
                for (i, (widths, hidden)) in self.widths.iter().zip(&hidden).enumerate() {
                    for group in 0..PLANES_LANES / 8 {
                        let row = &mut d[i / 4 * LAYER + row_of(rank, i % 4, group)..][..32];
                        let words = 8 * group..8 * group + 8;
                        let bytes = |words: &[u32]| -> [u8; 32] {
                            let words: &[u32; 8] = words.first_chunk().expect("words of a group");
                            bytemuck::cast(words.map(u32::to_le))
                        };
                        let (widths, hidden) = (bytes(&widths[words.clone()]), bytes(&hidden[words]));
                        for k in 0..32 {
                            let first =
                                I::truncate(hidden[k].into()) << u32::from(widths[k]).min(8 * I::BYTES as u32 - 1);
                            let all = I::BYTES as u32 * 8;
                            // Of a field as wide as the type, all bits.
                            let mask = if u32::from(widths[k]) == all {
                                I::ZERO.minus(I::ONE)
                            } else {
                                (I::ONE << (u32::from(widths[k]) & (all - 1))).minus(I::ONE)
                            };
                            row[k] = (row[k] & mask | first).unzigzag() << zeros;
                        }
                    }
                }
                hidden.as_flattened().iter().fold(0, |any, word| any | word) & u32::from_ne_bytes([EMPTY; 4]) != 0
            },
        );
        if any_empty {
            return Err("a number of a bin that holds no length".into());
        }
        match bytes[..4 * self.words()].last_chunk() {
            Some(&last) if !self.bits.is_multiple_of(32) && u32::from_le_bytes(last) >> (self.bits % 32) != 0 => {
                Err(format!("fields {:#010x} behind the last of {} bits", u32::from_le_bytes(last), self.bits).into())
            }
            _ => Ok(()),
        }
    }

    /// Bits from where each value's field begins, as many as the type has.
    #[inline(always)]
    fn fields<I: Int, const WAY: u8>(&self, bytes: &[u8], rank: usize, d: &mut [I; BLOCK]) {
        let mut at = 0;
        let window = |at: usize| {
            let bytes: [u8; 8] = *bytes[at / 8..].first_chunk().expect("slack behind the last field");
            u64::from_le_bytes(bytes) >> (at % 8)
        };
        for group in 0..PLANES_LANES / 8 {
            let rows: [usize; 8] = std::array::from_fn(|i| i / 4 * LAYER + row_of(rank, i % 4, group));
            for lane in 0..8 {
                for (i, row) in rows.iter().enumerate() {
                    let to: &mut [I; 4] = d[row + 4 * lane..].first_chunk_mut().expect("a lane's");
                    let [a, b, c, d] = self.widths[i][8 * group + lane].to_le_bytes().map(usize::from);
                    let starts = [at, at + a, at + a + b, at + a + b + c];
                    at += a + b + c + d;
                    if WAY == PAIRS {
                        let (x, y) = (window(starts[0]), window(starts[2]));
                        to[0] = I::truncate(x as i64);
                        to[1] = I::truncate((x >> a) as i64);
                        to[2] = I::truncate(y as i64);
                        to[3] = I::truncate((y >> c) as i64);
                        continue;
                    }
                    for k in 0..4 {
                        let low = window(starts[k]);
                        let field = if WAY == ONES { low } else { low & 0xFFFF_FFFF | window(starts[k] + 32) << 32 };
                        to[k] = I::truncate(field as i64);
                    }
                }
            }
        }
    }
}
