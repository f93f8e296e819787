// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damage: every truncation and every changed byte is refused by name; what carries a right checksum all the same may
//! decode to anything, but never panics and never takes more memory than the raw length and a constant.

#[path = "common/counting.rs"]
mod counting;

mod common;

use common::fuzz;
use common::generate::{self, Random};
use common::seal::{lorenzo_kinds, parts, seal};
use common::vectors::{CODECS, folder};
use counting::{Counting, most_held};
use h5z_gpu::frame::raw_len;
use h5z_gpu::{Class, DecodeJob, Dtype, Engine, Error, Params};
use std::collections::BTreeMap;

// The engine of these tests works on the calling thread alone.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a decoder may hold besides the raw bytes: a tile, tables of a few tiles, messages.
const CONSTANT: isize = 4 << 20;

/// Small frames of every codec, type and mode that this build writes, with their raw lengths.
fn samples() -> Vec<(String, Vec<u8>)> {
    let i16 = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(2) };
    let i32 = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
    let f32be = Dtype { big_endian: true, ..Dtype::F32 };
    let cases: [(&str, Dtype, &[u64], &str); 48] = [
        ("bits", Dtype::bytes(1), &[100], "mode=lossless"),
        ("bits", Dtype::F32, &[3], "mode=abs,bound=1e-3"),
        ("text", Dtype::bytes(1), &[900], "mode=lossless"),
        ("wave", i16, &[20, 40], "mode=lossless"),
        ("ramp", Dtype::bytes(12), &[90], "mode=lossless"),
        ("wave", Dtype::F32, &[70, 70], "mode=lossless,codec=ndzip"),
        ("wave", Dtype::F64, &[4200], "mode=lossless,codec=ndzip"),
        ("steps", i32, &[17, 16, 18], "mode=lossless,codec=ndzip"),
        ("wave", Dtype::F32, &[1000], "mode=abs,bound=1e-3,codec=szx"),
        ("hostile", Dtype::F32, &[700], "mode=abs,bound=1e-2,codec=szx"),
        ("hostile", Dtype::F64, &[40, 10], "mode=rel,bound=1e-3,codec=szx"),
        ("wave", f32be, &[5, 900], "mode=rel,bound=1e-3,codec=szx"),
        ("wave", Dtype::F64, &[600], "mode=pw_rel,bound=1e-2,codec=szx"),
        ("masked", Dtype::F32, &[600], "mode=pw_rel,bound=1e-3,codec=szx"),
        ("masked", Dtype::F64, &[500], "mode=psnr,bound=60,codec=szx"),
        ("constant", Dtype::F32, &[9000], "mode=abs,bound=1e-3"),
        ("wave", Dtype::F32, &[18, 17, 16], "mode=abs,bound=1e-2,codec=lorenzo"),
        ("wave", Dtype::F64, &[70, 130], "mode=rel,bound=1e-2,codec=lorenzo"),
        ("ramp", Dtype::F32, &[800], "mode=abs,bound=1e-3,codec=lorenzo"),
        ("hostile", Dtype::F32, &[5, 100], "mode=abs,bound=1e-2,codec=lorenzo"),
        ("sparse", Dtype::F64, &[9, 8, 7], "mode=psnr,bound=60,codec=lorenzo"),
        ("noise", f32be, &[300], "mode=rel,bound=1e-3,codec=lorenzo"),
        ("wave", Dtype::F32, &[700], "mode=pw_rel,bound=1e-2,codec=lorenzo"),
        ("constant", Dtype::F32, &[90, 100], "mode=abs,bound=1e-3,codec=lorenzo"),
        ("constant", Dtype::F64, &[90, 100], "mode=abs,bound=1e3,codec=lorenzo"),
        ("noise", Dtype::F32, &[1000], "mode=abs,bound=0.00098,codec=lorenzo"),
        ("masked", Dtype::F32, &[2, 3, 4, 30], "mode=pw_rel,bound=1e-3,codec=lorenzo"),
        ("steps", Dtype::F32, &[17, 17, 513], "mode=abs,bound=1.25,codec=lorenzo"),
        ("wave", Dtype::F32, &[18, 17, 16], "mode=abs,bound=1e-2,codec=dense"),
        ("noise", Dtype::F64, &[20, 30], "mode=rel,bound=1e-2,codec=dense"),
        ("hostile", f32be, &[5, 100], "mode=pw_rel,bound=1e-2,codec=dense"),
        ("molecules", Dtype::F32, &[6, 90, 3], "mode=abs,bound=1e-3,codec=dense"),
        ("wave", Dtype::F32, &[8, 16, 32], "mode=abs,bound=3e-2,codec=planes"),
        ("hostile", Dtype::F32, &[300], "mode=abs,bound=1e-2,codec=planes"),
        ("sparse", Dtype::F64, &[9, 8, 7], "mode=psnr,bound=60,codec=planes"),
        ("noise", f32be, &[300], "mode=rel,bound=1e-3,codec=planes"),
        ("constant", Dtype::F32, &[90, 100], "mode=abs,bound=1e-3,codec=planes"),
        ("wave", Dtype::F64, &[400], "mode=abs,bound=1e-9,codec=planes"),
        ("steps", i32, &[17, 16, 18], "mode=lossless,codec=planes"),
        ("wave", Dtype::F32, &[300], "mode=abs,bound=1e-6,codec=planes"),
        ("masked", Dtype::F64, &[2, 3, 4, 30], "mode=rel,bound=1e-3,codec=planes"),
        ("packed", f32be, &[130, 3], "mode=lossless,codec=planes"),
        ("single", Dtype::F64, &[20, 30], "mode=lossless,codec=planes"),
        ("holes", Dtype::F32, &[20, 30], "mode=lossless,codec=planes"),
        ("tens", i32, &[20, 30], "mode=lossless"),
        ("clock", i32, &[900], "mode=lossless"),
        ("holed-hundredths", Dtype::F64, &[20, 30], "mode=lossless"),
        ("unpacked", f32be, &[20, 30], "mode=lossless"),
    ];
    let engine = Engine::with_threads(1);
    let mut samples: Vec<(String, Vec<u8>)> = cases
        .iter()
        .map(|(name, d, dims, request)| {
            let n = dims.iter().product::<u64>() as usize * usize::from(d.size);
            let raw = generate::input(name, 7, *d, dims, None, n);
            let frame = engine.encode(&Params::new(request.parse().unwrap(), *d, dims).unwrap(), &raw);
            (format!("{} of {name} {dims:?} {request}", CODECS[usize::from(frame[9])]), frame)
        })
        .collect();
    // A whole tile of one value, and a short one of any bits.
    let mut raw = generate::input("constant", 7, Dtype::F32, &[8192], None, 4 * 8192);
    raw.extend(generate::input("bits", 7, Dtype::F32, &[60], None, 4 * 60));
    let params = Params::new("mode=abs,bound=1e3,codec=lorenzo".parse().unwrap(), Dtype::F32, &[8192 + 60]).unwrap();
    samples.push(("lorenzo with a raw tile".into(), engine.encode(&params, &raw)));
    let params = Params::new("mode=abs,bound=1e3,codec=planes".parse().unwrap(), Dtype::F32, &[8192 + 60]).unwrap();
    samples.push(("planes with a raw tile".into(), engine.encode(&params, &raw)));
    // Residuals of fixed width, which a writer hardly ever finds shorter.
    let by_hand = std::fs::read(folder().join("lorenzo/f32-pw-rel-wraps.bin")).unwrap();
    samples.push(("lorenzo with fixed width".into(), by_hand));
    // Interpolated tiles along every set of axes, with finer steps and without.
    let mut every_way = common::by_hand::without_codebook(4, 1, 0.051, &[18, 17, 35]);
    common::by_hand::every_way(&mut every_way, &mut generate::Random(7));
    samples.push(("lorenzo of interpolated tiles".into(), every_way.frame()));
    samples
}

fn decode(frame: &[u8]) -> Result<Vec<u8>, Error> {
    let limit = 1 << 20;
    Engine::with_threads(1).decode(frame, limit)
}

/// The message of a refusal, which must say more than that there is one.
fn refused(frame: &[u8], what: impl Fn() -> String) -> String {
    match decode(frame) {
        Ok(_) => panic!("{}: decoded", what()),
        Err(e) => {
            let text = e.to_string();
            assert!(text.starts_with("h5z-gpu: ") && text.len() > 40, "{}: {text}", what());
            text
        }
    }
}

#[test]
fn samples_cover_every_codec_and_decode() {
    let samples = samples();
    for codec in CODECS {
        assert!(samples.iter().any(|(name, _)| name.starts_with(codec)), "no sample of {codec}");
    }
    let lorenzo = samples.iter().filter(|(_, frame)| frame[9] == 2);
    let kinds: Vec<Vec<u8>> = lorenzo.map(|(_, frame)| lorenzo_kinds(frame)).collect();
    assert!(kinds.iter().any(|k| k.len() > 64), "no sample of lorenzo with starts");
    let kinds = kinds.concat();
    for (mask, bits, name) in [
        (0x38, 0x00, "an empty tile"),
        (0x38, 0x10, "Huffman after Lorenzo"),
        (0x38, 0x18, "Huffman after interpolation"),
        (0x38, 0x28, "fixed width after interpolation"),
        (0xB8, 0xA8, "fixed width after interpolation with finer steps"),
        (0x0F, 0x0F, "interpolation along all axes"),
        (0x38, 0x20, "fixed width"),
        (0x38, 0x30, "a raw tile"),
        (0x50, 0x50, "Huffman with outliers"),
    ] {
        assert!(kinds.iter().any(|k| k & mask == bits), "no sample of lorenzo with {name}: {kinds:x?}");
    }
    for (name, frame) in &samples {
        decode(frame).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut again = frame.clone();
        seal(&mut again);
        assert!(again == *frame, "{name}: the checksum of tests/common/seal.rs is another one");
    }
}

#[test]
fn every_truncation_is_refused() {
    for (name, frame) in samples() {
        for cut in 0..frame.len() {
            let text = refused(&frame[..cut], || format!("{name} cut to {cut} of {}", frame.len()));
            assert!(text.contains(&cut.to_string()), "{name} cut to {cut}: {text}");
        }
        let longer: Vec<u8> = frame.iter().copied().chain([0]).collect();
        refused(&longer, || format!("{name} and one byte more"));
    }
}

#[test]
fn every_changed_byte_is_refused() {
    for (name, mut frame) in samples() {
        for at in 0..frame.len() {
            let old = frame[at];
            let flips: &[u8] = if at < 128 { &[1, 2, 4, 8, 16, 32, 64, 128, 255] } else { &[1, 128, 255] };
            for flip in flips {
                frame[at] = old ^ flip;
                refused(&frame, || format!("{name}: byte {at} ^ {flip:#x}"));
            }
            frame[at] = old;
        }
    }
}

#[test]
fn a_truncation_with_a_right_checksum_is_refused_all_the_same() {
    for (name, frame) in samples() {
        for cut in 0..frame.len() {
            let mut short = frame[..cut].to_vec();
            seal(&mut short);
            refused(&short, || format!("{name} sealed again at {cut} of {}", frame.len()));
        }
    }
}

#[test]
fn a_raw_length_that_nobody_expects_is_refused_before_anything_is_allocated() {
    for (name, frame) in samples() {
        for huge in [(1 << 20) + 1, 1 << 40, u64::MAX - 7, u64::MAX] {
            let mut f = frame.clone();
            f[16..24].copy_from_slice(&huge.to_le_bytes());
            seal(&mut f);
            let held = most_held(|| {
                let text = refused(&f, || format!("{name} with raw length {huge}"));
                assert!(text.contains(&huge.to_string()), "{text}");
            });
            assert!(held < 4096, "{name}: {held} bytes were held to refuse {huge}");
            assert_eq!(raw_len(&f).unwrap(), huge);
        }
        // One that the caller allows, over a body that does not hold it.
        for near in [0u64, 1, 4, 8, 1 << 16, 1 << 20] {
            let mut f = frame.clone();
            if f[16..24] == near.to_le_bytes() {
                continue;
            }
            f[16..24].copy_from_slice(&near.to_le_bytes());
            seal(&mut f);
            let held = most_held(|| drop(refused(&f, || format!("{name} with raw length {near}"))));
            assert!(held < (1 << 20) + CONSTANT, "{name}: {held} bytes held");
        }
    }
}

#[test]
fn a_damaged_frame_of_a_batch_leaves_the_others_alone() {
    let samples = samples();
    let engine = Engine::with_threads(2);
    let raws: Vec<Vec<u8>> = samples.iter().map(|(_, f)| decode(f).unwrap()).collect();
    let frames: Vec<Vec<u8>> = samples
        .iter()
        .enumerate()
        .map(|(k, (_, f))| {
            let mut f = f.clone();
            if k % 3 == 1 {
                let last = f.len() - 1;
                f[last] ^= 4;
            }
            f
        })
        .collect();
    // Every fifth caller brings a buffer that is one byte short or long.
    let off = |k: usize| k % 5 == 2;
    let mut outs: Vec<Vec<u8>> = raws.iter().enumerate().map(|(k, r)| vec![0; r.len() + usize::from(off(k))]).collect();
    let mut jobs: Vec<DecodeJob<'_>> =
        frames.iter().zip(&mut outs).map(|(frame, out)| DecodeJob { frame, out }).collect();
    let results = engine.decode_batch(&mut jobs);
    for (k, result) in results.iter().enumerate() {
        match result {
            Ok(()) => assert!(k % 3 != 1 && !off(k) && outs[k] == raws[k], "{}", samples[k].0),
            Err(e) if k % 3 == 1 => assert!(e.to_string().contains("checksum"), "{e}"),
            Err(e) => assert!(off(k) && e.to_string().contains("the caller's buffer"), "{}: {e}", samples[k].0),
        }
    }
}

/// One random change, of a kind that headers, tables or payloads are sensitive to.
fn change(frame: &mut Vec<u8>, random: &mut Random) {
    let parts = parts(frame);
    // Three changes of five go to the sections, so that most frames get past their header; of a section, half go to
    // its first bytes, where lengths and kinds stand.
    let sections = parts.iter().position(|(name, ..)| name == "section 0").unwrap_or(0);
    let (begin, end) = loop {
        let first = if random.below(5) < 3 { sections } else { 0 };
        let (_, begin, end) = parts[first + random.below(parts.len() - first)];
        let end = end.min(frame.len());
        if begin < end {
            break (begin, if random.below(2) == 0 { end.min(begin + 64) } else { end });
        }
        if frame.len() < 64 {
            break (0, frame.len());
        }
    };
    let at = begin + random.below(end - begin);
    match random.below(9) {
        0 => frame[at] ^= 1 << random.below(8),
        1 => frame[at] = random.bits() as u8,
        2 => frame[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
        3 => {
            let n = (1 + random.below(16)).min(frame.len() - at);
            frame[at..at + n].fill([0, 0xFF, 0x80][random.below(3)]);
        }
        4 => {
            // A little-endian number of 2, 4 or 8 bytes moves a little or becomes a limit.
            let n = [2, 4, 8][random.below(3)];
            let at = begin + (at - begin) / n * n;
            if at + n <= frame.len() {
                let mut b = [0; 8];
                b[..n].copy_from_slice(&frame[at..at + n]);
                let old = u64::from_le_bytes(b);
                let new = match random.below(5) {
                    0 => old.wrapping_add(1 + random.below(300) as u64),
                    1 => old.wrapping_sub(1 + random.below(300) as u64),
                    2 => u64::MAX >> random.below(64),
                    3 => 1 << random.below(64),
                    _ => frame.len() as u64,
                };
                frame[at..at + n].copy_from_slice(&new.to_le_bytes()[..n]);
            }
        }
        5 => {
            let n = random.below(40).min(frame.len() - at);
            let from = random.below(frame.len() - n);
            frame.copy_within(from..from + n, at);
        }
        6 if frame.len() > 60 => {
            let keep = 56 + random.below(frame.len() - 56);
            frame.truncate(keep);
        }
        7 => frame.extend((0..random.below(20)).map(|_| 0xA5)),
        _ => frame.swap(at, begin),
    }
}

/// Makes the last section end where the frame ends, so that a changed length reaches the codec.
fn end_with_the_last_section(frame: &mut [u8]) {
    let parts = parts(frame);
    let (Some((_, begin, _)), Some((_, _, table))) = (parts.last(), parts.iter().find(|p| p.0 == "section lengths"))
    else {
        return;
    };
    if *begin <= frame.len() && (64..=frame.len()).contains(table) {
        let len = (frame.len() - begin) as u64;
        frame[table - 8..*table].copy_from_slice(&len.to_le_bytes());
    }
}

/// Returns the part that refused the frame, `None` when it was decoded.
fn survives(frame: &[u8], what: impl Fn() -> String) -> Option<&'static str> {
    let (mut raw, mut refused) = (0, None);
    let held = most_held(|| {
        raw = match std::panic::catch_unwind(|| decode(frame)) {
            Ok(Ok(out)) => out.len(),
            Ok(Err(e)) => {
                assert!(e.to_string().len() > 40, "{}: {e}", what());
                refused = Some(match e {
                    Error::Corrupt { section, .. } | Error::Length { section, .. } => section,
                    _ => "version",
                });
                1 << 20
            }
            Err(_) => panic!("{}: the decoder panicked", what()),
        };
    });
    // Once for the caller and once where the words are not aligned.
    assert!(held <= 2 * raw as isize + CONSTANT, "{}: {held} bytes held for {raw}", what());
    refused
}

#[test]
fn a_hundred_thousand_changed_frames_with_right_checksums_do_no_harm() {
    let samples = samples();
    let (seed, cases) = fuzz(443, 100_000);
    let mut random = Random(seed);
    let mut ends: BTreeMap<Option<&str>, u32> = BTreeMap::new();
    for k in 0..cases {
        let (name, frame) = &samples[random.below(samples.len())];
        let mut f = frame.clone();
        for _ in 0..1 + random.below(3) {
            change(&mut f, &mut random);
            if f.len() < 57 {
                break;
            }
            // The table of parts is read from the frame: keep it readable for the next change.
            f[11] = frame[11];
            f[48] = frame[48];
        }
        if random.below(4) > 0 {
            end_with_the_last_section(&mut f);
        }
        if random.below(20) == 0 && f.len() > 56 {
            f[11] = random.below(10) as u8;
            f[48] = random.below(10) as u8;
        }
        seal(&mut f);
        *ends.entry(survives(&f, || format!("case {k}, {name}: {}", hex(&f)))).or_default() += 1;
    }
    // A search that never gets past the header finds nothing.
    let past: u32 =
        ends.iter().filter(|(end, _)| !matches!(end, Some("header" | "frame" | "version"))).map(|(_, n)| n).sum();
    assert!(past > cases / 3 && ends.len() > 8, "{ends:?}");
}

/// The bytes as text, for keeping what failed.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(4000).map(|b| format!("{b:02x}")).collect()
}

#[test]
fn frames_to_refuse_do_no_harm() {
    let folder = folder().join("refused");
    let frames = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for path in frames.filter(|p| p.extension().is_some_and(|e| e == "bin")) {
        let frame = std::fs::read(&path).unwrap();
        assert!(
            survives(&frame, || path.display().to_string()).is_some() || path.ends_with("F15-two-bytes-expected.bin")
        );
        seen += 1;
    }
    assert!(seen >= 78, "{seen} frames in {}", folder.display());
}
