# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that copy a dataset hand our own stored words back to us, with other chunks.

Each step is judged against its own input: it holds the bound, keeps the filter, and the new words fit the new chunks.
"""
import re

import h5py
import judge
import numpy as np
import pytest
from conftest import run, sample
from programs import READERS, WRITERS, filters, listed, times

SHAPE, FIRST = (12, 40, 50), (6, 40, 25)
BOUNDS = {"abs": (11003, "abs", 1e-3), "szx": (111003, "abs", 1e-3), "lorenzo": (221003, "rel", 1e-3),
          "rel": (21003, "rel", 1e-3), "pw_rel": (31003, "pw_rel", 1e-3), "lossless": (90000, "lossless", 0.0)}


def read(path, name="v"):
    with h5py.File(path) as f:
        d = f[name]
        fill = d.fillvalue if d.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED else None
        return d[...], d.chunks, fill


def step(before, after, mode, value, word):
    """Judges the copy `after` of the file `before`."""
    x, _, _ = read(before)
    y, chunk, fill = read(after)
    judge.check_chunks(x, y, chunk, mode, value, fill)
    (f,) = filters(after, "v")
    assert f[0] == 443 and listed(f[2]) == (word, len(chunk), [c for c in chunk if c != 1]), (f, chunk)
    return chunk


@pytest.fixture(params=BOUNDS)
def begin(request, tmp_path):
    word, mode, value = BOUNDS[request.param]
    x = sample(np.float32, SHAPE)
    x[0, :5, :9] = -999.0
    x[1, 1, 1:4] = [np.nan, np.inf, -np.inf]
    path = tmp_path / "first.nc"
    WRITERS["netCDF4"]({"v": x}, path, [word], {"v": FIRST}, tmp_path, {"v": -999.0})
    judge.check_chunks(x, read(path)[0], FIRST, mode, value, -999.0)
    return path, tmp_path, mode, value, word


def test_h5repack_with_other_chunks(begin):
    path, tmp, mode, value, word = begin
    for i, chunk in enumerate([(12, 8, 50), (1, 40, 50), (5, 7, 11), (12, 40, 1)]):
        out = tmp / f"{i}.h5"
        run("h5repack", "-l", f"v:CHUNK={times(chunk)}", path, out)
        assert step(path, out, mode, value, word) == chunk
        path = out


def test_h5repack_without_a_wish_copies_the_chunks(begin):
    path, tmp, mode, value, word = begin
    run("h5repack", path, tmp / "out.h5")
    step(path, tmp / "out.h5", mode, value, word)


def test_nccopy_with_other_chunks(begin):
    path, tmp, mode, value, word = begin
    for i, chunk in enumerate([(12, 8, 50), (3, 40, 50), (5, 39, 11)]):  # nccopy keeps no chunk below 8 KiB
        out = tmp / f"{i}.nc"
        run("nccopy", "-c", "v:" + ",".join(map(str, chunk)), path, out)
        assert step(path, out, mode, value, word) == chunk
        path = out


def test_ncks_copies_and_chunks_anew(begin):
    path, tmp, mode, value, word = begin
    run("ncks", "-O", "-4", path, tmp / "same.nc")
    step(path, tmp / "same.nc", mode, value, word)
    run("ncks", "-O", "-4", "--cnk_dmn", "v_0,3", "--cnk_dmn", "v_1,40", "--cnk_dmn", "v_2,10", path, tmp / "other.nc")
    step(path, tmp / "other.nc", mode, value, word)
    run("ncks", "-O", "-4", "-d", "v_0,2,9", path, tmp / "part.nc")
    x, y = read(path)[0][2:10], read(tmp / "part.nc")
    judge.check_chunks(x, y[0], y[1], mode, value, -999.0)


def test_ncgen_of_what_ncdump_shows(begin):
    """The words are in the text; users edit it, so the chunk sizes may be others than the words say."""
    path, tmp, mode, value, word = begin
    text = run("ncdump", "-s", "-p", "9,17", path)
    assert f'_Filter = "443,{filters(path, "v")[0][2][0]}' in text, text[:2000]
    (tmp / "a.cdl").write_text(text)
    run("ncgen", "-4", "-o", tmp / "same.nc", tmp / "a.cdl")
    step(path, tmp / "same.nc", mode, value, word)
    text = re.sub(r"_ChunkSizes = [^;]*;", "_ChunkSizes = 5, 7, 50 ;", text)
    (tmp / "b.cdl").write_text(text)
    run("ncgen", "-4", "-o", tmp / "other.nc", tmp / "b.cdl")
    assert step(path, tmp / "other.nc", mode, value, word) == (5, 7, 50)


def test_ncgen_of_a_header_alone(begin):
    path, tmp, _mode, _value, word = begin
    (tmp / "a.cdl").write_text(run("ncdump", "-hs", path))
    run("ncgen", "-4", "-o", tmp / "empty.nc", tmp / "a.cdl")
    y, _chunk, _fill = read(tmp / "empty.nc")
    assert (y == -999.0).all() and listed(filters(tmp / "empty.nc", "v")[0][2])[0] == word


@pytest.mark.third
def test_a_chain_of_programs(begin):
    path, tmp, mode, value, word = begin
    run("nccopy", "-c", "v:4,40,10", path, tmp / "1.nc")
    run("h5repack", "-l", "v:CHUNK=12x5x50", tmp / "1.nc", tmp / "2.nc")
    run("ncks", "-O", "-4", tmp / "2.nc", tmp / "3.nc")
    for a, b in ((path, tmp / "1.nc"), (tmp / "1.nc", tmp / "2.nc"), (tmp / "2.nc", tmp / "3.nc")):
        step(a, b, mode, value, word)
    like = {"v": read(tmp / "3.nc")[0]}
    for reader in ("netCDF4", "xarray", "h5dump"):
        judge.check(like["v"], READERS[reader](tmp / "3.nc", ["v"], like, tmp)["v"], "lossless")


def test_the_filter_can_be_taken_off(begin):
    path, tmp, *_ = begin
    run("h5repack", "-f", "v:NONE", path, tmp / "plain.h5")
    run("nccopy", "-F", "none", path, tmp / "plain.nc")
    for out in ("plain.h5", "plain.nc"):
        assert filters(tmp / out, "v") == []
        judge.check(read(path)[0], read(tmp / out)[0], "lossless")


def test_another_type_under_the_same_words(begin):
    """Stored words of an f32 dataset given to an f64, a big-endian and an integer one describe the new one."""
    path, tmp, mode, value, _word = begin
    words = filters(path, "v")[0][2]
    for kind in ("<f8", ">f4", "<i4"):
        x = (sample(np.float64, SHAPE) * 50).astype(kind)
        with h5py.File(tmp / "b.h5", "w") as f:
            f.create_dataset("v", data=x, chunks=(4, 40, 50), compression=443, compression_opts=tuple(words))
        y, chunk, _ = read(tmp / "b.h5")
        if kind == "<i4":
            np.testing.assert_array_equal(x, y)
        else:
            judge.check_chunks(x, y, chunk, mode, value)
