// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames for the readers in other languages, which share no code with the crate: those of the encoder, whole ones that
//! no writer makes, and both changed. The tests leave them with the crate's answers in target/tmp/readers;
//! tests/hosts/test_reference.py and `make java` read them there.

use crate::common::draft::{BIG_ENDIAN, Draft};
use crate::common::frames;
use crate::common::generate::{self, Random};
use crate::common::planes::random;
use crate::common::seal::{lorenzo_kinds, seal};
use crate::common::vectors::{CODECS, listed_cases};
use crate::common::{by_hand, fnv, fuzz};
use h5z_gpu::{Class, Dtype, Engine, Params};
use std::path::Path;

/// Decodes frames, and keeps them with what became of each: the frame's length and the expected length as u32, the
/// hash of the decoded bytes as u64, 0 where the frame is refused, and the frame.
pub struct Answers {
    engines: [Engine; 2],
    file: Vec<u8>,
    pub read: u32,
    pub refused: u32,
}

impl Answers {
    pub fn new() -> Self {
        let engines = [1, 3].map(Engine::with_threads);
        Answers { engines, file: Vec::new(), read: 0, refused: 0 }
    }

    /// What one thread and several make of a frame.
    pub fn of(&mut self, name: &str, frame: &[u8], raw_len: usize) -> h5z_gpu::Result<Vec<u8>> {
        let [one, several] = [0, 1].map(|k| self.engines[k].decode(frame, raw_len as u64));
        // Of several damaged tiles threads may name another one.
        assert!(one.as_ref().ok() == several.as_ref().ok(), "{name}: one thread and three differ");
        self.file.extend([frame.len(), raw_len].map(|n| (n as u32).to_le_bytes()).concat());
        self.file.extend(one.as_ref().map_or(0, |raw| fnv(raw)).to_le_bytes());
        self.file.extend(frame);
        *(if one.is_ok() { &mut self.read } else { &mut self.refused }) += 1;
        one
    }

    /// Leaves them for other readers.
    pub fn keep(self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), self.file).unwrap();
    }
}

const I32: Dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
const I64: Dtype = Dtype { size: 8, ..I32 };

/// What frames are asked for: by the writer's choice, `szx` and `ndzip`; and by each of three codecs.
const REQUESTS: [[&str; 6]; 4] = [
    [
        "mode=lossless,codec=ndzip",
        "mode=abs,bound=1e-3,codec=szx",
        "mode=abs,bound=0.3",
        "mode=rel,bound=1e-4,codec=szx",
        "mode=pw_rel,bound=1e-2,codec=szx",
        "mode=psnr,bound=80",
    ],
    [
        "mode=abs,bound=1e-3,codec=lorenzo",
        "mode=abs,bound=0.3,codec=lorenzo",
        "mode=rel,bound=1e-2,codec=lorenzo",
        "mode=pw_rel,bound=1e-2,codec=lorenzo",
        "mode=abs,bound=1e-6,codec=lorenzo",
        "mode=psnr,bound=60,codec=lorenzo",
    ],
    [
        "mode=abs,bound=1e-3,codec=dense",
        "mode=abs,bound=0.3,codec=dense",
        "mode=rel,bound=1e-2,codec=dense",
        "mode=pw_rel,bound=1e-2,codec=dense",
        "mode=abs,bound=1e-6,codec=dense",
        "mode=psnr,bound=60,codec=dense",
    ],
    [
        "mode=abs,bound=1e-3,codec=planes",
        "mode=abs,bound=0.3,codec=planes",
        "mode=rel,bound=1e-4,codec=planes",
        "mode=lossless,codec=planes",
        "mode=abs,bound=1e-7,codec=planes",
        "mode=psnr,bound=60,codec=planes",
    ],
];

/// Frames of the encoder: of every generator, type and mode, over one to five extents and partial tiles.
fn written() -> Vec<(String, Vec<u8>, usize)> {
    let engine = Engine::with_threads(2);
    let be = |d| Dtype { big_endian: true, ..d };
    let mut frames = Vec::new();
    let shapes: [&[u64]; 13] = [
        &[1],
        &[130],
        &[9000],
        &[70, 140],
        &[17, 33, 40],
        &[2, 3, 20, 90],
        &[2, 1, 3, 7, 210],
        &[3, 5000],
        &[250, 40],
        &[9, 32, 64],
        &[1500, 3],
        &[9, 16, 32, 2],
        &[8, 11, 20],
    ];
    for (t, d) in [Dtype::F32, Dtype::F64, be(Dtype::F32), be(Dtype::F64), Dtype::bytes(3)].into_iter().enumerate() {
        for (g, generator) in generate::NAMES.iter().enumerate() {
            for (s, dims) in shapes.iter().enumerate() {
                // Two requests out of six for each combination: all meet all.
                let at = [(t + g + s) % 6, (t + g + s + 3) % 6];
                let both = REQUESTS.map(|list| at.map(|k| list[k]));
                for request in both.into_iter().flatten() {
                    let n = dims.iter().product::<u64>() as usize * usize::from(d.size);
                    let mut params = Params::new(request.parse().unwrap(), d, dims).unwrap();
                    params.fill = Some(if d.size == 4 { 1e20f32.to_bits().into() } else { 1e20f64.to_bits() });
                    let raw = generate::input(generator, (t + s) as u64, d, dims, params.fill, n);
                    frames.push((format!("{generator} {dims:?} {request} {d:?}"), engine.encode(&params, &raw), n));
                }
            }
        }
    }
    // More tiles than 64 and than 128, and long runs of zeros.
    let long: [(&str, &[u64], &str); 5] = [
        ("wave", &[17, 17, 513], "mode=abs,bound=0.1,codec=lorenzo"),
        ("masked", &[17, 17, 520], "mode=rel,bound=1e-2,codec=lorenzo"),
        ("steps", &[17, 17, 1030], "mode=abs,bound=1.25,codec=lorenzo"),
        ("rare", &[33, 33, 449], "mode=abs,bound=0.5,codec=lorenzo"),
        ("rare", &[60_000], "mode=abs,bound=0.5,codec=lorenzo"),
    ];
    for (generator, dims, request) in long {
        let n = dims.iter().product::<u64>() as usize * 4;
        let params = Params::new(request.parse().unwrap(), Dtype::F32, dims).unwrap();
        let frame = engine.encode(&params, &generate::input(generator, 7, Dtype::F32, dims, None, n));
        frames.push((format!("{generator} {dims:?} {request}"), frame, n));
    }
    // A smooth part that is too far from the others for interpolation.
    let far = |i: u32| if (3000..6000).contains(&i) { 50.0 + (f64::from(i) / 30.0).sin() } else { 0.0 };
    let raw: Vec<u8> = (0..9000).flat_map(|i| far(i).to_le_bytes()).collect();
    let params = Params::new("mode=abs,bound=1e-6,codec=lorenzo".parse().unwrap(), Dtype::F64, &[9000]).unwrap();
    frames.push(("a far part".into(), engine.encode(&params, &raw), raw.len()));
    frames
}

/// Frames of whole numbers times a unit: a name, the frame, the raw length.
fn written_of_multiples() -> Vec<(String, Vec<u8>, usize)> {
    let engine = Engine::with_threads(1);
    let be = |d| Dtype { big_endian: true, ..d };
    let mut frames = Vec::new();
    const INTEGERS: &[&str] = &["clock", "identifiers", "jitter", "tens"];
    const FLOATS: &[&str] =
        &["hundredths", "uneven-hundredths", "odd-hundredths", "feet", "unpacked", "holed-hundredths"];
    let types = |names: &'static [&'static str], dtypes: [Dtype; 4]| {
        names.iter().flat_map(move |name| dtypes.into_iter().map(move |d| (*name, d)))
    };
    let of_integers = types(INTEGERS, [I32, I64, be(I32), be(I64)]);
    let of_floats = types(FLOATS, [Dtype::F32, Dtype::F64, be(Dtype::F32), be(Dtype::F64)]);
    for (g, (generator, d)) in of_integers.chain(of_floats).enumerate() {
        for dims in [&[3000u64][..], &[70, 140], &[9, 32, 64], &[2, 3, 20, 90]] {
            let n = dims.iter().product::<u64>() as usize * usize::from(d.size);
            let params = Params::new("mode=lossless".parse().unwrap(), d, dims).unwrap();
            let raw = generate::input(generator, g as u64, d, dims, None, n);
            frames.push((format!("{generator} {dims:?} {d:?}"), engine.encode(&params, &raw), n));
        }
    }
    frames
}

#[test]
fn what_the_encoder_writes_is_read() {
    let mut answers = Answers::new();
    let mut codecs = [0; CODECS.len()];
    let mut kinds = [0; 256];
    // Frames of lorenzo with joint symbols and without, and those with starts.
    let (mut joint, mut apart, mut starts) = (0, 0, 0);
    for (name, frame, n) in written().into_iter().chain(written_of_multiples()) {
        if frame[9] == 2 {
            let all = lorenzo_kinds(&frame);
            all.iter().for_each(|&k| kinds[usize::from(k)] += 1);
            let symbols = Draft::of(&frame).sections[0][0];
            joint += u32::from(symbols > 120);
            apart += u32::from((1..=120).contains(&symbols));
            starts += u32::from(all.len() > 64);
        }
        codecs[usize::from(frame[9])] += 1;
        answers.of(&name, &frame, n).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for codec in CODECS {
        assert!(CODECS.iter().zip(codecs).any(|(c, n)| *c == codec && n > 0), "no frame of {codec}");
    }
    // Kinds of lorenzo's document, §3.3: every class, with and without outliers, under both predictors.
    for (class, name) in [(0x00, "empty"), (0x10, "Huffman"), (0x20, "fixed width"), (0x40, "empty but for outliers")] {
        assert!(kinds[class..class + 8].iter().any(|&n| n > 0), "no tile of Lorenzo: {name}");
    }
    for (class, name) in [(0x10, "Huffman"), (0x50, "with outliers"), (0x40, "nothing but outliers")] {
        let interpolated = |k: usize| kinds[class | 8 | k] + kinds[class | 0x88 | k] > 0;
        assert!((1..8).any(interpolated), "no interpolated tile: {name}");
    }
    for axes in 1..8 {
        let taken = |finer: usize| (0..8).map(|k| kinds[finer | k << 4 | 8 | axes]).sum::<u32>();
        assert!(taken(0) > 0, "no tile is interpolated along axes {axes}");
        let many = axes.count_ones() > 1;
        assert!(taken(0x80) > 0 || !many, "no tile is interpolated along axes {axes} with finer steps");
    }
    assert!(kinds[0x30] > 0, "no raw tile");
    assert!(joint > 0 && apart > 0 && starts > 0, "{joint} joint, {apart} apart, {starts} with starts");
    answers.keep("written");
}

/// What no writer writes but §3 of lorenzo's document allows: any codebook, runs, axes, widths, outliers and bounds.
fn random_of_lorenzo(count: u32) -> Vec<(String, Vec<u8>, usize)> {
    let (seed, count) = fuzz(5, count);
    let mut all = Vec::new();
    for k in 0..count {
        let parts = frames::lorenzo(&mut Random(seed << 32 | u64::from(k)));
        let (frame, n) = (parts.frame(), parts.raw_len());
        if parts.size == 8 && parts.mode != 3 {
            // The same as integers of a size, a sign and an order.
            let kind = (16 << (k % 4)) | ((k % 5 % 2) << 14) | ((k % 3 % 2) << 12);
            let integers = Draft::of_integers(&frame, kind).frame();
            all.push((format!("integers of lorenzo, case {k}"), integers, n >> (3 - k % 4)));
        }
        all.push((format!("lorenzo, case {k}"), frame, n));
    }
    all
}

/// Frames of `planes` by hand and of random parts.
fn random_of_planes(count: u32) -> Vec<(String, Vec<u8>, usize)> {
    let (seed, count) = fuzz(6, count);
    let by_hand = listed_cases().into_iter().filter(|c| c.codec == "planes" && c.by_hand());
    let by_hand = by_hand.map(|c| (c.name.clone(), by_hand::frame(&c), c.raw_bytes));
    let random = (0..count).map(|k| {
        let draft = random::draft(&mut Random(seed << 32 | u64::from(k)));
        (format!("planes, case {k}"), draft.frame(), draft.raw_len as usize)
    });
    by_hand.chain(random).collect()
}

#[test]
fn frames_of_random_parts_are_read() {
    let mut answers = Answers::new();
    for (name, frame, n) in random_of_lorenzo(600).into_iter().chain(random_of_planes(600)) {
        answers.of(&name, &frame, n).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    answers.keep("random");
}

/// Interpolated tiles along every set of axes, with finer steps and without, of extents that end in every way: few
/// points, odd ones, a last point that is near on some levels.
#[test]
fn every_interpolation_is_read() {
    let mut answers = Answers::new();
    let mut random = Random(13);
    let lengths = [1u32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 24, 25, 31, 32, 33, 34, 35];
    let mut shapes: Vec<Vec<u32>> = (2..140).map(|e| vec![e]).collect();
    shapes.extend([1023u32, 1024, 1025, 4096, 4097, 4098, 8190, 8191, 8192].map(|e| vec![e]));
    for (k, &e) in lengths.iter().enumerate() {
        let next = |by: usize| lengths[(k + by) % lengths.len()];
        shapes.extend([vec![e, 2], vec![2, e], vec![e, 37], vec![e, 64], vec![50, e]]);
        shapes.extend([vec![e, next(7), next(11)], vec![next(5), e, 3], vec![e, 5, 2], vec![2, 2, e]]);
    }
    for dims in &mut shapes {
        // A frame has no extents of 1.
        dims.retain(|&d| d > 1);
        let first = frames::extents(dims)[0];
        for kind in frames::ways(first) {
            for width in [1, 5, 32] {
                let mut parts = by_hand::without_codebook([4, 8][random.below(2)], 1, 0.051, dims);
                for (&extents, &n) in parts.extents.iter().zip(&parts.tiles) {
                    // The last tiles may have one value along some axes.
                    let good = frames::ways(extents).contains(&kind);
                    parts.kinds.push(0x20 | if good { kind } else { 7 });
                    parts.payloads.push(by_hand::fixed_width(n, width, || random.bits()));
                }
                let (frame, n) = (parts.frame(), parts.raw_len());
                let name = format!("{dims:?}, {kind:#x}");
                answers.of(&name, &frame, n).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
    }
    answers.keep("interpolated");
}

/// Readers must agree on what is damaged, too, and on what a frame means that no writer writes.
#[test]
fn changed_frames_have_one_answer() {
    let mut answers = Answers::new();
    let (seed, cases) = fuzz(11, 6000);
    let mut random = Random(seed);
    let mut frames = written();
    frames.extend(random_of_lorenzo(400));
    frames.retain(|(_, frame, _)| frame.len() < 20_000);
    for k in 0..cases {
        let (name, frame, n) = &frames[random.below(frames.len())];
        let mut f = frame.clone();
        for _ in 0..1 + random.below(2) {
            let at = match random.below(3) {
                0 => random.below(f.len().min(140)),
                _ => 8 + random.below(f.len() - 8),
            };
            f[at] = match random.below(3) {
                0 => f[at] ^ 1 << random.below(8),
                1 => random.bits() as u8,
                _ => f[at].wrapping_add(1),
            };
        }
        seal(&mut f);
        let _ = answers.of(&format!("case {k}, {name}"), &f, *n);
    }
    assert!(answers.read > 100 && answers.refused > 100, "{} read, {} refused", answers.read, answers.refused);
    answers.keep("changed");
}

#[test]
fn changed_frames_of_planes_have_one_answer() {
    let mut answers = Answers::new();
    let (seed, cases) = fuzz(12, 3000);
    let mut random = Random(seed);
    let frames = random_of_planes(600);
    for k in 0..cases {
        let (name, frame, n) = &frames[random.below(frames.len())];
        let mut draft = Draft::of(frame);
        // A word of the payload changes, more often one of the first, where head, mask, modes and ballots stand.
        let payload = &mut draft.sections[1];
        let words = payload.len() / 4;
        let near = [words, 16, 6, 2][random.below(4)];
        let at = 4 * random.below(words.min(near)) + random.below(4);
        payload[at] = match random.below(3) {
            0 => payload[at] ^ 1 << random.below(8),
            1 => random.bits() as u8,
            _ => 0,
        };
        match random.below(12) {
            0 => draft.mode = [1, 2, 4, 9][random.below(4)],
            1 => draft.kind ^= BIG_ENDIAN,
            2 => draft.bound = random.unit().to_bits(),
            _ => {}
        }
        let _ = answers.of(&format!("case {k}, {name}"), &draft.frame(), *n);
    }
    assert!(answers.read > 100 && answers.refused > 100, "{} read, {} refused", answers.read, answers.refused);
    answers.keep("changed-planes");
}
