// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stored list, written and read. What each word holds stands in the documentation of [`super`].

use super::short::{codec, f64_of, halves};
use crate::constants::MAX_RANK;
use crate::error::{Error, Result};
use crate::keep::Keep;
use crate::params::{Bound, Dtype, Extents, Mode, Params, Request};

/// Upper 24 bits of word 0; the lowest byte is the layout.
const MAGIC: u32 = 0xF1C0_DE00;
const LAYOUT: u32 = 3;
/// Words before the extents.
const HEAD: usize = 11;
/// Which of them is the check.
const CHECK: usize = 10;
/// The last word, lossless. NCO hands a variable's last word to the variables that it writes after it, as the only
/// word of the same filter: whatever stands here is done to strangers.
const LAST: u32 = 90_000;
/// Most words that a stored list ever has. h5repack takes no more.
pub const STORED_MAX: usize = HEAD + MAX_RANK + 1;
/// Version of the writer, major · 100 + minor.
const WRITER: u32 = 1;
/// The least reader that knows this layout. It is stated too, so that a changed layout byte is found.
const READER: u32 = 3;

const FILL_KNOWN: u32 = 1;
const LOSSY_ALLOWED: u32 = 2;
/// Where the flags of what is kept begin.
const KEEP_AT: u32 = 2;

/// What a stored list says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// What was asked for, and what the chunk is.
    pub params: Params,
    /// The one number that the user typed; 0 where it was none, or several words.
    pub typed: u32,
    /// HDF5's rank of the chunk, unit extents included.
    pub original_rank: u8,
}

/// True when the words begin as a stored list does, of any layout. They may be damaged.
pub fn is_stored(words: &[u32]) -> bool {
    words.len() > HEAD && words[0] & !0xFF == MAGIC
}

/// The check over a list's other words. Each is mixed in by steps that can be undone, so one changed word always
/// changes the sum; the product spreads low bits, the shift brings high ones down.
fn check(words: &[u32]) -> u32 {
    words[..CHECK].iter().chain(&words[CHECK + 1..]).fold(0, |sum: u32, &word| {
        let product = (sum ^ word).wrapping_mul(0x9E37_79B1);
        product ^ product >> 15
    })
}

/// Writes the stored list. `user` is what the user (or an earlier stored list) gave, `original_rank` HDF5's rank.
pub fn store(params: &Params, user: &[u32], original_rank: u8) -> Vec<u32> {
    let dims = params.extents.as_slice();
    let flags = params.fill.map_or(0, |_| FILL_KNOWN)
        | if params.lossy_allowed { LOSSY_ALLOWED } else { 0 }
        | params.request.keep.bits() << KEEP_AT;
    let typed = match user {
        [typed] => *typed,
        _ => stored(user).map_or(0, |s| s.typed),
    };
    let count = HEAD + dims.len() + 1;
    let mut words = Vec::with_capacity(count);
    words.extend([
        MAGIC | LAYOUT,
        count as u32 | WRITER << 8 | READER << 24,
        params.dtype.pack(),
        u32::from(params.request.bound.mode().number())
            | u32::from(params.request.codec.number()) << 4
            | flags << 8
            | u32::from(original_rank) << 16
            | (dims.len() as u32) << 24,
    ]);
    words.extend(halves(params.request.bound.value().to_bits()));
    words.push(0);
    words.extend(halves(params.fill.unwrap_or(0)));
    words.extend([typed, 0]);
    words.extend(dims);
    words[CHECK] = check(&words);
    words.push(LAST);
    words
}

/// Reads a stored list. Words behind its last one are ignored.
///
/// # Errors
/// `Params` when the words are none, are of another layout, or do not pass their own check.
pub fn stored(words: &[u32]) -> Result<Stored> {
    let refuse = |why: String| Err(refused(words, why));
    if !is_stored(words) {
        return refuse("it does not begin with the mark of a stored list".into());
    }
    match (words[0] & 0xFF, words[1] >> 24) {
        (LAYOUT, READER) => (),
        (1 | 2, 1 | 2) => {
            return refuse("a build before 0.1.0 wrote it; give words anew, one number such as 11003".into());
        }
        (layout @ 0..=LAYOUT, reader @ 0..=READER) => {
            return refuse(format!(
                "layout {layout} for reader {reader}, where each is {LAYOUT}: a word was changed; copy the whole list \
                 again, or give one number such as 11003"
            ));
        }
        (layout, reader) => {
            return refuse(format!(
                "layout {layout} for readers from {reader} on; this is reader {READER} of layout {LAYOUT}: install \
                 a newer h5z-gpu"
            ));
        }
    }
    let count = (words[1] & 0xFF) as usize;
    let rank = (words[3] >> 24) as usize;
    if rank > MAX_RANK || count != HEAD + rank + 1 || words.len() < count {
        return refuse(format!("it states {count} words and rank {rank}: a word was changed or left out"));
    }
    let (got, last) = (check(&words[..count - 1]), words[count - 1]);
    if got != words[CHECK] || last != LAST {
        return refuse(format!(
            "its check is {}, the words give {got}, the last is {last} and must be {LAST}: a word was changed; copy \
             the whole list again, or give one number such as 11003",
            words[CHECK]
        ));
    }
    let read = fields(words, &words[HEAD..count - 1])?;
    // What no writer of this layout writes belongs to a later one. Writing again says whether any of it is there.
    let writer = words[1] & 0x00FF_FF00;
    let mut again = store(&read.params, &[read.typed], read.original_rank);
    again[1] = again[1] & !0x00FF_FF00 | writer;
    again[CHECK] = words[CHECK];
    match again == words[..count] {
        true => Ok(read),
        false => refuse("a reserved bit is set: install a newer h5z-gpu".into()),
    }
}

fn refused(words: &[u32], why: String) -> Error {
    Error::params("cd_values", format!("a stored list of {} words: {why}", words.len()))
}

/// What the words of a list say whose check is right; `dims` are its extents.
fn fields(words: &[u32], dims: &[u32]) -> Result<Stored> {
    let (m, c, flags) = (words[3] & 15, words[3] >> 4 & 15, words[3] >> 8 & 0xFF);
    let mode = Mode::of(m as u8).ok_or_else(|| Error::params("mode", Mode::unknown(m)))?;
    let (bound, keep) = (Bound::new(mode, f64_of(words[4], words[5]))?, Keep::new(flags >> KEEP_AT)?);
    let request = Request { codec: codec(c)?, bound, keep }.check()?;
    let dims: Vec<u64> = dims.iter().map(|&d| d.into()).collect();
    let params = Params {
        request,
        dtype: Dtype::unpack(words[2]).ok_or_else(|| refused(words, format!("type word {:#x}", words[2])))?,
        extents: Extents::new(&dims).ok_or_else(|| refused(words, format!("extents {dims:?}")))?,
        fill: (flags & FILL_KNOWN != 0).then(|| u64::from(words[7]) | u64::from(words[8]) << 32),
        lossy_allowed: flags & LOSSY_ALLOWED != 0,
    };
    Ok(Stored { params, typed: words[9], original_rank: (words[3] >> 16) as u8 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Codec;
    use crate::words::{request, several};

    /// szx, absolute 1e-3, of a chunk of 4 × 1 × 32 little-endian f32 with the fill value 1e20.
    fn params() -> Params {
        let mut p = Params::new(request(&[111003]).unwrap(), Dtype::F32, &[4, 1, 32]).unwrap();
        p.fill = Some(1e20f32.to_bits().into());
        p
    }

    /// As lists lie in files. They are read for ever.
    const LAYOUT_3: [u32; 14] = [
        4055948803, 50331918, 386416705, 33751825, 3539053052, 1062232653, 0, 1621981420, 0, 111003, 4038455941, 4, 32,
        90000,
    ];

    #[test]
    fn lists_that_lie_in_files_mean_what_they_meant() {
        assert_eq!(stored(&LAYOUT_3).unwrap(), Stored { params: params(), typed: 111003, original_rank: 3 });
        assert_eq!(store(&params(), &[111003], 3), LAYOUT_3, "what is written has not changed");
        assert_eq!(store(&params(), &LAYOUT_3, 3), LAYOUT_3, "storing again changes nothing");
        assert_eq!(request(&LAYOUT_3).unwrap(), request(&[111003]).unwrap());
    }

    /// One list for each rank, type, mode and flag.
    fn lists() -> Vec<(Params, Vec<u32>)> {
        let mut all = Vec::new();
        for rank in 0..=MAX_RANK {
            for (dtype, fill) in [(Dtype::F32, None), (Dtype::F64, Some(1e20f64.to_bits())), (Dtype::bytes(16), None)] {
                for word in [11003, 21004, 231002, 40600, 90000, 390000] {
                    for lossy_allowed in [true, false] {
                        let mut p = Params::new(request(&[word]).unwrap(), dtype, &vec![7; rank]).unwrap();
                        (p.fill, p.lossy_allowed) = (fill, lossy_allowed);
                        if p.request.bound.mode().takes_keep() {
                            p.request.keep = Keep::new(rank as u32 % 8).unwrap();
                        }
                        all.push((p, store(&p, &[word], rank as u8)));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn every_list_gives_back_what_went_in_and_ends_lossless() {
        for (p, words) in lists() {
            assert_eq!(stored(&words).unwrap().params, p, "{words:?}");
            assert_eq!(words.last(), Some(&LAST));
            assert!(words.len() <= STORED_MAX && words.len() == p.extents.as_slice().len() + 12);
            assert_eq!(
                request(&words[words.len() - 1..]).unwrap(),
                Request::default(),
                "what NCO hands to a neighbour"
            );
            assert_eq!(stored(&[&words[..], &[1, 2]].concat()).unwrap().params, p, "words behind the list are ignored");
            for cut in 0..words.len() {
                stored(&words[..cut]).expect_err("a list cut short");
            }
        }
        let odd = several(Request::new(Codec::Szx, Bound::Absolute(0.1 + 0.2)));
        let p = Params { request: request(&odd).unwrap(), ..params() };
        assert_eq!(stored(&store(&p, &odd, 3)).unwrap(), Stored { params: p, typed: 0, original_rank: 3 });
    }

    #[test]
    fn a_changed_word_or_two_are_found() {
        for (_, words) in lists() {
            let refused = |changed: &[u32], what: &str| {
                if changed != words {
                    assert!(stored(changed).is_err(), "{what}: {words:?} became {changed:?}");
                }
            };
            let n = words.len();
            for i in 0..n {
                let mut changed = words.clone();
                for value in [0, 1, words[i] ^ 1 << 31, words[i].wrapping_add(1), words[i] ^ 3, u32::MAX, 90000] {
                    changed[i] = value;
                    refused(&changed, "one word");
                }
                for j in i + 1..n {
                    let mut changed = words.clone();
                    changed.swap(i, j);
                    refused(&changed, "two words swapped");
                    let mut changed = words.clone();
                    (changed[i], changed[j]) = (words[i] ^ 1 << 31, words[j] ^ 1 << 31);
                    refused(&changed, "two highest bits");
                }
            }
        }
    }

    #[test]
    fn two_changed_bits_are_found() {
        let bits = 32 * LAYOUT_3.len();
        for (i, j) in (0..bits).flat_map(|i| (i + 1..bits).map(move |j| (i, j))) {
            let mut changed = LAYOUT_3;
            changed[i / 32] ^= 1 << (i % 32);
            changed[j / 32] ^= 1 << (j % 32);
            assert!(stored(&changed).is_err(), "bits {i} and {j}");
        }
    }

    #[test]
    fn what_belongs_to_a_later_version_is_refused_though_its_check_is_right() {
        let sealed = |change: &dyn Fn(&mut Vec<u32>)| {
            let mut words = LAYOUT_3.to_vec();
            change(&mut words);
            words[CHECK] = check(&words[..words.len() - 1]);
            stored(&words).map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(sealed(&|_| ()), Ok(()));
        assert_eq!(sealed(&|w| w[1] += 99 << 8), Ok(()), "any writer");
        let says = |change: &dyn Fn(&mut Vec<u32>), part: &str| {
            let text = sealed(change).expect_err(part);
            assert!(text.contains(part), "{text}");
        };
        says(&|w| w[0] += 1, "layout 4");
        says(&|w| (w[0], w[1]) = (w[0] - 1, w[1] - (1 << 24)), "a build before 0.1.0");
        says(&|w| w[0] -= 3, "layout 0 for reader 3");
        says(&|w| w[1] += 1 << 24, "from 4 on");
        says(&|w| w[1] -= 1 << 24, "for reader 2");
        says(&|w| w[2] |= 1 << 15, "type word");
        says(&|w| w[2] = 7, "type word");
        says(&|w| w[3] = w[3] & !15 | 5, "M = 5");
        says(&|w| w[3] |= 0xF0, "C = 15");
        says(&|w| w[3] |= 32 << 8, "keep");
        says(&|w| w[6] = 1, "reserved");
        says(&|w| w[3] &= !(1 << 8), "reserved"); // a fill value that is not flagged
        says(&|w| w[5] |= 1 << 31, "above 0");
        says(&|w| (w[1], w[3], _) = (w[1] + 7, w[3] + (7 << 24), w.splice(11..11, [2; 7])), "rank 9");
        says(&|w| w[11] = 0, "extents");
        says(&|w| w[11] = 1, "reserved"); // unit extents are not stored
    }
}
