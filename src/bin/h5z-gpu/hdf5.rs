// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the HDF5 libraries of this machine, and learns where they look for plugins and whether they load ours.
//!
//! This program is not linked with HDF5. It opens each library at run time, in a child process (`probe`): what does not load
//! or crashes ends the child alone, and each answer is that of a program which starts with the variables of now.

use crate::abi::{FilterAvail, GetLibversion, PluginFolder, PluginFolders, PluginInfo};
use crate::{Fail, Outcome};
use libloading::Library;
use std::collections::BTreeSet;
use std::env;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// File name of the plugin.
pub(crate) const PLUGIN: &str = "libh5zgpu.so";
/// Filter id in HDF5's testing range.
pub(crate) const ID: u32 = 443;

#[derive(clap::Args)]
pub(crate) struct Probe {
    library: PathBuf,
}

/// What a library answered.
#[derive(Default)]
pub(crate) struct Answer {
    /// HDF5's version; empty for a plugin.
    pub(crate) version: String,
    /// Where it looks for plugins, in this order.
    pub(crate) folders: Vec<PathBuf>,
    /// The file that it loaded for our filter, or that is our filter.
    pub(crate) plugin: Option<PathBuf>,
}

/// Opens `library` in a child process. `variable` says whether the child sees HDF5_PLUGIN_PATH.
pub(crate) fn query(library: &Path, variable: bool) -> Outcome<Answer> {
    let wrong = |e: std::io::Error| Fail::Wrong(e.to_string());
    let mut child = Command::new(env::current_exe().map_err(wrong)?);
    child.arg("probe").arg(library).stdin(Stdio::null());
    if !variable {
        child.env_remove("HDF5_PLUGIN_PATH");
    }
    let end = child.output().map_err(wrong)?;
    if !end.status.success() {
        let said = String::from_utf8_lossy(&end.stderr);
        let reason = said.lines().last().unwrap_or_default();
        return Err(Fail::Wrong(match reason {
            "" => format!("opening it ended with {}", end.status),
            said => said.into(),
        }));
    }
    let mut answer = Answer::default();
    for line in String::from_utf8_lossy(&end.stdout).lines() {
        match line.split_once(' ') {
            Some(("version", v)) => answer.version = v.into(),
            Some(("folder", f)) => answer.folders.push(f.into()),
            Some(("plugin", p)) => answer.plugin = Some(p.into()),
            _ => {}
        }
    }
    Ok(answer)
}

/// The child's part: prints what `query` reads.
pub(crate) fn probe(a: &Probe) -> Outcome {
    let wrong = |e: libloading::Error| Fail::Wrong(format!("{e}"));
    // SAFETY: the constructors of an HDF5 library or plugin are run, as every program that uses it does; this process has
    // nothing to lose.
    let library = unsafe { Library::new(&a.library) }.map_err(wrong)?;
    // SAFETY: HDF5's own signatures, the same in every release that has the function; `text` and the numbers outlive the calls.
    unsafe {
        if let Ok(info) = library.get::<PluginInfo>(b"H5PLget_plugin_info") {
            if info().as_ref().is_none_or(|class| class.id != ID as c_int) {
                return Err(Fail::Wrong(format!("it is a plugin for another filter than {ID}")));
            }
            say!("plugin {}", a.library.display());
            return Ok(());
        }
        let version = library.get::<GetLibversion>(b"H5get_libversion").map_err(wrong)?;
        let (mut major, mut minor, mut release) = (0, 0, 0);
        version(&mut major, &mut minor, &mut release);
        say!("version {major}.{minor}.{release}");
        let folders = library.get::<PluginFolders>(b"H5PLsize").map_err(wrong)?;
        let folder = library.get::<PluginFolder>(b"H5PLget").map_err(wrong)?;
        let mut count = 0;
        folders(&mut count);
        for k in 0..count {
            let mut text = [0u8; 4096];
            let len = usize::try_from(folder(k, text.as_mut_ptr().cast(), text.len())).unwrap_or(0);
            say!("folder {}", String::from_utf8_lossy(&text[..len.min(text.len() - 1)]));
        }
        if library.get::<FilterAvail>(b"H5Zfilter_avail").map_err(wrong)?(ID as c_int) > 0 {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let mut files = maps.lines().filter_map(|l| l.find('/').map(|at| &l[at..]));
            say!("plugin {}", files.find(|f| f.ends_with(PLUGIN)).unwrap_or("under another name"));
        }
    }
    Ok(())
}

/// HDF5 libraries of this machine: in the loader's usual folders, those that variables name, and in the active Python
/// environment, whose wheels bring their own.
pub(crate) fn libraries() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("LD_LIBRARY_PATH").iter().flat_map(env::split_paths).collect();
    folders.extend(
        ["HDF5_DIR", "HDF5_ROOT", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(|r| Path::new(&r).join("lib")),
    );
    folders.extend(packages().iter().flat_map(|p| entries(p)).filter(|p| name(p).ends_with(".libs")));
    folders.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
    folders.extend(["/usr/local/hdf5/lib", "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    let mut seen = BTreeSet::new();
    let files = folders.iter().flat_map(|f| entries(f)).filter(|p| is_hdf5(name(p)));
    files.filter_map(|p| p.canonicalize().ok()).filter(|p| seen.insert(p.clone())).collect()
}

/// The folder of plugins that netCDF4 for Python brings. It sets the variable to that folder, where nobody has set it.
pub(crate) fn netcdf4_plugins() -> Vec<PathBuf> {
    packages().into_iter().map(|p| p.join("netCDF4/plugins")).filter(|p| p.is_dir()).collect()
}

/// Folders of packages of the active Python environment.
fn packages() -> Vec<PathBuf> {
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os);
    let pythons = roots.flat_map(|r| entries(&Path::new(&r).join("lib"))).filter(|p| name(p).starts_with("python3"));
    pythons.map(|p| p.join("site-packages")).collect()
}

/// libhdf5.so, libhdf5_serial.so.103, libhdf5-9e18f0c6.so.320; not its high-level, C++ and Fortran companions.
fn is_hdf5(name: &str) -> bool {
    let companions = ["hl", "cpp", "fortran", "f90", "java", "tools"];
    name.starts_with("libhdf5") && name.contains(".so") && !companions.iter().any(|c| name.contains(c))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.into_iter()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
}
