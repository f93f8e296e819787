// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a changed frame look whole again: stored length and checksum anew, written from codecs/src/FORMAT.md §2 and
//! §4.

/// The checksum of FORMAT.md §4.2.
pub fn checksum(frame: &[u8]) -> u64 {
    let mut sum = 0u64;
    for (i, word) in frame.chunks(4).enumerate() {
        if i == 10 || i == 11 {
            continue;
        }
        let mut w = [0; 4];
        w[..word.len()].copy_from_slice(word);
        let t = (2 * i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let p = u64::from(u32::from_le_bytes(w)).wrapping_mul(t ^ t << 32);
        sum = sum.wrapping_add(p ^ p >> 32);
    }
    sum
}

/// Rewrites stored length and checksum; a frame shorter than a header stays as it is.
pub fn seal(frame: &mut [u8]) {
    if frame.len() >= 56 {
        let len = frame.len() as u64;
        frame[24..32].copy_from_slice(&len.to_le_bytes());
        let sum = checksum(frame);
        frame[40..48].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A frame as a release writes it, of version 2: its draft is 0, and that of a frame inside (codecs/src/FORMAT.md §1).
pub fn released(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    // Sections begin at multiples of 8, and so does the frame that is one.
    let starts = (0..frame.len().saturating_sub(55)).step_by(8).filter(|&at| frame[at..].starts_with(&frame[..8]));
    for at in starts.rev().collect::<Vec<_>>() {
        frame[at + 8] = 2;
        frame[at + 52..at + 56].fill(0);
        let len = u64::from_le_bytes(frame[at + 24..at + 32].try_into().unwrap()) as usize;
        seal(&mut frame[at..at + len]);
    }
    frame
}

/// Where header fields and sections of a frame lie, as it says itself: (name, begin, end).
pub fn parts(frame: &[u8]) -> Vec<(String, usize, usize)> {
    let mut parts: Vec<(String, usize, usize)> = [
        ("magic", 0, 8),
        ("version", 8, 9),
        ("codec", 9, 10),
        ("mode", 10, 11),
        ("rank", 11, 12),
        ("type", 12, 16),
        ("raw length", 16, 24),
        ("stored length", 24, 32),
        ("bound", 32, 40),
        ("checksum", 40, 48),
        ("section count", 48, 52),
        ("draft", 52, 56),
    ]
    .map(|(name, begin, end)| (name.to_string(), begin, end))
    .into();
    let rank = usize::from(frame[11] & 0x7F);
    let sections = frame[48] as usize;
    let table = 56 + 4 * rank;
    parts.push(("extents".into(), 56, table));
    parts.push(("section lengths".into(), table, table + 8 * sections));
    let mut at = (table + 8 * sections).next_multiple_of(8);
    for k in 0..sections {
        at = at.next_multiple_of(8);
        let Some(len) = frame.get(table + 8 * k..table + 8 * k + 8) else { break };
        let len = u64::from_le_bytes(len.try_into().unwrap()) as usize;
        parts.push((format!("section {k}"), at, at.saturating_add(len)));
        at = parts[parts.len() - 1].2.min(frame.len());
    }
    parts
}

/// Kinds of a `lorenzo` frame's tiles, §3.3 of that codec's FORMAT.md.
pub fn lorenzo_kinds(frame: &[u8]) -> Vec<u8> {
    let (_, begin, end) = &parts(frame)[15];
    frame[*begin..*end].to_vec()
}
