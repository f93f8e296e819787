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
    FORMAT_VERSION: u8 = 2;
    /// Bytes of the fixed part of a frame's header (FORMAT.md §2).
    HEADER_FIXED: usize = 56;
    /// Offset of the checksum field; its two 32-bit words are left out of the sum.
    CHECKSUM_OFFSET: usize = 40;
    /// Largest rank that a frame states; further leading extents are multiplied together.
    MAX_RANK: usize = 8;
    /// Sections start at multiples of this many bytes from the frame's first byte.
    SECTION_ALIGN: usize = 8;
    /// Word i of a frame is keyed by 2 i + 1 times this (2^64 over the golden ratio).
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
    /// `NDZIP_COVER_OF` values: a border is stored raw, one more axis saves about a tenth. Measured: 3/4 costs up to 6
    /// %.
    NDZIP_COVER: usize = 9;
    /// See `NDZIP_COVER`.
    NDZIP_COVER_OF: usize = 10;
    /// Most values of a tile of `lorenzo`. Measured: 4096 costs 2 % of the ratio, 16384 saves 1.5 % and takes 64 KiB of
    /// a CTA's memory for the points of an interpolated tile.
    LORENZO_TILE: usize = 8192;
    /// Classes of runs of zeros: one for each of the first lengths, then two for each power of two, up to a whole
    /// tile's. Measured beside runs of powers of two: 4.7 % of the ratio at 1e-3, 17 % at 1e-2, with the residual
    /// behind joined.
    LORENZO_RUNS: usize = 34;
    /// Classes that say one length each, 1 to this.
    LORENZO_SHORT_RUNS: usize = 16;
    /// Zigzag residuals below this have a symbol each; larger ones one per half power of two. Measured: 512 costs 1 %
    /// of the ratio in 4 MiB chunks (lengths to store), 16 saves nothing more.
    LORENZO_DIRECT: usize = 32;
    /// Symbols of a codebook: zeros to the end, runs, 1 to 31, two for each of 27 powers of two, runs joined with -1 or
    /// 1.
    LORENZO_SYMBOLS: usize = 188;
    /// A frame says where the payload of every 64th tile begins; of the others, how long payloads are.
    LORENZO_START_EVERY: usize = 64;
    /// Longest codeword. A table of 2048 entries decodes several at once and fits a CPU's first cache; 12 or 14 bits
    /// save less than 0.1 % of the ratio.
    CODEWORD_LIMIT: u32 = 11;
    /// Interpolated points are kept in units of 2 · bound / (2^this + 1).
    LORENZO_FINE_BITS: u32 = 8;
    /// Steps of levels 0 to 4 and above of a tile with finer coarse levels, in units.
    LORENZO_STEP_0: i32 = 256;
    /// See `LORENZO_STEP_0`.
    LORENZO_STEP_1: i32 = 205;
    /// See `LORENZO_STEP_0`.
    LORENZO_STEP_2: i32 = 164;
    /// See `LORENZO_STEP_0`.
    LORENZO_STEP_3: i32 = 131;
    /// See `LORENZO_STEP_0`.
    LORENZO_STEP_4: i32 = 128;
    /// Weights of an interpolated point whose neighbours are not evenly spaced count in 2^-this.
    LORENZO_WEIGHT_BITS: u32 = 16;
    /// Largest quantum of f32 under an absolute bound: its value, rounded to f32, still has the same quantum.
    LORENZO_LIMIT_F32: i32 = 1 << 22;
    /// Largest quantum of f64, and of any type under a point-wise relative bound; largest value in interpolation's
    /// units.
    LORENZO_LIMIT: i32 = 1 << 30;
    /// A chunk whose values are more quanta from zero counts from a base, because there are no interpolated points
    /// there: 2^29 / 257, less 6 %, since it is the median's distance.
    LORENZO_BASE_FROM: i32 = 15 << 17;
    /// Values that are more quanta from the base are beside it: f32 have no quanta there.
    LORENZO_BASE_REACH: i32 = 1 << 22;
    /// Largest interpolated point, so far below the largest value that rounding to f32 cannot lift it above that.
    LORENZO_POINT_LIMIT: i32 = 1 << 29;
    /// Values of one tile of `planes`, in every grid rank.
    PLANES_TILE: usize = 4096;
    /// Planes of a tile of `planes`, and values of each.
    PLANES_COUNT: usize = 8;
    /// Lanes of a plane: a bit plane has a word for each, as a warp has threads.
    PLANES_LANES: usize = 32;
    /// The step of `planes` is its bound times this many 128ths: 2b less its 256th part, so that rounding to the type
    /// cannot lift a difference above the bound.
    PLANES_STEP_128THS: u32 = 255;
    /// Binary logarithm of the largest usable step of f32, and of one over the smallest.
    PLANES_STEP_LOG2_F32: u32 = 100;
    /// The same for f64.
    PLANES_STEP_LOG2_F64: u32 = 1000;
    /// Largest quantum of f32: its value, rounded to f32, still has the same quantum.
    PLANES_LIMIT_F32: i64 = 1i64 << 21;
    /// Largest quantum of f64, for the same reason.
    PLANES_LIMIT_F64: i64 = 1i64 << 49;
    /// Class 0 takes quanta from this much below the base to one less above: eight of them, added, fit 16 bits.
    PLANES_NEAR: i64 = 4096;
    /// A base of class 0 is a multiple of this for f32 …
    PLANES_UNIT_F32: i64 = 2;
    /// … and of this for f64: 21 bits of the head reach as far as 30 then.
    PLANES_UNIT_F64: i64 = 512;
    /// Largest base of class 0, either sign, for f32 …
    PLANES_BASE_F32: i64 = (1 << 21) - 4096;
    /// … and for f64.
    PLANES_BASE_F64: i64 = (1 << 29) - 4096;
    /// Most exceptions of a tile that are not all the same.
    PLANES_EXCEPTIONS: usize = 256;
    /// Most bytes of the part *bytes* of a tile: what a CTA keeps in shared memory.
    PLANES_BYTES: usize = 2048;
    /// Half bytes of a bit plane that is stored as it is: one that takes as many otherwise is.
    PLANES_FULL: usize = 256;
    /// Raw bytes of one tile of `bytes`.
    BYTES_TILE: usize = 1 << 20;
    /// Largest element size by which `bytes` shuffles: what the type word can say.
    BYTES_STRIDE_MAX: usize = 255;
    /// zstd level of `bytes`.
    BYTES_LEVEL: i32 = 3;
}

/// First eight bytes of every frame. Not text, not a plausible number, broken by line-end conversion.
pub const FRAME_MAGIC: [u8; 8] = [0x89, b'H', b'5', b'Z', b'G', 0x0D, 0x0A, 0x1A];
