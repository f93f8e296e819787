# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole arrays by the Python package: the same files as through HDF5's pipeline, the same values."""
import os
import sys
from fractions import Fraction

import h5py
import judge
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, clean, python, run, sample, use

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu


def frames(path, name="v"):
    """The stored bytes of each chunk, by its place."""
    with h5py.File(path) as f:
        found = []
        f[name].id.chunk_iter(found.append)
        return {i.chunk_offset: (i.filter_mask, f[name].id.read_direct_chunk(i.chunk_offset)[1]) for i in found}


def slow(caplog):
    """What went through HDF5's pipeline, as the log says."""
    said = [r.getMessage() for r in caplog.records if r.name == "h5z_gpu"]
    caplog.clear()
    return said


@pytest.fixture(autouse=True)
def listening(caplog):
    caplog.set_level("INFO", "h5z_gpu")


@pytest.mark.parametrize("fill", [None, 1e20])
@pytest.mark.parametrize("how", [(11003,), (111003,), (511003,), (90000,), (21003,), (31003,)])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4", "|u1"])
def test_the_file_is_the_filters(how, dtype, fill, tmp_path, caplog):
    if np.dtype(dtype).kind != "f":
        fill = fill and 77
    a = (sample(shape=(37, 50, 61)) * (1 if "f" in dtype else 3)).astype(dtype)
    if fill:
        a[3:9, 10:20] = fill
    made = {}
    for way in ("pipeline", "write"):
        with h5py.File(tmp_path / way, "w") as f:
            d = f.create_dataset("v", a.shape, dtype, chunks=(16, 20, 32), compression=443, compression_opts=how,
                                 fillvalue=fill)
            h5z_gpu.write(d, a) if way == "write" else d.__setitem__(..., a)
        made[way] = frames(tmp_path / way)
    assert not slow(caplog) and len(made["write"]) == 3 * 3 * 2
    assert made["write"] == made["pipeline"]
    with h5py.File(tmp_path / "pipeline") as f:
        want, got = f["v"][...], h5z_gpu.read(f["v"])
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes() and not slow(caplog)


LAYOUTS = {
    "dense": lambda a: np.ascontiguousarray(a),
    "transposed": lambda a: np.asfortranarray(a),
    "reversed": lambda a: np.ascontiguousarray(a[::-1, :, ::-1])[::-1, :, ::-1],
    "every other": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout(layout, tmp_path, caplog):
    a = LAYOUTS[layout](sample(shape=(20, 33, 47)))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(7, 20, 30), **h5z_gpu.Lossless())
        h5z_gpu.write(d, a)
        assert d[...].tobytes() == a.tobytes()
        if layout != "broadcast":
            out = LAYOUTS[layout](np.zeros_like(a))
            if out.flags.writeable:
                assert h5z_gpu.read(d, out) is out and out.tobytes() == a.tobytes()
            else:
                with pytest.raises(ValueError, match="read-only"):
                    h5z_gpu.read(d, out)
    assert not slow(caplog)


SELECTIONS = [np.s_[...], np.s_[3], np.s_[-1], np.s_[2:19], np.s_[:, 5:6, 40:], np.s_[7, :, 3], np.s_[0, 0, 0],
              np.s_[..., 17], np.s_[4:4], np.s_[7:14, 20:33, 30:47], np.s_[1:100, -3:, 2:-2]]


@pytest.mark.parametrize("codec", ["szx", "lorenzo", "planes", "ndzip"])
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_selections(selection, codec, tmp_path, caplog):
    a = sample(shape=(20, 33, 47))
    how = h5z_gpu.Lossless("ndzip") if codec == "ndzip" else h5z_gpu.Lossy(1e-3, codec=codec)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=a, chunks=(7, 20, 30), **how)
        for way in ("pipeline", "write"):
            e = f.create_dataset(way, a.shape, a.dtype, chunks=(7, 20, 30), fillvalue=5,
                                 **h5z_gpu.Lossy(1e-3, codec="planes"))
            values = np.asarray(a[selection] + 1)
            h5z_gpu.write(e, values, selection) if way == "write" else e.__setitem__(selection, values)
    slow(caplog)
    with h5py.File(tmp_path / "a.h5") as f:
        want, got = f["v"][selection], h5z_gpu.read(f["v"], selection=selection)
        assert got.shape == want.shape and got.tobytes() == want.tobytes()
        assert f["pipeline"][...].tobytes() == f["write"][...].tobytes()
    assert not slow(caplog)


@pytest.mark.parametrize("selection", [np.s_[::2], np.s_[[1, 3]], np.s_[:, 3:30:4]], ids=str)
def test_other_selections_take_the_ordinary_way(selection, tmp_path, caplog):
    a = sample(shape=(20, 33, 47))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(7, 20, 30), **h5z_gpu.Lossless())
        h5z_gpu.write(d, a)
        assert not slow(caplog)
        got = h5z_gpu.read(d, selection=selection)
        assert got.tobytes() == a[selection].tobytes()
        assert "box" in slow(caplog)[0]
        h5z_gpu.write(d, got + 1, selection)
        assert d[selection].tobytes() == (a[selection] + 1).tobytes()


def test_chunks_that_nobody_wrote_are_the_fill_value(tmp_path, caplog):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", (100, 100), "f4", chunks=(30, 30), fillvalue=-7, maxshape=(None, 100),
                             **h5z_gpu.Lossy(1e-3))
        assert (h5z_gpu.read(d) == -7).all()
        d[40:50, 40:50] = 1
        d.resize((150, 100))
        h5z_gpu.write(d, np.full((150, 10), 3, "f4"), np.s_[:, :10])
    with h5py.File(tmp_path / "a.h5") as f:
        want = f["v"][...]
        assert h5z_gpu.read(f["v"]).tobytes() == want.tobytes()
        assert (want[140:, 20:] == -7).all() and np.abs(want[:, :10] - 3).max() <= 1e-3


def other_ways(f, a, tmp_path):
    """Datasets that the fast way cannot take, each with a word of the reason."""
    create = f.create_dataset
    yield "443 alone", create("shuffled", a.shape, a.dtype, chunks=(10, 40), shuffle=True, **h5z_gpu.Lossless())
    yield "[1]", create("gzip", a.shape, a.dtype, chunks=(10, 40), compression="gzip")
    yield "chunks", create("contiguous", a.shape, a.dtype)
    yield "becomes", create("narrower", a.shape, "f2" if a.dtype == "f4" else "f4", chunks=(10, 40),
                            **h5z_gpu.Lossless())
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_ebias(100)
    space = h5py.h5s.create_simple(a.shape)
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((10, 40))
    dcpl.set_filter(443, h5py.h5z.FLAG_OPTIONAL, (90000,))
    yield "type", h5py.Dataset(h5py.h5d.create(f.id, b"odd", odd, space, dcpl))


def test_what_cannot_be_taken_goes_through_the_pipeline(tmp_path, caplog):
    a = sample(shape=(50, 90))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for reason, d in other_ways(f, a, tmp_path):
            values = a.astype(d.dtype) if d.name == "/narrower" else a
            h5z_gpu.write(d, a)
            (said,) = slow(caplog)
            assert reason in said and d.name in said
            want = d[...]
            np.testing.assert_array_equal(want, values.astype(want.dtype))
            got = h5z_gpu.read(d, np.empty(a.shape, "f8") if d.name == "/narrower" else None)
            # Chunks of gzip are read on all cores, and written by HDF5.
            assert slow(caplog) == [] if d.name == "/gzip" else reason in slow(caplog)[0]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("how", [{"driver": "core"}, {"driver": "stdio"}, {"driver": "split"},
                                 {"fs_strategy": "page", "page_buf_size": 1 << 20, "fs_page_size": 4096}], ids=str)
def test_files_of_other_drivers_go_through_the_pipeline(how, tmp_path, caplog):
    a = sample(shape=(50, 90))
    with h5py.File(tmp_path / "a.h5", "w", **how) as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(10, 40), **h5z_gpu.Lossless())
        h5z_gpu.write(d, a)
        assert h5z_gpu.read(d).tobytes() == a.tobytes()
        assert len(slow(caplog)) == 2


@pytest.mark.parametrize("how", [{"userblock_size": 4096}, {"fs_strategy": "page", "fs_page_size": 4096},
                                 {"libver": "latest"},
                                 {"libver": "earliest"}, {"alignment_threshold": 1, "alignment_interval": 4096}],
                         ids=str)
def test_files_of_every_layout(how, tmp_path, caplog):
    a = sample(shape=(5, 90, 90))
    with h5py.File(tmp_path / "a.h5", "w", **how) as f:
        for name, maxshape in [("fixed", None), ("one", (None, 90, 90)), ("two", (None, None, 90)), ("single", None)]:
            chunks = a.shape if name == "single" else (2, 40, 40)
            d = f.create_dataset(name, a.shape, a.dtype, chunks=chunks, maxshape=maxshape, **h5z_gpu.Lossless())
            h5z_gpu.write(d, a)
            assert h5z_gpu.read(d).tobytes() == a.tobytes()
            d[1, 3] = 9
            assert h5z_gpu.read(d, selection=np.s_[1, 3]).tobytes() == d[1, 3].tobytes(), "what the chunk cache holds"
    with h5py.File(tmp_path / "a.h5") as f:
        a[1, 3] = 9
        assert all(h5z_gpu.read(d).tobytes() == a.tobytes() for d in f.values())
    assert not slow(caplog)


def test_a_chunk_that_the_filter_left_out(tmp_path):
    a = sample(shape=(4, 300))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(2, 300), **h5z_gpu.Lossy(1e-3))
        h5z_gpu.write(d, a)
        d.id.write_direct_chunk((2, 0), a[2:].tobytes(), filter_mask=1)
    with h5py.File(tmp_path / "a.h5") as f:
        got = h5z_gpu.read(f["v"])
        assert got[2:].tobytes() == a[2:].tobytes() and got.tobytes() == f["v"][...].tobytes()


FEW = np.s_[3:17, 20:38]
"""A box of four chunks of a hundred: few enough to be asked for by their places."""


@pytest.mark.parametrize("how", [{}, {"libver": "latest"}, {"userblock_size": 512, "libver": "v110"}], ids=str)
@pytest.mark.parametrize("maxshape", [None, (None, 100), (100, None)], ids=str)
def test_a_box_of_few_chunks(how, maxshape, tmp_path, caplog):
    """Missing chunks, one without the filter, one that the chunk cache holds; an index that HDF5 lists wrongly."""
    a = sample(shape=(100, 100))
    with h5py.File(tmp_path / "a.h5", "w", **how) as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(10, 10), maxshape=maxshape, fillvalue=-3,
                             **h5z_gpu.Lossless())
        assert (h5z_gpu.read(d, selection=FEW) == -3).all()
        d[:10, :30] = a[:10, :30]
        d.id.write_direct_chunk((10, 20), np.ascontiguousarray(a[10:20, 20:30]).tobytes(), filter_mask=1)
        a[10:20, 30:40], a[5, 25] = -3, 7
        d[5, 25] = 7
        a[:10, 30:40] = -3
        assert h5z_gpu.read(d, selection=np.s_[5, 21:28]).tobytes() == a[5, 21:28].tobytes()
    with h5py.File(tmp_path / "a.h5") as f:
        got = h5z_gpu.read(f["v"], selection=FEW)
        assert got.tobytes() == np.ascontiguousarray(a[FEW]).tobytes()
    assert not slow(caplog)


def test_many_variables_appended_by_another_process(tmp_path, caplog):
    path = tmp_path / "a.h5"
    arrays = {f"g{i % 3}/v{i}": sample(shape=(9 + i, 40), seed=i) for i in range(20)}
    h5z_gpu.save(path, arrays, h5z_gpu.Lossy(1e-3))
    python("""
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "a") as f:
    d = f.create_dataset("more", data=np.arange(1000.0), chunks=(100,), compression=443, compression_opts=(11003,))
""", path)
    found = h5z_gpu.load(path)
    assert set(found) == {*arrays, "more"}
    for name, a in arrays.items():
        assert 0 < np.abs(found[name] - a).max() <= 1e-3
    assert h5z_gpu.load(path, ["more"])["more"].shape == (1000,)
    with pytest.raises(KeyError, match="no dataset nothing"):
        h5z_gpu.load(path, ["nothing"])
    assert not slow(caplog)


def test_what_save_keeps_exactly(tmp_path):
    arrays = {"int": np.arange(100, dtype="i2").reshape(10, 10), "scalar": np.float64(3.25), "empty": np.zeros((0, 5)),
              "text": np.array([b"a", b"bc"]), "bool": np.array([True, False] * 50), "complex": np.ones((20, 20)) * 1j}
    h5z_gpu.save(tmp_path / "a.h5", arrays, h5z_gpu.Lossy(1e-1))
    found = h5z_gpu.load(tmp_path / "a.h5")
    for name, a in arrays.items():
        assert found[name].dtype == a.dtype and np.array_equal(found[name], a), name
    with pytest.raises(ValueError, match="objects"):
        h5z_gpu.save(tmp_path / "b.h5", {"o": np.array([None])})
    with pytest.raises(TypeError):
        h5z_gpu.save(tmp_path / "b.h5", {"o": np.zeros(3)}, h5z_gpu.Lossy(1), absolute=1)


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path):
    a = sample(shape=(50, 90))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(10, 40), **h5z_gpu.Lossless())
        for bad, word in [((d, a[1:]), "shape"), ((d, a, np.s_[:3]), "shape"),
                          ((d, a, np.s_[50]), "index 50 of an axis of 50"), ((d, a, np.s_[-51]), "index -51 "),
                          ((d, a, np.s_[1, 2, 3]), "selection"), ((d, a, np.s_[..., ...]), "selection")]:
            with pytest.raises((ValueError, IndexError), match=word):
                h5z_gpu.write(*bad)
        for bad, kind, word in [({"out": a[1:]}, ValueError, "shape"), ({"out": [1]}, TypeError, "numpy"),
                                ({"on_error": "no"}, ValueError, "raise")]:
            with pytest.raises(kind, match=word):
                h5z_gpu.read(d, **bad)
        f.create_dataset("null", data=h5py.Empty("f4"))
        with pytest.raises(ValueError, match="empty"):
            h5z_gpu.read(f["null"])
        assert d.id.get_num_chunks() == 0
    with h5py.File(tmp_path / "a.h5") as f:
        with pytest.raises(ValueError, match="r\\+"):
            h5z_gpu.write(f["v"], a)
        v = f["v"]
    for call in (lambda: h5z_gpu.read(v), lambda: h5z_gpu.write(v, a)):
        with pytest.raises(ValueError, match="closed"):
            call()


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8"])
@pytest.mark.parametrize("how", [{"relative": 1e-4}, {"psnr": 60}, {"relative": 1e-3, "fill_value": -999.0}], ids=str)
def test_one_bound_for_a_dataset(how, dtype, tmp_path, caplog):
    a = (sample(shape=(60, 70, 80)) * np.linspace(0.01, 1, 60)[:, None, None]).astype(dtype)
    a[5, 5, 5], a[9, 9, 9] = np.nan, -np.inf
    fill = how.get("fill_value")
    if fill:
        a[20:30, 10] = fill
    ints = np.arange(1000).reshape(10, 100)
    h5z_gpu.save(tmp_path / "a.h5", {"v": a, "i": ints, "zero": np.zeros((5, 5), dtype)}, of="dataset",
                 chunks=None, **how)
    good = a[np.isfinite(a) & (a != fill)].astype("f8")
    low, high = good.min(), good.max()
    factor = how.get("relative") or 10 ** (-how["psnr"] / 20)
    with h5py.File(tmp_path / "a.h5") as f:
        assert tuple(f["v"].attrs["h5z_gpu_range"]) == (low, high)
        words = f["v"].id.get_create_plist().get_filter(0)[2]
        stored = h5z_gpu.Lossy.from_filter_options(words)
        bound = stored.get_config()["absolute"]
        assert 0.999999 < bound / (factor * (high - low)) <= 1
        judge.check(a, f["v"][...], "abs", bound, fill)
        if "psnr" in how:
            error = f["v"][...][np.isfinite(a)].astype("f8") - a[np.isfinite(a)]
            assert 20 * np.log10((high - low) / np.sqrt((error**2).mean())) >= how["psnr"]
    found = h5z_gpu.load(tmp_path / "a.h5")
    assert (found["i"] == ints).all() and (found["zero"] == 0).all()
    assert h5z_gpu.Lossy(of="dataset", **how).for_array(a).get_config()["absolute"] == bound


def test_a_bound_of_a_dataset_is_never_above_its_part_of_the_range():
    numbers = np.random.default_rng(5).uniform(-100, 100, (20, 3))
    for low, high, part in [(min(a, b), max(a, b), abs(c) / 1000) for a, b, c in numbers.tolist()]:
        bound = Fraction(h5z_gpu.Lossy(relative=part, of="dataset").for_range((low, high)).bound)
        exact = Fraction(part) * (Fraction(high) - Fraction(low))
        assert exact * (1 - Fraction(1, 2**51)) < bound <= exact


def test_a_bound_of_a_dataset_needs_the_data(tmp_path):
    how = h5z_gpu.Lossy(relative=1e-4, of="dataset")
    assert repr(how) == "Lossy(relative=0.0001, of='dataset')" and h5z_gpu.Lossy(**how.get_config()) == how
    assert how != h5z_gpu.Lossy(relative=1e-4)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for way in ({"compression": how}, None):
            with pytest.raises(ValueError, match="h5z_gpu.save"):
                f.create_dataset("v", (10, 10), "f4", chunks=(5, 5), **(way or how))
    for wrong in ({"absolute": 1, "of": "dataset"}, {"relative": 0.1, "of": "file"}):
        with pytest.raises(ValueError, match="of="):
            h5z_gpu.Lossy(**wrong)
    assert h5z_gpu.Lossy(1).for_array(np.zeros(3)) == h5z_gpu.Lossy(1)
    for nothing in (np.full(5, np.nan), np.zeros(0), np.ones((3, 3))):
        assert isinstance(how.for_array(nothing), h5z_gpu.Lossless)
    with pytest.raises(ValueError, match="float32"):
        how.for_array(np.arange(5))


def test_arrays_of_other_libraries(tmp_path, caplog):
    a = sample(shape=(20, 30))

    class Foreign:
        """An array that only knows DLPack, as those of CuPy, PyTorch and JAX do."""

        def __init__(self, device):
            self.device = device

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **keywords):
            if self.device[0] != 1:
                raise BufferError("on a device")
            return a.__dlpack__(**keywords)

    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(7, 9), **h5z_gpu.Lossless())
        with pytest.raises(ValueError, match="on device 0, which cannot be used here .* copy it to host memory"):
            h5z_gpu.write(d, Foreign((2, 0)))
        assert d.id.get_num_chunks() == 0
        h5z_gpu.write(d, Foreign((1, 0)))
        assert d[...].tobytes() == a.tobytes()
        h5z_gpu.write(d, (a + 1).tolist())
    assert "becomes" in slow(caplog)[0]


def test_memory_kept_for_parts_of_chunks_is_given_back(tmp_path):
    use("""
import sys, h5py, numpy as np, h5z_gpu
resident = lambda: 4096 * int(open("/proc/self/statm").read().split()[1])
# More than malloc ever keeps.
a = np.zeros((256, 256, 256), "f4")
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset("v", a.shape, "f4", chunks=a.shape, **h5z_gpu.Lossless())
    h5z_gpu.write(d, a)
    out = np.ones((256, 256, 255), "f4")
    h5z_gpu.read(d, out, np.s_[:, :, :255])
    assert not out.any()
kept = resident()
h5z_gpu.release_memory()
assert kept - resident() > 50e6, (kept, resident())
""", tmp_path / "a.h5")


def test_a_bar_shows_the_progress(tmp_path, capsys, monkeypatch):
    a = sample(shape=(40, 60))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("v", a.shape, a.dtype, chunks=(10, 20), **h5z_gpu.Lossless())
        h5z_gpu.write(d, a)
        assert capsys.readouterr().err == "", "no bar but in a terminal"
        h5z_gpu.write(d, a[:25], np.s_[:25], progress=True)
        shown = capsys.readouterr().err
        assert "write /v: 100%" in shown and "6.00k/6.00k" in shown, shown
        h5z_gpu.read(d, progress=True)
        assert "read /v: 100%" in capsys.readouterr().err
        monkeypatch.setitem(sys.modules, "tqdm", None)
        h5z_gpu.read(d)
        with pytest.raises(ImportError, match="pip install tqdm"):
            h5z_gpu.read(d, progress=True)


SYSTEM = """
import sys; sys.path.insert(0, sys.argv[2])
import logging, numpy as np
if sys.argv[3] == "2":
    import mpi4py.MPI
import h5py, h5z_gpu
logging.basicConfig(level="INFO", stream=sys.stdout)
a = np.random.default_rng(0).normal(size=(64, 70, 80)).cumsum(axis=2).astype("f4")
assert h5py.version.hdf5_version_tuple < (1, 10, 10)
with h5py.File(sys.argv[1], "w", **({"driver": "mpio", "comm": mpi4py.MPI.COMM_WORLD} if sys.argv[3] == "2"
                                    else {})) as f:
    d = f.create_dataset("v", a.shape, a.dtype, chunks=(16, 32, 32), **h5z_gpu.Lossy(1e-3))
    rank = mpi4py.MPI.COMM_WORLD.rank if sys.argv[3] == "2" else 0
    mine = np.s_[32 * rank : 32 * rank + 32] if sys.argv[3] == "2" else np.s_[:]
    if sys.argv[3] == "2":
        with d.collective:
            h5z_gpu.write(d, a[mine], mine)
    else:
        h5z_gpu.write(d, a)
        f.flush()
        assert np.abs(h5z_gpu.read(d, selection=np.s_[3:20, 4, 5:70]) - a[3:20, 4, 5:70]).max() <= 1e-3
    assert 0 < np.abs(h5z_gpu.read(d, selection=mine) - a[mine]).max() <= 1e-3 or sys.argv[3] == "2"
np.save(sys.argv[1] + ".npy", a)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_old_hdf5_and_ranks_of_mpi(ranks, tmp_path):
    """Debian's h5py: HDF5 1.10.8, which hands out no chunks one after the other; several ranks take HDF5's pipeline,
    collectively."""
    mpi = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
    env = clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    out = run(*mpi, "/usr/bin/python3", "-c", SYSTEM, tmp_path / "a.h5", ROOT / "plugin/python", ranks, env=env)
    assert ("another driver" in out) == (ranks > 1), out
    a = np.load(tmp_path / "a.h5.npy")
    with h5py.File(tmp_path / "a.h5") as f:
        assert 0 < np.abs(f["v"][...] - a).max() <= 1e-3
    assert len(frames(tmp_path / "a.h5")) == 4 * 3 * 3
    # The chunks are those of one process.
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f.create_dataset("v", data=a, chunks=(16, 32, 32), compression=443, compression_opts=(11003,))
    assert frames(tmp_path / "a.h5") == frames(tmp_path / "b.h5")


def test_chunk_shapes():
    from h5z_gpu.chunks import chunk_shape

    assert chunk_shape((5, 7), 8) == (5, 7)
    for shape in [(512, 512, 512), (1000, 721, 1440), (100_000_000,), (40, 3, 1000, 1000), (7, 3_000_000), (0, 5),
                  (1, 1)]:
        chunk = chunk_shape(shape, 4)
        assert all(1 <= c <= max(1, n) for c, n in zip(chunk, shape))
        size = 4 * np.prod(chunk)
        assert size <= 8 << 20 and (size >= 1 << 20 or np.prod(shape) * 4 <= 4 << 20)
