// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single calls of the C interface, with arguments of any size.

use super::frames::LIMIT;
use super::repair::repair;
use super::{Plan, c};
use libc::c_void;
use std::ffi::{CStr, CString};
use std::ptr;

/// The first byte says which function is called.
pub fn calls(data: &[u8]) {
    let mut plan = Plan(data);
    match plan.below(5) {
        0 => decode(plan),
        1 => decode_batch(plan),
        2 | 3 => range_and_copy(plan),
        _ => describe(plan),
    }
}

/// Into a buffer of any length.
fn decode(mut plan: Plan<'_>) {
    let (size, exact) = (usize::from(plan.word() as u16), plan.byte() & 1 == 0);
    let frame = repair(plan.0, None);
    // SAFETY: the frame's bytes.
    let raw_len = unsafe { c::h5z_gpu_raw_len(frame.as_ptr().cast(), frame.len()) };
    let size = usize::try_from(raw_len).ok().filter(|&n| exact && n <= LIMIT).unwrap_or(size);
    let mut out = vec![0u8; size];
    // SAFETY: as above, and the buffer's bytes.
    let len = unsafe { c::h5z_gpu_decode(frame.as_ptr().cast(), frame.len(), out.as_mut_ptr().cast(), size) };
    assert!(len == raw_len || c::is_failure(len), "{len} of {raw_len}");
    if len < 0 {
        c::last_error();
    }
}

/// Three frames of one piece of bytes, into three buffers; one buffer may be of another length.
fn decode_batch(mut plan: Plan<'_>) {
    let (cut, off) = (plan.word() as usize, plan.below(8));
    let (first, second) = plan.0.split_at(cut.min(plan.0.len()));
    let frames = [repair(first, None), repair(second, None), repair(plan.0, None)];
    let mut raws: Vec<Vec<u8>> = frames
        .iter()
        .enumerate()
        .map(|(k, f)| {
            let len = h5z_gpu::frame::raw_len(f).map_or(0, |n| n.min(LIMIT as u64) as usize);
            vec![0; len + usize::from(off == k)]
        })
        .collect();
    let starts: Vec<*const c_void> = frames.iter().map(|f| f.as_ptr().cast()).collect();
    let lens: Vec<usize> = frames.iter().map(Vec::len).collect();
    let outs: Vec<*mut c_void> = raws.iter_mut().map(|r| r.as_mut_ptr().cast()).collect();
    let sizes: Vec<usize> = raws.iter().map(Vec::len).collect();
    let mut status = [7; 3];
    // SAFETY: three items each, as long as they say.
    let done = unsafe {
        c::h5z_gpu_decode_batch(3, starts.as_ptr(), lens.as_ptr(), outs.as_ptr(), sizes.as_ptr(), status.as_mut_ptr())
    };
    assert_eq!(done, status.iter().filter(|&&s| s == 0).count() as i64);
    for (k, status) in status.into_iter().enumerate() {
        assert!(status == 0 || c::is_failure(status.into()));
        assert!(off != k || status != 0, "a buffer of another length");
    }
}

/// Range and copy of arrays whose description is any; what it names lies in memory.
fn range_and_copy(mut plan: Plan<'_>) {
    const TYPES: [&CStr; 8] = [c"<f4", c"<f8", c">f4", c">f8", c"<i4", c"|V3", c"f4", c"|V0"];
    let datatype = TYPES[plan.below(8)];
    let rank = plan.below(6);
    let shape: Vec<u64> = (0..rank).map(|_| u64::from(plan.byte()) % 9).collect();
    let chunk: Vec<u64> = (0..rank).map(|_| plan.long() >> (plan.byte() % 64)).collect();
    let origins: Vec<i64> = (0..2 * rank).map(|_| plan.long() as i64 >> (plan.byte() % 64)).collect();
    // Elements may lie on each other in what is read.
    let strides: Vec<i64> = (0..rank).map(|_| plan.below(64) as i64).collect();
    let reach: usize = shape.iter().zip(&strides).map(|(&n, &s)| n as usize * s as usize).sum();
    let mut memory: Vec<u8> = plan.0.iter().copied().chain([1]).cycle().take(reach + 8).collect();
    let n = shape.iter().product::<u64>() as usize;
    let mut copied = vec![0u8; 8 * n];
    let array = |data: *mut c_void, strides, flags| c::Array {
        data,
        device: -1,
        flags,
        datatype: datatype.as_ptr(),
        rank,
        shape: shape.as_ptr(),
        strides,
        stream: ptr::null_mut(),
    };
    let from = array(memory.as_mut_ptr().cast(), strides.as_ptr(), 0);
    let to = array(copied.as_mut_ptr().cast(), ptr::null(), u32::from(origins.first().is_some_and(|&o| o == 3)));
    let (fill, mut range) = ([0u8; 8], [f64::NAN; 2]);
    // SAFETY: every element of both arrays lies in its memory, of at most eight bytes each; two origins.
    let (found, done) = unsafe {
        (
            c::h5z_gpu_range(&from, chunk.as_ptr(), fill.as_ptr().cast(), 2, origins.as_ptr(), 1, range.as_mut_ptr()),
            c::h5z_gpu_copy(&from, &to),
        )
    };
    match found {
        1 => assert!(range[0] <= range[1] && range.iter().all(|r| r.is_finite()), "{range:?}"),
        0 => assert!(range[0].is_nan()),
        _ => drop(c::last_error()),
    }
    assert!(done == 0 || c::is_failure(done) && !c::last_error().is_empty());
}

/// A description of chunks of any extents.
fn describe(mut plan: Plan<'_>) {
    let count = plan.below(22);
    let words: Vec<u32> = (0..count).map(|_| plan.word()).collect();
    let rank = plan.below(40);
    let dims: Vec<u64> = (0..rank).map(|_| plan.long() >> (plan.byte() % 64)).collect();
    let name: Vec<u8> = plan.0.iter().copied().take(20).take_while(|&b| b != 0).collect();
    let name = CString::new(name).expect("no NUL");
    let (raw, mut frame, fill, mut stored) = ([1u8; 64], [0u8; 128], [0u8; 8], [0; c::WORDS_MAX]);
    // SAFETY: everything is as long as it says.
    unsafe {
        let n = c::h5z_gpu_stored_words(
            words.as_ptr(),
            count,
            name.as_ptr(),
            rank,
            dims.as_ptr(),
            fill.as_ptr().cast(),
            stored.as_mut_ptr(),
        );
        let len = c::h5z_gpu_encode(
            words.as_ptr(),
            count,
            name.as_ptr(),
            rank,
            dims.as_ptr(),
            ptr::null(),
            raw.as_ptr().cast(),
            raw.len(),
            frame.as_mut_ptr().cast(),
            frame.len(),
        );
        assert!(n >= 0 || len < 0, "encoded what cannot be described");
        assert!(n < 0 || h5z_gpu::words::stored(&stored[..n as usize]).is_ok(), "{stored:?}");
        if n < 0 || len < 0 {
            c::last_error();
        }
    }
}
