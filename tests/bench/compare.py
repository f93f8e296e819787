#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Our filter beside those of hdf5plugin, gzip and pcodec: ratio, speed, error, damage, odd types. One table, two plots.

    compare.py FOLDER... [--out target/compare] [--rel 1e-3] [--rounds 2] [--most 8e6] [--dir /dev/shm] [--only NAME...]
    [--page PAGE.md]

Fields are FOLDER/*.h5 with a dataset `data` of at least 4 MB, of which the first --most bytes are taken, in chunks of
about 4 MiB. The bound is a part of the range of each field's measured values, given to all as one absolute bound:
neither values that are not finite nor the one that stands for missing data are measured. Where a field declares that
value as its fill value (attribute `fill`), so does the dataset. Filters run in processes of their own: one that ends
its process is counted and does not end the comparison. Speeds are of raw data, MB = 10^6 bytes, fastest of all rounds;
*memory* is HDF5's core driver, *file* a file in --dir. All may use all cores.

Error over bound is judged over all finite values, in double precision; the declared fill value and a value that is not
finite must keep their bits. Damage: one byte of a stored chunk is changed at 24 places, one at a time, and the chunk is
read.
"""
import argparse
import math
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

from compare_page import into, plots, table

# name → (lossy, whether HDF5 has it); how each is asked for is in `options`.
FILTERS = {
    "h5z-gpu, auto": (True, True),
    "h5z-gpu, lorenzo": (True, True),
    "h5z-gpu, planes": (True, True),
    "h5z-gpu, szx": (True, True),
    "SZ3": (True, True),
    "ZFP, accuracy": (True, True),
    "SPERR, absolute": (True, True),
    "h5z-gpu, lossless": (False, True),
    "Blosc2, bitshuffle + zstd 5": (False, True),
    "Bitshuffle + zstd": (False, True),
    "shuffle + gzip 4": (False, True),
    "pcodec 8": (False, False),
}
# f32 of the other byte order, types with fewer bits, and values that stand for something else.
ODD = ("f16", ">f4", "int8", "NaN, Inf", "fill 1e20")
PLACES = 24


def options(name, bound):
    """What h5py's create_dataset takes for a filter."""
    import hdf5plugin

    low, high = (int(v) for v in np.array([bound], "<f8").view("<u4"))
    ours = {"auto": 1, "lorenzo": 21, "planes": 51, "szx": 11}
    if name == "h5z-gpu, lossless":
        return {"compression": 443, "compression_opts": (90000,)}
    if name.startswith("h5z-gpu"):
        return {"compression": 443, "compression_opts": (ours[name.split(", ")[1]], low, high)}
    if name == "shuffle + gzip 4":
        return {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    return dict({
        "SZ3": lambda: hdf5plugin.SZ3(absolute=bound),
        "ZFP, accuracy": lambda: hdf5plugin.Zfp(accuracy=bound),
        # Without `swap` it takes the last axis for the slowest, at less than half of the ratio.
        "SPERR, absolute": lambda: hdf5plugin.Sperr(absolute=bound, swap=True),
        "Blosc2, bitshuffle + zstd 5": lambda: hdf5plugin.Blosc2(cname="zstd", clevel=5,
                                                                 filters=hdf5plugin.Blosc2.BITSHUFFLE),
        "Bitshuffle + zstd": lambda: hdf5plugin.Bitshuffle(cname="zstd"),
    }[name]())


class Field(NamedTuple):
    """What is compressed: values in at most three dimensions, extents of a chunk, an absolute bound, the declared fill
    value."""

    values: np.ndarray
    chunk: tuple[int, ...]
    bound: float
    fill: Optional[np.floating]


def field(path, most, rel):
    """The first `most` bytes of a field, chunks of about 4 MiB with whole last axes, and `rel` of the range of its
    measured values."""
    import h5py

    with h5py.File(path) as f:
        x, fill, missing = f["data"][...], f["data"].attrs.get("fill"), f["data"].attrs.get("missing")
    x = x.reshape(-1, *x.shape[-2:]) if x.ndim > 3 else x
    slow = max(1, int(most // (x.nbytes / x.shape[0])))
    x = np.ascontiguousarray(x[:slow])
    chunk = list(x.shape)
    for axis in range(x.ndim):
        while math.prod(chunk) * x.itemsize > 4 << 20 and chunk[axis] > 1:
            chunk[axis] = -(-chunk[axis] // 2)
    # where nothing is missing, `missing` is None: equal to nothing
    measured = x[np.isfinite(x) & (x != missing)].astype("f8")
    return Field(x, tuple(chunk), rel * float(measured.max() - measured.min()), fill)


def judged(x, y, bound, fill=None):
    """Largest error over the bound (0: every bit is the same); infinite where a value that must keep its bits has
    not."""
    word = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}[x.itemsize]
    same = x.view(x.dtype.newbyteorder("=")).view(word) == np.ascontiguousarray(y).view(y.dtype.newbyteorder("=")).view(
        word)
    if same.all():
        return 0.0
    keep = ~np.isfinite(x) | (x == fill) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    if not same[keep].all() or not np.isfinite(y[~keep]).all():
        return math.inf
    return float(np.abs(x[~keep].astype("f8") - y[~keep]).max()) / bound


def once(path, x, chunk, how, **driver):
    """(seconds to write, to read, stored bytes, what was read)"""
    import h5py

    out = np.empty_like(x)
    Path(path).unlink(missing_ok=True)
    with h5py.File(path, "w", **driver) as f:
        t0 = time.perf_counter()
        d = f.create_dataset("v", data=x, chunks=chunk, **how)
        f.flush()
        t1 = time.perf_counter()
        size = d.id.get_storage_size()
        if driver:
            t2 = time.perf_counter()
            d.read_direct(out)
            return t1 - t0, time.perf_counter() - t2, size, out
    with h5py.File(path) as f:
        t2 = time.perf_counter()
        f["v"].read_direct(out)
        return t1 - t0, time.perf_counter() - t2, size, out


def without_hdf5(x, name):
    from pcodec import ChunkConfig, standalone

    t0 = time.perf_counter()
    frame = standalone.simple_compress(x.reshape(-1), ChunkConfig(compression_level=8))
    t1 = time.perf_counter()
    out = standalone.simple_decompress(frame).reshape(x.shape)
    return t1 - t0, time.perf_counter() - t1, len(frame), out


def measure(name, path, rel, most, folder):
    """One round of one filter on one field."""
    import hdf5plugin  # noqa: F401  registers its filters

    x, chunk, bound, fill = field(path, most, rel)
    if not FILTERS[name][1]:
        w, r, size, out = without_hdf5(x, name)
        return {"mb": x.nbytes / 1e6, "ratio": x.nbytes / size, "memory": (w, r), "error": judged(x, out, bound)}
    how = options(name, bound) | ({"fillvalue": fill} if fill is not None else {})
    at = f"{folder}/compare.{os.getpid()}.h5"
    # HDF5 keeps one chunk in its cache; the room is made too small for any, so that all are decoded.
    w, r, size, out = once(at, x, chunk, how, driver="core", backing_store=False, rdcc_nbytes=0)
    fw, fr, _, again = once(at, x, chunk, how)
    Path(at).unlink()
    assert out.tobytes() == again.tobytes()
    return {"mb": x.nbytes / 1e6, "ratio": x.nbytes / size, "memory": (w, r), "file": (fw, fr),
            "error": judged(x, out, bound, fill)}


def small():
    z, y, x = np.meshgrid(*(np.linspace(0, 3, n) for n in (16, 48, 64)), indexing="ij")
    return (10 * np.sin(2 * z) * np.cos(3 * y) + 5 * x + np.random.default_rng(1).normal(0, 0.02, x.shape)).astype("f4")


def odd(name, kind, folder):
    """What becomes of a type or of values that lossy filters may not expect: a word."""
    import hdf5plugin  # noqa: F401

    x, fill = small(), None
    if kind == "f16":
        x = x.astype("f2")
    elif kind == ">f4":
        x = x.astype(">f4")
    elif kind == "int8":
        x = np.round(x * 8).astype("i1")
    elif kind == "NaN, Inf":
        x[2:5, 10:20, 5:30], x[8, 0, :2] = np.nan, (np.inf, -np.inf)
    else:
        fill = np.float32(1e20)
        x[2:5, 10:20, 5:30] = fill
    bound = 1e-3 * 25
    try:
        if not FILTERS[name][1]:
            out = without_hdf5(x, name)[3]
        else:
            how = options(name, bound) | ({"fillvalue": fill} if fill is not None else {})
            out = once(f"{folder}/compare.{os.getpid()}.h5", x, x.shape, how)[3]
    except Exception:
        return "refused"
    over = judged(x, out, bound, fill)
    return ("exact" if over == 0 else "values lost" if over == math.inf else "bound kept" if over <= 1
            else f"bound × {over:.2g}")


def damage(name, place, folder):
    """One byte of a chunk changed: noticed, without effect, or silent."""
    import h5py
    import hdf5plugin  # noqa: F401

    x, at = small(), f"{folder}/compare.{os.getpid()}.h5"
    good = once(at, x, x.shape, options(name, 1e-3 * 25))[3]
    with h5py.File(at) as f:
        info = f["v"].id.get_chunk_info(0)
    with open(at, "r+b") as f:
        f.seek(info.byte_offset + (2 * place + 1) * info.size // (2 * PLACES))
        byte = f.read(1)[0]
        f.seek(-1, 1)
        f.write(bytes([byte ^ 0x10]))
    try:
        with h5py.File(at) as f:
            bad = f["v"][...]
    except Exception:
        return "noticed"
    return "without effect" if bad.tobytes() == good.tobytes() else "silent"


class Runner:
    """Calls in a process that may die."""

    def __init__(self):
        self.pool = None

    def __call__(self, function, *args):
        self.pool = self.pool or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self.pool.submit(function, *args).result(timeout=300)
        except (BrokenProcessPool, TimeoutError):
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.pool = None
            return "crash"
        except Exception as why:  # a field that a filter does not take
            return f"refused: {why}"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--out", type=Path, default=Path("target/compare"))
    a.add_argument("--rel", type=float, default=1e-3)
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--most", type=float, default=8e6)
    a.add_argument("--dir", default="/dev/shm")
    a.add_argument("--only", nargs="+", default=[""], help="filters whose names begin so")
    a.add_argument("--page", type=Path, help="a page whose table gets these rows: docs/measurements.md")
    a = a.parse_args()
    os.environ.setdefault("BLOSC_NTHREADS", str(len(os.sched_getaffinity(0))))
    names = [n for n in FILTERS if n.startswith(tuple(a.only))]
    paths = [p for f in a.folders for p in sorted(f.glob("*.h5")) if p.stat().st_size > 4e6
             and not p.stem.startswith("nasty")]
    paths or sys.exit(f"no fields of 4 MB or more in {', '.join(map(str, a.folders))}: tests/fields/make.py makes some")
    runners, found = {n: Runner() for n in names}, {n: {} for n in names}
    for path in paths:
        for _ in range(a.rounds):
            for n in names:
                got, before = runners[n](measure, n, path, a.rel, a.most, a.dir), found[n].get(path.stem)
                if isinstance(got, dict) and isinstance(before, dict):
                    for k in ("memory", "file"):
                        if k in got:
                            got[k] = tuple(map(min, got[k], before[k]))
                found[n][path.stem] = got
        print(path.stem, *(f"{n}: {r['ratio']:.2f}" if isinstance(r := found[n][path.stem], dict) else f"{n}: {r}"[:60]
                           for n in names), sep="  ", flush=True)
    odds = {n: [runners[n](odd, n, k, a.dir) for k in ODD] for n in names}
    hurt = {n: [runners[n](damage, n, k, a.dir) for k in range(PLACES)] if FILTERS[n][1] else None for n in names}
    a.out.mkdir(parents=True, exist_ok=True)
    text = table(found, odds, hurt, ODD, a, [p.stem for p in paths])
    (a.out / "compare.md").write_text(text)
    plots(found, FILTERS, a)
    if a.page:
        into(a.page, text)
    print(f"\n{text}\n{a.out}/compare.md, {a.out}/speed.svg, {a.out}/error.svg")


if __name__ == "__main__":
    main()
