// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integers by `lorenzo` and by `planes`: fields as steps of their range.

use super::{Field, median, range_of, rate};
use h5z_gpu::{Bound, Class, Codec, DecodeJob, Dtype, EncodeJob, Engine, Params};
use std::time::Instant;

/// A field as steps of its range, integers of 1, 2 or 4 bytes, and their lossless frames by this codec.
fn quantised(f: &Field, bits: i32, codec: Codec) -> (Params, Vec<u8>) {
    let value = |b: &[u8]| match b.len() {
        4 => f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes"))),
        _ => f64::from_le_bytes(b.try_into().expect("8 bytes")),
    };
    let values = || f.raw.chunks_exact(f.dtype.size.into()).map(value);
    let (low, step) = (values().fold(f64::MAX, f64::min), range_of(f) / 2f64.powi(bits));
    let steps = values().map(|x| ((x - low) / step).min(2f64.powi(bits) - 1.0) as u32);
    let (size, raw): (u8, Vec<u8>) = match bits {
        ..=8 => (1, steps.map(|n| n as u8).collect()),
        9..16 => (2, steps.flat_map(|n| (n as u16).to_le_bytes()).collect()),
        _ => (4, steps.flat_map(u32::to_le_bytes).collect()),
    };
    (kept_by(codec, size, &f.dims), raw)
}

/// Params of integers that a codec keeps, as if a sample had said so.
fn kept_by(codec: Codec, size: u8, dims: &[u64]) -> Params {
    let dtype = Dtype { class: Class::Integer, ..Dtype::bytes(size) };
    let mut params = Params::new(Bound::Lossless.into(), dtype, dims).expect("a sensible request");
    params.request.codec = codec;
    params
}

/// Encoding and decoding of integers between host memory in chunks of 4 MiB; the frames.
fn in_chunks(raw: &[u8], of: &Params, engine: &Engine) -> (f64, f64, Vec<Vec<u8>>) {
    let (codec, size) = (of.request.codec, of.dtype.size);
    let row = 64 * usize::from(size);
    let raw = &raw[..raw.len().min(256 << 20) / row * row];
    let pieces: Vec<&[u8]> = raw.chunks(4 << 20).collect();
    let params: Vec<Params> = pieces.iter().map(|p| kept_by(codec, size, &[(p.len() / row) as u64, 64])).collect();
    let jobs: Vec<_> = params.iter().zip(&pieces).map(|(params, raw)| EncodeJob { params, raw }).collect();
    let mut frames = vec![Vec::new(); jobs.len()];
    let mut outs: Vec<Vec<u8>> = pieces.iter().map(|p| vec![0; p.len()]).collect();
    let best = |work: &mut dyn FnMut()| {
        let seconds = (0..4).map(|_| {
            let t = Instant::now();
            work();
            t.elapsed().as_secs_f64()
        });
        rate(raw.len(), seconds.fold(f64::MAX, f64::min) * 1e3)
    };
    let encode = best(&mut || engine.encode_batch(&jobs, &mut frames));
    let decode = best(&mut || {
        let jobs = frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out });
        assert!(engine.decode_batch(&mut jobs.collect::<Vec<_>>()).iter().all(Result::is_ok));
    });
    assert!(outs.iter().zip(&pieces).all(|(out, piece)| out == piece), "other integers come back");
    (encode, decode, frames)
}

/// Integers by either codec: GB/s of the integers' bytes, as one chunk on the device, and between host memory by the
/// engine with a GPU and by threads.
pub(super) fn integers(fields: &[Field], runs: usize, threads: usize) {
    println!("\nintegers without loss, GB/s: on the device as one chunk; host to host in chunks of 4 MiB");
    println!(
        "{:10} {:>7} {:>5} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8} {:>10} {:>8}",
        "field", "codec", "type", "MB", "encode", "decode", "ratio", "encode GPU", "CPU", "decode GPU", "CPU"
    );
    let engines = [Engine::with_device(threads, 0), Engine::with_threads(threads)];
    let cases = [(Codec::Lorenzo, 12), (Codec::Lorenzo, 20), (Codec::Planes, 8), (Codec::Planes, 12)];
    for (f, (codec, bits)) in fields.iter().flat_map(|f| cases.map(|case| (f, case))) {
        let (params, raw) = quantised(f, bits, codec);
        let (size, mb) = (params.dtype.size, raw.len() as f64 / 1e6);
        let job = [EncodeJob { params: &params, raw: &raw }];
        let (frames, times) = h5z_gpu::testing::encode_times(&job, runs, 16).expect("the device encodes");
        let mut out = vec![0; raw.len()];
        let mut job = [DecodeJob { frame: &frames[0], out: &mut out }];
        let (right, back) = h5z_gpu::testing::decode_times(&mut job, runs, 16).expect("the device decodes");
        assert!(right[0] && out == raw, "{}: other integers come back", f.name);
        let [encode, decode] = [times, back].map(|times| rate(raw.len(), median(times)));
        let ratio = raw.len() as f64 / frames[0].len() as f64;
        let [gpu, cpu] = engines.each_ref().map(|engine| in_chunks(&raw, &params, engine));
        assert!(gpu.2 == cpu.2, "{}: the engines' frames differ", f.name);
        println!(
            "{:10} {:>7} {:>5} {mb:8.1} {encode:8.0} {decode:8.0} {ratio:8.2} {:10.1} {:8.1} {:10.1} {:8.1}",
            f.name,
            codec.name(),
            format!("u{}", 8 * size),
            gpu.0,
            cpu.0,
            gpu.1,
            cpu.1
        );
    }
}
