// SPDX-License-Identifier: MIT OR Apache-2.0
//! One frame in one file: compress, decompress, inspect.

use crate::args::{self, Numbers, RequestArgs};
use crate::{Fail, Outcome};
use h5z_gpu::frame::Frame;
use h5z_gpu::{Engine, Extents, Mode};
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
    let codec = Frame::open(&frame, 1)?.header.codec;
    say!("{codec}: {} bytes to {}, ratio {}", raw.len(), frame.len(), ratio(raw.len() as u64, frame.len() as u64));
    Ok(())
}

pub(crate) fn decompress(a: &Decompress) -> Outcome {
    let frame = args::read(&a.input)?;
    // The checksum comes first, so that a damaged length is not believed.
    let header = Frame::open(&frame, Engine::global().threads())?.header;
    if header.raw_len > a.limit {
        return Err(Fail::Wrong(format!(
            "frames: {} decodes to {} bytes, the limit is {}: give --limit {} if that is what you expect",
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
    match frame.draft() {
        0 => say!("format       {}", frame.version()),
        state => say!("format       {}, state {state:08x} of an unreleased build", frame.version()),
    }
    say!("codec        {} ({})", h.codec.number(), h.codec);
    say!("mode         {} ({})", h.mode.number(), h.mode.name());
    match h.mode {
        Mode::Lossless => say!("bound        none: the same bits"),
        Mode::PointwiseRelative => say!("bound        {:e} times each value", h.used),
        _ => say!("bound        {:e} absolute, as used", h.used),
    }
    say!("type         {:?}", h.dtype);
    say!("extents      {}", extents(h.extents));
    say!("raw bytes    {}", h.raw_len);
    say!("stored bytes {}, ratio {}", frame.stored_len(), ratio(h.raw_len, frame.stored_len()));
    let names = h5z_gpu::codec::sections(h.codec);
    for (k, len) in frame.section_lens().iter().enumerate() {
        say!("section {k}    {len} bytes{}", names.get(k).map_or(String::new(), |n| format!(" ({n})")));
    }
    say!("checksum     right");
    Ok(())
}

fn extents(extents: Extents) -> String {
    match extents.as_slice() {
        [] => "none".into(),
        dims => dims.iter().map(u32::to_string).collect::<Vec<_>>().join(" x "),
    }
}

fn ratio(raw: u64, stored: u64) -> String {
    format!("{:.3}", raw as f64 / stored as f64)
}
