// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of equal place together, or bits of equal place, FORMAT.md §4, and back.
//!
//! ```text
//! bytes   m elements become s columns of m bytes
//! bits    8 · q elements become 8 · s bit planes of q bytes: each column's 8 bytes of 8 elements are a square of 8 x 8
//!         bits, which is transposed in one word (Hacker's Delight, 2nd edition, 7-3); the squares' bytes of equal
//!         place are bytes of one plane
//! ```
//!
//! All walk in groups of elements that stay in the first-level cache, whatever the stride.

use crate::simd::vectorize;

/// Elements of one group.
const GROUP: usize = 512;
/// Squares of a group's column.
const SQUARES: usize = GROUP / 8;

/// What stands together: a part of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Bit,
}

/// How a tile is shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shuffle {
    /// Element size.
    pub(crate) stride: usize,
    pub(crate) unit: Unit,
}

impl Shuffle {
    /// Every byte stays where it is.
    pub(crate) const NONE: Shuffle = Shuffle { stride: 1, unit: Unit::Byte };

    /// `raw` shuffled into `out` of the same length.
    pub(crate) fn shuffle(self, raw: &[u8], out: &mut [u8]) {
        match self.unit {
            Unit::Byte => vectorize(
                #[inline(always)]
                || shuffle_bytes(raw, self.stride, out),
            ),
            Unit::Bit => vectorize(
                #[inline(always)]
                || shuffle_bits(raw, self.stride, out),
            ),
        }
    }

    /// Undoes [`Shuffle::shuffle`].
    pub(crate) fn unshuffle(self, shuffled: &[u8], out: &mut [u8]) {
        match self.unit {
            Unit::Byte => vectorize(
                #[inline(always)]
                || unshuffle_bytes(shuffled, self.stride, out),
            ),
            Unit::Bit => vectorize(
                #[inline(always)]
                || unshuffle_bits(shuffled, self.stride, out),
            ),
        }
    }
}

/// `out[j · m + i] = raw[i · stride + j]` over whole elements; the bytes after them are copied.
#[inline(always)]
fn shuffle_bytes(raw: &[u8], stride: usize, out: &mut [u8]) {
    assert_eq!(raw.len(), out.len());
    let m = raw.len() / stride;
    let (whole, rest) = raw.split_at(m * stride);
    let (columns, tail) = out.split_at_mut(m * stride);
    tail.copy_from_slice(rest);
    for (g, group) in whole.chunks(GROUP * stride).enumerate() {
        for j in 0..stride {
            gather(group, stride, j, &mut columns[j * m + g * GROUP..][..group.len() / stride]);
        }
    }
}

/// Undoes [`shuffle_bytes`].
#[inline(always)]
fn unshuffle_bytes(shuffled: &[u8], stride: usize, out: &mut [u8]) {
    /// With a stride that the compiler knows whole elements are written, many at a time.
    #[inline(always)]
    fn by<const STRIDE: usize>(columns: &[u8], elements: &mut [u8]) {
        let m = columns.len() / STRIDE;
        let columns: [&[u8]; STRIDE] = std::array::from_fn(|j| &columns[j * m..][..m]);
        for (i, element) in elements.as_chunks_mut::<STRIDE>().0[..m].iter_mut().enumerate() {
            *element = columns.map(|column| column[i]);
        }
    }
    assert_eq!(shuffled.len(), out.len());
    let m = out.len() / stride;
    let (columns, rest) = shuffled.split_at(m * stride);
    let (whole, tail) = out.split_at_mut(m * stride);
    tail.copy_from_slice(rest);
    match stride {
        2 => by::<2>(columns, whole),
        4 => by::<4>(columns, whole),
        8 => by::<8>(columns, whole),
        _ => {
            for (g, group) in whole.chunks_mut(GROUP * stride).enumerate() {
                for j in 0..stride {
                    scatter(&columns[j * m + g * GROUP..][..group.len() / stride], stride, j, group);
                }
            }
        }
    }
}

/// Bit t of byte j of element i becomes bit i mod 8 of `out[(8 · j + t) · q + i div 8]`, over whole groups of 8
/// elements; the bytes after them are copied.
#[inline(always)]
fn shuffle_bits(raw: &[u8], stride: usize, out: &mut [u8]) {
    assert_eq!(raw.len(), out.len());
    let q = raw.len() / (8 * stride);
    let (whole, rest) = raw.split_at(8 * q * stride);
    let (planes, tail) = out.split_at_mut(8 * q * stride);
    tail.copy_from_slice(rest);
    // Where the last group is shorter, what is left of the one before goes nowhere.
    let (mut squares, mut rows) = ([[0; 8]; SQUARES], [[0; SQUARES]; 8]);
    for (g, group) in whole.chunks(GROUP * stride).enumerate() {
        let (elements, bytes) = (group.len() / stride, group.len() / stride / 8);
        for j in 0..stride {
            gather(group, stride, j, &mut squares.as_flattened_mut()[..elements]);
            squares.iter_mut().for_each(transpose);
            for (t, row) in rows.iter_mut().enumerate() {
                row.iter_mut().zip(&squares).for_each(|(o, square)| *o = square[t]);
                planes[(8 * j + t) * q + g * SQUARES..][..bytes].copy_from_slice(&row[..bytes]);
            }
        }
    }
}

/// Undoes [`shuffle_bits`].
#[inline(always)]
fn unshuffle_bits(shuffled: &[u8], stride: usize, out: &mut [u8]) {
    assert_eq!(shuffled.len(), out.len());
    let q = out.len() / (8 * stride);
    let (planes, rest) = shuffled.split_at(8 * q * stride);
    let (whole, tail) = out.split_at_mut(8 * q * stride);
    tail.copy_from_slice(rest);
    let (mut squares, mut rows) = ([[0; 8]; SQUARES], [[0; SQUARES]; 8]);
    for (g, group) in whole.chunks_mut(GROUP * stride).enumerate() {
        let (elements, bytes) = (group.len() / stride, group.len() / stride / 8);
        for j in 0..stride {
            for (t, row) in rows.iter_mut().enumerate() {
                row[..bytes].copy_from_slice(&planes[(8 * j + t) * q + g * SQUARES..][..bytes]);
            }
            for (k, square) in squares.iter_mut().enumerate() {
                *square = std::array::from_fn(|t| rows[t][k]);
                transpose(square);
            }
            scatter(&squares.as_flattened()[..elements], stride, j, group);
        }
    }
}

/// Exchanges bit c of byte r with bit r of byte c.
#[inline(always)]
fn transpose(square: &mut [u8; 8]) {
    let mut x = u64::from_le_bytes(*square);
    // Off the diagonal: bits of squares of 2 x 2, then squares of 2 x 2 bits, then of 4 x 4.
    for (by, mask) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
        let differ = (x ^ x >> by) & mask;
        x ^= differ ^ differ << by;
    }
    *square = x.to_le_bytes();
}

/// Byte `j` of every element.
#[inline(always)]
fn gather(elements: &[u8], stride: usize, j: usize, column: &mut [u8]) {
    /// With a stride that the compiler knows there are vectors of elements.
    #[inline(always)]
    fn by<const STRIDE: usize>(elements: &[u8], j: usize, column: &mut [u8]) {
        column.iter_mut().zip(elements.as_chunks::<STRIDE>().0).for_each(|(o, element)| *o = element[j]);
    }
    match stride {
        1 => column.copy_from_slice(elements),
        2 => by::<2>(elements, j, column),
        4 => by::<4>(elements, j, column),
        8 => by::<8>(elements, j, column),
        _ => column.iter_mut().zip(elements.chunks_exact(stride)).for_each(|(o, element)| *o = element[j]),
    }
}

/// Undoes [`gather`].
#[inline(always)]
fn scatter(column: &[u8], stride: usize, j: usize, elements: &mut [u8]) {
    #[inline(always)]
    fn by<const STRIDE: usize>(column: &[u8], j: usize, elements: &mut [u8]) {
        column.iter().zip(elements.as_chunks_mut::<STRIDE>().0).for_each(|(&b, element)| element[j] = b);
    }
    match stride {
        1 => elements.copy_from_slice(column),
        2 => by::<2>(column, j, elements),
        4 => by::<4>(column, j, elements),
        8 => by::<8>(column, j, elements),
        _ => column.iter().zip(elements.chunks_exact_mut(stride)).for_each(|(&b, element)| element[j] = b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffle_undoes_shuffle_at_every_stride_and_length() {
        for (stride, unit) in
            [1, 2, 3, 4, 7, 8, 12, 16, 255].into_iter().flat_map(|s| [(s, Unit::Byte), (s, Unit::Bit)])
        {
            let group = GROUP * stride;
            let near = [group - 8 * stride, group - 1, group, group + 1, group + 8 * stride, 3 * group + 5];
            for len in (0..40).chain((8..40).step_by(8).map(|n| n * stride)).chain(near) {
                let raw: Vec<u8> = (0..len).map(|i| (i * 31 + i / 256) as u8).collect();
                let (mut a, mut b) = (vec![0; len], vec![0xAA; len]);
                Shuffle { stride, unit }.shuffle(&raw, &mut a);
                Shuffle { stride, unit }.unshuffle(&a, &mut b);
                assert_eq!(raw, b, "stride {stride}, {unit:?}, {len} bytes");
            }
        }
    }

    #[test]
    fn bytes_of_equal_place_stand_together() {
        let mut out = [0; 8];
        Shuffle { stride: 3, unit: Unit::Byte }.shuffle(&[1, 10, 100, 2, 20, 200, 9, 99], &mut out);
        assert_eq!(out, [1, 2, 10, 20, 100, 200, 9, 99]);
    }

    #[test]
    fn bits_of_equal_place_stand_together() {
        for (stride, len) in [(1, 16), (1, 5000), (2, 1111), (3, 26 * 24 + 17), (8, 5000), (255, 2 * 8 * 255 + 300)] {
            let raw: Vec<u8> = (0..len).map(|i| (i * i * 7 + i / 100) as u8).collect();
            let mut out = vec![0; len];
            Shuffle { stride, unit: Unit::Bit }.shuffle(&raw, &mut out);
            let q = len / (8 * stride);
            for (i, j, t) in (0..8 * q).flat_map(|i| (0..stride).flat_map(move |j| (0..8).map(move |t| (i, j, t)))) {
                let bit = out[(8 * j + t) * q + i / 8] >> (i % 8) & 1;
                assert_eq!(bit, raw[i * stride + j] >> t & 1, "stride {stride}, element {i}, byte {j}, bit {t}");
            }
            assert_eq!(out[8 * q * stride..], raw[8 * q * stride..], "stride {stride}");
        }
    }
}
