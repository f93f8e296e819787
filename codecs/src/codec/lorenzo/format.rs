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
pub(crate) enum Class {
    /// All are 0.
    Empty,
    /// As the codec's [`Coding`] does it.
    Coded,
    /// In `lorenzo` with a fixed width, in `dense` vectors.
    Other,
    /// No residuals: the values themselves.
    Raw,
}

/// What predicts a tile's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predictor {
    /// Differences along these axes: x is 1, y 2, z 4.
    Lorenzo(u8),
    /// Along at least one axis.
    Interpolation(Way),
}

/// A tile's kind, §3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) predictor: Predictor,
    pub(crate) class: Class,
    pub(crate) outliers: bool,
}

impl Kind {
    pub(crate) const RAW: Kind = Kind { predictor: Predictor::Lorenzo(0), class: Class::Raw, outliers: false };

    pub(crate) fn pack(self) -> u8 {
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
            class: [Class::Empty, Class::Coded, Class::Other, Class::Raw][usize::from(byte >> 4 & 3)],
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

/// Appends a codebook, §3.2.
pub(super) fn write_codebook(lengths: &Lengths, out: &mut Vec<u8>) {
    let symbols = codebook::symbols(lengths);
    out.push(symbols as u8);
    out.extend(lengths[..symbols].chunks(2).map(|p| p[0] | p.get(1).unwrap_or(&0) << 4));
}

/// Appends the base that ends a head; 0 for none.
pub(crate) fn write_base<S: Scalar>(base: S, out: &mut Vec<u8>) {
    if base != S::ZERO {
        out.extend(&base.bits().to_u64().to_le_bytes()[..S::SIZE]);
    }
}

/// A head's codebook, and its base, where there are bytes for one of `size` bytes behind that; `log` where the frame's
/// mode is 3, which has none.
pub fn split_head(head: &[u8], size: usize, log: bool) -> Result<(&[u8], f64)> {
    split_head_at(codebook_len(head), head, size, log)
}

/// Bytes of the codebook at the beginning of a head.
pub(super) fn codebook_len(head: &[u8]) -> usize {
    head.first().map_or(0, |&n| 1 + usize::from(n).div_ceil(2))
}

/// The same where the base begins behind `end` bytes.
pub(super) fn split_head_at(end: usize, head: &[u8], size: usize, log: bool) -> Result<(&[u8], f64)> {
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

/// Reads the head: what residuals are coded with, and the base.
pub(super) fn read_head<S: Scalar, C: Coding>(bytes: &[u8], log: bool) -> Result<(C, f64)> {
    let (coding, base) = split_head_at(C::head_len(bytes), bytes, S::SIZE, log)?;
    Ok((C::read(coding)?, base))
}

const HEAD: &str = "lorenzo head";

pub(super) fn read_codebook(bytes: &[u8]) -> Result<Lengths> {
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

/// How a codec that has `lorenzo`'s tiles codes their residuals.
pub(crate) trait Coding: Sized + Sync {
    /// Names of the sections, for errors.
    const SECTIONS: [&'static str; 4];
    /// Bytes that lengths of payloads count.
    const UNIT: u32;
    /// Whether a tile of Lorenzo prediction may say that its residuals are less a filter's sum.
    const FILTERED: bool;
    /// Memory for a tile's residuals, and working memory.
    type Scratch: AsMut<[i32]>;

    /// The head's bytes before the base.
    fn head_len(head: &[u8]) -> usize;
    /// What the head says, all checked.
    fn read(head: &[u8]) -> Result<Self>;
    fn scratch() -> Result<Self::Scratch>;
    /// Decodes residuals of the class [`Class::Coded`], `len` bytes at the head of `bytes`, over zeros.
    fn residuals(
        &self,
        tile: &Coded<'_>,
        bytes: &[u8],
        len: usize,
        extents: [usize; 3],
        scratch: &mut Self::Scratch,
    ) -> Result<(), Damage>;
}

/// Bytes of the lengths and of the starts of `tiles` tiles, at least one.
pub fn lengths_len(tiles: usize) -> [usize; 2] {
    [4 * tiles.div_ceil(2), 4 * (tiles.div_ceil(LORENZO_START_EVERY) - 1)]
}

/// Appends the lengths of payloads, in the codec's units, and the starts.
pub(crate) fn write_lengths(lengths: impl Iterator<Item = u32> + Clone, tiles: usize, out: &mut Vec<u8>) -> Result<()> {
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
    is_filtered: bool,
    unit: u32,
}

impl<'a> Tiles<'a> {
    /// Checks the sections' lengths, and that the tiles' payloads lie one behind the other up to the end.
    pub(super) fn new<C: Coding>([kinds, table, payload]: [&'a [u8]; 3], tiles: usize, log: bool) -> Result<Self> {
        let [_, in_kinds, in_lengths, in_payload] = C::SECTIONS;
        if kinds.len() != tiles {
            return Err(Error::Length { section: in_kinds, needed: tiles as u64, got: kinds.len() as u64 });
        }
        let [first, starts] = lengths_len(tiles);
        if table.len() != first + starts {
            return Err(Error::Length {
                section: in_lengths,
                needed: (first + starts) as u64,
                got: table.len() as u64,
            });
        }
        let (lengths, starts) = table.split_at(first);
        let (lengths, rest) = lengths.as_chunks().0.split_at(tiles);
        if rest.iter().any(|&r| r != [0; 2]) {
            return Err(Error::corrupt(in_lengths, "bits behind the lengths"));
        }
        let starts = starts.as_chunks().0;
        let tiles = Tiles { kinds, lengths, starts, payload, log, is_filtered: C::FILTERED, unit: C::UNIT };
        let mut end = 0;
        for (k, part) in lengths.chunks(LORENZO_START_EVERY).enumerate() {
            let start = tiles.start(k);
            if start != end {
                let why = format!("tile {} starts at {start}, its predecessor ends at {end}", k * LORENZO_START_EVERY);
                return Err(Error::corrupt(in_lengths, why));
            }
            end += tiles.sum(part);
        }
        if end != payload.len() as u64 {
            return Err(Error::Length { section: in_payload, needed: end, got: payload.len() as u64 });
        }
        Ok(tiles)
    }

    /// Where the payload of tile `k` times [`LORENZO_START_EVERY`] begins.
    fn start(&self, k: usize) -> u64 {
        if k == 0 { 0 } else { u64::from(self.unit) * u64::from(u32::from_le_bytes(self.starts[k - 1])) }
    }

    /// Bytes that payloads of these lengths take together.
    fn sum(&self, lengths: &[[u8; 2]]) -> u64 {
        // 64 of them are below 2^24 bytes.
        lengths.iter().map(|&l| self.unit * u32::from(u16::from_le_bytes(l))).sum::<u32>().into()
    }

    /// A tile as it is stored.
    pub(super) fn tile(&self, tile: usize) -> Result<Coded<'a>, Damage> {
        let byte = self.kinds[tile];
        let filtered = self.is_filtered && byte & 0x88 == FILTERED;
        let kind = Kind::unpack(if filtered { byte ^ FILTERED } else { byte }, self.log);
        let is_known = |kind: &Kind| match kind.class {
            Class::Coded => true,
            Class::Other => !self.is_filtered || kind.predictor == Predictor::Lorenzo(0) && !filtered,
            _ => !filtered,
        };
        let kind = kind.filter(is_known).ok_or_else(|| format!("kind {byte:#04x}"))?;
        let k = tile / LORENZO_START_EVERY;
        let start = self.start(k) + self.sum(&self.lengths[k * LORENZO_START_EVERY..tile]);
        let len = self.sum(&self.lengths[tile..=tile]) as usize;
        Ok(Coded { kind, filtered, bytes: &self.payload[start as usize..], len })
    }
}

/// The bit of a kind that says of Lorenzo prediction that residuals are less a filter's sum.
pub(crate) const FILTERED: u8 = 0x80;

/// A tile as it is stored: its payload is the first `len` of the bytes.
pub(crate) struct Coded<'a> {
    pub(crate) kind: Kind,
    pub(crate) filtered: bool,
    pub(super) bytes: &'a [u8],
    pub(super) len: usize,
}
