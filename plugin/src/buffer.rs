// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5's pipeline buffer: a block of the host's heap that a filter may write into or replace.
//!
//! The rules: `*buf` has at least `nbytes` bytes; a replacement comes from the heap that will free it; `*buf_size` is
//! the true capacity at all times (2.2 checks it); on failure nothing has changed.

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
    /// malloc and free, which HDF5 uses unless it was built for debugging.
    Libc,
}

impl Memory {
    pub(crate) const LIBC: Memory = Memory::Libc;

    /// `len` bytes of whatever the heap holds, or of zeros; `None` when there is no memory. Clearing a chunk of some megabytes
    /// takes longer than decoding it, so zeros are for bytes that are handed on without being written.
    pub(crate) fn allocate(self, len: usize, zeros: bool) -> Option<Block> {
        // HDF5 answers null to a request for nothing.
        let size = len.max(1);
        let start = match self {
            // SAFETY: any size may be asked for.
            Memory::Host(heap) => unsafe { (heap.allocate)(size, zeros) },
            // SAFETY: as above. Cleared: the compiler knows malloc, and that its memory holds nothing yet.
            Memory::Libc => unsafe { system::calloc(size, 1) },
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
pub(crate) struct Block {
    start: NonNull<u8>,
    len: usize,
    memory: Memory,
}

impl Block {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes, cleared or as a foreign function left them, owned, borrowed as long as the block is.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Gives up ownership; the receiver frees it from the heap it came from.
    pub(crate) fn into_raw(self) -> *mut c_void {
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

    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// Hands over `bytes` as the output: in place when they are no longer than the input was. Gives itself back where there
    /// is no memory for them.
    pub(crate) fn put(self, bytes: &[u8]) -> Result<usize, Self> {
        if bytes.len() > self.used {
            let Some(mut block) = self.memory.allocate(bytes.len(), false) else { return Err(self) };
            block.bytes().copy_from_slice(bytes);
            return Ok(self.replace(block, bytes.len()));
        }
        if !bytes.is_empty() {
            // SAFETY: `*buf` has `used` initialised bytes, `bytes` is no longer and not part of it.
            let start = unsafe { std::slice::from_raw_parts_mut((*self.start).cast(), bytes.len()) };
            Engine::global().copy(bytes, start);
        }
        // What was there for the input is there; a host that understated it is told.
        *self.size = (*self.size).max(self.used);
        Ok(bytes.len())
    }

    /// Hands over a block as the output, of which `used` bytes count, and frees the input.
    pub(crate) fn replace(self, block: Block, used: usize) -> usize {
        let len = block.len;
        // SAFETY: `*buf` came from this heap by the promise of `new`; it is overwritten at once.
        unsafe { self.memory.free(*self.start) };
        *self.start = block.into_raw();
        *self.size = len;
        used
    }
}
