# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bounds that are searched for derived quantities, against theorems and exhaustion: quantities.py [NAME ...]

Of each field of `make compare` the middle is taken, at most 131,072 values. Limits are parts
of its range. Each bound of a grid of ratio 1.05 codes the field; errors are NumPy's in long double. `best` is the
largest bound of the grid that holds together with all smaller ones, `beyond` the largest that holds at all: the error
of a mean goes up and down.
"""

import argparse
import math
import pathlib
import sys
import warnings

import h5py
import numpy as np

import h5z_gpu
from h5z_gpu.chunks import chunk_shape
from h5z_gpu.quantity import Field, applied, parse, usable
from h5z_gpu.search import CODINGS, Variable, search

FIELDS = pathlib.Path(__file__).parents[2] / "target/fields"
VALUES, STEP = 1 << 17, 1.05
HEAD = "| field | quantity | theorem | found | codings | share | best / found | beyond / found | ratios |"


def laplacian(v):
    inner = (slice(1, -1),) * v.ndim
    return sum(np.diff(v, 2, axis=k)[(*inner[:k], slice(None), *inner[k + 1 :])] for k in range(v.ndim))


QUANTITIES = {
    "gradient()": (1e-3, lambda v: np.stack([np.gradient(v, axis=k) for k in range(v.ndim)])),
    "laplacian()": (1e-3, laplacian), "mean(0)": (1e-4, lambda v: np.nanmean(v, axis=0)),
    "mean()": (1e-5, lambda v: np.nanmean(v)), "std(0)": (1e-4, lambda v: np.nanstd(v, axis=0)),
    "max(-1)": (1e-4, lambda v: np.nanmax(v, axis=-1)),
}


def middle(shape):
    """The box in the middle with at most VALUES values: longest axes are halved."""
    part = list(shape)
    while math.prod(part) > VALUES:
        part[part.index(max(part))] = max(part) // 2
    return tuple(slice((n - p) // 2, (n + p) // 2) for n, p in zip(shape, part))


def fields(names):
    """Name, values, the value that stands for missing ones, and where they are not missing; 1e20 and above are."""
    for path in sorted(FIELDS.glob("full/*.h5")) + sorted(FIELDS.glob("lossless/*.h5")):
        if path.stem.startswith("nasty") or (names and path.stem not in names):
            continue
        with h5py.File(path) as f:
            data = f["data"]
            if data.dtype.kind != "f" or min(data.shape) < 3 or data.size < 4096:
                continue
            x, fill = data[middle(data.shape)], data.attrs.get("missing")
        x = np.ascontiguousarray(x.astype(x.dtype.newbyteorder("=")))
        extreme = x.flat[np.nanargmax(np.abs(x))]
        fill = extreme if fill is None and abs(extreme) >= 1e20 else fill
        if (use := usable(x, fill)).any() and np.ptp(x[use]) > 0:
            yield path.stem, x, fill, use


def error(text, x, y, use):
    """Largest error of a quantity, by NumPy in long double."""
    was, became = (QUANTITIES[text][1](np.where(use, v, np.nan).astype(np.longdouble)) for v in (x, y))
    return float(np.max(np.abs(became - was), where=~np.isnan(was), initial=0))


def coded(x, how):
    frame = h5z_gpu.compress(x, how)
    return h5z_gpu.decompress(frame, x.dtype, x.shape), x.nbytes / len(frame)


def exhausted(x, fill, use, limits, start):
    """For each quantity the best bound of the grid, and the largest that holds at all."""
    best, beyond, b, failed = dict.fromkeys(limits, 0.0), dict.fromkeys(limits, 0.0), start, set()
    while b < STEP * np.ptp(x[use].astype(float)) and (len(failed) < len(limits) or b < 30 * max(best.values())):
        y, _ = coded(x, h5z_gpu.Lossy(absolute=b, fill_value=fill))
        for text, limit in limits.items():
            if error(text, x, y, use) > limit:
                failed.add(text)
            else:
                beyond[text], best[text] = b, best[text] if text in failed else b
        b *= STEP
    return best, beyond


def main():
    warnings.simplefilter("ignore")  # of means without a value
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    args, bad, count = parser.parse_args(), 0, 0
    print(HEAD, "|---" * HEAD.count(" | ") + "|---|", sep="\n")
    for name, x, fill, use in fields(args.names):
        wide, field, found = float(np.ptp(x[use].astype(float))), Field(x.shape, (), fill), {}
        limits = {text: float(f"{part * wide:.3g}") for text, (part, _) in QUANTITIES.items()}
        v = Variable(field, x.dtype, chunk_shape(x.shape, x.itemsize), lambda a, b, x=x: x[a:b],
                     h5z_gpu.Lossy(absolute=1e300, fill_value=fill))
        for text, limit in limits.items():
            (found[text],) = search({"v": v}, applied(parse(f"{text} {limit!r}"), {"v": field}))
        start = min(f.theorem[0]["v"] for f in found.values())
        best, beyond = exhausted(x, fill, use, limits, start)
        for text, f in found.items():
            how, theorem = f.hows["v"], h5z_gpu.Lossy(absolute=f.theorem[0]["v"], fill_value=fill)
            (y, ratio), (_, tight) = coded(x, how), coded(x, theorem)
            share = error(text, x, y, use) / limits[text]
            wrong = f.codings > CODINGS or share > 1 + 1e-12 or best[text] > 1.3 * how.bound
            bad, count = bad + wrong, count + 1
            more = [f"{b[text] / (how.bound or math.nan):.3g}" for b in (best, beyond)]
            print(f"| {name} | `{text} {limits[text]:g}`", f"{theorem.bound:.3g}", f"{how.bound:.4g}", f.codings,
                  f"{share:.3f}", *more, f"{tight:.2f} to {ratio:.2f} |{' MISSED' * wrong}", sep=" | ")
    sys.exit(f"{bad} of {count} searches missed" if bad else 0)


if __name__ == "__main__":
    main()
