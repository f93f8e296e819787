// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames out of a file into places that are not together, several by one system call where they lie together in the
//! file.
//!
//! A dataset that was written in one go has its frames one behind the other. With chunks of 64 KiB a call for each
//! frame would take four times as long as its bytes.

use crate::array::frames::{Frames, most, read_frame};
use crate::host::file;
use codecs::error::Result;
use std::io::IoSliceMut;

/// Bytes that are read together at most: twice as many are no faster, and fewer threads share them out.
const READ_BYTES: u64 = 512 << 10;

/// Fills each buffer, which has its frame's length, with the frame of its number, from `first` on. Where there is no
/// buffer, none is read. Frames that lie one behind the other in a file are read together. Answers for each.
pub(super) fn read_frames(
    frames: Frames<'_>,
    first: usize,
    raw_len: usize,
    outs: &mut [Option<&mut [u8]>],
) -> Vec<Result<()>> {
    let mut done = Vec::with_capacity(outs.len());
    while done.len() < outs.len() {
        let at = done.len();
        let n = run(frames, first + at, raw_len, &outs[at..]);
        if let (Frames::File(fd, places), true) = (frames, n > 1) {
            let mut together: Vec<_> = outs[at..at + n].iter_mut().flatten().map(|out| IoSliceMut::new(out)).collect();
            if file::read_all_at(fd, &mut together, places[first + at].0).is_ok() {
                done.extend((0..n).map(|_| Ok(())));
                continue;
            }
        }
        // One by one, so that each has its own answer.
        for (k, out) in outs[at..at + n].iter_mut().enumerate() {
            done.push(out.as_mut().map_or(Ok(()), |out| read_frame(frames, first + at + k, raw_len, out)));
        }
    }
    done
}

/// How many frames from number `first` on, at least one, are read together.
fn run(frames: Frames<'_>, first: usize, raw_len: usize, outs: &[Option<&mut [u8]>]) -> usize {
    let Frames::File(_, places) = frames else { return 1 };
    let mut end = places[first].0;
    let together = places[first..].iter().zip(outs).take_while(|((at, len), out)| {
        let next = out.is_some() && *at == end && *len <= most(raw_len);
        end = end.saturating_add(*len);
        next && end - places[first].0 <= READ_BYTES
    });
    together.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_lie_together_are_read_together() {
        let lens = |places: &[(u64, u64)], wanted: &[bool]| {
            let mut memory = vec![[0u8; 0]; places.len()];
            let outs: Vec<_> = memory.iter_mut().zip(wanted).map(|(m, w)| w.then_some(&mut m[..])).collect();
            let (mut at, mut found) = (0, Vec::new());
            while at < places.len() {
                found.push(run(Frames::File(0, places), at, 300_000, &outs[at..]));
                at += found[found.len() - 1];
            }
            found
        };
        let all = [true; 5];
        assert_eq!(lens(&[(10, 5), (15, 5), (20, 1), (21, 2), (23, 9)], &all), [5]);
        assert_eq!(lens(&[(10, 5), (15, 5), (21, 1), (22, 2), (5, 5)], &all), [2, 2, 1], "gaps");
        assert_eq!(
            lens(&[(10, 5), (15, 5), (20, 1), (21, 2), (23, 9)], &[true, false, true, true, false]),
            [1, 1, 2, 1]
        );
        assert_eq!(
            lens(&[(0, 250_000), (250_000, 250_000), (500_000, 250_000), (750_000, 1), (750_001, 1)], &all),
            [2, 3]
        );
        let long = most(300_000) + 1;
        assert_eq!(lens(&[(0, 1), (1, long), (1 + long, 1), (2 + long, 1), (u64::MAX, u64::MAX)], &all), [1, 1, 2, 1]);
    }
}
