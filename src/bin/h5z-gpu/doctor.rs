// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor`: where HDF5 would look for the plugin, what the variables say, and whether the engine works here.

use crate::{Fail, Outcome};
use h5z_gpu::{Ask, Bound, Codec, Dtype, Engine, Params, settings};
use std::env;
use std::path::{Path, PathBuf};

/// File name of the plugin.
const PLUGIN: &str = "libh5zgpu.so";
/// Where HDF5 looks when `HDF5_PLUGIN_PATH` is not set: its own default and Debian's.
const DEFAULTS: [&str; 2] = ["/usr/local/hdf5/lib/plugin", "/usr/lib/x86_64-linux-gnu/hdf5/plugins"];

pub(crate) fn run() -> Outcome {
    say!("h5z-gpu {}", env!("CARGO_PKG_VERSION"));
    let mut faults = plugin_path();
    faults += variables();
    say!("CPU threads: {}", Engine::global().threads());
    say!("GPU: {}; files are the same with and without one", gpu());
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
    #[cfg(feature = "cuda")]
    return match h5z_gpu::device::name() {
        Some(name) => name,
        None if h5z_gpu::device::images() == 0 => {
            "not used: this build has no kernels, no nvcc was found; chunks stay on the CPU".into()
        }
        None => "not used (H5Z_GPU_LOG=info says why); chunks stay on the CPU".into(),
    };
    #[cfg(not(feature = "cuda"))]
    "not used: this program was built without GPU code; chunks stay on the CPU".into()
}

fn plugin_path() -> u32 {
    let mut faults = 0;
    let set = env::var_os("HDF5_PLUGIN_PATH");
    let folders: Vec<PathBuf> = match &set {
        Some(value) => {
            say!("HDF5_PLUGIN_PATH: {}", value.to_string_lossy());
            env::split_paths(value).collect()
        }
        None => {
            say!("HDF5_PLUGIN_PATH: not set; HDF5 looks in its own default folder");
            DEFAULTS.iter().map(PathBuf::from).collect()
        }
    };
    let mut found = 0;
    for folder in &folders {
        if folder.as_os_str().is_empty() {
            continue;
        }
        let state = look(folder);
        found += u32::from(state.is_ok());
        say!("  {}: {}", folder.display(), state.unwrap_or_else(|why| why));
    }
    if found == 0 {
        faults += 1;
        let beside = env::current_exe().ok().and_then(|exe| {
            let target = exe.parent()?.parent()?.join("plugin");
            target.join(PLUGIN).is_file().then_some(target)
        });
        match beside {
            Some(folder) => {
                say!("  no {PLUGIN} there; there is one here: export HDF5_PLUGIN_PATH={}", folder.display())
            }
            None => say!(
                "  no {PLUGIN} there; build it with `make plugin`, then export HDF5_PLUGIN_PATH=$PWD/target/plugin"
            ),
        }
    }
    if found > 1 {
        say!("  more than one: HDF5 takes the first");
    }
    if let Ok(preload) = env::var("HDF5_PLUGIN_PRELOAD") {
        if preload == "::" {
            faults += 1;
            say!("HDF5_PLUGIN_PRELOAD: \"::\" forbids every plugin: unset HDF5_PLUGIN_PRELOAD");
        } else {
            say!("HDF5_PLUGIN_PRELOAD: {preload:?}; HDF5 knows no such value but \"::\"");
        }
    }
    faults
}

/// Whether `folder` holds something that the loader may take for the plugin.
fn look(folder: &Path) -> Result<String, String> {
    if !folder.is_dir() {
        return Err("no such folder".into());
    }
    let file = folder.join(PLUGIN);
    let bytes = std::fs::read(&file).map_err(|e| format!("no readable {PLUGIN} ({e})"))?;
    let exports = |name: &[u8]| bytes.windows(name.len()).any(|w| w == name);
    if !bytes.starts_with(b"\x7fELF") || !exports(b"H5PLget_plugin_info") {
        return Err(format!("{PLUGIN} is there and is no plugin ({} bytes)", bytes.len()));
    }
    Ok(format!("{PLUGIN}, {} bytes", bytes.len()))
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
fn round_trip() -> Result<String, String> {
    let wave: Vec<f32> = (0..64 * 1024).map(|i| (i as f32 * 1e-3).sin()).collect();
    let raw: Vec<u8> = wave.iter().flat_map(|x| x.to_le_bytes()).collect();
    let ask = Ask { codec: Codec::Auto, bound: Bound::Absolute(1e-3) };
    let params = Params::new(ask, Dtype::F32, &[64, 1024]).map_err(|e| e.to_string())?;
    let frame = Engine::global().encode(&params, &raw);
    let back = Engine::global().decode(&frame, raw.len() as u64).map_err(|e| e.to_string())?;
    let worst = wave
        .iter()
        .zip(back.chunks_exact(4))
        .map(|(x, b)| (f64::from(*x) - f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).abs())
        .fold(0.0, f64::max);
    if worst > 1e-3 {
        return Err(format!("a value changed by {worst:e}, the bound is 1e-3"));
    }
    Ok(format!("{} bytes to {}, largest error {worst:.2e} at a bound of 1e-3", raw.len(), frame.len()))
}
