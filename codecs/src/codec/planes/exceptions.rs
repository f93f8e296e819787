// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions of a tile: where they are, their bits, and what the predictors see in their places. FORMAT.md §8.2.
//!
//! In classes 0 and 1 they are the values that no quantum stands for, in class 2 those whose bits have nothing to do
//! with the others' bits: NaN, infinities, fill; a few full f64 among values that were f32 once.
//!
//! Most tiles have none: that is found out by one pass.

use super::bitplanes::BitPlane;
use super::format::Exceptions;
use super::shape::{BLOCK, BLOCKS, LAYER, ROW, Shape, row_of};
use super::types::{Int, Value};
use super::unit::Unit;
use crate::constants::{PLANES_EXCEPTIONS, PLANES_LANES, PLANES_TILE};
use crate::error::Result;
use crate::memory;
use crate::stage::tiles::Tile;

/// A byte for each value of a tile, 1 where it is an exception, also beyond the array.
pub(super) type Flags = [u8; PLANES_TILE];

/// The exceptions of a tile.
pub(super) struct Set<I> {
    /// A bit for each that is stored, by block.
    pub(super) masks: [BitPlane; BLOCKS],
    /// How many they are.
    pub(super) count: usize,
    /// Their bits, in order of the masks' bits; once where all have the same.
    pub(super) values: Vec<I>,
}

impl<I: Int> Set<I> {
    pub(super) fn new() -> Result<Self> {
        let none = [[0; PLANES_LANES]; BLOCKS];
        Ok(Set { masks: none, count: 0, values: memory::with_capacity(PLANES_TILE)? })
    }

    /// Takes those values of the tile that are flagged and lie in the array, as `settled` makes them. `None` if they
    /// are more than a tile may have.
    pub(super) fn collect<S: Value<Wide = I>>(
        &mut self,
        shape: &Shape,
        tile: &Tile,
        flags: &Flags,
        unit: impl Unit,
        x: &[S; PLANES_TILE],
        settled: impl Fn(S) -> S,
    ) -> Option<Exceptions> {
        self.masks = unit.run(
            #[inline(always)]
            || planes(flags, shape.rank),
        );
        self.values.clear();
        let whole = tile.len() == PLANES_TILE;
        // Mostly masks: one value, however often.
        if whole && let Some(one) = one_value(flags, x, unit) {
            self.values.push(settled(one).to_wide());
            self.count = self.masks.as_flattened().iter().map(|word| word.count_ones() as usize).sum();
            return (self.count < PLANES_TILE).then_some(Exceptions::Uniform);
        }
        let mut uniform = true;
        for (block, mask) in self.masks.iter_mut().enumerate() {
            for (lane, word) in mask.iter_mut().enumerate() {
                let mut left = *word;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let place = shape.place_of_bit(block, lane, bit as usize);
                    if !whole && !shape.inside(tile, place) {
                        *word ^= 1 << bit;
                        continue;
                    }
                    let value = settled(x[place]).to_wide();
                    self.values.push(value);
                    uniform &= value == self.values[0];
                    if !uniform && self.values.len() > PLANES_EXCEPTIONS {
                        return None;
                    }
                }
            }
        }
        self.count = self.values.len();
        if uniform {
            self.values.truncate(1);
        }
        let kind = if uniform { Exceptions::Uniform } else { Exceptions::Each };
        (self.count < tile.len()).then_some(kind)
    }
}

/// The value that all flagged ones have the bits of; `None` where there are several, or no flags.
fn one_value<S: Value>(flags: &Flags, x: &[S; PLANES_TILE], unit: impl Unit) -> Option<S> {
    let one = x[flags.iter().position(|&flag| flag != 0)?];
    let bits = one.to_wide();
    let same = unit.run(
        #[inline(always)]
        || {
            flags.as_chunks::<LAYER>().0.iter().zip(x.as_chunks::<LAYER>().0).all(|(flags, x)| {
                !flags.iter().zip(x).fold(false, |others, (&flag, x)| others | ((flag != 0) & (x.to_wide() != bits)))
            })
        },
    );
    same.then_some(one)
}

/// Gives flagged values what stands before them in their row.
pub(super) fn bridge<I: Int>(v: &mut [I; PLANES_TILE], flags: &Flags) {
    for (v, flags) in v.as_chunks_mut::<ROW>().0.iter_mut().zip(flags.as_chunks::<ROW>().0) {
        if *flags == [0; ROW] {
            continue;
        }
        let Some(first) = flags.iter().position(|&flag| flag == 0) else {
            *v = [I::ZERO; ROW];
            continue;
        };
        let mut last = v[first];
        for (v, &flag) in v.iter_mut().zip(flags) {
            last = if flag == 0 { *v } else { last };
            *v = last;
        }
    }
}

/// Flags as bit planes.
#[inline(always)]
fn planes(flags: &Flags, rank: usize) -> [BitPlane; BLOCKS] {
    let mut planes = [[0; PLANES_LANES]; BLOCKS];
    for (plane, flags) in planes.iter_mut().zip(flags.as_chunks::<BLOCK>().0) {
        for i in 0..8 {
            for (group, words) in plane.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let row = &flags[i / 4 * LAYER + row_of(rank, i % 4, group)..];
                for (word, &[a, b, c, d]) in words.iter_mut().zip(row.as_chunks().0) {
                    *word |= u32::from_le_bytes([a, c, b, d]) << i;
                }
            }
        }
    }
    planes
}

/// Puts one value where bit planes of the tile's blocks have bits.
pub(super) fn spread<S: Value>(
    masks: &[BitPlane; BLOCKS],
    rank: usize,
    one: S,
    unit: impl Unit,
    x: &mut [S; PLANES_TILE],
) {
    unit.run(
        #[inline(always)]
        || {
            for (mask, x) in masks.iter().zip(x.as_chunks_mut::<BLOCK>().0) {
                for i in 0..8 {
                    for (group, words) in mask.as_chunks::<8>().0.iter().enumerate() {
                        let row = &mut x[i / 4 * LAYER + row_of(rank, i % 4, group)..];
                        for (word, four) in words.iter().zip(row.as_chunks_mut::<4>().0) {
                            let [a, c, b, d] = (word >> i & 0x0101_0101).to_le_bytes();
                            for (x, is) in four.iter_mut().zip([a, b, c, d]) {
                                *x = if is != 0 { one } else { *x };
                            }
                        }
                    }
                }
            }
        },
    );
}

/// A set of values that may be exceptions of class 2.
#[derive(Clone, Copy)]
pub(super) struct Candidates<I> {
    /// Bits of the fill value that the user defined, not of +0.
    fill: Option<I>,
    /// The largest bits, without the sign's, that are none: those below infinity's.
    most: I,
    /// Bits of which all must be 0.
    low: I,
}

impl<I: Int> Candidates<I> {
    /// Of values of the type: NaN, infinities, `fill`.
    pub(super) fn of_type<S: Value<Wide = I>>(float: bool, fill: Option<I>) -> Self {
        let most = if float { S::INFINITY.to_wide().minus(I::ONE) } else { below_sign() };
        Candidates { fill, most, low: I::ZERO }
    }

    /// These, and values that no f32 stands for.
    pub(super) fn and_full(self) -> Self {
        Candidates { low: (I::ONE << 29).minus(I::ONE), ..self }
    }

    #[inline(always)]
    fn has(&self, bits: I) -> bool {
        let filled = self.fill.is_some_and(|fill| bits == fill);
        (bits & below_sign() > self.most) | (bits & self.low != I::ZERO) | filled
    }

    /// Whether the tile has any.
    pub(super) fn any<S: Value<Wide = I>>(&self, x: &[S; PLANES_TILE], unit: impl Unit) -> bool {
        unit.run(
            #[inline(always)]
            || {
                x.as_chunks::<LAYER>()
                    .0
                    .iter()
                    .any(|layer| layer.iter().fold(false, |any, x| any | self.has(x.to_wide())))
            },
        )
    }

    /// Flags them.
    pub(super) fn flags<S: Value<Wide = I>>(&self, x: &[S; PLANES_TILE], unit: impl Unit, flags: &mut Flags) {
        unit.run(
            #[inline(always)]
            || flags.iter_mut().zip(x).for_each(|(flag, x)| *flag = self.has(x.to_wide()).into()),
        );
    }
}

/// All bits but the sign's.
#[inline(always)]
pub(super) fn below_sign<I: Int>() -> I {
    (I::ONE << (8 * I::BYTES as u32 - 1)).minus(I::ONE)
}
