// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called of an HDF5 that has connectors, beside what `doors` calls. `tests/hosts/test_vol.py` has each line
//! compared with the headers of every version that is known here.

use crate::class::Class;
use std::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) use h5z_gpu_doors::hdf5::{H5I_DATASET, Hid};

/// `H5VL_GET_CONN_LVL_CURR`: the connector itself.
pub(crate) const ITSELF: c_int = 0;

table! {
    /// What a connector needs.
    Layer {
        fn version = H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
        fn by_name = H5VLget_connector_id_by_name(*const c_char) -> Hid;
        fn class_of = H5VLintrospect_get_conn_cls(*mut c_void, Hid, c_int, *mut *const Class) -> c_int;
        fn end = H5VLclose(Hid) -> c_int;
        fn lend = H5VLwrap_register(*mut c_void, c_int) -> Hid;
    }
}
