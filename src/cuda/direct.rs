// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies between a user's array and ordinary memory of the host, which take no memory of the device and none that is
//! page-locked.

use super::driver::Failure;
use super::later::UserStream;
use cudarc::driver::{result, sys};

/// CUDA's handles of the legacy default stream, and of a thread's own.
const LEGACY: usize = 1;
const OF_THREAD: usize = 2;

/// Copies of an array that its user's work has come to the end of.
pub(crate) struct Direct(());

impl Direct {
    /// Waits for what the user's stream was given so far.
    pub(crate) fn new(user: UserStream) -> Result<Direct, Failure> {
        match user {
            UserStream::Ready => {}
            // The legacy stream waits for the default stream of every thread; that of the user's thread has no name
            // here.
            UserStream::Handle(OF_THREAD) => synchronize(LEGACY)?,
            UserStream::Handle(handle) => synchronize(handle)?,
        }
        Ok(Direct(()))
    }

    /// Copies bytes from the device.
    ///
    /// # Safety
    /// As many bytes can be read at `from`.
    pub(crate) unsafe fn fetch(&self, from: u64, to: &mut [u8]) -> Result<(), Failure> {
        // SAFETY: this function's promise.
        unsafe { result::memcpy_dtoh_sync(to, from) }.map_err(|e| Failure::new("cuMemcpyDtoH", e))
    }

    /// Copies bytes to the device. They are there after [`Direct::wait`].
    ///
    /// # Safety
    /// As many bytes can be written at `to`.
    pub(crate) unsafe fn send(&self, from: &[u8], to: u64) -> Result<(), Failure> {
        // SAFETY: this function's promise. `from` is read when the call returns.
        unsafe { result::memcpy_htod_sync(to, from) }.map_err(|e| Failure::new("cuMemcpyHtoD", e))
    }

    /// Waits until what was sent is there.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        synchronize(LEGACY)
    }
}

fn synchronize(stream: usize) -> Result<(), Failure> {
    // SAFETY: a default stream, or one that its user keeps as long as the array.
    unsafe { result::stream::synchronize(stream as sys::CUstream) }.map_err(|e| Failure::new("cuStreamSynchronize", e))
}
