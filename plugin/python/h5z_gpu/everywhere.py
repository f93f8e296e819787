# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads and writes of this process's h5py, netCDF4 and PyTables work on many chunks at a time.

    import h5z_gpu.everywhere                    # before h5py, netCDF4, PyTables, and what imports them
    python -m h5z_gpu.everywhere script.py ...   # the same for a script that stays as it is; -m MODULE too

It does for one Python process what `h5z-gpu run` does for any program: docs/unchanged.md says which calls gain. The
library that stands before HDF5 is opened for all that is loaded later, so that their calls of H5Dread and H5Dwrite lead
to it.
"""
from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from .elf import Unusable
from .library import PLUGIN_PATH
from .loaded import named

_NAME = "h5zgpu_preload.so"


def _begin() -> None:
    """Puts the library before every HDF5 that is loaded from now on.

    ImportError where an HDF5 is there already, whose calls are bound, or the library is missing.
    """
    if sys.platform != "linux":
        raise Unusable("h5z-gpu: h5z_gpu.everywhere works on Linux alone; here, call h5z_gpu.write and read")
    if named(_NAME):
        return
    there = named("hdf5")
    if there:
        raise Unusable(f"h5z-gpu: {there[0]} is loaded, and its callers are bound to it: import h5z_gpu.everywhere "
                       "before h5py, netCDF4, PyTables and what imports them, or start Python by "
                       "`python -m h5z_gpu.everywhere SCRIPT`")
    path = os.path.realpath(os.path.join(PLUGIN_PATH, "..", "preload", f"lib{_NAME}"))
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Unusable(f"h5z-gpu: {path} cannot be loaded ({error}); install the package's wheel again, "
                       "or in the sources: make") from error


def _main() -> None:
    """Runs a script or a module as Python would."""
    import runpy

    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit("usage: python -m h5z_gpu.everywhere SCRIPT [ARGUMENTS], or -m MODULE [ARGUMENTS]")
    if arguments[0] == "-m" and arguments[1:]:
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


_begin()

if __name__ == "__main__":
    _main()
