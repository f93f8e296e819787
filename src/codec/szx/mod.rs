// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
#[cfg(feature = "cuda")]
pub(crate) mod gpu;
mod pack;
#[cfg(feature = "cuda")]
pub(crate) mod steps;
#[cfg(test)]
mod tests;
