// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings a sentence to the user: HDF5's error stack, standard error where that would be lost, the last error for C.

use crate::error::{Error, Kind};
use crate::hdf5::{ErrorRecord, H5E_DEFAULT, H5E_WALK_UPWARD};
use crate::host::{self, Host};
use h5z_gpu::plugin::log;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::io;
use std::ptr;

/// Bytes of the last error that are kept, the final NUL included.
const MESSAGE_BYTES: usize = 1024;

thread_local! {
    // No destructor: nothing of ours has to run when a thread or the process ends.
    static LAST: RefCell<[u8; MESSAGE_BYTES]> = const { RefCell::new([0; MESSAGE_BYTES]) };
    static ERRNO: Cell<c_int> = const { Cell::new(0) };
}

/// Remembers this thread's last error, told as `text`.
pub(crate) fn remember_as(error: &Error, text: &impl fmt::Display) {
    remember_text(text);
    ERRNO.set(error.errno());
}

/// Remembers this thread's last error.
pub(crate) fn remember(error: &Error) {
    remember_as(error, error);
}

/// What became of each of several frames: remembers the first failure that is no damage, or else the last damage.
#[derive(Default)]
pub(crate) struct Failures {
    other: bool,
}

impl Failures {
    /// The number that the caller is told of frame `k`.
    pub(crate) fn status(&mut self, k: usize, result: std::result::Result<(), h5z_gpu::Error>) -> c_int {
        let Err(error) = result.map_err(Error::from) else { return 0 };
        let kind = error.kind();
        if !self.other {
            remember_as(&error, &format!("frame {k}: {error}"));
        }
        self.other |= kind != Kind::Damaged;
        kind as c_int
    }
}

fn remember_text(text: &impl fmt::Display) {
    let text = text.to_string();
    LAST.with(|last| {
        let mut last = last.borrow_mut();
        let mut len = text.len().min(MESSAGE_BYTES - 1);
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

/// The system's error number of the last error, 0 where it has none.
pub(crate) fn last_errno() -> c_int {
    ERRNO.get()
}

/// Tells the user why `callback` fails: on the error stack of the host, and on standard error where nobody reads that,
/// or where the host must not be entered.
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

/// Why the last call of this thread failed in the host, as what failed first says it, and the system's error number, or
/// 0.
pub(crate) fn innermost(host: &Host) -> (String, c_int) {
    unsafe extern "C" fn note(_: c_uint, record: *const ErrorRecord, found: *mut c_void) -> c_int {
        // SAFETY: HDF5 passes a record whose text ends in NUL, and the pointer given to H5Ewalk2.
        let (record, found) = unsafe { (&*record, &mut *found.cast::<String>()) };
        if found.is_empty() && !record.text.is_null() {
            // SAFETY: as above.
            *found = unsafe { CStr::from_ptr(record.text) }.to_string_lossy().into_owned();
        }
        0
    }
    let mut found = String::new();
    if let Some(w) = host.walking {
        // SAFETY: `note` matches the call, and `found` outlives it.
        unsafe { (w.walk)(H5E_DEFAULT, H5E_WALK_UPWARD, Some(note), (&raw mut found).cast()) };
    }
    let errno = errno_in(&found);
    let why = match errno {
        0 if found.is_empty() => "see HDF5's error stack".into(),
        0 => found,
        errno => io::Error::from_raw_os_error(errno).to_string(),
    };
    (why, errno)
}

/// The number in what HDF5 says of a system call that failed; 0 where there is none. The file's name stands before it.
fn errno_in(text: &str) -> c_int {
    let number = text.rsplit_once(", errno = ").map_or("", |(_, behind)| behind);
    number.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
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
    // SAFETY: variables for the answers; the second call is only valid for printers of the second kind, hence the
    // first.
    let printing = unsafe {
        (e.auto_is_v2)(H5E_DEFAULT, &mut v2) < 0
            || v2 == 0
            || ((e.get_auto)(H5E_DEFAULT, &mut print, &mut data) >= 0 && print.is_some())
    };
    !printing && (!host::serves(host, "/h5py/") || host::serves(host, "libnetcdf"))
}

#[cfg(test)]
mod tests {
    use super::errno_in;

    #[test]
    fn the_error_number_of_a_system_call() {
        let text = "file write failed: time = Mon Nov 23 21:00:00 2026\n, filename = '/d/a, errno = 1.h5', file \
                    descriptor = 12, errno = 28, error message = 'No space left on device', buf = 0x55, total write \
                    size = 65, offset = 2048";
        assert_eq!(errno_in(text), 28);
        assert_eq!((errno_in("filter returned failure"), errno_in("a, errno = x"), errno_in("")), (0, 0, 0));
    }
}
