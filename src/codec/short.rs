// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec keeps a chunk of integers of 1 or 2 bytes.
//!
//! ```text
//! candidates   planes   predicts each value from its neighbours: pictures, reliefs, signals, packed fields
//!              bytes    finds what repeats: masks, sparse counts, noise of few values
//! sample       of planes tiles, as in sample.rs; of bytes as many values in as many runs. All of a small chunk
//! rule         planes where it is asked for by name, or where its frame of the sample is at most as long. Where either
//!              makes the sample 64 times smaller, its few bytes say little, and both are quick: the chunk goes to both
//! ```

use super::chunk::Chunk;
use super::sample::{LOSSLESS, Looked, Sample};
use super::{bytes, planes};
use crate::error::Result;
use crate::memory;
use crate::params::{Codec, Params, Request};

/// Runs of values that `bytes` is tried on.
const RUNS: usize = 16;
/// Values that a chunk has at least where not all of it is the sample.
const WHOLE: usize = 1 << 17;
/// How many times smaller a sample says little.
const LITTLE: usize = 64;

/// Encodes the chunk by the better of the two. False: it is better stored.
pub(super) fn encode(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let asked = chunk.params.request.codec;
    let params = Params { request: Request::default(), ..*chunk.params };
    let chunk = Chunk { params: &params, ..*chunk };
    if asked == Codec::Planes {
        return (planes::CODEC.encode)(&chunk, out);
    }
    let values = chunk.raw.len() / usize::from(params.dtype.size);
    let sample = Sample::new(&params, Looked::AtAll).filter(|_| values >= WHOLE);
    let sample = sample.as_ref().and_then(|sample| Some((sample, sample.of[LOSSLESS]?)));
    match sample.map(|(sample, stack)| is_predictable(&chunk, sample, stack)).transpose()?.flatten() {
        Some(true) => (planes::CODEC.encode)(&chunk, out),
        Some(false) => (bytes::CODEC.encode)(&chunk, out),
        None => {
            let mut other = Vec::new();
            let repeating = (bytes::CODEC.encode)(&chunk, &mut other)?;
            let coded = (planes::CODEC.encode)(&chunk, out)?;
            if repeating && !(coded && out.len() <= other.len()) {
                *out = other;
            }
            Ok(coded || repeating)
        }
    }
}

/// Whether `planes` makes the sample at most as long as `bytes` does; `None`: it says little.
fn is_predictable(chunk: &Chunk<'_>, sample: &Sample, stack: usize) -> Result<Option<bool>> {
    let (raw, size) = (chunk.raw, usize::from(chunk.params.dtype.size));
    let len = sample.stacks[stack].len() * size;
    let mut values = memory::zeros(len)?;
    sample.stacks[stack].gather(raw, size, &mut values);
    let Some(params) = sample.params(chunk.params, LOSSLESS, chunk.params.request) else { return Ok(Some(false)) };
    let (mut tiles, mut runs) = (Vec::new(), Vec::new());
    if !(planes::CODEC.encode)(&Chunk { params: &params, raw: &values, ..*chunk }, &mut tiles)? {
        return Ok(Some(false));
    }
    let run = len / RUNS / size * size;
    for (k, to) in values.chunks_exact_mut(run).enumerate().take(RUNS) {
        let at = (raw.len() - run) / (RUNS - 1) * k / size * size;
        to.copy_from_slice(&raw[at..at + run]);
    }
    (bytes::CODEC.encode)(&Chunk { raw: &values[..RUNS * run], ..*chunk }, &mut runs)?;
    let says_much = tiles.len().min(runs.len()) > len / LITTLE;
    Ok(says_much.then_some(tiles.len() <= runs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec_id::CodecId;
    use crate::params::{Class, Dtype};
    use crate::{DecodeJob, EncodeJob, Engine, frame};

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
            let mut out = [Vec::new()];
            Engine::with_threads(threads).encode_batch(&[EncodeJob { params: &params, raw: &raw }], &mut out);
            let mut back = vec![0xA5; raw.len()];
            let mut jobs = [DecodeJob { frame: &out[0], out: &mut back }];
            Engine::with_threads(threads).decode_batch(&mut jobs).remove(0).unwrap();
            assert_eq!(back, raw, "{dtype:?} {dims:?}");
            let [out] = out;
            out
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
    fn what_neighbours_predict_goes_to_planes_and_what_repeats_to_bytes() {
        let smooth = |i: usize| ((i % 1024) as f64 * 0.01).sin() * 8000.0 + (i / 1024) as f64 * 7.0;
        for dims in [&[512u64, 1024][..], &[8, 64, 1024], &[1 << 19]] {
            let dtype = integer(2, true, false);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| smooth(i) as i64 + hash(i) % 16), CodecId::PLANES);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| hash(i % 5000) % 20_000), CodecId::BYTES);
        }
    }
}
