// SPDX-License-Identifier: MIT OR Apache-2.0
//! `H5Dread` and `H5Dwrite` of programs that cannot be changed, at the speed of whole arrays.
//!
//! The loader puts this library before HDF5 (`LD_PRELOAD`, which `h5z-gpu run` sets), so that a program's calls arrive
//! here. It links neither HDF5 nor the plugin.
//!
//! ```text
//! program, h5py, netCDF  ──►  H5Dread           entries.rs: H5Dread_multi, H5Dread_async; several.rs: one by one
//!                               │
//!                             real.rs           the HDF5 that the caller would have called without us (host.rs)
//!                               │
//!                             door.rs           few values, another filter, what fits the chunk cache … ──► HDF5
//!                               │               decided by questions that are cheap beside what HDF5 would do itself
//!                             space.rs          both selections are boxes: where in the dataset, and strides in memory
//!                               │
//!                             plugin.rs         h5z_gpu_read_dataset of the plugin, in ../plugin of this library's
//!                                               folder; "another way", or any failure of reading ──► HDF5
//! ```
//!
//! create.rs, where `run --deflate` asks for it, gives datasets that are created this filter in the place of deflate.
//!
//! Nothing is kept from one call to the next that could change: no index, no dataset, no open file. Nothing is held
//! back: what a call has written is in HDF5's hands when it returns. A failure to read is left to HDF5, which reads
//! again and gives the error that the program knows.

#![deny(unsafe_op_in_unsafe_fn)]

#[path = "../../plugin/src/entry.rs"]
#[allow(unused)]
mod entry;
#[path = "../../plugin/src/table.rs"]
#[macro_use]
mod table;
mod create;
mod door;
mod entries;
mod explain;
mod hdf5;
mod host;
mod module;
mod newer;
mod plugin;
mod real;
mod several;
mod space;

use door::{Call, Outcome};
use hdf5::Hid;
use libc::{c_int, c_void};

entry::entry6! {
    /// HDF5's function of this name.
    #[unsafe(export_name = "H5Dread")]
    h5dread => door_read(dataset: Hid, memory: Hid, here: Hid, there: Hid, list: Hid, values: *mut c_void) -> c_int
}

entry::entry6! {
    /// HDF5's function of this name.
    #[unsafe(export_name = "H5Dwrite")]
    h5dwrite => door_write(dataset: Hid, memory: Hid, here: Hid, there: Hid, list: Hid, values: *const c_void) -> c_int
}

/// # Safety
/// As HDF5 says of `H5Dread`; `ret` is where the call returns to.
unsafe extern "C" fn door_read(
    dataset: Hid,
    memory: Hid,
    here: Hid,
    there: Hid,
    list: Hid,
    values: *mut c_void,
    ret: *const c_void,
) -> c_int {
    let Some(host) = real::of(ret) else { return -1 };
    let call = Call { dataset, memory, here, there, list };
    // SAFETY: the caller's promise.
    match unsafe { door::read(host, &call, values) } {
        Outcome::Done(_) => 0,
        // SAFETY: as above.
        _ => unsafe { (host.real.read)(dataset, memory, here, there, list, values) },
    }
}

/// # Safety
/// As HDF5 says of `H5Dwrite`; `ret` is where the call returns to.
unsafe extern "C" fn door_write(
    dataset: Hid,
    memory: Hid,
    here: Hid,
    there: Hid,
    list: Hid,
    values: *const c_void,
    ret: *const c_void,
) -> c_int {
    let Some(host) = real::of(ret) else { return -1 };
    let call = Call { dataset, memory, here, there, list };
    // SAFETY: the caller's promise.
    match unsafe { door::write(host, &call, values) } {
        Outcome::Done(_) => 0,
        Outcome::Failed(why) => door::fail(host, &why),
        // SAFETY: as above.
        Outcome::Native(_) => unsafe { (host.real.write)(dataset, memory, here, there, list, values) },
    }
}
