// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 as this plugin declares it: types, numbers, the record of a filter, and the functions that are looked up at run time.
//!
//! The plugin links no libhdf5, so no header and no bindings stand behind these lines. Instead the crate `tests/hdf5`
//! includes this file, and the compiler compares each line with the bindings `hdf5-metno-sys`. What HDF5 declares as an
//! enumeration is a `c_int` here: a later library may answer with a number that no list of today has.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// HDF5's `hid_t` since 1.10.
pub(crate) type Hid = i64;

pub(crate) const H5PL_TYPE_FILTER: c_int = 0;
/// Of the record below. One of version 2 crashes the libraries that are released today.
pub(crate) const H5Z_CLASS_T_VERS: c_int = 1;
/// The chunk is being read.
pub(crate) const H5Z_FLAG_REVERSE: c_uint = 0x100;
/// HDF5 stores the chunk unfiltered, and marks it so, where the filter answers 0.
pub(crate) const H5Z_FLAG_OPTIONAL: c_uint = 1;
/// `H5Z_FILTER_DEFLATE` to `H5Z_FILTER_SCALEOFFSET`: HDF5's own filters, from number 1.
pub(crate) const OWN_FILTERS: [&str; 6] = ["deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"];
pub(crate) const H5S_MAX_RANK: usize = 32;
pub(crate) const H5T_INTEGER: c_int = 0;
pub(crate) const H5T_FLOAT: c_int = 1;
pub(crate) const H5T_ORDER_LE: c_int = 0;
pub(crate) const H5T_ORDER_BE: c_int = 1;
/// Two's complement.
pub(crate) const H5T_SGN_2: c_int = 1;
/// The first bit of a mantissa is 1 and not stored.
pub(crate) const H5T_NORM_IMPLIED: c_int = 0;
pub(crate) const H5D_FILL_VALUE_USER_DEFINED: c_int = 2;
pub(crate) const H5D_FILL_TIME_NEVER: c_int = 1;
/// The error stack of the running thread.
pub(crate) const H5E_DEFAULT: Hid = 0;
/// From what failed first to the function that was called.
pub(crate) const H5E_WALK_UPWARD: c_int = 0;

/// What `can_apply` answers: 1 yes, 0 no, −1 error.
#[repr(transparent)]
pub(crate) struct CanApply(pub(crate) c_int);

/// What `set_local` answers: not negative is success.
#[repr(transparent)]
pub(crate) struct SetLocal(pub(crate) c_int);

/// What `filter` answers: bytes in the buffer, 0 for failure with everything left as it was.
#[repr(transparent)]
pub(crate) struct FilterLen(pub(crate) usize);

/// HDF5's description of a filter, `H5Z_class2_t`: the same in 1.8 to 2.x.
#[repr(C)]
pub(crate) struct FilterClass {
    pub(crate) version: c_int,
    pub(crate) id: c_int,
    pub(crate) encoder_present: c_uint,
    pub(crate) decoder_present: c_uint,
    /// Stored in every dataset's header, hence short.
    pub(crate) name: *const c_char,
    pub(crate) can_apply: unsafe extern "C" fn(Hid, Hid, Hid) -> CanApply,
    pub(crate) set_local: unsafe extern "C" fn(Hid, Hid, Hid) -> SetLocal,
    pub(crate) filter:
        unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> FilterLen,
}

table! {
    /// What `set_local` reads of a dataset's properties and type, and writes.
    Properties {
        fn get_libversion = H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
        fn get_chunk = H5Pget_chunk(Hid, c_int, *mut u64) -> c_int;
        fn get_filter = H5Pget_filter2(
            Hid, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
        fn get_filter_by_id = H5Pget_filter_by_id2(
            Hid, c_int, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
        fn modify_filter = H5Pmodify_filter(Hid, c_int, c_uint, usize, *const c_uint) -> c_int;
        fn fill_value_defined = H5Pfill_value_defined(Hid, *mut c_int) -> c_int;
        fn get_fill_value = H5Pget_fill_value(Hid, Hid, *mut c_void) -> c_int;
        fn get_class = H5Tget_class(Hid) -> c_int;
        fn get_size = H5Tget_size(Hid) -> usize;
        fn get_order = H5Tget_order(Hid) -> c_int;
        fn get_sign = H5Tget_sign(Hid) -> c_int;
    }
}

/// Part of what an error stack holds of one failure, HDF5's `H5E_error2_t`.
#[repr(C)]
pub(crate) struct ErrorRecord {
    pub(crate) class: Hid,
    pub(crate) major: Hid,
    pub(crate) minor: Hid,
    pub(crate) line: c_uint,
    pub(crate) function: *const c_char,
    pub(crate) file: *const c_char,
    pub(crate) text: *const c_char,
}

/// What `H5Ewalk2` calls for each failure.
pub(crate) type OnError = unsafe extern "C" fn(c_uint, *const ErrorRecord, *mut c_void) -> c_int;

table! {
    /// When chunks are filled.
    Filling {
        fn get_fill_time = H5Pget_fill_time(Hid, *mut c_int) -> c_int;
    }
}

table! {
    /// A floating-point type, bit for bit.
    Layout {
        fn get_precision = H5Tget_precision(Hid) -> usize;
        fn get_fields = H5Tget_fields(Hid, *mut usize, *mut usize, *mut usize, *mut usize, *mut usize) -> c_int;
        fn get_ebias = H5Tget_ebias(Hid) -> usize;
        fn get_norm = H5Tget_norm(Hid) -> c_int;
    }
}

table! {
    /// The standard types, to compare with, for programs into which only what HDF5 itself needs was linked. Where
    /// HDF5 is shared, the program may hold the variables that count in a copy of its own, so `Layout` comes first.
    Standard {
        fn equal = H5Tequal(Hid, Hid) -> c_int;
        static f32_le = H5T_IEEE_F32LE_g;
        static f32_be = H5T_IEEE_F32BE_g;
        static f64_le = H5T_IEEE_F64LE_g;
        static f64_be = H5T_IEEE_F64BE_g;
    }
}

table! {
    /// Where an error's text goes.
    Errors {
        fn get_auto = H5Eget_auto2(
            Hid, *mut Option<unsafe extern "C" fn(Hid, *mut c_void) -> c_int>, *mut *mut c_void) -> c_int;
        fn auto_is_v2 = H5Eauto_is_v2(Hid, *mut c_uint) -> c_int;
        variadic push = H5Epush2(
            Hid, *const c_char, *const c_char, c_uint, Hid, Hid, Hid, *const c_char) -> c_int;
        static class = H5E_ERR_CLS_g;
        static major = H5E_PLINE_g;
        static minor = H5E_CANTFILTER_g;
    }
}

table! {
    /// What the last call of a thread failed of.
    Walking {
        fn walk = H5Ewalk2(Hid, c_int, Option<OnError>, *mut c_void) -> c_int;
    }
}

table! {
    /// HDF5 2.0 and 2.1 stop recording errors while a filter runs, and say so.
    Pausing {
        fn is_paused = H5Eis_paused(Hid, *mut bool) -> c_int;
    }
}

table! {
    /// Resumes and stops again. The public pair of functions would clear what was recorded.
    Resume {
        fn resume = H5E_resume_stack();
        fn pause = H5E_pause_stack();
    }
}

table! {
    /// The host's own heap.
    Heap {
        fn allocate = H5allocate_memory(usize, bool) -> *mut c_void;
        fn free = H5free_memory(*mut c_void) -> c_int;
    }
}
