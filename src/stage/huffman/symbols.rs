// SPDX-License-Identifier: MIT OR Apache-2.0
//! What symbols stand for: runs of zeros, residuals, escapes. FORMAT.md of lorenzo, §3.2.

use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, SUBSEQUENCE_LOG2};

/// First symbol of escapes.
pub(super) const ESCAPE: usize = LORENZO_RUNS + LORENZO_DIRECT - 1;
/// Bits of the smallest escape below its highest one.
pub(super) const FIRST_POWER: u32 = LORENZO_DIRECT.ilog2();
/// Bits of a subsequence.
pub(super) const SUBSEQUENCE: usize = 1 << SUBSEQUENCE_LOG2;

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

/// Bits of an escape below those that its symbol tells; `k` is the symbol less the first.
#[inline(always)]
pub(super) fn lower_bits(k: usize) -> u32 {
    FIRST_POWER + k as u32 / 2 - 1
}
