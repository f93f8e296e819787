// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of frames → chunks.

use super::group::{AT_ONCE, MOST, Needs, Share, Step, groups, numbers, offsets};
use super::plans;
use crate::cuda::{self, Buffer, Described, Device, Failure, Stream};
use crate::engine::gpu::plan::Numbers;
use codecs::DecodeJob;
use codecs::codec::half;
use codecs::frame::Frame;
use codecs::parallel;
use codecs::params::{Dtype, Extents, Mode};
use kernels::abi::{ChunkState, DecodeArgs, DecodeChunk};

/// Kernels may read this many bytes behind a frame.
pub(crate) const BEHIND: usize = 16;

/// What the GPU does with a frame.
pub(crate) struct DecodePlan {
    pub(crate) needs: Needs,
    pub(crate) chunk: DecodeChunk,
    /// The codec's extents where the chunk has two of its axes exchanged, which kernels leave so.
    pub(crate) swapped: Option<Extents>,
    /// The type of 16 bits whose numbers the kernels write as f32.
    pub(crate) halves: Option<Dtype>,
}

impl DecodePlan {
    /// Bytes that the codec's kernels write of a chunk of `len` bytes.
    fn bytes(&self, len: usize) -> usize {
        len.max(self.needs.widened_len(self.chunk.values))
    }
}

/// What the GPU would do with a frame. `None`: the CPU's, and any fault is its to name.
pub(crate) fn plan(job: &DecodeJob<'_>) -> Option<DecodePlan> {
    plan_of(job.frame, job.out.len())
}

/// As [`plan`], of a frame whose chunk must have `len` bytes.
pub(crate) fn plan_of(bytes: &[u8], len: usize) -> Option<DecodePlan> {
    planned(&Frame::open_unsummed(bytes).ok()?, bytes.len(), len)
}

/// The same of a frame that holds f32 in place of numbers of 16 bits.
pub(crate) fn plan_of_halves(bytes: &[u8], len: usize) -> Option<DecodePlan> {
    let frame = Frame::open_unsummed(bytes).ok()?;
    let plan = planned(&half::frame_for_kernels(&frame)?, bytes.len(), len.checked_mul(2)?)?;
    Some(DecodePlan { halves: Some(frame.header.dtype), ..plan })
}

fn planned(frame: &Frame<'_>, stored_len: usize, len: usize) -> Option<DecodePlan> {
    let h = frame.header;
    if h.raw_len != len as u64 || len > MOST || len == 0 || stored_len > MOST {
        return None;
    }
    let gpu = plans::of_codec(h.codec)?;
    let chunk = (gpu.decoding)(frame)?;
    let numbers = gpu.numbers(chunk.integer, h.dtype.size)?;
    let needs = Needs { gpu, numbers, range: false, lossless: h.mode == Mode::Lossless, limited: false };
    let plan = DecodePlan { needs, chunk, swapped: Some(h.extents).filter(Extents::is_swapped), halves: None };
    (plan.bytes(len) <= MOST).then_some(plan)
}

/// See [`super::decode`].
pub(super) fn decode(jobs: &mut [DecodeJob<'_>], share: Share, threads: usize) -> Vec<bool> {
    let mut done = vec![false; jobs.len()];
    if !cuda::possible() {
        return done;
    }
    let plans: Vec<Option<DecodePlan>> = jobs.iter().map(plan).collect();
    let member = |(i, plan): (usize, &DecodePlan)| (i, plan.needs, plan.bytes(jobs[i].out.len()));
    let planned = plans.iter().enumerate().filter_map(|(i, p)| Some(member((i, p.as_ref()?))));
    let members = groups(&planned.collect::<Vec<_>>(), |gpu| share.least.or_measured(gpu.decode_from));
    if members.is_empty() {
        return done;
    }
    let Some(device) = share.device() else { return done };
    let mut slots: Vec<Option<&mut DecodeJob<'_>>> = jobs.iter_mut().map(Some).collect();
    let work: Vec<Vec<(&DecodePlan, &mut DecodeJob<'_>)>> = members
        .iter()
        .map(|g| {
            let member = |&i: &usize| (plans[i].as_ref().expect("planned"), slots[i].take().expect("in one group"));
            g.iter().map(member).collect()
        })
        .collect();
    let inner = threads.div_ceil(work.len().clamp(1, AT_ONCE));
    let finished = parallel::map_mut(work, threads.min(AT_ONCE), |_, mut group| {
        cuda::attempt("decoding", || {
            let _current = device.enter()?;
            let Some(mut stream) = device.stream()? else { return Ok(Vec::new()) };
            decode_group(device, &mut stream, &mut group, inner)
        })
    });
    for (group, right) in members.iter().zip(finished) {
        for (&i, right) in group.iter().zip(right.unwrap_or_default()) {
            done[i] = right;
        }
    }
    done
}

/// Decodes one group; true for each frame that was right.
fn decode_group(
    device: &Device,
    stream: &mut Stream,
    jobs: &mut [(&DecodePlan, &mut DecodeJob<'_>)],
    threads: usize,
) -> Result<Vec<bool>, Failure> {
    let frames: Vec<(&DecodePlan, &[u8], usize)> = jobs.iter().map(|(p, j)| (*p, j.frame, j.out.len())).collect();
    let needs = frames[0].0.needs;
    let group = DecodeGroup::load(stream, &frames, threads, |tiles, frames| {
        needs.kernels(device, needs.gpu.decode, tiles, frames)
    })?;
    group.start(stream)?;
    let right = group.verdicts(stream)?;
    let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
    let wanted = wanted.map(|(k, (_, job))| (group.outputs[k], &mut *job.out)).collect();
    stream.download(Buffer::Output, wanted, threads)?;
    Ok(right)
}

/// A frame of a group, which is on the device.
pub(crate) struct Placed<'a> {
    pub(crate) plan: &'a DecodePlan,
    /// Device address of the frame, 16-byte aligned, with 16 bytes behind it that can be read.
    pub(crate) frame: u64,
    /// Device address of its values, 16-byte aligned.
    pub(crate) output: u64,
}

/// Frames that are decoded by the same launches, on the device.
pub(crate) struct DecodeGroup {
    steps: Vec<Step>,
    args: DecodeArgs,
    /// Offsets of the values in the stream's output.
    pub(crate) outputs: Vec<usize>,
    /// What must be zero before a launch.
    cleared: (usize, usize),
    verdicts_at: usize,
}

impl DecodeGroup {
    /// Frames with their plans and the lengths of their values; `steps` gives the launches for a number of
    /// tiles and of frames.
    pub(crate) fn load(
        stream: &mut Stream,
        frames: &[(&DecodePlan, &[u8], usize)],
        threads: usize,
        steps: impl FnOnce(u32, u32) -> Result<Vec<Step>, Failure>,
    ) -> Result<DecodeGroup, Failure> {
        let inputs = offsets(frames.iter().map(|f| f.1.len() + BEHIND));
        let outputs = offsets(frames.iter().map(|f| f.2));
        let input = stream.reserve(Buffer::Input, *inputs.last().expect("an end"))?;
        let output = stream.reserve(Buffer::Output, *outputs.last().expect("an end"))?;
        let placed = frames.iter().enumerate().map(|(k, (plan, _, _))| {
            let (frame, output) = (input + inputs[k] as u64, output + outputs[k] as u64);
            Placed { plan, frame, output }
        });
        let mut group = DecodeGroup::new(stream, &placed.collect::<Vec<_>>(), 0, steps)?;
        group.outputs = outputs;
        let sources: Vec<(usize, &[u8])> = frames.iter().enumerate().map(|(k, f)| (inputs[k], f.1)).collect();
        stream.upload(Buffer::Input, &sources, threads)?;
        Ok(group)
    }

    /// Frames that are on the device, or will be when the launches come to them; they need the same. What the kernels
    /// share is in the stream's [`Buffer::Work`] from `work_at` on, [`DecodeGroup::work_len`] bytes.
    pub(crate) fn new(
        stream: &mut Stream,
        placed: &[Placed<'_>],
        work_at: usize,
        steps: impl FnOnce(u32, u32) -> Result<Vec<Step>, Failure>,
    ) -> Result<DecodeGroup, Failure> {
        let mut list: Vec<DecodeChunk> = Vec::with_capacity(placed.len());
        let mut tiles = 0u32;
        let needs = placed[0].plan.needs;
        let scratches = offsets(placed.iter().map(|p| needs.widened_len(p.plan.chunk.values)));
        let is_widened = needs.numbers == Numbers::Widened;
        let scratch = if is_widened { stream.reserve(Buffer::Tiles, scratches[placed.len()])? } else { 0 };
        for (p, &at) in placed.iter().zip(&scratches) {
            let (frame, chunk) = (p.frame, p.plan.chunk);
            let (output, integers) = if is_widened { (scratch + at as u64, p.output) } else { (p.output, 0) };
            list.push(DecodeChunk { frame, output, integers, first_tile: tiles, ..chunk });
            tiles = tiles.checked_add(p.plan.chunk.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        }
        let parts = Self::parts(needs, list.len(), tiles as usize);
        let work = stream.reserve(Buffer::Work, work_at + parts[5])? + work_at as u64;
        stream.put(Buffer::Work, work_at + parts[3], DecodeChunk::bytes(&list))?;
        let args = DecodeArgs {
            chunks: work + parts[3] as u64,
            states: work + parts[0] as u64,
            verdicts: work + parts[1] as u64,
            tables: work + parts[4] as u64,
            list: work + parts[2] as u64,
            chunk_count: list.len() as u32,
            tiles,
        };
        let (steps, cleared) = (steps(tiles, args.chunk_count)?, (work_at + parts[0], work_at + parts[2] + 8));
        Ok(DecodeGroup { steps, args, outputs: Vec::new(), cleared, verdicts_at: work_at + parts[1] })
    }

    /// Where the parts of what the kernels share begin, and their end: states, verdicts, the list of tiles (cleared
    /// together, of the list two counters), descriptions, tables.
    fn parts(needs: Needs, frames: usize, tiles: usize) -> [usize; 6] {
        let (states, described) = (frames * size_of::<ChunkState>(), frames * size_of::<DecodeChunk>());
        let parts = offsets([states, 8 * frames, 8 + 4 * tiles, described, needs.gpu.tables * frames]);
        parts.try_into().expect("five parts and an end")
    }

    /// Bytes of [`Buffer::Work`] that a group takes.
    pub(crate) fn work_len(needs: Needs, frames: usize, tiles: usize) -> usize {
        Self::parts(needs, frames, tiles)[5]
    }

    /// Offset of the verdicts in [`Buffer::Work`].
    pub(crate) fn verdicts_at(&self) -> usize {
        self.verdicts_at
    }

    /// Starts the kernels; may be repeated.
    pub(crate) fn start(&self, stream: &mut Stream) -> Result<(), Failure> {
        self.start_from(0, stream)
    }

    /// As [`DecodeGroup::start`], without the first launches, whose results are there.
    #[allow(unsafe_code)]
    pub(crate) fn start_from(&self, first: usize, stream: &mut Stream) -> Result<(), Failure> {
        stream.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)?;
        // SAFETY: kernels of decoding. `load` reserved on this stream all that their arguments lead to: each frame and
        // 16 bytes more, the values, the tables. Offsets in a frame are checked by the plan or by the kernels.
        unsafe { stream.launch_all(self.steps[first..].iter().map(|step| (step.kernel, step.ctas)), &self.args) }
    }

    /// For each frame whether it was right.
    pub(crate) fn verdicts(&self, stream: &mut Stream) -> Result<Vec<bool>, Failure> {
        Ok(numbers(stream, self.verdicts_at, self.args.chunk_count)?.into_iter().map(|verdict| verdict == 1).collect())
    }
}
