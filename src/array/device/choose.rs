// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of axes and the codec of each chunk of a batch where the request leaves them open: the same choices as on
//! the CPU (`codec/order.rs`, `codec/auto.rs`, `codec/trial.rs`).
//!
//! ```text
//! boxes    the values by which the order is chosen, gathered by one launch; the host chooses
//! range    of each chunk, where the bound is relative: one kernel, the ranges come to the host
//! gather   the samples of all chunks, by one launch
//! encode   each candidate's samples, as any chunks; the frames' lengths and some of each chunk's numbers come to the
//!          host
//! rule     the same again, with a larger sample, for chunks whose sample does not do
//! exactly  of chunks that may be as short without loss whose numbers are multiples of a unit, or few, a sample comes
//!          to the host, which codes it; of a small chunk all of it
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
use codecs::codec::look::{self, seen_len};
use codecs::codec::order::Boxes;
use codecs::codec::sample::{LOSSLESS, Looked, Sample, Stack};
use codecs::codec::trial::{Trial, look_exactly, loses};
use codecs::codec::{self, half};
use codecs::error::Result;
use codecs::params::Params;
use codecs::{memory, parallel};

/// Chunks whose numbers a thread looks at while another one is started.
const LOOKS_OF_A_THREAD: usize = 16;

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

/// What is seen of chunks.
struct Seen<'a> {
    /// Lengths of the candidates' frames of each one's sample.
    lens: Vec<[u64; 3]>,
    /// [`look::numbers`] of one chunk behind the other.
    numbers: &'a [u8],
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
            let Some(sample) = Sample::under_a_bound(self.params, looked) else { break };
            if open.is_empty() {
                break;
            }
            let Some(Seen { lens, numbers }) = self.sample_lens(stream, &sample, &open, &used)? else { break };
            let values = self.raw_len / usize::from(self.params.dtype.size);
            // A frame that the kernels leave to the CPU says nothing.
            let is_said = |n: usize| !lens[n].contains(&0);
            let take = |n: usize, loses| take(&sample, lens[n], loses, values, self.raw_len).filter(|_| is_said(n));
            // The numbers of most chunks do not matter.
            let matter = |n: usize| {
                let [loses, other] = [true, false].map(|loses| take(n, loses));
                loses != other || loses.is_some_and(|taken| taken.is_near_lossless)
            };
            let (mut near, seen) = (Vec::new(), numbers.len() / open.len());
            for (n, &i) in open.iter().enumerate() {
                let numbers = if matter(n) { &numbers[n * seen..][..seen] } else { &[] };
                let Some(taken) = take(n, loses(self.params, numbers, used[i])) else { continue };
                let params = Params { request: requests[taken.candidate], ..*self.params };
                chosen[i] = Some(Chosen { params, used: Some(used[i]), kept: None });
                if taken.is_near_lossless && !self.is_wide {
                    near.push((i, taken, numbers));
                }
            }
            // Most chunks are settled by the numbers, some of which a thread looks at while another one is started.
            let trials = parallel::map(near.len(), threads.min(near.len() / LOOKS_OF_A_THREAD), |n| {
                let (i, taken, numbers) = &near[n];
                look_exactly(self.params, numbers, self.raw_len, used[*i], taken)
            });
            let tried = near.into_iter().zip(trials).filter_map(|((i, taken, _), trial)| Some((i, taken, trial?)));
            let sample = sample.for_trial();
            let (few, units): (Vec<_>, Vec<_>) = tried.partition(|(.., trial)| trial.wants_more(&sample));
            self.choose_exactly(stream, &sample, units, threads, &mut chosen)?;
            if let Some(larger) = Sample::new(self.params, Looked::AtAll) {
                self.choose_exactly(stream, &larger, few, threads, &mut chosen)?;
            }
            open = (0..open.len()).filter(|&n| chosen[open[n]].is_none() && is_said(n)).map(|n| open[n]).collect();
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
        let seen = self.seen(stream, &look.stacks(), look.runs(), self.inputs)?;
        let len = seen.len() / many;
        parallel::try_map(many, threads, |n| Ok(chosen(look.choose(self.params, &seen[n * len..][..len], 1)?)))
    }

    /// Of these chunks, of which these candidates were taken, leaves those to the CPU that are shorter without loss by
    /// this sample.
    fn choose_exactly(
        &self,
        stream: &mut OwnStream,
        sample: &Sample,
        tried: Vec<(usize, Taken, Trial)>,
        threads: usize,
        chosen: &mut [Option<Chosen>],
    ) -> Result<()> {
        let inputs: Vec<u64> = tried.iter().map(|tried| self.inputs[tried.0]).collect();
        let stacks: Vec<&Stack> = sample.of[LOSSLESS].iter().map(|&k| &sample.stacks[k]).collect();
        let seen = self.seen(stream, &stacks, (0, &[]), &inputs)?;
        let len = seen.len() / tried.len().max(1);
        let shorter = parallel::try_map(tried.len(), threads, |k| {
            let ((_, taken, trial), raw) = (&tried[k], &seen[k * len..][..len]);
            let chunk = Chunk { params: self.params, raw, threads: 1, used: None, kept: None };
            trial.shorter(&chunk, self.raw_len, sample, taken)
        })?;
        for ((i, ..), coded) in tried.iter().zip(shorter).filter_map(|(tried, coded)| Some((tried, coded?))) {
            let params = Params { request: BY_CHOICE, ..*self.params };
            chosen[*i] = Some(Chosen { params, used: None, kept: coded.kept });
        }
        Ok(())
    }

    /// The values of these stacks of dense chunks at these addresses, then those of these runs, of one chunk behind the
    /// other.
    fn seen(
        &self,
        stream: &mut OwnStream,
        stacks: &[&Stack],
        runs: (usize, &[usize]),
        inputs: &[u64],
    ) -> Result<Vec<u8>> {
        let len = inputs.len() * seen_len(stacks, runs, self.raw_len, self.params.dtype.size.into());
        let mut seen = memory::zeros::<u8>(len)?;
        if len > 0 {
            let output = stream.reserve(Buffer::Output, len)?;
            self.start_seen(stream, stacks, runs, inputs, output)?;
            stream.download(Buffer::Output, vec![(0, &mut seen[..])], 1)?;
        }
        Ok(seen)
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

    /// What is seen of these chunks. `None`: the GPU cannot encode one of the samples.
    fn sample_lens<'a>(
        &self,
        stream: &'a mut OwnStream,
        sample: &Sample,
        open: &[usize],
        used: &[Used],
    ) -> Result<Option<Seen<'a>>> {
        let (many, size) = (open.len(), usize::from(self.params.dtype.size));
        let seen = look::numbers(if self.is_wide { 0 } else { self.raw_len }, size);
        let mut plans = Vec::new();
        for (k, request) in requests(self.params.request).into_iter().enumerate() {
            let len = sample.len(k, self.raw_len / size) * size;
            let plan = sample.params(self.params, k, request).and_then(|params| plan_of(&params, len));
            let Some(plan) = plan else { return Ok(None) };
            plans.push(plan);
        }
        let steps: Vec<usize> = sample.stacks.iter().map(|s| (s.len() * size).next_multiple_of(ALIGN)).collect();
        let stacks_at = offsets(steps.iter().map(|step| step * many));
        let frames_at = *stacks_at.last().expect("an end");
        let frame = plans.iter().map(|p| p.encoding.capacity).max().expect("three").next_multiple_of(ALIGN);
        let numbers_at = frames_at + many * frame;
        let numbers_len = many * seen.len() * size;
        let output = stream.reserve(Buffer::Output, numbers_at + numbers_len)?;
        let inputs: Vec<u64> = open.iter().map(|&i| self.inputs[i]).collect();
        let mut copies = Copies::default();
        for ((stack, &step), &at) in sample.stacks.iter().zip(&steps).zip(&stacks_at) {
            gather(&mut copies, stack, &inputs, (output + at as u64, step), size)?;
        }
        gather(&mut copies, &seen, &inputs, (output + numbers_at as u64, seen.len() * size), size)?;
        // SAFETY: boxes and runs of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        let works = offsets(plans.iter().map(|plan| EncodeGroup::work_len(plan, many)));
        stream.reserve(Buffer::Work, *works.last().expect("an end"))?;
        let lengths_len = plans.len() * 8 * many;
        stream.expect(lengths_len + numbers_len)?;
        if numbers_len > 0 {
            stream.start_get(Buffer::Output, numbers_at, numbers_len, lengths_len)?;
        }
        for (k, plan) in plans.iter().enumerate() {
            let bounded: Vec<EncodePlan> = open.iter().map(|&i| plan.under(used[i])).collect();
            let place = |(n, plan)| {
                let own = |stack: usize| output + (stacks_at[stack] + n * steps[stack]) as u64;
                let input = sample.of[k].map_or(inputs[n], own);
                Placed { plan, input, frame: output + (frames_at + n * frame) as u64 }
            };
            let placed: Vec<Placed<'_>> = bounded.iter().enumerate().map(place).collect();
            let group = EncodeGroup::new(self.device, stream, &placed, works[k])?;
            group.start(stream)?;
            stream.start_get(Buffer::Work, group.lengths_at(), 8 * many, k * 8 * many)?;
        }
        stream.wait()?;
        let (lengths, numbers) = stream.got(lengths_len + numbers_len).split_at(lengths_len);
        let lengths = lengths.as_chunks().0;
        let length = |k: usize, n: usize| u64::from_le_bytes(lengths[k * many + n]);
        for (k, plan) in plans.iter().enumerate() {
            if (0..many).any(|n| length(k, n) > plan.encoding.capacity as u64) {
                return Err(Failure::other("a kernel wrote no frame").into());
            }
        }
        let lens = (0..many).map(|n| std::array::from_fn(|k| length(k, n))).collect();
        Ok(Some(Seen { lens, numbers }))
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
