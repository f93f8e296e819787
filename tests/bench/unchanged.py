#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that cannot be changed, beside themselves under `h5z-gpu run`: h5py, netCDF4 and h5repack, as far as they
are there, plain and under it, and `h5z_gpu.write` and `read`.

    unchanged.py [--program h5z-gpu] [--mb 268] [--rounds 3] [--dir /dev/shm] [--rows TEXTS] [--json FILE]

One smooth f32 field in slices, within an absolute bound of 0.01 where the codec has one. Each measurement is a process
of its own that creates, writes, closes, opens and reads a file in every round; the fastest round counts, and what was
read is compared with what was written. h5repack is timed as a whole process. Prints GB/s of values, seconds for
h5repack.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

BOUND = 1e-2
MIB = 1 << 20
CODECS = "lorenzo", "planes", "szx", "lossless"
# Bytes of chunks; those of 4 MiB are a slice.
CHUNKS = {"4 MiB": (1, 1024, 1024), "256 KiB": (1, 256, 256)}
ARMS = "plain", "preload", "h5z_gpu"


def field(mb):
    """Waves with a little noise, slices of 4 MiB."""
    import numpy as np
    r = np.random.default_rng(1)
    shape = max(mb * 10**6 // (4 * MIB), 2), 1024, 1024
    t, y, x = (np.linspace(0, 12 + 6 * k, n, dtype="f4") for k, n in enumerate(shape))
    values = np.sin(t)[:, None, None] + 2 * np.sin(y)[:, None] + 3 * np.sin(x)
    values += 0.02 * r.standard_normal(values.shape[1:], dtype="f4")
    return values.astype("f4")


def is_close(a, b, bound):
    import numpy as np
    return all(np.abs(x.astype("f8") - y).max() <= bound for x, y in zip(a, b))


# --- one measurement, in a process of its own ------------------------------------------------------------------------
def best(rounds, write, read):
    """The shortest times of both, in seconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        write()
        middle = time.perf_counter()
        read()
        times.append((middle - begin, time.perf_counter() - middle))
    return [min(some) for some in zip(*times)]


def words(codec):
    """As the filter is given them: no bound for lossless."""
    return {"lorenzo": 211002, "planes": 511002, "szx": 111002, "lossless": 90000}[codec]


def read_whole(a, out):
    import h5py
    with h5py.File(a.file) as f:
        if a.arm == "h5z_gpu":
            import h5z_gpu
            h5z_gpu.read(f["v"], out)
        else:
            f["v"].read_direct(out)


def by_h5py(a, x, codec, chunk):
    import h5py
    import numpy as np
    if a.arm == "h5z_gpu":
        import h5z_gpu
    out = np.zeros_like(x)

    def write():
        with h5py.File(a.file, "w") as f:
            d = f.create_dataset("v", x.shape, "f4", chunks=chunk, compression=443, compression_opts=(words(codec),))
            if a.arm == "h5z_gpu":
                h5z_gpu.write(d, x)
            else:
                d[...] = x

    times = best(a.rounds, write, lambda: read_whole(a, out))
    assert is_close(x, out, BOUND if codec != "lossless" else 0)
    return times


def by_netcdf(a, x, codec, chunk):
    import ctypes
    import netCDF4
    from netCDF4 import _netCDF4
    lib = ctypes.CDLL(_netCDF4.__file__)
    got = {}

    def write():
        with netCDF4.Dataset(a.file, "w") as d:
            for name, n in zip("tyx", x.shape):
                d.createDimension(name, n)
            v = d.createVariable("v", "f4", tuple("tyx"), chunksizes=chunk)
            said = lib.nc_def_var_filter(d._grpid, v._varid, 443, 1, (ctypes.c_uint * 1)(words(codec)))
            assert said == 0, said
            v.set_auto_maskandscale(False)
            v[:] = x

    def read():
        with netCDF4.Dataset(a.file) as d:
            d["v"].set_auto_maskandscale(False)
            got["v"] = d["v"][:]

    times = best(a.rounds, write, read)
    assert is_close(x, got["v"], BOUND if codec != "lossless" else 0)
    return times


def gzip_file(path, x, chunk):
    """Written by all cores beside HDF5, which would take minutes."""
    from concurrent.futures import ThreadPoolExecutor
    import h5py
    with h5py.File(path, "w") as f, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        d = f.create_dataset("v", x.shape, "f4", chunks=chunk, compression="gzip", shuffle=True)
        places = [(t, j, k) for t in range(x.shape[0]) for j in range(0, 1024, chunk[1])
                  for k in range(0, 1024, chunk[2])]

        def stored(at):
            part = x[tuple(slice(o, o + c) for o, c in zip(at, chunk))]
            return zlib.compress(part.reshape(-1, 1).view("u1").T.tobytes(), 4)

        for at, frame in zip(places, pool.map(stored, places)):
            d.id.write_direct_chunk(at, frame)


def of_gzip(a, x, _, chunk):
    """Reading only."""
    import numpy as np
    if not os.path.exists(a.file):
        gzip_file(a.file, x, chunk)
    out = np.zeros_like(x)
    times = best(1 if a.arm == "plain" else a.rounds, lambda: None, lambda: read_whole(a, out))
    assert is_close(x, out, 0)
    return [0, times[1]]


PROGRAMS = {"h5py": by_h5py, "netCDF4": by_netcdf, "gzip": of_gzip}


def one(a):
    """What a process of its own is for: `--one PROGRAM CODEC CHUNK`."""
    import numpy as np
    program, codec, chunk = a.one
    if a.arm == "h5z_gpu":
        import h5z_gpu  # noqa: F401  not in what is timed
    x = np.load(a.field)
    times = PROGRAMS[program](a, x, codec, CHUNKS[chunk])
    print(json.dumps([x.nbytes / 1e9 / t if t else 0 for t in times]))


# --- all of them -----------------------------------------------------------------------------------------------------
def under(a, arm):
    """What stands before a command."""
    return [a.program, "run", "--"] if arm == "preload" else []


def measured(a, arm, program, codec, chunk, file):
    if program == "netCDF4" and arm == "h5z_gpu":
        return None
    command = [sys.executable, __file__, "--one", program, codec, chunk, "--arm", arm, "--rounds", str(a.rounds),
               "--field", a.field, "--file", file]
    done = subprocess.run(under(a, arm) + command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def repacked(a, x, folder):
    """Whole processes, in seconds: packed, and unpacked into chunks without a filter."""
    import h5py
    names = [os.path.join(folder, name) for name in ("in.h5", "packed.h5", "again.h5")]
    with h5py.File(names[0], "w") as f:
        f["v"] = x
    rows = {}
    for arm in ARMS[:2]:
        pack = ["h5repack", "-l", "v:CHUNK=1x1024x1024", "-f", f"v:UD=443,0,1,{words('planes')}", *names[:2]]
        unpack = ["h5repack", "-f", "v:NONE", *names[1:]]
        rows[arm] = best(a.rounds, *(lambda c=c: subprocess.run(under(a, arm) + c, check=True) for c in (pack, unpack)))
    for name in names:
        os.remove(name)
    return rows


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent.parent.parent
    p.add_argument("--program", default=str(root / "target/bin/h5z-gpu"))
    p.add_argument("--mb", type=int, default=268)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--dir", default="/dev/shm")
    p.add_argument("--rows", default="", help="only rows whose name has one of these texts, with ; between")
    p.add_argument("--json")
    for hidden in ("--arm", "--field", "--file"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    p.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return one(a)
    import numpy as np
    x = field(a.mb)
    folder = os.path.join(a.dir, f"h5z-gpu-unchanged-{os.getpid()}")
    os.makedirs(folder)
    a.field = os.path.join(folder, "field.npy")
    try:
        np.save(a.field, x)
        rows = all_rows(a, x, folder)
    finally:
        shutil.rmtree(folder)
    if a.json:
        Path(a.json).write_text(json.dumps(rows, indent=1))


def all_rows(a, x, folder):
    programs = ["h5py"] + ["netCDF4"] * has("netCDF4")
    kinds = [(p, codec, chunk) for p in programs for codec in CODECS for chunk in CHUNKS]
    kinds += [("gzip", "shuffle", chunk) for chunk in CHUNKS]
    rows = {}
    print(f"{x.nbytes / 1e6:.0f} MB of f32, {len(os.sched_getaffinity(0))} cores; written, read in GB/s\n")
    print("| program | " + " | ".join(ARMS) + " |\n|---" + "|---" * len(ARMS) + "|")
    for program, codec, chunk in kinds:
        name = f"{program}, {codec}, {chunk}"
        if a.rows and not any(word in name for word in a.rows.split(";")):
            continue
        file = os.path.join(folder, "a.nc" if program == "netCDF4" else "a.h5")
        got = rows[name] = {arm: measured(a, arm, program, codec, chunk, file) for arm in ARMS}
        os.remove(file)
        told = ["" if g is None else f"{g[1]:.1f}" if not g[0] else f"{g[0]:.1f}, {g[1]:.1f}" for g in got.values()]
        print(f"| {name} | " + " | ".join(told) + " |", flush=True)
    if shutil.which("h5repack") and (not a.rows or "h5repack" in a.rows):
        got = rows["h5repack, seconds"] = repacked(a, x, folder)
        told = [f"{got[arm][0]:.2f} s, {got[arm][1]:.2f} s" if arm in got else "" for arm in ARMS]
        print("| h5repack, packs, unpacks | " + " | ".join(told) + " |")
    return rows


if __name__ == "__main__":
    main()
