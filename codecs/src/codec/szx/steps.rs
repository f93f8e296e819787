// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single steps of the codec, to be compared with those of the kernels.

use super::cpu::{decode_tile, encode_run};
use super::encode::ChunkRule;
use super::format::{Words, pattern_bits};
use crate::bound::Tolerance;
use crate::error::Result;
use crate::scalar::{Bits, Scalar};

/// What a bound means: the step and its inverse in bits, 0 where it is not usable, and the required bits of mode 3.
pub fn rule<S: Scalar>(bound: f64) -> [u64; 3] {
    let (step, inverse) = match Words::<S>::new(false, bound) {
        Words::Steps(s) => (s.step.bits().to_u64(), s.inverse.bits().to_u64()),
        _ => (0, 0),
    };
    [step, inverse, pattern_bits::<S>(bound).into()]
}

/// Tiles' lengths in units of four bytes, and their payloads.
pub fn payloads<S: Scalar>(values: &[S], used: Tolerance, fill: Option<u64>) -> (Vec<u32>, Vec<u8>) {
    let mut out = Vec::new();
    (encode_run(values, &ChunkRule::new(used.into(), fill), &mut out).expect("memory"), out)
}

/// The values of a payload of one tile, whole words long.
pub fn values<S: Scalar>(payload: &[u8], used: Tolerance, out: &mut [S]) -> Result<()> {
    decode_tile(payload, Words::new(matches!(used, Tolerance::PointwiseRelative(_)), used.value()), out)
}
