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
mod gpu;
mod report;

use crate::places::{self, PLUGIN, Packages, opened_by_hdf5, package_of};
use crate::probe::{ask, texts};
use crate::variable::{own, quoted};
use crate::{Fail, Outcome};
use h5z_gpu::plugin::elf::fault;
use h5z_gpu::plugin::folders::hdf5_folders;
use serde_json::{Map, Value, json};
use std::env;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Libraries that are asked at a time: most of an answer is waiting for them to load.
const AT_A_TIME: usize = 4;

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
    let found = Examination::new(a, python);
    if a.json {
        say!("{:#}", found.json());
    } else {
        found.print();
    }
    if found.problems.is_empty() { Ok(()) } else { Err(Fail::Told) }
}

/// A plugin for this filter in a folder that is searched, or a file there that harms.
struct Candidate {
    file: PathBuf,
    /// Version and a digest of its bytes, or what is wrong with it.
    state: Result<(String, String), String>,
}

/// What was found, and what has to be done about it.
struct Examination {
    /// What has to be done, by what is wrong.
    problems: Vec<(String, String)>,
    notes: Vec<String>,
    /// What the Python package has found out; null where it does not ask.
    python: Value,
    own: PathBuf,
    /// What the plugin says of itself, or "error".
    plugin: Value,
    cuda: Value,
    /// HDF5_PLUGIN_PATH, where it is set.
    path: Option<String>,
    /// A folder of it does not exist.
    missing: bool,
    libraries: Vec<(PathBuf, Value)>,
    folders: Vec<(PathBuf, Vec<Candidate>)>,
    gpu: String,
}

impl Examination {
    fn new(a: &Args, python: Value) -> Self {
        let own = own();
        let why = fault(&own);
        let scratch = env::temp_dir().join(format!("h5z-gpu-doctor.{}", std::process::id()));
        _ = std::fs::create_dir_all(&scratch);
        let handed = if why.is_none() { vec![own.as_os_str()] } else { vec![] };
        let found: Vec<PathBuf> =
            places::libraries(&a.hdf5, &a.packages).into_iter().filter(|p| fault(p).is_none()).collect();
        let libraries = side_by_side(&found, |library| {
            let arguments = [&[library.as_os_str(), scratch.as_os_str()], &handed[..]].concat();
            ask("hdf5", &arguments, &[])
        });
        _ = std::fs::remove_dir_all(&scratch);
        let mut plugin = match why {
            Some(why) => json!({"error": why}),
            None => ask("plugin", &[own.as_os_str()], &[]),
        };
        plugin["file"] = own.to_string_lossy().into();
        let mut all = Examination {
            problems: Vec::new(),
            notes: Vec::new(),
            python,
            own,
            plugin,
            cuda: ask("cuda", &[], &[]),
            path: env::var_os("HDF5_PLUGIN_PATH").map(|v| v.to_string_lossy().into_owned()),
            missing: false,
            libraries: found.into_iter().zip(libraries).collect(),
            folders: Vec::new(),
            gpu: String::new(),
        };
        all.check_files();
        all.check_variables();
        all.folders = all.look_into_folders();
        all.check_plugin();
        all.check_libraries();
        all.check_imports();
        all.check_settings();
        all.gpu = all.check_gpu();
        all
    }

    fn problem(&mut self, what: impl Into<String>, todo: impl Into<String>) {
        let what = what.into();
        if !self.problems.iter().any(|p| p.0 == what) {
            self.problems.push((what, todo.into()));
        }
    }

    /// What to type so that programs find the plugin.
    fn env(&self) -> String {
        let command = match self.python["python"].as_str() {
            Some(python) => format!("{} -m h5z_gpu", quoted(python)),
            None => quoted(&env::current_exe().unwrap_or_else(|_| "h5z-gpu".into()).to_string_lossy()),
        };
        format!("eval \"$({command} env)\"")
    }

    fn works(&self) -> bool {
        self.plugin.get("error").is_none()
    }

    /// The folders that HDF5 libraries look into now.
    fn searched(&self) -> Vec<PathBuf> {
        let told: Vec<String> = match &self.path {
            Some(path) => path.split(':').filter(|f| !f.is_empty()).map(str::to_owned).collect(),
            None => self.libraries.iter().flat_map(|(_, a)| texts(&a["folders"])).chain(hdf5_folders()).collect(),
        };
        let mut each: Vec<PathBuf> = Vec::new();
        for folder in told.into_iter().map(PathBuf::from) {
            if !each.contains(&folder) {
                each.push(folder);
            }
        }
        each
    }

    /// The plugins for this filter in the folders that are searched, and other files there that harm.
    fn look_into_folders(&mut self) -> Vec<(PathBuf, Vec<Candidate>)> {
        let mut folders = Vec::new();
        for folder in self.searched() {
            let each: Vec<Candidate> = opened_by_hdf5(&folder).into_iter().filter_map(candidate).collect();
            for one in &each {
                if let Err(why) = &one.state {
                    self.problem(format!("{} {why}", one.file.display()), "copy the file there again, or take it away");
                }
            }
            if !each.is_empty() {
                folders.push((folder, each));
            }
        }
        let mut good: Vec<(PathBuf, &(String, String), &Path)> = Vec::new();
        for one in folders.iter().flat_map(|(_, each)| each) {
            if let (Ok(state), Ok(real)) = (&one.state, one.file.canonicalize())
                && !good.iter().any(|g| g.0 == real)
            {
                good.push((real, state, &one.file));
            }
        }
        if good.iter().any(|g| g.1.1 != good[0].1.1) {
            let listed = good.iter().map(|(_, (version, digest), file)| {
                format!("{} (version {version}, {})", file.display(), &digest[..8])
            });
            let listed = listed.collect::<Vec<_>>().join(", ");
            self.problem(
                format!("two plugins that differ: {listed}. Each HDF5 takes the first that it meets"),
                "take one of them away",
            );
        }
        folders
    }

    /// Folders that are searched and have a plugin that works.
    fn holders(&self) -> Vec<String> {
        let working = self.folders.iter().filter(|(_, each)| each.iter().any(|c| c.state.is_ok()));
        working.map(|(folder, _)| folder.display().to_string()).collect()
    }

    /// Files in the folders that are searched that harm.
    fn broken(&self) -> bool {
        self.folders.iter().flat_map(|(_, each)| each).any(|c| c.state.is_err())
    }

    /// The Python package that uses this library.
    fn package(&self, library: &Path) -> Option<String> {
        let told: Option<&Map<String, Value>> = self.python["libraries"].as_object();
        let real = |p: &str| Path::new(p).canonicalize().ok();
        let used = told.and_then(|all| all.iter().find(|(p, _)| real(p).as_deref() == Some(library)));
        used.and_then(|(_, what)| Some(what["package"].as_str()?.to_owned())).or_else(|| package_of(library))
    }

    /// A library with its version and its package.
    fn name(&self, library: &Path) -> String {
        let answer = self.libraries.iter().find(|l| l.0 == library).map_or(&Value::Null, |l| &l.1);
        let numbers: Vec<String> = answer["version"].as_array().into_iter().flatten().map(Value::to_string).collect();
        let version = if numbers.is_empty() { String::new() } else { format!("{} ", numbers.join(".")) };
        let package = self.package(library).map_or(String::new(), |p| format!("of {p} "));
        format!("HDF5 {version}{package}({})", library.display())
    }
}

/// What a file in a folder of plugins is to this filter; `None` for what belongs to others and does no harm.
fn candidate(file: PathBuf) -> Option<Candidate> {
    let ours = places::name(&file).starts_with("libh5zgpu");
    if let Some(why) = fault(&file) {
        return (ours || why.contains("cut short")).then_some(Candidate { file, state: Err(why) });
    }
    if !ours {
        return None;
    }
    let answer = ask("plugin", &[file.as_os_str()], &[]);
    let state = match (answer["error"].as_str(), answer["filter"].as_u64()) {
        (Some(why), _) => Err(format!("cannot be loaded: {why}")),
        (_, None) => Err("is no plugin of HDF5".into()),
        (_, Some(id)) if id != u64::from(places::ID) => Err(format!("is a plugin for filter {id}, not {}", places::ID)),
        _ => Ok((answer["version"].as_str().unwrap_or("unknown").to_owned(), digest(&file))),
    };
    Some(Candidate { file, state })
}

/// Tells files of different contents apart.
fn digest(file: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(&std::fs::read(file).unwrap_or_default());
    format!("{:016x}", hasher.finish())
}

/// The answers for all items, a few at a time, in their order.
fn side_by_side<T: Sync, R: Send>(items: &[T], answer: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let item = next.lock().ok().and_then(|mut items| items.next());
                    let Some((k, item)) = item else { return };
                    let answer = answer(item);
                    if let Ok(mut done) = done.lock() {
                        done.push((k, answer));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Whether an answer is a text, a list or a map that is not empty, or true.
fn some(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// A variable's text.
fn variable(name: impl AsRef<OsStr>) -> String {
    env::var_os(name).map(|v| v.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

/// `PLUGIN`, as sentences name it.
const THE_PLUGIN: &str = PLUGIN;
