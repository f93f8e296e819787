// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of all kernel files for an architecture become one zstd frame, since kernels resemble each other.

use super::compiler::{Compiler, Target};
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// An image starts at a multiple of this many bytes: drivers read it in place.
const ALIGN: usize = 16;
/// Nineteen more per cent smaller than the default, and quick enough.
const LEVEL: i32 = 19;

/// One kernel file's image, and the compiler's report on it.
pub(crate) struct Made {
    pub(crate) stem: String,
    pub(crate) image: Vec<u8>,
    pub(crate) report: String,
}

/// Writes `OUT_DIR/ARCH.zst` and returns the entry of `IMAGES`. Frames are kept in `cache`, as images are.
pub(crate) fn entry(target: Target, made: &[Made], out: &Path, cache: &Path) -> Result<String, String> {
    let (mut bytes, mut files, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    for Made { stem, image, report } in made {
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        files.push(format!("({stem:?}, {})", bytes.len()));
        bytes.extend(image);
        // The driver reads PTX up to a NUL.
        if target.ptx && image.last() != Some(&0) {
            bytes.push(0);
        }
        kernels.extend(self::kernels(report));
    }
    let mut hasher = DefaultHasher::new();
    (LEVEL, &bytes).hash(&mut hasher);
    let kept = cache.join(format!("{target}-{:016x}.zst", hasher.finish()));
    if !kept.is_file() {
        super::keep(&kept, &packed(&bytes).map_err(|e| format!("zstd: {e}"))?)?;
    }
    let frame = out.join(format!("{target}.zst"));
    fs::copy(&kept, &frame).map_err(|e| format!("{}: {e}", kept.display()))?;
    let mut text = String::new();
    writeln!(text, "    Image {{\n        arch: {}, ptx: {}, len: {},", target.arch, target.ptx, bytes.len())
        .expect("a string");
    writeln!(text, "        frame: include_bytes!({:?}),", frame.display().to_string()).expect("a string");
    writeln!(text, "        files: &[{}],", files.join(", ")).expect("a string");
    writeln!(text, "        kernels: &[\n            {}\n        ],\n    }},", kernels.join(",\n            "))
        .expect("a string");
    Ok(text)
}

/// One frame that looks back over all of the bytes.
fn packed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.window_log(bytes.len().next_power_of_two().ilog2().clamp(20, 26))?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    std::io::Write::write_all(&mut encoder, bytes)?;
    encoder.finish()
}

/// `IMAGES` and what they were made by.
pub(crate) fn list(compiler: Option<&Compiler>, entries: &str) -> String {
    let (by, major) = compiler.map_or(("".into(), 0), |c| (c.to_string(), c.release.0));
    format!(
        "/// The compiler that made the images; empty in a build without.\npub static COMPILER: &str = {by:?};\n\
         /// Major release of CUDA that it is of; 0 in a build without.\npub static CUDA_MAJOR: u32 = {major};\n\
         /// An image for each architecture; none in a build without.\npub static IMAGES: &[Image] = &[\n{entries}];\n"
    )
}

/// `(name, registers, spilled bytes)` of every kernel in the assembler's report.
fn kernels(report: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut name, mut spilled) = (String::new(), 0u32);
    for line in report.lines() {
        if line.contains("Compiling entry function") {
            name = line.split('\'').nth(1).unwrap_or_default().into();
            spilled = 0;
        } else if let Some(at) = line.find(" bytes spill stores") {
            spilled = line[..at].rsplit([' ', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if let Some(rest) = line.split("Used ").nth(1)
            && !name.is_empty()
        {
            let regs: u32 = rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            found.push(format!("({name:?}, {regs}, {spilled})"));
            name.clear();
        }
    }
    found
}
