// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `lorenzo` that every reader must refuse.

use super::super::by_hand::{fixed_width, le, without_codebook};
use super::super::draft::{Draft, F32};
use super::super::frames::Parts;
use super::{List, example};

/// A tile of `n` values along one axis, class Huffman, every residual one bit: symbol 35 is 0, 36 is 1.
fn stream(n: usize, words: &[u32]) -> Draft {
    let mut p = without_codebook(4, 1, 0.5, &[n as u32]);
    p.head = [&[37][..], &[0; 17], &[0x10, 0x01]].concat();
    p.kinds.push(0x10);
    p.payloads.push(le(words));
    Draft::of(&p.frame())
}

/// Five residuals of 0, symbol 35, of which a bit says one, under a codebook of these lengths: of symbol 35 and those
/// behind it.
fn unmet(lengths: &[u8]) -> Draft {
    let symbols = [&[0; 35][..], lengths, &[0][..lengths.len().is_multiple_of(2).into()]].concat();
    let mut d = stream(5, &[0]);
    d.sections[0] = symbols.chunks(2).map(|two| two[0] | two[1] << 4).collect();
    d.sections[0].insert(0, 35 + lengths.len() as u8);
    d
}

/// Of the example, head: 37 symbols, 19 bytes of lengths; payload: 2 records, a stream of one word.
fn head(bytes: &'static [u8]) -> impl Fn(&mut Draft) {
    move |d| d.sections[0] = bytes.into()
}

fn kind(kind: u8) -> impl Fn(&mut Draft) {
    move |d| d.sections[1] = vec![kind]
}

fn payload(words: &'static [u32]) -> impl Fn(&mut Draft) {
    move |d| {
        d.sections[2] = le(&[words.len() as u32]);
        d.sections[3] = le(words);
    }
}

/// A raw tile of four values, and as long as these.
fn raw(kind: u8, values: usize) -> Draft {
    let mut p = without_codebook(4, 1, 0.5, &[4]);
    (p.kinds, p.payloads) = (vec![kind], vec![vec![1; 4 * values]]);
    Draft::of(&p.frame())
}

pub fn rules(list: &mut List) {
    let good = example("lorenzo");
    codebook(list, &good);
    lengths(list, &good);
    kinds(list, &good);
    payloads(list, &good);
    streams(list, &good);
}

/// L1 to L7: the head.
fn codebook(list: &mut List, good: &Draft) {
    list.but("L1-head-of-no-bytes", "head has 0 bytes where 1", good, head(&[]));
    list.but("L1-head-too-short", "head has 19 bytes where 20", good, |d| d.sections[0].truncate(19));
    list.but("L1-head-too-long", "head has 21 bytes where 20", good, |d| d.sections[0].push(0));
    list.but("L1-head-with-half-a-base", "head has 22 bytes where 20", good, |d| d.sections[0].extend([0, 0x80]));
    list.but("L1-head-with-a-base-in-mode-3", "head has 24 bytes where 20", good, |d| {
        d.mode = 3;
        d.sections[0].extend(1f32.to_le_bytes());
    });
    let mut wide = without_codebook(8, 1, 0.5, &[4]);
    (wide.kinds, wide.payloads) = (vec![0], vec![Vec::new()]);
    wide.head.extend(1f32.to_le_bytes());
    list.draft("L1-head-with-a-base-of-another-size", "head has 5 bytes where 1", &Draft::of(&wide.frame()));
    for (name, base) in [
        ("L31-base-of-0", 0f32),
        ("L31-base-of-minus-0", -0.0),
        ("L31-infinite-base", f32::NEG_INFINITY),
        ("L31-base-that-is-no-number", f32::NAN),
    ] {
        list.but(name, "as the base", good, |d| d.sections[0].extend(base.to_le_bytes()));
    }
    list.but("L2-189-symbols", "189 symbols", good, |d| {
        // The last one in use is 188.
        d.sections[0][0] = 189;
        d.sections[0][19] = 0;
        d.sections[0].resize(96, 0);
        d.sections[0][95] = 2;
    });
    let mut last = [0; 154];
    (last[0], last[1], last[153]) = (1, 2, 2);
    list.draft("L2-189-symbols-of-which-the-last-is-not-met", "189 symbols", &unmet(&last));
    list.but("L3-bits-behind-the-last-length", "bits after", good, |d| d.sections[0][19] = 0x12);
    list.but("L4-last-symbol-not-in-use", "last of 38 symbols", good, |d| d.sections[0][0] = 38);
    list.but("L5-codeword-of-12-bits", "too long", good, |d| d.sections[0][1] = 12);
    let long: Vec<u8> = (1..=12).chain([12]).collect();
    list.draft("L5-codeword-of-12-bits-that-is-not-met", "too long", &unmet(&long));
    list.but("L6-over-full", "over-full", good, |d| d.sections[0][1] = 1);
    list.draft("L6-over-full-by-a-codeword-that-is-not-met", "over-full", &unmet(&[1, 1, 2]));
    list.but("L7-under-full", "under-full", good, |d| d.sections[0][19] = 3);
    list.draft("L7-under-full-by-a-codeword-that-is-not-met", "under-full", &unmet(&[1, 2]));
    list.but("L7-single-codeword", "under-full", good, head(&[1, 1]));
}

/// L8 to L12: kinds, lengths and starts.
fn lengths(list: &mut List, good: &Draft) {
    list.but("L8-kind-too-few", "kinds has 0 bytes where 1", good, |d| d.sections[1].clear());
    list.but("L8-kind-too-many", "kinds has 2 bytes where 1", good, |d| d.sections[1].push(0));
    // 68 tiles, of which tile 51 is raw: 32 values.
    let mut many = without_codebook(4, 1, 0.5, &[17, 17, 513]);
    many.kinds = vec![0; 68];
    many.kinds[51] = 0x30;
    many.payloads = vec![Vec::new(); 68];
    many.payloads[51] = vec![0; 4 * 32];
    let many = Draft::of(&many.frame());
    let start = |unit: u32| move |d: &mut Draft| d.sections[2][136..].copy_from_slice(&unit.to_le_bytes());
    list.but("L9-no-lengths", "lengths has 0 bytes where 4", good, |d| d.sections[2].clear());
    list.but("L9-length-not-filled-up", "lengths has 2 bytes where 4", good, |d| d.sections[2].truncate(2));
    list.but("L9-length-too-many", "lengths has 8 bytes where 4", good, |d| d.sections[2].extend([0; 4]));
    list.but("L9-start-too-few", "lengths has 136 bytes where 140", &many, |d| d.sections[2].truncate(136));
    list.but("L9-start-too-many", "lengths has 144 bytes where 140", &many, |d| d.sections[2].extend([32, 0, 0, 0]));
    let huge = Draft::new(2, 1, 1e-3, F32, &[100_000_000], vec![Vec::new(); 4]);
    list.bytes("F15-hundred-million-values", "caller", 1 << 20, huge.frame());
    list.but("L10-byte-behind-the-last-length", "behind the lengths", good, |d| d.sections[2][2] = 1);
    list.but("L11-start-that-is-not-the-sum", "starts at", &many, start(33));
    list.but("L11-start-at-16-GiB", "starts at", &many, start(u32::MAX));
    list.but("L11-length-that-is-missing", "starts at", &many, |d| d.sections[2][2 * 51] = 0);
    list.but("L12-lengths-beyond-the-payload", "payload has 24 bytes", good, |d| d.sections[2][0] = 7);
    list.but("L12-payload-behind-the-lengths", "payload has 24 bytes", good, |d| d.sections[2][0] = 5);
    list.but("L12-byte-behind-the-payload", "payload has 25 bytes", good, |d| d.sections[3].push(0));
    list.but("L12-lengths-of-65535-units", "payload has 128 bytes", &many, |d| d.sections[2][130..136].fill(255));
}

/// L13 to L16: kinds.
fn kinds(list: &mut List, good: &Draft) {
    list.but("L13-bit-7-of-a-kind", "kind 0xd1", good, kind(0xD1));
    list.but("L13-finer-steps-without-axes", "kind 0xd0", good, kind(0xD0));
    list.but("L14-interpolation-without-axes", "kind 0x58", good, kind(0x58));
    list.but("L14-finer-steps-of-interpolation-without-axes", "kind 0xd8", good, kind(0xD8));
    list.but("L14-interpolation-along-an-axis-of-one-value", "axes 0b010 of [1, 1, 99]", good, kind(0x5A));
    list.but("L14-interpolation-along-another-axis-of-one-value", "axes 0b101 of [1, 1, 99]", good, kind(0x5D));
    // Of two tiles, 16 x 16 x 32 and 16 x 16 x 1, the second has one value along x.
    let mut last = without_codebook(4, 1, 0.5, &[16, 16, 33]);
    (last.kinds, last.payloads) = (vec![0x0F, 0x0F], vec![Vec::new(); 2]);
    let last = Draft::of(&last.frame());
    list.draft("L14-interpolation-along-one-value-of-the-last-tile", "axes 0b111 of [16, 16, 1]", &last);
    list.but("L15-interpolation-in-mode-3", "kind 0x59", good, |d| {
        d.mode = 3;
        d.sections[1] = vec![0x59];
    });
    list.but("L16-raw-with-axes", "kind 0x31", good, kind(0x31));
    list.but("L16-raw-with-exceptions", "kind 0x70", good, kind(0x70));
    list.but("L16-raw-and-interpolated", "kind 0x39", good, kind(0x39));
    list.but("L16-raw-with-finer-steps", "kind 0xb9", good, kind(0xB9));
    list.draft("L16-raw-values-with-axis-x", "kind 0x31", &raw(0x31, 4));
    list.draft("L16-raw-values-with-axis-y", "kind 0x32", &raw(0x32, 4));
    list.draft("L16-raw-values-with-axis-z", "kind 0x34", &raw(0x34, 4));
    list.draft("L16-raw-values-with-all-axes", "kind 0x37", &raw(0x37, 4));
    list.draft("L16-raw-values-with-outliers", "kind 0x70", &raw(0x70, 4));
    list.draft("L16-raw-values-with-axis-x-and-outliers", "kind 0x71", &raw(0x71, 4));
    list.draft("L16-raw-values-interpolated", "kind 0x39", &raw(0x39, 4));
    list.draft("L16-raw-values-with-finer-steps", "kind 0xb9", &raw(0xB9, 4));
    list.draft("L16-raw-values-with-bit-3-alone", "kind 0x38", &raw(0x38, 4));
    list.draft("L16-raw-values-with-bit-7-alone", "kind 0xb0", &raw(0xB0, 4));
}

/// L17 to L25: raw values, outliers, residuals of fixed width.
fn payloads(list: &mut List, good: &Draft) {
    list.draft("L17-raw-tile-too-long", "raw payload of 20 bytes, 16", &raw(0x30, 5));
    list.but("L17-raw-tile-too-short", "raw payload of 24 bytes, 396", good, kind(0x30));
    list.but("L18-empty-with-a-stream", "for an empty tile", good, kind(0x41));
    list.but("L19-no-record-of-exceptions", "0 outliers", good, payload(&[0, 0x0001_0B0B]));
    list.but("L19-more-records-than-values", "100 outliers among 99", good, |d| d.sections[3][0] = 100);
    list.but("L20-exceptions-beyond-the-payload", "outliers need", good, |d| d.sections[3][0] = 3);
    list.but("L20-no-count-of-exceptions", "no count", good, payload(&[]));
    list.but("L21-records-that-overlap", "outliers at 10 to 10, after 11", good, |d| d.sections[3][8] = 10);
    list.but("L21-records-that-fall", "outliers at 8 to 8, after 11", good, |d| d.sections[3][8] = 8);
    list.but("L22-exceptions-beyond-the-tile", "outliers at 40 to 99", good, |d| d.sections[3][10] = 59);
    list.but("L22-65536-exceptions-from-the-last-place", "outliers at 98 to 65633", good, |d| {
        d.sections[3][8..12].copy_from_slice(&[98, 0, 255, 255]);
    });
    masks(list);
    let fixed = |n: usize, payload: Vec<u8>| {
        let mut p: Parts = without_codebook(4, 1, 0.5, &[n as u32]);
        p.kinds.push(0x20);
        p.payloads.push(payload);
        Draft::of(&p.frame())
    };
    list.draft("L23-no-width", "no width", &fixed(5, Vec::new()));
    list.draft("L23-width-0", "residuals of 0 bits", &fixed(5, le(&[0])));
    list.draft("L23-width-33", "residuals of 33 bits", &fixed(5, le(&[33, 0, 0, 0, 0, 0, 0])));
    list.draft("L24-word-too-few", "4 bytes of residuals of 7 bits, 8", &fixed(5, le(&[7, 0])));
    list.draft("L24-word-too-many", "12 bytes of residuals of 7 bits, 8", &fixed(5, le(&[7, 0, 0, 0])));
    let mut bits = fixed_width(5, 7, || 1);
    bits[4 + 4] |= 1 << 3;
    list.draft("L25-bit-behind-the-last-residual", "bits after the last residual", &fixed(5, bits));
}

/// L19, L20 and L32 to L34: masks.
fn masks(list: &mut List) {
    let empty = |dims: &[u32], words: &[u32]| {
        let mut p: Parts = without_codebook(4, 1, 0.5, dims);
        p.kinds.push(0x40);
        p.payloads.push(le(words));
        Draft::of(&p.frame())
    };
    const MASK: u32 = 1 << 31;
    let of_99 = |words: &[u32]| empty(&[99], words);
    list.draft("L19-mask-of-no-runs", "0 runs of outliers", &of_99(&[MASK, 1]));
    list.draft("L19-mask-of-more-runs-than-values", "6 runs of outliers", &empty(&[5], &[MASK | 6, 1, 0, 0, 0]));
    list.draft("L20-mask-beyond-the-payload", "need 12 bytes of 8", &of_99(&[MASK | 4, 1, 0x0101_0101]));
    list.draft("L20-mask-without-a-value", "need 8 bytes of 0", &of_99(&[MASK | 1]));
    list.draft(
        "L32-byte-behind-an-odd-number-of-runs",
        "behind the last run",
        &of_99(&[MASK | 1, 1, 1 << 16 | 0x0401]),
    );
    list.draft("L33-runs-beyond-the-tile", "100 places of 99", &of_99(&[MASK | 2, 1, 0x6201_0001]));
    list.draft("L33-zeros-beyond-the-tile", "100 places of 99", &of_99(&[MASK | 2, 1, 0x0063_0100]));
    list.draft("L34-differences-in-one-row", "among [1, 1, 99]", &of_99(&[MASK | 1 << 30 | 1, 1, 0x0401]));
    list.draft("L34-differences-of-one-value", "among [1, 1, 1]", &empty(&[], &[MASK | 1 << 30 | 1, 1, 0x0100]));
}

/// L26 to L30: streams.
fn streams(list: &mut List, good: &Draft) {
    list.but("L26-stream-of-no-words", "no words", good, |d| {
        d.sections[2] = le(&[5]);
        d.sections[3].truncate(20);
    });
    list.but("L26-stream-without-a-codebook", "no codebook", good, head(&[0]));
    list.draft("L27-stream-too-short", "codewords end at bit 33", &stream(33, &[0]));
    list.draft("L27-long-stream-too-short", "a stream of 2016 bits", &stream(2048, &[0; 63]));
    // Symbols 0 and 119 of one bit each: the second escape's 30 bits are not there.
    let mut escapes = stream(2, &[u32::MAX]);
    escapes.sections[0] = [&[120, 1][..], &[0; 58], &[0x10]].concat();
    list.draft("L27-outlier-behind-the-end", "codewords end at bit 62", &escapes);
    // In place of zeros to the end: a run of 33, where 32 are left.
    list.but("L28-run-beyond-the-tile", "99 expected", good, |d| d.sections[3][22] = 0x19);
    // Two symbols of one bit each, in a tile of five.
    let two = |head: Vec<u8>| {
        let mut d = stream(5, &[0]);
        d.sections[0] = head;
        d
    };
    let runs = two([&[35][..], &[0; 16], &[0x10, 1]].concat());
    list.draft("L28-run-of-4096-zeros", "5 expected", &runs);
    let joint = |symbol: u8| two([&[symbol + 2][..], &vec![0; usize::from(symbol) / 2], &[0x11]].concat());
    list.draft("L28-residual-beyond-the-tile", "5 expected", &joint(120));
    list.draft("L28-joint-run-beyond-the-tile", "5 expected", &joint(184));
    list.but("L29-word-behind-the-stream", "64 bits whose codewords end at bit 20", good, |d| {
        d.sections[3].extend([0; 4]);
        d.sections[2][0] = 7;
    });
    list.draft("L29-word-behind-a-long-stream", "a stream of 2080 bits", &stream(2048, &[0; 65]));
    list.but("L30-bit-behind-the-stream", "32 bits whose codewords end at bit 20", good, |d| d.sections[3][23] = 1);
    let bit = stream(2040, &[&[0; 63][..], &[1 << 31]].concat());
    list.draft("L30-bit-behind-a-long-stream", "codewords end at bit 2040", &bit);
}
