// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of codecs in frames (FORMAT.md §3.2). What each codec does is told in its own folder.

use std::fmt;

/// A codec's number in a frame's header: perhaps one that this build lacks, of a newer writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodecId(pub(crate) u8);

impl CodecId {
    /// Raw bytes in a frame.
    pub const STORED: CodecId = CodecId(0);
    /// Lossy, speed first (SZx/UFZ).
    pub const SZX: CodecId = CodecId(1);
    /// Lossy, ratio first (cuSZ+).
    pub const LORENZO: CodecId = CodecId(2);
    /// Lossless, for 4- and 8-byte numbers.
    pub const NDZIP: CodecId = CodecId(3);
    /// Lossless, for bytes of any kind.
    pub const BYTES: CodecId = CodecId(4);
    /// Lossy or lossless, speed and ratio at once, for 4- and 8-byte numbers.
    pub const PLANES: CodecId = CodecId(5);
    /// Lossless, for 4- and 8-byte numbers that are whole numbers times a unit.
    pub const SCALED: CodecId = CodecId(6);
    /// Lossy, ratio before all: `lorenzo`'s tiles with a context for each residual.
    pub const DENSE: CodecId = CodecId(7);

    /// Names by number.
    pub const NAMES: [&str; 8] = ["stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"];

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The name; `None` for a codec that this build lacks.
    pub fn name(self) -> Option<&'static str> {
        CodecId::NAMES.get(usize::from(self.0)).copied()
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "codec {}", self.0),
        }
    }
}
