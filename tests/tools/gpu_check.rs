// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the GPU with the CPU: the same frames, the same values, the same errors. Needs a GPU, or an emulated one:
//! tests/gpu/kernels.rs.
//!
//! ```text
//! gpu_check [--cases N] [--seed N] [--largest VALUES] [--codec NAME]
//! gpu_check --salted N [--seed N] [--codec NAME]
//! gpu_check --stages ROUNDS [--seed N] [--codec NAME]
//! gpu_check --arrays ROUNDS [--seed N] [--largest VALUES] [--codec NAME]
//! gpu_check --vectors DIR [--codec NAME]
//! gpu_check --values N [--seconds S] [--seed N] [--largest VALUES] [--skip BOUNDS] [--spoil bound|bits]
//! ```
//! Random and hostile chunks of random shapes, types, bounds and batches are encoded and decoded on both, and damaged
//! frames, with their checksums made right again, are given to both. Ends with 1 at the first difference, which it
//! names. `--salted N` does the same with N small chunks whose values and bounds are of any magnitude, in large
//! batches. `--stages ROUNDS` compares single stages on arrays of all kinds, and names the first one that differs, and
//! where. `--arrays ROUNDS` compares arrays in the device's memory, of all layouts, with the same in host memory.
//! `--vectors DIR` checks golden vectors instead (tests/vectors/v2): each is written and read by every backend.
//! `--values N` sends N values through encoding, decoding and an exact judge on the device, but begins no batch after
//! `--seconds`; `--skip` leaves out bounds of patterns that a run before came through, `--spoil` breaks a promise,
//! which must be found. `--codec NAME` leaves out what the codec's kernels have no part in, as far as one can tell.

#[path = "gpu_check/arrays.rs"]
mod arrays;
#[path = "gpu_check/chunks.rs"]
mod chunks;
#[path = "../common/mod.rs"]
mod common;
#[path = "gpu_check/salted.rs"]
mod salted;
#[path = "gpu_check/stages/mod.rs"]
mod stages;
#[path = "gpu_check/values/mod.rs"]
mod values;

use chunks::{Case, Random, case};
use common::{refused, vectors::Vector};
use h5z_gpu::{Codec, DecodeJob, EncodeJob, Engine};

/// Codec number of `lorenzo`.
const LORENZO: u8 = 2;

/// The checksum of FORMAT.md §4.2, written anew.
fn seal(frame: &mut [u8]) {
    let mut sum = 0u64;
    for (i, chunk) in frame.chunks(4).enumerate() {
        let mut b = [0; 4];
        b[..chunk.len()].copy_from_slice(chunk);
        if i != 10 && i != 11 {
            let t = (2 * i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let p = u64::from(u32::from_le_bytes(b)).wrapping_mul(t ^ t << 32);
            sum = sum.wrapping_add(p ^ p >> 32);
        }
    }
    frame[40..48].copy_from_slice(&sum.to_le_bytes());
}

fn first_difference(a: &[u8], b: &[u8]) -> String {
    let at = a.iter().zip(b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
    let show = |s: &[u8]| s[at.min(s.len())..].iter().take(8).map(|b| format!("{b:02x}")).collect::<String>();
    format!("first difference at byte {at}: CPU {} GPU {} (lengths {} and {})", show(a), show(b), a.len(), b.len())
}

struct Tally {
    encoded: usize,
    decoded: usize,
    damaged: usize,
    left: usize,
    /// Frames whose residuals were compared, decoder by decoder.
    residuals: [usize; 2],
}

/// Whether the kernels know a frame.
fn is_the_gpus(frame: &[u8]) -> bool {
    frame[9] == LORENZO
}

/// Whether its residuals are those of its values: not where it holds integers, of mode 9.
fn has_residuals(frame: &[u8]) -> bool {
    is_the_gpus(frame) && frame[10] != 9 && has_finite_step(frame)
}

/// Whether twice the bound is finite: else the frame is left to the CPU.
fn has_finite_step(frame: &[u8]) -> bool {
    frame[32..40].first_chunk().is_none_or(|b| (2.0 * f64::from_le_bytes(*b)).is_finite())
}

/// The two decoders of residuals.
const DECODERS: [&str; 2] = ["coarse", "sync"];

/// Residuals by every decoder of the GPU against the CPU's.
fn residuals(frame: &[u8], what: &str, tally: &mut Tally) -> Result<(), String> {
    let want = h5z_gpu::testing::residuals(frame).ok_or_else(|| format!("{what}: no residuals"))?;
    let want: Vec<u8> = want.iter().flat_map(|r| r.to_le_bytes()).collect();
    let len = h5z_gpu::frame::raw_len(frame).map_err(|e| e.to_string())? as usize;
    for (decoder, count) in DECODERS.iter().zip(&mut tally.residuals) {
        let mut out = vec![0xEE; len];
        let mut jobs = [DecodeJob { frame, out: &mut out }];
        let (right, _) = h5z_gpu::testing::residual_times(&mut jobs, 0, 1, decoder).ok_or("the device is gone")?;
        if !right[0] {
            return Err(format!("residuals of {what}: refused by {decoder}"));
        }
        if out[..want.len()] != want {
            return Err(format!("residuals of {what} by {decoder}: {}", first_difference(&want, &out[..want.len()])));
        }
        *count += 1;
    }
    Ok(())
}

fn check(cases: &[Case], r: &mut Random, gpu: &Engine, cpu: &Engine, tally: &mut Tally) -> Result<(), String> {
    let jobs: Vec<EncodeJob<'_>> = cases.iter().map(|c| EncodeJob { params: &c.params, raw: &c.raw }).collect();
    let mut want = vec![Vec::new(); jobs.len()];
    cpu.encode_batch(&jobs, &mut want);
    let mut got = vec![Vec::new(); jobs.len()];
    let done = gpu.encode_on_device(&jobs, &mut got);
    for (k, c) in cases.iter().enumerate() {
        if !done[k] {
            tally.left += 1;
        } else if got[k] != want[k] {
            return Err(format!("encoding {}: {}", c.what, first_difference(&want[k], &got[k])));
        } else {
            tally.encoded += 1;
        }
    }
    for (frame, c) in want.iter().zip(cases) {
        if has_residuals(frame) && r.one_in(4) {
            residuals(frame, &c.what, tally)?;
        }
    }
    // Whole frames, then damaged ones.
    for damage in [false, true] {
        let mut frames = want.clone();
        if damage {
            for f in &mut frames {
                for _ in 0..1 + r.below(3) {
                    let at =
                        if r.one_in(3) { r.below(200.min(f.len() as u64)) } else { r.below(f.len() as u64) } as usize;
                    // The mark, the version and the lengths that the caller checks stay.
                    if !(0..9).contains(&at) && !(16..32).contains(&at) {
                        f[at] ^= 1 << r.below(8);
                    }
                }
                seal(f);
            }
        }
        let lens: Vec<usize> = cases.iter().map(|c| c.raw.len()).collect();
        let decode = |engine: &Engine, only_device: bool| {
            let mut outs: Vec<Vec<u8>> = lens.iter().map(|&n| vec![0xEE; n]).collect();
            let mut jobs: Vec<DecodeJob<'_>> =
                frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
            let done: Vec<bool> = if only_device {
                engine.decode_on_device(&mut jobs)
            } else {
                engine.decode_batch(&mut jobs).into_iter().map(|d| d.is_ok()).collect()
            };
            drop(jobs);
            (done, outs)
        };
        let (fine, values) = decode(cpu, false);
        let (done, outs) = decode(gpu, true);
        for (k, c) in cases.iter().enumerate() {
            let how = if damage { "decoding a damaged frame of" } else { "decoding" };
            if done[k] && !fine[k] {
                return Err(format!("{how} {}: the GPU takes what the CPU refuses", c.what));
            }
            if fine[k] && !done[k] && is_the_gpus(&frames[k]) && has_finite_step(&frames[k]) {
                let changed = frames[k].iter().zip(&want[k]).enumerate().filter(|(_, (a, b))| a != b);
                let changed: Vec<String> = changed.map(|(at, (a, b))| format!("{at}: {b:02x} to {a:02x}")).collect();
                return Err(format!(
                    "{how} {}: the GPU refuses what the CPU takes, of {} bytes {}",
                    c.what,
                    want[k].len(),
                    changed.join(", ")
                ));
            }
            if done[k] && outs[k] != values[k] {
                return Err(format!("{how} {}: {}", c.what, first_difference(&values[k], &outs[k])));
            }
            tally.decoded += usize::from(done[k] && !damage);
            tally.damaged += usize::from(damage);
            tally.left += usize::from(!damage && !done[k]);
        }
    }
    Ok(())
}

/// Makes a random chunk of at most `values` values, of one codec or of any.
type Make = fn(&mut Random, u64, Option<Codec>) -> Case;

/// Every golden vector, written and read by every backend, the GPU among them; and the frames that must be refused, by
/// the GPU.
fn conformance(dir: &std::path::Path, only: Option<Codec>, name: &str) -> Result<String, String> {
    let mut all = Vector::all_in(dir)?;
    all.retain(|v| only.is_none_or(|only| v.case.codec == only.name()));
    all.iter().try_for_each(Vector::check).map_err(|why| format!("DIFFERENT: {why}"))?;
    let (n, (encoded, decoded)) = (all.len(), Engine::chunks_on_gpu());
    if encoded == 0 || decoded == 0 {
        return Err(format!("{n} vectors, but the GPU encoded {encoded} and decoded {decoded} of them"));
    }
    let (gpu, refused) = (Engine::with_device(1, 0), refused::read_in(dir)?);
    for (name, raw_bytes, frame) in &refused {
        let mut out = vec![0; *raw_bytes];
        if gpu.decode_on_device(&mut [DecodeJob { frame, out: &mut out }])[0] {
            return Err(format!("DIFFERENT: the GPU takes refused/{name}"));
        }
    }
    Ok(format!(
        "conformance on {name}: {n} vectors, bytes out and values back as recorded, by every backend; \
         the GPU encoded {encoded} times and decoded {decoded} times; it takes none of {} frames to refuse",
        refused.len()
    ))
}

/// What was found to be the same, or the first difference.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> Result<String, String> {
    let (mut cases, mut seed, mut largest) = (10_000u64, 1u64, None);
    let (mut vectors, mut only, mut rounds, mut whole, mut salted) = (None, None, 0, 0, 0);
    let (mut values, mut seconds, mut skip, mut spoil) = (0, u64::MAX, 0, None);
    while let Some(arg) = args.next() {
        if arg == "--vectors" {
            vectors = Some(args.next().expect("a folder follows"));
            continue;
        }
        if arg == "--codec" {
            let name = args.next().expect("a codec follows");
            only = Some(*Codec::ALL.iter().find(|c| c.name() == name).expect("a codec's name"));
            continue;
        }
        if arg == "--spoil" {
            spoil = Some(args.next().expect("`bound` or `bits` follows"));
            continue;
        }
        let mut number = || args.next().and_then(|v| v.parse().ok()).expect("a number follows");
        match arg.as_str() {
            "--cases" => cases = number(),
            "--seed" => seed = number(),
            "--largest" => largest = Some(number()),
            "--values" => values = number(),
            "--seconds" => seconds = number(),
            "--skip" => skip = number(),
            "--stages" => rounds = number(),
            "--arrays" => whole = number(),
            "--salted" => salted = number(),
            _ => panic!("unknown argument {arg}; see the head of this file"),
        }
    }
    let gpu = Engine::with_device(4, 0);
    let cpu = Engine::with_threads(std::thread::available_parallelism().map_or(2, usize::from));
    let name = h5z_gpu::Engine::gpu().ok().ok_or("no GPU in use (H5Z_GPU_LOG=info says why)")?;
    if let Some(dir) = vectors {
        return conformance(dir.as_ref(), only, name);
    }
    let mut r = Random(seed);
    if rounds > 0 {
        let said = stages::check(&mut r, rounds, only.map(Codec::name))
            .map_err(|why| format!("DIFFERENT (seed {seed}): {why}"))?;
        return Ok(format!("stages on {name}: {said}, all as on the CPU"));
    }
    if values > 0 {
        // The values of one exponent.
        let asked = values::Asked { values, seconds, largest: largest.unwrap_or(1 << 23), skip, seed, spoil };
        return values::check(&asked).map(|said| format!("values on {name}: {said}"));
    }
    let largest = largest.unwrap_or(60_000);
    if whole > 0 {
        let said =
            arrays::check(&mut r, whole, largest, only).map_err(|why| format!("DIFFERENT (seed {seed}): {why}"))?;
        return Ok(format!("arrays on {name}: {said}, all as in host memory"));
    }
    let mut tally = Tally { encoded: 0, decoded: 0, damaged: 0, left: 0, residuals: [0; 2] };
    let (wanted, batches, make): (_, _, Make) = match salted {
        0 => (cases, 8, case),
        n => (n, 512, |r, _, only| salted::case(r, only)),
    };
    let mut made = 0;
    while made < wanted {
        let batch: Vec<Case> = (0..1 + r.below(batches)).map(|_| make(&mut r, largest, only)).collect();
        made += batch.len() as u64;
        check(&batch, &mut r, &gpu, &cpu, &mut tally)
            .map_err(|why| format!("DIFFERENT after {made} chunks (seed {seed}): {why}"))?;
    }
    if tally.encoded == 0 || tally.decoded == 0 {
        return Err("nothing ran on the GPU".into());
    }
    Ok(format!(
        "parity on {name}: {made} chunks, {} encoded and {} decoded on the GPU, {} damaged frames, {:?} lists of \
         residuals by {DECODERS:?}, all as on the CPU; {} left to the CPU",
        tally.encoded, tally.decoded, tally.damaged, tally.residuals, tally.left
    ))
}

fn main() {
    match run(std::env::args().skip(1)) {
        Ok(said) => println!("{said}"),
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(1);
        }
    }
}
