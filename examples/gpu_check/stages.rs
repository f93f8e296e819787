// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage by stage: a kernel of `kernels/check.cu` and the CPU's function over the same arrays.
//!
//! A [`Stage`] holds a kernel's arrays and what the CPU makes of them; [`Stage::compare`] launches it and names the first
//! item that differs. To add one: its kernel, its function in `h5z_gpu::device::stages`, and a few lines here.

use super::Random;
use bytemuck::Pod;
use h5z_gpu::constants::{LORENZO_SYMBOLS, NDZIP_CUBE, SZX_BLOCK, SZX_TILE_BLOCKS};
use h5z_gpu::device::abi;
use h5z_gpu::device::stages::{self as cpu, Arg};

#[repr(C, align(16))]
struct Aligned<T: ?Sized>(T);
static CHECK: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/check.fatbin")));

const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;

/// An array that a kernel writes.
struct Output {
    name: &'static str,
    item: usize,
    at: usize,
    /// What it must hold; `None` for working memory.
    want: Option<Vec<u8>>,
}

/// One launch. A kernel takes addresses of its arrays, those it reads first, then numbers.
struct Stage {
    kernel: String,
    ctas: usize,
    input: Vec<u8>,
    relative: Vec<usize>,
    args: Vec<Arg>,
    outputs: Vec<Output>,
    size: usize,
    /// Makes alike what need not differ, before outputs are compared.
    alike: fn(&mut [u8]),
    what: String,
}

impl Stage {
    fn new(kernel: impl Into<String>, ctas: usize) -> Self {
        let (kernel, what) = (kernel.into(), String::new());
        let (input, relative, args, outputs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Stage { kernel, ctas, input, relative, args, outputs, size: 0, alike: |_| (), what }
    }

    fn reads<T: Pod>(mut self, values: &[T]) -> Self {
        self.args.push(Arg::Input(self.input.len()));
        self.input.extend_from_slice(bytemuck::cast_slice(values));
        self.input.resize(self.input.len().next_multiple_of(256), 0);
        self
    }

    fn writes<T: Pod>(mut self, name: &'static str, want: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(want);
        self = self.room(bytes.len());
        let at = self.outputs.last().expect("just made").at;
        *self.outputs.last_mut().expect("just made") =
            Output { name, item: size_of::<T>(), at, want: Some(bytes.to_vec()) };
        self
    }

    /// Working memory, or what follows in the struct that a codec's kernel takes.
    fn room(mut self, bytes: usize) -> Self {
        self.args.push(Arg::Output(self.size));
        self.outputs.push(Output { name: "", item: 1, at: self.size, want: None });
        self.size = (self.size + bytes).next_multiple_of(256);
        self
    }

    fn numbers(mut self, numbers: &[u64]) -> Self {
        self.args.extend(numbers.iter().map(|&n| Arg::Number(n)));
        self
    }

    fn about(mut self, what: String) -> Self {
        self.what = what;
        self
    }

    /// Launches and compares; the items compared.
    fn compare(self) -> Result<usize, String> {
        let Stage { kernel, ctas, input, relative, args, outputs, size, alike, what } = self;
        let mut got = cpu::run(&CHECK.0, &kernel, ctas.max(1) as u32, &args, &input, &relative, size)?;
        alike(&mut got);
        let mut items = 0;
        for Output { name, item, at, want } in &outputs {
            let Some(want) = want else { continue };
            let pairs = want.chunks(*item).zip(got[*at..].chunks(*item));
            let count = want.len() / item;
            let hex = |b: &[u8]| b.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
            if let Some((i, (a, b))) = pairs.take(count).enumerate().find(|(_, (a, b))| a != b) {
                let (a, b) = (hex(a), hex(b));
                return Err(format!("{kernel}, {name}: first difference at {i} of {count}: CPU {a} GPU {b}{what}"));
            }
            items += count;
        }
        Ok(items)
    }
}

fn one_of<const N: usize>(r: &mut Random, list: [u64; N]) -> u64 {
    list[r.below(N as u64) as usize]
}

/// Below `n`, small more often than not.
fn few(r: &mut Random, n: u64) -> u64 {
    let most = 1 + r.below(n);
    r.below(most)
}

/// Numbers in either width, as bits.
fn odd(r: &mut Random, wide: bool) -> u64 {
    const F64: [f64; 10] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, f64::MIN, 5e-324, 1e-310, 1.0];
    const F32: [f32; 10] =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, f32::MAX, f32::MIN, 1e-45, 1e-40, 1.0];
    let k = r.below(10) as usize;
    if wide { F64[k].to_bits() } else { F32[k].to_bits().into() }
}

fn number(r: &mut Random, wide: bool) -> u64 {
    let x = (r.unit() - 0.5) * 10f64.powi(r.below(40) as i32 - 20);
    match r.below(5) {
        0 => odd(r, wide),
        1 => r.next() >> if wide { 0 } else { 32 },
        _ if wide => x.to_bits(),
        _ => (x as f32).to_bits().into(),
    }
}

/// Runs of values of all kinds.
fn values(r: &mut Random, n: usize, wide: bool) -> Vec<u64> {
    let scale = 10f64.powi(r.below(8) as i32 - 4);
    let mut v = Vec::with_capacity(n);
    let mut walk = r.unit() * scale;
    while v.len() < n {
        let (kind, step) = (r.below(8), scale * 10f64.powi(-(r.below(7) as i32)));
        let constant = number(r, wide);
        for _ in 0..(1 + r.below(400)).min((n - v.len()) as u64) {
            walk += (r.unit() - 0.5) * step;
            let x = match kind {
                0 => walk.floor(),
                1 => (r.unit() - 0.5) * 1e-41,
                _ => walk,
            };
            v.push(match kind {
                2 => constant,
                3 => number(r, wide),
                4 if r.one_in(20) => odd(r, wide),
                5 if r.one_in(8) => constant,
                _ if wide => x.to_bits(),
                _ => (x as f32).to_bits().into(),
            });
        }
    }
    v
}

fn bytes(v: &[u64], wide: bool) -> Vec<u8> {
    v.iter().flat_map(|x| x.to_le_bytes().into_iter().take(if wide { 8 } else { 4 })).collect()
}

fn suffix(wide: bool) -> &'static str {
    if wide { "f64" } else { "f32" }
}

/// As kernels write a number: every NaN alike.
fn plain64(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}
fn plain32(x: f32) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits().into() }
}

fn ordered(x: f64) -> u64 {
    let b = x.to_bits();
    if b >> 63 == 1 { !b } else { b | 1 << 63 }
}

fn exact(r: &mut Random) -> Result<usize, String> {
    let mut input = Vec::new();
    let mut want = Vec::new();
    for _ in 0..1 + r.below(5000) {
        let x = f64::from_bits(number(r, true));
        let y = if r.one_in(3) { x * (1.0 + r.unit() * 1e-9) } else { f64::from_bits(number(r, true)) };
        // Bounds at, just below and just above the rounded difference.
        let b = f64::from_bits((x - y).abs().to_bits().wrapping_add(r.below(3)).wrapping_sub(1));
        let b = if r.one_in(4) { f64::from_bits(number(r, true)).abs() } else { b };
        input.extend([x, y, b]);
        let finite = x.is_finite() && y.is_finite();
        let only = |v: f64| if finite { plain64(v) } else { 0 };
        let (lo, hi) = if x < y { (x, y) } else { (y, x) };
        want.extend([
            u64::from(cpu::within(x, y, b)),
            only(cpu::mul_down(x.abs(), y.abs())),
            only(cpu::sub_down(hi, lo)),
            ordered(x),
            x.to_bits(),
            only(x.abs().next_down().max(0.0)),
            x.to_bits().swap_bytes(),
        ]);
    }
    let n = input.len() / 3;
    let stage = Stage::new("check_exact", n.div_ceil(128)).reads(&input).writes("seven results an item", &want);
    stage.numbers(&[n as u64]).compare()
}

fn arithmetic(r: &mut Random, wide: bool) -> Result<usize, String> {
    let mut input = Vec::new();
    let mut want = Vec::new();
    for _ in 0..1 + r.below(5000) {
        let [x, y, z] = [0; 3].map(|_| number(r, wide));
        let d = f64::from_bits(number(r, true));
        input.extend([x, y, z, d.to_bits()]);
        if wide {
            let [x, y, z] = [x, y, z].map(f64::from_bits);
            let down = if d.is_nan() { 0 } else { d.to_bits() };
            let results = [x + y, x - y, x * y, x.mul_add(y, z), z + x * y, d].map(plain64);
            want.extend(results.into_iter().chain([down, 64 - u64::from(x.to_bits().leading_zeros())]));
        } else {
            let [x, y, z] = [x, y, z].map(|b| f32::from_bits(b as u32));
            let near = d as f32;
            let down = if f64::from(near) > d { near.next_down() } else { near };
            let down = if d.is_nan() { 0 } else { plain32(down) };
            let results = [x + y, x - y, x * y, x.mul_add(y, z), z + x * y, near].map(plain32);
            want.extend(results.into_iter().chain([down, 32 - u64::from(x.to_bits().leading_zeros())]));
        }
    }
    let n = input.len() / 4;
    let stage = Stage::new(format!("check_arithmetic_{}", suffix(wide)), n.div_ceil(128)).reads(&input);
    stage.writes("eight results an item", &want).numbers(&[n as u64]).compare()
}

/// Descriptions of chunks with the given words in some fields.
fn chunks(count: usize, fields: &[(&str, &dyn Fn(usize) -> u64)]) -> Vec<u8> {
    let layout = abi::STRUCTS.iter().find(|s| s.name == "EncodeChunk").expect("a struct of the kernels");
    let mut all = vec![0; count * layout.size];
    for (k, chunk) in all.chunks_exact_mut(layout.size).enumerate() {
        for (name, value) in fields {
            let f = layout.fields.iter().find(|f| f.name == *name).expect("a field of it");
            chunk[f.offset..f.offset + f.size].copy_from_slice(&value(k).to_le_bytes()[..f.size]);
        }
    }
    all
}

fn chunk_of(r: &mut Random) -> Result<usize, String> {
    let mut first = vec![0u32];
    for _ in 0..few(r, 1200) {
        first.push(first.last().expect("one") + 1 + few(r, 300) as u32);
    }
    let tiles: Vec<u32> = (0..500).map(|_| r.below(u64::from(first[first.len() - 1]) + 9) as u32).collect();
    let want: Vec<u32> = tiles.iter().map(|t| first.partition_point(|f| f <= t) as u32 - 1).collect();
    let list = chunks(first.len(), &[("first_tile", &|k| first[k].into())]);
    let stage = Stage::new("check_chunk_of", tiles.len().div_ceil(4)).reads(&list).reads(&tiles);
    stage.writes("chunks", &want).numbers(&[first.len() as u64, tiles.len() as u64]).compare()
}

fn sums(r: &mut Random) -> Result<usize, String> {
    let words: Vec<u32> = (0..1 + r.below(20_000)).map(|_| r.next() as u32).collect();
    let shift = 2 + r.below(60);
    let (first, segment) = (r.next() >> shift, 1 + r.below(9000) as usize);
    let parts = words.chunks(segment).enumerate();
    let want: Vec<u64> =
        parts.map(|(k, w)| cpu::checksum(bytemuck::cast_slice(w), first + (k * segment) as u64)).collect();
    let mut items = 0;
    for batch in [4, 8, 11] {
        let stage = Stage::new(format!("check_sum_{batch}"), want.len()).reads(&words);
        let stage = stage.writes("copied words", &words).writes("sums", &want);
        items += stage.numbers(&[words.len() as u64, first, segment as u64]).compare()?;
    }
    Ok(items)
}

fn scans(r: &mut Random) -> Result<usize, String> {
    let n = 32 * (1 + r.below(200) as usize);
    let mut input: Vec<u64> = (0..n).map(|_| number(r, true)).collect();
    // A range is taken of values that are no NaN.
    let nan = |x: u64| f64::from_bits(x).is_nan() || f32::from_bits((x >> 32) as u32).is_nan();
    input.iter_mut().filter(|x| nan(**x)).for_each(|x| *x &= 0x000f_ffff);
    let (mut totals, mut running, mut xors, mut ranges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for warp in input.chunks(32) {
        let (mut sum, mut xor) = (0u64, 0);
        let (mut f, mut d) = ([f32::INFINITY, -f32::INFINITY], [f64::INFINITY, -f64::INFINITY]);
        for &x in warp {
            sum = sum.wrapping_add(x);
            xor ^= x;
            running.push(sum);
            xors.push(xor);
            let (x, y) = (f64::from_bits(x), f32::from_bits((x >> 32) as u32));
            f = [f[0].min(y), f[1].max(y)];
            d = [d[0].min(x), d[1].max(x)];
        }
        totals.push(sum);
        ranges.extend([plain32(f[0] + 0.0), plain32(f[1] + 0.0), plain64(d[0] + 0.0), plain64(d[1] + 0.0)]);
    }
    let stage = Stage::new("check_scans", n.div_ceil(128)).reads(&input).writes("sums", &totals);
    let stage = stage.writes("running sums", &running).writes("running exclusive ors", &xors);
    stage.writes("ranges", &ranges).numbers(&[n as u64]).compare()
}

fn look_back(r: &mut Random) -> Result<usize, String> {
    let n = if r.one_in(2) { one_of(r, [1, 2, 31, 32, 33, 64, 65]) } else { 1 + few(r, 20_000) };
    let sizes: Vec<u32> = (0..n).map(|_| few(r, 8224) as u32).collect();
    let mut end = 0;
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for s in &sizes {
        starts.push(end);
        end += s;
        // As the tile's word says it: the end is known.
        ends.push(u64::from(end) | 2 << 62);
    }
    let stage = Stage::new("check_look_back", sizes.len()).reads(&sizes).writes("starts", &starts);
    stage.writes("ends", &ends).room(8).compare()
}

/// Bytes of what the CTAs of a chunk share.
const STATE: usize = size_of::<abi::ChunkState>();

/// The kernel that the codec launches for it.
fn range(r: &mut Random, kernel: &str, wide: bool) -> Result<usize, String> {
    let size = if wide { 8 } else { 4 };
    let count = 1 + r.below(4) as usize;
    let fill = number(r, wide);
    let mut raw = Vec::new();
    let (mut at, mut lens, mut first, mut want) = (Vec::new(), Vec::new(), vec![0u64], Vec::new());
    for _ in 0..count {
        let n = 1 + few(r, 40_000) as usize;
        let mut v = values(r, n, wide);
        if r.one_in(4) {
            let x = odd(r, wide);
            v.fill(x);
        }
        (0..n / 30).for_each(|_| v[r.below(n as u64) as usize] = fill);
        at.push(raw.len());
        raw.extend(bytes(&v, wide));
        lens.push(n as u64);
        first.push(first[first.len() - 1] + n.div_ceil(TILE) as u64);
        let range = cpu::range(&raw[at[at.len() - 1]..], wide, Some(fill));
        want.extend(range.map_or([0, 0], |(lo, hi)| [ordered(hi), !ordered(lo)]));
        want.resize(want.len().next_multiple_of(STATE / 8), 0);
        raw.resize(raw.len().next_multiple_of(256), 0);
    }
    let struct_size = chunks(1, &[]).len();
    let values_at = (count * struct_size).next_multiple_of(256);
    let list = chunks(
        count,
        &[
            ("input", &|k| (values_at + at[k]) as u64),
            ("values", &|k| lens[k]),
            ("fill", &|_| fill),
            ("flags", &|_| abi::FLAG_FILL.into()),
            ("first_tile", &|k| first[k]),
            ("tiles", &|k| first[k + 1] - first[k]),
        ],
    );
    let tiles = first[count];
    let mut input = list;
    input.resize(values_at, 0);
    input.extend(raw);
    let input_field = abi::STRUCTS[0].fields.iter().find(|f| f.name == "input").expect("a field").offset;
    let mut stage = Stage::new(format!("{kernel}_{}", suffix(wide)), tiles as usize).reads(&input);
    stage.relative = (0..count).map(|k| k * struct_size + input_field).collect();
    // Zeros of either sign are equal.
    stage.alike = |got| {
        for state in got.chunks_exact_mut(STATE) {
            for (at, zero) in [(0, ordered(0.0)), (8, !ordered(0.0))] {
                if state[at..at + 8] == (!zero).to_le_bytes() {
                    state[at..at + 8].copy_from_slice(&zero.to_le_bytes());
                }
            }
        }
    };
    let mut stage =
        stage.writes("ranges", &want).about(format!(", {size}-byte values, lengths {lens:?}, fill {fill:x}"));
    stage.args = encode_args(count as u64, tiles);
    stage.compare()
}

/// The struct of a codec's kernel: descriptions are the input, states the output.
fn encode_args(count: u64, tiles: u64) -> Vec<Arg> {
    let layout = abi::STRUCTS.iter().find(|s| s.name == "EncodeArgs").expect("a struct of the kernels");
    let mut args = vec![Arg::Number(0); layout.size / 8];
    for f in layout.fields {
        match f.name {
            "chunks" => args[f.offset / 8] = Arg::Input(0),
            "states" => args[f.offset / 8] = Arg::Output(0),
            // Two halves of a word, the tiles behind.
            "chunk_count" => args[f.offset / 8] = Arg::Number(count | tiles << 32),
            _ => {}
        }
    }
    args
}

/// Whether a tile, its lengths right, has a coded block whose base is not finite.
fn szx_odd_base(payload: &[u8], values: usize, size: usize) -> bool {
    let count = values.div_ceil(SZX_BLOCK);
    let kinds = payload[..count].iter().map(|k| k & 63).filter(|&k| k == 1 || k > 2);
    let bases = payload[count.next_multiple_of(4)..].chunks_exact(size);
    kinds.zip(bases).any(|(kind, base)| {
        let finite = match size {
            4 => bytemuck::pod_read_unaligned::<f32>(base).is_finite(),
            _ => bytemuck::pod_read_unaligned::<f64>(base).is_finite(),
        };
        kind > 2 && !finite
    })
}

fn szx(r: &mut Random, wide: bool) -> Result<usize, String> {
    let (size, s) = (if wide { 8 } else { 4 }, suffix(wide));
    let bounds: Vec<f64> = (0..200).map(|_| f64::from_bits(number(r, true) & (u64::MAX >> 1))).collect();
    let bounds: Vec<f64> = bounds.into_iter().map(|b| if b.is_finite() { b } else { 0.0 }).collect();
    let rules: Vec<u64> = bounds.iter().flat_map(|&b| cpu::szx_rule(wide, b)).collect();
    let stage = Stage::new(format!("check_szx_rule_{s}"), bounds.len().div_ceil(128)).reads(&bounds);
    let mut items = stage.writes("step, its inverse, bits", &rules).numbers(&[bounds.len() as u64]).compare()?;

    let n = if r.one_in(2) { 1 + r.below(300) } else { 1 + r.below(20_000) } as usize;
    let v = values(r, n, wide);
    let raw = bytes(&v, wide);
    let pointwise = r.one_in(3);
    let mut bound = 10f64.powi(-(r.below(9) as i32)) * (1.0 + r.unit());
    if r.one_in(4) {
        bound = f64::from_bits(r.next() >> 1);
    }
    if !bound.is_finite() || (pointwise && !(bound > 0.0 && bound < 1.0)) {
        bound = if pointwise { 1e-3 } else { 0.0 };
    }
    let fill = r.one_in(3).then(|| v[r.below(n as u64) as usize]);
    let kind = if pointwise { "pointwise_" } else { "" };
    let what = format!(", {n} values, bound {bound:e}, fill {fill:x?}");
    let (lens, payload) = cpu::szx_encode(&raw, wide, bound, pointwise, fill);
    let (tiles, stride) = (lens.len(), SZX_TILE_BLOCKS + TILE * size);
    let mut kinds = vec![0u8; SZX_TILE_BLOCKS * tiles];
    let mut payloads = vec![0u8; stride * tiles];
    let mut at = 0;
    for (t, &len) in lens.iter().enumerate() {
        let part = &payload[at..at + 4 * len as usize];
        let blocks = (n - t * TILE).min(TILE).div_ceil(SZX_BLOCK);
        kinds[SZX_TILE_BLOCKS * t..][..blocks].copy_from_slice(&part[..blocks]);
        payloads[stride * t..][..part.len()].copy_from_slice(part);
        at += part.len();
    }
    let stage = Stage::new(format!("check_szx_encode_{kind}{s}"), tiles).reads(&raw).writes("kinds", &kinds);
    let stage = stage.writes("words of tiles", &lens).writes("payloads", &payloads).about(what.clone());
    let numbers = [n as u64, bound.to_bits(), fill.unwrap_or(0), u64::from(fill.is_some())];
    items += stage.numbers(&numbers).compare()?;

    // Whole payloads, then damaged ones.
    for damage in [false, true] {
        let (mut lens, mut payloads) = (lens.clone(), payloads.clone());
        if damage {
            for (t, len) in lens.iter_mut().enumerate() {
                if r.one_in(8) {
                    *len = (*len + r.below(3) as u32).saturating_sub(1).clamp(1, stride as u32 / 4);
                }
                for _ in 0..1 + r.below(3) {
                    let front = one_of(r, [32, 300, u64::MAX]).min(4 * u64::from(*len));
                    payloads[stride * t + r.below(front) as usize] ^= 1 << r.below(8);
                }
            }
        }
        let (mut verdicts, mut back) = (Vec::new(), Vec::new());
        for (t, &len) in lens.iter().enumerate() {
            let here = (n - t * TILE).min(TILE);
            let part = &payloads[stride * t..][..4 * len as usize];
            let values = cpu::szx_decode(part, wide, bound, pointwise, here);
            // Kernels leave these to the CPU: machines disagree on the bits of arithmetic with them.
            let values = values.filter(|_| pointwise || !szx_odd_base(part, here, size));
            verdicts.push(u32::from(values.is_some()));
            back.extend(values.unwrap_or_else(|| vec![0; here * size]));
        }
        let what = format!("{what}{}", if damage { ", damaged" } else { "" });
        let stage = Stage::new(format!("check_szx_decode_{kind}{s}"), tiles).reads(&payloads).reads(&lens);
        let stage = stage.writes("verdicts", &verdicts).writes("bytes of values", &back).about(what);
        items += stage.numbers(&[n as u64, bound.to_bits()]).compare()?;
    }
    Ok(items)
}

fn ndzip(r: &mut Random, wide: bool) -> Result<usize, String> {
    let (size, s) = (if wide { 8 } else { 4 }, suffix(wide));
    let (rank, float, swap) = (1 + r.below(3) as usize, r.one_in(2), r.one_in(3));
    let cubes = 1 + r.below(3) as usize;
    let raw = bytes(&values(r, cubes * NDZIP_CUBE, wide), wide);
    let stride = (NDZIP_CUBE + NDZIP_CUBE / (8 * size)) * size;
    let (mut residuals, mut planes, mut words) = (Vec::new(), Vec::new(), Vec::new());
    let mut lengths = Vec::new();
    for cube in raw.chunks_exact(NDZIP_CUBE * size) {
        let steps = cpu::ndzip_cube(cube, wide, rank, float);
        residuals.extend(steps.residuals);
        planes.extend(steps.planes);
        lengths.push((steps.words.len() / size) as u32);
        words.extend(steps.words);
        words.resize(words.len().next_multiple_of(stride), 0);
    }
    let what = format!(", rank {rank}, float {float}");
    let stage = Stage::new(format!("check_ndzip_cube_{s}"), cubes).reads(&raw);
    let stage = stage.writes("bytes of residuals", &residuals).writes("bytes of planes", &planes);
    let stage = stage.writes("lengths", &lengths).writes("bytes of words", &words).about(what.clone());
    let mut items = stage.numbers(&[rank as u64, float.into()]).compare()?;
    for damage in [false, true] {
        if damage {
            for (k, len) in lengths.iter().enumerate() {
                let front = if r.one_in(2) { NDZIP_CUBE / 8 } else { *len as usize * size };
                words[stride * k + r.below(front as u64) as usize] ^= 1 << r.below(8);
            }
        }
        let (mut faults, mut back) = (Vec::new(), Vec::new());
        for (k, &len) in lengths.iter().enumerate() {
            let values = cpu::ndzip_back(&words[stride * k..][..len as usize * size], wide, rank, float);
            faults.push(u32::from(values.is_none()));
            let mut values = values.unwrap_or_else(|| vec![0; NDZIP_CUBE * size]);
            if swap {
                values.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
            back.extend(values);
        }
        let what = format!("{what}{}", if damage { ", damaged" } else { "" });
        let stage = Stage::new(format!("check_ndzip_back_{s}"), cubes).reads(&words).reads(&lengths);
        let stage = stage.writes("faults", &faults).writes("bytes of values", &back).about(what);
        items += stage.numbers(&[rank as u64, float.into(), swap.into()]).compare()?;
    }
    Ok(items)
}

fn ndzip_places(r: &mut Random) -> Result<usize, String> {
    let rank = 1 + r.below(3) as u32;
    let most = [20_000, 200, 50][rank as usize - 1];
    let extents: Vec<u32> = (0..rank).map(|_| 1 + r.below(most) as u32).collect();
    let Some(cpu::Places { dims, rank, origins, border }) = cpu::ndzip_places(&extents) else { return Ok(0) };
    let stage = Stage::new("check_ndzip_places", origins.len().max(border.len()).div_ceil(128));
    let stage = stage.writes("origins of cubes", &origins).writes("border", &border).about(format!(", {extents:?}"));
    let numbers = [origins.len(), border.len(), dims[0], dims[1], dims[2], rank].map(|n| n as u64);
    stage.numbers(&numbers).compare()
}

fn quantize(r: &mut Random, wide: bool) -> Result<usize, String> {
    let n = 1 + few(r, 20_000) as usize;
    let v = values(r, n, wide);
    let raw = bytes(&v, wide);
    let log = r.one_in(3);
    let mut bound = 10f64.powi(-(r.below(9) as i32)) * (1.0 + r.unit());
    if r.one_in(4) && !log {
        bound = f64::from_bits(r.next() >> 1);
    }
    if !bound.is_finite() || bound <= 0.0 {
        bound = 1e-3;
    }
    if log {
        bound = bound.min(0.5);
    }
    let fill = r.one_in(3).then(|| v[r.below(n as u64) as usize]);
    let (quanta, ordinary, exact) = cpu::quantize(&raw, wide, bound, log, fill);
    let stage = Stage::new(format!("check_quantize_{}", suffix(wide)), n.div_ceil(512)).reads(&raw);
    let stage =
        stage.writes("quanta", &quanta).writes("no exceptions", &ordinary).writes("losses", &[u32::from(!exact)]);
    let stage = stage.about(format!(", {n} values, bound {bound:e}, logarithmic {log}, fill {fill:x?}"));
    stage.numbers(&[n as u64, bound.to_bits(), log.into(), fill.unwrap_or(0), fill.is_some().into()]).compare()
}

/// Extents of a tile.
fn tile(r: &mut Random) -> [usize; 3] {
    let rank = r.below(3);
    let x = 1 + few(r, [8192, 512, 64][rank as usize]) as usize;
    let x = if r.one_in(2) { x.next_multiple_of(4) } else { x };
    let y = if rank > 0 { 1 + few(r, (8192 / x as u64).min(256)) as usize } else { 1 };
    let z = if rank > 1 { 1 + few(r, (8192 / (x * y) as u64).min(64)) as usize } else { 1 };
    [z, y.min(8192 / x), x]
}

/// Integers: smooth, noisy, few of them not zero, or any.
fn integers(r: &mut Random, extents: [usize; 3]) -> Vec<i32> {
    let (kind, size) = (r.below(4), 1 + few(r, 1 << 20));
    let f = [r.unit() * 0.3, r.unit() * 0.3, r.unit() * 0.3];
    (0..extents.iter().product::<usize>())
        .map(|i| {
            let at = [i % extents[2], i / extents[2] % extents[1], i / extents[2] / extents[1]];
            let wave: f64 = at.iter().zip(f).map(|(&i, f)| (i as f64 * f).sin()).sum();
            match kind {
                0 => (wave * size as f64) as i32,
                1 => (wave * size as f64) as i32 + r.below(9) as i32,
                2 if !r.one_in(20) => 0,
                2 => r.below(50) as i32 - 25,
                _ => r.next() as i32,
            }
        })
        .collect()
}

fn lorenzo(r: &mut Random) -> Result<usize, String> {
    /// Sets of axes in the order in which they are tried.
    const SETS: [u8; 6] = [0, 1, 2, 3, 4, 7];
    let extents = tile(r);
    let q = integers(r, extents);
    let used = [extents[2] > 1, extents[1] > 1, extents[0] > 1];
    let used = used.iter().enumerate().map(|(k, &long)| u8::from(long) << k).sum::<u8>();
    let axes = r.below(8) as u8 & used;
    let (residuals, _) = cpu::differences(&q, extents, axes);
    let cost = |&set: &u8| if set & !used == 0 { cpu::differences(&q, extents, set).1 as u32 } else { 0 };
    let costs: Vec<u32> = SETS.iter().map(cost).collect();
    if cpu::running_sums(&residuals, extents, axes) != q {
        return Err(format!("running sums on the CPU are no inverse, {extents:?}, axes {axes}"));
    }
    let stage = Stage::new("check_differences", 1).reads(&q).writes("residuals", &residuals).writes("costs", &costs);
    let stage = stage.writes("axes", &[u32::from(cpu::axes(&q, extents))]).about(format!(", {extents:?}, axes {axes}"));
    let [z, y, x] = extents.map(|e| e as u64);
    let mut items = stage.numbers(&[z, y, x, axes.into()]).compare()?;

    let residuals = integers(r, extents);
    let points = cpu::interpolated(&residuals, extents);
    let stage = Stage::new("check_interpolate", 1).reads(&residuals).writes("points", &points);
    items += stage.about(format!(", {extents:?}")).numbers(&[z, y, x]).compare()?;
    Ok(items)
}

fn codebook(r: &mut Random) -> Result<usize, String> {
    let (present, steep) = (r.below(5), 1 + r.below(28));
    let mut counts = [0u64; LORENZO_SYMBOLS];
    let last = r.below(LORENZO_SYMBOLS as u64) as usize;
    for (k, c) in counts.iter_mut().enumerate() {
        *c = match present {
            0 if k != last => 0,
            1 if !r.one_in(4) => 0,
            2 => 3,
            3 => 1 << (k as u64).min(steep),
            _ => few(r, 1 << steep),
        };
    }
    let (lengths, codewords) = cpu::codebook(&counts);
    let stage = Stage::new("check_codebook", 1).reads(&counts.map(|c| c as u32)).writes("lengths", &lengths);
    stage.writes("codewords", &codewords).about(format!(", counts {counts:?}")).compare()
}

fn tiles(r: &mut Random) -> Result<usize, String> {
    let extents: Vec<u32> = (0..1 + r.below(4)).map(|_| 1 + few(r, 400) as u32).collect();
    let Some(cpu::Tiles { extents, tile, all }) = cpu::cut(&extents) else { return Ok(0) };
    let all = &all[..all.len().min(100_000)];
    let stage = Stage::new("check_tiles", all.len().div_ceil(128)).reads(&[extents, tile].concat());
    stage.writes("places and extents", all).numbers(&[all.len() as u64]).about(format!(", {extents:?}")).compare()
}

/// All stages, `rounds` times on new input. Tells how many there are and what was compared.
pub fn check(r: &mut Random, rounds: u64) -> Result<String, String> {
    type Run = fn(&mut Random) -> Result<usize, String>;
    let all: &[Run] = &[
        exact,
        |r| arithmetic(r, false),
        |r| arithmetic(r, true),
        chunk_of,
        sums,
        scans,
        look_back,
        |r| range(r, "szx_range", false),
        |r| range(r, "szx_range", true),
        |r| range(r, "lorenzo_encode_range", false),
        |r| range(r, "lorenzo_encode_range", true),
        |r| szx(r, false),
        |r| szx(r, true),
        |r| ndzip(r, false),
        |r| ndzip(r, true),
        ndzip_places,
        |r| quantize(r, false),
        |r| quantize(r, true),
        lorenzo,
        codebook,
        tiles,
    ];
    if CHECK.0.is_empty() {
        return Err("built without kernels/check.cu: no nvcc was found".into());
    }
    let mut items = 0;
    for round in 0..rounds {
        for stage in all {
            items += stage(r).map_err(|why| format!("round {round}: {why}"))?;
        }
    }
    Ok(format!("{} stages, {rounds} rounds, {items} items", all.len()))
}
