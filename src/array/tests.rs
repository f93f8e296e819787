// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays of every layout against plain indexing, and their frames against those of dense chunks.

use super::*;
use crate::engine::Engine;
use codecs::params::{Bound, Dtype, Params};

/// The type of this machine's f32.
const F32: Dtype = Dtype { big_endian: cfg!(target_endian = "big"), ..Dtype::F32 };

/// A dense array of f32 in which each value differs, and the same values with strides of every kind.
struct Case {
    shape: Vec<u64>,
    /// Memory that the strides lie in.
    memory: Vec<f32>,
    /// Place of the first element in it, and bytes from element to element.
    first: usize,
    strides: Vec<i64>,
}

impl Case {
    /// `order`: axes from the slowest in memory to the fastest; `gaps`: elements left out behind each; `turned`: walked
    /// backwards.
    fn new(shape: &[u64], order: &[usize], gaps: &[u64], turned: &[bool]) -> Case {
        let (mut strides, mut step, mut first) = (vec![0i64; shape.len()], 1, 0);
        for &k in order.iter().rev() {
            strides[k] = step;
            step *= (shape[k] + gaps[k]) as i64;
        }
        for k in 0..shape.len() {
            if turned[k] {
                first += (shape[k] as i64 - 1) * strides[k];
                strides[k] = -strides[k];
            }
        }
        let mut case =
            Case { shape: shape.to_vec(), memory: vec![-5.0; step as usize], first: first as usize, strides };
        case.each(|at, value, memory| memory[at] = value);
        case.strides.iter_mut().for_each(|s| *s *= 4);
        case
    }

    /// For each element in order: its place in memory and its value.
    fn each(&mut self, mut f: impl FnMut(usize, f32, &mut [f32])) {
        let n: u64 = self.shape.iter().product();
        for i in 0..n {
            let (mut rest, mut at) = (i, self.first as i64);
            for (&d, &s) in self.shape.iter().zip(&self.strides).rev() {
                at += (rest % d) as i64 * s;
                rest /= d;
            }
            f(at as usize, (i as f32 * 0.01).sin(), &mut self.memory);
        }
    }

    fn array(&mut self) -> Array {
        let data = self.memory[self.first..].as_mut_ptr().cast();
        // SAFETY: every element lies in `memory`, which the case keeps.
        #[allow(unsafe_code)]
        unsafe {
            Array::new(data, 4, &self.shape, Some(&self.strides)).unwrap()
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case::new(&[1000], &[0], &[0], &[false]),
        Case::new(&[1000], &[0], &[0], &[true]),
        Case::new(&[40, 33], &[0, 1], &[0, 0], &[false; 2]),
        Case::new(&[40, 33], &[1, 0], &[0, 3], &[false, true]),
        Case::new(&[9, 20, 31], &[0, 1, 2], &[0, 0, 1], &[false; 3]),
        Case::new(&[9, 20, 31], &[2, 0, 1], &[1, 2, 0], &[true, false, true]),
        Case::new(&[3, 1, 8, 9], &[0, 1, 2, 3], &[0; 4], &[false; 4]),
    ]
}

/// Chunk extents for a shape, and the origins that cover it.
fn chunks(shape: &[u64]) -> (Vec<u64>, Vec<i64>) {
    let chunk: Vec<u64> = shape.iter().map(|&n| n.div_ceil(3).max(1)).collect();
    let mut all = vec![vec![]];
    for (&n, &c) in shape.iter().zip(&chunk) {
        all = all
            .iter()
            .flat_map(|o: &Vec<i64>| (0..n).step_by(c as usize).map(|at| [&o[..], &[at as i64]].concat()))
            .collect();
    }
    (chunk, all.concat())
}

/// The values of a chunk at `origin` of the dense array, 7 beyond it.
fn dense(shape: &[u64], chunk: &[u64], origin: &[i64]) -> Vec<f32> {
    let n: u64 = chunk.iter().product();
    let value = |i: u64| {
        let (mut rest, mut at, mut step) = (i, 0, 1);
        for ((&c, &d), &o) in chunk.iter().zip(shape).zip(origin).rev() {
            let k = o as u64 + rest % c;
            if k >= d {
                return 7.0;
            }
            (rest, at, step) = (rest / c, at + k * step, step * d);
        }
        (at as f32 * 0.01).sin()
    };
    (0..n).map(value).collect()
}

fn frames(case: &mut Case, chunk: &[u64], origins: &[i64], threads: usize, fill: bool) -> Vec<Vec<u8>> {
    let mut params = Params::new(Bound::Absolute(1e-3).into(), F32, chunk).unwrap();
    params.fill = fill.then(|| u64::from(7f32.to_bits()));
    let mut work = Encoding::new(case.array(), params, chunk, origins, Some(&7f32.to_ne_bytes()), threads).unwrap();
    let mut all = Vec::new();
    loop {
        let some = work.next().unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some.into_iter().map(<[u8]>::to_vec));
    }
}

#[test]
fn frames_are_those_of_dense_chunks() {
    for mut case in cases() {
        let (shape, (chunk, origins)) = (case.shape.clone(), chunks(&case.shape));
        for threads in [1, 3] {
            let got = frames(&mut case, &chunk, &origins, threads, true);
            assert_eq!(got.len(), origins.len() / chunk.len());
            for (frame, origin) in got.iter().zip(origins.chunks(chunk.len())) {
                let values = dense(&shape, &chunk, origin);
                let mut params = Params::new(Bound::Absolute(1e-3).into(), F32, &chunk).unwrap();
                params.fill = Some(u64::from(7f32.to_bits()));
                assert_eq!(*frame, Engine::with_threads(1).encode(&params, bytemuck::cast_slice(&values)), "{shape:?}");
            }
        }
    }
}

/// Batches as a GPU gets them, by an engine without one.
fn in_batches(_: usize, _: usize) -> sharing::Sharing {
    sharing::Sharing { batch: 4, lanes: 2, engine: sharing::Coder::Gpu(vec![Engine::global()]) }
}

#[test]
fn batches_for_a_gpu_make_the_same_frames_and_the_same_array() {
    for mut case in cases() {
        let (chunk, origins) = chunks(&case.shape);
        let want = frames(&mut case, &chunk, &origins, 1, false);
        let params = Params::new(Bound::Absolute(1e-3).into(), F32, &chunk).unwrap();
        let beyond = 7f32.to_ne_bytes();
        let mut work = Encoding::by(case.array(), params, &chunk, &origins, Some(&beyond), 1, in_batches).unwrap();
        let mut got = Vec::new();
        while let Ok(some @ [_, ..]) = work.next().as_deref() {
            got.extend(some.iter().map(|f| f.to_vec()));
        }
        drop(work);
        assert_eq!(got, want);
        // A damaged frame is one in its batch, and chunks outside of the array leave it alone.
        let damaged = got.len() / 2;
        let at = got[damaged].len() / 2;
        got[damaged][at] ^= 1;
        let frames: Vec<&[u8]> = got.iter().map(Vec::as_slice).collect();
        let rank = chunk.len();
        let n: usize = case.shape.iter().product::<u64>() as usize;
        for shift in [0, 1] {
            let moved: Vec<i64> = origins
                .iter()
                .enumerate()
                .map(|(i, &o)| o - shift * i64::from(i % rank == 0) * chunk[0] as i64)
                .collect();
            let [mut one, mut two] = [vec![9f32; n], vec![9f32; n]];
            // SAFETY: dense arrays that outlive their use.
            #[allow(unsafe_code)]
            let array = |v: &mut Vec<f32>| unsafe { Array::new(v.as_mut_ptr().cast(), 4, &case.shape, None).unwrap() };
            let by_batches = decode_by(Frames::Memory(&frames), &mut array(&mut one), &chunk, &moved, 1, in_batches);
            let alone = decode(Frames::Memory(&frames), &mut array(&mut two), &chunk, &moved, 1).unwrap();
            assert_eq!(by_batches.unwrap(), alone, "{:?}", case.shape);
            let failed: Vec<usize> = (0..alone.len()).filter(|&k| alone[k].is_err()).collect();
            assert!(failed == [damaged] || failed.is_empty() && shift == 1, "{failed:?}");
            let written = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let inside = failed.is_empty();
            assert!(!inside || written(&one) == written(&two), "{:?}", case.shape);
        }
    }
}

#[test]
fn what_is_decoded_is_the_array_and_nothing_beside_it() {
    for mut case in cases() {
        let (chunk, origins) = chunks(&case.shape);
        let made = frames(&mut case, &chunk, &origins, 2, false);
        let frames: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
        for threads in [1, 3] {
            let gaps = case.memory.iter().filter(|&&v| v == -5.0).count();
            case.memory.iter_mut().filter(|v| **v != -5.0).for_each(|v| *v = 9.0);
            let done = decode(Frames::Memory(&frames), &mut case.array(), &chunk, &origins, threads).unwrap();
            assert!(done.iter().all(Result::is_ok));
            assert_eq!(case.memory.iter().filter(|&&v| v == -5.0).count(), gaps);
            let strides = case.strides.clone();
            case.strides.iter_mut().for_each(|s| *s /= 4);
            case.each(|at, want, memory| assert!((memory[at] - want).abs() <= 1e-3, "{} for {want}", memory[at]));
            case.strides = strides;
        }
    }
}

/// An array in a file: its values, and where in the file the frames of its chunks are.
#[cfg(unix)]
struct Stored {
    what: &'static str,
    shape: &'static [u64],
    chunk: &'static [u64],
    all: Vec<f32>,
    origins: Vec<Vec<i64>>,
    bytes: Vec<u8>,
    places: Vec<(u64, u64)>,
}

/// A dense array in memory.
#[cfg(unix)]
fn in_memory(v: &mut [f32], shape: &[u64]) -> Array {
    // SAFETY: the values outlive the array in every test.
    #[allow(unsafe_code)]
    unsafe {
        Array::new(v.as_mut_ptr().cast(), 4, shape, None).unwrap()
    }
}

#[cfg(unix)]
impl Stored {
    fn new(codec: &'static str, shape: &'static [u64], chunk: &'static [u64]) -> Stored {
        let bound = if codec == "ndzip" { "mode=lossless" } else { "mode=abs,bound=1e-4" };
        let request: codecs::params::Request = format!("{bound},codec={codec}").parse().unwrap();
        let mut all: Vec<f32> = (0..shape.iter().product::<u64>()).map(|i| (i as f32 * 0.001).sin()).collect();
        let mut origins: Vec<Vec<i64>> = vec![vec![]];
        for (&d, &c) in shape.iter().zip(chunk) {
            let steps = || (0..d).step_by(c as usize).map(|o| o as i64);
            origins = origins.iter().flat_map(|o| steps().map(|k| [&o[..], &[k]].concat())).collect();
        }
        let params = Params::new(request, F32, chunk).unwrap();
        let mut work = Encoding::new(in_memory(&mut all, shape), params, chunk, &origins.concat(), None, 2).unwrap();
        let mut made = Vec::new();
        while let Ok(some @ [_, ..]) = work.next().as_deref() {
            made.extend(some.iter().map(|f| f.to_vec()));
        }
        drop(work);
        let frames: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
        let done =
            decode(Frames::Memory(&frames), &mut in_memory(&mut all, shape), chunk, &origins.concat(), 2).unwrap();
        assert!(done.iter().all(Result::is_ok), "{codec}: {done:?}");
        let (mut bytes, mut places) = (vec![0u8; 40], Vec::new());
        for frame in &made {
            places.push((bytes.len() as u64, frame.len() as u64));
            bytes.extend(frame);
        }
        Stored { what: codec, shape, chunk, all, origins, bytes, places }
    }

    /// The part from these shares of each axis on to those, of a file with these bytes in which chunk `hurt` is
    /// damaged, and of the same frames in memory.
    fn check_part(&self, file: &std::fs::File, bytes: &[u8], hurt: Option<usize>, from: f64, to: f64) {
        use std::os::fd::AsRawFd;
        let Stored { what, shape, chunk, origins, .. } = self;
        let rank = shape.len();
        let start: Vec<i64> = shape.iter().map(|&d| (d as f64 * from) as i64).collect();
        let size = |(&d, &s): (&u64, &i64)| ((d as f64 * to) as u64).max(s as u64 + 1) - s as u64;
        let size: Vec<u64> = shape.iter().zip(&start).map(size).collect();
        let touched =
            |o: &[i64]| (0..rank).all(|k| o[k] < start[k] + size[k] as i64 && o[k] + chunk[k] as i64 > start[k]);
        let some: Vec<usize> = (0..origins.len()).filter(|&k| touched(&origins[k])).collect();
        let moved = |&k: &usize| (0..rank).map(|a| origins[k][a] - start[a]).collect::<Vec<_>>();
        let moved: Vec<i64> = some.iter().flat_map(moved).collect();
        let at: Vec<(u64, u64)> = some.iter().map(|&k| self.places[k]).collect();
        let frame = |&(at, len): &(u64, u64)| &bytes[at as usize..bytes.len().min((at + len) as usize)];
        let frames: Vec<&[u8]> = at.iter().map(frame).collect();
        for (threads, in_file) in [(2, true), (5, true), (30, true), (2, false)] {
            let mut part = vec![f32::NAN; size.iter().product::<u64>() as usize];
            let there = if in_file { Frames::File(file.as_raw_fd(), &at) } else { Frames::Memory(&frames) };
            let done = decode(there, &mut in_memory(&mut part, &size), chunk, &moved, threads).unwrap();
            for (&k, done) in some.iter().zip(&done) {
                assert_eq!(done.is_err(), hurt == Some(k), "{what}, chunk {k} of {some:?}, {threads}: {done:?}");
            }
            for (i, v) in part.iter().enumerate() {
                let (mut rest, mut index, mut step, mut lost) = (i as u64, 0, 1, hurt.is_some());
                for k in (0..rank).rev() {
                    let place = start[k] as u64 + rest % size[k];
                    rest /= size[k];
                    index += place * step;
                    step *= shape[k];
                    lost &= hurt.is_some_and(|h| place / chunk[k] == origins[h][k] as u64 / chunk[k]);
                }
                let same = v.to_bits() == self.all[index as usize].to_bits();
                assert!(lost || same, "{what} {start:?} {size:?}: value {i}");
            }
        }
    }
}

/// As many chunks as a box touches, on fewer threads than chunks and on more. Windows: `host/file.rs` reads no files.
#[cfg(unix)]
#[test]
fn parts_of_a_few_chunks_of_a_file_are_what_the_whole_array_holds_there() {
    let path = std::env::temp_dir().join(format!("h5z-gpu-parts-{}", std::process::id()));
    let cases: [(_, &[u64], &[u64]); 5] = [
        ("lorenzo", &[80, 70, 90], &[48, 64, 64]),
        ("szx", &[80, 70, 90], &[48, 64, 64]),
        ("planes", &[300, 500], &[200, 300]),
        ("ndzip", &[90_000], &[50_000]),
        ("planes", &[3, 4, 40, 70], &[2, 3, 32, 64]),
    ];
    for (codec, shape, chunk) in cases {
        let stored = Stored::new(codec, shape, chunk);
        for hurt in [None, Some(0), Some(stored.places.len() - 1)] {
            let mut bytes = stored.bytes.clone();
            if let Some(k) = hurt {
                // The last byte of the first chunk's frame changes; the file ends within the last one.
                let end = (stored.places[k].0 + stored.places[k].1) as usize;
                if k == 0 { bytes[end - 1] ^= 4 } else { bytes.truncate(end - 3) }
            }
            std::fs::write(&path, &bytes).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            for (from, to) in [(0.6, 0.7), (0.0, 0.5), (0.1, 0.95), (0.0, 0.001)] {
                stored.check_part(&file, &bytes, hurt, from, to);
            }
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_range_is_that_of_the_values_and_of_nothing_beside_them() {
    for mut case in cases() {
        let (chunk, origins) = chunks(&case.shape);
        let found = |case: &mut Case, fill: Option<f32>| {
            let fill = fill.map(|f| u64::from(f.to_bits()));
            range(&case.array(), F32, &chunk, &origins, fill, 2).unwrap()
        };
        let values: Vec<f32> = case.memory.iter().copied().filter(|&v| v != -5.0).collect();
        let extreme = |start, f: fn(f32, f32) -> f32| values.iter().copied().fold(start, f);
        let (low, high) = (extreme(f32::MAX, f32::min), extreme(f32::MIN, f32::max));
        assert_eq!(found(&mut case, None), Some((low.into(), high.into())));
        let second = extreme(f32::MIN, f32::max).next_down();
        let without = found(&mut case, Some(high)).unwrap();
        assert!(without.0 == f64::from(low) && without.1 <= f64::from(second), "{without:?}");
        let first = case.first;
        case.memory[first] = f32::NAN;
        assert!(found(&mut case, None).is_some_and(|(a, z)| a >= f64::from(low) && z <= f64::from(high)));
    }
    let mut nothing = Case::new(&[10], &[0], &[0], &[false]);
    nothing.memory.fill(f32::INFINITY);
    assert_eq!(range(&nothing.array(), F32, &[10], &[0], None, 1), Ok(None));
    range(&nothing.array(), Dtype::F64, &[10], &[0], None, 1).expect_err("another type");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let mut case = Case::new(&[10, 10], &[0, 1], &[0, 0], &[false; 2]);
    let params = |dims: &[u64]| Params::new(Bound::Absolute(1e-3).into(), F32, dims).unwrap();
    let mut refused = |params: Params, chunk: &[u64], origins: &[i64], beyond: Option<&[u8]>| {
        Encoding::new(case.array(), params, chunk, origins, beyond, 1).expect_err("a refusal").to_string()
    };
    assert!(refused(params(&[5]), &[5], &[0], None).contains("axes"));
    assert!(refused(params(&[5, 5]), &[5, 5], &[0], None).contains("origins"));
    assert!(refused(params(&[5, 5]), &[5, 6], &[0, 0], None).contains("extents"));
    assert!(refused(params(&[5, 5]), &[5, 5], &[0, 0], Some(&[0])).contains("an element has 4"));
    let frames: [&[u8]; 1] = [&[1, 2, 3]];
    let done = decode(Frames::Memory(&frames), &mut case.array(), &[5, 5], &[0, 0], 1).unwrap();
    assert!(done[0].is_err());
    decode(Frames::Memory(&frames), &mut case.array(), &[5, 5], &[0, 0, 1, 1], 1).expect_err("two origins");
    let two: [&[u8]; 2] = [&[], &[]];
    for origins in [[0, 0, 0, 0], [0, 0, 3, 5], [-5, 0, 0, 1]] {
        let met = decode(Frames::Memory(&two), &mut case.array(), &[5, 5], &origins, 1).expect_err("they meet");
        assert!(met.to_string().contains("chunk 1 meets"), "{met}");
    }
    let done = decode(Frames::File(-1, &[(0, 10)]), &mut case.array(), &[5, 5], &[0, 0], 1).unwrap();
    assert!(done[0].as_ref().is_err_and(|e| e.to_string().contains("the file")), "{done:?}");
    let done = decode(Frames::File(0, &[(0, 1 << 40)]), &mut case.array(), &[5, 5], &[0, 0], 1).unwrap();
    assert!(done[0].as_ref().is_err_and(|e| e.to_string().contains("index")), "{done:?}");
}

#[test]
fn work_that_is_dropped_early_ends() {
    let mut case = Case::new(&[600, 600], &[0, 1], &[0, 0], &[false; 2]);
    let (chunk, origins) = ([100, 100], chunks(&[600, 600]).1);
    for taken in 0..3 {
        let params = Params::new(Bound::Absolute(1e-3).into(), F32, &chunk).unwrap();
        let mut work = Encoding::new(case.array(), params, &chunk, &origins, None, 2).unwrap();
        for _ in 0..taken {
            work.next().unwrap();
        }
    }
}
