# SPDX-License-Identifier: MIT OR Apache-2.0
"""xarray's engine "h5z_gpu", and stores that write what a variable was compressed with.

Reading. `Engine` opens files as xarray's engine h5netcdf does, by a store derived from its own. A variable's encoding
has the filter as its `compression`, where xarray has "unknown", and boxes of it are read by `h5z_gpu.read`.

Writing. xarray finds the store of an engine in a table. `install` enters stores there that are derived from its own,
for netcdf4 and h5netcdf; nothing else of xarray is changed. Before variables are created they give each its filter:

    1. `compression` in the encoding of the variable or of the call, a `Lossy`, a `Lossless` or 443;
    2. else, where the call has no encoding for it, what it has in the file that it was opened from (`origins`);
    3. where the encoding names another compression, or none, nothing.

What is carried over (all but encodings of the call) is fitted to what the variable has become: coordinates and what is
no float any more keep every bit, chunks are those of the source where they still fit, and a variable without values
gets no filter. Such a variable never makes a write fail. What loses bits says so in attributes (`provenance`), which
lie in the encoding while a dataset is open. Texts of attributes are NC_CHAR by either engine, as netCDF-C writes them.
"""
from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Callable

import xarray as xr
from xarray.backends import common, plugins
from xarray.backends.h5netcdf_ import H5NetCDFArrayWrapper, H5netcdfBackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from . import provenance
from .boxed import read_outer, write_box
from .chunks import CHUNK_BYTES, variable_chunks
from .conventions import NAMING, is_coordinate, names_by
from .filters import FILTER_ID, How, Lossless, Lossy
from .netcdf import def_filter, filter_of, filters_before
from .whole import refuse_open
from .origins import (OTHERS, Files, Origins, Unanswered, how_of_dataset, is_hdf5, other_compression, stored_in,
                      takes_bound)

NAME = "h5z_gpu"
_ANY_SIZE = range(1 << 62)
_settled: ContextVar[bool] = ContextVar("h5z_gpu_settled", default=False)


# --- what a variable gets when it is written --------------------------------------------------------------------------


class _Carrying:
    """What both stores do before variables are created."""

    __slots__ = ()

    @classmethod
    def open(cls, filename: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        before = _before(filename, mode)
        store: Any = super().open(filename, mode, *rest, **more)  # type: ignore[misc]
        store._before = before
        return store

    def store(self: Any, variables: Any, attributes: Any, *rest: Any, **more: Any) -> Any:
        places = [where for v in variables.values() for where in (v.attrs, v.encoding)] + [attributes]
        self._exact = names_by(places, NAMING)
        return super().store(variables, attributes, *rest, **more)  # type: ignore[misc]

    def set_variables(self: Any, variables: Any, check_encoding_set: Any, writer: Any,
                      unlimited_dims: Any = None) -> Any:
        unlimited = {unlimited_dims} if isinstance(unlimited_dims, str) else set(unlimited_dims or ())
        hows = self._hows(variables, check_encoding_set)
        carried = hows.keys() - set(check_encoding_set)
        takes = self._takes_filters()
        if carried and not takes and self.format.startswith("NETCDF4"):
            _tell(f"h5z-gpu: the netCDF4 package gives variables of a file of format {self.format} no filter: "
                  f"{', '.join(sorted(map(repr, carried)))} are written without. Format NETCDF4 and engine h5netcdf "
                  "keep it")
        made = {}
        for name, v in variables.items():
            there = name in self.ds.variables
            how = self._there(name) if there else hows.get(name)
            v, given = v.copy(deep=False), name in check_encoding_set
            said = provenance.carried(v.attrs, v.encoding, given=given) or {}
            v.attrs = provenance.without(v.attrs) | said
            v.encoding = {key: x for key, x in v.encoding.items() if key not in provenance.NAMES}
            if not there and not given:
                exact = name in getattr(self, "_exact", ()) or v.dims == (name,) or is_coordinate(v.attrs)
                fitted = _fitted(v, how, exact, unlimited) if takes else None
                v.encoding = _encoded(v, fitted, how is not None, unlimited)
                how = fitted
            seen = takes_bound(v.dtype) and v.ndim and not v.encoding.get("shuffle")
            if isinstance(how, Lossy) and seen and provenance.wanted(None):
                v.attrs = provenance.without(v.attrs) | provenance.attributes(how, v.attrs)
            v.attrs = {key: self._char(key, x) for key, x in v.attrs.items()}
            made[name] = v
        return super().set_variables(made, check_encoding_set, writer, unlimited_dims)  # type: ignore[misc]

    def _hows(self: Any, variables: Mapping[Hashable, xr.Variable], given: Any) -> dict[Hashable, How]:
        """What each variable is to have, as encodings and sources say."""
        origins, found, gone = Origins(variables, getattr(self, "_before", None)), {}, set()
        for name, v in variables.items():
            if name in given and not _named(v):
                continue
            if name not in given and (_settled.get() or _says_otherwise(v.encoding)):
                continue
            try:
                with self.lock:
                    how = v.encoding["compression"] if _is_how(v) else origins.how_of(name, v)
            except Unanswered as why:
                if why.certain:
                    raise
                if not why.gone:
                    _tell(f"{why}. It is written without")
                elif v.dims != (name,) and not _elsewhere(v.encoding["source"]):
                    gone.add(v.encoding["source"])
                continue
            if how is not None:
                found[name] = how
        for source in sorted(gone):
            _tell(f"h5z-gpu: {source!r} cannot be read any more: what its variables were compressed with is not known, "
                  "and they are written without")
        return found

    def set_attribute(self: Any, key: str, value: Any) -> None:
        super().set_attribute(key, self._char(key, value))  # type: ignore[misc]

    def _char(self: Any, key: Any, value: Any) -> Any:
        """A text as the engine writes it as NC_CHAR. In other formats than NETCDF4 it is that in any case, and xarray
        hands on a fill value as it is."""
        return value if self.format != "NETCDF4" or key == "_FillValue" else self._as_char(value)

    def get_child_store(self: Any, group: str) -> Any:
        child = super().get_child_store(group)  # type: ignore[misc]
        child._before = getattr(self, "_before", None)
        return child


def settled(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call in which encodings of the call say all: no source is asked."""
    def inside(*positional: Any, **keywords: Any) -> Any:
        token = _settled.set(True)
        try:
            return call(*positional, **keywords)
        finally:
            _settled.reset(token)

    return inside


def _elsewhere(source: str) -> bool:
    """Whether a source is in the network or in memory."""
    return "://" in source or source.startswith("<")


def _says_otherwise(encoding: Mapping[str, Any]) -> bool:
    """Whether an encoding asks for another compression, or for no chunks.

    Of two compressions it is the one that was named last, whatever the file had before; what is to be compressed cannot
    be in one piece.
    """
    keys = list(encoding)
    if isinstance(encoding.get("compression"), (Lossy, Lossless)) or encoding.get("compression") == FILTER_ID:
        return any(encoding[key] for key in keys[keys.index("compression") :] if key in OTHERS)
    return other_compression(encoding) or bool(encoding.get("contiguous"))


def _is_how(v: xr.Variable) -> bool:
    return isinstance(v.encoding.get("compression"), (Lossy, Lossless))


def _named(v: xr.Variable) -> bool:
    """Whether an encoding asks for this filter."""
    return _is_how(v) or v.encoding.get("compression") == FILTER_ID


def _fitted(v: xr.Variable, how: How | None, exact: bool, unlimited: set[Any]) -> How | None:
    """What is carried over to a variable as it is now."""
    if how is None or not v.ndim or v.dtype.kind not in "fiucSmMb":
        return None
    if any(not n and d not in unlimited for d, n in v.sizes.items()):
        return None
    return Lossless() if isinstance(how, Lossy) and (exact or not takes_bound(v.dtype)) else how


def _encoded(v: xr.Variable, how: How | None, had: bool, unlimited: set[Any]) -> dict[str, Any]:
    """The encoding of a variable with what is carried over; `had`: there was something to carry."""
    entry = dict(v.encoding)
    if how is None:
        if had or _says_otherwise(entry):
            for key in ("compression", "compression_opts"):
                entry.pop(key, None)
        return entry
    chunks = variable_chunks(v, v.dtype.itemsize, _ANY_SIZE, {}, CHUNK_BYTES, unlimited)
    for key in (*OTHERS, "complevel", "compression_opts", "original_shape", "contiguous", "blosc_shuffle"):
        entry.pop(key, None)
    return entry | {"compression": how, "chunksizes": chunks, "shuffle": False, "fletcher32": False}


def _tell(text: str) -> None:
    """A warning at the line of the program that called xarray."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("xarray", "h5z_gpu"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def _before(filename: Any, mode: str) -> Files:
    """What is in a file that is about to be replaced or added to, and cannot be asked any more then.

    OSError where it is open elsewhere and would be replaced. HDF5 refuses that too, but where another HDF5 library of
    the process has it open only when it has cut it to no length.
    """
    if mode == "r" or not isinstance(filename, str) or not is_hdf5(filename):
        return {}
    if mode == "w":
        refuse_open(filename)
    return {filename: stored_in(filename)}


class Netcdf4Store(_Carrying, xr.backends.NetCDF4DataStore):
    """xarray's store for netCDF4-python, in which `compression` may be a Lossy or Lossless."""

    __slots__ = ("_before", "_exact")

    def _takes_filters(self) -> bool:
        return bool(self.format == "NETCDF4")

    def _as_char(self, value: Any) -> Any:
        """netCDF4-python makes NC_STRING of a text that is not ASCII, and NC_CHAR of bytes."""
        return value.encode("utf-8", "surrogateescape") if isinstance(value, str) and not value.isascii() else value

    def _there(self, name: Hashable) -> How | None:
        variable = self.ds.variables[name]
        how = filter_of(variable)
        return Lossless() if isinstance(how, Lossy) and filters_before(variable) else how

    def prepare_variable(self, name: str, variable: xr.Variable, check_encoding: bool = False,
                         unlimited_dims: Any = None) -> Any:
        how = variable.encoding.get("compression")
        if how == FILTER_ID:
            how = Lossy.from_filter_options(variable.encoding.get("compression_opts") or ())
        if not isinstance(how, (Lossy, Lossless)):
            return super().prepare_variable(name, variable, check_encoding, unlimited_dims)
        variable = variable.copy(deep=False)
        variable.encoding = {k: x for k, x in variable.encoding.items() if k not in ("compression", "compression_opts")}
        exists = name in self.ds.variables
        answer = super().prepare_variable(name, variable, check_encoding, unlimited_dims)
        if exists or not variable.ndim:
            return answer
        def_filter(self.ds.variables[name], how, provenance=False)
        return answer


class H5netcdfStore(_Carrying, xr.backends.H5NetCDFStore):
    """xarray's store for h5netcdf, which knows the filter of what it opens, and reads and writes many chunks at a time.
    """

    __slots__ = ("_before", "_exact")

    def _takes_filters(self) -> bool:
        return True

    def _there(self, name: Hashable) -> How | None:
        return how_of_dataset(self.ds.variables[name]._h5ds)

    def _as_char(self, value: Any) -> Any:
        return provenance.as_char(value)

    def prepare_variable(self, *given: Any, **more: Any) -> Any:
        target, data = super().prepare_variable(*given, **more)  # type: ignore[no-untyped-call, unused-ignore]
        array: Any = _Array
        return array(target.variable_name, self), data

    def open_store_variable(self, name: Any, var: Any) -> xr.Variable:
        variable: xr.Variable = super().open_store_variable(name, var)  # type: ignore[no-untyped-call, unused-ignore]
        array: Any = _Array
        data = indexing.LazilyIndexedArray(array(name, self))
        made = xr.Variable(variable.dims, data, variable.attrs, variable.encoding, fastpath=True)
        try:
            how = how_of_dataset(var._h5ds) if var.chunks else None
        except ValueError:  # damaged words
            how = None
        if how is not None:
            for key in ("compression_opts", *(key for key in OTHERS if key in made.encoding)):
                made.encoding.pop(key, None)
            made.encoding |= {"compression": how, "shuffle": False, "fletcher32": False}
        if provenance.is_ours(made.attrs):
            made.encoding |= {key: made.attrs[key] for key in provenance.NAMES if key in made.attrs}
            made.attrs = provenance.without(made.attrs)
        return made


class _Array(H5NetCDFArrayWrapper):
    """A variable that is read when it is asked for, and written, many chunks at a time."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._getitem)

    def _getitem(self, key: tuple[Any, ...]) -> Any:
        with self.datastore.lock:
            variable: Any = self.get_array(needs_lock=False)  # type: ignore[no-untyped-call, unused-ignore]
            return read_outer(variable, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        with self.datastore.lock:
            variable: Any = self.get_array(needs_lock=False)  # type: ignore[no-untyped-call, unused-ignore]
            if not write_box(variable, key, value):
                variable[key] = value
            if self.datastore.autoclose:
                self.datastore.close(needs_lock=False)  # type: ignore[no-untyped-call, unused-ignore]


# --- the engine -------------------------------------------------------------------------------------------------------


class Engine(common.BackendEntrypoint):
    """Opens netCDF-4 and HDF5 files by h5netcdf, with or without this filter.

    What it opens, `to_netcdf` writes with the same filter, by either engine. Arguments are those of xarray's engine
    h5netcdf; `phony_dims` names the dimensions of HDF5 files that have none.
    """

    description = "Open netCDF-4 and HDF5 files with the filter h5z-gpu, many chunks at a time"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return H5netcdfBackendEntrypoint().guess_can_open(filename_or_obj)

    def open_dataset(
        self, filename_or_obj: Any, *, mask_and_scale: Any = True, decode_times: Any = True,
        concat_characters: Any = True, decode_coords: Any = True, drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None, decode_timedelta: Any = None, group: str | None = None, lock: Any = None,
        format: str | None = "NETCDF4", invalid_netcdf: Any = None, phony_dims: str | None = "access",
        decode_vlen_strings: bool = True, driver: Any = None, driver_kwds: Any = None, storage_options: Any = None,
    ) -> xr.Dataset:
        given = dict(locals())
        return _dataset(_open_store(filename_or_obj, group, given), given)

    def open_groups_as_dict(self, filename_or_obj: Any, *, group: str | None = None,
                            **given: Any) -> dict[str, xr.Dataset]:
        store = _open_store(filename_or_obj, None, given)
        top = "/" + (group or "").strip("/")
        found = {}
        with store._manager.acquire_context():
            root = H5netcdfStore(store._manager, group=top, mode="r", lock=store.lock).ds
            for name in _groups(root):
                inner = H5netcdfStore(store._manager, group=top.rstrip("/") + name, mode="r", lock=store.lock)
                found[name] = _dataset(inner, given)
        return found

    def open_datatree(self, filename_or_obj: Any, **more: Any) -> Any:
        found = self.open_groups_as_dict(filename_or_obj, **more)
        try:
            tree = xr.DataTree.from_dict(found)
        except Exception:
            for ds in found.values():
                ds.close()
            raise
        for path, ds in found.items():
            tree[path].set_close(ds._close)
        return tree


def _groups(group: Any, path: str = "/") -> Iterable[str]:
    """Paths of a group of h5netcdf and of those in it, from it on."""
    yield path
    for name, inner in group.groups.items():
        yield from _groups(inner, f"{path.rstrip('/')}/{name}")


# Keywords of `open_dataset` that are the store's, with their defaults, and those that are decoders of xarray's.
_OF_STORE = {"lock": None, "format": "NETCDF4", "invalid_netcdf": None, "phony_dims": "access",
             "decode_vlen_strings": True, "driver": None, "driver_kwds": None, "storage_options": None}
_DECODERS = ("mask_and_scale", "decode_times", "concat_characters", "decode_coords", "drop_variables", "use_cftime",
             "decode_timedelta")


def _open_store(filename: Any, group: str | None, given: Mapping[str, Any]) -> Any:
    install()
    if isinstance(filename, (bytes, memoryview)):
        filename = io.BytesIO(filename)
    else:
        filename = common._normalize_path(filename)
    keywords = {key: given.get(key, default) for key, default in _OF_STORE.items()}
    return H5netcdfStore.open(filename, group=group, **{key: x for key, x in keywords.items() if x is not None})


def _dataset(store: Any, given: Mapping[str, Any]) -> xr.Dataset:
    decoders = {key: given[key] for key in _DECODERS if key in given}
    try:
        with store._manager.acquire_context():
            return StoreBackendEntrypoint().open_dataset(store, **decoders)
    except BaseException:
        store.close()
        raise


def install() -> None:
    """Makes the engine known, and the stores those by which xarray writes. Harmless when repeated.

    A store that another package has entered in xarray's table stays.
    """
    if NAME not in common.BACKEND_ENTRYPOINTS:
        common.BACKEND_ENTRYPOINTS[NAME] = ("h5netcdf", Engine)
        plugins.list_engines.cache_clear()
    try:
        from xarray.backends import writers as module
    except ImportError:  # before 2025.9
        from xarray.backends import api as module  # type: ignore[no-redef]
    stores: dict[Any, Any] = module.WRITEABLE_STORES
    for name, own, ours in (("netcdf4", xr.backends.NetCDF4DataStore, Netcdf4Store),
                            ("h5netcdf", xr.backends.H5NetCDFStore, H5netcdfStore)):
        if stores.get(name) == own.open:
            stores[name] = ours.open
    stores.setdefault(NAME, H5netcdfStore.open)
