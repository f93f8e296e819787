// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a frame of changed bytes look whole, so that a change reaches the decoder behind the header and the checksum.

use super::seal::seal;

const MAGIC: [u8; 8] = [0x89, 0x48, 0x35, 0x5A, 0x47, 0x0D, 0x0A, 0x1A];
/// Bytes before the extents, and the most extents and sections that a header has.
const FIXED: usize = 56;
const MOST: u8 = 8;
/// The codec whose last section is a frame.
const SCALED: u8 = 6;

/// The frame of `data`, of codec `codec` where one is given.
///
/// The first eight bytes of `data`, where the magic belongs, say what stays as it is: a byte with bit 7 set leaves a
/// rule broken. In the files of seeds they are zeros.
pub fn repair(data: &[u8], codec: Option<u8>) -> Vec<u8> {
    let mut out = data.to_vec();
    if out.len() < FIXED {
        out.resize(FIXED, 0);
    }
    let keep: [bool; 8] = std::array::from_fn(|k| out[k] & 0x80 != 0);
    out[..8].copy_from_slice(&MAGIC);
    if !keep[0] {
        out[8] = 2;
        // Bit 7 says that axes are swapped.
        out[11] = out[11] & 0x80 | (out[11] & 0x7F).min(MOST);
        out[48] = out[48].min(MOST);
        out[49..FIXED].fill(0);
    }
    if let Some(codec) = codec {
        out[9] = codec;
    }
    let (rank, sections) = (usize::from((out[11] & 0x7F).min(MOST)), usize::from(out[48].min(MOST)));
    let table = FIXED + 4 * rank;
    let end = table + 8 * sections;
    if out.len() < end {
        out.resize(end, 0);
    }
    if !keep[1] && rank > 0 {
        let size = u64::from(out[12] >> 4 | out[13] << 4);
        let raw = out[FIXED..table].chunks(4).fold(size, |n, d| n.saturating_mul(number(d)));
        out[16..24].copy_from_slice(&raw.to_le_bytes());
    }
    if !keep[2] {
        end_sections(&mut out, table, end, !keep[3]);
        if out[9] == SCALED && matches!(sections, 3 | 4) {
            repair_inner(&mut out, table, end, sections - 1);
        }
    }
    seal(&mut out);
    out
}

/// Repairs the frame that is the last section of a frame of `scaled`.
fn repair_inner(out: &mut Vec<u8>, table: usize, mut end: usize, last: usize) {
    let aligned = |end: usize| end.checked_next_multiple_of(8).unwrap_or(usize::MAX);
    for at in (table..table + 8 * last).step_by(8) {
        let len = usize::try_from(number(&out[at..at + 8])).unwrap_or(usize::MAX);
        end = aligned(end).saturating_add(len);
    }
    let begin = aligned(end);
    if begin < out.len() && out.get(begin + 9) != Some(&SCALED) {
        let inner = repair(&out[begin..], None);
        out.truncate(begin);
        out.extend(&inner);
        out[table + 8 * last..table + 8 * last + 8].copy_from_slice(&(inner.len() as u64).to_le_bytes());
    }
}

/// A little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Fills up between sections with zeros where `fill` says so, and makes the last one end where the frame ends.
fn end_sections(out: &mut [u8], table: usize, mut end: usize, fill: bool) {
    let lengths = table..end;
    for at in lengths.clone().step_by(8) {
        let begin = end.next_multiple_of(8);
        if begin > out.len() {
            return;
        }
        if fill {
            out[end..begin].fill(0);
        }
        if at + 8 == lengths.end {
            let len = (out.len() - begin) as u64;
            out[at..at + 8].copy_from_slice(&len.to_le_bytes());
            return;
        }
        match usize::try_from(number(&out[at..at + 8])).ok().and_then(|len| begin.checked_add(len)) {
            Some(next) if next <= out.len() => end = next,
            _ => return,
        }
    }
}
