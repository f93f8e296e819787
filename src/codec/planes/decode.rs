// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile out of words. FORMAT.md §4; what the bytes say is checked by `layout.rs` first.
//!
//! ```text
//! planes      the bit planes of a block, put together to residuals
//! integrate   along as many axes as the head says: quanta less the base, or ordered bits
//! values      x̂ = q · step, or the bits; exceptions take theirs
//! ```

use super::bitplanes::{self, BitPlane, Slice};
use super::difference::{self, Ints};
use super::encode::boxed;
use super::format::{ALL_FULL, Class, Head, Mode};
use super::layout::{Layout, Word, number};
use super::level::Unit;
use super::number::{Int, Value};
use super::quantize;
use super::shape::{BLOCK, BLOCKS, Shape};
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::{Damage, Result};
use crate::stage::tiles::{Share, Tile};

/// What a frame says before its first tile.
#[derive(Clone, Copy)]
pub(super) struct Context<S> {
    pub(super) shape: Shape,
    /// None in mode 9, and where the bound gives no usable one.
    pub(super) step: Option<S>,
    /// The type's class is float.
    pub(super) float: bool,
}

/// Working memory of one thread.
pub(super) struct Scratch<S: Value> {
    x: Box<[S; PLANES_TILE]>,
    near: Box<Ints<i16>>,
    wide: Box<Ints<S::Wide>>,
    slices: Box<[Slice; 8]>,
    masks: [BitPlane; BLOCKS],
}

impl<S: Value> Scratch<S> {
    pub(super) fn new() -> Result<Self> {
        Ok(Scratch {
            x: boxed()?,
            near: boxed()?,
            wide: boxed()?,
            slices: boxed()?,
            masks: [[0; PLANES_LANES]; BLOCKS],
        })
    }
}

/// Decodes a tile into its place in the chunk.
pub(super) fn tile<S: Value>(
    words: &[Word],
    context: &Context<S>,
    tile: &Tile,
    unit: impl Unit,
    s: &mut Scratch<S>,
    share: &mut Share<'_, S>,
) -> Result<(), Damage> {
    let shape = &context.shape;
    let Some(&first) = words.first() else { return Err("no words".into()) };
    let head = Head::unpack(number(first), shape.rank, S::SIZE, context.step.is_some())?;
    if head.class == Class::Raw {
        let (len, needed) = (words.len(), 1 + tile.len() * S::SIZE / 4);
        if len != needed {
            return Err(format!("raw, {len} words where {needed} are needed").into());
        }
        raw(words[1..].as_flattened(), shape, tile, share);
        return Ok(());
    }
    let mut at = Layout::find(words, head, S::SIZE)?;
    if let (Class::Quanta, Some(step)) = (head.class, context.step) {
        residuals(&mut at, shape.rank, unit, &mut s.near, &mut s.slices, &mut s.masks);
        if !difference::integrate_near(&mut s.near, shape.rank, head.predictor, unit) {
            return Err("a quantum is farther from the base than 4096".into());
        }
        let base = i64::from(head.base) * S::UNIT;
        let (x, v) = (&mut s.x, &s.near);
        unit.run(
            #[inline(always)]
            || {
                for (x, &v) in x.iter_mut().zip(v.iter()) {
                    *x = S::of_near(base as i32 + i32::from(v)) * step;
                }
            },
        );
    } else {
        residuals(&mut at, shape.rank, unit, &mut s.wide, &mut s.slices, &mut s.masks);
        difference::integrate(&mut s.wide, shape.rank, head.predictor, unit);
        let base = S::to_wide(value(at.base.as_flattened()));
        let step = if head.class == Class::Wide { context.step } else { None };
        let (x, v) = (&mut s.x, &s.wide);
        unit.run(
            #[inline(always)]
            || {
                for (x, &v) in x.iter_mut().zip(v.iter()) {
                    let q = base.plus(v);
                    *x = match step {
                        Some(step) => S::of_quantum(q) * step,
                        None if context.float => S::of_wide(quantize::ordered(q)),
                        None => S::of_wide(q),
                    };
                }
            },
        );
    }
    if let Some(masks) = at.masks {
        exceptions(&at, masks.count, shape, &s.masks, &mut s.x)?;
    }
    shape.scatter(&s.x, tile, share);
    Ok(())
}

/// One value, of which there are enough bytes.
#[inline(always)]
fn value<S: Value>(bytes: &[u8]) -> S {
    use crate::scalar::Bits;
    S::of_bits(bytemuck::pod_read_unaligned::<S::Bits>(&bytes[..S::SIZE]).le())
}

/// Copies the values of a tile of class 3.
fn raw<S: Value>(bytes: &[u8], shape: &Shape, tile: &Tile, share: &mut Share<'_, S>) {
    let [ez, ey, ex] = tile.extents;
    for (k, row) in bytes.chunks_exact(ex * S::SIZE).take(ez * ey).enumerate() {
        let to = share.row(shape.grid.row(tile, k / ey, k % ey), ex);
        to.iter_mut().zip(row.chunks_exact(S::SIZE)).for_each(|(to, bytes)| *to = value(bytes));
    }
}

/// Puts exceptions into their places.
fn exceptions<S: Value>(
    at: &Layout<'_>,
    count: usize,
    shape: &Shape,
    masks: &[BitPlane; BLOCKS],
    x: &mut [S; PLANES_TILE],
) -> Result<(), Damage> {
    let found: usize = masks.as_flattened().iter().map(|w| w.count_ones() as usize).sum();
    if found != count {
        return Err(format!("masks of {found} exceptions, their word says {count}").into());
    }
    let mut values = at.values.as_flattened().chunks_exact(S::SIZE).cycle();
    for (block, mask) in masks.iter().enumerate() {
        for (lane, &word) in mask.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let place = shape.place_of_bit(block, lane, left.trailing_zeros() as usize);
                // One value that is stored once stands for all.
                x[place] = value(values.next().expect("counted"));
                left &= left - 1;
            }
        }
    }
    Ok(())
}

/// A tile's residuals and masks.
fn residuals<I: Int>(
    at: &mut Layout<'_>,
    rank: usize,
    unit: impl Unit,
    d: &mut Ints<I>,
    slices: &mut [Slice; 8],
    masks: &mut [BitPlane; BLOCKS],
) {
    for (k, d) in d.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        unit.run(
            #[inline(always)]
            || {
                block(at, k, rank, unit, d, slices);
                if let Some(of) = at.masks {
                    at.planes.plane(of.mode(k), &mut masks[k], unit);
                }
            },
        );
    }
}

/// A block's residuals.
#[inline(always)]
fn block<I: Int>(
    at: &mut Layout<'_>,
    k: usize,
    rank: usize,
    unit: impl Unit,
    d: &mut [I; BLOCK],
    slices: &mut [Slice; 8],
) {
    *d = [I::ZERO; BLOCK];
    let near = at.head.class == Class::Quanta;
    let mut modes = [0; 8];
    let count = at.modes(k).len();
    modes[..count].copy_from_slice(at.modes(k));
    if modes == [0; 8] {
        return;
    }
    let top = count - 1;
    let mode = |k: usize, p: usize| Mode::of(u32::from(modes[k]) >> (2 * p));
    for p in (0..7).rev() {
        at.planes.plane(mode(top, p), &mut slices[top][p], unit);
    }
    for k in (0..top).rev() {
        if modes[k] == ALL_FULL {
            at.planes.rows(&mut slices[k]);
        } else {
            (0..8).rev().for_each(|p| at.planes.plane(mode(k, p), &mut slices[k][p], unit));
        }
    }
    at.planes.plane(mode(top, 7), &mut slices[top][7], unit);
    let sign = slices[top][7];
    let signed = mode(top, 7) != Mode::Absent;
    for (k, slice) in slices[..count].iter_mut().enumerate() {
        if modes[k] == 0 && !(near && signed) {
            continue;
        }
        if k == top || modes[k] != ALL_FULL {
            if near && signed {
                let below = if k == top { 7 } else { 8 };
                slice[..below].iter_mut().for_each(|plane| unit.flip(plane, &sign));
            }
            unit.transpose(slice);
        }
        bitplanes::add_rows(slice, rank, k, d);
    }
    if !near {
        bitplanes::decode_signs(d, count);
    } else if count == 1 {
        bitplanes::widen(d);
    }
}
