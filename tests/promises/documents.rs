// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FORMAT.md files: their examples are vectors, their checksum is right, and they have one skeleton.

use crate::common::difference;
use crate::common::vectors::{CODECS, Vector};

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
