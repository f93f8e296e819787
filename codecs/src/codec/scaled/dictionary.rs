// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floats of which a chunk has few, as their places in a dictionary of them. FORMAT.md §3.3, §8.
//!
//! ```text
//! writing   numbers ──► a hash table of those that differ ──► these in order ──► place of each
//! reading   places ──► the dictionary's numbers
//! ```

use super::scale::{Word, ordered};
use crate::error::{Error, Result};
use crate::memory;

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
