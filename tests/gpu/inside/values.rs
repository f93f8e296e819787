// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks whose values are made, encoded, decoded and judged on the device, by the codecs' own kernels. The host sees
//! headers and counts. For `gpu_check --values`; tests/gpu/cuda/values.cu is the other half.

use crate::cuda::{self, ALIGN, Buffer, Device, Failure, OwnStream};
use crate::engine::gpu::decode::{self, BEHIND, DecodeGroup};
use crate::engine::gpu::encode::{self, EncodeGroup};
use crate::engine::gpu::group::offsets;
use codecs::frame::{self, STORED_HEADER};
use codecs::keep::Keep;
use codecs::params::Params;

/// Where a chunk's values come from: the words of these names of `Piece` in tests/gpu/cuda/values/piece.cuh. What they
/// mean for each kind says make.cuh.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Recipe {
    pub kind: u64,
    pub seed: u64,
    pub first: u64,
    pub stride: u64,
    pub scale: f64,
    pub step: f64,
    pub width: u64,
    pub height: u64,
    pub salt: u64,
    pub run_log2: u64,
}

/// How the judge compares an ordinary value x with what came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The same bits.
    SameBits,
    /// abs(x − x̂) at most this.
    Within(f64),
    /// abs(x − x̂) at most this part of abs(x).
    WithinPart(f64),
    /// What a chunk with this range keeps.
    Kept(Keep, (f64, f64)),
}

/// One chunk.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// What is asked of it. All of a batch have the same but for the bound's value and the fill value.
    pub params: Params,
    /// Its values.
    pub recipe: Recipe,
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Bytes of the frame that the kernels wrote; 0: the kernels left the chunk to the CPU.
    pub frame_len: u64,
    /// No shorter than the chunk: a writer keeps the chunk in its place. The kernels' frame is judged all the same.
    pub stored: bool,
    /// The bound that the frame states.
    pub used: f64,
    /// The decoder took the frame, and its values were judged.
    pub decoded: bool,
    /// What the judge counted.
    pub found: Found,
}

/// What the judge counted in a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Found {
    /// Values compared by number.
    pub finite: u64,
    /// Values compared by their bits: NaN, infinities, the fill value; all where there is no bound.
    pub special: u64,
    /// Of the first, those farther from the original than allowed.
    pub broken: u64,
    /// Of the first, those that came back with the bits of the fill value.
    pub filled: u64,
    /// Of the second, those of other bits.
    pub moved: u64,
    /// Index of the first value that is broken or moved.
    pub first: Option<u64>,
    /// Extremes of the finite values that are not the fill value, by default +0.
    pub range: Option<(f64, f64)>,
}

/// Whether the kernels take such chunks.
pub fn takes(params: &Params) -> bool {
    let raw_len =
        params.extents.count().and_then(|n| usize::try_from(n).ok()).unwrap_or(0) * usize::from(params.dtype.size);
    encode::plan_of(params, raw_len).is_some()
}

/// Words of a `Piece`, of a `Found` and of a frame's head with its length, as in the kernels.
const PIECE: usize = 19;
const FOUND: usize = 8;
const HEAD: usize = 32;
/// Values of a CTA.
const CTA_VALUES: usize = 4096;

/// A stream with memory for one batch at a time.
pub struct Lane {
    device: &'static Device,
    stream: OwnStream,
    /// The batch that is there.
    words: Vec<[u64; PIECE]>,
    /// Values of a chunk, bytes of one, of the values from one chunk to the next, of the frames.
    values: usize,
    size: usize,
    steps: [usize; 2],
    /// As long as the longest frame, for headers: nobody looks at the rest.
    blank: Vec<u8>,
}

impl Lane {
    /// A lane on the process's device.
    pub fn new() -> Result<Lane, String> {
        let device = cuda::device().ok_or("there is no device")?;
        let stream = device.enter().and_then(|_current| device.own_stream()).map_err(|e| e.to_string())?;
        let (words, blank) = (Vec::new(), Vec::new());
        Ok(Lane { device, stream, words, values: 0, size: 4, steps: [0; 2], blank })
    }

    /// Makes, encodes, decodes and judges chunks.
    ///
    /// # Errors
    /// What the driver says, or that the kernels do not take such chunks.
    pub fn run(&mut self, pieces: &[Piece]) -> Result<Vec<Outcome>, String> {
        let _current = self.device.enter().map_err(|e| e.to_string())?;
        let heads = self.encode(pieces).map_err(|e| format!("encoding: {e}"))?;
        let mut outcomes = self.decode(pieces, &heads).map_err(|e| format!("decoding: {e}"))?;
        let found = self.judged(None, self.values).map_err(|e| format!("judging: {e}"))?;
        outcomes.iter_mut().zip(found).for_each(|(outcome, found)| outcome.found = found);
        if pieces.iter().all(|piece| piece.params.request.keep == Keep::NONE) {
            return Ok(outcomes);
        }
        // The range is known now.
        for ((words, piece), outcome) in self.words.iter_mut().zip(pieces).zip(&outcomes) {
            let range = outcome.found.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            set_rule(words, Rule::Kept(piece.params.request.keep, range));
        }
        let kept = self.judged(None, self.values).map_err(|e| format!("judging: {e}"))?;
        for (Outcome { found, .. }, kept) in outcomes.iter_mut().zip(kept) {
            found.broken += kept.broken;
            found.first = [found.first, kept.first].into_iter().flatten().min();
        }
        Ok(outcomes)
    }

    /// Judges the first `n` values of chunk `k` of the batch again, by another rule.
    ///
    /// # Errors
    /// What the driver says.
    pub fn judge(&mut self, k: usize, n: usize, rule: Rule) -> Result<Found, String> {
        let _current = self.device.enter().map_err(|e| e.to_string())?;
        let found = self.judged(Some((k, rule)), n.min(self.values)).map_err(|e| format!("judging: {e}"))?;
        Ok(found[k])
    }

    /// Values `from` to `from + n` of chunk `k`, the originals or what came back, as bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn values(&mut self, k: usize, back: bool, from: usize, n: usize) -> Result<Vec<u8>, String> {
        let _current = self.device.enter().map_err(|e| e.to_string())?;
        let mut out = vec![0; n * self.size];
        let (buffer, at) = (if back { DECODED } else { Buffer::Input }, k * self.steps[0] + from * self.size);
        self.stream.download(buffer, vec![(at, &mut out)], 1).map_err(|e| e.to_string())?;
        Ok(out)
    }

    /// The frame of chunk `k`, which has `len` bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn frame(&mut self, k: usize, len: usize) -> Result<Vec<u8>, String> {
        let _current = self.device.enter().map_err(|e| e.to_string())?;
        let mut out = vec![0; len];
        self.stream.download(Buffer::Output, vec![(k * self.steps[1], &mut out)], 1).map_err(|e| e.to_string())?;
        Ok(out)
    }

    /// Puts other bytes in the place of a value that came back.
    ///
    /// # Errors
    /// What the driver says.
    pub fn replace(&mut self, k: usize, index: usize, bytes: &[u8]) -> Result<(), String> {
        let _current = self.device.enter().map_err(|e| e.to_string())?;
        let at = k * self.steps[0] + index * self.size;
        self.stream.put(DECODED, at, bytes).map_err(|e| e.to_string())
    }

    /// Makes the values and encodes them; of each frame its length and its first words.
    fn encode(&mut self, pieces: &[Piece]) -> Result<Vec<[u64; HEAD]>, Failure> {
        let params = &pieces[0].params;
        self.size = params.dtype.size.into();
        self.values = params.extents.count().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let raw_len = self.values * self.size;
        let plans: Option<Vec<_>> = pieces.iter().map(|p| encode::plan_of(&p.params, raw_len)).collect();
        let plans = plans.ok_or_else(|| Failure::other("a chunk is not the kernels'"))?;
        let capacity = plans[0].encoding.capacity;
        let alike = |p: &encode::EncodePlan| p.needs == plans[0].needs && p.encoding.capacity == capacity;
        if !plans.iter().all(alike) {
            return Err(Failure::other("chunks of a batch differ"));
        }
        let count = pieces.len();
        self.steps = [raw_len, capacity + BEHIND].map(|len| len.next_multiple_of(ALIGN));
        let [values_step, frame_step] = self.steps;
        let input = self.stream.reserve(Buffer::Input, count * values_step)?;
        let output = self.stream.reserve(Buffer::Output, count * frame_step)?;
        let decoded = self.stream.reserve(DECODED, count * values_step)?;
        let sides = self.stream.reserve(SIDES, side(count)[3])?;
        self.words.clear();
        for (k, p) in pieces.iter().enumerate() {
            let at = (k * values_step) as u64;
            self.words.push(words(p, input + at, decoded + at));
        }
        self.put_pieces(None)?;
        self.launch("make", sides, self.values)?;
        let of = |(k, plan): (usize, _)| {
            let (input, frame) = (input + (k * values_step) as u64, output + (k * frame_step) as u64);
            encode::Placed { plan, input, frame }
        };
        let placed: Vec<_> = plans.iter().enumerate().map(of).collect();
        let group = EncodeGroup::new(self.device, &mut self.stream, &placed, 0)?;
        group.start(&mut self.stream)?;
        let work = self.stream.reserve(Buffer::Work, 1)?;
        let heads_at = side(count)[2];
        let args = [output, work + group.lengths_at() as u64, sides + heads_at as u64, frame_step as u64];
        self.start("values_heads", count as u32, args)?;
        let bytes = self.stream.get(SIDES, heads_at, count * HEAD * 8)?;
        let head = |b: &[u8]| std::array::from_fn(|i| u64::from_le_bytes(*b[8 * i..].first_chunk().expect("a word")));
        Ok(bytes.chunks_exact(HEAD * 8).map(head).collect())
    }

    /// Decodes the frames, and leaves addresses and rules to the judge.
    fn decode(&mut self, pieces: &[Piece], heads: &[[u64; HEAD]]) -> Result<Vec<Outcome>, Failure> {
        let (raw_len, frame_step) = (self.values * self.size, self.steps[1]);
        let output = self.stream.reserve(Buffer::Output, 1)?;
        let mut outcomes = vec![Outcome::default(); pieces.len()];
        let (mut plans, mut planned) = (Vec::new(), vec![false; pieces.len()]);
        for (k, head) in heads.iter().enumerate() {
            let len = head[0] as usize;
            outcomes[k].frame_len = len as u64;
            outcomes[k].stored = len >= raw_len + STORED_HEADER;
            if len == 0 || len > frame_step {
                continue;
            }
            let bytes: Vec<u8> = head[1..].iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
            self.blank.resize(self.blank.len().max(len), 0);
            self.blank[..bytes.len()].copy_from_slice(&bytes);
            let frame = &self.blank[..len];
            outcomes[k].used = frame::header(frame).map_or(f64::NAN, |h| h.used);
            if let Some(plan) = decode::plan_of(frame, raw_len) {
                plans.push((k, plan));
                planned[k] = true;
            }
        }
        for (k, words) in self.words.iter_mut().enumerate() {
            let rule = match pieces[k].params.request.bound {
                crate::Bound::Lossless => Rule::SameBits,
                crate::Bound::PointwiseRelative(_) => Rule::WithinPart(outcomes[k].used),
                _ => Rule::Within(outcomes[k].used),
            };
            set_rule(words, rule);
            if !planned[k] {
                words[1] = 0;
            }
        }
        if plans.is_empty() {
            return Ok(outcomes);
        }
        let placed = plans.iter().map(|(k, plan)| {
            let frame = output + (k * frame_step) as u64;
            decode::Placed { plan, frame, output: self.words[*k][1] }
        });
        let placed: Vec<_> = placed.collect();
        let (device, needs) = (self.device, plans[0].1.needs);
        let group = DecodeGroup::new(&mut self.stream, &placed, 0, |tiles, frames| {
            needs.kernels(device, needs.gpu.decode, tiles, frames)
        })?;
        group.start(&mut self.stream)?;
        for ((k, _), right) in plans.iter().zip(group.verdicts(&mut self.stream)?) {
            outcomes[*k].decoded = right;
            if !right {
                self.words[*k][1] = 0;
            }
        }
        Ok(outcomes)
    }

    /// What the judge finds in the first `n` values of every chunk, or, by another rule, of one.
    fn judged(&mut self, one: Option<(usize, Rule)>, n: usize) -> Result<Vec<Found>, Failure> {
        let count = self.words.len();
        let sides = self.stream.reserve(SIDES, side(count)[3])?;
        self.put_pieces(one)?;
        let found_at = side(count)[1];
        self.stream.zero(SIDES, found_at, 8 * FOUND * count)?;
        self.launch("judge", sides, n)?;
        let bytes = self.stream.get(SIDES, found_at, 8 * FOUND * count)?;
        Ok(bytes.chunks_exact(8 * FOUND).map(found).collect())
    }

    /// The batch's words, or those of one chunk by another rule, to the device.
    fn put_pieces(&mut self, one: Option<(usize, Rule)>) -> Result<(), Failure> {
        let mut all = self.words.clone();
        if let Some((only, rule)) = one {
            all.iter_mut().enumerate().filter(|(k, _)| *k != only).for_each(|(_, words)| words[1] = 0);
            set_rule(&mut all[only], rule);
        }
        let bytes: Vec<u8> = all.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        self.stream.put(SIDES, 0, &bytes)
    }

    /// Starts a kernel of the values on the first `n` values of all chunks.
    fn launch(&mut self, what: &str, sides: u64, n: usize) -> Result<(), Failure> {
        let (count, parts) = (self.words.len(), n.div_ceil(CTA_VALUES));
        let name = format!("values_{what}_{}", if self.size == 8 { "f64" } else { "f32" });
        let args = [sides, sides + side(count)[1] as u64, n as u64, parts as u64];
        self.start(&name, (count * parts) as u32, args)
    }

    #[allow(unsafe_code)]
    fn start(&mut self, kernel: &str, ctas: u32, args: [u64; 4]) -> Result<(), Failure> {
        let mut words = [0; 16];
        words[..4].copy_from_slice(&args);
        let kernel = self.device.kernel(kernel)?;
        // SAFETY: `encode` reserved on this stream all that the arguments, and the pieces behind them, lead to: of
        // every chunk its values, its frame, what comes back; the pieces, what is found in them, the heads. All are
        // rounded up to `ALIGN`, which is no less than a head or a load of 16 bytes.
        unsafe { self.stream.launch(kernel, ctas, &words) }
    }
}

/// What came back: no batch copies boxes or looks at elements, whose buffers these are.
const DECODED: Buffer = Buffer::Boxes;
/// Pieces, what is found in them, heads.
const SIDES: Buffer = Buffer::Element;

/// Where the parts of [`SIDES`] begin, and their end.
fn side(count: usize) -> [usize; 4] {
    let parts = offsets([8 * PIECE * count, 8 * FOUND * count, 8 * HEAD * count]);
    parts.try_into().expect("three parts and an end")
}

fn words(piece: &Piece, original: u64, decoded: u64) -> [u64; PIECE] {
    let (r, fill) = (&piece.recipe, piece.params.fill);
    let numbers = [r.scale.to_bits(), r.step.to_bits(), r.width, r.height, r.salt, r.run_log2];
    let mut words = [0; PIECE];
    words[..6].copy_from_slice(&[original, decoded, r.kind, r.seed, r.first, r.stride]);
    words[6..12].copy_from_slice(&numbers);
    words[12..14].copy_from_slice(&[fill.unwrap_or(0), fill.is_some().into()]);
    words
}

fn set_rule(words: &mut [u64; PIECE], rule: Rule) {
    let of_rule = match rule {
        Rule::SameBits => [0; 5],
        Rule::Within(limit) => [1, limit.to_bits(), 0, 0, 0],
        Rule::WithinPart(part) => [2, part.to_bits(), 0, 0, 0],
        Rule::Kept(keep, (low, high)) => [3, 0, keep.bits().into(), low.to_bits(), high.to_bits()],
    };
    words[14..].copy_from_slice(&of_rule);
}

fn found(bytes: &[u8]) -> Found {
    let mut words = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
    let mut next = || words.next().expect("a word");
    let number = |rank: u64| f64::from_bits(if rank >> 63 == 1 { rank & !(1 << 63) } else { !rank });
    let (finite, special, broken, filled, moved, first) = (next(), next(), next(), next(), next(), next());
    let (high, low) = (next(), next());
    let first = (first != 0).then_some(!first);
    Found { finite, special, broken, filled, moved, first, range: (high != 0).then(|| (number(!low), number(high))) }
}
