// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod cube;
mod format;
#[cfg(feature = "cuda")]
pub(crate) mod gpu;
#[cfg(test)]
mod tests;
