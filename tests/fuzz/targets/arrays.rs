// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames into arrays of odd shapes and strides, from memory and from a file; arrays into frames.

use super::frames::{LIMIT, whole};
use super::repair::repair;
use super::{Plan, c};
use h5z_gpu::{Bound, frame, words};
use libc::c_int;
use std::cell::Cell;
use std::ffi::CString;
use std::ptr;

/// Bytes that lay out an array, before those of the frame.
const HEAD: usize = 48;
/// What stands in an array before.
const BEFORE: u8 = 0xEE;

/// The extents of a frame's chunk and the bytes of an element, as its header says, where its raw length agrees.
fn extents(frame: &[u8]) -> Option<(Vec<u64>, usize)> {
    let header = frame::header(frame).ok()?;
    let (rank, size) = (usize::from(frame[11] & 0x7F), usize::from(header.dtype.size).max(1));
    let raw_len = usize::try_from(header.raw_len).ok().filter(|&n| n > 0 && n <= LIMIT)?;
    let dims: Vec<u64> =
        frame.get(56..56 + 4 * rank)?.chunks(4).map(|d| u32::from_le_bytes(d.try_into().unwrap()).into()).collect();
    let n = dims.iter().try_fold(size as u64, |n, &d| n.checked_mul(d))?;
    match (rank, raw_len.is_multiple_of(size)) {
        (1.., _) if n == raw_len as u64 => Some((dims, size)),
        (_, true) => Some((vec![(raw_len / size) as u64], size)),
        _ => Some((vec![raw_len as u64], 1)),
    }
}

/// Where an array lies in a buffer.
struct Layout {
    size: usize,
    shape: Vec<u64>,
    strides: Vec<i64>,
    /// Of the first element, in the buffer.
    first: usize,
    /// Of the buffer.
    len: usize,
}

impl Layout {
    /// Axes in any order, each forwards or backwards, with some bytes between.
    fn new(plan: &mut Plan<'_>, shape: Vec<u64>, size: usize) -> Layout {
        let (rank, turn, backwards, apart) = (shape.len(), plan.below(8), plan.byte(), plan.word());
        let (mut strides, mut first, mut step) = (vec![0; rank], 0, size);
        for k in 0..rank {
            let axis = (rank - 1 - k + turn) % rank;
            let n = shape[axis] as usize;
            strides[axis] = step as i64;
            if backwards >> (axis % 8) & 1 == 1 && n > 0 {
                strides[axis] = -(step as i64);
                first += step * (n - 1);
            }
            step = step * n + (apart >> (2 * (axis % 16)) & 3) as usize;
        }
        Layout { size, shape, strides, first: first.min(step), len: step }
    }

    /// For each element: its place in the buffer, and in which chunk it lies at which place.
    fn places(&self, chunk: &[u64], origins: &[Vec<i64>], mut see: impl FnMut(usize, usize, usize)) {
        let mut at = vec![0i64; self.shape.len()];
        for _ in 0..self.shape.iter().product::<u64>() {
            let place = self.first as i64 + at.iter().zip(&self.strides).map(|(a, s)| a * s).sum::<i64>();
            for (k, origin) in origins.iter().enumerate() {
                let inside = at.iter().zip(origin).zip(chunk).try_fold(0, |linear, ((a, o), &c)| {
                    let d = u64::try_from(a - o).ok().filter(|&d| d < c)?;
                    Some(linear * c + d)
                });
                if let Some(linear) = inside {
                    see(place as usize, k, linear as usize * self.size);
                }
            }
            for (a, &n) in at.iter_mut().zip(&self.shape).rev() {
                *a += 1;
                if *a < n as i64 {
                    break;
                }
                *a = 0;
            }
        }
    }
}

/// NumPy's name of bytes of a size.
fn opaque(size: usize) -> CString {
    CString::new(format!("|V{size}")).expect("no NUL")
}

/// What of an array is written by `decode`, and each frame's status.
fn decoded(
    layout: &Layout,
    before: u8,
    n: usize,
    decode: impl FnOnce(&c::Array, &mut [c_int]) -> i64,
) -> (Vec<u8>, Vec<c_int>) {
    let (mut buffer, mut status, name) = (vec![before; layout.len], vec![7; n], opaque(layout.size));
    let array = c::Array {
        data: buffer[layout.first..].as_mut_ptr().cast(),
        device: -1,
        flags: 0,
        datatype: name.as_ptr(),
        rank: layout.shape.len(),
        shape: layout.shape.as_ptr(),
        strides: layout.strides.as_ptr(),
        stream: ptr::null_mut(),
    };
    let done = decode(&array, &mut status);
    assert!(done >= 0, "{}", c::last_error());
    assert_eq!(done, status.iter().filter(|&&s| s == 0).count() as i64);
    if status.iter().any(|&s| s != 0) {
        assert!(status.iter().all(|&s| s == 0 || c::is_failure(s.into())), "{status:?}: {}", c::last_error());
    }
    (buffer, status)
}

/// Up to three chunks, each of the same frame, into an array that has part of them: as if the whole chunk had been
/// decoded and cut, and nothing else written. `data` is the layout, then what [`repair`] says.
pub fn part(data: &[u8]) {
    let Some((head, rest)) = data.split_at_checked(HEAD) else { return };
    let frame = repair(rest, None);
    let Some((mut chunk, size)) = extents(&frame) else { return };
    let mut plan = Plan(head);
    for _ in 0..plan.below(3) {
        chunk.insert(plan.below(chunk.len() + 1), 1);
    }
    let (n, along) = (1 + plan.below(3), plan.below(chunk.len()));
    let mut shape = Vec::new();
    let mut origin = Vec::new();
    for &c in &chunk {
        let (shape_of, from) = (u64::from(plan.word() as u16), u64::from(plan.word() as u16));
        shape.push(shape_of % (2 * c + 2));
        origin.push((from % (2 * c + 1)) as i64 - c as i64);
    }
    if shape.iter().product::<u64>() * size as u64 > LIMIT as u64 / 4 {
        return;
    }
    let layout = Layout::new(&mut plan, shape, size);
    let origins: Vec<Vec<i64>> = (0..n)
        .map(|k| {
            let mut o = origin.clone();
            o[along] += (k as u64 * chunk[along]) as i64;
            o
        })
        .collect();
    let flat = origins.concat();
    let (frames, lens) = (vec![frame.as_ptr().cast(); n], vec![frame.len(); n]);
    let decode = |before| {
        decoded(&layout, before, n, |array, status| {
            // SAFETY: what the arguments point to is as long as `n` and the array's rank say.
            unsafe {
                c::h5z_gpu_decode_memory(
                    n,
                    frames.as_ptr(),
                    lens.as_ptr(),
                    array,
                    chunk.as_ptr(),
                    flat.as_ptr(),
                    1,
                    status.as_mut_ptr(),
                )
            }
        })
    };
    let (found, status) = decode(BEFORE);
    let wanted = whole(&frame).filter(|raw| raw.len() as u64 == chunk.iter().product::<u64>() * size as u64);
    assert!(wanted.is_none() || status.iter().all(|&s| s == 0), "a sound frame: {}", c::last_error());
    let again = if wanted.is_none() && status.contains(&0) { decode(!BEFORE).0 } else { Vec::new() };
    let mut expected = vec![BEFORE; layout.len];
    layout.places(&chunk, &origins, |place, k, at| {
        let from = match (&wanted, status[k]) {
            (Some(raw), _) => &raw[at..at + size],
            (None, 0) => &again[place..place + size],
            _ => &found[place..place + size],
        };
        expected[place..place + size].copy_from_slice(from);
    });
    assert!(found == expected, "{n} chunks {chunk:?} at {origins:?} into {:?}", layout.shape);
}

/// A file in memory that holds these bytes, and no others.
fn file_of(bytes: &[u8]) -> c_int {
    thread_local!(static FILE: Cell<c_int> = const { Cell::new(-1) });
    // SAFETY: a name, and bytes of this length; the descriptor is this thread's for as long as it lives.
    unsafe {
        if FILE.get() < 0 {
            FILE.set(libc::memfd_create(c"frames".as_ptr(), 0));
        }
        let file = FILE.get();
        assert!(file >= 0 && libc::ftruncate(file, 0) == 0);
        assert_eq!(libc::pwrite(file, bytes.as_ptr().cast(), bytes.len(), 0), bytes.len() as isize);
        file
    }
}

/// Frames of a file whose index may lie. `data` is six numbers, then what [`repair`] says.
pub fn file(data: &[u8]) {
    let Some((head, rest)) = data.split_at_checked(HEAD) else { return };
    let frame = repair(rest, None);
    let Some((chunk, size)) = extents(&frame) else { return };
    let (raw_len, mut plan) = (chunk.iter().product::<u64>() * size as u64, Plan(head));
    let threads = 1;
    // The first is right but for changes; the second is any.
    let at = [plan.long(), plan.long()];
    let lens = [(frame.len() as u64).wrapping_add(plan.long()), plan.long()];
    let said = raw_len.wrapping_add(plan.long());
    let file = if plan.byte() == 255 { -1 } else { file_of(&frame) };
    let blank = c::CFrame { status: 7, version: 7, codec: 7, mode: 7, element: 7, draft: 7, raw_len: 7, bound: 7.0 };
    let look = |whole| {
        let mut frames = [blank; 2];
        // SAFETY: two items each.
        let well = unsafe {
            c::h5z_gpu_frames(file, 2, at.as_ptr(), lens.as_ptr(), said, whole, threads, frames.as_mut_ptr())
        };
        assert_eq!(well, frames.iter().filter(|f| f.status == 0).count() as i64);
        frames
    };
    let (headers, sums) = (look(0), look(1));
    let nothing = c::CFrame { status: 0, version: 0, codec: 0, mode: 0, element: 0, draft: 0, raw_len: 0, bound: 0.0 };
    for (header, sum) in headers.iter().zip(&sums) {
        let failed = c::is_failure(sum.status.into()) && *sum == c::CFrame { status: sum.status, ..nothing };
        assert!(failed || sum == header, "{header:?} {sum:?}");
    }
    // Both into one array, one behind the other.
    let mut shape = chunk.clone();
    shape[0] *= 2;
    let layout = Layout::new(&mut Plan(&[]), shape, size);
    let mut origins = vec![0; 2 * chunk.len()];
    origins[chunk.len()] = chunk[0] as i64;
    let (found, status) = decoded(&layout, BEFORE, 2, |array, status| {
        // SAFETY: as above.
        unsafe {
            c::h5z_gpu_decode_file(
                file,
                2,
                at.as_ptr(),
                lens.as_ptr(),
                array,
                chunk.as_ptr(),
                origins.as_ptr(),
                threads,
                status.as_mut_ptr(),
            )
        }
    });
    // No writer makes a frame that is longer than its chunk and a header; one that is, files do not give.
    let short = frame.len() as u64 <= raw_len + frame::STORED_HEADER as u64;
    let in_place = |k: usize| short && file >= 0 && at[k] == 0 && lens[k] == frame.len() as u64;
    let wanted = whole(&frame);
    for (k, (&status, found)) in status.iter().zip(found.chunks_exact(raw_len as usize)).enumerate() {
        if in_place(k) && wanted.is_some() {
            assert_eq!(status, 0, "a sound frame: {}", c::last_error());
            assert!(Some(found) == wanted.as_deref(), "chunk {k} of {chunk:?}");
        } else if in_place(k) {
            assert_eq!(status, c::DAMAGED, "a damaged frame: {}", c::last_error());
        }
    }
}

/// Words, types and extents of any kind, and numbers; then what was written is read again. `data` is the description,
/// then the numbers, which are repeated as often as the chunk needs.
pub fn encode(data: &[u8]) {
    const WORDS: [&[u32]; 12] = [
        &[],
        &[11003],
        &[12082],
        &[21003],
        &[31002],
        &[40600],
        &[111003],
        &[211003],
        &[511003],
        &[611002],
        &[390000],
        &[590000],
    ];
    const TYPES: [&std::ffi::CStr; 8] = [c"<f4", c"<f8", c">f4", c">f8", c"<i4", c"|u1", c"<i8", c"|V3"];
    let Some((head, rest)) = data.split_at_checked(HEAD) else { return };
    let mut plan = Plan(head);
    let user = match plan.below(16) {
        12 => vec![plan.word()],
        13 => vec![plan.word() % 70, plan.word(), plan.word()],
        k => WORDS.get(k).unwrap_or(&WORDS[1]).to_vec(),
    };
    let datatype = TYPES[plan.below(8)];
    let size = [4, 8, 4, 8, 4, 1, 8, 3][TYPES.iter().position(|&t| t == datatype).unwrap_or(0)];
    let dims: Vec<u64> = (0..plan.below(5)).map(|_| u64::from(plan.word() as u16) % 700 + 1).collect();
    let n = dims.iter().product::<u64>() as usize * size;
    if n > LIMIT / 16 || rest.is_empty() {
        return;
    }
    let mut fill = [0u8; 8];
    let filled = plan.byte() & 1 == 1;
    fill.copy_from_slice(&plan.long().to_le_bytes());
    let fill = if filled { fill.as_ptr().cast() } else { ptr::null() };
    let raw: Vec<u8> = rest.iter().copied().cycle().take(n).collect();
    // SAFETY: the buffers have the lengths that are told, an element has at most eight bytes.
    let (len, frame) = unsafe {
        let mut frame = vec![0u8; c::h5z_gpu_max_encoded(n)];
        let len = c::h5z_gpu_encode(
            user.as_ptr(),
            user.len(),
            datatype.as_ptr(),
            dims.len(),
            dims.as_ptr(),
            fill,
            raw.as_ptr().cast(),
            n,
            frame.as_mut_ptr().cast(),
            frame.len(),
        );
        (len, frame)
    };
    let Ok(request) = words::request(&user) else {
        assert!(c::is_failure(len));
        c::last_error();
        return;
    };
    assert!(len > 0, "{}", c::last_error());
    let back = whole(&frame[..len as usize]).expect("a frame that was just written");
    let lossy = request.bound != Bound::Lossless && datatype.to_bytes()[1] == b'f';
    assert!(back.len() == n && (lossy || back == raw), "{request} of {datatype:?} {dims:?}");
    if let (true, Bound::Absolute(bound)) = (lossy, request.bound) {
        for (k, (x, y)) in raw.chunks(size).zip(back.chunks(size)).enumerate() {
            let (x, y) = (value(x, datatype.to_bytes()[0] == b'>'), value(y, datatype.to_bytes()[0] == b'>'));
            // The difference is rounded, but never from below the bound to above it.
            let kept = if x.is_finite() {
                (x - y).abs() <= bound
            } else {
                x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
            };
            assert!(kept, "{request} of {datatype:?} {dims:?}: value {k}, {x:e} became {y:e}");
        }
    }
}

/// A number of four or eight bytes.
fn value(bytes: &[u8], big_endian: bool) -> f64 {
    let mut little = bytes.to_vec();
    if big_endian {
        little.reverse();
    }
    match little[..] {
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
        _ => f64::from_le_bytes(little.try_into().expect("eight bytes")),
    }
}
