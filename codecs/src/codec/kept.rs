// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a chunk is coded without loss: `exact.rs` and `short.rs` choose it, and `scaled` does it.

use crate::params::{Bound, Codec, Params, Request};

/// How a number is made of a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// It is the whole number.
    Whole,
    /// The whole number over the factor, in f64.
    Quotient,
    /// The whole number times the factor, and the addend, in f64.
    Product,
    /// The same in f32.
    ShortProduct,
    /// Its bits, so arranged that whole numbers have the numbers' order.
    Ordered,
    /// Such bits, at the place in a dictionary that the whole number says.
    Dictionary,
}

impl Map {
    pub(crate) const ALL: [Map; 6] =
        [Map::Whole, Map::Quotient, Map::Product, Map::ShortProduct, Map::Ordered, Map::Dictionary];

    /// The orders of differences that whole numbers of this map may have.
    pub(crate) fn orders(self) -> &'static [u8] {
        match self {
            Map::Whole => &[0, 1, 3],
            Map::Quotient | Map::Ordered => &[0, 1, 2, 3],
            Map::Product | Map::ShortProduct => &[0, 3],
            Map::Dictionary => &[0],
        }
    }

    /// Whether there are neither factor nor addend.
    pub fn is_exact(self) -> bool {
        matches!(self, Map::Whole | Map::Ordered | Map::Dictionary)
    }
}

/// A map with its numbers, and which whole numbers there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub map: Map,
    pub factor: f64,
    pub addend: f64,
    /// Whole numbers are this often the unit, from the origin on.
    pub unit: u64,
    pub origin: i64,
    /// Bits of the number that a code of its own stands for.
    pub special: Option<u64>,
    /// Whether a number may be some units in the last place off the one that the map gives: the frame has corrections.
    pub corrected: bool,
}

impl Scale {
    /// Integers as they are.
    pub(crate) const WHOLE: Scale =
        Scale { map: Map::Whole, factor: 0.0, addend: 0.0, unit: 1, origin: 0, special: None, corrected: false };
    /// Floats as they are.
    pub(crate) const ORDERED: Scale = Scale { map: Map::Ordered, ..Scale::WHOLE };
    /// Floats by a dictionary of them.
    pub(crate) const DICTIONARY: Scale = Scale { map: Map::Dictionary, ..Scale::WHOLE };

    /// What numbers are multiples of; zero where that is no number.
    pub(crate) fn step(&self) -> f64 {
        match self.map {
            Map::Whole => self.unit as f64,
            Map::Quotient => self.unit as f64 / self.factor,
            Map::Product | Map::ShortProduct => self.unit as f64 * self.factor.abs(),
            Map::Ordered | Map::Dictionary => 0.0,
        }
    }

    /// Whether numbers are whole ones as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.map == Map::Whole && self.unit == 1
    }
}

/// What codes are kept by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    Planes,
    Lorenzo,
    Bytes,
}

/// How a chunk is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    pub scale: Scale,
    /// How often whole numbers are differenced.
    pub order: u8,
    pub inner: Inner,
}

/// How a chunk is coded without loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kept {
    Planes,
    Lorenzo,
    Bytes,
    Scaled(Way),
    /// Whichever of planes, lorenzo and bytes makes it shortest.
    Shortest,
}

impl Kept {
    /// The params of a chunk that is kept so: with a request that names the codec, if it is one that a GPU takes; else
    /// as they are, and the CPU chooses again. Nobody else asks for `lorenzo` without a bound.
    pub fn settle(self, params: Params) -> Params {
        let request = match self {
            Kept::Planes => Request { codec: Codec::Planes, ..params.request },
            Kept::Lorenzo => Request::new(Codec::Lorenzo, Bound::Lossless),
            _ => params.request,
        };
        Params { request, ..params }
    }

    /// How a chunk with these settled params is coded without loss.
    pub fn settled(params: &Params) -> Option<Kept> {
        match params.request {
            Request { codec: Codec::Planes, .. } => Some(Kept::Planes),
            Request { codec: Codec::Lorenzo, bound: Bound::Lossless, .. } => Some(Kept::Lorenzo),
            _ => None,
        }
    }
}
