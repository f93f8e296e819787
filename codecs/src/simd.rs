// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain loops compiled for the vector units that this machine has, chosen when the program runs.
//!
//! Never changes a result: wider registers do the same IEEE operations, and nothing is fused.

/// Runs `f`, compiled for AVX-512 or AVX2 where the machine has them.
///
/// Only what is inlined into `f` profits: mark its callees `#[inline(always)]`. Unit tests run the plain loops, whose
/// copies take a third of the compiler's time; all other tests run the copies.
#[inline(always)]
pub(crate) fn vectorize<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(test)))]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return v4.vectorize(f);
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return v3.vectorize(f);
        }
    }
    f()
}
