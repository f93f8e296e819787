# SPDX-License-Identifier: MIT OR Apache-2.0
"""Other filters before and after ours: bits are lost only where the filter surely sees the numbers."""
import ctypes

import h5py
import judge
import netCDF4
import numpy as np
import pytest
from conftest import run, sample
from h5py import h5d, h5p, h5s, h5t, h5z
from programs import filters
from wheel import loaded

STEPS = {
    "fletcher32": lambda p: p.set_fletcher32(),
    "shuffle": lambda p: p.set_shuffle(),
    "gzip": lambda p: p.set_deflate(4),
    "scaleoffset": lambda p: p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, 4),
    "ours": None,
}


def through(path, x, order, flag=h5z.FLAG_OPTIONAL, word=11003):
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((5, 16, 20))
    for step in order:
        if step == "ours":
            plan.set_filter(443, flag, (word,))
        else:
            STEPS[step](plan)
    with h5py.File(path, "w") as f:
        kind = h5t.py_create(x.dtype)
        h5py.Dataset(h5d.create(f.id, b"v", kind, h5s.create_simple(x.shape), plan))[...] = x
    with h5py.File(path) as f:
        return f["v"][...]


@pytest.mark.parametrize("flag", [h5z.FLAG_OPTIONAL, h5z.FLAG_MANDATORY])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("before", [["fletcher32"], ["shuffle"], ["gzip"], ["shuffle", "gzip"],
                                    ["fletcher32", "shuffle"]])
def test_a_filter_before_ours_makes_it_lossless(before, dtype, flag, tmp_path):
    x = sample(dtype)
    judge.check(x, through(tmp_path / "a.h5", x, [*before, "ours"], flag), "lossless")
    run("h5dump", "-d", "v", tmp_path / "a.h5")


def test_scaleoffset_before_ours_loses_only_what_it_loses_itself(tmp_path):
    x = sample()
    alone = through(tmp_path / "a.h5", x, ["scaleoffset"])
    judge.check(alone, through(tmp_path / "a.h5", x, ["scaleoffset", "ours"]), "lossless")


@pytest.mark.parametrize("after", [["fletcher32"], ["gzip"], ["shuffle", "gzip"], ["gzip", "fletcher32"]])
def test_a_filter_after_ours_changes_nothing(after, tmp_path):
    x = sample()
    got = through(tmp_path / "a.h5", x, ["ours", *after])
    assert 0 < judge.check(x, got, "abs", 1e-3) <= 1
    judge.check(got, through(tmp_path / "b.h5", x, ["ours"]), "lossless")


def test_twice_in_one_pipeline_keeps_the_bound(tmp_path):
    """The second sees bytes of another length, so it is lossless."""
    x = sample()
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((5, 16, 20))
    plan.set_filter(443, 0, (11003,))
    plan.set_deflate(1)
    plan.set_fletcher32()
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5py.Dataset(h5d.create(f.id, b"v", h5t.py_create(x.dtype), h5s.create_simple(x.shape), plan))[...] = x
        assert 0 < judge.check(x, f["v"][...], "abs", 1e-3) <= 1


@pytest.mark.parametrize("how", [{"fletcher32": True}, {"shuffle": True}, {"fletcher32": True, "shuffle": True}])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_netcdf_puts_fletcher32_and_shuffle_first(how, dtype, tmp_path):
    """Its files carry the checksum of the numbers, so every bit must be kept."""
    x = (sample() * 100).astype(dtype)
    path = tmp_path / "a.nc"
    lib = loaded("netcdf4.libs/libnetcdf")
    with netCDF4.Dataset(path, "w") as d:
        for i, n in enumerate(x.shape):
            d.createDimension(f"d{i}", n)
        zlib = {"zlib": True, "complevel": 1} if how.get("shuffle") else {}
        v = d.createVariable("v", dtype, ("d0", "d1", "d2"), chunksizes=(5, 16, 20), **how, **zlib)
        assert lib.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(1), (ctypes.c_uint * 1)(11003)) == 0
        v[...] = x
    ids = [f[0] for f in filters(path, "v")]
    assert 443 in ids and (ids[0] != 443), ids
    with netCDF4.Dataset(path) as d:
        judge.check(x, d["v"][...].data,
                    "lossless") if x.dtype.kind == "f" else np.testing.assert_array_equal(x, d["v"][...])
    run("ncdump", path)
    run("h5dump", "-d", "v", path)
