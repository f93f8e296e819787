# SPDX-License-Identifier: MIT OR Apache-2.0
"""What variables of xarray had in the files that they were opened from, as far as it is this filter.

xarray keeps nothing of a filter that it does not know. The file is in `encoding["source"]`, and is asked again: for the
variable of the same name and shape or, when it has been renamed, for those of its shape and chunks.
"""
from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np

from .filters import FILTER_ID, How, Lossless, Lossy, words_of
from .netcdf import filter_of, filters_before
from .stored_words import meaning

if TYPE_CHECKING:
    import h5py
    import xarray as xr

# xarray's names of the compressions that netCDF has itself.
OTHERS = ("zlib", "szip", "zstd", "bzip2", "blosc")
_MAGIC = b"\x89HDF\r\n\x1a\n"


class Unanswered(ValueError):
    """A file that cannot be asked, or several of its variables that may be meant.

    Attributes
    ----------
    certain : bool
        Whether the variable had a filter that xarray does not know.
    gone : bool
        Whether it is the file that cannot be read.
    """

    def __init__(self, text: str, certain: bool, gone: bool) -> None:
        super().__init__(text)
        self.certain, self.gone = certain, gone


class Stored(NamedTuple):
    """A variable in a file, with or without the filter."""

    name: str
    shape: tuple[int, ...]
    like: tuple[Any, ...]
    """Its chunks and its type, but for the byte order."""
    how: Optional[How]


Files = dict[str, Optional[list[Stored]]]


class Origins:
    """The files of some variables, each of which is asked once.

    The variables, of xarray, are all that are saved: names that are still in use do not stand for a variable that has
    been renamed. `files` is what is known already, by path.
    """

    def __init__(self, variables: Mapping[Hashable, xr.Variable], files: Files | None = None) -> None:
        self.files: Files = dict(files or {})
        self.named = {name: variable.encoding.get("original_shape") for name, variable in variables.items()}

    def how_of(self, name: Hashable, variable: xr.Variable) -> How | None:
        """What a variable had. Raises Unanswered."""
        own, source, chunks = (variable.encoding.get(key) for key in ("compression", "source", "chunksizes"))
        if isinstance(own, (Lossy, Lossless)):
            return without_fill(own)
        if own == FILTER_ID:
            return without_fill(Lossy.from_filter_options(variable.encoding.get("compression_opts") or ()))
        if not source or not chunks or own not in (None, "unknown") or other_compression(variable.encoding):
            return None
        if source not in self.files:
            self.files[source] = stored_in(source)
        return self._in_source(name, variable, self.files[source])

    def _in_source(self, name: Hashable, v: xr.Variable, stored: list[Stored] | None) -> How | None:
        source, unknown = v.encoding["source"], v.encoding.get("compression") == "unknown"
        tell = f"give it anew: how={{{name!r}: h5z_gpu.Lossy(absolute=...)}}, or None for no compression"
        if stored is None:
            text = f"h5z-gpu: {source!r} cannot be asked what {name!r} was compressed with; {tell}"
            raise Unanswered(text, unknown, True)
        shape = v.encoding.get("original_shape")
        like = _like(v.encoding["chunksizes"], v.encoding.get("dtype", v.dtype))
        alike = [s for s in stored if s.name == name and s.shape == shape]
        alike = alike or [s for s in stored if s.name == name and s.like == like]  # somebody has appended
        gone = [s for s in stored if s.shape == shape and self.named.get(s.name) != shape]
        alike = alike or [s for s in gone if s.like == like]
        if unknown:  # it had some filter; and is of another type now, or shorter in the file than its dimension
            chunked = [s for s in stored if s.like[:-2] == like[:-2]]
            alike = alike or [s for s in chunked if s.name == name] or [s for s in gone if s in chunked]
            alike = alike or [s for s in chunked if s.like == like and s.name not in self.named]
        hows = {s.how for s in alike}
        if len(hows) > 1:
            seen = ", ".join(sorted({f"{s.name!r} with {s.how}" for s in alike}))
            text = f"h5z-gpu: {name!r} may have been any of these of {source!r}: {seen}; {tell}"
            raise Unanswered(text, unknown, False)
        if unknown and not alike and any(s.how for s in stored):
            raise Unanswered(f"h5z-gpu: {source!r} has no variable that {name!r} can have been; {tell}", unknown, False)
        return hows.pop() if hows else None


def other_compression(encoding: Mapping[str, Any]) -> bool:
    """Whether an encoding asks for a compression of netCDF's own, or for none."""
    return any(encoding.get(key) for key in OTHERS)


def without_fill(how: How | None) -> How | None:
    """The same without a fill value, which xarray hands on by itself."""
    return how._with(fill_value=None) if isinstance(how, Lossy) else how


def how_of_dataset(dataset: h5py.Dataset) -> How | None:
    """What a dataset of h5py is compressed with, as it should be written again; None without this filter.

    Where nothing was lost, as of integers or behind a filter that hides the numbers, that is Lossless, whatever the
    words say.
    """
    words = words_of(dataset)
    if words is None:
        return None
    how, stored = Lossy.from_filter_options(words), meaning(words).stored
    exact = not takes_bound(dataset.dtype) if stored is None else not stored.may_lose
    return Lossless() if exact and isinstance(how, Lossy) else without_fill(how)


def takes_bound(dtype: Any) -> bool:
    """Whether values of a type can be lossy."""
    dtype = np.dtype(object) if dtype is str else np.dtype(dtype)
    return dtype.kind == "f" and dtype.itemsize in (2, 4, 8)


def _like(chunks: Iterable[int], dtype: Any) -> tuple[Any, ...]:
    of = np.dtype(object) if dtype is str else np.dtype(dtype)
    return (*chunks, of.kind, of.itemsize)


def is_hdf5(path: Any) -> bool:
    """Whether there is a file of this name that begins as HDF5 files without a user block do."""
    try:
        with open(path, "rb") as f:
            return f.read(len(_MAGIC)) == _MAGIC
    except (OSError, TypeError, ValueError):
        return False


def stored_in(path: str) -> list[Stored] | None:
    """The variables in chunks of a file, in all its groups. None where it cannot be read."""
    if not os.path.exists(path):  # nor are addresses in the network asked again
        return None
    for read in (_by_h5py, _by_netcdf4):
        try:
            return list(read(path))
        except (ImportError, OSError, RuntimeError):
            pass
    return None


def _by_h5py(path: str) -> Iterator[Stored]:
    import h5py

    found: list[h5py.Dataset] = []
    with h5py.File(path, "r") as f:
        f.visititems(lambda _, x: found.append(x) if isinstance(x, h5py.Dataset) and x.chunks else None)
        for d in found:
            name = d.name.rsplit("/", 1)[1].removeprefix("_nc4_non_coord_")
            yield Stored(name, d.shape, _like(d.chunks, d.dtype), how_of_dataset(d))


def _by_netcdf4(path: str) -> Iterator[Stored]:
    import netCDF4

    with netCDF4.Dataset(path) as f:
        groups = [f]
        for g in groups:
            groups += g.groups.values()
            for v in g.variables.values():
                chunks = v.chunking()
                if not isinstance(chunks, list):
                    continue
                how = filter_of(v)
                if isinstance(how, Lossy) and (filters_before(v) or not takes_bound(v.dtype)):
                    how = Lossless()
                yield Stored(v.name, v.shape, _like(chunks, v.dtype), without_fill(how))
