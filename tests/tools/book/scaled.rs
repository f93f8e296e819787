// SPDX-License-Identifier: MIT OR Apache-2.0
//! codecs/src/codec/scaled/FORMAT.md.

use super::{Frame, Refusal, decode as decode_frame, elements, need, number, open, to_bytes};

/// Decodes a frame of this codec.
pub fn decode(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    let float = f.class == 1 && matches!((f.size, f.layout), (4, (1, 8, 23)) | (8, (1, 11, 52)));
    need(f.mode == 9 && (float || f.class == 0), "F9, scaled: mode or type")?;
    let n = elements(f)?;
    let &[head, exceptions, codes] = &f.sections[..] else { return Err("F11".into()) };
    need(head.len() >= 56 && (head.len() > 56) == (head[0] == 5), "K1")?;
    let (map, order, special) = (head[0], head[1], head[2] == 1);
    need(map <= 5 && order <= 3 && head[2] <= 1 && head[3..8].iter().all(|&b| b == 0), "K2")?;
    need((map == 0) == (f.class == 0) && (map != 3 || f.size == 4) && (order < 3 || f.extents.len() > 1), "K3")?;
    let word = |k: usize| number(head, 8 + 8 * k, 8);
    let (unit, origin, step) = (word(0)?, word(1)?, word(2)?);
    need(unit > 0 && (matches!(order, 1 | 2) || step == 0), "K4")?;
    let (factor, addend) = (f64::from_bits(word(3)?), f64::from_bits(word(4)?));
    need(
        if matches!(map, 0 | 4 | 5) { factor.to_bits() == 0 } else { factor.is_finite() && factor > 0.0 },
        "K5, factor",
    )?;
    need(if matches!(map, 0 | 1 | 4 | 5) { addend.to_bits() == 0 } else { addend.is_finite() }, "K5, addend")?;
    let odd = word(5)?;
    need((f.size == 8 || odd < 1 << 32) && (special || odd == 0), "K6")?;

    need(map != 5 || order == 0 && unit == 1 && origin == 0, "K9, head")?;

    let all_ones = u64::MAX >> (64 - 8 * f.size);
    let t = dictionary(f, &head[56..], n)?;
    let c = numbers(f, codes, n)?;
    let low = 1u64 << (8 * f.size - 1);
    let row = f.extents.last().copied().unwrap_or(1);
    let (mut k, mut d, mut r) = (Vec::new(), vec![0u64; n], 0u64);
    for (i, &c) in c.iter().enumerate() {
        if order == 0 {
            k.push(c);
            continue;
        }
        if special && c == low {
            k.push(low);
            continue;
        }
        d[i] = match (order, i) {
            (1 | 2, 0) => 0,
            (1, _) => step.wrapping_add(c),
            (2, 1) => step,
            (2, _) => d[i - 1].wrapping_add(c),
            _ => c.wrapping_add(if i < row { 0 } else { d[i - row] }),
        };
        r = r.wrapping_add(d[i]);
        k.push(r & all_ones);
    }
    let mut x = Vec::new();
    for k in k {
        let q = origin.wrapping_add(unit.wrapping_mul(k));
        let q = match map {
            5 if special && k == low => 0,
            5 => *usize::try_from(k).ok().and_then(|k| t.get(k)).ok_or("K9, code")?,
            _ => q,
        };
        let q = if f.size == 4 { i64::from(q as u32 as i32) } else { q as i64 };
        let real = |x: f64| if f.size == 4 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        x.push(match map {
            _ if special && k == low => odd,
            0 => q as u64 & all_ones,
            1 => real(q as f64 / factor),
            2 => real(q as f64 * factor + addend),
            4 | 5 if q < 0 => !(q as u64) & all_ones | low,
            4 | 5 => q as u64 & all_ones,
            _ => u64::from((q as f32 * factor as f32 + addend as f32).to_bits()),
        });
    }

    let count = exceptions.len() / (4 + f.size);
    need(exceptions.len() == count * (4 + f.size), "K7, length")?;
    let mut least = 0;
    for e in 0..count {
        let place = number(exceptions, 4 * e, 4)? as usize;
        need(place >= least && place < n, "K7, places")?;
        least = place + 1;
        x[place] = number(exceptions, 4 * count + f.size * e, f.size)?;
    }
    Ok(to_bytes(f, &x))
}

/// §3.3: the numbers of the dictionary, as unsigned ones of W bytes; none without a dictionary.
fn dictionary(f: &Frame<'_>, dictionary: &[u8], n: usize) -> Result<Vec<u64>, Refusal> {
    if dictionary.is_empty() {
        return Ok(Vec::new());
    }
    let inner = open(dictionary, number(dictionary, 16, 8)? as usize)?;
    let kind = number(dictionary, 12, 4)?;
    need(matches!(inner.codec, 2 | 4 | 5 | 6) && !inner.swapped, "K9, codec")?;
    need(kind == 1 << 14 | (f.size as u64) << 4, "K9, type")?;
    need(inner.raw_len % f.size == 0 && (1..=n).contains(&(inner.raw_len / f.size)), "K9, length")?;
    let raw = decode_frame(dictionary, inner.raw_len)?;
    (0..inner.raw_len / f.size).map(|i| number(&raw, i * f.size, f.size)).collect()
}

/// §3.2: the codes, as unsigned numbers of W bytes.
fn numbers(f: &Frame<'_>, codes: &[u8], n: usize) -> Result<Vec<u64>, Refusal> {
    if codes.is_empty() {
        return Ok(vec![0; n]);
    }
    let inner = open(codes, f.raw_len)?;
    let kind = number(codes, 12, 4)?;
    need(matches!(inner.codec, 2 | 4 | 5) && !inner.swapped, "K8, codec")?;
    need(kind == 1 << 14 | (f.size as u64) << 4, "K8, type")?;
    need(inner.codec == 4 || inner.extents == f.extents, "K8, extents")?;
    let raw = decode_frame(codes, f.raw_len)?;
    (0..n).map(|i| number(&raw, i * f.size, f.size)).collect()
}
