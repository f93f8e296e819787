# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where chunks are: every kind of index, in several versions of HDF5, and lists of chunks that are damaged."""
import json

import pytest
from conftest import HERE, ROOT, use

SEEDS = 25
"""Files for each version of HDF5; `chunk_model.py FOLDER FIRST COUNT` makes more."""
KINDS = {"version 1 B-tree", "fixed array", "extensible array, axis 0", "extensible array, another axis",
         "version 2 B-tree"}


@pytest.mark.parametrize("hdf5", ["now", "hdf5-1.12", "hdf5-1.14"])
def test_every_road_reads_what_hdf5_reads(hdf5, tmp_path):
    model = (HERE / "chunk_model.py").read_text()
    if hdf5 == "now":
        said = use(model, tmp_path, 0, SEEDS, "references")
    else:
        said = use(model, tmp_path, 0, SEEDS, PYTHONPATH=f"{ROOT}/.env/older/{hdf5}:{ROOT}/plugin/python:{HERE}")
    assert KINDS <= set(json.loads(said.splitlines()[-1]))


HEAD = """
import struct, sys, warnings, h5py, numpy as np, h5z_gpu
from pathlib import Path
path = Path(sys.argv[1])
a = np.cumsum(np.random.default_rng(1).normal(0, 1, (40, 30)), 0).astype("f4")
entry = "<IIQQQQ"  # of a version 1 B-tree: bytes, filter mask, place, place within an element, address

def damaged(name, **changes):
    '''A file in whose list of chunks one entry says something else.'''
    file = path / f"{name}.h5"
    with h5py.File(file, "w", libver=("earliest", "v108")) as f:
        d = f.create_dataset("d", data=a, chunks=(10, 10), fillvalue=-1, **h5z_gpu.Lossless())
        c = d.id.get_chunk_info(4)
    data = bytearray(file.read_bytes())
    was = {"size": c.size, "mask": 0, "row": c.chunk_offset[0], "column": c.chunk_offset[1], "at": c.byte_offset}
    order = lambda x: struct.pack(entry, x["size"], x["mask"], x["row"], x["column"], 0, x["at"])
    at = data.find(order(was))
    assert at > 0
    data[at : at + struct.calcsize(entry)] = order(was | changes)
    file.write_bytes(data)
    return h5py.File(file)

def refused(f, *words, **how):
    want = a[how.get("selection", ())]
    out = np.full(want.shape, 12345, "f4")
    try:
        h5z_gpu.read(f["d"], out, **how)
    except OSError as why:
        assert all(w in str(why) for w in words), why
    else:
        raise AssertionError(f"{np.count_nonzero(out != want)} wrong values and no error")
"""


def test_a_damaged_list_of_chunks_gives_no_values(tmp_path):
    use(HEAD + """
with damaged("twice", row=0, column=0) as f:
    refused(f, "/d: the file's list of its chunks is damaged", "(0, 0)", "there twice", "h5z-gpu recover")
    refused(f, "there twice", on_error="fill")  # what is lost cannot be known
with damaged("outside", row=400) as f:
    refused(f, "(400, 10)", "which cannot be")
with damaged("between", column=13) as f:
    refused(f, "list of its chunks is damaged")  # HDF5 says so too
""", tmp_path)


def test_a_chunk_that_the_list_has_and_a_search_does_not_find(tmp_path):
    """A box of few chunks is read by their places: of one that is missing there the list is asked."""
    use(HEAD + """
a = np.cumsum(np.random.default_rng(1).normal(0, 1, (100, 100)), 0).astype("f4")
with h5py.File(path / "a.h5", "w", libver=("earliest", "v108")) as f:
    d = f.create_dataset("d", data=a, chunks=(10, 10), fillvalue=-1, **h5z_gpu.Lossless())
    c = d.id.get_chunk_info(50)
data = bytearray((path / "a.h5").read_bytes())
order = lambda row, column: struct.pack(entry, c.size, 0, row, column, 0, c.byte_offset)
at = data.find(order(*c.chunk_offset))
data[at : at + struct.calcsize(entry)] = order(10, 20)
(path / "a.h5").write_bytes(data)
with h5py.File(path / "a.h5") as f:
    assert (f["d"][c.chunk_offset] == -1).all(), "HDF5 finds none there"
    refused(f, "list of its chunks is damaged", selection=tuple(slice(o, o + 1) for o in c.chunk_offset))
    refused(f, "list of its chunks is damaged")
""", tmp_path)


def test_a_frame_is_not_taken_for_raw_values(tmp_path):
    """One bit of a filter mask, and HDF5 hands the frame out as values, without an error."""
    use(HEAD + """
with damaged("mask", mask=1) as f:
    assert np.count_nonzero(f["d"][...] != a) == 100
    refused(f, "the chunk at (10, 10) cannot be read", "without filters", "400")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = h5z_gpu.read(f["d"], on_error="fill")
    assert len(said) == 1 and "(10, 10) is damaged" in str(said[0].message)
    b = a.copy()
    b[10:20, 10:20] = -1
    assert np.array_equal(got, b)
# Of a chunk's own length, and a frame all the same.
with h5py.File(path / "frame.h5", "w") as f:
    d = f.create_dataset("d", (40, 30), "f4", chunks=(10, 10), **h5z_gpu.Lossless())
    h5z_gpu.write(d, a)
    frame = d.id.read_direct_chunk((10, 10))[1]
    d.id.write_direct_chunk((20, 20), frame.ljust(400, b"\\0")[:400], filter_mask=1)
with h5py.File(path / "frame.h5") as f:
    refused(f, "(20, 20)", "it is a frame of the filter")
""", tmp_path)


def test_verify_does_not_read_by_the_fast_way(tmp_path):
    """A fault of `h5z_gpu.read` in both files would be no difference."""
    said = use("""
import sys, h5py, numpy as np, h5z_gpu
from h5z_gpu import cli, datasets
a = np.arange(400, dtype="f4").reshape(20, 20)
for name, x in (("a.h5", a), ("b.h5", a + (a == 7))):
    with h5py.File(f"{sys.argv[1]}/{name}", "w") as f:
        f.create_dataset("d", data=x, chunks=(5, 5), **h5z_gpu.Lossless())
datasets.read = lambda dataset, out=None, selection=None, **how: np.zeros(dataset[selection].shape, dataset.dtype)
print("status", cli.main(["verify", f"{sys.argv[1]}/a.h5", f"{sys.argv[1]}/b.h5"]))
""", tmp_path)
    assert "1 value" in said and said.rstrip().endswith("status 1")


def test_chunks_that_hdf5_has_read_and_nobody_wrote(tmp_path):
    """HDF5's cache holds them after a read: without filters HDF5 then tells a length for them, and the list none."""
    use(HEAD + """
for filters in ({}, {"compression": "gzip"}, dict(h5z_gpu.Lossless())):
    for libver in ("earliest", "latest"):
        for fill, chunks in ((None, (9, 7)), (-1, (9, 7)), (None, (10, 10))):
            with h5py.File(path / "a.h5", "w", libver=libver) as f:
                d = f.create_dataset("d", a.shape, "f4", chunks=chunks, fillvalue=fill, **filters)
                d[0, 0] = 1
            with h5py.File(path / "a.h5") as f:
                d = f["d"]
                want = d[...]
                for box in ((), np.s_[5:35, 3:], np.s_[20:25, :9]):
                    got = h5z_gpu.read(d, selection=box)
                    assert got.tobytes() == want[box].tobytes(), (filters, libver, fill, chunks, box)
""", tmp_path)
