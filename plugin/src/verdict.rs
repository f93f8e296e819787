// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact verdict on a bound, for C and for the Python package's `verify`. See `include/h5z_gpu.h`.

use crate::c_api::{dtype, element, fence, slice, slice_mut, string};
use crate::dataset::bits_of_number;
use crate::error::Result;
use h5z_gpu::judge::{PerValue, Verdict, judge};
use h5z_gpu::{Bound, Keep, Request};
use libc::{c_char, c_int, c_void};

/// `h5z_gpu_verdict` of the header.
#[repr(C)]
pub struct CVerdict {
    judged: u64,
    nan: u64,
    infinite: u64,
    fill: u64,
    special_broken: u64,
    broken: u64,
    kept_broken: [u64; 3],
    first: i64,
    into_fill: u64,
    noisy: c_int,
    has_range: c_int,
    limit: f64,
    worst: f64,
    psnr: f64,
    range: [f64; 2],
}

impl From<Verdict> for CVerdict {
    fn from(v: Verdict) -> Self {
        let (low, high) = v.range.unwrap_or((0.0, 0.0));
        CVerdict {
            judged: v.judged,
            nan: v.nan,
            infinite: v.infinite,
            fill: v.fill,
            special_broken: v.special_broken,
            broken: v.broken,
            kept_broken: v.kept_broken,
            first: v.first.and_then(|k| i64::try_from(k).ok()).unwrap_or(-1),
            into_fill: v.into_fill,
            noisy: v.noisy.into(),
            has_range: v.range.is_some().into(),
            limit: v.limit,
            worst: v.worst,
            psnr: v.psnr(),
            range: [low, high],
        }
    }
}

/// The bound of a mode's number, as frames and words have it.
fn bound(mode: c_int, value: f64) -> Result<Bound> {
    Ok(match mode {
        1 => Bound::Absolute(value),
        2 => Bound::Relative(value),
        3 => Bound::PointwiseRelative(value),
        4 => Bound::Psnr(value),
        9 => Bound::Lossless,
        _ => return Err(format!("mode {mode}: 1 to 4 or 9 is needed, see h5z_gpu_frame").into()),
    })
}

/// # Safety
/// Original and reconstruction have `n` elements of the type, `fill` one or is null; `error` and `marks` take `n`
/// items, or both are null; `verdict` takes one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_judge(
    mode: c_int,
    value: f64,
    keep: u32,
    datatype: *const c_char,
    fill: *const c_void,
    n: usize,
    original: *const c_void,
    reconstructed: *const c_void,
    threads: c_int,
    error: *mut f64,
    marks: *mut u8,
    verdict: *mut CVerdict,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let name = unsafe { string(datatype, "type")? };
        let dtype = dtype(&name)?;
        let size = usize::from(dtype.size);
        let len = n.checked_mul(size).ok_or_else(|| format!("{n} elements of {size} bytes are no array"))?;
        // SAFETY: this function's promise: `n` elements are `len` bytes.
        let pair = unsafe { [slice(original.cast::<u8>(), len)?, slice(reconstructed.cast::<u8>(), len)?] };
        // SAFETY: one element of the type.
        let fill = unsafe { element(fill, dtype.size)? }.and_then(|f| bits_of_number(f, dtype.big_endian));
        let each = match error.is_null() && marks.is_null() {
            true => None,
            // SAFETY: this function's promise.
            false => Some(unsafe { PerValue { error: slice_mut(error, n)?, marks: slice_mut(marks, n)? } }),
        };
        // SAFETY: this function's promise.
        let out = unsafe { slice_mut(verdict, 1)? };
        let threads = usize::try_from(threads).ok().filter(|n| *n > 0).unwrap_or_else(h5z_gpu::plugin::threads);
        let asked = Request { keep: Keep::new(keep)?, ..bound(mode, value)?.into() };
        let found = judge(asked, dtype, fill, pair, each, threads)?;
        out[0] = found.into();
        Ok(i64::from(found.held()))
    })
}
