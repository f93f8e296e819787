// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floats of which a chunk has few, as their places in a dictionary of them. FORMAT.md §3.3, §8.
//!
//! ```text
//! writing   numbers with their places ──► the same in the numbers' order, equal ones side by side ──► codes
//! reading   places ──► the dictionary's numbers
//! ```
//!
//! Most chunks have thousands of numbers that differ. A table of them is filled and asked at random places; to sort all
//! by their digits, the lowest first, is three to six walks along memory (Knuth, The Art of Computer Programming 3,
//! 5.2.5).

use super::scale::{Word, ordered};
use crate::error::{Error, Result};
use crate::memory;

/// Bits of a digit: 11 make three digits of 32 bits.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts numbers, each with its place. All bits but these are the same in all of them.
fn sort<W: Word>(numbers: &mut Vec<(W, u32)>, differ: u64) -> Result<()> {
    let sign = W::MIN.bits();
    let mut sorted = memory::zeros::<(W, u32)>(numbers.len())?;
    let (mut low, end) = (differ.trailing_zeros(), 64 - differ.leading_zeros());
    while low < end {
        let digit = |q: W| ((q.bits() ^ sign) >> low) as usize % DIGITS;
        let mut next = [0u32; DIGITS];
        numbers.iter().for_each(|(q, _)| next[digit(*q)] += 1);
        let mut all = 0;
        for next in &mut next {
            (*next, all) = (all, all + *next);
        }
        for number in &*numbers {
            let next = &mut next[digit(number.0)];
            sorted[*next as usize] = *number;
            *next += 1;
        }
        std::mem::swap(numbers, &mut sorted);
        low += DIGIT_BITS;
    }
    Ok(())
}

/// Writes the place of each number, the lowest code of those with these bits, and returns the dictionary: the numbers
/// in order, as whole ones.
pub(super) fn places<W: Word>(values: &[W], special: Option<u64>, codes: &mut [W]) -> Result<Vec<W>> {
    let special = special.map(|bits| W::cut(bits as i64));
    let is_again = |i: usize| i > 0 && values[i] == values[i - 1];
    // Of equal ones in a row the first.
    let mut firsts = memory::zeros::<(W, u32)>(values.len())?;
    let mut count = 0;
    for (i, (x, code)) in values.iter().zip(codes.iter_mut()).enumerate() {
        firsts[count] = (ordered(*x), i as u32);
        count += usize::from(!is_again(i) && Some(*x) != special);
        *code = W::MIN;
    }
    firsts.truncate(count);
    let Some(&(first, _)) = firsts.first() else { return Ok(Vec::new()) };
    let differ = firsts.iter().fold(0, |differ, (q, _)| differ | q.bits() ^ first.bits());
    sort(&mut firsts, differ)?;
    let mut numbers = memory::zeros::<W>(firsts.len())?;
    let (mut place, mut last) = (0, firsts[0].0);
    for (q, i) in firsts {
        place += usize::from(q != last);
        (numbers[place], last) = (q, q);
        codes[i as usize] = W::cut(place as i64);
    }
    numbers.truncate(place + 1);
    for i in (1..codes.len()).filter(|i| is_again(*i)) {
        codes[i] = codes[i - 1];
    }
    Ok(numbers)
}

/// The numbers at these places of the dictionary, which has their bits, and the special one for the lowest code.
pub(super) fn numbers<W: Word>(codes: &mut [W], dictionary: &[W], special: Option<u64>) -> Result<()> {
    let special = special.map(|bits| W::cut(bits as i64));
    for code in codes {
        *code = match (special, usize::try_from(code.wide()).ok().and_then(|place| dictionary.get(place))) {
            (_, Some(&x)) => x,
            (Some(special), _) if *code == W::MIN => special,
            _ => {
                let why = format!("the code {} with a dictionary of {} numbers", code.wide(), dictionary.len());
                return Err(Error::corrupt("scaled codes", why));
            }
        };
    }
    Ok(())
}
