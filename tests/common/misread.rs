// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors that no writer makes, one for each way in which the documents were once misread while all other vectors came
//! out right: each decodes to other values, or is refused, where it is read in that way.

use super::by_hand::{bytes_frame, fixed_width, le, scaled_codes, scaled_head, without_codebook};
use super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::frames;
use super::generate::Random;
use super::planes;

const F16: u32 = 0x0A05_4021;
const BFLOAT16: u32 = 0x0708_4021;
const I16: u32 = 0x4020;
const U8: u32 = 0x0010;

/// The frame of a case of one of these names.
pub fn frame(codec: &str, name: &str, random: &mut Random, dims: &[u32]) -> Option<Vec<u8>> {
    let draft = match (codec, name) {
        ("lorenzo", "f16-ends") => of_16_bits(&ends_of_16_bits(dims), F16),
        ("lorenzo", "bfloat16be-ends") => of_16_bits(&ends_of_16_bits(dims), BFLOAT16 | BIG_ENDIAN),
        ("lorenzo", "f32-base-beside-masks") => base_beside_masks(random, dims),
        ("lorenzo", "f32-subnormal-base") => subnormal_base(4, dims),
        ("lorenzo", "f64-subnormal-base") => subnormal_base(8, dims),
        ("lorenzo", name) if name.starts_with("f64-pw-rel-factor") => factor(name, dims),
        ("lorenzo", "f32-interpolated-sums-beyond-32-bits") => interpolated_sums(dims),
        ("lorenzo", "f32-run-up-to-the-end") => run_up_to_the_end(dims),
        ("planes", "f32-wide-halves-overflow") => {
            // Of the same words without halves: q times the step is infinite, q times half of it is not.
            let tile = planes::Tile::wide(1, 0, planes::Lengths::whole(32)).fields(|_, _, _| random.bits());
            let mut draft = planes::frame(1, planes::by_hand::bound_of_step(100), F32, dims, &[tile.payload(4)]);
            draft.sections[1][0] |= 1 << 6;
            draft
        }
        (_, name) if name.ends_with("rank-0") => rank_0(codec),
        ("planes", "i16be-sums-beyond-the-type") => short_integers(I16 | BIG_ENDIAN, random, dims),
        ("planes", "u8-sums-beyond-the-type") => short_integers(U8, random, dims),
        ("bytes", "elements-behind-the-last-group") => elements_left(),
        ("scaled", name) => scaled(name, random, dims)?,
        _ => return None,
    };
    Some(draft.frame())
}

/// A frame of f32 as one of a type of 16 bits with the same sections.
fn of_16_bits(frame: &[u8], kind: u32) -> Draft {
    let of = Draft::of(frame);
    Draft { kind, raw_len: of.raw_len / 2, ..of }
}

/// Both signs of numbers of f32 around those of 16 bits: at the largest and above it, at ties, among subnormal numbers
/// and below, and NaN whose upper bits are 0.
fn ends_of_16_bits(dims: &[u32]) -> Vec<u8> {
    let around = |x: f32| [x.next_down(), x, x.next_up()];
    let of_f16 = [65504.0, 65519.996, 65520.0, 65536.0, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0];
    let below = [-14, -24, -25].map(|e| 2f32.powi(e));
    let ties = [3.0 * 2f32.powi(-25), 1023.5 * 2f32.powi(-24)];
    let of_f16: Vec<u32> = of_f16.into_iter().chain(below).chain(ties).flat_map(around).map(f32::to_bits).collect();
    let of_bfloat16 = [0x7F7F_7FFF, 0x7F7F_8000, 0x7F7F_FFFF, 0x0000_8000, 0x0000_8001, 0x0001_8000, 0x007F_8000];
    let subnormal = [0, 1, 0x0000_7FFF, 0x0040_0000, 0x007F_FFFF, 0x0080_0000];
    let odd = [0x7F80_0000, 0x7F80_0001, 0x7F80_1FFF, 0x7F80_2000, 0x7F80_FFFF, 0x7F81_0000, 0x7FC0_0001];
    let all = of_f16.into_iter().chain(of_bfloat16).chain(subnormal).chain(odd).flat_map(|x| [x, x | 1 << 31]);
    let values: Vec<u32> = all.collect();
    assert_eq!(values.len() as u32, dims[0]);
    let mut p = without_codebook(4, 1, 0.5, dims);
    p.kinds.push(0x30);
    p.payloads.push(le(&values));
    p.frame()
}

/// Masks and records, whose values have no base, beside residuals, which have.
fn base_beside_masks(random: &mut Random, dims: &[u32]) -> Draft {
    let mut p = without_codebook(4, 1, 0.25, dims);
    p.head.extend(1e6f32.to_le_bytes());
    for (k, &n) in p.tiles.iter().enumerate() {
        p.kinds.push([0x63, 0x40, 0x61, 0x62][k % 4]);
        let mask = frames::mask(n, false, 4, random);
        let residuals = if k % 4 == 1 { Vec::new() } else { fixed_width(n, 3, || random.bits()) };
        p.payloads.push([mask, residuals].concat());
    }
    Draft::of(&p.frame())
}

/// The smallest base: quanta of 0 are that number.
fn subnormal_base(size: usize, dims: &[u32]) -> Draft {
    let mut p = without_codebook(size, 1, 0.5, dims);
    p.head.extend(&1u64.to_le_bytes()[..size]);
    p.kinds.push(0x20);
    let mut z = 0;
    p.payloads.push(fixed_width(p.tiles[0], 2, || {
        z += 1;
        z % 3
    }));
    Draft::of(&p.frame())
}

/// Bounds whose product with 2^53 is infinite, so that D is 2^64 - 1; 0, so that it is 1; above 2^64; above 2^63.
fn factor(name: &str, dims: &[u32]) -> Draft {
    let bound = match name.trim_start_matches("f64-pw-rel-factor-") {
        "of-infinity" => 1e300,
        "of-0" => 0.0,
        "above-64-bits" => 3000.0,
        "of-64-bits" => 1500.0,
        _ => panic!("{name} is not made by hand"),
    };
    let mut p = without_codebook(8, 3, bound, dims);
    p.kinds.push(0x21);
    let mut z = 0;
    p.payloads.push(fixed_width(p.tiles[0], 3, || (z = (3 * z + 2) % 7, z).1));
    Draft::of(&p.frame())
}

/// The new point of four has no a; b is 0, c nearly the largest number, d the smallest one: with the weights 1 and -1/3
/// the sum has 33 bits, of which the lowest 32 are added to b.
fn interpolated_sums(dims: &[u32]) -> Draft {
    let mut p = without_codebook(4, 1, 128.5, dims);
    p.kinds.push(0x29);
    let last = i32::MIN;
    let middle = ((43_691 * i64::from(last) + 32_768) >> 16) as i32;
    let steps = [0, last / 256, (i64::from(i32::MAX - 255) - i64::from(middle)) as i32 / 256, 0];
    let mut z = steps.into_iter().map(|d| (d << 1 ^ d >> 31) as u32);
    p.payloads.push(fixed_width(p.tiles[0], 32, || z.next().expect("a residual").into()));
    Draft::of(&p.frame())
}

/// A residual and a run of one zero in turn, whose codewords are 1 and 0: a run ends the tile, and no symbol 0 does.
fn run_up_to_the_end(dims: &[u32]) -> Draft {
    let mut p = without_codebook(4, 1, 0.5, dims);
    let mut lengths = [0u8; 18];
    (lengths[0], lengths[17]) = (1 << 4, 1 << 4);
    p.head = [&[36], &lengths[..]].concat();
    p.kinds.push(0x11);
    p.payloads.push(le(&[0x5555_5555 & ((1 << dims[0]) - 1)]));
    Draft::of(&p.frame())
}

/// One value without extents, which a codec other than `stored` and `bytes` holds.
fn rank_0(codec: &str) -> Draft {
    let (one, value) = (le(&[1]), 2.5f32.to_le_bytes().to_vec());
    let draft = |codec, mode, bound, sections| Draft::new(codec, mode, bound, F32, &[], sections);
    match codec {
        "szx" => draft(1, 1, 0.5, vec![le(&[2]), [&[2, 0, 0, 0], &value[..]].concat()]),
        "lorenzo" => draft(2, 1, 0.5, vec![vec![0], vec![0x30], one, value]),
        "ndzip" => draft(3, 9, 0.0, vec![le(&[1, 1]), value]),
        "planes" => draft(5, 1, 0.5, vec![le(&[2]), [le(&[3]), value].concat()]),
        "scaled" => {
            let head = scaled_head([4, 0, 0], [1, 2.5f32.to_bits().into(), 0, 0, 0, 0]);
            draft(6, 9, 0.0, vec![head, Vec::new(), Vec::new()])
        }
        _ => draft(7, 1, 0.5, vec![vec![4, 0, 0, 0], vec![0x30], le(&[2]), value]),
    }
}

/// Integers of 4 bytes, of which most are none of the type.
fn short_integers(kind: u32, random: &mut Random, dims: &[u32]) -> Draft {
    let words: Vec<u32> = (0..dims[0]).map(|k| random.bits() as u32 >> (k % 24)).collect();
    let of = planes::frame(9, 0.0, I32, dims, &[planes::raw(&le(&words))]);
    Draft { kind, raw_len: of.raw_len / 4 * u64::from(kind >> 4 & 0xFF), ..of }
}

/// 32 elements of 3 bytes in groups of 8, then 5 elements and 2 bytes, in one tile: all of these differ.
fn elements_left() -> Draft {
    let coded: Vec<u8> = [vec![0; 96], (1..=17).collect()].concat();
    bytes_frame(113, 1 << 16 | 3, 300, &[zstd::bulk::compress(&coded, 3).unwrap()])
}

/// Codes of 4 bytes.
fn codes(words: &[i32]) -> Vec<u8> {
    scaled_codes(4, words.iter().flat_map(|w| w.to_le_bytes()).collect())
}

fn scaled(name: &str, random: &mut Random, dims: &[u32]) -> Option<Draft> {
    let low = i32::MIN;
    let n = dims.iter().product::<u32>() as usize;
    let frame =
        |kind: u32, head: Vec<u8>, codes: Vec<u8>| Draft::new(6, 9, 0.0, kind, dims, vec![head, Vec::new(), codes]);
    let some = |random: &mut Random, below: usize| (0..n).map(|_| random.below(below) as i32).collect::<Vec<_>>();
    Some(match name {
        // The difference at 1 is 0, not the step.
        "f32-special-at-1-of-order-2" => {
            let mut all = some(random, 100);
            all[1] = low;
            frame(F32, scaled_head([4, 2, 1], [3, 5, 77, 0, 0, 0xABCD]), codes(&all))
        }
        // No code is the lowest one.
        "i32-sums-that-are-the-special-code" => {
            let mut all = some(random, 100);
            all[..6].copy_from_slice(&[0, 1 << 30, 1 << 30, 7, -7, 1]);
            frame(I32, scaled_head([0, 1, 1], [3, 5, 0, 0, 0, 0xABCD]), codes(&all))
        }
        "f64-subnormal-factor" => {
            let words = (0..n).map(|k| (k as i64 - 3) << (5 * k % 60));
            let head = scaled_head([2, 0, 0], [1, 0, 0, 1, 0, 0]);
            frame(F64, head, scaled_codes(8, words.flat_map(i64::to_le_bytes).collect()))
        }
        "i32-unit-of-33-bits" => {
            frame(I32, scaled_head([0, 0, 0], [1 << 32 | 3, 5, 0, 0, 0, 0]), codes(&some(random, 900)))
        }
        "i32-unit-whose-lowest-bytes-are-0" => {
            frame(I32, scaled_head([0, 0, 0], [1 << 32, 5, 0, 0, 0, 0]), codes(&some(random, 900)))
        }
        "f32-dictionary-as-long-as-the-chunk" => {
            let head = [scaled_head([5, 0, 0], [1, 1 << 29, 9, 0, 0, 0]), codes(&some(random, 1 << 24))].concat();
            frame(F32, head, codes(&some(random, n)))
        }
        _ => return None,
    })
}
