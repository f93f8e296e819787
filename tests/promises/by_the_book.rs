// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder written from the documents alone reads what the crate writes, and refuses what the crate refuses.

use crate::book;
use crate::common::draft::Draft;
use crate::common::frames;
use crate::common::generate::{self, Random};
use crate::common::seal::{lorenzo_kinds, seal};
use crate::common::vectors::{CODECS, Vector};
use crate::common::{by_hand, difference, fnv, fuzz};
use h5z_gpu::{Class, Dtype, Engine, Params};

#[test]
fn every_vector_is_read_by_the_book() {
    for v in Vector::all().unwrap() {
        let name = format!("{}/{}", v.case.codec, v.case.name);
        let raw = book::decode(&v.frame, v.case.raw_bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(fnv(&raw), v.decoded_fnv, "{name}");
        if v.case.shows_raw() {
            let shown = std::fs::read(v.case.path("raw")).unwrap_or_else(|e| panic!("{name}.raw: {e}"));
            assert!(raw == shown, "{name}.raw: {}", difference(&raw, &shown));
        }
    }
}

const I32: Dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
const I64: Dtype = Dtype { size: 8, ..I32 };

const DOCUMENTS: [&str; 8] = [
    include_str!("../../codecs/src/FORMAT.md"),
    include_str!("../../codecs/src/codec/szx/FORMAT.md"),
    include_str!("../../codecs/src/codec/lorenzo/FORMAT.md"),
    include_str!("../../codecs/src/codec/ndzip/FORMAT.md"),
    include_str!("../../codecs/src/codec/bytes/FORMAT.md"),
    include_str!("../../codecs/src/codec/planes/FORMAT.md"),
    include_str!("../../codecs/src/codec/scaled/FORMAT.md"),
    include_str!("../../codecs/src/codec/dense/FORMAT.md"),
];

/// The blocks of a kind in a document's section 9, and for each the vector that was named last before it.
fn blocks<'a>(codec: &str, document: &'a str, kind: &str) -> Vec<(&'a str, &'a str)> {
    let section = document.split("\n## 9 ").nth(1).expect("section 9");
    let (start, named) = (format!("```{kind}\n"), format!("`{codec}/worked-"));
    let blocks = section.match_indices(&start).map(|(at, _)| {
        let name =
            section[..at].rfind(&named).map(|at| section[at + 2 + codec.len()..].split('`').next().expect("a name"));
        let block = section[at + start.len()..].split("```").next().expect("the end of a block");
        (name.unwrap_or("worked-example"), block)
    });
    blocks.collect()
}

/// The bytes of a dump. A line may begin with its offset, three digits; `*` repeats the line before it.
fn dump(block: &str) -> Vec<u8> {
    let (mut bytes, mut repeat) = (Vec::<u8>::new(), false);
    for line in block.lines() {
        if line == "*" {
            repeat = true;
            continue;
        }
        let mut words = line.split('|').next().unwrap().split_whitespace().peekable();
        if let Some(at) = words.next_if(|w| w.len() == 3) {
            let at = usize::from_str_radix(at, 16).unwrap();
            while repeat && bytes.len() < at {
                bytes.extend_from_within(bytes.len() - 16..);
            }
            repeat = false;
            assert_eq!(bytes.len(), at, "{line}");
        }
        bytes.extend(words.map(|w| u8::from_str_radix(w, 16).unwrap()));
    }
    bytes
}

#[test]
fn worked_examples_of_the_documents_are_vectors() {
    let vectors = Vector::all().unwrap();
    for (codec, document) in CODECS.into_iter().zip(DOCUMENTS) {
        let named = |name: &str| {
            let vector = vectors.iter().find(|v| v.case.codec == codec && v.case.name == name);
            vector.unwrap_or_else(|| panic!("{codec}/{name} is no vector"))
        };
        let dumps = blocks(codec, document, "hex");
        for (name, block) in &dumps {
            let (bytes, frame) = (dump(block), &named(name).frame);
            assert!(bytes == *frame, "{codec}/{name}: {}\n{frame:02x?}", difference(&bytes, frame));
        }
        // Values, where a document writes them down: of f32, in their order.
        for (name, block) in blocks(codec, document, "values") {
            let values: Vec<f32> = block.split_whitespace().map(|v| v.parse().unwrap()).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let shown = std::fs::read(named(name).case.path("raw")).unwrap();
            assert!(bytes == shown, "values of {codec}/{name}: {}", difference(&bytes, &shown));
        }
        let explained = vectors.iter().filter(|v| v.case.codec == codec && v.case.name.starts_with("worked-"));
        let explained: Vec<&str> = explained.map(|v| &*v.case.name).collect();
        let mut names: Vec<&str> = dumps.iter().map(|d| d.0).collect();
        names.sort_unstable();
        assert_eq!(names, explained, "{codec}");
    }
}

/// §4.2 of the frame's document shows the sum's steps on the example of §9.
#[test]
fn the_documents_steps_of_a_checksum_are_right() {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let section = DOCUMENTS[0].split("### 4.2").nth(1).unwrap().split("\n## 5").next().unwrap();
    let frame = dump(blocks("stored", DOCUMENTS[0], "hex")[0].1);
    let mut rows = 0;
    for cells in section.lines().map(|l| l.split('|').map(str::trim).collect::<Vec<_>>()) {
        let [_, i, w, t, k, p, added, _] = cells[..] else { continue };
        let Ok(i) = i.parse::<u64>() else { continue };
        let word = frame[4 * i as usize..frame.len().min(4 * i as usize + 4)]
            .iter()
            .rev()
            .fold(0, |a, &b| a << 8 | u64::from(b));
        assert_eq!(hex(w), word, "word {i}");
        assert_eq!(hex(t), (2 * i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15), "t of word {i}");
        assert_eq!(hex(k), hex(t) ^ hex(t) << 32, "K of word {i}");
        assert_eq!(hex(p), word.wrapping_mul(hex(k)), "p of word {i}");
        assert_eq!(hex(added), hex(p) ^ hex(p) >> 32, "what word {i} adds");
        rows += 1;
    }
    assert_eq!(rows, 5);
    let stated = u64::from_le_bytes(frame[40..48].try_into().unwrap());
    assert!(section.contains(&format!("the checksum {stated:016x}")), "{stated:016x}");
}

#[test]
fn documents_have_one_skeleton() {
    let titles = |d: &str| d.lines().filter(|l| l.starts_with("## ")).map(String::from).collect::<Vec<_>>();
    for document in DOCUMENTS {
        assert_eq!(titles(document), titles(DOCUMENTS[0]));
        assert_eq!(titles(document).len(), 9);
    }
}

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

/// Frames of every generator, type and mode, over one to three extents and partial tiles.
fn frames() -> Vec<(String, Vec<u8>, usize)> {
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
fn frames_of_multiples(engine: &Engine) -> Vec<(String, Vec<u8>, usize)> {
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
fn what_the_crate_writes_is_read_by_the_book() {
    let engine = Engine::with_threads(1);
    let mut codecs = [0; CODECS.len()];
    let mut kinds = [0; 256];
    // Frames of lorenzo with joint symbols and without, and those with starts.
    let (mut joint, mut apart, mut starts) = (0, 0, 0);
    for (name, frame, n) in frames().into_iter().chain(frames_of_multiples(&engine)) {
        if frame[9] == 2 {
            let all = lorenzo_kinds(&frame);
            all.iter().for_each(|&k| kinds[usize::from(k)] += 1);
            let symbols = Draft::of(&frame).sections[0][0];
            joint += u32::from(symbols > 120);
            apart += u32::from((1..=120).contains(&symbols));
            starts += u32::from(all.len() > 64);
        }
        let name = format!("{} of {name}", CODECS[usize::from(frame[9])]);
        codecs[usize::from(frame[9])] += 1;
        let ours = engine.decode(&frame, n as u64).unwrap();
        let theirs = book::decode(&frame, n).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(ours == theirs, "{name}: {}", difference(&ours, &theirs));
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
}

/// What no writer writes but §3 of lorenzo's document allows: any codebook, runs, axes, widths, outliers and bounds.
#[test]
fn whole_frames_of_random_parts_mean_the_same_to_crate_and_book() {
    let (seed, cases) = fuzz(5, 600);
    let engines = [Engine::with_threads(1), Engine::with_threads(3)];
    for k in 0..cases {
        let parts = frames::lorenzo(&mut Random(seed << 32 | u64::from(k)));
        let mut all = vec![(parts.frame(), parts.raw_len())];
        if parts.size == 8 && parts.mode != 3 {
            // The same as integers of a size, a sign and an order.
            let kind = (16 << (k % 4)) | ((k % 5 % 2) << 14) | ((k % 3 % 2) << 12);
            all.push((Draft::of_integers(&all[0].0, kind).frame(), parts.raw_len() >> (3 - k % 4)));
        }
        for (frame, n) in all {
            let theirs = book::decode(&frame, n).unwrap_or_else(|e| panic!("case {k}: the book: {e}"));
            for engine in &engines {
                let ours = engine.decode(&frame, n as u64).unwrap_or_else(|e| panic!("case {k}: {e}"));
                assert!(ours == theirs, "case {k}: {}", difference(&ours, &theirs));
            }
        }
    }
}

/// Interpolated tiles along every set of axes, with finer steps and without, of extents that end in every way: few
/// points, odd ones, a last point that is near on some levels.
#[test]
fn every_interpolation_means_the_same_to_crate_and_book() {
    let engine = Engine::with_threads(1);
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
                let theirs = book::decode(&frame, n).unwrap_or_else(|e| panic!("{dims:?}, {kind:#x}: the book: {e}"));
                let ours = engine.decode(&frame, n as u64).unwrap_or_else(|e| panic!("{dims:?}, {kind:#x}: {e}"));
                assert!(ours == theirs, "{dims:?}, {kind:#x}: {}", difference(&ours, &theirs));
            }
        }
    }
}

/// Documents and code must agree on what is damaged, too, and on what a frame means that no writer writes.
#[test]
fn crate_and_book_give_the_same_answer_to_changed_frames() {
    let engine = Engine::with_threads(1);
    let (seed, cases) = fuzz(11, 12_000);
    let mut random = Random(seed);
    let mut frames = frames();
    frames.extend((0..400).map(|k| {
        let parts = frames::lorenzo(&mut random);
        (format!("random parts {k}"), parts.frame(), parts.raw_len())
    }));
    frames.retain(|(_, frame, _)| frame.len() < 20_000);
    let (mut read, mut refused) = (0, 0);
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
        let ours = (f[16..24] == frame[16..24]).then(|| engine.decode(&f, *n as u64));
        let theirs = book::decode(&f, *n);
        match (ours, theirs) {
            (Some(Ok(a)), Ok(b)) => {
                assert!(a == b, "case {k}, {name}: {}", difference(&a, &b));
                read += 1;
            }
            (None, Err(_)) | (Some(Err(_)), Err(_)) => refused += 1,
            (ours, theirs) => {
                let ours = ours.map(|r| r.map(|v| v.len()));
                panic!("case {k}, {name}: the crate {ours:?}, the book {:?}", theirs.map(|v| v.len()));
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
