# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes and reads with one of the Python wheels, each of which carries an HDF5 library of its own.

    wheel.py LIBRARY write DATA.npz OUT.h5 JOB     JOB: {"chunk": {name: [..]}, "words": [..], "fill": {name: x}}
    wheel.py LIBRARY read IN.h5 OUT.npz NAME...

Runs as a process of its own, with HDF5_PLUGIN_PATH set and nothing else done about the filter. Also imported by
tests that use several libraries in one process.
"""
import ctypes
import json
import sys

import numpy as np

FILTER = 443
OPTIONAL = 1


def loaded(part):
    """The shared object of this process whose file name contains `part`; nothing is loaded anew."""
    with open("/proc/self/maps") as f:
        paths = {line.split(maxsplit=5)[5].strip() for line in f if line.count("/") and part in line}
    (path,) = sorted(p for p in paths if "_hl" not in p.rsplit("/", 1)[1])
    return ctypes.CDLL(path, mode=4)  # RTLD_NOLOAD


def u32(words):
    return (ctypes.c_uint * max(1, len(words)))(*words)


class H5py:
    @staticmethod
    def write(data, path, chunk, words, fill={}):
        import h5py

        with h5py.File(path, "w") as f:
            for name, a in data.items():
                f.create_dataset(name, data=a, chunks=tuple(chunk[name]), compression=FILTER,
                                 compression_opts=tuple(words) or None, fillvalue=fill.get(name))

    @staticmethod
    def read(path, names):
        import h5py

        with h5py.File(path) as f:
            return {n: f[n][...] for n in names}


class NetCDF4:
    @staticmethod
    def write(data, path, chunk, words, fill={}):
        import netCDF4

        lib = loaded("netcdf4.libs/libnetcdf")
        with netCDF4.Dataset(path, "w") as d:
            for name, a in data.items():
                dims = [d.createDimension(f"{name}_{i}", n).name for i, n in enumerate(a.shape)]
                v = d.createVariable(name, a.dtype, dims, chunksizes=chunk[name], fill_value=fill.get(name))
                status = lib.nc_def_var_filter(d._grpid, v._varid, FILTER, ctypes.c_size_t(len(words)), u32(words))
                assert status == 0, f"nc_def_var_filter: {status}"
                v.set_auto_maskandscale(False)
                v[...] = a

    @staticmethod
    def read(path, names):
        import netCDF4

        with netCDF4.Dataset(path) as d:
            d.set_auto_maskandscale(False)
            return {n: d[n][...] for n in names}


class PyTables:
    @staticmethod
    def write(data, path, chunk, words, fill={}):
        """PyTables has no call for foreign filters: its own HDF5 creates the dataset, PyTables fills it."""
        import tables

        lib = loaded("tables.libs/libhdf5-")
        hid = ctypes.c_int64
        for f in (lib.H5Pcreate, lib.H5Screate_simple, lib.H5Dcreate2):
            f.restype = hid
        glob = lambda name: hid.in_dll(lib, name)
        with tables.open_file(path, "w") as f:
            for name, a in data.items():
                n = a.ndim
                plan = hid(lib.H5Pcreate(glob("H5P_CLS_DATASET_CREATE_ID_g")))
                sizes = ctypes.c_uint64 * n
                assert lib.H5Pset_chunk(plan, n, sizes(*chunk[name])) >= 0
                assert lib.H5Pset_filter(plan, FILTER, OPTIONAL, ctypes.c_size_t(len(words)), u32(words)) >= 0
                kind = glob("H5T_IEEE_F32LE_g" if a.dtype.itemsize == 4 else "H5T_IEEE_F64LE_g")
                if name in fill:
                    assert lib.H5Pset_fill_value(plan, kind, np.array(fill[name], a.dtype).ctypes) >= 0
                space = hid(lib.H5Screate_simple(n, sizes(*a.shape), None))
                made = lib.H5Dcreate2(hid(f.root._v_objectid), name.encode(), kind, space, hid(0), plan, hid(0))
                assert made >= 0, "H5Dcreate2"
                lib.H5Dclose(hid(made))
        with tables.open_file(path, "a") as f:
            for name, a in data.items():
                f.get_node("/" + name)[...] = a

    @staticmethod
    def read(path, names):
        import tables

        with tables.open_file(path) as f:
            return {n: f.get_node("/" + n)[...] for n in names}


class Xarray:
    @staticmethod
    def write(data, path, chunk, words, fill={}):
        import xarray

        d = xarray.Dataset({n: ([f"{n}_{i}" for i in range(a.ndim)], a) for n, a in data.items()})
        how = {n: {"compression": FILTER, "compression_opts": tuple(words) or None, "chunksizes": tuple(chunk[n]),
                   "_FillValue": fill.get(n)} for n in data}
        d.to_netcdf(path, engine="h5netcdf", encoding=how)

    @staticmethod
    def read(path, names):
        import xarray

        with xarray.open_dataset(path, engine="h5netcdf", mask_and_scale=False, phony_dims="access") as d:
            return {n: d[n].values for n in names}


LIBRARIES = {"h5py": H5py, "netCDF4": NetCDF4, "PyTables": PyTables, "xarray": Xarray}


def main(library, what, *rest):
    lib = LIBRARIES[library]
    if what == "write":
        data, path, job = rest
        lib.write(dict(np.load(data)), path, **json.loads(job))
    else:
        path, out, *names = rest
        np.savez(out, **lib.read(path, names))


if __name__ == "__main__":
    main(*sys.argv[1:])
