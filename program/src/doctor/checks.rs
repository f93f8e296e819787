// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is concluded of variables, plugins and HDF5 libraries.

use super::examination::{Examination, digest, some, variable};
use crate::places::{PLUGIN, folder_fault, opened_by_hdf5, package_of, real};
use crate::probe::{default_folders, texts};
use crate::variable::quoted;
use h5z_gpu::plugin::folders::BETWEEN;
use serde_json::Value;
use std::path::{Path, PathBuf};

const REPORT: &str = "report it, with the output of --json";

/// Whether an HDF5 is older than 1.10.
fn old(answer: &Value) -> bool {
    let number = |k: usize| answer["version"][k].as_u64().unwrap_or(0);
    (number(0), number(1)) < (1, 10)
}

impl Examination {
    /// What the Python package has found in files.
    pub(super) fn check_files(&mut self) {
        let files = self.python["files"].as_array().cloned().unwrap_or_default();
        for problem in files.iter().flat_map(|f| f["problems"].as_array().cloned().unwrap_or_default()) {
            let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
            self.problem(text("what"), text("do"));
        }
    }

    pub(super) fn check_variables(&mut self) {
        if variable("HDF5_PLUGIN_PRELOAD") == "::" {
            self.problem("HDF5_PLUGIN_PRELOAD is \"::\", which forbids HDF5 every plugin", "unset HDF5_PLUGIN_PRELOAD");
        }
        let path = self.path.clone().unwrap_or_default();
        for (folder, why) in path.split(BETWEEN).filter(|f| !f.is_empty()).filter_map(|f| Some((f, folder_fault(f)?))) {
            let looks = |a: &Value| texts(&a["folders"]).iter().any(|f| f == folder) && !some(&a["plugin"]);
            let blind: Vec<String> =
                self.libraries.iter().filter(|(_, a)| looks(a)).map(|(p, _)| self.name(p)).collect();
            let mut text =
                format!("HDF5_PLUGIN_PATH names '{folder}': {why}. HDF5 1.10 does not look into the folders behind it");
            if !blind.is_empty() {
                text += &format!(": no filter in {}", blind.join(", "));
            }
            self.problem(text, "correct HDF5_PLUGIN_PATH, or take that folder out of it");
            self.missing = true;
        }
        if !path.is_empty() {
            self.note_hidden_folders();
        }
    }

    /// Default folders with plugins, in which no HDF5 looks while the variable is set.
    fn note_hidden_folders(&mut self) {
        let libraries: Vec<PathBuf> = self.libraries.iter().map(|l| l.0.clone()).collect();
        let searched = self.searched();
        for folder in default_folders(&libraries).into_iter().filter(|f| !searched.contains(f)) {
            match opened_by_hdf5(&folder).len() {
                0 => {}
                n => self.notes.push(format!(
                    "{}: a default folder of an HDF5 here, left out while HDF5_PLUGIN_PATH is set, has {n} \
                     plugins; append it to the variable where programs need them",
                    folder.display()
                )),
            }
        }
    }

    /// The plugin of the package, or of this program.
    pub(super) fn check_plugin(&mut self) {
        let (python, own) = (self.python["python"].as_str().map(quoted), self.own.display().to_string());
        let whose = if python.is_some() { "the package's own plugin" } else { "this program's own plugin" };
        if let Some(why) = self.plugin["error"].as_str() {
            let remedy = match python {
                _ if !variable("H5Z_GPU_PLUGIN_PATH").is_empty() => {
                    "H5Z_GPU_PLUGIN_PATH names its folder: name another one, or unset it".into()
                }
                Some(python) => {
                    format!("{python} -m pip install --force-reinstall WHEEL, the file that the package came as")
                }
                None => "install it again; in the sources, `make`".into(),
            };
            return self.problem(format!("{whose} {own} {why}"), remedy);
        }
        let (mine, version) = (digest(&self.own), self.plugin["version"].as_str().unwrap_or_default().to_owned());
        if version.ends_with("+unreleased") {
            self.notes.push(format!(
                "{own} is an unreleased build; if its codecs are none of a release's, its chunks say so, and a release \
                 refuses them where the format has changed since"
            ));
        }
        for one in self.folders.iter().flat_map(|(_, each)| each) {
            if let Ok((theirs, digest)) = &one.state
                && *digest != mine
            {
                let who =
                    if python.is_some() { "Python uses the package's" } else { "doctor has asked this program's" };
                let file = one.file.display();
                self.notes.push(format!(
                    "{file} (version {theirs}) is another file than {whose} (version {version}); {who}, \
                     other programs that one"
                ));
            }
        }
    }

    pub(super) fn check_libraries(&mut self) {
        let disabled = variable("HDF5_PLUGIN_PRELOAD") == "::";
        // By themselves: the package hands the filter to those of Python's wheels.
        let unaided = self.path.is_none() || self.holders().is_empty();
        let mut left = Vec::new();
        for (path, answer) in self.libraries.clone() {
            self.check_library(&path, &answer);
            if some(&answer["version"]) && !some(&answer["plugin"]) && !disabled && unaided {
                left.push(path);
            }
        }
        if self.libraries.is_empty() {
            self.problem("no HDF5 library was found", "pip install h5py, or name one with --hdf5");
        }
        let handed = some(&self.python) && self.works();
        let (from_python, others): (Vec<PathBuf>, Vec<PathBuf>) =
            left.into_iter().partition(|p| some(&self.python) && self.package(p).is_some());
        if !from_python.is_empty() && handed {
            let mut packages: Vec<String> = from_python.iter().filter_map(|p| self.package(p)).collect();
            packages.dedup();
            self.notes.push(format!(
                "{}: the filter is there after `import h5z_gpu`, and not before; for programs without that line: {}",
                packages.join(", "),
                self.env()
            ));
        }
        if !others.is_empty() {
            self.left_alone(&others);
        }
    }

    /// One library that was asked.
    fn check_library(&mut self, path: &Path, answer: &Value) {
        let (name, broken) = (self.name(path), self.broken());
        if !some(&answer["version"]) {
            let why = answer["error"].as_str().unwrap_or_default();
            if why.contains("was ended by") && !broken {
                self.problem(format!("{name} crashes when it looks for the filter ({why})"), REPORT);
            } else if !broken {
                self.notes.push(format!("{name} cannot be asked: {why}"));
            }
            return;
        }
        if old(answer) {
            self.problem(
                format!(
                    "{name} is older than 1.10: it reads files with this filter, but what it writes keeps every bit, \
                     for it cannot tell the filter what a chunk holds"
                ),
                "use HDF5 1.10 or newer to write",
            );
        }
        let there = some(&answer["plugin"]) || some(&answer["handed"]);
        if let Some(why) = answer["failed"].as_str() {
            self.problem(format!("{name}: writing a small dataset and reading it back fails: {why}"), REPORT);
        } else if there && !old(answer) && answer["round_trip"]["stored_bytes"].as_u64() > Some(8000) {
            self.problem(
                format!("{name} finds the filter, but what it writes is not compressed by it"),
                "look at the lines of h5z-gpu on standard error, and report it",
            );
        }
        let disabled = variable("HDF5_PLUGIN_PRELOAD") == "::";
        if let (false, true, false, Some(holder)) =
            (some(&answer["plugin"]), self.path.is_some(), disabled || self.missing || broken, self.holders().first())
        {
            self.problem(format!("{name} does not load the filter, although {holder} has it"), self.env());
        }
    }

    /// Libraries whose programs do not find the filter.
    fn left_alone(&mut self, others: &[PathBuf]) {
        let names: Vec<String> = others.iter().map(|p| self.name(p)).collect();
        let mut text = format!("{}: programs with it, such as h5dump, do not find the filter", names.join(", "));
        if let Some(path) = &self.path {
            text += &format!(" (HDF5_PLUGIN_PATH is '{path}', and there is no {PLUGIN} in it)");
        }
        let served = self.libraries.iter().any(|(p, a)| some(&a["plugin"]) && package_of(p).is_none());
        let (env, holders) = (self.env(), self.holders());
        if served || self.broken() || self.missing || !self.works() {
            self.notes.push(format!("{text}; for them: {env}"));
        } else if !holders.is_empty() {
            // Somebody has put the plugin into a default folder, and it is another HDF5's.
            let told = self.libraries.iter().filter(|(p, _)| others.contains(p));
            let mut looked: Vec<String> = told.flat_map(|(_, a)| texts(&a["folders"])).collect();
            looked.dedup();
            let first = looked.first().map_or("its folder", String::as_str);
            self.problem(
                format!(
                    "{text}: by default it looks in {}, and {PLUGIN} is in {}",
                    looked.join(", "),
                    holders.join(", ")
                ),
                format!("copy {PLUGIN} to {first}, or {env}"),
            );
        } else {
            let python = if some(&self.python) { ". Python needs no more than `import h5z_gpu`" } else { "" };
            self.problem(text, format!("{env} in the shell that starts them{python}"));
        }
    }

    /// netCDF4 names its own folder in HDF5_PLUGIN_PATH where nobody has set it, which hides the default folders.
    pub(super) fn check_imports(&mut self) {
        let Some(after) = self.python["after"].as_str().map(str::to_owned) else { return };
        if self.path.as_ref().is_some_and(|p| !p.is_empty()) {
            return;
        }
        for (path, what) in self.python["libraries"].as_object().cloned().unwrap_or_default() {
            let real = real(Path::new(&path)).unwrap_or_default();
            let alone = self.libraries.iter().find(|l| l.0 == real).map_or(&Value::Null, |l| &l.1);
            if let (Some(plugin), Some(false)) = (alone["plugin"].as_str(), what["finds"].as_bool()) {
                let hidden = Path::new(plugin).parent().unwrap_or(Path::new("")).display();
                self.problem(
                    format!(
                        "a program that imports netCDF4 first, and not h5z_gpu, has no filter in {}: netCDF4 sets \
                         HDF5_PLUGIN_PATH to {after}, which hides {hidden}",
                        self.name(&real)
                    ),
                    format!("import h5z_gpu in that program, or {}", self.env()),
                );
            }
        }
    }

    pub(super) fn check_settings(&mut self) {
        for setting in self.plugin["status"]["settings"].as_array().cloned().unwrap_or_default() {
            if let (Some(fault), Some(name)) = (setting["fault"].as_str(), setting["name"].as_str()) {
                self.problem(fault, format!("correct {name}, or unset it; it counts as not set now"));
            }
        }
    }
}
