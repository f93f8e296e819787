// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the writer's choice of a codec (C = 0) costs beside the best choice, on chunks of fields.
//!
//! ```text
//! choice LIST [--chunks BYTES,BYTES] [--bounds r,r] [--per-field N] [--times N] [--pw-rel] [--relative] [--cells]
//! ```
//! LIST has a line a field: name, path, f32 or f64, extents as 512x512x512. Up to N boxes of each field that have at
//! most that many bytes, all over it, are encoded by every codec under absolute bounds of r times the field's range
//! (`--pw-rel`: under pointwise relative ones of r; `--relative`: under r times each box's own range), each a cell.
//! Prints by chunk size and bound how much larger than the smallest frame the chosen one is, how often each codec is
//! chosen, what choosing takes (medians: of all cells, of those of planes, and in percent of encoding by planes alone;
//! all of choosing in percent of all encoding), and the worst cells; `--cells` prints them all. Then the same of a
//! field's boxes together, beside the codec that makes least of all of them: what a user who tries every codec would
//! take.

use h5z_gpu::{Bound, Codec, Dtype, Engine, Params, Request};
use std::collections::BTreeMap;
use std::time::Instant;

/// One chunk under one bound.
struct Cell {
    what: String,
    /// Frame over smallest frame.
    over: f64,
    /// Bytes of the frame, and of each codec's.
    len: usize,
    lens: [usize; 5],
    codec: &'static str,
    /// Seconds of choosing, and of encoding by the codec chosen.
    times: [f64; 2],
    text: String,
}

struct Field {
    name: String,
    dtype: Dtype,
    dims: Vec<usize>,
    raw: Vec<u8>,
}

fn field(line: &str) -> Option<Field> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[name, path, dtype, dims, ..] = &words[..] else { return None };
    Some(Field {
        name: name.into(),
        dtype: if dtype == "f64" { Dtype::F64 } else { Dtype::F32 },
        dims: dims.split('x').map(|d| d.parse().expect("an extent")).collect(),
        raw: std::fs::read(path).expect("a field's file"),
    })
}

impl Field {
    /// Largest less smallest finite value, 1 where that is nothing; 1e20 and above count as missing.
    fn range(&self) -> f64 {
        let value = |b: &[u8]| match b.len() {
            4 => f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes"))),
            _ => f64::from_le_bytes(b.try_into().expect("8 bytes")),
        };
        let values = self.raw.chunks_exact(self.dtype.size.into()).map(value).filter(|v| v.abs() < 9e19);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, z), v| (a.min(v), z.max(v)));
        if high > low { high - low } else { 1.0 }
    }

    /// Up to `most` boxes of at most `bytes` bytes: extents and values.
    fn boxes(&self, bytes: usize, most: usize) -> Vec<(Vec<u64>, Vec<u8>)> {
        let size = usize::from(self.dtype.size);
        let mut sides = self.dims.clone();
        while sides.iter().product::<usize>() * size > bytes {
            let longest = (0..sides.len()).max_by_key(|&k| sides[k]).expect("an axis");
            sides[longest] = sides[longest].div_ceil(2);
        }
        let counts: Vec<usize> = self.dims.iter().zip(&sides).map(|(d, s)| d.div_ceil(*s)).collect();
        let all: usize = counts.iter().product();
        let many = most.min(all);
        (0..many).map(|i| self.cut(&sides, &counts, (2 * i + 1) * all / (2 * many))).collect()
    }

    fn cut(&self, sides: &[usize], counts: &[usize], mut number: usize) -> (Vec<u64>, Vec<u8>) {
        let size = usize::from(self.dtype.size);
        let (mut dims, mut starts) = (vec![0; sides.len()], vec![0]);
        let mut stride = size;
        for k in (0..sides.len()).rev() {
            let first = number % counts[k] * sides[k];
            number /= counts[k];
            let many = sides[k].min(self.dims[k] - first);
            dims[k] = many as u64;
            starts = (first..first + many).flat_map(|i| starts.iter().map(move |s| s + i * stride)).collect();
            stride *= self.dims[k];
        }
        (dims, starts.into_iter().flat_map(|at| &self.raw[at..at + size]).copied().collect())
    }
}

/// Length and first bytes of a frame, and the best of some times.
fn encode(request: Request, dtype: Dtype, dims: &[u64], raw: &[u8], times: usize) -> (usize, [u8; 2], f64) {
    let params = Params::new(request, dtype, dims).expect("a request");
    let engine = Engine::with_threads(1);
    let mut best = (0, [0; 2], f64::INFINITY);
    for _ in 0..times {
        let begin = Instant::now();
        let frame = engine.encode(&params, raw);
        best = (frame.len(), [frame[9], frame[10]], best.2.min(begin.elapsed().as_secs_f64()));
    }
    best
}

fn cell(what: String, bound: Bound, dtype: Dtype, dims: &[u64], raw: &[u8], times: usize) -> Cell {
    let of = |codec, bound| encode(Request { codec, bound }, dtype, dims, raw, times);
    let lossless = [Codec::Planes, Codec::Ndzip].map(|codec| of(codec, Bound::Lossless));
    let [szx, lorenzo] = [Codec::Szx, Codec::Lorenzo].map(|codec| of(codec, bound));
    let planes = if matches!(bound, Bound::PointwiseRelative(_)) { szx } else { of(Codec::Planes, bound) };
    let auto = of(Codec::Auto, bound);
    let all = [szx, lorenzo, planes, lossless[0], lossless[1]];
    let (codec, alone) = match auto.1 {
        [0, _] => ("stored", auto.2),
        [1, _] => ("szx", szx.2),
        [2, _] => ("lorenzo", lorenzo.2),
        [_, 9] => ("lossless", lossless[0].2),
        _ => ("planes", planes.2),
    };
    let ratios = all.map(|frame| format!("{:.2}", raw.len() as f64 / frame.0 as f64)).join(" ");
    Cell {
        what,
        over: auto.0 as f64 / all.iter().map(|frame| frame.0).min().expect("five") as f64,
        len: auto.0,
        lens: all.map(|frame| frame.0),
        codec,
        times: [auto.2 - alone, alone],
        text: ratios,
    }
}

fn report(title: &str, cells: &[&Cell]) {
    let mut over: Vec<f64> = cells.iter().map(|c| c.over).collect();
    over.sort_by(f64::total_cmp);
    let at = |part: f64| over[((over.len() - 1) as f64 * part) as usize];
    let mean = (over.iter().map(|o| o.ln()).sum::<f64>() / over.len() as f64).exp();
    let mut chosen = BTreeMap::new();
    cells.iter().for_each(|c| *chosen.entry(c.codec).or_insert(0) += 1);
    let median = |k: usize, codec: &str| {
        let mut times: Vec<f64> =
            cells.iter().filter(|c| codec.is_empty() || c.codec == codec).map(|c| c.times[k] * 1e6).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    };
    let share = |k: usize| 100.0 * median(0, "planes") / median(k, "planes");
    let sum = |k: usize| cells.iter().map(|c| c.times[k]).sum::<f64>();
    println!(
        "{title:<16} {:>5} {mean:7.3} {:6.3} {:6.3} {:6.3} {:5} {:6.0} {:6.0} {:6.0} {:6.0}  {chosen:?}",
        over.len(),
        at(0.95),
        at(0.99),
        at(1.0),
        over.iter().filter(|&&o| o > 1.5).count(),
        median(0, ""),
        median(0, "planes"),
        share(1),
        100.0 * sum(0) / sum(1),
    );
}

/// A field's cells of one chunk size and bound: bytes over those of the codec that makes least of all of them; and its
/// line.
fn together(cells: &[&Cell]) -> (f64, String) {
    let len: usize = cells.iter().map(|c| c.len).sum();
    let lens: [usize; 5] = std::array::from_fn(|k| cells.iter().map(|c| c.lens[k]).sum());
    let over = len as f64 / *lens.iter().min().expect("five") as f64;
    let mut chosen = BTreeMap::new();
    cells.iter().for_each(|c| *chosen.entry(c.codec).or_insert(0) += 1);
    (over, format!("{lens:?} {chosen:?}"))
}

/// Prints what is lost of whole fields by chunk size, and the worst of them.
fn report_fields(cells: &[&Cell], shown: usize) {
    let mut fields: BTreeMap<(&str, &str, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let words: Vec<&str> = cell.what.split(' ').collect();
        fields.entry((words[1], words[3], words[0])).or_default().push(cell);
    }
    let mut all: Vec<_> = fields.iter().map(|(key, cells)| (*key, together(cells))).collect();
    all.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let mut sizes: Vec<&str> = all.iter().map(|f| f.0.0).collect();
    sizes.sort_by_key(|s| s.parse::<f64>().unwrap_or(0.0) as u64);
    sizes.dedup();
    println!("whole fields, chunk: fields, mean, largest, above 1.15");
    for size in sizes {
        let over: Vec<f64> = all.iter().filter(|f| f.0.0 == size).map(|f| f.1.0).collect();
        let mean = (over.iter().map(|o| o.ln()).sum::<f64>() / over.len() as f64).exp();
        let above = over.iter().filter(|&&o| o > 1.15).count();
        println!("{size:<16} {:>5} {mean:7.4} {:7.4} {above:5}", over.len(), over[0]);
    }
    for ((size, bound, name), (over, line)) in &all[..shown.min(all.len())] {
        println!("{over:.3}  {name} {size} {bound}: {line}");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name);
    let number = |name: &str, or: &str| -> Vec<f64> {
        let text = option(name).map_or(or, |i| &arguments[i + 1]);
        text.split(',').map(|v| v.parse().expect("a number")).collect()
    };
    let sizes = number("--chunks", "65536,1048576,4194304");
    let bounds = number("--bounds", "1e-2,1e-3,1e-4");
    let most = number("--per-field", "4")[0] as usize;
    let times = number("--times", "3")[0] as usize;
    let list = std::fs::read_to_string(&arguments[0]).expect("a list of fields");
    let mut groups: BTreeMap<(usize, usize), Vec<Cell>> = BTreeMap::new();
    for field in list.lines().filter_map(field) {
        let range = field.range();
        for (s, &size) in sizes.iter().enumerate() {
            for (i, (dims, raw)) in field.boxes(size as usize, most).into_iter().enumerate() {
                for (b, &r) in bounds.iter().enumerate() {
                    let pointwise = option("--pw-rel").is_some();
                    let bound = match () {
                        () if pointwise => Bound::PointwiseRelative(r),
                        () if option("--relative").is_some() => Bound::Relative(r),
                        () => Bound::Absolute(r * range),
                    };
                    let what = format!("{} {size} {i} {r:e}", field.name);
                    groups.entry((s, b)).or_default().push(cell(what, bound, field.dtype, &dims, &raw, times));
                }
            }
        }
    }
    println!("chunk, bound     cells    mean    p95    p99    max  >1.5 choice µs, planes, %, all %  chosen");
    for ((s, b), cells) in &groups {
        report(&format!("{} {:e}", sizes[*s], bounds[*b]), &cells.iter().collect::<Vec<_>>());
    }
    let mut all: Vec<&Cell> = groups.values().flatten().collect();
    report("all", &all);
    all.sort_by(|a, b| b.over.total_cmp(&a.over));
    let shown = if option("--cells").is_some() { all.len() } else { 10 };
    println!("over  chosen   cell: ratio of szx, lorenzo, planes, planes lossless, ndzip");
    for c in &all[..shown.min(all.len())] {
        println!("{:.2}  {:<8} {}: {}", c.over, c.codec, c.what, c.text);
    }
    report_fields(&all, shown.max(25));
}
