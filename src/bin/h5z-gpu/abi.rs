// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 as this program declares it. The crate `tests/hdf5` compares it with bindings, all but what plugins export.

use std::ffi::{c_char, c_int, c_uint};

/// `H5get_libversion`.
pub(crate) type GetLibversion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
/// `H5PLsize`: how many folders of plugins are searched.
pub(crate) type PluginFolders = unsafe extern "C" fn(*mut c_uint) -> c_int;
/// `H5PLget`: one of them.
pub(crate) type PluginFolder = unsafe extern "C" fn(c_uint, *mut c_char, usize) -> isize;
/// `H5Zfilter_avail`.
pub(crate) type FilterAvail = unsafe extern "C" fn(c_int) -> c_int;

/// `H5PLget_plugin_info`, which a plugin exports: no bindings declare it.
pub(crate) type PluginInfo = unsafe extern "C" fn() -> *const FilterClass;

/// How `H5Z_class2_t` begins, the description of a filter.
#[repr(C)]
pub(crate) struct FilterClass {
    pub(crate) version: c_int,
    pub(crate) id: c_int,
}
