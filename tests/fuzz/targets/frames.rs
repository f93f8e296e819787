// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames, whole.

use super::counting::most_held;
use super::repair::repair;
use h5z_gpu::frame::{self, Frame};
use h5z_gpu::plugin::peek;
use h5z_gpu::{Engine, Error};

/// Raw bytes of the longest chunk that is decoded.
pub const LIMIT: usize = 96 << 10;
/// What a decoder may hold besides the raw bytes: a tile, tables of a few tiles, messages.
const CONSTANT: isize = 4 << 20;

/// Any bytes, as a frame.
pub fn header(data: &[u8]) {
    let header = frame::header(data);
    assert_eq!(header.as_ref().map(|h| h.raw_len).ok(), frame::raw_len(data).ok());
    assert_eq!(header.as_ref().ok(), peek(data, data.len() as u64).map(|p| p.header).as_ref().ok());
    let _ = peek(data, u64::MAX);
    if let Ok(open) = Frame::open(data, 1) {
        let mut seen = open.header;
        seen.extents = Default::default();
        assert_eq!(Ok(seen), header);
        assert_eq!(open.stored_len(), data.len() as u64);
        assert!(open.section_lens().iter().sum::<usize>() < data.len());
    }
    whole(data);
}

/// A frame of one codec. `data` is as [`repair`] says.
pub fn decode(data: &[u8], codec: u8) {
    whole(&repair(data, Some(codec)));
}

/// Decodes a frame; what comes back, where it is one.
///
/// Broken promises: a panic, memory beyond the raw length and a constant, a refusal without a sentence, and bytes that
/// were in the buffer before.
pub fn whole(frame: &[u8]) -> Option<Vec<u8>> {
    let engine = Engine::with_threads(1);
    let refused = |e: &Error| {
        let text = e.to_string();
        assert!(text.starts_with("h5z-gpu: ") && text.len() > 40, "{text}");
    };
    let raw_len = frame::raw_len(frame).inspect_err(refused).ok()?;
    let Some(raw_len) = usize::try_from(raw_len).ok().filter(|&n| n <= LIMIT) else {
        let held = most_held(|| refused(&engine.decode(frame, LIMIT as u64).expect_err("a chunk beyond the limit")));
        assert!(held < 4096, "{held} bytes were held to refuse {raw_len}");
        return None;
    };
    let mut out = vec![0xA5; raw_len];
    let mut done = Ok(());
    let held = most_held(|| done = engine.decode_into(frame, &mut out));
    assert!(held <= raw_len as isize + CONSTANT, "{held} bytes held for {raw_len}");
    done.inspect_err(refused).ok()?;
    let mut again = vec![0x5A; raw_len];
    engine.decode_into(frame, &mut again).expect("the same frame");
    assert!(out == again, "{raw_len} bytes: some are what was there before");
    Some(out)
}
