// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of chunks → frames.

use super::group::{AT_ONCE, MOST, MinBytes, Needs, Step, groups, numbers, offsets};
use crate::codec::plan::Encoding;
use crate::codec::{self, stored};
use crate::constants::HEADER_FIXED;
use crate::cuda::abi::{ChunkState, EncodeArgs, EncodeChunk};
use crate::cuda::{self, Buffer, Described, Device, Failure, Stream};
use crate::engine::job::EncodeJob;
use crate::frame::STORED_HEADER;
use crate::parallel;

/// What the GPU does with a chunk.
pub(crate) struct Plan {
    pub(crate) needs: Needs,
    pub(crate) encoding: Encoding,
}

/// What the GPU would do with a chunk. `None`: the CPU's.
pub(crate) fn plan(job: &EncodeJob<'_>) -> Option<Plan> {
    let (params, raw) = (job.params, job.raw);
    if raw.len() > MOST || raw.is_empty() {
        return None;
    }
    let gpu = codec::of(codec::choose(params, raw.len()))?.gpu?;
    let encoding = (gpu.encoding)(params, raw.len())?;
    let needs =
        Needs { gpu, wide: params.dtype.size == 8, range: encoding.range(), lossless: !params.lossy(raw.len()) };
    Some(Plan { needs, encoding })
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
pub(super) fn encode(jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>], least: MinBytes, threads: usize) -> Vec<bool> {
    let mut done = vec![false; jobs.len()];
    if !cuda::possible() {
        return done;
    }
    let plans = parallel::map(jobs.len(), threads, |i| {
        let job = &jobs[i];
        let size = job.params.dtype.size.into();
        // Kernels take numbers of 4 and 8 bytes.
        let for_device = matches!(size, 4 | 8) && !constant(job.raw, size);
        if for_device { plan(job) } else { None }
    });
    let planned = plans.iter().enumerate().filter_map(|(i, p)| Some((i, p.as_ref()?.needs, jobs[i].raw.len())));
    let members = groups(&planned.collect::<Vec<_>>(), |gpu| least.of(gpu.encode_from));
    if members.is_empty() {
        return done;
    }
    let Some(device) = cuda::device() else { return done };
    let mut frames: Vec<Option<&mut Vec<u8>>> = out.iter_mut().map(Some).collect();
    let mut frame = |&i: &usize| frames[i].take().expect("a job is in one group");
    let work: Vec<Vec<&mut Vec<u8>>> = members.iter().map(|g| g.iter().map(&mut frame).collect()).collect();
    let inner = threads.div_ceil(work.len().clamp(1, AT_ONCE));
    let finished = parallel::map_mut(work, threads.min(AT_ONCE), |k, mut frames| {
        let chunk = |&i: &usize| (plans[i].as_ref().expect("planned"), jobs[i].raw);
        let chunks: Vec<(&Plan, &[u8])> = members[k].iter().map(chunk).collect();
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
    chunks: &[(&Plan, &[u8])],
    frames: &mut [&mut Vec<u8>],
    threads: usize,
) -> Result<Vec<bool>, Failure> {
    let group = EncodeGroup::load(device, stream, chunks, threads)?;
    group.start(stream)?;
    let lengths = group.lengths(stream)?;
    let mut wanted: Vec<(usize, usize, &mut Vec<u8>)> = Vec::with_capacity(chunks.len());
    for (k, frame) in frames.iter_mut().enumerate() {
        let (plan, raw) = chunks[k];
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
            stored::encode(raw, threads, frame).map_err(|_| Failure::other("no memory for a frame"))?;
        }
    }
    stream.download_vecs(Buffer::Output, wanted, threads)?;
    Ok(lengths.iter().map(|&len| len != 0).collect())
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
        chunks: &[(&Plan, &[u8])],
        threads: usize,
    ) -> Result<EncodeGroup, Failure> {
        let needs = chunks[0].0.needs;
        let inputs = offsets(chunks.iter().map(|c| c.1.len()));
        let frames = offsets(chunks.iter().map(|c| c.0.encoding.capacity));
        let input = stream.reserve(Buffer::Input, *inputs.last().expect("an end"))?;
        let output = stream.reserve(Buffer::Output, *frames.last().expect("an end"))?;
        let scratch = chunks.iter().map(|c| c.0.encoding.chunk).map(|c| c.tiles as usize * c.work_stride as usize);
        let works = offsets(scratch.clone());
        let work_at = if scratch.sum::<usize>() > 0 {
            stream.reserve(Buffer::Tiles, *works.last().expect("an end"))?
        } else {
            0
        };
        let mut list: Vec<EncodeChunk> = Vec::with_capacity(chunks.len());
        let mut tiles = 0u32;
        for (k, (plan, _)) in chunks.iter().enumerate() {
            let (at, to) = (input + inputs[k] as u64, output + frames[k] as u64);
            let work = work_at + works[k] as u64;
            let chunk = plan.encoding.chunk;
            list.push(EncodeChunk { input: at, frame: to, work, first_tile: tiles, ..chunk });
            tiles = tiles.checked_add(chunk.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        }
        let described = EncodeChunk::bytes(&list);
        // Work: ticket, states, the look-back's words, what launches share (cleared together), lengths, descriptions.
        let shared = list.len() * needs.gpu.shared;
        let states = list.len() * size_of::<ChunkState>();
        let parts = offsets([8, states, 8 * tiles as usize, shared, 8 * list.len(), described.len()]);
        let parts: [usize; 7] = parts.try_into().expect("six parts and an end");
        let work = stream.reserve(Buffer::Work, parts[6])?;
        stream.put(Buffer::Work, parts[5], described)?;
        let sources: Vec<(usize, &[u8])> = chunks.iter().enumerate().map(|(k, c)| (inputs[k], c.1)).collect();
        stream.upload(Buffer::Input, &sources, threads)?;
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
        Ok(EncodeGroup { steps, args, frames, cleared: (parts[0], parts[4]), lengths_at: parts[4] })
    }

    /// Starts the kernels; may be repeated.
    pub(crate) fn start(&self, stream: &mut Stream) -> Result<(), Failure> {
        self.clear(stream)?;
        self.steps.iter().try_for_each(|step| self.launch(stream, *step))
    }

    pub(crate) fn clear(&self, stream: &mut Stream) -> Result<(), Failure> {
        stream.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)
    }

    #[allow(unsafe_code)]
    pub(crate) fn launch(&self, stream: &mut Stream, step: Step) -> Result<(), Failure> {
        // SAFETY: a kernel of encoding. `load` reserved on this stream all that its arguments lead to: each chunk's bytes,
        // a frame of the codec's own capacity, and scratch for every tile.
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
