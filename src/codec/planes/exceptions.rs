// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that no quantum stands for: where they are, their bits, and what the predictors see in their places. FORMAT.md §8.2.
//!
//! Most tiles have none. What is done here goes lane by lane and is not tuned.

use super::bitplanes::BitPlane;
use super::number::Int;
use super::shape::{BLOCKS, Shape};
use crate::constants::{PLANES_EXCEPTIONS, PLANES_LANES, PLANES_TILE};
use crate::error::Result;
use crate::memory;
use crate::stage::tiles::Tile;

/// The exceptions of a tile.
pub(super) struct Set<I> {
    /// A bit for each, by block.
    pub(super) masks: [BitPlane; BLOCKS],
    /// Their bits, in order of the masks' bits.
    pub(super) values: Vec<I>,
    /// All have the same bits.
    pub(super) uniform: bool,
}

impl<I: Int> Set<I> {
    pub(super) fn new() -> Result<Self> {
        Ok(Set { masks: [[0; PLANES_LANES]; BLOCKS], values: memory::with_capacity(PLANES_TILE)?, uniform: false })
    }

    /// Takes those values of the tile that are flagged and lie in the chunk. False where a tile may not have so many.
    pub(super) fn collect(
        &mut self,
        shape: &Shape,
        tile: &Tile,
        flags: &[u8; PLANES_TILE],
        bits: impl Fn(usize) -> I,
    ) -> bool {
        self.values.clear();
        self.masks = [[0; PLANES_LANES]; BLOCKS];
        for (block, mask) in self.masks.iter_mut().enumerate() {
            for (lane, word) in mask.iter_mut().enumerate() {
                for bit in 0..32 {
                    let place = shape.place_of_bit(block, lane, bit);
                    if flags[place] != 0 && shape.inside(tile, place) {
                        *word |= 1 << bit;
                        self.values.push(bits(place));
                    }
                }
            }
        }
        self.uniform = self.values.windows(2).all(|pair| pair[0] == pair[1]);
        (self.uniform || self.values.len() <= PLANES_EXCEPTIONS) && self.values.len() < tile.len()
    }
}

/// Gives flagged places what stands before them in their lane's block.
pub(super) fn bridge<I: Int>(shape: &Shape, flags: &[u8; PLANES_TILE], v: &mut [I; PLANES_TILE]) {
    for lane in 0..PLANES_LANES {
        let mut last = I::ZERO;
        for block in 0..BLOCKS {
            // In order of planes, rows and columns.
            let place = |i: usize| shape.place(2 * block + i / 16, lane, i / 4 % 4, i % 4);
            if let Some(first) = (0..32).map(place).find(|&p| flags[p] == 0) {
                last = v[first];
            }
            for p in (0..32).map(place) {
                if flags[p] == 0 {
                    last = v[p];
                } else {
                    v[p] = last;
                }
            }
        }
    }
}
