// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that HDF5 has not had from 1.10 on. `tests/hosts/test_run.py` has a C program call each, with every
//! version.

use crate::hdf5::Hid;
use std::ffi::{c_char, c_int, c_uint, c_void};

tables! {
    /// Calls for several datasets, and calls that need not be waited for, from 1.14 on.
    Several {
        fn read = H5Dread_multi(usize, *mut Hid, *mut Hid, *mut Hid, *mut Hid, Hid, *mut *mut c_void) -> c_int;
        fn write = H5Dwrite_multi(usize, *mut Hid, *mut Hid, *mut Hid, *mut Hid, Hid, *mut *const c_void) -> c_int;
        fn read_later = H5Dread_async(
            *const c_char, *const c_char, c_uint, Hid, Hid, Hid, Hid, Hid, *mut c_void, Hid) -> c_int;
        fn write_later = H5Dwrite_async(
            *const c_char, *const c_char, c_uint, Hid, Hid, Hid, Hid, Hid, *const c_void, Hid) -> c_int;
        fn read_all_later = H5Dread_multi_async(
            *const c_char, *const c_char, c_uint,
            usize, *mut Hid, *mut Hid, *mut Hid, *mut Hid, Hid, *mut *mut c_void, Hid) -> c_int;
        fn write_all_later = H5Dwrite_multi_async(
            *const c_char, *const c_char, c_uint,
            usize, *mut Hid, *mut Hid, *mut Hid, *mut Hid, Hid, *mut *const c_void, Hid) -> c_int;
    }

    /// Whose objects are whose, from 1.12 on.
    Connectors {
        fn name = H5VLget_connector_name(Hid, *mut c_char, usize) -> isize;
    }
}
