// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec keeps a chunk of integers of 1 or 2 bytes.
//!
//! ```text
//! candidates   planes   predicts each value from its neighbours: pictures, reliefs, signals, packed fields
//!              lorenzo  does so too, with an entropy coder behind
//!              bytes    finds what repeats: masks, labels
//! sample       of planes and lorenzo tiles, as in sample.rs; of bytes as many values in as many runs. All of a small
//!              chunk
//! rule         planes where it is asked for by name. Else the one whose frame of the sample is shortest; lorenzo,
//!              half as fast as planes, has to be shorter by 1/32. Where one makes the sample 64 times smaller, its few
//!              bytes say little, and all are quick: the chunk goes to all. What bytes does not make 4 times smaller
//!              goes to planes too, unless planes makes its sample longer
//! ```

use super::chunk::Chunk;
use super::kept::Kept;
use super::look::{Chosen, Look};
use super::lorenzo::integers;
use super::sample::{LORENZO, LOSSLESS, Looked, Sample, Stack};
use super::{bytes, planes};
use crate::constants::LORENZO_TILE;
use crate::error::Result;
use crate::memory;
use crate::params::{Codec, Params, Request};

/// Runs of values that `bytes` is tried on.
const SAMPLE_RUNS: usize = 16;
/// Of a small chunk they are an eighth, or a tile's values: what repeats takes most of the time of choosing.
const PART_OF_RUNS: usize = 8;
/// A chunk may take less by planes than its sample says, by this part.
const SAMPLED_PLANES: usize = 8;
/// Values that a chunk has at least where not all of it is the sample.
const SMALL_CHUNK_VALUES: usize = 1 << 16;
/// Bytes of a frame that do not grow with the chunk, about.
const FRAME_BYTES: usize = 80;
/// How many times smaller a sample says little.
const LITTLE: usize = 64;
/// What bytes makes this many times smaller is not compared with planes.
const SURE: usize = 4;

/// The candidates, and what a byte of their frames counts.
const ALL: [(Kept, usize); 3] = [(Kept::Planes, 32), (Kept::Lorenzo, 33), (Kept::Bytes, 32)];

/// Whether the writer must choose a lossless codec for this chunk of `raw_len` bytes.
pub(crate) fn is_open(params: &Params, raw_len: usize) -> bool {
    params.dtype.is_short() && params.fits(raw_len) && params.request.codec != Codec::Planes
}

/// Chooses how a chunk is coded without loss.
pub(crate) fn choose(chunk: &Chunk<'_>) -> Result<Kept> {
    let sampled = Sampled::new(chunk.params, chunk.raw.len());
    let Some(sampled) = sampled.filter(|_| chunk.params.request.codec != Codec::Small) else {
        return Ok(Kept::Shortest);
    };
    let seen = sampled.gather(chunk.raw, chunk.params.dtype.size.into())?;
    sampled.choose(chunk.params, &seen, chunk.threads)
}

/// Encodes the chunk. False: it is better stored.
pub(super) fn encode(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let known = chunk.kept.or(Kept::settled(chunk.params));
    let kept = if let Some(kept) = known { kept } else { choose(chunk)? };
    let coded = encode_as(chunk, kept, out)?;
    let len = if coded { out.len() } else { chunk.raw.len() };
    if kept != Kept::Bytes
        || len < chunk.raw.len() / SURE
        || planes_len(chunk)?.is_some_and(|planes| planes > len + len / SAMPLED_PLANES)
    {
        return Ok(coded);
    }
    // A few runs may repeat more than the chunk.
    let mut planes = Vec::new();
    if encode_as(chunk, Kept::Planes, &mut planes)? && !(coded && out.len() <= planes.len()) {
        *out = planes;
        return Ok(true);
    }
    Ok(coded)
}

/// Bytes that planes takes of a chunk, by its sample. `None`: the chunk is small.
fn planes_len(chunk: &Chunk<'_>) -> Result<Option<usize>> {
    let (params, size) = (chunk.params, usize::from(chunk.params.dtype.size));
    let Some(Sampled { sample, .. }) = Sampled::new(params, chunk.raw.len()) else { return Ok(None) };
    let Some((stack, of_stack)) =
        sample.of[LOSSLESS].map(|k| &sample.stacks[k]).zip(sample.params(params, LOSSLESS, params.request))
    else {
        return Ok(None);
    };
    let mut seen = memory::zeros(stack.len() * size)?;
    stack.gather(chunk.raw, size, &mut seen);
    let len = encoded_len(&Chunk { params: &of_stack, raw: &seen, ..*chunk }, Kept::Planes)?;
    Ok(Some((len as u128 * chunk.raw.len() as u128 / seen.len() as u128) as usize))
}

/// Bytes that a sample takes so: of `bytes`, which is slow, as a part of it says.
fn encoded_len(sample: &Chunk<'_>, kept: Kept) -> Result<usize> {
    if kept == Kept::Bytes {
        return Ok(bytes::len(sample.raw, sample.params.dtype.size, 0)? as usize + FRAME_BYTES);
    }
    if kept == Kept::Lorenzo {
        return Ok(integers::frame_len(sample, None)?.unwrap_or(sample.raw.len()));
    }
    let mut frame = Vec::new();
    Ok(if encode_as(sample, kept, &mut frame)? { frame.len() } else { sample.raw.len() })
}

fn encode_as(chunk: &Chunk<'_>, kept: Kept, out: &mut Vec<u8>) -> Result<bool> {
    let is_small = chunk.params.request.codec == Codec::Small;
    let params = Params { request: Request::default(), ..*chunk.params };
    let chunk = Chunk { params: &params, ..*chunk };
    match kept {
        Kept::Planes => return planes::ENCODE(&chunk, out),
        Kept::Lorenzo => return integers::encode(&chunk, None, out),
        Kept::Bytes => return bytes::ENCODE(&chunk, out),
        Kept::Shortest | Kept::Scaled(_) => {}
    }
    let (mut least, mut other) = (None, Vec::new());
    for (kept, weight) in ALL {
        let weight = if is_small { 1 } else { weight };
        if encode_as(&chunk, kept, &mut other)? && least.is_none_or(|least| other.len() * weight < least) {
            least = Some(other.len() * weight);
            std::mem::swap(out, &mut other);
        }
    }
    Ok(least.is_some())
}

/// What is looked at of a chunk.
pub(crate) struct Sampled {
    sample: Sample,
    /// Values of a run, and where each begins.
    run: usize,
    starts: Vec<usize>,
}

impl Sampled {
    /// `None`: the chunk is small.
    pub(crate) fn new(params: &Params, raw_len: usize) -> Option<Sampled> {
        let size = usize::from(params.dtype.size);
        let values = raw_len / size;
        let params = Params { request: Request::default(), ..*params };
        let sample = Sample::new(&params, Looked::WithoutLoss)
            .filter(|s| values >= SMALL_CHUNK_VALUES && !s.stacks.is_empty())?;
        let run = sample.len(LOSSLESS, values).min((values / PART_OF_RUNS).max(LORENZO_TILE)) / SAMPLE_RUNS;
        let starts = (0..SAMPLE_RUNS).map(|k| (raw_len - run * size) / (SAMPLE_RUNS - 1) * k / size).collect();
        Some(Sampled { sample, run, starts })
    }
}

impl Look for Sampled {
    fn stacks(&self) -> Vec<&Stack> {
        self.sample.stacks.iter().collect()
    }

    fn runs(&self) -> (usize, &[usize]) {
        (self.run, &self.starts)
    }

    fn choose_with_frame(&self, params: &Params, seen: &[u8], threads: usize) -> Result<Chosen> {
        let (size, sample) = (usize::from(params.dtype.size), &self.sample);
        let raw_len = u128::from(params.extents.count().unwrap_or(0)) * size as u128;
        let (mut best, mut least) = (Kept::Planes, u128::MAX);
        let mut says_much = true;
        for (kept, weight) in ALL {
            let stack = match kept {
                Kept::Planes => sample.of[LOSSLESS].map(|k| (LOSSLESS, k)),
                Kept::Lorenzo => sample.of[LORENZO].map(|k| (LORENZO, k)),
                _ => None,
            };
            let before = |k: usize| sample.stacks[..k].iter().map(|stack| stack.len() * size).sum::<usize>();
            let (of_stack, values) = match stack {
                Some((candidate, k)) => {
                    let values = &seen[before(k)..][..sample.stacks[k].len() * size];
                    (sample.params(params, candidate, params.request), values)
                }
                None => (Some(*params), &seen[before(sample.stacks.len())..]),
            };
            let Some(of_stack) = of_stack else { continue };
            let chunk = Chunk { params: &of_stack, raw: values, threads, used: None, kept: None };
            let len = encoded_len(&chunk, kept)?;
            if len < values.len() {
                says_much &= len > values.len() / LITTLE;
                // As if all had the same sample.
                let cost = (len * weight) as u128 * raw_len / values.len() as u128;
                if cost < least {
                    (best, least) = (kept, cost);
                }
            }
        }
        Ok(if says_much { best } else { Kept::Shortest }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec_id::CodecId;
    use crate::params::{Class, Dtype};
    use crate::{Cpu, frame};

    fn integer(size: u8, signed: bool, big_endian: bool) -> Dtype {
        Dtype { class: Class::Integer, signed, big_endian, ..Dtype::bytes(size) }
    }

    /// The codec that integers get; with one thread and with three the same bytes, which come back.
    fn kept(dtype: Dtype, dims: &[u64], text: &str, value: impl Fn(usize) -> i64) -> CodecId {
        let params = Params { fill: Some(0x81), ..Params::new(text.parse().unwrap(), dtype, dims).unwrap() };
        let number = |i| {
            let mut bytes = value(i).to_le_bytes()[..usize::from(dtype.size)].to_vec();
            if dtype.big_endian {
                bytes.reverse();
            }
            bytes
        };
        let raw: Vec<u8> = (0..dims.iter().product::<u64>() as usize).flat_map(number).collect();
        let [one, three] = [1, 3].map(|threads| {
            let cpu = Cpu::with_threads(threads);
            let (frame, mut back) = (cpu.encode(&params, &raw), vec![0xA5; raw.len()]);
            cpu.decode_into(&frame, &mut back).unwrap();
            assert_eq!(back, raw, "{dtype:?} {dims:?}");
            frame
        });
        assert_eq!(one, three, "{dtype:?} {dims:?}");
        frame::header(&one).unwrap().codec
    }

    fn hash(i: usize) -> i64 {
        (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xD6E8_FEB8_6659_FD93) as i64
            >> 40
    }

    #[test]
    fn every_integer_comes_back_from_every_shape() {
        let all: [&[u64]; 7] =
            [&[300], &[70, 64], &[9, 17, 40], &[60, 70, 3], &[5000, 15], &[2, 3, 16, 40], &[150_000]];
        for (dims, size) in all.into_iter().flat_map(|dims| [(dims, 1), (dims, 2)]) {
            for (signed, big_endian) in [(false, false), (true, false), (true, true), (false, true)] {
                let dtype = integer(size, signed, big_endian);
                for text in ["mode=lossless", "mode=lossless,codec=planes", "mode=abs,bound=1"] {
                    kept(dtype, dims, text, |i| hash(i) >> (i / 1000 % 8));
                    kept(dtype, dims, text, |i| (i as i64 - 40) * 3);
                    kept(dtype, dims, text, |i| i64::from(i % 97 == 0) * 0x81);
                }
            }
        }
    }

    /// A large chunk's codec is that of its sample.
    #[test]
    fn what_neighbours_predict_goes_to_lorenzo_and_what_repeats_to_bytes() {
        let smooth = |i: usize| ((i % 1024) as f64 * 0.01).sin() * 8000.0 + (i / 1024) as f64 * 7.0;
        for dims in [&[512u64, 1024][..], &[8, 64, 1024], &[1 << 19]] {
            let dtype = integer(2, true, false);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| smooth(i) as i64 + hash(i) % 16), CodecId::LORENZO);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| hash(i % 5000) % 20_000), CodecId::BYTES);
        }
    }

    /// Runs at the ends of a signal that is silent there say that it repeats.
    #[test]
    fn what_bytes_makes_longer_after_all_goes_to_planes() {
        let n = 1 << 19;
        let noise = |i: usize| {
            let x = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 52) as i64
        };
        let silent = |i: usize| i < 4096 || i >= n - 4096;
        let signal = |i: usize| if silent(i) { 0 } else { noise(i) };
        assert_eq!(kept(integer(2, true, false), &[n as u64], "mode=lossless", signal), CodecId::PLANES);
    }
}
