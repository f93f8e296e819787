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
pub(crate) fn is_wanted() -> bool {
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
    let place = format!("{}:{}", shown(&name(q.file_of, dataset)), shown(&name(q.name_of, dataset)));
    let (why, bytes) = match how {
        Ok(bytes) => (None, bytes),
        Err(why) => (Some(shown(why.as_bytes())), 0),
    };
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = told.entry((place, what, why)).or_default();
    *entry = (entry.0 + 1, entry.1 + bytes);
}

/// A name that HDF5 tells; empty where it has none.
fn name(tell: unsafe extern "C" fn(Hid, *mut c_char, usize) -> isize, id: Hid) -> Vec<u8> {
    let mut text = vec![0u8; 4096];
    // SAFETY: room for as many bytes as are said.
    let n = unsafe { tell(id, text.as_mut_ptr().cast(), text.len()) };
    text.truncate(usize::try_from(n).unwrap_or(0).min(4095));
    text
}

/// Text as it may stand on one line of a terminal, which obeys controls and marks that change the direction of letters:
/// as the Python package's commands show it (cli/common.py), which write a byte that is no text as `\udcff`.
fn shown(text: &[u8]) -> String {
    let mut line = String::new();
    for part in text.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '\t' | '\n' | '\r' => line.extend(c.escape_default()),
                '\0'..='\x1f' | '\x7f'..='\u{9f}' => line += &format!("\\x{:02x}", u32::from(c)),
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    line += &format!("\\u{:04x}", u32::from(c));
                }
                c => line.push(c),
            }
        }
        part.invalid().iter().for_each(|byte| line += &format!("\\udc{byte:02x}"));
    }
    line
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        let name = "/a\u{1b}[2J\n\t\r\0\u{7f}\u{85}\u{202e}\u{2066}\u{61c}\u{2028}é 日\\n";
        let said = r"/a\x1b[2J\n\t\r\x00\x7f\x85\u202e\u2066\u061c\u2028é 日\n";
        assert_eq!(shown(name.as_bytes()), said);
        assert_eq!(shown(b"/a\xff\xc3(\x1b"), r"/a\udcff\udcc3(\x1b");
        assert_eq!(shown(b""), "");
    }
}
