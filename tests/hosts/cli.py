# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the command line of the Python package, and makes the files that its tests look at.

`cli` and `many` give what a command answers, `h5z_gpu` and `refused` say how it must end.
"""
import json
import sys

import h5py
import numpy as np
import starts
from conftest import PLUGIN, ROOT, clean, sample, use

PYTHONS = {"wheels": sys.executable, "Debian": "/usr/bin/python3"}
CHUNK = (8, 16, 32)
BAD = [(8, 0, 32), (16, 16, 0)]  # chunks of /v that `damaged` changes


def environment(**more):
    """Where the package and the plugin are found, and nothing else of ours."""
    return clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)) | more


def h5z_gpu(*args, status=0, cwd=None, **more):
    """Runs a command; gives stdout and stderr. Its exit status must be `status`, and no traceback may be seen."""
    r = starts.run([sys.executable, "-m", "h5z_gpu", *args], environment(**more), cwd, timeout=300)
    assert r.returncode == status and "Traceback" not in r.stderr and "Warning" not in r.stderr, (
        f"h5z-gpu {' '.join(map(str, args))}: status {r.returncode}, not "
        f"{status}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}")
    return r.stdout, r.stderr


def cli(*arguments, python=sys.executable, **variables):
    """Exit status, standard output and error. Only the package leads to the plugin."""
    env = environment(**variables)
    del env["HDF5_PLUGIN_PATH"]
    r = starts.run([python, "-m", "h5z_gpu", *arguments], env, timeout=120)
    assert "Traceback" not in r.stderr, r.stderr
    return r.returncode, r.stdout, r.stderr


MANY = """
import contextlib, io, json, sys
from h5z_gpu.cli import main

answers = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as end:  # of argparse
            status = end.code
    answers.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


def many(*calls):
    """As `cli`, for many calls in one process."""
    return json.loads(use(MANY, json.dumps([list(map(str, c)) for c in calls])))


def refused(*commands):
    """Runs commands that must refuse with status 2; gives the one sentence of each."""
    answers = many(*commands)
    for command, (status, out, err) in zip(commands, answers):
        assert status == 2 and not out and err.count("\n") == 1 and err.startswith(f"h5z-gpu {command[0]}: "), (
            command,
            status,
            out,
            err,
        )
    return [err for _, _, err in answers]


def values():
    x = sample(shape=(24, 30, 60))
    x[2, 3, :7] = np.nan
    x[20, 20, 20:40] = -999
    return x


def whole(path, **how):
    """A file with all kinds of datasets: bounds of each mode, types, filters before and behind, and objects without the
    filter."""
    x = values()
    with h5py.File(path, "w", **how) as f:
        f.attrs["title"] = "all kinds"
        f.create_dataset("v", data=x, chunks=CHUNK, fillvalue=-999, compression=443, compression_opts=(11003,))
        f["v"].attrs["units"] = "K"
        f.create_dataset("g/rel", data=x[:, :, ::-1], chunks=CHUNK, compression=443, compression_opts=(121004,),
                         fletcher32=True)
        f.create_dataset("g/part", shape=(64, 64), dtype="f8", chunks=(8, 16), compression=443, compression_opts=(31002,
                         ))
        f["g/part"][:16] = np.arange(1, 16 * 64 + 1).reshape(16, 64)
        f.create_dataset("g/whole", data=np.arange(4096).reshape(64, 64), chunks=(32, 32), compression=443,
                         compression_opts=(11003,))
        f.create_dataset("zip", data=x, chunks=CHUNK, compression="gzip")
        f.create_dataset("hidden", data=x, chunks=CHUNK)
        f["time"] = np.arange(24.0)
        f.create_dataset("names", data=["a", "bc"], dtype=h5py.string_dtype())
        f["link"] = h5py.SoftLink("/time")
        f["again"] = f["time"]
    return x


def change(path, name, chunks, where=0.5):
    """Flips a bit in each of these chunks of a dataset."""
    data = bytearray(path.read_bytes())
    with h5py.File(path) as f:
        for origin in chunks:
            info = f[name].id.get_chunk_info_by_coord(origin)
            data[info.byte_offset + int(info.size * where)] ^= 1
    path.write_bytes(data)


def damaged(path, **how):
    x = whole(path, **how)
    change(path, "v", BAD)
    return x


def other_files(tmp):
    """Files that are not for these commands, by what is said of each."""
    np.save(tmp / "a.npy", np.zeros(9))
    (tmp / "b.nc").write_bytes(b"CDF\x01" + bytes(60))
    (tmp / "c.h5").write_bytes(b"not what its name says")
    (tmp / "d.h5").write_bytes(b"")
    (tmp / "e.zarr").mkdir()
    (tmp / "e.zarr/zarr.json").write_text("{}")
    (tmp / "g.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(8))
    return {"a.npy": "is a .npy file", "b.nc": "is a netCDF-3 file", "c.h5": "is no HDF5 or netCDF-4 file",
            "d.h5": "is empty",
            "e.zarr": "is a Zarr store", "missing.h5": "No such file", "g.h5": "damaged or cut short"}
