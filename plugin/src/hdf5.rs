// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 as this plugin declares it: types, numbers, the record of a filter, and the functions that are looked up at run
//! time.
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
pub(crate) const H5D_FILL_VALUE_UNDEFINED: c_int = 0;
pub(crate) const H5D_FILL_VALUE_USER_DEFINED: c_int = 2;
pub(crate) const H5D_FILL_TIME_NEVER: c_int = 1;
pub(crate) const H5D_CHUNKED: c_int = 2;
pub(crate) const H5D_CHUNK_IDX_EARRAY: c_uint = 4;
/// The property list of each class that says nothing.
pub(crate) const H5P_DEFAULT: Hid = 0;
pub(crate) const H5S_UNLIMITED: u64 = u64::MAX;
pub(crate) const H5S_SELECT_SET: c_int = 0;
pub(crate) const H5F_ACC_RDWR: c_uint = 1;
pub(crate) const H5F_ACC_SWMR_WRITE: c_uint = 0x20;
pub(crate) const H5F_ACC_SWMR_READ: c_uint = 0x40;
/// An address that is none.
pub(crate) const HADDR_UNDEF: u64 = u64::MAX;
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

/// What `H5Dchunk_iter` calls for each chunk: place, filter mask, address, stored bytes.
pub(crate) type OnChunk = unsafe extern "C" fn(*const u64, c_uint, u64, u64, *mut c_void) -> c_int;

tables! {
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

    /// When chunks are filled.
    Filling {
        fn get_fill_time = H5Pget_fill_time(Hid, *mut c_int) -> c_int;
    }

    /// A floating-point type, bit for bit.
    Layout {
        fn get_precision = H5Tget_precision(Hid) -> usize;
        fn get_fields = H5Tget_fields(Hid, *mut usize, *mut usize, *mut usize, *mut usize, *mut usize) -> c_int;
        fn get_ebias = H5Tget_ebias(Hid) -> usize;
        fn get_norm = H5Tget_norm(Hid) -> c_int;
    }

    /// The standard types, to compare with, for programs into which only what HDF5 itself needs was linked. Where
    /// HDF5 is shared, the program may hold the variables that count in a copy of its own, so `Layout` comes first.
    Standard {
        fn equal = H5Tequal(Hid, Hid) -> c_int;
        static f32_le = H5T_IEEE_F32LE_g;
        static f32_be = H5T_IEEE_F32BE_g;
        static f64_le = H5T_IEEE_F64LE_g;
        static f64_be = H5T_IEEE_F64BE_g;
    }

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

    /// What the last call of a thread failed of.
    Walking {
        fn walk = H5Ewalk2(Hid, c_int, Option<OnError>, *mut c_void) -> c_int;
    }

    /// HDF5 2.0 and 2.1 stop recording errors while a filter runs, and say so.
    Pausing {
        fn is_paused = H5Eis_paused(Hid, *mut bool) -> c_int;
    }

    /// Resumes and stops again. The public pair of functions would clear what was recorded.
    Resume {
        fn resume = H5E_resume_stack();
        fn pause = H5E_pause_stack();
    }

    /// The host's own heap.
    Heap {
        fn allocate = H5allocate_memory(usize, bool) -> *mut c_void;
        fn free = H5free_memory(*mut c_void) -> c_int;
    }

    /// A dataset that is read and written chunk by chunk beside the pipeline. Complete from 1.10.3 on.
    Datasets {
        fn get_create_plist = H5Dget_create_plist(Hid) -> Hid;
        fn get_type = H5Dget_type(Hid) -> Hid;
        fn get_space = H5Dget_space(Hid) -> Hid;
        fn get_file = H5Iget_file_id(Hid) -> Hid;
        fn close = H5Idec_ref(Hid) -> c_int;
        fn get_layout = H5Pget_layout(Hid) -> c_int;
        fn get_nfilters = H5Pget_nfilters(Hid) -> c_int;
        fn get_chunk_opts = H5Pget_chunk_opts(Hid, *mut c_uint) -> c_int;
        fn get_fill_time = H5Pget_fill_time(Hid, *mut c_int) -> c_int;
        fn equal = H5Tequal(Hid, Hid) -> c_int;
        fn get_dims = H5Sget_simple_extent_dims(Hid, *mut u64, *mut u64) -> c_int;
        fn create_simple = H5Screate_simple(c_int, *const u64, *const u64) -> Hid;
        fn select_hyperslab = H5Sselect_hyperslab(
            Hid, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
        fn get_access_plist = H5Fget_access_plist(Hid) -> Hid;
        fn get_file_create_plist = H5Fget_create_plist(Hid) -> Hid;
        fn get_driver = H5Pget_driver(Hid) -> Hid;
        fn get_page_buffer_size = H5Pget_page_buffer_size(Hid, *mut usize, *mut c_uint, *mut c_uint) -> c_int;
        fn get_userblock = H5Pget_userblock(Hid, *mut u64) -> c_int;
        fn get_intent = H5Fget_intent(Hid, *mut c_uint) -> c_int;
        fn get_filesize = H5Fget_filesize(Hid, *mut u64) -> c_int;
        fn get_vfd_handle = H5Fget_vfd_handle(Hid, Hid, *mut *mut c_void) -> c_int;
        fn flush = H5Dflush(Hid) -> c_int;
        fn get_chunk_storage_size = H5Dget_chunk_storage_size(Hid, *const u64, *mut u64) -> c_int;
        fn write_chunk = H5Dwrite_chunk(Hid, Hid, u32, *const u64, usize, *const c_void) -> c_int;
        fn write = H5Dwrite(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
    }

    /// Reading a stored chunk by its place, up to 1.14.
    ReadChunk {
        fn read_chunk = H5Dread_chunk(Hid, Hid, *const u64, *mut u32, *mut c_void) -> c_int;
    }

    /// The same from 2.0 on, which is told of the buffer's size.
    ReadChunk2 {
        fn read_chunk = H5Dread_chunk2(Hid, Hid, *const u64, *mut u32, *mut c_void, *mut usize) -> c_int;
    }

    /// Where chunks are, one after the other, from 1.10.5 on.
    ChunkInfo {
        fn get_num_chunks = H5Dget_num_chunks(Hid, Hid, *mut u64) -> c_int;
        fn get_chunk_info = H5Dget_chunk_info(Hid, Hid, u64, *mut u64, *mut c_uint, *mut u64, *mut u64) -> c_int;
        fn get_chunk_info_by_coord = H5Dget_chunk_info_by_coord(
            Hid, *const u64, *mut c_uint, *mut u64, *mut u64) -> c_int;
        fn get_chunk_index_type = H5Dget_chunk_index_type(Hid, *mut c_uint) -> c_int;
    }

    /// All of them in one call, from 1.14 on.
    ChunkIter {
        fn chunk_iter = H5Dchunk_iter(Hid, Hid, Option<OnChunk>, *mut c_void) -> c_int;
    }

    /// The number of the driver that reads and writes plain files, up to 1.14; then it is a variable.
    Sec2 {
        fn init = H5FD_sec2_init() -> Hid;
    }
}
