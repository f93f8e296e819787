// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` that every reader must refuse: one or more for each rule of §7 of its document, and for the
//! frame's rules what this codec makes of them.

mod values;

use super::super::draft::{Draft, F32, F64, I32};
use super::super::refused::List;
use super::by_hand::bound_of_step;
use super::{Lengths, Parts, Plane, Tile, frame, raw};

/// A frame with one tile of 40 values along a line.
fn line(payload: Vec<u8>) -> Draft {
    frame(1, 0.5, F32, &[40], &[payload])
}

/// Class 0 with five slices, so that half a word fills their modes up; five nibbles, and seven bytes.
fn quanta() -> Tile {
    let words = |words: &[(usize, u32)]| {
        let mut all = [0; 32];
        words.iter().for_each(|&(lane, word)| all[lane] = word);
        all
    };
    Tile::quanta(0, [1, 2, 1, 1]).with(|k, p| match (k, p) {
        (0, 3) => Plane { mode: 2, words: words(&[(2, 0x100), (31, 1)]), loose: 0 },
        (1, 9) => Plane { mode: 2, words: words(&[(7, 0xFF_FFFF), (9, 2)]), loose: 0 },
        (2, 7) => Plane { mode: 2, words: words(&[(0, 0x8000_0000)]), loose: 0 },
        (3, 0) => Plane { mode: 1, words: [0x0101_0101; 32], loose: 0 },
        _ => Plane::default(),
    })
}

/// With three exceptions in blocks 1 and 3.
fn excepted(tile: Tile, uniform: bool) -> Tile {
    let mut masks = [Plane::default(); 4];
    (masks[1].mode, masks[1].words[4]) = (2, 6);
    (masks[3].mode, masks[3].words[0]) = (2, 1);
    tile.except(masks, || 0x7FC0_0000, uniform)
}

/// Classes 1 and 2: in block 0 33 fields of 9 bits, so 10 words, and in block 2 one.
fn wide(class: u32) -> Tile {
    let mut full = Plane { mode: 1, words: [1; 32], loose: 0 };
    full.words[5] = 3;
    let mut one = Plane { mode: 2, ..Plane::default() };
    one.words[4] = 0x10;
    let planes = |k, p| match (k, p) {
        (0, 0) => full,
        (2, 1) => one,
        _ => Plane::default(),
    };
    Tile::wide(class, 0, Lengths::new(20, 9)).with(planes).fields(|_, _, _| 0x155)
}

/// The tile on a line, its parts changed.
fn changed(tile: &Tile, change: impl FnOnce(&mut Parts)) -> Draft {
    let mut parts = tile.parts(4);
    change(&mut parts);
    line(parts.payload())
}

/// The tile on a line with other bits in its head's first word.
fn flipped(tile: &Tile, bits: u32) -> Draft {
    changed(tile, |p| p.head[0] ^= bits)
}

/// In its words 1 and 2.
fn flipped_behind(tile: &Tile, bits: [u32; 2]) -> Draft {
    changed(tile, |p| {
        p.head[1] ^= bits[0];
        p.head[2] ^= bits[1];
    })
}

pub fn frame_rules(list: &mut List) {
    let good = line(quanta().payload(4));
    let lossless = frame(9, 0.0, F32, &[40], &[wide(2).payload(4)]);
    list.but("F7-planes-in-mode-3", "planes with mode", &good, |d| d.mode = 3);
    list.but("F8-planes-of-rank-9", "rank 9", &good, |d| d.dims = vec![2, 2, 2, 5, 1, 1, 1, 1, 1]);
    let in_rank_9 = frame(1, 0.5, F32, &[2; 9], &[vec![0; 4]]);
    list.draft("F8-planes-of-512-values-in-rank-9", "rank 9", &in_rank_9);
    list.but("F9-planes-of-integers-in-mode-1", "Integer", &good, |d| d.kind = I32);
    list.but("F9-planes-without-sign", "signed: false", &good, |d| d.kind &= !(1 << 14));
    list.but("F9-planes-with-5-exponent-bits", "exponent_bits: 5", &good, |d| d.kind = F32 - (3 << 16));
    list.but("F9-planes-of-bytes-in-mode-9", "Bytes", &lossless, |d| d.kind |= 15);
    list.but("F9-planes-of-2-byte-floats", "size: 2", &lossless, |d| (d.kind, d.dims[0]) = (0x4021, 80));
    list.but("F10-planes-in-mode-9-with-a-bound", "mode 9 with bound 5e-1", &lossless, |d| d.bound = 0.5f64.to_bits());
    list.but("F11-planes-with-one-section", "1 sections", &good, |d| drop(d.sections.pop()));
    list.but("F11-planes-with-three-sections", "3 sections", &good, |d| d.sections.push(Vec::new()));
    list.but("F14-planes-with-other-extents", "raw length 160", &good, |d| d.dims[0] = 41);
}

pub fn rules(list: &mut List) {
    places(list);
    heads(list);
    modes(list);
    lengths(list);
    fields(list);
    filling(list);
    values::exceptions(list);
    values::sums(list);
    values::fields(list);
}

/// P1 to P4.
fn places(list: &mut List) {
    let good = line(quanta().payload(4));
    let table =
        |ends: &'static [u32]| move |d: &mut Draft| d.sections[0] = ends.iter().flat_map(|e| e.to_le_bytes()).collect();
    list.but("P1-table-without-entry", "table has 0 bytes where 4 are needed", &good, table(&[]));
    list.but("P1-table-of-two-tiles", "table has 8 bytes where 4 are needed", &good, |d| {
        d.sections[0].extend_from_within(..)
    });
    list.but("P1-half-an-entry", "table has 2 bytes where 4 are needed", &good, |d| d.sections[0].truncate(2));
    // Tiles of grid rank 2 hold 16384 values: more than three times 165 x 33, not more than three times 166 x 33.
    let head = vec![0; 4];
    let heads = |dims: &[u32], tiles: usize| frame(1, 0.5, F32, dims, &vec![head.clone(); tiles]);
    list.draft("P1-tiles-of-rank-2-for-a-line", "table has 16 bytes where 8 are needed", &heads(&[165, 33], 4));
    list.draft("P1-tiles-of-a-line-for-rank-2", "table has 8 bytes where 16 are needed", &heads(&[166, 33], 2));
    // With the two components apart four tiles of grid rank 3, with the last axis last three of a line.
    list.draft("P1-components-not-apart", "table has 12 bytes where 16 are needed", &heads(&[16, 16, 17, 2], 3));
    let huge = Draft::new(5, 1, 1e-3, F64, &[100_000_000, 2], vec![Vec::new(); 2]);
    list.bytes("F15-planes-of-two-hundred-million-values", "caller", 1 << 20, huge.frame());
    let words = good.sections[1].len() as u32 / 4;
    list.but("P2-end-beyond-the-payload", "tile 0 ends at 172, after 0, in 168 bytes", &good, |d| {
        d.sections[0] = (words + 1).to_le_bytes().into()
    });
    list.but("P2-end-at-16-GiB", "tile 0 ends at 17179869180, after 0, in 168 bytes", &good, table(&[u32::MAX]));
    // A whole tile of four words, of which the last three are also the next tile's.
    let two = frame(1, 0.5, F32, &[4097], &[Tile::wide(1, 0, Lengths::new(20, 9)).payload(4), Vec::new()]);
    list.but("P2-ends-that-fall", "tile 1 ends at 4, after 16, in 16 bytes", &two, table(&[4, 1]));
    list.but("P3-word-behind-the-last-end", "the last tile ends at 168, the payload at 172", &good, |d| {
        d.sections[1].extend([0; 4])
    });
    list.but("P3-byte-behind-the-last-end", "the last tile ends at 168, the payload at 169", &good, |d| {
        d.sections[1].push(0)
    });
    list.draft("P4-tile-of-no-words", "tile 0: no words", &line(Vec::new()));
    list.draft("P4-last-tile-of-no-words", "tile 1: no words", &frame(1, 0.5, F32, &[4097], &[head, Vec::new()]));
}

/// P5 and P6.
fn heads(list: &mut List) {
    list.draft("P5-head-alone-with-predictor-2-on-a-line", "predictor 2", &line(vec![8, 0, 0, 0]));
    list.draft("P5-quanta-with-predictor-2-on-a-line", "predictor 2", &flipped(&quanta(), 2 << 2));
    list.draft("P5-wide-quanta-with-predictor-3-on-a-line", "predictor 3", &flipped(&wide(1), 3 << 2));
    list.draft("P5-bits-with-predictor-2-on-a-line", "predictor 2", &flipped(&wide(2), 2 << 2));
    list.draft("P5-predictor-3-on-a-plane", "predictor 3", &frame(1, 0.5, F32, &[128, 32], &[vec![12, 0, 0, 0]]));
    list.draft("P5-head-alone-with-two-slices", "head 0x00000080 alone", &line(vec![0x80, 0, 0, 0]));
    list.draft("P5-head-alone-with-bit-8", "head 0x00000100: a bit", &line(vec![0, 1, 0, 0]));
    list.draft("P5-head-alone-with-exceptions", "head 0x00000200 alone", &line(vec![0, 2, 0, 0]));
    list.draft("P5-head-alone-with-uniform-exceptions", "head 0x00000600 alone", &line(vec![0, 6, 0, 0]));
    list.draft("P5-quanta-with-bit-8", "head 0x00000120: a bit", &flipped(&quanta(), 1 << 8));
    list.draft("P5-quanta-uniform-without-exceptions", "uniform exceptions, but none", &flipped(&quanta(), 1 << 10));
    list.draft(
        "P5-wide-quanta-with-bit-19-of-word-1",
        "head 0x00800101: a bit",
        &flipped_behind(&wide(1), [1 << 19, 0]),
    );
    list.draft(
        "P5-wide-quanta-with-bit-26-of-word-2",
        "head 0x00800101: a bit",
        &flipped_behind(&wide(1), [0, 1 << 26]),
    );
    list.draft(
        "P5-wide-quanta-uniform-without-exceptions",
        "head 0x00800101: uniform exceptions, but none",
        &flipped_behind(&wide(1), [0, 1 << 25]),
    );
    list.draft("P5-wide-quanta-with-bit-5", "head 0x00800121: a bit", &flipped(&wide(1), 1 << 5));
    list.draft("P5-bits-with-bit-6", "head 0x00800142: a bit", &flipped(&wide(2), 1 << 6));
    list.draft("P5-bits-with-bit-7", "head 0x00800182: a bit", &flipped(&wide(2), 1 << 7));
    list.draft("P5-bits-with-bit-19-of-word-1", "head 0x00800102: a bit", &flipped_behind(&wide(2), [1 << 19, 0]));
    list.draft("P5-bits-with-bit-31-of-word-2", "head 0x00800102: a bit", &flipped_behind(&wide(2), [0, 1 << 31]));
    list.draft(
        "P5-bits-uniform-without-exceptions",
        "head 0x00800102: uniform exceptions, but none",
        &flipped_behind(&wide(2), [0, 1 << 25]),
    );
    let good = line(raw(&[0; 160]));
    list.but("P5-raw-with-a-predictor", "head 0x00000007: a bit", &good, |d| d.sections[1][0] = 7);
    list.but("P5-raw-with-bit-4", "head 0x00000013: a bit", &good, |d| d.sections[1][0] = 0x13);
    list.but("P5-raw-with-bit-8", "head 0x00000103: a bit", &good, |d| d.sections[1][1] = 1);
    list.but("P5-raw-with-exceptions", "head 0x00000203: a bit", &good, |d| d.sections[1][1] = 2);
    list.but("P5-raw-with-uniform-exceptions", "head 0x00000603: a bit", &good, |d| d.sections[1][1] = 6);
    list.but("P5-raw-with-bit-16", "head 0x00010003: a bit", &good, |d| d.sections[1][2] = 1);
    list.but("P5-raw-with-bit-31", "head 0x80000003: a bit", &good, |d| d.sections[1][3] = 0x80);

    let with = |payload: Vec<u8>, mode: u8, bound: f64| frame(mode, bound, F32, &[40], &[payload]);
    list.draft("P6-head-alone-in-mode-9", "class 0 without a usable step", &with(vec![0; 4], 9, 0.0));
    list.draft("P6-quanta-in-mode-9", "class 0 without a usable step", &with(quanta().payload(4), 9, 0.0));
    list.draft("P6-wide-quanta-in-mode-9", "class 1 without a usable step", &with(wide(1).payload(4), 9, 0.0));
    list.draft("P6-quanta-with-a-bound-of-0", "class 0 without a usable step", &with(quanta().payload(4), 2, 0.0));
    list.draft("P6-wide-quanta-with-a-bound-of-0", "class 1 without a usable step", &with(wide(1).payload(4), 4, 0.0));
    // Neighbours of 2^±100, as the step is a number of the type.
    let (low, high) = (bound_of_step(-100), bound_of_step(100));
    list.draft(
        "P6-step-below-2^-100",
        "class 0 without a usable step",
        &with(quanta().payload(4), 1, low * (1.0 - 2f64.powi(-24))),
    );
    list.draft(
        "P6-step-above-2^100",
        "class 0 without a usable step",
        &with(quanta().payload(4), 1, high * (1.0 + 2f64.powi(-23))),
    );
    list.draft("P6-step-that-is-infinite", "class 1 without a usable step", &with(wide(1).payload(4), 1, f64::MAX));
    let wide64 = |bound: f64| frame(1, bound, F64, &[40], &[wide(1).payload(8)]);
    list.draft(
        "P6-step-below-2^-1000",
        "class 1 without a usable step",
        &wide64(bound_of_step(-1000) * (1.0 - f64::EPSILON)),
    );
    list.draft(
        "P6-step-above-2^1000",
        "class 1 without a usable step",
        &wide64(bound_of_step(1000) * (1.0 + 2.0 * f64::EPSILON)),
    );
}

/// P7 to P9.
fn modes(list: &mut List) {
    let third = |tile: &Tile, block: usize, p: usize| {
        let mut tile = tile.clone();
        tile.blocks[block].planes[p] = Plane { mode: 3, ..Plane::default() };
        line(tile.payload(4))
    };
    list.draft("P7-quanta-with-mode-3", "a plane has mode 3", &third(&quanta(), 1, 3));
    list.draft("P7-quanta-with-signs-in-mode-3", "a plane has mode 3", &third(&quanta(), 2, 7));
    list.draft("P7-wide-quanta-with-mode-3", "a plane has mode 3", &third(&wide(1), 3, 1));
    list.draft("P7-bits-with-mode-3", "a plane has mode 3", &third(&wide(2), 0, 2));
    let third_mask = |tile: Tile, uniform: bool| {
        let mut tile = excepted(tile, uniform);
        tile.blocks[0].mask.mode = 3;
        line(tile.payload(4))
    };
    list.draft("P7-quanta-with-a-mask-in-mode-3", "a mask has mode 3", &third_mask(quanta(), true));
    list.draft("P7-bits-with-a-mask-in-mode-3", "a mask has mode 3", &third_mask(wide(2), false));
    let tile = excepted(quanta(), true);
    let mask = |from: u32, to: u32| changed(&tile, |p| p.mask = p.mask.map(|m| m & !from | to));
    list.draft("P8-mask-with-bit-21", "masks is 0x00200388", &mask(0, 1 << 21));
    list.draft("P8-mask-with-bit-31", "masks is 0x80000388", &mask(0, 1 << 31));
    list.draft("P8-no-exceptions", "masks is 0x00000088", &mask(0x1F_FF00, 0));
    let mut unmarked = tile.clone();
    unmarked.blocks.iter_mut().for_each(|b| b.mask = Plane::default());
    list.draft("P8-no-exceptions-and-no-marks", "masks is 0x00000000", &{
        changed(&unmarked, |p| {
            p.head[0] ^= 1 << 10;
            p.values.clear();
        })
    });
    list.draft("P8-4097-exceptions", "masks is 0x00100188", &mask(0x1F_FF00, 4097 << 8));
    list.draft("P8-8191-exceptions", "masks is 0x001fff88", &mask(0, 0x1F_FF00));
    let bits = |to: u32| changed(&excepted(wide(2), true), |p| p.mask = Some(to));
    list.draft("P8-bits-with-bit-31-of-the-mask", "masks is 0x80000388", &bits(0x8000_0388));
    list.draft("P8-bits-without-exceptions", "masks is 0x00000088", &bits(0x88));
    list.draft("P9-bit-behind-the-modes", "modes 0x0001 behind", &changed(&quanta(), |p| p.modes.push(1)));
    list.draft("P9-last-bit-behind-the-modes", "modes 0x8000 behind", &changed(&quanta(), |p| p.modes.push(1 << 15)));
}

/// The tile's first words, in a frame of one line.
fn short(words: usize, tile: &Tile) -> Draft {
    let mut payload = tile.payload(4);
    payload.truncate(4 * words);
    line(payload)
}

/// P10: parts that a payload is too short or too long for.
fn lengths(list: &mut List) {
    let good = quanta();
    let whole = good.payload(4).len() / 4;
    list.draft("P10-wide-quanta-in-one-word", "head 0x00800101: 1 words where the head has 3", &short(1, &wide(1)));
    list.draft("P10-bits-in-two-words", "head 0x00800102: 2 words where the head has 3", &short(2, &wide(2)));
    list.draft("P10-wide-quanta-without-base", "1 words of the base where 0 are left", &short(3, &wide(1)));
    list.draft("P10-bits-without-base", "1 words of the base where 0 are left", &short(3, &wide(2)));
    list.draft("P10-half-a-base", "2 words of the base where 1 are left", &{
        let mut payload = wide(2).payload(8);
        payload.truncate(16);
        frame(9, 0.0, F64, &[40], &[payload])
    });
    list.draft(
        "P10-exceptions-without-mask",
        "1 words of the masks where 0 are left",
        &short(4, &excepted(wide(1), true)),
    );
    list.draft("P10-cut-modes", "3 words of modes where 2 are left", &short(3, &good));
    list.draft("P10-no-ballots", "3 words of ballots where 0 are left", &short(4, &good));
    list.draft("P10-no-nibbles", "1 words of nibbles where 0 are left", &short(7, &good));
    list.draft("P10-no-words", "32 words of full planes where 0 are left", &short(8, &good));
    list.draft("P10-no-bytes", "2 words of bytes where 1 are left", &short(whole - 1, &good));
    list.draft(
        "P10-no-values",
        "1 words of values where 0 are left",
        &short(excepted(good.clone(), true).payload(4).len() / 4 - 1, &excepted(good.clone(), true)),
    );
    list.draft("P10-word-too-many", "43 words, its parts have 42", &{
        let mut payload = good.payload(4);
        payload.extend([0; 4]);
        line(payload)
    });
    list.draft(
        "P10-plane-that-is-not-there",
        "64 words of full planes where 34 are left",
        &changed(&good, |p| p.modes[4] |= 1 << 14),
    );
    list.draft(
        "P10-plane-that-no-mode-names",
        "42 words, its parts have 10",
        &changed(&good, |p| {
            p.modes[4] = 0;
            p.full.fill(0);
        }),
    );
}

/// P10: fields, planes and values whose numbers differ from what the tile says.
fn fields(list: &mut List) {
    let good = quanta();
    let whole = wide(2).payload(4).len() / 4;
    list.draft(
        "P10-class-plane-that-is-not-there",
        "64 words of full planes where 44 are left",
        &flipped(&wide(2), 1 << 16),
    );
    list.draft("P10-wide-quanta-without-fields", "11 words of bits where 0 are left", &short(whole - 11, &wide(1)));
    list.draft(
        "P10-bits-without-the-fields-of-a-block",
        "11 words of bits where 10 are left",
        &short(whole - 1, &wide(2)),
    );
    list.draft(
        "P10-word-behind-the-fields",
        "51 words, its parts have 50",
        &changed(&wide(1), |p| p.bits.push(vec![0])),
    );
    list.draft(
        "P10-fields-of-a-bit-more",
        "12 words of bits where 11 are left",
        &flipped_behind(&wide(1), [(9 ^ 10) << 6, 0]),
    );
    list.draft(
        "P10-fields-of-a-class-without-bits",
        "50 words, its parts have 40",
        &flipped_behind(&wide(2).fields(|_, _, _| 0), [0, 1 << 3]),
    );
    list.draft(
        "P10-class-plane-with-a-value-more",
        "28 words of bits where 11 are left",
        &changed(&wide(2), |p| p.full[..32].fill(7)),
    );
    list.draft(
        "P10-ballot-of-a-lane-more",
        "3 words of bytes where 1 are left",
        &changed(&good, |p| p.ballots[1] |= 0x1FFF),
    );
    // The fourth byte is in the word, two more are not.
    list.draft(
        "P10-nibble-of-two-bytes-more",
        "3 words of bytes where 2 are left",
        &changed(&good, |p| p.nibbles[0] = 7),
    );
    list.draft(
        "P10-value-too-few",
        "3 words of values where 2 are left",
        &changed(&excepted(good.clone(), false), |p| p.values.truncate(8)),
    );
    list.draft(
        "P10-value-too-many",
        "50 words, its parts have 49",
        &changed(&excepted(good.clone(), false), |p| p.values.extend([0; 4])),
    );
    list.draft(
        "P10-uniform-with-three-values",
        "49 words, its parts have 47",
        &flipped(&excepted(good.clone(), false), 1 << 10),
    );
    list.draft("P10-raw-value-too-few", "raw, 40 words where 41 are needed", &line(raw(&[0; 156])));
    list.draft("P10-raw-value-too-many", "raw, 42 words where 41 are needed", &line(raw(&[0; 164])));
    list.draft("P10-raw-values-beyond-the-array", "raw, 4097 words where 41 are needed", &line(raw(&[0; 4 * 4096])));
    list.draft("P10-raw-head-alone", "raw, 1 words where 41 are needed", &line(raw(&[])));
}

/// P11.
fn filling(list: &mut List) {
    let good = quanta();
    list.draft(
        "P11-half-byte-behind-the-nibbles",
        "nibbles 0x00181712 behind the last of 5",
        &changed(&good, |p| p.nibbles.push(1)),
    );
    list.draft(
        "P11-last-half-byte-behind-the-nibbles",
        "nibbles 0x80081712 behind",
        &changed(&good, |p| p.nibbles.extend([0, 0, 8])),
    );
    list.draft("P11-byte-behind-the-bytes", "filling [128] behind", &changed(&good, |p| p.bytes.push(0x80)));
    list.draft("P11-bytes-that-no-nibble-names", "filling [128, 0] behind", &changed(&good, |p| p.nibbles[0] = 0));

    list.draft(
        "P11-half-byte-behind-the-nibbles-of-bits",
        "nibbles 0x00000011 behind",
        &changed(&wide(2), |p| p.nibbles.push(1)),
    );
    list.draft(
        "P11-byte-behind-the-bytes-of-bits",
        "filling [1, 0, 0] behind 1 bytes",
        &changed(&wide(2), |p| p.bytes.push(1)),
    );
}
