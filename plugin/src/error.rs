// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a call fails, and the fence that every entry point runs behind.

use h5z_gpu::plugin::float_state;
use libc::c_int;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Displays as the sentence for the user.
#[derive(Debug, PartialEq)]
pub(crate) enum Error {
    /// The library's own.
    Library(h5z_gpu::Error),
    /// An argument of the caller, or what the host does not tell: the sentence behind our name.
    Call(Cow<'static, str>),
    /// The sentence behind our name, what kind it is of, and the system's error number, 0 where it is not known.
    Told { kind: Kind, text: String, errno: c_int },
    /// A panic, and what it said.
    Panic(String),
}

/// `enum h5z_gpu_failure` of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Failed = -1,
    Damaged = -2,
    Io = -3,
    NoMemory = -4,
    /// Nothing is wrong: HDF5's pipeline is to do it.
    OtherWay = -5,
}

impl Error {
    /// Why the fast way cannot be taken.
    pub(crate) fn other_way(why: impl Into<String>) -> Error {
        Error::Told { kind: Kind::OtherWay, text: why.into(), errno: 0 }
    }

    /// What a file holds is damaged.
    pub(crate) fn damaged(text: impl Into<String>) -> Error {
        Error::Told { kind: Kind::Damaged, text: text.into(), errno: 0 }
    }

    /// The same kind of failure in other words.
    pub(crate) fn saying(&self, text: impl Into<String>) -> Error {
        Error::Told { kind: self.kind(), text: text.into(), errno: self.errno() }
    }

    /// What the caller of a C function is told by a number.
    pub(crate) fn kind(&self) -> Kind {
        use h5z_gpu::Error as E;
        match self {
            Error::Library(E::Unsupported { .. } | E::Draft { .. } | E::Length { .. } | E::Corrupt { .. }) => {
                Kind::Damaged
            }
            Error::Library(E::NoMemory { .. } | E::NoDeviceMemory { .. }) => Kind::NoMemory,
            Error::Library(E::Unreadable { .. }) => Kind::Io,
            Error::Told { kind, .. } => *kind,
            _ => Kind::Failed,
        }
    }

    /// The system's error number, where a file could not be read or written.
    pub(crate) fn errno(&self) -> c_int {
        match self {
            Error::Library(h5z_gpu::Error::Unreadable { errno, .. }) | Error::Told { errno, .. } => *errno,
            _ => 0,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Library(e) => e.fmt(f),
            Error::Told { text, .. } => write!(f, "h5z-gpu: {text}"),
            Error::Call(text) => write!(f, "h5z-gpu: {text}"),
            Error::Panic(said) => write!(f, "h5z-gpu: a fault of its own, please report it: {said}"),
        }
    }
}

impl From<h5z_gpu::Error> for Error {
    fn from(e: h5z_gpu::Error) -> Self {
        Error::Library(e)
    }
}

impl From<&'static str> for Error {
    fn from(text: &'static str) -> Self {
        Error::Call(text.into())
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Error::Call(text.into())
    }
}

/// Runs `run` in the default floating-point state. A panic ends here and becomes an error.
pub(crate) fn fenced<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    float_state::with_default(|| catch_unwind(AssertUnwindSafe(run))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Panic(said.unwrap_or("no text").to_owned()))
    })
}
