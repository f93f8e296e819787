// SPDX-License-Identifier: MIT OR Apache-2.0
//! One frame in one file: compress, decompress, inspect.

use crate::args::{self, Numbers, RequestArgs, dtype_name};
use crate::{Fail, Outcome};
use h5z_gpu::Engine;
use h5z_gpu::frame::{Frame, HeaderInFile};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Compress {
    /// Raw numbers, no header
    input: PathBuf,
    /// The frame
    output: PathBuf,
    #[command(flatten)]
    numbers: Numbers,
    #[command(flatten)]
    request: RequestArgs,
}

#[derive(clap::Args)]
pub(crate) struct Decompress {
    /// The frame
    input: PathBuf,
    /// Raw numbers
    output: PathBuf,
    /// Most bytes that the frame may decode to
    #[arg(long, default_value_t = 16 << 30)]
    limit: u64,
}

#[derive(clap::Args)]
pub(crate) struct Inspect {
    /// The frame
    frame: PathBuf,
}

pub(crate) fn compress(a: &Compress) -> Outcome {
    let request = a.request.request()?;
    let raw = args::read(&a.input)?;
    let params = a.numbers.params(request, raw.len() as u64)?;
    let frame = Engine::global().encode(&params, &raw);
    args::write(&a.output, &frame)?;
    let header = Frame::open(&frame, 1)?.header;
    say!("{}: {} bytes to {}, ratio {}", codec_name(header.codec), raw.len(), frame.len(), ratio(&header));
    Ok(())
}

pub(crate) fn decompress(a: &Decompress) -> Outcome {
    let frame = args::read(&a.input)?;
    // The checksum comes first, so that a damaged length is not believed.
    let header = Frame::open(&frame, Engine::global().threads())?.header;
    if header.raw_len > a.limit {
        return Err(Fail::Wrong(format!(
            "h5z-gpu: {} decodes to {} bytes, the limit is {}: give --limit {} if that is what you expect",
            a.input.display(),
            header.raw_len,
            a.limit,
            header.raw_len
        )));
    }
    let raw = Engine::global().decode(&frame, a.limit)?;
    args::write(&a.output, &raw)
}

pub(crate) fn inspect(a: &Inspect) -> Outcome {
    let bytes = args::read(&a.frame)?;
    let frame = Frame::open(&bytes, Engine::global().threads())?;
    let h = &frame.header;
    say!("format       {}", h.version);
    say!("codec        {} ({})", h.codec, codec_name(h.codec));
    say!("mode         {} ({})", h.mode, mode_name(h.mode));
    match h.mode {
        9 => say!("bound        none: the same bits"),
        3 => say!("bound        {:e} times each value", h.used),
        _ => say!("bound        {:e} absolute, as used", h.used),
    }
    say!("type         {}", dtype_name(h.dtype));
    say!("extents      {}", extents(h));
    say!("raw bytes    {}", h.raw_len);
    say!("stored bytes {}, ratio {}", h.stored_len, ratio(h));
    let names: &[&str] = match h.codec {
        0 => &["raw bytes"],
        1 => &["table", "payload"],
        2 => &["head", "kinds", "ends", "payload"],
        3 => &["grid", "stream"],
        4 => &["head", "tile ends", "payload"],
        _ => &[],
    };
    for (k, len) in frame.section_lens().iter().enumerate() {
        say!("section {k}    {len} bytes{}", names.get(k).map_or(String::new(), |n| format!(" ({n})")));
    }
    say!("checksum     right");
    Ok(())
}

fn extents(h: &HeaderInFile) -> String {
    match h.extents.as_slice() {
        [] => "none".into(),
        dims => dims.iter().map(u32::to_string).collect::<Vec<_>>().join(" x "),
    }
}

fn ratio(h: &HeaderInFile) -> String {
    format!("{:.3}", h.raw_len as f64 / h.stored_len as f64)
}

/// A codec's name by its number in the frame.
pub(crate) fn codec_name(number: u8) -> String {
    match number {
        0 => "stored".into(),
        1 => "szx".into(),
        2 => "lorenzo".into(),
        3 => "ndzip".into(),
        4 => "bytes".into(),
        n => format!("codec {n}"),
    }
}

fn mode_name(mode: u8) -> &'static str {
    match mode {
        1 => "abs",
        2 => "rel",
        3 => "pw_rel",
        4 => "psnr",
        _ => "lossless",
    }
}
