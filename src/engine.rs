// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: one per process, made on first use, never torn down. Takes batches of chunks.

use crate::codec::{self, Choice, stored};
use crate::error::{Error, Result};
use crate::float_state;
use crate::frame::{self, Frame};
use crate::log;
use crate::memory;
use crate::parallel;
use crate::params::Params;
use crate::settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// One chunk to encode.
#[derive(Debug, Clone, Copy)]
pub struct EncodeJob<'a> {
    /// What was asked and what the chunk is.
    pub params: &'a Params,
    /// The chunk's bytes: as many as type and extents say, or they are kept exactly, whatever bound is asked for.
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
    /// Fewer raw bytes stay on the CPU; `None`: all of them.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    device_from: Option<DeviceFrom>,
}

/// Raw bytes from which a GPU pays.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
struct DeviceFrom {
    encode: Limits,
    decode: Limits,
}

/// Raw bytes that a batch must have of one codec, for each of them.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) struct Limits {
    szx: usize,
    lorenzo: usize,
    ndzip: usize,
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
impl Limits {
    const fn all(n: usize) -> Self {
        Limits { szx: n, lorenzo: n, ndzip: n }
    }

    /// For the codec of this number; the others have no kernels.
    pub(crate) fn of(self, codec: u8) -> usize {
        match codec {
            codec::SZX => self.szx,
            codec::LORENZO => self.lorenzo,
            codec::NDZIP => self.ndzip,
            _ => usize::MAX,
        }
    }

    /// The lowest: fewer raw bytes need no look at their codecs.
    fn lowest(self) -> usize {
        self.szx.min(self.lorenzo).min(self.ndzip)
    }
}

/// From host memory to host memory, one chunk a call, on an H200 and on eight threads of its host (`lane` in
/// tests/gpu/record.toml); GB/s of raw data, GPU / CPU, at half the limit and at the limit:
///
/// ```text
///            encode                       decode
/// szx        6.9 / 5.2    10.4 / 4.6      18.7 / 28.1    21.0 / 37.6
/// lorenzo          -       2.2 / 0.7       3.7 / 1.7      6.2 / 2.0
/// ndzip      6.4 / 3.7     6.5 / 2.9       6.2 / 2.5      7.0 / 3.8
/// ```
///
/// Some smaller chunks would be faster on the GPU too, but gain less than its start costs. Decoding szx, the way there and
/// back is all that takes time, and from 4 MiB on eight threads are ahead; through h5py little of that is left in large
/// chunks (3.0 and 3.2 GB/s at 16 MiB), and cores stay free. `H5Z_GPU_MIN_BYTES` replaces all of these limits.
const DEVICE_FROM: DeviceFrom = DeviceFrom {
    encode: Limits { szx: 1 << 20, lorenzo: 256 << 10, ndzip: 1 << 20 },
    decode: Limits { szx: 8 << 20, lorenzo: 512 << 10, ndzip: 1 << 20 },
};

/// Chunks that the GPU encoded and decoded in this process.
static ON_DEVICE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Raw bytes for which a thread is worth its start, some 50 µs: a tenth of what coding so many takes, and a chunk of
/// this size or less is coded by the thread that brings it.
const PER_THREAD: usize = 256 << 10;

impl Engine {
    /// The process's engine, as `H5Z_GPU_THREADS`, `H5Z_GPU_DEVICE` and `H5Z_GPU_MIN_BYTES` say when it is first asked for.
    pub fn global() -> &'static Engine {
        static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
        ENGINE.get_or_init(|| {
            settings::warn();
            let asked = settings::get("H5Z_GPU_MIN_BYTES").and_then(|v| v.parse().ok());
            Engine {
                threads: parallel::threads(),
                per_thread: PER_THREAD,
                device_from: Some(
                    asked.map_or(DEVICE_FROM, |n| DeviceFrom { encode: Limits::all(n), decode: Limits::all(n) }),
                ),
            }
        })
    }

    /// An engine that uses `threads` CPU threads and no GPU. Bytes do not depend on it.
    pub fn with_threads(threads: usize) -> Engine {
        Engine { threads: threads.max(1), per_thread: 1, device_from: None }
    }

    /// An engine that also uses the process's GPU, if there is one, for at least `device_from` raw bytes of one codec in a
    /// batch.
    pub fn with_device(threads: usize, device_from: usize) -> Engine {
        let limits = Limits::all(device_from);
        Engine {
            threads: threads.max(1),
            per_thread: 1,
            device_from: Some(DeviceFrom { encode: limits, decode: limits }),
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
        float_state::with_default(|| self.try_device(jobs, out, &mut vec![None; jobs.len()]))
    }

    /// As [`Engine::encode_on_device`]; leaves the codecs that it had to choose.
    fn try_device(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>], choices: &mut [Option<Choice>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if let Some(DeviceFrom { encode: from, .. }) = self.device_from
            && jobs.iter().map(|j| j.raw.len()).sum::<usize>() >= from.lowest()
        {
            return counted(0, jobs.len(), || codec::device::encode(jobs, out, choices, from, self.threads));
        }
        let _ = (out, choices);
        vec![false; jobs.len()]
    }

    /// What [`Engine::decode_batch`] does first: decodes on the GPU what it can take; true for each job that is done.
    #[doc(hidden)]
    pub fn decode_on_device(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<bool> {
        float_state::with_default(|| self.try_to_decode(jobs))
    }

    fn try_to_decode(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if let Some(DeviceFrom { decode: from, .. }) = self.device_from
            && jobs.iter().map(|j| j.out.len()).sum::<usize>() >= from.lowest()
        {
            return counted(1, jobs.len(), || codec::device::decode(jobs, from, self.threads));
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

    /// Threads for `bytes` raw bytes; one where there is no memory for more. A C library may end the process where a thread
    /// that has begun finds none, and stacks of threads that have ended may keep what one thread would have needed.
    fn threads_for(&self, bytes: usize) -> usize {
        /// A stack, and what a thread works with.
        const EACH: usize = 3 << 20;
        /// Copies of a chunk that the hungriest codec holds at a time.
        const COPIES: usize = 4;
        let threads = self.threads.min((bytes / self.per_thread).max(1));
        let needed = bytes.saturating_mul(COPIES).saturating_add(threads * EACH);
        // Asked for and given back: it is not touched, which takes a few microseconds.
        if threads > 1 && std::hint::black_box(memory::with_capacity::<u8>(needed)).is_err() { 1 } else { threads }
    }

    /// CPU threads that a batch may use.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Encodes every job's chunk into the buffer of the same index, replacing what was in it.
    ///
    /// Never fails: what no codec can take or make smaller is stored, raw length plus 64 bytes at most. So is a chunk for
    /// whose encoding there is too little memory; where there is none for that many bytes either, its buffer is left
    /// empty, which no frame is.
    ///
    /// # Panics
    /// When `out` is shorter than `jobs`.
    pub fn encode_batch(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) {
        float_state::with_default(|| self.encode_all(jobs, out));
    }

    fn encode_all(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) {
        assert!(jobs.len() <= out.len(), "a buffer for every job");
        let mut choices = vec![None; jobs.len()];
        let done = self.try_device(jobs, out, &mut choices);
        let slots = jobs.iter().zip(choices).zip(out.iter_mut()).zip(done);
        let slots: Vec<_> = slots.filter(|(_, done)| !done).map(|(slot, _)| slot).collect();
        let threads = self.threads_for(slots.iter().map(|((job, _), _)| job.raw.len()).sum());
        let inner = threads.div_ceil(slots.len().max(1));
        parallel::map_mut(slots, threads, |_, ((job, choice), out)| encode_one(job, choice, inner, out));
    }

    /// Encodes one chunk: a batch of one, empty where [`Engine::encode_batch`] leaves it so.
    pub fn encode(&self, params: &Params, raw: &[u8]) -> Vec<u8> {
        let mut out = [Vec::new()];
        self.encode_batch(&[EncodeJob { params, raw }], &mut out);
        let [out] = out;
        out
    }

    /// Decodes every job's frame; results in the order of the jobs. A damaged frame leaves the others alone.
    pub fn decode_batch(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<Result<()>> {
        float_state::with_default(|| self.decode_all(jobs))
    }

    fn decode_all(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<Result<()>> {
        let done = self.try_to_decode(jobs);
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
    /// `Params` when the chunk is longer, `NoMemory` when there is none for it; else see [`Error`].
    pub fn decode(&self, frame: &[u8], limit: u64) -> Result<Vec<u8>> {
        let len = frame::raw_len(frame)?;
        if len > limit {
            return Err(Error::params("limit", format!("{limit} bytes; the chunk has {len}")));
        }
        let mut out = memory::zeros(usize::try_from(len).unwrap_or(usize::MAX))?;
        self.decode_into(frame, &mut out)?;
        Ok(out)
    }
}

#[cfg(feature = "cuda")]
fn counted(what: usize, jobs: usize, run: impl FnOnce() -> Vec<bool>) -> Vec<bool> {
    let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        log::warn("a GPU's work panicked before it began; the CPU does it. Please report it.");
        vec![false; jobs]
    });
    ON_DEVICE[what].fetch_add(done.iter().filter(|d| **d).count() as u64, Ordering::Relaxed);
    done
}

/// Threads need memory of their own each: where there is too little for several, one may do.
fn with_fewer<R>(threads: usize, mut run: impl FnMut(usize) -> Result<R>) -> Result<R> {
    match run(threads) {
        Err(Error::NoMemory { .. }) if threads > 1 => run(1),
        done => done,
    }
}

fn encode_one(job: &EncodeJob<'_>, choice: Option<Choice>, threads: usize, out: &mut Vec<u8>) {
    // A codec that panics has a bug; the user's data is not the place to find out.
    let coded = catch_unwind(AssertUnwindSafe(|| {
        with_fewer(threads, |threads| {
            let choice = choice.map_or_else(|| codec::choose(job.params, job.raw, threads), Ok)?;
            codec::encode(choice, job.params, job.raw, threads, out)
        })
    }));
    match coded {
        Ok(Ok(true)) => return,
        Ok(Ok(false)) => {}
        Ok(Err(_)) => log::warn("there is hardly any memory left: chunks are stored as they are"),
        Err(_) => log::warn("a codec failed while encoding; this chunk is stored raw. Please report it."),
    }
    if stored::encode(job.raw, threads, out).is_err() {
        *out = Vec::new();
    }
}

fn decode_one(frame: &[u8], threads: usize, out: &mut [u8]) -> Result<()> {
    with_fewer(threads, |threads| decode_with(frame, threads, out))
}

fn decode_with(frame: &[u8], threads: usize, out: &mut [u8]) -> Result<()> {
    let frame = Frame::open(frame, threads)?;
    if frame.header.raw_len != out.len() as u64 {
        return Err(Error::params(
            "the caller's buffer",
            format!("{} bytes; the chunk has {}", out.len(), frame.header.raw_len),
        ));
    }
    codec::decode(&frame, threads, out)
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_is_left_to_the_cpu() {
        assert_eq!(counted(0, 3, || panic!("a bug")), [false; 3]);
        assert_eq!(counted(0, 2, || vec![true, false]), [true, false]);
    }
}
