// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `dense` that every reader must refuse.

use super::super::by_hand::le;
use super::super::dense::{self, difference};
use super::super::draft::{Draft, F32};
use super::{List, example};

/// A head: filters by mask and weights, and how many tables there are, with weights of vectors where 128 is added. The
/// tables' bits are `fields`: values with their numbers of bits.
fn head(mask: u8, weights: usize, tables: u8, fields: &[(u32, u32)]) -> impl Fn(&mut Draft) {
    let vectors = if tables & 128 == 0 { 0 } else { 4 };
    let bytes = [&[mask][..], &vec![1; weights], &[tables], &vec![0; vectors]].concat();
    let head = dense::head(&bytes, fields);
    move |d| d.sections[0] = head.clone()
}

/// A frame of one tile of 99 values, of this kind and these words, with a table of class 0 alone.
fn tile(kind: u8, words: &[u16]) -> Draft {
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut draft = Draft::new(7, 1, 0.25, F32, &[99], vec![vec![], vec![kind], le(&[words.len() as u32]), payload]);
    head(0, 0, 1, &[(1, 7), difference(0)])(&mut draft);
    draft
}

pub fn rules(list: &mut List) {
    let (good, empty, coded) = (example("dense"), tile(0, &[]), tile(0x11, &[0, 1]));
    // Two classes of one level: a table that nothing is wrong with.
    let table = [(2, 7), difference(0), difference(0)];
    list.but("D1-head-of-2-bytes", "head has 2 bytes where 3", &empty, |d| d.sections[0].truncate(2));
    list.but("D1-head-of-3-bytes", "where filters need 1", &empty, |d| d.sections[0] = vec![3, 0, 0]);
    list.but("D1-head-too-long", "stated", &good, |d| d.sections[0].push(0));
    list.but("D1-head-too-short", "stated", &good, |d| drop(d.sections[0].split_off(6)));
    list.but("D1-head-with-a-base-in-mode-3", "stated", &good, |d| {
        d.mode = 3;
        d.sections[0].extend(1f32.to_le_bytes());
    });
    list.but("D2-weights-beyond-the-head", "where filters need 9", &empty, head(2, 7, 0, &[]));
    list.but("D2-weights-of-vectors-beyond-the-head", "where filters need 4", &empty, |d| {
        d.sections[0] = vec![7, 0, 0, 129, 0, 0, 0]
    });
    list.but("D2-tables-beyond-the-head", "the tables end early", &empty, head(0, 0, 1, &[(2, 7), (0, 1)]));
    let starts = (1..65).map(|start| (start, 11));
    let all: Vec<_> = starts.chain([[(1, 7), difference(0)]; 65].concat()).collect();
    list.but("D3-65-tables", "65 tables", &empty, head(0, 0, 65, &all));
    let two = |start| [&[(start, 11)][..], &table, &table].concat();
    list.but("D4-two-tables-at-one-context", "table 1 begins at context 0", &empty, head(0, 0, 2, &two(0)));
    list.but("D4-table-behind-the-last-context", "context 1536", &empty, head(0, 0, 2, &two(1536)));
    list.but("D5-table-of-no-class", "0 classes", &empty, head(0, 0, 1, &[(0, 7)]));
    let many = [&[(122, 7)][..], &[difference(0); 122]].concat();
    list.but("D5-table-of-122-classes", "122 classes", &empty, head(0, 0, 1, &many));
    list.but("D6-level-of-50", "the level of class 0", &empty, head(0, 0, 1, &[(1, 7), difference(2)]));
    list.but(
        "D6-level-of-minus-1",
        "the level of class 1",
        &empty,
        head(0, 0, 1, &[(2, 7), difference(0), difference(99)]),
    );
    list.but("D6-long-difference-of-3", "a long difference", &empty, head(0, 0, 1, &[(1, 7), (0x3f | 3 << 6, 14)]));
    let none_at_last = [(2, 7), difference(0), difference(97)];
    list.but("D7-last-class-of-level-0", "the last class", &empty, head(0, 0, 1, &none_at_last));
    let behind = |bits| [&table[..], &[bits]].concat();
    list.but("D8-bit-behind-the-last-table", "bits behind", &empty, head(0, 0, 1, &behind((1, 1))));
    list.but("D8-byte-behind-the-last-table", "bits behind", &empty, head(0, 0, 1, &behind((0, 8))));
    let vectors = |dims: &[u32], words: &[u16]| {
        let mut draft = tile(0x20, words);
        draft.dims = dims.to_vec();
        head(0, 0, 129, &[(1, 7), difference(0)])(&mut draft);
        draft
    };
    list.but("D9-class-2", "kind 0x21", &vectors(&[33, 3], &[1, 0, 1]), |d| d.sections[1] = vec![0x21]);
    list.draft("D9-interpolated-vectors", "kind 0x29", &tile(0x29, &[1, 0, 1]));
    list.draft("D9-filtered-vectors", "kind 0xa0", &tile(0xA0, &[1, 0, 1]));
    list.draft("D9-empty-and-filtered", "kind 0x81", &tile(0x81, &[]));
    list.draft("D9-raw-and-filtered", "kind 0xb0", &tile(0xB0, &[0; 198]));
    list.draft("D10-filtered-without-a-filter", "no filter for axes 0b001", &tile(0x91, &[0, 1]));
    list.but("D11-coded-without-tables", "by 0 tables", &coded, head(0, 0, 0, &[]));
    list.draft("D11-one-word", "2 bytes of residuals", &tile(0x11, &[1]));
    list.draft("D12-state-below-2^16", "a state of", &tile(0x11, &[1, 0, 0]));
    list.but("D13-one-word-less", "words of residuals", &good, |d| {
        let len = d.sections[3].len() - 2;
        d.sections[3].truncate(len);
        d.sections[2] = le(&[len as u32 / 2]);
    });
    list.draft("D13-one-word-more", "words of residuals", &tile(0x11, &[0, 1, 0]));
    list.draft("D13-another-last-state", "words of residuals", &tile(0x11, &[1, 1]));
    list.draft("D14-vectors-without-weights", "no weights", &tile(0x20, &[1, 0, 1]));
    list.draft("D14-vectors-of-99", "in [1, 1, 99]", &vectors(&[99], &[1, 0, 1]));
    list.draft("D15-vectors-of-no-bytes", "period 0", &vectors(&[33, 3], &[]));
    list.draft("D15-period-of-0", "period 0", &vectors(&[33, 3], &[0, 0, 1]));
    list.draft("D15-period-of-17", "period 17", &vectors(&[33, 3], &[17, 0, 1]));
}
