// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stand-in for the driver (`fake_cuda.c`): compiled, put in front of a test's own process, and asked.

use h5z_gpu::testing;
use std::ffi::{c_char, c_long, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// What a thread's current context is before, and must be after, every call.
pub const HOSTS_OWN: usize = 77;
/// Set in the process in which a test's body runs.
pub const INSIDE: &str = "H5Z_GPU_TEST_INSIDE";
/// Variables that decide about the device.
const DECIDE: [&str; 7] = [
    "H5Z_GPU_DEVICE",
    "H5Z_GPU_MIN_BYTES",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
];

/// Folder of the stand-in, compiled when first asked for, without one function if `lacking` names it.
pub fn stand_in(lacking: &str) -> PathBuf {
    static MADE: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap();
    if let Some((_, dir)) = made.iter().find(|m| m.0 == lacking) {
        return dir.clone();
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-cuda-{lacking}"));
    std::fs::create_dir_all(&dir).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/fake_cuda.c");
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1", "-o"]);
    // Made under another name: a second run of these tests may have the library open.
    let made_as = dir.join(format!("new-{}", std::process::id()));
    cc.arg(&made_as).arg(format!("-DWITHOUT_{lacking}")).arg(source).args(["-lpthread", "-ldl"]);
    assert!(cc.status().expect("a C compiler").success(), "the stand-in does not compile");
    std::fs::rename(made_as, dir.join("libcuda.so.1")).unwrap();
    // The binding looks under this name first, and must find the same library.
    let _ = std::os::unix::fs::symlink("libcuda.so.1", dir.join("libcuda.so"));
    made.push((lacking.into(), dir.clone()));
    dir
}

/// Starts this program for the body of `test`; what it printed, or why it failed.
pub fn start(test: &str, library_path: &Path, env: &[(&str, &str)]) -> Result<String, String> {
    let mut me = Command::new(std::env::current_exe().unwrap());
    me.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    DECIDE.iter().for_each(|name| _ = me.env_remove(name));
    me.env(INSIDE, "1").env("LD_LIBRARY_PATH", library_path).envs(env.iter().copied());
    let done = me.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() && said.contains("1 passed") {
        return Ok(said);
    }
    Err(format!("{test} with {env:?}: {}\n{said}{}", done.status, String::from_utf8_lossy(&done.stderr)))
}

/// A function that stands for every kernel: its name, CTAs, threads of each, and the address of its arguments.
pub type Runner = extern "C" fn(*const c_char, u32, u32, *mut c_void);

/// The stand-in's own functions.
pub struct Fake {
    library: libloading::Library,
}

impl Fake {
    /// Finds the stand-in, which calls `runner` for kernels.
    pub fn open(runner: Option<Runner>) -> Fake {
        // SAFETY: the stand-in: the only library of this name on the path.
        let library = unsafe { libloading::Library::new("libcuda.so.1") }.expect("the stand-in");
        let fake = Fake { library };
        fake.set_current();
        // SAFETY: as declared in fake_cuda.c.
        unsafe { fake.library.get::<extern "C" fn(Option<Runner>)>(b"fake_cuda_runner").expect("its")(runner) };
        fake
    }

    pub fn set_current(&self) {
        // SAFETY: as declared in fake_cuda.c.
        unsafe { self.library.get::<extern "C" fn(usize)>(b"fake_cuda_set_current").expect("its")(HOSTS_OWN) };
    }

    pub fn number(&self, name: &str) -> usize {
        // SAFETY: functions of this type in fake_cuda.c.
        unsafe { self.library.get::<extern "C" fn() -> c_long>(name.as_bytes()).expect("its")() as usize }
    }

    /// Driver calls so far.
    pub fn calls(&self) -> usize {
        self.number("fake_cuda_calls")
    }

    /// What must hold at the end of everything.
    pub fn judge(&self) {
        assert_eq!(self.number("fake_cuda_faults"), 0, "the stand-in saw something wrong");
        assert_eq!(self.number("fake_cuda_current"), HOSTS_OWN, "the host's context is not current any more");
        assert!(testing::images() > 0 || self.calls() == 0, "a build without kernels called the driver");
    }
}
