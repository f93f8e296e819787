// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array into a box of a dataset, step by step.

use super::cells::Cells;
use super::dataset::{Dataset, tuple};
use super::layout::{Filters, Layout};
use crate::FILTER_ID;
use crate::dataset::bits_of_number;
use crate::error::{Error, Result};
use h5z_gpu::array::{self, Array, Encoding};
use h5z_gpu::{Dtype, Params, words};

/// What has been decided of a box that is written, and what is left to do.
pub(crate) struct Writing {
    pub(super) array: Array,
    cells: Cells,
    layout: Layout,
    stored: Stored,
    /// First elements of chunks that the box cuts, and how many of them are written.
    pub(super) cut: Vec<u64>,
    cut_done: usize,
    /// The same of the others.
    whole: Vec<u64>,
    whole_done: usize,
}

/// What is stored of chunks that are whole.
enum Stored {
    /// Frames, which threads make ahead.
    Frames(Frames),
    /// Values as they are, of a dataset without filters: a chunk of them, where the array's do not lie together.
    Values(Vec<u8>),
}

struct Frames {
    /// The filter's, as they are stored.
    words: Vec<u32>,
    dtype: Dtype,
    threads: usize,
    encoding: Option<Encoding>,
}

impl Writing {
    /// Decides how the box from `start` on, of the array's extents, is written.
    ///
    /// # Errors
    /// [`Error::other_way`] where HDF5's pipeline is to do it.
    pub(crate) fn begin(
        dataset: &dyn Dataset,
        array: Array,
        dtype: Dtype,
        start: &[u64],
        threads: usize,
    ) -> Result<Writing> {
        let layout = Layout::of_dataset(dataset, array.element(), start, array.shape())?;
        let stored = match &layout.filters {
            Filters::Ours(words) => Stored::Frames(Frames { words: words.clone(), dtype, threads, encoding: None }),
            Filters::Others(list) if !list.ids.is_empty() => {
                let ids = &list.ids;
                return Err(Error::other_way(format!(
                    "its filters are {ids:?}, not {FILTER_ID} alone or none: they are read, not written"
                )));
            }
            Filters::Others(_) if array.device().is_some() => {
                return Err(Error::other_way("the dataset has no filter, and the array is on a device"));
            }
            Filters::Others(_) => Stored::Values(Vec::new()),
        };
        if !layout.access.writable {
            // HDF5 says so in its own words; H5Dwrite_chunk would fail when the file is closed.
            return Err(Error::other_way("the file is open for reading only"));
        }
        let cells = Cells::new(start, array.shape(), &layout.chunk);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        for origin in cells.origins() {
            if cells.has_all_of(&origin, &layout.shape) { &mut whole } else { &mut cut }.extend(origin);
        }
        let (cut_done, whole_done) = (0, 0);
        Ok(Writing { array, cells, layout, stored, cut, cut_done, whole, whole_done })
    }

    /// Writes some chunks: how many bytes of the array; 0 when all are written.
    pub(super) fn step(&mut self, dataset: &dyn Dataset) -> Result<u64> {
        let rank = self.layout.chunk.len();
        if let Some(origin) = self.cut.chunks_exact(rank).nth(self.cut_done) {
            self.write_cut(dataset, origin)?;
            self.cut_done += 1;
            return Ok(self.bytes(origin));
        }
        if self.whole_done * rank == self.whole.len() {
            return Ok(0);
        }
        let origins = self.whole[self.whole_done * rank..].chunks_exact(rank);
        let Writing { array, cells, layout, stored, .. } = self;
        let part;
        let chunks = match stored {
            Stored::Frames(Frames { encoding: Some(encoding), .. }) => encoding.next()?,
            Stored::Frames(frames) => {
                let encoding = frames.begin(array, cells, layout, origins.clone())?;
                frames.encoding.insert(encoding).next()?
            }
            Stored::Values(buffer) => {
                let own = cells.part(&self.whole[self.whole_done * rank..][..rank]);
                // SAFETY: the part is gone before the array.
                part = unsafe { array.part(&own.in_array, &own.shape)? };
                vec![dense(&part, &layout.chunk, &layout.fill, buffer)?]
            }
        };
        let mut bytes = 0;
        for (chunk, origin) in chunks.iter().zip(origins) {
            if let Err(error) = dataset.write_chunk(origin, chunk) {
                return Err(not_written(origin, &error, self.whole_done));
            }
            self.whole_done += 1;
            bytes += cells.part(origin).count() * array.element() as u64;
        }
        Ok(bytes)
    }

    /// Bytes of the array in the chunk at `origin`.
    fn bytes(&self, origin: &[u64]) -> u64 {
        self.cells.part(origin).count() * self.array.element() as u64
    }

    /// Writes what of a chunk lies in the box through HDF5's pipeline.
    fn write_cut(&self, dataset: &dyn Dataset, origin: &[u64]) -> Result<()> {
        let part = self.cells.part(origin);
        // SAFETY: the box is gone before the array.
        let values = unsafe { self.array.part(&part.in_array, &part.shape)? };
        let mut buffer = Vec::new();
        let values = dense(&values, &part.shape, &self.layout.fill, &mut buffer)?;
        dataset.write(&part.in_dataset, &part.shape, values).map_err(|error| {
            let (at, why) = (tuple(origin), message(&error));
            let text =
                format!("HDF5 cannot write a part of the chunk at {at}: {why}. {} others are written", self.cut_done);
            error.saying(text)
        })
    }
}

impl Frames {
    /// Begins to encode the chunks that are whole.
    fn begin<'a>(
        &self,
        array: &Array,
        cells: &Cells,
        layout: &Layout,
        origins: impl Iterator<Item = &'a [u64]>,
    ) -> Result<Encoding> {
        let Layout { chunk, fill, .. } = layout;
        let params = params(&self.words, self.dtype, chunk, Some(fill))?;
        let origins: Vec<i64> = origins.flat_map(|origin| cells.in_array(origin)).collect();
        // SAFETY: whoever holds this value holds the array's memory; the encoding is dropped with it.
        let array = unsafe { array.part(&vec![0; chunk.len()], array.shape())? };
        Ok(Encoding::new(array, params, chunk, &origins, Some(fill), self.threads)?)
    }
}

/// The bytes of a box of these extents that begins with `part`: the array's own where they lie together, or a copy in
/// `buffer`, with the fill value behind.
fn dense<'a>(part: &'a Array, extents: &[u64], fill: &[u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    let is_all = part.shape() == extents;
    if let Some(bytes) = part.bytes().filter(|_| is_all) {
        return Ok(bytes);
    }
    let bytes = extents.iter().fold(part.element() as u64, |a, &n| a.saturating_mul(n));
    let more = (bytes as usize).saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| h5z_gpu::Error::NoMemory { bytes })?;
    buffer.resize(bytes as usize, 0);
    if !is_all {
        buffer.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
    }
    // SAFETY: the buffer has the bytes of all extents, and outlives both arrays.
    unsafe {
        let whole = Array::new(buffer.as_mut_ptr(), part.element(), extents, None)?;
        array::copy(part, &mut whole.part(&vec![0; extents.len()], part.shape())?)?;
    }
    Ok(buffer)
}

/// What is asked of an array's chunks. A stored list says it all, and must be of this type and these extents.
pub(crate) fn params(user: &[u32], dtype: Dtype, chunk: &[u64], fill: Option<&[u8]>) -> Result<Params> {
    let mut params = Params::new(words::request(user)?, dtype, chunk)?;
    if !words::is_stored(user) {
        params.fill = fill.and_then(|f| bits_of_number(f, dtype.big_endian));
        return Ok(params);
    }
    let stored = words::stored(user)?.params;
    // Names of types say less than HDF5 does of those that no bound is kept for, such as halves: the size must be the
    // same.
    let alike = stored.dtype == params.dtype || !stored.dtype.is_ieee() && stored.dtype.size == params.dtype.size;
    if !(alike && stored.extents == params.extents) && stored.lossy_allowed {
        let (got, want) = (stored.extents.as_slice().to_vec(), params.extents.as_slice().to_vec());
        return Err(format!(
            "the words are of another dataset: of chunks {got:?} of {:?}; the array's are {want:?} of {dtype:?}",
            stored.dtype
        )
        .into());
    }
    // Where bits must not be lost the list may not know the type.
    params = if stored.extents == params.extents { stored } else { Params { lossy_allowed: false, ..params } };
    Ok(params)
}

/// The sentence of an error without our name.
fn message(error: &Error) -> String {
    let text = error.to_string();
    crate::report::without_name(&text).to_owned()
}

/// Why HDF5 has not written the frame of the chunk at `origin`, behind `written` others.
fn not_written(origin: &[u64], error: &Error, written: usize) -> Error {
    let text = format!(
        "HDF5 cannot write the chunk at {origin:?}: {}. {written} chunks before it are written; make room or mend \
         the cause, and write the rest",
        message(error)
    );
    error.saying(text)
}
