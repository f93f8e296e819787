#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes fields through the filter at many bounds, reads them back, and judges every value in exact arithmetic.

    bound_fields.py FILE-OR-FOLDER... [--out FILE]

A field is an HDF5 file with one dataset `data`; an attribute `fill` is declared as fill value. Bounds: relative to each
chunk's range 1e-2 to 1e-6, absolute ones from 1e-2 to 1e-6 of the field's range (rounded to two digits) and fixed
ones, point-wise relative 1e-2 and 1e-4, PSNR 40 and 100 dB, and lossless. Codecs: the writer's choice, szx, ndzip.
Needs HDF5_PLUGIN_PATH. Prints one line a field; the exit status is 1 where a promise is broken.
"""
import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "hosts"))
import judge  # noqa: E402


def two_digits(value):
    """(DDEE, the double it stands for) near `value`; None outside the packed form."""
    if not (math.isfinite(value) and 1e-78 < value < 9e18):
        return None
    mantissa, exponent = f"{value:.1e}".split("e")
    e = int(exponent)
    digits = int(mantissa.replace(".", ""))
    return digits * 100 + (-e if e <= 0 else 80 + e), float(f"{mantissa}e{e}")


def plans(x, fill):
    """(words, mode, value) to try."""
    for e in range(2, 7):
        for codec in (0, 1):
            yield (codec * 100_000 + 21000 + e,), "rel", float(f"1e-{e}")
    values = x[~judge.exact(x, fill)].astype(float)
    with np.errstate(over="ignore"):
        span = float(values.max() - values.min()) if values.size else 0.0
    wanted = [span * 10.0**-e for e in (2, 3, 4, 6)] + [1e-3, 0.5, 1e2]
    for w in wanted:
        if p := two_digits(w):
            yield (10000 + p[0],), "abs", p[1]
    if p := two_digits(span * 1e-3):
        yield (110000 + p[0],), "abs", p[1]
    # A double that no packed number stands for.
    low, high = np.array([span / 3000 if 0 < span < math.inf else 1 / 3]).view(np.uint32)
    yield (11, int(low), int(high)), "abs", float(np.array([low, high]).view(float)[0])
    for e in (2, 4):
        yield (31000 + e,), "pw_rel", float(f"1e-{e}")
    for db in (40, 100):
        yield (40000 + db * 10,), "psnr", float(db)
    yield (90000,), "lossless", 0.0
    yield (390000,), "lossless", 0.0


def chunk_of(shape, itemsize):
    """Chunks of about 1 MiB that do not divide the extents."""
    chunk = list(shape)
    while np.prod(chunk) * itemsize > 1 << 20:
        i = int(np.argmax(chunk))
        chunk[i] = chunk[i] * 3 // 5
    return tuple(chunk)


def judge_field(path, out):
    """(number of plans, violations, the largest error over the bound, the best and worst ratio)"""
    with h5py.File(path) as f:
        x = f["data"][...]
        fill = f["data"].attrs.get("fill")
    chunk = chunk_of(x.shape, x.itemsize)
    count, broken, worst, ratios = 0, [], 0.0, []
    for words, mode, value in plans(x, fill):
        with h5py.File(out, "w") as f:
            d = f.create_dataset("v", data=x, chunks=chunk, compression=443, compression_opts=words, fillvalue=fill)
            f.flush()
            ratios.append(x.nbytes / d.id.get_storage_size())
        with h5py.File(out) as f:
            y = f["v"][...]
        count += 1
        try:
            worst = max(worst, judge.check_chunks(x, y, chunk, mode, value, fill))
        except AssertionError as e:
            broken.append(f"{path.stem} {words}: {e}")
    return count, broken, worst, ratios


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+", type=Path)
    p.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / f"bound.{os.getpid()}.h5")
    a = p.parse_args()
    files = [f for q in a.paths for f in (sorted(q.glob("*.h5")) if q.is_dir() else [q])]
    total, violations = 0, []
    for f in files:
        begin = time.time()
        count, broken, worst, ratios = judge_field(f, a.out)
        total += count
        violations += broken
        print(f"{f.stem:<20} {count:3d} plans, {len(broken)} violations, largest error/bound {worst:.6f}, "
              f"ratio {min(ratios):.2f} to {max(ratios):.2f}, {time.time() - begin:.0f} s", flush=True)  # fmt: skip
    a.out.unlink(missing_ok=True)
    print(f"{len(files)} fields, {total} files, {len(violations)} violations")
    print(*violations, sep="\n")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
