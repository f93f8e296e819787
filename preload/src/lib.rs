// SPDX-License-Identifier: MIT OR Apache-2.0
//! `H5Dread` and `H5Dwrite` of programs that cannot be changed, at the speed of whole arrays.
//!
//! The loader puts this library before HDF5 (`LD_PRELOAD`, which `h5z-gpu run` sets), so that a program's calls arrive
//! here. It links neither HDF5 nor the plugin.
//!
//! ```text
//! program, h5py, netCDF  ──►  H5Dread                        several.rs: H5Dread_multi, H5Dread_async
//!                               │
//!                             real.rs     whose HDF5 it is that the caller would have called without us
//!                               │
//!                             doors/      which way the call goes ──► HDF5's H5Dread, or many chunks at a time
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

#[path = "../../plugin/src/entry.rs"]
#[allow(unused)]
mod entry;
mod real;
mod several;

use h5z_gpu_doors::door::{self, Call, Outcome};
use h5z_gpu_doors::hdf5::Hid;
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
    let call = Call { dataset, memory, here, there, list, is_inside: false };
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
    let call = Call { dataset, memory, here, there, list, is_inside: false };
    // SAFETY: the caller's promise.
    match unsafe { door::write(host, &call, values) } {
        Outcome::Done(_) => 0,
        Outcome::Failed(why) => door::fail(host, &why),
        // SAFETY: as above.
        Outcome::Native(_) => unsafe { (host.real.write)(dataset, memory, here, there, list, values) },
    }
}
