// SPDX-License-Identifier: MIT OR Apache-2.0
//! libFuzzer over the targets of `CALLS`; or writes the seeds of all targets into the folder that
//! `H5Z_GPU_FUZZ_SEEDS` names.

#![no_main]

mod begin;
mod seeds;
#[path = "../targets/mod.rs"]
#[allow(dead_code)] // the targets of the other programs
mod targets;

fn start() {
    if let Some(folder) = std::env::var_os("H5Z_GPU_FUZZ_SEEDS") {
        seeds::write(folder.into()).expect("a folder that can be written");
        std::process::exit(0);
    }
    begin::begin(&targets::CALLS);
}

libfuzzer_sys::fuzz_target!(init: { start() }, |data: &[u8]| begin::run(data));
