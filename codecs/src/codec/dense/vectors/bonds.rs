// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of one vector, each with its context: by an error that is estimated, or by the lengths of bonds.
//! FORMAT.md §4.5, *Numbers*.

use super::estimates::Estimates;
use super::vector::{Code, LAGS, PARTS, Vector, magnitude_of, square, sub};
use crate::codec::dense::tokens::{EXPECTED, magnitude};

/// Groups: of errors and of lengths by component, the last component on a sphere, on a circle, at a point, and others.
const OF_ERRORS: usize = 0;
const OF_LENGTHS: usize = 3;
const ON_SPHERE: usize = 6;
const ON_CIRCLE: usize = 7;
const AT_POINT: usize = 10;
const OTHERS: usize = 11;
/// Bins of [`OTHERS`]: a component of which nothing is known, and signs.
const UNKNOWN: usize = 0;
const SIGN_ON_SPHERE: usize = 16;
const SIGN_ON_CIRCLE: usize = 17;

/// To the nearest integer, halves up.
#[inline(always)]
fn round(x: f64) -> i32 {
    (x + 0.5).floor() as i32
}

/// What is expected where contexts.rs makes this bin of it.
#[inline(always)]
fn of_bin(bin: usize) -> usize {
    if bin < 16 { 8 * bin } else { 128 + 32 * (bin - 16) }
}

/// What is expected of a number whose square may be up to this: half its logarithm, in 128ths of an octave, with the
/// mantissa itself in the place of its logarithm.
#[inline(always)]
fn of_square(square: f64) -> usize {
    let logarithm = (square.max(1.0).to_bits() >> 45) - (1023 << 7);
    (logarithm as usize / 2).min(EXPECTED - 1)
}

/// A class of deviations in 16ths, 0 to 7.
#[inline(always)]
fn class(deviation: i64) -> usize {
    (magnitude_of(deviation) / 8 - 2).clamp(0, 7) as usize
}

/// A class of what is left of a length, 0 to 4.
#[inline(always)]
fn part(left: f64, length: f64) -> usize {
    [0.125, 0.25, 0.5, 0.75].iter().filter(|&&part| left >= part * length).count()
}

/// A vector of which its size is estimated, in 128ths of an octave.
#[inline(always)]
pub(super) fn by_error(left: &mut [i32], estimate: i32, code: &mut impl Code) {
    let expected = estimate >> 4;
    let mut sizes = [0; PARTS];
    for c in 0..left.len() {
        let expected = match c {
            0 => expected,
            1 => (expected + sizes[0]) >> 1,
            _ => (expected + ((sizes[c - 2] + sizes[c - 1]) >> 1)) >> 1,
        };
        left[c] = code(OF_ERRORS + c.min(2), 16 * expected as usize, left[c]);
        sizes[c] = magnitude(left[c]).into();
    }
}

/// A vector of which nothing is known.
#[inline(always)]
pub(super) fn unknown(left: &mut [i32], code: &mut impl Code) {
    left.iter_mut().for_each(|left| *left = code(OTHERS, of_bin(UNKNOWN), *left));
}

/// What is known of an atom's bonds: estimates, lags, and where the second and third atom lie from the first.
pub(super) struct Bonds<'a> {
    pub(super) own: &'a Estimates,
    pub(super) lags: [usize; LAGS],
    pub(super) others: [Vector; 2],
}

impl Bonds<'_> {
    /// The length of the k-th bond.
    #[inline(always)]
    fn length(&self, k: usize) -> f64 {
        self.own.lengths[self.lags[k]] as f64 / 16.0
    }

    /// The class of the largest deviation of the first bonds up to the k-th.
    #[inline(always)]
    fn class(&self, k: usize) -> usize {
        class((0..=k).map(|k| self.own.deviations[self.lags[k]]).max().unwrap_or(0))
    }

    /// Codes components, each by what those before it leave of the length; what all leave of its square.
    #[inline(always)]
    pub(super) fn by_distance(&self, left: &mut [i32], code: &mut impl Code) -> f64 {
        let mut rest = self.length(0) * self.length(0);
        for (c, left) in left.iter_mut().enumerate() {
            *left = code(OF_LENGTHS + c.min(2), of_square(rest), *left);
            rest -= f64::from(*left) * f64::from(*left);
        }
        rest
    }

    #[inline(always)]
    pub(super) fn on_sphere(&self, left: &mut Vector, code: &mut impl Code) {
        let rest = self.by_distance(&mut left[..2], code).max(0.0).sqrt();
        let z = round(rest);
        let mut sign = 1;
        if z >= 1 {
            sign = code(OTHERS, of_bin(SIGN_ON_SPHERE), if left[2] < 0 { -1 } else { 1 });
        }
        let bin = 8 * self.class(0) + part(rest, self.length(0));
        let coded = code(ON_SPHERE, of_bin(bin), left[2].wrapping_mul(sign).wrapping_sub(z));
        left[2] = coded.wrapping_add(z).wrapping_mul(sign);
    }

    #[inline(always)]
    pub(super) fn on_circle<const DECODES: bool>(&self, left: &mut Vector, code: &mut impl Code) {
        let [x, y, z, _] = self.others[0].map(f64::from);
        let between = square(self.others[0]).max(1.0);
        let [near, far] = [0, 1].map(|k| self.length(k) * self.length(k));
        // The atom's place along the line between both, times its length.
        let along = (near + between - far) / 2.0;
        let radius = (near - along * along / between).max(0.0) * (1.0 - x * x / between).max(0.0);
        let middle = round(along * x / between);
        let first = code(ON_CIRCLE, of_square(radius), left[0].wrapping_sub(middle)).wrapping_add(middle);
        left[0] = first;
        let first = f64::from(first);
        // Both points of the circle that have this x.
        let across = (y * y + z * z).sqrt().max(1.0);
        let (rest, along) = (near - first * first, (along - first * x) / across);
        let high = (rest - along * along).max(0.0).sqrt();
        let points = [1.0, -1.0].map(|s| [(along * y - s * high * z) / across, (along * z + s * high * y) / across]);
        let mut side = 1;
        if !DECODES {
            let [a, b] = points.map(|[y, z]| (f64::from(left[1]) - y).abs() + (f64::from(left[2]) - z).abs());
            side = if a <= b { 1 } else { -1 };
        }
        let [y0, z0] = points[usize::from(code(OTHERS, of_bin(SIGN_ON_CIRCLE), side) < 0)];
        let class = 8 * self.class(1);
        let bin = class + part(high, self.length(0));
        left[1] = code(ON_CIRCLE + 1, of_bin(bin), left[1].wrapping_sub(round(y0))).wrapping_add(round(y0));
        // z by the sphere or by the plane, whichever depends less on y.
        let second = f64::from(left[1]);
        let (guess, steep) = if (z * y0).abs() < (z0 * y).abs() || z.abs() < 4.0 {
            let rest = (rest - second * second).max(0.0).sqrt();
            (if z0 < 0.0 { -rest } else { rest }, if rest < 1.0 { 16.0 } else { y0.abs() / rest })
        } else {
            (z0 - (second - y0) * y / z, (y / z).abs())
        };
        let bin = class + [0.5, 1.0, 2.0, 4.0].iter().filter(|&&least| steep >= least).count();
        let guess = round(guess);
        left[2] = code(ON_CIRCLE + 2, of_bin(bin), left[2].wrapping_sub(guess)).wrapping_add(guess);
    }

    /// `old` has where the three atoms lay from this one in the frame before.
    #[inline(always)]
    pub(super) fn at_point<const DECODES: bool>(&self, old: [Vector; LAGS], left: &mut Vector, code: &mut impl Code) {
        let Some(point) = self.point(old) else { return self.on_circle::<DECODES>(left, code) };
        let class = 8 * self.class(2);
        let mut sizes = [0; 2];
        for c in 0..3 {
            let bin = match c {
                0 => 0,
                1 => 1 + (sizes[0] / 8).min(3),
                _ => 5 + ((sizes[0] + sizes[1]) / 16).min(2),
            };
            let guess = round(point[c]);
            let coded = code(AT_POINT, of_bin(class + bin), left[c].wrapping_sub(guess));
            left[c] = coded.wrapping_add(guess);
            if c < 2 {
                sizes[c] = usize::from(magnitude(coded));
            }
        }
    }

    /// The point at the known distances from three atoms, on the side where it lay before; none where these are nearly
    /// on a line.
    #[inline(always)]
    fn point(&self, old: [Vector; LAGS]) -> Option<[f64; 3]> {
        let [v, w] = self.others.map(|other| other.map(f64::from));
        let dot = |a: [f64; PARTS], b: [f64; PARTS]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let cross = |a: [f64; PARTS], b: [f64; PARTS]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0], 0.0]
        };
        let (vv, vw, ww) = (dot(v, v), dot(v, w), dot(w, w));
        let determinant = vv * ww - vw * vw;
        if determinant.is_nan() || determinant <= 0.02 * (vv * ww) {
            return None;
        }
        let [near, second, third] = [0, 1, 2].map(|k| self.length(k) * self.length(k));
        let (along_v, along_w) = ((near + vv - second) / 2.0, (near + ww - third) / 2.0);
        let (a, b) = ((along_v * ww - along_w * vw) / determinant, (along_w * vv - along_v * vw) / determinant);
        let foot: [f64; 3] = std::array::from_fn(|c| a * v[c] + b * w[c]);
        let high = near - (foot[0] * foot[0] + foot[1] * foot[1] + foot[2] * foot[2]);
        let normal = cross(v, w);
        let mut side = 0.0;
        if high >= 4.0 + 0.002 * near {
            let [first, second, third] = old;
            let [second, third, own] =
                [sub(second, first), sub(third, first), sub([0; PARTS], first)].map(|v| v.map(f64::from));
            let before = dot(cross(second, third), own);
            side = (high / determinant).sqrt() * if before < 0.0 { -1.0 } else { 1.0 };
        }
        Some(std::array::from_fn(|c| foot[c] + side * normal[c]))
    }
}
