# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every program writes, every program reads: the bound holds, and all see the same bits."""
import judge
import numpy as np
import programs
import pytest
from samples import sample

WORD = 11003  # absolute 1e-3
LORENZO = 211003
CHUNK = {"v": [3, 16, 47], "w": [5, 33, 20]}


def content():
    v, w = sample(np.float32), sample(np.float64, seed=2)
    v[0, 0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    return {"v": v, "w": w}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of each writer and word, made when it is first asked for, with h5py's reading of it."""
    made = {}

    def get(writer, word=WORD):
        if (writer, word) not in made:
            tmp = tmp_path_factory.mktemp("written")
            path = tmp / "out.h5"
            programs.WRITERS[writer](content(), path, [word], CHUNK, tmp)
            made[writer, word] = path, programs.READERS["h5py"](path, CHUNK, content(), tmp)
        return made[writer, word]

    return get


@pytest.mark.parametrize("word", [WORD, LORENZO])
@pytest.mark.parametrize("writer", programs.WRITERS)
def test_every_writer_holds_the_bound_and_shrinks_the_data(writer, word, written):
    path, got = written(writer, word)
    for name, x in content().items():
        worst = judge.check(x, got[name], "abs", 1e-3)
        (f,) = programs.filters(path, name)
        assert f[0] == 443 and f[3] == b"h5z-gpu", f
        assert programs.listed(f[2])[:2] == (word, 3), "the words are a stored list"
        assert 0 < worst <= 1, "the filter was lossy here"
        assert programs.stored_bytes(path, name) < x.nbytes / 1.4
        with programs.h5py.File(path) as h:
            assert list(h[name].chunks) == CHUNK[name]


@pytest.mark.third
@pytest.mark.parametrize("writer", programs.WRITERS)
@pytest.mark.parametrize("reader", programs.READERS)
def test_every_reader_sees_the_same_bits(writer, reader, written, tmp_path):
    path, want = written(writer)
    got = programs.READERS[reader](path, list(CHUNK), content(), tmp_path)
    for name in CHUNK:
        judge.check(want[name], got[name].reshape(want[name].shape), "lossless")


@pytest.mark.parametrize("reader", programs.READERS)
def test_every_reader_reads_lorenzo(reader, written, tmp_path):
    path, want = written("netCDF4", LORENZO)
    with programs.h5py.File(path) as f:
        assert f["v"].id.read_direct_chunk((0, 0, 0))[1][9] == 2
    got = programs.READERS[reader](path, list(CHUNK), content(), tmp_path)
    for name in CHUNK:
        judge.check(want[name], got[name].reshape(want[name].shape), "lossless")


def test_all_writers_store_the_same_words_and_chunks(written):
    """What a file holds does not depend on the program or its HDF5 (but for the fill value that netCDF declares)."""
    plain = [w for w in programs.WRITERS if w not in ("netCDF4", "nccopy", "ncks")]
    first, *rest = [written(w)[0] for w in plain]

    def bytes_of(path):
        with programs.h5py.File(path) as f:
            out = {}
            for n in CHUNK:
                d = f[n].id
                out[n] = [d.read_direct_chunk(d.get_chunk_info(i).chunk_offset) for i in range(d.get_num_chunks())]
            return out

    for path in rest:
        for n in CHUNK:
            assert programs.filters(path, n)[0][2] == programs.filters(first, n)[0][2]
            assert bytes_of(path)[n] == bytes_of(first)[n]
