// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for the small things when there is none: texts of errors, lists of a few items, what starting a thread takes.
//!
//! Rust ends the process where such an allocation fails, and the process is a user's. Large ones are asked for so that
//! they may fail; then the chunk is stored or the read fails, and the reserve keeps the way there open. It lies in
//! memory that the plugin has anyway and that costs nothing until it is touched; it is used only where the system has
//! nothing to give.
//!
//! No locks: threads may be in it at once, and a child that is forked meanwhile loses what its parent held, no more.
//!
//! The linker (`build.rs`) sends the calls of `malloc`, `calloc`, `realloc` and `free` in this object here: a Rust
//! allocator of our own would not do, because the standard library starts its threads with memory of the system's. What
//! somebody else will free is taken from [`system`], and never is a part of the reserve.

use libc::c_void;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots for texts and thread handles, for paths and short lists, and for the codebook's lists: bytes of one, and words
/// of 64 bits that tell which are taken.
const SIZES: [(usize, usize); 3] = [(256, 16), (2048, 2), (16384, 1)];
const WORDS: usize = SIZES[0].1 + SIZES[1].1 + SIZES[2].1;
const BYTES: usize = 64 * (SIZES[0].0 * SIZES[0].1 + SIZES[1].0 * SIZES[1].1 + SIZES[2].0 * SIZES[2].1);

/// The slots of each size behind those of the size before it. All sizes are multiples of the alignment, which is at
/// least malloc's.
#[repr(C, align(64))]
struct Reserve {
    memory: UnsafeCell<[u8; BYTES]>,
    taken: [AtomicU64; WORDS],
}

// SAFETY: a slot's memory is touched only by who took it: its bit is set by one thread, and until that one clears it
// again no other gets the slot. Taking acquires what giving back released.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve::new();

impl Reserve {
    const fn new() -> Self {
        Reserve { memory: UnsafeCell::new([0; BYTES]), taken: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// For each word of bits the size of its slots, and where the first of them begins.
    fn words() -> impl Iterator<Item = (usize, usize)> {
        let sizes = SIZES.into_iter().flat_map(|(size, words)| std::iter::repeat_n(size, words));
        sizes.scan(0, |end, size| Some((size, std::mem::replace(end, *end + 64 * size))))
    }

    /// Null for what is too large, and when all is taken.
    fn allocate(&self, size: usize) -> *mut c_void {
        for (word, (slot, begin)) in self.taken.iter().zip(Self::words()).filter(|(_, (slot, _))| size <= *slot) {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != u64::MAX {
                let free = bits.trailing_ones();
                match word.compare_exchange_weak(bits, bits | 1 << free, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return self.memory.get().cast::<c_void>().wrapping_byte_add(begin + free as usize * slot),
                    Err(now) => bits = now,
                }
            }
        }
        ptr::null_mut()
    }

    /// The word and the bit of the slot at `p`, and its bytes; `None` when it is the system's.
    fn slot(&self, p: *mut c_void) -> Option<(&AtomicU64, u64, usize)> {
        let at = (p as usize).wrapping_sub(self.memory.get() as usize);
        if at >= BYTES {
            return None;
        }
        let (word, (slot, begin)) =
            self.taken.iter().zip(Self::words()).take_while(|(_, (_, begin))| *begin <= at).last()?;
        Some((word, 1 << ((at - begin) / slot), slot))
    }

    /// Whether it was one of ours; then it is free.
    ///
    /// # Safety
    /// A slot is given back by who took it, and used no more.
    unsafe fn give_back(&self, p: *mut c_void) -> bool {
        let slot = self.slot(p);
        slot.inspect(|(word, bit, _)| _ = word.fetch_and(!bit, Ordering::Release)).is_some()
    }
}

/// The system's own functions.
pub(crate) mod system {
    use libc::c_void;
    unsafe extern "C" {
        #[link_name = "__real_malloc"]
        pub(crate) fn malloc(size: usize) -> *mut c_void;
        #[link_name = "__real_calloc"]
        pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void;
        #[link_name = "__real_realloc"]
        pub(super) fn realloc(p: *mut c_void, size: usize) -> *mut c_void;
        #[link_name = "__real_free"]
        pub(crate) fn free(p: *mut c_void);
    }
}

// The names that the linker looks for, and nobody outside sees.
#[cfg(target_arch = "x86_64")]
macro_rules! wrap {
    ($($name:literal => $with:path,)*) => {
        $(core::arch::global_asm!(
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ", @function"),
            concat!($name, ":"), "endbr64", "jmp {}", sym $with);)*
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! wrap {
    ($($name:literal => $with:path,)*) => {
        $(core::arch::global_asm!(
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ", @function"),
            concat!($name, ":"), "hint #34", "b {}", sym $with);)*
    };
}
wrap! {
    "__wrap_malloc" => malloc,
    "__wrap_calloc" => calloc,
    "__wrap_realloc" => realloc,
    "__wrap_free" => free,
}

extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    let p = unsafe { system::malloc(size) };
    if p.is_null() { RESERVE.allocate(size) } else { p }
}

extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any sizes are allowed.
    let p = unsafe { system::calloc(count, size) };
    if !p.is_null() {
        return p;
    }
    let size = count.saturating_mul(size);
    let p = RESERVE.allocate(size);
    if !p.is_null() {
        // SAFETY: a slot of at least that size, which is ours.
        unsafe { p.write_bytes(0, size) };
    }
    p
}

/// # Safety
/// As C's.
unsafe extern "C" fn realloc(p: *mut c_void, size: usize) -> *mut c_void {
    let (moved, len) = match RESERVE.slot(p) {
        Some((.., len)) => (malloc(size), len),
        None => {
            // SAFETY: no slot, so the system's or null. Where it fails the old block stays.
            let moved = unsafe { system::realloc(p, size) };
            if !moved.is_null() || size == 0 {
                return moved;
            }
            // SAFETY: as above; 0 for null.
            (RESERVE.allocate(size), unsafe { libc::malloc_usable_size(p) })
        }
    };
    if !moved.is_null() {
        // SAFETY: both blocks have at least `len.min(size)` bytes and do not overlap; the old block is used no more.
        unsafe {
            moved.copy_from_nonoverlapping(p, len.min(size));
            free(p);
        }
    }
    moved
}

/// # Safety
/// As C's.
unsafe extern "C" fn free(p: *mut c_void) {
    // SAFETY: who frees a block took it. What is no slot is the system's or null.
    unsafe {
        if !RESERVE.give_back(p) {
            system::free(p)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_lent_once_and_come_back() {
        static ALL: Reserve = Reserve::new();
        for n in [1, 256, 257, 2048, 2049, 16384] {
            let mut taken: Vec<*mut u8> = Vec::new();
            loop {
                let p = ALL.allocate(n).cast::<u8>();
                if p.is_null() {
                    break;
                }
                // SAFETY: a slot of `n` bytes that is ours.
                unsafe { p.write_bytes(taken.len() as u8, n) };
                taken.push(p);
            }
            let slots = SIZES.iter().filter(|(size, _)| n <= *size);
            assert_eq!(taken.len(), slots.map(|s| 64 * s.1).sum::<usize>(), "of {n} bytes");
            for (k, &p) in taken.iter().enumerate() {
                // SAFETY: still ours.
                let bytes = unsafe { std::slice::from_raw_parts(p, n) };
                assert!(
                    (p as usize).is_multiple_of(64) && bytes.iter().all(|&b| b == k as u8),
                    "slot {k} of {n} bytes"
                );
                // SAFETY: taken above, and used no more.
                assert!(ALL.slot(p.cast()).is_some_and(|slot| slot.2 >= n) && unsafe { ALL.give_back(p.cast()) });
            }
        }
        assert!(ALL.allocate(16385).is_null());
        let mut own = [0u8; 8];
        let p = own.as_mut_ptr().cast();
        // SAFETY: no slot.
        assert!(ALL.slot(p).is_none() && !unsafe { ALL.give_back(p) });
    }

    #[test]
    fn threads_never_share_a_slot() {
        static ALL: Reserve = Reserve::new();
        std::thread::scope(|s| {
            for t in 0..4u8 {
                s.spawn(move || {
                    for _ in 0..20_000 {
                        let p = ALL.allocate(64).cast::<u8>();
                        // SAFETY: a slot that is ours until it is given back.
                        unsafe {
                            p.write_bytes(t, 64);
                            assert!((0..64).all(|k| p.add(k).read_volatile() == t));
                            assert!(ALL.give_back(p.cast()));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_slot_grows_into_the_systems_memory_and_is_free_again() {
        let p = RESERVE.allocate(100);
        // SAFETY: as C's: what is not null has the bytes asked for, and is freed once.
        unsafe {
            p.write_bytes(7, 100);
            let moved = realloc(p, 1000).cast::<u8>();
            assert!(RESERVE.slot(moved.cast()).is_none() && (0..100).all(|k| *moved.add(k) == 7));
            free(moved.cast());
            // Larger than any address space: it stays where it is.
            let p = RESERVE.allocate(100);
            assert!(realloc(p, isize::MAX as usize).is_null() && RESERVE.slot(p).is_some_and(|slot| slot.2 == 256));
            free(p);
        }
    }
}
