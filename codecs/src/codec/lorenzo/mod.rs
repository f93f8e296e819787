// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::codec::chunk::{self, Chunk};
use crate::codec::descriptor::{Codec, Encode};
use crate::codec_id::CodecId;
use crate::error::Result;
use crate::scalar::Scalar;

#[doc(hidden)]
pub mod cpu;
mod decode;
#[doc(hidden)]
pub mod encode;
#[doc(hidden)]
pub mod format;
#[doc(hidden)]
pub mod integers;
mod interpolated;
pub(crate) mod outliers;
mod select;
#[cfg(test)]
mod tests;

/// What everybody else knows of this codec.
pub(crate) static CODEC: Codec = Codec {
    id: CodecId::LORENZO,
    sections: &["head", "kinds", "lengths", "payload"],
    decode: |frame, threads, out| {
        if integers::is_wide(&frame.header) {
            return integers::decode(frame, threads, out);
        }
        chunk::decode_lossy(&frame.header, out, |v| cpu::decode(frame, threads, v), |v| cpu::decode(frame, threads, v))
    },
};

pub(crate) const ENCODE: Encode = |c, out| chunk::encode_lossy(c, CodecId::LORENZO, out, cpu::encode, cpu::encode);

/// Length of the frame that [`ENCODE`] makes, which is not made. `None`: of none.
pub(crate) fn frame_len(chunk: &Chunk<'_>) -> Result<Option<usize>> {
    fn of<S: Scalar>(chunk: &Chunk<'_>) -> Result<Option<usize>> {
        let used = chunk.used::<S>()?;
        cpu::frame_len::<S>(chunk, used, chunk.header(CodecId::LORENZO, Some(used)))
    }
    if chunk.params.dtype.size == 4 { of::<f32>(chunk) } else { of::<f64>(chunk) }
}

/// What turns values into the integers that are predicted, to be compared with a kernel's.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn quantizer<S: crate::scalar::Scalar>(used: crate::bound::Tolerance) -> crate::stage::quantize::Quantizer {
    use crate::stage::quantize::NO_BASE;
    encode::quantizer::<S>(matches!(used, crate::bound::Tolerance::PointwiseRelative(_)), used.value(), NO_BASE)
}

/// The axes that Lorenzo prediction of a tile's quanta takes, to be compared with a kernel's.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn axes(q: &[i32], extents: [usize; 3]) -> u8 {
    select::choose_axes(q, extents, &mut select::Rows::default(), &mut vec![0; q.len()]).expect("memory").0
}
