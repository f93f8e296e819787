// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of axes and the codec of each chunk of a batch where the request leaves them open: the same choices as on
//! the CPU (`codec/order.rs`, `codec/auto.rs`, `codec/trial.rs`).
//!
//! ```text
//! boxes    the values by which the order is chosen, gathered by one launch; the host chooses
//! range    of each chunk, where the bound is relative: one kernel, the ranges come to the host
//! gather   the samples of all chunks, by one launch
//! encode   each candidate's samples, as any chunks; only the frames' lengths come to the host
//! rule     the same again, with a larger sample, for chunks whose sample is next to constant
//! exactly  of those that may be as short without loss, some numbers of the sample come to the host; where these are
//!          multiples of a unit, all of the sample does, and the host codes it; where they are few, so do those of a
//!          larger sample
//! ```
//!
//! All candidates write their frames to the same place: nobody reads them.

use super::copies::{Copies, Side};
use super::range::ranges;
use crate::array::boxes::dense;
use crate::cuda::{ALIGN, Buffer, Device, Failure, OwnStream};
use crate::engine::gpu::encode::{EncodeGroup, EncodePlan, Placed, plan_of};
use crate::engine::gpu::group::offsets;
use codecs::bound::{self, Tolerance, Used};
use codecs::codec::auto::{BY_CHOICE, Taken, requests, take};
use codecs::codec::chunk::Chunk;
use codecs::codec::kept::Kept;
use codecs::codec::order::Boxes;
use codecs::codec::sample::{LOSSLESS, Looked, Sample, Stack, seen_len};
use codecs::codec::scaled;
use codecs::codec::trial::{Exact, look_exactly};
use codecs::codec::{self, half};
use codecs::error::Result;
use codecs::params::Params;
use codecs::{memory, parallel};

/// What is to be chosen for: dense chunks at these addresses.
pub(super) struct Open<'a> {
    pub(super) device: &'static Device,
    pub(super) params: &'a Params,
    pub(super) raw_len: usize,
    /// f32 in place of numbers of 16 bits: a frame keeps half the bound, and only the candidates hold them.
    pub(super) is_wide: bool,
    pub(super) inputs: &'a [u64],
}

/// A chunk's params with what was chosen, the bound used where choosing took it, and how the chunk is coded without
/// loss where choosing said that.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    pub(super) params: Params,
    pub(super) used: Option<Used>,
    pub(super) kept: Option<Kept>,
}

impl Open<'_> {
    /// The values by which orders are chosen, of one chunk behind the other. `None`: there is nothing to choose.
    pub(super) fn boxes(&self, stream: &mut OwnStream) -> Result<Option<(Boxes, Vec<u8>)>> {
        let many = self.inputs.len();
        let Some(boxes) = Boxes::new(self.params, self.raw_len) else { return Ok(None) };
        let size = usize::from(self.params.dtype.size);
        let (len, part) = (boxes.len() * size, boxes.part.map(|n| n as u64));
        let own = dense(&part, size);
        let from_steps = boxes.steps.map(|n| (n * size) as isize);
        let output = stream.reserve(Buffer::Output, many * len)?;
        let mut copies = Copies::default();
        for (n, &input) in self.inputs.iter().enumerate() {
            for (k, start) in boxes.starts.iter().enumerate() {
                let from = Side { at: input + (start * size) as u64, steps: &from_steps };
                let at = output + (n * len + k * (len / boxes.starts.len())) as u64;
                copies.add(from, Side { at, steps: &own }, &part, size)?;
            }
        }
        // SAFETY: boxes of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        let mut sample = memory::zeros(many * len)?;
        stream.download(Buffer::Output, vec![(0, &mut sample[..])], 1)?;
        Ok(Some((boxes, sample)))
    }

    /// What each chunk's encoder is asked. `None`: the kernels do not say.
    pub(super) fn choose_requests(&self, stream: &mut OwnStream, threads: usize) -> Result<Vec<Option<Chosen>>> {
        let mut chosen = vec![None; self.inputs.len()];
        let used = self.bounds(stream)?;
        let requests = requests(self.params.request);
        let mut open: Vec<usize> = (0..self.inputs.len()).filter(|&i| self.has_bound(used[i])).collect();
        for looked in Looked::EACH {
            let Some(sample) = Sample::new(self.params, looked) else { break };
            if open.is_empty() {
                break;
            }
            let Some(lens) = self.sample_lens(stream, &sample, &open, &used)? else { break };
            let values = self.raw_len / usize::from(self.params.dtype.size);
            let mut near = Vec::new();
            for (&i, lens) in open.iter().zip(&lens) {
                // A frame that the kernels leave to the CPU says nothing.
                let taken = take(&sample, *lens, values, self.raw_len).filter(|_| !lens.contains(&0));
                let Some(taken) = taken else { continue };
                let params = Params { request: requests[taken.candidate], ..*self.params };
                chosen[i] = Some(Chosen { params, used: Some(used[i]), kept: None });
                if taken.is_near_lossless && !self.is_wide {
                    near.push((i, taken));
                }
            }
            self.choose_exactly(stream, &sample, near, &used, threads, &mut chosen)?;
            let undecided = |n: usize| chosen[open[n]].is_none() && !lens[n].contains(&0);
            open = (0..open.len()).filter(|&n| undecided(n)).map(|n| open[n]).collect();
        }
        Ok(chosen)
    }

    /// What is asked of each chunk that loses nothing: `planes`, `lorenzo`, or what leaves it to the CPU. The host
    /// chooses.
    pub(super) fn choose_kept(&self, stream: &mut OwnStream, threads: usize) -> Result<Vec<Option<Chosen>>> {
        let many = self.inputs.len();
        let chosen = |kept: Kept| Some(Chosen { params: kept.settle(*self.params), used: None, kept: Some(kept) });
        let look = match codec::look(self.params, self.raw_len) {
            Ok(look) => look,
            Err(kept) => return Ok(vec![chosen(kept); many]),
        };
        let len = look.len(self.raw_len, self.params.dtype.size.into());
        let output = stream.reserve(Buffer::Output, many * len)?;
        self.start_seen(stream, &look.stacks(), look.runs(), self.inputs, output)?;
        let mut seen = memory::zeros::<u8>(many * len)?;
        stream.download(Buffer::Output, vec![(0, &mut seen[..])], 1)?;
        parallel::try_map(many, threads, |n| Ok(chosen(look.choose(self.params, &seen[n * len..][..len], 1)?)))
    }

    /// Of these chunks, of which these candidates were taken, leaves those to the CPU that are shorter without loss.
    fn choose_exactly(
        &self,
        stream: &mut OwnStream,
        sample: &Sample,
        near: Vec<(usize, Taken)>,
        used: &[Used],
        threads: usize,
        chosen: &mut [Option<Chosen>],
    ) -> Result<()> {
        if near.is_empty() {
            return Ok(());
        }
        let (many, size) = (near.len(), usize::from(self.params.dtype.size));
        let inputs: Vec<u64> = near.iter().map(|&(i, _)| self.inputs[i]).collect();
        let stacks: Vec<&Stack> = sample.of[LOSSLESS].iter().map(|&k| &sample.stacks[k]).collect();
        let len = seen_len(&stacks, (0, &[]), self.raw_len, size);
        let (runs, apart, run) = scaled::runs(len, size);
        if runs == 0 {
            return Ok(());
        }
        let output = stream.reserve(Buffer::Output, many * (len + runs * run))?;
        self.start_seen(stream, &stacks, (0, &[]), &inputs, output)?;
        // Most chunks are settled by these runs.
        let mut copies = Copies::default();
        let from = Side { at: output, steps: &[len, apart, size].map(|n| n as isize) };
        let to = Side { at: output + (many * len) as u64, steps: &[runs * run, run, size].map(|n| n as isize) };
        copies.add(from, to, &[many, runs, run / size].map(|n| n as u64), size)?;
        // SAFETY: the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        let mut numbers = memory::zeros::<u8>(many * runs * run)?;
        stream.download(Buffer::Output, vec![(many * len, &mut numbers[..])], 1)?;
        let (mut tried, mut unsure) = (Vec::new(), Vec::new());
        for (n, ((i, taken), numbers)) in near.into_iter().zip(numbers.chunks(runs * run)).enumerate() {
            match look_exactly(self.params, numbers, self.raw_len, used[i], sample, &taken) {
                Exact::Longer => {}
                Exact::Perhaps => unsure.push((i, taken)),
                Exact::Try(trial) => tried.push((n, i, taken, trial)),
            }
        }
        let mut seen = memory::zeros::<u8>(tried.len() * len)?;
        let wanted = tried.iter().zip(seen.chunks_mut(len)).map(|(tried, raw)| (tried.0 * len, raw)).collect();
        stream.download(Buffer::Output, wanted, 1)?;
        // Coding takes a hundred times as long as looking.
        let shorter = parallel::try_map(tried.len(), threads, |k| {
            let ((.., taken, trial), raw) = (&tried[k], &seen[k * len..][..len]);
            let chunk = Chunk { params: self.params, raw, threads: 1, used: None, kept: None };
            trial.shorter(&chunk, self.raw_len, sample, taken)
        })?;
        for ((_, i, ..), kept) in tried.iter().zip(shorter).filter_map(|(tried, kept)| Some((tried, kept?))) {
            let params = Params { request: BY_CHOICE, ..*self.params };
            chosen[*i] = Some(Chosen { params, used: None, kept });
        }
        match Sample::new(self.params, Looked::AtAll) {
            Some(larger) => self.choose_exactly(stream, &larger, unsure, used, threads, chosen),
            None => Ok(()),
        }
    }

    /// Starts gathering the values of these stacks of dense chunks at these addresses, then those of these runs, of one
    /// chunk behind the other.
    fn start_seen(
        &self,
        stream: &mut OwnStream,
        stacks: &[&Stack],
        (run, starts): (usize, &[usize]),
        inputs: &[u64],
        output: u64,
    ) -> Result<()> {
        let size = usize::from(self.params.dtype.size);
        let len = seen_len(stacks, (run, starts), self.raw_len, size);
        let mut copies = Copies::default();
        let one = [size as isize];
        let mut at = 0;
        for stack in stacks {
            gather(&mut copies, stack, inputs, (output + at as u64, len), size)?;
            at += stack.len() * size;
        }
        for (n, &input) in inputs.iter().enumerate() {
            let to = output + (n * len) as u64;
            if stacks.is_empty() {
                let to = Side { at: to, steps: &one };
                copies.add(Side { at: input, steps: &one }, to, &[(len / size) as u64], size)?;
            }
            for (k, start) in starts.iter().enumerate() {
                let from = Side { at: input + (start * size) as u64, steps: &one };
                let to = Side { at: to + (at + k * run * size) as u64, steps: &one };
                copies.add(from, to, &[run as u64], size)?;
            }
        }
        // SAFETY: boxes of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        Ok(())
    }

    /// What is asked of each chunk where the request names the codec. `None`: the CPU's.
    pub(super) fn settled(&self, stream: &mut OwnStream) -> Result<Vec<Option<Chosen>>> {
        let chosen = |used| Some(Chosen { params: *self.params, used: Some(used), kept: None });
        Ok(self.bounds(stream)?.into_iter().map(|used| chosen(used).filter(|_| self.has_bound(used))).collect())
    }

    /// Whether kernels can keep it: the CPU codes what has no half.
    fn has_bound(&self, used: Used) -> bool {
        !self.is_wide || used.value() > 0.0
    }

    /// The bound used on each chunk.
    fn bounds(&self, stream: &mut OwnStream) -> Result<Vec<Used>> {
        let (request, dtype) = (self.params.request, self.params.dtype);
        if !bound::follows_range(request) {
            return Ok(vec![bound::used(request, dtype, None); self.inputs.len()]);
        }
        let values = self.raw_len / usize::from(dtype.size);
        let chunks: Vec<(u64, usize)> = self.inputs.iter().map(|&at| (at, values)).collect();
        let found = ranges(self.device, stream, &Copies::default(), self.params, &chunks)?;
        let whole = found.into_iter().map(|range| bound::used(request, dtype, range));
        let none = Used::from(Tolerance::Absolute(0.0));
        Ok(whole
            .map(
                |used| {
                    if self.is_wide && request.bound.follows_range() {
                        half::halved(used).unwrap_or(none)
                    } else {
                        used
                    }
                },
            )
            .collect())
    }

    /// Lengths of the candidates' frames of the samples of these chunks. `None`: the GPU cannot encode one of the
    /// samples.
    fn sample_lens(
        &self,
        stream: &mut OwnStream,
        sample: &Sample,
        open: &[usize],
        used: &[Used],
    ) -> Result<Option<Vec<[u64; 3]>>> {
        let size = usize::from(self.params.dtype.size);
        let mut plans = Vec::new();
        for (k, request) in requests(self.params.request).into_iter().enumerate() {
            let len = sample.len(k, self.raw_len / size) * size;
            let plan = sample.params(self.params, k, request).and_then(|params| plan_of(&params, len));
            let Some(plan) = plan else { return Ok(None) };
            plans.push(plan);
        }
        let steps: Vec<usize> = sample.stacks.iter().map(|s| (s.len() * size).next_multiple_of(ALIGN)).collect();
        let stacks_at = offsets(steps.iter().map(|step| step * open.len()));
        let frames_at = *stacks_at.last().expect("an end");
        let frame = plans.iter().map(|p| p.encoding.capacity).max().expect("three").next_multiple_of(ALIGN);
        let output = stream.reserve(Buffer::Output, frames_at + open.len() * frame)?;
        let inputs: Vec<u64> = open.iter().map(|&i| self.inputs[i]).collect();
        let mut copies = Copies::default();
        for ((stack, &step), &at) in sample.stacks.iter().zip(&steps).zip(&stacks_at) {
            gather(&mut copies, stack, &inputs, (output + at as u64, step), size)?;
        }
        // SAFETY: boxes of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        let works = offsets(plans.iter().map(|plan| EncodeGroup::work_len(plan, open.len())));
        stream.reserve(Buffer::Work, *works.last().expect("an end"))?;
        stream.expect(plans.len() * 8 * open.len())?;
        for (k, plan) in plans.iter().enumerate() {
            let bounded: Vec<EncodePlan> = open.iter().map(|&i| plan.under(used[i])).collect();
            let placed: Vec<Placed<'_>> = (0..open.len())
                .map(|n| {
                    let own = |stack: usize| output + (stacks_at[stack] + n * steps[stack]) as u64;
                    let input = sample.of[k].map_or(inputs[n], own);
                    Placed { plan: &bounded[n], input, frame: output + (frames_at + n * frame) as u64 }
                })
                .collect();
            let group = EncodeGroup::new(self.device, stream, &placed, works[k])?;
            group.start(stream)?;
            stream.start_get(Buffer::Work, group.lengths_at(), 8 * open.len(), k * 8 * open.len())?;
        }
        stream.wait()?;
        let lengths = stream.got(plans.len() * 8 * open.len()).as_chunks().0;
        let length = |k: usize, n: usize| u64::from_le_bytes(lengths[k * open.len() + n]);
        for (k, plan) in plans.iter().enumerate() {
            if (0..open.len()).any(|n| length(k, n) > plan.encoding.capacity as u64) {
                return Err(Failure::other("a kernel wrote no frame").into());
            }
        }
        Ok(Some((0..open.len()).map(|n| std::array::from_fn(|k| length(k, n))).collect()))
    }
}

/// Adds copies of the boxes of a stack of each chunk to `to.0`, `to.1` bytes from one chunk's to the next one's.
/// Chunks that lie at equal distances are copied together.
fn gather(copies: &mut Copies, stack: &Stack, inputs: &[u64], to: (u64, usize), size: usize) -> Result<()> {
    let (own, part) = stack.own_steps();
    let bytes = |steps: [usize; 3]| steps.map(|n| (n * size) as isize);
    let extents = stack.part.map(|n| n as u64);
    let apart = |at: usize| inputs[at + 1].wrapping_sub(inputs[at]) as isize;
    let even = (1..inputs.len().saturating_sub(1)).all(|n| apart(n) == apart(0));
    let each = if even { inputs.len() } else { 1 };
    for (n, chunks) in inputs.chunks(each).enumerate() {
        let (step, many) = (if chunks.len() > 1 { apart(0) } else { 0 }, chunks.len() as u64);
        for (k, start) in stack.starts.iter().enumerate() {
            let [[fa, fb, fc], [ta, tb, tc]] = [bytes(stack.steps), bytes(own)];
            let from = Side { at: chunks[0] + (start * size) as u64, steps: &[step, fa, fb, fc] };
            let at = to.0 + (n * each * to.1 + k * part * size) as u64;
            let [a, b, c] = extents;
            copies.add(from, Side { at, steps: &[to.1 as isize, ta, tb, tc] }, &[many, a, b, c], size)?;
        }
    }
    Ok(())
}
