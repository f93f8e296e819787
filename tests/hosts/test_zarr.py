# SPDX-License-Identifier: MIT OR Apache-2.0
"""NCZarr: netCDF calls the filter without HDF5, through the same plugin."""
import json
import sys

import judge
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, clean, python, run, sample

WRITE = """
import ctypes, sys, netCDF4, numpy as np
from wheel import loaded, u32
x = np.load(sys.argv[2])
words = [int(w) for w in sys.argv[3:]]
with netCDF4.Dataset(f"file://{sys.argv[1]}#mode=nczarr,file", "w") as d:
    lib = loaded("netcdf4.libs/libnetcdf")
    for i, n in enumerate(x.shape):
        d.createDimension(f"d{i}", n)
    v = d.createVariable("v", x.dtype, ("d0", "d1", "d2"), chunksizes=(5, 16, 20))
    status = lib.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(len(words)), u32(words))
    assert status == 0, status
    v[...] = x
"""
READ = """
import sys, netCDF4, numpy as np
with netCDF4.Dataset(f"file://{sys.argv[1]}#mode=nczarr,file") as d:
    np.save(sys.argv[2], d["v"][...].data)
"""


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("words, mode, value", [((11003,), "abs", 1e-3), ((111003,), "abs", 1e-3),
                                                ((211003,), "abs", 1e-3), ((90000,), "lossless", 0),
                                                ((), "lossless", 0)])
def test_a_zarr_store_holds_the_bound(words, mode, value, dtype, tmp_path):
    x = (sample() * (1 if dtype != "i4" else 100)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    store = tmp_path / "a.zarr"
    python(WRITE, store, tmp_path / "x.npy", *words)
    python(READ, store, tmp_path / "y.npy")
    y = np.load(tmp_path / "y.npy")
    if dtype == "i4":
        np.testing.assert_array_equal(x, y)
    else:
        judge.check(x, y, mode, value)
    meta = json.loads((store / "v/.zarray").read_text())
    codec = meta["compressor"] or meta["filters"][0]
    assert codec["id"] == "h5z-gpu", meta
    frames = [p for p in (store / "v").iterdir() if p.name[0].isdigit()]
    assert frames and all(p.read_bytes()[:8] == b"\x89H5ZG\r\n\x1a" for p in frames)
    if mode == "abs" and dtype != "i4":
        assert sum(p.stat().st_size for p in frames) < x.nbytes and (x != y).any()


def test_words_without_a_meaning_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", sample())
    python(WRITE, tmp_path / "a.zarr", tmp_path / "x.npy", 10003, ok=False)


@pytest.mark.parametrize("order", ["netCDF4, h5z_gpu", "h5z_gpu, netCDF4"])
def test_the_package_serves_a_zarr_store_in_any_order(order, tmp_path):
    np.save(tmp_path / "x.npy", sample())
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python:{HERE}", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent))
    del env["HDF5_PLUGIN_PATH"]
    for code, args in ((WRITE, ("x.npy", 11003)), (READ, ("y.npy",))):
        run(sys.executable, "-c", f"import {order}\n{code}", tmp_path / "a.zarr", *args, env=env, cwd=tmp_path)
    assert 0 < judge.check(np.load(tmp_path / "x.npy"), np.load(tmp_path / "y.npy"), "abs", 1e-3) <= 1
