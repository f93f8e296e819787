// SPDX-License-Identifier: MIT OR Apache-2.0
//! `set_local`: what the user typed becomes the stored form, with all that one dataset's type, chunk, fill value and
//! pipeline say. Whatever an earlier stored form said of them is found anew.

use crate::FILTER_ID;
use crate::error::Result;
use crate::hdf5::{
    H5D_FILL_TIME_NEVER, H5D_FILL_VALUE_USER_DEFINED, H5S_MAX_RANK, H5T_FLOAT, H5T_INTEGER, H5T_NORM_IMPLIED,
    H5T_ORDER_BE, H5T_ORDER_LE, H5T_SGN_2, Hid, Layout, OWN_FILTERS, Properties, Standard,
};
use crate::host::Host;
use h5z_gpu::plugin::{log, settings};
use h5z_gpu::words;
use h5z_gpu::{Bound, Class, Dtype, Extents, Params, Request};
use libc::{c_int, c_uint};
use std::ptr;
use std::sync::OnceLock;

/// More words than any form has: enough to see that there are too many.
const WORDS_MAX: usize = 64;

/// `H5Z_GPU_STRICT=1`: refuse what would be stored losslessly because HDF5 does not tell enough.
pub(crate) fn strict() -> bool {
    static STRICT: OnceLock<bool> = OnceLock::new();
    *STRICT.get_or_init(|| settings::get("H5Z_GPU_STRICT").is_some_and(|v| v == "1"))
}

/// Writes the stored form into the dataset's creation properties.
///
/// `Err` is the sentence for the user: the words contradict themselves, or strictness asks for what is not to be had.
pub(crate) fn set_local(host: &Host, dcpl: Hid, datatype: Hid) -> Result<()> {
    let properties = match host.asked() {
        Ok(properties) => properties,
        // The words cannot even be read here; the filter sees them, and warns if they asked for more.
        Err(why) if strict() => return Err(format!("cannot ask the calling HDF5 about the dataset: {why}").into()),
        Err(_) => return Ok(()),
    };
    let (flags, user) = typed(properties, dcpl).ok_or("the filter's words cannot be read")?;
    let request = words::request(&user)?;
    let (params, rank) = match describe(host, properties, dcpl, datatype, request, &user) {
        Ok(described) => described,
        Err(what) if strict() => return Err(format!("HDF5 does not tell {what} of this dataset").into()),
        Err(what) => {
            log::warn(&format!("HDF5 does not tell {what} of a dataset: it is stored losslessly"));
            (Params { request, ..Params::default() }, 0)
        }
    };
    let stored = words::store(&params, &user, rank);
    if stored == user {
        return Ok(());
    }
    // SAFETY: the ids came from this library with the call; the words outlive it.
    let done = unsafe { (properties.modify_filter)(dcpl, FILTER_ID, flags, stored.len(), stored.as_ptr()) };
    if done < 0 && request.bound != Bound::Lossless {
        let text = "HDF5 does not take the stored words";
        if strict() {
            return Err(text.into());
        }
        log::warn(&format!("{text}: a dataset is stored losslessly"));
    }
    Ok(())
}

/// Says that a bound does nothing for a type that keeps every bit. A stored list comes with a copy of a dataset:
/// whoever typed the bound was told when the first one was made.
pub(crate) fn warn_of_exact(user: &[u32], request: Request, dtype: Dtype) {
    if request.bound == Bound::Lossless || dtype.takes_bound() || words::is_stored(user) {
        return;
    }
    let what = match dtype.class {
        Class::Integer => "integers",
        Class::Float => "floats that are none of f16, bfloat16, f32 and f64",
        Class::Bytes => "compounds, booleans, strings or the like",
    };
    log::warn(&format!(
        "a bound was given for a dataset of {what}, which is stored losslessly: bounds are for f16, bfloat16, f32 and \
         f64 values alone. 90000 (lossless) asks for the same"
    ));
}

/// The filter's flags and words.
fn typed(p: &Properties, dcpl: Hid) -> Option<(c_uint, Vec<u32>)> {
    let (mut flags, mut n, mut words) = (0, WORDS_MAX, vec![0; WORDS_MAX]);
    let (name, config) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: `words` takes `n`; no name and no configuration are read.
    let done =
        unsafe { (p.get_filter_by_id)(dcpl, FILTER_ID, &mut flags, &mut n, words.as_mut_ptr(), 0, name, config) };
    words.truncate(n);
    (done >= 0).then_some((flags, words))
}

/// Parameters and HDF5's rank. `Err` names what could not be had.
fn describe(
    host: &Host,
    p: &Properties,
    dcpl: Hid,
    datatype: Hid,
    request: Request,
    user: &[u32],
) -> Result<(Params, u8), &'static str> {
    let dtype = dtype(host, p, datatype).ok_or("the type")?;
    warn_of_exact(user, request, dtype);
    let mut dims = [0u64; H5S_MAX_RANK];
    // SAFETY: `dims` takes the largest rank there is.
    let rank = unsafe { (p.get_chunk)(dcpl, H5S_MAX_RANK as c_int, dims.as_mut_ptr()) };
    let dims = usize::try_from(rank).ok().and_then(|r| dims.get(..r)).ok_or("the chunk's extents")?;
    let before = filter_before(p, dcpl).ok_or("the pipeline")?;
    let lossy = request.bound != Bound::Lossless && dtype.takes_bound();
    if let Some(id) = before.filter(|_| lossy) {
        log::warn(&format!("{} stands before h5z-gpu: what it hands on is stored losslessly", filter_name(id)));
    }
    // More than 2^32 in one extent: nothing here counts so far, and the words do not say how long a chunk is.
    let known = Extents::new(dims);
    let dtype = if known.is_some() { dtype } else { Dtype::bytes(dtype.size) };
    // SAFETY: `dtype` describes `datatype`, and these numbers have 2, 4 or 8 bytes.
    let fill = if lossy { unsafe { fill(p, dcpl, datatype, dtype) }.ok_or("the fill value")? } else { None };
    if lossy && fill.is_none() && request.bound.follows_range() && never_filled(host, dcpl) {
        log::warn(
            "a dataset is written without a fill value: if large numbers stand for missing ones there, they widen its \
             relative bound. Give an absolute bound, such as 11003 for 1e-3",
        );
    }
    let lossy_allowed = before.is_none() && known.is_some();
    Ok((Params { request, dtype, extents: known.unwrap_or_default(), fill, lossy_allowed }, rank as u8))
}

/// The type, as far as codecs care. Floats that are not IEEE binary32 or binary64 bit for bit never look like them.
fn dtype(host: &Host, p: &Properties, datatype: Hid) -> Option<Dtype> {
    // SAFETY: the id came from this library with the call; so for every call below.
    let (class, size) = unsafe { ((p.get_class)(datatype), (p.get_size)(datatype)) };
    if class < 0 || size == 0 {
        return None;
    }
    let bytes = Dtype::bytes(u8::try_from(size).unwrap_or(0));
    if bytes.size == 0 || !matches!(class, H5T_INTEGER | H5T_FLOAT) {
        return Some(bytes);
    }
    // SAFETY: as above.
    let order = unsafe { (p.get_order)(datatype) };
    if !matches!(order, H5T_ORDER_LE | H5T_ORDER_BE) {
        return (order >= 0).then_some(bytes);
    }
    let mut d = Dtype { big_endian: order == H5T_ORDER_BE, ..bytes };
    if class == H5T_INTEGER {
        d.class = Class::Integer;
        // SAFETY: as above.
        d.signed = unsafe { (p.get_sign)(datatype) } == H5T_SGN_2;
        return Some(d);
    }
    d.class = Class::Float;
    d.signed = true;
    (d.exponent_bits, d.mantissa_bits) = match (&host.layout, &host.standard) {
        (Some(layout), _) => fields(layout, datatype, size)?,
        (None, Some(standard)) => standard_fields(standard, datatype, d)?,
        (None, None) => return None,
    };
    Some(d)
}

/// Bits of exponent and mantissa of a type whose fields lie as in IEEE 754; none of any other.
fn fields(layout: &Layout, datatype: Hid, size: usize) -> Option<(u8, u8)> {
    let mut found = [0; 5];
    let [sign, exponent, exponent_bits, mantissa, mantissa_bits] = found.each_mut();
    // SAFETY: the id came from this library with the call; variables for five numbers.
    let (done, bias, norm, precision) = unsafe {
        (
            (layout.get_fields)(datatype, sign, exponent, exponent_bits, mantissa, mantissa_bits),
            (layout.get_ebias)(datatype),
            (layout.get_norm)(datatype),
            (layout.get_precision)(datatype),
        )
    };
    let [sign, exponent, exponent_bits, mantissa, mantissa_bits] = found;
    if done < 0 {
        return None;
    }
    let bits = 8 * size;
    let ieee = norm == H5T_NORM_IMPLIED
        && precision == bits
        && sign == bits - 1
        && exponent + exponent_bits == sign
        && mantissa == 0
        && mantissa_bits == exponent
        && (1..=11).contains(&exponent_bits)
        && bias == (1 << (exponent_bits - 1)) - 1;
    Some(if ieee { (exponent_bits as u8, mantissa_bits as u8) } else { (0, 0) })
}

/// As [`fields`], by comparing with the standard types.
fn standard_fields(standard: &Standard, datatype: Hid, d: Dtype) -> Option<(u8, u8)> {
    let (like, as_like) = match (d.size, d.big_endian) {
        (4, false) => (standard.f32_le, Dtype::F32),
        (4, true) => (standard.f32_be, Dtype::F32),
        (8, false) => (standard.f64_le, Dtype::F64),
        (8, true) => (standard.f64_be, Dtype::F64),
        _ => return Some((0, 0)),
    };
    // SAFETY: a variable of this library, set since it called us; both ids are its own.
    match unsafe { (standard.equal)(datatype, *like) } {
        ..0 => None,
        0 => Some((0, 0)),
        _ => Some((as_like.exponent_bits, as_like.mantissa_bits)),
    }
}

/// The first filter of the pipeline when it is not ours: behind any, the bytes are no longer known to be the numbers.
fn filter_before(p: &Properties, dcpl: Hid) -> Option<Option<c_int>> {
    let (mut flags, mut words) = (0, 0);
    // SAFETY: the id came from this library with the call; no words, name or configuration are read.
    let id = unsafe {
        (p.get_filter)(dcpl, 0, &mut flags, &mut words, ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut())
    };
    (id >= 0).then_some((id != FILTER_ID).then_some(id))
}

fn filter_name(id: c_int) -> String {
    let own = usize::try_from(id).ok().and_then(|id| OWN_FILTERS.get(id.wrapping_sub(1)));
    own.map_or_else(|| format!("filter {id}"), |name| (*name).to_owned())
}

/// The fill value's bits when the user defined one.
///
/// HDF5 is asked for it in the dataset's own type, so it comes unconverted, in the file's byte order; what is kept are
/// the bits of the number, as codecs see them after their swap.
///
/// # Safety
/// `datatype` has the size of `dtype`, and at most 8 bytes.
unsafe fn fill(p: &Properties, dcpl: Hid, datatype: Hid, dtype: Dtype) -> Option<Option<u64>> {
    let mut defined = 0;
    // SAFETY: a variable for the answer.
    if unsafe { (p.fill_value_defined)(dcpl, &mut defined) } < 0 {
        return None;
    }
    if defined != H5D_FILL_VALUE_USER_DEFINED {
        return Some(None);
    }
    let mut value = [0u8; 8];
    // SAFETY: `value` takes the type's bytes, by the caller's promise.
    if unsafe { (p.get_fill_value)(dcpl, datatype, value.as_mut_ptr().cast()) } < 0 {
        return None;
    }
    Some(Some(bits(&value[..usize::from(dtype.size).min(8)], dtype.big_endian)))
}

/// Whether chunks are never filled. netCDF does so for a program that asks it not to fill, such as nccopy: then HDF5
/// does not know what stands for missing values, whatever the attribute `_FillValue` says.
fn never_filled(host: &Host, dcpl: Hid) -> bool {
    let mut time = 0;
    // SAFETY: the id came from this library with the call; a variable for the answer.
    host.filling.is_some_and(|f| unsafe { (f.get_fill_time)(dcpl, &mut time) } >= 0) && time == H5D_FILL_TIME_NEVER
}

/// As [`bits`], of an element that may be longer than numbers are, or empty.
pub(crate) fn bits_of_number(bytes: &[u8], big_endian: bool) -> Option<u64> {
    matches!(bytes.len(), 1..=8).then(|| bits(bytes, big_endian))
}

/// A number's bits from its bytes.
pub(crate) fn bits(bytes: &[u8], big_endian: bool) -> u64 {
    let append = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
    if big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_value_has_the_same_bits_in_both_orders() {
        let x = 9.96921e36f32;
        assert_eq!(bits(&x.to_le_bytes(), false), u64::from(x.to_bits()));
        assert_eq!(bits(&x.to_be_bytes(), true), u64::from(x.to_bits()));
        assert_eq!(bits(&1e20f64.to_be_bytes(), true), 1e20f64.to_bits());
    }
}
