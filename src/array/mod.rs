// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole arrays in memory, encoded and decoded chunk by chunk beside HDF5's filter pipeline.
//!
//! A chunk is a box of an array. Encoding gathers its values into a dense chunk and makes its frame; decoding takes a
//! frame from a file or from memory and scatters what lies in the array. [`Encoding`] works ahead of whoever writes the
//! frames:
//!
//! ```text
//!   array ── gather a box ──▶ dense chunk ── codec ──▶ frame ──▶ next(): the frames in order, at most a window ahead
//!   file  ── pread ──▶ frame ── codec, tiles that are wanted ──▶ dense chunk ── scatter a box ──▶ array
//! ```
//!
//! An array may be on a device: see `device/mod.rs`. Of one in host memory every thread takes a chunk at a time where
//! there is no GPU: its values stay in the thread's cache from the gathering to the frame. With a GPU, or several, a
//! thread takes a batch, which the engine uploads while other threads gather theirs.

#[allow(unsafe_code)]
mod boxes;
mod decode;
#[cfg(feature = "cuda")]
mod device;
#[cfg(not(feature = "cuda"))]
#[path = "no_device.rs"]
mod device;
mod encode;
mod frames;
mod headers;
mod range;
mod sharing;
#[cfg(test)]
mod tests;

pub use boxes::{Array, OnDevice};
pub use frames::Frames;
#[doc(hidden)]
pub use frames::Unpack;
#[doc(hidden)]
pub use headers::{Checked, headers};

use boxes::raw_len;
use codecs::error::{Error, Result};
use codecs::memory;
use codecs::params::{Dtype, Params};
use sharing::Sharing;

/// Frames of an array's chunks, on their way.
///
/// The array must not change before the last frame is there. A forked child has none of the threads and no device: it
/// is refused.
#[derive(Debug)]
pub struct Encoding {
    way: Way,
    /// The process that began it.
    process: u32,
}

#[derive(Debug)]
enum Way {
    Host(encode::HostEncoding),
    Device(Box<device::DeviceEncoding>),
}

impl Encoding {
    /// Begins to encode the chunks of extents `chunk` at `origins` (a chunk's first value along each axis of the array,
    /// one chunk behind the other), on `threads` CPU threads (0: as many as the process may use) and the GPU where
    /// there is one. An array on a device is encoded by that device.
    ///
    /// A chunk may reach beyond the array: there stands `beyond`, the bytes of one element; zeros without.
    ///
    /// # Errors
    /// `Params` where the array, its chunks and `params` do not fit together, or its device cannot be used.
    pub fn new(
        array: Array,
        params: Params,
        chunk: &[u64],
        origins: &[i64],
        beyond: Option<&[u8]>,
        threads: usize,
    ) -> Result<Encoding> {
        let sharing = |n, bytes| Sharing::to_encode(&params, n, bytes, threads);
        Encoding::by(array, params, chunk, origins, beyond, threads, sharing)
    }

    /// As [`Encoding::new`]; `sharing` maps the number and length of chunks in host memory to how they are shared out.
    fn by(
        array: Array,
        params: Params,
        chunk: &[u64],
        origins: &[i64],
        beyond: Option<&[u8]>,
        threads: usize,
        sharing: impl FnOnce(usize, usize) -> Sharing,
    ) -> Result<Encoding> {
        let raw_len = raw_len(&array, chunk, origins)?;
        if !params.fits(raw_len) {
            let got = format!("{raw_len} bytes; type and extents of the request are not those of chunks {chunk:?}");
            return Err(Error::params("a chunk", got));
        }
        let beyond = beyond.map_or_else(|| vec![0; array.element()], <[u8]>::to_vec);
        if beyond.len() != array.element() {
            let got = format!("{} bytes; an element has {}", beyond.len(), array.element());
            return Err(Error::params("the value beyond the array", got));
        }
        let (chunks, chunk, origins) = (origins.len() / chunk.len(), chunk.to_vec(), origins.to_vec());
        let way = if array.device().is_some() {
            let new = device::DeviceEncoding::new(array, params, chunk, raw_len, origins, beyond, threads)?;
            Way::Device(Box::new(new))
        } else {
            let sharing = sharing(chunks, raw_len);
            Way::Host(encode::HostEncoding::new(array, params, chunk, raw_len, origins, beyond, sharing))
        };
        Ok(Encoding { way, process: std::process::id() })
    }

    /// The next frames, at least one, in the order of the chunks; none when all were given. They are lent until the
    /// next call.
    ///
    /// # Errors
    /// `NoMemory` where there is none for a frame, `Params` in a forked child or where the device fails.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Vec<&[u8]>> {
        if self.process != std::process::id() {
            return Err(Error::params("encoding", "it was begun before this process was forked: begin it anew here"));
        }
        match &mut self.way {
            Way::Host(encoding) => Ok(encoding.next()?.iter().map(Vec::as_slice).collect()),
            Way::Device(encoding) => encoding.next(),
        }
    }
}

/// Decodes frames of chunks of extents `chunk` at `origins` (a chunk's first value along each axis of the array, which
/// may lie outside of it) into `array`. What lies in the array is written, nothing else: an array may be a selection of
/// a dataset.
///
/// Answers for each frame, in order. `threads` as in [`Encoding::new`].
///
/// # Errors
/// `Params` where the array, its chunks and the frames do not fit together, or its device cannot be used.
pub fn decode(
    frames: Frames<'_>,
    array: &mut Array,
    chunk: &[u64],
    origins: &[i64],
    threads: usize,
) -> Result<Vec<Result<()>>> {
    let every = array.is_for_every_gpu();
    let sharing = |chunks, raw_len| Sharing::to_decode(chunks, raw_len, threads, every);
    decode_by(frames, array, chunk, origins, threads, sharing)
}

/// As [`decode`]; `sharing` maps the number and length of chunks in host memory to how they are shared out.
fn decode_by(
    frames: Frames<'_>,
    array: &mut Array,
    chunk: &[u64],
    origins: &[i64],
    threads: usize,
    sharing: impl FnOnce(usize, usize) -> Sharing,
) -> Result<Vec<Result<()>>> {
    let raw_len = placed(frames, array, chunk, origins)?;
    if array.device().is_some() {
        return device::decode(frames, array, chunk, origins, raw_len, threads);
    }
    let sharing = sharing(frames.count(), raw_len);
    Ok(decode::Work { frames, array, chunk, origins, raw_len, sharing, unpack: None }.all())
}

/// Bytes of a chunk; refuses frames that do not fit the array, or meet.
fn placed(frames: Frames<'_>, array: &Array, chunk: &[u64], origins: &[i64]) -> Result<usize> {
    let raw_len = raw_len(array, chunk, origins)?;
    let n = frames.count();
    if n * chunk.len() != origins.len() {
        return Err(Error::params("frames", format!("{n}; there are {} origins", origins.len() / chunk.len())));
    }
    apart(chunk, origins)?;
    Ok(raw_len)
}

/// As [`decode`], for chunks that other filters wrote, on the CPU's threads alone.
///
/// # Errors
/// As of [`decode`]; an array on a device is refused.
#[doc(hidden)]
pub fn unpack(
    chunks: Frames<'_>,
    array: &mut Array,
    chunk: &[u64],
    origins: &[i64],
    threads: usize,
    unpack: &dyn Unpack,
) -> Result<Vec<Result<()>>> {
    let raw_len = placed(chunks, array, chunk, origins)?;
    if array.device().is_some() {
        return Err(Error::params("an array", "it is on a device, and its chunks are of another filter"));
    }
    let mut sharing = Sharing::on_cpu(chunks.count(), raw_len, threads);
    sharing.lanes = sharing.lanes.min(unpack.at_once());
    Ok(decode::Work { frames: chunks, array, chunk, origins, raw_len, sharing, unpack: Some(unpack) }.all())
}

/// Gives back the host memory that [`decode`] keeps for its next call, up to 192 MiB.
pub fn release_memory() {
    decode::release();
}

/// Refuses chunks that meet: they would be written at the same time. Those of a dataset lie on one grid, each in a cell
/// of its own.
fn apart(chunk: &[u64], origins: &[i64]) -> Result<()> {
    let rank = chunk.len();
    let cell = |origin: &[i64]| -> Option<Vec<i128>> {
        let steps = origin.iter().zip(origins).zip(chunk).map(|((&o, &first), &c)| {
            let (far, c) = (i128::from(o) - i128::from(first), i128::from(c));
            (far % c == 0).then_some(far / c)
        });
        steps.collect()
    };
    let meet = |k: usize| Error::params("origins", format!("chunk {k} meets another one, or is on another grid"));
    let mut cells = memory::with_capacity(origins.len() / rank)?;
    for (k, origin) in origins.chunks(rank).enumerate() {
        cells.push((cell(origin).ok_or_else(|| meet(k))?, k));
    }
    cells.sort_unstable();
    let twice = cells.windows(2).find(|w| w[0].0 == w[1].0);
    twice.map_or(Ok(()), |w| Err(meet(w[1].1)))
}

/// Smallest and largest of an array's finite values whose bits are not those of `fill`; `None` where there are none.
/// Zeros count, unlike in the range of a chunk, which HDF5 may have padded.
///
/// `chunk` and `origins` say which boxes are looked at, as in [`Encoding::new`]: together they should cover the array.
///
/// # Errors
/// `Params` where the array and its chunks do not fit together, it holds no f32 or f64, or its device cannot be used;
/// `NoMemory`.
pub fn range(
    array: &Array,
    dtype: Dtype,
    chunk: &[u64],
    origins: &[i64],
    fill: Option<u64>,
    threads: usize,
) -> Result<Option<(f64, f64)>> {
    raw_len(array, chunk, origins)?;
    if !dtype.is_ieee() || usize::from(dtype.size) != array.element() {
        return Err(Error::params("type", format!("{dtype:?}; a range is of f32 or f64")));
    }
    let boxes = range::ArrayBoxes { array, dtype, chunk, origins, fill };
    if array.device().is_some() {
        return device::range(&boxes);
    }
    range::range(&boxes, threads)
}

/// Copies an array to one of the same shape, in host memory, between it and a device, or on one device.
///
/// # Errors
/// `Params` where shapes differ, or a device cannot be used; `NoMemory`.
pub fn copy(from: &Array, to: &mut Array) -> Result<()> {
    if !from.is_like(to) {
        let got =
            format!("{:?}; the other has {:?}, and elements of the same size are needed", from.shape(), to.shape());
        return Err(Error::params("an array to copy", got));
    }
    if from.device().is_none() && to.device().is_none() {
        boxes::copy_on_host(from, to);
        return Ok(());
    }
    device::copy(from, to)
}

/// CUDA's number of the device whose memory an address is in, as the driver knows: for an array whose library does not
/// say it.
///
/// # Errors
/// `Params` where it is no device's memory, or the process can use no device.
pub fn device_of(address: u64) -> Result<i32> {
    device::device_of(address)
}

/// Makes a device current in this thread, by its primary context, as other libraries do: one that is asked for an array
/// orders the work of the device that is current. [`leave_device`] ends it.
///
/// # Errors
/// `Params` where the device cannot be used.
pub fn enter_device(ordinal: i32) -> Result<()> {
    device::enter(ordinal)
}

/// Makes current in this thread what was before the last [`enter_device`].
pub fn leave_device() {
    device::leave();
}
