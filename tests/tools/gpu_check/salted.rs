// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks of any magnitude under any bound: values from fractions of a quantum to 2^60 of them, where a number of the
//! type cannot tell one quantum from the next any more, under bounds from 2^-40 to 2^60 and at the ends of the type's
//! range; huge and tiny values side by side; missing values, infinities, NaN, subnormal numbers and fill values strewn
//! in. Small, so that there can be many.

use super::chunks::{Case, Random, extents, kept, lost_once};
use h5z_gpu::{Bound, Class, Codec, Dtype, Params, Request};

/// What a chunk is made with.
struct Scale {
    wide: bool,
    /// The absolute bound that is meant, and what a codec counts in under it: a quantum, or a unit of interpolation.
    bound: f64,
    unit: f64,
    /// Where most values lie, and how far apart neighbours are.
    middle: f64,
    apart: f64,
}

impl Scale {
    fn of(r: &mut Random) -> Scale {
        let wide = r.one_in(3);
        let exponent = match r.below(10) {
            // Where bounds, steps and values are subnormal, or where they are beyond the type.
            0 => -([1074, 149][usize::from(!wide)] - r.below(24) as i32),
            1 => [1020, 126][usize::from(!wide)] - r.below(40) as i32,
            _ => r.below(101) as i32 - 40,
        };
        let bound = f64::from(exponent).exp2() * if r.one_in(3) { 1.0 } else { 1.0 + r.unit() };
        let unit = [2.0 * bound / 257.0, 2.0 * bound, bound * 1.9921875][r.below(3) as usize];
        // More of them around the number of bits of a mantissa.
        let power = [r.below(61), 14 + r.below(20), 24 + r.below(6)][r.below(3) as usize] as i32;
        let middle = unit * 2f64.powi(power) * (1.0 + r.unit());
        let ulp = middle * if wide { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let apart = match r.below(5) {
            0 => unit,
            1 => unit * 2f64.powi(r.below(14) as i32),
            2 => ulp * (1 + r.below(8)) as f64,
            3 => middle * 2f64.powi(-(r.below(30) as i32)),
            _ => bound * r.unit(),
        };
        Scale { wide, bound, unit, middle, apart }
    }

    /// Values of one of many kinds over `dims`.
    fn values(&self, r: &mut Random, dims: &[u64]) -> Vec<f64> {
        let Scale { unit, middle, apart, .. } = *self;
        let (kind, slope) = (r.below(11), r.unit());
        let waves: Vec<(f64, f64)> = dims.iter().map(|_| (r.unit() * 0.4, r.unit() * 6.0)).collect();
        let (run, in_order) = (1 + r.below(40), r.one_in(2));
        let odd = |i: u64, places: u64| if in_order { i % 2 == 1 } else { places % 2 == 1 };
        let mut walk = middle;
        let value = |i: u64| {
            // Places along all axes: their sum, and a wave along each.
            let (mut left, mut places, mut bent) = (i, 0, 0.0);
            for (&d, (f, phase)) in dims.iter().zip(&waves).rev() {
                bent += (((left % d) as f64) * f + phase).sin();
                places += left % d;
                left /= d;
            }
            match kind {
                0 => middle + apart * r.below(8) as f64,
                1 => middle + (apart * slope * places as f64).trunc(),
                2 => middle + apart * 20.0 * bent,
                // Up and down along every axis, or in the order of values, with and without a step on the way.
                3 => (middle + apart * (i / run % 2) as f64) * if odd(i, places) { -1.0 } else { 1.0 },
                4 => {
                    walk += apart * (r.below(3) as f64 - 1.0);
                    walk
                }
                // Each of a magnitude of its own.
                5 => unit * 2f64.powi(r.below(61) as i32) * (r.unit() * 2.0 - 1.0),
                6 => middle + apart * (i / run) as f64,
                7 => middle * bent,
                // One value, but for a few.
                8 | 9 => middle + if r.one_in(20 * run) { apart } else { 0.0 },
                _ => apart * bent + if (i / run).is_multiple_of(5) { middle } else { 0.0 },
            }
        };
        (0..dims.iter().product()).map(value).collect()
    }

    /// Bits of a value of the type.
    fn bits(&self, x: f64) -> u64 {
        if self.wide { x.to_bits() } else { (x as f32).to_bits().into() }
    }
}

/// Strews odd values in: one here and there, or a run of them.
fn salt(r: &mut Random, scale: &Scale, values: &mut [f64]) {
    let least = if scale.wide { 5e-324 } else { 1e-45 };
    let n = values.len() as u64;
    for _ in 0..[0, 0, 1, 1, 2, 3][r.below(6) as usize] {
        let odd = match r.below(9) {
            0 => f64::NAN,
            1 => f64::INFINITY * if r.one_in(2) { 1.0 } else { -1.0 },
            2 => 0.0,
            3 => -0.0,
            4 => least * r.below(1 << 20) as f64,
            5 => -scale.middle,
            6 => scale.unit * 2f64.powi(r.below(61) as i32),
            7 => scale.unit * r.below(9) as f64,
            _ => f64::MAX / if scale.wide { 1.0 } else { 2f64.powi(896) },
        };
        if r.one_in(3) {
            let from = r.below(n) as usize;
            let to = (from as u64 + 1 + r.below(n / 2)).min(n) as usize;
            values[from..to].fill(odd);
        } else {
            let every = 1 + r.below(200);
            (0..1 + n / every / 2).for_each(|_| values[r.below(n) as usize] = odd);
        }
    }
}

fn bound_of(r: &mut Random, scale: &Scale, values: &[f64], only: Option<Codec>) -> Bound {
    let range = values.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let relative = (scale.bound.max(5e-324) / range.max(5e-324)).clamp(1e-300, 0.9);
    let lossless = only == Some(Codec::Ndzip) || r.one_in(10);
    match r.below(8) {
        _ if lossless => Bound::Lossless,
        0 => Bound::Relative(relative),
        1 => Bound::Psnr((-20.0 * relative.log10()).clamp(0.1, 6000.0)),
        2 => Bound::PointwiseRelative(relative.max(1e-18)),
        _ => Bound::Absolute(scale.bound.clamp(5e-324, 1e307)),
    }
}

fn codec_of(r: &mut Random, bound: Bound, only: Option<Codec>) -> Codec {
    let any = [Codec::Szx, Codec::Lorenzo, Codec::Lorenzo, Codec::Planes, Codec::Planes, Codec::Auto, Codec::Ndzip];
    let codec = match only {
        Some(codec) => codec,
        None => any[r.below(any.len() as u64) as usize],
    };
    // What the codec does not take is the writer's choice.
    if (Request::new(codec, bound)).check().is_ok() { codec } else { Codec::Auto }
}

pub(crate) fn case(r: &mut Random, only: Option<Codec>) -> Case {
    let scale = Scale::of(r);
    let largest = if r.one_in(60) { 30_000 } else { [300, 300, 300, 300, 1200, 1200, 5000, 9000][r.below(8) as usize] };
    // Few that no codec makes smaller.
    let mut dims = extents(r, largest);
    while dims.iter().product::<u64>() < 40 && !r.one_in(8) {
        dims = extents(r, largest);
    }
    let mut values = scale.values(r, &dims);
    salt(r, &scale, &mut values);
    let bound = bound_of(r, &scale, &values, only);
    let mut dtype = if scale.wide { Dtype::F64 } else { Dtype::F32 };
    dtype.big_endian = r.one_in(8);
    if bound == Bound::Lossless && r.one_in(3) {
        dtype = Dtype { class: Class::Integer, exponent_bits: 0, mantissa_bits: 0, ..dtype };
    }
    // One that is there, one that a reconstruction may have, or an odd one.
    let fill = match r.below(12) {
        0 => Some(0),
        1 | 2 => Some(scale.bits(values[r.below(values.len() as u64) as usize])),
        3 => Some(scale.bits((scale.middle / scale.unit).round() * scale.unit)),
        4 => Some(scale.bits([f64::NAN, f64::INFINITY, -0.0, 1e20][r.below(4) as usize])),
        _ => None,
    };
    let size = usize::from(dtype.size);
    let mut raw: Vec<u8> = values.iter().flat_map(|&x| scale.bits(x).to_le_bytes()[..size].to_vec()).collect();
    if dtype.big_endian {
        raw.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    let codec = codec_of(r, bound, only);
    let mut params = Params::new(Request::new(codec, bound), dtype, &dims).expect("a sensible request");
    params.fill = fill;
    params.request.keep = kept(r, bound);
    let mut what = format!("{dims:?} of {dtype:?}, {}, fill {fill:x?}", params.request);
    if r.one_in(4) {
        raw = lost_once(&params, &raw);
        what += ", written again";
    }
    Case { params, raw, what }
}
