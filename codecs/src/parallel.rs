// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work over tiles on a few scoped threads.
//!
//! Threads are made for one call and joined before it returns, so a forked child, which inherits no
//! threads, works like its parent; a pool kept from before the fork would wait for ever.

use crate::error::{Error, Result};
use crate::memory;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Most threads taken when nobody says otherwise: chunks are a few megabytes, and DataLoader workers multiply.
const DEFAULT_MOST: usize = 8;

/// Whether there is one thread and never another: in WebAssembly. What several threads need is left out of the module.
const ALONE: bool = cfg!(target_family = "wasm");

/// Threads where nobody says how many: those of the affinity mask, at most eight.
pub fn few() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(DEFAULT_MOST)
}

/// `f(0), f(1), … f(n - 1)` in order of index, computed by up to `threads` threads that take the next
/// index as they become free. For a few results: memory for them is not asked for, but taken.
pub fn map<R: Send>(n: usize, threads: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    if ALONE || threads.min(n) <= 1 {
        return (0..n).map(f).collect();
    }
    let done = on_threads(n, threads, Vec::with_capacity(n), f);
    done.into_iter().flatten().collect()
}

/// As [`map`], where `f` and finding memory for the results may fail: the first failure in order of index.
pub fn try_map<R: Send>(n: usize, threads: usize, f: impl Fn(usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    let mut all = memory::with_capacity(n)?;
    if ALONE || threads.min(n) <= 1 {
        for i in 0..n {
            all.push(f(i)?);
        }
        return Ok(all);
    }
    for r in on_threads(n, threads, memory::with_capacity(n)?, f).into_iter().flatten() {
        all.push(r?);
    }
    Ok(all)
}

/// All `f(i)` in order of index, in `done`, which is empty and has room for them.
fn on_threads<R: Send>(
    n: usize,
    threads: usize,
    mut done: Vec<Option<R>>,
    f: impl Fn(usize) -> R + Sync,
) -> Vec<Option<R>> {
    done.resize_with(n, || None);
    let done = Mutex::new(done);
    do_on_threads(n, threads, &|i| {
        let r = f(i);
        done.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(r);
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work(i)` for each i. Compiled once for all kinds of work, for threads take long to compile.
fn do_on_threads(n: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                i if i < n => work(i),
                _ => return,
            }
        }
    };
    std::thread::scope(|s| {
        for _ in 1..threads.min(n) {
            // A host at its thread limit still gets its answer, from the threads there are.
            if std::thread::Builder::new().spawn_scoped(s, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// An item that is taken once, by whichever thread comes.
type Slot<T> = Mutex<Option<T>>;

fn taken<T>(slot: &Slot<T>) -> T {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take().expect("each index is handed out once")
}

/// `f(i, &mut items[i])` for every item, on up to `threads` threads; results in order. For a few items, as [`map`].
pub fn map_mut<T: Send, R: Send>(items: Vec<T>, threads: usize, f: impl Fn(usize, T) -> R + Sync) -> Vec<R> {
    let slots: Vec<Slot<T>> = items.into_iter().map(|t| Mutex::new(Some(t))).collect();
    map(slots.len(), threads, |i| f(i, taken(&slots[i])))
}

/// Does `f(i, item)` for each of `n` items: as [`map_mut`], but it may fail as in [`try_map`].
pub(crate) fn try_each<T: Send>(
    n: usize,
    items: impl Iterator<Item = T>,
    threads: usize,
    f: impl Fn(usize, T) -> Result<()> + Sync,
) -> Result<()> {
    let slots: Vec<Slot<T>> = memory::collect(n, items.map(|t| Mutex::new(Some(t))))?;
    try_map(slots.len(), threads, |i| f(i, taken(&slots[i]))).map(|_| ())
}

/// For i from 0 to n - 1: `make(i, &mut state)` on up to `threads` threads, then `place(i, &mut state)` on the same
/// thread, but in order of i and one at a time.
///
/// For output whose parts' lengths are known only once they are made: each thread keeps one part in a buffer of its
/// own, small enough to stay in its cache, and appends it when its turn comes, while the others make theirs. The first
/// failure of any of the three ends it.
pub(crate) fn map_in_order<S>(
    n: usize,
    threads: usize,
    state: impl Fn() -> Result<S> + Sync,
    make: impl Fn(usize, &mut S) -> Result<()> + Sync,
    place: impl FnMut(usize, &mut S) -> Result<()> + Send,
) -> Result<()> {
    struct Turns<P> {
        /// The next part to be made.
        make: usize,
        /// The next part to be placed.
        place: usize,
        /// Somebody panicked or failed: nobody waits any longer.
        over: bool,
        failure: Option<Error>,
        how: P,
    }
    struct Watch<'a, P>(&'a Mutex<Turns<P>>, &'a Condvar);
    impl<P> Drop for Watch<'_, P> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).over = true;
                self.1.notify_all();
            }
        }
    }
    let turns = Mutex::new(Turns { make: 0, place: 0, over: false, failure: None, how: place });
    let passed = Condvar::new();
    let lock = || turns.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || -> Result<()> {
        let _watch = Watch(&turns, &passed);
        let mut state = state()?;
        loop {
            // Parts are taken in order, so whoever holds the lowest one never waits.
            let i = {
                let mut turns = lock();
                turns.make += 1;
                turns.make - 1
            };
            if i >= n {
                return Ok(());
            }
            make(i, &mut state)?;
            let waits = |turns: &mut Turns<_>| turns.place != i && !turns.over;
            let mut turns = passed.wait_while(lock(), waits).unwrap_or_else(PoisonError::into_inner);
            if turns.over {
                return Ok(());
            }
            (turns.how)(i, &mut state)?;
            turns.place += 1;
            passed.notify_all();
        }
    };
    map(threads.min(n), threads, |_| {
        if let Err(failure) = work() {
            let mut turns = lock();
            turns.over = true;
            turns.failure.get_or_insert(failure);
            passed.notify_all();
        }
    });
    turns.into_inner().unwrap_or_else(PoisonError::into_inner).failure.map_or(Ok(()), Err)
}

/// Splits `n` tiles into about four runs a thread, so that an uneven run does not keep the others waiting.
/// Returns tiles per run; the answer shapes the work only, never the bytes.
pub(crate) fn run_length(n: usize, threads: usize) -> usize {
    if threads <= 1 { n.max(1) } else { n.div_ceil(threads * 4).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_placed_in_order() {
        for threads in [1, 2, 5] {
            let mut all = Vec::new();
            map_in_order(
                100,
                threads,
                || Ok(Vec::new()),
                |i, part| {
                    part.clear();
                    part.extend((0..i % 7).map(|k| (i, k)));
                    Ok(())
                },
                |i, part| {
                    all.push((i, 9));
                    all.append(part);
                    Ok(())
                },
            )
            .unwrap();
            let want: Vec<_> =
                (0..100).flat_map(|i| [(i, 9)].into_iter().chain((0..i % 7).map(move |k| (i, k)))).collect();
            assert_eq!(all, want);
        }
        map_in_order(0, 3, || Ok(()), |_, ()| unreachable!(), |_, ()| unreachable!()).unwrap();
    }

    #[test]
    fn a_failure_keeps_nobody_waiting_and_comes_through() {
        let fail = |bad: bool| if bad { Err(Error::NoMemory { bytes: 7 }) } else { Ok(()) };
        for threads in [1, 4] {
            for bad in [0, 3, 49] {
                for step in 0..3 {
                    let done = map_in_order(
                        50,
                        threads,
                        || fail(step == 0),
                        |i, ()| fail(step == 1 && i == bad),
                        |i, ()| fail(step == 2 && i == bad),
                    );
                    assert_eq!(done, Err(Error::NoMemory { bytes: 7 }), "{threads} threads, part {bad}, step {step}");
                }
                let failed = try_map(50, threads, |i| fail(i == bad).map(|()| i));
                assert_eq!(failed, Err(Error::NoMemory { bytes: 7 }));
            }
        }
    }

    #[test]
    fn a_panic_keeps_nobody_waiting() {
        for bad in [0, 3, 49] {
            let run = std::panic::AssertUnwindSafe(|| {
                let make = |i, (): &mut ()| {
                    assert_ne!(i, bad, "on purpose");
                    Ok(())
                };
                let _ = map_in_order(50, 4, || Ok(()), make, |_, ()| Ok(()));
            });
            std::panic::catch_unwind(run).expect_err("the panic comes through");
        }
    }

    #[test]
    fn results_keep_their_order() {
        for threads in [1, 2, 5] {
            assert_eq!(map(100, threads, |i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
            let items: Vec<String> = (0..50).map(|i| i.to_string()).collect();
            assert_eq!(map_mut(items.clone(), threads, |_, s| s), items);
        }
    }
}
