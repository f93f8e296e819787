// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a chunk under a bound is shorter without loss than by the candidate that auto.rs takes. Only the CPU can.
//!
//! ```text
//! look         at some 512 to 2048 numbers of the lossless candidate's sample: whether they are multiples of a unit of
//!              two bounds or more, or few. The bound may say more of them than there is then
//! unit         what was taken is 1.02 times as long as lorenzo makes the multiples of the sample, with corrections if
//!              more numbers are multiples then
//! dictionary   what was taken is 1.1 times as long as an estimate by the numbers, and 1.12 times as long as by a
//!              dictionary of the larger sample: a dictionary grows with the numbers that were not seen
//! codec        lorenzo for multiples. exact.rs chooses where few numbers differ, for `bytes` may be shorter than a
//!              dictionary, and for multiples that repeat in the sample, for they are short by `bytes`
//! ```

use super::chunk::Chunk;
use super::exact;
use super::kept::{Inner, Kept, Scale, Way};
use super::sample::{LORENZO, LOSSLESS, Looked, Sample};
use super::scaled::{self, Found};
use crate::bound::{Tolerance, Used};
use crate::error::Result;
use crate::params::{Bound, Codec, Params, Request};

/// In hundredths: how much longer what was taken is than multiples of a unit, which lose nothing, and than by a
/// dictionary, which is slow to write.
const UNIT_GAIN: u128 = 102;
const DICTIONARY_GAIN: u128 = 112;
/// In hundredths: how much longer than a dictionary's estimate what was taken is where a dictionary is tried, which
/// mostly takes more.
const FEW_GAIN: u128 = 110;

/// What is asked where numbers are shorter without loss.
pub const BY_CHOICE: Request = Request::new(Codec::Auto, Bound::Lossless);

/// The candidate that was taken.
pub struct Taken {
    pub candidate: usize,
    /// Bytes that the chunk takes so.
    pub(super) len: u128,
    /// Whether a unit or a dictionary may be shorter.
    pub is_near_lossless: bool,
}

/// What a look at some numbers says of coding a chunk without loss.
pub enum Exact {
    /// It is no shorter.
    Longer,
    /// Few of the numbers differ: a larger sample says more.
    Perhaps,
    /// It may be shorter.
    Try(Box<Trial>),
}

/// How a chunk may be shorter without loss.
pub struct Trial {
    found: Found,
    /// `None`: by a dictionary.
    unit: Option<Scale>,
}

/// Whether a chunk may be shorter without loss than by the candidate that was taken: by `numbers`,
/// [`runs`](scaled::runs) of the lossless candidate's sample.
pub fn look_exactly(
    params: &Params,
    numbers: &[u8],
    raw_len: usize,
    used: Used,
    sample: &Sample,
    taken: &Taken,
) -> Exact {
    if !exact::is_open(&Params { request: BY_CHOICE, ..*params }, raw_len) {
        return Exact::Longer;
    }
    let found = scaled::find(params, numbers);
    let is_wide = |scale: &Scale| matches!(used.tolerance, Tolerance::Absolute(bound) if scale.step() >= 2.0 * bound);
    let unit = found.multiples.filter(is_wide).map(|scale| found.corrected.unwrap_or(scale));
    let size = usize::from(params.dtype.size);
    let most = u64::try_from(100 * taken.len / FEW_GAIN).unwrap_or(u64::MAX);
    let is_few = unit.is_none() && found.is_few((raw_len / size) as u64, size as u64, most);
    // Of few numbers exact.rs looks at corrections too.
    let unit = unit.or(found.corrected.filter(|scale| !is_few && is_wide(scale)));
    match is_few || unit.is_some() {
        false => Exact::Longer,
        true if is_few && !sample.is_all => Exact::Perhaps,
        true => Exact::Try(Box::new(Trial { found, unit })),
    }
}

impl Trial {
    /// How the chunk is coded without loss, if that is shorter by the sample, which `chunk` has. `Some(None)`: exact.rs
    /// chooses.
    pub fn shorter(
        &self,
        chunk: &Chunk<'_>,
        raw_len: usize,
        sample: &Sample,
        taken: &Taken,
    ) -> Result<Option<Option<Kept>>> {
        let Some(stacked) = sample.params(chunk.params, LOSSLESS, BY_CHOICE) else { return Ok(None) };
        let (chunk, values) = (Chunk { params: &stacked, ..*chunk }, raw_len / usize::from(stacked.dtype.size));
        let multiples = self.unit.map(|scale| Kept::Scaled(Way { scale, order: 0, inner: Inner::Lorenzo }));
        let (len, gain) = match &multiples {
            Some(multiples) => {
                let mut frame = Vec::new();
                let coded = exact::encode_as(&chunk, multiples, &mut frame)?;
                (coded.then_some(frame.len() as u64), UNIT_GAIN)
            }
            None => (exact::len_by_dictionary(&chunk, &self.found, values as u64)?, DICTIONARY_GAIN),
        };
        let (size, params) = (usize::from(stacked.dtype.size), chunk.params);
        let numbers = chunk.raw.chunks_exact(size).map(|number| scaled::bits_of(params, number));
        match len.map(|len| sample.whole(LORENZO, len, values, raw_len)) {
            Some(whole) if gain * whole <= 100 * taken.len => match multiples {
                Some(multiples) if !scaled::repeat_in_rows(chunk.raw.len() / size, numbers)? => {
                    Ok(Some(Some(multiples)))
                }
                _ => Ok(Some(None)),
            },
            _ => Ok(None),
        }
    }
}

/// [`Trial::shorter`] of a chunk of which this candidate was taken by this sample, whose stacks have these values.
pub(super) fn shorter_exactly(
    chunk: &Chunk<'_>,
    used: Used,
    sample: Sample,
    stacks: &[Vec<u8>],
    taken: &Taken,
) -> Result<Option<Option<Kept>>> {
    let (params, size, raw_len) = (chunk.params, usize::from(chunk.params.dtype.size), chunk.raw.len());
    let seen = Chunk { raw: sample.of[LOSSLESS].map_or(chunk.raw, |k| &stacks[k]), ..*chunk };
    match look_exactly(params, &scaled::looked_at(seen.raw, size), raw_len, used, &sample, taken) {
        Exact::Longer => Ok(None),
        Exact::Try(trial) => trial.shorter(&seen, raw_len, &sample, taken),
        Exact::Perhaps => match Sample::new(params, Looked::AtAll) {
            Some(larger) => {
                let stacks = larger.gather(chunk.raw, size, chunk.threads)?;
                shorter_exactly(chunk, used, larger, &stacks, taken)
            }
            None => Ok(None),
        },
    }
}
