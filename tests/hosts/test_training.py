# SPDX-License-Identifier: MIT OR Apache-2.0
"""Samples by number, in this process and in workers that were forked and spawned, and the order in which they come."""
import multiprocessing
import os
import pickle
import sys

import h5py
import ml_dtypes
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, sample

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu
from h5z_gpu.training import Order, Samples

LOSSY = dict(h5z_gpu.Lossy(absolute=1e-3))
# Datasets of the same values: how they are created, and whether the library has the list of their frames.
STORED = {
    "rows": ({"chunks": (1, 20, 30)} | LOSSY, True), "fours": ({"chunks": (4, 7, 11)} | LOSSY, True),
    "whole": ({"chunks": (50, 20, 30)} | LOSSY, True), "gzip": ({"chunks": (3, 5, 7), "compression": "gzip"}, False),
    "plain": ({}, False), "turned": ({"chunks": (4, 7, 11), "dtype": ">f4"} | LOSSY, False),
}


@pytest.fixture
def path(tmp_path):
    a = sample(np.float32, (50, 20, 30))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for name, (how, _) in STORED.items():
            f.create_dataset(name, data=a, **how)
        f.create_dataset("never", (50, 20, 30), "f4", chunks=(5, 20, 30), fillvalue=7, **LOSSY)[:5] = a[:5]
        f.create_dataset("labels", data=np.arange(50), chunks=(8,), **dict(h5z_gpu.Lossless()))
        f.create_dataset("text", data=np.array([b"a", b"b"]))
        f["scalar"] = 1.0
    return tmp_path / "a.h5"


def wanted(x, window, step):
    rows = window or 1
    starts = range(0, len(x) - rows + 1, step or rows)
    return np.stack([x[k : k + rows] if window else x[k] for k in starts])


@pytest.mark.parametrize("window, step", [(None, None), (None, 3), (1, None), (4, None), (3, 2), (8, 4), (50, 1)])
@pytest.mark.parametrize("name", [*STORED, "never", "labels"])
def test_samples_are_what_h5py_reads(path, name, window, step):
    samples = Samples(path, name, window=window, step=step)
    with h5py.File(path) as f:
        x = wanted(f[name][...], window, step)
    assert len(samples) == len(x)
    assert (samples._source(str(path), name).frames is not None) == STORED.get(name, (0, name == "labels"))[1]
    some = np.random.default_rng(0).integers(-len(x), len(x), 9)
    for got, want in ((samples[range(len(x))], x), (samples[some], x[some]), (samples[[-1]], x[-1:])):
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes() and got.shape == want.shape
    assert samples[len(x) - 1].tobytes() == samples[-1].tobytes() == x[-1].tobytes()
    assert samples[0].shape == x[0].shape and len(list(samples)) == len(x)


def test_other_chunks_are_not_read_and_a_damaged_one_is_named(path):
    with h5py.File(path) as f:
        at = [f["rows"].id.get_chunk_info_by_coord((k, 0, 0)).byte_offset for k in range(50)]
    with open(path, "r+b") as f:
        for place in at[:7] + at[8:]:
            f.seek(place + 60)
            f.write(b"xxxxxxxx")
    samples = Samples(path, "rows")
    assert samples[7].shape == (20, 30)
    with pytest.raises(OSError, match=r"/rows: the chunk at \(6, 0, 0\) cannot be read"):
        samples[[7, 6]]


def test_files_follow_each_other_and_names_stand_side_by_side(path, tmp_path):
    more = [tmp_path / f"{k}.h5" for k in range(70)]  # more than are kept open
    for k, file in enumerate(more):
        h5z_gpu.save(file, {"rows": np.full((2, 20, 30), k, "f4"), "labels": np.array([k, k + 1])}, chunks=None)
    samples = Samples([path, *more], ("rows", "labels"))
    assert len(samples) == 50 + 2 * 70
    rows, labels = samples[[0, 189, 52, 52, 49]]
    assert rows[1:4, 3, 3].tolist() == [69, 1, 1] and labels.tolist() == [0, 70, 1, 1, 49]
    assert samples[53][1] == 2 and len(samples._open[1]) <= 64


@pytest.mark.parametrize("stored", ["f4", "f2", ml_dtypes.bfloat16, "f8"])
@pytest.mark.parametrize("wanted", [None, "float16", "bfloat16", np.float32, ml_dtypes.bfloat16])
def test_half_numbers_go_in_and_out(stored, wanted, tmp_path):
    a = sample(np.float32, (20, 30)).astype(stored)
    h5z_gpu.save(tmp_path / "a.h5", {"v": a}, absolute=1e-2)
    with h5py.File(tmp_path / "a.h5") as f:
        x = h5z_gpu.read(f["v"], out=np.empty(a.shape, stored))
    samples = Samples(tmp_path / "a.h5", "v", dtype=wanted)
    expected = x if wanted is None else x.astype("bfloat16" if wanted == "bfloat16" else wanted)
    assert samples[[5, 3]].dtype == expected.dtype
    assert samples[[5, 3]].tobytes() == expected[[5, 3]].tobytes()


def test_batches_are_read_ahead(path):
    samples, order = Samples(path, "fours"), Order(50, 8)
    for ahead in (0, 1, 2, 9):
        found = list(samples.batches(order, ahead))
        assert len(found) == 7 and all((b == samples[k]).all() for b, k in zip(found, order))
    for batch in samples.batches([[k] for k in range(50)]):
        assert batch.shape == (1, 20, 30)
        break
    with pytest.raises(IndexError, match="sample 50 of 50"):
        list(samples.batches([[1], [50], [2]]))


def start(given):
    global samples
    samples = given


def sums(ks):
    return float(samples[ks].sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("name", ["rows", "gzip"])
def test_workers_open_the_file_themselves(path, method, name):
    given = Samples(path, name)
    expected = [float(given[k].sum()) for k in range(50)]  # the parent has it open
    with multiprocessing.get_context(method).Pool(3, start, (given,)) as workers:
        assert workers.map(sums, range(50)) == expected
    assert given[3].sum() == np.float32(expected[3]) and not pickle.loads(pickle.dumps(given))._open[1]


@pytest.mark.parametrize("how, said", [
    ({"names": "text"}, "holds |S1, no numbers"), ({"names": "scalar"}, "no dataset with rows"),
    ({"names": "/"}, "no dataset with rows"), ({"names": ("rows", "text")}, "no numbers"),
    ({"names": ("rows", "short")}, "rows differ"), ({"window": 0}, "window = 1"), ({"step": 0}, "step = 1"),
    ({"names": ()}, "one name"), ({"files": []}, "one file"), ({"step": -1}, "step = 1"),
])
def test_what_cannot_be_samples_is_refused(path, how, said):
    with h5py.File(path, "a") as f:
        f["short"] = np.zeros(49)
    with pytest.raises(ValueError) as why:
        Samples(**{"files": path, "names": "rows"} | how)
    assert said in str(why.value)


def test_numbers_that_are_none_are_refused(path):
    samples = Samples(path, "rows")
    for wrong in (50, -51, [0, 50], [[1, 50]]):
        with pytest.raises((IndexError, TypeError), match="sample"):
            samples[wrong]
    for wrong in (0.5, "a", None, [], slice(3), [True]):
        with pytest.raises(TypeError, match="whole number"):
            samples[wrong]
    assert len(Samples(path, "rows", window=51)) == 0
    with pytest.raises(FileNotFoundError):
        Samples("none.h5", "rows")


@pytest.mark.parametrize("count, batch, ranks", [(50, 8, 1), (50, 50, 1), (7, 8, 1), (50, 4, 3)])
def test_an_order_goes_on_where_it_was(count, batch, ranks):
    orders = [Order(count, batch, seed=3, rank=k, ranks=ranks) for k in range(ranks)]
    for epoch in range(3):
        seen = [k for order in orders for numbers in order for k in numbers]
        assert len(seen) == len(set(seen)) == count // ranks * ranks and set(seen) <= set(range(count))
        assert all(len(order) == len(list(order)) > 0 and order.epoch == epoch for order in orders)
        whole = list(orders[0])
        for done in range(len(whole)):
            other = Order(count, batch, ranks=ranks)
            other.load_state_dict(pickle.loads(pickle.dumps(orders[0].state_dict())))
            assert list(other) == whole[done:]
            for order in orders:
                order.step()
        assert list(orders[0]) != whole
    with pytest.raises(ValueError, match="batch"):
        Order(count, batch + 1, ranks=ranks).load_state_dict(orders[0].state_dict())
    for wrong in ((5, 0, 0, 1), (5, 1, 1, 1), (5, 1, -1, 1)):
        with pytest.raises(ValueError, match="rank"):
            Order(wrong[0], wrong[1], rank=wrong[2], ranks=wrong[3])


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 2])
def test_pytorch_s_loader_takes_them(path, workers, method):
    torch = pytest.importorskip("torch")
    samples, order = Samples(path, ("rows", "labels"), dtype="bfloat16"), Order(50, 8)
    how = {"num_workers": workers, "multiprocessing_context": method if workers else None}
    seen = list(torch.utils.data.DataLoader(samples, sampler=order, batch_size=None, **how))
    by_one = list(torch.utils.data.DataLoader(Samples(path, "rows"), batch_size=7, **how))
    with h5py.File(path) as f:
        x = torch.from_numpy(f["rows"][...])
    assert [b[0].dtype for b in seen] == [torch.bfloat16] * 7
    for (rows, _), numbers in zip(seen, order):
        assert (rows == x[numbers].to(torch.bfloat16)).all()
    assert (torch.cat(by_one) == x).all() and len(by_one) == 8
