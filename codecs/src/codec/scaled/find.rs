// SPDX-License-Identifier: MIT OR Apache-2.0
//! Of which unit the numbers of a chunk are multiples, by a sample of them. FORMAT.md §8.
//!
//! ```text
//! integers   the common divisor of their differences
//! floats     1. multiples of 10^-e: the lowest e at which x = nearest(x · 10^e) / 10^e for nearly all of them
//!            2. else a common divisor d of their differences, which rounding has blurred: Euclid's algorithm with a
//!               tolerance, from the least difference to the largest, each of which says d more precisely; then the
//!               decimal of fewest digits within what is left of the blur, as a factor, or as a divisor
//!            then the common divisor of the whole numbers found
//! corrected  if more than one number in 512 is no multiple: multiples of 10^-e as in 1, where a number may lie 4 units
//!            in the last place beside one, and more numbers are multiples then
//! ```
//!
//! Where that was wrong, numbers become exceptions: no bit depends on it.

use super::scale::{Word, ordered};
use crate::codec::kept::{Map, Scale};
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::memory;
use crate::params::{Class, Params};
use crate::simd::vectorize;

/// Numbers of a run: neighbours show the unit of a clock. In so few runs looking costs little beside encoding; of less
/// than a tile one number in 16 is looked at.
const RUN_VALUES: usize = 64;
const RUNS: std::ops::RangeInclusive<usize> = 4..=16;
const PART_OF_CHUNK: usize = 16;
/// Fewer numbers than this decide nothing.
const DECIDING_VALUES: usize = 16;
/// If most multiples occur, at least one in four numbers follows its neighbour by one unit.
const VALUES_PER_STEP: usize = 4;
/// Powers of ten that are tried.
const DECIMALS: i32 = 10;
/// At most one number in 20 may be no multiple, and one in 40 where a finer decimal has fewer of them: an entropy coder
/// finds which of its multiples are rare.
const VALUES_PER_EXCEPTION: usize = 20;
const VALUES_PER_RARE: usize = 40;
/// Corrections are tried where they save more than one exception in 512 numbers.
const VALUES_PER_CORRECTION: usize = 512;
/// Units in the last place that a unit has at least with corrections: fewer are hit by chance.
const ULPS_PER_UNIT: f64 = 8.0;
/// A number that stands for missing values is at least one in 64 numbers.
const VALUES_PER_MISSING: usize = 64;
/// Zeros are a special number if they are more than one in 16 numbers.
const VALUES_PER_ZERO: usize = 16;
/// Digits of a factor.
const DIGITS: usize = 9;
/// Numbers in a row that are looked for together, and bits of a place in the table that remembers numbers.
const REPEATED_ROW: u32 = 4;
pub(crate) const SLOTS: u32 = 15;
/// The same where up to 1024 numbers are looked at. Half of those that occur again, and eight more, may be forgotten.
const FEW_SLOTS: u32 = 12;
const FORGOTTEN: u64 = 8;

/// What a sample says of a chunk's numbers.
pub(crate) struct Found {
    /// Of which unit they are multiples; `None`: of none that was found.
    pub(crate) multiples: Option<Scale>,
    /// The same of floats of which some are a few units in the last place off; `None`: few or too many are.
    pub(crate) corrected: Option<Scale>,
    /// Whether all that were looked at are, and most multiples occur: a dictionary has nothing to leave out.
    pub(crate) is_full: bool,
    /// Whether more than one number in 40 is no multiple.
    pub(crate) has_many_exceptions: bool,
    /// How the bits of floats are taken as whole numbers.
    pub(crate) ordered: Scale,
    /// The numbers that were looked at, in their order, as whole ones.
    numbers: Vec<i64>,
}

/// Runs of numbers of `len` bytes that are looked at: how many, bytes from one to the next, and bytes of each. Rows
/// mostly have even lengths: an odd number of values lies from one run to the next, so that they do not all stand in
/// the same columns.
pub(crate) fn runs(len: usize, size: usize) -> (usize, usize, usize) {
    let values = len / size;
    let is_tiles = values >= LORENZO_TILE;
    let part = if is_tiles { 1 } else { PART_OF_CHUNK };
    let runs = (values / RUN_VALUES / part).clamp(*RUNS.start(), *RUNS.end());
    let apart = if is_tiles { (values / (runs + 1)) | 1 } else { (values / runs).max(RUN_VALUES) };
    let count = if is_tiles { runs } else { values / apart };
    (count, apart * size, RUN_VALUES * size)
}

/// The runs of numbers of `size` bytes that are looked at, one behind the other.
pub(crate) fn looked_at(numbers: &[u8], size: usize) -> Vec<u8> {
    let (count, apart, run) = runs(numbers.len(), size);
    let mut seen = Vec::with_capacity(count * run);
    (0..count).for_each(|k| seen.extend_from_slice(&numbers[k * apart..k * apart + run]));
    seen
}

/// Looks at these numbers, runs of a chunk.
pub(crate) fn find(params: &Params, numbers: &[u8]) -> Found {
    match params.dtype.size {
        4 => among(params, numbers.chunks_exact(4).map(|b| bits_of(params, b) as u32 as i32).collect()),
        _ => among(params, numbers.chunks_exact(8).map(|b| bits_of(params, b) as i64).collect()),
    }
}

/// Whether second differences of floats, in their order in these runs, are shorter than first ones by half a bit.
pub(crate) fn is_smooth<'a>(params: &Params, runs: impl Iterator<Item = &'a [u8]>) -> bool {
    fn bits<W: Word>(params: &Params, run: &[u8]) -> [i64; 2] {
        let raw = run.chunks_exact(W::SIZE);
        let number = |bytes: &[u8]| ordered(W::cut(bits_of(params, bytes) as i64)).wide();
        let (mut sums, mut before, mut last) = ([0, 0], 0, 0);
        for (i, k) in raw.map(number).enumerate() {
            let d = W::cut(k.wrapping_sub(before)).wide();
            let second = W::cut(d.wrapping_sub(last)).wide();
            if i > 1 {
                sums[0] += i64::from(64 - (d ^ d >> 63).leading_zeros());
                sums[1] += i64::from(64 - (second ^ second >> 63).leading_zeros());
            }
            (before, last) = (k, d);
        }
        sums
    }
    let mut all = [0, 0, 0];
    for run in runs {
        let of = if params.dtype.size == 4 { bits::<i32>(params, run) } else { bits::<i64>(params, run) };
        let n = run.len() / usize::from(params.dtype.size);
        all = [all[0] + of[0], all[1] + of[1], all[2] + n as i64];
    }
    2 * (all[0] - all[1]) > all[2]
}

/// How many of these numbers occurred before, as far as a small table of 2^`slots` places remembers.
pub(crate) fn count_again(numbers: impl Iterator<Item = u64>, slots: u32) -> Result<usize> {
    // The upper half of what a number's bits are mixed to, by the highest of it.
    let mut table = memory::zeros::<u32>(1 << slots)?;
    let is_again = |number: &u64| {
        let mixed = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
        std::mem::replace(&mut table[(mixed >> (32 - slots)) as usize], mixed) == mixed
    };
    Ok(numbers.filter(is_again).count())
}

/// Whether every second number of a sample, with the `REPEATED_ROW` - 1 before it, occurred before: `bytes` finds
/// these.
pub(crate) fn repeat_in_rows(count: usize, numbers: impl Iterator<Item = u64>) -> Result<bool> {
    let rows = numbers.scan(0u64, |row, number| {
        // What is shifted out is a number that stands farther before.
        *row = *row << (64 / REPEATED_ROW) | number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
        Some(*row)
    });
    Ok(2 * count_again(rows, SLOTS)? > count)
}

/// 256 times the binary logarithm, straight between powers of two: the same on every machine.
pub(super) fn log(n: u64) -> u64 {
    u64::from(n.ilog2()) * 256 + ((n << 8) >> n.ilog2()) - 256
}

/// The bits of a number of 4 or 8 bytes.
pub(crate) fn bits_of(params: &Params, bytes: &[u8]) -> u64 {
    let word = match (bytes.first_chunk(), bytes.first_chunk()) {
        (Some(&eight), _) => u64::from_le_bytes(eight),
        (_, Some(&four)) => u32::from_le_bytes(four).into(),
        _ => 0,
    };
    if params.dtype.big_endian { word.swap_bytes() >> (64 - 8 * bytes.len()) } else { word }
}

fn among<W: Word>(params: &Params, values: Vec<W>) -> Found {
    let special = special(params, &values, params.dtype.class == Class::Float);
    let zeros = values.iter().filter(|x| x.bits() == 0).count();
    let own = special.or((zeros > values.len() / VALUES_PER_ZERO).then_some(0));
    // Floats of few digits have zeros for the last bits.
    let numbers: Vec<i64> = values.iter().map(|x| ordered(*x).wide()).collect();
    let is_whole = |x: &W| Some(x.bits()) != own;
    let first = values.iter().position(is_whole).map_or(0, |at| numbers[at]);
    let differ = |(x, q): (&W, &i64)| if is_whole(x) { q ^ first } else { 0 };
    let differ = values.iter().zip(&numbers).map(differ).fold(0, |all, q| all | q);
    let unit = (differ & differ.wrapping_neg()).max(1);
    let ordered = Scale { unit: unit as u64, origin: first & (unit - 1), special: own, ..Scale::ORDERED };
    let [found, corrected] = multiples(params, values, special);
    let multiples = found.as_ref().map(|found| found.scale);
    let is_full = found.as_ref().is_some_and(|found| found.misses == 0 && found.is_dense);
    let has_many_exceptions = found.is_some_and(|found| found.misses > numbers.len() / VALUES_PER_RARE);
    let corrected = corrected.map(|found| found.scale);
    Found { multiples, corrected, is_full, has_many_exceptions, ordered, numbers }
}

impl Found {
    /// Whether a dictionary of the numbers may take at most that many bytes of a chunk of `values` numbers of `size`
    /// bytes.
    ///
    /// How many numbers the chunk has is estimated by those that these have once and twice (Chao 1984, Scand. J.
    /// Statist. 11). The bits of a number's place in the dictionary are the logarithm of the step from the one before.
    pub(crate) fn is_few(&self, values: u64, size: u64, most: u64) -> bool {
        let dictionary = |estimate: u64| estimate.min(values) * size / 2;
        // Mostly hardly any of them occurs again.
        let again = count_again(self.numbers.iter().map(|&number| number as u64), FEW_SLOTS);
        let again = 2 * again.unwrap_or(self.numbers.len()) as u64 + FORGOTTEN;
        let once = (self.numbers.len() as u64).saturating_sub(2 * again);
        if dictionary(estimate(0, once, again)) > most {
            return false;
        }
        let mut sorted = self.numbers.clone();
        sorted.sort_unstable();
        let counts = sorted.chunk_by(|a, b| a == b).map(<[i64]>::len);
        let [once, twice] = [1, 2].map(|times| counts.clone().filter(|&count| count == times).count() as u64);
        sorted.dedup();
        let estimate = estimate(sorted.len(), once, twice);
        let dictionary = dictionary(estimate);
        if dictionary > most {
            return false;
        }
        let (mut bits, mut before, seen) = (0, 0, sorted.len().max(1) as u64);
        for number in &self.numbers {
            let place = sorted.partition_point(|other| other < number);
            let step = place.abs_diff(before) as u64;
            bits += if step > 0 { log((2 * step * estimate / seen).max(1)) } else { 0 };
            before = place;
        }
        dictionary + bits * values / (8 * 256 * self.numbers.len().max(1) as u64) <= most
    }
}

/// How many distinct numbers a chunk may have that has these once and those twice.
fn estimate(distinct: usize, once: u64, twice: u64) -> u64 {
    distinct.max(1) as u64 + once * once.saturating_sub(1) / (2 * (twice + 1))
}

/// A map with its unit, how many numbers of a sample are no multiples, and whether one in [`VALUES_PER_STEP`] of those
/// that differ has the next multiple beside it.
struct Multiples {
    scale: Scale,
    misses: usize,
    is_dense: bool,
}

/// Units, of numbers as they are and with corrections.
fn multiples<W: Word>(params: &Params, mut values: Vec<W>, special: Option<u64>) -> [Option<Multiples>; 2] {
    let is_float = params.dtype.class == Class::Float;
    let minus_zero = 1 << (8 * W::SIZE - 1);
    let special = special.or((is_float && values.iter().any(|x| x.bits() == minus_zero)).then_some(minus_zero));
    if special.is_some() || is_float && !are_finite(&values) {
        values.retain(|x| Some(x.bits()) != special && (!is_float || x.float().is_finite()));
    }
    if values.len() < DECIDING_VALUES {
        return [None, None];
    }
    let scales = if is_float { scales(&values) } else { [Some(Scale::WHOLE), None] };
    scales.map(|scale| with_unit(Scale { special, ..scale? }, &values, is_float))
}

/// The map with the unit of these numbers.
fn with_unit<W: Word>(scale: Scale, values: &[W], is_float: bool) -> Option<Multiples> {
    let mut whole: Vec<i64> = values.iter().filter_map(|x| scale.whole(*x)).collect();
    let divisor = whole.iter().fold(0, |g, q| gcd(g, q.wrapping_sub(whole[0]).unsigned_abs()));
    if divisor == 0 || !is_float && divisor == 1 && scale.special.is_none() {
        return None;
    }
    let unit = divisor.min(1 << 62);
    let unit = if unit == divisor { unit } else { 1 };
    let scale = Scale { unit, origin: whole[0].rem_euclid(unit as i64), ..scale };
    let misses = values.len() - whole.len();
    whole.sort_unstable();
    whole.dedup();
    let steps = whole.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) as u64 == unit).count();
    Some(Multiples { scale, misses, is_dense: steps > whole.len() / VALUES_PER_STEP })
}

/// The bits of what is left out: the fill value, what is infinite or NaN, or an end of the range that is far away, if
/// it occurs.
fn special<W: Word>(params: &Params, values: &[W], is_float: bool) -> Option<u64> {
    let odd = if is_float && !are_finite(values) { values } else { &[] };
    let odd = odd.iter().filter(|x| !x.float().is_finite()).map(|x| x.bits());
    // The majority, if there is one (Boyer and Moore 1991): some may be numbers gone wrong.
    let (most, _) = odd.fold((None, 0), |(most, lead), bits| match lead {
        0 => (Some(bits), 1),
        _ if most == Some(bits) => (most, lead + 1),
        _ => (most, lead - 1),
    });
    let fill = params.fill.filter(|fill| values.iter().any(|x| x.bits() == *fill));
    fill.or(most).or_else(|| far(values, is_float))
}

/// Whether all of these floats are finite.
fn are_finite<W: Word>(values: &[W]) -> bool {
    values.iter().fold(true, |all, x| all & x.float().is_finite())
}

/// The lowest or the highest number, if it is frequent and farther from all others than these are from each other: what
/// stands for missing numbers where no fill value was defined.
fn far<W: Word>(values: &[W], is_float: bool) -> Option<u64> {
    let number = |x: &W| if is_float { x.float() } else { x.wide() as f64 };
    let in_order = |x: W| if is_float { ordered(x) } else { x };
    let any = in_order(*values.first()?);
    let ends = vectorize(
        #[inline(always)]
        || values.iter().map(|x| in_order(*x)).fold([any; 2], |[low, high], x| [low.min(x), high.max(x)]),
    );
    let ends = ends.map(in_order);
    let is_far = |end: &W| {
        let count = values.iter().filter(|x| *x != end).count();
        if count < 2 || values.len() - count <= values.len() / VALUES_PER_MISSING {
            return false;
        }
        let rest = values.iter().filter(|x| *x != end).map(number);
        let (low, high) = rest.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let gap = if number(end) < low { low - number(end) } else { number(end) - high };
        gap > high - low
    };
    ends.iter().find(|end| is_far(end)).map(|end| end.bits())
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Significant bits that whole numbers may have: some less than the type's, or all numbers are multiples.
fn most<W: Word>() -> f64 {
    if W::SIZE == 4 { 2f64.powi(22) } else { 2f64.powi(50) }
}

/// How many of the numbers are no multiples; `None`: more than one in [`VALUES_PER_EXCEPTION`].
fn misses<W: Word>(scale: &Scale, values: &[W]) -> Option<usize> {
    let most = most::<W>() / if scale.corrected { ULPS_PER_UNIT } else { 1.0 };
    let mut misses = 0;
    for (i, x) in values.iter().enumerate() {
        misses += usize::from(scale.whole(*x).is_none_or(|q| q.unsigned_abs() as f64 > most));
        if misses > DECIDING_VALUES / 4 + i / VALUES_PER_EXCEPTION {
            return None;
        }
    }
    (misses <= values.len() / VALUES_PER_EXCEPTION).then_some(misses)
}

/// Maps of floats, without corrections and with them; the latter unless nearly all numbers need none.
fn scales<W: Word>(values: &[W]) -> [Option<Scale>; 2] {
    let found = decimal(values, false).or_else(|| product(values));
    let enough = values.len() / VALUES_PER_CORRECTION;
    let fewer = |(misses, _): &(usize, Scale)| found.is_none_or(|(before, _)| misses + enough < before);
    let is_open = found.is_none_or(|(misses, _)| misses > enough);
    let corrected = if is_open { decimal(values, true).filter(fewer) } else { None };
    [found, corrected].map(|found| found.map(|(_, scale)| scale))
}

/// Quotients by a power of ten, and how many numbers are none.
fn decimal<W: Word>(values: &[W], corrected: bool) -> Option<(usize, Scale)> {
    let scale = |e| Scale { map: Map::Quotient, factor: 10f64.powi(e), corrected, ..Scale::WHOLE };
    let mut found = (0..=DECIMALS).map(scale).filter_map(|scale| Some((misses(&scale, values)?, scale))).peekable();
    let coarsest = found.peek().copied();
    found.find(|(misses, _)| *misses <= values.len() / VALUES_PER_RARE).or(coarsest)
}

/// Products, or quotients, by a common divisor of the differences, and how many numbers are none.
fn product<W: Word>(values: &[W]) -> Option<(usize, Scale)> {
    // What has no divisor mostly shows it by a few of its numbers.
    let few = sorted(&values[..values.len().min(RUN_VALUES)]);
    if few.len() > 2 && divisor::<W>(&few).is_none() {
        return None;
    }
    let numbers = sorted(values);
    let (divisor, error) = divisor::<W>(&numbers)?;
    candidates::<W>(divisor, error, &numbers)
        .into_iter()
        .filter_map(|scale| Some((misses(&scale, values)?, scale)))
        .min_by_key(|(misses, _)| *misses)
}

/// The numbers that differ, in order.
fn sorted<W: Word>(values: &[W]) -> Vec<f64> {
    let mut in_order: Vec<W> = values.iter().map(|x| ordered(*x)).collect();
    in_order.sort_unstable();
    let mut numbers: Vec<f64> = in_order.into_iter().map(|x| ordered(x).float()).collect();
    numbers.dedup();
    numbers
}

/// A common divisor of the differences of these, and its error.
fn divisor<W: Word>(numbers: &[f64]) -> Option<(f64, f64)> {
    vectorize(
        #[inline(always)]
        || divisor_of::<W>(numbers),
    )
}

#[inline(always)]
fn divisor_of<W: Word>(numbers: &[f64]) -> Option<(f64, f64)> {
    let [low, .., high] = numbers[..] else { return None };
    // Rounding moves a difference by one unit in the last place of the largest number; what is computed here, again.
    let blur = 3.0 * low.abs().max(high.abs()) * if W::SIZE == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let mut steps: Vec<f64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut divisor = steps.iter().copied().fold(f64::INFINITY, f64::min);
    if divisor < 3.0 * blur {
        return None;
    }
    steps.sort_unstable_by(f64::total_cmp);
    // Each difference is a multiple, blurred once, of a divisor that is known better the larger the multiple was.
    let mut error = blur;
    let all = steps.iter().copied().chain(numbers.iter().map(|x| x - low));
    for step in all.clone().chain(all) {
        let times = (step / divisor).round();
        let rest = (step - times * divisor).abs();
        if divisor < 3.0 * blur || !divisor.is_finite() {
            return None;
        }
        if times >= 1.0 && rest <= blur + times * error {
            if blur / times < error {
                (divisor, error) = (step / times, blur / times);
            }
        } else if rest > blur + times * error {
            (divisor, error) = (rest, blur + times * error);
        }
    }
    let range = high - low;
    let times = (range / divisor).round();
    (divisor, error) = (range / times, blur / times);
    (divisor >= 3.0 * blur && times <= most::<W>()).then_some((divisor, error))
}

/// The decimal of fewest digits within `error` of `x`.
fn short(x: f64, error: f64) -> Option<f64> {
    let texts = (0..DIGITS).map(|digits| format!("{x:.digits$e}"));
    texts.filter_map(|text| text.parse().ok()).find(|short: &f64| (short - x).abs() <= error)
}

/// Maps whose factor is this divisor.
fn candidates<W: Word>(divisor: f64, error: f64, numbers: &[f64]) -> Vec<Scale> {
    let inverse = 1.0 / divisor;
    let quotient = short(inverse, inverse * inverse * error);
    let factors = [short(divisor, error), Some(divisor)];
    let divisor = factors[0].unwrap_or(divisor);
    let low = numbers[0];
    // What is left of the numbers, on average: rounding goes either way.
    let rest = |x: &f64| x - low - ((x - low) / divisor).round() * divisor;
    let mean = low + numbers.iter().map(rest).sum::<f64>() / numbers.len() as f64;
    let phase = mean - (mean / divisor).round() * divisor;
    let mut all = Vec::new();
    let mut addends = vec![mean];
    // Nearly zero where the numbers themselves are multiples.
    if phase.abs() < divisor / 8.0 {
        all.extend(quotient.map(|factor| Scale { map: Map::Quotient, factor, ..Scale::WHOLE }));
        addends = vec![0.0];
    } else {
        addends.extend(offsets(divisor, mean, low, numbers[numbers.len() - 1]));
    }
    for (factor, addend) in factors.into_iter().flatten().flat_map(|f| addends.iter().map(move |a| (f, *a))) {
        all.push(Scale { map: Map::Product, factor, addend, ..Scale::WHOLE });
        if W::SIZE == 4 {
            let (factor, addend) = (f64::from(factor as f32), f64::from(addend as f32));
            all.push(Scale { map: Map::ShortProduct, factor, addend, ..Scale::WHOLE });
        }
    }
    all
}

/// Decimals of few digits in the range of the numbers that are multiples like them, as offsets mostly are: of each
/// number of digits those next to the middle.
fn offsets(divisor: f64, mean: f64, low: f64, high: f64) -> Vec<f64> {
    let middle = (low + high) / 2.0;
    let of = |digits| {
        let unit = 10f64.powi(digits);
        let (first, last) = ((low * unit).ceil(), (high * unit).floor());
        let all = (0..(last - first + 1.0).clamp(0.0, 4096.0) as usize).map(|k| (first + k as f64) / unit);
        let mut near: Vec<f64> = all
            .filter(|x| {
                let times = (x - mean) / divisor;
                (times - times.round()).abs() < 1.0 / 64.0
            })
            .collect();
        near.sort_by(|a, b| (a - middle).abs().total_cmp(&(b - middle).abs()));
        near.truncate(4);
        near
    };
    (0..4).flat_map(of).collect()
}
