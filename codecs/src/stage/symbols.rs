// SPDX-License-Identifier: MIT OR Apache-2.0
//! What symbols stand for. FORMAT.md of lorenzo, §3.2.
//!
//! In the order of their numbers: zeros to the end of the tile; runs of zeros by class; small residuals; escapes, the
//! large ones, two symbols for each power of two; runs again, joined with a residual of -1 or 1 behind. Short runs have
//! a class for each length, longer ones two for each power of two. What a class or an escape leaves open, its lower
//! bits, follows.

use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, LORENZO_SHORT_RUNS};

/// Zeros up to the end of the tile.
pub(crate) const END: usize = 0;
/// First symbol of runs of zeros.
pub(crate) const RUN: usize = END + 1;
/// First symbol of residuals that have one of their own: of 1 in zigzag.
pub(crate) const DIRECT: usize = RUN + LORENZO_RUNS;
/// First symbol of escapes.
pub(crate) const ESCAPE: usize = DIRECT + LORENZO_DIRECT - 1;
/// First symbol of runs joined with the residual behind them, two for each class: of -1, of 1.
pub(crate) const JOINT: usize = ESCAPE + 2 * (32 - LORENZO_DIRECT.ilog2() as usize);
/// Bits of the smallest escape below its highest one.
pub(super) const FIRST_POWER: u32 = LORENZO_DIRECT.ilog2();

/// Signed → unsigned, small stays small.
#[inline(always)]
pub(crate) fn zigzag(r: i32) -> u32 {
    ((r << 1) ^ (r >> 31)) as u32
}

/// Unsigned → signed.
#[inline(always)]
pub(crate) fn unzigzag(z: u32) -> i32 {
    (z >> 1) as i32 ^ -((z & 1) as i32)
}

/// What a codeword means: zeros, then a residual, or one of both. Neither: zeros to the end of the tile.
#[derive(Clone, Copy, Default)]
pub(super) struct Meaning {
    /// Zeros, and how many bits that follow are added to them.
    pub(super) zeros: u16,
    pub(super) run: u8,
    /// The residual in zigzag, 0 without one, and how many bits that follow belong below it.
    pub(super) z: u8,
    pub(super) escape: u8,
}

impl Meaning {
    pub(super) fn of_symbol(symbol: usize) -> Meaning {
        let zeros = |class: usize| {
            let run = run_bits(class);
            let zeros = if class < LORENZO_SHORT_RUNS { class + 1 } else { (2 + class % 2) << run };
            Meaning { zeros: zeros as u16, run: run as u8, ..Meaning::default() }
        };
        let one = |z: usize, escape: u32| Meaning { z: z as u8, escape: escape as u8, ..Meaning::default() };
        match symbol {
            END => Meaning::default(),
            RUN..DIRECT => zeros(symbol - RUN),
            DIRECT..ESCAPE => one(symbol - DIRECT + 1, 0),
            ESCAPE..JOINT => one(2 + (symbol - ESCAPE) % 2, escape_bits(symbol - ESCAPE)),
            _ => Meaning { z: 1 + (symbol - JOINT) as u8 % 2, ..zeros((symbol - JOINT) / 2) },
        }
    }
}

/// The smallest class that can say a run of `zeros` zeros, and its lower bits.
#[inline(always)]
pub(super) fn class(zeros: usize) -> (usize, usize) {
    if zeros <= LORENZO_SHORT_RUNS {
        return (zeros - 1, 0);
    }
    let lower = zeros.ilog2() as usize - 1;
    let short = LORENZO_SHORT_RUNS.ilog2() as usize;
    (LORENZO_SHORT_RUNS + 2 * (lower + 1 - short) + (zeros >> lower & 1), zeros & ((1 << lower) - 1))
}

/// Lower bits of a run.
pub(super) fn run_bits(class: usize) -> u32 {
    class.checked_sub(LORENZO_SHORT_RUNS).map_or(0, |c| LORENZO_SHORT_RUNS.ilog2() - 1 + c as u32 / 2)
}

/// Lower bits that follow a symbol.
pub(super) fn lower_bits(symbol: usize) -> u32 {
    let Meaning { run, escape, .. } = Meaning::of_symbol(symbol);
    u32::from(run) + u32::from(escape)
}

/// Lower bits of an escape; `k` is its symbol less the first.
pub(super) fn escape_bits(k: usize) -> u32 {
    FIRST_POWER - 1 + k as u32 / 2
}
