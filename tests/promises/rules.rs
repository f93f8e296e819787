// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `lorenzo` that break one rule of their document each: every reader refuses them.

use crate::common::frames::{self, Parts};
use crate::common::generate::Random;
use crate::readers::Answers;

/// What breaks one rule: its name, and a change that tells whether the parts had something to break.
type Breakage = (&'static str, fn(&mut Parts, &mut Random) -> bool);

/// A tile whose kind has these bits under this mask.
fn tile(p: &Parts, mask: u8, bits: u8) -> Option<usize> {
    p.kinds.iter().position(|k| k & mask == bits)
}

/// A tile whose outliers are records, or a mask.
fn outliers(p: &Parts, mask: bool) -> Option<usize> {
    (0..p.kinds.len()).find(|&k| p.kinds[k] & 0x40 != 0 && p.has_mask(k) == mask)
}

/// Changes what stands in four bytes of a payload.
fn put(p: &mut Parts, tile: usize, at: usize, value: u32) -> bool {
    p.payloads[tile][at..at + 4].copy_from_slice(&value.to_le_bytes());
    true
}

/// Changes section 2.
fn change(p: &mut Parts, how: impl FnOnce(&mut Vec<u8>)) {
    let mut lengths = frames::lengths(&p.payloads);
    how(&mut lengths);
    p.lengths = Some(lengths);
}

/// Adds to the length of a tile's payload.
fn add(lengths: &mut [u8], tile: usize, units: u16) {
    let length = u16::from_le_bytes([lengths[2 * tile], lengths[2 * tile + 1]]).wrapping_add(units);
    lengths[2 * tile..2 * tile + 2].copy_from_slice(&length.to_le_bytes());
}

const HUFFMAN: [u8; 2] = [0x30, 0x10];
const FIXED: [u8; 2] = [0x30, 0x20];

/// §7 of lorenzo's document, point by point.
const BREAKAGES: &[Breakage] = &[
    ("a kind too few", |p, _| p.kinds.pop().is_some() && p.payloads.pop().is_some()),
    ("a kind too many", |p, _| {
        p.kinds.push(0);
        p.payloads.push(Vec::new());
        true
    }),
    ("lengths that are more than the kinds", |p, _| {
        // One more may stand where zeros fill up.
        p.payloads.extend([Vec::new(), Vec::new()]);
        true
    }),
    ("four bytes more of lengths", |p, _| {
        change(p, |lengths| lengths.extend([0; 4]));
        true
    }),
    ("four bytes fewer of lengths", |p, _| {
        change(p, |lengths| lengths.truncate(lengths.len() - 4));
        true
    }),
    ("a bit behind the lengths", |p, random| {
        let n = p.tiles.len();
        n % 2 == 1 && {
            change(p, |lengths| lengths[2 * n + random.below(2)] |= 1 << random.below(8));
            true
        }
    }),
    ("a start", |p, random| {
        let (n, step) = (p.tiles.len(), [1, u32::MAX, 1 << random.below(32)][random.below(3)]);
        n > 64 && {
            change(p, |lengths| {
                let starts = 4 * n.div_ceil(2);
                let at = starts + 4 * random.below((lengths.len() - starts) / 4);
                let start = u32::from_le_bytes(lengths[at..at + 4].try_into().unwrap()).wrapping_add(step);
                lengths[at..at + 4].copy_from_slice(&start.to_le_bytes());
            });
            true
        }
    }),
    ("a length", |p, random| {
        let (k, step) = (random.below(p.tiles.len()), [1, u16::MAX, 1 << random.below(16)][random.below(3)]);
        change(p, |lengths| add(lengths, k, step));
        true
    }),
    ("a unit of another tile", |p, random| {
        let k = random.below(p.tiles.len());
        let from = p.payloads.iter().rposition(|p| !p.is_empty()).filter(|&from| from > k);
        from.is_some_and(|from| {
            change(p, |lengths| {
                add(lengths, k, 1);
                add(lengths, from, u16::MAX);
            });
            true
        })
    }),
    ("bit 7 of a kind", |p, random| {
        let lorenzo: Vec<usize> = (0..p.kinds.len()).filter(|&k| p.kinds[k] & 8 == 0).collect();
        !lorenzo.is_empty() && {
            p.kinds[lorenzo[random.below(lorenzo.len())]] |= 0x80;
            true
        }
    }),
    ("interpolation without axes", |p, _| tile(p, 0x08, 0x08).map(|k| p.kinds[k] &= 0xF8).is_some()),
    ("interpolation along an axis of one value", |p, random| {
        let axis = random.below(3);
        let flat = |&k: &usize| p.kinds[k] & 8 != 0 && p.extents[k][2 - axis] == 1;
        (0..p.kinds.len()).find(flat).map(|k| p.kinds[k] |= 1 << axis).is_some()
    }),
    ("interpolation in mode 3", |p, _| {
        p.mode = 3;
        p.kinds.iter().any(|k| k & 8 != 0)
    }),
    ("raw with bits 0 to 3", |p, random| {
        tile(p, 0x30, 0x30).map(|k| p.kinds[k] |= 1 + random.below(15) as u8).is_some()
    }),
    ("outliers of a raw tile", |p, _| tile(p, 0x30, 0x30).map(|k| p.kinds[k] |= 0x40).is_some()),
    ("finer steps of a raw tile", |p, _| {
        let raw = (0..p.kinds.len()).find(|&k| p.kinds[k] & 0x30 == 0x30 && p.extents[k][2] > 1);
        raw.map(|k| p.kinds[k] |= 0x89).is_some()
    }),
    ("a long raw tile", |p, _| tile(p, 0x30, 0x30).map(|k| p.payloads[k].extend([0; 4])).is_some()),
    ("a short raw tile", |p, _| {
        tile(p, 0x30, 0x30)
            .map(|k| {
                let short = p.payloads[k].len() - 4;
                p.payloads[k].truncate(short);
            })
            .is_some()
    }),
    ("an empty tile with a payload", |p, _| tile(p, 0x30, 0).map(|k| p.payloads[k].extend([0; 4])).is_some()),
    ("189 symbols", |p, _| {
        p.head[0] = 189;
        p.head.resize(96, 0);
        p.head[95] = 1;
        true
    }),
    ("a symbol too many", |p, _| {
        p.head[0] += 1;
        true
    }),
    ("a head too long", |p, _| {
        p.head.push(0);
        true
    }),
    ("a last symbol that is not in use", |p, _| {
        p.head[0] += 2;
        p.head.push(0);
        p.head[0] <= 188
    }),
    ("a nibble after the last length", |p, random| {
        *p.head.last_mut().unwrap() |= (1 + random.below(15) as u8) << 4;
        p.head[0] % 2 == 1
    }),
    ("a codeword of 12 bits", |p, random| {
        let last = p.head[0] as usize - 1;
        let at = 1 + random.below(last + 1) / 2;
        p.head[at] = (p.head[at] & 0xF0) | (12 + random.below(4) as u8);
        true
    }),
    ("an over-full codebook", |p, _| {
        let at = p.head[1..].iter().position(|b| b & 15 == 0).filter(|k| 2 * k + 1 < p.head[0] as usize);
        at.map(|k| p.head[1 + k] |= 1).is_some()
    }),
    ("an under-full codebook", |p, _| {
        let last = p.head.len() - 1;
        let at = p.head[1..last].iter().position(|b| b & 15 != 0);
        at.map(|k| p.head[1 + k] &= 0xF0).is_some()
    }),
    ("no codebook", |p, _| {
        p.head = vec![0];
        tile(p, 0x30, 0x10).is_some()
    }),
    ("no outlier", |p, _| tile(p, 0x40, 0x40).is_some_and(|k| put(p, k, 0, 0))),
    ("more outliers than values", |p, random| {
        tile(p, 0x40, 0x40).is_some_and(|k| {
            let count = (p.tiles[k] + 1 + random.below(3)) as u32;
            let need = 4 + count as usize * (4 + p.size);
            let len = p.payloads[k].len().max(need);
            p.payloads[k].resize(len, 0);
            put(p, k, 0, count)
        })
    }),
    ("more outliers than the payload holds", |p, _| {
        tile(p, 0x70, 0x40).is_some_and(|k| {
            p.payloads[k].truncate(4);
            true
        })
    }),
    ("an outlier beyond the tile", |p, random| {
        outliers(p, false).is_some_and(|k| {
            let last = (p.outliers(k) - 4) / (4 + p.size);
            let places = random.below(p.tiles[k]) as u32;
            put(p, k, 4 * last, (p.tiles[k] as u32 - places) | places << 16)
        })
    }),
    ("outliers that overlap", |p, _| {
        outliers(p, false).is_some_and(|k| {
            let first = u32::from_le_bytes(p.payloads[k][4..8].try_into().unwrap());
            p.outliers(k) > 4 + 4 + p.size && put(p, k, 8, (first & 0xFFFF) + (first >> 16))
        })
    }),
    ("a mask of no runs", |p, _| outliers(p, true).is_some_and(|k| put(p, k, 0, 1 << 31))),
    ("a mask of more runs than values", |p, random| {
        outliers(p, true).is_some_and(|k| {
            let runs = p.tiles[k] + 1 + random.below(3);
            let mine = 4 + p.size..p.outliers(k);
            p.payloads[k].splice(mine, vec![0; 4 * runs.div_ceil(2)]);
            put(p, k, 0, 1 << 31 | runs as u32)
        })
    }),
    ("runs of a mask beyond the tile", |p, random| {
        outliers(p, true).is_some_and(|k| {
            let runs = p.tiles[k] / 255 + 1;
            let mut bytes = vec![0; 4 * runs.div_ceil(2)];
            (0..runs).for_each(|run| bytes[2 * run + random.below(2)] = 255);
            let mine = 4 + p.size..p.outliers(k);
            p.payloads[k].splice(mine, bytes);
            p.tiles[k] >= runs && put(p, k, 0, 1 << 31 | runs as u32)
        })
    }),
    ("a byte behind a mask's runs", |p, random| {
        let odd = |&k: &usize| p.kinds[k] & 0x40 != 0 && p.has_mask(k) && p.payloads[k][0] & 1 == 1;
        (0..p.kinds.len()).find(odd).is_some_and(|k| {
            let end = p.outliers(k);
            p.payloads[k][end - 1 - random.below(2)] = 1 + random.below(255) as u8;
            true
        })
    }),
    ("differences of a mask in one row", |p, _| {
        let row = |&k: &usize| p.kinds[k] & 0x40 != 0 && p.has_mask(k) && p.extents[k][..2] == [1, 1];
        (0..p.kinds.len()).find(row).map(|k| p.payloads[k][3] |= 0x40).is_some()
    }),
    ("residuals of 0 bits", |p, _| {
        tile(p, FIXED[0], FIXED[1]).is_some_and(|k| {
            let at = p.outliers(k);
            p.payloads[k].truncate(at + 4);
            put(p, k, at, 0)
        })
    }),
    ("residuals of 33 bits", |p, _| {
        tile(p, FIXED[0], FIXED[1]).is_some_and(|k| {
            let at = p.outliers(k);
            p.payloads[k].resize(at + 4 + 4 * (33 * p.tiles[k]).div_ceil(32), 0);
            put(p, k, at, 33)
        })
    }),
    ("a word too many of fixed width", |p, _| {
        tile(p, FIXED[0], FIXED[1]).map(|k| p.payloads[k].extend([0; 4])).is_some()
    }),
    ("no width", |p, _| {
        tile(p, FIXED[0], FIXED[1]).is_some_and(|k| {
            let at = p.outliers(k);
            p.payloads[k].truncate(at);
            true
        })
    }),
    ("filling of fixed width", |p, random| {
        tile(p, FIXED[0], FIXED[1]).is_some_and(|k| {
            let at = p.outliers(k);
            let used = p.payloads[k][at] as usize * p.tiles[k];
            let free = used.next_multiple_of(32) - used;
            free > 0 && {
                let bit = used + random.below(free);
                p.payloads[k][at + 4 + bit / 8] |= 1 << (bit % 8);
                true
            }
        })
    }),
    ("no stream", |p, _| {
        tile(p, HUFFMAN[0], HUFFMAN[1]).is_some_and(|k| {
            let at = p.outliers(k);
            p.payloads[k].truncate(at);
            true
        })
    }),
    ("a word too many behind a stream", |p, _| {
        tile(p, HUFFMAN[0], HUFFMAN[1]).map(|k| p.payloads[k].extend([0; 4])).is_some()
    }),
    ("a stream that ends too early", |p, _| {
        tile(p, HUFFMAN[0], HUFFMAN[1]).is_some_and(|k| {
            let short = p.payloads[k].len() - 4;
            p.payloads[k].truncate(short);
            true
        })
    }),
    ("a stream of another tile", |p, _| {
        // Residuals of another number of places, without a symbol for zeros up to the end.
        let counted = p.head[1] & 15 == 0;
        tile(p, HUFFMAN[0], HUFFMAN[1]).filter(|_| counted).is_some_and(|k| {
            let other = p.tiles.iter().zip(&p.kinds).position(|(&n, kind)| n != p.tiles[k] && kind & 0x70 == 0x10);
            let mine = p.outliers(k);
            other.is_some_and(|o| {
                let bytes = p.payloads[o].clone();
                p.payloads[k].truncate(mine);
                p.payloads[k].extend(bytes);
                true
            })
        })
    }),
    ("a negative bound", |p, _| {
        p.bound = -p.bound;
        p.bound.is_sign_negative() && p.bound != 0.0
    }),
    ("an infinite bound", |p, _| {
        p.bound = f64::INFINITY;
        true
    }),
    ("the mode of lossless frames", |p, _| {
        p.mode = 9;
        true
    }),
    ("other extents", |p, random| {
        (!p.dims.is_empty()).then(|| random.below(p.dims.len())).is_some_and(|k| {
            // Another number of tiles, or tiles of another length.
            p.dims[k] += 8192;
            p.raw_len() < 4 << 20
        })
    }),
];

#[test]
fn every_broken_rule_is_refused() {
    let mut answers = Answers::new();
    for (b, (name, broken)) in BREAKAGES.iter().enumerate() {
        let mut random = Random(b as u64);
        let mut seen = 0;
        for _ in 0..2000 {
            let mut parts = frames::lorenzo(&mut random);
            if !broken(&mut parts, &mut random) {
                continue;
            }
            let (frame, n) = (parts.frame(), parts.raw_len());
            assert!(answers.of(name, &frame, n).is_err(), "{name}: it is read; kinds {:x?}", parts.kinds);
            seen += 1;
            if seen == 20 {
                break;
            }
        }
        assert_eq!(seen, 20, "{name}: the frames have too little to break");
    }
    answers.keep("broken");
}
