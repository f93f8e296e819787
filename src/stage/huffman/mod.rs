// SPDX-License-Identifier: MIT OR Apache-2.0
//! Residuals ⇄ symbols ⇄ a stream of codewords, with or without a gap array. FORMAT.md of lorenzo, §3.2, §3.4 and §4.2.
//!
//! Zeros are counted and written as runs of powers of two, so that a smooth tile costs far less than a bit a value. A
//! residual beyond the direct symbols (an escape) is the symbol of its size and its lower bits. Codewords are canonical,
//! of 11 bits at most, and follow each other without marks.
//!
//! Nothing in a stream tells where a codeword begins, unless all before it are read. A gap array (Yamamoto et al., ICPP
//! 2020, doi:10.1145/3404397.3404429) says so for every subsequence of 512 bits: how many bits behind its start the first
//! codeword begins. A CPU reads in two places at once with it, a GPU in all. Without one a CPU reads from one end to the
//! other, and a GPU decodes self-synchronising (Weissenberger & Schmidt, ICPP 2018, doi:10.1145/3225058.3225076): every
//! thread begins anywhere, wrong codewords soon fall into step with the right ones, and a thread whose predecessor ends
//! elsewhere reads its own beginning again.

mod decode;
mod encode;
mod symbols;

pub(crate) use decode::{Buffer, Decoder, buffers};
pub(crate) use encode::{Encoder, Histogram, gaps_capacity, stream_capacity, symbols};
pub(crate) use symbols::{unzigzag, zigzag};
