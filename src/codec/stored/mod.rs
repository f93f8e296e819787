// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw bytes in a frame: the escape of every codec. One section, 64 bytes of header.

use crate::error::{Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::params::{Bound, Dtype, Extents};

pub(crate) const HEADER_LEN: usize = 64;

pub(crate) fn encode(raw: &[u8], threads: usize, out: &mut Vec<u8>) {
    let header = Header {
        codec: 0,
        bound: Bound::Lossless,
        used: 0.0,
        dtype: Dtype::bytes(0),
        extents: Extents::default(),
        raw_len: raw.len() as u64,
    };
    let mut w = Writer::new(out, header, 1);
    w.section(|o| o.extend_from_slice(raw));
    w.seal(threads);
}

pub(crate) fn decode(frame: &Frame<'_>, out: &mut [u8]) -> Result<()> {
    let [raw] = frame.sections()?;
    if raw.len() != out.len() {
        return Err(Error::Length { section: "raw bytes", needed: out.len() as u64, got: raw.len() as u64 });
    }
    out.copy_from_slice(raw);
    Ok(())
}
