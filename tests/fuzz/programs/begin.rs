// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the three programs share: libFuzzer over one of a list of targets, which `H5Z_GPU_FUZZ_TARGET` names.

use crate::targets::counting::Counting;
use crate::targets::{self, Target};
use std::sync::OnceLock;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TARGET: OnceLock<Target> = OnceLock::new();

/// Before the first input.
pub fn begin(list: &[Target]) {
    targets::begin();
    let name = std::env::var("H5Z_GPU_FUZZ_TARGET").unwrap_or_default();
    let found = list.iter().find(|t| t.0 == name);
    let names: Vec<&str> = list.iter().map(|t| t.0).collect();
    TARGET.get_or_init(|| *found.unwrap_or_else(|| panic!("H5Z_GPU_FUZZ_TARGET: one of {names:?}")));
}

/// One input.
pub fn run(data: &[u8]) {
    TARGET.get().expect("set before the first input").1(data);
}
