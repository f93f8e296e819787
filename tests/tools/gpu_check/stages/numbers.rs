// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of all kinds, for stages to take.

use super::Random;

pub(super) fn one_of<const N: usize>(r: &mut Random, list: [u64; N]) -> u64 {
    list[r.below(N as u64) as usize]
}

/// Below `n`, small more often than not.
pub(super) fn few(r: &mut Random, n: u64) -> u64 {
    let most = 1 + r.below(n);
    r.below(most)
}

/// Numbers in either width, as bits.
pub(super) fn odd(r: &mut Random, wide: bool) -> u64 {
    const F64: [f64; 10] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, f64::MIN, 5e-324, 1e-310, 1.0];
    const F32: [f32; 10] =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, f32::MAX, f32::MIN, 1e-45, 1e-40, 1.0];
    let k = r.below(10) as usize;
    if wide { F64[k].to_bits() } else { F32[k].to_bits().into() }
}

pub(super) fn number(r: &mut Random, wide: bool) -> u64 {
    let x = (r.unit() - 0.5) * 10f64.powi(r.below(40) as i32 - 20);
    match r.below(5) {
        0 => odd(r, wide),
        1 => r.next() >> if wide { 0 } else { 32 },
        _ if wide => x.to_bits(),
        _ => (x as f32).to_bits().into(),
    }
}

/// Runs of values of all kinds.
pub(super) fn values(r: &mut Random, n: usize, wide: bool) -> Vec<u64> {
    let scale = 10f64.powi(r.below(8) as i32 - 4);
    let mut v = Vec::with_capacity(n);
    let mut walk = r.unit() * scale;
    while v.len() < n {
        let (kind, step) = (r.below(8), scale * 10f64.powi(-(r.below(7) as i32)));
        let constant = number(r, wide);
        for _ in 0..(1 + r.below(400)).min((n - v.len()) as u64) {
            walk += (r.unit() - 0.5) * step;
            let x = match kind {
                0 => walk.floor(),
                1 => (r.unit() - 0.5) * 1e-41,
                _ => walk,
            };
            v.push(match kind {
                2 => constant,
                3 => number(r, wide),
                4 if r.one_in(20) => odd(r, wide),
                5 if r.one_in(8) => constant,
                _ if wide => x.to_bits(),
                _ => (x as f32).to_bits().into(),
            });
        }
    }
    v
}

pub(super) fn bytes(v: &[u64], wide: bool) -> Vec<u8> {
    v.iter().flat_map(|x| x.to_le_bytes().into_iter().take(if wide { 8 } else { 4 })).collect()
}

pub(super) fn suffix(wide: bool) -> &'static str {
    if wide { "f64" } else { "f32" }
}

/// As kernels write a number: every NaN alike.
pub(super) fn plain64(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}
pub(super) fn plain32(x: f32) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits().into() }
}

pub(super) fn ordered(x: f64) -> u64 {
    let b = x.to_bits();
    if b >> 63 == 1 { !b } else { b | 1 << 63 }
}
