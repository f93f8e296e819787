// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a copy is cut into slices for staging slots and threads. No driver call, no memory of its own.

use super::staging::MOST_WORKERS;
use std::mem::MaybeUninit;

/// Bytes of one staging slot: the bus runs at full speed with slices of this size.
pub(super) const SLOT: usize = 2 << 20;
/// Smallest slice: below it the driver's calls take longer than the copies.
const LEAST_SLICE: usize = 256 << 10;
/// Bytes to copy for which a thread is worth waking.
const WORTH_A_THREAD: usize = 512 << 10;
/// Slices for each thread, so that the device starts early and threads end together.
const SLICES_EACH: usize = 4;

/// Uninitialised memory to fill, and where in the device buffer its bytes are.
pub(super) type Wanted<'a> = (usize, &'a mut [MaybeUninit<u8>]);

/// Fills `staged` with what the device is to hold from offset `from` on.
pub(super) fn gather(parts: &[(usize, &[u8])], from: usize, staged: &mut [u8]) {
    let mut filled = 0;
    let first = parts.partition_point(|(at, bytes)| at + bytes.len() <= from);
    for (at, bytes) in &parts[first..] {
        if *at >= from + staged.len() {
            break;
        }
        let (skip, start) = (from.saturating_sub(*at), at.saturating_sub(from));
        let len = (bytes.len() - skip).min(staged.len() - start);
        staged[filled..start].fill(0);
        staged[start..start + len].copy_from_slice(&bytes[skip..skip + len]);
        filled = start + len;
    }
    staged[filled..].fill(0);
}

/// How `total` bytes are copied by up to `threads` threads: bytes of a slice, slices, threads.
pub(super) fn cut(total: usize, threads: usize) -> (usize, usize, usize) {
    let workers = threads.min(total / WORTH_A_THREAD).clamp(1, MOST_WORKERS);
    let slice = (total / (workers * SLICES_EACH)).next_multiple_of(64 << 10).clamp(LEAST_SLICE, SLOT);
    let slices = total.div_ceil(slice);
    (slice, slices, workers.min(slices))
}

/// Cuts what is wanted into lists of at most `slice` bytes each, in order.
pub(super) fn slices(wanted: Vec<Wanted<'_>>, slice: usize) -> Vec<Vec<Wanted<'_>>> {
    let mut units: Vec<Vec<Wanted<'_>>> = Vec::new();
    let mut free = 0;
    for (mut at, mut out) in wanted {
        while !out.is_empty() {
            if free == 0 {
                units.push(Vec::new());
                free = slice;
            }
            let (now, rest) = out.split_at_mut(free.min(out.len()));
            free -= now.len();
            let len = now.len();
            units.last_mut().expect("just pushed").push((at, now));
            at += len;
            out = rest;
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::super::ALIGN;
    use super::*;

    #[test]
    fn gathered_slices_are_the_parts_with_zeros_between() {
        let (a, b, c) = (vec![1u8; 700], vec![2u8; 10], vec![3u8; 3000]);
        let parts: Vec<(usize, &[u8])> = vec![(0, &a), (768, &b), (1024, &c)];
        let mut whole = vec![0u8; 4096];
        for (at, bytes) in &parts {
            whole[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        for step in [1, 7, 256, 1000, 4096] {
            let mut got = vec![9u8; 4096];
            for from in (0..4096).step_by(step) {
                gather(&parts, from, &mut got[from..(from + step).min(4096)]);
            }
            assert_eq!(got, whole, "slices of {step}");
        }
    }

    #[test]
    fn slices_fit_their_slots() {
        for total in [0, 1, LEAST_SLICE, LEAST_SLICE + 1, 5 << 20, 16 << 20, 1 << 30] {
            for threads in [0, 1, 3, 8, 100] {
                let (slice, slices, workers) = cut(total, threads);
                assert!((LEAST_SLICE..=SLOT).contains(&slice) && slice % ALIGN == 0);
                assert!(slices * slice >= total && workers <= MOST_WORKERS && workers <= slices);
            }
        }
    }

    #[test]
    fn slices_cover_everything_once() {
        let mut a = vec![MaybeUninit::new(0u8); 3 * SLOT + 5];
        let mut b = vec![MaybeUninit::new(0u8); 100];
        let units = slices(vec![(0, &mut a), (4 * SLOT, &mut b)], SLOT);
        let lens: Vec<usize> = units.iter().map(|u| u.iter().map(|(_, o)| o.len()).sum()).collect();
        assert_eq!(lens, [SLOT, SLOT, SLOT, 105]);
        assert_eq!(units[3][1].0, 4 * SLOT);
    }
}
