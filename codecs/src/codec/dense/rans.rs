// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals of a tile by range asymmetric numeral systems (Duda, arXiv:1311.2540), a state of 32 bits refilled by
//! words of 16. FORMAT.md §4.4.

use super::contexts::{BINS, CONTEXTS, GROUPS, Rows, Shape, bin, walk};
use super::tables::{Counts, FREQUENCY_BITS, TABLES, Table, Tables};
use super::tokens::{self, EXPECTED, TOKENS};
use crate::constants::LORENZO_TILE;
use crate::error::{Damage, Error, Result};
use crate::memory;
use crate::simd::vectorize;

/// No state is below this. An encoder begins with it, so a decoder ends with it.
const LEAST: u32 = 1 << 16;
/// The most bits that are stored at once beside a token.
const PIECE: u32 = 15;
const MASK: u32 = (1 << FREQUENCY_BITS) - 1;

/// What a tile's residuals are coded with.
pub(super) struct Coder {
    /// For each group and each eighth of what is expected the table.
    tables: Vec<u8>,
    all: Vec<Table>,
    /// For a decoder, the token of each of a table's frequencies.
    slots: Vec<u8>,
}

const EIGHTHS: usize = EXPECTED.div_ceil(8).next_power_of_two();

impl Coder {
    pub(super) fn new(tables: &Tables, decodes: bool) -> Result<Self, Error> {
        let of_contexts = tables.of_contexts();
        let of = |k: usize| of_contexts[k / EIGHTHS * BINS + bin(8 * (k % EIGHTHS))];
        let mut coder = Coder {
            tables: memory::collect(GROUPS * EIGHTHS, (0..GROUPS * EIGHTHS).map(of))?,
            all: memory::collect(TABLES, tables.levels.iter().map(|levels| Table::new(levels)))?,
            slots: Vec::new(),
        };
        if decodes {
            memory::reserve(&mut coder.slots, coder.all.len() << FREQUENCY_BITS)?;
            for table in &coder.all {
                for (token, &(frequency, _)) in table.tokens.iter().enumerate() {
                    coder.slots.resize(coder.slots.len() + usize::from(frequency), token as u8);
                }
            }
        }
        Ok(coder)
    }

    /// Decodes a tile's residuals from its words.
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        extents: [usize; 3],
        shape: Shape<'_>,
        scratch: &mut Scratch,
        residuals: &mut [i32],
    ) -> Result<(), Damage> {
        vectorize(
            #[inline(always)]
            || {
                let (words, rest) = bytes.as_chunks::<2>();
                let ([low, high, words @ ..], [], false) = (words, rest, self.all.is_empty()) else {
                    return Err(format!("{} bytes of residuals by {} tables", bytes.len(), self.all.len()).into());
                };
                let mut state = u32::from(u16::from_le_bytes(*low)) | u32::from(u16::from_le_bytes(*high)) << 16;
                if state < LEAST {
                    return Err(format!("a state of {state}").into());
                }
                let mut at = 0;
                let mut refill = |state: u32| {
                    let word = words.get(at).map_or(0, |word| u16::from_le_bytes(*word));
                    let is_low = state < LEAST;
                    at += usize::from(is_low);
                    if is_low { state << 16 | u32::from(word) } else { state }
                };
                walk::<true>(
                    extents,
                    shape,
                    residuals,
                    &mut scratch.magnitudes,
                    &mut scratch.rows,
                    #[inline(always)]
                    |group, expected, _| {
                        let table = usize::from(self.tables[group * EIGHTHS + expected / 8]);
                        let slot = state & MASK;
                        let token = self.slots[table << FREQUENCY_BITS | slot as usize];
                        let (frequency, start) = self.all[table].tokens[usize::from(token)];
                        state = refill(u32::from(frequency) * (state >> FREQUENCY_BITS) + slot - u32::from(start));
                        let (mut bits, mut count, mut shift) = (0, tokens::bits(token), 0);
                        while count > 0 {
                            let piece = count.min(PIECE);
                            bits |= (state & ((1 << piece) - 1)) << shift;
                            state = refill(state >> piece);
                            shift += piece;
                            count -= piece;
                        }
                        tokens::residual(token, bits)
                    },
                );
                if state != LEAST || at != words.len() {
                    return Err(format!(
                        "{} words of residuals, {at} used, and a state of {state} at their end",
                        words.len()
                    )
                    .into());
                }
                Ok(())
            },
        )
    }

    /// Appends a tile's residuals, coded.
    pub(super) fn encode(&self, coded: &[(u16, i32)], words: &mut Vec<u16>, out: &mut Vec<u8>) -> Result<()> {
        words.clear();
        memory::reserve(words, 4 * coded.len())?;
        let mut state = u64::from(LEAST);
        for &(context, residual) in coded.iter().rev() {
            let (token, bits, count) = tokens::token(residual);
            let mut pieces =
                [(bits & ((1 << PIECE) - 1), count.min(PIECE)), (bits >> PIECE, count.saturating_sub(PIECE))];
            pieces.reverse();
            for (bits, count) in pieces.into_iter().filter(|piece| piece.1 > 0) {
                if state >> (32 - count) != 0 {
                    words.push(state as u16);
                    state >>= 16;
                }
                state = state << count | u64::from(bits);
            }
            let (frequency, start) =
                self.all[usize::from(self.tables[usize::from(context)])].tokens[usize::from(token)];
            let (frequency, start) = (u64::from(frequency), u64::from(start));
            if state >> (32 - FREQUENCY_BITS) >= frequency {
                words.push(state as u16);
                state >>= 16;
            }
            state = ((state / frequency) << FREQUENCY_BITS) + start + state % frequency;
        }
        memory::reserve(out, 4 + 2 * words.len())?;
        out.extend((state as u32).to_le_bytes());
        words.iter().rev().for_each(|word| out.extend(word.to_le_bytes()));
        Ok(())
    }
}

/// Working memory of one thread.
pub(super) struct Scratch {
    magnitudes: Vec<u8>,
    rows: Rows,
}

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        Ok(Scratch { magnitudes: memory::zeros(LORENZO_TILE)?, rows: Rows::default() })
    }
}

/// Appends a tile's residuals less what a filter says, or the numbers of vectors, each with its context as
/// [`Coder::encode`] wants it.
pub(super) fn contexts(
    extents: [usize; 3],
    shape: Shape<'_>,
    residuals: &mut [i32],
    scratch: &mut Scratch,
    out: &mut Vec<(u16, i32)>,
) {
    vectorize(
        #[inline(always)]
        || {
            walk::<false>(
                extents,
                shape,
                residuals,
                &mut scratch.magnitudes,
                &mut scratch.rows,
                #[inline(always)]
                |group, expected, coded| {
                    out.push(((group * EIGHTHS + expected / 8) as u16, coded));
                    coded
                },
            );
        },
    );
}

/// Counts residuals of such contexts.
pub(super) fn count(coded: &[(u16, i32)], counts: &mut Counts) {
    for &(context, residual) in coded {
        let context = usize::from(context);
        let context = context / EIGHTHS * BINS + bin(8 * (context % EIGHTHS));
        counts.add(context, tokens::class(usize::from(tokens::token(residual).0)));
    }
}

const _: () = assert!(TOKENS <= 256 && CONTEXTS <= 1 << 11 && GROUPS * EIGHTHS <= 1 << 16);
