// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of every kind come back, by one reader and by two. What streams mean, and which are refused, other
//! decoders say: tests/promises/readers.rs.

use super::super::{Encoder, Histogram, stream_capacity, symbols};
use super::*;
use crate::constants::LORENZO_SYMBOLS;
use crate::stage::symbols::{DIRECT, ESCAPE, JOINT, RUN, class, zigzag};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Runs of zeros on either side of every class's ends.
const LENGTHS: [usize; 36] = [
    0, 1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 18, 23, 24, 25, 31, 32, 33, 47, 48, 63, 64, 95, 96, 127, 128, 255, 256, 257,
    383, 384, 1023, 1024, 3072, 6143, 6144,
];

fn residuals(kind: usize, n: usize) -> Vec<i32> {
    let mut state = 99u32 + kind as u32;
    let mut random = Random(kind as u64);
    let mut run = 0;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let r = (state >> 8) as i32;
            match kind {
                0 => 0,
                1 => i32::from(i % 97 == 0),
                2 => r % 5 - 2,
                3 => r % 40 - 20,
                4 => (state as i32) >> (r & 31),
                5 if i % 300 == 0 => i32::MIN,
                5 => 0,
                // Runs of every class, with -1 or 1 or something else behind.
                6..20 if run > 0 => {
                    run -= 1;
                    0
                }
                6..20 => {
                    run = LENGTHS[random.below(LENGTHS.len() - kind)];
                    [-1, 1, -1, 1, 2, -16, 15, 99999][random.below(kind % 8 + 1)]
                }
                _ => state as i32,
            }
        })
        .collect()
}
const KINDS: usize = 21;

struct Coded {
    lengths: Lengths,
    stream: Vec<u8>,
}

/// Counts of the symbols that a writer takes for residuals.
fn counts(r: &[i32]) -> [u64; LORENZO_SYMBOLS] {
    let mut counts = [0; LORENZO_SYMBOLS];
    let mut zeros = 0;
    for z in r.iter().map(|&r| zigzag(r)) {
        match (z, zeros) {
            (0, _) => zeros += 1,
            (1 | 2, 1..) => counts[JOINT + 2 * class(zeros).0 + z as usize - 1] += 1,
            (_, _) => {
                if zeros > 0 {
                    counts[RUN + class(zeros).0] += 1;
                }
                let e = z.ilog2() as usize;
                counts[if z < 32 {
                    DIRECT - 1 + z as usize
                } else {
                    ESCAPE + 2 * (e - 5) + (z >> (e - 1) & 1) as usize
                }] += 1;
            }
        }
        if z != 0 {
            zeros = 0;
        }
    }
    counts[END] += u64::from(zeros > 0);
    counts
}

/// With the codebook that is best, or with another one.
fn encode(r: &[i32], lengths: Option<Lengths>) -> Coded {
    let (mut bytes, mut escapes) = (vec![0; r.len()], Vec::new());
    symbols(r, &mut bytes, &mut escapes);
    let mut h = Histogram::new();
    h.add(&bytes);
    assert_eq!(h.counts(), counts(r));
    let lengths = lengths.unwrap_or_else(|| codebook::choose_codebook(&h.counts()));
    let mut stream = vec![0xaa; stream_capacity(r.len())];
    let bits = Encoder::new(&lengths).encode(&bytes, &escapes, &mut stream);
    stream.truncate(bits.div_ceil(32) * 4);
    Coded { lengths, stream }
}

/// A codebook of all symbols with those that `of` picks shorter.
fn flat(of: impl Fn(usize) -> bool) -> Lengths {
    let mut lengths = [8; LORENZO_SYMBOLS];
    // 68 symbols of 7 bits and 120 of 8 fill the tree.
    let picked = (0..LORENZO_SYMBOLS).filter(|&s| of(s)).chain((0..LORENZO_SYMBOLS).filter(|&s| !of(s)));
    picked.take(68).for_each(|s| lengths[s] = 7);
    codebook::check(&lengths).unwrap();
    lengths
}

fn decode(c: &Coded, n: usize) -> Option<Vec<i32>> {
    let mut out = buffers().unwrap();
    Decoder::new(&c.lengths).unwrap().decode(&c.stream, c.stream.len() / 4, n, &mut out).ok()?;
    assert!(out[1].iter().all(|&r| r == 0));
    Some(out[0][..n].to_vec())
}

#[test]
fn streams_come_back() {
    let joint = |s| s >= JOINT;
    for kind in 0..KINDS {
        for n in [1, 2, 7, 8, 9, 63, 64, 65, 511, 1000, 6200, 8191, 8192] {
            let r = residuals(kind, n);
            for lengths in [None, Some(flat(joint)), Some(flat(|s| !joint(s)))] {
                let mut c = encode(&r, lengths);
                assert!(decode(&c, n).as_ref() == Some(&r), "kind {kind}, {n}");
                // What stands behind a stream does not matter.
                let words = c.stream.len() / 4;
                c.stream.extend([0xff; 9]);
                let mut out = buffers().unwrap();
                Decoder::new(&c.lengths).unwrap().decode(&c.stream, words, n, &mut out).unwrap();
                assert!(out[0][..n] == r, "kind {kind}, {n}");
            }
        }
    }
}

/// Whether the second reader's part was taken.
fn met(c: &Coded, n: usize) -> bool {
    let d = Decoder::new(&c.lengths).unwrap();
    if d.times == FEW_LOOKUPS { met_by::<FEW_LOOKUPS>(&d, c, n) } else { met_by::<MANY_LOOKUPS>(&d, c, n) }
}

fn met_by<const TIMES: usize>(d: &Decoder, c: &Coded, n: usize) -> bool {
    let (several, single) = (d.several.as_slice().try_into().unwrap(), d.single.as_slice().try_into().unwrap());
    let total = 8 * c.stream.len();
    let tables = Tables::<TIMES> { several, single, total, sure: total - 31 };
    let mut buffers = buffers().unwrap();
    let mut at = [0, total / 2 - MIDDLE_BITS].into_iter();
    let [mut r, mut other] = buffers.each_mut().map(|out| {
        let bit = at.next().unwrap();
        Reader { bytes: &c.stream, bit, out, place: 0, ended: false }
    });
    tables.two(&mut r, &mut other, n).unwrap()
}

#[test]
fn two_readers_meet_where_they_can() {
    for kind in [2, 3, 4, 8, 15] {
        let r = residuals(kind, LORENZO_TILE);
        let c = encode(&r, None);
        let long = Decoder::new(&c.lengths).unwrap().times == FEW_LOOKUPS;
        assert_eq!(long, matches!(kind, 4 | 15), "kind {kind}");
        assert!(met(&c, r.len()) && decode(&c, r.len()).as_ref() == Some(&r), "kind {kind}");
    }
    // Where all codewords have three bits, a reader that is out of step stays so; among what it sees then are zeros to
    // the end and long runs.
    for other in [DIRECT + 7, END, RUN + 33, JOINT + 66, JOINT - 1] {
        let mut lengths = [0; LORENZO_SYMBOLS];
        lengths[other] = 3;
        lengths[DIRECT..DIRECT + 7].fill(3);
        codebook::check(&lengths).unwrap();
        let mut random = Random(other as u64);
        let mut times = [0; 2];
        for n in 7900..8000 {
            let r: Vec<i32> = (0..n).map(|_| unzigzag(1 + random.below(7) as u32)).collect();
            let c = encode(&r, Some(lengths));
            assert!(decode(&c, n).as_ref() == Some(&r), "{other}, {n}");
            let in_step = (4 * c.stream.len() - MIDDLE_BITS).is_multiple_of(3);
            assert!(met(&c, n) == in_step || matches!(other, 34.. if other != DIRECT + 7), "{other}, {n}");
            times[usize::from(in_step)] += 1;
            if other == END && in_step && times[1] < 3 {
                // Zeros to the end, which are nobody's end: whoever meets them, the stream is refused.
                for k in n / 2 - 100..n / 2 + 100 {
                    let mut stream = c.stream.clone();
                    (3 * k..3 * k + 3).for_each(|bit| stream[bit / 8] &= !(1 << (bit % 8)));
                    let c = Coded { stream, ..c };
                    assert!(decode(&c, n).is_none() && decode(&c, n - 1).is_none(), "{k}");
                }
            }
        }
        assert!(times[0] > 20 && times[1] > 20);
    }
}

#[test]
fn zeros_to_the_end_end_a_stream() {
    let mut lengths = [0; LORENZO_SYMBOLS];
    (lengths[END], lengths[RUN + 33], lengths[JOINT + 66]) = (1, 2, 2);
    let decoder = Decoder::new(&lengths).unwrap();
    let run = |bits: u64, words: usize, n: usize| {
        let stream = [&bits.to_le_bytes()[..], &[0; 256]].concat();
        decoder.decode(&stream, words, n, &mut buffers().unwrap()).map_err(|e| e.to_string())
    };
    run(0, 1, 1).unwrap();
    run(0, 1, LORENZO_TILE).unwrap();
    for (bits, words, n) in [(0, 2, 9), (2, 1, 9), (0, 60, 9), (1 << 31, 1, 9)] {
        assert!(run(bits, words, n).unwrap_err().contains("codewords end at bit 1"), "{bits}, {words}");
    }
    // 6144 zeros and more: to the end of the tile, beyond it, and with a residual beyond it.
    run(0b01, 1, 6144).unwrap();
    run(0b01, 1, 6145).unwrap();
    run(0b11, 1, 6145).unwrap();
    for (bits, n) in [(0b01, 6143), (0b0101, 6144), (0b11, 6144), (0b11, 6143), (0x1FFF, 8191)] {
        assert!(run(bits, 1, n).unwrap_err().contains("or more residuals"), "{bits}, {n}");
    }
}
