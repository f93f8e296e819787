// SPDX-License-Identifier: MIT OR Apache-2.0
//! Value ⇄ quantum under a bound, each value checked with the decoder's own arithmetic. FORMAT.md of lorenzo, §5 and
//! §8.
//!
//! A quantum is the integer nearest to the value in steps of twice the bound; under a point-wise relative bound it
//! counts steps of the value's bits, which are a logarithm, linear between powers of two. In real arithmetic each value
//! would come back within the bound. In f64 and f32 some do not: so every value is decoded at once and compared, first
//! by a rounded difference, which settles nearly all, then exactly. What misses the bound, is not finite, has the fill
//! value's bits or a quantum beyond the limit is an outlier. Its quantum is that of a neighbour, so that prediction
//! does not notice.

use crate::scalar::{Bits, Scalar, mul_down, within};

/// Added to and taken from a number below 2^51 in size, it rounds to the nearest integer, ties to even; the lowest bits
/// of the sum are that integer's. Compiles to two additions on every vector unit.
pub(crate) const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52

/// Whole multiples of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    step: f64,
    inverse: f64,
    bound: f64,
    /// Largest quantum allowed, as a number.
    limit: f64,
}

impl Linear {
    /// Multiples of `step`, up to `limit` of them, that reconstruct to within `bound`.
    pub(crate) fn new(step: f64, bound: f64, limit: i32) -> Self {
        Linear { step, inverse: 1.0 / step, bound, limit: f64::from(limit) }
    }

    /// What a quantum is worth.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// x in steps: nearest integer, and whether it is one that counts.
    #[inline(always)]
    pub(crate) fn nearest<S: Scalar>(&self, x: S) -> (i32, bool) {
        let t = x.to_f64() * self.inverse;
        ((t + ROUND).to_bits() as i32, t.abs() <= self.limit)
    }

    /// The value that stands for quantum `q`.
    #[inline(always)]
    pub(crate) fn value<S: Scalar>(&self, q: i32) -> S {
        S::from_f64(f64::from(q) * self.step)
    }

    /// Whether `back` is close enough to `x`, in exact arithmetic.
    #[inline(always)]
    pub(crate) fn holds<S: Scalar>(&self, x: S, back: S) -> bool {
        within(x.to_f64(), back.to_f64(), self.bound)
    }

    /// True only where [`Linear::holds`] is: a difference that rounds to less than the bound is less. Cheaper.
    #[inline(always)]
    pub(crate) fn surely_holds<S: Scalar>(&self, x: S, back: S) -> bool {
        (x.to_f64() - back.to_f64()).abs() < self.bound
    }
}

/// Multiples of a distance between the bits of magnitudes: a logarithm, linear within each power of two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    step: u64,
    inverse: f64,
    bound: f64,
    limit: f64,
}

impl Log {
    /// For a point-wise relative bound: half a step of bits changes a value by `bound` of itself at most.
    pub(crate) fn new<S: Scalar>(bound: f64, limit: i32) -> Self {
        let step = ((bound * (1u64 << (S::MANTISSA + 1)) as f64).floor() as u64).max(1);
        Log { step, inverse: 1.0 / step as f64, bound, limit: f64::from(limit) }
    }

    /// The distance.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    #[inline(always)]
    fn nearest<S: Scalar>(&self, x: S) -> (i32, bool) {
        let t = x.abs().bits().to_u64() as f64 * self.inverse;
        let q = (t + ROUND).to_bits() as i32;
        (if x.to_f64() < 0.0 { q.wrapping_neg() } else { q }, t <= self.limit && x.to_f64().is_finite())
    }

    #[inline(always)]
    fn value<S: Scalar>(&self, q: i32) -> S {
        let mask = u64::MAX >> (65 - 8 * S::SIZE); // all but the sign
        let bits = u64::from(q.unsigned_abs()).wrapping_mul(self.step) & mask;
        let magnitude = S::of_bits(S::Bits::from_u64(bits));
        if q < 0 { -magnitude } else { magnitude }
    }

    #[inline(always)]
    fn holds<S: Scalar>(&self, x: S, back: S) -> bool {
        let x = x.to_f64();
        within(x, back.to_f64(), mul_down(self.bound, x.abs()))
    }
}

/// How values become quanta.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantizer {
    /// An absolute bound.
    Linear(Linear),
    /// A point-wise relative bound.
    Log(Log),
}

/// What quantising a tile found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Some value must be stored exactly.
    pub(crate) outliers: bool,
    /// Every other value comes back bit for bit.
    pub(crate) exact: bool,
}

impl Quantizer {
    /// Quanta of `x`; where `regular` becomes 0 the value must be stored exactly, and its quantum means nothing.
    #[inline(always)]
    pub(crate) fn quantize<S: Scalar>(
        &self,
        x: &[S],
        fill: Option<S::Bits>,
        q: &mut [i32],
        regular: &mut [u8],
    ) -> Found {
        match self {
            Quantizer::Linear(l) => each(
                x,
                fill,
                q,
                regular,
                #[inline(always)]
                |v| l.nearest(v),
                #[inline(always)]
                |q| l.value(q),
                #[inline(always)]
                |v, b| l.surely_holds(v, b),
                |v, b| l.holds(v, b),
            ),
            Quantizer::Log(l) => each(
                x,
                fill,
                q,
                regular,
                #[inline(always)]
                |v| l.nearest(v),
                #[inline(always)]
                |q| l.value(q),
                #[inline(always)]
                |v, b| l.holds(v, b),
                |v, b| l.holds(v, b),
            ),
        }
    }

    /// Values of the quanta `q`.
    #[inline(always)]
    pub(crate) fn dequantize<S: Scalar>(&self, q: &[i32], out: &mut [S]) {
        match self {
            Quantizer::Linear(l) => out.iter_mut().zip(q).for_each(
                #[inline(always)]
                |(o, &q)| *o = l.value(q),
            ),
            Quantizer::Log(l) => out.iter_mut().zip(q).for_each(
                #[inline(always)]
                |(o, &q)| *o = l.value(q),
            ),
        }
    }
}

/// Quantises and checks; what `surely` leaves open, `holds` decides one by one.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn each<S: Scalar>(
    x: &[S],
    fill: Option<S::Bits>,
    q: &mut [i32],
    regular: &mut [u8],
    nearest: impl Fn(S) -> (i32, bool),
    value: impl Fn(i32) -> S,
    surely: impl Fn(S, S) -> bool,
    holds: impl Fn(S, S) -> bool,
) -> Found {
    let (has_fill, fill) = (fill.is_some(), fill.unwrap_or(S::Bits::ZERO));
    let (mut least, mut differ) = (1u8, S::Bits::ZERO);
    for ((&v, q), mark) in x.iter().zip(q).zip(&mut *regular) {
        let (n, counts) = nearest(v);
        let back = value(n);
        let good = counts & surely(v, back) & !(has_fill & (v.bits() == fill));
        *q = n;
        *mark = u8::from(good);
        least &= *mark;
        differ = differ | if good { back.bits() ^ v.bits() } else { S::Bits::ZERO };
    }
    if least == 0 {
        least = 1;
        for (&v, mark) in x.iter().zip(regular).filter(|(_, mark)| **mark == 0) {
            let (n, counts) = nearest(v);
            let back = value(n);
            if counts && holds(v, back) && !(has_fill && v.bits() == fill) {
                *mark = 1;
                differ = differ | (back.bits() ^ v.bits());
            }
            least &= *mark;
        }
    }
    Found { outliers: least == 0, exact: differ == S::Bits::ZERO }
}

/// Gives every outlier the quantum of its neighbour: the last regular one before it in its row of `row` values, else
/// the first behind it, else 0.
pub(crate) fn bridge(q: &mut [i32], regular: &[u8], row: usize) {
    for (q, regular) in q.chunks_mut(row).zip(regular.chunks(row)) {
        let mut last = regular.iter().position(|&o| o != 0).map_or(0, |at| q[at]);
        for (q, &o) in q.iter_mut().zip(regular) {
            if o == 0 {
                *q = last;
            }
            last = *q;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quanta_round_half_to_even_and_hold_the_bound() {
        let l = Quantizer::Linear(Linear::new(2.0, 1.0, 1 << 22));
        let x = [0.0f32, 1.0, 3.0, -1.0, -5.0, 2.5, f32::NAN, 1e30, f32::INFINITY, 7.0];
        let (mut q, mut o) = ([0; 10], [0; 10]);
        let found = l.quantize(&x, Some(7f32.to_bits()), &mut q, &mut o);
        assert_eq!(q[..6], [0, 0, 2, 0, -2, 1]);
        assert_eq!(o, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(found, Found { outliers: true, exact: false });
        let mut back = [0f32; 6];
        l.dequantize(&q[..6], &mut back);
        assert_eq!(back, [0.0, 0.0, 4.0, 0.0, -4.0, 2.0]);
        bridge(&mut q, &o, 10);
        assert_eq!(q[6..], [1; 4]);
        let mut q = [5, 6, 7, 8];
        bridge(&mut q, &[0, 1, 0, 0], 4);
        assert_eq!(q, [6, 6, 6, 6]);
        bridge(&mut q, &[0; 4], 4);
        assert_eq!(q, [0; 4]);
    }

    #[test]
    fn magnitudes_keep_a_relative_bound_on_both_sides_of_zero() {
        let l = Quantizer::Log(Log::new::<f64>(1e-3, 1 << 30));
        let x: Vec<f64> = (-200..200).map(|i| f64::from(i) * 1.37f64.powi(i)).collect();
        let (mut q, mut o) = (vec![0; x.len()], vec![0; x.len()]);
        l.quantize(&x, None, &mut q, &mut o);
        let mut back = vec![0.0; x.len()];
        l.dequantize(&q, &mut back);
        let kept = x.iter().zip(&back).zip(&o).filter(|((x, b), o)| **o == 1 && (*x - *b).abs() <= 1e-3 * x.abs());
        assert!(kept.count() > 395, "{o:?}");
        assert_eq!((q[200], back[200].to_bits()), (0, 0));
    }
}
