// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is estimated of an atom before it is coded, and the candidate that follows from it. FORMAT.md §4.5, *Estimates*
//! and *Choice*.

use super::vector::{BESIDE, LAGS, magnitude_of};

/// Candidates whose errors are estimated: nothing, time, and beside each of the last atoms.
const ERRORS: usize = 2 + BESIDE;
pub(super) const NOTHING: usize = 0;
pub(super) const TIME: usize = 1;

/// What is known before an atom is coded: errors in 128ths of an octave, lengths and deviations in 16ths; -1 for what
/// is not.
#[derive(Clone, Copy)]
pub(super) struct Estimates {
    errors: [i32; ERRORS],
    pub(super) lengths: [i64; LAGS],
    pub(super) deviations: [i64; LAGS],
}

pub(super) const NONE: Estimates = Estimates { errors: [-1; ERRORS], lengths: [-1; LAGS], deviations: [-1; LAGS] };

/// Where an atom may lie.
#[derive(Clone, Copy)]
pub(super) enum Geometry {
    /// At a distance from the first.
    Distance,
    Sphere,
    Circle,
    Point,
}

/// How an atom is predicted.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// A candidate with an estimate of its error.
    Error {
        candidate: usize,
        estimate: i32,
    },
    /// From the atoms before it, whose lags less one these are, the nearest first.
    Bonds {
        lags: [usize; LAGS],
        geometry: Geometry,
    },
    Unknown,
}

impl Estimates {
    /// From those of the same atom in the frame before and of the same role in this one.
    #[inline(always)]
    pub(super) fn of(before: &Estimates, role: &Estimates) -> Self {
        let mut own = NONE;
        for k in 0..ERRORS {
            own.errors[k] = match (before.errors[k], role.errors[k]) {
                (a, b) if a >= 0 && b >= 0 => (3 * a + b) >> 2,
                (a, b) => a.max(b),
            };
        }
        for k in 0..LAGS {
            let ((a, b), (da, db)) = ((before.lengths[k], role.lengths[k]), (before.deviations[k], role.deviations[k]));
            (own.lengths[k], own.deviations[k]) = match (a >= 0, b >= 0) {
                (true, true) if (a - b).abs() <= 32 + 2 * da.min(db) => ((a + b) >> 1, (da + db) >> 1),
                (true, true) => (a, da.max(db)),
                (false, _) => (b, db),
                (true, false) => (a, da),
            };
        }
        own
    }

    #[inline(always)]
    pub(super) fn add_error(&mut self, candidate: usize, error: i32) {
        let own = &mut self.errors[candidate];
        *own = if *own < 0 { 16 * error } else { *own + ((5 * (16 * error - *own)) >> 4) };
    }

    #[inline(always)]
    pub(super) fn add_length(&mut self, lag: usize, length: i64) {
        let (own, deviation) = (&mut self.lengths[lag], &mut self.deviations[lag]);
        let by = (length - *own).abs();
        if *own < 0 {
            (*own, *deviation) = (length, length >> 1);
        } else if by > 128 + 6 * *deviation {
            (*own, *deviation) = (length, by.min(length));
        } else {
            *own += (length - *own) >> 2;
            *deviation += (3 * (by - *deviation)) >> 3;
        }
    }

    /// The candidate whose estimated bits are the fewest, in eighths.
    #[inline(always)]
    pub(super) fn choose(&self, is_space: bool) -> Choice {
        let (mut best, mut choice) = (i32::MAX, Choice::Unknown);
        let mut take = |cost: i32, new: Choice| {
            if cost < best {
                (best, choice) = (cost, new);
            }
        };
        let known = (0..LAGS).filter(|&k| self.lengths[k] >= 0);
        if let Some(first) = known.min_by_key(|&k| self.lengths[k]) {
            let deviation = |k: usize| self.deviations[k];
            let is_rigid = |k: usize| self.lengths[k] >= 0 && 6 * deviation(k) < self.lengths[first];
            let (far, near) = (magnitude_of(self.lengths[first]), |k: usize| magnitude_of(deviation(k)).max(32));
            let mut lags = [first; LAGS];
            take(3 * far + 24, Choice::Bonds { lags, geometry: Geometry::Distance });
            if is_space && is_rigid(first) {
                take(2 * far + near(first) + 39, Choice::Bonds { lags, geometry: Geometry::Sphere });
                let mut others = 1;
                for k in (0..LAGS).filter(|&k| k != first && is_rigid(k)) {
                    lags[others] = k;
                    others += 1;
                }
                if others == 3 && deviation(lags[2]) < deviation(lags[1]) {
                    lags.swap(1, 2);
                }
                if others >= 2 {
                    let near = near(first).max(near(lags[1]));
                    take(far + 2 * near + 41, Choice::Bonds { lags, geometry: Geometry::Circle });
                }
                if others == 3 {
                    let near = near(first).max(near(lags[2]));
                    take(3 * near + 54, Choice::Bonds { lags, geometry: Geometry::Point });
                }
            }
        }
        for (candidate, &estimate) in self.errors.iter().enumerate().filter(|error| *error.1 >= 0) {
            take(3 * (estimate >> 4) + 114, Choice::Error { candidate, estimate });
        }
        choice
    }
}
