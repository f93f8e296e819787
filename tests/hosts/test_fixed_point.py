# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `planes` promises under an absolute bound: a value that is stored never moves again, however often its chunk is
read, changed elsewhere and written, appended to, copied into other chunks.
"""
import subprocess

import h5py
import judge
import netCDF4
import numpy as np
import pytest
from conftest import clean

BOUND = 1e-3
WORD = 511003


def smooth(shape, seed, kind):
    """Waves, noise of some bounds, a few NaN and infinities."""
    r = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    a = 280 + 3 * np.sin(sum((0.11 + 0.07 * k) * x for k, x in enumerate(axes))) + 5 * BOUND * r.standard_normal(shape)
    a.reshape(-1)[r.integers(0, a.size, a.size // 500)] = np.nan
    a.reshape(-1)[r.integers(0, a.size, 3)] = [np.inf, -np.inf, 0.0]
    return a.astype(kind)


def bits(a):
    return a.view("u4" if a.itemsize == 4 else "u8")


@pytest.mark.parametrize("kind", ["f4", "f8", ">f4"])
def test_two_thousand_partial_writes(kind, tmp_path):
    shape, chunk = (24, 40, 48), (8, 20, 48)
    values = smooth(shape, 1, kind)
    r = np.random.default_rng(2)
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as f:
        d = f.create_dataset("v", data=values, chunks=chunk, compression=443, compression_opts=(WORD,))
        seen = d[...]
        for k in range(2000):
            at = [int(r.integers(0, n)) for n in shape]
            part = tuple(slice(a, a + int(r.integers(1, 7))) for a in at)
            new = smooth(values[part].shape, k, kind) + np.asarray(r.normal() * 0.1, kind)
            d[part] = new
            values[part] = new
            # What is written now is read once; what was written before stays as it was read then.
            seen[part] = d[part]
            if k % 200 == 199:
                assert (bits(d[...]) == bits(seen)).all(), k
        assert 0 < judge.check(values, d[...], "abs", BOUND) <= 1
        assert d.id.get_storage_size() < values.nbytes * 2 / 3  # hardly a chunk is stored


def codec_of(dataset):
    """The codec of the frame of the dataset's only chunk: 0 is `stored`, 5 `planes`."""
    return dataset.id.read_direct_chunk((0,) * dataset.ndim)[1][9]


@pytest.mark.parametrize("kind", ["f4", "f8", ">f4"])
def test_chunks_that_do_not_shrink_at_first(kind, tmp_path):
    r = np.random.default_rng(5)
    far = [7, 8, 9] if "4" in kind else [15, 75, 215]  # with too many quanta: such a value is kept bit for bit
    values = (r.normal(0, 1, (64, 64)) * 10.0 ** r.choice([-2, -1, 0, *far], (64, 64))).astype(kind)
    values[::9, 3] = np.nan
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as f:
        d = f.create_dataset("v", data=values, chunks=(64, 64), compression=443, compression_opts=(WORD,))
        assert codec_of(d) == 0
        first = d[...]
        assert 0 < judge.check(values, first, "abs", BOUND) <= 1
        d[32:] = 0
        assert codec_of(d) == 5
        assert (bits(d[:32]) == bits(first[:32])).all()
        d[32:] = values[32:]
        assert codec_of(d) == 0 and (bits(d[...]) == bits(first)).all()


def test_appends_step_by_step(tmp_path):
    n, steps = (12, 30), 500
    values = smooth((steps, *n), 3, "f4")
    seen = np.empty_like(values)
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as f:
        d = f.create_dataset(
            "v", shape=(0, *n), maxshape=(None, *n), dtype="f4", chunks=(64, *n), compression=443,
            compression_opts=(WORD,)
        )
        for t in range(steps):
            d.resize(t + 1, axis=0)
            d[t] = values[t]
            seen[t] = d[t]
        assert (bits(d[...]) == bits(seen)).all()
        assert 0 < judge.check(values, d[...], "abs", BOUND) <= 1


def test_time_steps_of_netcdf(tmp_path):
    values = smooth((120, 12, 30), 4, "f4")
    with h5py.File(tmp_path / "a.nc", "w", track_order=True) as f:
        how = {"chunks": (16, 12, 30), "maxshape": (None, 12, 30), "fillvalue": np.float32(-999)}
        f.create_dataset("v", shape=(0, 12, 30), dtype="f4", compression=443, compression_opts=(WORD,), **how)
        for i, (name, size) in enumerate(zip("tyx", (0, 12, 30), strict=True)):
            f.create_dataset(name, shape=(size,), dtype="f8", maxshape=(None if i == 0 else size,), chunks=(size or 16,
                             )).make_scale(name)
            f["v"].dims[i].attach_scale(f[name])
    values[5, 3:6] = -999
    seen = np.empty_like(values)
    for t in range(len(values)):
        with netCDF4.Dataset(tmp_path / "a.nc", "a") as f:
            f["v"].set_auto_mask(False)
            f["v"][t] = values[t]
        with netCDF4.Dataset(tmp_path / "a.nc") as f:
            f["v"].set_auto_mask(False)
            seen[t] = f["v"][t]  # from the file, no longer from the cache of chunks
    with netCDF4.Dataset(tmp_path / "a.nc") as f:
        f["v"].set_auto_mask(False)
        read = f["v"][...]
    assert (bits(read) == bits(seen)).all()
    assert 0 < judge.check(values, read, "abs", BOUND, fill=-999) <= 1


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_copies_into_other_chunks(kind, tmp_path):
    values = smooth((24, 40, 48), 5, kind)
    with h5py.File(tmp_path / "0.h5", "w") as f:
        f.create_dataset("v", data=values, chunks=(8, 20, 48), compression=443, compression_opts=(WORD,))
        seen = f["v"][...]
    for k, chunk in enumerate(["24x40x48", "5x7x11", "1x40x48", "24x1x7"]):
        subprocess.run(
            ["h5repack", "-f", f"v:UD=443,0,1,{WORD}", "-l", f"v:CHUNK={chunk}", tmp_path / f"{k}.h5",
             tmp_path / f"{k + 1}.h5"],
            check=True,
            env=clean(),
        )
        with h5py.File(tmp_path / f"{k + 1}.h5") as f:
            assert f["v"].chunks == tuple(map(int, chunk.split("x")))
            assert (bits(f["v"][...]) == bits(seen)).all(), chunk
