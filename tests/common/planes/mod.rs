// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` put together from codecs/src/codec/planes/FORMAT.md §3, plane by plane and field by field. No
//! choice is made here: modes, ballots, slices and bins of lengths are what the caller says, so that frames come out
//! which no writer makes.
//!
//! ```text
//! Tile    class, predictor, base, how lengths are stored, four blocks of bit planes, fields and a mask, values of
//!         exceptions
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
    /// Lanes that ballot and nibbles name beyond those that are not zero: of lane l the bytes that 5 · l has in its
    /// lowest four bits.
    pub loose: u32,
}

/// A block: bit planes, the lowest first, and the mask. In classes 1 and 2 the u of every value, at 32 · lane + bit;
/// only the bits that belong to its field are stored.
#[derive(Clone, Default)]
pub struct Block {
    pub planes: Vec<Plane>,
    pub fields: Vec<u64>,
    pub mask: Plane,
}

/// §3.2 and §3.4: how classes 1 and 2 store residuals.
#[derive(Clone, Copy, Default)]
pub struct Lengths {
    /// L, T and z.
    pub low: u32,
    pub highest: u32,
    pub zeros: u32,
    /// The bin of each number.
    pub bins: [u32; 8],
    /// e of map 1.
    pub power: Option<i32>,
}

impl Lengths {
    /// Number j is bin j, or the last one below that holds a length.
    pub fn new(low: u32, highest: u32) -> Lengths {
        Lengths { low, highest, bins: [0, 1, 2, 3, 4, 5, 6, 7], ..Lengths::default() }.held()
    }

    /// In place of bins that hold no length the last ones below that do.
    fn held(self) -> Lengths {
        let holds = |&bin: &u32| self.range(bin).0 <= self.range(bin).1;
        Lengths { bins: self.bins.map(|bin| (0..=bin).rev().find(holds).expect("bin 0 holds 0")), ..self }
    }

    /// Every number says the last bin, whose fields have T bits: 8 or more.
    pub fn whole(highest: u32) -> Lengths {
        Lengths { bins: [7; 8], ..Lengths::new(0, highest) }
    }

    /// u has z bits less.
    pub fn zeros(self, zeros: u32) -> Lengths {
        Lengths { zeros, ..self }
    }

    /// Map 1, with e.
    pub fn power(self, e: i32) -> Lengths {
        Lengths { power: Some(e), ..self }
    }

    /// The shortest and the longest length of a bin; where it holds none, the shortest is above.
    fn range(&self, bin: u32) -> (u32, u32) {
        let l = self.low;
        let highest = [0, l, l + 1, l + 2, l + 3, l + 4, l + 6];
        let h = |i: u32| highest.get(i as usize).map_or(self.highest, |&s| s.min(self.highest));
        (if bin == 0 { 0 } else { h(bin - 1) + 1 }, h(bin))
    }

    /// Bits of the field of a value with this number.
    pub fn width(&self, number: u32) -> u32 {
        match self.range(self.bins[number as usize]) {
            (0, 0) => 0,
            (shortest, longest) if shortest == longest => longest - 1,
            (_, longest) => longest,
        }
    }

    /// The first number whose bin holds this length.
    fn number(&self, length: u32) -> u32 {
        let holds = |&number: &u32| {
            let (shortest, longest) = self.range(self.bins[number as usize]);
            (shortest..=longest).contains(&length)
        };
        (0..8).find(holds).unwrap_or_else(|| panic!("no number for a length of {length}"))
    }
}

/// A tile that is not raw.
#[derive(Clone)]
pub struct Tile {
    pub class: u32,
    pub predictor: u32,
    /// In class 0 what its field says, else the base.
    pub base: i64,
    /// Classes 1 and 2.
    pub lengths: Lengths,
    pub blocks: [Block; 4],
    /// Values of the exceptions, in their order; without any there is no mask. One where they are uniform.
    pub values: Vec<u64>,
    pub uniform: bool,
}

/// What a payload consists of, in its order.
#[derive(Clone, Default)]
pub struct Parts {
    /// One word, or three.
    pub head: Vec<u32>,
    pub base: Vec<u8>,
    pub mask: Option<u32>,
    pub modes: Vec<u16>,
    pub ballots: Vec<u32>,
    /// Four bits in a byte.
    pub nibbles: Vec<u8>,
    pub full: Vec<u32>,
    pub bytes: Vec<u8>,
    /// Of each block, in classes 1 and 2.
    pub bits: Vec<Vec<u32>>,
    pub values: Vec<u8>,
}

impl Tile {
    /// Class 0. Every plane absent, so all residuals are zero.
    pub fn quanta(predictor: u32, slices: [usize; 4]) -> Tile {
        let planes = slices.map(|s| vec![Plane::default(); 8 * s]);
        let blocks = planes.map(|planes| Block { planes, ..Block::default() });
        let lengths = Lengths::default();
        Tile { class: 0, predictor, base: 0, lengths, blocks, values: Vec::new(), uniform: false }
    }

    /// Class 1 or 2. Every plane absent, so all values have number 0, and of their fields all bits are 0.
    pub fn wide(class: u32, predictor: u32, lengths: Lengths) -> Tile {
        let block = Block { planes: vec![Plane::default(); 3], fields: vec![0; 1024], ..Block::default() };
        Tile { class, lengths, blocks: [0; 4].map(|_| block.clone()), ..Tile::quanta(predictor, [0; 4]) }
    }

    /// With these planes: of (block, number).
    pub fn with(mut self, mut plane: impl FnMut(usize, usize) -> Plane) -> Tile {
        for (k, block) in self.blocks.iter_mut().enumerate() {
            (0..block.planes.len()).for_each(|p| block.planes[p] = plane(k, p));
        }
        self
    }

    /// With these bits in the fields: of (block, lane, bit).
    pub fn fields(mut self, mut u: impl FnMut(usize, u32, u32) -> u64) -> Tile {
        for (k, block) in self.blocks.iter_mut().enumerate() {
            block.fields = (0..1024).map(|i| u(k, i / 32, i % 32)).collect();
        }
        self
    }

    /// With planes of one mode (0: full) and fields that say these residuals: of (block, lane, bit).
    pub fn saying(mut self, mode: u8, mut d: impl FnMut(usize, u32, u32) -> i64) -> Tile {
        let (class, slices, lengths) = (self.class, self.slices(), self.lengths);
        let d: Vec<Vec<i64>> = (0..4).map(|k| (0..1024).map(|i| d(k, i / 32, i % 32)).collect()).collect();
        let numbers: Vec<Vec<u64>> = if class == 0 {
            (0..4).map(|k| d[k].iter().map(|&d| folded(slices[k], d)).collect()).collect()
        } else {
            // §3.4: u, its length, a number for that.
            let u = |d: i64| {
                assert!(d >> lengths.zeros << lengths.zeros == d, "{d} is no multiple of 2^{}", lengths.zeros);
                let d = d >> lengths.zeros;
                ((d << 1) ^ (d >> 63)) as u64
            };
            self = self.fields(|k, l, bit| u(d[k][(32 * l + bit) as usize]));
            let length = |u: u64| u64::BITS - u.leading_zeros();
            let number = |&u: &u64| u64::from(lengths.number(length(u)));
            self.blocks.iter().map(|block| block.fields.iter().map(number).collect()).collect()
        };
        self.with(|k, p| {
            let mut words = [0; 32];
            numbers[k].iter().enumerate().for_each(|(i, n)| words[i / 32] |= ((n >> p & 1) as u32) << (i % 32));
            Plane { mode: mode.max(u8::from(words != [0; 32])), words, loose: 0 }
        })
    }

    /// With planes of these modes that say, by the predictor, what each place of the tile has: of (block, number,
    /// words). A plane that is not zero is not absent: it is full.
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

    /// §3.2 and §3.3, for values of `size` bytes.
    pub fn parts(&self, size: usize) -> Parts {
        let exceptions = !self.values.is_empty();
        let marked = u32::from(exceptions) | u32::from(self.uniform) << 1;
        let first = self.class | self.predictor << 2;
        let mut parts = Parts::default();
        if self.class == 0 {
            let slices = self.slices().iter().enumerate().map(|(k, &s)| (s as u32 - 1) << (4 + k)).sum::<u32>();
            parts.head = vec![first | slices | marked << 9 | (self.base as u32) << 11];
        } else {
            let Lengths { low, highest, zeros, bins, power } = self.lengths;
            let modes = self.blocks.iter().flat_map(|b| &b.planes).rev().fold(0, |m, p| m << 2 | u32::from(p.mode));
            let numbers = bins.iter().rev().fold(0, |n, bin| n << 3 | bin);
            parts.head = vec![
                first | u32::from(power.is_some()) << 4 | modes << 8,
                low | highest << 6 | zeros << 13 | (power.unwrap_or(0) as u32) << 20,
                numbers | marked << 24,
            ];
            parts.base = self.base.to_le_bytes()[..size].to_vec();
            parts.bits = self.blocks.iter().map(|block| bits(&self.lengths, block)).collect();
        }
        let (mut marks, mut modes) = (0, 0);
        for (k, block) in self.blocks.iter().enumerate() {
            let n = block.planes.len();
            if self.class > 0 {
                block.planes.iter().rev().for_each(|plane| parts.plane(plane));
            }
            for slice in block.planes.chunks_exact(8) {
                parts.modes.push(slice.iter().rev().fold(0, |m, p| m << 2 | u16::from(p.mode)));
            }
            for p in (0..n - 1).rev().chain([n - 1]).filter(|_| self.class == 0) {
                parts.plane(&block.planes[p]);
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

    /// The same, whole.
    pub fn payload(&self, size: usize) -> Vec<u8> {
        self.parts(size).payload()
    }
}

impl Parts {
    fn plane(&mut self, plane: &Plane) {
        let named = |l: u32| plane.words[l as usize] != 0 || plane.loose >> l & 1 == 1;
        let lanes: Vec<u32> = (0..32).filter(|&l| named(l)).collect();
        if plane.mode == 2 {
            self.ballots.push(lanes.iter().map(|l| 1 << l).sum());
        }
        match plane.mode {
            0 | 3 => assert!(lanes.is_empty(), "a plane that is absent is zero, one that is refused has nothing"),
            1 => self.full.extend(plane.words),
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
        let mut out: Vec<u8> = self.head.iter().flat_map(|h| h.to_le_bytes()).collect();
        let fill = |out: &mut Vec<u8>| out.resize(out.len().next_multiple_of(4), 0);
        out.extend(&self.base);
        out.extend(self.mask.iter().flat_map(|m| m.to_le_bytes()));
        out.extend(self.modes.iter().flat_map(|m| m.to_le_bytes()));
        fill(&mut out);
        out.extend(self.ballots.iter().flat_map(|b| b.to_le_bytes()));
        out.extend(self.nibbles.chunks(2).map(|n| n[0] | n.get(1).unwrap_or(&0) << 4));
        fill(&mut out);
        out.extend(self.full.iter().flat_map(|w| w.to_le_bytes()));
        out.extend(&self.bytes);
        fill(&mut out);
        out.extend(self.bits.iter().flatten().flat_map(|w| w.to_le_bytes()));
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
    let (layer, r, c) = (2 * block + bit / 4 % 2, bit % 4, BYTE_OF_COLUMN[bit / 8]);
    match rank {
        1 => 512 * layer + 128 * r + 4 * l + c,
        _ => 32 * (16 * layer + 4 * (l / 8) + r) + 4 * (l % 8) + c,
    }
}

/// §4, backwards: the number whose bits are those of the planes of class 0.
fn folded(slices: usize, d: i64) -> u64 {
    let top = 1u64 << (8 * slices - 1);
    ((d ^ d >> 63) as u64 & (top - 1)) | if d < 0 { top } else { 0 }
}

/// §3.4: the fields of a block, one behind the other.
fn bits(lengths: &Lengths, block: &Block) -> Vec<u32> {
    let (mut words, mut at) = (Vec::new(), 0);
    for i in 0..1024 {
        // The lane, then layer, row and column.
        let (l, layer, r, c) = (i / 32, i / 16 % 2, i / 4 % 4, i % 4);
        let bit = 8 * BYTE_OF_COLUMN[c] + 4 * layer + r;
        let number = block.planes.iter().rev().fold(0, |n, p| n << 1 | (p.words[l] >> bit & 1));
        for k in 0..lengths.width(number) {
            words.resize(at / 32 + 1, 0);
            words[at / 32] |= ((block.fields[32 * l + bit] >> k & 1) as u32) << (at % 32);
            at += 1;
        }
    }
    words
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
