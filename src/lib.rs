// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error-bounded and lossless compression of floating-point chunks, for HDF5 and for use by itself.
//!
//! [`Engine`] encodes and decodes batches of chunks; [`Params`] says what is wanted; [`words`] turns HDF5's cd_values
//! into parameters and back; [`frame`] documents the bytes. The HDF5 plugin, the command line and the Python
//! package use nothing else.
//!
//! The same input and words give the same bytes on every machine and backend.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod bound;
mod checksum;
mod codec;
pub mod constants;
mod engine;
mod error;
pub mod frame;
#[doc(hidden)]
pub mod log;
mod parallel;
mod params;
mod scalar;
mod text;
pub mod words;

pub use engine::{DecodeJob, EncodeJob, Engine};
pub use error::{Error, Result};
pub use params::{Ask, Bound, Class, Codec, Dtype, Extents, Params};
