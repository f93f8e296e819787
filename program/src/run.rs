// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run`: a program that cannot be changed, whose HDF5 reads and writes many chunks at a time.
//!
//! `libh5zgpu_preload.so` stands before HDF5's functions, for that program and for what it starts, and for nothing
//! else: the variables are set for it alone. Never put them into a shell's profile. What is named is opened before.

use crate::places::{PLUGIN, PRELOAD, Packages};
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
    /// Was a connector inside of HDF5
    #[value(hide = true)]
    Vol,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// At its end the program says of each dataset which way its calls went, and why
    #[arg(long)]
    explain: bool,
    /// A bound as one number (511002: 0.01), for its floating-point datasets of two axes or more that ask for deflate
    #[arg(long, value_name = "NUMBER")]
    deflate: Option<u32>,
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
    if a.door == Door::Vol {
        return Err(wrong(
            "--door vol, a connector inside of HDF5, is no longer there: leave the option out, or in Python \
             `import h5z_gpu.everywhere`. Programs that look functions up by name were reached by it alone: they call \
             h5z_gpu.write and read, or h5z_gpu_read_dataset of the C interface",
        ));
    }
    let mut libraries = OsString::from(preload(&plugin)?);
    if let Some(theirs) = env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        libraries.push(" ");
        libraries.push(theirs);
    }
    command.env("LD_PRELOAD", libraries).env("HDF5_PLUGIN_PATH", folders);
    if let Some(number) = a.deflate {
        h5z_gpu::words::request(&[number])?;
        command.env("H5Z_GPU_DEFLATE", number.to_string());
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
