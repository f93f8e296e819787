# SPDX-License-Identifier: MIT OR Apache-2.0
"""Changes bytes of HDF5's own tables, gives the files to `h5z-gpu recover`, and judges what it says by what the files
held.

python tests/hosts/damaged_tables.py COUNT [FIRST]: COUNT files from number FIRST on; prints outcomes, and what was
wrong.
"""
import collections
import contextlib
import io
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import h5py
import netCDF4
import numpy as np

import h5z_gpu
from h5z_gpu.cli import main
from h5z_gpu.netcdf import def_filter

KINDS = ("plain", "latest", "netCDF")
# Nothing checks values without a filter, or where they are. Headers of "plain" objects have no checksum either: what is
# there and nowhere else cannot be known, such as attributes, extents, and what datasets without this filter are.
UNKNOWN = ("/piece", "/zip", "/time", "/lat", "/lon")
_LIMIT = 60  # seconds for one file, hangs of HDF5 included


def values(shape, kind, seed):
    x = np.cumsum(np.random.default_rng(seed).normal(0, 1, shape), 0) + 1000
    return (x * 10).astype(kind) if np.dtype(kind).kind == "i" else x.astype(kind)


def make(path, kind):
    """A file of one kind: several variables, groups, attributes, each index of chunks that HDF5 has for it."""
    if kind == "netCDF":
        with netCDF4.Dataset(path, "w") as ds:
            for name, n in (("time", None), ("lat", 30), ("lon", 40)):
                ds.createDimension(name, n)
            for name, n in (("time", 20), ("lat", 30), ("lon", 40)):
                v = ds.createVariable(name, "f8", (name,))
                v[:], v.units = np.arange(n), "degrees of something"
            for k, name in enumerate(("tas", "pr")):
                v = ds.createVariable(name, "f4", ("time", "lat", "lon"), chunksizes=(5, 10, 20), fill_value=-999.0)
                def_filter(v, h5z_gpu.Lossy(absolute=1e-3) if k else h5z_gpu.Lossless())
                v[:], v.units, v.long_name = values((20, 30, 40), "f4", k), "K", "a longer name of a variable"
            v = ds.createGroup("g").createVariable("w", "f4", ("lat", "lon"), chunksizes=(10, 10))
            def_filter(v, h5z_gpu.Lossless())
            v[:] = values((30, 40), "f4", 5)
            ds.title = "damaged tables"
        return
    latest = {"libver": "latest"} if kind == "latest" else {}
    with h5py.File(path, "w", **latest) as f:
        f.attrs["title"] = "damaged tables"
        f.create_dataset("d", data=values((60, 40), "f4", 1), chunks=(10, 10), **h5z_gpu.Lossless())
        g = f.create_group("group")
        f.create_dataset("group/e", data=values((30, 30), "f8", 2), chunks=(8, 8), fillvalue=-1.0, maxshape=(None, 30),
                         **h5z_gpu.Lossy(absolute=0.01))
        f.create_dataset("group/deep/s", data=values((40, 40), "i4", 3), chunks=(10, 20), maxshape=(None, None),
                         shuffle=True, **h5z_gpu.Lossless())
        f.create_dataset("zip", data=values((40, 40), "f4", 4), chunks=(20, 20), compression="gzip", fletcher32=True)
        part = f.create_dataset("part", shape=(64, 64), dtype="f4", chunks=(16, 16), **h5z_gpu.Lossless())
        part[:16] = values((16, 64), "f4", 5)
        f["piece"] = values((100,), "f8", 6)
        f["d"].attrs["units"], f["d"].attrs["range"] = "K", np.arange(6.0)
        g.attrs["history"] = "made, and made again"
        f["soft"] = h5py.SoftLink("/d")


def places(path):
    """The bytes that may be changed: all but stored values. Those that are not zero come first, with how many they
    are."""
    data = path.read_bytes()
    free = np.ones(len(data), bool)

    def exclude(_, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.chunks is None:
            if item.id.get_offset() is not None:
                free[item.id.get_offset() : item.id.get_offset() + item.id.get_storage_size()] = False
            return
        item.id.chunk_iter(lambda c: free.__setitem__(slice(c.byte_offset, c.byte_offset + c.size), False))

    with h5py.File(path) as f:
        f.visititems(exclude)
    for heap in (m.start() for m in re.finditer(b"GCOL", data)):  # texts of any length
        free[heap : heap + int.from_bytes(data[heap + 8 : heap + 16], "little")] = False
    at = np.flatnonzero(free)
    used = np.frombuffer(data, np.uint8)[at] != 0
    return at[used].tolist(), at[~used].tolist()


def held(path):
    """What a file holds: values of each dataset, and attributes of each object."""
    found = {}

    def look(name, item):
        found["/" + name] = (item[()] if isinstance(item, h5py.Dataset) else None, attributes(item), False)

    with h5py.File(path) as f:
        found["/"] = (None, attributes(f), False)
        f.visititems(look)
    return found


def attributes(item):
    return {k: np.asarray(v).tolist() for k, v in item.attrs.items() if k not in ("DIMENSION_LIST", "REFERENCE_LIST")}


def change(data, spots, number):
    """Some bytes of a file, changed."""
    rng, changed, where = random.Random(number), bytearray(data), []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.choice(spots[0] if rng.random() < 0.8 else spots[1])
        changed[at] = rng.randrange(256) if rng.random() < 0.3 else changed[at] ^ 1 << rng.randrange(8)
        where.append(at)
    return bytes(changed), where


def recovered(source, out):
    text, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(err):
        status = main(["recover", str(source), str(out), "--json", "--limit", "3"])
    if status == 2:
        return status, err.getvalue(), []
    told = json.loads(text.getvalue())
    return status, told["lost"], told["notes"]


def judged(source, out, good):
    """The outcome for one file, and what is wrong about it."""
    status, lost, notes = recovered(source, out)
    if status == 2:
        return "nothing to take", "" if not out.exists() and lost.count("\n") == 1 else f"status 2: {lost}"
    if (status == 0) != (not lost):
        return "named", f"status {status}, lost {lost}"
    wrong = []
    with h5py.File(out) as f:
        for name in good:
            wrong += unnamed(f, name, good, lost, notes)
    return "whole" if status == 0 else "named", "; ".join(wrong)


def unnamed(f, name, good, lost, notes):
    """What differs in one object and is not named as lost."""
    want, attrs, loose = good[name]
    mine = [w for w in lost if name == w["object"] or name.startswith(w["object"].rstrip("/") + "/")]
    entire = any(w.keys() == {"object", "why"} for w in mine if w["object"] == name)
    try:
        item = f.get(name)
    except KeyError:
        item = None
    # an object that is lost under a new name may be any of them
    parents = {name[:k] for k in range(len(name)) if name[k] == "/"}
    strange = any((w["object"] not in good or "two objects" in w.get("why", ""))
                  and w["object"].rpartition("/")[0] in parents for w in lost)
    if item is None and (strange or renamed(f, name, good) or any(f"'{part}'" in note for note in notes
                                                                  for part in name.split("/"))):
        return []
    if item is None:
        return [] if any(w.keys() == {"object", "why"} for w in mine) else [f"{name} is gone"]
    wrong = []
    if attrs and not entire and not any("attribute" in w for w in mine):
        found = attributes(item)
        wrong += [f"{name}: attribute {k} {found.get(k)!r}, not {v!r}" for k, v in attrs.items()
                  if repr(found.get(k)) != repr(v)]
    if want is None:
        return wrong
    both = tuple(slice(min(n)) for n in zip(getattr(item, "shape", ()), want.shape)) if loose else ()
    kind = type_of(item) if isinstance(item, h5py.Dataset) else "no dataset"
    if kind != want.dtype or (item.shape != want.shape and not (loose and item.ndim == want.ndim)):
        what = f"{getattr(item, 'shape', '')} {kind}"
        return wrong if any(w["object"] == name for w in mine) else [*wrong, f"{name}: {what}"]
    known = np.zeros(want.shape, bool)
    for w in mine:
        if w["object"] == name and "chunk" in w:
            known[tuple(slice(*map(int, part.split(":"))) for part in w["values"].strip("[]").split(","))] = True
        elif w["object"] == name and "values" in w:
            known[...] = True
    known |= entire
    for who, read in (("h5py", lambda: item[()]), ("h5z_gpu.read", lambda: h5z_gpu.read(item))):
        try:
            got = np.ascontiguousarray(read())
        except Exception as why:
            wrong.append(f"{name}: {who}: {why}")
            continue
        bits = f"u{want.dtype.itemsize}"
        bad = (got[both].view(bits) != want[both].view(bits)) & ~known[both]
        if bad.any():
            wrong.append(f"{name}: {who}: {bad.sum()} of {bad.size} values")
    return wrong


def type_of(item):
    """Of a dataset that NumPy can hold; else what stands in the way."""
    try:
        return item.dtype
    except TypeError as why:
        return str(why)


def renamed(f, name, good):
    """Whether an object, or a group that it is in, has got another name: names have no checksum in old groups."""
    parent, _last = name.rsplit("/", 1)
    there = f.get(parent or "/")
    if isinstance(there, h5py.Group):
        return any(f"{parent}/{other}" not in good and other != "soft" for other in there)
    return there is None and renamed(f, parent, good)


def worker(pipe, source, out, good):
    os.setpgid(0, 0)
    pipe.send(judged(source, out, good))


def one(folder, source, good, data):
    """As `judged`, in a process of its own, with all that an ended process must not leave."""
    bad, out = folder / "bad.h5", folder / "out.h5"
    bad.write_bytes(data)
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=worker, args=(theirs, bad, out, good))
    child.start()
    theirs.close()
    outcome, wrong = "hung", "it did not end"
    if ours.poll(_LIMIT):
        try:
            outcome, wrong = ours.recv()
        except EOFError:
            child.join()
            outcome, wrong = "crashed", f"exit code {child.exitcode}"
    else:
        os.killpg(child.pid, 9)
    child.join()
    left = [p.name for p in folder.iterdir() if p.name not in ("bad.h5", "out.h5", "good.h5")]
    if left:
        wrong += f"; left behind: {left}"
    if bad.read_bytes() != data:
        wrong += "; the input was changed"
    out.unlink(missing_ok=True)
    return outcome, wrong


def attack(count, first=0, keep=None):
    """Outcomes of files FIRST to FIRST + COUNT, and what was wrong about which."""
    outcomes, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory() as scratch:
        ready = {}
        for kind in KINDS:
            folder = Path(scratch) / kind
            folder.mkdir()
            make(folder / "good.h5", kind)
            good = held(folder / "good.h5")
            if kind == "plain":
                good = {name: (value, {}, True) for name, (value, *_) in good.items()}
            if kind != "latest":
                good = {name: (None if name in UNKNOWN else value, *more) for name, (value, *more) in good.items()}
            ready[kind] = folder, good, (folder / "good.h5").read_bytes(), places(folder / "good.h5")
        for number in range(first, first + count):
            kind = KINDS[number % len(KINDS)]
            folder, good, data, spots = ready[kind]
            changed, where = change(data, spots, number)
            begin = time.monotonic()
            outcome, why = one(folder, folder / "good.h5", good, changed)
            outcomes[kind, outcome] += 1
            if why:
                wrong.append((number, kind, where, outcome, why))
                if keep:
                    Path(keep, f"{number}.h5").write_bytes(changed)
                    print(number, kind, where, outcome, why[:400], f"{time.monotonic() - begin:.1f} s", flush=True)
    return outcomes, wrong


if __name__ == "__main__":
    keep = os.environ.get("KEEP")
    outcomes, wrong = attack(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, keep)
    for (kind, outcome), n in sorted(outcomes.items()):
        print(f"{kind:8} {outcome:18} {n}")
    for number, kind, where, outcome, why in wrong:
        print(f"WRONG {number} {kind}, bytes {where}: {outcome}: {why[:300]}")
    sys.exit(bool(wrong))
