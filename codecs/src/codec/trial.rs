// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a chunk under a bound is shorter without loss than by the candidate that auto.rs takes. Only the CPU can.
//!
//! ```text
//! numbers      1024 of the chunk, in 16 runs; of less than 8192 values at least 256
//! finer        three in four are no multiples of the power of two next below the bound, and differ from those before
//!              them: without loss they take more bits than under the bound, and the lossless candidate is not tried
//! look         whether they are multiples of a unit of two bounds or more, or few. The bound may say more of them than
//!              there is then
//! unit         what was taken is 1.02 times as long as lorenzo makes the multiples of the lossless candidate's sample,
//!              with corrections if more numbers are multiples then
//! dictionary   what was taken is 1.1 times as long as an estimate by the numbers, and 1.12 times as long as by a
//!              dictionary of the larger sample, also where it codes that: a dictionary grows with the numbers that
//!              were not seen, and lorenzo shrinks without seams
//! codec        of a small chunk lorenzo, for multiples and for what a dictionary leaves; `bytes` for differences of
//!              multiples that repeat, where it makes them 1.1 times shorter. Of a larger one lorenzo for multiples;
//!              exact.rs chooses where they repeat in the sample, and where few numbers differ: they may be shorter by
//!              `bytes`
//! ```

use super::chunk::Chunk;
use super::descriptor::Encode;
use super::kept::{Inner, Kept, Scale, Way};
use super::sample::{LOSSLESS, Looked, Sample, requests};
use super::scaled::{self, Found};
use super::{exact, lorenzo, planes, szx};
use crate::bound::{Tolerance, Used};
use crate::error::Result;
use crate::params::{Bound, Codec, Params, Request};
use crate::simd::vectorize;

/// In hundredths: how much longer what was taken is than multiples of a unit, which lose nothing, and than by a
/// dictionary, which is slow to write.
const UNIT_GAIN: u128 = 102;
const DICTIONARY_GAIN: u128 = 112;
/// The part of the numbers that need more bits than the bound leaves, where no lossless codec is tried.
const FINE: usize = 3;
const FINE_OF: usize = 4;
/// In hundredths: how much longer multiples are by lorenzo than their differences by `bytes`, which is slower.
const BYTES_GAIN: usize = 110;
/// In hundredths: how much longer than a dictionary's estimate what was taken is where a dictionary is tried, which
/// mostly takes more.
const FEW_GAIN: u128 = 110;

/// What is asked where numbers are shorter without loss.
pub const BY_CHOICE: Request = Request::new(Codec::Auto, Bound::Lossless);

/// The candidate that was taken.
#[derive(PartialEq)]
pub struct Taken {
    pub candidate: usize,
    /// Bytes that the chunk takes so.
    pub(super) len: u128,
    /// Whether a unit or a dictionary may be shorter.
    pub is_near_lossless: bool,
}

/// Whether three in four of these numbers, [`look::numbers`](super::look::numbers) of a chunk, need more bits than the
/// bound leaves: then planes does not keep them in fewer. Not where a bound is relative to each number.
pub fn loses(params: &Params, numbers: &[u8], used: Used) -> bool {
    let Tolerance::Absolute(bound) = used.tolerance else { return false };
    // The bound's exponent, and the power of two that takes that to 1.
    let exponent = bound.to_bits() >> 52;
    if !(1..2046).contains(&exponent) {
        return false;
    }
    let scale = f64::from_bits((2046 - exponent) << 52);
    let value = |bytes: &[u8]| match params.dtype.size {
        4 => f64::from(f32::from_bits(scaled::bits_of(params, bytes) as u32)),
        _ => f64::from_bits(scaled::bits_of(params, bytes)),
    };
    let values: Vec<f64> = numbers.chunks_exact(params.dtype.size.into()).map(value).collect();
    let is_fine = |x: f64, before: f64| {
        let scaled = x * scale;
        usize::from((scaled != scaled.trunc()) & (x != before) & scaled.is_finite())
    };
    let Some(&first) = values.first() else { return false };
    let fine = vectorize(
        #[inline(always)]
        || is_fine(first, 0.0) + values.windows(2).map(|pair| is_fine(pair[1], pair[0])).sum::<usize>(),
    );
    FINE_OF * fine >= FINE * values.len()
}

/// How a chunk may be shorter without loss.
pub struct Trial {
    found: Found,
    /// `None`: by a dictionary.
    unit: Option<Scale>,
    used: Used,
}

/// How a chunk may be shorter without loss than by the candidate that was taken: by `numbers`, its
/// [`look::numbers`](super::look::numbers). `None`: it is no shorter.
pub fn look_exactly(params: &Params, numbers: &[u8], raw_len: usize, used: Used, taken: &Taken) -> Option<Trial> {
    if !exact::is_open(&Params { request: BY_CHOICE, ..*params }, raw_len) {
        return None;
    }
    let found = scaled::find(params, numbers);
    let is_wide = |scale: &Scale| matches!(used.tolerance, Tolerance::Absolute(bound) if scale.step() >= 2.0 * bound);
    let unit = found.multiples.filter(is_wide).map(|scale| found.corrected.unwrap_or(scale));
    let size = usize::from(params.dtype.size);
    let most = u64::try_from(100 * taken.len / FEW_GAIN).unwrap_or(u64::MAX);
    let is_few = unit.is_none() && found.is_few((raw_len / size) as u64, size as u64, most);
    // Of few numbers exact.rs looks at corrections too.
    let unit = unit.or(found.corrected.filter(|scale| !is_few && is_wide(scale)));
    (is_few || unit.is_some()).then_some(Trial { found, unit, used })
}

impl Trial {
    /// Whether it is tried on a larger sample than this one: few numbers differ.
    pub fn wants_more(&self, sample: &Sample) -> bool {
        self.unit.is_none() && !sample.is_all
    }

    /// How the chunk is coded without loss, if that is shorter by the sample, which `chunk` has.
    pub fn shorter(&self, chunk: &Chunk<'_>, raw_len: usize, sample: &Sample, taken: &Taken) -> Result<Option<Coded>> {
        let Some(stacked) = sample.params(chunk.params, LOSSLESS, BY_CHOICE) else { return Ok(None) };
        let request = requests(chunk.params.request)[taken.candidate];
        let (chunk, values) = (Chunk { params: &stacked, ..*chunk }, raw_len / usize::from(stacked.dtype.size));
        let multiples = self.unit.map(|scale| Kept::Scaled(Way { scale, order: 0, inner: Inner::Lorenzo }));
        let mut frame = Vec::new();
        let (len, gain) = match &multiples {
            Some(multiples) => {
                let coded = exact::encode_as(&chunk, multiples, &mut frame)?;
                (coded.then_some(frame.len() as u64), UNIT_GAIN)
            }
            None => (exact::len_by_dictionary(&chunk, &self.found, values as u64)?, DICTIONARY_GAIN),
        };
        let whole = |len| sample.whole_without(LOSSLESS, len, values, raw_len);
        if len.is_none_or(|len| gain * whole(len) > 100 * taken.len) {
            return Ok(None);
        }
        if multiples.is_none() && sample.of[LOSSLESS].is_some() {
            // What was taken by a smaller sample may be shorter than that said.
            let chunk = Chunk { params: &Params { request, ..stacked }, used: Some(self.used), ..chunk };
            let mut encoded = |encode: Encode| Ok(encode(&chunk, &mut frame)?.then_some(frame.len()));
            let lossy = match request.codec {
                Codec::Lorenzo => lorenzo::frame_len(&chunk),
                Codec::Szx => encoded(szx::ENCODE),
                _ => encoded(planes::ENCODE),
            };
            if lossy?.is_some_and(|lossy| len.is_none_or(|len| gain * whole(len) > 100 * whole(lossy as u64))) {
                return Ok(None);
            }
        }
        let (size, params) = (usize::from(stacked.dtype.size), chunk.params);
        let numbers = chunk.raw.chunks_exact(size).map(|number| scaled::bits_of(params, number));
        let repeats = multiples.is_some() && scaled::repeat_in_rows(chunk.raw.len() / size, numbers)?;
        if sample.of[LOSSLESS].is_some() {
            return Ok(Some(Coded { kept: multiples.filter(|_| !repeats), frame: None }));
        }
        let Some(multiples) = multiples else {
            let scale = Scale { special: self.found.ordered.special, ..Scale::DICTIONARY };
            let dictionary = Kept::Scaled(Way { scale, order: 0, inner: Inner::Lorenzo });
            let is_shorter = exact::encode_as(&chunk, &dictionary, &mut frame)?
                && DICTIONARY_GAIN * frame.len() as u128 <= 100 * taken.len;
            return Ok(is_shorter.then_some(Coded { kept: Some(dictionary), frame: Some(frame) }));
        };
        if repeats && let Some(scale) = self.unit {
            let (kept, mut other) = (Kept::Scaled(Way { scale, order: 1, inner: Inner::Bytes }), Vec::new());
            if exact::encode_as(&chunk, &kept, &mut other)? && BYTES_GAIN * other.len() < 100 * frame.len() {
                return Ok(Some(Coded { kept: Some(kept), frame: Some(other) }));
            }
        }
        Ok(Some(Coded { kept: Some(multiples), frame: Some(frame) }))
    }
}

/// A chunk that is coded without loss.
pub struct Coded {
    /// How; `None`: exact.rs chooses.
    pub kept: Option<Kept>,
    /// Its frame, where all of it was tried.
    pub frame: Option<Vec<u8>>,
}

/// [`Trial::shorter`] of a chunk of which this candidate was taken and these numbers were looked at, by this sample,
/// whose stacks have these values.
pub(super) fn shorter_exactly(
    chunk: &Chunk<'_>,
    used: Used,
    numbers: &[u8],
    sample: Sample,
    stacks: &[Vec<u8>],
    taken: &Taken,
) -> Result<Option<Coded>> {
    let (params, raw_len) = (chunk.params, chunk.raw.len());
    let Some(trial) = look_exactly(params, numbers, raw_len, used, taken) else { return Ok(None) };
    let on = |sample: &Sample, stacks: &[Vec<u8>]| {
        let raw = sample.of[LOSSLESS].map_or(chunk.raw, |k| &stacks[k]);
        trial.shorter(&Chunk { raw, ..*chunk }, raw_len, sample, taken)
    };
    if !trial.wants_more(&sample) {
        return on(&sample, stacks);
    }
    let Some(larger) = Sample::new(params, Looked::AtAll) else { return Ok(None) };
    on(&larger, &larger.gather(chunk.raw, params.dtype.size.into(), chunk.threads)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Dtype;

    #[test]
    fn what_needs_more_bits_than_the_bound_leaves_is_not_tried_without_loss() {
        let params = Params::new(Request::default(), Dtype::F64, &[256]).unwrap();
        let loses = |tolerance, at: &dyn Fn(usize) -> f64| {
            let numbers: Vec<u8> = (0..256).flat_map(|i| at(i).to_le_bytes()).collect();
            super::loses(&params, &numbers, Used::from(tolerance))
        };
        let sine = |i: usize| (i as f64 * 0.1).sin();
        for (bound, is_finer) in [(1e-3, true), (1e-300, false), (1e-310, false), (0.0, false), (f64::INFINITY, false)]
        {
            assert_eq!(loses(Tolerance::Absolute(bound), &sine), is_finer, "{bound}");
        }
        assert!(!loses(Tolerance::PointwiseRelative(1e-3), &sine));
        let bound = Tolerance::Absolute(0.25);
        assert!(!loses(bound, &|i| i as f64 * 0.25), "multiples");
        assert!(loses(bound, &|i| i as f64 + 0.125), "finer by a bit");
        assert!(!loses(bound, &|i| if i % 2 == 0 { 0.1 } else { 1.0 }), "half of them");
        assert!(!loses(bound, &|i| (i / 8) as f64 + 0.1), "runs");
        assert!(!loses(bound, &|_| f64::NAN) && !loses(bound, &|i| 1e300 * i as f64));
    }
}
