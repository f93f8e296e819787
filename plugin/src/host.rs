// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the library that called us, and the functions of it that we use.
//!
//! HDF5 calls a filter through a pointer, so the callback's return address lies in the libhdf5 that owns the ids it
//! passed. `dladdr` names that module; its functions come from its dynamic symbols, or, for a program that carries
//! libhdf5 inside and exports nothing, from the symbol table of its file. A function found in any other module is
//! refused: `dlsym` also looks into dependencies, and ids of one HDF5 mean nothing to another.
//!
//! A host without these functions is a supported state: decoding needs none of them.

use crate::buffer::Memory;
use crate::elf;
use libc::{c_char, c_int, c_uint, c_void};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// HDF5's `hid_t` since 1.10.
pub(crate) type Hid = i64;

/// Names that repackaged copies of HDF5 put before each symbol.
const PREFIXES: [&str; 3] = ["", "vtkhdf5_", "itk_"];

/// A table of functions or data of the host: every one is there, or there is no table.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $symbol:literal as $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name { $(pub(crate) $field: $ty,)* }

        impl $name {
            /// `Err`: the first symbol that is missing.
            pub(crate) fn find(module: &Module) -> Result<Self, &'static str> {
                Ok($name { $(
                    $field: {
                        const { assert!(size_of::<$ty>() == size_of::<*const c_void>()) };
                        let found = module.find($symbol).ok_or($symbol)?;
                        // SAFETY: a pointer's size was checked above; the symbol of this name in a libhdf5 of 1.10
                        // or later (a libnetcdf of 4.9 or later) has this type.
                        unsafe { std::mem::transmute_copy::<*mut c_void, $ty>(&found) }
                    },
                )* })
            }
        }
    };
}

table! {
    /// What `set_local` asks of a dataset's properties and type.
    Properties {
        get_libversion: "H5get_libversion" as unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int,
        get_chunk: "H5Pget_chunk" as unsafe extern "C" fn(Hid, c_int, *mut u64) -> c_int,
        get_filter: "H5Pget_filter2" as unsafe extern "C" fn(
            Hid, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int,
        get_filter_by_id: "H5Pget_filter_by_id2" as unsafe extern "C" fn(
            Hid, c_int, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int,
        modify_filter: "H5Pmodify_filter" as unsafe extern "C" fn(Hid, c_int, c_uint, usize, *const c_uint) -> c_int,
        fill_value_defined: "H5Pfill_value_defined" as unsafe extern "C" fn(Hid, *mut c_int) -> c_int,
        get_fill_value: "H5Pget_fill_value" as unsafe extern "C" fn(Hid, Hid, *mut c_void) -> c_int,
        get_class: "H5Tget_class" as unsafe extern "C" fn(Hid) -> c_int,
        get_size: "H5Tget_size" as unsafe extern "C" fn(Hid) -> usize,
        get_order: "H5Tget_order" as unsafe extern "C" fn(Hid) -> c_int,
        get_sign: "H5Tget_sign" as unsafe extern "C" fn(Hid) -> c_int,
    }
}

table! {
    /// When chunks are filled.
    Filling {
        get_fill_time: "H5Pget_fill_time" as unsafe extern "C" fn(Hid, *mut c_int) -> c_int,
    }
}

table! {
    /// A floating-point type, bit for bit.
    Layout {
        get_precision: "H5Tget_precision" as unsafe extern "C" fn(Hid) -> usize,
        get_fields: "H5Tget_fields" as unsafe extern "C" fn(
            Hid, *mut usize, *mut usize, *mut usize, *mut usize, *mut usize) -> c_int,
        get_ebias: "H5Tget_ebias" as unsafe extern "C" fn(Hid) -> usize,
        get_norm: "H5Tget_norm" as unsafe extern "C" fn(Hid) -> c_int,
    }
}

table! {
    /// The standard types, to compare with, for programs into which only what HDF5 itself needs was linked. Where
    /// HDF5 is shared, the program may hold the variables that count in a copy of its own, so `Layout` comes first.
    Standard {
        equal: "H5Tequal" as unsafe extern "C" fn(Hid, Hid) -> c_int,
        f32_le: "H5T_IEEE_F32LE_g" as *const Hid,
        f32_be: "H5T_IEEE_F32BE_g" as *const Hid,
        f64_le: "H5T_IEEE_F64LE_g" as *const Hid,
        f64_be: "H5T_IEEE_F64BE_g" as *const Hid,
    }
}

table! {
    /// Where an error's text goes.
    Errors {
        push: "H5Epush2" as unsafe extern "C" fn(
            Hid, *const c_char, *const c_char, c_uint, Hid, Hid, Hid, *const c_char, ...) -> c_int,
        get_auto: "H5Eget_auto2" as unsafe extern "C" fn(Hid, *mut Option<unsafe extern "C" fn()>, *mut *mut c_void) -> c_int,
        auto_is_v2: "H5Eauto_is_v2" as unsafe extern "C" fn(Hid, *mut c_uint) -> c_int,
        class: "H5E_ERR_CLS_g" as *const Hid,
        major: "H5E_PLINE_g" as *const Hid,
        minor: "H5E_CANTFILTER_g" as *const Hid,
    }
}

table! {
    /// HDF5 2.0 and 2.1 stop recording errors while a filter runs, and say so.
    Pausing {
        is_paused: "H5Eis_paused" as unsafe extern "C" fn(Hid, *mut bool) -> c_int,
    }
}

table! {
    /// Resumes and stops again. The public pair of functions would clear what was recorded.
    Resume {
        resume: "H5E_resume_stack" as unsafe extern "C" fn(),
        pause: "H5E_pause_stack" as unsafe extern "C" fn(),
    }
}

table! {
    /// The host's own heap.
    Heap {
        allocate: "H5allocate_memory" as unsafe extern "C" fn(usize, bool) -> *mut c_void,
        free: "H5free_memory" as unsafe extern "C" fn(*mut c_void) -> c_int,
    }
}

table! {
    /// What NCZarr's `modify_parameters` asks of a variable.
    NetCdf {
        inq_vartype: "nc_inq_vartype" as unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
        inq_varndims: "nc_inq_varndims" as unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
        inq_var_endian: "nc_inq_var_endian" as unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
        inq_var_chunking: "nc_inq_var_chunking" as unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut usize) -> c_int,
        inq_var_fill: "nc_inq_var_fill" as unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut c_void) -> c_int,
        inq_var_filter_ids: "nc_inq_var_filter_ids" as unsafe extern "C" fn(
            c_int, c_int, *mut usize, *mut c_uint) -> c_int,
    }
}

/// The library that called.
pub(crate) struct Host {
    /// Where it begins in memory.
    pub(crate) base: usize,
    /// Or why it cannot be asked.
    pub(crate) properties: Result<Properties, String>,
    pub(crate) filling: Option<Filling>,
    pub(crate) layout: Option<Layout>,
    pub(crate) standard: Option<Standard>,
    pub(crate) errors: Option<Errors>,
    pub(crate) pausing: Option<Pausing>,
    pub(crate) resume: Option<Resume>,
    pub(crate) memory: Memory,
}

// SAFETY: addresses of code and of data that the library itself reads from any thread.
unsafe impl Sync for Host {}

/// A caller of which nothing is known.
static UNKNOWN: Host = Host {
    base: 0,
    properties: Err(String::new()),
    filling: None,
    layout: None,
    standard: None,
    errors: None,
    pausing: None,
    resume: None,
    memory: Memory::LIBC,
};

/// A return address seen before. Never freed: the list only grows, by one for each call site in each library.
struct Seen {
    ret: usize,
    host: &'static Host,
    next: *const Seen,
}

/// No lock: a fork in the middle of another thread's call leaves nothing held.
static SEEN: AtomicPtr<Seen> = AtomicPtr::new(ptr::null_mut());

fn seen() -> impl Iterator<Item = &'static Seen> {
    let mut at: *const Seen = SEEN.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: the list holds leaked boxes and ends in null.
        let seen = unsafe { at.as_ref() }?;
        at = seen.next;
        Some(seen)
    })
}

/// The host that the code at `ret`, a callback's return address, belongs to.
pub(crate) fn of(ret: *const c_void) -> &'static Host {
    if let Some(s) = seen().find(|s| s.ret == ret as usize) {
        return s.host;
    }
    let Some(module) = Module::of(ret) else { return &UNKNOWN };
    let host = match seen().find(|s| s.host.base == module.base) {
        Some(s) => s.host,
        None => Box::leak(Box::new(resolve(&module))),
    };
    let node = Box::leak(Box::new(Seen { ret: ret as usize, host, next: ptr::null() }));
    let mut head = SEEN.load(Ordering::Acquire);
    loop {
        node.next = head;
        match SEEN.compare_exchange_weak(head, node, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return host,
            Err(now) => head = now,
        }
    }
}

fn resolve(module: &Module) -> Host {
    let properties = Properties::find(module)
        .map_err(|symbol| format!("{} does not export {symbol}", module.name()))
        .and_then(|p| {
            let mut v = [0; 3];
            let [major, minor, release] = &mut v;
            // SAFETY: three places for three numbers.
            unsafe { (p.get_libversion)(major, minor, release) };
            if v >= [1, 10, 0] { Ok(p) } else { Err(format!("HDF5 {v:?} is older than 1.10")) }
        });
    Host {
        base: module.base,
        properties,
        filling: Filling::find(module).ok(),
        layout: Layout::find(module).ok(),
        standard: Standard::find(module).ok(),
        errors: Errors::find(module).ok(),
        pausing: Pausing::find(module).ok(),
        resume: Resume::find(module).ok(),
        memory: Heap::find(module).map_or(Memory::LIBC, Memory::Host),
    }
}

/// A loaded object that stays loaded.
pub(crate) struct Module {
    base: usize,
    handle: *mut c_void,
    file: CString,
    symtab: std::cell::OnceCell<elf::Symbols>,
}

/// What `dladdr` says of an address: the module's base and file name.
fn object_of(address: *const c_void) -> Option<(usize, &'static CStr)> {
    // SAFETY: all-zero is a valid Dl_info; dladdr only compares the address with the loaded objects' ranges.
    let info = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address, &mut info) != 0).then_some(info)?
    };
    if info.dli_fbase.is_null() || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader keeps the name for as long as the object is loaded; callers copy it before that ends.
    Some((info.dli_fbase as usize, unsafe { CStr::from_ptr(info.dli_fname) }))
}

impl Module {
    /// The module that holds the call before `ret`. It is never unloaded from then on.
    pub(crate) fn of(ret: *const c_void) -> Option<Module> {
        // One byte back: a call may be the last instruction of its function, even of its module.
        let (base, name) = object_of(ret.cast::<u8>().wrapping_sub(1).cast())?;
        // SAFETY: getauxval has no preconditions.
        let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
        let main = object_of(headers).is_some_and(|(b, _)| b == base);
        // The main program's name is whatever its caller typed; the loader finds it by no name at all.
        // SAFETY: a name from the loader, or none; NOLOAD never loads or runs anything.
        let handle = unsafe {
            match main {
                true => libc::dlopen(ptr::null(), libc::RTLD_LAZY),
                false => libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD),
            }
        };
        let file = if main { c"/proc/self/exe" } else { name };
        (!handle.is_null()).then(|| Module { base, handle, file: file.into(), symtab: Default::default() })
    }

    pub(crate) fn name(&self) -> String {
        let path = Path::new(self.file.to_str().unwrap_or("the calling program"));
        let real = std::fs::read_link(path).unwrap_or(path.into());
        real.file_name().map_or_else(|| "the calling program".into(), |n| n.to_string_lossy().into_owned())
    }

    /// The address of a symbol that lies in this module, whatever it is prefixed with here.
    pub(crate) fn find(&self, symbol: &str) -> Option<*mut c_void> {
        let here = |p: &*mut c_void| object_of(*p).is_some_and(|(base, _)| base == self.base);
        PREFIXES.iter().find_map(|prefix| {
            let name = CString::new(format!("{prefix}{symbol}")).ok()?;
            // SAFETY: the handle is never closed, the name ends in NUL.
            let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
            Some(found).filter(here).or_else(|| {
                let symbols = self.symtab.get_or_init(|| {
                    elf::Symbols::of(Path::new(self.file.to_str().unwrap_or_default())).unwrap_or_default()
                });
                let address = symbols.address(name.to_bytes(), self.base)?;
                Some(address as *mut c_void).filter(here)
            })
        })
    }
}

/// Whether an object whose path has `part` in it, such as a Python module or libnetcdf, works on this libhdf5.
pub(crate) fn serves(host: &Host, part: &str) -> bool {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record, and the pointer given to dl_iterate_phdr.
        let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<CString>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: a NUL-terminated name of the loader.
            names.push(unsafe { CStr::from_ptr(info.dlpi_name) }.into());
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: `note` matches the call and `names` outlives it.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut names).cast()) };
    names.iter().filter(|name| name.to_string_lossy().contains(part)).any(|name| {
        // SAFETY: a name from the loader; NOLOAD only finds what is there; the handle is closed after its last use.
        unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                return false;
            }
            // A handle's symbols are also those of what the object depends on.
            let found = libc::dlsym(handle, c"H5Epush2".as_ptr());
            let same = object_of(found).is_some_and(|(base, _)| base == host.base);
            libc::dlclose(handle);
            same
        }
    })
}
