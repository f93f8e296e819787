// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `kernels/*.cu` into images that the library embeds; those of `kernels/testing` with the feature `testing` only.
//!
//! `H5Z_GPU_CUDA` decides: `auto` (default) builds without GPU code, and says so, where no nvcc works; `require` fails then;
//! `off` does not look for one. nvcc is searched as `H5Z_GPU_NVCC`, `CUDA_HOME`/`CUDA_PATH`, `PATH`, then the
//! `nvidia-cuda-nvcc` package of the active Python environment. `H5Z_GPU_ARCHS` names architectures, all by default.
//! Written to `OUT_DIR`:
//!
//! - `h5z_abi.cuh`: the format's constants, and the structs shared with the host, with their layout asserted;
//! - `NAME.fatbin` for every kernel file: machine code for each architecture, and PTX for newer ones;
//! - `NAME.ptxas.txt`: the assembler's report on it;
//! - `images.rs`: the list of images and, from the reports, of kernels per architecture.
//!
//! A file is compiled when its text, a text that it includes, the flags or the compiler are new. What was compiled before is
//! kept under a hash of these in the folder `H5Z_GPU_KERNEL_CACHE`, else in `OUT_DIR`. In the repository `.cargo/config.toml`
//! names a folder for all profiles and features.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

#[allow(dead_code)]
#[path = "src/cuda/abi.rs"]
mod abi;
#[allow(dead_code)]
#[path = "src/constants.rs"]
mod constants;

/// Compute capabilities that get machine code; PTX of the lowest serves the rest. Code for 8.0 runs on 8.6 to 8.9 as well.
const ARCHS: [u32; 4] = [75, 80, 90, 100];
/// The release whose PTX version drivers from 580 on take.
const NVCC_RELEASE: &str = "13.0";
/// Environment that changes what is found.
const CONSULTED: [&str; 9] = [
    "H5Z_GPU_CUDA",
    "H5Z_GPU_NVCC",
    "H5Z_GPU_ARCHS",
    "H5Z_GPU_KERNEL_CACHE",
    "CUDA_HOME",
    "CUDA_PATH",
    "PATH",
    "VIRTUAL_ENV",
    "H5Z_GPU_PYTHON",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Not the folder of the kernels, which holds their README; a new file there is of use once a codec launches its kernels.
    println!("cargo:rerun-if-changed=src/codec");
    println!("cargo:rerun-if-changed=src/constants.rs");
    println!("cargo:rerun-if-changed=src/cuda/abi.rs");
    for name in CONSULTED {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mode = env::var("H5Z_GPU_CUDA").unwrap_or_else(|_| "auto".into());
    assert!(
        ["auto", "require", "off"].contains(&mode.as_str()),
        "H5Z_GPU_CUDA is {mode:?}; allowed are auto, require, off"
    );
    let mut images = String::new();
    if env::var_os("CARGO_FEATURE_CUDA").is_some() && mode != "off" {
        match build(&out) {
            Ok(text) => images = text,
            Err(why) if mode == "require" => panic!("H5Z_GPU_CUDA=require, but the kernels cannot be built: {why}"),
            Err(why) => println!("cargo:warning=built WITHOUT GPU code (CPU only): {why}"),
        }
    }
    let text = format!("pub(crate) static IMAGES: &[Image] = &[\n{images}];\n");
    fs::write(out.join("images.rs"), text).expect("OUT_DIR can be written");
}

/// A kernel file, and where its image is kept: a name that holds a hash of all that decides the image.
struct Source {
    path: PathBuf,
    stem: String,
    kept: PathBuf,
}

/// Compiles every kernel file that is new; returns the entries of `IMAGES`.
fn build(out: &Path) -> Result<String, String> {
    let (nvcc, version) = find_nvcc()?;
    let header = header();
    fs::write(out.join("h5z_abi.cuh"), &header).map_err(|e| e.to_string())?;
    let archs = archs()?;
    let mut flags: Vec<String> =
        ["-fatbin", "-std=c++17", "-O3", "-fmad=false", "-ftz=false", "-prec-div=true", "-Werror", "all-warnings"]
            .into_iter()
            .chain(["--compress-mode=size", "-Xptxas", "-v", "--threads", "0", "-I", "kernels"])
            .map(String::from)
            .collect();
    flags.extend(archs.iter().map(|a| format!("-gencode=arch=compute_{a},code=sm_{a}")));
    flags.push(format!("-gencode=arch=compute_{0},code=compute_{0}", archs[0]));
    let cache = env::var_os("H5Z_GPU_KERNEL_CACHE").map_or_else(|| out.join("kernels"), PathBuf::from);
    fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let sources = sources(&cache, &(version, header, &flags))?;
    let jobs: Vec<_> = sources
        .iter()
        .filter(|s| !s.kept.with_extension("ptxas.txt").is_file())
        .map(|s| {
            let made = out.join(&s.stem).with_extension("fatbin");
            let mut cmd = Command::new(&nvcc);
            cmd.args(&flags).arg("-I").arg(out).arg("-o").arg(&made).arg(&s.path);
            (s, made, cmd.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
        })
        .collect();
    for (source, made, child) in jobs {
        let done =
            child.and_then(std::process::Child::wait_with_output).map_err(|e| format!("{}: {e}", nvcc.display()))?;
        let report = String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            let said: Vec<&str> = report.lines().filter(|l| !l.starts_with("ptxas info")).take(20).collect();
            return Err(format!("{} fails on {}: {}", nvcc.display(), source.path.display(), said.join(" | ")));
        }
        // The report comes last, and says that the image is whole. Another build may do the same at the same time.
        let keep = |name: &Path, bytes: &[u8]| {
            let new = name.with_extension(format!("new-{}", std::process::id()));
            fs::write(&new, bytes).and_then(|()| fs::rename(&new, name))
        };
        fs::read(made)
            .and_then(|image| keep(&source.kept.with_extension("fatbin"), &image))
            .and_then(|()| keep(&source.kept.with_extension("ptxas.txt"), &done.stderr))
            .map_err(|e| format!("{}: {e}", source.kept.display()))?;
    }
    let mut text = String::new();
    for Source { stem, kept, .. } in &sources {
        let [image, report] = ["fatbin", "ptxas.txt"].map(|kind| out.join(stem).with_extension(kind));
        fs::copy(kept.with_extension("fatbin"), &image)
            .and_then(|_| fs::copy(kept.with_extension("ptxas.txt"), &report))
            .map_err(|e| format!("{}: {e}", kept.display()))?;
        let report = fs::read(report).map_err(|e| e.to_string())?;
        writeln!(
            text,
            "    Image {{ stem: {stem:?}, bytes: &Aligned(*include_bytes!({:?})).0, kernels: &[{}] }},",
            image.display().to_string(),
            kernels(&String::from_utf8_lossy(&report)).join(", ")
        )
        .expect("writing to a string");
    }
    Ok(text)
}

/// The kernel files, and cargo told of all that they are made of. `common` decides the image of each.
fn sources(cache: &Path, common: &impl Hash) -> Result<Vec<Source>, String> {
    let mut folders = vec!["kernels"];
    if env::var_os("CARGO_FEATURE_TESTING").is_some() && Path::new("kernels/testing").is_dir() {
        println!("cargo:rerun-if-changed=kernels/testing");
        folders.push("kernels/testing");
    }
    let mut found = Vec::new();
    let mut read = BTreeSet::new();
    for folder in folders {
        for entry in fs::read_dir(folder).map_err(|e| format!("{folder}: {e}"))? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.extension().is_none_or(|x| x != "cu") {
                continue;
            }
            let mut texts = BTreeSet::new();
            with_includes(&path, &mut texts);
            let mut hasher = DefaultHasher::new();
            common.hash(&mut hasher);
            for text in &texts {
                (text, fs::read(text).map_err(|e| format!("{}: {e}", text.display()))?).hash(&mut hasher);
            }
            let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
            let kept = cache.join(format!("{stem}-{:016x}", hasher.finish()));
            read.append(&mut texts);
            found.push(Source { path, stem, kept });
        }
    }
    read.iter().for_each(|text| println!("cargo:rerun-if-changed={}", text.display()));
    found.sort_by(|a, b| a.stem.cmp(&b.stem));
    Ok(found)
}

/// Adds a file of `kernels` and what it includes in quotes, except what this script writes.
fn with_includes(path: &Path, texts: &mut BTreeSet<PathBuf>) {
    // `a/../b` is `b`: every file has one name.
    let path = path.components().fold(PathBuf::new(), |mut path, part| {
        if part.as_os_str() == ".." {
            _ = path.pop()
        } else {
            path.push(part)
        }
        path
    });
    let Ok(text) = fs::read_to_string(&path) else { return };
    if texts.insert(path.clone()) {
        for name in text.lines().filter_map(|l| l.trim().strip_prefix("#include \"")?.split('"').next()) {
            with_includes(&path.with_file_name(name), texts);
            with_includes(&Path::new("kernels").join(name), texts);
        }
    }
}

/// Architectures asked for by `H5Z_GPU_ARCHS` ("90" or "80,90"), or all.
fn archs() -> Result<Vec<u32>, String> {
    let Ok(asked) = env::var("H5Z_GPU_ARCHS") else { return Ok(ARCHS.to_vec()) };
    let list: Option<Vec<u32>> = asked.split(',').map(|a| a.trim().parse().ok().filter(|&a| a >= ARCHS[0])).collect();
    list.filter(|l| !l.is_empty()).ok_or_else(|| format!("H5Z_GPU_ARCHS is {asked:?}; like 90 or 80,90"))
}

/// `(name, architecture, registers, spilled bytes)` of every kernel in ptxas's report.
fn kernels(report: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut name, mut arch, mut spilled) = (String::new(), 0u32, 0u32);
    for line in report.lines() {
        if line.contains("Compiling entry function") {
            let mut quoted = line.split('\'').skip(1).step_by(2);
            name = quoted.next().unwrap_or_default().into();
            arch = quoted.next().and_then(|a| a.trim_start_matches("sm_").parse().ok()).unwrap_or(0);
            spilled = 0;
        } else if let Some(at) = line.find(" bytes spill stores") {
            spilled = line[..at].rsplit([' ', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if let Some(rest) = line.split("Used ").nth(1)
            && !name.is_empty()
        {
            let regs: u32 = rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            found.push(format!("({name:?}, {arch}, {regs}, {spilled})"));
            name.clear();
        }
    }
    found
}

/// Finds an nvcc that runs, and what it says of its version; warns when it is of another release than the one tried.
fn find_nvcc() -> Result<(PathBuf, String), String> {
    let from_env = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut candidates: Vec<PathBuf> = from_env("H5Z_GPU_NVCC").into_iter().collect();
    candidates.extend(["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|n| from_env(n)).map(|p| p.join("bin/nvcc")));
    let path = env::var_os("PATH").unwrap_or_default();
    candidates.extend(env::split_paths(&path).map(|p| p.join("nvcc")).filter(|p| p.is_file()));
    candidates.extend(python_nvcc());
    for nvcc in &candidates {
        let Ok(said) = Command::new(nvcc).arg("--version").output() else { continue };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        if let Some(release) = said.split("release ").nth(1).and_then(|r| r.split([',', '\n']).next()) {
            if release != NVCC_RELEASE {
                println!(
                    "cargo:warning={} is release {release}, tried is {NVCC_RELEASE}: its PTX may need a newer driver",
                    nvcc.display()
                );
            }
            return Ok((nvcc.clone(), said));
        }
    }
    Err("no nvcc in H5Z_GPU_NVCC, CUDA_HOME, CUDA_PATH, PATH or the Python environment; `make plugin` installs one"
        .into())
}

/// nvcc of the `nvidia-cuda-nvcc` package of the active Python environment.
fn python_nvcc() -> Option<PathBuf> {
    let python = match (env::var_os("H5Z_GPU_PYTHON"), env::var_os("VIRTUAL_ENV")) {
        (Some(python), _) => PathBuf::from(python),
        (None, Some(venv)) => Path::new(&venv).join("bin/python3"),
        (None, None) => PathBuf::from("python3"),
    };
    // A path that does not exist would make cargo build again every time.
    if python.is_absolute() && python.exists() {
        println!("cargo:rerun-if-changed={}", python.display());
    }
    let request = "import nvidia; print('\\n'.join(nvidia.__path__))";
    let said = Command::new(python).args(["-c", request]).output().ok()?;
    String::from_utf8_lossy(&said.stdout)
        .lines()
        .map(|dir| Path::new(dir).join("cu13/bin/nvcc"))
        .find(|nvcc| nvcc.is_file())
}

/// Constants and structs for the kernels.
fn header() -> String {
    let mut text = String::from(
        "// Written by build.rs from src/constants.rs and src/cuda/abi.rs.\n#pragma once\n#include <cstddef>\n#include <cstdint>\n\n\
         namespace fmt {\n",
    );
    for (name, value) in constants::FORMAT_CONSTANTS {
        writeln!(text, "constexpr unsigned long long {name} = {value:#x}ull;").expect("writing to a string");
    }
    text.push_str("}\n\n");
    for (name, value) in abi::NUMBERS {
        writeln!(text, "constexpr unsigned int {name} = {value};").expect("writing to a string");
    }
    for s in abi::STRUCTS {
        writeln!(text, "\nstruct {} {{", s.name).expect("writing to a string");
        for f in s.fields {
            let (base, len) = match f.ty.trim_start_matches('[').trim_end_matches(']').split_once(';') {
                Some((base, _)) => (base.trim(), format!("[{}]", f.size / size_of_type(base.trim()))),
                None => (f.ty, String::new()),
            };
            writeln!(text, "    {} {}{len};", c_type(base), f.name).expect("writing to a string");
        }
        text.push_str("};\n");
        writeln!(text, "static_assert(sizeof({0}) == {1}, \"{0} differs from the host's\");", s.name, s.size)
            .expect("writing to a string");
        for f in s.fields {
            writeln!(text, "static_assert(offsetof({0}, {1}) == {2}, \"{0}::{1}\");", s.name, f.name, f.offset)
                .expect("writing to a string");
        }
    }
    text
}

fn c_type(rust: &str) -> &'static str {
    match rust {
        "u64" => "unsigned long long",
        "u32" => "unsigned int",
        "f64" => "double",
        other => panic!("no CUDA type for {other} in src/cuda/abi.rs"),
    }
}

fn size_of_type(rust: &str) -> usize {
    if rust == "u32" { 4 } else { 8 }
}
