// SPDX-License-Identifier: MIT OR Apache-2.0
//! Head, exceptions and sections of a `scaled` frame, FORMAT.md §3, written and read. No loops over numbers.

use super::scale::{Word, code_type};
use crate::codec::chunk;
use crate::codec::kept::{Map, Scale};
use crate::codec_id::CodecId;
use crate::error::{Error, Result};
use crate::frame::{Frame, Header, Writer};
use crate::memory;
use crate::params::{Class, Mode, Params};

/// Bytes of the head.
pub(super) const HEAD_LEN: usize = 56;

/// What a frame's first section says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Head {
    pub(super) scale: Scale,
    pub(super) order: u8,
    pub(super) step: i64,
}

impl Head {
    pub(super) fn bytes(&self) -> [u8; HEAD_LEN] {
        let Scale { map, factor, addend, unit, origin, special, .. } = self.scale;
        let mut out = [0; HEAD_LEN];
        out[..3].copy_from_slice(&[map as u8, self.order, special.is_some().into()]);
        let words = [unit, origin as u64, self.step as u64, factor.to_bits(), addend.to_bits(), special.unwrap_or(0)];
        for (to, word) in out[8..].as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        out
    }

    /// Reads the head of a frame of numbers of this type, and the bytes of the dictionary behind it.
    fn read<'a>(bytes: &'a [u8], header: &Header) -> Result<(Head, &'a [u8])> {
        let has_dictionary = bytes.first() == Some(&(Map::Dictionary as u8));
        let Some((bytes, dictionary)) =
            bytes.split_first_chunk::<HEAD_LEN>().filter(|(_, t)| t.is_empty() != has_dictionary)
        else {
            return Err(Error::Length { section: "scaled head", needed: HEAD_LEN as u64, got: bytes.len() as u64 });
        };
        let wrong = |why: String| Err(Error::corrupt("scaled head", why));
        let [map, order, special, ref zeros @ ..] = bytes[..8] else { unreachable!("eight bytes") };
        let word = |k: usize| u64::from_le_bytes(bytes[8 + 8 * k..16 + 8 * k].try_into().expect("eight bytes"));
        let (unit, step, bits) = (word(0), word(2) as i64, word(5));
        let (factor, addend) = (f64::from_bits(word(3)), f64::from_bits(word(4)));
        let Some(map) = Map::ALL.get(usize::from(map)).copied().filter(|_| order <= 3 && special <= 1) else {
            return wrong(format!("map {map}, order {order}, special {special}; limits are 5, 3 and 1"));
        };
        if zeros.iter().any(|&b| b != 0) {
            return wrong(format!("bytes 3 to 7 are {zeros:02x?}, not 0"));
        }
        let (class, size) = (header.dtype.class, header.dtype.size);
        let is_allowed = (map == Map::Whole) == (class == Class::Integer) && (map != Map::ShortProduct || size == 4);
        let rank = header.extents.as_slice().len();
        if !is_allowed || !map.orders().contains(&order) || order == 3 && rank < 2 {
            return wrong(format!("map {map:?}, order {order} of {size} bytes, {class:?}, rank {rank}"));
        }
        if unit == 0 || matches!(order, 0 | 3) && !has_dictionary && step != 0 {
            return wrong(format!("unit {unit}, step {step} with order {order}; a unit is 1 or more"));
        }
        if has_dictionary && unit != 1 {
            return wrong(format!("unit {unit} with a dictionary; needed is 1"));
        }
        let has_factor = if map.is_exact() { word(3) == 0 } else { factor.is_finite() && factor > 0.0 };
        let has_addend = if map.is_exact() || map == Map::Quotient { word(4) == 0 } else { addend.is_finite() };
        if !has_factor || !has_addend {
            return wrong(format!("factor {factor:e}, addend {addend:e} with map {map:?}"));
        }
        if bits >> (8 * size - 1) > 1 || special == 0 && bits != 0 {
            return wrong(format!("special {special} with the bits {bits:#x} of {size} bytes"));
        }
        let special = (special == 1).then_some(bits);
        let scale = Scale { map, factor, addend, unit, origin: word(1) as i64, special, corrected: false };
        Ok((Head { scale, order, step }, dictionary))
    }
}

/// A number that the map does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exception {
    /// Its place in the chunk.
    pub place: u32,
    /// Its bits.
    pub bits: u64,
}

/// What a frame is put together of.
pub(super) struct Sections<'a> {
    pub(super) head: Head,
    pub(super) dictionary: &'a [u8],
    /// In the order of their places.
    pub(super) exceptions: &'a [Exception],
    pub(super) inner: &'a [u8],
    pub(super) corrections: &'a [u8],
}

/// Writes the frame of a chunk of `raw_len` bytes.
pub(super) fn write(
    params: &Params,
    raw_len: usize,
    sections: &Sections<'_>,
    threads: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Sections { head, dictionary, exceptions, inner, corrections } = *sections;
    let size = usize::from(params.dtype.size);
    let header = chunk::header(params, CodecId::SCALED, None, raw_len);
    let mut w = Writer::new(out, header, if corrections.is_empty() { 3 } else { 4 })?;
    w.section(|o| {
        memory::reserve(o, HEAD_LEN + dictionary.len())?;
        o.extend(head.bytes());
        o.extend_from_slice(dictionary);
        Ok(())
    })?;
    w.section(|o| {
        memory::reserve(o, (4 + size) * exceptions.len())?;
        exceptions.iter().for_each(|e| o.extend(e.place.to_le_bytes()));
        exceptions.iter().for_each(|e| o.extend(&e.bits.to_le_bytes()[..size]));
        Ok(())
    })?;
    w.section(|o| memory::append(o, inner))?;
    if !corrections.is_empty() {
        w.section(|o| memory::append(o, corrections))?;
    }
    w.seal(threads);
    Ok(())
}

/// The frame of a chunk of `raw_len` bytes whose codes, in the order 0 and not all of them 0, a device has made and
/// encoded: `inner` is their frame. `exceptions` come in the order of their places.
#[doc(hidden)]
pub fn frame_around(
    params: &Params,
    raw_len: usize,
    scale: Scale,
    exceptions: &[Exception],
    inner: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let head = Head { scale, order: 0, step: 0 };
    write(params, raw_len, &Sections { head, dictionary: &[], exceptions, inner, corrections: &[] }, 1, out)
}

/// A validated frame of this codec.
pub(super) struct Opened<'a, W> {
    pub(super) head: Head,
    places: &'a [[u8; 4]],
    bits: &'a [u8],
    /// The inner frame; `None`: all codes are 0.
    pub(super) codes: Option<Frame<'a>>,
    /// The frame of the dictionary; `None`: the map has none.
    pub(super) dictionary: Option<Frame<'a>>,
    /// The frame of the corrections; `None`: there are none.
    pub(super) corrections: Option<Frame<'a>>,
    word: std::marker::PhantomData<W>,
}

impl<'a, W: Word> Opened<'a, W> {
    /// Checks head and exceptions, and opens the inner frame. FORMAT.md §7.
    pub(super) fn open(frame: &Frame<'a>, threads: usize, n: usize) -> Result<Self> {
        let ([head, exceptions, codes], corrections) = match frame.sections() {
            Ok([head, exceptions, codes, corrections]) => ([head, exceptions, codes], Some(corrections)),
            Err(_) => (frame.sections()?, None),
        };
        let (mut head, dictionary) = Head::read(head, &frame.header)?;
        head.scale.corrected = corrections.is_some();
        if head.scale.corrected && head.scale.map != Map::Quotient {
            let why = format!("{:?} has none; needed are quotients", head.scale.map);
            return Err(Error::corrupt("scaled corrections", why));
        }
        let count = exceptions.len() / (4 + W::SIZE);
        let (places, bits) = exceptions.split_at(4 * count);
        let (places, _) = places.as_chunks();
        if exceptions.len() != count * (4 + W::SIZE) {
            let needed = ((count + 1) * (4 + W::SIZE)) as u64;
            return Err(Error::Length { section: "scaled exceptions", needed, got: exceptions.len() as u64 });
        }
        let place = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        let rise = places.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]));
        if !rise || places.last().is_some_and(|last| place(last) >= n) {
            let why = format!("{count} places that do not rise, or not below {n}");
            return Err(Error::corrupt("scaled exceptions", why));
        }
        let inner = |section, bytes, size| inner(section, bytes, size, &frame.header, threads, n);
        let codes = if codes.is_empty() { None } else { Some(inner("scaled codes", codes, W::SIZE)?) };
        let dictionary = if dictionary.is_empty() { None } else { Some(Self::dictionary(dictionary, threads, n)?) };
        let corrections = corrections.map(|bytes| inner("scaled corrections", bytes, 1)).transpose()?;
        Ok(Opened { head, places, bits, codes, dictionary, corrections, word: std::marker::PhantomData })
    }

    fn dictionary(dictionary: &'a [u8], threads: usize, n: usize) -> Result<Frame<'a>> {
        let frame = Frame::open(dictionary, threads)?;
        let h = &frame.header;
        let count = h.raw_len / W::SIZE as u64;
        let is_whole = h.raw_len % W::SIZE as u64 == 0 && (1..=n as u64).contains(&count);
        if h.codec != CodecId::BYTES || !is_whole || h.mode != Mode::Lossless || h.dtype != code_type(W::SIZE as u8) {
            let why = format!(
                "a dictionary by {} with mode {}, {:?} and {} raw bytes; needed are bytes, signed little-endian \
                 integers of {} bytes, and {n} of them at most",
                h.codec,
                h.mode,
                h.dtype,
                h.raw_len,
                W::SIZE
            );
            return Err(Error::corrupt("scaled dictionary", why));
        }
        Ok(frame)
    }

    /// Places and bits of the exceptions.
    pub(super) fn exceptions(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let places = self.places.iter().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        places.zip(self.bits.chunks_exact(W::SIZE))
    }
}

/// Opens the frame of the codes or of the corrections: `n` integers of `size` bytes.
fn inner<'a>(
    section: &'static str,
    bytes: &'a [u8],
    size: usize,
    outer: &Header,
    threads: usize,
    n: usize,
) -> Result<Frame<'a>> {
    let frame = Frame::open(bytes, threads)?;
    let h = &frame.header;
    let has_shape = match h.codec {
        CodecId::PLANES if size == 1 => false,
        CodecId::PLANES | CodecId::LORENZO => h.extents == outer.extents.unswapped(),
        codec => codec == CodecId::BYTES,
    };
    if !has_shape || h.mode != Mode::Lossless || h.dtype != code_type(size as u8) || h.raw_len != (n * size) as u64 {
        let why = format!(
            "{} with mode {}, {:?}, extents {:?} and {} raw bytes; needed are {}lorenzo or bytes without loss, signed \
             little-endian integers of {size} bytes, and {n} of them",
            h.codec,
            h.mode,
            h.dtype,
            h.extents.as_slice(),
            h.raw_len,
            if size == 1 { "" } else { "planes, " },
        );
        return Err(Error::corrupt(section, why));
    }
    Ok(frame)
}
