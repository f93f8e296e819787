// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the GPU with the CPU: the same frames, the same values, the same errors. Needs a GPU, or an emulated one: tests/gpu/kernels.rs.
//!
//! ```text
//! gpu_check [--cases N] [--seed N] [--largest VALUES] [--codec NAME]
//! gpu_check --stages ROUNDS [--seed N] [--codec NAME]
//! gpu_check --arrays ROUNDS [--seed N] [--largest VALUES] [--codec NAME]
//! gpu_check --vectors DIR [--codec NAME]
//! gpu_check --values N [--seconds S] [--seed N] [--largest VALUES] [--skip BOUNDS] [--spoil bound|bits]
//! ```
//! Random and hostile chunks of random shapes, types, bounds and batches are encoded and decoded on both, and damaged
//! frames, with their checksums made right again, are given to both. Ends with 1 at the first difference, which it names.
//! `--stages ROUNDS` compares single stages on arrays of all kinds, and names the first one that differs, and where.
//! `--arrays ROUNDS` compares arrays in the device's memory, of all layouts, with the same in host memory.
//! `--vectors DIR` checks golden vectors instead (tests/vectors/v1): each is written and read by every backend.
//! `--values N` sends N values through encoding, decoding and an exact judge on the device, but begins no batch after `--seconds`;
//! `--skip` leaves out bounds of patterns that a run before came through, `--spoil` breaks a promise, which must be found.
//! `--codec NAME` leaves out what the codec's kernels have no part in, as far as one can tell.

#[path = "gpu_check/arrays.rs"]
mod arrays;
#[path = "../common/mod.rs"]
mod common;
#[path = "gpu_check/stages/mod.rs"]
mod stages;
#[path = "gpu_check/values/mod.rs"]
mod values;

use common::{refused, vectors::Vector};
use h5z_gpu::{Bound, Class, Codec, DecodeJob, Dtype, EncodeJob, Engine, Params, Request};

/// Codec number of `lorenzo`.
const LORENZO: u8 = 2;

/// Numbers of no particular order: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A chunk with what is asked of it.
struct Case {
    params: Params,
    raw: Vec<u8>,
    what: String,
}

fn extents(r: &mut Random, largest: u64) -> Vec<u64> {
    let edge = |r: &mut Random, most: u64| {
        let near = [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 4095, 4096, 4097, 8191, 8192];
        let n = if r.one_in(2) { near[r.below(near.len() as u64) as usize] } else { 1 + r.below(most) };
        n.clamp(1, most)
    };
    let rank = 1 + r.below(4);
    let mut left = 1 + r.below(largest);
    let mut dims = Vec::new();
    for k in 0..rank {
        let most = if k + 1 == rank { left } else { (left as f64).powf(1.0 / (rank - k) as f64) as u64 + 1 };
        let d = edge(r, most.max(1));
        dims.push(d);
        left = (left / d).max(1);
    }
    dims
}

/// Values as f64, of one of many kinds, with odd ones strewn in.
fn values(r: &mut Random, dims: &[u64]) -> Vec<f64> {
    let n = dims.iter().product::<u64>() as usize;
    let kind = r.below(12);
    let scale = 10f64.powi(r.below(12) as i32 - 6);
    let (f1, f2) = (r.unit() * 0.1, r.unit() * 0.01);
    let mut walk = 0.0;
    // Waves along every axis, with or without noise.
    let waves: Vec<(f64, f64)> = dims.iter().map(|_| (r.unit() * 0.3, r.unit() * 6.0)).collect();
    let noise = if r.one_in(2) { 0.0 } else { 10f64.powi(-(r.below(6) as i32)) };
    let mut v: Vec<f64> = (0..n)
        .map(|i| {
            let x = i as f64;
            match kind {
                0 => (x * f1).sin() * scale + (x * f2).cos() * 10.0 * scale,
                1 => {
                    walk += (r.unit() - 0.5) * scale;
                    walk
                }
                2 => scale,
                3 => r.unit() * scale,
                4 => (r.unit() - 0.5) * 10f64.powi(r.below(60) as i32 - 30),
                5 => (x / 700.0).floor() * scale,
                6 => f64::from_bits(r.next()),
                9 | 10 => {
                    let mut left = i as u64;
                    let axes = dims.iter().zip(&waves).rev();
                    let sum: f64 = axes
                        .map(|(&d, (f, phase))| {
                            let at = left % d;
                            left /= d;
                            (at as f64 * f + phase).sin()
                        })
                        .sum();
                    (sum + noise * (r.unit() - 0.5)) * scale
                }
                // Up and down along every axis: each axis of differences doubles the values.
                11 => {
                    let mut left = i as u64;
                    let odd = dims.iter().rev().fold(0, |sum, &d| {
                        let at = left % d;
                        left /= d;
                        sum + at
                    });
                    if odd % 2 == 0 { scale } else { -scale }
                }
                7 => {
                    if (i / 300) % 3 == 0 {
                        0.0
                    } else {
                        (x * f1).sin() * scale
                    }
                }
                _ => 1e-40 * r.unit() * if r.one_in(3) { -1.0 } else { 1.0 },
            }
        })
        .collect();
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, 1e38, 1e-310, 1e-45, 1e20, 9.97e36];
    match r.below(8) {
        0 => (0..1 + n / 50).for_each(|_| v[r.below(n as u64) as usize] = odd[r.below(odd.len() as u64) as usize]),
        1 => {
            let x = odd[r.below(odd.len() as u64) as usize];
            let (from, len) = (r.below(n as u64) as usize, r.below(600) as usize);
            v[from..(from + len).min(n)].fill(x);
        }
        2 => (0..1 + n / 200).for_each(|_| v[r.below(n as u64) as usize] *= 1e6),
        // A few.
        3 => (0..1 + r.below(4)).for_each(|_| v[r.below(n as u64) as usize] = odd[r.below(odd.len() as u64) as usize]),
        // Land between seas: coasts along the last two axes, some now and then with a gap.
        4 => {
            let (x, width) = (odd[r.below(odd.len() as u64) as usize], *dims.last().expect("an axis") as usize);
            let (f, g, level) = (0.01 + r.unit() * 0.2, 0.01 + r.unit() * 0.2, r.unit() * 2.0 - 1.0);
            let gaps = r.one_in(2);
            for (i, v) in v.iter_mut().enumerate() {
                let land = ((i % width) as f64 * f).sin() + ((i / width) as f64 * g).cos() > level;
                *v = if land && !(gaps && r.one_in(500)) { x } else { *v };
            }
        }
        _ => {}
    }
    v
}

fn case(r: &mut Random, largest: u64, only: Option<Codec>) -> Case {
    let dims = extents(r, largest);
    let n = dims.iter().product::<u64>() as usize;
    let wide = r.one_in(3);
    let mut dtype = if wide { Dtype::F64 } else { Dtype::F32 };
    dtype.big_endian = r.one_in(6);
    let integers = r.one_in(10);
    if integers {
        dtype = Dtype { class: Class::Integer, exponent_bits: 0, mantissa_bits: 0, ..dtype };
    }
    let v = values(r, &dims);
    let mut raw = Vec::with_capacity(n * 8);
    for x in &v {
        match (integers, wide) {
            (true, true) => raw.extend((*x as i64).to_le_bytes()),
            (true, false) => raw.extend((*x as i32).to_le_bytes()),
            (false, true) => raw.extend(x.to_le_bytes()),
            (false, false) => raw.extend((*x as f32).to_le_bytes()),
        }
    }
    let size = if wide { 8 } else { 4 };
    let bits = |raw: &[u8], i: usize| {
        let mut b = [0; 8];
        b[..size].copy_from_slice(&raw[size * i..size * i + size]);
        u64::from_le_bytes(b)
    };
    // +0 is one that some codecs take for none.
    let fill = match r.below(12) {
        0 => Some(0),
        1..=3 => Some(bits(&raw, r.below(n as u64) as usize)),
        _ => None,
    };
    if dtype.big_endian {
        raw.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    let power = 10f64.powi(-(r.below(7) as i32));
    let bound = match r.below(if integers { 1 } else { 12 }) {
        0 | 1 => Bound::Lossless,
        2..=4 => Bound::Absolute(power * (1.0 + r.unit()) * 10f64.powi(r.below(5) as i32 - 2)),
        5 | 6 => Bound::Relative(power * 0.1 * (1.0 + r.unit())),
        7 => Bound::Psnr(20.0 + 10.0 * r.below(10) as f64 + r.unit()),
        8 if r.one_in(2) => {
            let b = f64::from_bits(r.next() >> 1);
            Bound::Absolute(if b > 0.0 && b < 1e300 { b } else { 5e-324 })
        }
        // The largest value has as many quanta as it may, or a half or a quarter.
        9 | 10 => {
            let most = v.iter().filter(|x| x.abs() < 1e300).fold(1e-300, |m: f64, x| m.max(x.abs()));
            Bound::Absolute(most / 2f64.powi(29 + r.below(3) as i32))
        }
        _ => Bound::PointwiseRelative(power * 0.1 * (1.0 + r.unit())),
    };
    let planes = !matches!(bound, Bound::PointwiseRelative(_));
    let codec = match r.below(if planes { 6 } else { 4 }) {
        k if bound == Bound::Lossless => {
            if k < 2 {
                Codec::Ndzip
            } else {
                Codec::Auto
            }
        }
        0 | 1 => Codec::Lorenzo,
        4 => Codec::Planes,
        5 => Codec::PlanesDense,
        _ => Codec::Auto,
    };
    let request = match only {
        Some(Codec::Ndzip) => Request { codec: Codec::Ndzip, bound: Bound::Lossless },
        Some(Codec::Planes) if !planes => Request { codec: Codec::Auto, bound },
        // Either level.
        Some(Codec::Planes) => Request { codec: if r.one_in(2) { Codec::Planes } else { Codec::PlanesDense }, bound },
        Some(codec) if bound != Bound::Lossless => Request { codec, bound },
        _ => Request { codec, bound },
    };
    let mut params = Params::new(request, dtype, &dims).expect("a sensible request");
    params.fill = fill;
    let mut what = format!("{:?} {dims:?} of {dtype:?}, {:?}, fill {fill:x?}", request.codec, request.bound);
    if r.one_in(6) {
        // What was lossy once, again, as a file that is rewritten.
        let engine = Engine::with_threads(1);
        raw = engine.decode(&engine.encode(&params, &raw), raw.len() as u64).expect("a whole frame");
        what += ", written again";
    }
    Case { params, raw, what }
}

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
        if frame[9] == LORENZO && r.one_in(4) {
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
            if fine[k] && !done[k] && frames[k][9] == LORENZO {
                return Err(format!("{how} {}: the GPU refuses what the CPU takes", c.what));
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

/// Every golden vector, written and read by every backend, the GPU among them; and the frames that must be refused, by the GPU.
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
    let (mut vectors, mut only, mut rounds, mut whole) = (None, None, 0, 0);
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
            _ => panic!("unknown argument {arg}; see the head of this file"),
        }
    }
    let gpu = Engine::with_device(4, 0);
    let cpu = Engine::with_threads(2);
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
    let mut made = 0;
    while made < cases {
        let batch: Vec<Case> = (0..1 + r.below(8)).map(|_| case(&mut r, largest, only)).collect();
        made += batch.len() as u64;
        check(&batch, &mut r, &gpu, &cpu, &mut tally)
            .map_err(|why| format!("DIFFERENT after {made} chunks (seed {seed}): {why}"))?;
    }
    if tally.encoded == 0 || tally.decoded == 0 {
        return Err("nothing ran on the GPU".into());
    }
    Ok(format!(
        "parity on {name}: {made} chunks, {} encoded and {} decoded on the GPU, {} damaged frames, {:?} lists of residuals by {DECODERS:?}, all as on the CPU; {} left to the CPU",
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
