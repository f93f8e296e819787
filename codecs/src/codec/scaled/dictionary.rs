// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floats of which a chunk has few, as their places in a dictionary of them. FORMAT.md §3.3, §8.
//!
//! ```text
//! writing   numbers ──► a hash table of those that differ ──► these in order ──► place of each
//! reading   places ──► the dictionary's numbers
//! ```

use super::cpu::{self, bits, encode_codes, log};
use super::scale::{Word, code_type, ordered};
use crate::codec::chunk::{self, Chunk};
use crate::codec::kept::{Inner, Scale, Way};
use crate::error::{Error, Result};
use crate::memory;
use crate::params::{Bound, Codec, Extents, Params, Request};

/// Slots of the hash table at first.
const FIRST_SLOTS: usize = 1024;

/// Numbers in the order in which they came first, and where each of them is.
struct Seen<W> {
    found: Vec<W>,
    /// A hash table: 0, or one more than a place in `found`. At least half of it is 0.
    slots: Vec<u32>,
}

impl<W: Word> Seen<W> {
    fn slot(&self, q: W) -> usize {
        let mixed = q.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut slot = (mixed >> (64 - self.slots.len().ilog2())) as usize;
        while self.slots[slot] > 0 && self.found[self.slots[slot] as usize - 1] != q {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }

    fn place(&mut self, q: W) -> Result<u32> {
        let slot = self.slot(q);
        if self.slots[slot] > 0 {
            return Ok(self.slots[slot] - 1);
        }
        memory::reserve(&mut self.found, 1)?;
        self.found.push(q);
        let count = self.found.len();
        self.slots[slot] = count as u32;
        if 2 * count > self.slots.len() {
            self.slots = memory::zeros(2 * self.slots.len())?;
            for k in 0..count {
                let slot = self.slot(self.found[k]);
                self.slots[slot] = k as u32 + 1;
            }
        }
        Ok(count as u32 - 1)
    }
}

/// Writes the place of each number, the lowest code of those with these bits, and returns the dictionary: the numbers
/// in order, as whole ones.
pub(super) fn places<W: Word>(values: &[W], special: Option<u64>, codes: &mut [W]) -> Result<Vec<W>> {
    let mut seen = Seen { found: Vec::new(), slots: memory::zeros(FIRST_SLOTS)? };
    for (x, code) in values.iter().zip(codes.iter_mut()) {
        *code = match Some(x.bits()) == special {
            true => W::MIN,
            false => W::cut(seen.place(ordered(*x))?.into()),
        };
    }
    let mut numbers = memory::collect(seen.found.len(), seen.found.iter().copied())?;
    numbers.sort_unstable();
    let mut place = memory::zeros::<u32>(numbers.len())?;
    for (k, q) in numbers.iter().enumerate() {
        place[seen.slots[seen.slot(*q)] as usize - 1] = k as u32;
    }
    for code in codes.iter_mut().filter(|code| **code != W::MIN) {
        *code = W::cut(place[code.wide() as usize].into());
    }
    Ok(numbers)
}

/// Gives `of` a dictionary's numbers as a chunk.
fn with_numbers<W: Word, R>(
    numbers: &[W],
    chunk: &Chunk<'_>,
    of: impl FnOnce(&Chunk<'_>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let Some(extents) = Extents::new(&[numbers.len() as u64]) else { return Ok(None) };
    let params = Params {
        request: Request::new(Codec::Planes, Bound::Lossless),
        dtype: code_type(W::SIZE as u8),
        extents,
        fill: None,
        lossy_allowed: false,
    };
    let raw = bytemuck::cast_slice(numbers);
    let swapped;
    let raw = if cfg!(target_endian = "big") {
        let mut own = memory::collect(raw.len(), raw.iter().copied())?;
        chunk::swap(&mut own, W::SIZE);
        swapped = own;
        &swapped
    } else {
        raw
    };
    of(&Chunk { params: &params, raw, ..*chunk })
}

/// How a dictionary's numbers are coded, which rise: the order of their differences.
fn of_order(order: u8, inner: Inner) -> Way {
    Way { scale: Scale::WHOLE, order, inner }
}

/// The order of differences of a dictionary's numbers that leaves fewer bits, 1 or 2, and these.
fn shortest_order(numbers: &Chunk<'_>) -> Result<Option<(u8, u64)>> {
    let cost = |order| -> Result<u64> { Ok(bits(&[*numbers], &of_order(order, Inner::Bytes))?.unwrap_or(u64::MAX)) };
    let (first, second) = (cost(1)?, cost(2)?);
    Ok(Some(if first < second { (1, first) } else { (2, second) }))
}

/// The frame of a dictionary: of its numbers' differences, by planes or by bytes. `None`: these cannot be taken.
pub(super) fn encode<W: Word>(numbers: &[W], chunk: &Chunk<'_>) -> Result<Option<Vec<u8>>> {
    with_numbers(numbers, chunk, encode_numbers)
}

fn encode_numbers(numbers: &Chunk<'_>) -> Result<Option<Vec<u8>>> {
    let Some((order, _)) = shortest_order(numbers)? else { return Ok(None) };
    let mut shortest: Option<Vec<u8>> = None;
    for inner in [Inner::Planes, Inner::Bytes] {
        let mut dictionary = Vec::new();
        if cpu::encode(numbers, &of_order(order, inner), &mut dictionary)?
            && shortest.as_ref().is_none_or(|s| dictionary.len() < s.len())
        {
            shortest = Some(dictionary);
        }
    }
    Ok(shortest)
}

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
        let numbers = places(&values, scale.special, &mut codes)?;
        let Some((_, bits)) = with_numbers(&numbers, sample, shortest_order)? else { return Ok(None) };
        let all_places = || codes.iter().filter(|c| **c != W::MIN).map(|c| c.wide() as usize);
        let mut counts = memory::zeros::<u32>(all_places().max().map_or(0, |last| last + 1))?;
        all_places().for_each(|place| counts[place] += 1);
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
        let about = share(bits / 8);
        if about / 2 > most {
            return Ok(None);
        }
        let mut frame = Vec::new();
        if !encode_codes(&mut codes, sample, &way, &mut frame)? {
            return Ok(None);
        }
        let own = frame.len() as u64 + wider;
        // Its frame may be half as long as bits say.
        if own + about <= most || own + about / 2 > most {
            return Ok(Some(own + about));
        }
        Ok(encode(&numbers, sample)?.map(|frame| own + share(frame.len() as u64)))
    }
    if sample.params.dtype.size == 4 {
        typed::<i32>(sample, scale, n, most)
    } else {
        typed::<i64>(sample, scale, n, most)
    }
}

/// The numbers at these places of the dictionary, and the special one for the lowest code.
pub(super) fn numbers<W: Word>(codes: &mut [W], dictionary: &[W], special: Option<u64>) -> Result<()> {
    let special = special.map(|bits| W::cut(bits as i64));
    for code in codes {
        *code = match (special, usize::try_from(code.wide()).ok().and_then(|place| dictionary.get(place))) {
            (_, Some(&q)) => ordered(q),
            (Some(special), _) if *code == W::MIN => special,
            _ => {
                let why = format!("the code {} with a dictionary of {} numbers", code.wide(), dictionary.len());
                return Err(Error::corrupt("scaled codes", why));
            }
        };
    }
    Ok(())
}
