// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valid frames, and what is changed in them.

use crate::generate::{self, Random};
use crate::targets::repair::repair;
use h5z_gpu::{Class, Dtype, Engine, Params, frame};
use std::collections::BTreeMap;
use std::fs;

/// Bytes of the longest chunk of a valid frame, and of the longest of the golden vectors that are taken too.
const RAW: usize = 4 << 10;
const VECTOR: u64 = 8 << 10;
const CODECS: [&str; 8] = ["stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"];
const REQUESTS: [&str; 21] = [
    "mode=lossless",
    "mode=lossless,codec=planes",
    "mode=lossless,codec=ndzip",
    "mode=abs,bound=1e-2",
    "mode=abs,bound=1e-3,codec=szx",
    "mode=rel,bound=1e-2,codec=szx",
    "mode=pw_rel,bound=1e-2,codec=szx",
    "mode=psnr,bound=60,codec=szx",
    "mode=abs,bound=1e-2,codec=lorenzo",
    "mode=abs,bound=0.5,codec=lorenzo",
    "mode=rel,bound=1e-3,codec=lorenzo",
    "mode=pw_rel,bound=1e-1,codec=lorenzo",
    "mode=psnr,bound=60,codec=lorenzo",
    "mode=abs,bound=1e-2,codec=dense",
    "mode=rel,bound=1e-3,codec=dense",
    "mode=pw_rel,bound=1e-1,codec=dense",
    "mode=abs,bound=1e-2,codec=planes",
    "mode=abs,bound=1e-4,codec=planes",
    "mode=abs,bound=1e3,codec=planes",
    "mode=rel,bound=1e-3,codec=planes",
    "mode=psnr,bound=50,codec=planes",
];
const FIELDS: [&str; 18] = [
    "wave",
    "noise",
    "bits",
    "hostile",
    "sparse",
    "constant",
    "steps",
    "masked",
    "ramp",
    "text",
    "clock",
    "tens",
    "hundredths",
    "uneven-hundredths",
    "odd-hundredths",
    "unpacked",
    "holed-hundredths",
    "packed",
];
const SHAPES: [&[u64]; 7] = [&[60], &[9, 17], &[5, 6, 7], &[1000], &[2, 3, 4, 20], &[4096], &[33, 31]];

/// Valid frames by codec, type and mode.
pub struct Pool(Vec<(String, Vec<Vec<u8>>)>);

/// All types of numbers, in both byte orders, and bytes.
fn types() -> Vec<Dtype> {
    let integers = [1, 2, 4, 8]
        .into_iter()
        .flat_map(|size| [false, true].map(|signed| Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) }));
    let numbers = integers.chain([Dtype::F16, Dtype::BFLOAT16, Dtype::F32, Dtype::F64]);
    let both = numbers.flat_map(|d| [d, Dtype { big_endian: d.size > 1, ..d }]);
    both.chain([1, 3, 12].map(Dtype::bytes)).collect()
}

/// Codec, type and mode of a valid frame.
fn label(frame: &[u8]) -> String {
    let (codec, mode, word) =
        (usize::from(frame[9]), frame[10], u32::from_le_bytes([12, 13, 14, 15].map(|k| frame[k])));
    let (class, size, big) = (word & 15, word >> 4 & 0xFF, if word >> 12 & 1 == 1 { "be" } else { "" });
    let name = match (class, size, word >> 24) {
        (1, 2, 7) => "bf",
        (1, ..) => "f",
        (0, ..) => ["u", "i"][(word >> 14 & 1) as usize],
        _ => "bytes",
    };
    let bits = if class > 1 { size } else { 8 * size };
    format!("{} {name}{bits}{big} mode {mode}", CODECS.get(codec).unwrap_or(&"?"))
}

impl Pool {
    pub fn new() -> Pool {
        let mut pool = BTreeMap::<String, Vec<Vec<u8>>>::new();
        let mut put = |frame: Vec<u8>| pool.entry(label(&frame)).or_default().push(frame);
        let engine = Engine::with_threads(1);
        for (t, dtype) in types().into_iter().enumerate() {
            let takes = if dtype.takes_bound() { &REQUESTS[..] } else { &REQUESTS[..2] };
            for (r, request) in takes.iter().enumerate() {
                for (s, dims) in SHAPES.iter().enumerate() {
                    let len = dims.iter().product::<u64>() as usize * usize::from(dtype.size);
                    let all = if request.starts_with("mode=lossless") { FIELDS.len() } else { 3 };
                    for k in 0..if len > RAW { 0 } else { all } {
                        let name = FIELDS[(7 * t + 3 * s + 5 * r + k) % FIELDS.len()];
                        let raw = generate::input(name, 7, dtype, dims, None, len);
                        let request = request.parse().expect("a request");
                        put(engine.encode(&Params::new(request, dtype, dims).expect("a chunk"), &raw));
                    }
                }
            }
        }
        vectors().for_each(put);
        Pool(pool.into_iter().collect())
    }

    /// A valid frame's name, and the frame changed, `most` times or less.
    pub fn changed(&self, random: &mut Random, most: usize) -> (&str, Vec<u8>) {
        let (name, frames) = &self.0[random.below(self.0.len())];
        let mut frame = frames[random.below(frames.len())].clone();
        let plain = random.below(10) == 0;
        if !plain {
            // What `repair` is to leave broken: most often nothing.
            let broken = random.below(16) == 0;
            frame[..8].fill_with(|| if broken && random.below(3) == 0 { 0x80 } else { 0 });
        }
        for _ in 0..=random.below(most) {
            match random.below(8) {
                0 => self.change_header(&mut frame, random),
                1 => self.splice(frames, &mut frame, random),
                2 => change_length(&mut frame, random),
                _ => change_bytes(&mut frame, random),
            }
        }
        (name, if plain { frame } else { repair(&frame, None) })
    }

    /// A field of the header: any value, or that of another frame.
    fn change_header(&self, frame: &mut [u8], random: &mut Random) {
        let other = &self.0[random.below(self.0.len())].1;
        let other = &other[random.below(other.len())];
        let extents = 56..56 + 4 * usize::from(frame[11] & 7).max(1);
        let field = match random.below(8) {
            0 => 9..10,
            1 => 10..11,
            2 => 11..12,
            3 => 12..16,
            4 => 32..40,
            5 => 48..49,
            6 => 16..24,
            _ => extents,
        };
        let Some(to) = frame.get_mut(field.clone()) else { return };
        match (random.below(4), other.get(field)) {
            (0, _) => to.fill_with(|| random.bits() as u8),
            (1, _) => to[0] = to[0].wrapping_add(random.below(3) as u8).wrapping_sub(1),
            (_, Some(from)) => to.copy_from_slice(from),
            _ => to.fill(0),
        }
    }

    /// A run of another frame of the same kind.
    fn splice(&self, frames: &[Vec<u8>], frame: &mut [u8], random: &mut Random) {
        let from = &frames[random.below(frames.len())];
        let at = place(frame, random);
        let len = random.below(64).min(frame.len() - at).min(from.len().saturating_sub(at));
        if len > 0 {
            frame[at..at + len].copy_from_slice(&from[at..at + len]);
        }
    }
}

/// Frames of the golden vectors, where this is started beside them.
fn vectors() -> impl Iterator<Item = Vec<u8>> {
    let folders = fs::read_dir("tests/vectors/v2").into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let paths = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "bin"));
    let frames = paths.filter_map(|path| fs::read(path).ok());
    frames.filter(|f| frame::header(f).is_ok_and(|h| h.raw_len <= VECTOR) && f.len() as u64 <= VECTOR)
}

/// Where the first section begins, as the header says, or the extents.
fn sections(frame: &[u8]) -> usize {
    let begin = 56 + 4 * usize::from(frame[11] & 15) + 8 * usize::from(frame[48] & 15);
    if begin.next_multiple_of(8) < frame.len() { begin.next_multiple_of(8) } else { 56.min(frame.len() - 1) }
}

/// A place behind the header, more often near a beginning.
fn place(frame: &[u8], random: &mut Random) -> usize {
    let begin = sections(frame);
    let behind = frame.len() - begin;
    let near = [behind, behind, 64, 16][random.below(4)];
    begin + random.below(near.min(behind))
}

/// Bytes behind the header, or now and then the sections' lengths.
fn change_bytes(frame: &mut [u8], random: &mut Random) {
    let table = 56 + 4 * usize::from(frame[11] & 15);
    let at = match random.below(24) {
        0 if table + 8 < frame.len() => table + 8 * random.below(usize::from(frame[48] & 3)),
        _ => place(frame, random),
    };
    let at = at.min(frame.len() - 1);
    let word = at & !3;
    match (random.below(8), frame.get_mut(word..word + 4)) {
        (0, Some(w)) => w.fill(0),
        (1, Some(w)) => w.fill(0xFF),
        (2, Some(w)) => w.fill_with(|| random.bits() as u8),
        (3, Some(w)) => {
            let n = u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
            w.copy_from_slice(&n.wrapping_add(random.below(5) as u32).wrapping_sub(2).to_le_bytes());
        }
        (4, _) => frame[at] = random.bits() as u8,
        (5, _) => frame[at] = frame[at].wrapping_add([1, 0xFF][random.below(2)]),
        _ => frame[at] ^= 1 << random.below(8),
    }
}

/// Cuts the frame, makes it longer, or moves what is behind a place by whole words of 8 bytes.
fn change_length(frame: &mut Vec<u8>, random: &mut Random) {
    let (at, words) = (place(frame, random) & !7, 8 * (1 + random.below(4)));
    match random.below(4) {
        0 => frame.truncate(place(frame, random).max(57)),
        1 => frame.extend((0..1 + random.below(32)).map(|k| (k * 37) as u8)),
        2 if at + words < frame.len() && at >= 56 => drop(frame.drain(at..at + words)),
        _ => {
            frame.splice(at..at, std::iter::repeat_n(random.bits() as u8, words)).for_each(drop);
        }
    }
}
