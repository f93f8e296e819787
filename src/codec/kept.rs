// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps a chunk without loss: what `exact.rs` says of a chunk, and `scaled` does. No code but these words.

/// How a number is made of a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Map {
    /// It is the whole number.
    Whole,
    /// The whole number over the factor, in f64.
    Quotient,
    /// The whole number times the factor, and the addend, in f64.
    Product,
    /// The same in f32.
    ShortProduct,
}

impl Map {
    pub(crate) const ALL: [Map; 4] = [Map::Whole, Map::Quotient, Map::Product, Map::ShortProduct];
}

/// A map with its numbers, and which whole numbers there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) map: Map,
    pub(crate) factor: f64,
    pub(crate) addend: f64,
    /// Whole numbers are this often the unit, from the origin on.
    pub(crate) unit: u64,
    pub(crate) origin: i64,
    /// Bits of the number that a code of its own stands for.
    pub(crate) special: Option<u64>,
}

impl Scale {
    /// Integers as they are.
    pub(crate) const WHOLE: Scale =
        Scale { map: Map::Whole, factor: 0.0, addend: 0.0, unit: 1, origin: 0, special: None };

    /// Whether numbers are whole ones as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.map == Map::Whole && self.unit == 1
    }
}

/// What codes are kept by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inner {
    Planes,
    Lorenzo,
    Bytes,
}

/// How a chunk is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Way {
    pub(crate) scale: Scale,
    /// How often whole numbers are differenced.
    pub(crate) order: u8,
    pub(crate) inner: Inner,
}

/// What keeps a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kept {
    Planes,
    Lorenzo,
    Bytes,
    Scaled(Way),
}
