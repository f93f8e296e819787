#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu repack` beside h5repack: 500 MB in 50 variables, and 10,000 small datasets in 100 groups.

    copies.py [--mb 500] [--count 10000] [--rounds 3] [--dir /dev/shm] [--beside PYTHONPATH]

The large file is as netCDF-4 writes it: dimension scales, attributes of texts of fixed length, fill values. The small
datasets have 8 kB and five attributes each. "as it is" names one dataset and leaves all else as it was; h5repack copies
without a filter too. Rounds alternate; seconds are those of processors (user and system, all threads) and of the
clock, the fewest of the rounds.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

UNITS = {"time": "days since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}
SHAPE = 16, 400, 400  # of a variable: 10.24 MB of float32


def large(path, mb, rng):
    """Variables as climate models write them."""
    with h5py.File(path, "w") as f:
        for name, n in zip(("time", "lat", "lon"), SHAPE):
            scale = f.create_dataset(name, data=np.linspace(0, 90, n))
            scale.make_scale(name)
            scale.attrs["units"] = np.bytes_(UNITS[name])
        slow = np.add.outer(np.sin(np.linspace(0, 6, SHAPE[1])), np.cos(np.linspace(0, 9, SHAPE[2])))
        for k in range(round(mb * 1e6 / (4 * np.prod(SHAPE)))):
            values = (280 + 20 * slow + rng.standard_normal(SHAPE) * 0.1).astype("f4")
            v = f.create_dataset(f"v{k:02}", data=values, chunks=(1, *SHAPE[1:]), fillvalue=np.float32(1e20))
            for axis, name in enumerate(("time", "lat", "lon")):
                v.dims[axis].attach_scale(f[name])
            v.attrs["_FillValue"] = np.array([1e20], "f4")
            for name, text in (("units", "K"), ("long_name", f"variable {k}"), ("cell_methods", "time: mean")):
                v.attrs[name] = np.bytes_(text)
    return ["--absolute", "1e-2"], ["v00=lossless"]


def small(path, count, rng):
    """Many datasets, each of 8 kB."""
    with h5py.File(path, "w") as f:
        for k in range(count):
            values = (np.sin(np.linspace(k, k + 9, 2048)) + rng.standard_normal(2048) * 0.01).astype("f4")
            d = f.create_dataset(f"g{k * 100 // count:02}/d{k:05}", data=values.reshape(32, 64))
            d.attrs["units"], d.attrs["long_name"], d.attrs["level"] = "m s-1", f"speed number {k}", np.int32(k)
            d.attrs["scale"], d.attrs["position"] = 0.5, rng.random(3)
    return ["--absolute", "1e-3"], ["g00/d00000=lossless"]


def seconds(command, environment, made):
    """Seconds of processors and of the clock that a command takes, which makes a file that is removed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    made.unlink()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--mb", type=float, default=500)
    a.add_argument("--count", type=int, default=10_000)
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--dir", default="/dev/shm")
    a.add_argument("--beside", metavar="PYTHONPATH", help="another state of the package, measured in the same rounds")
    a = a.parse_args()
    before = [{}] + [{"PYTHONPATH": a.beside}] * bool(a.beside)
    ours = [sys.executable, "-m", "h5z_gpu", "repack"]
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        old, new = Path(folder) / "in.h5", Path(folder) / "out.h5"
        for title, make, size in ((f"{a.mb:g} MB", large, a.mb), (f"{a.count} small", small, a.count)):
            asked, as_it_is = make(old, size, np.random.default_rng(0))
            rows = {(name, "beside " * bool(more)): ([*ours, old, new, *bounds], os.environ | more)
                    for name, bounds in (("our filter", asked), ("as it is", as_it_is)) for more in before}
            if shutil.which("h5repack"):
                rows["h5repack", ""] = ["h5repack", old, new], os.environ
            found = [[seconds(*row, new) for row in rows.values()] for _ in range(a.rounds)]
            for (name, state), times in zip(rows, zip(*found)):
                processors, clock = map(min, zip(*times))
                print(f"{title:12} {state + name:18} {processors:7.2f} s of processors, {clock:7.2f} s", flush=True)
            old.unlink()


if __name__ == "__main__":
    main()
