// SPDX-License-Identifier: MIT OR Apache-2.0
pub(crate) mod cpu;
