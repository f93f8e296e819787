// SPDX-License-Identifier: MIT OR Apache-2.0
//! The room `bytes` on the CPU: shuffle, then zstd, tile by tile. FORMAT.md §4 and §8.

use super::format::{Head, Tiles};
use super::shuffle::{shuffle, unshuffle};
use crate::codec::BYTES;
use crate::constants::BYTES_LEVEL;
use crate::error::{Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::parallel;
use crate::params::{Bound, Dtype, Extents};
use zstd::bulk::{Compressor, Decompressor};

/// Bytes of the chunk on which the stride is chosen.
const SAMPLE: usize = 1 << 16;

/// Encodes bytes into a frame. A tile that zstd cannot make smaller, or fails on, is kept raw.
pub(crate) fn encode(raw: &[u8], dtype: Dtype, threads: usize, out: &mut Vec<u8>) {
    let head = Head::new(stride(raw, usize::from(dtype.size)));
    let tiles: Vec<&[u8]> = raw.chunks(head.tile).collect();
    let run = parallel::run_length(tiles.len(), threads);
    let coded = parallel::map(tiles.len().div_ceil(run), threads, |r| {
        let mut coder = Coder::new();
        let run = &tiles[r * run..tiles.len().min((r + 1) * run)];
        run.iter().map(|tile| coder.code(tile, head.stride).map(<[u8]>::to_vec)).collect::<Vec<_>>()
    });
    // What zstd did not shrink is not copied before it reaches the payload.
    let codes: Vec<&[u8]> = coded.iter().flatten().zip(&tiles).map(|(c, &raw)| c.as_deref().unwrap_or(raw)).collect();

    let header = Header {
        codec: BYTES,
        bound: Bound::Lossless,
        used: 0.0,
        dtype,
        extents: Extents::default(),
        raw_len: raw.len() as u64,
    };
    let mut w = Writer::new(out, header, 3);
    w.section(|o| head.write(o));
    w.section(|o| {
        let mut end = 0;
        for code in &codes {
            end += code.len() as u64;
            o.extend(end.to_le_bytes());
        }
    });
    w.section(|o| codes.iter().for_each(|code| o.extend_from_slice(code)));
    w.seal(threads);
}

/// The element size or 1, whichever makes the sample smaller; unknown sizes try the usual ones. FORMAT.md §8.
fn stride(raw: &[u8], size: usize) -> usize {
    let candidates: &[usize] = match size {
        0 => &[1, 2, 4, 8],
        1 => &[1],
        _ => &[1, size],
    };
    if candidates.len() == 1 {
        return 1;
    }
    let sample = &raw[..raw.len().min(SAMPLE)];
    let mut coder = Coder::new();
    let coded = |s: usize| coder.code(sample, s).map_or(sample.len(), <[u8]>::len);
    let lens: Vec<usize> = candidates.iter().copied().map(coded).collect();
    // The first of equals: candidates rise.
    (0..lens.len()).min_by_key(|&k| lens[k]).map_or(1, |k| candidates[k])
}

/// zstd's working memory and two tile buffers, kept from tile to tile.
struct Coder {
    zstd: Option<Compressor<'static>>,
    shuffled: Vec<u8>,
    code: Vec<u8>,
}

impl Coder {
    fn new() -> Self {
        Coder { zstd: Compressor::new(BYTES_LEVEL).ok(), shuffled: Vec::new(), code: Vec::new() }
    }

    /// The tile shuffled and coded; `None` when that is not smaller.
    fn code(&mut self, tile: &[u8], stride: usize) -> Option<&[u8]> {
        let zstd = self.zstd.as_mut()?;
        self.code.resize(zstd::zstd_safe::compress_bound(tile.len()), 0);
        let len = if stride == 1 {
            zstd.compress_to_buffer(tile, self.code.as_mut_slice())
        } else {
            self.shuffled.resize(tile.len(), 0);
            shuffle(tile, stride, &mut self.shuffled);
            zstd.compress_to_buffer(&self.shuffled, self.code.as_mut_slice())
        };
        Some(&self.code[..len.ok().filter(|&len| len < tile.len())?])
    }
}

/// Decodes a frame into `out`, which has the frame's raw length.
pub(crate) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let tiles = Tiles::open(frame, out.len())?;
    let Head { stride, tile } = tiles.head;
    let run = parallel::run_length(out.len().div_ceil(tile), threads);
    let results = parallel::map_mut(out.chunks_mut(run * tile).collect(), threads, |r, raws| {
        let mut decoder = Decoder::default();
        raws.chunks_mut(tile).zip(r * run..).try_for_each(|(raw, k)| {
            let code = tiles.code(k);
            decoder
                .decode(code, stride, raw)
                .map_err(|why| Error::corrupt("bytes payload", format!("tile {k}, {} bytes: {why}", code.len())))
        })
    });
    results.into_iter().collect()
}

/// zstd's working memory and one tile, kept from tile to tile.
#[derive(Default)]
struct Decoder {
    zstd: Option<Decompressor<'static>>,
    shuffled: Vec<u8>,
}

impl Decoder {
    fn decode(&mut self, code: &[u8], stride: usize, raw: &mut [u8]) -> Result<(), String> {
        if code.len() == raw.len() {
            raw.copy_from_slice(code);
            return Ok(());
        }
        // zstd itself would go on with whatever follows its first frame.
        let first = zstd::zstd_safe::find_frame_compressed_size(code).map_err(zstd::zstd_safe::get_error_name)?;
        if first != code.len() {
            return Err(format!("its zstd frame ends at {first}"));
        }
        if self.zstd.is_none() {
            self.zstd = Some(Decompressor::new().map_err(|e| e.to_string())?);
        }
        let zstd = self.zstd.as_mut().expect("just made");
        // The exact length is the limit: zstd refuses to write more, and less is refused here.
        let mut inflate = |out: &mut [u8]| match zstd.decompress_to_buffer(code, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => Err(format!("zstd gives {n} bytes where {} are needed", out.len())),
            Err(e) => Err(format!("zstd: {e}")),
        };
        if stride == 1 {
            return inflate(raw);
        }
        self.shuffled.resize(raw.len(), 0);
        inflate(&mut self.shuffled)?;
        unshuffle(&self.shuffled, stride, raw);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::BYTES_TILE;

    fn frame(raw: &[u8], size: u8, threads: usize) -> Vec<u8> {
        let mut out = Vec::new();
        encode(raw, Dtype::bytes(size), threads, &mut out);
        out
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
        assert_eq!(tiles.head.stride, 2);
    }

    #[test]
    fn the_stride_of_unknown_elements_is_found() {
        let doubles: Vec<u8> = (0..4000).flat_map(|i| (f64::from(i) * 0.37).sin().to_le_bytes()).collect();
        assert_eq!(stride(&doubles, 0), 8);
        let text = b"the same line again and again; ".repeat(100);
        assert_eq!(stride(&text, 0), 1);
        assert_eq!(stride(&text, 4), 1);
        assert_eq!(stride(&[], 0), 1);
    }

    #[test]
    fn a_damaged_tile_is_named() {
        let raw = mixed(6 * BYTES_TILE);
        let sealed = |change: &dyn Fn(&mut [Vec<u8>; 3])| {
            let bytes = frame(&raw, 2, 1);
            let f = Frame::open(&bytes, 1).unwrap();
            let mut parts = f.sections::<3>().unwrap().map(<[u8]>::to_vec);
            change(&mut parts);
            let header = Header {
                codec: BYTES,
                bound: Bound::Lossless,
                used: 0.0,
                dtype: Dtype::bytes(2),
                extents: Extents::default(),
                raw_len: raw.len() as u64,
            };
            let mut out = Vec::new();
            let mut w = Writer::new(&mut out, header, 3);
            parts.iter().for_each(|s| w.section(|o| o.extend_from_slice(s)));
            w.seal(1);
            back(&out, 2).expect_err("damage").to_string()
        };
        let end = |t: &[u8], k: usize| u64::from_le_bytes(t[8 * k..8 * k + 8].try_into().unwrap());
        let says = |text: String, part: &str| assert!(text.contains(part), "{text}");
        says(sealed(&|[_, t, p]| p[end(t, 3) as usize + 9] ^= 0xFF), "tile 4");
        says(
            sealed(&|[_, t, p]| {
                // A second, empty zstd frame behind the first.
                let empty = zstd::bulk::compress(&[], 3).unwrap();
                p.splice(end(t, 0) as usize..end(t, 0) as usize, empty.iter().copied());
                for k in 0..6 {
                    let moved = end(t, k) + empty.len() as u64;
                    t[8 * k..8 * k + 8].copy_from_slice(&moved.to_le_bytes());
                }
            }),
            "zstd frame ends at",
        );
        says(sealed(&|[_, t, _]| t.truncate(40)), "tile ends has 40 bytes where 48");
        says(sealed(&|[_, t, _]| t[15] = 1), "tile 1 lies at");
        says(sealed(&|[_, t, _]| t.copy_within(0..8, 8)), "tile 1 lies at");
        says(sealed(&|[_, _, p]| p.push(0)), "payload");
        says(sealed(&|[h, _, _]| h[0] = 0), "stride 0");
        says(sealed(&|[h, _, _]| h[1] = 1), "stride 258");
        says(sealed(&|[h, _, _]| h[4] = 1), "tiles of 1048577 bytes");
        says(sealed(&|[h, _, _]| h.truncate(7)), "head has 7 bytes");
    }
}
