// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: one per process, made on first use, never torn down. Takes batches of chunks.

use crate::codec::{self, stored};
use crate::error::{Error, Result};
use crate::frame::{self, Frame};
use crate::log;
use crate::parallel;
use crate::params::Params;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// One chunk to encode.
#[derive(Debug, Clone, Copy)]
pub struct EncodeJob<'a> {
    /// What was asked and what the chunk is.
    pub params: &'a Params,
    /// The chunk's bytes.
    pub raw: &'a [u8],
}

/// One frame to decode.
#[derive(Debug)]
pub struct DecodeJob<'a> {
    /// The frame.
    pub frame: &'a [u8],
    /// Where the chunk's bytes go: as many as [`frame::raw_len`] says.
    pub out: &'a mut [u8],
}

/// Encodes and decodes batches of chunks. Get it from [`Engine::global`].
#[derive(Debug)]
pub struct Engine {
    threads: usize,
    /// Raw bytes that one more thread must have to do.
    per_thread: usize,
    /// Batches of fewer raw bytes stay on the CPU; `None`: all of them.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    device_from: Option<DeviceFrom>,
}

/// Raw bytes of a batch from which a GPU pays.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
struct DeviceFrom {
    encode: usize,
    decode: usize,
}

/// As measured on an H200 beside eight threads of its host (tests/gpu/record.toml); `H5Z_GPU_MIN_BYTES` replaces both.
/// Encoding, the GPU is ahead from half a megabyte. Decoding, it is ahead with ndzip and behind with szx, where the way
/// to the device and back is all that takes time; through h5py both are alike from 4 MiB on, and cores stay free.
const DEVICE_FROM: DeviceFrom = DeviceFrom { encode: 1 << 20, decode: 4 << 20 };

/// Chunks that the GPU encoded and decoded in this process.
static ON_DEVICE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Raw bytes for which a thread is worth its start, some 50 µs: a tenth of what coding so many takes, and a chunk of
/// this size or less is coded by the thread that brings it.
const PER_THREAD: usize = 256 << 10;

impl Engine {
    /// The process's engine.
    pub fn global() -> &'static Engine {
        static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
        ENGINE.get_or_init(|| {
            let asked = std::env::var("H5Z_GPU_MIN_BYTES").ok().and_then(|v| v.trim().parse().ok());
            Engine {
                threads: parallel::threads(),
                per_thread: PER_THREAD,
                device_from: Some(asked.map_or(DEVICE_FROM, |n| DeviceFrom { encode: n, decode: n })),
            }
        })
    }

    /// An engine that uses `threads` CPU threads and no GPU. Bytes do not depend on it.
    pub fn with_threads(threads: usize) -> Engine {
        Engine { threads: threads.max(1), per_thread: 1, device_from: None }
    }

    /// An engine that also uses the process's GPU, if there is one, for batches of at least `device_from` raw bytes.
    pub fn with_device(threads: usize, device_from: usize) -> Engine {
        Engine {
            threads: threads.max(1),
            per_thread: 1,
            device_from: Some(DeviceFrom { encode: device_from, decode: device_from }),
        }
    }

    /// Chunks that the GPU has encoded (0) or decoded (1) in this process so far.
    #[doc(hidden)]
    pub fn on_device(what: usize) -> u64 {
        ON_DEVICE[what].load(Ordering::Relaxed)
    }

    /// What [`Engine::encode_batch`] does first: encodes on the GPU what it can take; true for each job that is done.
    #[doc(hidden)]
    pub fn encode_on_device(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if self.device_from.is_some_and(|from| jobs.iter().map(|j| j.raw.len()).sum::<usize>() >= from.encode) {
            return counted(0, codec::device::encode(jobs, out, self.threads));
        }
        let _ = out;
        vec![false; jobs.len()]
    }

    /// What [`Engine::decode_batch`] does first: decodes on the GPU what it can take; true for each job that is done.
    #[doc(hidden)]
    pub fn decode_on_device(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if self.device_from.is_some_and(|from| jobs.iter().map(|j| j.out.len()).sum::<usize>() >= from.decode) {
            return counted(1, codec::device::decode(jobs, self.threads));
        }
        vec![false; jobs.len()]
    }

    /// Copies a frame to where a host wants it.
    ///
    /// # Panics
    /// When the lengths differ.
    #[doc(hidden)]
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        #[cfg(feature = "cuda")]
        codec::device::copy(from, to, self.threads);
        #[cfg(not(feature = "cuda"))]
        to.copy_from_slice(from);
    }

    /// Threads for `bytes` raw bytes.
    fn threads_for(&self, bytes: usize) -> usize {
        self.threads.min((bytes / self.per_thread).max(1))
    }

    /// CPU threads that a batch may use.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Encodes every job's chunk into the buffer of the same index, replacing what was in it.
    ///
    /// Never fails: what no codec can take or make smaller is stored, raw length plus 64 bytes at most.
    ///
    /// # Panics
    /// When `out` is shorter than `jobs`.
    pub fn encode_batch(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) {
        assert!(jobs.len() <= out.len(), "a buffer for every job");
        let done = self.encode_on_device(jobs, out);
        let slots: Vec<_> = jobs.iter().zip(out.iter_mut()).zip(done).filter(|s| !s.1).map(|s| s.0).collect();
        let threads = self.threads_for(slots.iter().map(|(job, _)| job.raw.len()).sum());
        let inner = threads.div_ceil(slots.len().max(1));
        parallel::map_mut(slots, threads, |_, (job, out)| encode_one(job, inner, out));
    }

    /// Encodes one chunk: a batch of one.
    pub fn encode(&self, params: &Params, raw: &[u8]) -> Vec<u8> {
        let mut out = [Vec::new()];
        self.encode_batch(&[EncodeJob { params, raw }], &mut out);
        let [out] = out;
        out
    }

    /// Decodes every job's frame; results in the order of the jobs. A damaged frame leaves the others alone.
    pub fn decode_batch(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<Result<()>> {
        let done = self.decode_on_device(jobs);
        let left = done.iter().filter(|d| !**d).count();
        let threads =
            self.threads_for(jobs.iter().zip(&done).filter(|(_, d)| !**d).map(|(job, _)| job.out.len()).sum());
        let inner = threads.div_ceil(left.max(1));
        let slots: Vec<_> = jobs.iter_mut().zip(done).collect();
        parallel::map_mut(
            slots,
            threads,
            |_, (job, done)| {
                if done { Ok(()) } else { decode_one(job.frame, inner, job.out) }
            },
        )
    }

    /// Decodes one frame into `out`: a batch of one.
    ///
    /// # Errors
    /// See [`Error`]; `out` may hold anything then.
    pub fn decode_into(&self, frame: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_batch(&mut [DecodeJob { frame, out }]).remove(0)
    }

    /// Decodes one frame whose chunk has at most `limit` bytes.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn decode(&self, frame: &[u8], limit: u64) -> Result<Vec<u8>> {
        let len = frame::raw_len(frame)?;
        if len > limit {
            return Err(Error::Length { section: "the chunk's raw length", needed: limit, got: len });
        }
        let mut out = vec![0; len as usize];
        self.decode_into(frame, &mut out)?;
        Ok(out)
    }
}

#[cfg(feature = "cuda")]
fn counted(what: usize, done: Vec<bool>) -> Vec<bool> {
    ON_DEVICE[what].fetch_add(done.iter().filter(|d| **d).count() as u64, Ordering::Relaxed);
    done
}

fn encode_one(job: &EncodeJob<'_>, threads: usize, out: &mut Vec<u8>) {
    // A codec that panics has a bug; the user's data is not the place to find out.
    let coded = catch_unwind(AssertUnwindSafe(|| {
        codec::encode(codec::choose(job.params, job.raw, threads), job.params, job.raw, threads, out)
    }));
    if coded.is_err() {
        log::warn("a codec failed while encoding; this chunk is stored raw. Please report it.");
    }
    if !matches!(coded, Ok(Some(()))) {
        stored::encode(job.raw, threads, out);
    }
}

fn decode_one(frame: &[u8], threads: usize, out: &mut [u8]) -> Result<()> {
    let frame = Frame::open(frame, threads)?;
    if frame.header.raw_len != out.len() as u64 {
        return Err(Error::Length {
            section: "the caller's buffer",
            needed: frame.header.raw_len,
            got: out.len() as u64,
        });
    }
    codec::decode(&frame, threads, out)
}
