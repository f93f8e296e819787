// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array into a box of a dataset, step by step.

use super::cells::Cells;
use super::dataset::{Dataset, tuple};
use super::layout::{Filters, Layout};
use crate::FILTER_ID;
use crate::dataset::bits;
use crate::error::{Error, Result};
use h5z_gpu::array::{self, Array, Encoding};
use h5z_gpu::{Dtype, Params, words};

/// What has been decided of a box that is written, and what is left to do.
pub(crate) struct Writing {
    pub(super) array: Array,
    cells: Cells,
    layout: Layout,
    /// The filter's, as they are stored.
    words: Vec<u32>,
    dtype: Dtype,
    threads: usize,
    /// First elements of chunks that the box cuts, and how many of them are written.
    pub(super) cut: Vec<u64>,
    cut_done: usize,
    /// The same of the others.
    whole: Vec<u64>,
    whole_done: usize,
    encoding: Option<Encoding>,
}

impl Writing {
    /// Decides how the box from `start` on, of the array's extents, is written.
    ///
    /// # Errors
    /// [`Error::other_way`] where HDF5's pipeline is to do it.
    pub(super) fn begin(
        dataset: &dyn Dataset,
        array: Array,
        dtype: Dtype,
        start: &[u64],
        threads: usize,
    ) -> Result<Writing> {
        let layout = Layout::of(dataset, array.element(), start, array.shape())?;
        let words = match &layout.filters {
            Filters::Ours(words) => words.clone(),
            Filters::Others(list) => {
                let ids = &list.ids;
                return Err(Error::other_way(format!(
                    "its filters are {ids:?}, not {FILTER_ID} alone: they are read, not written"
                )));
            }
        };
        if !layout.access.writable {
            // HDF5 says so in its own words; H5Dwrite_chunk would fail when the file is closed.
            return Err(Error::other_way("the file is open for reading only"));
        }
        let cells = Cells::of(start, array.shape(), &layout.chunk);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        for origin in cells.origins() {
            if cells.has_all_of(&origin, &layout.shape) { &mut whole } else { &mut cut }.extend(origin);
        }
        let (cut_done, whole_done) = (0, 0);
        Ok(Writing { array, cells, layout, words, dtype, threads, cut, cut_done, whole, whole_done, encoding: None })
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
        if self.encoding.is_none() {
            self.encoding = Some(self.encode()?);
        }
        let frames = self.encoding.as_mut().map_or(Ok(Vec::new()), Encoding::next)?;
        let mut bytes = 0;
        for (frame, origin) in frames.iter().zip(self.whole[self.whole_done * rank..].chunks_exact(rank)) {
            if let Err(error) = dataset.write_chunk(origin, frame) {
                return Err(not_written(origin, &error, self.whole_done));
            }
            self.whole_done += 1;
            bytes += self.cells.part(origin).count() * self.array.element() as u64;
        }
        Ok(bytes)
    }

    /// Bytes of the array in the chunk at `origin`.
    fn bytes(&self, origin: &[u64]) -> u64 {
        self.cells.part(origin).count() * self.array.element() as u64
    }

    /// Begins to encode the chunks that are whole.
    fn encode(&self) -> Result<Encoding> {
        let Layout { chunk, fill, .. } = &self.layout;
        let params = params(&self.words, self.dtype, chunk, Some(fill))?;
        let origins: Vec<i64> =
            self.whole.chunks_exact(chunk.len()).flat_map(|origin| self.cells.in_array(origin)).collect();
        // SAFETY: whoever holds this value holds the array's memory; the encoding is dropped with it.
        let array = unsafe { self.array.part(&vec![0; chunk.len()], self.array.shape())? };
        Ok(Encoding::new(array, params, chunk, &origins, Some(fill), self.threads)?)
    }

    /// Writes what of a chunk lies in the box through HDF5's pipeline.
    fn write_cut(&self, dataset: &dyn Dataset, origin: &[u64]) -> Result<()> {
        let part = self.cells.part(origin);
        let bytes = part.count() * self.array.element() as u64;
        let mut values = Vec::new();
        values.try_reserve_exact(bytes as usize).map_err(|_| h5z_gpu::Error::NoMemory { bytes })?;
        values.resize(bytes as usize, 0);
        // SAFETY: the values outlive the dense array; the part is gone before the array.
        unsafe {
            let mut dense = Array::new(values.as_mut_ptr(), self.array.element(), &part.shape, None)?;
            array::copy(&self.array.part(&part.in_array, &part.shape)?, &mut dense)?;
        }
        dataset.write(&part.in_dataset, &part.shape, &values).map_err(|error| {
            let (at, why) = (tuple(origin), told(&error));
            let text =
                format!("HDF5 cannot write a part of the chunk at {at}: {why}. {} others are written", self.cut_done);
            error.saying(text)
        })
    }
}

/// What is asked of an array's chunks. A stored list says it all, and must be of this type and these extents.
pub(crate) fn params(user: &[u32], dtype: Dtype, chunk: &[u64], fill: Option<&[u8]>) -> Result<Params> {
    let mut params = Params::new(words::request(user)?, dtype, chunk)?;
    if !words::is_stored(user) {
        params.fill = fill.filter(|f| f.len() <= 8).map(|f| bits(f, dtype.big_endian));
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
fn told(error: &Error) -> String {
    let text = error.to_string();
    crate::report::without_name(&text).to_owned()
}

/// Why HDF5 has not written the frame of the chunk at `origin`, behind `written` others.
fn not_written(origin: &[u64], error: &Error, written: usize) -> Error {
    let text = format!(
        "HDF5 cannot write the chunk at {origin:?}: {}. {written} chunks before it are written; make room or mend \
         the cause, and write the rest",
        told(error)
    );
    error.saying(text)
}
