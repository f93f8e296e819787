// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connector of HDF5's virtual object layer: what programs that cannot be changed read and write, at the speed of
//! whole arrays.
//!
//! HDF5 1.14 and newer look for it where `HDF5_VOL_CONNECTOR` names `h5z_gpu`, in the folders of `HDF5_PLUGIN_PATH`;
//! `h5z-gpu run --door vol` sets both. It links neither HDF5 nor the plugin.
//!
//! A connector is a record of some 70 functions, by which HDF5 does everything that concerns files. HDF5's own, the
//! "native" one, is such a record too, and HDF5 hands it out (`H5VLintrospect_get_conn_cls`). Ours is a copy of it,
//! under another name, in which three functions are replaced:
//!
//! ```text
//! HDF5  ──►  read, write of a dataset     doors/ decides ──► many chunks at a time
//!                                                        ──► the native function
//!       ──►  close of a dataset           the native function, but for an identifier that we lent ourselves
//!       ──►  all else                     the native functions themselves: nothing is wrapped, and nothing costs time
//! ```
//!
//! So objects are native ones, whatever is asked of them is answered as ever, and no record of arguments that differs
//! from one version to the next is ever looked into. What must be alike in all versions is the record itself: its
//! version says so (`class.rs`).
//!
//! Several HDF5 libraries of a process may load this one. Each has a copy of its own native record and, because HDF5
//! does not say who it is when it calls, functions of its own (`connector.rs`).

#![deny(unsafe_op_in_unsafe_fn)]

#[path = "../../plugin/src/table.rs"]
#[macro_use]
mod table;
mod class;
mod connector;
#[path = "../../plugin/src/entry.rs"]
#[allow(unused)]
mod entry;
mod hdf5;

use h5z_gpu_doors::module;
use libc::{c_int, c_void};

/// `H5PL_TYPE_VOL`.
const CONNECTOR: c_int = 1;
/// `H5PL_TYPE_NONE` since 1.14; in versions that know no connectors, a number that is none of theirs.
const NOTHING: c_int = 3;

/// What this library is to HDF5: a connector where the variable names it, else nothing.
///
/// HDF5 asks each connector that lies in its folders whether it knows a file that cannot be opened. Programs that have
/// not asked for this one would be told of another error than ever.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    let named = std::env::var("HDF5_VOL_CONNECTOR").unwrap_or_default();
    let ours = class::NAME.to_str() == Ok(named.split_ascii_whitespace().next().unwrap_or_default());
    if ours { CONNECTOR } else { NOTHING }
}

entry::entry! {
    ["endbr64" "mov rdi, [rsp]" "jmp {}"] ["mov rcx, [rsp]" "jmp {}"] ["hint #34" "mov x0, x30" "b {}"]
    /// The record of the connector; nobody's for a library whose records are others.
    #[unsafe(export_name = "H5PLget_plugin_info")]
    plugin_info => record_for() -> *const c_void
}

/// The record for the library that calls; `ret` is where the call returns to.
extern "C" fn record_for(ret: *const c_void) -> *const c_void {
    connector::of(ret).map_or((&raw const class::NOBODY).cast(), |class| std::ptr::from_ref(class).cast())
}
