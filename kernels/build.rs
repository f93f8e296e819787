// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `*.cu` of this folder into images that the library embeds; those of `../tests/gpu/cuda` with the
//! feature `testing` only.
//!
//! `H5Z_GPU_CUDA` decides: `auto` (default) builds without GPU code, and says so, where no compiler works; `require`
//! fails then; `off` does not look for one. `build/compiler.rs` says which one is taken. `H5Z_GPU_ARCHS` ("90", or
//! "80,90+PTX", with PTX for newer ones) names architectures, all by default. Written to `OUT_DIR`:
//!
//! - `h5z_abi.cuh`: the format's constants, and the structs shared with the host, with their layout asserted;
//! - `sm_ARCH.zst` for each architecture: machine code of every kernel file; `compute_ARCH.zst`: PTX for newer ones;
//! - `images.rs`: the list of these and, from the compiler's reports, of the kernels in each.
//!
//! A file is compiled for an architecture when its text, a text that it includes, the flags or the compiler are new.
//! What was compiled before is kept under a hash of these in the folder `H5Z_GPU_KERNEL_CACHE`, else in `OUT_DIR`. In
//! the repository `.cargo/config.toml` names a folder for all profiles and features.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/compiler.rs"]
mod compiler;
#[path = "build/header.rs"]
mod header;
#[path = "build/images.rs"]
mod images;
#[path = "build/kernels.rs"]
mod kernels;
#[path = "build/nvrtc.rs"]
mod nvrtc;
#[allow(dead_code)]
#[path = "build/release.rs"]
mod release;

/// Environment that changes what is found.
const CONSULTED: [&str; 10] = [
    "H5Z_GPU_CUDA",
    "H5Z_GPU_NVCC",
    "H5Z_GPU_NVRTC",
    "H5Z_GPU_ARCHS",
    "H5Z_GPU_KERNEL_CACHE",
    "CUDA_HOME",
    "CUDA_PATH",
    "PATH",
    "VIRTUAL_ENV",
    "H5Z_GPU_PYTHON",
];

fn main() {
    if nvrtc::compiled_here() {
        return;
    }
    let sources = sources();
    // Not the folder itself, which holds a README. A new file is of use once the engine launches its kernels.
    for file in &sources {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    if Path::new("../src/engine/gpu/plans").is_dir() {
        println!("cargo:rerun-if-changed=../src/engine/gpu/plans");
    }
    for name in CONSULTED {
        println!("cargo:rerun-if-env-changed={name}");
    }
    release::tell(sources);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mode = env::var("H5Z_GPU_CUDA").unwrap_or_else(|_| "auto".into());
    assert!(
        ["auto", "require", "off"].contains(&mode.as_str()),
        "H5Z_GPU_CUDA is {mode:?}; allowed are auto, require, off"
    );
    let mut text = images::list(None, "");
    if mode != "off" {
        match kernels::build(&out) {
            Ok(made) => text = made,
            Err(why) if mode == "require" => panic!("H5Z_GPU_CUDA=require, but the kernels cannot be built: {why}"),
            Err(why) => println!("cargo:warning=built WITHOUT GPU code (CPU only): {why}"),
        }
    }
    fs::write(out.join("images.rs"), text).expect("OUT_DIR can be written");
}

/// All that the kernels are made of. A package of this crate has more: a manifest that cargo wrote, and what it builds.
fn sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    release::list(Path::new("."), &mut all);
    let is_source = |p: &PathBuf| p.extension().is_some_and(|x| x == "cu" || x == "cuh" || x == "rs");
    all.retain(|p| is_source(p) && !p.starts_with("./target"));
    all
}

/// Files of a folder in the order of their names; none where there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.sort();
    all
}

/// Writes a file whole or not at all: another build may write the same at the same time.
fn keep(name: &Path, bytes: &[u8]) -> Result<(), String> {
    let new = name.with_extension(format!("new-{}", std::process::id()));
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, name)).map_err(|e| format!("{}: {e}", name.display()))
}
