// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals ⇄ symbols ⇄ a stream of codewords, with or without a gap array.
//!
//! Zeros are counted and written as runs of powers of two, so that a smooth tile costs far less than a bit a value. A
//! residual beyond the symbols of its own (an escape) is the symbol of its size and its lower bits.

mod decode;
mod encode;

pub(crate) use decode::{Buffer, Decoder, buffers};
pub(crate) use encode::{Encoder, Histogram, gaps_capacity, stream_capacity, symbols};

use crate::constants::{LORENZO_DIRECT, LORENZO_RUNS, SUBSEQUENCE_LOG2};

/// First symbol of escapes.
const ESCAPE: usize = LORENZO_RUNS + LORENZO_DIRECT - 1;
/// Bits of the smallest escape below its highest one.
const FIRST_POWER: u32 = LORENZO_DIRECT.ilog2();
/// Bits of a subsequence.
const SUBSEQUENCE: usize = 1 << SUBSEQUENCE_LOG2;

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
fn lower_bits(k: usize) -> u32 {
    FIRST_POWER + k as u32 / 2 - 1
}
