// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a search begins with: for each target a folder of inputs, from the golden vectors, from small chunks, and
//! what earlier searches kept.

#[path = "../../common/generate.rs"]
#[allow(dead_code)] // other tests use the rest
mod generate;

use crate::targets::{CALLS, FRAMES, WORDS, kept};
use h5z_gpu::words;
use h5z_gpu::{Class, Dtype, Engine, Params};
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Bytes of the longest seed: a search among short ones is faster.
const LONGEST: usize = 4096;
/// Bytes before the frame in the targets of arrays: `HEAD` of targets/arrays.rs.
const HEAD: usize = 48;
const CODECS: [&str; 8] = ["stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"];

/// Numbered files of one target each.
struct Seeds {
    folder: PathBuf,
    count: usize,
}

impl Seeds {
    fn put(&mut self, target: &str, parts: &[&[u8]]) -> Result<()> {
        let bytes = parts.concat();
        if bytes.len() <= LONGEST + HEAD {
            fs::create_dir_all(self.folder.join(target))?;
            fs::write(self.folder.join(target).join(format!("{:04}", self.count)), bytes)?;
            self.count += 1;
        }
        Ok(())
    }

    /// One frame, for every target that takes frames.
    fn frame(&mut self, frame: &[u8]) -> Result<()> {
        self.put("header", &[frame])?;
        if frame.len() < 56 {
            return Ok(());
        }
        // Nothing is left broken.
        let frame = [&[0; 8], &frame[8..]].concat();
        if let Some(codec) = CODECS.get(usize::from(frame[9])) {
            self.put(codec, &[&frame])?;
        }
        for (k, layout) in [[0; HEAD], std::array::from_fn(|i| (i * 37 + self.count) as u8)].iter().enumerate() {
            self.put("part", &[layout, &frame])?;
            self.put("calls", &[&[k as u8, 0, 0, 0, 0, 0], &frame])?;
        }
        self.put("file", &[&[0; HEAD], &frame])?;
        self.put("filter", &[&[0, 0], &frame])
    }
}

/// The golden vectors' frames and those to refuse.
fn vectors() -> Result<Vec<Vec<u8>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/v2");
    let mut frames = Vec::new();
    for folder in fs::read_dir(root)? {
        for file in fs::read_dir(folder?.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|e| e == "bin") {
                frames.push(fs::read(path)?);
            }
        }
    }
    Ok(frames)
}

/// Small chunks of each type through each codec and mode.
fn chunks(seeds: &mut Seeds) -> Result<()> {
    const REQUESTS: [&str; 17] = [
        "mode=lossless",
        "mode=abs,bound=1e-2",
        "mode=abs,bound=1e-3,codec=szx",
        "mode=rel,bound=1e-2,codec=szx",
        "mode=pw_rel,bound=1e-2,codec=szx",
        "mode=abs,bound=1e-2,codec=lorenzo",
        "mode=abs,bound=0.5,codec=lorenzo",
        "mode=pw_rel,bound=1e-1,codec=lorenzo",
        "mode=psnr,bound=60,codec=lorenzo",
        "mode=lossless,codec=ndzip",
        "mode=abs,bound=1e-2,codec=planes",
        "mode=rel,bound=1e-3,codec=planes",
        "mode=abs,bound=1e-1,codec=planes",
        "mode=psnr,bound=50,codec=planes",
        "mode=lossless,codec=planes",
        "mode=abs,bound=1e3,codec=planes",
        "mode=abs,bound=1e-2,codec=dense",
    ];
    let i16 = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(2) };
    let i32 = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
    let f32be = Dtype { big_endian: true, ..Dtype::F32 };
    let types = [
        (Dtype::F32, "<f4"),
        (Dtype::F64, "<f8"),
        (f32be, ">f4"),
        (i32, "<i4"),
        (i16, "<i2"),
        (Dtype::bytes(3), "|V3"),
    ];
    let shapes: [&[u64]; 6] = [&[60], &[9, 17], &[5, 6, 7], &[1030], &[17, 17, 17], &[2, 3, 4, 30]];
    let engine = Engine::with_threads(1);
    for (t, (dtype, _)) in types.iter().enumerate() {
        for request in REQUESTS {
            let params = Params::new(request.parse().expect("a request"), *dtype, &[2]).expect("a chunk");
            let stored = words::store(&params, &[], 1);
            let list: Vec<u8> = stored.iter().flat_map(|w| w.to_le_bytes()).collect();
            seeds.put("words", &[&[7], &list])?;
            for (s, dims) in shapes.iter().enumerate() {
                let name = generate::NAMES[(7 * t + 3 * s + request.len()) % generate::NAMES.len()];
                let n = dims.iter().product::<u64>() as usize * usize::from(dtype.size);
                let raw = generate::input(name, 7, *dtype, dims, None, n);
                let params = Params { extents: h5z_gpu::Extents::new(dims).expect("extents"), ..params };
                let frame = engine.encode(&params, &raw);
                seeds.frame(&frame)?;
                let stored = words::store(&params, &[], dims.len() as u8);
                let list: Vec<u8> = stored.iter().flat_map(|w| w.to_le_bytes()).collect();
                let blank = [&[0; 8], &frame[8..]].concat();
                seeds.put("filter", &[&[3, stored.len() as u8], &list, &blank])?;
                seeds.put("filter", &[&[7, stored.len() as u8], &list, &raw])?;
                if s < 3 {
                    let layout: [u8; HEAD] = std::array::from_fn(|i| (i * 29 + seeds.count) as u8);
                    seeds.put("encode", &[&layout, &raw])?;
                }
            }
        }
    }
    Ok(())
}

/// Writes all of them.
pub fn write(folder: PathBuf) -> Result<()> {
    let mut seeds = Seeds { folder, count: 0 };
    for frame in vectors()? {
        seeds.frame(&frame)?;
    }
    chunks(&mut seeds)?;
    for word in [11003u32, 12504, 21004, 31002, 40600, 90000, 390000, 590000, 711003] {
        seeds.put("words", &[&[0], &word.to_le_bytes()])?;
        let three = words::several(words::request(&[word]).expect("a request"));
        seeds.put("words", &[&[0], &three.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()])?;
    }
    for text in [
        "11003",
        "mode=lossless",
        "mode=abs,bound=1e-3,codec=szx",
        "mode=psnr, bound=60",
        "mode=abs,bound=1e-3,keep=sign+range",
        "<f4",
        ">f8",
        "|V16",
        "mode=pw_rel,bound=1e-2",
    ] {
        seeds.put("text", &[&[80], text.as_bytes()])?;
    }
    for text in [
        r#"{"id": "h5z-gpu"}"#,
        r#"{"id": "h5z-gpu", "mode": "abs", "bound": 0.001, "codec": "szx"}"#,
        r#"{"id": "h5z-gpu", "mode": "rel", "bound": "1e-3"}"#,
        r#"{"id":"h5z-gpu","mode":"lossless","codec":"planes","x":[1,{"y":null},true,"\u00e4"]}"#,
    ] {
        seeds.put("json", &[text.as_bytes()])?;
    }
    for call in 2..5u8 {
        seeds.put("calls", &[&std::array::from_fn::<u8, 200, _>(|i| if i == 0 { call } else { (i * 7) as u8 })])?;
        seeds.put("calls", &[&std::array::from_fn::<u8, 90, _>(|i| if i == 0 { call } else { (i % 5) as u8 })])?;
    }
    for (target, _) in FRAMES.iter().chain(&WORDS).chain(&CALLS) {
        for input in kept(target)? {
            seeds.put(target, &[&input])?;
        }
    }
    println!("{} seeds in {}", seeds.count, seeds.folder.display());
    Ok(())
}
