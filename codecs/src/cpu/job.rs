// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a batch consists of.

use crate::params::Params;

/// One chunk to encode.
#[derive(Debug, Clone, Copy)]
pub struct EncodeJob<'a> {
    /// What was asked and what the chunk is.
    pub params: &'a Params,
    /// The chunk's bytes: as many as type and extents say, or they are kept exactly, whatever bound is asked for.
    pub raw: &'a [u8],
}

/// One frame to decode.
#[derive(Debug)]
pub struct DecodeJob<'a> {
    /// The frame.
    pub frame: &'a [u8],
    /// Where the chunk's bytes go: as many as [`crate::frame::raw_len`] says.
    pub out: &'a mut [u8],
}
