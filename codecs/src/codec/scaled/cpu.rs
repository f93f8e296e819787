// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec `scaled` on the CPU, FORMAT.md §4 and §8.
//!
//! ```text
//! writing   numbers ──► whole numbers, exceptions, corrections ──► differences ──► frame of planes, lorenzo or bytes
//! reading   that frame ──► sums ──► numbers, in the same memory ──► corrections ──► exceptions
//! ```
//!
//! Parts of a chunk are mapped by as many threads as there are; sums and differences are one thread's.

use super::find::{log, repeat_in_rows};
use super::format::{Exception, HEAD_LEN, Head, Opened, Sections, write};
use super::scale::{Divide, Multiply, Word, code_type, ordered};
use super::{corrections, dictionary};
use crate::codec::chunk::{self, Chunk};
use crate::codec::kept::{Inner, Map, Way};
use crate::codec::lorenzo::{self, integers};
use crate::codec::{bytes, planes};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{self, Frame};
use crate::params::{Bound, Class, Codec, Extents, Mode, Params, Request};
use crate::simd::vectorize;
use crate::{memory, parallel};
use bytemuck::Pod;

/// Numbers that a thread maps at a time.
const THREAD_VALUES: usize = 1 << 17;
/// At most one number in 16 may be an exception.
const VALUES_PER_EXCEPTION: usize = 16;

/// Encodes a chunk of numbers of 4 or 8 bytes this way. False: it cannot be kept so.
pub(crate) fn encode(chunk: &Chunk<'_>, way: &Way, out: &mut Vec<u8>) -> Result<bool> {
    match chunk.params.dtype.size {
        4 => encode_words::<i32>(&chunk.values()?, chunk, way, out),
        _ => encode_words::<i64>(&chunk.values()?, chunk, way, out),
    }
}

fn encode_words<W: Word>(values: &[W], chunk: &Chunk<'_>, way: &Way, out: &mut Vec<u8>) -> Result<bool> {
    let Some(coded) = code(values, chunk, way)? else { return Ok(false) };
    let Coded { mut codes, exceptions, corrections, head, dictionary } = coded;
    let mut inner = Vec::new();
    if codes.iter().any(|c| *c != W::cut(0)) && !encode_codes(&mut codes, chunk, way, &mut inner)? {
        return Ok(false);
    }
    let corrections = corrections::encode(&corrections, chunk)?;
    let exceptions: Vec<Exception> = memory::collect(
        exceptions.len(),
        exceptions.iter().map(|&i| Exception { place: i as u32, bits: values[i].bits() }),
    )?;
    let sections =
        Sections { head, dictionary: &dictionary, exceptions: &exceptions, inner: &inner, corrections: &corrections };
    write(chunk.params, chunk.raw.len(), &sections, chunk.threads, out)?;
    Ok(true)
}

/// Length of the frame that [`encode`] makes, which is not made where the codes are by `lorenzo`. `None`: of none.
pub(crate) fn frame_len(chunk: &Chunk<'_>, way: &Way) -> Result<Option<usize>> {
    fn typed<W: Word>(chunk: &Chunk<'_>, way: &Way) -> Result<Option<usize>> {
        let Some(mut coded) = code::<W>(&chunk.values()?, chunk, way)? else { return Ok(None) };
        let inner = match coded.codes.iter().any(|c| *c != W::cut(0)) {
            true => codes_len(&mut coded.codes, chunk, way)?,
            false => Some(0),
        };
        let Some(inner) = inner else { return Ok(None) };
        let corrections = corrections::encode(&coded.corrections, chunk)?.len();
        let exceptions = (4 + W::SIZE) * coded.exceptions.len();
        let all = [HEAD_LEN + coded.dictionary.len(), exceptions, inner, corrections];
        let sections = if corrections == 0 { &all[..3] } else { &all };
        Ok(Some(frame::frame_len(chunk.params.extents.as_slice().len(), sections)))
    }
    if chunk.params.dtype.size == 4 { typed::<i32>(chunk, way) } else { typed::<i64>(chunk, way) }
}

/// A chunk's codes, the places of its exceptions, and how numbers are made of the codes.
struct Coded<W> {
    codes: Vec<W>,
    exceptions: Vec<usize>,
    /// Units in the last place that each number is off; none where no number is.
    corrections: Vec<i8>,
    head: Head,
    /// The dictionary's frame, if there is one.
    dictionary: Vec<u8>,
}

/// The codes of a chunk. `None`: it cannot be kept this way.
fn code<W: Word>(values: &[W], chunk: &Chunk<'_>, way: &Way) -> Result<Option<Coded<W>>> {
    let extents = chunk.params.extents.as_slice();
    let has_order = way.scale.map.orders().contains(&way.order) && (way.order < 3 || extents.len() > 1);
    // Places of exceptions have 32 bits.
    if u32::try_from(values.len()).is_err() || !has_order {
        return Ok(None);
    }
    let mut scale = way.scale;
    if way.order > 0
        && let Some(first) = values.first()
    {
        scale.origin = scale.whole(*first).unwrap_or(scale.origin);
    }
    let mut codes: Vec<W> = memory::zeros(values.len())?;
    if scale.map == Map::Dictionary {
        let mut numbers = dictionary::places(values, scale.special, &mut codes)?;
        let Some(first) = numbers.first() else { return Ok(None) };
        scale.origin = first.wide();
        let step = differences(&mut numbers, 1, 1, false)?.unwrap_or(0);
        let (head, dictionary) = (Head { scale, order: 0, step }, encode_dictionary(&mut numbers, chunk.threads)?);
        return Ok(Some(Coded { codes, exceptions: Vec::new(), corrections: Vec::new(), head, dictionary }));
    }
    let parts = codes.chunks_mut(THREAD_VALUES).zip(values.chunks(THREAD_VALUES));
    let found = parallel::map_mut(parts.collect(), chunk.threads, |_, (codes, values): (&mut [W], &[W])| {
        vectorize(
            #[inline(always)]
            || scale.with_map(Divide { scale, values, codes }),
        )
    });
    let count = found.iter().map(|part| part.as_ref().map_or(0, Vec::len)).sum::<usize>();
    let is_few = |count| count <= values.len() / VALUES_PER_EXCEPTION;
    if !scale.corrected && !is_few(count) {
        return Ok(None);
    }
    let mut exceptions = memory::with_capacity(count)?;
    for (k, part) in found.into_iter().enumerate() {
        exceptions.extend(part?.into_iter().map(|i| k * THREAD_VALUES + i));
    }
    let corrections = match scale.corrected {
        true => corrections::take(values, &codes, scale, &mut exceptions)?,
        false => Vec::new(),
    };
    if !is_few(exceptions.len()) {
        return Ok(None);
    }
    let has_special = scale.special.is_some();
    instead(&mut codes, &exceptions, has_special);
    let row = extents.last().map_or(1, |&x| x as usize);
    let step = differences(&mut codes, way.order, row, has_special)?;
    let head = |step| Head { scale, order: way.order, step };
    Ok(step.map(|step| Coded { codes, exceptions, corrections, head: head(step), dictionary: Vec::new() }))
}

/// Gives exceptions the whole number before them.
fn instead<W: Word>(k: &mut [W], exceptions: &[usize], has_special: bool) {
    let (mut last, mut from) = (W::cut(0), 0);
    for &i in exceptions {
        // Between exceptions the last one that is a whole number counts.
        let before = k[from..i].iter().rev().find(|k| !(has_special && **k == W::MIN));
        last = before.copied().unwrap_or(last);
        (k[i], from) = (last, i + 1);
    }
}

/// What several chunks have, one behind the other.
struct CodedAll<W> {
    codes: Vec<W>,
    corrections: Vec<i8>,
    exceptions: u64,
}

/// Codes several chunks. Of more than one chunk those codes are left out that have nothing before them: a larger chunk
/// has fewer. `None`: one cannot be kept this way.
fn code_all<W: Word>(chunks: &[Chunk<'_>], way: &Way) -> Result<Option<CodedAll<W>>> {
    let mut all = CodedAll { codes: Vec::new(), corrections: Vec::new(), exceptions: 0 };
    for chunk in chunks {
        let Some(coded) = code::<W>(&chunk.values()?, chunk, way)? else { return Ok(None) };
        let first = match way.order {
            _ if chunks.len() == 1 => 0,
            3 => chunk.params.extents.as_slice().last().map_or(1, |&x| x as usize),
            order => order.into(),
        };
        memory::append(&mut all.codes, coded.codes.get(first..).unwrap_or(&[]))?;
        memory::append(&mut all.corrections, &coded.corrections)?;
        all.exceptions += coded.exceptions.len() as u64;
    }
    Ok(Some(all))
}

/// How much of several chunks [`code_all`] looks at: all over what is left.
fn share<W: Word>(chunks: &[Chunk<'_>], codes: &[W]) -> (u64, u64) {
    let all: usize = chunks.iter().map(|chunk| chunk.raw.len() / W::SIZE).sum();
    (all as u64, codes.len().max(1) as u64)
}

/// Bits that these differences take, about: those behind the first 1, and what an entropy coder takes to say how many
/// there are.
pub(super) fn bits_of<W: Word>(codes: &[W], order: u8, has_special: bool) -> u64 {
    let mut lengths = [0u64; 65];
    for c in codes {
        // First differences are not negative.
        let size = match c.wide() {
            _ if *c == W::MIN && has_special => 0,
            c if order == 1 => c,
            c => (c << 1) ^ (c >> 63),
        };
        lengths[64 - size.leading_zeros() as usize] += 1;
    }
    let of_length = |(length, &n): (usize, &u64)| match n {
        0 => 0,
        n => n * (256 * length.saturating_sub(1) as u64 + log(codes.len() as u64) - log(n)),
    };
    lengths.iter().enumerate().map(of_length).sum::<u64>() / 256
}

/// Bits that the codes of these chunks take, about, and their exceptions. `None`: one cannot be kept this way.
pub(crate) fn bits(chunks: &[Chunk<'_>], way: &Way) -> Result<Option<u64>> {
    fn typed<W: Word>(chunks: &[Chunk<'_>], way: &Way) -> Result<Option<u64>> {
        let Some(CodedAll { codes, exceptions, .. }) = code_all::<W>(chunks, way)? else { return Ok(None) };
        let (all, left) = share(chunks, &codes);
        let bits = bits_of(&codes, way.order, way.scale.special.is_some());
        Ok(Some(bits * all / left + exceptions * 8 * (4 + W::SIZE as u64)))
    }
    if chunks[0].params.dtype.size == 4 { typed::<i32>(chunks, way) } else { typed::<i64>(chunks, way) }
}

/// Whether most of these chunks' codes repeat in rows (find.rs); not where they cannot be taken.
pub(crate) fn repeats(chunks: &[Chunk<'_>], way: &Way) -> Result<bool> {
    fn typed<W: Word>(chunks: &[Chunk<'_>], way: &Way) -> Result<bool> {
        let Some(CodedAll { codes, .. }) = code_all::<W>(chunks, way)? else { return Ok(false) };
        repeat_in_rows(codes.len(), codes.iter().map(|code| code.wide() as u64))
    }
    if chunks[0].params.dtype.size == 4 { typed::<i32>(chunks, way) } else { typed::<i64>(chunks, way) }
}

/// Bytes that the inner frame of these chunks' codes together and their exceptions take; of `bytes`, as a part of
/// them says, where that is much more than `most`. `None` as for [`bits`].
pub(crate) fn len(chunks: &[Chunk<'_>], way: &Way, most: u64) -> Result<Option<u64>> {
    fn typed<W: Word>(chunks: &[Chunk<'_>], way: &Way, most: u64) -> Result<Option<u64>> {
        let Some(coded) = code_all::<W>(chunks, way)? else { return Ok(None) };
        let CodedAll { mut codes, corrections, exceptions } = coded;
        let (all, left) = share(chunks, &codes);
        let Some(extents) = Extents::new(&[codes.len() as u64]) else { return Ok(None) };
        let params = Params { extents, ..*chunks[0].params };
        let as_one = Chunk { params: &params, ..chunks[0] };
        let inner = match way.inner {
            _ if codes.iter().all(|c| *c == W::cut(0)) => 0,
            Inner::Bytes => bytes::len(to_little(&mut codes), W::SIZE as u8, most)?,
            _ => match codes_len(&mut codes, &as_one, way)? {
                Some(len) => len as u64,
                None => return Ok(None),
            },
        };
        let Some(extents) = Extents::new(&[corrections.len().max(1) as u64]) else { return Ok(None) };
        let params = Params { extents, ..*chunks[0].params };
        let corrections = corrections::encode(&corrections, &Chunk { params: &params, ..chunks[0] })?;
        Ok(Some(inner * all / left + corrections.len() as u64 + exceptions * (4 + W::SIZE as u64)))
    }
    if chunks[0].params.dtype.size == 4 { typed::<i32>(chunks, way, most) } else { typed::<i64>(chunks, way, most) }
}

/// Turns words into their little-endian bytes in place; and such bytes into words again.
fn to_little<T: Pod>(words: &mut [T]) -> &mut [u8] {
    let raw = bytemuck::cast_slice_mut(words);
    if cfg!(target_endian = "big") {
        chunk::swap(raw, size_of::<T>());
    }
    raw
}

/// The frame of a dictionary: the differences of its numbers.
pub(super) fn encode_dictionary<W: Word>(differences: &mut [W], threads: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    bytes::encode(to_little(differences), code_type(W::SIZE as u8), threads, &mut out)?;
    Ok(out)
}

/// The params of a chunk's codes, for `planes` and `bytes`.
#[doc(hidden)]
pub fn codes_params(params: &Params, way: &Way) -> Params {
    let size = params.dtype.size;
    Params {
        request: Request::new(Codec::Planes, Bound::Lossless),
        dtype: code_type(size),
        extents: params.extents.unswapped(),
        fill: way.scale.special.map(|_| 1 << (8 * size - 1)),
        lossy_allowed: false,
    }
}

/// The frame of the codes.
pub(super) fn encode_codes<W: Word>(codes: &mut [W], chunk: &Chunk<'_>, way: &Way, out: &mut Vec<u8>) -> Result<bool> {
    let params = codes_params(chunk.params, way);
    let chunk = Chunk { params: &params, raw: to_little(codes), ..*chunk };
    match way.inner {
        Inner::Planes => planes::ENCODE(&chunk, out),
        Inner::Lorenzo => integers::encode(&chunk, special_code::<W>(way), out),
        Inner::Bytes => bytes::ENCODE(&chunk, out),
    }
}

/// Length of that frame. `None`: of none.
pub(super) fn codes_len<W: Word>(codes: &mut [W], chunk: &Chunk<'_>, way: &Way) -> Result<Option<usize>> {
    if way.inner == Inner::Lorenzo {
        let params = codes_params(chunk.params, way);
        let chunk = Chunk { params: &params, raw: to_little(codes), ..*chunk };
        return integers::frame_len(&chunk, special_code::<W>(way));
    }
    let mut inner = Vec::new();
    Ok(encode_codes(codes, chunk, way, &mut inner)?.then_some(inner.len()))
}

/// The special number's code, as f64.
fn special_code<W: Word>(way: &Way) -> Option<f64> {
    way.scale.special.map(|_| W::MIN.wide() as f64)
}

/// Replaces whole numbers, in rows of `row` numbers, by their codes; the step. Where there is a special number its code
/// stands already. `None`: it would not be told from another code.
pub(super) fn differences<W: Word>(k: &mut [W], order: u8, row: usize, has_special: bool) -> Result<Option<i64>> {
    vectorize(
        #[inline(always)]
        || plain_differences(k, order, row, has_special),
    )
}

#[inline(always)]
fn plain_differences<W: Word>(k: &mut [W], order: u8, row: usize, has_special: bool) -> Result<Option<i64>> {
    if order == 0 {
        return Ok(Some(0));
    }
    let mut is_special = memory::zeros::<bool>(if has_special { k.len() } else { 0 })?;
    let mut last = W::cut(0);
    for (k, is_special) in k.iter_mut().zip(&mut is_special) {
        *is_special = *k == W::MIN;
        last = if *is_special { last } else { *k };
        *k = last;
    }
    less_before(k, 1);
    let mut step = 0;
    match order {
        1 => {
            let own = k.iter().zip(&is_special).skip(1).filter(|(_, is_special)| !**is_special);
            let least = if has_special { own.map(|(d, _)| *d).min() } else { k.iter().skip(1).copied().min() };
            step = least.map_or(0, W::wide);
            k.iter_mut().for_each(|d| *d = less(*d, W::cut(step)));
        }
        2 => {
            step = k.get(1).map_or(0, |d| d.wide());
            less_before(k.get_mut(1..).unwrap_or_default(), 1);
        }
        _ => less_before(k, row),
    }
    if order < 3 {
        let ignored = k.len().min(order.into());
        k[..ignored].fill(W::cut(0));
    }
    let mut is_clear = true;
    for (c, is_special) in k.iter_mut().zip(&is_special) {
        is_clear &= *is_special | (*c != W::MIN);
        *c = if *is_special { W::MIN } else { *c };
    }
    Ok(is_clear.then_some(step))
}

#[inline(always)]
fn less<W: Word>(a: W, b: W) -> W {
    W::cut(a.wide().wrapping_sub(b.wide()))
}

/// Takes from each number the one that is `apart` before it: in blocks, for a copy of those before makes vectors of it.
#[inline(always)]
fn less_before<W: Word>(k: &mut [W], apart: usize) {
    const BLOCK: usize = 256;
    let (mut before, mut end) = ([W::cut(0); BLOCK], k.len());
    while end > apart {
        let start = apart.max(end.saturating_sub(BLOCK));
        let before = &mut before[..end - start];
        before.copy_from_slice(&k[start - apart..end - apart]);
        k[start..end].iter_mut().zip(before).for_each(|(k, before)| *k = less(*k, *before));
        end = start;
    }
}

/// Undoes [`differences`], but for the special code, which stays.
fn sum<W: Word>(codes: &mut [W], order: u8, step: i64, row: usize, has_special: bool) -> Result<()> {
    let is_special = |c: W| has_special && c == W::MIN;
    let (mut d, mut r) = (0i64, 0i64);
    match order {
        0 => {}
        1 => codes.iter_mut().enumerate().filter(|(_, c)| !is_special(**c)).for_each(|(i, c)| {
            r = if i == 0 { 0 } else { r.wrapping_add(step).wrapping_add(c.wide()) };
            *c = W::cut(r);
        }),
        2 => codes.iter_mut().enumerate().for_each(|(i, c)| {
            d = match i {
                _ if is_special(*c) => return d = 0,
                0 => 0,
                1 => step,
                _ => d.wrapping_add(c.wide()),
            };
            r = r.wrapping_add(d);
            *c = W::cut(r);
        }),
        _ => {
            // Differences along the row before.
            let mut d = memory::zeros::<i64>(row)?;
            for codes in codes.chunks_mut(row) {
                for (c, d) in codes.iter_mut().zip(&mut d) {
                    if is_special(*c) {
                        *d = 0;
                        continue;
                    }
                    *d = d.wrapping_add(c.wide());
                    r = r.wrapping_add(*d);
                    *c = W::cut(r);
                }
            }
        }
    }
    Ok(())
}

/// Decodes a frame into `out`, which has the frame's raw length.
pub(super) fn decode(frame: &Frame<'_>, threads: usize, out: &mut [u8]) -> Result<()> {
    let h = &frame.header;
    let is_number = h.dtype.is_ieee() || h.dtype.class == Class::Integer && matches!(h.dtype.size, 4 | 8);
    if !is_number || h.mode != Mode::Lossless {
        return Err(Error::corrupt("header", format!("scaled with mode {} and type {:?}", h.mode, h.dtype)));
    }
    match h.dtype.size {
        4 => chunk::into_values::<i32>(out, h.dtype, |words| decode_words(frame, threads, words)),
        _ => chunk::into_values::<i64>(out, h.dtype, |words| decode_words(frame, threads, words)),
    }
}

/// Decodes a frame of codes, of a dictionary or of corrections.
fn decode_inner<T: Pod>(frame: &Frame<'_>, threads: usize, out: &mut [T]) -> Result<()> {
    let codec = match frame.header.codec {
        CodecId::PLANES => &planes::CODEC,
        CodecId::LORENZO => &lorenzo::CODEC,
        _ => &bytes::CODEC,
    };
    (codec.decode)(frame, threads, bytemuck::cast_slice_mut(out))?;
    to_little(out);
    Ok(())
}

fn decode_dictionary<W: Word>(frame: &Frame<'_>, head: Head, threads: usize) -> Result<Vec<W>> {
    let mut dictionary: Vec<W> = memory::zeros(frame.header.raw_len as usize / W::SIZE)?;
    decode_inner(frame, threads, &mut dictionary)?;
    sum(&mut dictionary, 1, head.step, 1, false)?;
    dictionary.iter_mut().for_each(|t| *t = ordered(W::cut(t.wide().wrapping_add(head.scale.origin))));
    Ok(dictionary)
}

fn decode_words<W: Word>(frame: &Frame<'_>, threads: usize, out: &mut [W]) -> Result<()> {
    let n = frame.elements(W::SIZE)?;
    let mut opened = Opened::<W>::open(frame, threads, n)?;
    let Head { scale, order, step } = opened.head;
    match &mut opened.codes {
        Some(codes) => {
            if order == 0 && opened.dictionary.is_none() {
                codes.wanted = frame.wanted.clone();
            }
            decode_inner(codes, threads, out)?;
        }
        None => out.fill(W::cut(0)),
    }
    let row = frame.header.extents.as_slice().last().map_or(1, |&x| x as usize);
    sum(out, order, step, row, scale.special.is_some())?;
    let dictionary =
        opened.dictionary.as_ref().map(|frame| decode_dictionary(frame, opened.head, threads)).transpose()?;
    let mut corrections = memory::zeros::<i8>(if scale.corrected { n } else { 0 })?;
    if let Some(inner) = &mut opened.corrections {
        inner.wanted = frame.wanted.clone();
        decode_inner(inner, threads, &mut corrections)?;
    }
    parallel::try_each(n.div_ceil(THREAD_VALUES), out.chunks_mut(THREAD_VALUES), threads, |k, codes: &mut [W]| {
        if let Some(dictionary) = &dictionary {
            return dictionary::numbers(codes, dictionary, scale.special);
        }
        vectorize(
            #[inline(always)]
            || scale.with_map(Multiply { scale, codes }),
        );
        corrections::add(codes, corrections.get(k * THREAD_VALUES..).unwrap_or_default());
        Ok(())
    })?;
    for (place, bits) in opened.exceptions() {
        bytemuck::bytes_of_mut(&mut out[place]).copy_from_slice(bits);
        if cfg!(target_endian = "big") {
            out[place] = W::cut(out[place].wide().swap_bytes() >> (64 - 8 * W::SIZE));
        }
    }
    Ok(())
}
