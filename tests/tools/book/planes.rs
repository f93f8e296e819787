// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written from src/codec/planes/FORMAT.md, section by section: plain, slow, and without a look at the crate. A refusal begins
//! with the rule of §7 that is broken.
//!
//! ```text
//! grid rank, extents, tile                               §3.1
//! for each tile: its payload lies between two ends       §3
//!     raw: the values that lie in the array
//!     head, base, mask, modes; lengths of all parts      §3.2
//!     bit by bit: numbers of the lanes, marks            §3.2
//!     numbers to residuals, sums along x, y, z           §4
//!     quanta or bits to values; marked ones replaced     §5
//! ```

use super::{Frame, Refusal, elements, need, number, to_bytes};

/// §3.1: p(c).
const BYTE_OF_COLUMN: [usize; 4] = [0, 2, 1, 3];

/// §3.1: the array, and how it is cut.
struct Grid {
    rank: usize,
    extents: [usize; 3],
    tile: [usize; 3],
}

/// 1024 numbers of a block, at 32 · lane + bit.
type Block = Vec<u64>;

pub fn decode(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    let n = elements(f)?;
    // §2.
    let ieee = if f.size == 4 { (1, 8, 23) } else { (1, 11, 52) };
    match f.mode {
        1 | 2 | 4 => need(f.class == 1 && f.layout == ieee, "F9, planes: type")?,
        9 => need(matches!(f.class, 0 | 1), "F9, planes: type")?,
        _ => return Err("F7, planes: mode".into()),
    }
    let [table, payload] = f.sections[..] else { return Err("F11, planes: sections".into()) };
    // §3.
    let grid = grid(&f.extents, n);
    let (e, t) = (grid.extents, grid.tile);
    let tiles = [0, 1, 2].map(|k| e[k].div_ceil(t[k]));
    let count: usize = tiles.iter().product();
    need(table.len() == 4 * count, "P1, planes: table")?;
    let mut values = vec![0; n];
    let mut begin = 0;
    for k in 0..count {
        let end = 4 * number(table, 4 * k, 4)? as usize;
        need(begin <= end && end <= payload.len(), "P2, planes: an end")?;
        let place = [k / tiles[2] / tiles[1], k / tiles[2] % tiles[1], k % tiles[2]];
        let first = [0, 1, 2].map(|a| place[a] * t[a]);
        let inside = [0, 1, 2].map(|a| t[a].min(e[a] - first[a]));
        let bits = tile(f, grid.rank, inside, &payload[begin..end]).map_err(|e| format!("{e} (tile {k})"))?;
        // What is decoded beyond the array is dropped.
        for [z, y, x] in places(inside) {
            let to = ((first[0] + z) * e[1] + first[1] + y) * e[2] + first[2] + x;
            values[to] = bits[(z * t[1] + y) * t[2] + x];
        }
        begin = end;
    }
    need(begin == payload.len(), "P3, planes: the last end")?;
    Ok(to_bytes(f, &values))
}

/// §3.1.
fn grid(extents: &[usize], n: usize) -> Grid {
    let all = |e: &[usize]| e.iter().product::<usize>();
    let rank = extents.len();
    let mut candidates = Vec::new();
    if rank >= 3 {
        let extents = [all(&extents[..rank - 2]), extents[rank - 2], extents[rank - 1]];
        candidates.push(Grid { rank: 3, extents, tile: [8, 16, 32] });
    }
    if rank >= 2 {
        let extents = [1, all(&extents[..rank - 1]), extents[rank - 1]];
        candidates.push(Grid { rank: 2, extents, tile: [1, 128, 32] });
    }
    let fits = |g: &Grid| {
        let hold = [0, 1, 2].map(|k| g.extents[k].div_ceil(g.tile[k]) as u128).iter().product::<u128>() * 4096;
        hold <= 2 * n as u128
    };
    let line = Grid { rank: 1, extents: [1, 1, n], tile: [1, 1, 4096] };
    candidates.into_iter().find(fits).unwrap_or(line)
}

/// All indices below some extents, the last axis fastest.
fn places(e: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..e[0] * e[1] * e[2]).map(move |i| [i / e[2] / e[1], i / e[2] % e[1], i % e[2]])
}

/// §3.1: the place in the tile, x fastest, of (plane, l, r, c).
fn place(rank: usize, plane: usize, l: usize, r: usize, c: usize) -> usize {
    match rank {
        1 => 512 * plane + 128 * r + 4 * l + c,
        2 => (16 * plane + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
        _ => (plane * 16 + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
    }
}

/// The place in the tile of bit `bit` of lane `l` in a block.
fn place_of_bit(rank: usize, block: usize, l: usize, bit: usize) -> usize {
    let c = BYTE_OF_COLUMN.iter().position(|&p| p == bit / 8).expect("four bytes");
    place(rank, 2 * block + bit / 4 % 2, l, bit % 4, c)
}

/// What the parts from *modes* to *bytes* say.
struct Coded {
    /// Of each block: numbers whose bit p is that of the bit plane p.
    numbers: Vec<Block>,
    marks: Vec<Block>,
    /// Of each block: bits that slices hold which are stored as bytes are.
    as_bytes: [u64; 4],
}

/// Parts of a payload, one after the other.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    /// The next words, each of 4 bytes.
    fn take(&mut self, words: usize) -> Result<&'a [u8], Refusal> {
        let part = self.bytes.get(self.at..self.at + 4 * words).ok_or("P10, planes: a tile ends too early")?;
        self.at += 4 * words;
        Ok(part)
    }
}

/// A bit plane in the order of coding: its block, its number (`None` is the mask), its mode, its ballot where it has one.
struct Plane {
    block: usize,
    number: Option<usize>,
    mode: u32,
    ballot: u32,
}

/// §3.2 and §4: bits of the 4096 values of a tile. A raw tile gives those in the array; the others are 0.
fn tile(f: &Frame<'_>, rank: usize, inside: [usize; 3], payload: &[u8]) -> Result<Vec<u64>, Refusal> {
    let w = f.size;
    need(!payload.is_empty(), "P4, planes: a tile of no words")?;
    let head = number(payload, 0, 4)? as u32;
    let bits = |from: u32, to: u32| head >> from & (u32::MAX >> (31 + from - to));
    let (class, predictor) = (bits(0, 1), bits(2, 3) as usize);
    if class == 3 {
        need(bits(2, 31) == 0, "P5, planes: the head of a raw tile")?;
        return raw(f, rank, inside, &payload[4..]);
    }
    need(predictor <= rank, "P5, planes: predictor")?;
    need(bits(8, 8) == 0, "P5, planes: bit 8")?;
    let (exceptions, uniform) = (bits(9, 9) == 1, bits(10, 10) == 1);
    need(exceptions || !uniform, "P5, planes: uniform without exceptions")?;
    if class > 0 {
        need(bits(4, 7) == 0 && bits(11, 15) == 0, "P5, planes: bits 4 to 7, 11 to 15")?;
    }
    need(class != 2 || !exceptions, "P5, planes: exceptions in class 2")?;
    let step = step(f);
    need(class == 2 || f.mode != 9 && step.is_some(), "P6, planes: a class without a step")?;
    let mut base = i64::from(head as i32 >> 11) * if w == 4 { 2 } else { 512 };
    let mut v = vec![0u64; 4096];
    let mut replaced = Vec::new();
    if class == 0 && payload.len() == 4 {
        need(bits(4, 10) == 0, "P5, planes: a head alone")?;
    } else {
        let mut parts = Parts { bytes: payload, at: 4 };
        let slices: Vec<usize> = if class == 0 {
            (0..4).map(|k| 1 + bits(4 + k, 4 + k) as usize).collect()
        } else {
            (0..4).map(|k| bits(16 + 4 * k, 19 + 4 * k) as usize).collect()
        };
        need(slices.iter().all(|&s| s <= w), "P7, planes: slices")?;
        if class > 0 {
            base = number(parts.take(w / 4)?, 0, w)? as i64;
        }
        let mask = if exceptions { number(parts.take(1)?, 0, 4)? as u32 } else { 0 };
        let count = (mask >> 8 & 0x1FFF) as usize;
        need(mask >> 21 == 0 && (!exceptions || (1..=4096).contains(&count)), "P8, planes: mask")?;
        let Coded { numbers, marks, as_bytes } = blocks(&mut parts, &slices, exceptions.then_some(mask))?;
        let named = marks.iter().flatten().filter(|&&m| m == 1).count();
        let mut values = Vec::new();
        for _ in 0..if uniform { 1 } else { count } {
            values.push(number(parts.take(w / 4)?, 0, w)?);
        }
        need(parts.at == payload.len(), "P10, planes: words behind a tile's parts")?;
        need(named == count, "P12, planes: number of exceptions")?;
        for block in 0..4 {
            for (i, &number) in numbers[block].iter().enumerate() {
                let at = place_of_bit(rank, block, i / 32, i % 32);
                v[at] = residual(class, slices[block], number, as_bytes[block]);
                if marks[block][i] == 1 {
                    replaced.push((at, values[if uniform { 0 } else { replaced.len() }]));
                }
            }
        }
    }
    sums(&mut v, rank, predictor);
    need(class > 0 || v.iter().all(|&v| (-4096..=4095).contains(&(v as i64))), "P13, planes: a quantum of class 0")?;
    let mut x: Vec<u64> = v.into_iter().map(|v| value(f, class, base, v, step)).collect();
    for (at, bits) in replaced {
        x[at] = bits;
    }
    Ok(x)
}

/// Class 3: the values that lie in the array.
fn raw(f: &Frame<'_>, rank: usize, inside: [usize; 3], bytes: &[u8]) -> Result<Vec<u64>, Refusal> {
    let tile = [[1, 1, 4096], [1, 128, 32], [8, 16, 32]][rank - 1];
    need(bytes.len() == f.size * inside.iter().product::<usize>(), "P10, planes: a raw tile")?;
    let mut x = vec![0; 4096];
    for (i, [z, y, column]) in places(inside).enumerate() {
        x[(z * tile[1] + y) * tile[2] + column] = number(bytes, f.size * i, f.size)?;
    }
    Ok(x)
}

/// §3.2, from *modes* to *bytes*.
fn blocks(parts: &mut Parts<'_>, slices: &[usize], mask: Option<u32>) -> Result<Coded, Refusal> {
    let total: usize = slices.iter().sum();
    let modes = parts.take(total.div_ceil(2))?;
    need(modes[2 * total..].iter().all(|&b| b == 0), "P9, planes: behind the last slice's modes")?;

    // Order of coding.
    let mut order = Vec::new();
    let mut slice = 0;
    for (block, &s) in slices.iter().enumerate() {
        let mode = |p: usize| number(modes, 2 * (slice + p / 8), 2).map(|m| m as u32 >> (2 * (p % 8)) & 3);
        let planes = (0..(8 * s).saturating_sub(1)).rev().chain((8 * s).checked_sub(1));
        for p in planes {
            order.push(Plane { block, number: Some(p), mode: mode(p)?, ballot: 0 });
        }
        if let Some(mask) = mask {
            order.push(Plane { block, number: None, mode: mask >> (2 * block) & 3, ballot: 0 });
        }
        slice += s;
    }
    for plane in order.iter_mut().filter(|plane| plane.mode >= 2) {
        plane.ballot = number(parts.take(1)?, 0, 4)? as u32;
    }
    let lanes = |mode: u32| order.iter().filter(|p| p.mode == mode).map(|p| p.ballot.count_ones() as usize).sum();
    let nibbles: usize = lanes(3);
    let nibble_part = parts.take(nibbles.div_ceil(8))?;
    let nibble = |i: usize| nibble_part[i / 2] >> (4 * (i % 2)) & 15;
    need((nibbles..2 * nibble_part.len()).all(|i| nibble(i) == 0), "P11, planes: behind the last nibble")?;
    let full = order.iter().filter(|p| p.mode == 1).count();
    let words = parts.take(32 * full + lanes(2))?;
    let count: usize = (0..nibbles).map(|i| nibble(i).count_ones() as usize).sum();
    let bytes = parts.take(count.div_ceil(4))?;
    need(bytes[count..].iter().all(|&b| b == 0), "P11, planes: behind the last byte")?;

    let mut numbers = vec![vec![0; 1024]; 4];
    let mut marks = vec![vec![0; 1024]; 4];
    let mut as_bytes = [0; 4];
    let (mut next_word, mut next_nibble, mut next_byte) = (0, 0, 0);
    let mut word = || {
        next_word += 1;
        number(words, 4 * (next_word - 1), 4)
    };
    for plane in &order {
        // Is it one of a slice that is stored as bytes are? Its first plane in the order takes all words of the slice.
        let Plane { block, number: p, mode, ballot } = *plane;
        if let Some(p) = p.filter(|p| p / 8 + 1 < slices[block]) {
            let same = |other: &&Plane| other.block == block && other.number.is_some_and(|o| o / 8 == p / 8);
            if order.iter().filter(same).all(|other| other.mode == 1) {
                if p % 8 == 7 {
                    as_bytes[block] |= 0xFF << (8 * (p / 8));
                    for i in 0..256 {
                        let (row, l) = (i / 32, i % 32);
                        let w = word()?;
                        for at in BYTE_OF_COLUMN {
                            let bit = 8 * at + 4 * (row / 4) + row % 4;
                            numbers[block][32 * l + bit] |= (w >> (8 * at) & 0xFF) << (8 * (p / 8));
                        }
                    }
                }
                continue;
            }
        }
        for l in 0..32 {
            let named = ballot >> l & 1 == 1;
            let w = match mode {
                1 => word()?,
                2 if named => word()?,
                3 if named => {
                    let mut w = 0;
                    for k in 0..4 {
                        if nibble(next_nibble) >> k & 1 == 1 {
                            w |= u64::from(bytes[next_byte]) << (8 * k);
                            next_byte += 1;
                        }
                    }
                    next_nibble += 1;
                    w
                }
                _ => 0,
            };
            for bit in 0..32 {
                match p {
                    Some(p) => numbers[block][32 * l + bit] |= (w >> bit & 1) << p,
                    None => marks[block][32 * l + bit] = w >> bit & 1,
                }
            }
        }
    }
    Ok(Coded { numbers, marks, as_bytes })
}

/// §4: a residual from the bits of its planes, in two's complement of 64 bits. In class 0, bits of slices that are stored as bytes are
/// d's already.
fn residual(class: u32, slices: usize, number: u64, as_bytes: u64) -> u64 {
    if slices == 0 {
        return 0;
    }
    let top = 1u64 << (8 * slices - 1);
    let (negative, m) = (number & top != 0, number & (top - 1));
    match (negative, class) {
        (false, _) => m,
        (true, 0) => m ^ !as_bytes,
        (true, _) if m == 0 => top.wrapping_neg(),
        (true, _) => m.wrapping_neg(),
    }
}

/// §4: v from d. Sums of 64 bits have the low bits of shorter ones, and hold what a tile of 16 bits adds up to.
fn sums(v: &mut [u64], rank: usize, predictor: usize) {
    let e = [[1, 1, 4096], [1, 128, 32], [8, 16, 32]][rank - 1];
    let strides = [512, e[2], 1];
    for axis in [2, 1, 0].into_iter().take(predictor) {
        for (i, p) in places(e).enumerate() {
            if p[axis] > 0 {
                v[i] = v[i].wrapping_add(v[i - strides[axis]]);
            }
        }
    }
}

/// §5: the step, in f64, where it is usable.
fn step(f: &Frame<'_>) -> Option<f64> {
    let s = f.bound * 1.9921875;
    let (s, power) = if f.size == 4 { (f64::from(s as f32), 100) } else { (s, 1000) };
    (2f64.powi(-power)..=2f64.powi(power)).contains(&s).then_some(s)
}

/// §4 and §5: the bits of x̂.
fn value(f: &Frame<'_>, class: u32, base: i64, v: u64, step: Option<f64>) -> u64 {
    let sum = base.wrapping_add(v as i64);
    let q = match (class, f.size) {
        (0, _) => sum,
        (_, 4) => i64::from(sum as i32),
        _ => sum,
    };
    if class < 2 {
        let s = step.expect("checked with the class");
        return if f.size == 4 { (q as f32 * s as f32).to_bits().into() } else { (q as f64 * s).to_bits() };
    }
    let m = q as u64 & (u64::MAX >> (64 - 8 * f.size));
    if f.class == 0 || q >= 0 { m } else { m ^ (u64::MAX >> (65 - 8 * f.size)) }
}
