// SPDX-License-Identifier: MIT OR Apache-2.0
//! `words`: a bound in every tool's words, and words in plain ones.

use crate::library::reason;
use crate::places::ID;
use crate::{Fail, Outcome, abi, variable};
use h5z_gpu::plugin::{elf, lines, sentence};
use h5z_gpu::words::{self, Stored, is_stored, request as requested, stored};
use h5z_gpu::{Bound, Class, Codec, Dtype, Keep, Request};
use libloading::Library;
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// abs 1e-3 | rel 1e-4 | pw_rel 0.01 | psnr 60 | lossless | mode=abs,bound=1e-3[,codec=szx,keep=sign+zero] |
    /// words as a tool shows them
    #[arg(value_name = "MODE [VALUE] | WORD", allow_negative_numbers = true)]
    request: Vec<String>,
    /// A codec's name; without it the writer chooses
    #[arg(long)]
    codec: Option<String>,
    /// What comes back beside an abs, rel or psnr bound: sign, zero, range, several with commas between
    #[arg(long, value_name = "sign,zero,range")]
    keep: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// Prints one tool's line alone: number, h5repack, nccopy, ncks, cdo, ncgen, h5py, xarray, c, netcdf-c, fortran,
    /// nf90, matlab, r, julia
    #[arg(long)]
    tool: Option<String>,
}

pub(crate) fn run(a: &Args) -> Outcome {
    let listed = numbers(&a.request)?.filter(|words| !words.is_empty());
    if let (Some(_), Some(keep)) = (&listed, &a.keep) {
        return Err(Fail::Refused(format!(
            "h5z-gpu: --keep {keep} beside words, which say what is kept themselves; give a mode and a value, such as \
             abs 1e-3 --keep {keep}"
        )));
    }
    if a.json {
        let words = match listed {
            Some(words) => words,
            None => shortest(request(a)?),
        };
        requested(&words)?;
        say!("{:#}", meaning(&words)?);
        return Ok(());
    }
    match listed {
        Some(words) => explain(&words),
        None => print(request(a)?, a.tool.as_deref()),
    }
}

/// The request; lossless when nothing is given.
fn request(a: &Args) -> Outcome<Request> {
    let codec = a.codec.as_deref().map(Codec::named).transpose()?;
    // As on every command line; the text form has its own commas between keys.
    let keep: Option<Keep> = a.keep.as_deref().map(|names| names.replace(',', "+").parse()).transpose()?;
    let typed: Vec<&str> = a.request.iter().map(String::as_str).collect();
    let bound = match typed[..] {
        [] => Bound::Lossless,
        [text] if text.contains('=') => {
            let request: Request = text.parse()?;
            let (codec, keep) = (codec.unwrap_or(request.codec), keep.unwrap_or(request.keep));
            return Ok(Request { codec, keep, ..request }.check()?);
        }
        [mode] => Bound::named(mode, None)?,
        [mode, value] => Bound::named(mode, Some(number(value)?))?,
        _ => {
            return Err(Fail::Refused(format!(
                "h5z-gpu: {}: give a mode and a value, such as abs 1e-3",
                typed.join(" ")
            )));
        }
    };
    Ok(Request { codec: codec.unwrap_or_default(), bound, keep: keep.unwrap_or_default() }.check()?)
}

fn number(text: &str) -> Outcome<f64> {
    text.parse().map_err(|_| Fail::Refused(format!("h5z-gpu: {text:?} is no number; such as 1e-3")))
}

/// The words of a request: one where one will do.
fn shortest(request: Request) -> Vec<u32> {
    words::pack(request).map_or_else(|| words::several(request), |word| vec![word])
}

/// What words mean, as JSON: as the plugin says it to every caller.
fn meaning(words: &[u32]) -> Outcome<Value> {
    let file = variable::plugin()?;
    if let Some(fault) = elf::fault(&file) {
        return Err(Fail::Wrong(format!("h5z-gpu: {} {fault}", file.display())));
    }
    // SAFETY: the plugin runs nothing when it is loaded.
    let library = unsafe { Library::new(&file) }.map_err(|e| Fail::Wrong(format!("h5z-gpu: {}", reason(&e))))?;
    let mut text = vec![0u8; 1 << 16];
    // SAFETY: the declaration of h5z_gpu.h; the words and the text outlive the call.
    let len = unsafe {
        let tools =
            library.get::<abi::Tools>(b"h5z_gpu_tools").map_err(|e| Fail::Wrong(format!("h5z-gpu: {}", reason(&e))))?;
        tools(words.as_ptr(), words.len(), text.as_mut_ptr().cast(), text.len())
    };
    text.truncate(usize::try_from(len).unwrap_or(0));
    let mut told: Value =
        serde_json::from_slice(&text).map_err(|e| Fail::Wrong(format!("h5z-gpu: {}: {e}", file.display())))?;
    told["words"] = json!(words);
    Ok(told)
}

/// Short name of a type.
fn dtype_name(d: Dtype) -> String {
    let (bits, order) = (u32::from(d.size) * 8, if d.big_endian { "be" } else { "" });
    match d.class {
        Class::Float => format!("f{bits}{order} ({} exponent, {} mantissa bits)", d.exponent_bits, d.mantissa_bits),
        Class::Integer => format!("{}{bits}{order}", if d.signed { "i" } else { "u" }),
        Class::Bytes if d.size == 0 => "bytes, element size unknown".into(),
        Class::Bytes => format!("bytes{}", d.size),
    }
}

/// The words as a list of numbers; `None` when the first of them is none. The marks around a list in h5dump's and
/// ncdump's output are passed over, and so is the filter's id before it.
fn numbers(args: &[String]) -> Outcome<Option<Vec<u32>>> {
    let text = args.join(" ").replace("PARAMS", " ");
    let parts: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || ",{}\"();[]".contains(c)).filter(|p| !p.is_empty()).collect();
    if !parts.first().is_some_and(|p| p.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
        return Ok(None);
    }
    let parse = |p: &str| {
        // netcdf marks unsigned numbers with a U in some versions.
        let digits = p.trim_end_matches(['u', 'U']);
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            // h5dump prints words above 2^31 as negative numbers.
            None if digits.starts_with('-') => digits.parse::<i32>().map(|v| v as u32),
            None => digits.parse(),
        };
        value.map_err(|_| {
            Fail::Refused(format!(
                "h5z-gpu: {p:?} is no word; words are whole numbers from 0 to 4294967295; a bound \
                 has a mode before it, \
                 such as abs 1e-3"
            ))
        })
    };
    let words: Vec<u32> = parts.into_iter().map(parse).collect::<Outcome<_>>()?;
    Ok(Some(match words[..] {
        [ID, _, ..] => words[1..].to_vec(),
        _ => words,
    }))
}

fn explain(words: &[u32]) -> Outcome {
    let meant = requested(words)?;
    if is_stored(words) {
        let Stored { params: p, typed, original_rank, .. } = stored(words)?;
        say!("stored list of {} words", words.len());
        say!("asked      {}", sentence(meant));
        say!("as text    {meant}");
        match typed {
            0 => say!("typed as   several words or nothing"),
            n => say!("typed as   {n}"),
        }
        say!("type       {}", dtype_name(p.dtype));
        say!("chunk      {:?} (of rank {original_rank})", p.extents.as_slice());
        match p.fill {
            Some(bits) => say!("fill value {}", fill(bits, p.dtype.size)),
            None => say!("fill value none defined"),
        }
        say!("lossy      {}", if p.lossy_allowed { "allowed" } else { "not allowed here: stored losslessly" });
    } else {
        say!("{}", sentence(meant));
        say!("as text: {meant}");
    }
    Ok(())
}

fn fill(bits: u64, size: u8) -> String {
    match size {
        4 => format!("{:e} ({bits:#010x})", f32::from_bits(bits as u32)),
        8 => format!("{:e} ({bits:#018x})", f64::from_bits(bits)),
        _ => format!("{bits:#x}"),
    }
}

fn print(request: Request, tool: Option<&str>) -> Outcome {
    let lines = lines(request, ID);
    if let Some(tool) = tool {
        let Some((_, line)) = lines.iter().find(|(name, _)| *name == tool) else {
            let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
            return Err(Fail::Refused(format!("h5z-gpu: --tool {tool:?}; allowed are {}", names.join(", "))));
        };
        let line = line.as_ref().map_err(|why| Fail::Refused(format!("h5z-gpu: {tool} {why}")))?;
        say!("{line}");
        return Ok(());
    }
    say!("{}", sentence(request));
    say!("as text: {request}\n");
    for (name, line) in &lines {
        match line {
            Ok(line) => say!("{name:<9} {line}"),
            Err(why) => say!("{name:<9} - {why}"),
        }
    }
    say!(
        "\nPut your variable for v, and for 16x64x64 a chunk of its own rank, of 1 to 16 MiB. \
         Name each variable (nccopy: one"
    );
    say!("-F each): nccopy's '*' and a bare ncks --cmp take every one, and coordinates would lose bits as well.");
    Ok(())
}
