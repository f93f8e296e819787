// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this program declares of HDF5, compared with bindings by the crate `tests/hdf5`, and of what plugins export.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// An identifier. HDF5 1.8 has `int`: see `round_trip.rs`.
pub(crate) type Hid = i64;

pub(crate) type H5open = unsafe extern "C" fn() -> c_int;
pub(crate) type H5getLibversion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
/// How many folders of plugins are searched.
pub(crate) type H5PLsize = unsafe extern "C" fn(*mut c_uint) -> c_int;
/// One of them.
pub(crate) type H5PLget = unsafe extern "C" fn(c_uint, *mut c_char, usize) -> isize;
pub(crate) type H5ZfilterAvail = unsafe extern "C" fn(c_int) -> c_int;
pub(crate) type H5Zregister = unsafe extern "C" fn(*const c_void) -> c_int;
pub(crate) type H5Fcreate = unsafe extern "C" fn(*const c_char, c_uint, Hid, Hid) -> Hid;
pub(crate) type H5Fopen = unsafe extern "C" fn(*const c_char, c_uint, Hid) -> Hid;
pub(crate) type H5ScreateSimple = unsafe extern "C" fn(c_int, *const u64, *const u64) -> Hid;
pub(crate) type H5Pcreate = unsafe extern "C" fn(Hid) -> Hid;
pub(crate) type H5PsetChunk = unsafe extern "C" fn(Hid, c_int, *const u64) -> c_int;
pub(crate) type H5PsetFilter = unsafe extern "C" fn(Hid, c_int, c_uint, usize, *const c_uint) -> c_int;
pub(crate) type H5Dcreate2 = unsafe extern "C" fn(Hid, *const c_char, Hid, Hid, Hid, Hid, Hid) -> Hid;
pub(crate) type H5Dopen2 = unsafe extern "C" fn(Hid, *const c_char, Hid) -> Hid;
pub(crate) type H5Dwrite = unsafe extern "C" fn(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
pub(crate) type H5Dread = unsafe extern "C" fn(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
pub(crate) type H5DgetStorageSize = unsafe extern "C" fn(Hid) -> u64;
/// `H5Dclose`, `H5Fclose`.
pub(crate) type Close = unsafe extern "C" fn(Hid) -> c_int;

/// `H5PLget_plugin_info`, which a plugin exports: no bindings declare it.
pub(crate) type PluginInfo = unsafe extern "C" fn() -> *const FilterClass;

/// How `H5Z_class2_t` begins, the description of a filter.
#[repr(C)]
pub(crate) struct FilterClass {
    pub(crate) version: c_int,
    pub(crate) id: c_int,
}

// Our plugin's, of h5z_gpu.h.
pub(crate) type Version = unsafe extern "C" fn() -> *const c_char;
pub(crate) type Status = unsafe extern "C" fn(*mut c_char, usize) -> i64;
pub(crate) type Tools = unsafe extern "C" fn(*const u32, usize, *mut c_char, usize) -> i64;
pub(crate) type DeviceChunks = unsafe extern "C" fn(c_int) -> i64;
pub(crate) type Encode = unsafe extern "C" fn(
    *const u32,
    usize,
    *const c_char,
    usize,
    *const u64,
    *const c_void,
    *const c_void,
    usize,
    *mut c_void,
    usize,
) -> i64;
