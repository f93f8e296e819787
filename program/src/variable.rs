// SPDX-License-Identifier: MIT OR Apache-2.0
//! `env`: the line that lets HDF5 find the plugin. `path`: the plugin's folder.

use crate::places::{self, PLUGIN, Packages};
use crate::{Fail, Outcome, probe, say_bytes};
use h5z_gpu::plugin::folders::BETWEEN;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The plugin of this program: in the folder that H5Z_GPU_PLUGIN_PATH names, or in ../plugin.
pub(crate) fn own() -> PathBuf {
    let beside = || Some(env::current_exe().ok()?.parent()?.parent()?.join("plugin"));
    let named = env::var_os("H5Z_GPU_PLUGIN_PATH").filter(|v| !v.is_empty()).map(PathBuf::from);
    named.or_else(beside).unwrap_or_default().join(PLUGIN)
}

/// The same, where it is there.
pub(crate) fn plugin() -> Outcome<PathBuf> {
    let file = own();
    if file.is_file() {
        return Ok(file);
    }
    let folder = file.parent().unwrap_or(&file).display();
    Err(Fail::Wrong(format!(
        "h5z-gpu: no {PLUGIN} in {folder}; in the sources `make` puts it there, else install again, or name \
         another folder by H5Z_GPU_PLUGIN_PATH"
    )))
}

/// Prints `export HDF5_PLUGIN_PATH=...`, on Windows PowerShell's line.
pub(crate) fn run(a: &Packages) -> Outcome {
    let value = value(a)?;
    let value = value.as_encoded_bytes();
    let line = if cfg!(windows) {
        [b"$env:HDF5_PLUGIN_PATH = ", &in_quotes(value)[..]].concat()
    } else {
        [b"export HDF5_PLUGIN_PATH=", &quoted_bytes(value)[..]].concat()
    };
    say_bytes(&line);
    Ok(())
}

/// What to type so that the shell obeys the line that a command prints.
pub(crate) fn obeyed(program: &str, arguments: &str) -> String {
    let program = quoted(program);
    if cfg!(windows) {
        format!("& {program} {arguments} | Invoke-Expression")
    } else {
        format!("eval \"$({program} {arguments})\"")
    }
}

/// What HDF5_PLUGIN_PATH is to be: our folder, then what is set, or what HDF5 would search without the variable.
pub(crate) fn value(a: &Packages) -> Outcome<OsString> {
    let file = plugin()?;
    let mut folders = vec![file.parent().map(PathBuf::from).unwrap_or_default()];
    let others: Vec<PathBuf> = match env::var_os("HDF5_PLUGIN_PATH").filter(|v| !v.is_empty()) {
        Some(value) => env::split_paths(&value).filter(|f| !f.as_os_str().is_empty()).collect(),
        None => {
            let told = probe::default_folders(&places::libraries(&[], a));
            told.into_iter().chain(a.netcdf4_plugins()).filter(|f| f.is_dir()).collect()
        }
    };
    for folder in others {
        if !folder.is_dir() {
            eprintln!("h5z-gpu: left out {}: no such folder, and HDF5 1.10 searches no further", folder.display());
        } else if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let refuse = || {
        Fail::Wrong(format!(
            "h5z-gpu: {folders:?}: a path with a '{BETWEEN}' cannot stand in HDF5_PLUGIN_PATH, move it"
        ))
    };
    env::join_paths(&folders).map_err(|_| refuse())
}

/// As one word of a shell's line, on Windows of PowerShell's.
pub(crate) fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quoted_bytes(text.as_bytes())).into_owned()
}

/// The same of a path, whose bytes need not be text: between quotes a shell takes any byte as it is.
fn quoted_bytes(text: &[u8]) -> Vec<u8> {
    let plain = |&c: &u8| c.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&c) || cfg!(windows) && c == b'\\';
    if !text.is_empty() && text.iter().all(plain) { text.into() } else { in_quotes(text) }
}

fn in_quotes(text: &[u8]) -> Vec<u8> {
    let quote: &[u8] = if cfg!(windows) { b"''" } else { br"'\''" };
    let parts: Vec<&[u8]> = text.split(|&c| c == b'\'').collect();
    [b"'", &parts.join(quote)[..], b"'"].concat()
}
