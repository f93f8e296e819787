// SPDX-License-Identifier: MIT OR Apache-2.0
//! FORMAT.md as fields: the step, a tile's head, the word of the masks, modes of bit planes. No loops over data.

use super::number::Value;
use super::shape::BLOCKS;
use crate::constants::{PLANES_STEP_128THS, PLANES_TILE};
use crate::error::Damage;

/// How a bit plane is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Absent,
    Full,
    Words,
    Bytes,
}

impl Mode {
    /// The lowest two bits.
    #[inline(always)]
    pub(super) fn of(bits: u32) -> Self {
        match bits & 3 {
            0 => Mode::Absent,
            1 => Mode::Full,
            2 => Mode::Words,
            _ => Mode::Bytes,
        }
    }
}

/// Modes of a slice whose planes are all full.
pub(super) const ALL_FULL: u16 = 0x5555;

/// What a tile's residuals are of.
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

/// A tile's first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) class: Class,
    pub(super) predictor: usize,
    pub(super) exceptions: Exceptions,
    /// Slices of each block.
    pub(super) slices: [usize; BLOCKS],
    /// Class 0: the base in its units.
    pub(super) base: i32,
}

const EXCEPTIONS: u32 = 1 << 9;
const UNIFORM: u32 = 1 << 10;
const BASE_SHIFT: u32 = 11;
const SLICES_SHIFT: u32 = 16;

impl Head {
    pub(super) const RAW: Head =
        Head { class: Class::Raw, predictor: 0, exceptions: Exceptions::None, slices: [0; BLOCKS], base: 0 };

    pub(super) fn pack(&self) -> u32 {
        let class = match self.class {
            Class::Quanta => 0,
            Class::Wide => 1,
            Class::Bits => 2,
            Class::Raw => 3,
        };
        let exceptions = match self.exceptions {
            Exceptions::None => 0,
            Exceptions::Each => EXCEPTIONS,
            Exceptions::Uniform => EXCEPTIONS | UNIFORM,
        };
        let rest = match self.class {
            Class::Quanta => {
                let two = |k: usize| u32::from(self.slices[k] == 2) << (4 + k);
                (0..BLOCKS).map(two).sum::<u32>() | (self.base as u32) << BASE_SHIFT
            }
            _ => (0..BLOCKS).map(|k| (self.slices[k] as u32) << (SLICES_SHIFT + 4 * k as u32)).sum(),
        };
        class | (self.predictor as u32) << 2 | exceptions | rest
    }

    /// Reads a head of grid rank `rank` and of values of `size` bytes; `step`: quanta are allowed.
    pub(super) fn unpack(word: u32, rank: usize, size: usize, step: bool) -> Result<Self, Damage> {
        let refuse = |why: String| Err(Damage::from(format!("head {word:#010x}: {why}")));
        let class = match word & 3 {
            0 => Class::Quanta,
            1 => Class::Wide,
            2 => Class::Bits,
            _ => Class::Raw,
        };
        if matches!(class, Class::Quanta | Class::Wide) && !step {
            return refuse(format!("class {} without a usable step", word & 3));
        }
        let exceptions = match (word & EXCEPTIONS != 0, word & UNIFORM != 0) {
            (false, false) => Exceptions::None,
            (true, false) => Exceptions::Each,
            (true, true) => Exceptions::Uniform,
            (false, true) => return refuse("uniform exceptions, but none".into()),
        };
        let mut head = Head { class, predictor: (word >> 2 & 3) as usize, exceptions, slices: [0; BLOCKS], base: 0 };
        if head.predictor > rank {
            return refuse(format!("predictor {} in grid rank {rank}", head.predictor));
        }
        match class {
            Class::Quanta => {
                head.slices = std::array::from_fn(|k| 1 + (word >> (4 + k) & 1) as usize);
                head.base = word as i32 >> BASE_SHIFT;
            }
            Class::Wide | Class::Bits => {
                head.slices = std::array::from_fn(|k| (word >> (SLICES_SHIFT + 4 * k as u32) & 15) as usize);
            }
            // Nothing else may be said of it.
            Class::Raw => head = Head::RAW,
        }
        if class != Class::Quanta && head.slices.iter().any(|&s| s > size) {
            return refuse(format!("blocks of {:?} slices, at most {size}", head.slices));
        }
        if head.pack() != word || (class == Class::Bits && exceptions != Exceptions::None) {
            return refuse("a bit that must be 0 is not".into());
        }
        Ok(head)
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
        Ok(masks)
    }

    /// The mode of a block's mask.
    #[inline(always)]
    pub(super) fn mode(self, block: usize) -> Mode {
        Mode::of(self.modes >> (2 * block))
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
    fn heads_survive_packing_and_nothing_else_is_read() {
        let mut read = 0;
        for word in (0..1 << 16).chain((0..1 << 16).map(|w| w << 16 | w & 0xFFF)) {
            for (rank, size, step) in [(3, 4, true), (1, 8, true), (2, 8, false)] {
                if let Ok(head) = Head::unpack(word, rank, size, step) {
                    assert_eq!(head.pack(), word);
                    read += 1;
                }
            }
        }
        assert!(read > 1000);
        let head = Head {
            class: Class::Quanta,
            predictor: 2,
            exceptions: Exceptions::Uniform,
            slices: [1, 2, 2, 1],
            base: -(1 << 20),
        };
        assert_eq!(Head::unpack(head.pack(), 2, 4, true).unwrap(), head);
        assert!(Head::unpack(head.pack(), 1, 4, true).is_err());
        assert!(Head::unpack(head.pack(), 2, 4, false).is_err());
    }

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
