// SPDX-License-Identifier: MIT OR Apache-2.0
//! The promise of every mode, judged in whole numbers of any length: no rounding, no code shared with the encoder.
//!
//! Every finite f64 is a whole multiple of 2^-1074, every product of two of them one of 2^-2148.

use crate::common::generate::{self, Random};
use crate::common::{fuzz, rewritten};
use h5z_gpu::frame::Frame;
use h5z_gpu::{Bound, Codec, Dtype, Engine, Keep, Mode, Params, Request};
use num_bigint::{BigInt, BigUint, Sign};
use proptest::prelude::*;

/// x · 2^1074, for a finite x.
fn whole(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (field, fraction) = (bits >> 52 & 0x7FF, bits & ((1 << 52) - 1));
    assert_ne!(field, 0x7FF, "a finite number");
    let magnitude = match field {
        0 => BigUint::from(fraction),
        _ => BigUint::from(fraction | 1 << 52) << (field - 1),
    };
    BigInt::from_biguint(if x.is_sign_negative() { Sign::Minus } else { Sign::Plus }, magnitude)
}

fn size(d: Dtype) -> usize {
    d.size.into()
}

/// Bits of element `k`.
fn bits(raw: &[u8], d: Dtype, k: usize) -> u64 {
    let mut b = raw[k * size(d)..(k + 1) * size(d)].to_vec();
    if d.big_endian {
        b.reverse();
    }
    b.resize(8, 0);
    u64::from_le_bytes(b.try_into().unwrap())
}

fn value(bits: u64, d: Dtype) -> f64 {
    if d.size == 2 {
        let (mantissa, e) = (f64::from(1u32 << d.mantissa_bits), (bits & 0x7FFF) >> d.mantissa_bits);
        let fraction = (bits & ((1 << d.mantissa_bits) - 1)) as f64 / mantissa;
        let bias = (1 << (d.exponent_bits - 1)) - 1;
        let x = match e as i32 {
            0 => fraction * 2f64.powi(1 - bias),
            e if e == 2 * bias + 1 => {
                if fraction == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            e => (1.0 + fraction) * 2f64.powi(e - bias),
        };
        return if bits >> 15 == 1 { -x } else { x };
    }
    if d.size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

/// Multiplies every finite number by 2^k, rounding to the type.
fn scale(raw: &mut [u8], d: Dtype, k: i32) {
    let factor = |k: i32| f64::from_bits(((1023 + k) as u64) << 52);
    for i in 0..raw.len() / size(d) {
        let x = value(bits(raw, d, i), d);
        if !x.is_finite() {
            continue;
        }
        let y = x * factor(k / 2) * factor(k - k / 2);
        let mut b = if d.size == 4 { (y as f32).to_le_bytes().to_vec() } else { y.to_le_bytes().to_vec() };
        if d.big_endian {
            b.reverse();
        }
        raw[i * size(d)..(i + 1) * size(d)].copy_from_slice(&b);
    }
}

/// Whether 10^(tenths/100) · b ≤ a, for whole a and b: both sides to the 100th power.
fn decibels_hold(a: &BigUint, b: &BigUint, tenths: u32) -> bool {
    if b.bits() == 0 {
        return true;
    }
    // Equal factors of two change nothing and make the powers shorter.
    let twos = a.trailing_zeros().unwrap_or(0).min(b.trailing_zeros().unwrap_or(0));
    let (a, b) = (a >> twos, b >> twos);
    // Far from the limit one bit count decides.
    let (log_a, log_b) = (a.bits() as f64, b.bits() as f64 + f64::from(tenths) / 100.0 * std::f64::consts::LOG2_10);
    if log_a > log_b + 3.0 {
        return true;
    }
    a.pow(100) >= BigUint::from(10u32).pow(tenths) * b.pow(100)
}

/// Judges a whole chunk; the text says which value breaks which promise.
fn judge(request: Request, fill: Option<u64>, d: Dtype, raw: &[u8], out: &[u8], used: f64) -> Result<(), String> {
    let n = raw.len() / size(d);
    let special = |k: usize| {
        let b = bits(raw, d, k);
        !value(b, d).is_finite() || fill == Some(b)
    };
    let finite: Vec<usize> = (0..n).filter(|&k| !special(k)).collect();
    for k in (0..n).filter(|&k| special(k)) {
        if bits(raw, d, k) != bits(out, d, k) {
            return Err(format!("value {k}: {:#x} came back as {:#x}", bits(raw, d, k), bits(out, d, k)));
        }
    }
    let x = |k: usize| value(bits(raw, d, k), d);
    let spread = {
        let low = finite.iter().map(|&k| x(k)).fold(f64::INFINITY, f64::min);
        let high = finite.iter().map(|&k| x(k)).fold(f64::NEG_INFINITY, f64::max);
        if low <= high { whole(high) - whole(low) } else { BigInt::ZERO }
    };
    let one = whole(1.0);
    // All limits as multiples of 2^-2148.
    let constant = match request.bound {
        Bound::Absolute(b) => Some(whole(b) * &one),
        Bound::Relative(r) => Some(whole(r) * &spread),
        // The frame states half of what is promised for numbers of 16 bits.
        Bound::Psnr(_) => Some(whole(if d.size == 2 { 2.0 * used } else { used }) * &one),
        Bound::PointwiseRelative(_) | Bound::Lossless => None,
    };
    if let Some(limit) = &constant
        && whole(used) * &one > *limit
    {
        return Err(format!("the frame states the bound {used:e}, more than was asked"));
    }
    let mut squares = BigUint::ZERO;
    // The default fill value stretches no range.
    let padding = fill.is_none().then_some(0);
    let ranged = || finite.iter().filter(|&&k| Some(bits(raw, d, k)) != padding).map(|&k| x(k));
    let (low, high) = (ranged().fold(f64::INFINITY, f64::min), ranged().fold(f64::NEG_INFINITY, f64::max));
    for &k in &finite {
        let y = value(bits(out, d, k), d);
        let is_same = bits(raw, d, k) == bits(out, d, k);
        let broken = [
            (Keep::SIGN, (x(k) > 0.0, x(k) < 0.0) != (y > 0.0, y < 0.0)),
            (Keep::ZERO, x(k) == 0.0 && !is_same),
            (Keep::RANGE, !is_same && (y < low || y > high || x(k) == low || x(k) == high || x(k) == 0.0)),
        ];
        if let Some((keep, _)) = broken.iter().find(|(keep, is_broken)| request.keep.has(*keep) && *is_broken) {
            return Err(format!("value {k}: {:e} came back as {y:e}, against {keep} of {low:e} to {high:e}", x(k)));
        }
        let why =
            || format!("value {k}: {:e} ({:#x}) came back as {y:e} ({:#x})", x(k), bits(raw, d, k), bits(out, d, k));
        if !y.is_finite() {
            return Err(why());
        }
        let difference = whole(x(k)) - whole(y);
        squares += difference.magnitude() * difference.magnitude();
        let scaled = BigInt::from(difference.magnitude().clone()) * &one;
        let held = match (&constant, request.bound) {
            (Some(limit), _) => scaled <= *limit,
            (None, Bound::PointwiseRelative(r)) => scaled <= whole(r) * BigInt::from(whole(x(k)).magnitude().clone()),
            _ => bits(raw, d, k) == bits(out, d, k),
        };
        if !held {
            return Err(why());
        }
    }
    if let Bound::Psnr(p) = request.bound {
        // PSNR = 20 log10(range / sqrt(squares / n)) ≥ p, so n · range² ≥ 10^(p/10) · squares.
        let peak = spread.magnitude() * spread.magnitude() * BigUint::from(finite.len());
        if !decibels_hold(&peak, &squares, (p * 10.0).round() as u32) {
            return Err(format!("PSNR below {p} dB"));
        }
    }
    Ok(())
}

/// One chunk through the public API, judged; returns the codec's number.
fn holds(request: Request, d: Dtype, dims: &[u64], fill: Option<u64>, raw: &[u8]) -> Result<u8, String> {
    let mut params = Params::new(request, d, dims).map_err(|e| e.to_string())?;
    params.fill = fill;
    let engine = Engine::with_threads(2);
    let frame = engine.encode(&params, raw);
    let header = Frame::open(&frame, 1).map_err(|e| e.to_string())?.header;
    let out = engine.decode(&frame, raw.len() as u64).map_err(|e| e.to_string())?;
    judge(request, fill, d, raw, &out, header.used)?;
    Ok(header.codec.number())
}

/// Half of the time nothing, else one of all sets, where the bound's mode takes it.
fn kept(bound: Bound, k: usize) -> Keep {
    if bound.mode().takes_keep() && k % 2 == 1 { Keep::new(1 + (k / 2 % 7) as u32).unwrap() } else { Keep::NONE }
}

const SIZES: [usize; 14] = [1, 2, 3, 31, 127, 128, 129, 255, 1000, 4095, 4096, 4097, 8192 + 5, 3 * 4096];

/// f32 and f64, then f16 and bfloat16.
fn all_dtypes() -> [Dtype; 8] {
    let be = |d: Dtype| Dtype { big_endian: true, ..d };
    let [a, b, c, d] = [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BFLOAT16];
    [a, b, be(a), be(b), c, d, be(c), be(d)]
}

fn dtypes() -> [Dtype; 4] {
    std::array::from_fn(|k| all_dtypes()[k])
}

/// The value 1e20 in the type, or one that numbers of 16 bits have.
fn fill_of(d: Dtype) -> u64 {
    match d.size {
        2 => 0x7B00,
        4 => 1e20f32.to_bits().into(),
        _ => 1e20f64.to_bits(),
    }
}

#[test]
fn every_mode_type_and_input_holds_its_promise() {
    let bounds = [
        Bound::Absolute(1e-3),
        Bound::Absolute(0.75),
        Bound::Absolute(1e30),
        Bound::Absolute(5e-324),
        Bound::Absolute(1.7e308),
        Bound::Relative(1e-2),
        Bound::Relative(1e-7),
        Bound::Relative(0.999),
        Bound::PointwiseRelative(1e-2),
        Bound::PointwiseRelative(1e-6),
        Bound::Psnr(40.0),
        Bound::Psnr(96.5),
        Bound::Lossless,
    ];
    let mut wrong = Vec::new();
    let mut codecs = [0; h5z_gpu::CodecId::NAMES.len()];
    for (k, bound) in bounds.into_iter().enumerate() {
        let requests: &[Codec] = match bound {
            Bound::Lossless => &[Codec::Auto, Codec::Ndzip, Codec::Planes, Codec::Fast, Codec::Small],
            Bound::PointwiseRelative(_) => &[Codec::Szx, Codec::Lorenzo, Codec::Dense],
            _ => &[Codec::Szx, Codec::Lorenzo, Codec::Planes, Codec::Dense],
        };
        for (d, &codec) in all_dtypes().into_iter().flat_map(|d| requests.iter().map(move |c| (d, c))) {
            for (g, name) in generate::NAMES.iter().enumerate() {
                for (s, &n) in SIZES.iter().enumerate().filter(|(s, _)| (s + g) % 3 == 0) {
                    for fill in [None, Some(fill_of(d))] {
                        // Prime lengths have one shape; the others take turns.
                        let side = [1, 2, 3, 4, 5, 7, 8, 16][(k + s + g) % 8];
                        let line = [n as u64];
                        let plane = [side as u64, (n / side) as u64];
                        let dims = if n % side == 0 { &plane[..] } else { &line };
                        let raw = generate::input(name, s as u64, d, dims, fill, n * size(d));
                        let keep = kept(bound, k + s + 3 * g);
                        match holds(Request { codec, bound, keep }, d, dims, fill, &raw) {
                            Ok(codec) => codecs[usize::from(codec)] += 1,
                            Err(e) => wrong
                                .push(format!("{codec:?} {bound:?} {keep} {d:?} {name} {dims:?} fill {fill:?}: {e}")),
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} broken, the first:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(
        [1, 2, 5, 7].iter().all(|&k| codecs[k] > 500),
        "frames by codec: {codecs:?}: hardly one of some was judged"
    );
}

#[test]
fn whatever_codec_the_writer_chooses_holds_its_promise() {
    let shapes: [&[u64]; 3] = [&[20_000], &[130, 140], &[26, 27, 28]];
    let bounds = [Bound::Absolute(0.03), Bound::Relative(1e-3), Bound::PointwiseRelative(1e-2), Bound::Psnr(50.0)];
    let mut codecs = [0; h5z_gpu::CodecId::NAMES.len()];
    for (t, d) in all_dtypes().into_iter().enumerate() {
        for (g, name) in ["wave", "noise", "masked", "sparse", "ramp", "constant", "packed"].iter().enumerate() {
            for (b, &bound) in bounds.iter().enumerate() {
                let dims = shapes[(t + g + b) % shapes.len()];
                let n = dims.iter().product::<u64>() as usize * size(d);
                let fill = Some(fill_of(d));
                let raw = generate::input(name, (t + b) as u64, d, dims, fill, n);
                for codec in [Codec::Auto, Codec::Fast, Codec::Small] {
                    let keep = kept(bound, t + g + b);
                    let codec = holds(Request { codec, bound, keep }, d, dims, fill, &raw)
                        .unwrap_or_else(|e| panic!("{codec:?} {keep} {name} {d:?} {dims:?} {bound:?}: {e}"));
                    codecs[usize::from(codec)] += 1;
                }
            }
        }
    }
    assert!(codecs[2] > 10 && codecs[5] > 10, "frames by codec: {codecs:?}");
}

#[test]
fn a_bound_of_the_values_own_size_is_held_at_every_exponent() {
    for d in dtypes() {
        let (low, high) = if d.size == 4 { (-148, 124) } else { (-1072, 1018) };
        for k in (low..high).step_by(if d.size == 4 { 3 } else { 23 }) {
            let n = 300;
            let mut raw = generate::input("wave", 5, d, &[n], None, n as usize * size(d));
            scale(&mut raw, d, k);
            let unit = f64::from_bits(((k + 1023).max(1) as u64) << 52);
            let absolute = [unit, unit * 1e-3, unit * 0.75].into_iter().filter(|b| *b > 0.0).map(Bound::Absolute);
            for bound in absolute.chain([Bound::PointwiseRelative(1e-3)]) {
                for codec in [Codec::Szx, Codec::Lorenzo, Codec::Planes, Codec::Dense]
                    .into_iter()
                    .filter(|c| c.takes(bound.mode()))
                {
                    let dims = if codec == Codec::Szx { &[n][..] } else { &[10, n / 10] };
                    holds(Request::new(codec, bound), d, dims, None, &raw)
                        .unwrap_or_else(|e| panic!("{codec:?} {d:?} 2^{k} {bound:?}: {e}"));
                }
            }
        }
    }
}

/// Values as far from their quanta as the bound allows, and a few bits farther: rounding to the type decides.
#[test]
fn values_next_to_half_steps_hold_the_bound() {
    let mut random = Random(7);
    let mut lossy = 0;
    for k in 0..120 {
        let d = dtypes()[k % 4];
        let bound = 1e-3 + random.unit();
        let most = if d.size == 4 { 21 } else { 28 };
        let mut raw = Vec::new();
        for _ in 0..1200 {
            let power = random.below(most + 1);
            let q = random.below(1 << power) as f64;
            let x = (2.0 * q + 1.0) * bound * if random.below(2) == 0 { 1.0 } else { -1.0 };
            let near = random.below(5) as u64;
            let mut b = if d.size == 4 {
                (u64::from((x as f32).to_bits()) + near - 2).to_le_bytes()[..4].to_vec()
            } else {
                (x.to_bits() + near - 2).to_le_bytes().to_vec()
            };
            if d.big_endian {
                b.reverse();
            }
            raw.extend(b);
        }
        for codec in [Codec::Szx, Codec::Lorenzo, Codec::Planes, Codec::Dense] {
            let request = Request::new(codec, Bound::Absolute(bound));
            let room =
                holds(request, d, &[30, 40], None, &raw).unwrap_or_else(|e| panic!("{codec:?} {d:?} {bound:e}: {e}"));
            lossy += u32::from(room > 0);
        }
    }
    assert!(lossy > 180, "{lossy} of 360");
}

#[test]
fn a_chunk_of_one_value_is_exact_under_a_relative_bound() {
    for d in all_dtypes() {
        for n in [1, 100, 5000] {
            let raw = generate::input("constant", 9, d, &[n], None, n as usize * size(d));
            for request in ["mode=rel,bound=0.5", "mode=rel,bound=0.5,codec=lorenzo"] {
                let params = Params::new(request.parse().unwrap(), d, &[n]).unwrap();
                let engine = Engine::with_threads(1);
                assert_eq!(engine.decode(&engine.encode(&params, &raw), raw.len() as u64).unwrap(), raw, "{request}");
            }
        }
    }
}

#[test]
fn zero_stays_zero_under_a_point_wise_bound() {
    let values: Vec<f32> = (0..5000).map(|i| if i % 7 < 4 { 0.0 } else { (i as f32 - 2500.0) * 1e-3 }).collect();
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    for request in ["mode=pw_rel,bound=0.1", "mode=pw_rel,bound=0.1,codec=lorenzo"] {
        let params = Params::new(request.parse().unwrap(), Dtype::F32, &[5000]).unwrap();
        let engine = Engine::with_threads(1);
        let out = engine.decode(&engine.encode(&params, &raw), raw.len() as u64).unwrap();
        for (k, (x, y)) in values.iter().zip(out.chunks_exact(4)).enumerate() {
            let y = f32::from_le_bytes(y.try_into().unwrap());
            assert!(*x != 0.0 || y == 0.0, "{request}: value {k}: 0 became {y:e}");
        }
    }
}

#[test]
fn the_judge_refuses_what_misses_by_one_bit() {
    let d = Dtype::F64;
    let request = |bound| Request::new(Codec::Auto, bound);
    let case = |x: f64, y: f64, bound, used| judge(request(bound), None, d, &x.to_le_bytes(), &y.to_le_bytes(), used);
    assert!(case(1.0, 0.5, Bound::Absolute(0.5), 0.5).is_ok());
    assert!(case(1.0, 0.5f64.next_down(), Bound::Absolute(0.5), 0.5).is_err());
    assert!(case(1.0, 0.5, Bound::Absolute(0.5), 0.5f64.next_up()).is_err(), "a stated bound above the asked one");
    assert!(case(8.0, 6.0, Bound::PointwiseRelative(0.25), 0.25).is_ok());
    assert!(case(8.0, 6f64.next_down(), Bound::PointwiseRelative(0.25), 0.25).is_err());
    assert!(case(0.0, -0.0, Bound::Lossless, 0.0).is_err());
    let keeps = |keep, values: [f64; 3], back: [f64; 3]| {
        let (raw, out) = (values.map(f64::to_le_bytes).concat(), back.map(f64::to_le_bytes).concat());
        judge(Request { keep, ..request(Bound::Absolute(1.0)) }, None, d, &raw, &out, 1.0).is_ok()
    };
    let (x, tiny) = ([-1.0, 0.5, 2.0], f64::from_bits(1));
    assert!(keeps(Keep::SIGN, x, [-tiny, tiny, 3.0]) && !keeps(Keep::SIGN, x, [-0.0, 0.5, 2.0]));
    assert!(keeps(Keep::RANGE, x, [-1.0, 1.5, 2.0]) && !keeps(Keep::RANGE, x, [-1.0, 0.5, 2f64.next_down()]));
    assert!(!keeps(Keep::RANGE, [-1.0, 1.5, 2.0], [-1.0, 2f64.next_up(), 2.0]));
    assert!(keeps(Keep::ZERO, x, [0.0, 0.0, 2.0]) && !keeps(Keep::ZERO, [-1.0, -0.0, 2.0], [-1.0, 0.0, 2.0]));
    assert!(case(f64::NAN, -f64::NAN, Bound::Absolute(1.0), 1.0).is_err());
    assert!(decibels_hold(&100u32.into(), &1u32.into(), 200) && !decibels_hold(&99u32.into(), &1u32.into(), 200));
    assert!(decibels_hold(&32u32.into(), &10u32.into(), 50) && !decibels_hold(&31u32.into(), &10u32.into(), 50));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: fuzz(0, 600).1, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Any mixture of inputs, exponents, bounds and shapes.
    #[test]
    fn the_promise_holds(
        seed: u64,
        generator in 0..generate::NAMES.len(),
        dtype in 0..8usize,
        n in prop_oneof![1..300u64, 4000..4200u64, 1..20_000u64],
        split in 1..40u64,
        mode in 1..=4u8,
        exponent in -12..4i32,
        digits in 1.0..10.0f64,
        power in prop_oneof![4 => Just(0i32), 1 => -130..100i32],
        with_fill: bool,
        keep in 0..14usize,
        codec in prop::sample::select(vec![
            Codec::Auto, Codec::Szx, Codec::Lorenzo, Codec::Lorenzo, Codec::Planes, Codec::Dense, Codec::Fast,
            Codec::Small,
        ]),
    ) {
        let d = all_dtypes()[dtype];
        let dims = match n / split {
            0 => vec![n],
            rows if rows % 3 == 0 => vec![rows / 3, 3, split],
            rows => vec![split, rows],
        };
        let n = dims.iter().product::<u64>() as usize;
        let fill = with_fill.then(|| fill_of(d));
        let mut raw = generate::input(generate::NAMES[generator], seed, d, &dims, fill, n * size(d));
        if power != 0 && d.size > 2 {
            scale(&mut raw, d, power);
        }
        let value: f64 = format!("{digits}e{exponent}").parse().unwrap();
        let bound = match mode {
            4 => Bound::Psnr((Random(seed).below(1500) + 1) as f64 / 10.0),
            2 | 3 => Bound::new(Mode::of(mode).unwrap(), value.min(0.999)).unwrap(),
            _ => Bound::Absolute(value),
        };
        let codec = if codec.takes(bound.mode()) { codec } else { Codec::Auto };
        let keep = kept(bound, keep);
        let outcome = holds(Request { codec, bound, keep }, d, &dims, fill, &raw);
        prop_assert!(outcome.is_ok(), "{codec:?} {bound:?} {keep} {d:?} {dims:?}: {}", outcome.unwrap_err());
        // Whether the type tells neighbouring multiples of interpolation's unit, FORMAT.md of lorenzo, §8.
        let told = |b: f64| {
            let sizes = (0..n).map(|k| self::value(bits(&raw, d, k), d).abs()).filter(|x| x.is_finite());
            sizes.fold(0.0, f64::max) / (2.0 * b / 257.0) < if d.size == 4 { 2f64.powi(23) } else { 2f64.powi(52) }
        };
        // Whether values that move within the bound keep their unit in the last place, or a small one (§8, Rounding).
        let steady = |b: f64| {
            (0..n).map(|k| 1.0625 * self::value(bits(&raw, d, k), d).abs()).filter(|x| x.is_normal()).all(|x| {
                let spacing = x * if d.size == 4 { 2f64.powi(-23) } else { 2f64.powi(-52) };
                spacing * 65_536.0 < b || (x - 2f64.powi(x.log2().round() as i32)).abs() > 1.1 * b
            })
        };
        if let (Codec::Lorenzo, Bound::Absolute(b)) = (codec, bound)
            && d.size > 2
            && told(b)
            && steady(b)
        {
            let outcome = rewritten(b, d, &dims, fill, &raw);
            prop_assert!(outcome.is_ok(), "{bound:?} {d:?} {dims:?} fill {fill:?}: {}", outcome.unwrap_err());
        }
    }
}

/// Where rounding to the type is a part of the bound, values near half a step would miss it, and a tile with one of
/// them would not be interpolated: frames several times as long under some bounds as under those beside them.
#[test]
fn a_frame_is_hardly_longer_than_under_a_finer_bound() {
    let engine = Engine::with_threads(2);
    for offset in [0.0, 280.0, 101_325.0f32] {
        let at = |i: usize| 20.0 * ((i % 256) as f32 * 0.021).sin() * ((i / 256) as f32 * 0.017).cos();
        let raw: Vec<u8> = (0..1 << 16).flat_map(|i| (offset + at(i)).to_le_bytes()).collect();
        let spacing = f64::from((offset + 20.0).next_up() - (offset + 20.0));
        let mut before = usize::MAX;
        for k in 0..41 {
            let bound = 4.0 * 1.2f64.powi(k) * spacing;
            let request = format!("mode=abs,bound={bound:e},codec=lorenzo").parse().unwrap();
            let frame = engine.encode(&Params::new(request, Dtype::F32, &[256, 256]).unwrap(), &raw);
            assert!(
                before == usize::MAX || frame.len() <= before + before / 20 + 64,
                "from {offset}, {bound:e}: {} bytes, {before} under a bound finer by a fifth",
                frame.len()
            );
            before = frame.len();
        }
    }
}
