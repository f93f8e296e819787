// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random and hostile chunks: of all shapes, types and bounds, with values that fields have, and some that they should
//! not have.

use h5z_gpu::{Bound, Class, Codec, Dtype, Engine, Keep, Params, Request};

/// Numbers of no particular order: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A chunk with what is asked of it.
pub(crate) struct Case {
    pub(crate) params: Params,
    pub(crate) raw: Vec<u8>,
    pub(crate) what: String,
}

pub(super) fn extents(r: &mut Random, largest: u64) -> Vec<u64> {
    let edge = |r: &mut Random, most: u64| {
        let near = [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 4095, 4096, 4097, 8191, 8192];
        let n = if r.one_in(2) { near[r.below(near.len() as u64) as usize] } else { 1 + r.below(most) };
        n.clamp(1, most)
    };
    let rank = 1 + r.below(4);
    let mut left = 1 + r.below(largest);
    let mut dims = Vec::new();
    for k in 0..rank {
        let most = if k + 1 == rank { left } else { (left as f64).powf(1.0 / (rank - k) as f64) as u64 + 1 };
        let d = edge(r, most.max(1));
        dims.push(d);
        left = (left / d).max(1);
    }
    dims
}

/// Values as f64, of one of many kinds, with odd ones strewn in.
fn values(r: &mut Random, dims: &[u64]) -> Vec<f64> {
    let n = dims.iter().product::<u64>() as usize;
    let kind = r.below(12);
    let scale = 10f64.powi(r.below(12) as i32 - 6);
    let (f1, f2) = (r.unit() * 0.1, r.unit() * 0.01);
    let mut walk = 0.0;
    // Waves along every axis, with or without noise.
    let waves: Vec<(f64, f64)> = dims.iter().map(|_| (r.unit() * 0.3, r.unit() * 6.0)).collect();
    let noise = if r.one_in(2) { 0.0 } else { 10f64.powi(-(r.below(6) as i32)) };
    let mut v: Vec<f64> = (0..n)
        .map(|i| {
            let x = i as f64;
            match kind {
                0 => (x * f1).sin() * scale + (x * f2).cos() * 10.0 * scale,
                1 => {
                    walk += (r.unit() - 0.5) * scale;
                    walk
                }
                2 => scale,
                3 => r.unit() * scale,
                4 => (r.unit() - 0.5) * 10f64.powi(r.below(60) as i32 - 30),
                5 => (x / 700.0).floor() * scale,
                6 => f64::from_bits(r.next()),
                9 | 10 => {
                    let mut left = i as u64;
                    let axes = dims.iter().zip(&waves).rev();
                    let sum: f64 = axes
                        .map(|(&d, (f, phase))| {
                            let at = left % d;
                            left /= d;
                            (at as f64 * f + phase).sin()
                        })
                        .sum();
                    (sum + noise * (r.unit() - 0.5)) * scale
                }
                // Up and down along every axis: each axis of differences doubles the values.
                11 => {
                    let mut left = i as u64;
                    let odd = dims.iter().rev().fold(0, |sum, &d| {
                        let at = left % d;
                        left /= d;
                        sum + at
                    });
                    if odd % 2 == 0 { scale } else { -scale }
                }
                7 => {
                    if (i / 300) % 3 == 0 {
                        0.0
                    } else {
                        (x * f1).sin() * scale
                    }
                }
                _ => 1e-40 * r.unit() * if r.one_in(3) { -1.0 } else { 1.0 },
            }
        })
        .collect();
    if r.one_in(4) {
        coarsen(r, &mut v);
    }
    strew(r, dims, &mut v);
    v
}

/// Leaves few values: what was measured in steps, unpacked from whole numbers by any factor, or cut to some bits.
fn coarsen(r: &mut Random, v: &mut [f64]) {
    let most = v.iter().filter(|x| x.abs() < 1e300).fold(1e-300, |m: f64, x| m.max(x.abs()));
    let step = most / 2f64.powi(2 + r.below(15) as i32);
    let (decimal, any) = (10f64.powi(-(r.below(5) as i32)), r.unit());
    let (unit, offset) = if r.one_in(2) { (decimal, 0.0) } else { (any, 300.0 * r.unit()) };
    let kept = u64::MAX << (20 + r.below(32));
    let cut = r.one_in(3);
    for x in v {
        *x = if cut { f64::from_bits(x.to_bits() & kept) } else { (*x / step).round() * unit + offset };
    }
}

/// Odd values, strewn in or in runs, or none.
fn strew(r: &mut Random, dims: &[u64], v: &mut [f64]) {
    let n = v.len();
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        f64::MAX,
        1e38,
        1e-310,
        1e-45,
        1e20,
        9.97e36,
        -9999.0,
        1e5,
    ];
    match r.below(8) {
        0 => (0..1 + n / 50).for_each(|_| v[r.below(n as u64) as usize] = odd[r.below(odd.len() as u64) as usize]),
        1 => {
            let x = odd[r.below(odd.len() as u64) as usize];
            let (from, len) = (r.below(n as u64) as usize, r.below(600) as usize);
            v[from..(from + len).min(n)].fill(x);
        }
        2 => (0..1 + n / 200).for_each(|_| v[r.below(n as u64) as usize] *= 1e6),
        // A few.
        3 => (0..1 + r.below(4)).for_each(|_| v[r.below(n as u64) as usize] = odd[r.below(odd.len() as u64) as usize]),
        // Land between seas: coasts along the last two axes, some now and then with a gap; at all times the same.
        4 => {
            let (x, width) = (odd[r.below(odd.len() as u64) as usize], *dims.last().expect("an axis") as usize);
            let (f, g, level) = (0.01 + r.unit() * 0.2, 0.01 + r.unit() * 0.2, r.unit() * 2.0 - 1.0);
            let gaps = r.one_in(2);
            let height = if r.one_in(2) { *dims.iter().nth_back(1).unwrap_or(&1) as usize } else { usize::MAX };
            for (i, v) in v.iter_mut().enumerate() {
                let land = ((i % width) as f64 * f).sin() + ((i / width % height) as f64 * g).cos() > level;
                *v = if land && !(gaps && r.one_in(500)) { x } else { *v };
            }
        }
        _ => {}
    }
}

/// A bound for values, of every mode.
fn bound(r: &mut Random, v: &[f64], integers: bool) -> Bound {
    let power = 10f64.powi(-(r.below(7) as i32));
    match r.below(if integers { 1 } else { 12 }) {
        0 | 1 => Bound::Lossless,
        // Of any size, now and then, that the type tells from the values, and smaller.
        5 | 6 if r.one_in(2) => {
            let part = 2f64.powi(-(r.below(60) as i32)) * (1.0 + r.unit()) / 2.0;
            let most = v.iter().filter(|x| x.abs() < 1e300).fold(1e-300, |m: f64, x| m.max(x.abs()));
            if r.one_in(2) { Bound::Relative(part) } else { Bound::Absolute(part * most) }
        }
        2..=4 => Bound::Absolute(power * (1.0 + r.unit()) * 10f64.powi(r.below(5) as i32 - 2)),
        5 | 6 => Bound::Relative(power * 0.1 * (1.0 + r.unit())),
        7 if r.one_in(3) => Bound::Psnr(r.unit() * 350.0),
        7 => Bound::Psnr(20.0 + 10.0 * r.below(10) as f64 + r.unit()),
        8 if r.one_in(2) => {
            let b = f64::from_bits(r.next() >> 1);
            Bound::Absolute(if b > 0.0 && b < 1e300 { b } else { 5e-324 })
        }
        // The largest value has as many quanta as it may, or a half or a quarter.
        9 | 10 => {
            let most = v.iter().filter(|x| x.abs() < 1e300).fold(1e-300, |m: f64, x| m.max(x.abs()));
            Bound::Absolute(most / 2f64.powi(29 + r.below(3) as i32))
        }
        // From one unit in the last place on, where quanta are largest.
        11 if r.one_in(3) => Bound::PointwiseRelative(2f64.powi(-(r.below(30) as i32)) * (1.0 + r.unit()) / 2.0),
        _ => Bound::PointwiseRelative(power * 0.1 * (1.0 + r.unit())),
    }
}

pub(crate) fn case(r: &mut Random, largest: u64, only: Option<Codec>) -> Case {
    let dims = extents(r, largest);
    let n = dims.iter().product::<u64>() as usize;
    let wide = r.one_in(3);
    let mut dtype = if wide { Dtype::F64 } else { Dtype::F32 };
    dtype.big_endian = r.one_in(6);
    let integers = r.one_in(if matches!(only, Some(Codec::Lorenzo | Codec::Planes)) { 3 } else { 6 });
    let mut v = values(r, &dims);
    if integers {
        // Of any size for lorenzo and planes; ndzip's kernels take 4 and 8 bytes.
        let size = if r.one_in(2) { dtype.size } else { 1 << r.below(4) };
        dtype =
            Dtype { class: Class::Integer, signed: r.one_in(2), big_endian: dtype.big_endian, ..Dtype::bytes(size) };
        let most = v.iter().filter(|x| x.abs() < 1e300).fold(1e-300, |m: f64, x| m.max(x.abs()));
        let scale = 2f64.powi(r.below(8 * u64::from(size) + 3) as i32) / most;
        v.iter_mut().for_each(|x| *x *= if scale.is_finite() { scale } else { 1.0 });
    }
    let size = usize::from(dtype.size);
    let mut raw = Vec::with_capacity(n * 8);
    for x in &v {
        match (integers, wide) {
            (true, _) => raw.extend(&(*x as i64).to_le_bytes()[..size]),
            (false, true) => raw.extend(x.to_le_bytes()),
            (false, false) => raw.extend((*x as f32).to_le_bytes()),
        }
    }
    let bits = |raw: &[u8], i: usize| {
        let mut b = [0; 8];
        b[..size].copy_from_slice(&raw[size * i..size * i + size]);
        u64::from_le_bytes(b)
    };
    // +0 is one that some codecs take for none.
    let fill = match r.below(12) {
        0 => Some(0),
        1..=3 => Some(bits(&raw, r.below(n as u64) as usize)),
        _ => None,
    };
    if dtype.big_endian {
        raw.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    let bound = bound(r, &v, integers);
    let planes = !matches!(bound, Bound::PointwiseRelative(_));
    let codec = match r.below(if planes { 6 } else { 4 }) {
        k if bound == Bound::Lossless => {
            if k < 2 {
                Codec::Ndzip
            } else {
                Codec::Auto
            }
        }
        0 | 1 => Codec::Lorenzo,
        4 | 5 => Codec::Planes,
        _ => Codec::Auto,
    };
    let request = match only {
        Some(Codec::Ndzip) => Request::new(Codec::Ndzip, Bound::Lossless),
        Some(Codec::Planes) if !planes => Request::new(Codec::Auto, bound),
        Some(codec) if bound != Bound::Lossless => Request::new(codec, bound),
        _ => Request::new(codec, bound),
    };
    let mut params = Params::new(request, dtype, &dims).expect("a sensible request");
    params.fill = fill;
    if integers && r.one_in(2) {
        // As if a sample had said so.
        let planes = only == Some(Codec::Planes) || only.is_none() && r.one_in(2);
        let codec = if planes { Codec::Planes } else { Codec::Lorenzo };
        params.request = Request::new(codec, Bound::Lossless);
    }
    params.request.keep = kept(r, params.request.bound);
    let mut what = format!("{dims:?} of {dtype:?}, {}, fill {fill:x?}", params.request);
    if r.one_in(6) {
        // As a file that is rewritten.
        raw = lost_once(&params, &raw);
        what += ", written again";
    }
    Case { params, raw, what }
}

/// What is kept beside a bound, where that may be: at times something.
pub(super) fn kept(r: &mut Random, bound: Bound) -> Keep {
    let some = bound.mode().takes_keep() && r.one_in(3);
    if some { Keep::new(1 + r.below(7) as u32).expect("three bits") } else { Keep::NONE }
}

/// What a chunk is once it was written and read.
pub(super) fn lost_once(params: &Params, raw: &[u8]) -> Vec<u8> {
    let engine = Engine::with_threads(1);
    engine.decode(&engine.encode(params, raw), raw.len() as u64).expect("a whole frame")
}
