// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::bound::Used;
use crate::scalar::Scalar;
use crate::stage::quantize::Quantizer;

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
#[cfg(feature = "cuda")]
pub(crate) mod gpu;
mod select;
#[cfg(test)]
mod tests;

/// What turns values into the integers that are predicted.
pub(crate) fn quantizer<S: Scalar>(used: Used) -> Quantizer {
    encode::quantizer::<S>(matches!(used, Used::PointwiseRelative(_)), used.value())
}

/// The axes that Lorenzo prediction of a tile's quanta takes, to be compared with a kernel's.
#[cfg(feature = "cuda")]
pub(crate) fn axes(q: &[i32], extents: [usize; 3]) -> u8 {
    select::choose(q, extents, &mut select::Rows::default(), &mut vec![0; q.len()]).expect("memory")
}
