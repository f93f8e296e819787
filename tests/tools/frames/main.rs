// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bare numbers and frames, one in a file, for those who work on codecs: users have files of HDF5 and netCDF, and the
//! program h5z-gpu.
//!
//! ```text
//! frames compress RAW FRAME --dtype f32 --dims 100x500x500 mode=abs,bound=1e-3
//! frames inspect FRAME
//! frames verify RAW FRAME
//! frames bench RAW --dtype f32 --dims 100x500x500 --threads 1,2
//! ```
//!
//! Exit status: 0 as asked; 1 damaged data, a broken bound, a file that cannot be read; 2 a request that contradicts
//! itself.

/// As `println!`, but whoever reads may stop: then nothing is left to do.
macro_rules! say {
    ($($text:tt)*) => { crate::say(format_args!($($text)*)) };
}

mod args;
mod bench;
mod files;
mod verify;

use clap::{Parser, Subcommand};
use std::fmt;
use std::io::Write;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "frames", about = "Bare numbers and frames of h5z-gpu, for developers")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
}

/// Why the program ends without what was asked.
pub(crate) enum Fail {
    /// The request contradicts itself: status 2.
    Refused(String),
    /// The data is at fault: status 1.
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
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(1);
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Compress(a) => files::compress(&a),
        Command::Decompress(a) => files::decompress(&a),
        Command::Inspect(a) => files::inspect(&a),
        Command::Verify(a) => verify::run(&a),
        Command::Bench(a) => bench::run(&a),
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
