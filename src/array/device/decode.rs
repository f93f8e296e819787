// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames into a device array: a thread a batch, several at a time.
//!
//! A batch's frames are read into page-locked memory, each at a multiple of 256 bytes ([`read_frames`]), and cross the
//! bus in one copy. Those of the same codec are decoded by the same launches into dense chunks, or in place; boxes of
//! them are scattered by one launch. A frame that is not the kernels', or not right, is decoded by the CPU, which names
//! what is wrong, and its values are uploaded.

use super::base::{batch, grouped, in_place};
use super::by_host::ByHost;
use super::copies::{Copies, Side};
use super::halves::Halves;
use super::runs::read_frames;
use crate::array::boxes::{Array, Overlap, dense};
use crate::array::frames::{Frames, fits, frame_len, read_frame, stored_len};
use crate::cuda::{ALIGN, Buffer, Device, OwnStream, UserStream};
use crate::engine::Engine;
use crate::engine::gpu;
use crate::engine::gpu::decode::{BEHIND, DecodeGroup, DecodePlan, Placed, plan_of, plan_of_halves};
use crate::engine::gpu::group::offsets;
use crate::host::log;
use crate::host::threads;
use codecs::codec::order;
use codecs::error::{Error, Result};
use codecs::params::{Dtype, Extents};
use codecs::{memory, parallel};

/// Threads, each with a stream: twelve fill the bus from a file in memory.
const LANES: usize = 12;
/// Bytes of frames in a batch: page-locked memory of a lane.
const MOST_STORED: u64 = 16 << 20;

struct Work<'a> {
    device: &'static Device,
    user: UserStream,
    frames: Frames<'a>,
    array: &'a Array,
    chunk: &'a [u64],
    origins: &'a [i64],
    raw_len: usize,
}

/// The type of 16 bits of a planned frame whose values are made as f32.
fn dtype_of(plan: &Option<DecodePlan>) -> Option<Dtype> {
    plan.as_ref()?.halves
}

/// See `array::decode`, whose arguments were checked.
pub(crate) fn decode(
    frames: Frames<'_>,
    array: &Array,
    chunk: &[u64],
    origins: &[i64],
    raw_len: usize,
    threads: usize,
) -> Result<Vec<Result<()>>> {
    let (device, user) = super::base::device_and_stream(array)?;
    let work = Work { device, user, frames, array, chunk, origins, raw_len };
    let n = origins.len() / chunk.len();
    let threads = if threads > 0 { threads } else { threads::cores() };
    let lanes = threads.clamp(1, LANES);
    let batches = work.batches(n, batch(n, raw_len, lanes));
    let done = parallel::map(batches.len(), lanes, |b| work.batch(batches[b].0, batches[b].1));
    Ok(done.into_iter().flatten().collect())
}

impl Work<'_> {
    /// First frame and number of each batch: `most` frames, of [`MOST_STORED`] bytes.
    fn batches(&self, n: usize, most: usize) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> = Vec::new();
        let mut stored = u64::MAX;
        for k in 0..n {
            let len = frame_len(self.frames, k).saturating_add(ALIGN as u64);
            match all.last_mut() {
                Some((_, count)) if *count < most && stored.saturating_add(len) <= MOST_STORED => {
                    *count += 1;
                    stored += len;
                }
                _ => {
                    all.push((k, 1));
                    stored = len;
                }
            }
        }
        all
    }

    fn overlap(&self, k: usize) -> Option<Overlap> {
        let rank = self.chunk.len();
        self.array.overlap(&self.origins[k * rank..][..rank], self.chunk)
    }

    /// Decodes `count` frames from number `first` on.
    fn batch(&self, first: usize, count: usize) -> Vec<Result<()>> {
        let done = || {
            let _current = self.device.enter()?;
            let mut stream = self.device.own_stream()?;
            stream.follow(self.user)?;
            self.on_device(&mut stream, first, count)
        };
        done().unwrap_or_else(|e: Error| match e {
            Error::NoDeviceMemory { what } => {
                log::info(&format!("{count} chunks are decoded by the host: {what}"));
                let host = ByHost::new(self.device, self.user, self.array);
                let mut host = match host {
                    Ok(host) => host,
                    Err(e) => return (0..count).map(|_| Err(e.clone())).collect(),
                };
                (first..first + count).map(|k| self.by_host(k, &mut host)).collect()
            }
            e => (0..count).map(|_| Err(e.clone())).collect(),
        })
    }

    /// Decodes frame `k` where the device has no memory for it.
    fn by_host(&self, k: usize, host: &mut ByHost<'_>) -> Result<()> {
        let Some(overlap) = self.overlap(k) else { return Ok(()) };
        let mut frame = memory::zeros(stored_len(self.frames, k, self.raw_len)?)?;
        read_frame(self.frames, k, self.raw_len, &mut frame)?;
        fits(&frame, self.raw_len)?;
        let mut raw = memory::zeros(self.raw_len)?;
        Engine::with_threads(1).decode_into(&frame, &mut raw)?;
        host.send(&overlap, self.chunk, &raw)
    }

    fn on_device(&self, stream: &mut OwnStream, first: usize, count: usize) -> Result<Vec<Result<()>>> {
        let overlaps: Vec<_> = (first..first + count).map(|k| self.overlap(k)).collect();
        let len = |i: usize| usize::try_from(frame_len(self.frames, first + i)).unwrap_or(usize::MAX);
        // A frame that is too long is refused when it is read.
        let lens: Vec<usize> = (0..count).map(|i| len(i).min(self.raw_len + ALIGN)).collect();
        let places = offsets(lens.iter().map(|len| len + BEHIND));
        let end = *places.last().expect("an end");
        let locked = stream.locked(end)?;
        let (mut outs, mut rest, mut at) = (Vec::with_capacity(count), &mut *locked, 0);
        for i in 0..count {
            let (to, behind) = rest[places[i] - at..].split_at_mut(lens[i]);
            outs.push(overlaps[i].is_some().then_some(to));
            (rest, at) = (behind, places[i] + lens[i]);
        }
        let mut done = read_frames(self.frames, first, self.raw_len, &mut outs);
        let mut plans: Vec<Option<DecodePlan>> = Vec::with_capacity(count);
        for (i, read) in done.iter_mut().enumerate() {
            let frame = &locked[places[i]..][..lens[i]];
            if overlaps[i].is_none() {
                plans.push(None);
                continue;
            }
            if read.is_ok() {
                *read = fits(frame, self.raw_len);
            }
            let of_frame = || plan_of(frame, self.raw_len).or_else(|| plan_of_halves(frame, self.raw_len));
            let plan = if read.is_ok() { of_frame() } else { None };
            // Steps along the array's axes exchange whole axes; the CPU exchanges any.
            let fits = |plan: &DecodePlan| plan.swapped.is_none_or(|e| order::is_of_axes(&e, self.chunk));
            plans.push(plan.filter(fits));
        }
        let right = self.by_kernels(stream, &plans, &overlaps, &places, end)?;
        for i in 0..count {
            if done[i].is_ok()
                && !right[i]
                && let Some(overlap) = &overlaps[i]
            {
                let mut raw = memory::zeros::<u8>(self.raw_len)?;
                let frame = stream.locked_bytes(places[i], lens[i]);
                done[i] = Engine::with_threads(1).decode_into(frame, &mut raw);
                if done[i].is_ok() {
                    self.upload(stream, overlap, &raw)?;
                }
            }
        }
        Ok(done)
    }

    /// Decodes what has a plan; true for each frame that was right.
    fn by_kernels(
        &self,
        stream: &mut OwnStream,
        plans: &[Option<DecodePlan>],
        overlaps: &[Option<Overlap>],
        places: &[usize],
        end: usize,
    ) -> Result<Vec<bool>> {
        let mut right = vec![false; plans.len()];
        let groups = grouped(plans.iter().map(|p| p.as_ref().map(|p| p.needs)));
        if groups.is_empty() {
            return Ok(right);
        }
        // The values of a chunk; behind f32 the numbers of 16 bits that are made of them.
        let len = self.raw_len.next_multiple_of(ALIGN);
        let wide = (2 * self.raw_len).next_multiple_of(ALIGN);
        let has_halves = plans.iter().flatten().any(|plan| plan.halves.is_some());
        let step = if has_halves { wide + len } else { len };
        let input = stream.reserve(Buffer::Input, end)?;
        let output = stream.reserve(Buffer::Output, plans.len() * step)?;
        let needs = |group: &[usize]| plans[group[0]].as_ref().expect("planned").needs;
        let tiles = |group: &[usize]| group.iter().flat_map(|&i| &plans[i]).map(|plan| plan.chunk.tiles as usize).sum();
        let works = offsets(groups.iter().map(|g| DecodeGroup::work_len(needs(g), g.len(), tiles(g))));
        stream.reserve(Buffer::Work, *works.last().expect("an end"))?;
        stream.expect(8 * plans.len())?;
        stream.start_send(Buffer::Input, 0, end, 0)?;
        let (mut boxes, mut got) = (Copies::default(), 0);
        for (group, &work_at) in groups.iter().zip(&works) {
            let mut placed = Vec::with_capacity(group.len());
            for &i in group {
                let (Some(plan), Some(overlap)) = (&plans[i], &overlaps[i]) else { continue };
                let slot = output + (i * step) as u64;
                let swapped = plan.swapped.as_ref();
                let is_half = plan.halves.is_some();
                let here = in_place(self.array, overlap, self.chunk).filter(|_| swapped.is_none() && !is_half);
                if here.is_none() {
                    let from = if is_half { slot + wide as u64 } else { slot };
                    self.scatter(&mut boxes, overlap, from, swapped)?;
                }
                placed.push(Placed { plan, frame: input + places[i] as u64, output: here.unwrap_or(slot) });
            }
            let needs = needs(group);
            let decoding = DecodeGroup::new(stream, &placed, work_at, |tiles, frames| {
                needs.kernels(self.device, needs.gpu.decode, tiles, frames)
            })?;
            decoding.start(stream)?;
            stream.start_get(Buffer::Work, decoding.verdicts_at(), 8 * group.len(), got)?;
            got += 8 * group.len();
        }
        let numbers: Vec<usize> = (0..plans.len()).collect();
        for same in numbers.chunk_by(|&a, &b| dtype_of(&plans[a]) == dtype_of(&plans[b])) {
            let Some(dtype) = dtype_of(&plans[same[0]]) else { continue };
            let slot = output + (same[0] * step) as u64;
            let (chunks, values) = (same.len(), self.raw_len / size_of::<u16>());
            let halves = Halves { halves: (slot + wide as u64, step), wide: (slot, step), chunks, values, dtype };
            // SAFETY: slots of this stream's.
            #[allow(unsafe_code)]
            unsafe {
                halves.start(self.device, stream, "array_narrow")?;
            }
        }
        // SAFETY: slots of this stream's, and boxes of the array, whose owner promised that it can be written; they do
        // not meet.
        #[allow(unsafe_code)]
        unsafe {
            boxes.start(self.device, stream)?;
        }
        stream.wait()?;
        let verdicts = stream.got(got).as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
        for (&i, verdict) in groups.iter().flatten().zip(verdicts) {
            right[i] = verdict == 1;
        }
        gpu::count(0, right.iter().filter(|r| **r).count());
        Ok(right)
    }

    /// Adds what of a dense chunk goes into the array, two axes exchanged where the codec's extents are given.
    fn scatter(&self, boxes: &mut Copies, overlap: &Overlap, slot: u64, swapped: Option<&Extents>) -> Result<()> {
        let size = self.array.element();
        let (at, to) = self.array.place_of(overlap);
        let (mut steps, (_, extents)) = (dense(self.chunk, size), overlap.in_array());
        if let Some(codecs) = swapped {
            order::swap_steps(codecs, self.chunk, &mut steps);
        }
        let from = slot + overlap.place(&steps) as u64;
        boxes.add(Side { at: from, steps: &steps }, Side { at, steps: to }, &extents, size)
    }

    /// Brings a chunk that the CPU decoded into the array.
    fn upload(&self, stream: &mut OwnStream, overlap: &Overlap, raw: &[u8]) -> Result<()> {
        let slot = stream.reserve(Buffer::Output, raw.len().next_multiple_of(ALIGN))?;
        stream.upload(Buffer::Output, &[(0, raw)], 1)?;
        let mut boxes = Copies::default();
        self.scatter(&mut boxes, overlap, slot, None)?;
        // SAFETY: as in `by_kernels`.
        #[allow(unsafe_code)]
        unsafe {
            boxes.start(self.device, stream)?;
        }
        Ok(stream.wait()?)
    }
}
