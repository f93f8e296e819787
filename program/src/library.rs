// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of libraries that are opened at run time.

use libloading::Library;
use std::path::Path;

/// What was asked, or a sentence that says why there is no answer.
pub(crate) type Answer<T = serde_json::Value> = Result<T, String>;

/// What the loader says of a failure: its own sentence stands behind that of the binding.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Opens a library, and on Unix lets those that are opened later use its functions.
#[cfg(unix)]
pub(crate) fn open(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};
    // SAFETY: the library's constructors are run, as in every program that uses it; the process that asks has nothing
    // to lose.
    unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) }.map(Library::into)
}

/// Opens a library, and those beside it that it needs.
#[cfg(windows)]
pub(crate) fn open(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
    // SAFETY: as on Unix.
    unsafe { Library::load_with_flags(path, LOAD_WITH_ALTERED_SEARCH_PATH) }.map(Library::into)
}

/// A library that this process has loaded from this file.
pub(crate) fn loaded(path: &Path) -> Option<Library> {
    #[cfg(unix)]
    // SAFETY: it is loaded already, and nothing is run by this.
    let found = unsafe {
        use libloading::os::unix::{Library, RTLD_LAZY};
        Library::open(Some(path), libc::RTLD_NOLOAD | RTLD_LAZY)
    };
    #[cfg(windows)]
    let found = libloading::os::windows::Library::open_already_loaded(path);
    found.ok().map(Library::from)
}

/// A function of a library.
///
/// # Safety
/// `T` is the type of the function of this name.
pub(crate) unsafe fn function<T: Copy>(library: &Library, name: &str) -> Answer<T> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<T>(name) }.map(|f| *f).map_err(|_| format!("the library does not export {name}"))
}
