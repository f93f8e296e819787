// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of a stream that is waited for later: the streams of the user's own work, marks, page-locked memory of the
//! caller's.

use super::driver::Failure;
use super::stream::{Buffer, Stream};
use cudarc::driver::{result, sys};

/// The stream on which a user's array becomes ready, or is free to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserStream {
    /// It is ready.
    Ready,
    /// A stream's handle; 1 is the legacy default stream and 2 the thread's, as in DLPack.
    Handle(usize),
}

/// A place in a stream's work that can be waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    /// The kernels are done, and their numbers are on the host.
    Computed,
    /// Everything is on the host.
    Fetched,
}

/// `CUDA_ERROR_NOT_READY`
const NOT_READY: u32 = 600;

impl Stream {
    fn event(&mut self, mark: Mark) -> Result<sys::CUevent, Failure> {
        let event = &mut self.marks[mark as usize];
        if event.is_null() {
            *event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
                .map_err(|e| Failure::new("cuEventCreate", e))?;
        }
        Ok(*event)
    }

    /// What is started from now on waits for what the user's stream was given so far.
    pub(crate) fn follow(&mut self, user: UserStream) -> Result<(), Failure> {
        let UserStream::Handle(handle) = user else { return Ok(()) };
        let event = self.event(Mark::Computed)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: whoever described the array promised that the stream is alive; ours and the event are.
        unsafe {
            result::event::record(event, handle as sys::CUstream).map_err(|e| Failure::new("cuEventRecord", e))?;
            result::stream::wait_event(self.handle.0, event, flags).map_err(|e| Failure::new("cuStreamWaitEvent", e))
        }
    }

    /// Sets a mark where the stream stands.
    pub(crate) fn mark(&mut self, mark: Mark) -> Result<(), Failure> {
        let event = self.event(mark)?;
        // SAFETY: both handles live as long as this.
        unsafe { result::event::record(event, self.handle.0) }.map_err(|e| Failure::new("cuEventRecord", e))
    }

    /// Whether the device has come to a mark.
    pub(crate) fn has_reached(&mut self, mark: Mark) -> Result<bool, Failure> {
        let event = self.event(mark)?;
        // SAFETY: the event lives as long as this.
        match unsafe { result::event::query(event) } {
            Ok(()) => Ok(true),
            Err(e) if e.0 as u32 == NOT_READY => Ok(false),
            Err(e) => Err(Failure::new("cuEventQuery", e)),
        }
    }

    /// Waits until the device has come to a mark.
    pub(crate) fn wait_for(&mut self, mark: Mark) -> Result<(), Failure> {
        let event = self.event(mark)?;
        // SAFETY: the event lives as long as this.
        unsafe { result::event::synchronize(event) }.map_err(|e| Failure::new("cuEventSynchronize", e))
    }

    /// Page-locked memory for the caller, at least `len` bytes; where it is too short it is made anew, and what was in
    /// it is lost. Nothing that was started may use it.
    pub(crate) fn locked(&mut self, len: usize) -> Result<&mut [u8], Failure> {
        if len > self.locked.len() {
            self.wait()?;
            // Locking pages takes as long as a copy through the file's layer: no more of them than are needed.
            self.locked.grow_to(len, len.next_multiple_of(2 << 20))?;
        }
        Ok(self.locked.bytes())
    }

    /// Bytes of that memory, as they are.
    pub(crate) fn locked_bytes(&self, at: usize, len: usize) -> &[u8] {
        &self.locked.seen()[at..at + len]
    }

    /// Starts copying device bytes into the page-locked memory, from byte `to` of it on. The caller waits before it
    /// looks.
    pub(crate) fn start_fetch(&mut self, buffer: Buffer, at: usize, len: usize, to: usize) -> Result<(), Failure> {
        let from = self.range(buffer, at, len)?;
        self.busy = true;
        let to = self.locked.bytes().get_mut(to..to + len);
        let to = to.ok_or_else(|| Failure::other("a copy outside the page-locked memory was asked for"))?;
        // SAFETY: both ranges are inside their memory, which stays until the next wait.
        unsafe { result::memcpy_dtoh_async(to, from, self.handle.0) }.map_err(|e| Failure::new("cuMemcpyDtoHAsync", e))
    }

    /// Starts copying page-locked memory, from byte `from` of it on, to the device. The caller leaves it alone until it
    /// has waited.
    pub(crate) fn start_send(&mut self, buffer: Buffer, at: usize, len: usize, from: usize) -> Result<(), Failure> {
        let to = self.range(buffer, at, len)?;
        self.busy = true;
        let from = self.locked.bytes().get(from..from + len);
        let from = from.ok_or_else(|| Failure::other("a copy outside the page-locked memory was asked for"))?;
        // SAFETY: as above.
        unsafe { result::memcpy_htod_async(to, from, self.handle.0) }.map_err(|e| Failure::new("cuMemcpyHtoDAsync", e))
    }

    /// Grows the buffer of answers to `len` bytes. Nothing that was started may use it.
    pub(crate) fn expect(&mut self, len: usize) -> Result<(), Failure> {
        if len > self.got.len() {
            self.wait()?;
            self.got.grow(len)?;
        }
        Ok(())
    }

    /// Starts reading less than a megabyte, to place `to` of what [`Stream::got`] hands out after a wait.
    pub(crate) fn start_get(&mut self, buffer: Buffer, at: usize, len: usize, to: usize) -> Result<(), Failure> {
        let from = self.range(buffer, at, len)?;
        self.busy = true;
        let to = self.got.bytes().get_mut(to..to + len);
        let to = to.ok_or_else(|| Failure::other("more answers than were expected"))?;
        // SAFETY: both ranges are inside their memory, which stays until the next wait.
        unsafe { result::memcpy_dtoh_async(to, from, self.handle.0) }.map_err(|e| Failure::new("cuMemcpyDtoHAsync", e))
    }

    /// What [`Stream::start_get`] read, after a wait.
    pub(crate) fn got(&self, len: usize) -> &[u8] {
        &self.got.seen()[..len]
    }
}
