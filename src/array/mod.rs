// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole arrays in memory, encoded and decoded chunk by chunk beside HDF5's filter pipeline.
//!
//! A chunk is a box of an array. Encoding gathers its values into a dense chunk and makes its frame; decoding takes a frame
//! from a file or from memory and scatters what lies in the array. [`Encoding`] works ahead of whoever writes the frames:
//!
//! ```text
//!   array ── gather a box ──▶ dense chunk ── codec ──▶ frame ──▶ next(): the frames in order, at most a window ahead
//!   file  ── pread ──▶ frame ── codec, tiles that are wanted ──▶ dense chunk ── scatter a box ──▶ array
//! ```
//!
//! Without a GPU every thread takes a chunk at a time: its values stay in the thread's cache from the gathering to the frame.
//! With one a thread takes a batch, which the engine uploads while other threads gather theirs.

#[allow(unsafe_code)]
mod boxes;
mod decode;
mod encode;
mod headers;
mod range;
mod sharing;
#[cfg(test)]
mod tests;

pub use boxes::Array;
pub use decode::{Frames, decode};
pub use encode::Encoding;
pub use headers::{Checked, headers};
pub use range::range;
