// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory for tests of arrays that are there.

use crate::cuda::{self, Buffer, OwnStream};

/// Some device memory.
pub struct DeviceMemory {
    stream: OwnStream,
    at: u64,
}

impl DeviceMemory {
    /// At least `len` bytes on the process's device.
    pub fn new(len: usize) -> Option<DeviceMemory> {
        let device = cuda::device()?;
        let _current = device.enter().ok()?;
        let mut stream = device.own_stream().ok()?;
        let at = stream.reserve(Buffer::Input, len.max(1)).ok()?;
        Some(DeviceMemory { stream, at })
    }

    /// Its address.
    pub fn address(&self) -> *mut u8 {
        let _ = &self.stream;
        self.at as *mut u8
    }

    /// CUDA's number of the device.
    pub fn ordinal(&self) -> i32 {
        self.stream.ordinal()
    }
}
