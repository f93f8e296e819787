// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fuzzing found worth keeping, and every frame of the vectors, through the targets again.

// Instrumented code calls libFuzzer: so the same tests run with the flags of fuzz.mk, under AddressSanitizer for one.
#[cfg(feature = "libfuzzer")]
use libfuzzer_sys as _;
#[path = "programs/seeds.rs"]
mod seeds;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use targets::counting::{Counting, most_held};
use targets::repair::repair;
use targets::{CALLS, FRAMES, Target, WORDS, kept};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All targets.
fn all() -> impl Iterator<Item = Target> {
    FRAMES.into_iter().chain(WORDS).chain(CALLS)
}

fn begin() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(targets::begin);
}

/// The frames of the golden vectors, and those to refuse.
fn vectors() -> Vec<PathBuf> {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/v2")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "bin")).collect()
}

fn run((name, target): Target, bytes: &[u8], what: &str) {
    catch_unwind(AssertUnwindSafe(|| target(bytes))).unwrap_or_else(|_| panic!("{name} of {what}: {bytes:02x?}"));
}

#[test]
fn every_kept_input_keeps_the_promises() {
    begin();
    for target in all() {
        let inputs = kept(target.0).unwrap();
        assert!(inputs.len() > 20, "{} inputs for {}", inputs.len(), target.0);
        inputs.iter().enumerate().for_each(|(k, bytes)| run(target, bytes, &format!("kept input {k}")));
    }
}

/// What a search begins with.
#[test]
fn every_seed_keeps_the_promises() {
    begin();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("seeds");
    let _ = fs::remove_dir_all(&folder);
    seeds::write(folder.clone()).unwrap();
    for target in all() {
        let seeds = fs::read_dir(folder.join(target.0)).unwrap().map(|file| file.unwrap().path());
        seeds.for_each(|path| run(target, &fs::read(&path).unwrap(), &path.display().to_string()));
    }
}

#[test]
fn every_frame_of_the_vectors_keeps_the_promises() {
    begin();
    let frames = vectors();
    assert!(frames.len() > 600, "{} frames", frames.len());
    let mut decoded = 0;
    for path in frames {
        let mut bytes = fs::read(&path).unwrap();
        let [header, decoders @ ..] = FRAMES;
        let name = path.display().to_string();
        run(header, &bytes, &name);
        // Nothing is left broken: see `repair`.
        bytes.iter_mut().take(8).for_each(|b| *b = 0);
        decoded += usize::from(h5z_gpu::Engine::global().decode(&repair(&bytes, None), 1 << 24).is_ok());
        decoders.into_iter().for_each(|target| run(target, &bytes, &name));
    }
    assert!(decoded > 500, "{decoded} frames decode once they are repaired");
}

#[test]
fn memory_is_counted() {
    assert!(most_held(|| drop(std::hint::black_box(vec![1u8; 5000]))) >= 5000);
}

/// A frame's bytes changed at random, and any bytes: what a fuzzer does, for as long as a test may take.
#[test]
fn random_changes_of_kept_inputs_keep_the_promises() {
    begin();
    let mut state = 443u64;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    for target in all() {
        let inputs = kept(target.0).unwrap();
        for round in 0..2000 {
            let mut bytes = inputs[random(inputs.len())].clone();
            for _ in 0..=random(4) {
                let (at, value) = (random(bytes.len().max(1)), random(256) as u8);
                match (random(4), bytes.get_mut(at)) {
                    (0, _) => bytes.truncate(at),
                    (1, _) => bytes.extend_from_slice(&[value; 9][..random(10)]),
                    (2, Some(b)) => *b = value,
                    (_, Some(b)) => *b ^= 1 << (value % 8),
                    _ => {}
                }
            }
            run(target, &bytes, &format!("round {round}"));
        }
    }
}
