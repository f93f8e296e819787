// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that break a rule of `scaled`.

use super::super::by_hand::{bytes_frame, le, no_cube, no_values, scaled_codes, scaled_head, swapped};
use super::super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::super::generate::Random;
use super::List;

/// A factor of 0.25, and an addend of 1.
const QUARTER: u64 = 0x3FD0 << 48;
const ONE: u64 = 0x3FF0 << 48;

fn frame(kind: u32, head: Vec<u8>, exceptions: Vec<u8>, codes: Vec<u8>) -> Draft {
    Draft::new(6, 9, 0.0, kind, &[10], vec![head, exceptions, codes])
}

pub fn rules(list: &mut List) {
    let good = frame(F32, scaled_head([1, 0, 0], [1, 0, 0, QUARTER, 0, 0]), Vec::new(), scaled_codes(4, vec![1; 40]));
    let whole = frame(I32, scaled_head([0, 1, 0], [1, 0, 2, 0, 0, 0]), Vec::new(), Vec::new());
    list.but("F7-scaled-in-mode-1", "scaled with mode", &good, |d| (d.mode, d.bound) = (1, 0.5f64.to_bits()));
    list.but("F9-scaled-of-bytes", "Bytes", &whole, |d| d.kind |= 15);
    let half = frame(0x0A05_4021, scaled_head([1, 0, 0], [1, 0, 0, QUARTER, 0, 0]), Vec::new(), Vec::new());
    list.draft("F9-scaled-of-f16", "size: 2", &half);
    list.but("F9-scaled-with-5-exponent-bits", "exponent_bits: 5", &good, |d| d.kind ^= (8 ^ 5) << 16);
    list.but("F9-scaled-with-10-mantissa-bits", "mantissa_bits: 10", &good, |d| d.kind ^= (23 ^ 10) << 24);
    list.but("F11-scaled-with-two-sections", "2 sections", &good, |d| drop(d.sections.pop()));
    list.but("F11-scaled-with-five-sections", "5 sections", &good, |d| d.sections.extend([vec![], vec![]]));
    list.but("F14-scaled-with-other-extents", "raw length 40", &whole, |d| d.dims[0] = 11);
    list.but("K1-head-of-55-bytes", "head has 55 bytes", &whole, |d| d.sections[0].truncate(55));
    list.but("K1-head-of-57-bytes", "head has 57 bytes", &whole, |d| d.sections[0].push(0));
    let first = |first: [u8; 3]| move |d: &mut Draft| d.sections[0][..3].copy_from_slice(&first);
    let word = |k: usize, word: u64| {
        move |d: &mut Draft| d.sections[0][8 + 8 * k..16 + 8 * k].copy_from_slice(&word.to_le_bytes())
    };
    list.but("K2-map-6", "map 6", &good, first([6, 0, 0]));
    list.but("K2-order-4", "order 4", &good, first([1, 4, 0]));
    list.but("K2-special-2", "special 2", &good, first([1, 0, 2]));
    list.but("K2-byte-7", "bytes 3 to 7", &good, |d| d.sections[0][7] = 1);
    list.but("K3-quotients-that-are-integers", "map Quotient", &good, |d| d.kind = I32);
    list.but("K3-whole-numbers-that-are-floats", "map Whole", &whole, |d| d.kind = F32);
    list.but("K3-bits-in-order-of-integers", "map Ordered", &whole, first([4, 1, 0]));
    let double =
        Draft::new(6, 9, 0.0, F64, &[10], vec![scaled_head([3, 0, 0], [1, 0, 0, QUARTER, 0, 0]), vec![], vec![]]);
    list.draft("K3-short-products-of-8-bytes", "map ShortProduct", &double);
    list.but("K3-second-differences-of-integers", "order 2", &whole, first([0, 2, 0]));
    list.but("K3-differences-of-products", "order 1", &good, first([2, 1, 0]));
    let line = scaled_head([0, 3, 0], [1, 0, 0, 0, 0, 0]);
    list.draft("K3-rows-of-one-axis", "rank 1", &frame(I32, line, Vec::new(), Vec::new()));
    list.but("K4-unit-0", "unit 0", &good, word(0, 0));
    let rows = Draft::new(6, 9, 0.0, I32, &[2, 5], vec![scaled_head([0, 3, 0], [1, 0, 2, 0, 0, 0]), vec![], vec![]]);
    list.draft("K4-step-of-order-3", "step 2 with order 3", &rows);
    list.but("K4-step-of-order-0", "step 2 with order 0", &whole, first([0, 0, 0]));
    list.but("K5-factor-0", "factor 0e0", &good, word(3, 0));
    list.but("K5-factor-of-bits-in-order", "factor 2.5e-1, addend 0e0 with map Ordered", &good, first([4, 0, 0]));
    list.but("K5-negative-factor", "factor -2.5e-1", &good, word(3, QUARTER | 1 << 63));
    list.but("K5-infinite-factor", "factor inf", &good, word(3, 0x7FF0 << 48));
    list.but("K5-factor-of-whole-numbers", "factor 2.5e-1", &whole, word(3, QUARTER));
    list.but("K5-factor-of-minus-zero", "factor -0e0", &whole, word(3, 1 << 63));
    list.but("K5-addend-of-quotients", "addend 1e0", &good, word(4, ONE));
    list.but("K5-addend-of-minus-zero-of-quotients", "addend -0e0", &good, word(4, 1 << 63));
    list.but("K5-addend-of-minus-zero-of-whole-numbers", "addend -0e0", &whole, word(4, 1 << 63));
    list.but("K5-addend-of-bits-in-order", "addend 1e0", &good, |d| {
        first([4, 0, 0])(d);
        word(3, 0)(d);
        word(4, ONE)(d);
    });
    list.but("K5-addend-that-is-no-number", "addend NaN", &good, |d| {
        first([2, 0, 0])(d);
        word(4, 0x7FF8 << 48)(d);
    });
    list.but("K6-bits-without-special", "special 0 with", &good, word(5, 1));
    list.but("K6-bits-of-another-size", "special 1 with", &good, |d| {
        first([1, 0, 1])(d);
        word(5, 1 << 32)(d);
    });
    list.but("K7-exceptions-of-9-bytes", "exceptions has 9 bytes where 16", &good, |d| d.sections[1] = vec![0; 9]);
    list.but("K7-place-10-of-10", "not below 10", &good, |d| d.sections[1] = le(&[10, 0]));
    list.but("K7-a-place-twice", "do not rise", &good, |d| d.sections[1] = le(&[3, 3, 0, 0]));
    list.but("K7-places-that-fall", "do not rise", &good, |d| d.sections[1] = le(&[4, 3, 0, 0]));
    inner(list, &good);
    dictionary(list, &good);
    corrections(list, &good, &whole);
}

/// K8: the frame of the codes.
fn inner(list: &mut List, good: &Draft) {
    let codes = |change: &dyn Fn(&mut Draft)| {
        let mut inner = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(40, 1, 40, &[vec![1; 40]]) };
        change(&mut inner);
        let codes = inner.frame();
        move |d: &mut Draft| d.sections[2] = codes
    };
    list.but("K8-a-byte-of-codes", "header has 1 bytes", good, |d| d.sections[2] = vec![0]);
    list.but("K8-stored-codes", "stored with mode", good, codes(&|d| (d.codec, d.sections) = (0, vec![vec![1; 40]])));
    list.but(
        "K8-stored-codes-without-a-type",
        "stored with mode",
        good,
        codes(&|d| (d.codec, d.kind, d.sections) = (0, 15, vec![vec![1; 40]])),
    );
    list.but("K8-codes-of-unsigned-integers", "signed: false", good, codes(&|d| d.kind = 4 << 4));
    list.but("K8-big-endian-codes", "big_endian: true", good, codes(&|d| d.kind |= BIG_ENDIAN));
    list.but("K8-codes-of-8-bytes", "size: 8", good, codes(&|d| d.kind = 1 << 14 | 8 << 4));
    let shorter = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(36, 1, 36, &[vec![1; 36]]) }.frame();
    list.but("K8-nine-codes-of-ten", "36 raw bytes", good, |d| d.sections[2] = shorter);
    list.but("K8-codes-with-a-rule-broken", "bytes head", good, codes(&|d| d.sections[0][0] = 0));
    // Zeros by `planes`, a tile of one word: of one axis, where the frame has two.
    let planes = Draft::new(5, 9, 0.0, I32, &[10], vec![le(&[4]), le(&[2, 0, 0, 0])]).frame();
    let two = Draft { dims: vec![2, 5], ..good.clone() };
    list.but("K8-codes-of-other-extents", "extents [10]", &two, |d| d.sections[2] = planes);
    let lorenzo = Draft::of_integers(&no_values(&[10]), I32).frame();
    list.but("K8-codes-of-lorenzo-of-other-extents", "extents [10]", &two, |d| d.sections[2] = lorenzo);
    let ndzip = no_cube(I32, &[10], &[1, 10], &mut Random(7));
    list.but("K8-codes-of-ndzip", "ndzip with", good, |d| d.sections[2] = ndzip.clone());
    let scaled = frame(I32, scaled_head([0, 1, 0], [1, 0, 2, 0, 0, 0]), Vec::new(), Vec::new()).frame();
    list.but("K8-codes-of-scaled", "scaled with", good, |d| d.sections[2] = scaled);
    let exchanged = swapped(&Draft::of_integers(&no_values(&[2, 5]), I32).frame());
    list.but("K8-codes-that-are-swapped", "extents [2, 5]", &two, |d| d.sections[2] = exchanged);
    list.but("K8-codes-with-exponent-bits", "exponent_bits: 8", good, codes(&|d| d.kind |= 8 << 16));
    list.but("K8-codes-with-mantissa-bits", "mantissa_bits: 23", good, codes(&|d| d.kind |= 23 << 24));
}

/// What K9 and the rules before it say of a dictionary.
fn dictionary(list: &mut List, good: &Draft) {
    let first = |first: [u8; 3]| move |d: &mut Draft| d.sections[0][..3].copy_from_slice(&first);
    let word = |k: usize, word: u64| {
        move |d: &mut Draft| d.sections[0][8 + 8 * k..16 + 8 * k].copy_from_slice(&word.to_le_bytes())
    };
    let listed = |change: &dyn Fn(&mut Draft)| {
        let mut inner = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(8, 1, 8, &[vec![1; 8]]) };
        change(&mut inner);
        [scaled_head([5, 0, 0], [1, 0, 0, 0, 0, 0]), inner.frame()].concat()
    };
    let with = |head: Vec<u8>| move |d: &mut Draft| d.sections[0] = head;
    let dictionary =
        Draft { sections: vec![listed(&|_| ()), Vec::new(), scaled_codes(4, vec![0; 40])], ..good.clone() };
    list.but("K1-no-dictionary", "head has 56 bytes", &dictionary, |d| d.sections[0].truncate(56));
    list.but("K1-a-dictionary-of-map-4", "head has", &dictionary, first([4, 0, 0]));
    list.but("K3-a-dictionary-of-integers", "map Dictionary", &dictionary, |d| d.kind = I32);
    list.but("K3-a-dictionary-of-order-1", "map Dictionary, order 1", &dictionary, first([5, 1, 0]));
    list.but("K5-a-dictionary-with-a-factor", "factor 2.5e-1", &dictionary, word(3, QUARTER));
    list.but("K9-a-dictionary-with-a-unit", "unit 2", &dictionary, word(0, 2));
    list.but(
        "K9-half-a-number",
        "6 raw bytes",
        &dictionary,
        with(listed(&|d| *d = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(6, 1, 6, &[vec![1; 6]]) })),
    );
    list.but(
        "K9-more-than-the-chunk",
        "44 raw bytes",
        &dictionary,
        with(listed(&|d| *d = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(44, 1, 44, &[vec![1; 44]]) })),
    );
    list.but(
        "K9-no-numbers",
        "0 raw bytes",
        &dictionary,
        with(listed(&|d| *d = Draft { kind: 1 << 14 | 4 << 4, ..bytes_frame(0, 1, 1, &[]) })),
    );
    list.but(
        "K9-a-stored-dictionary",
        "stored with mode",
        &dictionary,
        with(listed(&|d| (d.codec, d.sections) = (0, vec![vec![1; 8]]))),
    );
    list.but("K9-a-dictionary-of-8-bytes", "size: 8", &dictionary, with(listed(&|d| d.kind = 1 << 14 | 8 << 4)));
    list.but("K9-a-big-endian-dictionary", "big_endian: true", &dictionary, with(listed(&|d| d.kind |= BIG_ENDIAN)));
    let code = |code: u32| {
        move |d: &mut Draft| {
            let codes = (0..10).flat_map(|i| (if i == 9 { code } else { 1 }).to_le_bytes()).collect();
            d.sections[2] = scaled_codes(4, codes);
        }
    };
    list.but("K9-a-code-beyond-the-dictionary", "the code 2 with a dictionary of 2", &dictionary, code(2));
    list.but("K9-a-code-below-0", "the code -1 with", &dictionary, code(u32::MAX));
    list.but(
        "K9-a-code-beyond-the-dictionary-at-an-exception",
        "the code 2 with a dictionary of 2",
        &dictionary,
        |d| {
            code(2)(d);
            d.sections[1] = le(&[9, 0]);
        },
    );
    let rows = Draft::new(6, 9, 0.0, I32, &[2, 4], vec![scaled_head([0, 1, 0], [1, 0, 2, 0, 0, 0]), vec![], vec![]]);
    let by = |frame: Vec<u8>| with([scaled_head([5, 0, 0], [1, 0, 0, 0, 0, 0]), frame].concat());
    list.but("K9-a-dictionary-by-scaled", "a dictionary by scaled", &dictionary, by(rows.frame()));
    let planes = Draft::new(5, 9, 0.0, I32, &[8], vec![le(&[4]), le(&[2, 0, 0, 0])]).frame();
    list.but("K9-a-dictionary-by-planes", "a dictionary by planes", &dictionary, by(planes));
    list.but("K9-the-lowest-code-without-special", "the code -2147483648 with", &dictionary, code(1 << 31));
}

/// K10: the frame of the corrections.
fn corrections(list: &mut List, good: &Draft, whole: &Draft) {
    let with = |frame: Vec<u8>| move |d: &mut Draft| d.sections.push(frame);
    let changed = |change: &dyn Fn(&mut Draft)| {
        let mut inner = Draft { kind: 1 << 14 | 1 << 4, ..bytes_frame(10, 1, 10, &[vec![1; 10]]) };
        change(&mut inner);
        with(inner.frame())
    };
    let ten = |d: &mut Draft| d.sections.push(scaled_codes(1, vec![0; 10]));
    list.but("K10-corrections-of-integers", "Whole has none", whole, ten);
    list.but("K10-corrections-of-products", "Product has none", good, |d| {
        d.sections[0][0] = 2;
        ten(d);
    });
    list.but("K10-corrections-of-bits-in-order", "Ordered has none", good, |d| {
        d.sections[0] = scaled_head([4, 0, 0], [1, 0, 0, 0, 0, 0]);
        ten(d);
    });
    list.but("K10-corrections-of-a-dictionary", "Dictionary has none", good, |d| {
        d.sections[0] = [scaled_head([5, 0, 0], [1, 0, 0, 0, 0, 0]), scaled_codes(4, vec![1; 8])].concat();
        d.sections[2] = scaled_codes(4, vec![0; 40]);
        ten(d);
    });
    list.but("K10-no-bytes-of-corrections", "header has 0 bytes", good, with(Vec::new()));
    list.but("K10-nine-corrections-of-ten", "9 raw bytes", good, with(scaled_codes(1, vec![1; 9])));
    list.but("K10-eleven-corrections-of-ten", "11 raw bytes", good, with(scaled_codes(1, vec![1; 11])));
    list.but("K10-corrections-of-4-bytes", "size: 4", good, with(scaled_codes(4, vec![1; 40])));
    list.but("K10-corrections-of-unsigned-integers", "signed: false", good, changed(&|d| d.kind = 1 << 4));
    list.but("K10-big-endian-corrections", "big_endian: true", good, changed(&|d| d.kind |= BIG_ENDIAN));
    list.but("K10-corrections-with-mantissa-bits", "mantissa_bits: 23", good, changed(&|d| d.kind |= 23 << 24));
    list.but("K10-corrections-with-a-rule-broken", "bytes head", good, changed(&|d| d.sections[0][0] = 0));
    let stored = |d: &mut Draft| (d.codec, d.sections) = (0, vec![vec![1; 10]]);
    list.but("K10-stored-corrections", "stored with mode", good, changed(&stored));
    let planes = Draft::new(5, 9, 0.0, 1 << 14 | 1 << 4, &[10], vec![le(&[4]), le(&[2, 0, 0, 0])]).frame();
    list.but("K10-corrections-by-planes", "needed are lorenzo or bytes", good, with(planes));
    let lorenzo = Draft::of_integers(&no_values(&[10]), 1 << 14 | 1 << 4).frame();
    let two = Draft { dims: vec![2, 5], ..good.clone() };
    list.but("K10-corrections-of-other-extents", "extents [10]", &two, with(lorenzo));
    let exchanged = swapped(&Draft::of_integers(&no_values(&[2, 5]), 1 << 14 | 1 << 4).frame());
    list.but("K10-corrections-that-are-swapped", "extents [2, 5]", &two, with(exchanged));
}
