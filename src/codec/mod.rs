// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codecs, each in a folder of its own; which of them encodes a chunk.
//!
//! A codec's page is the specification of its bytes.

mod auto;
pub mod bytes;
pub(crate) mod chunk;
pub(crate) mod descriptor;
pub mod lorenzo;
pub mod ndzip;
#[cfg(feature = "cuda")]
pub(crate) mod plan;
pub mod planes;
pub(crate) mod stored;
pub mod szx;

use crate::bound::Used;
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{Frame, STORED_HEADER};
use crate::params::{self, Class};
use chunk::Chunk;
use descriptor::Codec;

/// Every codec.
pub(crate) static CODECS: [&Codec; CodecId::NAMES.len()] =
    [&stored::CODEC, &szx::CODEC, &lorenzo::CODEC, &ndzip::CODEC, &bytes::CODEC, &planes::CODEC];

/// The codec of this number; `None` where this build lacks it.
pub(crate) fn of(id: CodecId) -> Option<&'static Codec> {
    CODECS.into_iter().find(|codec| codec.id == id)
}

/// Names of the sections of a codec's frames, in their order; none for a codec that this build lacks.
pub fn sections(id: CodecId) -> &'static [&'static str] {
    of(id).map_or(&[], |codec| codec.sections)
}

/// Which codec encodes a chunk, on every backend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub(crate) codec: CodecId,
    /// The bound used, where choosing took it.
    pub(crate) used: Option<Used>,
}

/// Chooses the codec for a chunk.
pub(crate) fn choose(chunk: &Chunk<'_>) -> Result<Choice> {
    let Chunk { params, raw, .. } = *chunk;
    let dtype = params.dtype;
    let codec = if params.lossy(raw.len()) {
        match (params.request.codec, dtype.size) {
            (params::Codec::Szx, _) => CodecId::SZX,
            (params::Codec::Lorenzo, _) => CodecId::LORENZO,
            (params::Codec::Planes | params::Codec::PlanesDense, _) => CodecId::PLANES,
            (_, 4) => return auto::choose::<f32>(chunk).map(|(codec, used)| Choice { codec, used }),
            _ => return auto::choose::<f64>(chunk).map(|(codec, used)| Choice { codec, used }),
        }
    } else if dtype.class != Class::Bytes && matches!(dtype.size, 4 | 8) && params.fits(raw.len()) {
        match params.request.codec {
            params::Codec::Planes | params::Codec::PlanesDense => CodecId::PLANES,
            _ => CodecId::NDZIP,
        }
    } else {
        CodecId::BYTES
    };
    Ok(Choice { codec, used: None })
}

/// Encodes one chunk on the CPU into `out`, by the codec chosen. False: this chunk is better stored.
pub(crate) fn encode(choice: Choice, chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let codec = of(choice.codec).expect("a codec of this build");
    let chunk = Chunk { used: choice.used, ..*chunk };
    Ok((codec.encode)(&chunk, out)? && out.len() < chunk.raw.len() + STORED_HEADER)
}

/// Decodes one frame on the CPU into `out`, which has the frame's raw length.
pub(crate) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let id = frame.header.codec;
    let codec = of(id).ok_or(Error::Unsupported { format: frame.version(), codec: id })?;
    (codec.decode)(frame, threads, out)
}
