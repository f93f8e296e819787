// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole frames of `planes` from random numbers: every class, predictor, number of slices and mode beside every other, such as no
//! writer puts them together. Every reader must read them, and all must find the same values.

use super::super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::super::generate::Random;
use super::{Plane, Tile, frame, raw};

/// Shapes of every grid rank: one value, whole tiles, a column or row more, tiles that hold twice the values and just more.
const SHAPES: [&[u32]; 16] = [
    &[],
    &[2],
    &[31],
    &[4095],
    &[4096],
    &[4097],
    &[128, 32],
    &[129, 33],
    &[64, 32],
    &[63, 32],
    &[3, 43, 33],
    &[8, 16, 32],
    &[8, 16, 16],
    &[8, 16, 15],
    &[13, 16, 40],
    &[2, 5, 17, 33],
];

/// §3.1: the grid rank, and how many values of the array each tile holds.
pub fn grid(dims: &[u32]) -> (u32, Vec<usize>) {
    let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
    let n: usize = dims.iter().product();
    let rank = dims.len();
    for (g, t) in [(3, [8, 16, 32]), (2, [1, 128, 32]), (1, [1, 1, 4096])] {
        if rank < g && g > 1 {
            continue;
        }
        let mut e = [1; 3];
        (0..g).for_each(|k| {
            e[2 - k] = if k + 1 == g { dims[..rank.max(k) - k].iter().product() } else { dims[rank - 1 - k] }
        });
        let cuts = |k: usize| (0..e[k]).step_by(t[k]).map(move |at| t[k].min(e[k] - at));
        let tiles: Vec<usize> =
            cuts(0).flat_map(|a| cuts(1).flat_map(move |b| cuts(2).map(move |c| a * b * c))).collect();
        if g == 1 || 4096 * tiles.len() <= 2 * n {
            return (g as u32, tiles);
        }
    }
    unreachable!("a line fits always")
}

/// A plane in a mode, with words of none, few or any bits.
pub fn plane(mode: u8, random: &mut Random) -> Plane {
    let density = random.below(4);
    let word = |random: &mut Random| match density {
        0 => 0,
        1 if random.below(8) > 0 => 0,
        1 => 1 << random.below(32),
        2 => (random.bits() & random.bits() & random.bits()) as u32,
        _ => random.bits() as u32,
    };
    let words = [0; 32].map(|_| if mode == 0 { 0 } else { word(random) });
    let loose = if mode >= 2 && random.below(2) == 0 { random.bits() as u32 } else { 0 };
    Plane { mode, words, loose }
}

/// What class 0 allows: any numbers, a walk, few that are not 0.
pub fn quanta(random: &mut Random) -> Vec<i64> {
    let (taste, step) = (random.below(3), 1 + random.below(40) as i64);
    let mut walk = random.below(8192) as i64 - 4096;
    let mut next = || match taste {
        0 => random.below(8192) as i64 - 4096,
        1 => {
            walk = (walk + random.below(2 * step as usize + 1) as i64 - step).clamp(-4096, 4095);
            walk
        }
        _ => (random.below(100) == 0).into(),
    };
    (0..4096).map(|_| next()).collect()
}

/// A tile of class 0, 1 or 2.
pub fn tile(class: u32, rank: u32, size: usize, random: &mut Random) -> Tile {
    let predictor = random.below(rank as usize + 1) as u32;
    let slices = [0; 4].map(|_| if class == 0 { 1 + random.below(2) } else { random.below(size + 1) });
    // Modes of all kinds, or of one, or full ones in each slice but the highest: those are stored as bytes are.
    let taste = random.below(6);
    let mode = |random: &mut Random| match taste {
        0..=3 => taste as u8,
        4 => 1,
        _ => random.below(4) as u8,
    };
    let mut tile = Tile::new(class, predictor, slices);
    if class == 0 {
        let v = quanta(random);
        tile = tile.meaning(rank, &v, |_, _| mode(random));
    } else {
        tile = tile.with(|_, _| plane(mode(random), random));
    }
    tile.base = match (class, random.below(3)) {
        (_, 0) => 0,
        (0, _) => random.bits() as i64 >> 43,
        _ => random.bits() as i64,
    };
    if taste == 4 && class > 0 {
        let highest = tile.blocks.iter_mut().flat_map(|b| b.planes.iter_mut().rev().take(8));
        highest.for_each(|p| *p = plane(random.below(4) as u8, random));
    }
    if class < 2 && random.below(2) == 0 {
        let mut masks = [0; 4].map(|_| plane(random.below(4) as u8, random));
        if masks.iter().all(|m| m.words == [0; 32]) {
            masks[2] = Plane { mode: 3, words: [1 << 31; 32], loose: 0 };
        }
        let uniform = random.below(2) == 0;
        tile = tile.except(masks, || random.bits(), uniform);
    }
    tile
}

/// A whole frame.
pub fn draft(random: &mut Random) -> Draft {
    let dims = SHAPES[random.below(SHAPES.len())];
    let size = [4, 8][random.below(2)];
    let mode = [1, 2, 4, 9][random.below(4)];
    let mut kind = if size == 4 { F32 } else { F64 };
    if mode == 9 && random.below(2) == 0 {
        kind = I32 & !0xFF0 | (size as u32) << 4;
    }
    kind |= [0, BIG_ENDIAN][random.below(2)];
    let largest = if size == 4 { 29.5 } else { 299.5 };
    let bound = match random.below(4) {
        _ if mode == 9 => 0.0,
        0 => 10f64.powf(largest * (2.0 * random.unit() - 1.0)),
        _ => 10f64.powf(-6.0 * random.unit()),
    };
    let (rank, tiles) = grid(dims);
    let payloads: Vec<Vec<u8>> = tiles
        .iter()
        .map(|&n| match random.below(8) {
            0 => raw(&(0..n * size).map(|_| random.bits() as u8).collect::<Vec<_>>()),
            // Class 0 in one word.
            1 if mode != 9 => {
                let head = (random.below(rank as usize + 1) << 2) as u32 | (random.bits() as u32) << 11;
                head.to_le_bytes().to_vec()
            }
            _ => {
                let class = if mode == 9 { 2 } else { random.below(3) as u32 };
                tile(class, rank, size, random).payload(size)
            }
        })
        .collect();
    frame(mode, bound, kind, dims, &payloads)
}
