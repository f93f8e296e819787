// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all work on a device's arrays has in common: batches, the device, what needs no copy, what the driver says.

use crate::array::boxes::{Array, OnDevice, Overlap};
use crate::cuda::{self, Device, Failure, UserStream};
use crate::engine::gpu::group::Needs;
use codecs::error::{Error, Result};

/// Raw bytes of a batch at most, and at least where there are as many: enough to fill a device, so little that several
/// are on their way and the first is soon there.
pub(super) const BATCH: usize = 32 << 20;
const LEAST_BATCH: usize = 8 << 20;
/// Dense chunks begin at multiples of this; a chunk of another length is never used in place.
const ALIGN: usize = 16;

/// How many chunks a batch has, for `chunks` chunks of `raw_len` bytes on `lanes` lanes.
pub(super) fn batch(chunks: usize, raw_len: usize, lanes: usize) -> usize {
    let bytes = (chunks.saturating_mul(raw_len) / (2 * lanes)).clamp(LEAST_BATCH, BATCH);
    (bytes / raw_len.max(1)).clamp(1, chunks.max(1))
}

/// The device of this number, on which an array is.
fn device(ordinal: i32) -> Result<&'static Device> {
    cuda::device_of(ordinal).map_err(|why| {
        failed(format!("the array is on device {ordinal}, which cannot be used here ({why}): copy it to host memory"))
    })
}

/// See `array::device_of`.
pub(crate) fn device_of(address: u64) -> Result<i32> {
    let holder = cuda::holder(address);
    let holder = holder
        .map_err(|why| failed(format!("its device cannot be used here ({why}): copy the array to host memory")))?;
    holder.ok_or_else(|| failed(format!("the driver knows no device whose memory is at {address:#x}")))
}

/// See `array::enter_device`.
pub(crate) fn enter(ordinal: i32) -> Result<()> {
    Ok(device(ordinal)?.enter_until_left()?)
}

/// The device that an array is on, and the stream that its user gave.
pub(super) fn device_and_stream(array: &Array) -> Result<(&'static Device, UserStream)> {
    let OnDevice { ordinal, stream } = array.device().ok_or_else(|| failed("the array is in host memory"))?;
    let device = device(ordinal)?;
    let empty = array.shape().contains(&0);
    let whole: Vec<i64> = vec![0; array.shape().len()];
    let address = array.overlap(&whole, array.shape()).map_or(0, |o| array.place_of(&o).0);
    let holds = || -> Result<bool, Failure> {
        let _current = device.enter()?;
        device.holds(address)
    };
    if !empty && !holds()? {
        return Err(failed(format!("its memory is not that of device {ordinal}")));
    }
    Ok((device, stream.map_or(UserStream::Ready, UserStream::Handle)))
}

/// Whether a chunk's bytes are used where they are in the array, and their address.
pub(super) fn in_place(array: &Array, overlap: &Overlap, chunk: &[u64]) -> Option<u64> {
    let (len, at) = (array.dense_len(overlap, chunk)?, array.place_of(overlap).0);
    (len.is_multiple_of(ALIGN) && at.is_multiple_of(ALIGN as u64)).then_some(at)
}

/// The numbers of those that need something of kernels, by what they need: each list is for the same launches.
pub(super) fn grouped(needs: impl Iterator<Item = Option<Needs>>) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Needs, Vec<usize>)> = Vec::new();
    for (i, needs) in needs.enumerate() {
        let Some(needs) = needs else { continue };
        match groups.iter_mut().find(|g| g.0 == needs) {
            Some((_, group)) => group.push(i),
            None => groups.push((needs, vec![i])),
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

pub(super) fn failed(why: impl Into<String>) -> Error {
    Error::params("an array on a device", why.into())
}

/// What the driver said, for whoever has no other way.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        cuda::note_failure(&failure);
        match failure.is_memory() {
            true => Error::NoDeviceMemory { what: failure.to_string() },
            false => failed(format!("{failure}: copy the array to host memory")),
        }
    }
}
