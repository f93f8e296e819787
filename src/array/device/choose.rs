// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of axes and the codec of each chunk of a batch where the request leaves them open: the same choices as on
//! the CPU (`codec/order.rs`, `codec/auto.rs`, `codec/trial.rs`).
//!
//! ```text
//! boxes    the values by which the order is chosen, gathered by one launch; the host chooses
//! range    of each chunk, where the bound is relative: one kernel, the ranges come to the host
//! gather   the samples of all chunks, by one launch
//! numbers  some of each sample come to the host: whether the lossless candidate is tried
//! encode   each candidate's samples, as any chunks; only the frames' lengths come to the host
//! rule     the same again, with a larger sample, for chunks whose sample is next to constant
//! exactly  of those that may be as short without loss whose numbers are multiples of a unit all of the sample comes to
//!          the host, which codes it; where they are few, a larger sample does first
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
use codecs::codec::look::seen_len;
use codecs::codec::order::Boxes;
use codecs::codec::sample::{LOSSLESS, Looked, Sample, Stack};
use codecs::codec::scaled;
use codecs::codec::trial::{Exact, look_exactly, loses};
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
            let Some(sample) = Sample::under_a_bound(self.params, looked) else { break };
            if open.is_empty() {
                break;
            }
            let Some(Lengths { lens, numbers }) = self.sample_lens(stream, &sample, &open, &used, threads)? else {
                break;
            };
            let values = self.raw_len / usize::from(self.params.dtype.size);
            let mut near = Vec::new();
            for (n, (&i, lens)) in open.iter().zip(&lens).enumerate() {
                // A frame that the kernels leave to the CPU says nothing.
                let loses = lens[LOSSLESS] == NOT_TRIED;
                let taken = take(&sample, *lens, loses, values, self.raw_len).filter(|_| !lens.contains(&0));
                let Some(taken) = taken else { continue };
                let params = Params { request: requests[taken.candidate], ..*self.params };
                chosen[i] = Some(Chosen { params, used: Some(used[i]), kept: None });
                if taken.is_near_lossless && !self.is_wide {
                    near.push((i, taken, &numbers[n * numbers.len() / open.len()..][..numbers.len() / open.len()]));
                }
            }
            self.choose_exactly(stream, &sample.for_trial(), near, &used, threads, &mut chosen)?;
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
        let seen = self.seen(stream, &look.stacks(), look.runs(), self.inputs)?;
        let len = seen.len() / many;
        parallel::try_map(many, threads, |n| Ok(chosen(look.choose(self.params, &seen[n * len..][..len], 1)?)))
    }

    /// Of these chunks, of which these candidates were taken and these numbers were looked at, leaves those to the CPU
    /// that are shorter without loss.
    fn choose_exactly(
        &self,
        stream: &mut OwnStream,
        sample: &Sample,
        near: Vec<(usize, Taken, &[u8])>,
        used: &[Used],
        threads: usize,
        chosen: &mut [Option<Chosen>],
    ) -> Result<()> {
        let size = usize::from(self.params.dtype.size);
        let looked = parallel::map(near.len(), threads, |n| {
            let (i, taken, numbers) = &near[n];
            look_exactly(self.params, numbers, self.raw_len, used[*i], sample, taken)
        });
        let (mut tried, mut unsure) = (Vec::new(), Vec::new());
        for ((i, taken, _), exact) in near.into_iter().zip(looked) {
            match exact {
                Exact::Longer => {}
                Exact::Perhaps => unsure.push((i, taken)),
                Exact::Try(trial) => tried.push((i, taken, trial)),
            }
        }
        let inputs: Vec<u64> = tried.iter().map(|tried| self.inputs[tried.0]).collect();
        let seen = self.seen(stream, &stacks_of(sample), (0, &[]), &inputs)?;
        let len = seen.len() / tried.len().max(1);
        // Coding takes a hundred times as long as looking.
        let shorter = parallel::try_map(tried.len(), threads, |k| {
            let ((_, taken, trial), raw) = (&tried[k], &seen[k * len..][..len]);
            let chunk = Chunk { params: self.params, raw, threads: 1, used: None, kept: None };
            trial.shorter(&chunk, self.raw_len, sample, taken)
        })?;
        for ((i, ..), coded) in tried.iter().zip(shorter).filter_map(|(tried, coded)| Some((tried, coded?))) {
            let params = Params { request: BY_CHOICE, ..*self.params };
            chosen[*i] = Some(Chosen { params, used: None, kept: coded.kept });
        }
        let Some(larger) = Sample::new(self.params, Looked::AtAll).filter(|_| !unsure.is_empty()) else {
            return Ok(());
        };
        let inputs: Vec<u64> = unsure.iter().map(|(i, _)| self.inputs[*i]).collect();
        let seen = self.seen(stream, &stacks_of(&larger), (0, &[]), &inputs)?;
        let numbers: Vec<Vec<u8>> =
            seen.chunks(seen.len() / unsure.len()).map(|s| scaled::looked_at(s, size)).collect();
        let near = unsure.into_iter().zip(&numbers).map(|((i, taken), numbers)| (i, taken, &numbers[..])).collect();
        self.choose_exactly(stream, &larger, near, used, threads, chosen)
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

    /// Lengths of the candidates' frames of the samples of these chunks, and the numbers that are looked at. `None`:
    /// the GPU cannot encode one of the samples.
    fn sample_lens(
        &self,
        stream: &mut OwnStream,
        sample: &Sample,
        open: &[usize],
        used: &[Used],
        threads: usize,
    ) -> Result<Option<Lengths>> {
        let (many, size) = (open.len(), usize::from(self.params.dtype.size));
        let plan = |(k, request)| {
            let len = sample.len(k, self.raw_len / size) * size;
            sample.params(self.params, k, request).and_then(|params| plan_of(&params, len))
        };
        let Some(plans) = requests(self.params.request).into_iter().enumerate().map(plan).collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let frame = plans.iter().map(|p| p.encoding.capacity).max().expect("three").next_multiple_of(ALIGN);
        let inputs: Vec<u64> = open.iter().map(|&i| self.inputs[i]).collect();
        let room = Room::new(self, stream, sample, (many, frame))?;
        let numbers = self.gather_sample(stream, sample, &room, &inputs)?;
        let loses = parallel::map(many, threads, |n| {
            let numbers = &numbers[n * numbers.len() / many..][..numbers.len() / many];
            loses(self.params, numbers, used[open[n]])
        });
        let is_tried = |k: usize, n: usize| k != LOSSLESS || !loses[n];
        let tried = |k: usize| (0..many).filter(|&n| is_tried(k, n)).collect();
        let tried: Vec<Vec<usize>> = (0..plans.len()).map(tried).collect();
        let works = offsets(plans.iter().zip(&tried).map(|(plan, tried)| EncodeGroup::work_len(plan, tried.len())));
        stream.reserve(Buffer::Work, *works.last().expect("an end"))?;
        stream.expect(plans.len() * 8 * many)?;
        for (k, plan) in plans.iter().enumerate().filter(|(k, _)| !tried[*k].is_empty()) {
            let bounded: Vec<EncodePlan> = tried[k].iter().map(|&n| plan.under(used[open[n]])).collect();
            let place = |(&n, plan)| {
                let input = sample.of[k].map_or(inputs[n], |stack| room.stack(stack, n));
                Placed { plan, input, frame: room.output + (room.frames_at + n * frame) as u64 }
            };
            let placed: Vec<Placed<'_>> = tried[k].iter().zip(&bounded).map(place).collect();
            let group = EncodeGroup::new(self.device, stream, &placed, works[k])?;
            group.start(stream)?;
            stream.start_get(Buffer::Work, group.lengths_at(), 8 * tried[k].len(), k * 8 * many)?;
        }
        stream.wait()?;
        let lengths = stream.got(plans.len() * 8 * many).as_chunks().0;
        let mut lens = vec![[NOT_TRIED; 3]; many];
        for (k, plan) in plans.iter().enumerate() {
            for (&n, len) in tried[k].iter().zip(&lengths[k * many..]) {
                lens[n][k] = u64::from_le_bytes(*len);
                if lens[n][k] > plan.encoding.capacity as u64 {
                    return Err(Failure::other("a kernel wrote no frame").into());
                }
            }
        }
        Ok(Some(Lengths { lens, numbers }))
    }

    /// Starts gathering the samples of these chunks; the numbers that are looked at of each, one behind the other.
    fn gather_sample(&self, stream: &mut OwnStream, sample: &Sample, room: &Room, inputs: &[u64]) -> Result<Vec<u8>> {
        let (many, size, (runs, apart, run)) = (inputs.len(), usize::from(self.params.dtype.size), room.runs);
        let mut copies = Copies::default();
        for (k, (stack, &step)) in sample.stacks.iter().zip(&room.steps).enumerate() {
            gather(&mut copies, stack, inputs, (room.stack(k, 0), step), size)?;
        }
        // SAFETY: boxes of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        let mut numbers = memory::zeros::<u8>(many * runs * run)?;
        if numbers.is_empty() {
            return Ok(numbers);
        }
        let gathered = sample.looked_at().map(|stack| [room.stack(stack, 0)]);
        let (starts, step) = match &gathered {
            Some(start) => (&start[..], room.steps[sample.looked_at().unwrap_or(0)]),
            None => (inputs, 0),
        };
        let mut copies = Copies::default();
        for (n, &at) in starts.iter().enumerate() {
            let from = Side { at, steps: &[step, apart, size].map(|n| n as isize) };
            let at = room.output + (room.numbers_at + n * runs * run) as u64;
            let to = Side { at, steps: &[runs * run, run, size].map(|n| n as isize) };
            copies.add(from, to, &[many / starts.len(), runs, run / size].map(|n| n as u64), size)?;
        }
        // SAFETY: runs of the chunks or of what was gathered of them, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(self.device, stream)?;
        }
        stream.download(Buffer::Output, vec![(room.numbers_at, &mut numbers[..])], 1)?;
        Ok(numbers)
    }
}

/// Where the samples of some chunks are: each stack of all chunks, the numbers that are looked at, the frames.
struct Room {
    output: u64,
    stacks_at: Vec<usize>,
    /// Bytes from a chunk's stack to the next chunk's.
    steps: Vec<usize>,
    numbers_at: usize,
    /// How many runs of numbers, bytes from one to the next, and of each.
    runs: (usize, usize, usize),
    frames_at: usize,
}

impl Room {
    /// For as many chunks, and frames of as many bytes.
    fn new(open: &Open<'_>, stream: &mut OwnStream, sample: &Sample, (many, frame): (usize, usize)) -> Result<Room> {
        let size = usize::from(open.params.dtype.size);
        let steps: Vec<usize> = sample.stacks.iter().map(|s| (s.len() * size).next_multiple_of(ALIGN)).collect();
        let stacks_at = offsets(steps.iter().map(|step| step * many));
        let numbers_at = *stacks_at.last().expect("an end");
        let runs = match sample.looked_at() {
            _ if open.is_wide => (0, 0, 0),
            Some(stack) => scaled::runs(sample.stacks[stack].len() * size, size),
            None => scaled::runs(open.raw_len, size),
        };
        let frames_at = numbers_at + (many * runs.0 * runs.2).next_multiple_of(ALIGN);
        let output = stream.reserve(Buffer::Output, frames_at + many * frame)?;
        Ok(Room { output, stacks_at, steps, numbers_at, runs, frames_at })
    }

    /// The address of a stack of chunk `n`.
    fn stack(&self, stack: usize, n: usize) -> u64 {
        self.output + (self.stacks_at[stack] + n * self.steps[stack]) as u64
    }
}

/// Lengths of frames of samples, [`NOT_TRIED`] of those that were not made, and numbers that were looked at.
struct Lengths {
    lens: Vec<[u64; 3]>,
    numbers: Vec<u8>,
}

const NOT_TRIED: u64 = u64::MAX;

/// The stack of the lossless candidate; `None`: all of the chunk.
fn stacks_of(sample: &Sample) -> Vec<&Stack> {
    sample.of[LOSSLESS].iter().map(|&k| &sample.stacks[k]).collect()
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
