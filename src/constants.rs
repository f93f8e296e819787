// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every number that the format fixes, with its reason.
//!
//! This file depends on nothing: a build script can include it and hand the same numbers to another
//! compiler. A change here is a new format version; what may be tuned freely does not belong here.

/// Declares the constants and lists them, so that they can be written out for another language.
macro_rules! format_constants {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $ty = $value;)*
        /// Name and value of every number above.
        #[allow(dead_code)]
        pub const FORMAT_CONSTANTS: &[(&str, u64)] = &[$((stringify!($name), $value as u64)),*];
    };
}

format_constants! {
    /// Newest format version that this crate writes and reads (FORMAT.md §1).
    FORMAT_VERSION: u8 = 1;
    /// Bytes of the fixed part of a frame's header (FORMAT.md §2).
    HEADER_FIXED: usize = 56;
    /// Offset of the checksum field; its two 32-bit words are left out of the sum.
    CHECKSUM_OFFSET: usize = 40;
    /// Largest rank that a frame states; further leading extents are multiplied together.
    MAX_RANK: usize = 8;
    /// Sections start at multiples of this many bytes from the frame's first byte.
    SECTION_ALIGN: usize = 8;
    /// Word i of a frame is keyed by the upper half of i times this (2^64 over the golden ratio).
    CHECKSUM_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    /// Values of one block of `szx` (the UFZ paper's default; one warp of four values a lane).
    SZX_BLOCK: usize = 128;
    /// Blocks of one tile of `szx`: 4096 values, one CTA's work.
    SZX_TILE_BLOCKS: usize = 32;
    /// Values of one hypercube of `ndzip`, in every rank.
    NDZIP_CUBE: usize = 4096;
    /// Side of a hypercube in rank 1.
    NDZIP_SIDE_1: usize = 4096;
    /// Side of a hypercube in rank 2.
    NDZIP_SIDE_2: usize = 64;
    /// Side of a hypercube in rank 3.
    NDZIP_SIDE_3: usize = 16;
    /// `ndzip` takes the highest rank whose whole cubes hold at least this many of every
    /// `NDZIP_COVER_OF` values: a border is stored raw, one more axis saves about a tenth.
    NDZIP_COVER: usize = 3;
    /// See `NDZIP_COVER`.
    NDZIP_COVER_OF: usize = 4;
    /// Raw bytes of one tile of `bytes`.
    BYTES_TILE: usize = 1 << 20;
    /// Largest element size by which `bytes` shuffles: what the type word can say.
    BYTES_STRIDE_MAX: usize = 255;
    /// zstd level of `bytes`.
    BYTES_LEVEL: i32 = 3;
}

/// First eight bytes of every frame. Not text, not a plausible number, broken by line-end conversion.
pub const FRAME_MAGIC: [u8; 8] = [0x89, b'H', b'5', b'Z', b'G', 0x0D, 0x0A, 0x1A];
