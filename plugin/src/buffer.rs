// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5's pipeline buffer: a block of the host's heap that a filter may write into or replace.
//!
//! The rules: `*buf` has at least `nbytes` bytes; a replacement comes from the heap that will free it; `*buf_size` is
//! the true capacity at all times (2.2 checks it); on failure nothing has changed.
//!
//! That heap is malloc's in every released build of HDF5, and `H5allocate_memory` and `H5free_memory` are malloc and
//! free behind the library's lock. Another thread may hold that lock while it waits for this one (HDF5 2.3, see
//! [`crate::host`]), so malloc and free are called themselves. Builds whose memory is another one
//! (`host::has_own_heap`) are debugging builds, and have no such threads; there the pair is called.

use crate::error::Result;
use crate::hdf5::Heap;
use crate::reserve::system;
use h5z_gpu::Engine;
use libc::c_void;
use std::ptr::NonNull;

/// A heap to allocate from and to free to.
#[derive(Clone, Copy)]
pub(crate) enum Memory {
    /// The host's pair of functions.
    Host(Heap),
    /// malloc and free, which released builds of HDF5 use.
    Libc,
}

impl Memory {
    /// `len` bytes of whatever the heap holds, or of zeros; `None` when there is no memory. Clearing a chunk of some
    /// megabytes takes longer than decoding it, so zeros are for bytes that are handed on without being written.
    fn allocate(self, len: usize, zeros: bool) -> Option<Block> {
        // HDF5 answers null to a request for nothing.
        let size = len.max(1);
        let start = match self {
            // SAFETY: any size is allowed.
            Memory::Host(heap) => unsafe { (heap.allocate)(size, zeros) },
            // SAFETY: as above.
            Memory::Libc if zeros => unsafe { system::calloc(size, 1) },
            Memory::Libc => {
                // Behind a pointer that the compiler does not see through: it knows of malloc that its memory holds
                // nothing yet.
                let malloc: unsafe extern "C" fn(usize) -> *mut c_void = system::malloc;
                // SAFETY: as above.
                unsafe { std::hint::black_box(malloc)(size) }
            }
        };
        NonNull::new(start.cast()).map(|start| Block { start, len, memory: self })
    }

    /// # Safety
    /// `start` came from this heap, or is null, and is used no more.
    unsafe fn free(self, start: *mut c_void) {
        match self {
            // SAFETY: the caller's promise.
            Memory::Host(heap) => unsafe {
                (heap.free)(start);
            },
            // SAFETY: the caller's promise.
            Memory::Libc => unsafe { system::free(start) },
        }
    }
}

/// A block that we own.
struct Block {
    start: NonNull<u8>,
    len: usize,
    memory: Memory,
}

impl Block {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes, cleared or as a foreign function left them, owned, borrowed as long as the block is.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Gives up ownership; the receiver frees it from the heap it came from.
    fn into_raw(self) -> *mut c_void {
        let start = self.start.as_ptr();
        std::mem::forget(self);
        start.cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated by this heap, and owned.
        unsafe { self.memory.free(self.start.as_ptr().cast()) }
    }
}

/// The buffer of one filter call.
pub(crate) struct Pipeline<'a> {
    start: &'a mut *mut c_void,
    size: &'a mut usize,
    used: usize,
    memory: Memory,
}

impl<'a> Pipeline<'a> {
    /// `None` for pointers that no HDF5 passes.
    ///
    /// # Safety
    /// `buf` and `size` are null or point to the pipeline's own variables; `*buf` is null or a block of `memory` with
    /// at least `used` initialised bytes.
    pub(crate) unsafe fn new(
        buf: *mut *mut c_void,
        size: *mut usize,
        used: usize,
        memory: Memory,
    ) -> Option<Pipeline<'a>> {
        // SAFETY: the caller's promise.
        let (start, size) = unsafe { (buf.as_mut()?, size.as_mut()?) };
        let sound = used <= isize::MAX as usize && !(start.is_null() && used > 0);
        sound.then_some(Pipeline { start, size, used, memory })
    }

    /// The bytes that came in.
    pub(crate) fn input(&self) -> &[u8] {
        if self.used == 0 {
            return &[];
        }
        // SAFETY: by the promise of `new`, and checked there to be neither null nor too long.
        unsafe { std::slice::from_raw_parts((*self.start).cast(), self.used) }
    }

    /// Hands over `bytes` as the output: in place when they are no longer than the input was. `None`, and nothing has
    /// changed, where there is no memory for them.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() > self.used {
            let copy = |_: &[u8], out: &mut [u8]| {
                out.copy_from_slice(bytes);
                Ok(bytes.len())
            };
            return self.replace(bytes.len(), false, copy).ok();
        }
        if !bytes.is_empty() {
            // SAFETY: `*buf` has `used` initialised bytes, `bytes` is no longer; it is not part of it, for `input` is
            // not borrowed here.
            let start = unsafe { std::slice::from_raw_parts_mut((*self.start).cast(), bytes.len()) };
            Engine::global().copy(bytes, start);
        }
        // What was there for the input is there; a host that understated it is told.
        *self.size = (*self.size).max(self.used);
        Some(bytes.len())
    }

    /// Replaces the buffer by one of `len` bytes, which are zeros where `zeros` says so. `write` fills it from the
    /// input and answers how many bytes count. Where there is no memory, or `write` fails, nothing has changed.
    pub(crate) fn replace(
        &mut self,
        len: usize,
        zeros: bool,
        write: impl FnOnce(&[u8], &mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        let mut block = self.memory.allocate(len, zeros).ok_or(h5z_gpu::Error::NoMemory { bytes: len as u64 })?;
        let used = write(self.input(), block.bytes())?.min(len);
        // SAFETY: `*buf` came from this heap by the promise of `new`; it is overwritten at once.
        unsafe { self.memory.free(*self.start) };
        *self.start = block.into_raw();
        (*self.size, self.used) = (len, used);
        Ok(used)
    }
}
