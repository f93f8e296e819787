// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this build is a release, and what its frames say of it (FORMAT.md §1). `build.rs` finds out.

/// The state of the format that the golden vectors have: the sum of all their frames (FORMAT.md §1). `vectors --check`
/// says what it has to be.
pub const FORMAT_STATE: u32 = 0xbc14_78e8;

/// Whether the sources are those of a release.
pub const RELEASED: bool = cfg!(released);

/// What frames of this build hold beside their version: 0 where its sources are those of a release.
pub const DRAFT: u32 = if RELEASED { 0 } else { FORMAT_STATE };

/// A sum over the sources of this crate, in hexadecimal digits, to be compared with that of a release.
pub const SOURCES: &str = env!("H5Z_GPU_SOURCES");
