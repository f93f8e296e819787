// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request in plain words, and in the words of every tool that can write through the filter.

use crate::keep::Keep;
use crate::params::{Codec, Request};
use crate::words::{pack, several};

/// The promise in words.
pub fn sentence(request: Request) -> String {
    let codec = match request.codec {
        Codec::Auto => "codec chosen by the writer".into(),
        Codec::Fast => format!("codec {}, the fastest", Codec::fastest(request.bound.mode()).name()),
        Codec::Small => "codec chosen by the writer, of all the one with the shortest frame".into(),
        c => format!("codec {}", c.name()),
    };
    let (mode, value) = (request.bound.mode(), request.bound.value());
    let shown = if (0.1..1e4).contains(&value) { value.to_string() } else { format!("{value:e}") };
    let kept = if request.keep == Keep::NONE { String::new() } else { format!("; {}", kept(request.keep)) };
    format!("{mode}: {}; {codec}{kept}", mode.facts().promise.replace("{}", &shown))
}

/// "signs, zeros and the range of each chunk are kept".
fn kept(keep: Keep) -> String {
    let found: Vec<&str> = keep.facts().map(|facts| facts.what).collect();
    let verb = if keep == Keep::RANGE { "is" } else { "are" };
    match &found[..] {
        [most @ .., last] if !most.is_empty() => format!("{} and {last} {verb} kept", most.join(", ")),
        _ => format!("{} {verb} kept", found.concat()),
    }
}

/// Every tool's line with the filter's number `id`, or why it has none. `v` is the variable, `in` and `out` the files.
pub fn lines(request: Request, id: u32) -> Vec<(&'static str, Result<String, String>)> {
    let number = pack(request);
    let words = number.map_or_else(|| several(request), |n| vec![n]);
    let list = |sep: &str| words.iter().map(u32::to_string).collect::<Vec<_>>().join(sep);
    let (n, plain) = (words.len(), list(","));
    // Fortran has no unsigned numbers: the same bits. R's integers have a sign too, but its doubles are converted.
    let signed = words.iter().map(|w| (*w as i32).to_string()).collect::<Vec<_>>().join(", ");
    let fourth = words.get(3);
    // netCDF's own notation of a double spares the user its two halves.
    let typed = match number {
        Some(n) => n.to_string(),
        None => {
            let beside = fourth.map_or(String::new(), |keep| format!(",{keep}"));
            format!("{},{:e}d{beside}", words[0], request.bound.value())
        }
    };
    let (many, last) = match fourth {
        Some(_) => (
            "no one number says what is kept beside a bound",
            "hands over the last parameter alone, and what is kept beside a bound takes four",
        ),
        None => (
            "no one number means this bound (two digits at most)",
            "hands over the last parameter alone: choose a bound of two digits, such as 1.2e-3",
        ),
    };
    let one = |line: String, why: &str| if n == 1 { Ok(line) } else { Err(why.to_owned()) };
    let tuple = if n == 1 { format!("({plain},)") } else { format!("({})", list(", ")) };
    vec![
        ("number", number.map(|n| n.to_string()).ok_or_else(|| format!("{many}; the words are {plain}"))),
        ("h5repack", Ok(format!("h5repack -l v:CHUNK=16x64x64 -f v:UD={id},1,{n},{plain} in.h5 out.h5"))),
        ("nccopy", Ok(format!("nccopy -4 -F 'v,{id},{typed}' in.nc out.nc"))),
        (
            "ncks",
            one(
                // All but v first, then v alone: --cmp is for every variable that a call copies.
                format!("ncks -4 -O -x -v v in.nc out.nc && ncks -A -C -v v --cmp='{id},{plain}' in.nc out.nc"),
                last,
            ),
        ),
        ("cdo", Ok(format!("cdo --filter \"{id},{plain}\" copy in.nc out.nc  # cdo after 2.1"))),
        ("ncgen", Ok(format!("v:_Filter = \"{id},{typed}\" ;"))),
        ("h5py", Ok(format!("f.create_dataset('v', data=a, chunks=True, compression={id}, compression_opts={tuple})"))),
        (
            "xarray",
            Ok(format!(
                "ds.to_netcdf('out.nc', engine='h5netcdf', \
                 encoding={{'v': {{'compression': {id}, 'compression_opts': {tuple}}}}})"
            )),
        ),
        (
            "c",
            Ok(format!("unsigned cd[] = {{{}}}; H5Pset_filter(dcpl, {id}, H5Z_FLAG_OPTIONAL, {n}, cd);", list(", "))),
        ),
        ("netcdf-c", Ok(format!("unsigned cd[] = {{{}}}; nc_def_var_filter(ncid, varid, {id}, {n}, cd);", list(", ")))),
        (
            "fortran",
            Ok(format!("call h5pset_filter_f(dcpl, {id}, H5Z_FLAG_OPTIONAL_F, {n}_size_t, [{signed}], error)")),
        ),
        ("nf90", Ok(format!("status = nf90_def_var_filter(ncid, varid, {id}, {n}, [{signed}])"))),
        (
            "matlab",
            Ok(format!(
                "h5create('out.h5', '/v', size(a), Datatype='single', ChunkSize=[64 64 16], CustomFilterID={id}, \
                 CustomFilterParameters=[{}]); h5write('out.h5', '/v', a)",
                list(" ")
            )),
        ),
        ("r", Ok(format!("dcpl$set_filter({id}L, h5const$H5Z_FLAG_OPTIONAL, c({}))", list(", ")))),
        ("julia", Ok(format!("HDF5.Filters.ExternalFilter({id}, UInt32[{}])", list(", ")))),
    ]
}
