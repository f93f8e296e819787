// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` that no writer makes and every reader must read: what §7 of the document lists as no reason to
//! refuse, and numbers at the ends of what §3 and §5 allow.

use super::super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::super::generate::Random;
use super::random::{self, plane};
use super::{Lengths, Plane, Tile, frame, place, raw};

const U32: u32 = I32 & !(1 << 14);
const I64: u32 = I32 & !0xFF0 | 8 << 4;

/// Bounds whose steps are the largest and smallest that are usable: 2^±100 and 2^±1000.
pub fn bound_of_step(power: i32) -> f64 {
    2f64.powi(power) / 1.9921875
}

/// The frame of a case.
pub fn frame_of(name: &str, random: &mut Random, dims: &[u32]) -> Vec<u8> {
    let made = [quanta, lengths, bits, exceptions].iter().find_map(|group| group(name, random, dims));
    made.unwrap_or_else(|| panic!("planes/{name} is not made by hand")).frame()
}

/// Quanta and steps at the ends of what they may be.
fn quanta(name: &str, random: &mut Random, dims: &[u32]) -> Option<Draft> {
    Some(match name {
        // Planes, ballots, nibbles and bytes of zeros.
        "f32-zeros-that-are-stored" => {
            let zeros = |k: usize, p: usize| {
                let mode = ((k + p) % 3) as u8;
                Plane { mode, words: [0; 32], loose: if mode == 2 { 0x8765_4321 << k } else { 0 } }
            };
            let tile = Tile::quanta(3, [1, 2, 1, 2]).with(zeros).base(-77);
            frame(1, 0.5, F32, dims, &[tile.payload(4)])
        }
        // Quanta from end to end of what class 0 allows, so residuals of 16 bits.
        "f32-quanta-from-end-to-end" => {
            let ends = |random: &mut Random| [-4096, 4095][random.below(2)];
            let tile = |predictor| {
                let v: Vec<i64> = (0..4096).map(|_| ends(random)).collect();
                Tile::quanta(predictor, [2; 4]).meaning(3, &v, |_, _| 1).base((1 << 20) - 1).payload(4)
            };
            frame(1, 0.25, F32, dims, &[2, 3, 1, 0].map(tile))
        }
        "f64be-quanta-from-end-to-end" => {
            let tile = |predictor| {
                let v: Vec<i64> = (0..4096).map(|_| random.below(8192) as i64 - 4096).collect();
                let tile = Tile::quanta(predictor, [2; 4]).meaning(2, &v, |_, p| if p < 8 { 1 } else { 2 });
                tile.base(-(1 << 20)).payload(8)
            };
            frame(2, 1e-3, F64 | BIG_ENDIAN, dims, &[0, 1, 2].map(tile))
        }
        "f64-sums-that-wrap" => {
            let tile = Tile::wide(1, 2, Lengths::whole(64)).fields(|_, _, _| random.bits()).base(-1);
            frame(1, 1e-3, F64, dims, &[tile.payload(8)])
        }
        // Heads alone: every predictor, the base from end to end of its field.
        "f32-heads-alone" => heads(F32, dims),
        "f64-heads-alone" => heads(F64, dims),
        // Quanta of 32 and 64 bits: rounded to the type, multiplied beyond its largest number.
        "f32-wide-quanta-overflow" => {
            let tile = Tile::wide(1, 2, Lengths::whole(32)).fields(|_, _, _| random.bits()).base(i32::MAX.into());
            frame(1, bound_of_step(100), F32, dims, &[tile.payload(4)])
        }
        "f64-wide-quanta-overflow" => {
            let mut d = || random.bits() as i64 >> random.below(60);
            let tile = Tile::wide(1, 0, Lengths::new(40, 64)).saying(1, |_, _, _| d());
            frame(4, bound_of_step(1000), F64, dims, &[tile.payload(8)])
        }
        // Steps in f64 that are not usable and, rounded to f32, are.
        "f32-step-that-rounds-down" => {
            let bound = bound_of_step(100).next_up();
            assert!(bound * 1.9921875 > 2f64.powi(100));
            stairs(bound, dims)
        }
        "f32-step-that-rounds-up" => {
            let bound = bound_of_step(-100).next_down();
            assert!(bound * 1.9921875 < 2f64.powi(-100));
            stairs(bound, dims)
        }
        "f32-smallest-step" => small_step(F32, random, dims),
        "f64be-smallest-step" => small_step(F64 | BIG_ENDIAN, random, dims),
        _ => return None,
    })
}

/// Fields of every length, and lengths that no writer has.
fn lengths(name: &str, random: &mut Random, dims: &[u32]) -> Option<Draft> {
    Some(match name {
        // Residuals that are mostly short, for every kind of L and T.
        "f32-every-length" => frame(1, 0.125, F32, dims, &every_lengths(1, 4, random)),
        "f64be-every-length" => frame(2, 0.125, F64 | BIG_ENDIAN, dims, &every_lengths(1, 8, random)),
        "i32-every-length" => frame(9, 0.0, I32, dims, &every_lengths(2, 4, random)),
        "u32be-every-length" => frame(9, 0.0, U32 | BIG_ENDIAN, dims, &every_lengths(2, 4, random)),
        "f64-bits-of-every-length" => frame(1, 0.125, F64, dims, &every_lengths(2, 8, random)),
        // L beyond T, and so far beyond that sums of it exceed six bits.
        "f32-lengths-below-l" => {
            let tile = |low: u32, random: &mut Random| {
                let lengths = Lengths::new(low, 1 + random.below(5) as u32);
                Tile::wide(2, 1, lengths).with(|_, _| plane(2, random)).fields(|_, _, _| random.bits()).payload(4)
            };
            frame(1, 0.125, F32, dims, &[63, 5, 4, 60, 6].map(|low| tile(low, random)))
        }
        // Fields that say a number which a lower bin holds: 0 in every bit.
        "f32-fields-of-zeros" => {
            let tile = |low: u32, random: &mut Random| {
                Tile::wide(1, 1, Lengths::new(low, 9)).with(|_, _| plane(2, random)).payload(4)
            };
            frame(1, 0.125, F32, dims, &[0, 2, 5, 12].map(|low| tile(low, random)))
        }
        // As many zeros below as there may be, and numbers that fill what is left.
        "f32-zeros-below" => {
            frame(1, 0.125, F32, dims, &[(31, 1), (31, 0), (16, 16), (1, 31)].map(|z| zeros_below(4, z, random)))
        }
        "i64be-zeros-below" => {
            let tiles = [(63, 1), (63, 0), (32, 32), (57, 7)].map(|z| zeros_below(8, z, random));
            frame(9, 0.0, I64 | BIG_ENDIAN, dims, &tiles)
        }
        _ => return None,
    })
}

/// Bits: nothing but a base, powers of two, tiles cut by the array.
fn bits(name: &str, random: &mut Random, dims: &[u32]) -> Option<Draft> {
    let bits = |n: usize, random: &mut Random| (0..n).map(|_| random.bits() as u8).collect::<Vec<u8>>();
    Some(match name {
        // No field has a bit: only the base is left, or the mask.
        "f32-no-fields" => {
            let masks =
                [0, 2, 2, 1].map(|mode| Plane { mode, words: [if mode == 0 { 0 } else { 0x10 }; 32], loose: 0 });
            let special = || 0x7FC0_0001;
            let tiles = [
                Tile::wide(1, 1, Lengths::new(0, 0)).base(-9),
                Tile::wide(2, 1, Lengths::new(5, 0)).base(-0x4000_0000),
                Tile::wide(1, 0, Lengths::new(9, 32)).base(5).except(masks, special, true),
                Tile::wide(2, 0, Lengths::new(0, 4)).base(0x3F80_0000).except(masks, special, true),
            ];
            frame(1, 3.0, F32, dims, &tiles.map(|t| t.payload(4)))
        }
        // Integers times a power of two: its ends, products beyond the largest number.
        "f32-powers" => frame(9, 0.0, F32, dims, &[-126, 127, 0, -23].map(|e| powers(e, 4, random))),
        "f64be-powers" => frame(1, 1e-3, F64 | BIG_ENDIAN, dims, &[-1022, 1023, 0, -52].map(|e| powers(e, 8, random))),
        // Modes beside each other that no writer puts there.
        "i32be-every-mode" => {
            let tile = Tile::wide(2, 3, Lengths::new(2, 12)).with(|k, p| plane(((k + p) % 3) as u8, random));
            let tile = tile.fields(|_, _, _| random.bits()).base(1 << 31);
            frame(9, 0.0, I32 | BIG_ENDIAN, dims, &[tile.payload(4)])
        }
        // A tile of each class, all of them cut by the array's ends.
        "f32-every-class" | "f64be-every-class" => {
            let (kind, size) = if name.starts_with("f32") { (F32, 4) } else { (F64 | BIG_ENDIAN, 8) };
            let (rank, values) = random::grid(dims);
            assert_eq!((rank, values.len()), (3, 4));
            let mut tiles: Vec<Vec<u8>> =
                (0..3).map(|c| random::tile(c, 3, size, true, random).payload(size)).collect();
            tiles.insert(2, raw(&bits(values[2] * size, random)));
            frame(2, 1e-4, kind, dims, &tiles)
        }
        // Bits and raw values need no step.
        "f32-bound-of-0" => {
            let tile = Tile::wide(2, 1, Lengths::new(3, 9)).with(|_, p| plane(p as u8 % 3, random)).base(0x3F80_0000);
            frame(2, 0.0, F32, dims, &[tile.payload(4), raw(&bits(4 * 104, random))])
        }
        // Every value is its own place in the tile: 0, 1, 2 ...; with components, in the array that has them first.
        "f32-places-of-rank-1"
        | "f32-places-of-rank-2"
        | "f32-places-of-rank-3"
        | "f32-places-of-components-on-a-line"
        | "f32-places-of-components-in-rows"
        | "f32-places-of-components" => {
            let (rank, _) = random::grid(dims);
            let tile = Tile::quanta(0, [2; 4]).saying(2, |k, l, bit| place(rank, k, l as usize, bit as usize) as i64);
            frame(1, bound_of_step(0), F32, dims, &[tile.payload(4)])
        }
        _ => return None,
    })
}

/// Exceptions of every mode and map.
fn exceptions(name: &str, random: &mut Random, dims: &[u32]) -> Option<Draft> {
    Some(match name {
        // Exceptions among bits, of both maps.
        "f32-bits-with-exceptions" => {
            let masks = [1, 2, 2, 0].map(|mode| plane(mode, random));
            let tile = |lengths: Lengths, random: &mut Random| {
                Tile::wide(2, 1, lengths).with(|_, _| plane(2, random)).fields(|_, _, _| random.bits())
            };
            let tiles = [
                tile(Lengths::new(2, 9), random).base(0x3F80_0000).except(masks, || 0x60AD_78EC, true),
                tile(Lengths::new(1, 9).power(-7), random).base(1000).except(masks, || random.bits(), false),
            ];
            frame(9, 0.0, F32, dims, &tiles.map(|t| t.payload(4)))
        }
        // Masks of every mode, one value each.
        "f32be-exceptions-of-many-values" => {
            let masks = [0, 1, 2, 2].map(|mode| plane(mode, random));
            let tile = Tile::quanta(3, [1, 2, 2, 1]).meaning(3, &random::quanta(random), |k, _| k as u8 % 3);
            frame(1, 1e-2, F32 | BIG_ENDIAN, dims, &[tile.except(masks, || random.bits(), false).payload(4)])
        }
        "f64-exceptions-of-one-value" => {
            let masks = [2, 2, 1, 0].map(|mode| plane(mode, random));
            let tile = Tile::quanta(1, [2, 1, 2, 1]).meaning(1, &random::quanta(random), |_, p| p as u8 % 3);
            let wide = Tile::wide(1, 0, Lengths::new(7, 50)).with(|_, p| plane(p as u8 % 3, random)).base(1 << 60);
            let nan = || 0xFFF8_0000_1234_5678;
            let tiles = [tile.except(masks, nan, true).payload(8), wide.except(masks, nan, true).payload(8)];
            frame(1, 1e-2, F64, dims, &tiles)
        }
        // All 4096 places of a tile whose array has fewer values: those beyond take values, too.
        "f32-4096-exceptions" => {
            let all = [1, 2, 2, 1].map(|mode| Plane { mode, words: [u32::MAX; 32], loose: 0 });
            let tile = Tile::quanta(0, [1; 4]).except(all, || random.bits(), false);
            frame(1, 1.0, F32, dims, &[tile.payload(4)])
        }
        "f64-exceptions-beyond-the-array" => {
            let masks = [0, 1, 2, 2].map(|mode| Plane { mode, words: [if mode > 0 { 0xF0 } else { 0 }; 32], loose: 0 });
            let tile = Tile::wide(1, 1, Lengths::new(1, 20)).with(|_, _| plane(2, random));
            frame(1, 1.0, F64, dims, &[tile.except(masks, || random.bits(), false).payload(8)])
        }
        _ => return None,
    })
}

/// Tiles of one word each.
fn heads(kind: u32, dims: &[u32]) -> Draft {
    let base = [0, -1, 1, (1 << 20) - 1, -(1 << 20), 12_345];
    let (rank, tiles) = random::grid(dims);
    let head = |k: usize| (k as u32 % (rank + 1)) << 2 | (base[k % 6] as u32) << 11;
    frame(1, 0.1, kind, dims, &(0..tiles.len()).map(|k| head(k).to_le_bytes().to_vec()).collect::<Vec<_>>())
}

/// Quanta of every size under the smallest step that is usable.
fn small_step(kind: u32, random: &mut Random, dims: &[u32]) -> Draft {
    let (size, power) = if kind & 0x80 == 0 { (4, -100) } else { (8, -1000) };
    let mut d = || random.bits() as i64 >> (64 - 8 * size + random.below(8 * size));
    let tile = Tile::wide(1, 0, Lengths::new(3, 8 * size as u32)).saying(1, |_, _, _| d());
    frame(1, bound_of_step(power), kind, dims, &[tile.payload(size)])
}

/// The quanta -100 to 99, 4 after 4, under this bound.
fn stairs(bound: f64, dims: &[u32]) -> Draft {
    let v: Vec<i64> = (0..4096).map(|i| i / 4 % 200 - 100).collect();
    frame(1, bound, F32, dims, &[Tile::quanta(0, [1; 4]).meaning(1, &v, |_, _| 0).payload(4)])
}

/// Tiles whose residuals are mostly short, some of any length: L from 0 to beyond T, T from that of few bits to that of
/// the type.
fn every_lengths(class: u32, size: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let tile = |k: usize| {
        let (low, highest) = ([0, 1, 2, 3, 5, 8, 63][k], [7, 9, 8 * size][k % 3]);
        let mut d = || {
            let any = random.below(100) == 0;
            let length = random.below(if any { highest + 1 } else { highest.min(low + 2) });
            if length == 0 { 0 } else { random.bits() as i64 >> (64 - length) }
        };
        let lengths = Lengths::new(low as u32, highest as u32);
        let tile = Tile::wide(class, 0, lengths).saying(k as u8 % 3, |_, _, _| d());
        tile.base(random.bits() as i64).payload(size)
    };
    (0..7).map(tile).collect()
}

/// Residuals with z zeros below and u of T bits, from end to end.
fn zeros_below(size: usize, (z, t): (u32, u32), random: &mut Random) -> Vec<u8> {
    let tile = Tile::wide(2, 1, Lengths::new(t / 2, t).zeros(z)).with(|_, _| plane(2, random));
    tile.fields(|_, _, _| random.bits()).base(-3).payload(size)
}

/// Class 2, map 1. One value in eight is any that a mantissa holds, others are small.
fn powers(e: i32, size: usize, random: &mut Random) -> Vec<u8> {
    let lengths = Lengths::new(9, 8 * size as u32).power(e);
    let most = if size == 4 { 40 } else { 11 };
    let mut d = || random.bits() as i64 >> if random.below(8) == 0 { most } else { 56 };
    Tile::wide(2, 0, lengths).saying(1, |_, _, _| d()).payload(size)
}
