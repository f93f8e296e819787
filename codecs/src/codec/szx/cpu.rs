// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections, threads over runs of tiles, and the choice of vector unit.

use super::decode;
use super::encode::{self, ChunkRule};
use super::format::{TILE, Words};
use super::parts::Parts;
use crate::bound::Used;
use crate::codec::chunk::Chunk;
use crate::codec::runs;
use crate::error::{Error, Result};
use crate::frame::{Frame, Header};
use crate::params::Mode;
use crate::part::Part;
use crate::scalar::Scalar;
use crate::stage::ends::Ends;
use crate::stage::pack::{Bytes, Portable};
use crate::{memory, parallel};
use pulp::NullaryFnOnce;
use std::ops::Range;

/// The table of ends, in messages.
const TABLE: &str = "szx table";

/// Longest payload that the table's entries reach: 2^32 units of four bytes.
const PAYLOAD_UNITS: usize = u32::MAX as usize;

/// Encodes a chunk. False: its payload may be too long for the table.
pub(crate) fn encode<S: Scalar>(
    values: &[S],
    chunk: &Chunk<'_>,
    used: Used,
    header: Header,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let tiles = values.len().div_ceil(TILE);
    if values.len() / 4 * S::SIZE + tiles * 16 > PAYLOAD_UNITS {
        return Ok(false);
    }
    let plan = ChunkRule::new(used, chunk.params.fill);
    let code = |run: Range<usize>, _: &mut (), out: &mut Vec<u8>| {
        encode_run(&values[run.start * TILE..values.len().min(run.end * TILE)], &plan, out)
    };
    runs::write_frame(header, tiles, chunk.threads, out, || Ok(()), code)?;
    Ok(true)
}

/// Runs of tiles to encode with a level's steps. A type and not a closure, so that all of it is certain to be inlined
/// into the function that is compiled for the vector unit.
struct EncodeRun<'a, S: Scalar, L> {
    values: &'a [S],
    plan: &'a ChunkRule<S>,
    level: L,
    out: &'a mut Vec<u8>,
}

impl<S: Scalar, L: Bytes> NullaryFnOnce for EncodeRun<'_, S, L> {
    type Output = Result<Vec<u32>>;

    #[inline(always)]
    fn call(self) -> Result<Vec<u32>> {
        let mut parts = Parts::new::<S>(self.values.len())?;
        let mut lens = memory::with_capacity(self.values.len().div_ceil(TILE))?;
        for x in self.values.chunks(TILE) {
            let start = self.out.len();
            encode::tile(x, self.plan, self.level, &mut parts, self.out)?;
            lens.push(((self.out.len() - start) / 4) as u32);
        }
        Ok(lens)
    }
}

/// Appends the payloads of consecutive tiles; returns their lengths in units of four bytes.
pub(super) fn encode_run<S: Scalar>(values: &[S], plan: &ChunkRule<S>, out: &mut Vec<u8>) -> Result<Vec<u32>> {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return v4.vectorize(EncodeRun { values, plan, level: *v4, out });
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return v3.vectorize(EncodeRun { values, plan, level: v3, out });
        }
    }
    EncodeRun { values, plan, level: Portable, out }.call()
}

/// Decodes a frame into `out`.
pub(crate) fn decode<S: Scalar>(frame: &Frame<'_>, threads: usize, out: &mut [S]) -> Result<()> {
    let n = frame.elements(S::SIZE)?;
    if n != out.len() {
        let (needed, got) = (frame.header.raw_len, (out.len() * S::SIZE) as u64);
        return Err(Error::Length { section: "the caller's buffer", needed, got });
    }
    let ([table, payload], tiles) = (frame.sections()?, n.div_ceil(TILE));
    let ends = Ends::new(TABLE, table, payload, tiles)?;
    let words = Words::new(frame.header.mode == Mode::PointwiseRelative, frame.header.used);
    let per_run = parallel::run_length(tiles, threads);
    let runs = out.chunks_mut(per_run * TILE);
    let part = frame.wanted.as_ref();
    parallel::try_each(runs.len(), runs, threads, |i, out| decode_run(&ends, i * per_run, words, part, out))
}

/// As [`EncodeRun`], the other way: consecutive tiles from number `first` on.
struct DecodeRun<'a, S: Scalar, L> {
    ends: &'a Ends<'a>,
    first: usize,
    words: Words<S>,
    part: Option<&'a Part>,
    level: L,
    out: &'a mut [S],
}

impl<S: Scalar, L: Bytes> NullaryFnOnce for DecodeRun<'_, S, L> {
    type Output = Result<()>;

    #[inline(always)]
    fn call(self) -> Result<()> {
        for (tile, out) in (self.first..).zip(self.out.chunks_mut(TILE)) {
            if self.part.is_some_and(|part| !part.touches_run(tile * TILE..tile * TILE + out.len())) {
                continue;
            }
            let (bytes, len) = self.ends.tile(tile);
            decode::tile(bytes, len, self.words, self.level, out)
                .map_err(|why| Error::corrupt("szx payload", format!("tile {tile}: {why}")))?;
        }
        Ok(())
    }
}

fn decode_run<S: Scalar>(
    ends: &Ends<'_>,
    first: usize,
    words: Words<S>,
    part: Option<&Part>,
    out: &mut [S],
) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return v4.vectorize(DecodeRun { ends, first, words, part, level: *v4, out });
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return v3.vectorize(DecodeRun { ends, first, words, part, level: v3, out });
        }
    }
    DecodeRun { ends, first, words, part, level: Portable, out }.call()
}

/// Decodes a payload of one tile, whole words long.
#[cfg(feature = "testing")]
pub(super) fn decode_tile<S: Scalar>(payload: &[u8], words: Words<S>, out: &mut [S]) -> Result<()> {
    let end = (payload.len() as u32 / 4).to_le_bytes();
    decode_run(&Ends::new(TABLE, &end, payload, 1)?, 0, words, None, out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bound::Tolerance;

    /// Encodes and decodes with every level that this machine has.
    pub(in super::super) fn every_level_gives_the_same<S: Scalar>(values: &[S], used: Tolerance) {
        let plan = ChunkRule::new(used.into(), None);
        let mut want = Vec::new();
        let lens = EncodeRun { values, plan: &plan, level: Portable, out: &mut want }.call().unwrap();
        let mut got = Vec::new();
        assert_eq!(encode_run(values, &plan, &mut got).as_ref(), Ok(&lens));
        assert_eq!(got, want);
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            got.clear();
            v3.vectorize(EncodeRun { values, plan: &plan, level: v3, out: &mut got }).unwrap();
            assert_eq!(got, want);
        }
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let table: Vec<u8> = ends.flat_map(u32::to_le_bytes).collect();
        let ends = Ends::new(TABLE, &table, &want, lens.len()).unwrap();
        let words = Words::new(matches!(used, Tolerance::PointwiseRelative(_)), used.value());
        let mut portable = vec![S::ZERO; values.len()];
        DecodeRun { ends: &ends, first: 0, words, part: None, level: Portable, out: &mut portable }.call().unwrap();
        let mut out = vec![S::ZERO; values.len()];
        decode_run(&ends, 0, words, None, &mut out).unwrap();
        assert!(out.iter().zip(&portable).all(|(a, b)| a.bits() == b.bits()));
    }
}
