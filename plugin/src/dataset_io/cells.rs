// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chunks of a dataset that a box of it touches: cells of a grid.

/// A box of a dataset, and the chunks that it touches.
pub(super) struct Cells {
    pub(super) start: Vec<u64>,
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    /// The first cell along each axis, and how many.
    first: Vec<u64>,
    counts: Vec<u64>,
}

/// What of a chunk lies in the box: where that begins in the box's array, and its extents.
pub(super) struct Part {
    pub(super) in_array: Vec<u64>,
    pub(super) in_dataset: Vec<u64>,
    pub(super) shape: Vec<u64>,
}

impl Part {
    pub(super) fn count(&self) -> u64 {
        self.shape.iter().product()
    }
}

impl Cells {
    pub(super) fn new(start: &[u64], shape: &[u64], chunk: &[u64]) -> Cells {
        let (start, shape, chunk) = (start.to_vec(), shape.to_vec(), chunk.to_vec());
        let first: Vec<u64> = start.iter().zip(&chunk).map(|(s, c)| s / c).collect();
        let ends = start.iter().zip(&shape).zip(&chunk).map(|((s, n), c)| (s + n).div_ceil(*c));
        let empty = shape.contains(&0);
        let counts = ends.zip(&first).map(|(end, first)| if empty { 0 } else { end - first }).collect();
        Cells { start, shape, chunk, first, counts }
    }

    /// How many they are: no more than the box has elements, which are in memory.
    pub(super) fn count(&self) -> usize {
        self.counts.iter().product::<u64>() as usize
    }

    /// First elements of the `k`-th chunk, in the order of the dataset's elements.
    pub(super) fn origin(&self, k: usize) -> Vec<u64> {
        let mut k = k as u64;
        let mut origin = vec![0; self.counts.len()];
        for (d, o) in origin.iter_mut().enumerate().rev() {
            *o = (self.first[d] + k % self.counts[d]) * self.chunk[d];
            k /= self.counts[d];
        }
        origin
    }

    pub(super) fn origins(&self) -> impl Iterator<Item = Vec<u64>> {
        (0..self.count()).map(|k| self.origin(k))
    }

    /// The number of the chunk with this first element; `None` where the box does not touch it.
    pub(super) fn number(&self, origin: &[u64]) -> Option<usize> {
        let mut k = 0;
        for (d, o) in origin.iter().enumerate() {
            let cell = (o / self.chunk[d]).checked_sub(self.first[d]).filter(|&cell| cell < self.counts[d])?;
            k = k * self.counts[d] + cell;
        }
        Some(k as usize)
    }

    /// What of the chunk at `origin`, which the box touches, lies in it.
    pub(super) fn part(&self, origin: &[u64]) -> Part {
        let axes = || self.start.iter().zip(&self.shape).zip(origin).zip(&self.chunk);
        let in_dataset: Vec<u64> = axes().map(|(((&s, _), &o), _)| o.max(s)).collect();
        let ends = axes().map(|(((s, n), o), c)| (o + c).min(s + n));
        let shape = ends.zip(&in_dataset).map(|(end, from)| end - from).collect();
        let in_array = in_dataset.iter().zip(&self.start).map(|(from, s)| from - s).collect();
        Part { in_array, in_dataset, shape }
    }

    /// Whether the box has all of a chunk that lies in a dataset of these extents.
    pub(super) fn has_all_of(&self, origin: &[u64], extents: &[u64]) -> bool {
        let part = self.part(origin);
        let ends = origin.iter().zip(&self.chunk).zip(extents).map(|((o, c), n)| (o + c).min(*n));
        part.in_dataset == origin && ends.zip(origin).zip(&part.shape).all(|((end, o), n)| end - o == *n)
    }

    /// Where the chunk at `origin` begins in the box's array.
    pub(super) fn in_array(&self, origin: &[u64]) -> impl Iterator<Item = i64> {
        origin.iter().zip(&self.start).map(|(&o, &s)| o as i64 - s as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_of_a_box() {
        let cells = Cells::new(&[5, 0], &[10, 7], &[4, 3]);
        let origins: Vec<_> = cells.origins().collect();
        assert_eq!(cells.count(), 9);
        assert_eq!((&origins[0][..], &origins[1][..], &origins[8][..]), (&[4, 0][..], &[4, 3][..], &[12, 6][..]));
        for (k, origin) in origins.iter().enumerate() {
            assert_eq!(cells.number(origin), Some(k));
        }
        assert_eq!((cells.number(&[0, 0]), cells.number(&[16, 0]), cells.number(&[4, 9])), (None, None, None));
        assert_eq!(origins.iter().map(|o| cells.part(o).count()).sum::<u64>(), 70);
        let part = cells.part(&[4, 6]);
        assert_eq!((part.in_array, part.in_dataset, part.shape), (vec![0, 6], vec![5, 6], vec![3, 1]));
        assert_eq!(cells.in_array(&[4, 6]).collect::<Vec<_>>(), [-1, 6]);
        // Whole: of a dataset that ends where the box does, and of one that goes on.
        let whole = |extents: &[u64]| origins.iter().filter(|o| cells.has_all_of(o, extents)).count();
        assert_eq!((whole(&[15, 7]), whole(&[16, 7]), whole(&[16, 9])), (6, 3, 2));
        assert_eq!(Cells::new(&[5, 0], &[10, 0], &[4, 3]).count(), 0);
    }
}
