// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw bytes in a frame: the escape of every codec. One section, 64 bytes of header.

use crate::codec::descriptor::Codec;
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{Frame, STORED_HEADER, seal_stored};
use crate::memory;
use crate::params::Mode;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec =
    Codec { id: CodecId::STORED, sections: &["raw bytes"], decode: |frame, _, out| decode(frame, out) };

/// Stores what `settle` makes of the chunk.
pub(crate) fn encode(raw: &[u8], settle: impl FnOnce(&mut [u8]), threads: usize, out: &mut Vec<u8>) -> Result<()> {
    let len = raw.len() + STORED_HEADER;
    if out.capacity() < len {
        // As much as is needed and no more, after what was there has been freed.
        *out = Vec::new();
        *out = memory::with_capacity(len)?;
    }
    out.clear();
    out.resize(STORED_HEADER, 0);
    memory::append(out, raw)?;
    settle(&mut out[STORED_HEADER..]);
    seal_stored(out, threads);
    Ok(())
}

/// The same into a place of the frame's length, allocating next to nothing.
pub(crate) fn encode_into(raw: &[u8], settle: impl FnOnce(&mut [u8]), out: &mut [u8]) {
    assert_eq!(out.len(), raw.len() + STORED_HEADER, "a place of the frame's length");
    out[STORED_HEADER..].copy_from_slice(raw);
    settle(&mut out[STORED_HEADER..]);
    seal_stored(out, 1);
}

fn decode(frame: &Frame<'_>, out: &mut [u8]) -> Result<()> {
    let [raw] = frame.sections()?;
    let h = &frame.header;
    if h.mode != Mode::Lossless || !h.extents.as_slice().is_empty() {
        let rank = h.extents.as_slice().len();
        return Err(Error::corrupt(
            "header",
            format!("stored with mode {} and {rank} extents, needed are 9 and none", h.mode.number()),
        ));
    }
    if raw.len() != out.len() {
        return Err(Error::Length { section: "raw bytes", needed: out.len() as u64, got: raw.len() as u64 });
    }
    out.copy_from_slice(raw);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_storing_give_one_frame() {
        for n in [0, 1, 7, 8, 100, 4099] {
            let raw: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let (mut a, mut b) = (Vec::new(), vec![0xAA; n + STORED_HEADER]);
            encode(&raw, <[u8]>::reverse, 1, &mut a).unwrap();
            encode_into(&raw, <[u8]>::reverse, &mut b);
            assert_eq!(a, b, "{n} bytes");
        }
    }
}
