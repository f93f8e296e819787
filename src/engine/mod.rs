// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: one per process, made on first use, never torn down. Takes batches of chunks.
//!
//! ```text
//! encode_batch   Cpu::settle          order of axes, codec and bound of each chunk whose request leaves them open
//!                gpu/encode.rs        groups of one codec and element size, where they are worth the GPU
//!                Cpu::encode_settled  on CPU threads: what the GPU did not take, or failed at
//! decode_batch   gpu/decode.rs        frames in groups; a verdict for each
//!                Cpu::decode_others   on CPU threads: all others, and frames without a good verdict, to name the fault
//! ```

#[cfg(feature = "cuda")]
pub(crate) mod gpu;

use crate::device::{GpuCode, GpuDevice, GpuFrom};
use crate::host::{float_state, log, settings, threads};
use codecs::error::Result;
use codecs::frame::{self, Frame};
use codecs::params::Params;
use codecs::{Cpu, DecodeJob, EncodeJob, Settled, codec};
#[cfg(feature = "cuda")]
use codecs::{parallel, restore_order};
#[cfg(feature = "cuda")]
use gpu::{MinBytes, Share};
use std::ops::Range;
#[cfg(feature = "cuda")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Encodes and decodes batches of chunks. Get it from [`Engine::global`].
#[derive(Debug)]
pub struct Engine {
    cpu: Cpu,
    /// What goes to which GPU; `None`: the CPU does all.
    #[cfg(feature = "cuda")]
    gpu: Option<Share>,
}

/// Raw bytes for which a thread is worth its start, some 50 µs: a tenth of the time to code them, and a chunk of
/// this size or less is coded by the thread that brings it.
const PER_THREAD: usize = 256 << 10;

/// Raw bytes of an array that are worth the GPU.
#[cfg(feature = "cuda")]
const FOR_GPU: usize = 64 << 20;
/// Raw bytes of arrays, for each thread, with which the GPU is started: its start and end take half a second, in which
/// threads encode four times as many by `lorenzo`. So what is soon over does not wait for a GPU.
#[cfg(feature = "cuda")]
const FOR_START: usize = 24 << 20;

impl Engine {
    /// The process's engine, as `H5Z_GPU_THREADS`, `H5Z_GPU_DEVICE` and `H5Z_GPU_MIN_BYTES` say when it is first asked
    /// for.
    pub fn global() -> &'static Engine {
        static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
        ENGINE.get_or_init(|| {
            settings::faults().for_each(|text| log::warn(&text));
            Engine {
                cpu: Cpu::new(threads::threads(), PER_THREAD, log::warn),
                #[cfg(feature = "cuda")]
                gpu: Some(Share::of_process(
                    settings::get("H5Z_GPU_MIN_BYTES")
                        .and_then(|v| v.parse().ok())
                        .map_or(MinBytes::Measured, MinBytes::Fixed),
                )),
            }
        })
    }

    /// The process's engine once for each of at most `most` GPUs that it can use, its own first, each with that GPU:
    /// for work that is shared out. No other GPU is opened.
    pub(crate) fn on_gpus(most: usize) -> Vec<&'static Engine> {
        #[cfg(feature = "cuda")]
        {
            /// Engines of all GPUs, with their numbers.
            static ENGINES: std::sync::OnceLock<Vec<(i32, Engine)>> = std::sync::OnceLock::new();
            let engines = ENGINES.get_or_init(|| {
                let all = Engine::global();
                let on = |ordinal| {
                    (ordinal, Engine { gpu: all.gpu.map(|share| Share { ordinal: Some(ordinal), ..share }), ..*all })
                };
                crate::cuda::visible().into_iter().map(on).collect()
            });
            let usable = engines.iter().filter(|(ordinal, _)| crate::cuda::device_of(*ordinal).is_ok());
            usable.take(most).map(|(_, engine)| engine).collect()
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = most;
            Vec::new()
        }
    }

    /// An engine that uses `threads` CPU threads and no GPU. Bytes do not depend on it.
    pub fn with_threads(threads: usize) -> Engine {
        Engine {
            cpu: Cpu::new(threads, 1, log::warn),
            #[cfg(feature = "cuda")]
            gpu: None,
        }
    }

    /// An engine that also uses the process's GPU, if there is one, for at least `min_bytes` raw bytes of one codec in
    /// a batch.
    pub fn with_device(threads: usize, min_bytes: usize) -> Engine {
        let _ = min_bytes;
        Engine {
            #[cfg(feature = "cuda")]
            gpu: Some(Share::of_process(MinBytes::Fixed(min_bytes))),
            ..Engine::with_threads(threads)
        }
    }

    /// The name of the GPU that this process uses, or a sentence that says why it uses none. Starts the GPU.
    ///
    /// # Errors
    /// The sentence.
    pub fn gpu() -> Result<&'static str, String> {
        #[cfg(feature = "cuda")]
        return crate::cuda::status();
        #[cfg(not(feature = "cuda"))]
        Err("this build has no GPU code (feature `cuda`)".into())
    }

    /// The kernels of this build; `None` where it has none.
    pub fn gpu_code() -> Option<GpuCode> {
        #[cfg(feature = "cuda")]
        return crate::cuda::code();
        #[cfg(not(feature = "cuda"))]
        None
    }

    /// The GPU that this process uses, and what it takes. Starts the GPU, as [`Engine::gpu`] does.
    pub fn gpu_device() -> Option<GpuDevice> {
        #[cfg(feature = "cuda")]
        return crate::cuda::in_words();
        #[cfg(not(feature = "cuda"))]
        None
    }

    /// Chunks that the GPU has encoded, and decoded, in this process so far.
    pub fn chunks_on_gpu() -> (u64, u64) {
        #[cfg(feature = "cuda")]
        return gpu::chunks();
        #[cfg(not(feature = "cuda"))]
        (0, 0)
    }

    /// Gives back what memory of GPUs, and page-locked memory, is kept for the next work and not in use now. The next
    /// work takes it again. Answers the bytes of the GPUs' memory; 0 in a forked child.
    pub fn release_memory() -> u64 {
        #[cfg(feature = "cuda")]
        return crate::cuda::release() as u64;
        #[cfg(not(feature = "cuda"))]
        0
    }

    /// What of each codec a GPU takes. Empty in a build without GPU code.
    pub fn gpu_from() -> Vec<GpuFrom> {
        #[cfg(feature = "cuda")]
        return gpu::plans::PLANS
            .iter()
            .map(|(id, gpu)| GpuFrom { codec: id.to_string(), encode: gpu.encode_from, decode: gpu.decode_from })
            .collect();
        #[cfg(not(feature = "cuda"))]
        Vec::new()
    }

    /// What [`Engine::encode_batch`] does first: encodes on the GPU what it can take; true for each job that is done.
    #[cfg(feature = "testing")]
    pub fn encode_on_device(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) -> Vec<bool> {
        float_state::with_default(|| {
            let settled = self.cpu.settle(jobs);
            let done = self.try_to_encode_settled(&settled, jobs, out);
            done.iter().zip(&settled).zip(out).map(|((done, settled), out)| *done && settled.is_held(out)).collect()
        })
    }

    /// As [`Engine::encode_on_device`].
    fn try_to_encode_settled(&self, settled: &[Settled], jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if let Some(share) = self.gpu {
            let to_encode: Vec<_> = settled.iter().zip(jobs).map(|(settled, job)| settled.job(job)).collect();
            return gpu::encode(&to_encode, out, share, self.threads());
        }
        let _ = (settled, out);
        vec![false; jobs.len()]
    }

    /// What [`Engine::decode_batch`] does first: decodes on the GPU what it can take; true for each job that is done.
    #[cfg(feature = "testing")]
    pub fn decode_on_device(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<bool> {
        float_state::with_default(|| self.try_to_decode(jobs))
    }

    fn try_to_decode(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<bool> {
        #[cfg(feature = "cuda")]
        if let Some(share) = self.gpu {
            let done = gpu::decode(jobs, share, self.threads());
            let inner = self.threads().div_ceil(jobs.len().max(1));
            let jobs = jobs.iter_mut().zip(done).collect();
            let restore = |_, (job, done)| done && restore_order(job, inner).is_ok();
            return parallel::map_mut(jobs, self.threads(), restore);
        }
        vec![false; jobs.len()]
    }

    /// Copies a frame to where a host wants it, on several threads where the GPU is in use and they are there anyway.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        #[cfg(feature = "cuda")]
        crate::cuda::copy(from, to, self.threads());
        #[cfg(not(feature = "cuda"))]
        to.copy_from_slice(from);
    }

    /// Whether an array of `bytes` raw bytes may go to a GPU, which is started if that pays. Otherwise `threads`
    /// threads take it.
    pub(crate) fn uses_gpu(&self, bytes: usize, threads: usize) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(share) = self.gpu {
            /// Raw bytes of arrays that were worth the GPU and came before it was started.
            static BEFORE: AtomicUsize = AtomicUsize::new(0);
            let pays = || {
                let all = BEFORE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
                crate::cuda::is_started() || all >= threads.saturating_mul(FOR_START)
            };
            let may =
                if let MinBytes::Fixed(least) = share.least { bytes >= least } else { bytes >= FOR_GPU && pays() };
            return may && crate::cuda::status().is_ok();
        }
        let _ = (bytes, threads);
        false
    }

    /// CPU threads that a batch may use.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
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
        float_state::with_default(|| self.encode_all(jobs, out));
    }

    fn encode_all(&self, jobs: &[EncodeJob<'_>], out: &mut [Vec<u8>]) {
        assert!(jobs.len() <= out.len(), "a buffer for every job");
        let settled = self.cpu.settle(jobs);
        let done = self.try_to_encode_settled(&settled, jobs, out);
        self.cpu.encode_settled(&settled, jobs, done, out);
    }

    /// Encodes one chunk: a batch of one, empty where [`Engine::encode_batch`] leaves it so.
    pub fn encode(&self, params: &Params, raw: &[u8]) -> Vec<u8> {
        let mut out = [Vec::new()];
        self.encode_batch(&[EncodeJob { params, raw }], &mut out);
        let [out] = out;
        out
    }

    /// Writes the frame that stores a chunk into `out`, allocating next to nothing: for a caller whose buffer
    /// [`Engine::encode_batch`] has left empty.
    ///
    /// # Panics
    /// When `out` has not [`frame::STORED_HEADER`] bytes more than `raw`.
    pub fn store(params: &Params, raw: &[u8], out: &mut [u8]) {
        float_state::with_default(|| codec::store_into(params, raw, out));
    }

    /// Decodes every job's frame; results in the order of the jobs. A damaged frame leaves the others alone.
    pub fn decode_batch(&self, jobs: &mut [DecodeJob<'_>]) -> Vec<Result<()>> {
        float_state::with_default(|| {
            let done = self.try_to_decode(jobs);
            self.cpu.decode_others(jobs, done)
        })
    }

    /// Decodes one frame into `out`: a batch of one.
    ///
    /// # Errors
    /// See [`crate::Error`]; `out` may hold anything then.
    pub fn decode_into(&self, frame: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_batch(&mut [DecodeJob { frame, out }]).remove(0)
    }

    /// Decodes of an open frame, of a chunk of extents `dims`, at least what is `wanted`: a range for each axis. Other
    /// bytes of `out`, which has the chunk's length, hold anything then. The CPU does it: codecs decode the tiles that
    /// are touched.
    ///
    /// # Errors
    /// See [`crate::Error`]; `out` may hold anything then.
    pub(crate) fn decode_part(
        &self,
        frame: Frame<'_>,
        dims: &[u64],
        wanted: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<()> {
        float_state::with_default(|| self.cpu.decode_part(frame, dims, wanted, out))
    }

    /// Decodes one frame whose chunk has at most `limit` bytes.
    ///
    /// # Errors
    /// `Params` when the chunk is longer, `NoMemory` when there is none for it; else see [`crate::Error`].
    pub fn decode(&self, frame: &[u8], limit: u64) -> Result<Vec<u8>> {
        let mut out = frame::room_for(frame, limit)?;
        self.decode_into(frame, &mut out)?;
        Ok(out)
    }
}
