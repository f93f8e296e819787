# SPDX-License-Identifier: MIT OR Apache-2.0
"""The filter for whole datasets of xarray: to be imported by itself, `import h5z_gpu.xarray`.

encoding   what to give to `ds.to_netcdf(encoding=)`
to_netcdf   writes with either engine, and keeps what variables had in the file that they come from
filters_of   what they had there
from_packing   bounds for what a file holds as packed integers
Engine   xarray's engine "h5z_gpu", which opens files

xarray hands no filter on that it does not know, and its engine netcdf4 has no way to name one. The import enters stores
in its table that do both (`backend.install`): from then on `ds.to_netcdf` of what was opened keeps its filter too.
"""
from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Union

import numpy as np
import xarray as xr

from . import provenance as attributes
from .backend import Engine, install, settled
from .bounds_file import Bounds
from .chunks import CHUNK_BYTES, SUITABLE, variable_chunks
from .conventions import ANCILLARY, NAMING, is_coordinate, is_flag, limits_in, missing_in, names_by, numbers_in
from .filters import How, Lossless, Lossy
from .origins import Origins, Unanswered, without_fill
from .packing import PACKING, from_packing, is_packed, unpacked_limits
from .ranges import Ranges
from .views import value_range
from .whole import whole

__all__ = ["Engine", "encoding", "filters_of", "from_packing", "to_netcdf"]

install()

Hows = Union[Lossy, Lossless, Bounds, Mapping[Any, "How | None"], None]

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
    how : Lossy, Lossless, Bounds, mapping or None
        For all data variables, or by name for some; None, as a whole or for a name, asks for none. `Bounds` is for the
        data variables that its table has entries for. A `fill_value` becomes `_FillValue`; else that of the source is
        kept. With of="dataset" the range of each variable is found now, and its bound is absolute.
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
        warnings.warn(f"h5z-gpu: valid_range, valid_min or valid_max of {', '.join(map(repr, left))} are in packed "
                      "units, the values will not be: use h5z_gpu.xarray.to_netcdf, which converts them, or remove "
                      "them", stacklevel=2)
    return _with_statements(ds, plan)


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
    provenance: bool | None = None,
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
    how : Lossy, Lossless, Bounds, mapping or None, optional
        As for `encoding`. Default: each variable keeps what it had in the file that it was opened from.
    engine : {"h5netcdf", "netcdf4"}, optional
        Default: netcdf4 where it is installed, as of xarray; h5netcdf for what netCDF-C has no way to write (files in
        memory, 16-bit floats, `invalid_netcdf`, this filter in NETCDF4_CLASSIC, encodings in the words of h5py).
    encoding : mapping, optional
        Encodings by variable, which replace those that are chosen here. A `Lossy` may be their `compression`.
    chunks, chunk_bytes, unlimited_dims
        As for the function `encoding`.
    provenance : bool, optional
        Whether variables that lose bits say so in attributes, `lossy_compression` and the like. Default: as
        `h5z_gpu.provenance.enabled`, True.
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
        engine = _engine(ds, path, encoding or {}, more)
    if engine not in ("h5netcdf", "netcdf4"):
        raise ValueError(f"h5z-gpu: engine {engine!r}; give 'h5netcdf' or 'netcdf4', which write HDF5")
    plan = _plan(ds, how, chunks, chunk_bytes, unlimited_dims)
    plan.update({name: dict(entry) for name, entry in (encoding or {}).items()})
    _with_statements(ds, plan)
    for name in plan:
        limits = unpacked_limits(ds.variables[name], plan[name])
        if limits:
            ds = ds.copy(deep=False)
            ds[name].attrs.update(limits)
    write = attributes.asked(provenance)(settled(ds.to_netcdf))
    keywords = {"engine": engine, "encoding": plan, "unlimited_dims": unlimited_dims, **more}
    if not isinstance(path, (str, os.PathLike)) or more.get("compute") is False:
        return write(path, **keywords)
    mode = more.get("mode", "w")
    with whole(os.path.expanduser(path), mode) as part:
        new = not os.path.getsize(part)
        write(part, **keywords | {"mode": "w" if new else mode})
        _keep_valid(ds, plan, part, more.get("group"))


def filters_of(ds: xr.Dataset, *, leave: Iterable[Hashable] = ()) -> dict[Hashable, How]:
    """What variables are compressed with in the files that they were opened from, as far as it is this filter.

    xarray does not know it, so the file named in `encoding["source"]` is asked: for the variable of the same name and
    shape or, when it has been renamed, for those of its shape and chunks. What the engine "h5z_gpu" has opened needs no
    such question.

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
        Lossy or Lossless by name: Lossless also where a bound was asked for and every bit was kept, as of integers.
        Fill values are not in it: xarray keeps them itself.

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
    origins, found, leave = Origins(ds.variables), {}, set(leave)
    for name, variable in ds.variables.items():
        if name in leave:
            continue
        try:
            how = origins.how_of(name, variable)
        except Unanswered as why:
            if why.certain or not why.gone:
                raise
            warnings.warn(str(why), stacklevel=3)
            continue
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
        raise TypeError(f"h5z-gpu: {type(ds).__name__} is no xarray.Dataset; of a DataArray, give "
                        f"da.to_dataset(name=...); of a DataTree, the dataset of each group to `encoding`")
    unlimited = ds.encoding.get("unlimited_dims") if unlimited_dims is None else unlimited_dims
    unlimited = {unlimited} if isinstance(unlimited, str) else set(unlimited or ())
    asked = _asked(ds, how, unlimited)
    had = filters_of(ds, leave=asked)
    plan = {}
    for name, variable in ds.variables.items():
        if name not in asked and name not in had:
            continue
        stored = variable.ndim and all(n or d in unlimited for d, n in variable.sizes.items())
        new = asked.get(name, had.get(name))
        if isinstance(new, Lossy) and (name in ds.coords or not _holds_floats(variable)):
            new = Lossless()
        if isinstance(new, Lossy) and len(missing := _declared_missing(variable, new)) > 1:
            warnings.warn(f"h5z-gpu: {name!r} has several values for missing data, {', '.join(map(str, missing))}, and "
                          "the filter knows one: every bit is kept", stacklevel=3)
            new = Lossless()
        if isinstance(new, Lossy) and new.of == "dataset":
            if stored and not variable.size:
                warnings.warn(f"h5z-gpu: {name!r} has no values yet, whose range would say its bound: what is appended "
                              "keeps every bit. Give Lossy(absolute=...)", stacklevel=3)
            new = new.for_range(_range(variable, new))
        entry = _values_encoding(variable, new)
        if new is not None and stored:
            entry["compression"] = without_fill(new)
            kept = SUITABLE if name in asked else range(1 << 62)
            item = np.dtype(entry.get("dtype", variable.dtype)).itemsize
            entry["chunksizes"] = variable_chunks(variable, item, kept, chunks or {}, chunk_bytes, unlimited)
        plan[name] = entry
    return plan


def _engine(ds: xr.Dataset, path: Any, given: Mapping[Any, Mapping[str, Any]], more: Mapping[str, Any]) -> str:
    """The engine where none was named."""
    if not importlib.util.find_spec("h5netcdf"):
        return "netcdf4"
    encodings = [{"dtype": v.dtype, **v.encoding, **given.get(name, {})} for name, v in ds.variables.items()]
    halves = any(e["dtype"] is not str and np.dtype(e["dtype"]) == np.dtype("f2") for e in encodings)
    words = any("compression_opts" in e or e.get("compression") in ("gzip", "lzf") for e in given.values())
    others = halves or words or not isinstance(path, (str, os.PathLike)) or "invalid_netcdf" in more
    others = others or more.get("format") == "NETCDF4_CLASSIC"
    return "h5netcdf" if others or not importlib.util.find_spec("netCDF4") else "netcdf4"


def _with_statements(ds: xr.Dataset, plan: dict[Hashable, dict[str, Any]]) -> dict[Hashable, dict[str, Any]]:
    """Adds to encodings what variables have lost before (`provenance.carried`): the variables' own encodings, in which
    it lies, are not asked where a call gives others."""
    for name, entry in plan.items():
        v = ds.variables[name]
        said = attributes.carried(v.attrs, v.encoding)
        entry.update({attributes.TEXT: None} if said is None else said)
    return plan


def _asked(ds: xr.Dataset, how: Hows, unlimited: set[Hashable]) -> dict[Hashable, How | None]:
    """What `how` means for each variable that it is about."""
    asked: dict[Hashable, How | None] = {}
    if how is None:
        return asked
    if isinstance(how, (Lossy, Lossless, Bounds)):
        exact, flags = _named_by(ds, NAMING), _named_by(ds, (ANCILLARY,))
        for name, variable in ds.data_vars.items():
            v, said = variable.variable, {**variable.encoding, **variable.attrs}
            unfilled = not all(n or d in unlimited for d, n in v.sizes.items())
            if name in exact or not v.ndim or unfilled or is_coordinate(said):
                continue
            keeps = not _holds_floats(v) or name in flags or is_flag(v.attrs)
            one = how.how(str(name), said, exact=keeps) if isinstance(how, Bounds) else how
            if one is not None and (not keeps or v.dtype.kind in "fiubmM"):
                asked[name] = Lossless() if keeps and isinstance(one, Lossy) else one
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
            raise ValueError(f"h5z-gpu: {name!r} is a coordinate: give it h5z_gpu.Lossless(), or make it data by "
                             f"ds.reset_coords({name!r})")
        asked[name] = one
    return asked


def _named_by(ds: xr.Dataset, keys: Iterable[str]) -> set[str]:
    """Variables that such attributes name. xarray keeps some of them in encodings."""
    places = [where for v in ds.variables.values() for where in (v.attrs, v.encoding)] + [ds.attrs, ds.encoding]
    return names_by(places, keys)


def _declared_missing(v: xr.Variable, how: Lossy) -> list[Any]:
    """Numbers that stand for missing values in the array itself, which was opened without masking them."""
    if v.dtype.kind != "f":
        return []
    with np.errstate(all="ignore"):
        found = missing_in(v.attrs).astype(v.dtype).tolist()
    fill = [] if how.fill_value is None or "_FillValue" in v.attrs else [v.dtype.type(how.fill_value).item()]
    return list(dict.fromkeys(x for x in found + fill if np.isfinite(x)))


def _keep_valid(ds: xr.Dataset, plan: Mapping[Hashable, Mapping[str, Any]], path: str, group: str | None) -> None:
    """Sees to it that values within `valid_range` and its like were written as such."""
    for name, entry in plan.items():
        v, how = ds.variables[name], entry.get("compression")
        if not isinstance(how, Lossy) or not any(limits_in(v.attrs)):
            continue
        import h5py

        of_values = {key: x for key, x in entry.items() if key in _KEPT}
        stored = xr.conventions.encode_cf_variable(xr.Variable(v.dims, v.data, v.attrs, of_values), name=name)
        with h5py.File(path, "r+") as f:
            dataset = f[group or "/"][name]
            fill = stored.attrs.get("_FillValue")
            ranges = Ranges(dataset.attrs, dataset.dtype, how, fill=None if fill is None else np.asarray(fill))
            row = dataset.chunks[0] * max(1, CHUNK_BYTES // (dataset.chunks[0] * v[:1].nbytes))
            for at in range(0, v.shape[0], row):
                box = (slice(at, min(at + row, v.shape[0])), *(slice(0, n) for n in v.shape[1:]))
                ranges.look(dataset, np.asarray(stored[box].values, dataset.dtype), box)


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
    missing = numbers_in(entry.get("missing_value"))
    if missing.size and not all(x == entry.get("_FillValue", missing[0]) for x in missing):
        # xarray writes one. What was missing is NaN in the array, and becomes the fill value.
        del entry["missing_value"]
        entry.setdefault("_FillValue", missing[0])
    if not isinstance(how, Lossy):
        return entry
    if is_packed(v):
        # The old fill value is an integer of the packed range. NaN takes its place, as xarray does for new variables.
        for key in ("dtype", "_FillValue", "missing_value", "_Unsigned", *PACKING):
            entry.pop(key, None)
    if how.fill_value is not None:
        if v.attrs.get("_FillValue", how.fill_value) != how.fill_value:
            raise ValueError(f"h5z-gpu: the fill value is {v.attrs['_FillValue']} in the attributes, {how.fill_value} "
                             "in Lossy: give one of them")
        if "_FillValue" not in v.attrs:
            entry.pop("missing_value", None)
            entry["_FillValue"] = how.fill_value
    elif "missing_value" in entry and "_FillValue" not in v.attrs:
        entry.setdefault("_FillValue", entry["missing_value"])
    elif "_FillValue" not in {**entry, **v.attrs} and (declared := _declared_missing(v, how)):
        entry["_FillValue"] = declared[0]
    return entry
