// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vector unit that tiles are coded for.
//!
//! A step over a tile or a block is compiled for each unit by itself: [`Unit::run`] stands around it, and what it calls is
//! inlined into it. Around all of a tile at once it would be a function too large to be compiled well.

use crate::stage::pack::{Bytes, PLANE, Plane, Portable, SLACK};

/// A vector unit.
pub(super) trait Unit: Bytes {
    /// It multiplies and adds with one rounding: in software that would be slow.
    const FUSED: bool;
    /// Does `step`, compiled for this unit. Only what is inlined into it profits.
    fn run<R>(self, step: impl FnOnce() -> R) -> R;
}

impl Unit for Portable {
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        step()
    }
}

#[cfg(target_arch = "x86_64")]
impl Unit for pulp::x86::V3 {
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        self.vectorize(step)
    }
}

/// AVX-512: plain loops over wider registers, byte shuffles as with AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Wide(pulp::x86::V4);

#[cfg(target_arch = "x86_64")]
impl Unit for Wide {
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, step: impl FnOnce() -> R) -> R {
        self.0.vectorize(step)
    }
}

#[cfg(target_arch = "x86_64")]
impl Bytes for Wide {
    #[inline(always)]
    fn nonzero(self, plane: &Plane) -> u128 {
        (*self.0).nonzero(plane)
    }

    #[inline(always)]
    fn nonzero_words(self, words: &[u32; PLANE / 4]) -> u32 {
        (*self.0).nonzero_words(words)
    }

    #[inline(always)]
    fn compress(self, plane: &Plane, mask: u128, out: &mut [u8; PLANE + SLACK]) {
        (*self.0).compress(plane, mask, out);
    }

    #[inline(always)]
    fn expand_integrate(self, packed: &[u8], mask: u128, out: &mut Plane) {
        (*self.0).expand_integrate(packed, mask, out);
    }

    #[inline(always)]
    fn expand(self, packed: &[u8], mask: u128, out: &mut Plane) {
        (*self.0).expand(packed, mask, out);
    }
}

/// Work on any unit.
pub(super) trait Run {
    type Output;
    fn run(self, unit: impl Unit) -> Self::Output;
}

/// Does the work on the best unit that this machine has.
pub(super) fn dispatch<R: Run>(run: R) -> R::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return run.run(Wide(v4));
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return run.run(v3);
        }
    }
    run.run(Portable)
}
