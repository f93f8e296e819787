// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec of each chunk of a batch where the request leaves it open: the same choice as on the CPU (`codec/auto.rs`), of which only
//! the values that it looks at come to the host, 3 to 6 % of a chunk as a rule and 19 % of one that is hardly anything afterwards, and a
//! range from the device.

use super::copies::{Copies, Side};
use super::range::ranges;
use crate::bound;
use crate::codec::auto::{Look, Looked, boxes};
use crate::codec::chunk::Chunk;
use crate::codec::settle_by;
use crate::cuda::{Buffer, Device, OwnStream};
use crate::error::Result;
use crate::params::{Bound, Params};
use crate::{memory, parallel};

/// What each chunk's encoder is asked, of dense chunks at these addresses. `None`: it takes more than a few boxes to say. `scratch` is
/// memory that is used again from batch to batch.
pub(super) fn choose(
    device: &'static Device,
    stream: &mut OwnStream,
    params: &Params,
    raw_len: usize,
    inputs: &[u64],
    threads: usize,
    scratch: &mut Vec<u8>,
) -> Result<Vec<Option<Params>>> {
    let mut chosen = vec![None; inputs.len()];
    let size = usize::from(params.dtype.size);
    let bounds = match params.request.bound {
        Bound::Relative(_) | Bound::Psnr(_) => {
            let chunks: Vec<(u64, usize)> = inputs.iter().map(|&at| (at, raw_len / size)).collect();
            ranges(device, stream, &Copies::default(), params, &chunks)?
        }
        _ => vec![None; inputs.len()],
    };
    let mut open: Vec<usize> = (0..inputs.len()).collect();
    // Each chunk's values have their places in `scratch`: nobody looks at the rest, so hardly any of it becomes memory, and what has is
    // there for the next batch: hundreds of fresh pages a chunk took a fifth of the choice's time.
    if scratch.len() < inputs.len() * raw_len {
        *scratch = memory::zeros(inputs.len() * raw_len)?;
    }
    let mut there = 0;
    for looked in [Looked::AtFirst, Looked::AtAll] {
        let Some(all) = boxes(params, looked) else { return Ok(chosen) };
        if open.is_empty() {
            break;
        }
        // What was looked at first comes first, and is in its place.
        let looks = &all[there..];
        there = all.len();
        let len: usize = looks.iter().map(|l| l.extents.iter().product::<usize>()).sum::<usize>() * size;
        let samples = stream.reserve(Buffer::Output, open.len() * len)?;
        let mut copies = Copies::default();
        for (n, &i) in open.iter().enumerate() {
            let mut to = samples + (n * len) as u64;
            for look in looks {
                let from = Side { at: inputs[i] + (look.at * size) as u64, steps: &steps(look.within, size) };
                copies.add(from, Side { at: to, steps: &steps(look.extents, size) }, &extents(look), size)?;
                to += (look.extents.iter().product::<usize>() * size) as u64;
            }
        }
        stream.locked(open.len() * len)?;
        // SAFETY: boxes of the chunks, and the stream's own memory.
        #[allow(unsafe_code)]
        unsafe {
            copies.start(device, stream)?;
        }
        stream.start_fetch(Buffer::Output, 0, open.len() * len, 0)?;
        stream.wait()?;
        let sampled = stream.locked_bytes(0, open.len() * len);
        let inner = threads.div_ceil(open.len());
        let places = scratch.chunks_mut(raw_len).zip(&chosen);
        let chunks = places.filter(|(_, chosen)| chosen.is_none()).map(|(raw, _)| raw).collect();
        let settled = parallel::map_mut(chunks, threads, |n, raw| {
            let mut from = &sampled[n * len..][..len];
            for look in looks {
                from = place(look, size, from, raw);
            }
            let used = Some(bound::resolve(params.request.bound, || bounds[open[n]]));
            settle_by(&Chunk { params, raw, threads: inner, used }, looked)
        });
        for (&i, settled) in open.iter().zip(settled) {
            chosen[i] = settled?;
        }
        open.retain(|&i| chosen[i].is_none());
    }
    Ok(chosen)
}

/// Bytes from a value to the next along each axis.
fn steps(extents: [usize; 3], size: usize) -> [isize; 3] {
    [extents[1] * extents[2] * size, extents[2] * size, size].map(|s| s as isize)
}

fn extents(look: &Look) -> [u64; 3] {
    look.extents.map(|n| n as u64)
}

/// Puts a box's values in their places; what is behind them.
fn place<'a>(look: &Look, size: usize, mut from: &'a [u8], raw: &mut [u8]) -> &'a [u8] {
    let [a, b, c] = look.extents;
    for row in 0..a * b {
        let at = look.at + (row / b * look.within[1] + row % b) * look.within[2];
        let (now, rest) = from.split_at(c * size);
        raw[at * size..][..now.len()].copy_from_slice(now);
        from = rest;
    }
    from
}
