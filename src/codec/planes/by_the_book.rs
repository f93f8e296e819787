// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader after the letter of FORMAT.md §3 and §4, for tests: value by value, slow, sharing nothing with the codec.
//! It takes frames that the codec's reader has found right.

use crate::frame::Frame;
use crate::params::{Class, Dtype, Mode};

/// Number of a mask among a block's planes.
const MASK: usize = 99;

struct Tiles {
    /// Components, 1 where the last axis is none of such.
    c: usize,
    g: usize,
    extents: [usize; 3],
    tile: [usize; 3],
}

fn tiles(extents: &[u32]) -> Tiles {
    let mut e: Vec<usize> = extents.iter().map(|&e| e as usize).collect();
    let mut c = 1;
    if e.len() >= 2 && (2..=15).contains(&e[e.len() - 1]) {
        c = e[e.len() - 1];
        e.rotate_right(1);
    }
    let n: usize = e.iter().product();
    let axes = e.len() - usize::from(c > 1);
    for g in [3, 2, 1] {
        if axes < g && g > 1 {
            continue;
        }
        let (extents, tile) = match g {
            3 => ([e[..e.len() - 2].iter().product(), e[e.len() - 2], e[e.len() - 1]], [8, 16, 32]),
            2 => ([1, e[..e.len() - 1].iter().product(), e[e.len() - 1]], [1, 128, 32]),
            _ => ([1, 1, n], [1, 1, 4096]),
        };
        let held = 4096 * (0..3).map(|k| extents[k].div_ceil(tile[k])).product::<usize>();
        if g == 1 || held <= 3 * n {
            return Tiles { c, g, extents, tile };
        }
    }
    unreachable!()
}

/// A payload read word by word, byte by byte, nibble by nibble.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> u32 {
        self.at += 4;
        u32::from_le_bytes(self.bytes[self.at - 4..self.at].try_into().unwrap())
    }

    fn value(&mut self, w: usize) -> u64 {
        (0..w / 4).map(|k| u64::from(self.word()) << (32 * k)).sum()
    }
}

fn sections(bytes: &[u8]) -> (Frame<'_>, Vec<u32>, &[u8]) {
    let frame = Frame::open(bytes, 1).unwrap();
    let [table, payload] = frame.sections().unwrap();
    let ends = table.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    (frame, ends, payload)
}

/// Every tile's head; none for other codecs.
pub(super) fn heads(bytes: &[u8]) -> Vec<u32> {
    if bytes[9] != 5 {
        return Vec::new();
    }
    let (_, ends, payload) = sections(bytes);
    let starts = [0].into_iter().chain(ends.iter().copied()).take(ends.len());
    starts.map(|s| Reader { bytes: payload, at: 4 * s as usize }.word()).collect()
}

/// The chunk of a frame; `None` where rule P13 is broken.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let (frame, ends, payload) = sections(bytes);
    let h = frame.header;
    let t = tiles(h.extents.as_slice());
    let w = usize::from(h.dtype.size);
    let n: usize = t.extents.iter().product();
    let mut out = vec![0u64; n];
    let counts: Vec<usize> = (0..3).map(|k| t.extents[k].div_ceil(t.tile[k])).collect();
    let mut start = 0;
    for (i, &end) in ends.iter().enumerate() {
        let at = [i / (counts[1] * counts[2]), i / counts[2] % counts[1], i % counts[2]];
        let origin: Vec<usize> = (0..3).map(|k| at[k] * t.tile[k]).collect();
        let place = |z: usize, y: usize, x: usize| {
            let (z, y, x) = (origin[0] + z, origin[1] + y, origin[2] + x);
            let inside = z < t.extents[0] && y < t.extents[1] && x < t.extents[2];
            inside.then_some((z * t.extents[1] + y) * t.extents[2] + x)
        };
        let mut r = Reader { bytes: &payload[..4 * end as usize], at: 4 * start };
        let values = tile(&mut r, &t, w, h.dtype, h.mode, h.used, &place)?;
        assert_eq!(r.at, 4 * end as usize);
        start = end as usize;
        for z in 0..t.tile[0] {
            for y in 0..t.tile[1] {
                for x in 0..t.tile[2] {
                    if let Some(p) = place(z, y, x) {
                        // Value k · m + i of the array is value i · c + k of the chunk.
                        let m = n / t.c;
                        out[p % m * t.c + p / m] = values[(z * t.tile[1] + y) * t.tile[2] + x];
                    }
                }
            }
        }
    }
    let bytes = out
        .into_iter()
        .flat_map(|v| {
            let mut b = v.to_le_bytes()[..w].to_vec();
            if h.dtype.big_endian {
                b.reverse();
            }
            b
        })
        .collect();
    Some(bytes)
}

/// The place in a tile of (plane, l, r, c).
fn place_of(g: usize, plane: usize, l: usize, r: usize, c: usize) -> usize {
    match g {
        3 => (plane * 16 + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
        2 => (16 * plane + 4 * (l / 8) + r) * 32 + 4 * (l % 8) + c,
        _ => 512 * plane + 128 * r + 4 * l + c,
    }
}

/// A number of so many bits, its sign widened.
fn signed(v: i128, bits: usize) -> i128 {
    let v = v & ((1 << bits) - 1);
    if v >> (bits - 1) == 1 { v - (1 << bits) } else { v }
}

/// A number of a stream's bits, lowest first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self, n: u32) -> u128 {
        let bit = |at: usize| u128::from(self.bytes[at / 8] >> (at % 8) & 1);
        let x = (0..n as usize).map(|k| bit(self.at + k) << k).sum();
        self.at += n as usize;
        x
    }
}

/// §3.3: the width of a class's field, and what is added to it.
fn class_of_lengths(shape: u32, l: i64, t: i64, class: u32) -> (u32, u128) {
    let highs = match shape {
        0 => vec![],
        1 => vec![0],
        2 => vec![l],
        3 => vec![l, l + 1, l + 2],
        4 => vec![0, l, l + 2],
        5 => vec![l, l + 1, l + 2, l + 3, l + 4, l + 5, l + 7],
        _ => vec![0, l, l + 1, l + 2, l + 3, l + 4, l + 6],
    };
    let h = |i: i64| if i < 0 { -1 } else { highs.get(i as usize).map_or(t, |&s| s.min(t)) };
    let (this, before) = (h(class.into()), h(i64::from(class) - 1));
    match this {
        0 if before == -1 => (0, 0),
        _ if this == before + 1 => (this as u32 - 1, 1 << (this - 1)),
        _ => (this as u32, 0),
    }
}

/// Bits of the field of a value with this number in a tile with this head.
pub(super) fn width(head: &[u32; 3], number: u32) -> u32 {
    let [first, second, third] = *head;
    let (l, t) = (second & 63, second >> 6 & 127);
    class_of_lengths(first >> 5 & 7, l.into(), t.into(), third >> (3 * number) & 7).0
}

/// The bits of a tile's values, in order of z, y, x.
fn tile(
    r: &mut Reader<'_>,
    t: &Tiles,
    w: usize,
    dtype: Dtype,
    mode: Mode,
    used: f64,
    place: &dyn Fn(usize, usize, usize) -> Option<usize>,
) -> Option<Vec<u64>> {
    let end = r.bytes.len();
    let head = r.word();
    let class = head & 3;
    let [_, sy, sx] = t.tile;
    if class == 3 {
        let value = |p: usize| place(p / sx / sy, p / sx % sy, p % sx).map_or(0, |_| r.value(w));
        return Some((0..4096).map(value).collect());
    }
    let grid_rank = t.g;
    let mut d = vec![0i128; 4096];
    let predictor = head >> 2 & 3;
    let wide = class != 0;
    let second = if wide { r.word() } else { 0 };
    let third = if wide { r.word() } else { 0 };
    let (has, uniform) = match wide {
        false => (head >> 9 & 1 == 1, head >> 10 & 1 == 1),
        true => (third >> 24 & 1 == 1, third >> 25 & 1 == 1),
    };
    let map = wide && head >> 4 & 1 == 1;
    let mut base = match (class, w) {
        (0, 4) => i128::from(head as i32 >> 11) * 2,
        (0, _) => i128::from(head as i32 >> 11) * 512,
        _ => 0,
    };
    let mut masks = [[0u32; 32]; 4];
    let mut count = 0;
    let mut values = Vec::new();
    if !(class == 0 && r.at == end) {
        if class != 0 {
            base = signed(r.value(w).into(), 8 * w);
        }
        let word = if has { r.word() } else { 0 };
        count = word >> 8;
        let slices: Vec<usize> =
            (0..4).map(|k| if class == 0 { 1 + (head >> (4 + k) & 1) as usize } else { 0 }).collect();
        let total: usize = slices.iter().sum();
        let words: Vec<u32> = (0..total.div_ceil(2)).map(|_| r.word()).collect();
        let modes: Vec<u32> = words.iter().flat_map(|w| [w & 0xFFFF, w >> 16]).collect();
        // Every plane in order of coding: block, number (8S for the mask), mode.
        let mut planes = Vec::new();
        let mut first = 0;
        for (b, &s) in slices.iter().enumerate() {
            let of = |p: usize| modes[first + p / 8] >> (2 * (p % 8)) & 3;
            if s > 0 {
                planes.extend((0..8 * s - 1).rev().map(|p| (b, p, of(p))));
                planes.push((b, 8 * s - 1, of(8 * s - 1)));
            }
            if wide {
                planes.extend((0..3).rev().map(|p| (b, p, head >> (8 + 6 * b + 2 * p) & 3)));
            }
            if has {
                planes.push((b, MASK, word >> (2 * b) & 3));
            }
            first += s;
        }
        let ballots: Vec<u32> = planes.iter().map(|&(.., mode)| if mode > 1 { r.word() } else { 0 }).collect();
        let mut nibbles = vec![Vec::new(); planes.len()];
        let mut taken = 0;
        let mut word = 0;
        for (k, &(.., mode)) in planes.iter().enumerate() {
            for _ in 0..if mode == 3 { ballots[k].count_ones() } else { 0 } {
                if taken % 8 == 0 {
                    word = r.word();
                }
                nibbles[k].push(word >> (4 * (taken % 8)) & 15);
                taken += 1;
            }
        }
        let mut content: Vec<[u32; 32]> = vec![[0; 32]; planes.len()];
        for (k, &(.., mode)) in planes.iter().enumerate() {
            for (l, word) in content[k].iter_mut().enumerate() {
                if mode == 1 || (mode == 2 && ballots[k] >> l & 1 == 1) {
                    *word = r.word();
                }
            }
        }
        let begin = r.at;
        for (k, &(.., mode)) in planes.iter().enumerate() {
            let mut of_lane = nibbles[k].iter();
            for l in (0..32).filter(|l| mode == 3 && ballots[k] >> l & 1 == 1) {
                let nibble = of_lane.next().unwrap();
                for byte in (0..4).filter(|byte| nibble >> byte & 1 == 1) {
                    content[k][l] |= u32::from(r.bytes[r.at]) << (8 * byte);
                    r.at += 1;
                }
            }
        }
        r.at = begin + (r.at - begin).next_multiple_of(4);
        let plane_of = |b: usize, p: usize| {
            planes.iter().zip(&content).find(|(at, _)| (at.0, at.1) == (b, p)).map_or([0; 32], |(_, words)| *words)
        };
        (0..4).for_each(|b| masks[b] = plane_of(b, MASK));
        for b in (0..4).filter(|_| wide) {
            let numbers = [0, 1, 2].map(|p| plane_of(b, p));
            let (l, t, z) = (second & 63, second >> 6 & 127, second >> 13 & 63);
            let mut bits = Bits { bytes: r.bytes, at: 8 * r.at };
            for lane in 0..32 {
                for (half, row, c) in (0..2).flat_map(|h| (0..4).flat_map(move |r| (0..4).map(move |c| (h, r, c)))) {
                    let bit = 8 * [0, 2, 1, 3][c] + 4 * half + row;
                    let number: u32 = (0..3).map(|p| (numbers[p][lane] >> bit & 1) << p).sum();
                    let (width, more) = class_of_lengths(head >> 5 & 7, l.into(), t.into(), third >> (3 * number) & 7);
                    let u = bits.next(width) + more;
                    let whole = (u / 2) as i128;
                    let residual = if u.is_multiple_of(2) { whole } else { -whole - 1 } * (1 << z);
                    d[place_of(grid_rank, 2 * b + half, lane, row, c)] = residual;
                }
            }
            let filling = bits.at.next_multiple_of(32) - bits.at;
            assert_eq!(bits.next(filling as u32), 0);
            r.at = bits.at / 8;
        }
        values = (0..if !has {
            0
        } else if uniform {
            1
        } else {
            count
        })
            .map(|_| r.value(w))
            .collect();

        let mut first = 0;
        for (b, &s) in slices.iter().enumerate() {
            let plane = |p: usize| plane_of(b, p);
            let quiet = modes[first..first + s].iter().all(|&m| m == 0);
            for half in (0..2).filter(|_| s > 0 && !quiet) {
                for l in 0..32 {
                    for row in 0..4 {
                        for c in 0..4 {
                            let p_c = [0, 2, 1, 3][c];
                            let bit = |p: usize| i128::from(plane(p)[l] >> (8 * p_c + 4 * half + row) & 1);
                            let sign = bit(8 * s - 1);
                            let mut m = 0;
                            for k in 0..s {
                                let as_bytes = k + 1 < s && modes[first + k] == 0x5555;
                                for p in (8 * k..8 * k + 8).filter(|&p| p < 8 * s - 1) {
                                    let stored = if as_bytes {
                                        // The slice's words in order: planes from the highest down.
                                        let word = plane(8 * k + 7 - (4 * half + row))[l];
                                        i128::from(word >> (8 * p_c + p % 8) & 1)
                                    } else {
                                        bit(p) ^ sign
                                    };
                                    m |= stored << p;
                                }
                            }
                            let most = 1 << (8 * s - 1);
                            d[place_of(t.g, 2 * b + half, l, row, c)] = m - sign * most;
                        }
                    }
                }
            }
            first += s;
        }
    }
    // Class 0: whole numbers.
    let bits = if class == 0 { 100 } else { 8 * w };
    let mut v: Vec<i128> = d.into_iter().map(|d| signed(d, bits)).collect();
    let mut sum = |needed: u32, step: usize, has: &dyn Fn(usize) -> bool| {
        for i in (0..4096).filter(|&i| predictor >= needed && has(i)) {
            v[i] = signed(v[i] + v[i - step], bits);
        }
    };
    sum(1, 1, &|i| if t.g == 1 { i > 0 } else { i % 32 > 0 });
    sum(2, 32, &|i| if t.g == 2 { i >= 32 } else { i % 512 >= 32 });
    sum(3, 512, &|i| i >= 512);
    if class == 0 && v.iter().any(|v| !(-4096..=4095).contains(v)) {
        return None;
    }
    let s = used * 1.9921875;
    let mut out: Vec<u64> = v
        .into_iter()
        .map(|v| {
            let q = signed(base + v, 8 * w);
            match (class, w) {
                (0 | 1, 4) => ((q as f32) * s as f32).to_bits().into(),
                (0 | 1, _) => (q as f64 * s).to_bits(),
                (2, 4) if map => (q as f32 * 2f64.powi(second as i32 >> 20) as f32).to_bits().into(),
                (2, _) if map => {
                    (q as f64 * f64::from_bits((((second as i32) >> 20) + 1023) as u64 * (1 << 52))).to_bits()
                }
                _ if dtype.class == Class::Float => {
                    let h = (q >> (8 * w - 1)) & ((1 << (8 * w - 1)) - 1);
                    ((q ^ h) & ((1 << (8 * w)) - 1)) as u64
                }
                _ => (q & ((1 << (8 * w)) - 1)) as u64,
            }
        })
        .collect();
    assert!(mode != Mode::PointwiseRelative && (class > 1 || mode != Mode::Lossless));
    let mut next = values.iter().cycle();
    for (b, mask) in masks.iter().enumerate() {
        for (l, word) in mask.iter().enumerate() {
            for bit in (0..32).filter(|bit| word >> bit & 1 == 1) {
                let (p_c, half, row) = (bit / 8, bit / 4 % 2, bit % 4);
                out[place_of(t.g, 2 * b + half, l, row, [0, 2, 1, 3][p_c])] = *next.next().unwrap();
            }
        }
    }
    assert_eq!(count, masks.as_flattened().iter().map(|w| w.count_ones()).sum::<u32>());
    Some(out)
}
