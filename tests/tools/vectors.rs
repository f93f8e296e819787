// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the frames and rows of listed golden vectors that have none, or checks all that are there.
//!
//! ```text
//! cargo run -p h5z-gpu-tools --bin vectors             write what is missing, for every codec
//! cargo run -p h5z-gpu-tools --bin vectors -- szx      only for one codec
//! cargo run -p h5z-gpu-tools --bin vectors -- --check  read, encode and decode every vector
//! cargo run -p h5z-gpu-tools --bin vectors -- --anew   before a release only: write all files again
//! ```

#[path = "../common/mod.rs"]
mod common;

use common::refused;
use common::vectors::{CODECS, Case, Vector, folder, listed_cases, table};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--check"] => check(),
        ["--anew"] => anew(),
        [] => write(None),
        [codec] if CODECS.contains(&codec) => write(Some(codec)),
        _ => Err(format!("{arguments:?}: give nothing, --check, --anew, or one of {CODECS:?}")),
    }
}

fn check() -> Result<(), String> {
    let vectors = Vector::all()?;
    for v in &vectors {
        v.check()?;
    }
    println!("{} vectors: bytes out and values back as recorded", vectors.len());
    Ok(())
}

/// Writes every file again and says which cases decode to other values than before.
fn anew() -> Result<(), String> {
    let before = Vector::all()?;
    std::fs::remove_dir_all(folder()).map_err(|e| e.to_string())?;
    write(None)?;
    for v in Vector::all()? {
        let old = before.iter().find(|b| (&b.case.codec, &b.case.name) == (&v.case.codec, &v.case.name));
        if old.is_some_and(|old| old.decoded_fnv != v.decoded_fnv) {
            println!("{}/{} decodes to other values", v.case.codec, v.case.name);
        }
    }
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
