#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error-bounded codecs beside their peers on whole fields: ratio, CPU time, largest error. Three tables.

    compare_peers.py FOLDER... [--rel 1e-2 1e-3 1e-4 1e-5] [--least 1e6] [--most 17e6] [--rounds 2]
    [--out target/compare] [--page PAGE.md]

Fields are the floats of FOLDER/*.h5 from --least bytes on, without those of which something is missing, for peers lose
it, without decimals and without ephemerides, which are tables of coefficients, four times as small by `dense`; of each
the first --most bytes along its slowest axis. Each coder gets a field as one chunk, in its own axes, under one absolute
bound, a part of the field's range. SZ3 is asked for by both of its algorithms for fields. SPERR takes two axes or more;
`swap` tells its filter that the last axis is the fastest. Everything is decoded and compared in long double.

The first table has, for each bound and peer, the geometric mean of the ratio of `dense` over the peer's, of the fields
that the peer took; of these means the least, which is that of the best single peer; and the mean over the best peer of
each cell. The last one has `lorenzo`, "auto" and `planes` beside SZ3 on the fields that are no models.
"""
import argparse
import datetime
import math
import os
from importlib.metadata import version
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
from compare_lossless_page import section
from compare_page import processor
from compare_trajectories import measure, ours, sz3
from ours import mean

OURS = "dense"
EPHEMERIDES = ("jupiter_f64", "mercury_f64", "moon_f64", "nutations_f64")
MODEL = " \\*"
MISSING = 1e9  # what stands for a missing value is larger or -9999


def sperr():
    def stored(x, bound):
        f = h5py.File("sperr", "w", driver="core", backing_store=False)
        if x.ndim < 2:
            raise ValueError("one axis")
        x = x.reshape(-1, *x.shape[-2:]) if x.ndim > 3 else x
        return f.create_dataset("v", x.shape, x.dtype, chunks=x.shape, **hdf5plugin.Sperr(absolute=bound, swap=True)), x

    def encode(x, bound):
        v, x = stored(x, bound)
        v[...] = x
        return [v.id.read_direct_chunk((0,) * v.ndim)[1]]

    def decode(frames, x):
        v, _ = stored(x, 1.0)  # the stream has the bound
        v.id.write_direct_chunk((0,) * v.ndim, frames[0])
        return v[...].reshape(x.shape)

    return encode, decode


CODERS = {OURS: ours(OURS, False), "SZ3": sz3(1), "SZ3, Lorenzo and regression": sz3(0), "SPERR": sperr()}
QUICK = {codec: ours(codec, False) for codec in ("lorenzo", "auto", "planes")}


def fields(folders, least, most):
    for path in (p for folder in folders for p in sorted(folder.glob("*.h5")) if not p.stem.startswith("nasty")):
        with h5py.File(path) as f:
            x, about = f["data"][...], dict(f["data"].attrs)
        group, made = about.get("group", "floats, real"), about.get("source", "").startswith("computed")
        if x.dtype.kind != "f" or x.nbytes < least or group != "floats, real" or path.stem in EPHEMERIDES:
            continue
        if not (np.isfinite(x) & (abs(x) < MISSING) & (x != -9999)).all():
            continue
        few = x[: max(1, int(most // (x.nbytes / x.shape[0])))]
        yield path.stem.replace("_", " ") + MODEL * made, np.ascontiguousarray(few)


def cells(x, bound, rounds):
    """{coder: what `measure` says, or None where it takes no such array}"""
    out = {}
    for name, coder in (CODERS | QUICK).items():
        try:
            out[name] = measure(coder, x, bound, rounds)
        except (OSError, ValueError) as why:
            out[name] = None
            print(f"{name}: {why}"[:200], flush=True)
    return out


def by_bound(found, bounds):
    """For each bound, `dense` over each peer."""
    peers = [n for n in CODERS if n != OURS]
    yield f"| bound | {' | '.join(f'over {n}' for n in peers)} | best single peer | best in each cell |"
    yield f"|---|{'---|' * len(peers)}---|---|"
    for rel, is_model in ((r, m) for m in (False, True) for r in bounds):
        here = [c for (field, r), c in found.items() if (r, field.endswith(MODEL)) == (rel, is_model)]
        if not here:
            continue
        over = {n: [c[OURS][0] / c[n][0] for c in here if c[n]] for n in peers}
        best = [c[OURS][0] / max(c[n][0] for n in peers if c[n]) for c in here]
        shown = [f"{mean(v):.3f} ({len(v)})" for v in over.values()]
        yield (f"| {rel:g}{', models' * is_model} | {' | '.join(shown)} | {min(map(mean, over.values())):.3f} "
               f"| {mean(best):.3f} |")
    for what, k in (("encode", 1), ("decode", 2)):
        speed = {n: f"{mean([c[n][k] for c in found.values() if c[n]]):.0f}" for n in CODERS}
        yield f"| {what}, MB/s | {' | '.join(speed[n] for n in peers)} | `dense`: {speed[OURS]} | |"
    most = {n: max(c[n][3] for c in found.values() if c[n]) for n in CODERS}
    many = {n: sum(c[n][3] > 1 for c in found.values() if c[n]) for n in CODERS}
    yield f"| largest error over the bound | {' | '.join(f'{most[n]:.4f} ({many[n]} cells over)' for n in peers)} " \
          f"| `dense`: {most[OURS]:.4f} | |"


def by_field(found, bounds):
    """Ratios, the largest bold."""
    names = ", ".join(CODERS)
    yield f"| field | {' | '.join(f'{r:g}: {names}' for r in bounds)} |"
    yield f"|---|{'---|' * len(bounds)}"
    for field in dict.fromkeys(f for f, _ in found):
        shown = []
        for rel in bounds:
            c = found[field, rel]
            here = [c[n] for n in CODERS]
            best = max(r[0] for r in here if r)
            shown.append(", ".join("–" if not r else f"**{r[0]:.4g}**" if r[0] == best else f"{r[0]:.4g}"
                                   for r in here))
        yield f"| {field} | {' | '.join(shown)} |"


def beside_sz3(found, bounds):
    """Ratio; MB/s of encoding, of decoding: geometric means."""
    names = "lorenzo", "SZ3", "auto", "planes"
    yield f"| bound | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    for rel in bounds:
        here = [c for (field, r), c in found.items() if r == rel and not field.endswith(MODEL)]
        means = {n: [mean([c[n][k] for c in here]) for k in range(3)] for n in names}
        exponent = f"{round(math.log10(rel))}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        yield f"| 10{exponent} | {' | '.join('{:.2f}; {:.0f}, {:.0f}'.format(*means[n]) for n in names)} |"
    over = max(c[n][3] for c in found.values() for n in QUICK)
    yield (f"\nThe largest error of ours is {over:.4f} of the bound. hdf5plugin's build of SZ3, in the table above, is "
           "slower.")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folders", nargs="+", type=Path)
    a.add_argument("--rel", nargs="+", type=float, default=[1e-2, 1e-3, 1e-4, 1e-5])
    a.add_argument("--least", type=float, default=1e6)
    a.add_argument("--most", type=float, default=17e6)
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--out", type=Path, default=Path("target/compare"))
    a.add_argument("--page", type=Path, help="a page whose sections of `dense` and of SZ3 are written anew")
    a = a.parse_args()
    os.environ |= {"H5Z_GPU_DEVICE": "cpu", "H5Z_GPU_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = {}
    for field, x in fields(a.folders, a.least, a.most):
        width = float(x.max()) - float(x.min())
        for rel in a.rel:
            found[field, rel] = cells(x, rel * width, a.rounds)
            print(field, rel, *(f"{n}: {r[0]:.3f}" for n, r in found[field, rel].items() if r), sep="  ", flush=True)
    all_, real = len({f for f, _ in found}), len({f for f, _ in found if not f.endswith(MODEL)})
    how = (f"fields of up to {a.most / 1e6:.0f} MB, each as one chunk; one core of {processor()} by CPU time, fastest "
           f"of {a.rounds}, {datetime.date.today()}; " + ", ".join(f"{p} {version(p)}" for p in ("hdf5plugin", "pysz")))
    about = (f"{all_} {how}. In brackets: how many fields; \\* is a model with a fixed seed. Ratio of `dense` over the "
             "peer's, geometric means:")
    lines = [about, "", *by_bound(found, a.rel), "", "Ratios, the largest bold:", "", *by_field(found, a.rel)]
    texts = {"### Dense beside SZ3 and SPERR": "\n".join(lines) + "\n"}
    about = (f"{real} real {how}. Bounds are parts of a field's range. Ratio; compress, decompress in MB/s: geometric "
             "means.")
    texts["### One core beside SZ3"] = "\n".join([about, "", *beside_sz3(found, a.rel)]) + "\n"
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "peers.md").write_text("\n".join(texts.values()))
    for heading, text in texts.items():
        if a.page:
            section(a.page, heading, text)
        print(f"\n{text}")
    print(f"\n{a.out}/peers.md")


if __name__ == "__main__":
    main()
