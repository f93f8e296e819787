// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA compiler: found, asked what it can do, and started.
//!
//! NVRTC of CUDA 12 is the rule: its images run on every driver from 525 on. An nvcc serves as well; its images need a
//! driver of its own major release. Looked for in this order: the nvcc of `H5Z_GPU_NVCC`, the NVRTC of `H5Z_GPU_NVRTC`,
//! the nvcc of `CUDA_HOME` or `CUDA_PATH`, the NVRTC of the Python package `nvidia-cuda-nvrtc-cu12`, an nvcc in `PATH`.

use super::files;
use super::nvrtc::{self, Nvrtc};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, hash};

/// What is compiled for: machine code of an architecture, or PTX, from which a driver makes code for newer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Target {
    pub(crate) ptx: bool,
    pub(crate) arch: u32,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", if self.ptx { "compute" } else { "sm" }, self.arch)
    }
}

enum Kind {
    Nvcc,
    Nvrtc,
}

/// A compiler that runs.
pub(crate) struct Compiler {
    kind: Kind,
    path: PathBuf,
    /// Major and minor.
    pub(crate) release: (u32, u32),
    archs: Vec<u32>,
    /// What it says of its version.
    version: String,
}

impl hash::Hash for Compiler {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.version.hash(state);
        [false, true].map(|ptx| self.flags(Target { ptx, arch: 0 })).hash(state);
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Nvcc => "nvcc",
            Kind::Nvrtc => "NVRTC",
        };
        write!(f, "{name} {}.{}", self.release.0, self.release.1)
    }
}

impl Compiler {
    /// The first that is found and works.
    pub(crate) fn find() -> Result<Compiler, String> {
        let from_env = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let home = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(from_env).map(|p| p.join("bin/nvcc"));
        let path = env::var_os("PATH").unwrap_or_default();
        let mut candidates: Vec<(Kind, PathBuf)> = Vec::new();
        candidates.extend(from_env("H5Z_GPU_NVCC").map(|p| (Kind::Nvcc, p)));
        candidates.extend(from_env("H5Z_GPU_NVRTC").map(|p| (Kind::Nvrtc, p)));
        candidates.extend(home.map(|p| (Kind::Nvcc, p)));
        candidates.extend(python_nvrtc().map(|p| (Kind::Nvrtc, p)));
        let in_path = env::split_paths(&path).map(|p| p.join("nvcc")).filter(|p| p.is_file());
        candidates.extend(in_path.map(|p| (Kind::Nvcc, p)));
        let mut why = Vec::new();
        for (kind, path) in candidates {
            match Self::ask(kind, path) {
                Ok(compiler) => return Ok(compiler),
                Err(fault) => why.push(fault),
            }
        }
        let tried = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
        Err(format!(
            "no CUDA compiler{tried}: `make plugin` installs NVRTC, or name one with H5Z_GPU_NVRTC, H5Z_GPU_NVCC or \
             CUDA_HOME"
        ))
    }

    fn ask(kind: Kind, path: PathBuf) -> Result<Compiler, String> {
        match kind {
            Kind::Nvrtc => {
                let library = Nvrtc::open(&path)?;
                let (release, archs) = (library.release()?, library.archs()?);
                // The package's version has a third number, which the library does not tell; its length does.
                let len = std::fs::metadata(&path).map_or(0, |m| m.len());
                let version = format!("NVRTC {release:?}, {len} bytes");
                Ok(Compiler { kind, path, release, archs, version })
            }
            Kind::Nvcc => {
                let ask = |arg: &str| {
                    let done = Command::new(&path).arg(arg).output().map_err(|e| format!("{}: {e}", path.display()))?;
                    Ok::<_, String>(String::from_utf8_lossy(&done.stdout).into_owned())
                };
                let version = ask("--version")?;
                let release = version.split("release ").nth(1).and_then(|r| r.split([',', '\n']).next());
                let release =
                    release.and_then(|r| r.split_once('.')).and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let release = release.ok_or_else(|| format!("{} does not tell its release", path.display()))?;
                let listed = ask("--list-gpu-arch")?;
                let archs = listed.lines().filter_map(|l| l.strip_prefix("compute_")?.parse().ok()).collect();
                Ok(Compiler { kind, path, release, archs, version })
            }
        }
    }

    /// Whether it makes code for an architecture.
    pub(crate) fn knows(&self, arch: u32) -> bool {
        self.archs.contains(&arch)
    }

    /// Its flags. What it makes of a text depends on these and on its version.
    fn flags(&self, target: Target) -> Vec<String> {
        let mut flags = vec![format!("--gpu-architecture={target}")];
        let all: &[&str] = match self.kind {
            // The oldest architectures of a release are announced as such, which is no fault.
            Kind::Nvcc => &["-O3", "--Werror=all-warnings", "-Wno-deprecated-gpu-targets"],
            // It would say 177 of variables that only the branch not taken of an `if constexpr` uses; nvcc does not.
            Kind::Nvrtc => &["--device-as-default-execution-space", "--diag-suppress=177"],
        };
        flags.extend(
            all.iter().chain(&["--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true"]).map(|f| f.to_string()),
        );
        if !target.ptx {
            flags.push("--ptxas-options=-v".into());
        }
        if matches!(self.kind, Kind::Nvcc) {
            flags.push(if target.ptx { "--ptx" } else { "--cubin" }.into());
        }
        flags
    }

    /// A process that writes the image of `source` to `made`, and what there is to say of it to standard error. The
    /// folder `out` has the header.
    pub(crate) fn command(&self, source: &Path, made: &Path, target: Target, out: &Path) -> Command {
        let folders = [Path::new("."), out].into_iter().map(|folder| format!("--include-path={}", folder.display()));
        let flags: Vec<String> = self.flags(target).into_iter().chain(folders).collect();
        match self.kind {
            Kind::Nvcc => {
                let mut nvcc = Command::new(&self.path);
                nvcc.args(flags).arg("-o").args([made, source]);
                nvcc
            }
            Kind::Nvrtc => nvrtc::command(&self.path, source, made, &flags),
        }
    }
}

/// NVRTC of the `nvidia-cuda-nvrtc-cu12` package of the active Python environment.
fn python_nvrtc() -> Option<PathBuf> {
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
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut found = said.lines().flat_map(|dir| files(&Path::new(dir).join("cuda_nvrtc/lib")));
    found.find(|p| p.file_name().is_some_and(|name| name == "libnvrtc.so.12"))
}
