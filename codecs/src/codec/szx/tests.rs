// SPDX-License-Identifier: MIT OR Apache-2.0
//! One answer on every vector unit, what rewriting does, and what fill costs. `tests/` holds the rest for every codec:
//! bounds, threads, damage (`bound.rs`, `never_larger.rs`, `corrupt.rs`, `refused.rs`).

use super::cpu;
use crate::bound::{self, Tolerance};
use crate::codec::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::frame::Frame;
use crate::judge::judge;
use crate::params::{Bound, Codec, Dtype, Params, Request};
use crate::scalar::Scalar;
use proptest::prelude::*;

/// Encodes, decodes and judges every value; returns frame and reconstruction.
fn check<S: Scalar>(values: &[S], bound: Bound, fill: Option<u64>) -> (Vec<u8>, Vec<S>) {
    let dtype = if S::SIZE == 4 { Dtype::F32 } else { Dtype::F64 };
    let mut params = Params::new(Request::new(Codec::Szx, bound), dtype, &[values.len() as u64]).unwrap();
    params.fill = fill;
    let used = bound::resolve(bound, || bound::range(values, fill)).into();
    let raw = bytemuck::cast_slice(values);
    let chunk = Chunk { params: &params, raw, threads: 1, used: None, kept: None };
    let mut bytes = Vec::new();
    cpu::encode(values, &chunk, used, chunk.header(CodecId::SZX, Some(used)), &mut bytes).unwrap();
    let mut back = vec![S::ZERO; values.len()];
    cpu::decode(&Frame::open(&bytes, 1).unwrap(), 1, &mut back).unwrap();
    let verdict = judge(bound, dtype, fill, [raw, bytemuck::cast_slice(&back)], None, 1).unwrap();
    assert!(verdict.held(), "{bound:?}: {verdict:?}");
    (bytes, back)
}

#[test]
fn values_under_a_bound_of_0_keep_their_bits() {
    for x in [3.25f32, -0.0, 1e-42, f32::MAX] {
        let mut values = vec![x; 4500];
        values.iter_mut().step_by(7).for_each(|v| *v = f32::NAN);
        let (bytes, back) = check(&values, Bound::Relative(1e-2), None);
        assert!(back.iter().map(|v| v.to_bits()).eq(values.iter().map(|v| v.to_bits())), "{x}");
        assert!(bytes.len() < 2000, "{} bytes for one value and NaN", bytes.len());
    }
    // Zeros of both signs: the range is zero, so they keep their signs.
    let zeros: Vec<f64> = (0..300).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect();
    for bound in [Bound::Relative(0.1), Bound::PointwiseRelative(0.1)] {
        let (_, back) = check(&zeros, bound, None);
        assert!(back.iter().map(|v| v.to_bits()).eq(zeros.iter().map(|v| v.to_bits())), "{bound:?}");
    }
}

/// The middle of 1 and 4 of the smallest numbers is rounded to 2 of them: within one of the first, not of the second.
#[test]
fn a_middle_that_is_rounded_away_from_one_end_is_no_constant() {
    let values: Vec<f32> = (0..256).map(|i| f32::from_bits([1, 4][i % 2])).collect();
    check(&values, Bound::Absolute(f32::from_bits(1).into()), None);
}

/// A third of 3 · 2^21 of the smallest numbers, rounded, is 2^21 of them; 1/3 in f64 is less than a third. The nearest
/// pattern of two significant bits is that far away.
#[test]
fn a_pointwise_bound_that_is_rounded_up_is_not_used_up() {
    let values: Vec<f32> = (0..256).map(|i| if i % 2 == 0 { f32::from_bits(3 << 21) } else { i as f32 }).collect();
    check(&values, Bound::PointwiseRelative(1.0 / 3.0), None);
}

/// The sum of two of the largest numbers is infinite, their middle is not.
#[test]
fn the_largest_numbers_may_be_constant() {
    for sign in [1.0, -1.0] {
        let values: Vec<f64> = (0..9000).map(|i| sign * (1.7e308 + 1e300 * f64::from(i % 7))).collect();
        let (bytes, _) = check(&values, Bound::Absolute(1e301), None);
        assert!(bytes.len() < 2000, "{} bytes", bytes.len());
    }
}

#[test]
fn fill_values_cost_next_to_nothing_where_they_stand_together() {
    let fill = 1e20f32;
    let field = |i: usize| if (i / 1000).is_multiple_of(2) { fill } else { (i as f32 * 0.01).cos() };
    let values: Vec<f32> = (0..100_000).map(field).collect();
    let (with, _) = check(&values, Bound::Relative(1e-3), Some(fill.to_bits().into()));
    let bare: Vec<f32> = values.iter().copied().filter(|&v| v != fill).collect();
    let (without, _) = check(&bare, Bound::Relative(1e-3), None);
    assert!(with.len() < without.len() * 5 / 4, "{} bytes, {} without fill", with.len(), without.len());
}

#[test]
fn bytes_do_not_depend_on_the_vector_unit() {
    let odd = [f32::NAN, f32::INFINITY, f32::MAX, -0.0, 1e-45, 9.96921e36, 123456.79, -f32::MIN_POSITIVE];
    let value = |i: usize| if i.is_multiple_of(331) { odd[i % 8] } else { ((i * i) as f32 * 1e-6).sin() * 7.0 };
    let values: Vec<f32> = (0..100_000).map(value).collect();
    for b in [0.5, 1e-3, 1e-40] {
        cpu::tests::every_level_gives_the_same(&values, Tolerance::Absolute(b));
    }
    for r in [1e-2, 1e-7] {
        cpu::tests::every_level_gives_the_same(&values, Tolerance::PointwiseRelative(r));
    }
}

#[test]
fn a_second_writing_keeps_coded_values_and_stays_within_a_bound() {
    let values: Vec<f64> = (0..9000).map(|i| (f64::from(i) * 0.013).sin() * 40.0 + f64::from(i % 17)).collect();
    for b in [1e-3, 0.25, 0.7] {
        let (first, once) = check(&values, Bound::Absolute(b), None);
        let (second, twice) = check(&once, Bound::Absolute(b), None);
        let kept = once.iter().zip(&twice).filter(|(a, b)| a == b).count();
        assert!(kept > 8990, "{kept} of 9000 values kept at {b}");
        assert!(second.len() <= first.len());
        let (third, again) = check(&twice, Bound::Absolute(b), None);
        assert_eq!((third, again), (second, twice));
    }
    let (_, once) = check(&values, Bound::PointwiseRelative(1e-3), None);
    let (_, twice) = check(&once, Bound::PointwiseRelative(1e-3), None);
    assert_eq!(once, twice);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rewriting_moves_values_by_a_bound_at_most_and_comes_to_rest(
        steps in prop::collection::vec(-600i32..600, 1..2000),
        coarse in 0u32..10,
        b in 0.05f64..40.0,
    ) {
        // Whole numbers: every lo + k · g is exact.
        let values: Vec<f64> = steps.iter().map(|&s| f64::from(s >> coarse)).collect();
        let bound = Bound::Absolute(b);
        let (_, once) = check(&values, bound, None);
        let (_, twice) = check(&once, bound, None);
        let (third, rest) = check(&twice, bound, None);
        prop_assert_eq!(check(&rest, bound, None), (third, rest));
    }
}
