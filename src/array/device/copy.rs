// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole array between host memory and a device, or from place to place on one: for what does not go by frames.

use super::base::{BATCH, device_and_stream, failed};
use super::by_host::ByHost;
use super::copies::{Copies, Side};
use crate::array::boxes::{Array, dense};
use crate::cuda::{ALIGN, Buffer, Device, OwnStream};
use crate::host::log;
use codecs::error::{Error, Result};
use codecs::memory;

/// See `array::copy`; the arrays are alike.
pub(crate) fn copy(from: &Array, to: &mut Array) -> Result<()> {
    let place = match (from.device(), to.device()) {
        (Some(a), Some(b)) if a.ordinal != b.ordinal => {
            let (a, b) = (a.ordinal, b.ordinal);
            return Err(failed(format!(
                "one is on device {a}, the other on device {b}: copy one to the other's device"
            )));
        }
        (Some(_), _) => device_and_stream(from)?,
        (None, _) => device_and_stream(to)?,
    };
    let (device, user) = place;
    let _current = device.enter()?;
    let on_device = || -> Result<()> {
        let mut stream = device.own_stream()?;
        stream.follow(user)?;
        if from.device().is_some() && to.device().is_some() {
            stream.follow(device_and_stream(to)?.1)?;
        }
        slabs(from, |origin, extents| part(device, &mut stream, from, to, origin, extents))
    };
    match on_device() {
        Err(Error::NoDeviceMemory { what }) => {
            log::info(&format!("an array is copied by the host: {what}"));
            let (mut fetched, mut sent) = (by_host(from)?, by_host(to)?);
            slabs(from, |origin, extents| part_by_host(from, &mut fetched, to, &mut sent, origin, extents))
        }
        done => done,
    }
}

/// Calls `part` with the first element and the extents of each part of an array.
fn slabs(array: &Array, mut part: impl FnMut(&[i64], &[u64]) -> Result<()>) -> Result<()> {
    let extents = slab(array.shape(), array.element());
    let mut origin = vec![0i64; extents.len()];
    loop {
        part(&origin, &extents)?;
        // The next slab: axes from the fastest on.
        let Some(d) = (0..extents.len()).rev().find(|&d| origin[d] as u64 + extents[d] < array.shape()[d]) else {
            return Ok(());
        };
        origin[d] += extents[d] as i64;
        origin[d + 1..].fill(0);
    }
}

/// Extents of parts that are at most a batch: all of the fast axes, as much of the others as goes in.
fn slab(shape: &[u64], size: usize) -> Vec<u64> {
    let mut left = (BATCH / size) as u64;
    let mut extents = vec![1; shape.len()];
    for (e, &n) in extents.iter_mut().zip(shape).rev() {
        *e = n.clamp(1, left.max(1));
        left /= *e;
    }
    extents
}

fn part(
    device: &'static Device,
    stream: &mut OwnStream,
    from: &Array,
    to: &Array,
    origin: &[i64],
    extents: &[u64],
) -> Result<()> {
    let Some(overlap) = from.overlap(origin, extents) else { return Ok(()) };
    let (_, extents) = overlap.in_array();
    let size = from.element();
    let len = extents.iter().product::<u64>() as usize * size;
    let steps = dense(&extents, size);
    let part = from.overlap(origin, &extents).unwrap_or(overlap);
    let mut boxes = Copies::default();
    let side = |array: &Array| array.place_of(&part).0;
    if from.device().is_some() && to.device().is_some() {
        let (f, t) = (from.place_of(&part).1, to.place_of(&part).1);
        boxes.add(Side { at: side(from), steps: f }, Side { at: side(to), steps: t }, &extents, size)?;
        // SAFETY: parts of both arrays, whose owners promised that they can be read and written.
        #[allow(unsafe_code)]
        unsafe {
            boxes.start(device, stream)?;
        }
        return Ok(stream.wait()?);
    }
    let slot = stream.reserve(Buffer::Input, len.next_multiple_of(ALIGN))?;
    let mut raw = memory::zeros::<u8>(len)?;
    let staged = Side { at: slot, steps: &steps };
    if from.device().is_some() {
        boxes.add(Side { at: side(from), steps: from.place_of(&part).1 }, staged, &extents, size)?;
    } else {
        from.gather(&part, &extents, &mut raw);
        stream.upload(Buffer::Input, &[(0, &raw)], 1)?;
        boxes.add(staged, Side { at: side(to), steps: to.place_of(&part).1 }, &extents, size)?;
    }
    // SAFETY: as above, and the stream's own memory.
    #[allow(unsafe_code)]
    unsafe {
        boxes.start(device, stream)?;
    }
    if from.device().is_some() {
        stream.download(Buffer::Input, vec![(0, &mut raw)], 1)?;
        to.scatter(&part, &extents, &raw);
    }
    Ok(stream.wait()?)
}

/// What copies an array where the device has no memory to work in; `None`: it is in host memory.
fn by_host(array: &Array) -> Result<Option<ByHost<'_>>> {
    if array.device().is_none() {
        return Ok(None);
    }
    let (device, user) = device_and_stream(array)?;
    Ok(Some(ByHost::new(device, user, array)?))
}

/// The same as [`part`] by them.
fn part_by_host(
    from: &Array,
    fetched: &mut Option<ByHost<'_>>,
    to: &Array,
    sent: &mut Option<ByHost<'_>>,
    origin: &[i64],
    extents: &[u64],
) -> Result<()> {
    let Some(overlap) = from.overlap(origin, extents) else { return Ok(()) };
    let (_, extents) = overlap.in_array();
    let part = from.overlap(origin, &extents).unwrap_or(overlap);
    let mut raw = memory::zeros::<u8>(extents.iter().product::<u64>() as usize * from.element())?;
    match fetched {
        Some(host) => host.fetch(&part, &extents, &mut raw)?,
        None => from.gather(&part, &extents, &mut raw),
    }
    match sent {
        Some(host) => host.send(&part, &extents, &raw)?,
        None => to.scatter(&part, &extents, &raw),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_rows_where_they_can_be() {
        assert_eq!(slab(&[100, 200], 4), [100, 200]);
        assert_eq!(slab(&[1 << 20, 1 << 10], 4), [1 << 13, 1 << 10]);
        assert_eq!(slab(&[3, 1 << 30], 8), [1, 1 << 22]);
        assert_eq!(slab(&[], 8), []);
        assert_eq!(slab(&[4, 0], 8), [4, 1]);
    }
}
