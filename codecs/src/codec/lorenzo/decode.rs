// SPDX-License-Identifier: MIT OR Apache-2.0
//! Payloads → values, FORMAT.md §3.4 to §5.
//!
//! ```text
//! for each tile
//!     outliers      are found, and their places checked
//!     residuals     from codewords or from a fixed width
//!     integrate     sums along the tile's axes, or interpolation: quanta
//!     values        quanta times the step, row by row to the tile's place in the chunk
//!     outliers      replace theirs
//! ```
//!
//! Whatever the bytes are, a tile of n values takes n of each, in memory that was there before.

use super::encode::{fine, quantizer};
use super::format::{Class, Coded, Coding, Kind, Predictor};
use super::outliers::{Outliers, value};
use crate::constants::LORENZO_TILE;
use crate::error::{Damage, Error};
use crate::memory;
use crate::scalar::Scalar;
use crate::simd::vectorize;
use crate::stage::huffman::unzigzag;
use crate::stage::interpolate::{self, Work};
use crate::stage::lorenzo;
use crate::stage::quantize::{Linear, Quantizer};
use crate::stage::tiles::{Grid, Share, Tile};

/// What does not change from tile to tile.
pub(super) struct Context<C> {
    coding: C,
    quantizer: Quantizer,
    fine: Quantizer,
}

impl<C: Coding> Context<C> {
    pub(super) fn new<S: Scalar>(coding: C, log: bool, used: f64, base: f64) -> Self {
        let fine: Linear = fine(used, base);
        Context { coding, quantizer: quantizer::<S>(log, used, base), fine: Quantizer::Linear(fine) }
    }
}

/// Working memory of one thread.
pub(super) struct Scratch<C: Coding> {
    residuals: C::Scratch,
    points: Vec<i32>,
    work: Work,
}

impl<C: Coding> Scratch<C> {
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Scratch { residuals: C::scratch()?, points: memory::zeros(LORENZO_TILE)?, work: Work::default() })
    }

    /// Memory for a tile of this kind and `n` values: decoding it allocates nothing.
    pub(super) fn reserve(&mut self, kind: Kind, n: usize) -> Result<(), Error> {
        if let Predictor::Interpolation(_) = kind.predictor { self.work.reserve(n) } else { Ok(()) }
    }
}

/// A tile's place in the values that one thread writes.
pub(super) struct Place<'p, 'a, S> {
    pub(super) grid: &'p Grid,
    pub(super) tile: Tile,
    pub(super) share: &'p mut Share<'a, S>,
}

impl<S: Copy> Place<'_, '_, S> {
    /// The tile's rows, or planes of whole ones, each with the place of its first value in the tile.
    #[inline(always)]
    pub(super) fn rows(&mut self, mut f: impl FnMut(usize, &mut [S])) {
        let [a, b, c] = self.tile.extents;
        // Whole rows lie one behind the other.
        let (b, c) = if c == self.grid.extents()[2] { (1, b * c) } else { (b, c) };
        for z in 0..a {
            for y in 0..b {
                f((z * b + y) * c, self.share.row(self.grid.row(&self.tile, z, y), c));
            }
        }
    }

    /// Puts `v` at `len` places of the tile from `start` on.
    fn fill(&mut self, mut start: usize, len: usize, v: S) {
        let ([_, b, c], end) = (self.tile.extents, start + len);
        while start < end {
            let (row, at) = (start / c, start % c);
            let many = (end - start).min(c - at);
            self.share.row(self.grid.row(&self.tile, row / b, row % b), c)[at..at + many].fill(v);
            start += many;
        }
    }
}

/// Decodes one tile.
pub(super) fn tile<S: Scalar, C: Coding>(
    coded: &Coded<'_>,
    context: &Context<C>,
    s: &mut Scratch<C>,
    place: Place<'_, '_, S>,
) -> Result<(), Damage> {
    vectorize(
        #[inline(always)]
        || plain_tile(coded, context, s, place),
    )
}

#[inline(always)]
fn plain_tile<S: Scalar, C: Coding>(
    coded: &Coded<'_>,
    context: &Context<C>,
    s: &mut Scratch<C>,
    mut place: Place<'_, '_, S>,
) -> Result<(), Damage> {
    let (&Coded { kind, bytes, len, .. }, extents) = (coded, place.tile.extents);
    let n = place.tile.len();
    let payload = &bytes[..len];
    if kind.class == Class::Raw {
        if len != n * S::SIZE {
            return Err(format!("a raw payload of {len} bytes, {} expected", n * S::SIZE).into());
        }
        place.rows(
            #[inline(always)]
            |at, row| {
                for (o, v) in row.iter_mut().zip(payload[at * S::SIZE..].chunks_exact(S::SIZE)) {
                    *o = value(v);
                }
            },
        );
        return Ok(());
    }
    let (outliers, at) = match kind.outliers {
        true => Outliers::open::<S>(payload, extents).map(|(outliers, len)| (Some(outliers), len))?,
        false => (None, 0),
    };
    let (quantizer, quanta) = quanta(coded, &bytes[at..], len - at, context, extents, s)?;
    place.rows(
        #[inline(always)]
        |at, row| quantizer.dequantize(&quanta[at..], row),
    );
    if let Some(outliers) = outliers {
        outliers.for_each_run(n, |start, len, v| place.fill(start, len, v));
    }
    Ok(())
}

/// A tile's quanta, and what makes values of them. One code for both types of values: it is large, and not inlined.
#[inline(never)]
fn quanta<'s, C: Coding>(
    coded: &Coded<'_>,
    bytes: &[u8],
    len: usize,
    context: &'s Context<C>,
    extents: [usize; 3],
    s: &'s mut Scratch<C>,
) -> Result<(&'s Quantizer, &'s [i32]), Damage> {
    vectorize(
        #[inline(always)]
        || {
            let n = extents.iter().product();
            residuals(coded, bytes, len, context, extents, &mut s.residuals)?;
            let residuals = &mut s.residuals.as_mut()[..n];
            match coded.kind.predictor {
                Predictor::Lorenzo(axes) => {
                    lorenzo::integrate(residuals, extents, axes);
                    Ok((&context.quantizer, &*residuals))
                }
                Predictor::Interpolation(way) => {
                    if way.axes & !interpolate::axes(extents) != 0 {
                        return Err(format!("interpolation along axes {:#05b} of {extents:?} values", way.axes).into());
                    }
                    let points = &mut s.points[..n];
                    interpolate::reconstruct(residuals, extents, way, &mut s.work, points);
                    Ok((&context.fine, &*points))
                }
            }
        },
    )
}

/// A tile's `n` residuals, 0 where it has none.
#[cfg(feature = "testing")]
pub(super) fn tile_residuals<'s, S: Scalar, C: Coding>(
    coded: &Coded<'_>,
    context: &Context<C>,
    s: &'s mut Scratch<C>,
    extents: [usize; 3],
) -> Result<&'s [i32], Damage> {
    let (kind, payload) = (coded.kind, &coded.bytes[..coded.len]);
    let n = extents.iter().product();
    if kind.class == Class::Raw {
        s.residuals.as_mut()[..n].fill(0);
    } else {
        let at = if kind.outliers { Outliers::open::<S>(payload, extents)?.1 } else { 0 };
        residuals(coded, &payload[at..], payload.len() - at, context, extents, &mut s.residuals)?;
    }
    Ok(&s.residuals.as_mut()[..n])
}

/// A tile's `n` residuals from what follows the outliers: `len` bytes at the head of `bytes`.
#[inline(always)]
fn residuals<C: Coding>(
    coded: &Coded<'_>,
    bytes: &[u8],
    len: usize,
    context: &Context<C>,
    extents: [usize; 3],
    scratch: &mut C::Scratch,
) -> Result<(), Damage> {
    let n = extents.iter().product();
    let out = &mut scratch.as_mut()[..n];
    out.fill(0);
    match coded.kind.class {
        Class::Coded => context.coding.residuals(coded, bytes, len, extents, scratch),
        Class::Other if C::FILTERED => context.coding.residuals(coded, bytes, len, extents, scratch),
        Class::Other => fixed(&bytes[..len], n, out),
        _ if len == 0 => Ok(()),
        _ => Err(format!("{len} bytes for an empty tile").into()),
    }
}

/// Residuals of fixed width.
fn fixed(bytes: &[u8], n: usize, out: &mut [i32]) -> Result<(), Damage> {
    let Some((width, words)) = bytes.split_first_chunk::<4>() else {
        return Err("no width".into());
    };
    let width = u32::from_le_bytes(*width);
    if !(1..=32).contains(&width) {
        return Err(format!("residuals of {width} bits, 1 to 32 allowed").into());
    }
    let expected = 4 * (n * width as usize).div_ceil(32);
    if words.len() != expected {
        return Err(format!("{} bytes of residuals of {width} bits, {expected} expected", words.len()).into());
    }
    let (mut held, mut count) = (0u64, 0);
    let mut words = words.as_chunks::<4>().0.iter();
    for o in &mut out[..n] {
        if count < width {
            held |= u64::from(words.next().map_or(0, |w| u32::from_le_bytes(*w))) << count;
            count += 32;
        }
        *o = unzigzag((held & ((1 << width) - 1)) as u32);
        held >>= width;
        count -= width;
    }
    if held != 0 {
        return Err("bits after the last residual".into());
    }
    Ok(())
}
