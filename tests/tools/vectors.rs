// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the frames and rows of listed golden vectors that have none, or checks all that are there.
//!
//! ```text
//! cargo run -p h5z-gpu-tools --bin vectors             write what is missing, for every codec
//! cargo run -p h5z-gpu-tools --bin vectors -- szx      only for one codec
//! cargo run -p h5z-gpu-tools --bin vectors -- --check  read, encode and decode every vector
//! cargo run -p h5z-gpu-tools --bin vectors -- --anew   before a release only: write all files again
//! cargo run -p h5z-gpu-tools --bin vectors -- --release  check; write codecs/RELEASE and kernels/RELEASE
//! ```

#[path = "../common/mod.rs"]
mod common;

use common::refused;
use common::seal::released;
use common::vectors::{CODECS, Case, Vector, folder, listed_cases, table};
use h5z_gpu::release::{FORMAT_STATE, SOURCES};
use h5z_gpu::testing::SUM;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--check"] => check(),
        ["--anew"] => anew(),
        ["--release"] => release(),
        [] => write(None),
        [codec] if CODECS.contains(&codec) => write(Some(codec)),
        _ => Err(format!("{arguments:?}: give nothing, --check, --anew, --release, or one of {CODECS:?}")),
    }
}

fn check() -> Result<(), String> {
    let vectors = Vector::all()?;
    for v in &vectors {
        v.check()?;
    }
    let state = Vector::state(&vectors);
    if state != FORMAT_STATE {
        return Err(format!(
            "the vectors' state is {state:#010x}, not {FORMAT_STATE:#010x}: set FORMAT_STATE in codecs/src/release.rs, \
             STATE in readers/java and reference.py, and the table in codecs/src/FORMAT.md §1"
        ));
    }
    println!("{} vectors: bytes out and values back as recorded", vectors.len());
    Ok(())
}

/// Says that the sources of codecs and kernels, as this tool was built from them, are a release's.
fn release() -> Result<(), String> {
    check()?;
    [("codecs", SOURCES), ("kernels", SUM)].into_iter().try_for_each(|(folder, sum)| {
        let path = format!("{}/../../{folder}/RELEASE", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(&path, format!("{} {sum}\n", env!("CARGO_PKG_VERSION"))).map_err(|e| format!("{path}: {e}"))
    })
}

/// Writes every file again and says which cases decode to other values than before. What depends on zstd's release, and
/// a case for which the writer takes another codec by now, keeps its frame, with the header of today.
fn anew() -> Result<(), String> {
    let before = Vector::all()?;
    std::fs::remove_dir_all(folder()).map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for old in before {
        let vector = match Vector::make(old.case.clone()) {
            Ok(new) if old.case.size_limit(&old.frame).is_none() => new,
            _ => Vector { frame: released(&old.frame), ..old.clone() },
        };
        if vector.decoded_fnv != old.decoded_fnv {
            println!("{}/{} decodes to other values", old.case.codec, old.case.name);
        }
        vector.write()?;
        all.push(vector);
    }
    for codec in CODECS {
        let path = folder().join(codec).join("vectors.toml");
        std::fs::write(&path, table(codec, &all)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("{} written, {} frames to refuse", all.len(), refused::write()?);
    Ok(())
}

fn write(codec: Option<&str>) -> Result<(), String> {
    let mut all = Vector::all().unwrap_or_default();
    all.iter().try_for_each(Vector::write_raw)?;
    let there = all.len();
    let wanted = |c: &Case| codec.is_none_or(|only| only == c.codec);
    let missing: Vec<Case> =
        listed_cases().into_iter().filter(|c| wanted(c) && all.iter().all(|v| v.case != *c)).collect();
    for case in missing {
        let vector = Vector::make(case)?;
        vector.write()?;
        println!("{}/{}: {} bytes", vector.case.codec, vector.case.name, vector.frame.len());
        all.push(vector);
        let codec = &all[all.len() - 1].case.codec;
        let path = folder().join(codec).join("vectors.toml");
        std::fs::write(&path, table(codec, &all)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("{} written, {there} were there", all.len() - there);
    println!("{} frames to refuse written", refused::write()?);
    Ok(())
}
