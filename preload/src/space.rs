// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selections as boxes: where the values are in the dataset, and where in memory.

use crate::hdf5::{H5S_ALL, H5S_MAX_RANK, H5S_PLIST, H5S_SEL_ALL, H5S_SEL_HYPERSLABS, H5S_SIMPLE, Hid, Questions};

/// A box of a space: the space's extents, first element, extents of the box.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Region {
    pub(crate) dims: Vec<u64>,
    pub(crate) start: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

/// A box of a dataset, and where its values are in memory: offset of the first one and steps along the axes, in values.
#[derive(Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) there: Region,
    pub(crate) first: i64,
    pub(crate) steps: Vec<i64>,
}

/// Where values of a call are. `None`: a selection is no box, or the two are boxes of different kinds.
///
/// # Safety
/// `dataset` is an open dataset of the library that is asked; `here` and `there` are spaces of it, or H5S_ALL.
pub(crate) unsafe fn placed(q: &Questions, dataset: Hid, here: Hid, there: Hid) -> Option<Placed> {
    // SAFETY: the caller's promise.
    let now = unsafe { extents(q, dataset)? };
    let region = |space: Hid| {
        // SAFETY: as above.
        if space == H5S_ALL { Some(Region::all(now.clone())) } else { unsafe { selected(q, space) } }
    };
    let in_dataset = region(there)?;
    // Where the dataset has other extents than the space says HDF5 has rules of its own.
    if in_dataset.dims != now {
        return None;
    }
    // A space of memory that is not given is the dataset's, with what is selected there.
    let in_memory = if here == H5S_ALL { in_dataset.clone() } else { region(here)? };
    place(in_dataset, &in_memory)
}

/// # Safety
/// As of [`placed`].
unsafe fn extents(q: &Questions, dataset: Hid) -> Option<Vec<u64>> {
    // SAFETY: as above; the space is made here, and closed.
    unsafe {
        let space = (q.space)(dataset);
        if space < 0 {
            return None;
        }
        let dims = dims(q, space);
        (q.close)(space);
        dims
    }
}

/// # Safety
/// `space` is a space of the library.
unsafe fn dims(q: &Questions, space: Hid) -> Option<Vec<u64>> {
    let (mut dims, mut most) = ([0; H5S_MAX_RANK], [0; H5S_MAX_RANK]);
    // SAFETY: as above; no space has more axes.
    let rank = unsafe {
        if (q.class)(space) != H5S_SIMPLE {
            return None;
        }
        (q.dims)(space, dims.as_mut_ptr(), most.as_mut_ptr())
    };
    (rank > 0).then(|| dims[..rank as usize].to_vec())
}

/// The box that is selected in a space. `None`: what is selected is no box.
///
/// # Safety
/// `space` is a space of the library.
unsafe fn selected(q: &Questions, space: Hid) -> Option<Region> {
    if (H5S_ALL..=H5S_PLIST).contains(&space) {
        return None;
    }
    // SAFETY: as above; no space has more axes than the arrays.
    unsafe {
        let dims = dims(q, space)?;
        let rank = dims.len();
        let [mut start, mut stride, mut count, mut block] = [[0; H5S_MAX_RANK]; 4];
        match (q.selection)(space) {
            H5S_SEL_ALL => return Some(Region::all(dims)),
            H5S_SEL_HYPERSLABS if (q.is_regular)(space) > 0 => {}
            _ => return None,
        }
        let [a, b, c, d] = [&mut start, &mut stride, &mut count, &mut block].map(|x| x.as_mut_ptr());
        if (q.regular)(space, a, b, c, d) < 0 {
            return None;
        }
        let mut shape = Vec::with_capacity(rank);
        for k in 0..rank {
            shape.push(match count[k] {
                1 => block[k],
                n if stride[k] == block[k] => n.checked_mul(block[k])?,
                _ => return None,
            });
        }
        // The functions above do not tell of an offset (H5Soffset_simple); this one does.
        let [mut low, mut high] = [[0; H5S_MAX_RANK]; 2];
        if (q.bounds)(space, low.as_mut_ptr(), high.as_mut_ptr()) < 0 {
            return None;
        }
        let is_there = |k: usize| low[k] == start[k] && high[k].wrapping_sub(low[k]).wrapping_add(1) == shape[k];
        (0..rank).all(is_there).then(|| Region { dims, start: start[..rank].to_vec(), shape })
    }
}

/// Whether the `count` selected values all lie in one row.
///
/// # Safety
/// `space` is an identifier.
pub(crate) unsafe fn is_row(q: &Questions, space: Hid, count: u64) -> bool {
    let [mut low, mut high] = [[0; H5S_MAX_RANK]; 2];
    // SAFETY: as above; no space has more axes.
    unsafe {
        let rank = (q.rank)(space);
        rank > 0 && (q.bounds)(space, low.as_mut_ptr(), high.as_mut_ptr()) >= 0 && {
            let last = rank as usize - 1;
            high[last].wrapping_sub(low[last]).wrapping_add(1) == count
        }
    }
}

impl Region {
    fn all(dims: Vec<u64>) -> Region {
        Region { start: vec![0; dims.len()], shape: dims.clone(), dims }
    }

    fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |a, &n| a.checked_mul(n))
    }

    /// Values from one to the next along each axis, in a dense array of the space's extents.
    fn steps(&self) -> Option<Vec<i64>> {
        dense(&self.dims)
    }

    /// Whether the box is one run of values.
    fn is_run(&self) -> bool {
        let cut = self.shape.iter().zip(&self.dims).rposition(|(n, d)| n != d);
        cut.is_none_or(|k| self.shape[..k].iter().all(|&n| n == 1))
    }

    /// Chunks that the box touches, and how many of them it covers, of those that lie in the dataset.
    pub(crate) fn chunks(&self, chunk: &[u64]) -> (u64, u64) {
        let (mut touched, mut whole) = (1u64, 1u64);
        for (((&s, &n), &c), &d) in self.start.iter().zip(&self.shape).zip(chunk).zip(&self.dims) {
            let end = s + n;
            let (first, last) = (s / c, end.div_ceil(c));
            touched = touched.saturating_mul(last - first);
            // The last chunk may go on beyond the dataset.
            let covered = (if end == d { last } else { end / c }).saturating_sub(s.div_ceil(c));
            whole = whole.saturating_mul(covered);
        }
        (touched, whole)
    }
}

/// Steps of a dense array.
fn dense(dims: &[u64]) -> Option<Vec<i64>> {
    let mut steps = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        steps[k - 1] = i64::try_from(dims[k]).ok()?.checked_mul(steps[k])?;
    }
    Some(steps)
}

/// Both boxes hold as many values in the same order: where are those of `there` in memory?
fn place(there: Region, here: &Region) -> Option<Placed> {
    if there.count()? != here.count()? || there.count()? == 0 {
        return None;
    }
    let own = here.steps()?;
    let first = here
        .start
        .iter()
        .zip(&own)
        .try_fold(0i64, |a, (&s, &step)| i64::try_from(s).ok()?.checked_mul(step)?.checked_add(a))?;
    let long = |region: &Region| -> Vec<u64> { region.shape.iter().copied().filter(|&n| n > 1).collect() };
    if long(&there) == long(here) {
        // Axes of one value do not count.
        let mut own = here.shape.iter().zip(&own).filter(|(n, _)| **n > 1).map(|(_, step)| *step);
        let steps = there.shape.iter().map(|&n| if n > 1 { own.next().unwrap_or(1) } else { 1 }).collect();
        return Some(Placed { there, first, steps });
    }
    let steps = dense(&there.shape)?;
    here.is_run().then_some(Placed { there, first, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(dims: &[u64], start: &[u64], shape: &[u64]) -> Region {
        Region { dims: dims.into(), start: start.into(), shape: shape.into() }
    }

    #[test]
    fn boxes_of_one_order_are_placed() {
        let there = region(&[10, 20, 30], &[2, 0, 5], &[4, 20, 10]);
        let of = |here: &Region| place(there.clone(), here).map(|p| (p.first, p.steps));
        assert_eq!(of(&there), Some((2 * 600 + 5, vec![600, 30, 1])));
        assert_eq!(of(&region(&[4, 20, 10], &[0, 0, 0], &[4, 20, 10])), Some((0, vec![200, 10, 1])));
        assert_eq!(of(&region(&[4, 1, 20, 12], &[0, 0, 0, 2], &[4, 1, 20, 10])), Some((2, vec![240, 12, 1])));
        // One run of values, of any extents.
        assert_eq!(of(&region(&[900], &[50], &[800])), Some((50, vec![200, 10, 1])));
        assert_eq!(of(&region(&[3, 80, 10], &[1, 0, 0], &[1, 80, 10])), Some((800, vec![200, 10, 1])));
        assert_eq!(of(&region(&[80, 12], &[0, 0], &[80, 10])), None);
        assert_eq!(of(&region(&[900], &[50], &[801])), None);
    }

    #[test]
    fn chunks_are_counted() {
        let chunks = |start: &[u64], shape: &[u64]| region(&[100, 45], start, shape).chunks(&[10, 20]);
        assert_eq!(chunks(&[0, 0], &[100, 45]), (30, 30));
        assert_eq!(chunks(&[5, 0], &[20, 45]), (9, 3));
        assert_eq!(chunks(&[0, 20], &[10, 24]), (2, 1));
        assert_eq!(chunks(&[99, 44], &[1, 1]), (1, 0));
        assert_eq!(chunks(&[90, 40], &[10, 5]), (1, 1));
    }
}
