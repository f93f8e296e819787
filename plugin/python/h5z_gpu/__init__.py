# SPDX-License-Identifier: MIT OR Apache-2.0
"""The HDF5 filter h5z-gpu for Python: importing this module makes it known to every HDF5 in the process.

Lossy, Lossless   what to give to h5py's and xarray's `compression`
write, read   whole arrays into h5py datasets and out of them, faster than through HDF5's pipeline
save, load   the same for files: save("out.h5", {"v": array}, Lossy(1e-3))
netcdf.def_filter   the same for a variable of netCDF4-python; netcdf.filter_of says what one has
xarray   after `import h5z_gpu.xarray`: encodings of whole datasets, and saving what was opened
compress, decompress   the codecs on NumPy arrays, without HDF5
release_memory   gives back what is kept of a GPU's memory for the next work
register   called on import; call it again where C code has opened another HDF5 library since
dask.Plugin   brings the filter to the workers of dask.distributed
dask.write, parallel.join   one dataset of files that several processes write
zarr.Serializer, zarr.Compressor, zarr.references   the same frames in Zarr 3 and 2, and for kerchunk
"""
import os as _os
import sys as _sys

__version__ = "0.1.0"
__all__ = ["FILTER_ID", "Lossless", "Lossy", "PLUGIN_PATH", "compress", "decompress", "load", "netcdf", "read",
           "register", "release_memory", "save", "write"]  # fmt: skip

try:
    # First: where the plugin cannot be loaded, its sentence is the one to see.
    from . import library as _library  # noqa: F401
    from . import netcdf
    from .arrays import compress, decompress
    from .datasets import read, write
    from .files import load, save
    from .filters import FILTER_ID, Lossless, Lossy
    from .library import PLUGIN_PATH, release_memory
    from .register import _watch, register

    _watch()
    register()
except ImportError:
    # `h5z-gpu doctor` and `python -m h5z_gpu doctor` say what is wrong with the plugin, and work without NumPy.
    if _os.path.basename(_sys.argv[0] if _sys.argv else "") not in ("h5z-gpu", "-m"):
        raise
