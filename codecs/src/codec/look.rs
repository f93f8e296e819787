// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of a chunk by which its lossless codec is chosen: stacks of tiles, as in sample.rs, then runs of numbers.

use super::kept::Kept;
use super::sample::Stack;
use super::scaled;
use crate::error::Result;
use crate::memory;
use crate::params::Params;

/// How a chunk is coded without loss.
pub struct Chosen {
    pub kept: Kept,
    /// Its frame, where choosing made it.
    pub(crate) frame: Option<Vec<u8>>,
}

impl From<Kept> for Chosen {
    fn from(kept: Kept) -> Chosen {
        Chosen { kept, frame: None }
    }
}

/// A sample of chunks with the same params.
pub trait Look: Sync {
    /// None: all of the chunk is looked at.
    fn stacks(&self) -> Vec<&Stack>;
    /// Numbers of a run, and where each begins.
    fn runs(&self) -> (usize, &[usize]);
    /// Chooses how the chunk that the sample `seen` was taken from is coded without loss; its frame, where that was
    /// made.
    fn choose_with_frame(&self, params: &Params, seen: &[u8], threads: usize) -> Result<Chosen>;

    /// The same without the frame.
    fn choose(&self, params: &Params, seen: &[u8], threads: usize) -> Result<Kept> {
        Ok(self.choose_with_frame(params, seen, threads)?.kept)
    }

    /// Length of the sample of a chunk of `raw_len` bytes.
    fn len(&self, raw_len: usize, size: usize) -> usize {
        seen_len(&self.stacks(), self.runs(), raw_len, size)
    }

    /// These bytes.
    fn gather(&self, raw: &[u8], size: usize) -> Result<Vec<u8>> {
        let mut seen = memory::zeros(self.len(raw.len(), size))?;
        let (stacks, mut rest) = (self.stacks(), &mut seen[..]);
        if stacks.is_empty() {
            rest.copy_from_slice(raw);
        }
        for stack in &stacks {
            let (own, behind) = rest.split_at_mut(stack.len() * size);
            stack.gather(raw, size, own);
            rest = behind;
        }
        let (run, starts) = self.runs();
        for (to, start) in rest.chunks_exact_mut((run * size).max(1)).zip(starts) {
            to.copy_from_slice(&raw[start * size..][..run * size]);
        }
        Ok(seen)
    }
}

/// The numbers of `size` bytes that say of a chunk of `raw_len` bytes whether they are multiples of a unit, or few.
pub fn numbers(raw_len: usize, size: usize) -> Stack {
    let (count, apart, run) = scaled::runs(raw_len, size);
    let starts = (0..count).map(|k| k * apart / size).collect();
    Stack { part: [1, 1, run / size], axis: 2, steps: [1; 3], starts }
}

/// Bytes of these stacks of a chunk, and of these runs: numbers of one, and where each begins. No stacks: all of it.
pub fn seen_len(stacks: &[&Stack], (run, starts): (usize, &[usize]), raw_len: usize, size: usize) -> usize {
    let seen = stacks.iter().map(|stack| stack.len()).sum::<usize>() + starts.len() * run;
    if stacks.is_empty() { raw_len } else { seen * size }
}
