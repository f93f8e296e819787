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
//!              bytes say little, and all are quick: the chunk goes to all
//! ```

use super::chunk::Chunk;
use super::lorenzo::integers;
use super::sample::{LORENZO, LOSSLESS, Looked, Sample};
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

/// What encodes a chunk.
type Encode = fn(&Chunk<'_>, &mut Vec<u8>) -> Result<bool>;

/// A candidate, its number in a sample, and what its frame's length counts.
struct Candidate {
    encode: Encode,
    stack: Option<usize>,
    weight: usize,
}

const PLANES: Candidate = Candidate { encode: planes::ENCODE, stack: Some(LOSSLESS), weight: 32 };
const ALL: [Candidate; 3] = [
    PLANES,
    Candidate { encode: |c, out| integers::encode(c, None, out), stack: Some(LORENZO), weight: 33 },
    Candidate { encode: bytes::ENCODE, stack: None, weight: 32 },
];

/// Encodes the chunk by the best of them. False: it is better stored.
pub(super) fn encode(chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let asked = chunk.params.request.codec;
    let params = Params { request: Request::default(), ..*chunk.params };
    let chunk = Chunk { params: &params, ..*chunk };
    if asked == Codec::Planes {
        return (PLANES.encode)(&chunk, out);
    }
    let values = chunk.raw.len() / usize::from(params.dtype.size);
    let sample = Sample::new(&params, Looked::AtAll).filter(|sample| values >= WHOLE && !sample.stacks.is_empty());
    if let Some(best) = sample.map(|sample| by_sample(&chunk, &sample)).transpose()?.flatten() {
        return (best.encode)(&chunk, out);
    }
    let (mut least, mut other) = (None, Vec::new());
    for Candidate { encode, weight, .. } in ALL {
        if encode(&chunk, &mut other)? && least.is_none_or(|least| other.len() * weight < least) {
            least = Some(other.len() * weight);
            std::mem::swap(out, &mut other);
        }
    }
    Ok(least.is_some())
}

/// The candidate that makes the sample shortest; `None`: it says little.
fn by_sample(chunk: &Chunk<'_>, sample: &Sample) -> Result<Option<Candidate>> {
    let (raw, size) = (chunk.raw, usize::from(chunk.params.dtype.size));
    let (mut best, mut least) = (PLANES, u128::MAX);
    let mut says_much = true;
    for candidate in ALL {
        let stack = candidate.stack.and_then(|k| Some((k, &sample.stacks[sample.of[k]?])));
        let len = stack.map_or_else(|| sample.len(LOSSLESS, raw.len() / size), |(_, stack)| stack.len()) * size;
        let mut values = memory::zeros(len)?;
        let mut params = Some(*chunk.params);
        if let Some((k, stack)) = stack {
            stack.gather(raw, size, &mut values);
            params = sample.params(chunk.params, k, chunk.params.request);
        } else {
            let run = len / RUNS / size * size;
            for (k, to) in values.chunks_exact_mut(run).enumerate().take(RUNS) {
                let at = (raw.len() - run) / (RUNS - 1) * k / size * size;
                to.copy_from_slice(&raw[at..at + run]);
            }
            values.truncate(RUNS * run);
        }
        let mut frame = Vec::new();
        let Some(params) = params else { continue };
        if (candidate.encode)(&Chunk { params: &params, raw: &values, ..*chunk }, &mut frame)? {
            says_much &= frame.len() > values.len() / LITTLE;
            // As if all had the same sample.
            let cost = (frame.len() * candidate.weight) as u128 * raw.len() as u128 / values.len() as u128;
            if cost < least {
                (best, least) = (candidate, cost);
            }
        }
    }
    Ok(says_much.then_some(best))
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
    fn what_neighbours_predict_goes_to_lorenzo_and_what_repeats_to_bytes() {
        let smooth = |i: usize| ((i % 1024) as f64 * 0.01).sin() * 8000.0 + (i / 1024) as f64 * 7.0;
        for dims in [&[512u64, 1024][..], &[8, 64, 1024], &[1 << 19]] {
            let dtype = integer(2, true, false);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| smooth(i) as i64 + hash(i) % 16), CodecId::LORENZO);
            assert_eq!(kept(dtype, dims, "mode=lossless", |i| hash(i % 5000) % 20_000), CodecId::BYTES);
        }
    }
}
