// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile into words. FORMAT.md §8.
//!
//! ```text
//! x           4096 values, filled up beyond the chunk
//! quantise    u = q - base in 16 bits (class 0); if some are too far or do not hold: a few exceptions; if too many:
//!             the same in the value's width (class 1), at once where half steps are needed; if that fails too, or
//!             lossless: r(x) as numbers less a base (class 2), which are the ordered bits, or integers where all
//!             values are such times a power of two
//! bits        of class 2 exceptions are NaN, infinities, fill, and a few that are longer than the others
//! bridge      what stands in an exception's place is its row's last regular value
//! difference  along as many axes as leaves the shortest residuals in plane 1
//! planes      class 0: each block of 1024 residuals as bit planes, from the highest to the lowest, the signs last
//! lengths     classes 1 and 2: classes of the residuals' lengths as such planes, then the bits
//! store       what is shorter than the values themselves; else those, as r(x) (class 3)
//! ```
//!
//! Nearly all tiles under a bound are of class 0 without exceptions: that way is a few passes over arrays in the first
//! cache.

use super::bitplanes::{self, Extent};
use super::difference::{self, Held, Ints};
use super::exceptions::{self, Candidates, Flags, Set};
use super::format::{Class, Exceptions, Head, Masks};
use super::lengths::{Counted, NUMBER_PLANES};
use super::numbers;
use super::parts::Parts;
use super::quantize::{self, Quanta, Quantizer};
use super::shape::{BLOCK, Shape};
use super::types::{Int, Value};
use super::unit::Unit;
use crate::constants::{PLANES_LANES, PLANES_TILE};
use crate::error::Result;
use crate::memory::{self, boxed};
use crate::scalar::Bits;
use crate::stage::tiles::Tile;

/// What is the same for every tile of a chunk.
#[derive(Clone, Copy)]
pub(super) struct TileRule<S: Value> {
    pub(super) shape: Shape,
    /// None in mode 9, and where the step is not usable.
    pub(super) quantizer: Option<Quantizer<S>>,
    /// The values are floats: their bits are ordered as such.
    pub(super) float: bool,
    /// Bits of the fill value that the user defined, not of +0.
    pub(super) fill: Option<S::Wide>,
}

/// Working memory of one thread.
pub(super) struct Scratch<S: Value> {
    pub(super) x: Box<[S; PLANES_TILE]>,
    near: Box<[Ints<i16>; 2]>,
    wide: Box<[Ints<S::Wide>; 2]>,
    flags: Box<Flags>,
    set: Set<S::Wide>,
    counted: Counted,
    parts: Parts,
}

impl<S: Value> Scratch<S> {
    pub(super) fn new() -> Result<Self> {
        Ok(Scratch {
            x: boxed()?,
            near: boxed()?,
            wide: boxed()?,
            flags: boxed()?,
            set: Set::new()?,
            counted: Counted::new()?,
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
pub(super) fn tile<S: Value>(
    plan: &TileRule<S>,
    tile: &Tile,
    unit: impl Unit,
    s: &mut Scratch<S>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let coded = code(plan, tile, unit, s);
    let words = S::SIZE / 4;
    let values = match coded.head.exceptions {
        Exceptions::None => &[][..],
        Exceptions::Each | Exceptions::Uniform => &s.set.values,
    };
    let masked = !values.is_empty();
    let alone = coded.head.class == Class::Quanta && !masked && s.parts.nothing();
    let parts = if alone { 0 } else { s.parts.len() };
    let base = coded.base.map_or(0, |_| words);
    let len = coded.head.len() + base + usize::from(masked) + parts + words * values.len();
    let raw = 1 + words * tile.len();
    memory::reserve(out, 4 * len.min(raw))?;
    if len >= raw {
        out.extend_from_slice(&Head::RAW.pack()[0].to_le_bytes());
        let x = s.x.iter().enumerate().filter(|&(place, _)| plan.shape.inside(tile, place));
        x.for_each(|(_, &x)| append(plan.settled(x), out));
        return Ok(());
    }
    coded.head.pack()[..coded.head.len()].iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
    if alone {
        return Ok(());
    }
    if let Some(base) = coded.base {
        append(S::of_wide(base), out);
    }
    if masked {
        let masks = Masks { modes: coded.masks, count: s.set.count };
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

impl<S: Value> TileRule<S> {
    /// r(x).
    #[inline(always)]
    fn settled(&self, x: S) -> S {
        self.quantizer.as_ref().map_or(x, |q| q.settled(x))
    }

    /// Finds the exceptions of class 2: the first set of them that a tile may have.
    fn exceptions(
        &self,
        tile: &Tile,
        x: &[S; PLANES_TILE],
        unit: impl Unit,
        flags: &mut Flags,
        set: &mut Set<S::Wide>,
    ) -> Exceptions {
        let special = Candidates::of_type::<S>(self.float, self.fill);
        let full = (self.float && S::SIZE == 8).then(|| special.and_full());
        for candidates in full.into_iter().chain([special]) {
            // Then of the sets behind it neither, which are parts of it.
            if !candidates.any(x, unit) {
                break;
            }
            candidates.flags(x, unit, flags);
            if let Some(exceptions) = set.collect(&self.shape, tile, flags, unit, x, |x| x) {
                return exceptions;
            }
        }
        flags.fill(0);
        Exceptions::None
    }
}

/// Makes a tile's parts, as the lowest class that takes it.
fn code<S: Value>(plan: &TileRule<S>, tile: &Tile, unit: impl Unit, s: &mut Scratch<S>) -> Coded<S::Wide> {
    let rank = plan.shape.rank;
    let held = Held::of_tile(rank, tile.extents);
    let halves = plan.quantizer.as_ref().is_some_and(|q| q.halves(&s.x, unit));
    let mid = plan.quantizer.as_ref().and_then(|q| q.range(&s.x, halves, unit)).map(|(lo, hi)| (lo + hi) >> 1);
    if let Some(base) = mid.filter(|_| !halves).and_then(quantize::base::<S>) {
        let [v, d] = &mut *s.near;
        let (flags, near) = (&mut s.flags, (S::Wide::truncate(base), Quanta::Near));
        if let Some(exceptions) = regular(plan, tile, &s.x, near, unit, v, flags, &mut s.set) {
            let way = Way { class: Class::Quanta, exceptions, plan, unit };
            let (mut head, masks) = way.residuals(held, v, d, &s.set, &mut s.parts);
            head.base = (base / S::UNIT) as i32;
            return Coded { head, base: None, masks };
        }
    }
    let [v, d] = &mut *s.wide;
    let wide = mid.and_then(|mid| {
        let base = S::Wide::truncate(mid);
        let wide = (base, if halves { Quanta::Halves } else { Quanta::Wide });
        let exceptions = regular(plan, tile, &s.x, wide, unit, v, &mut s.flags, &mut s.set)?;
        Some((base, exceptions))
    });
    if let Some((base, exceptions)) = wide {
        let (predictor, _) = difference::shortest(v, held, unit);
        difference::difference(v, rank, predictor, unit, d);
        let way = Way { class: Class::Wide, exceptions, plan, unit };
        let (mut head, masks) = way.lengths(d, &s.set, &mut s.counted, &mut s.parts);
        (head.predictor, head.halves) = (predictor, halves);
        return Coded { head, base: Some(base), masks };
    }
    let settled = &mut s.x;
    if plan.quantizer.is_some() {
        settled.iter_mut().for_each(|x| *x = plan.settled(*x));
    }
    let exceptions = plan.exceptions(tile, settled, unit, &mut s.flags, &mut s.set);
    let (flags, set) = (&s.flags, &s.set);
    let finish = |m: &mut Ints<S::Wide>| {
        let base = numbers::less_base(m, flags, unit);
        if exceptions != Exceptions::None {
            exceptions::bridge(m, flags);
        }
        let (predictor, cost) = difference::shortest(m, held, unit);
        (base, predictor, cost)
    };
    numbers::bits(settled, plan.float, unit, v);
    let (mut base, mut predictor, cost) = finish(v);
    let mut exponent = if plan.float { numbers::exponent(settled, flags, unit) } else { None };
    if let Some(e) = exponent {
        numbers::integers(settled, e, unit, d);
        let of_integers = finish(d);
        if of_integers.2 <= cost {
            (base, predictor) = (of_integers.0, of_integers.1);
            std::mem::swap(v, d);
        } else {
            exponent = None;
        }
    }
    difference::difference(v, rank, predictor, unit, d);
    let way = Way { class: Class::Bits, exceptions, plan, unit };
    let (mut head, masks) = way.lengths(d, set, &mut s.counted, &mut s.parts);
    head.predictor = predictor;
    head.lengths.exponent = exponent;
    Coded { head, base: Some(base), masks }
}

/// Quanta less their base, exceptions bridged. `None` where there are more exceptions than a tile
/// may have.
#[allow(clippy::too_many_arguments)]
fn regular<S: Value, I: Int>(
    plan: &TileRule<S>,
    tile: &Tile,
    x: &[S; PLANES_TILE],
    (base, quanta): (S::Wide, Quanta),
    unit: impl Unit,
    v: &mut Ints<I>,
    flags: &mut Flags,
    set: &mut Set<S::Wide>,
) -> Option<Exceptions> {
    let q = plan.quantizer.as_ref()?;
    if q.quantize(x, base, quanta, unit, v) {
        return Some(Exceptions::None);
    }
    q.flags(x, base, quanta, unit, flags);
    let exceptions = set.collect(&plan.shape, tile, flags, unit, x, |x| q.settled(x))?;
    exceptions::bridge(v, flags);
    Some(exceptions)
}

/// How a tile's integers are stored.
struct Way<'a, S: Value, L> {
    class: Class,
    exceptions: Exceptions,
    plan: &'a TileRule<S>,
    unit: L,
}

impl<S: Value, L: Unit> Way<'_, S, L> {
    /// Makes the parts of a tile's integers; its head, and the modes of its masks. `d` is written over.
    fn residuals(
        &self,
        held: Held,
        v: &Ints<i16>,
        d: &mut Ints<i16>,
        set: &Set<S::Wide>,
        parts: &mut Parts,
    ) -> (Head, u32) {
        let rank = held.rank;
        let predictor = difference::choose_predictor(v, held, self.unit);
        difference::difference(v, rank, predictor, self.unit, d);
        let mut head = Head { class: self.class, predictor, exceptions: self.exceptions, ..Head::RAW };
        let mut masks = 0;
        parts.clear();
        for (k, d) in d.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            head.slices[k] = self.unit.run(
                #[inline(always)]
                || self.block(d, parts),
            );
            masks |= self.mask(k, set, parts);
        }
        (head, masks)
    }

    /// The same of classes 1 and 2, of residuals, which are written over; the predictor is not in the head.
    fn lengths<I: Int>(
        &self,
        d: &mut Ints<I>,
        set: &Set<S::Wide>,
        counted: &mut Counted,
        parts: &mut Parts,
    ) -> (Head, u32) {
        let rank = self.plan.shape.rank;
        let lengths = counted.take_lengths(d, rank, self.unit);
        let mut head = Head { class: self.class, exceptions: self.exceptions, lengths, ..Head::RAW };
        let mut masks = 0;
        parts.clear();
        let mut planes = [[0; PLANES_LANES]; 8];
        for (k, u) in d.as_chunks::<BLOCK>().0.iter().enumerate() {
            counted.block(k, u, rank, &lengths, self.unit, (&mut planes, &mut parts.bits));
            head.modes[k] = self.unit.run(
                #[inline(always)]
                || {
                    self.unit.transpose(&mut planes);
                    let mut full = false;
                    let planes = planes[..NUMBER_PLANES].iter().rev();
                    planes.fold(0, |modes, plane| modes << 2 | parts.plane(&mut full, plane, self.unit) as u16)
                },
            );
            masks |= self.mask(k, set, parts);
        }
        (head, masks)
    }

    /// Stores a block's mask, if the tile has exceptions; its mode where the word of masks has it.
    fn mask(&self, block: usize, set: &Set<S::Wide>, parts: &mut Parts) -> u32 {
        match self.exceptions {
            Exceptions::None => 0,
            _ => (parts.mask(&set.masks[block], self.unit) as u32) << (2 * block),
        }
    }

    /// Stores a block's residuals, in order of coding, and returns its slices.
    #[inline(always)]
    fn block(&self, d: &mut [i16; BLOCK], parts: &mut Parts) -> usize {
        let extent = Extent::of_block(d);
        let slices = extent.slices.max(1);
        let (mut modes, mut full) = ([0; 2], false);
        // Which bit planes are not all 0.
        let union = extent.union(slices);
        let (rank, unit, top) = (self.plan.shape.rank, self.unit, slices - 1);
        let mut sign = [0; PLANES_LANES];
        let mut planes = [[0; PLANES_LANES]; 8];
        // Slices from the highest down, then the signs.
        for k in (0..slices).rev().filter(|&k| extent.slices > 0 && union.byte(k) != 0) {
            bitplanes::rows(d, rank, k, &mut planes);
            unit.transpose(&mut planes);
            if k == top {
                sign = planes[7];
            }
            for p in (0..if k == top { 7 } else { 8 }).rev().filter(|p| union.byte(k) >> p & 1 == 1) {
                unit.flip(&mut planes[p], &sign);
                modes[k] |= (parts.plane(&mut full, &planes[p], unit) as u16) << (2 * p);
            }
        }
        modes[top] |= (parts.plane(&mut full, &sign, unit) as u16) << 14;
        parts.modes(&modes[..slices]);
        slices
    }
}
