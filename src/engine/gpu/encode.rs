// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of chunks → frames.

use super::group::{AT_ONCE, MOST, Needs, Share, Step, groups, numbers, offsets};
use super::plans;
use crate::cuda::{self, ALIGN, Buffer, Described, Device, Failure, Stream};
use crate::engine::gpu::plan::{ChunkPlan, Numbers};
use codecs::EncodeJob;
use codecs::bound::Used;
use codecs::codec;
use codecs::constants::HEADER_FIXED;
use codecs::frame::{self, STORED_HEADER};
use codecs::parallel;
use codecs::params::{Codec, Dtype, Params};
use kernels::abi::{BOUND_ABSOLUTE, ChunkState, EncodeArgs, EncodeChunk, PackArgs, tile_words};

/// What the GPU does with a chunk.
#[derive(Clone, Copy)]
pub(crate) struct EncodePlan {
    pub(crate) needs: Needs,
    pub(crate) encoding: ChunkPlan,
}

impl EncodePlan {
    /// The same for a chunk whose bound used is known.
    pub(crate) fn under(mut self, used: Used) -> EncodePlan {
        if self.needs.range {
            self.needs.range = false;
            let chunk = &mut self.encoding.chunk;
            (chunk.bound_kind, chunk.bound) = (BOUND_ABSOLUTE, used.value());
            if let Some(guard) = used.guard {
                (chunk.low, chunk.high) = guard.range;
            }
        }
        self
    }

    /// The same for a chunk of numbers of 16 bits, which the kernels get as f32: what its frame states.
    pub(crate) fn stating(mut self, dtype: Dtype, raw_len: usize) -> EncodePlan {
        frame::state_type(bytemuck::cast_slice_mut(&mut self.encoding.chunk.head), dtype, raw_len);
        self
    }

    /// Bytes that the codec's kernels get of a chunk of `raw_len` bytes.
    fn bytes(&self, raw_len: usize) -> usize {
        raw_len.max(self.needs.widened_len(self.encoding.chunk.values))
    }
}

/// What the GPU would do with a chunk. `None`: the CPU's.
pub(crate) fn plan(job: &EncodeJob<'_>) -> Option<EncodePlan> {
    plan_of(job.params, job.raw.len())
}

/// What the GPU would do with any chunk of `raw_len` bytes. `None`: the CPU encodes it.
pub(crate) fn plan_of(params: &Params, raw_len: usize) -> Option<EncodePlan> {
    if raw_len == 0 || params.request.codec == Codec::Small {
        return None;
    }
    let gpu = plans::of_codec(codec::codec_for(params, raw_len))?;
    let encoding = (gpu.encoding)(params, raw_len)?;
    let numbers = gpu.numbers(encoding.chunk.integer, params.dtype.size)?;
    let (range, limited) = (encoding.range(), encoding.limited());
    let needs = Needs { gpu, numbers, range, lossless: !params.lossy(raw_len), limited };
    let plan = EncodePlan { needs, encoding };
    (plan.bytes(raw_len) <= MOST).then_some(plan)
}

/// Whether all of a chunk's numbers have the same bits: nothing for a device to do, and little for the CPU.
fn constant(raw: &[u8], size: usize) -> bool {
    /// Numbers that are looked at first, all over the chunk: hardly any chunk gets past them that is not constant.
    const LOOKS: usize = 64;
    let Some(rest) = raw.len().checked_sub(size) else { return true };
    let step = (rest / size / LOOKS).max(1) * size;
    (0..=rest).step_by(step).all(|at| raw[at..at + size] == raw[..size]) && raw[size..] == raw[..rest]
}

/// See [`super::encode`].
pub(super) fn encode(jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>], share: Share, threads: usize) -> Vec<bool> {
    let mut done = vec![false; jobs.len()];
    if !cuda::possible() {
        return done;
    }
    let plans = parallel::map(jobs.len(), threads, |i| {
        let job = &jobs[i];
        let size = usize::from(job.params.dtype.size).max(1);
        if constant(job.raw, size) { None } else { plan(job) }
    });
    let member = |(i, plan): (usize, &EncodePlan)| (i, plan.needs, plan.bytes(jobs[i].raw.len()));
    let planned = plans.iter().enumerate().filter_map(|(i, p)| Some(member((i, p.as_ref()?))));
    let members = groups(&planned.collect::<Vec<_>>(), |gpu| share.least.or_measured(gpu.encode_from));
    if members.is_empty() {
        return done;
    }
    let Some(device) = share.device() else { return done };
    let mut frames: Vec<Option<&mut Vec<u8>>> = out.iter_mut().map(Some).collect();
    let mut frame = |&i: &usize| frames[i].take().expect("a job is in one group");
    let work: Vec<Vec<&mut Vec<u8>>> = members.iter().map(|g| g.iter().map(&mut frame).collect()).collect();
    let inner = threads.div_ceil(work.len().clamp(1, AT_ONCE));
    let finished = parallel::map_mut(work, threads.min(AT_ONCE), |k, mut frames| {
        let chunk = |&i: &usize| (plans[i].as_ref().expect("planned"), &jobs[i]);
        let chunks: Vec<(&EncodePlan, &EncodeJob<'_>)> = members[k].iter().map(chunk).collect();
        cuda::attempt("encoding", || {
            let _current = device.enter()?;
            let Some(mut stream) = device.stream()? else { return Ok(vec![false; chunks.len()]) };
            encode_group(device, &mut stream, &chunks, &mut frames, inner)
        })
    });
    for (group, finished) in members.iter().zip(finished) {
        group.iter().zip(finished.unwrap_or_default()).for_each(|(&i, finished)| done[i] = finished);
    }
    done
}

/// Encodes one group into its frames. False for a chunk that the kernels leave to the CPU.
fn encode_group(
    device: &Device,
    stream: &mut Stream,
    chunks: &[(&EncodePlan, &EncodeJob<'_>)],
    frames: &mut [&mut Vec<u8>],
    threads: usize,
) -> Result<Vec<bool>, Failure> {
    let raw: Vec<(&EncodePlan, &[u8])> = chunks.iter().map(|&(plan, job)| (plan, job.raw)).collect();
    let group = EncodeGroup::load(device, stream, &raw, threads)?;
    group.start(stream)?;
    let lengths = group.lengths(stream)?;
    let mut wanted: Vec<(usize, usize, &mut Vec<u8>)> = Vec::with_capacity(chunks.len());
    for (k, frame) in frames.iter_mut().enumerate() {
        let (plan, EncodeJob { params, raw }) = chunks[k];
        let len = usize::try_from(lengths[k]).unwrap_or(usize::MAX);
        if len == 0 {
            continue;
        }
        if len < HEADER_FIXED || len > plan.encoding.capacity {
            return Err(Failure::other("a kernel wrote no frame"));
        }
        if len < raw.len() + STORED_HEADER {
            wanted.push((group.frames[k], len, frame));
        } else {
            codec::store(params, raw, threads, frame).map_err(|_| Failure::other("no memory for a frame"))?;
        }
    }
    stream.download_vecs(Buffer::Output, wanted, threads)?;
    Ok(lengths.iter().map(|&len| len != 0).collect())
}

/// A chunk of a group, which is on the device.
pub(crate) struct Placed<'a> {
    pub(crate) plan: &'a EncodePlan,
    /// Device address of its bytes, 16-byte aligned.
    pub(crate) input: u64,
    /// Device address of its frame, 16-byte aligned, with room for the plan's capacity.
    pub(crate) frame: u64,
}

/// Chunks that are encoded by the same launches, on the device.
pub(crate) struct EncodeGroup {
    pub(crate) steps: Vec<Step>,
    args: EncodeArgs,
    /// Offsets of the frames in the stream's output.
    pub(crate) frames: Vec<usize>,
    /// What must be zero before a launch.
    cleared: (usize, usize),
    lengths_at: usize,
}

impl EncodeGroup {
    pub(crate) fn load(
        device: &Device,
        stream: &mut Stream,
        chunks: &[(&EncodePlan, &[u8])],
        threads: usize,
    ) -> Result<EncodeGroup, Failure> {
        let inputs = offsets(chunks.iter().map(|c| c.1.len()));
        let frames = offsets(chunks.iter().map(|c| c.0.encoding.capacity));
        let input = stream.reserve(Buffer::Input, *inputs.last().expect("an end"))?;
        let output = stream.reserve(Buffer::Output, *frames.last().expect("an end"))?;
        let placed = chunks.iter().enumerate().map(|(k, (plan, _))| {
            let (input, frame) = (input + inputs[k] as u64, output + frames[k] as u64);
            Placed { plan, input, frame }
        });
        let mut group = EncodeGroup::new(device, stream, &placed.collect::<Vec<_>>(), 0)?;
        group.frames = frames;
        let sources: Vec<(usize, &[u8])> = chunks.iter().enumerate().map(|(k, c)| (inputs[k], c.1)).collect();
        stream.upload(Buffer::Input, &sources, threads)?;
        Ok(group)
    }

    /// Chunks that are on the device, or will be when the launches come to them; they need the same. What the kernels
    /// share is in the stream's [`Buffer::Work`] from `work_at` on.
    pub(crate) fn new(
        device: &Device,
        stream: &mut Stream,
        placed: &[Placed<'_>],
        work_at: usize,
    ) -> Result<EncodeGroup, Failure> {
        let needs = placed[0].plan.needs;
        let wide = |c: &EncodeChunk| needs.widened_len(c.values).next_multiple_of(ALIGN);
        let scratch = placed.iter().map(|p| &p.plan.encoding.chunk);
        let scratch = scratch.map(|c| wide(c) + c.tiles as usize * c.work_stride as usize);
        let scratches = offsets(scratch.clone());
        let scratch_at = if scratch.sum::<usize>() > 0 {
            stream.reserve(Buffer::Tiles, *scratches.last().expect("an end"))?
        } else {
            0
        };
        let mut list: Vec<EncodeChunk> = Vec::with_capacity(placed.len());
        let mut tiles = 0u32;
        for (p, &at) in placed.iter().zip(&scratches) {
            let (scratch, chunk) = (scratch_at + at as u64, p.plan.encoding.chunk);
            let (input, integers) = match needs.numbers {
                Numbers::Widened => (scratch, p.input),
                _ => (p.input, 0),
            };
            let (frame, work) = (p.frame, scratch + wide(&chunk) as u64);
            list.push(EncodeChunk { input, integers, frame, work, first_tile: tiles, ..chunk });
            tiles = tiles.checked_add(chunk.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        }
        let parts = Self::parts(needs, list.len(), tiles);
        let work = stream.reserve(Buffer::Work, work_at + parts[6])? + work_at as u64;
        stream.put(Buffer::Work, work_at + parts[5], EncodeChunk::bytes(&list))?;
        let args = EncodeArgs {
            chunks: work + parts[5] as u64,
            states: work + parts[1] as u64,
            offsets: work + parts[2] as u64,
            ticket: work + parts[0] as u64,
            shared: work + parts[3] as u64,
            lengths: work + parts[4] as u64,
            chunk_count: list.len() as u32,
            tiles,
        };
        let steps = needs.kernels(device, needs.gpu.encode, tiles, args.chunk_count)?;
        let cleared = (work_at + parts[0], work_at + parts[4]);
        Ok(EncodeGroup { steps, args, frames: Vec::new(), cleared, lengths_at: work_at + parts[4] })
    }

    /// Where the parts of what the kernels share begin, and their end: ticket, states, the look-back's words, what
    /// launches share (cleared together), lengths, descriptions.
    fn parts(needs: Needs, chunks: usize, tiles: u32) -> [usize; 7] {
        let (states, shared) = (chunks * size_of::<ChunkState>(), chunks * needs.gpu.shared);
        let described = chunks * size_of::<EncodeChunk>();
        let parts = offsets([16, states, tile_words(tiles as usize), shared, 8 * chunks, described]);
        parts.try_into().expect("six parts and an end")
    }

    /// Bytes of [`Buffer::Work`] that a group of `chunks` chunks with this plan takes.
    pub(crate) fn work_len(plan: &EncodePlan, chunks: usize) -> usize {
        Self::parts(plan.needs, chunks, plan.encoding.chunk.tiles.saturating_mul(chunks as u32))[6]
    }

    /// Offset of the lengths in [`Buffer::Work`].
    pub(crate) fn lengths_at(&self) -> usize {
        self.lengths_at
    }

    /// What brings the group's frames together from `packed` on, but those longer than `limit`, with `parts` CTAs a
    /// frame.
    pub(crate) fn packing(&self, packed: u64, limit: u64, parts: u32) -> PackArgs {
        let EncodeArgs { chunks, lengths, chunk_count, .. } = self.args;
        PackArgs { chunks, lengths, packed, limit, chunk_count, parts }
    }

    /// Starts the kernels; may be repeated.
    #[allow(unsafe_code)]
    pub(crate) fn start(&self, stream: &mut Stream) -> Result<(), Failure> {
        self.clear(stream)?;
        // SAFETY: as in `launch`.
        unsafe { stream.launch_all(self.steps.iter().map(|step| (step.kernel, step.ctas)), &self.args) }
    }

    pub(crate) fn clear(&self, stream: &mut Stream) -> Result<(), Failure> {
        stream.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)
    }

    /// Starts one of the kernels, to be timed by itself.
    #[cfg(feature = "testing")]
    #[allow(unsafe_code)]
    pub(crate) fn launch(&self, stream: &mut Stream, step: Step) -> Result<(), Failure> {
        // SAFETY: a kernel of encoding. `load` reserved on this stream all that its arguments lead to: each chunk's
        // bytes, a frame of the codec's own capacity, and scratch for every tile.
        unsafe { stream.launch(step.kernel, step.ctas, &self.args) }
    }

    pub(crate) fn lengths(&self, stream: &mut Stream) -> Result<Vec<u64>, Failure> {
        numbers(stream, self.lengths_at, self.args.chunk_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_number_makes_a_chunk_worth_a_look() {
        for (n, size) in [(1, 4), (2, 4), (3, 8), (63, 8), (64, 4), (65, 4), (5000, 4), (5001, 8)] {
            let mut raw: Vec<u8> = [1, 2, 3, 4, 5, 6, 7, 8][..size].repeat(n);
            assert!(constant(&raw, size));
            for at in (0..raw.len()).step_by(if n > 100 { 7 } else { 1 }) {
                raw[at] ^= 0x10;
                assert_eq!(constant(&raw, size), n == 1, "byte {at} of {n} numbers");
                raw[at] ^= 0x10;
            }
        }
    }
}
