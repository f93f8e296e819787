// SPDX-License-Identifier: MIT OR Apache-2.0
//! FORMAT.md §3: head, kinds, lengths, and the lengths of a tile's parts. No loops over values.
//!
//! A tile's payload is found from the last start before it, plus the lengths of up to 63 tiles from there on. All are
//! checked once, before any tile is looked for.

use crate::constants::{LORENZO_START_EVERY, LORENZO_SYMBOLS};
use crate::error::{Damage, Error, Result};
use crate::memory;
use crate::scalar::{Bits, Scalar};
use crate::stage::codebook::{self, Lengths};
use crate::stage::interpolate::Way;
use crate::stage::quantize::NO_BASE;

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
    /// Along at least one axis.
    Interpolation(Way),
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
            Predictor::Interpolation(Way { axes, finer }) => 8 | axes | u8::from(finer) << 7,
        };
        predictor | (self.class as u8) << 4 | u8::from(self.outliers) << 6
    }

    /// `None` for what no writer writes; `log` where the frame's mode is 3.
    pub(super) fn unpack(byte: u8, log: bool) -> Option<Self> {
        let kind = Kind {
            predictor: match byte & 8 {
                0 => Predictor::Lorenzo(byte & 7),
                _ => Predictor::Interpolation(Way { axes: byte & 7, finer: byte & 0x80 != 0 }),
            },
            class: [Class::Empty, Class::Huffman, Class::FixedWidth, Class::Raw][usize::from(byte >> 4 & 3)],
            outliers: byte & 0x40 != 0,
        };
        let raw = kind.class != Class::Raw || kind == Kind::RAW;
        let interpolated = match kind.predictor {
            Predictor::Interpolation(way) => way.axes != 0 && !log,
            Predictor::Lorenzo(_) => true,
        };
        (kind.pack() == byte && raw && interpolated).then_some(kind)
    }
}

/// Appends the head, §3.2; `base` is 0 for none.
pub(super) fn write_head<S: Scalar>(lengths: &Lengths, base: S, out: &mut Vec<u8>) {
    let symbols = codebook::symbols(lengths);
    out.push(symbols as u8);
    out.extend(lengths[..symbols].chunks(2).map(|p| p[0] | p.get(1).unwrap_or(&0) << 4));
    if base != S::ZERO {
        out.extend(&base.bits().to_u64().to_le_bytes()[..S::SIZE]);
    }
}

/// A head's codebook, and its base, where there are bytes for one of `size` bytes behind that; `log` where the frame's
/// mode is 3, which has none.
pub fn split_head(head: &[u8], size: usize, log: bool) -> Result<(&[u8], f64)> {
    let end = head.first().map_or(0, |&n| 1 + usize::from(n).div_ceil(2));
    if log || head.len() != end + size {
        return Ok((head, NO_BASE));
    }
    let (codebook, bytes) = head.split_at(end);
    let mut bits = [0; 8];
    bits[..size].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(bits);
    let base = if size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) };
    if base == 0.0 || !base.is_finite() {
        return Err(Error::corrupt(HEAD, format!("{base} as the base")));
    }
    Ok((codebook, base))
}

/// Reads the head: the codebook's lengths, and the base.
pub(super) fn read_head<S: Scalar>(bytes: &[u8], log: bool) -> Result<(Lengths, f64)> {
    let (codebook, base) = split_head(bytes, S::SIZE, log)?;
    Ok((read_codebook(codebook)?, base))
}

const HEAD: &str = "lorenzo head";

fn read_codebook(bytes: &[u8]) -> Result<Lengths> {
    const S: &str = HEAD;
    let Some((&symbols, nibbles)) = bytes.split_first() else {
        return Err(Error::Length { section: S, needed: 1, got: 0 });
    };
    let n = usize::from(symbols);
    if n > LORENZO_SYMBOLS {
        return Err(Error::corrupt(S, format!("a codebook of {n} symbols, limit {LORENZO_SYMBOLS}")));
    }
    if nibbles.len() != n.div_ceil(2) {
        return Err(Error::Length { section: S, needed: 1 + n.div_ceil(2) as u64, got: bytes.len() as u64 });
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
    Ok(lengths)
}

/// Bytes of the lengths and of the starts of `tiles` tiles, at least one.
pub fn lengths_len(tiles: usize) -> [usize; 2] {
    [4 * tiles.div_ceil(2), 4 * (tiles.div_ceil(LORENZO_START_EVERY) - 1)]
}

/// Appends the lengths of payloads, in units of four bytes, and the starts.
pub(super) fn write_lengths(lengths: impl Iterator<Item = u32> + Clone, tiles: usize, out: &mut Vec<u8>) -> Result<()> {
    let before = out.len();
    let [first, starts] = lengths_len(tiles);
    memory::reserve(out, first + starts)?;
    lengths.clone().for_each(|len| out.extend((len as u16).to_le_bytes()));
    out.resize(before + first, 0);
    let mut start = 0u32;
    for (tile, len) in lengths.enumerate() {
        if tile > 0 && tile % LORENZO_START_EVERY == 0 {
            out.extend(start.to_le_bytes());
        }
        start += len;
    }
    Ok(())
}

/// Where the tiles are, and what.
pub(super) struct Tiles<'a> {
    kinds: &'a [u8],
    lengths: &'a [[u8; 2]],
    starts: &'a [[u8; 4]],
    payload: &'a [u8],
    log: bool,
}

impl<'a> Tiles<'a> {
    /// Checks the sections' lengths, and that the tiles' payloads lie one behind the other up to the end.
    pub(super) fn new([kinds, table, payload]: [&'a [u8]; 3], tiles: usize, log: bool) -> Result<Self> {
        const S: &str = "lorenzo lengths";
        if kinds.len() != tiles {
            return Err(Error::Length { section: "lorenzo kinds", needed: tiles as u64, got: kinds.len() as u64 });
        }
        let [first, starts] = lengths_len(tiles);
        if table.len() != first + starts {
            return Err(Error::Length { section: S, needed: (first + starts) as u64, got: table.len() as u64 });
        }
        let (lengths, starts) = table.split_at(first);
        let (lengths, rest) = lengths.as_chunks().0.split_at(tiles);
        if rest.iter().any(|&r| r != [0; 2]) {
            return Err(Error::corrupt(S, "bits behind the lengths"));
        }
        let tiles = Tiles { kinds, lengths, starts: starts.as_chunks().0, payload, log };
        let mut end = 0;
        for (k, part) in lengths.chunks(LORENZO_START_EVERY).enumerate() {
            let start = tiles.start(k);
            if start != end {
                let why = format!("tile {} starts at {start}, its predecessor ends at {end}", k * LORENZO_START_EVERY);
                return Err(Error::corrupt(S, why));
            }
            end += sum(part);
        }
        if end != payload.len() as u64 {
            return Err(Error::Length { section: "lorenzo payload", needed: end, got: payload.len() as u64 });
        }
        Ok(tiles)
    }

    /// Where the payload of tile `k` times [`LORENZO_START_EVERY`] begins.
    fn start(&self, k: usize) -> u64 {
        if k == 0 { 0 } else { 4 * u64::from(u32::from_le_bytes(self.starts[k - 1])) }
    }

    /// A tile as it is stored.
    pub(super) fn tile(&self, tile: usize) -> Result<Coded<'a>, Damage> {
        let byte = self.kinds[tile];
        let kind = Kind::unpack(byte, self.log).ok_or_else(|| format!("kind {byte:#04x}"))?;
        let k = tile / LORENZO_START_EVERY;
        let start = self.start(k) + sum(&self.lengths[k * LORENZO_START_EVERY..tile]);
        let len = sum(&self.lengths[tile..=tile]) as usize;
        Ok(Coded { kind, bytes: &self.payload[start as usize..], len })
    }
}

/// A tile as it is stored: its payload is the first `len` of the bytes.
pub(super) struct Coded<'a> {
    pub(super) kind: Kind,
    pub(super) bytes: &'a [u8],
    pub(super) len: usize,
}

/// Bytes that payloads of these lengths take together.
fn sum(lengths: &[[u8; 2]]) -> u64 {
    // 64 of them are below 2^24 bytes.
    lengths.iter().map(|&l| 4 * u32::from(u16::from_le_bytes(l))).sum::<u32>().into()
}
