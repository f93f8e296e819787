# SPDX-License-Identifier: MIT OR Apache-2.0
"""ClimateBenchPress on our fields: climate.py CLONE [--only 10u ...] [--without ebcc ...]

CLONE is a clone of ClimateBenchPress/compressor whose packages are installed, and h5py. It needs Python 3.12; on 3.11
take `deprecated<1.3`, and the word `type` away from the aliases in its compressors/abc.py. Its own `compress` runs each
compressor that it has, as its authors have set it, and examples/climate_bench_press.py beside them: whole fields, one
core, one call, its clock.

Its data cannot be downloaded everywhere. In place of each of its variables stands the field of `make compare` that is
nearest, with missing values as NaN and the kind of bound that the variable has there. Bounds are those of its rules
that need no table: 10^-4, 10^-3 and 10^-2 of the range, and relative ones as for NO2: 2^-12, 2^-5 and 2^-3. A cell is
passed by its test `ErrorBound` and, besides, by |x' - x| <= bound in long double with NaN in the same places.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

from climate_page import by_cell, by_compressor

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120  # seconds for a field, a bound and a compressor
# Its variable: our field, its axes, and the kind of bound.
FIELDS = {
    "10u": ("full/wind", "TYX", "abs_error"), "10v": ("lossless/levels_meridional_wind", "ZYX", "abs_error"),
    "agb": ("lossless/land_fraction", "YX", "rel_error"), "msl": ("lossless/ship_pressure", "TYX", "abs_error"),
    "no2": ("lossless/icosahedra_vapour", "YX", "rel_error"), "pr": ("lossless/icosahedra_rain", "YX", "rel_error"),
    "q": ("lossless/ship_humidity", "TYX", "rel_error"), "rlut": ("lossless/infrared_at_sea", "TYX", "abs_error"),
    "ta": ("lossless/levels_temperature_2", "ZYX", "abs_error"), "tos": ("lossless/ostia", "TYX", "abs_error"),
}
ICOSAHEDRA = (128, 160)  # 20,480 cells in the order of the file, for coders that take no array of one axis


def values(path):
    with h5py.File(path) as f:
        x = f["data"][...].astype("f4")
    x = x.reshape(ICOSAHEDRA) if x.ndim == 1 else x
    return np.where(np.abs(x) >= 1e20, np.float32("nan"), x)


def prepare(out, only):
    """What its data loader and its create_error_bounds leave, a folder for each bound: the field with five axes."""
    import xarray
    from climatebenchpress.compressor.scripts.create_error_bounds import get_no2_bounds

    for name, (field, axes, kind) in FIELDS.items():
        if only and name not in only:
            continue
        x = values(ROOT / f"target/fields/{field}.h5")
        shape = [x.shape[axes.index(a)] if a in axes else 1 for a in "ETZYX"]
        coordinates = {a: (a, np.arange(n), {"axis": a}) for a, n in zip("ETZYX", shape)}
        ds = xarray.Dataset({name: (tuple("ETZYX"), x.reshape(shape))}, coordinates)
        width = float(np.nanmax(x)) - float(np.nanmin(x))
        absolute = [{"abs_error": part * width, "rel_error": None} for part in (1e-4, 1e-3, 1e-2)]
        for k, bound in enumerate(absolute if kind == "abs_error" else get_no2_bounds()):
            ds.to_zarr(out / f"datasets/{name}-{k}/standardized.zarr", encoding={name: {"chunks": shape}})
            place = out / f"datasets-error-bounds/{name}-{k}"
            place.mkdir(parents=True)
            (place / "error_bounds.json").write_text(json.dumps([{name: bound}]))


def run(out, without):
    """Each cell in a process of its own: some compressors end theirs, some do not end."""
    from climatebenchpress.compressor.compressors.abc import Compressor
    from climatebenchpress.compressor.scripts.compress import compress

    for dataset in sorted(p.name for p in (out / "datasets").iterdir()):
        for compressor in sorted(set(Compressor.registry) - set(without)):
            how = {"basepath": out, "progress": False, "include_dataset": [dataset], "include_compressor": [compressor]}
            p = multiprocessing.get_context("fork").Process(target=compress, kwargs=how)
            p.start()
            p.join(LIMIT)
            p.kill()
            p.join()
            if p.exitcode:
                print(f"{dataset}, {compressor}: ended by signal {-p.exitcode}", flush=True)


def exact(x, y, kind, bound):
    """Whether every value is within its bound, and NaN where it was."""
    with np.errstate(invalid="ignore"):  # NaN that signal
        x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    limit = bound * (np.abs(x) if kind == "rel_error" else 1)
    return bool(((np.abs(y - x) <= limit) | (np.isnan(x) & np.isnan(y))).all())


def judge(out):
    """What became of each field, bound and compressor."""
    import xarray
    from climatebenchpress.compressor.scripts.compute_metrics import parse_error_bounds
    from climatebenchpress.compressor.tests import ErrorBound

    for place in sorted((out / "compressed-datasets").glob("*/*/*")):
        dataset, level, compressor = place.relative_to(out / "compressed-datasets").parts
        ((name, (kind, bound)),) = parse_error_bounds(level).items()
        cell = {"cell": dataset, "bound": f"{kind[:3]} {bound:.3g}", "by": compressor.split("-conservative")[0]}
        if not (place / "measurements.json").exists():
            yield cell | {"passed": None}
            continue
        m = json.loads((place / "measurements.json").read_text())[name]
        x, y = (xarray.open_zarr(p, chunks=None)[name].load()
                for p in (out / f"datasets/{dataset}/standardized.zarr", place / "decompressed.zarr"))
        passed = ErrorBound(kind, bound)(x, y)[0] and exact(x.values, y.values, kind, bound)
        yield cell | {"passed": passed, "ratio": m["decoded_bytes"] / m["encoded_bytes"],
                      "mb": m["decoded_bytes"] / 1e6, "encode": m["encode_timing"], "decode": m["decode_timing"]}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("clone", type=Path)
    a.add_argument("--out", type=Path, default=ROOT / "target/climate")
    a.add_argument("--only", nargs="+", help="these variables alone")
    a.add_argument("--without", nargs="+", default=[], help="compressors that are left out")
    a.add_argument("--again", action="store_true", help="tables of what was measured last")
    a = a.parse_args()
    sys.path[:0] = [str(a.clone / "src"), str(ROOT / "examples")]
    os.environ["H5Z_GPU_DEVICE"] = "cpu"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import climate_bench_press  # noqa: F401  # it registers itself

    if not a.again:
        shutil.rmtree(a.out, ignore_errors=True)
        prepare(a.out, a.only)
        run(a.out, a.without)
    cells = list(judge(a.out))
    (a.out / "cells.json").write_text(json.dumps(cells, indent=1))
    print(*by_cell(cells), *by_compressor(cells), sep="\n")


if __name__ == "__main__":
    main()
