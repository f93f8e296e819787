// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of equal place together, FORMAT.md §4, and back.
//!
//! Both directions walk in groups of elements that stay in the first-level cache, whatever the stride.

/// Elements of one group.
const GROUP: usize = 512;

/// `out[j · m + i] = raw[i · stride + j]` over whole elements; the bytes after them are copied.
pub(crate) fn shuffle(raw: &[u8], stride: usize, out: &mut [u8]) {
    assert_eq!(raw.len(), out.len());
    let m = raw.len() / stride;
    let (whole, rest) = raw.split_at(m * stride);
    let (columns, tail) = out.split_at_mut(m * stride);
    tail.copy_from_slice(rest);
    for (g, group) in whole.chunks(GROUP * stride).enumerate() {
        for j in 0..stride {
            let column = &mut columns[j * m + g * GROUP..][..group.len() / stride];
            for (o, element) in column.iter_mut().zip(group.chunks_exact(stride)) {
                *o = element[j];
            }
        }
    }
}

/// Undoes [`shuffle`].
pub(crate) fn unshuffle(shuffled: &[u8], stride: usize, out: &mut [u8]) {
    assert_eq!(shuffled.len(), out.len());
    let m = out.len() / stride;
    let (columns, rest) = shuffled.split_at(m * stride);
    let (whole, tail) = out.split_at_mut(m * stride);
    tail.copy_from_slice(rest);
    for (g, group) in whole.chunks_mut(GROUP * stride).enumerate() {
        for j in 0..stride {
            let column = &columns[j * m + g * GROUP..][..group.len() / stride];
            for (&b, element) in column.iter().zip(group.chunks_exact_mut(stride)) {
                element[j] = b;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffle_undoes_shuffle_at_every_stride_and_length() {
        for stride in [1, 2, 3, 4, 7, 8, 12, 16, 255] {
            for len in (0..40).chain([GROUP * stride - 1, GROUP * stride, GROUP * stride + 1, 3 * GROUP * stride + 5]) {
                let raw: Vec<u8> = (0..len).map(|i| (i * 31 + i / 256) as u8).collect();
                let (mut a, mut b) = (vec![0; len], vec![0; len]);
                shuffle(&raw, stride, &mut a);
                unshuffle(&a, stride, &mut b);
                assert_eq!(raw, b, "stride {stride}, {len} bytes");
            }
        }
    }

    #[test]
    fn bytes_of_equal_place_stand_together() {
        let mut out = [0; 8];
        shuffle(&[1, 10, 100, 2, 20, 200, 9, 99], 3, &mut out);
        assert_eq!(out, [1, 2, 10, 20, 100, 200, 9, 99]);
    }
}
