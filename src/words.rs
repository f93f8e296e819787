// SPDX-License-Identifier: MIT OR Apache-2.0
//! cd_values: the short forms that a user types and the stored form that `set_local` writes.
//!
//! | n | meaning |
//! |---|---|
//! | 0 | lossless |
//! | 1 | one packed decimal `[C]MDDEE` (0 is lossless) |
//! | 3 | `CM`, then the bound as f64, low word first |
//! | ≥ 12 with our magic | the stored form, layout 1 |
//!
//! Stored form: word 0 magic 24 · layout 8 (low byte) | 1 words 8 · writer version 16 · minimum reader 8 | 2 type |
//! 3 mode 8 · codec 8 · flags 16 | 4–5 bound, f64 bits, low word first | 6–7 second parameter, 0 | 8–9 fill bits |
//! 10 the user's packed word | 11 original rank 8 · stored rank 8 | 12… extents.

use crate::error::{Error, Result};
use crate::params::{Ask, Bound, Codec, Dtype, Extents, MODES, Params};

/// Upper 24 bits of word 0 of the stored form; the lowest byte is the layout version.
const MAGIC: u32 = 0xF1C0_DE00;
const LAYOUT: u32 = 1;
/// Words before the extents.
const FIXED: usize = 12;
/// Most words that the stored form ever has.
pub const STORED_MAX: usize = FIXED + crate::constants::MAX_RANK;
/// Written into word 1: major · 100 + minor of the writer.
const WRITER: u32 = 1;
const MIN_READER: u32 = 1;

const FILL_KNOWN: u32 = 1;
const LOSSY_ALLOWED: u32 = 2;

/// True when the words are in the stored form, of any layout version.
pub fn is_stored(words: &[u32]) -> bool {
    words.len() >= FIXED && words[0] & 0xFFFF_FF00 == MAGIC
}

/// What the user asked for, from a short or a stored form.
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
        _ if is_stored(words) => Ok(stored(words)?.ask),
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
        return Ok(Ask::default());
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

/// Writes the stored form. `user` is what the user (or an earlier stored form) gave, `original_rank` HDF5's rank.
pub fn store(params: &Params, user: &[u32], original_rank: u8) -> Vec<u32> {
    let dims = params.extents.as_slice();
    let flags = params.fill.map_or(0, |_| FILL_KNOWN) | if params.lossy_allowed { LOSSY_ALLOWED } else { 0 };
    let packed = match user {
        [packed] => *packed,
        _ if is_stored(user) => user[10],
        _ => 0,
    };
    let mut words = vec![
        MAGIC | LAYOUT,
        (FIXED + dims.len()) as u32 | WRITER << 8 | MIN_READER << 24,
        params.dtype.pack(),
        u32::from(params.ask.bound.mode()) | u32::from(params.ask.codec.number()) << 8 | flags << 16,
    ];
    words.extend(halves(params.ask.bound.value().to_bits()));
    words.extend([0, 0]);
    words.extend(halves(params.fill.unwrap_or(0)));
    words.extend([packed, u32::from(original_rank) | (dims.len() as u32) << 8]);
    words.extend(dims);
    words
}

/// Reads the stored form. Words after the last extent are ignored.
///
/// # Errors
/// `Params` when the words are not the stored form of a layout this version knows.
pub fn stored(words: &[u32]) -> Result<Params> {
    let refuse = |why: String| Error::params("cd_values", format!("a stored list of {} words: {why}", words.len()));
    if !is_stored(words) {
        return Err(refuse("it does not begin with the mark of a stored list".into()));
    }
    if words[0] != MAGIC | LAYOUT || words[1] >> 24 > MIN_READER {
        return Err(refuse(format!("layout {} is newer than this version (layout {LAYOUT})", words[0] & 0xFF)));
    }
    let rank = (words[11] >> 8 & 0xFF) as usize;
    let count = (words[1] & 0xFF) as usize;
    if rank > crate::constants::MAX_RANK || count != FIXED + rank || words.len() < count {
        return Err(refuse(format!("it states {count} words and rank {rank}")));
    }
    let dims: Vec<u64> = words[FIXED..count].iter().map(|&d| d.into()).collect();
    let flags = words[3] >> 16;
    Ok(Params {
        ask: Ask {
            codec: codec(words[3] >> 8 & 0xFF)?,
            bound: Bound::new(words[3] as u8, f64_of(words[4], words[5]))?,
        }
        .check()?,
        dtype: Dtype::unpack(words[2]).ok_or_else(|| refuse(format!("type word {:#x}", words[2])))?,
        extents: Extents::new(&dims).ok_or_else(|| refuse(format!("extents {dims:?}")))?,
        fill: (flags & FILL_KNOWN != 0).then(|| u64::from(words[8]) | u64::from(words[9]) << 32),
        lossy_allowed: flags & LOSSY_ALLOWED != 0,
    })
}

/// Parameters for `filter`, which must never fail: whatever is not a stored form is coded losslessly, as bytes.
pub fn params_or_lossless(words: &[u32]) -> Params {
    stored(words).unwrap_or_default()
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
        assert_eq!(ask(&[0]).unwrap(), Ask::default());
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
            &[1][..], // what h5repack makes of 1e-3 and 1.5
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

    #[test]
    fn the_stored_form_gives_back_what_went_in() {
        let mut p = Params::new(ask(&[111003]).unwrap(), Dtype::F32, &[4, 1, 32]).unwrap();
        p.fill = Some(0x60ad_78ec);
        let words = store(&p, &[111003], 3);
        assert_eq!(words.len(), 14);
        assert_eq!(words[10], 111003);
        assert_eq!(stored(&words).unwrap(), p);
        assert_eq!(ask(&words).unwrap(), p.ask);
        assert_eq!(store(&p, &words, 3), words, "storing again changes nothing");
        assert!(store(&Params { extents: Extents::new(&[2; 32]).unwrap(), ..p }, &[], 32).len() <= STORED_MAX);
        for cut in 0..words.len() {
            assert!(stored(&words[..cut]).is_err());
            assert_eq!(params_or_lossless(&words[..cut]), Params::default());
        }
    }
}
