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

/// Writes the place of each number, the lowest code of those with these bits, and returns the dictionary: the numbers in
/// order, as whole ones.
pub(super) fn places<W: Word>(values: &[W], special: Option<u64>, codes: &mut [W]) -> Result<Vec<W>> {
    let bits = (2 * values.len() + 1).ilog2() + 1;
    // Numbers in the order in which they come; 0, or one more than the place of one of them there.
    let mut found: Vec<W> = memory::with_capacity(values.len())?;
    let mut slots = memory::zeros::<u32>(1 << bits)?;
    for (x, code) in values.iter().zip(codes.iter_mut()) {
        if Some(x.bits()) == special {
            *code = W::MIN;
            continue;
        }
        let q = ordered(*x);
        let mut slot = (q.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize;
        while slots[slot] > 0 && found[slots[slot] as usize - 1] != q {
            slot = (slot + 1) % slots.len();
        }
        if slots[slot] == 0 {
            found.push(q);
            slots[slot] = found.len() as u32;
        }
        *code = W::cut(i64::from(slots[slot]) - 1);
    }
    let mut order = memory::collect(found.len(), 0..found.len() as u32)?;
    order.sort_unstable_by_key(|&k| found[k as usize]);
    let mut place = memory::zeros::<u32>(found.len())?;
    order.iter().enumerate().for_each(|(k, &old)| place[old as usize] = k as u32);
    for code in codes.iter_mut().filter(|code| **code != W::MIN) {
        *code = W::cut(place[code.wide() as usize].into());
    }
    memory::collect(found.len(), order.iter().map(|&k| found[k as usize]))
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
