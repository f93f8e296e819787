// SPDX-License-Identifier: MIT OR Apache-2.0
//! Promises about bytes and values; here, every golden vector on every backend. One program: what its tests share is
//! compiled and linked once, and long ones run beside each other. Tests that need a program to themselves are files
//! beside this folder.

#[path = "../common/mod.rs"]
mod common;

mod bound;
mod documents;
mod never_larger;
mod planes;
mod readers;
mod refused;
mod rewrite;
mod rules;

use h5z_gpu::release::FORMAT_STATE;

use common::vectors::{CODECS, Vector, folder, listed_cases, table};

#[test]
fn every_vector_is_written_and_read_by_every_backend() {
    let vectors = Vector::all().unwrap();
    assert!(vectors.len() >= 12, "only {} vectors", vectors.len());
    let wrong: Vec<String> = vectors.iter().filter_map(|v| v.check().err()).collect();
    assert!(wrong.is_empty(), "{} of {} vectors:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    assert_eq!(Vector::state(&vectors), FORMAT_STATE, "`vectors --check` says where it stands");
}

#[test]
fn files_and_list_name_the_same_cases() {
    let listed = listed_cases();
    let vectors = Vector::all().unwrap();
    for v in &vectors {
        assert!(listed.contains(&v.case), "{}/{} is not in the list, or differs", v.case.codec, v.case.name);
    }
    for case in &listed {
        let there = vectors.iter().any(|v| v.case == *case);
        assert!(there || !folder().join(&case.codec).exists(), "{}/{} has no files", case.codec, case.name);
    }
    for codec in CODECS {
        // As the program `vectors` would write it: a row that was lost or changed by hand shows.
        let text = std::fs::read_to_string(folder().join(codec).join("vectors.toml")).unwrap();
        assert_eq!(text, table(codec, &vectors));
    }
    for (k, case) in listed.iter().enumerate() {
        assert!(!listed[..k].iter().any(|c| (&c.codec, &c.name) == (&case.codec, &case.name)), "{} twice", case.name);
    }
}

#[test]
fn decoded_bytes_lie_beside_one_vector_of_each_codec() {
    for codec in CODECS {
        // What they are, reading the vector has checked.
        let path = folder().join(codec).join("worked-example.raw");
        assert!(path.exists(), "no {}", path.display());
    }
}
