// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a GPU is told of each codec: a plan for each that it takes.

mod lorenzo;
mod ndzip;
mod planes;
mod szx;

use super::plan::Gpu;
use codecs::CodecId;

/// The codecs that a GPU takes. The CPU alone codes all others.
pub(crate) static PLANS: [(CodecId, &Gpu); 4] = [
    (CodecId::SZX, &szx::GPU),
    (CodecId::LORENZO, &lorenzo::GPU),
    (CodecId::NDZIP, &ndzip::GPU),
    (CodecId::PLANES, &planes::GPU),
];

/// A codec's plan; `None`: a GPU does not take it.
pub(crate) fn of_codec(id: CodecId) -> Option<&'static Gpu> {
    PLANS.iter().find(|(codec, _)| *codec == id).map(|(_, gpu)| *gpu)
}
