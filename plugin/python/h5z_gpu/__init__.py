# SPDX-License-Identifier: MIT OR Apache-2.0
"""The HDF5 filter h5z-gpu for Python: importing this module makes it known to every HDF5 in the process.

Lossy, Lossless   what to give to h5py's and xarray's `compression`
Bounds   a table of bounds by variable, from a file, which save, netcdf.def_filter and xarray take in place of one
write, read   whole arrays into h5py datasets and out of them, faster than through HDF5's pipeline
save, load   the same for files: save("out.h5", {"v": array}, Lossy(1e-3))
netcdf.def_filter   the same for a variable of netCDF4-python; netcdf.filter_of says what one has
xarray   after `import h5z_gpu.xarray`: encodings of whole datasets, and saving what was opened
Quantity, loosest   the loosest bounds under which means, gradients and the like stay within limits of their own
compress, decompress   the codecs on NumPy arrays, without HDF5
bfloat16   the type of HDF5 for it, for h5py's create_dataset
provenance   attributes that say what was lost, and `enabled`, which turns them off
release_memory   gives back what is kept of a GPU's memory for the next work
everywhere   imported before h5py and netCDF4: their own reads and writes work on many chunks at a time
register   called on import; call it again where C code has opened another HDF5 library since
dask.Plugin   brings the filter to the workers of dask.distributed
dask.write, parallel.join   one dataset of files that several processes write
zarr.Serializer, zarr.Compressor, zarr.references   the same frames in Zarr 3 and 2, and for kerchunk
training.Samples, training.Order   samples by number for PyTorch's DataLoader, and an order that can be resumed
"""
import importlib as _importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

__version__ = "0.1.0"
__all__ = ["Bounds", "FILTER_ID", "Lossless", "Lossy", "PLUGIN_PATH", "Quantity", "bfloat16", "compress",
           "decompress", "load", "loosest", "netcdf", "provenance", "read", "register", "release_memory", "save",
           "write"]

if _TYPE_CHECKING:
    from . import netcdf, provenance
    from .arrays import compress, decompress
    from .bounds_file import Bounds
    from .datasets import read, write
    from .files import load, save
    from .filters import FILTER_ID, Lossless, Lossy
    from .mltypes import bfloat16
    from .quantity import Quantity
    from .search import loosest

# What is imported when it is first asked for: NumPy and h5py come with it, and `h5z_gpu.everywhere` has to be there
# before h5py.
_LATER = {"Bounds": "bounds_file", "FILTER_ID": "filters", "Lossless": "filters", "Lossy": "filters",
          "Quantity": "quantity", "bfloat16": "mltypes", "compress": "arrays", "decompress": "arrays", "load": "files",
          "loosest": "search", "netcdf": "netcdf", "provenance": "provenance", "read": "datasets", "save": "files",
          "write": "datasets"}

try:
    from .library import PLUGIN_PATH, release_memory
    from .register import _watch, register

    _watch()
    register()
except ImportError:
    # `h5z-gpu doctor` and `python -m h5z_gpu doctor` say what is wrong with the plugin, and work without NumPy.
    if _os.path.basename(_sys.argv[0] if _sys.argv else "") not in ("h5z-gpu", "-m"):
        raise


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _importlib.import_module(f"{__name__}.{_LATER[name]}")
    globals()[name] = module if _LATER[name] == name else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
