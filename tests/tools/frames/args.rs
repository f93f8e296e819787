// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that several subcommands share: a request, a type, extents, a fill value.

use crate::{Fail, Outcome};
use clap::Args;
use h5z_gpu::{Class, Dtype, Params, Request};
use std::path::Path;

/// What is asked of the writer.
#[derive(Args)]
pub(crate) struct RequestArgs {
    /// mode=abs,bound=1e-3[,codec=szx]; lossless when absent
    #[arg(value_name = "REQUEST")]
    text: Option<String>,
}

impl RequestArgs {
    /// The request, where one is given.
    pub(crate) fn given(&self) -> Outcome<Option<Request>> {
        Ok(self.text.as_deref().map(str::parse::<Request>).transpose()?)
    }

    /// The request; lossless when nothing is given.
    pub(crate) fn request(&self) -> Outcome<Request> {
        Ok(self.given()?.unwrap_or_default())
    }
}

/// What the numbers of a raw file are.
#[derive(Args)]
pub(crate) struct Numbers {
    /// f32 f64 i8 u8 i16 u16 i32 u32 i64 u64, with `be` for big-endian (f32be); bytesN for N bytes without meaning
    #[arg(long)]
    dtype: String,
    /// Extents, slowest first: 100x500x500. One extent, all elements, when absent
    #[arg(long)]
    dims: Option<String>,
    /// Fill value: comes back bit for bit and widens no range
    #[arg(long, allow_negative_numbers = true)]
    fill: Option<String>,
}

impl Numbers {
    /// Parameters for `len` bytes of these numbers.
    pub(crate) fn params(&self, request: Request, len: u64) -> Outcome<Params> {
        let dtype = dtype(&self.dtype)?;
        let size = u64::from(dtype.size);
        let dims = match &self.dims {
            Some(text) => dims(text)?,
            None => vec![len / size],
        };
        let need = dims.iter().try_fold(size, |a, &d| a.checked_mul(d));
        if need != Some(len) {
            return Err(Fail::Refused(format!(
                "frames: --dims {dims:?} of {} need {} bytes, the file has {len}",
                self.dtype,
                need.map_or("more than 2^64".into(), |n| n.to_string())
            )));
        }
        let mut params = Params::new(request, dtype, &dims)?;
        params.fill = self.fill(dtype)?;
        Ok(params)
    }

    fn fill(&self, dtype: Dtype) -> Outcome<Option<u64>> {
        let Some(text) = &self.fill else { return Ok(None) };
        Ok(Some(match (dtype.class, dtype.size) {
            // The text is rounded once, to the type itself.
            (Class::Float, 4) => match text.parse::<f32>() {
                Ok(v) => v.to_bits().into(),
                Err(_) => return Err(Fail::Refused(format!("frames: --fill {text:?} is no number"))),
            },
            (Class::Float, _) => number(text)?.to_bits(),
            _ => return Err(Fail::Refused("frames: --fill is for f32 and f64; other types are lossless".into())),
        }))
    }
}

/// A decimal number.
pub(crate) fn number(text: &str) -> Outcome<f64> {
    text.parse().map_err(|_| Fail::Refused(format!("frames: {text:?} is no number; such as 1e-3")))
}

/// The type of this name.
pub(crate) fn dtype(name: &str) -> Outcome<Dtype> {
    let (stem, big_endian) = name.strip_suffix("be").map_or((name, false), |s| (s, true));
    let integer = |size, signed| Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) };
    let little = match stem {
        "f32" => Dtype::F32,
        "f64" => Dtype::F64,
        "i8" => integer(1, true),
        "u8" => integer(1, false),
        "i16" => integer(2, true),
        "u16" => integer(2, false),
        "i32" => integer(4, true),
        "u32" => integer(4, false),
        "i64" => integer(8, true),
        "u64" => integer(8, false),
        _ => match stem.strip_prefix("bytes").map(str::parse::<u8>) {
            Some(Ok(n)) if n > 0 && !big_endian => Dtype::bytes(n),
            _ => {
                return Err(Fail::Refused(format!(
                    "frames: --dtype {name:?}; allowed are f32 f64 i8 u8 i16 u16 i32 u32 i64 u64, with `be` for \
                     big-endian, and bytes1 to bytes255"
                )));
            }
        },
    };
    Ok(Dtype { big_endian, ..little })
}

fn dims(text: &str) -> Outcome<Vec<u64>> {
    let one = |d: &str| d.trim().parse::<u64>().ok().filter(|&d| d > 0);
    text.split(['x', ',']).map(one).collect::<Option<_>>().ok_or_else(|| {
        Fail::Refused(format!("frames: --dims {text:?}; give positive extents, slowest first, such as 100x500x500"))
    })
}

/// Reads a whole file of numbers, or a frame.
pub(crate) fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|e| Fail::Wrong(format!("frames: {}: {e}", path.display())))
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Outcome {
    std::fs::write(path, bytes).map_err(|e| Fail::Wrong(format!("frames: {}: {e}", path.display())))
}
