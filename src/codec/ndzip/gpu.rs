// SPDX-License-Identifier: MIT OR Apache-2.0
//! ndzip on the GPU.
use crate::codec::device::{Decoding, Encoding};
use crate::frame::Frame;
use crate::params::Params;

pub(crate) fn encoding(_params: &Params, _raw_len: usize) -> Option<Encoding> {
    None
}

pub(crate) fn decoding(_frame: &Frame<'_>) -> Option<Decoding> {
    None
}
