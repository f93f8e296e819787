# SPDX-License-Identifier: MIT OR Apache-2.0
"""zarr-python 3 writes and reads arrays of Zarr 3 through the codec h5z_gpu."""
import pytest
from conftest import use

HEAD = """
import json, pickle, sys, warnings, zarr, judge, numpy as np, h5z_gpu
from pathlib import Path
from samples import sample
from h5z_gpu import Lossless, Lossy
from h5z_gpu.zarr import Serializer

path = Path(sys.argv[1])
MAGIC = b"\\x89H5ZG\\r\\n\\x1a"
SHAPE, CHUNK = (9, 70, 50), (4, 32, 32)  # 3 x 3 x 2 chunks, those at the edges filled up
warnings.simplefilter("error")

def create(store, x, how, **more):
    more = {"chunks": CHUNK[-x.ndim:], "fill_value": 0} | more
    return zarr.create_array(store, shape=x.shape, dtype=x.dtype, serializer=how, compressors=None, **more)

def refused(call, *parts, error=ValueError):
    try:
        call()
    except error as e:
        assert str(e).startswith("h5z-gpu: ") and all(p in str(e) for p in parts), e
    else:
        raise AssertionError("accepted")

def stored(folder):
    files = [p for p in folder.rglob("*") if p.is_file() and p.name != "zarr.json"]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}

def same(x, y):
    assert np.array_equal(x.astype(y.dtype).view(f"V{y.itemsize}"), y.view(f"V{y.itemsize}"))
"""


def zarr(code, *args):
    return use(HEAD + code, *args)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("place", ["memory", "local", "zip"])
def test_every_store_holds_the_bound(place, dtype, tmp_path):
    """With and without shards; what the fill value is, NaN too, comes back bit for bit."""
    zarr("""
from zarr.storage import LocalStore, MemoryStore, ZipStore
place, dtype = sys.argv[2:]
for shards in (None, (8, 64, 64)):
    for fill in (0, -9999.125, "NaN"):
        x = sample(shape=SHAPE).astype(dtype)
        number = np.array(float(fill), x.dtype)
        x.flat[::11], x.flat[5:9] = number, [np.nan, np.inf, -0.0, 1e30]
        where = path / f"{shards}{fill}"
        made = {"memory": MemoryStore, "local": lambda: LocalStore(where)}
        made["zip"] = lambda: ZipStore(f"{where}.zip", mode="w")
        store = made[place]()
        z = create(store, x, Serializer(Lossy(1e-3)), shards=shards, fill_value=float(fill))
        z[...] = x
        if place == "zip":
            store.close()
            store = ZipStore(f"{where}.zip")
        z = zarr.open_array(store, mode="r")
        y = z[...]
        assert 0 < judge.check(x, y, "abs", 1e-3, number) <= 1
        assert z.nbytes_stored() < x.nbytes * 0.7
        same(z[3:7, 30:40, ::7], y[3:7, 30:40, ::7])
        if place == "local" and not shards:
            frames = stored(where)
            assert len(frames) == 18 and all(f[:8] == MAGIC for f in frames.values()), list(frames)
""", tmp_path, place, dtype)


def test_modes_and_codecs(tmp_path):
    zarr("""
x = sample(shape=SHAPE) + 20
for mode, value in (("abs", 1e-3), ("rel", 1e-3), ("pw_rel", 1e-3), ("psnr", 60), ("lossless", 0)):
    for codec in ("auto", "szx", "lorenzo", "planes", "ndzip"):
        exact = codec in ("auto", "ndzip", "planes")
        lossy = codec != "ndzip" and not (mode == "pw_rel" and codec == "planes")
        if not (exact if mode == "lossless" else lossy):
            continue
        how = Lossy(value, mode, codec=codec) if value else Lossless(codec)
        z = create({}, x, Serializer(how))
        z[...] = x
        worst = judge.check_chunks(x, z[...], CHUNK, mode, value, 0)
        assert 0 < worst <= 1 or mode == "lossless", (mode, codec, worst)
        assert Serializer.from_dict(json.loads(json.dumps(z.serializer.to_dict()))) == Serializer(how) == z.serializer
""", tmp_path)


def test_a_chunk_is_the_frame_that_the_filter_stores(tmp_path):
    zarr("""
import h5py
x, fill = sample(shape=(8, 64, 64)), -5.5  # HDF5 fills a chunk at the edge up with zeros, Zarr with the fill value
x[0, :9] = fill
for how in (Lossy(1e-3), Lossy(1e-3, "rel", codec="szx"), Lossless()):
    create(path / repr(how), x, Serializer(how), fill_value=fill)[...] = x
    with h5py.File(path / "a.h5", "w") as f:
        d = f.create_dataset("v", data=x, chunks=CHUNK, fillvalue=fill, compression=how).id
        at = [d.get_chunk_info(i).chunk_offset for i in range(d.get_num_chunks())]
        chunks = {"c/" + "/".join(str(a // b) for a, b in zip(i, CHUNK)): d.read_direct_chunk(i)[1] for i in at}
    assert len(chunks) == 8 and chunks == stored(path / repr(how))
""", tmp_path)


def test_other_types_are_kept_exactly(tmp_path):
    zarr("""
r = np.random.default_rng(1)
warnings.filterwarnings("ignore", "The data type|.*does not have a Zarr V3")
pair = [("a", "<f4"), ("b", "<i2")]
for dtype in ("i1", "<i2", ">i2", "<u4", ">i8", "u8", "bool", "c8", ">c16", "M8[s]", "S7", "<U3", pair):
    dtype = np.dtype(dtype)
    x = np.frombuffer(r.bytes(70 * 50 * dtype.itemsize), "u1").reshape(70, -1) % 2 + 48 * (dtype.kind in "S")
    x = r.choice(["a", "xyz", ""], (70, 50)).astype(dtype) if dtype.kind == "U" else x.view(dtype)
    for shards in (None, (64, 64))[: 1 if dtype.fields else 2]:  # zarr-python 3.1 has no shards of structures
        how = {"serializer": Serializer(Lossy(1.0)), "compressors": None}
        z = zarr.create_array({}, shape=x.shape, dtype=dtype, chunks=(32, 32), shards=shards, **how)
        z[...] = x
        same(x, zarr.open_array(z.store, mode="r")[...])
try:
    zarr.create_array({}, shape=9, chunks=3, dtype=str, **how)
except ValueError as e:
    assert "VLenUTF8Codec" in str(e), e
else:
    raise AssertionError("accepted")
for shape, chunk in (((), ()), ((7,), (7,)), ((3, 4, 5, 2, 2, 2, 2, 2, 2), (2,) * 9)):
    x = np.arange(np.prod(shape)).reshape(shape).astype("f4") * 1.1
    z = create({}, x, Serializer(Lossy(1e-3)), chunks=chunk)
    z[...] = x
    judge.check(x, z[...], "abs", 1e-3, 0)
""", tmp_path)


def test_chunks_of_nothing_but_the_fill_value(tmp_path):
    zarr("""
x = np.full(SHAPE, 7.25, "f4")
x[:4, :32, :32] = sample(shape=(4, 32, 32))
for empty, frames in ((False, 1), (True, 18)):
    z = create(path / str(empty), x, Serializer(Lossy(1e-3)), fill_value=7.25, config={"write_empty_chunks": empty})
    z[...] = x
    assert len(stored(path / str(empty))) == frames
    y = zarr.open_array(path / str(empty), mode="r")[...]
    assert (y[4:] == 7.25).all() and 0 < judge.check(x, y, "abs", 1e-3, 7.25) <= 1
""", tmp_path)


def test_parts_of_chunks_and_arrays_that_grow(tmp_path):
    zarr("""
x = sample(shape=(20, 70, 50))
for shards in (None, (8, 64, 64)):
    z = create({}, x[:9], Serializer(Lossy(1e-3, codec="planes")), shards=shards)
    for i in range(9):
        z[i] = x[i]
    z.append(x[9:])
    first = z[...]
    z[5, 3:5, 1:9] = x[5, 3:5, 1:9]
    assert 0 < judge.check(x, z[...], "abs", 1e-3, 0) <= 1
    assert (z[...] == first).all(), "under planes no value moves again"
    z[...], z[0, 0] = 2.5, np.arange(50)
    now = np.full_like(x, 2.5)
    now[0, 0] = np.arange(50)
    judge.check(now, z[...], "abs", 1e-3, 0)
x = np.asfortranarray(x)
for more in ({"config": {"order": "F"}}, {"filters": zarr.codecs.TransposeCodec(order=(2, 0, 1))}):
    z = create({}, x, Serializer(Lossy(1e-3)), **more)
    z[...] = x
    assert 0 < judge.check(x, z[...], "abs", 1e-3, 0) <= 1
""", tmp_path)


def test_one_call_of_the_library_takes_a_batch(tmp_path):
    """zarr divides what is read or written into batches of the configured size; 18 chunks are three of at most 8."""
    zarr("""
calls = []
for name in ("encode_batch", "decode_batch"):
    real = getattr(h5z_gpu.library.lib, "h5z_gpu_" + name)
    at = 6 if name.startswith("e") else 0
    setattr(h5z_gpu.library.lib, "h5z_gpu_" + name, lambda *a, real=real, at=at: calls.append(a[at]) or real(*a))
x = sample(shape=SHAPE)
for shards in (None, (12, 96, 64)):
    for size in (1, 8):
        with zarr.config.set({"codec_pipeline.batch_size": size}):
            z = create({}, x, Serializer(Lossy(1e-3)), shards=shards)
            z[...] = x
            z = zarr.open_array(z.store)
            wrote, calls[:] = sorted(calls), []
            assert 0 < judge.check(x, z[...], "abs", 1e-3, 0) <= 1
            read, calls[:] = sorted(calls), []
            assert wrote == read == ([1] * 18 if size == 1 else [2, 8, 8]), (wrote, read)
            half = z[:4]
            assert sorted(calls) == ([1] * 6 if size == 1 else [6]), calls
            calls.clear()
""", tmp_path)


def test_a_damaged_chunk_is_refused_and_the_others_are_read(tmp_path):
    zarr("""
x = sample(shape=SHAPE)
z = create(path, x, Serializer(Lossy(1e-3)))
z[...] = x
file, y = path / "c/1/0/1", z[...]
sound = file.read_bytes()
foreign = h5z_gpu.compress(np.zeros(100, "f4"))
for size in (1, 8):
    with zarr.config.set({"codec_pipeline.batch_size": size}):
        z = zarr.open_array(path)
        for bad, *parts in (
            (sound[:-9] + bytes([sound[-9] ^ 1]) + sound[-8:], "damaged chunk: checksum"),
            (sound[:100], "damaged chunk", "100 bytes"), (sound[:3], "damaged chunk"), (b"", "damaged chunk"),
            (b"raw bytes" * 99, "damaged chunk"), (foreign, "400 bytes", "16384"),
        ):
            file.write_bytes(bad)
            refused(lambda: z[...], *parts)
            refused(lambda: z[5, 0, 40], *parts)
            same(z[0:4], y[0:4])
        file.write_bytes(sound)
        same(z[...], y)
""", tmp_path)


def test_configurations(tmp_path):
    zarr("""
x = sample(shape=SHAPE)
z = create(path / "a", x, {"name": "h5z_gpu", "configuration": {"mode": "absolute", "bound": 0.25, "codec": "szx"}})
said = json.loads((path / "a/zarr.json").read_text())["codecs"]
assert said == [{"name": "h5z_gpu", "configuration": {"mode": "absolute", "bound": 0.25, "codec": "szx"}}], said
assert z.serializer == Serializer(bound=0.25, codec="szx") == pickle.loads(pickle.dumps(z.serializer))
assert Serializer() == Serializer(Lossless()) == Serializer.from_dict({"name": "h5z_gpu"})
assert Serializer().to_dict()["configuration"] == {"mode": "lossless", "codec": "auto"}
assert Serializer(bound=0.1 + 0.2, mode="rel").bound == 0.1 + 0.2
for configuration, *parts in (
    ({"mode": "absolute"}, "bound"), ({"mode": "exact"}, "'exact'", "pointwise_relative"),
    ({"mode": ["psnr"], "bound": 1}, "mode"), ({"bound": "much"}, "'much'"), ({"bound": True}, "True"),
    ({"bound": [1]}, "[1]"), ({"bound": -1}, "above 0"), ({"bound": 1, "mode": "lossless"}, "no bound"),
    ({"bound": 2, "mode": "relative"}, "below 1"), ({"bound": 1, "codec": "zip"}, "zip", "lorenzo"),
    ({"codec": "szx"}, "szx is lossy"),
    ({"level": 3, "bound": 1}, "level", "mode, bound, codec"),
):
    refused(lambda: create({}, x, {"name": "h5z_gpu", "configuration": configuration}), *parts)
refused(lambda: Serializer(1e-3), "Lossy(1e-3)", error=TypeError)
refused(lambda: Serializer(Lossy(1e-3), codec="szx"), "already", error=TypeError)
""", tmp_path)


def test_xarray_writes_and_reads_a_store(tmp_path):
    """From dask's threads, a region later, and values that are missing."""
    zarr("""
import xarray
x = sample(shape=SHAPE)
x[2, 5:9] = np.nan
ds = xarray.Dataset({"v": (("t", "y", "x"), x), "t": np.arange(9.0)}).chunk(t=4)
how = {"v": {"serializer": Serializer(Lossy(1e-3)), "compressors": None, "chunks": CHUNK}}
warnings.simplefilter("default")
ds.to_zarr(path, zarr_format=3, encoding=how, consolidated=False)
ds.isel(t=slice(4, 8)).drop_vars("t").to_zarr(path, region={"t": slice(4, 8)}, consolidated=False)
back = xarray.open_zarr(path, consolidated=False)
assert 0 < judge.check(x, back.v.values, "abs", 1e-3, 0) <= 1 and (back.t == np.arange(9)).all()
assert all(f[:8] == MAGIC for f in stored(path / "v").values()) and len(stored(path / "v")) == 18
# What was opened is written again with the same codec.
back.isel(t=slice(0, 4)).to_zarr(path / "again", zarr_format=3, consolidated=False)
assert json.loads((path / "again/v/zarr.json").read_text())["codecs"][0]["name"] == "h5z_gpu"
""", tmp_path)
