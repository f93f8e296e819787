// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec by whole chunks: bounds, exact values, the same value whatever stands around it, readers by the book,
//! damage.

use crate::CodecId;
use crate::constants::PLANES_TILE;
use crate::engine::Engine;
use crate::frame::{self, Frame};
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};
use crate::scalar::within;

/// The decoder that was written from the documents alone.
#[path = "../../../tests/tools/decode_by_the_book.rs"]
mod book;

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

fn params(bound: Bound, dtype: Dtype, dims: &[u64], fill: Option<f64>) -> Params {
    let mut params = Params::new(Request { codec: Codec::Planes, bound }, dtype, dims).unwrap();
    let fill = fill.map(|fill| bytes_of(fill, Dtype { big_endian: false, ..dtype }));
    params.fill = fill.map(|bytes| all_bits(&bytes, Dtype { big_endian: false, ..dtype })[0]);
    params
}

fn decode(frame: &[u8], len: usize) -> Vec<u8> {
    Engine::with_threads(1).decode(frame, len as u64).unwrap()
}

/// The first word of every tile's head; none for other codecs.
fn heads(frame: &[u8]) -> Vec<u32> {
    if frame[9] != CodecId::PLANES.number() {
        return Vec::new();
    }
    let [table, payload] = Frame::open(frame, 1).unwrap().sections().unwrap();
    let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
    let ends = table.chunks(4).map(|b| word(b) as usize);
    let starts = std::iter::once(0).chain(ends).take(table.len() / 4);
    starts.map(|s| word(&payload[4 * s..][..4])).collect()
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
    assert!(stored || book::decode(&frame, raw.len()).unwrap() == back, "by the book: {params:?}");
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
                    let fill = (kind == Kind::Masked && k % 2 == 0).then_some(FILL);
                    let (frame, _) = round_trip(&params(bound, dtype, dims, fill), &raw);
                    heads(&frame).into_iter().for_each(|head| classes[head as usize & 3] += 1);
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
                round_trip(&params(bound, dtype, &[5000], None), &raw);
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
                round_trip(&params(Bound::Lossless, dtype, dims, fill), &raw);
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
                let (_, once) = round_trip(&params(bound, dtype, &[9, 17, 40], fill), &raw);
                for dims in [&[9, 17, 40][..], &[153, 40], &[6120], &[40, 153]] {
                    let params = params(bound, dtype, dims, fill);
                    assert!(round_trip(&params, &raw).1 == once, "{kind:?} {params:?}: another shape");
                    assert!(round_trip(&params, &once).1 == once, "{kind:?} {params:?}: twice");
                }
            }
        }
    }
}

/// A chunk of one tile in mode 9: its head's three words and the number of its exceptions.
fn head_of(raw: &[u8], dtype: Dtype, fill: Option<f64>) -> ([u32; 3], u32) {
    let params = params(Bound::Lossless, dtype, &[raw.len() as u64 / size(dtype) as u64], fill);
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
            let params = params(Bound::Absolute(bound), dtype, &[5000], Some(fill));
            let (frame, back) = round_trip(&params, &raw);
            assert_eq!(frame[9], CodecId::PLANES.number());
            assert!(round_trip(&params, &back).1 == back);
        }
    }
}

#[test]
fn a_fill_value_of_zero_is_none() {
    let value = |i: usize| if i % 300 < 40 { 0.0 } else { (0.01 * i as f64).sin() };
    for dtype in dtypes() {
        let raw: Vec<u8> = (0..5000).flat_map(|i| bytes_of(value(i), dtype)).collect();
        for bound in [Bound::Lossless, Bound::Absolute(1e-2)] {
            let frame = |fill| round_trip(&params(bound, dtype, &[5000], fill), &raw).0;
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
            let len = |dims: &[u64]| round_trip(&params(bound, Dtype::F32, dims, None), &raw).0.len();
            assert!(2 * len(dims) < len(&[36_000]), "{bound:?} {dims:?}: {} of {}", len(dims), len(&[36_000]));
        }
    }
}

#[test]
fn a_constant_tile_takes_one_word() {
    for (dims, x) in [(&[4096][..], 0.0), (&[64, 64, 64], 0.0)] {
        let raw = bytes_of(x, Dtype::F32).repeat(dims.iter().product::<u64>() as usize);
        let params = params(Bound::Absolute(1e-3), Dtype::F32, dims, None);
        let frame = round_trip(&params, &raw).0;
        let tiles = raw.len() / 4 / PLANES_TILE;
        assert_eq!(Frame::open(&frame, 1).unwrap().section_lens(), [4 * tiles, 4 * tiles]);
    }
}

#[test]
fn damage_is_refused_or_harmless() {
    for (kind, dims, dtype, bound) in [
        (Kind::Smooth, &[200][..], Dtype::F32, Bound::Absolute(0.1)),
        (Kind::Hostile, &[700], Dtype::F32, Bound::Absolute(0.1)),
        (Kind::Hostile, &[40, 33], Dtype::F64, Bound::Absolute(0.1)),
        (Kind::Steps, &[1500], Dtype::F64, Bound::Lossless),
        (Kind::Wide, &[3500], Dtype::F32, Bound::Absolute(2e-3)),
        (Kind::Smooth, &[300], Dtype::F32, Bound::Lossless),
        (Kind::Hostile, &[20, 33], Dtype::F64, Bound::Lossless),
        (Kind::Wide, &[900], Dtype::F64, Bound::Absolute(1e-12)),
        (Kind::Masked, &[3000], Dtype::F32, Bound::Lossless),
        (Kind::Hostile, &[230, 3], Dtype::F32, Bound::Lossless),
    ] {
        let raw = chunk(kind, dims, dtype);
        let fill = (kind == Kind::Masked).then_some(FILL);
        let mut frame = Engine::with_threads(1).encode(&params(bound, dtype, dims, fill), &raw);
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
                    assert!(book::decode(&sealed, raw.len()).unwrap() == back, "byte {at} xor {flip}");
                }
                frame[at] = before;
            }
        }
    }
}
