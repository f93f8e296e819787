// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bindings under one roof, by the names that the libraries export.

pub(crate) use hdf5_metno_sys::h5::{
    H5allocate_memory, H5free_memory, H5get_libversion, H5is_library_threadsafe, H5open, hbool_t,
};
#[cfg(has_chunk_iter)]
pub(crate) use hdf5_metno_sys::h5d::H5Dchunk_iter;
#[cfg(has_read_chunk2)]
pub(crate) use hdf5_metno_sys::h5d::H5Dread_chunk2;
pub(crate) use hdf5_metno_sys::h5d::{
    H5D_FILL_TIME_NEVER, H5D_FILL_VALUE_UNDEFINED, H5D_FILL_VALUE_USER_DEFINED, H5D_fill_time_t, H5D_fill_value_t,
    H5D_layout_t, H5Dflush, H5Dget_access_plist, H5Dget_chunk_index_type, H5Dget_chunk_info,
    H5Dget_chunk_info_by_coord, H5Dget_create_plist, H5Dget_num_chunks, H5Dget_offset, H5Dget_space, H5Dget_type,
    H5Dread_chunk1 as H5Dread_chunk, H5Dwrite_chunk,
};
pub(crate) use hdf5_metno_sys::h5d::{
    H5Dclose, H5Dcreate_anon, H5Dcreate2, H5Dget_storage_size, H5Dopen2, H5Dread, H5Dwrite,
};
#[cfg(has_is_paused)]
pub(crate) use hdf5_metno_sys::h5e::H5Eis_paused;
pub(crate) use hdf5_metno_sys::h5e::{
    H5E_CANTFILTER as H5E_CANTFILTER_g, H5E_DATASET as H5E_DATASET_g, H5E_DEFAULT, H5E_ERR_CLS as H5E_ERR_CLS_g,
    H5E_PLINE as H5E_PLINE_g, H5E_WRITEERROR as H5E_WRITEERROR_g, H5E_direction_t, H5E_error2_t, H5Eauto_is_v2,
    H5Eget_auto2, H5Epush2, H5Eset_auto2, H5Ewalk2,
};
pub(crate) use hdf5_metno_sys::h5f::{
    H5F_ACC_RDWR, H5F_ACC_SWMR_READ, H5F_ACC_SWMR_WRITE, H5Fget_access_plist, H5Fget_create_plist, H5Fget_filesize,
    H5Fget_intent, H5Fget_name, H5Fget_vfd_handle,
};
pub(crate) use hdf5_metno_sys::h5f::{H5Fclose, H5Fcreate, H5Fopen};
pub(crate) use hdf5_metno_sys::h5i::{H5I_type_t, H5Idec_ref, H5Iget_file_id, H5Iget_name, H5Iget_type};
pub(crate) use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5P_LST_DATASET_XFER as H5P_LST_DATASET_XFER_ID_g, H5Pcopy, H5Pequal, H5Pexist, H5Pget_chunk_cache,
    H5Pget_chunk_opts, H5Pget_driver, H5Pget_layout, H5Pget_nfilters, H5Pget_page_buffer_size, H5Pget_userblock,
    H5Premove, H5Premove_filter,
};
pub(crate) use hdf5_metno_sys::h5p::{H5Pcreate, H5Pset_chunk, H5Pset_filter};
pub(crate) use hdf5_metno_sys::h5p::{
    H5Pfill_value_defined, H5Pget_chunk, H5Pget_fill_time, H5Pget_fill_value, H5Pget_filter_by_id2, H5Pget_filter2,
    H5Pmodify_filter,
};
pub(crate) use hdf5_metno_sys::h5pl::{H5PL_TYPE_FILTER, H5PLget, H5PLsize};
pub(crate) use hdf5_metno_sys::h5s::{
    H5S_ALL, H5S_MAX_RANK, H5S_UNLIMITED, H5S_class_t, H5S_sel_type, H5S_seloper_t, H5Screate_simple,
    H5Sget_regular_hyperslab, H5Sget_select_bounds, H5Sget_select_npoints, H5Sget_select_type,
    H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims, H5Sget_simple_extent_type, H5Sis_regular_hyperslab,
    H5Sselect_hyperslab,
};
pub(crate) use hdf5_metno_sys::h5t::{
    H5T_FLOAT, H5T_IEEE_F32BE as H5T_IEEE_F32BE_g, H5T_IEEE_F32LE as H5T_IEEE_F32LE_g,
    H5T_IEEE_F64BE as H5T_IEEE_F64BE_g, H5T_IEEE_F64LE as H5T_IEEE_F64LE_g, H5T_INTEGER, H5T_NORM_IMPLIED,
    H5T_ORDER_BE, H5T_ORDER_LE, H5T_SGN_2, H5T_SGN_NONE, H5T_class_t, H5T_norm_t, H5T_order_t, H5T_sign_t, H5Tequal,
    H5Tget_class, H5Tget_ebias, H5Tget_fields, H5Tget_norm, H5Tget_order, H5Tget_precision, H5Tget_sign, H5Tget_size,
};
pub(crate) use hdf5_metno_sys::h5z::H5Zregister;
pub(crate) use hdf5_metno_sys::h5z::{
    H5Z_CLASS_T_VERS, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32, H5Z_FILTER_NBIT, H5Z_FILTER_SCALEOFFSET,
    H5Z_FILTER_SHUFFLE, H5Z_FILTER_SZIP, H5Z_FLAG_OPTIONAL, H5Z_FLAG_REVERSE, H5Z_class2_t, H5Zfilter_avail,
};
pub(crate) use netcdf_sys::*;

// What no bindings declare, as HDF5's own headers do.
unsafe extern "C" {
    /// `H5Epublic.h` from 1.14.5 on: `herr_t H5Eis_paused(hid_t stack_id, bool *is_paused)`.
    #[cfg(not(has_is_paused))]
    pub(crate) fn H5Eis_paused(stack_id: hdf5_metno_sys::h5i::hid_t, is_paused: *mut hbool_t) -> std::ffi::c_int;
    /// `H5Dpublic.h` from 1.10.2 on.
    pub(crate) fn H5Dget_chunk_storage_size(
        dset_id: hdf5_metno_sys::h5i::hid_t,
        offset: *const u64,
        chunk_bytes: *mut u64,
    ) -> std::ffi::c_int;
    /// `H5Dpublic.h` from 1.14 on, with `H5D_chunk_iter_op_t` as it stands there.
    #[cfg(not(has_chunk_iter))]
    pub(crate) fn H5Dchunk_iter(
        dset_id: hdf5_metno_sys::h5i::hid_t,
        dxpl_id: hdf5_metno_sys::h5i::hid_t,
        cb: Option<
            unsafe extern "C" fn(*const u64, std::ffi::c_uint, u64, u64, *mut std::ffi::c_void) -> std::ffi::c_int,
        >,
        op_data: *mut std::ffi::c_void,
    ) -> std::ffi::c_int;
    /// `H5Dpublic.h` from 2.0 on.
    #[cfg(not(has_read_chunk2))]
    pub(crate) fn H5Dread_chunk2(
        dset_id: hdf5_metno_sys::h5i::hid_t,
        dxpl_id: hdf5_metno_sys::h5i::hid_t,
        offset: *const u64,
        filters: *mut u32,
        buf: *mut std::ffi::c_void,
        buf_size: *mut usize,
    ) -> std::ffi::c_int;
    /// `H5TSpublic.h` from 1.14 on, in libraries that threads share.
    pub(crate) fn H5TSmutex_acquire(lock_count: std::ffi::c_uint, acquired: *mut hbool_t) -> std::ffi::c_int;
    /// As above.
    pub(crate) fn H5TSmutex_release(lock_count: *mut std::ffi::c_uint) -> std::ffi::c_int;
    /// `H5FDsec2.h` up to 1.14.
    pub(crate) fn H5FD_sec2_init() -> hdf5_metno_sys::h5i::hid_t;
    /// `H5Eprivate.h` from 1.14.5 on: `void H5E_pause_stack(void)`, exported but not public.
    pub(crate) fn H5E_pause_stack();
    /// As above: `void H5E_resume_stack(void)`.
    pub(crate) fn H5E_resume_stack();
}
