// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that break one rule of the documents each: the crate refuses them for that reason.

use crate::common::refused;
use crate::common::vectors::{self, folder};
use h5z_gpu::{DecodeJob, Engine};
use std::collections::BTreeSet;

#[test]
fn every_frame_is_refused_for_its_reason() {
    let mut wrong = Vec::new();
    for r in refused::all() {
        for engine in [Engine::with_threads(1), Engine::with_threads(3)] {
            let mut out = vec![0; r.raw_bytes];
            let mut jobs = [DecodeJob { frame: &r.frame, out: &mut out }];
            match engine.decode_batch(&mut jobs).remove(0) {
                Ok(()) => wrong.push(format!("{}: the crate reads it", r.name)),
                Err(e) if !e.to_string().contains(r.says) => wrong.push(format!("{}: {e}", r.name)),
                Err(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn files_are_those_of_the_list() {
    let folder = folder().join("refused");
    let all = refused::all();
    let mut names = BTreeSet::from(["index.toml".to_string()]);
    for r in &all {
        let file = format!("{}.bin", r.name);
        let there = std::fs::read(folder.join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(there == r.frame, "{file} is another frame than the list's");
        assert!(names.insert(file), "{} is listed twice", r.name);
    }
    let files = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names);
    assert_eq!(std::fs::read_to_string(folder.join("index.toml")).unwrap(), refused::index(&all));
    let read = refused::read_in(&vectors::folder()).unwrap();
    assert!(read.iter().map(|(n, raw, f)| (&**n, *raw, f)).eq(all.iter().map(|r| (r.name, r.raw_bytes, &r.frame))));
}

#[test]
fn every_rule_of_the_documents_has_a_frame() {
    let documents = [
        include_str!("../../codecs/src/FORMAT.md"),
        include_str!("../../codecs/src/codec/bytes/FORMAT.md"),
        include_str!("../../codecs/src/codec/szx/FORMAT.md"),
        include_str!("../../codecs/src/codec/lorenzo/FORMAT.md"),
        include_str!("../../codecs/src/codec/ndzip/FORMAT.md"),
        include_str!("../../codecs/src/codec/planes/FORMAT.md"),
        include_str!("../../codecs/src/codec/scaled/FORMAT.md"),
        include_str!("../../codecs/src/codec/dense/FORMAT.md"),
    ];
    let rules: Vec<&str> = documents
        .iter()
        .flat_map(|d| d.split("\n## 7 ").nth(1).and_then(|d| d.split("\n## 8 ").next()).expect("section 7").lines())
        .filter_map(|line| line.strip_prefix("| ").and_then(|l| l.split(" |").next()))
        .filter(|rule| rule[1..].parse::<u32>().is_ok())
        .collect();
    let broken: BTreeSet<&str> = refused::all().iter().map(refused::Refused::rule).collect();
    assert_eq!(rules.len(), 122, "{rules:?}");
    assert_eq!(rules.iter().copied().collect::<BTreeSet<_>>(), broken);
}
