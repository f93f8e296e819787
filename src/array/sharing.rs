// SPDX-License-Identifier: MIT OR Apache-2.0
//! How work on an array's chunks is shared out between threads and the GPU.

use crate::engine::Engine;
use crate::host::threads;
use codecs::params::{Codec, Params};

/// Raw bytes of a batch for the GPU: enough to fill it, so little that batches overlap.
const GPU_BATCH: usize = 32 << 20;
/// Batches on their way to a GPU at a time: one is gathered, one uploaded and encoded, one downloaded.
const GPU_BATCHES: usize = 3;
/// Raw bytes that a CPU thread takes at a time at least: fewer would pay more for taking turns than for coding.
const CPU_BATCH: usize = 256 << 10;

/// CPU threads from which they decode into host memory faster than GPUs, whose values have to come over the bus and be
/// placed. Measured with 16 threads beside an H200, GB/s from file to array, by the CPU and by the GPU's batches: szx
/// 27.6 and 10.8, lorenzo 24.5 and 12.3. With 32 threads beside two H200, by the CPU and by both GPUs: szx 29.1 and
/// 10.0, lorenzo 22.6 and 9.8.
const CPU_DECODES: usize = 8;

/// CPU threads from which they encode by `planes` under a bound as fast as GPUs to which values have to come over the
/// bus. Measured with 16 threads beside an H100, GB/s from array to file, by the CPU and by the GPU's batches: chunks
/// of 4 MiB 12.8 and 13.3, of 256 KiB 14.4 and 6.5; lorenzo 3.7 and 15. With 32 threads
/// beside two H200, planes by the CPU and by both GPUs: 28.1 and 19.2.
const CPU_ENCODES_PLANES: usize = 16;

/// How work on some chunks is shared out.
pub(super) struct Sharing {
    /// Chunks that are taken at a time.
    pub(super) batch: usize,
    /// Threads that take batches.
    pub(super) lanes: usize,
    /// What each of them codes with.
    pub(super) engine: Coder,
}

pub(super) enum Coder {
    /// An engine for each GPU that takes part. They take batches in turn.
    Gpu(Vec<&'static Engine>),
    /// CPU threads of the lane's own.
    Cpu(Engine),
}

impl Coder {
    /// What codes batch `b`.
    pub(super) fn engine(&self, b: usize) -> &Engine {
        match self {
            Coder::Gpu(engines) => engines[b % engines.len()],
            Coder::Cpu(engine) => engine,
        }
    }
}

impl Sharing {
    /// For `chunks` chunks of `bytes` raw bytes each to encode as asked for, on `threads` CPU threads (0: as many as
    /// the process may use) and the process's GPU.
    ///
    /// One GPU, also where every one was offered: values are read, gathered, staged and read by the bus, so the host's
    /// memory is the limit and not a GPU. Measured with 32 threads beside two H200, 1.07 and 4.29 GB, by two GPUs as a
    /// part of the speed by one: lorenzo 0.74 and 0.87, szx 0.87, lossless 0.91; lorenzo with 4 threads 0.89.
    pub(super) fn to_encode(params: &Params, chunks: usize, bytes: usize, threads: usize) -> Sharing {
        let planes = params.lossy(bytes) && params.request.codec == Codec::Planes;
        match planes && cores(threads) >= CPU_ENCODES_PLANES {
            true => Sharing::on_cpu(chunks, bytes, threads),
            false => Sharing::on_gpus(chunks, bytes, threads, false),
        }
    }

    /// The same to decode, by every GPU where that was asked.
    pub(super) fn to_decode(chunks: usize, bytes: usize, threads: usize, every_gpu: bool) -> Sharing {
        match cores(threads) >= CPU_DECODES {
            true => Sharing::on_cpu(chunks, bytes, threads),
            false => Sharing::on_gpus(chunks, bytes, threads, every_gpu),
        }
    }

    /// On the process's GPU, or on every one that has a batch to do, if the whole is worth it; else on the CPU. No GPU
    /// is opened before that is known.
    fn on_gpus(chunks: usize, bytes: usize, threads: usize, every_gpu: bool) -> Sharing {
        let own = Engine::global();
        if !own.uses_gpu(chunks.saturating_mul(bytes), cores(threads)) {
            return Sharing::on_cpu(chunks, bytes, threads);
        }
        let batch = (GPU_BATCH / bytes.max(1)).clamp(1, chunks.max(1));
        let batches = chunks.div_ceil(batch);
        let mut gpus = if every_gpu { Engine::on_gpus(batches) } else { Vec::new() };
        if gpus.is_empty() {
            gpus.push(own);
        }
        Sharing { batch, lanes: (GPU_BATCHES * gpus.len()).min(batches), engine: Coder::Gpu(gpus) }
    }

    /// The same on CPU threads alone.
    pub(super) fn on_cpu(chunks: usize, bytes: usize, threads: usize) -> Sharing {
        let threads = cores(threads);
        let batch = (CPU_BATCH / bytes.max(1)).clamp(1, chunks.max(1));
        let lanes = threads.min(chunks.div_ceil(batch)).max(1);
        Sharing { batch, lanes, engine: Coder::Cpu(Engine::with_threads(threads / lanes)) }
    }
}

/// CPU threads: `threads`, or if 0 as many as the process may use.
fn cores(threads: usize) -> usize {
    if threads > 0 { threads } else { threads::cores() }
}
