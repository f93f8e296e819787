// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bench`: encoding and decoding in memory, by request and threads. Every output is compared before a number is
//! printed.

use crate::args::{self, Numbers};
use crate::verify::kept;
use crate::{Fail, Outcome};
use h5z_gpu::frame::{Frame, Header};
use h5z_gpu::judge::judge;
use h5z_gpu::{Class, DecodeJob, EncodeJob, Engine, Mode, Params, Request};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Raw numbers, no header
    raw: PathBuf,
    #[command(flatten)]
    numbers: Numbers,
    /// What to time, may be repeated: mode=rel,bound=1e-3. Lossless and relative 1e-2, 1e-3, 1e-4 when absent
    #[arg(long)]
    request: Vec<String>,
    /// Threads, as a list
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Cuts the field along its slowest extent into chunks of about this many bytes, coded as one batch; 0: one chunk
    #[arg(long, default_value_t = 0)]
    chunk_bytes: usize,
    /// Lets the GPU take what it can, from and to host memory
    #[arg(long)]
    gpu: bool,
    /// Timed runs, after one that is not
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

/// One chunk: its parameters and its bytes in the file.
struct Chunk {
    params: Params,
    begin: usize,
    end: usize,
}

pub(crate) fn run(a: &Args) -> Outcome {
    let raw = args::read(&a.raw)?;
    let requests: Vec<Request> = match &a.request[..] {
        [] => ["mode=lossless", "mode=rel,bound=1e-2", "mode=rel,bound=1e-3", "mode=rel,bound=1e-4"]
            .map(str::parse)
            .into(),
        given => given.iter().map(|t| t.parse()).collect::<Vec<_>>(),
    }
    .into_iter()
    .collect::<Result<_, _>>()?;
    let runs = a.runs.max(1);
    say!("{}, {} bytes; {runs} runs, MB/s (10^6 bytes of raw data): median (best)", a.raw.display(), raw.len());
    let copy = {
        let mut to = vec![1u8; raw.len()];
        rate(raw.len(), &times(runs, || black_box(&mut to[..]).copy_from_slice(black_box(&raw))))
    };
    if a.gpu {
        say!("GPU: {}", Engine::gpu().map_or_else(|why| why, str::to_owned));
    }
    say!("copying in memory, one thread: {copy}");
    say!(
        "{:<28} {:>7} {:>7} {:>8} {:>8} {:>17} {:>17} {:>12}",
        "request",
        "codec",
        "threads",
        "chunks",
        "ratio",
        "encode",
        "decode",
        "error/limit"
    );
    for request in requests {
        let chunks = cut(a, request, &raw)?;
        for &threads in &a.threads {
            let engine = if a.gpu { Engine::with_device(threads, 0) } else { Engine::with_threads(threads) };
            row(&raw, &chunks, request, &engine, runs)?;
        }
    }
    Ok(())
}

fn row(raw: &[u8], chunks: &[Chunk], request: Request, engine: &Engine, runs: usize) -> Outcome {
    let jobs: Vec<EncodeJob<'_>> =
        chunks.iter().map(|c| EncodeJob { params: &c.params, raw: &raw[c.begin..c.end] }).collect();
    let mut frames = vec![Vec::new(); jobs.len()];
    let encode = times(runs, || engine.encode_batch(black_box(&jobs), black_box(&mut frames)));

    let mut out = vec![0xA5u8; raw.len()];
    let mut failed = None;
    let decode = times(runs, || {
        let mut rest = &mut out[..];
        let mut jobs = Vec::with_capacity(chunks.len());
        for (c, frame) in chunks.iter().zip(&frames) {
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(c.end - c.begin);
            jobs.push(DecodeJob { frame, out: part });
            rest = tail;
        }
        failed = engine.decode_batch(black_box(&mut jobs)).into_iter().find_map(Result::err);
    });
    if let Some(e) = failed {
        return Err(e.into());
    }

    let mut codecs = Vec::new();
    let mut error = 0.0f64;
    for (c, frame) in chunks.iter().zip(&frames) {
        let h = Frame::open(frame, 1)?.header;
        if !codecs.contains(&h.codec) {
            codecs.push(h.codec);
        }
        error = error.max(verified(&raw[c.begin..c.end], &out[c.begin..c.end], &c.params, h)?);
    }
    let stored: usize = frames.iter().map(Vec::len).sum();
    let codecs: Vec<String> = codecs.iter().map(ToString::to_string).collect();
    say!(
        "{:<28} {:>7} {:>7} {:>8} {:>8.3} {:>17} {:>17} {error:>12.6}",
        request.to_string(),
        codecs.join("+"),
        engine.threads(),
        chunks.len(),
        raw.len() as f64 / stored as f64,
        rate(raw.len(), &encode),
        rate(raw.len(), &decode)
    );
    Ok(())
}

/// Largest error over the limit that the frame states; fails where the promise is broken.
fn verified(raw: &[u8], out: &[u8], params: &Params, header: Header) -> Outcome<f64> {
    let d = params.dtype;
    if raw == out {
        return Ok(0.0);
    }
    if header.mode == Mode::Lossless || d.class != Class::Float || !matches!(d.size, 4 | 8) {
        return Err(Fail::Wrong("frames: BROKEN: a lossless chunk came back changed".into()));
    }
    let v = judge(kept(header), d, params.fill, [raw, out], None, 0)?;
    match v.first {
        None => Ok(v.worst / header.used),
        Some(k) => Err(Fail::Wrong(format!("frames: BROKEN: {} values miss the bound, the first is {k}", v.broken))),
    }
}

fn cut(a: &Args, request: Request, raw: &[u8]) -> Outcome<Vec<Chunk>> {
    let whole = a.numbers.params(request, raw.len() as u64)?;
    let dims: Vec<u64> = whole.extents.as_slice().iter().map(|&d| d.into()).collect();
    let Some((&slowest, rest)) = dims.split_first().filter(|_| a.chunk_bytes > 0) else {
        return Ok(vec![Chunk { params: whole, begin: 0, end: raw.len() }]);
    };
    let row = raw.len() / slowest as usize;
    let rows = (a.chunk_bytes / row.max(1)).max(1);
    (0..slowest as usize)
        .step_by(rows)
        .map(|first| {
            let n = rows.min(slowest as usize - first);
            let dims: Vec<u64> = std::iter::once(n as u64).chain(rest.iter().copied()).collect();
            let mut params = Params::new(request, whole.dtype, &dims)?;
            params.fill = whole.fill;
            Ok(Chunk { params, begin: first * row, end: (first + n) * row })
        })
        .collect()
}

/// Seconds of each run but the first.
fn times(runs: usize, mut f: impl FnMut()) -> Vec<f64> {
    f();
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn rate(bytes: usize, seconds: &[f64]) -> String {
    let mb = |s: f64| bytes as f64 / s / 1e6;
    format!("{:.0} ({:.0})", mb(seconds[seconds.len() / 2]), mb(seconds[0]))
}
