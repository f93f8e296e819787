// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a chunk takes by a dictionary, from a sample of it: the codes of the sample, and its share of the dictionary.
//! The share is estimated by bits; the dictionary of the sample is coded where that decides.

use super::cpu::{bits_of, codes_len, differences, encode_dictionary};
use super::dictionary;
use super::find::log;
use super::scale::Word;
use crate::codec::chunk::Chunk;
use crate::codec::kept::{Inner, Scale, Way};
use crate::error::Result;
use crate::memory;

/// Bytes that this sample of a chunk of `n` numbers takes by a dictionary, its codes by lorenzo: they, and its share of
/// the dictionary.
///
/// How many numbers of the chunk differ is guessed by the guaranteed-error estimator (Charikar, Chaudhuri, Motwani,
/// Narasayya, PODS 2000, §5): what a sample of m has once stands for the root of n / m. Their codes are as much wider.
pub(crate) fn dictionary_len(sample: &Chunk<'_>, scale: Scale, n: u64, most: u64) -> Result<Option<u64>> {
    fn typed<W: Word>(sample: &Chunk<'_>, scale: Scale, n: u64, most: u64) -> Result<Option<u64>> {
        let way = Way { scale, order: 0, inner: Inner::Lorenzo };
        let values = sample.values::<W>()?;
        let mut codes: Vec<W> = memory::zeros(values.len())?;
        let mut numbers = dictionary::places(&values, scale.special, &mut codes)?;
        differences(&mut numbers, 1, 1, false)?;
        let mut counts = memory::zeros::<u32>(numbers.len())?;
        codes.iter().filter(|c| **c != W::MIN).for_each(|c| counts[c.wide() as usize] += 1);
        let m = codes.len().max(1) as u64;
        let (n, seen) = (n.max(m), counts.len().max(1) as u64);
        // 256 times the root.
        let root = ((u128::from(n) << 16) / u128::from(m)).isqrt() as u64;
        let once = counts.iter().filter(|count| **count == 1).count() as u64;
        let all = seen - once + once * root / 256;
        let wider = once * (log(all) - log(seen)) / (256 * 8);
        let share = |len: u64| {
            let share = u128::from(m) * u128::from(all) * u128::from(len) / (u128::from(n) * u128::from(seen));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let about = share(bits_of(&numbers, 1, false) / 8);
        if about / 2 > most {
            return Ok(None);
        }
        let Some(own) = codes_len(&mut codes, sample, &way)? else { return Ok(None) };
        let own = own as u64 + wider;
        // Its frame may be half as long as bits say.
        if own + about <= most || own + about / 2 > most {
            return Ok(Some(own + about));
        }
        Ok(Some(own + share(encode_dictionary(&mut numbers, sample.threads)?.len() as u64)))
    }
    if sample.params.dtype.size == 4 {
        typed::<i32>(sample, scale, n, most)
    } else {
        typed::<i64>(sample, scale, n, most)
    }
}
