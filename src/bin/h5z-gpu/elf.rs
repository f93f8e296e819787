// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a shared library is all there. The loader maps one that was cut short, and the program dies at the first missing page.

/// The length that the headers of a 64-bit little-endian ELF file speak of; `None` when it is none.
///
/// Segments are what is mapped; the table of sections stands behind them and is what a copy that was cut short lacks first.
pub(crate) fn stated_len(file: &[u8]) -> Option<u64> {
    const CLASS64_LITTLE: [u8; 2] = [2, 1];
    let number = |at: usize, len: usize| -> Option<u64> {
        let field = file.get(at..at.checked_add(len)?)?;
        Some(field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    if !file.starts_with(b"\x7fELF") || file.get(4..6) != Some(&CLASS64_LITTLE) {
        return None;
    }
    let (segments, sections) = (number(0x20, 8)?, number(0x28, 8)?);
    let (segment_len, segment_count) = (number(0x36, 2)?, number(0x38, 2)?);
    let (section_len, section_count) = (number(0x3A, 2)?, number(0x3C, 2)?);
    let mut end =
        sections.checked_add(section_len * section_count)?.max(segments.checked_add(segment_len * segment_count)?);
    for k in 0..segment_count {
        let at = usize::try_from(segments + k * segment_len).ok()?;
        // p_offset and p_filesz. A record behind the end of the file is counted above.
        let (Some(from), Some(len)) = (number(at + 8, 8), number(at + 32, 8)) else { break };
        end = end.max(from.checked_add(len)?);
    }
    Some(end)
}
