// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames put together by hand, field by field as codecs/src/FORMAT.md §2 and §3 say: whole ones that no writer makes,
//! and broken ones.

use super::seal::{parts, seal};

/// The type word of f32, f64 and i32 (codecs/src/FORMAT.md §2.1).
pub const F32: u32 = 0x1708_4041;
pub const F64: u32 = 0x340B_4081;
pub const I32: u32 = 0x0000_4040;
/// The bit of the type word that says big-endian.
pub const BIG_ENDIAN: u32 = 1 << 12;

/// A frame before it is sealed.
#[derive(Clone)]
pub struct Draft {
    pub version: u8,
    pub draft: u32,
    pub codec: u8,
    pub mode: u8,
    pub kind: u32,
    pub raw_len: u64,
    /// The bound's bits.
    pub bound: u64,
    pub dims: Vec<u32>,
    pub sections: Vec<Vec<u8>>,
}

impl Draft {
    /// Of a codec that takes extents; the raw length follows from them.
    pub fn new(codec: u8, mode: u8, bound: f64, kind: u32, dims: &[u32], sections: Vec<Vec<u8>>) -> Draft {
        let values: u64 = dims.iter().map(|&d| u64::from(d)).product();
        let raw_len = values * u64::from(kind >> 4 & 0xFF);
        Draft { version: 2, draft: 0, codec, mode, kind, raw_len, bound: bound.to_bits(), dims: dims.into(), sections }
    }

    /// The parts of a whole frame.
    pub fn of(frame: &[u8]) -> Draft {
        let number = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
        let dims = frame[56..56 + 4 * usize::from(frame[11] & 0x7F)].chunks(4);
        // Behind the header's fourteen parts.
        let sections = parts(frame).into_iter().skip(14);
        Draft {
            version: frame[8],
            draft: (number(48) >> 32) as u32,
            codec: frame[9],
            mode: frame[10],
            kind: (number(8) >> 32) as u32,
            raw_len: number(16),
            bound: number(32),
            dims: dims.map(|d| u32::from_le_bytes(d.try_into().unwrap())).collect(),
            sections: sections.map(|(_, begin, end)| frame[begin..end].to_vec()).collect(),
        }
    }

    /// Of a frame of f64 by `lorenzo` that of integers of this type which holds the same sections.
    pub fn of_integers(frame: &[u8], kind: u32) -> Draft {
        let of = Draft::of(frame);
        let raw_len = of.raw_len / 8 * u64::from(kind >> 4 & 0xFF);
        Draft { mode: 9, bound: 0, kind, raw_len, ..of }
    }

    /// Where its first section begins.
    pub fn sections_at(&self) -> usize {
        (56 + 4 * self.dims.len() + 8 * self.sections.len()).next_multiple_of(8)
    }

    /// The frame, sealed.
    pub fn frame(&self) -> Vec<u8> {
        let mut out = vec![0x89, 0x48, 0x35, 0x5A, 0x47, 0x0D, 0x0A, 0x1A];
        out.extend([self.version, self.codec, self.mode, self.dims.len() as u8]);
        out.extend(self.kind.to_le_bytes());
        out.extend(self.raw_len.to_le_bytes());
        out.extend([0; 8]); // the stored length
        out.extend(self.bound.to_le_bytes());
        out.extend([0; 8]); // the checksum
        out.extend((self.sections.len() as u32).to_le_bytes());
        out.extend(self.draft.to_le_bytes());
        out.extend(self.dims.iter().flat_map(|d| d.to_le_bytes()));
        out.extend(self.sections.iter().flat_map(|s| (s.len() as u64).to_le_bytes()));
        out.resize(self.sections_at(), 0);
        for s in &self.sections {
            out.resize(out.len().next_multiple_of(8), 0);
            out.extend_from_slice(s);
        }
        seal(&mut out);
        out
    }
}
