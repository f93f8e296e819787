// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::checksum;
use crate::codec_id::CodecId;
pub use crate::constants::FRAME_MAGIC;
use crate::constants::{CHECKSUM_OFFSET, FORMAT_VERSION, HEADER_FIXED, MAX_RANK, SECTION_ALIGN};
use crate::error::{Error, Result};
use crate::memory;
use crate::params::{Dtype, Extents, Mode};
use crate::part::Part;
use crate::release::{DRAFT, FORMAT_STATE};

/// Most sections a frame may have; the table's length is one byte, the rest is reserved.
#[doc(hidden)]
pub const MAX_SECTIONS: usize = 8;

/// Where the draft stands in the header.
const DRAFT_OFFSET: usize = 52;

/// The bit beside the rank that says that the first two axes are exchanged.
const SWAPPED: u8 = 0x80;

/// A frame's header (FORMAT.md §2): what its writer says of the chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header {
    /// Codec (FORMAT.md §3.2).
    pub codec: CodecId,
    /// Mode of the bound that was asked for.
    pub mode: Mode,
    /// The absolute bound used (point-wise: the relative one); 0 when lossless.
    pub used: f64,
    /// What one element is.
    pub dtype: Dtype,
    /// Extents of the chunk; none for `stored` and for bytes of unknown shape.
    pub extents: Extents,
    /// Bytes of the chunk before encoding.
    pub raw_len: u64,
}

/// Bytes before the first section: fixed part, extents, section table, filled up to a multiple of eight.
fn header_len(rank: usize, sections: usize) -> usize {
    (HEADER_FIXED + 4 * rank + 8 * sections).next_multiple_of(SECTION_ALIGN)
}

/// Length of a frame of an array of `rank` axes with sections of these lengths.
pub(crate) fn frame_len(rank: usize, sections: &[usize]) -> usize {
    sections.iter().fold(header_len(rank, sections.len()), |end, len| end.next_multiple_of(SECTION_ALIGN) + len)
}

/// Writes one frame into a buffer, section by section.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    header: Header,
    planned: usize,
    /// Start and length of the sections written so far.
    sections: Vec<(usize, usize)>,
}

impl<'a> Writer<'a> {
    /// Clears `out` and leaves room for a header with `sections` sections.
    pub(crate) fn new(out: &'a mut Vec<u8>, header: Header, sections: usize) -> Result<Self> {
        assert!(sections <= MAX_SECTIONS);
        out.clear();
        let len = header_len(header.extents.as_slice().len(), sections);
        memory::reserve(out, len)?;
        out.resize(len, 0);
        Ok(Writer { out, header, planned: sections, sections: Vec::with_capacity(sections) })
    }

    /// Appends the next section: `fill` may only append to what it is given, and asks for room first.
    pub(crate) fn section(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        assert!(self.sections.len() < self.planned, "more sections than planned");
        let start = self.out.len().next_multiple_of(SECTION_ALIGN);
        memory::reserve(self.out, start - self.out.len())?;
        self.out.resize(start, 0);
        fill(self.out)?;
        self.sections.push((start, self.out.len() - start));
        Ok(())
    }

    /// Overwrites a section that was appended as zeros, with bytes known only after a later one was written.
    pub(crate) fn patch(&mut self, section: usize, bytes: &[u8]) {
        let (start, len) = self.sections[section];
        self.out[start..start + len].copy_from_slice(bytes);
    }

    /// Writes header, section table and checksum.
    pub(crate) fn seal(self, threads: usize) {
        assert_eq!(self.sections.len(), self.planned);
        let lens: Vec<u64> = self.sections.iter().map(|&(_, len)| len as u64).collect();
        let head = head(&self.header, &lens, self.out.len() as u64);
        self.out[..head.len()].copy_from_slice(&head);
        set_checksum(self.out, threads);
    }
}

/// Computes a frame's checksum and writes it into the header.
pub(crate) fn set_checksum(frame: &mut [u8], threads: usize) {
    let sum = checksum::frame(frame, threads);
    frame[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Says in a sealed frame what the dataset's values are, where its codec was given them in a wider type (FORMAT.md §5).
pub(crate) fn restate(frame: &mut [u8], mode: Mode, dtype: Dtype, raw_len: usize, threads: usize) {
    frame[10] = mode.number();
    state_type(frame, dtype, raw_len);
    set_checksum(frame, threads);
}

/// The same in a header, whose mode is the dataset's.
#[doc(hidden)]
pub fn state_type(head: &mut [u8], dtype: Dtype, raw_len: usize) {
    head[12..16].copy_from_slice(&dtype.pack().to_le_bytes());
    head[16..24].copy_from_slice(&(raw_len as u64).to_le_bytes());
}

/// Bytes by which a frame may exceed its chunk (FORMAT.md §6): the header of a frame of codec `stored`.
pub const STORED_HEADER: usize = 64;

/// The header of a frame that stores `raw_len` bytes.
fn stored_header(raw_len: usize) -> Header {
    Header {
        codec: CodecId::STORED,
        mode: Mode::Lossless,
        used: 0.0,
        dtype: Dtype::bytes(0),
        extents: Extents::default(),
        raw_len: raw_len as u64,
    }
}

/// Makes a frame that stores them of bytes behind [`STORED_HEADER`] others, allocating next to nothing.
pub(crate) fn seal_stored(frame: &mut [u8], threads: usize) {
    let raw_len = frame.len() - STORED_HEADER;
    let head = head(&stored_header(raw_len), &[raw_len as u64], frame.len() as u64);
    frame[..STORED_HEADER].copy_from_slice(&head);
    set_checksum(frame, threads);
}

/// The header with its section table, the checksum left 0; as long as [`Writer`] leaves room for.
#[doc(hidden)]
pub fn head(h: &Header, sections: &[u64], stored_len: u64) -> Vec<u8> {
    let dims = h.extents.as_slice();
    let mut head = Vec::with_capacity(HEADER_FIXED + 4 * MAX_RANK + 8 * MAX_SECTIONS);
    head.extend(FRAME_MAGIC);
    let swapped = if h.extents.is_swapped() { SWAPPED } else { 0 };
    head.extend([FORMAT_VERSION, h.codec.number(), h.mode.number(), dims.len() as u8 | swapped]);
    head.extend(h.dtype.pack().to_le_bytes());
    head.extend(h.raw_len.to_le_bytes());
    head.extend(stored_len.to_le_bytes());
    head.extend(h.used.to_bits().to_le_bytes());
    head.extend([0; 8]); // the checksum
    head.extend((sections.len() as u32).to_le_bytes());
    head.extend(DRAFT.to_le_bytes());
    dims.iter().for_each(|d| head.extend(d.to_le_bytes()));
    sections.iter().for_each(|len| head.extend(len.to_le_bytes()));
    head.resize(header_len(dims.len(), sections.len()), 0);
    head
}

/// A validated frame: header fields and the sections' bytes.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// The header's fields.
    pub header: Header,
    bytes: &'a [u8],
    sections: Vec<&'a [u8]>,
    /// What a decoder must decode of the chunk; `None`: all of it. It may decode more.
    pub(crate) wanted: Option<Part>,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// Whether a frame's codec has the first two axes of the chunk exchanged.
pub(crate) fn is_swapped(frame: &[u8]) -> bool {
    frame.get(11).is_some_and(|byte| byte & SWAPPED != 0)
}

/// The draft that a header states (FORMAT.md §1): 0, or the state of the format in the unreleased build that wrote it.
fn draft(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(field(bytes, DRAFT_OFFSET))
}

/// Refuses what an unreleased build wrote in another state of the format; after the checksum, where that is compared.
///
/// # Errors
/// `Draft`.
#[doc(hidden)]
pub fn check_draft(bytes: &[u8]) -> Result<()> {
    match draft(bytes) {
        0 | FORMAT_STATE => Ok(()),
        draft => Err(Error::Draft { draft }),
    }
}

/// The rank, and whether the first two axes are exchanged.
fn axes(bytes: &[u8]) -> (usize, bool) {
    (usize::from(bytes[11] & !SWAPPED), is_swapped(bytes))
}

/// Reads the fixed part of a frame of `len` bytes, of which these are the first, and checks magic, version and stored
/// length: all that is needed to know the raw length.
fn first(bytes: &[u8], len: u64) -> Result<Header> {
    const S: &str = "header";
    if bytes.len() < HEADER_FIXED {
        return Err(Error::Length { section: S, needed: HEADER_FIXED as u64, got: bytes.len() as u64 });
    }
    if bytes[..8] != FRAME_MAGIC {
        return Err(Error::corrupt(S, format!("begins with {:02x?}, not with h5z-gpu's mark", &bytes[..8])));
    }
    let (version, codec) = (bytes[8], CodecId(bytes[9]));
    if version != FORMAT_VERSION {
        return Err(Error::Unsupported { format: version, codec });
    }
    let stored_len = u64::from_le_bytes(field(bytes, 24));
    if stored_len != len {
        return Err(Error::Length { section: "frame", needed: stored_len, got: len });
    }
    let (rank, is_swapped) = axes(bytes);
    let may_be_swapped = rank >= 2 && !matches!(codec, CodecId::SZX | CodecId::NDZIP);
    if rank > MAX_RANK || is_swapped && !may_be_swapped {
        let what = if is_swapped { " with its first two axes exchanged" } else { "" };
        return Err(Error::corrupt(S, format!("rank {rank}{what}, codec {codec}, limit {MAX_RANK}")));
    }
    let type_word = u32::from_le_bytes(field(bytes, 12));
    let used = f64::from_bits(u64::from_le_bytes(field(bytes, 32)));
    let mode = Mode::of(bytes[10]).filter(|mode| match mode {
        Mode::Lossless => used.to_bits() == 0,
        _ => used.is_finite() && used.is_sign_positive(),
    });
    let mode = mode.ok_or_else(|| {
        let mode = bytes[10];
        let why =
            format!("mode {mode} with bound {used:e}; modes 1 to 4 have a finite one, not negative, mode 9 has 0");
        Error::corrupt(S, why)
    })?;
    let dtype = Dtype::unpack(type_word).ok_or_else(|| {
        let why = format!("type word {type_word:#x}; its class is none of 0, 1, 15, or a reserved bit is set");
        Error::corrupt(S, why)
    })?;
    let raw_len = u64::from_le_bytes(field(bytes, 16));
    Ok(Header { codec, mode, used, dtype, extents: Extents::default(), raw_len })
}

/// Bytes that the chunk has after decoding, as its header says.
///
/// # Errors
/// As [`Frame::open`], but checksum, draft and sections are not looked at.
pub fn raw_len(bytes: &[u8]) -> Result<u64> {
    header(bytes).map(|h| h.raw_len)
}

/// Zeros for a frame's chunk, which has at most `limit` bytes.
///
/// # Errors
/// As [`raw_len`]; `Params` when the chunk is longer, `NoMemory` when there is none for it.
#[doc(hidden)]
pub fn room_for(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let len = raw_len(bytes)?;
    if len > limit {
        return Err(Error::params("limit", format!("{limit} bytes; the chunk has {len}")));
    }
    memory::zeros(usize::try_from(len).unwrap_or(usize::MAX))
}

/// Bytes that [`peek`] needs.
#[doc(hidden)]
pub const PEEK: usize = HEADER_FIXED;

/// What the first bytes of a frame say.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head {
    /// The format's version.
    pub version: u8,
    /// 0, or the state of the format in the unreleased build that wrote the frame.
    pub draft: u32,
    /// Its extents are left out.
    pub header: Header,
}

/// As [`header`], of the first `PEEK` bytes or more of a frame of `len`.
///
/// # Errors
/// As [`raw_len`].
#[doc(hidden)]
pub fn peek(head: &[u8], len: u64) -> Result<Head> {
    let header = first(head, len)?;
    Ok(Head { version: head[8], draft: draft(head), header })
}

/// The header's fields but its extents, which are left out: enough to know what decoding takes.
///
/// # Errors
/// As [`raw_len`].
pub fn header(bytes: &[u8]) -> Result<Header> {
    peek(bytes, bytes.len() as u64).map(|head| head.header)
}

/// The checksum that a header states.
fn stated_checksum(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(field(bytes, CHECKSUM_OFFSET))
}

impl<'a> Frame<'a> {
    /// Validates a frame: magic, version, lengths, section table, checksum.
    ///
    /// # Errors
    /// `Unsupported` for a newer version, `Length` for a truncated frame, `Corrupt` for anything else.
    pub fn open(bytes: &'a [u8], threads: usize) -> Result<Self> {
        let header = first(bytes, bytes.len() as u64)?;
        Self::summed(bytes, header, checksum::frame(bytes, threads))
    }

    fn summed(bytes: &'a [u8], header: Header, got: u64) -> Result<Self> {
        let want = stated_checksum(bytes);
        if want != got {
            return Err(Error::corrupt("checksum", format!("{got:016x}, the header says {want:016x}")));
        }
        Self::sectioned(bytes, header)
    }

    /// As [`Frame::open`] for somebody who has summed the frame's parts: [`checksum::part`].
    #[doc(hidden)]
    pub fn open_summed(bytes: &'a [u8], sum: u64) -> Result<Self> {
        Self::summed(bytes, first(bytes, bytes.len() as u64)?, sum)
    }

    /// As [`Frame::open`] for somebody who compares the checksum himself.
    #[doc(hidden)]
    pub fn open_unsummed(bytes: &'a [u8]) -> Result<Self> {
        Self::sectioned(bytes, first(bytes, bytes.len() as u64)?)
    }

    fn sectioned(bytes: &'a [u8], mut header: Header) -> Result<Self> {
        const S: &str = "header";
        check_draft(bytes)?;
        let (rank, is_swapped) = axes(bytes);
        let count = u32::from_le_bytes(field(bytes, 48)) as usize;
        if count > MAX_SECTIONS {
            return Err(Error::corrupt(S, format!("{count} sections, limit {MAX_SECTIONS}")));
        }
        let start = header_len(rank, count);
        if start > bytes.len() {
            return Err(Error::Length { section: S, needed: start as u64, got: bytes.len() as u64 });
        }
        let dims: Vec<u64> = (0..rank).map(|k| u32::from_le_bytes(field(bytes, HEADER_FIXED + 4 * k)).into()).collect();
        header.extents = Extents::new(&dims)
            .filter(|e| e.as_slice().len() == rank)
            .and_then(|e| if is_swapped { e.swapped() } else { Some(e) })
            .ok_or_else(|| Error::corrupt(S, format!("extents {dims:?}")))?;
        let mut sections = Vec::with_capacity(count);
        let mut end = (HEADER_FIXED + 4 * rank + 8 * count) as u64;
        for k in 0..count {
            let at = end.next_multiple_of(SECTION_ALIGN as u64);
            let filling = &bytes[end as usize..bytes.len().min(at as usize)];
            if filling.iter().any(|&b| b != 0) {
                let why = format!("bytes {end} to {} before section {k} are not filled up with zeros", at - 1);
                return Err(Error::corrupt(S, why));
            }
            let len = u64::from_le_bytes(field(bytes, HEADER_FIXED + 4 * rank + 8 * k));
            end = at.checked_add(len).filter(|&e| e <= bytes.len() as u64).ok_or_else(|| {
                Error::corrupt(S, format!("section {k} has {len} bytes from {at}, the frame has {}", bytes.len()))
            })?;
            sections.push(&bytes[at as usize..end as usize]);
        }
        if end != bytes.len() as u64 {
            return Err(Error::corrupt(S, format!("sections end at {end}, the frame at {}", bytes.len())));
        }
        Ok(Frame { header, bytes, sections, wanted: None })
    }

    /// The same frame as its codec takes it, whose numbers are of a wider type than the dataset's (FORMAT.md §5).
    #[doc(hidden)]
    pub fn with_header(&self, header: Header) -> Self {
        Frame { header, ..self.clone() }
    }

    /// The sections, which must be exactly `N`.
    #[doc(hidden)]
    pub fn sections<const N: usize>(&self) -> Result<[&'a [u8]; N]> {
        self.sections.as_slice().try_into().map_err(|_| {
            Error::corrupt(
                "header",
                format!("{} sections, codec {} has {N}", self.sections.len(), self.header.codec.number()),
            )
        })
    }

    /// Format version that the frame's writer states.
    pub fn version(&self) -> u8 {
        self.bytes[8]
    }

    /// 0, or the state of the format in the unreleased build that wrote the frame (FORMAT.md §1).
    pub fn draft(&self) -> u32 {
        draft(self.bytes)
    }

    /// Bytes of the frame.
    pub fn stored_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// What the checksum must be, as the header says.
    #[doc(hidden)]
    pub fn checksum(&self) -> u64 {
        stated_checksum(self.bytes)
    }

    /// Length in bytes of each section.
    pub fn section_lens(&self) -> Vec<usize> {
        self.sections.iter().map(|s| s.len()).collect()
    }

    /// What is wanted of the chunk, where its axes are folded into these extents.
    pub(crate) fn wanted_in(&self, extents: [usize; 3]) -> Option<Part> {
        self.wanted.as_ref().map(|part| part.folded(extents))
    }

    /// Elements that extents and raw length agree on, for codecs of numbers of `size` bytes.
    #[doc(hidden)]
    pub fn elements(&self, size: usize) -> Result<usize> {
        let h = &self.header;
        let n = h.extents.count().and_then(|n| n.checked_mul(size as u64));
        if usize::from(h.dtype.size) != size || n != Some(h.raw_len) {
            return Err(Error::corrupt(
                "header",
                format!("raw length {} with extents {:?} of {size} bytes", h.raw_len, h.extents.as_slice()),
            ));
        }
        Ok(h.raw_len as usize / size)
    }
}
