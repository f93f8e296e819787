// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the files of listed golden vectors that have none, or checks all that are there.
//!
//! ```text
//! cargo run --example vectors               write what is missing, for every codec
//! cargo run --example vectors -- szx        only for one codec
//! cargo run --example vectors -- --check    read, encode and decode every vector
//! ```

#[path = "../tests/common/mod.rs"]
mod common;

use common::cases;
use common::vectors::{CODECS, Vector};

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--check"] => check(),
        [] => write(None),
        [codec] if CODECS.contains(&codec) => write(Some(codec)),
        _ => Err(format!("{arguments:?}: give nothing, --check, or one of {CODECS:?}")),
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

fn write(codec: Option<&str>) -> Result<(), String> {
    let there: Vec<_> = Vector::all().unwrap_or_default().into_iter().map(|v| v.case).collect();
    let missing = cases::all().into_iter().filter(|c| !there.contains(c) && codec.is_none_or(|only| only == c.codec));
    let mut written = 0;
    for case in missing {
        let vector = Vector::make(case)?;
        vector.write()?;
        println!("{}/{}: {} bytes", vector.case.codec, vector.case.name, vector.frame.len());
        written += 1;
    }
    println!("{written} written, {} were there", there.len());
    Ok(())
}
