// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::error::Result;
use crate::frame::Frame;
pub(crate) fn encode(raw: &[u8], _size: usize, threads: usize, out: &mut Vec<u8>) {
    crate::codec::stored::encode(raw, threads, out);
}
pub(crate) fn decode(frame: &Frame<'_>, _threads: usize, out: &mut [u8]) -> Result<()> {
    crate::codec::stored::decode(frame, out)
}
