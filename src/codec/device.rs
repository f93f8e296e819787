// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches on the GPU: what the rooms have in common there.
//!
//! Chunks of one room and element size become one launch, however many and of whatever sizes. The kernels leave
//! complete frames on the device; lengths come back first, then the frames. A frame that a kernel does not find right
//! goes to the CPU, which names what is wrong with it.

use super::{Choice, Frame, LORENZO, NDZIP, SZX, lorenzo, ndzip, stored, szx};
use crate::constants::HEADER_FIXED;
use crate::engine::{DecodeJob, EncodeJob, Limits};
use crate::gpu::abi::{ChunkState, DecodeArgs, DecodeChunk, EncodeArgs, EncodeChunk, FLAG_SWAP, LORENZO_BOOK};
pub(crate) use crate::gpu::copy;
use crate::gpu::{self, ALIGN, Buffer, Described, Device, Failure, Kernel, Lane, Wanted};
use crate::params::{Bound, Dtype, Params};
use crate::{frame, parallel};

/// Every kernel; each exists for 4- and 8-byte numbers.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) const KERNELS: &[&str] = &[
    "szx_range",
    "szx_encode",
    "szx_decode",
    "ndzip_encode",
    "ndzip_decode",
    "lorenzo_encode_range",
    "lorenzo_encode_plan",
    "lorenzo_encode_interpolate",
    "lorenzo_encode_codebook",
    "lorenzo_encode_write",
    "lorenzo_decode_book",
    "lorenzo_decode",
    "lorenzo_decode_coarse",
    "lorenzo_decode_sync",
    "lorenzo_decode_gap",
];

/// Raw bytes of one launch: enough to fill a device, so little that groups overlap.
const GROUP: usize = 64 << 20;
/// Groups on their way at the same time: one uploads, one computes, one downloads.
const GROUPS_AT_ONCE: usize = 3;
/// CTAs for a kernel whose CTAs take one tile after the other: more than a device runs at once, few that find none left.
const CTAS: u32 = 2048;
/// Chunks above this many raw bytes are the CPU's: tiles are counted in 32 bits and memory is the host's too.
const MOST: usize = 2 << 30;
/// The kernel of a thread a tile.
const COARSE: &str = "decode_coarse";
/// Bytes of the tables made of a codebook of `lorenzo`.
const BOOK: usize = 12304;

/// What rooms leave out of a frame's description.
pub(crate) const NO_FRAME: DecodeChunk = DecodeChunk {
    frame: 0,
    output: 0,
    values: 0,
    frame_len: 0,
    payload_at: 0,
    payload_len: 0,
    bound: 0.0,
    checksum: 0,
    step: 0.0,
    fine: 0.0,
    distance: 0,
    first_tile: 0,
    tiles: 0,
    table_at: 0,
    flags: 0,
    extents: [1; 3],
    rank: 1,
    mode: 0,
    table_words: 0,
    table_len: 0,
    kinds_at: 0,
    ends_at: 0,
    tile: [1; 3],
};

/// A chunk as a room wants it encoded; device addresses are still missing.
pub(crate) struct Encoding {
    pub(crate) kernels: Kernels,
    pub(crate) chunk: EncodeChunk,
    /// Bytes of the largest possible frame.
    pub(crate) capacity: usize,
}

/// A frame as a room wants it decoded; device addresses are still missing.
pub(crate) struct Decoding {
    pub(crate) kernels: Kernels,
    pub(crate) chunk: DecodeChunk,
}

/// Which kernels a chunk needs. Chunks of a launch have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernels {
    pub(crate) codec: u8,
    pub(crate) wide: bool,
    /// The chunk's value range is needed first.
    pub(crate) range: bool,
}

impl Kernels {
    fn find(self, device: &Device, step: &str) -> Result<Kernel, Failure> {
        let stem = match self.codec {
            SZX => "szx",
            LORENZO => "lorenzo",
            _ => "ndzip",
        };
        let scalar = if self.wide { "f64" } else { "f32" };
        device.kernel(&format!("{stem}_{step}_{scalar}"))
    }
}

/// What the GPU would do with a chunk. `None`: the CPU's. Leaves the room in `choice` once it is chosen.
fn encoding(job: &EncodeJob<'_>, choice: &mut Option<Choice>, threads: usize) -> Option<Encoding> {
    let (params, len) = (job.params, job.raw.len());
    if len > MOST || len == 0 {
        return None;
    }
    // The bound used stays behind: kernels find ranges as they read.
    match choice.insert(super::choose(params, job.raw, threads)).codec {
        SZX => szx::gpu::encoding(params, len),
        LORENZO => lorenzo::gpu::encoding(params, len),
        NDZIP => ndzip::gpu::encoding(params, len),
        _ => None,
    }
}

/// What the GPU would do with a frame. `None`: the CPU's, and any fault is its to name.
fn decoding(job: &DecodeJob<'_>) -> Option<Decoding> {
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

/// Whether all of a chunk's numbers have the same bits: nothing for a device to do, and little for the CPU.
fn constant(raw: &[u8], size: usize) -> bool {
    /// Numbers that are looked at first, all over the chunk: hardly any chunk gets past them that is not constant.
    const LOOKS: usize = 64;
    let Some(rest) = raw.len().checked_sub(size) else { return true };
    let step = (rest / size / LOOKS).max(1) * size;
    (0..=rest).step_by(step).all(|at| raw[at..at + size] == raw[..size]) && raw[size..] == raw[..rest]
}

/// Cuts a batch into groups for one launch each: same kernels, and about [`GROUP`] raw bytes. The batch is indices,
/// kernels and raw bytes; a codec below its limit is left out.
fn groups(batch: &[(usize, Kernels, usize)], limits: Limits) -> Vec<Vec<usize>> {
    let bytes_of = |codec| batch.iter().filter(|b| b.1.codec == codec).map(|b| b.2).sum::<usize>();
    let enough = [SZX, LORENZO, NDZIP].map(|codec| (codec, bytes_of(codec) >= limits.of(codec)));
    let mut open: Vec<(Kernels, usize, Vec<usize>)> = Vec::new();
    let mut full = Vec::new();
    for &(index, kernels, bytes) in batch.iter().filter(|b| enough.contains(&(b.1.codec, true))) {
        let at = open.iter().position(|g| g.0 == kernels).unwrap_or_else(|| {
            open.push((kernels, 0, Vec::new()));
            open.len() - 1
        });
        let (_, size, members) = &mut open[at];
        if *size > 0 && *size + bytes > GROUP {
            full.push(std::mem::take(members));
            *size = 0;
        }
        *size += bytes;
        members.push(index);
    }
    full.extend(open.into_iter().map(|g| g.2));
    full
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
        let nothing_to_do = constant(job.raw, job.params.dtype.size.into());
        if nothing_to_do { None } else { encoding(job, choice, inner) }
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
    let mut wanted: Vec<Wanted<'_>> = Vec::with_capacity(chunks.len());
    for (k, frame) in frames.iter_mut().enumerate() {
        let (plan, raw) = chunks[k];
        let len = usize::try_from(lengths[k]).unwrap_or(usize::MAX);
        if len < HEADER_FIXED || len > plan.capacity {
            return Err(Failure::other("a kernel wrote no frame"));
        }
        frame.clear();
        if len < raw.len() + stored::HEADER_LEN {
            frame.reserve(len);
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
            stored::encode(raw, threads, frame);
        }
    }
    Ok(())
}

/// One launch of encoding, its input on the device.
pub(crate) struct EncodeGroup {
    /// Launches in their order: the kernel and its CTAs.
    steps: Vec<(&'static str, Kernel, u32)>,
    args: EncodeArgs,
    /// Offsets of the frames in the lane's output.
    frames: Vec<usize>,
    /// What must be zero before a launch.
    cleared: (usize, usize),
    lengths_at: usize,
}

impl EncodeGroup {
    fn load(
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
    fn start(&self, lane: &mut Lane) -> Result<(), Failure> {
        self.clear(lane)?;
        self.steps.iter().try_for_each(|&(_, kernel, ctas)| lane.launch(kernel, ctas, &self.args))
    }

    fn clear(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)
    }

    fn lengths(&self, lane: &mut Lane) -> Result<Vec<u64>, Failure> {
        numbers(lane, self.lengths_at, self.args.chunk_count)
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
pub(crate) struct DecodeGroup {
    /// Makes tables of the frames' codebooks.
    book: Option<Kernel>,
    decode: Kernel,
    args: DecodeArgs,
    /// CTAs of the decoding kernel.
    ctas: u32,
    outputs: Vec<usize>,
    cleared: (usize, usize),
    verdicts_at: usize,
}

impl DecodeGroup {
    fn load(
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
    fn start(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)?;
        if let Some(book) = self.book {
            lane.launch(book, self.args.chunk_count, &self.args)?;
        }
        lane.launch(self.decode, self.ctas, &self.args)
    }

    /// As [`DecodeGroup::start`], the tables being there.
    fn again(&self, lane: &mut Lane) -> Result<(), Failure> {
        lane.zero(Buffer::Work, self.cleared.0, self.cleared.1 - self.cleared.0)?;
        lane.launch(self.decode, self.ctas, &self.args)
    }

    fn verdicts(&self, lane: &mut Lane) -> Result<Vec<u64>, Failure> {
        numbers(lane, self.verdicts_at, self.args.chunk_count)
    }
}

fn numbers(lane: &mut Lane, at: usize, count: u32) -> Result<Vec<u64>, Failure> {
    let bytes = lane.get(Buffer::Work, at, 8 * count as usize)?;
    Ok(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}

/// Where parts of these lengths start, each aligned, and where the last one ends.
fn offsets(lens: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut at = 0;
    let mut all: Vec<usize> = lens
        .into_iter()
        .map(|len| {
            let start = at;
            at = (at + len.max(1)).next_multiple_of(ALIGN);
            start
        })
        .collect();
    all.push(at);
    all
}

/// The flag for numbers of the other byte order. Devices are little-endian.
pub(super) fn foreign_flag(dtype: Dtype) -> u32 {
    if dtype.big_endian { FLAG_SWAP } else { 0 }
}

/// The header as words for a kernel to fill in: `used`, the stored length and the last section's length are given
/// without what the payload adds.
pub(super) fn head_words(
    params: &Params,
    codec: u8,
    used: f64,
    sections: &[u64],
    stored: usize,
    more: &[u8],
) -> ([u32; 38], u32) {
    let lossy = matches!(codec, SZX | LORENZO);
    let header = frame::Header {
        codec,
        bound: if lossy { params.ask.bound } else { Bound::Lossless },
        used,
        dtype: params.dtype,
        extents: params.extents,
        raw_len: params.extents.count().expect("checked by fits") * u64::from(params.dtype.size),
    };
    let mut bytes = frame::head(&header, sections, stored as u64);
    bytes.extend(more);
    let mut words = [0; 38];
    for (w, b) in words.iter_mut().zip(bytes.as_chunks().0) {
        *w = u32::from_le_bytes(*b);
    }
    (words, (bytes.len() / 4) as u32)
}

/// Device-side times and results, for benchmarks.
pub(crate) mod timing {
    use super::*;
    use crate::gpu::Timer;

    /// Frames, and milliseconds of each of `runs` launches over data already on the device.
    pub(crate) fn encode(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<Vec<u8>>, Vec<f32>)> {
        let device = gpu::device()?;
        let plans: Vec<Encoding> = jobs.iter().map(|j| encoding(j, &mut None, threads)).collect::<Option<_>>()?;
        gpu::attempt("timing", || {
            let _current = device.enter()?;
            let mut lane = device.lane()?.ok_or_else(|| Failure::other("all lanes are taken"))?;
            let chunks: Vec<(&Encoding, &[u8])> = plans.iter().zip(jobs.iter().map(|j| j.raw)).collect();
            let group = EncodeGroup::load(device, &mut lane, &chunks, threads)?;
            let times = times(&mut lane, runs, |lane| group.start(lane))?;
            let lengths = group.lengths(&mut lane)?;
            let mut frames: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n as usize)).collect();
            let wanted = frames.iter_mut().enumerate();
            let wanted = wanted.map(|(k, f)| (group.frames[k], &mut f.spare_capacity_mut()[..lengths[k] as usize]));
            lane.download(Buffer::Output, wanted.collect(), threads)?;
            frames.iter_mut().zip(&lengths).for_each(|(f, &n)| gpu::filled(f, n as usize));
            Ok((frames, times))
        })
    }

    /// Milliseconds of each kernel of encoding, in each of `runs` rounds over data already on the device.
    pub(crate) fn encode_steps(
        jobs: &[EncodeJob<'_>],
        runs: usize,
        threads: usize,
    ) -> Option<Vec<(&'static str, Vec<f32>)>> {
        let device = gpu::device()?;
        let plans: Vec<Encoding> = jobs.iter().map(|j| encoding(j, &mut None, threads)).collect::<Option<_>>()?;
        gpu::attempt("timing", || {
            let _current = device.enter()?;
            let mut lane = device.lane()?.ok_or_else(|| Failure::other("all lanes are taken"))?;
            let chunks: Vec<(&Encoding, &[u8])> = plans.iter().zip(jobs.iter().map(|j| j.raw)).collect();
            let group = EncodeGroup::load(device, &mut lane, &chunks, threads)?;
            let timer = Timer::new(group.steps.len() + 1)?;
            let mut steps: Vec<(&str, Vec<f32>)> = group.steps.iter().map(|s| (s.0, Vec::new())).collect();
            for run in 0..runs + 3 {
                group.clear(&mut lane)?;
                timer.mark(0, &lane)?;
                for (k, &(_, kernel, ctas)) in group.steps.iter().enumerate() {
                    lane.launch(kernel, ctas, &group.args)?;
                    timer.mark(k + 1, &lane)?;
                }
                lane.wait()?;
                let times = timer.read()?;
                if run >= 3 {
                    steps.iter_mut().zip(times).for_each(|(step, ms)| step.1.push(ms));
                }
            }
            Ok(steps)
        })
    }

    /// Whether each frame was right, and milliseconds of each of `runs` launches over frames already on the device.
    pub(crate) fn decode(jobs: &mut [DecodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<bool>, Vec<f32>)> {
        decode_step(jobs, runs, threads, "decode")
    }

    /// The same for one of the decoders of residuals of `lorenzo`: `coarse`, `sync` or `gap`. Jobs get residuals, four bytes
    /// each, tile by tile; the tables' making is not timed.
    pub(crate) fn residuals(
        jobs: &mut [DecodeJob<'_>],
        runs: usize,
        threads: usize,
        decoder: &str,
    ) -> Option<(Vec<bool>, Vec<f32>)> {
        decode_step(jobs, runs, threads, &format!("decode_{decoder}"))
    }

    fn decode_step(
        jobs: &mut [DecodeJob<'_>],
        runs: usize,
        threads: usize,
        step: &str,
    ) -> Option<(Vec<bool>, Vec<f32>)> {
        let device = gpu::device()?;
        let plans: Vec<Decoding> = jobs.iter().map(decoding).collect::<Option<_>>()?;
        gpu::attempt("timing", || {
            let _current = device.enter()?;
            let mut lane = device.lane()?.ok_or_else(|| Failure::other("all lanes are taken"))?;
            let frames: Vec<_> = plans.iter().zip(jobs.iter().map(|j| (j.frame, j.out.len()))).collect();
            let frames: Vec<(&Decoding, &[u8], usize)> = frames.into_iter().map(|(p, (f, n))| (p, f, n)).collect();
            let group = DecodeGroup::load(device, &mut lane, &frames, threads, step)?;
            let times = if step == "decode" {
                times(&mut lane, runs, |lane| group.start(lane))?
            } else {
                group.start(&mut lane)?;
                times(&mut lane, runs, |lane| group.again(lane))?
            };
            let right: Vec<bool> = group.verdicts(&mut lane)?.into_iter().map(|v| v == 1).collect();
            // Residuals take four bytes, values of other frames are not there.
            let part = |k: usize| if step != "decode" && plans[k].kernels.wide { 2 } else { 1 };
            let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
            let wanted = wanted.map(|(k, j)| {
                let len = j.out.len() / part(k);
                (group.outputs[k], gpu::as_uninit(&mut j.out[..len]))
            });
            lane.download(Buffer::Output, wanted.collect(), threads)?;
            Ok((right, times))
        })
    }

    fn times(
        lane: &mut Lane,
        runs: usize,
        mut start: impl FnMut(&mut Lane) -> Result<(), Failure>,
    ) -> Result<Vec<f32>, Failure> {
        let timer = Timer::new(2)?;
        let mut times = Vec::with_capacity(runs);
        // Three launches warm up.
        for run in 0..runs + 3 {
            timer.mark(0, lane)?;
            start(lane)?;
            timer.mark(1, lane)?;
            lane.wait()?;
            if run >= 3 {
                times.push(timer.read()?[0]);
            }
        }
        Ok(times)
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
