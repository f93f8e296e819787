// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` that no writer makes: crate and second decoder find the same in them, and the second decoder
//! names the rule that is broken.

use crate::book;
use crate::common::draft::{BIG_ENDIAN, Draft};
use crate::common::generate::Random;
use crate::common::planes::random;
use crate::common::vectors::listed_cases;
use crate::common::{by_hand, difference, fuzz, refused};
use h5z_gpu::Engine;
use std::collections::BTreeSet;

#[test]
fn every_frame_by_hand_is_read_by_the_book() {
    for case in listed_cases().into_iter().filter(|c| c.codec == "planes" && c.by_hand()) {
        let frame = by_hand::frame(&case);
        assert!(frame.len() < 1 << 16, "{}: {} bytes", case.name, frame.len());
        let raw = book::decode(&frame, case.raw_bytes).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if case.name.starts_with("f32-places-of-rank") {
            let places: Vec<u8> = (0..4096).flat_map(|i| (i as f32).to_le_bytes()).collect();
            assert!(raw == places, "{}", case.name);
        }
        if case.name.starts_with("f32-places-of-components") {
            // Value k * m + i of the array is value i * c + k of the chunk.
            let (c, n) = (*case.dims.last().expect("extents") as usize, case.raw_bytes / 4);
            let place = |at: usize| (at % c * (n / c) + at / c) as f32;
            let places: Vec<u8> = (0..n).flat_map(|at| place(at).to_le_bytes()).collect();
            assert!(raw == places, "{}", case.name);
        }
    }
}

/// What the tiles of a frame show of §3: class, map, exceptions and the like.
fn shown(frame: &[u8]) -> BTreeSet<String> {
    let draft = Draft::of(frame);
    let (size, order) = (draft.kind >> 4 & 0xFF, if draft.kind & BIG_ENDIAN == 0 { "little" } else { "big" });
    let words = |bytes: &[u8]| bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>();
    let (ends, payload) = (words(&draft.sections[0]), words(&draft.sections[1]));
    let mut shown = BTreeSet::new();
    let mut begin = 0;
    for end in ends {
        let (first, behind) = (payload[begin], &payload[begin + 1..]);
        begin = end as usize;
        let class = first & 3;
        let name = ["quanta", "wide quanta", ["integers", "floats"][draft.kind as usize & 1], "raw"][class as usize];
        let marked = match class {
            0 => first >> 9 & 3,
            3 => 0,
            _ => behind[1] >> 24,
        };
        let mut show = |what: String| shown.insert(format!("{name} of {size} bytes: {what}"));
        show(format!("{order}-endian"));
        show(["no exceptions", "exceptions", "", "uniform exceptions"][marked as usize].into());
        if class == 1 || class == 2 {
            let (longest, zeros) = (behind[0] >> 6 & 127, behind[0] >> 13 & 63);
            show(format!("map {}", first >> 4 & 1));
            show(["no zeros", "zeros"][usize::from(zeros > 0)].into());
            show(["fields", "full fields"][usize::from(longest == 8 * size)].into());
        }
    }
    shown
}

/// The list of cases has all that the format has, as far as a writer makes it.
#[test]
fn cases_show_the_whole_format() {
    let engine = Engine::with_threads(2);
    let cases = listed_cases().into_iter().filter(|c| c.codec == "planes" && !c.by_hand());
    let shown: BTreeSet<String> = cases.flat_map(|c| shown(&engine.encode(&c.params(), &c.input()))).collect();
    let mut wanted = Vec::new();
    for size in [4, 8] {
        for (name, whats) in [
            ("quanta", "little-endian, big-endian, no exceptions, exceptions, uniform exceptions"),
            ("wide quanta", "little-endian, big-endian, no exceptions, exceptions, uniform exceptions, zeros"),
            ("integers", "little-endian, big-endian, no exceptions, uniform exceptions, zeros, full fields"),
            (
                "floats",
                "little-endian, big-endian, no exceptions, exceptions, uniform exceptions, map 0, map 1, zeros, full \
                 fields",
            ),
            ("raw", "little-endian"),
        ] {
            wanted.extend(whats.split(", ").map(|what| format!("{name} of {size} bytes: {what}")));
        }
    }
    wanted.retain(|what| !shown.contains(what));
    assert!(wanted.is_empty(), "no case shows\n{}", wanted.join("\n"));
}

#[test]
fn every_refused_frame_breaks_its_rule_by_the_book() {
    let mut wrong = Vec::new();
    for r in refused::all().iter().filter(|r| r.rule().starts_with('P')) {
        match book::decode(&r.frame, r.raw_bytes) {
            Ok(_) => wrong.push(format!("{}: the book reads it", r.name)),
            Err(e) if !e.starts_with(&format!("{},", r.rule())) => wrong.push(format!("{}: {e}", r.name)),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What no writer puts together but §3 allows.
#[test]
fn whole_frames_mean_the_same_to_crate_and_book() {
    let engines = [Engine::with_threads(1), Engine::with_threads(3)];
    for (name, frame, n) in frames() {
        let theirs = book::decode(&frame, n).unwrap_or_else(|e| panic!("{name}: the book: {e}"));
        for engine in &engines {
            let ours = engine.decode(&frame, n as u64).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(ours == theirs, "{name}: {}", difference(&ours, &theirs));
        }
    }
}

/// Frames by hand and of random parts: name, frame, raw length.
fn frames() -> Vec<(String, Vec<u8>, usize)> {
    let (seed, cases) = fuzz(6, 600);
    let by_hand = listed_cases().into_iter().filter(|c| c.codec == "planes" && c.by_hand());
    let by_hand = by_hand.map(|c| (c.name.clone(), by_hand::frame(&c), c.raw_bytes));
    let random = (0..cases).map(|k| {
        let draft = random::draft(&mut Random(seed << 32 | u64::from(k)));
        (format!("case {k}"), draft.frame(), draft.raw_len as usize)
    });
    by_hand.chain(random).collect()
}

/// Document and code must agree on what is damaged, too.
#[test]
fn crate_and_book_give_the_same_answer_to_changed_frames() {
    let engine = Engine::with_threads(1);
    let (seed, cases) = fuzz(12, 6000);
    let mut random = Random(seed);
    let frames = frames();
    let (mut read, mut refused) = (0, 0);
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
        let changed = draft.frame();
        match (engine.decode(&changed, *n as u64), book::decode(&changed, *n)) {
            (Ok(a), Ok(b)) => {
                assert!(a == b, "case {k}, {name}: {}", difference(&a, &b));
                read += 1;
            }
            (Err(_), Err(_)) => refused += 1,
            (ours, theirs) => {
                let length = |v: Vec<u8>| v.len();
                panic!("case {k}, {name}: the crate {:?}, the book {:?}", ours.map(length), theirs.map(length));
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
