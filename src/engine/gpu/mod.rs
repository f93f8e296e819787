// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches on the GPU.
//!
//! Chunks of one codec and element size become one launch of each of its kernels, however many they are and of whatever
//! sizes. The kernels leave complete frames on the device; lengths come back first, then the frames. A frame that a
//! kernel does not find right goes to the CPU, which names what is wrong with it.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod group;
pub(crate) mod plan;
pub(crate) mod plans;

use crate::host::log;
use codecs::{DecodeJob, EncodeJob};
pub(super) use group::{MinBytes, Share};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Chunks that the GPU encoded and decoded in this process.
static ENCODED: AtomicU64 = AtomicU64::new(0);
static DECODED: AtomicU64 = AtomicU64::new(0);

/// See [`super::Engine::chunks_on_gpu`].
pub(super) fn chunks() -> (u64, u64) {
    (ENCODED.load(Ordering::Relaxed), DECODED.load(Ordering::Relaxed))
}

/// Counts what was encoded, and decoded, for an array on a device.
pub(crate) fn count(encoded: usize, decoded: usize) {
    ENCODED.fetch_add(encoded as u64, Ordering::Relaxed);
    DECODED.fetch_add(decoded as u64, Ordering::Relaxed);
}

/// Encodes on the GPU what it can of codecs that reach their limit; true for each job that is done.
pub(super) fn encode(jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>], share: Share, threads: usize) -> Vec<bool> {
    if !share.least.reached(jobs.iter().map(|j| j.raw.len()).sum(), |gpu| gpu.encode_from) {
        return vec![false; jobs.len()];
    }
    counted(&ENCODED, jobs.len(), || encode::encode(jobs, out, share, threads))
}

/// Decodes on the GPU what it can of codecs that reach their limit; true for each job that is done.
pub(super) fn decode(jobs: &mut [DecodeJob<'_>], share: Share, threads: usize) -> Vec<bool> {
    if !share.least.reached(jobs.iter().map(|j| j.out.len()).sum(), |gpu| gpu.decode_from) {
        return vec![false; jobs.len()];
    }
    counted(&DECODED, jobs.len(), || decode::decode(jobs, share, threads))
}

fn counted(done_here: &AtomicU64, jobs: usize, run: impl FnOnce() -> Vec<bool>) -> Vec<bool> {
    let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        log::warn("a GPU's work panicked before it began; the CPU does it. Please report it.");
        vec![false; jobs]
    });
    done_here.fetch_add(done.iter().filter(|d| **d).count() as u64, Ordering::Relaxed);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_is_left_to_the_cpu() {
        let count = AtomicU64::new(0);
        assert_eq!(counted(&count, 3, || panic!("a bug")), [false; 3]);
        assert_eq!(counted(&count, 2, || vec![true, false]), [true, false]);
        assert_eq!(count.into_inner(), 1);
    }
}
