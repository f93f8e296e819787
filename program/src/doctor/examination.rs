// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doctor` has asked and found.

use crate::places::{self, PLUGIN, Packages, opened_by_hdf5, package_of};
use crate::probe::{ask, texts};
use crate::variable::{obeyed, own};
use h5z_gpu::plugin::elf::fault;
use h5z_gpu::plugin::folders::{BETWEEN, hdf5_folders};
use serde_json::{Map, Value, json};
use std::env;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Libraries that are asked at a time: most of an answer is waiting for them to load.
const AT_A_TIME: usize = 4;

/// A plugin for this filter in a folder that is searched, or a file there that harms.
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    /// Version and a digest of its bytes, or what is wrong with it.
    pub(super) state: Result<(String, String), String>,
}

/// What was found, and what has to be done about it.
pub(super) struct Examination {
    /// What has to be done, by what is wrong.
    pub(super) problems: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
    /// What the Python package has found out; null where it does not ask.
    pub(super) python: Value,
    pub(super) own: PathBuf,
    /// What the plugin says of itself, or "error".
    pub(super) plugin: Value,
    pub(super) cuda: Value,
    /// HDF5_PLUGIN_PATH, where it is set.
    pub(super) path: Option<String>,
    /// A folder of it does not exist.
    pub(super) missing: bool,
    pub(super) libraries: Vec<(PathBuf, Value)>,
    pub(super) folders: Vec<(PathBuf, Vec<Candidate>)>,
    pub(super) gpu: String,
}

impl Examination {
    /// Asks everything. Nothing is concluded yet.
    pub(super) fn ask(named: &[PathBuf], packages: &Packages, python: Value) -> Self {
        let own = own();
        let why = fault(&own);
        let scratch = env::temp_dir().join(format!("h5z-gpu-doctor.{}", std::process::id()));
        _ = std::fs::create_dir_all(&scratch);
        let handed = if why.is_none() { vec![own.as_os_str()] } else { vec![] };
        let found: Vec<PathBuf> =
            places::libraries(named, packages).into_iter().filter(|p| fault(p).is_none()).collect();
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
        Examination {
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
        }
    }

    pub(super) fn problem(&mut self, what: impl Into<String>, todo: impl Into<String>) {
        let what = what.into();
        if !self.problems.iter().any(|p| p.0 == what) {
            self.problems.push((what, todo.into()));
        }
    }

    /// What to type so that programs find the plugin.
    pub(super) fn env(&self) -> String {
        match self.python["python"].as_str() {
            Some(python) => obeyed(python, "-m h5z_gpu env"),
            None => obeyed(&env::current_exe().unwrap_or_else(|_| "h5z-gpu".into()).to_string_lossy(), "env"),
        }
    }

    pub(super) fn works(&self) -> bool {
        self.plugin.get("error").is_none()
    }

    /// The folders that HDF5 libraries look into now.
    pub(super) fn searched(&self) -> Vec<PathBuf> {
        let told: Vec<String> = match &self.path {
            Some(path) => path.split(BETWEEN).filter(|f| !f.is_empty()).map(str::to_owned).collect(),
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
    pub(super) fn look_into_folders(&mut self) -> Vec<(PathBuf, Vec<Candidate>)> {
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
    pub(super) fn holders(&self) -> Vec<String> {
        let working = self.folders.iter().filter(|(_, each)| each.iter().any(|c| c.state.is_ok()));
        working.map(|(folder, _)| folder.display().to_string()).collect()
    }

    /// Files in the folders that are searched that harm.
    pub(super) fn broken(&self) -> bool {
        self.folders.iter().flat_map(|(_, each)| each).any(|c| c.state.is_err())
    }

    /// The Python package that uses this library.
    pub(super) fn package(&self, library: &Path) -> Option<String> {
        let told: Option<&Map<String, Value>> = self.python["libraries"].as_object();
        let real = |p: &str| places::real(Path::new(p));
        let used = told.and_then(|all| all.iter().find(|(p, _)| real(p).as_deref() == Some(library)));
        used.and_then(|(_, what)| Some(what["package"].as_str()?.to_owned())).or_else(|| package_of(library))
    }

    /// A library with its version and its package.
    pub(super) fn name(&self, library: &Path) -> String {
        let answer = self.libraries.iter().find(|l| l.0 == library).map_or(&Value::Null, |l| &l.1);
        let numbers: Vec<String> = answer["version"].as_array().into_iter().flatten().map(Value::to_string).collect();
        let version = if numbers.is_empty() { String::new() } else { format!("{} ", numbers.join(".")) };
        let package = self.package(library).map_or(String::new(), |p| format!("of {p} "));
        format!("HDF5 {version}{package}({})", library.display())
    }
}

/// What a file in a folder of plugins is to this filter; `None` for what belongs to others and does no harm.
fn candidate(file: PathBuf) -> Option<Candidate> {
    let ours = places::name(&file).starts_with(PLUGIN.split_once('.').map_or(PLUGIN, |name| name.0));
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
pub(super) fn digest(file: &Path) -> String {
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
pub(super) fn some(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// A variable's text.
pub(super) fn variable(name: impl AsRef<OsStr>) -> String {
    env::var_os(name).map(|v| v.to_string_lossy().trim().to_owned()).unwrap_or_default()
}
