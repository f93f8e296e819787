// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is concluded of the variable that `run` sets for one program, where it is set for more.

use super::examination::{Examination, variable};
use crate::places::PRELOAD;
use std::path::Path;

impl Examination {
    /// The loader itself complains of a library that is not there, in every program.
    pub(super) fn check_preload(&mut self) {
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
}
