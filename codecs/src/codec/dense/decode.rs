// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a head says, and residuals of a tile by it. FORMAT.md §3.2, §4.

use super::contexts::{AROUND, Shape, Weights};
use super::rans::{self, Coder};
use super::tables::Tables;
use super::vectors;
use crate::codec::lorenzo::format::{Class, Coded, Coding, Predictor};
use crate::constants::LORENZO_TILE;
use crate::error::{Damage, Error, Result};
use crate::memory;

/// What predicts residuals and vectors, in 64ths.
#[derive(Default)]
pub(super) struct Filters {
    /// The filter for each set of axes.
    pub(super) axes: [Option<Weights>; 8],
    pub(super) vectors: Option<vectors::Weights>,
}

/// The bit beside the number of tables that says that weights of vectors follow.
const VECTORS: u8 = 0x80;

/// Names of the sections.
const SECTIONS: [&str; 4] = ["dense head", "dense kinds", "dense lengths", "dense payload"];

/// Appends the head without the base.
pub(super) fn write_head(filters: &Filters, tables: &Tables, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 2]);
    out.push(filters.axes.iter().enumerate().map(|(axes, filter)| u8::from(filter.is_some()) << axes).sum());
    filters.axes.iter().flatten().for_each(|weights| out.extend(weights.map(|weight| weight as u8)));
    out.push(tables.levels.len() as u8 | if filters.vectors.is_some() { VECTORS } else { 0 });
    filters.vectors.iter().for_each(|weights| out.extend(weights.as_flattened().iter().map(|&weight| weight as u8)));
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
        let mut rest = rest;
        let mut take = |len: usize| {
            rest.split_off(..len).ok_or_else(|| corrupt(format!("{} bytes where filters need {len}", rest.len())))
        };
        let mut filters = Filters::default();
        for axes in (0..8usize).filter(|axes| mask >> axes & 1 == 1) {
            let weights = take(AROUND.len())?;
            filters.axes[axes] = Some(std::array::from_fn(|k| weights[k] as i8));
        }
        let count = take(1)?[0];
        if count & VECTORS != 0 {
            let weights = take(4)?;
            filters.vectors = Some([0, 2].map(|k| [weights[k] as i8, weights[k + 1] as i8]));
        }
        let tables = Tables::read(usize::from(count & !VECTORS), rest)?;
        Ok(Contexts { filters, coder: Coder::new(&tables, true)? })
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
        let mut bytes = &bytes[..len];
        let shape = match tile.kind.predictor {
            Predictor::Lorenzo(_) if tile.kind.class == Class::Other => {
                let weights = self.filters.vectors.as_ref().ok_or("no weights of vectors")?;
                let period = bytes.split_off(..2).map_or(0, |word| usize::from(u16::from_le_bytes([word[0], word[1]])));
                if !(1..=vectors::PERIODS).contains(&period) || !vectors::are(extents) {
                    return Err(format!("vectors of period {period} in {extents:?} values").into());
                }
                Shape::Vectors { period, weights }
            }
            Predictor::Lorenzo(axes) => {
                let weights = self.filters.axes[usize::from(axes)].as_ref().filter(|_| tile.filtered);
                if tile.filtered && weights.is_none() {
                    return Err(format!("no filter for axes {axes:#05b}").into());
                }
                Shape::Lorenzo { axes, weights }
            }
            Predictor::Interpolation(_) => Shape::Interpolation,
        };
        let residuals = &mut scratch.residuals[..extents.iter().product()];
        self.coder.decode(bytes, extents, shape, &mut scratch.coder, residuals)
    }
}
