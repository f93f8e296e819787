// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is fuzzed: each target takes any bytes, and panics where a promise is broken.

mod arrays;
pub mod c;
mod calls;
#[path = "../../common/counting.rs"]
pub mod counting;
mod filter;
mod frames;
pub mod repair;
#[path = "../../common/seal.rs"]
#[allow(dead_code)] // other tests use the rest
pub mod seal;
mod words;

use std::path::Path;

/// A target's name, and what it does with some bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Frames, and what a decoder makes of them.
pub const FRAMES: [Target; 9] = [
    ("header", frames::header),
    ("stored", |data| frames::decode(data, 0)),
    ("szx", |data| frames::decode(data, 1)),
    ("lorenzo", |data| frames::decode(data, 2)),
    ("ndzip", |data| frames::decode(data, 3)),
    ("bytes", |data| frames::decode(data, 4)),
    ("planes", |data| frames::decode(data, 5)),
    ("scaled", |data| frames::decode(data, 6)),
    ("dense", |data| frames::decode(data, 7)),
];

/// Words in every form.
pub const WORDS: [Target; 3] = [("words", words::list), ("text", words::text), ("json", words::json)];

/// The C interface, and the filter as HDF5 calls it.
pub const CALLS: [Target; 5] = [
    ("part", arrays::part),
    ("file", arrays::file),
    ("encode", arrays::encode),
    ("filter", filter::filter),
    ("calls", calls::calls),
];

/// The inputs of a target that are kept: see `keep.py`.
pub fn kept(target: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target))?;
    let (mut inputs, mut rest) = (Vec::new(), &packed[..]);
    while let Some((len, more)) = rest.split_first_chunk() {
        let (input, behind) = more.split_at(u16::from_le_bytes(*len).into());
        inputs.push(input.to_vec());
        rest = behind;
    }
    Ok(inputs)
}

/// Settles what the environment decides. Call it first.
pub fn begin() {
    // SAFETY: Rust's own readers of the environment take turns, and no C code of these programs reads it.
    unsafe {
        // Threads cost more than a small frame does.
        std::env::set_var("H5Z_GPU_THREADS", "1");
        std::env::set_var("H5Z_GPU_LOG", "off");
    }
}

/// Numbers taken from the beginning of some bytes; zeros behind their end.
struct Plan<'a>(&'a [u8]);

impl Plan<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `n`, which is at most 256.
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }
}
