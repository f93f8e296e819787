// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work over tiles on a few scoped threads.
//!
//! Threads are made for one call and joined before it returns, so a forked child, which inherits no
//! threads, works like its parent; a pool kept from before the fork would wait for ever.

use crate::settings;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Most threads taken when nobody says otherwise: chunks are a few megabytes, and DataLoader workers multiply.
const DEFAULT_MOST: usize = 8;

/// CPU threads to use: `H5Z_GPU_THREADS`, else the affinity mask, at most eight.
pub(crate) fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| match settings::get("H5Z_GPU_THREADS").and_then(|v| v.parse::<usize>().ok()) {
        Some(n) => n.min(256),
        None => std::thread::available_parallelism().map_or(1, usize::from).min(DEFAULT_MOST),
    })
}

/// `f(0), f(1), … f(n - 1)` in order of index, computed by up to `threads` threads that take the next
/// index as they become free.
pub(crate) fn map<R: Send>(n: usize, threads: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let workers = threads.min(n);
    if workers <= 1 {
        return (0..n).map(f).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(n));
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                return;
            }
            let r = f(i);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((i, r));
        }
    };
    std::thread::scope(|s| {
        for _ in 1..workers {
            // A host at its thread limit still gets its answer, from the threads there are.
            if std::thread::Builder::new().spawn_scoped(s, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, r)| r).collect()
}

/// `f(i, &mut items[i])` for every item, on up to `threads` threads; results in order.
pub(crate) fn map_mut<T: Send, R: Send>(items: Vec<T>, threads: usize, f: impl Fn(usize, T) -> R + Sync) -> Vec<R> {
    let slots: Vec<Mutex<Option<T>>> = items.into_iter().map(|t| Mutex::new(Some(t))).collect();
    map(slots.len(), threads, |i| {
        let item = slots[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        f(i, item.expect("each index is handed out once"))
    })
}

/// For i from 0 to n - 1: `make(i, &mut state)` on up to `threads` threads, then `place(i, &mut state)` on the same thread, but
/// in order of i and one at a time.
///
/// For output whose parts' lengths are known only once they are made: each thread keeps one part in a buffer of its
/// own, small enough to stay in its cache, and appends it when its turn comes, while the others make theirs.
pub(crate) fn map_in_order<S>(
    n: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    make: impl Fn(usize, &mut S) + Sync,
    place: impl FnMut(usize, &mut S) + Send,
) {
    struct Turns<P> {
        /// The next part to be made.
        make: usize,
        /// The next part to be placed.
        place: usize,
        /// Somebody panicked: nobody waits any longer.
        over: bool,
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
    let turns = Mutex::new(Turns { make: 0, place: 0, over: false, how: place });
    let passed = Condvar::new();
    map(threads.min(n), threads, |_| {
        let lock = || turns.lock().unwrap_or_else(PoisonError::into_inner);
        let _watch = Watch(&turns, &passed);
        let mut state = state();
        loop {
            // Parts are taken in order, so whoever holds the lowest one never waits.
            let i = {
                let mut turns = lock();
                turns.make += 1;
                turns.make - 1
            };
            if i >= n {
                return;
            }
            make(i, &mut state);
            let waits = |turns: &mut Turns<_>| turns.place != i && !turns.over;
            let mut turns = passed.wait_while(lock(), waits).unwrap_or_else(PoisonError::into_inner);
            if turns.over {
                return;
            }
            (turns.how)(i, &mut state);
            turns.place += 1;
            passed.notify_all();
        }
    });
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
                Vec::new,
                |i, part| {
                    part.clear();
                    part.extend((0..i % 7).map(|k| (i, k)));
                },
                |i, part| {
                    all.push((i, 9));
                    all.append(part);
                },
            );
            let want: Vec<_> =
                (0..100).flat_map(|i| [(i, 9)].into_iter().chain((0..i % 7).map(move |k| (i, k)))).collect();
            assert_eq!(all, want);
        }
        map_in_order(0, 3, || (), |_, ()| unreachable!(), |_, ()| unreachable!());
    }

    #[test]
    fn a_panic_keeps_nobody_waiting() {
        for bad in [0, 3, 49] {
            let run = std::panic::AssertUnwindSafe(|| {
                map_in_order(50, 4, || (), |i, ()| assert_ne!(i, bad, "on purpose"), |_, ()| {});
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
