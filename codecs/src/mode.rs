// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of modes: what a bound may promise, with its number, its names and its sentences.
//!
//! Texts, words, the C interface and the Python package take their lists of modes from here. `bound.rs` says how a
//! mode's number becomes the bound used on a chunk.

use crate::error::{Error, Result};

/// What the reconstruction promises, for every finite value that is not the fill value, in exact arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Bound {
    /// The same bits.
    #[default]
    Lossless,
    /// abs(x − x̂) ≤ b, in the units of the data.
    Absolute(f64),
    /// abs(x − x̂) ≤ r · (max − min) over the chunk's finite, non-fill values.
    Relative(f64),
    /// abs(x − x̂) ≤ r · abs(x); zero stays zero.
    PointwiseRelative(f64),
    /// Peak signal-to-noise ratio of at least p decibels over the chunk's value range.
    Psnr(f64),
}

/// What kind of promise a [`Bound`] is: M of the words, and the mode of a frame. Displayed, it is a name for sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An absolute bound.
    Absolute = 1,
    /// One relative to the range of the chunk's values.
    Relative = 2,
    /// One relative to each value.
    PointwiseRelative = 3,
    /// A peak signal-to-noise ratio.
    Psnr = 4,
    /// Every bit comes back.
    Lossless = 9,
}

/// Which numbers a mode takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Finite ones above 0.
    Positive,
    /// Those above 0 and below 1.
    Part,
    /// None; 0 stands for it.
    None,
}

/// What is told of a mode.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModeFacts {
    /// Short name, as in `mode=abs`.
    pub name: &'static str,
    /// Long name: the keyword in Python, the option of commands, the mode in Zarr 3.
    pub keyword: &'static str,
    /// Name for sentences.
    pub title: &'static str,
    /// What the number means.
    pub meaning: &'static str,
    /// The promise in words, with `{}` for the number.
    pub promise: &'static str,
    /// The same in few words.
    pub short: &'static str,
    /// A number that may be given.
    pub example: &'static str,
    /// Which numbers may be given.
    pub values: Values,
    /// Builds the bound.
    bound: fn(f64) -> Bound,
}

const ABSOLUTE: ModeFacts = ModeFacts {
    name: "abs",
    keyword: "absolute",
    title: "absolute",
    meaning: "largest difference, in the units of the data",
    promise: "no value changes by more than {}, in the units of the data",
    short: "within {} (absolute)",
    example: "1e-3",
    values: Values::Positive,
    bound: Bound::Absolute,
};
const RELATIVE: ModeFacts = ModeFacts {
    name: "rel",
    keyword: "relative",
    title: "relative to range",
    meaning: "largest difference, as a part of the range of each chunk",
    promise: "no value changes by more than {} of its chunk's range",
    short: "within {} of each chunk's range",
    example: "1e-3",
    values: Values::Part,
    bound: Bound::Relative,
};
const POINTWISE_RELATIVE: ModeFacts = ModeFacts {
    name: "pw_rel",
    keyword: "pointwise_relative",
    title: "point-wise relative",
    meaning: "largest difference, as a part of each value",
    promise: "no value changes by more than {} of itself, zeros stay zero",
    short: "within {} of each value",
    example: "1e-3",
    values: Values::Part,
    bound: Bound::PointwiseRelative,
};
const PSNR: ModeFacts = ModeFacts {
    name: "psnr",
    keyword: "psnr",
    title: "PSNR",
    meaning: "least peak signal-to-noise ratio of each chunk, in decibels",
    promise: "a PSNR of at least {} dB over each chunk's range",
    short: "PSNR of {} dB or more in each chunk",
    example: "60",
    values: Values::Positive,
    bound: Bound::Psnr,
};
const LOSSLESS: ModeFacts = ModeFacts {
    name: "lossless",
    keyword: "lossless",
    title: "lossless",
    meaning: "none",
    promise: "every bit is kept",
    short: "every bit",
    example: "",
    values: Values::None,
    bound: |_| Bound::Lossless,
};

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 5] = [Mode::Absolute, Mode::Relative, Mode::PointwiseRelative, Mode::Psnr, Mode::Lossless];

    /// Its row of the table.
    pub fn facts(self) -> &'static ModeFacts {
        match self {
            Mode::Absolute => &ABSOLUTE,
            Mode::Relative => &RELATIVE,
            Mode::PointwiseRelative => &POINTWISE_RELATIVE,
            Mode::Psnr => &PSNR,
            Mode::Lossless => &LOSSLESS,
        }
    }

    /// The mode of a number in words and frames.
    pub fn of(number: u8) -> Option<Mode> {
        Mode::ALL.into_iter().find(|m| m.number() == number)
    }

    /// Its number in words and frames.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its short name, as typed by a user.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether promises may stand beside its bound.
    pub fn takes_keep(self) -> bool {
        !matches!(self, Mode::PointwiseRelative | Mode::Lossless)
    }

    /// The refusal of a number that is no mode's.
    pub(crate) fn unknown(number: u32) -> String {
        let all: Vec<String> = Mode::ALL.iter().map(|m| format!("{} {m}", m.number())).collect();
        format!("M = {number}, allowed are {}", all.join(", "))
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.facts().title)
    }
}

impl Bound {
    /// The bound's mode.
    pub fn mode(self) -> Mode {
        match self {
            Bound::Absolute(_) => Mode::Absolute,
            Bound::Relative(_) => Mode::Relative,
            Bound::PointwiseRelative(_) => Mode::PointwiseRelative,
            Bound::Psnr(_) => Mode::Psnr,
            Bound::Lossless => Mode::Lossless,
        }
    }

    /// The number that was requested; 0 for lossless.
    pub fn value(self) -> f64 {
        match self {
            Bound::Absolute(v) | Bound::Relative(v) | Bound::PointwiseRelative(v) | Bound::Psnr(v) => v,
            Bound::Lossless => 0.0,
        }
    }

    /// Builds a bound from its mode and value.
    ///
    /// # Errors
    /// `Params` when the value is not one that the mode allows.
    pub fn new(mode: Mode, value: f64) -> Result<Self> {
        let usable = value.is_finite() && value > 0.0;
        let (ok, allowed) = match mode.facts().values {
            Values::Positive => (usable, "a finite number above 0"),
            Values::Part => (usable && value < 1.0, "a number above 0 and below 1"),
            Values::None => (value == 0.0, "0 (lossless takes no value)"),
        };
        match ok {
            true => Ok((mode.facts().bound)(value)),
            false => Err(Error::params("bound", format!("{value:e} ({mode}); allowed is {allowed}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_its_mode_s_own_and_no_two_share_a_name() {
        for mode in Mode::ALL {
            let value = if mode.facts().values == Values::None { 0.0 } else { 0.5 };
            let bound = Bound::new(mode, value).unwrap();
            assert_eq!((bound.mode(), bound.value(), Mode::of(mode.number())), (mode, value, Some(mode)));
            assert_eq!(mode.facts().promise.contains("{}"), mode != Mode::Lossless);
            let same = |other: &&Mode| {
                let (a, b) = (mode.facts(), other.facts());
                [a.name, a.keyword].iter().any(|name| [b.name, b.keyword].contains(name)) || a.title == b.title
            };
            assert_eq!(Mode::ALL.iter().filter(same).count(), 1, "{mode}");
        }
    }
}
