// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run`: a program that cannot be changed, whose HDF5 reads and writes many chunks at a time.
//!
//! The library `libh5zgpu_preload.so` stands before HDF5 in that program and in what it starts, and in nothing else:
//! the variables are set for it alone. Never put them into a shell's profile.

use crate::places::{PLUGIN, Packages};
use crate::{Fail, Outcome, variable};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File name of the library that stands before HDF5.
pub(crate) const PRELOAD: &str = "libh5zgpu_preload.so";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// At its end the program says of each dataset which way its calls went, and why
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    packages: Packages,
    /// The program and its arguments, behind `--`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM ARGS")]
    line: Vec<OsString>,
}

/// Starts the program in this one's place.
pub(crate) fn run(a: &Args) -> Outcome {
    let plugin = variable::plugin()?;
    let library = preload(&plugin)?;
    let mut command = Command::new(&a.line[0]);
    let mut libraries = OsString::from(library);
    if let Some(theirs) = env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        libraries.push(" ");
        libraries.push(theirs);
    }
    command.args(&a.line[1..]).env("LD_PRELOAD", libraries);
    let searched = env::var_os("HDF5_PLUGIN_PATH").unwrap_or_default();
    if !env::split_paths(&searched).any(|folder| folder.join(PLUGIN).is_file()) {
        command.env("HDF5_PLUGIN_PATH", variable::value(&a.packages)?);
    }
    if a.explain {
        command.env("H5Z_GPU_EXPLAIN", "1");
    }
    let why = command.exec();
    Err(Fail::Wrong(format!("h5z-gpu run: {}: {why}", a.line[0].to_string_lossy())))
}

/// The library in ../preload of the plugin's folder, which the loader can open.
fn preload(plugin: &Path) -> Outcome<PathBuf> {
    let file = plugin.parent().and_then(Path::parent).map(|f| f.join("preload").join(PRELOAD)).unwrap_or_default();
    let file = file.canonicalize().map_err(|why| {
        Fail::Wrong(format!(
            "h5z-gpu run: {}: {why}; in the sources `make` puts it there, else install again",
            file.display()
        ))
    })?;
    // SAFETY: the library runs nothing when it is opened.
    match unsafe { libloading::Library::new(&file) } {
        Ok(library) => drop(library),
        Err(why) => return Err(Fail::Wrong(format!("h5z-gpu run: {} cannot be loaded: {why}", file.display()))),
    }
    if file.to_string_lossy().contains([' ', ':']) {
        let file = file.display();
        return Err(Fail::Wrong(format!(
            "h5z-gpu run: {file}: the loader takes no path with a blank or a colon, move it"
        )));
    }
    Ok(file)
}
