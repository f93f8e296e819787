// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compressor of f32 for tensogram, over the C interface of libh5zgpu.so (h5z_gpu.h). Each block of values becomes a
//! frame behind its length, so that a range decodes the blocks that it touches and no others.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use tensogram_encodings::compression::{CompressResult, CompressionError, Compressor};

#[link(name = "h5zgpu")]
#[rustfmt::skip]
unsafe extern "C" {
    fn h5z_gpu_encode(words: *const u32, count: usize, kind: *const c_char, rank: usize, dims: *const u64,
        fill: *const c_void, raw: *const u8, raw_len: usize, frame: *mut u8, size: usize) -> i64;
    fn h5z_gpu_decode(frame: *const u8, len: usize, raw: *mut u8, size: usize) -> i64;
    fn h5z_gpu_max_encoded(raw_len: usize) -> usize;
    fn h5z_gpu_last_error() -> *const c_char;
}

/// Bytes of a block.
const BLOCK: usize = 1 << 20;

/// What HDF5 is given: 11003 is an absolute bound of 0.001.
pub struct H5zGpu(pub u32);

#[rustfmt::skip]
impl Compressor for H5zGpu {
    fn compress(&self, data: &[u8]) -> Result<CompressResult, CompressionError> {
        let (mut all, mut offsets) = (Vec::new(), Vec::new());
        for raw in data.chunks(BLOCK) {
            // SAFETY: a number.
            let mut frame = vec![0; unsafe { h5z_gpu_max_encoded(raw.len()) }];
            // SAFETY: buffers of the lengths that are said; one axis, and no fill value.
            let len = done(unsafe { h5z_gpu_encode(&self.0, 1, c"<f4".as_ptr(), 1, &(raw.len() as u64 / 4),
                ptr::null(), raw.as_ptr(), raw.len(), frame.as_mut_ptr(), frame.len()) })?;
            offsets.push(all.len() as u64);
            all.extend((len as u64).to_le_bytes());
            all.extend(&frame[..len]);
        }
        Ok(CompressResult { data: all, block_offsets: Some(offsets) })
    }

    fn decompress(&self, mut data: &[u8], size: usize) -> Result<Vec<u8>, CompressionError> {
        let mut all = Vec::new();
        while all.len() < size {
            let (len, rest) = data.split_first_chunk().ok_or_else(short)?;
            let (frame, rest) = rest.split_at_checked(u64::from_le_bytes(*len) as usize).ok_or_else(short)?;
            let mut raw = vec![0; BLOCK];
            // SAFETY: buffers of the lengths that are said.
            let len = unsafe { h5z_gpu_decode(frame.as_ptr(), frame.len(), raw.as_mut_ptr(), raw.len()) };
            all.extend(&raw[..done(len)?]);
            data = rest;
        }
        all.truncate(size);
        Ok(all)
    }

    fn decompress_range(&self, data: &[u8], offsets: &[u64], at: usize, size: usize)
        -> Result<Vec<u8>, CompressionError> {
        let from = *offsets.get(at / BLOCK).ok_or_else(short)? as usize;
        Ok(self.decompress(data.get(from..).ok_or_else(short)?, at % BLOCK + size)?.split_off(at % BLOCK))
    }
}

fn short() -> CompressionError {
    CompressionError::Unknown("h5z-gpu: the frames end early".into())
}

fn done(answer: i64) -> Result<usize, CompressionError> {
    // SAFETY: a text that ends in NUL, this thread's until its next failure.
    let why = || unsafe { CStr::from_ptr(h5z_gpu_last_error()) }.to_string_lossy().into_owned();
    usize::try_from(answer).map_err(|_| CompressionError::Unknown(why()))
}
