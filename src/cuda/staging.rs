// SPDX-License-Identifier: MIT OR Apache-2.0
//! The staging pool: threads that copy between callers' memory and page-locked slots; started when first needed, kept,
//! never joined.
//!
//! Starting and joining threads takes as long as copying a chunk of a megabyte, and a call would do it twice. These
//! stay: after its part of a call a thread looks out for the next one for a moment, then sleeps.
//!
//! Each device has a pool: several devices that work at a time would else wait for each other's copies.
//!
//! They belong to the process that started the driver. A forked child inherits the memory and none of the threads, but
//! comes here as little as it makes a driver call ([`super::ours`]); one whose parent never started the driver has a
//! pool of its own. At exit they sleep, and end with the process. Whoever calls works itself and waits only for those
//! who joined, so a pool that is busy elsewhere, or for which no thread could be started, costs time and nothing else.

use super::driver::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Threads that one call may use, its own among them; more do not make the memory faster.
pub(super) const MOST_WORKERS: usize = 8;
/// How long a thread looks out before it sleeps: from a chunk's upload to its download. Waking takes half as long.
const LOOK_OUT: Duration = Duration::from_micros(100);

/// One call: work for several threads, on the caller's stack.
struct Call<'a> {
    /// What each of them does, given its number; the caller is 0.
    work: &'a (dyn Fn(usize) + Sync),
    most: usize,
    /// Threads that took a number. Written under the pool's lock.
    joined: AtomicUsize,
    /// Threads that are through, without the caller.
    through: AtomicUsize,
    panicked: AtomicBool,
    caller: Thread,
}

/// A call that threads may join, while it is in the list.
#[derive(Clone, Copy, PartialEq)]
struct Open(*const Call<'static>);
// SAFETY: `Call` may be shared; who takes a number from an open one keeps it alive (see `Pool::run`).
unsafe impl Send for Open {}

struct State {
    open: Vec<Open>,
    members: usize,
    asleep: usize,
}

/// Threads that copy.
pub(super) struct Pool {
    state: Mutex<State>,
    called: Condvar,
    /// Calls so far, for those who look out.
    calls: AtomicUsize,
}

impl Pool {
    pub(super) const fn new() -> Pool {
        let state = State { open: Vec::new(), members: 0, asleep: 0 };
        Pool { state: Mutex::new(state), called: Condvar::new(), calls: AtomicUsize::new(0) }
    }

    /// `work(0)` here and `work(1)`, `work(2)`, … up to `workers - 1` on threads that are free; the first failure.
    ///
    /// All of the work must be done by whoever comes: the other numbers may never be called.
    pub(super) fn run(
        &'static self,
        workers: usize,
        work: impl Fn(usize) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let failure = Mutex::new(None);
        let run = |n: usize| {
            if let Err(f) = work(n) {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(f);
            }
        };
        self.call(workers.min(MOST_WORKERS), &run);
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&'static self, most: usize, work: &(dyn Fn(usize) + Sync)) {
        if most <= 1 {
            return work(0);
        }
        let call = Call {
            work,
            most,
            joined: AtomicUsize::new(1),
            through: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            caller: std::thread::current(),
        };
        let open = Open(std::ptr::from_ref(&call).cast());
        self.announce(open, most);
        // Waits also when the caller's own part panics.
        let closing = Closing { pool: self, open, call: &call };
        work(0);
        drop(closing);
        assert!(!call.panicked.load(Ordering::Relaxed), "a staging thread panicked");
    }

    fn announce(&'static self, open: Open, most: usize) {
        let mut state = self.lock();
        while state.members + 1 < most {
            let member = std::thread::Builder::new().name("h5z-gpu".into()).spawn(|| self.serve());
            // A host at its thread limit has fewer.
            if member.is_err() {
                break;
            }
            state.members += 1;
        }
        state.open.push(open);
        let asleep = state.asleep > 0;
        drop(state);
        self.calls.fetch_add(1, Ordering::Release);
        if asleep {
            self.called.notify_all();
        }
    }

    /// A thread's life.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some((call, number)) = state.join() {
                drop(state);
                call.take_part(number);
                let seen = self.calls.load(Ordering::Acquire);
                state = self.lock();
                if !state.open.is_empty() {
                    continue;
                }
                drop(state);
                let begin = Instant::now();
                while self.calls.load(Ordering::Acquire) == seen && begin.elapsed() < LOOK_OUT {
                    std::hint::spin_loop();
                }
                state = self.lock();
            } else {
                state.asleep += 1;
                state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep -= 1;
            }
        }
    }
}

impl State {
    /// A call that still takes threads, and the number in it.
    fn join(&mut self) -> Option<(&'static Call<'static>, usize)> {
        let open = *self.open.first()?;
        // SAFETY: while it is in the list the call is alive, and its end waits for those who joined. Nobody uses it
        // after having said that they are through, so the lifetime, which says more than that, is not made use of.
        let call = unsafe { &*open.0 };
        let number = call.joined.fetch_add(1, Ordering::Relaxed);
        if number + 1 == call.most {
            self.open.remove(0);
        }
        Some((call, number))
    }
}

impl Call<'_> {
    fn take_part(&self, number: usize) {
        if catch_unwind(AssertUnwindSafe(|| (self.work)(number))).is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
        let caller = self.caller.clone();
        // The last use of `self`.
        self.through.fetch_add(1, Ordering::Release);
        caller.unpark();
    }
}

/// Takes a call from the list when dropped, and waits for those who joined.
struct Closing<'a> {
    pool: &'a Pool,
    open: Open,
    call: &'a Call<'a>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let joined = {
            let mut state = self.pool.lock();
            state.open.retain(|o| *o != self.open);
            self.call.joined.load(Ordering::Relaxed) - 1
        };
        let begin = Instant::now();
        while self.call.through.load(Ordering::Acquire) < joined {
            if begin.elapsed() < LOOK_OUT {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static POOL: Pool = Pool::new();

    /// Work in `units` that whoever comes takes; how often each was done, and how many threads came.
    fn units(workers: usize, units: usize) -> usize {
        let (next, came) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done: Vec<AtomicUsize> = (0..units).map(|_| AtomicUsize::new(0)).collect();
        POOL.run(workers, |_| {
            came.fetch_add(1, Ordering::Relaxed);
            while let Some(unit) = done.get(next.fetch_add(1, Ordering::Relaxed)) {
                unit.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(())
        })
        .unwrap();
        assert!(done.iter().all(|u| u.load(Ordering::Relaxed) == 1));
        came.into_inner()
    }

    #[test]
    fn every_unit_is_done_once_whoever_comes() {
        std::thread::scope(|s| {
            for caller in 0..6 {
                s.spawn(move || {
                    for round in 0..60 {
                        let came = units(1 + (caller + round) % 9, round);
                        assert!((1..=MOST_WORKERS).contains(&came));
                        // Sometimes the pool sleeps in between.
                        std::thread::sleep(Duration::from_micros(40 * (round as u64 % 7)));
                    }
                });
            }
        });
        // Nobody else calls: the pool has time.
        assert!((0..50).any(|_| units(4, 100) > 1), "nobody joins");
    }

    /// All of one pool are busy for as long as a call of the other one takes, which has its own.
    #[test]
    fn pools_do_not_wait_for_each_other() {
        static OTHER: Pool = Pool::new();
        let (busy, came, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let wait = |done: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !done() && begin.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                OTHER.run(3, |_| {
                    busy.fetch_add(1, Ordering::Relaxed);
                    wait(&|| is_over.load(Ordering::Relaxed))
                })
            });
            _ = wait(&|| busy.load(Ordering::Relaxed) == 3);
            _ = POOL.run(3, |_| {
                came.fetch_add(1, Ordering::Relaxed);
                wait(&|| came.load(Ordering::Relaxed) == 3)
            });
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!((busy.into_inner(), came.into_inner()), (3, 3));
    }

    #[test]
    fn a_failure_and_a_panic_come_through() {
        let failing = |bad: usize| {
            let all = std::sync::Barrier::new(3);
            POOL.run(3, move |n| {
                all.wait();
                if n == bad { Err(Failure::other("on purpose")) } else { Ok(()) }
            })
        };
        for bad in 0..3 {
            assert_eq!(failing(bad), Err(Failure::other("on purpose")));
        }
        for bad in 0..3 {
            let all = std::sync::Barrier::new(3);
            let panicking = || {
                POOL.run(3, |n| {
                    all.wait();
                    assert_ne!(n, bad, "on purpose");
                    Ok(())
                })
            };
            catch_unwind(AssertUnwindSafe(panicking)).expect_err("the panic comes through");
        }
        assert_eq!(failing(3), Ok(()));
    }
}
