// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lorenzo` is made of: quanta, differences and points, codebooks, tiles.

use super::numbers::{bytes, few, suffix, values};
use super::{Random, Stage};
use h5z_gpu::testing::constants::LORENZO_SYMBOLS;
use h5z_gpu::testing::stages as cpu;

pub(super) fn quantize(r: &mut Random, wide: bool) -> Result<usize, String> {
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
    let stage = Stage::new(format!("check_lorenzo_quantize_{}", suffix(wide)), n.div_ceil(512)).reads(&raw);
    let stage =
        stage.writes("quanta", &quanta).writes("no exceptions", &ordinary).writes("losses", &[u32::from(!exact)]);
    let stage = stage.about(format!(", {n} values, bound {bound:e}, logarithmic {log}, fill {fill:x?}"));
    stage.numbers(&[n as u64, bound.to_bits(), log.into(), fill.unwrap_or(0), fill.is_some().into()]).compare()
}

/// Extents of a tile.
fn tile(r: &mut Random) -> [usize; 3] {
    if r.one_in(8) {
        return [16, 16, 32];
    }
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

pub(super) fn lorenzo(r: &mut Random) -> Result<usize, String> {
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
    let stage =
        Stage::new("check_lorenzo_differences", 1).reads(&q).writes("residuals", &residuals).writes("costs", &costs);
    let stage = stage.writes("axes", &[u32::from(cpu::axes(&q, extents))]).about(format!(", {extents:?}, axes {axes}"));
    let [z, y, x] = extents.map(|e| e as u64);
    let mut items = stage.numbers(&[z, y, x, axes.into()]).compare()?;

    let residuals = integers(r, extents);
    let way = (r.below(8) | r.below(2) << 7) as u8;
    let points = cpu::interpolated(&residuals, extents, way);
    let stage = Stage::new("check_lorenzo_interpolate", 1).reads(&residuals).writes("points", &points);
    items += stage.about(format!(", {extents:?}, way {way:#04x}")).numbers(&[z, y, x, way.into()]).compare()?;
    Ok(items)
}

pub(super) fn codebook(r: &mut Random) -> Result<usize, String> {
    // All together are fewer than 2^32, as a chunk's are.
    let (present, steep) = (r.below(5), 1 + r.below(24));
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
    let stage = Stage::new("check_lorenzo_codebook", 1).reads(&counts.map(|c| c as u32)).writes("lengths", &lengths);
    stage.writes("codewords", &codewords).about(format!(", counts {counts:?}")).compare()
}

pub(super) fn tiles(r: &mut Random) -> Result<usize, String> {
    let extents: Vec<u32> = (0..1 + r.below(4)).map(|_| 1 + few(r, 400) as u32).collect();
    let Some(cpu::Tiles { extents, tile, all }) = cpu::cut(&extents) else { return Ok(0) };
    let all = &all[..all.len().min(100_000)];
    let stage = Stage::new("check_lorenzo_tiles", all.len().div_ceil(128)).reads(&[extents, tile].concat());
    stage.writes("places and extents", all).numbers(&[all.len() as u64]).about(format!(", {extents:?}")).compare()
}
