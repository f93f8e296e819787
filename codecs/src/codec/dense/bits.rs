// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bits of a head. FORMAT.md §3.2.1.

use crate::error::Damage;

/// Bits, the lowest of each byte first.
pub(super) struct BitWriter<'o> {
    out: &'o mut Vec<u8>,
    held: u64,
    count: u32,
}

impl<'o> BitWriter<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        BitWriter { out, held: 0, count: 0 }
    }

    pub(super) fn put(&mut self, value: u32, count: u32) {
        self.held |= u64::from(value) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    pub(super) fn end(self) {
        if self.count > 0 {
            self.out.push(self.held as u8);
        }
    }
}

/// The same, read.
pub(super) struct BitReader<'b> {
    bytes: &'b [u8],
    held: u64,
    count: u32,
}

impl<'b> BitReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        BitReader { bytes, held: 0, count: 0 }
    }

    /// The next `count` bits, at most 32.
    pub(super) fn take(&mut self, count: u32) -> Result<u32, Damage> {
        while self.count < count {
            let (&byte, rest) = self.bytes.split_first().ok_or("the tables end early")?;
            self.bytes = rest;
            self.held |= u64::from(byte) << self.count;
            self.count += 8;
        }
        let value = (self.held & ((1 << count) - 1)) as u32;
        self.held >>= count;
        self.count -= count;
        Ok(value)
    }

    /// Whether only zeros are left, in the byte that was begun.
    pub(super) fn is_over(&self) -> bool {
        self.bytes.is_empty() && self.held == 0
    }
}
