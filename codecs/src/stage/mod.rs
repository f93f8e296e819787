// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages: reversible steps that know no frame, no parameters and no device. Each file: forward, inverse, tests.

pub mod codebook;
pub(crate) mod ends;
pub mod estimate;
pub(crate) mod huffman;
pub mod interpolate;
pub mod lorenzo;
pub(crate) mod pack;
pub mod quantize;
pub(crate) mod symbols;
pub mod tiles;
