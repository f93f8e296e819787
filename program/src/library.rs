// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of libraries that are opened at run time.

use libloading::os::unix::Library;

/// What was asked, or a sentence that says why there is no answer.
pub(crate) type Answer<T = serde_json::Value> = Result<T, String>;

/// What the loader says of a failure: its own sentence stands behind that of the binding.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// A function of a library.
///
/// # Safety
/// `T` is the type of the function of this name.
pub(crate) unsafe fn function<T: Copy>(library: &Library, name: &str) -> Answer<T> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<T>(name) }.map(|f| *f).map_err(|_| format!("the library does not export {name}"))
}
