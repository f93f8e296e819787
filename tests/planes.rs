// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of `planes` that are made here and lie in no file: the second decoder reads what is whole and names the rule that is broken.

mod common;

#[path = "tools/decode_by_the_book.rs"]
mod book;

use common::generate::Random;
use common::planes::random;
use common::{by_hand, cases, fuzz, refused};

#[test]
fn every_frame_by_hand_is_read_by_the_book() {
    for case in cases::all().into_iter().filter(|c| c.codec == "planes" && c.by_hand()) {
        let frame = by_hand::frame(&case);
        assert!(frame.len() < 1 << 16, "{}: {} bytes", case.name, frame.len());
        let raw = book::decode(&frame, case.raw_bytes).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if case.name.starts_with("f32-places-of-rank") {
            let places: Vec<u8> = (0..4096).flat_map(|i| (i as f32).to_le_bytes()).collect();
            assert!(raw == places, "{}", case.name);
        }
    }
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

#[test]
fn whole_frames_of_random_parts_are_read_by_the_book() {
    let (seed, cases) = fuzz(6, 300);
    for k in 0..cases {
        let draft = random::draft(&mut Random(seed << 32 | u64::from(k)));
        book::decode(&draft.frame(), draft.raw_len as usize).unwrap_or_else(|e| panic!("case {k}: {e}"));
    }
}
