// SPDX-License-Identifier: MIT OR Apache-2.0
//! FORMAT.md as fields: tiles, kinds, the step. No loops over data.

use crate::constants::{SZX_BLOCK, SZX_TILE_BLOCKS};
use crate::scalar::Scalar;

/// Values of one tile.
pub(super) const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;
/// Bytes of a bitmap over one block.
pub(super) const BITMAP: usize = SZX_BLOCK / 8;
/// Bytes of the leading-byte codes of one block.
pub(super) const CODES: usize = 2 * BITMAP;
/// Bytes of a word that can be left out: what two bits count.
pub(super) const LEADING: usize = 3;
/// Required bits stand in a kind with this added, above the other kinds.
const Q_OFFSET: u32 = 2;
/// Most required bits that a kind can state.
const Q_MOST: u32 = 63 - Q_OFFSET;

/// What a block's normal values are. FORMAT.md §3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    Constant,
    Raw,
    /// Words with this number of required bits.
    Coded(u32),
}

/// A block's byte in part A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) outliers: Outliers,
    /// Coded blocks: leading-byte codes are stored.
    pub(super) codes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outliers {
    None,
    /// Every outlier's bits are stored.
    Each,
    /// All have the same bits, stored once.
    Uniform,
}

impl Head {
    pub(super) fn pack(self) -> u8 {
        let low = match self.kind {
            Kind::Zero => 0,
            Kind::Constant => 1,
            Kind::Raw => 2,
            Kind::Coded(q) => q + Q_OFFSET,
        };
        let high = match self.outliers {
            Outliers::None => u32::from(matches!(self.kind, Kind::Coded(_)) && !self.codes),
            Outliers::Each => 2,
            Outliers::Uniform => 3,
        };
        (low | high << 6) as u8
    }

    /// `None` where §3.2 does not allow the byte.
    #[inline(always)]
    pub(super) fn unpack<S: Scalar>(byte: u8, words: Words<S>) -> Option<Self> {
        let kind = match u32::from(byte & 63) {
            0 => Kind::Zero,
            1 => Kind::Constant,
            2 => Kind::Raw,
            q => Kind::Coded(q - Q_OFFSET),
        };
        let outliers = match byte >> 6 {
            2 => Outliers::Each,
            3 => Outliers::Uniform,
            _ => Outliers::None,
        };
        let coded = match kind {
            Kind::Coded(q) => words.allows(q).then_some(true)?,
            _ => false,
        };
        if (byte >> 6 == 1 && !coded) || (byte >> 6 > 1 && kind == Kind::Raw) {
            return None;
        }
        Some(Head { kind, outliers, codes: coded && byte >> 6 != 1 })
    }
}

/// How words become values. FORMAT.md §5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Words<S> {
    /// Multiples of a step above the block's base.
    Steps(Step<S>),
    /// The bound allows no coded blocks.
    Unusable,
    /// The upper bits of the value's own.
    Patterns,
}

impl<S: Scalar> Words<S> {
    /// As the header's mode and bound say.
    pub(super) fn new(pointwise: bool, bound: f64) -> Self {
        if pointwise { Words::Patterns } else { Step::new(bound).map_or(Words::Unusable, Words::Steps) }
    }

    /// Whether a coded block can have `q` required bits.
    #[inline(always)]
    fn allows(self, q: u32) -> bool {
        match self {
            Words::Steps(_) => (1..=S::MANTISSA).contains(&q),
            Words::Unusable => false,
            Words::Patterns => (1 + S::EXPONENT..=8 * S::SIZE as u32).contains(&q),
        }
    }
}

/// The step g and what the arithmetic with it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step<S> {
    pub(super) step: S,
    /// 1 / step, exact.
    pub(super) inverse: S,
}

impl<S: Scalar> Step<S> {
    /// The power of two above the bound: b < g ≤ 2b. `None` where it is not usable.
    fn new(bound: f64) -> Option<Self> {
        let exponent = exponent(bound)? + 1;
        let most = S::BIAS - 1;
        (-most..=most)
            .contains(&exponent)
            .then(|| Step { step: S::power_of_two(exponent), inverse: S::power_of_two(-exponent) })
    }
}

/// The bits of 2^M: to them a word is added to make it a number, FORMAT.md §5.
#[inline(always)]
pub(super) fn magic<S: Scalar>() -> S {
    S::power_of_two(S::MANTISSA as i32)
}

/// e(y) of a positive normal f64.
fn exponent(y: f64) -> Option<i32> {
    (y.is_normal() && y > 0.0).then(|| (y.to_bits() >> 52) as i32 - 1023)
}

/// Required bits of mode 3, FORMAT.md §8.1.
pub(super) fn pattern_bits<S: Scalar>(bound: f64) -> u32 {
    let mantissa = exponent(bound).map_or(S::MANTISSA as i32, |e| (-e - 1).clamp(0, S::MANTISSA as i32));
    (1 + S::EXPONENT + mantissa as u32).min(Q_MOST)
}

/// Bytes of a word.
#[inline(always)]
pub(super) fn word_bytes(q: u32) -> usize {
    q.div_ceil(8) as usize
}

/// The low bits that belong to `n` values of a block.
#[inline(always)]
pub(super) fn valid(n: usize) -> u128 {
    if n >= SZX_BLOCK { u128::MAX } else { (1 << n) - 1 }
}
