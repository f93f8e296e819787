// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error-bounded and lossless compression of floating-point chunks, for HDF5 and for use by itself.
//!
//! [`Engine`] encodes and decodes batches of chunks; [`Params`] says what is wanted; [`words`] turns HDF5's cd_values
//! into parameters and back; [`frame`] documents the bytes. The HDF5 plugin, the command line and the Python
//! package use nothing else.
//!
//! The same input and words give the same bytes on every machine and backend.
//!
//! ```
//! use h5z_gpu::{Dtype, Engine, Params};
//!
//! let values: Vec<f32> = (0..10_000).map(|i| (i as f32 * 0.01).sin()).collect();
//! let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
//! let params = Params::new("mode=abs,bound=1e-3".parse()?, Dtype::F32, &[100, 100])?;
//!
//! let frame = Engine::global().encode(&params, &raw);
//! assert!(frame.len() <= raw.len() + 64);
//!
//! // The frame says all that decoding needs; the limit is the most that the caller is ready to receive.
//! let back = Engine::global().decode(&frame, raw.len() as u64)?;
//! for (x, y) in values.iter().zip(back.chunks_exact(4)) {
//!     let y = f32::from_le_bytes([y[0], y[1], y[2], y[3]]);
//!     assert!((f64::from(*x) - f64::from(y)).abs() <= 1e-3);
//! }
//! # Ok::<(), h5z_gpu::Error>(())
//! ```

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod bound;
mod checksum;
mod codec;
pub mod constants;
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub mod device;
mod engine;
mod error;
#[doc(hidden)]
#[allow(unsafe_code)]
pub mod float_state;
pub mod frame;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)]
mod gpu;
#[doc(hidden)]
pub mod log;
mod memory;
mod parallel;
mod params;
mod scalar;
#[doc(hidden)]
pub mod settings;
mod simd;
mod stage;
mod text;
pub mod words;

pub use engine::{DecodeJob, EncodeJob, Engine};
pub use error::{Error, Result};
pub use params::{Ask, Bound, Class, Codec, Dtype, Extents, Params};
