// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way that is left where a device has no memory to work in: the host codes a chunk at a time, and its values cross
//! the bus by way of a page-locked buffer, which takes no memory of the device.
//!
//! ```text
//! array ── one strided copy: the array's axes, the slowest first ──▶ buffer ── the host: the chunk's axes ──▶ chunk
//! ```
//!
//! The buffer has the values in the order that they have in the array's memory, whatever the order of its axes: so rows
//! are as long as can be, and the device's copy engine takes up to two axes of rows at a time. What it does not take,
//! such as windows that overlap, is copied row by row.

use super::copies::{Side, joined};
use crate::array::boxes::{Array, Overlap, dense};
use crate::cuda::{Device, Direct, Failure, Rows, UserStream};
use codecs::error::Result;
use kernels::abi::BoxCopy;
use std::cmp::Reverse;

/// Copies between an array on a device and dense chunks in host memory.
pub(super) struct ByHost<'a> {
    device: &'static Device,
    array: &'a Array,
    direct: Direct,
}

/// An overlap's values in the buffer.
struct Packed {
    /// What crosses the bus: addresses on the device, and offsets in the buffer.
    rows: BoxCopy,
    /// Offset of the overlap's first element, and bytes from an element to the next along each axis of the array.
    first: usize,
    steps: Vec<i64>,
    len: usize,
}

impl<'a> ByHost<'a> {
    /// Waits for the work on the array that its user's stream was given so far.
    pub(super) fn new(device: &'static Device, user: UserStream, array: &'a Array) -> Result<ByHost<'a>> {
        let _current = device.enter()?;
        Ok(ByHost { device, array, direct: Direct::new(user)? })
    }

    /// Copies an overlap from the array into a dense chunk of these extents.
    pub(super) fn fetch(&mut self, overlap: &Overlap, chunk: &[u64], raw: &mut [u8]) -> Result<()> {
        let packed = packed(self.array, overlap)?;
        let _current = self.device.enter()?;
        self.direct.buffer(packed.len)?;
        self.start(&packed.rows, true)?;
        self.direct.wait()?;
        let (there, place) = self.in_buffer(&packed, overlap, chunk)?;
        there.gather(&place, chunk, raw);
        Ok(())
    }

    /// Copies an overlap from a dense chunk of these extents into the array.
    pub(super) fn send(&mut self, overlap: &Overlap, chunk: &[u64], raw: &[u8]) -> Result<()> {
        let packed = packed(self.array, overlap)?;
        let _current = self.device.enter()?;
        let (there, place) = self.in_buffer(&packed, overlap, chunk)?;
        there.scatter(&place, chunk, raw);
        self.start(&packed.rows, false)?;
        Ok(self.direct.wait()?)
    }

    /// The overlap's values in the buffer as an array, and where that lies in the chunk.
    fn in_buffer(&mut self, packed: &Packed, overlap: &Overlap, chunk: &[u64]) -> Result<(Array, Overlap)> {
        let buffer = self.direct.buffer(packed.len)?;
        let (_, extents) = overlap.in_array();
        let first = buffer[packed.first..].as_mut_ptr();
        // SAFETY: `packed` has every element in the buffer, which nobody else uses until the next copy.
        #[allow(unsafe_code)]
        let there = unsafe { Array::new(first, self.array.element(), &extents, Some(&packed.steps))? };
        let origin: Vec<i64> = overlap.chunk.iter().map(|range| -(range.start as i64)).collect();
        let place = there.overlap(&origin, chunk).expect("an overlap has values");
        Ok((there, place))
    }

    /// Starts the copies of rows, as few as the driver takes.
    fn start(&mut self, rows: &BoxCopy, fetches: bool) -> Result<(), Failure> {
        let BoxCopy { from_steps, to_steps, extents, .. } = rows;
        let extents = extents.map(u64::from);
        let mut copied = Rows {
            width: rows.run,
            height: extents[7],
            depth: extents[6],
            on_device: [from_steps[7], from_steps[6]],
            on_host: [to_steps[7], to_steps[6]],
        };
        // Axes that are left: a copy for each of their elements.
        let mut outer = 6;
        if !copied.is_one_copy() {
            (copied.depth, outer) = (1, 7);
        }
        if !copied.is_one_copy() {
            (copied.height, outer) = (1, 8);
        }
        (0..extents[..outer].iter().product::<u64>()).try_for_each(|n| {
            let (mut rest, mut on_device, mut in_buffer) = (n, rows.from, rows.to);
            for d in (0..outer).rev() {
                let k = rest % extents[d];
                rest /= extents[d];
                on_device += k * from_steps[d];
                in_buffer += k * to_steps[d];
            }
            // SAFETY: rows of the array, whose owner promised that it can be read, or written; `packed` has measured
            // the buffer.
            #[allow(unsafe_code)]
            unsafe {
                self.direct.copy(fetches, on_device, in_buffer, &copied)
            }
        })
    }
}

impl Drop for ByHost<'_> {
    fn drop(&mut self) {
        // What fails here has failed before, or will.
        _ = self.device.enter().and_then(|_current| self.direct.end());
    }
}

/// How an overlap's values are packed: axes by their steps in the array, backwards ones turned about, and those along
/// which one value is repeated left out.
fn packed(array: &Array, overlap: &Overlap) -> Result<Packed> {
    let (size, (mut at, strides), (_, extents)) = (array.element(), array.place_of(overlap), overlap.in_array());
    let mut axes: Vec<usize> = (0..extents.len()).filter(|&d| extents[d] > 1 && strides[d] != 0).collect();
    axes.sort_by_key(|&d| Reverse(strides[d].unsigned_abs()));
    let shape: Vec<u64> = axes.iter().map(|&d| extents[d]).collect();
    let from: Vec<isize> = axes.iter().map(|&d| strides[d].abs()).collect();
    let to = dense(&shape, size);
    let (mut first, mut steps) = (0, vec![0; extents.len()]);
    for (&d, &step) in axes.iter().zip(&to) {
        steps[d] = step as i64 * strides[d].signum() as i64;
        if strides[d] < 0 {
            let back = extents[d] as isize - 1;
            at = at.wrapping_add_signed((strides[d] * back) as i64);
            first += (step * back) as usize;
        }
    }
    let rows = joined(Side { at, steps: &from }, Side { at: 0, steps: &to }, &shape, size)?;
    Ok(Packed { rows, first, steps, len: shape.iter().product::<u64>() as usize * size })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that cross the bus of an array with these strides, and the place and the strides of its values in the
    /// buffer.
    fn of(shape: &[u64], strides: &[i64]) -> (u64, Vec<u32>, usize, Vec<i64>) {
        // SAFETY: never read.
        #[allow(unsafe_code)]
        let array = unsafe { Array::new(std::ptr::without_provenance_mut(1 << 20), 4, shape, Some(strides)) }.unwrap();
        let whole = array.overlap(&vec![0; shape.len()], shape).unwrap();
        let Packed { rows, first, steps, len } = packed(&array, &whole).unwrap();
        let extents: Vec<u32> = rows.extents.iter().copied().filter(|&n| n > 1).collect();
        assert_eq!(rows.run * extents.iter().map(|&n| u64::from(n)).product::<u64>(), len as u64);
        (rows.run, extents, first, steps)
    }

    #[test]
    fn rows_are_as_long_as_the_array_allows() {
        assert_eq!(of(&[4, 5, 6], &[120, 24, 4]), (480, vec![], 0, vec![120, 24, 4]), "dense");
        assert_eq!(of(&[6, 5, 4], &[4, 24, 120]), (480, vec![], 0, vec![4, 24, 120]), "transposed");
        assert_eq!(of(&[4, 5, 6], &[-120, 24, -4]), (480, vec![], 380, vec![-120, 24, -4]), "backwards");
        assert_eq!(of(&[4, 5, 6], &[4000, 80, 4]), (24, vec![4, 5], 0, vec![120, 24, 4]), "a box");
        assert_eq!(of(&[4, 5, 6], &[24, 0, 4]), (96, vec![], 0, vec![24, 0, 4]), "repeated");
        assert_eq!(of(&[1, 1], &[7, -9]), (4, vec![], 0, vec![0, 0]), "one value");
    }
}
