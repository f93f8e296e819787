#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the writer's choices cost and bring: "auto", "fast" and "small" beside codecs by name, on chunks of real fields.

    choice.py FOLDER... [--chunks 262144,1048576] [--bounds 1e-2,1e-3,1e-4,1e-6] [--each 2] [--rounds 2] [--cells]
    [--picture FILE.svg]

Of each dataset of FOLDER/*.h5 with at least 65,536 numbers some boxes of at most a chunk's bytes are taken, all over it
(--each), and encoded in memory on one core. Bounds are absolute, parts of the range of the dataset's values. Speeds are
bytes over CPU time, the best of all rounds, and their harmonic mean over datasets; ratios are those of a dataset's
boxes together, beside that of "auto": a geometric mean. --cells prints every dataset.
"""
import argparse
import math
import os
import time
from pathlib import Path

import h5py
import numpy as np

from ours import Ours, mean

CODECS = {"auto": 0, "fast": 8, "small": 9, "lorenzo": 2, "planes": 5, "dense": 7}
LOSSLESS = {"auto": 0, "fast": 8, "small": 9}
COLOURS = {"auto": "#1d5fa8", "fast": "#2f7d4f", "small": "#7b3fa0", "lorenzo": "#e08a1e", "planes": "#888888",
           "dense": "#b03a4a"}
SHAPES = {"auto": "o", "fast": "^", "small": "s", "lorenzo": "D", "planes": "v", "dense": "P"}


def datasets(folders):
    """(name, array), in this machine's byte order."""
    for path in (p for folder in folders for p in sorted(folder.glob("*.h5"))):
        with h5py.File(path) as f:
            found = []
            f.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset) else None)
            for name in found:
                o = f[name]
                if o.dtype.kind in "iuf" and o.size >= 1 << 16 and (o.dtype.kind != "f" or o.dtype.itemsize >= 4):
                    yield f"{path.stem}/{name}", o[...].astype(o.dtype.newbyteorder("="))


def boxes(a, most, each):
    """Up to `each` boxes of at most `most` bytes, all over the array."""
    sides = list(a.shape)
    while math.prod(sides) * a.itemsize > most:
        longest = sides.index(max(sides))
        sides[longest] = -(-sides[longest] // 2)
    counts = [-(-n // side) for n, side in zip(a.shape, sides)]
    count = math.prod(counts)
    for k in range(min(each, count)):
        at = np.unravel_index((2 * k + 1) * count // (2 * min(each, count)), counts)
        yield np.ascontiguousarray(a[tuple(slice(i * side, (i + 1) * side) for i, side in zip(at, sides))])


def words(codec, bound):
    if bound is None:
        return (codec * 100_000 + 90_000,)
    low, high = (int(v) for v in np.array([bound], "<f8").view("<u4"))
    return (codec * 10 + 1, low, high)


def width(a):
    """Largest less smallest value; 1 where that is nothing. 1e20 and above count as missing."""
    v = a[np.isfinite(a) & (np.abs(a) < 9e19)].astype(np.float64)
    return float(np.ptp(v)) or 1.0 if v.size else 1.0


def measure(a, chunk, part, each, rounds, ours):
    """codec → (bytes of frames, seconds), and the raw bytes."""
    pieces = list(boxes(a, chunk, each))
    bound = None if part is None else part * width(a)
    found = {}
    for name, codec in (LOSSLESS if part is None else CODECS).items():
        size = seconds = 0
        for piece in pieces:
            best = math.inf
            for _ in range(1 if name == "small" else rounds):
                begin = time.thread_time()
                frame = ours.encode(piece, words(codec, bound))
                best = min(best, time.thread_time() - begin)
            seconds += best
            size += len(frame)
        found[name] = (size, seconds)
    return found, sum(piece.nbytes for piece in pieces)


def rows(arrays, chunk, parts, a, ours):
    """(title, codec → (MB/s, ratio beside auto's, the same of the worst dataset))"""
    for part in [*parts, None]:
        for kinds, title in (("f", "floats"), ("iu", "integers")):
            if part is not None and kinds != "f":
                continue
            cells = {n: measure(x, chunk, part, a.each, a.rounds, ours) for n, x in arrays if x.dtype.kind in kinds}
            if not cells:
                continue
            if a.cells:
                for n, (found, raw) in cells.items():
                    print(chunk, part, n, *(f"{c} {raw / s:.2f} {raw / t / 1e6:.0f}" for c, (s, t) in found.items()))
            result = {}
            for codec in next(iter(cells.values()))[0]:
                beside = [found["auto"][0] / found[codec][0] for found, _ in cells.values()]
                speed = len(cells) / sum(found[codec][1] / raw * 1e6 for found, raw in cells.values())
                result[codec] = (speed, mean(beside), min(beside))
            yield f"{title}, {'lossless' if part is None else f'{part:g}'}", result


def picture(path, found):
    """Ratio over speed: a mark for each codec, a line for each bound."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "h5z-gpu", "font.size": 11, "axes.spines.top": False,
                         "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(8.6, 4.6), layout="constrained")
    for title, result in found:
        points = sorted((speed, ratio) for speed, ratio, _ in result.values())
        axes.plot(*zip(*points), color="#cccccc", lw=1, zorder=1)
        for codec, (speed, ratio, _) in result.items():
            axes.plot(speed, ratio, SHAPES[codec], color=COLOURS[codec], ms=8, zorder=2)
        axes.annotate(title.removeprefix("floats, "), points[-1], (7, 0), textcoords="offset points", va="center",
                      fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(right=axes.get_xlim()[1] * 1.6)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("MB/s, one core")
    axes.set_ylabel('ratio, that of "auto" = 1')
    marks = [plt.Line2D([], [], ls="", marker=SHAPES[c], color=COLOURS[c], label=c) for c in CODECS]
    axes.legend(handles=marks, loc="lower left")
    figure.savefig(path, metadata={"Date": None})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+", type=Path)
    p.add_argument("--chunks", default="65536,262144,1048576,4194304")
    p.add_argument("--bounds", default="1e-2,1e-3,1e-4,1e-6")
    p.add_argument("--each", type=int, default=2)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--cells", action="store_true")
    p.add_argument("--picture", type=Path, help="of the chunks given last but one, or alone")
    a = p.parse_args()
    os.environ |= {"H5Z_GPU_THREADS": "1", "H5Z_GPU_DEVICE": "cpu"}
    ours, arrays = Ours(), list(datasets(a.folders))
    print(f"{len(arrays)} datasets; MB/s, ratio beside that of auto, the same of the worst dataset")
    chunks = [int(c) for c in a.chunks.split(",")]
    for chunk in chunks:
        found = list(rows(arrays, chunk, [float(b) for b in a.bounds.split(",")], a, ours))
        print(f"\n| {chunk >> 10} KiB | {' | '.join(CODECS)} |\n|---|{'---|' * len(CODECS)}")
        for title, result in found:
            shown = [f"{s:.0f}, {r:.2f}, {w:.2f}" for s, r, w in result.values()]
            print(f"| {title} | {' | '.join(shown + [''] * (len(CODECS) - len(shown)))} |", flush=True)
        if a.picture and chunk == (chunks[-2:])[0]:
            picture(a.picture, [row for row in found if row[0].startswith("floats")])


if __name__ == "__main__":
    main()
