// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("words/FORMAT.md")]

mod short;
mod stored;

use crate::error::{Error, Result};
use crate::params::Request;

pub use short::{pack, several};
pub use stored::{STORED_MAX, Stored, is_stored, store, stored};

/// What the user asked for, from a short form or a stored list.
///
/// # Errors
/// `Params`: the words are none of the forms, or contradict themselves. The text names the word and what is allowed.
pub fn request(words: &[u32]) -> Result<Request> {
    match words {
        [] => Ok(Request::default()),
        [packed] => short::unpack(*packed),
        &[cm, low, high] => short::of_several([cm, low, high], 0),
        &[cm, low, high, keep] => short::of_several([cm, low, high], keep),
        _ if is_stored(words) => Ok(stored(words)?.params.request),
        _ => Err(Error::params(
            "cd_values",
            format!(
                "{} words, the first {}; give none (lossless), one number [C]MDDEE such as 11003, three words \
                 (CM and a double), a fourth for what is kept (1 sign, 2 zero, 4 range), or the whole stored list",
                words.len(),
                words[0]
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keep;
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
        assert_eq!(request(&[390000]).unwrap(), Request::new(Codec::Ndzip, Bound::Lossless));
        assert_eq!(request(&[111003]).unwrap(), Request::new(Codec::Szx, Bound::Absolute(1e-3)));
        assert_eq!(request(&[590000]).unwrap(), Request::new(Codec::Planes, Bound::Lossless));
        let planes = Request::new(Codec::Planes, Bound::Relative(1e-3));
        assert_eq!(request(&[521003]).unwrap(), planes);
        assert_eq!((pack(planes), request(&several(planes)).unwrap()), (Some(521003), planes));
        let szx = Request::new(Codec::Szx, Bound::Absolute(1.234e-3));
        assert_eq!(several(szx)[0], 11);
        assert_eq!(request(&several(szx)).unwrap(), szx);
        assert_eq!(request(&several(Request::default())).unwrap(), Request::default());
        let kept = Request { keep: Keep::SIGN.and(Keep::RANGE), ..szx };
        assert_eq!((pack(kept), several(kept).len(), several(kept)[3]), (None, 4, 5));
        assert_eq!(request(&several(kept)).unwrap(), kept);
        assert_eq!(request(&[&several(szx)[..], &[0]].concat()).unwrap(), szx);
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
            &[790000],
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
        // Bits of nothing, and beside bounds that take none.
        let [low, high] = short::halves(0.5f64.to_bits());
        for words in [[1, low, high, 8], [3, low, high, 1], [9, 0, 0, 1], [31, low, high, 0]] {
            assert!(request(&words).is_err(), "{words:?}");
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
        assert_eq!(pack(Request::new(Codec::Szx, Bound::Absolute(1e-3))), Some(111003));
        assert_eq!(pack(Request::new(Codec::Auto, Bound::Psnr(60.0))), Some(40600));
        assert_eq!(pack(Request::new(Codec::Auto, Bound::Absolute(1.23e-3))), None);
    }
}
