// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of `dense` that no writer makes: random words.
//!
//! A table here has 2^k tokens, all of one frequency. A number then takes from the state k bits for its token and those
//! of its x, and leaves the others in their order. So a state that begins as 2^16 ends as 2^16 where the bits of all
//! numbers fill whole words and the last words are 0, whatever the words before them say: no coder is needed, and no
//! contexts. How many words it takes depends on the numbers; as many as decode are looked for.

use super::by_hand::le;
use super::draft::{Draft, F32, F64};
use super::generate::Random;
use h5z_gpu::Engine;
use std::ops::Range;

/// The context that a table begins at, and its classes: 1 to 8 are of two tokens, those above of one.
type Table = (u32, Range<usize>);

/// Words that are 0 at the end: bits of some words before stay in the state for a while, for longer where numbers are
/// large.
const ZEROS: usize = 40;
const MOST_WORDS: usize = 600;

/// The frame of a case of one of these names.
pub fn frame(name: &str, random: &mut Random, dims: &[u32]) -> Vec<u8> {
    let draft = |kind: u32, tile: u8, head: Vec<u8>| {
        Draft::new(7, 1, 0.5, kind, dims, vec![head, vec![tile], Vec::new(), Vec::new()])
    };
    match name {
        // Residuals of 31 and 32 bits, all of which take 30 bits: the filter's sums wrap.
        "f32-filtered-sums-wrap" => {
            let filter = [90, -128, 127, -77, 64, 33, -5, 101, -60i8].map(|w| w as u8);
            let tables = [(0, octave(26)), (64 * 2, 119..121), (64 * 3, octave(26))];
            let head = head(&[&[1 << 3], &filter[..], &[3]].concat(), &fields(&tables));
            with_words(draft(F32, 0x93, head), None, random, |random| random.bits() as u16)
        }
        // At first numbers of -2^31: token 128 with all bits of its x.
        "f64-lowest-numbers" => {
            let mut ones = 40;
            let head = head(&[0, 1], &fields(&[(0, octave(27))]));
            with_words(draft(F64, 0x10, head), None, random, |_| {
                ones -= i32::from(ones > 0);
                if ones > 0 { 0xFFFF } else { 0 }
            })
        }
        _ => {
            let tables = of_vectors(name);
            let weights = [64, 13, 64, -7i8].map(|w| w as u8);
            let head = head(&[&[0, 0x80 | tables.len() as u8], &weights[..]].concat(), &fields(&tables));
            let kind = if name.starts_with("f64") { F64 } else { F32 };
            let period = if name.ends_with("of-period-16") { 16 } else { 3 };
            with_words(draft(kind, 0x20, head), Some(period), random, |random| random.bits() as u16)
        }
    }
}

/// Tables of vectors of this name.
fn of_vectors(name: &str) -> Vec<Table> {
    // Positions and distances, where nothing is small; errors; signs on spheres. Far ones are nearly of one size, so
    // that lengths are certain.
    let (steps, errors, signs) = match name {
        "f32-vectors-of-any-sign" => (octave(0), 1..9, 1..9),
        "f32-vectors-about-circles" | "f32-vectors-of-period-16" => (octave(3), octave(0), 1..2),
        "f64-vectors-far" | "f64-vectors-of-4-far" => (113..114, octave(0), 1..2),
        _ => panic!("dense/{name} is not made by hand"),
    };
    let mut tables = vec![(0, errors), (64 * 15, steps.clone())];
    // Of spheres, circles and points, so that each context has a number of its own: 1 to 8 with a sign.
    for (group, own) in [(18, 8), (19, 1), (20, 8), (21, 8), (22, 16)] {
        tables.extend((0..own).map(|k| (64 * group + k, 1 + k as usize % 8..2 + k as usize % 8)));
        tables.push((64 * group + own, 1..5));
    }
    // Signs on circles are 0, 1 to 8 with a sign, and fifteen numbers above.
    tables.extend([(64 * 23, steps), (64 * 23 + 16, signs), (64 * 23 + 17, 0..24)]);
    tables
}

/// The four tokens whose x has k + 2 bits.
fn octave(k: usize) -> Range<usize> {
    9 + 4 * k..13 + 4 * k
}

/// The bits of tables whose classes are of level 49, as values and how many bits they have.
fn fields(tables: &[Table]) -> Vec<(u32, u32)> {
    let mut fields: Vec<_> = tables.iter().skip(1).map(|table| (table.0, 11)).collect();
    let mut before: Vec<i32> = Vec::new();
    for (_, classes) in tables {
        let levels: Vec<i32> = (0..classes.end).map(|c| if classes.contains(&c) { 49 } else { 0 }).collect();
        fields.push((levels.len() as u32, 7));
        for (c, level) in levels.iter().enumerate() {
            let expected = before.get(c).copied().unwrap_or(if c > 0 { levels[c - 1] } else { 49 });
            let d = level - expected;
            fields.push(difference((d << 1 ^ d >> 31) as u32));
        }
        before = levels;
    }
    fields
}

/// A difference of levels, as zigzag says it, as its bits.
pub fn difference(z: u32) -> (u32, u32) {
    if z < 24 { (((1 << (z / 4)) - 1) | (z % 4) << (z / 4 + 1), z / 4 + 3) } else { (0x3f | z << 6, 14) }
}

/// A head of its length, these bytes, and these bits.
pub fn head(bytes: &[u8], fields: &[(u32, u32)]) -> Vec<u8> {
    let mut head = [&[0, 0], bytes].concat();
    let (mut held, mut count) = (0u64, 0);
    for &(value, bits) in fields {
        held |= u64::from(value) << count;
        count += bits;
        while count >= 8 {
            head.push(held as u8);
            (held, count) = (held >> 8, count - 8);
        }
    }
    if count > 0 {
        head.push(held as u8);
    }
    let len = head.len() as u16;
    head[..2].copy_from_slice(&len.to_le_bytes());
    head
}

/// The draft's one tile with words that decode.
fn with_words(
    mut draft: Draft,
    period: Option<u16>,
    random: &mut Random,
    mut word: impl FnMut(&mut Random) -> u16,
) -> Vec<u8> {
    let engine = Engine::with_threads(1);
    let zeros = if draft.kind & 0xFF0 == F64 & 0xFF0 { ZEROS } else { ZEROS / 4 };
    for _ in 0..64 {
        let words: Vec<u16> = (0..MOST_WORDS).map(|_| word(random)).collect();
        for count in 0..MOST_WORDS {
            let all = [period.as_slice(), &[0, 1], &words[..count], &[0; ZEROS][..zeros]].concat();
            draft.sections[2] = le(&[all.len() as u32]);
            draft.sections[3] = all.iter().flat_map(|w| w.to_le_bytes()).collect();
            let frame = draft.frame();
            if engine.decode(&frame, draft.raw_len).is_ok() {
                return frame;
            }
        }
    }
    panic!("no words decode")
}
