// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of the codec: the grid, the table of cube ends and where each part of the stream lies. FORMAT.md §3.

use crate::constants::{NDZIP_COVER, NDZIP_COVER_OF, NDZIP_CUBE, NDZIP_SIDE_1, NDZIP_SIDE_2, NDZIP_SIDE_3};
use crate::error::{Error, Result};
use std::iter::once;
use std::ops::Range;

/// Bytes of the longest section 0.
pub(super) const GRID_MOST: usize = 16;

/// Bytes of one table entry.
const ENTRY: usize = 4;

/// The array as the stream sees it: three extents, slowest first, of which the last `rank` count and the others are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    rank: usize,
    dims: [usize; 3],
}

impl Grid {
    /// Chooses the grid for a chunk's extents (FORMAT.md §8). `None`: 2^32 values or more.
    pub fn for_extents(extents: &[u32]) -> Option<Grid> {
        let fold = |rank: usize| -> Option<Grid> {
            let (lead, tail) = extents.split_at(extents.len().saturating_sub(rank - 1));
            let first = lead.iter().try_fold(1u32, |a, &d| a.checked_mul(d))?;
            let dims: Vec<u32> = once(first).chain(tail.iter().copied()).collect();
            Grid::new(&dims)
        };
        let highest = extents.len().clamp(1, 3);
        for rank in (2..=highest).rev() {
            let grid = fold(rank)?;
            let covered = (grid.values() - grid.border_len()) as u64;
            if covered * NDZIP_COVER_OF as u64 >= grid.values() as u64 * NDZIP_COVER as u64 {
                return Some(grid);
            }
        }
        fold(1)
    }

    /// A grid of 1 to 3 extents. `None` where one is 0 or the product reaches 2^32.
    pub(super) fn new(extents: &[u32]) -> Option<Grid> {
        let rank = extents.len();
        if !(1..=3).contains(&rank) {
            return None;
        }
        let n = extents.iter().try_fold(1u32, |a, &d| a.checked_mul(d))?;
        let mut dims = [1; 3];
        for (to, &d) in dims[3 - rank..].iter_mut().zip(extents) {
            *to = usize::try_from(d).ok()?;
        }
        (n > 0).then_some(Grid { rank, dims })
    }

    /// Reads section 0 and checks it against the number of values that the header states.
    pub fn read(bytes: &[u8], values: usize) -> Result<Grid> {
        const S: &str = "ndzip grid";
        let (words, rest) = bytes.as_chunks::<4>();
        let words: Vec<u32> = words.iter().take(4).map(|w| u32::from_le_bytes(*w)).collect();
        let rank = words.first().copied().unwrap_or(0);
        if !(1..=3).contains(&rank) || !rest.is_empty() || bytes.len() != 4 + 4 * rank as usize {
            return Err(Error::corrupt(S, format!("{} bytes for rank {rank}, allowed are ranks 1 to 3", bytes.len())));
        }
        Grid::new(&words[1..])
            .filter(|g| g.values() == values)
            .ok_or_else(|| Error::corrupt(S, format!("extents {:?} for {values} values", &words[1..])))
    }

    /// Appends section 0.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend((self.rank as u32).to_le_bytes());
        // Every extent came from a u32.
        self.dims[3 - self.rank..].iter().for_each(|&d| out.extend((d as u32).to_le_bytes()));
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Extents of three axes, slowest first, unit axes in front.
    pub fn dims(&self) -> [usize; 3] {
        self.dims
    }

    /// Values in the array.
    pub fn values(&self) -> usize {
        self.dims.iter().product()
    }

    /// A cube's extents on the three axes.
    pub(super) fn sides(&self) -> [usize; 3] {
        match self.rank {
            1 => [1, 1, NDZIP_SIDE_1],
            2 => [1, NDZIP_SIDE_2, NDZIP_SIDE_2],
            _ => [NDZIP_SIDE_3; 3],
        }
    }

    /// Whole cubes along each axis.
    pub(super) fn counts(&self) -> [usize; 3] {
        let (d, s) = (self.dims, self.sides());
        [d[0] / s[0], d[1] / s[1], d[2] / s[2]]
    }

    /// Whole cubes.
    pub fn cubes(&self) -> usize {
        self.counts().iter().product()
    }

    /// Index in the array of the first value of cube `i`.
    pub fn origin(&self, i: usize) -> usize {
        let ([_, y, x], s, [_, rows, row]) = (self.counts(), self.sides(), self.dims);
        ((i / x / y * s[0]) * rows + i / x % y * s[1]) * row + i % x * s[2]
    }

    /// Values outside whole cubes, as runs of the array in memory order.
    pub fn border(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let [planes, rows, row] = self.dims;
        let (counts, s) = (self.counts(), self.sides());
        // Without a single cube, everything is border.
        let whole = if self.cubes() == 0 { [0; 3] } else { [counts[0] * s[0], counts[1] * s[1], counts[2] * s[2]] };
        let tails = (0..whole[0]).flat_map(move |z| {
            let plane = z * rows * row;
            let tails = (0..whole[1]).map(move |y| plane + y * row + whole[2]..plane + (y + 1) * row);
            tails.chain(once(plane + whole[1] * row..plane + rows * row))
        });
        tails.chain(once(whole[0] * rows * row..planes * rows * row)).filter(|run| !run.is_empty())
    }

    /// Values outside whole cubes.
    pub fn border_len(&self) -> usize {
        self.values() - self.cubes() * NDZIP_CUBE
    }
}

/// Words of the shortest cube: its heads.
pub(super) const fn heads(word: usize) -> usize {
    NDZIP_CUBE / (8 * word)
}

/// Bytes of the table, filled up to a whole word.
pub fn table_len(cubes: usize, word: usize) -> usize {
    (cubes * ENTRY).next_multiple_of(word)
}

/// Longest stream in bytes, for a chunk that this codec may write. `None`: offsets of 32 bits might not hold it.
pub fn max_len(grid: &Grid, word: usize) -> Option<usize> {
    let cubes = grid.cubes().checked_mul(NDZIP_CUBE + heads(word))?;
    let words = cubes.checked_add(grid.border_len())?;
    u32::try_from(words).ok()?;
    words.checked_mul(word)?.checked_add(table_len(grid.cubes(), word))
}

/// The parts of a stream, lengths checked.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    ends: &'a [[u8; ENTRY]],
    cubes: &'a [u8],
    /// The border's words.
    pub(super) border: &'a [u8],
    word: usize,
}

impl<'a> Stream<'a> {
    /// Finds table, cubes and border in section 1 and checks every length that the table states.
    pub(super) fn open(bytes: &'a [u8], grid: &Grid, word: usize) -> Result<Self> {
        const S: &str = "ndzip stream";
        let (n, border) = (grid.cubes(), grid.border_len() * word);
        let table = table_len(n, word);
        if !bytes.len().is_multiple_of(word) || bytes.len() < table + border {
            let why = format!("{} bytes for {n} cubes and {} values of border", bytes.len(), grid.border_len());
            return Err(Error::corrupt(S, why));
        }
        let (table, rest) = bytes.split_at(table);
        let (ends, filling) = table.split_at(n * ENTRY);
        if filling.iter().any(|&b| b != 0) {
            return Err(Error::corrupt(S, format!("table of {n} cubes filled up with {filling:02x?}")));
        }
        let (cubes, border) = rest.split_at(rest.len() - border);
        let stream = Stream { ends: ends.as_chunks().0, cubes, border, word };
        let mut start = 0;
        for i in 0..n {
            let end = stream.end(i);
            let words = end.checked_sub(start).ok_or_else(|| {
                Error::corrupt(S, format!("cube {i} ends at word {end}, the one before it at {start}"))
            })?;
            if !(heads(word)..=heads(word) + NDZIP_CUBE).contains(&(words as usize)) {
                let why = format!("cube {i}: {words} words, {} to {} allowed", heads(word), heads(word) + NDZIP_CUBE);
                return Err(Error::corrupt(S, why));
            }
            start = end;
        }
        if start * word as u64 != cubes.len() as u64 {
            let why = format!("{n} cubes end at word {start}, the border begins at {}", cubes.len() / word);
            return Err(Error::corrupt(S, why));
        }
        Ok(stream)
    }

    /// Word after cube `i`, from the end of the table.
    fn end(&self, i: usize) -> u64 {
        u32::from_le_bytes(self.ends[i]).into()
    }

    /// The bytes of cube `i`: at least its heads, at most the longest cube.
    pub(super) fn cube(&self, i: usize) -> &'a [u8] {
        let start = if i == 0 { 0 } else { self.end(i - 1) as usize };
        &self.cubes[start * self.word..self.end(i) as usize * self.word]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writers_rule_takes_the_highest_rank_that_covers() {
        for (extents, grid) in [
            (&[][..], &[1u32][..]),
            (&[4099], &[4099]),
            (&[721, 1440], &[721, 1440]),
            (&[40, 31680], &[40 * 31680]),
            (&[160, 256, 256], &[160, 256, 256]),
            (&[12, 19, 96, 180], &[228, 96, 180]),
            (&[12, 19, 90, 180], &[12 * 19 * 90 * 180]),
            (&[10, 47681, 3], &[1430430]),
            (&[5, 128, 128], &[640, 128]),
            (&[5, 100, 128], &[64000]),
            (&[2, 3, 4, 5, 6], &[720]),
        ] {
            assert_eq!(Grid::for_extents(extents), Grid::new(grid), "{extents:?}");
        }
        assert_eq!(Grid::for_extents(&[65536, 65536]), None);
        assert_eq!(Grid::for_extents(&[1 << 20, 1 << 20, 64, 64]), None);
    }

    #[test]
    fn border_and_cubes_are_every_value_once() {
        for dims in
            [&[1][..], &[4095], &[4096], &[9001], &[64, 64], &[63, 200], &[130, 67], &[16, 16, 16], &[33, 17, 40]]
        {
            let grid = Grid::new(dims).unwrap();
            let mut seen = vec![0; grid.values()];
            grid.border().for_each(|run| seen[run].iter_mut().for_each(|n| *n += 1));
            assert_eq!(seen.iter().sum::<i32>() as usize, grid.border_len(), "{dims:?}");
            let ([_, rows, row], [sz, sy, sx]) = (grid.dims(), grid.sides());
            for i in 0..grid.cubes() {
                for (z, y, x) in (0..sz).flat_map(|z| (0..sy).flat_map(move |y| (0..sx).map(move |x| (z, y, x)))) {
                    seen[grid.origin(i) + (z * rows + y) * row + x] += 1;
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{dims:?}");
        }
    }

    #[test]
    fn a_stream_that_offsets_cannot_reach_is_not_begun() {
        assert!(max_len(&Grid::new(&[u32::MAX]).unwrap(), 4).is_none());
        assert!(max_len(&Grid::new(&[1 << 30]).unwrap(), 4).is_some());
        assert!(max_len(&Grid::new(&[16, 1 << 20, 255]).unwrap(), 8).is_none());
    }
}
