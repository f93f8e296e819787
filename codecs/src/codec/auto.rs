// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which codec encodes a chunk under a bound where the user leaves it to the writer (C = 0).
//!
//! ```text
//! candidates   lossless  planes without a bound
//!              fast      planes; under a pointwise relative bound szx
//!              lorenzo
//! finer        lossless is not tried where nearly all numbers need more bits than the bound leaves: trial.rs
//! sample       sample.rs: small chunks made of a chunk's values, one for each candidate. A first one, of an eighth of
//!              a chunk of 64 Ki values. A larger one where the first is next to constant, for it says nothing of the
//!              rest: lossless leaves less than 1/48 of it; and where less than 1/8 is left by another than lorenzo,
//!              and that is shorter than lorenzo by less than 1/10
//! small        of a chunk of at most 32 Ki values lorenzo, which is mostly taken, encodes all at once. All of it is
//!              looked at before another one is taken
//! length       of the frame that the candidate makes of its sample under the bound used on the whole chunk, and what
//!              the chunk would take so
//! rule         lossless where it is at most as long as fast, and at most 1.15 times as long as lorenzo;
//!              fast where it is at most 1.15 times as long as lorenzo, for it is several times as fast;
//!              else lorenzo. By a larger sample 1.1 times, and by a first one of a larger chunk 1.05 times. Seams make
//!              lorenzo longer than it is, the more the less is left: 0.9 times where a first sample leaves less than
//!              1/8, and one that leaves less than 1/48 goes to lorenzo
//! exactly      where the chunk is shorter without loss than by what was taken, nothing is lost: trial.rs
//! ```
//!
//! Lengths are those of whole frames, which every backend makes alike: so is the choice. The sample's own range would
//! miss bursts, which make a relative bound a wide one everywhere else: so the bound is the chunk's. What no candidate
//! makes smaller than the raw bytes is stored.

use super::chunk::Chunk;
use super::kept::Kept;
use super::planes::Value;
pub use super::sample::requests;
use super::sample::{FAST, LORENZO, LOSSLESS, Looked, Sample};
pub use super::trial::{BY_CHOICE, Taken};
use super::{lorenzo, scaled, trial};
use crate::bound::Used;
use crate::error::Result;
use crate::frame::STORED_HEADER;
use crate::parallel;
use crate::params::{Bound, Codec, Request};

/// In hundredths of lorenzo's length: how long the others may be where lorenzo encoded all of the chunk, where a larger
/// sample was, where a first one was, and where that leaves less than `SMOOTH_PART`: lorenzo interpolates it, and seams
/// lengthen it by 5 to 60. Between the latter and lorenzo's a larger sample says more.
const GAIN: u128 = 115;
const SAMPLED_GAIN: u128 = 110;
const FIRST_GAIN: u128 = 105;
const SMOOTH_GAIN: u128 = 90;
const SMOOTH_PART: u128 = 8;
/// Where less than this part of a first sample is left, the seams are most of what lorenzo takes, and lorenzo is taken.
/// Where less is left without loss, the sample is next to constant, and a few places elsewhere make the chunk's length.
const THIN_PART: u128 = 48;
/// A unit and few distinct values are looked for if planes without a bound takes less than twice the bytes that the
/// bound leaves: coding them exactly never saves more. Where that loses it counts as this part of the raw bytes.
const NEAR_LOSSLESS: u128 = 2;
const LOSES_PART: u128 = 2;
/// They are not looked for where less than this part of a chunk is left: of constant chunks a dictionary's frame is no
/// shorter, of others it would save next to nothing of the file.
const SHORT: u128 = 512;

/// What every codec is asked where the shortest frame of all is wanted; what takes longest comes last.
pub(crate) fn everything(asked: Request, is_lossy: bool) -> Vec<Request> {
    let lossy = [Codec::Lorenzo, Codec::Dense, Codec::Planes, Codec::Szx].map(|codec| Request { codec, ..asked });
    let lossy = lossy.into_iter().filter(|request| is_lossy && request.check().is_ok());
    lossy.chain([Codec::Auto, Codec::Small].map(|codec| Request::new(codec, Bound::Lossless))).collect()
}

/// The rule, by the lengths of the candidates' frames of a sample, of a chunk of `values` values in `raw_len` bytes;
/// where it `loses`, lossless is not taken. `None`: the sample does not do, and there is more to look at.
pub fn take(sample: &Sample, lens: [u64; 3], loses: bool, values: usize, raw_len: usize) -> Option<Taken> {
    let [exact, fast, lorenzo] = [LOSSLESS, FAST, LORENZO].map(|k| sample.whole(k, lens[k], values, raw_len));
    let (lossless, exact) = if loses { (u128::MAX, raw_len as u128 / LOSES_PART) } else { (exact, exact) };
    let best = lossless.min(fast);
    let is_less = |len: u128, part: u128| len < raw_len as u128 / part;
    let gain = match sample.is_all {
        true if sample.stacks.is_empty() => GAIN,
        true => SAMPLED_GAIN,
        false if sample.is_of_small() => GAIN,
        false if is_less(lossless, THIN_PART) => return None,
        false if is_less(best, THIN_PART) => 0,
        false if !is_less(best, SMOOTH_PART) => FIRST_GAIN,
        false if (SMOOTH_GAIN * lorenzo..100 * lorenzo).contains(&(100 * best)) => return None,
        false => SMOOTH_GAIN,
    };
    let candidate = match () {
        () if lossless <= fast && 100 * lossless <= gain * lorenzo => LOSSLESS,
        () if 100 * fast <= gain * lorenzo => FAST,
        () => LORENZO,
    };
    if sample.is_of_small() && !sample.is_all && candidate != LORENZO {
        return None;
    }
    let len = [lossless, fast, lorenzo][candidate];
    let is_short = len < raw_len as u128 / SHORT;
    let is_near_lossless = exact < NEAR_LOSSLESS * (raw_len / values) as u128 * len && !is_short;
    Some(Taken { candidate, len, is_near_lossless })
}

/// Appends a chunk's frame by the codec that its request names. False: it is to be stored.
pub(super) type Encode = fn(&Chunk<'_>, &mut Vec<u8>) -> Result<bool>;

/// What was chosen for a chunk.
pub(super) struct Choice {
    /// What the chunk's encoder is asked.
    pub(super) request: Request,
    pub(super) used: Used,
    /// How the chunk is coded without loss, where choosing said that.
    pub(super) kept: Option<Kept>,
    /// The chunk's frame, where choosing made it.
    pub(super) frame: Option<Vec<u8>>,
}

/// Chooses one of the candidates, or unless it `is_open` whether anything is lost, [`BY_CHOICE`].
pub(super) fn choose_request<S: Value>(chunk: &Chunk<'_>, encode: Encode, is_open: bool) -> Result<Choice> {
    let (raw_len, used) = (chunk.raw.len(), chunk.used::<S>()?);
    let requests = requests(chunk.params.request);
    let numbers = scaled::looked_at(chunk.raw, S::SIZE);
    let loses = is_open && trial::loses(chunk.params, &numbers, used);
    let mut known = None;
    for looked in Looked::EACH {
        let Some(sample) = Sample::under_a_bound(chunk.params, looked) else { break };
        let stacks = sample.gather(chunk.raw, S::SIZE, chunk.threads)?;
        let is_tried = [!loses, true, known.is_none()];
        let mut tried = encode_samples(chunk, used, &sample, &stacks, &requests, is_tried, encode)?;
        if let Some(lorenzo) = known.take() {
            tried[LORENZO] = lorenzo;
        }
        let lens = [0, 1, 2].map(|k| tried[k].len);
        let Some(taken) = take(&sample, lens, loses, raw_len / S::SIZE, raw_len) else {
            known = sample.is_of_small().then(|| tried.swap_remove(LORENZO));
            continue;
        };
        let frame = tried.swap_remove(taken.candidate).frame;
        let exactly = match is_open && taken.is_near_lossless {
            true => trial::shorter_exactly(chunk, used, &numbers, sample.for_trial(), &stacks, &taken)?,
            false => None,
        };
        return Ok(match exactly {
            Some(trial::Coded { kept, frame }) => Choice { request: BY_CHOICE, used, kept, frame },
            None => Choice { request: requests[taken.candidate], used, kept: None, frame },
        });
    }
    Ok(Choice { request: requests[LORENZO], used, kept: None, frame: None })
}

/// A candidate's frame of its sample.
struct Tried {
    /// `u64::MAX` where the raw bytes are no longer.
    len: u64,
    /// The frame, where all of the chunk is the sample.
    frame: Option<Vec<u8>>,
}

impl Tried {
    const NONE: Tried = Tried { len: u64::MAX, frame: None };
}

/// What those candidates that are tried make of a sample, whose stacks have these values.
fn encode_samples(
    chunk: &Chunk<'_>,
    used: Used,
    sample: &Sample,
    stacks: &[Vec<u8>],
    requests: &[Request; 3],
    is_tried: [bool; 3],
    encode: Encode,
) -> Result<Vec<Tried>> {
    let Chunk { params, raw, threads, .. } = *chunk;
    let inner = threads.div_ceil(requests.len());
    parallel::try_map(requests.len(), threads, |k| {
        let Some(params) = sample.params(params, k, requests[k]).filter(|_| is_tried[k]) else {
            return Ok(Tried::NONE);
        };
        let raw = sample.of[k].map_or(raw, |stack| &stacks[stack]);
        let chunk = Chunk { params: &params, raw, threads: inner, used: Some(used), kept: None };
        if sample.of[k].is_some() && requests[k].codec == Codec::Lorenzo {
            let len = lorenzo::frame_len(&chunk)?.filter(|&len| len < raw.len() + STORED_HEADER);
            return Ok(Tried { len: len.map_or(u64::MAX, |len| len as u64), frame: None });
        }
        let mut frame = Vec::new();
        if !encode(&chunk, &mut frame)? {
            return Ok(Tried::NONE);
        }
        Ok(Tried { len: frame.len() as u64, frame: sample.of[k].is_none().then_some(frame) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;
    use crate::codec::{self, chunk::Settled};
    use crate::params::{Class, Dtype, Mode, Params};

    /// The value at a place.
    type Field = fn(usize) -> f32;

    const BOUNDS: [Bound; 4] =
        [Bound::Absolute(1e-3), Bound::Relative(1e-3), Bound::Psnr(60.0), Bound::PointwiseRelative(1e-3)];

    fn params(dims: &[u64], dtype: Dtype, bound: Bound) -> Params {
        Params::new(Request::new(Codec::Auto, bound), dtype, dims).unwrap()
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
        let [request, other] =
            settled.map(|settled| (settled.params.request, settled.used, settled.kept, settled.frame));
        assert_eq!(request, other);
        let request = request.0;
        let lossless = Request::new(Codec::Planes, Bound::Lossless);
        assert!(request.check().is_ok() && (request.bound == bound || [lossless, BY_CHOICE].contains(&request)));
        (request.codec, request.bound.mode())
    }

    /// The lossless candidate.
    const EXACT: (Codec, Mode) = (Codec::Planes, Mode::Lossless);

    fn frame(params: &Params, raw: &[u8]) -> Vec<u8> {
        let Settled { params, used, kept, frame } = codec::settle_request(&chunk(params, raw, 1)).unwrap();
        let chunk = Chunk { used, kept, ..chunk(&params, raw, 3) };
        let mut out = Vec::new();
        if codec::encode(&chunk, &mut out) != Ok(true) {
            codec::store(&params, raw, 1, &mut out).unwrap();
        }
        assert!(frame.is_none_or(|frame| frame == out));
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
                    let asked = |codec, bound| Params { request: Request::new(codec, bound), ..auto };
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
                        let settled = codec::settle_request(&chunk(&auto, raw, 1)).unwrap().params;
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

    /// Hardly anything is left of smooth ones under the bound, and less without loss.
    #[test]
    fn whole_numbers_under_a_wide_bound_lose_nothing() {
        for side in [128, 512] {
            let at = |i: usize| ((i / side) as f32 * 0.03).sin() + ((i % side) as f32 * 0.04 + 1.0).sin();
            let dims = [side as u64; 2];
            let chosen = chosen(&dims, Bound::Absolute(0.4), |i| (5.0 * at(i)).round());
            assert_eq!(chosen, (Codec::Auto, Mode::Lossless), "{dims:?}");
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
            let request = codec::settle_request(&chunk(&auto, &raw, 2)).unwrap().params.request;
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
                let chosen = |params: &Params, raw: &[u8], threads: usize| {
                    let choice = choose_request::<f64>(&chunk(params, raw, threads), codec::encode, true).unwrap();
                    (choice.request, choice.used, choice.kept, choice.frame.map(|frame| frame.len()))
                };
                let little = chosen(&params, &raw, 1);
                let mut shifted = vec![0];
                shifted.extend(&raw);
                assert_eq!(chosen(&params, &shifted[1..], 2), little);
                params.dtype.big_endian = true;
                let raw: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                assert_eq!(chosen(&params, &raw, 1), little);
            }
        }
    }

    /// Of every type, under every bound, along one to four axes.
    #[test]
    fn small_is_no_longer_than_any_other_and_fast_is_planes_or_szx() {
        let integer = |size| Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(size) };
        let types = [Dtype::F32, Dtype::F64, Dtype::F16, integer(4), integer(2)];
        let fields: [Field; 3] = [wave, noise, |i| (wave(i) * 50.0).round() * 0.02];
        let cpu = Cpu::with_threads(2);
        for (dtype, dims) in types.into_iter().zip([&[9000][..], &[90, 100], &[20, 21, 22], &[4, 5, 30, 32], &[300]]) {
            for (bound, at) in BOUNDS.into_iter().chain([Bound::Lossless]).flat_map(|b| fields.map(|at| (b, at))) {
                let number = |i: usize| match (dtype.class, dtype.size) {
                    (Class::Integer, size) => ((at(i) * 1000.0) as i32).to_le_bytes()[..usize::from(size)].to_vec(),
                    (_, 2) => half_of(at(i)).to_le_bytes().to_vec(),
                    (_, 4) => at(i).to_le_bytes().to_vec(),
                    _ => f64::from(at(i)).to_le_bytes().to_vec(),
                };
                let raw: Vec<u8> = (0..dims.iter().product::<u64>() as usize).flat_map(number).collect();
                let of = |codec| {
                    let request = Request::new(codec, bound);
                    cpu.encode(&Params { request, ..params(dims, dtype, bound) }, &raw)
                };
                let small = of(Codec::Small).len();
                for codec in Codec::ALL.into_iter().filter(|codec| codec.takes(bound.mode())) {
                    let len = of(codec).len();
                    assert!(small <= len, "{dtype:?} {dims:?} {bound:?}: {small}, {codec:?} {len}");
                }
                let is_pointwise = bound.mode() == Mode::PointwiseRelative;
                assert!(of(Codec::Fast) == of(if is_pointwise { Codec::Szx } else { Codec::Planes }));
            }
        }
    }
}
