// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codecs of `h5z-gpu`: everything about the bytes of a frame, and which codec a chunk gets.
//!
//! Bytes in, bytes out: no file, no device, no variable of the environment, no unsafe code. The crate `h5z-gpu` adds
//! these and is what programs use; what is hidden here is shared with it alone and may change with any release.
//!
//! * [`Cpu`]: batches of chunks to frames and back, on as many threads as it is told.
//! * [`frame`] specifies the bytes of a frame, [`codec`]'s modules those of each codec.
//! * [`words`]: HDF5's cd_values.
//! * `judge`, with the feature of that name: whether a bound was kept, in exact arithmetic.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Pages of hidden items are read in their source.
#![allow(rustdoc::private_intra_doc_links)]

#[doc(hidden)]
pub mod bound;
#[doc(hidden)]
pub mod checksum;
pub mod codec;
#[doc(hidden)]
pub mod codec_id;
#[doc(hidden)]
pub mod constants;
mod cpu;
#[doc(hidden)]
pub mod error;
pub mod frame;
#[cfg(feature = "judge")]
pub mod judge;
#[doc(hidden)]
pub mod keep;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod mode;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod params;
#[doc(hidden)]
pub mod part;
#[doc(hidden)]
pub mod release;
#[doc(hidden)]
pub mod scalar;
mod simd;
#[doc(hidden)]
pub mod stage;
mod text;
#[doc(hidden)]
pub mod tools;
pub mod words;

pub use codec_id::CodecId;
pub use cpu::{Cpu, DecodeJob, EncodeJob, Settled, restore_order};
pub use error::{Error, Result};
pub use keep::{Keep, KeepFacts};
pub use mode::{Bound, Mode, ModeFacts, Values};
pub use params::{Class, Codec, Dtype, Extents, Params, Request};
