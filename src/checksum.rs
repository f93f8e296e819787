// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame's checksum: a sum that any number of threads may compute in any order. FORMAT.md §4.
//!
//! A frame is read as little-endian 32-bit words `w[i]`, the last one filled up with zeros. Each is keyed
//! by its place, `x[i] = w[i] ^ key(i)`, and the checksum is the sum of `x[i]²` in 64 bits. Squares of
//! different 32-bit numbers differ and each is below 2^64, so a change inside one word is always found;
//! any other change is missed with a probability of about 2^-60. A sum has no order: threads of a CPU and
//! warps of a GPU add their parts as they come.

use crate::constants::{CHECKSUM_OFFSET, CHECKSUM_STEP};

/// Sum over `bytes`, whose first byte is word `first` of the frame.
///
/// Additive: the sum of a whole is the wrapping sum of its parts, when parts begin at whole words.
pub(crate) fn sum(bytes: &[u8], first: u64) -> u64 {
    pulp::Arch::new().dispatch(Sum { bytes, first })
}

/// The loop of [`sum`], compiled for each kind of vectors that a machine may have.
struct Sum<'a> {
    bytes: &'a [u8],
    first: u64,
}

impl pulp::NullaryFnOnce for Sum<'_> {
    type Output = u64;
    #[inline(always)]
    fn call(self) -> u64 {
        plain_sum(self.bytes, self.first)
    }
}

#[inline(always)]
fn plain_sum(bytes: &[u8], first: u64) -> u64 {
    // Four independent accumulators and keys let the compiler use vectors.
    const LANES: u64 = 8;
    let (blocks, tail) = bytes.as_chunks::<{ 4 * LANES as usize }>();
    let mut total = [0u64; LANES as usize];
    let mut keys: [u64; LANES as usize] = std::array::from_fn(|k| (first + k as u64).wrapping_mul(CHECKSUM_STEP));
    for block in blocks {
        let words: &[[u8; 4]; LANES as usize] = block.as_chunks().0.try_into().expect("eight words");
        for k in 0..LANES as usize {
            let x = u64::from(u32::from_le_bytes(words[k])) ^ (keys[k] >> 32);
            total[k] = total[k].wrapping_add(x.wrapping_mul(x));
            keys[k] = keys[k].wrapping_add(CHECKSUM_STEP.wrapping_mul(LANES));
        }
    }
    let mut all = total.iter().fold(0u64, |a, &b| a.wrapping_add(b));
    let first = first + blocks.len() as u64 * LANES;
    for (k, word) in tail.chunks(4).enumerate() {
        let mut w = [0u8; 4];
        w[..word.len()].copy_from_slice(word);
        all = all.wrapping_add(square(u32::from_le_bytes(w), first + k as u64));
    }
    all
}

/// What word `w` at place `i` adds to the sum.
#[inline(always)]
fn square(w: u32, i: u64) -> u64 {
    let x = u64::from(w) ^ (i.wrapping_mul(CHECKSUM_STEP) >> 32);
    x.wrapping_mul(x)
}

/// Checksum of a whole frame; the two words of the checksum field itself are left out.
pub(crate) fn frame(bytes: &[u8], threads: usize) -> u64 {
    /// Below this many bytes another thread costs more than it saves.
    const PART: usize = 4 << 20;
    let (head, body) = bytes.split_at(CHECKSUM_OFFSET);
    let body = &body[8..];
    let first = (CHECKSUM_OFFSET / 4 + 2) as u64;
    let parts: Vec<&[u8]> = body.chunks(PART).collect();
    let sums = crate::parallel::map(parts.len(), threads, |k| sum(parts[k], first + (k * PART / 4) as u64));
    sums.into_iter().fold(sum(head, 0), u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let bytes: Vec<u8> = (0..1003u32).map(|i| (i * 7 + i / 13) as u8).collect();
        let whole = sum(&bytes, 5);
        for cut in (0..bytes.len()).step_by(4) {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(whole, sum(a, 5).wrapping_add(sum(b, 5 + cut as u64 / 4)), "cut at {cut}");
        }
    }

    #[test]
    fn every_single_byte_change_changes_the_sum() {
        let bytes: Vec<u8> = (0..203u8).map(|i| i.wrapping_mul(31)).collect();
        let whole = sum(&bytes, 0);
        for at in 0..bytes.len() {
            for flip in 1..=255u8 {
                let mut b = bytes.clone();
                b[at] ^= flip;
                assert_ne!(whole, sum(&b, 0), "byte {at} ^ {flip:#x}");
            }
        }
    }
}
