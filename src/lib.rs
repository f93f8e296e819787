// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error-bounded and lossless compression of floating-point arrays, for HDF5 and for use by itself.
//!
//! ```
//! use h5z_gpu::{Bound, decode, encode};
//!
//! let values: Vec<f32> = (0..10_000).map(|i| (i as f32 * 0.01).sin()).collect();
//! let frame = encode::<f32>(&values, &[100, 100], Bound::Absolute(1e-3))?;
//! let back = decode::<f32>(&frame)?;
//!
//! assert!(frame.len() < 2 * values.len(), "half of the raw bytes at most");
//! assert!(values.iter().zip(&back).all(|(x, y)| (f64::from(*x) - f64::from(*y)).abs() <= 1e-3));
//! # Ok::<(), h5z_gpu::Error>(())
//! ```
//!
//! The same values and request give the same bytes on every machine, on a CPU and on a GPU. Encoding never fails but
//! for want of memory, and never makes an array longer than itself and [`frame::STORED_HEADER`] bytes.
//!
//! * [`encode`], [`decode`], [`decode_into`]: arrays of numbers.
//! * [`Engine`]: batches of chunks as bytes, of any type and order, with fill values; [`Params`] says what they are.
//! * [`mod@array`]: whole arrays, chunk by chunk, between memory and files; on systems that have both.
//! * [`words`]: HDF5's cd_values.
//! * `judge`, with the feature of that name: whether a bound was kept, in exact arithmetic.
//! * [`frame`] specifies the bytes of a frame, [`codec`]'s modules those of each codec.

#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(any(unix, windows))]
pub mod array;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)]
mod cuda;
mod device;
mod engine;
mod host;
#[cfg(all(feature = "cuda", feature = "testing"))]
#[path = "../tests/gpu/inside/mod.rs"]
pub mod testing;
mod typed;

/// What the plugin and the programs of this repository share with the library: no part of its interface.
#[doc(hidden)]
pub mod plugin {
    #[cfg(any(unix, windows))]
    pub use crate::array::{Checked, headers};
    pub use crate::host::available::memory_available;
    #[cfg(any(unix, windows))]
    pub use crate::host::{elf, file};
    pub use crate::host::{float_state, folders, log, settings, threads::threads};
    pub use codecs::frame::{Head, peek};
    pub use codecs::tools::{lines, sentence};

    #[cfg(feature = "cuda")]
    use kernels::RELEASED as KERNELS_RELEASED;
    #[cfg(not(feature = "cuda"))]
    const KERNELS_RELEASED: bool = true;

    /// The version for C, with a 0 behind it, and `+unreleased` where sources of codecs or kernels are not a release's.
    pub const VERSION_FOR_C: &str = if codecs::release::RELEASED && KERNELS_RELEASED {
        concat!(env!("CARGO_PKG_VERSION"), "\0")
    } else {
        concat!(env!("CARGO_PKG_VERSION"), "+unreleased\0")
    };
    /// The same without the 0.
    pub const VERSION: &str = VERSION_FOR_C.split_at(VERSION_FOR_C.len() - 1).0;
}

#[cfg(feature = "judge")]
pub use codecs::judge;
pub use codecs::{
    Bound, Class, Codec, CodecId, DecodeJob, Dtype, EncodeJob, Error, Extents, Keep, KeepFacts, Mode, ModeFacts,
    Params, Request, Result, Values, codec, frame, words,
};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use codecs::{constants, release};
pub use device::{GpuCode, GpuDevice, GpuFrom, GpuVersion};
pub use engine::Engine;
pub use typed::{Element, decode, decode_into, encode};
