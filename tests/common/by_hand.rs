// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors that no writer makes, put together from the codecs' documents: what a reader must read all the same.

use super::dense;
use super::draft::{BIG_ENDIAN, Draft, F32, F64, I32};
use super::frames::{self, Bits, Parts, tiles};
use super::generate::Random;
use super::misread;
use super::planes;
use super::seal::seal;
use super::vectors::Case;
use h5z_gpu::Dtype;

/// The frame of a case of the generator `by-hand`.
pub fn frame(case: &Case) -> Vec<u8> {
    if let Some(name) = case.name.strip_suffix("-swapped") {
        return swapped(&frame(&Case { name: name.into(), ..case.clone() }));
    }
    let random = &mut Random(case.seed);
    let dims: Vec<u32> = case.dims.iter().map(|&d| d as u32).collect();
    if let Some(frame) = misread::frame(&case.codec, &case.name, random, &dims) {
        return frame;
    }
    match (&*case.codec, &*case.name) {
        ("bytes", "several-tiles") => several_tiles(2, random),
        ("bytes", "several-tiles-of-bits") => several_tiles(1 << 16 | 2, random),
        ("bytes", "zstd-without-size") => {
            let codes = [zstd_runs(&[(7, 200), (9, 200)]), zstd_runs(&[(0, 100)])];
            bytes_frame(500, 4, 400, &codes).frame()
        }
        ("szx", name) => szx(name, random, &dims),
        ("lorenzo", "i64-ends") => Draft::of_integers(&ends(&dims), 0x4080).frame(),
        ("lorenzo", "u16be-ends") => Draft::of_integers(&ends(&dims), BIG_ENDIAN | 0x20).frame(),
        ("lorenzo", name) => lorenzo(name, random, &dims),
        ("ndzip", "f32-no-cube") => no_cube(F32, &dims, &[5, 8], random),
        ("ndzip", "f64be-no-cube") => no_cube(F64 | BIG_ENDIAN, &dims, &[1, 1, 7], random),
        ("ndzip", "i32-planes-of-zeros") => planes_of_zeros(&dims),
        ("scaled", name) => scaled(name, random, case.dtype(), &dims).frame(),
        ("dense", name) => dense::frame(name, random, &dims),
        ("planes", name) => planes::by_hand::frame_of(name, random, &dims),
        (codec, name) => panic!("{codec}/{name} is not made by hand"),
    }
}

/// The frame of the same sections whose codec has the chunk's first two axes exchanged.
pub fn swapped(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[11] |= 0x80;
    seal(&mut frame);
    frame
}

/// Words as bytes.
pub fn le(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn any_bytes(n: usize, random: &mut Random) -> Vec<u8> {
    (0..n).map(|_| random.bits() as u8).collect()
}

/// Five tiles of 1000 bytes and shorter, shuffled by two; the third is raw, the last one ends in half an element.
fn several_tiles(stride_and_unit: u32, random: &mut Random) -> Vec<u8> {
    let code = |k: usize| {
        let n = if k < 4 { 1000 } else { 301 };
        if k == 2 {
            return any_bytes(n, random);
        }
        // Low bytes, then high ones, then what is left.
        let low = (0..n / 2).map(|i| (3 * i) as u8);
        let shuffled: Vec<u8> = low.chain((0..n.div_ceil(2)).map(|i| (k + i / 90) as u8)).collect();
        zstd::bulk::compress(&shuffled, 3).unwrap()
    };
    let codes: Vec<Vec<u8>> = (0..5).map(code).collect();
    Draft { kind: 0x4020, ..bytes_frame(4301, stride_and_unit, 1000, &codes) }.frame()
}

/// A Zstandard frame (RFC 8878 §3.1.1) of blocks of one byte repeated, without a content size.
pub fn zstd_runs(runs: &[(u8, u32)]) -> Vec<u8> {
    // No single segment, no size, no checksum; a window of 1 KiB.
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0];
    for (k, &(byte, n)) in runs.iter().enumerate() {
        let last = u32::from(k + 1 == runs.len());
        out.extend(&(last | 1 << 1 | n << 3).to_le_bytes()[..3]);
        out.push(byte);
    }
    out
}

/// A frame of `bytes`: its tiles' codes. The upper half of the stride's word is the unit.
pub fn bytes_frame(raw_len: u64, stride_and_unit: u32, tile: u32, codes: &[Vec<u8>]) -> Draft {
    let mut end = 0;
    let ends = codes.iter().flat_map(|code| {
        end += code.len() as u64;
        end.to_le_bytes()
    });
    let sections = vec![le(&[stride_and_unit, tile]), ends.collect(), codes.concat()];
    Draft { raw_len, ..Draft::new(4, 9, 0.0, 0xF, &[], sections) }
}

/// The head of a frame of `scaled`: map, order, special; unit, origin, step, the bits of factor and addend, those of
/// the special number.
pub fn scaled_head(first: [u8; 3], words: [u64; 6]) -> Vec<u8> {
    let first = first.into_iter().chain([0; 5]);
    first.chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
}

/// A frame of codes inside one of `scaled`: integers of `size` bytes, by `bytes`, of one tile as it is.
pub fn scaled_codes(size: u32, codes: Vec<u8>) -> Vec<u8> {
    let len = codes.len() as u32;
    let frame = bytes_frame(len.into(), 1, len, &[codes]);
    Draft { kind: 1 << 14 | size << 4, ..frame }.frame()
}

/// The worked example; else any codes, small and large, through the map and the order that the name says, with a
/// special number where there can be one, and two exceptions; with any corrections where the name ends so.
fn scaled(name: &str, random: &mut Random, dtype: Dtype, dims: &[u32]) -> Draft {
    let number = |at: &str| name.split_once(at).map_or(0, |(_, rest)| rest.as_bytes()[0] - b'0');
    let (map, order) = (number("map-"), number("order-"));
    let size = usize::from(dtype.size);
    let kind = match (map, size) {
        (0, _) if name != "worked-example" => 1 << 14 | (size as u32) << 4,
        (_, 4) => F32,
        _ => F64,
    };
    let kind = if dtype.big_endian { kind | BIG_ENDIAN } else { kind };
    let n = dims.iter().product::<u32>() as usize;
    if name == "worked-example" {
        let head = scaled_head([1, 1, 0], [25, 25, 1, 100f64.to_bits(), 0, 0]);
        let exceptions = le(&[4, f32::NAN.to_bits()]);
        return Draft::new(6, 9, 0.0, kind, dims, vec![head, exceptions, Vec::new()]);
    }
    let lowest = 1u64 << (8 * size - 1);
    let code = |i: usize| match i % 7 {
        3 => random.bits(),
        5 => lowest,
        _ => (random.below(2000) as u64).wrapping_sub(1000),
    };
    if map == 5 {
        let count = n as u64 / 3 + 1;
        let dictionary = scaled_codes(size as u32, any_bytes(count as usize * size, random));
        let (origin, step, odd) = (random.bits(), random.bits() >> 40, random.bits() >> (64 - 8 * size));
        let head = scaled_head([5, 0, 1], [1, origin, step, 0, 0, odd]);
        let code = |i: usize| if i % 7 == 5 { lowest } else { random.below(count as usize) as u64 };
        let codes = (0..n).map(code).flat_map(|c| c.to_le_bytes()[..size].to_vec()).collect();
        let exceptions = [le(&[1, n as u32 - 2]), any_bytes(2 * size, random)].concat();
        let sections = vec![[head, dictionary].concat(), exceptions, scaled_codes(size as u32, codes)];
        return Draft::new(6, 9, 0.0, kind, dims, sections);
    }
    let codes: Vec<u8> = (0..n).map(code).flat_map(|c| c.to_le_bytes()[..size].to_vec()).collect();
    let (unit, origin) = (1 + random.below(90) as u64, random.bits());
    let step = if matches!(order, 0 | 3) { 0 } else { random.bits() >> 40 };
    let factor = if matches!(map, 0 | 4) { 0 } else { 0.3048f64.to_bits() };
    let addend = if matches!(map, 0 | 1 | 4) { 0 } else { (-273.15f64).to_bits() };
    let odd = random.bits() >> (64 - 8 * size);
    let head = scaled_head([map, order, 1], [unit, origin, step, factor, addend, odd]);
    let places = le(&[0, n as u32 - 1]);
    let exceptions = [places, any_bytes(2 * size, random)].concat();
    let mut sections = vec![head, exceptions, scaled_codes(size as u32, codes)];
    if name.ends_with("corrected") {
        sections.push(scaled_codes(1, any_bytes(n, random)));
    }
    Draft::new(6, 9, 0.0, kind, dims, sections)
}

/// One tile of `szx` from its parts.
pub fn szx_frame(mode: u8, bound: f64, kind: u32, dims: &[u32], parts: &[&[u8]]) -> Draft {
    let mut payload = parts.concat();
    payload.resize(payload.len().next_multiple_of(4), 0);
    let table = le(&[payload.len() as u32 / 4]);
    Draft::new(1, mode, bound, kind, dims, vec![table, payload])
}

/// Coded blocks whose words writers do not write.
fn szx(name: &str, random: &mut Random, dims: &[u32]) -> Vec<u8> {
    // A coded block of q required bits has the kind q + 2, and 64 more without codes.
    let without = |q: u8| 64 + 2 + q;
    // Words of whole bytes, so with bits above q; the second half has codes: 0 everywhere, also where bytes are zero.
    let words = |bytes: usize, random: &mut Random| {
        let mut all = any_bytes(128 * bytes, random);
        all[..8].fill(0);
        all
    };
    match name {
        "f32-words-above-q" => {
            let (a, b) = (words(3, random), words(3, random));
            let bases = le(&[(-3f32).to_bits(), 1e7f32.to_bits()]);
            szx_frame(1, 0.5, F32, dims, &[&[without(17), 2 + 18, 0, 0], &bases, &[0; 32], &a, &b])
        }
        "f64-words-above-q" => {
            let (a, b) = (words(7, random), words(7, random));
            let bases: Vec<u8> = [-3f64, 1e7].iter().flat_map(|v| v.to_le_bytes()).collect();
            szx_frame(1, 0.5, F64, dims, &[&[without(49), 2 + 52, 0, 0], &bases, &[0; 32], &a, &b])
        }
        "f32be-pw-words-above-q" => {
            let (a, b) = (words(2, random), words(2, random));
            szx_frame(3, 0.4, F32 | BIG_ENDIAN, dims, &[&[without(9), 2 + 10, 0, 0], &[0; 32], &a, &b])
        }
        // g is a quarter of what the type ends at: k · g overflows from 4 on, base + k · g would not.
        "f32-not-fused" => {
            let words: Vec<u8> = (0..128).map(|i| i % 8).collect();
            szx_frame(1, 2f64.powi(125), F32, dims, &[&[without(3), 0, 0, 0], &le(&[(-3e38f32).to_bits()]), &words])
        }
        "f64-not-fused" => {
            let words: Vec<u8> = (0..128).map(|i| i % 8).collect();
            szx_frame(1, 2f64.powi(1021), F64, dims, &[&[without(3), 0, 0, 0], &(-1.7e308f64).to_le_bytes(), &words])
        }
        // The fewest and the most required bits; in the absolute modes the smallest bounds whose step is usable.
        "f32-fewest-and-most-bits" => ends_of_q(1, 2f64.powi(-127), F32, dims, [1, 23], random),
        "f64-fewest-and-most-bits" => ends_of_q(1, f64::MIN_POSITIVE, F64, dims, [1, 52], random),
        "f32be-pw-fewest-and-most-bits" => ends_of_q(3, 0.4, F32 | BIG_ENDIAN, dims, [9, 32], random),
        "f64-pw-fewest-and-most-bits" => ends_of_q(3, 0.4, F64, dims, [12, 61], random),
        _ => panic!("szx/{name} is not made by hand"),
    }
    .frame()
}

/// Two coded blocks without codes, whose words have these many bits.
fn ends_of_q(mode: u8, bound: f64, kind: u32, dims: &[u32], q: [u8; 2], random: &mut Random) -> Draft {
    let size = (kind >> 4 & 0xFF) as usize;
    let words = |q: u8, random: &mut Random| {
        let words: Vec<u64> = (0..128).map(|_| random.bits() >> (64 - q)).collect();
        // The most significant byte of all, then the next one.
        let shifts = (0..q.div_ceil(8)).rev().map(|p| 8 * p);
        shifts.flat_map(|shift| words.iter().map(move |t| (t >> shift) as u8).collect::<Vec<_>>()).collect::<Vec<u8>>()
    };
    let bases = vec![0; if mode == 3 { 0 } else { 2 * size }];
    let (a, b) = (words(q[0], random), words(q[1], random));
    szx_frame(mode, bound, kind, dims, &[&[66 + q[0], 66 + q[1], 0, 0], &bases, &a, &b])
}

/// n numbers of `width` bits, the width in front.
pub fn fixed_width(n: usize, width: u32, mut z: impl FnMut() -> u64) -> Vec<u8> {
    let mut bits = Bits::default();
    (0..n).for_each(|_| bits.put(z(), width));
    [le(&[width]), bits.words()].concat()
}

/// These residuals, in zigzag order and of `width` bits.
fn in_zigzag(width: u32, residuals: &[i32]) -> Vec<u8> {
    let mut z = residuals.iter().map(|&d| (d << 1 ^ d >> 31) as u32);
    fixed_width(residuals.len(), width, || z.next().expect("a residual").into())
}

/// Parts of a frame of `lorenzo` without a codebook: all but kinds and payloads.
pub fn without_codebook(size: usize, mode: u8, bound: f64, dims: &[u32]) -> Parts {
    let (head, kinds, payloads) = (vec![0], Vec::new(), Vec::new());
    let (tiles, extents, lengths) = (tiles(dims), frames::extents(dims), None);
    Parts { size, mode, big_endian: false, bound, dims: dims.into(), tiles, extents, head, kinds, payloads, lengths }
}

fn lorenzo(name: &str, random: &mut Random, dims: &[u32]) -> Vec<u8> {
    let size = if name.starts_with("f64") { 8 } else { 4 };
    let value = |random: &mut Random| random.bits().to_le_bytes()[..size].to_vec();
    let mut parts = match name {
        "f32-pw-rel-wraps" | "f64-pw-rel-wraps" => {
            // Sums of residuals of 32 bits: most quanta are so large that multiples of D pass 2^(8W - 1).
            let mut p = without_codebook(size, 3, 0.9, dims);
            p.kinds.push(0x21);
            p.payloads.push(fixed_width(p.tiles[0], 32, || random.bits()));
            p
        }
        "f64-pw-rel-lowest-quantum" => {
            let mut p = without_codebook(size, 3, 0.3, dims);
            p.kinds.push(0x20);
            p.payloads.push(in_zigzag(32, &[i32::MIN, i32::MAX, 0, -1, 1, i32::MIN]));
            p
        }
        // 2b / 257 is one subnormal number, 2 (b / 257) is two.
        "f64-interpolated-subnormal-bound" => {
            let mut p = without_codebook(size, 1, f64::from_bits(150), dims);
            p.kinds.push(0x29);
            p.payloads.push(fixed_width(p.tiles[0], 5, || random.bits()));
            p
        }
        // 2b is infinite, 256 · (b / 128.5) is not. R is 256 everywhere.
        "f64-interpolated-infinite-step" => {
            let mut p = without_codebook(size, 1, 2f64.powi(1023), dims);
            p.kinds.push(0x29);
            let mut z = std::iter::once(2).chain(std::iter::repeat(0));
            p.payloads.push(fixed_width(p.tiles[0], 2, || z.next().expect("endless")));
            p
        }
        "f32-only-raw-tiles" | "f64be-only-raw-tiles" => {
            let mut p = without_codebook(size, if size == 4 { 1 } else { 3 }, 1e-3, dims);
            p.kinds = vec![0x30; p.tiles.len()];
            p.payloads = p.tiles.iter().map(|&n| (0..n).flat_map(|_| value(random)).collect()).collect();
            p
        }
        // A bound for which 2b / 257 is another number than b · (2 / 257).
        "f32-interpolated-classes" | "f64be-interpolated-classes" | "f32-based-classes" | "f64be-based-classes" => {
            let mut p = without_codebook(size, if size == 4 { 1 } else { 2 }, 0.051, dims);
            assert_eq!(p.tiles, [64 * 128, 64 * 2, 6 * 128, 6 * 2]);
            // Fixed width, empty, fixed width with outliers, empty but for outliers; along x and y, x, y, x and y.
            p.kinds = vec![0x2B, 0x89, 0xEA, 0x4B];
            // With a base to which nothing is added without rounding; the first tile is Lorenzo's.
            if name.ends_with("based-classes") {
                p.kinds[0] = 0x23;
                let base = if size == 4 { (-3.3f32).to_bits().into() } else { 3.3e7f64.to_bits() };
                p.head.extend(&u64::to_le_bytes(base)[..size]);
            }
            let record = |first: u32, places: u32, random: &mut Random| {
                [le(&[1, first | (places - 1) << 16]), value(random)].concat()
            };
            p.payloads.push(fixed_width(64 * 128, 3, || random.bits()));
            p.payloads.push(Vec::new());
            p.payloads.push([record(700, 68, random), fixed_width(6 * 128, 11, || random.bits())].concat());
            p.payloads.push(record(3, 5, random));
            p
        }
        // Any runs, of differences in every other tile; under every second kind nothing but outliers.
        "f32-masks" | "f64be-masks" => {
            let mut p = without_codebook(size, 1, 0.051, dims);
            for (k, &n) in p.tiles.iter().enumerate() {
                let residuals = if k / 2 % 2 == 0 { fixed_width(n, 3, || random.bits()) } else { Vec::new() };
                p.kinds.push(if residuals.is_empty() { 0x47 } else { 0x63 });
                p.payloads.push([frames::mask(n, k % 2 == 1, size, random), residuals].concat());
            }
            p
        }
        "f32-every-symbol" => every_symbol(dims),
        "f32-interpolated-every-way" | "f64be-interpolated-every-way" | "f32-interpolated-lines" => {
            let mut p = without_codebook(size, 1, 0.051, dims);
            every_way(&mut p, random);
            p
        }
        _ => worked(name, dims),
    };
    parts.big_endian = name.contains("be-");
    parts.frame()
}

/// 36 values between integers, and beyond them.
pub fn ends(dims: &[u32]) -> Vec<u8> {
    let two = |n: i32| 2f64.powi(n);
    let values = [
        [0.5, 1.5, 2.5, 0.49999999999999994, 127.5, 65535.5],
        [two(31) + 0.5, two(51) - 0.5, two(52) + 1.0, two(53) + 2.0, two(62) + two(10), two(63) - two(10)],
        [two(63), two(64), 1e300, f64::INFINITY, f64::NAN, 0.0],
    ];
    let all = values.concat().into_iter().flat_map(|x| [x, -x]);
    let mut p = without_codebook(8, 1, 0.5, dims);
    p.kinds.push(0x30);
    p.payloads.push(all.flat_map(f64::to_le_bytes).collect());
    p.frame()
}

/// Zeros of f64, of one tile.
pub fn no_values(dims: &[u32]) -> Vec<u8> {
    let mut p = without_codebook(8, 1, 0.5, dims);
    p.kinds.push(0);
    p.payloads.push(Vec::new());
    p.frame()
}

/// The examples of its document.
fn worked(name: &str, dims: &[u32]) -> Parts {
    match name {
        "worked-lattices" => {
            let mut p = without_codebook(4, 1, 128.5, dims);
            p.kinds.push(0xAB);
            p.payloads.push(in_zigzag(4, &[7, -2, 1, -1, 2, 1, 0, -1, 1, -1, 0, 2, 0, 0, 1, -1]));
            p
        }
        "worked-mode-3" => {
            let mut p = without_codebook(4, 3, 0.25, dims);
            p.kinds.push(0x21);
            p.payloads.push(in_zigzag(10, &[254, 1, 1, 1, -511, 254]));
            p
        }
        "worked-base" => {
            let mut p = without_codebook(4, 1, 0.5, dims);
            p.head.extend(2f32.powi(20).to_le_bytes());
            p.kinds.push(0x21);
            p.payloads.push(in_zigzag(4, &[1, 1, -2, 5, 0]));
            p
        }
        "worked-mask" => {
            let mut p = without_codebook(4, 1, 0.5, dims);
            p.kinds.push(0x40);
            p.payloads.push(le(&[3 << 30 | 2, 1e20f32.to_bits(), 0x0108_0201]));
            p
        }
        _ => panic!("lorenzo/{name} is not made by hand"),
    }
}

/// Interpolated tiles, in turn along all sets of axes that each may have, with finer steps and without, all axes first:
/// most of narrow residuals, some of 32 bits, some with outliers.
pub fn every_way(p: &mut Parts, random: &mut Random) {
    for (k, &extents) in p.extents.iter().enumerate() {
        let (n, ways) = (p.tiles[k], frames::ways(extents));
        let way = ways[ways.len() - 1 - k % ways.len()];
        let width = if n < 1000 && k % 5 == 0 { 32 } else { 2 + k as u32 % 3 };
        let residuals = fixed_width(n, width, || random.bits());
        let outliers = k % 4 == 1;
        p.kinds.push(way | 0x20 | u8::from(outliers) << 6);
        let record = [le(&[1, n as u32 / 2]), random.bits().to_le_bytes()[..p.size].to_vec()].concat();
        p.payloads.push(if outliers { [record, residuals].concat() } else { residuals });
    }
}

/// Each of the 188 symbols of `lorenzo`, with the lowest and the highest number that its bits can say: runs meet runs,
/// and symbol 0 follows runs. Symbols 0 to 67 have 7 bits, the others 8.
fn every_symbol(dims: &[u32]) -> Parts {
    let codeword = |s: u64| if s < 68 { (s, 7) } else { (2 * 68 + s - 68, 8) };
    let put = |bits: &mut Bits, s: u64| {
        let (code, length) = codeword(s);
        (0..length).rev().for_each(|k| bits.put(code >> k, 1));
    };
    // Zeros, with the number that the bits say, and residuals.
    let places = |s: u64, more: u64| match s {
        35..120 => 1,
        _ => {
            let (class, residuals) = if s < 35 { (s - 1, 0) } else { ((s - 120) / 2, 1) };
            let power = 1 << (4 + class.saturating_sub(16) / 2);
            residuals + if class < 16 { class + 1 } else { power + class % 2 * power / 2 + more }
        }
    };
    let width = |s: u64| match s {
        17..35 => 3 + (s - 17) / 2,
        66..120 => 4 + (s - 66) / 2,
        152.. => 3 + (s - 152) / 4,
        _ => 0,
    };
    let mut symbols = (1..188u64).flat_map(|s| [(s, 0), (s, (1 << width(s)) - 1)]).peekable();
    let mut p = without_codebook(4, 1, 0.5, dims);
    p.head = [&[188][..], &[0x77; 34], &[0x88; 60]].concat();
    for &n in &p.tiles {
        let (mut bits, mut left) = (Bits::default(), n as u64);
        while let Some((s, more)) = symbols.next_if(|&(s, more)| places(s, more) <= left) {
            put(&mut bits, s);
            bits.put(more, width(s) as u32);
            left -= places(s, more);
        }
        if left > 0 {
            put(&mut bits, 0);
        }
        p.kinds.push(0x11);
        p.payloads.push(bits.words());
    }
    assert_eq!(symbols.next(), None, "the tiles are too few");
    p
}

/// A grid without a whole cube: the stream is nothing but border.
pub fn no_cube(kind: u32, dims: &[u32], grid: &[u32], random: &mut Random) -> Vec<u8> {
    let size = (kind >> 4 & 0xFF) as usize;
    let border = any_bytes(grid.iter().product::<u32>() as usize * size, random);
    Draft::new(3, 9, 0.0, kind, dims, vec![[le(&[grid.len() as u32]), le(grid)].concat(), border]).frame()
}

/// Planes that are stored and zero, or of every value, and four values of border.
fn planes_of_zeros(dims: &[u32]) -> Vec<u8> {
    let mut words = vec![128 + 4];
    let mut heads = [0u32; 128];
    (heads[0], heads[77]) = (0x8000_0001, 0x4000_0002);
    words.extend(heads);
    words.extend([0, 0xFFFF_FFFF, 0, 0x8000_0001]);
    words.extend([1, 2, 3, 4]);
    Draft::new(3, 9, 0.0, I32, dims, vec![le(&[1, dims[0]]), le(&words)]).frame()
}
