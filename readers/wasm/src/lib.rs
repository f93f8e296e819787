// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoders of every codec as WebAssembly. `h5z_gpu.mjs` is the interface for JavaScript; it calls these functions.
//!
//! ```text
//! h5z_gpu_room(len)     a place for a frame, which JavaScript fills
//! h5z_gpu_decode(len)   0: the answer is the chunk's bytes; 1: it is a sentence that says what is wrong
//! h5z_gpu_answer()      where the answer is, h5z_gpu_answer_len() its bytes; both until the next call
//! ```
//!
//! A module has one thread. The room and the answer are kept for the next frame.

#![deny(unsafe_op_in_unsafe_fn)]

use h5z_gpu::Engine;
use std::cell::RefCell;

thread_local! {
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// No chunk in a browser is larger; a header that asks for more is refused.
const LARGEST: u64 = 1 << 30;

/// A place for a frame of `len` bytes; null where there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_room(len: usize) -> *mut u8 {
    ROOM.with_borrow_mut(|room| {
        room.clear();
        if room.try_reserve_exact(len).is_err() {
            return std::ptr::null_mut();
        }
        room.resize(len, 0);
        room.as_mut_ptr()
    })
}

/// Decodes the frame of `len` bytes that is in the room. 0, or 1 where it cannot be decoded.
#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_decode(len: usize) -> u32 {
    let decoded = ROOM.with_borrow(|room| match room.get(..len) {
        Some(frame) => Engine::with_threads(1).decode(frame, LARGEST).map_err(|e| e.to_string()),
        None => Err("h5z-gpu: the frame is longer than its room".into()),
    });
    let (answer, failed) = match decoded {
        Ok(raw) => (raw, 0),
        Err(why) => (why.into_bytes(), 1),
    };
    ANSWER.set(answer);
    failed
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn h5z_gpu_answer_len() -> usize {
    ANSWER.with_borrow(Vec::len)
}
