// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings a sentence to the user: HDF5's error stack, standard error where that would be lost, the last error for C.

use crate::error::Error;
use crate::hdf5::H5E_DEFAULT;
use crate::host::{self, Host};
use h5z_gpu::host::log;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ptr;

/// Bytes of the last error that are kept, the final NUL included.
const KEPT: usize = 1024;

thread_local! {
    // No destructor: nothing of ours has to run when a thread or the process ends.
    static LAST: RefCell<[u8; KEPT]> = const { RefCell::new([0; KEPT]) };
}

/// Remembers `text` as this thread's last error.
pub(crate) fn remember(text: &impl fmt::Display) {
    let text = text.to_string();
    LAST.with(|last| {
        let mut last = last.borrow_mut();
        let mut len = text.len().min(KEPT - 1);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        last[..len].copy_from_slice(&text.as_bytes()[..len]);
        last[len..].fill(0);
    });
}

/// This thread's last error, empty when there was none: valid until the thread's next call or end.
pub(crate) fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr().cast())
}

/// Tells the user why `callback` fails: on the error stack of the host, and on standard error where nobody reads that, or where the
/// host must not be entered.
pub(crate) fn failed(host: &Host, callback: &CStr, error: &Error, may_enter: bool) {
    remember(error);
    let text = error.to_string();
    if !may_enter {
        return log::warn(without_name(&text));
    }
    // The question first: asking it empties the stack.
    let silent = silent_reader(host);
    if !push(host, callback, &text) || silent {
        log::warn(without_name(&text));
    }
}

/// A sentence without our name at its beginning, which the log writes itself.
pub(crate) fn without_name(text: &str) -> &str {
    text.strip_prefix("h5z-gpu: ").unwrap_or(text)
}

/// Puts the text on the host's error stack. False when it cannot be there afterwards.
fn push(host: &Host, callback: &CStr, text: &str) -> bool {
    let (Some(e), Ok(text)) = (host.errors, CString::new(text)) else { return false };
    let mut paused = false;
    if let Some(p) = host.pausing {
        // SAFETY: the stack of this thread; a variable for the answer.
        unsafe { (p.is_paused)(H5E_DEFAULT, &mut paused) };
    }
    let resume = match host.resume {
        None if paused => return false,
        r => r.filter(|_| paused),
    };
    // SAFETY: the three ids are variables of this library, set since it called us; file, function and text are
    // NUL-terminated, the format takes one text. Pausing is undone only where it was found, and restored.
    unsafe {
        let (class, major, minor) = (*e.class, *e.major, *e.minor);
        if class <= 0 || major <= 0 || minor <= 0 {
            return false;
        }
        if let Some(r) = resume {
            (r.resume)();
        }
        let (file, format) = (c"h5z-gpu".as_ptr(), c"%s".as_ptr());
        let done = (e.push)(H5E_DEFAULT, file, callback.as_ptr(), line!(), class, major, minor, format, text.as_ptr());
        if let Some(r) = resume {
            (r.pause)();
        }
        done >= 0
    }
}

/// Whether this host's error stack reaches no user: HDF5 does not print it, and it becomes no exception of h5py. Other
/// programs keep a number or a sentence of their own: netCDF, PyTables, HDF5's own tools.
fn silent_reader(host: &Host) -> bool {
    let Some(e) = host.errors else { return true };
    let mut v2 = 0;
    let mut print = None;
    let mut data = ptr::null_mut();
    // SAFETY: variables for the answers; the second call is only valid for printers of the second kind, hence the first.
    let printing = unsafe {
        (e.auto_is_v2)(H5E_DEFAULT, &mut v2) < 0
            || v2 == 0
            || ((e.get_auto)(H5E_DEFAULT, &mut print, &mut data) >= 0 && print.is_some())
    };
    !printing && (!host::serves(host, "/h5py/") || host::serves(host, "libnetcdf"))
}
