// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes of a dataset into an array and out of one, beside HDF5's filter pipeline.
//!
//! Whatever door asks (the Python package, a C program), what is decided is decided here: whether this dataset may be
//! read and written chunk by chunk, which chunks a box touches, where they are, and what becomes of chunks that are
//! missing, damaged, or stored without the filter.
//!
//! ```text
//!             Layout::of      may it be done? If not, `Error::other_way` says why, and the door asks HDF5 itself
//!                 │
//!      ┌──────────┴───────────┐
//!   Reading                Writing
//!      │                      │
//!   a box of few chunks       chunks that the box cuts: gathered, written by H5Dwrite
//!   by place: H5Dread_chunk   whole chunks: gathered and encoded ahead by threads, written by H5Dwrite_chunk
//!      │
//!   many, by the list (index.rs): threads read by pread
//!   chunks of deflate and its like: decoded by others.rs
//! ```
//!
//! What is asked of HDF5 is the trait [`Dataset`]; `native.rs` asks the library that the dataset belongs to. Nothing is
//! kept from one call to the next but what a [`Reading`] or [`Writing`] needs for its own end, and nothing is held
//! back: a chunk is in HDF5's hands when the step that wrote it returns. The caller holds whatever lock its HDF5 needs,
//! during all steps.

mod cells;
mod dataset;
pub(crate) mod index;
mod layout;
pub(crate) mod native;
mod others;
mod reading;
pub(crate) mod writing;

use crate::error::Result;
use dataset::Dataset;
pub(crate) use reading::Reading;
pub(crate) use writing::Writing;

/// A box of a dataset on its way.
pub(crate) enum Transfer {
    Read(Box<Reading>),
    Write(Box<Writing>),
}

impl Transfer {
    /// Bytes of the array.
    pub(crate) fn bytes(&self) -> u64 {
        let array = match self {
            Transfer::Read(reading) => &reading.array,
            Transfer::Write(writing) => &writing.array,
        };
        array.shape().iter().product::<u64>() * array.element() as u64
    }

    /// Goes on for some chunks: how many bytes of the array are done; 0 when all are.
    pub(crate) fn step(&mut self, dataset: &dyn Dataset) -> Result<u64> {
        match self {
            Transfer::Read(reading) => reading.step(dataset),
            Transfer::Write(writing) => writing.step(dataset),
        }
    }

    /// First elements of chunks that a user is told of: read, those that are damaged and hold the fill value; written,
    /// those that the box cuts.
    pub(crate) fn special(&self) -> &[u64] {
        match self {
            Transfer::Read(reading) => &reading.damaged,
            Transfer::Write(writing) => &writing.cut,
        }
    }
}
