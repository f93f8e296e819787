// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw bytes in a frame: the escape of every codec. One section, 64 bytes of header.

use crate::error::{Error, Result};
use crate::frame::{self, Frame, Header, Writer};
use crate::memory;
use crate::params::{Bound, Dtype, Extents};

pub(crate) const HEADER_LEN: usize = 64;

fn header(raw_len: usize) -> Header {
    Header {
        codec: 0,
        bound: Bound::Lossless,
        used: 0.0,
        dtype: Dtype::bytes(0),
        extents: Extents::default(),
        raw_len: raw_len as u64,
    }
}

pub(crate) fn encode(raw: &[u8], threads: usize, out: &mut Vec<u8>) -> Result<()> {
    let len = raw.len() + HEADER_LEN;
    if out.capacity() < len {
        // As much as is needed and no more, after what was there has been freed.
        *out = Vec::new();
        *out = memory::with_capacity(len)?;
    }
    let mut w = Writer::new(out, header(raw.len()), 1)?;
    w.section(|o| memory::append(o, raw))?;
    w.seal(threads);
    Ok(())
}

/// As [`encode`], into a place of exactly the frame's length: for who has no memory to spare.
pub(crate) fn write(raw: &[u8], out: &mut [u8]) {
    assert_eq!(out.len(), raw.len() + HEADER_LEN, "a place of the frame's length");
    let (head, body) = out.split_at_mut(HEADER_LEN);
    body.copy_from_slice(raw);
    head.copy_from_slice(&frame::head(&header(raw.len()), &[raw.len() as u64], (raw.len() + HEADER_LEN) as u64));
    frame::set_checksum(out, 1);
}

pub(crate) fn decode(frame: &Frame<'_>, out: &mut [u8]) -> Result<()> {
    let [raw] = frame.sections()?;
    let h = &frame.header;
    if h.mode != 9 || !h.extents.as_slice().is_empty() {
        let rank = h.extents.as_slice().len();
        return Err(Error::corrupt(
            "header",
            format!("stored with mode {} and {rank} extents, needed are 9 and none", h.mode),
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
            let (mut a, mut b) = (Vec::new(), vec![0xAA; n + HEADER_LEN]);
            encode(&raw, 1, &mut a).unwrap();
            write(&raw, &mut b);
            assert_eq!(a, b, "{n} bytes");
        }
    }
}
