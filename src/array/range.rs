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

/// What a range is found of: arguments of [`super::range`], which were checked.
pub(super) struct ArrayBoxes<'a> {
    pub(super) array: &'a Array,
    pub(super) dtype: Dtype,
    pub(super) chunk: &'a [u64],
    pub(super) origins: &'a [i64],
    pub(super) fill: Option<u64>,
}

/// See [`super::range`].
pub(super) fn range(boxes: &ArrayBoxes<'_>, threads: usize) -> Result<Option<(f64, f64)>> {
    let threads = if threads > 0 { threads } else { threads::cores() };
    let of = |origin: &[i64]| match boxes.dtype.size {
        4 => of_box::<f32>(boxes, origin),
        _ => of_box::<f64>(boxes, origin),
    };
    let origins: Vec<&[i64]> = boxes.origins.chunks(boxes.chunk.len()).collect();
    let ranges = parallel::try_map(origins.len(), threads, |i| of(origins[i]))?;
    Ok(ranges.into_iter().fold(None, wider))
}

/// What holds both ranges.
pub(super) fn wider(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (one, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (one, other) => one.or(other),
    }
}

fn of_box<S: Scalar>(boxes: &ArrayBoxes<'_>, origin: &[i64]) -> Result<Option<(f64, f64)>> {
    let &ArrayBoxes { array, dtype, chunk, fill, .. } = boxes;
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
