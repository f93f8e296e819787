// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile out of words. FORMAT.md §4; what the bytes say is checked by `layout.rs` first.
//!
//! ```text
//! planes      class 0: the bit planes of a block, put together to residuals
//! lengths     classes 1 and 2: the class of each value from the planes, all starts and lengths from those; then the
//!             fields
//! integrate   along as many axes as the head says: quanta less the base, or ordered bits
//! values      x̂ = q · step, the bits, or integers times a power of two; exceptions take theirs
//! ```

use super::bitplanes::{self, BitPlane, Slice};
use super::difference::{self, Ints};
use super::exceptions::spread;
use super::fields::{self, FIELD_WORDS, Fields, Widths};
use super::format::{Allowed, Class, Head, Mode, Word};
use super::layout::Layout;
use super::lengths::NUMBER_PLANES;
use super::numbers;
use super::shape::{BLOCK, BLOCKS, Shape};
use super::types::{Held, Value};
use super::unit::Unit;
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::{Damage, Result};
use crate::memory::boxed;
use crate::scalar::WrappingInt;
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
    slices: Box<[Slice; 2]>,
    widths: Box<[Widths; BLOCKS]>,
    /// A tile's fields and what may be read behind them.
    fields: Box<[u8; 4 * FIELD_WORDS + fields::SLACK]>,
    masks: [BitPlane; BLOCKS],
}

impl<S: Value> Scratch<S> {
    pub(super) fn new() -> Result<Self> {
        Ok(Scratch {
            x: boxed()?,
            near: boxed()?,
            wide: boxed()?,
            slices: boxed()?,
            widths: Box::new([Widths::NONE; BLOCKS]),
            fields: boxed()?,
            masks: [[0; PLANES_LANES]; BLOCKS],
        })
    }
}

/// Decodes a tile into its place in the chunk.
pub(super) fn tile<S: Value, E: Held<S>>(
    words: &[Word],
    context: &Context<S>,
    tile: &Tile,
    unit: impl Unit,
    s: &mut Scratch<S>,
    share: &mut Share<'_, E>,
) -> Result<(), Damage> {
    let shape = &context.shape;
    let allowed = Allowed { rank: shape.rank, size: S::SIZE, quanta: context.step.is_some(), float: context.float };
    let head = Head::unpack(words, allowed)?;
    if head.class == Class::Raw {
        let (len, needed) = (words.len(), 1 + tile.len() * S::SIZE / 4);
        if len != needed {
            return Err(format!("raw, {len} words where {needed} are needed").into());
        }
        raw(words[1..].as_flattened(), shape, tile, share);
        return Ok(());
    }
    let mut at = Layout::find(words, head, S::SIZE)?;
    let values;
    if let (Class::Quanta, Some(step)) = (head.class, context.step) {
        values = at.rest(0, S::SIZE)?.1;
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
        values = fields(&mut at, shape.rank, unit, s)?;
        difference::integrate(&mut s.wide, shape.rank, head.predictor, unit);
        let base = S::to_wide(value(at.base.as_flattened()));
        let map = match (head.class, head.lengths.exponent) {
            (Class::Wide, _) => Map::Quanta,
            (_, Some(e)) => Map::Integers(S::power_of_two(e)),
            _ if context.float => Map::Ordered,
            _ => Map::Bits,
        };
        let mut step = context.step.unwrap_or(S::ZERO);
        if head.halves {
            step = step * S::power_of_two(-1);
        }
        let (x, v) = (&mut s.x, &s.wide);
        if matches!(map, Map::Integers(_)) && !numbers::are_held::<S>(base, v, unit) {
            return Err("an integer of map 1 that no mantissa holds".into());
        }
        unit.run(
            #[inline(always)]
            || {
                let numbers = x.iter_mut().zip(v.iter().map(|&v| base.plus(v)));
                match map {
                    Map::Quanta => numbers.for_each(|(x, q)| *x = S::of_quantum(q) * step),
                    Map::Integers(power) => numbers.for_each(|(x, m)| *x = numbers::scaled(m, power)),
                    Map::Ordered => numbers.for_each(|(x, m)| *x = S::of_wide(numbers::ordered(m))),
                    Map::Bits => numbers.for_each(|(x, m)| *x = S::of_wide(m)),
                }
            },
        );
    }
    if let Some(masks) = at.masks {
        exceptions(values, masks.count, shape, &s.masks, unit, &mut s.x)?;
    }
    shape.scatter(&s.x, tile, share);
    Ok(())
}

/// What integers become.
#[derive(Clone, Copy)]
enum Map<S> {
    Quanta,
    /// Times a power of two.
    Integers(S),
    Ordered,
    Bits,
}

/// One value, of which there are enough bytes.
#[inline(always)]
fn value<S: Value>(bytes: &[u8]) -> S {
    use crate::scalar::Bits;
    S::of_bits(bytemuck::pod_read_unaligned::<S::Bits>(&bytes[..S::SIZE]).le())
}

/// Copies the values of a tile of class 3.
fn raw<S: Value, E: Held<S>>(bytes: &[u8], shape: &Shape, tile: &Tile, share: &mut Share<'_, E>) {
    let [ez, ey, ex] = tile.extents;
    for (k, row) in bytes.chunks_exact(ex * S::SIZE).take(ez * ey).enumerate() {
        let to = share.row(shape.grid.row(tile, k / ey, k % ey), ex);
        to.iter_mut().zip(row.chunks_exact(S::SIZE)).for_each(|(to, bytes)| *to = E::narrow(value(bytes)));
    }
}

/// Puts exceptions into their places.
fn exceptions<S: Value>(
    values: &[Word],
    count: usize,
    shape: &Shape,
    masks: &[BitPlane; BLOCKS],
    unit: impl Unit,
    x: &mut [S; PLANES_TILE],
) -> Result<(), Damage> {
    let found: usize = masks.as_flattened().iter().map(|w| w.count_ones() as usize).sum();
    if found != count {
        return Err(format!("masks of {found} exceptions, their word says {count}").into());
    }
    let values = values.as_flattened();
    if values.len() == S::SIZE {
        spread(masks, shape.rank, value(values), unit, x);
        return Ok(());
    }
    let mut values = values.chunks_exact(S::SIZE);
    for (block, mask) in masks.iter().enumerate() {
        for (lane, &word) in mask.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let place = shape.place_of_bit(block, lane, left.trailing_zeros() as usize);
                x[place] = value(values.next().expect("counted"));
                left &= left - 1;
            }
        }
    }
    Ok(())
}

/// Residuals of a tile of class 1 or 2, and its masks; the words of the exceptions' values.
fn fields<'a, S: Value>(
    at: &mut Layout<'a>,
    rank: usize,
    unit: impl Unit,
    s: &mut Scratch<S>,
) -> Result<&'a [Word], Damage> {
    let fields = Fields::of_lengths(&at.head.lengths);
    let numbers = &mut s.slices[0];
    for (k, widths) in s.widths.iter_mut().enumerate() {
        unit.run(
            #[inline(always)]
            || {
                *numbers = Slice::default();
                for p in (0..NUMBER_PLANES).rev() {
                    at.planes.plane(Mode::from_bits(u32::from(at.head.modes[k]) >> (2 * p)), &mut numbers[p], unit);
                }
                unit.transpose(numbers);
                widths.find(numbers, &fields, unit);
                if let Some(of) = at.masks {
                    at.planes.plane(of.mode(k), &mut s.masks[k], unit);
                }
            },
        );
    }
    let (stored, values) = at.rest(s.widths.iter().map(Widths::words).sum(), S::SIZE)?;
    s.fields[..4 * stored.len()].copy_from_slice(stored.as_flattened());
    let mut from = &s.fields[..];
    for (d, widths) in s.wide.as_chunks_mut::<BLOCK>().0.iter_mut().zip(s.widths.iter()) {
        widths.read(from, &fields, at.head.lengths.zeros, rank, unit, d)?;
        from = &from[4 * widths.words()..];
    }
    Ok(values)
}

/// Residuals of a tile of class 0, and its masks.
fn residuals(
    at: &mut Layout<'_>,
    rank: usize,
    unit: impl Unit,
    d: &mut Ints<i16>,
    slices: &mut [Slice; 2],
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
fn block(at: &mut Layout<'_>, k: usize, rank: usize, unit: impl Unit, d: &mut [i16; BLOCK], slices: &mut [Slice; 2]) {
    *d = [0; BLOCK];
    let mut modes = [0; 2];
    let count = at.modes(k).len();
    modes[..count].copy_from_slice(at.modes(k));
    if modes == [0; 2] {
        return;
    }
    let top = count - 1;
    let mode = |k: usize, p: usize| Mode::from_bits(u32::from(modes[k]) >> (2 * p));
    for p in (0..7).rev() {
        at.planes.plane(mode(top, p), &mut slices[top][p], unit);
    }
    for k in (0..top).rev() {
        (0..8).rev().for_each(|p| at.planes.plane(mode(k, p), &mut slices[k][p], unit));
    }
    at.planes.plane(mode(top, 7), &mut slices[top][7], unit);
    let sign = slices[top][7];
    let signed = mode(top, 7) != Mode::Absent;
    for (k, slice) in slices[..count].iter_mut().enumerate() {
        if modes[k] == 0 && !signed {
            continue;
        }
        if signed {
            let below = if k == top { 7 } else { 8 };
            slice[..below].iter_mut().for_each(|plane| unit.flip(plane, &sign));
        }
        unit.transpose(slice);
        bitplanes::add_rows(slice, rank, k, d);
    }
    if count == 1 {
        bitplanes::widen(d);
    }
}
