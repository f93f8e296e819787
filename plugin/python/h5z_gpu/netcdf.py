# SPDX-License-Identifier: MIT OR Apache-2.0
"""The filter for netCDF4-python, which has no call for filters that it does not know.

`def_filter` calls netCDF-C's own `nc_def_var_filter`, in the library that the netCDF4 package has loaded. Nothing of
netCDF4 is imported or changed here.
"""
from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import capi
from .bounds_file import Bounds
from .conventions import is_coordinate, is_flag
from .filters import FILTER_ID, How, Lossless, Lossy
from .loaded import opened, serving
from .provenance import on_variable, wanted
from .register import register

if TYPE_CHECKING:
    import netCDF4

# netcdf.h's answers.
_READ_ONLY, _NOT_IN_DEFINE_MODE, _NOT_NETCDF4, _LATE, _NO_FILTER = -37, -39, -111, -123, -136


def def_filter(variable: netCDF4.Variable[Any], how: How | Bounds, *, provenance: bool | None = None) -> None:
    """Gives a variable the filter. Call it right after `createVariable`, before data is written or the file is synced.

    A variable without chunks gets chunks of netCDF's choice: give `chunksizes` to `createVariable` for others. Numbers
    other than f16, f32 and f64, characters, compounds and enumerations are kept exactly, whatever `how` is.

    Parameters
    ----------
    variable : netCDF4.Variable
        With one axis or more, of a file that was opened for writing with format "NETCDF4"; in any group, of any byte
        order.
    how : Lossy, Lossless or Bounds
        A `fill_value` becomes the variable's `_FillValue`. One that `createVariable` was given counts as well: nothing
        is to be repeated here. `Bounds` gives what its table has for the variable, and no filter where it has nothing;
        coordinates and flags keep every bit. Set `standard_name` and `units` before.
    provenance : bool, optional
        Whether attributes say what is lost: `lossy_compression`, `lossy_compression_bound` and the like. Default: as
        `h5z_gpu.provenance.enabled`, True.

    Raises
    ------
    ValueError
        Where netCDF cannot do it: data was written already, the file is read-only or of another format, the variable
        has no axis or holds strings or arrays of any length. Where a filter such as zlib or shuffle, which netCDF puts
        first, would keep `Lossy` from seeing numbers. Where `_FillValue` is another already. The text says what to do.
    TypeError
        For what is no netCDF4.Variable, and for a `how` that is neither.
    RuntimeError
        For any other answer of netCDF-C, in its words.

    Examples
    --------
    >>> v = ds.createVariable("v", "f4", ("time", "lat", "lon"), chunksizes=(16, 180, 360), fill_value=-999)
    >>> h5z_gpu.netcdf.def_filter(v, h5z_gpu.Lossy(absolute=1e-3))
    >>> v[:] = a
    """
    if not isinstance(how, (Lossy, Lossless, Bounds)):
        raise TypeError(f"h5z-gpu: how = {how!r}; give h5z_gpu.Lossy(absolute=1e-3) or h5z_gpu.Lossless()")
    lib = _library(variable)
    if isinstance(how, Bounds):
        found = _of_table(how, variable)
        if found is None:
            return
        how = found
    name = f"variable {variable.name!r}"
    if variable._isvlen or variable.dtype is str:
        raise ValueError(f"h5z-gpu: {name} holds strings or arrays of any length, which lie outside of its chunks: "
                         "leave the filter off")
    if not variable.dimensions:
        raise ValueError(f"h5z-gpu: {name} has no dimensions, and so no chunks to compress: leave the filter off")
    lossy = how if isinstance(how, Lossy) and _floats(variable) else None
    others = _others(lib, variable) if lossy else []
    if others:
        raise ValueError(f"h5z-gpu: {name} has {' and '.join(others)}, which netCDF puts first: the filter would see "
                         "bytes and no numbers. Create the variable without")
    fill = _fill(lib, variable, lossy) if lossy else None
    words = (ctypes.c_uint * max(1, len(how.words)))(*how.words)

    def define() -> int:
        answer = lib.nc_def_var_filter(*_ids(variable), FILTER_ID, len(how.words), words)
        return int(answer)

    answer = define()
    if answer == _NO_FILTER:  # C code has loaded this library after the import
        register()
        answer = define()
    if answer == _NOT_IN_DEFINE_MODE:
        answer = lib.nc_redef(variable._grpid) or define()
        if answer and variable.group().data_model == "NETCDF4_CLASSIC":
            lib.nc_enddef(variable._grpid)
    if answer == 0 and fill is not None:
        answer = lib.nc_def_var_fill(*_ids(variable), 0, fill.ctypes.data_as(ctypes.c_void_p))
    if answer:
        raise _refusal(lib, answer, name, variable.group().data_model)
    if wanted(provenance):
        on_variable(variable, lossy or Lossless())


def filter_of(variable: netCDF4.Variable[Any]) -> How | None:
    """What a variable is compressed with.

    Parameters
    ----------
    variable : netCDF4.Variable
        Of any file, read or being written.

    Returns
    -------
    Lossy, Lossless or None
        None: without this filter. The `fill_value` of a `Lossy` is the variable's `_FillValue`, None where it has none.

    Raises
    ------
    TypeError
        For what is no netCDF4.Variable.
    ValueError
        For words without a meaning.
    """
    lib = _library(variable)
    count = ctypes.c_size_t()
    if lib.nc_inq_var_filter_info(*_ids(variable), FILTER_ID, ctypes.byref(count), None):
        return None  # no such filter, or a format that knows none
    words = (ctypes.c_uint * max(1, count.value))()
    lib.nc_inq_var_filter_info(*_ids(variable), FILTER_ID, ctypes.byref(count), words)
    how = Lossy.from_filter_options(words[: count.value])
    if not isinstance(how, Lossy):
        return how
    return how._with(fill_value=getattr(variable, "_FillValue", None) if _floats(variable) else None)


def filters_before(variable: netCDF4.Variable[Any]) -> list[str]:
    """Names of a variable's other filters: netCDF puts its own first, where they hide the numbers."""
    return _others(_library(variable), variable)


def _library(variable: Any) -> ctypes.CDLL:
    """netCDF-C, as the netCDF4 package has loaded it: its functions are found through the extension module."""
    module = sys.modules.get("netCDF4._netCDF4")
    if module is None or not isinstance(variable, module.Variable):
        raise TypeError(f"h5z-gpu: {type(variable).__module__}.{type(variable).__name__} is no netCDF4.Variable; give "
                        "what createVariable or Dataset.variables of the netCDF4 package gave")
    path = str(module.__file__)
    lib = opened((serving(path, "netcdf") or [path])[0])
    if "nc_inq_var_filter_ids" in capi.declare(lib, capi.NETCDF):
        raise RuntimeError(
            f"h5z-gpu: netCDF-C {module.__netcdf4libversion__} has no filters of this kind; 4.8 or newer is needed"
        )
    return lib


def _of_table(table: Bounds, variable: Any) -> How | None:
    said = {name: variable.getncattr(name) for name in variable.ncattrs()}
    exact = variable.name in variable.dimensions or is_coordinate(said, variable.name) or is_flag(said)
    return table.how(f"{variable.group().path}/{variable.name}", said, exact=exact or not _floats(variable))


def _ids(variable: Any) -> tuple[int, int]:
    return variable._grpid, variable._varid


def _floats(variable: Any) -> bool:
    return isinstance(variable.dtype, np.dtype) and variable.dtype.kind == "f"


def _others(lib: ctypes.CDLL, variable: Any) -> list[str]:
    """Names of the variable's filters other than this one."""
    names = [name for name, on in (variable.filters() or {}).items() if on and name != "complevel"]
    if names:
        return names
    count = ctypes.c_size_t()
    lib.nc_inq_var_filter_ids(*_ids(variable), ctypes.byref(count), None)
    found = (ctypes.c_uint * max(1, count.value))()
    lib.nc_inq_var_filter_ids(*_ids(variable), ctypes.byref(count), found)
    return [f"filter {i}" for i in found[: count.value] if i != FILTER_ID]


def _fill(lib: ctypes.CDLL, variable: Any, how: Lossy) -> np.ndarray[Any, Any] | None:
    """The fill value that netCDF has still to be told of, so that HDF5, and by it the filter, knows it."""
    declared = getattr(variable, "_FillValue", None)
    asked = declared if how.fill_value is None else how.fill_value
    if asked is None:
        return None
    fill = np.array([asked], variable.dtype.newbyteorder("="))
    if declared is None:
        return fill
    if fill.tobytes() != np.array([declared], fill.dtype).tobytes():
        raise ValueError(f"h5z-gpu: variable {variable.name!r} has the fill value {declared}, Lossy has "
                         f"{how.fill_value}: give one of them")
    # set_fill_off() keeps netCDF from handing on even a fill value that createVariable was given.
    off, ignored = ctypes.c_int(), np.empty_like(fill)
    lib.nc_inq_var_fill(*_ids(variable), ctypes.byref(off), ignored.ctypes.data_as(ctypes.c_void_p))
    return fill if off.value else None


def _refusal(lib: ctypes.CDLL, answer: int, name: str, model: str) -> Exception:
    if answer == _READ_ONLY:
        return ValueError(
            f"h5z-gpu: the file of {name} was opened for reading: a filter is given when a variable is created"
        )
    if answer == _NOT_NETCDF4:
        return ValueError(f"h5z-gpu: {name} lies in a file of format {model}, which has no filters: create the file "
                          "with format='NETCDF4'")
    if answer in (_LATE, _NOT_IN_DEFINE_MODE) and model == "NETCDF4_CLASSIC":
        return ValueError(f"h5z-gpu: {name} lies in a file of format {model}, in which the netCDF4 package lays "
                          "variables out at once: create the file with format='NETCDF4'")
    if answer in (_LATE, _NOT_IN_DEFINE_MODE):
        return ValueError(f"h5z-gpu: {name} has been laid out in the file already, by data or a sync: give it the "
                          "filter right behind createVariable")
    return RuntimeError(f"h5z-gpu: {name}: netCDF-C answers {answer}, {lib.nc_strerror(answer).decode()}")
