// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tiles → plans → payloads, FORMAT.md §7. Everything a tile becomes but the codewords is known after the first pass;
//! the second one writes with the codebook of the whole chunk.

use super::format::{Class, Kind, Predictor, gap_units};
use crate::bound::Used;
use crate::constants::{LORENZO_FINE_BITS, LORENZO_LIMIT, LORENZO_LIMIT_F32, LORENZO_POINT_LIMIT, LORENZO_TILE};
use crate::scalar::{Bits, Scalar};
use crate::stage::estimate;
use crate::stage::huffman::{self, Encoder, Histogram};
use crate::stage::interpolate::{self, Work};
use crate::stage::lorenzo;
use crate::stage::quantize::{Linear, Log, Quantizer, bridge};
use crate::stage::tiles::{Grid, Tile};

/// The quantiser of Lorenzo's tiles.
pub(super) fn quantizer<S: Scalar>(log: bool, used: f64) -> Quantizer {
    if log {
        return Quantizer::Log(Log::new::<S>(used, LORENZO_LIMIT));
    }
    let limit = if S::SIZE == 4 { LORENZO_LIMIT_F32 } else { LORENZO_LIMIT };
    Quantizer::Linear(Linear::new(2.0 * used, used, limit))
}

/// The quantiser of interpolated tiles' points.
pub(super) fn fine(used: f64) -> Linear {
    Linear::new(2.0 * used / f64::from((1 << LORENZO_FINE_BITS) + 1), used, LORENZO_LIMIT)
}

/// What does not change from tile to tile.
pub(super) struct Plan<'a, S: Scalar> {
    pub(super) values: &'a [S],
    pub(super) grid: &'a Grid,
    pub(super) used: Used,
    pub(super) fill: Option<S::Bits>,
    pub(super) gaps: bool,
}

/// Consecutive tiles after the first pass.
pub(super) struct Run {
    first: usize,
    tiles: Vec<Planned>,
    /// Symbols of all tiles that are neither empty nor raw, a byte per residual.
    symbols: Vec<u8>,
    outliers: Vec<u32>,
    /// The payloads' first parts: exceptions.
    exceptions: Vec<u8>,
    pub(super) histogram: Histogram,
}

/// One tile after the first pass; the three counts are its parts of the run's arrays.
struct Planned {
    /// Its class is Huffman where that or fixed width will be taken.
    kind: Kind,
    symbols: usize,
    outliers: usize,
    exceptions: usize,
    /// Bits of its largest zigzag residual.
    width: u32,
}

/// Working memory of one thread.
struct Scratch<S> {
    x: Vec<S>,
    stream: Vec<S>,
    quanta: Vec<i32>,
    residuals: Vec<i32>,
    points: Vec<i32>,
    sample: Vec<i32>,
    steps: Vec<i32>,
    ordinary: Vec<u8>,
    good: Vec<u8>,
    bits: Vec<u8>,
    work: Work,
}

/// First pass over tiles `first` to `last`.
#[inline(always)]
pub(super) fn plan<S: Scalar>(plan: &Plan<'_, S>, first: usize, last: usize) -> Run {
    let mut run = Run {
        first,
        tiles: Vec::with_capacity(last - first),
        symbols: Vec::with_capacity((last - first) * LORENZO_TILE),
        outliers: Vec::new(),
        exceptions: Vec::new(),
        histogram: Histogram::new(),
    };
    let (log, used) = match plan.used {
        Used::Absolute(b) => (false, b),
        Used::PointwiseRelative(r) => (true, r),
    };
    let (coarse, fine) = (quantizer::<S>(log, used), fine(used));
    let integers = || vec![0; LORENZO_TILE];
    let mut s = Scratch {
        x: vec![S::ZERO; LORENZO_TILE],
        stream: vec![S::ZERO; LORENZO_TILE],
        quanta: integers(),
        residuals: integers(),
        points: integers(),
        sample: Vec::with_capacity(LORENZO_TILE),
        steps: Vec::with_capacity(LORENZO_TILE),
        ordinary: vec![0; LORENZO_TILE],
        good: vec![0; LORENZO_TILE],
        bits: vec![0; LORENZO_TILE],
        work: Work::default(),
    };
    for i in first..last {
        let tile = plan.grid.tile(i);
        let n = tile.len();
        let Scratch { x, stream, quanta, residuals, points, sample, steps, ordinary, good, bits, work } = &mut s;
        let (x, quanta, ordinary) = (&mut x[..n], &mut quanta[..n], &mut ordinary[..n]);
        plan.grid.gather(plan.values, &tile, x);
        let found = coarse.quantize(x, plan.fill, quanta, ordinary);
        if found.exceptions {
            bridge(quanta, ordinary, tile.extents[2]);
        }
        let axes = choose(quanta, tile.extents, [&mut *sample, &mut *steps], bits);
        let residuals = &mut residuals[..n];
        lorenzo::difference(quanta, tile.extents, axes, residuals);
        let mut predictor = Predictor::Lorenzo(axes);
        let mut exceptions = found.exceptions;
        if !log && !found.exact {
            let cost = estimate::cost(residuals, bits);
            let view = Interpolate { fine: &fine, fill: plan.fill, x, extents: tile.extents };
            if may_pay(quanta, tile.extents, cost, sample, bits) || view.on_grid() {
                let (points, good) = (&mut points[..n], &mut good[..n]);
                let made = view.run(&mut stream[..n], points, good, work);
                if let Some(made) = made
                    && (made.exact || estimate::cost(points, bits) < cost)
                {
                    predictor = Predictor::Interpolation;
                    exceptions = made.exceptions;
                    residuals.copy_from_slice(points);
                    if exceptions {
                        interpolate::unpermute(good, tile.extents, ordinary);
                    }
                }
            }
        }
        run.push(x, residuals, predictor, exceptions.then_some(ordinary));
    }
    run
}

/// The rows that Lorenzo's axes are chosen by, out of 64: 16 of every remainder by 4 and by 3, for molecules have as many
/// atoms, and the first, as of sixteen rows in a cube one has none above it.
const SAMPLED: u64 = 1 | 0x1842_1842_1842_1842;

/// Whether row `row` of `rows` is sampled.
#[inline(always)]
fn sampled(row: usize, rows: usize) -> bool {
    rows < 8 || SAMPLED >> (row % 64) & 1 == 1
}

/// Interpolation is tried where Lorenzo's residuals cost less than so many 1/256 bits a value: what costs more is noise,
/// which no prediction takes away.
const WORTH: u64 = 4 << 8;
/// Below this it is tried without a look.
const SURELY_WORTH: u64 = 5 << 7;

/// Whether interpolating a tile may cost less than `cost`: a look at the sampled rows' odd places, predicted from quanta.
/// On turbulence and noise it saves the whole attempt; measured on 19 fields it costs 0.1 to 0.6 % of the ratio, 4.7 % at most.
#[inline(always)]
fn may_pay(q: &[i32], [a, b, c]: [usize; 3], cost: u64, look: &mut Vec<i32>, bits: &mut [u8]) -> bool {
    let n = q.len() as u64;
    if cost == 0 || cost >= WORTH * n {
        return false;
    }
    if cost < SURELY_WORTH * n {
        return true;
    }
    look.clear();
    for (row, q) in q.chunks_exact(c).enumerate() {
        if sampled(row, a * b) {
            look.extend(q.windows(7).step_by(2).map(
                #[inline(always)]
                |w| w[3].wrapping_sub(interpolate::cubic(w[0], w[2], w[4], w[6])),
            ));
        }
    }
    8 * estimate::cost(look, bits) * n <= 7 * cost * look.len() as u64
}

/// Lorenzo's axes: the first set with the least cost over the sampled rows.
#[inline(always)]
pub(super) fn choose(q: &[i32], extents: [usize; 3], [sample, steps]: [&mut Vec<i32>; 2], bits: &mut [u8]) -> u8 {
    let [a, b, c] = extents;
    let used = [c > 1, b > 1, a > 1].iter().enumerate().map(|(k, &long)| u8::from(long) << k).sum::<u8>();
    let mut best = (u64::MAX, 0);
    for across in [0, lorenzo::Y, lorenzo::Z, lorenzo::Y | lorenzo::Z] {
        if across & !used != 0 {
            continue;
        }
        sample.clear();
        for row in 0..a * b {
            if sampled(row, a * b) {
                difference_row(q, [b, c], row, across, sample);
            }
        }
        let mut try_axes = |axes: u8, residuals: &[i32], bits: &mut [u8]| {
            let cost = estimate::cost(residuals, bits);
            if cost < best.0 {
                best = (cost, axes);
            }
        };
        if across != lorenzo::Y | lorenzo::Z {
            try_axes(across, sample, bits);
        }
        if c > 1 && across != lorenzo::Z {
            steps.resize(sample.len(), 0);
            lorenzo::rows(sample, c, steps);
            try_axes(across | lorenzo::X, steps, bits);
        }
    }
    best.1
}

/// Appends one row's residuals along the slower axes.
#[inline(always)]
fn difference_row(q: &[i32], [b, c]: [usize; 2], row: usize, axes: u8, out: &mut Vec<i32>) {
    let at = out.len();
    out.extend_from_slice(&q[row * c..][..c]);
    let new = &mut out[at..];
    let (up, back) = (axes & lorenzo::Y != 0 && !row.is_multiple_of(b), axes & lorenzo::Z != 0 && row >= b);
    for (taken, before) in [(up, 1), (back, b)] {
        if taken {
            for (v, &p) in new.iter_mut().zip(&q[(row - before) * c..]) {
                *v = v.wrapping_sub(p);
            }
        }
    }
    if up && back {
        for (v, &p) in new.iter_mut().zip(&q[(row - b - 1) * c..]) {
            *v = v.wrapping_add(p);
        }
    }
}

/// A tile that may be interpolated.
struct Interpolate<'a, S: Scalar> {
    fine: &'a Linear,
    fill: Option<S::Bits>,
    x: &'a [S],
    extents: [usize; 3],
}

/// What interpolating a tile found, as [`crate::stage::quantize::Found`].
struct Made {
    exceptions: bool,
    exact: bool,
}

impl<S: Scalar> Interpolate<'_, S> {
    /// Whether `v` stays as it is whatever is predicted.
    #[inline(always)]
    fn excepted(&self, v: S) -> bool {
        !self.fine.nearest(v).1 | self.fill.is_some_and(|f| f == v.bits())
    }

    /// Whether every value that is no exception lies on a point, as in a tile that was interpolated before.
    #[inline(always)]
    fn on_grid(&self) -> bool {
        self.x.chunks(64).all(|part| {
            part.iter().all(|&v| {
                let on: S = self.fine.value(self.fine.nearest(v).0);
                on.bits() == v.bits() || self.excepted(v)
            })
        })
    }

    /// Writes residuals in the order of the stream, and which of them are no exceptions. `None` where the tile must not be
    /// interpolated.
    #[inline(always)]
    fn run(&self, stream: &mut [S], residuals: &mut [i32], good: &mut [u8], work: &mut Work) -> Option<Made> {
        interpolate::permute(self.x, self.extents, stream);
        let (fine, has_fill, fill) = (self.fine, self.fill.is_some(), self.fill.unwrap_or(S::Bits::ZERO));
        let (mut least, mut veto, mut differ) = (1u8, 0u8, S::Bits::ZERO);
        interpolate::walk(
            self.extents,
            work,
            &mut [],
            #[inline(always)]
            |at, predicted, row| {
                let n = row.len();
                let (x, d, good) = (&stream[at..][..n], &mut residuals[at..][..n], &mut good[at..][..n]);
                let predicted = &predicted[..n];
                let mut unsure = 0;
                for k in 0..n {
                    let (v, p) = (x[k], predicted[k]);
                    let (units, counts) = fine.nearest(v);
                    let residual = interpolate::residual(units, p);
                    let r = interpolate::point(p, residual);
                    let back = fine.value::<S>(r);
                    let fits = counts & !(has_fill & (v.bits() == fill));
                    d[k] = if fits { residual } else { 0 };
                    row[k] = if fits { r } else { p };
                    good[k] = u8::from(fits);
                    least &= good[k];
                    let far = r.unsigned_abs() > LORENZO_POINT_LIMIT as u32;
                    veto |= u8::from(fits & (far | (has_fill & (back.bits() == fill))));
                    unsure |= u8::from(fits & !fine.surely_holds(v, back));
                    differ = differ | if fits { back.bits() ^ v.bits() } else { S::Bits::ZERO };
                }
                if unsure != 0 {
                    veto |= u8::from(!self.holds(x, row, good));
                }
            },
        );
        if veto != 0 {
            return None;
        }
        Some(Made { exceptions: least == 0, exact: differ == S::Bits::ZERO })
    }

    /// Whether every value that is no exception keeps the bound, in exact arithmetic.
    #[cold]
    fn holds(&self, x: &[S], points: &[i32], good: &[u8]) -> bool {
        x.iter().zip(points).zip(good).all(|((&v, &r), &good)| {
            let back = self.fine.value(r);
            good == 0 || self.fine.surely_holds(v, back) || self.fine.holds(v, back)
        })
    }
}

impl Run {
    /// Adds a tile. `ordinary` marks the values that are no exceptions, where there are some.
    #[inline(always)]
    fn push<S: Scalar>(&mut self, x: &[S], residuals: &[i32], predictor: Predictor, ordinary: Option<&mut [u8]>) {
        let n = x.len();
        let all = residuals.iter().fold(
            0,
            #[inline(always)]
            |a, &r| a | huffman::zigzag(r),
        );
        let width = 32 - all.leading_zeros();
        let before = self.exceptions.len();
        let exceptions = ordinary.is_some();
        if let Some(ordinary) = ordinary {
            write_exceptions(x, ordinary, &mut self.exceptions);
        }
        let mut planned = Planned {
            kind: Kind { predictor, class: Class::Huffman, exceptions },
            symbols: 0,
            outliers: 0,
            exceptions: self.exceptions.len() - before,
            width,
        };
        if planned.exceptions + fixed_len(n, width) >= n * S::SIZE {
            self.exceptions.truncate(before);
            planned = Planned { kind: Kind::RAW, exceptions: 0, ..planned };
        } else if width == 0 {
            planned.kind.class = Class::Empty;
        } else {
            let at = self.symbols.len();
            let outliers = self.outliers.len();
            self.symbols.resize(at + n, 0);
            huffman::symbols(residuals, &mut self.symbols[at..], &mut self.outliers);
            self.histogram.add(&self.symbols[at..]);
            planned.symbols = n;
            planned.outliers = self.outliers.len() - outliers;
        }
        self.tiles.push(planned);
    }
}

/// Bytes of a fixed-width part: its width and its words. None for a tile of zeros.
fn fixed_len(n: usize, width: u32) -> usize {
    if width == 0 { 0 } else { 4 + 4 * (n * width as usize).div_ceil(32) }
}

/// Appends the exceptions of a tile: runs of equal bits.
fn write_exceptions<S: Scalar>(x: &[S], ordinary: &[u8], out: &mut Vec<u8>) {
    let mut records: Vec<(usize, usize)> = Vec::new();
    for (i, _) in ordinary.iter().enumerate().filter(|&(_, &o)| o == 0) {
        match records.last_mut() {
            Some((start, len)) if *start + *len == i && x[*start].bits() == x[i].bits() => *len += 1,
            _ => records.push((i, 1)),
        }
    }
    out.extend((records.len() as u32).to_le_bytes());
    for &(start, len) in &records {
        out.extend((start as u32 | (len as u32 - 1) << 16).to_le_bytes());
    }
    for &(start, _) in &records {
        out.extend(&x[start].bits().to_u64().to_le_bytes()[..S::SIZE]);
    }
}

/// Second pass: appends the payloads of a run's tiles to `out`, their kinds to `kinds`; returns their lengths in units of
/// four bytes.
#[inline(always)]
pub(super) fn write<S: Scalar>(
    plan: &Plan<'_, S>,
    run: &Run,
    encoder: &Encoder,
    kinds: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Vec<u32> {
    let mut lens = Vec::with_capacity(run.tiles.len());
    let (mut symbols, mut outliers, mut exceptions) = (&run.symbols[..], &run.outliers[..], &run.exceptions[..]);
    let mut stream = vec![0; huffman::stream_room(LORENZO_TILE)];
    let mut gaps = Vec::new();
    for (i, p) in (run.first..).zip(&run.tiles) {
        let start = out.len();
        let (mine, rest) = exceptions.split_at(p.exceptions);
        exceptions = rest;
        out.extend_from_slice(mine);
        let (bytes, rest) = symbols.split_at(p.symbols);
        symbols = rest;
        let (mine, rest) = outliers.split_at(p.outliers);
        outliers = rest;
        let mut kind = p.kind;
        if kind.class == Class::Raw {
            write_raw(plan, &plan.grid.tile(i), out);
        } else if kind.class == Class::Huffman {
            let bits = encoder.encode(bytes, mine, &mut stream, &mut gaps);
            let words = bits.div_ceil(32);
            let units = if plan.gaps { gap_units(words) } else { 0 };
            if 4 * (words + units) <= fixed_len(bytes.len(), p.width) {
                if plan.gaps {
                    let at = out.len();
                    out.extend_from_slice(&gaps);
                    out.resize(at + 4 * units, 0);
                }
                out.extend_from_slice(&stream[..4 * words]);
            } else {
                kind.class = Class::FixedWidth;
                write_fixed(bytes, mine, p.width, out);
            }
        }
        kinds.push(kind.pack());
        lens.push(((out.len() - start) / 4) as u32);
    }
    lens
}

fn write_raw<S: Scalar>(plan: &Plan<'_, S>, tile: &Tile, out: &mut Vec<u8>) {
    let mut x = vec![S::ZERO; tile.len()];
    plan.grid.gather(plan.values, tile, &mut x);
    out.extend(x.iter().flat_map(|v| v.bits().to_u64().to_le_bytes().into_iter().take(S::SIZE)));
}

/// Zigzag residuals of `width` bits each, from their symbols.
fn write_fixed(bytes: &[u8], outliers: &[u32], width: u32, out: &mut Vec<u8>) {
    out.extend(width.to_le_bytes());
    let (mut held, mut count) = (0u64, 0);
    let mut outliers = outliers.iter();
    for &b in bytes {
        let z = if usize::from(b) < crate::constants::LORENZO_DIRECT {
            b.into()
        } else {
            outliers.next().copied().unwrap_or(0)
        };
        held |= u64::from(z) << count;
        count += width;
        if count >= 32 {
            out.extend((held as u32).to_le_bytes());
            held >>= 32;
            count -= 32;
        }
    }
    if count > 0 {
        out.extend((held as u32).to_le_bytes());
    }
}
