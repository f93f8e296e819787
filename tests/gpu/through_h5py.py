# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a user of h5py gets: MB/s of raw data written and read, beside no filter and beside other filters.

    through_h5py.py FIELDS_FOLDER SCRATCH_FOLDER [--mb 450] [--reps 3]

The field velocity.f32 (or velturb.f32), repeated along its slowest axis, in chunks of 4 and of 16 MiB. Written: create,
fill, flush and close. Read: open and read into memory that is there, the file in the page cache. Medians; every answer
is compared with what was written. hdf5plugin's filters are timed where it can be imported (Blosc2 with all cores, the
others have no threads), slow ones once on the field unrepeated. One process each, so that variables can differ.
"""
import json
import logging
import os
import statistics
import subprocess
import sys
import time

import h5py
import numpy as np

# hdf5plugin names each filter that the bundle leaves out.
logging.disable(logging.ERROR)

CHUNKS = [(64, 128, 128), (256, 128, 128)]
REL = 1e-3


def rows(plugin, bound):
    """Name, filter's arguments, environment, slow, largest error allowed."""
    cpu = {"H5Z_GPU_DEVICE": "cpu"}
    ours = lambda word: dict(compression=443, compression_opts=(word,))
    yield "none, chunked", {}, {}, False, 0
    yield "h5z-gpu planes 1e-3", ours(521003), {}, False, bound
    yield "h5z-gpu planes 1e-3, all on the GPU", ours(521003), {"H5Z_GPU_MIN_BYTES": "0"}, False, bound
    yield "h5z-gpu planes 1e-3, CPU only", ours(521003), cpu, False, bound
    yield "h5z-gpu lorenzo 1e-3", ours(221003), {}, False, bound
    yield "h5z-gpu lorenzo 1e-3, CPU only", ours(221003), cpu, False, bound
    yield "h5z-gpu lossless", ours(590000), {}, False, 0
    yield "h5z-gpu lossless, CPU only", ours(590000), cpu, False, 0
    yield "none, chunked, again", {}, {}, False, 0
    yield "shuffle + gzip-1", dict(compression="gzip", compression_opts=1, shuffle=True), {}, True, 0
    if plugin:
        every = {"BLOSC_NTHREADS": str(os.cpu_count())}
        bits = plugin.Blosc2.BITSHUFFLE
        yield "Blosc2 bitshuffle zstd-5", plugin.Blosc2(cname="zstd", clevel=5, filters=bits), every, True, 0
        yield "Blosc2 bitshuffle lz4", plugin.Blosc2(cname="lz4", clevel=5, filters=bits), every, True, 0
        yield "ZFP 1e-3", plugin.Zfp(accuracy=bound), {}, True, bound
        yield "SZ3 1e-3", plugin.SZ3(absolute=bound), {}, True, bound


def load(folder, mb):
    name = next(n for n in ("velocity", "velturb") if os.path.exists(f"{folder}/{n}.f32"))
    dims = next(line.split()[2] for line in open(f"{folder}/fields.txt") if f"{name}.f32" in line)
    a = np.fromfile(f"{folder}/{name}.f32", "<f4").reshape([int(n) for n in dims.split("x")])
    return np.concatenate([a] * max(1, round(mb * 1e6 / a.nbytes)))


def one(folder, scratch, mb, reps, row, chunk):
    try:
        import hdf5plugin as plugin
    except ImportError:
        plugin = None
    a = load(folder, mb)
    bound = REL * float(np.ptp(a))
    _, filters, _, _, allowed = list(rows(plugin, bound))[row]
    path, out, written, read = f"{scratch}/through.h5", np.zeros_like(a), [], []
    for _ in range(reps):
        t = time.perf_counter()
        with h5py.File(path, "w") as f:
            d = f.create_dataset("d", data=a, chunks=tuple(map(min, CHUNKS[chunk], a.shape)), **filters)
            f.flush()
            size = d.id.get_storage_size()
        written.append(time.perf_counter() - t)
        t = time.perf_counter()
        with h5py.File(path) as f:
            f["d"].read_direct(out)
        read.append(time.perf_counter() - t)
        os.unlink(path)
    error = max(float(abs(out[i : i + 16].astype("f8") - a[i : i + 16]).max()) for i in range(0, len(a), 16))
    rate = lambda times: a.nbytes / 1e6 / statistics.median(times)
    print(json.dumps(dict(ratio=a.nbytes / size, write=rate(written), read=rate(read), right=error <= allowed)))


def main():
    args = sys.argv[1:]
    if args[0] == "--one":
        return one(args[1], args[2], float(args[3]), int(args[4]), int(args[5]), int(args[6]))
    option = lambda name, other: args[args.index(name) + 1] if name in args else other
    folder, scratch, mb, reps = args[0], args[1], option("--mb", "450"), option("--reps", "3")
    try:
        import hdf5plugin as plugin
    except ImportError:
        plugin = None
    print(f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, hdf5plugin {plugin and plugin.version}, "
          f"{os.cpu_count()} cores")
    failed = False
    for chunk, extents in enumerate(CHUNKS):
        print(f"chunks of {4 * np.prod(extents) >> 20} MiB {'ratio':>26} {'write':>8} {'read':>8}  MB/s")
        for row, (name, _, env, slow, _) in enumerate(rows(plugin, 1.0)):
            mine = [sys.executable, __file__, "--one", folder, scratch, "1" if slow else mb, "1" if slow else reps,
                    str(row), str(chunk)]
            done = subprocess.run(mine, env={**os.environ, **env}, capture_output=True, text=True)
            if done.returncode:
                print(f"  {name}: {done.stderr.strip().splitlines()[-1]}")
                failed |= "h5z-gpu" in name
                continue
            r = json.loads(done.stdout)
            failed |= not r["right"] and "h5z-gpu" in name
            print(f"  {name:34} {r['ratio']:6.2f} {r['write']:8.0f} {r['read']:8.0f}{'' if r['right'] else '  WRONG'}",
                  flush=True)
    sys.exit(failed)


main()
