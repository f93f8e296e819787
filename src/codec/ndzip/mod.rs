// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
pub(crate) mod cube;
pub(crate) mod format;
#[cfg(feature = "cuda")]
pub(crate) mod gpu;
#[cfg(test)]
mod tests;
