// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all kernels stand on: exact arithmetic, descriptions, sums and scans, ranges.

use super::numbers::{bytes, few, number, odd, one_of, ordered, plain32, plain64, suffix, values};
use super::{Random, Stage, TILE};
use h5z_gpu::testing::abi;
use h5z_gpu::testing::stages::{self as cpu, Arg};

pub(super) fn exact(r: &mut Random) -> Result<usize, String> {
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
    let stage = Stage::new("check_base_exact", n.div_ceil(128)).reads(&input).writes("seven results an item", &want);
    stage.numbers(&[n as u64]).compare()
}

pub(super) fn arithmetic(r: &mut Random, wide: bool) -> Result<usize, String> {
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
    let stage = Stage::new(format!("check_base_arithmetic_{}", suffix(wide)), n.div_ceil(128)).reads(&input);
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

pub(super) fn chunk_of(r: &mut Random) -> Result<usize, String> {
    let mut first = vec![0u32];
    for _ in 0..few(r, 1200) {
        first.push(first.last().expect("one") + 1 + few(r, 300) as u32);
    }
    let tiles: Vec<u32> = (0..500).map(|_| r.below(u64::from(first[first.len() - 1]) + 9) as u32).collect();
    let want: Vec<u32> = tiles.iter().map(|t| first.partition_point(|f| f <= t) as u32 - 1).collect();
    let list = chunks(first.len(), &[("first_tile", &|k| first[k].into())]);
    let stage = Stage::new("check_base_chunk_of", tiles.len().div_ceil(4)).reads(&list).reads(&tiles);
    stage.writes("chunks", &want).numbers(&[first.len() as u64, tiles.len() as u64]).compare()
}

pub(super) fn sums(r: &mut Random) -> Result<usize, String> {
    let words: Vec<u32> = (0..1 + r.below(20_000)).map(|_| r.next() as u32).collect();
    let shift = 2 + r.below(60);
    let (first, segment) = (r.next() >> shift, 1 + r.below(9000) as usize);
    let parts = words.chunks(segment).enumerate();
    let want: Vec<u64> =
        parts.map(|(k, w)| cpu::checksum(bytemuck::cast_slice(w), first + (k * segment) as u64)).collect();
    let mut items = 0;
    for batch in [4, 8, 11] {
        let stage = Stage::new(format!("check_base_sum_{batch}"), want.len()).reads(&words);
        let stage = stage.writes("copied words", &words).writes("sums", &want);
        items += stage.numbers(&[words.len() as u64, first, segment as u64]).compare()?;
    }
    Ok(items)
}

pub(super) fn scans(r: &mut Random) -> Result<usize, String> {
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
    let stage = Stage::new("check_base_scans", n.div_ceil(128)).reads(&input).writes("sums", &totals);
    let stage = stage.writes("running sums", &running).writes("running exclusive ors", &xors);
    stage.writes("ranges", &ranges).numbers(&[n as u64]).compare()
}

pub(super) fn look_back(r: &mut Random) -> Result<usize, String> {
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
    let stage = Stage::new("check_base_look_back", sizes.len()).reads(&sizes).writes("starts", &starts);
    stage.writes("ends", &ends).room(8).compare()
}

/// Bytes of what the CTAs of a chunk share.
const STATE: usize = size_of::<abi::ChunkState>();

/// The kernel that the codec launches for it.
pub(super) fn range(r: &mut Random, kernel: &str, wide: bool) -> Result<usize, String> {
    let size = if wide { 8 } else { 4 };
    let count = 1 + r.below(4) as usize;
    let defined = (!r.one_in(3)).then(|| number(r, wide));
    // HDF5's own, which pads chunks, where the user defined none.
    let fill = defined.unwrap_or(0);
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
        let range = cpu::range(&raw[at[at.len() - 1]..], wide, defined);
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
            ("flags", &|_| defined.map_or(0, |_| abi::FLAG_FILL.into())),
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
