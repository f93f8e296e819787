// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where `planes` gets slow, if anywhere: a grid of bounds, tiles of all kinds, small chunks, masks.
//!
//! Nothing is compared with the CPU here: the parity checks do that.

use super::{Field, median, params, range_of, rate};
use h5z_gpu::{Bound, Codec, DecodeJob, Dtype, EncodeJob, Params};

/// Bounds of the grid, parts of the range: 1e-1 to 1e-8, eight a decade.
const BOUNDS: u32 = 57;
/// Bytes from which a field counts for the lowest cell.
const LARGE: usize = 100_000_000;
/// Tiles of what is made here.
const TILES: usize = 8192;
/// Values of a tile.
const TILE: usize = 4096;

/// GB/s of encoding and decoding, and the ratio.
#[derive(Clone, Copy)]
struct Cell {
    encode: f64,
    decode: f64,
    ratio: f64,
}

/// Times pieces as chunks of one batch.
fn cell(jobs: &[EncodeJob<'_>], runs: usize) -> Cell {
    let bytes: usize = jobs.iter().map(|j| j.raw.len()).sum();
    let (frames, times) = h5z_gpu::testing::encode_times(jobs, runs, 16).expect("the device encodes");
    let mut outs: Vec<Vec<u8>> = jobs.iter().map(|j| vec![0; j.raw.len()]).collect();
    let mut back: Vec<DecodeJob<'_>> =
        frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
    let decode = h5z_gpu::testing::decode_times(&mut back, runs, 16).map_or(0.0, |(right, times)| {
        assert!(right.iter().all(|r| *r), "the device refuses its own frame");
        rate(bytes, median(times))
    });
    let stored: usize = frames.iter().map(Vec::len).sum();
    Cell { encode: rate(bytes, median(times)), decode, ratio: bytes as f64 / stored as f64 }
}

/// A field as one chunk.
fn whole(f: &Field, codec: Codec, bound: Bound, runs: usize) -> Cell {
    let p = params(f, &f.dims, codec, bound);
    cell(&[EncodeJob { params: &p, raw: &f.raw }], runs)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + f64::ln(v)));
    (sum / n).exp()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn cliffs(fields: &[Field], runs: usize) {
    grid(fields, runs.min(5));
    kinds(runs);
    chunks(fields, runs);
    masks(&fields[0], runs);
    rest(fields, runs);
    steps(fields, runs);
}

/// The kernels of encoding, in milliseconds: fields by bounds, and tiles of each kind.
fn steps(fields: &[Field], runs: usize) {
    println!("\nplanes, the kernels of encoding, ms");
    let print = |what: String, p: &Params, raw: &[u8]| {
        let steps =
            h5z_gpu::testing::encode_steps(&[EncodeJob { params: p, raw }], runs, 16).expect("the device encodes");
        let steps = steps
            .into_iter()
            .map(|(name, ms)| format!("{} {:.3}", name.trim_start_matches("planes_lossy_"), median(ms)));
        println!("{what:24} {}", steps.collect::<Vec<_>>().join(", "));
    };
    for f in fields {
        let range = range_of(f);
        for r in [1e-3, 1e-5, 1e-6, 1e-7] {
            let p = params(f, &f.dims, Codec::Planes, Bound::Absolute(r * range));
            print(format!("{} {r:e}", f.name), &p, &f.raw);
        }
    }
    let request = h5z_gpu::Request::new(Codec::Planes, Bound::Absolute(1e-3));
    let p = Params::new(request, Dtype::F32, &[(TILES * TILE) as u64]).expect("a sensible request");
    for kind in ["", "wide", "raw", "exceptions", "full"] {
        let raw: Vec<u8> = (0..TILES * TILE).flat_map(|i| value(kind, i).to_le_bytes()).collect();
        print(format!("all {kind}"), &p, &raw);
    }
}

/// Fields by bounds.
fn grid(fields: &[Field], runs: usize) {
    println!(
        "\nplanes, one chunk a field, absolute bounds: part of the range: ratio, encode, decode GB/s (median of {runs})"
    );
    let (mut cells, mut quarter, mut half) = (0, [0; 2], [0; 2]);
    let mut least = [f64::INFINITY; 2];
    for f in fields {
        let range = range_of(f);
        let all: Vec<Cell> = (0..BOUNDS)
            .map(|k| whole(f, Codec::Planes, Bound::Absolute(range * 10f64.powf(-1.0 - f64::from(k) / 8.0)), runs))
            .collect();
        // 1e-2 to 1e-4.
        let own = [0, 1].map(|way| middle(all[8..25].iter().map(|c| [c.encode, c.decode][way]).collect()));
        println!(
            "{:10} {:6.1} MB, own median of 1e-2 to 1e-4: {:.0} / {:.0}",
            f.name,
            f.raw.len() as f64 / 1e6,
            own[0],
            own[1]
        );
        for (k, c) in all.iter().enumerate() {
            let end = if k % 4 == 3 || k + 1 == all.len() { "\n" } else { " |" };
            let bound = 10f64.powf(-1.0 - k as f64 / 8.0);
            print!(" {bound:8.1e} {:8.2} {:5.0} {:5.0}{end}", c.ratio, c.encode, c.decode);
            cells += 1;
            for (way, speed) in [c.encode, c.decode].into_iter().enumerate() {
                quarter[way] += i32::from(speed < own[way] / 4.0);
                half[way] += i32::from(speed < own[way] / 2.0);
                if f.raw.len() >= LARGE {
                    least[way] = least[way].min(speed);
                }
            }
        }
    }
    for (way, name) in ["encode", "decode"].into_iter().enumerate() {
        println!(
            "{name}: {} of {cells} cells under a quarter of the field's own median, {} under half ({:.1} %); lowest \
             of fields above 100 MB {:.0}",
            quarter[way],
            half[way],
            100.0 * f64::from(half[way]) / f64::from(cells),
            least[way]
        );
    }
}

/// Noise from 0 to 1.
fn noise(i: usize) -> f32 {
    let h = (i as u32).wrapping_mul(0x9e37_79b9);
    let h = (h ^ h >> 15).wrapping_mul(0x85eb_ca6b);
    (h ^ h >> 13) as f32 / u32::MAX as f32
}

/// A value of a tile of this kind along a line, under the bound 1e-3.
fn value(kind: &str, i: usize) -> f32 {
    let wave = (i as f32 * 1e-3).sin();
    match kind {
        "wide" => wave + 40.0 * noise(i),
        "raw" => f32::from_bits((noise(i) * 4.2e9) as u32 ^ (i as u32).wrapping_mul(0x85eb_ca6b)),
        "exceptions" if i.is_multiple_of(41) => f32::NAN,
        "full" => wave + 8.0 * noise(i),
        _ => wave + 0.02 * noise(i),
    }
}

/// Tiles of two kinds.
fn kinds(runs: usize) {
    println!(
        "\nplanes, {TILES} tiles of {TILE} f32 along a line, bound 1e-3, a share of them of another kind: encode, \
         decode GB/s, ratio"
    );
    let p =
        Params::new(h5z_gpu::Request::new(Codec::Planes, Bound::Absolute(1e-3)), Dtype::F32, &[(TILES * TILE) as u64])
            .expect("a sensible request");
    for kind in ["wide", "raw", "exceptions", "full"] {
        print!("{kind:10}");
        for share in [0.0, 0.001, 0.01, 0.2, 0.5, 1.0] {
            let raw: Vec<u8> = (0..TILES * TILE)
                .flat_map(|i| {
                    let other = f64::from(noise(i / TILE + 77)) < share;
                    value(if other { kind } else { "" }, i).to_le_bytes()
                })
                .collect();
            let c = cell(&[EncodeJob { params: &p, raw: &raw }], runs);
            print!("  {share:5}: {:4.0} {:4.0} {:5.2}", c.encode, c.decode, c.ratio);
        }
        println!();
    }
}

/// Fields in small chunks of whole rows, against one chunk.
fn chunks(fields: &[Field], runs: usize) {
    println!(
        "\nplanes, 1e-3 of the range, fields as batches of small chunks of whole rows: encode, decode GB/s, ratio"
    );
    let mut means: [Vec<Cell>; 5] = Default::default();
    for f in fields {
        let (range, size) = (range_of(f), usize::from(f.dtype.size));
        let row = *f.dims.last().expect("an extent") as usize;
        let row = if row > 65536 { 1024 } else { row };
        let mut line = Vec::new();
        for (chunk, bound) in [
            (0, Bound::Absolute(1e-3 * range)),
            (4 << 20, Bound::Absolute(1e-3 * range)),
            (4 << 20, Bound::Relative(1e-3)),
            (256 << 10, Bound::Absolute(1e-3 * range)),
            (256 << 10, Bound::Relative(1e-3)),
        ] {
            let len = if chunk == 0 {
                f.raw.len() / (row * size) * row * size
            } else {
                (chunk / (row * size)).max(1) * row * size
            };
            let pieces: Vec<&[u8]> = f.raw.chunks_exact(len).take((512 << 20) / len).collect();
            let p = params(f, &[(len / size / row) as u64, row as u64], Codec::Planes, bound);
            let jobs: Vec<EncodeJob<'_>> = pieces.iter().map(|raw| EncodeJob { params: &p, raw }).collect();
            line.push(cell(&jobs, runs));
        }
        means.iter_mut().zip(&line).for_each(|(all, c)| all.push(*c));
        print_row(&f.name, &line);
    }
    let all: Vec<Cell> = means
        .iter()
        .map(|of| Cell {
            encode: mean(of.iter().map(|c| c.encode)),
            decode: mean(of.iter().map(|c| c.decode)),
            ratio: mean(of.iter().map(|c| c.ratio)),
        })
        .collect();
    print_row("mean", &all);
}

fn print_row(name: &str, cells: &[Cell]) {
    print!("{name:10}");
    for (what, c) in ["one", "4 MiB abs", "4 MiB rel", "256 KiB abs", "256 KiB rel"].iter().zip(cells) {
        print!("  {what}: {:4.0} {:4.0} {:5.2}", c.encode, c.decode, c.ratio);
    }
    println!();
}

/// A field with holes.
fn masks(f: &Field, runs: usize) {
    println!("\nplanes, 1e-3 of the range, {} with holes of NaN: encode, decode GB/s, ratio", f.name);
    let size = usize::from(f.dtype.size);
    let bound = Bound::Absolute(1e-3 * range_of(f));
    let nan = match size {
        4 => f32::NAN.to_le_bytes().to_vec(),
        _ => f64::NAN.to_le_bytes().to_vec(),
    };
    let rows = [*f.dims.last().expect("an extent") as usize, f.dims[f.dims.len().saturating_sub(2)] as usize];
    let inside = |i: usize| (i % rows[0], i / rows[0] % rows[1], i / rows[0] / rows[1]);
    for what in ["none", "one a tile", "a third"] {
        let mut raw = f.raw.clone();
        for (i, v) in raw.chunks_exact_mut(size).enumerate() {
            let (x, y, z) = inside(i);
            let hole = match what {
                "one a tile" => x % 32 == 11 && y % 16 == 5 && z % 8 == 3,
                // Land with a shore.
                "a third" => ((x as f32 / 90.0).sin() + (y as f32 / 70.0).cos()) > 0.55,
                _ => false,
            };
            if hole {
                v.copy_from_slice(&nan);
            }
        }
        let p = params(f, &f.dims, Codec::Planes, bound);
        let c = cell(&[EncodeJob { params: &p, raw: &raw }], runs);
        println!("{what:10} {:4.0} {:4.0} {:6.2}", c.encode, c.decode, c.ratio);
    }
}

/// Without a bound: whole fields, and chunks that do not fit tiles.
fn rest(fields: &[Field], runs: usize) {
    println!("\nplanes without a bound: encode, decode GB/s, ratio");
    let all: Vec<Cell> = fields.iter().map(|f| whole(f, Codec::Planes, Bound::Lossless, runs)).collect();
    for (f, c) in fields.iter().zip(&all) {
        println!("{:10} {:4.0} {:4.0} {:5.2}", f.name, c.encode, c.decode, c.ratio);
    }
    println!(
        "mean       {:4.0} {:4.0} {:5.2}",
        mean(all.iter().map(|c| c.encode)),
        mean(all.iter().map(|c| c.decode)),
        mean(all.iter().map(|c| c.ratio))
    );
    let f = &fields[0];
    let size = usize::from(f.dtype.size);
    for dims in [[40u64, 40, 44], [20, 40, 44], [32, 64, 64], [64, 32, 32]] {
        let len = dims.iter().product::<u64>() as usize * size;
        let p = params(f, &dims, Codec::Planes, Bound::Lossless);
        let jobs: Vec<EncodeJob<'_>> =
            f.raw.chunks_exact(len).take((256 << 20) / len).map(|raw| EncodeJob { params: &p, raw }).collect();
        let c = cell(&jobs, runs);
        println!(
            "{} of {} in chunks of {dims:?}: {:4.0} {:4.0} {:5.2}",
            f.name,
            jobs.len(),
            c.encode,
            c.decode,
            c.ratio
        );
    }
}
