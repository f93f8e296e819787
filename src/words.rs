// SPDX-License-Identifier: MIT OR Apache-2.0
//! cd_values: the short forms that a user types and the stored list that `set_local` writes.
//!
//! | n | meaning |
//! |---|---|
//! | 0 | lossless |
//! | 1 | one packed decimal `[C]MDDEE`; the number 0 is refused |
//! | 3 | `CM`, then the bound as f64, low word first |
//! | ≥ 12 with our magic | the stored list |
//!
//! # The stored list
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
//! | 11 … | extents of the chunk, slowest first: units dropped, leading ones multiplied beyond 8 | 2 or more each |
//! | last | 90000, the number for lossless | 90000 |
//!
//! Flag 1: a fill value is known. Flag 2: the filter sees the chunk itself, whose length is the product of extents and
//! size; bits may be lost. Where the flag is missing another filter stands before this one, or HDF5 did not tell
//! enough. Other flags are reserved.
//!
//! The last word is 90000 for the sake of others: NCO 5 hands the last word of one variable, as the only word of its
//! filter, to variables that it writes after it. They are compressed then, and lose nothing.
//!
//! The check is a sum over all words but itself and the last. It begins with 0; each word in turn makes of it
//! p XOR (p >> 15), where p = (sum XOR word) · 0x9E3779B1 modulo 2^32. One changed word is always found; words that
//! changed places, or several changed ones, but for one case in 2^32.
//!
//! A reader refuses lists whose count or rank do not fit together, whose check or last word is wrong, with a value
//! that is not listed here, and of another layout or minimum reader. The filter then goes on as if there were no words:
//! frames describe themselves. Words behind the last one are ignored.

mod short;
mod stored;

use crate::error::{Error, Result};
use crate::params::Request;

pub use short::{pack, three};
pub use stored::{STORED_MAX, Stored, is_stored, store, stored};

/// What the user asked for, from a short form or a stored list.
///
/// # Errors
/// `Params`: the words are none of the forms, or contradict themselves. The text names the word and what is allowed.
pub fn request(words: &[u32]) -> Result<Request> {
    match words {
        [] => Ok(Request::default()),
        [packed] => short::unpack(*packed),
        &[cm, low, high] => short::of_three([cm, low, high]),
        _ if is_stored(words) => Ok(stored(words)?.params.request),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Bound, Codec};

    fn bound_of(word: u32) -> Bound {
        request(&[word]).unwrap().bound
    }

    #[test]
    fn the_contract_examples_mean_what_it_says() {
        assert_eq!(request(&[]).unwrap(), Request::default());
        assert_eq!(bound_of(11003), Bound::Absolute(1e-3));
        assert_eq!(bound_of(12504), Bound::Absolute(2.5e-4));
        assert_eq!(bound_of(15001), Bound::Absolute(0.5));
        assert_eq!(bound_of(11082), Bound::Absolute(100.0));
        assert_eq!(bound_of(21004), Bound::Relative(1e-4));
        assert_eq!(bound_of(31002), Bound::PointwiseRelative(1e-2));
        assert_eq!(bound_of(40600), Bound::Psnr(60.0));
        assert_eq!(bound_of(90000), Bound::Lossless);
        assert_eq!(request(&[390000]).unwrap(), Request { codec: Codec::Ndzip, bound: Bound::Lossless });
        assert_eq!(request(&[111003]).unwrap(), Request { codec: Codec::Szx, bound: Bound::Absolute(1e-3) });
        assert_eq!(request(&[590000]).unwrap(), Request { codec: Codec::Planes, bound: Bound::Lossless });
        let planes = Request { codec: Codec::Planes, bound: Bound::Relative(1e-3) };
        assert_eq!(request(&[521003]).unwrap(), planes);
        assert_eq!((pack(planes), request(&three(planes)).unwrap()), (Some(521003), planes));
        let szx = Request { codec: Codec::Szx, bound: Bound::Absolute(1.234e-3) };
        assert_eq!(three(szx)[0], 11);
        assert_eq!(request(&three(szx)).unwrap(), szx);
        assert_eq!(request(&three(Request::default())).unwrap(), Request::default());
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
            &[490000],
            &[531002],
            &[611003],
            &[690000],
            &[711003],
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
            let e = request(words).expect_err(&format!("{words:?}")).to_string();
            assert!(e.len() > 40, "{words:?}: {e}");
        }
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            let [low, high] = short::halves(value.to_bits());
            assert!(request(&[1, low, high]).is_err(), "{value}");
        }
    }

    #[test]
    fn every_packed_number_survives_a_round_trip() {
        for m in 1..=3 {
            for dd in 10..=99 {
                for ee in (0..100).step_by(3) {
                    let word = m * 10_000 + dd * 100 + ee;
                    if let Ok(a) = request(&[word]) {
                        assert_eq!(pack(a).and_then(|w| request(&[w]).ok()), Some(a), "{word}");
                    }
                }
            }
        }
        assert_eq!(pack(Request { codec: Codec::Szx, bound: Bound::Absolute(1e-3) }), Some(111003));
        assert_eq!(pack(Request { codec: Codec::Auto, bound: Bound::Psnr(60.0) }), Some(40600));
        assert_eq!(pack(Request { codec: Codec::Auto, bound: Bound::Absolute(1.23e-3) }), None);
    }
}
