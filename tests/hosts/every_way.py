# SPDX-License-Identifier: MIT OR Apache-2.0
"""A model of datasets in NumPy beside h5py, at random: every value after every step.

    every_way.py FIRST LAST

Writes and reads of boxes, steps, points and rows through two handles of a dataset, resizes, flushes, files that are
opened again, chunks that are copied as they are; of several types, ranks, fill values, chunk caches, versions of the
file's format, with edges and without; by our filter, or by deflate, shuffle and checksums in any order. Prints how
many steps each seed had. Run with the library of `h5z-gpu run` and without it, for every HDF5 that there is: it knows
neither.
"""
import os
import sys
import tempfile

import h5py
import numpy as np

TYPES = "<f4", "<f8", ">f4", ">f8", "<i2", "<i4", ">u2", "u1", "<u8", "<f2"
CACHES = {"rdcc_nbytes": 0, "rdcc_nslots": 0}, {"rdcc_nbytes": 2000}, {"rdcc_nbytes": 1 << 20}, {}


def words(r):
    """Lossless, by a codec of its own or by the one that the writer takes."""
    return (int(r.choice([90000, 590000, 90000])),)


def filters(r):
    """Ours, or some of HDF5's own in any order, or none, allocated late or early."""
    kind = r.random()
    if kind < 0.5:
        return {"compression": 443, "compression_opts": words(r)}
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if kind < 0.7:
        if kind < 0.6:
            dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        return {"dcpl": dcpl}
    add = [dcpl.set_shuffle, dcpl.set_fletcher32, lambda: dcpl.set_deflate(int(r.integers(0, 6)))]
    for k in r.permutation(3)[:r.integers(0, 4)]:
        add[k]()
    return {"dcpl": dcpl}


class Model:
    def __init__(self, seed, folder):
        r = self.r = np.random.default_rng(seed)
        self.path = os.path.join(folder, f"{seed}.h5")
        self.dtype = np.dtype(TYPES[r.integers(len(TYPES))])
        rank = int(r.integers(1, 5))
        side = [40_000, 220, 40, 16][rank - 1]
        shape = tuple(int(r.integers(side // 2, side * 2)) for _ in range(rank))
        self.chunk = tuple(min(n, int(r.integers(max(2, side // 8), side))) for n in shape)
        most = tuple(None if r.random() < 0.4 else 3 * n for n in shape) if r.random() < 0.7 else shape
        self.most = most
        self.fill = None if r.random() < 0.5 else self.values(())
        self.libver = [("earliest", "latest"), ("latest", "latest"), ("earliest", "v110")][r.integers(3)]
        self.userblock = int(r.choice([0, 0, 512]))
        self.model = np.full(shape, 0 if self.fill is None else self.fill, self.dtype)
        with self.open("w") as f:
            more = {"fillvalue": self.fill, **filters(r)}
            f.create_dataset("g/x", shape, self.dtype, chunks=self.chunk, maxshape=most, **more)
        self.start()

    def open(self, mode):
        more = {"userblock_size": self.userblock} if mode == "w" else {}
        return h5py.File(self.path, mode, libver=self.libver, **CACHES[self.r.integers(len(CACHES))], **more)

    def start(self):
        self.files = [self.open("r+")]
        if self.r.random() < 0.3:
            self.files.append(h5py.File(self.path, "r+", libver=self.libver))
        self.sets = [f["g/x"] for f in self.files] + [self.files[0]["g/x"]]

    def values(self, shape):
        x = np.cumsum(self.r.normal(size=shape) * 3, axis=-1) if shape else self.r.normal() * 20
        if self.dtype.kind == "f":
            x = np.where(self.r.random(shape) < 0.02, np.nan, x) if shape else x
        return np.asarray(x).astype("f8").round(2).astype(self.dtype) if self.dtype.kind == "f" else (
            np.asarray(x).astype("i8").astype(self.dtype))

    def box(self):
        """A selection: boxes mostly, of all sizes; steps now and then."""
        r, parts = self.r, []
        for n in self.model.shape:
            kind = r.random()
            if kind < 0.35:
                parts.append(slice(None))
            elif kind < 0.5:
                parts.append(int(r.integers(n)))
            else:
                a, b = sorted(r.integers(0, n + 1, 2).tolist())
                parts.append(slice(a, b, int(r.integers(2, 4)) if kind > 0.95 else None))
        return tuple(parts)

    def same(self, got, want):
        assert np.asarray(got).tobytes() == np.ascontiguousarray(want).tobytes(), (self.path, self.dtype, self.chunk)

    def step(self):
        r, d = self.r, self.sets[self.r.integers(len(self.sets))]
        what = r.random()
        if what < 0.4:
            at = self.box()
            self.same(d[at], self.model[at])
        elif what < 0.7:
            at = self.box()
            new = self.values(self.model[at].shape)
            d[at] = new
            self.model[at] = new
        elif what < 0.75:
            out = np.zeros(tuple(n + 3 for n in self.model.shape), self.dtype)
            at = tuple(slice(1, n + 1) for n in self.model.shape)
            d.read_direct(out, dest_sel=at)
            self.same(out[at], self.model)
        elif what < 0.8:
            shape = [n if m is not None and m == n else int(r.integers(max(1, n // 2), n * 3 // 2 + 1))
                     for n, m in zip(self.model.shape, self.most)]
            shape = tuple(s if m is None else min(s, m) for s, m in zip(shape, self.most))
            if self.most != self.model.shape and len(self.files) == 1:
                d.resize(shape)
                old = self.model
                self.model = np.full(shape, 0 if self.fill is None else self.fill, self.dtype)
                both = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape))
                self.model[both] = old[both]
        elif what < 0.84:
            self.files[r.integers(len(self.files))].flush()
        elif what < 0.9:
            points = r.integers(0, self.model.shape[0], 3)
            at = np.unique(points)
            self.same(d[at], self.model[at])
        elif what < 0.94:
            for f in self.files:
                f.close()
            self.start()
        elif what < 0.97:
            self.copied(d)
        else:
            self.same(d[...], self.model)

    def copied(self, d):
        """A whole chunk as it lies in the file, put where another one is."""
        whole = list(np.ndindex(*(n // c for n, c in zip(self.model.shape, self.chunk))))
        if len(whole) < 2:
            return
        a, b = (whole[self.r.integers(len(whole))] for _ in range(2))
        a, b = (tuple(k * c for k, c in zip(p, self.chunk)) for p in (a, b))
        d.flush()
        try:
            mask, frame = d.id.read_direct_chunk(a)
        except (OSError, ValueError, RuntimeError, MemoryError):
            return  # it is not stored
        d.id.write_direct_chunk(b, frame, mask)
        take, put = (tuple(slice(o, o + c) for o, c in zip(p, self.chunk)) for p in (a, b))
        self.model[put] = self.model[take].copy()

    def run(self):
        steps = int(self.r.integers(20, 60))
        for _ in range(steps):
            self.step()
        for f in self.files:
            f.close()
        with h5py.File(self.path) as f:
            self.same(f["g/x"][...], self.model)
        os.remove(self.path)
        return steps


def main(first, last):
    done = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for seed in range(first, last):
            done += Model(seed, folder).run()
    print(f"{last - first} seeds, {done} steps, HDF5 {h5py.version.hdf5_version}: every value as in NumPy")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
