// SPDX-License-Identifier: MIT OR Apache-2.0
//! codecs/src/FORMAT.md §5: numbers whose frames hold others: those of 1 and 2 bytes, and integers in quanta.

use super::{Frame, Refusal, need, number, sections};

/// Decodes a frame that holds `expected` bytes.
pub fn decode(mut f: Frame<'_>, expected: usize) -> Result<Vec<u8>, Refusal> {
    if matches!(f.codec, 1 | 2 | 5) && f.class == 1 && f.size == 2 {
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
