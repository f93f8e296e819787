// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is concluded of the variables that `run` sets for one program, where they are set for more, and belong into no
//! profile.

use super::examination::{Examination, variable};
use crate::places::{CONNECTOR, PRELOAD, VOL};
use h5z_gpu::plugin::elf::fault;
use std::path::Path;

impl Examination {
    pub(super) fn check_doors(&mut self) {
        if variable("HDF5_VOL_CONNECTOR").split_ascii_whitespace().next() == Some(CONNECTOR) {
            self.check_connector();
        }
        self.check_preload();
    }

    /// The loader itself complains of a library that is not there, in every program.
    fn check_preload(&mut self) {
        let libraries = variable("LD_PRELOAD");
        let ours = libraries.split([' ', ':']).filter(|path| path.ends_with(PRELOAD));
        for path in ours {
            let remedy =
                "unset LD_PRELOAD, and start programs by `h5z-gpu run -- PROGRAM`, which sets it for them alone";
            if Path::new(path).is_file() {
                self.notes.push(format!("LD_PRELOAD names {path}, for every program that is started here; {remedy}"));
            } else {
                let text = format!("LD_PRELOAD names {path}, which is not there: every program complains of it");
                self.problem(text, remedy);
            }
        }
    }

    /// HDF5 2.0 and 2.2 crash in the call behind the one that has not found the connector.
    fn check_connector(&mut self) {
        let files = self.searched().into_iter().map(|folder| folder.join(VOL));
        match files.filter(|file| file.exists()).map(|file| fault(&file)).next() {
            Some(None) => self.notes.push(
                "HDF5_VOL_CONNECTOR is h5z_gpu: HDF5 2.0 and newer crash in a program that inherits it and not \
                 HDF5_PLUGIN_PATH; `h5z-gpu run --door vol -- PROGRAM` sets both for one program"
                    .into(),
            ),
            // A file with a fault in a folder that is searched is named there.
            Some(Some(_)) => {}
            None => self.problem(
                format!(
                    "HDF5_VOL_CONNECTOR is {CONNECTOR}, and no folder that HDF5 searches has {VOL}: HDF5 2.0 and newer \
                     crash, older ones print errors and go on without it"
                ),
                "unset HDF5_VOL_CONNECTOR; `h5z-gpu run --door vol -- PROGRAM` sets it for one program",
            ),
        }
    }
}
