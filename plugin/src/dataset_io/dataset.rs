// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of HDF5 about a dataset, and what it answers.

use crate::error::Result;
use libc::{c_int, c_uint};

/// What a dataset was made with, and never changes.
pub(crate) struct Creation {
    /// Extents of a chunk; `None` where the dataset is not stored in chunks.
    pub(super) chunk: Option<Vec<u64>>,
    /// Number and words of each filter, in their order.
    pub(super) filters: Vec<(c_int, Vec<u32>)>,
    /// Whether chunks at the edge go without them.
    pub(super) edges_unfiltered: bool,
    /// One element; `None` where chunks that were never written hold zeros.
    pub(super) fill: Option<Vec<u8>>,
}

/// Elements along each axis, now and at most.
pub(crate) struct Extents {
    pub(super) shape: Vec<u64>,
    pub(super) most: Vec<u64>,
}

/// How a file is open.
pub(crate) struct Access {
    /// By the driver whose addresses are offsets of one file of the system.
    pub(super) sec2: bool,
    pub(super) page_buffer: bool,
    /// For single writer, multiple readers.
    pub(super) swmr: bool,
    pub(super) writable: bool,
}

/// A chunk as it is stored: where it begins, its bytes, and the filters that it does without, a bit each.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) mask: u32,
}

/// What is told of each chunk of a list: its first element, and how it is stored.
pub(super) type OnChunk<'a> = dyn FnMut(&[u64], Stored) + 'a;

/// What is asked of HDF5 about one dataset. Errors say what HDF5 says.
pub(crate) trait Dataset {
    fn creation(&self) -> Result<Creation>;
    /// Bytes of an element; `None` where it is no number, or of another type than the array's.
    fn element(&self) -> Result<Option<usize>>;
    fn extents(&self) -> Result<Extents>;
    fn access(&self) -> Result<Access>;
    /// The kind of the chunks' index, as HDF5 numbers it; `None` for a library that does not tell.
    fn index_kind(&self) -> Result<Option<c_uint>>;
    /// Writes what HDF5's chunk cache holds of it.
    fn flush(&self) -> Result<()>;
    /// The file's descriptor, of which addresses are offsets.
    fn descriptor(&self) -> Result<c_int>;
    fn user_block(&self) -> Result<u64>;
    fn file_len(&self) -> Result<u64>;
    /// How many chunks its index has.
    fn count(&self) -> Result<u64>;
    /// The `k`-th chunk of the list into `origin`; `None` where it is not stored.
    fn nth(&self, k: u64, origin: &mut [u64]) -> Result<Option<Stored>>;
    /// Whether [`Dataset::each`] can be asked: H5Dchunk_iter came with 1.14.
    fn lists_at_once(&self) -> bool;
    /// Tells of all chunks of the list.
    fn visit_chunks(&self, rank: usize, told: &mut OnChunk<'_>) -> Result<()>;
    /// The chunk that the list has for a place.
    fn listed(&self, origin: &[u64]) -> Result<Option<Stored>>;
    /// Bytes of the chunk that a search by place finds; 0 for none.
    fn stored_len(&self, origin: &[u64]) -> Result<u64>;
    /// Fills `bytes`, which has its length, with the stored chunk that a search by place finds; its filter mask.
    fn read_chunk(&self, origin: &[u64], bytes: &mut [u8]) -> Result<c_uint>;
    fn write_chunk(&self, origin: &[u64], frame: &[u8]) -> Result<()>;
    /// Writes a box through the pipeline, from dense values.
    fn write(&self, start: &[u64], shape: &[u64], values: &[u8]) -> Result<()>;
}

/// A place as Python writes it, `(20, 40)`.
pub(super) fn tuple(place: &[u64]) -> String {
    match place {
        [one] => format!("({one},)"),
        // A damaged index may have any number: as many know it, below 0.
        _ => format!("({})", place.iter().map(|&o| (o as i64).to_string()).collect::<Vec<_>>().join(", ")),
    }
}
