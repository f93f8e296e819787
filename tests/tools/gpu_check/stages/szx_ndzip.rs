// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tiles of `szx` and cubes of `ndzip`, both ways, damaged too.

use super::numbers::{bytes, number, one_of, suffix, values};
use super::{Random, Stage, TILE};
use h5z_gpu::testing::constants::{NDZIP_CUBE, SZX_BLOCK, SZX_TILE_BLOCKS};
use h5z_gpu::testing::stages as cpu;

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

pub(super) fn szx(r: &mut Random, wide: bool) -> Result<usize, String> {
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

pub(super) fn ndzip(r: &mut Random, wide: bool) -> Result<usize, String> {
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

pub(super) fn ndzip_places(r: &mut Random) -> Result<usize, String> {
    let rank = 1 + r.below(3) as u32;
    let most = [20_000, 200, 50][rank as usize - 1];
    let extents: Vec<u32> = (0..rank).map(|_| 1 + r.below(most) as u32).collect();
    let Some(cpu::Places { dims, rank, origins, border }) = cpu::ndzip_places(&extents) else { return Ok(0) };
    let stage = Stage::new("check_ndzip_places", origins.len().max(border.len()).div_ceil(128));
    let stage = stage.writes("origins of cubes", &origins).writes("border", &border).about(format!(", {extents:?}"));
    let numbers = [origins.len(), border.len(), dims[0], dims[1], dims[2], rank].map(|n| n as u64);
    stage.numbers(&numbers).compare()
}
