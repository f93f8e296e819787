// SPDX-License-Identifier: MIT OR Apache-2.0
//! `verify`: original against reconstruction, value by value, in exact arithmetic.

use crate::args::{self, RequestArgs, dtype};
use crate::{Fail, Outcome};
use h5z_gpu::frame::{FRAME_MAGIC, Frame, Header};
use h5z_gpu::judge::judge;
use h5z_gpu::{Bound, Class, Dtype, Engine, Mode, Request};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Raw numbers
    original: PathBuf,
    /// A frame, or raw numbers
    reconstructed: PathBuf,
    /// f32, f64, f32be, f64be; a frame says it itself
    #[arg(long)]
    dtype: Option<String>,
    /// Fill value: must be the same bits, widens no range. Without it zeros, HDF5's default, widen none
    #[arg(long, allow_negative_numbers = true)]
    fill: Option<String>,
    #[command(flatten)]
    request: RequestArgs,
}

pub(crate) fn run(a: &Args) -> Outcome {
    let (original, other) = (args::read(&a.original)?, args::read(&a.reconstructed)?);
    let asked = a.request.given()?;
    let mut dtype = a.dtype.as_deref().map(dtype).transpose()?;
    let (other, header) = if other.starts_with(&FRAME_MAGIC) {
        let threads = Engine::global().threads();
        let stored_len = other.len();
        let header = Frame::open(&other, threads)?.header;
        same_length(&original, header.raw_len)?;
        let raw = Engine::global().decode(&other, header.raw_len)?;
        // `stored` says nothing about the numbers.
        dtype = dtype.or((header.dtype.class != Class::Bytes).then_some(header.dtype));
        (raw, Some((header, stored_len)))
    } else {
        (other, None)
    };
    same_length(&original, other.len() as u64)?;
    let stated = header.map(|(h, stored_len)| {
        say!(
            "{} bytes to {}, ratio {:.3}, codec {}",
            h.raw_len,
            stored_len,
            h.raw_len as f64 / stored_len as f64,
            h.codec
        );
        kept(h)
    });
    let fill = fill(a.fill.as_deref(), dtype)?;
    let bounds = match (stated, asked) {
        (None, None) => {
            return Err(Fail::Refused(
                "frames: raw numbers state no bound; give one, such as mode=abs,bound=1e-3".into(),
            ));
        }
        (s, a) => [s.map(|s| ("stated by the frame", s)), a.map(|a| ("asked", a.bound))],
    };
    for (who, bound) in bounds.into_iter().flatten() {
        check(who, bound, dtype, fill, &original, &other)?;
    }
    Ok(())
}

fn same_length(original: &[u8], other: u64) -> Outcome {
    match original.len() as u64 {
        n if n == other => Ok(()),
        n => Err(Fail::Wrong(format!("frames: the original has {n} bytes, the reconstruction {other}"))),
    }
}

/// What a frame's values must keep to, as its header says.
pub(crate) fn kept(h: Header) -> Bound {
    match h.mode {
        Mode::PointwiseRelative => Bound::PointwiseRelative(h.used),
        Mode::Lossless => Bound::Lossless,
        _ => Bound::Absolute(h.used),
    }
}

fn fill(text: Option<&str>, dtype: Option<Dtype>) -> Outcome<Option<u64>> {
    let Some(text) = text else { return Ok(None) };
    let refuse = || Fail::Refused(format!("frames: --fill {text:?} is no number"));
    Ok(Some(match dtype.map(|d| d.size) {
        Some(4) => text.parse::<f32>().map_err(|_| refuse())?.to_bits().into(),
        _ => text.parse::<f64>().map_err(|_| refuse())?.to_bits(),
    }))
}

fn check(who: &str, bound: Bound, dtype: Option<Dtype>, fill: Option<u64>, original: &[u8], other: &[u8]) -> Outcome {
    let Some(d) = dtype.filter(|d| d.class == Class::Float && matches!(d.size, 4 | 8)) else {
        if bound != Bound::Lossless {
            return Err(Fail::Refused("frames: which numbers? give --dtype f32, f64, f32be or f64be".into()));
        }
        return match original.iter().zip(other).position(|(a, b)| a != b) {
            None => {
                say!("held: lossless, {} equal bytes", original.len());
                Ok(())
            }
            Some(at) => Err(Fail::Wrong(format!("frames: NOT lossless: the first different byte is {at}"))),
        };
    };
    let v = judge(bound, d, fill, [original, other], None, 0)?;
    let text = Request { bound, ..Request::default() };
    say!(
        "bound {who}: {text}; {} values judged, {} special ones compared by bits",
        v.judged,
        v.nan + v.infinite + v.fill
    );
    let share = if v.limit > 0.0 { format!(", {:.6} of it", v.worst / v.limit) } else { String::new() };
    say!("largest error {:e}, limit {:e}{share}; PSNR {:.2} dB", v.worst, v.limit, v.psnr());
    match v.first {
        None if v.noisy => {
            Err(Fail::Wrong(format!("frames: BROKEN: the PSNR is {} dB, below {}", v.psnr(), bound.value())))
        }
        None => {
            say!("held: no violation in exact arithmetic");
            Ok(())
        }
        Some(k) => {
            let size = usize::from(d.size);
            let at = |raw: &[u8]| raw[k as usize * size..][..size].to_vec();
            let (a, b) = (at(original), at(other));
            Err(Fail::Wrong(format!(
                "frames: BROKEN for {} values; the first is {k}: bytes {a:02x?} became {b:02x?}",
                v.broken
            )))
        }
    }
}
