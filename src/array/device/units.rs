// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks of a batch that are kept as multiples of a unit (codecs/src/codec/scaled/FORMAT.md), but the rarer ways.
//!
//! ```text
//! device   numbers ── kernels/scaled.cu ──▶ codes, exceptions; codes ── planes or lorenzo ──▶ a frame
//! host     ──▶ the chunk's frame around it
//! ```
//!
//! Left to the CPU are differences of codes, corrections, dictionaries, codes that are all 0, and a chunk of which more
//! than one number in [`VALUES_PER_EXCEPTION`] is an exception.

use super::choose::Chosen;
use crate::cuda::{Buffer, Described, Device, Failure, OwnStream};
use crate::engine::gpu::encode::EncodePlan;
use crate::engine::gpu::group::offsets;
use codecs::codec::kept::{Inner, Kept, Map, Way};
use codecs::codec::scaled::{self, Exception};
use codecs::error::Result;
use codecs::params::{Dtype, Params};
use codecs::{memory, parallel};
use kernels::abi::{FLAG_FILL, FLAG_SWAP, SCALED_FAR, SCALED_SOME, ScaledArgs, ScaledChunk};

/// One in this many numbers may be an exception, or [`LEAST`] numbers of a chunk.
const VALUES_PER_EXCEPTION: usize = 256;
const LEAST: usize = 16;
/// Numbers that a CTA maps.
const CTA_VALUES: usize = 8 << 10;
/// Frames that a thread puts together while another one is started.
const FRAMES_OF_A_THREAD: usize = 16;
/// Bytes by which a frame may be longer than that of its codes, besides its exceptions.
const AROUND: usize = 256;

/// The chunks of a batch that are kept so, in their order.
#[derive(Default)]
pub(super) struct Units {
    all: Vec<Unit>,
    /// Numbers of each.
    values: usize,
    /// Exceptions that there is room for, of each.
    most: usize,
}

struct Unit {
    /// Its number in the batch.
    i: usize,
    way: Way,
    /// Its exceptions; `None` where the chunk is left to the CPU.
    exceptions: Option<Vec<Exception>>,
}

/// How a chunk is kept as multiples of a unit whose codes kernels make, and the params of these codes; `None`: not so.
pub(super) fn by_kernels(asked: &Params, chosen: &Chosen) -> Option<(Way, Params)> {
    let Some(Kept::Scaled(way)) = chosen.kept else { return None };
    let extents = chosen.params.extents;
    let is_taken = way.order == 0 && !way.scale.corrected && way.scale.map != Map::Dictionary;
    // The CPU codes chunks whose axes are exchanged.
    let is_plain = !extents.is_swapped() && extents == asked.extents;
    let codes = scaled::codes_params(&chosen.params, &way);
    let codes = match way.inner {
        Inner::Planes => codes,
        Inner::Lorenzo => Kept::Lorenzo.settle(codes),
        Inner::Bytes => return None,
    };
    (is_taken && is_plain).then_some((way, codes))
}

/// The plan of such codes, with their special number as the one that is always an outlier: `lorenzo` has f64.
pub(super) fn plan_of_codes(mut plan: EncodePlan, way: &Way, codes: &Params) -> EncodePlan {
    if way.inner == Inner::Lorenzo && codes.fill.is_some() {
        let lowest = -2f64.powi(8 * i32::from(codes.dtype.size) - 1);
        let chunk = &mut plan.encoding.chunk;
        (chunk.flags, chunk.fill) = (chunk.flags | FLAG_FILL, lowest.to_bits());
    }
    plan
}

impl Units {
    /// Those of these chunks, of `values` numbers.
    pub(super) fn of(chunks: impl Iterator<Item = (usize, Way)>, values: usize) -> Units {
        let all = chunks.map(|(i, way)| Unit { i, way, exceptions: None }).collect();
        Units { all, values, most: (values / VALUES_PER_EXCEPTION).max(LEAST).next_multiple_of(2) }
    }

    /// Bytes of what the kernel finds of one, and of all of them.
    fn each(&self) -> usize {
        8 + (size_of::<u64>() + size_of::<u32>()) * self.most
    }

    pub(super) fn found_len(&self) -> usize {
        self.each() * self.all.len()
    }

    /// Bytes of the codes of all of them, of chunks of `raw_len` bytes.
    pub(super) fn codes_len(&self, raw_len: usize) -> usize {
        *offsets(self.all.iter().map(|_| raw_len)).last().expect("an end")
    }

    /// Starts the kernel: the codes come to `codes`, where `inputs` then says they are, and what is found to the
    /// stream's [`Buffer::Work`] from `found` on.
    pub(super) fn start(
        &self,
        device: &Device,
        stream: &mut OwnStream,
        dtype: Dtype,
        inputs: &mut [u64],
        codes: u64,
        found: usize,
    ) -> Result<(), Failure> {
        if self.all.is_empty() {
            return Ok(());
        }
        let raw_len = self.values * usize::from(dtype.size);
        let work = stream.reserve(Buffer::Work, found + self.found_len())?;
        let places = offsets(self.all.iter().map(|_| raw_len));
        let mut told = Vec::with_capacity(self.all.len());
        for (k, (unit, at)) in self.all.iter().zip(places).enumerate() {
            let scale = unit.way.scale;
            let flag = |is: bool, flag| if is { flag } else { 0 };
            let codes = codes + at as u64;
            told.push(ScaledChunk {
                numbers: std::mem::replace(&mut inputs[unit.i], codes),
                codes,
                found: work + (found + k * self.each()) as u64,
                values: self.values as u64,
                factor: scale.factor,
                addend: scale.addend,
                unit: scale.unit,
                origin: scale.origin as u64,
                special: scale.special.unwrap_or(0),
                map: scale.map as u32,
                flags: flag(scale.special.is_some(), FLAG_FILL) | flag(dtype.big_endian, FLAG_SWAP),
                most: self.most as u32,
                reserved: 0,
            });
        }
        stream.zero(Buffer::Work, found, self.found_len())?;
        let described = ScaledChunk::bytes(&told);
        let chunks = stream.reserve(Buffer::Boxes, described.len())?;
        stream.put(Buffer::Boxes, 0, described)?;
        let parts = self.values.div_ceil(CTA_VALUES).clamp(1, 64) as u32;
        let kernel = device.kernel(if dtype.size == 4 { "scaled_divide_f32" } else { "scaled_divide_f64" })?;
        // SAFETY: numbers of chunks, room for as many codes, and what is found in the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            stream.launch(kernel, told.len() as u32 * parts, &ScaledArgs { chunks, parts, reserved: 0 })
        }
    }

    /// Reads what the kernel has found.
    pub(super) fn read(&mut self, found: &[u8]) -> Result<()> {
        let (each, most) = (self.each(), self.most);
        for (unit, found) in self.all.iter_mut().zip(found.chunks_exact(each)) {
            let (counts, lists) = found.split_at(8);
            let (bits, places) = lists.split_at(size_of::<u64>() * most);
            let [count, seen] = [0, 4].map(|at| u32::from_le_bytes(counts[at..at + 4].try_into().expect("four bytes")));
            if count as usize > most || seen & SCALED_FAR != 0 || seen & SCALED_SOME == 0 {
                continue;
            }
            let place = places.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
            let bits = bits.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let all = place.zip(bits).take(count as usize).map(|(place, bits)| Exception { place, bits });
            let mut exceptions: Vec<Exception> = memory::with_capacity(count as usize)?;
            exceptions.extend(all);
            exceptions.sort_unstable();
            unit.exceptions = Some(exceptions);
        }
        Ok(())
    }

    /// Whether chunk `i` of the batch, of `raw_len` bytes, whose codes' frame has `len` bytes, is left to the CPU after
    /// all.
    pub(super) fn leave(&self, i: usize, len: usize, raw_len: usize) -> bool {
        self.all.binary_search_by_key(&i, |unit| unit.i).is_ok_and(|k| match &self.all[k].exceptions {
            Some(exceptions) => len + AROUND + size_of::<(u32, u64)>() * exceptions.len() > raw_len,
            None => true,
        })
    }

    /// The frames of those chunks, of `raw_len` bytes each, of which `inner` has that of the codes: the chunks' numbers
    /// in the batch, and their frames.
    pub(super) fn frames<'a>(
        &self,
        params: &Params,
        raw_len: usize,
        threads: usize,
        inner: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<Vec<(usize, Vec<u8>)>> {
        let all: Vec<(&Unit, &[u8])> = self.all.iter().filter_map(|unit| Some((unit, inner(unit.i)?))).collect();
        parallel::try_map(all.len(), threads.min(all.len() / FRAMES_OF_A_THREAD), |k| {
            let (unit, inner) = all[k];
            let (exceptions, mut frame) = (unit.exceptions.as_deref().unwrap_or(&[]), Vec::new());
            scaled::frame_around(params, raw_len, unit.way.scale, exceptions, inner, &mut frame)?;
            Ok((unit.i, frame))
        })
    }
}
