// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile into words. FORMAT.md §8.
//!
//! ```text
//! x           4096 values, filled up beyond the chunk
//! quantise    u = q - base in 16 bits (class 0); if some are too far or do not hold: a few exceptions; if too many: the same
//!             in the value's width (class 1); if that fails too, or lossless: the ordered bits of r(x) less a base (class 2)
//! bridge      what stands in an exception's place is its lane's last regular value
//! difference  along as many axes as leaves the shortest residuals in plane 1
//! planes      each block of 1024 residuals as bit planes, from the highest to the lowest, the signs last
//! store       what is shorter than the values themselves; else those, as r(x) (class 3)
//! ```
//!
//! Nearly all tiles are of class 0 without exceptions: that way is a few passes over arrays in the first cache.

use super::bitplanes::{self, Slice};
use super::difference::{self, Ints};
use super::exceptions::{self, Set};
use super::format::{Class, Exceptions, Head, Masks};
use super::number::{Int, Value};
use super::parts::{How, Parts};
use super::quantize::{self, Quantizer};
use super::shape::{BLOCK, Shape};
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::Result;
use crate::memory;
use crate::scalar::Bits;
use crate::stage::pack::Bytes;
use crate::stage::tiles::Tile;

/// What is the same for every tile of a chunk.
#[derive(Clone, Copy)]
pub(super) struct Plan<S: Value> {
    pub(super) shape: Shape,
    /// None in mode 9, and where the step is not usable.
    pub(super) quantizer: Option<Quantizer<S>>,
    /// The values are floats: their bits are ordered as such.
    pub(super) float: bool,
    pub(super) how: How,
}

/// Working memory of one thread.
pub(super) struct Scratch<S: Value> {
    pub(super) x: Box<[S; PLANES_TILE]>,
    near: Box<[Ints<i16>; 2]>,
    wide: Box<[Ints<S::Wide>; 2]>,
    flags: Box<[u8; PLANES_TILE]>,
    set: Set<S::Wide>,
    parts: Parts,
}

/// `n` zeros in a box.
pub(super) fn boxed<T: bytemuck::Zeroable, const N: usize>() -> Result<Box<[T; N]>> {
    Ok(memory::zeros(N)?.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("as many as asked for")))
}

impl<S: Value> Scratch<S> {
    pub(super) fn new() -> Result<Self> {
        Ok(Scratch {
            x: boxed()?,
            near: boxed()?,
            wide: boxed()?,
            flags: boxed()?,
            set: Set::new()?,
            parts: Parts::new()?,
        })
    }
}

/// A tile's parts are ready: what its head says, and the base of classes 1 and 2.
struct Coded<I> {
    head: Head,
    base: Option<I>,
    masks: u32,
}

/// Appends the payload of the tile whose values are in `s.x`.
#[inline(always)]
pub(super) fn tile<S: Value>(
    plan: &Plan<S>,
    tile: &Tile,
    level: impl Bytes,
    s: &mut Scratch<S>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let coded = match quanta(plan, tile, level, s) {
        Some(coded) => coded,
        None => bits(plan, level, s),
    };
    let words = S::SIZE / 4;
    let values = match coded.head.exceptions {
        Exceptions::None => &[][..],
        Exceptions::Each => &s.set.values,
        Exceptions::Uniform => &s.set.values[..1],
    };
    let masked = !values.is_empty();
    let alone = coded.head.class == Class::Quanta && !masked && s.parts.nothing();
    let parts = if alone { 0 } else { s.parts.len() };
    let base = coded.base.map_or(0, |_| words);
    let len = 1 + base + usize::from(masked) + parts + words * values.len();
    let raw = 1 + words * tile.len();
    memory::reserve(out, 4 * len.min(raw))?;
    if len >= raw {
        out.extend_from_slice(&Head::RAW.pack().to_le_bytes());
        let x = s.x.iter().enumerate().filter(|&(place, _)| plan.shape.inside(tile, place));
        x.for_each(|(_, &x)| append(plan.settled(x), out));
        return Ok(());
    }
    out.extend_from_slice(&coded.head.pack().to_le_bytes());
    if alone {
        return Ok(());
    }
    if let Some(base) = coded.base {
        append(S::of_wide(base), out);
    }
    if masked {
        let masks = Masks { modes: coded.masks, count: s.set.values.len() };
        out.extend_from_slice(&masks.pack().to_le_bytes());
    }
    s.parts.append(out);
    values.iter().for_each(|&v| append(S::of_wide(v), out));
    Ok(())
}

#[inline(always)]
fn append<S: Value>(x: S, out: &mut Vec<u8>) {
    out.extend_from_slice(bytemuck::bytes_of(&x.bits().le()));
}

impl<S: Value> Plan<S> {
    /// r(x).
    #[inline(always)]
    fn settled(&self, x: S) -> S {
        self.quantizer.as_ref().map_or(x, |q| q.settled(x))
    }
}

/// A tile as class 0 or 1. `None` where it has to be class 2.
#[inline(always)]
fn quanta<S: Value>(plan: &Plan<S>, tile: &Tile, level: impl Bytes, s: &mut Scratch<S>) -> Option<Coded<S::Wide>> {
    let (lo, hi) = plan.quantizer.as_ref()?.range(&s.x)?;
    let mid = (lo + hi) >> 1;
    if let Some(base) = quantize::base::<S>(mid) {
        let [v, d] = &mut *s.near;
        if let Some(exceptions) = regular(plan, tile, &s.x, S::Wide::of(base), true, v, &mut s.flags, &mut s.set) {
            let how = Way { class: Class::Quanta, exceptions, plan, level };
            let (mut head, masks) = how.residuals(v, d, &s.set, &mut s.parts);
            head.base = (base / S::UNIT) as i32;
            return Some(Coded { head, base: None, masks });
        }
    }
    let base = S::Wide::of(mid);
    let [v, d] = &mut *s.wide;
    let exceptions = regular(plan, tile, &s.x, base, false, v, &mut s.flags, &mut s.set)?;
    let how = Way { class: Class::Wide, exceptions, plan, level };
    let (head, masks) = how.residuals(v, d, &s.set, &mut s.parts);
    Some(Coded { head, base: Some(base), masks })
}

/// Quanta less their base, exceptions bridged. `None` where there are more exceptions than a tile may have.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn regular<S: Value, I: Int>(
    plan: &Plan<S>,
    tile: &Tile,
    x: &[S; PLANES_TILE],
    base: S::Wide,
    near: bool,
    v: &mut Ints<I>,
    flags: &mut [u8; PLANES_TILE],
    set: &mut Set<S::Wide>,
) -> Option<Exceptions> {
    let q = plan.quantizer.as_ref()?;
    if q.quantize(x, base, near, v) {
        return Some(Exceptions::None);
    }
    q.flags(x, base, near, flags);
    if !set.collect(&plan.shape, tile, flags, |place| q.settled(x[place]).to_wide()) {
        return None;
    }
    exceptions::bridge(&plan.shape, flags, v);
    Some(if set.uniform { Exceptions::Uniform } else { Exceptions::Each })
}

/// A tile as class 2.
#[inline(always)]
fn bits<S: Value>(plan: &Plan<S>, level: impl Bytes, s: &mut Scratch<S>) -> Coded<S::Wide> {
    let [v, d] = &mut *s.wide;
    for (v, &x) in v.iter_mut().zip(s.x.iter()) {
        let bits = plan.settled(x).to_wide();
        *v = if plan.float { quantize::ordered(bits) } else { bits };
    }
    let first = &v[..super::shape::PLANE];
    let (lo, hi) = first.iter().fold((first[0], first[0]), |(lo, hi), &m| (lo.min(m), hi.max(m)));
    // Half of the difference as an unsigned number.
    let half = hi.minus(lo) >> 1 & (S::Wide::ONE << (8 * S::SIZE as u32 - 1)).minus(S::Wide::ONE);
    let base = lo.plus(half);
    v.iter_mut().for_each(|m| *m = m.minus(base));
    let how = Way { class: Class::Bits, exceptions: Exceptions::None, plan, level };
    let (head, masks) = how.residuals(v, d, &s.set, &mut s.parts);
    Coded { head, base: Some(base), masks }
}

/// How a tile's integers are stored.
struct Way<'a, S: Value, L> {
    class: Class,
    exceptions: Exceptions,
    plan: &'a Plan<S>,
    level: L,
}

impl<S: Value, L: Bytes> Way<'_, S, L> {
    /// Makes the parts of a tile's integers; its head, and the modes of its masks. `d` is written over.
    #[inline(always)]
    fn residuals<I: Int>(&self, v: &Ints<I>, d: &mut Ints<I>, set: &Set<S::Wide>, parts: &mut Parts) -> (Head, u32) {
        let rank = self.plan.shape.rank;
        let predictor = difference::choose(v, rank);
        difference::difference(v, rank, predictor, d);
        let mut head =
            Head { class: self.class, predictor, exceptions: self.exceptions, slices: Default::default(), base: 0 };
        let mut masks = 0;
        parts.clear();
        for (k, d) in d.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            head.slices[k] = self.block(d, parts);
            if self.exceptions != Exceptions::None {
                masks |= (parts.mask(&set.masks[k], self.level) as u32) << (2 * k);
            }
        }
        (head, masks)
    }

    /// Stores a block's residuals, in order of coding, and returns its slices.
    #[inline(always)]
    fn block<I: Int>(&self, d: &mut [I; BLOCK], parts: &mut Parts) -> usize {
        let near = self.class == Class::Quanta;
        let slices = bitplanes::slices(d).max(usize::from(near));
        let mut block = parts.begin_block(slices);
        if slices == 0 {
            return 0;
        }
        if !near {
            bitplanes::encode_signs(d, slices);
        }
        let (how, rank, level) = (self.plan.how, self.plan.shape.rank, self.level);
        let planes_of = |slice: &mut Slice| bitplanes::transpose(slice);
        let top = slices - 1;
        let mut planes = [[0; PLANES_LANES]; 8];
        bitplanes::rows(d, rank, top, &mut planes);
        planes_of(&mut planes);
        let sign = planes[7];
        let flip = |slice: &mut [bitplanes::BitPlane]| {
            if near {
                slice.as_flattened_mut().iter_mut().zip(sign.iter().cycle()).for_each(|(w, s)| *w ^= s);
            }
        };
        flip(&mut planes[..7]);
        for p in (0..7).rev() {
            parts.plane(&mut block, top, p, &planes[p], how, level);
        }
        for k in (0..top).rev() {
            let mut rows = [[0; PLANES_LANES]; 8];
            bitplanes::rows(d, rank, k, &mut rows);
            planes = rows;
            planes_of(&mut planes);
            flip(&mut planes);
            if parts.would_fill(&block, &planes[7], how, level) {
                parts.rows(&mut block, k, &rows);
                continue;
            }
            for p in (0..8).rev() {
                parts.plane(&mut block, k, p, &planes[p], how, level);
            }
        }
        parts.plane(&mut block, top, 7, &sign, how, level);
        slices
    }
}
