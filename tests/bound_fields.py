#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes fields through the filter at many bounds, reads them back, and judges every value in exact arithmetic.

    bound_fields.py FILE-OR-FOLDER... [--out FILE] [--codec C]...

A field is an HDF5 file with one dataset `data`; an attribute `fill` is declared as fill value. Bounds: relative to each
chunk's range 1e-2 to 1e-6, absolute ones from 1e-2 to 1e-6 of the field's range (rounded to two digits) and fixed
ones, point-wise relative 1e-2 and 1e-4, PSNR 40 and 100 dB, and lossless. Codecs: 0 the writer's choice, 1 szx, 2
lorenzo, 3 ndzip; all of them unless some are named. What lorenzo gives back under an absolute bound is written again:
every chunk that is whole must keep its values. Needs HDF5_PLUGIN_PATH. Prints one line a field; the exit status is 1
where a promise is broken.
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
import judge


def two_digits(value):
    """(DDEE, the double it stands for) near `value`; None outside the packed form."""
    if not (math.isfinite(value) and 1e-78 < value < 9e18):
        return None
    mantissa, exponent = f"{value:.1e}".split("e")
    e = int(exponent)
    digits = int(mantissa.replace(".", ""))
    return digits * 100 + (-e if e <= 0 else 80 + e), float(f"{mantissa}e{e}")


def plans(x, fill, codecs):
    """(words, mode, value) to try."""
    values = x[~judge.exact(x, fill)].astype(float)
    with np.errstate(over="ignore"):
        span = float(values.max() - values.min()) if values.size else 0.0
    wanted = [span * 10.0**-e for e in (2, 3, 4, 6)] + [1e-3, 0.5, 1e2]
    # A double that no packed number stands for.
    low, high = np.array([span / 3000 if 0 < span < math.inf else 1 / 3]).view(np.uint32)
    for codec in sorted(codecs & {0, 1, 2}):
        c = codec * 100_000
        for e in range(2, 7):
            yield (c + 21000 + e,), "rel", float(f"1e-{e}")
        # The writer's choice is one of the two.
        for w in wanted if codec else [span * 1e-3]:
            if p := two_digits(w):
                yield (c + 10000 + p[0],), "abs", p[1]
        if codec == 0:
            continue
        yield (codec * 10 + 1, int(low), int(high)), "abs", float(np.array([low, high]).view(float)[0])
        for e in (2, 4):
            yield (c + 31000 + e,), "pw_rel", float(f"1e-{e}")
        for db in (40, 100):
            yield (c + 40000 + db * 10,), "psnr", float(db)
    for codec in sorted(codecs & {0, 3}):
        yield (codec * 100_000 + 90000,), "lossless", 0.0


def chunk_of(shape, itemsize):
    """Chunks of about 1 MiB that do not divide the extents."""
    chunk = list(shape)
    while np.prod(chunk) * itemsize > 1 << 20:
        i = int(np.argmax(chunk))
        chunk[i] = chunk[i] * 3 // 5
    return tuple(chunk)


def there_and_back(x, chunk, words, fill, out):
    """(what comes back, the bytes that were stored)"""
    with h5py.File(out, "w") as f:
        d = f.create_dataset("v", data=x, chunks=chunk, compression=443, compression_opts=words, fillvalue=fill)
        f.flush()
        stored = d.id.get_storage_size()
    with h5py.File(out) as f:
        return f["v"][...], stored


def kept(y, chunk, words, fill, out):
    """Raises AssertionError unless whole chunks that came back once come back the same again."""
    z, _ = there_and_back(y, chunk, words, fill, out)
    for s in judge.chunks(y.shape, chunk):
        if y[s].shape == chunk:
            judge.check(y[s], z[s], "lossless")


def judge_field(path, codecs, out):
    """(number of plans, violations, the largest error over the bound, the best and worst ratio)"""
    with h5py.File(path) as f:
        x = f["data"][...]
        fill = f["data"].attrs.get("fill")
    chunk = chunk_of(x.shape, x.itemsize)
    count, broken, worst, ratios = 0, [], 0.0, []
    for words, mode, value in plans(x, fill, codecs):
        y, stored = there_and_back(x, chunk, words, fill, out)
        ratios.append(x.nbytes / stored)
        count += 1
        try:
            worst = max(worst, judge.check_chunks(x, y, chunk, mode, value, fill))
            if mode == "abs" and words[0] // (10 if len(words) == 3 else 100_000) == 2:
                kept(y, chunk, words, fill, out)
        except AssertionError as e:
            broken.append(f"{path.stem} {words}: {e}")
    return count, broken, worst, ratios


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+", type=Path)
    p.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / f"bound.{os.getpid()}.h5")
    p.add_argument("--codec", type=int, choices=range(4), action="append")
    a = p.parse_args()
    codecs = set(a.codec or range(4))
    files = [f for q in a.paths for f in (sorted(q.glob("*.h5")) if q.is_dir() else [q])]
    total, violations = 0, []
    for f in files:
        begin = time.time()
        count, broken, worst, ratios = judge_field(f, codecs, a.out)
        total += count
        violations += broken
        print(f"{f.stem:<20} {count:3d} plans, {len(broken)} violations, largest error/bound {worst:.6f}, "
              f"ratio {min(ratios):.2f} to {max(ratios):.2f}, {time.time() - begin:.0f} s", flush=True)
    a.out.unlink(missing_ok=True)
    print(f"{len(files)} fields, {total} files, {len(violations)} violations")
    print(*violations, sep="\n")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
