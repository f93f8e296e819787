# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that have no descriptor: on a web server, in memory, in whatever h5py reads through an object of Python."""
import gc
import io
import os
import re
import sys
import warnings

import aiohttp
import fsspec
import h5py
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, child, sample
from test_datasets import SELECTIONS, slow
from web import server

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu

CHUNK = (4, 10, 16)


@pytest.fixture(autouse=True)
def listening(caplog):
    """And no collection of garbage: fsspec's thread would wait for h5py's lock to free an h5py object of an earlier
    test, while h5py holds the lock and waits for that thread."""
    caplog.set_level("INFO", "h5z_gpu")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def made(a, change=lambda d: None, **how):
    """The bytes of a file with the dataset `v`."""
    there = io.BytesIO()
    how = {"chunks": CHUNK, "compression": h5z_gpu.Lossy(1e-3), "dtype": a.dtype} | how
    with h5py.File(there, "w") as f:
        d = f.create_dataset("v", a.shape, **how)
        d[...] = a
        change(d)
    return bytearray(there.getvalue())


def place(data, *origin):
    """Where a chunk is."""
    with h5py.File(io.BytesIO(data)) as f:
        found = f["v"].id.get_chunk_info_by_coord(origin)
    return found.byte_offset, found.size


@pytest.fixture
def http():
    """Opens a file of a server as h5py's users do."""
    opened = []

    def file(s, name="a.h5", **how):
        fs = fsspec.filesystem("http", skip_instance_cache=True)
        opened.append(fs.open(s.url(name), **{"block_size": 4096} | how))
        return opened[-1]

    yield file
    for f in opened:
        f.close()


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_selections_over_http(selection, http, caplog):
    a = sample(shape=(20, 33, 47))
    with server({"a.h5": made(a)}) as s, h5py.File(http(s)) as f:
        want, got = f["v"][selection], h5z_gpu.read(f["v"], selection=selection)
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()
        said, few = slow(caplog), np.size(want) < 20
        assert all("come sooner" in line or "nothing is selected" in line for line in said) and len(said) == few, said


def test_requests_go_side_by_side_and_neighbours_in_one(http, caplog):
    """With 20 ms for each request: 96 chunks of 640 kB that no codec makes smaller, some MB a request."""
    noise = np.random.default_rng(1).integers(0, 1 << 32, (96, 400, 400), np.uint32)
    data = made(noise, chunks=(1, 400, 400), compression=h5z_gpu.Lossless())
    with server({"a.h5": data}, latency=0.02) as s, h5py.File(http(s, block_size=1 << 20)) as f:
        assert h5z_gpu.read(f["v"]).tobytes() == noise.tobytes() and not slow(caplog)
        frames = [(first, last) for first, last, _ in s.asked if last - first > 2 << 20]
        assert 4 <= s.most <= 17 and 10 <= len(frames) <= 20, (s.most, frames)
        assert sum(last - first for first, last, _ in s.asked) < 1.2 * len(data)


def test_far_frames_have_requests_of_their_own(http, caplog):
    noise = np.random.default_rng(1).integers(0, 1 << 32, (8, 4, 90_000), np.uint32)
    data = made(noise, chunks=(1, 1, 90_000), compression=h5z_gpu.Lossless())
    with server({"a.h5": data}, latency=0.02) as s, h5py.File(http(s)) as f:
        assert h5z_gpu.read(f["v"], selection=np.s_[:, 1]).tobytes() == noise[:, 1].tobytes() and not slow(caplog)
        frames = [(first, last) for first, last, _ in s.asked if last - first > 300_000]
        assert len(frames) == 8 and s.most > 2
        assert sum(last - first for first, last, _ in s.asked) < 0.4 * len(data)


def test_what_the_file_was_opened_with_goes_along(http, caplog):
    a = sample(shape=(20, 33, 47))
    with server({"a.h5": made(a)}) as s, h5py.File(http(s, headers={"X-Key": "secret"})) as f:
        s.asked.clear()
        h5z_gpu.read(f["v"])
        assert s.asked and all(headers.get("X-Key") == "secret" for *_, headers in s.asked) and not slow(caplog)


def others(data, url):
    """Objects of other kinds with the same bytes."""
    import obstore.fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/a.h5", bytes(data))
    yield "memory://", memory.open("/a.h5")
    yield "BytesIO", io.BytesIO(data)
    how = {"client_options": {"allow_http": True}}
    yield "obstore", obstore.fsspec.FsspecStore("http", **how).open(url)
    for cache in ("all", "blockcache", "none", "first"):
        yield cache, fsspec.filesystem("http", skip_instance_cache=True).open(url, cache_type=cache)
    yield "simplecache", fsspec.open(f"simplecache::{url}").open()


def test_objects_of_many_kinds(caplog):
    a = sample(shape=(20, 33, 47))
    data, kinds = made(a), 0
    with server({"a.h5": data}) as s:
        for kind, there in others(data, s.url("a.h5")):
            with there, h5py.File(there) as f:
                s.asked.clear()
                want, got = f["v"][3:, 5:30], h5z_gpu.read(f["v"], selection=np.s_[3:, 5:30])
                assert got.tobytes() == want.tobytes() and not slow(caplog), kind
                kinds += 1
    assert kinds == 8


def test_an_array_is_filled_in_place(http, caplog):
    a = sample(shape=(20, 33, 47))
    with server({"a.h5": made(a)}) as s, h5py.File(http(s)) as f:
        out = np.full((47, 33, 20), -1, "f4").T
        assert h5z_gpu.read(f["v"], out) is out and out.tobytes() == f["v"][...].tobytes() and not slow(caplog)
        assert h5z_gpu.read(f["v"], threads=1, progress=False).tobytes() == out.tobytes()


def test_chunks_that_are_not_there_or_not_filtered(caplog):
    a = sample(shape=(20, 33, 47))

    def holes(d):
        d.id.write_direct_chunk((4, 10, 16), np.full(CHUNK, 7.5, "f4").tobytes(), filter_mask=1)
        d.id.write_direct_chunk((16, 30, 32), np.full(CHUNK, 8.5, "f4").tobytes(), filter_mask=1)
        d.resize((24, 33, 47))

    for fill, when in ((-5, "alloc"), (-5, "never"), (None, "ifset")):
        data = made(a, holes, maxshape=(None, 33, 47), fillvalue=fill, fill_time=when)
        with h5py.File(io.BytesIO(data)) as f:
            got = h5z_gpu.read(f["v"], selection=np.s_[1:, 1:, 1:])
            want = f["v"][1:, 1:, 1:]
        assert (got[20:] == (fill if fill and when != "never" else 0)).all()
        assert got[:19].tobytes() == want[:19].tobytes() and (got[3, 10, 16], got[18, 30, 40]) == (7.5, 8.5)
        assert not slow(caplog)


def test_what_hdf5_is_to_do(caplog):
    a = sample(shape=(20, 33, 47))
    pair = np.zeros(a.shape, [("a", "f4"), ("b", "i2")])
    pair["a"] = a
    ours = {"compression": h5z_gpu.Lossy(1e-3)}
    for word, array, how in (
        ("gzip", a, {"compression": "gzip"}), ("beside", a, ours | {"shuffle": True}), ("pair", pair, ours),
        ("bool", a > 0, ours), ("whole", a, {"chunks": None, "compression": None}),
    ):
        with h5py.File(io.BytesIO(made(array, **how))) as f:
            assert h5z_gpu.read(f["v"]).tobytes() == f["v"][...].tobytes()
        said = slow(caplog)
        assert len(said) == 1 and "read through HDF5's pipeline" in said[0], (word, said)
    there = io.BytesIO(made(a))
    with h5py.File(there, "r+") as f:
        f["v"][0] = 3
        back = h5z_gpu.read(f["v"], selection=np.s_[:9])
        assert np.allclose(back[0], 3, rtol=0, atol=1e-3) and "for writing" in slow(caplog)[0]
        h5z_gpu.write(f["v"], a)
        assert "another driver" in slow(caplog)[0]
    # An extensible array whose unlimited axis is not the first.
    there = io.BytesIO()
    with h5py.File(there, "w", libver="latest") as f:
        f.create_dataset("v", data=a, chunks=CHUNK, maxshape=(20, None, 47), **h5z_gpu.Lossless())
    with h5py.File(there) as f:
        assert h5z_gpu.read(f["v"]).tobytes() == a.tobytes() and "at places of others" in slow(caplog)[0]


def test_edges_without_the_filter(caplog):
    """An option of HDF5 that h5py does not offer."""
    import ctypes

    a, there, hdf5 = sample(shape=(20, 33, 47)), io.BytesIO(), ctypes.CDLL(h5py.h5d.__file__)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk(CHUNK)
    plan.set_filter(443, h5py.h5z.FLAG_MANDATORY, (90000,))
    assert hdf5.H5Pset_chunk_opts(ctypes.c_int64(plan.id), ctypes.c_uint(2)) == 0
    with h5py.File(there, "w", libver="latest") as f:
        space = h5py.h5s.create_simple(a.shape)
        h5py.Dataset(h5py.h5d.create(f.id, b"v", h5py.h5t.NATIVE_FLOAT, space, plan))[...] = a
    with h5py.File(there) as f:
        assert h5z_gpu.read(f["v"]).tobytes() == a.tobytes() and "edge" in slow(caplog)[0]


DAMAGE = {
    "a bit": lambda data, at, n: data.__setitem__(at + n // 2, data[at + n // 2] ^ 4),
    "zeros": lambda data, at, n: data.__setitem__(slice(at, at + n), bytes(n)),
    "the header": lambda data, at, n: data.__setitem__(slice(at, at + 8), b"somebody"),
    "the raw length": lambda data, at, n: data.__setitem__(slice(at + 16, at + 24), b"\xff" * 8),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_says_the_same_as_in_a_file(damage, tmp_path, caplog):
    a = sample(shape=(20, 33, 47))
    data = made(a, fillvalue=-3)
    for origin in ((4, 10, 16), (8, 0, 0))[: 1 if damage == "zeros" else 2]:
        DAMAGE[damage](data, *place(data, *origin))
    (tmp_path / "a.h5").write_bytes(data)
    said = []
    for there in (tmp_path / "a.h5", io.BytesIO(data)):
        with h5py.File(there) as f:
            with pytest.raises(OSError) as e:
                h5z_gpu.read(f["v"])
            told = [str(e.value)]
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                filled = h5z_gpu.read(f["v"], on_error="fill")
            told += sorted(str(w.message) for w in warned)
            assert (filled[4:8, 10:20, 16:32] == -3).all()
            whole = filled[12:].tobytes()
            assert h5z_gpu.read(f["v"], selection=np.s_[12:]).tobytes() == whole
        said.append(told)
    assert said[0] == said[1] and "cannot be read: h5z-gpu: damaged" in said[0][0], said
    assert not slow(caplog)


def test_a_mask_that_hands_frames_out_as_values(caplog):
    a = sample(shape=(20, 33, 47))
    frame = np.frombuffer(h5z_gpu.compress(a[:4, :10, :16]), np.uint8)

    def masked(d):
        for length, origin in ((d[0:4, 0:10, 0:16].nbytes, (0, 0, 0)), (100, (4, 0, 0))):
            d.id.write_direct_chunk(origin, np.resize(frame, length).tobytes(), filter_mask=1)

    with h5py.File(io.BytesIO(made(a, masked))) as f:
        for box, word in ((np.s_[:4], "it is a frame of the filter"), (np.s_[4:8], "in 100 bytes; it would have 2560")):
            with pytest.raises(OSError, match=f"stored without filters.*{word}"):
                h5z_gpu.read(f["v"], selection=box)
            with pytest.warns(UserWarning, match="is damaged; it is filled with 0.0"):
                assert (h5z_gpu.read(f["v"], selection=box, on_error="fill")[:, :10, :16] == 0).all()


def test_a_server_that_fails(http, caplog):
    a = sample(shape=(20, 33, 47))
    data = made(a)
    at, _ = place(data, 8, 10, 16)
    inside = lambda first, last: first <= at < last
    with server({"a.h5": data}) as s, h5py.File(http(s, block_size=64)) as f:
        h5z_gpu.read(f["v"])
        s.refuse = inside
        # A server's failure is no damage: nothing is filled.
        for on_error in ("raise", "fill"):
            with pytest.raises(aiohttp.ClientResponseError) as e:
                h5z_gpu.read(f["v"], on_error=on_error)
            assert e.value.status == 503
            told = " ".join(getattr(e.value, "__notes__", ()))  # Python 3.11
            assert re.search(r"/v: the chunk at .* cannot be read: of .*a\.h5.* bytes from ", told) or not told
        s.refuse, s.cut = None, inside
        with pytest.raises(OSError, match=r"cannot be read: of .*: \d+ bytes came: read it again"):
            h5z_gpu.read(f["v"])
        s.cut = None
        assert h5z_gpu.read(f["v"]).tobytes() == f["v"][...].tobytes()
    assert not slow(caplog)


def test_an_object_that_fails():
    class Bad(io.BytesIO):
        broken = False

        def read(self, n=-1):
            if self.broken:
                raise TimeoutError("no answer")
            return super().read(n)

    there = Bad(made(sample(shape=(20, 33, 47))))
    with h5py.File(there) as f:
        h5z_gpu.read(f["v"])
        there.broken = True
        with pytest.raises(TimeoutError, match="^no answer") as e:
            h5z_gpu.read(f["v"])
        assert e.value.args == ("no answer",)


def test_ctrl_c_while_a_server_is_slow(tmp_path):
    code = f"""
import sys; sys.path[:0] = [{str(ROOT / "plugin/python")!r}, {str(ROOT / "tests/hosts")!r}]
import os, signal, threading, time, fsspec, h5py, h5z_gpu
from test_remote import made, sample, server
a = sample(shape=(400, 33, 47))
with server({{"a.h5": made(a)}}) as s, fsspec.filesystem("http").open(s.url("a.h5"), block_size=1 << 20) as there:
    with h5py.File(there) as f:
        h5z_gpu.read(f["v"])
        s.latency = 3
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        t = time.time()
        try:
            h5z_gpu.read(f["v"])
        except KeyboardInterrupt:
            print("stopped", time.time() - t)
        s.latency = 0
        assert h5z_gpu.read(f["v"]).tobytes() == f["v"][...].tobytes()
        print("reads again")
"""
    import subprocess

    env = os.environ | {"H5Z_GPU_PLUGIN_PATH": str(PLUGIN.parent)}
    with child(sys.executable, "-c", code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as p:
        said = p.communicate(timeout=120)[0]
    assert re.search(r"stopped [0-2]\.", said) and "reads again" in said, said
