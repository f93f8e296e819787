// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows in blocks of a few constant lengths.

/// Length of the longest blocks.
pub(super) const BLOCK: usize = 16;

/// Calls `f` with the starts of blocks that cover 0 to n − 1, and their length, a constant. The last one overlaps the
/// one before it: a loop over what is left would cost more than all blocks of a short row. What `f` makes should be
/// written at once: compilers make vectors of a short loop only where its stores cannot change what it loads.
#[inline(always)]
pub(super) fn in_blocks(n: usize, f: impl FnMut(usize, usize)) {
    match n {
        0..4 => blocks(n, 1, f),
        4..8 => blocks(n, 4, f),
        8..BLOCK => blocks(n, 8, f),
        _ => blocks(n, BLOCK, f),
    }
}

#[inline(always)]
fn blocks(n: usize, len: usize, mut f: impl FnMut(usize, usize)) {
    let mut at = 0;
    while at < n {
        f(at.min(n - len), len);
        at += len;
    }
}
