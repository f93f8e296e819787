// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connector for each HDF5 library of the process, and the functions that are ours.
//!
//! The functions of the `K`-th library are of the number `K`: HDF5 does not say who it is when it calls, and a number
//! in the code costs nothing.
//!
//! What `doors` asks are HDF5's public functions, which want an identifier of the dataset. HDF5 gives a connector the
//! dataset itself. So an identifier is lent to it for the length of a call ([`Lent`]); what is called by it comes
//! through this connector again, and reaches the native one at once.

use crate::class::{Class, Close, NAME, NATIVE, NUMBER, Read, VERSION, Write};
use crate::hdf5::{H5I_DATASET, Hid, ITSELF, Layer};
use h5z_gpu_doors::door::{self, Call, Outcome};
use h5z_gpu_doors::explain;
use h5z_gpu_doors::hdf5::Questions;
use h5z_gpu_doors::host::Host;
use h5z_gpu_doors::module::{Module, file_of};
use h5z_gpu_doors::several::{One, Several};
use libc::{c_int, c_void};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What serves one library.
struct Connector {
    host: &'static Host,
    questions: Questions,
    layer: Layer,
    native: &'static Class,
    ours: Class,
}

// SAFETY: addresses of code, and of a record that HDF5 never changes and its threads share.
unsafe impl Sync for Connector {}
// SAFETY: as above.
unsafe impl Send for Connector {}

/// Libraries of a process that are served; what comes after them goes without.
const MOST: usize = 8;
static CONNECTORS: [OnceLock<Connector>; MOST] = [const { OnceLock::new() }; MOST];

/// The functions of each.
const FUNCTIONS: [(Read, Write, Close); MOST] = [
    (read::<0>, write::<0>, close::<0>),
    (read::<1>, write::<1>, close::<1>),
    (read::<2>, write::<2>, close::<2>),
    (read::<3>, write::<3>, close::<3>),
    (read::<4>, write::<4>, close::<4>),
    (read::<5>, write::<5>, close::<5>),
    (read::<6>, write::<6>, close::<6>),
    (read::<7>, write::<7>, close::<7>),
];

/// The record for the library that holds the call before `ret`. `None`: it has none of version 3.
pub(crate) fn of(ret: *const c_void) -> Option<&'static Class> {
    let library = library_around(ret.wrapping_byte_sub(1))?;
    let host = Host::of_module(&library)?;
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _one = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, functions) in CONNECTORS.iter().zip(FUNCTIONS) {
        match place.get() {
            Some(connector) if ptr::eq(connector.host, host) => return Some(&connector.ours),
            Some(_) => {}
            None => {
                let connector = Connector::new(&library, host, functions)?;
                return Some(&place.get_or_init(|| connector).ours);
            }
        }
    }
    None
}

/// The library, or the program, that holds an address; `None` where it does not show its functions.
fn library_around(address: *const c_void) -> Option<Module> {
    let library = Module::holding(address).or_else(Module::program)?;
    // A handle's symbols are also those of what the object depends on: another library's.
    (file_of(library.symbol("H5Dread")?.as_ptr())? == file_of(address)?).then_some(library)
}

/// Whether a version was looked at: its native connector does with its objects what is said above.
fn is_known(version: [u32; 3]) -> bool {
    matches!(version, [1, 14, _] | [2, 0..=2, _])
}

impl Connector {
    fn new(library: &Module, host: &'static Host, (read, write, close): (Read, Write, Close)) -> Option<Connector> {
        let layer = Layer::find(library).ok()?;
        let native = native(&layer)?;
        let mut ours = *native;
        (ours.number, ours.name) = (NUMBER, NAME.as_ptr());
        // The native one begins and ends by itself.
        (ours.initialize, ours.terminate) = (ptr::null(), ptr::null());
        let mut version = [0; 3];
        let [major, minor, release] = &mut version;
        // SAFETY: three variables for three numbers.
        unsafe { (layer.version)(major, minor, release) };
        let questions = host.questions?;
        if is_known(version) {
            (ours.read, ours.write, ours.close) = (read, write, close);
        } else if explain::is_wanted() {
            let [a, b, c] = version;
            eprintln!("h5z-gpu: HDF5 {a}.{b}.{c} is not known to this version of h5z-gpu: its calls take HDF5's way");
        }
        Some(Connector { host, questions, layer, native, ours })
    }
}

/// The record of the native connector, if it is of the version that is declared here.
fn native(layer: &Layer) -> Option<&'static Class> {
    let mut class: *const Class = ptr::null();
    let mut nobody = 0u8;
    // SAFETY: a text that ends in NUL, a variable for the answer, and an object that the native connector, which has
    // one record for all, does not look at; the identifier is closed once.
    unsafe {
        let id = (layer.by_name)(NATIVE.as_ptr());
        if id < 0 {
            return None;
        }
        (layer.class_of)((&raw mut nobody).cast(), id, ITSELF, &mut class);
        (layer.end)(id);
    }
    // SAFETY: a record that lies in the library; of any version it begins with its number.
    let version = unsafe { class.cast::<u32>().as_ref() };
    if version != Some(&VERSION) {
        return None;
    }
    // SAFETY: a record of this version has these fields, and a name that ends in NUL.
    unsafe { (CStr::from_ptr((*class).name) == NATIVE).then_some(&*class) }
}

thread_local! {
    /// The dataset that has a lent identifier on this thread.
    static LENT: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// An identifier that a dataset has for the length of a call, beside the program's own.
struct Lent<'a> {
    connector: &'a Connector,
    id: Hid,
}

impl<'a> Lent<'a> {
    /// # Safety
    /// `dataset` is a dataset that HDF5 has just given this connector.
    unsafe fn new(connector: &'a Connector, dataset: *mut c_void) -> Option<Lent<'a>> {
        // SAFETY: the caller's promise.
        let id = unsafe { (connector.layer.lend)(dataset, H5I_DATASET) };
        (id >= 0).then(|| {
            LENT.set(dataset);
            Lent { connector, id }
        })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // SAFETY: our own identifier; `close` leaves the dataset open.
        unsafe { (self.connector.questions.close)(self.id) };
        LENT.set(ptr::null_mut());
    }
}

/// How a call by the short way ended. `None`: it was not tried.
///
/// # Safety
/// What HDF5 has just given this connector, and `go` does with the call what HDF5 has asked for.
unsafe fn short_way<V>(
    connector: &'static Connector,
    one: One<*mut c_void, V>,
    list: Hid,
    go: impl FnOnce(&'static Host, &Call, V) -> Outcome,
) -> Option<Outcome> {
    let One { dataset, memory, here, there, values } = one;
    // What is read and written while a dataset is lent comes from ourselves.
    if !LENT.get().is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    if !explain::is_wanted() && unsafe { door::glance(&connector.questions, here, there) }.is_err() {
        return None;
    }
    // SAFETY: as above.
    let lent = unsafe { Lent::new(connector, dataset)? };
    Some(go(connector.host, &Call { dataset: lent.id, memory, here, there, list, is_inside: true }, values))
}

macro_rules! transfer {
    ($(#[$doc:meta])* $name:ident of $values:ty) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// HDF5 calls it, as it says of its connectors.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name<const K: usize>(
            count: usize,
            datasets: *mut *mut c_void,
            memory: *mut Hid,
            here: *mut Hid,
            there: *mut Hid,
            list: Hid,
            values: *mut $values,
            request: *mut *mut c_void,
        ) -> c_int {
            let Some(connector) = CONNECTORS[K].get() else { return -1 };
            // SAFETY: the caller's promise, of all datasets or some.
            let native = |count, datasets, [memory, here, there]: [*mut Hid; 3], values| unsafe {
                (connector.native.$name)(count, datasets, memory, here, there, list, values, request)
            };
            let spaces = [memory, here, there];
            // SAFETY: as above: arrays of `count` elements.
            let Some(several) = (unsafe { Several::new(count, datasets, spaces, values) }) else {
                return native(count, datasets, spaces, values);
            };
            let short = |one: One<_, _>| {
                // SAFETY: as above: what the arrays say of a dataset goes together.
                unsafe { short_way(connector, one, list, |host, call, values| door::$name(host, call, values)) }
            };
            several.go(connector.host, short, native)
        }
    };
}

transfer! {
    /// Reads of one dataset or of several.
    read of *mut c_void
}

transfer! {
    /// Writes.
    write of *const c_void
}

/// The end of a dataset, but for one whose lent identifier is closed.
///
/// # Safety
/// HDF5 calls it, as it says of its connectors.
unsafe extern "C" fn close<const K: usize>(dataset: *mut c_void, list: Hid, request: *mut *mut c_void) -> c_int {
    if LENT.get() == dataset {
        return 0;
    }
    let Some(connector) = CONNECTORS[K].get() else { return -1 };
    // SAFETY: the caller's promise.
    unsafe { (connector.native.close)(dataset, list, request) }
}

#[cfg(test)]
mod tests {
    use super::is_known;

    #[test]
    fn versions_that_nobody_has_looked_at_are_left_alone() {
        for version in [[1, 14, 0], [1, 14, 6], [2, 0, 0], [2, 1, 1], [2, 2, 0]] {
            assert!(is_known(version), "{version:?}");
        }
        for version in [[1, 13, 3], [1, 15, 0], [1, 16, 0], [2, 3, 0], [3, 0, 0]] {
            assert!(!is_known(version), "{version:?}");
        }
    }
}
