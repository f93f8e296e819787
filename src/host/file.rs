// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading from a file that somebody else has opened.
//!
//! On Windows a number of an open file means something to one C library alone, and a process has several: there the
//! system's handle is meant, which has 32 bits (`_get_osfhandle` tells it).

use codecs::error::{Error, Result};
use std::io::IoSliceMut;

/// What the system calls an open file by: on Windows the low half of its handle.
pub type Descriptor = libc::c_int;

/// Buffers that one system call takes at most.
#[cfg(unix)]
const BUFFERS: usize = 1024;

/// Fills `out` from place `at` of the file on, whose own position stays as it is.
///
/// # Errors
/// `Params` for a negative descriptor, `Length` where the file ends early, `Corrupt` where no file is so long,
/// `Unreadable` where the system says why it cannot be read.
pub fn read_at(file: Descriptor, out: &mut [u8], at: u64) -> Result<()> {
    read_all_at(file, &mut [IoSliceMut::new(out)], at)
}

/// Fills buffers, one behind the other, from place `at` of the file on, in as few system calls as it may.
///
/// # Errors
/// As [`read_at`].
pub(crate) fn read_all_at(file: Descriptor, mut outs: &mut [IoSliceMut<'_>], at: u64) -> Result<()> {
    if file < 0 {
        return Err(Error::params("the file", format!("descriptor {file}; an open file has one from 0 on")));
    }
    let needed: u64 = outs.iter().map(|out| out.len() as u64).sum();
    let mut done = 0;
    while done < needed {
        let place = at.checked_add(done).and_then(|place| i64::try_from(place).ok());
        let beyond = || Error::corrupt("the file", format!("{needed} bytes at {at}: no file is so long"));
        let place = place.ok_or_else(beyond)?;
        let read = read_some_at(file, outs, place);
        match read {
            Ok(0) => return Err(Error::Length { section: "the file", needed, got: done }),
            Ok(read) => {
                done += read as u64;
                IoSliceMut::advance_slices(&mut outs, read);
            }
            Err(error) => {
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(Error::Unreadable { bytes: needed, at, errno: error.raw_os_error().unwrap_or(0) });
                }
            }
        }
    }
    Ok(())
}

/// Bytes that one system call has read.
#[cfg(unix)]
fn read_some_at(file: Descriptor, outs: &mut [IoSliceMut<'_>], place: i64) -> std::io::Result<usize> {
    // SAFETY: an `IoSliceMut` is an `iovec`, its memory is borrowed for writing; on a descriptor that is not open
    // preadv is an error and nothing else.
    let read = unsafe { libc::preadv(file, outs.as_ptr().cast(), outs.len().min(BUFFERS) as i32, place) };
    usize::try_from(read).map_err(|_| std::io::Error::last_os_error())
}

/// Bytes that one system call has read into the first buffer that takes any. The handle's own position moves there.
#[cfg(windows)]
fn read_some_at(file: Descriptor, outs: &mut [IoSliceMut<'_>], place: i64) -> std::io::Result<usize> {
    use std::os::windows::{fs::FileExt, io::FromRawHandle};
    let Some(out) = outs.iter_mut().find(|out| !out.is_empty()) else { return Ok(0) };
    // SAFETY: the handle is only read from: on one that is not open ReadFile is an error and nothing else. It is not
    // closed, since nothing drops this.
    let file = unsafe { std::fs::File::from_raw_handle(file as isize as *mut _) };
    std::mem::ManuallyDrop::new(file).seek_read(out, place as u64)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use std::os::fd::AsRawFd;

    /// More buffers than a call takes, some of them empty; the file's own position stays.
    #[test]
    fn buffers_are_filled_one_behind_the_other() {
        let mut file = tempfile();
        let bytes: Vec<u8> = (0..9000u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let mut outs: Vec<Vec<u8>> = (0..3000).map(|i| vec![0; i % 5]).collect();
        let len: usize = outs.iter().map(Vec::len).sum();
        let mut slices: Vec<_> = outs.iter_mut().map(|out| IoSliceMut::new(out)).collect();
        read_all_at(file.as_raw_fd(), &mut slices, 1000).unwrap();
        assert_eq!(outs.concat(), bytes[1000..1000 + len]);
        assert_eq!(file.stream_position().unwrap(), 9000);
        let mut out = vec![0; 10];
        let short = read_at(file.as_raw_fd(), &mut out, 8996).unwrap_err();
        assert!(matches!(short, Error::Length { needed: 10, got: 4, .. }), "{short}");
        assert!(read_at(file.as_raw_fd(), &mut out, u64::MAX).is_err());
        assert!(read_at(-1, &mut out, 0).is_err());
        // A folder opens, and is not read.
        let folder = std::fs::File::open("/").unwrap();
        let error = read_at(folder.as_raw_fd(), &mut out, 7).unwrap_err();
        assert_eq!(error, Error::Unreadable { bytes: 10, at: 7, errno: libc::EISDIR });
    }

    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("h5z-gpu-read-{}", std::process::id()));
        let open = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        open
    }
}
