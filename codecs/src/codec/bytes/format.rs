// SPDX-License-Identifier: MIT OR Apache-2.0
//! Head and table of a `bytes` frame, FORMAT.md §3. No loops over data.

use super::shuffle::{Shuffle, Unit};
use crate::constants::{BYTES_STRIDE_MAX, BYTES_TILE};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::params::Mode;
use std::ops::Range;

/// Bytes of the head.
pub(crate) const HEAD_LEN: usize = 8;

/// How tiles are cut and shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) shuffle: Shuffle,
    /// Raw bytes of every tile but the last.
    pub(crate) tile: usize,
}

impl Head {
    /// The tiles that a writer cuts: whole elements, as many as fit.
    pub(crate) fn new(shuffle: Shuffle) -> Self {
        Head { shuffle, tile: BYTES_TILE - BYTES_TILE % shuffle.stride }
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let unit = match self.shuffle.unit {
            Unit::Byte => 0u16,
            Unit::Bit => 1,
        };
        out.extend((self.shuffle.stride as u16).to_le_bytes());
        out.extend(unit.to_le_bytes());
        out.extend((self.tile as u32).to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let &[a, b, c, d, e, f, g, h] = bytes else {
            return Err(Error::Length { section: "bytes head", needed: 8, got: bytes.len() as u64 });
        };
        let (stride, tile) = (usize::from(u16::from_le_bytes([a, b])), u32::from_le_bytes([e, f, g, h]) as usize);
        if !(1..=BYTES_STRIDE_MAX).contains(&stride) || !(1..=BYTES_TILE).contains(&tile) || tile % stride != 0 {
            return Err(Error::corrupt(
                "bytes head",
                format!(
                    "stride {stride}, tiles of {tile} bytes; allowed are strides 1 to {BYTES_STRIDE_MAX} \
                     and their multiples up to {BYTES_TILE}"
                ),
            ));
        }
        let unit = match u16::from_le_bytes([c, d]) {
            0 => Unit::Byte,
            1 => Unit::Bit,
            unit => {
                return Err(Error::corrupt(
                    "bytes head",
                    format!("unit {unit}; allowed are 0, bytes, and 1, bits; a newer release may read it"),
                ));
            }
        };
        Ok(Head { shuffle: Shuffle { stride, unit }, tile })
    }
}

/// A validated frame of this codec: where every tile's code lies.
pub(crate) struct Tiles<'a> {
    pub(crate) head: Head,
    raw_len: usize,
    ends: &'a [[u8; 8]],
    payload: &'a [u8],
}

impl<'a> Tiles<'a> {
    /// Checks head, table and payload against each other and against the raw length. FORMAT.md §7.
    pub(crate) fn open(frame: &Frame<'a>, raw_len: usize) -> Result<Self> {
        let h = &frame.header;
        if h.mode != Mode::Lossless || !h.extents.as_slice().is_empty() {
            return Err(Error::corrupt(
                "header",
                format!(
                    "bytes with mode {} and {} extents, needed are mode 9 and none",
                    h.mode.number(),
                    h.extents.as_slice().len()
                ),
            ));
        }
        let [head, table, payload] = frame.sections()?;
        let head = Head::read(head)?;
        let count = raw_len.div_ceil(head.tile);
        let (ends, rest) = table.as_chunks::<8>();
        if ends.len() != count || !rest.is_empty() {
            let needed = count as u64 * 8;
            return Err(Error::Length { section: "bytes tile ends", needed, got: table.len() as u64 });
        }
        let tiles = Tiles { head, raw_len, ends, payload };
        let mut begin = 0;
        for k in 0..count {
            let (end, raw) = (tiles.end(k), tiles.raw(k).len() as u64);
            let len = end.checked_sub(begin).filter(|len| (1..=raw).contains(len));
            if len.is_none() || end > payload.len() as u64 {
                return Err(Error::corrupt(
                    "bytes tile ends",
                    format!(
                        "tile {k} lies at {begin} to {end}, limits are 1 to {raw} bytes and the payload's end at {}",
                        payload.len()
                    ),
                ));
            }
            begin = end;
        }
        if begin != payload.len() as u64 {
            return Err(Error::Length { section: "bytes payload", needed: begin, got: payload.len() as u64 });
        }
        Ok(tiles)
    }

    fn end(&self, k: usize) -> u64 {
        u64::from_le_bytes(self.ends[k])
    }

    /// Which of the chunk's bytes tile `k` holds.
    fn raw(&self, k: usize) -> Range<usize> {
        k * self.head.tile..(k + 1).saturating_mul(self.head.tile).min(self.raw_len)
    }

    /// The code of tile `k`.
    pub(crate) fn code(&self, k: usize) -> &'a [u8] {
        let begin = if k == 0 { 0 } else { self.end(k - 1) as usize };
        &self.payload[begin..self.end(k) as usize]
    }
}
