# SPDX-License-Identifier: MIT OR Apache-2.0
"""Applications with HDF5 linked in, whose functions the plugin may not be able to find."""
import h5py
import judge
import numpy as np
import pytest
from conftest import app, clean, run, sample
from programs import filters, stored_bytes, times

CHUNK = (5, 16, 20)


def write(kind, path, x, words, tmp, flag="o", env=None, ok=True):
    (tmp / "raw").write_bytes(x.tobytes())
    name = {4: "f32", 8: "f64"}[x.dtype.itemsize]
    return run(app(kind), "write", path, "v", name, times(x.shape), times(CHUNK), tmp / "raw", flag, *words,
               env=env, ok=ok)


def read(path):
    with h5py.File(path) as f:
        return f["v"][...]


def stored(path):
    """Every chunk as it lies in the file, with its filter mask. Whole files differ by the second they were written
    in."""
    with h5py.File(path) as f:
        v = f["v"].id
        return [v.read_direct_chunk(v.get_chunk_info(i).chunk_offset) for i in range(v.get_num_chunks())]


@pytest.mark.parametrize("flag", "om")
@pytest.mark.parametrize("kind", ["shared", "exported", "static"])
def test_found_by_symbol_or_by_symbol_table(kind, flag, tmp_path):
    for x in (sample(), sample(np.float64)):
        path = tmp_path / f"{x.dtype}.h5"
        assert write(kind, path, x, [11003], tmp_path, flag) == ""
        assert 0 < judge.check(x, read(path), "abs", 1e-3) <= 1
        f = filters(path, "v")[0]
        assert f[1] == (1 if flag == "o" else 0), "the user's flag is kept"
        refused = write(kind, tmp_path / "no.h5", x, [10003], tmp_path, flag, ok=False)
        assert "h5z-gpu: cd_values" in refused, refused


@pytest.mark.parametrize("flag", "om")
def test_stripped_stores_losslessly_and_says_so(flag, tmp_path):
    x = sample()
    text = write("stripped", tmp_path / "a.h5", x, [11003], tmp_path, flag)
    judge.check(x, read(tmp_path / "a.h5"), "lossless")
    assert "lossless" in text and "-rdynamic" in text and text.count("h5z-gpu") == 1, text
    assert write("stripped", tmp_path / "b.h5", x, [11003], tmp_path, flag, clean(H5Z_GPU_LOG="off")) == ""
    assert stored(tmp_path / "a.h5") == stored(tmp_path / "b.h5")


def test_stripped_and_strict_is_refused_whatever_the_words(tmp_path):
    """The whole stored list too: nothing says that it is this dataset's."""
    write("shared", tmp_path / "a.h5", sample(), [11003], tmp_path)
    for words in ([11003], filters(tmp_path / "a.h5", "v")[0][2]):
        text = write("stripped", tmp_path / "b.h5", sample(), words, tmp_path, env=clean(H5Z_GPU_STRICT="1"), ok=False)
        assert "h5z-gpu: cannot ask the calling HDF5 about the dataset" in text, text


def test_stripped_with_all_words_is_lossy(tmp_path):
    """The stored list says all that the filter must know."""
    x = sample()
    write("shared", tmp_path / "a.h5", x, [11003], tmp_path)
    words = filters(tmp_path / "a.h5", "v")[0][2]
    write("stripped", tmp_path / "b.h5", x, words, tmp_path)
    assert 0 < judge.check(x, read(tmp_path / "b.h5"), "abs", 1e-3) <= 1
    assert stored_bytes(tmp_path / "a.h5", "v") == stored_bytes(tmp_path / "b.h5", "v")
