// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies between a user's array and memory of the host, which take no memory of the device.

use super::driver::Failure;
use super::later::UserStream;
use super::stream::Pinned;
use codecs::memory;
use cudarc::driver::{result, sys};
use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};

/// CUDA's handles of the legacy default stream, and of a thread's own.
const LEGACY: usize = 1;
const OF_THREAD: usize = 2;
/// Bytes from one row to the next at most.
const MOST_PITCH: u64 = i32::MAX as u64;

/// Rows of bytes, in planes of rows: in one piece of memory, and in another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    /// Bytes of a row, rows of a plane, planes.
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
    /// Bytes from a row to the next, and from a plane to the next, on the device.
    pub(crate) on_device: [u64; 2],
    /// The same in host memory.
    pub(crate) on_host: [u64; 2],
}

impl Rows {
    /// Whether the driver copies them at once: rows do not overlap, and planes are a whole number of rows apart.
    pub(crate) fn is_one_copy(&self) -> bool {
        [self.on_device, self.on_host].iter().all(|&[row, plane]| {
            (self.height == 1 || (self.width..=MOST_PITCH).contains(&row))
                && (self.depth == 1 || row > 0 && plane.is_multiple_of(row) && plane / row >= self.height)
        })
    }

    /// Bytes from a row to the next, and rows from a plane to the next, as the driver wants them of a single one too.
    fn pitch(&self, [row, plane]: [u64; 2]) -> (usize, usize) {
        let pitch = if self.height == 1 { self.width } else { row };
        (pitch as usize, if self.depth == 1 { self.height } else { plane / pitch } as usize)
    }
}

/// Copies between an array, with whose values its user's work is done, and a buffer in host memory. The device's
/// context must be current for all of it.
pub(crate) struct Direct {
    locked: Pinned,
    /// The buffer where no page-locked memory can be had: the driver copies such memory twice.
    pageable: Vec<u8>,
}

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
        Ok(Direct { locked: Pinned::NONE, pageable: Vec::new() })
    }

    /// The buffer, at least `len` bytes; what was in it is lost where it was shorter. Nothing may be on its way.
    pub(crate) fn buffer(&mut self, len: usize) -> Result<&mut [u8], Failure> {
        if self.pageable.len() < len {
            self.pageable = match self.locked.grow_to(len, len) {
                Ok(()) => Vec::new(),
                Err(_) => memory::zeros(len).map_err(|_| Failure::other("there is no host memory for a chunk"))?,
            };
        }
        Ok(if self.pageable.is_empty() { self.locked.bytes() } else { &mut self.pageable })
    }

    /// Starts copying rows between the device, from address `device` on, and the buffer, from byte `at` on: from the
    /// device where `fetches`, else to it. They are there after [`Direct::wait`].
    ///
    /// # Safety
    /// The rows on the device can be read, or written; those in the buffer lie in it.
    pub(crate) unsafe fn copy(&mut self, fetches: bool, device: u64, at: u64, rows: &Rows) -> Result<(), Failure> {
        let host = self.buffer(0)?.as_mut_ptr().wrapping_add(at as usize);
        let (on_device, on_host) = (rows.pitch(rows.on_device), rows.pitch(rows.on_host));
        let (from, to, source, target) = match fetches {
            true => (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, on_device, on_host),
            false => (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, on_host, on_device),
        };
        // Of each side the driver looks at the address of its kind of memory alone.
        let copy = sys::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: from,
            srcHost: host.cast(),
            srcDevice: device,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: source.0,
            srcHeight: source.1,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: to,
            dstHost: host.cast(),
            dstDevice: device,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: target.0,
            dstHeight: target.1,
            WidthInBytes: rows.width as usize,
            Height: rows.height as usize,
            Depth: rows.depth as usize,
        };
        // SAFETY: this function's promise; whoever uses the buffer next waits first.
        unsafe { sys::cuMemcpy3DAsync_v2(&copy, LEGACY as sys::CUstream) }
            .result()
            .map_err(|e| Failure::new("cuMemcpy3DAsync", e))
    }

    /// Waits until all that was started is there.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        synchronize(LEGACY)
    }

    /// Gives the buffer back when nothing uses it any more. Where that is not known it is lost, not freed.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.wait()?;
        self.locked.release()
    }
}

fn synchronize(stream: usize) -> Result<(), Failure> {
    // SAFETY: a default stream, or one that its user keeps as long as the array.
    unsafe { result::stream::synchronize(stream as sys::CUstream) }.map_err(|e| Failure::new("cuStreamSynchronize", e))
}
