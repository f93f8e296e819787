// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

pub(crate) mod cpu;
mod decode;
mod encode;
mod format;
#[cfg(test)]
mod tests;
