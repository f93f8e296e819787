// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kernel files there are, what they are made of, and which have to be compiled for what.

use super::compiler::{Compiler, Target};
use super::images::{self, Made};
use super::{files, header, keep};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::{env, fs, thread};

/// Compute capabilities that get machine code. It runs on later minor versions of the same major one as well: that of
/// 8.6 on 8.7 and 8.9, for which the compiler makes the same; of 10.0 on 10.3, of 12.0 on 12.1. Not that of 8.0, whose
/// multiprocessors hold a third more threads.
const ARCHS: [u32; 7] = [70, 75, 80, 86, 90, 100, 120];
/// PTX is of this one: for what is newer, and not of a major version above.
const PTX: u32 = 90;

/// A kernel file, and where its images are kept: names that begin so, with a hash of all that decides them.
struct Source {
    path: PathBuf,
    stem: String,
    kept: PathBuf,
    /// Bytes of its texts.
    len: usize,
}

impl Source {
    fn kept(&self, target: Target, kind: &str) -> PathBuf {
        let name = self.kept.file_name().expect("a name").to_string_lossy();
        self.kept.with_file_name(format!("{name}-{target}.{kind}"))
    }
}

/// Compiles every kernel file that is new; returns the text of `images.rs`.
pub(crate) fn build(out: &Path) -> Result<String, String> {
    let compiler = Compiler::find()?;
    let targets = targets(&compiler)?;
    let header = header::text();
    fs::write(out.join("h5z_abi.cuh"), &header).map_err(|e| e.to_string())?;
    let cache = env::var_os("H5Z_GPU_KERNEL_CACHE").map_or_else(|| out.join("kernels"), PathBuf::from);
    fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let sources = sources(&cache, &(&compiler, header))?;
    let mut jobs: Vec<(&Source, Target)> = sources.iter().flat_map(|s| targets.iter().map(move |&t| (s, t))).collect();
    jobs.retain(|(source, target)| !source.kept(*target, "txt").is_file());
    // The longest at the end of the list, from which jobs are taken.
    jobs.sort_by_key(|(source, _)| source.len);
    at_once(jobs, |(source, target)| compile(&compiler, source, target, out))?;
    let entries: Mutex<Vec<(Target, String)>> = Mutex::default();
    at_once(targets, |target| {
        let made: Result<Vec<Made>, String> = sources.iter().map(|source| read(source, target)).collect();
        let entry = images::entry(target, &made?, out, &cache)?;
        entries.lock().expect("nobody panics").push((target, entry));
        Ok(())
    })?;
    let mut entries = entries.into_inner().expect("nobody panics");
    entries.sort();
    Ok(images::list(Some(&compiler), &entries.into_iter().map(|e| e.1).collect::<String>()))
}

/// Does jobs, the last one first, on all cores; stops at the first that fails.
fn at_once<J: Send>(jobs: Vec<J>, work: impl Fn(J) -> Result<(), String> + Sync) -> Result<(), String> {
    let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(jobs.len());
    let (jobs, failed) = (Mutex::new(jobs), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().expect("nobody panics").is_none() {
                    let Some(job) = jobs.lock().expect("nobody panics").pop() else { return };
                    if let Err(why) = work(job) {
                        *failed.lock().expect("nobody panics") = Some(why);
                    }
                }
            });
        }
    });
    failed.into_inner().expect("nobody panics").map_or(Ok(()), Err)
}

/// Compiles a file, and keeps image and report.
fn compile(compiler: &Compiler, source: &Source, target: Target, out: &Path) -> Result<(), String> {
    let made = out.join(format!("{}-{target}.new", source.stem));
    let mut process = compiler.command(&source.path, &made, target, out);
    let done = process.stdout(Stdio::null()).stderr(Stdio::piped()).output().map_err(|e| format!("{compiler}: {e}"))?;
    let report = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let said: Vec<&str> = report.lines().filter(|l| !l.starts_with("ptxas")).take(20).collect();
        return Err(format!("{compiler} fails on {} for {target}: {}", source.path.display(), said.join(" | ")));
    }
    let image = fs::read(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    _ = fs::remove_file(&made);
    // The report comes last, and says that the image is whole.
    keep(&source.kept(target, "image"), &image)?;
    keep(&source.kept(target, "txt"), report.as_bytes())
}

fn read(source: &Source, target: Target) -> Result<Made, String> {
    let [image, report] = ["image", "txt"].map(|kind| {
        let name = source.kept(target, kind);
        fs::read(&name).map_err(|e| format!("{}: {e}", name.display()))
    });
    Ok(Made { stem: source.stem.clone(), image: image?, report: String::from_utf8_lossy(&report?).into_owned() })
}

/// What to compile for: architectures asked for by `H5Z_GPU_ARCHS`, or all that the compiler knows, and PTX.
fn targets(compiler: &Compiler) -> Result<Vec<Target>, String> {
    let code = |arch| Target { ptx: false, arch };
    if let Ok(asked) = env::var("H5Z_GPU_ARCHS") {
        let each = asked.split(',').map(|a| (a.trim().trim_end_matches("+PTX"), a.trim().ends_with("+PTX")));
        let list: Option<BTreeSet<(u32, bool)>> = each.map(|(arch, ptx)| Some((arch.parse().ok()?, ptx))).collect();
        let list = list.ok_or_else(|| format!("H5Z_GPU_ARCHS is {asked:?}; like 90, or 80,90+PTX"))?;
        if let Some((odd, _)) = list.iter().find(|l| !compiler.knows(l.0)) {
            return Err(format!("H5Z_GPU_ARCHS is {asked:?}, and {compiler} makes no code for {odd}"));
        }
        let ptx = list.iter().filter(|l| l.1).map(|&(arch, _)| Target { ptx: true, arch });
        return Ok(list.iter().map(|l| code(l.0)).chain(ptx).collect());
    }
    let (known, unknown): (Vec<u32>, Vec<u32>) = ARCHS.into_iter().partition(|&arch| compiler.knows(arch));
    if !unknown.is_empty() {
        println!("cargo:warning={compiler} makes no code for GPUs of architecture {unknown:?}: they will not be used");
    }
    Ok(known.into_iter().map(code).chain([Target { ptx: true, arch: PTX }]).collect())
}

/// The kernel files, and cargo told of all that they are made of. `common` decides the image of each.
fn sources(cache: &Path, common: &impl Hash) -> Result<Vec<Source>, String> {
    let mut folders = vec![PathBuf::from(".")];
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder");
    let of_tests = Path::new(&here).with_file_name("tests/gpu/cuda");
    if env::var_os("CARGO_FEATURE_TESTING").is_some() && of_tests.is_dir() {
        println!("cargo:rerun-if-changed={}", of_tests.display());
        folders.push(of_tests);
    }
    let mut found = Vec::new();
    let mut read = BTreeSet::new();
    let files = folders.iter().flat_map(|folder| files(folder));
    for path in files.filter(|p| p.extension().is_some_and(|x| x == "cu")) {
        let mut texts = BTreeSet::new();
        with_includes(&path, &mut texts);
        let mut hasher = DefaultHasher::new();
        common.hash(&mut hasher);
        let mut len = 0;
        for text in &texts {
            let bytes = fs::read(text).map_err(|e| format!("{}: {e}", text.display()))?;
            len += bytes.len();
            (text, bytes).hash(&mut hasher);
        }
        let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let kept = cache.join(format!("{stem}-{:016x}", hasher.finish()));
        read.append(&mut texts);
        found.push(Source { path, stem, kept, len });
    }
    read.iter().for_each(|text| println!("cargo:rerun-if-changed={}", text.display()));
    found.sort_by(|a, b| a.stem.cmp(&b.stem));
    Ok(found)
}

/// Adds a file and what it includes in quotes, except what this script writes.
fn with_includes(path: &Path, texts: &mut BTreeSet<PathBuf>) {
    // `a/../b` is `b`: every file has one name.
    let path = path.components().fold(PathBuf::new(), |mut path, part| {
        match part.as_os_str().to_str() {
            Some("..") => _ = path.pop(),
            Some(".") => {}
            _ => path.push(part),
        }
        path
    });
    let Ok(text) = fs::read_to_string(&path) else { return };
    if texts.insert(path.clone()) {
        for name in text.lines().filter_map(|l| l.trim().strip_prefix("#include \"")?.split('"').next()) {
            with_includes(&path.with_file_name(name), texts);
            with_includes(&PathBuf::from(name), texts);
        }
    }
}
