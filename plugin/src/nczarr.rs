// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec `h5z-gpu` of NCZarr, netCDF's Zarr: the same filter, called by libnetcdf itself.
//!
//! Zarr keeps what the user chose as JSON, `{"id": "h5z-gpu", "mode": "abs", "bound": 0.001, "codec": "szx",
//! "keep": "sign+range"}`, where `codec` and `keep` may be absent. libnetcdf calls no `set_local`; `modify_parameters`
//! does that work. The structures are those of netCDF-C's `netcdf_filter_build.h`, the same from 4.9.0 to 4.10.

use crate::c_api;
use crate::callbacks::taken;
use crate::entry::entry6;
use crate::error::{Error, Result, fenced};
use crate::module::Module;
use crate::netcdf::{NC_EFILTER, NC_ENDIAN_BIG, NC_ENDIAN_NATIVE, NC_ENOMEM, NC_NOERR, NetCdf, TYPES};
use crate::reserve::system;
use crate::{FILTER_ID, dataset, report};
use h5z_gpu::Error::NoMemory;
use h5z_gpu::plugin::log;
use h5z_gpu::{Bound, Codec, Dtype, Extents, Keep, Params, Request, words};
use libc::{c_char, c_int, c_uint, c_void};
use serde_json::{Map, Value, json};
use std::ffi::{CStr, CString};
use std::ptr;

const CODEC_ID: &CStr = c"h5z-gpu";

/// `NCZ_codec_t`.
#[repr(C)]
struct CodecClass {
    /// `NCZ_CODEC_CLASS_VER`.
    version: c_int,
    /// `NCZ_CODEC_HDF5`: this struct.
    sort: c_int,
    codecid: *const c_char,
    hdf5id: c_uint,
    initialize: Option<unsafe extern "C" fn()>,
    finalize: Option<unsafe extern "C" fn()>,
    codec_to_hdf5: unsafe extern "C" fn(*const c_char, *mut usize, *mut *mut c_uint) -> c_int,
    hdf5_to_codec: unsafe extern "C" fn(usize, *const c_uint, *mut *mut c_char) -> c_int,
    modify_parameters:
        unsafe extern "C" fn(c_int, c_int, *mut usize, *mut *mut c_uint, *mut usize, *mut *mut c_uint) -> c_int,
}

// SAFETY: nothing changes it, and its pointers lead to constants and code.
unsafe impl Sync for CodecClass {}

static CODEC: CodecClass = CodecClass {
    version: 1,
    sort: 1,
    codecid: CODEC_ID.as_ptr(),
    hdf5id: FILTER_ID as c_uint,
    initialize: None,
    finalize: None,
    codec_to_hdf5,
    hdf5_to_codec,
    modify_parameters: modify_parameters_entry,
};

/// The codec's description, for NCZarr.
#[unsafe(no_mangle)]
pub extern "C" fn NCZ_get_codec_info() -> *const c_void {
    (&raw const CODEC).cast()
}

/// Runs a callback: its error's text goes to standard error, once, for netCDF passes none on.
fn fence(run: impl FnOnce() -> Result<()>) -> c_int {
    match fenced(run) {
        Ok(()) => NC_NOERR,
        Err(Error::Library(NoMemory { .. })) => NC_ENOMEM,
        Err(e) => {
            report::remember(&e);
            log::warn(report::without_name(&e.to_string()));
            NC_EFILTER
        }
    }
}

/// A copy on the C heap, where netCDF frees it.
///
/// # Safety
/// `count` and `start` are null or variables of the caller.
unsafe fn give_words(words: &[u32], count: *mut usize, start: *mut *mut c_uint) -> Result<()> {
    if count.is_null() || start.is_null() {
        return Err("called without a variable for the words".into());
    }
    // SAFETY: malloc gives space for all the words, or null, which is tested; the variables are the caller's.
    unsafe {
        let bytes = size_of_val(words).max(1);
        let copy: *mut c_uint = system::malloc(bytes).cast();
        if copy.is_null() {
            return Err(NoMemory { bytes: bytes as u64 }.into());
        }
        ptr::copy_nonoverlapping(words.as_ptr(), copy, words.len());
        (*count, *start) = (words.len(), copy);
    }
    Ok(())
}

/// The words of a JSON configuration: one number where one says it, else three, or four with what is kept.
fn from_json(text: &str) -> Result<Vec<u32>> {
    let wrong = |why: String| Error::from(format!("the codec's configuration {text}: {why}"));
    let config: Map<String, Value> = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let name = |key: &str, default: &'static str| match config.get(key) {
        None => Ok(default.to_owned()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(other) => Err(wrong(format!("{key} is {other}, not a name"))),
    };
    if name("id", "")? != "h5z-gpu" {
        return Err(wrong("its id is not h5z-gpu".into()));
    }
    let bound = match config.get("bound") {
        None => None,
        // netCDF's own JSON writer may have put the number between quotes.
        Some(Value::String(s)) => Some(s.trim().parse().map_err(|_| wrong(format!("bound {s:?} is no number")))?),
        Some(v) => Some(v.as_f64().ok_or_else(|| wrong(format!("bound {v} is no number")))?),
    };
    let codec = Codec::named(&name("codec", "auto")?)?;
    let bound = Bound::named(&name("mode", "lossless")?, bound)?;
    let keep: Keep = name("keep", "")?.parse()?;
    Ok(c_api::short(Request { codec, bound, keep }.check()?))
}

fn to_json(request: Request) -> String {
    let mut config = json!({"id": "h5z-gpu", "mode": request.bound.mode().name()});
    if request.bound != Bound::Lossless {
        config["bound"] = json!(request.bound.value());
    }
    if request.codec != Codec::Auto {
        config["codec"] = json!(request.codec.name());
    }
    if request.keep != Keep::NONE {
        config["keep"] = json!(request.keep.to_string());
    }
    config.to_string()
}

/// # Safety
/// As netCDF calls it.
unsafe extern "C" fn codec_to_hdf5(codec: *const c_char, count: *mut usize, start: *mut *mut c_uint) -> c_int {
    fence(|| {
        if codec.is_null() {
            return Err("called without a configuration".into());
        }
        // SAFETY: netCDF passes a NUL-terminated text.
        let text = unsafe { CStr::from_ptr(codec) }.to_string_lossy();
        let words = from_json(&text)?;
        // SAFETY: the variables are netCDF's.
        unsafe { give_words(&words, count, start) }
    })
}

/// # Safety
/// As netCDF calls it.
unsafe extern "C" fn hdf5_to_codec(count: usize, start: *const c_uint, codec: *mut *mut c_char) -> c_int {
    fence(|| {
        // SAFETY: as netCDF passes them.
        let request = words::request(unsafe { taken(start, count) })?;
        let text = CString::new(to_json(request)).map_err(|_| "a NUL in the configuration")?;
        if codec.is_null() {
            return Err("called without a variable for the configuration".into());
        }
        // SAFETY: strdup copies a NUL-terminated text onto the C heap, where netCDF frees it.
        let copy = unsafe { libc::strdup(text.as_ptr()) };
        if copy.is_null() {
            return Err(NoMemory { bytes: text.count_bytes() as u64 }.into());
        }
        // SAFETY: a variable for a pointer.
        unsafe { *codec = copy };
        Ok(())
    })
}

entry6! {
    /// `modify_parameters` as netCDF knows it.
    modify_parameters_entry => modify_parameters(
        ncid: c_int,
        varid: c_int,
        visible_count: *mut usize,
        visible: *mut *mut c_uint,
        working_count: *mut usize,
        working: *mut *mut c_uint
    ) -> c_int
}

/// The visible words stay as the user gave them; the working words are the stored form.
///
/// # Safety
/// As netCDF calls it; `ret` is the return address of the call, or null.
unsafe extern "C" fn modify_parameters(
    ncid: c_int,
    varid: c_int,
    visible_count: *mut usize,
    visible: *mut *mut c_uint,
    working_count: *mut usize,
    working: *mut *mut c_uint,
    ret: *const c_void,
) -> c_int {
    fence(|| {
        let user = match visible_count.is_null() || visible.is_null() {
            true => &[],
            // SAFETY: variables that netCDF filled.
            false => unsafe { taken(*visible, *visible_count) },
        };
        let request = words::request(user)?;
        let netcdf = Module::at_address(ret).ok_or("the caller is unknown").and_then(|m| NetCdf::find(&m));
        let described = netcdf.and_then(|n| describe(&n, ncid, varid, request, user));
        let stored = match described {
            Ok((params, rank)) => words::store(&params, user, rank),
            Err(what) if dataset::strict() => return Err(format!("netCDF does not tell: {what}").into()),
            Err(what) => {
                log::warn(&format!("netCDF does not tell what a variable holds ({what}): it is stored losslessly"));
                user.to_vec()
            }
        };
        // SAFETY: the variables are netCDF's.
        unsafe { give_words(&stored, working_count, working) }
    })
}

/// Parameters and rank of a variable. `Err` names what could not be had.
fn describe(
    n: &NetCdf,
    ncid: c_int,
    varid: c_int,
    request: Request,
    user: &[u32],
) -> Result<(Params, u8), &'static str> {
    let (mut xtype, mut rank, mut order, mut storage, mut filters) = (0, 0, 0, 0, 0usize);
    // SAFETY: a variable for the answer.
    if unsafe { (n.inq_varndims)(ncid, varid, &mut rank) } != NC_NOERR {
        return Err("its rank");
    }
    let mut chunk = vec![0usize; rank.max(1) as usize];
    // SAFETY: variables for the answers; `chunk` takes one length for each dimension.
    let done = unsafe {
        [
            (n.inq_vartype)(ncid, varid, &mut xtype),
            (n.inq_var_endian)(ncid, varid, &mut order),
            (n.inq_var_chunking)(ncid, varid, &mut storage, chunk.as_mut_ptr()),
            (n.inq_var_filter_ids)(ncid, varid, &mut filters, ptr::null_mut()),
        ]
    };
    if let Some(k) = done.iter().position(|&d| d != NC_NOERR) {
        return Err(["its type", "its byte order", "its chunk", "its filters"][k]);
    }
    let mut ids = vec![0 as c_uint; filters.max(1)];
    // SAFETY: `ids` takes as many as were counted.
    if unsafe { (n.inq_var_filter_ids)(ncid, varid, &mut filters, ids.as_mut_ptr()) } != NC_NOERR {
        return Err("its filters");
    }
    let alone = ids.first() == Some(&(FILTER_ID as c_uint));
    let dtype = dtype(xtype, order);
    dataset::warn_of_exact(user, request, dtype);
    let lossy = request.bound != Bound::Lossless && dtype.is_ieee();
    if lossy && !alone {
        log::warn("another filter stands before h5z-gpu: what it hands on is stored losslessly");
    }
    let dims: Vec<u64> = chunk.iter().take(rank.max(0) as usize).map(|&d| d as u64).collect();
    let known = Extents::new(&dims);
    let dtype = if known.is_some() { dtype } else { Dtype::bytes(dtype.size) };
    // SAFETY: `dtype` describes the variable, and IEEE numbers have 4 or 8 bytes.
    let fill = if lossy { unsafe { fill(n, ncid, varid, dtype) }.ok_or("its fill value")? } else { None };
    let lossy_allowed = alone && known.is_some();
    Ok((Params { request, dtype, extents: known.unwrap_or_default(), fill, lossy_allowed }, rank as u8))
}

/// netCDF's atomic types; what a user defined is bytes.
fn dtype(xtype: c_int, order: c_int) -> Dtype {
    let big_endian = order == NC_ENDIAN_BIG || (order == NC_ENDIAN_NATIVE && cfg!(target_endian = "big"));
    let name = usize::try_from(xtype).ok().and_then(|number| TYPES.get(number.wrapping_sub(1)));
    let numpy = |name| c_api::dtype(&format!("{}{name}", if big_endian { '>' } else { '<' })).ok();
    name.and_then(numpy).unwrap_or(Dtype::bytes(0))
}

/// The fill value's bits: netCDF fills with it whether the user named it or not, unless filling is off.
///
/// # Safety
/// The variable's type has the size of `dtype`, and at most 8 bytes.
unsafe fn fill(n: &NetCdf, ncid: c_int, varid: c_int, dtype: Dtype) -> Option<Option<u64>> {
    let (mut off, mut value) = (0, [0u8; 8]);
    // SAFETY: `value` takes the type's bytes, by the caller's promise.
    if unsafe { (n.inq_var_fill)(ncid, varid, &mut off, value.as_mut_ptr().cast()) } != NC_NOERR {
        return None;
    }
    // netCDF answers in this machine's order.
    Some((off == 0).then(|| dataset::bits(&value[..usize::from(dtype.size).min(8)], cfg!(target_endian = "big"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_configuration() {
        for words in
            [&[][..], &[11003], &[111003], &[390000], &[40600], &words::several(words::request(&[131002]).unwrap())]
        {
            let request = words::request(words).unwrap();
            let text = to_json(request);
            assert_eq!(words::request(&from_json(&text).unwrap_or_default()).unwrap(), request, "{text}");
        }
        let odd = Request::new(Codec::Szx, Bound::Absolute(0.1 + 0.2));
        assert_eq!(words::request(&from_json(&to_json(odd)).unwrap_or_default()).unwrap(), odd);
        let kept = Request { keep: Keep::SIGN.and(Keep::RANGE), ..odd };
        assert!(to_json(kept).contains(r#""keep":"sign+range""#), "{}", to_json(kept));
        let words = from_json(&to_json(kept)).unwrap_or_default();
        assert_eq!((words.len(), words::request(&words).unwrap()), (4, kept));
        // Not the neighbour of the number that the text names.
        let bound = "0.0000000000007677230164176710314";
        let words = from_json(&format!(r#"{{"id": "h5z-gpu", "mode": "abs", "bound": {bound}}}"#)).unwrap_or_default();
        assert_eq!(words::request(&words).unwrap().bound, Bound::Absolute(bound.parse().unwrap()));
    }

    #[test]
    fn a_configuration_that_says_nothing_clear_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"mode": "abs"}"#,
            r#"{"id": "zlib"}"#,
            r#"{"id": "h5z-gpu", "mode": "abs"}"#,
            r#"{"id": "h5z-gpu", "mode": "abs", "bound": "much"}"#,
            r#"{"id": "h5z-gpu", "mode": "rel", "bound": 2}"#,
            r#"{"id": "h5z-gpu", "mode": 1, "bound": 2}"#,
            r#"{"id": "h5z-gpu", "mode": "abs", "bound": 2, "codec": "zip"}"#,
            r#"{"id": "h5z-gpu", "mode": "abs", "bound": 2, "keep": "signs"}"#,
            r#"{"id": "h5z-gpu", "mode": "abs", "bound": 2, "keep": 1}"#,
            r#"{"id": "h5z-gpu", "mode": "lossless", "keep": "sign"}"#,
        ] {
            assert!(from_json(text).is_err(), "{text}");
        }
    }
}
