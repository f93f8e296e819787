// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that are to be decoded, in memory or in a file.

use crate::host::file::{self, Descriptor};
use codecs::error::{Error, Result};
use codecs::frame::{self, STORED_HEADER};

/// Where frames are.
#[derive(Debug, Clone, Copy)]
pub enum Frames<'a> {
    /// In memory.
    Memory(&'a [&'a [u8]]),
    /// In a file that is open for reading: place and length of each. The file's own position stays as it is.
    File(Descriptor, &'a [(u64, u64)]),
}

impl Frames<'_> {
    /// How many they are.
    pub(super) fn count(self) -> usize {
        match self {
            Frames::Memory(frames) => frames.len(),
            Frames::File(_, places) => places.len(),
        }
    }
}

/// How chunks are decoded that other filters wrote.
pub trait Unpack: Sync {
    /// Bytes of the longest stored chunk of `raw_len` bytes: what a file says is longer is refused, and not read.
    fn most(&self, raw_len: u64) -> u64;

    /// How many chunks may be decoded at a time, for the memory that each takes meanwhile.
    fn at_once(&self) -> usize;

    /// Fills `raw` with the values of chunk `k`, of which `stored` is in the file. `between` is memory for steps on the
    /// way.
    ///
    /// # Errors
    /// Where the stored bytes are not such a chunk.
    fn unpack(&self, k: usize, stored: &[u8], between: &mut Vec<u8>, raw: &mut [u8]) -> Result<()>;
}

/// Bytes of frame `k`, as who gave it said.
pub(super) fn frame_len(frames: Frames<'_>, k: usize) -> u64 {
    match frames {
        Frames::Memory(frames) => frames[k].len() as u64,
        Frames::File(_, places) => places[k].1,
    }
}

/// Bytes of the longest frame of a chunk.
pub(super) fn most(raw_len: usize) -> u64 {
    raw_len as u64 + STORED_HEADER as u64
}

/// Bytes of frame `k`; more than any chunk of `raw_len` bytes has are refused.
pub(super) fn stored_len(frames: Frames<'_>, k: usize, raw_len: usize) -> Result<usize> {
    let (len, most) = (frame_len(frames, k), most(raw_len));
    if len > most {
        return Err(Error::corrupt("the file's index", format!("a frame of {len} bytes, {most} at most")));
    }
    Ok(len as usize)
}

/// Fills `out`, which has its length, with frame `k` of a chunk of `raw_len` bytes.
pub(super) fn read_frame(frames: Frames<'_>, k: usize, raw_len: usize, out: &mut [u8]) -> Result<()> {
    stored_len(frames, k, raw_len)?;
    match frames {
        Frames::Memory(frames) => out.copy_from_slice(frames[k]),
        Frames::File(fd, places) => file::read_at(fd, out, places[k].0)?,
    }
    Ok(())
}

/// Refuses a frame of another chunk's length.
pub(super) fn fits(frame: &[u8], raw_len: usize) -> Result<()> {
    let needed = frame::raw_len(frame)?;
    match needed == raw_len as u64 {
        true => Ok(()),
        false => Err(Error::Length { section: "the array's chunk", needed, got: raw_len as u64 }),
    }
}
