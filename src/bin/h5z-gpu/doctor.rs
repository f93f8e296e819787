// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor`: where HDF5 would look for the plugin, what the variables say, and whether the engine works here.
//! `env`: the line that lets HDF5 find it.

use crate::hdf5::{self, PLUGIN};
use crate::{Fail, Outcome, elf};
use h5z_gpu::host::settings;
use h5z_gpu::{Bound, Codec, Dtype, Engine, Params, Request};
use std::env;
use std::path::{Path, PathBuf};

/// Where HDF5 looks when `HDF5_PLUGIN_PATH` is not set, for machines on which no library can be asked.
const DEFAULTS: [&str; 2] = ["/usr/local/hdf5/lib/plugin", "/usr/local/lib/hdf5/plugin"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// An HDF5 library to ask, beside those found on this machine; may be given several times
    #[arg(long, value_name = "LIBHDF5")]
    hdf5: Vec<PathBuf>,
}

/// Prints `export HDF5_PLUGIN_PATH=...`: our folder, then what is set, or what HDF5 would search without the variable.
pub(crate) fn environment() -> Outcome {
    let Some(ours) = beside() else {
        return Err(Fail::Wrong(format!(
            "h5z-gpu: no {PLUGIN} in ../plugin beside this program; `make` puts it there"
        )));
    };
    let mut folders = vec![ours];
    let others: Vec<PathBuf> = match env::var_os("HDF5_PLUGIN_PATH").filter(|v| !v.is_empty()) {
        Some(value) => env::split_paths(&value).filter(|f| !f.as_os_str().is_empty()).collect(),
        None => {
            let known = [defaults(&hdf5::libraries()), hdf5::netcdf4_plugins()].concat();
            known.into_iter().filter(|f| f.is_dir()).collect()
        }
    };
    for folder in others {
        if !folder.is_dir() {
            eprintln!("h5z-gpu: left out {}: no such folder, and HDF5 1.10 searches no further", folder.display());
        } else if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let refuse =
        || Fail::Wrong(format!("h5z-gpu: {folders:?}: a path with a colon cannot stand in HDF5_PLUGIN_PATH, move it"));
    let value = env::join_paths(&folders).map_err(|_| refuse())?.into_string().map_err(|_| refuse())?;
    say!("export HDF5_PLUGIN_PATH={}", quoted(&value));
    Ok(())
}

/// As one word of a shell's line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What to type for the line of `env`.
fn remedy() -> String {
    let program = env::current_exe().unwrap_or_else(|_| "h5z-gpu".into());
    format!("eval \"$({} env)\"", quoted(&program.to_string_lossy()))
}

/// The plugin's folder that belongs to this program.
fn beside() -> Option<PathBuf> {
    let folder = env::current_exe().ok()?.parent()?.parent()?.join("plugin");
    folder.join(PLUGIN).is_file().then_some(folder)
}

/// Where these libraries look without the variable.
fn defaults(libraries: &[PathBuf]) -> Vec<PathBuf> {
    let known = libraries.iter().filter_map(|l| hdf5::query(l, false).ok()).flat_map(|a| a.folders);
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in known.chain(DEFAULTS.map(PathBuf::from)) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

pub(crate) fn run(a: &Args) -> Outcome {
    say!("h5z-gpu {}", env!("CARGO_PKG_VERSION"));
    let mut faults = plugin_path(&a.hdf5);
    faults += variables();
    say!("CPU threads: {}", Engine::global().threads());
    say!("GPU: {}; files are the same with and without one", gpu());
    if let Some(device) = Engine::gpu_device() {
        let (major, minor) = device.capability;
        let of = device.driver_cuda;
        let image = device.image;
        say!("  compute capability {major}.{minor}, which takes {image}; its driver is for CUDA {}.{}", of.0, of.1);
    }
    if let Some(code) = Engine::gpu_code() {
        let (compiler, driver, images) = (code.compiler, code.driver, code.images.join(", "));
        say!("GPU code: by {compiler}, for drivers from {driver} on: {images}");
    }
    match round_trip() {
        Ok(text) => say!("round trip: {text}"),
        Err(text) => {
            faults += 1;
            say!("round trip: FAILED: {text}");
        }
    }
    match faults {
        0 => Ok(()),
        n => Err(Fail::Wrong(format!("h5z-gpu: {n} of these will keep HDF5 from using the plugin as meant"))),
    }
}

/// The GPU that chunks go to.
pub(crate) fn gpu() -> String {
    Engine::gpu().map_or_else(|why| format!("not used: {why}; chunks stay on the CPU"), str::to_owned)
}

fn plugin_path(named: &[PathBuf]) -> u32 {
    let mut faults = 0;
    let set = env::var_os("HDF5_PLUGIN_PATH");
    let libraries = [named, &hdf5::libraries()].concat();
    let defaults = defaults(&libraries);
    let folders: Vec<PathBuf> = match &set {
        Some(value) => {
            say!("HDF5_PLUGIN_PATH: {}", value.to_string_lossy());
            env::split_paths(value).filter(|f| !f.as_os_str().is_empty()).collect()
        }
        None => {
            say!("HDF5_PLUGIN_PATH: not set; each HDF5 looks in its own default folders");
            defaults.clone()
        }
    };
    if set.is_some() && folders.is_empty() {
        say!("  empty: HDF5 looks nowhere; unset HDF5_PLUGIN_PATH");
    }
    let mut found = 0;
    for folder in &folders {
        match look(folder) {
            Ok(what) => {
                found += 1;
                say!("  {}: {what}", folder.display());
            }
            Err(Flaw::Absent) if set.is_some() => {
                faults += 1;
                say!(
                    "  {}: no such folder: HDF5 1.10 searches no further; take it out of HDF5_PLUGIN_PATH",
                    folder.display()
                );
            }
            Err(Flaw::Absent) => say!("  {}: no such folder", folder.display()),
            Err(Flaw::Empty) => say!("  {}: no {PLUGIN}", folder.display()),
            Err(Flaw::Broken(why)) => {
                faults += 1;
                say!("  {}: {PLUGIN} {why}: copy it again, or take it away", folder.display());
            }
        }
    }
    if found > 1 {
        say!("  more than one: HDF5 takes the first");
    }
    if set.is_some() {
        for hidden in defaults.iter().filter(|d| !folders.contains(d) && plugins(d) > 0) {
            let n = plugins(hidden);
            say!(
                "  {}: default of an HDF5 here, left out while the variable is set, has {n} plugins: append it",
                hidden.display()
            );
        }
    }
    faults += preload();
    let mut serving = 0;
    for library in &libraries {
        let name = library.display();
        match hdf5::query(library, true) {
            Ok(hdf5::Answer { version, plugin: Some(plugin), .. }) => {
                serving += 1;
                say!("HDF5 {version}, {name}: loads {}", plugin.display());
            }
            Ok(hdf5::Answer { version, folders, .. }) => {
                // Without the variable each library has folders of its own: one that holds the plugin is enough.
                faults += u32::from(set.is_some() && found > 0);
                say!("HDF5 {version}, {name}: does NOT find the filter; it looks in {folders:?}");
            }
            Err(why) => say!("{name}: cannot be asked: {why}"),
        }
    }
    if libraries.is_empty() {
        say!("HDF5: no library found to ask; name one with --hdf5");
    }
    if found == 0 && serving == 0 {
        faults += 1;
        match beside() {
            Some(folder) => say!("no HDF5 will find {PLUGIN}; it is in {}: {}", folder.display(), remedy()),
            None => say!("no HDF5 will find {PLUGIN}; build it with `make`, then {}", remedy()),
        }
    }
    faults
}

/// What `HDF5_PLUGIN_PRELOAD` says.
fn preload() -> u32 {
    let Ok(preload) = env::var("HDF5_PLUGIN_PRELOAD") else { return 0 };
    if preload == "::" {
        say!("HDF5_PLUGIN_PRELOAD: \"::\" forbids every plugin: unset HDF5_PLUGIN_PRELOAD");
        return 1;
    }
    say!("HDF5_PLUGIN_PRELOAD: {preload:?}; HDF5 knows no such value but \"::\"");
    0
}

/// Number of libraries in a folder.
fn plugins(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter(|n| n.to_str().is_some_and(|n| n.starts_with("lib") && n.contains(".so"))).count()
}

/// Why a folder has no plugin.
enum Flaw {
    /// The folder does not exist.
    Absent,
    /// The plugin is not there.
    Empty,
    /// The file cannot be what HDF5 needs.
    Broken(String),
}

/// Whether `folder` holds the plugin, all of it, and the loader takes it.
fn look(folder: &Path) -> Result<String, Flaw> {
    if !folder.is_dir() {
        return Err(Flaw::Absent);
    }
    let file = folder.join(PLUGIN);
    if !file.exists() {
        return Err(Flaw::Empty);
    }
    let bytes = std::fs::read(&file).map_err(|e| Flaw::Broken(format!("cannot be read ({e})")))?;
    let len = bytes.len() as u64;
    match elf::stated_len(&bytes) {
        None => return Err(Flaw::Broken(format!("is no library for this machine ({len} bytes)"))),
        Some(stated) if stated > len => {
            return Err(Flaw::Broken(format!(
                "is cut short ({len} of {stated} bytes), and ends the program that opens it"
            )));
        }
        Some(_) => {}
    }
    let answer = hdf5::query(&file, true).map_err(|why| Flaw::Broken(format!("cannot be loaded ({why})")))?;
    answer.plugin.ok_or_else(|| Flaw::Broken("is not this plugin".into()))?;
    Ok(format!("{PLUGIN}, {len} bytes"))
}

fn variables() -> u32 {
    let mut faults = 0;
    for (name, ..) in settings::RULES {
        match settings::checked(name) {
            None => {}
            Some(Ok(value)) => say!("{name}: {value}"),
            Some(Err(text)) => {
                faults += 1;
                say!("{text}");
            }
        }
    }
    faults
}

/// Encodes and decodes a wave with an absolute bound and checks it.
fn round_trip() -> Outcome<String> {
    let wave: Vec<f32> = (0..64 * 1024).map(|i| (i as f32 * 1e-3).sin()).collect();
    let raw: Vec<u8> = wave.iter().flat_map(|x| x.to_le_bytes()).collect();
    let request = Request { codec: Codec::Auto, bound: Bound::Absolute(1e-3) };
    let params = Params::new(request, Dtype::F32, &[64, 1024])?;
    let frame = Engine::global().encode(&params, &raw);
    let back = Engine::global().decode(&frame, raw.len() as u64)?;
    let worst = wave
        .iter()
        .zip(back.chunks_exact(4))
        .map(|(x, b)| (f64::from(*x) - f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).abs())
        .fold(0.0, f64::max);
    if worst > 1e-3 {
        return Err(Fail::Wrong(format!("a value changed by {worst:e}, the bound is 1e-3")));
    }
    Ok(format!("{} bytes to {}, largest error {worst:.2e} at a bound of 1e-3", raw.len(), frame.len()))
}
