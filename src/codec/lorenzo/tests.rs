// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds judged in exact arithmetic, hostile values, rewriting, damage behind a right checksum, and one answer for
//! all.

use super::cpu;
use super::format::{Class, Kind, Predictor};
use crate::bound::{self, Used};
use crate::checksum;
use crate::codec::chunk::Chunk;
use crate::codec_id::CodecId;
use crate::constants::CHECKSUM_OFFSET;
use crate::frame::Frame;
use crate::params::{Bound, Codec, Dtype, Params, Request};
use crate::scalar::{Bits, Scalar};
use num_bigint::BigInt;
use proptest::prelude::*;

/// What a chunk is and how it is to be coded.
#[derive(Clone, Copy)]
struct Case<'a> {
    dims: &'a [u64],
    bound: Bound,
    fill: Option<u64>,
    threads: usize,
}

impl<'a> Case<'a> {
    fn new(dims: &'a [u64], bound: Bound) -> Self {
        Case { dims, bound, fill: None, threads: 1 }
    }

    fn encode<S: Scalar>(&self, values: &[S]) -> (Vec<u8>, Used) {
        let dtype = if S::SIZE == 4 { Dtype::F32 } else { Dtype::F64 };
        let mut params = Params::new(Request { codec: Codec::Lorenzo, bound: self.bound }, dtype, self.dims).unwrap();
        params.fill = self.fill;
        let used = bound::resolve(self.bound, || bound::range(values, self.fill));
        let raw = bytemuck::cast_slice(values);
        let chunk = Chunk { params: &params, raw, threads: self.threads, used: None, kept: None };
        let mut out = Vec::new();
        let header = chunk.header(CodecId::LORENZO, Some(used));
        cpu::encode(values, &chunk, used, header, &mut out).unwrap();
        (out, used)
    }

    /// Encodes, decodes and judges every value; returns frame and reconstruction.
    fn check<S: Scalar>(&self, values: &[S]) -> (Vec<u8>, Vec<S>) {
        let (bytes, used) = self.encode(values);
        let back: Vec<S> = decode(&bytes, values.len(), 1).unwrap();
        for (i, (&x, &y)) in values.iter().zip(&back).enumerate() {
            let (bits, got) = (x.bits().to_u64(), y.bits().to_u64());
            let fill = self.fill == Some(bits);
            if !x.to_f64().is_finite() || fill || used == Used::Absolute(0.0) {
                assert_eq!(bits, got, "value {i} of {:?}: {bits:#x} came back as {got:#x}", self.bound);
            } else {
                assert!(
                    promised(x.to_f64(), y.to_f64(), used),
                    "value {i} of {:?}, {used:?}: {x:?} = {bits:#x} came back as {y:?} = {got:#x}",
                    self.bound
                );
            }
        }
        // A frame that is not smaller than its values is not kept, but must not be far above them either.
        let most = values.len() * S::SIZE + values.len().div_ceil(100) + 300;
        assert!(bytes.len() <= most, "{} bytes for {} values", bytes.len(), values.len());
        (bytes, back)
    }
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

/// Whether the promise holds for one value, judged without any rounding.
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
    let nan = S::from_f64(f64::INFINITY).bits().plus(S::Bits::from_u8(1));
    let least = S::of_bits(S::Bits::from_u8(1) << S::MANTISSA);
    let bits = [
        S::Bits::from_u8(1),
        S::Bits::from_u8(3),
        S::from_f64(f64::INFINITY).bits(),
        S::from_f64(f64::INFINITY).bits().minus(S::Bits::from_u8(1)),
        nan,
        nan.plus(S::Bits::from_u8(0x55)),
        least.bits(),
        least.bits().minus(S::Bits::from_u8(1)),
        S::Bits::ZERO,
    ];
    let numbers = [1.0, 0.1, 1e-3, 1e20, -3e38, 9.96921e36, 123456.789, 0.5, 1.5, 2.5, 1.0 + 1e-7, 1e-45, 7e-39];
    bits.into_iter()
        .flat_map(|b| [S::of_bits(b), -S::of_bits(b)])
        .chain(numbers.into_iter().flat_map(|x| [S::from_f64(x), S::from_f64(-x)]))
        .collect()
}

/// Chunks of hostile numbers in several mixtures with smooth ones.
fn mixtures<S: Scalar>(n: usize) -> Vec<Vec<S>> {
    let h = hostile::<S>();
    let smooth = |i: usize| S::from_f64((i as f64 * 0.01).sin() * 100.0 + 250.0);
    let mut all = vec![h.iter().cycle().take(n).copied().collect()];
    for every in [2, 3, 17, 129] {
        all.push((0..n).map(|i| if i % every == 0 { h[i / every % h.len()] } else { smooth(i) }).collect());
    }
    for &x in &h {
        all.push(vec![x; n]);
        all.push((0..n).map(|i| if i == n / 2 { x } else { smooth(i) }).collect());
        all.push((0..n).map(|i| if i % 2 == 0 { x } else { S::ZERO }).collect());
    }
    all
}

fn hostile_values_keep_the_bound<S: Scalar>() {
    for dims in [&[300][..], &[13, 29], &[3, 5, 17]] {
        let n = dims.iter().product::<u64>() as usize;
        for values in mixtures::<S>(n) {
            for bound in BOUNDS {
                let case = Case::new(dims, bound);
                case.check(&values);
                Case { fill: Some(values[0].bits().to_u64()), ..case }.check(&values);
            }
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

/// A field of any shape: a wave, noise, steps, a front with zeros ahead.
fn field<S: Scalar>(kind: usize, dims: &[u64]) -> Vec<S> {
    let n = dims.iter().product::<u64>() as usize;
    let last = *dims.last().unwrap_or(&1) as usize;
    let mut state = 12345u32;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let noise = f64::from(state >> 8) / f64::from(1 << 24) - 0.5;
            let (x, y) = ((i % last) as f64, (i / last) as f64);
            let wave = (x * 0.11).sin() * 3.0 + (y * 0.05).cos() * 5.0;
            S::from_f64(match kind {
                0 => wave,
                1 => wave + 0.1 * noise,
                2 => 1000.0 * noise,
                3 => f64::from(i as u32 / 97 % 13),
                4 if x + y > 60.0 => 0.0,
                4 => (-(x + y - 30.0) * (x + y - 30.0) / 40.0).exp() * 20.0,
                _ => 273.15 + wave + 1e-4 * noise,
            })
        })
        .collect()
}

const SHAPES: [&[u64]; 12] = [
    &[1],
    &[7],
    &[8191],
    &[8193],
    &[20_000],
    &[3, 3000],
    &[70, 200],
    &[1, 129, 65],
    &[20, 33, 35],
    &[10, 700, 3],
    &[2, 3, 17, 40],
    &[16, 16, 32],
];

#[test]
fn every_shape_keeps_the_bound() {
    for dims in SHAPES {
        for kind in 0..6 {
            for bound in [Bound::Absolute(1e-2), Bound::Relative(1e-3), Bound::PointwiseRelative(1e-3)] {
                let case = Case::new(dims, bound);
                case.check(&field::<f32>(kind, dims));
                case.check(&field::<f64>(kind, dims));
            }
        }
    }
}

/// Frames of a field beside `offset` times its range, and of one without, neither of more than `share` above the other.
fn offset_costs_nothing(dims: &[u64], offset: f64, bound: f64, share: f64) {
    let at = |offset: f64| -> Vec<f64> {
        let values = field::<f64>(1, dims);
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
    let plain: Vec<f64> = field::<f64>(1, dims).iter().map(|x| 1.0 + 1e-9 * x).collect();
    let len = |values: &[f64]| Case::new(dims, Bound::Absolute(1e-12)).check(values).0.len();
    for (every, rare) in [(10, 1e20), (2, f64::NAN), (3, f64::INFINITY), (5, 0.0), (5, -7.0), (2, 1e20)] {
        let some: Vec<f64> =
            plain.iter().enumerate().map(|(i, &x)| if i / 8 % every == 0 { rare } else { x }).collect();
        let most = len(&plain) + 80_000 / every + 2000;
        assert!(len(&some) < most, "{rare}: {} bytes, {} without", len(&some), len(&plain));
    }
}

/// Encodes again what came back, and wants every value kept.
fn rewriting_keeps<S: Scalar>(case: Case<'_>, values: &[S]) {
    let (_, once) = case.check(values);
    let (bytes, twice) = case.check(&once);
    for (i, (a, b)) in once.iter().zip(&twice).enumerate() {
        let (a, b) = (a.bits().to_u64(), b.bits().to_u64());
        assert_eq!(a, b, "value {i} of {:?} with {:?}: {a:#x} became {b:#x}", case.dims, case.bound);
    }
    assert_eq!(case.check(&twice).0, bytes);
}

#[test]
fn rewriting_keeps_every_value() {
    for dims in SHAPES {
        for kind in 0..6 {
            for b in [1e-6, 1e-3, 0.25, 40.0] {
                let case = Case::new(dims, Bound::Absolute(b));
                rewriting_keeps(case, &field::<f32>(kind, dims));
                rewriting_keeps(case, &field::<f64>(kind, dims));
                let beside = |offset: f64| field::<f64>(kind, dims).iter().map(|x| x + offset * b).collect::<Vec<_>>();
                rewriting_keeps(case, &beside(1e10));
                rewriting_keeps(case, &beside(-3e7).iter().map(|&x| x as f32).collect::<Vec<_>>());
            }
        }
    }
    for values in mixtures::<f32>(500) {
        for b in [1e-40, 1e-3, 0.5, 1e30] {
            let case = Case::new(&[25, 20], Bound::Absolute(b));
            // Of larger ones the type does not tell multiples of the unit, but for outliers.
            let unit = 2.0 * b / 257.0;
            let told = |v: &f32| match f64::from(v.abs()) / unit {
                units if units > 2f64.powi(23) && units <= 2f64.powi(30) => 1.0,
                _ => *v,
            };
            let values: Vec<f32> = values.iter().map(told).collect();
            rewriting_keeps(case, &values);
            rewriting_keeps(Case { fill: Some(values[1].bits().to_u64()), ..case }, &values);
        }
    }
}

/// Kinds of a frame's tiles.
fn kinds(bytes: &[u8]) -> Vec<Kind> {
    let frame = Frame::open(bytes, 1).unwrap();
    let [_, kinds, ..] = frame.sections::<4>().unwrap();
    kinds.iter().map(|&k| Kind::unpack(k, false).unwrap()).collect()
}

#[test]
fn every_class_and_predictor_is_taken_where_it_is_best() {
    let (plane, dims) = (&[256, 256], &[32, 32, 64]);
    let case = Case::new(plane, Bound::Absolute(1e-3));
    let (bytes, _) = case.check(&field::<f32>(0, plane));
    let smooth = |k: &Kind| matches!(k.predictor, Predictor::Interpolation(_)) && k.class == Class::Huffman;
    assert!(kinds(&bytes).iter().any(smooth));
    let (bytes, _) = case.check(&vec![0f32; 1 << 16]);
    assert!(kinds(&bytes).iter().all(|k| k.class == Class::Empty));
    assert!(bytes.len() < 200, "{} bytes for zeros", bytes.len());
    let random: Vec<f32> = (0..1u32 << 16).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect();
    let (bytes, _) = case.check(&random);
    assert!(kinds(&bytes).iter().all(|&k| k == Kind::RAW));
    // One tile of wide noise among smooth ones has a distribution of its own.
    let mut mixed = field::<f32>(5, &[1 << 16]);
    mixed[..8192].copy_from_slice(&field::<f32>(2, &[8192]));
    let (bytes, _) = Case::new(&[1 << 16], Bound::Absolute(1e-3)).check(&mixed);
    assert_eq!(kinds(&bytes)[0].class, Class::FixedWidth);
    let ramp: Vec<f32> =
        (0..1 << 16).map(|i| (i % 64 * 7 + i / 64 % 32 * 5) as f32 + (i * 7 % 11) as f32 * 0.1).collect();
    let (bytes, _) = Case::new(dims, Bound::Absolute(0.1)).check(&ramp);
    assert!(kinds(&bytes).iter().any(|k| matches!(k.predictor, Predictor::Lorenzo(a) if a != 0)));
}

#[test]
fn masks_and_constants_cost_next_to_nothing() {
    let fill = 1e20f32;
    let dims = &[200, 500];
    let values: Vec<f32> = (0..100_000).map(|i| if i / 50_000 == 0 { fill } else { (i as f32 * 0.01).cos() }).collect();
    let case = Case { fill: Some(fill.to_bits().into()), ..Case::new(dims, Bound::Relative(1e-3)) };
    let (with, _) = case.check(&values);
    let (without, _) = Case::new(&[100, 500], Bound::Relative(1e-3)).check(&values[50_000..]);
    assert!(with.len() < without.len() + 800, "{} bytes, {} without fill", with.len(), without.len());
    for x in [3.25f32, -0.0, 1e-42, f32::MAX, f32::NAN] {
        let (bytes, _) = Case::new(dims, Bound::Relative(1e-2)).check(&vec![x; 100_000]);
        assert!(bytes.len() < 600, "{} bytes for one value, {x}", bytes.len());
    }
}

#[test]
fn bytes_and_values_do_not_depend_on_threads() {
    for dims in SHAPES {
        for kind in [0, 1, 2, 4] {
            let case = Case::new(dims, Bound::Relative(1e-3));
            let values = field::<f32>(kind, dims);
            let (bytes, back) = case.check(&values);
            for threads in [2, 3, 8] {
                assert_eq!(Case { threads, ..case }.encode(&values).0, bytes);
                assert_eq!(decode::<f32>(&bytes, values.len(), threads).unwrap(), back);
            }
        }
    }
}

/// Frames that have all there is to damage: streams, outliers, both predictors, fixed width.
fn small_frames() -> Vec<(Vec<u8>, usize)> {
    let mut frames = Vec::new();
    let mut add = |dims: &[u64], bound: Bound, change: &dyn Fn(usize, f32) -> f32| {
        let values: Vec<f32> = field::<f32>(1, dims).iter().enumerate().map(|(i, &x)| change(i, x)).collect();
        frames.push((Case::new(dims, bound).check(&values).0, values.len()));
    };
    add(&[9, 60], Bound::Absolute(1e-2), &|i, x| if i % 50 == 7 { f32::NAN } else { x });
    add(&[700], Bound::Absolute(0.05), &|_, x| x);
    add(&[4, 8, 9], Bound::Relative(1e-2), &|i, x| if i < 100 { f32::INFINITY } else { x });
    add(&[300], Bound::PointwiseRelative(1e-2), &|_, x| x);
    add(&[10], Bound::Absolute(0.5), &|_, x| x * 1e4);
    frames
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    for (bytes, n) in small_frames() {
        for cut in 0..bytes.len() {
            decode::<f32>(&bytes[..cut], n, 1).unwrap_err();
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut b = bytes.clone();
                b[at] ^= flip;
                decode::<f32>(&b, n, 1).unwrap_err();
            }
        }
    }
}

/// Puts the right checksum back, so that the damage reaches the codec.
fn reseal(bytes: &mut [u8]) {
    let sum = checksum::frame(bytes, 1);
    bytes[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 8].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn damage_behind_a_right_checksum_never_panics() {
    for (bytes, n) in small_frames() {
        for at in 56..bytes.len() {
            for flip in 1..=255 {
                let mut b = bytes.clone();
                b[at] ^= flip;
                reseal(&mut b);
                if let Err(e) = decode::<f32>(&b, n, 1) {
                    assert!(e.to_string().len() > 30, "{e}");
                }
            }
        }
    }
}

#[test]
fn a_malformed_codebook_is_named() {
    let (bytes, n) = small_frames().swap_remove(1);
    let frame = Frame::open(&bytes, 1).unwrap();
    let [head, ..] = frame.sections::<4>().unwrap();
    let at = head.as_ptr() as usize - bytes.as_ptr() as usize;
    for (lengths, name) in [(0x11u8, "over-full"), (0xee, "too long"), (0, "full")] {
        let mut b = bytes.clone();
        b[at + 1] = lengths;
        reseal(&mut b);
        let e = decode::<f32>(&b, n, 1).unwrap_err().to_string();
        assert!(e.contains("codebook") && e.contains(name), "{e}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_damage_ends_in_an_error_or_in_values(
        which in 0usize..5,
        changes in prop::collection::vec((0usize..1 << 16, any::<u8>()), 1..12),
    ) {
        let frames = small_frames();
        let (bytes, n) = &frames[which];
        let mut b = bytes.clone();
        for (at, to) in changes {
            let at = 56 + at % (b.len() - 56);
            b[at] = to;
        }
        reseal(&mut b);
        let _ = decode::<f32>(&b, *n, 2);
    }

    #[test]
    fn any_bits_keep_any_bound_and_every_value_when_rewritten(
        bits in prop::collection::vec(any::<u32>(), 1..400),
        exponent in -45i32..38,
        width in 1u64..30,
    ) {
        let width = width.min(bits.len() as u64);
        let dims = [bits.len() as u64 / width, width];
        let values: Vec<f32> =
            bits[..(dims[0] * dims[1]) as usize].iter().map(|&b| f32::from_bits(b)).collect();
        rewriting_keeps(Case::new(&dims, Bound::Absolute(10f64.powi(exponent))), &values);
        Case::new(&dims, Bound::PointwiseRelative(10f64.powi(-(exponent.abs() % 8) - 1))).check(&values);
    }

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
        rewriting_keeps(case, &values);
        let narrow: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        rewriting_keeps(case, &narrow);
        let fill = Some(u64::from(narrow[narrow.len() / 2].to_bits()));
        rewriting_keeps(Case { fill, ..case }, &narrow);
    }
}
