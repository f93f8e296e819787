// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed on the GPU, every answer checked against the CPU's. Needs a GPU and fields.
//!
//! ```text
//! gpu_bench FIELDS_DIR [--runs N] [--threads N] [--only device|cliffs|decoders|batch|integers|keep|lane|first]
//!           [--quick] [--codec NAME]
//! gpu_bench FIELDS_DIR --why
//! ```
//! `FIELDS_DIR/fields.txt` has a line a field: path, f32 or f64, extents as 512x512x512. Prints, in GB/s of
//! uncompressed bytes: the device's time for complete frames over data on the device (events, median), chunks of a
//! batch against one large chunk, host memory to host memory beside the CPU's, and the time to the first chunk of a
//! process. `--quick` times a few requests and leaves the comparison with the CPU out, for comparing kernels with each
//! other. `--why` has ncu say what each kernel waits for.

#[path = "gpu_bench/cliffs.rs"]
mod cliffs;
#[path = "gpu_bench/integers.rs"]
mod integers;
#[path = "gpu_bench/keep.rs"]
mod keep;
#[path = "gpu_bench/why.rs"]
mod why;

use h5z_gpu::{Bound, Codec, DecodeJob, Dtype, EncodeJob, Engine, Params, Request};
use std::time::Instant;

struct Field {
    name: String,
    dtype: Dtype,
    dims: Vec<u64>,
    raw: Vec<u8>,
}

fn fields(dir: &str) -> Vec<Field> {
    let list = std::fs::read_to_string(format!("{dir}/fields.txt")).expect("FIELDS_DIR holds fields.txt");
    let field = |line: &str| {
        let mut words = line.split_whitespace();
        let (path, dtype, dims) = (words.next()?, words.next()?, words.next()?);
        let name = std::path::Path::new(path).file_stem()?.to_string_lossy().into_owned();
        let dtype = if dtype == "f64" { Dtype::F64 } else { Dtype::F32 };
        let dims = dims.split('x').map(|d| d.parse().expect("an extent")).collect();
        // The list may have been written elsewhere.
        let file = std::path::Path::new(dir).join(std::path::Path::new(path).file_name()?);
        Some(Field { name, dtype, dims, raw: std::fs::read(file).expect("a field's file") })
    };
    list.lines().filter_map(field).collect()
}

fn median(mut times: Vec<f32>) -> f64 {
    times.sort_by(f32::total_cmp);
    f64::from(times[times.len() / 2])
}

/// GB/s of `bytes` bytes in `ms` milliseconds.
fn rate(bytes: usize, ms: f64) -> f64 {
    bytes as f64 / ms / 1e6
}

/// Largest difference of finite values, and max - min of them.
fn error_and_range(dtype: Dtype, a: &[u8], b: &[u8]) -> (f64, f64) {
    let value = |s: &[u8]| match dtype.size {
        4 => f64::from(f32::from_le_bytes(s.try_into().expect("4 bytes"))),
        _ => f64::from_le_bytes(s.try_into().expect("8 bytes")),
    };
    let size = usize::from(dtype.size);
    let (mut error, mut lo, mut hi) = (0f64, f64::INFINITY, f64::NEG_INFINITY);
    for (x, y) in a.chunks_exact(size).zip(b.chunks_exact(size)) {
        let (x, y) = (value(x), value(y));
        if x.is_finite() {
            error = error.max((x - y).abs());
            (lo, hi) = (lo.min(x), hi.max(x));
        }
    }
    (error, hi - lo)
}

/// The largest finite value less the smallest one.
fn range_of(f: &Field) -> f64 {
    error_and_range(f.dtype, &f.raw, &f.raw).1
}

fn params(field: &Field, dims: &[u64], codec: Codec, bound: Bound) -> Params {
    Params::new(Request::new(codec, bound), field.dtype, dims).expect("a sensible request")
}

struct Speed {
    bytes: usize,
    encode: f64,
    /// 0: not on the device.
    decode: f64,
    ratio: f64,
    /// The kernels of encoding, where there are several, in milliseconds.
    steps: String,
}

/// Times one field as one chunk on the device and checks frames and values against the CPU's.
fn device(field: &Field, codec: Codec, bound: Bound, runs: usize, cpu: Option<&Engine>) -> Speed {
    let p = params(field, &field.dims, codec, bound);
    let job = [EncodeJob { params: &p, raw: &field.raw }];
    let (frames, times) = h5z_gpu::testing::encode_times(&job, runs, 16).expect("the device encodes");
    let mut out = vec![0; field.raw.len()];
    let mut back_job = [DecodeJob { frame: &frames[0], out: &mut out }];
    let back = h5z_gpu::testing::decode_times(&mut back_job, runs, 16).map(|(right, times)| {
        assert!(right[0], "{}: the device refuses its own frame", field.name);
        times
    });
    let steps = h5z_gpu::testing::encode_steps(&job, runs, 16).expect("the device encodes");
    let steps: Vec<String> = match steps.len() {
        1 => Vec::new(),
        _ => steps
            .into_iter()
            .map(|(name, ms)| format!("{} {:.3}", name.trim_start_matches("encode_"), median(ms)))
            .collect(),
    };
    if let Some(cpu) = cpu {
        let want = cpu.encode(&p, &field.raw);
        assert!(frames[0] == want, "{}: the device's frame differs from the CPU's", field.name);
        let values = cpu.decode(&want, field.raw.len() as u64).expect("the CPU decodes");
        if back.is_some() {
            assert!(out == values, "{}: the device's values differ from the CPU's", field.name);
        }
        let (error, range) = error_and_range(field.dtype, &field.raw, &values);
        match bound {
            Bound::Lossless => assert!(values == field.raw),
            Bound::Relative(r) => assert!(error <= r * range, "{}: error {error:e}", field.name),
            Bound::Absolute(b) => assert!(error <= b, "{}: error {error:e}", field.name),
            _ => {}
        }
    }
    let e = median(times);
    Speed {
        bytes: field.raw.len(),
        encode: rate(field.raw.len(), e),
        decode: back.map_or(0.0, |times| rate(field.raw.len(), median(times))),
        ratio: field.raw.len() as f64 / frames[0].len() as f64,
        steps: steps.join(", "),
    }
}

fn devices(fields: &[Field], runs: usize, cpu: Option<&Engine>, codec: Option<Codec>) {
    println!(
        "\ndevice side, one chunk a field, GB/s (median of {runs}); abs: the same bound, its range found beforehand"
    );
    println!(
        "{:10} {:24} {:>8} {:>8} {:>8} {:>8}  kernels of encoding, ms",
        "field", "request", "MB", "encode", "decode", "ratio"
    );
    let mut means: Vec<(String, f64, f64, f64, u32)> = Vec::new();
    for f in fields {
        let range = range_of(f);
        let mut requests: Vec<(String, Codec, Bound)> = Vec::new();
        for r in if cpu.is_some() { &[1e-2, 1e-3, 1e-4][..] } else { &[1e-3] } {
            let r = *r;
            requests.push((format!("szx abs of rel {r:e}"), Codec::Szx, Bound::Absolute(r * range)));
        }
        requests.push(("szx rel 1e-3".into(), Codec::Szx, Bound::Relative(1e-3)));
        if cpu.is_some() {
            requests.push(("szx pw_rel 1e-3".into(), Codec::Szx, Bound::PointwiseRelative(1e-3)));
        }
        for r in [1e-2, 1e-3, 1e-4] {
            requests.push((format!("lorenzo rel {r:e}"), Codec::Lorenzo, Bound::Relative(r)));
            if cpu.is_some() {
                requests.push((format!("lorenzo abs of rel {r:e}"), Codec::Lorenzo, Bound::Absolute(r * range)));
            }
        }
        for r in if cpu.is_some() { &[1e-2, 1e-3, 1e-4][..] } else { &[1e-3] } {
            let r = *r;
            requests.push((format!("planes abs of rel {r:e}"), Codec::Planes, Bound::Absolute(r * range)));
        }
        requests.push(("planes rel 1e-3".into(), Codec::Planes, Bound::Relative(1e-3)));
        requests.push(("ndzip".into(), Codec::Ndzip, Bound::Lossless));
        requests.push(("planes lossless".into(), Codec::Planes, Bound::Lossless));
        requests.retain(|a| codec.is_none_or(|c| c == a.1));
        for (what, codec, bound) in requests {
            let s = device(f, codec, bound, runs, cpu);
            println!(
                "{:10} {what:24} {:8.1} {:8.0} {:8.0} {:8.2}  {}",
                f.name,
                s.bytes as f64 / 1e6,
                s.encode,
                s.decode,
                s.ratio,
                s.steps
            );
            if s.bytes >= 150_000_000 {
                let at = means.iter().position(|m| m.0 == what).unwrap_or_else(|| {
                    means.push((what.clone(), 0.0, 0.0, 0.0, 0));
                    means.len() - 1
                });
                let m = &mut means[at];
                *m = (what, m.1 + s.encode.ln(), m.2 + s.decode.ln(), m.3 + s.ratio.ln(), m.4 + 1);
            }
        }
    }
    println!("geometric means over fields of at least 150 MB:");
    for (what, e, d, r, n) in means {
        let n_ = f64::from(n);
        println!("{:10} {what:24} {n:8} {:8.0} {:8.0} {:8.2}", "", (e / n_).exp(), (d / n_).exp(), (r / n_).exp());
    }
}

/// Decoding of `lorenzo`: whole frames, and residuals alone by each of two decoders, from the CPU's frames.
fn decoders(fields: &[Field], runs: usize, quick: bool, cpu: &Engine) {
    const DECODERS: [&str; 2] = ["coarse", "sync"];
    println!(
        "\nlorenzo, device side, one chunk a field, GB/s of uncompressed bytes (median of {runs}): whole frames to \
         values, then\n\
         streams to residuals in device memory by one thread a stream (coarse) and, times as fast, by \
         self-synchronising threads;\nall outputs compared"
    );
    println!(
        "{:10} {:>9} {:>8} {:>8} {:>8} {:>8} {:>12}",
        "field", "rel bound", "MB", "ratio", "decode", "coarse", "sync"
    );
    let mut means: Vec<(f64, u32, [f64; 3])> = Vec::new();
    for f in fields {
        for rel in if quick { &[1e-3][..] } else { &[1e-2, 1e-3, 1e-4] } {
            let p = params(f, &f.dims, Codec::Lorenzo, Bound::Relative(*rel));
            let frame = cpu.encode(&p, &f.raw);
            if frame[9] != 2 {
                println!("{:10} {rel:9.0e} stored", f.name);
                continue;
            }
            let mut out = vec![0; f.raw.len()];
            let mut job = [DecodeJob { frame: &frame, out: &mut out }];
            let (right, times) = h5z_gpu::testing::decode_times(&mut job, runs, 16).expect("the device decodes");
            assert!(right[0], "{}: the device refuses a frame", f.name);
            let values = cpu.decode(&frame, f.raw.len() as u64).expect("the CPU decodes");
            assert!(out == values, "{}: the device's values differ from the CPU's", f.name);
            let mut speeds = [rate(f.raw.len(), median(times)), 0.0, 0.0];
            let want: Vec<u8> = match quick {
                true => Vec::new(),
                false => {
                    let r = h5z_gpu::testing::residuals(&frame).expect("residuals");
                    r.iter().flat_map(|r| r.to_le_bytes()).collect()
                }
            };
            let mut before: Option<Vec<u8>> = (!quick).then_some(want);
            for (decoder, speed) in DECODERS.iter().zip(&mut speeds[1..]) {
                let mut out = vec![0; f.raw.len()];
                let mut job = [DecodeJob { frame: &frame, out: &mut out }];
                let (right, times) =
                    h5z_gpu::testing::residual_times(&mut job, runs, 16, decoder).expect("the device decodes");
                assert!(right[0], "{}: {decoder} refuses a frame", f.name);
                let used = f.raw.len() / usize::from(f.dtype.size) * 4;
                out.truncate(used);
                assert!(before.is_none_or(|b| b == out), "{}: {decoder} gives other residuals", f.name);
                before = Some(out);
                *speed = rate(f.raw.len(), median(times));
            }
            let row = |name: &str, mb: f64, ratio: f64, s: [f64; 3]| {
                println!(
                    "{name:10} {rel:9.0e} {mb:8.1} {ratio:8.2} {:8.0} {:8.0} {:6.0} {:4.1}x",
                    s[0],
                    s[1],
                    s[2],
                    s[2] / s[1]
                );
            };
            row(&f.name, f.raw.len() as f64 / 1e6, f.raw.len() as f64 / frame.len() as f64, speeds);
            if f.raw.len() >= 150_000_000 {
                let at = means.iter().position(|m| m.0 == *rel).unwrap_or_else(|| {
                    means.push((*rel, 0, [0.0; 3]));
                    means.len() - 1
                });
                means[at].1 += 1;
                means[at].2.iter_mut().zip(speeds).for_each(|(m, s)| *m += s.ln());
            }
        }
    }
    println!("geometric means over fields of at least 150 MB:");
    for (rel, n, s) in means {
        let s = s.map(|s| (s / f64::from(n)).exp());
        println!("{n:10} {rel:9.0e} {:8} {:8} {:8.0} {:8.0} {:6.0} {:4.1}x", "", "", s[0], s[1], s[2], s[2] / s[1]);
    }
}

fn batches(f: &Field, runs: usize) {
    println!("\n64 MiB of {} as chunks in one batch, device side, GB/s", f.name);
    let raw = &f.raw[..(64 << 20).min(f.raw.len())];
    for (what, codec, bound) in [
        ("szx abs", Codec::Szx, Bound::Absolute(1e-3)),
        ("planes abs", Codec::Planes, Bound::Absolute(1e-3)),
        ("planes rel", Codec::Planes, Bound::Relative(1e-3)),
        ("lorenzo abs", Codec::Lorenzo, Bound::Absolute(1e-3)),
        ("planes lossless", Codec::Planes, Bound::Lossless),
        ("ndzip", Codec::Ndzip, Bound::Lossless),
    ] {
        let mut whole = (0.0, 0.0);
        for chunk in [64usize << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10] {
            let pieces: Vec<&[u8]> = raw.chunks(chunk).collect();
            let size = usize::from(f.dtype.size);
            let ps: Vec<Params> =
                pieces.iter().map(|p| params(f, &[(p.len() / size / 512) as u64, 512], codec, bound)).collect();
            let jobs: Vec<EncodeJob<'_>> =
                ps.iter().zip(&pieces).map(|(params, raw)| EncodeJob { params, raw }).collect();
            let (frames, times) = h5z_gpu::testing::encode_times(&jobs, runs, 16).expect("the device encodes");
            let mut outs: Vec<Vec<u8>> = pieces.iter().map(|p| vec![0; p.len()]).collect();
            let mut jobs: Vec<DecodeJob<'_>> =
                frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
            let (right, back) = h5z_gpu::testing::decode_times(&mut jobs, runs, 16).expect("the device decodes");
            assert!(right.iter().all(|r| *r));
            let (e, d) = (rate(raw.len(), median(times)), rate(raw.len(), median(back)));
            if whole.0 == 0.0 {
                whole = (e, d);
            }
            println!(
                "{what:16} {:4} x {:6} KiB  encode {e:6.0} ({:3.0} %)  decode {d:6.0} ({:3.0} %)",
                pieces.len(),
                chunk >> 10,
                100.0 * e / whole.0,
                100.0 * d / whole.1
            );
        }
    }
}

/// Host memory to host memory, buffers in use before, GPU and CPU with as many threads.
fn lanes(f: &Field, runs: usize, threads: usize) {
    let engines = [Engine::with_device(threads, 0), Engine::with_threads(threads)];
    println!("\nhost memory to host memory, {}, one chunk a call, {threads} threads, GB/s (median of {runs})", f.name);
    println!("{:7} {:16} {:>10} {:>8} {:>12} {:>8}", "KiB", "request", "encode GPU", "CPU", "decode GPU", "CPU");
    let size = usize::from(f.dtype.size);
    for (what, codec, bound) in [
        ("planes rel", Codec::Planes, Bound::Relative(1e-3)),
        ("lorenzo rel", Codec::Lorenzo, Bound::Relative(1e-3)),
        ("planes lossless", Codec::Planes, Bound::Lossless),
    ] {
        for kib in [64usize, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536, 131_072] {
            let len = (kib << 10).min(f.raw.len());
            let raw = &f.raw[..len];
            let p = params(f, &[(len / size / 64) as u64, 64], codec, bound);
            let mut row = Vec::new();
            for engine in &engines {
                let mut frames = [Vec::new()];
                let time = |work: &mut dyn FnMut()| {
                    work();
                    work();
                    let times = (0..runs).map(|_| {
                        let t = Instant::now();
                        work();
                        t.elapsed().as_secs_f32() * 1e3
                    });
                    rate(len, median(times.collect()))
                };
                let e = time(&mut || engine.encode_batch(&[EncodeJob { params: &p, raw }], &mut frames));
                let mut out = vec![0; len];
                let d = time(&mut || engine.decode_into(&frames[0], &mut out).expect("a whole frame"));
                row.push((e, d));
            }
            let [(ge, gd), (ce, cd)] = row[..] else { unreachable!("two engines") };
            println!("{kib:7} {what:16} {ge:10.2} {ce:8.2} {gd:12.2} {cd:8.2}");
        }
    }
}

fn first(f: &Field) {
    let len = (16 << 20).min(f.raw.len());
    let p = params(f, &[(len / usize::from(f.dtype.size)) as u64], Codec::Szx, Bound::Relative(1e-3));
    let gpu = Engine::with_device(8, 0);
    let t = Instant::now();
    let frame = gpu.encode(&p, &f.raw[..len]);
    let one = t.elapsed().as_secs_f64();
    let t = Instant::now();
    gpu.decode(&frame, len as u64).expect("a whole frame");
    println!(
        "\nfirst chunk of a process (16 MiB): encode {:.3} s, then decode {:.3} s",
        one,
        t.elapsed().as_secs_f64()
    );
}

fn main() {
    let (mut dir, mut runs, mut threads, mut only, mut quick) = (None, 15, 8, String::new(), false);
    let (mut codec, mut why, mut watched) = (None, false, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--runs" => runs = args.next().and_then(|v| v.parse().ok()).expect("a number follows"),
            "--threads" => threads = args.next().and_then(|v| v.parse().ok()).expect("a number follows"),
            "--only" => only = args.next().expect("a part follows"),
            "--quick" => quick = true,
            "--why" => why = true,
            // What `--why` has ncu start.
            "--watched" => watched = args.next().and_then(|v| v.parse().ok()),
            "--codec" => {
                let name = args.next().expect("a codec follows");
                codec = Some(*Codec::ALL.iter().find(|c| c.name() == name).expect("a codec's name"));
            }
            _ => dir = Some(arg),
        }
    }
    let dir = dir.expect("FIELDS_DIR; see the head of this file");
    let all = fields(&dir);
    if let Some(request) = watched {
        return why::launch(&all[0], request);
    }
    if why {
        return why::why(&dir, &all[0]);
    }
    let run = |part: &str| only.is_empty() || only == part;
    if run("first") {
        first(&all[0]);
    }
    let Some(name) = h5z_gpu::Engine::gpu().ok() else {
        eprintln!("no GPU in use (H5Z_GPU_LOG=info says why)");
        std::process::exit(1);
    };
    println!("{name}, {} CPU threads", std::thread::available_parallelism().map_or(1, usize::from));
    let cpu = Engine::with_threads(8);
    if run("device") {
        devices(&all, runs, (!quick).then_some(&cpu), codec);
    }
    if run("cliffs") {
        cliffs::cliffs(&all, runs);
    }
    if run("decoders") {
        decoders(&all, runs, quick, &Engine::with_threads(16));
    }
    if run("batch") {
        batches(&all[0], runs);
    }
    if run("integers") {
        integers::integers(&all, runs, threads);
    }
    if run("keep") {
        keep::keeps(&all, runs);
    }
    if run("lane") {
        lanes(&all[0], runs, threads);
    }
}
