// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many CPU threads this process takes.

use super::settings;
use codecs::parallel;
use std::sync::OnceLock;

/// CPU threads to use: `H5Z_GPU_THREADS`, else the affinity mask, at most eight.
pub fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| match settings::get("H5Z_GPU_THREADS").and_then(|v| v.parse::<usize>().ok()) {
        Some(n) => n.min(256),
        None => parallel::few(),
    })
}

/// CPU threads for whole arrays: `H5Z_GPU_THREADS`, else as many as the process may use.
pub(crate) fn cores() -> usize {
    match settings::get("H5Z_GPU_THREADS") {
        Some(_) => threads(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}
