// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("words/FORMAT.md")]

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
