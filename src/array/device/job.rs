// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done with one batch of a device array's chunks: gathered, encoded and packed, then fetched (`fetch.rs`); or
//! all of it by the host.
//!
//! Frames are packed over the gathered chunks, which nobody needs any more. So a frame that is no shorter than its
//! chunk stays where it is, and a chunk that the kernels leave to the CPU is gathered again and copied to the host
//! by itself.

use super::base::{grouped, in_place};
use super::by_host::ByHost;
use super::choose::{Chosen, Open};
use super::copies::{Copies, Side};
use super::halves::Halves;
use super::units::{self, Units};
use crate::array::boxes::{Array, Overlap, dense};
use crate::cuda::{Buffer, Device, Mark, OwnStream, UserStream};
use crate::engine::Engine;
use crate::engine::gpu::encode::{EncodeGroup, EncodePlan, Placed, plan_of};
use crate::engine::gpu::group::offsets;
use codecs::EncodeJob;
use codecs::codec::{self, half, order};
use codecs::error::{Error, Result};
use codecs::memory;
use codecs::params::{Extents, Params};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Batches on their way at a time; and where the CPU chooses codecs or encodes, which takes longer than kernels do.
pub(super) const LANES: usize = 4;
pub(super) const SHARED_LANES: usize = 8;
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
    pub(super) kernels: Given,
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

/// What the kernels are given of a chunk: its values as they are, or f32 in place of numbers of 16 bits.
pub(super) struct Given {
    pub(super) params: Params,
    pub(super) raw_len: usize,
    pub(super) is_wide: bool,
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
    /// Those that are kept as multiples of a unit.
    pub(super) units: Units,
}

/// Chunks of a batch that were encoded by the same launches.
pub(super) struct Group {
    /// Their numbers in the batch, and for each the offset of its frame on the device and the most that this may take.
    pub(super) members: Vec<usize>,
    pub(super) frames: Vec<(usize, usize)>,
    /// Where their frames are packed, and their lengths among the answers.
    pub(super) packed_at: usize,
    pub(super) lengths_at: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    Idle,
    Computing,
    Fetching,
}

/// How chunks are gathered.
#[derive(Clone, Copy)]
pub(super) enum Gathered<'a> {
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

    /// Threads of a lane, while those of the others do their part of the CPU's work.
    fn lane_threads(&self) -> usize {
        self.threads.div_ceil(self.batches().min(SHARED_LANES))
    }

    /// Numbers of a chunk.
    fn values(&self) -> usize {
        self.raw_len / usize::from(self.params.dtype.size).max(1)
    }

    pub(super) fn batches(&self) -> usize {
        self.chunks().div_ceil(self.batch)
    }

    pub(super) fn lane(&self) -> Result<DeviceLane> {
        let mut stream = self.device.own_stream()?;
        stream.follow(self.user)?;
        let (groups, frames, chosen, units) = Default::default();
        Ok(DeviceLane { stream, first: 0, count: 0, groups, state: State::Idle, frames, chosen, units })
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
        let Given { raw_len, is_wide, .. } = self.kernels;
        let step = raw_len.next_multiple_of(crate::cuda::ALIGN);
        let gathered = if is_wide { self.raw_len.next_multiple_of(crate::cuda::ALIGN) } else { 0 };
        let input = stream.reserve(Buffer::Input, count * (step + gathered))?;
        let slots: Vec<u64> = (0..count).map(|i| input + (i * step) as u64).collect();
        let mut inputs = match is_wide {
            true => self.widen(stream, first, &slots, (input + (count * step) as u64, gathered))?,
            false => self.gather(stream, first, &slots, Gathered::OrInPlace)?,
        };
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
        let way = |i: usize| Some((i, units::by_kernels(&self.params, lane.chosen.get(i)?.as_ref()?)?.0));
        lane.units = Units::of(tasks.iter().filter_map(|task| way(task.0)), self.values());
        let frames = offsets(tasks.iter().map(|(_, plan)| plan.encoding.capacity));
        let codes_at = *frames.last().expect("an end");
        let output = stream.reserve(Buffer::Output, codes_at + lane.units.codes_len(self.raw_len))?;
        let groups = grouped(tasks.iter().map(|(_, plan)| Some(plan.needs)));
        let works = groups.iter().map(|g| EncodeGroup::work_len(tasks[g[0]].1, g.len()));
        let works = offsets(works);
        let found_at = *works.last().expect("an end");
        stream.reserve(Buffer::Work, found_at + lane.units.found_len())?;
        stream.expect(8 * tasks.len() + lane.units.found_len())?;
        lane.units.start(self.device, stream, self.params.dtype, &mut inputs, output + codes_at as u64, found_at)?;
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
            let packing = group.packing(input + packed as u64, self.most_packed() as u64, parts);
            packings.push((packing, members.len() as u32 * parts));
            let frames = members.iter().map(|&k| (frames[k], tasks[k].1.encoding.capacity)).collect();
            let next = (packed + members.len() * step, got + 8 * members.len());
            let members = members.into_iter().map(|k| tasks[k].0).collect();
            lane.groups.push(Group { members, frames, packed_at: packed, lengths_at: got });
            (packed, got) = next;
        }
        stream.start_get(Buffer::Work, found_at, lane.units.found_len(), got)?;
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
        let Given { raw_len, is_wide, .. } = self.kernels;
        Open { device: self.device, params, raw_len, is_wide, inputs }
    }

    /// Bytes of a frame that is packed with others at most.
    pub(super) fn most_packed(&self) -> usize {
        if self.kernels.is_wide { half::least_exact_len(self.raw_len) } else { self.raw_len }
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
        if self.kernels.is_wide {
            let mut chosen = vec![None; count];
            let all: Vec<_> = (0..count).map(|i| (i, self.kernels.params)).collect();
            self.choose_requests(stream, &all, inputs, &mut chosen)?;
            return Ok(chosen);
        }
        let boxes = self.open(&self.params, inputs).boxes(stream)?;
        let mut costs = vec![order::Costs::default(); count];
        let mut order = |i: usize, params: &Params| match &boxes {
            Some((boxes, sample)) => {
                boxes.choose(params, &sample[i * sample.len() / count..][..sample.len() / count], &mut costs[i])
            }
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
            let is_unknown = |c: &&Chosen| c.kept.is_none();
            let params = |i: usize| chosen[i].as_ref().filter(is_unknown).map(|c| c.params).filter(is_open);
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
            let open = self.open(params, &inputs);
            let requests = match codec::is_settled(params, self.kernels.raw_len) {
                true if codec::is_kept_open(params, self.kernels.raw_len) => {
                    open.choose_kept(stream, self.lane_threads())?
                }
                true if self.kernels.is_wide => open.settled(stream)?,
                true => vec![Some(Chosen { params: *params, used: None, kept: None }); members.len()],
                false => open.choose_requests(stream, self.lane_threads())?,
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
                made.push((*params, self.plan(params)));
                made[made.len() - 1].1
            }
        };
        let mut plan_for = |chosen: &Chosen| {
            if let Some((way, codes)) = units::by_kernels(&self.params, chosen) {
                return Some(units::plan_of_codes(plan(&codes)?, &way, &codes));
            }
            let plan = plan(&chosen.params)?;
            Some(chosen.used.map_or(plan, |used| plan.under(used)))
        };
        chosen.iter().map(|chosen| chosen.as_ref().and_then(&mut plan_for)).collect()
    }

    fn plan(&self, params: &Params) -> Option<EncodePlan> {
        let plan = plan_of(params, self.kernels.raw_len)?;
        match self.kernels.is_wide {
            true if !half::suits_kernels(&self.params, params) => None,
            true => Some(plan.stating(self.params.dtype, self.raw_len)),
            false => Some(plan),
        }
    }

    /// Starts making f32, in these slots, of chunks from number `first` on, which are gathered to `from.0`, `from.1`
    /// bytes from one to the next.
    fn widen(&self, stream: &mut OwnStream, first: usize, slots: &[u64], from: (u64, usize)) -> Result<Vec<u64>> {
        let gathered: Vec<u64> = (0..slots.len()).map(|i| from.0 + (i * from.1) as u64).collect();
        self.gather(stream, first, &gathered, Gathered::Copied)?;
        let halves = Halves {
            halves: from,
            wide: (slots[0], self.kernels.raw_len.next_multiple_of(crate::cuda::ALIGN)),
            chunks: slots.len(),
            values: self.raw_len / size_of::<u16>(),
            dtype: self.params.dtype,
        };
        // SAFETY: slots of this stream's, each as long as its step.
        #[allow(unsafe_code)]
        unsafe {
            halves.start(self.device, stream, "array_widen")?;
        }
        Ok(slots.to_vec())
    }

    /// Starts gathering chunks from number `first` on, each into its slot; the addresses where they will be.
    pub(super) fn gather(
        &self,
        stream: &mut OwnStream,
        first: usize,
        slots: &[u64],
        how: Gathered<'_>,
    ) -> Result<Vec<u64>> {
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
}
