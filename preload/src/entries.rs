// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5's calls for several datasets at once, and those that need not be waited for, which came with 1.14. HDF5 itself
//! waits all the same: only other connectors do not, whose datasets are left to them.
//!
//! Most of these calls have arguments on the stack, so an entry notes the address it returns to ([`note`]) and goes on
//! with all of them as they are.

use crate::door::{self, Call, Outcome};
use crate::hdf5::Hid;
use crate::host::Host;
use crate::newer;
use crate::real;
use crate::several::{One, Several};
use libc::{c_char, c_int, c_uint, c_void};
use std::cell::Cell;
use std::ptr;

thread_local! {
    /// The address that the call of this thread returns to.
    pub(crate) static RETURN: Cell<*const c_void> = const { Cell::new(ptr::null()) };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) extern "C" fn note(ret: *const c_void) {
    RETURN.set(ret);
}

/// The library that is called, and its functions of this kind.
fn library() -> Option<(&'static Host, &'static newer::Several)> {
    let host = real::of(RETURN.get())?;
    Some((host, host.several.as_ref()?))
}

/// An entry that keeps the registers of the arguments while the address is noted.
macro_rules! entry {
    ($(#[$doc:meta])* $name:ident => $inner:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty) => {
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!(
                ".cfi_startproc", "endbr64", "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                "sub rsp, 8", ".cfi_adjust_cfa_offset 56", "mov rdi, [rsp + 56]", "call {note}", "add rsp, 8", "pop r9",
                "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi", ".cfi_adjust_cfa_offset -56", "jmp {inner}",
                ".cfi_endproc", note = sym $crate::entries::note, inner = sym $inner
            )
        }

        $(#[$doc])*
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!(
                "hint #34", "stp x29, x30, [sp, #-80]!", "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]", "mov x0, x30", "bl {note}", "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]", "ldp x4, x5, [sp, #48]", "ldp x6, x7, [sp, #64]", "ldp x29, x30, [sp], #80",
                "b {inner}", note = sym $crate::entries::note, inner = sym $inner
            )
        }

        $(#[$doc])*
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's arguments as they are.
            unsafe { $inner($($arg),*) }
        }
    };
}

pub(crate) use entry;

/// The four calls of one direction.
macro_rules! calls {
    (
        $door:ident of $values:ty: $several:ident = $several_symbol:literal by $go_several:ident,
        $later:ident = $later_symbol:literal by $go_later:ident,
        $all_later:ident = $all_later_symbol:literal by $go_all_later:ident
    ) => {
        entry! {
            /// HDF5's function of this name.
            #[unsafe(export_name = $several_symbol)]
            $several => $go_several(
                count: usize, datasets: *mut Hid, memory: *mut Hid, here: *mut Hid, there: *mut Hid, list: Hid,
                values: *mut $values,
            ) -> c_int
        }

        entry! {
            /// HDF5's function of this name.
            #[unsafe(export_name = $later_symbol)]
            $later => $go_later(
                file: *const c_char, function: *const c_char, line: c_uint, dataset: Hid, memory: Hid, here: Hid,
                there: Hid, list: Hid, values: $values, events: Hid,
            ) -> c_int
        }

        entry! {
            /// HDF5's function of this name.
            #[unsafe(export_name = $all_later_symbol)]
            $all_later => $go_all_later(
                file: *const c_char, function: *const c_char, line: c_uint, count: usize, datasets: *mut Hid,
                memory: *mut Hid, here: *mut Hid, there: *mut Hid, list: Hid, values: *mut $values, events: Hid,
            ) -> c_int
        }

        /// # Safety
        /// As HDF5 says of this function.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $go_several(
            count: usize,
            datasets: *mut Hid,
            memory: *mut Hid,
            here: *mut Hid,
            there: *mut Hid,
            list: Hid,
            values: *mut $values,
        ) -> c_int {
            let Some((host, real)) = library() else { return -1 };
            let native = |count, datasets, [memory, here, there]: [*mut Hid; 3], values| {
                // SAFETY: the caller's promise, of all datasets or some.
                unsafe { (real.$door)(count, datasets, memory, here, there, list, values) }
            };
            // SAFETY: as above.
            unsafe { all(host, count, datasets, [memory, here, there], list, values, door::$door, native) }
        }

        /// # Safety
        /// As HDF5 says of this function.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $go_later(
            file: *const c_char,
            function: *const c_char,
            line: c_uint,
            dataset: Hid,
            memory: Hid,
            here: Hid,
            there: Hid,
            list: Hid,
            values: $values,
            events: Hid,
        ) -> c_int {
            let Some((host, real)) = library() else { return -1 };
            let call = Call { dataset, memory, here, there, list };
            // SAFETY: the caller's promise.
            match unsafe { door::$door(host, &call, values) } {
                Outcome::Done(_) => 0,
                Outcome::Failed(why) => door::fail(host, &why),
                // SAFETY: as above.
                Outcome::Native(_) => unsafe {
                    (real.$later)(file, function, line, dataset, memory, here, there, list, values, events)
                },
            }
        }

        /// # Safety
        /// As HDF5 says of this function.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $go_all_later(
            file: *const c_char,
            function: *const c_char,
            line: c_uint,
            count: usize,
            datasets: *mut Hid,
            memory: *mut Hid,
            here: *mut Hid,
            there: *mut Hid,
            list: Hid,
            values: *mut $values,
            events: Hid,
        ) -> c_int {
            let Some((host, real)) = library() else { return -1 };
            let native = |count, datasets, [memory, here, there]: [*mut Hid; 3], values| {
                // SAFETY: the caller's promise, of all datasets or some.
                unsafe {
                    (real.$all_later)(file, function, line, count, datasets, memory, here, there, list, values, events)
                }
            };
            // SAFETY: as above.
            unsafe { all(host, count, datasets, [memory, here, there], list, values, door::$door, native) }
        }
    };
}

calls! {
    read of *mut c_void: read_several = "H5Dread_multi" by go_read_several,
    read_later = "H5Dread_async" by go_read_later,
    read_all_later = "H5Dread_multi_async" by go_read_all_later
}

calls! {
    write of *const c_void: write_several = "H5Dwrite_multi" by go_write_several,
    write_later = "H5Dwrite_async" by go_write_later,
    write_all_later = "H5Dwrite_multi_async" by go_write_all_later
}

/// A call for several datasets: `short` takes each that it can, `native` the others.
///
/// # Safety
/// As HDF5 says of such a call: arrays of `count` elements.
#[allow(clippy::too_many_arguments)]
unsafe fn all<V: Copy>(
    host: &'static Host,
    count: usize,
    datasets: *mut Hid,
    spaces: [*mut Hid; 3],
    list: Hid,
    values: *mut V,
    short: unsafe fn(&'static Host, &Call, V) -> Outcome,
    native: impl Fn(usize, *mut Hid, [*mut Hid; 3], *mut V) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(several) = (unsafe { Several::new(count, datasets, spaces, values) }) else {
        return native(count, datasets, spaces, values);
    };
    let one = |One { dataset, memory, here, there, values }| {
        let call = Call { dataset, memory, here, there, list };
        // SAFETY: as above: what the arrays say of a dataset goes together.
        unsafe { short(host, &call, values) }
    };
    several.go(host, one, native)
}
