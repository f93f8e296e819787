// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dataset of a host's HDF5, asked by that library's public functions.

use super::dataset::{Access, Creation, Dataset, Extents, OnChunk, Stored};
use crate::error::{Error, Kind, Result};
use crate::hdf5::{
    Datasets, H5D_CHUNKED, H5D_FILL_TIME_NEVER, H5D_FILL_VALUE_UNDEFINED, H5F_ACC_RDWR, H5F_ACC_SWMR_READ,
    H5F_ACC_SWMR_WRITE, H5P_DEFAULT, H5S_MAX_RANK, H5S_SELECT_SET, H5T_FLOAT, H5T_INTEGER, HADDR_UNDEF, Hid,
    Properties,
};
use crate::host::{Host, Reader};
use crate::report;
use libc::{c_int, c_uint, c_void};
use std::ptr;

/// More words than any form has.
const WORDS_MAX: usize = 64;

/// Calls a function of HDF5: what it answers, or why it failed, by an answer less than 0.
macro_rules! ask {
    ($native:ident, $($function:ident).+($($argument:expr),* $(,)?)) => {
        // SAFETY: an open dataset, by the promise of `new`. The other arguments are variables for the answers, ids that
        // are held, and arrays as long as HDF5's rank, of at most H5S_MAX_RANK axes.
        $native.checked(unsafe { ($($function).+)($($argument),*) })
    };
}

/// A dataset, and the type of the array's elements in memory.
pub(crate) struct Native {
    host: &'static Host,
    calls: Datasets,
    properties: Properties,
    id: Hid,
    memory: Hid,
}

/// An identifier that is ours to close.
struct Held<'a> {
    dataset: &'a Native,
    id: Hid,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this library made it for us, and nobody else uses it.
        unsafe { (self.dataset.calls.close)(self.id) };
    }
}

impl Native {
    /// # Safety
    /// `id` is an open dataset of this host, and `memory` a type of it, or 0 where no values are read or written. Both
    /// stay open for as long as the answer is used, and whoever uses it holds the lock that this HDF5 needs.
    pub(crate) unsafe fn new(host: &'static Host, id: Hid, memory: Hid) -> Result<Native> {
        match (&host.datasets, &host.properties) {
            (Some(calls), Ok(properties)) => Ok(Native { host, calls: *calls, properties: *properties, id, memory }),
            _ => Err(Error::other_way("this HDF5 has no H5Dwrite_chunk, which came with 1.10.3")),
        }
    }

    /// Why a call failed, as HDF5 says.
    fn failed(&self) -> Error {
        let (text, errno) = report::innermost(self.host);
        Error::Told { kind: Kind::Io, text, errno }
    }

    /// What a call answers, which is less than 0 where it failed.
    fn checked<T: Into<i64> + Copy>(&self, answer: T) -> Result<T> {
        if answer.into() < 0 { Err(self.failed()) } else { Ok(answer) }
    }

    fn held(&self, id: Hid) -> Held<'_> {
        Held { dataset: self, id }
    }

    fn file(&self) -> Result<Held<'_>> {
        ask!(self, self.calls.get_file(self.id)).map(|id| self.held(id))
    }

    fn space(&self) -> Result<Held<'_>> {
        ask!(self, self.calls.get_space(self.id)).map(|id| self.held(id))
    }

    /// Number and words of the `k`-th filter.
    fn filter(&self, list: &Held<'_>, k: c_uint) -> Result<(c_int, Vec<u32>)> {
        let (mut flags, mut n, mut words) = (0, WORDS_MAX, vec![0; WORDS_MAX]);
        let (name, config) = (ptr::null_mut(), ptr::null_mut());
        // `words` takes `n`, and no name and no configuration are read.
        let id = ask!(
            self,
            self.properties.get_filter(list.id, k, &mut flags, &mut n, words.as_mut_ptr(), 0, name, config)
        )?;
        words.truncate(n);
        Ok((id, words))
    }

    fn fill(&self, list: &Held<'_>) -> Result<Option<Vec<u8>>> {
        let (mut defined, mut time) = (0, 0);
        ask!(self, self.properties.fill_value_defined(list.id, &mut defined))?;
        ask!(self, self.calls.get_fill_time(list.id, &mut time))?;
        if self.memory == 0 || time == H5D_FILL_TIME_NEVER || defined == H5D_FILL_VALUE_UNDEFINED {
            return Ok(None);
        }
        // SAFETY: as `ask` says.
        let mut value = vec![0; unsafe { (self.properties.get_size)(self.memory) }];
        // The value has the size of the type.
        ask!(self, self.properties.get_fill_value(list.id, self.memory, value.as_mut_ptr().cast()))?;
        Ok(Some(value))
    }
}

impl Dataset for Native {
    fn creation(&self) -> Result<Creation> {
        let list = self.held(ask!(self, self.calls.get_create_plist(self.id))?);
        let layout = ask!(self, self.calls.get_layout(list.id))?;
        if layout != H5D_CHUNKED {
            return Ok(Creation { chunk: None, filters: Vec::new(), edges_unfiltered: false, fill: None });
        }
        let mut chunk = vec![0; H5S_MAX_RANK];
        let rank = ask!(self, self.properties.get_chunk(list.id, H5S_MAX_RANK as c_int, chunk.as_mut_ptr()))? as usize;
        chunk.truncate(rank);
        let n = ask!(self, self.calls.get_nfilters(list.id))?;
        let filters = (0..n as c_uint).map(|k| self.filter(&list, k)).collect::<Result<_>>()?;
        let mut options = 0;
        ask!(self, self.calls.get_chunk_opts(list.id, &mut options))?;
        Ok(Creation { chunk: Some(chunk), filters, edges_unfiltered: options != 0, fill: self.fill(&list)? })
    }

    fn element(&self) -> Result<Option<usize>> {
        let stored = self.held(ask!(self, self.calls.get_type(self.id))?);
        // SAFETY: as `ask` says.
        let (class, size) = unsafe { ((self.properties.get_class)(stored.id), (self.properties.get_size)(stored.id)) };
        let number = matches!(class, H5T_INTEGER | H5T_FLOAT);
        Ok((number && ask!(self, self.calls.equal(stored.id, self.memory))? > 0).then_some(size))
    }

    fn extents(&self) -> Result<Extents> {
        let space = self.space()?;
        let (mut shape, mut most) = (vec![0; H5S_MAX_RANK], vec![0; H5S_MAX_RANK]);
        let rank = ask!(self, self.calls.get_dims(space.id, shape.as_mut_ptr(), most.as_mut_ptr()))? as usize;
        shape.truncate(rank);
        most.truncate(rank);
        Ok(Extents { shape, most })
    }

    fn access(&self) -> Result<Access> {
        let file = self.file()?;
        let list = self.held(ask!(self, self.calls.get_access_plist(file.id))?);
        let (mut intent, mut size, mut a, mut b) = (0, 0, 0, 0);
        ask!(self, self.calls.get_intent(file.id, &mut intent))?;
        ask!(self, self.calls.get_page_buffer_size(list.id, &mut size, &mut a, &mut b))?;
        let driver = ask!(self, self.calls.get_driver(list.id))?;
        Ok(Access {
            sec2: self.host.sec2() == Some(driver),
            page_buffer: size != 0,
            swmr: intent & (H5F_ACC_SWMR_READ | H5F_ACC_SWMR_WRITE) != 0,
            writable: intent & H5F_ACC_RDWR != 0,
        })
    }

    fn index_kind(&self) -> Result<Option<c_uint>> {
        let Some(info) = self.host.chunk_info else { return Ok(None) };
        let mut kind = 0;
        ask!(self, info.get_chunk_index_type(self.id, &mut kind))?;
        Ok(Some(kind))
    }

    fn flush(&self) -> Result<()> {
        ask!(self, self.calls.flush(self.id)).map(|_| ())
    }

    fn descriptor(&self) -> Result<c_int> {
        if cfg!(windows) {
            return Ok(-1); // it is a number of HDF5's own C library: h5z_gpu::plugin::file says why it is of no use
        }
        let file = self.file()?;
        let mut handle = ptr::null_mut();
        ask!(self, self.calls.get_vfd_handle(file.id, H5P_DEFAULT, &mut handle))?;
        // SAFETY: that of the driver sec2, which `access` has seen, leads to its descriptor.
        unsafe { handle.cast::<c_int>().as_ref() }.copied().ok_or_else(|| "the file has no descriptor".into())
    }

    fn user_block(&self) -> Result<u64> {
        let file = self.file()?;
        let list = self.held(ask!(self, self.calls.get_file_create_plist(file.id))?);
        let mut size = 0;
        ask!(self, self.calls.get_userblock(list.id, &mut size))?;
        Ok(size)
    }

    fn file_len(&self) -> Result<u64> {
        let (file, mut len) = (self.file()?, 0);
        ask!(self, self.calls.get_filesize(file.id, &mut len))?;
        Ok(len)
    }

    fn count(&self) -> Result<u64> {
        let info = self.host.chunk_info.ok_or("this HDF5 cannot list chunks, which came with 1.10.5")?;
        let (space, mut n) = (self.space()?, 0);
        ask!(self, info.get_num_chunks(self.id, space.id, &mut n))?;
        Ok(n)
    }

    fn nth(&self, k: u64, origin: &mut [u64]) -> Result<Option<Stored>> {
        let info = self.host.chunk_info.ok_or("this HDF5 cannot list chunks, which came with 1.10.5")?;
        let (space, mut place) = (self.space()?, [0; H5S_MAX_RANK + 1]);
        let (mut mask, mut at, mut len) = (0, HADDR_UNDEF, 0);
        ask!(self, info.get_chunk_info(self.id, space.id, k, place.as_mut_ptr(), &mut mask, &mut at, &mut len))?;
        origin.copy_from_slice(&place[..origin.len()]);
        Ok((at != HADDR_UNDEF).then_some(Stored { at, len, mask }))
    }

    fn lists_at_once(&self) -> bool {
        // On Windows what is told of a file's places cannot be read: h5z_gpu::plugin::file says why.
        self.host.chunk_iter.is_some() && !cfg!(windows)
    }

    fn visit_chunks(&self, rank: usize, told: &mut OnChunk<'_>) -> Result<()> {
        /// What `on_chunk` is given.
        struct Told<'a, 'b> {
            rank: usize,
            told: &'a mut OnChunk<'b>,
        }
        unsafe extern "C" fn on_chunk(place: *const u64, mask: c_uint, at: u64, len: u64, told: *mut c_void) -> c_int {
            // SAFETY: the pointer given to H5Dchunk_iter, and a place of the dataset's rank.
            let (told, place) = unsafe {
                let told = &mut *told.cast::<Told<'_, '_>>();
                (&mut *told.told, std::slice::from_raw_parts(place, told.rank))
            };
            told(place, Stored { at, len, mask });
            0
        }
        let iter = self.host.chunk_iter.ok_or("this HDF5 has no H5Dchunk_iter")?;
        let mut told = Told { rank, told };
        // `told` outlives the call.
        ask!(self, iter.chunk_iter(self.id, H5P_DEFAULT, Some(on_chunk), (&raw mut told).cast())).map(|_| ())
    }

    fn listed(&self, origin: &[u64]) -> Result<Option<Stored>> {
        let info = self.host.chunk_info.ok_or("this HDF5 cannot list chunks, which came with 1.10.5")?;
        let (mut mask, mut at, mut len) = (0, HADDR_UNDEF, 0);
        ask!(self, info.get_chunk_info_by_coord(self.id, origin.as_ptr(), &mut mask, &mut at, &mut len))?;
        Ok((at != HADDR_UNDEF).then_some(Stored { at, len, mask }))
    }

    fn stored_len(&self, origin: &[u64]) -> Result<u64> {
        let mut len = 0;
        ask!(self, self.calls.get_chunk_storage_size(self.id, origin.as_ptr(), &mut len))?;
        Ok(len)
    }

    fn read_chunk(&self, origin: &[u64], bytes: &mut [u8]) -> Result<c_uint> {
        let (mut mask, mut len, to) = (0, bytes.len(), bytes.as_mut_ptr().cast());
        // SAFETY: as `ask` says; the chunk was found to have as many bytes as there are, and the lock is held since.
        let done = unsafe {
            match self.host.reader {
                Some(Reader::Sized(f)) => {
                    (f.read_chunk)(self.id, H5P_DEFAULT, origin.as_ptr(), &mut mask, to, &mut len)
                }
                Some(Reader::Plain(f)) => (f.read_chunk)(self.id, H5P_DEFAULT, origin.as_ptr(), &mut mask, to),
                None => return Err("this HDF5 has no H5Dread_chunk".into()),
            }
        };
        self.checked(done)?;
        if len != bytes.len() {
            return Err(format!("HDF5 says {} bytes, and then {len}", bytes.len()).into());
        }
        Ok(mask)
    }

    fn write_chunk(&self, origin: &[u64], frame: &[u8]) -> Result<()> {
        let (bytes, len) = (frame.as_ptr().cast(), frame.len());
        // The frame has its length.
        ask!(self, self.calls.write_chunk(self.id, H5P_DEFAULT, 0, origin.as_ptr(), len, bytes)).map(|_| ())
    }

    fn write(&self, start: &[u64], shape: &[u64], values: &[u8]) -> Result<()> {
        let there = self.space()?;
        let (none, one) = (ptr::null(), H5S_SELECT_SET);
        // No steps and no blocks are given.
        ask!(self, self.calls.select_hyperslab(there.id, one, start.as_ptr(), none, shape.as_ptr(), none))?;
        let here = self.held(ask!(self, self.calls.create_simple(shape.len() as c_int, shape.as_ptr(), none))?);
        // `values` are as many elements of the type as both spaces have.
        ask!(self, self.calls.write(self.id, self.memory, here.id, there.id, H5P_DEFAULT, values.as_ptr().cast()))
            .map(|_| ())
    }
}
