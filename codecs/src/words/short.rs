// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short forms: one packed decimal, or three words.

use crate::error::{Error, Result};
use crate::keep::Keep;
use crate::params::{Bound, Codec, Mode, Request};

/// The packed decimal that means `request`, when one does.
///
/// The bound must be d.d · 10^e with e from −79 to 19 (PSNR: tenths of decibels up to 999.9).
pub fn pack(request: Request) -> Option<u32> {
    let head = u32::from(request.codec.number()) * 10 + u32::from(request.bound.mode().number());
    let value = request.bound.value();
    let tail = match request.bound {
        Bound::Lossless => 0,
        Bound::Psnr(p) => (1..=9999).find(|&t| f64::from(t) / 10.0 == p)?,
        _ => {
            // The digits of the shortest decimal text say which two to try; the parsed text decides.
            let text = format!("{value:e}");
            let e: i32 = text.split_once('e')?.1.parse().ok()?;
            let exponent = match e {
                -79..=0 => -e,
                1..=19 => 80 + e,
                _ => return None,
            } as u32;
            (10..=99).map(|dd| dd * 100 + exponent).find(|&t| decimal(t) == value)?
        }
    };
    let word = head.checked_mul(10_000)?.checked_add(tail)?;
    (unpack(word).ok()? == request).then_some(word)
}

/// The three words of `request`: `CM`, then the bound's bits, low word first, which say every bound exactly; with what
/// is kept beside it as a fourth.
pub fn several(request: Request) -> Vec<u32> {
    let [low, high] = halves(request.bound.value().to_bits());
    let mut words = vec![u32::from(request.codec.number()) * 10 + u32::from(request.bound.mode().number()), low, high];
    words.extend((request.keep != Keep::NONE).then(|| request.keep.bits()));
    words
}

/// The value of `DDEE`: the correctly rounded f64 of the decimal text.
fn decimal(ddee: u32) -> f64 {
    let (dd, ee) = (ddee / 100, ddee % 100);
    let exponent = if ee < 80 { -(ee as i32) } else { ee as i32 - 80 };
    format!("{}.{}e{exponent}", dd / 10, dd % 10).parse().expect("a decimal number")
}

pub(super) fn unpack(word: u32) -> Result<Request> {
    if word == 0 {
        // h5py, for one, makes it of (1e-3,): who wants a bound must not get every bit in silence.
        return Err(Error::params(
            "cd_values",
            "the number 0 means nothing; words are whole numbers, so a program that is given 1e-3 may hand on \
             0: absolute 1e-3 is 11003, lossless is 90000 or no number",
        ));
    }
    let (head, ddee) = (word / 10_000, word % 10_000);
    let (c, m) = (head / 10, head % 10);
    let refuse = |why: String| {
        Error::params("cd_values", format!("the number {word} is no [C]MDDEE: {why}; 11003 is absolute 1e-3"))
    };
    let mode = Mode::of(m as u8).ok_or_else(|| refuse(Mode::unknown(m)))?;
    let bound = match mode {
        Mode::Psnr => Bound::new(mode, f64::from(ddee) / 10.0),
        Mode::Lossless if ddee == 0 => Ok(Bound::Lossless),
        Mode::Lossless => return Err(refuse(format!("lossless takes no value, DDEE = {ddee:04} must be 0000"))),
        _ if !(10..=99).contains(&(ddee / 100)) => {
            return Err(refuse(format!("DD = {:02}, allowed are 10 to 99 (1.0 to 9.9)", ddee / 100)));
        }
        _ => Bound::new(mode, decimal(ddee)),
    };
    Request::new(codec(c)?, bound?).check()
}

pub(super) fn codec(c: u32) -> Result<Codec> {
    Codec::from_number(c).ok_or_else(|| {
        let names: Vec<String> = Codec::ALL.iter().map(|c| format!("{} {}", c.number(), c.name())).collect();
        let kept = if c == 6 { ", which is kept for a later codec" } else { "" };
        Error::params("codec", format!("C = {c}{kept}; allowed are absent or {}", names.join(", ")))
    })
}

pub(super) fn f64_of(low: u32, high: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

pub(super) fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// The request of three words and of what is kept.
pub(super) fn of_several([cm, low, high]: [u32; 3], keep: u32) -> Result<Request> {
    let mode = Mode::of((cm % 10) as u8).ok_or_else(|| Error::params("mode", Mode::unknown(cm % 10)))?;
    let bound = Bound::new(mode, f64_of(low, high))?;
    Request { codec: codec(cm / 10)?, bound, keep: Keep::new(keep)? }.check()
}
