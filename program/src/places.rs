// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where HDF5 libraries and plugins lie on this machine.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How this system names libraries.
const BEGIN: &str = if cfg!(windows) { "" } else { "lib" };
/// File name of the plugin.
pub(crate) const PLUGIN: &str = match () {
    _ if cfg!(windows) => "h5zgpu.dll",
    _ if cfg!(target_vendor = "apple") => "libh5zgpu.dylib",
    _ => "libh5zgpu.so",
};
/// File name of the library that stands before HDF5, in the folder `preload` beside the plugin's.
pub(crate) const PRELOAD: &str = "libh5zgpu_preload.so";
/// Filter id in HDF5's testing range.
pub(crate) const ID: u32 = 443;

/// Folders of Python's packages, whose wheels bring HDF5 libraries.
#[derive(clap::Args, Clone)]
pub(crate) struct Packages {
    /// Folders with Python packages, written as in PATH, besides those of VIRTUAL_ENV and CONDA_PREFIX
    #[arg(long, value_name = "FOLDERS")]
    packages: Option<std::ffi::OsString>,
    /// The environment that a program lies in
    #[arg(skip)]
    of_program: Option<PathBuf>,
}

impl Packages {
    /// With those of the environment that a program lies in, by its name or path: `ENVIRONMENT/bin/python`.
    #[cfg(unix)]
    pub(crate) fn of_program(&self, program: &Path) -> Packages {
        let searched = env::var_os("PATH").unwrap_or_default();
        let is_path = program.components().count() > 1;
        let mut files = env::split_paths(&searched).map(|folder| folder.join(program));
        let file = if is_path { Some(program.to_path_buf()) } else { files.find(|file| file.is_file()) };
        let file = file.and_then(|file| std::path::absolute(file).ok());
        let of_program = file.and_then(|file| Some(file.parent()?.parent()?.to_path_buf()));
        Packages { of_program, ..self.clone() }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let variables = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(PathBuf::from);
        let roots = variables.chain(self.of_program.clone());
        let pythons = roots.flat_map(|r| match cfg!(windows) {
            true => vec![r.join("Lib")],
            false => entries(&r.join("lib")).filter(|p| name(p).starts_with("python3")).collect(),
        });
        let named = self.packages.iter().flat_map(env::split_paths).filter(|p| !p.as_os_str().is_empty());
        named.chain(pythons.map(|p| p.join("site-packages"))).collect()
    }

    /// The folder of plugins that netCDF4 for Python brings. It sets the variable to that folder, where nobody has set
    /// it.
    pub(crate) fn netcdf4_plugins(&self) -> Vec<PathBuf> {
        self.folders().into_iter().map(|p| p.join("netCDF4/plugins")).filter(|p| p.is_dir()).collect()
    }

    /// Where wheels keep their libraries: PACKAGE.libs beside the package, or PACKAGE/.libs; for macOS
    /// PACKAGE/.dylibs, for Windows also PACKAGE itself.
    fn libraries(&self) -> Vec<PathBuf> {
        let within = if cfg!(target_vendor = "apple") { ".dylibs" } else { ".libs" };
        let inside = self.folders().into_iter().flat_map(|folder| entries(&folder).collect::<Vec<_>>());
        inside.map(|p| if cfg!(windows) || name(&p).ends_with(".libs") { p } else { p.join(within) }).collect()
    }
}

/// The variable of folders in which the loader looks.
const LOADER: &str = match () {
    _ if cfg!(windows) => "PATH",
    _ if cfg!(target_vendor = "apple") => "DYLD_LIBRARY_PATH",
    _ => "LD_LIBRARY_PATH",
};

/// HDF5 libraries of this machine: those named, those of Python's packages, those that the loader knows or variables
/// name, and those in the usual folders; each once.
pub(crate) fn libraries(named: &[PathBuf], packages: &Packages) -> Vec<PathBuf> {
    let roots = ["HDF5_DIR", "HDF5_ROOT", "CONDA_PREFIX", "VIRTUAL_ENV"].iter().filter_map(env::var_os);
    let mut folders = packages.libraries();
    folders.extend(env::var_os(LOADER).iter().flat_map(env::split_paths).filter(|p| !p.as_os_str().is_empty()));
    if cfg!(windows) {
        folders.extend(roots.flat_map(|r| ["bin", "Library/bin"].map(|bin| Path::new(&r).join(bin))));
        let installed =
            env::var_os("ProgramFiles").into_iter().flat_map(|all| entries(&Path::new(&all).join("HDF_Group/HDF5")));
        folders.extend(installed.map(|version| version.join("bin")));
    } else {
        folders.extend(roots.map(|r| Path::new(&r).join("lib")));
        folders.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
        let usual = ["/usr/local/hdf5/lib", "/opt/homebrew/lib", "/usr/local/lib", "/usr/lib64", "/usr/lib"];
        folders.extend(usual.map(PathBuf::from));
    }
    let found = of_the_loader().into_iter().chain(folders.iter().flat_map(|f| entries(f))).filter(|p| is_hdf5(name(p)));
    let mut seen = BTreeSet::new();
    let files = named.iter().cloned().chain(found).filter_map(|p| real(&p));
    files.filter(|p| p.is_file() && seen.insert(p.clone())).collect()
}

/// The path without links; on Windows without the mark that takes its length's limit away, which not every function
/// of a library understands.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let plain = real.to_str().and_then(|text| text.strip_prefix(r"\\?\")).filter(|_| cfg!(windows)).map(PathBuf::from);
    Some(plain.unwrap_or(real))
}

/// What the loader's own list has.
fn of_the_loader() -> Vec<PathBuf> {
    let programs = if cfg!(windows) { &[][..] } else { &["/sbin/ldconfig", "/usr/sbin/ldconfig"] };
    let program = programs.iter().find(|p| Path::new(p).exists());
    let listed =
        program.and_then(|p| Command::new(p).arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output().ok());
    let text = listed.map(|l| String::from_utf8_lossy(&l.stdout).into_owned()).unwrap_or_default();
    let lines = text.lines().filter(|l| l.contains("libhdf5"));
    lines.filter_map(|l| Some(l.split_once("=>")?.1.trim().into())).collect()
}

/// Whether HDF5 takes a file of this name for a library.
fn is_library(name: &str) -> bool {
    let ends: &[&str] = if cfg!(windows) { &[".dll"] } else { &[".so", ".dylib"] };
    name.starts_with(BEGIN) && ends.iter().any(|end| name.contains(end))
}

/// libhdf5.so, libhdf5_serial.so.103, libhdf5-9e18f0c6.so.320, hdf5.dll; not its high-level, C++ and Fortran
/// companions.
fn is_hdf5(name: &str) -> bool {
    let companions = ["hl", "cpp", "fortran", "f90", "java", "tools"];
    let is_hdf5 = name.strip_prefix(BEGIN).is_some_and(|name| name.starts_with("hdf5"));
    is_hdf5 && is_library(name) && !companions.iter().any(|c| name.contains(c))
}

/// The Python package that brings this library in its wheel.
pub(crate) fn package_of(library: &Path) -> Option<String> {
    let folder = library.parent()?;
    let package = match name(folder) {
        ".libs" | ".dylibs" => name(folder.parent()?),
        package if cfg!(windows) && folder.join("__init__.py").is_file() => package,
        libs => libs.strip_suffix(".libs")?,
    };
    Some(if package == "netcdf4" { "netCDF4" } else { package }.into())
}

/// The files of a folder that HDF5 opens when it looks for a filter.
pub(crate) fn opened_by_hdf5(folder: &Path) -> Vec<PathBuf> {
    entries(folder).filter(|p| is_library(name(p))).collect()
}

/// Why a folder of HDF5_PLUGIN_PATH is of no use; `None` where it is there.
pub(crate) fn folder_fault(folder: &str) -> Option<String> {
    let path = Path::new(folder);
    if path.is_dir() {
        return None;
    }
    if folder != folder.trim() {
        let place = if folder.starts_with(char::is_whitespace) { "before" } else { "behind" };
        return Some(format!("no such folder: there is a blank {place} its name"));
    }
    let siblings = path.parent().into_iter().flat_map(entries).filter(|p| p.is_dir());
    let begin = format!("{} ", name(path));
    if let Some(longer) = siblings.into_iter().find(|p| name(p).starts_with(&begin)) {
        let longer = longer.display();
        return Some(format!(
            "no such folder; there is '{longer}': put the value in quotes where it is set, it was cut at the blank"
        ));
    }
    Some(if path.is_file() { "it is a file; name the folder it lies in" } else { "no such folder" }.into())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.into_iter()
}

pub(crate) fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
}
