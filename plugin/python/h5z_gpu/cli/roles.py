# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the datasets of a file are for: data, which may lose bits, or what the meaning of data rests on, which may
not."""

from __future__ import annotations

import math
from typing import Any, Optional

import h5py
import numpy as np

from ..chunks import chunk_shape
from ..conventions import ANCILLARY, FLAGS, NAMING, names_in
from .objects import datasets

# Filters that lose bits, and their names. HDF5's own scale-offset does so for floating-point data.
_LOSSY = {
    32013: "ZFP",
    32017: "SZ",
    32024: "SZ3",
    32028: "SPERR",
    32022: "BitGroom",
    32023: "Granular BitRound",
    6: "scale-offset",
}
NETCDF_FILL = 9.969209968386869e36  # NC_FILL_FLOAT and NC_FILL_DOUBLE
SMALL = 64 << 10
"""Integers of fewer bytes are not worth chunks."""
SUITABLE = range(1 << 20, (16 << 20) + 1)
"""Bytes of a chunk that is kept as it is."""


class Roles:
    """Roles of the datasets of one file.

    Parameters
    ----------
    file : h5py.File
        Open.
    """

    def __init__(self, file: h5py.File) -> None:
        self.exact, self.flags = set[str](), set[str]()
        for item in [file, *datasets(file)]:
            for key in (*NAMING, ANCILLARY):
                text = text_of(item, key)
                if text:
                    (self.flags if key == ANCILLARY else self.exact).update(names_in(text))

    def why_exact(self, dataset: h5py.Dataset, unpacked: bool = False) -> Optional[str]:
        """Why a dataset has to keep every bit; None for floating-point data, and for packed data to be `unpacked`."""
        name = dataset.name.rsplit("/", 1)[-1]
        try:
            kind, size = dataset.dtype.kind, dataset.dtype.itemsize
        except (TypeError, ValueError, OSError):
            return "is of a type that NumPy has not"
        if not unpacked and (kind != "f" or size not in (2, 4, 8)):
            return {"i": "holds integers", "u": "holds integers", "b": "holds truth values"}.get(
                kind, "holds no float16, float32 or float64"
            )
        if dataset.shape is None or not dataset.shape or not dataset.size:
            return "holds one value" if dataset.shape == () else "is empty"
        if h5py.h5ds.is_scale(dataset.id) or "axis" in dataset.attrs:
            return "is a coordinate"
        if name in self.exact:
            return "is a coordinate, or its like, of others"
        if name in self.flags or any(a in dataset.attrs for a in FLAGS):
            return "is a flag or an ancillary variable"
        if dataset.size * size < 4096:
            return "takes less than 4 kB"
        if dataset.ndim == 1 and dataset.size <= 1 << 20 and _monotonic(dataset):
            return "rises or falls from value to value, as a coordinate does"
        return None


def _monotonic(dataset: h5py.Dataset) -> bool:
    try:
        with np.errstate(all="ignore"):
            step = np.diff(dataset[...])
    except OSError:
        return False
    return bool((step > 0).all() or (step < 0).all())


def text_of(item: Any, name: str) -> Optional[str]:
    """A text attribute, or None."""
    try:
        value = item.attrs.get(name)
    except (OSError, TypeError, ValueError):
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None


def number_of(item: Any, name: str) -> Optional[float]:
    """A numeric attribute of one element, or None."""
    try:
        value = np.asarray(item.attrs.get(name)) if name in item.attrs else None
    except (OSError, TypeError, ValueError):
        return None
    if value is None or value.size != 1 or value.dtype.kind not in "iuf":
        return None
    return float(value.reshape(-1)[0])


def filters_of(dataset: h5py.Dataset) -> list[tuple[int, tuple[int, ...]]]:
    """Numbers and words of a dataset's filters."""
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(k)[0:3:2] for k in range(properties.get_nfilters())]


def lossy_already(dataset: h5py.Dataset) -> Optional[str]:
    """What has taken bits of a dataset already, by its filters; None where nothing has."""
    from .common import Problem
    from .promise import promise_of

    for number, _ in filters_of(dataset):
        if number in _LOSSY and dataset.dtype.kind == "f":
            return _LOSSY[number]
    try:
        promise = promise_of(dataset)
    except Problem:
        return "this filter, with words that cannot be read"
    return None if promise.mode == "lossless" else f"this filter, {promise}"


def protected(dataset: h5py.Dataset, by_range: bool = True) -> tuple[Optional[np.ndarray], Optional[str]]:
    """The value that stands for missing ones and has to keep its bits, and what speaks against a loss.

    HDF5's own fill value, else the attribute `_FillValue`, else `missing_value`: the filter knows one. netCDF declares
    a fill value of its own where the user has none. It is so large that a bound of each value keeps it in any case;
    only a range would be stretched.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of any type; of floating-point numbers there is something to say.
    by_range : bool
        The bound is one of the range.
    """
    from .promise import fill_is_defined

    if dataset.dtype.kind != "f":  # every bit is kept in any case
        return None, None
    found: list[np.ndarray] = []
    if fill_is_defined(dataset):
        found.append(np.asarray(dataset.fillvalue, dataset.dtype))
    for name in ("_FillValue", "missing_value"):
        value = number_of(dataset, name)
        if value is not None:
            with np.errstate(all="ignore"):
                found.append(np.asarray(value, dataset.dtype))
    if not found:
        return None, None
    default = np.asarray(NETCDF_FILL, dataset.dtype).tobytes()
    if len(found) > 1 and found[0].tobytes() == default and not by_range:
        found = found[1:]
    first, others = found[0], [v for v in found[1:] if v.tobytes() != found[0].tobytes() and not np.isnan(v)]
    if others:
        return first, f"it has two values for missing data, {first} and {others[0]}, and the filter knows one"
    return first, None


def worth_lossless(dataset: h5py.Dataset) -> bool:
    """Whether integers that nobody has compressed are worth it."""
    return (
        isinstance(dataset.id.get_type(), h5py.h5t.TypeIntegerID)
        and bool(dataset.shape)
        and dataset.size * dataset.dtype.itemsize >= SMALL
        and not filters_of(dataset)
        and not dataset.is_virtual
        and not dataset.external
    )


def chunk_of(dataset: h5py.Dataset, item: Optional[int] = None) -> tuple[int, ...]:
    """Chunks for the filter: those that are there, where they have 1 to 16 MiB, else of about 4 MiB. `item`: bytes of a
    value, where they become others."""
    item = item or dataset.dtype.itemsize
    if dataset.chunks and math.prod(dataset.chunks) * item in SUITABLE:
        return tuple(dataset.chunks)
    return chunk_shape(dataset.shape, item)


def why_unread(dataset: h5py.Dataset, why: Exception) -> str:
    """A sentence on values that could not be read: a filter that is not there, or what HDF5 says."""
    name = dataset.name.lstrip("/")
    absent = [str(n) for n, _ in filters_of(dataset) if not h5py.h5z.filter_avail(n)]
    if absent:
        return (
            f"{dataset.file.filename}: {name} cannot be read without HDF5 filter {', '.join(absent)}; hdf5plugin has "
            f"many: pip install "
            "hdf5plugin, and add the folder that python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)' prints "
            "to HDF5_PLUGIN_PATH"
        )
    text = " ".join(str(why).split()).removeprefix(f"{dataset.name}: ")
    return f"{dataset.file.filename}: {name} cannot be read: {text}; `h5z-gpu recover` copies what can be read"
