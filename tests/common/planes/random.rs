// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole frames of `planes` from random numbers: every class, predictor, number of slices, mode and bins of lengths
//! beside every other, such as no writer puts them together. Every reader must read them, and all must find the same
//! values.

use super::super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::super::generate::Random;
use super::{Lengths, Plane, Tile, frame, raw};

/// Shapes of every grid rank: one value, whole tiles, a column or row more, tiles that hold three times the values and
/// just more; with components, of which 2, 3 and 15 are apart and 16 not.
const SHAPES: [&[u32]; 25] = [
    &[],
    &[2],
    &[31],
    &[4095],
    &[4096],
    &[4097],
    &[128, 32],
    &[129, 33],
    &[43, 32],
    &[42, 32],
    &[3, 43, 33],
    &[8, 16, 32],
    &[8, 11, 16],
    &[8, 10, 16],
    &[13, 16, 40],
    &[2, 5, 17, 33],
    &[40, 3],
    &[2000, 2],
    &[31, 40, 15],
    &[260, 16],
    &[5, 17, 33, 2],
    &[11, 33, 3],
    &[33, 32, 5],
    &[2, 2],
    &[3, 15, 16, 2],
];

/// §3.1: the grid rank, and how many values of the array each tile holds.
pub fn grid(dims: &[u32]) -> (u32, Vec<usize>) {
    let mut dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
    let mut axes = dims.len();
    if dims.len() >= 2 && (2..=15).contains(&dims[dims.len() - 1]) {
        dims.rotate_right(1);
        axes -= 1;
    }
    let n: usize = dims.iter().product();
    let rank = dims.len();
    for (g, t) in [(3, [8, 16, 32]), (2, [1, 128, 32]), (1, [1, 1, 4096])] {
        if axes < g && g > 1 {
            continue;
        }
        let mut e = [1; 3];
        (0..g).for_each(|k| {
            e[2 - k] = if k + 1 == g { dims[..rank.max(k) - k].iter().product() } else { dims[rank - 1 - k] }
        });
        let cuts = |k: usize| (0..e[k]).step_by(t[k]).map(move |at| t[k].min(e[k] - at));
        let tiles: Vec<usize> =
            cuts(0).flat_map(|a| cuts(1).flat_map(move |b| cuts(2).map(move |c| a * b * c))).collect();
        if g == 1 || 4096 * tiles.len() <= 3 * n {
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

/// How lengths are stored, for values of `size` bytes: any L, T, z and bins of numbers.
fn lengths(size: usize, random: &mut Random) -> Lengths {
    let numbers = 8 * size;
    let zeros = if random.below(2) == 0 { 0 } else { random.below(numbers) };
    let highest = match random.below(3) {
        0 => numbers - zeros,
        _ => random.below(numbers - zeros + 1),
    };
    let low = if random.below(4) == 0 { random.below(64) } else { random.below(highest + 1).min(63) };
    let mut lengths = Lengths::new(low as u32, highest as u32).zeros(zeros as u32);
    if random.below(2) == 0 {
        lengths.bins = [0; 8].map(|_| random.below(8) as u32);
    }
    lengths.held()
}

/// Bits of a mantissa.
fn mantissa(size: usize) -> u32 {
    if size == 4 { 23 } else { 52 }
}

/// Map 1 with any e that is allowed, more often with an end of them or one that gives usual numbers. Sums of 4096
/// residuals, where they are summed, have half a mantissa at most.
fn with_map(lengths: Lengths, size: usize, is_summed: bool, random: &mut Random) -> Lengths {
    let (low, high) = if size == 4 { (-126, 127) } else { (-1022, 1023) };
    let most = mantissa(size) - if is_summed { 12 } else { 0 };
    let zeros = lengths.zeros.min(most);
    let lengths = Lengths { zeros, highest: lengths.highest.min(most - zeros), ..lengths }.held();
    lengths.power(match random.below(4) {
        0 => low,
        1 => high,
        2 => -(random.below(60) as i32),
        _ => low + random.below((high - low) as usize + 1) as i32,
    })
}

/// A tile of class 0, 1 or 2. In class 2, `float` allows map 1.
pub fn tile(class: u32, rank: u32, size: usize, float: bool, random: &mut Random) -> Tile {
    let predictor = random.below(rank as usize + 1) as u32;
    // Modes of all kinds, or of one.
    let taste = random.below(5);
    let mode = |random: &mut Random| if taste < 3 { taste as u8 } else { random.below(3) as u8 };
    let mut tile = if class == 0 {
        let v = quanta(random);
        Tile::quanta(predictor, [0; 4].map(|_| 1 + random.below(2))).meaning(rank, &v, |_, _| mode(random))
    } else {
        let mut lengths = lengths(size, random);
        if class == 2 && float && random.below(2) == 0 {
            lengths = with_map(lengths, size, predictor > 0, random);
        }
        let tile = Tile::wide(class, predictor, lengths).with(|_, _| plane(mode(random), random));
        match random.below(3) {
            0 => tile.fields(|_, _, _| u64::MAX),
            _ => tile.fields(|_, _, _| random.bits()),
        }
    };
    tile.base = match (class, random.below(3)) {
        (_, 0) => 0,
        (0, _) => random.bits() as i64 >> 43,
        _ if tile.lengths.power.is_some() => random.bits() as i64 >> (64 - mantissa(size)),
        _ => random.bits() as i64,
    };
    if random.below(2) == 0 {
        let mut masks = [0; 4].map(|_| plane(random.below(3) as u8, random));
        if masks.iter().all(|m| m.words == [0; 32]) {
            masks[2] = Plane { mode: 2, words: [1 << 31; 32], loose: 0 };
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
                tile(class, rank, size, kind & 15 == 1, random).payload(size)
            }
        })
        .collect();
    frame(mode, bound, kind, dims, &payloads)
}
