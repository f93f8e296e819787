// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a chunk's request leaves to the writer, settled before any backend sees the chunk: the order of its axes
//! (codec/order.rs), then its codec (codec/auto.rs, codec/exact.rs).

use super::job::{DecodeJob, EncodeJob};
use crate::bound::Used;
use crate::codec::chunk::{self, Chunk};
use crate::codec::kept::Kept;
use crate::codec::look::Chosen;
use crate::codec::order::{self, Costs};
use crate::codec::{self, auto, exact};
use crate::error::Result;
use crate::params::{Codec, Extents, Params};
use crate::{frame, memory};

/// A frame this many times as long as the shortest is far from it.
const FAR_FROM_SHORTEST: usize = 4;

/// A chunk as its codec gets it.
#[doc(hidden)]
pub struct Settled {
    pub(super) params: Params,
    /// The bound used, where choosing took it.
    pub(super) used: Option<Used>,
    /// How the chunk is coded without loss, if choosing its codec chose that.
    pub(super) kept: Option<Kept>,
    /// The chunk's values with two axes exchanged, where the codec is given them so.
    pub(super) swapped: Option<Vec<u8>>,
    /// The chunk's frame, where choosing its codec made it.
    pub(super) frame: Option<Vec<u8>>,
}

impl Settled {
    /// Settles a job on `threads` threads.
    pub(super) fn new(job: &EncodeJob<'_>, threads: usize) -> Result<Settled> {
        let params = Params { request: job.params.request.without_fast(), ..*job.params };
        let job = &EncodeJob { params: &params, raw: job.raw };
        if params.request.codec == Codec::Small {
            return Settled::smallest(job, threads);
        }
        let ordered = |extents: Extents| ordered(job, extents, threads);
        let mut costs = Costs::default();
        let asked = Params { extents: order::choose(job.params, job.raw, &mut costs)?, ..*job.params };
        let swapped = ordered(asked.extents)?;
        let raw = swapped.as_deref().unwrap_or(job.raw);
        let chunk = Chunk { params: &asked, raw, threads, used: None, kept: None };
        let known = Kept::settled(&asked).filter(|kept| *kept == Kept::Lorenzo);
        let chosen = match known {
            Some(kept) => Some(kept.into()),
            None => codec::choose_kept(&chunk)?,
        };
        if let Some(Chosen { kept, frame }) = chosen {
            return Ok(Settled { params: kept.settle(asked), used: None, kept: Some(kept), swapped, frame });
        }
        let chunk::Settled { params, used, kept, frame } = codec::settle_request(&chunk)?;
        if params.request == job.params.request {
            return Ok(Settled { params, used, kept, swapped, frame });
        }
        if kept.is_none() && exact::is_open(&params, raw.len()) {
            // Nothing is lost, by a codec to be chosen.
            let params = Params { request: params.request, ..*job.params };
            return Settled::new(&EncodeJob { params: &params, ..*job }, threads);
        }
        // An order may suit the codec better that was chosen.
        let extents = order::choose(&Params { request: params.request, ..*job.params }, job.raw, &mut costs)?;
        let is_same = extents == params.extents;
        let swapped = if is_same { swapped } else { ordered(extents)? };
        Ok(Settled { params: Params { extents, ..params }, used, kept, swapped, frame: frame.filter(|_| is_same) })
    }

    /// The shortest of the frames that all codecs make, each of the order of axes that suits it; the raw bytes where
    /// no frame is shorter.
    fn smallest(job: &EncodeJob<'_>, threads: usize) -> Result<Settled> {
        let mut best = Settled::unsettled(job);
        let is_lossy = job.params.lossy(job.raw.len()) || job.params.lossy_half(job.raw.len());
        let mut least = usize::MAX;
        let (mut last, mut costs) = (0, Costs::default());
        for request in auto::everything(job.params.request, is_lossy) {
            // The last one searches all that loses nothing, for ten times as long as the others take together: not
            // where the writer's choice of these is far from being the shortest.
            if request.codec == Codec::Small && last / FAR_FROM_SHORTEST > least {
                break;
            }
            let own = Params { request, ..*job.params };
            let params = Params { extents: order::choose(&own, job.raw, &mut costs)?, ..own };
            let swapped = ordered(job, params.extents, threads)?;
            let raw = swapped.as_deref().unwrap_or(job.raw);
            let mut frame = Vec::new();
            let chunk = Chunk { params: &params, raw, threads, used: None, kept: None };
            let mut is_held = codec::encode(&chunk, &mut frame)?;
            if swapped.is_some() && !(is_held && frame::is_swapped(&frame)) {
                // A codec that knows no axes makes it the shortest, and gets the chunk as it is.
                is_held = codec::encode(&Chunk { params: &own, raw: job.raw, ..chunk }, &mut frame)?;
            }
            last = if is_held { frame.len() } else { job.raw.len() };
            if is_held && last < least {
                (least, best.frame) = (last, Some(frame));
            }
        }
        if best.frame.is_none() {
            let mut frame = Vec::new();
            codec::store(job.params, job.raw, threads, &mut frame)?;
            best.frame = Some(frame);
        }
        Ok(best)
    }

    /// The job as it is, for want of memory to settle it.
    pub(super) fn unsettled(job: &EncodeJob<'_>) -> Settled {
        Settled { params: *job.params, used: None, kept: None, swapped: None, frame: None }
    }

    /// The job that backends get.
    pub fn job<'a>(&'a self, job: &EncodeJob<'a>) -> EncodeJob<'a> {
        EncodeJob { params: &self.params, raw: self.swapped.as_deref().unwrap_or(job.raw) }
    }

    /// Copies the chunk's frame where choosing its codec made it. False: there is none, or no memory for it.
    pub(super) fn copy_frame(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        self.frame.as_ref().is_some_and(|frame| memory::append(out, frame).is_ok())
    }

    /// Whether a frame holds the chunk: not where it has the exchanged values of a codec that knows no axes, which
    /// `stored` and `bytes` are.
    pub fn is_held(&self, frame: &[u8]) -> bool {
        self.swapped.is_none() || frame::is_swapped(frame)
    }

    /// What such a chunk is encoded with as it is.
    pub(super) fn in_its_own_order(&self, job: &EncodeJob<'_>) -> Params {
        Params { extents: job.params.extents, ..self.params }
    }
}

/// The chunk's values with two axes exchanged, where these extents say so.
fn ordered(job: &EncodeJob<'_>, extents: Extents, threads: usize) -> Result<Option<Vec<u8>>> {
    extents.is_swapped().then(|| order::swapped(&extents, job.raw, threads)).transpose()
}

/// Puts the values of a chunk in its own order, which another backend has decoded in its codec's.
#[doc(hidden)]
pub fn restore_order(job: &mut DecodeJob<'_>, threads: usize) -> Result<()> {
    if !frame::is_swapped(job.frame) {
        return Ok(());
    }
    let extents = frame::Frame::open_unsummed(job.frame)?.header.extents;
    let mut coded = memory::zeros::<u8>(job.out.len())?;
    coded.copy_from_slice(job.out);
    order::restore(&extents, &coded, job.out, threads)
}

#[cfg(test)]
mod tests {
    use crate::codec_id::CodecId;
    use crate::params::{Class, Dtype, Params};
    use crate::{Cpu, frame};

    /// Steps of which each repeats nearly all of the one before: other axes suit `planes` and `lorenzo`, and `bytes`,
    /// which knows no axes, makes it shorter still.
    #[test]
    fn what_repeats_is_found_by_small_whatever_axes_suit_the_others() {
        let random = |i: usize| {
            let x = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40
        };
        let dims = [12, 19, 23, 23];
        let step = 19 * 23 * 23;
        let value = |i: usize| (random(if random(i) % 50 == 0 { i } else { i % step }) >> 8) % 120;
        let raw: Vec<u8> = (0..12 * step).flat_map(|i| (value(i) as i16).to_le_bytes()).collect();
        let dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(2) };
        let params = Params::new("mode=lossless,codec=small".parse().unwrap(), dtype, &dims).unwrap();
        let (frame, mut back) = (Cpu::with_threads(1).encode(&params, &raw), vec![0; raw.len()]);
        assert_eq!((frame::header(&frame).unwrap().codec, frame.len() < 18_000), (CodecId::BYTES, true));
        Cpu::with_threads(1).decode_into(&frame, &mut back).unwrap();
        assert!(back == raw);
    }
}
