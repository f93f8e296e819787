// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program `h5z-gpu` for machines with and without Python: bounds in every tool's words, where the plugin is, and
//! why HDF5 does not find it.
//!
//! The Python package's program of this name hands these commands to this one, which lies beside the plugin, and has
//! the rest, for HDF5 and netCDF files.
//!
//! Exit status: 0 as asked; 1 something was found that has to be done; 2 a request that contradicts itself.

/// As `println!`, but whoever reads may stop, as in `h5z-gpu words abs 1e-3 | head -1`: then nothing is left to do.
macro_rules! say {
    ($($text:tt)*) => { crate::say(format_args!($($text)*)) };
}

mod abi;
mod cuda;
mod doctor;
mod library;
mod places;
mod probe;
mod round_trip;
#[cfg(unix)]
mod run;
mod variable;
mod words;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "h5z-gpu", version = h5z_gpu::plugin::VERSION)]
#[command(about = "Error-bounded and lossless compression of floating-point data in HDF5")]
#[command(
    after_help = "For HDF5 and netCDF-4 files the Python package adds advise, repack, verify, inspect and recover."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says a bound in every tool's words (`words abs 1e-3`), or explains words (`words 11003`)
    Words(words::Args),
    /// Prints the line that lets HDF5 find the plugin: `eval "$(h5z-gpu env)"`, in PowerShell
    /// `h5z-gpu env | Invoke-Expression`
    Env(places::Packages),
    /// Prints the folder of the plugin
    Path,
    /// Finds out why files do not open or data is not compressed: plugin, HDF5 libraries, variables, GPU
    Doctor(doctor::Args),
    /// Runs a program whose HDF5 reads and writes many chunks at a time (`run -- h5repack …`)
    #[cfg(unix)]
    Run(run::Args),
    /// Opens an HDF5 library, a plugin or the driver, for `doctor`
    #[command(hide = true)]
    Probe(probe::Args),
    /// Commands for files, which the Python package has
    #[command(external_subcommand)]
    Elsewhere(Vec<OsString>),
}

/// Why the program ends without what was asked.
pub(crate) enum Fail {
    /// The request contradicts itself: status 2.
    Refused(String),
    /// The machine is at fault: status 1.
    Wrong(String),
    /// What was found has been told: status 1.
    Told,
    /// The program that `run` was to start did not start: the status that a shell or `env` ends with then.
    #[cfg(unix)]
    NotStarted(u8, String),
}

pub(crate) type Outcome<T = ()> = Result<T, Fail>;

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fail::Refused(text) | Fail::Wrong(text) => f.write_str(text),
            Fail::Told => Ok(()),
            #[cfg(unix)]
            Fail::NotStarted(_, text) => f.write_str(text),
        }
    }
}

impl From<h5z_gpu::Error> for Fail {
    fn from(e: h5z_gpu::Error) -> Self {
        Fail::Refused(e.to_string())
    }
}

fn say(text: fmt::Arguments<'_>) {
    say_bytes(text.to_string().as_bytes());
}

/// The same of a line with a path in it, whose bytes need not be text.
fn say_bytes(line: &[u8]) {
    let Err(e) = std::io::stdout().write_all(&[line, b"\n"].concat()) else { return };
    if e.kind() != ErrorKind::BrokenPipe {
        eprintln!("h5z-gpu: standard output: {e}");
    }
    std::process::exit(1);
}

/// Says where a command is that is not here.
fn elsewhere(typed: &[OsString]) -> Outcome {
    const IN_PYTHON: [&str; 5] = ["advise", "repack", "verify", "inspect", "recover"];
    let line: String = typed.iter().map(|word| format!(" {}", word.to_string_lossy())).collect();
    let name = typed.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    Err(Fail::Refused(if IN_PYTHON.contains(&&*name) {
        format!(
            "h5z-gpu: {name} is a command of the Python package, which knows HDF5 and netCDF files: install its \
             wheel, which `make wheel` in the sources builds, then python -m h5z_gpu{line}"
        )
    } else if cfg!(windows) && name == "run" {
        "h5z-gpu: run puts libraries of Unix before a program; on Windows programs reach the plugin by \
         HDF5_PLUGIN_PATH, which h5z-gpu env sets"
            .into()
    } else {
        format!("h5z-gpu: there is no command {name:?}; h5z-gpu --help lists them")
    }))
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Words(a) => words::run(&a),
        Command::Env(a) => variable::run(&a),
        Command::Path => {
            variable::plugin().map(|file| say_bytes(file.parent().unwrap_or(&file).as_os_str().as_encoded_bytes()))
        }
        Command::Doctor(a) => doctor::run(&a),
        #[cfg(unix)]
        Command::Run(a) => run::run(&a),
        Command::Probe(a) => probe::run(&a),
        Command::Elsewhere(typed) => elsewhere(&typed),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fail::Told) => ExitCode::from(1),
        Err(fail) => {
            eprintln!("{fail}");
            ExitCode::from(match fail {
                Fail::Refused(_) => 2,
                Fail::Wrong(_) | Fail::Told => 1,
                #[cfg(unix)]
                Fail::NotStarted(status, _) => status,
            })
        }
    }
}
