// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a tile's payload while it is being written, and how a bit plane is stored. FORMAT.md §3.2, §8.3.
//!
//! A plane is absent, sparse (a ballot, a nibble for each word that is not 0 and the bytes that are not 0), or full
//! where that is shorter. Once a plane of a block is full, those after it are too, but for absent ones: they are noise,
//! and nobody looks at them.

use super::bitplanes::BitPlane;
use super::fields::Bits;
use super::format::Mode;
use super::shape::BLOCKS;
use crate::constants::{PLANES_BYTES, PLANES_FULL, PLANES_LANES};
use crate::error::Result;
use crate::memory;
use crate::stage::pack::{self, Bytes};

/// Most slices of a tile.
pub(super) const SLICES: usize = 2 * BLOCKS;
/// Most bit planes of a tile, masks counted.
const PLANES: usize = 8 * SLICES + BLOCKS;

/// The parts *modes* to *bits* of one tile.
pub(super) struct Parts {
    modes: [u16; SLICES],
    slices: usize,
    ballots: Vec<u32>,
    nibbles: Nibbles,
    full: Vec<u32>,
    /// Bytes up to `bytes_len`; a fixed length, because packing writes beyond the end.
    bytes: Vec<u8>,
    bytes_len: usize,
    pub(super) bits: Bits,
}

impl Parts {
    pub(super) fn new() -> Result<Self> {
        let bytes = PLANES_BYTES + BLOCKS * pack::PLANE;
        Ok(Parts {
            modes: [0; SLICES],
            slices: 0,
            ballots: memory::with_capacity(PLANES)?,
            nibbles: Nibbles { words: memory::with_capacity(bytes / 8 + 1)?, last: 0, bits: 0 },
            full: memory::with_capacity(PLANES * PLANES_LANES)?,
            bytes: memory::zeros(bytes + pack::PLANE + pack::SLACK)?,
            bytes_len: 0,
            bits: Bits::new()?,
        })
    }

    pub(super) fn clear(&mut self) {
        self.slices = 0;
        self.ballots.clear();
        self.nibbles.words.clear();
        (self.nibbles.last, self.nibbles.bits) = (0, 0);
        self.full.clear();
        self.bytes_len = 0;
        self.bits.clear();
    }

    /// Whether all planes so far are absent.
    pub(super) fn nothing(&self) -> bool {
        self.ballots.is_empty() && self.full.is_empty()
    }

    /// Adds the modes of a block's slices.
    pub(super) fn modes(&mut self, modes: &[u16]) {
        self.modes[self.slices..][..modes.len()].copy_from_slice(modes);
        self.slices += modes.len();
    }

    /// Stores the next bit plane of a block, of which a plane before was `full`, and returns its mode.
    #[inline(always)]
    pub(super) fn plane(&mut self, full: &mut bool, plane: &BitPlane, unit: impl Bytes) -> Mode {
        let mode = self.store(plane, *full, PLANES_BYTES, unit);
        *full |= mode == Mode::Full;
        mode
    }

    /// Stores a mask and returns its mode.
    #[inline(always)]
    pub(super) fn mask(&mut self, plane: &BitPlane, unit: impl Bytes) -> Mode {
        self.store(plane, false, usize::MAX, unit)
    }

    #[inline(always)]
    fn store(&mut self, plane: &BitPlane, full: bool, most: usize, unit: impl Bytes) -> Mode {
        let bytes = bytes_of(plane);
        let mask = unit.nonzero(&bytes);
        if mask == 0 {
            return Mode::Absent;
        }
        if full || self.does_not_pay(mask, most) {
            self.full.extend_from_slice(plane);
            return Mode::Full;
        }
        self.ballots.push(ballot_of(mask));
        self.nibbles.push(mask as u64);
        self.nibbles.push((mask >> 64) as u64);
        let to = self.bytes[self.bytes_len..].first_chunk_mut().expect("place for a plane");
        unit.compress(&bytes, mask, to);
        self.bytes_len += mask.count_ones() as usize;
        Mode::Sparse
    }

    /// Whether a plane with these bytes is stored as it is.
    #[inline(always)]
    fn does_not_pay(&self, mask: u128, most: usize) -> bool {
        let (n, m) = (lanes_of(mask).count_ones() as usize, mask.count_ones() as usize);
        8 + n + 2 * m >= PLANES_FULL || self.bytes_len + m > most
    }

    /// Words of all parts.
    pub(super) fn len(&self) -> usize {
        self.slices.div_ceil(2)
            + self.ballots.len()
            + self.nibbles.len()
            + self.full.len()
            + self.bytes_len.div_ceil(4)
            + self.bits.bytes().len() / 4
    }

    /// Appends the parts to `out`, which has room for them.
    #[inline(always)]
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        let modes = &self.modes[..self.slices];
        modes.iter().for_each(|m| out.extend_from_slice(&m.to_le_bytes()));
        if self.slices % 2 == 1 {
            out.extend_from_slice(&[0; 2]);
        }
        append_words(&self.ballots, out);
        append_words(&self.nibbles.words, out);
        if self.nibbles.bits > 0 {
            append_words(&[self.nibbles.last as u32], out);
        }
        append_words(&self.full, out);
        out.extend_from_slice(&self.bytes[..self.bytes_len]);
        out.extend_from_slice(&[0; 3][..self.bytes_len.next_multiple_of(4) - self.bytes_len]);
        out.extend_from_slice(self.bits.bytes());
    }
}

/// Appends words as the format has them.
#[inline(always)]
fn append_words(words: &[u32], out: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        out.extend_from_slice(bytemuck::cast_slice(words));
    } else {
        words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
    }
}

/// The part *nibbles*.
struct Nibbles {
    words: Vec<u32>,
    /// Bits that fill no word yet.
    last: u128,
    bits: u32,
}

impl Nibbles {
    /// Appends those of 16 nibbles that are not 0.
    #[inline(always)]
    fn push(&mut self, nibbles: u64) {
        let (mut packed, mut at) = (0u64, 0);
        let mut left = nonzero_nibbles(nibbles);
        while left != 0 {
            packed |= (nibbles >> left.trailing_zeros() & 15) << at;
            at += 4;
            left &= left - 1;
        }
        self.last |= u128::from(packed) << self.bits;
        self.bits += at;
        while self.bits >= 32 {
            self.words.push(self.last as u32);
            self.last >>= 32;
            self.bits -= 32;
        }
    }

    fn len(&self) -> usize {
        self.words.len() + usize::from(self.bits > 0)
    }
}

/// The lowest bit of every nibble that is not 0.
#[inline(always)]
fn nonzero_nibbles(x: u64) -> u64 {
    let x = x | x >> 1;
    (x | x >> 2) & 0x1111_1111_1111_1111
}

/// The same for a plane: a bit for every lane whose word is not 0.
#[inline(always)]
fn lanes_of(mask: u128) -> u128 {
    u128::from(nonzero_nibbles(mask as u64)) | u128::from(nonzero_nibbles((mask >> 64) as u64)) << 64
}

/// Which words of a plane are not 0, from which bytes are not.
#[inline(always)]
fn ballot_of(mask: u128) -> u32 {
    let half = |x: u64| {
        let x = nonzero_nibbles(x);
        let x = (x | x >> 3) & 0x0303_0303_0303_0303;
        let x = (x | x >> 6) & 0x000F_000F_000F_000F;
        let x = (x | x >> 12) & 0x0000_00FF_0000_00FF;
        (x | x >> 24) as u32 & 0xFFFF
    };
    half(mask as u64) | half((mask >> 64) as u64) << 16
}

/// A plane's bytes in the format's order.
#[inline(always)]
fn bytes_of(plane: &BitPlane) -> pack::Plane {
    bytemuck::cast(plane.map(u32::to_le))
}
