// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that several subcommands share: a request, a type, extents, a fill value.

use crate::{Fail, Outcome};
use clap::Args;
use h5z_gpu::{Bound, Class, Codec, Dtype, Params, Request};
use std::path::Path;

/// What the user chooses.
#[derive(Args)]
pub(crate) struct RequestArgs {
    /// abs 1e-3 | rel 1e-4 | pw_rel 0.01 | psnr 60 | lossless | mode=abs,bound=1e-3[,codec=szx]
    #[arg(value_name = "MODE [VALUE]", allow_negative_numbers = true)]
    pub(crate) request: Vec<String>,
    /// A codec's name; without it the writer chooses
    #[arg(long)]
    codec: Option<String>,
}

impl RequestArgs {
    /// The request; lossless when nothing is given.
    pub(crate) fn request(&self) -> Outcome<Request> {
        let codec = self.codec.as_deref().map(Codec::named).transpose()?;
        let words: Vec<&str> = self.request.iter().map(String::as_str).collect();
        let bound = match words[..] {
            [] => Bound::Lossless,
            [text] if text.contains('=') => {
                let request: Request = text.parse()?;
                return Ok(Request { codec: codec.unwrap_or(request.codec), ..request }.check()?);
            }
            [mode] => Bound::named(mode, None)?,
            [mode, value] => Bound::named(mode, Some(number(value)?))?,
            _ => return Err(Fail::Refused(format!("h5z-gpu: {words:?}: give a mode and a value, such as abs 1e-3"))),
        };
        Ok(Request { codec: codec.unwrap_or_default(), bound }.check()?)
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
                "h5z-gpu: --dims {dims:?} of {} need {} bytes, the file has {len}",
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
                Err(_) => return Err(Fail::Refused(format!("h5z-gpu: --fill {text:?} is no number"))),
            },
            (Class::Float, _) => number(text)?.to_bits(),
            _ => return Err(Fail::Refused("h5z-gpu: --fill is for f32 and f64; other types are lossless".into())),
        }))
    }
}

/// A decimal number.
pub(crate) fn number(text: &str) -> Outcome<f64> {
    text.parse().map_err(|_| Fail::Refused(format!("h5z-gpu: {text:?} is no number; such as 1e-3")))
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
                    "h5z-gpu: --dtype {name:?}; allowed are f32 f64 i8 u8 i16 u16 i32 u32 i64 u64, with `be` for \
                     big-endian, and bytes1 to bytes255"
                )));
            }
        },
    };
    Ok(Dtype { big_endian, ..little })
}

/// Short name of a type.
pub(crate) fn dtype_name(d: Dtype) -> String {
    let order = if d.big_endian { "be" } else { "" };
    match d.class {
        Class::Float => {
            format!(
                "f{}{order} ({} exponent, {} mantissa bits)",
                u32::from(d.size) * 8,
                d.exponent_bits,
                d.mantissa_bits
            )
        }
        Class::Integer => format!("{}{}{order}", if d.signed { "i" } else { "u" }, u32::from(d.size) * 8),
        Class::Bytes if d.size == 0 => "bytes, element size unknown".into(),
        Class::Bytes => format!("bytes{}", d.size),
    }
}

fn dims(text: &str) -> Outcome<Vec<u64>> {
    let one = |d: &str| d.trim().parse::<u64>().ok().filter(|&d| d > 0);
    text.split(['x', ',']).map(one).collect::<Option<_>>().ok_or_else(|| {
        Fail::Refused(format!("h5z-gpu: --dims {text:?}; give positive extents, slowest first, such as 100x500x500"))
    })
}

/// Reads a whole file of numbers, or a frame.
pub(crate) fn read(path: &Path) -> Outcome<Vec<u8>> {
    crate::elsewhere::refuse(path)?;
    std::fs::read(path).map_err(|e| Fail::Wrong(format!("h5z-gpu: {}: {e}", path.display())))
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Outcome {
    std::fs::write(path, bytes).map_err(|e| Fail::Wrong(format!("h5z-gpu: {}: {e}", path.display())))
}
