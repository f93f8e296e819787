// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program that hosts the engine needs, such as the HDF5 plugin and the command line: one log, the environment
//! variables, the floating-point state, how much memory there is.

pub mod available;
#[cfg(any(unix, windows))]
pub mod elf;
#[cfg(any(unix, windows))]
#[allow(unsafe_code)]
pub mod file;
#[allow(unsafe_code)]
pub mod float_state;
pub mod folders;
pub mod log;
pub mod settings;
pub mod threads;
