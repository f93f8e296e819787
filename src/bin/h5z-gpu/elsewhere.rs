// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the Python package's command line does, which has this program's name: HDF5 and netCDF files, and .npy.

use crate::{Fail, Outcome};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What to type for it.
const INSTALL: &str = "install its wheel, which `make wheel` in the sources builds";

/// First bytes of files that are neither numbers nor frames.
const MARKS: [(&[u8], &str); 5] = [
    (b"\x89HDF\r\n\x1a\n", "an HDF5 or netCDF-4 file"),
    (b"CDF\x01", "a netCDF-3 file"),
    (b"CDF\x02", "a netCDF-3 file"),
    (b"CDF\x05", "a netCDF-3 file"),
    (NUMPY, "a .npy file"),
];
const NUMPY: &[u8] = b"\x93NUMPY";

/// Arguments of a command that is not here.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Says where the command `name` is.
pub(crate) fn run(name: &str, a: &Args) -> Outcome {
    let rest: String = a.rest.iter().map(|r| format!(" {}", r.to_string_lossy())).collect();
    let rest = if rest.is_empty() { " FILE".into() } else { rest };
    Err(Fail::Refused(format!(
        "h5z-gpu: {name} is a command of the Python package, which knows HDF5 and netCDF: {INSTALL}, then python -m h5z_gpu {name}{rest}"
    )))
}

/// Refuses a file of datasets, of which this program would take the header for numbers.
pub(crate) fn refuse(path: &Path) -> Outcome {
    let mut head = Vec::new();
    // What cannot be opened is refused by whoever reads it.
    if let Ok(file) = File::open(path) {
        _ = file.take(8).read_to_end(&mut head);
    }
    let Some((mark, what)) = MARKS.iter().find(|(mark, _)| head.starts_with(mark)) else { return Ok(()) };
    let file = path.display();
    if *mark == NUMPY {
        return Err(Fail::Refused(format!(
            "h5z-gpu: {file} is {what}, with a header before its numbers; write them alone, in Python: \
             numpy.load({:?}).tofile('raw')",
            path.to_string_lossy()
        )));
    }
    let command = match std::env::args().nth(1).as_deref() {
        Some("verify") => "verify",
        Some("compress" | "bench") => "advise",
        _ => "inspect",
    };
    Err(Fail::Refused(format!(
        "h5z-gpu: {file} is {what}, and this program takes bare numbers and frames; the Python package has the same \
         command for such files: {INSTALL}, then python -m h5z_gpu {command} {file}"
    )))
}
