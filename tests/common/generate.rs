// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that are the same on every machine: whole numbers, sums, products and quotients, no function of the C
//! library. The vectors depend on every line here: a change makes a new generator, never another old one.

use h5z_gpu::{Class, Dtype};
use molecules::{crystals, molecules};

#[path = "molecules.rs"]
mod molecules;

/// SplitMix64.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }
}

/// Names of the generators.
pub const NAMES: [&str; 10] =
    ["wave", "noise", "bits", "hostile", "sparse", "constant", "steps", "masked", "ramp", "text"];

/// A wave of period 1 made of parabolas.
fn parabola(t: f64) -> f64 {
    let t = t - t.floor();
    let half = |u: f64| 16.0 * u * (0.5 - u);
    if t < 0.5 { half(t) } else { -half(t - 0.5) }
}

/// A smooth field over `dims`, slowest first.
fn wave(dims: &[u64], random: &mut Random) -> Vec<f64> {
    let n: u64 = dims.iter().product();
    let phase = random.unit();
    (0..n)
        .map(|mut i| {
            let mut v = 0.0;
            for (k, &d) in dims.iter().enumerate().rev() {
                let at = (i % d) as f64;
                i /= d;
                v = v * 0.75 + parabola(at / (29.0 + 11.0 * k as f64) + phase);
            }
            v * 5.0
        })
        .collect()
}

/// A field of three extents: the n-th block is smooth along the axes whose bits are in 1 + n mod 7, the last axis' the
/// lowest.
fn striped(dims: &[u64], random: &mut Random) -> Vec<f64> {
    let n = dims.iter().product::<u64>() as usize;
    let [b, c] = [1, 2].map(|k| dims[k] as usize);
    let first = random.bits();
    (0..n)
        .map(|i| {
            let at = [i / c / b, i / c % b, i % c];
            let block = (at[0] / 16 * b.div_ceil(16) + at[1] / 16) * c.div_ceil(32) + at[2] / 32;
            let smooth = |axis: &usize| (1 + block % 7) >> (2 - axis) & 1 == 1;
            // The same for all points of a line, plane or block that is smooth.
            let place = (0..3).filter(|axis| !smooth(axis)).fold(0, |sum, axis| 1000 * (sum + at[axis] as u64) + 1);
            let shift = 0.2 * Random(first ^ place).unit();
            let waves =
                (0..3).filter(smooth).map(|axis| parabola((at[axis] as f64 + shift) / 37.0 + axis as f64 / 3.0));
            shift + waves.sum::<f64>()
        })
        .collect()
}

/// Numbers that break what was written for others.
pub fn special(dtype: Dtype) -> Vec<u64> {
    if dtype.class == Class::Float && dtype.size == 2 {
        let infinity = (1 << 15) - (1 << dtype.mantissa_bits);
        let least = 1 << dtype.mantissa_bits;
        let list = [0, infinity, infinity + least / 2, infinity + 1, 1, least - 1, least, infinity - 1, infinity / 2];
        list.into_iter().flat_map(|bits| [bits, bits | 0x8000]).collect()
    } else if dtype.size == 4 {
        let mut list = vec![
            0x0000_0000,
            0x8000_0000,
            0x7F80_0000,
            0xFF80_0000,
            0x7FC0_0000,
            0xFFC1_2345,
            0x7F80_0001,
            0x0000_0001,
            0x8000_0001,
            0x007F_FFFF,
            0x0080_0000,
            0x7F7F_FFFF,
            0xFF7F_FFFF,
            0x3F80_0000,
            0x3F7F_FFFF,
            0xBF80_0001,
        ];
        list.extend([1e20f32, 9.969_21e36, 1e-30, -3.4e-38, 16_777_217.0].map(|v| u64::from(v.to_bits())));
        list
    } else {
        let mut list = vec![
            0,
            1 << 63,
            0x7FF0 << 48,
            0xFFF0 << 48,
            0x7FF8 << 48,
            0xFFF8_0000_1234_5678,
            0x7FF0_0000_0000_0001,
            1,
            0x8000_0000_0000_0001,
            0x000F_FFFF_FFFF_FFFF,
            1 << 52,
            f64::MAX.to_bits(),
            (-f64::MAX).to_bits(),
        ];
        list.extend([1.0f64, 1.0 - 1e-16, -1.0 - 3e-16, 1e20, 9.969_209_968_386_869e36, 1e-300].map(f64::to_bits));
        list
    }
}

/// What a generator is told of a chunk: `n` elements of `size` bytes each over `dims`.
struct Chunk<'a> {
    name: &'a str,
    seed: u64,
    dtype: Dtype,
    dims: &'a [u64],
    fill: Option<u64>,
    n: usize,
    size: usize,
}

impl Chunk<'_> {
    /// A number in the chunk's type.
    fn bits_of(&self, x: f64) -> u64 {
        match (self.dtype.class, self.dtype.size) {
            (Class::Float, 4) => u64::from((x as f32).to_bits()),
            (Class::Float, 8) => x.to_bits(),
            (Class::Float, 2) => sixteen(x as f32, self.dtype.mantissa_bits),
            _ => (x * 1000.0) as i64 as u64,
        }
    }
}

/// Whether value `i` is on land along the last two axes, which grows a little from one to the next of the others.
fn is_land(dims: &[u64], i: usize) -> bool {
    let (width, height) = (dims[dims.len() - 1] as usize, dims.iter().rev().nth(1).map_or(1, |&h| h as usize));
    let (x, y, z) = (i % width, i / width % height, i / width / height);
    parabola(x as f64 / 31.0) + parabola(y as f64 / 23.0) > 1.2 - (z / 3) as f64 / 16.0
}

/// Number `i` of a field far from zero beside what it varies by, with a gap here and there.
fn beside(i: usize, x: f64) -> f64 {
    if i % 97 == 50 { f64::NAN } else { x * 4096.0 + 1e7 }
}

/// Fields that are smooth, more or less, and what is strewn into them.
fn fields(chunk: &Chunk, random: &mut Random) -> Option<Vec<u64>> {
    let &Chunk { name, dtype, dims, fill, n, size, .. } = chunk;
    let bits_of = |x: f64| chunk.bits_of(x);
    Some(match name {
        "wave" => wave(dims, random).into_iter().map(bits_of).collect(),
        // Every third or every fortieth value is a special one.
        "hostile" | "sparse" => {
            let special = special(dtype);
            let mut list: Vec<u64> = wave(dims, random).into_iter().map(bits_of).collect();
            for x in &mut list {
                if random.below(if name == "sparse" { 40 } else { 3 }) == 0 {
                    *x = special[random.below(special.len())];
                }
            }
            list
        }
        // One plane of noise over and over along the slowest axis.
        "stacked" => {
            let plane: Vec<u64> = (0..n / dims[0] as usize).map(|_| bits_of(random.unit() * 2.0 - 1.0)).collect();
            plane.iter().cycle().take(n).copied().collect()
        }
        // By rows of 64 and columns of 128 in turn: one value, any bits; noise, a smooth field.
        "patches" => {
            let smooth = wave(dims, random);
            let row = dims[dims.len() - 1] as usize;
            (0..n)
                .map(|i| match (i / row / 64 % 2, i % row / 128 % 2) {
                    (0, 0) => bits_of(0.0),
                    (0, _) => random.bits(),
                    (_, 0) => bits_of(random.unit() * 2.0 - 1.0),
                    _ => bits_of(smooth[i]),
                })
                .collect()
        }
        "masked" | "land" => {
            let fill = fill.unwrap_or_else(|| bits_of(1e20));
            let hidden = |i: usize| if name == "land" { is_land(dims, i) } else { (i / 77).is_multiple_of(3) };
            let all = wave(dims, random).into_iter().enumerate();
            all.map(|(i, x)| if hidden(i) { fill } else { bits_of(x) }).collect()
        }
        // A field in steps of 2^-7, as packed integers have them when they are unpacked.
        "packed" => wave(dims, random).into_iter().map(|x| bits_of((x * 128.0).floor() / 128.0)).collect(),
        // A field of 32-bit numbers above 0; one number in 200 is a full double.
        "single" => wave(dims, random)
            .into_iter()
            .map(|x| x + 16.0)
            .map(|x| bits_of(if random.below(200) == 0 { x } else { f64::from(x as f32) }))
            .collect(),
        // A field with holes: one value in 300 is no number, each time another one.
        "holes" => {
            let nan = if dtype.size == 4 { 0x7FC0_0000 } else { 0x7FF8 << 48 };
            let mut list: Vec<u64> = wave(dims, random).into_iter().map(bits_of).collect();
            list.iter_mut().filter(|_| random.below(300) == 0).enumerate().for_each(|(k, x)| *x = nan + k as u64);
            list
        }
        // In blocks of 16 x 16 x 32 a field that is smooth along some axes, in the next block along others, and jumps
        // along the rest; with holes one value in 60 is no number.
        "striped" | "striped-holes" => striped(dims, random)
            .into_iter()
            .map(|x| if name == "striped" || random.below(60) > 0 { x } else { f64::NAN })
            .map(bits_of)
            .collect(),
        // Large and small numbers of few digits: of 32 bits the highest 16, of 64 the highest 32.
        "short" => wave(dims, random)
            .into_iter()
            .map(|x| bits_of(x * x * x * x * x * x * x * x) & u64::MAX << (4 * size))
            .collect(),
        // A field far from zero in a chunk whose last third was never written.
        "padded" => {
            let field = wave(dims, random).into_iter();
            field.enumerate().map(|(i, x)| bits_of(if i < n - n / 3 { x + 280.0 } else { 0.0 })).collect()
        }
        "beside" => wave(dims, random).into_iter().enumerate().map(|(i, x)| bits_of(beside(i, x))).collect(),
        "ramp" => (0..n).map(|i| bits_of(i as f64 * 0.125 + random.unit() * 0.01)).collect(),
        "crystals" => crystals(dims, random, chunk.seed).into_iter().map(bits_of).collect(),
        "molecules" => molecules(dims, random, chunk.seed).into_iter().map(bits_of).collect(),
        _ => return None,
    })
}

/// The number, every second one with the other sign.
fn turned(i: usize, x: f64) -> f64 {
    if i.is_multiple_of(2) { x } else { -x }
}

/// Numbers of which none says anything about the next one, and steps, spots and texts.
fn numbers(chunk: &Chunk, random: &mut Random) -> Option<Vec<u64>> {
    let &Chunk { seed, dtype, n, name, .. } = chunk;
    let bits_of = |x: f64| chunk.bits_of(x);
    Some(match name {
        "noise" => (0..n).map(|_| bits_of(random.unit() * 2.0 - 1.0)).collect(),
        "bits" => (0..n).map(|_| random.bits()).collect(),
        "constant" => vec![bits_of(random.unit() * 100.0); n],
        "steps" => (0..n).map(|i| bits_of((i / 300) as f64 * 2.5 + (seed % 7) as f64)).collect(),
        // Steps with special values here and there; some blocks with one and the same.
        "spots" => {
            let special = special(dtype);
            (0..n)
                .map(|i| match random.below(60) {
                    0 => special[if i / 600 % 2 == 0 { 4 } else { random.below(special.len()) }],
                    _ => bits_of((i / 300) as f64 * 2.5 + (seed % 7) as f64),
                })
                .collect()
        }
        // Numbers of a range, each as often as the others; one in 30 is far away.
        "uniform" => (0..n).map(|_| bits_of((random.below(4096) as f64 - 2048.0) * 0.125)).collect(),
        "spikes" => (0..n)
            .map(|_| match random.below(30) {
                0 => (random.below(1 << 20) as f64 - 524_288.0) * 0.125,
                _ => (random.below(64) as f64 - 32.0) * 0.125,
            })
            .map(bits_of)
            .collect(),
        // One value, but for a few that are no numbers.
        "flecks" => {
            let x = random.unit() * 100.0;
            (0..n).map(|_| bits_of(if random.below(400) == 0 { f64::NAN } else { x })).collect()
        }
        // Up and down from one value to the next; `turns` by a little less than 2, where twice a difference of bits, a
        // quantum each, leaves 32 bits and looks small.
        "zigzag" => (0..n).map(|i| bits_of(turned(i, 1_159_489_503_887_360.0))).collect(),
        "turns" => (0..n).map(|i| bits_of(turned(i, 2.0 - (1 + random.below(64)) as f64 / (1 << 22) as f64))).collect(),
        // Whole numbers, one more than a multiple of 4096, with holes near both ends.
        "coset" => (0..n)
            .map(|i| match i {
                2 | 4 => f64::NAN,
                _ if i + 4 >= n => f64::NAN,
                _ => random.below(256) as f64 * 4096.0 + 1.0,
            })
            .map(bits_of)
            .collect(),
        // Numbers of 2^-30 to 2^30, either sign, which no codec makes smaller.
        "decades" => (0..n)
            .map(|_| {
                let x = (1.0 + random.unit()) * (1u64 << random.below(60)) as f64 / (1u64 << 30) as f64;
                bits_of(if random.below(2) == 0 { x } else { -x })
            })
            .collect(),
        // Far apart: 64 times the step of a bound of 0.5.
        "coarse" => (0..n).map(|_| bits_of(random.below(20_000) as f64 * 63.75)).collect(),
        // Zeros, and few ones of either sign, some two or three; from one to the next 1 to 8192 values, small numbers
        // as often as large ones.
        "rare" => {
            let mut next = random.below(100);
            (0..n)
                .map(|i| {
                    if i < next {
                        return bits_of(0.0);
                    }
                    let power = random.below(13);
                    next += 1 + random.below(2 << power);
                    bits_of([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 2.0, -3.0][random.below(8)])
                })
                .collect()
        }
        "text" => {
            let words = b"time latitude longitude depth salinity pressure ";
            (0..n).map(|i| words[(i + random.below(2)) % words.len()].into()).collect()
        }
        _ => return None,
    })
}

/// Numbers of few bits.
fn few(chunk: &Chunk, random: &mut Random) -> Option<Vec<u64>> {
    Some(match chunk.name {
        // Where a field is above zero, with ragged edges.
        "mask" => {
            let field = wave(chunk.dims, random);
            field.into_iter().map(|x| u64::from(x + random.unit() - 0.5 > 0.0)).collect()
        }
        // How many of twelve events are there; where a field is high, most.
        "counts" => {
            let field = wave(chunk.dims, random);
            let mut count = |rate: f64| (0..12).filter(|_| random.unit() < rate).count() as u64;
            field.into_iter().map(|x| count((x + 5.0) / 30.0)).collect()
        }
        _ => return None,
    })
}

/// Whole numbers times a unit: what `scaled` is for.
fn multiples(chunk: &Chunk, random: &mut Random) -> Option<Vec<u64>> {
    let &Chunk { name, dtype, dims, n, .. } = chunk;
    let size = dtype.size;
    let bits_of = |x: f64| chunk.bits_of(x);
    let whole = |x: f64| (x * 200.0).floor();
    // In the arithmetic of the type: a factor and an offset of 32 bits for f32.
    let unpacked = |k: f64| match size {
        4 => u64::from((k as f32 * 0.001_7 + 273.15).to_bits()),
        _ => (k * 0.001_7 + 273.15).to_bits(),
    };
    let mut sum = 0i64;
    let mut rising = |step: u64| (sum = sum.wrapping_add(step as i64), sum as u64).1;
    Some(match name {
        // A clock that stands still for an hour now and then.
        "clock" => (0..n).map(|i| rising(60 + if i % 997 == 996 { 3600 } else { 0 })).collect(),
        "identifiers" => (0..n).map(|_| rising(1 + random.below(40) as u64)).collect(),
        "jitter" => (0..n).map(|_| rising(999_000 + 10 * random.below(200) as u64)).collect(),
        // Whole numbers as they are: a relief, the same far from zero, and with a few numbers far from all others.
        "relief" | "far-relief" | "odd-relief" => {
            let (scale, low) = if size == 1 { (50.0, 100) } else { (900.0, 20_000) };
            let low = if name == "far-relief" { 1_500_000_000 } else { low };
            let value = |(i, x): (usize, f64)| match i % 997 {
                5 if name == "odd-relief" => -2_147_483_647 + (i / 997 % 2) as i64,
                _ => (x * scale) as i64 + low + random.below(3) as i64,
            };
            let field = wave(dims, &mut Random(chunk.seed));
            field.into_iter().enumerate().map(value).map(|x| x as u64).collect()
        }
        "tens" => wave(dims, random).into_iter().map(|x| (10 * whole(x) as i64 + 3) as u64).collect(),
        "hundredths" => wave(dims, random).into_iter().map(|x| bits_of(whole(x) / 100.0)).collect(),
        // The same, of which every fourth, or one in thirty at random, is some units in the last place off.
        "uneven-hundredths" | "odd-hundredths" => {
            let all = wave(dims, random).into_iter().map(|x| bits_of(whole(x) / 100.0)).collect::<Vec<_>>();
            let mut off = |i: usize| match name {
                "uneven-hundredths" => u64::from(i % 4 == 1),
                _ if random.below(30) == 0 => 1 + random.below(3) as u64,
                _ => 0,
            };
            all.into_iter().enumerate().map(|(i, bits)| bits + off(i)).collect()
        }
        "feet" => wave(dims, random).into_iter().map(|x| bits_of(whole(x) * 0.3048)).collect(),
        "unpacked" => wave(dims, random).into_iter().map(|x| unpacked(whole(x) + random.below(16) as f64)).collect(),
        // Latitudes of points that lie at equal distances on a plane: on both sides of its diagonal the same, or not.
        "coordinates" | "slanted-coordinates" => {
            let row = dims.last().copied().unwrap_or(1) as usize;
            let apart = if name == "coordinates" { 300.0 } else { 271.0 };
            let at = |k: usize, apart: f64| (k as f64 - 30.0) / apart;
            let latitude = |(x, y): (f64, f64)| 90.0 * (x + y) / (1.0 + x * x + y * y).sqrt();
            (0..n).map(|i| bits_of(latitude((at(i % row, 300.0), at(i / row, apart))))).collect()
        }
        // Shorts that were unpacked by a factor and an offset without end, with holes.
        "any-factor" => {
            let x = |k: f64| if k > 800.0 { f64::NAN } else { k * 0.001_234_567_890_123 + 271.828_182_845_904 };
            wave(dims, random).into_iter().map(|w| bits_of(x(whole(w) + random.below(4) as f64))).collect()
        }
        // Hundredths with holes of one kind in runs, and numbers that are no hundredths.
        "holed-hundredths" => {
            let value = |(i, x): (usize, f64)| match i {
                _ if i / 40 % 4 == 1 => f64::NAN,
                _ if i % 211 == 5 => x,
                _ => whole(x) / 100.0,
            };
            wave(dims, random).into_iter().enumerate().map(value).map(bits_of).collect()
        }
        _ => return None,
    })
}

/// What §9 of the codecs' documents shows.
fn examples(chunk: &Chunk) -> Option<Vec<u64>> {
    let &Chunk { n, name, .. } = chunk;
    let bits_of = |x: f64| chunk.bits_of(x);
    Some(match name {
        "szx-example" => (0..n)
            .map(|i| match i {
                5 => f64::NAN,
                0..128 => 10.0 + (i / 8) as f64,
                130 => 2.75,
                _ => 2.5,
            })
            .map(bits_of)
            .collect(),
        "lorenzo-example" => (0..n)
            .map(|i| match i {
                9 | 10 => f64::NAN,
                40 => 1e30,
                33..66 => 1.0,
                _ => 0.5,
            })
            .map(bits_of)
            .collect(),
        "ndzip-example" => (0..n).map(|i| bits_of(f64::from(u8::from(i >= 5)))).collect(),
        "planes-example" => (0..n)
            .map(|i| match i {
                9 => f64::NAN,
                0..32 => 10.0 + (i / 4) as f64 * 0.5,
                _ => 30.0,
            })
            .map(bits_of)
            .collect(),
        "planes-example-wide" => {
            (0..n).map(|i| bits_of(if i < 20 { 0.0 } else { 5000.0 } + (i / 4) as f64 * 0.5)).collect()
        }
        "planes-example-bits" => {
            (0..n).map(|i| bits_of(if i == 9 { f64::NAN } else { 1000.0 + 16.0 * (i / 4) as f64 })).collect()
        }
        _ => return None,
    })
}

/// Bits of a number of 16 bits that is near: rounded towards 0, small ones to 0.
fn sixteen(x: f32, mantissa_bits: u8) -> u64 {
    let (bits, cut) = (u64::from(x.to_bits()), 23 - mantissa_bits);
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7FFF_FFFF);
    let offset = if mantissa_bits == 10 { 112 << 23 } else { 0 };
    sign | magnitude.saturating_sub(offset) >> cut
}

/// `len` bytes of type `dtype` over `dims` from the generator of this name; bytes after the last whole element are
/// random.
pub fn input(name: &str, seed: u64, dtype: Dtype, dims: &[u64], fill: Option<u64>, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let size = usize::from(dtype.size).max(1);
    let n = len / size;
    let line = [n as u64];
    let dims = if dims.iter().product::<u64>() == n as u64 { dims } else { &line[..] };
    let chunk = Chunk { name, seed, dtype, dims, fill, n, size };
    let made = fields(&chunk, &mut random)
        .or_else(|| numbers(&chunk, &mut random))
        .or_else(|| few(&chunk, &mut random))
        .or_else(|| multiples(&chunk, &mut random))
        .or_else(|| examples(&chunk));
    let Some(mut elements) = made else { panic!("no generator {name:?}; there are {NAMES:?}") };
    if dtype.size < 8 {
        let mask = (1u64 << (8 * size)) - 1;
        elements.iter_mut().for_each(|x| *x &= mask);
    }
    let mut raw = Vec::with_capacity(len);
    for x in elements {
        let mut bytes: Vec<u8> = x.to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(size).collect();
        if dtype.big_endian {
            bytes.reverse();
        }
        raw.extend(bytes);
    }
    raw.resize_with(len, || random.bits() as u8);
    raw
}
