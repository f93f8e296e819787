// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users type and files hold: cd_values, texts, NCZarr's configurations.

use super::{Plan, c};
use h5z_gpu::Request;
use h5z_gpu::plugin::{lines, sentence};
use h5z_gpu::words::{self, STORED_MAX};
use libc::{c_char, c_void};
use std::ffi::{CStr, CString};
use std::ptr;

/// A list of words. The first byte says what is put right: see [`put_right`].
pub fn list(data: &[u8]) {
    let mut plan = Plan(data);
    let right = plan.byte();
    let mut words: Vec<u32> = Vec::with_capacity(STORED_MAX);
    while plan.0.len() >= 4 && words.len() < 2 * STORED_MAX {
        words.push(plan.word());
    }
    put_right(&mut words, right);
    match words::request(&words) {
        Ok(request) => every_form(request),
        Err(e) => assert!(e.to_string().len() > 40, "{e}"),
    }
    if let Ok(stored) = words::stored(&words) {
        let again = words::store(&stored.params, &words, stored.original_rank);
        let back = words::stored(&again).expect("a list that was just written");
        assert_eq!((back.params, back.typed), (stored.params, stored.typed));
        assert_eq!(words::store(&back.params, &again, back.original_rank), again, "storing again changes nothing");
        assert_eq!(words::request(&words).ok(), Some(stored.params.request));
    }
}

/// Makes words look like a stored list: bit 0 its check, bit 1 its last word, bit 2 its first two words.
pub fn put_right(words: &mut [u32], right: u8) {
    if words.len() < 12 {
        return;
    }
    if right & 4 != 0 {
        let rank = words[3] >> 24;
        words[0] = 0xF1C0_DE03;
        words[1] = words[1] & 0x00FF_FF00 | (12 + rank) & 0xFF | 3 << 24;
    }
    let count = ((words[1] & 0xFF) as usize).clamp(12, words.len());
    if right & 2 != 0 {
        words[count - 1] = 90_000;
    }
    if right & 1 != 0 {
        words[10] = check(&words[..count - 1]);
    }
}

/// The check of a stored list, by the documentation of `words`.
fn check(words: &[u32]) -> u32 {
    words.iter().enumerate().filter(|(k, _)| *k != 10).fold(0, |sum, (_, &word)| {
        let product = (sum ^ word).wrapping_mul(0x9E37_79B1);
        product ^ product >> 15
    })
}

/// A request means the same in every form.
fn every_form(request: Request) {
    assert_eq!(words::request(&words::several(request)).ok(), Some(request));
    if let Some(number) = words::pack(request) {
        assert_eq!(words::request(&[number]).ok(), Some(request), "{number}");
    }
    let text = request.to_string();
    assert_eq!(text.parse().ok(), Some(request), "{text}");
}

/// A text of words for C, and what it becomes. The first byte says how long the buffer for an answer is.
pub fn text(data: &[u8]) {
    let Some((&size, text)) = data.split_first() else { return };
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    let text = CString::new(&text[..end]).expect("no NUL");
    let mut words = [0u32; c::WORDS_MAX];
    // SAFETY: a NUL-terminated text, and room for as many words as there may be.
    let n = unsafe { c::h5z_gpu_words(text.as_ptr(), words.as_mut_ptr()) };
    let Ok(n) = usize::try_from(n) else {
        c::last_error();
        return name(&text);
    };
    let request = words::request(&words[..n]).expect("words that were just written");
    every_form(request);
    assert!(!sentence(request).is_empty() && !lines(request, 443).is_empty());
    for answer in [c::h5z_gpu_text, c::h5z_gpu_tools] {
        let mut out = vec![0x5A; size.into()];
        // SAFETY: the buffer has `size` bytes.
        let len = unsafe { answer(words.as_ptr(), n, out.as_mut_ptr().cast::<c_char>(), out.len()) };
        assert!(len > 0 && (out.is_empty() || CStr::from_bytes_until_nul(&out).is_ok()), "{len} of {size} bytes");
    }
}

/// A type's name, of a chunk whose extents are the name's bytes.
fn name(text: &CStr) {
    let dims: Vec<u64> = text.to_bytes().iter().rev().take(33).map(|&b| b.into()).collect();
    let (fill, mut stored) = ([0x7Fu8; 256], [0u32; c::WORDS_MAX]);
    // SAFETY: the arguments have the lengths that are told, an element at most 255 bytes.
    let n = unsafe {
        c::h5z_gpu_stored_words(
            [11003].as_ptr(),
            1,
            text.as_ptr(),
            dims.len(),
            dims.as_ptr(),
            fill.as_ptr().cast::<c_void>(),
            stored.as_mut_ptr(),
        )
    };
    match usize::try_from(n) {
        Ok(n) => assert!(words::stored(&stored[..n]).is_ok(), "{stored:?}"),
        Err(_) => drop(c::last_error()),
    }
}

/// NCZarr's configuration of the codec: what it becomes, and what becomes of that.
pub fn json(data: &[u8]) {
    let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let text = CString::new(&data[..end]).expect("no NUL");
    let Some(request) = configured(&text) else { return };
    let words = words::several(request);
    let mut back: *mut c_char = ptr::null_mut();
    // SAFETY: three words, and a variable for the answer; the codec's description stays for ever.
    let done = unsafe { ((*c::NCZ_get_codec_info()).hdf5_to_codec)(words.len(), words.as_ptr(), &mut back) };
    assert!(done == 0 && !back.is_null());
    // SAFETY: a NUL-terminated text of the C heap, which is ours.
    let again = unsafe {
        let again = CStr::from_ptr(back).to_owned();
        libc::free(back.cast());
        again
    };
    assert_eq!(configured(&again), Some(request), "{again:?}");
}

/// What a configuration asks for.
fn configured(text: &CStr) -> Option<Request> {
    let (mut count, mut start) = (usize::MAX, ptr::null_mut());
    // SAFETY: a NUL-terminated text, and variables for the answer.
    let done = unsafe { ((*c::NCZ_get_codec_info()).codec_to_hdf5)(text.as_ptr(), &mut count, &mut start) };
    if done != 0 {
        assert!(start.is_null() && count == usize::MAX, "nothing is given where it fails");
        c::last_error();
        return None;
    }
    // SAFETY: the words lie on the C heap and are ours.
    let words = unsafe {
        let words = std::slice::from_raw_parts(start, count).to_vec();
        libc::free(start.cast());
        words
    };
    let request = words::request(&words).expect("words that were just written");
    every_form(request);
    Some(request)
}
