#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Our codecs beside nvCOMP's, on a GPU: from values in its memory to frames in host memory, and back. One table.

    compare_gpu.py FOLDER... [--out target/compare] [--rel 1e-3] [--rounds 5] [--most 256e6]

Fields are those of compare.py, of which the first --most bytes are taken; ours in chunks of about 4 MiB, nvCOMP's as
its Codec cuts them. The bound is a part of the range of each field's measured values, one absolute bound for all;
Bitcomp gets twice as much as its step. Rates are of raw data, GB = 10^9 bytes, whole calls, fastest of all rounds after
a first one; every result is judged.
"""
import argparse
import ctypes
import datetime
import json
import math
import sys
from pathlib import Path

import numpy as np

from compare import field, judged
from compare_page import mean

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "plugin/python"), str(TESTS / "gpu")]
import h5z_gpu
from arrays import best, decode, encode
from h5z_gpu.library import lib
from h5z_gpu.views import as_array

OURS = {"lorenzo": "lorenzo", "planes": "planes", "szx": "szx", "lossless": None}


def ours(codec, x, chunk, bound, rounds, there, here):
    """(seconds to compress, to decompress, stored bytes, what came back)"""
    how = h5z_gpu.Lossless() if codec is None else h5z_gpu.Lossy(absolute=bound, codec=codec)
    values, back = as_array(there(x)), there(np.zeros_like(x))
    frames = encode(values, how, chunk)
    w = best(rounds, lambda: encode(values, how, chunk))
    r = best(rounds, lambda: decode(frames, as_array(back), chunk))
    return w, r, sum(map(len, frames)), here(back)


def theirs(x, rounds, **codec):
    """The same by a codec of nvCOMP's."""
    from nvidia import nvcomp

    wait = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize
    codec, values = nvcomp.Codec(**codec), nvcomp.as_array(x).cuda()

    frame = codec.encode(values).cpu()
    array = codec.decode(frame.cuda(), x.dtype.str)
    w = best(rounds, lambda: codec.encode(values).cpu())
    r = best(rounds, lambda: (codec.decode(frame.cuda(), x.dtype.str), wait()))
    return w, r, frame.buffer_size, np.asarray(array.cpu()).view(x.dtype).reshape(x.shape)


def nvcomp_codecs(dtype, bound):
    """Name → options, of those that take such values."""
    from nvidia import nvcomp

    whole = {4: "<u4", 8: "<u8"}[dtype.itemsize]
    lossy = {"algorithm": "Bitcomp", "data_type": dtype.str, "mode": nvcomp.BitcompMode.BITCOMP_LOSSY_FP_TO_SIGNED,
             "delta": 2 * bound}
    found = {"Bitcomp, lossy": lossy, "Bitcomp": {"algorithm": "Bitcomp", "data_type": dtype.str},
             "Cascaded": {"algorithm": "Cascaded", "data_type": whole}, "LZ4": {"algorithm": "LZ4", "data_type": "|u1"},
             "GDeflate": {"algorithm": "GDeflate"}, "Zstd": {"algorithm": "Zstd"}}
    return found | ({"ANS": {"algorithm": "ANS", "data_type": "<f4"}} if dtype.itemsize == 4 else {})


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--out", type=Path, default=Path("target/compare"))
    a.add_argument("--rel", type=float, default=1e-3)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--most", type=float, default=256e6)
    a = a.parse_args()
    from nvidia import nvcomp

    there, here = lambda x: nvcomp.as_array(x).cuda(), lambda array: np.asarray(array.cpu())
    found, paths = {}, [p for f in a.folders for p in sorted(f.glob("*.h5")) if p.stat().st_size > 4e6]
    paths = [p for p in paths if not p.stem.startswith("nasty")]
    for path in paths:
        x, chunk, bound, _ = field(path, a.most, a.rel)
        if x.dtype not in (np.float32, np.float64):
            continue
        work = {f"h5z-gpu {name}": lambda codec=codec: ours(codec, x, chunk, bound, a.rounds, there, here)
                for name, codec in OURS.items()}
        others = nvcomp_codecs(x.dtype, bound)
        work |= {f"nvCOMP {name}": lambda how=how: theirs(x, a.rounds, **how) for name, how in others.items()}
        for name, run in work.items():
            try:
                w, r, stored, y = run()
                found.setdefault(name, []).append((x.nbytes / stored, x.nbytes / w / 1e9, x.nbytes / r / 1e9,
                                                   judged(x, y, bound)))
            except Exception as why:  # a codec that does not take a field
                print(f"{path.stem}, {name}: {why}", flush=True)
    lines = [f"{len(paths)} fields of up to {a.most / 1e6:.0f} MB, bound {a.rel:g} of each field's range; "
             f"{device_name()}, {datetime.date.today()}; nvCOMP {nvcomp.__version__}. Geometric means; fastest of "
             f"{a.rounds}.", "",
             "| codec | fields | ratio | compress, GB/s | decompress, GB/s | largest error over the bound |",
             "|---|---|---|---|---|---|"]
    for name, rows in found.items():
        ratio, w, r = (mean([row[i] for row in rows]) for i in range(3))
        over = max(row[3] for row in rows)
        said = "exact" if over == 0 else "values lost" if over == math.inf else f"{over:.4f}"
        lines.append(f"| {name} | {len(rows)} | {ratio:.2f} | {w:.1f} | {r:.1f} | {said} |")
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "compare_gpu.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines), f"\n{a.out}/compare_gpu.md")


def device_name():
    """The GPU's name."""
    text = ctypes.create_string_buffer(1 << 16)
    lib.h5z_gpu_status(text, ctypes.c_size_t(len(text)))
    return json.loads(text.value)["gpu"]


if __name__ == "__main__":
    main()
