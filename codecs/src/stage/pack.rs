// SPDX-License-Identifier: MIT OR Apache-2.0
//! Planes of 128 bytes: which bytes are not zero, those bytes moved together, and both steps undone.
//!
//! A plane is one byte of each of 128 words (szx), or one bit of each of 1024 (planes).
//!
//! Written twice: in plain Rust for every machine, and with byte shuffles for x86 with AVX2. Both give the same bytes.

/// Bytes of a plane.
pub(crate) const PLANE: usize = 128;

/// The bytes of one plane.
pub(crate) type Plane = [u8; PLANE];

/// Bytes that may be written or read beyond the packed ones: the last move is eight bytes wide.
pub(crate) const SLACK: usize = 8;

/// The steps over byte planes.
pub(crate) trait Bytes: Copy {
    /// Bit i is set where byte i is not zero.
    fn nonzero(self, plane: &Plane) -> u128;
    /// Moves the bytes whose bits are set together. Up to [`SLACK`] bytes after them are written too.
    fn compress(self, plane: &Plane, mask: u128, out: &mut [u8; PLANE + SLACK]);
    /// Puts packed bytes back where bits are set, zeros elsewhere, and replaces each byte by the xor of all up to it.
    /// `packed` is at least [`SLACK`] bytes longer than what it holds.
    fn expand_integrate(self, packed: &[u8], mask: u128, out: &mut Plane);
    /// The same without the sums: packed bytes where bits are set, zeros elsewhere.
    fn expand(self, packed: &[u8], mask: u128, out: &mut Plane);
}

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Bytes for Portable {
    #[inline(always)]
    fn nonzero(self, plane: &Plane) -> u128 {
        let mut bits = [0u8; PLANE / 8];
        for (bits, bytes) in bits.iter_mut().zip(plane.as_chunks::<8>().0) {
            for (k, &b) in bytes.iter().enumerate() {
                *bits |= u8::from(b != 0) << k;
            }
        }
        u128::from_le_bytes(bits)
    }

    #[inline(always)]
    fn compress(self, plane: &Plane, mask: u128, out: &mut [u8; PLANE + SLACK]) {
        let mut at = 0;
        for (bits, bytes) in mask.to_le_bytes().into_iter().zip(plane.as_chunks::<8>().0) {
            for (k, &b) in bytes.iter().enumerate() {
                out[at] = b;
                at += usize::from(bits >> k & 1);
            }
        }
    }

    #[inline(always)]
    fn expand_integrate(self, packed: &[u8], mask: u128, out: &mut Plane) {
        let (mut at, mut sum) = (0, 0);
        for (bits, bytes) in mask.to_le_bytes().into_iter().zip(out.as_chunks_mut::<8>().0) {
            for (k, b) in bytes.iter_mut().enumerate() {
                let set = bits >> k & 1;
                sum ^= packed[at] & set.wrapping_neg();
                at += usize::from(set);
                *b = sum;
            }
        }
    }

    #[inline(always)]
    fn expand(self, packed: &[u8], mask: u128, out: &mut Plane) {
        let mut at = 0;
        for (bits, bytes) in mask.to_le_bytes().into_iter().zip(out.as_chunks_mut::<8>().0) {
            for (k, b) in bytes.iter_mut().enumerate() {
                let set = bits >> k & 1;
                *b = packed[at] & set.wrapping_neg();
                at += usize::from(set);
            }
        }
    }
}

/// For each byte of a mask, two shuffles. The first: the numbers of its set bits, one after the other. The second: at
/// each set bit how many are set below it, 128 (a zero, to the shuffle) elsewhere.
#[cfg(target_arch = "x86_64")]
const SHUFFLES: ([u64; 256], [u64; 256]) = {
    let (mut compress, mut expand) = ([0; 256], [0; 256]);
    let mut m = 0;
    while m < 256 {
        let (mut k, mut at) = (0, 0);
        while k < 8 {
            if m >> k & 1 == 1 {
                compress[m] |= k << (8 * at);
                expand[m] |= at << (8 * k);
                at += 1;
            } else {
                expand[m] |= 128 << (8 * k);
            }
            k += 1;
        }
        m += 1;
    }
    (compress, expand)
};
#[cfg(target_arch = "x86_64")]
const COMPRESS: [u64; 256] = SHUFFLES.0;
#[cfg(target_arch = "x86_64")]
const EXPAND: [u64; 256] = SHUFFLES.1;

#[cfg(target_arch = "x86_64")]
impl Bytes for pulp::x86::V3 {
    #[inline(always)]
    fn nonzero(self, plane: &Plane) -> u128 {
        let zero = self.avx._mm256_setzero_si256();
        let mut bits = [0u32; PLANE / 32];
        for (bits, bytes) in bits.iter_mut().zip(plane.as_chunks::<32>().0) {
            let equal = self.avx2._mm256_cmpeq_epi8(pulp::cast(*bytes), zero);
            *bits = !self.avx2._mm256_movemask_epi8(equal) as u32;
        }
        u128::from_le_bytes(pulp::cast(bits))
    }

    #[inline(always)]
    fn compress(self, plane: &Plane, mask: u128, out: &mut [u8; PLANE + SLACK]) {
        let mut at = 0;
        for (bits, bytes) in mask.to_le_bytes().as_chunks::<2>().0.iter().zip(plane.as_chunks::<16>().0) {
            // The upper half takes from the upper eight bytes.
            let from = [COMPRESS[usize::from(bits[0])], COMPRESS[usize::from(bits[1])] | 0x0808_0808_0808_0808];
            let packed: [u64; 2] = pulp::cast(self.ssse3._mm_shuffle_epi8(pulp::cast(*bytes), pulp::cast(from)));
            for half in 0..2 {
                out[at..at + 8].copy_from_slice(&packed[half].to_le_bytes());
                at += bits[half].count_ones() as usize;
            }
        }
    }

    #[inline(always)]
    fn expand_integrate(self, packed: &[u8], mask: u128, out: &mut Plane) {
        let (mut at, mut carry) = (0, self.sse2._mm_setzero_si128());
        let last = pulp::cast([15u8; 16]);
        for (bits, bytes) in mask.to_le_bytes().as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<16>().0) {
            let from = [EXPAND[usize::from(bits[0])], EXPAND[usize::from(bits[1])] | 0x0808_0808_0808_0808];
            let mut halves = [0u64; 2];
            for half in 0..2 {
                halves[half] = u64::from_le_bytes(packed[at..at + 8].try_into().expect("eight bytes"));
                at += bits[half].count_ones() as usize;
            }
            let v = self.ssse3._mm_shuffle_epi8(pulp::cast(halves), pulp::cast(from));
            let v = self.sse2._mm_xor_si128(v, self.sse2._mm_slli_si128::<1>(v));
            let v = self.sse2._mm_xor_si128(v, self.sse2._mm_slli_si128::<2>(v));
            let v = self.sse2._mm_xor_si128(v, self.sse2._mm_slli_si128::<4>(v));
            let v = self.sse2._mm_xor_si128(v, self.sse2._mm_slli_si128::<8>(v));
            let v = self.sse2._mm_xor_si128(v, carry);
            carry = self.ssse3._mm_shuffle_epi8(v, last);
            *bytes = pulp::cast(v);
        }
    }

    #[inline(always)]
    fn expand(self, packed: &[u8], mask: u128, out: &mut Plane) {
        let mut at = 0;
        for (bits, bytes) in mask.to_le_bytes().as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<16>().0) {
            let from = [EXPAND[usize::from(bits[0])], EXPAND[usize::from(bits[1])] | 0x0808_0808_0808_0808];
            let mut halves = [0u64; 2];
            for half in 0..2 {
                halves[half] = u64::from_le_bytes(packed[at..at + 8].try_into().expect("eight bytes"));
                at += bits[half].count_ones() as usize;
            }
            *bytes = pulp::cast(self.ssse3._mm_shuffle_epi8(pulp::cast(halves), pulp::cast(from)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the steps do, byte by byte.
    fn check(level: impl Bytes, plane: Plane, mask: u128) {
        let set = |i: usize| mask >> i & 1 == 1;
        let mut want = Vec::new();
        (0..PLANE).filter(|&i| set(i)).for_each(|i| want.push(plane[i]));
        let mut packed = [0xAA; PLANE + SLACK];
        level.compress(&plane, mask, &mut packed);
        assert_eq!(packed[..want.len()], want);
        let nonzero = (0..PLANE).fold(0u128, |m, i| m | u128::from(plane[i] != 0) << i);
        assert_eq!(level.nonzero(&plane), nonzero);
        want.resize(want.len() + SLACK, 0x55);
        let mut back = [0; PLANE];
        level.expand_integrate(&want, mask, &mut back);
        let mut sum = 0;
        for i in 0..PLANE {
            sum ^= if set(i) { plane[i] } else { 0 };
            assert_eq!(back[i], sum, "byte {i}");
        }
        level.expand(&want, mask, &mut back);
        (0..PLANE).for_each(|i| assert_eq!(back[i], if set(i) { plane[i] } else { 0 }, "byte {i}"));
    }

    proptest! {
        #[test]
        fn every_level_does_the_same(words in any::<[u64; 16]>(), mask: u128, sparse: bool) {
            let plane: Plane = bytemuck::cast(words);
            let mask = if sparse { mask & mask >> 3 & mask << 7 } else { mask };
            for mask in [mask, 0, u128::MAX, !mask] {
                check(Portable, plane, mask);
                #[cfg(target_arch = "x86_64")]
                if let Some(v3) = pulp::x86::V3::try_new() {
                    check(v3, plane, mask);
                }
            }
        }
    }
}
