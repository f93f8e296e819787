// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tile from bytes, FORMAT.md §4 and §7.
//!
//! ```text
//! layout      kinds tell which blocks have bases, bitmaps and codes; bitmaps how many outliers; codes how many bytes.
//!             Every rule of §7 is checked here, and the sum of all lengths must be the payload's: from then on nothing
//!             can be out of bounds
//! for each block
//!     planes      stored bytes are spread to their planes
//!     xor         a running xor along each plane undoes the differences
//!     words       planes are joined to words, and words become values
//!     outliers    are put in their places
//! ```

use super::format::{BITMAP, CODES, Head, Kind, LEADING, Outliers, Words, magic, valid, word_bytes};
use crate::constants::{SZX_BLOCK, SZX_TILE_BLOCKS};
use crate::error::Damage;
use crate::scalar::{Bits, Scalar, WrappingInt};
use crate::stage::pack::{Bytes, Plane, SLACK};

/// Where a tile's parts begin, after its lengths were found right.
struct Layout {
    heads: [Head; SZX_TILE_BLOCKS],
    bases: usize,
    bitmaps: usize,
    outliers: usize,
    codes: usize,
    mid: usize,
}

/// Bit i: value i has its byte p stored.
#[inline(always)]
fn masks(codes: &[u8; CODES]) -> [u128; LEADING] {
    let [low, high] = bytemuck::cast::<[u8; CODES], [[u8; BITMAP]; 2]>(*codes).map(u128::from_le_bytes);
    [!(low | high), !high, !(low & high)]
}

#[inline(always)]
fn window<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// Goes through kinds, bitmaps and codes of a tile of `n` values and checks every length and every rule of §7.
#[inline(always)]
fn layout<S: Scalar>(payload: &[u8], n: usize, words: Words<S>) -> Result<Layout, Damage> {
    let count = n.div_ceil(SZX_BLOCK);
    let short = || format!("{} bytes are too few for {count} blocks", payload.len());
    let values = |k: usize| (n - k * SZX_BLOCK).min(SZX_BLOCK);
    let mut heads = [Head { kind: Kind::Zero, outliers: Outliers::None, codes: false }; SZX_TILE_BLOCKS];
    let bases = count.next_multiple_of(4);
    let kinds = payload.get(..bases).ok_or_else(short)?;
    if kinds[count..].iter().any(|&b| b != 0) {
        return Err("the kinds are not filled up with zeros".into());
    }
    let (mut with_base, mut with_outliers, mut with_codes) = (0, 0, 0);
    for (k, &byte) in kinds[..count].iter().enumerate() {
        let head =
            Head::unpack(byte, words).ok_or_else(|| format!("block {k} has kind {byte:#04x}, which is not allowed"))?;
        let coded = matches!(head.kind, Kind::Coded(_));
        with_base += usize::from(head.kind == Kind::Constant || (coded && words != Words::Patterns));
        with_outliers += usize::from(head.outliers != Outliers::None);
        with_codes += usize::from(head.codes);
        heads[k] = head;
    }
    let bitmaps = bases + with_base * S::SIZE;
    let outliers = bitmaps + with_outliers * BITMAP;
    let mut codes = outliers;
    if with_outliers > 0 {
        let mut at = bitmaps;
        for (k, head) in heads[..count].iter().enumerate().filter(|(_, h)| h.outliers != Outliers::None) {
            let mask = u128::from_le_bytes(*window(payload, at).ok_or_else(short)?);
            if mask == 0 || mask & !valid(values(k)) != 0 {
                return Err(format!("block {k} of {} values has the bitmap {mask:#x}", values(k)).into());
            }
            let stored = if head.outliers == Outliers::Uniform { 1 } else { mask.count_ones() as usize };
            codes += stored * S::SIZE;
            at += BITMAP;
        }
    }
    let mid = codes + with_codes * CODES;
    let (mut at, mut end) = (codes, mid);
    for (k, head) in heads[..count].iter().enumerate() {
        end += match head.kind {
            Kind::Zero | Kind::Constant => 0,
            Kind::Raw => values(k) * S::SIZE,
            Kind::Coded(q) if !head.codes => word_bytes(q) * SZX_BLOCK,
            Kind::Coded(q) => {
                let masks = masks(window(payload, at).ok_or_else(short)?);
                at += CODES;
                let bytes = word_bytes(q);
                let leading = bytes.min(LEADING);
                if masks[leading..].iter().any(|&m| m != u128::MAX) {
                    return Err(format!("block {k} with words of {bytes} bytes has a code above {leading}").into());
                }
                let stored: u32 = masks[..leading].iter().map(|m| m.count_ones()).sum();
                stored as usize + (bytes - leading) * SZX_BLOCK
            }
        };
    }
    if end.next_multiple_of(4) != payload.len() {
        return Err(format!("{} bytes, its blocks need {}", payload.len(), end.next_multiple_of(4)).into());
    }
    if payload[end..].iter().any(|&b| b != 0) {
        return Err("the payload is not filled up with zeros".into());
    }
    Ok(Layout { heads, bases, bitmaps, outliers, codes, mid })
}

/// Decodes the tile that begins at `bytes[0]` and has `len` bytes; what follows may be read but does not matter.
#[inline(always)]
pub(super) fn tile<S: Scalar>(
    bytes: &[u8],
    len: usize,
    words: Words<S>,
    level: impl Bytes,
    out: &mut [S],
) -> Result<(), Damage> {
    let mut at = layout(&bytes[..len], out.len(), words)?;
    let (blocks, rest) = out.as_chunks_mut::<SZX_BLOCK>();
    let full = blocks.len();
    for (k, out) in blocks.iter_mut().enumerate() {
        block(bytes, at.heads[k], SZX_BLOCK, &mut at, words, level, out);
    }
    if !rest.is_empty() {
        let mut out = [S::ZERO; SZX_BLOCK];
        block(bytes, at.heads[full], rest.len(), &mut at, words, level, &mut out);
        rest.copy_from_slice(&out[..rest.len()]);
    }
    Ok(())
}

/// One value at `at`, which the layout has found to be inside.
#[inline(always)]
fn value<S: Scalar>(bytes: &[u8], at: usize) -> S {
    S::of_bits(bytemuck::pod_read_unaligned::<S::Bits>(&bytes[at..at + S::SIZE]).le())
}

#[inline(always)]
fn take_value<S: Scalar>(bytes: &[u8], at: &mut usize) -> S {
    *at += S::SIZE;
    value(bytes, *at - S::SIZE)
}

#[inline(always)]
fn block<S: Scalar>(
    bytes: &[u8],
    head: Head,
    n: usize,
    at: &mut Layout,
    words: Words<S>,
    level: impl Bytes,
    out: &mut [S; SZX_BLOCK],
) {
    match head.kind {
        Kind::Zero => *out = [S::ZERO; SZX_BLOCK],
        Kind::Constant => *out = [take_value(bytes, &mut at.bases); SZX_BLOCK],
        Kind::Raw => {
            let raw = &bytes[at.mid..at.mid + S::SIZE * n];
            for (v, raw) in out.iter_mut().zip(raw.chunks_exact(S::SIZE)) {
                *v = value(raw, 0);
            }
            at.mid += S::SIZE * n;
        }
        Kind::Coded(q) => {
            let mut w = [S::Bits::ZERO; SZX_BLOCK];
            // At most the type's.
            match word_bytes(q).min(S::SIZE) {
                1 => gather::<S, 1>(bytes, head.codes, at, level, &mut w),
                2 => gather::<S, 2>(bytes, head.codes, at, level, &mut w),
                3 => gather::<S, 3>(bytes, head.codes, at, level, &mut w),
                4 => gather::<S, 4>(bytes, head.codes, at, level, &mut w),
                5 => gather::<S, 5>(bytes, head.codes, at, level, &mut w),
                6 => gather::<S, 6>(bytes, head.codes, at, level, &mut w),
                7 => gather::<S, 7>(bytes, head.codes, at, level, &mut w),
                _ => gather::<S, 8>(bytes, head.codes, at, level, &mut w),
            }
            if let Words::Steps(step) = words {
                let (base, magic) = (take_value::<S>(bytes, &mut at.bases), magic::<S>());
                for (out, &w) in out.iter_mut().zip(&w) {
                    *out = base + (S::of_bits(w.plus(magic.bits())) - magic) * step.step;
                }
            } else {
                let cut = 8 * S::SIZE as u32 - q;
                for (out, &w) in out.iter_mut().zip(&w) {
                    *out = S::of_bits(w << cut);
                }
            }
        }
    }
    if head.outliers != Outliers::None {
        let mut mask = u128::from_le_bytes(*window(bytes, at.bitmaps).expect("checked with the layout"));
        at.bitmaps += BITMAP;
        while mask != 0 {
            out[mask.trailing_zeros() as usize] = value(bytes, at.outliers);
            mask &= mask - 1;
            if mask == 0 || head.outliers == Outliers::Each {
                at.outliers += S::SIZE;
            }
        }
    }
}

/// Reads the mid bytes of a coded block with words of `R` bytes.
#[inline(always)]
fn gather<S: Scalar, const R: usize>(
    bytes: &[u8],
    codes: bool,
    at: &mut Layout,
    level: impl Bytes,
    words: &mut [S::Bits; SZX_BLOCK],
) {
    let mut planes = [[0u8; SZX_BLOCK]; R];
    if codes {
        let short = masks(window(bytes, at.codes).expect("checked with the layout"));
        at.codes += CODES;
        for (p, plane) in planes.iter_mut().enumerate() {
            let mask = if p < LEADING { short[p] } else { u128::MAX };
            let stored = mask.count_ones() as usize;
            expand(&bytes[at.mid..], stored, mask, level, plane);
            at.mid += stored;
        }
    } else {
        for plane in &mut planes {
            *plane = *window(bytes, at.mid).expect("checked with the layout");
            at.mid += SZX_BLOCK;
        }
    }
    for i in 0..SZX_BLOCK {
        let mut word = S::Bits::ZERO;
        for plane in &planes {
            // Eight bytes of an f64 shift in one after the other; the first shift moves zeros.
            word = word << 8 | S::Bits::from_u64(plane[i].into());
        }
        words[i] = word;
    }
}

/// As [`Bytes::expand_integrate`], also where nothing follows the packed bytes.
#[inline(always)]
fn expand(packed: &[u8], stored: usize, mask: u128, level: impl Bytes, out: &mut Plane) {
    if packed.len() >= stored + SLACK {
        level.expand_integrate(packed, mask, out);
    } else {
        let mut padded = [0; SZX_BLOCK + SLACK];
        padded[..stored].copy_from_slice(&packed[..stored]);
        level.expand_integrate(&padded, mask, out);
    }
}
