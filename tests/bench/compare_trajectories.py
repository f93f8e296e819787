#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Trajectories of molecules by our codecs, SZ3 and XTC: ratio, speed of one core, error. A table.

    compare_trajectories.py FOLDER... [--codecs lorenzo dense] [--rounds 2] [--out target/compare] [--page PAGE.md]

FOLDER/*.h5 are those of tests/fields/trajectories.py: frames × atoms × 3, with the bounds that each is measured at. Our
codecs, by any name that `Lossy` takes, get an array once as one chunk and once a frame a chunk. SZ3 gets it whole, by
its default algorithm and by BIOMD, which is made for molecules. XTC, GROMACS's format, is written by MDAnalysis frame
by frame, as it always is; its precision is that of the bound, less what rounding to f32 takes. Everything is decoded
and compared. Speeds are bytes of raw data over CPU time, the best of all rounds.
"""
import argparse
import datetime
import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import h5py
import numpy as np
from compare_lossless_page import section
from compare_page import processor
from ours import mean


def ours(codec, by_frame):
    import h5z_gpu

    parts = lambda x: [x[k : k + 1] for k in range(len(x))] if by_frame else [x]

    def encode(x, bound):
        how = h5z_gpu.Lossy(absolute=bound, codec=codec)
        return [h5z_gpu.compress(part, how) for part in parts(x)]

    return encode, lambda frames, x: np.concatenate([h5z_gpu.decompress(f, x.dtype, p.shape)
                                                     for f, p in zip(frames, parts(x))])


def sz3(algorithm):
    from pysz import sz, szConfig, szErrorBoundMode

    def encode(x, bound):
        how = szConfig(*x.shape)
        how.errorBoundMode, how.absErrorBound, how.cmprAlgo = szErrorBoundMode.ABS, bound, algorithm
        return [sz.compress(x, how)[0]]

    return encode, lambda frames, x: sz.decompress(frames[0], x.dtype.type, x.shape)[0]


def xtc():
    from MDAnalysis.lib.formats.libmdaxdr import XTCFile

    path = tempfile.NamedTemporaryFile(suffix=".xtc", dir="/dev/shm")

    def encode(x, bound):
        precision = 0.5 / (bound - 2 * np.spacing(np.abs(x).max()))
        with XTCFile(path.name, "w") as f:
            for k, frame in enumerate(x):
                f.write(frame, np.zeros((3, 3), "f4"), k, k, precision)
        return [Path(path.name).read_bytes()]

    def decode(frames, x):
        with XTCFile(path.name) as f:
            return np.stack([frame.x for frame in f])

    return encode, decode


def measure(coder, x, bound, rounds):
    """(ratio, MB/s of encoding, of decoding, largest error over the bound)"""
    encode, decode = coder
    times = []
    for _ in range(rounds):
        t0 = time.process_time()
        frames = encode(x, bound)
        t1 = time.process_time()
        y = decode(frames, x)
        times.append((t1 - t0, time.process_time() - t1))
    speeds = (x.nbytes / 1e6 / max(min(t), 1e-6) for t in zip(*times))
    error = np.nan_to_num(np.abs(x.astype(np.longdouble) - y), nan=np.inf).max()
    return x.nbytes / sum(map(len, frames)), *speeds, float(error / bound)


def table(found, rounds):
    """`found` is {(title, shape, bound and unit): {coder: what `measure` says}}."""
    names = list(next(iter(found.values())))
    yield (f"Trajectories out of MDAnalysisTests, frames × atoms, in f32 as their programs wrote them; one core of "
           f"{processor()} by CPU time, {datetime.date.today()}, fastest of {rounds}; "
           + ", ".join(f"{p} {version(p)}" for p in ("MDAnalysis", "pysz"))
           + ". Ours get an array as one chunk and a frame a chunk, SZ3 gets it whole, by its default and by BIOMD, "
           "which is made for molecules, and XTC codes frame by frame. Every value was compared. Ratio, the largest "
           "bold:")
    yield f"\n| trajectory | bound | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}"
    for (title, shape, bound), cells in found.items():
        best = max(r[0] for r in cells.values())
        shown = (f"**{r[0]:.2f}**" if r[0] == best else f"{r[0]:.2f}" for r in cells.values())
        yield f"| {title}, {' × '.join(map(str, shape[:2]))} | {bound} | {' | '.join(shown)} |"
    column = lambda name, k: [cells[name][k] for cells in found.values()]
    rows = {"mean ratio": lambda n: f"{mean(column(n, 0)):.2f}",
            "encode, decode, MB/s": lambda n: f"{mean(column(n, 1)):.0f}, {mean(column(n, 2)):.0f}",
            "largest error over the bound": lambda n: f"{max(column(n, 3)):.4f}"}
    for title, row in rows.items():
        yield f"| {title} | | {' | '.join(map(row, names))} |"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--codecs", nargs="+", default=["lorenzo", "dense"])
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--out", type=Path, default=Path("target/compare"))
    a.add_argument("--page", type=Path, help="a page whose section `Trajectories of molecules` is written anew")
    a = a.parse_args()
    os.environ |= {"H5Z_GPU_DEVICE": "cpu", "H5Z_GPU_THREADS": "1", "OMP_NUM_THREADS": "1"}
    coders = {f"{codec}{', a frame a chunk' * by_frame}": ours(codec, by_frame)
              for by_frame in (False, True) for codec in a.codecs}
    coders |= {"SZ3, BIOMD": sz3(5), "SZ3": sz3(1), "XTC": xtc()}  # pysz has a name for 1 alone, its default
    found = {}
    for path in (p for folder in a.folders for p in sorted(folder.glob("*.h5"))):
        with h5py.File(path) as f:
            x, about = f["data"][...], dict(f["data"].attrs)
        for bound in about["bounds"]:
            cells = {name: measure(coder, x, bound, a.rounds) for name, coder in coders.items()}
            found[about["title"], x.shape, f"{bound:.3g} {about['unit']}"] = cells
            print(path.stem, f"{bound:.3g}", *(f"{n}: {r[0]:.3f}" for n, r in cells.items()), sep="  ", flush=True)
    text = "\n".join(table(found, a.rounds)) + "\n"
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "trajectories.md").write_text(text)
    if a.page:
        section(a.page, "### Trajectories of molecules", text)
    print(f"\n{text}\n{a.out}/trajectories.md")


if __name__ == "__main__":
    main()
