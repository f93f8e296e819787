// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host side of the GPU engine on a machine without a GPU, driven by a stand-in for the driver (`fake_cuda.c`).
//!
//! A library path and a driver's state belong to a process, so every test starts itself again with the stand-in in
//! front, and its body runs there. Kernels do not run; the stand-in calls back, and the CPU path answers. A build
//! without kernels must leave the driver alone, which is then what these tests see to.

mod stand_in;

use h5z_gpu::testing::abi::{DecodeArgs, DecodeChunk, EncodeArgs, EncodeChunk};
use h5z_gpu::{Bound, Codec, DecodeJob, Dtype, EncodeJob, Engine, Mode, Params, Request, testing};
use stand_in::{Fake, HOSTS_OWN, INSIDE, stand_in, start};
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

/// Runs `body` in a process of its own that finds the stand-in, which lets the CPU path answer for kernels.
fn with_fake(test: &str, env: &[(&str, &str)], body: fn(&Fake)) {
    if std::env::var_os(INSIDE).is_none() {
        start(test, &stand_in(""), env).unwrap_or_else(|why| panic!("{why}"));
        return;
    }
    let fake = Fake::open(Some(kernel));
    body(&fake);
    fake.judge();
}

impl Fake {
    /// Fails when the device should have done it all and did not, or the other way about.
    fn used(&self, all: bool) {
        assert_eq!(all, testing::images() > 0, "whether the device was used");
    }
}

/// What a kernel would do, done by the CPU path. The stand-in's device memory is this process's.
extern "C" fn kernel(name: *const c_char, ctas: u32, _threads: u32, args: *mut c_void) {
    if std::env::var_os("FAKE_CUDA_SILENT").is_some() {
        return;
    }
    let cpu = Engine::with_threads(1);
    // SAFETY: the stand-in hands on what the engine launched with, and the structs are the engine's own.
    unsafe {
        let name = CStr::from_ptr(name).to_str().expect("a name");
        let size = if name.ends_with("64") { 8 } else { 4 };
        if name.contains("_encode_") {
            let args = *args.cast::<EncodeArgs>();
            if name.contains("codebook") {
                assert_eq!(ctas, args.chunk_count);
                return;
            }
            // The CTAs of these kernels take one tile after the other.
            let takes = name == "szx_encode_f32" || name.starts_with("lorenzo_encode_write");
            assert!(ctas == args.tiles || takes && (1..args.tiles).contains(&ctas));
            if ["widen", "range", "plan", "interpolate"].iter().any(|k| name.contains(k)) {
                return;
            }
            for k in 0..args.chunk_count as usize {
                let c = *(args.chunks as *const EncodeChunk).add(k);
                let raw = std::slice::from_raw_parts(c.input as *const u8, c.values as usize * size);
                let (mode, rank) = ((c.head[2] >> 16) as u8, (c.head[2] >> 24) as usize);
                let bound = Bound::new(Mode::of(mode).expect("a mode"), if mode == 9 { 0.0 } else { c.bound })
                    .expect("a bound");
                let codec = match name.split('_').next() {
                    Some("ndzip") => Codec::Ndzip,
                    Some("lorenzo") => Codec::Lorenzo,
                    _ => Codec::Szx,
                };
                let dims: Vec<u64> = c.head[14..14 + rank].iter().map(|&d| d.into()).collect();
                let dtype = if size == 8 { Dtype::F64 } else { Dtype::F32 };
                let params = Params::new(Request::new(codec, bound), dtype, &dims).expect("parameters");
                let frame = cpu.encode(&params, raw);
                std::slice::from_raw_parts_mut(c.frame as *mut u8, frame.len()).copy_from_slice(&frame);
                *(args.lengths as *mut u64).add(k) = frame.len() as u64;
            }
        } else if name.contains("_decode_") {
            let args = *args.cast::<DecodeArgs>();
            if name.contains("tables") {
                assert_eq!(ctas, args.chunk_count);
                return;
            }
            assert_eq!(args.tiles, ctas);
            for k in 0..args.chunk_count as usize {
                let c = *(args.chunks as *const DecodeChunk).add(k);
                let frame = std::slice::from_raw_parts(c.frame as *const u8, c.frame_len as usize);
                let out = std::slice::from_raw_parts_mut(c.output as *mut u8, c.values as usize * size);
                *(args.verdicts as *mut u64).add(k) = if cpu.decode_into(frame, out).is_ok() { 1 } else { 2 };
            }
        }
    }
}

/// An engine that gives everything to the device.
fn gpu() -> Engine {
    Engine::with_device(2, 0)
}

/// [`compare`], also with one frame damaged.
fn round(engine: &Engine, sizes: &[usize]) -> bool {
    compare(engine, sizes, &[false, true])
}

/// Encodes and decodes a batch of chunks of the given numbers of values and compares with the CPU, with and without
/// damage to the first frame; true when the device did all that it can: frames that hold raw bytes are no work for it.
fn compare(engine: &Engine, sizes: &[usize], damage: &[bool]) -> bool {
    let cpu = Engine::with_threads(1);
    let value = |i: usize| (i as f64 * 0.01).sin() * 100.0;
    let raw = |(k, &n): (usize, &usize)| -> Vec<u8> {
        match k % 2 {
            0 => (0..n).flat_map(|i| (value(i) as f32).to_le_bytes()).collect(),
            _ => (0..n).flat_map(|i| value(i).to_le_bytes()).collect(),
        }
    };
    let raws: Vec<Vec<u8>> = sizes.iter().enumerate().map(raw).collect();
    let request = |(k, &n): (usize, &usize)| {
        let request = [
            Request::new(Codec::Szx, Bound::Absolute(0.01)),
            Request::new(Codec::Ndzip, Bound::Lossless),
            Request::new(Codec::Lorenzo, Bound::Relative(1e-3)),
        ][k % 3];
        Params::new(request, [Dtype::F32, Dtype::F64][k % 2], &[n as u64]).unwrap()
    };
    let requests: Vec<Params> = sizes.iter().enumerate().map(request).collect();
    let jobs: Vec<EncodeJob<'_>> = requests.iter().zip(&raws).map(|(params, raw)| EncodeJob { params, raw }).collect();
    let mut want = vec![Vec::new(); jobs.len()];
    cpu.encode_batch(&jobs, &mut want);
    let mut got = vec![Vec::new(); jobs.len()];
    let mut all = engine.encode_on_device(&jobs, &mut got).iter().all(|d| *d);
    engine.encode_batch(&jobs, &mut got);
    assert!(got == want, "frames differ from the CPU's");
    for &damaged in damage {
        let mut frames = want.clone();
        if damaged {
            let last = frames[0].len() - 1;
            frames[0][last] ^= 1;
        }
        let mut outs: Vec<Vec<u8>> = raws.iter().map(|r| vec![0; r.len()]).collect();
        let mut jobs: Vec<DecodeJob<'_>> =
            frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
        let done = engine.decode_on_device(&mut jobs);
        all &= damaged || done.iter().zip(&want).all(|(d, frame)| *d || frame[9] == 0);
        assert!(!(damaged && done[0]), "a damaged frame was taken");
        let results = engine.decode_batch(&mut jobs);
        assert_eq!(results[0].is_err(), damaged);
        for (k, out) in outs.iter().enumerate().skip(usize::from(damaged)) {
            assert!(results[k].is_ok());
            assert!(*out == cpu.decode(&want[k], raws[k].len() as u64).unwrap(), "values differ from the CPU's");
        }
    }
    all
}

#[test]
fn bytes_and_values_pass_through_streams() {
    with_fake("bytes_and_values_pass_through_streams", &[], |fake| {
        let sizes: Vec<usize> = (0..40).map(|k| 2 + k * k * 37).chain([20_000_000, 9_000_000]).collect();
        fake.used(round(&gpu(), &sizes));
    });
}

#[test]
fn kernels_follow_early_where_they_wait_themselves() {
    // Those for older devices do not, and the stand-in objects where one follows early all the same.
    for capability in ["75", "90"] {
        with_fake("kernels_follow_early_where_they_wait_themselves", &[("FAKE_CUDA_CAPABILITY", capability)], |fake| {
            let used = round(&gpu(), &[5000; 3]);
            let waits = std::env::var("FAKE_CUDA_CAPABILITY").as_deref() == Ok("90");
            assert_eq!(fake.number("fake_cuda_early") > 0, used && waits);
        });
    }
}

#[test]
fn every_device_takes_its_image_or_leaves_it() {
    for capability in ["61", "70", "72", "75", "80", "86", "87", "89", "90", "100", "103", "110", "120", "121", "130"] {
        with_fake("every_device_takes_its_image_or_leaves_it", &[("FAKE_CUDA_CAPABILITY", capability)], |_| {
            let capability: u32 = std::env::var("FAKE_CUDA_CAPABILITY").unwrap().parse().unwrap();
            // Machine code of its major version, or PTX.
            let code = |&(arch, ptx): &(u32, bool)| arch <= capability && (ptx || arch / 10 == capability / 10);
            let served = testing::architectures().iter().any(code);
            assert_eq!(round(&gpu(), &[5000; 3]), served, "capability {capability}");
            let number = format!("{}.{}", capability / 10, capability % 10);
            let named = Engine::gpu().is_err_and(|why| why.contains(&number));
            assert!(testing::images() == 0 || named != served);
        });
    }
}

#[test]
fn a_driver_that_is_too_old_is_not_started() {
    // Drivers 520, 525 and 580.
    for driver in ["11080", "12000", "13000"] {
        with_fake("a_driver_that_is_too_old_is_not_started", &[("FAKE_CUDA_DRIVER", driver)], |fake| {
            let driver: u32 = std::env::var("FAKE_CUDA_DRIVER").unwrap().parse().unwrap();
            let used = round(&gpu(), &[5000; 3]);
            assert_eq!(used, testing::images() > 0 && driver >= 1000 * testing::cuda_major());
            if let Err(why) = Engine::gpu()
                && testing::images() > 0
            {
                assert!(why.contains(&format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10)), "{why}");
                assert!(why.contains("install driver 5"), "{why}");
                // No more than its version was asked.
                assert_eq!(fake.calls(), 1);
            }
        });
    }
}

#[test]
fn kernels_that_write_nothing_are_found_out() {
    with_fake("kernels_that_write_nothing_are_found_out", &[("FAKE_CUDA_SILENT", "1")], |_| {
        assert!(!round(&gpu(), &[300_000, 5000]));
    });
}

#[test]
fn without_memory_the_cpu_does_it() {
    with_fake("without_memory_the_cpu_does_it", &[("FAKE_CUDA_MEMORY", "8000000")], |fake| {
        // 12 MB do not fit, what is smaller does, before and after.
        fake.used(round(&gpu(), &[5000]));
        assert!(!round(&gpu(), &[3_000_000]));
        fake.used(round(&gpu(), &[5001]));
    });
}

#[test]
fn without_a_device_the_cpu_does_it() {
    with_fake("without_a_device_the_cpu_does_it", &[("FAKE_CUDA_DEVICES", "0")], |fake| {
        assert!(!round(&gpu(), &[5000]));
        let calls = fake.calls();
        assert!(!round(&gpu(), &[5000]) && fake.calls() == calls, "asked again and again");
    });
}

#[test]
fn without_a_driver_the_cpu_does_it() {
    if std::env::var_os(INSIDE).is_some() {
        assert!(!round(&gpu(), &[5000]) || Engine::gpu().ok().is_some_and(|n| !n.starts_with("Fake")));
        return;
    }
    start("without_a_driver_the_cpu_does_it", Path::new("/nonexistent"), &[]).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_driver_that_lacks_a_function_is_not_used() {
    let me = "a_driver_that_lacks_a_function_is_not_used";
    if std::env::var_os(INSIDE).is_some() {
        return with_fake(me, &[], |_| assert!(!round(&gpu(), &[5000])));
    }
    for lacking in ["cuCtxSetCurrent", "cuMemFreeHost", "cuEventRecord"] {
        start(me, &stand_in(lacking), &[]).unwrap_or_else(|why| panic!("without {lacking}: {why}"));
    }
}

/// Whether a start whose driver calls fail one by one with `code` is tried again, and after a pause only.
fn starts_after(me: &str, code: &str, again: bool) {
    if std::env::var_os(INSIDE).is_some() {
        let fake = Fake::open(Some(kernel));
        let first = Engine::gpu();
        let calls = fake.calls();
        // Call 1 begins every start.
        let begins = std::env::var("FAKE_CUDA_FAIL_AT").is_ok_and(|at| at == "1");
        assert!(first.is_err() || !begins, "a start whose first call fails");
        if testing::images() > 0
            && let Err(why) = first
        {
            assert!(!round(&gpu(), &[5000]) && fake.calls() == calls, "no pause");
            assert!(why.contains("CUDA_ERROR_") && why.contains("tried again") == again, "{why}");
            assert_eq!(Engine::gpu().is_ok(), again, "{why}");
            assert_eq!(round(&gpu(), &[5000]), again);
        }
        return fake.judge();
    }
    for at in 1..=12 {
        let env = [("FAKE_CUDA_FAIL_AT", &*at.to_string()), ("FAKE_CUDA_CODE", code)];
        start(me, &stand_in(""), &env).unwrap_or_else(|why| panic!("call {at}: {why}"));
    }
}

#[test]
fn a_start_without_memory_is_tried_again() {
    starts_after("a_start_without_memory_is_tried_again", "2", true);
}

#[test]
fn a_start_without_a_device_is_final() {
    starts_after("a_start_without_a_device_is_final", "100", false);
}

/// Runs in a forked child; the parent gets its answer.
fn in_a_child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child computes and leaves; no other thread of this process holds a lock that it needs.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(false);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: the child just made.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    status == 0
}

#[test]
fn a_forked_child_leaves_the_driver_alone() {
    with_fake("a_forked_child_leaves_the_driver_alone", &[], |fake| {
        // Enough bytes for several threads, which the child does not have.
        fake.used(round(&gpu(), &[5000, 700_000]));
        let calls = fake.calls();
        assert!(in_a_child(|| !round(&gpu(), &[300_000, 700_000]) && fake.calls() == calls), "the child");
        fake.used(round(&gpu(), &[5000, 700_000]));
    });
}

#[test]
fn a_forked_child_may_start_what_its_parent_did_not() {
    with_fake("a_forked_child_may_start_what_its_parent_did_not", &[], |fake| {
        assert!(in_a_child(|| round(&gpu(), &[300_000, 700_000]) == (testing::images() > 0)), "the child");
        fake.used(round(&gpu(), &[5000, 700_000]));
    });
}

#[test]
fn more_threads_than_streams_get_the_same_bytes() {
    with_fake("more_threads_than_streams_get_the_same_bytes", &[], |fake| {
        std::thread::scope(|s| {
            for _ in 0..12 {
                s.spawn(|| {
                    fake.set_current();
                    (0..5).for_each(|k| _ = round(&gpu(), &[100_000 + k, 77]));
                    assert_eq!(fake.number("fake_cuda_current"), HOSTS_OWN);
                });
            }
        });
        assert!(testing::images() == 0 || fake.calls() > 0, "the device was not used");
    });
}

#[test]
fn the_cpu_on_demand() {
    with_fake("the_cpu_on_demand", &[("H5Z_GPU_DEVICE", "cpu")], |fake| {
        assert!(!round(&gpu(), &[5000]));
        assert_eq!(fake.calls(), 0);
    });
}

#[test]
fn small_batches_start_nothing() {
    with_fake("small_batches_start_nothing", &[], |fake| {
        assert!(!round(Engine::global(), &[5000]));
        assert_eq!(fake.calls(), 0);
    });
}

#[test]
fn constant_chunks_start_nothing() {
    with_fake("constant_chunks_start_nothing", &[], |fake| {
        let params = |dtype| Params::new(Request::new(Codec::Szx, Bound::Absolute(0.1)), dtype, &[1 << 20]);
        let (f32s, f64s) = (params(Dtype::F32).unwrap(), params(Dtype::F64).unwrap());
        let (mut small, large) = (1.5f32.to_le_bytes().repeat(1 << 20), f64::NAN.to_le_bytes().repeat(1 << 20));
        let done = |small: &[u8]| {
            let jobs = [EncodeJob { params: &f32s, raw: small }, EncodeJob { params: &f64s, raw: &large }];
            gpu().encode_on_device(&jobs, &mut [Vec::new(), Vec::new()])
        };
        assert_eq!(done(&small), [false, false]);
        assert_eq!(fake.calls(), 0, "the device was asked");
        small[3_000_001] ^= 1;
        assert_eq!(done(&small), [testing::images() > 0, false]);
    });
}

#[test]
fn elements_of_any_size_are_encoded() {
    with_fake("elements_of_any_size_are_encoded", &[], |_| {
        let raw: Vec<u8> = (0..1 << 16).map(|i: u32| (i >> 8) as u8).collect();
        // 0: elements of more than 255 bytes, or of a size nobody knows.
        for size in [0, 1, 2, 3, 4, 8, 12, 255] {
            let params = Params::new(Request::default(), Dtype::bytes(size), &[]).unwrap();
            let jobs = [EncodeJob { params: &params, raw: &raw }, EncodeJob { params: &params, raw: &[] }];
            let mut out = vec![Vec::new(); 2];
            gpu().encode_batch(&jobs, &mut out);
            for (job, frame) in jobs.iter().zip(&out) {
                assert_eq!(*frame, Engine::with_threads(1).encode(&params, job.raw), "{size}");
            }
        }
    });
}

#[test]
fn chunks_from_the_given_size_on_go_to_the_device() {
    with_fake("chunks_from_the_given_size_on_go_to_the_device", &[("H5Z_GPU_MIN_BYTES", "20000")], |fake| {
        assert!(!round(Engine::global(), &[4999]));
        fake.used(round(Engine::global(), &[5000]));
    });
}

#[test]
fn every_codec_has_limits_of_its_own() {
    with_fake("every_codec_has_limits_of_its_own", &[], |_| {
        let cpu = Engine::with_threads(1);
        let done = |requests: &[(Codec, Bound, usize)]| {
            let value = |i: usize| ((i as f32 * 0.01).sin() * 100.0).to_le_bytes();
            let raws: Vec<Vec<u8>> = requests.iter().map(|a| (0..a.2 / 4).flat_map(value).collect()).collect();
            let params =
                |a: &(Codec, Bound, usize)| Params::new(Request::new(a.0, a.1), Dtype::F32, &[a.2 as u64 / 4]).unwrap();
            let params: Vec<Params> = requests.iter().map(params).collect();
            let jobs: Vec<EncodeJob<'_>> =
                params.iter().zip(&raws).map(|(params, raw)| EncodeJob { params, raw }).collect();
            let mut frames = vec![Vec::new(); jobs.len()];
            let encoded = Engine::global().encode_on_device(&jobs, &mut frames);
            cpu.encode_batch(&jobs, &mut frames);
            let mut outs: Vec<Vec<u8>> = raws.iter().map(|r| vec![0; r.len()]).collect();
            let mut jobs: Vec<DecodeJob<'_>> =
                frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
            let decoded = Engine::global().decode_on_device(&mut jobs);
            encoded.into_iter().zip(decoded).collect::<Vec<_>>()
        };
        let gpu = testing::images() > 0;
        let bound = Bound::Absolute(0.01);
        for (codec, bound, encode, decode) in [
            (Codec::Szx, bound, 1 << 20, 8 << 20),
            (Codec::Lorenzo, bound, 256 << 10, 512 << 10),
            (Codec::Ndzip, Bound::Lossless, 1 << 20, 1 << 20),
        ] {
            for size in [encode - 4, encode, decode - 4, decode] {
                let want = [(gpu && size >= encode, gpu && size >= decode)];
                assert_eq!(done(&[(codec, bound, size)]), want, "{codec:?}, {size} bytes");
            }
        }
        // Each counts what is its own.
        let mixed = [(Codec::Szx, bound, 1 << 19), (Codec::Lorenzo, bound, 1 << 18), (Codec::Lorenzo, bound, 1 << 18)];
        assert_eq!(done(&mixed), [(false, false), (gpu, gpu), (gpu, gpu)]);
    });
}

#[test]
fn the_device_is_chosen_by_number_and_by_rank() {
    let me = "the_device_is_chosen_by_number_and_by_rank";
    if std::env::var_os(INSIDE).is_some() {
        return with_fake(me, &[], |_| println!("name={}.", Engine::gpu().ok().unwrap_or("none")));
    }
    for (name, value, want) in [
        ("H5Z_GPU_DEVICE", "1", "Fake 1"),
        ("H5Z_GPU_DEVICE", "auto", "Fake 0"),
        ("SLURM_LOCALID", "3", "Fake 1"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "2", "Fake 0"),
        ("H5Z_GPU_DEVICE", "7", "none"),
    ] {
        let want = if testing::images() > 0 { want } else { "none" };
        let said = start(me, &stand_in(""), &[(name, value)]).unwrap_or_else(|why| panic!("{why}"));
        assert!(said.contains(&format!("name={want}.")), "{name}={value}: {said}");
    }
}

/// Every driver call of two rounds fails in turn. Bytes stay right and the host's context comes back, always; what
/// else must hold follows from the error and from when it came.
fn every_call_fails(me: &str, code: &str, ends_context: bool) {
    if std::env::var_os(INSIDE).is_some() {
        let fake = Fake::open(Some(kernel));
        let started = Engine::gpu().ok().is_some();
        let sizes: [&[usize]; 2] = [&[600_000, 5000], &[4096]];
        sizes.iter().for_each(|s| _ = compare(&gpu(), s, &[false]));
        let calls = fake.calls();
        let at: usize = std::env::var("FAKE_CUDA_FAIL_AT").unwrap().parse().unwrap();
        // An error of a call that puts the context back is noticed by the next.
        compare(&gpu(), &[4096], &[false]);
        let noticed = fake.calls();
        let again = compare(&gpu(), &[5000, 5000], &[false]);
        if !started || (ends_context && at <= calls) {
            assert!(!again && fake.calls() == noticed, "the driver is used after its end");
        } else if !ends_context {
            fake.used(again);
        }
        fake.judge();
        println!("calls={calls}.");
        return;
    }
    let run = |at: usize| {
        let sticky = if ends_context { "1" } else { "0" };
        let env = [("FAKE_CUDA_FAIL_AT", &*at.to_string()), ("FAKE_CUDA_CODE", code), ("FAKE_CUDA_STICKY", sticky)];
        start(me, &stand_in(""), &env)
    };
    let said = run(1_000_000).unwrap_or_else(|why| panic!("{why}"));
    let calls = said.split("calls=").nth(1).and_then(|s| s.split('.').next()).expect("the number of calls");
    let calls: usize = calls.parse().unwrap();
    assert!(testing::images() == 0 || calls > 60, "only {calls} calls");
    let failed: Vec<String> =
        (1..=calls).filter_map(|at| Some(format!("call {at} of {calls}: {}", run(at).err()?))).collect();
    assert!(failed.is_empty(), "{} of {calls}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_call_out_of_memory() {
    every_call_fails("every_call_out_of_memory", "2", false);
}

#[test]
fn every_call_ending_the_context() {
    every_call_fails("every_call_ending_the_context", "700", true);
}
