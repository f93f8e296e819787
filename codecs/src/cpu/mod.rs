// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of chunks on CPU threads.
//!
//! ```text
//! encode_batch   settle.rs         order of axes, codec and bound of each chunk whose request leaves them open
//!                codec::encode     on threads; a GPU may have done some chunks before
//!                codec::store      chunks that their codec does not make smaller
//! decode_batch   codec::decode
//! ```

mod job;
mod settle;

use crate::bound::Used;
use crate::codec;
use crate::codec::chunk::Chunk;
use crate::codec::kept::Kept;
use crate::error::{Error, Result};
use crate::frame::{self, Frame};
use crate::params::{Extents, Params};
use crate::part::Part;
use crate::{memory, parallel};
pub use job::{DecodeJob, EncodeJob};
pub use settle::{Settled, restore_order};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Encodes and decodes batches of chunks on CPU threads.
///
/// The bytes do not depend on the number of threads. They do depend on the floating-point state, which must be the
/// default one: round to nearest, subnormals kept.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    threads: usize,
    /// Raw bytes that one more thread must have to do.
    per_thread: usize,
    /// Is told, in a sentence, why a chunk is stored as it is.
    warn: fn(&str),
}

impl Cpu {
    /// Up to `threads` threads, each for at least `per_thread` raw bytes of a batch. `warn` gets a sentence where a
    /// chunk is stored for want of memory.
    pub fn new(threads: usize, per_thread: usize, warn: fn(&str)) -> Cpu {
        Cpu { threads: threads.max(1), per_thread: per_thread.max(1), warn }
    }

    /// Up to `threads` threads, however little there is to do; nothing is said.
    pub fn with_threads(threads: usize) -> Cpu {
        Cpu::new(threads, 1, |_| ())
    }

    /// Threads that a batch may use.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What each job's request and order leave open, settled; as it is where there is no memory for that.
    #[doc(hidden)]
    pub fn settle(&self, jobs: &[EncodeJob<'_>]) -> Vec<Settled> {
        self.settle_others(jobs, &[])
    }

    /// The same where it is known of some jobs how they are coded without loss, in their own order.
    #[doc(hidden)]
    pub fn settle_others(&self, jobs: &[EncodeJob<'_>], known: &[Option<Kept>]) -> Vec<Settled> {
        let threads = self.threads_for(jobs.iter().map(|job| job.raw.len()).sum());
        let inner = threads.div_ceil(jobs.len().max(1));
        parallel::map(jobs.len(), threads, |i| {
            if let Some(kept) = known.get(i).copied().flatten() {
                return Settled { kept: Some(kept), ..Settled::unsettled(&jobs[i]) };
            }
            let settle = || with_fewer(inner, |threads| Settled::new(&jobs[i], threads));
            let settled = catch_unwind(AssertUnwindSafe(settle)).ok().and_then(Result::ok);
            settled.unwrap_or_else(|| Settled::unsettled(&jobs[i]))
        })
    }

    /// Threads for `bytes` raw bytes; one where there is no memory for more. A C library may end the process where a
    /// thread that has begun finds none, and stacks of threads that have ended may keep what one thread would have
    /// needed.
    fn threads_for(&self, bytes: usize) -> usize {
        /// A stack, and what a thread works with.
        const THREAD_MEMORY: usize = 3 << 20;
        /// Copies of a chunk that the hungriest codec holds at a time.
        const COPIES: usize = 5;
        let threads = self.threads.min((bytes / self.per_thread).max(1));
        let needed = bytes.saturating_mul(COPIES).saturating_add(threads * THREAD_MEMORY);
        // Asked for and given back: it is not touched, which takes a few microseconds.
        if threads > 1 && std::hint::black_box(memory::with_capacity::<u8>(needed)).is_err() { 1 } else { threads }
    }

    /// Encodes every job's chunk into the buffer of the same index, replacing what was in it.
    ///
    /// Never fails: what no codec can take or make smaller is stored, raw length plus 64 bytes at most. So is a chunk
    /// for whose encoding there is too little memory; where there is none for that many bytes either, its buffer is
    /// left empty, which no frame is.
    ///
    /// # Panics
    /// When `out` is shorter than `jobs`.
    pub fn encode_batch(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) {
        assert!(jobs.len() <= out.len(), "a buffer for every job");
        self.encode_settled(&self.settle(jobs), jobs, vec![false; jobs.len()], out);
    }

    /// The same of jobs that are settled, but for those that another backend has `done`.
    #[doc(hidden)]
    pub fn encode_settled(&self, settled: &[Settled], jobs: &[EncodeJob<'_>], done: Vec<bool>, out: &mut [Vec<u8>]) {
        let slots = jobs.iter().zip(settled).zip(out.iter_mut()).zip(done);
        let slots: Vec<_> = slots.filter(|(((_, s), out), done)| !(*done && s.is_held(out))).collect();
        let threads = self.threads_for(slots.iter().map(|(((job, _), _), _)| job.raw.len()).sum());
        let inner = threads.div_ceil(slots.len().max(1));
        parallel::map_mut(slots, threads, |_, (((job, settled), out), done)| {
            if !done && !settled.copy_frame(out) {
                self.encode_one(&settled.job(job), settled.used, settled.kept, inner, out);
            }
            if !settled.is_held(out) {
                let params = settled.in_its_own_order(job);
                self.encode_one(&EncodeJob { params: &params, raw: job.raw }, None, settled.kept, inner, out);
            }
        });
    }

    fn encode_one(
        &self,
        job: &EncodeJob<'_>,
        used: Option<Used>,
        kept: Option<Kept>,
        threads: usize,
        out: &mut Vec<u8>,
    ) {
        // A codec that panics has a bug; the user's data is not the place to find out.
        let coded = catch_unwind(AssertUnwindSafe(|| {
            with_fewer(threads, |threads| {
                let chunk = Chunk { params: job.params, raw: job.raw, threads, used, kept };
                codec::encode(&chunk, out)
            })
        }));
        match coded {
            Ok(Ok(true)) => return,
            Ok(Ok(false)) => {}
            Ok(Err(_)) => (self.warn)("there is hardly any memory left: chunks are stored as they are"),
            Err(_) => (self.warn)("a codec failed while encoding; this chunk is stored raw. Please report it."),
        }
        if codec::store(job.params, job.raw, threads, out).is_err() {
            *out = Vec::new();
        }
    }

    /// Encodes one chunk: a batch of one, empty where [`Cpu::encode_batch`] leaves it so.
    pub fn encode(&self, params: &Params, raw: &[u8]) -> Vec<u8> {
        let mut out = [Vec::new()];
        self.encode_batch(&[EncodeJob { params, raw }], &mut out);
        let [out] = out;
        out
    }

    /// Decodes every job's frame; results in the order of the jobs. A damaged frame leaves the others alone.
    pub fn decode_batch(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<Result<()>> {
        self.decode_others(jobs, vec![false; jobs.len()])
    }

    /// The same, but for jobs that another backend has `done`.
    #[doc(hidden)]
    pub fn decode_others(&self, jobs: &mut [DecodeJob<'_>], done: Vec<bool>) -> Vec<Result<()>> {
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
        let mut out = frame::room_for(frame, limit)?;
        self.decode_into(frame, &mut out)?;
        Ok(out)
    }

    /// Decodes of an open frame, of a chunk of extents `dims`, at least what is `wanted`: a range for each axis. Other
    /// bytes of `out`, which has the chunk's length, hold anything then. Codecs decode the tiles that are touched.
    ///
    /// # Errors
    /// See [`Error`]; `out` may hold anything then.
    #[doc(hidden)]
    pub fn decode_part(&self, mut frame: Frame<'_>, dims: &[u64], wanted: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        /// Bytes that a thread decodes while another one is started. For n bytes k threads take n / k and k times this
        /// together, which is least where their number is the root of n over this.
        const MEANWHILE: u64 = 32 << 10;
        // Bytes of unknown shape have no parts.
        if Extents::new(dims) == Some(frame.header.extents) {
            frame.wanted = part(dims, wanted);
        }
        let (all, values) = (dims.iter().product::<u64>(), wanted.iter().map(|w| w.end - w.start).product::<u64>());
        let bytes = out.len() as u64 / all.max(1) * values;
        let threads = self.threads.min((bytes / MEANWHILE).isqrt() as usize).max(1);
        with_fewer(threads, |threads| codec::decode(&frame, threads, out))
    }
}

/// Threads need memory of their own each: where there is too little for several, one may do.
fn with_fewer<R>(threads: usize, mut run: impl FnMut(usize) -> Result<R>) -> Result<R> {
    match run(threads) {
        Err(Error::NoMemory { .. }) if threads > 1 => run(1),
        done => done,
    }
}

fn decode_one(frame: &[u8], threads: usize, out: &mut [u8]) -> Result<()> {
    with_fewer(threads, |threads| {
        let frame = Frame::open(frame, threads)?;
        match frame.header.raw_len {
            n if n == out.len() as u64 => codec::decode(&frame, threads, out),
            n => Err(Error::params("the caller's buffer", format!("{} bytes; the chunk has {n}", out.len()))),
        }
    })
}

/// What is wanted of a chunk, in its extents without those of one value. `None`: all.
fn part(dims: &[u64], wanted: &[Range<u64>]) -> Option<Part> {
    if dims.len() != wanted.len() {
        return None;
    }
    let axes = dims.iter().zip(wanted).filter(|(d, _)| **d != 1);
    let (dims, wanted): (Vec<u32>, Vec<Range<u32>>) = axes
        .map(|(&d, w)| Some((u32::try_from(d).ok()?, u32::try_from(w.start).ok()?..u32::try_from(w.end).ok()?)))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .unzip();
    Part::new(&dims, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_does_where_several_have_too_little_memory() {
        let run = |threads, enough: usize| {
            let mut tried = Vec::new();
            let done = with_fewer(threads, |n| {
                tried.push(n);
                if n <= enough { Ok(n) } else { Err(Error::NoMemory { bytes: 7 }) }
            });
            (done, tried)
        };
        assert_eq!(run(4, 4), (Ok(4), vec![4]));
        assert_eq!(run(4, 3), (Ok(1), vec![4, 1]));
        assert_eq!(run(4, 0), (Err(Error::NoMemory { bytes: 7 }), vec![4, 1]));
        assert_eq!(run(1, 0), (Err(Error::NoMemory { bytes: 7 }), vec![1]));
    }
}
