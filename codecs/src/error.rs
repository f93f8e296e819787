// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong, sorted by what the reader of the message does next.

use crate::codec_id::CodecId;
use std::fmt;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request or a frame was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be honoured: fix the arguments.
    Params {
        /// Which argument.
        what: &'static str,
        /// What was given, and what is allowed.
        got: String,
    },
    /// Written in another version of the format, or by a codec that this build lacks.
    Unsupported {
        /// Format version that the frame needs.
        format: u8,
        /// Codec of the frame.
        codec: CodecId,
    },
    /// Written by an unreleased build, in a state of the format that no version is.
    Draft {
        /// The state that the frame names.
        draft: u32,
    },
    /// The input ended early or is longer than it says.
    Length {
        /// Part of the frame.
        section: &'static str,
        /// Bytes that should be there.
        needed: u64,
        /// Bytes that are there.
        got: u64,
    },
    /// The bytes contradict FORMAT.md: the chunk is damaged.
    Corrupt {
        /// Part of the frame.
        section: &'static str,
        /// What is wrong, with numbers.
        why: String,
    },
    /// There is not enough memory: use fewer threads, smaller chunks, or give the process more.
    NoMemory {
        /// Bytes asked for at once.
        bytes: u64,
    },
    /// There is not enough memory of a device, and the host could not do the work either.
    NoDeviceMemory {
        /// What the driver said.
        what: String,
    },
    /// The system could not read a file: the chunk may be sound. Look after the disk or the network, and read again.
    Unreadable {
        /// Bytes that were to be read.
        bytes: u64,
        /// Their place in the file.
        at: u64,
        /// The system's error number.
        errno: i32,
    },
}

impl Error {
    #[doc(hidden)]
    pub fn corrupt(section: &'static str, why: impl Into<Damage>) -> Self {
        Error::Corrupt { section, why: why.into().0 }
    }

    #[doc(hidden)]
    pub fn params(what: &'static str, got: impl Into<String>) -> Self {
        Error::Params { what, got: got.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Params { what, got } => write!(f, "h5z-gpu: {what}: {got}"),
            Error::Unsupported { format: 1, .. } => write!(
                f,
                "h5z-gpu: this chunk was written by a build before 0.1.0; read it with that build and write it again"
            ),
            Error::Draft { draft } => write!(
                f,
                "h5z-gpu: this chunk was written by an unreleased build, in a state of the format ({draft:08x}) that \
                 was not released; read it with that build and write it again with a release"
            ),
            Error::Unsupported { format, codec } => write!(
                f,
                "h5z-gpu: this chunk needs a reader of format {format} with codec {}; this one reads \
                 format {} and codecs 0 to {}: install a newer h5z-gpu",
                codec.number(),
                crate::constants::FORMAT_VERSION,
                CodecId::NAMES.len() - 1
            ),
            Error::Length { section, needed, got } => {
                write!(f, "h5z-gpu: damaged chunk: {section} has {got} bytes where {needed} are needed")
            }
            Error::NoMemory { bytes } => write!(
                f,
                "h5z-gpu: no memory for {bytes} bytes: free some, set H5Z_GPU_THREADS=1 or take smaller chunks"
            ),
            Error::NoDeviceMemory { what } => write!(
                f,
                "h5z-gpu: an array on a device: {what}: use smaller chunks or fewer programs on the device, or copy \
                 the array to host memory"
            ),
            Error::Unreadable { bytes, at, errno } => write!(
                f,
                "h5z-gpu: {bytes} bytes at {at} of the file cannot be read: {}",
                std::io::Error::from_raw_os_error(*errno)
            ),
            Error::Corrupt { section, why } => write!(f, "h5z-gpu: damaged chunk: {section}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// What contradicts FORMAT.md, as a stage finds it. A caller, who knows section and tile, makes an [`Error::Corrupt`]
/// of it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Damage(String);

impl<T: Into<String>> From<T> for Damage {
    fn from(why: T) -> Self {
        Damage(why.into())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
