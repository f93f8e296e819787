// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `szx` that every reader must refuse.

use super::super::by_hand::{le, szx_frame};
use super::super::draft::{Draft, F32, F64};
use super::{List, example};

/// One coded block of 128 values without codes, as long as its q says.
fn coded(mode: u8, bound: f64, kind: u32, q: u8) -> Draft {
    let base = vec![0; if mode == 3 { 0 } else { (kind >> 4 & 0xFF) as usize }];
    let words = vec![1; 128 * usize::from(q.div_ceil(8))];
    szx_frame(mode, bound, kind, &[128], &[&[64 + 2 + q, 0, 0, 0], &base, &words])
}

/// Sections of the example: 20 units of payload; A at 0, B at 4, C at 12, D at 28, E at 32, F at 64 to 79.
fn payload(at: usize, byte: u8) -> impl Fn(&mut Draft) {
    move |d| d.sections[1][at] = byte
}

fn table(ends: &'static [u32]) -> impl Fn(&mut Draft) {
    move |d| d.sections[0] = le(ends)
}

pub fn rules(list: &mut List) {
    heads(list);
    parts(list);
}

/// S1 to S6: the table of ends, kinds and bounds.
fn heads(list: &mut List) {
    let good = example("szx");
    list.but("S1-table-without-entry", "table has 0 bytes where 4", &good, table(&[]));
    list.but("S1-table-of-two-tiles", "table has 8 bytes where 4", &good, table(&[20, 20]));
    let huge = Draft::new(1, 1, 1e-3, F64, &[100_000_000, 2], vec![Vec::new(); 2]);
    list.bytes("F15-two-hundred-million-values", "caller", 1 << 20, huge.frame());
    list.but("S2-end-beyond-the-payload", "tile 0 ends at 84", &good, table(&[21]));
    let two = Draft { raw_len: 4 * 4097, dims: vec![4097], ..good.clone() };
    list.bytes("S2-ends-that-fall", "tile 1 ends at 4", 4 * 4097, {
        let mut d = two.clone();
        table(&[2, 1])(&mut d);
        d.frame()
    });
    list.but("S3-payload-behind-the-last-end", "the last tile ends at 76", &good, table(&[19]));
    list.but("S3-word-behind-the-last-tile", "the last tile ends at 80", &good, |d| d.sections[1].extend([0; 4]));
    list.but("S4-zero-with-high-bits-1", "kind 0x40", &good, payload(1, 0x40));
    list.but("S4-constant-with-high-bits-1", "kind 0x41", &good, payload(1, 0x41));
    list.but("S4-raw-with-high-bits-1", "kind 0x42", &good, payload(1, 0x42));
    list.but("S4-raw-with-specials", "kind 0x82", &good, payload(1, 0x82));
    list.but("S4-raw-with-uniform-specials", "kind 0xc2", &good, payload(1, 0xC2));
    // As long as their kinds say.
    let block = |kind: u8, parts: &[&[u8]]| {
        let kinds = [kind, 0, 0, 0];
        szx_frame(1, 0.5, F32, &[128], &[&[&kinds[..]], parts].concat())
    };
    let (values, mut bitmap) = ([1; 4 * 128], [0; 16]);
    bitmap[3] = 1;
    list.draft("S4-zero-and-no-codes", "kind 0x40", &block(0x40, &[]));
    list.draft("S4-constant-and-no-codes", "kind 0x41", &block(0x41, &[&[1; 4]]));
    list.draft("S4-raw-and-no-codes", "kind 0x42", &block(0x42, &[&values]));
    list.draft("S4-raw-and-outliers", "kind 0x82", &block(0x82, &[&bitmap, &[2; 4], &values]));
    list.draft("S4-raw-and-uniform-outliers", "kind 0xc2", &block(0xC2, &[&bitmap, &[2; 4], &values]));
    list.but("S5-q-of-24-in-an-absolute-mode", "kind 0x1a", &good, payload(0, 2 + 24));
    list.but("S5-q-of-8-in-mode-3", "kind 0x0a", &good, |d| {
        d.mode = 3;
        d.sections[1][0] = 2 + 8;
    });
    list.but("S5-q-of-33-in-mode-3", "kind 0x23", &good, |d| {
        d.mode = 3;
        d.sections[1][0] = 2 + 33;
    });
    // With words of that many bits.
    list.draft("S5-words-of-24-bits", "kind 0x5a", &coded(1, 0.5, F32, 24));
    list.draft("S5-words-of-61-bits", "kind 0x7f", &coded(1, 0.5, F32, 61));
    list.draft("S5-words-of-53-bits-of-f64", "kind 0x77", &coded(1, 0.5, F64, 53));
    list.draft("S5-words-of-8-bits-in-mode-3", "kind 0x4a", &coded(3, 0.5, F32, 8));
    list.draft("S5-words-of-1-bit-in-mode-3", "kind 0x43", &coded(3, 0.5, F32, 1));
    list.draft("S5-words-of-11-bits-of-f64-in-mode-3", "kind 0x4d", &coded(3, 0.5, F64, 11));
    list.draft("S5-words-of-33-bits-in-mode-3", "kind 0x63", &coded(3, 0.5, F32, 33));
    list.but("S6-coded-with-a-bound-of-0", "kind 0xc6", &good, |d| d.bound = 0);
    list.but("S6-coded-with-a-bound-of-1e39", "kind 0xc6", &good, |d| d.bound = 1e39f64.to_bits());
    list.but("S6-coded-with-a-subnormal-bound", "kind 0xc6", &good, |d| d.bound = 1);
    // Neighbours of the smallest and the largest bound whose step is usable: of f32 2^-127 and below 2^126, of f64
    // 2^-1022 and below 2^1022. A bound from 2^-1023 on has an exponent that is allowed, but is subnormal.
    let of = |kind: u32, bound: f64| coded(1, bound, kind, 9);
    list.draft("S6-bound-below-2^-127-of-f32", "kind 0x4b", &of(F32, 2f64.powi(-127).next_down()));
    list.draft("S6-bound-of-2^126-of-f32", "kind 0x4b", &of(F32, 2f64.powi(126)));
    list.draft("S6-bound-below-2^-1022-of-f64", "kind 0x4b", &of(F64, f64::MIN_POSITIVE.next_down()));
    list.draft("S6-bound-of-2^-1023-of-f64", "kind 0x4b", &of(F64, f64::MIN_POSITIVE / 2.0));
    list.draft("S6-bound-of-2^1022-of-f64", "kind 0x4b", &of(F64, 2f64.powi(1022)));
}

/// S7 to S11: the parts of a payload.
fn parts(list: &mut List) {
    let good = example("szx");
    list.but("S7-byte-behind-the-kinds", "kinds are not filled up", &good, payload(3, 1));
    list.but("S8-bitmap-of-no-bit", "bitmap 0x0", &good, payload(12, 0));
    list.but("S8-bitmap-beyond-the-values", "block 1 of 3 values has the bitmap", &good, |d| {
        // A zero block with one outlier: the bitmap's bit is that of value 3 of 3.
        let parts: [&[u8]; 3] = [&[1, 0xC0, 0, 0], &le(&[0x3F80_0000, 8, 0, 0, 0]), &[0, 0, 0xC0, 0x7F]];
        d.sections = szx_frame(1, 0.5, F32, &[131], &parts).sections;
    });
    list.but("S9-code-of-2-with-words-of-1-byte", "code above 1", &good, payload(48, 1));
    let q10: [&[u8]; 5] = [&[2 + 10, 0, 0, 0], &[0; 4], &[1; 16], &[1; 16], &[0; 128]];
    list.draft("S9-code-of-3-with-words-of-2-bytes", "code above 2", &szx_frame(1, 0.5, F32, &[128], &q10));
    list.but("S10-payload-without-kinds", "0 bytes are too few", &good, |d| {
        d.sections = vec![le(&[0]), Vec::new()];
    });
    list.but("S10-payload-too-short", "76 bytes, its blocks need 80", &good, |d| {
        d.sections[1].truncate(76);
        table(&[19])(d);
    });
    list.but("S10-payload-too-long", "84 bytes, its blocks need 80", &good, |d| {
        d.sections[1].extend([0; 4]);
        table(&[21])(d);
    });
    list.but("S11-byte-behind-the-parts", "payload is not filled up", &good, payload(79, 1));
}
