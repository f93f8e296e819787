// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind every door through which calls of programs that cannot be changed arrive: `preload/`, which
//! stands before HDF5's functions, and `vol/`, a connector inside of HDF5. A door says whose HDF5 calls and hands over
//! the arguments; here it is decided which way the call goes.
//!
//! ```text
//! several.rs  calls for several datasets: one by one
//!   │
//! door.rs     few values, another filter, what fits the chunk cache … ──► HDF5's own way
//!   │         decided by questions that are cheap beside what HDF5 would do itself
//! space.rs    both selections are boxes: where in the dataset, and strides in memory
//!   │
//! plugin.rs   h5z_gpu_read_dataset of the plugin, which lies in ../plugin of the door's folder
//!             "another way", or any failure of reading ──► HDF5's own way
//! ```
//!
//! Nothing is kept from one call to the next that could change: no index, no dataset, no open file. Nothing is held
//! back: what a call has written is in HDF5's hands when it returns. A failure to read is left to HDF5, which reads
//! again and gives the error that the program knows. Neither HDF5 nor the plugin is linked.

#![deny(unsafe_op_in_unsafe_fn)]

#[path = "../../plugin/src/table.rs"]
#[macro_use]
mod table;
pub mod door;
pub mod explain;
pub mod hdf5;
pub mod host;
pub mod module;
pub mod newer;
mod plugin;
pub mod several;
mod space;
