// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text form of what a user chooses: one grammar for the command line, Python and string-configured filters.

use crate::error::{Error, Result};
use crate::keep::Keep;
use crate::params::{Bound, Codec, Mode, Request};
use std::fmt;
use std::str::FromStr;

impl Bound {
    /// Builds a bound from its short name and value: the typed form of [`Bound::new`].
    ///
    /// # Errors
    /// `Params` when the name is unknown or the value is not one that the mode allows.
    pub fn named(name: &str, value: Option<f64>) -> Result<Self> {
        let mode = Mode::ALL.into_iter().find(|m| m.name() == name);
        let mode = mode.ok_or_else(|| Error::params("mode", format!("{name:?}; allowed are {}", mode_names())))?;
        match value {
            Some(v) => Bound::new(mode, v),
            None if mode == Mode::Lossless => Ok(Bound::Lossless),
            None => Err(Error::params(
                "bound",
                format!("none given; mode {name} needs one, such as {}", mode.facts().example),
            )),
        }
    }
}

fn mode_names() -> String {
    Mode::ALL.map(Mode::name).join(", ")
}

impl Codec {
    /// The codec of this name.
    ///
    /// # Errors
    /// `Params` when no codec is called so.
    pub fn named(name: &str) -> Result<Self> {
        Codec::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| {
            let names = Codec::ALL.map(Codec::name).join(", ");
            Error::params("codec", format!("{name:?}; allowed are {names}"))
        })
    }
}

/// The shortest digits that mean the same f64 (17 significant ones at most), so that parsing gives the same request.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode={}", self.bound.mode().name())?;
        if self.bound != Bound::Lossless {
            write!(f, ",bound={:e}", self.bound.value())?;
        }
        if self.codec != Codec::Auto {
            write!(f, ",codec={}", self.codec.name())?;
        }
        if self.keep != Keep::NONE {
            write!(f, ",keep={}", self.keep)?;
        }
        Ok(())
    }
}

/// From a text such as `mode=abs,bound=1e-3,codec=szx`:
///
/// ```text
/// text  = pair { "," pair }          in any order, each key at most once, blanks around keys and values ignored
/// pair  = "mode" "=" ( "abs" | "rel" | "pw_rel" | "psnr" | "lossless" )
///       | "bound" "=" number         decimal; not with lossless
///       | "codec" "=" ( "auto" | "szx" | "lorenzo" | "ndzip" | "planes" | "dense"
///                      | "fast" | "small" )
///                                auto when absent
///       | "keep" "=" kept { "+" kept }   beside abs, rel, psnr
/// kept  = "sign" | "zero" | "range"
/// ```
impl FromStr for Request {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse =
            |why: String| Error::params("text", format!("{text:?}: {why}; such as mode=abs,bound=1e-3,codec=szx"));
        let (mut mode, mut bound, mut codec, mut keep) = (None, None, None, None);
        for pair in text.split(',') {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| refuse(format!("{:?} is no key=value", pair.trim())))?;
            let (key, value) = (key.trim(), value.trim());
            let again = match key {
                "mode" => mode.replace(value).is_some(),
                "bound" => {
                    let v: f64 = value.parse().map_err(|_| refuse(format!("bound {value:?} is no number")))?;
                    bound.replace(v).is_some()
                }
                "codec" => codec.replace(Codec::named(value)?).is_some(),
                "keep" => keep.replace(value.parse()?).is_some(),
                _ => return Err(refuse(format!("key {key:?}, allowed are mode, bound, codec, keep"))),
            };
            if again {
                return Err(refuse(format!("{key} is given twice")));
            }
        }
        let mode = mode.ok_or_else(|| refuse(format!("no mode, allowed are {}", mode_names())))?;
        if mode == "lossless" && bound.is_some() {
            return Err(refuse("lossless takes no bound".into()));
        }
        let (codec, bound) = (codec.unwrap_or_default(), Bound::named(mode, bound)?);
        Request { codec, bound, keep: keep.unwrap_or_default() }.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_forms_mean_what_they_say() {
        let request = |text: &str| text.parse::<Request>().unwrap();
        assert_eq!(request("mode=abs,bound=1e-3"), Request::new(Codec::Auto, Bound::Absolute(1e-3)));
        assert_eq!(request(" codec = szx , bound=0.5, mode=rel"), Request::new(Codec::Szx, Bound::Relative(0.5)));
        assert_eq!(request("mode=lossless,codec=ndzip"), Request::new(Codec::Ndzip, Bound::Lossless));
        assert_eq!(request("mode=psnr,bound=60").to_string(), "mode=psnr,bound=6e1");
        assert_eq!(Request::default().to_string(), "mode=lossless");
    }

    #[test]
    fn what_the_grammar_does_not_allow_is_refused_with_a_sentence() {
        for text in [
            "",
            "abs",
            "mode=abs",
            "mode=abs,bound=",
            "mode=abs,bound=x",
            "mode=abs,bound=nan",
            "mode=abs,bound=-1",
            "mode=abs,bound=1e-3,",
            "mode=abs,bound=1,bound=1",
            "mode=rel,bound=1",
            "mode=most,bound=1",
            "mode=lossless,bound=0",
            "mode=lossless,codec=szx",
            "mode=abs,bound=1,codec=ndzip",
            "mode=abs,bound=1,codec=zip",
            "mode=abs,bound=1,eb=2",
        ] {
            let e = text.parse::<Request>().expect_err(text).to_string();
            assert!(e.len() > 30, "{text}: {e}");
        }
    }

    proptest! {
        #[test]
        fn every_request_survives_its_text(bits: u64, mode in 1..=4u8, szx: bool) {
            let value = f64::from_bits(bits >> 1);
            if let Ok(bound) = Bound::new(Mode::of(mode).unwrap(), value) {
                let request = Request::new(if szx { Codec::Szx } else { Codec::Auto }, bound);
                let text = request.to_string();
                prop_assert_eq!(text.parse::<Request>().unwrap(), request);
                let digits = text.split("bound=").nth(1).unwrap().split('e').next().unwrap();
                prop_assert!(digits.bytes().filter(u8::is_ascii_digit).count() <= 17, "{}", text);
            }
        }
    }
}
