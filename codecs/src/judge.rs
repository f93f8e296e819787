// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges reconstructed values against what a bound promises, and what is kept beside it, in exact arithmetic.
//!
//! The difference of two floats need not be a float. Three facts decide nearly every pair in plain f64:
//!
//! ```text
//! d = round(x - y), P = the limit in real arithmetic
//! P is a float        d < P: held.  d > P: broken.  Rounding to nearest is monotone: x - y > P would give d >= P
//! P is none           the same for the floats beside it, L < P < U: d < L held, d > U broken
//! P = r * abs(x)      the same for p = round(P): d < p held, d > p broken
//! ```
//!
//! What lies on the limit is decided by the rounding errors themselves, Knuth's two-sum for the difference and a fused
//! multiply-add for the product, and, where those overflow or underflow, in whole numbers (`exact.rs`).

mod exact;
mod kept;

use crate::error::{Error, Result};
use crate::keep::Keep;
use crate::params::{Bound, Class, Dtype, Request};
use crate::scalar::{Bits, Scalar, WrappingInt};
use crate::{memory, parallel};
use exact::{Dyadic, quiet};

/// Values that a thread takes at a time: sums are taken over these pieces in their order, whatever the number of
/// threads.
const PIECE: usize = 1 << 16;

/// Mark of a value that has to keep its bits: NaN, an infinity, the fill value.
pub const SPECIAL: u8 = 1;
/// Mark of a value whose promise is broken.
pub const BROKEN: u8 = 2;
/// Mark of a value that f64 cannot decide; no caller sees it.
const UNSURE: u8 = 4;

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Values compared with the bound: finite, and not the fill value.
    pub judged: u64,
    /// Original values that are NaN and not the fill value.
    pub nan: u64,
    /// Infinities that are not the fill value.
    pub infinite: u64,
    /// Original values with the bits of the fill value.
    pub fill: u64,
    /// Special values, the three above, that came back with other bits.
    pub special_broken: u64,
    /// Values whose promise is broken, special ones included.
    pub broken: u64,
    /// Of them, those that broke what is kept beside the bound: sign, zero, range. One value may break several.
    pub kept_broken: [u64; 3],
    /// Index of the first of them.
    pub first: Option<u64>,
    /// Ordinary values that came back with the bits of the fill value.
    pub into_fill: u64,
    /// The PSNR is below what was asked, which no single value tells.
    pub noisy: bool,
    /// Largest difference allowed, rounded down; in mode pointwise relative as a part of the value. For a PSNR, about
    /// what lets every value differ.
    pub limit: f64,
    /// Largest difference; in mode pointwise relative as a part of the value.
    pub worst: f64,
    /// Sum of squared differences.
    pub squares: f64,
    /// Smallest and largest of the finite original values that have not the bits of the fill value. Without a fill
    /// value HDF5's default, the zero of all bits clear, stretches no range either.
    pub range: Option<(f64, f64)>,
}

impl Verdict {
    /// Whether every promise is kept.
    pub fn held(&self) -> bool {
        self.broken == 0 && !self.noisy
    }

    /// Peak signal-to-noise ratio in decibels over the range of the values judged.
    pub fn psnr(&self) -> f64 {
        let spread = self.range.map_or(0.0, |(a, b)| b - a);
        20.0 * (spread / (self.squares / self.judged as f64).sqrt()).log10()
    }

    /// Adds the counts of the piece that follows.
    fn add(&mut self, piece: &Verdict, begin: usize) {
        self.judged += piece.judged;
        self.nan += piece.nan;
        self.infinite += piece.infinite;
        self.fill += piece.fill;
        self.special_broken += piece.special_broken;
        self.broken += piece.broken;
        self.kept_broken = std::array::from_fn(|k| self.kept_broken[k] + piece.kept_broken[k]);
        self.first = self.first.or(piece.first.map(|k| k + begin as u64));
        self.into_fill += piece.into_fill;
        // A NaN where a number was is the worst of all.
        self.worst = largest([self.worst, piece.worst].into_iter());
        self.squares += piece.squares;
    }
}

/// What is told of each value.
pub struct PerValue<'a> {
    /// Reconstruction less original, rounded; 0 where the bits have to be the same.
    pub error: &'a mut [f64],
    /// [`SPECIAL`], [`BROKEN`], both or 0.
    pub marks: &'a mut [u8],
}

/// Compares value by value with what `asked` promises, a bound or one with what is kept beside it; the codec does not
/// matter. For a bound of the range, for a PSNR and for a range that is kept, all values are one chunk.
///
/// `each` takes what is told of each value. `threads`: 0 for as many as the process may use, at most eight.
///
/// # Errors
/// Other types than f32 and f64, lengths that differ, no memory.
pub fn judge(
    asked: impl Into<Request>,
    dtype: Dtype,
    fill: Option<u64>,
    [original, reconstructed]: [&[u8]; 2],
    each: Option<PerValue<'_>>,
    threads: usize,
) -> Result<Verdict> {
    let size = usize::from(dtype.size);
    if dtype.class != Class::Float || !matches!(size, 4 | 8) {
        return Err(Error::params(
            "f32 and f64 alone are judged against a bound; compare the bytes of",
            format!("{dtype:?}"),
        ));
    }
    if original.len() != reconstructed.len() || !original.len().is_multiple_of(size) {
        let got = format!("{} bytes against {}", original.len(), reconstructed.len());
        return Err(Error::params("original and reconstruction need the same number of whole values", got));
    }
    let n = original.len() / size;
    if each.as_ref().is_some_and(|e| e.error.len() != n || e.marks.len() != n) {
        return Err(Error::params("errors and marks are needed for each value", format!("{n} values")));
    }
    let threads = if threads == 0 { parallel::few() } else { threads };
    let asked = asked.into();
    match (size, dtype.big_endian) {
        (4, false) => Work::<f32, false>::new(asked, fill, original, reconstructed).run(each, threads),
        (4, true) => Work::<f32, true>::new(asked, fill, original, reconstructed).run(each, threads),
        (_, false) => Work::<f64, false>::new(asked, fill, original, reconstructed).run(each, threads),
        (_, true) => Work::<f64, true>::new(asked, fill, original, reconstructed).run(each, threads),
    }
}

/// What each thread needs to know. `BIG`: the bytes are big-endian.
struct Work<'a, S: Scalar, const BIG: bool> {
    bound: Bound,
    keep: Keep,
    /// In `S::Bits`.
    fill: Option<S::Bits>,
    x: Values<'a, S, BIG>,
    y: Values<'a, S, BIG>,
    range: Option<(f64, f64)>,
    limit: Limit,
}

/// Numbers as bytes; the loops over them are compiled for each order.
#[derive(Clone, Copy)]
struct Values<'a, S, const BIG: bool> {
    bytes: &'a [u8],
    of: std::marker::PhantomData<S>,
}

impl<'a, S: Scalar, const BIG: bool> Values<'a, S, BIG> {
    fn part(self, begin: usize, end: usize) -> impl Iterator<Item = S> + Clone + 'a {
        self.bytes[begin * S::SIZE..end * S::SIZE].chunks_exact(S::SIZE).map(move |bytes| {
            let bits: S::Bits = bytemuck::pod_read_unaligned(bytes);
            S::of_bits(if BIG { swapped(bits) } else { bits.le() })
        })
    }

    fn at(self, k: usize) -> f64 {
        self.part(k, k + 1).next().map_or(0.0, S::to_f64)
    }

    fn len(self) -> usize {
        self.bytes.len() / S::SIZE
    }
}

/// Big-endian bits that were read in this machine's order.
fn swapped<B: Bits>(bits: B) -> B {
    let wide = if cfg!(target_endian = "little") {
        bits.to_u64().swap_bytes() >> (64 - 8 * size_of::<B>())
    } else {
        bits.to_u64()
    };
    B::from_u64(wide)
}

fn finite<S: Scalar>(x: S) -> bool {
    x.abs() < S::INFINITY
}

/// What a difference may be at most.
struct Limit {
    exact: Dyadic,
    /// The float at it or below it, and the one at it or above it.
    beside: (f64, f64),
}

impl Limit {
    fn new(exact: Dyadic) -> Self {
        let below = exact.rounded_down();
        let above =
            if Dyadic::from(below).at_most(&exact) && exact.at_most(&below.into()) { below } else { below.next_up() };
        Limit { exact, beside: (below, above) }
    }

    /// abs(y - x) <= limit in real arithmetic, for what f64 alone does not decide.
    fn holds(&self, x: f64, y: f64) -> bool {
        let (d, rest) = two_sum(y, -x);
        if self.beside.0 == self.beside.1 && rest.is_finite() && d.abs() == self.beside.0 {
            return d.signum() * rest <= 0.0;
        }
        y.is_finite() && Dyadic::from(x).minus(&y.into()).abs().at_most(&self.exact)
    }
}

/// a + b as a rounded sum and what it lacks, exactly, unless something overflowed (Knuth, TAOCP 2, 4.2.2).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let v = s - a;
    (s, (a - (s - v)) + (b - v))
}

/// Where the rounded product of two floats lacks nothing that a float could not hold.
const PRODUCTS: std::ops::Range<f64> = 1e-290..1e290;

/// abs(y - x) <= r · abs(x) in real arithmetic, for what f64 alone does not decide.
fn within_relative(x: f64, y: f64, r: f64) -> bool {
    let (d, rest) = two_sum(y, -x);
    let p = r * x.abs();
    if PRODUCTS.contains(&p) && rest.is_finite() && d.abs() == p {
        return d.signum() * rest <= r.mul_add(x.abs(), -p);
    }
    let limit = Dyadic::from(r).times(&x.into()).abs();
    y.is_finite() && Dyadic::from(x).minus(&y.into()).abs().at_most(&limit)
}

impl<'a, S: Scalar, const BIG: bool> Work<'a, S, BIG> {
    fn new(asked: Request, fill: Option<u64>, original: &'a [u8], reconstructed: &'a [u8]) -> Self {
        let values = |bytes| Values { bytes, of: std::marker::PhantomData };
        let limit = Limit { exact: 0.0.into(), beside: (0.0, 0.0) };
        let fill = fill.map(S::Bits::from_u64);
        let (bound, keep) = (asked.bound, asked.keep);
        Work { bound, keep, fill, x: values(original), y: values(reconstructed), range: None, limit }
    }

    fn run(mut self, each: Option<PerValue<'_>>, threads: usize) -> Result<Verdict> {
        let n = self.x.len();
        let pieces = n.div_ceil(PIECE);
        self.range = self.range(pieces, threads);
        let spread = self.range.map_or(Dyadic::from(0.0), |(lo, hi)| Dyadic::from(hi).minus(&lo.into()));
        self.limit = match self.bound {
            Bound::Absolute(b) => Limit::new(b.into()),
            Bound::Relative(r) => Limit::new(spread.times(&r.into())),
            Bound::PointwiseRelative(r) => Limit::new(r.into()),
            Bound::Psnr(_) | Bound::Lossless => Limit::new(0.0.into()),
        };
        let limit = match self.bound {
            Bound::Psnr(p) => spread.about() * 10f64.powf(-p / 20.0),
            _ => self.limit.beside.0,
        };
        let mut all = Verdict { range: self.range, limit, ..NOTHING };
        let found: Vec<Result<Verdict>> = match each {
            Some(each) => {
                let parts: Vec<_> = each.error.chunks_mut(PIECE).zip(each.marks.chunks_mut(PIECE)).collect();
                parallel::map_mut(parts, threads, |k, (error, marks)| Ok(self.piece(k * PIECE, error, marks)))
            }
            None => parallel::map(pieces, threads, |k| {
                let len = PIECE.min(n - k * PIECE);
                let (mut error, mut marks) = (memory::zeros(len)?, memory::zeros(len)?);
                Ok(self.piece(k * PIECE, &mut error, &mut marks))
            }),
        };
        for (k, piece) in found.into_iter().enumerate() {
            all.add(&piece?, k * PIECE);
        }
        if let Bound::Psnr(p) = self.bound
            && all.broken == 0
            && all.worst > 0.0
        {
            all.noisy = !quiet(all.psnr(), p, all.judged, || self.exact_squares(), &spread);
        }
        Ok(all)
    }

    /// Smallest and largest value that stretches the range.
    fn range(&self, pieces: usize, threads: usize) -> Option<(f64, f64)> {
        let fill = self.fill.unwrap_or(S::Bits::ZERO);
        let found = parallel::map(pieces, threads, |k| {
            let none = (S::INFINITY, -S::INFINITY);
            let part = self.x.part(k * PIECE, self.x.len().min((k + 1) * PIECE));
            part.fold(none, |(lo, hi), x| {
                let counts = finite(x) && x.bits() != fill;
                (if counts && x < lo { x } else { lo }, if counts && x > hi { x } else { hi })
            })
        });
        let ends = found.into_iter().filter(|(lo, hi)| lo <= hi).map(|(lo, hi)| (lo.to_f64(), hi.to_f64()));
        ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Judges the values from `begin` on, as many as there are marks.
    fn piece(&self, begin: usize, error: &mut [f64], marks: &mut [u8]) -> Verdict {
        let end = begin + marks.len();
        let mut v = self.by_floats(begin, error, marks);
        if v.judged < marks.len() as u64 {
            self.count_special(begin, marks, &mut v);
        }
        let mut last = None;
        for (k, mark) in marks.iter_mut().enumerate() {
            if *mark & UNSURE != 0 {
                // Equal pairs often follow one another.
                let pair = (self.x.at(begin + k), self.y.at(begin + k));
                let held = match last {
                    Some((p, held)) if p == pair => held,
                    _ => match self.bound {
                        Bound::PointwiseRelative(r) => within_relative(pair.0, pair.1, r),
                        _ => self.limit.holds(pair.0, pair.1),
                    },
                };
                last = Some((pair, held));
                *mark = if held { 0 } else { BROKEN };
            }
        }
        if self.keep != Keep::NONE {
            self.mark_kept(begin, marks, &mut v);
        }
        v.broken = marks.iter().map(|m| u64::from(m & BROKEN != 0)).sum();
        if v.broken > 0 {
            v.first = marks.iter().position(|m| m & BROKEN != 0).map(|k| k as u64);
            v.special_broken = marks.iter().filter(|&&m| m == SPECIAL | BROKEN).count() as u64;
        }
        if let Some(fill) = self.fill {
            let became = self.y.part(begin, end).zip(&*marks);
            v.into_fill = became.map(|(y, m)| u64::from(y.bits() == fill && m & SPECIAL == 0)).sum();
        }
        v
    }

    /// The marks that f64 decides, differences, and sums over them: one loop without branches for each mode.
    fn by_floats(&self, begin: usize, error: &mut [f64], marks: &mut [u8]) -> Verdict {
        let (below, above) = self.limit.beside;
        match self.bound {
            Bound::Absolute(_) | Bound::Relative(_) => {
                self.walk(begin, error, marks, |_, _, d| (d == 0.0 || d < below, d > above && d.is_finite()))
            }
            Bound::PointwiseRelative(r) => self.walk(begin, error, marks, |x, _, d| {
                let p = r * x.to_f64().abs();
                let sure = PRODUCTS.contains(&p) && d.is_finite();
                (d == 0.0 || sure && d < p, sure && d > p)
            }),
            Bound::Psnr(_) => self.walk(begin, error, marks, |_, y, _| (finite(y), !finite(y))),
            Bound::Lossless => self.walk(begin, error, marks, |x, y, _| (x.bits() == y.bits(), x.bits() != y.bits())),
        }
    }

    /// `decide`: whether a value is held for sure, and whether it is broken for sure, by original, reconstruction and
    /// difference.
    #[inline(always)]
    fn walk(
        &self,
        begin: usize,
        error: &mut [f64],
        marks: &mut [u8],
        decide: impl Fn(S, S, f64) -> (bool, bool),
    ) -> Verdict {
        let end = begin + marks.len();
        let (some, fill) = (self.fill.is_some(), self.fill.unwrap_or(S::Bits::ZERO));
        let relative = matches!(self.bound, Bound::PointwiseRelative(_));
        let pairs = self.x.part(begin, end).zip(self.y.part(begin, end));
        for ((x, y), (error, mark)) in pairs.zip(error.iter_mut().zip(marks.iter_mut())) {
            let special = !finite(x) || some && x.bits() == fill;
            let e = y.to_f64() - x.to_f64();
            let (held, broken) = decide(x, y, e.abs());
            let unsure = if held || broken { 0 } else { UNSURE };
            let ordinary = if broken { BROKEN } else { unsure };
            let changed = if x.bits() == y.bits() { SPECIAL } else { SPECIAL | BROKEN };
            *mark = if special { changed } else { ordinary };
            *error = if special { 0.0 } else { e };
        }
        let judged = marks.iter().map(|m| u64::from(m & SPECIAL == 0)).sum();
        let squares = sum_of_squares(error);
        let worst = if relative {
            let parts = self.x.part(begin, end).zip(&*error);
            largest(parts.map(|(x, e)| if *e == 0.0 { 0.0 } else { e.abs() / x.to_f64().abs() }))
        } else {
            largest(error.iter().map(|e| e.abs()))
        };
        Verdict { judged, squares, worst, ..NOTHING }
    }

    /// Marks the values that may change and broke what is kept beside the bound.
    fn mark_kept(&self, begin: usize, marks: &mut [u8], v: &mut Verdict) {
        let pairs = self.x.part(begin, begin + marks.len()).zip(self.y.part(begin, begin + marks.len()));
        for ((x, y), mark) in pairs.zip(marks).filter(|(_, m)| **m & SPECIAL == 0) {
            let broken = kept::broken(self.keep, self.range, x, y);
            for (count, is_broken) in v.kept_broken.iter_mut().zip(broken) {
                *count += u64::from(is_broken);
            }
            if broken.contains(&true) {
                *mark |= BROKEN;
            }
        }
    }

    fn count_special(&self, begin: usize, marks: &[u8], v: &mut Verdict) {
        for (x, _) in self.x.part(begin, begin + marks.len()).zip(marks).filter(|(_, m)| *m & SPECIAL != 0) {
            match () {
                () if self.fill == Some(x.bits()) => v.fill += 1,
                () if x.abs() == S::INFINITY => v.infinite += 1,
                () => v.nan += 1,
            }
        }
    }

    /// The sum of squared differences of the values judged, exactly.
    fn exact_squares(&self) -> Dyadic {
        let pairs = self.x.part(0, self.x.len()).zip(self.y.part(0, self.y.len()));
        let judged = pairs.filter(|(x, y)| finite(*x) && self.fill != Some(x.bits()) && x.bits() != y.bits());
        judged.fold(Dyadic::from(0.0), |sum, (x, y)| {
            let d = Dyadic::from(x.to_f64()).minus(&y.to_f64().into());
            sum.plus(&d.times(&d))
        })
    }
}

const NOTHING: Verdict = Verdict {
    judged: 0,
    nan: 0,
    infinite: 0,
    fill: 0,
    special_broken: 0,
    broken: 0,
    kept_broken: [0; 3],
    first: None,
    into_fill: 0,
    noisy: false,
    limit: 0.0,
    worst: 0.0,
    squares: 0.0,
    range: None,
};

/// In eight sums side by side, as vector registers take them.
fn sum_of_squares(values: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for chunk in values.chunks(8) {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v * v;
        }
    }
    sums.iter().sum()
}

/// The largest; NaN where there is one.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |worst, v| if v <= worst || worst.is_nan() { worst } else { v })
}

#[cfg(test)]
mod tests;
