// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of chunks → frames.

use super::{Encoding, GROUPS_AT_ONCE, MOST, groups, numbers, offsets};
use crate::codec::{self, Choice, LORENZO, NDZIP, SZX, lorenzo, ndzip, stored, szx};
use crate::constants::HEADER_FIXED;
use crate::engine::{EncodeJob, Limits};
use crate::gpu::abi::{ChunkState, EncodeArgs, EncodeChunk, LORENZO_BOOK};
use crate::gpu::{self, Buffer, Described, Device, Failure, Kernel, Lane, Wanted};
use crate::parallel;

/// CTAs for a kernel whose CTAs take one tile after the other: more than a device runs at once, few that find none left.
const CTAS: u32 = 2048;

/// What the GPU would do with a chunk. `None`: the CPU's. Leaves the room in `choice` once it is chosen.
pub(super) fn encoding(job: &EncodeJob<'_>, choice: &mut Option<Choice>, threads: usize) -> Option<Encoding> {
    let (params, len) = (job.params, job.raw.len());
    if len > MOST || len == 0 {
        return None;
    }
    // The bound used stays behind: kernels find ranges as they read.
    match choice.insert(codec::choose(params, job.raw, threads).ok()?).codec {
        SZX => szx::gpu::encoding(params, len),
        LORENZO => lorenzo::gpu::encoding(params, len),
        NDZIP => ndzip::gpu::encoding(params, len),
        _ => None,
    }
}

/// Whether all of a chunk's numbers have the same bits: nothing for a device to do, and little for the CPU.
fn constant(raw: &[u8], size: usize) -> bool {
    /// Numbers that are looked at first, all over the chunk: hardly any chunk gets past them that is not constant.
    const LOOKS: usize = 64;
    let Some(rest) = raw.len().checked_sub(size) else { return true };
    let step = (rest / size / LOOKS).max(1) * size;
    (0..=rest).step_by(step).all(|at| raw[at..at + size] == raw[..size]) && raw[size..] == raw[..rest]
}

/// Encodes on the GPU what it can of codecs that reach their limit; true for each job that is done. Rooms that had to be
/// chosen are in `choices`, for the CPU.
pub(crate) fn encode(
    jobs: &[EncodeJob<'_>],
    out: &mut [Vec<u8>],
    choices: &mut [Option<Choice>],
    limits: Limits,
    threads: usize,
) -> Vec<bool> {
    let mut done = vec![false; jobs.len()];
    if !gpu::possible() {
        return done;
    }
    let inner = threads.div_ceil(jobs.len().max(1));
    let plans = parallel::map_mut(jobs.iter().zip(choices).collect(), threads, |_, (job, choice)| {
        let size = job.params.dtype.size.into();
        // Rooms on a device take numbers of 4 and 8 bytes.
        let for_device = matches!(size, 4 | 8) && !constant(job.raw, size);
        if for_device { encoding(job, choice, inner) } else { None }
    });
    let planned = plans.iter().enumerate().filter_map(|(i, p)| Some((i, p.as_ref()?.kernels, jobs[i].raw.len())));
    let members = groups(&planned.collect::<Vec<_>>(), limits);
    if members.is_empty() {
        return done;
    }
    let Some(device) = gpu::device() else { return done };
    let mut frames: Vec<Option<&mut Vec<u8>>> = out.iter_mut().map(Some).collect();
    let mut frame = |&i: &usize| frames[i].take().expect("a job is in one group");
    let work: Vec<Vec<&mut Vec<u8>>> = members.iter().map(|g| g.iter().map(&mut frame).collect()).collect();
    let inner = threads.div_ceil(work.len().clamp(1, GROUPS_AT_ONCE));
    let finished = parallel::map_mut(work, threads.min(GROUPS_AT_ONCE), |k, mut frames| {
        let chunk = |&i: &usize| (plans[i].as_ref().expect("planned"), jobs[i].raw);
        let chunks: Vec<(&Encoding, &[u8])> = members[k].iter().map(chunk).collect();
        gpu::attempt("encoding", || {
            let _current = device.enter()?;
            let Some(mut lane) = device.lane()? else { return Ok(false) };
            encode_group(device, &mut lane, &chunks, &mut frames, inner).map(|()| true)
        })
    });
    for (group, finished) in members.iter().zip(finished) {
        group.iter().for_each(|&i| done[i] = finished == Some(true));
    }
    done
}

/// Encodes one group into its frames.
fn encode_group(
    device: &Device,
    lane: &mut Lane,
    chunks: &[(&Encoding, &[u8])],
    frames: &mut [&mut Vec<u8>],
    threads: usize,
) -> Result<(), Failure> {
    let group = EncodeGroup::load(device, lane, chunks, threads)?;
    group.start(lane)?;
    let lengths = group.lengths(lane)?;
    let no_memory = || Failure::other("no memory for a frame");
    let mut wanted: Vec<Wanted<'_>> = Vec::with_capacity(chunks.len());
    for (k, frame) in frames.iter_mut().enumerate() {
        let (plan, raw) = chunks[k];
        let len = usize::try_from(lengths[k]).unwrap_or(usize::MAX);
        if len < HEADER_FIXED || len > plan.capacity {
            return Err(Failure::other("a kernel wrote no frame"));
        }
        frame.clear();
        if len < raw.len() + stored::HEADER_LEN {
            frame.try_reserve(len).map_err(|_| no_memory())?;
            wanted.push((group.frames[k], &mut frame.spare_capacity_mut()[..len]));
        }
    }
    lane.download(Buffer::Output, wanted, threads)?;
    for (k, frame) in frames.iter_mut().enumerate() {
        let (_, raw) = chunks[k];
        let len = lengths[k] as usize;
        if len < raw.len() + stored::HEADER_LEN {
            gpu::filled(frame, len);
        } else {
            stored::encode(raw, threads, frame).map_err(|_| no_memory())?;
        }
    }
    Ok(())
}

/// One launch of encoding, its input on the device.
pub(super) struct EncodeGroup {
    /// Launches in their order: the kernel and its CTAs.
    pub(super) steps: Vec<(&'static str, Kernel, u32)>,
    pub(super) args: EncodeArgs,
    /// Offsets of the frames in the lane's output.
    pub(super) frames: Vec<usize>,
    /// What must be zero before a launch.
    cleared: (usize, usize),
    lengths_at: usize,
}

impl EncodeGroup {
    pub(super) fn load(
        device: &Device,
        lane: &mut Lane,
        chunks: &[(&Encoding, &[u8])],
        threads: usize,
    ) -> Result<EncodeGroup, Failure> {
        let kernels = chunks[0].0.kernels;
        let inputs = offsets(chunks.iter().map(|c| c.1.len()));
        let frames = offsets(chunks.iter().map(|c| c.0.capacity));
        let input = lane.room(Buffer::Input, *inputs.last().expect("an end"))?;
        let output = lane.room(Buffer::Output, *frames.last().expect("an end"))?;
        let working = offsets(chunks.iter().map(|c| c.0.chunk.tiles as usize * c.0.chunk.work_stride as usize));
        let working_at = match kernels.codec {
            LORENZO => lane.room(Buffer::Tiles, *working.last().expect("an end"))?,
            _ => 0,
        };
        let mut list: Vec<EncodeChunk> = Vec::with_capacity(chunks.len());
        let mut tiles = 0u32;
        for (k, (plan, _)) in chunks.iter().enumerate() {
            let (at, to) = (input + inputs[k] as u64, output + frames[k] as u64);
            let work = working_at + working[k] as u64;
            list.push(EncodeChunk { input: at, frame: to, work, first_tile: tiles, ..plan.chunk });
            tiles = tiles.checked_add(plan.chunk.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        }
        let described = EncodeChunk::bytes(&list);
        // Work: ticket, states, places, what launches share (cleared together), lengths, descriptions.
        let shared = if kernels.codec == LORENZO { list.len() * LORENZO_BOOK as usize } else { 0 };
        let states = list.len() * size_of::<ChunkState>();
        let parts = offsets([8, states, 8 * tiles as usize, shared, 8 * list.len(), described.len()]);
        let parts: [usize; 7] = parts.try_into().expect("six parts and an end");
        let work = lane.room(Buffer::Work, parts[6])?;
        lane.put(Buffer::Work, parts[5], described)?;
        let sources: Vec<(usize, &[u8])> = chunks.iter().enumerate().map(|(k, c)| (inputs[k], c.1)).collect();
        lane.upload(Buffer::Input, &sources, threads)?;
        let args = EncodeArgs {
            chunks: work + parts[5] as u64,
            states: work + parts[1] as u64,
            places: work + parts[2] as u64,
            ticket: work + parts[0] as u64,
            shared: work + parts[3] as u64,
            lengths: work + parts[4] as u64,
            chunk_count: list.len() as u32,
            tiles,
        };
        let steps: &[(&str, u32)] = match kernels.codec {
            LORENZO => &[
                ("encode_range", tiles),
                ("encode_plan", tiles),
                ("encode_interpolate", tiles),
                ("encode_codebook", args.chunk_count),
                ("encode_write", tiles.min(CTAS)),
            ],
            SZX if !kernels.wide => &[("range", tiles), ("encode", tiles.min(CTAS))],
            _ => &[("range", tiles), ("encode", tiles)],
        };
        let steps = steps.iter().filter(|(name, _)| kernels.range || !name.ends_with("range"));
        let steps = steps.map(|&(name, ctas)| Ok((name, kernels.find(device, name)?, ctas)));
        Ok(EncodeGroup {
            steps: steps.collect::<Result<_, Failure>>()?,
            args,
            frames,
            cleared: (parts[0], parts[4]),
            lengths_at: parts[4],
        })
    }

    /// Starts the kernels; may be repeated.
    pub(super) fn start(&self, lane: &mut Lane) -> Result<(), Failure> {
        self.clear(lane)?;
        self.steps.iter().try_for_each(|&(_, kernel, ctas)| lane.launch(kernel, ctas, &self.args))
    }

    pub(super) fn clear(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)
    }

    pub(super) fn lengths(&self, lane: &mut Lane) -> Result<Vec<u64>, Failure> {
        numbers(lane, self.lengths_at, self.args.chunk_count)
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
