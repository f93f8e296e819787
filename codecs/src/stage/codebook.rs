// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symbol counts → canonical codebook with codewords of limited length, and the checks of one that was read.
//!
//! Lengths are the best that the limit allows, by package-merge (Larmore & Hirschberg, JACM 37(3), 1990,
//! doi:10.1145/79147.79150). The first list has the n symbols in use by weight. As often as the limit has further bits,
//! the next list is the symbols again, merged by weight with the pairs of neighbours of the list before. The first 2n −
//! 2 entries of the last list are taken, and with a pair both entries that it is made of; a codeword has as many bits
//! as its symbol is taken times. Ties: among symbols by number, and symbols before pairs; so every writer finds the
//! same lengths.
//!
//! A run of zeros and the -1 or 1 behind it may have a codeword together or one each. Both codebooks are made, and a
//! chunk takes the one that needs fewer bits, its own lengths among them.
//!
//! Codewords are canonical: in the order of length, then of symbol, each is the one before plus 1, with a zero appended
//! for each bit that it is longer. So lengths alone are stored, and a frame's must fill the tree: Σ 2^-length = 1.

use super::symbols::{DIRECT, JOINT, RUN, lower_bits};
use crate::constants::{CODEWORD_LIMIT, LORENZO_SYMBOLS};
use crate::error::Damage;

/// Lengths of the codewords, in bits; 0 is not in use.
pub(crate) type Lengths = [u8; LORENZO_SYMBOLS];

/// The lengths of the codebook that a chunk takes, from its counts with joint symbols. With it, joint symbols that
/// occur have codewords, or none has.
pub fn choose_codebook(joint: &[u64; LORENZO_SYMBOLS]) -> Lengths {
    if joint[JOINT..].iter().all(|&count| count == 0) {
        return lengths(joint);
    }
    let apart = apart(joint);
    // Bits of the codewords, and four in the head for each symbol up to the last one in use.
    let bits = |counts: &[u64; LORENZO_SYMBOLS], lengths: &Lengths| {
        let words: u64 = counts.iter().zip(lengths).map(|(c, &l)| c * u64::from(l)).sum();
        words + 4 * symbols(lengths) as u64
    };
    let (with, without) = (lengths(joint), lengths(&apart));
    if bits(&apart, &without) < bits(joint, &with) { without } else { with }
}

/// Counts without joint symbols.
fn apart(joint: &[u64; LORENZO_SYMBOLS]) -> [u64; LORENZO_SYMBOLS] {
    let mut apart = *joint;
    for symbol in JOINT..LORENZO_SYMBOLS {
        let count = std::mem::take(&mut apart[symbol]);
        apart[RUN + (symbol - JOINT) / 2] += count;
        apart[DIRECT + (symbol - JOINT) % 2] += count;
    }
    apart
}

/// Bits of a stream by a codebook, from its counts with joint symbols.
pub(crate) fn stream_bits(joint: &[u64; LORENZO_SYMBOLS], lengths: &Lengths) -> u64 {
    let counts = if symbols(lengths) > JOINT { *joint } else { apart(joint) };
    let bits = |(symbol, &len): (usize, &u8)| counts[symbol] * u64::from(u32::from(len) + lower_bits(symbol));
    lengths.iter().enumerate().map(bits).sum()
}

/// How many symbols there are up to the last one in use.
pub(crate) fn symbols(lengths: &Lengths) -> usize {
    lengths.iter().rposition(|&l| l > 0).map_or(0, |last| last + 1)
}

/// The best lengths for symbols that occur `counts` times. All 0 where nothing occurs; never a single symbol alone.
fn lengths(counts: &[u64; LORENZO_SYMBOLS]) -> Lengths {
    let mut leaves: Vec<(u64, usize)> =
        (0..LORENZO_SYMBOLS).filter(|&s| counts[s] > 0).map(|s| (counts[s], s)).collect();
    let mut out = [0; LORENZO_SYMBOLS];
    match leaves[..] {
        [] => return out,
        [(_, only)] => {
            // A codebook of one codeword would leave half of all bits without meaning.
            out[only] = 1;
            out[usize::from(only == 0)] = 1;
            return out;
        }
        _ => leaves.sort_unstable(),
    }
    let n = leaves.len();
    // Of each list, which entries are pairs of the list before; the others are symbols in their order.
    let mut levels = [[false; 2 * LORENZO_SYMBOLS]; CODEWORD_LIMIT as usize];
    let mut list: Vec<u64> = leaves.iter().map(|&(weight, _)| weight).collect();
    for is_pair in &mut levels[1..] {
        let pairs: Vec<u64> = list.chunks_exact(2).map(|p| p[0] + p[1]).collect();
        list.clear();
        let (mut i, mut p) = (0, 0);
        while i < n || p < pairs.len() {
            let leaf = p == pairs.len() || (i < n && leaves[i].0 <= pairs[p]);
            is_pair[list.len()] = !leaf;
            list.push(if leaf { leaves[i].0 } else { pairs[p] });
            i += usize::from(leaf);
            p += usize::from(!leaf);
        }
    }
    // The entries taken of each list are its first ones: first symbols, then whole pairs.
    let mut take = 2 * n - 2;
    for is_pair in levels.iter().rev() {
        let pairs = is_pair[..take].iter().filter(|&&p| p).count();
        for &(_, symbol) in &leaves[..take - pairs] {
            out[symbol] += 1;
        }
        take = 2 * pairs;
    }
    out
}

/// Codewords with their first bit lowest, as a stream holds them.
pub fn codewords(lengths: &Lengths) -> [u16; LORENZO_SYMBOLS] {
    let mut out = [0; LORENZO_SYMBOLS];
    let mut next = 0u32;
    for length in 1..=CODEWORD_LIMIT {
        next <<= 1;
        for (symbol, _) in lengths.iter().enumerate().filter(|&(_, &l)| u32::from(l) == length) {
            out[symbol] = (next as u16).reverse_bits() >> (16 - length);
            next += 1;
        }
    }
    out
}

/// Refuses lengths that are no whole codebook. All 0 is allowed: there is no stream then.
pub(crate) fn check(lengths: &[u8]) -> Result<(), Damage> {
    if let Some(symbol) = lengths.iter().position(|&l| u32::from(l) > CODEWORD_LIMIT) {
        return Err(format!(
            "the codebook is too long: a codeword of {} bits for symbol {symbol}, limit {CODEWORD_LIMIT}",
            lengths[symbol]
        )
        .into());
    }
    let full = 1u32 << CODEWORD_LIMIT;
    let used: u32 = lengths.iter().filter(|&&l| l > 0).map(|&l| full >> l).sum();
    let state = match used {
        _ if used > full => "over-full",
        _ if used < full && !lengths.is_empty() => "under-full",
        _ => return Ok(()),
    };
    Err(format!("the codebook is {state}: codewords for {used} of {full} patterns of {CODEWORD_LIMIT} bits").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(usize, u64)]) -> [u64; LORENZO_SYMBOLS] {
        let mut counts = [0; LORENZO_SYMBOLS];
        pairs.iter().for_each(|&(s, c)| counts[s] = c);
        counts
    }

    /// Bits of an unlimited Huffman code: the sum of all merged weights.
    fn huffman(counts: &[u64]) -> u64 {
        let mut w: Vec<u64> = counts.iter().copied().filter(|&c| c > 0).collect();
        let mut bits = 0;
        while w.len() > 1 {
            w.sort_unstable_by(|a, b| b.cmp(a));
            let pair = w.pop().unwrap() + w.pop().unwrap();
            bits += pair;
            w.push(pair);
        }
        bits
    }

    #[test]
    fn lengths_are_whole_limited_and_best() {
        let mut state = 1u64;
        for round in 0..300usize {
            let mut counts = [0; LORENZO_SYMBOLS];
            for c in counts.iter_mut().take(2 + round % 98) {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *c = 1 + (state >> 40 >> (state >> 59));
            }
            let l = lengths(&counts);
            check(&l).unwrap();
            let bits: u64 = counts.iter().zip(l).map(|(c, l)| c * u64::from(l)).sum();
            let best = huffman(&counts);
            assert!(bits >= best && (bits as f64) < best as f64 * 1.05, "round {round}: {bits}, unlimited {best}");
            if u32::from(*l.iter().max().unwrap()) < CODEWORD_LIMIT {
                assert_eq!(bits, best, "round {round}");
            }
        }
    }

    #[test]
    fn steep_counts_stop_at_the_limit() {
        let mut counts = [0; LORENZO_SYMBOLS];
        counts.iter_mut().take(60).enumerate().for_each(|(i, c)| *c = 1 << i);
        let l = lengths(&counts);
        check(&l).unwrap();
        assert_eq!(l.iter().max(), Some(&(CODEWORD_LIMIT as u8)));
        assert_eq!(l[59], 1);
    }

    #[test]
    fn ties_break_by_symbol() {
        let l = lengths(&of(&[(3, 1), (5, 1), (9, 1)]));
        assert_eq!((l[3], l[5], l[9]), (2, 2, 1));
        let c = codewords(&l);
        assert_eq!((c[9], c[3], c[5]), (0b0, 0b01, 0b11));
        assert_eq!(lengths(&[0; LORENZO_SYMBOLS]), [0; LORENZO_SYMBOLS]);
        let l = lengths(&of(&[(7, 100)]));
        assert_eq!((l[0], l[7]), (1, 1));
        let l = lengths(&of(&[(0, 1)]));
        assert_eq!((l[0], l[1]), (1, 1));
    }

    #[test]
    fn joint_symbols_are_taken_where_they_save_bits() {
        // Each run has its residual: one codeword of one bit for two of one and two.
        let l = choose_codebook(&of(&[(JOINT + 6, 900), (DIRECT + 9, 500)]));
        assert_eq!((l[JOINT + 6], l[DIRECT + 9], l[RUN + 3]), (1, 1, 0));
        // Only two of them: the lengths of 160 symbols cost more than two codewords.
        let l = choose_codebook(&of(&[(JOINT + 39, 2), (RUN + 19, 300), (DIRECT + 1, 300)]));
        assert_eq!((l[JOINT + 39], l[RUN + 19], l[DIRECT + 1]), (0, 1, 1));
        assert_eq!(choose_codebook(&[0; LORENZO_SYMBOLS]), [0; LORENZO_SYMBOLS]);
        // 112 + 200 + 4 · 128 bits or 4 · 112 + 200 + 4 · 44: equal, and joint symbols are taken.
        let taken = |count| choose_codebook(&of(&[(JOINT + 7, count), (DIRECT + 8, 200)]))[JOINT + 7];
        assert_eq!([111, 112].map(taken), [0, 1]);
    }
}
