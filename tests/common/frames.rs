// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `lorenzo` made from codecs/src/codec/lorenzo/FORMAT.md §3 and random numbers: whole, but such as no writer
//! writes. Every reader must read them, and all must find the same values.

use super::draft::{self, Draft};
use super::generate::Random;

/// Bits from the low end.
#[derive(Default)]
pub struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    pub fn put(&mut self, value: u64, n: u32) {
        for k in 0..n {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            self.bytes[self.count / 8] |= ((value >> k & 1) as u8) << (self.count % 8);
            self.count += 1;
        }
    }

    /// Zeros up to the next u32.
    pub fn words(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes
    }
}

/// Symbols of a codebook.
const SYMBOLS: usize = 188;
/// The symbol for zeros up to the end of the tile.
const END: usize = 0;

/// What a symbol other than `END` stands for (§3.2): its fewest zeros, residuals behind them, and bits that belong to
/// it.
fn meaning(symbol: usize) -> (usize, usize, u32) {
    let run = |class: usize| match (class, 4 + class.saturating_sub(16) / 2) {
        (0..16, _) => (class + 1, 0),
        (_, k) => ((2 + class % 2) << (k - 1), k as u32 - 1),
    };
    let ((zeros, bits), residuals) = match symbol {
        ..35 => (run(symbol - 1), 0),
        35..66 => ((0, 0), 1),
        66..120 => ((0, 4 + (symbol as u32 - 66) / 2), 1),
        _ => (run((symbol - 120) / 2), 1),
    };
    (zeros, residuals, bits)
}

/// A whole codebook: (symbol, length, codeword with its first bit lowest).
fn codebook(random: &mut Random) -> Vec<(usize, u32, u64)> {
    // Split leaves of a tree at random, then hand them out.
    let mut leaves = vec![1u32, 1];
    let most = 2 + random.below(SYMBOLS - 1);
    for _ in 0..800 {
        let at = random.below(leaves.len());
        if leaves.len() < most && leaves[at] < 11 {
            leaves[at] += 1;
            leaves.push(leaves[at]);
        }
    }
    let mut symbols: Vec<usize> = (0..SYMBOLS).collect();
    for k in 0..leaves.len() {
        let other = k + random.below(symbols.len() - k);
        symbols.swap(k, other);
    }
    let mut book: Vec<(u32, usize)> = leaves.into_iter().zip(symbols).collect();
    book.sort_unstable();
    let (mut next, mut before) = (0u64, 0);
    book.into_iter()
        .map(|(len, symbol)| {
            next <<= len - before;
            before = len;
            let word = next.reverse_bits() >> (64 - len);
            next += 1;
            (symbol, len, word)
        })
        .collect()
}

/// A stream of `n` residuals; `None` where no symbol fits any more.
fn stream(book: &[(usize, u32, u64)], n: usize, random: &mut Random) -> Option<Vec<u8>> {
    let (mut bits, mut left) = (Bits::default(), n);
    // Some streams are of few symbols, as real ones, and some have no long runs.
    let few = 1 + random.below(book.len());
    let most = [4, 100, 1000, n][random.below(4)];
    let places = |s: usize| if s == END { 1 } else { meaning(s).0 + meaning(s).1 };
    while left > 0 {
        let fits = |s: &&(usize, u32, u64)| places(s.0) <= left;
        let end = random.below(300) == 0;
        let good = |s: &&(usize, u32, u64)| places(s.0) <= left.min(most) && (s.0 != END || end);
        let pick = book[..few].iter().cycle().skip(random.below(few)).take(few).find(good);
        let &(symbol, len, word) = pick.or_else(|| book.iter().find(fits))?;
        bits.put(word, len);
        if symbol == END {
            break;
        }
        let (zeros, residuals, more) = meaning(symbol);
        // Of a run they say how many zeros there are besides.
        let free = if zeros > 0 { left - zeros - residuals } else { usize::MAX - 1 };
        let value = random.below(1 + free.min((1 << more) - 1));
        bits.put(value as u64, more);
        left -= zeros + residuals + if zeros > 0 { value } else { 0 };
    }
    Some(bits.words())
}

/// Outliers of a tile: records, or a mask.
fn outliers([a, b, c]: [usize; 3], size: usize, random: &mut Random) -> Vec<u8> {
    let n = a * b * c;
    if random.below(2) == 0 {
        return mask(n, a * b > 1 && random.below(2) == 0, size, random);
    }
    let (mut records, mut at) = (Vec::new(), 0);
    let step = 1 + random.below(n);
    loop {
        at += random.below(step);
        if at >= n {
            break;
        }
        let most = [1, 3, 100, n][random.below(4)];
        let len = 1 + random.below(most.min(n - at));
        records.push(at as u32 | (len as u32 - 1) << 16);
        at += len;
    }
    if records.is_empty() {
        records.push(random.below(n) as u32);
    }
    let mut out = (records.len() as u32).to_le_bytes().to_vec();
    out.extend(records.iter().flat_map(|r| r.to_le_bytes()));
    out.extend(records.iter().flat_map(|_| random.bits().to_le_bytes()[..size].to_vec()));
    out
}

/// Outliers that all have the same bits, in a tile of `n` values.
pub fn mask(n: usize, differences: bool, size: usize, random: &mut Random) -> Vec<u8> {
    let (mut runs, mut at) = (Vec::new(), 0);
    let most = [2, 5, 40, 256][random.below(4)];
    while runs.len() < n {
        let run = [random.below(most), random.below(most)];
        at += run[0] + run[1];
        if at > n || random.below(500) == 0 {
            break;
        }
        runs.push(run.map(|places| places as u8));
    }
    if runs.is_empty() {
        runs.push([0, 1]);
    }
    let head = 1 << 31 | u32::from(differences) << 30 | runs.len() as u32;
    let mut out = [&head.to_le_bytes()[..], &random.bits().to_le_bytes()[..size], runs.as_flattened()].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// How many values each tile has along each axis, in order.
pub fn extents(dims: &[u32]) -> Vec<[usize; 3]> {
    let mut e = [1usize; 3];
    for (k, &d) in dims.iter().rev().enumerate() {
        e[2 - k.min(2)] *= d as usize;
    }
    let mut t = [1usize; 3];
    while let Some(k) = [2, 1, 0]
        .into_iter()
        .filter(|&k| t[k] < e[k] && t.iter().product::<usize>() / t[k] * (2 * t[k]).min(e[k]) <= 8192)
        .min_by_key(|&k| t[k])
    {
        t[k] = (2 * t[k]).min(e[k]);
    }
    let cuts = |k: usize| (0..e[k]).step_by(t[k]).map(move |at| t[k].min(e[k] - at));
    cuts(0).flat_map(|a| cuts(1).flat_map(move |b| cuts(2).map(move |c| [a, b, c]))).collect()
}

/// How many values each tile has, in order.
pub fn tiles(dims: &[u32]) -> Vec<usize> {
    extents(dims).iter().map(|e| e.iter().product()).collect()
}

/// Kinds that say how a tile of these extents may be interpolated: along every set of its axes, with finer steps and
/// without.
pub fn ways(extents: [usize; 3]) -> Vec<u8> {
    let used = (0..3).map(|k| u8::from(extents[2 - k] > 1) << k).sum::<u8>();
    let sets = (1..8).filter(|axes| axes & !used == 0);
    sets.flat_map(|axes| [8 | axes, 0x88 | axes]).collect()
}

/// A frame before its parts are put together.
pub struct Parts {
    pub size: usize,
    pub mode: u8,
    pub big_endian: bool,
    pub bound: f64,
    pub dims: Vec<u32>,
    /// How many values each tile has, and how many along each axis.
    pub tiles: Vec<usize>,
    pub extents: Vec<[usize; 3]>,
    pub head: Vec<u8>,
    pub kinds: Vec<u8>,
    pub payloads: Vec<Vec<u8>>,
    /// Section 2, where it is another one than the payloads'.
    pub lengths: Option<Vec<u8>>,
}

/// Section 2 for these payloads: their lengths, filled up, and where the payload of every 64th tile begins.
pub fn lengths(payloads: &[Vec<u8>]) -> Vec<u8> {
    let units = |bytes: usize| bytes / 4;
    let mut out: Vec<u8> = payloads.iter().flat_map(|p| (units(p.len()) as u16).to_le_bytes()).collect();
    out.resize(out.len().next_multiple_of(4), 0);
    for k in (64..payloads.len()).step_by(64) {
        out.extend((units(payloads[..k].iter().map(Vec::len).sum()) as u32).to_le_bytes());
    }
    out
}

impl Parts {
    pub fn raw_len(&self) -> usize {
        self.dims.iter().map(|&d| d as usize).product::<usize>() * self.size
    }

    pub fn frame(&self) -> Vec<u8> {
        let lengths = self.lengths.clone().unwrap_or_else(|| lengths(&self.payloads));
        let kind = if self.size == 4 { draft::F32 } else { draft::F64 };
        let kind = if self.big_endian { kind | draft::BIG_ENDIAN } else { kind };
        let sections = vec![self.head.clone(), self.kinds.clone(), lengths, self.payloads.concat()];
        Draft::new(2, self.mode, self.bound, kind, &self.dims, sections).frame()
    }

    /// Bytes of outliers at the head of a tile's payload.
    pub fn outliers(&self, tile: usize) -> usize {
        if self.kinds[tile] & 0x40 == 0 {
            return 0;
        }
        let head = u32::from_le_bytes(self.payloads[tile][..4].try_into().unwrap());
        match head as usize & 0x3FFF_FFFF {
            runs if self.has_mask(tile) => 4 + self.size + 4 * runs.div_ceil(2),
            records => 4 + records * (4 + self.size),
        }
    }

    /// Whether a tile's outliers are a mask.
    pub fn has_mask(&self, tile: usize) -> bool {
        self.kinds[tile] & 0x70 != 0x30 && self.kinds[tile] & 0x40 != 0 && self.payloads[tile][3] & 0x80 != 0
    }
}

/// Parts that make a whole frame. No step of it is infinite.
pub fn lorenzo(random: &mut Random) -> Parts {
    let mut dims = Vec::new();
    let mut n = 1;
    for _ in 0..random.below(6) {
        let most = [3, 20, 200, 12_000][random.below(4)];
        let d = 2 + random.below(most);
        if n * d <= 30_000 {
            dims.push(d as u32);
            n *= d;
        }
    }
    // Some have starts or nearly so: 64 to 76 or 128 to 140 tiles, most of them cut, some or nearly all of them empty.
    let many = random.below(40) == 0;
    if many {
        dims = vec![17, 17, (32 * ([15, 31][random.below(2)] + random.below(4)) + 1 + random.below(32)) as u32];
    }
    let full = if many { [2, 8, 30][random.below(3)] } else { 1 };
    let size = [4, 8][random.below(2)];
    let mode = [1, 2, 3, 4][random.below(4)];
    let powers = if mode == 3 { [-30.0, 0.0] } else { [-330.0, 307.0] };
    let bound = match random.below(8) {
        0 => 0.0,
        1 => 10f64.powf(powers[0] + random.unit() * (powers[1] - powers[0])),
        _ => 10f64.powf(-8.0 * random.unit()),
    };
    let book = codebook(random);
    let symbols = 1 + book.iter().map(|b| b.0).max().unwrap_or(0);
    let mut lengths = vec![0u8; symbols.next_multiple_of(2)];
    book.iter().for_each(|&(s, len, _)| lengths[s] = len as u8);
    let mut head = vec![symbols as u8];
    head.extend(lengths.chunks(2).map(|p| p[0] | p[1] << 4));

    let tiles = tiles(&dims);
    let (mut kinds, mut payloads) = (Vec::new(), Vec::new());
    let extents = extents(&dims);
    for (&n, &e) in tiles.iter().zip(&extents) {
        let ways = if mode == 3 { Vec::new() } else { ways(e) };
        let predictor = match ways.len() {
            0 => random.below(8) as u8,
            _ if random.below(2) == 0 => random.below(8) as u8,
            all => ways[random.below(all)],
        };
        let empty = random.below(full) > 0;
        let with_outliers = !empty && random.below(3) == 0;
        let mut kind = predictor | u8::from(with_outliers) << 6;
        let mut payload = Vec::new();
        let class = if empty { 0 } else { [0, 1, 1, 1, 1, 2, 2, 3][random.below(8)] };
        if class == 3 {
            kind = 0x30;
            payload.extend((0..n).flat_map(|_| random.bits().to_le_bytes()[..size].to_vec()));
        } else {
            if with_outliers {
                payload.extend(outliers(e, size, random));
            }
            let coded = if class == 1 { stream(&book, n, random) } else { None };
            if let Some(bytes) = coded {
                kind |= 0x10;
                payload.extend(bytes);
            } else if class > 0 {
                kind |= 0x20;
                let width = 1 + random.below(32) as u32;
                payload.extend(width.to_le_bytes());
                let mut bits = Bits::default();
                (0..n).for_each(|_| bits.put(random.bits(), width));
                payload.extend(bits.words());
            }
        }
        kinds.push(kind);
        payloads.push(payload);
    }
    let big_endian = random.below(2) == 0;
    Parts { size, mode, big_endian, bound, dims, tiles, extents, head, kinds, payloads, lengths: None }
}
