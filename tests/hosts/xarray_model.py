# SPDX-License-Identifier: MIT OR Apache-2.0
"""A model of xarray's engine "h5z_gpu": xarray_model.py FOLDER FIRST COUNT.

Each seed makes a file of random variables by netCDF4, h5netcdf or h5py (types, byte orders, chunks, filters, fill
values, unlimited dimensions that not all variables fill, groups, texts, times, scalars, axes of no length), opens it by
xarray's engine h5netcdf and by ours, and compares what random indexers give, by their bits, with and without dask.
"""
import os
import sys
import warnings

import h5netcdf
import h5py
import netCDF4
import numpy as np
import xarray as xr

import h5z_gpu.xarray
from h5z_gpu import Lossless, Lossy, provenance
from h5z_gpu.netcdf import def_filter

KINDS = ("f4", "f8", ">f4", ">f8", "f2", "i2", ">i4", "u1", "i8", "u4")
HOWS = (Lossy(absolute=1e-2), Lossy(relative=1e-3), Lossy(absolute=0.5, codec="planes"), Lossless(), "zlib", None)
Y = ("t", "y", "x", "z")


class Case:
    def __init__(self, folder, seed):
        self.rng = np.random.default_rng(seed)
        self.path = os.path.join(folder, f"{seed}.nc")
        few = self.rng.random() < 0.1
        self.sizes = {d: 0 if few and d == "z" else int(self.rng.integers(1, 30)) for d in Y}
        self.unlimited = self.rng.random() < 0.5
        self.made = self.pick((self.by_netcdf4, self.by_h5netcdf, self.by_h5py))
        self.made()

    def pick(self, some):
        return some[int(self.rng.integers(len(some)))]

    def values(self, shape, kind):
        x = self.rng.normal(0, 30, shape) + 100 * np.sin(np.arange(max(1, shape[-1]))[: shape[-1]] if shape else 1)
        return np.abs(x).astype(kind) if np.dtype(kind).kind in "ui" else x.astype(kind)

    def variables(self):
        """Names, kinds, dimensions, chunks, filters, fill values."""
        for k in range(6):
            dims = tuple(d for d in Y if self.rng.random() < 0.6)
            kind = self.pick(KINDS)
            chunks = tuple(int(self.rng.integers(1, max(2, self.sizes[d] + 1))) for d in dims)
            fill = self.pick((None, -7)) if np.dtype(kind).kind != "u" else self.pick((None, 7))
            yield f"v{k}", kind, dims, chunks, self.pick(HOWS) if dims else None, fill

    def attributes(self, kind):
        if np.dtype(kind).kind in "iu" and self.rng.random() < 0.5:
            return {"scale_factor": 0.25, "add_offset": np.float32(3)}
        return {"units": "K"}

    def by_netcdf4(self):
        with netCDF4.Dataset(self.path, "w") as f:
            for d in Y:
                f.createDimension(d, None if d == "t" and self.unlimited else self.sizes[d])
            for g in (f, f.createGroup("deep/er")):
                for name, kind, dims, chunks, how, fill in self.variables():
                    more = {"chunksizes": chunks} if all(self.sizes[d] for d in dims) and dims else {}
                    if np.dtype(kind).itemsize == 2 and np.dtype(kind).kind == "f":
                        kind = "f4"
                    kind = np.dtype(kind)
                    v = g.createVariable(name, kind, dims, zlib=how == "zlib", fill_value=fill, **more,
                                         endian="big" if kind.str[0] == ">" else "little")
                    if isinstance(how, (Lossy, Lossless)):
                        def_filter(v, how)
                    v.set_auto_maskandscale(False)
                    v.setncatts(self.attributes(kind))
                    shape = [self.sizes[d] for d in dims]
                    if dims[:1] == ("t",) and self.unlimited:  # some variables are shorter than the dimension
                        shape[0] = int(self.rng.integers(0, shape[0] + 1))
                        v[: shape[0]] = self.values(tuple(shape), kind.newbyteorder("="))
                    else:
                        v[...] = self.values(tuple(shape), kind.newbyteorder("="))
                when = g.createVariable("when", "f8", ("y",))
                when.units = "days since 2000-01-01"
                when[:] = np.arange(self.sizes["y"]) / 4
                text = g.createVariable("text", str, ("y",))
                text[:] = np.array([f"Wärme {i}" for i in range(self.sizes["y"])], object)

    def by_h5netcdf(self):
        with h5netcdf.File(self.path, "w") as f:
            f.dimensions = {d: None if d == "t" and self.unlimited else self.sizes[d] for d in Y}
            if self.unlimited:
                f.resize_dimension("t", self.sizes["t"])
            for name, kind, dims, chunks, how, fill in self.variables():
                empty = not all(self.sizes[d] for d in dims)
                keys = {} if empty or not dims else {"chunks": chunks}
                if keys:
                    keys["compression"] = "gzip" if how == "zlib" else how
                    keys["shuffle"] = how is not None and self.rng.random() < 0.2
                v = f.create_variable(name, dims, np.dtype(kind), fillvalue=fill, **keys)
                shape = tuple(self.sizes[d] for d in dims)
                if not empty and (shape or self.rng.random() < 0.8):
                    v[...] = self.values(shape, kind)
                v.attrs.update(self.attributes(kind))

    def by_h5py(self):
        with h5py.File(self.path, "w") as f:
            for name, kind, dims, chunks, how, fill in self.variables():
                shape = tuple(self.sizes[d] for d in dims)
                keys = {} if 0 in shape or not dims else {"chunks": chunks, "compression": "gzip" if how == "zlib"
                                                          else how}
                d = f.create_dataset("g/" * int(self.rng.integers(2)) + name, shape, kind, fillvalue=fill, **keys)
                if shape and 0 not in shape:  # some chunks stay away
                    d[: max(1, shape[0] // 2)] = self.values((max(1, shape[0] // 2), *shape[1:]), kind)
                elif not shape:
                    d[()] = 3
            f["flag"] = np.arange(5) > 2
            f["pair"] = np.zeros(4, [("a", "f4"), ("b", "i2")])

    def indexer(self, v):
        found = {}
        for d, n in v.sizes.items():
            if n == 0 or self.rng.random() < 0.3:
                continue
            a, b = sorted(int(i) for i in self.rng.integers(-n, n + 2, 2))
            found[d] = self.pick((
                int(self.rng.integers(-n, n)), slice(a, b), slice(None, None, int(self.rng.integers(1, 5))),
                slice(None, None, -int(self.rng.integers(1, 4))), slice(b, a, -2),
                self.rng.integers(-n, n, int(self.rng.integers(0, 5))), self.rng.random(n) < 0.4,
                xr.DataArray(self.rng.integers(0, n, 3), dims="points")))
        if any(isinstance(x, xr.DataArray) for x in found.values()):  # with an empty list beside it dask gives up
            return {d: x for d, x in found.items() if not isinstance(x, np.ndarray)}
        return found

    def check(self):
        groups = [None]
        with h5py.File(self.path) as f:
            f.visititems(lambda name, x: groups.append(name) if isinstance(x, h5py.Group) else None)
        for group in groups:
            keys = {"group": group, "decode_times": bool(self.rng.random() < 0.5),
                    "mask_and_scale": bool(self.rng.random() < 0.7)}
            chunks = self.pick((None, {}, "auto", -1, {"y": 3}))
            with xr.open_dataset(self.path, engine="h5netcdf", phony_dims="access", **keys) as a, \
                 xr.open_dataset(self.path, engine="h5z_gpu", chunks=chunks, **keys) as b:
                a.load()
                bare(a, b)
                assert list(a.variables) == list(b.variables) and a.attrs == b.attrs and a.sizes == b.sizes
                for name in a.variables:
                    for _ in range(6):
                        at = self.indexer(a[name])
                        where = (self.path, group, name, at, chunks)
                        try:
                            found = b[name].isel(at).load()
                        except IndexError:  # xarray itself does not know an empty slice of negative step
                            assert any(isinstance(x, slice) and (x.step or 1) < 0 for x in at.values()), where
                            continue
                        same(a[name].isel(at), found, where)
                    same(a[name], b[name], (self.path, group, name))
                b.load()
                assert a.identical(b)


def bare(a, b):
    """Takes the statements of `h5z_gpu.provenance` out of the attributes of `a`; `b` must have them in encodings."""
    for name, v in a.variables.items():
        said = {key: x for key, x in v.attrs.items() if key in provenance.NAMES}
        assert {key: x for key, x in b[name].encoding.items() if key in provenance.NAMES} == said, name
        v.attrs = {key: x for key, x in v.attrs.items() if key not in said}


def same(a, b, where):
    assert a.dims == b.dims and a.shape == b.shape and a.attrs.keys() == b.attrs.keys(), where
    x, y = np.asarray(a.values), np.asarray(b.values)
    if x.dtype.kind in "OU":  # dask turns a single text into one of fixed length
        assert (x == y).all(), where
    else:
        assert x.dtype == y.dtype and x.tobytes() == y.tobytes(), where


if __name__ == "__main__":
    assert h5z_gpu.xarray.Engine
    folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        try:
            case = Case(folder, seed)
            case.check()
        except BaseException:
            print("seed", seed)
            raise
        os.remove(case.path)
    print(count, "files are as h5netcdf reads them")
