// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filter as HDF5 calls it, with the words of a file and the bytes of one of its chunks.

use super::frames::LIMIT;
use super::repair::repair;
use super::{Plan, c};
use libc::c_void;

/// Decode, not encode.
const REVERSE: u32 = 0x100;

/// A chunk on its way through HDF5: a block of the C heap.
struct Block {
    start: *mut c_void,
    size: usize,
}

impl Block {
    fn new(bytes: &[u8]) -> Block {
        // SAFETY: room for the bytes.
        unsafe {
            let start = libc::malloc(bytes.len().max(1));
            assert!(!start.is_null());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len());
            Block { start, size: bytes.len() }
        }
    }

    /// The first `used` bytes of the answer.
    fn bytes(&self, used: usize) -> &[u8] {
        assert!(used <= self.size, "{used} bytes in a block of {}", self.size);
        // SAFETY: the filter promises that the block has them.
        unsafe { std::slice::from_raw_parts(self.start.cast(), used) }
    }

    /// One call of the filter; the bytes that it answers. Where it answers 0 the chunk is as it was.
    fn filtered(&mut self, flags: u32, words: &[u32], used: usize) -> usize {
        let before = self.bytes(used).to_vec();
        // SAFETY: the block has `used` bytes and is of the C heap, as HDF5's are where it does not say otherwise.
        let done = unsafe {
            let class = &*c::H5PLget_plugin_info();
            (class.filter)(flags, words.len(), words.as_ptr(), used, &mut self.size, &mut self.start)
        };
        if done == 0 {
            assert!(self.bytes(used) == before, "a failure leaves the chunk as it was");
        }
        self.bytes(done);
        done
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the filter leaves a block of the C heap.
        unsafe { libc::free(self.start) };
    }
}

/// Words, then a chunk. The first byte has the flags in bits 0 and 1 (optional; encode), and in bit 2 whether
/// the words' check stays wrong; the second says how many words there are.
pub fn filter(data: &[u8]) {
    let mut plan = Plan(data);
    let (how, count) = (plan.byte(), plan.below(24));
    let mut words: Vec<u32> = (0..count).map(|_| plan.word()).collect();
    if how & 4 == 0 {
        super::words::put_right(&mut words, 7);
    }
    // HDF5 gives what the words describe. More than a little of it is memory that is asked for and never touched.
    let described = h5z_gpu::words::stored(&words).ok().and_then(|s| s.params.extents.count());
    if described.is_some_and(|n| n > LIMIT as u64) {
        return;
    }
    let optional = u32::from(how & 1);
    if how & 2 == 0 {
        let frame = repair(plan.0, None);
        if h5z_gpu::frame::raw_len(&frame).is_ok_and(|n| n <= LIMIT as u64) {
            Block::new(&frame).filtered(optional | REVERSE, &words, frame.len());
        }
        return;
    }
    let raw = plan.0;
    let mut block = Block::new(raw);
    let len = block.filtered(optional, &words, raw.len());
    if len > 0 {
        let back = block.filtered(optional | REVERSE, &words, len);
        let lossless = h5z_gpu::words::request(&words).is_ok_and(|r| r.bound == h5z_gpu::Bound::Lossless);
        assert!(back >= raw.len() || raw.is_empty(), "{back} bytes of {}", raw.len());
        assert!(!lossless || raw.is_empty() || block.bytes(raw.len()) == raw, "not what was written");
    }
}
