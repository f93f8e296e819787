// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a head says, and residuals of a tile by it. FORMAT.md §3.2, §4.

use super::contexts::{AROUND, Shape, Weights};
use super::rans::{self, Coder};
use super::tables::Tables;
use crate::codec::lorenzo::format::{Coded, Coding, Predictor};
use crate::constants::LORENZO_TILE;
use crate::error::{Damage, Error, Result};
use crate::memory;

/// Weights of the filter for each set of axes.
pub(super) type Filters = [Option<Weights>; 8];

/// Names of the sections.
const SECTIONS: [&str; 4] = ["dense head", "dense kinds", "dense lengths", "dense payload"];

/// Appends the head without the base.
pub(super) fn write_head(filters: &Filters, tables: &Tables, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 2]);
    out.push(filters.iter().enumerate().map(|(axes, filter)| u8::from(filter.is_some()) << axes).sum());
    filters.iter().flatten().for_each(|weights| out.extend(weights.map(|weight| weight as u8)));
    tables.write(out);
    let len = (out.len() - start) as u16;
    out[start..start + 2].copy_from_slice(&len.to_le_bytes());
}

/// What residuals of a frame are coded with.
pub(super) struct Contexts {
    filters: Filters,
    coder: Coder,
}

/// Memory for residuals, and working memory.
pub(super) struct Scratch {
    residuals: Vec<i32>,
    coder: rans::Scratch,
}

impl AsMut<[i32]> for Scratch {
    fn as_mut(&mut self) -> &mut [i32] {
        &mut self.residuals
    }
}

impl Coding for Contexts {
    const SECTIONS: [&'static str; 4] = SECTIONS;
    const UNIT: u32 = 2;
    const FILTERED: bool = true;
    type Scratch = Scratch;

    fn head_len(head: &[u8]) -> usize {
        head.first_chunk().map_or(0, |len| u16::from_le_bytes(*len).into())
    }

    fn read(head: &[u8]) -> Result<Self> {
        let corrupt = |why: String| Error::corrupt(SECTIONS[0], why);
        let Some((&[low, high, mask], rest)) = head.split_first_chunk() else {
            return Err(Error::Length { section: SECTIONS[0], needed: 3, got: head.len() as u64 });
        };
        let stated = u16::from_le_bytes([low, high]);
        if usize::from(stated) != head.len() {
            return Err(corrupt(format!("{} bytes, {stated} stated", head.len())));
        }
        let len = mask.count_ones() as usize * AROUND.len();
        let (weights, tables) =
            rest.split_at_checked(len).ok_or_else(|| corrupt(format!("{} bytes, filters of {len}", rest.len())))?;
        let mut filters = Filters::default();
        let of_sets = (0..8usize).filter(|axes| mask >> axes & 1 == 1);
        for (axes, weights) in of_sets.zip(weights.as_chunks().0) {
            filters[axes] = Some(weights.map(|weight: u8| weight as i8));
        }
        Ok(Contexts { filters, coder: Coder::new(&Tables::read(tables)?, true)? })
    }

    fn scratch() -> Result<Scratch> {
        Ok(Scratch { residuals: memory::zeros(LORENZO_TILE)?, coder: rans::Scratch::new()? })
    }

    fn residuals(
        &self,
        tile: &Coded<'_>,
        bytes: &[u8],
        len: usize,
        extents: [usize; 3],
        scratch: &mut Scratch,
    ) -> Result<(), Damage> {
        let shape = match tile.kind.predictor {
            Predictor::Lorenzo(axes) => {
                let weights = self.filters[usize::from(axes)].as_ref().filter(|_| tile.filtered);
                if tile.filtered && weights.is_none() {
                    return Err(format!("no filter for axes {axes:#05b}").into());
                }
                Shape::Lorenzo { axes, weights }
            }
            Predictor::Interpolation(_) => Shape::Interpolation,
        };
        let residuals = &mut scratch.residuals[..extents.iter().product()];
        self.coder.decode(&bytes[..len], extents, shape, &mut scratch.coder, residuals)
    }
}
