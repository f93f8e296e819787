// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of frames → chunks.

use super::{Decoding, GROUPS_AT_ONCE, MOST, groups, numbers, offsets};
use crate::codec::{Frame, LORENZO, NDZIP, SZX, lorenzo, ndzip, szx};
use crate::engine::{DecodeJob, Limits};
use crate::gpu::abi::{ChunkState, DecodeArgs, DecodeChunk};
use crate::gpu::{self, Buffer, Described, Device, Failure, Kernel, Lane};
use crate::parallel;

/// The kernel of a thread a tile.
const COARSE: &str = "decode_coarse";
/// Bytes of the tables made of a codebook of `lorenzo`.
const BOOK: usize = 20496;

/// What the GPU would do with a frame. `None`: the CPU's, and any fault is its to name.
pub(super) fn decoding(job: &DecodeJob<'_>) -> Option<Decoding> {
    let f = Frame::open_unsummed(job.frame).ok()?;
    if f.header.raw_len != job.out.len() as u64 || job.out.len() > MOST || job.out.is_empty() || job.frame.len() > MOST
    {
        return None;
    }
    match f.header.codec {
        SZX => szx::gpu::decoding(&f),
        LORENZO => lorenzo::gpu::decoding(&f),
        NDZIP => ndzip::gpu::decoding(&f),
        _ => None,
    }
}

/// Decodes on the GPU what it can of codecs that reach their limit; true for each job that is done.
pub(crate) fn decode(jobs: &mut [DecodeJob<'_>], limits: Limits, threads: usize) -> Vec<bool> {
    let mut done = vec![false; jobs.len()];
    if !gpu::possible() {
        return done;
    }
    let plans: Vec<Option<Decoding>> = jobs.iter().map(decoding).collect();
    let planned = plans.iter().enumerate().filter_map(|(i, p)| Some((i, p.as_ref()?.kernels, jobs[i].out.len())));
    let members = groups(&planned.collect::<Vec<_>>(), limits);
    if members.is_empty() {
        return done;
    }
    let Some(device) = gpu::device() else { return done };
    let mut slots: Vec<Option<&mut DecodeJob<'_>>> = jobs.iter_mut().map(Some).collect();
    let work: Vec<Vec<(&Decoding, &mut DecodeJob<'_>)>> = members
        .iter()
        .map(|g| {
            let member = |&i: &usize| (plans[i].as_ref().expect("planned"), slots[i].take().expect("in one group"));
            g.iter().map(member).collect()
        })
        .collect();
    let inner = threads.div_ceil(work.len().clamp(1, GROUPS_AT_ONCE));
    let finished = parallel::map_mut(work, threads.min(GROUPS_AT_ONCE), |_, mut group| {
        gpu::attempt("decoding", || {
            let _current = device.enter()?;
            let Some(mut lane) = device.lane()? else { return Ok(Vec::new()) };
            decode_group(device, &mut lane, &mut group, inner)
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
    lane: &mut Lane,
    jobs: &mut [(&Decoding, &mut DecodeJob<'_>)],
    threads: usize,
) -> Result<Vec<bool>, Failure> {
    let frames: Vec<(&Decoding, &[u8], usize)> = jobs.iter().map(|(d, j)| (*d, j.frame, j.out.len())).collect();
    let group = DecodeGroup::load(device, lane, &frames, threads, "decode")?;
    group.start(lane)?;
    let right: Vec<bool> = group.verdicts(lane)?.into_iter().map(|v| v == 1).collect();
    let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
    let wanted = wanted.map(|(k, (_, job))| (group.outputs[k], gpu::as_uninit(job.out))).collect();
    lane.download(Buffer::Output, wanted, threads)?;
    Ok(right)
}

/// One launch of decoding, its input on the device.
pub(super) struct DecodeGroup {
    /// Makes tables of the frames' codebooks.
    book: Option<Kernel>,
    decode: Kernel,
    args: DecodeArgs,
    /// CTAs of the decoding kernel.
    ctas: u32,
    pub(super) outputs: Vec<usize>,
    cleared: (usize, usize),
    verdicts_at: usize,
}

impl DecodeGroup {
    pub(super) fn load(
        device: &Device,
        lane: &mut Lane,
        frames: &[(&Decoding, &[u8], usize)],
        threads: usize,
        step: &str,
    ) -> Result<DecodeGroup, Failure> {
        let kernels = frames[0].0.kernels;
        let decode = kernels.find(device, step)?;
        let book = if kernels.codec == LORENZO { Some(kernels.find(device, "decode_book")?) } else { None };
        // Kernels may read up to 16 bytes past a frame.
        let inputs = offsets(frames.iter().map(|f| f.1.len() + 16));
        let outputs = offsets(frames.iter().map(|f| f.2));
        let input = lane.room(Buffer::Input, *inputs.last().expect("an end"))?;
        let output = lane.room(Buffer::Output, *outputs.last().expect("an end"))?;
        let mut list: Vec<DecodeChunk> = Vec::with_capacity(frames.len());
        let mut tiles = 0u32;
        for (k, (plan, _, _)) in frames.iter().enumerate() {
            let (at, to) = (input + inputs[k] as u64, output + outputs[k] as u64);
            list.push(DecodeChunk { frame: at, output: to, first_tile: tiles, ..plan.chunk });
            tiles = tiles.checked_add(plan.chunk.tiles).ok_or_else(|| Failure::other("too many tiles"))?;
        }
        let described = DecodeChunk::bytes(&list);
        let books = if book.is_some() { BOOK * list.len() } else { 0 };
        let parts = offsets([list.len() * size_of::<ChunkState>(), 8 * list.len(), described.len(), books]);
        let parts: [usize; 5] = parts.try_into().expect("four parts and an end");
        let work = lane.room(Buffer::Work, parts[4])?;
        lane.put(Buffer::Work, parts[2], described)?;
        let sources: Vec<(usize, &[u8])> = frames.iter().enumerate().map(|(k, f)| (inputs[k], f.1)).collect();
        lane.upload(Buffer::Input, &sources, threads)?;
        let args = DecodeArgs {
            chunks: work + parts[2] as u64,
            states: work + parts[0] as u64,
            verdicts: work + parts[1] as u64,
            books: work + parts[3] as u64,
            chunk_count: list.len() as u32,
            tiles,
        };
        let ctas = if step == COARSE { tiles.div_ceil(decode.threads()) } else { tiles };
        Ok(DecodeGroup { book, decode, args, ctas, outputs, cleared: (parts[0], parts[2]), verdicts_at: parts[1] })
    }

    /// Starts the kernel; may be repeated.
    pub(super) fn start(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)?;
        if let Some(book) = self.book {
            lane.launch(book, self.args.chunk_count, &self.args)?;
        }
        lane.launch(self.decode, self.ctas, &self.args)
    }

    /// As [`DecodeGroup::start`], the tables being there.
    pub(super) fn again(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)?;
        lane.launch(self.decode, self.ctas, &self.args)
    }

    pub(super) fn verdicts(&self, lane: &mut Lane) -> Result<Vec<u64>, Failure> {
        numbers(lane, self.verdicts_at, self.args.chunk_count)
    }
}
