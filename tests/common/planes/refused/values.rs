// SPDX-License-Identifier: MIT OR Apache-2.0
//! P12 to P16: exceptions, sums, lengths and fields.

use super::super::super::draft::{F32, F64, I32};
use super::super::super::refused::List;
use super::super::{Lengths, Plane, Tile, frame, place};
use super::{changed, excepted, flipped_behind, line, quanta, wide};

/// P12.
pub fn exceptions(list: &mut List) {
    let count = |tile: &Tile, uniform: bool, n: u32| {
        changed(&excepted(tile.clone(), uniform), |p| {
            p.mask = p.mask.map(|m| m & !0x1F_FF00 | n << 8);
            p.values.resize(if uniform { 4 } else { 4 * n as usize }, 0);
        })
    };
    list.draft(
        "P12-two-exceptions-for-three-marks",
        "masks of 3 exceptions, their word says 2",
        &count(&quanta(), false, 2),
    );
    list.draft(
        "P12-four-exceptions-for-three-marks",
        "masks of 3 exceptions, their word says 4",
        &count(&quanta(), false, 4),
    );
    list.draft(
        "P12-4096-uniform-exceptions-for-three-marks",
        "masks of 3 exceptions, their word says 4096",
        &count(&quanta(), true, 4096),
    );
    list.draft(
        "P12-two-exceptions-for-three-marks-in-wide-quanta",
        "masks of 3 exceptions, their word says 2",
        &count(&wide(1), false, 2),
    );
    list.draft(
        "P12-four-exceptions-for-three-marks-in-bits",
        "masks of 3 exceptions, their word says 4",
        &count(&wide(2), false, 4),
    );
    let mut unmarked = excepted(quanta(), true);
    unmarked.blocks.iter_mut().for_each(|b| b.mask = Plane::default());
    list.draft("P12-one-exception-without-marks", "masks of 0 exceptions, their word says 1", &{
        let mut parts = unmarked.parts(4);
        parts.mask = Some(1 << 8);
        line(parts.payload())
    });
}

/// P13: the sums of class 0 leave what is allowed, at one place and others.
pub fn sums(list: &mut List) {
    // A tile that says zeros but for some residuals.
    let tile = |rank: u32, predictor: u32, residuals: &'static [(usize, i64)]| {
        let at = |k: usize, l: u32, bit: u32| place(rank, k, l as usize, bit as usize);
        let d = |i: usize| residuals.iter().find(|r| r.0 == i).map_or(0, |r| r.1);
        let dims: &[u32] = [&[40][..], &[128, 32], &[8, 16, 32]][rank as usize - 1];
        let tile = Tile::quanta(predictor, [2; 4]).saying(1, |k, l, bit| d(at(k, l, bit)));
        (tile, dims)
    };
    let of = |(tile, dims): (Tile, &'static [u32])| frame(1, 0.5, F32, dims, &[tile.payload(4)]);
    list.draft("P13-quantum-of-4096", "a quantum is farther", &of(tile(1, 0, &[(17, 4096)])));
    list.draft("P13-quantum-of-minus-4097", "a quantum is farther", &of(tile(3, 0, &[(4095, -4097)])));
    list.draft("P13-sum-along-x", "a quantum is farther", &of(tile(1, 1, &[(0, 4095), (9, 1), (10, -1)])));
    list.draft("P13-sum-along-y", "a quantum is farther", &of(tile(2, 2, &[(0, -4096), (64, -1)])));
    list.draft("P13-sum-along-z", "a quantum is farther", &of(tile(3, 3, &[(31, 4000), (543, 96)])));
    list.draft(
        "P13-sum-that-comes-back-modulo-2^16",
        "a quantum is farther",
        &of(tile(1, 1, &[(3, 32_767), (4, 32_767), (5, 2)])),
    );
    list.draft("P13-quantum-beyond-the-array", "a quantum is farther", &of(tile(1, 0, &[(40, -32_768)])));
    let (excepted, dims) = tile(3, 0, &[(0, 5000)]);
    let mut masks = [Plane::default(); 4];
    (masks[0].mode, masks[0].words[0]) = (2, 1);
    list.draft(
        "P13-quantum-where-an-exception-is",
        "a quantum is farther",
        &of((excepted.except(masks, || 0, true), dims)),
    );
    // Map 1: zeros but for one integer.
    let map_1 = |size: usize, i: usize, m: i64| {
        let lengths = Lengths::new(9, 8 * size as u32).power(0);
        let at = move |k: usize, l: u32, bit: u32| place(1, k, l as usize, bit as usize);
        Tile::wide(2, 0, lengths).saying(1, |k, l, bit| if at(k, l, bit) == i { m } else { 0 })
    };
    let says = "an integer of map 1 that no mantissa holds";
    list.draft("P13-integer-of-2^23-of-map-1", says, &line(map_1(4, 17, 1 << 23).payload(4)));
    list.draft("P13-integer-below-minus-2^23-of-map-1", says, &line(map_1(4, 17, (-1 << 23) - 1).payload(4)));
    let f64s = |m: i64| frame(9, 0.0, F64, &[40], &[map_1(8, 17, m).payload(8)]);
    list.draft("P13-integer-of-2^52-of-map-1", says, &f64s(1 << 52));
    list.draft("P13-integer-below-minus-2^52-of-map-1", says, &f64s((-1 << 52) - 1));
    list.draft("P13-integer-of-map-1-beyond-the-array", says, &line(map_1(4, 40, 1 << 30).payload(4)));
    let masked = map_1(4, 0, 1 << 30).except(masks, || 0, true);
    list.draft("P13-integer-of-map-1-where-an-exception-is", says, &line(masked.payload(4)));
    // A tile of nothing else, under a bound.
    let same = |kind: u32, size: usize, m: i64| {
        let lengths = Lengths { bins: [0, 1, 2, 3, 4, 5, 6, 7], ..Lengths::new(0, 0).power(0) };
        let tile = Tile { base: m, ..Tile::wide(2, 0, lengths) };
        frame(1, 1.0, kind, &[40], &[tile.payload(size)])
    };
    list.draft("P13-tile-of-2^23-of-map-1", says, &same(F32, 4, 1 << 23));
    list.draft("P13-tile-of-minus-2^52-less-1-of-map-1", says, &same(F64, 8, (-1 << 52) - 1));
}

/// P14 to P16.
pub fn fields(list: &mut List) {
    let of = |kind: u32, class: u32, lengths: Lengths| {
        let size = if kind & 0x80 == 0 { 4 } else { 8 };
        let mode = if kind == I32 { 9 } else { 1 };
        frame(mode, if mode == 9 { 0.0 } else { 0.5 }, kind, &[40], &[Tile::wide(class, 0, lengths).payload(size)])
    };
    let of_length = |highest: u32| Lengths::new(63, highest);
    list.draft("P14-wide-quanta-of-33-bits", "lengths up to 33 before 0 zeros", &of(F32, 1, of_length(33)));
    list.draft(
        "P14-bits-of-20-bits-and-13-zeros",
        "lengths up to 20 before 13 zeros",
        &of(F32, 2, of_length(20).zeros(13)),
    );
    list.draft("P14-wide-quanta-of-127-bits", "lengths up to 127 before 0 zeros", &of(F64, 1, of_length(127)));
    list.draft(
        "P14-bits-of-2-bits-and-63-zeros",
        "lengths up to 2 before 63 zeros",
        &of(F64, 2, of_length(2).zeros(63)),
    );
    list.draft("P14-wide-quanta-of-32-zeros", "lengths up to 0 before 32 zeros", &of(F32, 1, of_length(0).zeros(32)));
    list.draft("P14-integers-of-32-zeros", "lengths up to 0 before 32 zeros", &of(I32, 2, of_length(0).zeros(32)));

    // Bin 2 is beyond T, and with L = 0 bin 1 is bin 0.
    let empty = |low: u32, bin: u32| Lengths { bins: [0, 0, 0, bin, 0, 0, 0, 0], ..Lengths::new(low, 9) };
    let one = |class: u32, lengths: Lengths| {
        let last = |k: usize, p: usize| match (k, p) {
            (3, 0 | 1) => {
                let mut words = [0; 32];
                words[31] = 1 << 31;
                Plane { mode: 2, words, loose: 0 }
            }
            _ => Plane::default(),
        };
        line(Tile::wide(class, 0, lengths).with(last).payload(4))
    };
    list.draft("P14-number-of-a-bin-beyond-T", "a bin that holds no length", &one(1, empty(20, 2)));
    list.draft("P14-number-of-bin-1-with-L-of-0", "a bin that holds no length", &one(2, empty(0, 1)));

    list.draft(
        "P15-map-1-of-wide-quanta",
        "integers times 2^0 in class Wide, float true",
        &of(F32, 1, of_length(9).power(0)),
    );
    list.draft(
        "P15-map-1-of-integers",
        "integers times 2^0 in class Bits, float false",
        &of(I32, 2, of_length(9).power(0)),
    );
    list.draft(
        "P15-power-below-2^-126",
        "integers times 2^-127 in class Bits, float true",
        &of(F32, 2, of_length(9).power(-127)),
    );
    list.draft(
        "P15-power-above-2^127",
        "integers times 2^128 in class Bits, float true",
        &of(F32, 2, of_length(9).power(128)),
    );
    list.draft(
        "P15-power-below-2^-1022",
        "integers times 2^-1023 in class Bits, float true",
        &of(F64, 2, of_length(9).power(-1023)),
    );
    list.draft(
        "P15-power-above-2^1023",
        "integers times 2^1024 in class Bits, float true",
        &of(F64, 2, of_length(9).power(1024)),
    );
    list.draft("P15-map-0-with-a-power", "2^1 in map 0", &flipped_behind(&wide(2), [1 << 20, 0]));
    list.draft("P15-wide-quanta-with-a-power", "2^-1 in map 0", &flipped_behind(&wide(1), [0xFFF << 20, 0]));

    let bit = |class: u32, block: usize, bit: u32| {
        changed(&wide(class), |p| *p.bits[block].last_mut().expect("fields") |= 1 << bit)
    };
    list.draft("P16-bit-behind-the-fields-of-a-block", "fields 0x00000355 behind", &bit(1, 0, 9));
    list.draft("P16-last-bit-behind-the-fields-of-a-block", "fields 0x80000155 behind", &bit(2, 0, 31));
    list.draft("P16-bit-behind-the-last-field", "fields 0x00000355 behind", &bit(2, 2, 9));
}
