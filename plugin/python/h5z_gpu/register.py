# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the filter known to every HDF5 library of this process, now and later.

A process may hold several HDF5 libraries (h5py, netCDF4 and PyTables bring one each). HDF5 itself loads a filter when a
dataset is created or read; in a dataset that is only written to, an optional filter that is not loaded yet is left out
without a word. So each library is handed the filter (H5Zregister) as soon as it is there:

* those that are there when the package is imported, found in the system's list of what the process has loaded;
* later ones when Python has loaded an extension module that calls one: its loader is extended by that question.

A library that C code opens by itself afterwards is found by the next call of `register`. HDF5_PLUGIN_PATH is set too:
for processes started from here, and for netCDF, which looks for the filters of NCZarr without HDF5.
"""
from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

from .library import PLUGIN_PATH, checked, lib
from .loaded import named, opened, serving

# HDF5_PLUGIN_PATH as it was before the import, None where it was not set.
FOUND: str | None = os.environ.get("HDF5_PLUGIN_PATH")

_FILTER = ctypes.c_void_p(lib.H5PLget_plugin_info())
_told: set[int | None] = set()  # addresses of H5Zregister


def register() -> None:
    """Hands the filter to every HDF5 library that is loaded. Harmless when repeated.

    Import the package, or call this, before other threads use netCDF4 or PyTables: their libraries have no lock.
    """
    h5z: Any = sys.modules.get("h5py.h5z")
    if hasattr(h5z, "register_filter"):  # by h5py itself from 3.8 on, which holds its lock meanwhile
        for path in serving(h5z.__file__, "hdf5"):
            _tell(path, lambda _: 0 if h5z.register_filter(_FILTER.value) else -1)
    for path in named("hdf5"):
        _tell(path)
    _environment()
    for path in named("netcdf"):
        _tell_netcdf(path)


def _tell(path: str, by: Callable[[ctypes.c_void_p], int] | None = None) -> None:
    """Hands the filter to the HDF5 library that the object at `path` is or depends on, if any, by its H5Zregister or
    `by`."""
    try:
        hdf5 = opened(path)
        address = ctypes.cast(hdf5.H5Zregister, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return
    if address in _told:
        return
    safe = ctypes.c_uint(0)
    if hdf5.H5is_library_threadsafe(ctypes.byref(safe)) >= 0 and safe.value:
        # It has a lock of its own; whoever holds that may wait for Python's.
        hdf5 = opened(path, ctypes.CDLL)
    if by is None:
        by = hdf5.H5Zregister
    if by(_FILTER) >= 0:
        _told.add(address)


class _Folders(ctypes.Structure):
    """NCPluginList of netcdf_filter.h."""

    _fields_ = [("count", ctypes.c_size_t), ("folders", ctypes.POINTER(ctypes.c_char_p))]


def _tell_netcdf(path: str) -> None:
    """Adds our folder to those in which netCDF 4.10 or newer, which has read the variable by now, looks for the filters
    of NCZarr."""
    try:
        netcdf = opened(path)
        get, put = netcdf.nc_plugin_path_get, netcdf.nc_plugin_path_set
    except (OSError, AttributeError):
        return
    found = _Folders()
    if get(ctypes.byref(found)):
        return
    folders = [found.folders[i] for i in range(found.count)]
    if PLUGIN_PATH.encode() not in folders:
        folders.insert(0, PLUGIN_PATH.encode())
        put(ctypes.byref(_Folders(len(folders), (ctypes.c_char_p * len(folders))(*folders))))
    netcdf.ncaux_plugin_path_clear(ctypes.byref(found))


def _watch() -> None:
    """Asks every extension module that Python loads from now on for its HDF5 library."""
    loader: Any = importlib.machinery.ExtensionFileLoader
    load = loader.exec_module
    if hasattr(load, "h5z_gpu"):
        return

    @functools.wraps(load)
    def exec_module(self: Any, module: ModuleType) -> None:
        load(self, module)
        try:
            for path in [self.path] if os.name == "posix" else named("hdf5"):
                _tell(path)
        except Exception:
            pass  # no import fails because of this

    exec_module.h5z_gpu = True  # type: ignore[attr-defined]
    loader.exec_module = exec_module


def _environment() -> None:
    """HDF5_PLUGIN_PATH, with our folder before those that are set or that would be searched without it."""
    found = os.environ.get("HDF5_PLUGIN_PATH")
    # HDF5 1.10 gives up at a folder that does not exist.
    folders = found.split(os.pathsep) if found else [f for f in (*_defaults(), *_netcdf4()) if os.path.isdir(f)]
    if PLUGIN_PATH not in folders:
        os.environ["HDF5_PLUGIN_PATH"] = os.pathsep.join([PLUGIN_PATH, *folders])


def _defaults() -> list[str]:
    """Where HDF5 looks when HDF5_PLUGIN_PATH is not set."""
    text = ctypes.create_string_buffer(4096)
    checked(lib.h5z_gpu_hdf5_folders(text, len(text)))
    return os.fsdecode(text.value).split(os.pathsep)


def _netcdf4() -> list[str]:
    """netCDF4's folder of plugins, without importing it. It sets the variable to that folder where it is unset."""
    spec = importlib.util.find_spec("netCDF4")
    return [str(Path(spec.origin).with_name("plugins"))] if spec and spec.origin else []
