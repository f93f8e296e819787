// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles one kernel file for one architecture with NVRTC, CUDA's compiler as a library, in a process of its own:
//! NVRTC compiles one architecture a call, and processes use all cores.
//!
//! `nvrtc.h` of CUDA 12 declares the functions; their names and types are the same in every release since 11.2.

use super::files;
use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, ptr};

/// First argument of the process that compiles.
const COMPILE: &str = "--compile-with-nvrtc";

type Program = *mut c_void;

/// The library, open, and what its calls return.
pub(crate) struct Nvrtc {
    library: Library,
}

impl Nvrtc {
    /// Opens `libnvrtc.so`. Its built-in functions lie beside it in a library that it opens by name: where that folder
    /// is not searched, they are found because they are open already.
    pub(crate) fn open(path: &Path) -> Result<Nvrtc, String> {
        for beside in files(path.parent().unwrap_or(Path::new("."))) {
            let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("libnvrtc-builtins.so") {
                // SAFETY: NVIDIA's library: data, and an initialiser that does nothing to this process.
                std::mem::forget(unsafe { Library::new(&beside) });
            }
        }
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Nvrtc { library })
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is its type.
    unsafe fn function<F>(&self, name: &str) -> Result<Symbol<'_, F>, String> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get(name.as_bytes()) }.map_err(|e| e.to_string())
    }

    /// Major and minor release.
    pub(crate) fn release(&self) -> Result<(u32, u32), String> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: the type of nvrtc.h; both numbers can be written.
        let code = unsafe {
            self.function::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>("nvrtcVersion")?(
                &mut major, &mut minor,
            )
        };
        if code == 0 { Ok((major as u32, minor as u32)) } else { Err(format!("nvrtcVersion answers {code}")) }
    }

    /// Architectures that it compiles for.
    pub(crate) fn archs(&self) -> Result<Vec<u32>, String> {
        let mut count: c_int = 0;
        // SAFETY: the type of nvrtc.h; the number can be written.
        unsafe { self.function::<unsafe extern "C" fn(*mut c_int) -> c_int>("nvrtcGetNumSupportedArchs")?(&mut count) };
        let mut archs = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the type of nvrtc.h; as many numbers can be written as it has just said.
        unsafe {
            self.function::<unsafe extern "C" fn(*mut c_int) -> c_int>("nvrtcGetSupportedArchs")?(archs.as_mut_ptr())
        };
        Ok(archs.into_iter().map(|a| a as u32).collect())
    }

    /// One of the two calls of which the first gives the length and the second the bytes.
    fn text(&self, program: Program, what: &str) -> Result<Vec<u8>, String> {
        let mut len = 0usize;
        let (size, get) = (format!("nvrtcGet{what}Size"), format!("nvrtcGet{what}"));
        // SAFETY: the type of nvrtc.h; the program is one that was made, and the number can be written.
        unsafe { self.function::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(&size)?(program, &mut len) };
        let mut bytes = vec![0u8; len];
        // SAFETY: as above, and as many bytes can be written as it has just said.
        let code = unsafe {
            self.function::<unsafe extern "C" fn(Program, *mut c_char) -> c_int>(&get)?(
                program,
                bytes.as_mut_ptr().cast(),
            )
        };
        if code == 0 { Ok(bytes) } else { Err(format!("{get} answers {code}")) }
    }

    /// Compiles a text: the image, or nothing where it does not compile, and what the compiler says.
    fn compile(&self, name: &CStr, text: &CStr, flags: &[CString]) -> Result<(Option<Vec<u8>>, String), String> {
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        let mut program = ptr::null_mut();
        // SAFETY: the type of nvrtc.h; texts end in NUL, and there are no headers.
        let code = unsafe {
            let create = self.function::<Create>("nvrtcCreateProgram")?;
            create(&mut program, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        if code != 0 {
            return Err(format!("nvrtcCreateProgram answers {code}"));
        }
        let listed: Vec<_> = flags.iter().map(|f| f.as_ptr()).collect();
        // SAFETY: the type of nvrtc.h; the program was just made, and there are as many texts as said.
        let code = unsafe {
            self.function::<Compile>("nvrtcCompileProgram")?(program, listed.len() as c_int, listed.as_ptr())
        };
        let said = self.text(program, "ProgramLog")?;
        let said = String::from_utf8_lossy(&said).trim_end_matches('\0').to_owned();
        if code != 0 {
            return Ok((None, format!("{said}\nnvrtcCompileProgram answers {code}")));
        }
        let machine = flags.iter().any(|f| f.to_bytes().starts_with(b"--gpu-architecture=sm_"));
        Ok((Some(self.text(program, if machine { "CUBIN" } else { "PTX" })?), said))
    }
}

/// The process that compiles `source` into `made` with these flags of NVRTC.
pub(crate) fn command(library: &Path, source: &Path, made: &Path, flags: &[String]) -> Command {
    let mut me = Command::new(env::current_exe().expect("a build script is a file"));
    me.arg(COMPILE).args([library, source, made]).args(flags);
    me
}

/// The work of that process: true where this process is one. What the compiler says goes to standard error.
pub(crate) fn compiled_here() -> bool {
    let mut args = env::args_os().skip(1);
    if args.next().is_none_or(|first| first != COMPILE) {
        return false;
    }
    let mut path = || args.next().map(PathBuf::from).expect("a path");
    let (library, source, made) = (path(), path(), path());
    let flags: Vec<CString> =
        args.map(|a| CString::new(a.into_encoded_bytes()).expect("an argument holds no NUL")).collect();
    let image = || {
        let text = fs::read(&source).map_err(|e| e.to_string())?;
        let text = CString::new(text).map_err(|e| e.to_string())?;
        let name = CString::new(source.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        let (image, said) = Nvrtc::open(&library)?.compile(&name, &text, &flags)?;
        eprint!("{said}");
        // As `-Werror all-warnings` of nvcc, which NVRTC does not have. That it is the last to know an architecture is
        // no fault.
        let warns = |line: &str| line.contains("warning") && !line.contains("are deprecated and may be removed");
        let image = image.filter(|_| !said.lines().any(warns)).ok_or("")?;
        fs::write(&made, image).map_err(|e| format!("{}: {e}", made.display()))
    };
    if let Err(why) = image() {
        eprintln!("{why}");
        std::process::exit(1);
    }
    true
}
