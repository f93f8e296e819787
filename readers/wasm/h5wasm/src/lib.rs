// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders as a filter plugin of h5wasm, which is HDF5 in WebAssembly: a side module that shares its memory.
//!
//! HDF5 asks [`H5PLget_plugin_info`] for the filter and calls `filter` with each chunk. Memory is that of the main
//! module's malloc, which is also what Rust allocates from: two allocators must not grow one memory. There is no
//! encoder, and HDF5 says so to whoever wants to write.

use h5z_gpu::Engine;
use h5z_gpu::frame::Frame;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};

unsafe extern "C" {
    fn malloc(len: usize) -> *mut c_void;
    fn free(at: *mut c_void);
    fn iprintf(format: *const c_char, ...) -> c_int;
}

struct MainModule;

/// What Emscripten's malloc aligns to, whatever its version.
const ALIGNED: usize = 8;

// SAFETY: malloc's memory is its caller's alone until free. Where more alignment is wanted than malloc has, the place
// that it gave stands in the word before the aligned one; there is room for both.
unsafe impl GlobalAlloc for MainModule {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: any length may be asked for.
            return unsafe { malloc(layout.size()) }.cast();
        }
        let Some(len) = layout.size().checked_add(layout.align()) else { return std::ptr::null_mut() };
        // SAFETY: as above.
        let given: *mut u8 = unsafe { malloc(len) }.cast();
        if given.is_null() {
            return given;
        }
        // Alignments are powers of two above eight, so there are eight bytes or more before the next multiple.
        let skipped = layout.align() - given.addr() % layout.align();
        // SAFETY: at most `align` bytes in, with `size` behind it; the word before lies in what was skipped.
        unsafe {
            let at = given.add(skipped);
            at.cast::<*mut u8>().sub(1).write(given);
            at
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` is what `alloc` gave for this layout.
        unsafe {
            let given = if layout.align() <= ALIGNED { at } else { at.cast::<*mut u8>().sub(1).read() };
            free(given.cast());
        }
    }
}

#[global_allocator]
static ALLOCATOR: MainModule = MainModule;

/// HDF5's `H5Z_class2_t`.
#[repr(C)]
pub struct FilterClass {
    version: c_int,
    id: c_int,
    encoder_present: c_uint,
    decoder_present: c_uint,
    name: *const c_char,
    can_apply: Option<extern "C" fn()>,
    set_local: Option<extern "C" fn()>,
    filter: unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize,
}

// SAFETY: nothing in it is ever written.
unsafe impl Sync for FilterClass {}

static FILTER: FilterClass = FilterClass {
    version: 1,
    id: 443,
    encoder_present: 0,
    decoder_present: 1,
    name: c"h5z-gpu".as_ptr(),
    can_apply: None,
    set_local: None,
    filter,
};

/// The kind of plugin: a filter.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    0
}

/// The filter.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> *const FilterClass {
    &raw const FILTER
}

/// HDF5's flag for reading.
const REVERSE: c_uint = 0x0100;

/// Decodes a chunk: 0 where that is not possible, the values' length where it is.
///
/// # Safety
/// As HDF5 calls a filter: `*buf` holds `used` bytes from malloc, and both pointers can be written.
unsafe extern "C" fn filter(
    flags: c_uint,
    _count: usize,
    _words: *const c_uint,
    used: usize,
    size: *mut usize,
    buf: *mut *mut c_void,
) -> usize {
    if flags & REVERSE == 0 {
        return 0;
    }
    // SAFETY: HDF5's promise, see above.
    let chunk = unsafe { std::slice::from_raw_parts((*buf).cast::<u8>().cast_const(), used) };
    match decoded(chunk) {
        Ok((out, len)) => {
            // SAFETY: as above; the chunk is not looked at any more.
            unsafe {
                free(*buf);
                *buf = out;
                *size = len;
            }
            len
        }
        Err(why) => {
            say(why);
            0
        }
    }
}

/// Says a sentence on the console. HDF5 2.0 pauses its error stack while a filter runs, and h5wasm exports no function
/// that resumes it.
fn say(why: String) {
    let Ok(text) = CString::new(why) else { return };
    // SAFETY: C strings that outlive the call, one for the format's one place.
    unsafe { iprintf(c"%s\n".as_ptr(), text.as_ptr()) };
}

/// The chunk's values in memory from malloc, and their length.
fn decoded(chunk: &[u8]) -> Result<(*mut c_void, usize), String> {
    // The whole frame is looked at before memory is taken for it.
    let len = Frame::open(chunk, 1).map_err(|e| e.to_string())?.header.raw_len;
    let none = || format!("h5z-gpu: no memory for a chunk of {len} bytes");
    let len = usize::try_from(len).map_err(|_| none())?;
    // SAFETY: any length may be asked for.
    let out = unsafe { malloc(len.max(1)) };
    if out.is_null() {
        return Err(none());
    }
    // SAFETY: just given, and ours alone; any bytes are u8, and they are zeros before anybody reads them.
    let values = unsafe {
        out.write_bytes(0, len);
        std::slice::from_raw_parts_mut(out.cast::<u8>(), len)
    };
    match Engine::with_threads(1).decode_into(chunk, values) {
        Ok(()) => Ok((out, len)),
        Err(why) => {
            // SAFETY: given above, and nobody else's.
            unsafe { free(out) };
            Err(why.to_string())
        }
    }
}
