# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random files with every kind of chunk index, read by every road of the package, against NumPy and HDF5's own
pipeline.

    chunk_model.py FOLDER FIRST COUNT [references]

Each seed makes a file: several datasets of random rank, extents, chunks, unlimited axes and `maxshape`, in any version
of the file format, with and without a user block, written in parts by `h5z_gpu.write` and h5py, and resized. Prints how
many datasets had which kind of index, as JSON; a failure names its seed.
"""
import contextlib
import ctypes
import io
import json
import os
import sys

import h5py
import numpy as np

import h5z_gpu
from h5z_gpu import index
from h5z_gpu.cli import main

KINDS = ("version 1 B-tree", "single chunk", "implicit", "fixed array", "extensible array", "version 2 B-tree")
BOUND, CHANGES = 1e-3, 3
UNLIMITED_IN_FRONT, UNLIMITED_BEHIND = "extensible array, axis 0", "extensible array, another axis"


class Case:
    """A file of one seed, and what NumPy says is in it."""

    def __init__(self, folder, seed):
        self.rng = np.random.default_rng(seed)
        self.path = os.path.join(folder, f"{seed}.h5")
        self.model = {}
        self.filtered, self.unfiltered = False, False

    def pick(self, *these):
        return these[self.rng.integers(len(these))]

    def make(self):
        libver = self.pick("earliest", "v108", "v110", "v110", "latest", "latest", ("earliest", "latest"))
        with h5py.File(self.path, "w", libver=libver, userblock_size=self.pick(0, 0, 512, 2048)) as f:
            for name in ("a", "g/b", "g/c")[: self.rng.integers(1, 4)]:
                self.dataset(f, name)

    def dataset(self, f, name):
        rank = int(self.pick(1, 2, 2, 3, 4))
        shape = tuple(int(n) for n in self.rng.integers(1, (200, 40, 17, 9)[rank - 1], rank))
        chunk = tuple(int(self.rng.integers(1, n + 3)) for n in shape)
        grow = self.pick("fixed", "one", "one", "one", "several", "several", "beyond", "single", "single")
        if grow == "single":
            chunk = shape
        most = [n + int(self.pick(0, 0, 5, 3 * n)) if grow != "fixed" else n for n in shape]
        free = self.rng.permutation(rank)[: {"one": 1, "several": max(1, rank - 1)}.get(grow, 0)]
        most = tuple(None if k in free else n for k, n in enumerate(most))
        chunk = tuple(c if m is None else min(c, m) for c, m in zip(chunk, most))
        dtype = np.dtype(str(self.pick("<f4", "<f8", "<i2", "<u4", ">f4")))
        how = self.pick(h5z_gpu.Lossless(), h5z_gpu.Lossless(), h5z_gpu.Lossy(absolute=BOUND), None)
        fill = self.pick(None, dtype.type(7))
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        more = how or {"dcpl": self.pick(None, early)}
        d = f.create_dataset(name, shape, dtype, chunks=chunk, maxshape=most, fillvalue=fill, **more)
        self.filtered |= how is not None
        exact = how is None or how == h5z_gpu.Lossless() or dtype.kind != "f"
        model = np.full(shape, 0 if fill is None else fill, dtype)
        for _ in range(self.rng.integers(1, CHANGES + 1)):
            model = self.change(d, model)
        if not self.rng.integers(4):
            self.leave_filter_out(d, model)
        self.model[name] = model, exact

    def change(self, d, model):
        """Writes a box, or resizes."""
        shape = model.shape
        kind = self.pick("all", "all", "box", "resize")
        if kind == "resize":
            new = tuple(int(self.rng.integers(1, (2 * n if m is None else m) + 1)) for n, m in zip(shape, d.maxshape))
            d.resize(new)
            grown = np.full(new, d.fillvalue, d.dtype)
            both = tuple(slice(0, min(a, b)) for a, b in zip(shape, new))
            grown[both] = model[both]
            return grown
        low = [0 if kind == "all" else int(self.rng.integers(n)) for n in shape]
        box = tuple(slice(a, n if kind == "all" else int(self.rng.integers(a, n)) + 1) for a, n in zip(low, shape))
        values = self.values(model[box].shape, d.dtype)
        if self.rng.integers(2):
            h5z_gpu.write(d, values, box)
        else:
            d[box] = values
        model[box] = values
        return model

    def leave_filter_out(self, d, model):
        """Writes one chunk as a program without the filter does."""
        origin = tuple(int(self.rng.integers(n)) // c * c for n, c in zip(d.shape, d.chunks))
        # A chunk that is there keeps its filter mask in HDF5 1.12 and 1.14, whatever H5Dwrite_chunk is told.
        if index.stored_size(d, origin) or not d.id.get_create_plist().get_nfilters():
            return
        box = tuple(slice(o, o + c) for o, c in zip(origin, d.chunks))
        values = np.full(d.chunks, d.fillvalue, d.dtype)
        model[box] = values[tuple(slice(0, n) for n in model[box].shape)] = self.values(model[box].shape, d.dtype)
        d.id.write_direct_chunk(origin, values.tobytes(), filter_mask=1)
        self.unfiltered = True

    def values(self, shape, dtype):
        """Noise, constants, or ramps: frames of one length and of many."""
        values = self.pick(self.rng.normal(0, 1, shape) * 100, np.full(shape, self.rng.integers(9)),
                           np.arange(np.prod(shape)).reshape(shape))
        return values.astype(dtype)

    def boxes(self, shape):
        yield ()
        for _ in range(4):
            low = [int(self.rng.integers(n)) for n in shape]
            yield tuple(slice(a, int(self.rng.integers(a, n)) + 1) for a, n in zip(low, shape))

    def read_by_every_road(self, kinds, references):
        held = h5z_gpu.load(self.path)
        with h5py.File(self.path) as f:
            for name, (model, exact) in self.model.items():
                d = f[name]
                kind = kind_of(d)
                kinds[kind] = kinds.get(kind, 0) + 1
                want = d[...]
                what = f"{name} {d.shape} {d.chunks} {d.maxshape} {kind}"
                # A chunk that is written in parts is coded anew each time, and so is one that loses a part.
                held_bound = np.all(np.abs(want.astype("f8") - model) <= CHANGES * BOUND)
                assert same(want, model) if exact else held_bound, f"h5py: {what}"
                assert same(held[name], want), f"load: {what}"
                for box in self.boxes(d.shape):
                    assert same(h5z_gpu.read(d, selection=box), want[box]), f"read {box}: {what}"
        self.read_through_python()
        copies = [self.path + end for end in (".repacked", ".recovered")]
        self.command(0, "verify", self.path, self.path)
        self.command(0 if self.filtered else 2, "inspect", "--check", self.path)
        self.command(0, "repack", self.path, copies[0], "--lossless", "--again", "--verify")
        self.command(0, "recover", self.path, copies[1])
        with h5py.File(self.path) as f:
            for copy in copies:
                with h5py.File(copy) as g:
                    for name in self.model:
                        assert same(g[name][...], f[name][...]), f"{copy}: {name}"
            if references and self.unfiltered:
                refuses_references(self.path)
            elif references:
                group = opened(self.path)
                for name in self.model:
                    assert same(group[name][...], f[name][...]), f"references: {name} {kind_of(f[name])}"
        for path in (self.path, *copies):
            os.remove(path)

    def read_through_python(self):
        """The file as an object of Python, which has no descriptor."""
        with open(self.path, "rb") as whole, io.BytesIO(whole.read()) as there, h5py.File(there, "r") as f:
            for name in self.model:
                d = f[name]
                for box in self.boxes(d.shape):
                    assert same(h5z_gpu.read(d, selection=box), d[box]), f"read {box} of an object: {name} {kind_of(d)}"

    def command(self, status, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            found = main(list(words))
        assert found == status, f"h5z-gpu {' '.join(words)}: status {found}\n{out.getvalue()[-3000:]}"


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def kind_of(d):
    kind = ctypes.c_int(0)
    index.hdf5().H5Dget_chunk_index_type(ctypes.c_int64(d.id.id), ctypes.byref(kind))
    if KINDS[kind.value] != "extensible array":
        return KINDS[kind.value]
    return UNLIMITED_IN_FRONT if d.maxshape[0] is None else UNLIMITED_BEHIND


def opened(path):
    """A file as zarr reads it by references."""
    import fsspec
    import zarr

    from h5z_gpu.zarr import references

    how = {"asynchronous": True}
    refs = json.loads(json.dumps(references(path)))
    fs = fsspec.filesystem("reference", fo=refs, remote_protocol="file", remote_options=how, **how)
    return zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True, path=""), mode="r", zarr_format=2)


def refuses_references(path):
    from kerchunk.hdf import Hdf5FeatureNotSupported

    from h5z_gpu.zarr import references

    try:
        references(path)
    except Hdf5FeatureNotSupported as why:
        assert "stored without the filter" in str(why), why


if __name__ == "__main__":
    folder, first, count, *more = sys.argv[1:]
    kinds = {}
    for seed in range(int(first), int(first) + int(count)):
        case = Case(folder, seed)
        try:
            case.make()
            case.read_by_every_road(kinds, more == ["references"])
        except BaseException:
            print(f"seed {seed} with HDF5 {h5py.version.hdf5_version}", file=sys.stderr)
            raise
    print(json.dumps(kinds))
