// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks that other filters wrote, as most files have them: deflate (gzip) or Zstandard behind shuffle, with
//! Fletcher's checksum anywhere; or none. They are read, never written.
//!
//! ```text
//!   written    values ─► shuffle ─► deflate ─► fletcher32 ─► file       each step may be missing; a chunk's mask has
//!   read       values ◄─ shuffle ◄─ deflate ◄─ fletcher32 ◄─ file       a bit for each that this chunk went without
//! ```
//!
//! Every length on the way is known: a checksum takes four bytes, shuffle none, and what was behind the compressor when
//! it was written has the length of the values and of the checksums before it. Whatever else a chunk turns out to be is
//! left to HDF5, which reads it or says what is wrong with it.

use libc::c_int;
use libdeflater::Decompressor;

/// HDF5's numbers of these filters, and the registered one of Zstandard.
const DEFLATE: c_int = 1;
const SHUFFLE: c_int = 2;
const FLETCHER32: c_int = 3;
const ZSTD: c_int = 32015;

/// Bytes of a checksum.
const SUM: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Deflate,
    Zstd,
    /// The size of an element in bytes.
    Shuffle(usize),
    Fletcher32,
}

/// The filters of a dataset, in the order in which they write.
pub(super) struct Pipeline {
    steps: Vec<Step>,
    /// Their numbers.
    pub(super) ids: Vec<c_int>,
}

impl Pipeline {
    /// `None` where one is not known here, or where they stand as nobody has them: twice, or shuffle after a
    /// compressor.
    pub(super) fn from_filters(filters: &[(c_int, Vec<u32>)]) -> Option<Pipeline> {
        let step = |(id, words): &(c_int, Vec<u32>)| match *id {
            DEFLATE => Some(Step::Deflate),
            ZSTD => Some(Step::Zstd),
            SHUFFLE => words.first().map(|&size| Step::Shuffle(size as usize)),
            FLETCHER32 => Some(Step::Fletcher32),
            _ => None,
        };
        let steps: Vec<Step> = filters.iter().map(step).collect::<Option<_>>()?;
        let places = |kind: fn(&Step) -> bool| (0..steps.len()).filter(|&k| kind(&steps[k])).collect::<Vec<_>>();
        let compressors = places(|s| matches!(s, Step::Deflate | Step::Zstd));
        let shuffles = places(|s| matches!(s, Step::Shuffle(_)));
        let once =
            [&compressors, &shuffles, &places(|s| *s == Step::Fletcher32)].iter().all(|places| places.len() <= 1);
        let is_behind = compressors.iter().zip(&shuffles).any(|(compressor, shuffle)| shuffle > compressor);
        let ids = filters.iter().map(|(id, _)| *id).collect();
        (once && !is_behind).then_some(Pipeline { steps, ids })
    }

    /// Bytes of the longest stored chunk of `raw_len` bytes that is taken: deflate and Zstandard make noise longer by
    /// less than a hundredth.
    pub(super) fn most(raw_len: u64) -> u64 {
        raw_len.saturating_add(raw_len / 64).saturating_add(1024)
    }

    /// Bytes of memory for steps on the way of a chunk of `raw_len` bytes: a compressor's and a shuffle's output at
    /// most, each with a checksum, where something else is before them.
    fn between(steps: usize, raw_len: usize) -> usize {
        steps.saturating_sub(1).min(2).saturating_mul(raw_len.saturating_add(SUM))
    }

    /// Bytes of memory that a chunk of `raw_len` bytes takes while it is decoded, of which `stored` are in the file.
    pub(super) fn memory(&self, raw_len: u64, stored: u64) -> u64 {
        let between = Pipeline::between(self.steps.len(), usize::try_from(raw_len).unwrap_or(usize::MAX)) as u64;
        stored.saturating_add(raw_len).saturating_add(between)
    }

    /// Fills `raw` with a chunk's values. `mask` has a bit for each filter that the chunk went without, `between` is
    /// memory for steps on the way.
    ///
    /// # Errors
    /// What a chunk of these filters is not.
    pub(super) fn read(&self, stored: &[u8], mask: u32, between: &mut Vec<u8>, raw: &mut [u8]) -> Result<(), String> {
        let steps: Vec<Step> =
            (0..).zip(&self.steps).filter(|(k, _)| mask >> k & 1 == 0).map(|(_, &step)| step).collect();
        // What the first of them gives goes to `raw`.
        let room = Pipeline::between(steps.len(), raw.len());
        if between.len() < room {
            between.try_reserve(room - between.len()).map_err(|_| format!("no memory for {room} bytes"))?;
            between.resize(room, 0);
        }
        let (mut from, mut free) = (stored, &mut between[..]);
        for (k, &step) in steps.iter().enumerate().rev() {
            if step == Step::Fletcher32 {
                from = without_sum(from)?;
                continue;
            }
            // Of this step's output only the values and the checksums of steps before it are left.
            let sums = SUM * steps[..k].iter().filter(|&&step| step == Step::Fletcher32).count();
            if k == 0 {
                return step.undo(from, raw);
            }
            let (to, rest) = free.split_at_mut(raw.len() + sums);
            step.undo(from, to)?;
            (from, free) = (to, rest);
        }
        if from.len() != raw.len() {
            return Err(format!("it has {} bytes where its values have {}", from.len(), raw.len()));
        }
        raw.copy_from_slice(from);
        Ok(())
    }
}

impl Step {
    /// Fills `to` with what this step was given.
    fn undo(self, from: &[u8], to: &mut [u8]) -> Result<(), String> {
        let needed = to.len();
        let wrong = |got: &dyn std::fmt::Display| format!("{self:?} does not give {needed} bytes: {got}");
        let len = match self {
            Step::Deflate => Decompressor::new().zlib_decompress(from, to).map_err(|e| wrong(&e))?,
            Step::Zstd => zstd::bulk::decompress_to_buffer(from, to).map_err(|e| wrong(&e))?,
            Step::Shuffle(size) if from.len() == to.len() => {
                unshuffle(from, size, to);
                from.len()
            }
            _ => from.len(),
        };
        if len == needed { Ok(()) } else { Err(wrong(&len)) }
    }
}

/// Undoes HDF5's shuffle: first bytes of all elements, then their second bytes, and so on; what is no whole element
/// stays behind them.
fn unshuffle(from: &[u8], size: usize, to: &mut [u8]) {
    /// For sizes that numbers have, so that the inner loop has a fixed length.
    fn fixed<const SIZE: usize>(from: &[u8], n: usize, to: &mut [u8]) {
        let planes: [&[u8]; SIZE] = std::array::from_fn(|b| &from[b * n..][..n]);
        for (i, element) in to.chunks_exact_mut(SIZE).enumerate() {
            for (byte, plane) in element.iter_mut().zip(planes) {
                *byte = plane[i];
            }
        }
    }
    let n = from.len().checked_div(size).unwrap_or(0);
    if size <= 1 || n <= 1 {
        to.copy_from_slice(from);
        return;
    }
    let (elements, rest) = to.split_at_mut(n * size);
    match size {
        2 => fixed::<2>(from, n, elements),
        4 => fixed::<4>(from, n, elements),
        8 => fixed::<8>(from, n, elements),
        _ => elements.iter_mut().enumerate().for_each(|(k, byte)| *byte = from[k % size * n + k / size]),
    }
    rest.copy_from_slice(&from[n * size..]);
}

/// What stands before a checksum that is right.
fn without_sum(from: &[u8]) -> Result<&[u8], String> {
    let (bytes, sum) = from.split_last_chunk::<SUM>().ok_or("it is shorter than its checksum")?;
    match u32::from_le_bytes(*sum) == fletcher32(bytes) {
        true => Ok(bytes),
        false => Err("its checksum is wrong".into()),
    }
}

/// Fletcher's checksum over words of two bytes, the first the upper one, as HDF5 takes it: both sums modulo 2^16 - 1.
fn fletcher32(bytes: &[u8]) -> u32 {
    /// Words after which the sums are folded; with more the second would run over.
    const FOLD: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0u32, 0u32);
    let (words, odd) = bytes.split_at(bytes.len() & !1);
    for some in words.chunks(2 * FOLD) {
        for word in some.chunks_exact(2) {
            first += u32::from(word[0]) << 8 | u32::from(word[1]);
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [byte] = odd {
        first += u32::from(*byte) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_texts() {
        // Worked out by hand from the two sums.
        assert_eq!(fletcher32(&[]), 0);
        assert_eq!(fletcher32(&[1, 2]), 0x0102_0102);
        assert_eq!(fletcher32(&[1, 2, 3]), (0x0102 + 0x0402) << 16 | 0x0402);
        assert_eq!(fletcher32(&[0xff; 2000]), 0xffff_ffff);
    }

    #[test]
    fn shuffled_bytes_come_back() {
        for (size, n) in [(0, 9), (1, 9), (2, 9), (3, 11), (4, 30), (8, 64), (8, 7), (16, 40)] {
            let values: Vec<u8> = (0..n as u8).collect();
            let whole = if size > 1 { n / size } else { 0 };
            let mut shuffled: Vec<u8> = (0..size).flat_map(|b| (0..whole).map(move |i| (i * size + b) as u8)).collect();
            shuffled.extend(&values[whole * size..]);
            let mut back = vec![0; n];
            unshuffle(&shuffled, size, &mut back);
            assert_eq!(back, values, "{size} {n}");
        }
    }

    #[test]
    fn lists_that_are_taken() {
        let list = |ids: &[c_int]| Pipeline::from_filters(&ids.iter().map(|&id| (id, vec![4])).collect::<Vec<_>>());
        let steps = vec![Step::Shuffle(4), Step::Deflate, Step::Fletcher32];
        assert_eq!(list(&[2, 1, 3]).map(|list| list.steps), Some(steps));
        assert!(list(&[3, 2, 32015]).is_some() && list(&[]).is_some());
        for ids in [&[1, 1][..], &[2, 2, 1], &[1, 32015], &[6, 1], &[443], &[2, 443], &[3, 1, 3], &[1, 2]] {
            assert!(list(ids).is_none(), "{ids:?}");
        }
        assert!(Pipeline::from_filters(&[(SHUFFLE, vec![])]).is_none());
    }

    #[test]
    fn damage_is_a_sentence() {
        let (mut between, mut raw) = (Vec::new(), [0; 8]);
        let list =
            |ids: &[c_int]| Pipeline::from_filters(&ids.iter().map(|&id| (id, vec![4])).collect::<Vec<_>>()).unwrap();
        for ids in [&[1][..], &[32015], &[2, 1], &[3], &[2, 3], &[3, 2, 1], &[2, 1, 3]] {
            for stored in [&b""[..], b"abc", b"abcdefgh", b"abcdefghijkl", &[0; 7]] {
                let read = list(ids).read(stored, 0, &mut between, &mut raw);
                assert!(read.is_err(), "{ids:?} {stored:?}");
            }
        }
        assert_eq!(list(&[2, 1]).read(b"abcdefgh", 3, &mut between, &mut raw), Ok(()));
        assert_eq!(&raw, b"abcdefgh");
    }
}
