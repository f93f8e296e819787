// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin and the program declare of HDF5 and netCDF, compared with bindings by the compiler.
//!
//! The plugin looks HDF5's functions up at run time and calls them through pointers, so no linker and no header notices
//! a wrong argument. This crate includes the files of those declarations and has the types of each function compared
//! with those of `hdf5-metno-sys` and `netcdf-sys` (`same.rs`), numbers and layouts by constant assertions. A
//! declaration that is off does not compile here. The tests that remain at run time look each symbol up in the library,
//! by its name.
//!
//! Which crate serves where stands in ARCHITECTURE.md.

#![cfg(test)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod same;
mod theirs;

use same::{pair, same};
use std::ffi::CString;
use std::mem::offset_of;

/// For each table a test that looks its symbols up; the types are compared while it is compiled.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident {
        $(fn $fun:ident = $symbol:ident($($arg:ty),*) $(-> $ret:ty)?;)*
        $(variadic $more:ident = $more_symbol:ident($($more_arg:ty),*) -> $more_ret:ty;)*
        $(static $id:ident = $id_symbol:ident;)*
    })*) => {$(
        $(const _: () = crate::same::same::<_, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(
            crate::theirs::$symbol as unsafe extern "C" fn($(any!($arg)),*) $(-> any!($ret))?
        );)*
        $(const _: () = crate::same::same::<_, unsafe extern "C" fn($($more_arg),*, ...) -> $more_ret>(
            crate::theirs::$more_symbol as unsafe extern "C" fn($(any!($more_arg)),*, ...) -> any!($more_ret)
        );)*

        #[test]
        #[allow(non_snake_case)]
        fn $name() {
            $(crate::exported(stringify!($symbol));)*
            $(crate::exported(stringify!($more_symbol));)*
            $({
                let theirs: &'static Hid = crate::theirs::$id_symbol;
                assert_eq!(crate::exported(stringify!($id_symbol)), (&raw const *theirs).cast_mut().cast());
            })*
        })*
    };
}

/// Left to the compiler to find.
macro_rules! any {
    ($type:ty) => {
        _
    };
}

#[allow(dead_code)]
#[path = "../../../preload/src/hdf5.rs"]
mod doors;
#[allow(dead_code)]
#[path = "../../../plugin/src/hdf5.rs"]
mod hdf5;
#[allow(dead_code)]
#[path = "../../../plugin/src/netcdf.rs"]
mod netcdf;
#[allow(dead_code)]
#[path = "../../../program/src/abi.rs"]
mod program;

/// The address of a symbol of the libraries that this program is linked with.
fn exported(symbol: &str) -> *mut std::ffi::c_void {
    /// Later than 1.10, with which this may be built; the plugin goes without them there.
    const LATER: [&str; 7] = [
        "H5Eis_paused",
        "H5E_resume_stack",
        "H5E_pause_stack",
        "H5Dchunk_iter",
        "H5Dread_chunk2",
        "H5TSmutex_acquire",
        "H5TSmutex_release",
    ];
    // The linker leaves a library out of which nothing is used.
    std::hint::black_box((theirs::H5Zfilter_avail as *const (), theirs::nc_inq_libvers as *const ()));
    let name = CString::new(symbol).unwrap();
    // SAFETY: a NUL-terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!found.is_null() || LATER.contains(&symbol), "no {symbol}");
    found
}

const _: () = {
    macro_rules! declared {
        ($($ours:ident = $theirs:ident($($any:tt),*);)*) => {
            $(same::<_, program::$ours>(theirs::$theirs as unsafe extern "C" fn($($any),*) -> _);)*
        };
    }
    declared! {
        H5open = H5open();
        H5getLibversion = H5get_libversion(_, _, _);
        H5PLsize = H5PLsize(_);
        H5PLget = H5PLget(_, _, _);
        H5ZfilterAvail = H5Zfilter_avail(_);
        H5Zregister = H5Zregister(_);
        H5Fcreate = H5Fcreate(_, _, _, _);
        H5Fopen = H5Fopen(_, _, _);
        H5ScreateSimple = H5Screate_simple(_, _, _);
        H5Pcreate = H5Pcreate(_);
        H5PsetChunk = H5Pset_chunk(_, _, _);
        H5PsetFilter = H5Pset_filter(_, _, _, _, _);
        H5Dcreate2 = H5Dcreate2(_, _, _, _, _, _, _);
        H5Dopen2 = H5Dopen2(_, _, _);
        H5Dwrite = H5Dwrite(_, _, _, _, _, _);
        H5Dread = H5Dread(_, _, _, _, _, _);
        H5DgetStorageSize = H5Dget_storage_size(_);
        Close = H5Dclose(_);
        Close = H5Fclose(_);
    }
    assert!(offset_of!(program::FilterClass, version) == offset_of!(theirs::H5Z_class2_t, version));
    assert!(offset_of!(program::FilterClass, id) == offset_of!(theirs::H5Z_class2_t, id));
};

/// The record of a filter: as large, aligned alike, each field as far from its beginning.
const _: () = {
    use hdf5::FilterClass as Ours;
    use theirs::H5Z_class2_t as Theirs;
    assert!(size_of::<Ours>() == size_of::<Theirs>() && align_of::<Ours>() == align_of::<Theirs>());
    macro_rules! fields {
        ($($name:ident)*) => { $(assert!(offset_of!(Ours, $name) == offset_of!(Theirs, $name));)* };
    }
    fields! { version id encoder_present decoder_present name can_apply set_local filter }
};

const _: fn(theirs::H5Z_class2_t, hdf5::FilterClass) = |theirs, ours| {
    pair(&theirs.version, &ours.version);
    pair(&theirs.id, &ours.id);
    pair(&theirs.encoder_present, &ours.encoder_present);
    pair(&theirs.decoder_present, &ours.decoder_present);
    pair(&theirs.name, &ours.name);
    pair(&(theirs.can_apply.unwrap() as unsafe extern "C" fn(_, _, _) -> _), &ours.can_apply);
    pair(&(theirs.set_local.unwrap() as unsafe extern "C" fn(_, _, _) -> _), &ours.set_local);
    pair(&theirs.filter.unwrap(), &ours.filter);
};

const _: fn(theirs::H5E_error2_t, hdf5::ErrorRecord) = |theirs, ours| {
    pair(&theirs.line, &ours.line);
    pair(&theirs.desc, &ours.text);
};

const _: () = {
    assert!(offset_of!(hdf5::ErrorRecord, text) == offset_of!(theirs::H5E_error2_t, desc));
    assert!(hdf5::H5E_WALK_UPWARD == theirs::H5E_direction_t::H5E_WALK_UPWARD as i32);
};

macro_rules! numbers {
    ($ours:ident: $($name:ident)*) => { $(const _: () = assert!($ours::$name as i64 == theirs::$name as i64);)* };
}
numbers! { hdf5: H5PL_TYPE_FILTER H5Z_CLASS_T_VERS H5Z_FLAG_REVERSE H5Z_FLAG_OPTIONAL H5S_MAX_RANK }
numbers! { hdf5: H5T_INTEGER H5T_FLOAT H5T_ORDER_LE H5T_ORDER_BE H5T_SGN_2 H5T_NORM_IMPLIED }
numbers! { hdf5: H5D_FILL_VALUE_USER_DEFINED H5D_FILL_VALUE_UNDEFINED H5D_FILL_TIME_NEVER H5E_DEFAULT H5P_DEFAULT }
numbers! { hdf5: H5S_UNLIMITED H5F_ACC_RDWR H5F_ACC_SWMR_READ H5F_ACC_SWMR_WRITE }
const _: () = {
    assert!(hdf5::H5D_CHUNKED == theirs::H5D_layout_t::H5D_CHUNKED as i32);
    assert!(hdf5::H5S_SELECT_SET == theirs::H5S_seloper_t::H5S_SELECT_SET as i32);
};
numbers! { doors: H5S_ALL H5S_MAX_RANK H5P_DEFAULT H5T_INTEGER H5T_FLOAT H5T_ORDER_BE H5T_SGN_NONE H5E_DEFAULT }
const _: () = {
    assert!(doors::H5D_CHUNKED == theirs::H5D_layout_t::H5D_CHUNKED as i32);
    assert!(doors::H5S_SIMPLE == theirs::H5S_class_t::H5S_SIMPLE as i32);
    assert!(doors::H5S_SEL_HYPERSLABS == theirs::H5S_sel_type::H5S_SEL_HYPERSLABS as i32);
    assert!(doors::H5S_SEL_ALL == theirs::H5S_sel_type::H5S_SEL_ALL as i32);
    assert!(doors::H5I_DATASET == theirs::H5I_type_t::H5I_DATASET as i32);
    assert!(doors::H5I_DATATYPE == theirs::H5I_type_t::H5I_DATATYPE as i32);
};
numbers! { netcdf: NC_NOERR NC_ENOMEM NC_EFILTER NC_ENDIAN_NATIVE NC_ENDIAN_BIG }

#[test]
fn the_numbers_of_hdf5s_own_filters() {
    use theirs::{H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32, H5Z_FILTER_NBIT};
    use theirs::{H5Z_FILTER_SCALEOFFSET, H5Z_FILTER_SHUFFLE, H5Z_FILTER_SZIP};
    for (name, number) in [
        ("deflate", H5Z_FILTER_DEFLATE),
        ("shuffle", H5Z_FILTER_SHUFFLE),
        ("fletcher32", H5Z_FILTER_FLETCHER32),
        ("szip", H5Z_FILTER_SZIP),
        ("nbit", H5Z_FILTER_NBIT),
        ("scaleoffset", H5Z_FILTER_SCALEOFFSET),
    ] {
        assert_eq!(hdf5::OWN_FILTERS[number as usize - 1], name);
    }
}

#[test]
fn the_numbers_of_netcdfs_types() {
    use theirs::{
        NC_BYTE, NC_CHAR, NC_DOUBLE, NC_FLOAT, NC_INT, NC_INT64, NC_SHORT, NC_UBYTE, NC_UINT, NC_UINT64, NC_USHORT,
    };
    for (name, number) in [
        ("i1", NC_BYTE),
        ("S1", NC_CHAR),
        ("i2", NC_SHORT),
        ("i4", NC_INT),
        ("f4", NC_FLOAT),
        ("f8", NC_DOUBLE),
        ("u1", NC_UBYTE),
        ("u2", NC_USHORT),
        ("u4", NC_UINT),
        ("i8", NC_INT64),
        ("u8", NC_UINT64),
    ] {
        assert_eq!(netcdf::TYPES[number as usize - 1], name);
    }
}
