// SPDX-License-Identifier: MIT OR Apache-2.0
//! How work on an array's chunks is shared out between threads and the GPU.

use crate::engine::Engine;
use crate::params::{Codec, Params};

/// Raw bytes of a batch for the GPU: enough to fill it, so little that batches overlap.
const GPU_BATCH: usize = 32 << 20;
/// Batches on their way to a GPU at a time: one is gathered, one uploaded and encoded, one downloaded.
const GPU_BATCHES: usize = 3;
/// Raw bytes that a CPU thread takes at a time at least: fewer would pay more for taking turns than for coding.
const CPU_BATCH: usize = 256 << 10;

/// CPU threads from which they decode into host memory faster than a GPU, whose values have to come over the bus and be
/// placed. Measured with 16 threads beside an H200, GB/s from file to array, by the CPU and by the GPU's batches: szx
/// 27.6 and 10.8, lorenzo 24.5 and 12.3.
const CPU_DECODES: usize = 8;

/// CPU threads from which they encode by `planes` under a bound as fast as a GPU to which values have to come over the
/// bus. Measured with 16 threads beside an H100, GB/s from array to file, by the CPU and by the GPU's batches: chunks
/// of 4 MiB 12.8 and 13.3, of 256 KiB 14.4 and 6.5; lorenzo 3.7 and 15.
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
    Gpu(&'static [Engine]),
    /// CPU threads of the lane's own.
    Cpu(Engine),
}

impl Coder {
    /// What codes batch `b`.
    pub(super) fn engine(&self, b: usize) -> &Engine {
        match self {
            Coder::Gpu(engines) => &engines[b % engines.len()],
            Coder::Cpu(engine) => engine,
        }
    }
}

impl Sharing {
    /// For `chunks` chunks of `bytes` raw bytes each to encode as asked for, on `threads` CPU threads (0: as many as
    /// the process may use), and the process's GPU or every one.
    pub(super) fn to_encode(params: &Params, chunks: usize, bytes: usize, threads: usize, every_gpu: bool) -> Sharing {
        let gpus = gpus(every_gpu);
        let planes = params.lossy(bytes) && params.request.codec == Codec::Planes;
        let many = planes && cores(threads) >= CPU_ENCODES_PLANES;
        Sharing::among(chunks, bytes, threads, if many && gpus.len() < 2 { &[] } else { gpus })
    }

    /// The same to decode.
    pub(super) fn to_decode(chunks: usize, bytes: usize, threads: usize, every_gpu: bool) -> Sharing {
        let gpus = gpus(every_gpu);
        let many = cores(threads) >= CPU_DECODES;
        Sharing::among(chunks, bytes, threads, if many && gpus.len() < 2 { &[] } else { gpus })
    }

    fn among(chunks: usize, bytes: usize, threads: usize, gpus: &'static [Engine]) -> Sharing {
        let threads = cores(threads);
        if gpus.first().is_some_and(|engine| engine.uses_gpu(chunks.saturating_mul(bytes), threads)) {
            let batch = (GPU_BATCH / bytes.max(1)).clamp(1, chunks.max(1));
            let lanes = (GPU_BATCHES * gpus.len()).min(chunks.div_ceil(batch));
            return Sharing { batch, lanes, engine: Coder::Gpu(gpus) };
        }
        Sharing::on_cpu(chunks, bytes, threads)
    }

    /// The same on CPU threads alone.
    pub(super) fn on_cpu(chunks: usize, bytes: usize, threads: usize) -> Sharing {
        let threads = cores(threads);
        let batch = (CPU_BATCH / bytes.max(1)).clamp(1, chunks.max(1));
        let lanes = threads.min(chunks.div_ceil(batch)).max(1);
        Sharing { batch, lanes, engine: Coder::Cpu(Engine::with_threads(threads / lanes)) }
    }
}

/// CPU threads: so many, or for 0 as many as the process may use.
fn cores(threads: usize) -> usize {
    if threads > 0 { threads } else { crate::parallel::cores() }
}

/// The engine of the process's GPU, or those of every GPU.
fn gpus(every: bool) -> &'static [Engine] {
    match if every { Engine::on_every_gpu() } else { &[] } {
        [] => std::slice::from_ref(Engine::global()),
        all => all,
    }
}
