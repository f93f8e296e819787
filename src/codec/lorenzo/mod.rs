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
#[cfg(test)]
mod tests;

/// What turns values into the integers that are predicted.
pub(crate) fn quantizer<S: Scalar>(used: Used) -> Quantizer {
    encode::quantizer::<S>(matches!(used, Used::PointwiseRelative(_)), used.value())
}
