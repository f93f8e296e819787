// SPDX-License-Identifier: MIT OR Apache-2.0
//! Corrections: how many units in the last place each number lies above the one that the map makes of its whole number.
//! FORMAT.md §3.4, §8.
//!
//! ```text
//! writing   exceptions that are at most 128 units off ──► an integer of 1 byte for each number ──► their frame
//! reading   that frame ──► added to the numbers' bits, in the numbers' order
//! ```

use super::scale::{Multiply, Word, code_type, ordered, ulps};
use crate::codec::bytes;
use crate::codec::chunk::Chunk;
use crate::codec::kept::Scale;
use crate::codec::lorenzo::integers;
use crate::error::Result;
use crate::memory;
use crate::params::{Params, Request};

/// Removes the exceptions that a correction reaches. Returns the corrections of all numbers; none if all are 0.
pub(super) fn take<W: Word>(values: &[W], codes: &[W], scale: Scale, exceptions: &mut Vec<usize>) -> Result<Vec<i8>> {
    let mut mapped = memory::collect(exceptions.len(), exceptions.iter().map(|&i| codes[i]))?;
    scale.with_map(Multiply { scale, codes: &mut mapped });
    let (mut mapped, mut corrections) = (mapped.into_iter(), memory::zeros(values.len())?);
    let before = exceptions.len();
    exceptions.retain(|&i| match mapped.next().map(|x| i8::try_from(ulps(values[i], x))) {
        Some(Ok(more)) => {
            corrections[i] = more;
            false
        }
        _ => true,
    });
    Ok(if exceptions.len() < before { corrections } else { Vec::new() })
}

/// The frame of the corrections, by lorenzo or by bytes, whichever is shorter; empty if there are none.
pub(super) fn encode(corrections: &[i8], chunk: &Chunk<'_>) -> Result<Vec<u8>> {
    let params = Params {
        request: Request::default(),
        dtype: code_type(1),
        extents: chunk.params.extents.unswapped(),
        fill: None,
        lossy_allowed: false,
    };
    let chunk = Chunk { params: &params, raw: bytemuck::cast_slice(corrections), kept: None, ..*chunk };
    let (mut by_bytes, mut out) = (Vec::new(), Vec::new());
    if !corrections.is_empty() {
        bytes::ENCODE(&chunk, &mut by_bytes)?;
        if !integers::encode(&chunk, None, &mut out)? || by_bytes.len() < out.len() {
            return Ok(by_bytes);
        }
    }
    Ok(out)
}

/// Adds corrections to numbers.
pub(super) fn add<W: Word>(values: &mut [W], corrections: &[i8]) {
    for (x, &more) in values.iter_mut().zip(corrections) {
        *x = ordered(W::cut(ordered(*x).wide().wrapping_add(more.into())));
    }
}
