// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds judged in exact arithmetic, hostile values, damage, and the worked example of FORMAT.md.

use super::cpu;
use crate::bound::{self, Used};
use crate::checksum;
use crate::codec::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::constants::CHECKSUM_OFFSET;
use crate::frame::{Frame, Header};
use crate::params::{Bound, Codec, Dtype, Extents, Mode, Params, Request};
use crate::scalar::{Bits, Scalar};
use num_bigint::BigInt;
use proptest::prelude::*;

fn dtype<S: Scalar>() -> Dtype {
    if S::SIZE == 4 { Dtype::F32 } else { Dtype::F64 }
}

fn encode<S: Scalar>(values: &[S], bound: Bound, fill: Option<u64>, threads: usize) -> (Vec<u8>, Used) {
    let request = Request { codec: Codec::Szx, bound };
    let mut params = Params::new(request, dtype::<S>(), &[values.len() as u64]).unwrap();
    params.fill = fill;
    let used = bound::resolve(bound, || bound::range(values, fill));
    let chunk = Chunk { params: &params, raw: bytemuck::cast_slice(values), threads, used: None, kept: None };
    let mut out = Vec::new();
    cpu::encode(values, &chunk, used, chunk.header(CodecId::SZX, Some(used)), &mut out).unwrap();
    (out, used)
}

fn decode<S: Scalar>(bytes: &[u8], n: usize, threads: usize) -> crate::Result<Vec<S>> {
    let mut out = vec![S::ZERO; n];
    cpu::decode(&Frame::open(bytes, 1)?, threads, &mut out)?;
    Ok(out)
}

/// A finite f64 times 2^1074: an integer.
fn exact(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (fraction, e) = (bits & ((1 << 52) - 1), bits >> 52 & 0x7ff);
    let magnitude = if e == 0 { BigInt::from(fraction) } else { BigInt::from(fraction | 1 << 52) << (e - 1) };
    if x < 0.0 { -magnitude } else { magnitude }
}

/// Whether the promise of contract and FORMAT.md holds for one value, judged without any rounding.
fn promised(x: f64, back: f64, used: Used) -> bool {
    if !back.is_finite() {
        return false;
    }
    let difference = BigInt::from((exact(x) - exact(back)).magnitude().clone());
    match used {
        Used::Absolute(b) => difference <= exact(b),
        Used::PointwiseRelative(r) => difference << 1074 <= exact(r) * exact(x.abs()),
    }
}

/// Encodes, decodes and judges every value; returns frame and reconstruction.
fn check<S: Scalar>(values: &[S], bound: Bound, fill: Option<u64>) -> (Vec<u8>, Vec<S>) {
    let (bytes, used) = encode(values, bound, fill, 1);
    let back: Vec<S> = decode(&bytes, values.len(), 1).unwrap();
    for (i, (&x, &y)) in values.iter().zip(&back).enumerate() {
        let exactly = !x.to_f64().is_finite() || fill == Some(x.bits().to_u64()) || used == Used::Absolute(0.0);
        let (bits, got) = (x.bits().to_u64(), y.bits().to_u64());
        if exactly {
            assert_eq!(bits, got, "value {i} of {bound:?}: {bits:#x} came back as {got:#x}");
        } else {
            assert!(
                promised(x.to_f64(), y.to_f64(), used),
                "value {i} of {bound:?}, {used:?}: {x:?} = {bits:#x} came back as {y:?} = {got:#x}"
            );
        }
    }
    (bytes, back)
}

const BOUNDS: [Bound; 12] = [
    Bound::Absolute(0.5),
    Bound::Absolute(1e-3),
    Bound::Absolute(1e-40),
    Bound::Absolute(1e-310),
    Bound::Absolute(1e300),
    Bound::Relative(1e-2),
    Bound::Relative(1e-6),
    Bound::Relative(1e-15),
    Bound::PointwiseRelative(1e-2),
    Bound::PointwiseRelative(1e-7),
    Bound::PointwiseRelative(1e-17),
    Bound::Psnr(60.0),
];

/// Numbers made to break arithmetic, and a few ordinary ones.
fn hostile<S: Scalar>() -> Vec<S> {
    let one = S::Bits::from_u8(1);
    let nan = S::INFINITY.bits().plus(one);
    let mut v = vec![S::ZERO, -S::ZERO, S::INFINITY, -S::INFINITY];
    for bits in [one, S::Bits::from_u8(3), S::INFINITY.bits().minus(one), nan, nan.plus(S::Bits::from_u8(0x55))] {
        v.extend([S::of_bits(bits), -S::of_bits(bits)]);
    }
    let least = S::of_bits(S::Bits::from_u8(1) << S::MANTISSA);
    let below = S::of_bits(least.bits().minus(one));
    v.extend([least, below, -least]);
    for x in [1.0, -1.0, 0.1, 1e-3, 1e20, -3e38, 9.96921e36, 123456.789, 0.5, 1.5, 2.5, 1.0 + 1e-7, 1e-45, 7e-39] {
        v.push(S::from_f64(x));
    }
    v
}

/// Chunks of hostile numbers in several mixtures with smooth ones.
fn mixtures<S: Scalar>() -> Vec<Vec<S>> {
    let h = hostile::<S>();
    let smooth = |i: usize| S::from_f64((i as f64 * 0.01).sin() * 100.0 + 250.0);
    let mut all = vec![h.clone(), h.iter().cycle().take(300).copied().collect()];
    for every in [2, 3, 17, 129] {
        all.push((0..700).map(|i| if i % every == 0 { h[i / every % h.len()] } else { smooth(i) }).collect());
    }
    for &x in &h {
        all.push(vec![x; 131]);
        all.push((0..260).map(|i| if i == 129 { x } else { smooth(i) }).collect());
        all.push((0..128).map(|i| if i % 2 == 0 { x } else { S::ZERO }).collect());
        all.push((0..128).map(|i| if i % 2 == 0 { x } else { S::from_f64(1.0) }).collect());
    }
    all
}

fn hostile_values_keep_the_bound<S: Scalar>() {
    for values in mixtures::<S>() {
        for bound in BOUNDS {
            check(&values, bound, None);
            check(&values, bound, Some(values[0].bits().to_u64()));
        }
    }
}

#[test]
fn hostile_f32_keep_the_bound() {
    hostile_values_keep_the_bound::<f32>();
}

#[test]
fn hostile_f64_keep_the_bound() {
    hostile_values_keep_the_bound::<f64>();
}

#[test]
fn every_length_around_block_and_tile_works() {
    for n in [1, 2, 3, 127, 128, 129, 255, 257, 1009, 4095, 4096, 4097, 8191, 12289] {
        let wave: Vec<f32> = (0..n).map(|i| (i as f32 * 0.02).sin()).collect();
        let steep: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin() * f64::from(i as u32 % 300)).collect();
        for bound in [Bound::Absolute(1e-3), Bound::Relative(1e-4), Bound::PointwiseRelative(1e-3)] {
            check(&wave, bound, None);
            check(&steep, bound, None);
        }
    }
}

#[test]
fn one_value_or_one_value_beside_nan_is_exact() {
    for x in [3.25f32, -0.0, 1e-42, f32::MAX] {
        let mut values = vec![x; 4500];
        check(&values, Bound::Relative(1e-2), None);
        values.iter_mut().step_by(7).for_each(|v| *v = f32::NAN);
        let (bytes, _) = check(&values, Bound::Relative(1e-2), None);
        assert!(bytes.len() < 2000, "{} bytes for one value and NaN", bytes.len());
        values[200] = -x;
        check(&values, Bound::Absolute(f64::from(x.abs()) * 1e-3 + 1e-300), None);
    }
    // Zeros of both signs: the range is zero, so they keep their signs.
    let zeros: Vec<f64> = (0..300).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect();
    check(&zeros, Bound::Relative(0.1), None);
    check(&zeros, Bound::PointwiseRelative(0.1), None);
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
fn bytes_depend_on_neither_threads_nor_vector_unit() {
    let h = hostile::<f32>();
    let value = |i: usize| if i.is_multiple_of(331) { h[i % h.len()] } else { ((i * i) as f32 * 1e-6).sin() * 7.0 };
    let values: Vec<f32> = (0..500_000).map(value).collect();
    for bound in BOUNDS {
        let (one, used) = encode(&values, bound, None, 1);
        for threads in [2, 3, 8] {
            assert_eq!(encode(&values, bound, None, threads).0, one);
            let same = |a: &f32, b: &f32| a.to_bits() == b.to_bits();
            let (a, b) = (decode::<f32>(&one, 500_000, 1).unwrap(), decode::<f32>(&one, 500_000, threads).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| same(a, b)));
        }
        cpu::tests::every_level_gives_the_same(&values, used);
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

/// A small frame with every kind of block: zero, constant, raw, coded with and without codes, all sorts of outliers.
fn every_kind() -> Vec<f32> {
    let mut v = vec![0.0f32; 128];
    v.extend([5.0; 128]);
    v.extend((0..128).map(|i| f32::from_bits(0x0123_4567u32.wrapping_mul(2 * i + 1) | 0x4000_0000)));
    v.extend((0..128).map(|i| i as f32));
    v.extend((0..128).map(|i| ((i * 7919) % 251) as f32));
    v.extend((0..128).map(|i| if i % 9 == 0 { f32::NAN } else { 0.01 }));
    v.extend((0..128).map(|i| if i % 50 == 0 { f32::INFINITY * (i as f32 - 60.0) } else { i as f32 * 0.3 }));
    v.extend((0..77).map(|i| i as f32 * i as f32));
    v
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    let values = every_kind();
    let (bytes, _) = check(&values, Bound::Absolute(0.25), None);
    for cut in 0..bytes.len() {
        decode::<f32>(&bytes[..cut], values.len(), 1).expect_err("a truncated frame");
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            decode::<f32>(&damaged, values.len(), 1).expect_err(&format!("byte {at} xor {flip:#x}"));
        }
    }
}

fn reseal(bytes: &mut [u8]) {
    let sum = checksum::frame(bytes, 1);
    bytes[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 8].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn damage_behind_a_right_checksum_never_panics() {
    let values = every_kind();
    let wide: Vec<f64> = values.iter().map(|&v| f64::from(v) * 1.000_000_1).collect();
    let mut refused = 0;
    for bound in [Bound::Absolute(0.25), Bound::PointwiseRelative(1e-3)] {
        let (narrow_bytes, _) = encode(&values, bound, None, 1);
        let (wide_bytes, _) = encode(&wide, bound, None, 1);
        for (bytes, narrow) in [(narrow_bytes, true), (wide_bytes, false)] {
            for at in 10..bytes.len() {
                for flip in [1, 2, 4, 0x10, 0x40, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    reseal(&mut damaged);
                    let failed = if narrow {
                        decode::<f32>(&damaged, values.len(), 1).is_err()
                    } else {
                        decode::<f64>(&damaged, wide.len(), 1).is_err()
                    };
                    refused += usize::from(failed);
                }
            }
        }
    }
    assert!(refused > 3000, "only {refused} damaged frames were refused");
}

#[test]
fn what_the_format_forbids_is_named() {
    let values: Vec<f32> = (0..300).map(|i| i as f32).collect();
    let (good, _) = encode(&values, Bound::Absolute(0.25), None, 1);
    let lens = Frame::open(&good, 1).unwrap().section_lens();
    let payload = good.len() - lens[1];
    let table = payload - 8;
    let refuse = |change: &dyn Fn(&mut [u8]), word: &str| {
        let mut bytes = good.clone();
        change(&mut bytes);
        reseal(&mut bytes);
        let text = decode::<f32>(&bytes, 300, 1).expect_err(word).to_string();
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    };
    refuse(&|b| b[table] += 1, "tile");
    refuse(&|b| b[table] -= 1, "the last tile ends at");
    refuse(&|b| b[payload] = 63, "kind 0x3f");
    refuse(&|b| b[payload] = 0x40, "kind 0x40");
    refuse(&|b| b[payload] = 0x82, "kind 0x82");
    refuse(&|b| b[payload + 2] |= 0x80, "bitmap");
    refuse(&|b| b[payload + 3] = 1, "filled up with zeros");
    refuse(&|b| b[payload] = 1, "blocks need");
    refuse(&|b| b[payload + 16 + 16] |= 3, "code above 1");
}

fn arb<S: Scalar>() -> impl Strategy<Value = Vec<S>> {
    let ordinary = (any::<u64>(), 1usize..6000, -30i32..30, 0usize..4).prop_map(|(seed, n, scale, kind)| {
        let mut state = seed | 1;
        let mut walk = 0.0f64;
        let next = move |i: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = ((state >> 33) as f64 / f64::from(1 << 30)) - 1.0;
            walk += noise;
            let x = match kind {
                0 => noise,
                1 => walk,
                2 => (i as f64 * 0.01).sin() + noise * 1e-3,
                _ => {
                    if state >> 60 == 0 {
                        walk * 1e6
                    } else {
                        walk
                    }
                }
            };
            S::from_f64(x * 2f64.powi(scale))
        };
        (0..n).map(next).collect()
    });
    let wild = (any::<Vec<u64>>(), prop::collection::vec(0usize..34, 0..400)).prop_map(|(bits, picks)| {
        let h = hostile::<S>();
        let mut v: Vec<S> = bits.into_iter().map(|b| S::of_bits(S::Bits::from_u64(b))).collect();
        v.extend(picks.iter().map(|&p| h[p % h.len()]));
        v.push(S::ZERO);
        v
    });
    prop_oneof![3 => ordinary, 1 => wild]
}

fn arb_bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (-40f64..40.0).prop_map(|e| Bound::Absolute(2f64.powf(e))),
        (-12i32..12).prop_map(|e| Bound::Absolute(2f64.powi(e))),
        (-9f64..-0.1).prop_map(|e| Bound::Relative(10f64.powf(e))),
        (-9f64..-0.1).prop_map(|e| Bound::PointwiseRelative(10f64.powf(e))),
        (1f64..200.0).prop_map(Bound::Psnr),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_f32_keep_the_bound(values in arb::<f32>(), bound in arb_bound(), filled: bool) {
        let fill = filled.then(|| values[values.len() / 2].bits().to_u64());
        let (bytes, back) = check(&values, bound, fill);
        prop_assert!(bytes.len() <= values.len() * 4 + values.len() / 64 + 200);
        check(&back, bound, fill);
    }

    #[test]
    fn any_f64_keep_the_bound(values in arb::<f64>(), bound in arb_bound(), filled: bool) {
        let fill = filled.then(|| values[values.len() / 2].bits().to_u64());
        let (bytes, back) = check(&values, bound, fill);
        prop_assert!(bytes.len() <= values.len() * 8 + values.len() / 64 + 200);
        check(&back, bound, fill);
    }

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

    #[test]
    fn any_bytes_behind_a_right_checksum_never_panic(
        mut section in prop::collection::vec(any::<u8>(), 0..3000),
        n in 1usize..5000,
        ends in prop::collection::vec(0u32..800, 2),
        right in 0u8..4,
        mode in 1u8..5,
        wide: bool,
    ) {
        section.resize(section.len().next_multiple_of(4), 0);
        let tiles = n.div_ceil(4096);
        let (mode, size) = (Mode::of(mode).unwrap(), if wide { 8 } else { 4 });
        let dtype = if wide { Dtype::F64 } else { Dtype::F32 };
        let extents = Extents::new(&[n as u64]).unwrap();
        let header = Header { codec: CodecId::SZX, mode, used: 0.01, dtype, extents, raw_len: (n * size) as u64 };
        let mut out = Vec::new();
        let mut w = crate::frame::Writer::new(&mut out, header, 2).unwrap();
        // Mostly kinds of which some are allowed, so that the parts behind them are reached.
        if right > 0 {
            const KINDS: [u8; 8] = [0, 1, 2, 11, 20, 64 + 12, 128 + 11, 193];
            let kinds = section.iter_mut().take(32.min(n.div_ceil(128)));
            kinds.for_each(|b| *b = KINDS[usize::from(*b % 8)]);
        }
        let last = section.len() as u32 / 4;
        w.section(|o| (0..tiles).try_for_each(|t| {
            let end = if t + 1 == tiles { last } else { ends[t % 2].min(last) };
            crate::memory::append(o, &end.to_le_bytes())
        })).unwrap();
        w.section(|o| crate::memory::append(o, &section)).unwrap();
        w.seal(1);
        if wide {
            let _ = decode::<f64>(&out, n, 2);
        } else {
            let _ = decode::<f32>(&out, n, 2);
        }
    }
}
