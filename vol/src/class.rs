// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of a connector, `H5VL_class_t`, of version 3: that of HDF5 1.14, 2.0, 2.1 and 2.2.

use h5z_gpu_doors::hdf5::Hid;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// What HDF5_VOL_CONNECTOR says.
pub(crate) const NAME: &CStr = c"h5z_gpu";
/// HDF5's name of the connector whose functions these are.
pub(crate) const NATIVE: &CStr = c"native";
/// A number of those that HDF5 leaves free for trials. Not that of the filter: see [`NOBODY`].
pub(crate) const NUMBER: c_int = 511;
/// The version of the record that is declared here.
pub(crate) const VERSION: c_uint = 3;

/// Numbers of datasets, their objects, types and spaces in memory, spaces in the file, transfer list, values, request.
pub(crate) type Read = unsafe extern "C" fn(
    usize,
    *mut *mut c_void,
    *mut Hid,
    *mut Hid,
    *mut Hid,
    Hid,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;
/// The same of values that are not changed.
pub(crate) type Write = unsafe extern "C" fn(
    usize,
    *mut *mut c_void,
    *mut Hid,
    *mut Hid,
    *mut Hid,
    Hid,
    *mut *const c_void,
    *mut *mut c_void,
) -> c_int;
/// Object, transfer list, request.
pub(crate) type Close = unsafe extern "C" fn(*mut c_void, Hid, *mut *mut c_void) -> c_int;

/// A function that is handed on as it is.
type Other = *const c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Class {
    pub(crate) version: c_uint,
    pub(crate) number: c_int,
    pub(crate) name: *const c_char,
    pub(crate) own_version: c_uint,
    flags: u64,
    pub(crate) initialize: Other,
    pub(crate) terminate: Other,
    info: [Other; 6],
    wrap: [Other; 5],
    attribute: [Other; 8],
    dataset_create: Other,
    dataset_open: Other,
    pub(crate) read: Read,
    pub(crate) write: Write,
    dataset_get: Other,
    dataset_specific: Other,
    dataset_optional: Other,
    pub(crate) close: Close,
    datatype: [Other; 6],
    file: [Other; 6],
    group: [Other; 6],
    link: [Other; 6],
    object: [Other; 5],
    introspect: [Other; 3],
    request: [Other; 6],
    blob: [Other; 4],
    token: [Other; 3],
    optional: Other,
}

/// What is nobody's record: no version, no number, no name.
///
/// HDF5 1.10 takes whatever a library of its plugins' folders hands out for the record of a filter, whose number stands
/// where a connector's does, and ends its search where it is handed nothing: no plugin behind this library would be
/// found. So nothing is handed out as this.
#[repr(C, align(8))]
pub(crate) struct Nobody {
    version: c_uint,
    number: c_int,
    rest: [u8; size_of::<Class>() - 8],
}
pub(crate) static NOBODY: Nobody = Nobody { version: 0, number: -1, rest: [0; size_of::<Class>() - 8] };

/// A field, its name in the headers, and where it is. `tests/hosts/test_vol.py` reads these lines.
macro_rules! places {
    ($($field:ident = $theirs:literal at $at:literal;)*) => {
        $(#[cfg(target_pointer_width = "64")]
        const _: () = assert!(offset_of!(Class, $field) == $at);)*
    };
}
places! {
    version = "version" at 0;
    number = "value" at 4;
    name = "name" at 8;
    own_version = "conn_version" at 16;
    flags = "cap_flags" at 24;
    initialize = "initialize" at 32;
    terminate = "terminate" at 40;
    info = "info_cls" at 48;
    wrap = "wrap_cls" at 96;
    attribute = "attr_cls" at 136;
    dataset_create = "dataset_cls.create" at 200;
    dataset_open = "dataset_cls.open" at 208;
    read = "dataset_cls.read" at 216;
    write = "dataset_cls.write" at 224;
    dataset_get = "dataset_cls.get" at 232;
    dataset_specific = "dataset_cls.specific" at 240;
    dataset_optional = "dataset_cls.optional" at 248;
    close = "dataset_cls.close" at 256;
    datatype = "datatype_cls" at 264;
    file = "file_cls" at 312;
    group = "group_cls" at 360;
    link = "link_cls" at 408;
    object = "object_cls" at 456;
    introspect = "introspect_cls" at 496;
    request = "request_cls" at 520;
    blob = "blob_cls" at 568;
    token = "token_cls" at 600;
    optional = "optional" at 624;
}
