// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that may not be there: whatever grows with a chunk or with the number of threads is asked for here.
//!
//! A failure runs up to the engine, which stores the chunk or fails the read. Rust ends the process where other
//! allocations fail. Those are short and few (texts, lists of sections, what starting a thread takes); the plugin keeps
//! a reserve for them.

use crate::error::{Error, Result};

fn none<T>(n: usize) -> Error {
    Error::NoMemory { bytes: n.saturating_mul(size_of::<T>()) as u64 }
}

/// `n` zeros.
pub fn zeros<T: bytemuck::Zeroable>(n: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(n).map_err(|()| none::<T>(n))
}

/// `N` zeros in a box.
pub(crate) fn boxed<T: bytemuck::Zeroable, const N: usize>() -> Result<Box<[T; N]>> {
    Ok(zeros(N)?.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("as many as asked for")))
}

/// An empty vector with a capacity of `n` items.
pub fn with_capacity<T>(n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n).map_err(|_| none::<T>(n))?;
    Ok(v)
}

/// Capacity for `n` items more; grows as pushing them would.
#[inline(always)]
pub(crate) fn reserve<T>(v: &mut Vec<T>, n: usize) -> Result<()> {
    v.try_reserve(n).map_err(|_| none::<T>(v.len().saturating_add(n)))
}

/// Capacity for `n` items in all, where working memory is used again and again.
pub(crate) fn reserve_total<T>(v: &mut Vec<T>, n: usize) -> Result<()> {
    reserve(v, n.saturating_sub(v.len()))
}

/// All items, of which there are `n` at most.
pub(crate) fn collect<T>(n: usize, items: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut v = with_capacity(n)?;
    v.extend(items.take(n));
    Ok(v)
}

/// Appends a copy of `items`.
#[inline(always)]
pub(crate) fn append<T: Copy>(v: &mut Vec<T>, items: &[T]) -> Result<()> {
    reserve(v, items.len())?;
    v.extend_from_slice(items);
    Ok(())
}
