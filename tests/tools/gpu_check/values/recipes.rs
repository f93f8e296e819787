// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which values, and what is asked of them: every pattern of f32 at many bounds, and random batches.

use super::super::Random;
use h5z_gpu::testing::values::{self, Piece, Recipe};
use h5z_gpu::{Bound, Codec, Dtype, Keep, Params, Request};

/// Kinds of values, in the order of tests/gpu/cuda/values/make.cuh.
pub const KINDS: [&str; 8] =
    ["patterns", "waves", "one-exponent", "near-steps", "largest", "subnormal", "any-bits", "plateaus"];
/// Bounds that every pattern is given, from 1e-30 to 1e30 in even ratios.
pub const BOUNDS: usize = 24;
/// Codecs that every pattern is given.
pub const EVERY: [Codec; 3] = [Codec::Szx, Codec::Lorenzo, Codec::Planes];
/// Patterns of one sign and exponent: the values of a chunk then are as smooth as patterns can be, and no tile keeps
/// others waiting.
const EXPONENT: u64 = 1 << 23;
/// Bytes of a batch's values: two orders above what fills a device.
const BATCH: u64 = 1 << 30;
/// Chunks of a batch.
const MOST_CHUNKS: u64 = 1024;

/// A batch: chunks that the same launches take.
pub struct Batch {
    pub pieces: Vec<Piece>,
    pub codec: Codec,
    /// Of the patterns, which bound this is of.
    pub bound: Option<usize>,
    /// Batches of one key take about as long for each value.
    pub key: String,
    pub what: String,
}

/// Bound `k` of [`BOUNDS`].
pub fn bound(k: usize) -> f64 {
    match k {
        0 => 1e-30,
        k if k == BOUNDS - 1 => 1e30,
        k => 10f64.powf(60.0 * k as f64 / (BOUNDS - 1) as f64 - 30.0),
    }
}

fn piece(request: Request, wide: bool, dims: &[u64], fill: Option<u64>, recipe: Recipe) -> Piece {
    let dtype = if wide { Dtype::F64 } else { Dtype::F32 };
    let mut params = Params::new(request, dtype, dims).expect("a sensible request");
    params.fill = fill;
    let width = if recipe.width > 0 { recipe.width } else { dims[dims.len() - 1] };
    let height = if dims.len() > 1 { dims[dims.len() - 2] } else { 1 };
    Piece { params, recipe: Recipe { width, height, ..recipe } }
}

/// All patterns of f32, at every bound, by every codec: batch by batch.
pub struct Patterns {
    /// Values of a chunk, chunks of all patterns, how many of them are taken, chunks of a batch.
    values: u64,
    all: u64,
    taken: u64,
    each: u64,
    next: u64,
    seed: u64,
}

impl Patterns {
    /// Chunks of at most `values` values; where fewer than all are to be taken, of `share` of the patterns. The first
    /// `skipped` bounds are left out.
    pub fn new(largest: u64, share: f64, skipped: u64, seed: u64) -> Patterns {
        let values = EXPONENT.min(1 << largest.max(64).ilog2());
        let all = (1 << 32) / values;
        let taken = ((all as f64 * share).ceil() as u64).clamp(1, all);
        let each = (BATCH / 4 / values).clamp(1, MOST_CHUNKS).min(taken);
        let next = skipped * EVERY.len() as u64 * taken.div_ceil(each);
        Patterns { values, all, taken, each, next, seed }
    }

    /// The next batch.
    pub fn batch(&mut self) -> Option<Batch> {
        let turns = self.taken.div_ceil(self.each);
        let (turn, codec) = (self.next % turns, self.next / turns % EVERY.len() as u64);
        let k = (self.next / turns / EVERY.len() as u64) as usize;
        if k >= BOUNDS {
            return None;
        }
        self.next += 1;
        let codec = EVERY[codec as usize];
        // Lines, planes and blocks by turns: a row holds neighbours in any.
        let log2 = self.values.ilog2();
        let dims = match turn % 3 {
            0 => vec![self.values],
            1 => vec![1 << (log2 / 2), 1 << (log2 - log2 / 2)],
            _ => vec![1 << (log2 / 3), 1 << (log2 / 3), 1 << (log2 - log2 / 3 * 2)],
        };
        let chunk = |i: u64| {
            // Of few, others at each bound.
            let at = if self.taken == self.all {
                i
            } else {
                (i * (self.all / self.taken) + self.seed + 37 * k as u64) % self.all
            };
            let recipe = Recipe { kind: 0, first: at * self.values, stride: 1, ..Recipe::default() };
            piece(Request::new(codec, Bound::Absolute(bound(k))), false, &dims, None, recipe)
        };
        let from = turn * self.each;
        let pieces = (from..(from + self.each).min(self.taken)).map(chunk).collect();
        let what = format!("all patterns at {:e}, from chunk {from}", bound(k));
        Some(Batch { pieces, codec, bound: Some(k), key: String::new(), what })
    }
}

fn extents(r: &mut Random, n: u64) -> Vec<u64> {
    let near = |r: &mut Random, x: f64| ((x * (0.5 + r.unit())) as u64).max(1);
    match r.below(3) {
        0 => vec![n],
        1 => {
            let rows = near(r, (n as f64).sqrt());
            vec![rows, (n / rows).max(1)]
        }
        _ => {
            let (z, y) = (near(r, (n as f64).cbrt()), near(r, (n as f64).cbrt()));
            vec![z, y, (n / (z * y)).max(1)]
        }
    }
}

/// What all chunks of a random batch have in common.
struct Common {
    kind: u64,
    wide: bool,
    mode: u64,
    /// Decimal digits between the values' size and the bound, and binary ones between it and the noise.
    digits: f64,
    noise: u64,
    salting: u64,
}

/// Ten to a random power, of a size that the type has; more seldom of any.
fn magnitude(r: &mut Random, wide: bool) -> f64 {
    let most = match (wide, r.one_in(4)) {
        (false, _) => 60,
        (true, false) => 80,
        (true, true) => 560,
    };
    10f64.powf(r.unit() * most as f64 - most as f64 / 2.0)
}

fn recipe(r: &mut Random, c: &Common, n: u64) -> (Recipe, f64) {
    let (mantissa, bias, largest) = if c.wide { (52u64, 1023u64, f64::MAX) } else { (23, 127, f64::from(f32::MAX)) };
    let scale = magnitude(r, c.wide);
    let power = 10f64.powf(-c.digits);
    let mut made = Recipe { kind: c.kind, seed: r.next(), scale, stride: c.noise, ..Recipe::default() };
    let mut absolute = scale * power;
    match KINDS[c.kind as usize] {
        "patterns" => {
            let exponent = 1 + r.below(2 * bias - 1);
            made.first = (r.below(2) << (mantissa + if c.wide { 11 } else { 8 }))
                | exponent << mantissa
                | r.below(1 << mantissa);
            // Over a part of one exponent, or over a few.
            made.stride = 1 + r.below((1 << mantissa) / n.min(1 << mantissa) * 4);
            absolute = 2f64.powi(exponent as i32 - bias as i32) * power;
        }
        "waves" => made.step = scale * [0.0, 0.0, 1.0, 100.0][r.below(4) as usize],
        "one-exponent" => {
            let exponent = r.below(2 * bias + 1);
            made.first = exponent << mantissa;
            absolute = 2f64.powi(exponent as i32 - bias as i32) * power;
        }
        "near-steps" => {
            made.step = scale * power;
            made.stride = (c.digits * 3.3) as u64;
        }
        "largest" => {
            made.stride = 1 + c.noise % mantissa;
            absolute = largest * power;
        }
        "subnormal" => {
            made.stride = c.noise % 24;
            absolute = f64::from_bits(if c.wide { 1 } else { f64::to_bits(2f64.powi(-149)) })
                * 10f64.powf(r.unit() * c.digits);
        }
        "any-bits" => absolute = if r.one_in(2) { scale } else { largest * power },
        _ => made.width = 1 + r.below(3000),
    }
    match c.salting {
        0 => {}
        1 => made.salt = 1 << 18,
        2 => (made.salt, made.run_log2) = (1 << 27, 7 + r.below(4)),
        _ => made.salt = 1 << 28,
    }
    // A power of two, twice which is a step of szx: no value may be farther off than half of that.
    if r.one_in(4) {
        absolute = f64::from_bits(absolute.to_bits() >> 52 << 52);
        made.step = if KINDS[c.kind as usize] == "near-steps" { absolute } else { made.step };
    }
    // Now and then no relation to the values at all.
    let absolute = if r.one_in(16) { magnitude(r, c.wide) } else { absolute };
    (made, absolute.clamp(5e-324, f64::MAX))
}

fn fill(r: &mut Random, wide: bool) -> Option<u64> {
    let usual = [1e20, 9.969_209_968_386_869e36, -999.0, f64::NAN, 0.0];
    let x = usual[r.below(usual.len() as u64) as usize];
    r.one_in(3).then(|| if wide { x.to_bits() } else { (x as f32).to_bits().into() })
}

/// A random batch of about `wanted(key)` values, in chunks of at most `largest`.
pub fn random(r: &mut Random, largest: u64, wanted: impl FnOnce(&str) -> u64) -> Batch {
    const CODECS: [Codec; 9] = [
        Codec::Szx,
        Codec::Szx,
        Codec::Lorenzo,
        Codec::Lorenzo,
        Codec::Planes,
        Codec::Planes,
        Codec::Planes,
        Codec::Planes,
        Codec::Ndzip,
    ];
    const WEIGHTS: [u64; 14] = [0, 1, 1, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 7];
    let which = r.below(CODECS.len() as u64) as usize;
    let (codec, lossless) = (CODECS[which], which >= 7);
    let modes = if matches!(codec, Codec::Szx | Codec::Lorenzo) { 6 } else { 5 };
    let c = Common {
        kind: WEIGHTS[r.below(WEIGHTS.len() as u64) as usize],
        wide: r.one_in(3),
        mode: r.below(modes),
        digits: r.below(8) as f64 + r.unit(),
        noise: 4 * r.below(11) + r.below(4),
        salting: [0, 0, 0, 1, 2, 3][r.below(6) as usize],
    };
    let keep = if r.one_in(3) { Keep::new(1 + r.below(7) as u32).expect("three bits") } else { Keep::NONE };
    // Only planes has tiles that take a hundred times as long as others.
    let key = match codec {
        Codec::Planes if !lossless => {
            let (mode, digits) = (c.mode.max(2), c.digits as u64);
            format!("{} {} {} {mode} {digits} {} {} {keep}", codec.name(), c.wide, c.kind, c.noise / 8, c.salting)
        }
        _ => format!("{} {} {lossless} {keep}", codec.name(), c.wide),
    };
    let (least, most) = (13f64.min((largest as f64).log2() - 3.0), (largest as f64).log2());
    let about = 2f64.powf(least + (most - least) * r.unit());
    let mut dims = extents(r, about as u64);
    let n = dims.iter().product::<u64>();
    let size = if c.wide { 8 } else { 4 };
    let count = (wanted(&key).min(BATCH / size) / n).clamp(1, MOST_CHUNKS);
    let mut chunk = |dims: &[u64]| {
        let (made, absolute) = recipe(r, &c, n);
        let part = 10f64.powf(-c.digits - 0.01);
        let bound = match c.mode {
            _ if lossless => Bound::Lossless,
            0..3 => Bound::Absolute(absolute),
            3 => Bound::Relative(part),
            4 => Bound::Psnr((20.0 * c.digits + 1.0).round().max(0.1)),
            _ => Bound::PointwiseRelative(part),
        };
        let keep = if bound.mode().takes_keep() { keep } else { Keep::NONE };
        piece(Request { codec, bound, keep }, c.wide, dims, fill(r, c.wide), made)
    };
    // Kernels know no components, which planes makes of a short last axis.
    if !values::takes(&chunk(&dims).params) {
        dims = vec![n];
    }
    let pieces: Vec<Piece> = (0..count).map(|_| chunk(&dims)).collect();
    let what = format!("{} {dims:?}", KINDS[c.kind as usize]);
    Batch { pieces, codec, bound: None, key, what }
}
