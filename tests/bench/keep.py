#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What it costs to keep signs, zeros and the range beside a bound, and compression-safeguards beside it. Two tables.

    keep.py FOLDER... [--rel 1e-2 1e-3] [--beside wind ...] [--most 4e6] [--rounds 2] [--page PAGE.md]

Fields are the floats of FOLDER/*.h5, real and computed, the first --most bytes of each as one chunk; a value that
stands for missing data is declared. The bound is absolute, a part of the range of measured values. *Cost* is the ratio
under a promise over that of the bound alone, as `auto` writes it; every chunk is judged, in exact arithmetic.

Beside it, on the fields named, stand the safeguards alone (their codec `zero`) and around SZ3, which pysz codes in
machine code. They are asked for the same: the absolute bound; for `sign` their sign; for `zero` the same 0 and -0; for
`range` no sign beyond the next number below and above, and the ends, 0 and -0 the same. Coders take turns on one core,
by CPU time; what each decodes is judged by both checkers.
"""
import argparse
import datetime
import os
import time
from importlib.metadata import version
from pathlib import Path

import h5py
import h5z_gpu
import numpy as np
from compare_lossless_page import section
from compare_page import processor
from compare_trajectories import sz3
from h5z_gpu.judge import Promise, judge
from ours import mean

KEEP = ("sign", "zero", "range")
BESIDE = ("wind", "turbulence", "wave", "relief", "ice", "land_fraction", "levels_zonal_wind", "relative_humidity")


def fields(folders, most):
    """Name, values, fill value or None, range of the other values."""
    for path in (p for folder in folders for p in sorted(folder.glob("*.h5")) if not p.stem.startswith("nasty")):
        with h5py.File(path) as f:
            x, about = f["data"][...], dict(f["data"].attrs)
        if x.dtype.kind != "f" or about.get("group", "floats, real") != "floats, real":
            continue
        x = np.ascontiguousarray(x[: max(1, int(most // (x.nbytes / x.shape[0])))])
        far = x[np.isfinite(x) & ((abs(x) > 1e9) | (x == -9999))]
        fill = about.get("missing", far[0] if far.size else None)
        measured = x[np.isfinite(x) & (x != fill)]
        yield path.stem, x, fill, float(measured.max()) - float(measured.min())


def ours(keep, bound, fill):
    how = h5z_gpu.Lossy(absolute=bound, keep=keep)
    return (lambda x: h5z_gpu.compress(x, how, fill),
            lambda frame, x: h5z_gpu.decompress(frame, x.dtype, x.shape))  # fmt: skip


def broken(x, y, keep, bound, fill):
    """How many values break the bound or the promise."""
    bits = None if fill is None else int(np.array(fill, x.dtype).view(f"u{x.itemsize}"))
    return judge(x, y, Promise("absolute", bound, fill=bits, keep=(keep,) if keep else ())).found.broken


def costs(x, fill, bound):
    """{promise: ratio}, "" for the bound alone."""
    out = {}
    for keep in ("", *KEEP):
        encode, decode = ours(keep, bound, fill)
        frame = encode(x)
        assert not broken(x, decode(frame, x), keep, bound, fill), (keep, bound)
        out[keep] = x.nbytes / len(frame)
    return out


def safeguards(x, keep, bound):
    """The promise in their words."""
    same = lambda *values: [{"kind": "same", "value": float(v)} for v in values]
    ends = x[x != 0].min(), x[x != 0].max()  # +0 stretches no range: HDF5 pads chunks with it
    return [{"kind": "eb", "type": "abs", "eb": bound}] + {
        "sign": [{"kind": "sign"}], "zero": same(0.0, -0.0),
        "range": [{"kind": "sign", "offset": float(np.nextafter(e, x.dtype.type(to)))}
                  for e, to in zip(ends, (-np.inf, np.inf))] + same(*ends, 0.0, -0.0),
    }[keep]  # fmt: skip


def theirs(inner, x, keep, bound):
    from numcodecs.abc import Codec
    from numcodecs.compat import ndarray_copy
    from numcodecs_safeguards import SafeguardedCodec
    from numcodecs_zero import ZeroCodec

    class Sz3(Codec):
        codec_id = "sz3-by-pysz"
        code = sz3(1)

        def encode(self, buf):
            return self.code[0](buf, bound)[0]

        def decode(self, buf, out=None):
            return ndarray_copy(self.code[1]([np.frombuffer(buf, np.uint8)], x), out)

        def get_config(self):
            return {"id": self.codec_id}

    codec = SafeguardedCodec(codec=ZeroCodec() if inner == "zero" else Sz3(), safeguards=safeguards(x, keep, bound))
    return codec.encode, lambda frame, x: codec.decode(frame, out=np.empty_like(x))


def beside(x, keep, bound, rounds):
    """{coder: (ratio, CPU seconds to encode, to decode, values broken by ours, whether their checker is content)}"""
    from compression_safeguards import Safeguards

    coders = {"h5z-gpu": ours(keep, bound, None), "safeguards": theirs("zero", x, keep, bound),
              "safeguards, SZ3": theirs("SZ3", x, keep, bound)}
    out, check = {}, Safeguards(safeguards=safeguards(x, keep, bound)).check
    for _ in range(rounds):
        for name, (encode, decode) in coders.items():
            t0 = time.process_time()
            frame = encode(x)
            t1 = time.process_time()
            y = decode(frame, x)
            t2, before = time.process_time(), out.get(name, (0, np.inf, np.inf))
            out[name] = (x.nbytes / len(frame), min(t1 - t0, before[1]), min(t2 - t1, before[2]),
                         broken(x, y, keep, bound, None), check(x, y))
    return out


def cost_table(found, bounds, most):
    """Ratio under a promise over that of the bound alone."""
    yield (f"{len(found) // len(bounds)} real and computed fields, up to {most / 1e6:.0f} MB of each as one chunk by "
           f"`auto`, bounds as parts of the range of measured values, {datetime.date.today()}: ratio under a promise "
           "over that of the bound alone. Mean, median, and on how many fields it is below 0.9, the least first.\n")
    yield f"| promise | {' | '.join(f'{r:g}' for r in bounds)} |\n|---|{'---|' * len(bounds)}"
    for keep in KEEP:
        shown = []
        for rel in bounds:
            part = {name: c[keep] / c[""] for (name, r), c in found.items() if r == rel}
            low = [n for n in sorted(part, key=part.get) if part[n] < 0.9]
            few = "; ".join(f"{n.replace('_', ' ')} {part[n]:.2f}" for n in low[:4])
            shown.append(f"**{np.mean(list(part.values())):.3f}**, {np.median(list(part.values())):.3f}, {len(low)}"
                         + f": {few}" * bool(low))
        yield f"| `{keep}` | {' | '.join(shown)} |"


def beside_table(found, rounds):
    """`found` is {(field, bound, promise): what `beside` says}."""
    names = list(next(iter(found.values())))
    yield (f"\n{', '.join(dict.fromkeys(n.replace('_', ' ') for n, _, _ in found))}; one core of {processor()} by CPU "
           f"time, fastest of {rounds}; "
           + ", ".join(f"{p} {version(p)}" for p in ("compression-safeguards", "numcodecs-safeguards", "pysz"))
           + ". Means are geometric. *Broken*: values by our judge, arrays by their checker, of all coders.\n")
    yield f"| promise, bound | {' | '.join(f'{n}: ratio' for n in names)} | write, time over ours | read | broken |"
    yield f"|---|{'---|' * len(names)}---|---|---|"
    for keep, rel in dict.fromkeys((k, r) for _, r, k in found):
        here = [c for (_, r, k), c in found.items() if (k, r) == (keep, rel)]
        ratios = [f"{mean([c[n][0] for c in here]):.2f}" for n in names]
        times = [", ".join(f"{mean([c[n][k] / c[names[0]][k] for c in here]):.0f}" for n in names[1:]) for k in (1, 2)]
        values, arrays = sum(c[n][3] for c in here for n in names), sum(not c[n][4] for c in here for n in names)
        yield f"| `{keep}`, {rel:g} | {' | '.join(ratios)} | {' | '.join(times)} | {values}, {arrays} |"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--rel", nargs="+", type=float, default=[1e-2, 1e-3])
    a.add_argument("--beside", nargs="*", default=BESIDE, help="fields for compression-safeguards; none leaves it out")
    a.add_argument("--most", type=float, default=4e6)
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--page", type=Path, help="a page whose section `What keep costs` is written anew")
    a = a.parse_args()
    os.environ |= {"H5Z_GPU_DEVICE": "cpu", "H5Z_GPU_THREADS": "1", "OMP_NUM_THREADS": "1"}
    cost, found = {}, {}
    for name, x, fill, width in fields(a.folders, a.most):
        for rel in a.rel:
            cost[name, rel] = costs(x, fill, rel * width)
            print(name, rel, *(f"{k or 'bound'} {v:.3f}" for k, v in cost[name, rel].items()), flush=True)
            for keep in KEEP if name in a.beside else ():
                found[name, rel, keep] = beside(x, keep, rel * width, a.rounds)
                print(name, rel, keep, found[name, rel, keep], flush=True)
    lines = [*cost_table(cost, a.rel, a.most), *(beside_table(found, a.rounds) if found else ())]
    text = "\n".join(lines) + "\n"
    if a.page:
        section(a.page, "### What keep costs", text)
    print(f"\n{text}")


if __name__ == "__main__":
    main()
