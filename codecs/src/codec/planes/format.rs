// SPDX-License-Identifier: MIT OR Apache-2.0
//! FORMAT.md as fields: the step, a tile's head, the word of the masks, modes of bit planes. No loops over data.

use super::lengths::Lengths;
use super::shape::BLOCKS;
use super::types::Value;
use crate::constants::{PLANES_STEP_128THS, PLANES_TILE};
use crate::error::Damage;

/// A word as it stands in a payload.
pub(super) type Word = [u8; 4];

/// A word as a number.
#[inline(always)]
pub(super) fn number(word: Word) -> u32 {
    u32::from_le_bytes(word)
}

/// How a bit plane is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Absent,
    Full,
    Sparse,
}

impl Mode {
    /// The lowest two bits, which are not 3: [`modes_are_known`].
    #[inline(always)]
    pub(super) fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Mode::Absent,
            1 => Mode::Full,
            _ => Mode::Sparse,
        }
    }
}

/// Whether no two bits that are a plane's mode are 3.
#[inline(always)]
pub(super) fn modes_are_known(modes: u32) -> bool {
    modes & modes >> 1 & 0x5555_5555 == 0
}

/// What a tile's residuals are of, in the order of the format's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Quanta near a base, which is in the head.
    Quanta,
    /// Quanta as wide as the values.
    Wide,
    /// The values' bits.
    Bits,
    /// None: the values as they are.
    Raw,
}

/// Exceptions of a tile, as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceptions {
    None,
    Each,
    /// All have the same bits, stored once.
    Uniform,
}

/// What a tile's payload begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) class: Class,
    pub(super) predictor: usize,
    pub(super) exceptions: Exceptions,
    /// Class 0: slices of each block.
    pub(super) slices: [usize; BLOCKS],
    /// Class 0: the base in its units.
    pub(super) base: i32,
    /// Classes 1 and 2.
    pub(super) lengths: Lengths,
    /// Classes 1 and 2: modes of each block's planes.
    pub(super) modes: [u16; BLOCKS],
    /// Class 1: quanta count half steps.
    pub(super) halves: bool,
}

/// In class 0.
const EXCEPTIONS: u32 = 1 << 9;
const UNIFORM: u32 = 1 << 10;
const BASE_SHIFT: u32 = 11;
/// In classes 1 and 2.
const MAP: u32 = 1 << 4;
const HALVES: u32 = 1 << 6;
const MODES_SHIFT: u32 = 8;
const MODES_BITS: u32 = 6;
const TOP_SHIFT: u32 = 6;
const ZEROS_SHIFT: u32 = 13;
const EXPONENT_SHIFT: u32 = 20;
const NUMBERS: u32 = (1 << 24) - 1;
const LENGTHS_EXCEPTIONS: u32 = 1 << 24;
const LENGTHS_UNIFORM: u32 = 1 << 25;
/// Words of the head there.
const LENGTHS_WORDS: usize = 3;

/// What a head is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// Grid rank.
    pub(super) rank: usize,
    /// Bytes of a value.
    pub(super) size: usize,
    /// There is a step.
    pub(super) quanta: bool,
    /// The type's class is float.
    pub(super) float: bool,
}

impl Head {
    pub(super) const RAW: Head = Head {
        class: Class::Raw,
        predictor: 0,
        exceptions: Exceptions::None,
        slices: [0; BLOCKS],
        base: 0,
        lengths: Lengths { least: 0, top: 0, zeros: 0, numbers: 0, exponent: None },
        modes: [0; BLOCKS],
        halves: false,
    };

    /// Words of the head.
    pub(super) fn len(&self) -> usize {
        if matches!(self.class, Class::Wide | Class::Bits) { LENGTHS_WORDS } else { 1 }
    }

    /// Its words, of which the first [`Head::len`] count.
    pub(super) fn pack(&self) -> [u32; LENGTHS_WORDS] {
        let first = self.class as u32 | (self.predictor as u32) << 2;
        let flags = |each, uniform| match self.exceptions {
            Exceptions::None => 0,
            Exceptions::Each => each,
            Exceptions::Uniform => each | uniform,
        };
        match self.class {
            Class::Raw => [first, 0, 0],
            Class::Quanta => {
                let two = |k: usize| u32::from(self.slices[k] == 2) << (4 + k);
                let slices: u32 = (0..BLOCKS).map(two).sum();
                [first | slices | flags(EXCEPTIONS, UNIFORM) | (self.base as u32) << BASE_SHIFT, 0, 0]
            }
            Class::Wide | Class::Bits => {
                let l = &self.lengths;
                let modes = self.modes.iter().rev().fold(0, |all, &modes| all << MODES_BITS | u32::from(modes));
                let map = l.exponent.map_or(0, |_| MAP) | if self.halves { HALVES } else { 0 };
                let exponent = (l.exponent.unwrap_or(0) as u32) << EXPONENT_SHIFT;
                [
                    first | map | modes << MODES_SHIFT,
                    l.least | l.top << TOP_SHIFT | l.zeros << ZEROS_SHIFT | exponent,
                    l.numbers | flags(LENGTHS_EXCEPTIONS, LENGTHS_UNIFORM),
                ]
            }
        }
    }

    /// Reads the head that a tile begins with.
    pub(super) fn unpack(tile: &[Word], allowed: Allowed) -> Result<Self, Damage> {
        let Some(&first) = tile.first() else { return Err("no words".into()) };
        let word = number(first);
        let refuse = |why: String| Err(Damage::from(format!("head {word:#010x}: {why}")));
        let class = match word & 3 {
            0 => Class::Quanta,
            1 => Class::Wide,
            2 => Class::Bits,
            _ => Class::Raw,
        };
        if matches!(class, Class::Quanta | Class::Wide) && !allowed.quanta {
            return refuse(format!("class {} without a usable step", word & 3));
        }
        let mut words = [word, 0, 0];
        let mut head = Head { class, predictor: (word >> 2 & 3) as usize, ..Head::RAW };
        if head.predictor > allowed.rank {
            return refuse(format!("predictor {} in grid rank {}", head.predictor, allowed.rank));
        }
        let (flags, each, uniform) = match class {
            Class::Quanta => {
                head.slices = std::array::from_fn(|k| 1 + (word >> (4 + k) & 1) as usize);
                head.base = word as i32 >> BASE_SHIFT;
                (word, EXCEPTIONS, UNIFORM)
            }
            // Nothing else may be said of it.
            Class::Raw => {
                head.predictor = 0;
                (0, 1, 1)
            }
            Class::Wide | Class::Bits => {
                let Some(&all) = tile.first_chunk::<LENGTHS_WORDS>() else {
                    return refuse(format!("{} words where the head has {LENGTHS_WORDS}", tile.len()));
                };
                words = all.map(number);
                head.lengths(words, allowed)?;
                (words[2], LENGTHS_EXCEPTIONS, LENGTHS_UNIFORM)
            }
        };
        head.exceptions = match (flags & each != 0, flags & uniform != 0) {
            (false, false) => Exceptions::None,
            (true, false) => Exceptions::Each,
            (true, true) => Exceptions::Uniform,
            (false, true) => return refuse("uniform exceptions, but none".into()),
        };
        if head.pack() != words {
            return refuse("a bit that must be 0 is not".into());
        }
        Ok(head)
    }

    /// What classes 1 and 2 say of lengths and modes.
    fn lengths(&mut self, [first, second, third]: [u32; LENGTHS_WORDS], allowed: Allowed) -> Result<(), Damage> {
        let (bits, largest) = if allowed.size == 4 { (32, 127) } else { (64, 1023) };
        let exponent = second as i32 >> EXPONENT_SHIFT;
        let map = first & MAP != 0;
        self.halves = self.class == Class::Wide && first & HALVES != 0;
        self.modes = std::array::from_fn(|k| (first >> (MODES_SHIFT + MODES_BITS * k as u32) & 0x3F) as u16);
        self.lengths = Lengths {
            least: second & 0x3F,
            top: second >> TOP_SHIFT & 0x7F,
            zeros: second >> ZEROS_SHIFT & 0x3F,
            numbers: third & NUMBERS,
            exponent: map.then_some(exponent),
        };
        let l = &self.lengths;
        if !modes_are_known(first >> MODES_SHIFT) {
            return Err(format!("a plane has mode 3 in {first:#010x}").into());
        }
        if l.top + l.zeros > bits || l.zeros >= bits {
            return Err(format!("lengths up to {} before {} zeros, values of {bits} bits", l.top, l.zeros).into());
        }
        if !map && exponent != 0 {
            return Err(format!("2^{exponent} in map 0").into());
        }
        if map && (self.class == Class::Wide || !allowed.float || exponent > largest || exponent < 1 - largest) {
            return Err(
                format!("integers times 2^{exponent} in class {:?}, float {}", self.class, allowed.float).into()
            );
        }
        Ok(())
    }
}

/// The word of a tile's masks: the mode of each block's, and the number of exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) modes: u32,
    pub(super) count: usize,
}

impl Masks {
    pub(super) fn pack(self) -> u32 {
        self.modes | (self.count as u32) << 8
    }

    pub(super) fn unpack(word: u32) -> Result<Self, Damage> {
        let masks = Masks { modes: word & 0xFF, count: (word >> 8) as usize };
        if !(1..=PLANES_TILE).contains(&masks.count) {
            return Err(format!("the word of masks is {word:#010x}, its count must be 1 to {PLANES_TILE}").into());
        }
        if !modes_are_known(masks.modes) {
            return Err(format!("a mask has mode 3 in {word:#010x}").into());
        }
        Ok(masks)
    }

    /// The mode of a block's mask.
    #[inline(always)]
    pub(super) fn mode(self, block: usize) -> Mode {
        Mode::from_bits(self.modes >> (2 * block))
    }
}

/// The step of a bound; `None` where it is not usable. FORMAT.md §5.
pub(super) fn step<S: Value>(bound: f64) -> Option<S> {
    let step = S::from_f64(bound * (f64::from(PLANES_STEP_128THS) / 128.0));
    let most = f64::from_bits(u64::from(1023 + S::STEP_LOG2) << 52);
    (1.0 / most..=most).contains(&step.to_f64()).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_usable_between_their_limits() {
        assert_eq!(step::<f64>(1.0), Some(1.9921875));
        assert_eq!(step::<f32>(0.001), Some(0.0019921875));
        for bound in [0.0, 5e-324, 1e-31, f64::MAX, 1e31] {
            assert_eq!(step::<f32>(bound), None, "{bound:e}");
        }
        assert_eq!((step::<f64>(1e-302), step::<f64>(1e302)), (None, None));
        assert!(step::<f64>(1e-300).is_some() && step::<f64>(1e300).is_some());
        // The limits themselves.
        let half = 1.0 / 1.9921875;
        assert!(step::<f32>(half * 2f64.powi(100)).is_some() && step::<f32>(half * 2f64.powi(101)).is_none());
    }
}
