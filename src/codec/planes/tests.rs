// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec by whole chunks: bounds, exact values, the same value whatever stands around it, readers by the book, damage.

use super::by_the_book;
use crate::constants::PLANES_TILE;
use crate::engine::Engine;
use crate::frame::{self, Frame, Header, Writer};
use crate::params::{Bound, Class, Codec, Dtype, Extents, Mode, Params, Request};
use crate::scalar::within;
use crate::{CodecId, memory};

const LEVELS: [Codec; 2] = [Codec::Planes, Codec::PlanesDense];

/// A small generator of numbers that look random.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let x = self.0 ^ self.0 >> 32;
        x.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ x >> 29
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a chunk is filled with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Smooth,
    Noise,
    Constant,
    Steps,
    /// Smooth, but for some values each of which is hostile in a way of its own.
    Hostile,
    /// Smooth, and large parts of fill.
    Masked,
    /// Far apart: quanta do not fit 13 bits.
    Wide,
    /// Bits of any kind.
    Bits,
}

const KINDS: [Kind; 8] =
    [Kind::Smooth, Kind::Noise, Kind::Constant, Kind::Steps, Kind::Hostile, Kind::Masked, Kind::Wide, Kind::Bits];

const FILL: f64 = 1e20;

fn value(kind: Kind, i: usize, row: usize, random: &mut Random, size: usize) -> f64 {
    let (x, y) = ((i % row) as f64, (i / row) as f64);
    let smooth = (0.05 * x).sin() + (0.031 * y).cos() * 2.0;
    match kind {
        Kind::Smooth => smooth,
        Kind::Noise => random.unit(),
        Kind::Constant => 273.15,
        Kind::Steps => (i / 1000) as f64,
        Kind::Hostile => match random.bits() % 200 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -0.0,
            4 => {
                if size == 4 {
                    f32::MAX.into()
                } else {
                    f64::MAX
                }
            }
            5 => {
                if size == 4 {
                    1e-42
                } else {
                    5e-324
                }
            }
            6 => 1e6,
            _ => smooth,
        },
        Kind::Masked => {
            if (x * 0.02).sin() + (y * 0.013).cos() > 0.3 {
                FILL
            } else {
                smooth
            }
        }
        Kind::Wide => random.unit() * 100.0 + smooth,
        Kind::Bits => {
            let bits = random.bits();
            if size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
        }
    }
}

fn size(dtype: Dtype) -> usize {
    dtype.size.into()
}

/// The bits of every value.
fn all_bits(raw: &[u8], dtype: Dtype) -> Vec<u64> {
    let bits = |b: &[u8]| {
        let mut all = [0; 8];
        all[..b.len()].copy_from_slice(b);
        if dtype.big_endian {
            all[..b.len()].reverse();
        }
        u64::from_le_bytes(all)
    };
    raw.chunks_exact(size(dtype)).map(bits).collect()
}

fn number(bits: u64, dtype: Dtype) -> f64 {
    if dtype.size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

fn bytes_of(x: f64, dtype: Dtype) -> Vec<u8> {
    let mut b = if dtype.size == 4 { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() };
    if dtype.big_endian {
        b.reverse();
    }
    b
}

fn chunk(kind: Kind, dims: &[u64], dtype: Dtype) -> Vec<u8> {
    let n: u64 = dims.iter().product();
    let row = dims.last().copied().unwrap_or(1).min(512) as usize;
    let mut random = Random(n + kind as u64);
    (0..n as usize).flat_map(|i| bytes_of(value(kind, i, row, &mut random, size(dtype)), dtype)).collect()
}

fn params(codec: Codec, bound: Bound, dtype: Dtype, dims: &[u64], fill: Option<f64>) -> Params {
    let mut params = Params::new(Request { codec, bound }, dtype, dims).unwrap();
    let fill = fill.map(|fill| bytes_of(fill, Dtype { big_endian: false, ..dtype }));
    params.fill = fill.map(|bytes| all_bits(&bytes, Dtype { big_endian: false, ..dtype })[0]);
    params
}

fn decode(frame: &[u8], len: usize) -> Vec<u8> {
    Engine::with_threads(1).decode(frame, len as u64).unwrap()
}

/// Encodes and decodes a chunk, with all that must hold; the frame and what comes back.
fn round_trip(params: &Params, raw: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let frame = Engine::with_threads(1).encode(params, raw);
    assert!(frame.len() <= raw.len() + frame::STORED_HEADER, "{params:?}");
    let back = decode(&frame, raw.len());
    let header = Frame::open(&frame, 1).unwrap().header;
    for threads in [2, 5] {
        let engine = Engine::with_threads(threads);
        assert!(engine.encode(params, raw) == frame, "{threads} threads: {params:?}");
        assert!(engine.decode(&frame, raw.len() as u64).unwrap() == back, "{threads} threads: {params:?}");
    }
    let stored = header.codec == CodecId::STORED;
    assert!(stored || header.codec == CodecId::PLANES);
    assert!(stored || by_the_book::decode(&frame).unwrap() == back, "by the book: {params:?}");
    // What is stored under an absolute bound is what a frame of the codec would give back.
    let used = match params.request.bound {
        Bound::Absolute(bound) => bound,
        _ => header.used,
    };
    if used == 0.0 {
        assert!(back == raw, "{params:?}");
        return (frame, back);
    }
    let fill = params.fill.filter(|&bits| bits != 0);
    let pairs = all_bits(raw, params.dtype).into_iter().zip(all_bits(&back, params.dtype));
    for (k, (x, y)) in pairs.enumerate() {
        let (a, b) = (number(x, params.dtype), number(y, params.dtype));
        let exact = !a.is_finite() || fill == Some(x) || fill == Some(y);
        let holds = if exact { x == y } else { x == y || within(a, b, used) };
        assert!(holds, "value {k}: {a:e} ({x:#x}) came back as {b:e} ({y:#x}): {params:?}");
    }
    (frame, back)
}

const SHAPES: [&[u64]; 20] = [
    &[1],
    &[2],
    &[4095],
    &[4096],
    &[4097],
    &[9000],
    &[128, 32],
    &[130, 70],
    &[200, 33],
    &[8, 16, 32],
    &[9, 17, 40],
    &[17, 18, 70],
    &[2, 5, 20, 33],
    &[3, 700, 3],
    // Components.
    &[1, 2],
    &[3001, 3],
    &[700, 15],
    &[64, 66, 3],
    &[5, 37, 41, 2],
    &[2, 9, 17, 33, 4],
];

fn dtypes() -> [Dtype; 4] {
    let big = |d: Dtype| Dtype { big_endian: true, ..d };
    [Dtype::F32, Dtype::F64, big(Dtype::F32), big(Dtype::F64)]
}

#[test]
fn every_value_comes_back_within_the_bound() {
    let mut classes = [0; 4];
    for dims in SHAPES {
        for kind in KINDS {
            for (k, dtype) in dtypes().into_iter().enumerate() {
                let raw = chunk(kind, dims, dtype);
                for bound in [Bound::Absolute(1e-3), Bound::Relative(1e-4), Bound::Absolute(0.3), Bound::Psnr(60.0)] {
                    for codec in LEVELS {
                        let fill = (kind == Kind::Masked && k % 2 == 0).then_some(FILL);
                        let (frame, _) = round_trip(&params(codec, bound, dtype, dims, fill), &raw);
                        by_the_book::heads(&frame).into_iter().for_each(|head| classes[head as usize & 3] += 1);
                    }
                }
            }
        }
    }
    assert!(classes.iter().all(|&n| n > 100), "tiles by class: {classes:?}");
}

#[test]
fn bounds_of_every_size_are_kept() {
    for dtype in [Dtype::F32, Dtype::F64] {
        for kind in [Kind::Smooth, Kind::Hostile, Kind::Bits] {
            let raw = chunk(kind, &[5000], dtype);
            for e in (-320..=308).step_by(if kind == Kind::Smooth { 4 } else { 37 }) {
                let bound = Bound::Absolute(format!("1.7e{e}").parse::<f64>().unwrap().max(5e-324));
                round_trip(&params(Codec::Planes, bound, dtype, &[5000], None), &raw);
            }
        }
    }
}

#[test]
fn lossless_brings_every_bit_back() {
    let integer = |size, signed| Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) };
    let types =
        [Dtype::F32, Dtype::F64, integer(4, true), integer(8, false), Dtype { big_endian: true, ..integer(4, false) }];
    for dims in SHAPES {
        for kind in KINDS {
            for dtype in types {
                let mut raw = chunk(kind, dims, if dtype.size == 4 { Dtype::F32 } else { Dtype::F64 });
                if dtype.class == Class::Integer && kind != Kind::Bits {
                    let values = all_bits(&raw, integer(dtype.size, true)).into_iter().enumerate();
                    raw = values
                        .flat_map(|(i, bits)| {
                            let mut b = ((bits >> 12 & 0xFFF) + i as u64 * 3).to_le_bytes()[..size(dtype)].to_vec();
                            if dtype.big_endian {
                                b.reverse();
                            }
                            b
                        })
                        .collect();
                }
                let fill = (kind == Kind::Masked).then_some(FILL);
                let frames = LEVELS.map(|codec| round_trip(&params(codec, Bound::Lossless, dtype, dims, fill), &raw).0);
                assert!(frames[0] == frames[1], "both levels write the same");
            }
        }
    }
}

#[test]
fn what_was_stored_once_never_moves_again() {
    for dtype in [Dtype::F32, Dtype::F64] {
        for kind in KINDS {
            let raw = chunk(kind, &[9, 17, 40], dtype);
            let fill = (kind == Kind::Masked).then_some(FILL);
            for bound in [1e-5, 1e-3, 0.3] {
                let bound = Bound::Absolute(bound);
                let (_, once) = round_trip(&params(Codec::Planes, bound, dtype, &[9, 17, 40], fill), &raw);
                for codec in LEVELS {
                    for dims in [&[9, 17, 40][..], &[153, 40], &[6120], &[40, 153]] {
                        let params = params(codec, bound, dtype, dims, fill);
                        assert!(round_trip(&params, &raw).1 == once, "{kind:?} {params:?}: another shape");
                        assert!(round_trip(&params, &once).1 == once, "{kind:?} {params:?}: twice");
                    }
                }
            }
        }
    }
}

/// A chunk of one tile in mode 9: its head's three words and the number of its exceptions.
fn head_of(raw: &[u8], dtype: Dtype, fill: Option<f64>) -> ([u32; 3], u32) {
    let params = params(Codec::Planes, Bound::Lossless, dtype, &[raw.len() as u64 / size(dtype) as u64], fill);
    let frame = round_trip(&params, raw).0;
    let [_, payload] = Frame::open(&frame, 1).unwrap().sections().unwrap();
    let word = |k: usize| u32::from_le_bytes(*payload[4 * k..].first_chunk().unwrap());
    assert_eq!(word(0) & 3, 2, "class");
    let masks = if word(2) >> 24 & 1 == 1 { word(3 + size(dtype) / 4) >> 8 } else { 0 };
    ([word(0), word(1), word(2)], masks)
}

#[test]
fn bits_that_are_unlike_the_others_are_exceptions() {
    const UNIFORM: u32 = 3;
    const EACH: u32 = 1;
    let of = |dtype: Dtype, n: usize, fill: Option<f64>, value: &dyn Fn(usize) -> f64| {
        let raw: Vec<u8> = (0..n).flat_map(|i| bytes_of(value(i), dtype)).collect();
        let (head, count) = head_of(&raw, dtype, fill);
        (head[2] >> 24 & 3, count)
    };
    let smooth = |i: usize| f64::from((0.01 * i as f64).sin() as f32);
    let full = |i: usize| (0.01 * i as f64).sin();
    for dtype in dtypes() {
        let wide = dtype.size == 8;
        let fills = |step: usize| move |i: usize| if i.is_multiple_of(step) { FILL } else { smooth(i) };
        // The fill value where the user defined one; as f64 it is not an f32.
        let undefined = if wide { (UNIFORM, 1366) } else { (0, 0) };
        assert_eq!(of(dtype, 4096, Some(FILL), &fills(3)), (UNIFORM, 1366));
        assert_eq!(of(dtype, 4096, None, &fills(3)), undefined);
        assert_eq!(of(dtype, 4090, Some(FILL), &fills(20)), (UNIFORM, 205));
        // Every value: none.
        assert_eq!(of(dtype, 4000, Some(FILL), &fills(1)).0, 0);
        // Of several kinds, at most 256; where there are more, fill alone.
        let mixed =
            |step: usize| move |i: usize| [f64::NAN, f64::INFINITY, -f64::INFINITY, FILL, smooth(i)][(i % step).min(4)];
        assert_eq!(of(dtype, 4096, Some(FILL), &mixed(64)), (EACH, 256));
        assert_eq!(of(dtype, 4096, Some(FILL), &mixed(63)).0, 0);
        assert_eq!(of(dtype, 4000, Some(FILL), &mixed(70)).1, 232);
        // Integers beside NaN are integers.
        let integers = |i: usize| {
            if i.is_multiple_of(5) { f64::NAN } else { 1000.0 + (i as f64 * 0.1).sin().mul_add(900.0, 0.5).round() }
        };
        assert_eq!(of(dtype, 4096, None, &integers), (UNIFORM, 820));
        let raw: Vec<u8> = (0..4096).flat_map(|i| bytes_of(integers(i), dtype)).collect();
        assert_eq!(head_of(&raw, dtype, None).0[0] >> 4 & 1, 1, "map");
        assert_eq!(
            of(dtype, 3000, None, &|i| if i < 700 { f64::NAN } else { integers(i - i % 5 + 1) }),
            (UNIFORM, 700)
        );
        if !wide {
            continue;
        }
        // A few full doubles; with more of them, NaN alone; with both too often, none.
        assert_eq!(of(dtype, 4096, None, &|i| if i % 50 == 1 { full(i) } else { smooth(i) }), (EACH, 82));
        let both = |often: usize| move |i: usize| if i.is_multiple_of(often) { f64::NAN } else { full(i) };
        assert_eq!(of(dtype, 4096, None, &both(9)), (UNIFORM, 456));
        assert_eq!(of(dtype, 4096, None, &|i| if i % 1000 == 1 { f64::INFINITY } else { both(9)(i) }).0, 0);
        assert_eq!(of(dtype, 4096, None, &full), (0, 0));
    }
    // Of integers, the fill value alone.
    let integers = Dtype { class: Class::Integer, ..Dtype::F32 };
    let fill = f64::from(f32::from_bits(77));
    let value = |i: usize| if i.is_multiple_of(4) { 77 } else { 0x7F80_0000 + i as u32 };
    let raw: Vec<u8> = (0..4096).flat_map(|i| value(i).to_le_bytes()).collect();
    let (head, count) = head_of(&raw, integers, Some(fill));
    assert_eq!((head[2] >> 24, count), (UNIFORM, 1024));
    assert_eq!(head_of(&raw, integers, None).1, 0);
}

#[test]
fn no_value_becomes_the_fill_value() {
    for dtype in dtypes() {
        for (bound, fill) in [(0.1, -0.0), (0.5, 249.0234375), (0.5, -249.0234375), (1e-3, 1.9921875e-3)] {
            // The fill value itself, its neighbours, and values up to some steps away.
            let value = |i: usize| match i % 8 {
                0 => fill,
                1 => -fill,
                2 => fill + bound * (i % 1000) as f64 / 250.0,
                3 => fill - bound * (i % 1000) as f64 / 250.0,
                4 => fill * (1.0 + f64::EPSILON),
                5 => fill + 1e-30,
                6 => fill - bound / 2.0,
                _ => fill + 20.0 * bound * (0.01 * i as f64).sin(),
            };
            let raw: Vec<u8> = (0..5000).flat_map(|i| bytes_of(value(i), dtype)).collect();
            for codec in LEVELS {
                let params = params(codec, Bound::Absolute(bound), dtype, &[5000], Some(fill));
                let (frame, back) = round_trip(&params, &raw);
                assert_eq!(frame[9], CodecId::PLANES.number());
                assert!(round_trip(&params, &back).1 == back);
            }
        }
    }
}

#[test]
fn a_fill_value_of_zero_is_none() {
    let value = |i: usize| if i % 300 < 40 { 0.0 } else { (0.01 * i as f64).sin() };
    for dtype in dtypes() {
        let raw: Vec<u8> = (0..5000).flat_map(|i| bytes_of(value(i), dtype)).collect();
        for bound in [Bound::Lossless, Bound::Absolute(1e-2)] {
            let frame = |fill| round_trip(&params(Codec::Planes, bound, dtype, &[5000], fill), &raw).0;
            assert!(frame(Some(0.0)) == frame(None), "{bound:?} {dtype:?}");
        }
    }
}

#[test]
fn components_are_coded_apart() {
    // Of three components that have nothing to do with each other, each is smooth.
    let value = |i: usize| [10.0 + (0.001 * i as f64).sin(), -500.0 + 0.01 * i as f64, 3e6][i % 3];
    for bound in [Bound::Lossless, Bound::Absolute(1e-3)] {
        for dims in [&[12_000, 3][..], &[100, 120, 3], &[10, 30, 40, 3], &[2, 5, 30, 40, 3]] {
            let raw: Vec<u8> = (0..36_000).flat_map(|i| bytes_of(value(i), Dtype::F32)).collect();
            let len =
                |dims: &[u64]| round_trip(&params(Codec::PlanesDense, bound, Dtype::F32, dims, None), &raw).0.len();
            assert!(2 * len(dims) < len(&[36_000]), "{bound:?} {dims:?}: {} of {}", len(dims), len(&[36_000]));
        }
    }
}

#[test]
fn a_constant_tile_takes_one_word() {
    for (dims, x) in [(&[4096][..], 0.0), (&[64, 64, 64], 0.0)] {
        let raw = bytes_of(x, Dtype::F32).repeat(dims.iter().product::<u64>() as usize);
        let params = params(Codec::PlanesDense, Bound::Absolute(1e-3), Dtype::F32, dims, None);
        let frame = round_trip(&params, &raw).0;
        let tiles = raw.len() / 4 / PLANES_TILE;
        assert_eq!(Frame::open(&frame, 1).unwrap().section_lens(), [4 * tiles, 4 * tiles]);
    }
}

#[test]
fn damage_is_refused_or_harmless() {
    for (kind, dims, dtype, codec, bound) in [
        (Kind::Smooth, &[200][..], Dtype::F32, Codec::Planes, Bound::Absolute(0.1)),
        (Kind::Hostile, &[700], Dtype::F32, Codec::PlanesDense, Bound::Absolute(0.1)),
        (Kind::Hostile, &[40, 33], Dtype::F64, Codec::Planes, Bound::Absolute(0.1)),
        (Kind::Steps, &[1500], Dtype::F64, Codec::Planes, Bound::Lossless),
        (Kind::Wide, &[3500], Dtype::F32, Codec::PlanesDense, Bound::Absolute(2e-3)),
        (Kind::Smooth, &[300], Dtype::F32, Codec::Planes, Bound::Lossless),
        (Kind::Hostile, &[20, 33], Dtype::F64, Codec::Planes, Bound::Lossless),
        (Kind::Wide, &[900], Dtype::F64, Codec::PlanesDense, Bound::Absolute(1e-12)),
        (Kind::Masked, &[3000], Dtype::F32, Codec::Planes, Bound::Lossless),
        (Kind::Hostile, &[230, 3], Dtype::F32, Codec::Planes, Bound::Lossless),
    ] {
        let raw = chunk(kind, dims, dtype);
        let fill = (kind == Kind::Masked).then_some(FILL);
        let mut frame = Engine::with_threads(1).encode(&params(codec, bound, dtype, dims, fill), &raw);
        assert_eq!(frame[9], CodecId::PLANES.number(), "{kind:?} {dims:?}");
        for at in (8..frame.len()).step_by(1 + frame.len() / 1500) {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 0xFF].into_iter().step_by(if frame.len() > 1500 { 3 } else { 1 })
            {
                let before = frame[at];
                frame[at] ^= flip;
                let mut sealed = frame.clone();
                frame::set_checksum(&mut sealed, 1);
                if let Ok(back) = Engine::with_threads(1).decode(&sealed, raw.len() as u64)
                    && sealed[9] == CodecId::PLANES.number()
                {
                    assert!(by_the_book::decode(&sealed).unwrap() == back, "byte {at} xor {flip}");
                }
                frame[at] = before;
            }
        }
    }
}

/// A frame of one tile with these words.
fn frame_of(words: &[u32], dims: &[u64], dtype: Dtype, mode: Mode, used: f64) -> Vec<u8> {
    let mut out = Vec::new();
    let extents = Extents::new(dims).unwrap();
    let raw_len = extents.count().unwrap() * u64::from(dtype.size);
    let mut w =
        Writer::new(&mut out, Header { codec: CodecId::PLANES, mode, used, dtype, extents, raw_len }, 2).unwrap();
    w.section(|o| memory::append(o, &(words.len() as u32).to_le_bytes())).unwrap();
    w.section(|o| memory::append(o, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())).unwrap();
    w.seal(1);
    out
}

#[test]
fn what_no_writer_makes_is_read_by_the_book() {
    // Words of any kind behind a head that is right: planes in all modes, values that wrap around.
    let mut random = Random(9);
    let mut read = [0; 3];
    for round in 0..4000 {
        let class = round % 3;
        let exceptions = if round % 5 == 0 { 1 << 9 | (random.bits() as u32 & 1) << 10 } else { 0 };
        let size = if round % 2 == 0 { 4 } else { 8 };
        let (dtype, wide) = if round % 2 == 0 { (Dtype::F32, 1) } else { (Dtype::F64, 2) };
        let dims: &[u64] = [&[4096][..], &[1000], &[128, 32], &[100, 30], &[8, 16, 32], &[7, 15, 31]][round / 3 % 6];
        let rank = dims.len();
        let mut slices: Vec<usize> = (0..4).map(|_| if class == 0 { random.bits() as usize % 2 } else { 0 }).collect();
        let mut head = class as u32 | (random.bits() as u32 % (rank as u32 + 1)) << 2;
        let (mut lengths, mut class_modes) = (vec![], 0);
        if class == 0 {
            head |= exceptions;
            head |= slices.iter().enumerate().map(|(k, &s)| (s as u32) << (4 + k)).sum::<u32>();
            head |= (random.bits() as u32) << 11;
            slices.iter_mut().for_each(|s| *s += 1);
        } else {
            let top = random.bits() as u32 % (8 * size + 1);
            let zeros = random.bits() as u32 % (8 * size - top + 1).min(8 * size);
            class_modes = random.bits() as u32 & [0xFF_FFFF, 0, 0x5A_5A5A][random.bits() as usize % 3];
            let map = u32::from(class == 2 && random.bits().is_multiple_of(3));
            let largest = if size == 4 { 127 } else { 1023 };
            let e = random.bits() as i32 % largest;
            let least = random.bits() as u32 % if round % 4 == 0 { 64 } else { top.clamp(1, 63) };
            let shape = random.bits() as u32 % 7;
            head |= map << 4 | shape << 5 | class_modes << 8;
            lengths.push(least | top << 6 | zeros << 13 | if map == 1 { (e as u32) << 20 } else { 0 });
            lengths.push(random.bits() as u32 & 0xFF_FFFF | exceptions >> 9 << 24);
        }
        let mut words = vec![head];
        words.extend(&lengths);
        words.extend((0..if class == 0 { 0 } else { wide }).map(|_| random.bits() as u32));
        let total: usize = slices.iter().sum();
        // Of class 0, few planes and low ones: quanta have a range.
        let quiet = [0xFFFF, 0xFF, 0xF, 0][random.bits() as usize % 4];
        let mode = |random: &mut Random| match random.bits() % 3 {
            0 => 0x5555 & quiet,
            _ => random.bits() as u16 & quiet,
        };
        let modes: Vec<u16> = (0..total).map(|_| mode(&mut random)).collect();
        let mask_modes = if exceptions > 0 { random.bits() as u8 } else { 0 };
        // Parts in order of coding: mode of each plane, then of its block's mask.
        let mut planes = Vec::new();
        let mut masks = Vec::new();
        let mut first = 0;
        for (k, &s) in slices.iter().enumerate() {
            let of = |p: usize| u32::from(modes[first + p / 8]) >> (2 * (p % 8)) & 3;
            if s > 0 {
                planes.extend((0..8 * s - 1).rev().chain([8 * s - 1]).map(of));
            } else {
                planes.extend((0..3).rev().map(|p| class_modes >> (6 * k + 2 * p) & 3));
            }
            first += s;
            if exceptions > 0 {
                masks.push(planes.len());
                planes.push(u32::from(mask_modes) >> (2 * k) & 3);
            }
        }
        let (mut ballots, mut nibbles, mut body, mut bytes) = (vec![], vec![], vec![], vec![]);
        let mut count = 0;
        let mut contents = vec![[0u32; 32]; planes.len()];
        for (at, &mode) in planes.iter().enumerate() {
            let mask = masks.contains(&at);
            let ballot = random.bits() as u32 & random.bits() as u32;
            match mode {
                1 => contents[at].iter_mut().for_each(|w| *w = random.bits() as u32),
                2 => (0..32).filter(|l| ballot >> l & 1 == 1).for_each(|l| contents[at][l] = random.bits() as u32),
                3 => {
                    for l in (0..32).filter(|l| ballot >> l & 1 == 1) {
                        let nibble = random.bits() as u8 & 15;
                        nibbles.push(nibble);
                        for byte in (0..4).filter(|byte| nibble >> byte & 1 == 1) {
                            bytes.push(random.bits() as u8);
                            contents[at][l] |= u32::from(*bytes.last().unwrap()) << (8 * byte);
                        }
                    }
                }
                _ => {}
            }
            if mode > 1 {
                ballots.push(ballot);
            }
            match mode {
                1 => body.extend(contents[at]),
                2 => body.extend((0..32).filter(|l| ballot >> l & 1 == 1).map(|l| contents[at][l])),
                _ => {}
            }
            if mask {
                count += contents[at].iter().map(|w| w.count_ones()).sum::<u32>();
            }
        }
        if exceptions > 0 {
            words.push(u32::from(mask_modes) | count << 8);
        }
        let pairs = modes.chunks(2).map(|m| u32::from(m[0]) | u32::from(m.get(1).copied().unwrap_or(0)) << 16);
        words.extend(pairs);
        words.extend(ballots);
        words.extend(nibbles.chunks(8).map(|n| n.iter().rev().fold(0, |w, &n| w << 4 | u32::from(n))));
        words.extend(body);
        words.extend(bytes.chunks(4).map(|b| b.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b))));
        // Fields of each block, by the widths that its numbers have.
        for block in 0..if class > 0 { 4 } else { 0 } {
            let first = block * (3 + usize::from(exceptions > 0));
            let mut bits = 0;
            for (lane, bit) in (0..32).flat_map(|lane| (0..32).map(move |bit| (lane, bit))) {
                let number: u32 = (0..3).map(|p| (contents[first + 2 - p][lane] >> bit & 1) << p).sum();
                bits += by_the_book::width(&[head, lengths[0], lengths[1]], number) as usize;
            }
            words.extend((0..bits / 32).map(|_| random.bits() as u32));
            if bits % 32 != 0 {
                words.push(random.bits() as u32 & ((1 << (bits % 32)) - 1));
            }
        }
        let values = if exceptions >> 10 == 1 { 1 } else { count };
        (0..if exceptions > 0 { values as usize * wide } else { 0 }).for_each(|_| words.push(random.bits() as u32));
        let frame = frame_of(&words, dims, dtype, Mode::Absolute, 1e-3);
        let len = dims.iter().product::<u64>() as usize * size as usize;
        match Engine::with_threads(1).decode(&frame, len as u64) {
            Ok(back) => {
                assert!(by_the_book::decode(&frame).unwrap() == back, "round {round}: {words:08x?}");
                read[class] += 1;
            }
            Err(_) if exceptions > 0 && count == 0 => {}
            Err(why) => assert!(class == 0 && by_the_book::decode(&frame).is_none(), "round {round}: {why}"),
        }
    }
    assert!(read[0] > 100 && read[1] > 1000 && read[2] > 1000, "{read:?}");
}

#[test]
fn every_rule_is_kept_with_a_reason() {
    let refused = |words: &[u32], rule: &str| {
        let frame = frame_of(words, &[4096], Dtype::F32, Mode::Absolute, 1e-3);
        let why = Engine::with_threads(1).decode(&frame, 16384).expect_err(rule).to_string();
        assert!(why.contains("planes"), "{rule}: {why}");
    };
    assert!(Engine::with_threads(1).decode(&frame_of(&[0], &[4096], Dtype::F32, Mode::Absolute, 1e-3), 16384).is_ok());
    refused(&[], "P4");
    refused(&[2 << 2, 0, 0], "P5: predictor");
    refused(&[1 << 8, 0, 0], "P5: bit 8");
    refused(&[1 << 4], "P5: alone");
    refused(&[2, 0, 1 << 26, 0], "P5: bit 26");
    refused(&[2, 1 << 19, 0, 0], "P5: bit 19");
    refused(&[1, 0, 1 << 25, 0], "P5: uniform, class 1");
    refused(&[3 | 1 << 16, 0], "P5: class 3");
    refused(&[1 << 10, 0, 0], "P5: uniform");
    refused(&[2 | 7 << 5, 0, 0, 0], "P7");
    refused(&[1 << 9, 0, 0, 0], "P8: none");
    refused(&[1 << 9, 1 << 8 | 1 << 21, 0, 0], "P8: reserved");
    refused(&[1 << 4, 0, 0, 1 << 16], "P9");
    refused(&[0, 0, 0, 0], "P10: longer");
    refused(&[0, 0], "P10: shorter");
    refused(&[0, 2, 0], "P10: no ballot");
    refused(&[2, 0], "P10: no head");
    refused(&[2, 5 << 6, 0, 0], "P10: no bits");
    refused(&[2, 0, 0, 0, 0], "P10: bits of no length");
    refused(&[0, 3, 0, 1, 0x10], "P11: nibble");
    refused(&[0, 3, 0, 1, 1, 0x100], "P11: byte");
    refused(&[1 << 9, 1 << 8, 0, 0, 0], "P12");
    refused(&[2, 0, 1 << 24, 0, 1 << 8, 0], "P12: class 2");
    refused(&[2, 0, 1 << 25, 0], "P5: uniform, class 2");
    // One bit of the highest plane below the sign: 2^14, along no axis, and along x from 2 · 2^14.
    let high = |head: u32, ballot: u32, words: &[u32]| {
        [&[head | 1 << 4, 0, 2 << 12, 0, 0][..], &[0; 0], &[ballot], words].concat()
    };
    refused(&high(0, 1, &[1]), "P13: predictor 0");
    refused(&high(1 << 2, 1, &[1]), "P13: predictor 1");
    refused(&[2, 33 << 6, 0, 0], "P14: T");
    refused(&[2, 32 << 13, 0, 0], "P14: z");
    refused(&[2, 30 << 6 | 3 << 13, 0, 0], "P14: both");
    refused(&[1 | 1 << 4, 0, 0, 0], "P15: class 1");
    refused(&[2 | 1 << 4, 128 << 20, 0, 0], "P15: above");
    refused(&[2 | 1 << 4, (-127i32 as u32) << 20, 0, 0], "P15: below");
    refused(&[2, 1 << 20, 0, 0], "P15: map 0");
    let integers = Dtype { class: Class::Integer, ..Dtype::F32 };
    let of_integers = |words| frame_of(words, &[4096], integers, Mode::Lossless, 0.0);
    assert!(Engine::with_threads(1).decode(&of_integers(&[2, 0, 0, 5]), 16384).is_ok());
    Engine::with_threads(1).decode(&of_integers(&[2 | 1 << 4, 0, 0, 0]), 16384).expect_err("P15: integers");
    // One value of class 1, which has the lengths 1 and 2: two bits.
    let fields = |bits: u32| [2 | 1 << 5 | 3 << 8, 2 << 6, 1 << 3, 0, 1, 1, 1, bits];
    let frame = frame_of(&fields(3), &[4096], Dtype::F32, Mode::Absolute, 1e-3);
    let back = Engine::with_threads(1).decode(&frame, 16384).unwrap();
    assert!(by_the_book::decode(&frame).unwrap() == back);
    // The number -2 among ordered bits.
    assert_eq!(back[..8], [1, 0, 0, 0x80, 0, 0, 0, 0]);
    refused(&fields(4), "P16");
    for (mode, used) in [(Mode::Lossless, 0.0), (Mode::Absolute, 0.0), (Mode::Absolute, 1e300)] {
        let frame = frame_of(&[0], &[4096], Dtype::F32, mode, used);
        Engine::with_threads(1).decode(&frame, 16384).expect_err("P6");
    }
    let frame = frame_of(&[0], &[4096], Dtype::F32, Mode::PointwiseRelative, 1e-3);
    Engine::with_threads(1).decode(&frame, 16384).expect_err("F7");
    let frame = frame_of(&[2, 0], &[4096], Dtype { size: 2, ..Dtype::F32 }, Mode::Lossless, 0.0);
    Engine::with_threads(1).decode(&frame, 8192).expect_err("F9");
}
