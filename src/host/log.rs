// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line to stderr, each text once: `H5Z_GPU_LOG` is `off`, `warn` (default) or `info`.

use super::settings;
use std::collections::HashSet;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

#[derive(PartialEq, PartialOrd, Clone, Copy)]
enum Level {
    Off,
    Warn,
    Info,
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match settings::get("H5Z_GPU_LOG").as_deref() {
        Some("off") => Level::Off,
        Some("info") => Level::Info,
        _ => Level::Warn,
    })
}

fn line(at: Level, text: &str) {
    static SAID: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
    /// Causes remembered at most; more different texts than this are no longer told apart.
    const CAUSES: usize = 1000;
    if level() < at {
        return;
    }
    // A fork while another thread holds the lock must not hang the child: then the line is left out.
    let Ok(mut said) = SAID.try_lock() else { return };
    let said = said.get_or_insert_default();
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
    if said.len() < CAUSES && said.insert(hash) {
        // What reads standard error may have ended, or its disk be full: no reason to fail.
        let _ = writeln!(std::io::stderr(), "h5z-gpu: {text}");
    }
}

/// Something that the user should know and may act on.
pub fn warn(text: &str) {
    line(Level::Warn, text);
}

/// What was chosen: backend, device, threads.
pub fn info(text: &str) {
    line(Level::Info, text);
}
