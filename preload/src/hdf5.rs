// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 as the doors declare it. They link no libhdf5; `tests/hdf5` has each line compared with bindings.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// HDF5's `hid_t` since 1.10.
pub(crate) type Hid = i64;

/// All of a space; the greatest number of those that are no identifiers (`H5S_BLOCK`, `H5S_PLIST`).
pub(crate) const H5S_ALL: Hid = 0;
pub(crate) const H5S_PLIST: Hid = 2;
pub(crate) const H5S_MAX_RANK: usize = 32;
pub(crate) const H5S_SIMPLE: c_int = 1;
pub(crate) const H5S_SEL_HYPERSLABS: c_int = 2;
pub(crate) const H5S_SEL_ALL: c_int = 3;
pub(crate) const H5I_DATASET: c_int = 5;
pub(crate) const H5I_DATATYPE: c_int = 3;
pub(crate) const H5P_DEFAULT: Hid = 0;
pub(crate) const H5D_CHUNKED: c_int = 2;
pub(crate) const H5T_INTEGER: c_int = 0;
pub(crate) const H5T_FLOAT: c_int = 1;
pub(crate) const H5T_ORDER_BE: c_int = 1;
pub(crate) const H5T_SGN_NONE: c_int = 0;
pub(crate) const H5E_DEFAULT: Hid = 0;
pub(crate) const HADDR_UNDEF: u64 = u64::MAX;

/// What HDF5 calls for a failure where it prints by itself.
pub(crate) type Auto = Option<unsafe extern "C" fn(Hid, *mut c_void) -> c_int>;

tables! {
    /// The functions that stand behind ours.
    Real {
        fn read = H5Dread(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
        fn write = H5Dwrite(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
    }

    /// How datasets are created, and the filters of a list.
    Creation {
        fn create = H5Dcreate2(Hid, *const c_char, Hid, Hid, Hid, Hid, Hid) -> Hid;
        fn create_anonymous = H5Dcreate_anon(Hid, Hid, Hid, Hid, Hid) -> Hid;
        fn is_available = H5Zfilter_avail(c_int) -> c_int;
        fn set_filter = H5Pset_filter(Hid, c_int, c_uint, usize, *const c_uint) -> c_int;
        fn remove_filter = H5Premove_filter(Hid, c_int) -> c_int;
    }

    /// What is asked before a call takes the short way.
    Questions {
        fn kind = H5Iget_type(Hid) -> c_int;
        fn close = H5Idec_ref(Hid) -> c_int;
        fn create_list = H5Dget_create_plist(Hid) -> Hid;
        fn access_list = H5Dget_access_plist(Hid) -> Hid;
        fn space = H5Dget_space(Hid) -> Hid;
        fn offset = H5Dget_offset(Hid) -> u64;
        fn layout = H5Pget_layout(Hid) -> c_int;
        fn chunk = H5Pget_chunk(Hid, c_int, *mut u64) -> c_int;
        fn filters = H5Pget_nfilters(Hid) -> c_int;
        fn filter = H5Pget_filter2(
            Hid, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
        fn chunk_cache = H5Pget_chunk_cache(Hid, *mut usize, *mut usize, *mut f64) -> c_int;
        fn equal_lists = H5Pequal(Hid, Hid) -> c_int;
        fn copy_list = H5Pcopy(Hid) -> Hid;
        fn has_property = H5Pexist(Hid, *const c_char) -> c_int;
        fn remove_property = H5Premove(Hid, *const c_char) -> c_int;
        fn count = H5Sget_select_npoints(Hid) -> i64;
        fn class = H5Sget_simple_extent_type(Hid) -> c_int;
        fn dims = H5Sget_simple_extent_dims(Hid, *mut u64, *mut u64) -> c_int;
        fn rank = H5Sget_simple_extent_ndims(Hid) -> c_int;
        fn selection = H5Sget_select_type(Hid) -> c_int;
        fn is_regular = H5Sis_regular_hyperslab(Hid) -> c_int;
        fn regular = H5Sget_regular_hyperslab(Hid, *mut u64, *mut u64, *mut u64, *mut u64) -> c_int;
        fn bounds = H5Sget_select_bounds(Hid, *mut u64, *mut u64) -> c_int;
        fn type_class = H5Tget_class(Hid) -> c_int;
        fn type_size = H5Tget_size(Hid) -> usize;
        fn type_order = H5Tget_order(Hid) -> c_int;
        fn type_sign = H5Tget_sign(Hid) -> c_int;
        fn is_v2 = H5Eauto_is_v2(Hid, *mut c_uint) -> c_int;
        fn get_auto = H5Eget_auto2(Hid, *mut Auto, *mut *mut c_void) -> c_int;
        fn set_auto = H5Eset_auto2(Hid, Auto, *mut c_void) -> c_int;
        fn is_threadsafe = H5is_library_threadsafe(*mut bool) -> c_int;
        fn name_of = H5Iget_name(Hid, *mut c_char, usize) -> isize;
        fn file_of = H5Fget_name(Hid, *mut c_char, usize) -> isize;
        static default_list = H5P_LST_DATASET_XFER_ID_g;
    }

    /// The lock of a library that threads share, from 1.14 on.
    Lock {
        fn acquire = H5TSmutex_acquire(c_uint, *mut bool) -> c_int;
        fn release = H5TSmutex_release(*mut c_uint) -> c_int;
    }

    /// An error's text.
    Errors {
        variadic push = H5Epush2(
            Hid, *const c_char, *const c_char, c_uint, Hid, Hid, Hid, *const c_char) -> c_int;
        static class = H5E_ERR_CLS_g;
        static major = H5E_DATASET_g;
        static minor = H5E_WRITEERROR_g;
    }
}
