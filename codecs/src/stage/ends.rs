// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where tiles' payloads end: a table of u32 in units of four bytes, from which any tile is found. §3 of szx and
//! lorenzo.

use crate::error::{Error, Result};

/// A table that was found right, and the payload section.
pub(crate) struct Ends<'a> {
    table: &'a [[u8; 4]],
    payload: &'a [u8],
}

impl<'a> Ends<'a> {
    /// Checks that the table, which is called `section`, has an entry for each tile, and that they rise to the
    /// payload's end.
    pub(crate) fn new(section: &'static str, table: &'a [u8], payload: &'a [u8], tiles: usize) -> Result<Self> {
        if table.len() != tiles.saturating_mul(4) {
            return Err(Error::Length { section, needed: 4 * tiles as u64, got: table.len() as u64 });
        }
        let ends = Ends { table: table.as_chunks().0, payload };
        let mut before = 0;
        for tile in 0..tiles {
            let end = ends.end(tile);
            if end < before || end > payload.len() as u64 {
                let why = format!("tile {tile} ends at {end}, after {before}, in {} bytes", payload.len());
                return Err(Error::corrupt(section, why));
            }
            before = end;
        }
        if before != payload.len() as u64 {
            let why = format!("the last tile ends at {before}, the payload at {}", payload.len());
            return Err(Error::corrupt(section, why));
        }
        Ok(ends)
    }

    fn end(&self, tile: usize) -> u64 {
        4 * u64::from(u32::from_le_bytes(self.table[tile]))
    }

    /// The payload section from a tile's first byte on, and the tile's length.
    pub(crate) fn tile(&self, tile: usize) -> (&'a [u8], usize) {
        let start = if tile == 0 { 0 } else { self.end(tile - 1) as usize };
        (&self.payload[start..], self.end(tile) as usize - start)
    }
}
