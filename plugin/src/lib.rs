// SPDX-License-Identifier: MIT OR Apache-2.0
//! libh5zgpu.so: the HDF5 filter plugin, and the same codecs for C and for Python's ctypes.
//!
//! This crate is a fence. HDF5's pointers come in, slices go on, panics stop here. It links no libhdf5: whichever
//! library called a callback is found from the callback's return address (`host.rs`), so one file serves every HDF5 of
//! a process. Loading it does nothing.

mod arrays;
mod buffer;
mod c_api;
mod callbacks;
mod dataset;
mod dataset_io;
mod entry;
mod error;
mod facts;
#[macro_use]
mod table;
mod hdf5;
mod host;
mod module;
mod nczarr;
mod netcdf;
mod objects;
mod report;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod reserve;
mod transfers;
/// Other linkers and processors: no reserve.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod reserve {
    pub(crate) use libc as system;
}
mod verdict;

use hdf5::FilterClass;
use libc::{c_int, c_void};

/// Our number in HDF5's testing range, until The HDF Group assigns one.
pub(crate) const FILTER_ID: c_int = 443;

#[cfg(target_pointer_width = "64")]
const _: () = {
    // The offsets that libraries from 1.8 to 2.2 read; tests/hosts compares them with HDF5's own header.
    use std::mem::offset_of;
    assert!(size_of::<FilterClass>() == 48);
    assert!(offset_of!(FilterClass, id) == 4 && offset_of!(FilterClass, encoder_present) == 8);
    assert!(offset_of!(FilterClass, decoder_present) == 12 && offset_of!(FilterClass, name) == 16);
    assert!(offset_of!(FilterClass, can_apply) == 24 && offset_of!(FilterClass, set_local) == 32);
    assert!(offset_of!(FilterClass, filter) == 40);
};

// SAFETY: nothing changes it, and its pointers lead to constants and code.
unsafe impl Sync for FilterClass {}

static CLASS: FilterClass = FilterClass {
    version: hdf5::H5Z_CLASS_T_VERS,
    id: FILTER_ID,
    encoder_present: 1,
    decoder_present: 1,
    name: c"h5z-gpu".as_ptr(),
    can_apply: callbacks::can_apply,
    set_local: callbacks::set_local_entry,
    filter: callbacks::filter_entry,
};

/// `H5PL_TYPE_FILTER`.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    hdf5::H5PL_TYPE_FILTER
}

/// The filter's description, for HDF5.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    #[cfg(any(target_vendor = "apple", windows))]
    objects::stay();
    (&raw const CLASS).cast()
}
