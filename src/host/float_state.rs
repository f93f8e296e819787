// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor's floating-point state: ours while we work, the caller's again when we return.
//!
//! A caller may round upwards, flush denormals to zero or want a signal for each inexact result: some compilers'
//! start-up code sets such a state for the whole program, some libraries set it on request. The bound and the bytes
//! must not depend on it. Threads that are started in between inherit the state of the thread that starts them (POSIX,
//! `pthread_create`).

/// Runs `work` in the default state: round to nearest, denormals kept, no exception raises a signal. The caller's
/// state, flags of past exceptions included, is put back also when `work` panics.
pub fn with_default<R>(work: impl FnOnce() -> R) -> R {
    use std::hint::black_box;
    let _callers = Callers::replace();
    // Nothing tells the compiler that arithmetic depends on this state. What goes in and what comes out pass between
    // the two switches by `black_box`, and the work itself is a call, so none of it can move out of there.
    black_box(call(black_box(work)))
}

#[inline(never)]
fn call<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// The state that the caller had, put back when dropped.
struct Callers(State);

impl Callers {
    fn replace() -> Callers {
        let callers = State::read();
        State::DEFAULT.write();
        Callers(callers)
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.0.write();
    }
}

/// MXCSR: exception flags, denormals are zero, exception masks, rounding mode, flush to zero.
#[cfg(target_arch = "x86_64")]
struct State(u32);

#[cfg(target_arch = "x86_64")]
impl State {
    /// As a process finds it: all exceptions masked.
    const DEFAULT: State = State(0x1f80);

    fn read() -> State {
        let mut word = 0u32;
        // SAFETY: every x86-64 processor has MXCSR; this stores its 32 bits to a place for them.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        State(word)
    }

    fn write(&self) {
        // SAFETY: the word is the default or was read from this register, so no reserved bit is set, which would fault.
        // Compiled code is at home in the default state; any other one goes back to the caller who had set it.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const self.0, options(nostack, preserves_flags)) };
    }
}

/// FPCR (rounding mode, flush to zero, traps) and FPSR (flags).
#[cfg(target_arch = "aarch64")]
struct State {
    control: u64,
    flags: u64,
}

#[cfg(target_arch = "aarch64")]
impl State {
    const DEFAULT: State = State { control: 0, flags: 0 };

    fn read() -> State {
        let (control, flags);
        // SAFETY: both registers may be read by any program.
        unsafe { std::arch::asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) flags, options(nostack)) };
        State { control, flags }
    }

    fn write(&self) {
        let State { control, flags } = *self;
        // SAFETY: as above for writing; the values are the default or were read from these registers.
        unsafe { std::arch::asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) control, in(reg) flags, options(nostack)) };
    }
}

/// Other processors: the state is taken as it is.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
struct State;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl State {
    const DEFAULT: State = State;

    fn read() -> State {
        State
    }

    fn write(&self) {}
}
