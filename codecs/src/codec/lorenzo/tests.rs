// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an offset costs. `tests/` holds the rest for every codec: bounds, threads, damage, and rewriting.

use super::{cpu, integers};
use crate::bound;
use crate::codec::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::frame::Frame;
use crate::judge::judge;
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};
use crate::scalar::Scalar;

/// Encodes, decodes and judges every value; returns the frame's length.
fn frame_len<S: Scalar>(dims: &[u64], bound: Bound, values: &[S]) -> usize {
    let dtype = if S::SIZE == 4 { Dtype::F32 } else { Dtype::F64 };
    let params = Params::new(Request::new(Codec::Lorenzo, bound), dtype, dims).unwrap();
    let used = bound::resolve(bound, || bound::range(values, None)).into();
    let raw = bytemuck::cast_slice(values);
    let chunk = Chunk { params: &params, raw, threads: 1, used: None, kept: None };
    let mut bytes = Vec::new();
    let header = chunk.header(CodecId::LORENZO, Some(used));
    cpu::encode(values, &chunk, used, header, &mut bytes).unwrap();
    assert_eq!(super::frame_len(&Chunk { used: Some(used), ..chunk }), Ok(Some(bytes.len())), "the length alone");
    let mut back = vec![S::ZERO; values.len()];
    cpu::decode(&Frame::open(&bytes, 1).unwrap(), 1, &mut back).unwrap();
    let verdict = judge(bound, dtype, None, [raw, bytemuck::cast_slice(&back)], None, 1).unwrap();
    assert!(verdict.held(), "{dims:?} {bound:?}: {verdict:?}");
    // A frame that is not smaller than its values is not kept, but must not be far above them either.
    let most = values.len() * S::SIZE + values.len().div_ceil(100) + 300;
    assert!(bytes.len() <= most, "{} bytes for {} values", bytes.len(), values.len());
    bytes.len()
}

/// A wave under noise.
fn field(dims: &[u64]) -> Vec<f64> {
    let last = *dims.last().unwrap_or(&1) as usize;
    let mut state = 12345u32;
    (0..dims.iter().product::<u64>() as usize)
        .map(|i| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let noise = f64::from(state >> 8) / f64::from(1 << 24) - 0.5;
            let (x, y) = ((i % last) as f64, (i / last) as f64);
            (x * 0.11).sin() * 3.0 + (y * 0.05).cos() * 5.0 + 0.1 * noise
        })
        .collect()
}

/// Frames of a field beside `offset` times its range, and of one without, neither of more than `share` above the other.
fn offset_costs_nothing(dims: &[u64], offset: f64, bound: f64, share: f64) {
    let at = |offset: f64| -> Vec<f64> {
        let values = field(dims);
        let range = bound::range(&values, None).map_or(0.0, |(low, high)| high - low);
        values.iter().map(|&x| x + offset * range).collect()
    };
    let [plain, beside] = [0.0, offset].map(|offset| frame_len(dims, Bound::Relative(bound), &at(offset)) as f64);
    // The base itself, and its filling.
    assert!(
        (beside - plain).abs() <= share * plain + 32.0,
        "{dims:?}, {offset:e}, {bound}: {beside} bytes, {plain} without"
    );
}

#[test]
fn an_offset_costs_nothing() {
    for dims in [&[20_000][..], &[130, 200], &[32, 33, 64]] {
        for bound in [1e-2, 1e-3, 1e-4] {
            for offset in [1e3, 1e6, 1e9, -1e9] {
                offset_costs_nothing(dims, offset, bound, 0.02);
            }
        }
        // Where 1e12 is, f64 do not tell interpolation's units from each other any more.
        offset_costs_nothing(dims, 1e11, 1e-2, 0.02);
    }
}

#[test]
fn a_base_is_found_beside_values_that_have_none() {
    let dims = &[40, 500];
    let plain: Vec<f64> = field(dims).iter().map(|x| 1.0 + 1e-9 * x).collect();
    let len = |values: &[f64]| frame_len(dims, Bound::Absolute(1e-12), values);
    for (every, rare) in [(10, 1e20), (2, f64::NAN), (3, f64::INFINITY), (5, 0.0), (5, -7.0), (2, 1e20)] {
        let some: Vec<f64> =
            plain.iter().enumerate().map(|(i, &x)| if i / 8 % every == 0 { rare } else { x }).collect();
        let most = len(&plain) + 80_000 / every + 2000;
        assert!(len(&some) < most, "{rare}: {} bytes, {} without", len(&some), len(&plain));
    }
}

/// On either side of zero: beyond 2^40 f64 may lose what interpolation needs, beyond 2^53 the integers themselves.
#[test]
fn large_integers_are_left_to_other_codecs() {
    let dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(8) };
    let params = Params::new("mode=lossless".parse().unwrap(), dtype, &[3000]).unwrap();
    for (end, is_taken) in [(1i64 << 40, true), ((1 << 40) + 1, false), (1 << 60, false)] {
        for sign in [1, -1] {
            let values: Vec<i64> = (0..3000).map(|k| sign * (end - k)).collect();
            let raw = bytemuck::cast_slice(&values);
            let chunk = Chunk { params: &params, raw, threads: 1, used: None, kept: None };
            assert_eq!(integers::encode(&chunk, None, &mut Vec::new()), Ok(is_taken), "{sign} {end}");
        }
    }
}

/// Chunks of 16 planes have all values that say the base in one column: land, here.
#[test]
fn a_number_for_missing_values_is_no_base() {
    fn missing<S: Scalar>(number: f64, bound: f64, share: u64) {
        let dims = &[16, 40, 64];
        let all = |land: f64| -> Vec<S> {
            let at = |(i, x): (usize, &f64)| if (i as u64 % 64) < share { land } else { *x };
            field(dims).iter().enumerate().map(at).map(S::from_f64).collect()
        };
        let len = |values: &[S]| frame_len(dims, Bound::Absolute(bound), values);
        // The former is counted from zero.
        let [near, far] = [number / 64.0, number].map(|land| len(&all(land)));
        assert!(4 * far < 5 * near + 4000, "{number}, {bound}, {share}: {far} bytes, {near} of a number 64 times less");
    }
    for share in [20, 55] {
        missing::<f32>(-9999.0, 1e-3, share);
        missing::<f32>(1e20, 1e13, share);
        missing::<f64>(-9999.0, 1e-3, share);
        missing::<f64>(1e5, 1e-4, share);
    }
}
