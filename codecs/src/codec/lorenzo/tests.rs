// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an offset costs, and rewriting of rough values. `tests/` holds the rest for every codec: what each class and
//! predictor is taken for (`conformance.rs`), bounds, threads, damage, and rewriting of fields.

use super::{cpu, integers};
use crate::bound;
use crate::codec::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::frame::{self, Frame};
use crate::judge::judge;
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};
use crate::scalar::{Bits, Scalar};
use proptest::prelude::*;

/// What a chunk is and how it is to be coded.
#[derive(Clone, Copy)]
struct Case<'a> {
    dims: &'a [u64],
    bound: Bound,
    fill: Option<u64>,
}

impl<'a> Case<'a> {
    fn new(dims: &'a [u64], bound: Bound) -> Self {
        Case { dims, bound, fill: None }
    }

    /// Encodes, decodes and judges every value; returns frame and reconstruction.
    fn check<S: Scalar>(&self, values: &[S]) -> (Vec<u8>, Vec<S>) {
        let dtype = if S::SIZE == 4 { Dtype::F32 } else { Dtype::F64 };
        let mut params = Params::new(Request { codec: Codec::Lorenzo, bound: self.bound }, dtype, self.dims).unwrap();
        params.fill = self.fill;
        let used = bound::resolve(self.bound, || bound::range(values, self.fill));
        let raw = bytemuck::cast_slice(values);
        let chunk = Chunk { params: &params, raw, threads: 1, used: None, kept: None };
        let mut bytes = Vec::new();
        let header = chunk.header(CodecId::LORENZO, Some(used));
        cpu::encode(values, &chunk, used, header, &mut bytes).unwrap();
        let mut back = vec![S::ZERO; values.len()];
        cpu::decode(&Frame::open(&bytes, 1).unwrap(), 1, &mut back).unwrap();
        let verdict = judge(self.bound, dtype, self.fill, [raw, bytemuck::cast_slice(&back)], None, 1).unwrap();
        assert!(verdict.held(), "{:?} {:?}: {verdict:?}", self.dims, self.bound);
        // A frame that is not smaller than its values is not kept, but must not be far above them either.
        let most = values.len() * S::SIZE + values.len().div_ceil(100) + 300;
        assert!(bytes.len() <= most, "{} bytes for {} values", bytes.len(), values.len());
        (bytes, back)
    }
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
    let case = Case::new(dims, Bound::Relative(bound));
    let [plain, beside] = [0.0, offset].map(|offset| case.check(&at(offset)).0.len() as f64);
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
    let len = |values: &[f64]| Case::new(dims, Bound::Absolute(1e-12)).check(values).0.len();
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
        let len = |values: &[S]| Case::new(dims, Bound::Absolute(bound)).check(values).0.len();
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

/// Encodes again what came back, and wants every value kept. False where the second frame states another bound:
/// FORMAT.md §8 says when it may, about a power of two.
fn rewriting_keeps<S: Scalar>(case: Case<'_>, values: &[S]) -> bool {
    let (first, once) = case.check(values);
    let (bytes, twice) = case.check(&once);
    if [&first, &bytes].map(|frame| frame::header(frame).unwrap().used).windows(2).any(|pair| pair[0] != pair[1]) {
        return false;
    }
    for (i, (a, b)) in once.iter().zip(&twice).enumerate() {
        let (a, b) = (a.bits().to_u64(), b.bits().to_u64());
        assert_eq!(a, b, "value {i} of {:?} with {:?}: {a:#x} became {b:#x}", case.dims, case.bound);
    }
    assert_eq!(case.check(&twice).0, bytes);
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rough_walks_keep_every_value_when_rewritten(
        steps in prop::collection::vec(-1000i32..1000, 64..3000),
        b in 1e-3f64..300.0,
        smooth in 0u32..3,
        width in 8u64..40,
    ) {
        let dims = [steps.len() as u64 / width, width];
        let (mut x, mut v) = (0f64, 0f64);
        let values: Vec<f64> = steps[..(dims[0] * dims[1]) as usize]
            .iter()
            .map(|&s| {
                v = if smooth == 0 { f64::from(s) } else { v * 0.9 + f64::from(s) * 0.1 };
                x += if smooth == 2 { v } else { v * 0.01 };
                x
            })
            .collect();
        let case = Case::new(&dims, Bound::Absolute(b));
        prop_assume!(rewriting_keeps(case, &values));
        let narrow: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        prop_assume!(rewriting_keeps(case, &narrow));
        let fill = Some(u64::from(narrow[narrow.len() / 2].to_bits()));
        prop_assume!(rewriting_keeps(Case { fill, ..case }, &narrow));
    }
}
