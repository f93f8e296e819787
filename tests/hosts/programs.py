# SPDX-License-Identifier: MIT OR Apache-2.0
"""The programs that write or read through the filter, all called in the same way.

A writer is a function (data, path, words, chunk, tmp): data name → array, chunk name → extents. A reader is a function
(path, names, like, tmp) → name → array, where `like` says type and shape to those that give out bare bytes.
"""
import json
import os
import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
from conftest import HERE, app, run


# --- Python wheels -------------------------------------------------------------------------------------------------
def wheel_write(library):
    def write(data, path, words, chunk, tmp, fill={}):
        np.savez(tmp / "data.npz", **data)
        job = {"chunk": chunk, "words": words, "fill": {k: float(v) for k, v in fill.items()}}
        run(sys.executable, HERE / "wheel.py", library, "write", tmp / "data.npz", path, json.dumps(job))

    return write


def wheel_read(library):
    def read(path, names, like, tmp):
        run(sys.executable, HERE / "wheel.py", library, "read", path, tmp / "out.npz", *names)
        return dict(np.load(tmp / "out.npz"))

    return read


# --- files without a filter, for the programs that copy ---------------------------------------------------------------
def plain_hdf5(data, path, chunk={}, fill={}):
    with h5py.File(path, "w") as f:
        for n, a in data.items():
            f.create_dataset(n, data=a, chunks=tuple(chunk[n]) if n in chunk else None, fillvalue=fill.get(n))
    return path


def plain_netcdf(data, path, fill={}):
    with netCDF4.Dataset(path, "w") as d:
        for name, a in data.items():
            dims = [d.createDimension(f"{name}_{i}", n).name for i, n in enumerate(a.shape)]
            v = d.createVariable(name, a.dtype, dims, fill_value=fill.get(name))
            v.set_auto_maskandscale(False)
            v[...] = a
    return path


def times(extents):
    return "x".join(map(str, extents))


# --- command-line programs
# ---------------------------------------------------------------------------------------------
def h5repack_write(data, path, words, chunk, tmp):
    plain = plain_hdf5(data, tmp / "plain.h5")
    plan = []
    for n in data:
        plan += ["-l", f"{n}:CHUNK={times(chunk[n])}"]
        plan += ["-f", f"{n}:UD=443,1,{len(words)}" + "".join(f",{w}" for w in words or [0])]
    run("h5repack", *plan, plain, path)


def nccopy_write(data, path, words, chunk, tmp):
    plain = plain_netcdf(data, tmp / "plain.nc")
    plan = []
    for n in data:
        plan += ["-c", f"{n}:" + ",".join(map(str, chunk[n]))]
        plan += ["-F", f"{n},443" + "".join(f",{w}" for w in words)]
    run("nccopy", "-4", *plan, plain, path)


def ncks_write(data, path, words, chunk, tmp):
    """NCO hands over one number, for all variables."""
    plain = plain_netcdf(data, tmp / "plain.nc")
    plan = []
    for n in data:
        for i, c in enumerate(chunk[n]):
            plan += ["--cnk_dmn", f"{n}_{i},{c}"]
    (word,) = words
    run("ncks", "-4", "-O", *plan, f"--cmp=443,{word}", plain, path)


def c_write(kind, flag="o"):
    def write(data, path, words, chunk, tmp):
        Path(path).unlink(missing_ok=True)
        for n, a in data.items():
            (tmp / "raw").write_bytes(a.tobytes())
            name = {4: "f32", 8: "f64"}[a.dtype.itemsize]
            run(app(kind), "write", path, n, name, times(a.shape), times(chunk[n]), tmp / "raw", flag, *words)

    return write


def c_read(kind):
    def read(path, names, like, tmp):
        out = {}
        for n in names:
            run(app(kind), "read", path, n, tmp / "raw")
            out[n] = np.fromfile(tmp / "raw", like[n].dtype).reshape(like[n].shape)
        return out

    return read


def h5dump_read(path, names, like, tmp):
    out = {}
    for n in names:
        (tmp / "raw").unlink(missing_ok=True)
        run("h5dump", "-d", n, "-b", "LE", "-o", tmp / "raw", path)
        out[n] = np.fromfile(tmp / "raw", like[n].dtype).reshape(like[n].shape)
    return out


def ncdump_read(path, names, like, tmp):
    out = {}
    for n in names:
        text = run("ncdump", "-p", "9,17", "-v", n, path)
        values = text.split("data:", 1)[1].split("=", 1)[1].split(";", 1)[0].split(",")
        with h5py.File(path) as f:  # `_` is the declared fill value, or netCDF's
            declared = f[n].id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
            missing = f[n].fillvalue if declared else netCDF4.default_fillvals["f4" if like[n].dtype.itemsize == 4
                                                                               else "f8"]
        numbers = [missing if v.strip() == "_" else float(v.strip().rstrip("f")) for v in values]
        out[n] = np.array(numbers, like[n].dtype).reshape(like[n].shape)
    return out


def classic(path, names):
    """A netCDF file of the classic format, which knows no filters, read by the test itself."""
    with netCDF4.Dataset(path) as d:
        assert d.data_model.startswith("NETCDF3"), d.data_model
        d.set_auto_maskandscale(False)
        return {n: d[n][...].astype(d[n].dtype.newbyteorder("=")) for n in names}


def ncks_read(path, names, like, tmp):
    run("ncks", "-3", "-O", path, tmp / "classic.nc")
    return classic(tmp / "classic.nc", names)


def cdo_read(path, names, like, tmp):
    # cdo cuts its arguments at blanks, which the folder's name may have.
    run("cdo", "-s", "-O", "-f", "nc", "copy", os.path.relpath(path, tmp), "classic.nc", cwd=tmp)
    got = classic(tmp / "classic.nc", names)
    return {n: got[n].reshape(like[n].shape) for n in names}


WRITERS = {
    "h5repack": h5repack_write,
    "h5py": wheel_write("h5py"),
    "netCDF4": wheel_write("netCDF4"),
    "PyTables": wheel_write("PyTables"),
    "xarray": wheel_write("xarray"),
    "nccopy": nccopy_write,
    "ncks": ncks_write,
    "app shared": c_write("shared"),
    "app exported": c_write("exported", "m"),
    "app static": c_write("static"),
}

READERS = {
    "h5dump": h5dump_read,
    "h5py": wheel_read("h5py"),
    "netCDF4": wheel_read("netCDF4"),
    "PyTables": wheel_read("PyTables"),
    "xarray": wheel_read("xarray"),
    "ncdump": ncdump_read,
    "ncks": ncks_read,
    "cdo": cdo_read,
    "app shared": c_read("shared"),
    "app exported": c_read("exported"),
    "app static": c_read("static"),
    "app stripped": c_read("stripped"),
}


def filters(path, name):
    """(id, flag, words, filter name) of every filter of a dataset, without reading it."""
    with h5py.File(path) as f:
        plan = f[name].id.get_create_plist()
        return [plan.get_filter(i) for i in range(plan.get_nfilters())]


def listed(words):
    """The fields of a stored list (codecs/src/words.rs) that tests look at: words typed, HDF5's rank, extents."""
    assert words[0] == 0xF1C0DE03 and words[1] & 0xFF == len(words) and words[-1] == 90000, words
    return words[9], words[3] >> 16 & 0xFF, list(words[11:-1])


def stored_bytes(path, name):
    with h5py.File(path) as f:
        return f[name].id.get_storage_size()
