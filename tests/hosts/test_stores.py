# SPDX-License-Identifier: MIT OR Apache-2.0
"""Icechunk keeps arrays of the codec, and VirtualiZarr reads HDF5 files with the filter once it knows the number."""
import re

from conftest import ROOT, use

CHANGE = ROOT / "docs/zarr.md"

HEAD = """
import os, sys, h5py, zarr, xarray, h5z_gpu, h5z_gpu.zarr, numpy as np
from pathlib import Path
from samples import sample
from h5z_gpu import Lossless, Lossy
from h5z_gpu.zarr import Serializer
path = Path(sys.argv[1])
CHUNK = (4, 32, 32)
x = sample(shape=(9, 70, 50))
"""


def test_icechunk(tmp_path):
    """Written, committed, changed, grown, and each snapshot read again; with shards, and through xarray."""
    use(HEAD + """
import icechunk, judge
repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path / "ice")))

def commit(change, **how):
    session = repo.writable_session("main")
    change(session.store)
    return session.commit("next")

def create(store):
    for name, shards in (("v", None), ("sharded", (8, 64, 64))):
        z = zarr.create_array(store, name=name, shape=x.shape, dtype="f4", chunks=CHUNK, shards=shards, fill_value=-9,
                              serializer=Serializer(Lossy(1e-3)), compressors=None)
        z[...] = x

def change(store):
    z = zarr.open_group(store)["v"]
    z.resize((12, 70, 50))
    z[0] = 7

first, second = commit(create), commit(change)
encoding = {"t": {"serializer": Serializer(Lossy(1e-3, codec="planes")), "compressors": None, "chunks": CHUNK}}
commit(lambda store: xarray.Dataset({"t": (tuple("tyx"), x)}).to_zarr(store, group="ds", encoding=encoding,
                                                                      zarr_format=3, consolidated=False))
again = icechunk.Repository.open(icechunk.local_filesystem_storage(str(path / "ice")))
old, new = (zarr.open_group(again.readonly_session(snapshot_id=s).store, mode="r") for s in (first, second))
for name in ("v", "sharded"):
    assert 0 < judge.check(x, old[name][...], "abs", 1e-3) <= 1
y = new["v"][...]
assert (abs(y[0] - 7) <= 1e-3).all() and (y[9:] == -9).all() and 0 < judge.check(x[1:], y[1:9], "abs", 2e-3) <= 1
ds = xarray.open_zarr(again.readonly_session("main").store, group="ds", consolidated=False)
assert 0 < judge.check(x, ds.t.values, "abs", 1e-3) <= 1
chunks = [p for p in (path / "ice").rglob("*") if p.is_file() and p.read_bytes()[:5] == b"\\x89H5ZG"]
assert len(chunks) > 30, "frames lie there as they are"
""", tmp_path)


FUSED = """
from zarr.core.codec_pipeline import CodecPipeline
codec = Serializer(Lossy(1e-3))
for name in ("_encode_sync", "_decode_sync", "_encode_single", "_decode_single"):
    assert callable(getattr(codec, name)) and callable(getattr(h5z_gpu.zarr.Frames(bound=1e-3), name))
z = zarr.create_array({}, shape=x.shape, dtype="f4", chunks=x.shape, serializer=codec, compressors=None)
z[...] = x
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
how = default_buffer_prototype()
spec = ArraySpec(x.shape, z.metadata.data_type, np.float32(0), ArrayConfig("C", True), how)
there = how.nd_buffer.from_numpy_array(x)
frame = codec._encode_sync(there, spec)
assert frame.to_bytes() == sync(codec._encode_single(there, spec)).to_bytes()
assert frame.to_bytes() == h5z_gpu.compress(x, Lossy(1e-3), fill=0)
for found in (codec._decode_sync(frame, spec), sync(codec._decode_single(frame, spec))):
    assert found.as_numpy_array().tobytes() == z[...].tobytes()
raw = h5z_gpu.zarr.Frames(bound=1e-3)._decode_sync(frame, spec)
assert raw.to_bytes() == z[...].tobytes()
"""


def test_one_chunk_a_call(tmp_path):
    """What FusedCodecPipeline asks of a codec; zarr-python has it from 3.3 on, for Python 3.12 and later."""
    use(HEAD + FUSED, tmp_path)


VIRTUAL = HEAD + """
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import HDFParser
registry = ObjectStoreRegistry({"file://": LocalStore()})
hows = {"lossy": Lossy(1e-3), "lorenzo": Lossy(1e-3, codec="lorenzo"), "whole": Lossless()}
with h5py.File(path / "a.h5", "w") as f:
    for name, how in hows.items():
        f.create_dataset(name, data=x, chunks=CHUNK, compression=how, fillvalue=np.nan)
    f.create_dataset("numbers", data=(x * 100).astype("i2"), chunks=CHUNK, compression=Lossless())
    f.create_dataset("gzip", data=x, chunks=CHUNK, compression="gzip")
    want = {name: d[...] for name, d in f.items()}
url = f"file://{path}/a.h5"
"""


def test_virtualizarr_does_not_know_the_filter(tmp_path):
    """The day that this fails, docs/zarr.md can say less."""
    use(VIRTUAL + """
try:
    HDFParser()(url, registry)
except (ValueError, AttributeError) as e:  # with hdf5plugin and without
    assert "443" in str(e) or "get_filters" in str(e), e
else:
    raise AssertionError("it knows the filter")
""", tmp_path)


def test_virtualizarr_with_the_change_that_is_proposed(tmp_path):
    use("""
import re, shutil, subprocess, sys, virtualizarr
from pathlib import Path
path = Path(sys.argv[1])
shutil.copytree(Path(virtualizarr.__file__).parent, path / "changed/virtualizarr")
(change,) = re.findall(r"^```diff\\n(.*?)^```$", Path(sys.argv[2]).read_text(), re.M | re.S)
subprocess.run(["patch", "-p1", "-F0"], cwd=path / "changed", input=change, text=True, check=True)
""", tmp_path, CHANGE)
    use("import sys; sys.path.insert(0, sys.argv[1] + '/changed')\n" + VIRTUAL + """
with open_virtual_dataset(url, registry=registry, parser=HDFParser(), loadable_variables=[]) as ds:
    assert set(ds) == set(want)
    refs = ds.vz.to_kerchunk(format="dict")
group = zarr.open_group(HDFParser()(url, registry), mode="r")
for name, values in want.items():
    assert group[name][...].tobytes() == values.tobytes(), name
    assert xarray.open_dataset(refs, engine="kerchunk", mask_and_scale=False)[name].values.tobytes() == values.tobytes()
""", tmp_path)
    assert re.search("^```diff$", CHANGE.read_text(), re.M)
