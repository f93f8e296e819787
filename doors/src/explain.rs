// SPDX-License-Identifier: MIT OR Apache-2.0
//! `H5Z_GPU_EXPLAIN=1`, which `h5z-gpu run --explain` sets: at the end of the process, for each dataset which way its
//! calls went, and why.

use crate::hdf5::Hid;
use crate::host::Host;
use libc::c_char;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Calls of a dataset, by direction and by why they went HDF5's way: how many, and how many bytes the others had.
type Told = BTreeMap<(String, &'static str, Option<String>), (u64, u64)>;

static TOLD: Mutex<Told> = Mutex::new(BTreeMap::new());

/// Whether it is to be told.
pub fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let wanted = std::env::var_os("H5Z_GPU_EXPLAIN").is_some_and(|v| v == "1");
        if wanted {
            // SAFETY: a function that stays loaded.
            unsafe { libc::atexit(tell) };
        }
        wanted
    })
}

/// Notes how a call went: the bytes that took the short way, or why it did not.
pub(crate) fn note(host: &Host, dataset: Hid, what: &'static str, how: Result<u64, &str>) {
    if !is_wanted() {
        return;
    }
    let Some(q) = &host.questions else { return };
    let place = format!("{}:{}", name(q.file_of, dataset), name(q.name_of, dataset));
    let (why, bytes) = match how {
        Ok(bytes) => (None, bytes),
        Err(why) => (Some(why.to_string()), 0),
    };
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = told.entry((place, what, why)).or_default();
    *entry = (entry.0 + 1, entry.1 + bytes);
}

/// A name that HDF5 tells; empty where it has none.
fn name(tell: unsafe extern "C" fn(Hid, *mut c_char, usize) -> isize, id: Hid) -> String {
    let mut text = vec![0u8; 4096];
    // SAFETY: room for as many bytes as are said.
    let n = unsafe { tell(id, text.as_mut_ptr().cast(), text.len()) };
    text.truncate(usize::try_from(n).unwrap_or(0).min(4095));
    String::from_utf8_lossy(&text).into_owned()
}

extern "C" fn tell() {
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for ((place, what, why), (calls, bytes)) in told.iter() {
        match why {
            None => eprintln!("h5z-gpu: {place}: {what} {calls} times by many chunks at a time, {bytes} bytes"),
            Some(why) => {
                eprintln!("h5z-gpu: {place}: {what} {calls} times by HDF5: {}", why.trim_start_matches("h5z-gpu: "))
            }
        }
    }
}
