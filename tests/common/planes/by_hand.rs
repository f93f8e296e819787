// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` that no writer makes and every reader must read: what §7 of the document lists as no reason to refuse, and
//! numbers at the ends of what §3 and §5 allow.

use super::super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::super::generate::Random;
use super::random::{self, plane};
use super::{Plane, Tile, frame, place, raw};

const U32: u32 = I32 & !(1 << 14);
const I64: u32 = I32 & !0xFF0 | 8 << 4;

/// Bounds whose steps are the largest and smallest that are usable: 2^±100 and 2^±1000.
pub fn bound_of_step(power: i32) -> f64 {
    2f64.powi(power) / 1.9921875
}

/// The frame of a case.
pub fn frame_of(name: &str, random: &mut Random, dims: &[u32]) -> Vec<u8> {
    let any = |mode: u8, random: &mut Random| Plane { mode, words: [0; 32].map(|_| random.bits() as u32), loose: 0 };
    let bits = |n: usize, random: &mut Random| (0..n).map(|_| random.bits() as u8).collect::<Vec<u8>>();
    let draft = match name {
        // Planes, ballots, nibbles and bytes of zeros.
        "f32-zeros-that-are-stored" => {
            let zeros = |k: usize, p: usize| {
                let mode = ((k + p) % 4) as u8;
                Plane { mode, words: [0; 32], loose: if mode > 1 { 0x8765_4321 << k } else { 0 } }
            };
            let tile = Tile::new(0, 3, [1, 2, 1, 2]).with(zeros).base(-77);
            frame(1, 0.5, F32, dims, &[tile.payload(4)])
        }
        // Quanta from end to end of what class 0 allows, so residuals of 16 bits; the low slice as bytes are.
        "f32-quanta-from-end-to-end" => {
            let ends = |random: &mut Random| [-4096, 4095][random.below(2)];
            let tile = |predictor| {
                let v: Vec<i64> = (0..4096).map(|_| ends(random)).collect();
                Tile::new(0, predictor, [2; 4]).meaning(3, &v, |_, _| 1).base((1 << 20) - 1).payload(4)
            };
            frame(1, 0.25, F32, dims, &[2, 3, 1, 0].map(tile))
        }
        "f64be-quanta-from-end-to-end" => {
            let tile = |predictor| {
                let v: Vec<i64> = (0..4096).map(|_| random.below(8192) as i64 - 4096).collect();
                let tile = Tile::new(0, predictor, [2; 4]).meaning(2, &v, |_, p| if p < 8 { 1 } else { 2 });
                tile.base(-(1 << 20)).payload(8)
            };
            frame(2, 1e-3, F64 | BIG_ENDIAN, dims, &[0, 1, 2].map(tile))
        }
        "f64-sums-that-wrap" => {
            let tile = Tile::new(1, 2, [8, 8, 7, 8]).with(|_, p| any(1 + p as u8 % 3, random)).base(-1);
            frame(1, 1e-3, F64, dims, &[tile.payload(8)])
        }
        // Heads alone: every predictor, the base from end to end of its field.
        "f32-heads-alone" => heads(F32, dims),
        "f64-heads-alone" => heads(F64, dims),
        // Quanta of 32 and 64 bits: rounded to the type, multiplied beyond its largest number.
        "f32-wide-quanta-overflow" => {
            let tile = Tile::new(1, 2, [4, 3, 2, 4]).with(|_, _| plane(1, random)).base(i64::from(i32::MAX));
            frame(1, bound_of_step(100), F32, dims, &[tile.payload(4)])
        }
        "f64-wide-quanta-overflow" => {
            let mut d = || random.bits() as i64 >> random.below(60);
            let tile = Tile::new(1, 0, [8; 4]).saying(1, |_, _, _| d());
            frame(4, bound_of_step(1000), F64, dims, &[tile.payload(8)])
        }
        "f32-smallest-step" => small_step(F32, random, dims),
        "f64be-smallest-step" => small_step(F64 | BIG_ENDIAN, random, dims),
        // Signs over magnitudes of 0, which are -2^(8S - 1), for every number of slices.
        "f32-signs-alone" => {
            let tile = |class, slices: [usize; 4]| {
                let mut tile = Tile::new(class, 0, slices);
                for block in &mut tile.blocks {
                    let low = block.planes.len() - 9;
                    block.planes[low] = Plane { mode: 3, words: [0x8000_0001; 32], loose: 0 };
                    block.planes.last_mut().unwrap().words = [0xF00F_0FF0; 32];
                    block.planes.last_mut().unwrap().mode = 2;
                }
                tile.payload(4)
            };
            frame(1, 0.125, F32, dims, &[tile(1, [2, 3, 4, 2]), tile(2, [4, 3, 2, 4])])
        }
        "f32-signs-of-one-slice" => frame(2, 0.125, F32, dims, &[1, 2, 0].map(|class| signs(class, [1; 4]).payload(4))),
        "f64-signs-alone" => {
            let tile = |class| signs(class, [1, 4, 7, 8]).payload(8);
            frame(1, 0.125, F64, dims, &[tile(1), tile(2)])
        }
        "i64be-signs-alone" => frame(9, 0.0, I64 | BIG_ENDIAN, dims, &[signs(2, [2, 5, 6, 8]).payload(8)]),
        // Blocks without slices: only the base is left, or the mask.
        "f32-no-slices" => {
            let masks =
                [0, 3, 2, 1].map(|mode| Plane { mode, words: [if mode == 0 { 0 } else { 0x10 }; 32], loose: 0 });
            let special = || 0x7FC0_0001;
            let tiles = [
                Tile::new(1, 1, [0; 4]).base(-9),
                Tile::new(2, 1, [0; 4]).base(-0x4000_0000),
                Tile::new(1, 0, [0; 4]).base(5).except(masks, special, true),
                Tile::new(2, 0, [0, 0, 4, 0]).with(|_, p| any(if p < 24 { 1 } else { 3 }, random)),
            ];
            frame(1, 3.0, F32, dims, &tiles.map(|t| t.payload(4)))
        }
        // Masks of every mode, one value each.
        "f32be-exceptions-of-many-values" => {
            let masks = [0, 1, 2, 3].map(|mode| plane(mode, random));
            let tile = Tile::new(0, 3, [1, 2, 2, 1]).meaning(3, &random::quanta(random), |k, _| k as u8);
            frame(1, 1e-2, F32 | BIG_ENDIAN, dims, &[tile.except(masks, || random.bits(), false).payload(4)])
        }
        "f64-exceptions-of-one-value" => {
            let masks = [3, 2, 1, 0].map(|mode| plane(mode, random));
            let tile = Tile::new(0, 1, [2, 1, 2, 1]).meaning(1, &random::quanta(random), |_, p| p as u8 % 4);
            let wide = Tile::new(1, 0, [3, 0, 8, 2]).with(|_, p| plane(p as u8 % 3, random)).base(1 << 60);
            let nan = || 0xFFF8_0000_1234_5678;
            let tiles = [tile.except(masks, nan, true).payload(8), wide.except(masks, nan, true).payload(8)];
            frame(1, 1e-2, F64, dims, &tiles)
        }
        // All 4096 places of a tile whose array has fewer values: those beyond take values, too.
        "f32-4096-exceptions" => {
            let all = [1, 2, 3, 1].map(|mode| Plane { mode, words: [u32::MAX; 32], loose: 0 });
            let tile = Tile::new(0, 0, [1; 4]).except(all, || random.bits(), false);
            frame(1, 1.0, F32, dims, &[tile.payload(4)])
        }
        "f64-exceptions-beyond-the-array" => {
            let masks = [0, 1, 2, 3].map(|mode| Plane { mode, words: [if mode > 0 { 0xF0 } else { 0 }; 32], loose: 0 });
            let tile = Tile::new(1, 1, [8, 0, 1, 0]).with(|_, _| plane(3, random));
            frame(1, 1.0, F64, dims, &[tile.except(masks, || random.bits(), false).payload(8)])
        }
        // Modes that no level has beside each other.
        "i32be-every-mode" => {
            let tile = Tile::new(2, 3, [4, 3, 2, 1]).with(|k, p| plane(((k + p) % 4) as u8, random)).base(1 << 31);
            frame(9, 0.0, I32 | BIG_ENDIAN, dims, &[tile.payload(4)])
        }
        "u32-slices-as-bytes" => {
            // Of four slices, the lowest and the third; the second is not, for one plane of its eight.
            let mode = |p: usize| if p == 12 { 3 } else { u8::from(p < 24) + 2 * u8::from(p >= 24) };
            let tile = Tile::new(2, 2, [4; 4]).with(|_, p| any(mode(p), random)).base(0x1234_5678);
            frame(9, 0.0, U32, dims, &[tile.payload(4)])
        }
        "i64-slices-as-bytes" => {
            let mode = |p: usize| if matches!(p / 8, 0 | 3 | 4 | 6) { 1 } else { (p % 4) as u8 };
            let tile = Tile::new(2, 1, [8, 2, 5, 7]).with(|_, p| plane(mode(p), random)).base(i64::MIN);
            frame(9, 0.0, I64, dims, &[tile.payload(8)])
        }
        "f64-wide-slices-as-bytes" => {
            let tile = Tile::new(1, 1, [5, 8, 2, 3]).with(|_, p| any(if p % 24 < 16 { 1 } else { 2 }, random)).base(-1);
            frame(1, 1e-9, F64, dims, &[tile.payload(8)])
        }
        // A tile of each class, all of them cut by the array's ends.
        "f32-every-class" | "f64be-every-class" => {
            let (kind, size) = if name.starts_with("f32") { (F32, 4) } else { (F64 | BIG_ENDIAN, 8) };
            let (rank, values) = random::grid(dims);
            assert_eq!((rank, values.len()), (3, 4));
            let mut tiles: Vec<Vec<u8>> = (0..3).map(|c| random::tile(c, 3, size, random).payload(size)).collect();
            tiles.insert(2, raw(&bits(values[2] * size, random)));
            frame(2, 1e-4, kind, dims, &tiles)
        }
        // Bits and raw values need no step.
        "f32-bound-of-0" => {
            let tile = Tile::new(2, 1, [4, 0, 3, 1]).with(|_, p| plane(p as u8 % 4, random)).base(0x3F80_0000);
            frame(2, 0.0, F32, dims, &[tile.payload(4), raw(&bits(4 * 104, random))])
        }
        // Every value is its own place in the tile: 0, 1, 2 ...
        "f32-places-of-rank-1" | "f32-places-of-rank-2" | "f32-places-of-rank-3" => {
            let rank = dims.len() as u32;
            let tile = Tile::new(0, 0, [2; 4]).saying(2, |k, l, bit| place(rank, k, l as usize, bit as usize) as i64);
            frame(1, bound_of_step(0), F32, dims, &[tile.payload(4)])
        }
        _ => panic!("planes/{name} is not made by hand"),
    };
    draft.frame()
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
    let tile = Tile::new(1, 0, [size; 4]).saying(1, |_, _, _| d());
    frame(1, bound_of_step(power), kind, dims, &[tile.payload(size)])
}

/// A third of the residuals is -2^(8S - 1), or in class 0 the number with the same bits; others are small.
fn signs(class: u32, slices: [usize; 4]) -> Tile {
    Tile::new(class, 0, slices).saying(1, |k, l, bit| match (l + bit) % 3 {
        0 => -1 << (8 * slices[k] - 1),
        1 => i64::from(bit) - 16,
        _ => 0,
    })
}
