// SPDX-License-Identifier: MIT OR Apache-2.0
//! One answer: the same bytes for any threads, batch and byte order, and never more than the raw bytes plus 64.

use crate::common::difference;
use crate::common::generate::{self, Random};
use h5z_gpu::{Class, Dtype, EncodeJob, Engine, Params};

fn dtypes() -> Vec<Dtype> {
    let integer = |size, signed| Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) };
    let little = [
        Dtype::F32,
        Dtype::F64,
        integer(1, false),
        integer(2, true),
        integer(4, true),
        integer(8, false),
        Dtype::F16,
        Dtype::BFLOAT16,
        // Extended precision, which no lossy codec takes.
        Dtype { size: 16, exponent_bits: 15, mantissa_bits: 64, ..Dtype::F32 },
        Dtype::bytes(0),
        Dtype::bytes(3),
        Dtype::bytes(255),
    ];
    let big = little[..6].iter().map(|&d| Dtype { big_endian: true, ..d });
    little.iter().copied().chain(big).collect()
}

const REQUESTS: [&str; 14] = [
    "mode=lossless",
    "mode=abs,bound=1e-3",
    "mode=abs,bound=1e-30",
    "mode=rel,bound=1e-9",
    "mode=pw_rel,bound=1e-12",
    "mode=psnr,bound=300",
    "mode=abs,bound=1e-3,codec=lorenzo",
    "mode=abs,bound=1e-30,codec=lorenzo",
    "mode=rel,bound=1e-9,codec=lorenzo",
    "mode=pw_rel,bound=1e-12,codec=lorenzo",
    "mode=abs,bound=1e-3,codec=planes",
    "mode=rel,bound=1e-9,codec=planes",
    "mode=psnr,bound=100,codec=planes",
    "mode=lossless,codec=planes",
];

#[test]
fn no_frame_is_larger_than_its_chunk_and_64_bytes() {
    let engine = Engine::with_threads(2);
    for (t, d) in dtypes().into_iter().enumerate() {
        let size = usize::from(d.size).max(1);
        for n in [1usize, 2, 3, 7, 16, 63, 64, 127, 128, 129, 1000, 4095, 4096, 4097, 10_000, 65_537] {
            for (a, request) in REQUESTS.iter().enumerate().filter(|(a, _)| n < 5000 || (a + t) % 3 == 0) {
                for name in ["bits", "noise", "hostile"] {
                    let raw = generate::input(name, (n + a) as u64, d, &[n as u64], None, n * size);
                    let params = Params::new(request.parse().unwrap(), d, &[n as u64]).unwrap();
                    let frame = engine.encode(&params, &raw);
                    assert!(
                        frame.len() <= raw.len() + 64,
                        "{} of {} bytes: {name} {n} {d:?} {request}",
                        frame.len(),
                        raw.len()
                    );
                    let out = engine.decode(&frame, raw.len() as u64).unwrap();
                    if a == 0 || !d.takes_bound() {
                        assert!(out == raw, "{name} {n} {d:?} {request}: {}", difference(&out, &raw));
                    }
                }
            }
        }
    }
}

#[test]
fn chunks_whose_shape_does_not_fit_their_bytes_keep_every_byte() {
    let engine = Engine::with_threads(1);
    for (k, request) in REQUESTS.iter().enumerate() {
        for (dims, len) in
            [(&[10u64, 10][..], 404), (&[10, 10], 396), (&[10, 10], 0), (&[], 0), (&[], 403), (&[100], 1)]
        {
            let params = Params::new(request.parse().unwrap(), Dtype::F32, dims).unwrap();
            let raw = generate::input("bits", k as u64, Dtype::bytes(1), &[], None, len);
            let frame = engine.encode(&params, &raw);
            assert!(frame.len() <= len + 64);
            assert_eq!(engine.decode(&frame, len as u64).unwrap(), raw, "{request} {dims:?} {len}");
        }
    }
}

#[test]
fn bytes_and_values_depend_on_neither_threads_nor_batch() {
    let mut random = Random(1);
    let mut inputs = Vec::new();
    for k in 0..24usize {
        let d = dtypes()[k % 11];
        let n = [40_000, 1, 4096, 777_777, 100][k % 5] * if k == 3 { 2 } else { 1 } / usize::from(d.size).max(1);
        let n = n.max(1) as u64;
        let name = generate::NAMES[random.below(generate::NAMES.len())];
        let raw = generate::input(name, k as u64, d, &[n], None, n as usize * usize::from(d.size).max(1));
        inputs.push((Params::new(REQUESTS[k % 10].parse().unwrap(), d, &[n]).unwrap(), raw));
    }
    // Above the size from which the checksum itself is shared between threads.
    let n = 3_000_003;
    let raw = generate::input("wave", 3, Dtype::F32, &[n], None, n as usize * 4);
    for (request, dims) in [
        ("mode=abs,bound=1e-2", &[n][..]),
        ("mode=abs,bound=1e-2,codec=lorenzo", &[n]),
        ("mode=pw_rel,bound=1e-2,codec=szx", &[n]),
        ("mode=abs,bound=1e-2,codec=planes", &[n / 3, 3]),
        ("mode=lossless,codec=ndzip", &[n]),
    ] {
        inputs.push((Params::new(request.parse().unwrap(), Dtype::F32, dims).unwrap(), raw.clone()));
    }

    let one = Engine::with_threads(1);
    let alone: Vec<Vec<u8>> = inputs.iter().map(|(p, raw)| one.encode(p, raw)).collect();
    let values = |engine: &Engine, k: usize| engine.decode(&alone[k], inputs[k].1.len() as u64).unwrap();
    let by_one: Vec<Vec<u8>> = (0..inputs.len()).map(|k| values(&one, k)).collect();
    for threads in [1, 2, 3, 8] {
        let engine = Engine::with_threads(threads);
        for (k, want) in by_one.iter().enumerate() {
            let got = values(&engine, k);
            assert!(got == *want, "{threads} threads, values {k}: {}", difference(&got, want));
        }
        for batch in [1, 2, 7, inputs.len()] {
            for (part, want) in inputs.chunks(batch).zip(alone.chunks(batch)) {
                let jobs: Vec<EncodeJob<'_>> = part.iter().map(|(params, raw)| EncodeJob { params, raw }).collect();
                // What was in the buffers before must not show.
                let mut out = vec![vec![0xEE; 100]; jobs.len()];
                engine.encode_batch(&jobs, &mut out);
                for (k, (got, want)) in out.iter().zip(want).enumerate() {
                    assert!(got == want, "{threads} threads, batch {batch}, job {k}: {}", difference(got, want));
                }
            }
        }
    }
}

#[test]
fn big_endian_chunks_are_their_little_endian_twins() {
    let engine = Engine::with_threads(1);
    for little in [Dtype::F32, Dtype::F64] {
        let big = Dtype { big_endian: true, ..little };
        let size = usize::from(little.size);
        let fill = if size == 4 { u64::from(1e20f32.to_bits()) } else { 1e20f64.to_bits() };
        for request in REQUESTS {
            for name in generate::NAMES {
                for n in [1u64, 130, 4096, 9000] {
                    let encode = |d| {
                        let raw = generate::input(name, n, d, &[n], Some(fill), n as usize * size);
                        let mut params = Params::new(request.parse().unwrap(), d, &[n]).unwrap();
                        params.fill = Some(fill);
                        let frame = engine.encode(&params, &raw);
                        let out = engine.decode(&frame, raw.len() as u64).unwrap();
                        (frame, out)
                    };
                    let ((a, x), (b, mut y)) = (encode(little), encode(big));
                    y.chunks_exact_mut(size).for_each(<[u8]>::reverse);
                    assert!(x == y, "{request} {name} {n}: {}", difference(&x, &y));
                    // The codecs see numbers, so the frames differ in the type and the checksum alone; `stored` and
                    // `bytes` keep raw bytes.
                    if ![0, 4].contains(&a[9]) && b[9] != 4 {
                        let same = |at: &usize| !(12..16).contains(at) && !(40..48).contains(at);
                        let first = (0..a.len()).filter(same).find(|&at| a.get(at) != b.get(at));
                        assert!(a.len() == b.len() && first.is_none(), "{request} {name} {n}: {}", difference(&a, &b));
                    }
                }
            }
        }
    }
}
