// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::error::Result;
use crate::frame::{Frame, Header};
pub(crate) fn encode<T: bytemuck::Pod>(values: &[T], _header: Header, threads: usize, out: &mut Vec<u8>) {
    crate::codec::stored::encode(bytemuck::cast_slice(values), threads, out);
}
pub(crate) fn decode<T: bytemuck::Pod>(frame: &Frame<'_>, _threads: usize, out: &mut [T]) -> Result<()> {
    crate::codec::stored::decode(frame, bytemuck::cast_slice_mut(out))
}
