// SPDX-License-Identifier: MIT OR Apache-2.0
//! cd_values: the short forms that a user types and the stored list that `set_local` writes.
//!
//! | n | meaning |
//! |---|---|
//! | 0 | lossless |
//! | 1 | one packed decimal `[C]MDDEE`; the number 0 is refused |
//! | 3 | `CM`, then the bound as f64, low word first |
//! | ≥ 12 with our magic | the stored list, of any layout |
//!
//! # The stored list, layout 2
//!
//! 12 to 20 words. Fields of one word are named from its lowest bits up, with their widths in bits.
//!
//! | word | holds | allowed |
//! |---|---|---|
//! | 0 | layout 8, magic 24 | 2, 0xF1C0DE |
//! | 1 | words in the list 8, writer version 16, minimum reader 8 | 12 + stored rank, any, 2 |
//! | 2 | type: class 4, size 8, order 2, sign 1, reserved 1, exponent 8, mantissa 8 | as in a frame's header |
//! | 3 | mode 4, codec 4, flags 8, original rank 8, stored rank 8 | M, C as above; flags below; any; 0 to 8 |
//! | 4, 5 | the bound, f64 bits, low word first | what the mode allows; 0 when lossless |
//! | 6 | a second parameter | 0 |
//! | 7, 8 | bits of the fill value in the element's width, low word first | 0 without flag 1 |
//! | 9 | the one number that the user typed | 0: none, or several words |
//! | 10 | check | below |
//! | 11 … | extents of the chunk, slowest first: units dropped, leading ones multiplied together beyond 8 | 2 or more each |
//! | last | 90000, the number for lossless | 90000 |
//!
//! Flag 1: a fill value is known. Flag 2: the filter sees the chunk itself, whose length is the product of extents and
//! size; bits may be lost. Where the flag is missing another filter stands before this one, or HDF5 did not tell enough.
//! Other flags are reserved.
//!
//! The last word is 90000 for the sake of others: NCO 5 hands the last word of one variable, as the only word of its
//! filter, to variables that it writes after it. They are compressed then, and lose nothing.
//!
//! The check is a sum over all words but itself and the last. It begins with 0; each word in turn makes of it
//! p XOR (p >> 15), where p = (sum XOR word) · 0x9E3779B1 modulo 2^32. One changed word is always found; words that
//! changed places, or several changed ones, but for one case in 2^32.
//!
//! A reader refuses lists whose count or rank do not fit together, whose check or last word is wrong, with a value
//! that is not listed here, and of a newer layout or minimum reader. The filter then goes on as if there were no words:
//! frames describe themselves. Words behind the last one are ignored.
//!
//! # Layout 1
//!
//! Read, no longer written: `set_local` writes what it finds anew. It was written before version 0.1.0.
//! 0 and 1 as above (layout 1, 12 + stored rank words, minimum reader 1), 2 type, 3 mode 8, codec 8, flags 16, 4, 5 bound, 6, 7 zero,
//! 8, 9 fill value, 10 the number typed, 11 original rank 8, stored rank 8, from 12 on the extents. It has no check.

mod stored;

use crate::error::{Error, Result};
use crate::params::{Ask, Bound, Codec, MODES};

pub use stored::{STORED_MAX, Stored, is_stored, store, stored};

/// What the user asked for, from a short form or a stored list.
///
/// # Errors
/// `Params`: the words are none of the forms, or contradict themselves. The text names the word and what is allowed.
pub fn ask(words: &[u32]) -> Result<Ask> {
    match words {
        [] => Ok(Ask::default()),
        [packed] => unpack(*packed),
        [cm, low, high] => {
            let bound = Bound::new((cm % 10) as u8, f64_of(*low, *high))?;
            Ask { codec: codec(cm / 10)?, bound }.check()
        }
        _ if is_stored(words) => Ok(stored(words)?.params.ask),
        _ => Err(Error::params(
            "cd_values",
            format!(
                "{} words, the first {}; give none (lossless), one number [C]MDDEE such as 11003, three words \
                 (CM and a double), or the whole stored list",
                words.len(),
                words[0]
            ),
        )),
    }
}

/// The packed decimal that means `ask`, when one does.
///
/// The bound must be d.d · 10^e with e from −79 to 19 (PSNR: tenths of decibels up to 999.9).
pub fn pack(ask: Ask) -> Option<u32> {
    let head = u32::from(ask.codec.number()) * 10 + u32::from(ask.bound.mode());
    let value = ask.bound.value();
    let tail = match ask.bound {
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
    (unpack(word).ok()? == ask).then_some(word)
}

/// The three-word form of `ask`: `CM`, then the bound's bits, low word first. Says every bound exactly.
pub fn three(ask: Ask) -> [u32; 3] {
    let [low, high] = halves(ask.bound.value().to_bits());
    [u32::from(ask.codec.number()) * 10 + u32::from(ask.bound.mode()), low, high]
}

/// The value of `DDEE`: the correctly rounded f64 of the decimal text.
fn decimal(ddee: u32) -> f64 {
    let (dd, ee) = (ddee / 100, ddee % 100);
    let exponent = if ee < 80 { -(ee as i32) } else { ee as i32 - 80 };
    format!("{}.{}e{exponent}", dd / 10, dd % 10).parse().expect("a decimal number")
}

fn unpack(word: u32) -> Result<Ask> {
    if word == 0 {
        // h5py, for one, makes it of (1e-3,): who wants a bound must not get every bit in silence.
        return Err(Error::params(
            "cd_values",
            "the number 0 means nothing; words are whole numbers, so a program that is given 1e-3 may hand on 0: absolute \
             1e-3 is 11003, lossless is 90000 or no number",
        ));
    }
    let (head, ddee) = (word / 10_000, word % 10_000);
    let (c, mode) = (head / 10, head % 10);
    let refuse = |why: String| {
        Error::params("cd_values", format!("the number {word} is no [C]MDDEE: {why}; 11003 is absolute 1e-3"))
    };
    let bound = match mode {
        1..=3 if !(10..=99).contains(&(ddee / 100)) => {
            return Err(refuse(format!("DD = {:02}, allowed are 10 to 99 (1.0 to 9.9)", ddee / 100)));
        }
        1..=3 => Bound::new(mode as u8, decimal(ddee)),
        4 => Bound::new(4, f64::from(ddee) / 10.0),
        9 if ddee == 0 => Ok(Bound::Lossless),
        9 => return Err(refuse(format!("lossless takes no value, DDEE = {ddee:04} must be 0000"))),
        _ => return Err(refuse(format!("M = {mode}, allowed are {MODES}"))),
    };
    Ask { codec: codec(c)?, bound: bound? }.check()
}

fn codec(c: u32) -> Result<Codec> {
    Codec::ALL.get(c as usize).copied().ok_or_else(|| {
        Error::params("codec", format!("C = {c}; allowed are absent or 0 auto, 1 szx, 2 lorenzo, 3 ndzip"))
    })
}

fn f64_of(low: u32, high: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound_of(word: u32) -> Bound {
        ask(&[word]).unwrap().bound
    }

    #[test]
    fn the_contract_examples_mean_what_it_says() {
        assert_eq!(ask(&[]).unwrap(), Ask::default());
        assert_eq!(bound_of(11003), Bound::Absolute(1e-3));
        assert_eq!(bound_of(12504), Bound::Absolute(2.5e-4));
        assert_eq!(bound_of(15001), Bound::Absolute(0.5));
        assert_eq!(bound_of(11082), Bound::Absolute(100.0));
        assert_eq!(bound_of(21004), Bound::Relative(1e-4));
        assert_eq!(bound_of(31002), Bound::PointwiseRelative(1e-2));
        assert_eq!(bound_of(40600), Bound::Psnr(60.0));
        assert_eq!(bound_of(90000), Bound::Lossless);
        assert_eq!(ask(&[390000]).unwrap(), Ask { codec: Codec::Ndzip, bound: Bound::Lossless });
        assert_eq!(ask(&[111003]).unwrap(), Ask { codec: Codec::Szx, bound: Bound::Absolute(1e-3) });
        let szx = Ask { codec: Codec::Szx, bound: Bound::Absolute(1.234e-3) };
        assert_eq!(three(szx)[0], 11);
        assert_eq!(ask(&three(szx)).unwrap(), szx);
        assert_eq!(ask(&three(Ask::default())).unwrap(), Ask::default());
    }

    #[test]
    fn what_no_form_means_is_refused_with_a_sentence() {
        for words in [
            &[0][..], // what h5py makes of 1e-3
            &[1],     // what h5repack makes of 1e-3 and 1.5
            &[10003],
            &[20003],
            &[51003],
            &[81003],
            &[91003],
            &[90001],
            &[411003],
            &[311003],
            &[190000],
            &[290000],
            &[20100],
            &[21080],
            &[40000],
            &[11003, 0],
            &[11003; 5],
            &[11; 12],
            &[u32::MAX],
            &[4294967293],
        ] {
            let e = ask(words).expect_err(&format!("{words:?}")).to_string();
            assert!(e.len() > 40, "{words:?}: {e}");
        }
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            let [low, high] = halves(value.to_bits());
            assert!(ask(&[1, low, high]).is_err(), "{value}");
        }
    }

    #[test]
    fn every_packed_number_survives_a_round_trip() {
        for m in 1..=3 {
            for dd in 10..=99 {
                for ee in (0..100).step_by(3) {
                    let word = m * 10_000 + dd * 100 + ee;
                    if let Ok(a) = ask(&[word]) {
                        assert_eq!(pack(a).and_then(|w| ask(&[w]).ok()), Some(a), "{word}");
                    }
                }
            }
        }
        assert_eq!(pack(Ask { codec: Codec::Szx, bound: Bound::Absolute(1e-3) }), Some(111003));
        assert_eq!(pack(Ask { codec: Codec::Auto, bound: Bound::Psnr(60.0) }), Some(40600));
        assert_eq!(pack(Ask { codec: Codec::Auto, bound: Bound::Absolute(1.23e-3) }), None);
    }
}
