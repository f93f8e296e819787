#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writing and reading a smooth field through h5py, with our filter, with others, and with none, in the same run.

    through_h5py.py [--mb 250] [--rounds 5] [--rel 1e-3] [--dir /dev/shm]

The field is random with the spectrum of turbulence, f32, in chunks of 64 × 128 × 128 = 4 MiB; the bound is a part of
its range. All filters may use all cores (HDF5 calls one at a time; ours and Blosc2 have threads of their own). Rounds
alternate between the filters and the fastest counts. A second table gives the cost of one chunk of 1 KiB.
"""
import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("BLOSC_NTHREADS", str(len(os.sched_getaffinity(0))))
import h5py
import hdf5plugin
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "fields"))
import make


def words(bound, codec=1):
    return (codec * 10 + 1, *(int(v) for v in np.array([bound]).view(np.uint32)))


def once(path, x, chunk, out, how):
    """(seconds to write, to read, bytes stored)"""
    if path.exists():
        path.unlink()
    t0 = time.perf_counter()
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", data=x, chunks=chunk, **how)
        f.flush()
        size = d.id.get_storage_size()
    t1 = time.perf_counter()
    with h5py.File(path) as f:
        f["v"].read_direct(out)
    return t1 - t0, time.perf_counter() - t1, size


def race(path, x, chunk, rows, rounds):
    """name → (seconds to write, to read, bytes, largest error), the fastest of the rounds"""
    out, best = np.zeros_like(x), {}
    for i in range(rounds):
        for name, how in rows.items():
            w, r, size = once(path, x, chunk, out, how)
            error = best[name][3] if i else float(np.abs(out.astype(np.float64) - x).max())
            before = best.get(name, (w, r))
            best[name] = min(w, before[0]), min(r, before[1]), size, error
    path.unlink()
    return best


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--mb", type=float, default=250)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--rel", type=float, default=1e-3)
    a.add_argument("--dir", type=Path, default=Path("/dev/shm"))
    a = a.parse_args()
    path = a.dir / f"h5z-gpu.{os.getpid()}.h5"
    base = make.turbulence((128, 256, 256), 1)
    x = np.concatenate([base] * max(1, round(a.mb * 1e6 / base.nbytes)))
    bound = a.rel * float(np.float64(x.max()) - x.min())
    gz = dict(compression="gzip", compression_opts=1, shuffle=True)
    blosc = hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.BITSHUFFLE)
    rows = {
        "none, contiguous": {},
        "none, chunked": {},
        "shuffle + gzip 1": gz,
        "Blosc2 bitshuffle + zstd 5": dict(compression=blosc),
        "ZFP accuracy": dict(compression=hdf5plugin.Zfp(accuracy=bound)),
        "SZ3 absolute": dict(compression=hdf5plugin.SZ3(absolute=bound)),
        "h5z-gpu szx": dict(compression=443, compression_opts=words(bound)),
        "h5z-gpu lorenzo": dict(compression=443, compression_opts=words(bound, 2)),
        "h5z-gpu ndzip": dict(compression=443, compression_opts=(390000,)),
    }
    chunk = (64, 128, 128)

    def timed(rows, x, chunk, rounds):
        contiguous = {k: v for k, v in rows.items() if k == "none, contiguous"}
        best = race(path, x, None, contiguous, rounds) if contiguous else {}
        return best | race(path, x, chunk, {k: v for k, v in rows.items() if k not in contiguous}, rounds)

    best = timed(rows, x, chunk, a.rounds)
    print(f"Turbulence tiled to {x.nbytes / 1e6:.0f} MB, chunks of 4 MiB, bound {a.rel:g} of the range, "
          f"{len(os.sched_getaffinity(0))} cores, {a.dir}, fastest of {a.rounds}; h5py {h5py.__version__}, hdf5plugin "
          f"{hdf5plugin.version}\n")
    print("| filter | ratio | write MB/s | read MB/s | error/bound |\n|---|---|---|---|---|")
    speed = {}
    for name, (w, r, size, error) in best.items():
        speed[name] = x.nbytes / 1e6 / w, x.nbytes / 1e6 / r
        assert error <= bound * 1.01 and (not name.startswith("h5z-gpu") or error <= bound)
        shown = f"{error / bound:.4f}" if error else "exact"
        print(f"| {name} | {x.nbytes / size:.2f} | {speed[name][0]:.0f} | {speed[name][1]:.0f} | {shown} |")
    lossy = [max(speed["ZFP accuracy"][i], speed["SZ3 absolute"][i]) for i in (0, 1)]
    ours = speed["h5z-gpu szx"]
    print(f"\nszx over the better of SZ3 and ZFP: write {ours[0] / lossy[0]:.2f}, read {ours[1] / lossy[1]:.2f}; "
          f"over none, chunked: {ours[0] / speed['none, chunked'][0]:.2f}, {ours[1] / speed['none, chunked'][1]:.2f}")

    small = np.ascontiguousarray(base.reshape(-1)[: 256 * 4000])
    tiny = race(path, small, (256,), {k: rows[k] for k in ("none, chunked", "h5z-gpu szx", "h5z-gpu ndzip")}, a.rounds)
    print("\n4000 chunks of 1 KiB\n\n| filter | write µs a chunk | read µs a chunk |\n|---|---|---|")
    for name, (w, r, *_) in tiny.items():
        print(f"| {name} | {w / 4000 * 1e6:.2f} | {r / 4000 * 1e6:.2f} |")
    w, r = (tiny["h5z-gpu szx"][i] / tiny["none, chunked"][i] for i in (0, 1))
    print(f"\nszx over no filter: write {w:.2f}, read {r:.2f} times the time")


if __name__ == "__main__":
    main()
