// SPDX-License-Identifier: MIT OR Apache-2.0
//! `H5Z_GPU_DEFLATE`, a number that `h5z-gpu run --deflate` sets: this filter in the place of deflate, with its shuffle
//! and checksum, for datasets of floating-point numbers that a program creates. Those of one axis, such as coordinates,
//! keep deflate. Where HDF5 does not take the filter, the program's own request goes on as it is.

use crate::door::Silence;
use crate::entries::{RETURN, entry};
use crate::hdf5::{Creation, H5D_CHUNKED, H5T_FLOAT, Hid, Questions};
use crate::real;
use libc::{c_char, c_int, c_uint};
use std::ptr;
use std::sync::OnceLock;

const FILTER: c_int = 443;
const ALL: c_int = 0;
const DEFLATE: c_int = 1;
const ITS: [c_int; 3] = [DEFLATE, 2, 3]; // and shuffle, Fletcher's checksum
const OPTIONAL: c_uint = 1;

entry! {
    /// HDF5's function of this name.
    #[unsafe(export_name = "H5Dcreate2")]
    create => go_create(
        place: Hid, name: *const c_char, kind: Hid, space: Hid, links: Hid, list: Hid, access: Hid) -> Hid
}

entry! {
    /// HDF5's function of this name.
    #[unsafe(export_name = "H5Dcreate_anon")]
    create_anonymous => go_create_anonymous(place: Hid, kind: Hid, space: Hid, list: Hid, access: Hid) -> Hid
}

/// # Safety
/// As HDF5 says of this function.
unsafe extern "C" fn go_create(
    place: Hid,
    name: *const c_char,
    kind: Hid,
    space: Hid,
    links: Hid,
    list: Hid,
    access: Hid,
) -> Hid {
    // SAFETY: the caller's promise.
    unsafe { created(kind, space, list, |c, list| (c.create)(place, name, kind, space, links, list, access)) }
}

/// # Safety
/// As HDF5 says of this function.
unsafe extern "C" fn go_create_anonymous(place: Hid, kind: Hid, space: Hid, list: Hid, access: Hid) -> Hid {
    // SAFETY: the caller's promise.
    unsafe { created(kind, space, list, |c, list| (c.create_anonymous)(place, kind, space, list, access)) }
}

/// The number that stands for deflate.
fn number() -> Option<c_uint> {
    static NUMBER: OnceLock<Option<c_uint>> = OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("H5Z_GPU_DEFLATE").ok()?.parse().ok())
}

/// # Safety
/// A type, a space and a list of how to create, which HDF5 checks.
unsafe fn created(kind: Hid, space: Hid, list: Hid, create: impl Fn(&Creation, Hid) -> Hid) -> Hid {
    let Some((host, real)) = real::of(RETURN.get()).and_then(|host| Some((host, host.creation.as_ref()?))) else {
        return -1;
    };
    let (Some(number), Some(q)) = (number(), &host.questions) else { return create(real, list) };
    let silence = Silence::new(q);
    // SAFETY: the caller's promise.
    let ours = unsafe { instead(q, real, kind, space, list, number) };
    let dataset = ours.map_or(-1, |ours| {
        let dataset = create(real, ours);
        // SAFETY: a list of our own.
        unsafe { (q.close)(ours) };
        dataset
    });
    drop(silence);
    if dataset < 0 { create(real, list) } else { dataset }
}

/// A copy of the list with our filter alone, where it has deflate and nothing but what goes with it.
///
/// # Safety
/// As of [`created`].
unsafe fn instead(q: &Questions, real: &Creation, kind: Hid, space: Hid, list: Hid, number: c_uint) -> Option<Hid> {
    // SAFETY: as above: a list that HDF5 does not know has no layout. Arrays are as long as they are said to be.
    unsafe {
        if list <= 0 || (q.layout)(list) != H5D_CHUNKED || (q.type_class)(kind) != H5T_FLOAT || (q.rank)(space) < 2 {
            return None;
        }
        let filters: Vec<c_int> = (0..(q.filters)(list).max(0) as c_uint)
            .map(|k| {
                let (mut flags, mut n, mut config) = (0, 0, 0);
                (q.filter)(list, k, &mut flags, &mut n, ptr::null_mut(), 0, ptr::null_mut(), &mut config)
            })
            .collect();
        let is_deflate = filters.contains(&DEFLATE) && filters.iter().all(|f| ITS.contains(f));
        if !is_deflate || (real.is_available)(FILTER) <= 0 {
            return None;
        }
        let ours = (q.copy_list)(list);
        let is_set = (real.remove_filter)(ours, ALL) >= 0 && (real.set_filter)(ours, FILTER, OPTIONAL, 1, &number) >= 0;
        if !is_set {
            (q.close)(ours);
        }
        is_set.then_some(ours)
    }
}
