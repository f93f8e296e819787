// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame of two sections, the table of where tiles' payloads end (`stage/ends.rs`) and the payloads, written by
//! threads that code runs of tiles.

use crate::error::Result;
use crate::frame::{Header, Writer};
use crate::{memory, parallel};
use std::ops::Range;

/// Tiles that a thread codes before it appends them: half a megabyte of f32, whose code stays in its cache.
const TILES: usize = 32;

/// Writes the frame. `code` appends the payloads of consecutive tiles, in memory that `scratch` makes for each thread,
/// and returns their lengths in units of four bytes, which add up to less than 2^32.
pub(super) fn write_frame<S>(
    header: Header,
    tiles: usize,
    threads: usize,
    out: &mut Vec<u8>,
    scratch: impl Fn() -> Result<S> + Sync,
    code: impl Fn(Range<usize>, &mut S, &mut Vec<u8>) -> Result<Vec<u32>> + Sync,
) -> Result<()> {
    let runs = tiles.div_ceil(TILES);
    let mut table = memory::with_capacity(4 * tiles)?;
    let mut end = 0;
    let mut writer = Writer::new(out, header, 2)?;
    writer.section(|o| {
        memory::reserve(o, 4 * tiles)?;
        o.resize(o.len() + 4 * tiles, 0);
        Ok(())
    })?;
    let mut note = |lens: &[u32]| {
        for len in lens {
            end += len;
            table.extend(end.to_le_bytes());
        }
    };
    writer.section(|o| {
        if threads <= 1 || runs <= 1 {
            note(&code(0..tiles, &mut scratch()?, o)?);
            return Ok(());
        }
        parallel::map_in_order(
            runs,
            threads,
            || Ok((scratch()?, Vec::new(), Vec::new())),
            |i, (scratch, lens, bytes)| {
                bytes.clear();
                *lens = code(i * TILES..tiles.min((i + 1) * TILES), scratch, bytes)?;
                Ok(())
            },
            |_, (_, lens, bytes)| {
                note(lens);
                memory::append(o, bytes)
            },
        )
    })?;
    writer.patch(0, &table);
    writer.seal(threads);
    Ok(())
}
