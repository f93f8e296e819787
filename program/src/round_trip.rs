// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small dataset through an HDF5 library and its filter, and back.

use crate::abi::*;
use crate::library::{Answer, function};
use crate::places::ID;
use libloading::Library;
use serde_json::{Value, json};
use std::ffi::{CString, c_int};
use std::path::Path;

const N: usize = 64;
const BOUND: f32 = 1e-3;

/// An HDF5 library. Identifiers have 64 bits since 1.10; before, they are ints: the calling conventions of x86-64 and
/// 64-bit ARM pass one as the lower half of a register, and leave the upper half of an answer to chance.
struct Hdf5<'a> {
    library: &'a Library,
    old: bool,
}

impl Hdf5<'_> {
    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn get<T: Copy>(&self, name: &str) -> Answer<T> {
        // SAFETY: the caller's promise.
        unsafe { function(self.library, name) }
    }

    fn id(&self, name: &str, answer: Hid) -> Answer<Hid> {
        let id = if self.old { Hid::from(answer as c_int) } else { answer };
        if id < 0 { Err(format!("{name} failed")) } else { Ok(id) }
    }

    /// A variable that holds an id, by any of its names.
    fn constant(&self, names: &[&str]) -> Answer<Hid> {
        for &name in names {
            // SAFETY: a variable of this name is an id, which the library has set by now.
            let found = unsafe {
                match self.old {
                    true => self.library.get::<*const c_int>(name).map(|v| Hid::from(**v)),
                    false => self.library.get::<*const Hid>(name).map(|v| **v),
                }
            };
            if let Ok(id) = found {
                return Ok(id);
            }
        }
        Err(format!("the library does not export {}", names[0]))
    }
}

fn done(name: &str, status: c_int) -> Answer<()> {
    if status < 0 { Err(format!("{name} failed")) } else { Ok(()) }
}

/// Writes with an absolute bound of 1e-3 and reads back; bytes stored and the largest error.
pub(crate) fn run(library: &Library, old: bool, path: &Path) -> Answer {
    let answer = written_and_read(&Hdf5 { library, old }, path);
    _ = std::fs::remove_file(path);
    answer
}

fn written_and_read(hdf5: &Hdf5<'_>, path: &Path) -> Answer<Value> {
    let wave: Vec<f32> = (0..N * N).map(|k| (k as f32 * 1e-2).sin()).collect();
    let mut back = vec![0f32; wave.len()];
    let extents = [N as u64; 2];
    let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: HDF5's own signatures (tests/hdf5 compares them); texts end in NUL; arrays have the lengths that are
    // told, and outlive the calls; ids are those that the library has given.
    let stored = unsafe {
        let float = hdf5.constant(&["H5T_NATIVE_FLOAT_g"])?;
        let class = hdf5.constant(&["H5P_CLS_DATASET_CREATE_ID_g", "H5P_CLS_DATASET_CREATE_g"])?;
        let file = hdf5.id("H5Fcreate", hdf5.get::<H5Fcreate>("H5Fcreate")?(name.as_ptr(), 2, 0, 0))?;
        let simple = hdf5.get::<H5ScreateSimple>("H5Screate_simple")?;
        let space = hdf5.id("H5Screate_simple", simple(2, extents.as_ptr(), std::ptr::null()))?;
        let how = hdf5.id("H5Pcreate", hdf5.get::<H5Pcreate>("H5Pcreate")?(class))?;
        done("H5Pset_chunk", hdf5.get::<H5PsetChunk>("H5Pset_chunk")?(how, 2, extents.as_ptr()))?;
        // Mandatory: what would be left out otherwise fails here.
        let filter = hdf5.get::<H5PsetFilter>("H5Pset_filter")?(how, ID as c_int, 0, 1, [11003].as_ptr());
        done("H5Pset_filter", filter)?;
        let create = hdf5.get::<H5Dcreate2>("H5Dcreate2")?;
        let data = hdf5.id("H5Dcreate2", create(file, c"v".as_ptr(), float, space, 0, how, 0))?;
        done("H5Dwrite", hdf5.get::<H5Dwrite>("H5Dwrite")?(data, float, 0, 0, 0, wave.as_ptr().cast()))?;
        let (close_data, close_file) = (hdf5.get::<Close>("H5Dclose")?, hdf5.get::<Close>("H5Fclose")?);
        done("H5Dclose", close_data(data))?;
        done("H5Fclose", close_file(file))?;
        let file = hdf5.id("H5Fopen", hdf5.get::<H5Fopen>("H5Fopen")?(name.as_ptr(), 0, 0))?;
        let data = hdf5.id("H5Dopen2", hdf5.get::<H5Dopen2>("H5Dopen2")?(file, c"v".as_ptr(), 0))?;
        let stored = hdf5.get::<H5DgetStorageSize>("H5Dget_storage_size")?(data);
        done("H5Dread", hdf5.get::<H5Dread>("H5Dread")?(data, float, 0, 0, 0, back.as_mut_ptr().cast()))?;
        done("H5Dclose", close_data(data))?;
        done("H5Fclose", close_file(file))?;
        stored
    };
    let worst = wave.iter().zip(&back).map(|(x, y)| (f64::from(*x) - f64::from(*y)).abs()).fold(0.0, f64::max);
    if worst > f64::from(BOUND) {
        return Err(format!("a value changed by {worst:.3e}, the bound is {BOUND}"));
    }
    Ok(json!({"raw_bytes": 4 * wave.len(), "stored_bytes": stored, "largest_error": worst, "bound": 1e-3}))
}
