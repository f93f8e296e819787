// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading from a file that somebody else has opened.

use crate::error::{Error, Result};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// Fills `out` from place `at` of the file on, whose own position stays as it is.
///
/// # Errors
/// `Params` for a negative descriptor, `Length` where the file ends early, `Corrupt` where it cannot be read.
pub(crate) fn read_at(file: RawFd, out: &mut [u8], at: u64) -> Result<()> {
    if file < 0 {
        return Err(Error::params("the file", format!("descriptor {file}; an open file has one from 0 on")));
    }
    // SAFETY: pread on a descriptor that is not open is an error and nothing else; the file is not closed.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
    let mut done = 0;
    while done < out.len() {
        match file.read_at(&mut out[done..], at + done as u64) {
            Ok(0) => return Err(Error::Length { section: "the file", needed: out.len() as u64, got: done as u64 }),
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::corrupt("the file", format!("{} bytes at {at}: {e}", out.len()))),
        }
    }
    Ok(())
}
