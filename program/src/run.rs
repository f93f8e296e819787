// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run`: a program that cannot be changed, whose HDF5 reads and writes many chunks at a time.
//!
//! There are two doors. `libh5zgpu_preload.so` stands before HDF5's functions; `libh5zgpu_vol.so` is a connector that
//! HDF5 1.14 and newer load by themselves. Either is there for that program and for what it starts, and for nothing
//! else: the variables are set for it alone. Never put them into a shell's profile. HDF5 2.0 and 2.2 crash where the
//! connector that the variable names is not found, so what is named is opened before.

use crate::places::{CONNECTOR, PLUGIN, PRELOAD, Packages, VOL};
use crate::{Fail, Outcome, variable};
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where calls of a program are met.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Door {
    /// Before HDF5's functions (LD_PRELOAD): HDF5 1.10.3 and newer
    Preload,
    /// Inside of HDF5, by a connector: HDF5 1.14 to 2.2, also of programs that look functions up by name
    Vol,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// At its end the program says of each dataset which way its calls went, and why
    #[arg(long)]
    explain: bool,
    /// Where its calls are met
    #[arg(long, value_enum, default_value_t = Door::Preload)]
    door: Door,
    #[command(flatten)]
    packages: Packages,
    /// The program and its arguments, behind `--`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    line: Vec<OsString>,
}

/// Starts the program in this one's place.
pub(crate) fn run(a: &Args) -> Outcome {
    let plugin = variable::plugin()?;
    let mut command = Command::new(&a.line[0]);
    command.args(&a.line[1..]);
    let searched = env::var_os("HDF5_PLUGIN_PATH").unwrap_or_default();
    let leads = env::split_paths(&searched).any(|folder| folder.join(PLUGIN).is_file());
    let packages = a.packages.of_program(Path::new(&a.line[0]));
    let folders = if leads { searched } else { variable::value(&packages)? };
    match a.door {
        Door::Preload => {
            let mut libraries = OsString::from(preload(&plugin)?);
            if let Some(theirs) = env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
                libraries.push(" ");
                libraries.push(theirs);
            }
            command.env("LD_PRELOAD", libraries).env("HDF5_PLUGIN_PATH", folders);
        }
        Door::Vol => {
            let mut path = OsString::from(connector(&plugin)?);
            path.push(":");
            path.push(folders);
            command.env("HDF5_VOL_CONNECTOR", CONNECTOR).env("HDF5_PLUGIN_PATH", path);
        }
    }
    if a.explain {
        command.env("H5Z_GPU_EXPLAIN", "1");
    }
    let why = command.exec();
    // 127 and 126 as of a shell: scripts tell a missing program by them.
    let status = if why.kind() == ErrorKind::NotFound { 127 } else { 126 };
    Err(Fail::NotStarted(status, format!("h5z-gpu run: {}: {why}", a.line[0].to_string_lossy())))
}

fn wrong(why: impl std::fmt::Display) -> Fail {
    Fail::Wrong(format!("h5z-gpu run: {why}"))
}

/// The library that stands before HDF5.
fn preload(plugin: &Path) -> Outcome<PathBuf> {
    let file = opened(plugin, "preload", PRELOAD)?;
    if file.to_string_lossy().contains([' ', ':']) {
        let file = file.display();
        return Err(wrong(format!("{file}: the loader takes no path with a blank or a colon, move it")));
    }
    Ok(file)
}

/// The connector's folder, where nothing keeps HDF5 from it.
fn connector(plugin: &Path) -> Outcome<PathBuf> {
    let other = env::var("HDF5_VOL_CONNECTOR").unwrap_or_default();
    if !other.trim().is_empty() && other.split_ascii_whitespace().next() != Some(CONNECTOR) {
        return Err(wrong(format!(
            "HDF5_VOL_CONNECTOR is '{other}': a program has one connector, unset it, or take --door preload"
        )));
    }
    if env::var_os("HDF5_PLUGIN_PRELOAD").is_some_and(|v| v == "::") {
        return Err(wrong("HDF5_PLUGIN_PRELOAD is '::', which forbids HDF5 every plugin: unset it"));
    }
    let file = opened(plugin, "vol", VOL)?;
    if file.to_string_lossy().contains(':') {
        let file = file.display();
        return Err(wrong(format!("{file}: a path with a colon cannot stand in HDF5_PLUGIN_PATH, move it")));
    }
    Ok(file.parent().map(Path::to_path_buf).unwrap_or_default())
}

/// A library in a folder beside the plugin's, which the loader can open.
fn opened(plugin: &Path, folder: &str, name: &str) -> Outcome<PathBuf> {
    let file = plugin.parent().and_then(Path::parent).map(|f| f.join(folder).join(name)).unwrap_or_default();
    let file = file.canonicalize().map_err(|why| {
        wrong(format!("{}: {why}; in the sources `make` puts it there, else install again", file.display()))
    })?;
    // SAFETY: the library runs nothing when it is opened.
    match unsafe { libloading::Library::new(&file) } {
        Ok(library) => drop(library),
        Err(why) => return Err(wrong(format!("{} cannot be loaded: {why}", file.display()))),
    }
    Ok(file)
}
