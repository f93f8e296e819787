// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doctor` asks in processes of their own: a library that crashes ends such a process and nothing else, and each
//! answer is that of a program which starts with the variables of now.
//!
//! ```text
//! probe hdf5 LIBRARY FOLDER [PLUGIN]   version, where it looks, what it loads for the filter, and a round trip
//!                                      through it in FOLDER; PLUGIN is handed to it where it finds none
//! probe folders LIBRARY                version, and where it looks
//! probe plugin FILE                    a file that may be a plugin: its filter's number, and the state of ours
//! probe gpu FILE                       whether our plugin encodes on a GPU
//! probe cuda                           what the CUDA driver says
//! ```
//!
//! The last line printed is JSON.

use crate::abi::{self, H5PLget, H5PLsize, H5ZfilterAvail, H5Zregister, H5getLibversion, H5open};
use crate::library::{self, Answer, function, reason};
use crate::places::{ID, opened_by_hdf5};
use crate::{Outcome, cuda, round_trip};
use h5z_gpu::plugin::folders::hdf5_folders;
use libloading::Library;
use serde_json::{Value, json};
use std::env;
use std::ffi::{CStr, OsStr, c_int};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A library that has not answered by then hangs.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub(crate) struct Args {
    what: String,
    arguments: Vec<PathBuf>,
}

/// What a child answers; "error" where it does not. A variable that is `None` is unset there.
pub(crate) fn ask(what: &str, arguments: &[&OsStr], variables: &[(&str, Option<&str>)]) -> Value {
    asked(what, arguments, variables).unwrap_or_else(|why| json!({"error": why}))
}

fn asked(what: &str, arguments: &[&OsStr], variables: &[(&str, Option<&str>)]) -> Answer {
    let text = |e: std::io::Error| e.to_string();
    let mut command = Command::new(env::current_exe().map_err(text)?);
    // A connector that is named and not found ends HDF5; what is asked is not asked of it.
    command.arg("probe").arg(what).args(arguments).env_remove("HDF5_VOL_CONNECTOR");
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().map_err(text)?;
    let (out, err) = (gathered(child.stdout.take()), gathered(child.stderr.take()));
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(text)? {
            Some(status) => break status,
            None if begin.elapsed() > PATIENCE => {
                _ = child.kill();
                _ = child.wait();
                return Err(format!("it has not answered for {} seconds", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    if let Some(crash) = crash(status) {
        return Err(format!("the process that asked it was ended by {crash}"));
    }
    let last = || err.trim().lines().last().unwrap_or("it ended without an answer").to_owned();
    let mut answer: Value = serde_json::from_str(out.lines().last().unwrap_or_default()).map_err(|_| last())?;
    let said: Vec<&str> = err.lines().filter(|line| line.starts_with("h5z-gpu: ")).collect();
    if !said.is_empty() {
        answer["said"] = json!(said);
    }
    Ok(answer)
}

fn gathered(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What has ended a process that did not end itself.
#[cfg(unix)]
fn crash(status: ExitStatus) -> Option<String> {
    let names = [
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGKILL, "SIGKILL"),
    ];
    let number = std::os::unix::process::ExitStatusExt::signal(&status)?;
    Some(names.iter().find(|n| n.0 == number).map_or_else(|| format!("signal {number}"), |n| n.1.into()))
}

/// What has ended a process that did not end itself: codes of errors begin at 0xC0000000.
#[cfg(windows)]
fn crash(status: ExitStatus) -> Option<String> {
    let code = status.code()? as u32;
    (code >= 0xC000_0000).then(|| format!("exception {code:#X}"))
}

/// Where libraries look without the variable, and where HDF5's builders let it look.
pub(crate) fn default_folders(libraries: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    let told = libraries.iter().map(|l| ask("folders", &[l.as_os_str()], &[("HDF5_PLUGIN_PATH", None)]));
    let told: Vec<PathBuf> = told.flat_map(|answer| texts(&answer["folders"])).map(PathBuf::from).collect();
    for folder in told.into_iter().chain(hdf5_folders().into_iter().map(PathBuf::from)) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// The child's part: prints the answer, and ends without tearing down what was loaded.
pub(crate) fn run(a: &Args) -> Outcome {
    let answer = match (&*a.what, &a.arguments[..]) {
        ("hdf5", [library, folder, plugin @ ..]) => hdf5(library, folder, plugin.first()),
        ("folders", [library]) => open(library).map(|library| look(&library)),
        ("plugin", [file]) => plugin(file),
        ("gpu", [file]) => gpu(file),
        ("cuda", []) => Ok(cuda::ask()),
        _ => Err(format!("{}: no such question", a.what)),
    };
    say!("\n{}", answer.unwrap_or_else(|why| json!({"error": why})));
    _ = std::io::stdout().flush();
    // SAFETY: ends the process at once; all that it had to say is written.
    unsafe { libc::_exit(0) }
}

/// A library, behind those beside it that it needs and does not find: a wheel may leave them to its package to load.
fn open(path: &Path) -> Answer<Library> {
    let mut tried = Vec::new();
    loop {
        let why = match library::open(path) {
            Ok(library) => return Ok(library),
            Err(why) => reason(&why),
        };
        let missing = why.split_once(':').and_then(|(name, _)| Some(path.parent()?.join(name)));
        match missing.filter(|m| m != path && m.is_file() && !tried.contains(m)) {
            Some(missing) => {
                std::mem::forget(open(&missing)?); // it stays
                tried.push(missing);
            }
            None => return Err(why),
        }
    }
}

/// Version and folders; no folders of HDF5 before 1.10, which does not tell.
fn look(library: &Library) -> Value {
    let mut version = [0; 3];
    // SAFETY: HDF5's own signatures, the same in every release that has the function; what they write to outlives the
    // calls.
    unsafe {
        if let Ok(begin) = function::<H5open>(library, "H5open") {
            begin();
        }
        if let Ok(get) = function::<H5getLibversion>(library, "H5get_libversion") {
            let [major, minor, release] = &mut version;
            get(major, minor, release);
        }
        let (count, get) = (function::<H5PLsize>(library, "H5PLsize"), function::<H5PLget>(library, "H5PLget"));
        let (Ok(count), Ok(get)) = (count, get) else { return json!({"version": version, "folders": null}) };
        let mut n = 0;
        count(&mut n);
        let folder = |k| {
            let mut text = [0u8; 4096];
            let len = usize::try_from(get(k, text.as_mut_ptr().cast(), text.len())).unwrap_or(0);
            String::from_utf8_lossy(&text[..len.min(text.len() - 1)]).into_owned()
        };
        json!({"version": version, "folders": (0..n).map(folder).collect::<Vec<_>>()})
    }
}

fn hdf5(path: &Path, folder: &Path, own: Option<&PathBuf>) -> Answer {
    let library = open(path)?;
    let mut answer = look(&library);
    answer["plugin"] = Value::Null;
    answer["handed"] = false.into();
    // SAFETY: HDF5's own signatures, as above. A plugin's description is a constant of it, and it stays loaded.
    let found = unsafe { function::<H5ZfilterAvail>(&library, "H5Zfilter_avail")?(ID as c_int) } > 0;
    if found {
        answer["plugin"] = ours(&answer).map_or("under an unknown name".into(), |file| file.to_string_lossy().into());
    } else if let Some(own) = own {
        let plugin = std::mem::ManuallyDrop::new(open(own)?);
        // SAFETY: as above.
        let handed = unsafe {
            let class = function::<abi::PluginInfo>(&plugin, "H5PLget_plugin_info")?();
            function::<H5Zregister>(&library, "H5Zregister")?(class.cast())
        };
        answer["handed"] = (handed >= 0).into();
    }
    if found || answer["handed"] == true {
        let old = answer["version"][0] == 1 && answer["version"][1].as_u64() < Some(10);
        match round_trip::run(&library, old, &folder.join(format!("round_trip.{}.h5", std::process::id()))) {
            Ok(trip) => answer["round_trip"] = trip,
            Err(why) => answer["failed"] = why.into(),
        }
    }
    Ok(answer)
}

/// A plugin for our filter, whatever its name is, that this process has loaded from a folder in which its HDF5 looks.
fn ours(told: &Value) -> Option<PathBuf> {
    let files = searched(&texts(&told["folders"])).into_iter().flat_map(|folder| opened_by_hdf5(&folder));
    files.into_iter().find(|file| library::loaded(file).is_some_and(|library| number(&library) == Some(ID as c_int)))
}

/// The folders that an HDF5 has told, or of one that tells none (before 1.10) those of the variable or of its builders.
fn searched(told: &[String]) -> Vec<PathBuf> {
    match env::var_os("HDF5_PLUGIN_PATH") {
        _ if !told.is_empty() => told.iter().map(PathBuf::from).collect(),
        Some(set) => env::split_paths(&set).collect(),
        None => hdf5_folders().into_iter().map(PathBuf::from).collect(),
    }
}

/// The filter's number that a plugin states.
fn number(plugin: &Library) -> Option<c_int> {
    // SAFETY: every plugin that exports this name answers a description that begins so, or nothing.
    unsafe { function::<abi::PluginInfo>(plugin, "H5PLget_plugin_info").ok()?().as_ref().map(|class| class.id) }
}

fn plugin(path: &Path) -> Answer {
    let library = open(path)?;
    let mut answer = json!({"filter": number(&library)});
    // SAFETY: the declarations of h5z_gpu.h; the version is a constant, and the text outlives the call.
    unsafe {
        if let Ok(version) = function::<abi::Version>(&library, "h5z_gpu_version") {
            answer["version"] = CStr::from_ptr(version()).to_string_lossy().into();
        }
        if let Ok(status) = function::<abi::Status>(&library, "h5z_gpu_status") {
            let mut text = vec![0u8; 1 << 16];
            let len = usize::try_from(status(text.as_mut_ptr().cast(), text.len())).unwrap_or(0);
            answer["status"] = serde_json::from_slice(&text[..len.min(text.len())]).map_err(|e| e.to_string())?;
        }
    }
    std::mem::forget(library);
    Ok(answer)
}

/// Encodes 16 MiB. The reason why no GPU did it stands in the log, on standard error.
fn gpu(path: &Path) -> Answer {
    let library = std::mem::ManuallyDrop::new(open(path)?);
    let raw = vec![0f32; 4 << 20];
    let mut frame = vec![0u8; 4 * raw.len() + 64];
    let extents = [raw.len() as u64 >> 11, 1 << 11];
    // SAFETY: the declarations of h5z_gpu.h; every buffer has the length that is told and outlives the call.
    let chunks = unsafe {
        let encode = function::<abi::Encode>(&library, "h5z_gpu_encode")?;
        let none = std::ptr::null();
        encode(
            [11003].as_ptr(),
            1,
            c"<f4".as_ptr(),
            extents.len(),
            extents.as_ptr(),
            none,
            raw.as_ptr().cast(),
            4 * raw.len(),
            frame.as_mut_ptr().cast(),
            frame.len(),
        );
        function::<abi::DeviceChunks>(&library, "h5z_gpu_device_chunks")?(0)
    };
    Ok(json!({"encoded_on_gpu": chunks > 0}))
}
