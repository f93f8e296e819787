// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams: each a CUDA stream with pinned staging slots and device buffers, lent for one call from a small pool.
//!
//! Everything grows and nothing shrinks, so that a steady stream of chunks makes no allocation. Copies between the
//! caller's memory and the staging slots are cut into slices and made by several threads of the [`staging`] pool, each
//! with two slots of its own: while the device takes one, the thread fills the other.

use super::driver::{Current, Failure};
use super::slices::{SLOT, Wanted, cut, gather, slices};
use super::staging;
use cudarc::driver::{result, sys};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Calls that may use the device at the same time; a further one uses the CPU.
const STREAMS: usize = 4;
/// Device offsets given to buffers' parts are multiples of this.
pub(crate) const ALIGN: usize = 256;

/// What copies where no device takes part.
static OF_HOST: staging::Pool = staging::Pool::new();

/// The streams of a device.
pub(super) struct Pool {
    slots: [Mutex<Option<Stream>>; STREAMS],
    copiers: &'static staging::Pool,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool { slots: Default::default(), copiers: Box::leak(Box::new(staging::Pool::new())) }
    }

    /// A stream without memory, whose copies the device's threads make.
    pub(super) fn bare(&self) -> Result<Stream, Failure> {
        Stream::bare(self.copiers)
    }

    /// A free stream, made if need be; `Ok(None)` when all are taken. The device's context must be current.
    pub(super) fn lend(&self) -> Result<Option<StreamGuard<'_>>, Failure> {
        // A stream whose user panicked stays locked out: nobody knows what the device still does with it.
        let Some(mut slot) = self.slots.iter().find_map(|s| s.try_lock().ok()) else { return Ok(None) };
        if slot.is_none() {
            *slot = Some(Stream::new(self.copiers)?);
        }
        Ok(Some(StreamGuard(slot)))
    }

    /// Gives the memory of streams back that nobody has now; the bytes of the device's.
    pub(super) fn release(&self) -> Result<usize, Failure> {
        let idle = self.slots.iter().filter_map(|slot| slot.try_lock().ok());
        idle.map(|mut slot| slot.as_mut().map_or(Ok(0), Stream::release)).sum()
    }
}

/// A stream lent to one caller. When dropped, waits for what the caller left running.
pub(crate) struct StreamGuard<'a>(MutexGuard<'a, Option<Stream>>);

impl Deref for StreamGuard<'_> {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        self.0.as_ref().expect("lend filled it")
    }
}

impl DerefMut for StreamGuard<'_> {
    fn deref_mut(&mut self) -> &mut Stream {
        self.0.as_mut().expect("lend filled it")
    }
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        if self.busy && self.wait().is_err() {
            // Its memory may still be written to: forgotten, not freed.
            std::mem::forget(self.0.take());
        }
    }
}

/// Which of a stream's device buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Buffer {
    /// What is read.
    Input,
    /// What is written.
    Output,
    /// Descriptions, shared state, answers.
    Work,
    /// What kernels leave for each other, tile by tile.
    Tiles,
    /// Descriptions of boxes.
    Boxes,
    /// One element.
    Element,
}

/// A CUDA stream with its memory. Methods need the device's context to be current.
pub(crate) struct Stream {
    pub(super) handle: Handle,
    buffers: [DeviceBuffer; 6],
    slots: Vec<Slot>,
    /// Threads that fill and empty the slots: those of the device.
    copiers: &'static staging::Pool,
    /// Small copies on their way, and bytes of it that are used since the last wait.
    put: Pinned,
    put_used: usize,
    pub(super) got: Pinned,
    /// Memory of the caller's.
    pub(super) locked: Pinned,
    pub(super) marks: [sys::CUevent; 2],
    /// Something was started since the last wait.
    pub(super) busy: bool,
}

// SAFETY: event handles may be used from any thread; a stream has one user at a time.
unsafe impl Send for Stream {}

#[derive(Clone, Copy)]
pub(super) struct Handle(pub(super) sys::CUstream);
// SAFETY: a stream handle may be used from any thread; the stream's owner decides who does.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

#[derive(Default)]
struct DeviceBuffer {
    at: u64,
    len: usize,
}

/// Page-locked memory, readable at full speed (not write-combined).
pub(super) struct Pinned {
    at: *mut u8,
    len: usize,
}
// SAFETY: plain memory with one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(super) const NONE: Pinned = Pinned { at: std::ptr::null_mut(), len: 0 };

    fn new(len: usize) -> Result<Self, Failure> {
        // SAFETY: no precondition but a current context.
        let at = unsafe { result::malloc_host(len, 0) }.map_err(|e| Failure::new("cuMemHostAlloc", e))?;
        // SAFETY: fresh memory of this length; zeroed so that it may be seen as bytes.
        unsafe { at.cast::<u8>().write_bytes(0, len) };
        Ok(Pinned { at: at.cast(), len })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sees to at least `len` bytes; what was in it is lost.
    pub(super) fn grow(&mut self, len: usize) -> Result<(), Failure> {
        self.grow_to(len, len.next_power_of_two().max(4096))
    }

    /// The same, of `new` bytes where there are less than `len`.
    pub(super) fn grow_to(&mut self, len: usize, new: usize) -> Result<(), Failure> {
        if len > self.len {
            self.release()?;
            *self = Self::new(new)?;
        }
        Ok(())
    }

    pub(super) fn release(&mut self) -> Result<(), Failure> {
        if !self.at.is_null() {
            // SAFETY: allocated by malloc_host; the stream waited before, so nothing copies to or from it.
            unsafe { result::free_host(self.at.cast()) }.map_err(|e| Failure::new("cuMemFreeHost", e))?;
            *self = Self::NONE;
        }
        Ok(())
    }

    pub(super) fn seen(&self) -> &[u8] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: as below.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        if self.at.is_null() {
            return &mut [];
        }
        // SAFETY: initialised, of this length, and borrowed as a whole. The device writes to it only between a
        // copy's start and the wait for it, when no reference is held.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// A staging slot: memory, and the event that says when the device is done with it.
struct Slot {
    memory: Pinned,
    event: sys::CUevent,
    waiting: bool,
}
// SAFETY: event handles may be used from any thread; a slot has one user at a time.
unsafe impl Send for Slot {}

impl Slot {
    fn new() -> Result<Self, Failure> {
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|e| Failure::new("cuEventCreate", e))?;
        Ok(Slot { memory: Pinned::new(SLOT)?, event, waiting: false })
    }

    fn record(&mut self, stream: Handle) -> Result<(), Failure> {
        // SAFETY: both handles live as long as this.
        unsafe { result::event::record(self.event, stream.0) }.map_err(|e| Failure::new("cuEventRecord", e))?;
        self.waiting = true;
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.waiting) {
            // SAFETY: the event was recorded.
            unsafe { result::event::synchronize(self.event) }.map_err(|e| Failure::new("cuEventSynchronize", e))?;
        }
        Ok(())
    }
}

impl Stream {
    /// A stream with staging slots, so that the first call needs no memory but the device's.
    fn new(copiers: &'static staging::Pool) -> Result<Self, Failure> {
        let mut new = Stream::bare(copiers)?;
        let handle = new.handle.0;
        // SAFETY: made above, and nothing was started on it.
        new.staging(1).inspect_err(|_| _ = unsafe { result::stream::destroy(handle) })?;
        Ok(new)
    }

    fn bare(copiers: &'static staging::Pool) -> Result<Self, Failure> {
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|e| Failure::new("cuStreamCreate", e))?;
        Ok(Stream {
            handle: Handle(handle),
            buffers: Default::default(),
            slots: Vec::new(),
            copiers,
            put: Pinned::NONE,
            put_used: 0,
            got: Pinned::NONE,
            locked: Pinned::NONE,
            marks: [std::ptr::null_mut(); 2],
            busy: false,
        })
    }

    /// Sees to at least `len` bytes; what was in the buffer is lost. Returns the device address.
    pub(crate) fn reserve(&mut self, buffer: Buffer, len: usize) -> Result<u64, Failure> {
        let own = &mut self.buffers[buffer as usize];
        if len > own.len {
            if own.at != 0 {
                let at = std::mem::take(own).at;
                // SAFETY: allocated by malloc_sync and forgotten here; the driver waits for its users.
                unsafe { result::free_sync(at) }.map_err(|e| Failure::new("cuMemFree", e))?;
            }
            let len =
                if len < 64 << 20 { len.next_power_of_two().max(1 << 20) } else { len.next_multiple_of(32 << 20) };
            // SAFETY: no precondition but a current context.
            let at = unsafe { result::malloc_sync(len) }.map_err(|e| Failure::new("cuMemAlloc", e))?;
            *own = DeviceBuffer { at, len };
        }
        Ok(own.at)
    }

    /// Gives all memory back; the bytes of the device's. Nothing may be on its way.
    pub(super) fn release(&mut self) -> Result<usize, Failure> {
        let mut freed = 0;
        for own in &mut self.buffers {
            let DeviceBuffer { at, len } = std::mem::take(own);
            if at != 0 {
                // SAFETY: as in `reserve`.
                unsafe { result::free_sync(at) }.map_err(|e| Failure::new("cuMemFree", e))?;
                freed += len;
            }
        }
        let staged = self.slots.iter_mut().map(|slot| &mut slot.memory);
        for pinned in [&mut self.put, &mut self.got, &mut self.locked].into_iter().chain(staged) {
            pinned.release()?;
        }
        self.put_used = 0;
        Ok(freed)
    }

    pub(super) fn range(&self, buffer: Buffer, at: usize, len: usize) -> Result<u64, Failure> {
        let own = &self.buffers[buffer as usize];
        match at.checked_add(len) {
            Some(end) if end <= own.len => Ok(own.at + at as u64),
            _ => Err(Failure::other("a copy outside the device buffer was asked for")),
        }
    }

    fn staging(&mut self, workers: usize) -> Result<(), Failure> {
        while self.slots.len() < 2 * workers {
            self.slots.push(Slot::new()?);
        }
        self.slots.iter_mut().try_for_each(|slot| slot.memory.grow_to(SLOT, SLOT))
    }

    /// Waits until all that was started is done.
    pub(crate) fn wait(&mut self) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as this.
        unsafe { result::stream::synchronize(self.handle.0) }.map_err(|e| Failure::new("cuStreamSynchronize", e))?;
        (self.busy, self.put_used) = (false, 0);
        Ok(())
    }

    /// Starts setting bytes to zero.
    pub(crate) fn zero(&mut self, buffer: Buffer, at: usize, len: usize) -> Result<(), Failure> {
        let to = self.range(buffer, at, len)?;
        self.busy = true;
        // SAFETY: the range is inside the buffer.
        unsafe { result::memset_d8_async(to, 0, len, self.handle.0) }.map_err(|e| Failure::new("cuMemsetD8Async", e))
    }

    /// Starts copying less than a megabyte to the device. Waits for what was started where there is no room for them.
    pub(crate) fn put(&mut self, buffer: Buffer, at: usize, bytes: &[u8]) -> Result<(), Failure> {
        let to = self.range(buffer, at, bytes.len())?;
        let needed = self.put_used + bytes.len();
        if needed > self.put.len() {
            self.wait()?;
            // So much that the next time there is room for all of it.
            self.put.grow(needed)?;
        }
        let staged = &mut self.put.bytes()[self.put_used..][..bytes.len()];
        self.put_used += bytes.len();
        staged.copy_from_slice(bytes);
        self.busy = true;
        // SAFETY: both ranges are inside their memory, which stays until the next wait.
        unsafe { result::memcpy_htod_async(to, staged, self.handle.0) }
            .map_err(|e| Failure::new("cuMemcpyHtoDAsync", e))
    }

    /// Waits for everything and reads less than a megabyte.
    pub(crate) fn get(&mut self, buffer: Buffer, at: usize, len: usize) -> Result<&[u8], Failure> {
        self.expect(len)?;
        self.start_get(buffer, at, len, 0)?;
        self.wait()?;
        Ok(self.got(len))
    }

    /// Starts copying `parts`, each to its offset, sorted by offset and without overlap. Bytes between them become
    /// zero.
    pub(crate) fn upload(&mut self, buffer: Buffer, parts: &[(usize, &[u8])], threads: usize) -> Result<(), Failure> {
        let total = parts.last().map_or(0, |(at, bytes)| (at + bytes.len()).next_multiple_of(ALIGN));
        let to = self.range(buffer, 0, total)?;
        let (slice_len, slices, workers) = cut(total, threads);
        self.staging(workers)?;
        self.busy = true;
        let (stream, context, copiers) = (self.handle, current()?, self.copiers);
        let next = AtomicUsize::new(0);
        let pairs = pairs(&mut self.slots);
        // The slots' events are waited for by their next user.
        copiers.run(workers, |worker| {
            let mut pair = pairs[worker].lock().expect("one user");
            let _bound = Current::bind(context as sys::CUcontext)?;
            for turn in 0.. {
                let slice = next.fetch_add(1, Ordering::Relaxed);
                if slice >= slices {
                    break;
                }
                let slot = &mut pair[turn % 2];
                slot.wait()?;
                let (from, end) = (slice * slice_len, (slice * slice_len + slice_len).min(total));
                let staged = &mut slot.memory.bytes()[..end - from];
                gather(parts, from, staged);
                // SAFETY: the range was checked; the slot is not touched before its event.
                unsafe { result::memcpy_htod_async(to + from as u64, staged, stream.0) }
                    .map_err(|e| Failure::new("cuMemcpyHtoDAsync", e))?;
                slot.record(stream)?;
            }
            Ok(())
        })
    }

    /// Copies device bytes into slices, each from its offset, and waits for them.
    pub(crate) fn download(
        &mut self,
        buffer: Buffer,
        wanted: Vec<(usize, &mut [u8])>,
        threads: usize,
    ) -> Result<(), Failure> {
        let uninit = |out: &mut [u8]| -> *mut [MaybeUninit<u8>] { std::ptr::from_mut(out) as *mut [MaybeUninit<u8>] };
        // SAFETY: the same memory and layout, borrowed as long; only bytes that are there are ever copied into it.
        let wanted = wanted.into_iter().map(|(at, out)| (at, unsafe { &mut *uninit(out) })).collect();
        self.fill(buffer, wanted, threads)
    }

    /// Replaces the contents of each vector by bytes from the device, given as (offset, length), and waits for them.
    pub(crate) fn download_vecs(
        &mut self,
        buffer: Buffer,
        mut wanted: Vec<(usize, usize, &mut Vec<u8>)>,
        threads: usize,
    ) -> Result<(), Failure> {
        for (_, len, out) in &mut wanted {
            out.clear();
            out.try_reserve(*len).map_err(|_| Failure::other("no memory for what the device wrote"))?;
        }
        let spare = wanted.iter_mut().map(|(at, len, out)| (*at, &mut out.spare_capacity_mut()[..*len])).collect();
        self.fill(buffer, spare, threads)?;
        // SAFETY: reserved above, and filled as far.
        wanted.into_iter().for_each(|(_, len, out)| unsafe { out.set_len(len) });
        Ok(())
    }

    /// Fills all that is wanted, or fails.
    fn fill(&mut self, buffer: Buffer, wanted: Vec<Wanted<'_>>, threads: usize) -> Result<(), Failure> {
        let end = wanted.iter().map(|(at, out)| at + out.len()).max().unwrap_or(0);
        let from = self.range(buffer, 0, end)?;
        let (slice_len, _, workers) = cut(wanted.iter().map(|w| w.1.len()).sum(), threads);
        let units: Vec<Mutex<Vec<Wanted<'_>>>> = slices(wanted, slice_len).into_iter().map(Mutex::new).collect();
        self.staging(workers)?;
        self.busy = true;
        let (stream, context, copiers) = (self.handle, current()?, self.copiers);
        let next = AtomicUsize::new(0);
        let pairs = pairs(&mut self.slots);
        copiers.run(workers, |worker| {
            let mut pair = pairs[worker].lock().expect("one user");
            let _bound = Current::bind(context as sys::CUcontext)?;
            let mut before: Option<Vec<Wanted<'_>>> = None;
            for turn in 0.. {
                let unit = units.get(next.fetch_add(1, Ordering::Relaxed));
                let unit = unit.map(|u| std::mem::take(&mut *u.lock().expect("nobody panics holding it")));
                if let Some(parts) = &unit {
                    let slot = &mut pair[turn % 2];
                    slot.wait()?;
                    let mut staged = slot.memory.bytes();
                    for (at, out) in parts {
                        let (now, rest) = staged.split_at_mut(out.len());
                        staged = rest;
                        // SAFETY: the range was checked; the slot is not read before its event.
                        unsafe { result::memcpy_dtoh_async(now, from + *at as u64, stream.0) }
                            .map_err(|e| Failure::new("cuMemcpyDtoHAsync", e))?;
                    }
                    slot.record(stream)?;
                }
                if let Some(parts) = before.take() {
                    let slot = &mut pair[(turn + 1) % 2];
                    slot.wait()?;
                    let mut staged = &slot.memory.bytes()[..];
                    for (_, out) in parts {
                        let (now, rest) = staged.split_at(out.len());
                        staged = rest;
                        // SAFETY: both have this length and do not overlap.
                        unsafe { out.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len()) };
                    }
                }
                before = unit;
                if before.is_none() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Two slots for each thread.
fn pairs(slots: &mut [Slot]) -> Vec<Mutex<&mut [Slot]>> {
    slots.chunks_mut(2).map(Mutex::new).collect()
}

/// Copies bytes of the host, on several threads if a device is in use and there are enough of them.
pub(super) fn copy(from: &[u8], to: &mut [u8], threads: usize) {
    let (slice, _, workers) = cut(from.len(), threads);
    let units: Vec<_> = from.chunks(slice).zip(to.chunks_mut(slice)).map(|u| Mutex::new(Some(u))).collect();
    let next = AtomicUsize::new(0);
    let done = OF_HOST.run(workers, |_| {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (from, to) = unit.lock().expect("one user").take().expect("handed out once");
            to.copy_from_slice(from);
        }
        Ok(())
    });
    debug_assert!(done.is_ok());
}

/// The context of this thread, to be made current on others.
fn current() -> Result<usize, Failure> {
    let context = result::ctx::get_current().map_err(|e| Failure::new("cuCtxGetCurrent", e))?;
    Ok(context.ok_or_else(|| Failure::other("no context is current"))? as usize)
}
