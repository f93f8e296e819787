// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes for one launch of `array_copy`: kernels/array.cu.

use super::base::failed;
use crate::cuda::{Buffer, Described, Device, Failure, Stream};
use codecs::error::Result;
use kernels::abi::{ARRAY_PIECE, BoxCopy, CopyArgs};

/// Axes that a box may have when those that lie together are one.
const MOST_AXES: usize = 8;
/// Threads of a CTA, and bytes that it copies about.
const THREADS: u32 = 256;
const CTA_BYTES: u64 = 32 << 10;

/// One side of a copy: the address of the first element, and bytes from an element to the next along each axis.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) at: u64,
    pub(super) steps: &'a [isize],
}

/// Boxes that are copied by one launch; no two of them write the same place.
#[derive(Default)]
pub(super) struct Copies {
    boxes: Vec<BoxCopy>,
    ctas: u32,
}

impl Copies {
    /// A box of elements of `size` bytes, which is less than 2^32 of them.
    ///
    /// # Errors
    /// More than eight axes do not lie together.
    pub(super) fn add(&mut self, from: Side<'_>, to: Side<'_>, extents: &[u64], size: usize) -> Result<()> {
        if extents.contains(&0) {
            return Ok(());
        }
        let mut new = joined(from, to, extents, size)?;
        let piece = new.run.min(ARRAY_PIECE.into());
        new.lanes = (piece / u64::from(new.width)).next_power_of_two().min(32) as u32;
        let rows = new.extents.iter().map(|&n| u64::from(n)).product::<u64>();
        let units = rows * new.run.div_ceil(ARRAY_PIECE.into());
        new.pieces = new.run.div_ceil(ARRAY_PIECE.into()) as u32;
        new.units = u32::try_from(units).map_err(|_| failed("a chunk of 2^32 rows or more"))?;
        let groups = THREADS / new.lanes;
        new.turns = (CTA_BYTES / (u64::from(groups) * piece)).clamp(1, 64) as u32;
        new.first_cta = self.ctas;
        self.ctas += new.units.div_ceil(groups * new.turns);
        self.boxes.push(new);
        Ok(())
    }

    /// Starts the copies.
    ///
    /// # Safety
    /// What the boxes describe is memory of the device that may be read and written when the stream comes to it.
    #[allow(unsafe_code)]
    pub(super) unsafe fn start(&self, device: &Device, stream: &mut Stream) -> Result<(), Failure> {
        if self.boxes.is_empty() {
            return Ok(());
        }
        let kernel = device.kernel("array_copy")?;
        let described = BoxCopy::bytes(&self.boxes);
        let boxes = stream.reserve(Buffer::Boxes, described.len())?;
        stream.put(Buffer::Boxes, 0, described)?;
        let args = CopyArgs { boxes, box_count: self.boxes.len() as u32, reserved: 0 };
        // SAFETY: this function's promise; the descriptions are in the stream's own memory.
        unsafe { stream.launch(kernel, self.ctas, &args) }
    }
}

/// A box as rows of bytes that lie together in both, and as few axes of rows as can be.
pub(super) fn joined(from: Side<'_>, to: Side<'_>, extents: &[u64], size: usize) -> Result<BoxCopy> {
    let axes = extents.iter().zip(from.steps).zip(to.steps).filter(|((n, _), _)| **n != 1);
    let mut axes: Vec<(u64, i64, i64)> = axes.map(|((&n, &f), &t)| (n, f as i64, t as i64)).collect();
    let mut run = size as u64;
    while let Some(&(n, f, t)) = axes.last() {
        if (f, t) != (run as i64, run as i64) {
            break;
        }
        run *= n;
        axes.pop();
    }
    let mut rows: Vec<(u64, i64, i64)> = Vec::new();
    for (n, f, t) in axes.into_iter().rev() {
        match rows.last_mut() {
            Some((m, inner_f, inner_t))
                if f == *inner_f * *m as i64 && t == *inner_t * *m as i64 && *m * n <= u32::MAX.into() =>
            {
                *m *= n
            }
            _ => rows.push((n, f, t)),
        }
    }
    if rows.len() > MOST_AXES {
        let got = rows.len();
        return Err(failed(format!(
            "{got} axes none of which lie together, {MOST_AXES} are taken: \
             make it contiguous, or copy it to host memory"
        )));
    }
    let mut new = BoxCopy { from: from.at, to: to.at, run, extents: [1; 8], ..BoxCopy::ZERO };
    let mut divided = new.from | new.to | run | u64::from(ARRAY_PIECE);
    for (k, (n, f, t)) in rows.into_iter().enumerate() {
        let d = MOST_AXES - 1 - k;
        new.extents[d] = u32::try_from(n).map_err(|_| failed(format!("an axis of {n} elements")))?;
        (new.from_steps[d], new.to_steps[d]) = (f as u64, t as u64);
        divided |= (f | t) as u64;
    }
    new.width = 1 << divided.trailing_zeros().min(4);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(extents: &[u64], from: &[isize], to: &[isize]) -> BoxCopy {
        joined(Side { at: 256, steps: from }, Side { at: 512, steps: to }, extents, 4).unwrap()
    }

    #[test]
    fn axes_that_lie_together_are_one() {
        // Whole.
        let b = of(&[4, 5, 6], &[120, 24, 4], &[120, 24, 4]);
        assert_eq!((b.run, b.extents, b.width), (480, [1; 8], 16));
        // Rows of 64 bytes of a wider array, planes that follow each other.
        let b = of(&[4, 5, 16], &[1000, 200, 4], &[320, 64, 4]);
        assert_eq!((b.run, b.extents, b.width), (64, [1, 1, 1, 1, 1, 1, 1, 20], 8));
        assert_eq!((b.from_steps[7], b.to_steps[7]), (200, 64));
        // Transposed: every element is a row.
        let b = of(&[3, 5, 7], &[4, 12, 60], &[140, 28, 4]);
        assert_eq!((b.run, &b.extents[5..], b.width), (4, &[3, 5, 7][..], 4));
        // Backwards, and one element over a box.
        let b = of(&[8], &[-4], &[4]);
        assert_eq!((b.run, b.extents[7], b.from_steps[7]), (4, 8, (-4i64) as u64));
        let b = of(&[4, 8], &[0, 0], &[32, 4]);
        assert_eq!((b.run, b.extents[7], b.from_steps[7]), (4, 32, 0));
    }

    #[test]
    fn an_array_of_too_many_axes_is_refused() {
        let n = 9;
        let (extents, steps): (Vec<u64>, Vec<isize>) = (0..n).map(|k| (2, 1 << (3 * (n - k)))).unzip();
        let side = |at| Side { at, steps: &steps };
        assert!(joined(side(0), side(0), &extents, 4).is_err());
        let eight = Side { at: 0, steps: &steps[1..] };
        assert!(joined(eight, eight, &extents[1..], 4).is_ok());
    }
}
