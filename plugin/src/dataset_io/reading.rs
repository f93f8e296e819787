// SPDX-License-Identifier: MIT OR Apache-2.0
//! A box of a dataset into an array, step by step.

use super::cells::Cells;
use super::dataset::{Dataset, Stored, tuple};
use super::index::{self, List};
use super::layout::{Filters, Layout};
use super::others::Pipeline;
use crate::error::{Error, Kind, Result};
use crate::report::without_name;
use h5z_gpu::array::{self, Array, Frames, Unpack, decode, unpack};
use h5z_gpu::frame::STORED_HEADER;
use h5z_gpu::plugin::file::read_at;
use h5z_gpu::plugin::memory_available;
use libc::c_int;

/// Bytes decoded in a step, some tenths of a second: then Ctrl-C is looked at. A GPU takes many batches at a time.
const RAW_IN_A_STEP: u64 = 1 << 30;
const RAW_IN_A_STEP_ON_GPU: u64 = 32 << 30;
/// Bytes of frames that are in memory at a time.
const STORED_IN_A_STEP: usize = 64 << 20;
/// If at most 1/16 of the chunks are wanted, HDF5 is asked for each one by its coordinates. Going through the list
/// costs as much for one chunk as for all of them; asking by coordinates costs one more copy, by one thread.
const SEARCHED_PART: u64 = 16;
/// Places at which a list is compared with what a search finds.
const CHECKED_PLACES: usize = 64;
/// Memory for other people's chunks while they are decoded: this part of what the process may still take, and no more
/// than the array itself has, or these bytes where it has fewer. HDF5 takes two or three chunks.
const SHARE: u64 = 8;
const ROOM: u64 = 384 << 20;
/// How much there is takes 80 µs to ask. It is not asked where all chunks of a box together take no more than this.
const UNASKED: u64 = 32 << 20;

/// What has been decided of a box that is read, and what is left to do.
pub(crate) struct Reading {
    pub(super) array: Array,
    cells: Cells,
    layout: Layout,
    threads: usize,
    /// Whether a damaged chunk becomes the fill value.
    fills: bool,
    at_once: usize,
    /// How many chunks of other filters are decoded at a time.
    others_at_once: usize,
    way: Way,
    /// First elements of those chunks, one behind the other.
    pub(super) damaged: Vec<u64>,
}

enum Way {
    /// The number of the next chunk, and those before it that are not stored.
    ByPlace {
        next: usize,
        missing: Vec<usize>,
    },
    ByList(ByList),
}

/// Chunks of which the list has told where they are.
struct ByList {
    file: c_int,
    missing: Vec<usize>,
    /// Chunks that were stored without the filter.
    unfiltered: Vec<(usize, Stored)>,
    /// In the order in which they lie in the file: neighbours there are read one behind the other.
    frames: Vec<(usize, Stored)>,
}

impl Reading {
    /// Decides how the box from `start` on, of the array's extents, is read. `fills`: a damaged chunk becomes the fill
    /// value.
    ///
    /// # Errors
    /// [`Error::other_way`] where HDF5's pipeline is to do it; damage where the list of chunks cannot be right.
    pub(crate) fn begin(
        dataset: &dyn Dataset,
        array: Array,
        start: &[u64],
        threads: usize,
        fills: bool,
    ) -> Result<Reading> {
        let layout = Layout::of_dataset(dataset, array.element(), start, array.shape())?;
        let others = matches!(layout.filters, Filters::Others(_));
        // What is damage here may be none for HDF5.
        let fills = fills && !others;
        if array.device().is_some() && others {
            return Err(Error::other_way("its filters are decoded by CPUs, and the array is on a device"));
        }
        let cells = Cells::new(start, array.shape(), &layout.chunk);
        let raw = if array.device().is_some() { RAW_IN_A_STEP_ON_GPU } else { RAW_IN_A_STEP };
        let raw_len = layout.chunk.iter().fold(array.element() as u64, |a, &n| a.saturating_mul(n));
        let at_once = (raw / raw_len).max(1) as usize;
        let total = layout.shape.iter().zip(&layout.chunk).map(|(n, c)| n.div_ceil(*c)).fold(1, u64::saturating_mul);
        let few = cells.count() as u64 * SEARCHED_PART <= total;
        let way = Way::ByPlace { next: 0, missing: Vec::new() };
        let (others_at_once, damaged) = (usize::MAX, Vec::new());
        let mut reading = Reading { array, cells, layout, threads, fills, at_once, others_at_once, way, damaged };
        let by_list =
            !few && dataset.lists_at_once() && !index::counts_other_axis_first(dataset, &reading.layout.most)?;
        if by_list && reading.cells.count() > 0 {
            reading.way = Way::ByList(reading.places(dataset)?);
        }
        reading.others_at_once = reading.fit_memory()?;
        Ok(reading)
    }

    /// How many chunks of other filters the memory that there is lets be decoded at a time.
    ///
    /// # Errors
    /// [`Error::other_way`] where there is not enough for one.
    fn fit_memory(&self) -> Result<usize> {
        let Filters::Others(pipeline) = &self.layout.filters else { return Ok(usize::MAX) };
        let stored = match &self.way {
            // Those are in memory one behind the other: `STORED_IN_A_STEP`.
            Way::ByPlace { .. } => 0,
            Way::ByList(list) => list.frames.iter().map(|(_, stored)| stored.len.min(self.most())).max().unwrap_or(0),
        };
        let array = self.array.shape().iter().product::<u64>() * self.array.element() as u64;
        let chunk = pipeline.memory(self.raw_len(), stored);
        if chunk.saturating_mul(self.cells.count() as u64) <= UNASKED {
            return Ok(usize::MAX);
        }
        let room = ROOM.max(array).min(memory_available() / SHARE);
        match usize::try_from(room / chunk.max(1)).unwrap_or(usize::MAX) {
            0 => Err(Error::other_way(format!(
                "a chunk takes {} MiB of memory while it is decoded, and {} MiB may be taken",
                chunk.div_ceil(1 << 20),
                room >> 20
            ))),
            at_once => Ok(at_once),
        }
    }

    /// Reads some chunks: how many bytes of the array; 0 when all are there.
    pub(super) fn step(&mut self, dataset: &dyn Dataset) -> Result<u64> {
        match &mut self.way {
            Way::ByPlace { next, missing } => {
                let (first, missing) = (*next, std::mem::take(missing));
                self.some_by_place(dataset, first, missing)
            }
            Way::ByList(list) if !list.missing.is_empty() => {
                let some = list.missing.split_off(list.missing.len().saturating_sub(self.at_once));
                some.into_iter().map(|k| self.fill(k)).sum()
            }
            Way::ByList(list) => {
                if let Some((k, stored)) = list.unfiltered.pop() {
                    let file = list.file;
                    return self.unfiltered_in_file(file, k, stored);
                }
                let some: Vec<_> = list.frames.drain(..self.at_once.min(list.frames.len())).collect();
                let places: Vec<_> = some.iter().map(|(_, s)| (s.at, s.len)).collect();
                let which: Vec<_> = some.iter().map(|&(k, s)| (k, s.mask)).collect();
                let frames = Frames::File(list.file, &places);
                self.decode(frames, &which)
            }
        }
    }

    /// Whether what a chunk with this filter mask has is values.
    fn is_unfiltered(&self, mask: u32) -> bool {
        matches!(self.layout.filters, Filters::Ours(_)) && mask & 1 != 0
    }

    fn has_no_filters(&self) -> bool {
        matches!(&self.layout.filters, Filters::Others(pipeline) if pipeline.ids.is_empty())
    }

    /// Bytes of the longest stored chunk.
    fn most(&self) -> u64 {
        match self.layout.filters {
            Filters::Ours(_) => self.raw_len() + STORED_HEADER as u64,
            Filters::Others(_) => Pipeline::most(self.raw_len()),
        }
    }

    /// Bytes of a chunk.
    fn raw_len(&self) -> u64 {
        self.layout.chunk.iter().product::<u64>() * self.array.element() as u64
    }

    /// Bytes of the array in the `k`-th chunk.
    fn bytes(&self, k: usize) -> u64 {
        self.cells.part(&self.cells.origin(k)).count() * self.array.element() as u64
    }

    // --- where chunks are --------------------------------------------------------------------------------------------

    /// Where the box's chunks are, by HDF5's list.
    fn places(&self, dataset: &dyn Dataset) -> Result<ByList> {
        if self.layout.access.writable {
            dataset.flush()?;
        }
        let file = dataset.descriptor()?;
        let mut list = index::list(dataset, &|at, out: &mut [u8]| read_at(file, out, at).is_ok())?;
        list.retain(|origin, _| self.cells.number(origin).is_some());
        let mut there = vec![false; self.cells.count()];
        let mut found: Vec<_> = (0..list.chunks.len())
            .filter_map(|k| {
                let number = self.cells.number(list.origin(k))?;
                there[number] = true;
                Some((number, list.chunks[k]))
            })
            .collect();
        let missing: Vec<usize> = (0..there.len()).filter(|&k| !there[k]).collect();
        if let Some(wrong) = list.wrong.take() {
            return Err(damaged_list(&wrong));
        }
        match self.distrust(dataset, &list, &missing) {
            // Where there are no filters, HDF5 tells the length of a whole chunk for one that was never written and is
            // in its cache, because somebody has read it.
            Some(why) if self.has_no_filters() => return Err(Error::other_way(why)),
            Some(wrong) => return Err(damaged_list(&wrong)),
            None => {}
        }
        found.sort_by_key(|(_, stored)| stored.at);
        let (unfiltered, frames) = found.into_iter().partition(|(_, stored)| self.is_unfiltered(stored.mask));
        Ok(ByList { file, missing, unfiltered, frames })
    }

    /// Where the search by place does not find what the list says.
    fn distrust(&self, dataset: &dyn Dataset, list: &List, missing: &[usize]) -> Option<String> {
        let listed = (0..list.chunks.len()).map(|k| (list.origin(k), list.chunks[k].len));
        let origins: Vec<Vec<u64>> = missing.iter().map(|&k| self.cells.origin(k)).collect();
        index::distrust(dataset, listed, CHECKED_PLACES)
            .or_else(|| index::distrust(dataset, origins.iter().map(|o| (&o[..], 0)), CHECKED_PLACES))
    }

    /// Refuses chunks that a search by place has not found, and that the list has: their values are lost, or not where
    /// they were.
    fn not_listed(&self, dataset: &dyn Dataset, missing: &[usize]) -> Result<()> {
        if index::counts_other_axis_first(dataset, &self.layout.most)? {
            return Ok(()); // whose list says nothing of places
        }
        if self.layout.access.writable {
            dataset.flush()?;
        }
        let lost = |origin: &[u64], stored: Stored| {
            let place = tuple(origin);
            damaged_list(&format!("it lists {} bytes for the chunk at {place}, where HDF5 finds none", stored.len))
        };
        if !dataset.lists_at_once() {
            for origin in missing.iter().map(|&k| self.cells.origin(k)) {
                if let Some(stored) = dataset.listed(&origin)? {
                    return Err(lost(&origin, stored));
                }
            }
            return Ok(());
        }
        let file = dataset.descriptor()?;
        let list = index::list(dataset, &|at, out: &mut [u8]| read_at(file, out, at).is_ok())?;
        if let Some(wrong) = &list.wrong {
            return Err(damaged_list(wrong));
        }
        let is_missing =
            |&k: &usize| self.cells.number(list.origin(k)).is_some_and(|number| missing.binary_search(&number).is_ok());
        let found = (0..list.chunks.len()).find(is_missing);
        found.map_or(Ok(()), |k| Err(lost(list.origin(k), list.chunks[k])))
    }

    // --- what becomes of them ----------------------------------------------------------------------------------------

    /// Reads chunks from number `first` on, by their places.
    fn some_by_place(&mut self, dataset: &dyn Dataset, first: usize, mut missing: Vec<usize>) -> Result<u64> {
        let (most, end) = (self.most(), self.cells.count());
        let (mut next, mut done, mut bytes) = (first, 0, Vec::new());
        let (mut which, mut ends) = (Vec::new(), Vec::new());
        while next < end && next - first < self.at_once && bytes.len() < STORED_IN_A_STEP {
            let (k, origin) = (next, self.cells.origin(next));
            next += 1;
            // HDF5 2.0 fails where there is no chunk. Where the index is damaged, `not_listed` says so.
            let len = match dataset.stored_len(&origin) {
                Err(e) if e.errno() != 0 => return Err(self.unread(&[(k, e)])),
                len => len.unwrap_or(0),
            };
            if len == 0 {
                missing.push(k);
                done += self.fill(k)?;
                continue;
            }
            if len > most {
                done += self.bad(k, format!("the file's index: a frame of {len} bytes, {most} at most"))?;
                continue;
            }
            let from = bytes.len();
            bytes.try_reserve(len as usize).map_err(|_| h5z_gpu::Error::NoMemory { bytes: len })?;
            bytes.resize(from + len as usize, 0);
            let mask = match dataset.read_chunk(&origin, &mut bytes[from..]) {
                Ok(mask) => mask,
                // Not the system's failure: where the index leads there is no such chunk.
                Err(e) if e.errno() == 0 => {
                    bytes.truncate(from);
                    done += self.bad(k, without_name(&e.to_string()).into())?;
                    continue;
                }
                Err(e) => return Err(self.unread(&[(k, e)])),
            };
            if !self.is_unfiltered(mask) {
                which.push((k, mask));
                ends.push(from..bytes.len());
                continue;
            }
            let mut raw = bytes.split_off(from);
            done += self.unfiltered(k, len, &mut raw)?;
        }
        let frames: Vec<&[u8]> = ends.into_iter().map(|range| &bytes[range]).collect();
        done += self.decode(Frames::Memory(&frames), &which)?;
        if next == end && !missing.is_empty() {
            self.not_listed(dataset, &missing)?;
            missing.clear();
        }
        self.way = Way::ByPlace { next, missing };
        Ok(done)
    }

    /// Decodes what is stored of some chunks, each with its filter mask.
    fn decode(&mut self, stored: Frames<'_>, which: &[(usize, u32)]) -> Result<u64> {
        if which.is_empty() {
            return Ok(0);
        }
        let numbers = || which.iter().map(|&(k, _)| k);
        let in_array: Vec<i64> =
            numbers().flat_map(|k| self.cells.in_array(&self.cells.origin(k)).collect::<Vec<_>>()).collect();
        let results = match &self.layout.filters {
            Filters::Ours(_) => decode(stored, &mut self.array, &self.layout.chunk, &in_array, self.threads)?,
            Filters::Others(pipeline) => {
                let chunks = Chunks { pipeline, which, at_once: self.others_at_once };
                unpack(stored, &mut self.array, &self.layout.chunk, &in_array, self.threads, &chunks)?
            }
        };
        let bad: Vec<_> =
            numbers().zip(results).filter_map(|(k, result)| result.err().map(|e| (k, Error::from(e)))).collect();
        if bad.iter().any(|(_, e)| !self.fills || e.kind() != Kind::Damaged) {
            return Err(self.unread(&bad));
        }
        for (k, _) in &bad {
            self.note_damage(*k)?;
        }
        Ok(numbers().map(|k| self.bytes(k)).sum())
    }

    /// A chunk that the file's list says is stored without the filter.
    fn unfiltered_in_file(&mut self, file: c_int, k: usize, stored: Stored) -> Result<u64> {
        if let Some(why) = index::why_not_raw(stored.len, self.raw_len(), &[]) {
            return self.bad(k, why);
        }
        let mut raw = Vec::new();
        let bytes = stored.len;
        raw.try_reserve_exact(bytes as usize).map_err(|_| h5z_gpu::Error::NoMemory { bytes })?;
        raw.resize(bytes as usize, 0);
        match read_at(file, &mut raw, stored.at) {
            Ok(()) => self.unfiltered(k, stored.len, &mut raw),
            Err(h5z_gpu::Error::Length { .. }) => self.bad(k, "the file ends before it does".into()),
            Err(e) => Err(self.unread(&[(k, e.into())])),
        }
    }

    /// Values that were stored as they are.
    fn unfiltered(&mut self, k: usize, stored: u64, raw: &mut [u8]) -> Result<u64> {
        if let Some(why) = index::why_not_raw(stored, self.raw_len(), raw) {
            return self.bad(k, why);
        }
        let origin = self.cells.origin(k);
        let part = self.cells.part(&origin);
        let inside: Vec<u64> = part.in_dataset.iter().zip(&origin).map(|(from, o)| from - o).collect();
        // SAFETY: the bytes of a chunk, which outlive the array; the part of ours is gone before ours.
        unsafe {
            let chunk = Array::new(raw.as_mut_ptr(), self.array.element(), &self.layout.chunk, None)?;
            array::copy(&chunk.part(&inside, &part.shape)?, &mut self.array.part(&part.in_array, &part.shape)?)?;
        }
        Ok(self.bytes(k))
    }

    /// Puts the fill value where the `k`-th chunk is.
    fn fill(&mut self, k: usize) -> Result<u64> {
        let part = self.cells.part(&self.cells.origin(k));
        let steps = vec![0; part.shape.len()];
        let mut fill = self.layout.fill.clone();
        // SAFETY: one element, which is repeated, and outlives the array; the part is gone before the array.
        unsafe {
            let value = Array::new(fill.as_mut_ptr(), fill.len(), &part.shape, Some(&steps))?;
            array::copy(&value, &mut self.array.part(&part.in_array, &part.shape)?)?;
        }
        Ok(self.bytes(k))
    }

    /// The `k`-th chunk cannot be values.
    fn bad(&mut self, k: usize, why: String) -> Result<u64> {
        if !self.fills {
            return Err(self.unread(&[(k, Error::damaged(why))]));
        }
        self.note_damage(k)?;
        Ok(self.bytes(k))
    }

    fn note_damage(&mut self, k: usize) -> Result<()> {
        self.damaged.extend(self.cells.origin(k));
        self.fill(k).map(|_| ())
    }

    /// The error for chunks that cannot be read: of the first that is not damaged, or else of the last.
    fn unread(&self, bad: &[(usize, Error)]) -> Error {
        let Some((k, error)) = bad.iter().find(|(_, e)| e.kind() != Kind::Damaged).or(bad.last()) else {
            return "no chunk is bad".into();
        };
        let place = |k: &usize| tuple(&self.cells.origin(*k));
        let why = match error {
            Error::Told { text, .. } => text.clone(),
            error => error.to_string(),
        };
        let mut text = format!("the chunk at {} cannot be read: {why}", place(k));
        if bad.len() > 1 {
            let some: Vec<String> = bad.iter().take(8).map(|(k, _)| place(k)).collect();
            text += &format!(" ({} such chunks so far: [{}])", bad.len(), some.join(", "));
        }
        if error.kind() == Kind::Damaged && matches!(self.layout.filters, Filters::Others(_)) {
            // HDF5 reads it, or says what is wrong in its own words.
            return Error::other_way(text);
        }
        error.saying(text)
    }
}

/// Chunks that other filters wrote, each with its number and its filter mask.
struct Chunks<'a> {
    pipeline: &'a Pipeline,
    which: &'a [(usize, u32)],
    at_once: usize,
}

impl Unpack for Chunks<'_> {
    fn most(&self, raw_len: u64) -> u64 {
        Pipeline::most(raw_len)
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    fn unpack(&self, k: usize, stored: &[u8], between: &mut Vec<u8>, raw: &mut [u8]) -> h5z_gpu::Result<()> {
        let section = "what other filters stored";
        let read = self.pipeline.read(stored, self.which[k].1, between, raw);
        read.map_err(|why| h5z_gpu::Error::Corrupt { section, why })
    }
}

fn damaged_list(wrong: &str) -> Error {
    Error::damaged(format!(
        "the file's list of its chunks is damaged: {wrong}. `h5z-gpu recover` saves what can be read"
    ))
}
