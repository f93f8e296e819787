// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels on a machine without a GPU: compiled for the CPU behind `emulator.h`, which says what that shows and
//! what not, and given all that `gpu_check` gives to a GPU, with a CTA's threads in three orders.
//!
//! `H5Z_GPU_TEST_CODEC=szx` (lorenzo, ndzip, planes) checks one codec's kernels, as `make check-kernels K=szx` does.
//!
//! What the tests leave in `target/tmp` serves any program and debugger:
//! `LD_LIBRARY_PATH=target/tmp/fake-cuda- FAKE_CUDA_KERNELS=target/tmp/kernels EMULATOR_ORDER=random
//! gpu_check --cases 20000`.

#[allow(dead_code, reason = "its main")]
#[path = "../tools/gpu_check.rs"]
mod gpu_check;
mod stand_in;

use stand_in::{Fake, INSIDE, stand_in, start};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Whether every order and more chunks are asked for.
fn is_long() -> bool {
    std::env::var("H5Z_GPU_TEST_LONG").is_ok_and(|x| x == "1")
}

/// `gpu_check ARGS` in a process of its own for each order, which gives the seed; for the order of this third, where
/// three commits share the work (tests/run.sh).
fn check(test: &str, args: &[&str]) {
    if std::env::var_os(INSIDE).is_some() {
        let fake = Fake::open(None);
        let seed = std::env::var("EMULATOR_SEED").unwrap();
        let only = std::env::var("H5Z_GPU_TEST_CODEC").ok();
        let only = only.iter().flat_map(|codec| ["--codec", codec]);
        let said = gpu_check::run(args.iter().copied().chain(["--seed", &seed]).chain(only).map(String::from));
        println!("{}", said.unwrap_or_else(|why| panic!("{why}")));
        fake.judge();
        return;
    }
    let orders = ["random", "forward", "backward"];
    let third = std::env::var("H5Z_GPU_TEST_THIRD").map_or(0, |third| third.parse().expect("0, 1 or 2"));
    assert!(third < orders.len(), "H5Z_GPU_TEST_THIRD is {third}; allowed are 0, 1, 2");
    for (seed, order) in orders.into_iter().enumerate().filter(|(k, _)| is_long() || *k == third) {
        let folder = kernels().to_str().unwrap();
        let env = [("FAKE_CUDA_KERNELS", folder), ("EMULATOR_ORDER", order), ("EMULATOR_SEED", &seed.to_string())];
        let said = start(test, &stand_in(""), &env).unwrap_or_else(|why| panic!("{why}"));
        println!("{order}: {said}");
    }
}

#[test]
fn golden_vectors_by_the_kernels() {
    check("golden_vectors_by_the_kernels", &["--vectors", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/v2")]);
}

#[test]
fn every_stage_of_the_kernels() {
    check("every_stage_of_the_kernels", &["--stages", "25"]);
}

#[test]
fn arrays_on_a_device_by_the_kernels() {
    check("arrays_on_a_device_by_the_kernels", &["--arrays", "80", "--largest", "30000"]);
}

/// Chunks of which a sample is encoded: smaller ones are all sample.
#[test]
fn codecs_chosen_by_samples_on_a_device() {
    check("codecs_chosen_by_samples_on_a_device", &["--arrays", "60", "--largest", "200000", "--codec", "auto"]);
}

#[test]
fn values_made_and_judged_by_the_kernels() {
    check("values_made_and_judged_by_the_kernels", &["--values", "1500000", "--largest", "8192"]);
}

#[test]
fn a_value_beyond_its_bound_and_a_changed_bit_are_found() {
    const TEST: &str = "a_value_beyond_its_bound_and_a_changed_bit_are_found";
    if std::env::var_os(INSIDE).is_none() {
        let env = [("FAKE_CUDA_KERNELS", kernels().to_str().unwrap())];
        start(TEST, &stand_in(""), &env).unwrap_or_else(|why| panic!("{why}"));
        return;
    }
    let fake = Fake::open(None);
    let both = [("bound", "1 bounds broken, 0 bits moved"), ("bits", "0 bounds broken, 1 bits moved")];
    for (what, named) in both {
        let args = ["--values", "400000", "--largest", "2048", "--spoil", what];
        let said = gpu_check::run(args.into_iter().map(String::from));
        assert!(said.as_ref().is_err_and(|why| why.contains(named)), "{said:?}");
    }
    fake.judge();
}

#[test]
fn random_chunks_and_damaged_frames_by_the_kernels() {
    // As many of a codec whether it is alone or not.
    let cases = match is_long() {
        false => "500",
        true if std::env::var_os("H5Z_GPU_TEST_CODEC").is_some() => "700",
        true => "2000",
    };
    check("random_chunks_and_damaged_frames_by_the_kernels", &["--cases", cases]);
}

#[test]
fn chunks_of_all_magnitudes_by_the_kernels() {
    let cases = std::env::var("H5Z_GPU_TEST_SALTED").unwrap_or_else(|_| "700".into());
    check("chunks_of_all_magnitudes_by_the_kernels", &["--salted", &cases]);
}

use h5z_gpu::testing::SOURCES as KERNELS;

/// Folder of the kernels, a library for each of `kernels/*.cu` and `tests/gpu/cuda/*.cu`.
fn kernels() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        assert!(
            h5z_gpu::testing::images() > 0,
            "built without GPU code (H5Z_GPU_CUDA=off, or no compiler): `make test` installs one, \
             kernels/build/compiler.rs says where it looks"
        );
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        std::fs::create_dir_all(&dir).unwrap();
        let folders = [KERNELS.into(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/cuda")];
        let entries = folders.iter().flat_map(|folder: &PathBuf| std::fs::read_dir(folder).unwrap());
        std::thread::scope(|s| {
            for source in entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|x| x == "cu")) {
                let dir = &dir;
                s.spawn(move || compile(&source, dir));
            }
        });
        dir
    })
}

/// Makes `dir/STEM.so` of `STEM.cu`: the kernels of the file, as they are, and the list of them. One that was made of
/// the same text stays.
fn compile(source: &Path, dir: &Path) {
    // The list of kernels; the compiler's version; all that is included.
    let all = cxx(&["-E"], &format!("#include {source:?}\n__VERSION__\n")).stdout;
    let listed = String::from_utf8_lossy(&all);
    let listed = listed.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n");
    let emulator = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/emulator.h");
    let mut text = format!("#include {emulator:?}\n#include {source:?}\n");
    // __global__ __launch_bounds__(BOUNDS) void NAME(ARGS args) { ... }
    for entry in listed.split("__global__").skip(1) {
        let parts = || {
            let (bounds, rest) =
                entry.split('{').next()?.trim().strip_prefix("__launch_bounds__")?.rsplit_once("void")?;
            let (name, args) = rest.trim().split_once('(')?;
            Some(format!("KERNEL({name}, {}, {bounds})\n", args.split(' ').next()?))
        };
        text += &parts().unwrap_or_else(|| panic!("{}: what kernel is {entry:.200}?", source.display()));
    }
    // As nvcc is asked to: nothing fused, nothing assumed of pointers, integers that wrap around. A fibre's stack is
    // not what the checks of a fortified longjmp expect.
    let flags = ["-O2", "-g1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-U_FORTIFY_SOURCE"];
    // Not `shift` nor `integer-divide-by-zero`: with them GCC 12 makes `(c ? a : b)[x / 2]` of 2 into a[0].
    let checks = ["-fsanitize=bounds,alignment", "-fno-sanitize-recover=all"];
    let mut hasher = DefaultHasher::new();
    (all, &text, std::fs::read(emulator).unwrap(), flags, checks).hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    let library = dir.join(source.with_extension("so").file_name().unwrap());
    let (mark, new) = (library.with_extension("hash"), library.with_extension(format!("new-{}", std::process::id())));
    if library.exists() && std::fs::read_to_string(&mark).is_ok_and(|of| of == hash) {
        return;
    }
    let output = ["-shared", "-fPIC", "-o", new.to_str().unwrap()];
    cxx(&[&flags[..], &checks, &output].concat(), &text);
    let _ = std::fs::remove_file(&mark);
    std::fs::rename(new, library).unwrap();
    std::fs::write(mark, hash).unwrap();
}

/// Runs the C++ compiler over a text.
fn cxx(args: &[&str], text: &str) -> Output {
    let name = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    // build.rs leaves the header there that host and kernels share.
    let mut cxx = Command::new(&name);
    cxx.args(["-std=c++17", "-I", h5z_gpu::testing::HEADER, "-I", KERNELS]).args(args).args(["-x", "c++", "-"]);
    let mut child =
        cxx.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(|e| {
            panic!("{name}: {e}. A C++ compiler is needed: Debian's package g++, or one named by CXX")
        });
    // A compiler that stops early says why below.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{name} fails:\n{}", String::from_utf8_lossy(&done.stderr));
    done
}
