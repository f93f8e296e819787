# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `repack` and `recover` copy is as it was: judged by h5dump and h5diff, by h5py only where these are blind."""
import re

import h5py
import numpy as np
import pytest
from cli import cli, many
from conftest import HERE, LONG, ROOT, clean, run, use

SEEDS = range(20) if LONG else range(2)
MODEL = (HERE / "copy_model.py").read_text()


def dumped(path):
    """All that h5dump says of a file, without what a place in the file decides."""
    text = run("h5dump", "-p", "-y", path, env=clean()).split("\n", 1)[1]
    text = re.sub(r"OFFSET \d+|SIZE \d+|\([\d.]+:1 COMPRESSION\)|HDF5: infinite loop closing library\n.*", "", text)
    text = "".join(text.split())  # a longer address breaks a line elsewhere, in the middle of a number too
    return re.sub(r'(DATASET|GROUP|DATATYPE)\d+(?=")', r"\1", text)  # addresses of references


def same(a, b):
    x, y = dumped(a), dumped(b)
    at = next((k for k, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
    assert x == y, f"{b.name}: {x[at - 300 : at + 50]}\nbecame\n{y[at - 300 : at + 50]}"


@pytest.mark.third
@pytest.mark.parametrize("hdf5", ["now", "hdf5-1.12", "hdf5-1.14"])
@pytest.mark.parametrize("seed", SEEDS)
def test_types_in_every_place_are_as_they_were(hdf5, seed, tmp_path):
    """A file of each format: types by references, names and lengths, in each layout, and as attributes."""
    older = "" if hdf5 == "now" else f"{ROOT}/.env/older/{hdf5}:"
    use(MODEL, tmp_path, seed, PYTHONPATH=f"{older}{ROOT}/plugin/python:{HERE}")
    copies = sorted(tmp_path.glob("*.copy.h5"))
    assert len(copies) == 4
    for copy in copies:
        same(copy.with_name(copy.name.replace(".copy", "")), copy)


def copied(make, tmp_path, *words, name="a.h5", **how):
    """The copy of a file that `make` fills."""
    path, copy = tmp_path / name, tmp_path / f"copy of {name}"
    with h5py.File(path, "w", **how) as f:
        make(f)
    status, _, err = cli("repack", path, copy, *(words or ("--lossless",)))
    assert (status, err) == (0, ""), err
    return path, copy


def test_the_same_file_gives_the_same_bytes_and_no_comments(tmp_path):
    """A comment was made of memory where there was none."""
    def make(f):
        for k in range(40):
            f.create_group(f"s{k}")["x"] = np.zeros(300)

    path, copy = copied(make, tmp_path)
    cli("repack", path, tmp_path / "again.h5", "--lossless")
    assert copy.read_bytes() == (tmp_path / "again.h5").read_bytes()
    same(path, copy)


@pytest.mark.parametrize("how", [{"libver": ("v110", "v110")}, {"track_order": True}])
def test_groups_of_many_links(how, tmp_path):
    """From nine links on they lie in a heap of their own, whose address was in the list of a group's properties."""
    def make(f):
        for n in (1, 9, 300):
            g = f.create_group(f"g{n}", track_order=how.get("track_order"))
            for k in range(n):
                g[f"v{n - k}"] = h5py.SoftLink("/x") if k % 2 else h5py.ExternalLink("o.h5", "/y")
            for k in range(n % 290):
                g.attrs[f"a{n - k}"] = k
        deep = f
        for _ in range(200):
            deep = deep.create_group("d")
        f["g1/loop"], f["d/d/up"] = f["d"], f["/"]

    path, copy = copied(make, tmp_path, **how)
    same(path, copy)
    with h5py.File(path) as f, h5py.File(copy) as g:
        for name in ("g1", "g9", "g300"):
            assert list(f[name]) == list(g[name]) and list(f[name].attrs) == list(g[name].attrs)


def test_attributes_without_elements_and_names_of_any_charset(tmp_path):
    def make(f):
        f["x"] = np.zeros(10)
        f["x"].attrs["e"], f.attrs["m"], f.attrs["null"] = np.zeros(0), np.zeros((3, 0), "i4"), h5py.Empty("f4")
        f.attrs.create("column-order", [], (0,), h5py.string_dtype())
        f["ü"] = h5py.SoftLink("/x")
        f.id.links.create_soft(b"ascii", b"/x")

    path, copy = copied(make, tmp_path)
    same(path, copy)
    with h5py.File(path) as f, h5py.File(copy) as g:
        for name in ("ü", "ascii", "x"):
            assert f.id.links.get_info(name.encode()).cset == g.id.links.get_info(name.encode()).cset
        assert f.attrs.get_id("m").shape == g.attrs.get_id("m").shape == (3, 0)


def test_values_of_any_length_that_were_not_written(tmp_path):
    """One chunk of a dataset of 2^40 elements; a fill value of any length in chunks that are not there."""
    def make(f):
        d = f.create_dataset("sparse", (1 << 20, 1 << 20), h5py.vlen_dtype("i4"), chunks=(64, 64))
        d[70, 70] = np.array([1, 2, 3], "i4")
        f.create_dataset("numbers", (1 << 20, 1 << 20), "f4", chunks=(64, 64))[70, 70] = 3
        f.create_dataset("texts", (10,), h5py.string_dtype(), chunks=(2,), fillvalue="none")[5] = "some"

    _, copy = copied(make, tmp_path)
    assert copy.stat().st_size < 300_000
    with h5py.File(copy, "r+") as g:  # HDF5 2.0 reads missing chunks of any length only where it may write
        assert g["sparse"][70, 70].tolist() == [1, 2, 3] and g["sparse"].id.get_num_chunks() == 1
        assert g["numbers"][70, 70] == 3 and g["numbers"].id.get_num_chunks() == 1
        assert [t.decode() for t in g["texts"]] == ["none"] * 5 + ["some"] + ["none"] * 4


def test_numbers_stored_anew_keep_what_was_not_written(tmp_path):
    def make(f):
        d = f.create_dataset("x", (1 << 14, 1 << 14), "f4", chunks=(512, 512), fillvalue=7)
        d[1000:1600, 2000] = np.random.default_rng(1).random(600)

    path, copy = copied(make, tmp_path, "--absolute", "1e-3")
    with h5py.File(path) as f, h5py.File(copy) as g:
        assert g["x"].id.get_num_chunks() == 3
        assert abs(f["x"][900:1700, 2000] - g["x"][900:1700, 2000]).max() <= 1e-3


def test_the_last_chunk_of_a_type_of_hdf5_alone(tmp_path):
    """Of 24-bit floats HDF5 copies boxes as large as the new chunks. None begins behind the end of the dataset."""
    count, chunk = (6 << 20) + 10, 6 << 20  # chunks of 18 MiB become smaller ones

    def make(f):
        kind, plan = h5py.h5t.IEEE_F32LE.copy(), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        kind.set_fields(23, 15, 8, 0, 15)
        kind.set_precision(24)
        kind.set_size(3)
        plan.set_chunk((chunk,))
        plan.set_deflate(1)
        d = h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple((count,)), dcpl=plan)
        h5py.Dataset(d)[chunk:] = np.arange(10)

    path, copy = copied(make, tmp_path)
    with h5py.File(path) as f, h5py.File(copy) as g:
        assert g["x"].chunks[0] < chunk and g["x"][chunk:].tolist() == f["x"][chunk:].tolist() == list(range(10))


def test_dead_references_are_empty_and_said(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"], f["gone"] = 1, 2
        f.attrs["r"] = f["gone"].ref
        f.attrs["s"] = f["x"].ref
        del f["gone"]
    status, out, _ = cli("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless")
    assert status == 0 and "1 reference of " in out and "the attribute r of /" in out
    with h5py.File(tmp_path / "b.h5") as g:
        assert not g.attrs["r"] and g[g.attrs["s"]].name == "/x"


def test_fill_values_that_refer_to_objects(tmp_path):
    """Every cell array of MATLAB 7.3 has one; the object may come later in the file."""
    use("""
import ctypes, sys, h5py
from h5py import h5d, h5p, h5s, h5t
from h5z_gpu.cli.hdf5 import calls
with h5py.File(sys.argv[1], "w") as f:
    f["later/empty"] = [0, 0]
    for name in (b"a", b"z"):
        raw, p = ctypes.create_string_buffer(8), h5p.create(h5p.DATASET_CREATE)
        calls.H5Rcreate(raw, f.id, b"later/empty", 0, -1)
        calls.H5Pset_fill_value(p, h5t.STD_REF_OBJ, raw)
        h5d.create(f.id, name, h5t.STD_REF_OBJ, h5s.create_simple((3,)), dcpl=p)
""", tmp_path / "a.h5")
    status, _, err = cli("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless")
    assert status == 0, err
    same(tmp_path / "a.h5", tmp_path / "b.h5")


def test_lists_of_chunks_stay_of_their_kind(tmp_path):
    """One chunk in a newer file needs no list. A B-tree would take 2 KiB, and be of another version of the format."""
    def make(f):
        for name, most in (("one", None), ("rows", (None, 30)), ("both", (None, None))):
            f.create_dataset(name, data=np.zeros((20, 30)), chunks=(20, 30), maxshape=most)

    path, copy = copied(make, tmp_path, libver="v110")
    kinds = use("""
import ctypes, sys, h5py
from h5z_gpu import index
for path in sys.argv[1:]:
    with h5py.File(path) as f:
        for d in f.values():
            kind = ctypes.c_int()
            index.hdf5().H5Dget_chunk_index_type(ctypes.c_int64(d.id.id), ctypes.byref(kind))
            print(d.name, kind.value)
""", path, copy).splitlines()
    assert kinds[:3] == kinds[3:] == ["/both 5", "/one 1", "/rows 4"], kinds


def test_messages_of_headers_that_objects_share(tmp_path):
    """H5Pset_shared_mesg_nindexes: datasets made with extents that the old file shares could not be opened again."""
    use("""
import ctypes, os, sys, h5py, numpy as np
from h5py import h5f, h5p
from h5z_gpu import index
p, hdf5 = h5p.create(h5p.FILE_CREATE), index.hdf5()
hdf5.H5Pset_shared_mesg_nindexes(ctypes.c_int64(p.id), 1)
hdf5.H5Pset_shared_mesg_index(ctypes.c_int64(p.id), 0, 0x1F, 8)
access = h5p.create(h5p.FILE_ACCESS)
access.set_libver_bounds(h5f.LIBVER_V18, h5f.LIBVER_V110)
with h5py.File(h5f.create(os.fsencode(sys.argv[1]), h5f.ACC_TRUNC, fcpl=p, fapl=access)) as f:
    for k in range(6):
        f.create_dataset(f"x{k}", (60, 90), "f4", chunks=(20, 30), maxshape=(None, None), compression="gzip")[...] = k
        f.create_dataset(f"t{k}", (6, 9), h5py.string_dtype(), maxshape=(None, None))[2, 3] = "text"
        f[f"x{k}"].attrs["a"] = np.zeros((6, 9))
""", tmp_path / "a.h5")
    status, _, err = cli("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless")
    assert status == 0, err
    run("h5diff", tmp_path / "a.h5", tmp_path / "b.h5", env=clean())


def test_chunks_at_the_edges_without_filters(tmp_path):
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS: no mask says that such a chunk has no filter."""
    use("""
import ctypes, sys, h5py, numpy as np, h5z_gpu.zarr
from h5py import h5d, h5p, h5s, h5t
from h5z_gpu import index
# The last chunks of a row are whole, those of a column are not.
a = np.cumsum(np.random.default_rng(0).integers(-3, 4, (70, 96)), 1).astype("f4")
with h5py.File(sys.argv[1], "w", libver=("v110", "v110")) as f:
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk((32, 32))
    index.hdf5().H5Pset_chunk_opts(ctypes.c_int64(p.id), 2)
    p.set_filter(443, 1, (90000,))
    h5py.Dataset(h5d.create(f.id, b"x", h5t.IEEE_F32LE, h5s.create_simple(a.shape), dcpl=p))[...] = a
try:
    h5z_gpu.zarr.references(sys.argv[1])
except Exception as why:
    assert "chunks at the edges are kept without filters" in str(why), why
else:
    raise AssertionError
""", tmp_path / "a.h5")
    answers = many(("inspect", "--check", tmp_path / "a.h5"), ("recover", tmp_path / "a.h5", tmp_path / "r.h5"),
                   ("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless"))
    assert [status for status, *_ in answers] == [0, 0, 0], answers
    for other in ("r.h5", "b.h5"):
        run("h5diff", tmp_path / "a.h5", tmp_path / other, env=clean())


def test_types_that_numpy_has_not(tmp_path):
    """24-bit integers, opaque data with a tag and HDF5's time go over as bytes, large and small."""
    def make(f):
        bits = h5py.h5t.STD_I32LE.copy()
        bits.set_precision(24)
        bits.set_size(3)
        tag = h5py.h5t.create(h5py.h5t.OPAQUE, 7)
        tag.set_tag(b"tag")
        for name, kind in ((b"bits", bits), (b"tag", tag), (b"time", h5py.h5t.UNIX_D32LE)):
            for count in (50, 40_000):
                d = h5py.h5d.create(f.id, name + b"%d" % count, kind, h5py.h5s.create_simple((count,)))
                raw = np.random.default_rng(count).integers(0, 100, (count, kind.get_size()), dtype="u1")
                d.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=kind)

    path, copy = copied(make, tmp_path)
    with h5py.File(path) as f, h5py.File(copy) as g:
        for name in f:
            x, y = (np.empty((d.shape[0], d.id.get_type().get_size()), "u1") for d in (f[name], g[name]))
            for d, raw in ((f[name], x), (g[name], y)):
                d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=d.id.get_type())
            assert (x == y).all() and f[name].id.get_type().equal(g[name].id.get_type()), name
    (status, _, err), = many(("advise", path))
    assert status == 0, err


def test_what_hdf5_raises_is_a_sentence_that_names_the_object(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["g/x"] = np.zeros(10)
    said = use("""
import sys, h5py
from h5z_gpu import cli
h5py.Dataset.size = property(lambda self: self.id.read(h5py.h5s.ALL, h5py.h5s.ALL, None))
print(cli.main(["repack", sys.argv[1], sys.argv[2], "--lossless"]))
""", tmp_path / "a.h5", tmp_path / "b.h5")
    assert "h5z-gpu repack: " in said and "a.h5: g/x: HDF5 or h5py cannot do what is needed: " in said, said
    assert "Traceback" not in said and said.endswith("2\n"), said


def test_filters_without_names_are_copied(tmp_path):
    """HDF5 before 1.6 wrote none. H5Ocopy writes them where there is no room: nobody could open the copy."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("d", data=np.arange(12, dtype="i2").reshape(4, 3), chunks=(2, 2), compression="gzip")
        at = h5py.h5o.get_info(f["d"].id).addr
    data = bytearray((tmp_path / "a.h5").read_bytes())
    name = data.index(b"deflate\0")
    message = name - 24  # its head, version and count; the filter's number, length of its name, flags, number of words
    assert data[message : message + 4] == bytes([11, 0, 32, 0]) and data[at] == 1
    data[message + 2], data[name - 6] = 24, 0
    data[name : name + 8] = data[name + 8 : name + 16]
    data[name + 8 : name + 16] = bytes(8)  # a message without contents
    data[at + 2] += 1
    (tmp_path / "a.h5").write_bytes(data)
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["d"][3, 2] == 11 and f["d"].compression == "gzip"
    status, _, err = cli("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless", "--verify")
    assert status == 0, err
    with h5py.File(tmp_path / "b.h5") as f:
        assert f["d"][3, 2] == 11
