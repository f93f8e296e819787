// SPDX-License-Identifier: MIT OR Apache-2.0
//! `words`: a bound in every tool's words, and words in plain ones.

use crate::args::{RequestArgs, dtype_name};
use crate::hdf5::ID;
use crate::{Fail, Outcome};
use h5z_gpu::words::{Stored, is_stored, pack, request as requested, stored, three};
use h5z_gpu::{Bound, Codec, Request};

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

/// The promise in words.
fn sentence(request: Request) -> String {
    let codec = match request.codec {
        Codec::Auto => "codec chosen by the writer".into(),
        c => format!("codec {}", c.name()),
    };
    match request.bound {
        Bound::Absolute(b) => {
            format!("absolute: no value changes by more than {b:e}, in the units of the data; {codec}")
        }
        Bound::Relative(r) => {
            format!("relative: no value changes by more than {r:e} of the chunk's value range; {codec}")
        }
        Bound::PointwiseRelative(r) => {
            format!("point-wise relative: no value changes by more than {r:e} of itself, zeros stay zero; {codec}")
        }
        Bound::Psnr(p) => format!("PSNR of at least {p} dB over the chunk's value range; {codec}"),
        Bound::Lossless => format!("lossless: the same bits; {codec}"),
    }
}

fn print(request: Request, tool: Option<&str>) -> Outcome {
    let lines = lines(request);
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

/// Every tool's line, or why it has none. `v` is the variable, `in` and `out` the files.
fn lines(request: Request) -> Vec<(&'static str, Outcome<String>)> {
    let number = pack(request);
    let words = number.map_or(three(request).to_vec(), |n| vec![n]);
    let list = |sep: &str| words.iter().map(u32::to_string).collect::<Vec<_>>().join(sep);
    let (n, plain) = (words.len(), list(","));
    // Fortran and R have no unsigned numbers: the same bits.
    let signed = |mark: &str| words.iter().map(|w| format!("{}{mark}", *w as i32)).collect::<Vec<_>>().join(", ");
    // netCDF's own notation of a double spares the user its two halves.
    let typed = match number {
        Some(n) => n.to_string(),
        None => format!("{},{:e}d", words[0], request.bound.value()),
    };
    let one = |line: String, why: &str| if n == 1 { Ok(line) } else { Err(Fail::Refused(why.into())) };
    let tuple = if n == 1 { format!("({plain},)") } else { format!("({})", list(", ")) };
    vec![
        (
            "number",
            number.map(|n| n.to_string()).ok_or(Fail::Refused(format!(
                "no one number means this bound (two digits at most); the words are {plain}"
            ))),
        ),
        ("h5repack", Ok(format!("h5repack -l v:CHUNK=16x64x64 -f v:UD={ID},1,{n},{plain} in.h5 out.h5"))),
        ("nccopy", Ok(format!("nccopy -4 -F 'v,{ID},{typed}' in.nc out.nc"))),
        (
            "ncks",
            one(
                // All but v first, then v alone: --cmp is for every variable that a call copies.
                format!("ncks -4 -O -x -v v in.nc out.nc && ncks -A -C -v v --cmp='{ID},{plain}' in.nc out.nc"),
                "hands over the last parameter alone: choose a bound of two digits, such as 1.2e-3",
            ),
        ),
        ("cdo", Ok(format!("cdo --filter \"{ID},{plain}\" copy in.nc out.nc  # cdo after 2.1"))),
        ("ncgen", Ok(format!("v:_Filter = \"{ID},{typed}\" ;"))),
        ("h5py", Ok(format!("f.create_dataset('v', data=a, chunks=True, compression={ID}, compression_opts={tuple})"))),
        (
            "xarray",
            Ok(format!(
                "ds.to_netcdf('out.nc', engine='h5netcdf', encoding={{'v': {{'compression': {ID}, 'compression_opts': {tuple}}}}})"
            )),
        ),
        (
            "c",
            Ok(format!("unsigned cd[] = {{{}}}; H5Pset_filter(dcpl, {ID}, H5Z_FLAG_OPTIONAL, {n}, cd);", list(", "))),
        ),
        ("netcdf-c", Ok(format!("unsigned cd[] = {{{}}}; nc_def_var_filter(ncid, varid, {ID}, {n}, cd);", list(", ")))),
        (
            "fortran",
            Ok(format!("call h5pset_filter_f(dcpl, {ID}, H5Z_FLAG_OPTIONAL_F, {n}_size_t, [{}], error)", signed(""))),
        ),
        ("nf90", Ok(format!("status = nf90_def_var_filter(ncid, varid, {ID}, {n}, [{}])", signed("")))),
        (
            "matlab",
            Ok(format!(
                "h5create('out.h5', '/v', size(a), Datatype='single', ChunkSize=[64 64 16], CustomFilterID={ID}, \
                 CustomFilterParameters=[{}]); h5write('out.h5', '/v', a)",
                list(" ")
            )),
        ),
        ("r", Ok(format!("dcpl$set_filter({ID}L, h5const$H5Z_FLAG_OPTIONAL, c({}))", signed("L")))),
        ("julia", Ok(format!("HDF5.Filters.ExternalFilter({ID}, UInt32[{}])", list(", ")))),
    ]
}
