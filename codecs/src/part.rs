// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a chunk that a reader wants. A codec that cuts chunks into tiles decodes those which the part touches.
//!
//! A part is a box in a chunk's three folded extents ([`fold`]). Where more than one axis was folded into the slowest,
//! the box spans all between its first and its last value there: a part may be larger than what is wanted, never
//! smaller.

use std::ops::Range;

/// A chunk's extents as three, slowest first: the leading ones multiplied together. `None` where memory cannot hold
/// them.
pub(crate) fn fold(dims: &[u32]) -> Option<[usize; 3]> {
    let mut extents = [1usize; 3];
    let (lead, tail) = dims.split_at(dims.len().saturating_sub(3));
    for (e, &d) in extents.iter_mut().rev().zip(tail.iter().rev()) {
        *e = d as usize;
    }
    for &d in lead {
        extents[0] = extents[0].checked_mul(d as usize)?;
    }
    extents.iter().try_fold(1usize, |a, &e| a.checked_mul(e))?;
    Some(extents)
}

/// A box in a chunk of three extents, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    extents: [usize; 3],
    wanted: [Range<usize>; 3],
}

impl Part {
    /// The part `wanted` of a chunk of extents `dims`, each axis with its range. `None`: all of the chunk.
    pub(crate) fn new(dims: &[u32], wanted: &[Range<u32>]) -> Option<Part> {
        let extents = fold(dims)?;
        if dims.len() != wanted.len() || dims.iter().zip(wanted).any(|(&d, w)| w.is_empty() || w.end > d) {
            return None;
        }
        let (lead, _) = dims.split_at(dims.len().saturating_sub(2));
        let ranges: Vec<_> = wanted.iter().map(|w| w.start as usize..w.end as usize).collect();
        let (slow, fast) = ranges.split_at(lead.len());
        let mut all = [0..1, 0..1, 0..1];
        all[0] = slow.iter().zip(lead).fold(0..1, |a, (w, &d)| join(&a, w, d as usize));
        all.iter_mut().rev().zip(fast.iter().rev()).for_each(|(to, w)| *to = w.clone());
        (0..3).any(|k| all[k] != (0..extents[k])).then_some(Part { extents, wanted: all })
    }

    /// The same part of the same values, where the slower axes are folded further: into [1, z · y, x] or [1, 1, z · y ·
    /// x].
    pub(crate) fn folded(&self, extents: [usize; 3]) -> Part {
        let ([z, y, x], [_, ey, ex]) = (&self.wanted, self.extents);
        let planes = join(z, y, ey);
        let wanted = match extents {
            _ if extents == self.extents => self.wanted.clone(),
            [1, 1, _] => [0..1, 0..1, join(&planes, x, ex)],
            _ => [0..1, planes, x.clone()],
        };
        Part { extents, wanted }
    }

    /// Whether any of a box of values is wanted.
    pub(crate) fn touches(&self, origin: [usize; 3], extents: [usize; 3]) -> bool {
        (0..3).all(|k| origin[k] < self.wanted[k].end && self.wanted[k].start < origin[k] + extents[k])
    }

    /// Whether any of a run of consecutive values is wanted.
    pub(crate) fn touches_run(&self, run: Range<usize>) -> bool {
        let [_, ey, ex] = self.extents;
        (run.start / ex..run.end.div_ceil(ex)).any(|row| {
            let (from, to) = (run.start.max(row * ex) - row * ex, run.end.min((row + 1) * ex) - row * ex);
            self.touches([row / ey, row % ey, from], [1, 1, to - from])
        })
    }
}

/// The range of a · d + b, for a of one range and b of another below d.
fn join(a: &Range<usize>, b: &Range<usize>, d: usize) -> Range<usize> {
    a.start * d + b.start..(a.end - 1) * d + b.end
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    /// Places of a part's values in the chunk.
    fn places(dims: &[u32], wanted: &[Range<u32>]) -> Vec<usize> {
        let mut all = vec![0];
        for (&d, w) in dims.iter().zip(wanted) {
            all = all.iter().flat_map(|&a| w.clone().map(move |b| a * d as usize + b as usize)).collect();
        }
        all
    }

    #[test]
    fn what_is_wanted_is_touched() {
        for (dims, wanted) in [
            (&[100][..], &[7..9][..]),
            (&[9, 11], &[2..3, 4..9]),
            (&[7, 5, 6], &[1..3, 0..5, 2..4]),
            (&[3, 4, 5, 6], &[1..2, 1..3, 2..4, 5..6]),
            (&[2, 3, 4, 5, 6], &[0..2, 1..2, 1..3, 2..4, 5..6]),
        ] {
            let part = Part::new(dims, wanted).unwrap();
            let [a, b, c] = part.extents;
            let inside = places(dims, wanted);
            for fold in [[a, b, c], [1, a * b, c], [1, 1, a * b * c]] {
                let folded = part.folded(fold);
                let [_, y, x] = fold;
                for &at in &inside {
                    assert!(folded.touches([at / x / y, at / x % y, at % x], [1; 3]), "{dims:?} as {fold:?}: {at}");
                    assert!(folded.touches_run(at..at + 1));
                }
            }
            // Up to three axes a part is exact.
            let n = a * b * c;
            let touched = (0..n).filter(|&at| part.touches_run(at..at + 1)).count();
            assert!(touched == inside.len() || dims.len() > 3, "{dims:?}");
            assert!(!part.touches_run(0..inside[0].min(1)) || inside[0] == 0, "{dims:?}");
        }
    }

    #[test]
    fn all_of_a_chunk_is_no_part() {
        assert_eq!(Part::new(&[4, 5], &[0..4, 0..5]), None);
        assert_eq!(Part::new(&[4, 5], &[0..4, 0..6]), None, "beyond the chunk");
        assert_eq!(Part::new(&[4, 5], &[0..4]), None, "another rank");
        assert_eq!(Part::new(&[4, 5], &[2..2, 0..5]), None, "nothing");
        assert!(Part::new(&[4, 5], &[0..4, 1..5]).is_some());
    }
}
