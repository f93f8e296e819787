// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structs that host and kernels share.
//!
//! This file depends on nothing: the build script includes it and writes the kernels' twin of every struct, with its
//! size and offsets asserted. Fields are `u32`, `u64`, `f64` or arrays of them, ordered so that nothing is padded.

/// A field as the build script sees it.
pub struct Field {
    /// Its name, the same in Rust and CUDA.
    pub name: &'static str,
    /// Its Rust type.
    pub ty: &'static str,
    /// Bytes before it.
    pub offset: usize,
    /// Bytes of it.
    pub size: usize,
}

/// A struct as the build script sees it.
pub struct Layout {
    /// Its name, the same in Rust and CUDA.
    pub name: &'static str,
    /// Bytes of it.
    pub size: usize,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

/// What a field may be.
trait Zero {
    const ZERO: Self;
}
impl Zero for u32 {
    const ZERO: Self = 0;
}
impl Zero for u64 {
    const ZERO: Self = 0;
}
impl Zero for f64 {
    const ZERO: Self = 0.0;
}
impl<const N: usize> Zero for [u32; N] {
    const ZERO: Self = [0; N];
}
impl<const N: usize> Zero for [u64; N] {
    const ZERO: Self = [0; N];
}

macro_rules! shared_structs {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])* #[repr(C)] #[derive(Debug, Clone, Copy)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
        impl $name {
            /// Every number 0.
            pub const ZERO: Self = $name { $($field: <$ty as Zero>::ZERO,)* };
        })*
        /// Every struct above.
        pub const STRUCTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: &[$(Field {
                name: stringify!($field),
                ty: stringify!($ty),
                offset: std::mem::offset_of!($name, $field),
                size: size_of::<$ty>(),
            }),*],
        }),*];
    };
}

shared_structs! {
    /// One chunk to encode. Offsets are bytes from the frame's first byte.
    EncodeChunk {
        /// Device address of the values, 16-byte aligned; where f64 go, if a kernel makes them of integers first.
        input: u64,
        /// Device address of the frame, 16-byte aligned, as long as the largest one.
        frame: u64,
        /// Values in the chunk.
        values: u64,
        /// Bits of the fill value: the user's, which is kept exactly, when `flags` has `FLAG_FILL`; else 0, HDF5's own.
        /// No range counts it.
        fill: u64,
        /// What `bound_kind` says it is.
        bound: f64,
        /// Where the range is kept: its ends, the lower one above the upper one where a kernel finds them or there are
        /// none.
        low: f64,
        /// See `low`.
        high: f64,
        /// Where signs are kept: the smallest positive number of the chunk's type.
        least: f64,
        /// Where the tiles' payloads start.
        payload_at: u64,
        /// `BOUND_ABSOLUTE`, `BOUND_RANGE` (times the chunk's value range) or `BOUND_POINTWISE`.
        bound_kind: u32,
        /// `FLAG_…` bits.
        flags: u32,
        /// Tiles of the batch before this chunk's.
        first_tile: u32,
        /// Tiles of this chunk.
        tiles: u32,
        /// Where the first section starts.
        table_at: u32,
        /// Words that the tiles write from there on.
        table_words: u32,
        /// Words of `head` that are used.
        head_words: u32,
        /// Where the length of the payload's section stands in `head`, in words.
        payload_len_at: u32,
        /// Extents of the codec's grid, slowest first, leading ones 1.
        extents: [u32; 3],
        /// Rank of the codec's grid.
        rank: u32,
        /// Device address of the tiles' working memory.
        work: u64,
        /// Device address of the integers, 16-byte aligned; 0 where there are none.
        integers: u64,
        /// Bytes of one tile's.
        work_stride: u32,
        /// Extents of a tile that is not at a border.
        tile: [u32; 3],
        /// Components of vectors that the last axis holds: the codec's grid has one behind the other. 1: there are
        /// none.
        components: u32,
        /// What the integers are: bytes of one, and `INTEGER_…` bits. 0: the values are floating-point numbers.
        integer: u32,
        /// The frame's header; stored length, bound used, checksum and the payload's length are filled in by the
        /// kernel.
        head: [u32; HEAD_WORDS],
    }
    /// What the CTAs of one chunk share; zero before a launch.
    ChunkState {
        /// Largest value, as an integer of the same order; 0 for none.
        high: u64,
        /// Complement of the smallest value's integer of the same order; 0 for none.
        low: u64,
        /// Sum that becomes the checksum.
        sum: u64,
        /// Tiles done.
        done: u32,
        /// Anything wrong with the chunk: see the codec's kernels.
        fault: u32,
    }
    /// Arguments of an encoding kernel, and of the one that finds ranges.
    EncodeArgs {
        /// `EncodeChunk`s.
        chunks: u64,
        /// `ChunkState`s.
        states: u64,
        /// What tiles tell each other, [`tile_words`] bytes: one word a tile for the look-back, or what the codec's
        /// kernels say. Zero before a launch.
        offsets: u64,
        /// The next tile's number, and two more counters; zero before a launch.
        ticket: u64,
        /// What the launches share of each chunk, `LORENZO_SHARED` bytes; zero before the first. 0 for codecs without.
        shared: u64,
        /// Per chunk the frame's length, u64; 0 where the kernels leave the chunk to the CPU.
        lengths: u64,
        /// Chunks of the batch.
        chunk_count: u32,
        /// Tiles of the batch.
        tiles: u32,
    }
    /// One frame to decode. Offsets are bytes from the frame's first byte.
    DecodeChunk {
        /// Device address of the frame, 16-byte aligned, readable up to the next multiple of 16 bytes.
        frame: u64,
        /// Device address of the values, 16-byte aligned; f64 of which a kernel makes integers, where there are such.
        output: u64,
        /// Device address of the integers, 16-byte aligned; 0 where there are none.
        integers: u64,
        /// Values in the chunk.
        values: u64,
        /// Bytes of the frame.
        frame_len: u64,
        /// Where the tiles' payloads start.
        payload_at: u64,
        /// Bytes of the payload's section.
        payload_len: u64,
        /// The bound that the header states.
        bound: f64,
        /// The checksum that the header states.
        checksum: u64,
        /// What one quantum of `lorenzo` is worth.
        step: f64,
        /// What one unit of its interpolated points is worth.
        fine: f64,
        /// The distance between the bits of its values, under a point-wise relative bound.
        distance: u64,
        /// What is added to them, -0 for nothing; f32 in f32.
        base: f64,
        /// Tiles of the batch before this chunk's.
        first_tile: u32,
        /// Tiles of this chunk.
        tiles: u32,
        /// Where the first section starts.
        table_at: u32,
        /// `FLAG_…` bits.
        flags: u32,
        /// Extents of the codec's grid, slowest first, leading ones 1.
        extents: [u32; 3],
        /// Rank of the codec's grid.
        rank: u32,
        /// The header's mode.
        mode: u32,
        /// Words of the table.
        table_words: u32,
        /// Bytes of the first section.
        table_len: u32,
        /// Where the tiles' kinds start, and the lengths of their payloads.
        kinds_at: u32,
        /// See `kinds_at`.
        lengths_at: u32,
        /// Extents of a tile that is not at a border.
        tile: [u32; 3],
        /// Components of vectors, as in [`EncodeChunk`].
        components: u32,
        /// What the integers are, as in [`EncodeChunk`].
        integer: u32,
    }
    /// Arguments of a decoding kernel.
    DecodeArgs {
        /// `DecodeChunk`s.
        chunks: u64,
        /// `ChunkState`s.
        states: u64,
        /// Per chunk 1 when it decoded and its checksum is right, u64; anything else sends it to the CPU.
        verdicts: u64,
        /// Per chunk the tables of its codebook, 16-byte aligned; 0 for codecs without.
        tables: u64,
        /// Tiles that one kernel leaves to the next: how many, how many are taken, their numbers. The first two are
        /// zero before a launch.
        list: u64,
        /// Chunks of the batch.
        chunk_count: u32,
        /// Tiles of the batch.
        tiles: u32,
    }
    /// A box of elements to copy between two arrays, as rows whose bytes lie together in both.
    BoxCopy {
        /// Address of the first row that is read.
        from: u64,
        /// Address of the first row that is written.
        to: u64,
        /// Bytes from a row to the next along each axis, slowest first, modulo 2^64.
        from_steps: [u64; 8],
        /// The same of what is written.
        to_steps: [u64; 8],
        /// Bytes of a row.
        run: u64,
        /// Rows along each axis, leading ones 1.
        extents: [u32; 8],
        /// Pieces that a row is cut into, of `ARRAY_PIECE` bytes but the last.
        pieces: u32,
        /// Pieces of all rows.
        units: u32,
        /// Threads that copy a piece: a power of two, 32 at most.
        lanes: u32,
        /// Bytes that a thread copies at a time: 1, 2, 4, 8 or 16, which divide every address, step and row.
        width: u32,
        /// Pieces that these threads copy one after the other.
        turns: u32,
        /// CTAs of the launch before this box's.
        first_cta: u32,
    }
    /// Arguments of `array_copy`.
    CopyArgs {
        /// `BoxCopy`s.
        boxes: u64,
        /// How many.
        box_count: u32,
        /// Nothing.
        reserved: u32,
    }
    /// Arguments of `array_widen` and `array_narrow`.
    HalfArgs {
        /// Device address of the first chunk's 16-bit numbers, 16-byte aligned.
        halves: u64,
        /// Bytes from one chunk's to the next one's, a multiple of 16.
        halves_step: u64,
        /// The same of the f32.
        wide: u64,
        /// See `wide`.
        wide_step: u64,
        /// Numbers of a chunk.
        values: u64,
        /// CTAs of each chunk.
        parts: u32,
        /// 1: bfloat16, 0: binary16.
        is_bfloat16: u32,
    }
    /// A chunk of numbers that are multiples of a unit: codecs/src/codec/scaled/FORMAT.md §3.1 says what map, unit,
    /// origin, factor and addend are.
    ScaledChunk {
        /// Device address of the numbers.
        numbers: u64,
        /// Device address of their codes: integers of as many bytes.
        codes: u64,
        /// Device address of what is found: how many exceptions there are and `SCALED_…` bits, u32 each and zero before
        /// a launch; then the bits of `most` exceptions, u64; then their places, u32.
        found: u64,
        /// Numbers of the chunk.
        values: u64,
        /// See above.
        factor: f64,
        /// See above.
        addend: f64,
        /// See above.
        unit: u64,
        /// See above, i64.
        origin: u64,
        /// Bits of the number that the lowest code stands for, where `flags` has `FLAG_FILL`.
        special: u64,
        /// See above.
        map: u32,
        /// `FLAG_FILL`, `FLAG_SWAP`.
        flags: u32,
        /// Exceptions that there is room for.
        most: u32,
        /// Nothing.
        reserved: u32,
    }
    /// Arguments of `scaled_divide`.
    ScaledArgs {
        /// `ScaledChunk`s.
        chunks: u64,
        /// CTAs of each.
        parts: u32,
        /// Nothing.
        reserved: u32,
    }
    /// Arguments of `array_pack`.
    PackArgs {
        /// `EncodeChunk`s, for the addresses of their frames.
        chunks: u64,
        /// Their frames' lengths, u64.
        lengths: u64,
        /// Where the frames go, 16-byte aligned.
        packed: u64,
        /// Longer frames are left out.
        limit: u64,
        /// Frames.
        chunk_count: u32,
        /// CTAs of each frame.
        parts: u32,
    }
}

/// Words of the longest head: the fixed header, as many extents as a chunk may have, eight sections of two words each.
/// The engine compares it with the format's own numbers.
pub const HEAD_WORDS: usize = 38;

/// Names and values that kernels know by the same name.
pub const NUMBERS: &[(&str, u32)] = &[
    ("BOUND_ABSOLUTE", BOUND_ABSOLUTE),
    ("BOUND_RANGE", BOUND_RANGE),
    ("BOUND_POINTWISE", BOUND_POINTWISE),
    ("FLAG_FILL", FLAG_FILL),
    ("FLAG_SWAP", FLAG_SWAP),
    ("FLAG_FLOAT", FLAG_FLOAT),
    ("FLAG_SIGN", FLAG_SIGN),
    ("FLAG_ZERO", FLAG_ZERO),
    ("FLAG_RANGE", FLAG_RANGE),
    ("INTEGER_SIGNED", INTEGER_SIGNED),
    ("INTEGER_SWAP", INTEGER_SWAP),
    ("LORENZO_SHARED", LORENZO_SHARED),
    ("LORENZO_HEAD", LORENZO_HEAD),
    ("SCALED_SOME", SCALED_SOME),
    ("SCALED_FAR", SCALED_FAR),
    ("ARRAY_PIECE", ARRAY_PIECE),
    ("ARRAY_PACK_STEP", ARRAY_PACK_STEP),
];

/// Bytes of what the tiles of a batch tell each other: a record of 8 bytes each; sums of 32 records and of 1024; a list
/// of tiles.
pub const fn tile_words(tiles: usize) -> usize {
    12 * tiles + 4 * (tiles.div_ceil(32) + tiles.div_ceil(32 * 32))
}

/// The bound is the number itself.
pub const BOUND_ABSOLUTE: u32 = 0;
/// The bound is the number times the chunk's value range, rounded down.
pub const BOUND_RANGE: u32 = 1;
/// The bound is the number times each value.
pub const BOUND_POINTWISE: u32 = 2;
/// The user defined a fill value.
pub const FLAG_FILL: u32 = 1;
/// The chunk's numbers have the other byte order.
pub const FLAG_SWAP: u32 = 2;
/// The numbers are floating-point: without a bound they are coded as integers of the same order.
pub const FLAG_FLOAT: u32 = 4;
/// Signs are kept.
pub const FLAG_SIGN: u32 = 8;
/// Zeros are kept bit for bit.
pub const FLAG_ZERO: u32 = 16;
/// The range is kept.
pub const FLAG_RANGE: u32 = 32;
/// Integers have a sign.
pub const INTEGER_SIGNED: u32 = 16;
/// Integers have the other byte order.
pub const INTEGER_SWAP: u32 = 32;
/// Bytes that the launches encoding a chunk with `lorenzo` share: counts, codewords, places of sections.
pub const LORENZO_SHARED: u32 = 2816;
/// Bytes that a tile's working memory begins with: what it is to be, how often it has each symbol.
pub const LORENZO_HEAD: u32 = 448;
/// A code is not 0.
pub const SCALED_SOME: u32 = 1;
/// An exception has none but exceptions and special numbers before it, so far as was looked.
pub const SCALED_FAR: u32 = 2;
/// Bytes of a row that a group of threads copies at a time.
pub const ARRAY_PIECE: u32 = 2048;
/// Frames that are brought together begin at multiples of this.
pub const ARRAY_PACK_STEP: u32 = 64;
