// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program for bare numbers and frames, run as a developer runs it.

#[path = "../../common/generate.rs"]
#[allow(dead_code)]
mod generate;

use h5z_gpu::Dtype;
use std::path::{Path, PathBuf};
use std::process::Command;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_frames"))
}

/// Exit status, standard output, standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let out = program().args(arguments).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// Runs what must work.
fn good(line: &str) -> String {
    let (status, out, err) = run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!((status, &*err), (0, ""), "{line}: {out}");
    out
}

/// Runs what must be refused with this status; the sentence.
fn bad(line: &str, status: i32) -> String {
    let (got, out, err) = run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(got, status, "{line}: {out}{err}");
    assert!((err.starts_with("frames: ") || err.starts_with("h5z-gpu: ")) && err.len() > 40, "{line}: {err}");
    err
}

/// A folder of its own for each test, empty at the start.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_file_goes_through_compress_inspect_decompress_and_verify() {
    let dir = folder("cli-round-trip");
    let [raw, frame, back] = ["raw", "frame", "back"].map(|n| dir.join(n).to_str().unwrap().to_string());
    for (dtype, name) in [(Dtype::F32, "f32"), (Dtype::F64, "f64"), (Dtype { big_endian: true, ..Dtype::F32 }, "f32be")]
    {
        let n = 40 * 300 * usize::from(dtype.size);
        let fill = if dtype.size == 4 { u64::from(1e20f32.to_bits()) } else { 1e20f64.to_bits() };
        std::fs::write(&raw, generate::input("masked", 3, dtype, &[40, 300], Some(fill), n)).unwrap();
        for (mode, bound) in [("abs", "1e-3"), ("rel", "1e-3"), ("pw_rel", "1e-2"), ("psnr", "70"), ("lossless", "")] {
            let request = if bound.is_empty() { format!("mode={mode}") } else { format!("mode={mode},bound={bound}") };
            let numbers = format!("--dtype {name} --dims 40x300 --fill 1e20");
            good(&format!("compress {raw} {frame} {numbers} {request}"));
            let text = good(&format!("inspect {frame}"));
            assert!(text.contains(&format!("raw bytes    {n}\n")) && text.contains("checksum     right"), "{text}");
            assert!(text.lines().filter(|l| l.starts_with("section")).all(|l| l.ends_with(')')), "{text}");
            good(&format!("decompress {frame} {back}"));
            for reconstructed in [&frame, &back] {
                let text = good(&format!("verify {raw} {reconstructed} --dtype {name} --fill 1e20 {request}"));
                assert!(text.contains("held: no violation"), "{text}");
            }
        }
        good(&format!("verify {raw} {frame}"));
    }
}

#[test]
fn a_broken_promise_and_a_damaged_frame_end_with_status_1() {
    let dir = folder("cli-broken");
    let [raw, frame, other] = ["raw", "frame", "other"].map(|n| dir.join(n).to_str().unwrap().to_string());
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    std::fs::write(&raw, bytes(&values)).unwrap();
    let mut changed = values.clone();
    changed[7] += 0.25;
    std::fs::write(&other, bytes(&changed)).unwrap();
    good(&format!("verify {raw} {other} --dtype f32 mode=abs,bound=0.25"));
    let text = bad(&format!("verify {raw} {other} --dtype f32 mode=abs,bound=0.2499"), 1);
    assert!(text.contains("BROKEN for 1 values; the first is 7"), "{text}");
    assert!(bad(&format!("verify {raw} {other} mode=lossless"), 1).contains("first different byte is 30"));
    assert!(bad(&format!("verify {raw} {other}"), 2).contains("state no bound"));

    good(&format!("compress {raw} {frame} --dtype f32 mode=abs,bound=0.1"));
    std::fs::write(&other, [0; 4]).unwrap();
    assert!(bad(&format!("verify {other} {frame}"), 1).contains("the original has 4 bytes, the reconstruction 4000"));
    let mut damaged = std::fs::read(&frame).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&frame, damaged).unwrap();
    assert!(bad(&format!("decompress {frame} {other}"), 1).contains("checksum"));
    assert!(bad(&format!("inspect {raw}"), 1).contains("mark"));
    assert!(bad(&format!("inspect {raw}-absent"), 1).contains("No such file"));
    assert!(
        bad(&format!("compress {raw} {frame} --dtype f32 --dims 10x10 mode=abs,bound=1"), 2)
            .contains("need 400 bytes, the file has 4000")
    );
    assert!(bad(&format!("compress {raw} {frame} --dtype f23 mode=abs,bound=1"), 2).contains("allowed are f32"));
}

/// Judged is the promise, not what a writer makes of it: 0.1 of a range of 3 is no f64, and these two differ by just
/// that.
#[test]
fn verify_holds_a_value_exactly_at_the_bound() {
    let dir = folder("cli-exact");
    let [raw, other] = ["raw", "other"].map(|n| dir.join(n).to_str().unwrap().to_string());
    let (unit, down) = (2f64.powi(-55), -10_808_639_105_689_190.0 * 2f64.powi(-55));
    let write = |path: &str, values: &[f64]| {
        std::fs::write(path, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    };
    let judged = |request: &str| run(&["verify", &raw, &other, "--dtype", "f64", "--fill", "9", request]).0;
    write(&raw, &[-1.0, 2.0, unit]);
    for (last, status) in [(down, 0), (down.next_down(), 1)] {
        write(&other, &[-1.0, 2.0, last]);
        assert_eq!(judged("mode=rel,bound=0.1"), status, "{last:e}");
    }
    write(&raw, &[3.0, 13.0, 4.0, 5.0]);
    for (last, status) in [(6.0, 0), (6f64.next_up(), 1)] {
        write(&other, &[4.0, 14.0, 5.0, last]);
        assert_eq!(judged("mode=psnr,bound=20"), status, "{last:e}");
    }
    let text = bad(&format!("verify {raw} {other} --dtype f64 mode=psnr,bound=20.5"), 1);
    assert!(text.contains("below 20.5"), "{text}");
    // Zeros are HDF5's default fill: they stretch no range, unless another fill value is named.
    write(&raw, &[280.0, 0.0, 281.0]);
    write(&other, &[280.0, 0.0, 281.1]);
    bad(&format!("verify {raw} {other} --dtype f64 mode=rel,bound=0.01"), 1);
    good(&format!("verify {raw} {other} --dtype f64 --fill 9 mode=rel,bound=0.01"));
}

#[test]
fn a_limit_below_the_raw_length_is_named() {
    let dir = folder("cli-limit");
    let [raw, frame] = ["raw", "frame"].map(|n| dir.join(n).to_str().unwrap().to_string());
    std::fs::write(&raw, vec![0u8; 4000]).unwrap();
    good(&format!("compress {raw} {frame} --dtype i16"));
    assert!(bad(&format!("decompress {frame} {raw} --limit 3999"), 1).contains("--limit 4000"));
}

#[test]
fn bench_prints_verified_rates() {
    let dir = folder("cli-bench");
    let raw = dir.join("raw").to_str().unwrap().to_string();
    std::fs::write(&raw, generate::input("wave", 1, Dtype::F32, &[50, 400], None, 80_000)).unwrap();
    let text = good(&format!("bench {raw} --dtype f32 --dims 50x400 --runs 1 --threads 1,2 --chunk-bytes 20000"));
    assert_eq!(text.lines().filter(|l| l.starts_with("mode=")).count(), 8, "{text}");
}
