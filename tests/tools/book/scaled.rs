// SPDX-License-Identifier: MIT OR Apache-2.0
//! codecs/src/codec/scaled/FORMAT.md, and codecs/src/FORMAT.md §5: frames that hold numbers of another type.

use super::{Frame, Refusal, decode as decode_frame, elements, need, number, open, sections, to_bytes};

/// Decodes a frame of this codec.
pub fn decode(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    let float = f.class == 1 && matches!((f.size, f.layout), (4, (1, 8, 23)) | (8, (1, 11, 52)));
    need(f.mode == 9 && (float || f.class == 0), "F9, scaled: mode or type")?;
    let n = elements(f)?;
    need(matches!(f.sections.len(), 3 | 4), "F11")?;
    let (head, exceptions, codes, corrections) = (f.sections[0], f.sections[1], f.sections[2], f.sections.get(3));
    need(head.len() >= 56 && (head.len() > 56) == (head[0] == 5), "K1")?;
    let (map, order, special) = (head[0], head[1], head[2] == 1);
    need(map <= 5 && order <= 3 && head[2] <= 1 && head[3..8].iter().all(|&b| b == 0), "K2")?;
    need((map == 0) == (f.class == 0) && (map != 3 || f.size == 4), "K3, map")?;
    need(matches!((map, order), (_, 0) | (0..=4, 3) | (0 | 1 | 4, 1) | (1 | 4, 2)), "K3, order")?;
    need(order < 3 || f.extents.len() > 1, "K3, rank")?;
    let word = |k: usize| number(head, 8 + 8 * k, 8);
    let (unit, origin, step, odd) = (word(0)?, word(1)?, word(2)?, word(5)?);
    need(unit > 0 && (matches!(order, 1 | 2) || map == 5 || step == 0), "K4")?;
    let (factor, addend) = (f64::from_bits(word(3)?), f64::from_bits(word(4)?));
    let is_positive = factor.is_finite() && factor > 0.0;
    need(if matches!(map, 0 | 4 | 5) { factor.to_bits() == 0 } else { is_positive }, "K5, factor")?;
    need(if matches!(map, 0 | 1 | 4 | 5) { addend.to_bits() == 0 } else { addend.is_finite() }, "K5, addend")?;
    need((f.size == 8 || odd < 1 << 32) && (special || odd == 0), "K6")?;
    need(map != 5 || unit == 1, "K9, unit")?;
    need(corrections.is_none() || map == 1, "K10, map")?;

    let all_ones = u64::MAX >> (64 - 8 * f.size);
    let t = dictionary(f, head, n)?;
    let c = if codes.is_empty() { vec![0; n] } else { numbers(f, codes, n, f.size, "K8")? };
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

    if let Some(corrections) = corrections {
        // Map 4, which undoes itself.
        let ordered = |x: u64| if x & low > 0 { !x & all_ones | low } else { x };
        for (x, e) in x.iter_mut().zip(numbers(f, corrections, n, 1, "K10")?) {
            *x = ordered(ordered(*x).wrapping_add(e as i8 as u64) & all_ones);
        }
    }
    replace(f, exceptions, &mut x)?;
    Ok(to_bytes(f, &x))
}

/// The exceptions take their places.
fn replace(f: &Frame<'_>, exceptions: &[u8], x: &mut [u64]) -> Result<(), Refusal> {
    let count = exceptions.len() / (4 + f.size);
    need(exceptions.len() == count * (4 + f.size), "K7, length")?;
    let mut least = 0;
    for e in 0..count {
        let place = number(exceptions, 4 * e, 4)? as usize;
        need(place >= least && place < x.len(), "K7, places")?;
        least = place + 1;
        x[place] = number(exceptions, 4 * count + f.size * e, f.size)?;
    }
    Ok(())
}

/// §3.3: the numbers of the dictionary behind the head, as unsigned ones of W bytes; none without a dictionary.
fn dictionary(f: &Frame<'_>, head: &[u8], n: usize) -> Result<Vec<u64>, Refusal> {
    let frame = &head[56..];
    if frame.is_empty() {
        return Ok(Vec::new());
    }
    let inner = open(frame, number(frame, 16, 8)? as usize)?;
    need(inner.codec == 4, "K9, codec")?;
    need(number(frame, 12, 4)? == 1 << 14 | (f.size as u64) << 4, "K9, type")?;
    need(inner.raw_len % f.size == 0 && (1..=n).contains(&(inner.raw_len / f.size)), "K9, length")?;
    let raw = decode_frame(frame, inner.raw_len)?;
    let (mut t, step) = (number(head, 16, 8)?, number(head, 24, 8)?);
    let mut all = Vec::new();
    for j in 0..inner.raw_len / f.size {
        if j > 0 {
            t = t.wrapping_add(step).wrapping_add(number(&raw, j * f.size, f.size)?);
        }
        all.push(t & u64::MAX >> (64 - 8 * f.size));
    }
    Ok(all)
}

/// §3.2, §3.4: the codes or the corrections, as unsigned numbers of `size` bytes.
fn numbers(f: &Frame<'_>, frame: &[u8], n: usize, size: usize, rule: &str) -> Result<Vec<u64>, Refusal> {
    let inner = open(frame, n * size)?;
    let kind = number(frame, 12, 4)?;
    need(matches!(inner.codec, 2 | 4 | 5) && !inner.swapped, rule)?;
    need(kind == 1 << 14 | (size as u64) << 4, rule)?;
    need(inner.codec == 4 || inner.extents == f.extents, rule)?;
    let raw = decode_frame(frame, n * size)?;
    (0..n).map(|i| number(&raw, i * size, size)).collect()
}

/// codecs/src/FORMAT.md §5: decodes a frame that holds `expected` bytes, of numbers whose frames hold others: numbers
/// of 1 and 2 bytes, and integers in quanta.
pub fn decode_held(mut f: Frame<'_>, expected: usize) -> Result<Vec<u8>, Refusal> {
    if matches!(f.codec, 1 | 2 | 5 | 7) && f.class == 1 && f.size == 2 {
        let (layout, big_endian) = (f.layout, f.big_endian);
        need(matches!(layout, (1, 5, 10) | (1, 8, 7)), "type of 16 bits")?;
        f = Frame { size: 4, layout: (1, 8, 23), big_endian: false, raw_len: 2 * expected, ..f };
        let wide = sections(&f)?;
        return Ok(wide
            .chunks(4)
            .flat_map(|y| lower(number(y, 0, 4).expect("a number") as u32, layout.2, big_endian))
            .collect());
    }
    if f.codec == 2 && f.class == 0 && matches!(f.size, 1 | 2 | 4 | 8) {
        need(f.mode == 9, "F9, lorenzo: type")?;
        need(expected.is_multiple_of(f.size), "F14, lorenzo: a part of an integer")?;
        let (size, big_endian) = (f.size, f.big_endian);
        let (layout, raw_len) = ((1, 11, 52), expected / size * 8);
        f = Frame { class: 1, size: 8, layout, big_endian: false, mode: 1, bound: 0.5, raw_len, ..f };
        let integer = |y: &[u8]| {
            // Rust's conversion is that of the text.
            let whole = f64::from_bits(number(y, 0, 8).expect("a number")).round_ties_even() as i64;
            let mut bytes = whole.to_le_bytes()[..size].to_vec();
            if big_endian {
                bytes.reverse();
            }
            bytes
        };
        return Ok(sections(&f)?.chunks(8).flat_map(integer).collect());
    }
    if f.codec == 5 && f.class == 0 && matches!(f.size, 1 | 2) {
        need(f.mode == 9, "F9, planes: type")?;
        need(expected.is_multiple_of(f.size), "F14, planes: a part of an integer")?;
        let (size, big_endian) = (f.size, f.big_endian);
        f = Frame { size: 4, big_endian: false, raw_len: expected / size * 4, ..f };
        let lowest = |i: &[u8]| if big_endian { i[..size].iter().rev().copied().collect() } else { i[..size].to_vec() };
        return Ok(sections(&f)?.chunks(4).flat_map(lowest).collect());
    }
    sections(&f)
}

/// §5: an f32 as the nearest number of 16 bits with `mantissa` bits of mantissa, searched for among all.
fn lower(y: u32, mantissa: u64, big_endian: bool) -> [u8; 2] {
    let exponent = 15 - mantissa;
    let (sign, y) = ((y >> 16) as u16 & 0x8000, y & 0x7FFF_FFFF);
    let infinity = ((1u32 << exponent) - 1) << mantissa;
    let value = |bits: u32| {
        let (e, m) = ((bits >> mantissa) as i32, f64::from(bits & ((1 << mantissa) - 1)));
        let (bias, unit) = ((1 << (exponent - 1)) - 1, 2f64.powi(-(mantissa as i32)));
        if e == 0 { m * unit * 2f64.powi(1 - bias) } else { (1.0 + m * unit) * 2f64.powi(e - bias) }
    };
    let bits = if y >= 0x7F80_0000 {
        infinity | y >> (23 - mantissa) & ((1 << mantissa) - 1)
    } else {
        let y = f64::from(f32::from_bits(y));
        // The largest number that is not above y, or the one behind it.
        let (mut low, mut high) = (0, infinity);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if value(middle) <= y { low = middle } else { high = middle }
        }
        let (below, above) = (y - value(low), value(low + 1) - y);
        if low + 1 == infinity || below < above || below == above && low % 2 == 0 { low } else { low + 1 }
    };
    let bits = sign | bits as u16;
    if big_endian { bits.to_be_bytes() } else { bits.to_le_bytes() }
}
