// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor`: finds out why files do not open, or why data is not compressed.
//!
//! ```text
//! asked, each in a process of its own   every HDF5 library, this program's plugin, the CUDA driver           probe.rs
//! looked at                             variables, the folders that HDF5 searches, the plugins in them
//! handed over by the Python package     what its imports bring, and files that it has looked at
//! concluded                             one problem for each cause, with what to do; notes for the rest
//! ```

mod checks;
mod examination;
mod gpu;
mod preload;
mod report;

use crate::places::Packages;
use crate::{Fail, Outcome};
use examination::Examination;
use serde_json::Value;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// An HDF5 library to ask, beside those found on this machine; may be given several times
    #[arg(long, value_name = "LIBHDF5")]
    hdf5: Vec<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    packages: Packages,
    /// What the Python package has found out, as JSON
    #[arg(long, hide = true)]
    python: Option<String>,
}

pub(crate) fn run(a: &Args) -> Outcome {
    for path in &a.hdf5 {
        if !path.is_file() {
            return Err(Fail::Refused(format!("h5z-gpu: --hdf5 {}: no such file", path.display())));
        }
    }
    let python = match &a.python {
        None => Value::Null,
        Some(text) => serde_json::from_str(text).map_err(|e| Fail::Refused(format!("h5z-gpu: --python: {e}")))?,
    };
    let mut found = Examination::ask(&a.hdf5, &a.packages, python);
    found.conclude();
    if a.json {
        say!("{:#}", found.json());
    } else {
        found.print();
    }
    if found.problems.is_empty() { Ok(()) } else { Err(Fail::Told) }
}

impl Examination {
    /// In the order in which a cause hides others.
    fn conclude(&mut self) {
        self.check_files();
        self.check_variables();
        self.check_preload();
        self.folders = self.look_into_folders();
        self.check_plugin();
        self.check_libraries();
        self.check_imports();
        self.check_settings();
        self.gpu = self.check_gpu();
    }
}
