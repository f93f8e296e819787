# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the plugin known to the HDF5 libraries of this process, now and later.

A process may hold several HDF5 libraries (h5py, netCDF4 and PyTables bring one each). Those that are loaded are told
directly; those to come read HDF5_PLUGIN_PATH. netCDF4 sets that variable to its own folder only where it is unset, so that
folder is added when we set it first.
"""
import ctypes
import importlib.util
import os
from pathlib import Path

from .library import PLUGIN_PATH

_RTLD_NOLOAD = 4
_told = set()


def _loaded():
    """Paths of the HDF5 libraries that this process has mapped."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count(" ") >= 5 and "libhdf5" in line}
    return [p for p in paths if ".so" in p and "_hl" not in os.path.basename(p)]


def register():
    """Tells every loaded HDF5 library, and the environment, where the plugin is. Harmless when repeated."""
    for path in _loaded():
        if path in _told:
            continue
        try:
            prepend = ctypes.CDLL(path, mode=_RTLD_NOLOAD).H5PLprepend
        except (OSError, AttributeError):
            continue
        if prepend(PLUGIN_PATH.encode()) >= 0:
            _told.add(path)
    found = os.environ.get("HDF5_PLUGIN_PATH")
    folders = found.split(os.pathsep) if found else ["/usr/local/hdf5/lib/plugin", *_netcdf4()]
    if PLUGIN_PATH not in folders:
        os.environ["HDF5_PLUGIN_PATH"] = os.pathsep.join([PLUGIN_PATH, *folders])


def _netcdf4():
    """netCDF4's folder of plugins, without importing it."""
    spec = importlib.util.find_spec("netCDF4")
    folder = Path(spec.origin).with_name("plugins") if spec and spec.origin else None
    return [str(folder)] if folder and folder.is_dir() else []
