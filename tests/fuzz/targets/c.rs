// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface as `plugin/include/h5z_gpu.h` declares it, and the two descriptions that HDF5 and NCZarr ask for.

use libc::{c_char, c_int, c_uint, c_void};
use std::ffi::CStr;

// What follows is found in this crate.
use h5zgpu_in_rust as _;

#[repr(C)]
pub struct Array {
    pub data: *mut c_void,
    pub device: i32,
    pub flags: u32,
    pub datatype: *const c_char,
    pub rank: usize,
    pub shape: *const u64,
    pub strides: *const i64,
    pub stream: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CFrame {
    pub status: i32,
    pub version: u8,
    pub codec: u8,
    pub mode: u8,
    pub element: u8,
    pub draft: u32,
    pub raw_len: u64,
    pub bound: f64,
}

/// `H5Z_class2_t`.
#[repr(C)]
pub struct FilterClass {
    numbers: [c_int; 4],
    name: *const c_char,
    can_apply: *const c_void,
    set_local: *const c_void,
    pub filter: unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize,
}

/// `NCZ_codec_t`.
#[repr(C)]
pub struct CodecClass {
    numbers: [c_int; 2],
    codecid: *const c_char,
    hdf5id: c_uint,
    start_and_end: [*const c_void; 2],
    pub codec_to_hdf5: unsafe extern "C" fn(*const c_char, *mut usize, *mut *mut c_uint) -> c_int,
    pub hdf5_to_codec: unsafe extern "C" fn(usize, *const c_uint, *mut *mut c_char) -> c_int,
    modify_parameters: *const c_void,
}

/// `H5Z_GPU_DAMAGED`, and whether a number is one of `enum h5z_gpu_failure`.
pub const DAMAGED: i32 = -2;
pub fn is_failure(answer: i64) -> bool {
    (-4..0).contains(&answer)
}

/// `H5Z_GPU_WORDS_MAX`.
pub const WORDS_MAX: usize = 20;

unsafe extern "C" {
    pub fn H5PLget_plugin_info() -> *const FilterClass;
    pub fn NCZ_get_codec_info() -> *const CodecClass;
    pub fn h5z_gpu_last_error() -> *const c_char;
    pub fn h5z_gpu_words(text: *const c_char, words: *mut u32) -> i64;
    pub fn h5z_gpu_text(words: *const u32, count: usize, text: *mut c_char, size: usize) -> i64;
    pub fn h5z_gpu_tools(words: *const u32, count: usize, text: *mut c_char, size: usize) -> i64;
    pub fn h5z_gpu_stored_words(
        words: *const u32,
        count: usize,
        datatype: *const c_char,
        rank: usize,
        dims: *const u64,
        fill: *const c_void,
        stored: *mut u32,
    ) -> i64;
    pub fn h5z_gpu_max_encoded(raw_len: usize) -> usize;
    pub fn h5z_gpu_encode(
        words: *const u32,
        count: usize,
        datatype: *const c_char,
        rank: usize,
        dims: *const u64,
        fill: *const c_void,
        raw: *const c_void,
        raw_len: usize,
        frame: *mut c_void,
        size: usize,
    ) -> i64;
    pub fn h5z_gpu_raw_len(frame: *const c_void, len: usize) -> i64;
    pub fn h5z_gpu_decode(frame: *const c_void, len: usize, raw: *mut c_void, size: usize) -> i64;
    pub fn h5z_gpu_decode_batch(
        n: usize,
        frames: *const *const c_void,
        lens: *const usize,
        raw: *const *mut c_void,
        sizes: *const usize,
        status: *mut c_int,
    ) -> i64;
    pub fn h5z_gpu_range(
        of: *const Array,
        chunk: *const u64,
        fill: *const c_void,
        n: usize,
        origins: *const i64,
        threads: c_int,
        range: *mut f64,
    ) -> i64;
    pub fn h5z_gpu_decode_file(
        file: c_int,
        n: usize,
        at: *const u64,
        lens: *const u64,
        to: *const Array,
        chunk: *const u64,
        origins: *const i64,
        threads: c_int,
        status: *mut c_int,
    ) -> i64;
    pub fn h5z_gpu_decode_memory(
        n: usize,
        frames: *const *const c_void,
        lens: *const usize,
        to: *const Array,
        chunk: *const u64,
        origins: *const i64,
        threads: c_int,
        status: *mut c_int,
    ) -> i64;
    pub fn h5z_gpu_copy(from: *const Array, to: *const Array) -> i64;
    pub fn h5z_gpu_frames(
        file: c_int,
        n: usize,
        at: *const u64,
        lens: *const u64,
        raw_len: u64,
        whole: c_int,
        threads: c_int,
        frames: *mut CFrame,
    ) -> i64;
}

/// The sentence of the last failure, which every failure has; a fault of the plugin's own is one here.
pub fn last_error() -> String {
    // SAFETY: a NUL-terminated text that stays until the next call.
    let text = unsafe { CStr::from_ptr(h5z_gpu_last_error()) }.to_str().expect("UTF-8").to_owned();
    assert!(text.len() > 15 && !text.starts_with("h5z-gpu: a fault of its own"), "{text}");
    text
}
