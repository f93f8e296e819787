// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec encodes a chunk under a bound where the user leaves it to the writer (C = 0).
//!
//! ```text
//! candidates   lossless  planes without a bound
//!              fast      planes; under a pointwise relative bound szx
//!              lorenzo
//! sample       sample.rs: small chunks made of a chunk's values, one for each candidate; of a small chunk all of it. A
//!              first one, of an eighth of a chunk of 64 Ki values; a larger one where the first leaves less than 1/48
//!              of the chunk, less than 1/16 by another than lorenzo, where both are about as long, or where few
//!              numbers differ
//! length       of the frame that the candidate makes of its sample under the bound used on the whole chunk, and what
//!              the chunk would take so
//! rule         lossless where it is at most as long as fast, and at most 1.15 times as long as lorenzo;
//!              fast where it is at most 1.15 times as long as lorenzo, for it is several times as fast;
//!              else lorenzo. By a sample 1.1 times: the chunk is within 1.15 then
//! exactly      where numbers are multiples of a unit of two bounds or more, or few, the bound may say more of them
//!              than there is: if what was taken is 1.02 times as long as lorenzo makes the multiples, or 1.12 times as
//!              long as by a dictionary, the chunk loses nothing, by what exact.rs chooses. Only the CPU can. A
//!              dictionary is tried on the larger sample alone, for it grows with the numbers that were not seen, and
//!              where what was taken is 1.1 times as long as an estimate by some 512 to 2048 numbers
//! ```
//!
//! Lengths are those of whole frames, which every backend makes alike: so is the choice. The sample's own range would
//! miss bursts, which make a relative bound a wide one everywhere else: so the bound is the chunk's. What no candidate
//! makes smaller than the raw bytes is stored.

use super::chunk::Chunk;
use super::kept::{Inner, Kept, Scale, Way};
use super::planes::Value;
use super::sample::{FAST, LORENZO, LOSSLESS, Looked, Sample};
use super::scaled::Found;
use super::{exact, scaled};
use crate::bound::Used;
use crate::error::Result;
use crate::frame::STORED_HEADER;
use crate::params::{Bound, Codec, Mode, Params, Request};
use crate::{memory, parallel};

/// In hundredths: how much longer than lorenzo's the others may be where all of the chunk was encoded, and where a
/// sample was, which may be wrong by some hundredths.
const GAIN: u128 = 115;
const SAMPLED_GAIN: u128 = 110;
/// In hundredths of lorenzo's, lengths of the best of the others by which a first sample says too little: lorenzo's
/// predictions reach across seams, planes' tiles mostly do not. Seams alone make 105 out of 123.
const NEAR_TIE: std::ops::Range<u128> = 90..SAMPLED_GAIN;
/// Chunks of which less than this part is left need a larger sample: a few places make the length. So do those of which
/// lorenzo is not taken already where less than `SMOOTH` is left: it interpolates them, which a seam interrupts.
const THIN: u128 = 48;
const SMOOTH: u128 = 16;
/// What tiles of planes are filled up with at the chunk's border takes this part of what as many values do.
const FILLING: u128 = 4;
/// Bytes of a frame before a codec's first section, about.
const FRAME_BYTES: u64 = 100;
/// A unit and few distinct values are looked for if planes without a bound takes less than twice the bytes that the
/// bound leaves: coding them exactly never saves more.
const NEAR_LOSSLESS: u128 = 2;
/// They are not looked for where less than this part of a chunk is left: of constant chunks a dictionary's frame is no
/// shorter, of others it would save next to nothing of the file.
const SHORT: u128 = 512;

/// As [`GAIN`], over multiples of a unit, which lose nothing, and over a dictionary, which is slow to write.
const UNIT_GAIN: u128 = 102;
const DICTIONARY_GAIN: u128 = 112;
/// In hundredths: how much longer than a dictionary's estimate what was taken is where a dictionary is tried, which
/// mostly takes more.
const FEW_GAIN: u128 = 110;

/// What is asked where numbers are shorter without loss.
pub const BY_CHOICE: Request = Request { codec: Codec::Auto, bound: Bound::Lossless };

/// What each candidate is asked where this is asked of the writer.
pub fn requests(asked: Request) -> [Request; 3] {
    let bound = asked.bound;
    let fast = if bound.mode() == Mode::PointwiseRelative { Codec::Szx } else { Codec::Planes };
    let mut all = [Request { codec: Codec::Lorenzo, bound }; 3];
    all[LOSSLESS] = Request { codec: Codec::Planes, bound: Bound::Lossless };
    all[FAST] = Request { codec: fast, bound };
    all
}

/// The candidate that was taken.
pub struct Taken {
    pub candidate: usize,
    /// Bytes that the chunk takes so.
    len: u128,
    /// Whether a unit or a dictionary may be shorter.
    pub is_near_lossless: bool,
}

/// The rule, by the lengths of the candidates' frames of a sample, of a chunk of `values` values in `raw_len` bytes.
/// `None`: the sample does not do, and there is more to look at.
pub fn take(sample: &Sample, lens: [u64; 3], values: usize, raw_len: usize) -> Option<Taken> {
    let lens = [0, 1, 2].map(|k| whole(sample, k, lens[k], values, raw_len));
    let [lossless, fast, lorenzo] = [LOSSLESS, FAST, LORENZO].map(|k| lens[k]);
    let gain = gain(sample);
    let candidate = match () {
        () if lossless <= fast && 100 * lossless <= gain * lorenzo => LOSSLESS,
        () if 100 * fast <= gain * lorenzo => FAST,
        () => LORENZO,
    };
    let len = lens[candidate];
    let is_tie = NEAR_TIE.contains(&(100 * fast.min(lossless) / lorenzo));
    let part = if candidate == LORENZO { THIN } else { SMOOTH };
    let enough = len >= raw_len as u128 / part && !is_tie;
    let is_short = len < raw_len as u128 / SHORT;
    let is_near_lossless = lossless < NEAR_LOSSLESS * (raw_len / values) as u128 * len && !is_short;
    (sample.is_all || enough).then_some(Taken { candidate, len, is_near_lossless })
}

/// Length of the chunk's frame by candidate `k`, extrapolated from `len`, the length of its sample's frame.
fn whole(sample: &Sample, k: usize, len: u64, values: usize, raw_len: usize) -> u128 {
    let (raw, seen) = (u128::from(FRAME_BYTES) + raw_len as u128, sample.len(k, values));
    // What is stored instead.
    if len >= (seen * (raw_len / values) + STORED_HEADER) as u64 {
        return raw;
    }
    let len = u128::from(len.saturating_sub(FRAME_BYTES)) * values as u128 / seen as u128;
    (u128::from(FRAME_BYTES) + len + len * sample.filling(k) as u128 / (FILLING * values as u128)).min(raw)
}

fn gain(sample: &Sample) -> u128 {
    if sample.stacks.is_empty() { GAIN } else { SAMPLED_GAIN }
}

/// What a look at some numbers says of coding a chunk without loss.
pub enum Exact {
    /// It is no shorter.
    Longer,
    /// Few of the numbers differ: a larger sample says more.
    Perhaps,
    /// It may be shorter.
    Try(Trial),
}

/// Whether a chunk may be shorter without loss than by the candidate that was taken, because its numbers are multiples
/// of a unit of two bounds or more, or few: by `numbers`, [`runs`](scaled::runs) of the lossless candidate's sample.
pub fn look_exactly(
    params: &Params,
    numbers: &[u8],
    raw_len: usize,
    used: Used,
    sample: &Sample,
    taken: &Taken,
) -> Exact {
    if !exact::is_open(&Params { request: BY_CHOICE, ..*params }, raw_len) {
        return Exact::Longer;
    }
    let found = scaled::find(params, numbers);
    let is_wide = |scale: &Scale| matches!(used, Used::Absolute(bound) if scale.step() >= 2.0 * bound);
    let unit = found.multiples.filter(is_wide);
    let size = usize::from(params.dtype.size);
    let most = u64::try_from(100 * taken.len / FEW_GAIN).unwrap_or(u64::MAX);
    match unit.is_none() && !found.is_few((raw_len / size) as u64, size as u64, most) {
        true => Exact::Longer,
        false if unit.is_none() && !sample.is_all => Exact::Perhaps,
        false => Exact::Try(Trial { found, unit }),
    }
}

/// How a chunk may be shorter without loss.
pub struct Trial {
    found: Found,
    /// `None`: by a dictionary.
    unit: Option<Scale>,
}

impl Trial {
    /// Whether it is, by that sample, which `chunk` has.
    pub fn is_shorter(&self, chunk: &Chunk<'_>, raw_len: usize, sample: &Sample, taken: &Taken) -> Result<bool> {
        let Some(stacked) = sample.params(chunk.params, LOSSLESS, BY_CHOICE) else { return Ok(false) };
        let (chunk, values) = (Chunk { params: &stacked, ..*chunk }, raw_len / usize::from(stacked.dtype.size));
        let (len, gain) = match self.unit {
            Some(scale) => {
                let (way, mut frame) = (Way { scale, order: 0, inner: Inner::Lorenzo }, Vec::new());
                let coded = exact::encode_as(&chunk, &Kept::Scaled(way), &mut frame)?;
                (coded.then_some(frame.len() as u64), UNIT_GAIN)
            }
            None => (exact::len_by_dictionary(&chunk, &self.found, values as u64)?, DICTIONARY_GAIN),
        };
        let whole = len.map(|len| whole(sample, LORENZO, len, values, raw_len));
        Ok(whole.is_some_and(|whole| gain * whole <= 100 * taken.len))
    }
}

/// Appends a chunk's frame by the codec that its request names. False: it is to be stored.
pub(super) type Encode = fn(&Chunk<'_>, &mut Vec<u8>) -> Result<bool>;

/// The request that a chunk's encoder gets, and the bound used; one of the candidates' unless it `is_open` whether
/// anything is lost.
pub(super) fn choose_request<S: Value>(chunk: &Chunk<'_>, encode: Encode, is_open: bool) -> Result<(Request, Used)> {
    let used = chunk.used::<S>()?;
    let requests = requests(chunk.params.request);
    for looked in Looked::EACH {
        let Some(sample) = Sample::new(chunk.params, looked) else { break };
        let lens = sample_lens(chunk, used, &sample, &requests, encode)?;
        let raw_len = chunk.raw.len();
        if let Some(taken) = take(&sample, lens, raw_len / S::SIZE, raw_len) {
            let chosen = Ok((requests[taken.candidate], used));
            if !is_open || !taken.is_near_lossless {
                return chosen;
            }
            let seen = sample.gather(LOSSLESS, chunk.raw, S::SIZE)?;
            let chunk = Chunk { raw: &seen, ..*chunk };
            let numbers = scaled::looked_at(&seen, S::SIZE);
            match look_exactly(chunk.params, &numbers, raw_len, used, &sample, &taken) {
                Exact::Longer => return chosen,
                Exact::Try(trial) if trial.is_shorter(&chunk, raw_len, &sample, &taken)? => {
                    return Ok((BY_CHOICE, used));
                }
                Exact::Try(_) => return chosen,
                Exact::Perhaps => {}
            }
        }
    }
    Ok((requests[LORENZO], used))
}

/// Lengths of the candidates' frames.
fn sample_lens(
    chunk: &Chunk<'_>,
    used: Used,
    sample: &Sample,
    requests: &[Request; 3],
    encode: Encode,
) -> Result<[u64; 3]> {
    let Chunk { params, raw, threads, .. } = *chunk;
    let size = usize::from(params.dtype.size);
    let stacks = parallel::try_map(sample.stacks.len(), threads, |k| {
        let stack = &sample.stacks[k];
        let mut values = memory::zeros(stack.len() * size)?;
        stack.gather(raw, size, &mut values);
        Ok(values)
    })?;
    let inner = threads.div_ceil(requests.len());
    let lens = parallel::try_map(requests.len(), threads, |k| {
        let raw = sample.of[k].map_or(raw, |stack| &stacks[stack]);
        let Some(params) = sample.params(params, k, requests[k]) else { return Ok(u64::MAX) };
        let chunk = Chunk { params: &params, raw, threads: inner, used: Some(used), kept: None };
        let mut frame = Vec::new();
        Ok(if encode(&chunk, &mut frame)? { frame.len() as u64 } else { u64::MAX })
    })?;
    Ok(lens.try_into().expect("one for each"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::params::Dtype;

    /// The value at a place.
    type Field = fn(usize) -> f32;

    const BOUNDS: [Bound; 4] =
        [Bound::Absolute(1e-3), Bound::Relative(1e-3), Bound::Psnr(60.0), Bound::PointwiseRelative(1e-3)];

    fn params(dims: &[u64], dtype: Dtype, bound: Bound) -> Params {
        Params::new(Request { codec: Codec::Auto, bound }, dtype, dims).unwrap()
    }

    fn chunk<'a>(params: &'a Params, raw: &'a [u8], threads: usize) -> Chunk<'a> {
        Chunk { params, raw, threads, used: None, kept: None }
    }

    fn bytes(n: usize, f: impl Fn(usize) -> f32) -> Vec<u8> {
        (0..n).flat_map(|i| f(i).to_le_bytes()).collect()
    }

    /// The request that values get, whatever number of threads there are.
    fn chosen(dims: &[u64], bound: Bound, f: impl Fn(usize) -> f32) -> (Codec, Mode) {
        let params = params(dims, Dtype::F32, bound);
        let raw = bytes(dims.iter().product::<u64>() as usize, f);
        let settled = [1, 3].map(|threads| codec::settle_request(&chunk(&params, &raw, threads)).unwrap());
        assert_eq!(settled[0], settled[1]);
        let request = settled[0].0.request;
        let lossless = Request { codec: Codec::Planes, bound: Bound::Lossless };
        assert!(request.check().is_ok() && (request.bound == bound || [lossless, BY_CHOICE].contains(&request)));
        (request.codec, request.bound.mode())
    }

    /// The lossless candidate.
    const EXACT: (Codec, Mode) = (Codec::Planes, Mode::Lossless);

    fn frame(params: &Params, raw: &[u8]) -> Vec<u8> {
        let (params, used) = codec::settle_request(&chunk(params, raw, 1)).unwrap();
        let chunk = Chunk { used, ..chunk(&params, raw, 3) };
        let mut out = Vec::new();
        if codec::encode(&chunk, &mut out) != Ok(true) {
            codec::store(&params, raw, 1, &mut out).unwrap();
        }
        out
    }

    fn noise(i: usize) -> f32 {
        let h = (i as u32).wrapping_mul(0x9e37_79b9);
        (h ^ h >> 15).wrapping_mul(0x85eb_ca6b) as f32 / u32::MAX as f32
    }

    fn wave(i: usize) -> f32 {
        ((i % 128) as f32 * 0.05).sin() + ((i / 128) as f32 * 0.03).cos()
    }

    #[test]
    fn smooth_fields_are_lorenzo_s_and_noise_is_planes() {
        for rows in [512, 2048] {
            let dims = [rows, 128];
            for bound in BOUNDS {
                let mode = bound.mode();
                assert_eq!(chosen(&dims, bound, |i| 3.0 + wave(i)), (Codec::Lorenzo, mode), "{dims:?} {bound:?}");
                let of_noise = chosen(&dims, bound, |i| 1.0 + noise(i));
                match mode {
                    Mode::PointwiseRelative => assert!([Codec::Szx, Codec::Lorenzo].contains(&of_noise.0)),
                    _ => assert_eq!(of_noise, (Codec::Planes, mode), "{dims:?} {bound:?}"),
                }
            }
        }
    }

    #[test]
    fn what_is_as_small_without_loss_loses_nothing() {
        for rows in [64, 512, 2048] {
            for bound in [Bound::Absolute(1e-4), Bound::Relative(1e-6), Bound::PointwiseRelative(1e-6)] {
                let counts = |i: usize| (noise(i) * 256.0).floor() + 1.0;
                assert_eq!(chosen(&[rows, 128], bound, counts).1, Mode::Lossless, "{rows} {bound:?}");
            }
            // No step of planes is usable.
            assert_eq!(chosen(&[rows, 128], Bound::Absolute(5e-324), noise), EXACT, "{rows}");
        }
    }

    /// Chunks of all sizes, half of which is missing, constant or quite another thing.
    #[test]
    fn no_other_codec_would_have_been_smaller_by_a_third() {
        let all: [(&str, Field); 8] = [
            ("wave", wave),
            ("noise", noise),
            ("masked", |i| if i / 700 % 3 == 0 { f32::NAN } else { wave(i) }),
            ("spikes", |i| if i % 997 == 0 { 1e6 * noise(i) } else { wave(i) }),
            ("steps", |i| (wave(i) * 3.0).round()),
            ("halves", |i| if i / 128 % 64 < 32 { 0.0 } else { wave(i) + noise(i) * 0.01 }),
            ("huge", |i| f32::from_bits((noise(i) * 4e9) as u32)),
            ("packed", |i| (wave(i) * 100.0).round() * 0.01),
        ];
        let of_lossy = [Codec::Szx, Codec::Lorenzo, Codec::Planes];
        for dims in [&[300][..], &[33, 70], &[6, 40, 50], &[1100, 3], &[200, 400], &[40, 70, 90], &[2, 3, 50, 40, 4]] {
            for (name, f) in all {
                let raw = bytes(dims.iter().product::<u64>() as usize, f);
                for bound in [1e-2, 1e-5].map(Bound::Absolute).into_iter().chain(BOUNDS) {
                    let auto = params(dims, Dtype::F32, bound);
                    let asked = |codec, bound| Params { request: Request { codec, bound }, ..auto };
                    let lossy = of_lossy.map(|codec| asked(codec, bound));
                    let lossy = lossy.into_iter().filter(|p| p.request.check().is_ok());
                    let lossless = [Codec::Planes, Codec::Ndzip].map(|codec| asked(codec, Bound::Lossless));
                    let best = lossy.chain(lossless).map(|p| frame(&p, &raw).len()).min().unwrap();
                    let got = frame(&auto, &raw).len();
                    // Where hardly anything is left, a sample says less.
                    let most = if best < raw.len() / 128 { 2 * best } else { 3 * best / 2 };
                    assert!(got <= most, "{name} {dims:?} {bound:?}: {got}, best {best}");
                }
            }
        }
    }

    /// Values on a grid of hundredths, smooth and rough ones, under bounds on either side of half of that.
    #[test]
    fn a_bound_finer_than_the_unit_loses_nothing_where_that_is_shorter() {
        let all: [(&str, Field); 2] =
            [("wave", |i| (wave(i) * 100.0).round()), ("noise", |i| (noise(i) * 100.0).floor())];
        for (name, f) in all {
            for dims in [&[64, 128][..], &[512, 128], &[24, 64, 128]] {
                let n = dims.iter().product::<u64>() as usize;
                let raw = [
                    (0..n).flat_map(|i| (f64::from(f(i)) / 100.0).to_le_bytes()).collect(),
                    bytes(n, |i| (f64::from(f(i)) / 100.0) as f32),
                ];
                for (dtype, raw) in [Dtype::F64, Dtype::F32].into_iter().zip(&raw) {
                    for (bound, is_exact) in [(1e-6, true), (0.02, false)] {
                        let auto = params(dims, dtype, Bound::Absolute(bound));
                        let (settled, _) = codec::settle_request(&chunk(&auto, raw, 1)).unwrap();
                        assert_eq!(settled.request == BY_CHOICE, is_exact, "{name} {dims:?} {dtype:?} {bound}");
                        let got = frame(&auto, raw).len();
                        for codec in [Codec::Planes, Codec::Lorenzo] {
                            let request = Request { codec, ..auto.request };
                            let other = frame(&Params { request, ..auto }, raw).len();
                            assert!(100 * got <= 115 * other, "{name} {dims:?} {dtype:?} {bound}: {got}, {other}");
                        }
                    }
                }
            }
        }
    }

    /// Neighbours are far apart on a grid of hundredths, of which a bound of 0.004 leaves more bits than there are.
    #[test]
    fn a_unit_of_two_bounds_and_a_half_is_kept() {
        let at = |i: usize| ((17 * i % 4000) as f64 + f64::from((noise(i) * 8.0).floor())) / 100.0;
        for dims in [[64, 128], [512, 128]] {
            let with = |bound| chosen(&dims, Bound::Absolute(bound), |i| at(i) as f32);
            assert_eq!(with(0.004), (Codec::Auto, Mode::Lossless), "{dims:?}");
            assert_eq!(with(0.006).1, Mode::Absolute, "{dims:?}");
        }
    }

    #[test]
    fn a_few_values_are_kept_where_a_bound_tells_them_apart() {
        let few: Vec<f32> = (0..500).map(|i| noise(3 * i + 1)).collect();
        let at = |i: usize| few[(noise(i / 3) * 499.0) as usize];
        for (dims, bound) in [(&[512, 128][..], 1e-7), (&[24, 64, 128], 1e-6)] {
            assert_eq!(chosen(dims, Bound::Absolute(bound), at), (Codec::Auto, Mode::Lossless), "{dims:?} {bound}");
            assert_ne!(chosen(dims, Bound::Absolute(bound), noise).0, Codec::Auto, "{dims:?} {bound}");
        }
    }

    /// There are few distinct 16-bit numbers; a dictionary does not hold f32 in place of them.
    #[test]
    fn halves_are_chosen_among_codecs_that_hold_them() {
        let at = |i: usize| 4.0 * ((i % 512) as f32 * 0.03).sin() + 3.0 * ((i / 512) as f32 * 0.02).cos();
        let raw: Vec<u8> = (0..1 << 18).flat_map(|i| half_of(at(i)).to_le_bytes()).collect();
        let auto = params(&[512, 512], Dtype::F16, Bound::Absolute(1e-4));
        let len = |codec| frame(&Params { request: Request { codec, ..auto.request }, ..auto }, &raw).len();
        assert!(100 * len(Codec::Auto) <= 115 * len(Codec::Planes).min(len(Codec::Lorenzo)));
    }

    /// binary16 of a small number, cut.
    fn half_of(x: f32) -> u16 {
        let (sign, size) = (x.to_bits() >> 31 << 15, x.abs().to_bits());
        (sign | (size >> 13).saturating_sub(112 << 10)) as u16
    }

    #[test]
    fn every_chunk_has_a_codec() {
        let odd = |i: usize| [f32::NAN, f32::INFINITY, -0.0, 1e20, f32::MIN_POSITIVE / 2.0][i % 5];
        for dims in [&[][..], &[1], &[2], &[4097], &[1, 1, 70000], &[40_000, 2], &[9, 9, 9, 9, 15], &[2; 17], &[3; 10]]
        {
            for f in [odd, wave, |_| 0.0, |_| f32::NAN, |_| -7.5] {
                for bound in BOUNDS.into_iter().chain([1e38, 1e308, 1e-30, 5e-324].map(Bound::Absolute)) {
                    chosen(dims, bound, f);
                }
            }
        }
    }

    #[test]
    fn a_burst_outside_the_sample_makes_the_bound() {
        let dims = [600u64, 1000];
        let n = 600_000;
        let calm = |i: usize| (noise(i) * 256.0).floor();
        for bound in [Bound::Relative(1e-4), Bound::Psnr(80.0)] {
            assert_eq!(chosen(&dims, bound, calm), EXACT, "{bound:?}");
            for at in [0, n / 2, n - 1] {
                let burst = |i: usize| if i == at { 1e6 } else { calm(i) };
                let wide = Bound::Absolute(100.0);
                assert_eq!(chosen(&dims, bound, burst).0, chosen(&dims, wide, burst).0, "{bound:?}, value {at}");
                assert_ne!(chosen(&dims, bound, burst), EXACT, "{bound:?}, value {at}");
            }
        }
    }

    #[test]
    fn frames_are_what_the_chosen_codec_writes_alone() {
        let fields: [(f64, Field); 3] = [(1e-3, wave), (1e-3, noise), (1e-6, |i| (noise(i) * 256.0).floor())];
        let codecs = fields.map(|(r, f)| {
            let raw = bytes(2048 * 128, f);
            let auto = params(&[2048, 128], Dtype::F32, Bound::Relative(r));
            let request = codec::settle_request(&chunk(&auto, &raw, 2)).unwrap().0.request;
            assert_eq!(frame(&auto, &raw), frame(&Params { request, ..auto }, &raw));
            (request.codec, request.bound.mode())
        });
        assert_eq!(codecs, [(Codec::Lorenzo, Mode::Relative), (Codec::Planes, Mode::Relative), EXACT]);
    }

    #[test]
    fn the_choice_is_the_same_in_either_byte_order_and_anywhere_in_memory() {
        let values: Vec<f64> =
            (0..1usize << 16).map(|i| f64::from(i as u32 % 256) * 0.01 + f64::from(noise(i))).collect();
        for dims in [&[64, 64][..], &[256, 256], &[16384, 4]] {
            let values = &values[..dims.iter().product::<u64>() as usize];
            for b in [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0] {
                let mut params = params(dims, Dtype::F64, Bound::Absolute(b));
                let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let little = choose_request::<f64>(&chunk(&params, &raw, 1), codec::encode, true);
                let mut shifted = vec![0];
                shifted.extend(&raw);
                assert_eq!(choose_request::<f64>(&chunk(&params, &shifted[1..], 2), codec::encode, true), little);
                params.dtype.big_endian = true;
                let raw: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                assert_eq!(choose_request::<f64>(&chunk(&params, &raw, 1), codec::encode, true), little);
            }
        }
    }
}
