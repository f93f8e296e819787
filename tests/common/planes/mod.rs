// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` put together from src/codec/planes/FORMAT.md §3, plane by plane. No choice is made here: modes, ballots and
//! slices are what the caller says, so that frames come out which no writer makes.
//!
//! ```text
//! Tile    class, predictor, base, four blocks of bit planes and a mask, values of exceptions
//! Parts   the parts of its payload, each of which a test may change
//! frame   payloads, one behind the other, in a draft of a frame
//! ```

pub mod by_hand;
pub mod random;
pub mod refused;

use super::draft::Draft;

/// p(c) of §3.1, its own inverse.
pub const BYTE_OF_COLUMN: [usize; 4] = [0, 2, 1, 3];

/// A bit plane: a word for each lane.
#[derive(Clone, Copy, Default)]
pub struct Plane {
    pub mode: u8,
    pub words: [u32; 32],
    /// Lanes that ballot and nibbles name beyond those that are not zero: of lane l the bytes that 5 · l has in its lowest four bits.
    pub loose: u32,
}

/// A block: bit planes, the lowest first, and the mask.
#[derive(Clone, Default)]
pub struct Block {
    pub planes: Vec<Plane>,
    pub mask: Plane,
}

/// A tile that is not raw.
#[derive(Clone)]
pub struct Tile {
    pub class: u32,
    pub predictor: u32,
    /// In class 0 what its field says, else the base.
    pub base: i64,
    pub blocks: [Block; 4],
    /// Values of the exceptions, in their order; without any there is no mask. One where they are uniform.
    pub values: Vec<u64>,
    pub uniform: bool,
}

/// What a payload consists of, in its order.
#[derive(Clone, Default)]
pub struct Parts {
    pub head: u32,
    pub base: Vec<u8>,
    pub mask: Option<u32>,
    pub modes: Vec<u16>,
    pub ballots: Vec<u32>,
    /// Four bits in a byte.
    pub nibbles: Vec<u8>,
    pub words: Vec<u32>,
    pub bytes: Vec<u8>,
    pub values: Vec<u8>,
}

impl Tile {
    /// Every plane absent, so all residuals are zero.
    pub fn new(class: u32, predictor: u32, slices: [usize; 4]) -> Tile {
        let blocks = slices.map(|s| Block { planes: vec![Plane::default(); 8 * s], mask: Plane::default() });
        Tile { class, predictor, base: 0, blocks, values: Vec::new(), uniform: false }
    }

    /// With these planes: of (block, number).
    pub fn with(mut self, mut plane: impl FnMut(usize, usize) -> Plane) -> Tile {
        for (k, block) in self.blocks.iter_mut().enumerate() {
            (0..block.planes.len()).for_each(|p| block.planes[p] = plane(k, p));
        }
        self
    }

    /// With planes of one mode that say these residuals: of (block, lane, bit).
    pub fn saying(self, mode: u8, mut d: impl FnMut(usize, u32, u32) -> i64) -> Tile {
        let (class, slices) = (self.class, self.slices());
        let numbers: Vec<Vec<u64>> =
            (0..4).map(|k| (0..1024).map(|i| folded(class, slices[k], d(k, i / 32, i % 32))).collect()).collect();
        self.with(|k, p| {
            let mut words = [0; 32];
            numbers[k].iter().enumerate().for_each(|(i, n)| words[i / 32] |= ((n >> p & 1) as u32) << (i % 32));
            Plane { mode, words, loose: 0 }
        })
    }

    /// With planes of these modes that say, by the predictor, what each place of the tile has: of (block, number, words). A plane that
    /// is not zero is not absent: it is full.
    pub fn meaning(mut self, rank: u32, v: &[i64], mut mode: impl FnMut(usize, usize) -> u8) -> Tile {
        let mut d = v.to_vec();
        let e = extents(rank);
        for (axis, stride) in [(2, 1), (1, e[2]), (0, e[1] * e[2])].into_iter().take(self.predictor as usize) {
            for i in (stride..4096).rev().filter(|i| i / stride % e[axis] > 0) {
                d[i] -= d[i - stride];
            }
        }
        let at = |k: usize, l: u32, bit: u32| d[place(rank, k, l as usize, bit as usize)];
        for k in 0..4 {
            let wide = (0..1024).any(|i| i8::try_from(at(k, i / 32, i % 32)).is_err());
            let slices = if wide { 2 } else { self.blocks[k].planes.len() / 8 };
            self.blocks[k].planes.resize(8 * slices, Plane::default());
        }
        let mut tile = self.saying(1, at);
        for (k, block) in tile.blocks.iter_mut().enumerate() {
            for (p, plane) in block.planes.iter_mut().enumerate() {
                let mode = mode(k, p);
                plane.mode = if mode == 0 && plane.words != [0; 32] { 1 } else { mode };
            }
        }
        tile
    }

    /// With exceptions where these masks say so: of each block. One value for all, or as many as there are.
    pub fn except(mut self, masks: [Plane; 4], mut value: impl FnMut() -> u64, uniform: bool) -> Tile {
        let count: u32 = masks.iter().flat_map(|m| m.words).map(u32::count_ones).sum();
        for (block, mask) in self.blocks.iter_mut().zip(masks) {
            block.mask = mask;
        }
        self.values = (0..if uniform { 1 } else { count }).map(|_| value()).collect();
        self.uniform = uniform;
        self
    }

    pub fn base(mut self, base: i64) -> Tile {
        self.base = base;
        self
    }

    pub fn slices(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|k| self.blocks[k].planes.len() / 8)
    }

    /// §3.2, for values of `size` bytes.
    pub fn parts(&self, size: usize) -> Parts {
        let exceptions = !self.values.is_empty();
        let mut head = self.class | self.predictor << 2 | u32::from(exceptions) << 9 | u32::from(self.uniform) << 10;
        for (k, &slices) in self.slices().iter().enumerate() {
            head |= if self.class > 0 { (slices as u32) << (16 + 4 * k) } else { (slices as u32 - 1) << (4 + k) };
        }
        let mut parts = Parts { head, ..Parts::default() };
        if self.class == 0 {
            parts.head |= (self.base as u32) << 11;
        } else {
            parts.base = self.base.to_le_bytes()[..size].to_vec();
        }
        let (mut marks, mut modes) = (0, 0);
        for (k, block) in self.blocks.iter().enumerate() {
            for slice in block.planes.chunks(8) {
                parts.modes.push(slice.iter().rev().fold(0, |m, p| m << 2 | u16::from(p.mode)));
            }
            let n = block.planes.len();
            for p in (0..n.max(1) - 1).rev().chain(n.checked_sub(1)) {
                let slice = &block.planes[p / 8 * 8..][..8];
                if p / 8 + 1 < n / 8 && slice.iter().all(|p| p.mode == 1) {
                    // Its words stand where the first of its planes would.
                    parts.words.extend(if p % 8 == 7 {
                        as_bytes(slice, signs(self.class, &block.planes))
                    } else {
                        Vec::new()
                    });
                } else {
                    parts.plane(&block.planes[p]);
                }
            }
            if exceptions {
                parts.plane(&block.mask);
                modes |= u32::from(block.mask.mode) << (2 * k);
                marks += block.mask.words.iter().map(|w| w.count_ones()).sum::<u32>();
            }
        }
        parts.mask = exceptions.then_some(modes | marks << 8);
        parts.values = self.values.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect();
        parts
    }

    /// §3.2, whole.
    pub fn payload(&self, size: usize) -> Vec<u8> {
        self.parts(size).payload()
    }
}

impl Parts {
    fn plane(&mut self, plane: &Plane) {
        let named = |l: u32| plane.words[l as usize] != 0 || plane.loose >> l & 1 == 1;
        let lanes: Vec<u32> = (0..32).filter(|&l| named(l)).collect();
        if plane.mode >= 2 {
            self.ballots.push(lanes.iter().map(|l| 1 << l).sum());
        }
        match plane.mode {
            0 => assert!(lanes.is_empty(), "a plane that is absent is zero"),
            1 => self.words.extend(plane.words),
            2 => self.words.extend(lanes.iter().map(|&l| plane.words[l as usize])),
            _ => {
                for l in lanes {
                    let extra = if plane.loose >> l & 1 == 1 { 5 * l as u8 } else { 0 };
                    let bytes = plane.words[l as usize].to_le_bytes();
                    let named: Vec<usize> = (0..4).filter(|&k| bytes[k] != 0 || extra >> k & 1 == 1).collect();
                    self.nibbles.push(named.iter().map(|k| 1 << k).sum());
                    self.bytes.extend(named.iter().map(|&k| bytes[k]));
                }
            }
        }
    }

    pub fn payload(&self) -> Vec<u8> {
        let mut out = self.head.to_le_bytes().to_vec();
        let fill = |out: &mut Vec<u8>| out.resize(out.len().next_multiple_of(4), 0);
        out.extend(&self.base);
        out.extend(self.mask.iter().flat_map(|m| m.to_le_bytes()));
        out.extend(self.modes.iter().flat_map(|m| m.to_le_bytes()));
        fill(&mut out);
        out.extend(self.ballots.iter().flat_map(|b| b.to_le_bytes()));
        out.extend(self.nibbles.chunks(2).map(|n| n[0] | n.get(1).unwrap_or(&0) << 4));
        fill(&mut out);
        out.extend(self.words.iter().flat_map(|w| w.to_le_bytes()));
        out.extend(&self.bytes);
        fill(&mut out);
        out.extend(&self.values);
        out
    }
}

/// §3.1: the extents of a tile.
pub fn extents(rank: u32) -> [usize; 3] {
    [[1, 1, 4096], [1, 128, 32], [8, 16, 32]][rank as usize - 1]
}

/// §3.1: the place in the tile, x fastest, of a bit of a lane of a block.
pub fn place(rank: u32, block: usize, l: usize, bit: usize) -> usize {
    let (plane, r, c) = (2 * block + bit / 4 % 2, bit % 4, BYTE_OF_COLUMN[bit / 8]);
    match rank {
        1 => 512 * plane + 128 * r + 4 * l + c,
        _ => 32 * (16 * plane + 4 * (l / 8) + r) + 4 * (l % 8) + c,
    }
}

/// §4, backwards: the number whose bits are those of the planes.
fn folded(class: u32, slices: usize, d: i64) -> u64 {
    let Some(top) = (8 * slices as u32).checked_sub(1).map(|top| 1u64 << top) else { return 0 };
    let magnitude = if class == 0 { d ^ d >> 63 } else { d.wrapping_abs() };
    (magnitude as u64 & (top - 1)) | if d < 0 { top } else { 0 }
}

/// What §3.2 takes back from the planes where a slice is stored as bytes are: the signs in class 0, whose bytes are those of d.
fn signs(class: u32, planes: &[Plane]) -> [u32; 32] {
    if class == 0 { planes[planes.len() - 1].words } else { [0; 32] }
}

/// §3.2, a slice that is stored as bytes are: word 32 · row + lane holds in byte p what the planes have in the bits 8p + row.
fn as_bytes(slice: &[Plane], signs: [u32; 32]) -> Vec<u32> {
    let byte = |l: usize, bit: usize| (0..8).map(|q| ((slice[q].words[l] ^ signs[l]) >> bit & 1) << q).sum::<u32>();
    (0..256).map(|i| (0..4).map(|p| byte(i % 32, 8 * p + i / 32) << (8 * p)).sum()).collect()
}

/// Class 3: a head and values.
pub fn raw(values: &[u8]) -> Vec<u8> {
    [&3u32.to_le_bytes(), values].concat()
}

/// A frame of tiles' payloads.
pub fn frame(mode: u8, bound: f64, kind: u32, dims: &[u32], tiles: &[Vec<u8>]) -> Draft {
    let mut end = 0;
    let table = tiles.iter().flat_map(|tile| {
        end += tile.len() as u32 / 4;
        end.to_le_bytes()
    });
    Draft::new(5, mode, bound, kind, dims, vec![table.collect(), tiles.concat()])
}
