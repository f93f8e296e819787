// SPDX-License-Identifier: MIT OR Apache-2.0
//! FORMAT.md §3: head, kinds, ends, and the lengths of a tile's parts. No loops over values.

use crate::constants::{LORENZO_SYMBOLS, SUBSEQUENCE_LOG2};
use crate::error::{Damage, Error, Result};
use crate::stage::codebook::{self, Lengths};
use crate::stage::ends::Ends;

/// How a tile's residuals are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// All are 0.
    Empty,
    Huffman,
    FixedWidth,
    /// No residuals: the values themselves.
    Raw,
}

/// What predicts a tile's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    /// Differences along these axes: x is 1, y 2, z 4.
    Lorenzo(u8),
    Interpolation,
}

/// A tile's kind, §3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) predictor: Predictor,
    pub(super) class: Class,
    pub(super) outliers: bool,
}

impl Kind {
    pub(super) const RAW: Kind = Kind { predictor: Predictor::Lorenzo(0), class: Class::Raw, outliers: false };

    pub(super) fn pack(self) -> u8 {
        let predictor = match self.predictor {
            Predictor::Lorenzo(axes) => axes,
            Predictor::Interpolation => 8,
        };
        predictor | (self.class as u8) << 4 | u8::from(self.outliers) << 6
    }

    /// `None` for what no writer writes; `log` where the frame's mode is 3.
    pub(super) fn unpack(byte: u8, log: bool) -> Option<Self> {
        let kind = Kind {
            predictor: if byte & 8 != 0 { Predictor::Interpolation } else { Predictor::Lorenzo(byte & 7) },
            class: [Class::Empty, Class::Huffman, Class::FixedWidth, Class::Raw][usize::from(byte >> 4 & 3)],
            outliers: byte & 0x40 != 0,
        };
        let raw = kind.class != Class::Raw || kind == Kind::RAW;
        (kind.pack() == byte && raw && !(log && kind.predictor == Predictor::Interpolation)).then_some(kind)
    }
}

/// Appends the head, §3.2.
pub(super) fn write_head(lengths: &Lengths, gaps: bool, out: &mut Vec<u8>) {
    let symbols = lengths.iter().rposition(|&l| l > 0).map_or(0, |last| last + 1);
    out.extend([if gaps { SUBSEQUENCE_LOG2 as u8 } else { 0 }, symbols as u8]);
    out.extend(lengths[..symbols].chunks(2).map(|p| p[0] | p.get(1).unwrap_or(&0) << 4));
}

/// Reads the head: whether there are gap arrays, and the codebook's lengths.
pub(super) fn read_head(bytes: &[u8]) -> Result<(bool, Lengths)> {
    const S: &str = "lorenzo head";
    let &[subsequence, symbols, ref nibbles @ ..] = bytes else {
        return Err(Error::Length { section: S, needed: 2, got: bytes.len() as u64 });
    };
    if subsequence != 0 && u32::from(subsequence) != SUBSEQUENCE_LOG2 {
        let why = format!("subsequences of 2^{subsequence} bits; allowed are 2^{SUBSEQUENCE_LOG2} and none (0)");
        return Err(Error::corrupt(S, why));
    }
    let n = usize::from(symbols);
    if n > LORENZO_SYMBOLS {
        return Err(Error::corrupt(S, format!("a codebook of {n} symbols, limit {LORENZO_SYMBOLS}")));
    }
    if nibbles.len() != n.div_ceil(2) {
        return Err(Error::Length { section: S, needed: 2 + n.div_ceil(2) as u64, got: bytes.len() as u64 });
    }
    let mut all: Vec<u8> = nibbles.iter().flat_map(|&b| [b & 15, b >> 4]).collect();
    if all.len() > n && all.pop() != Some(0) {
        return Err(Error::corrupt(S, "bits after the codebook's last length"));
    }
    if all.last() == Some(&0) {
        return Err(Error::corrupt(S, format!("the last of {n} symbols has no codeword")));
    }
    codebook::check(&all).map_err(|why| Error::corrupt(S, why))?;
    let mut lengths = [0; LORENZO_SYMBOLS];
    lengths[..n].copy_from_slice(&all);
    Ok((subsequence != 0, lengths))
}

/// Words of one subsequence and its share of a gap array's unit.
const SUBSEQUENCE_WORDS: usize = 1 << (SUBSEQUENCE_LOG2 - 5);

/// Units of gap array that belong to a stream of `words`.
pub(super) fn gap_units(words: usize) -> usize {
    (words.div_ceil(SUBSEQUENCE_WORDS).max(1) - 1).div_ceil(4)
}

/// The gap array's units among `units` of gap array and stream together. `None` where no stream has so many.
pub(super) fn split_gaps(units: usize) -> Option<usize> {
    // Every four subsequences after the first bring one unit for their gaps.
    let group = 4 * SUBSEQUENCE_WORDS + 1;
    let gaps = units.saturating_sub(SUBSEQUENCE_WORDS).div_ceil(group);
    (units > gaps && gap_units(units - gaps) == gaps).then_some(gaps)
}

/// Where the tiles are, and what.
pub(super) struct Tiles<'a> {
    kinds: &'a [u8],
    ends: Ends<'a>,
    log: bool,
}

impl<'a> Tiles<'a> {
    /// Checks the sections' lengths, and that the ends rise to the payload's.
    pub(super) fn new([kinds, ends, payload]: [&'a [u8]; 3], tiles: usize, log: bool) -> Result<Self> {
        if kinds.len() != tiles {
            return Err(Error::Length { section: "lorenzo kinds", needed: tiles as u64, got: kinds.len() as u64 });
        }
        Ok(Tiles { kinds, ends: Ends::new("lorenzo ends", ends, payload, tiles)?, log })
    }

    /// A tile's kind, the payload section from its first byte on, and its length.
    pub(super) fn tile(&self, tile: usize) -> Result<(Kind, &'a [u8], usize), Damage> {
        let byte = self.kinds[tile];
        let kind = Kind::unpack(byte, self.log).ok_or_else(|| format!("kind {byte:#04x}"))?;
        let (bytes, len) = self.ends.tile(tile);
        Ok((kind, bytes, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_packing_and_nothing_else_is_read() {
        let good = (0..=255).filter(|&b| Kind::unpack(b, false).is_some_and(|k| k.pack() == b)).count();
        assert_eq!(good, 9 * 3 * 2 + 1);
        assert_eq!((0..=255).filter(|&b| Kind::unpack(b, true).is_some()).count(), 8 * 3 * 2 + 1);
    }

    #[test]
    fn gap_arrays_and_streams_are_told_apart_by_their_sum() {
        let mut sums = std::collections::HashSet::new();
        for words in 1..20_000 {
            let gaps = gap_units(words);
            assert!(gaps * 4 >= words.div_ceil(16) - 1 && gaps * 4 < words.div_ceil(16) + 3);
            assert_eq!(split_gaps(words + gaps), Some(gaps), "{words}");
            sums.insert(words + gaps);
        }
        for units in 0..20_000 {
            assert_eq!(split_gaps(units).is_some(), sums.contains(&units), "{units}");
        }
    }

    #[test]
    fn heads_are_checked() {
        let mut lengths = [0; LORENZO_SYMBOLS];
        (lengths[0], lengths[3], lengths[14]) = (1, 2, 2);
        let mut head = Vec::new();
        write_head(&lengths, true, &mut head);
        assert_eq!(head, [9, 15, 1, 0x20, 0, 0, 0, 0, 0, 2]);
        assert_eq!(read_head(&head).unwrap(), (true, lengths));
        for (at, byte, name) in [
            (0, 8, "subsequences"),
            (1, 100, "100 symbols"),
            (9, 0x12, "after"),
            (9, 0, "no codeword"),
            (2, 2, "under-full"),
            (2, 0x11, "over-full"),
            (2, 12, "too long"),
        ] {
            let mut bad = head.clone();
            bad[at] = byte;
            if at == 1 {
                bad.resize(52, 0);
            }
            let why = read_head(&bad).unwrap_err().to_string();
            assert!(why.contains(name), "{why}");
        }
        for cut in 0..head.len() {
            read_head(&head[..cut]).unwrap_err();
        }
        assert_eq!(read_head(&[0, 0]).unwrap(), (false, [0; LORENZO_SYMBOLS]));
    }
}
