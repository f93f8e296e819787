// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done with one batch of a device array's chunks: gathered, encoded, packed, fetched; or all of it by the
//! host.
//!
//! Frames are packed over the gathered chunks, which nobody needs any more. So a frame that is no shorter than its
//! chunk stays where it is, and a chunk that the kernels leave to the CPU is gathered again and copied to the host
//! by itself.

use super::base::{grouped, in_place};
use super::by_host::ByHost;
use super::choose::{Chosen, Open};
use super::copies::{Copies, Side};
use crate::array::boxes::{Array, Overlap, dense};
use crate::cuda::{Buffer, Device, Failure, Mark, OwnStream, UserStream};
use crate::engine::Engine;
use crate::engine::gpu;
use crate::engine::gpu::encode::{EncodeGroup, EncodePlan, Placed, plan_of};
use crate::engine::gpu::group::offsets;
use crate::host::{float_state, log};
use codecs::codec::{self, order};
use codecs::constants::HEADER_FIXED;
use codecs::error::{Error, Result};
use codecs::frame::STORED_HEADER;
use codecs::memory;
use codecs::params::{Extents, Params};
use codecs::{Cpu, EncodeJob};
use kernels::abi::ARRAY_PACK_STEP;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Batches on their way at a time.
pub(super) const LANES: usize = 4;
/// After a batch of at least `FAILED_CHUNKS` chunks of which the GPU could encode none, the next 64 batches go to the
/// CPU at once: choosing their codecs on the GPU would be in vain, and the CPU would choose again.
const SKIPPED_BATCHES: usize = 64;
const FAILED_CHUNKS: usize = 8;
/// Bytes of a frame that a CTA packs at least.
const PACKED_EACH: usize = 128 << 10;

/// What is the same for all batches.
pub(super) struct Job {
    pub(super) device: &'static Device,
    pub(super) user: UserStream,
    pub(super) array: Array,
    pub(super) params: Params,
    pub(super) chunk: Vec<u64>,
    pub(super) raw_len: usize,
    pub(super) origins: Vec<i64>,
    pub(super) beyond: Vec<u8>,
    pub(super) threads: usize,
    /// What the GPU does with each chunk.
    pub(super) how: How,
    /// Chunks of a batch.
    pub(super) batch: usize,
    /// Batches to come that are left to the CPU unseen.
    pub(super) unseen: AtomicUsize,
}

pub(super) enum How {
    /// The same with all.
    Planned(Box<EncodePlan>),
    /// The order of axes, the codec or both are chosen for each.
    Open,
    /// Nothing: the CPU encodes them.
    ByCpu,
}

/// A batch on its way.
pub(super) struct DeviceLane {
    pub(super) stream: OwnStream,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) groups: Vec<Group>,
    pub(super) state: State,
    pub(super) frames: Vec<Framed>,
    /// What is asked of each chunk, where that was chosen.
    pub(super) chosen: Vec<Option<Chosen>>,
}

/// Chunks of a batch that were encoded by the same launches.
pub(super) struct Group {
    /// Their numbers in the batch, and for each the offset of its frame on the device and the most that this may take.
    members: Vec<usize>,
    frames: Vec<(usize, usize)>,
    /// Where their frames are packed, and their lengths among the answers.
    packed_at: usize,
    lengths_at: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    Idle,
    Computing,
    Fetching,
}

/// How chunks are gathered.
#[derive(Clone, Copy)]
enum Gathered<'a> {
    /// Copied, or used where they are in the array, where they are dense there.
    OrInPlace,
    Copied,
    /// Copied, two axes exchanged, for a codec that has these extents.
    Swapped(&'a Extents),
}

/// Where a frame is.
pub(super) enum Framed {
    /// In the lane's page-locked memory.
    Locked(usize, usize),
    /// On the device, at this place and of this length: no shorter than its chunk.
    There(usize, usize),
    /// The kernels left its chunk to the CPU; or it cannot be made smaller.
    Left { stored: bool },
    /// Here.
    Own(Vec<u8>),
}

impl Job {
    pub(super) fn chunks(&self) -> usize {
        self.origins.len() / self.chunk.len()
    }

    pub(super) fn batches(&self) -> usize {
        self.chunks().div_ceil(self.batch)
    }

    pub(super) fn lane(&self) -> Result<DeviceLane> {
        let mut stream = self.device.own_stream()?;
        stream.follow(self.user)?;
        let (groups, frames, chosen) = Default::default();
        Ok(DeviceLane { stream, first: 0, count: 0, groups, state: State::Idle, frames, chosen })
    }

    fn overlap(&self, k: usize) -> Option<Overlap> {
        let rank = self.chunk.len();
        self.array.overlap(&self.origins[k * rank..][..rank], &self.chunk)
    }

    /// The frames of `count` chunks from number `first` on, made by the host.
    pub(super) fn by_host(&self, first: usize, count: usize) -> Result<Vec<Vec<u8>>> {
        let mut host = ByHost::new(self.device, self.user, &self.array)?;
        let mut raw = memory::zeros::<u8>(count * self.raw_len)?;
        for (k, raw) in (first..).zip(raw.chunks_mut(self.raw_len)) {
            let overlap = self.overlap(k);
            if !overlap.as_ref().is_some_and(|o| o.is_whole(&self.chunk)) {
                raw.chunks_exact_mut(self.beyond.len()).for_each(|e| e.copy_from_slice(&self.beyond));
            }
            if let Some(overlap) = overlap {
                host.fetch(&overlap, &self.chunk, raw)?;
            }
        }
        let jobs: Vec<_> = raw.chunks(self.raw_len).map(|raw| EncodeJob { params: &self.params, raw }).collect();
        let mut frames = vec![Vec::new(); count];
        Engine::with_threads(self.threads).encode_batch(&jobs, &mut frames);
        match frames.iter().any(Vec::is_empty) {
            true => Err(Error::NoMemory { bytes: self.raw_len as u64 }),
            false => Ok(frames),
        }
    }

    /// Starts everything up to the packing of a lane's batch.
    pub(super) fn compute(&self, lane: &mut DeviceLane) -> Result<()> {
        let one_less = |n: usize| n.checked_sub(1);
        let is_unseen = self.unseen.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        if is_unseen || matches!(self.how, How::ByCpu) {
            return Ok(());
        }
        let (stream, first, count) = (&mut lane.stream, lane.first, lane.count);
        // All that was started before is done: its frames were given.
        stream.wait()?;
        let step = self.raw_len.next_multiple_of(crate::cuda::ALIGN);
        let input = stream.reserve(Buffer::Input, count * step)?;
        let slots: Vec<u64> = (0..count).map(|i| input + (i * step) as u64).collect();
        let mut inputs = self.gather(stream, first, &slots, Gathered::OrInPlace)?;
        let own: Vec<Option<EncodePlan>>;
        // What is encoded: a chunk's number, and how.
        let tasks: Vec<(usize, &EncodePlan)> = match &self.how {
            How::Planned(plan) => (0..count).map(|i| (i, &**plan)).collect(),
            _ => {
                lane.chosen = self.choose(stream, first, &slots, &mut inputs)?;
                own = self.plans(&lane.chosen);
                own.iter().enumerate().filter_map(|(i, plan)| Some((i, plan.as_ref()?))).collect()
            }
        };
        if tasks.is_empty() {
            if count >= FAILED_CHUNKS {
                self.unseen.store(SKIPPED_BATCHES, Ordering::Relaxed);
            }
            return Ok(());
        }
        let frames = offsets(tasks.iter().map(|(_, plan)| plan.encoding.capacity));
        let output = stream.reserve(Buffer::Output, *frames.last().expect("an end"))?;
        let groups = grouped(tasks.iter().map(|(_, plan)| Some(plan.needs)));
        let works = groups.iter().map(|g| EncodeGroup::work_len(tasks[g[0]].1, g.len()));
        let works = offsets(works);
        stream.reserve(Buffer::Work, *works.last().expect("an end"))?;
        stream.expect(8 * tasks.len())?;
        let (mut packings, mut packed, mut got) = (Vec::new(), 0, 0);
        for (members, &work_at) in groups.into_iter().zip(&works) {
            let of = |&k: &usize| {
                let ((i, plan), frame) = (tasks[k], output + frames[k] as u64);
                Placed { plan, input: inputs[i], frame }
            };
            let placed: Vec<_> = members.iter().map(of).collect();
            let group = EncodeGroup::new(self.device, stream, &placed, work_at)?;
            group.start(stream)?;
            stream.start_get(Buffer::Work, group.lengths_at(), 8 * members.len(), got)?;
            let parts = self.raw_len.div_ceil(PACKED_EACH).clamp(1, 64) as u32;
            packings
                .push((group.packing(input + packed as u64, self.raw_len as u64, parts), members.len() as u32 * parts));
            let frames = members.iter().map(|&k| (frames[k], tasks[k].1.encoding.capacity)).collect();
            let next = (packed + members.len() * step, got + 8 * members.len());
            let members = members.into_iter().map(|k| tasks[k].0).collect();
            lane.groups.push(Group { members, frames, packed_at: packed, lengths_at: got });
            (packed, got) = next;
        }
        let kernel = self.device.kernel("array_pack")?;
        for (packing, ctas) in packings {
            // SAFETY: frames and lengths are the group's own; those that are packed together are shorter than as many
            // slots, which nobody reads any more.
            #[allow(unsafe_code)]
            unsafe {
                stream.launch(kernel, ctas, &packing)?;
            }
        }
        Ok(stream.mark(Mark::Computed)?)
    }

    fn open<'a>(&self, params: &'a Params, inputs: &'a [u64]) -> Open<'a> {
        Open { device: self.device, params, raw_len: self.raw_len, inputs }
    }

    /// What is asked of each chunk of a batch, as the engine settles it (codecs/src/cpu/settle.rs); those whose axes
    /// are exchanged are gathered so.
    fn choose(
        &self,
        stream: &mut OwnStream,
        first: usize,
        slots: &[u64],
        inputs: &mut [u64],
    ) -> Result<Vec<Option<Chosen>>> {
        let (count, kept) = (inputs.len(), self.params.extents);
        let boxes = self.open(&self.params, inputs).boxes(stream)?;
        let order = |i: usize, params: &Params| match &boxes {
            Some((boxes, sample)) => boxes.choose(params, &sample[i * sample.len() / count..][..sample.len() / count]),
            None => Ok(kept),
        };
        let orders = (0..count).map(|i| order(i, &self.params)).collect::<Result<Vec<_>>>()?;
        self.swap(stream, first, slots, inputs, &orders, &vec![kept; count])?;
        let asked = |i: usize, extents: Extents| (i, Params { extents, ..self.params });
        let all: Vec<_> = orders.iter().enumerate().map(|(i, extents)| asked(i, *extents)).collect();
        let mut chosen = vec![None; count];
        self.choose_requests(stream, &all, inputs, &mut chosen)?;
        let mut better = orders.clone();
        for (i, chosen) in chosen.iter_mut().enumerate().filter_map(|(i, chosen)| Some((i, chosen.as_mut()?))) {
            better[i] = order(i, &Params { extents: kept, ..chosen.params })?;
            chosen.params.extents = better[i];
        }
        self.swap(stream, first, slots, inputs, &better, &orders)?;
        if self.params.lossy(self.raw_len) {
            // Chunks that lose nothing after all.
            let is_open = |params: &Params| codec::is_kept_open(params, self.raw_len);
            let params = |i: usize| chosen[i].as_ref().map(|c: &Chosen| c.params).filter(is_open);
            let open: Vec<_> = (0..count).filter_map(|i| Some((i, params(i)?))).collect();
            self.choose_requests(stream, &open, inputs, &mut chosen)?;
        }
        Ok(chosen)
    }

    /// Gathers those chunks anew that are to have their axes exchanged and have not, or the other way round.
    fn swap(
        &self,
        stream: &mut OwnStream,
        first: usize,
        slots: &[u64],
        inputs: &mut [u64],
        wanted: &[Extents],
        now: &[Extents],
    ) -> Result<()> {
        for (i, extents) in wanted.iter().enumerate().filter(|&(i, e)| e.is_swapped() != now[i].is_swapped()) {
            let how = if extents.is_swapped() { Gathered::Swapped(extents) } else { Gathered::OrInPlace };
            inputs[i] = self.gather(stream, first + i, &slots[i..=i], how)?[0];
        }
        Ok(())
    }

    /// What is asked of the chunks of these numbers, of which so far that much is known.
    fn choose_requests(
        &self,
        stream: &mut OwnStream,
        asked: &[(usize, Params)],
        inputs: &[u64],
        chosen: &mut [Option<Chosen>],
    ) -> Result<()> {
        for (n, (_, params)) in asked.iter().enumerate().filter(|(n, a)| asked[..*n].iter().all(|b| b.1 != a.1)) {
            let members: Vec<usize> = asked[n..].iter().filter(|a| a.1 == *params).map(|a| a.0).collect();
            let inputs: Vec<u64> = members.iter().map(|&i| inputs[i]).collect();
            let requests = match codec::is_settled(params, self.raw_len) {
                true if codec::is_kept_open(params, self.raw_len) => {
                    self.open(params, &inputs).choose_kept(stream, self.threads)?
                }
                true => vec![Some(Chosen { params: *params, used: None, kept: None }); members.len()],
                false => self.open(params, &inputs).choose_requests(stream, self.threads)?,
            };
            members.into_iter().zip(requests).for_each(|(i, request)| chosen[i] = request);
        }
        Ok(())
    }

    /// What the GPU does with each chunk, for which it was chosen: few of them differ in more than the bound.
    fn plans(&self, chosen: &[Option<Chosen>]) -> Vec<Option<EncodePlan>> {
        let mut made: Vec<(Params, Option<EncodePlan>)> = Vec::new();
        let mut plan = |params: &Params| match made.iter().find(|m| m.0 == *params) {
            Some(made) => made.1,
            None => {
                made.push((*params, plan_of(params, self.raw_len)));
                made[made.len() - 1].1
            }
        };
        let mut plan_for = |chosen: &Chosen| {
            let plan = plan(&chosen.params)?;
            Some(chosen.used.map_or(plan, |used| plan.under(used)))
        };
        chosen.iter().map(|chosen| chosen.as_ref().and_then(&mut plan_for)).collect()
    }

    /// Starts gathering chunks from number `first` on, each into its slot; the addresses where they will be.
    fn gather(&self, stream: &mut OwnStream, first: usize, slots: &[u64], how: Gathered<'_>) -> Result<Vec<u64>> {
        let size = self.array.element();
        let (mut fills, mut boxes) = (Copies::default(), Copies::default());
        let mut steps = dense(&self.chunk, size);
        if let Gathered::Swapped(extents) = how {
            order::swap_steps(extents, &self.chunk, &mut steps);
        }
        let mut beyond = None;
        let mut inputs = Vec::with_capacity(slots.len());
        for (i, &slot) in slots.iter().enumerate() {
            let overlap = self.overlap(first + i);
            let here = overlap.as_ref().and_then(|o| in_place(&self.array, o, &self.chunk));
            if let Some(at) = here.filter(|_| matches!(how, Gathered::OrInPlace)) {
                inputs.push(at);
                continue;
            }
            inputs.push(slot);
            if !overlap.as_ref().is_some_and(|o| o.is_whole(&self.chunk)) {
                let at = match beyond {
                    Some(at) => at,
                    None => *beyond.insert(self.element(stream)?),
                };
                let none = vec![0; self.chunk.len()];
                fills.add(Side { at, steps: &none }, Side { at: slot, steps: &steps }, &self.chunk, size)?;
            }
            if let Some(overlap) = overlap {
                let (at, from) = self.array.place_of(&overlap);
                let (_, extents) = overlap.in_array();
                let to = Side { at: slot + overlap.place(&steps) as u64, steps: &steps };
                boxes.add(Side { at, steps: from }, to, &extents, size)?;
            }
        }
        // SAFETY: boxes of the array, whose owner promised that it can be read, and slots of this stream's; a slot's
        // box is written after its filling.
        #[allow(unsafe_code)]
        unsafe {
            fills.start(self.device, stream)?;
            boxes.start(self.device, stream)?;
        }
        Ok(inputs)
    }

    /// Puts the element that stands beyond the array on the device.
    fn element(&self, stream: &mut OwnStream) -> Result<u64> {
        let element = stream.reserve(Buffer::Element, self.beyond.len())?;
        stream.put(Buffer::Element, 0, &self.beyond)?;
        Ok(element)
    }

    /// Waits for the lengths of a lane's frames, and starts the copies that bring them.
    pub(super) fn fetch(&self, lane: &mut DeviceLane) -> Result<()> {
        let raw_len = self.raw_len;
        if lane.state != State::Computing {
            return Ok(());
        }
        lane.state = State::Fetching;
        lane.frames.resize_with(lane.count, || Framed::Left { stored: false });
        if lane.groups.is_empty() {
            return Ok(());
        }
        lane.stream.wait_for(Mark::Computed)?;
        let made = lane.groups.iter().map(|group| group.members.len()).sum::<usize>();
        let lengths = lane.stream.got(8 * made).as_chunks().0;
        let lengths: Vec<u64> = lengths.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let (mut copies, mut begin) = (Vec::new(), 0);
        for group in &lane.groups {
            let mut end = 0;
            for (n, (&i, &(at, capacity))) in group.members.iter().zip(&group.frames).enumerate() {
                let len = usize::try_from(lengths[group.lengths_at / 8 + n]).unwrap_or(usize::MAX);
                let framed = match len {
                    0 => Framed::Left { stored: false },
                    n if n < HEADER_FIXED || n > capacity => {
                        return Err(Failure::other("a kernel wrote no frame").into());
                    }
                    n if n >= raw_len + STORED_HEADER => Framed::Left { stored: true },
                    n if n > raw_len => Framed::There(at, n),
                    n => Framed::Locked(begin + end, n),
                };
                lane.frames[i] = framed;
                // The places that the kernel finds: those that are left out take none.
                if len <= raw_len {
                    end += len.next_multiple_of(ARRAY_PACK_STEP as usize);
                }
            }
            copies.push((group.packed_at, end, begin));
            begin += end;
        }
        gpu::count(lane.frames.iter().filter(|f| !matches!(f, Framed::Left { .. })).count(), 0);
        lane.stream.locked(begin)?;
        for (at, len, to) in copies.into_iter().filter(|(_, len, _)| *len > 0) {
            lane.stream.start_fetch(Buffer::Input, at, len, to)?;
        }
        Ok(lane.stream.mark(Mark::Fetched)?)
    }

    /// Waits for a lane's frames, and makes those that the GPU does not.
    pub(super) fn complete(&self, lane: &mut DeviceLane) -> Result<()> {
        if !lane.groups.is_empty() {
            lane.stream.wait_for(Mark::Fetched)?;
        }
        for i in 0..lane.count {
            if let Framed::There(at, len) = lane.frames[i] {
                let mut frame = Vec::new();
                lane.stream.download_vecs(Buffer::Output, vec![(at, len, &mut frame)], self.threads)?;
                lane.frames[i] = Framed::Own(frame);
            }
        }
        let left: Vec<(usize, bool)> = (0..lane.count)
            .filter_map(|i| if let Framed::Left { stored } = lane.frames[i] { Some((i, stored)) } else { None })
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        let step = self.raw_len.next_multiple_of(crate::cuda::ALIGN);
        let input = lane.stream.reserve(Buffer::Input, left.len() * step)?;
        let mut raw = memory::zeros::<u8>(left.len() * self.raw_len)?;
        let slots: Vec<u64> = (0..left.len()).map(|n| input + (n * step) as u64).collect();
        let mut from = 0;
        for following in left.chunk_by(|a, b| a.0 + 1 == b.0) {
            let slots = &slots[from..from + following.len()];
            self.gather(&mut lane.stream, lane.first + following[0].0, slots, Gathered::Copied)?;
            from += following.len();
        }
        let wanted = raw.chunks_mut(self.raw_len).enumerate().map(|(n, out)| (n * step, out)).collect();
        lane.stream.download(Buffer::Input, wanted, self.threads)?;
        let (mut jobs, mut known) = (Vec::new(), Vec::new());
        for (&(i, stored), raw) in left.iter().zip(raw.chunks(self.raw_len)) {
            // Its values are here in their own order, from which the host comes to the same choice.
            let chosen = lane.chosen.get(i).and_then(Option::as_ref);
            let params = Params { request: chosen.map_or(self.params.request, |c| c.params.request), ..self.params };
            let kept = chosen.filter(|c| c.params.extents == params.extents).and_then(|c| c.kept);
            if stored {
                let mut frame = Vec::new();
                float_state::with_default(|| codec::store(&params, raw, self.threads, &mut frame))?;
                lane.frames[i] = Framed::Own(frame);
            } else {
                jobs.push((i, params, raw));
                known.push(kept);
            }
        }
        let at: Vec<usize> = jobs.iter().map(|job| job.0).collect();
        let jobs: Vec<_> = jobs.iter().map(|(_, params, raw)| EncodeJob { params, raw }).collect();
        let mut frames = vec![Vec::new(); jobs.len()];
        let cpu = Cpu::new(self.threads, 1, log::warn);
        float_state::with_default(|| {
            let settled = cpu.settle_others(&jobs, &known);
            cpu.encode_settled(&settled, &jobs, vec![false; jobs.len()], &mut frames);
        });
        for (i, frame) in at.into_iter().zip(frames) {
            if frame.is_empty() {
                return Err(Error::NoMemory { bytes: self.raw_len as u64 });
            }
            lane.frames[i] = Framed::Own(frame);
        }
        Ok(())
    }
}
