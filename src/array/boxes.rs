// SPDX-License-Identifier: MIT OR Apache-2.0
//! An array of any strides, in host memory or a device's, and boxes of the former copied out and in.

use codecs::error::{Error, Result};
use std::ops::Range;

/// A device that an array is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnDevice {
    /// CUDA's number of the device in this process.
    pub ordinal: i32,
    /// The stream whose work makes the array ready: a `CUstream`, 1 for the legacy default stream, 2 for the thread's.
    /// `None`: it is ready.
    pub stream: Option<usize>,
}

/// An array in memory: as NumPy, DLPack or `__cuda_array_interface__` describe one.
#[derive(Debug)]
pub struct Array {
    data: *mut u8,
    /// Bytes of an element.
    size: usize,
    shape: Vec<u64>,
    /// Bytes from an element to the next along each axis, of any sign.
    strides: Vec<isize>,
    /// `None`: host memory.
    device: Option<OnDevice>,
    /// Every GPU takes part in work on it.
    every_gpu: bool,
}

impl Overlap {
    /// Whether all of the chunk lies in the array.
    pub(super) fn is_whole(&self, chunk: &[u64]) -> bool {
        self.chunk.iter().zip(chunk).all(|(r, &c)| *r == (0..c))
    }

    /// Values of the chunk that lie in the array.
    pub(super) fn count(&self) -> u64 {
        self.chunk.iter().map(|r| r.end - r.start).product()
    }

    /// The box's offset in bytes in a chunk; `steps`: bytes between neighbours along each axis.
    pub(super) fn place(&self, steps: &[isize]) -> usize {
        self.chunk.iter().zip(steps).map(|(r, &s)| r.start as usize * s as usize).sum()
    }

    /// Where it begins in the array, and its extents.
    pub(super) fn in_array(&self) -> (Vec<i64>, Vec<u64>) {
        self.array.iter().map(|r| (r.start as i64, r.end - r.start)).unzip()
    }
}

// SAFETY: whoever made it promised that its memory may be used from any thread.
unsafe impl Send for Array {}
// SAFETY: as above; what is written through a shared reference are boxes that do not meet.
unsafe impl Sync for Array {}

/// Where a chunk lies in an array: the ranges of the array and of the chunk that are the same values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    array: Vec<Range<u64>>,
    pub(super) chunk: Vec<Range<u64>>,
}

impl Array {
    /// An array of elements of `size` bytes; `strides` are bytes, `None` where it is dense with the slowest axis first.
    ///
    /// # Errors
    /// `Params` when ranks differ, an element has no bytes, or the array is larger than memory.
    ///
    /// # Safety
    /// `data` is the first element, and every element lies in memory that stays readable for as long as this value
    /// lives and is changed by nobody else meanwhile. To decode into it, it is writable, and its elements do not
    /// overlap.
    pub unsafe fn new(data: *mut u8, size: usize, shape: &[u64], strides: Option<&[i64]>) -> Result<Array> {
        let wrong = |got: String| Error::params("array", got);
        let count = shape.iter().try_fold(1u64, |a, &n| a.checked_mul(n));
        let bytes = count.and_then(|n| n.checked_mul(size as u64)).filter(|&n| isize::try_from(n).is_ok());
        if size == 0 || bytes.is_none() {
            return Err(wrong(format!("{shape:?} elements of {size} bytes are none, or more than memory")));
        }
        let strides: Vec<isize> = match strides {
            Some(given) if given.len() != shape.len() => {
                return Err(wrong(format!("{} strides for {} axes", given.len(), shape.len())));
            }
            Some(given) => given.iter().map(|&s| s as isize).collect(),
            None => dense(shape, size),
        };
        if data.is_null() && bytes != Some(0) {
            return Err(wrong(format!("a null pointer for {shape:?} elements")));
        }
        Ok(Array { data, size, shape: shape.to_vec(), strides, device: None, every_gpu: false })
    }

    /// The same array in a device's memory.
    ///
    /// # Safety
    /// As [`Array::new`], of the device's memory; the stream is one of the device's.
    #[must_use]
    pub unsafe fn on(self, device: OnDevice) -> Array {
        Array { device: Some(device), ..self }
    }

    /// The same array, in host memory, for whose chunks every GPU of the machine may be used that the process sees.
    #[must_use]
    pub fn for_every_gpu(self) -> Array {
        Array { every_gpu: true, ..self }
    }

    /// A box of it, from element `start` on.
    ///
    /// # Errors
    /// `Params` where it is not inside.
    ///
    /// # Safety
    /// The box is used no longer than this array, and what is written through one is not used through the other
    /// meanwhile.
    pub unsafe fn part(&self, start: &[u64], shape: &[u64]) -> Result<Array> {
        let inside = |((&s, &n), &whole): ((&u64, &u64), &u64)| s.checked_add(n).is_some_and(|end| end <= whole);
        let rank = self.shape.len();
        if [start.len(), shape.len()] != [rank; 2] || !start.iter().zip(shape).zip(&self.shape).all(inside) {
            return Err(Error::params("a box", format!("{shape:?} at {start:?}; the array has {:?}", self.shape)));
        }
        let ranges: Vec<_> = start.iter().zip(shape).map(|(&s, &n)| s..s + n).collect();
        Ok(Array { data: self.at(&ranges), shape: shape.to_vec(), strides: self.strides.clone(), ..*self })
    }

    /// Whether every GPU takes part.
    pub(super) fn is_for_every_gpu(&self) -> bool {
        self.every_gpu
    }

    /// The array's bytes, where they lie one behind the other in host memory, the slowest axis first.
    pub fn bytes(&self) -> Option<&[u8]> {
        let whole = self.overlap(&vec![0; self.shape.len()], &self.shape)?;
        if self.device.is_some() { None } else { self.dense(&whole, &self.shape) }
    }

    /// The device that it is on; `None` in host memory.
    pub fn device(&self) -> Option<OnDevice> {
        self.device
    }

    /// Whether two arrays have the same elements in number and size.
    pub(super) fn is_like(&self, other: &Array) -> bool {
        (self.size, &self.shape) == (other.size, &other.shape)
    }

    /// Address of an overlap's first element, and bytes from an element to the next.
    #[cfg(feature = "cuda")]
    pub(super) fn place_of(&self, overlap: &Overlap) -> (u64, &[isize]) {
        (self.at(&overlap.array) as u64, &self.strides)
    }

    /// Elements along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of an element.
    pub fn element(&self) -> usize {
        self.size
    }

    /// What of a chunk, whose first value is the array's at `origin`, lies in the array. `None`: nothing.
    pub(super) fn overlap(&self, origin: &[i64], chunk: &[u64]) -> Option<Overlap> {
        let (mut in_array, mut in_chunk) = (Vec::new(), Vec::new());
        for ((&n, &o), &c) in self.shape.iter().zip(origin).zip(chunk) {
            // In 128 bits no sum overflows.
            let (n, o, c) = (i128::from(n), i128::from(o), i128::from(c));
            let (from, to) = (o.max(0), (o + c).min(n));
            if from >= to {
                return None;
            }
            in_array.push(from as u64..to as u64);
            in_chunk.push((from - o) as u64..(to - o) as u64);
        }
        Some(Overlap { array: in_array, chunk: in_chunk })
    }

    /// The place of an element, which is in the array.
    fn at(&self, ranges: &[Range<u64>]) -> *mut u8 {
        let offset: isize = ranges.iter().zip(&self.strides).map(|(r, &s)| r.start as isize * s).sum();
        self.data.wrapping_offset(offset)
    }

    /// Copies the overlap from the array into a dense chunk.
    pub(super) fn gather(&self, overlap: &Overlap, chunk: &[u64], to: &mut [u8]) {
        debug_assert!(self.device.is_none());
        let (at, strides) = self.place(overlap, chunk, to.len());
        let shape: Vec<usize> = overlap.array.iter().map(|r| (r.end - r.start) as usize).collect();
        // SAFETY: the overlap lies in the array, by the promise of `new`, and in the chunk, which `place` has measured.
        unsafe { copy(self.at(&overlap.array), &self.strides, to.as_mut_ptr().add(at), &strides, &shape, self.size) }
    }

    /// Copies the overlap from a dense chunk into the array. Others may do so at the same time, with overlaps that do
    /// not meet.
    pub(super) fn scatter(&self, overlap: &Overlap, chunk: &[u64], from: &[u8]) {
        debug_assert!(self.device.is_none());
        let (at, strides) = self.place(overlap, chunk, from.len());
        let shape: Vec<usize> = overlap.array.iter().map(|r| (r.end - r.start) as usize).collect();
        // SAFETY: as in `gather`, the other way round.
        unsafe { copy(from.as_ptr().add(at), &strides, self.at(&overlap.array), &self.strides, &shape, self.size) }
    }

    /// The array's own bytes of a chunk that lies in it whole and dense: it need not be gathered.
    pub(super) fn dense(&self, overlap: &Overlap, chunk: &[u64]) -> Option<&[u8]> {
        debug_assert!(self.device.is_none());
        let len = self.dense_len(overlap, chunk)?;
        // SAFETY: the chunk lies in the array, one byte behind the other.
        Some(unsafe { std::slice::from_raw_parts(self.at(&overlap.array), len) })
    }

    /// As [`Array::dense`], to be written.
    ///
    /// # Safety
    /// Nobody else uses these bytes meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn dense_mut(&self, overlap: &Overlap, chunk: &[u64]) -> Option<&mut [u8]> {
        let len = self.dense_len(overlap, chunk)?;
        // SAFETY: as in `dense`; this function's promise.
        Some(unsafe { std::slice::from_raw_parts_mut(self.at(&overlap.array), len) })
    }

    /// Bytes of a chunk that lies in the array whole and dense.
    pub(super) fn dense_len(&self, overlap: &Overlap, chunk: &[u64]) -> Option<usize> {
        let wanted = dense(chunk, self.size);
        // The stride along an axis of one value does not matter.
        let alike = chunk.iter().zip(&self.strides).zip(&wanted).all(|((&c, a), b)| c == 1 || a == b);
        (overlap.is_whole(chunk) && alike).then(|| chunk.iter().product::<u64>() as usize * self.size)
    }

    /// Where the overlap begins in a dense chunk, and the chunk's strides.
    ///
    /// # Panics
    /// When the chunk has not `len` bytes.
    pub(super) fn place(&self, overlap: &Overlap, chunk: &[u64], len: usize) -> (usize, Vec<isize>) {
        assert_eq!(chunk.iter().product::<u64>() * self.size as u64, len as u64, "a buffer of the chunk's length");
        let strides = dense(chunk, self.size);
        (overlap.place(&strides), strides)
    }
}

/// Copies an array in host memory to another one; the two are alike.
pub(super) fn copy_on_host(from: &Array, to: &mut Array) {
    if from.shape.contains(&0) {
        return;
    }
    let shape: Vec<usize> = from.shape.iter().map(|&n| n as usize).collect();
    // SAFETY: both have every element of their shape, by the promise of `new`.
    unsafe { copy(from.data, &from.strides, to.data, &to.strides, &shape, from.size) }
}

/// Bytes of a chunk of these extents of an array. Refuses ranks that differ and chunks that memory cannot hold.
pub(super) fn raw_len(array: &Array, chunk: &[u64], origins: &[i64]) -> Result<usize> {
    let rank = array.shape().len();
    if chunk.len() != rank || rank == 0 || !origins.len().is_multiple_of(rank) {
        let got = format!(
            "{chunk:?} with {} numbers for origins; the array has {rank} axes, and must have at least one",
            origins.len()
        );
        return Err(Error::params("chunks", got));
    }
    let count = chunk.iter().try_fold(array.element() as u64, |a, &n| a.checked_mul(n));
    let bytes = count.filter(|&n| n > 0).and_then(|n| isize::try_from(n).ok());
    bytes
        .map(|n| n as usize)
        .ok_or_else(|| Error::params("chunks", format!("{chunk:?} are empty, or more than memory")))
}

/// Strides of a dense array, slowest axis first.
pub(super) fn dense(shape: &[u64], size: usize) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = size as isize;
    for (s, &n) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step = step.saturating_mul(n as isize);
    }
    strides
}

/// Copies a box of elements of `size` bytes between two arrays.
///
/// Neighbouring axes that are one run of bytes in both are copied as one; so a box of whole rows is one copy a plane.
///
/// # Safety
/// Both arrays have every element of the box, and they do not overlap.
unsafe fn copy(from: *const u8, fs: &[isize], to: *mut u8, ts: &[isize], shape: &[usize], size: usize) {
    // The fastest axes that are dense in both are one run.
    let (mut run, mut outer) = (size, shape.len());
    while outer > 0 && (shape[outer - 1] == 1 || fs[outer - 1] == run as isize && ts[outer - 1] == run as isize) {
        run *= shape[outer - 1];
        outer -= 1;
    }
    let (inner, rest) = match outer.checked_sub(1) {
        Some(last) => (last, &shape[..last]),
        None => (0, &shape[..0]),
    };
    let (n, f, t) = if outer > 0 { (shape[inner], fs[inner], ts[inner]) } else { (1, 0, 0) };
    let mut at = vec![0; rest.len()];
    let (mut from, mut to) = (from, to);
    loop {
        // SAFETY: by this function's promise.
        unsafe {
            match run {
                4 => elements::<4>(from, f, to, t, n),
                8 => elements::<8>(from, f, to, t, n),
                _ => runs(from, f, to, t, n, run),
            }
        }
        let mut k = rest.len();
        loop {
            if k == 0 {
                return;
            }
            k -= 1;
            at[k] += 1;
            (from, to) = (from.wrapping_offset(fs[k]), to.wrapping_offset(ts[k]));
            if at[k] < rest[k] {
                break;
            }
            let back = -(rest[k] as isize);
            (from, to, at[k]) = (from.wrapping_offset(back * fs[k]), to.wrapping_offset(back * ts[k]), 0);
        }
    }
}

/// # Safety
/// `n` elements of `N` bytes can be read every `f` bytes and written every `t` bytes.
unsafe fn elements<const N: usize>(from: *const u8, f: isize, to: *mut u8, t: isize, n: usize) {
    for i in 0..n as isize {
        // SAFETY: by this function's promise; arrays of bytes have no alignment.
        unsafe { *to.offset(i * t).cast::<[u8; N]>() = *from.offset(i * f).cast::<[u8; N]>() }
    }
}

/// # Safety
/// As [`elements`], `len` bytes each.
unsafe fn runs(from: *const u8, f: isize, to: *mut u8, t: isize, n: usize, len: usize) {
    for i in 0..n as isize {
        // SAFETY: by this function's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.offset(i * f), to.offset(i * t), len) }
    }
}
