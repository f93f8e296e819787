// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HDF5 library that a caller would have called without us.
//!
//! There may be several in a process: each Python wheel brings its own. What a caller is linked with counts: the
//! address that its call returns to lies in the caller, the loader names that object, and a symbol of it that we do not
//! have ourselves leads to its libhdf5.

use crate::hdf5::{Errors, Lock, Questions, Real};
use libc::{c_int, c_void};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A table of functions and of variables of one library: every one is there, or there is no table.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident {
        $(fn $fun:ident = $symbol:ident($($arg:ty),*) $(-> $ret:ty)?;)*
        $(variadic $more:ident = $more_symbol:ident($($more_arg:ty),*) -> $more_ret:ty;)*
        $(static $id:ident = $id_symbol:ident;)*
    }) => {
        $(#[$doc])*
        pub(crate) struct $name {
            $(pub(crate) $fun: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub(crate) $more: unsafe extern "C" fn($($more_arg),*, ...) -> $more_ret,)*
            $(pub(crate) $id: *const Hid,)*
        }

        impl $name {
            /// Of the library with this handle.
            pub(crate) fn find(library: *mut std::ffi::c_void) -> Option<Self> {
                // SAFETY: symbols of such names in HDF5 1.10 and later have the types that the table says:
                // `tests/hdf5` compares them.
                unsafe {
                    Some($name {
                        $($fun: $crate::real::typed(library, concat!(stringify!($symbol), "\0"))?,)*
                        $($more: $crate::real::typed(library, concat!(stringify!($more_symbol), "\0"))?,)*
                        $($id: $crate::real::typed(library, concat!(stringify!($id_symbol), "\0"))?,)*
                    })
                }
            }
        }
    };
}

/// The address of a symbol, whose name ends in NUL, in a library or in what it is linked with.
pub(crate) fn symbol(library: *mut c_void, name: &'static str) -> Option<ptr::NonNull<c_void>> {
    // SAFETY: a handle that is never closed, and a text that ends in NUL.
    ptr::NonNull::new(unsafe { libc::dlsym(library, name.as_ptr().cast()) })
}

/// A symbol as a pointer to what it is.
///
/// # Safety
/// `T` is a pointer to a function or variable of this symbol's type.
pub(crate) unsafe fn typed<T: Copy>(library: *mut c_void, name: &'static str) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    let found = symbol(library, name)?.as_ptr();
    // SAFETY: the caller's promise; the size was compared above.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
}

/// An HDF5 library.
pub(crate) struct Host {
    pub(crate) real: Real,
    /// `None`: older than 1.10. All its calls go straight on.
    pub(crate) questions: Option<Questions>,
    pub(crate) lock: Option<Lock>,
    pub(crate) errors: Option<Errors>,
}

// SAFETY: addresses of code, and of variables that the library itself reads from any thread.
unsafe impl Sync for Host {}

/// What an address of a call returned to.
struct Seen {
    ret: usize,
    host: &'static Host,
}

/// Addresses seen, in the places that they have by their lower bits, or soon behind.
const PLACES: usize = 4096;
const NEAR: usize = 8;
static SEEN: [AtomicPtr<Seen>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// The library that is called by the code around `ret`. `None`: there is none.
pub(crate) fn of(ret: *const c_void) -> Option<&'static Host> {
    let ret = ret as usize;
    let places = (0..NEAR).map(|k| &SEEN[((ret >> 2) + k) % PLACES]);
    for place in places {
        let seen = place.load(Ordering::Acquire);
        if seen.is_null() {
            let host = resolve(ret)?;
            let new = Box::into_raw(Box::new(Seen { ret, host }));
            if place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: it was made here, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
            return Some(host);
        }
        // SAFETY: what stands in a place stays there for ever.
        let seen = unsafe { &*seen };
        if seen.ret == ret {
            return Some(seen.host);
        }
    }
    resolve(ret)
}

/// Libraries found so far, by the address of their H5Dread.
static HOSTS: std::sync::Mutex<Vec<(usize, &'static Host)>> = std::sync::Mutex::new(Vec::new());

fn resolve(ret: usize) -> Option<&'static Host> {
    let library = library_of_caller(ret).or_else(library_behind)?;
    let read = symbol(library, "H5Dread\0")?.as_ptr() as usize;
    let mut hosts = HOSTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, host)) = hosts.iter().find(|(at, _)| *at == read) {
        return Some(*host);
    }
    let host: &'static Host = Box::leak(Box::new(Host {
        real: Real::find(library)?,
        questions: Questions::find(library),
        lock: Lock::find(library),
        errors: Errors::find(library),
    }));
    hosts.push((read, host));
    Some(host)
}

/// The handle of the libhdf5 that the object with this address is linked with. It stays loaded from then on.
fn library_of_caller(ret: usize) -> Option<*mut c_void> {
    // One byte back: a call may be the last instruction of its function.
    let file = file_of((ret - 1) as *const c_void)?;
    // SAFETY: a name from the loader; NOLOAD loads and runs nothing.
    let caller = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if caller.is_null() {
        return None;
    }
    library_with(symbol(caller, "H5Dopen2\0")?.as_ptr())
}

/// The same of the first one behind us in the order of the program, whose own functions the main program calls.
fn library_behind() -> Option<*mut c_void> {
    // SAFETY: a name that ends in NUL.
    let function = ptr::NonNull::new(unsafe { libc::dlsym(libc::RTLD_NEXT, c"H5Dread".as_ptr()) })?;
    library_with(function.as_ptr())
}

/// The object that holds a function.
fn library_with(function: *const c_void) -> Option<*mut c_void> {
    let file = file_of(function)?;
    // SAFETY: as above. The handle is not closed: the library stays.
    let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!library.is_null()).then_some(library)
}

/// The name of the object that holds an address. `None` for the program itself, whose name the loader does not know.
fn file_of(address: *const c_void) -> Option<&'static CStr> {
    // SAFETY: all-zero is a valid Dl_info; dladdr only compares the address with the loaded objects' ranges. The name
    // lives as long as the object, which is asked for at once.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found: c_int = libc::dladdr(address, &mut info);
        (found != 0 && !info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname))
    }
}
