// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("FORMAT.md")]

use crate::checksum;
use crate::codec::stored;
use crate::constants::{CHECKSUM_OFFSET, FORMAT_VERSION, FRAME_MAGIC, HEADER_FIXED, MAX_RANK, SECTION_ALIGN};
use crate::error::{Error, Result};
use crate::memory;
use crate::params::{Bound, Dtype, Extents};

/// Most sections a frame may have; the table's length is one byte, the rest is reserved.
const MAX_SECTIONS: usize = 8;

/// What a writer puts into a header, FORMAT.md §2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Header {
    /// Codec number (FORMAT.md §3.2).
    pub codec: u8,
    /// What was asked for; the header holds its mode.
    pub bound: Bound,
    /// The absolute bound used (mode `pw_rel`: the relative one); 0 when lossless.
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

/// Bytes by which a frame may exceed its chunk (FORMAT.md §6).
pub const STORED_HEADER: usize = stored::HEADER_LEN;

/// Writes the frame that stores `raw` as it is into `out`, allocating next to nothing: for an encoder without memory.
///
/// # Panics
/// When `out` has not [`STORED_HEADER`] bytes more than `raw`.
pub fn store(raw: &[u8], out: &mut [u8]) {
    stored::write(raw, out);
}

/// The header with its section table, the checksum left 0; as long as [`Writer`] leaves room for.
pub(crate) fn head(h: &Header, sections: &[u64], stored_len: u64) -> Vec<u8> {
    let dims = h.extents.as_slice();
    let mut head = Vec::with_capacity(HEADER_FIXED + 4 * MAX_RANK + 8 * MAX_SECTIONS);
    head.extend(FRAME_MAGIC);
    head.extend([FORMAT_VERSION, h.codec, h.bound.mode(), dims.len() as u8]);
    head.extend(h.dtype.pack().to_le_bytes());
    head.extend(h.raw_len.to_le_bytes());
    head.extend(stored_len.to_le_bytes());
    head.extend(h.used.to_bits().to_le_bytes());
    head.extend([0; 8]); // the checksum
    head.extend((sections.len() as u64).to_le_bytes());
    dims.iter().for_each(|d| head.extend(d.to_le_bytes()));
    sections.iter().for_each(|len| head.extend(len.to_le_bytes()));
    head.resize(header_len(dims.len(), sections.len()), 0);
    head
}

/// A validated frame: header fields and the sections' bytes.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The header's fields.
    pub header: HeaderInFile,
    sections: Vec<&'a [u8]>,
}

/// What a reader learns from a header: of what was asked, the mode alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeaderInFile {
    /// Format version of the writer.
    pub version: u8,
    /// Codec number (FORMAT.md §3.2).
    pub codec: u8,
    /// Mode number: 1 absolute, 2 relative, 3 point-wise relative, 4 PSNR, 9 lossless.
    pub mode: u8,
    /// The absolute bound used (mode 3: the relative one); 0 when lossless.
    pub used: f64,
    /// What one element is.
    pub dtype: Dtype,
    /// Extents of the chunk.
    pub extents: Extents,
    /// Bytes after decoding.
    pub raw_len: u64,
    /// Bytes of the frame.
    pub stored_len: u64,
    /// What the checksum must be.
    pub checksum: u64,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// Reads the fixed part and checks magic, version and stored length: all that is needed to know the raw length.
fn fixed(bytes: &[u8]) -> Result<HeaderInFile> {
    const S: &str = "header";
    if bytes.len() < HEADER_FIXED {
        return Err(Error::Length { section: S, needed: HEADER_FIXED as u64, got: bytes.len() as u64 });
    }
    if bytes[..8] != FRAME_MAGIC {
        return Err(Error::corrupt(S, format!("begins with {:02x?}, not with h5z-gpu's mark", &bytes[..8])));
    }
    let (version, codec) = (bytes[8], bytes[9]);
    if version > FORMAT_VERSION || version == 0 {
        return Err(Error::Unsupported { format: version, codec });
    }
    let stored_len = u64::from_le_bytes(field(bytes, 24));
    if stored_len != bytes.len() as u64 {
        return Err(Error::Length { section: "frame", needed: stored_len, got: bytes.len() as u64 });
    }
    let rank = usize::from(bytes[11]);
    if rank > MAX_RANK {
        return Err(Error::corrupt(S, format!("rank {rank}, limit {MAX_RANK}")));
    }
    let type_word = u32::from_le_bytes(field(bytes, 12));
    let used = f64::from_bits(u64::from_le_bytes(field(bytes, 32)));
    let bounded = match bytes[10] {
        1..=4 => used.is_finite() && used.is_sign_positive(),
        9 => used.to_bits() == 0,
        _ => false,
    };
    if !bounded {
        let why = format!(
            "mode {} with bound {used:e}; modes 1 to 4 have a finite one, not negative, mode 9 has 0",
            bytes[10]
        );
        return Err(Error::corrupt(S, why));
    }
    Ok(HeaderInFile {
        version,
        codec,
        mode: bytes[10],
        used,
        dtype: Dtype::unpack(type_word).ok_or_else(|| {
            Error::corrupt(
                S,
                format!("type word {type_word:#x}; its class is none of 0, 1, 15, or a reserved bit is set"),
            )
        })?,
        extents: Extents::default(),
        raw_len: u64::from_le_bytes(field(bytes, 16)),
        stored_len,
        checksum: u64::from_le_bytes(field(bytes, CHECKSUM_OFFSET)),
    })
}

/// Bytes that the chunk has after decoding, as its header says.
///
/// # Errors
/// As [`Frame::open`], but the checksum and the sections are not looked at.
pub fn raw_len(bytes: &[u8]) -> Result<u64> {
    fixed(bytes).map(|h| h.raw_len)
}

/// The header's fields but its extents, which are left out: enough to know what decoding takes.
///
/// # Errors
/// As [`raw_len`].
pub fn header(bytes: &[u8]) -> Result<HeaderInFile> {
    fixed(bytes)
}

impl<'a> Frame<'a> {
    /// Validates a frame: magic, version, lengths, section table, checksum.
    ///
    /// # Errors
    /// `Unsupported` for a newer version, `Length` for a truncated frame, `Corrupt` for anything else.
    pub fn open(bytes: &'a [u8], threads: usize) -> Result<Self> {
        let header = fixed(bytes)?;
        let got = checksum::frame(bytes, threads);
        if header.checksum != got {
            let want = header.checksum;
            return Err(Error::corrupt("checksum", format!("{got:016x}, the header says {want:016x}")));
        }
        Self::sectioned(bytes, header)
    }

    /// As [`Frame::open`] for somebody who compares the checksum himself.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn open_unsummed(bytes: &'a [u8]) -> Result<Self> {
        Self::sectioned(bytes, fixed(bytes)?)
    }

    fn sectioned(bytes: &'a [u8], mut header: HeaderInFile) -> Result<Self> {
        const S: &str = "header";
        let rank = usize::from(bytes[11]);
        let count = u64::from_le_bytes(field(bytes, 48));
        if count > MAX_SECTIONS as u64 {
            return Err(Error::corrupt(S, format!("{count} sections, limit {MAX_SECTIONS}")));
        }
        let count = count as usize;
        let start = header_len(rank, count);
        if start > bytes.len() {
            return Err(Error::Length { section: S, needed: start as u64, got: bytes.len() as u64 });
        }
        let dims: Vec<u64> = (0..rank).map(|k| u32::from_le_bytes(field(bytes, HEADER_FIXED + 4 * k)).into()).collect();
        header.extents = Extents::new(&dims)
            .filter(|e| e.as_slice().len() == rank)
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
        Ok(Frame { header, sections })
    }

    /// The sections, which must be exactly `N`.
    pub(crate) fn sections<const N: usize>(&self) -> Result<[&'a [u8]; N]> {
        self.sections.as_slice().try_into().map_err(|_| {
            Error::corrupt("header", format!("{} sections, codec {} has {N}", self.sections.len(), self.header.codec))
        })
    }

    /// Length in bytes of each section.
    pub fn section_lens(&self) -> Vec<usize> {
        self.sections.iter().map(|s| s.len()).collect()
    }

    /// Elements that extents and raw length agree on, for codecs of numbers of `size` bytes.
    pub(crate) fn elements(&self, size: usize) -> Result<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        let header = Header {
            codec: 0,
            bound: Bound::Absolute(0.5),
            used: 0.5,
            dtype: Dtype::F32,
            extents: Extents::new(&[3, 5]).unwrap(),
            raw_len: 60,
        };
        let mut w = Writer::new(&mut out, header, 2).unwrap();
        w.section(|o| memory::append(o, &[1, 2, 3])).unwrap();
        w.section(|o| memory::append(o, &[4; 21])).unwrap();
        w.seal(1);
        out
    }

    #[test]
    fn a_frame_opens_as_it_was_sealed() {
        let bytes = sample();
        let f = Frame::open(&bytes, 1).unwrap();
        assert_eq!(f.sections::<2>().unwrap(), [&[1, 2, 3][..], &[4; 21]]);
        assert_eq!((f.header.mode, f.header.used, f.header.raw_len), (1, 0.5, 60));
        assert_eq!(f.elements(4).unwrap(), 15);
        assert!(f.elements(8).is_err());
        assert_eq!(raw_len(&bytes).unwrap(), 60);
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_refused() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            Frame::open(&bytes[..cut], 1).expect_err("a truncated frame");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        Frame::open(&longer, 1).expect_err("a longer frame");
        for at in 0..bytes.len() {
            for flip in 1..=255 {
                let mut b = bytes.clone();
                b[at] ^= flip;
                Frame::open(&b, 1).expect_err(&format!("byte {at} ^ {flip:#x}"));
            }
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = sample();
        bytes[8] = 9;
        let e = Frame::open(&bytes, 1).unwrap_err();
        assert_eq!(e, Error::Unsupported { format: 9, codec: 0 });
        assert!(e.to_string().contains("format 9"), "{e}");
    }
}
