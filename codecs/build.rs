// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the crate whether its sources are those of a release: `cfg(released)`. The kernels' script uses this file too.
//!
//! `RELEASE`, in the crate's folder, holds the version and a sum over the sources as both were released; before the
//! first release "none 0". Where a source has changed since, the build is none of a release, and says so; where it is
//! one of the codecs, in every frame (src/FORMAT.md §1). The tool `vectors --release` writes the files.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=src");
    let mut files = Vec::new();
    list(Path::new("src"), &mut files);
    tell(files);
}

/// Compares the sum of a crate's sources with its `RELEASE`.
pub(crate) fn tell(mut files: Vec<PathBuf>) {
    println!("cargo:rerun-if-changed=RELEASE");
    println!("cargo:rustc-check-cfg=cfg(released)");
    files.sort();
    let sources = format!("{:016x}", sum(&files));
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");
    let release = fs::read_to_string("RELEASE").unwrap_or_default();
    if release.split_whitespace().eq([&*version, &*sources]) {
        println!("cargo:rustc-cfg=released");
    }
    println!("cargo:rustc-env=H5Z_GPU_SOURCES={sources}");
}

/// The files of a folder and those below.
pub(crate) fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

/// FNV-1a of the names and bytes of files. Carriage returns are left out: some checkouts have them at the ends of
/// lines. So are backslashes in names.
fn sum(files: &[PathBuf]) -> u64 {
    let mut bytes = Vec::new();
    for file in files {
        bytes.extend(file.to_string_lossy().replace('\\', "/").bytes());
        bytes.extend(fs::read(file).expect("a source can be read").into_iter().filter(|&b| b != b'\r'));
    }
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, &b| (sum ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}
