// SPDX-License-Identifier: MIT OR Apache-2.0
//! An HDF5 library. There may be several in a process: each Python wheel brings its own.

use crate::hdf5::{Creation, Errors, Lock, Questions, Real};
use crate::module::Module;
use crate::newer::{Connectors, Several};
use std::sync::{Mutex, PoisonError};

/// An HDF5 library, by what of it is called.
pub(crate) struct Host {
    pub real: Real,
    pub(crate) creation: Option<Creation>,
    /// `None`: older than 1.10. All its calls go straight on.
    pub questions: Option<Questions>,
    /// `None`: older than 1.14.
    pub several: Option<Several>,
    pub(crate) connectors: Option<Connectors>,
    pub(crate) lock: Option<Lock>,
    pub(crate) errors: Option<Errors>,
}

// SAFETY: addresses of code, and of variables that the library itself reads from any thread.
unsafe impl Sync for Host {}

/// Libraries found so far, by the address of their H5Dread.
static HOSTS: Mutex<Vec<(usize, &'static Host)>> = Mutex::new(Vec::new());

impl Host {
    /// The one that is this module, or that it is linked with.
    pub(crate) fn of_module(library: &Module) -> Option<&'static Host> {
        let read = library.symbol("H5Dread")?.as_ptr() as usize;
        let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, host)) = hosts.iter().find(|(at, _)| *at == read) {
            return Some(*host);
        }
        let host: &'static Host = Box::leak(Box::new(Host {
            real: Real::find(library).ok()?,
            creation: Creation::find(library).ok(),
            questions: Questions::find(library).ok(),
            several: Several::find(library).ok(),
            connectors: Connectors::find(library).ok(),
            lock: Lock::find(library).ok(),
            errors: Errors::find(library).ok(),
        }));
        hosts.push((read, host));
        Some(host)
    }
}
