// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the frames of a file say of themselves, without decoding them.

use crate::engine::Engine;
use crate::host::file::{self, Descriptor};
use codecs::error::{Error, Result};
use codecs::frame::{self, Frame, Head, STORED_HEADER};
use codecs::{memory, parallel};

/// How far frames are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// The first bytes: a header that fits the file's index.
    Header,
    /// All bytes, by the checksum.
    Checksum,
}

/// Format version and header, its extents left out, of the frames at these places and of these lengths in a file that
/// is open for reading, for chunks of `raw_len` bytes. `threads`: 0 for as many as the process may use.
///
/// Answers for each frame, in order.
pub fn headers(
    file: Descriptor,
    places: &[(u64, u64)],
    raw_len: u64,
    checked: Checked,
    threads: usize,
) -> Vec<Result<Head>> {
    let threads = if threads == 0 { Engine::global().threads() } else { threads };
    parallel::map(places.len(), threads, |k| {
        let (at, len) = places[k];
        let most = raw_len.saturating_add(STORED_HEADER as u64);
        if len > most {
            return Err(Error::corrupt("the file's index", format!("a frame of {len} bytes, {most} at most")));
        }
        let read = if checked == Checked::Header { len.min(frame::PEEK as u64) } else { len };
        let mut bytes = memory::zeros(usize::try_from(read).unwrap_or(usize::MAX))?;
        file::read_at(file, &mut bytes, at)?;
        let head = frame::peek(&bytes, len)?;
        if head.header.raw_len != raw_len {
            return Err(Error::Length { section: "the chunk", needed: head.header.raw_len, got: raw_len });
        }
        match checked {
            Checked::Header => frame::check_draft(&bytes)?,
            Checked::Checksum => _ = Frame::open(&bytes, 1)?,
        }
        Ok(head)
    })
}
