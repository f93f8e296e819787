// SPDX-License-Identifier: MIT OR Apache-2.0
//! libFuzzer over the targets of `FRAMES`. A program of its own, for libFuzzer looks at every counter after each input.

#![no_main]

mod begin;
#[path = "../targets/mod.rs"]
#[allow(dead_code)] // the targets of the other programs
mod targets;

libfuzzer_sys::fuzz_target!(init: { begin::begin(&targets::FRAMES) }, |data: &[u8]| begin::run(data));
