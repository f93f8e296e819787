// SPDX-License-Identifier: MIT OR Apache-2.0
//! netCDF-C as this plugin declares it; as with `hdf5.rs`, the crate `tests/hdf5` compares each line with bindings.

use std::ffi::{c_int, c_uint, c_void};

pub(crate) const NC_NOERR: c_int = 0;
pub(crate) const NC_ENOMEM: c_int = -61;
pub(crate) const NC_EFILTER: c_int = -132;
pub(crate) const NC_ENDIAN_NATIVE: c_int = 0;
pub(crate) const NC_ENDIAN_BIG: c_int = 2;
/// `NC_BYTE` to `NC_UINT64` in NumPy's words, from number 1.
pub(crate) const TYPES: [&str; 11] = ["i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"];

tables! {
    /// What NCZarr's `modify_parameters` reads of a variable.
    NetCdf {
        fn inq_vartype = nc_inq_vartype(c_int, c_int, *mut c_int) -> c_int;
        fn inq_varndims = nc_inq_varndims(c_int, c_int, *mut c_int) -> c_int;
        fn inq_var_endian = nc_inq_var_endian(c_int, c_int, *mut c_int) -> c_int;
        fn inq_var_chunking = nc_inq_var_chunking(c_int, c_int, *mut c_int, *mut usize) -> c_int;
        fn inq_var_fill = nc_inq_var_fill(c_int, c_int, *mut c_int, *mut c_void) -> c_int;
        fn inq_var_filter_ids = nc_inq_var_filter_ids(c_int, c_int, *mut usize, *mut c_uint) -> c_int;
    }
}
