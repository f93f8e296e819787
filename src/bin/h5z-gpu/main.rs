// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one bound in every tool's words, frames in files, and what is wrong when something is.
//!
//! Exit status: 0 as asked; 1 damaged data, a broken bound, a file that cannot be read; 2 a request that contradicts itself.

/// As `println!`, but whoever reads may stop, as in `h5z-gpu words abs 1e-3 | head -1`: then nothing is left to do.
macro_rules! say {
    ($($text:tt)*) => { crate::say(format_args!($($text)*)) };
}

mod abi;
mod args;
mod bench;
mod doctor;
mod elf;
mod elsewhere;
mod files;
mod hdf5;
mod judge;
mod verify;
mod words;

use clap::{Parser, Subcommand};
use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "h5z-gpu", version, about = "Error-bounded and lossless compression of floating-point chunks")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says a bound in every tool's words (`words abs 1e-3`), or explains words (`words 11003`)
    Words(words::Args),
    /// Encodes a file of raw numbers into one frame
    Compress(files::Compress),
    /// Decodes a frame into raw numbers
    Decompress(files::Decompress),
    /// Shows what a frame says about itself
    Inspect(files::Inspect),
    /// Compares original and reconstruction (raw or a frame) and judges the bound exactly
    Verify(verify::Args),
    /// Times encoding and decoding in memory
    Bench(bench::Args),
    /// Prints the line that lets HDF5 find the plugin, for `eval "$(h5z-gpu env)"`
    Env,
    /// Checks plugin path, HDF5 libraries, variables, threads and backends; status 1 when something is wrong
    Doctor(doctor::Args),
    /// Proposes a bound for each variable of a file; in the Python package
    Advise(elsewhere::Args),
    /// Compresses a whole HDF5 or netCDF-4 file; in the Python package
    Repack(elsewhere::Args),
    /// Copies a damaged file and fills what is lost; in the Python package
    Recover(elsewhere::Args),
    /// Opens an HDF5 library or a plugin, for `doctor`
    #[command(hide = true)]
    Probe(hdf5::Probe),
}

/// Why the program ends without what was asked.
pub(crate) enum Fail {
    /// The request contradicts itself: status 2.
    Refused(String),
    /// The data or the machine is at fault: status 1.
    Wrong(String),
}

pub(crate) type Outcome<T = ()> = Result<T, Fail>;

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fail::Refused(text) | Fail::Wrong(text)) = self;
        f.write_str(text)
    }
}

impl From<h5z_gpu::Error> for Fail {
    fn from(e: h5z_gpu::Error) -> Self {
        match e {
            h5z_gpu::Error::Params { .. } => Fail::Refused(e.to_string()),
            _ => Fail::Wrong(e.to_string()),
        }
    }
}

fn say(text: fmt::Arguments<'_>) {
    let Err(e) = writeln!(std::io::stdout(), "{text}") else { return };
    if e.kind() != ErrorKind::BrokenPipe {
        eprintln!("h5z-gpu: standard output: {e}");
    }
    std::process::exit(1);
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Words(a) => words::run(&a),
        Command::Compress(a) => files::compress(&a),
        Command::Decompress(a) => files::decompress(&a),
        Command::Inspect(a) => files::inspect(&a),
        Command::Verify(a) => verify::run(&a),
        Command::Bench(a) => bench::run(&a),
        Command::Env => doctor::environment(),
        Command::Doctor(a) => doctor::run(&a),
        Command::Advise(a) => elsewhere::run("advise", &a),
        Command::Repack(a) => elsewhere::run("repack", &a),
        Command::Recover(a) => elsewhere::run("recover", &a),
        Command::Probe(a) => hdf5::probe(&a),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            eprintln!("{fail}");
            ExitCode::from(match fail {
                Fail::Wrong(_) => 1,
                Fail::Refused(_) => 2,
            })
        }
    }
}
