// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a tile's blocks put into its payload. FORMAT.md §3.1.

use super::format::{BITMAP, CODES, Head, Kind, Outliers, TILE, valid};
use crate::constants::SZX_BLOCK;
use crate::error::Result;
use crate::memory;
use crate::scalar::{Bits, Scalar, WrappingInt};
use crate::stage::pack::{Bytes, Plane, SLACK};

/// The parts of one tile while it is being written, FORMAT.md §3.1: each has the capacity for all that a tile may
/// bring.
pub(super) struct Parts {
    pub(super) heads: Vec<u8>,
    bases: Vec<u8>,
    bitmaps: Vec<u8>,
    outliers: Vec<u8>,
    pub(super) codes: Vec<u8>,
    /// Mid bytes and raw values, up to `mid_len`; a fixed length, because packing writes beyond the end.
    pub(super) mid: Vec<u8>,
    pub(super) mid_len: usize,
}

impl Parts {
    /// For tiles of at most `values` values.
    pub(super) fn new<S: Scalar>(values: usize) -> Result<Self> {
        let blocks = values.min(TILE).div_ceil(SZX_BLOCK);
        Ok(Parts {
            heads: memory::with_capacity(blocks)?,
            bases: memory::with_capacity(blocks * S::SIZE)?,
            bitmaps: memory::with_capacity(blocks * BITMAP)?,
            outliers: memory::with_capacity(blocks * SZX_BLOCK * S::SIZE)?,
            codes: memory::with_capacity(blocks * CODES)?,
            mid: memory::zeros(values.min(TILE) * S::SIZE + SZX_BLOCK + SLACK)?,
            mid_len: 0,
        })
    }

    pub(super) fn raw<S: Scalar>(&mut self, x: &[S]) {
        self.heads.push(Head { kind: Kind::Raw, outliers: Outliers::None, codes: false }.pack());
        let out = &mut self.mid[self.mid_len..self.mid_len + S::SIZE * x.len()];
        for (out, v) in out.chunks_exact_mut(S::SIZE).zip(x) {
            out.copy_from_slice(bytemuck::bytes_of(&v.bits().le()));
        }
        self.mid_len += S::SIZE * x.len();
    }

    pub(super) fn base<S: Scalar>(&mut self, base: S) {
        self.bases.extend_from_slice(bytemuck::bytes_of(&base.bits().le()));
    }

    pub(super) fn outliers<S: Scalar>(&mut self, x: &[S; SZX_BLOCK], set: &OutlierSet) {
        if set.kind == Outliers::None {
            return;
        }
        self.bitmaps.extend_from_slice(&set.mask.to_le_bytes());
        let mut left = set.mask;
        for _ in 0..set.stored {
            let v = x[left.trailing_zeros() as usize];
            self.outliers.extend_from_slice(bytemuck::bytes_of(&v.bits().le()));
            left &= left - 1;
        }
    }

    /// Appends all parts to `out` and empties them.
    pub(super) fn append(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let parts = [&self.heads, &self.bases, &self.bitmaps, &self.outliers, &self.codes];
        memory::reserve(out, parts.iter().map(|p| p.len()).sum::<usize>() + self.mid_len + 6)?;
        let fill_up = |out: &mut Vec<u8>| {
            let len = out.len() - start;
            out.extend_from_slice(&[0; 3][..len.next_multiple_of(4) - len]);
        };
        out.extend_from_slice(&self.heads);
        fill_up(out);
        for part in [&self.bases, &self.bitmaps, &self.outliers, &self.codes] {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&self.mid[..self.mid_len]);
        fill_up(out);
        for part in [&mut self.heads, &mut self.bases, &mut self.bitmaps, &mut self.outliers, &mut self.codes] {
            part.clear();
        }
        self.mid_len = 0;
        Ok(())
    }
}

/// Which values are outliers, and how many of them are stored.
pub(super) struct OutlierSet {
    mask: u128,
    pub(super) kind: Outliers,
    stored: u32,
}

impl OutlierSet {
    pub(super) const NONE: OutlierSet = OutlierSet { mask: 0, kind: Outliers::None, stored: 0 };

    /// From a byte per value, 1 where it is an outlier. Copies behind the first `n` values do not count.
    #[inline(always)]
    pub(super) fn new<S: Scalar>(x: &[S; SZX_BLOCK], n: usize, flags: &Plane, level: impl Bytes) -> Self {
        let mask = level.nonzero(flags) & valid(n);
        if mask == 0 {
            return OutlierSet::NONE;
        }
        let first = x[mask.trailing_zeros() as usize].bits();
        let mut differ = S::Bits::ZERO;
        for (x, &flag) in x.iter().zip(flags) {
            // A copy has its original's bits, it cannot differ alone.
            differ = differ | if flag != 0 { x.bits() ^ first } else { S::Bits::ZERO };
        }
        let uniform = differ == S::Bits::ZERO;
        let (kind, stored) = if uniform { (Outliers::Uniform, 1) } else { (Outliers::Each, mask.count_ones()) };
        OutlierSet { mask, kind, stored }
    }

    pub(super) fn bytes<S: Scalar>(&self) -> usize {
        if self.kind == Outliers::None { 0 } else { BITMAP + self.stored as usize * S::SIZE }
    }
}
