// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quanta of vectors: positions, velocities or forces of atoms, frame by frame; winds. FORMAT.md §4.5.
//!
//! ```text
//! candidates   for an atom: nothing; its place as the frames before it say; one of two atoms before it and the bond to
//!              that as these frames say; the nearest of three atoms before it
//! estimates    of each candidate's error: from its errors for this atom in the frame before, and for the
//!              atom with the same role in the molecule before
//! lengths      of the bonds to the three atoms before: estimated alike, with what they deviate by
//! choice       the candidate whose estimated bits are the fewest: nobody stores it
//! geometry     where bonds are rigid, an atom lies on a sphere about another, on a circle about two, or at one of two
//!              points beside three; so its last components follow from the first, but for a sign
//! ```
//!
//! A decoder has all that is estimated from. Geometry is in f64, by sums, products, quotients and roots in a fixed
//! order, none fused: one answer on every machine.

mod bonds;
mod estimates;
mod fit;
mod vector;

use bonds::{Bonds, by_error, unknown};
use estimates::{Choice, Estimates, Geometry, NONE};
pub(super) use fit::{Fit, period};
use vector::{BESIDE, Code, LAGS, PARTS, Vector, add, length, size, sub};
pub(super) use vector::{PERIODS, Weights};

/// Groups of contexts.
pub(super) const GROUPS: usize = 12;

/// Whether values of these extents, frames, atoms and components, may be vectors.
pub(super) fn are([_, _, parts]: [usize; 3]) -> bool {
    (2..=PARTS).contains(&parts)
}

/// Working memory of [`walk`]: frames, the newest first, what time predicts of places and of bonds, and estimates.
#[derive(Default)]
pub(super) struct Frames {
    places: [Vec<Vector>; 4],
    time: Vec<Vector>,
    bonds: Vec<Vector>,
    before: Vec<Estimates>,
    now: Vec<Estimates>,
}

impl Frames {
    fn reserve(&mut self, atoms: usize) {
        self.places.iter_mut().chain([&mut self.time, &mut self.bonds]).for_each(|v| v.resize(atoms, [0; PARTS]));
        [&mut self.before, &mut self.now].into_iter().for_each(|v| v.resize(atoms, NONE));
        self.before.fill(NONE);
    }

    /// What time predicts of each atom in frame `t`, which is not the first.
    #[inline(always)]
    fn expect(&mut self, t: usize, weights: &Weights) {
        let [_, p1, p2, p3] = &self.places;
        for i in 0..p1.len() {
            let first = if t > 1 { sub(p1[i], p2[i]) } else { [0; PARTS] };
            let second = if t > 2 { sub(p2[i], p3[i]) } else { [0; PARTS] };
            let by = |[a, b]: [i8; 2]| -> Vector {
                let sum = |c: usize| i64::from(a) * i64::from(first[c]) + i64::from(b) * i64::from(second[c]);
                std::array::from_fn(|c| ((sum(c) + 32) >> 6) as i32)
            };
            (self.time[i], self.bonds[i]) = (add(p1[i], by(weights[0])), add(p1[i], by(weights[1])));
        }
    }

    /// The bonds of an atom that time predicts.
    #[inline(always)]
    fn expected(&self, i: usize) -> [Vector; BESIDE] {
        std::array::from_fn(|k| if i > k { sub(self.bonds[i], self.bonds[i - 1 - k]) } else { [0; PARTS] })
    }

    /// Takes an atom's place into the frame, and what it says into the estimates.
    #[inline(always)]
    fn put(&mut self, i: usize, t: usize, at: Vector, mut own: Estimates) {
        let expected = self.expected(i);
        let current = &mut self.places[0];
        current[i] = at;
        own.add_error(estimates::NOTHING, size(at));
        if t > 0 {
            own.add_error(estimates::TIME, size(sub(at, self.time[i])));
        }
        for k in 0..LAGS.min(i) {
            let bond = sub(at, current[i - 1 - k]);
            own.add_length(k, length(bond));
            if t > 0 && k < BESIDE {
                own.add_error(estimates::TIME + 1 + k, size(sub(bond, expected[k])));
            }
        }
        self.now[i] = own;
    }
}

/// Calls `code` for each number of a tile of frames, atoms and components, in their order. `quanta` are the tile's; a
/// decoder gets them here.
#[inline(always)]
pub(super) fn walk<const DECODES: bool>(
    [_, atoms, parts]: [usize; 3],
    period: usize,
    weights: &Weights,
    quanta: &mut [i32],
    frames: &mut Frames,
    mut code: impl Code,
) {
    frames.reserve(atoms);
    for (t, frame) in quanta.chunks_exact_mut(atoms * parts).enumerate() {
        frames.places.rotate_right(1);
        if t > 0 {
            frames.expect(t, weights);
        }
        for (i, place) in frame.chunks_exact_mut(parts).enumerate() {
            let role = if i >= period { &frames.now[i - period] } else { &NONE };
            let own = Estimates::of(&frames.before[i], role);
            let choice = own.choose(parts == 3);
            let [current, before, ..] = &frames.places;
            let predicted = match choice {
                Choice::Error { candidate: estimates::NOTHING, .. } => [0; PARTS],
                Choice::Error { candidate: estimates::TIME, .. } => frames.time[i],
                Choice::Error { candidate, .. } => {
                    let k = candidate - estimates::TIME - 1;
                    add(current[i - 1 - k], frames.expected(i)[k])
                }
                Choice::Bonds { lags, .. } => current[i - 1 - lags[0]],
                Choice::Unknown if i > 0 => current[i - 1],
                Choice::Unknown => [0; PARTS],
            };
            let mut left = [0; PARTS];
            if !DECODES {
                left[..parts].copy_from_slice(place);
                left = sub(left, predicted);
            }
            match choice {
                Choice::Error { estimate, .. } => by_error(&mut left[..parts], estimate, &mut code),
                Choice::Unknown => unknown(&mut left[..parts], &mut code),
                Choice::Bonds { lags, geometry } => {
                    let others = [1, 2].map(|k| sub(current[i - 1 - lags[k]], predicted));
                    let bonds = Bonds { own: &own, lags, others };
                    match geometry {
                        Geometry::Distance => drop(bonds.by_distance(&mut left[..parts], &mut code)),
                        Geometry::Sphere => bonds.on_sphere(&mut left, &mut code),
                        Geometry::Circle => bonds.on_circle::<DECODES>(&mut left, &mut code),
                        Geometry::Point => {
                            let from = |k: usize| if t > 0 { before[i - k] } else { current[i - period - k] };
                            let old = lags.map(|lag| sub(from(1 + lag), from(0)));
                            bonds.at_point::<DECODES>(old, &mut left, &mut code);
                        }
                    }
                }
            }
            let at = add(predicted, left);
            place.copy_from_slice(&at[..parts]);
            frames.put(i, t, at, own);
        }
        std::mem::swap(&mut frames.before, &mut frames.now);
    }
}
