# SPDX-License-Identifier: MIT OR Apache-2.0
"""Datasets that other filters wrote, read by many chunks at a time: gzip, Zstandard, shuffle, checksums."""
import re
import sys

import h5py
import hdf5plugin
import numpy as np
import pytest
from conftest import HERE, clean, run, sample, use
from test_run import SHORT, under

X = sample(np.float32, (40, 130, 170), noise=0.1)
KINDS = {
    "gzip": {"compression": "gzip"},
    "shuffled": {"compression": "gzip", "shuffle": True, "compression_opts": 1},
    "summed": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "sum": {"fletcher32": True},
    "shuffle": {"shuffle": True},
    "plain": {},
    "zstd": {**hdf5plugin.Zstd(3), "shuffle": True},
    # Left to HDF5.
    "lzf": {"compression": "lzf"},
    "szip": {"compression": "szip"},
    "both": {"compression": 443, "compression_opts": (90000,), "fletcher32": True},
}
LEFT = {"lzf", "szip", "both"}
NO_SUM = {"shuffle", "plain", "zstd"}
READ = """
import h5py, hdf5plugin, hashlib, sys
if sys.argv[2:]:
    import h5z_gpu
with h5py.File(sys.argv[1], rdcc_nbytes=0) as f:
    for name in sorted(f):
        for at in ((), (slice(3, 33), slice(None), slice(7, 150))):
            try:
                x = h5z_gpu.read(f[name], selection=at) if sys.argv[2:] else f[name][at]
                print(name, hashlib.sha256(x.tobytes()).hexdigest())
            except OSError as e:
                print(name, e)
"""


def written(path, dtype="f4"):
    with h5py.File(path, "w") as f:
        for name, kind in KINDS.items():
            more = {"chunks": (8, 40, 64), **kind}
            d = f.create_dataset(name, X.shape, dtype, maxshape=(None, 130, 170), fillvalue=3, **more)
            d[:, :100] = X[:, :100].astype(dtype)
            if name in ("gzip", "shuffled", "zstd"):
                # Chunks that go without each of the filters, and without the last of two.
                chunk = X[16:24, 40:80, 64:128].astype(dtype)
                d.id.write_direct_chunk((16, 40, 64), chunk.tobytes(), 3)
                if name != "gzip":
                    bytes_first = chunk.reshape(-1).view("u1").reshape(-1, chunk.itemsize).T
                    d.id.write_direct_chunk((24, 40, 64), bytes_first.tobytes(), 2)
            noise = np.random.default_rng(1).integers(0, 2**63, X.shape)
            f.create_dataset(f"{name} of noise", data=noise, **more)
    return path


@pytest.mark.parametrize("dtype", ["f4", "<i2", "f8", "u1"])
def test_their_values(tmp_path, dtype):
    path = written(tmp_path / "a.h5", dtype)
    plain = run(sys.executable, "-c", READ, path)
    assert use(READ, path, "by h5z_gpu.read") == plain
    said, why = under(sys.executable, "-c", READ, path)
    assert said == plain
    for name in KINDS:
        for which in name, f"{name} of noise":
            way = "HDF5: its filters are" if name in LEFT else SHORT
            assert re.search(rf"/{which}: read 2 times {SHORT if way == SHORT else 'by ' + way}", why), (which, why)


def test_an_archive_is_packed_anew(tmp_path):
    written(tmp_path / "a.h5")
    _, why = under("h5repack", "-f", "summed:UD=443,0,1,11003", tmp_path / "a.h5", tmp_path / "b.h5")
    for way in r"read \d+", "write 1":
        assert re.search(rf"/summed: {way} times {SHORT}", why), why
    with h5py.File(tmp_path / "b.h5") as f:
        assert 0 < np.abs(f["summed"][:, :100] - X[:, :100]).max() <= 1e-3 and (f["summed"][:, 100:] == 3).all()


def test_damage_is_told_by_hdf5(tmp_path):
    path = written(tmp_path / "a.h5")
    with h5py.File(path) as f:
        places = {name: f[name].id.get_chunk_info_by_coord((8, 40, 64)) for name in KINDS if name not in LEFT | NO_SUM}
    with open(path, "r+b") as raw:
        for place in places.values():
            raw.seek(place.byte_offset + place.size // 2)
            raw.write(b"damaged")
    plain = run(sys.executable, "-c", READ, path)
    said, why = under(sys.executable, "-c", READ, path)
    assert said == plain and plain.count("filter returned failure") == 2 * len(places), plain
    assert len(re.findall(r"the chunk at \(8, 40, 64\) cannot be read", why)) == len(places), why
    assert use(READ, path, "by h5z_gpu.read") == plain


def test_a_chunk_that_is_longer_than_its_filters_leave_one_is_read_by_hdf5(tmp_path):
    """No memory is taken for what a file says is stored beyond that: HDF5's zlib stops where the stream ends."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("x", (40, 128, 128), "f4", chunks=(8, 128, 128), compression="gzip")
        d[...] = 1
        _, stored = d.id.read_direct_chunk((8, 0, 0))
        d.id.write_direct_chunk((8, 0, 0), stored + bytes(600_000), 0)
    plain = run(sys.executable, "-c", READ, path)
    said, why = under(sys.executable, "-c", READ, path)
    assert said == plain and "a chunk of 600" in why and "533504 at most" in why, (plain, said, why)


NETCDF = """
import netCDF4, sys
import numpy as np
from samples import sample
x = sample(np.float32, (40, 256, 256))
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, n in zip("tyx", (None, 256, 256)):
        d.createDimension(name, n)
    v = d.createVariable("v", "f4", tuple("tyx"), chunksizes=(4, 256, 256), zlib=True, fletcher32=True)
    v[:] = x
with netCDF4.Dataset(sys.argv[1]) as d:
    assert (d["v"][:] == x).all()
"""


def test_netcdf(tmp_path):
    _, why = under(sys.executable, "-c", NETCDF, tmp_path / "a.nc", env=clean(PYTHONPATH=str(HERE)))
    assert f"/v: read 1 times {SHORT}" in why and "its filters are others than 443 alone" in why, why


BOX = """
import re, sys
import h5py
import numpy as np
path, kind = sys.argv[1:]
with h5py.File(path, rdcc_nbytes=0) as f:
    got = f[kind][:, :1000]
assert got.shape == (16, 1000) and (got == np.arange(1000) % 251).all()
# Of this program alone: getrusage counts the process that started it.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) >> 10, "MiB")
"""


@pytest.mark.parametrize("kind", ["gzip", "shuffled"])
def test_chunks_in_flight_are_as_many_as_memory_allows(tmp_path, kind):
    """1000 columns of 16 chunks of 64 MiB by 16 threads: each chunk takes its 64 MiB while it is decoded, and with
    shuffle as many again."""
    values = (np.arange(1 << 24, dtype="u4") % 251).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        how = {"compression": "gzip", "compression_opts": 1, "shuffle": kind == "shuffled"}
        d = f.create_dataset(kind, (16, len(values)), "f4", chunks=(1, len(values)), **how)
        d[0] = values
        stored = d.id.read_direct_chunk((0, 0))[1]
        for row in range(1, 16):
            d.id.write_direct_chunk((row, 0), stored)
    env = clean(H5Z_GPU_THREADS="16")
    said, why = under(sys.executable, "-c", BOX, tmp_path / "a.h5", kind, env=env)
    assert f"read 1 times {SHORT}, 64000 bytes" in why and int(said.split()[0]) <= 512, (said, why)


def test_a_chunk_that_memory_does_not_allow_goes_to_hdf5(tmp_path):
    """One of 400 MiB without a filter, of which HDF5 reads what is asked for."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((1, 100 << 20))
        plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((16, 100 << 20))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"gzip", h5py.h5t.NATIVE_FLOAT, space, plan))
        for row in range(16):
            d[row, :1000] = np.arange(1000) % 251
    said, why = under(sys.executable, "-c", BOX, tmp_path / "a.h5", "gzip")
    assert "read 1 times by HDF5: a chunk takes 800 MiB of memory while it is decoded, and 384 MiB may be taken" in why
    assert int(said.split()[0]) <= 256, said
