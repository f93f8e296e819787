// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn verdict(pairs: &[(f64, f64)], asked: impl Into<Request>, fill: Option<f64>) -> Verdict {
    let bytes = |of: fn(&(f64, f64)) -> f64| pairs.iter().flat_map(|p| of(p).to_le_bytes()).collect::<Vec<u8>>();
    judge(asked, Dtype::F64, fill.map(f64::to_bits), [&bytes(|p| p.0), &bytes(|p| p.1)], None, 1).unwrap()
}

fn held(pairs: &[(f64, f64)], bound: Bound) -> bool {
    verdict(pairs, bound, None).held()
}

#[test]
fn absolute_differences_are_exact_at_the_limit() {
    let within = |x, y, b| held(&[(x, y)], Bound::Absolute(b));
    assert!(within(1.0, 0.5, 0.5) && !within(1.0, 0.5f64.next_down(), 0.5));
    assert!(within(-3.0, -3.0, 5e-324) && within(0.0, 5e-324, 5e-324) && !within(0.0, 1e-323, 5e-324));
    assert!(!within(1.0, 2f64.powi(-60), 1.0 - 2f64.powi(-53)));
    assert!(within(1.0, 2f64.powi(-60), 1.0));
    assert!(!within(1.0, -2f64.powi(-60), 1.0));
    assert!(!within(f64::MAX, -f64::MAX, f64::MAX));
    assert!(!within(1.0, f64::NAN, f64::MAX) && !within(1.0, f64::INFINITY, f64::MAX));
}

#[test]
fn relative_differences_are_exact_at_the_limit() {
    // 0.1 · (2 − −1) has 54 bits: no f64, nor is the difference of these two. Rounded down it would be too small.
    let (tenth, unit) = (Bound::Relative(0.1), 2f64.powi(-55));
    let down = -10_808_639_105_689_190.0 * unit;
    let with = |x, y| held(&[(-1.0, -1.0), (2.0, 2.0), (x, y)], tenth);
    assert!(with(unit, down));
    assert!(!with(2.0 * unit, down) && !with(unit, down.next_down()));
    // A range that no f64 holds, and one below all of them.
    let ends = [(f64::MAX, f64::MAX), (-f64::MAX, -f64::MAX)];
    assert!(held(&[ends[0], ends[1], (f64::MAX, 0.0)], Bound::Relative(0.5)));
    assert!(!held(&[ends[0], ends[1], (f64::MAX, -5e-324)], Bound::Relative(0.5)));
    assert!(!held(&[(5e-324, 5e-324), (1e-323, 5e-324)], Bound::Relative(0.9)));
    // Between two floats lies the limit, 1 + 2^-53 less 2^-105, and a difference, 1 + 2^-54.
    let with = |y| held(&[(-0.0, -0.0), (1f64.next_up(), y)], Bound::Relative(1f64.next_down()));
    assert!(with(1.5 * 2f64.powi(-53)) && !with(2f64.powi(-53)));
    // One value alone is exact.
    assert!(held(&[(7.0, 7.0)], Bound::Relative(0.9)) && !held(&[(7.0, 7f64.next_up())], Bound::Relative(0.9)));
}

#[test]
fn pointwise_differences_are_exact_at_the_limit() {
    let within = |x, y, r| held(&[(x, y)], Bound::PointwiseRelative(r));
    let tenth = 0.1; // a little above 1/10
    assert!(within(10.0, 9.0, tenth) && !within(10.0, 9f64.next_down(), tenth));
    assert!(!within(10.0, 9.0, tenth.next_down()));
    assert!(within(-8.0, -6.0, 0.25) && !within(-8.0, 6.0, 0.25));
    assert!(within(0.0, -0.0, 0.5) && !within(0.0, 5e-324, 0.5));
    assert!(!within(5e-324, 0.0, 0.999) && within(5e-324, 5e-324, 1e-300));
    assert!(within(1e-323, 5e-324, 0.5) && !within(1e-323, 5e-324, 0.4999));
    assert!(!within(1e300, 1e-300, 1f64.next_down()));
    assert!(!within(1.0, f64::INFINITY, 0.5) && !within(1.0, f64::NAN, 0.5));
}

#[test]
fn noise_is_exact_at_the_limit() {
    // Range 10 and 20 dB: the mean square may be 1.
    let at = |d: [f64; 4], p| {
        held(&[(3.0, 3.0 + d[0]), (13.0, 13.0 + d[1]), (4.0, 4.0 + d[2]), (5.0, 5.0 + d[3])], Bound::Psnr(p))
    };
    assert!(at([1.0; 4], 20.0) && at([2.0, 0.0, 0.0, 0.0], 20.0));
    assert!(!at([1.0, 1.0, 1.0, 1f64 + 2f64.powi(-50)], 20.0) && !at([1.0; 4], 20f64.next_up()));
    assert!(at([1.0; 4], 20f64.next_down()));
    // 10^-3.25 = 5.62341325190349080394...e-4 lies between two f64; here the mean square is that of d.
    let with = |d| held(&[(0.0, 2.0 * d), (-0.5, -0.5), (0.5, 0.5), (0.25, 0.25)], Bound::Psnr(65.0));
    let above: f64 = 0.000_562_341_325_190_349_1;
    assert!(with(above.next_down()) && !with(above));
    assert!(held(&[(0.5, 0.5), (1.5, 1.5)], Bound::Psnr(1e9)) && !held(&[(0.5, 0.5), (1.5, 1.25)], Bound::Psnr(1e9)));
}

#[test]
fn lossless_is_the_same_bits() {
    assert!(held(&[(1.5, 1.5), (f64::NAN, f64::NAN)], Bound::Lossless));
    assert!(!held(&[(0.0, -0.0)], Bound::Lossless) && !held(&[(1.5, 1.5f64.next_up())], Bound::Lossless));
    assert!(!held(&[(f64::NAN, -f64::NAN)], Bound::Absolute(1.0)));
}

/// How often sign, zero and range are broken under a bound that everything finite keeps.
fn kept(keep: Keep, pairs: &[(f64, f64)], fill: Option<f64>) -> [u64; 3] {
    let v = verdict(pairs, Request { keep, ..Bound::Absolute(1e9).into() }, fill);
    assert_eq!(v.held(), v.kept_broken == [0; 3]);
    v.kept_broken
}

#[test]
fn what_is_kept_is_judged_by_each_promise_alone() {
    let tiny = f64::from_bits(1);
    let ends = [(-3.0, -3.0), (2.0, 2.0)];
    for (x, y, [sign, zero, range]) in [
        (1.0, 1.0, [0, 0, 0]),
        (1.0, tiny, [0, 0, 0]),
        (1.0, 0.0, [1, 0, 0]),
        (1.0, -0.0, [1, 0, 0]),
        (1.0, -tiny, [1, 0, 0]),
        (-1.0, -0.0, [1, 0, 0]),
        (-1.0, 2.0, [1, 0, 0]),
        (0.0, -0.0, [0, 1, 1]),
        (-0.0, 0.0, [0, 1, 1]),
        (0.0, tiny, [1, 1, 1]),
        (-0.0, -0.0, [0, 0, 0]),
        (1.0, 2.0, [0, 0, 0]),
        (1.0, 2f64.next_up(), [0, 0, 1]),
        (-1.0, (-3f64).next_down(), [0, 0, 1]),
        (2.0, 2f64.next_down(), [0, 0, 1]),
        (-3.0, (-3f64).next_up(), [0, 0, 1]),
    ] {
        let pairs = [ends[0], ends[1], (x, y)];
        assert_eq!(kept(Keep::SIGN, &pairs, None), [sign, 0, 0], "sign of {x:e} as {y:e}");
        assert_eq!(kept(Keep::ZERO, &pairs, None), [0, zero, 0], "zero of {x:e} as {y:e}");
        assert_eq!(kept(Keep::RANGE, &pairs, None), [0, 0, range], "range of {x:e} as {y:e}");
        assert_eq!(kept(Keep::new(7).unwrap(), &pairs, None), [sign, zero, range], "{x:e} as {y:e}");
        assert_eq!(kept(Keep::NONE, &pairs, None), [0; 3]);
    }
}

#[test]
fn padding_and_special_values_stretch_no_kept_range() {
    // +0 is padding where no fill value is known, and lies outside of 5 to 7.
    let padded = |x, y| kept(Keep::RANGE, &[(5.0, 5.0), (7.0, 7.0), (0.0, 0.0), (x, y)], None);
    assert_eq!(padded(0.0, 0.0), [0; 3]);
    assert_eq!((padded(0.0, -0.0), padded(0.0, 5.0), padded(6.0, 4.9)), ([0, 0, 1], [0, 0, 1], [0, 0, 1]));
    // -0 is no padding, nor is +0 where the fill value is another: the range reaches to them.
    assert_eq!(kept(Keep::RANGE, &[(-0.0, -0.0), (7.0, 7.0), (5.0, 4.0)], None), [0; 3]);
    assert_eq!(kept(Keep::RANGE, &[(0.0, 0.0), (7.0, 7.0), (5.0, 4.0)], Some(-9.0)), [0; 3]);
    let filled = [(-9.0, -9.0), (5.0, 5.0), (7.0, 7.0), (f64::INFINITY, f64::INFINITY), (6.0, 4.0)];
    assert_eq!(kept(Keep::RANGE, &filled, Some(-9.0)), [0, 0, 1]);
    // A fill value that changes is a special value's matter, and nothing else.
    let v = verdict(&[(-9.0, 1.0), (5.0, 5.0)], request(1, Bound::Absolute(1.0)), Some(-9.0));
    assert_eq!((v.broken, v.special_broken, v.kept_broken), (1, 1, [0; 3]));
    // No range at all: zeros alone.
    assert_eq!(kept(Keep::RANGE, &[(0.0, 0.0)], None), [0; 3]);
    assert_eq!(kept(Keep::RANGE, &[(0.0, -0.0)], None), [0, 0, 1]);
    // What is no number keeps no sign and lies in no range; the bound is broken too, and the value counted once.
    let v = verdict(&[(1.0, f64::NAN), (3.0, 3.0), (0.0, f64::NAN)], request(7, Bound::Psnr(1.0)), None);
    assert_eq!((v.broken, v.first, v.kept_broken), (2, Some(0), [2, 1, 2]));
}

fn request(keep: u32, bound: Bound) -> Request {
    Request { keep: Keep::new(keep).unwrap(), ..bound.into() }
}

#[test]
fn a_bound_and_what_is_kept_are_both_judged() {
    // The first misses its bound, the third its sign; the second is held.
    let pairs = [(10.0, 12.0), (0.5, 1.25), (0.5, -0.25), (-8.0, -8.0)];
    let v = verdict(&pairs, request(1, Bound::Absolute(1.0)), None);
    assert_eq!((v.broken, v.first, v.kept_broken), (2, Some(0), [1, 0, 0]));
    assert_eq!(verdict(&pairs, Bound::Absolute(1.0), None).broken, 1);
    let noisy = verdict(&pairs, request(1, Bound::Psnr(100.0)), None);
    assert_eq!((noisy.broken, noisy.noisy), (1, false), "a broken value is enough");
}

#[test]
fn the_range_is_that_of_all_pieces_and_of_either_type() {
    let n = 2 * PIECE + 9;
    let x: Vec<f32> = (0..n).map(|k| (k as f32 * 1e-3).sin()).collect();
    let (mut x, mut y) = (x.clone(), x);
    (x[n - 1], y[n - 1]) = (4.0, 4.0);
    (y[3], y[PIECE]) = (3.5, 4.5);
    let bytes = |v: &[f32]| v.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
    let be = Dtype { big_endian: true, ..Dtype::F32 };
    for threads in [1, 3] {
        let mut marks = vec![0; n];
        let each = PerValue { error: &mut vec![0.0; n], marks: &mut marks };
        let asked = request(4, Bound::Absolute(10.0));
        let v = judge(asked, be, None, [&bytes(&x), &bytes(&y)], Some(each), threads).unwrap();
        assert_eq!((v.broken, v.first, v.kept_broken), (1, Some(PIECE as u64), [0, 0, 1]));
        assert_eq!((marks[3], marks[PIECE]), (0, BROKEN));
    }
}

#[test]
fn what_stretches_no_range() {
    let x = [(280.0, 280.0), (0.0, 0.0), (281.0, 281.1)];
    assert!(!held(&x, Bound::Relative(0.01)), "a default zero is data, but not of the range");
    let v = verdict(&x, Bound::Relative(0.01), Some(1e20));
    assert_eq!((v.broken, v.range), (0, Some((0.0, 281.0))), "another fill value makes it ordinary");
    let v = verdict(&[(280.0, 280.0), (-0.0, 0.0), (281.0, 281.1)], Bound::Relative(0.01), None);
    assert_eq!((v.broken, v.range), (0, Some((-0.0, 281.0))), "a zero of other bits");
    assert!(!held(&[(0.0, 5e-324), (0.0, 0.0)], Bound::Relative(0.9)) && !held(&[(0.0, 5e-324)], Bound::Psnr(1.0)));
}

/// Many values of all kinds, most of them on the limit or a step beside it, by whole numbers alone.
#[test]
fn every_short_cut_agrees_with_whole_numbers() {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let exactly =
        |x: f64, y: f64, limit: Dyadic| y.is_finite() && Dyadic::from(x).minus(&y.into()).abs().at_most(&limit);
    for scale in [1e-320, 1e-300, 1e-30, 1.0, 1e30, 1e300] {
        for b in [scale / 3.0, scale * 0.25, 5e-324] {
            let pairs: Vec<(f64, f64)> = (0..4000)
                .map(|_| {
                    let x = scale * (random() as f64 / (1u64 << 30) as f64 - 1.0);
                    let near = x + b * [-1.0, -0.5, 0.0, 0.5, 1.0][(random() % 5) as usize];
                    let y = [near, near.next_up(), near.next_down(), x * (1.0 - b), x * 0.75][(random() % 5) as usize];
                    (x, y)
                })
                .collect();
            let broken = |bound| verdict(&pairs, bound, None).broken;
            let count = |limit: &dyn Fn(f64) -> Dyadic| {
                pairs.iter().filter(|(x, y)| !exactly(*x, *y, limit(*x))).count() as u64
            };
            assert_eq!(broken(Bound::Absolute(b)), count(&|_| b.into()), "absolute {b:e} of {scale:e}");
            for r in [0.25, 0.1, b] {
                let relative = |x: f64| Dyadic::from(r).times(&x.into()).abs();
                assert_eq!(broken(Bound::PointwiseRelative(r)), count(&relative), "pointwise {r:e} of {scale:e}");
                let (lo, hi) = verdict(&pairs, Bound::Lossless, None).range.unwrap();
                let spread = Dyadic::from(hi).minus(&lo.into());
                let range = |_| Dyadic::from(r).times(&spread);
                assert_eq!(broken(Bound::Relative(r)), count(&range), "relative {r:e} of {scale:e}");
            }
        }
    }
}

#[test]
fn threads_byte_orders_and_marks_change_no_verdict() {
    let n = 3 * PIECE + 5;
    let x: Vec<f32> = (0..n).map(|k| if k % 977 == 0 { -9.0 } else { (k as f32 * 1e-3).sin() }).collect();
    let mut y: Vec<f32> = x.iter().map(|v| v + 1e-4).collect();
    for (k, v) in [(7, f32::NAN), (PIECE + 1, 1.0), (977, -9.1)] {
        y[k] = v;
    }
    let mut x = x;
    (x[5], y[5], x[6], y[6]) = (f32::NAN, f32::NAN, f32::INFINITY, 1.0);
    let little = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let big = |v: &[f32]| v.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
    let bound = Bound::Absolute(1e-3);
    let fill = Some(u64::from((-9f32).to_bits()));
    let (a, b) = (little(&x), little(&y));
    let one = judge(bound, Dtype::F32, fill, [&a, &b], None, 1).unwrap();
    for d in 0..n / 977 + 1 {
        y[d * 977] = if d == 1 { -9.1 } else { -9.0 };
    }
    let (a, b) = (little(&x), little(&y));
    let one_more = judge(bound, Dtype::F32, fill, [&a, &b], None, 1).unwrap();
    assert!(one.special_broken > one_more.special_broken && one_more.special_broken == 2);
    assert_eq!((one_more.nan, one_more.infinite, one_more.fill), (1, 1, (n as u64).div_ceil(977)));
    assert_eq!((one_more.broken, one_more.first), (4, Some(6)));
    let (mut error, mut marks) = (vec![0.0; n], vec![0; n]);
    let each = PerValue { error: &mut error, marks: &mut marks };
    let be = Dtype { big_endian: true, ..Dtype::F32 };
    let three = judge(bound, be, fill, [&big(&x), &big(&y)], Some(each), 3).unwrap();
    assert!(three.worst.is_nan() && one_more.worst.is_nan() && three.squares.is_nan());
    assert_eq!((three.broken, three.first, three.range), (one_more.broken, one_more.first, one_more.range));
    let marked = |mark| marks.iter().filter(|&&m| m & mark != 0).count() as u64;
    assert_eq!((marked(BROKEN), marked(SPECIAL)), (4, one_more.nan + one_more.infinite + one_more.fill));
    assert!(
        (marks[977], marks[7], error[977]) == (SPECIAL | BROKEN, BROKEN, 0.0)
            && error[8] == f64::from(y[8]) - f64::from(x[8])
    );
    let mut late = x.clone();
    late[2 * PIECE + 3] += 1.0;
    let late = [1, 3].map(|threads| judge(bound, Dtype::F32, fill, [&a, &little(&late)], None, threads).unwrap());
    assert_eq!(late.map(|v| (v.broken, v.first)), [(1, Some(2 * PIECE as u64 + 3)); 2]);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let wrong =
        |dtype, a: &[u8], b: &[u8]| judge(Bound::Lossless, dtype, None, [a, b], None, 1).unwrap_err().to_string();
    assert!(wrong(Dtype::bytes(4), &[0; 4], &[0; 4]).contains("compare the bytes"));
    assert!(wrong(Dtype::F32, &[0; 8], &[0; 4]).contains("8 bytes against 4"));
    assert!(wrong(Dtype::F64, &[0; 12], &[0; 12]).contains("whole values"));
    assert!(judge(Bound::Psnr(60.0), Dtype::F32, None, [&[], &[]], None, 1).unwrap().held());
}
