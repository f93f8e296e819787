// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a dataset may be read and written chunk by chunk beside the pipeline, and what must be known of it.

use super::dataset::{Access, Dataset, tuple};
use super::others::Pipeline;
use crate::FILTER_ID;
use crate::error::{Error, Result};

/// What a dataset's chunks went through.
pub(super) enum Filters {
    /// Ours alone, and its words as they are stored.
    Ours(Vec<u32>),
    Others(Pipeline),
}

/// A dataset that may.
pub(super) struct Layout {
    pub(super) filters: Filters,
    pub(super) chunk: Vec<u64>,
    /// What an element holds that was never written.
    pub(super) fill: Vec<u8>,
    pub(super) shape: Vec<u64>,
    pub(super) most: Vec<u64>,
    pub(super) access: Access,
}

impl Layout {
    /// For a box of a dataset from `start` on, of extents `shape`.
    ///
    /// # Errors
    /// [`Error::other_way`] where HDF5's pipeline is to do it.
    pub(super) fn of_dataset(dataset: &dyn Dataset, element: usize, start: &[u64], shape: &[u64]) -> Result<Layout> {
        let other = |why: &str| Err(Error::other_way(why));
        let creation = dataset.creation()?;
        let Some(chunk) = creation.chunk else { return other("the dataset is not stored in chunks") };
        let filters = match &creation.filters[..] {
            [(FILTER_ID, words)] => Filters::Ours(words.clone()),
            filters => {
                let ids: Vec<_> = filters.iter().map(|f| f.0).collect();
                let why = || {
                    Error::other_way(format!(
                        "its filters are {ids:?}, neither {FILTER_ID} alone nor gzip and its like"
                    ))
                };
                Filters::Others(Pipeline::from_filters(filters).ok_or_else(why)?)
            }
        };
        if dataset.element()? != Some(element) {
            return other("its type is not one of NumPy's numbers as it stands in memory");
        }
        let access = dataset.access()?;
        if !access.sec2 {
            return other("the file is open by another driver than sec2");
        }
        if access.swmr {
            return other("the file is open for single writer, multiple readers");
        }
        if access.page_buffer {
            return other("the file has a page buffer");
        }
        if creation.edges_unfiltered {
            return other("chunks at the dataset's edge have no filter");
        }
        let fill = creation.fill.unwrap_or_else(|| vec![0; element]);
        let extents = dataset.extents()?;
        let fits = |((&s, &n), &e): ((&u64, &u64), &u64)| s.checked_add(n).is_some_and(|end| end <= e);
        let ranks = [start.len(), shape.len(), chunk.len()] == [extents.shape.len(); 3];
        if !ranks || !start.iter().zip(shape).zip(&extents.shape).all(fits) {
            let (from, of) = (tuple(start), tuple(&extents.shape));
            return Err(format!("a box of {} at {from} is not in a dataset of {of}", tuple(shape)).into());
        }
        Ok(Layout { filters, chunk, fill, shape: extents.shape, most: extents.most, access })
    }
}
