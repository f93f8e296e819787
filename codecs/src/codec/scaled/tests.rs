// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever a chunk holds, every bit comes back; and what each candidate is for is kept by it.

use crate::Cpu;
use crate::codec::chunk::Chunk;
use crate::codec::exact;
use crate::codec::kept::{Inner, Kept, Scale, Way};
use crate::codec::scaled::runs;
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::frame::{self, Frame};
use crate::params::{Class, Dtype, Params};

/// A number of a whole one.
type Grid = fn(f64) -> f64;

const I32: Dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
const I64: Dtype = Dtype { size: 8, ..I32 };

fn hash(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

fn noise(i: usize) -> f64 {
    hash(i) as f64 / 2f64.powi(64)
}

/// Numbers of a type as the bytes of a chunk; floats are given by their value, integers rounded.
fn raw(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let one = |x: &f64| {
        let mut bytes = match (dtype.class, dtype.size) {
            (Class::Float, 4) => (*x as f32).to_le_bytes().to_vec(),
            (Class::Float, _) => x.to_le_bytes().to_vec(),
            (_, 4) => (*x as i32).to_le_bytes().to_vec(),
            _ => (*x as i64).to_le_bytes().to_vec(),
        };
        if dtype.big_endian {
            bytes.reverse();
        }
        bytes
    };
    values.iter().flat_map(one).collect()
}

/// The frame of a chunk, which comes back; the same with one thread and with three.
fn coded(dtype: Dtype, dims: &[u64], raw: &[u8], fill: Option<u64>) -> Vec<u8> {
    let params = Params { fill, ..Params::new("mode=lossless".parse().unwrap(), dtype, dims).unwrap() };
    let [one, three] = [1, 3].map(|threads| {
        let cpu = Cpu::with_threads(threads);
        let (frame, mut back) = (cpu.encode(&params, raw), vec![0xA5; raw.len()]);
        cpu.decode_into(&frame, &mut back).unwrap();
        assert!(back == raw, "{dtype:?} {dims:?}");
        frame
    });
    assert!(one == three, "{dtype:?} {dims:?}");
    // Choosing may have made it already.
    let mut again = Vec::new();
    let chunk = Chunk { params: &params, raw, threads: 1, used: None, kept: None };
    if !frame::is_swapped(&one) && crate::codec::encode(&chunk, &mut again).unwrap() {
        assert!(again == one, "made again: {dtype:?} {dims:?}");
    }
    one
}

/// The bits of a fill value; NaN is none that a user defines.
fn bits_of(dtype: Dtype, x: f64) -> Option<u64> {
    (!x.is_nan()).then(|| if dtype.size == 4 { u64::from((x as f32).to_bits()) } else { x.to_bits() })
}

fn codec(frame: &[u8]) -> CodecId {
    frame::header(frame).unwrap().codec
}

/// What integers get that only differences, a unit or both make small.
#[test]
fn clocks_and_identifiers_are_kept_as_differences() {
    let n = 100_000usize;
    let mut id = 0.0;
    let ids: Vec<f64> = (0..n).map(|i| (id += 1.0 + (hash(i) >> 59) as f64, id).1).collect();
    let sets: [(&str, Vec<f64>, usize); 5] = [
        ("regular", (0..n).map(|i| 1.6e9 + 60.0 * i as f64).collect(), 3000),
        ("ms in ns", (0..n).map(|i| 1e6 * (1.6e9 + 20.0 * i as f64 + (hash(i) >> 60) as f64)).collect(), 8),
        ("gaps", (0..n).map(|i| 1.6e9 + i as f64 + (i / 3000) as f64 * 1000.0).collect(), 300),
        ("jitter", (0..n).map(|i| 1.6e18 + 1e6 * i as f64 + (noise(i) * 2000.0).floor() * 256.0).collect(), 3),
        ("ids", ids, 8),
    ];
    for (name, values, least) in sets {
        for dtype in [I64, Dtype { big_endian: true, ..I64 }] {
            let raw = raw(dtype, &values);
            let frame = coded(dtype, &[n as u64], &raw, None);
            let ratio = raw.len() / frame.len();
            assert_eq!(codec(&frame), CodecId::SCALED, "{name}, ratio {ratio}");
            assert!(ratio >= least, "{name}: {ratio}");
        }
    }
    let counts: Vec<f64> = (0..n).map(|i| 10.0 * ((i % 300) as f64 + (hash(i) >> 61) as f64)).collect();
    let frame = coded(I32, &[n as u64 / 500, 500], &raw(I32, &counts), None);
    assert_eq!(codec(&frame), CodecId::SCALED);
}

/// Shorts that were unpacked by any factor, on a field, with NaN or a fill value or neither.
#[test]
fn floats_of_which_few_differ_are_kept_by_a_dictionary() {
    let k = |i: usize| ((i % 200) as f64 * 0.06).sin() * 900.0 + ((i / 200) as f64 * 0.02).cos() * 300.0;
    let n = 200 * 300;
    for dtype in [Dtype::F32, Dtype::F64].into_iter().flat_map(|d| [d, Dtype { big_endian: true, ..d }]) {
        for missing in [None, Some(f64::NAN), Some(1e20)] {
            let value = |i: usize| match missing {
                Some(x) if i / 50 % 5 == 1 => x,
                _ => (k(i) + noise(i) * 3.0).round() * 0.012_345_678_912_3 + 271.828_182_845_904,
            };
            let raw = raw(dtype, &(0..n).map(value).collect::<Vec<_>>());
            let fill = missing.and_then(|x| bits_of(dtype, x));
            let frame = coded(dtype, &[300, 200], &raw, fill);
            let ratio = raw.len() / frame.len();
            assert!(codec(&frame) == CodecId::SCALED && ratio >= usize::from(dtype.size), "{dtype:?}: ratio {ratio}");
        }
    }
}

/// Half of each row may lie beyond the array: a run in the same columns of each row would say nothing of the rest.
#[test]
fn numbers_are_looked_at_in_all_columns() {
    for (values, row) in [(8192, 128), (8192, 1024), (32_768, 128), (32_768, 1024), (65_536, 1024)] {
        let (count, apart, run) = runs(4 * values, 4);
        assert!((count - 1) * apart + run <= 4 * values, "{values}: {count} runs, {apart} bytes apart");
        let mut columns: Vec<usize> = (0..count).map(|k| k * apart / 4 % row).collect();
        columns.sort_unstable();
        columns.push(columns[0] + row);
        // From one column where a run begins to the next, beyond the row's end as well.
        let widest = columns.windows(2).map(|w| w[1] - w[0]).max();
        assert!(widest <= Some((row / 8).max(run / 4)), "{values}, rows of {row}: {columns:?}");
    }
}

/// A sample has most of them once: how many the chunk has is guessed.
#[test]
fn a_dictionary_is_found_where_a_sample_has_most_numbers_once() {
    let n = 1 << 20;
    let value = |i: usize| (noise(hash(i) as usize) * 40_000.0).floor() * 0.012_345_678_912_3 + 271.828_182_845_904;
    let raw = raw(Dtype::F64, &(0..n).map(value).collect::<Vec<_>>());
    let frame = coded(Dtype::F64, &[n as u64], &raw, None);
    // Codes of 16 bits, and the dictionary.
    let most = 2 * n + 6 * 40_000;
    assert!(codec(&frame) == CodecId::SCALED && frame.len() < most, "{}", frame.len());
}

/// Floats that were rounded, in places far apart: their last bytes are not random.
/// Euclid's algorithm has no divisor of some of these numbers in the order of a sample's tiles, and one of all.
#[test]
fn multiples_of_a_third_are_kept_as_such() {
    for n in [30_000, 57_115] {
        let values: Vec<f64> = (0..n).map(|i| i as f64 / 3.0).collect();
        for big_endian in [false, true] {
            let dtype = Dtype { big_endian, ..Dtype::F32 };
            let frame = coded(dtype, &[n as u64], &raw(dtype, &values), None);
            assert!(codec(&frame) == CodecId::SCALED && frame.len() < 1000, "{n}: {} bytes", frame.len());
        }
    }
}

#[test]
fn rounded_floats_that_repeat_by_bytes_go_to_bytes() {
    let n = 1 << 18;
    let value = |i: usize| f64::from((250.0 + noise(i) as f32 * 50.0).to_bits() & !0xFF | (hash(i) % 5) as u32);
    let bits = |i: usize| f64::from(f32::from_bits(value(i) as u32));
    let raw = raw(Dtype::F32, &(0..n).map(bits).collect::<Vec<_>>());
    let frame = coded(Dtype::F32, &[n as u64], &raw, None);
    assert!(codec(&frame) == CodecId::BYTES && frame.len() < raw.len() * 3 / 5, "{}", frame.len());
}

/// Decimals and unpacked shorts of both types and orders, with what is missing.
#[test]
fn decimal_grids_are_kept_as_whole_numbers() {
    let k = |i: usize| ((i % 200) as f64 * 0.06).sin() * 3000.0 + ((i / 200) as f64 * 0.02).cos() * 900.0;
    let n = 200 * 300;
    let grids: [(&str, Grid); 6] = [
        ("hundredths", |k| k / 100.0),
        ("quarters of a tenth", |k| k / 40.0),
        ("feet", |k| k * 0.3048),
        ("feet by the metre", |k| k / 3.28084),
        ("four hundredths", |k| k * 0.04),
        ("whole", |k| k),
    ];
    for (name, grid) in grids {
        for dtype in [Dtype::F32, Dtype::F64].into_iter().flat_map(|d| [d, Dtype { big_endian: true, ..d }]) {
            for missing in [None, Some(f64::NAN), Some(-999.9)] {
                let value = |i: usize| match missing {
                    Some(x) if i / 50 % 5 == 1 => x,
                    _ => grid((k(i) + noise(i)).round()),
                };
                let raw = raw(dtype, &(0..n).map(value).collect::<Vec<_>>());
                let fill = missing.and_then(|x| bits_of(dtype, x));
                let frame = coded(dtype, &[300, 200], &raw, fill);
                let ratio = raw.len() / frame.len();
                if name != "whole" {
                    assert_eq!(codec(&frame), CodecId::SCALED, "{name}, {dtype:?}, {missing:?}: ratio {ratio}");
                    assert!(ratio >= usize::from(dtype.size), "{name}, {dtype:?}, {missing:?}: {ratio}");
                }
            }
        }
    }
}

/// Coordinates of a curved grid, whose third differences are small; and smooth numbers with gaps.
#[test]
fn smooth_floats_are_kept_as_differences_of_their_bits() {
    let at = |k: usize| (k as f64 - 100.0) / 600.0;
    let latitude = |x: f64, y: f64| 90.0 * (x + y) / (1.0 + x * x + y * y).sqrt();
    let plane = |i: usize| latitude(at(i % 250), at(i / 250));
    let line = |i: usize| 200.0 + 90.0 * (i as f64 / 9000.0).sin();
    let gaps = |i: usize| if i / 1000 % 5 == 2 { f64::NAN } else { plane(i) };
    let values = |value: &dyn Fn(usize) -> f64| (0..50_000).map(value).collect::<Vec<_>>();
    let sets = [(&[200, 250][..], values(&plane), 4), (&[50_000], values(&line), 4), (&[200, 250], values(&gaps), 0)];
    for (dims, values, least) in &sets {
        for dtype in [Dtype::F32, Dtype::F64].into_iter().flat_map(|d| [d, Dtype { big_endian: true, ..d }]) {
            let raw = raw(dtype, values);
            let frame = coded(dtype, dims, &raw, None);
            // Of f64 rounding leaves more digits.
            let ratio = raw.len() * usize::from(dtype.size) / 4 / frame.len();
            assert!(ratio >= *least, "{dims:?}, {dtype:?}: {ratio}");
            if *least > 0 {
                assert_eq!(codec(&frame), CodecId::SCALED, "{dims:?}, {dtype:?}");
                assert_eq!(Frame::open(&frame, 1).unwrap().sections::<3>().unwrap()[0][0], 4, "map");
            }
        }
    }
}

/// Rounding makes -0 of what is a little less than nothing.
#[test]
fn minus_zeros_among_decimals_cost_little() {
    let k = |i: usize| ((i % 200) as f64 * 0.06).sin() * 3000.0 - 2000.0 + noise(i);
    for dtype in [Dtype::F32, Dtype::F64] {
        let [with, without] = [-0.0, 0.0].map(|zero| {
            let value = |i: usize| if k(i) < 0.0 { zero } else { k(i).round() / 1000.0 };
            let raw = raw(dtype, &(0..60_000).map(value).collect::<Vec<_>>());
            coded(dtype, &[300, 200], &raw, None)
        });
        assert_eq!(codec(&with), CodecId::SCALED, "{dtype:?}");
        assert!(with.len() < without.len() * 3 / 2, "{dtype:?}: {} {}", with.len(), without.len());
    }
}

/// Coordinates of a mesh: in one half of the chunk few numbers, in no order, in the other none twice.
#[test]
fn what_repeats_in_a_half_is_found() {
    for repeating in [0, 1] {
        let value = |i: usize| noise(if i / 24_300 == repeating { hash(i) as usize % 50 } else { i });
        let frame = coded(Dtype::F64, &[48_600], &raw(Dtype::F64, &(0..48_600).map(value).collect::<Vec<_>>()), None);
        assert!(codec(&frame) != CodecId::PLANES && frame.len() < 250_000, "half {repeating}: {}", frame.len());
    }
}

/// Smooth integers, whose last bits are random. Of few such bits lorenzo is shorter, of many longer, by a thirtieth.
#[test]
fn lorenzo_has_to_be_clearly_shorter_than_planes() {
    let random =
        |i: usize| ((hash(i) ^ hash(i) >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / 2f64.powi(53);
    let smooth = |i: usize| ((i % 500) as f64 * 0.02).sin() * 1e5 + (i / 500) as f64 * 70.0;
    for (last, expected) in [(3.0, CodecId::LORENZO), (1e5, CodecId::PLANES)] {
        let values: Vec<f64> = (0..150_000).map(|i| (smooth(i) + random(i) * last).round()).collect();
        assert_eq!(codec(&coded(I32, &[300, 500], &raw(I32, &values), None)), expected, "{last}");
    }
}

/// An integer that nobody declared stands for what is missing: it is a multiple like all others, and has its own code.
#[test]
fn a_number_for_what_is_missing_costs_little() {
    let value = |i: usize| ((i % 200) as f64 * 0.06).sin() * 3000.0 + (noise(i) * 20.0).floor();
    let field =
        |missing: f64| (0..60_000).map(|i| if i / 37 % 3 == 0 { missing } else { value(i) }).collect::<Vec<_>>();
    let [near, far] = [0.0, -2_147_483_647.0].map(|missing| coded(I32, &[300, 200], &raw(I32, &field(missing)), None));
    assert!(far.len() <= near.len() + near.len() / 32, "{} {}", far.len(), near.len());
    // Of tens lorenzo does not know the unit.
    let tens: Vec<f64> =
        field(-2_147_483_647.0).iter().map(|x| if *x > -1e9 { x.floor() * 10.0 } else { *x }).collect();
    let tens = coded(I32, &[300, 200], &raw(I32, &tens), None);
    assert_eq!(codec(&tens), CodecId::SCALED);
    assert_eq!(Frame::open(&tens, 1).unwrap().sections::<3>().unwrap()[0][2], 1, "special");
    assert!(tens.len() <= near.len() + near.len() / 32, "{} {}", tens.len(), near.len());
}

/// Numbers that no unit fits, among those that one does: some of each, at random.
#[test]
fn every_bit_comes_back_from_a_model_of_everything() {
    let shapes: [&[u64]; 6] = [&[300], &[40_000], &[150, 200], &[9, 17, 40], &[3, 4, 25, 40], &[70_000]];
    for seed in 0..240 {
        let r = |k: usize| hash(seed * 1000 + k);
        let dims = shapes[r(0) as usize % shapes.len()];
        let n = dims.iter().product::<u64>() as usize;
        let dtype = [I32, I64, Dtype::F32, Dtype::F64][r(1) as usize % 4];
        let dtype = Dtype { big_endian: r(2) & 8 == 8, ..dtype };
        let unit = [1.0, 0.01, 0.3048, 1e6, 7.0, 1e-7, 0.1][r(3) as usize % 7];
        let (rough, odd) = (1u64 << (r(4) % 30), [0, 10_000, 300, 30, 3][r(5) as usize % 5]);
        let mut walk = 0.0;
        let values: Vec<f64> = (0..n)
            .map(|i| {
                let h = hash(seed + 7 * i);
                walk += (h % rough) as f64 - if r(6) & 16 == 0 { rough as f64 / 2.0 } else { 0.0 };
                let special = [f64::NAN, f64::INFINITY, -0.0, 1e300, 5e-324, 0.1 + 0.2, i64::MIN as f64];
                match odd {
                    1.. if (h >> 40).is_multiple_of(odd) => special[(h >> 20) as usize % special.len()],
                    _ => [walk, (h % rough) as f64][(r(7) >> 9) as usize % 2].floor() * unit,
                }
            })
            .collect();
        let fill = [
            None,
            Some(raw(dtype.little(), &values)[..dtype.size.into()].iter().rev().fold(0, |a, b| a << 8 | u64::from(*b))),
        ];
        coded(dtype, dims, &raw(dtype, &values), fill[(r(8) >> 7) as usize % 2]);
    }
}

/// From -2^30 to 2^30 it is the special number's code, in i32: such a chunk is coded in another way.
#[test]
fn no_difference_is_taken_for_the_special_number() -> Result<()> {
    let mut values: Vec<f64> = (0..5000).map(|i| [-1.0, 0.0, -1.0, 1.0, 1.0][i / 3 % 5] * 2f64.powi(30)).collect();
    values[0] = 7.0; // which all others are counted from
    let (of, raw) = (Params::new("mode=lossless".parse()?, I32, &[50, 100])?, raw(I32, &values));
    for order in 0..=3 {
        let way = Way { scale: Scale { special: Some(0), ..Scale::WHOLE }, order, inner: Inner::Bytes };
        let chunk = Chunk { params: &of, raw: &raw, threads: 2, used: None, kept: Some(Kept::Scaled(way)) };
        let (mut out, mut back) = (Vec::new(), vec![0xA5; raw.len()]);
        assert!(exact::encode(&chunk, &mut out)?);
        super::super::decode(&Frame::open(&out, 1)?, 1, &mut back)?;
        assert!(back == raw, "{order}");
    }
    Ok(())
}

/// Each way that a sample may say, right or wrong, gives every bit back or nothing.
#[test]
fn a_wrong_way_loses_nothing() -> Result<()> {
    let values: Vec<f64> = (0..5000).map(|i| (i % 70) as f64 / 10.0 + if i % 50 == 3 { 0.123 } else { 0.0 }).collect();
    for (dtype, x) in [(Dtype::F32, 0.5), (Dtype::F64, 0.25), (I32, 3.0), (I64, 9.0)] {
        let of = Params::new("mode=lossless".parse()?, dtype, &[50, 100])?;
        let multiples: Vec<f64> = (0..5000).map(|i| x * (i / 7 % 90) as f64).collect();
        let found = super::find(&of, &raw(dtype, &multiples)).multiples.unwrap();
        for raw in [raw(dtype, &values), raw(dtype, &multiples)] {
            let inner = [Inner::Planes, Inner::Lorenzo, Inner::Bytes];
            for (order, inner) in [0, 1, 2, 3].into_iter().flat_map(|o| inner.map(|inner| (o, inner))) {
                let special = [None, Some(0)][usize::from(inner == Inner::Bytes)];
                let way = Way { scale: Scale { special, ..found }, order, inner };
                let chunk = Chunk { params: &of, raw: &raw, threads: 2, used: None, kept: Some(Kept::Scaled(way)) };
                let (mut out, mut back) = (Vec::new(), vec![0xA5; raw.len()]);
                let len = super::encode(&chunk, &way, &mut out)?.then_some(out.len());
                assert_eq!(super::frame_len(&chunk, &way)?, len, "{dtype:?} {way:?}");
                assert!(exact::encode(&chunk, &mut out)?);
                super::super::decode(&Frame::open(&out, 1)?, 1, &mut back)?;
                assert!(back == raw, "{dtype:?} {way:?}");
            }
        }
    }
    Ok(())
}

/// As a CSV parser leaves them that rounds badly: some one to three units in the last place off, in either direction.
#[test]
fn decimals_that_are_ulps_off_are_kept_with_corrections() {
    let k = |i: usize| ((i % 200) as f64 * 0.06).sin() * 3000.0 + ((i / 200) as f64 * 0.02).cos() * 900.0;
    let lengths = |dtype: Dtype, dims: &[u64], part: u64, ulps: u64, missing: bool| {
        let n = dims.iter().product::<u64>() as usize;
        let number = |i: usize| (k(i) + noise(i) * 4.0).round() / 100.0;
        let mut raw = raw(dtype, &(0..n).map(number).collect::<Vec<_>>());
        let size = usize::from(dtype.size);
        for (i, bytes) in raw.chunks_exact_mut(size).enumerate() {
            let h = hash(3 * i + 1) >> 8;
            let mut x = u64::from_le_bytes(std::array::from_fn(|b| {
                bytes.get(if dtype.big_endian { size - 1 - b.min(size - 1) } else { b }).copied().unwrap_or(0)
            })) & (u64::MAX >> (64 - 8 * size));
            if missing && i / 50 % 5 == 1 {
                x = if size == 4 { 0x7FC0_0000 } else { 0x7FF8 << 48 };
            } else if h % 1000 < part {
                let more = 1 + (h >> 20) % ulps;
                x = if h >> 40 & 1 == 0 { x + more } else { x.wrapping_sub(more) & (u64::MAX >> (64 - 8 * size)) };
            }
            bytes.copy_from_slice(&x.to_le_bytes()[..size]);
            if dtype.big_endian {
                bytes.reverse();
            }
        }
        let frame = coded(dtype, dims, &raw, None);
        let sections = Frame::open(&frame, 1).unwrap().section_lens().len();
        (codec(&frame), sections, frame.len())
    };
    for dtype in [Dtype::F32, Dtype::F64].into_iter().flat_map(|d| [d, Dtype { big_endian: true, ..d }]) {
        for dims in [&[300, 200][..], &[60_000], &[1 << 18], &[3000], &[16, 64, 64]] {
            for missing in [false, true] {
                let (.., plain) = lengths(dtype, dims, 0, 1, missing);
                for (part, ulps, bits) in [(10, 1, 0.25), (33, 3, 0.6), (250, 1, 1.4), (600, 3, 2.9)] {
                    let (id, sections, len) = lengths(dtype, dims, part, ulps, missing);
                    let most = plain as f64 + 400.0 + bits * dims.iter().product::<u64>() as f64 / 8.0;
                    assert!(id == CodecId::SCALED, "{dtype:?} {dims:?} {part} {missing}: {id:?}");
                    assert!(sections == 4 || part == 10, "{dtype:?} {dims:?} {part} {missing}");
                    assert!((len as f64) < 1.06 * most, "{dtype:?} {dims:?} {part} {missing}: {len}, {plain}");
                }
            }
        }
    }
}

/// A unit that is hardly larger than what the numbers are off says nothing.
#[test]
fn noise_has_no_corrections() {
    for (dtype, unit) in [(Dtype::F32, 1e-6), (Dtype::F32, 1e-7), (Dtype::F64, 1e-15), (Dtype::F64, 1e-14)] {
        let value = |i: usize| ((1.0 + noise(i)) / unit).round() * unit + (noise(7 * i) * 8.0 - 4.0) * unit / 8.0;
        let frame = coded(dtype, &[60_000], &raw(dtype, &(0..60_000).map(value).collect::<Vec<_>>()), None);
        assert!(Frame::open(&frame, 1).unwrap().section_lens().len() < 4 || codec(&frame) != CodecId::SCALED);
    }
}

/// A part of a chunk with corrections is what the whole has there.
#[test]
fn parts_have_their_corrections() {
    let number = |i: usize| f64::from_bits(((i % 700) as f64 / 8.0 + 0.1).to_bits() + u64::from(i % 3 == 1));
    let (dims, of_raw) = ([90u64, 200, 10], raw(Dtype::F64, &(0..180_000).map(number).collect::<Vec<_>>()));
    let params = Params::new("mode=lossless".parse().unwrap(), Dtype::F64, &dims).unwrap();
    let cpu = Cpu::with_threads(1);
    let frame = cpu.encode(&params, &of_raw);
    for wanted in [[0..90, 0..200, 0..10], [3..4, 150..152, 2..9], [89..90, 0..200, 9..10]] {
        let mut out = vec![0xA5; of_raw.len()];
        cpu.decode_part(Frame::open(&frame, 1).unwrap(), &dims, &wanted, &mut out).unwrap();
        for z in wanted[0].clone() {
            for y in wanted[1].clone() {
                let at = 8 * ((z * 200 + y) * 10 + wanted[2].start) as usize;
                let len = 8 * (wanted[2].end - wanted[2].start) as usize;
                assert_eq!(out[at..][..len], of_raw[at..][..len], "{wanted:?}");
            }
        }
    }
}
