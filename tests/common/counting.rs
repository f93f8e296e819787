// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a piece of code holds. Whoever asks makes [`Counting`] the program's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread holds.
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is going away has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

/// Counts memory that there is: what was refused, of whatever size, is not held.
fn counted(at: *mut u8, layout: Layout) -> *mut u8 {
    if !at.is_null() {
        count(layout.size() as isize);
    }
    at
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        counted(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        counted(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Most bytes that `f` held at one time on this thread beyond what was held before.
pub fn most_held(f: impl FnOnce()) -> isize {
    let before = HELD.get();
    MOST.set(before);
    f();
    MOST.get() - before
}
