// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry points that hand on the address they return to, as one more argument: it lies in the library that called.

/// An entry in the instructions of each processor. On others the caller stays unknown, which is a supported state.
macro_rules! entry {
    ([$($x86:literal)*] [$($windows:literal)*] [$($arm:literal)*]
     $(#[$doc:meta])* $name:ident => $inner:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        $(#[$doc])*
        #[cfg(all(target_arch = "x86_64", not(windows)))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!($($x86,)* sym $inner)
        }

        $(#[$doc])*
        #[cfg(all(target_arch = "x86_64", windows))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!($($windows,)* sym $inner)
        }

        $(#[$doc])*
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!($($arm,)* sym $inner)
        }

        $(#[$doc])*
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's arguments as they are.
            unsafe { $inner($($arg,)* std::ptr::null()) }
        }
    };
}

/// An entry of three arguments.
macro_rules! entry3 {
    ($($entry:tt)*) => {
        $crate::entry::entry! {
            ["endbr64" "mov rcx, [rsp]" "jmp {}"] ["mov r9, [rsp]" "jmp {}"] ["hint #34" "mov x3, x30" "b {}"]
            $($entry)*
        }
    };
}

/// An entry of six arguments. On x86-64 they fill the registers: the seventh goes onto the stack, and the push aligns
/// it. On Windows two of them are on the stack already, behind room for the four others: all is laid out anew.
macro_rules! entry6 {
    ($($entry:tt)*) => {
        $crate::entry::entry! {
            [".cfi_startproc" "endbr64" "push qword ptr [rsp]" ".cfi_adjust_cfa_offset 8" "call {}" "add rsp, 8"
             ".cfi_adjust_cfa_offset -8" "ret" ".cfi_endproc"]
            ["sub rsp, 72" "mov rax, [rsp + 112]" "mov [rsp + 32], rax" "mov rax, [rsp + 120]" "mov [rsp + 40], rax"
             "mov rax, [rsp + 72]" "mov [rsp + 48], rax" "call {}" "add rsp, 72" "ret"]
            ["hint #34" "mov x6, x30" "b {}"]
            $($entry)*
        }
    };
}

pub(crate) use {entry, entry3, entry6};
