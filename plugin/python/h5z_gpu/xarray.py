# SPDX-License-Identifier: MIT OR Apache-2.0
"""The filter for whole datasets of xarray: to be imported by itself, `import h5z_gpu.xarray`.

encoding   what to give to `ds.to_netcdf(encoding=)`, engine h5netcdf
to_netcdf   writes with either engine, and keeps what variables had in the file that they come from
filters_of   what they had there
from_packing   bounds for what a file holds as packed integers

xarray hands no filter on that it does not know, and its engine netcdf4 has no way to name one. Nothing of xarray is
replaced here: for that engine a store is derived from xarray's own and entered in its table of stores under a name of
its own.
"""
from __future__ import annotations

import importlib.util
import math
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

import numpy as np
import xarray as xr

from .chunks import chunk_shape, step_of
from .conventions import ANCILLARY, FLAGS, NAMING, names_in
from .filters import FILTER_ID, How, Lossless, Lossy
from .netcdf import def_filter, filter_of
from .packing import PACKING, from_packing, is_packed, unpacked_limits
from .views import value_range
from .whole import whole

__all__ = ["encoding", "filters_of", "from_packing", "to_netcdf"]

Hows = Union[Lossy, Lossless, Mapping[Any, "How | None"], None]

CHUNK_BYTES = 4 << 20
# Chunks of source files within these are kept when a bound is named anew.
_SUITABLE = range(1 << 20, (16 << 20) + 1)
# What an encoding says of the values rather than of how they are stored. "coordinates" is taken from the dataset's own
# encoding.
_KEPT = {"_FillValue", "missing_value", "dtype", "units", "calendar", "_Unsigned", "_Encoding", *NAMING[1:], *PACKING}


def encoding(
    ds: xr.Dataset,
    how: Hows,
    *,
    chunks: Mapping[Any, int] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    unlimited_dims: str | Iterable[Hashable] | None = None,
) -> dict[Hashable, dict[str, Any]]:
    """The encoding of a whole dataset, for `ds.to_netcdf(path, engine="h5netcdf", encoding=...)`.

    * A `Lossy` is for data variables with floating-point values. Those that are packed as integers in the source are
      stored as floating-point numbers: the bound is about the values that you see.
    * Other data variables of numbers, times and truth values, and those with CF's flags or named by
      `ancillary_variables`, are compressed without loss.
    * Coordinates, and what the attributes `bounds`, `grid_mapping`, `cell_measures`, `formula_terms` and the like name,
      get nothing. Nor do scalars and strings.
    * A variable that gets nothing here, but had this filter in its source, keeps it; coordinates keep it without loss.

    Parameters
    ----------
    ds : xarray.Dataset
        With NumPy or dask arrays.
    how : Lossy, Lossless, mapping or None
        For all data variables, or by name for some; None, as a whole or for a name, asks for none. A `fill_value`
        becomes `_FillValue`; else that of the source is kept. With of="dataset" the range of each variable is found
        now, and its bound is absolute.
    chunks : mapping of dimension to int, optional
        Extents of chunks along these dimensions. Who appends step by step along time gives {"time": 1}.
    chunk_bytes : int, optional
        About how many bytes a chunk takes before it is compressed. Default: 4 MiB. A chunk is up to twice as large
        where that keeps trailing axes whole, or other axes at 32 values. Chunks of dask are made of whole chunks, and
        chunks of 1 to 16 MiB of the source are kept.
    unlimited_dims : dimension or iterable of them, optional
        As for `to_netcdf`; chunks are not longer than what is there. Default: ds.encoding["unlimited_dims"].

    Returns
    -------
    dict
        By variable: `compression`, `chunksizes` and what the variable's own encoding says of its values. To be changed
        at will.

    Raises
    ------
    ValueError
        For a name that `ds` has not, for `Lossy` under the name of a coordinate, and where several variables of the
        source may be the one that a renamed variable was.
    TypeError
        For a `how` that is none of these.
    """
    plan = _plan(ds, how, chunks, chunk_bytes, unlimited_dims)
    left = [name for name in plan if unpacked_limits(ds.variables[name], plan[name])]
    if left:
        warnings.warn(
            f"h5z-gpu: valid_range, valid_min or valid_max of {', '.join(map(repr, left))} are in packed units, the "
            "values will not be: use h5z_gpu.xarray.to_netcdf, which converts them, or remove them",
            stacklevel=2,
        )
    return plan


def to_netcdf(
    ds: xr.Dataset,
    path: Any,
    how: Hows = None,
    *,
    engine: str | None = None,
    encoding: Mapping[Any, Mapping[str, Any]] | None = None,
    chunks: Mapping[Any, int] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    unlimited_dims: str | Iterable[Hashable] | None = None,
    **more: Any,
) -> Any:
    """Writes a dataset as `ds.to_netcdf` does, with this filter, by either engine.

    Parameters
    ----------
    ds : xarray.Dataset
        Opened by either engine, or made in any other way. Where packing is undone, `valid_range` and its like are put
        into the units of the values.
    path : str or path-like
        As for `ds.to_netcdf`. The file is there whole or not at all, as by `h5z_gpu.save`: with mode "a" a copy of it
        is added to, which replaces it when it is complete. By compute=False it is written later, and in place.
    how : Lossy, Lossless, mapping or None, optional
        As for `encoding`. Default: each variable keeps what it had in the file that it was opened from.
    engine : {"h5netcdf", "netcdf4"}, optional
        Default: h5netcdf, or netcdf4 where that is not installed.
    encoding : mapping, optional
        Encodings by variable, which replace those that are chosen here. A `Lossy` may be their `compression`.
    chunks, chunk_bytes, unlimited_dims
        As for the function `encoding`.
    **more
        Other parameters of `ds.to_netcdf`: mode, format, group, compute …

    Returns
    -------
    None or dask.delayed.Delayed
        As `ds.to_netcdf`.

    Raises
    ------
    ValueError, TypeError
        As `encoding`, `h5z_gpu.netcdf.def_filter` and `ds.to_netcdf` do. ValueError for another engine.
    OSError
        The file cannot be written; nothing is left of the new one.
    """
    if engine is None:
        engine = "h5netcdf" if importlib.util.find_spec("h5netcdf") else "netcdf4"
    if engine not in ("h5netcdf", "netcdf4"):
        raise ValueError(f"h5z-gpu: engine {engine!r}; give 'h5netcdf' or 'netcdf4', which write HDF5")
    plan = _plan(ds, how, chunks, chunk_bytes, unlimited_dims)
    plan.update({name: dict(entry) for name, entry in (encoding or {}).items()})
    for name in plan:
        limits = unpacked_limits(ds.variables[name], plan[name])
        if limits:
            ds = ds.copy(deep=False)
            ds[name].attrs.update(limits)
    write: Any = ds.to_netcdf  # its annotations know three engines
    keywords = {"engine": _engine() if engine == "netcdf4" else engine, "encoding": plan,
                "unlimited_dims": unlimited_dims, **more}
    if not isinstance(path, (str, os.PathLike)) or more.get("compute") is False:
        return write(path, **keywords)
    mode = more.get("mode", "w")
    with whole(os.path.expanduser(path), mode) as part:
        new = not os.path.getsize(part)
        write(part, **keywords | {"mode": "w" if new else mode})


def filters_of(ds: xr.Dataset, *, leave: Iterable[Hashable] = ()) -> dict[Hashable, How]:
    """What variables are compressed with in the files that they were opened from, as far as it is this filter.

    xarray does not know it, so the file named in `encoding["source"]` is asked: for the variable of the same name and
    shape or, when it has been renamed, for those of its shape and chunks.

    Parameters
    ----------
    ds : xarray.Dataset
        Variables without a source, such as the results of a calculation, are left out, as are those with another filter
        or none.
    leave : iterable of names, optional
        Variables not to ask for.

    Returns
    -------
    dict
        Lossy or Lossless by name. Fill values are not in it: xarray keeps them itself.

    Raises
    ------
    ValueError
        Where several variables may be meant and have different filters, or a file cannot be asked of which xarray knows
        that it has a filter.

    Warns
    -----
    UserWarning
        Where a file that may have had the filter cannot be asked.
    """
    files: dict[str, list[_Stored] | None] = {}
    # Names that are still in use do not stand for a variable that has been renamed.
    named = {name: variable.encoding.get("original_shape") for name, variable in ds.variables.items()}
    found: dict[Hashable, How] = {}
    leave = set(leave)
    for name, variable in ds.variables.items():
        own, source, chunks = (variable.encoding.get(key) for key in ("compression", "source", "chunksizes"))
        how: How | None = None
        if name in leave:
            continue
        if isinstance(own, (Lossy, Lossless)):
            how = _without_fill(own)
        elif own == FILTER_ID:
            how = _without_fill(Lossy.from_filter_options(variable.encoding.get("compression_opts") or ()))
        elif source and chunks and own in (None, "unknown") and not variable.encoding.get("zlib"):
            if source not in files:
                files[source] = _read_filters(source)
            how = _of_source(name, variable, files[source], named)
        if how is not None:
            found[name] = how
    return found


# --- who gets what ---------------------------------------------------------------------------------------------------


def _plan(
    ds: xr.Dataset,
    how: Hows,
    chunks: Mapping[Any, int] | None,
    chunk_bytes: int,
    unlimited_dims: str | Iterable[Hashable] | None,
) -> dict[Hashable, dict[str, Any]]:
    """See `encoding`."""
    if not isinstance(ds, xr.Dataset):
        raise TypeError(
            f"h5z-gpu: {type(ds).__name__} is no xarray.Dataset; of a DataArray, give da.to_dataset(name=...)"
        )
    asked = _asked(ds, how)
    had = filters_of(ds, leave=asked)
    unlimited = ds.encoding.get("unlimited_dims") if unlimited_dims is None else unlimited_dims
    unlimited = {unlimited} if isinstance(unlimited, str) else set(unlimited or ())
    plan = {}
    for name, variable in ds.variables.items():
        if name not in asked and name not in had:
            continue
        new = asked.get(name, had.get(name))
        if isinstance(new, Lossy) and (name in ds.coords or not _holds_floats(variable)):
            new = Lossless()
        if isinstance(new, Lossy) and new.of == "dataset":
            new = new.for_range(_range(variable, new))
        entry = _values_encoding(variable, new)
        if new is not None and variable.ndim and all(n or d in unlimited for d, n in variable.sizes.items()):
            entry["compression"] = _without_fill(new)
            kept = _SUITABLE if name in asked else range(1 << 62)
            item = np.dtype(entry.get("dtype", variable.dtype)).itemsize
            entry["chunksizes"] = _chunks(variable, item, kept, chunks or {}, chunk_bytes, unlimited)
        plan[name] = entry
    return plan


def _asked(ds: xr.Dataset, how: Hows) -> dict[Hashable, How | None]:
    """What `how` means for each variable that it is about."""
    asked: dict[Hashable, How | None] = {}
    if how is None:
        return asked
    if isinstance(how, (Lossy, Lossless)):
        exact, flags = _named_by(ds, NAMING), _named_by(ds, (ANCILLARY,))
        for name, variable in ds.data_vars.items():
            v = variable.variable
            if name in exact or not v.ndim or not v.size:
                continue
            if _holds_floats(v) and name not in flags and not any(a in v.attrs for a in FLAGS):
                asked[name] = how
            elif v.dtype.kind in "fiubmM":
                asked[name] = Lossless() if isinstance(how, Lossy) else how
        return asked
    if not isinstance(how, Mapping):
        raise TypeError(
            f"h5z-gpu: how = {how!r}; give h5z_gpu.Lossy(absolute=1e-3), or a dict of such by name of variable"
        )
    for name, one in how.items():
        if name not in ds.variables:
            raise ValueError(f"h5z-gpu: no variable {name!r}; there are {', '.join(map(repr, ds.data_vars))}")
        if not isinstance(one, (Lossy, Lossless, type(None))):
            raise TypeError(
                f"h5z-gpu: how[{name!r}] = {one!r}; give h5z_gpu.Lossy(absolute=1e-3), h5z_gpu.Lossless() or None"
            )
        if one is not None and ds[name].dtype.kind not in "fiubmMc":
            raise ValueError(f"h5z-gpu: {name!r} holds strings or objects: leave it out")
        if isinstance(one, Lossy) and name in ds.coords:
            raise ValueError(
                f"h5z-gpu: {name!r} is a coordinate: give it h5z_gpu.Lossless(), or make it data by "
                f"ds.reset_coords({name!r})"
            )
        asked[name] = one
    return asked


def _named_by(ds: xr.Dataset, keys: Iterable[str]) -> set[str]:
    """Variables that such attributes name. xarray keeps some of them in encodings."""
    places = [where for v in ds.variables.values() for where in (v.attrs, v.encoding)] + [ds.attrs, ds.encoding]
    texts = [where.get(key) for where in places for key in keys]
    return {name for text in texts if isinstance(text, str) for name in names_in(text)}


def _holds_floats(v: xr.Variable) -> bool:
    """Whether the file will hold f16, f32 or f64: these values, or what their encoding makes of them. Packing is
    undone."""
    stored = v.encoding.get("dtype", v.dtype)
    kind = v.dtype if is_packed(v) else np.dtype(object) if stored is str else np.dtype(stored)
    return v.dtype.kind == "f" and kind.kind == "f" and kind.itemsize in (2, 4, 8)


def _range(v: xr.Variable, how: Lossy) -> tuple[float, float] | None:
    """Least and largest value, of dask arrays block by block."""
    if not v.chunks:
        return value_range(v.to_numpy(), fill_value=how.fill_value)
    from dask.base import compute
    from dask.delayed import delayed

    one = delayed(value_range)
    blocks = [one(block, fill_value=how.fill_value) for block in v.data.to_delayed().ravel()]
    found = compute(*blocks)  # type: ignore[no-untyped-call]
    some = [pair for pair in found if pair is not None]
    return (min(low for low, _ in some), max(high for _, high in some)) if some else None


def _values_encoding(v: xr.Variable, how: How | None) -> dict[str, Any]:
    """What a variable's encoding says of its values, with the fill value where HDF5 learns it."""
    entry = {key: x for key, x in v.encoding.items() if key in _KEPT}
    if not isinstance(how, Lossy):
        return entry
    if is_packed(v):
        # The old fill value is an integer of the packed range. NaN takes its place, as xarray does for new variables.
        for key in ("dtype", "_FillValue", "missing_value", "_Unsigned", *PACKING):
            entry.pop(key, None)
    if how.fill_value is not None:
        if v.attrs.get("_FillValue", how.fill_value) != how.fill_value:
            raise ValueError(
                f"h5z-gpu: the fill value is {v.attrs['_FillValue']} in the attributes, {how.fill_value} in Lossy: "
                "give one of them"
            )
        if "_FillValue" not in v.attrs:
            entry.pop("missing_value", None)
            entry["_FillValue"] = how.fill_value
    elif "missing_value" in entry and "_FillValue" not in v.attrs:
        entry.setdefault("_FillValue", entry["missing_value"])
    return entry


# --- chunks ----------------------------------------------------------------------------------------------------------


def _chunks(
    v: xr.Variable, item: int, kept: range, given: Mapping[Any, int], size: int, unlimited: set[Hashable]
) -> tuple[int, ...]:
    """Extents of a variable's chunks: those given, those of the source if they have `kept` bytes, or chosen ones."""
    steps = [step_of(c) for c in v.chunks] if v.chunks else [0] * v.ndim
    old = v.encoding.get("chunksizes")
    if old and v.encoding.get("original_shape") == v.shape and math.prod(old) * item in kept:
        fits = all(o <= n or d in unlimited for o, n, d in zip(old, v.shape, v.dims))
        chosen = tuple(old) if fits and all(step % o == 0 for o, step in zip(old, steps)) else None
    else:
        chosen = None
    chosen = chosen or chunk_shape(v.shape, item, size, steps)
    extents = tuple(min(max(1, int(given.get(d, c))), max(1, n)) for d, c, n in zip(v.dims, chosen, v.shape))
    for d, c, step in zip(v.dims, extents, steps):
        if step % c:
            raise ValueError(
                f"h5z-gpu: chunks={{{d!r}: {c}}} do not divide those of dask, {step}: what is cut would be coded twice "
                "and miss the bound. Give a divisor, or rechunk the dataset"
            )
    return extents


# --- what the source had ---------------------------------------------------------------------------------------------


class _Stored(NamedTuple):
    """A variable in a file, with or without the filter."""

    name: str
    shape: tuple[int, ...]
    like: tuple[Any, ...]
    """Its chunks and its type, but for the byte order."""
    how: How | None


def _like(chunks: Iterable[int], dtype: Any) -> tuple[Any, ...]:
    of = np.dtype(object) if dtype is str else np.dtype(dtype)
    return (*chunks, of.kind, of.itemsize)


def _without_fill(how: How | None) -> How | None:
    return how._with(fill_value=None) if isinstance(how, Lossy) else how


def _read_filters(path: str) -> list[_Stored] | None:
    """The variables in chunks of a file, in all its groups. None where it cannot be read."""
    for read in (_by_h5py, _by_netcdf4):
        try:
            return list(read(path))
        except (ImportError, OSError, RuntimeError):
            pass
    return None


def _by_h5py(path: str) -> Iterator[_Stored]:
    import h5py

    found: list[h5py.Dataset] = []
    with h5py.File(path, "r") as f:
        f.visititems(lambda _, x: found.append(x) if isinstance(x, h5py.Dataset) and x.chunks else None)
        for d in found:
            plan = d.id.get_create_plist()
            words = [w for i, _, w, _ in map(plan.get_filter, range(plan.get_nfilters())) if i == FILTER_ID]
            name = d.name.rsplit("/", 1)[1].removeprefix("_nc4_non_coord_")
            how = Lossy.from_filter_options(words[0]) if words else None
            yield _Stored(name, d.shape, _like(d.chunks, d.dtype), _without_fill(how))


def _by_netcdf4(path: str) -> Iterator[_Stored]:
    import netCDF4

    with netCDF4.Dataset(path) as f:
        groups = [f]
        for g in groups:
            groups += g.groups.values()
            for v in g.variables.values():
                chunks = v.chunking()
                if isinstance(chunks, list):
                    yield _Stored(v.name, v.shape, _like(chunks, v.dtype), _without_fill(filter_of(v)))


def _of_source(
    name: Hashable, v: xr.Variable, stored: list[_Stored] | None, named: Mapping[Hashable, Any]
) -> How | None:
    """What a variable had in its source, which has `stored`; `named`: the dataset's names, and what shapes they had."""
    source, unknown = v.encoding["source"], v.encoding.get("compression") == "unknown"
    tell = f"give it anew: how={{{name!r}: h5z_gpu.Lossy(absolute=...)}}, or None for no compression"
    if stored is None:
        text = f"h5z-gpu: {source!r} cannot be asked what {name!r} was compressed with; {tell}"
        if unknown:
            raise ValueError(text)
        warnings.warn(text, stacklevel=4)
        return None
    shape = v.encoding.get("original_shape")
    like = _like(v.encoding["chunksizes"], v.encoding.get("dtype", v.dtype))
    alike = [s for s in stored if s.name == name and s.shape == shape]
    alike = alike or [s for s in stored if s.name == name and s.like == like]  # somebody has appended
    alike = alike or [s for s in stored if s.shape == shape and s.like == like and named.get(s.name) != shape]
    hows = {s.how for s in alike}
    if len(hows) > 1:
        seen = ", ".join(sorted({f"{s.name!r} with {s.how}" for s in alike}))
        raise ValueError(f"h5z-gpu: {name!r} may have been any of these of {source!r}: {seen}; {tell}")
    return hows.pop() if hows else None


# --- xarray's engine netcdf4 -----------------------------------------------------------------------------------------


class _Store(xr.backends.NetCDF4DataStore):
    """xarray's store for netCDF4-python, in which `compression` may be a Lossy or Lossless."""

    __slots__ = ()

    def prepare_variable(self, name: str, variable: xr.Variable, *rest: Any, **more: Any) -> Any:
        how = variable.encoding.get("compression")
        if not isinstance(how, (Lossy, Lossless)):
            return super().prepare_variable(name, variable, *rest, **more)
        variable = variable.copy(deep=False)
        variable.encoding = {key: x for key, x in variable.encoding.items() if key != "compression"}
        exists = name in self.ds.variables
        answer = super().prepare_variable(name, variable, *rest, **more)
        if not exists and variable.ndim:
            def_filter(self.ds.variables[name], how)
        return answer


def _engine() -> str:
    """The name under which xarray finds the store. xarray offers no other way to write by a store of one's own."""
    try:
        from xarray.backends import writers as module
    except ImportError:  # before 2025.9
        from xarray.backends import api as module  # type: ignore[no-redef]
    stores: dict[Any, Any] = module.WRITEABLE_STORES
    stores.setdefault("h5z_gpu-netcdf4", _Store.open)
    return "h5z_gpu-netcdf4"
