// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way that is left where a device has no memory to work in: the host codes a chunk at a time, and its values are
//! copied between the user's array and ordinary memory, run by run. That takes no memory of the device, and is the
//! slower the shorter the runs are.

use super::copies::{Side, joined};
use crate::array::boxes::{Array, Overlap, dense};
use crate::cuda::abi::BoxCopy;
use crate::cuda::{Device, Direct, Failure, UserStream};
use crate::error::Result;

/// Copies between an array on a device and dense chunks in host memory.
pub(super) struct ByHost<'a> {
    pub(super) device: &'static Device,
    pub(super) user: UserStream,
    pub(super) array: &'a Array,
}

impl ByHost<'_> {
    /// Copies an overlap from the array into a dense chunk of these extents.
    pub(super) fn fetch(&self, overlap: &Overlap, chunk: &[u64], raw: &mut [u8]) -> Result<()> {
        let runs = self.runs(overlap, chunk, raw.len())?;
        let run = runs.run as usize;
        self.copy(&runs, |direct, in_array, in_chunk| {
            // SAFETY: a run of the array, whose owner promised that it can be read.
            #[allow(unsafe_code)]
            unsafe {
                direct.fetch(in_array, &mut raw[in_chunk as usize..][..run])
            }
        })
    }

    /// Copies an overlap from a dense chunk of these extents into the array.
    pub(super) fn send(&self, overlap: &Overlap, chunk: &[u64], raw: &[u8]) -> Result<()> {
        let runs = self.runs(overlap, chunk, raw.len())?;
        let run = runs.run as usize;
        self.copy(&runs, |direct, in_array, in_chunk| {
            // SAFETY: as above, of an array that can be written.
            #[allow(unsafe_code)]
            unsafe {
                direct.send(&raw[in_chunk as usize..][..run], in_array)
            }
        })
    }

    /// The overlap's runs: addresses in the array, and offsets in the chunk.
    fn runs(&self, overlap: &Overlap, chunk: &[u64], len: usize) -> Result<BoxCopy> {
        let (at, strides) = self.array.place_of(overlap);
        let (offset, _) = self.array.place(overlap, chunk, len);
        let (steps, (_, extents)) = (dense(chunk, self.array.element()), overlap.in_array());
        let in_chunk = Side { at: offset as u64, steps: &steps };
        joined(Side { at, steps: strides }, in_chunk, &extents, self.array.element())
    }

    fn copy(&self, runs: &BoxCopy, mut one: impl FnMut(&Direct, u64, u64) -> Result<(), Failure>) -> Result<()> {
        let _current = self.device.enter()?;
        let direct = Direct::new(self.user)?;
        let count = runs.extents.iter().map(|&n| u64::from(n)).product::<u64>();
        (0..count).try_for_each(|n| {
            let (mut rest, mut in_array, mut in_chunk) = (n, runs.from, runs.to);
            for d in (0..runs.extents.len()).rev() {
                let k = rest % u64::from(runs.extents[d]);
                rest /= u64::from(runs.extents[d]);
                // Steps may be negative: sums wrap.
                in_array = in_array.wrapping_add(k.wrapping_mul(runs.from_steps[d]));
                in_chunk = in_chunk.wrapping_add(k.wrapping_mul(runs.to_steps[d]));
            }
            one(&direct, in_array, in_chunk)
        })?;
        Ok(direct.wait()?)
    }
}
