// SPDX-License-Identifier: MIT OR Apache-2.0
//! `words`: a bound in every tool's words, and words in plain ones.

use crate::args::{RequestArgs, dtype_name};
use crate::hdf5::ID;
use crate::{Fail, Outcome};
use h5z_gpu::Request;
use h5z_gpu::tools::{lines, sentence};
use h5z_gpu::words::{Stored, is_stored, request as requested, stored};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: RequestArgs,
    /// Prints one tool's line alone: number, h5repack, nccopy, ncks, cdo, ncgen, h5py, xarray, c, netcdf-c, fortran, nf90, matlab, r, julia
    #[arg(long)]
    tool: Option<String>,
}

pub(crate) fn run(a: &Args) -> Outcome {
    match numbers(&a.request.request)? {
        Some(words) if !words.is_empty() => explain(&words),
        _ => print(a.request.request()?, a.tool.as_deref()),
    }
}

/// The words as a list of numbers; `None` when the first of them is none. The marks around a list in h5dump's and ncdump's output
/// are passed over, and so is the filter's id before it.
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
            Fail::Refused(format!("h5z-gpu: {p:?} is no word; words are whole numbers from 0 to 4294967295; a bound has a mode before it, \
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
            0 => say!("typed as   three words or nothing"),
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
        "\nPut your variable for v, and for 16x64x64 a chunk of its own rank, of 1 to 16 MiB. Name each variable (nccopy: one"
    );
    say!("-F each): nccopy's '*' and a bare ncks --cmp take every one, and coordinates would lose bits as well.");
    Ok(())
}
