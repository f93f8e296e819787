// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec `bytes` on the CPU: shuffle, then zstd, tile by tile. FORMAT.md §4 and §8.
//!
//! Bytes of equal place in their elements are alike, so each tile is shuffled: all first bytes, all second bytes, and
//! so on; then zstd codes it. Where few bits of a byte vary, as in masks and counts, bits of equal place are still more
//! alike, and each tile is shuffled bit by bit. Whether the element's size or 1 (no shuffle) is the better stride, and
//! whether bits are better than bytes, 64 KiB in four pieces tell.
//! Tiles are coded apart from each other, by as many threads as there are; one that zstd cannot make smaller stays raw.

use super::format::{HEAD_LEN, Head, Tiles};
use super::shuffle::{Shuffle, Unit};
use crate::codec_id::CodecId;
use crate::constants::{BYTES_LEVEL, BYTES_STRIDE_MAX, BYTES_TILE};
use crate::error::{Damage, Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::params::{Dtype, Extents, Mode};
use crate::{memory, parallel};
use std::borrow::Cow;
use std::cell::Cell;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx};

/// Bytes of the chunk on which the shuffle is chosen.
const SAMPLE: usize = 1 << 16;
const _: () = assert!(SAMPLE <= BYTES_TILE - BYTES_STRIDE_MAX, "a chunk that is all sample has one tile");
/// Pieces that these are made of in a larger chunk.
const PIECES: usize = 4;
/// zstd's level for what is shuffled: level 3 is slower there and makes it no smaller.
const SHUFFLED_LEVEL: i32 = 1;
/// In hundredths: bits are shuffled where the sample takes less than this part of what it takes with bytes shuffled. A
/// sample may be wrong by some hundredths, and bytes are shuffled faster.
const BITS_GAIN: usize = 98;

/// Encodes bytes into a frame. A tile that zstd cannot make smaller is kept raw.
pub(crate) fn encode(raw: &[u8], dtype: Dtype, threads: usize, out: &mut Vec<u8>) -> Result<()> {
    let Tried { shuffle, code, .. } = tried(raw, usize::from(dtype.size))?;
    let head = Head::new(shuffle);
    let tiles = raw.len().div_ceil(head.tile);
    let run = parallel::run_length(tiles, threads);
    let coded = if raw.len() <= SAMPLE {
        vec![vec![code]]
    } else {
        parallel::try_map(tiles.div_ceil(run), threads, |r| {
            let mut coder = Coder::new()?;
            let mut codes = memory::with_capacity(run)?;
            for tile in raw[r * run * head.tile..].chunks(head.tile).take(run) {
                let code = coder.code(tile, head.shuffle)?;
                codes.push(code.map(|c| memory::collect(c.len(), c.iter().copied())).transpose()?);
            }
            coder.done();
            Ok(codes)
        })?
    };
    // What zstd did not shrink is not copied before it reaches the payload.
    let codes = || coded.iter().flatten().zip(raw.chunks(head.tile)).map(|(c, raw)| c.as_deref().unwrap_or(raw));

    let header = Header {
        codec: CodecId::BYTES,
        mode: Mode::Lossless,
        used: 0.0,
        dtype,
        extents: Extents::default(),
        raw_len: raw.len() as u64,
    };
    let mut w = Writer::new(out, header, 3)?;
    w.section(|o| {
        memory::reserve(o, HEAD_LEN)?;
        head.write(o);
        Ok(())
    })?;
    w.section(|o| {
        memory::reserve(o, 8 * tiles)?;
        let mut end = 0;
        for code in codes() {
            end += code.len() as u64;
            o.extend(end.to_le_bytes());
        }
        Ok(())
    })?;
    w.section(|o| codes().try_for_each(|code| memory::append(o, code)))?;
    w.seal(threads);
    Ok(())
}

/// Bytes that the payload of these would take: as the sample says, where that is half more than `most`.
pub(crate) fn len(raw: &[u8], size: u8, most: u64) -> Result<u64> {
    let Tried { shuffle, about, .. } = tried(raw, size.into())?;
    if raw.len() <= SAMPLE || about > most.saturating_add(most / 2) {
        return Ok(about);
    }
    let mut coder = Coder::new()?;
    let mut all = 0;
    for tile in raw.chunks(Head::new(shuffle).tile) {
        all += coder.code(tile, shuffle)?.map_or(tile.len(), <[u8]>::len) as u64;
    }
    coder.done();
    Ok(all)
}

/// How bytes are shuffled, and what a sample says of them so.
struct Tried {
    shuffle: Shuffle,
    /// The sample's code, `None` where that is not smaller: of a chunk that is all sample, its only tile's.
    code: Option<Vec<u8>>,
    /// Bytes that all would take at its rate.
    about: u64,
}

/// Bytes by the element size or 1, whichever makes the sample smaller; unknown sizes try the usual ones. Bits
/// where they make it smaller by two hundredths more. FORMAT.md §8.
fn tried(raw: &[u8], size: usize) -> Result<Tried> {
    let candidates: &[usize] = match size {
        0 => &[1, 2, 4, 8],
        1 => &[1],
        _ => &[1, size],
    };
    let sample = sample(raw, if size == 0 { 8 } else { size })?;
    let (mut coder, mut code) = (Coder::new()?, Vec::new());
    // The first of equals: candidates rise.
    let (mut best, mut least) = (Shuffle::NONE, usize::MAX);
    for &stride in candidates {
        let shuffle = Shuffle { stride, unit: Unit::Byte };
        let len = coder.code(&sample, shuffle)?.map_or(sample.len(), <[u8]>::len);
        if len < least {
            (best, least) = (shuffle, len);
            std::mem::swap(&mut code, &mut coder.code);
        }
    }
    let bits = Shuffle { stride: if size == 0 { best.stride } else { size }, unit: Unit::Bit };
    let of_bits = coder.code(&sample, bits)?.map_or(sample.len(), <[u8]>::len);
    if 100 * of_bits < BITS_GAIN * least {
        (best, least) = (bits, of_bits);
        std::mem::swap(&mut code, &mut coder.code);
    }
    coder.done();
    code.truncate(least);
    let code = (least < sample.len()).then_some(code);
    Ok(Tried { shuffle: best, code, about: least as u64 * raw.len() as u64 / sample.len().max(1) as u64 })
}

/// Bytes by which the shuffle is chosen: whole elements in pieces from all over the chunk, or all of a small one.
fn sample(raw: &[u8], size: usize) -> Result<Cow<'_, [u8]>> {
    if raw.len() <= SAMPLE {
        return Ok(raw.into());
    }
    let piece = SAMPLE / PIECES / size * size;
    let mut sample = memory::with_capacity(PIECES * piece)?;
    for k in 0..PIECES {
        let at = (raw.len() - piece) / (PIECES - 1) * k / size * size;
        memory::append(&mut sample, &raw[at..at + piece])?;
    }
    Ok(sample.into())
}

/// zstd found no memory; the number is what this level takes for a tile, about.
const NO_CONTEXT: Error = Error::NoMemory { bytes: 1 << 20 };

/// Sets a buffer's length; what is new is zeros.
fn lengthen(v: &mut Vec<u8>, len: usize) -> Result<()> {
    memory::reserve(v, len.saturating_sub(v.len()))?;
    v.resize(len, 0);
    Ok(())
}

thread_local! {
    /// zstd's working memory that this thread used last: to make it anew took 2 % of all writing and reading without
    /// loss, in a virtual machine. At the end of a program HDF5 may write without it: it is gone before.
    static CODER: Cell<Option<CCtx<'static>>> = const { Cell::new(None) };
    static DECODER: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// zstd's working memory and two tile buffers, kept from tile to tile.
struct Coder {
    zstd: CCtx<'static>,
    shuffled: Vec<u8>,
    code: Vec<u8>,
}

impl Coder {
    fn new() -> Result<Self> {
        let zstd = CODER.try_with(Cell::take).ok().flatten().or_else(CCtx::try_create).ok_or(NO_CONTEXT)?;
        Ok(Coder { zstd, shuffled: Vec::new(), code: Vec::new() })
    }

    /// Leaves zstd's working memory to the thread's next coder.
    fn done(self) {
        let _ = CODER.try_with(|last| last.set(Some(self.zstd)));
    }

    /// The tile shuffled and coded; `None` when that is not smaller.
    fn code(&mut self, tile: &[u8], shuffle: Shuffle) -> Result<Option<&[u8]>> {
        lengthen(&mut self.code, zstd_safe::compress_bound(tile.len()))?;
        let from = if shuffle == Shuffle::NONE {
            tile
        } else {
            lengthen(&mut self.shuffled, tile.len())?;
            shuffle.shuffle(tile, &mut self.shuffled);
            &self.shuffled
        };
        let level = if shuffle == Shuffle::NONE { BYTES_LEVEL } else { SHUFFLED_LEVEL };
        self.zstd.set_parameter(CParameter::CompressionLevel(level)).map_err(|_| NO_CONTEXT)?;
        // The buffer holds the longest code: only memory can be missing.
        let len = self.zstd.compress2(self.code.as_mut_slice(), from).map_err(|_| NO_CONTEXT)?;
        Ok((len < tile.len()).then_some(&self.code[..len]))
    }
}

/// Decodes a frame into `out`, which has the frame's raw length.
pub(crate) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let tiles = Tiles::open(frame, out.len())?;
    let Head { shuffle, tile } = tiles.head;
    let run = parallel::run_length(out.len().div_ceil(tile), threads);
    let runs = out.chunks_mut(run * tile);
    parallel::try_each(runs.len(), runs, threads, |r, raws| {
        let mut decoder = Decoder::new(shuffle, tile.min(raws.len()))?;
        raws.chunks_mut(tile).zip(r * run..).try_for_each(|(raw, k)| {
            let code = tiles.code(k);
            decoder
                .decode(code, raw)
                .map_err(|why| Error::corrupt("bytes payload", format!("tile {k}, {} bytes: {why}", code.len())))
        })?;
        decoder.done();
        Ok(())
    })
}

/// zstd's working memory and one tile, kept from tile to tile.
struct Decoder {
    shuffle: Shuffle,
    zstd: DCtx<'static>,
    shuffled: Vec<u8>,
}

impl Decoder {
    fn new(shuffle: Shuffle, tile: usize) -> Result<Self> {
        let shuffled = memory::zeros(if shuffle == Shuffle::NONE { 0 } else { tile })?;
        let zstd = DECODER.try_with(Cell::take).ok().flatten().or_else(DCtx::try_create).ok_or(NO_CONTEXT)?;
        Ok(Decoder { shuffle, zstd, shuffled })
    }

    /// As [`Coder::done`].
    fn done(self) {
        let _ = DECODER.try_with(|last| last.set(Some(self.zstd)));
    }

    fn decode(&mut self, code: &[u8], raw: &mut [u8]) -> Result<(), Damage> {
        if code.len() == raw.len() {
            raw.copy_from_slice(code);
            return Ok(());
        }
        // zstd itself would go on with whatever follows its first frame.
        let first = zstd_safe::find_frame_compressed_size(code).map_err(zstd_safe::get_error_name)?;
        if first != code.len() {
            return Err(format!("its zstd frame ends at {first}").into());
        }
        // The exact length is the limit: zstd refuses to write more, and less is refused here.
        let mut inflate = |out: &mut [u8]| match self.zstd.decompress(out, code) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => Err(format!("zstd gives {n} bytes where {} are needed", out.len()).into()),
            Err(e) => Err(format!("zstd: {}", zstd_safe::get_error_name(e)).into()),
        };
        if self.shuffle == Shuffle::NONE {
            return inflate(raw);
        }
        let shuffled = &mut self.shuffled[..raw.len()];
        inflate(shuffled)?;
        self.shuffle.unshuffle(shuffled, raw);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(raw: &[u8], size: u8, threads: usize) -> Vec<u8> {
        let mut out = Vec::new();
        encode(raw, Dtype::bytes(size), threads, &mut out).unwrap();
        out
    }

    fn shuffle(raw: &[u8], size: usize) -> Shuffle {
        tried(raw, size).unwrap().shuffle
    }

    fn back(frame: &[u8], threads: usize) -> Result<Vec<u8>> {
        let frame = Frame::open(frame, threads)?;
        let mut out = vec![0xAA; frame.header.raw_len as usize];
        decode(&frame, threads, &mut out).map(|()| out)
    }

    /// Slowly rising 16-bit numbers with a noisy low byte, and random bytes in the middle third.
    fn mixed(len: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..len)
            .map(|i| match i {
                _ if (len / 3..2 * len / 3).contains(&i) => noise(),
                _ if i % 2 == 0 => noise() & 15,
                _ => (i >> 12) as u8,
            })
            .collect()
    }

    #[test]
    fn every_size_and_length_comes_back() {
        for size in [0, 1, 2, 3, 6, 12, 16, 255] {
            for len in
                [0, 1, 2, 5, 254, 255, 256, 1000, BYTES_TILE - 1, BYTES_TILE, BYTES_TILE + 1, 3 * BYTES_TILE + 77]
            {
                let raw = mixed(len);
                let one = frame(&raw, size, 1);
                assert_eq!(one, frame(&raw, size, 3), "bytes depend on threads: size {size}, {len} bytes");
                assert!(back(&one, 2).unwrap() == raw, "size {size}, {len} bytes");
            }
        }
    }

    #[test]
    fn an_incompressible_tile_is_kept_raw_among_others() {
        let raw = mixed(6 * BYTES_TILE);
        let bytes = frame(&raw, 2, 2);
        let f = Frame::open(&bytes, 1).unwrap();
        let tiles = Tiles::open(&f, raw.len()).unwrap();
        let lens: Vec<usize> = (0..6).map(|k| tiles.code(k).len()).collect();
        assert_eq!(lens[2..4], [BYTES_TILE; 2], "{lens:?}");
        assert!(lens[0] < BYTES_TILE * 2 / 3 && lens[5] < BYTES_TILE * 2 / 3, "{lens:?}");
        assert_eq!(tiles.head.shuffle.stride, 2);
    }

    #[test]
    fn the_stride_of_unknown_elements_is_found() {
        let doubles: Vec<u8> = (0..4000).flat_map(|i| (f64::from(i) * 0.37).sin().to_le_bytes()).collect();
        assert_eq!(shuffle(&doubles, 0).stride, 8);
        let text = b"the same line again and again; ".repeat(100);
        for (raw, size) in [(&text[..], 0), (&text, 1), (&text, 4), (&[], 0), (&[], 1), (&[], 4)] {
            assert_eq!(shuffle(raw, size), Shuffle::NONE, "size {size}, {} bytes", raw.len());
        }
    }

    /// A mask of ones with ragged edges, as elements of `size` bytes.
    fn mask(n: usize, size: usize) -> Vec<u8> {
        let noise = mixed(3 * n);
        let one = |i: usize| u8::from((i / 100 + usize::from(noise[n + i] & 31)) % 64 < 32);
        (0..n).flat_map(|i| [vec![one(i)], vec![0; size - 1]].concat()).collect()
    }

    #[test]
    fn bits_are_shuffled_where_few_of_them_vary() {
        for size in [1, 2, 4] {
            let raw = mask(3 * BYTES_TILE / size + 77, size);
            let shuffle = shuffle(&raw, size);
            assert_eq!(shuffle, Shuffle { stride: size, unit: Unit::Bit });
            let (with, bytes) = (frame(&raw, size as u8, 2), Shuffle { stride: size, unit: Unit::Byte });
            let without: usize = raw
                .chunks(BYTES_TILE)
                .map(|tile| Coder::new().unwrap().code(tile, bytes).unwrap().map_or(tile.len(), <[u8]>::len))
                .sum();
            assert!(with.len() < without * 9 / 10, "size {size}: {} of {without} bytes", with.len());
            assert!(back(&with, 2).unwrap() == raw, "size {size}");
        }
        // Of elements of unknown size too.
        assert_eq!(shuffle(&mask(5000, 1), 0), Shuffle { stride: 1, unit: Unit::Bit });
        assert_eq!(shuffle(&mask(5000, 2), 0).unit, Unit::Bit);
    }

    #[test]
    fn bytes_are_shuffled_where_bits_gain_next_to_nothing() {
        // Any bytes, each followed by one that is 0 so often that half of the element is the noise alone.
        let noise = mixed(3 * SAMPLE)[SAMPLE..2 * SAMPLE].to_vec();
        let raw: Vec<u8> = noise.iter().enumerate().flat_map(|(i, &b)| [b, u8::from(i % 2000 == 9)]).collect();
        assert_eq!(shuffle(&raw, 2), Shuffle { stride: 2, unit: Unit::Byte });
        assert_eq!(shuffle(&noise, 1), Shuffle::NONE);
    }
}
