// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays in a device's memory: read and written in place, so that only frames cross the bus.
//!
//! ```text
//!   array ── gather boxes ──▶ dense chunks ── codec ──▶ frames ── pack ──▶ one copy to page-locked memory ──▶ next()
//!   file ── preadv ─▶ page-locked memory ── one copy ──▶ frames ── codec ──▶ dense chunks ── scatter boxes ──▶ array
//! ```
//!
//! A batch is some 32 MiB of raw bytes on a stream of its own, and several are on their way. DeviceEncoding is driven
//! by whoever takes the frames ([`encode`]); decoding by threads, a batch each at a time ([`decode`]). A chunk that
//! lies in the array whole, dense and aligned is neither gathered nor scattered. Frames come out of a batch together
//! (`fetch`); under a bound 16-bit numbers are f32 for the codecs (`halves`). What the kernels do not take goes to the
//! CPU. Where the device has no memory to work in, the host codes, and values are copied straight out of the array and
//! into it ([`by_host`]).

mod base;
mod by_host;
mod choose;
mod copies;
mod copy;
mod decode;
mod encode;
mod fetch;
mod halves;
mod job;
mod range;
mod runs;
mod units;

pub(super) use crate::cuda::leave;
pub(super) use base::{device_of, enter};
pub(super) use copy::copy;
pub(super) use decode::decode;
pub(super) use encode::DeviceEncoding;
pub(super) use range::range;
