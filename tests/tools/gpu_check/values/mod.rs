// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values by the thousand million through encoding, decoding and an exact judge, all on the GPU: every pattern of f32
//! at 24 bounds, then random values of all kinds until there are as many as asked for, or the time is over.
//!
//! The judge is tried first: it must see one value that is one number too far off, and one bit of a NaN, and must count
//! as the one in whole numbers on the CPU does. During the run samples of what it says are held against that one.
//!
//! How long it takes, by the speeds of an H200 in tests/gpu/record.toml; times are of one value of f32:
//!
//! ```text
//! made, 4 bytes, and judged, 8: 4 ps    szx        encoded 5 ps, decoded 3 ps    80 · 10^9 values a second
//!                                       lorenzo    10 and 4                      50 · 10^9
//!                                       planes     2 and 2, raw tiles 100        120 · 10^9 and 10 · 10^9
//! ```
//! Patterns are 3.1 · 10^11 values, half of those of planes in raw tiles: 10 s. The rest of 10^12 at 20 · 10^9 a
//! second, a third of what f32 values reach: 35 s. Batches of a kind that was slow are made smaller, so that no kind
//! takes more time than another.

mod judge;
mod recipes;

use super::Random;
use h5z_gpu::testing::values::{Found, Lane, Outcome, Piece, Rule};
use h5z_gpu::{Bound, Codec, Engine, Keep, Params};
use recipes::{BOUNDS, Batch, EVERY, KINDS, Patterns};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is asked for.
pub struct Asked {
    /// Values.
    pub values: u64,
    /// After which no batch is begun.
    pub seconds: u64,
    /// Values of a chunk at most.
    pub largest: u64,
    /// Bounds of patterns that are left out: those that a run before came through.
    pub skip: u64,
    pub seed: u64,
    /// Breaks a promise, so that it can be seen that it is found: `bound` or `bits`.
    pub spoil: Option<String>,
}

/// Batches at a time: while one waits for the host, the others have the device.
const LANES: usize = 3;
/// Seconds that a random batch may take, and values of the first of a kind.
const BATCH_SECONDS: f64 = 0.02;
const FIRST_BATCH: f64 = (1u64 << 22) as f64;
/// Values of a sample that is judged by the CPU too, and batches between two.
const SAMPLE: usize = 2048;
const SAMPLED: u64 = 64;
/// Chunks that the judge is tried on at least.
const TRIED: usize = 32;
/// Failures that are told of.
const TOLD: usize = 8;

/// What was done of one codec, type and mode.
#[derive(Default)]
struct Sum {
    values: u64,
    special: u64,
    /// Of the values, those in chunks that a writer stores as they are.
    stored: u64,
    seconds: f64,
}

struct State {
    random: Random,
    patterns: Option<Patterns>,
    /// Values a second of what was tried.
    speeds: HashMap<String, f64>,
    sums: BTreeMap<(&'static str, &'static str, &'static str), Sum>,
    kinds: [u64; KINDS.len()],
    /// Values of chunks that keep signs, zeros, the range.
    kept: [u64; 3],
    /// Values of patterns judged, by bound and codec.
    pattern_values: [[u64; EVERY.len()]; BOUNDS],
    judged: u64,
    batches: u64,
    samples: u64,
    /// Chunks left to the CPU, and frames that no decoder takes and nobody keeps: the chunk is stored as it is.
    left: u64,
    unread: u64,
    filled: u64,
    wrong: Vec<String>,
    told: Instant,
}

/// What was judged; or what is wrong.
pub fn check(asked: &Asked) -> Result<String, String> {
    let began = Instant::now();
    let tried = prove(asked)?;
    let started = Instant::now();
    let every = (1u64 << 32) as f64 * (BOUNDS * EVERY.len()) as f64;
    // Of fewer values a third are patterns.
    let share = if asked.values as f64 >= every { 1.0 } else { asked.values as f64 / 3.0 / every };
    let patterns = Patterns::new(asked.largest, share, asked.skip, asked.seed);
    println!("{tried} ({:.0} s)", began.elapsed().as_secs_f64());
    let state = Mutex::new(State {
        random: Random(asked.seed),
        patterns: Some(patterns),
        speeds: HashMap::new(),
        sums: BTreeMap::new(),
        kinds: [0; KINDS.len()],
        kept: [0; 3],
        pattern_values: [[0; EVERY.len()]; BOUNDS],
        judged: 0,
        batches: 0,
        samples: 0,
        left: 0,
        unread: 0,
        filled: 0,
        wrong: Vec::new(),
        told: started,
    });
    let failed = std::thread::scope(|scope| {
        let state = &state;
        let lane = |number| scope.spawn(move || work(asked, state, started, number));
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().find_map(|lane| lane.join().expect("a lane that panics says why").err())
    });
    let state = state.into_inner().map_err(|_| "a lane panicked")?;
    tell(&state);
    let seconds = started.elapsed().as_secs_f64();
    if let Some(why) = failed {
        return Err(format!("{why} (after {} values in {seconds:.0} s)", state.judged));
    }
    if !state.wrong.is_empty() {
        return Err(format!("BROKEN (seed {}): {}", asked.seed, state.wrong.join("\n")));
    }
    said(&state, asked, seconds)
}

/// What is said in the end, in one line.
fn said(state: &State, asked: &Asked, seconds: f64) -> Result<String, String> {
    let by = |which: &dyn Fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        state.sums.iter().for_each(|(key, sum)| *sums.entry(which(key)).or_default() += sum.values);
        sums.iter().map(|(name, n)| format!("{name} {:.3e}", *n as f64)).collect::<Vec<_>>().join(", ")
    };
    let stored: u64 = state.sums.values().map(|sum| sum.stored).sum();
    let kept = Keep::ALL.iter().zip(state.kept).map(|(facts, n)| format!("{} {:.3e}", facts.name, n as f64));
    let kept = kept.collect::<Vec<_>>().join(", ");
    let whole = state.pattern_values.iter().filter(|by| by.iter().all(|&n| n == 1 << 32)).count();
    let patterns: u64 = state.pattern_values.iter().flatten().sum();
    if state.judged == 0 {
        return Err("nothing was judged".into());
    }
    Ok(format!(
        "{} values, 0 bounds broken, 0 bits moved; {patterns} of f32 patterns, every one at {whole} of \
         {BOUNDS} bounds by 3 codecs; {}; {}; {}; kept {kept}; {:.1} % stored as they are, \
         {} chunks left to the CPU, {} left to the CPU to read, {} samples as by the CPU; {seconds:.0} s{}",
        state.judged,
        by(&|key| key.1),
        by(&|key| key.0),
        by(&|key| key.2),
        100.0 * stored as f64 / state.judged as f64,
        state.left,
        state.unread,
        state.samples,
        if state.judged < asked.values { ", the time was over" } else { "" },
    ))
}

/// A table of what was done.
fn tell(state: &State) {
    println!("codec        type mode        values      by bits   stored   10^9 values/s of a lane");
    for ((codec, of, mode), sum) in &state.sums {
        println!(
            "{codec:<12} {of}  {mode:<9} {:>12.4e} {:>8.2} % {:>6.1} % {:>8.2}",
            sum.values as f64,
            100.0 * sum.special as f64 / sum.values as f64,
            100.0 * sum.stored as f64 / sum.values as f64,
            sum.values as f64 / sum.seconds.max(1e-9) / 1e9,
        );
    }
    for (name, n) in KINDS.iter().zip(state.kinds) {
        println!("{name:<14} {:>12.4e}", n as f64);
    }
    for (k, by) in state.pattern_values.iter().enumerate() {
        println!("patterns at {:<9.3e} szx {} lorenzo {} planes {}", recipes::bound(k), by[0], by[1], by[2]);
    }
    println!("{} ordinary values came back as the fill value, within their bounds", state.filled);
}

/// One lane: batch after batch.
fn work(asked: &Asked, state: &Mutex<State>, started: Instant, number: usize) -> Result<(), String> {
    let mut lane = Lane::new()?;
    loop {
        let (batch, turn) = {
            let mut state = state.lock().map_err(|_| "another lane panicked")?;
            let over = started.elapsed() >= Duration::from_secs(asked.seconds);
            if over || state.wrong.len() >= TOLD || state.judged >= asked.values {
                return Ok(());
            }
            let batch = next(&mut state, asked);
            state.batches += 1;
            (batch, state.batches)
        };
        let begun = Instant::now();
        let mut outcomes = lane.run(&batch.pieces).map_err(|why| format!("{}: {why}", name(&batch)))?;
        let seconds = begun.elapsed().as_secs_f64();
        if let Some(what) = asked.spoil.as_deref().filter(|_| number == 0) {
            spoil(&mut lane, &batch, &mut outcomes, what)?;
        }
        let sampled = turn % SAMPLED == 1 && sample(&mut lane, &batch, &outcomes)?;
        let wrong = wrong(&mut lane, &batch, &outcomes)?;
        let mut state = state.lock().map_err(|_| "another lane panicked")?;
        state.wrong.extend(wrong);
        state.samples += u64::from(sampled);
        add(&mut state, &batch, &outcomes, seconds);
        if state.told.elapsed() >= Duration::from_secs(5) {
            state.told = Instant::now();
            let seconds = started.elapsed().as_secs_f64();
            let rate = state.judged as f64 / seconds / 1e9;
            println!("{seconds:6.1} s  {:.3e} values, {rate:.1}e9/s  {}", state.judged as f64, name(&batch));
        }
    }
}

/// The next batch: of patterns while there are more.
fn next(state: &mut State, asked: &Asked) -> Batch {
    if let Some(batch) = state.patterns.as_mut().and_then(Patterns::batch) {
        return batch;
    }
    state.patterns = None;
    let State { random, speeds, judged, .. } = state;
    let left = asked.values.saturating_sub(*judged);
    let values = |key: &str| {
        let wanted = speeds.get(key).map_or(FIRST_BATCH, |speed| speed * BATCH_SECONDS);
        (wanted as u64).min(left).min(asked.values / 64)
    };
    recipes::random(random, asked.largest, values)
}

fn name(batch: &Batch) -> String {
    let Params { request, dtype, .. } = batch.pieces[0].params;
    format!("{} f{} {}, {}", batch.codec.name(), 8 * dtype.size, request.bound.mode().name(), batch.what)
}

/// Adds a batch to the sums.
fn add(state: &mut State, batch: &Batch, outcomes: &[Outcome], seconds: f64) {
    let Params { request, dtype, .. } = batch.pieces[0].params;
    let key = (batch.codec.name(), if dtype.size == 4 { "f32" } else { "f64" }, request.bound.mode().name());
    let each = batch.pieces[0].params.extents.count().unwrap_or(0);
    let sum = state.sums.entry(key).or_default();
    let mut judged = 0;
    for outcome in outcomes {
        judged += outcome.found.finite + outcome.found.special;
        sum.special += outcome.found.special;
        sum.stored += if outcome.stored { each } else { 0 };
        state.left += u64::from(outcome.frame_len == 0);
        state.unread += u64::from(outcome.frame_len != 0 && !outcome.decoded);
        state.filled += outcome.found.filled;
    }
    sum.values += judged;
    sum.seconds += seconds;
    state.judged += judged;
    state.kinds[batch.pieces[0].recipe.kind as usize] += judged;
    for (values, facts) in state.kept.iter_mut().zip(Keep::ALL) {
        *values += if request.keep.has(facts.keep) { judged } else { 0 };
    }
    if let Some(k) = batch.bound {
        let codec = EVERY.iter().position(|c| *c == batch.codec).expect("one of them");
        state.pattern_values[k][codec] += judged;
    } else {
        // The slower of what was seen, so that a kind with slow chunks among fast ones is not taken for a fast one.
        let speed = judged as f64 / seconds.max(1e-6);
        let known = state.speeds.entry(batch.key.clone()).or_insert(speed);
        *known = if speed < *known { speed } else { *known * 0.7 + speed * 0.3 };
    }
}

/// What is wrong with a batch, chunk by chunk.
fn wrong(lane: &mut Lane, batch: &Batch, outcomes: &[Outcome]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (k, (piece, outcome)) in batch.pieces.iter().zip(outcomes).enumerate() {
        let (params, found) = (&piece.params, &outcome.found);
        let each = params.extents.count().unwrap_or(0);
        let bound = params.request.bound;
        let mut why = Vec::new();
        if outcome.frame_len == 0 || all.len() >= TOLD {
            continue;
        }
        if !outcome.decoded {
            // Nobody reads a frame in whose place the chunk is stored.
            if !outcome.stored {
                why.extend(read_by_cpu(lane, k, piece, outcome)?);
            }
        } else if found.finite + found.special != each {
            why.push(format!("{} values of {each} were judged", found.finite + found.special));
        } else if !judge::may_state(bound, outcome.used, found.range) {
            why.push(format!("the frame states the bound {:e}, the values' range is {:?}", outcome.used, found.range));
        }
        // Of a fill value 0 values near 0 may become it.
        let planes = batch.codec == Codec::Planes;
        if planes && params.fill != Some(0) && found.filled > 0 {
            why.push(format!("{} ordinary values became the fill value", found.filled));
        }
        if let Some(i) = found.first {
            let at = i as usize;
            let (x, y) = (lane.values(k, false, at, 1)?, lane.values(k, true, at, 1)?);
            let ((a, x), (b, y)) = (judge::number(&x, params.dtype, 0), judge::number(&y, params.dtype, 0));
            let Found { broken, moved, .. } = found;
            why.push(format!(
                "{broken} bounds broken, {moved} bits moved; value {i}: {x:e} ({a:#x}) came back as {y:e} ({b:#x})"
            ));
        }
        let fill = params.fill;
        let about = |why| format!("{} {bound:?} fill {fill:x?} {:?}, chunk {k}: {why}", name(batch), piece.recipe);
        all.extend(why.into_iter().map(about).inspect(|line| println!("BROKEN {line}")));
    }
    Ok(all)
}

/// The rule by which a chunk was judged.
/// What is wrong with a frame that the kernels leave to the CPU to read: it must be the CPU's own, and hold what it
/// promises.
fn read_by_cpu(lane: &mut Lane, k: usize, piece: &Piece, outcome: &Outcome) -> Result<Option<String>, String> {
    let (params, cpu) = (&piece.params, Engine::with_threads(1));
    let raw = lane.values(k, false, 0, params.extents.count().unwrap_or(0) as usize)?;
    let frame = lane.frame(k, outcome.frame_len as usize)?;
    let head: String = frame.iter().take(64).map(|b| format!("{b:02x}")).collect();
    if cpu.encode(params, &raw) != frame {
        return Ok(Some(format!("neither the decoder takes the frame nor does the CPU write it; it begins {head}")));
    }
    Ok(match cpu.decode(&frame, raw.len() as u64) {
        Err(e) => Some(format!("no decoder takes the frame, which the CPU writes too: {e}; it begins {head}")),
        Ok(back) => {
            let found = judge::judge(&raw, &back, params.dtype, params.fill, rule(piece, outcome));
            (found.broken + found.moved > 0).then(|| format!("as the CPU reads it: {found:?}"))
        }
    })
}

fn rule(piece: &Piece, outcome: &Outcome) -> Rule {
    match piece.params.request.bound {
        Bound::Lossless => Rule::SameBits,
        Bound::PointwiseRelative(_) => Rule::WithinPart(outcome.used),
        _ => Rule::Within(outcome.used),
    }
}

/// Judges the first values of a chunk of the batch on both sides, by the bound and by one that some values miss by
/// nothing or by little: the difference of one of them. Whether there was a chunk to judge.
fn sample(lane: &mut Lane, batch: &Batch, outcomes: &[Outcome]) -> Result<bool, String> {
    let Some(k) = outcomes.iter().position(|outcome| outcome.decoded) else { return Ok(false) };
    let (piece, params) = (&batch.pieces[k], &batch.pieces[k].params);
    let n = SAMPLE.min(params.extents.count().unwrap_or(0) as usize);
    let (raw, back) = (lane.values(k, false, 0, n)?, lane.values(k, true, 0, n)?);
    let mut rules = vec![rule(piece, &outcomes[k]), Rule::SameBits];
    let pairs = (0..n).map(|i| (judge::number(&raw, params.dtype, i).1, judge::number(&back, params.dtype, i).1));
    let mut off: Vec<f64> = pairs.clone().map(|(x, y)| (x - y).abs()).filter(|d| d.is_finite() && *d > 0.0).collect();
    off.sort_by(f64::total_cmp);
    rules.extend(off.get(off.len() / 2).map(|&d| Rule::Within(d)));
    let mut parts: Vec<f64> = pairs.map(|(x, y)| ((x - y) / x).abs()).filter(|d| (1e-50..1.0).contains(d)).collect();
    parts.sort_by(f64::total_cmp);
    rules.extend(parts.get(parts.len() / 2).map(|&d| Rule::WithinPart(d)));
    // Of a range that some values are the ends of and others lie beyond.
    let mut some: Vec<f64> = (0..n).map(|i| judge::number(&raw, params.dtype, i).1).filter(|x| x.is_finite()).collect();
    some.sort_by(f64::total_cmp);
    let part = |k: usize| some.get(some.len() * k / 8).copied();
    if let (Some(low), Some(high)) = (part(1), part(7)) {
        rules.extend([1, 2, 4].map(|bits| Rule::Kept(Keep::new(bits).expect("one bit"), (low, high))));
    }
    for rule in rules {
        let (got, want) = (lane.judge(k, n, rule)?, judge::judge(&raw, &back, params.dtype, params.fill, rule));
        if got != want {
            return Err(format!(
                "DIFFERENT: {} by {rule:?}: the judge on the GPU {got:?}, on the CPU {want:?}",
                name(batch)
            ));
        }
    }
    Ok(true)
}

/// Puts values that are as far from the originals as a rule allows, or one number more or less, in the place of the
/// first ones that came back: both judges must count the same.
fn edges(lane: &mut Lane, batch: &Batch, random: &mut Random) -> Result<(), String> {
    let params = &batch.pieces[0].params;
    let (d, size) = (params.dtype, usize::from(params.dtype.size));
    let n = SAMPLE.min(params.extents.count().unwrap_or(0) as usize) / 4;
    let (raw, was) = (lane.values(0, false, 0, n)?, lane.values(0, true, 0, n)?);
    let sizes: Vec<f64> = (0..n).map(|i| judge::number(&raw, d, i).1.abs()).filter(|x| x.is_finite()).collect();
    let Some(&about) = sizes.get(random.below(sizes.len() as u64) as usize) else { return Ok(()) };
    let limit = (about * 10f64.powf(2.0 - 8.0 * random.unit())).clamp(5e-324, f64::MAX);
    for rule in [Rule::Within(limit), Rule::WithinPart(10f64.powf(-0.01 - 9.0 * random.unit()))] {
        let mut back = Vec::with_capacity(n * size);
        for i in 0..n {
            let (bits, x) = judge::number(&raw, d, i);
            let far = if let Rule::WithinPart(part) = rule { part * x.abs() } else { limit };
            let y = if random.one_in(2) { x + far } else { x - far };
            let y = if d.size == 4 { (y as f32).to_bits().into() } else { y.to_bits() };
            let near = y.wrapping_add(random.below(3)).wrapping_sub(1);
            let bits = if x.is_finite() { near } else { bits ^ u64::from(random.one_in(2)) };
            back.extend(&bits.to_le_bytes()[..size]);
        }
        lane.replace(0, 0, &back)?;
        let (got, want) = (lane.judge(0, n, rule)?, judge::judge(&raw, &back, d, params.fill, rule));
        if got != want {
            return Err(format!(
                "DIFFERENT: {} by {rule:?}: the judge on the GPU {got:?}, on the CPU {want:?}",
                name(batch)
            ));
        }
    }
    lane.replace(0, 0, &was)
}

/// A finite value of a chunk (not the fill value) or one that must keep its bits: its index, bits and value.
fn find(lane: &mut Lane, k: usize, params: &Params, finite: bool) -> Result<Option<(usize, u64, f64)>, String> {
    let n = params.extents.count().unwrap_or(0) as usize;
    let raw = lane.values(k, false, 0, n)?;
    let of = |i| (i, judge::number(&raw, params.dtype, i));
    let right = |&(_, (bits, x)): &(usize, (u64, f64))| {
        if finite { x.is_finite() && params.fill != Some(bits) } else { x.is_nan() }
    };
    // Not the first one: what comes before must be counted as right.
    Ok((n / 3..n).map(of).find(right).map(|(i, (bits, x))| (i, bits, x)))
}

/// Puts one value of the batch farther from the original than allowed, by one number of the type, or changes a bit of a
/// NaN. Whether there is such a value.
fn spoil(lane: &mut Lane, batch: &Batch, outcomes: &mut [Outcome], what: &str) -> Result<bool, String> {
    for k in (0..outcomes.len()).filter(|&k| outcomes[k].decoded).collect::<Vec<_>>() {
        let (piece, params) = (&batch.pieces[k], &batch.pieces[k].params);
        let rule = rule(piece, &outcomes[k]);
        let Some((i, bits, x)) = find(lane, k, params, what == "bound")? else { continue };
        let bits = if what == "bound" {
            let Some(y) = judge::beyond(x, rule, params.dtype) else { continue };
            if params.dtype.size == 4 { (y as f32).to_bits().into() } else { y.to_bits() }
        } else {
            bits ^ 1 << 3
        };
        lane.replace(k, i, &bits.to_le_bytes()[..params.dtype.size.into()])?;
        outcomes[k].found = lane.judge(k, usize::MAX, rule)?;
        return Ok(true);
    }
    Ok(false)
}

/// Tries the judge until it has seen a bound broken and a NaN changed in both types and all modes; each batch as the
/// CPU does.
fn prove(asked: &Asked) -> Result<String, String> {
    let (mut lane, mut random) = (Lane::new()?, Random(asked.seed ^ 0x5eed));
    let started = Instant::now();
    let (mut tried, mut seen) = (0, BTreeSet::new());
    while tried < TRIED || seen.len() < 4 * 4 {
        if started.elapsed() > Duration::from_secs(60) {
            return Err(format!("the judge was not tried in enough modes: {seen:?}"));
        }
        let batch = recipes::random(&mut random, asked.largest.min(6000), |_| 1);
        let mut outcomes = lane.run(&batch.pieces).map_err(|why| format!("{}: {why}", name(&batch)))?;
        if !outcomes[0].decoded || !sample(&mut lane, &batch, &outcomes)? {
            continue;
        }
        edges(&mut lane, &batch, &mut random)?;
        tried += 1;
        let params = &batch.pieces[0].params;
        for what in ["bound", "bits"] {
            let before = outcomes[0].found;
            if !spoil(&mut lane, &batch, &mut outcomes, what)? {
                continue;
            }
            let found = outcomes[0].found;
            let more = (found.broken - before.broken, found.moved - before.moved);
            if more != if what == "bound" { (1, 0) } else { (0, 1) } {
                return Err(format!("{}: of one {what} spoiled the judge sees {more:?}", name(&batch)));
            }
            if params.request.bound != Bound::Lossless {
                seen.insert((what, params.dtype.size, params.request.bound.mode().name()));
            }
        }
    }
    Ok(format!("the judge was tried on {tried} chunks and sees one value beyond its bound, and one bit"))
}
