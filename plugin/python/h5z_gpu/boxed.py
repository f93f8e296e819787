# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of a variable of h5netcdf, many chunks at a time: slices with steps and lists of places, out of boxes.

Each axis is indexed by itself, as xarray's "outer" indexers are: of [3, 5] and [1, 7, 9] come 2 x 3 values. The box
around all places is read and the places are taken out of it. Where that were many more values than are wanted, the one
list of places whose box is the emptiest is left to HDF5.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple, Union

import numpy as np

from .datasets import read, write
from .origins import how_of_dataset

_WASTE = 4
"""A box is read if it holds at most this many times the values that are wanted, or is small."""
_SMALL = 1 << 20  # bytes


class _Axis(NamedTuple):
    """What an index wants of an axis."""

    start: int
    stop: int
    inside: Union[slice, np.ndarray, None]
    """Places from `start` on; None for a whole number, which takes its axis away."""
    wanted: int


def read_outer(variable: Any, key: tuple[Any, ...]) -> np.ndarray:
    """Values of a variable of h5netcdf, of an open file. `key` has for each axis a whole number, a slice of positive
    step, or a one-dimensional array of places."""
    if not key:
        scalar: np.ndarray = variable[key]
        return scalar
    dataset, shape = getattr(variable, "_h5ds", None), variable.shape
    axes = [_axis(part, n) for part, n in zip(key, shape)]
    box: list[Any] = [slice(a.start, a.stop) for a in axes]
    count = math.prod(a.stop - a.start for a in axes)
    item = getattr(getattr(dataset, "dtype", None), "itemsize", 1)
    if count > _WASTE * math.prod(a.wanted for a in axes) and count * item > _SMALL and _whole(dataset, shape):
        axes, box = _sparse(axes, box)
        values = variable[tuple(box)]
    elif _is_ours(dataset, shape) and count and not _cached(dataset, box, count):
        values = read(dataset, selection=tuple(box), progress=False)
    else:
        values = variable[tuple(box)]
    values = values[tuple(a.inside if isinstance(a.inside, slice) else slice(None) for a in axes)]
    for k, a in enumerate(axes):
        if isinstance(a.inside, np.ndarray):
            values = values.take(a.inside, axis=k)
    answer: np.ndarray = values[tuple(0 if a.inside is None else slice(None) for a in axes)]
    return answer


def write_box(variable: Any, key: Any, value: Any) -> bool:
    """Writes `variable[key] = value` where `h5z_gpu.write` has a part in it; False where h5netcdf is to do it."""
    dataset: Any = getattr(variable, "_h5ds", None)
    key = key if isinstance(key, tuple) else (key,)
    if not _is_ours(dataset, variable.shape) or not isinstance(value, np.ndarray) or value.dtype != dataset.dtype:
        return False
    if how_of_dataset(dataset) is None or not all(x is Ellipsis or isinstance(x, slice) for x in key):
        return False
    shape, at = dataset.shape, [k for k, x in enumerate(key) if x is Ellipsis]
    if at:
        key = (*key[: at[0]], *[slice(None)] * (len(shape) - len(key) + 1), *key[at[0] + 1 :])
    each = [range(*x.indices(n)) for x, n in zip(key, shape)]
    stops = [n if x.stop is None else x.stop for x, n in zip(key, shape)]  # beyond the end an unlimited axis grows
    if len(key) != len(shape) or any(r.step != 1 for r in each) or any(s > n for s, n in zip(stops, shape)):
        return False
    if value.shape != tuple(len(r) for r in each) or type(value) is not np.ndarray:
        return False
    write(dataset, value, tuple(slice(r.start, r.start + len(r)) for r in each), progress=False, provenance=False)
    return True


def _axis(part: Any, n: int) -> _Axis:
    if isinstance(part, slice):
        each = range(*part.indices(n))
        if not each:
            return _Axis(0, 0, slice(None), 0)
        return _Axis(each[0], each[-1] + 1, slice(None, None, each.step), len(each))
    places = np.asarray(part)
    if places.ndim == 0:
        at = int(places) + n if places < 0 else int(places)
        if not 0 <= at < n:
            raise IndexError(f"index {part} of an axis of {n}")
        return _Axis(at, at + 1, None, 1)
    if not places.size:
        return _Axis(0, 0, slice(None), 0)
    places = np.where(places < 0, places + n, places).astype(np.int64)
    low, high = int(places.min()), int(places.max())
    if low < 0 or high >= n:
        raise IndexError(f"index {low if low < 0 else high} of an axis of {n}")
    return _Axis(low, high + 1, places - low, places.size)


def _sparse(axes: list[_Axis], box: list[Any]) -> tuple[list[_Axis], list[Any]]:
    """What is left to HDF5: steps, and one list of places."""
    lists = [k for k, a in enumerate(axes) if isinstance(a.inside, np.ndarray)]
    one = max(lists, key=lambda k: (axes[k].stop - axes[k].start) / axes[k].wanted) if lists else None
    left = []
    for k, a in enumerate(axes):
        if isinstance(a.inside, slice):
            box[k] = slice(a.start, a.stop, a.inside.step)
            a = a._replace(inside=slice(None))
        elif k == one:
            places, back = np.unique(np.asarray(a.inside), return_inverse=True)
            box[k] = places + a.start
            a = a._replace(inside=back)
        left.append(a)
    return left, box


def _whole(dataset: Any, shape: tuple[int, ...]) -> bool:
    """Whether a dataset has what its variable has: h5netcdf pads a shorter one to the length of its dimension."""
    return getattr(dataset, "shape", None) == shape


def _is_ours(dataset: Any, shape: tuple[int, ...]) -> bool:
    """Whether `h5z_gpu.read` has a part in it."""
    import h5py

    return isinstance(dataset, h5py.Dataset) and bool(dataset.chunks) and dataset.dtype.kind in "fiu" and (
        _whole(dataset, shape)
    )


def _cached(dataset: Any, box: list[slice], count: int) -> bool:
    """Whether a box is a small part of chunks that all fit into HDF5's cache, from which their other parts come then,
    as of rows that are read one by one."""
    touched = math.prod((b.stop - 1) // c - b.start // c + 1 for b, c in zip(box, dataset.chunks))
    values = touched * math.prod(dataset.chunks)
    if 2 * count >= values:
        return False
    return bool(values * dataset.dtype.itemsize <= dataset.id.get_access_plist().get_chunk_cache()[1])
