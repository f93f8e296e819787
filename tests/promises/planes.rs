// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of `planes`: where values lie in those by hand, and what the others show of the format.

use crate::common::by_hand;
use crate::common::draft::{BIG_ENDIAN, Draft};
use crate::common::vectors::listed_cases;
use h5z_gpu::Engine;
use std::collections::BTreeSet;

#[test]
fn values_of_frames_by_hand_lie_where_the_document_says() {
    let engine = Engine::with_threads(1);
    for case in listed_cases().into_iter().filter(|c| c.codec == "planes" && c.by_hand()) {
        let frame = by_hand::frame(&case);
        assert!(frame.len() < 1 << 16, "{}: {} bytes", case.name, frame.len());
        let raw = engine.decode(&frame, case.raw_bytes as u64).unwrap_or_else(|e| panic!("{}: {e}", case.name));
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
