# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the datasets of a file are for: data, which may lose bits, or what the meaning of data rests on, which may
not."""

from __future__ import annotations

import itertools
import math
import posixpath
from typing import Any, Optional

import h5py
import numpy as np

from ..chunks import chunk_shape
from ..conventions import ANCILLARY, NAMING, SAYING, is_coordinate, is_flag, missing_in, names_in, value_in, value_of
from .common import Problem
from .objects import filters_of, known_attributes, walk
from .promise import fill_is_defined, promise_of

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
INTEGERS = "holds integers"
SUITABLE = range(1 << 20, (16 << 20) + 1)
"""Bytes of a chunk that is kept as it is."""


class Roles:
    """Roles of the datasets of one open file.

    An attribute names datasets by path, or by names that are looked for in the group of the attribute, then in the
    groups around it, as CF has it, and then anywhere.
    """

    def __init__(self, file: h5py.File) -> None:
        self.exact, self.flags = set[Any](), set[Any]()
        """Where the datasets lie: one may have several names."""
        self.datasets: list[h5py.Dataset] = []
        """All that can be read, in the order of names."""
        self._paths = dict[str, Any]()
        self._named: Optional[dict[str, set[Any]]] = None
        naming, keys = [], {*NAMING, ANCILLARY}
        for path, item in itertools.chain([("/", file)], walk(file)):
            if isinstance(item, str):
                continue
            group = path
            if isinstance(item, h5py.Dataset):
                self.datasets.append(item)
                self._paths[path], group = _place(item), posixpath.dirname(path)
            naming += [(key, value_of(item, key), group) for key in known_attributes(item).keys() & keys]
        for key, value, group in naming:
            for name in names_in(key, value):
                (self.flags if key == ANCILLARY else self.exact).update(self._found(file, group, name))

    def _found(self, file: h5py.File, group: str, name: str) -> set[Any]:
        """Places of the datasets that a name in an attribute means."""
        while True:
            path = posixpath.normpath(posixpath.join(group, name))
            if (place := self._paths.get(path) or _place_of(file, path)) is not None:
                return {place}
            if group == "/" or name.startswith("/"):
                break
            group = posixpath.dirname(group)
        if name.split() != [name]:  # a whole attribute that was tried as one name with blanks
            return set()
        if self._named is None:
            self._named = {}
            for path, place in self._paths.items():
                self._named.setdefault(posixpath.basename(path), set()).add(place)
        return self._named.get(posixpath.basename(name), set())

    def why_exact(self, dataset: h5py.Dataset, unpacked: bool = False) -> Optional[str]:
        """Why a dataset has to keep every bit; None for floating-point data, and for packed data to be `unpacked`."""
        try:
            kind, size = dataset.dtype.kind, dataset.dtype.itemsize
        except (TypeError, ValueError, OSError):
            return "is of a type that NumPy has not"
        if not unpacked and (kind != "f" or size not in (2, 4, 8)):
            known = {"i": INTEGERS, "u": INTEGERS, "b": "holds truth values"}
            return known.get(kind, "holds no float16, float32 or float64")
        if dataset.shape is None or not dataset.shape or not dataset.size:
            return "holds one value" if dataset.shape == () else "is empty"
        path = dataset.name
        there = known_attributes(dataset)
        says = {key: value_in(there, key) for key in there.keys() & SAYING}
        if h5py.h5ds.is_scale(dataset.id) or is_coordinate(says, path):
            return "is a coordinate"
        place = self._paths.get(path) or _place(dataset)
        if place in self.exact:
            return "is a coordinate, or its like, of others"
        if place in self.flags or is_flag(says):
            return "is a flag or an ancillary variable"
        if dataset.size * size < 4096:
            return "takes less than 4 kB"
        if dataset.ndim == 1 and dataset.size <= 1 << 20 and _monotonic(dataset):
            return "rises or falls from value to value, as a coordinate does"
        return None


def forbids_loss(why: str) -> bool:
    """Whether a reason to keep every bit holds against a bound that the user names for the variable, too."""
    return why.startswith(("holds", "is ")) and "flag" not in why


def _place(dataset: h5py.Dataset) -> Any:
    info = h5py.h5o.get_info(dataset.id)
    return info.fileno, info.addr


def _place_of(file: h5py.File, path: str) -> Any:
    """The place of the dataset at a path that may lead through links; None where there is none."""
    try:
        item = file.get(path)
    except (OSError, TypeError, ValueError, RuntimeError, KeyError):
        return None
    return _place(item) if isinstance(item, h5py.Dataset) else None


def _monotonic(dataset: h5py.Dataset) -> bool:
    try:
        with np.errstate(all="ignore"):
            step = np.diff(dataset[...])
    except OSError:
        return False
    return bool((step > 0).all() or (step < 0).all())


def lossy_already(dataset: h5py.Dataset) -> Optional[str]:
    """What has taken bits of a dataset already, by its filters; None where nothing has."""
    filters = filters_of(dataset)
    for number, *_ in filters:
        if number in _LOSSY and dataset.dtype.kind == "f":
            return _LOSSY[number]
    if not filters:
        return None
    try:
        promise = promise_of(dataset)
    except Problem:
        return "this filter, with words that cannot be read"
    return None if promise.mode == "lossless" else f"this filter, {promise}"


def protected(dataset: h5py.Dataset, by_range: bool = True) -> tuple[Optional[np.ndarray], Optional[str]]:
    """The value that stands for missing ones and has to keep its bits, and what speaks against a loss.

    HDF5's own fill value, else the attribute `_FillValue`, else `missing_value` and its like: the filter knows one. The
    others keep their bits only where nothing is lost, but for NaN and infinities, which the filter keeps in any case.
    netCDF declares a fill value of its own where the user has none. It is so large that an absolute bound keeps it, and
    `ranges` looks after it under other bounds of each value; only a range would be stretched. `by_range`: the bound is
    one of the range.
    """
    if dataset.dtype.kind != "f":  # every bit is kept in any case
        return None, None
    with np.errstate(all="ignore"):
        found, default = list(missing_in(known_attributes(dataset)).astype(dataset.dtype)), np.asarray(NETCDF_FILL)
        if fill_is_defined(dataset):
            found.insert(0, np.asarray(dataset.fillvalue, dataset.dtype)[()])
        default = default.astype(dataset.dtype)
    if not found:
        return None, None
    if len(found) > 1 and found[0] == default and not by_range:
        found = found[1:]
    first, others = found[0], {v.tobytes(): v for v in found[1:] if np.isfinite(v)}
    others.pop(first.tobytes(), None)
    against = None
    if others:
        *most, last = map(str, (first, *others.values()))
        against = (f"it has several values for missing data, {', '.join(most)} and {last}, and the filter "
                   "knows one")
    return np.asarray(first), against


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
    absent = [str(n) for n, *_ in filters_of(dataset) if not h5py.h5z.filter_avail(n)]
    if absent:
        return (
            f"{dataset.file.filename}: {name} cannot be read without HDF5 filter {', '.join(absent)}; hdf5plugin has "
            "many: pip install hdf5plugin, and add the folder that python -c 'import hdf5plugin; "
            "print(hdf5plugin.PLUGIN_PATH)' prints to HDF5_PLUGIN_PATH"
        )
    text = " ".join(str(why).split()).removeprefix(f"{dataset.name}: ")
    return f"{dataset.file.filename}: {name} cannot be read: {text}; `h5z-gpu recover` copies what can be read"
