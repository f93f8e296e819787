// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vector unit that a run of tiles is coded for.

use crate::stage::pack::{Bytes, Portable};

/// A vector unit.
pub(super) trait Unit: Bytes {
    /// It multiplies and adds with one rounding: in software that would be slow.
    const FUSED: bool;
}

impl Unit for Portable {
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
}

#[cfg(target_arch = "x86_64")]
impl Unit for pulp::x86::V3 {
    const FUSED: bool = true;
}

/// Work that is compiled for each vector unit. A type and not a closure, so that all of it is certain to be inlined into the
/// function that is compiled for the vector unit.
pub(super) trait Run {
    type Output;
    fn run(self, level: impl Unit) -> Self::Output;
}

struct On<R, L>(R, L);

impl<R: Run, L: Unit> pulp::NullaryFnOnce for On<R, L> {
    type Output = R::Output;

    #[inline(always)]
    fn call(self) -> R::Output {
        self.0.run(self.1)
    }
}

/// Does the work on the best unit that this machine has.
pub(super) fn dispatch<R: Run>(run: R) -> R::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return v4.vectorize(On(run, *v4));
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return v3.vectorize(On(run, v3));
        }
    }
    portable(run)
}

/// Does the work in plain Rust.
pub(super) fn portable<R: Run>(run: R) -> R::Output {
    run.run(Portable)
}
