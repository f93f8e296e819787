#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Our filter without loss beside those of hdf5plugin, gzip, pcodec and OpenZL, on one core: ratio and speed.

    compare_lossless.py FOLDER... [--out target/compare] [--rounds 2] [--most 17e6] [--only SET...]
    [--page docs/measurements.md] [--detectors docs/detectors.md] [--again]

Sets are FOLDER/*.h5 with a dataset `data`: those of tests/fields/lossless.py, and floats of tests/fields/make.py that
are neither `nasty` nor one of those again. The first --most bytes are taken, along the slowest axis. Each set is
written as one chunk and in chunks of about 1 MiB along its slowest axis; frames of a detector have a chunk each there.
Files lie in memory (HDF5's core driver); pcodec and OpenZL have no filter and get the same chunks as arrays. Times are
CPU time of a process that has one core, fastest of all rounds, filters taking turns: other work on the machine disturbs
them little. MB = 10^6 bytes of raw data. Every value is compared, bit by bit.

OpenZL is not trained: it tries its general graph with and without differences and keeps the smaller; the time is of
both. What was measured is kept in OUT/lossless.json, and --again makes tables of it without measuring.
"""
import argparse
import datetime
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compare import Runner
from compare_lossless_page import detectors, section, whole_page

ROOT = Path(__file__).resolve().parents[2]
OURS = "h5z-gpu"
# Those without a filter for HDF5 are functions below.
FILTERS = (OURS, "pcodec 8", "pcodec 12", "OpenZL", "Blosc2, shuffle + zstd 5", "Blosc2, bitshuffle + zstd 5",
           "Bitshuffle + zstd", "Bitshuffle + LZ4", "shuffle + gzip 4")
# Fields of make.py that hold the same values as another set.
TWICE = ("ocean_undeclared", "sea_level")
CHUNK = 1 << 20
WAYS = ("whole", "chunks")


class Set(NamedTuple):
    values: np.ndarray
    about: dict


def load(path, most):
    """The first `most` bytes of a set, and what is said of it."""
    import h5py

    with h5py.File(path) as f:
        d = f["data"]
        x, attributes = d[...], dict(d.attrs)
    x = np.ascontiguousarray(x[: max(1, int(most // (x.nbytes / x.shape[0])))])
    computed = str(attributes["source"]).startswith("computed")
    return Set(x, {"title": str(attributes.get("title", path.stem.replace("_", " "))),
                   "group": str(attributes.get("group", "floats, models" if computed else "floats, real")),
                   "frames": bool(attributes.get("frames", False)), "computed": computed,
                   "type": f"{x.dtype.kind}{8 * x.itemsize}", "shape": list(x.shape)})


def chunk_of(x, frames, way):
    """The extents of a chunk."""
    if way == "whole":
        return x.shape
    return (1 if frames else min(x.shape[0], max(1, CHUNK // (x.nbytes // x.shape[0]))), *x.shape[1:])


def options(name):
    """What h5py's create_dataset takes for a filter."""
    import hdf5plugin

    if name == OURS:
        return {"compression": 443, "compression_opts": (90000,)}
    if name == "shuffle + gzip 4":
        return {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    return dict({
        "Blosc2, shuffle + zstd 5": lambda: hdf5plugin.Blosc2(cname="zstd", clevel=5,
                                                              filters=hdf5plugin.Blosc2.SHUFFLE),
        "Blosc2, bitshuffle + zstd 5": lambda: hdf5plugin.Blosc2(cname="zstd", clevel=5,
                                                                 filters=hdf5plugin.Blosc2.BITSHUFFLE),
        "Bitshuffle + zstd": lambda: hdf5plugin.Bitshuffle(cname="zstd"),
        "Bitshuffle + LZ4": lambda: hdf5plugin.Bitshuffle(cname="lz4"),
    }[name]())


def pcodec(level):
    """Functions that compress an array and decompress it."""
    from pcodec import ChunkConfig, standalone

    how = ChunkConfig(compression_level=level, enable_8_bit=True)
    return lambda a: standalone.simple_compress(a, how), standalone.simple_decompress


def openzl():
    from openzl import ext as zl

    compressor = zl.Compressor()
    general = zl.graphs.Compress()(compressor)
    differences = zl.nodes.DeltaInt()(compressor, general)
    compressor.select_starting_graph(zl.graphs.BruteForce([general, differences])(compressor))
    coder = zl.CCtx()
    coder.ref_compressor(compressor)
    coder.set_parameter(zl.CParam.StickyParameters, 1)
    coder.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
    return (lambda a: coder.compress([zl.Input(zl.Type.Numeric, a.view(f"u{a.itemsize}"))]),
            lambda frame: zl.DCtx().decompress(frame)[0].content.as_nparray())


WITHOUT_FILTER = {"pcodec 8": lambda: pcodec(8), "pcodec 12": lambda: pcodec(12), "OpenZL": openzl}


def without_hdf5(x, chunk, compress, decompress):
    """(seconds to write, to read, stored bytes, what was read)"""
    parts = [np.ascontiguousarray(x[k : k + chunk[0]]).reshape(-1) for k in range(0, x.shape[0], chunk[0])]
    out = np.empty_like(x)
    t0 = time.process_time()
    frames = [compress(part) for part in parts]
    t1 = time.process_time()
    at, flat = 0, out.reshape(-1)
    for frame in frames:
        part = np.asarray(decompress(frame)).view(x.dtype)
        flat[at : at + part.size] = part
        at += part.size
    return t1 - t0, time.process_time() - t1, sum(map(len, frames)), out


def through_hdf5(x, chunk, how):
    """The same, and what is stored of each chunk."""
    import h5py

    out = np.empty_like(x)
    # HDF5 keeps one chunk in its cache; the room is made too small for any, so that all are decoded.
    with h5py.File(f"lossless.{os.getpid()}.h5", "w", driver="core", backing_store=False, rdcc_nbytes=0) as f:
        t0 = time.process_time()
        d = f.create_dataset("v", data=x, chunks=chunk, **how)
        f.flush()
        t1 = time.process_time()
        d.read_direct(out)
        t2 = time.process_time()
        frames = [d.id.read_direct_chunk(d.id.get_chunk_info(k).chunk_offset)[1]
                  for k in range(d.id.get_num_chunks())]
        return t1 - t0, t2 - t1, d.id.get_storage_size(), out, frames


def codec_names():
    """Names of the codecs by their number in a frame, from the reader that is written from the format's document."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "plugin/python/h5z_gpu/reference.py")
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    return [codec[0] for codec in reader.CODECS]


def measure(name, path, most, way):
    """One round of one filter on one set."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    x, about = load(path, most)
    chunk, codecs = chunk_of(x, about["frames"], way), {}
    if name in WITHOUT_FILTER:
        write, read, size, out = without_hdf5(x, chunk, *WITHOUT_FILTER[name]())
    else:
        write, read, size, out, frames = through_hdf5(x, chunk, options(name))
        if name == OURS:
            codecs = Counter(codec_names()[frame[9]] for frame in frames)
    assert out.tobytes() == x.tobytes(), f"{name} lost values of {path.stem}"
    return {"ratio": x.nbytes / size, "write": x.nbytes / write / 1e6, "read": x.nbytes / read / 1e6, "codecs": codecs}


def compare(paths, a):
    """{set: what is said of it, and for each way and filter what was measured, or why it was not}"""
    runners, found = {n: Runner() for n in FILTERS}, {}
    for path in paths:
        x, about = load(path, a.most)
        here = found[path.stem] = about | {way: {} for way in WAYS}
        for way in WAYS:
            if way == "chunks" and chunk_of(x, about["frames"], way) == x.shape:
                here[way] = here["whole"]
                continue
            for _ in range(a.rounds):
                for n in FILTERS:
                    got, before = runners[n](measure, n, path, a.most, way), here[way].get(n)
                    if n == OURS and not isinstance(got, dict):
                        sys.exit(f"{path.stem}, {n}: {got}")
                    if isinstance(got, dict) and isinstance(before, dict):
                        got |= {k: max(got[k], before[k]) for k in ("write", "read")}
                    here[way][n] = got
            print(path.stem, way, *(f"{n}: {r['ratio']:.2f} {r['write']:.0f} {r['read']:.0f}" if isinstance(r, dict)
                                    else f"{n}: {r}"[:80] for n, r in here[way].items()), sep="  ", flush=True)
    return found


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--out", type=Path, default=Path("target/compare"))
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--most", type=float, default=17e6)
    a.add_argument("--only", nargs="+", help="these sets alone")
    a.add_argument("--page", type=Path, help="a page whose section `Without loss` is written anew")
    a.add_argument("--detectors", type=Path, help="a page whose table of detectors is written anew")
    a.add_argument("--again", action="store_true", help="tables of what was measured last")
    a = a.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    kept = a.out / "lossless.json"
    if not a.again:
        os.environ |= {"H5Z_GPU_DEVICE": "cpu", "BLOSC_NTHREADS": "1", "OMP_NUM_THREADS": "1"}
        paths = [p for f in a.folders for p in sorted(f.glob("*.h5")) if not p.stem.startswith("nasty")
                 and p.stem not in TWICE and (not a.only or p.stem in a.only)]
        paths or sys.exit(f"no sets in {', '.join(map(str, a.folders))}: tests/fields/lossless.py makes some")
        assert len({p.stem for p in paths}) == len(paths), "two sets have one name"
        kept.write_text(json.dumps({"rounds": a.rounds, "most": a.most, "sets": compare(paths, a)}, indent=1))
    measured = json.loads(kept.read_text())
    measured["day"] = datetime.date.fromtimestamp(kept.stat().st_mtime).isoformat()
    text, table = whole_page(measured, FILTERS), detectors(measured, FILTERS)
    (a.out / "lossless.md").write_text(f"{text}\n{table}")
    if a.page:
        section(a.page, "### Without loss", text)
    if a.detectors:
        section(a.detectors, "## How small, how fast", table)
    print(f"\n{text}\n{table}\n{a.out}/lossless.md, {kept}")


if __name__ == "__main__":
    main()
