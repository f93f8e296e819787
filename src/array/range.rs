// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value range of a whole array, for bounds relative to it.

use super::boxes::Array;
use crate::host::threads;
use codecs::bound;
use codecs::codec::chunk::values;
use codecs::error::Result;
use codecs::params::Dtype;
use codecs::scalar::Scalar;
use codecs::{memory, parallel};

/// See [`super::range`], whose arguments were checked.
pub(super) fn range(
    array: &Array,
    dtype: Dtype,
    chunk: &[u64],
    origins: &[i64],
    fill: Option<u64>,
    threads: usize,
) -> Result<Option<(f64, f64)>> {
    let threads = if threads > 0 { threads } else { threads::cores() };
    let of = |origin: &[i64]| match dtype.size {
        4 => of_box::<f32>(array, dtype, chunk, origin, fill),
        _ => of_box::<f64>(array, dtype, chunk, origin, fill),
    };
    let boxes: Vec<&[i64]> = origins.chunks(chunk.len()).collect();
    let ranges = parallel::try_map(boxes.len(), threads, |i| of(boxes[i]))?;
    Ok(ranges.into_iter().flatten().reduce(|(low, high), (a, z)| (low.min(a), high.max(z))))
}

fn of_box<S: Scalar>(
    array: &Array,
    dtype: Dtype,
    chunk: &[u64],
    origin: &[i64],
    fill: Option<u64>,
) -> Result<Option<(f64, f64)>> {
    let Some(inside) = array.overlap(origin, chunk) else { return Ok(None) };
    // A box of what lies in the array alone: padding would be values.
    let (start, extents) = inside.in_array();
    let Some(whole) = array.overlap(&start, &extents) else { return Ok(None) };
    // No value that counts has the bits of this NaN.
    let fill = fill.or(Some(u64::MAX));
    if let Some(raw) = array.dense(&whole, &extents) {
        return Ok(bound::range::<S>(&values(raw, dtype)?, fill));
    }
    let mut raw = memory::zeros(extents.iter().product::<u64>() as usize * array.element())?;
    array.gather(&whole, &extents, &mut raw);
    Ok(bound::range::<S>(&values(&raw, dtype)?, fill))
}
