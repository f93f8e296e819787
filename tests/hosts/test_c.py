# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plugin as C sees it, and a writer that has hardly any memory left."""
import resource
import subprocess

import h5py
import judge
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, app, clean, hdf5_dir, needed_by_static, run, sample
from programs import filters, stored_bytes, times


def test_the_record_and_every_function_of_the_header(tmp_path):
    build = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-o", tmp_path / "c_api")
    here = (HERE / "c_api.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", "-lpthread", f"-Wl,-rpath,{PLUGIN.parent}")
    text = run(tmp_path / "c_api")
    assert text.endswith(" all good\n"), text


def test_the_example_of_whole_arrays(tmp_path):
    build = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-o", tmp_path / "array")
    here = (ROOT / "examples/hdf5/array.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", f"-Wl,-rpath,{PLUGIN.parent}")
    assert run(tmp_path / "array", tmp_path / "a.h5").startswith("64 chunks, largest error 0.0")
    with h5py.File(tmp_path / "a.h5") as f:
        z, y, x = np.indices((64, 256, 256), sparse=True)
        for at in range(0, 256, 64):
            v = (np.sin(0.02 * x) * np.cos(0.03 * y) + 0.01 * (z + at)).astype("f4")
            assert 0 < np.abs(f["v"][at : at + 64] - v).max() <= 0.01
    assert run(tmp_path / "array", tmp_path / "no/such/a.h5", ok=False)


def test_the_callers_floating_point_state_changes_nothing(tmp_path):
    build = ("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "float_state")
    here = (HERE / "float_state.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", f"-Wl,-rpath,{PLUGIN.parent}")
    assert run(tmp_path / "float_state", env=clean(H5Z_GPU_THREADS="4")) == "all good\n"


@pytest.mark.parametrize("spare", [20, 60, 90, 140])
def test_without_memory_a_chunk_is_stored_and_none_is_lost(spare, tmp_path):
    """A chunk of 64 MiB where the process may take but `spare` MiB more than the chunk and its copies in HDF5."""
    n = 16 << 20
    x = (100 * np.sin(np.arange(n) / 50)).astype("f4")
    x.tofile(tmp_path / "raw")
    limit = (spare + 3 * 64) << 20
    command = [app("shared"), "write", tmp_path / "a.h5", "v", "f32", n, n, tmp_path / "raw", "o", 11003]
    r = subprocess.run(list(map(str, command)), env=clean(), text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert r.returncode == 0, (r.returncode, r.stdout)
    with h5py.File(tmp_path / "a.h5") as f:
        assert len(filters(tmp_path / "a.h5", "v")) == 1
        assert np.abs(f["v"][...].astype("f8") - x).max() <= 1e-3


# A filter that is called on threads of HDF5 while another one holds the library's lock, as HDF5 2.3 may: it enters
# nothing that waits.


@pytest.mark.parametrize("library", ["of today", "later"])
def test_eight_threads_while_the_library_is_locked(library, tmp_path):
    link = [] if library == "later" else [hdf5_dir() / "libhdf5.a", *needed_by_static(hdf5_dir())]
    run("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic",
        *(["-DLATER"] if library == "later" else []), "-o", tmp_path / "threads",
        HERE / "threads.c", "-I/usr/include/hdf5/serial", *link, "-lpthread", "-ldl", "-lm")
    said = run(tmp_path / "threads", PLUGIN)
    assert said.endswith("8 threads\n"), said
    if library == "later":
        # It does not reach the library's error stack.
        assert "damaged chunk" in said, said


# Applications with HDF5 linked in, whose functions the plugin may not be able to find.

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
