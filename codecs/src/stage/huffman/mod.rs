// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals ⇄ symbols ⇄ a stream of codewords. FORMAT.md of lorenzo, §3.2, §3.4 and §4.2.
//!
//! A run of zeros is one codeword, so that a smooth tile costs far less than a bit a value; a residual of -1 or 1
//! behind it may belong to the same one. Zeros that end a tile have a symbol of their own. A residual beyond the direct
//! symbols (an escape) is the symbol of its size and its lower bits, a long run that of its class and its lower bits.
//! Codewords are canonical, of 11 bits at most, and follow each other without marks.
//!
//! Nothing in a stream tells where a codeword begins, unless all before it are read. But who begins anywhere soon falls
//! into step with the right codewords. So streams are read in several places at once, self-synchronising (Weissenberger
//! & Schmidt, ICPP 2018, doi:10.1145/3225058.3225076): a CPU reads in two, a GPU in all. Whose predecessor ends
//! elsewhere than at one of its codewords' beginnings reads that part again.

mod decode;
mod encode;

pub(crate) use crate::stage::symbols::{unzigzag, zigzag};
pub(crate) use decode::{Buffer, Decoder, buffers};
pub(crate) use encode::{Encoder, Histogram, stream_capacity, symbols};
