// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the chunks of a dataset are in its file: what HDF5 lists, and whether it can be believed.
//!
//! HDF5 answers two kinds of questions on chunks. A search by place (H5Dread, H5Dread_chunk, H5Dget_chunk_storage_size)
//! goes through the index as reading does. A list (H5Dchunk_iter, H5Dget_chunk_info, H5Dget_chunk_info_by_coord) is
//! made of the index's entries one by one, and is wrong in two ways that are known, in every version up to 2.0:
//!
//! * An extensible array is the index of a dataset with one unlimited axis, in files of `libver="v110"` and later. It
//!   counts chunks with the unlimited axis in front. The list counts with the axes as they are: where the unlimited
//!   axis is not the first, chunks are listed at places of others, or outside of the dataset. [`moved_back`] makes the
//!   true places of them.
//! * HDF5 before 1.14.4 counts addresses from behind a user block, HDF5 from 1.14.4 on from the file's beginning.
//!
//! Versions are not asked: a chunk's bytes are, which the search by place gives ([`placed`]). What a damaged index
//! lists (chunks outside of the dataset, two at one place, fewer than it counts) is said in [`List::wrong`].

use super::dataset::{Dataset, Extents, Stored, tuple};
use crate::error::Result;
use crate::hdf5::{H5D_CHUNK_IDX_EARRAY, H5S_UNLIMITED, HADDR_UNDEF};
use crate::report::without_name;
use std::collections::HashSet;

/// Of a frame, `codecs/src/FORMAT.md`.
pub(crate) const MAGIC: [u8; 8] = *b"\x89H5ZG\r\n\x1a";

/// Reads a place of the file that HDF5's addresses are offsets of, all of the buffer; false where it cannot.
pub(crate) type Fetch<'a> = dyn Fn(u64, &mut [u8]) -> bool + 'a;

/// The chunks that are stored, in the order in which HDF5 lists them.
#[derive(Default)]
pub(crate) struct List {
    pub(crate) rank: usize,
    /// First elements, `rank` numbers a chunk.
    pub(crate) origins: Vec<u64>,
    pub(crate) chunks: Vec<Stored>,
    /// Why it cannot be believed. What cannot be chunks is not in it.
    pub(crate) wrong: Option<String>,
    /// Places that were listed more than once, `rank` numbers each: none of their chunks is in it.
    pub(crate) twice: Vec<u64>,
}

impl List {
    pub(super) fn origin(&self, k: usize) -> &[u64] {
        &self.origins[k * self.rank..][..self.rank]
    }

    fn push(&mut self, origin: &[u64], stored: Stored) {
        self.origins.extend_from_slice(origin);
        self.chunks.push(stored);
    }

    /// Keeps those chunks of which `keep` is true.
    pub(super) fn retain(&mut self, keep: impl Fn(&[u64], &Stored) -> bool) {
        let rank = self.rank;
        let kept: Vec<usize> = (0..self.chunks.len()).filter(|&k| keep(self.origin(k), &self.chunks[k])).collect();
        if kept.len() < self.chunks.len() {
            self.origins = kept.iter().flat_map(|&k| self.origins[k * rank..][..rank].to_vec()).collect();
            self.chunks = kept.iter().map(|&k| self.chunks[k]).collect();
        }
    }
}

/// Every chunk of a dataset that is stored, where it is. What HDF5's chunk cache holds has been written
/// ([`Dataset::flush`]).
pub(crate) fn list(dataset: &dyn Dataset, fetch: &Fetch<'_>) -> Result<List> {
    let extents = dataset.extents()?;
    let chunk = dataset.creation()?.chunk.ok_or("the dataset is not stored in chunks")?;
    let listed = listed(dataset, &extents.shape, &chunk)?;
    let mut orders = vec![listed.origins.clone()];
    if counts_other_axis_first(dataset, &extents.most)? {
        orders.push(moved_back(&listed, &extents.most, &chunk));
    }
    let placed = placed(dataset, fetch, listed, orders, &extents)?;
    Ok(sound(placed, &extents.shape, &chunk))
}

/// Whether the index is an extensible array whose unlimited axis is not the first: HDF5 lists its chunks wrongly.
pub(super) fn counts_other_axis_first(dataset: &dyn Dataset, most: &[u64]) -> Result<bool> {
    if most.iter().filter(|&&n| n == H5S_UNLIMITED).count() != 1 || most[0] == H5S_UNLIMITED {
        return Ok(false);
    }
    let kind = dataset.index_kind().map_err(|e| e.saying("HDF5 does not say what index its chunks have"))?;
    Ok(kind.is_none_or(|kind| kind == H5D_CHUNK_IDX_EARRAY))
}

/// Asks for chunks by their places, `most` of them evenly spread, and says where the answer is not what a list says. A
/// length of 0 stands for a chunk that is not in the list.
pub(crate) fn distrust<'a>(
    dataset: &dyn Dataset,
    said: impl ExactSizeIterator<Item = (&'a [u64], u64)>,
    most: usize,
) -> Option<String> {
    let step = (said.len() / most).max(1);
    for (origin, len) in said.step_by(step) {
        // A place where the search fails has no chunk for who reads.
        let found = dataset.stored_len(origin).unwrap_or(0);
        if found != len {
            let number = |n: u64, none: &str| if n == 0 { none.into() } else { n.to_string() };
            let (len, found) = (number(len, "no"), number(found, "none"));
            return Some(format!("it lists {len} bytes for the chunk at {}, where HDF5 finds {found}", tuple(origin)));
        }
    }
    None
}

/// Why a chunk that is said to be stored without filters cannot be values; `None` where it can. `begins` are its first
/// bytes.
///
/// A damaged filter mask hands a frame out as values, and HDF5 does not notice it.
pub(crate) fn why_not_raw(stored: u64, raw_len: u64, begins: &[u8]) -> Option<String> {
    let says = "the file's index says that it is stored without filters";
    if stored != raw_len {
        return Some(format!("{says}, in {stored} bytes; it would have {raw_len}"));
    }
    begins.starts_with(&MAGIC).then(|| format!("{says}, and it is a frame of the filter"))
}

// --- what HDF5 lists -------------------------------------------------------------------------------------------------

/// HDF5's list as it is; of one that cannot be read to its end, what could be read.
fn listed(dataset: &dyn Dataset, shape: &[u64], chunk: &[u64]) -> Result<List> {
    let mut list = List { rank: shape.len(), ..List::default() };
    let n = match dataset.count() {
        Ok(n) => n,
        Err(why) => {
            list.wrong = Some(without_name(&why.to_string()).into());
            let cells = shape.iter().zip(chunk).try_fold(1u64, |a, (n, c)| a.checked_mul(n.div_ceil(*c)));
            // An entry of an index has eight bytes or more.
            (dataset.file_len()? / 8).min(cells.unwrap_or(u64::MAX))
        }
    };
    let mut count = 0;
    let mut told = |origin: &[u64], stored| {
        if count < n {
            list.push(origin, stored);
        }
        count += 1;
    };
    let wrong = match dataset.lists_at_once() {
        false => one_by_one(dataset, n, &mut list),
        true => match dataset.visit_chunks(shape.len(), &mut told) {
            Err(_) => Some("H5Dchunk_iter failed: see HDF5's error stack".into()),
            Ok(()) => (count != n).then(|| format!("HDF5 counts {n} chunks and lists {count}")),
        },
    };
    if wrong.is_some() {
        list.retain(|_, stored| stored.at != HADDR_UNDEF);
    }
    list.wrong = list.wrong.or(wrong);
    Ok(list)
}

/// The list of a library that hands out one chunk a call; why it ends early.
fn one_by_one(dataset: &dyn Dataset, n: u64, list: &mut List) -> Option<String> {
    let mut origin = vec![0; list.rank];
    for k in 0..n {
        match dataset.nth(k, &mut origin) {
            Ok(Some(stored)) => list.push(&origin, stored),
            Ok(None) => {}
            Err(why) => return Some(without_name(&why.to_string()).into()),
        }
    }
    None
}

// --- where they really are -------------------------------------------------------------------------------------------

/// The list with true places, which one of `orders` has, and true addresses. Bytes of chunks tell which these are.
fn placed(
    dataset: &dyn Dataset,
    fetch: &Fetch<'_>,
    mut list: List,
    orders: Vec<Vec<u64>>,
    extents: &Extents,
) -> Result<List> {
    if list.chunks.is_empty() {
        return Ok(list);
    }
    let block = dataset.user_block()?;
    let bases: &[u64] = if block == 0 { &[0] } else { &[0, block] };
    let mut ways: Vec<(&Vec<u64>, u64)> =
        orders.iter().flat_map(|order| bases.iter().map(move |&base| (order, base))).collect();
    if ways.len() == 1 {
        return Ok(list);
    }
    // Memory for a chunk is asked for below, before anything has shown that its length is true.
    let file_len = dataset.file_len()?;
    if let Some(Stored { len, .. }) = list.chunks.iter().find(|c| c.len > file_len) {
        list.wrong =
            list.wrong.or_else(|| Some(format!("it lists a chunk of {len} bytes, and the file has {file_len}")));
        return Ok(list);
    }
    let mut by_size: Vec<usize> = (0..list.chunks.len()).collect();
    by_size.sort_by_key(|&k| list.chunks[k].len);
    // One chunk tells most often where addresses begin; which order is right only all of them.
    let tries = if orders.len() == 1 { vec![&by_size[..1], &by_size[..]] } else { vec![&by_size[..]] };
    for rows in tries {
        ways.retain(|&(order, base)| fits(dataset, fetch, &list, rows, order, base, extents));
        if ways.len() == 1 {
            break;
        }
    }
    // Where several are left, their chunks have the same bytes.
    match ways.first() {
        None => list.wrong = list.wrong.or_else(|| Some("HDF5 does not find chunks where it lists them".into())),
        Some(&(order, base)) => {
            list.origins = order.clone();
            list.chunks.iter_mut().for_each(|c| c.at = c.at.wrapping_add(base));
        }
    }
    Ok(list)
}

/// Whether the file has, where a list says, what HDF5 finds by place.
fn fits(
    dataset: &dyn Dataset,
    fetch: &Fetch<'_>,
    list: &List,
    rows: &[usize],
    order: &[u64],
    base: u64,
    extents: &Extents,
) -> bool {
    rows.iter().all(|&k| {
        let (origin, stored) = (&order[k * list.rank..][..list.rank], list.chunks[k]);
        let inside = origin.iter().zip(&extents.shape).all(|(o, n)| o < n);
        if !inside || dataset.stored_len(origin) != Ok(stored.len) {
            return false;
        }
        let Ok(len) = usize::try_from(stored.len) else { return false };
        let mut there = Vec::new();
        if there.try_reserve_exact(2 * len).is_err() {
            return false;
        }
        there.resize(2 * len, 0);
        let (found, there) = there.split_at_mut(len);
        dataset.read_chunk(origin, found).is_ok() && fetch(stored.at.wrapping_add(base), there) && found == there
    })
}

/// First elements of chunks that an extensible array lists: its k-th chunk is the k-th cell with the unlimited axis in
/// front.
fn moved_back(list: &List, most: &[u64], chunk: &[u64]) -> Vec<u64> {
    let axis = most.iter().position(|&n| n == H5S_UNLIMITED).unwrap_or(0);
    let cells = |d: usize| if d == axis { 1 } else { u128::from(most[d].div_ceil(chunk[d])) };
    let product = (0..most.len()).try_fold(1u128, |a, d| a.checked_mul(cells(d)).filter(|&n| n < 1 << 62));
    if product.is_none() {
        return list.origins.clone();
    }
    let mut moved = list.origins.clone();
    for origin in moved.chunks_exact_mut(list.rank) {
        // A place in front of the unlimited axis is 0: that axis is never full.
        let place = |k: u128, d: usize| k.wrapping_mul(cells(d)).wrapping_add(u128::from(origin[d] / chunk[d]));
        let mut k = (0..most.len()).fold(0, place);
        for d in (0..most.len()).rev().filter(|&d| d != axis) {
            origin[d] = (k % cells(d)) as u64 * chunk[d];
            k /= cells(d);
        }
        origin[axis] = (k as u64).wrapping_mul(chunk[axis]);
    }
    moved
}

/// Without entries that cannot be chunks of the dataset, and without all of those of one place: none can be believed.
fn sound(mut list: List, shape: &[u64], chunk: &[u64]) -> List {
    let cannot = |origin: &[u64], stored: &Stored| {
        let inside = origin.iter().zip(shape).zip(chunk).all(|((o, n), c)| o < n && o % c == 0);
        !inside || stored.at > i64::MAX as u64 || stored.len > i64::MAX as u64
    };
    let first = (0..list.chunks.len()).find(|&k| cannot(list.origin(k), &list.chunks[k]));
    let first = first.map(|k| list.origin(k).to_vec());
    if first.is_some() {
        list.retain(|origin, stored| !cannot(origin, stored));
    }
    let mut bad = first;
    if let Some(twice) = repeated(&list) {
        bad = (0..list.chunks.len()).map(|k| list.origin(k)).find(|&o| twice.contains(o)).map(<[u64]>::to_vec);
        list.twice = twice.iter().flatten().copied().collect();
        list.retain(|origin, _| !twice.contains(origin));
    }
    if let Some(bad) = bad {
        let why = format!("it has a chunk at {}, which cannot be or is there twice", tuple(&bad));
        list.wrong = list.wrong.or(Some(why));
    }
    list
}

/// Places that are in a list more than once; `None` where each is there once.
fn repeated(list: &List) -> Option<HashSet<Vec<u64>>> {
    let mut order: Vec<&[u64]> = list.origins.chunks_exact(list.rank.max(1)).collect();
    if order.is_sorted_by(|a, b| a < b) {
        return None;
    }
    order.sort_unstable();
    let twice: HashSet<_> = order.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0].to_vec()).collect();
    (!twice.is_empty()).then_some(twice)
}

#[cfg(test)]
mod tests {
    use super::super::dataset::{Access, Creation, OnChunk};
    use super::*;
    use crate::error::Error;
    use libc::{c_int, c_uint};

    /// An HDF5 that lists what a real one would list of damaged files alone.
    struct Lists {
        counts: Option<u64>,
        chunks: Vec<([u64; 2], Stored)>,
        ends_well: bool,
        at_once: bool,
        user_block: u64,
    }

    fn refused<T>() -> Result<T> {
        Err(Error::from("not asked for"))
    }

    impl Dataset for Lists {
        fn creation(&self) -> Result<Creation> {
            Ok(Creation { chunk: Some(vec![4, 5]), filters: Vec::new(), edges_unfiltered: false, fill: None })
        }
        fn element(&self) -> Result<Option<usize>> {
            refused()
        }
        fn extents(&self) -> Result<Extents> {
            Ok(Extents { shape: vec![10, 10], most: vec![10, 10] })
        }
        fn access(&self) -> Result<Access> {
            refused()
        }
        fn index_kind(&self) -> Result<Option<c_uint>> {
            refused()
        }
        fn flush(&self) -> Result<()> {
            refused()
        }
        fn descriptor(&self) -> Result<c_int> {
            refused()
        }
        fn user_block(&self) -> Result<u64> {
            Ok(self.user_block)
        }
        fn file_len(&self) -> Result<u64> {
            Ok(3 * 8)
        }
        fn count(&self) -> Result<u64> {
            self.counts.map_or_else(refused, Ok)
        }
        fn nth(&self, k: u64, origin: &mut [u64]) -> Result<Option<Stored>> {
            let (place, stored) = self.chunks.get(k as usize).ok_or("no such chunk")?;
            origin.copy_from_slice(place);
            Ok(Some(*stored))
        }
        fn lists_at_once(&self) -> bool {
            self.at_once
        }
        fn visit_chunks(&self, _: usize, told: &mut OnChunk<'_>) -> Result<()> {
            self.chunks.iter().for_each(|(origin, stored)| told(origin, *stored));
            if self.ends_well { Ok(()) } else { refused() }
        }
        fn listed(&self, _: &[u64]) -> Result<Option<Stored>> {
            refused()
        }
        fn stored_len(&self, origin: &[u64]) -> Result<u64> {
            Ok(self.chunks.iter().find(|(o, _)| o == origin).map_or(0, |(_, stored)| stored.len))
        }
        fn read_chunk(&self, _: &[u64], _: &mut [u8]) -> Result<c_uint> {
            refused()
        }
        fn write_chunk(&self, _: &[u64], _: &[u8]) -> Result<()> {
            refused()
        }
        fn write(&self, _: &[u64], _: &[u64], _: &[u8]) -> Result<()> {
            refused()
        }
    }

    fn of(places: &[[u64; 2]]) -> Lists {
        let stored = |k: usize| Stored { at: 100 * k as u64, len: 7, mask: 0 };
        let chunks: Vec<_> = places.iter().enumerate().map(|(k, &place)| (place, stored(k))).collect();
        Lists { counts: Some(chunks.len() as u64), chunks, ends_well: true, at_once: true, user_block: 0 }
    }

    fn listed(dataset: &Lists) -> (Vec<u64>, String) {
        let list = list(dataset, &|_, _| false).unwrap();
        assert_eq!(list.origins.len(), 2 * list.chunks.len());
        (list.origins, list.wrong.unwrap_or_default())
    }

    #[test]
    fn a_list_that_cannot_be_right_says_so() {
        assert_eq!(listed(&of(&[[0, 5], [4, 0], [8, 5]])), (vec![0, 5, 4, 0, 8, 5], String::new()));
        for at_once in [true, false] {
            let (origins, wrong) = listed(&Lists { at_once, ..of(&[[4, 0], [0, 5], [4, 0]]) });
            assert_eq!(
                (origins, &wrong[..]),
                (vec![0, 5], "it has a chunk at (4, 0), which cannot be or is there twice")
            );
            // Beyond the dataset, between two chunks, and at an address that is none.
            for (place, at) in [([12, 0], 0), ([4, 3], 0), ([4, u64::MAX - 4], 0), ([4, 5], HADDR_UNDEF)] {
                let mut dataset = Lists { at_once, ..of(&[[0, 5], place]) };
                dataset.chunks[1].1.at = at;
                let (origins, wrong) = listed(&dataset);
                assert_eq!(origins, [0, 5]);
                assert!(wrong.contains(&tuple(&place)), "{wrong}");
            }
        }
    }

    #[test]
    fn no_memory_is_taken_for_a_chunk_longer_than_the_file() {
        let mut dataset = Lists { user_block: 512, ..of(&[[0, 5], [4, 0]]) };
        let none = "HDF5 does not find chunks where it lists them";
        assert_eq!(listed(&dataset), (vec![0, 5, 4, 0], none.into()));
        dataset.chunks[1].1.len = 1 << 62;
        let long = format!("it lists a chunk of {} bytes, and the file has 24", 1u64 << 62);
        assert_eq!(listed(&dataset), (vec![0, 5, 4, 0], long));
    }

    #[test]
    fn a_list_that_ends_early_keeps_what_was_read() {
        let places = [[0, 0], [0, 5]];
        let (origins, wrong) = listed(&Lists { ends_well: false, ..of(&places) });
        assert_eq!((origins, &wrong[..]), (vec![0, 0, 0, 5], "H5Dchunk_iter failed: see HDF5's error stack"));
        let (origins, wrong) = listed(&Lists { counts: Some(3), ..of(&places) });
        assert_eq!((origins.len(), &wrong[..]), (4, "HDF5 counts 3 chunks and lists 2"));
        let (origins, wrong) = listed(&Lists { counts: Some(1), ..of(&places) });
        assert_eq!((origins.len(), &wrong[..]), (2, "HDF5 counts 1 chunks and lists 2"));
        let (origins, wrong) = listed(&Lists { counts: Some(3), at_once: false, ..of(&places) });
        assert_eq!((origins.len(), &wrong[..]), (4, "no such chunk"));
        // An index that cannot be counted: as many entries as the file has room for, of eight bytes each.
        let four = [[0, 0], [0, 5], [4, 0], [4, 5]];
        let (origins, wrong) = listed(&Lists { counts: None, at_once: false, ..of(&four) });
        assert_eq!((origins.len(), &wrong[..]), (6, "not asked for"));
    }

    #[test]
    fn what_a_search_does_not_find_is_said() {
        let dataset = of(&[[0, 0], [0, 5]]);
        let ask = |said: &[([u64; 2], u64)]| {
            distrust(&dataset, said.iter().map(|(origin, len)| (&origin[..], *len)), usize::MAX).unwrap_or_default()
        };
        assert_eq!(ask(&[([0, 0], 7), ([4, 0], 0)]), "");
        assert_eq!(ask(&[([0, 5], 9)]), "it lists 9 bytes for the chunk at (0, 5), where HDF5 finds 7");
        assert_eq!(ask(&[([4, 0], 9)]), "it lists 9 bytes for the chunk at (4, 0), where HDF5 finds none");
        assert_eq!(ask(&[([0, 0], 0)]), "it lists no bytes for the chunk at (0, 0), where HDF5 finds 7");
    }

    #[test]
    fn chunks_of_an_extensible_array_are_moved_back() {
        // Three cells along the first axis and one that grows: the k-th chunk is cell (k % 3, k / 3), listed at (k /
        // most, k % most) with the growing axis taken for one of a single cell.
        let list = List { rank: 2, origins: vec![0, 0, 4, 0, 8, 0, 12, 0], ..List::default() };
        assert_eq!(moved_back(&list, &[10, H5S_UNLIMITED], &[4, 5]), [0, 0, 4, 0, 8, 0, 0, 5]);
    }
}
