// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doctor` says.

use super::examination::{Examination, some};
use super::gpu::size;
use crate::probe::texts;
use h5z_gpu::plugin::VERSION;
use serde_json::{Map, Value, json};
use std::env::consts::ARCH;

impl Examination {
    /// All of it, as JSON.
    pub(super) fn json(&self) -> Value {
        let libraries: Map<String, Value> =
            self.libraries.iter().map(|(path, a)| (path.display().to_string(), a.clone())).collect();
        let folders: Map<String, Value> = self
            .folders
            .iter()
            .map(|(folder, each)| {
                let each = each.iter().map(|c| match &c.state {
                    Ok((version, digest)) => {
                        json!({"file": c.file.display().to_string(), "version": version, "digest": digest})
                    }
                    Err(fault) => json!({"file": c.file.display().to_string(), "fault": fault}),
                });
                (folder.display().to_string(), each.collect())
            })
            .collect();
        let problems: Vec<Value> = self.problems.iter().map(|(what, todo)| json!({"what": what, "do": todo})).collect();
        json!({
            "version": VERSION,
            "machine": ARCH,
            "plugin": self.plugin,
            "HDF5_PLUGIN_PATH": self.path,
            "folders": folders,
            "libraries": libraries,
            "python_packages": self.python,
            "cuda": self.cuda,
            "gpu": self.gpu,
            "files": self.python["files"].as_array().cloned().unwrap_or_default(),
            "problems": problems,
            "notes": self.notes,
        })
    }

    pub(super) fn print(&self) {
        let python = self.python["version"].as_str().map_or(String::new(), |v| format!(", Python {v}"));
        say!("h5z-gpu {VERSION}{python} on {ARCH}");
        let error = self.plugin["error"].as_str().map_or(String::new(), |why| format!(": {why}"));
        say!("plugin: {}{error}", self.own.display());
        match &self.path {
            Some(path) => say!("HDF5_PLUGIN_PATH: {path}"),
            None => say!("HDF5_PLUGIN_PATH: not set; each HDF5 looks in its own default folder"),
        }
        for one in self.folders.iter().flat_map(|(_, each)| each) {
            match &one.state {
                Ok((version, _)) => say!("  {}: version {version}", one.file.display()),
                Err(fault) => say!("  {}: {fault}", one.file.display()),
            }
        }
        for (path, answer) in &self.libraries {
            say!("{}: {}", self.name(path), state(answer));
        }
        for (name, version) in self.python["imported"].as_object().into_iter().flatten() {
            say!("{name}: {}", version.as_str().unwrap_or("not installed"));
        }
        self.print_status();
        for file in self.python["files"].as_array().into_iter().flatten() {
            say!("{}: {}", file["file"].as_str().unwrap_or_default(), file["verdict"].as_str().unwrap_or_default());
        }
        for note in &self.notes {
            say!("note: {note}");
        }
        if self.problems.is_empty() {
            say!("\nnothing is wrong");
        }
        for (k, (what, todo)) in (1..).zip(&self.problems) {
            say!("\nproblem {k}: {what}\n  do: {todo}");
        }
    }

    fn print_status(&self) {
        let status = &self.plugin["status"];
        if some(status) {
            let settings = status["settings"].as_array().into_iter().flatten();
            let set = settings.filter_map(|s| Some(format!("{}={}", s["name"].as_str()?, s["value"].as_str()?)));
            let set: Vec<String> = set.collect();
            let all = if set.is_empty() { "none, all as they come".into() } else { set.join(", ") };
            say!("settings: {all}; CPU threads: {}", status["threads"]);
            let from = status["gpu_from_bytes"].as_array().into_iter().flatten();
            let limits: Vec<String> = from
                .filter_map(|f| Some(format!("{} {}", f["codec"].as_str()?, size(f["encode"].as_u64()?))))
                .collect();
            let fixed = set.iter().any(|s| s.starts_with("H5Z_GPU_MIN_BYTES="));
            if some(&status["gpu"]) && !fixed && !limits.is_empty() {
                say!("a GPU encodes batches from: {}", limits.join(", "));
            }
        }
        say!("GPU: {}", self.gpu);
        let code = &status["gpu_code"];
        if let Some(compiler) = code["compiler"].as_str() {
            let driver = code["driver"].as_str().map_or_else(|| code["driver"].to_string(), str::to_owned);
            say!("GPU code: by {compiler}, for drivers from {driver} on: {}", texts(&code["images"]).join(", "));
        }
    }
}

/// What an HDF5 library does with the filter, in a sentence.
fn state(answer: &Value) -> String {
    if !some(&answer["version"]) {
        return answer["error"].as_str().unwrap_or_default().into();
    }
    let looks = texts(&answer["folders"]).join(", ");
    let looks = if looks.is_empty() { looks } else { format!(" (looks in {looks})") };
    let mut text = match answer["plugin"].as_str() {
        Some(plugin) => format!("loads {plugin}"),
        None if some(&answer["handed"]) => {
            format!("does not find the filter by itself{looks}; works with it when it is handed over")
        }
        None => format!("does not find the filter{looks}"),
    };
    let trip = &answer["round_trip"];
    if some(trip) {
        let error = trip["largest_error"].as_f64().unwrap_or(0.0);
        let (raw, stored, bound) = (&trip["raw_bytes"], &trip["stored_bytes"], &trip["bound"]);
        text += &format!("; round trip {raw} to {stored} bytes, error {} of {bound}", Short(error));
    }
    if let Some(why) = answer["failed"].as_str() {
        text += &format!("; FAILED: {why}");
    }
    text
}

/// A number of two digits.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0.0 { f.write_str("0") } else { write!(f, "{:.1e}", self.0) }
    }
}
