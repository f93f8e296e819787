// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is an exception, what no value becomes, and components. `tests/` holds the rest for every codec: bounds,
//! threads, rewriting, damage.

use crate::CodecId;
use crate::Cpu;
use crate::frame::Frame;
use crate::judge::judge;
use crate::keep::Keep;
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};

const FILL: f64 = 1e20;

fn size(dtype: Dtype) -> usize {
    dtype.size.into()
}

fn bytes_of(x: f64, dtype: Dtype) -> Vec<u8> {
    let mut b = if dtype.size == 4 { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() };
    if dtype.big_endian {
        b.reverse();
    }
    b
}

fn params(bound: Bound, dtype: Dtype, dims: &[u64], fill: Option<f64>) -> Params {
    let mut params = Params::new(Request::new(Codec::Planes, bound), dtype, dims).unwrap();
    params.fill = fill.map(|x| if dtype.size == 4 { u64::from((x as f32).to_bits()) } else { x.to_bits() });
    params
}

/// Encodes, decodes and judges a chunk; the frame and what comes back.
fn round_trip(params: &Params, raw: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let engine = Cpu::with_threads(1);
    let frame = engine.encode(params, raw);
    let back = engine.decode(&frame, raw.len() as u64).unwrap();
    if params.request.bound == Bound::Lossless {
        assert!(back == raw, "{params:?}");
        return (frame, back);
    }
    let fill = params.fill.filter(|&bits| bits != 0);
    let verdict = judge(params.request, params.dtype, fill, [raw, &back], None, 1).unwrap();
    assert!(verdict.held() && verdict.into_fill == 0, "{verdict:?}: {params:?}");
    (frame, back)
}

fn dtypes() -> [Dtype; 4] {
    let big = |d: Dtype| Dtype { big_endian: true, ..d };
    [Dtype::F32, Dtype::F64, big(Dtype::F32), big(Dtype::F64)]
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

/// Values about zero and about what is small, at bounds from end to end of those with a usable step.
#[test]
fn signs_are_kept_by_half_steps() {
    for dtype in dtypes() {
        let (power, tiny) =
            if dtype.size == 4 { (100, f64::from(f32::from_bits(1))) } else { (1000, f64::from_bits(1)) };
        for bound in [1 - power, -3, 0, 7, power - 2].map(|e| 1.1 * f64::exp2(f64::from(e))) {
            let step = bound * 1.9921875;
            let beside = |x: f64| [x * (1.0 - 1e-7), x, x * (1.0 + 1e-7)];
            let some: Vec<f64> = [0.25, 0.5, 0.75, 1.0, 1.5, 7.0].into_iter().flat_map(|k| beside(k * step)).collect();
            let some: Vec<f64> = some.into_iter().chain([0.0, tiny, 1e-3 * step]).flat_map(|x| [x, -x]).collect();
            let raw: Vec<u8> = (0..5000).flat_map(|i| bytes_of(some[i * 7 % some.len()], dtype)).collect();
            for keep in [Keep::SIGN, Keep::SIGN.and(Keep::RANGE)] {
                let mut params = params(Bound::Absolute(bound), dtype, &[5000], None);
                params.request.keep = keep;
                let (frame, back) = round_trip(&params, &raw);
                assert_eq!(frame[9], CodecId::PLANES.number());
                assert!(keep != Keep::SIGN || 2 * frame.len() < raw.len(), "{dtype:?} {bound:e}: {}", frame.len());
                // Again, beside others.
                let (half, other) = back.split_at(back.len() / 2);
                assert!(
                    round_trip(&params, &[other, half].concat()).1 == [other, half].concat(),
                    "{dtype:?} {bound:e}"
                );
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
