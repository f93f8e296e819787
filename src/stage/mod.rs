// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages: reversible steps that know no frame, no parameters and no device. Each file: forward, inverse, tests.

pub(crate) mod codebook;
pub(crate) mod ends;
pub(crate) mod estimate;
pub(crate) mod huffman;
pub(crate) mod interpolate;
pub(crate) mod lorenzo;
pub(crate) mod pack;
pub(crate) mod quantize;
pub(crate) mod symbols;
pub(crate) mod tiles;
