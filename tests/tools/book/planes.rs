// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written from codecs/src/codec/planes/FORMAT.md, section by section: plain, slow, and without a look at the crate. A
//! refusal begins with the rule of §7 that is broken.
//!
//! ```text
//! components apart; grid rank, extents, tile             §3.1
//! for each tile: its payload lies between two ends       §3
//!     raw: the values that lie in the array
//!     head, base, mask, modes; lengths of all parts      §3.2, §3.3
//!     bit by bit: numbers of the lanes, marks            §3.3
//!     classes 1 and 2: numbers to lengths, fields        §3.4
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
    let components = components(&f.extents);
    let grid = grid(&extents_apart(&f.extents, components), components, n);
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
    Ok(to_bytes(f, &together(&values, components)))
}

/// §3.1: c, or 1 where value and extents are as they are.
fn components(extents: &[usize]) -> usize {
    match extents {
        [_, .., c @ 2..=15] => *c,
        _ => 1,
    }
}

/// §3.1: the extents e, …, f, c become c, e, …, f.
fn extents_apart(extents: &[usize], c: usize) -> Vec<usize> {
    let mut e = extents.to_vec();
    if c > 1 {
        e.rotate_right(1);
    }
    e
}

/// §3.1, backwards: value k · m + i of the array is value i · c + k of the chunk.
fn together(array: &[u64], c: usize) -> Vec<u64> {
    let m = array.len() / c;
    (0..array.len()).map(|at| array[at % c * m + at / c]).collect()
}

/// §3.1, of extents apart.
fn grid(extents: &[usize], components: usize, n: usize) -> Grid {
    let all = |e: &[usize]| e.iter().product::<usize>();
    let rank = extents.len();
    let axes = if components > 1 { rank - 1 } else { rank };
    let mut candidates = Vec::new();
    if axes >= 3 {
        let extents = [all(&extents[..rank - 2]), extents[rank - 2], extents[rank - 1]];
        candidates.push(Grid { rank: 3, extents, tile: [8, 16, 32] });
    }
    if axes >= 2 {
        let extents = [1, all(&extents[..rank - 1]), extents[rank - 1]];
        candidates.push(Grid { rank: 2, extents, tile: [1, 128, 32] });
    }
    let fits = |g: &Grid| {
        let hold = [0, 1, 2].map(|k| g.extents[k].div_ceil(g.tile[k]) as u128).iter().product::<u128>() * 4096;
        hold <= 3 * n as u128
    };
    let line = Grid { rank: 1, extents: [1, 1, n], tile: [1, 1, 4096] };
    candidates.into_iter().find(fits).unwrap_or(line)
}

/// All indices below some extents, the last axis fastest.
fn places(e: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..e[0] * e[1] * e[2]).map(move |i| [i / e[2] / e[1], i / e[2] % e[1], i % e[2]])
}

/// §3.1: the place in the tile, x fastest, of (layer, l, r, c).
fn place(rank: usize, layer: usize, l: usize, r: usize, c: usize) -> usize {
    match rank {
        1 => 512 * layer + 128 * r + 4 * l + c,
        2 => (16 * layer + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
        _ => (layer * 16 + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
    }
}

/// The place in the tile of bit `bit` of lane `l` in a block.
fn place_of_bit(rank: usize, block: usize, l: usize, bit: usize) -> usize {
    let c = BYTE_OF_COLUMN.iter().position(|&p| p == bit / 8).expect("four bytes");
    place(rank, 2 * block + bit / 4 % 2, l, bit % 4, c)
}

/// What the parts from *ballots* to *scattered* say.
struct Coded {
    /// Of each block: numbers whose bit p is that of the bit plane p.
    numbers: Vec<Block>,
    marks: Vec<Block>,
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

/// A bit plane in the order of coding: its block, its number (`None` is the mask), its mode, its ballot where it has
/// one.
struct Plane {
    block: usize,
    number: Option<usize>,
    mode: u32,
    ballot: u32,
}

/// §3.2 and §3.4: how classes 1 and 2 store residuals.
struct Lengths {
    /// L, T and z.
    low: i64,
    highest: i64,
    zeros: u32,
    /// The bin of each number.
    bins: [usize; 8],
}

impl Lengths {
    /// h(i), the highest length of bin i.
    fn h(&self, i: usize) -> i64 {
        let (l, t) = (self.low, self.highest);
        let s = [0, l, l + 1, l + 2, l + 3, l + 4, l + 6, t];
        s.get(i).copied().unwrap_or(t).min(t)
    }

    /// Of a value of bin i: the bits of its field, and what u is besides it.
    fn field(&self, i: usize) -> (usize, u64) {
        let h = self.h(i);
        let below = if i == 0 { -1 } else { self.h(i - 1) };
        match h {
            0 if h == below + 1 => (0, 0),
            _ if h == below + 1 => (h as usize - 1, 1 << (h - 1)),
            _ => (h as usize, 0),
        }
    }
}

/// §3.2: what the head says.
struct Head {
    class: u32,
    predictor: usize,
    exceptions: bool,
    uniform: bool,
    /// Class 0: the base, and the slices of each block.
    base: i64,
    slices: [usize; 4],
    /// Classes 1 and 2: the modes of each block's planes, the map's e, the lengths.
    modes: [[u32; 3]; 4],
    power: Option<i32>,
    /// Class 1: quanta count half steps.
    halves: bool,
    lengths: Lengths,
}

/// Bits `from` to `to` of a word.
fn bits(word: u32, from: u32, to: u32) -> u32 {
    word >> from & (u32::MAX >> (31 + from - to))
}

/// §3.2: the head of a tile that is not raw.
fn head(f: &Frame<'_>, rank: usize, parts: &mut Parts<'_>) -> Result<Head, Refusal> {
    let w = f.size;
    let first = number(parts.take(1)?, 0, 4)? as u32;
    let (class, predictor) = (bits(first, 0, 1), bits(first, 2, 3) as usize);
    need(predictor <= rank, "P5, planes: predictor")?;
    need(class == 2 || f.mode != 9 && step(f).is_some(), "P6, planes: a class without a step")?;
    let [second, third] = match class {
        0 => [0; 2],
        _ => {
            let words = parts.take(2)?;
            [number(words, 0, 4)? as u32, number(words, 4, 4)? as u32]
        }
    };
    let (exceptions, uniform) = match class {
        0 => (bits(first, 9, 9) == 1, bits(first, 10, 10) == 1),
        _ => (bits(third, 24, 24) == 1, bits(third, 25, 25) == 1),
    };
    need(exceptions || !uniform, "P5, planes: uniform without exceptions")?;
    need(class > 0 || bits(first, 8, 8) == 0, "P5, planes: bit 8")?;
    need(bits(second, 19, 19) == 0, "P5, planes: bit 19 of word 1")?;
    need(bits(third, 26, 31) == 0, "P5, planes: bits 26 to 31 of word 2")?;

    let others = bits(first, 5, 7) & if class == 1 { 0b101 } else { 0b111 };
    need(class == 0 || others == 0, "P5, planes: bits 5 to 7")?;
    let lengths = Lengths {
        low: bits(second, 0, 5).into(),
        highest: bits(second, 6, 12).into(),
        zeros: bits(second, 13, 18),
        bins: [0, 1, 2, 3, 4, 5, 6, 7].map(|c| bits(third, 3 * c, 3 * c + 2) as usize),
    };
    let numbers = 8 * w as u32;
    need(lengths.zeros < numbers, "P14, planes: z")?;
    need(lengths.highest + i64::from(lengths.zeros) <= numbers.into(), "P14, planes: T and z")?;

    let map = class > 0 && bits(first, 4, 4) == 1;
    let e = second as i32 >> 20;
    let range = if w == 4 { -126..=127 } else { -1022..=1023 };
    need(!map || class == 2 && f.class == 1, "P15, planes: map 1")?;
    need(if map { range.contains(&e) } else { e == 0 }, "P15, planes: e")?;
    Ok(Head {
        class,
        predictor,
        exceptions,
        uniform,
        base: i64::from(first as i32 >> 11) * if w == 4 { 2 } else { 512 },
        slices: [4, 5, 6, 7].map(|k| 1 + bits(first, k, k) as usize),
        modes: [0, 1, 2, 3].map(|k| [0, 1, 2].map(|p| bits(first, 8 + 6 * k + 2 * p, 9 + 6 * k + 2 * p))),
        power: map.then_some(e),
        halves: class == 1 && bits(first, 6, 6) == 1,
        lengths,
    })
}

/// §3.2 to §4: bits of the 4096 values of a tile. A raw tile gives those in the array; the others are 0.
fn tile(f: &Frame<'_>, rank: usize, inside: [usize; 3], payload: &[u8]) -> Result<Vec<u64>, Refusal> {
    let w = f.size;
    need(!payload.is_empty(), "P4, planes: a tile of no words")?;
    let first = number(payload, 0, 4)? as u32;
    if bits(first, 0, 1) == 3 {
        need(bits(first, 2, 31) == 0, "P5, planes: the head of a raw tile")?;
        return raw(f, rank, inside, &payload[4..]);
    }
    let mut parts = Parts { bytes: payload, at: 0 };
    let head = head(f, rank, &mut parts)?;
    let Head { class, exceptions, uniform, .. } = head;
    let mut base = head.base;
    let mut v = vec![0u64; 4096];
    let mut replaced = Vec::new();
    if class == 0 && payload.len() == 4 {
        need(bits(first, 4, 10) == 0, "P5, planes: a head alone")?;
    } else {
        if class > 0 {
            base = number(parts.take(w / 4)?, 0, w)? as i64;
        }
        let mask = if exceptions { number(parts.take(1)?, 0, 4)? as u32 } else { 0 };
        let count = bits(mask, 8, 20) as usize;
        need(bits(mask, 21, 31) == 0 && (!exceptions || (1..=4096).contains(&count)), "P8, planes: mask")?;
        let modes = if class == 0 { modes_of_slices(&mut parts, head.slices)? } else { head.modes.map(Vec::from) };
        let Coded { mut numbers, marks } = blocks(&mut parts, &modes, exceptions.then_some(mask))?;
        for (block, numbers) in numbers.iter_mut().enumerate() {
            if class == 0 {
                for d in numbers {
                    *d = quantum(head.slices[block], *d);
                }
            } else {
                fields(&mut parts, &head.lengths, numbers)?;
            }
        }
        let named = marks.iter().flatten().filter(|&&m| m == 1).count();
        let mut values = Vec::new();
        for _ in 0..if uniform { 1 } else { count } {
            values.push(number(parts.take(w / 4)?, 0, w)?);
        }
        need(parts.at == payload.len(), "P10, planes: words behind a tile's parts")?;
        need(named == count, "P12, planes: number of exceptions")?;
        for block in 0..4 {
            for (i, &d) in numbers[block].iter().enumerate() {
                let at = place_of_bit(rank, block, i / 32, i % 32);
                v[at] = d;
                if marks[block][i] == 1 {
                    replaced.push((at, values[if uniform { 0 } else { replaced.len() }]));
                }
            }
        }
    }
    sums(&mut v, rank, head.predictor);
    need(class > 0 || v.iter().all(|&v| (-4096..=4095).contains(&(v as i64))), "P13, planes: a quantum of class 0")?;
    let mut x: Vec<u64> = v.into_iter().map(|v| value(f, &head, base, v)).collect();
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

/// §3.3, class 0: the modes of each block's planes.
fn modes_of_slices(parts: &mut Parts<'_>, slices: [usize; 4]) -> Result<[Vec<u32>; 4], Refusal> {
    let total: usize = slices.iter().sum();
    let words = parts.take(total.div_ceil(2))?;
    need(words[2 * total..].iter().all(|&b| b == 0), "P9, planes: behind the last slice's modes")?;
    let mut modes = [const { Vec::new() }; 4];
    let mut slice = 0;
    for (block, s) in slices.into_iter().enumerate() {
        for p in 0..8 * s {
            modes[block].push(number(words, 2 * (slice + p / 8), 2)? as u32 >> (2 * (p % 8)) & 3);
        }
        slice += s;
    }
    Ok(modes)
}

/// §3.3, from *ballots* to *scattered*. Of 8S planes the last holds signs and comes behind the others; three planes
/// have none.
fn blocks(parts: &mut Parts<'_>, modes: &[Vec<u32>; 4], mask: Option<u32>) -> Result<Coded, Refusal> {
    // Order of coding.
    let mut order = Vec::new();
    for (block, modes) in modes.iter().enumerate() {
        let n = modes.len();
        let planes: Vec<usize> = if n == 3 { vec![2, 1, 0] } else { (0..n - 1).rev().chain([n - 1]).collect() };
        for p in planes {
            order.push(Plane { block, number: Some(p), mode: modes[p], ballot: 0 });
        }
        if let Some(mask) = mask {
            order.push(Plane { block, number: None, mode: mask >> (2 * block) & 3, ballot: 0 });
        }
    }
    need(order.iter().all(|plane| plane.mode < 3), "P7, planes: mode 3")?;
    for plane in order.iter_mut().filter(|plane| plane.mode == 2) {
        plane.ballot = number(parts.take(1)?, 0, 4)? as u32;
    }
    let nibbles: usize = order.iter().map(|p| p.ballot.count_ones() as usize).sum();
    let nibble_part = parts.take(nibbles.div_ceil(8))?;
    let nibble = |i: usize| nibble_part[i / 2] >> (4 * (i % 2)) & 15;
    need((nibbles..2 * nibble_part.len()).all(|i| nibble(i) == 0), "P11, planes: behind the last nibble")?;
    let full = order.iter().filter(|p| p.mode == 1).count();
    let words = parts.take(32 * full)?;
    let count: usize = (0..nibbles).map(|i| nibble(i).count_ones() as usize).sum();
    let bytes = parts.take(count.div_ceil(4))?;
    need(bytes[count..].iter().all(|&b| b == 0), "P11, planes: behind the last byte")?;

    let mut numbers = vec![vec![0; 1024]; 4];
    let mut marks = vec![vec![0; 1024]; 4];
    let (mut next_word, mut next_nibble, mut next_byte) = (0, 0, 0);
    let mut word = || {
        next_word += 1;
        number(words, 4 * (next_word - 1), 4)
    };
    for plane in &order {
        let Plane { number: p, mode, ballot, block } = *plane;
        for l in 0..32 {
            let named = ballot >> l & 1 == 1;
            let w = match mode {
                1 => word()?,
                2 if named => {
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
    Ok(Coded { numbers, marks })
}

/// §4, class 0: a residual from the bits of its planes, in two's complement of 64 bits.
fn quantum(slices: usize, number: u64) -> u64 {
    let top = 1u64 << (8 * slices - 1);
    let m = number & (top - 1);
    if number & top == 0 { m } else { !m }
}

/// §3.4 and §4, classes 1 and 2: a block's residuals in place of its numbers, from the fields, in two's complement of
/// 64 bits.
fn fields(parts: &mut Parts<'_>, lengths: &Lengths, numbers: &mut Block) -> Result<(), Refusal> {
    let fields = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| lengths.field(i));
    let field_of = |number: u64| fields[lengths.bins[number as usize]];
    let total: usize = numbers.iter().map(|&number| field_of(number).0).sum();
    let part = parts.take(total.div_ceil(32))?;
    let bit = |i: usize| u64::from(part[i / 8] >> (i % 8) & 1);
    let mut at = 0;
    for l in 0..32 {
        for [layer, r, c] in places([2, 4, 4]) {
            let d = &mut numbers[32 * l + 8 * BYTE_OF_COLUMN[c] + 4 * layer + r];
            let (width, besides) = field_of(*d);
            let u = (0..width).fold(besides, |u, k| u | bit(at + k) << k);
            at += width;
            let half = if u % 2 == 0 { u >> 1 } else { !(u >> 1) };
            *d = half << lengths.zeros;
        }
    }
    need((at..8 * part.len()).all(|i| bit(i) == 0), "P16, planes: behind the last field of a block")
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
fn value(f: &Frame<'_>, head: &Head, base: i64, v: u64) -> u64 {
    let sum = base.wrapping_add(v as i64);
    let q = match (head.class, f.size) {
        (0, _) => sum,
        (_, 4) => i64::from(sum as i32),
        _ => sum,
    };
    if head.class < 2 {
        let s = step(f).expect("checked with the class");
        return product(f, q, if head.halves { s / 2.0 } else { s });
    }
    if let Some(e) = head.power {
        return product(f, q, 2f64.powi(e));
    }
    let m = q as u64 & (u64::MAX >> (64 - 8 * f.size));
    if f.class == 0 || q >= 0 { m } else { m ^ (u64::MAX >> (65 - 8 * f.size)) }
}

/// §5: f(q) · s in the type, of which s is a number.
fn product(f: &Frame<'_>, q: i64, s: f64) -> u64 {
    if f.size == 4 { (q as f32 * s as f32).to_bits().into() } else { (q as f64 * s).to_bits() }
}
